"""Commands that say who may do what, and decide on what waits."""

from __future__ import annotations

from remem.cli.options import Command

COMMANDS: tuple[Command, ...] = ()
