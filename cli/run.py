"""From words to an exit status: parse, build the context, call the command, report errors."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from remem.cli.front import Parsed, parse
from remem.cli.table import CHOICE, PORCELAIN

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.cli.context import Context
    from remem.cli.front import Values
    from remem.cli.table import Command

INTERRUPTED = 130
PIPE_CLOSED = 0
ASKED = ("recall", "context")  # what a resident process answers

_running: Context | None = None  # of the command that was begun; where an error is told needs it


def run_parsed(words: list[str]) -> int:
    """Run a command line through the small parser, else through typer."""
    parsed = parse(words)
    if parsed is None:
        from remem.cli.app import run_full

        return run_full(words)
    return execute(parsed.command, parsed.values, parsed.given)


def execute(command: Command, values: Values, given: Values) -> int:
    """Call a command's function with the values of its parameters."""
    from importlib import import_module

    from remem.cli.context import Context
    from remem.objects.errors import UsageError

    global _running
    _running = context = Context(command, given)
    for opt in command.opts:
        value = values.get(opt.name)
        if opt.kind == CHOICE and value is not None and value not in opt.choices:
            raise UsageError(
                f"'{value}' is no value of {opt.flags[0]}", hint="one of " + ", ".join(opt.choices)
            )
    module, _, function = command.target.partition(":")
    try:
        if context.claims:
            context.check(values)
        run = getattr(import_module(f"remem.cli.commands.{module}"), function)
        code: int = run(context, **values)
        sys.stdout.flush()
        if command.kind == PORCELAIN and sys.stderr.isatty():
            from remem.cli.reminder import remind

            remind(context)
        if command.name in ASKED and context.settings.flag("warm.auto"):
            from remem.cli.commands.warm import soon

            soon(context)
        return code
    finally:
        context.close()


def print_version(words: list[str]) -> int:
    """Print the version where errors are reported (the front door prints it without)."""
    from remem import __version__

    del words
    sys.stdout.write(f"remem {__version__}\n")
    sys.stdout.flush()
    return 0


def guarded(run: Callable[[list[str]], int], words: list[str]) -> int:
    """Run, and turn every error into a message, a hint and an exit status."""
    global _running
    _running = None
    _open_streams()
    debug = bool(os.environ.get("REMEM_DEBUG"))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # halves numpy's start
    try:
        return run(words)
    except KeyboardInterrupt:
        _hush()
        sys.stderr.write("remem: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        _hush()
        return PIPE_CLOSED
    except Exception as error:
        from remem.cli.report import report

        code = report(error, words, _running)
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            _hush()
        if debug:
            raise
        return code


def _open_streams() -> None:
    """Give a process that was started with a closed stream an empty one in its place."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")


def _hush() -> None:
    """Keep the interpreter from complaining about a closed stdout at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


__all__ = ["Parsed", "execute", "guarded", "print_version", "run_parsed"]
