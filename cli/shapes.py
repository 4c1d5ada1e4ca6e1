"""Instants and sources as JSON has them: the same bytes in every command that prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects import instant

if TYPE_CHECKING:
    from remem.objects.model import Source


def stamp(micros: int | None) -> str | None:
    """An instant as JSON has it, or None for an unknown one."""
    return None if micros is None else instant.rfc3339(micros)


def source(found: Source | None) -> dict[str, object] | None:
    """A source as given when it came in, or None when none was."""
    return None if found is None else {"uri": found.uri, "id": found.id}
