"""Time words: single times, periods in questions, questions about an earlier state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.index.timewords import parse_when, past_question, periods
from remem.objects import instant
from remem.objects.errors import BadTime
from remem.objects.instant import MICROS

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
DAY = 86_400 * MICROS


def at(text: str) -> int:
    return instant.parse(text, now=0, local_offset=flat).micros


def flat(_seconds: int) -> int:
    return 0


def zone(name: str) -> Callable[[int], int]:
    info = ZoneInfo(name)

    def offset(seconds: int) -> int:
        found = (EPOCH + timedelta(seconds=seconds)).astimezone(info).utcoffset()
        assert found is not None
        return int(found.total_seconds())

    return offset


NOW = at("2026-03-18T10:30:15Z")  # a Wednesday


def when(text: str) -> instant.Instant:
    return parse_when(text, now=NOW, tz=flat)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 days ago", "2026-03-16 10:30:15"),
        ("3 hours ago", "2026-03-18 07:30:15"),
        ("an hour ago", "2026-03-18 09:30:15"),
        ("half an hour ago", "2026-03-18 10:00:15"),
        ("a week ago", "2026-03-11 10:30:15"),
        ("two weeks ago", "2026-03-04 10:30:15"),
        ("a couple of months ago", "2026-01-18 10:30:15"),
        ("1 year, 2 months and 3 days ago", "2025-01-15 10:30:15"),
        ("in 2 weeks", "2026-04-01 10:30:15"),
        ("in an hour", "2026-03-18 11:30:15"),
        ("5 days from now", "2026-03-23 10:30:15"),
        ("90 min ago", "2026-03-18 09:00:15"),
        ("2d ago", "2026-03-16 10:30:15"),  # by the library, as is the next
        ("1.5 hours ago", "2026-03-18 09:00:15"),
    ],
)
def test_distances_are_instants(text: str, expected: str) -> None:
    assert when(text).micros == at(expected)
    assert when(text).end - when(text).micros == MICROS
    assert when(text.upper()) == when(f"  {text} ") == when(text)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("yesterday", "2026-03-17", "2026-03-18"),
        ("today", "2026-03-18", "2026-03-19"),
        ("Tomorrow", "2026-03-19", "2026-03-20"),
        ("the day before yesterday", "2026-03-16", "2026-03-17"),
        ("last week", "2026-03-09", "2026-03-16"),
        ("this weekend", "2026-03-21", "2026-03-23"),
        ("last month", "2026-02-01", "2026-03-01"),
        ("next month", "2026-04-01", "2026-05-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("last march", "2025-03-01", "2025-04-01"),
        ("last february", "2026-02-01", "2026-03-01"),
        ("march", "2026-03-01", "2026-04-01"),
        ("june", "2025-06-01", "2025-07-01"),
        ("monday", "2026-03-16", "2026-03-17"),
        ("wednesday", "2026-03-18", "2026-03-19"),
        ("thursday", "2026-03-12", "2026-03-13"),
        ("last wednesday", "2026-03-11", "2026-03-12"),
        ("last monday", "2026-03-16", "2026-03-17"),
        ("next friday", "2026-03-20", "2026-03-21"),
        ("next wednesday", "2026-03-25", "2026-03-26"),
        ("march 2023", "2023-03-01", "2023-04-01"),
        ("8 May 2023", "2023-05-08", "2023-05-09"),
        ("May 8, 2023", "2023-05-08", "2023-05-09"),
        ("the 8th of May, 2023", "2023-05-08", "2023-05-09"),
        ("Monday, 8 May 2023", "2023-05-08", "2023-05-09"),
        ("8-May-2023", "2023-05-08", "2023-05-09"),
        ("may 8", "2025-05-08", "2025-05-09"),
        ("Sept. 3", "2025-09-03", "2025-09-04"),
        ("29 february", "2024-02-29", "2024-03-01"),
        ("last summer", "2025-06-01", "2025-09-01"),
        ("winter 2022", "2022-12-01", "2023-03-01"),
        ("Q3 2023", "2023-07-01", "2023-10-01"),
        ("in 2023", "2023-01-01", "2024-01-01"),
        ("2023", "2023-01-01", "2024-01-01"),
        ("2023-05", "2023-05-01", "2023-06-01"),
        ("yesterday 14:00", "2026-03-17 14:00", "2026-03-17 14:01"),
        ("yesterday at 2pm", "2026-03-17 14:00", "2026-03-17 15:00"),
        ("yesterday morning", "2026-03-17 06:00", "2026-03-17 12:00"),
        ("last night", "2026-03-17 18:00", "2026-03-18 06:00"),
        ("1:56 pm on 8 May, 2023", "2023-05-08 13:56", "2023-05-08 13:57"),
        ("2023-05-08 1:56 pm", "2023-05-08 13:56", "2023-05-08 13:57"),
        ("last friday at noon", "2026-03-13 12:00", "2026-03-13 13:00"),
        ("noon", "2026-03-18 12:00", "2026-03-18 13:00"),
        ("14:00", "2026-03-18 14:00", "2026-03-18 14:01"),
        ("3 PM", "2026-03-18 15:00", "2026-03-18 16:00"),
    ],
)
def test_named_times_are_periods(text: str, start: str, end: str) -> None:
    assert (when(text).micros, when(text).end) == (at(start), at(end))
    assert when(text).offset is None
    assert not when(text).zoned


@pytest.mark.parametrize(
    ("text", "expected", "offset"),
    [
        ("8 May 2023 13:56 UTC", "2023-05-08T13:56:00Z", 0),
        ("8 May 2023 13:56 +02:00", "2023-05-08T11:56:00Z", 120),
        ("Mon May  8 13:56:00 2023 -0330", "2023-05-08T17:26:00Z", -210),
        ("Mon, 8 May 2023 13:56:00 GMT", "2023-05-08T13:56:00Z", 0),
        ("2023-05-08T13:56:00+09:00", "2023-05-08T04:56:00Z", 540),
    ],
)
def test_written_zones_win_over_the_machine(text: str, expected: str, offset: int) -> None:
    for where in (flat, zone("Pacific/Auckland"), zone("America/Los_Angeles")):
        read = parse_when(text, now=NOW, tz=where)
        assert (read.micros, read.offset, read.zoned) == (at(expected), offset, True)


def test_grain_is_the_finest_unit_named() -> None:
    for text, grain in [
        *(("last year", "year"), ("last march", "month"), ("yesterday", "day"), ("3 pm", "hour")),
        *(("yesterday 14:00", "minute"), ("yesterday 14:00:05", "second"), ("now", "micro")),
    ]:
        assert when(text).grain == grain


def test_the_next_one_is_read_where_the_future_is_meant() -> None:
    for text, past, future in [
        ("friday", "2026-03-13", "2026-03-20"),
        ("may 8", "2025-05-08", "2026-05-08"),
        ("in february", "2026-02-01", "2027-02-01"),
        ("8 may 14:00", "2025-05-08 14:00", "2026-05-08 14:00"),
        ("yesterday", "2026-03-17", "2026-03-17"),
    ]:
        assert when(text).micros == at(past)
        read = parse_when(text, now=NOW, tz=flat, prefer_future=True)
        assert read.micros == at(future)


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ("garbage", "yesterday"),
        ("room 5", "may 5"),
        ("5", "5 may"),
        ("a", "a day ago"),
        ("at 3", "at 3 pm"),
        ("2 days", "2 days ago"),
        ("12 12 12", "12 december 2012"),
        ("03/04/2023", "2023-04-03"),
        ("3.4.2023", "2023-04-03"),
        ("today 25:00", "today 23:00"),
        ("yesterday 24:00", "yesterday 23:59"),
        ("may 2023 14:00", "8 may 2023 14:00"),
        ("31 June 2023", "30 June 2023"),
        ("31 February 2023 14:00", "28 February 2023 14:00"),
        ("2023-02-30", "2023-02-28"),
        ("2023-05-08T24:00:00Z", "2023-05-08T23:00:00Z"),
        ("9999 years ago", "99 years ago"),
        ("999999 days ago", "999 days ago"),
        ("since june", "june"),
        ("before 2020", "in 2020"),
        ("1700000000", "@1700000000"),
        ("", "now"),
        ("yesterday " * 30, "yesterday"),
    ],
)
def test_what_is_not_a_time_is_refused(bad: str, good: str) -> None:
    assert when(good)
    with pytest.raises(BadTime) as caught:
        when(bad)
    assert caught.value.hint
    assert instant.quoted(bad) in str(caught.value)


def test_an_unclear_order_says_so() -> None:
    with pytest.raises(BadTime, match="order of day and month") as caught:
        when("03/04/2023")
    assert "year first" in caught.value.hint


def test_hours_are_elapsed_time_and_days_keep_the_clock() -> None:
    where = zone("America/Los_Angeles")
    now = at("2023-03-12T19:00:00Z")  # noon, ten hours after the clocks went forward
    assert parse_when("24 hours ago", now=now, tz=where).micros == now - DAY
    assert parse_when("1 day ago", now=now, tz=where).micros == now - DAY + 3600 * MICROS
    assert parse_when("1.5 hours ago", now=now, tz=where).micros == now - 5400 * MICROS
    assert parse_when("12.5 hours ago", now=now, tz=where).micros == now - 45_000 * MICROS
    assert parse_when("2d ago", now=now, tz=where) == parse_when("2 days ago", now=now, tz=where)
    gap = parse_when("today 2:30 am", now=now, tz=where)
    assert gap.micros == at("2023-03-12T10:30:00Z")
    assert parse_when("today", now=now, tz=where).end - gap.micros == 20.5 * 3600 * MICROS


@given(st.integers(1, 9999), st.sampled_from(["second", "minute", "hour", "day", "week"]))
def test_ago_and_from_now_mirror(count: int, unit: str) -> None:
    back = when(f"{count} {unit}s ago").micros
    ahead = when(f"in {count} {unit}s").micros
    size = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}[unit]
    assert NOW - back == ahead - NOW == count * size * MICROS
    assert when(f"{count} {unit}s from now").micros == ahead


def run(script: str, *args: str, tz: str = "UTC") -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *args],
        env={**os.environ, "TZ": tz},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_the_library_is_imported_for_odd_forms_only() -> None:
    script = (
        "import sys\n"
        "from remem.index.timewords import parse_when, past_question, periods\n"
        "for text in ('2 days ago', 'last march', '8 May 2023', 'yesterday', '2023-05-07'):\n"
        "    parse_when(text, now=0)\n"
        "periods('what did I do last week and in May 2023', now=0)\n"
        "past_question('where did I live before?')\n"
        "heavy = ('dateparser', 'regex', 'dateutil', 'numpy', 'zoneinfo')\n"
        "print([m for m in heavy if m in sys.modules])\n"
        "parse_when('yesterday 14:00', now=10**15)\n"
        "print('dateparser' in sys.modules)\n"
    )
    assert run(script).splitlines() == ["[]", "True"]


ZONED = [
    *("2031-03-09T01:30:00Z", "2031-05-03T00:00:00+02:00", "1969-07-20T20:17:40-05:00"),
    *("8 May 2023 13:56 +02:00", "Mon, 8 May 2023 13:56:00 GMT", "@1700000000", "3 hours ago"),
    *("90 min ago", "now"),
]
LOCAL = ["yesterday", "yesterday 14:00", "8 May 2023", "2 days ago", "last march", "2023-05-07"]


def test_three_machines_agree_on_zoned_times_and_read_others_in_their_zone() -> None:
    script = (
        "import json, sys\n"
        "from remem.index.timewords import parse_when, periods\n"
        "now, *texts = json.loads(sys.argv[1])\n"
        "print(json.dumps([parse_when(text, now=now).micros for text in texts]"
        " + [periods(text, now=now)[0].start for text in ('in May 2023', 'yesterday')]))\n"
    )
    rows = {}
    for name in ("UTC", "Pacific/Auckland", "America/Los_Angeles"):
        rows[name] = json.loads(run(script, json.dumps([NOW, *ZONED, *LOCAL]), tz=name))
        where = zone(name)
        assert rows[name] == [
            *(parse_when(text, now=NOW, tz=where).micros for text in [*ZONED, *LOCAL]),
            *(periods(text, now=NOW, tz=where)[0].start for text in ("in May 2023", "yesterday")),
        ]
        assert rows[name][: len(ZONED)] == rows["UTC"][: len(ZONED)]
    # At 10:30 UTC it is 23:30 in Auckland and 03:30 in Los Angeles, the same date everywhere.
    first = len(ZONED)
    hours = [(rows[name][first] - rows["UTC"][first]) // (3600 * MICROS) for name in rows]
    assert hours == [0, -13, 7]


PAST = [
    ("where did I live before?", "before"),
    ("what was my address before now", "before now"),
    ("where was the office before the move", "before the move"),
    ("what did we used to deploy to", "used to"),
    ("which editor I used to like", "used to"),
    ("where did I use to work", "use to"),
    ("what did I previously use", "previously"),
    ("Who was formerly the lead?", "formerly"),
    ("what was the host back then", "back then"),
    ("what was the port originally", "originally"),
    ("which flag is no longer valid", "no longer"),
    ("which flags don't I use anymore", "anymore"),
    ("my address in the past", "in the past"),
    ("what was the old deploy host", "the old"),
    ("what's our previous host", "our previous"),
    ("my former employer", "my former"),
    ("What was Ann's previous job?", "Ann's previous"),
]


@pytest.mark.parametrize(("query", "phrase"), PAST)
def test_questions_about_an_earlier_state(query: str, phrase: str) -> None:
    assert past_question(query) == phrase
    assert past_question(query.upper()) == phrase.upper()


@pytest.mark.parametrize(
    "query",
    [
        "where do I live",
        "what is the key used to sign releases",
        "which tool is used to deploy",
        "what did they build the command used to deploy with",
        "we got used to it",
        "which editor did I use to write the book",
        "where is Ann originally from",
        "which city was Bob in before travelling to Rome?",
        "what did I do the day before",
        "what did we do the week before?",
        "have I seen this error before?",
        "what happened in the past week",
        "what happened in the past 3 months",
        "what did I do in my previous week",
        "what kind of car did Ann get after his old Prius broke down",
        "how old is my son",
        "is there more to say, any plans",
        "used before: not a question " + "x" * 10,
    ],
)
def test_questions_about_the_present_state(query: str) -> None:
    assert past_question(query) is None


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    phrase = past_question(text)
    assert phrase is None or " ".join(phrase.split()) in " ".join(text.split())
    try:
        read = when(text)
    except BadTime as error:
        assert str(error).isprintable()
    else:
        assert read.micros < read.end


def test_a_long_text_is_no_question() -> None:
    assert past_question("x " * 280 + "what did I previously use") == "previously"
    assert past_question("x " * 300 + "what did I previously use") is None
