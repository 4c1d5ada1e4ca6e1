"""The stream of JSON units: the same whatever the size of the pieces it is read in."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.hooks.sources import _json
from remem.objects.model import Rejected, Skipped


class Dripping(io.RawIOBase):
    """A stream that gives a few bytes at a time, as a slow pipe does."""

    def __init__(self, raw: bytes, step: int) -> None:
        self.raw = raw
        self.step = step

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        piece, self.raw = self.raw[: self.step], self.raw[self.step :]
        return piece


@pytest.fixture(autouse=True, params=[_json.WHOLE_B, 0], ids=["in one go", "piece by piece"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_json, "WHOLE_B", request.param)


def units(raw: bytes, step: int = 1, limit_b: int = 10_000) -> list[tuple[str, object]]:
    return list(_json.units(Dripping(raw, step), "f", limit_b))  # type: ignore[arg-type]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.lists(VALUES, max_size=6), st.integers(1, 12), st.sampled_from([None, 0, 2]))
def test_an_array_is_split_at_the_right_places(
    values: list[object], step: int, indent: int | None
) -> None:
    raw = json.dumps(values, indent=indent).encode()
    whole = units(raw, step)
    # An array with a fault at its end goes the slow way.
    slow = units(raw[:-1] + b",]", step) if values else units(b"[]", step)
    for found in (whole, slow[: len(values)]):
        assert [json.loads(unit) for _, unit in found if isinstance(unit, bytes)] == values
        assert [where for where, _ in found] == [f"f[{index}]" for index in range(len(values))]
    assert [type(unit) for _, unit in slow[len(values) :]] == ([Rejected] if values else [])


@given(
    st.lists(st.binary(max_size=20).filter(lambda b: b"\n" not in b), max_size=8),
    st.integers(1, 9),
    st.booleans(),
)
def test_lines_are_split_at_the_right_places(parts: list[bytes], step: int, ended: bool) -> None:
    raw = b"\n".join(parts) + (b"\n" if ended else b"")
    expected = raw.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    found = list(_json.lines(b"", Dripping(raw, step), 10_000))  # type: ignore[arg-type]
    assert found == list(enumerate(expected, 1))


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(1, 40), st.integers(1, 30))
def test_the_limit_counts_the_bytes_of_a_line(sizes: list[int], step: int, limit: int) -> None:
    raw = b"".join(b"x" * size + b"\n" for size in sizes)
    found = list(_json.lines(b"", Dripping(raw, step), limit))  # type: ignore[arg-type]
    assert [line is None for _, line in found] == [size > limit for size in sizes]


@pytest.mark.parametrize("step", [1, 2, 3, 5, 64, 1000])
def test_an_element_above_the_limit_costs_itself_only(step: int) -> None:
    values = ["a", "\\" * 60 + '"],[' * 20, {"k": "b"}]
    raw = json.dumps(values).encode()
    for text in (raw, raw[:-1] + b", oops ]"):
        found = units(text, step, limit_b=40)
        assert found[0] == ("f[0]", b'"a"')
        assert found[1] == ("f[1]", Rejected("f[1]", "element is above the limit of 40 bytes"))
        assert found[2] == ("f[2]", b'{"k": "b"}')


@pytest.mark.parametrize("step", [1, 4, 1000])
def test_places_after_an_array_are_those_of_the_file(step: int) -> None:
    long = b'"' + b"x" * 100 + b'"'  # so that the array does not end in what is read first
    found = units(b"[1,\n" + long + b'\n\n\n,2] \r\n{"a": 1}\n\n{"b": 2}', step)
    assert [where for where, _ in found] == ["f[0]", "f[1]", "f[2]", "f:6", "f:7", "f:8"]
    assert found[4] == ("f:7", Skipped("f:7", "blank line"))
    # Something behind the bracket is a unit of that line.
    assert units(b"[1\n] 2", step)[1] == ("f:2", b"2")


def test_a_stream_is_read_as_it_comes() -> None:
    """A line is handed out before the next one is written."""
    import os

    reading, writing = os.pipe()
    with open(reading, "rb") as stream, open(writing, "wb", buffering=0) as pipe:
        pipe.write(b'{"text": "' + b"a" * 80 + b'"}\n')
        found = _json.units(stream, "-", 1000)
        assert next(found)[0] == "-:1"
        pipe.write(b'{"text": "b"}\n')
        assert next(found) == ("-:2", b'{"text": "b"}')


def test_a_long_array() -> None:
    values = [{"text": f"number {number}"} for number in range(200)]
    found = units(json.dumps(values).encode(), 37)
    assert [json.loads(unit) for _, unit in found if isinstance(unit, bytes)] == values


def test_repair_puts_a_mark_for_half_a_pair() -> None:
    raw = b'{"\\udc00": ["a \\ud83d", "\\ud83d\\ude00"]}'
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        _json.decode(raw)
    assert _json.decode(raw, repair=True) == {"\ufffd": ["a \ufffd", "😀"]}
    with pytest.raises(ValueError, match="not valid JSON"):
        _json.decode(b"{nope}", repair=True)
