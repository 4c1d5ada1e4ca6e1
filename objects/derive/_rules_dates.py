"""Dates with a year in a statement: "since 2019", "from 2010 to 2015", "In March 2022, ..."."""

from __future__ import annotations

import re

from remem.objects.derive._rules_sentence import Sentence
from remem.objects.derive._rules_words import MONTHS
from remem.objects.instant import day_number, month_days

DAY_US = 86_400_000_000  # microseconds

_MONTH = "|".join(f"{month[:3]}(?:{month[3:]})?" for month in MONTHS if month != "may") + "|may"
DATE = (
    r"(?:\d{4}-\d\d(?:-\d\d)?(?!\d)"
    rf"|(?i:{_MONTH})\.?(?: \d{{1,2}}(?:st|nd|rd|th)?)?,? (?:19|20)\d\d(?!\d)"
    rf"|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?i:{_MONTH})\.?,? (?:19|20)\d\d(?!\d)"
    r"|(?:19|20)\d\d(?![\d-]))"
)
_ADJUNCT = re.compile(
    rf",? (?P<how>since|in|from|on|until|till|as of|back in) (?P<date>{DATE})"
    rf"(?: (?:to|until|till|through) (?P<to>{DATE})|(?P<open> (?:to|until|till) (?:now|today)))?"
)
_LEAD = re.compile(rf"(?:^|[ ,;(])(?P<how>(?i:since|in|as of|on)) (?P<date>{DATE}),? $")
_DATE_PARTS = re.compile(r"\d+|[A-Za-z]+")


def adjunct(s: Sentence, at: int) -> tuple[int | None, int | None, int, str]:
    """Read "since 2019", "in March 2022", "from 2010 to 2015", "until 2015" after an object.

    Returns:
        First instant (microseconds UTC) or None, first instant after the last or None, where the
        words end, and the word they begin with ("" if there are none).
    """
    found = _ADJUNCT.match(s.said, at)
    if found is None:
        return None, None, at, ""
    bounds = date_bounds(found["date"])
    if bounds is None:
        return None, None, at, ""
    how = found["how"]
    if how in ("until", "till"):
        return None, bounds[1], found.end(), "until"
    last = date_bounds(found["to"]) if found["to"] else None
    if last is not None:
        return bounds[0], last[1], found.end(), "from"
    return bounds[0], None, found.end(), "since" if found["open"] else how


def lead_date(s: Sentence, at: int) -> tuple[int | None, int]:
    """Read "Since 2019" or "In March 2022," before a statement.

    Returns:
        First instant (microseconds UTC) or None, and where the words begin (at if there are none).
    """
    found = _LEAD.search(s.said, 0, at)
    bounds = date_bounds(found["date"]) if found else None
    return (bounds[0], found.start("how")) if found and bounds else (None, at)


def date_bounds(written: str) -> tuple[int, int] | None:
    """Read a year, month or day: its first instant and the first after it, microseconds UTC."""
    year = month = day = 0
    for part in _DATE_PARTS.findall(written):
        if part[0].isdigit():
            if len(part) == 4:
                year = int(part)
            elif (month and not day) or (not year and not month):
                day = int(part)
            else:
                month = int(part)
        elif len(part) > 2 and part.lower() not in ("of",):
            month = 1 + [m[:3] for m in MONTHS].index(part[:3].lower())
    if (
        not year
        or month > 12
        or (day and not month)
        or day > (month_days(year, month) if month else 0)
    ):
        return None
    if day:
        first = day_number(year, month, day)
        last = first + 1
    elif month:
        first = day_number(year, month, 1)
        last = first + month_days(year, month)
    else:
        first, last = day_number(year, 1, 1), day_number(year + 1, 1, 1)
    return first * DAY_US, last * DAY_US
