"""Instants: reading, writing, zones; the standard library's datetime is the second opinion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remem.objects import instant
from remem.objects.errors import BadTime
from remem.objects.instant import END, MICROS, START, Instant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
ZONES = ("UTC", "Pacific/Auckland", "America/Los_Angeles")

INSTANTS = st.one_of(
    st.integers(START, END - 1),
    st.sampled_from(
        [
            *(START, START + 1, END - 1, -1, 0, 1, -MICROS, 10**15),
            *((datetime(y, 1, 1, tzinfo=UTC) - EPOCH) // TICK for y in (1, 9, 1969, 2100, 9999)),
        ]
    ),
)


def utc(*fields: int) -> int:
    return (datetime(*fields, tzinfo=UTC) - EPOCH) // TICK  # type: ignore[misc, arg-type]


def zone(name: str) -> Callable[[int], int]:
    info = ZoneInfo(name)

    def offset(seconds: int) -> int:
        shown = datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)
        # The first and last days of the calendar have no local form in datetime.
        shown = min(max(shown, datetime(1, 1, 2, tzinfo=UTC)), datetime(9999, 12, 30, tzinfo=UTC))
        found = shown.astimezone(info).utcoffset()
        assert found is not None
        return int(found.total_seconds())

    return offset


def flat(_seconds: int) -> int:
    return 0


def read(text: str, where: Callable[[int], int] = flat) -> Instant:
    return instant.parse(text, now=utc(2026, 3, 18), local_offset=where)


SECOND, MINUTE, DAY = MICROS, 60 * MICROS, 86_400 * MICROS


@pytest.mark.parametrize(
    ("text", "start", "length", "grain", "offset"),
    [
        ("2023", utc(2023, 1, 1), 365 * DAY, "year", None),
        ("0001", START, 365 * DAY, "year", None),
        ("9999", utc(9999, 1, 1), 365 * DAY, "year", None),
        ("2024-02", utc(2024, 2, 1), 29 * DAY, "month", None),
        ("2023-12", utc(2023, 12, 1), 31 * DAY, "month", None),
        ("2024-02-29", utc(2024, 2, 29), DAY, "day", None),
        ("2000-02-29", utc(2000, 2, 29), DAY, "day", None),
        ("9999-12-31", utc(9999, 12, 31), DAY, "day", None),
        ("2023-05-07 13:56", utc(2023, 5, 7, 13, 56), MINUTE, "minute", None),
        ("2023-05-07T13:56", utc(2023, 5, 7, 13, 56), MINUTE, "minute", None),
        ("2023-05-07 13:56:04", utc(2023, 5, 7, 13, 56, 4), SECOND, "second", None),
        ("2023-05-07T13:56:04Z", utc(2023, 5, 7, 13, 56, 4), SECOND, "second", 0),
        ("2023-05-07t13:56:04z", utc(2023, 5, 7, 13, 56, 4), SECOND, "second", 0),
        ("2023-05-07T13:56Z", utc(2023, 5, 7, 13, 56), MINUTE, "minute", 0),
        ("2023-05-07T00:00:00+02:00", utc(2023, 5, 6, 22), SECOND, "second", 120),
        ("2023-05-07T20:00:00-05:30", utc(2023, 5, 8, 1, 30), SECOND, "second", -330),
        ("2023-05-07T13:56:04-00:00", utc(2023, 5, 7, 13, 56, 4), SECOND, "second", 0),
        ("1969-12-31T23:59:59.5Z", -500_000, 1, "micro", 0),
        ("1970-01-01T00:00:00.1234569Z", 123_456, 1, "micro", 0),
        ("@1700000000", 1_700_000_000 * MICROS, SECOND, "second", 0),
        ("@-1", -MICROS, SECOND, "second", 0),
        ("@+1", MICROS, SECOND, "second", 0),
        ("@1.25", 1_250_000, 1, "micro", 0),
        ("@-1.25", -1_250_000, 1, "micro", 0),
        ("2016-12-31T23:59:60Z", utc(2017, 1, 1), SECOND, "second", 0),
        ("2016-12-31T15:59:60-08:00", utc(2017, 1, 1), SECOND, "second", -480),
    ],
)
def test_absolute_forms(text: str, start: int, length: int, grain: str, offset: int | None) -> None:
    expected = Instant(start, start + length, grain, offset=offset, zoned=offset is not None)
    assert read(text) == expected
    assert read(f"  {text}\n") == expected


def test_now() -> None:
    before = instant.now()
    assert abs(before - (datetime.now(UTC) - EPOCH) // TICK) < 60 * MICROS
    assert read("now") == Instant(utc(2026, 3, 18), utc(2026, 3, 18) + 1, "micro", zoned=True)


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ("2023-13", "2023-12"),
        ("2023-00", "2023-01"),
        ("2023-02-29", "2024-02-29"),
        ("1900-02-29", "2000-02-29"),
        ("2023-06-31", "2023-06-30"),
        ("2023-06-00", "2023-06-01"),
        ("0000", "0001"),
        ("10000", "9999"),
        ("+2023", "2023"),
        ("2023-5-7", "2023-05-07"),
        ("20230507", "2023-05-07"),
        ("2023-W18", "2023-05"),
        ("2023-127", "2023-12"),
        ("2023-05-07T24:00:00Z", "2023-05-07T23:00:00Z"),
        ("2023-05-07T24:00", "2023-05-07T23:00"),
        ("2023-05-07T12", "2023-05-07T12:00"),
        ("2023-05-07T12:60", "2023-05-07T12:59"),
        ("2023-05-07T12:00:61Z", "2023-05-07T12:00:59Z"),
        ("2023-05-07T12:00:60Z", "2023-05-07T12:00:00Z"),
        ("2023-05-31T12:00:60Z", "2023-05-31T23:59:60Z"),
        ("2023-05-30T23:59:60Z", "2023-05-31T23:59:60Z"),
        ("2023-05-31 23:59:60", "2023-05-31 23:59:59"),
        ("2023-05-07T12:00:00,5Z", "2023-05-07T12:00:00.5Z"),
        ("2023-05-07T12:00:00.Z", "2023-05-07T12:00:00.0Z"),
        ("2023-05-07T12:00:00+0200", "2023-05-07T12:00:00+02:00"),
        ("2023-05-07T12:00:00+02", "2023-05-07T12:00:00+02:00"),
        ("2023-05-07T12:00:00+24:00", "2023-05-07T12:00:00+23:59"),
        ("2023-05-07T12:00:00+01:60", "2023-05-07T12:00:00+01:59"),
        ("2023-05-07T12:00:00+01:00:00", "2023-05-07T12:00:00+01:00"),
        ("2023-05-07T12:00:00 Z", "2023-05-07T12:00:00Z"),
        ("2023-05-07 12:00:00 UTC", "2023-05-07 12:00:00Z"),
        ("2023-05-07x12:00:00Z", "2023-05-07T12:00:00Z"),
        ("2023-05-07Z", "2023-05-07"),
        ("2023-05-07T12:00:0٣Z", "2023-05-07T12:00:03Z"),
        ("²023", "2023"),
        ("0001-01-01T00:00:00+00:01", "0001-01-01T00:00:00+00:00"),
        ("9999-12-31T23:59:59-00:01", "9999-12-31T23:59:59-00:00"),
        ("@", "@0"),
        ("@1e9", "@1000000000"),
        ("@1.", "@1.0"),
        ("@--1", "@-1"),
        ("@253402300800", "@253402300799"),
        ("@-62135596801", "@-62135596800"),
        ("1700000000", "@1700000000"),
        ("", "2023"),
        ("yesterday", "now"),
    ],
)
def test_refused_forms(bad: str, good: str) -> None:
    assert read(good).micros >= START
    with pytest.raises(BadTime) as caught:
        read(bad)
    assert caught.value.exit_code == 2
    assert caught.value.hint
    assert instant.quoted(bad) in str(caught.value)
    if len(bad) > 16 and bad[0] != "@":
        with pytest.raises(BadTime):
            instant.parse_rfc3339(bad)


def test_message_is_one_line_and_short() -> None:
    with pytest.raises(BadTime) as caught:
        read("2023\n\x1b[31m" + "x" * 500)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 160
    assert "'2023\\n\\x1b[31mxxx" in message


@given(INSTANTS)
def test_written_instants_read_back(micros: int) -> None:
    text = instant.rfc3339(micros)
    known = EPOCH + timedelta(microseconds=micros)
    assert datetime.fromisoformat(text) == known
    assert text == known.replace(tzinfo=None).isoformat() + "Z"
    assert instant.parse(text, now=0).micros == micros
    assert instant.parse_rfc3339(text) == (micros, 0)
    assert read(f"@{micros // MICROS}").micros == micros - micros % MICROS


@given(INSTANTS, st.integers(-23 * 60 - 59, 23 * 60 + 59))
def test_display_carries_its_offset_and_reads_back(micros: int, offset: int) -> None:
    text = instant.display(micros, offset)
    assert text[10] == " "
    assert text[-1] == "Z" or text[-6] in "+-"
    found = instant.parse(text, now=0)
    assert found.micros == micros
    if START + 86_400 * MICROS < micros < END - 86_400 * MICROS:
        assert found.offset == offset
        known = (EPOCH + timedelta(microseconds=micros)).astimezone(
            timezone(timedelta(minutes=offset))
        )
        assert text.removesuffix("Z") == known.isoformat(" ").removesuffix("+00:00")


@given(INSTANTS, st.sampled_from(["UTC", "Pacific/Auckland", "America/New_York", "Asia/Kolkata"]))
def test_display_in_a_zone_names_the_offset(micros: int, name: str) -> None:
    where = zone(name)
    text = instant.display(micros, local_offset=where)
    assert instant.parse(text, now=0, local_offset=where).micros == micros
    shown = instant.parse(text, now=0).offset
    assert shown in (instant.offset_at(micros, where), 0)


def test_one_form_for_machines() -> None:
    moment = utc(2031, 3, 9, 1, 30)
    assert instant.rfc3339(moment) == "2031-03-09T01:30:00Z"
    assert instant.rfc3339(moment + 1) == "2031-03-09T01:30:00.000001Z"
    assert instant.rfc3339(START) == "0001-01-01T00:00:00Z"
    assert instant.rfc3339(END - 1) == "9999-12-31T23:59:59.999999Z"
    for outside in (START - 1, END):
        with pytest.raises(BadTime):
            instant.rfc3339(outside)
        with pytest.raises(BadTime):
            instant.display(outside, 0)


@given(
    st.text("0123456789", min_size=4, max_size=4),
    st.sampled_from("T t_"),
    st.lists(st.integers(0, 70), min_size=5, max_size=5),
    st.sampled_from(["", ".", ",", ".1", ".123456", ".1234567", ",5", ".5.", ".-1", ".1+01:00"]),
    st.sampled_from(["", "Z", "z", "+01:00", "-23:59", "+24:00", "+1:00", "+01:00:30", "-00:60"]),
)
@example("2023", "T", [5, 7, 12, 0, 0], ".1+01:00", "Z")
@example("2023", "T", [5, 7, 12, 0, 0], ".1", "+01:00:30")
@example("2023", "T", [5, 7, 24, 0, 0], "", "Z")
def test_the_fast_path_reads_what_the_slow_path_reads(
    year: str, mark: str, parts: list[int], fraction: str, where: str
) -> None:
    month, day, hour, minute, second = parts
    text = f"{year}-{month % 14:02}-{day % 33:02}{mark}{hour % 26:02}:{minute:02}:{second:02}"
    text += fraction + where
    try:
        slow = instant.parse(text, now=0, local_offset=flat)
    except BadTime:
        with pytest.raises(BadTime):
            instant.parse_rfc3339(text, flat)
    else:
        assert instant.parse_rfc3339(text, flat) == (slow.micros, slow.offset)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for reader in (read, instant.parse_rfc3339):
        try:
            found = reader(text)
        except BadTime as error:
            assert str(error).isprintable()
        else:
            assert found


def test_the_fast_path_takes_full_times_only() -> None:
    moment = utc(2023, 5, 7, 12)
    assert instant.parse_rfc3339("2023-05-07T12:00:00Z") == (moment, 0)
    assert instant.parse_rfc3339(" 2023-05-07t12:00:00z ") == (moment, 0)
    assert instant.parse_rfc3339("2023-05-07 12:00:00", flat) == (moment, None)
    for text in ("2023", "2023-05-07", "2023-05-07T12:00Z", "@1683460800.000000", "now"):
        assert read(text)
        with pytest.raises(BadTime):
            instant.parse_rfc3339(text, flat)


@given(st.dates())
def test_day_numbers_are_those_of_datetime(day: date) -> None:
    number = instant.day_number(day.year, day.month, day.day)
    assert number == day.toordinal() - date(1970, 1, 1).toordinal()
    assert instant.date_of(number) == (day.year, day.month, day.day)
    following = date(day.year + day.month // 12, day.month % 12 + 1, 1) if day.year < 9999 else None
    if following:
        length = (following - day.replace(day=1)).days
        assert instant.month_days(day.year, day.month) == length


def test_local_times_at_the_clock_changes() -> None:
    where = zone("America/Los_Angeles")
    # 12 March 2023: 02:00 to 03:00 does not exist; read with the offset before the change.
    assert read("2023-03-12 01:59", where).micros == utc(2023, 3, 12, 9, 59)
    assert read("2023-03-12 02:30", where).micros == utc(2023, 3, 12, 10, 30)
    assert read("2023-03-12 03:00", where).micros == utc(2023, 3, 12, 10)
    assert instant.display(utc(2023, 3, 12, 10, 30), local_offset=where) == (
        "2023-03-12 03:30:00-07:00"
    )
    # 5 November 2023: 01:00 to 02:00 comes twice; the first is meant.
    assert read("2023-11-05 00:59", where).micros == utc(2023, 11, 5, 7, 59)
    assert read("2023-11-05 01:30", where).micros == utc(2023, 11, 5, 8, 30)
    assert read("2023-11-05 02:00", where).micros == utc(2023, 11, 5, 10)
    # Those days have 23 and 25 hours.
    spring, autumn = read("2023-03-12", where), read("2023-11-05", where)
    assert spring.end - spring.micros == 23 * 3600 * MICROS
    assert autumn.end - autumn.micros == 25 * 3600 * MICROS


def test_a_day_without_midnight_and_a_day_that_was_skipped() -> None:
    # São Paulo went from 00:00 to 01:00 on 4 November 2018: the day starts with the change.
    day = read("2018-11-04", zone("America/Sao_Paulo"))
    assert (day.micros, day.end) == (utc(2018, 11, 4, 3), utc(2018, 11, 5, 2))
    # Apia had no 30 December 2011.
    where = zone("Pacific/Apia")
    assert read("2011-12-29", where).end == read("2011-12-31", where).micros
    assert read("2011-12-30 12:00", where).micros == utc(2011, 12, 30, 22)


@given(INSTANTS, st.sampled_from([*ZONES, "Asia/Kathmandu", "America/Sao_Paulo", "Pacific/Apia"]))
def test_wall_clocks_are_inverse_except_in_the_second_of_two_hours(micros: int, name: str) -> None:
    where = zone(name)
    day, shown = instant.wall_clock(micros, where)
    back = instant.at_wall_clock(day, shown, where)
    assert back <= micros
    assert instant.wall_clock(back, where) == (day, shown)
    assert micros - back < 86_400 * MICROS


@given(st.datetimes(min_value=datetime(1850, 1, 1), max_value=datetime(2037, 12, 31)))
def test_local_times_agree_with_datetime(naive: datetime) -> None:
    for name in ("America/Los_Angeles", "Pacific/Auckland", "Europe/Dublin", "Africa/Casablanca"):
        known = (naive.replace(tzinfo=ZoneInfo(name), fold=0) - EPOCH) // TICK
        assert read(naive.isoformat(" "), zone(name)).micros == known


SCRIPT = """
import json, sys
from remem.objects import instant
out = []
for text in json.loads(sys.argv[1]):
    found = instant.parse(text, now=0)
    out.append([found.micros, instant.rfc3339(found.micros), instant.display(found.micros)])
