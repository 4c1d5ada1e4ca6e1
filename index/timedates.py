"""Dates and periods as people write them, without the preposition before them.

The rules of reading stand in `remem.index.timegrammar`.
"""

from __future__ import annotations

from remem.index.timelex import (
    AFTER_MAY,
    ANY,
    COUNTED,
    DASHES,
    DAY_PARTS,
    DEEPEST,
    FARTHEST_MONTHS,
    MONTHS,
    NEAR_DAYS,
    NO_SEASON,
    NTH,
    SEASONS,
    SHIFTS,
    THIRDS,
    UNIT_MONTHS,
    UNIT_SECONDS,
    UNITS,
    WEEKDAYS,
    Days,
    Words,
    shift_months,
    unit_days,
    weekday,
    year_of,
)
from remem.objects.errors import BadTime
from remem.objects.instant import (
    MICROS,
    at_wall_clock,
    date_of,
    day_number,
    month_days,
    parse,
    wall_clock,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Found: TypeAlias = "tuple[Days, int] | None"
    """What was read, and the index of the word after it."""


class Dates(Words):
    """Reads one date or period at a given word."""

    __slots__ = ()

    def _date(self, i: int, weak: str, *, rolling: bool = False) -> Found:
        """Read what begins at a word; `weak` lists the bare words that may stand for a date."""
        if self._depth == DEEPEST:
            return None
        self._depth += 1
        j = self._the(i)
        hit = (
            self._iso(i)
            or self._near(i)
            or self._anchored(j)
            or self._nth(j)
            or self._shifted(j, rolling=rolling)
            or self._ago(i)
            or self._part(j)
            or self._calendar(j, weak)
            or self._season(j, weak)
            or self._year(j, weak)
            or self._weekday(j, weak)
        )
        self._depth -= 1
        return hit

    def _iso(self, i: int) -> Found:
        """Read 2023-05, 2023-05-07 or a full RFC 3339 time."""
        word = self._word(i)
        if word[4:5] != "-" or not year_of(word[:4]):
            return None
        try:
            found = parse(word, now=self._now, local_offset=self._tz)
        except BadTime:
            return None
        lo = wall_clock(found.micros, self._tz)[0]
        if found.grain not in ("month", "day"):
            return Days(lo, lo + 1, found.grain, micros=(found.micros, found.end)), i + 1
        return Days(lo, wall_clock(found.end, self._tz)[0], found.grain), i + 1

    def _near(self, i: int) -> Found:
        """Read yesterday, today, tomorrow, tonight, and a part of that day."""
        word = self._word(i)
        if word not in NEAR_DAYS:
            return None
        day = self._today + NEAR_DAYS[word]
        if word == "tonight":
            return self._hours(day, "evening"), i + 1
        return self._with_part(day, i + 1)

    def _with_part(self, day: int, j: int) -> Found:
        """Return a relative day, or the part of it that is named next."""
        if self._word(j) in DAY_PARTS:
            return self._hours(day, self._word(j)), j + 1
        return Days(day, day + 1, relative=True), j

    def _hours(self, day: int, part: str) -> Days:
        start, end = (
            at_wall_clock(day + hour // 24, hour % 24 * 3_600 * MICROS, self._tz)
            for hour in DAY_PARTS[part]
        )
        return Days(day, day + 1, "hour", relative=True, micros=(start, end))

    def _anchored(self, i: int) -> Found:
        """Read "week of D", "week before D", "two weeks after D", "Sunday before D"."""
        if self._word(i) == "last" and self._word(i + 2) in ("before", "after"):
            i += 1
        counted = self._count(i)
        j = counted[1] if counted else i
        word = self._word(j)
        unit = UNITS.get(word, "")
        if not unit and (counted or word not in WEEKDAYS):
            return None
        if not counted and (word[-1] == "s" or unit in UNIT_SECONDS):
            return None
        k = j + 1
        if self._word(k) == "of" and unit in ("week", "weekend") and not counted:
            hit = self._date(k + 1, "")
            if hit and hit[0].hi - hit[0].lo == 1:
                lo, hi = unit_days(hit[0].lo, unit, 0)
                return self._like(hit[0], lo, hi), hit[1]
            return None
        if self._word(k) == "prior" and self._word(k + 1) == "to":
            k += 1
            sign = -1
        elif self._word(k) in ("before", "after"):
            sign = -1 if self._word(k) == "before" else 1
        else:
            return None
        hit = self._date(k + 1, ANY)
        if hit is None:
            if self._word(k + 1) == ("last" if sign < 0 else "next") and unit and not counted:
                lo, hi = unit_days(self._today, unit, 2 * sign)
                return Days(lo, hi, relative=True), k + 2
            return None
        base = hit[0].lo if sign < 0 or counted else hit[0].hi
        if counted:
            least, most = counted[0]
            lo, hi = self._away(base, unit, sign * least, sign * most)
        elif unit == "weekend" or not unit:
            first, length = (5, 2) if unit else (WEEKDAYS[word], 1)
            lo = base + (first - weekday(base)) % 7
            lo -= 7 * (sign < 0 and lo + length > base)
            hi = lo + length
        elif unit in UNIT_MONTHS:
            lo, hi = sorted((base, shift_months(base, sign * UNIT_MONTHS[unit])))
        else:
            lo, hi = sorted((base, base + sign * (7 if unit == "week" else 1)))
        return self._like(hit[0], lo, hi), hit[1]

    @staticmethod
    def _like(days: Days, lo: int, hi: int) -> Days:
        """Return other days that depend on now, or name no year, as the given ones do."""
        return Days(lo, hi, relative=days.relative, yearless=days.yearless)

    @staticmethod
    def _away(day: int, unit: str, near: int, far: int) -> tuple[int, int]:
        """Return the days that lie `near` to `far` units away (negative: earlier)."""
        first, last = sorted((near, far))
        if unit == "week":
            return day + 7 * first - 3, day + 7 * last + 4
        return unit_days(day, unit, first)[0], unit_days(day, unit, last)[1]

    def _nth(self, i: int) -> Found:
        """Read "second week of November", "first half of 2023", "last Friday of May 2023"."""
        n = NTH.get(self._word(i))
        what = self._word(i + 1)
        if n is None or self._word(i + 2) != "of":
            return None
        unit = "half" if what == "half" else UNITS.get(what, "")
        hit = self._date(i + 3, "yms") if unit or what in WEEKDAYS else None
        if hit is None:
            return None
        of = hit[0]
        lo = hi = of.lo
        if unit == "half":
            middle = (of.lo + of.hi) // 2
            lo, hi = (of.lo, middle) if n == 0 else (middle, of.hi)
        elif unit in UNIT_MONTHS:
            size = UNIT_MONTHS[unit]
            lo = shift_months(of.hi, -size) if n < 0 else shift_months(of.lo, n * size)
            hi = shift_months(lo, size)
        else:
            step, length = (1, 1) if unit == "day" else (7, {"week": 7, "weekend": 2}.get(unit, 1))
            if unit not in ("day", "week"):
                lo += ((5 if unit else WEEKDAYS[what]) - weekday(lo)) % 7
            lo += n * step if n >= 0 else (of.hi - length - lo) // step * step
            if unit == "week" and n < 0:
                lo = of.hi - 7
            hi = lo + length
        return (self._like(of, lo, hi), hit[1]) if of.lo <= lo < of.hi else None

    def _shifted(self, i: int, *, rolling: bool) -> Found:
        """Read last, this or next and a unit, month, season or weekday; "the past 3 weeks"."""
        word = self._word(i)
        if word not in SHIFTS:
            return None
        n = SHIFTS[word]
        named = self._word(i + 1)
        if word in ("last", "past", "next") and (counted := self._count(i + 1)):
            unit = UNITS.get(self._word(counted[1]))
            return (self._window(unit, n * counted[0][1]), counted[1] + 1) if unit else None
        unit = UNITS.get(named)
        if unit and named[-1] != "s":
            if named == "night" and word == "last":
                return self._hours(self._today - 1, "night"), i + 2
            if word == "past" or (word == "last" and self._word(i - 1) == "the"):
                if unit not in ("day", "second", "minute", "hour", "weekend") or rolling:
                    return self._window(unit, -1), i + 2
            if unit in UNIT_MONTHS or unit in ("week", "weekend"):
                lo, hi = unit_days(self._today, unit, n)
                grain = {"month": "month", "quarter": "month", "year": "year", "decade": "year"}
                return Days(lo, hi, grain.get(unit, "day"), relative=True), i + 2
            return None
        if n == 0 and named in DAY_PARTS:
            return self._hours(self._today, named), i + 2
        if named in WEEKDAYS:
            ahead = (WEEKDAYS[named] - weekday(self._today)) % 7
            day = self._today + (ahead or 7 if n > 0 else ahead - 7)
            if n == 0:
                day = self._today - weekday(self._today) + WEEKDAYS[named]
            return self._with_part(day, i + 2)
        after = self._word(i + 2)
        if named in MONTHS and (n or named not in ("may", "march", "mar") or not after.isalnum()):
            lo, hi = self._cycle(MONTHS[named], 1, n)
            return Days(lo, hi, "month", relative=True), i + 2
        if named in SEASONS and after not in NO_SEASON:
            lo, hi = self._cycle(SEASONS[named], 3, n)
            return Days(lo, hi, "month", relative=True), i + 2
        return None

    def _window(self, unit: str, count: int) -> Days:
        """Return the stretch of so many units that ends (or begins) with now."""
        lo = hi = self._today
        if unit in UNIT_SECONDS:
            at = self._now + count * UNIT_SECONDS[unit] * MICROS
            first, last = sorted((self._now, at))
            return Days(lo, hi + 1, "hour", relative=True, micros=(first, last))
        if unit in UNIT_MONTHS:
            lo = shift_months(lo, count * UNIT_MONTHS[unit])
        else:
            lo += count * (1 if unit == "day" else 7)
        lo, hi = sorted((lo, hi))
        return Days(lo, hi + 1, relative=True)

    def _cycle(self, month: int, size: int, n: int) -> tuple[int, int]:
        """Return a month or season: the latest over (-1), this year's (0), the next to come (1)."""
        year = date_of(self._today)[0]
        if n == 0:
            # In January this winter is the one that began in the year before.
            running = month == 12 and size > 1 and date_of(self._today)[1] < 3
            lo = day_number(year - running, month, 1)
            return lo, shift_months(lo, size)
        years = range(year, year - 3, -1) if n < 0 else range(year - 1, year + 3)
        for y in years:
            lo = day_number(y, month, 1)
            hi = shift_months(lo, size)
            if (hi <= self._today) if n < 0 else (lo > self._today):
                break
        return lo, hi

    def _ago(self, i: int) -> Found:
        """Read "3 days ago", "a few years back"."""
        counted = self._count(i)
        unit = UNITS.get(self._word(counted[1])) if counted else None
        if counted is None or unit is None or self._word(counted[1] + 1) not in ("ago", "back"):
            return None
        least, most = counted[0]
        if most * UNIT_MONTHS.get(unit, 0) > FARTHEST_MONTHS:
            return None
        j = counted[1] + 2
        if unit in UNIT_SECONDS:
            size = UNIT_SECONDS[unit] * MICROS
            ends = [self._now - n * size for n in (most, least)]
            first, last = (at - wall_clock(at, self._tz)[1] % size for at in ends)
            micros = (first, last + size)
            return Days(self._today, self._today + 1, "hour", relative=True, micros=micros), j
        lo, hi = self._away(self._today, unit, -least, -most)
        return Days(lo, hi, relative=True), j

    def _part(self, i: int) -> Found:
        """Read "mid-August 2023", "late 2022", "the end of last year"."""
        word = self._word(i)
        if word not in THIRDS:
            return None
        j = i + 1
        if word in ("early", "mid", "late"):
            j += self._word(j) in ("-", "in")
        elif self._word(j) == "of":
            j += 1
        else:
            return None
        hit = self._date(j, "yms")
        if hit is None or hit[0].hi - hit[0].lo < 7:
            return None
        lo, size = hit[0].lo, hit[0].hi - hit[0].lo
        third = THIRDS[word]
        days = self._like(hit[0], lo + size * third // 3, lo + size * (third + 1) // 3)
        return days, hit[1]

    def _ordinal(self, i: int) -> int:
        """Return the day of the month that a word may be, or 0."""
        word = self._word(i)
        if word[-2:] in ("st", "nd", "rd", "th"):
            word = word[:-2]
        day = int(word) if len(word) <= 2 and word.isascii() and word.isdigit() else 0
        return day if day <= 31 else 0

    def _year_after(self, i: int, month: str) -> tuple[int, int]:
        """Read ". , of" and a year after a month or day; return (0, i) when there is none."""
        j = i + (self._word(i) == "." and len(month) <= 4)
        j += self._word(j) in (",", "of")
        year = year_of(self._word(j))
        return (year, j + 1) if year else (0, i)

    def _calendar(self, i: int, weak: str) -> Found:
        """Read a month and what stands with it: "8 May 2023", "May 8", "May 2023", "in May"."""
        if self._word(i) in WEEKDAYS:
            i += 1
            i += self._word(i) == ","
            weak = ""
        name = self._word(i)
        day = 0
        if name in MONTHS:
            j = i + 1
            k = j + (self._word(j) == "." and len(name) <= 4)
            if (day := self._ordinal(k)) and self._word(k + 1) not in COUNTED:
                j = k + 1
            else:
                day = 0
        elif day := self._ordinal(i):
            j = i + 1 + (self._word(i + 1) == "of")
            name = self._word(j)
            j += 1
        if name not in MONTHS:
            return None
        month = MONTHS[name]
        year, j = self._year_after(j, name)
        if not year and ((not day and "m" not in weak) or self._modal(name, j)):
            return None
        if not year:
            year = self._year_of(month, day or 1)
            return self._dated(year, month, day, j, yearless=True)
        return self._dated(year, month, day, j, yearless=False)

    def _modal(self, name: str, j: int) -> bool:
        """Say whether "may" is the verb."""
        return name == "may" and self._word(j) in AFTER_MAY

    def _dated(self, year: int, month: int, day: int, j: int, *, yearless: bool) -> Found:
        length = month_days(year, month)
        if day > length:
            return None
        lo = day_number(year, month, day or 1)
        hi = lo + (1 if day else length)
        return Days(lo, hi, "day" if day else "month", yearless=yearless), j

    def _year_of(self, month: int, day: int) -> int:
        """Return the year of the latest such day that has begun (or the next to come)."""
        year = date_of(self._today)[0]
        step = 1 if self._future else -1
        for y in range(year, year + 9 * step, step):
            if day <= month_days(y, month):
                lo = day_number(y, month, day)
                if lo >= self._today if self._future else lo <= self._today:
                    return y
        return year

    def _season(self, i: int, weak: str) -> Found:
        """Read "summer of 2022", "the summer"."""
        month = SEASONS.get(self._word(i), 0)
        if not month:
            return None
        year, j = self._year_after(i + 1, "")
        if not year and ("s" not in weak or self._word(j) in NO_SEASON or self._word(j) == "of"):
            return None
        lo = day_number(year or self._year_of(month, 1), month, 1)
        return Days(lo, shift_months(lo, 3), "month", yearless=not year), j

    def _year(self, i: int, weak: str) -> Found:
        """Read "Q3 2023", "the year 2023", "the 1990s", "in 2023"."""
        word = self._word(i)
        year = year_of(self._word(i + 1))
        if year and len(word) == 2 and word[0] == "q" and word[1] in "1234":
            lo = day_number(year, int(word[1]) * 3 - 2, 1)
            return Days(lo, shift_months(lo, 3), "month"), i + 2
        if word == "year" and year:
            return Days(day_number(year, 1, 1), day_number(year + 1, 1, 1), "year"), i + 2
        decade = year_of(word[:-1]) if word[-1:] == "s" else 0
        if decade and decade % 10 == 0:
            return Days(day_number(decade, 1, 1), day_number(decade + 10, 1, 1), "year"), i + 1
        year = year_of(word)
        follows = self._word(i + 1)
        if not year or "y" not in weak or follows in COUNTED:
            return None
        if follows in (*DASHES, "to") and self._word(i + 2).isdigit():
            if not year_of(self._word(i + 2)) or self._word(i + 3) in COUNTED:
                return None
        return Days(day_number(year, 1, 1), day_number(year + 1, 1, 1), "year"), i + 1

    def _weekday(self, i: int, weak: str) -> Found:
        """Read "on Monday", "Monday morning", a weekday at the end, "over the weekend"."""
        word = self._word(i)
        if word == "weekend" and "w" in weak and self._word(i - 1) == "the":
            lo, hi = unit_days(self._today, "weekend", 0)
            if not self._future and lo > self._today:
                lo, hi = lo - 7, hi - 7
            return Days(lo, hi, relative=True), i + 1
        if word not in WEEKDAYS or self._word(i - 1) in ("every", "each", "black", "cyber", "good"):
            return None
        after = self._word(i + 1)
        if "w" not in weak and after.isalnum() and after not in DAY_PARTS:
            return None
        back = (weekday(self._today) - WEEKDAYS[word]) % 7
        day = self._today - back + (7 if back and self._future else 0)
        return self._with_part(day, i + 1)
