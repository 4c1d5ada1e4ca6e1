"""Asking a person before something that cannot be taken back; never where nobody can answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from remem.objects.errors import Refused, ScopeRefused, UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context


def confirm(question: str, *, yes: bool, what: str) -> None:
    """Go on only when a person says so.

    Args:
        question: what is asked, without the question mark.
        yes: it was said on the command line already.
        what: what is about to be done, for the message where nobody can be asked.

    Raises:
        UsageError: there is no terminal to ask on.
        Refused: the answer was no.
    """
    if yes:
        return
    if not can_ask():
        raise UsageError(f"{what} needs --yes, there is no terminal to ask on")
    sys.stderr.write(f"remem: {question}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().casefold() not in ("y", "yes"):
        raise Refused("nothing was changed", hint="answer y, or give --yes")


def can_ask() -> bool:
    """True when a person sits at the terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def owner_only(context: Context, what: str) -> None:
    """Refuse whoever is not the owner.

    Raises:
        ScopeRefused: the principal is not the owner.
    """
    grant = context.grant()
    if not grant.owner:
        raise ScopeRefused(f"'{grant.principal}' may not {what}")
