"""Times in the words of a client: absolute forms and the time words, as the command line has them.

A text that is empty is no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remem.objects.instant import Instant


def when(text: str) -> tuple[int | None, int | None]:
    """Instant of a time, microseconds UTC, and its offset in minutes.

    Raises:
        BadTime: it does not parse.
    """
    if not text:
        return None, None
    found = _point(text)
    return found.micros, found.offset


def start_of(text: str) -> int | None:
    """Start of the period that was written.

    Raises:
        BadTime: it does not parse.
    """
    return _point(text).micros if text else None


def end_of(text: str) -> int | None:
    """The last moment of the period that was written, so that what held within it is seen.

    Raises:
        BadTime: it does not parse.
    """
    if not text:
        return None
    found = _point(text)
    return found.micros if found.grain == "micro" else max(found.micros, found.end - 1)


def _point(text: str) -> Instant:
    from remem.index.timewords import parse_when
    from remem.objects import instant

    return parse_when(text, now=instant.now())
