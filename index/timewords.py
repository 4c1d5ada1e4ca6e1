"""Time words: one time written by a person, and the periods named in a question.

`parse_when` reads one time: an absolute form first, then the words of `remem.index.timegrammar` by
plain arithmetic, then whatever dateparser knows (imported only at that point).  `periods` finds the
time expressions of a longer text, `past_question` the questions about an earlier state.

For `parse_when` a distance ("2 days ago", "in 2 weeks") is an instant: days and longer keep the
clock time, hours and shorter count elapsed time.  Every other expression is the whole of what it
names, from its first instant.
"""

from __future__ import annotations

import re

import msgspec

from remem.index.timegrammar import Reader
from remem.index.timelex import HINTS, MONTHS, NEAR_DAYS, WEEKDAYS, Days, unit_days, year_of
from remem.objects import instant
from remem.objects.errors import BadTime
from remem.objects.instant import MICROS, Instant, day_number, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from remem.objects.instant import Zone

_WORD = re.compile(r"[^\W\d_]+|\d+")
_CLOCK = r"\d{1,2}(?::\d\d(?::\d\d)?\s*(?:[ap]\.?m\.?)?|\s*[ap]\.?m\.?)|noon|midnight"
_WORDED = r"[^\W\d_]{2}|\b[qQ][1-4]\b"
_SLASHED = r"\b\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}\b"  # day first or month first: nobody knows
_LIBRARY_HINTS = frozenset({*WEEKDAYS, *NEAR_DAYS, "ago", "am", "pm", "noon", "midnight"})
QUESTION_CHARS = 600  # what is longer is a text, not a question
_WHEN_CHARS = 100
_DAY_US = 86_400 * MICROS

_PAST_HINTS = frozenset(
    "used use previously formerly before past back originally initially longer anymore more"
    " old former previous prior earlier".split()
)
_UNITS = "hour|day|night|week|weekend|month|quarter|year|decade|morning|evening"
_OWN = r"(?:my|our|his|her|its|their|your)"
_PAST = (
    # "the key used to sign" and "is used to sign" name a purpose, not a habit.
    r"\b(?:i|we|you|he|she|they|it|who|there|that)\s+(used to)\b(?! (?:\w+ing|it|that|this)\b)"
    r"|\bdid\b(?:\W+\w+){1,3}?\s+(used to)\b"
    r"|\b(?:where|who|how often)\s+did\b(?:\W+\w+){1,3}?\s+(use to)\b"
    r"|\b(previously|formerly|back then|back when|no longer)\b"
    r"|\b(originally|initially)\b(?! from\b)"
    rf"|\b(in the past)\b(?! (?:few|couple|several|\d+|two|three|four|five|six|(?:{_UNITS})s?)\b)"
    r"|(?:\bnot|n['’]t|\bnever)\b.*\b(any ?more)\b"  # noqa: RUF001
    r"|\b(?:what|who|where|which)(?:['’]s|\s+is|\s+was|\s+are|\s+were)\s+"  # noqa: RUF001
    rf"((?:{_OWN}|the|\w+['’]s)\s+(?:old|former|previous|prior|original|earlier))\s+\w+"  # noqa: RUF001
    rf"|\b({_OWN}\s+(?:former|previous|prior))\s+(?!(?:{_UNITS})\b)\w+"
    # "Have I seen this before?" asks whether, "the day before" is a date.
    r"|^(?!\W*(?:have|has|had)\b).*\b(?:was|were|did)\b.*"
    rf"(?<!\bday)(?<!night)(?<!week)(?<!weekend)(?<!month)(?<!year)(?<!morning)(?<!evening)"
    r"\s(before(?:\s+(?:now|then|that))?)\W*$"
    r"|\b(?:was|were|did)\b.*\b(before\s+(?:the\s+(?:change|move|switch|migration|correction)"
    r"|(?:i|we)\s+(?:moved|changed|switched|migrated)))\b"
)


class Period(msgspec.Struct, frozen=True):
    """A stretch of time named in a text.

    Attributes:
        start: first instant, microseconds UTC (`instant.START` where it is open).
        end: first instant after it (`instant.END` where it is open).
        span: character offsets of the words, preposition included.
        kind: "absolute" (names its year), "relative" (depends on now) or "open" (one end only).
        recurring: no year was named ("in June"); start and end are the latest that has begun, and
            `occurrences` gives those of other years.
    """

    start: int
    end: int
    span: tuple[int, int]
    kind: str
    recurring: bool = False


def parse_when(
    text: str, *, now: int, tz: Zone | None = None, prefer_future: bool = False
) -> Instant:
    """Read one time, absolute or relative.

    Args:
        text: the time as written.
        now: microseconds UTC that relative forms count from.
        tz: the zone for what names none; the machine's when None.
        prefer_future: read "friday" and "may 8" as the next ones instead of the latest.

    Raises:
        BadTime: nothing here reads it, or it could mean several days ("03/04/2023").
    """
    word = " ".join(text[: _WHEN_CHARS + 1].split())
    if len(word) > _WHEN_CHARS:
        raise BadTime(f"cannot read time {quoted(text)}: it is too long")
    try:
        return instant.parse(word, now=now, local_offset=tz)
    except BadTime:
        # What has no words is a mistake in an absolute form, not a case for guessing.
        if re.fullmatch(_SLASHED, word):
            raise BadTime(
                f"cannot read time {quoted(text)}: the order of day and month is not clear",
                hint="write the year first, as in 2026-03-01",
            ) from None
        if not re.search(_WORDED, word) and not re.fullmatch(_CLOCK, word):
            raise
    if re.fullmatch(_CLOCK, word, re.IGNORECASE):
        word = "today " + word
    reader = Reader(word, now, tz, future=prefer_future)
    away = reader.distance()
    if away is not None:
        at, local = away
        found: Instant | None = Instant(at, at + MICROS, "second", zoned=not local)
    elif days := reader.whole():
        found = Instant(*days.instants(tz), days.grain)
    else:
        found = _by_library(word, now, tz, future=prefer_future)
    if found is None:
        raise BadTime(f"cannot read time {quoted(text)}")
    if not instant.START <= found.micros < instant.END:
        raise BadTime(f"cannot read time {quoted(text)}: it is outside the years 1 to 9999")
    return found


