"""Errors for people: what went wrong, what to do, which exit status."""

from __future__ import annotations

import sys

from remem.cli.plain import visible
from remem.objects.errors import RememError

UNEXPECTED = 5


def report(error: Exception) -> int:
    """Print an error on stderr and return its exit status."""
    if isinstance(error, RememError):
        message, hint, code = str(error), error.hint, error.exit_code
    elif isinstance(error, MemoryError):
        message, code = "not enough memory", UNEXPECTED
        hint = "give it more (ulimit -v), or do it in smaller pieces"
    elif isinstance(error, RecursionError):
        message, hint, code = "the input is nested too deeply", "", 2
    elif isinstance(error, OSError):
        what = error.strerror or type(error).__name__
        what = what[:1].lower() + what[1:]
        message, code = what, UNEXPECTED
        if error.filename:
            message = f"cannot open '{error.filename}': {what}"
        hint = "free some space and run it again" if error.errno in (28, 122) else ""
    else:
        message, code = f"unexpected {type(error).__name__}: {error}", UNEXPECTED
        hint = "this is a fault of remem; REMEM_DEBUG=1 shows where"
    from remem.objects.redact import clean

    # A message may quote what was given, and that may be a secret.
    sys.stderr.write(f"remem: {visible(clean(message)[0])}\n")
    if hint:
        sys.stderr.write(f"hint: {visible(clean(hint)[0])}\n")
    sys.stderr.flush()
    return code
