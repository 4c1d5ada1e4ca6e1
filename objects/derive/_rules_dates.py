"""Dates with a year in a statement: "since 2019", "from 2010 to 2015", "In March 2022, ..."."""

from __future__ import annotations

from remem.objects.derive._rules_form import Form
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
_ADJUNCT = Form(
    rf",? (?P<how>since|in|from|on|until|till|as of|back in) (?P<date>{DATE})"
    rf"(?: (?:to|until|till|through) (?P<to>{DATE})|(?P<open> (?:to|until|till) (?:now|today)))?"
)
_LEAD = Form(rf"(?:^|[ ,;(])(?P<how>(?i:since|in|as of|on)) (?P<date>{DATE}),? $")
_NUMBER = Form(r"\d+")
_NAMED = Form(r"[A-Za-z]{3,}")
_SHORT = [month[:3] for month in MONTHS]


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
    numbers = _NUMBER.findall(written)
    year = next((int(number) for number in numbers if len(number) == 4), 0)
    rest = [int(number) for number in numbers if len(number) < 4]
    if named := _NAMED.search(written):
        rest.insert(0, 1 + _SHORT.index(named[0][:3].lower()))
    month, day = (*rest, 0, 0)[:2]
    if not year or month > 12 or (rest and not month):
        return None
    if not month:
        first, last = day_number(year, 1, 1), day_number(year + 1, 1, 1)
    elif len(rest) == 1:
        first = day_number(year, month, 1)
        last = first + month_days(year, month)
    elif 1 <= day <= month_days(year, month):
        first = day_number(year, month, day)
        last = first + 1
    else:
        return None
    return first * DAY_US, last * DAY_US
