"""The vocabulary of time words, the calendar units they name, and the words of a text.

How they are put together stands in `remem.index.timegrammar`.
"""

from __future__ import annotations

import re

from remem.objects.instant import (
    at_wall_clock,
    clamp,
    date_of,
    day_number,
    month_days,
    wall_clock,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from remem.objects.instant import Zone

MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug"
        "|september sept sep|october oct|november nov|december dec".split("|"),
        1,
    )
    for name in names.split()
}
WEEKDAYS = {
    name: number
    for number, name in enumerate(
        "monday tuesday wednesday thursday friday saturday sunday".split()
    )
}
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # first month
UNITS = {
    word: unit
    for unit, words in {
        "second": "second seconds",
        "minute": "minute minutes min mins",
        "hour": "hour hours hr hrs",
        "day": "day days night nights",
        "weekend": "weekend weekends",
        "week": "week weeks",
        "month": "month months",
        "quarter": "quarter quarters",
        "year": "year years yr yrs",
        "decade": "decade decades",
    }.items()
    for word in words.split()
}
NEAR_DAYS = {"yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1}
UNIT_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
UNIT_SECONDS = {"second": 1, "minute": 60, "hour": 3_600}
FARTHEST_MONTHS = 12 * 1_900  # a distance beyond this would leave the years 1 to 9999

DAY_PARTS = {"morning": (6, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
NUMBERS = {
    word: number
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve".split(), 1
    )
} | {"a": 1, "an": 1, "couple": 2}
VAGUE = {"few": (2, 5), "several": (3, 8)}
NTH = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1}
SHIFTS = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1, "coming": 1, "upcoming": 1}
THIRDS = dict(early=0, beginning=0, start=0, mid=1, middle=1, late=2, end=2)

# Which bare words a preposition turns into a time: y year, m month, s season, w weekday, weekend.
INSIDE = {
    **{"in": "yms", "on": "w", "during": "ymsw", "throughout": "yms", "around": "yms"},
    **{"over": "sw", "for": "sw", "at": "w", "from": "ymw", "within": ""},
}
OPEN = dict(since="ymsw", after="ymsw", before="ymsw", until="ymsw", till="ymsw", by="yw")
ANY = "ymsw"
DEEPEST = 4  # "the day before the end of the first week of May"

# A number before one of these counts things, whatever it looks like.
COUNTED = frozenset(
    "tokens bytes bits rows lines files words characters chars items records entries steps pieces"
    " times people users members guests requests queries calls points pages commits messages turns"
    " dollars euros pounds yen miles km kilometers kilometres meters metres feet inches px pixels"
    " ms seconds minutes hours days weeks months years kb mb gb kg grams calories percent reps"
    " samples epochs iterations connections threads cores ports degrees".split()
)
# "multiplied by 2048" is no deadline, "in spring boot" no season, "in may be" no month.
SCALED = frozenset("multiplied divided increased decreased reduced grew scaled padded".split())
NO_SEASON = frozenset("boot framework mvc cloud security data batch cleaning water roll".split())
AFTER_MAY = frozenset("be have not also need still only never contain cause want or".split())

HINTS = frozenset({*MONTHS, *WEEKDAYS, *SEASONS, *UNITS, *NEAR_DAYS, *DAY_PARTS, "q"})
LEADS = frozenset(
    {*HINTS, *NUMBERS, *VAGUE, *NTH, *SHIFTS, *THIRDS, *INSIDE, *OPEN}
    | {"the", "between", "as", "prior", "up", "q1", "q2", "q3", "q4"}
)
DASHES = ("-", "–")  # noqa: RUF001
THROUGH = ("to", "through", *DASHES)
_LUMP = re.compile(r"[^\s,;!?()\[\]{}\"“”–—…<>|]+|\S")  # noqa: RUF001
_EDGE = ".:'’‘`*_"  # noqa: RUF001