def periods(query: str, *, now: int, tz: Zone | None = None) -> list[Period]:
    """Find the time expressions of a text, in the order they stand.

    A number counts as a year only beside a month, a season or a preposition: "room 2023", "version
    2023.1" and "in 2048 tokens" name no time.

    Args:
        query: a question or statement.
        now: microseconds UTC that relative forms count from.
        tz: the zone of days and years; the machine's when None.
    """
    if not any(word in HINTS or year_of(word[:4]) for word in _WORD.findall(query.lower())):
        return []
    return [Period(*found) for found in Reader(query, now, tz).search()]


def occurrences(
    period: Period, first: int, last: int, *, tz: Zone | None = None
) -> list[tuple[int, int]]:
    """Return a period as intervals: a recurring one once for each year, any other as it is.

    Args:
        period: as found by `periods`.
        first: earliest instant of interest, microseconds UTC.
        last: latest instant of interest.
        tz: the zone that `periods` was given.
    """
    if not period.recurring:
        return [(period.start, period.end)]
    year, month, day = instant.date_of(instant.wall_clock(period.start, tz)[0])
    end_year, end_month, end_day = instant.date_of(instant.wall_clock(period.end, tz)[0])
    low, high = (instant.date_of(instant.wall_clock(at, tz)[0])[0] for at in (first, last))
    found = []
    for y in range(max(low - 1, 1), min(high, 9998) + 1):
        if day > instant.month_days(y, month):
            continue  # 29 February
        start = instant.at_wall_clock(day_number(y, month, day), 0, tz)
        end = day_number(y + end_year - year, end_month, end_day)
        end = instant.at_wall_clock(end, 0, tz)
        if start <= last and end > first:
            found.append((start, end))
    return found


def past_question(query: str) -> str | None:
    """Return the words that ask about an earlier state ("used to", "previously"), or None.

    Only the first `QUESTION_CHARS` characters are looked at.
    """
    query = query[:QUESTION_CHARS]
    if _PAST_HINTS.isdisjoint(_WORD.findall(query.lower())):
        return None
    match = re.search(_PAST, query, re.IGNORECASE | re.DOTALL)
    return next(filter(None, match.groups()), None) if match else None


def _by_library(word: str, now: int, tz: Zone | None, *, future: bool) -> Instant | None:
    """Read a time with dateparser, without the guesses that it is known to make."""
    words = set(_WORD.findall(word.lower()))
    named = bool(words & MONTHS.keys())
    clock = re.search(r"\b(\d{1,2}):(\d\d)(?::(\d\d))?", word)
    if clock and (int(clock[1]) > 23 or int(clock[2]) > 59 or int(clock[3] or 0) > 59):
        return None  # "today 25:00" would be all of today
    if re.search(_SLASHED, word):
        return None
    if not (named or clock or words & _LIBRARY_HINTS):
        return None  # "5" would be the month of May
    # Imported here: 55 ms, and 80 more for the first text.
    from datetime import datetime, timedelta

    from dateparser.date import DateDataParser  # type: ignore[import-untyped]

    day, shown = instant.wall_clock(now, tz)
    start, tick = datetime(1970, 1, 1), timedelta(microseconds=1)
    base = start + timedelta(days=day, microseconds=shown)
    settings = {
        "RELATIVE_BASE": base,
        "PREFER_DATES_FROM": "future" if future else "past",
        "TIMEZONE": "UTC",  # what names no zone comes back without one, whatever the machine's
        "RETURN_TIME_AS_PERIOD": True,
        "REQUIRE_PARTS": ["day"] if named else [],  # else "may 2023 14:00" is some day in May
    }
    try:
        data = DateDataParser(languages=["en"], settings=settings).get_date_data(word)
    except (OverflowError, ValueError):  # beyond the library's years
        return None
    read: datetime | None = data.date_obj
    if read is None:
        return None
    east, read = read.utcoffset(), read.replace(tzinfo=None)
    if "ago" in words or word.lower().startswith("in "):
        if data.period == "time":  # elapsed time, whatever the clocks do in between
            at = now + (read - base) // tick
        else:
            at = instant.at_wall_clock(*divmod((read - start) // tick, _DAY_US), tz)
        return Instant(at, at + MICROS, "second")
    day, shown = divmod((read - start) // tick, _DAY_US)
    if data.period not in ("time", "part_of_day"):
        days = Days(*unit_days(day, data.period, 0))
        grain = data.period if data.period in instant.GRAINS else "day"
        return Instant(*days.instants(tz), grain)
    if shown % MICROS:
        grain = "micro"
    elif clock:
        grain = "second" if clock[3] else "minute"
    else:
        grain = "hour"
    if east is None:
        at = instant.at_wall_clock(day, shown, tz)
        return Instant(at, at + instant.SPAN_US[grain], grain)
    at = day * _DAY_US + shown - east // tick
    # The library gives some of its results in UTC; a number that was written is kept for display.
    written = re.search(r"([+-])(\d\d):?(\d\d)$", word)
    minutes = int(written[2]) * 60 + int(written[3]) if written else east // timedelta(minutes=1)
    offset = -minutes if written and written[1] == "-" else minutes
    return Instant(at, at + instant.SPAN_US[grain], grain, offset=offset, zoned=True)
