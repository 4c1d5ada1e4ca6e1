"""Errors for people and for scripts: what went wrong, what to do, which exit status.

People read it on standard error.  With ``--json`` standard output gets one value that says the
same, unless the command has written there before: then what it wrote stays as it is.

Source: remem(1), OUTPUT.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from remem.cli.plain import visible
from remem.objects.errors import RememError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remem.cli.context import Context

UNEXPECTED = 5
# Kinds of errors that are no RememError.
MEMORY, NESTED, FILE, FAULT = "memory", "nested", "file", "fault"
KINDS = (MEMORY, NESTED, FILE, FAULT)


class Told:
    """An error as it is told."""

    __slots__ = ("exit", "hint", "kind", "message")

    def __init__(self, kind: str, message: str, hint: str, exit: int) -> None:
        """A stable word, what went wrong, what to do about it, the exit status."""
        self.kind = kind
        self.message = message
        self.hint = hint
        self.exit = exit


def report(error: Exception, words: Sequence[str] = (), context: Context | None = None) -> int:
    """Print an error and return its exit status.

    Args:
        error: what went wrong.
        words: of the command line.
        context: of the command, where it was begun.
    """
    from remem.objects.redact import clean

    told = told_of(error)
    # A message may quote what was given, and that may be a secret.
    told.message, told.hint = clean(told.message)[0], clean(told.hint)[0]
    if context is not None and context.wrote:
        with suppress(OSError, ValueError):  # who reads it may be gone
            sys.stdout.flush()
    sys.stderr.write(f"remem: {visible(told.message)}\n")
    if told.hint:
        sys.stderr.write(f"hint: {visible(told.hint)}\n")
    sys.stderr.flush()
    if in_json(words, context) and (context is None or not context.wrote):
        _print(told)
    return told.exit


def told_of(error: Exception) -> Told:
    """How an error is told."""
    if isinstance(error, RememError):
        return Told(error.kind, str(error), error.hint, error.exit_code)
    if isinstance(error, MemoryError):
        hint = "give it more (ulimit -v), or do it in smaller pieces"
        return Told(MEMORY, "not enough memory", hint, UNEXPECTED)
    if isinstance(error, RecursionError):
        return Told(NESTED, "the input is nested too deeply", "", 2)
    if isinstance(error, OSError):
        what = error.strerror or type(error).__name__
        what = what[:1].lower() + what[1:]
        hint = "free some space and run it again" if error.errno in (28, 122) else ""
        message = f"cannot open '{error.filename}': {what}" if error.filename else what
        return Told(FILE, message, hint, UNEXPECTED)
    return Told(
        FAULT,
        f"unexpected {type(error).__name__}: {error}",
        "this is a fault of remem; REMEM_DEBUG=1 shows where",
        UNEXPECTED,
    )


def in_json(words: Sequence[str], context: Context | None) -> bool:
    """Whether JSON was asked for.

    Words that could not be read say so by ``--json`` anywhere before ``--``; where settings cannot
    be read, they say nothing.
    """
    from remem.cli.context import Context
    from remem.cli.options import Command

    if context is None:
        before = words[: words.index("--")] if "--" in words else words
        given = {"json": True} if "--json" in before else {}
        context = Context(Command("", "", ""), given)
    try:
        return context.settings.origin("json")[1] == "option" or _by_settings(context)
    except (RememError, OSError):
        return False


def _by_settings(context: Context) -> bool:
    _ = context.root  # the store's own settings take part
    return context.json


def _print(told: Told) -> None:
    """Print the one value of a command that failed."""
    import msgspec

    value = {
        "kind": told.kind,
        "message": _text(told.message),
        "hint": _text(told.hint),
        "exit": told.exit,
    }
    try:
        sys.stdout.buffer.write(msgspec.json.encode({"error": value}) + b"\n")
    except (OSError, ValueError):
        return  # it was closed; the exit status says it all the same


def _text(text: str) -> str:
    """A text that UTF-8 can hold: a file's name may be of other bytes."""
    return text.encode("utf-8", "backslashreplace").decode()
