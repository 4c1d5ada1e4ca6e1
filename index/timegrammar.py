"""The grammar of time words: prepositions, ranges, and the reading of whole texts.

How words are read (all in the zone of the machine unless another is given):

- A named day, week, month, season, quarter or year is the whole of it: "last week" is the calendar
  week before this one (Monday to Sunday), "yesterday" runs from midnight to midnight.
- "last march" is the latest March that is not the present month; "march" and "may 8" are the
  latest that have begun; "monday" is the latest Monday, today included, "last monday" not.
- "the last week" and "the past 3 days" roll: they end with today.
- "3 days ago" and "3 months before June 2023" are the unit lying that far away: the day, the
  month, the year, and for weeks the seven days around that day.  "A few" is 2 to 5, "several" 3
  to 8.  "The week before D" without a number is the stretch that ends where D begins.
- Seasons are those of meteorology on the northern half: winter 2022 ends in February 2023.
- "early", "mid" and "late" are thirds.
- "before D" ends where D begins, "after D" begins where D ends, "since D" includes D, "until D"
  and "by D" end with it.
- A number is a year only from 1900 to 2100 and only beside a month, a season or a preposition.
"""

from __future__ import annotations

from remem.index.timedates import Dates
from remem.index.timelex import (
    ANY,
    COUNTED,
    DASHES,
    FARTHEST_MONTHS,
    INSIDE,
    LEADS,
    MONTHS,
    OPEN,
    SCALED,
    THROUGH,
    UNIT_MONTHS,
    UNIT_SECONDS,
    UNITS,
    Days,
    shift_months,
    year_of,
)
from remem.objects.instant import (
    END,
    MICROS,
    START,
    at_wall_clock,
    date_of,
    day_number,
    month_days,
    wall_clock,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from remem.index.timedates import Found


class Reader(Dates):
    """The words of one text, and what they mean at one moment in one zone."""

    __slots__ = ()

    def search(self) -> list[tuple[int, int, tuple[int, int], str, bool]]:
        """Return start, end, character span, kind and recurrence of each expression, in order."""
        found = []
        i = 0
        while i < len(self._words):
            word = self._words[i]
            hit = self._expression(i) if word in LEADS or word[0].isdigit() else None
            if hit is None:
                i += 1
                continue
            days, kind, j = hit
            start, end = days.instants(self._tz)
            span = (self._starts[i], self._ends[j - 1])
            found.append((start, end, span, kind, days.yearless and kind != "open"))
            i = j
        return found

    def whole(self) -> Days | None:
        """Read all the words as one period, or nothing."""
        hit = self._date(int(self._word(0) in INSIDE), ANY)
        return hit[0] if hit and not "".join(self._words[hit[1] :]).strip(".") else None

    def distance(self) -> tuple[int, bool] | None:
        """Read all the words as a distance from now: "1 day 2 hours ago", "in 2 weeks".

        Returns:
            The instant, and whether it depends on the zone's calendar.
        """
        ahead = self._word(0) == "in"
        i = int(ahead)
        months = days = seconds = read = 0
        if self._words[i : i + 3] == ["half", "an", "hour"]:
            i, seconds, read = i + 3, 1_800, 1
        while (counted := self._count(i)) and (unit := UNITS.get(self._word(counted[1]))):
            (count, most), i = counted
            if count != most or unit == "weekend":
                return None
            months += count * UNIT_MONTHS.get(unit, 0)
            days += count * {"day": 1, "week": 7}.get(unit, 0)
            seconds += count * UNIT_SECONDS.get(unit, 0)
            i, read = i + 1, read + 1
            while self._word(i) in (",", "and"):
                i += 1
        if not read or months > FARTHEST_MONTHS:
            return None
        tail = self._words[i:]
        if not ahead:
            if tail not in (["ago"], ["back"], ["earlier"], ["from", "now"], ["later"], ["hence"]):
                return None
        elif tail:
            return None
        sign = 1 if ahead or tail[0] in ("from", "later", "hence") else -1
        day, clock = wall_clock(self._now, self._tz)
        if months or days:
            day = shift_months(day, sign * months) + sign * days
            return at_wall_clock(day, clock, self._tz) + sign * seconds * MICROS, True
        return self._now + sign * seconds * MICROS, False

    def _expression(self, i: int) -> tuple[Days, str, int] | None:
        word = self._word(i)
        if word in ("between", "from"):
            return self._range(i, "and" if word == "between" else "to")
        two = word + " " + self._word(i + 1)
        if two in ("prior to", "up to", "as of"):
            hit = self._date(i + 2, "ymw")
            if two == "as of":
                return self._closed(hit)
            return self._opened(hit, "before" if two == "prior to" else "until", i + 2)
        if word in OPEN:
            if word == "by" and self._word(i - 1) in SCALED:
                return None
            return self._opened(self._date(i + 1, OPEN[word]), word, i + 1)
        short = self._short_range(i + (word == "on"), DASHES)
        if short:
            return short
        months = word in MONTHS and self._word(i + 1) in DASHES and self._word(i + 2) in MONTHS
        hit = self._date(i, "m" if months else "")
        if hit is None and word in INSIDE:
            hit = self._date(i + 1, INSIDE[word], rolling=True)
        if hit and self._word(hit[1]) in THROUGH:
            return self._joined(hit, hit[1] + 1) or self._closed(hit)
        return self._closed(hit)

    def _closed(self, hit: Found) -> tuple[Days, str, int] | None:
        return (hit[0], "relative" if hit[0].relative else "absolute", hit[1]) if hit else None

    def _opened(self, hit: Found, word: str, i: int) -> tuple[Days, str, int] | None:
        if hit is None:
            return None
        days, j = hit
        start, end = days.instants(self._tz)
        edge = self._word(self._the(i))
        if word == "since" or (word == "after" and edge in ("start", "beginning")):
            cut = (start, END)
        elif word == "after":
            cut = (end, END)
        else:
            cut = (START, start if word == "before" and edge != "end" else end)
        return Days(days.lo, days.hi, days.grain, micros=cut), "open", j

    def _range(self, i: int, middle: str) -> tuple[Days, str, int] | None:
        """Read "between A and B", "from A to B", "from 3 to 5 May 2023", or "from A" alone."""
        joins = ("and", *DASHES) if middle == "and" else ("to", "until", "till", *THROUGH)
        short = self._short_range(self._the(i + 1), joins)
        hit = self._date(i + 1, ANY)
        if short or hit is None:
            return short
        if self._word(hit[1]) in joins:
            return self._joined(hit, hit[1] + 1)
        return self._closed(self._date(i + 1, INSIDE["from"])) if middle == "to" else None

    def _short_range(self, i: int, joins: tuple[str, ...]) -> tuple[Days, str, int] | None:
        """Read "3 to 5 May 2023", where the month stands with the second day only."""
        day = self._ordinal(i)
        last = self._date(i + 2, "") if day and self._word(i + 1) in joins else None
        if last is None or last[0].hi - last[0].lo != 1:
            return None
        year, month, _ = date_of(last[0].lo)
        if day > month_days(year, month):
            return None
        lo = day_number(year, month, day)
        return self._spanned(Days(lo, lo + 1, yearless=last[0].yearless), last)

    def _joined(self, first: tuple[Days, int], i: int) -> tuple[Days, str, int] | None:
        """Read the second half of a range: a date, or the day number of the first's month."""
        last = self._date(i, ANY)
        j = self._the(i) + 1
        if last is None and (day := self._ordinal(j - 1)) and self._word(j) not in COUNTED:
            year, month, _ = date_of(first[0].lo)
            comma = self._word(j) == ","
            named = year_of(self._word(j + comma))
            dated = first[0].yearless or not first[0].relative
            if dated and first[0].grain == "day" and day <= month_days(year, month):
                hi = day_number(named or year, month, day) + 1
                yearless = first[0].yearless and not named
                last = Days(hi - 1, hi, yearless=yearless), j + comma + 1 if named else j
        return self._spanned(first[0], last) if last else None

    def _spanned(self, first: Days, last: tuple[Days, int]) -> tuple[Days, str, int]:
        """Join two dates; one without a year takes it from the other."""
        second, j = last
        lo, hi = first.lo, second.hi
        if first.yearless and not second.yearless:
            lo = shift_months(lo, 12 * (date_of(second.lo)[0] - date_of(lo)[0]))
        elif second.yearless and not first.yearless:
            hi = shift_months(hi, 12 * (date_of(lo)[0] - date_of(second.lo)[0]))
            hi = hi if hi > lo else shift_months(hi, 12)
        if lo >= hi and first.yearless:  # November to February
            lo = shift_months(lo, -12)
        elif lo >= hi and first.relative:  # Monday to Friday
            lo -= 7
        if lo >= hi:  # the wrong way round
            lo, hi = second.lo, lo + first.hi - first.lo
        yearless = first.yearless and second.yearless
        relative = (second if first.yearless else first).relative
        micros = None
        if (first.micros or second.micros) and first.lo <= second.lo:
            micros = (first.instants(self._tz)[0], second.instants(self._tz)[1])
        days = Days(lo, hi, second.grain, relative=relative, yearless=yearless, micros=micros)
        return days, "relative" if days.relative else "absolute", j
