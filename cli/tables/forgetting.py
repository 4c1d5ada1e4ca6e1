"""Commands that forget, hold, retain."""

from __future__ import annotations

from remem.cli.options import (
    ALL_COLLECTIONS,
    CHOICE,
    DRY_RUN,
    ROLE,
    TEXT,
    Arg,
    Command,
    Opt,
)

COMMANDS = (
    Command(
        "forget",
        "forget:run",
        "forget: gone from every view at once, its bytes at the next purge",
        args=(Arg("ids", "ID", "*", "ids or unique prefixes"),),
        opts=(
            Opt("--query", "all that holds every word of Q", TEXT, "Q"),
            Opt("--scope-all", "all of this scope"),
            Opt("--yes", "do not ask"),
            Opt("--reason", "reason code, kept in the tombstone", TEXT, "CODE"),
            Opt("--allow-return", "the same value may be stored again"),
            Opt("--now", "purge at once"),
            DRY_RUN,
            ALL_COLLECTIONS,
        ),
        exits=(0, 1, 2, 3, 4, 5),
    ),
    Command(
        "purge",
        "purge:run",
        "remove the bytes of what was forgotten; prove that they are gone",
        args=(Arg("ids", "ID", "*", "only these, and what was derived from them"),),
        opts=(DRY_RUN, Opt("--yes", "do not ask"), ALL_COLLECTIONS),
        exits=(0, 1, 2, 3, 4, 5),
    ),
    Command(
        "tombstones",
        "tombstones:run",
        "print what was forgotten; lift: let its value come back",
        args=(
            Arg("action", "ACTION", "?", "list (default), lift or restore"),
            Arg("ids", "ID", "*", "ids of tombstones"),
        ),
        opts=(ALL_COLLECTIONS,),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "hold",
        "hold:run",
        "keep things from being forgotten and purged",
        args=(
            Arg("action", "ACTION", "1", "add, list or release"),
            Arg("ids", "ID", "*", "ids or unique prefixes"),
        ),
        opts=(
            Opt("--query", "all that holds every word of Q", TEXT, "Q"),
            Opt("--reason", "reason code", TEXT, "CODE"),
            ALL_COLLECTIONS,
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "retain",
        "retain:run",
        "rules by which what is old expires or is forgotten",
        args=(
            Arg("action", "ACTION", "1", "set, list, run or unset"),
            Arg("number", "NUMBER", "?", "unset: number of the rule"),
        ),
        opts=(
            Opt("--type", "observation or memory", CHOICE, "TYPE", None, ("observation", "memory")),
            Opt("--kind", "of this kind", TEXT, "KIND"),
            Opt("--tier", "of this tier", TEXT, "TIER"),
            ROLE,
            Opt(
                "--origin",
                "whose word it is",
                CHOICE,
                "ORIGIN",
                None,
                ("owner", "agent", "tool", "untrusted"),
            ),
            Opt("--status", "of this status", TEXT, "STATUS"),
            Opt("--older-than", "at least so old: 90d, 12h, 2w, 1y", TEXT, "AGE"),
            Opt(
                "--action",
                "expire or forget",
                CHOICE,
                "ACTION",
                None,
                ("expire", "forget"),
                name="then",
            ),
            DRY_RUN,
            ALL_COLLECTIONS,
        ),
        exits=(0, 1, 2, 3, 5),
    ),
)
