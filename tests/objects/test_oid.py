"""Object ids: known digests, writing and reading them, ranges of prefixes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import oid
from remem.objects.errors import UsageError

ids = st.binary(min_size=oid.ID_BYTES, max_size=oid.ID_BYTES)


def test_digest_is_blake3_256() -> None:
    empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"  # BLAKE3 of nothing
    assert oid.to_hex(oid.digest(b"")) == empty
    assert oid.digest(b"a") != oid.digest(b"b")


def test_keyed_digests_separate_their_parts_and_keys() -> None:
    key, other = bytes(32), bytes([1]) * 32
    seen = {
        oid.keyed(key, b"ab", b"c"),
        oid.keyed(key, b"a", b"bc"),
        oid.keyed(key, b"abc"),
        oid.keyed(key, b"abc", b""),
        oid.keyed(other, b"ab", b"c"),
    }
    assert len(seen) == 5
    assert oid.keyed(key, b"ab", b"c") == oid.keyed(key, b"ab", b"c")
    assert len(oid.keyed(key, b"x")) == 16 and len(oid.keyed(key, b"x", length=32)) == 32


@given(ids)
def test_hex_there_and_back(object_id: bytes) -> None:
    assert oid.from_hex(oid.to_hex(object_id)) == object_id
    assert oid.from_hex(oid.to_hex(object_id).upper()) == object_id
    assert oid.to_hex(object_id).startswith(oid.short(object_id))
    assert len(oid.short(object_id)) == oid.SHOWN


@pytest.mark.parametrize("text", ["", "00" * 31, "00" * 33, "zz" * 32, "0" * 63, "é" * 64])
def test_from_hex_refuses(text: str) -> None:
    with pytest.raises(UsageError):
        oid.from_hex(text)


@given(ids, st.integers(oid.MIN_PREFIX, 64), ids)
def test_a_range_holds_exactly_the_ids_with_that_prefix(
    object_id: bytes, digits: int, other: bytes
) -> None:
    prefix = oid.to_hex(object_id)[:digits]
    start, stop = oid.prefix_range(prefix)
    number = int.from_bytes(start, "big")
    near = [
        object_id,
        other,
        start,
        *((number - 1).to_bytes(32, "big") for _ in range(number > 0)),
        *([stop] if stop else []),
        *([(int.from_bytes(stop, "big") - 1).to_bytes(32, "big")] if stop else [b"\xff" * 32]),
    ]
    for candidate in near:
        inside = start <= candidate and (stop is None or candidate < stop)
        assert inside == candidate.hex().startswith(prefix)


@pytest.mark.parametrize("prefix", ["f" * 7, "f" * 8, "f" * 64, "F" * 9])
def test_the_last_range_has_no_end(prefix: str) -> None:
    start, stop = oid.prefix_range(prefix)
    assert stop is None and b"\xff" * 32 >= start


@pytest.mark.parametrize(
    "prefix", ["", "abcdef", "0" * 65, "abcdefg", "abcdef ", "0x12345", "@{1}"]
)
def test_a_prefix_that_is_none(prefix: str) -> None:
    with pytest.raises(UsageError) as error:
        oid.prefix_range(prefix)
    assert "7" in error.value.hint
    assert oid.prefix_range("abcdef0")[0].hex().startswith("abcdef0")
