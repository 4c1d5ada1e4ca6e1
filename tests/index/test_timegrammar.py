"""The grammar of time words: periods named in questions and statements."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.index import timewords
from remem.index.timelex import COUNTED, LEADS
from remem.index.timewords import Period, occurrences, parse_when, periods
from remem.objects import instant
from remem.objects.instant import END, MICROS, START

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
DAY = 86_400 * MICROS


def flat(_seconds: int) -> int:
    return 0


def at(text: str) -> int:
    return instant.parse(text, now=0, local_offset=flat).micros


NOW = at("2026-03-18T10:30:15Z")  # a Wednesday


def found(text: str) -> list[Period]:
    return periods(text, now=NOW, tz=flat)


def days(text: str) -> tuple[str, str]:
    """Start and end of the only period of a text, as dates (or open)."""
    (period,) = found(text)
    assert period.start % DAY == 0
    assert period.end % DAY == 0
    return (
        "" if period.start == START else instant.rfc3339(period.start)[:10],
        "" if period.end == END else instant.rfc3339(period.end)[:10],
    )


@pytest.mark.parametrize(
    ("text", "start", "end", "kind"),
    [
        ("in 2023", "2023-01-01", "2024-01-01", "absolute"),
        ("from 2021 to 2023", "2021-01-01", "2024-01-01", "absolute"),
        ("in 2021-2023", "2021-01-01", "2024-01-01", "absolute"),
        ("between March and May 2022", "2022-03-01", "2022-06-01", "absolute"),
        ("from December to February 2023", "2022-12-01", "2023-03-01", "absolute"),
        ("from November 2023 to February", "2023-11-01", "2024-03-01", "absolute"),
        ("from 2023 to 2021", "2021-01-01", "2024-01-01", "absolute"),
        ("May–June 2023", "2023-05-01", "2023-07-01", "absolute"),  # noqa: RUF001
        ("from 3 to 5 May 2023", "2023-05-03", "2023-05-06", "absolute"),
        ("3-5 May 2023", "2023-05-03", "2023-05-06", "absolute"),
        ("from May 3 to 5, 2023", "2023-05-03", "2023-05-06", "absolute"),
        ("between 3 May and 5 June 2023", "2023-05-03", "2023-06-06", "absolute"),
        ("2023-05-01 to 2023-05-03", "2023-05-01", "2023-05-04", "absolute"),
        ("from Monday to Friday", "2026-03-09", "2026-03-14", "relative"),
        ("on 7 May 2023", "2023-05-07", "2023-05-08", "absolute"),
        ("on May 7th, 2023", "2023-05-07", "2023-05-08", "absolute"),
        ("on May 7,2023", "2023-05-07", "2023-05-08", "absolute"),
        ("Aug. 15, 2023", "2023-08-15", "2023-08-16", "absolute"),
        ("on 2023-05-07", "2023-05-07", "2023-05-08", "absolute"),
        ("May 2023", "2023-05-01", "2023-06-01", "absolute"),
        ("in May, 2023", "2023-05-01", "2023-06-01", "absolute"),
        ("in the summer of 2022", "2022-06-01", "2022-09-01", "absolute"),
        ("in fall 2022", "2022-09-01", "2022-12-01", "absolute"),
        ("Q3 2023", "2023-07-01", "2023-10-01", "absolute"),
        ("the year 2023", "2023-01-01", "2024-01-01", "absolute"),
        ("in the 1990s", "1990-01-01", "2000-01-01", "absolute"),
        ("in mid-August 2023", "2023-08-11", "2023-08-21", "absolute"),
        ("early in 2023", "2023-01-01", "2023-05-02", "absolute"),
        ("the end of May 2023", "2023-05-21", "2023-06-01", "absolute"),
        ("in the second week of May 2023", "2023-05-08", "2023-05-15", "absolute"),
        ("the last week of May 2023", "2023-05-25", "2023-06-01", "absolute"),
        ("the last Friday of May 2023", "2023-05-26", "2023-05-27", "absolute"),
        ("the first weekend of May 2023", "2023-05-06", "2023-05-08", "absolute"),
        ("the last weekend of May 2023", "2023-05-27", "2023-05-29", "absolute"),
        ("the last day of May 2023", "2023-05-31", "2023-06-01", "absolute"),
        ("the first half of 2023", "2023-01-01", "2023-07-02", "absolute"),
        ("the third quarter of 2023", "2023-07-01", "2023-10-01", "absolute"),
        ("the week of 9 May 2023", "2023-05-08", "2023-05-15", "absolute"),
        ("the week before 9 June 2023", "2023-06-02", "2023-06-09", "absolute"),
        ("two weeks before 9 June 2023", "2023-05-23", "2023-05-30", "absolute"),
        ("two days after 9 June 2023", "2023-06-11", "2023-06-12", "absolute"),
        ("the day after 9 June 2023", "2023-06-10", "2023-06-11", "absolute"),
        ("a few days before 9 June 2023", "2023-06-04", "2023-06-08", "absolute"),
        ("last weekend before April 10, 2023", "2023-04-08", "2023-04-10", "absolute"),
        ("the sunday before 25 May 2023", "2023-05-21", "2023-05-22", "absolute"),
        ("the monday after 25 May 2023", "2023-05-29", "2023-05-30", "absolute"),
        ("the month before June 2023", "2023-05-01", "2023-06-01", "absolute"),
        ("two months after June 2023", "2023-08-01", "2023-09-01", "absolute"),
        ("as of 27 March, 2022", "2022-03-27", "2022-03-28", "absolute"),
        ("yesterday", "2026-03-17", "2026-03-18", "relative"),
        ("last week", "2026-03-09", "2026-03-16", "relative"),
        ("the week before last", "2026-03-02", "2026-03-09", "relative"),
        ("last march", "2025-03-01", "2025-04-01", "relative"),
        ("two weeks ago", "2026-03-01", "2026-03-08", "relative"),
        ("2 days ago", "2026-03-16", "2026-03-17", "relative"),
        ("two months ago", "2026-01-01", "2026-02-01", "relative"),
        ("4 years ago", "2022-01-01", "2023-01-01", "relative"),
        ("a few years back", "2021-01-01", "2025-01-01", "relative"),
        ("in the last year", "2025-03-18", "2026-03-19", "relative"),
        ("over the past 3 days", "2026-03-15", "2026-03-19", "relative"),
        ("end of last year", "2025-09-01", "2026-01-01", "relative"),
        ("on Monday", "2026-03-16", "2026-03-17", "relative"),
        ("over the weekend", "2026-03-14", "2026-03-16", "relative"),
        ("next summer", "2026-06-01", "2026-09-01", "relative"),
        ("this winter", "2026-12-01", "2027-03-01", "relative"),
        ("since June", "2025-06-01", "", "open"),
        ("since the summer of 2022", "2022-06-01", "", "open"),
        ("since yesterday", "2026-03-17", "", "open"),
        ("before 2020", "", "2020-01-01", "open"),
        ("before the end of 2023", "", "2024-01-01", "open"),
        ("prior to 3 May 2023", "", "2023-05-03", "open"),
        ("after 3 May 2023", "2023-05-04", "", "open"),
        ("until last week", "", "2026-03-16", "open"),
        ("by 7 November, 2022", "", "2022-11-08", "open"),
        ("by 2023", "", "2024-01-01", "open"),
    ],
)
def test_periods(text: str, start: str, end: str, kind: str) -> None:
    assert days(text) == (start, end)
    (period,) = found(text)
    assert period.kind == kind
    assert not period.recurring
    assert period.span == (0, len(text))
    # The same words inside a sentence, and shouted.
    sentence = f'What did Ann ("the cook") do {text}?'
    (inside,) = found(sentence)
    assert (inside.start, inside.end) == (period.start, period.end)
    assert sentence[slice(*inside.span)] == text
    assert (found(text.upper())[0].start, found(text.upper())[0].end) == (period.start, period.end)


@pytest.mark.parametrize(
    ("text", "control"),
    [
        ("which lamp is in room 2023", "which lamp broke in 2023"),
        ("is port 5432 open", "was it open in 1999"),
        ("it used 2048 tokens", "it was used in 2048"),
        ("in 2048 tokens", "in 2048"),
        ("what changed in version 2023.1", "what changed in 2023"),
        ("in 2023.1", "in 2023."),
        ("multiplied by 2048", "finished by 2048"),
        ("between 2000 and 3000 requests", "between 2000 and 2002"),
        ("from 2000 to 3000", "from 2000 to 2003"),
        ("for RFC 2045 in RFC 2045", "in 2045"),
        ("in 1,999 files", "in 1999"),
        ("see #2023 or v2023 or $2023 or 2023px", "see it in 2023"),
        ("CVE-2023-1234", "on 2023-12-03"),
        ("logs/2023-05-07.txt", "logs of 2023-05-07"),
        ("192.168.20.23", "since 2023"),
        ("may I use this, what may be wrong", "what was wrong in may"),
        ("this may work", "will it work this may?"),
        ("we march on in may be", "in march"),
        ("who is April", "what was in April"),
        ("march 10 miles", "march 10"),
        ("in spring boot", "in spring"),
        ("since the fall of Rome", "since the fall of 2022"),
        ("did he fall", "did he come last fall"),
        ("the last time, the next step, the previous commit", "last month"),
        ("one day it took a few days and 2 weeks", "one day ago"),
        ("a second opinion in a second", "a second ago"),
        ("every monday on monday.com on Black Friday?", "on monday"),
        ("June_data june.txt src/march/main.c", "in june, in march"),
        ("early return, late binding, end of file", "late 2023"),
        ("year after year, day to day", "the year before 2020"),
        ("the week, the weekend plans, the day after", "the week before last"),
        ("on 31 June 2023x", "on 30 June 2023"),
        ("in 1899 and in 2101", "in 1900"),
    ],
)
def test_numbers_and_words_that_are_no_times(text: str, control: str) -> None:
    assert found(text) == []
    assert found(control)


def test_several_expressions_with_their_places() -> None:
    text = "İ: was it last week, as said on November 6, 2023, or in 2022?"
    assert [text[slice(*p.span)] for p in found(text)] == [
        "last week",
        "on November 6, 2023",
        "in 2022",
    ]


def test_hours_and_zoned_times() -> None:
    (hour,) = found("what ran 3 hours ago")
    assert (hour.start, hour.end) == (at("2026-03-18 07:00"), at("2026-03-18 08:00"))
    (window,) = found("what ran in the last hour")
    assert (window.start, window.end) == (NOW - 3600 * MICROS, NOW)
    (stamp,) = found("logs of 2023-05-07T14:00:00+02:00")
    assert (stamp.start, stamp.end) == (at("2023-05-07 12:00"), at("2023-05-07 12:00:01"))
    (span,) = found("between 2023-05-07T14:00Z and 2023-05-07T16:00Z")
    assert (span.start, span.end) == (at("2023-05-07 14:00"), at("2023-05-07 16:01"))


def test_months_without_a_year_recur() -> None:
    (june,) = found("in June")
    assert (june.kind, june.recurring) == ("relative", True)
    assert days("in June") == ("2025-06-01", "2025-07-01")
    first, last = at("2021-06-15"), at("2023-06-01")
    assert occurrences(june, first, last, tz=flat) == [
        (at(f"{year}-06-01"), at(f"{year}-07-01")) for year in (2021, 2022, 2023)
    ]
    assert occurrences(june, at("2021-07-01"), at("2022-05-31"), tz=flat) == []
    (winter,) = found("during the winter")
    assert occurrences(winter, at("2022-01-10"), at("2022-02-01"), tz=flat) == [
        (at("2021-12-01"), at("2022-03-01"))
    ]
    (leap,) = found("on 29 February")
    assert occurrences(leap, at("2019"), at("2025"), tz=flat) == [
        (at(f"{year}-02-29"), at(f"{year}-03-01")) for year in (2020, 2024)
    ]
    (week,) = found("in the second week of November")
    assert week.recurring
    (plain,) = found("in June 2023")
    assert not plain.recurring
    assert occurrences(plain, first, last, tz=flat) == [(plain.start, plain.end)]


def test_a_year_is_lent_to_the_other_end() -> None:
    assert days("between August 11 and August 15 2023") == ("2023-08-11", "2023-08-16")
    (loose,) = found("between August 11 and August 15")
    assert loose.recurring
    assert loose.start == at("2025-08-11")


@given(st.dates(date(1900, 1, 1), date(2100, 12, 30)))
def test_every_way_to_write_a_date_is_the_same_day(day: date) -> None:
    start = at(day.isoformat())
    month, short = f"{day:%B}", f"{day:%b}"
    for text in (
        day.isoformat(),
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{short} {day.day} {day.year}",
        f"{short}. {day.day:02}, {day.year}",
        f"the {day.day}th of {month}, {day.year}",
        f"{day:%A}, {day.day} {month} {day.year}",
    ):
        (period,) = found(f"what was on {text}?")
        assert (period.start, period.end) == (start, start + DAY)
        read = parse_when(text, now=NOW, tz=flat)
        assert (read.micros, read.end) == (start, start + DAY)
    (before,) = found(f"before {day.isoformat()}")
    (after,) = found(f"after {day.isoformat()}")
    assert (before.end, after.start) == (start, start + DAY)


WORDS = sorted({*LEADS, *COUNTED, "to", "and", "of", "ago", "later", "2023", "8", "31", "31st"})


@given(
    st.lists(st.sampled_from([*WORDS, "2023-05-07", ",", "-", "–", ".", "1990s", "99"])),  # noqa: RUF001
    st.sampled_from([NOW, START, END - 1]),
)
def test_any_words_give_sound_periods_in_order(words: list[str], now: int) -> None:
    text = " ".join(words)
    place = 0
    for period in periods(text, now=now, tz=flat):
        assert START <= period.start <= period.end <= END
        assert place <= period.span[0] < period.span[1] <= len(text)
        place = period.span[1]
        assert occurrences(period, START, START + 1, tz=flat) is not None


@given(st.text(max_size=60))
def test_any_text_is_searched(text: str) -> None:
    for period in found(text + " in 2023"):
        assert period.end > period.start


def test_nested_words_do_not_recurse_for_ever() -> None:
    assert found("the day before " * 3000) == []
    assert found("early " * 3000) == []
    assert len(found("the day before yesterday " * 300)) == 300


def test_a_query_without_time_words_stops_at_the_first_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Touched(Exception):
        pass

    def touched(*_args: object) -> None:
        raise Touched

    monkeypatch.setattr(timewords, "Reader", touched)
    for text in ("what is the deploy host", "how do I list open ports on 5432?", ""):
        assert found(text) == []
    for text in ("what did I do in 2023", "last week", "in june"):
        with pytest.raises(Touched):
            found(text)


def test_dates_in_the_questions_of_a_published_set(shared_data: Path) -> None:
    """Full dates and months with a year, found by a second, plainer pattern, are all read."""
    samples = json.loads((shared_data / "locomo" / "locomo-dev.json").read_text())
    months = "|".join(f"{date(2000, m, 1):%B}" for m in range(1, 13))
    patterns = (
        (rf"(\d{{1,2}})(?:st|nd|rd|th)? ({months}),? ?(20\d\d)", "%d %B %Y"),
        (rf"({months}) (\d{{1,2}}),? ?(20\d\d)", "%B %d %Y"),
        (rf"({months}) (20\d\d)", "%B %Y"),
    )
    seen = dated = 0
    for question in (qa["question"] for sample in samples for qa in sample["qa"]):
        seen += 1
        for pattern, form in patterns:
            for match in re.finditer(pattern, question):
                known = datetime.strptime(" ".join(match.groups()), form).replace(tzinfo=UTC)
                start = (known - EPOCH) // TICK
                end = start + (DAY if "%d" in form else 28 * DAY)
                dated += 1
                covering = [p for p in found(question) if p.span[0] <= match.start() < p.span[1]]
                assert len(covering) == 1, question
                anchored = re.search(r"\b(before|by)\b", question[: match.start()])
                assert anchored or (covering[0].start < end and start < covering[0].end), question
    assert seen > 900
    assert dated > 100
