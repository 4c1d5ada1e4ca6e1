"""Commands that capture, schedule and serve."""

from __future__ import annotations

from remem.cli.options import Command

COMMANDS: tuple[Command, ...] = ()
