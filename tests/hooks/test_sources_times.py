"""Absolute times as they stand in files."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.hooks.sources._times import epoch, instant, instant_or_none, offset_minutes, stamp
from remem.objects.model import Incoming

MARCH = 1_772_357_400_000_000  # 2026-03-01T09:30:00Z


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-01T09:30:00Z", (MARCH, 0)),
        ("2026-03-01t09:30:00z", (MARCH, 0)),
        (" 2026-03-01T09:30:00Z ", (MARCH, 0)),
        ("2026-03-01T11:30:00+02:00", (MARCH, 120)),
        ("2026-03-01T04:00:00-05:30", (MARCH, -330)),
        ("2026-03-01T09:30:00", (MARCH, None)),
        ("2026-03-01 09:30", (MARCH, None)),
        ("2026-03-01", (MARCH - 34_200_000_000, None)),
        ("2026-03-01T09:30:00.000001Z", (MARCH + 1, 0)),
        ("2026-03-01T09:30:00.123456789Z", (MARCH + 123_456, 0)),
        ("@1772357400", (MARCH, 0)),
        ("@1772357400.5", (MARCH + 500_000, 0)),
        ("1969-12-31T23:59:59Z", (-1_000_000, 0)),
        (1_772_357_400, (MARCH, 0)),
        (1_772_357_400.25, (MARCH + 250_000, 0)),
        (1_772_357_400_000, (MARCH, 0)),
        (MARCH, (MARCH, 0)),
        (MARCH * 1000 + 999, (MARCH, 0)),
        (-1.5, (-1_500_000, 0)),
        (0, (0, 0)),
    ],
)
def test_what_is_a_time(value: object, expected: tuple[int, int | None]) -> None:
    assert instant(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        "", "@", "@x", "@inf", "@nan", "yesterday", "2026", "2026-13-01", "2026-03-01T25:00Z",
        "12:30", None, True, [], {}, float("nan"), float("inf"), 10**30, "@1e18",
    ],
)  # fmt: skip
def test_what_is_no_time(value: object) -> None:
    with pytest.raises(ValueError):
        instant(value)
    assert instant_or_none(value) == (None, None)


MOMENTS = st.datetimes(
    datetime.datetime(2, 1, 1),
    datetime.datetime(9998, 12, 31),
    timezones=st.integers(-1439, 1439).map(
        lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes))
    ),
)


@given(MOMENTS)
def test_an_iso_text_gives_the_instant_and_the_offset(moment: datetime.datetime) -> None:
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    micros, offset = instant(moment.isoformat())
    assert start + datetime.timedelta(microseconds=micros) == moment
    zone = moment.utcoffset()
    assert zone is not None and offset == zone // datetime.timedelta(minutes=1)


@given(st.integers(-60_000_000_000, 99_999_999_999))
def test_the_units_of_an_epoch_number_are_told_apart(seconds: int) -> None:
    assert epoch(seconds) == seconds * 1_000_000
    if abs(seconds) >= 100_000_000:  # from 1973 on
        assert epoch(seconds * 1_000) == epoch(seconds * 1_000_000) == seconds * 1_000_000


@pytest.mark.parametrize(
    ("zone", "minutes"),
    [("+0000", 0), ("+0530", 330), ("-0800", -480), ("+9999", None), ("0530", None), ("+5", None)],
)
def test_zones_of_git(zone: str, minutes: int | None) -> None:
    assert offset_minutes(zone) == minutes


def test_a_time_that_cannot_be_read_costs_no_record() -> None:
    item = Incoming(text="a", meta={})
    stamp(item, "last week")
    assert (item.asserted, item.offset, item.meta) == (None, None, {"timestamp": "last week"})
    stamp(item, "2026-03-01T09:30:00Z")
    assert (item.asserted, item.offset) == (MARCH, 0)
