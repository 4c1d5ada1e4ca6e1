"""Looking for many byte strings: against the plain search, with and without numpy."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.index import needles
from remem.index.needles import EACH, EACH_PLAIN, MIN_B, Needles

few_bytes = st.binary(min_size=MIN_B, max_size=12).map(lambda b: bytes(x % 3 for x in b))
haystack = st.binary(max_size=200).map(lambda b: bytes(x % 3 for x in b))


def plain(strings: list[bytes], data: bytes) -> dict[bytes, int]:
    return {s: data.find(s) for s in strings if s in data}


def many(strings: list[bytes]) -> list[bytes]:
    """With others that never occur, so that there are too many to be looked for one by one."""
    return [*strings, *(b"\xf0%06d never" % n for n in range(EACH + 1))]


@given(
    st.lists(few_bytes, max_size=8), st.binary(max_size=200).map(lambda b: bytes(x % 3 for x in b))
)
def test_many_are_found_as_each_alone(strings: list[bytes], data: bytes) -> None:
    pytest.importorskip("numpy")
    table = Needles(many(strings), numpy=True)
    assert table.first(data) == plain(strings, data)
    assert Needles(strings, numpy=False).first(data) == plain(strings, data)


def test_every_offset_and_length_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    monkeypatch.setattr(needles, "_BLOCK_B", 64)
    words = [bytes(range(100, 100 + size)) for size in range(MIN_B, 20)]
    table = Needles(many(words), numpy=True)
    for at in [*range(70), 127, 128, 255, 256, 257]:
        for word in words:
            data = bytes(at) + word
            assert table.first(data)[word] == at
            assert word not in table.first(data[:-1])


def test_megabytes_of_chance_hold_nothing_and_hide_nothing() -> None:
    pytest.importorskip("numpy")
    dice = random.Random(7)
    words = [b"w%010x" % dice.getrandbits(40) for _ in range(5000)]
    data = dice.randbytes(3 << 20)
    table = Needles(words)
    assert table.first(data) == {}
    hidden = data[: 1 << 20] + words[77] + data[1 << 20 :] + words[4999]
    assert table.first(hidden) == {words[77]: 1 << 20, words[4999]: len(hidden) - 11}
    assert table.left_out == 0 and len(table.wanted) == 5000


def test_without_numpy_what_is_left_out_is_counted() -> None:
    words = [b"word %05d" % n for n in range(EACH_PLAIN + 30)]
    table = Needles(words, numpy=False)
    assert (len(table.wanted), table.left_out) == (EACH_PLAIN, 30)
    assert table.wanted == words[:EACH_PLAIN]  # the first ones matter most
    assert table.first(b"..." + words[3]) == {words[3]: 3}
    assert table.first(words[-1]) == {}


def test_the_same_string_counts_once_and_a_short_one_is_refused() -> None:
    assert Needles([b"abcde", b"abcde"]).wanted == [b"abcde"]
    assert Needles([]).first(b"abc") == {}
    assert Needles([]).longest == 0
    with pytest.raises(ValueError, match="fewer than"):
        Needles([b"abcd"])
