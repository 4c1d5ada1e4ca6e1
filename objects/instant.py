"""Instants: integers of microseconds since 1970-01-01T00:00:00Z, and their written forms.

Read: RFC 3339, ``YYYY-MM-DD[ HH:MM[:SS[.ffffff]]]`` (a space or ``T``), ``YYYY-MM``, ``YYYY``,
``@`` and epoch seconds, ``now``.  Relative forms ("2 days ago") are read one layer up, by
`remem.index.timewords`.

Written for machines: one form, RFC 3339 in UTC with ``Z``, the fraction left out when it is zero
and six digits otherwise.  Written for people: the same with a space, in the zone it came with.

Without a zone a time is read in the zone of the machine.  A wall clock time that occurs twice (the
clock went back) means the first of the two; one that does not occur (the clock went forward) is
read with the offset from before the change, as in PEP 495 with ``fold=0``: 02:30 in a gap from
02:00 to 03:00 is 03:30 on the new clock.

Intervals are half-open, and years run from 1 to 9999; `END` is the first instant after them.

Source: RFC 3339, sections 5.6 and 5.7; PEP 495.
"""

from __future__ import annotations

import time

from remem.objects.errors import BadTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import TypeAlias

    Zone: TypeAlias = Callable[[int], int]
    """Seconds east of UTC in force at an instant given in epoch seconds."""

MICROS = 1_000_000
STEP_US = 300 * MICROS  # by so much a clock may be set back
GRAINS = ("year", "month", "day", "hour", "minute", "second", "micro")

_DAY_S = 86_400
_EPOCH_DAY = 719_163  # proleptic Gregorian ordinal of 1970-01-01, where 0001-01-01 is 1
START = -62_135_596_800 * MICROS  # 0001-01-01T00:00:00Z
END = 253_402_300_800 * MICROS  # first instant after 9999-12-31T23:59:59.999999Z