class Days:
    """Whole days [lo, hi) of the calendar, or microseconds where `micros` is given.

    Attributes:
        lo: first day number.
        hi: the day number after the last.
        grain: finest unit named: day, month or year; hour or finer when `micros` is given.
        relative: it depends on now.
        yearless: no year was named; lo and hi are the latest (or next) such days.
        micros: start and end of something shorter than a day or with a zone of its own.
    """

    __slots__ = ("grain", "hi", "lo", "micros", "relative", "yearless")

    def __init__(
        self,
        lo: int,
        hi: int,
        grain: str = "day",
        *,
        relative: bool = False,
        yearless: bool = False,
        micros: tuple[int, int] | None = None,
    ) -> None:
        """Keep the fields as they are."""
        self.lo = lo
        self.hi = hi
        self.grain = grain
        self.relative = relative or yearless
        self.yearless = yearless
        self.micros = micros

    def instants(self, tz: Zone | None) -> tuple[int, int]:
        """Return start and end, microseconds UTC, in a zone."""
        lo, hi = self.micros or (
            at_wall_clock(self.lo, 0, tz),
            at_wall_clock(self.hi, 0, tz),
        )
        return clamp(lo), clamp(hi)


def year_of(word: str) -> int:
    """Return the year that a word may be, or 0."""
    if len(word) == 4 and word.isascii() and word.isdigit() and 1900 <= int(word) <= 2100:
        return int(word)
    return 0


def shift_months(day: int, months: int) -> int:
    """Return the day so many months later, the month's last day where it has fewer days."""
    year, month, of_month = date_of(day)
    year, month = divmod(year * 12 + month - 1 + months, 12)
    return day_number(year, month + 1, min(of_month, month_days(year, month + 1)))


def unit_days(day: int, unit: str, count: int) -> tuple[int, int]:
    """Return the calendar unit that holds a day, or the one `count` units later, as days."""
    if unit in UNIT_MONTHS:
        size = UNIT_MONTHS[unit]
        year, month, _ = date_of(day)
        first = year * 12 + (month - 1) // size * size if size < 12 else year // (size // 12) * size
        lo = shift_months(day_number(1970, 1, 1), first + count * size - 1970 * 12)
        return lo, shift_months(lo, size)
    if unit == "day":
        return day + count, day + count + 1
    monday = day - weekday(day) + 7 * count
    return (monday, monday + 7) if unit == "week" else (monday + 5, monday + 7)


def weekday(day: int) -> int:
    """Return the weekday of a day number, Monday 0."""
    return (day + 3) % 7


class Words:
    """The words of one text, and the moment and the zone in which they are read."""

    __slots__ = ("_depth", "_ends", "_future", "_now", "_starts", "_today", "_tz", "_words")

    def __init__(self, text: str, now: int, tz: Zone | None, *, future: bool = False) -> None:
        """Split the text; `future` reads what names no year as the next one."""
        self._now = now
        self._tz = tz
        self._future = future
        self._today = wall_clock(now, tz)[0]
        self._depth = 0
        self._words: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        for match in _LUMP.finditer(text):
            self._split(match.group(), match.start())

    def _split(self, lump: str, at: int) -> None:
        """Add the words of a run without blanks: itself, its hyphenated parts, or punctuation."""
        core = lump.strip(_EDGE)
        if not core:
            self._add(lump, at)
            return
        start = at + lump.index(core)
        end = start + len(core)
        if core[-2:].lower() in ("'s", "’s"):  # noqa: RUF001
            core = core[:-2]
        dated = core[:4].isdigit() and core[4:5] == "-" and core[7:8] in ("", "-")
        parts = core.split("-")
        if dated or not all(part.isalnum() for part in parts):
            self._add(core, start)
        else:
            for n, part in enumerate(parts):
                if n:
                    self._add("-", start - 1)
                self._add(part, start)
                start += len(part) + 1
        if at + len(lump) > end:
            self._add(lump[-1], end)

    def _add(self, word: str, start: int) -> None:
        self._words.append(word.lower())
        self._starts.append(start)
        self._ends.append(start + len(word))

    def _word(self, i: int) -> str:
        return self._words[i] if 0 <= i < len(self._words) else ""

    def _the(self, i: int) -> int:
        return i + (self._word(i) == "the")

    def _count(self, i: int) -> tuple[tuple[int, int], int] | None:
        """Read "3", "three", "a", "a couple of", "a few", "several"."""
        word = self._word(i)
        if word in ("a", "the") and self._word(i + 1) in ("couple", "few"):
            i += 1
            word = self._word(i)
        if word in VAGUE:
            return VAGUE[word], i + 1
        if word == "couple":
            return (2, 2), i + 1 + (self._word(i + 1) == "of")
        if word.isascii() and word.isdigit() and len(word) <= 4:
            return (int(word), int(word)), i + 1
        count = NUMBERS.get(word, 0)
        return ((count, count), i + 1) if count else None
