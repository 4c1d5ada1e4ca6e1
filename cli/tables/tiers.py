"""Commands about how long things are kept and when they come back: pins, loops, tasks, briefs."""

from __future__ import annotations

from remem.cli.options import (
    ALL_COLLECTIONS,
    AS_OF,
    INCLUDE,
    KNOWN_AT,
    LIST,
    REASON,
    TEXT,
    VIEW,
    Arg,
    Command,
    Opt,
)

COMMANDS = (
    Command(
        "pin",
        "pin:run",
        "let a text or a ref stand word for word before every context",
        args=(Arg("text", "TEXT", "+", "what to pin, the id of a ref, or - for standard input"),),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "pins",
        "pin:pins_",
        "list what is pinned, and what of it shows nothing any more",
        opts=(ALL_COLLECTIONS,),
    ),
    Command(
        "unpin",
        "pin:unpin",
        "take pins out",
        args=(Arg("ids", "ID", "+", "ids of pinned refs"),),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "loop",
        "loop:run",
        "open an intent that comes back at a time or with a topic, or end one",
        args=(
            Arg("action", "ACTION", "1", "add or done"),
            Arg("words", "WORD", "*", "add: what is intended, or - for standard input; done: ids"),
        ),
        opts=(
            Opt("--when", "add: due from this time on", TEXT, "T"),
            Opt("--topic", "add: due when these words are spoken of", TEXT, "WORDS"),
            Opt("--note", "done: how it ended", TEXT, "TEXT"),
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "loops",
        "loop:loops_",
        "list open intents, or those that are due",
        args=(Arg("words", "WORD", "*", "with --due: what is spoken of"),),
        opts=(
            Opt("--due", "only those that are due"),
            Opt("--all", "those that are done as well"),
            INCLUDE,
            ALL_COLLECTIONS,
        ),
    ),
    Command(
        "task",
        "task:run",
        "keep the working state of a task under a key, with its history",
        args=(
            Arg("action", "ACTION", "1", "set, show, list or done"),
            Arg("key", "KEY", "?", "name of the task"),
            Arg("text", "TEXT", "*", "set: the state, or - for standard input"),
        ),
        opts=(VIEW, AS_OF, KNOWN_AT, ALL_COLLECTIONS),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "brief",
        "brief:run",
        "leave word for the next consolidation, or list what waits for it",
        args=(Arg("text", "TEXT", "*", "what to say, or - for standard input"),),
        opts=(
            Opt("--promote", "a short note to keep (may be repeated)", LIST, "ID"),
            Opt("--noise", "what to let go before its time (may be repeated)", LIST, "ID"),
            Opt("--done", "a loop that is done (may be repeated)", LIST, "LOOP"),
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "promote",
        "promote:run",
        "keep short notes for good",
        args=(Arg("ids", "ID", "+", "ids of short notes"),),
        opts=(REASON,),
        exits=(0, 1, 2, 3, 5),
    ),
)
