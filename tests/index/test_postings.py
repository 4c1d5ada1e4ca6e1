"""Bytes of the inverted index: sums, codes, lists."""

from __future__ import annotations

from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.index.errors import IndexDamaged
from remem.index.postings import (
    LENGTHS,
    POSTING_B,
    Run,
    close_value,
    count_postings,
    join_lists,
    lane_key,
    length_code,
    number_key,
    open_list,
    open_run,
    open_value,
    pack_list,
    part_key,
    without,
)

numbers = st.integers(0, 2**32 - 1)
postings = st.dictionaries(numbers, st.integers(0, 0xFFFF), min_size=1, max_size=40).map(
    lambda found: sorted(found.items())
)


def as_ints(pairs: list[tuple[int, int]], term: bytes) -> list[int]:
    return [doc if term[:1] == b"\x00" else code << 32 | doc for doc, code in pairs]


def pairs_of(term: bytes, body: bytes) -> list[tuple[int, int]]:
    run = Run(memoryview(body), term[:1] == b"\x00")
    codes = run.codes.tolist() or [0] * len(run.docs)
    return list(zip(run.docs.tolist(), codes, strict=True))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_length_codes_are_monotone(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert 0 <= length_code(low) <= length_code(high) <= 255
    assert LENGTHS[length_code(low)] <= low


def test_length_codes_are_exact_where_texts_are_short_and_close_elsewhere() -> None:
    assert [length_code(n) for n in range(128)] == list(range(128))
    assert [length_code(LENGTHS[code]) for code in range(256)] == list(range(256))
    assert all(low < high for low, high in pairwise(LENGTHS))
    assert max(high / low for low, high in pairwise(LENGTHS[127:])) < 1.21


@given(st.sampled_from([b"term", b"\x00k:fact"]), postings)
def test_lists_come_back_as_they_went(term: bytes, pairs: list[tuple[int, int]]) -> None:
    body = pack_list(term, as_ints(pairs, term))
    expected = pairs if term[0] else [(doc, 0) for doc, _ in pairs]
    assert pairs_of(term, body) == expected
    assert len(body) == len(pairs) * (POSTING_B if term[0] else 4)
    key = number_key(1, 2) + term
    value = close_value(key, body)
    assert count_postings(term, value) == len(pairs)
    assert open_run(key, value).docs.tolist() == [doc for doc, _ in pairs]
    assert open_list(key, value) == body


@given(st.integers(0, 7), postings)
def test_lists_are_read_at_any_address(shift: int, pairs: list[tuple[int, int]]) -> None:
    key = number_key(1, 2) + b"term"
    value = close_value(key, pack_list(b"term", as_ints(pairs, b"term")))
    room = bytearray(shift) + value
    run = open_run(key, memoryview(room)[shift:])
    assert list(zip(run.docs, run.codes, strict=True)) == pairs
    for doc, code in pairs:
        assert run.codes[run.find(doc)] == code
    assert run.find(next(n for n in range(2**32) if n not in dict(pairs))) == -1
    numpy = pytest.importorskip("numpy")
    assert numpy.frombuffer(run.docs, "<u4").tolist() == run.docs.tolist()
    assert numpy.frombuffer(run.codes, "<u2").tolist() == run.codes.tolist()


@given(st.sampled_from([b"term", b"\x00k:fact"]), postings, st.integers(0, 40))
def test_joining_undoes_cutting(term: bytes, pairs: list[tuple[int, int]], cut: int) -> None:
    whole = as_ints(pairs, term)
    cut = min(cut, len(whole) - 1)
    if cut:
        joined = join_lists(term, pack_list(term, whole[:cut]), pack_list(term, whole[cut:]))
        assert joined == pack_list(term, whole)


@given(st.sampled_from([b"term", b"\x00k:fact"]), postings, st.data())
def test_documents_leave_a_list(
    term: bytes, pairs: list[tuple[int, int]], data: st.DataObject
) -> None:
    gone = data.draw(st.lists(st.sampled_from([doc for doc, _ in pairs]), unique=True).map(sorted))
    body = memoryview(pack_list(term, as_ints(pairs, term)))
    left = [pair for pair in pairs if pair[0] not in gone]
    assert without(term, body, gone) == (pack_list(term, as_ints(left, term)) if left else b"")


def test_who_is_not_in_a_list_cannot_leave_it() -> None:
    body = memoryview(pack_list(b"term", as_ints([(3, 9), (5, 9)], b"term")))
    assert len(without(b"term", body, [3, 5])) == 0
    for gone in ([4], [3, 4], [5, 5], [5, 3]):
        with pytest.raises(IndexDamaged, match="is not in the list of 'term'"):
            without(b"term", body, gone)


def test_any_flipped_bit_of_a_value_or_its_key_is_noticed() -> None:
    key = number_key(1, 2) + b"term"
    value = close_value(key, pack_list(b"term", as_ints([(3, 9), (5, 9)], b"term")))
    assert open_run(key, value).docs.tolist() == [3, 5]
    for bit in range(8 * len(value)):
        flipped = bytearray(value)
        flipped[bit >> 3] ^= 1 << (bit & 7)
        with pytest.raises(IndexDamaged, match="does not match") as caught:
            open_run(key, bytes(flipped))
        assert "reindex --lexical" in caught.value.hint
        with pytest.raises(IndexDamaged):
            open_list(key, bytes(flipped))
    for bit in range(8 * len(key)):
        other = bytearray(key)
        other[bit >> 3] ^= 1 << (bit & 7)
        with pytest.raises(IndexDamaged):
            open_value(bytes(other), value, "it")


def test_a_value_of_a_wrong_size_is_noticed() -> None:
    key = number_key(1, 2) + b"term"
    value = close_value(key, pack_list(b"term", as_ints([(3, 9), (5, 9)], b"term")))
    for size in range(len(value)):
        with pytest.raises(IndexDamaged):
            open_run(key, value[:size])
    with pytest.raises(IndexDamaged):
        open_run(key, value + b"\x00")


@given(st.tuples(numbers, numbers), st.tuples(numbers, numbers))
def test_keys_sort_as_their_numbers(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (number_key(*one) < number_key(*other)) == (one < other)
    assert number_key(*one).startswith(part_key(one[0]))


@given(*[st.tuples(numbers, numbers, st.integers(0, 2**64 - 1), numbers) for _ in range(2)])
def test_lanes_sort_by_sequence_number(
    one: tuple[int, int, int, int], other: tuple[int, int, int, int]
) -> None:
    keys = [lane_key(part, lane, seq, bytes(32), doc) for part, lane, seq, doc in (one, other)]
    assert (keys[0] < keys[1]) == (one < other)


def test_arrays_have_the_sizes_the_format_names() -> None:
    assert (array("I").itemsize, array("H").itemsize, array("Q").itemsize) == (4, 2, 8)
