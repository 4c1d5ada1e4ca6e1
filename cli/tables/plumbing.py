"""Commands that stable commands for scripts."""

from __future__ import annotations

from remem.cli.options import ALL_COLLECTIONS, NUL, PLUMBING, Arg, Command, Opt

COMMANDS = (
    Command(
        "hash-object",
        "plumbing:hash_object",
        "print the id that a text has here; -w stores it",
        args=(Arg("path", "PATH", "1", "a file, or -"),),
        opts=(Opt("-w", "store it", name="write"), NUL),
        kind=PLUMBING,
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "cat-object",
        "plumbing:cat_object",
        "print one object",
        args=(Arg("id", "ID", "1", "id of the object"),),
        opts=(
            Opt("--raw", "its text as it came in"),
            Opt("--type", "its type"),
            Opt("--size", "its size as stored, in bytes"),
            Opt("--bytes", "its stored bytes, whose BLAKE3-256 is the id"),
            ALL_COLLECTIONS,
        ),
        kind=PLUMBING,
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "ls-refs",
        "plumbing:ls_refs",
        "print every current ref: id, type, status, head",
        opts=(
            Opt("--all", "closed, superseded and withheld ones too", name="everything"),
            NUL,
            ALL_COLLECTIONS,
        ),
        kind=PLUMBING,
    ),
    Command(
        "ls-jobs",
        "jobs:ls_jobs",
        "print every job of derivation: state, deriver, ref, attempts, due, error",
        opts=(NUL, ALL_COLLECTIONS),
        kind=PLUMBING,
    ),
    Command(
        "rev-parse",
        "plumbing:rev_parse",
        "print the full id of a name",
        args=(Arg("name", "NAME", "1", "an id, a prefix or @{last}"),),
        opts=(NUL, ALL_COLLECTIONS),
        kind=PLUMBING,
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "drain",
        "drain_:run",
        "take in what hooks appended to the spool",
        kind=PLUMBING,
        exits=(0, 2, 3, 5),
    ),
    Command(
        "project",
        "plumbing:project",
        "bring the indexes up to the ref log",
        kind=PLUMBING,
    ),
    Command(
        "count-objects",
        "plumbing:count_objects",
        "print how many objects there are and their size",
        opts=(NUL, ALL_COLLECTIONS),
        kind=PLUMBING,
    ),
)
