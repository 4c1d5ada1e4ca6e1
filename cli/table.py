"""Every command of remem in one table: name, arguments, options, exit codes, one-line help.

The fast parser, the full parser (typer), help, completion, the manual's test and the index of
commands all read this table.  It imports nothing but its rows, since every start reads it.
"""

from __future__ import annotations

from remem.cli.options import (
    CHOICE,
    FLAG,
    GLOBALS,
    IMPORT_FORMATS,
    INT,
    LIST,
    PLUMBING,
    PORCELAIN,
    TEXT,
    Arg,
    Command,
    Opt,
)
from remem.cli.tables import (
    forgetting,
    hooks,
    keeping,
    plumbing,
    reading,
    tiers,
    trust,
    upkeep,
)

__all__ = [
    "CHOICE",
    "COMMANDS",
    "FLAG",
    "GLOBALS",
    "IMPORT_FORMATS",
    "INT",
    "LIST",
    "PLUMBING",
    "PORCELAIN",
    "TEXT",
    "Arg",
    "Command",
    "Opt",
    "find",
]

COMMANDS = (
    *keeping.COMMANDS,
    *reading.COMMANDS,
    *tiers.COMMANDS,
    *trust.COMMANDS,
    *forgetting.COMMANDS,
    *hooks.COMMANDS,
    *upkeep.COMMANDS,
    *plumbing.COMMANDS,
)


def find(name: str) -> Command | None:
    """The command of this name, or None."""
    for command in COMMANDS:
        if command.name == name:
            return command
    return None
