"""Absolute times as other programs write them, as microseconds since 1970-01-01T00:00:00Z.

Source: RFC 3339, section 5.6, and the ISO 8601 date forms that `datetime.fromisoformat` takes.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remem.objects.model import Incoming

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_NAIVE = datetime.datetime(1970, 1, 1)
_FIRST_US = -62_135_596_800_000_000  # 0001-01-01T00:00:00Z
_LAST_US = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999Z
_MAX_OFFSET_MIN = 24 * 60

# Programs write epoch times in seconds, milliseconds, microseconds or nanoseconds without saying
# which.  Seconds below this bound reach the year 5138, so larger numbers are the finer units.
_FINER_FROM = 100_000_000_000


def instant(value: object) -> tuple[int, int | None]:
    """Read an absolute time.

    Args:
        value: an RFC 3339 or ISO 8601 text, "@" and epoch seconds, or an epoch number (seconds;
            from 1e11 on milliseconds, from 1e14 on microseconds, from 1e17 on nanoseconds).

    Returns:
        Microseconds UTC, and the offset in minutes east of UTC; the offset is None when the input
        had no zone, and was read as UTC.

    Raises:
        ValueError: if the value is no time, with a reason fit for a message.
    """
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a time is a text or a number")
    return epoch(value), 0


def epoch(value: int | float) -> int:
    """Turn an epoch number of unknown unit into microseconds UTC.

    Raises:
        ValueError: if it is not finite or lies outside of the years 1 to 9999.
    """
    size = abs(value)
    if not size < 1e20:  # also false for a number that is none
        raise ValueError("the number is no time")
    if size < _FINER_FROM:
        micros = round(value * 1_000_000)
    elif size < _FINER_FROM * 1_000:
        micros = round(value * 1_000)
    elif size < _FINER_FROM * 1_000_000:
        micros = round(value)
    else:
        micros = round(value / 1_000) if isinstance(value, float) else value // 1_000
    if not _FIRST_US <= micros <= _LAST_US:
        raise ValueError("the time lies outside of the years 1 to 9999")
    return micros


def instant_or_none(value: object) -> tuple[int | None, int | None]:
    """Read a time where an unreadable one means "unknown" and must not cost the record."""
    try:
        return instant(value)
    except ValueError:
        return None, None


def stamp(item: Incoming, value: object) -> None:
    """Set the time of a record; one that cannot be read stays in its meta as it was written."""
    if value is None:
        return
    item.asserted, item.offset = instant_or_none(value)
    if item.asserted is None:
        item.meta["timestamp"] = _short(str(value))


def _of_text(text: str) -> tuple[int, int | None]:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        moment = _second_try(text)
    if moment.tzinfo is None:
        delta = moment - _EPOCH_NAIVE
        return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds, None
    delta = moment - _EPOCH
    offset = moment.utcoffset()
    minutes = 0 if offset is None else (offset.days * 86_400 + offset.seconds) // 60
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds, minutes


def _second_try(text: str) -> datetime.datetime:
    # RFC 3339 allows lower case "t" and "z", which fromisoformat does not take.
    tidy = text.strip().upper()
    if tidy[:1] == "@":
        try:
            return _EPOCH + datetime.timedelta(seconds=float(tidy[1:]))
        except (ValueError, OverflowError):
            raise ValueError(f"'{_short(text)}' is no time") from None
    try:
        return datetime.datetime.fromisoformat(tidy)
    except ValueError:
        raise ValueError(f"'{_short(text)}' is no time") from None


def offset_minutes(zone: str) -> int | None:
    """Read a zone as git writes it ("+0530"); None for one that cannot be."""
    digits = zone[1:]
    if len(digits) != 4 or zone[0] not in "+-" or not digits.isascii() or not digits.isdigit():
        return None
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    if minutes >= _MAX_OFFSET_MIN:
        return None
    return -minutes if zone[0] == "-" else minutes


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