print(json.dumps(out))
"""


def in_zone(name: str, texts: list[str]) -> list[tuple[int, str, str]]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(texts)],
        env={**os.environ, "TZ": name},
        capture_output=True,
        text=True,
        check=True,
    )
    return [(row[0], row[1], row[2]) for row in json.loads(done.stdout)]


def test_three_machines_agree_on_zoned_times_and_differ_on_others() -> None:
    zoned = [
        *("2031-03-09T01:30:00Z", "2031-05-03T00:00:00+02:00", "1969-07-20T20:17:40.5-05:00"),
        *("2100-01-01T00:00:00+09:00", "@1700000000", "@-1.5", "0001-01-02T00:00:00Z"),
    ]
    local = ["2031-05-02 20:10:00", "2031-03-09", "2023"]
    rows = {name: in_zone(name, zoned + local) for name in ZONES}
    expected = [(read(text).micros, instant.rfc3339(read(text).micros)) for text in zoned]
    for name in ZONES:
        assert [(row[0], row[1]) for row in rows[name][: len(zoned)]] == expected
        for micros, _, shown in rows[name]:  # whatever is shown converts back
            assert read(shown).micros == micros
        assert [row[0] for row in rows[name][len(zoned) :]] == [
            read(text, zone(name)).micros for text in local
        ]
    later = expected[1][0]
    for name in ZONES:
        assert rows[name][len(zoned)][0] < later + 86_400 * MICROS
    assert len({rows[name][len(zoned)][0] for name in ZONES}) == 3
    assert len({rows[name][0][2] for name in ZONES}) == 3


def test_reading_and_writing_import_no_datetime() -> None:
    script = (
        "import sys; from remem.objects import instant\n"
        "instant.display(instant.parse('2023-05-07 12:00', now=0).micros, 60)\n"
        "print('datetime' in sys.modules, 'msgspec' in sys.modules)\n"
        "instant.parse_rfc3339('2023-05-07T12:00:00Z')\n"
        "print('datetime' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False", "True"]


def test_instants_compare_by_value() -> None:
    assert read("2023") == read("2023")
    assert hash(read("2023")) == hash(read("2023"))
    assert read("2023") != read("2023-01")
    assert read("2023") != "2023"
    assert "'year'" in repr(read("2023"))


@given(st.integers(0, 1 << 60), st.integers(-(10**12), 10**12))
def test_the_present_is_the_last_record_time_unless_the_clock_is_far_behind(
    clock: int, ahead: int
) -> None:
    found = instant.present(clock, clock + ahead)
    assert found == (clock + ahead if 0 < ahead <= instant.STEP_US else clock)
