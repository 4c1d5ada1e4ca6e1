"""Commands that look after the store."""

from __future__ import annotations

from remem.cli.options import (
    ALL_COLLECTIONS,
    CHOICE,
    LIMIT_20,
    LIST,
    SINCE,
    TEXT,
    Arg,
    Command,
    Opt,
)

COMMANDS = (
    Command("status", "status:run", "print counts, queues, lags and sizes", (), (ALL_COLLECTIONS,)),
    Command(
        "audit",
        "audit:run",
        "print rows of the audit chain, newest last; checkpoint: sign its head",
        args=(Arg("what", "WHAT", "?", "checkpoint: sign the head of the chain"),),
        opts=(
            LIMIT_20,
            SINCE,
            Opt("--principal", "only rows of this principal", TEXT, "NAME"),
            Opt("--action", "only this action", TEXT, "ACTION"),
            Opt("--to", "checkpoint: add it to this file", TEXT, "FILE"),
            Opt("--git", "checkpoint: add it to refs/remem/checkpoints of this repository"),
        ),
        exits=(0, 1, 2, 3, 4, 5),
    ),
    Command(
        "verify",
        "verify:run",
        "check chain, objects, refs and indexes; name all that does not match",
        opts=(
            Opt("--fast", "the audit chain only"),
            Opt("--objects", "chain, objects and refs, not the indexes"),
            Opt("--index", "the indexes only, every posting of them"),
            Opt("--checkpoint", "hold the store against the checkpoints in FILE", TEXT, "FILE"),
            Opt("--git", "and against those of this folder's git repository"),
            Opt("--key", "a verifier key that was kept elsewhere (may be repeated)", LIST, "KEY"),
        ),
        exits=(0, 1, 2, 3, 4, 5),
    ),
    Command("doctor", "doctor:run", "look for trouble around the store; print remedies"),
    Command(
        "reindex",
        "reindex:run",
        "build the indexes anew from the objects",
        opts=(
            Opt("--lexical", "the inverted index only"),
            Opt("--vectors", "the vectors only"),
        ),
    ),
    Command(
        "export",
        "export:run",
        "write a text pack of what is visible",
        args=(Arg("path", "PATH", "1", "file to make, or - for standard output"),),
        opts=(
            Opt("--all-scopes", "every scope of the store (owner)"),
            ALL_COLLECTIONS,
            Opt("--force", "replace an existing file"),
        ),
        exits=(0, 2, 3, 5),
    ),
    Command(
        "backup",
        "backup:run",
        "copy the whole store while it is in use",
        args=(Arg("path", "PATH", "1", "folder to make"),),
        exits=(0, 2, 3, 5),
    ),
    Command(
        "config",
        "config:run",
        "read and change settings",
        args=(
            Arg("action", "ACTION", "1", "list, get, set, unset or path"),
            Arg("key", "KEY", "?", "a setting"),
            Arg("value", "VALUE", "?", "its new value"),
        ),
        opts=(
            Opt("--origin", "say where each value comes from"),
            Opt("--user", "the user's file instead of the store's"),
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "demo",
        "demo:run",
        "show the tour on a real agent session, in a folder of its own",
        opts=(Opt("--keep", "keep the folder"),),
        exits=(0, 2, 4, 5),
    ),
    Command(
        "completion",
        "completion:run",
        "print the completion script of a shell",
        args=(
            Arg("shell", "SHELL", "1", "bash, zsh or fish"),
            Arg("word", "WORD", "?", "with --candidates: what they begin with"),
        ),
        opts=(
            Opt(
                "--candidates",
                "print what WORD may become (the scripts ask for it)",
                CHOICE,
                "WHAT",
                None,
                ("ids", "collections", "agents", "sessions"),
            ),
        ),
        exits=(0, 2, 3),
    ),
    Command(
        "help",
        "help_:run",
        "show the manual page of a command",
        args=(Arg("command", "COMMAND", "?", "a command, or a topic of the manual"),),
        exits=(0, 1, 2),
    ),
)