_BEFORE_MONTH = (0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
SPAN_US = {
    "hour": 3_600 * MICROS,
    "minute": 60 * MICROS,
    "second": MICROS,
    "micro": 1,
}


class Instant:
    """A time as it was written: where it starts, where it ends and how finely it was given.

    Attributes:
        micros: start, microseconds UTC.
        end: exclusive end of what was named ("2023" ends with the year), at most `END`.
        grain: one of `GRAINS`, the finest unit that was written.
        offset: minutes east of UTC that were written; None where none was.
        zoned: False when the text was read in the machine's zone.
    """

    __slots__ = ("end", "grain", "micros", "offset", "zoned")

    def __init__(
        self, micros: int, end: int, grain: str, *, offset: int | None = None, zoned: bool = False
    ) -> None:
        """Keep the five fields as they are."""
        self.micros = micros
        self.end = end
        self.grain = grain
        self.offset = offset
        self.zoned = zoned

    def _key(self) -> tuple[int, int, str, int | None, bool]:
        return self.micros, self.end, self.grain, self.offset, self.zoned

    def __eq__(self, other: object) -> bool:
        """Equal when all five fields are."""
        return self._key() == other._key() if isinstance(other, Instant) else NotImplemented

    def __hash__(self) -> int:
        """Hash of all five fields."""
        return hash(self._key())

    def __repr__(self) -> str:
        """Show the instant in UTC, the length of what was named, and the rest."""
        return (
            f"Instant({self.micros}, {self.end}, {self.grain!r}, "
            f"offset={self.offset}, zoned={self.zoned})"
        )


def now() -> int:
    """Return the present, microseconds UTC, from the system's clock."""
    return time.time_ns() // 1_000


def present(clock: int, recorded: int) -> int:
    """What "now" means beside record times, which never go back as a clock may.

    A clock that was set back by a little, as clocks are kept right, leaves the order of what was
    said as it was said.  One that is far behind was wrong before: its time is the present.

    Args:
        clock: the system's clock, microseconds UTC.
        recorded: the last record time, microseconds UTC.
    """
    return recorded if clock < recorded <= clock + STEP_US else clock


def parse(text: str, *, now: int, local_offset: Zone | None = None) -> Instant:
    """Read an absolute time.

    Args:
        text: one of the forms of the module's head; white space around it does not count.
        now: microseconds UTC, what ``now`` stands for.
        local_offset: the zone for times without one; the machine's when None.

    Raises:
        BadTime: the text is none of these forms or names no instant of the years 1 to 9999.
    """
    word = text.strip()
    if word.lower() == "now":
        return Instant(now, now + 1, "micro", zoned=True)
    try:
        if not word.isascii():
            raise ValueError("it has characters other than ASCII")
        if word[:1] == "@":
            return _epoch(word)
        return _calendar(word, local_offset or machine_zone)
    except ValueError as error:
        raise BadTime(f"cannot read time {quoted(text)}: {error}") from None


def parse_rfc3339(text: str, local_offset: Zone | None = None) -> tuple[int, int | None]:
    """Read a full date and time fast, for bulk import.

    RFC 3339 with ``T`` or a space, as the sources write it; digits of the fraction beyond the
    sixth are cut off.  A time without a zone is read in the machine's zone.

    Returns:
        Microseconds UTC, and minutes east of UTC as written (None without a zone).

    Raises:
        BadTime: the text is another form, or no instant of the years 1 to 9999.
    """
    # The C parser takes more than the contract (commas, missing colons, seconds in offsets, hour
    # 24 in later versions), so the places of all separators are looked at first.
    if (
        text[10:11] in ("T", " ")
        and text[13:14] == text[16:17] == ":"
        and text[11:13] != "24"
        and text.isascii()
    ):
        body, east = "", 0
        if text[-1] == "Z":
            body = text[:-1]
        elif text[-3] == ":" and (sign := text[-6]) in "+-":
            hours, minutes = text[-5:-3], text[-2:]
            if hours.isdigit() and hours < "24" and minutes.isdigit() and minutes < "60":
                body = text[:-6]
                east = int(hours) * 60 + int(minutes)
                if sign == "-":
                    east = -east
        if len(body) == 19 or (body[19:20] == "." and body[20:].isdigit()):
            try:
                read = _fromisoformat(body)
            except ValueError:
                pass  # the slow path says what is wrong with it
            else:
                micros = (
                    ((read.toordinal() - _EPOCH_DAY) * 24 + read.hour) * 60 + read.minute - east
                ) * 60_000_000 + (read.second * MICROS + read.microsecond)
                if START <= micros < END:
                    return micros, east
    word = text.strip()
    if len(word) < 19 or word[0] == "@":
        raise BadTime(f"cannot read time {quoted(text)}: it is not a full date and time")
    found = parse(word, now=0, local_offset=local_offset)
    return found.micros, found.offset


def rfc3339(micros: int) -> str:
    """Write an instant for machines: UTC, ``Z``, a fraction of six digits only when it is not 0.

    The same instant is the same bytes wherever it is printed.  Do not sort by this text: the
    fraction may be missing.

    Raises:
        BadTime: the instant is outside the years 1 to 9999.
    """
    if not START <= micros < END:
        raise BadTime(f"cannot write instant '{micros}': it is outside the years 1 to 9999")
    seconds, fraction = divmod(micros, MICROS)
    y, mo, d, h, mi, s, _, _, _ = time.gmtime(seconds)
    if fraction:
        return f"{y:04d}-{mo:02d}-{d:02d}T{h:02d}:{mi:02d}:{s:02d}.{fraction:06d}Z"
    return f"{y:04d}-{mo:02d}-{d:02d}T{h:02d}:{mi:02d}:{s:02d}Z"


def display(micros: int, offset: int | None = None, *, local_offset: Zone | None = None) -> str:
    """Write an instant for people, always with its offset: ``2023-05-08 13:56:00+02:00``.

    Args:
        micros: microseconds UTC.
        offset: minutes east of UTC to write it in; 0 writes ``Z``.  None means the machine's zone.
        local_offset: the zone that stands in for the machine's.

    Returns:
        Text that `parse` reads back to the same instant.

    Raises:
        BadTime: the instant is outside the years 1 to 9999.
    """
    if offset is None:
        offset = offset_at(micros, local_offset)
    shifted = micros + offset * 60 * MICROS
    if not offset or not START <= shifted < END:
        return rfc3339(micros).replace("T", " ")
    east = abs(offset)
    sign = "+" if offset > 0 else "-"
    written = rfc3339(shifted)[:-1].replace("T", " ")
    return f"{written}{sign}{east // 60:02d}:{east % 60:02d}"


def offset_at(micros: int, local_offset: Zone | None = None) -> int:
    """Return the zone's offset at an instant, minutes east of UTC, seconds dropped."""
    return int((local_offset or machine_zone)(micros // MICROS) / 60)


def machine_zone(seconds: int) -> int:
    """Return the offset of the process's zone at an instant, seconds east of UTC."""
    return time.localtime(seconds).tm_gmtoff


def day_number(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date; the day may lie beyond the month's end."""
    before = year - 1
    leap_day = month > 2 and is_leap(year)
    return (
        before * 365
        + before // 4
        - before // 100
        + before // 400
        + _BEFORE_MONTH[month]
        + leap_day
        + day
        - _EPOCH_DAY
    )


def date_of(number: int) -> tuple[int, int, int]:
    """Return year, month and day of a day number (the inverse of `day_number`)."""
    return time.gmtime(number * _DAY_S)[:3]


def is_leap(year: int) -> bool:
    """Say whether a year has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_days(year: int, month: int) -> int:
    """Return the number of days of a month."""
    if month == 2:
        return 29 if is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def wall_clock(micros: int, local_offset: Zone | None = None) -> tuple[int, int]:
    """Return what calendar and clock show in a zone: day number, microseconds since midnight."""
    east = (local_offset or machine_zone)(micros // MICROS)
    return divmod(micros + east * MICROS, _DAY_S * MICROS)


def at_wall_clock(day: int, micros: int = 0, local_offset: Zone | None = None) -> int:
    """Return the instant at which a zone's clocks show a time (for gaps see the module's head).

    Args:
        day: day number.
        micros: microseconds since midnight on the clock.
        local_offset: the zone; the machine's when None.
    """
    zone = local_offset or machine_zone
    seconds, fraction = divmod(micros, MICROS)
    shown = day * _DAY_S + seconds
    # Offsets are below a day, so the first probe is surely earlier than the instant looked for and
    # the second surely later.
    first = shown - _zone_at(zone, shown - _DAY_S)
    second = shown - _zone_at(zone, shown + _DAY_S)
    if (
        first != second
        and first + _zone_at(zone, first) != shown
        and second + _zone_at(zone, second) == shown
    ):
        first = second
    return first * MICROS + fraction


def clamp(micros: int) -> int:
    """Return the instant, or the nearest end of the years 1 to 9999."""
    return min(max(micros, START), END)


def quoted(text: str) -> str:
    """Return text in single quotes for a message: one line, at most 60 characters of it."""
    shown = text if len(text) <= 60 else text[:59] + "…"
    return "'" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown) + "'"


def _zone_at(zone: Zone, seconds: int) -> int:
    """Ask a zone for its offset, never beyond the years 1 to 9999."""
    return zone(min(max(seconds, START // MICROS), END // MICROS - 1))


def _number(word: str, start: int, end: int, name: str, low: int, high: int) -> int:
    """Read digits at fixed places and check their range."""
    part = word[start:end]
    if len(part) != end - start or not part.isdigit():
        raise ValueError(f"{name} is not {end - start} digits")
    value = int(part)
    if not low <= value <= high:
        raise ValueError(f"{name} {part} is not between {low} and {high}")
    return value


def _calendar(word: str, zone: Zone) -> Instant:
    """Read ``YYYY[-MM[-DD[ HH:MM[:SS[.f]]][zone]]]``."""
    if len(word) < 4 or not word[:4].isdigit():
        raise ValueError("it does not start with a year of four digits")
    year = _number(word, 0, 4, "year", 1, 9999)
    if len(word) == 4:
        return _days(day_number(year, 1, 1), day_number(year + 1, 1, 1), "year", zone)
    if word[4] != "-":
        raise ValueError("the year is followed by something else than '-'")
    month = _number(word, 5, 7, "month", 1, 12)
    length = month_days(year, month)
    if len(word) == 7:
        first = day_number(year, month, 1)
        return _days(first, first + length, "month", zone)
    if word[7] != "-":
        raise ValueError("the month is followed by something else than '-'")
    day = _number(word, 8, 10, "day", 1, length)
    number = day_number(year, month, day)
    if len(word) == 10:
        return _days(number, number + 1, "day", zone)
    if word[10] not in "Tt ":
        raise ValueError("the date is followed by something else than 'T' or a space")
    return _clock(word, number, zone)


def _days(first: int, last: int, grain: str, zone: Zone) -> Instant:
    """Return the period of whole days [first, last) in a zone."""
    start = clamp(at_wall_clock(first, 0, zone))
    return Instant(start, clamp(at_wall_clock(last, 0, zone)), grain)


def _clock(word: str, day: int, zone: Zone) -> Instant:
    """Read ``HH:MM[:SS[.f]][zone]`` from the 12th character on."""
    hour = _number(word, 11, 13, "hour", 0, 23)
    if word[13:14] != ":":
        raise ValueError("the hour is not followed by ':'")
    shown = (hour * 60 + _number(word, 14, 16, "minute", 0, 59)) * 60
    grain, fraction, at, leap = "minute", 0, 16, False
    if word[16:17] == ":":
        second = _number(word, 17, 19, "second", 0, 60)
        leap = second == 60
        shown += second
        grain, at = "second", 19
        if word[19:20] == ".":
            rest = word[20:]
            digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
            if not digits:
                raise ValueError("the fraction has no digits")
            fraction = int(digits[:6].ljust(6, "0"))
            grain, at = "micro", 20 + len(digits)
    offset = _offset(word, at)
    if offset is None:
        micros = at_wall_clock(day, shown * MICROS + fraction, zone)
    else:
        micros = (day * _DAY_S + shown - offset * 60) * MICROS + fraction
        # A leap second has no number of its own; it stands only at the end of a month in UTC and
        # is read as the second that follows it.
        leap = leap and (micros % (_DAY_S * MICROS) >= MICROS or _month_day(micros) != 1)
    if leap:
        raise ValueError("second 60 is not a leap second")
    if not START <= micros < END:
        raise ValueError("it is outside the years 1 to 9999 in UTC")
    return Instant(micros, micros + SPAN_US[grain], grain, offset=offset, zoned=offset is not None)


def _month_day(micros: int) -> int:
    """Return the day of the month in UTC."""
    return date_of(micros // (_DAY_S * MICROS))[2]


def _offset(word: str, at: int) -> int | None:
    """Read nothing, ``Z`` or ``±HH:MM`` from a place to the end, as minutes east of UTC."""
    zone = word[at:]
    if not zone:
        return None
    if zone in ("Z", "z"):
        return 0
    if zone[0] not in "+-" or len(zone) != 6 or zone[3] != ":":
        raise ValueError(f"{quoted(zone)} is neither 'Z' nor an offset such as '+02:00'")
    east = _number(zone, 1, 3, "offset hour", 0, 23) * 60
    east += _number(zone, 4, 6, "offset minute", 0, 59)
    return -east if zone[0] == "-" else east


def _epoch(word: str) -> Instant:
    """Read ``@[-]seconds[.fraction]``; the fraction counts away from zero, as in a number."""
    signed = word[1:2] in ("-", "+")
    whole, point, fraction = word[1 + signed :].partition(".")
    if not whole.isdigit() or (point and not fraction.isdigit()) or len(whole) > 12:
        raise ValueError("'@' is not followed by epoch seconds")
    micros = int(whole) * MICROS + int(fraction[:6].ljust(6, "0"))
    if word[1] == "-":
        micros = -micros
    if not START <= micros < END:
        raise ValueError("it is outside the years 1 to 9999 in UTC")
    grain = "micro" if point else "second"
    return Instant(micros, micros + SPAN_US[grain], grain, offset=0, zoned=True)


def _fromisoformat(text: str) -> datetime:
    """Import the C parser at the first call, then stand aside for it."""
    from datetime import datetime

    globals()["_fromisoformat"] = datetime.fromisoformat
    return datetime.fromisoformat(text)
