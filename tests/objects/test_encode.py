"""Canonical bytes: round trips, salted addresses, headers."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import encode, oid
from remem.objects.errors import IntegrityError, NewerFormat
from remem.objects.model import (
    MEMORY_KINDS,
    ORIGINS,
    ROLES,
    SALT_BYTES,
    Deriver,
    Memory,
    Observation,
    Scope,
    Source,
    Span,
)

KEY = bytes(range(32))
OTHER = bytes(32)

text = st.text(max_size=40)
name = st.text(min_size=1, max_size=12)
instant = st.none() | st.integers(-(2**62), 2**62)
offset = st.none() | st.integers(-900, 900)
ids = st.binary(min_size=32, max_size=32)
plain = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False)
meta = st.dictionaries(name, st.recursive(plain | text, lambda inner: st.lists(inner), max_leaves=5)
                       | st.dictionaries(name, plain), max_size=4)  # fmt: skip
scopes = st.builds(Scope, name, name, name, name, name)

observations = st.builds(
    Observation,
    st.just(encode.ZERO_SALT),
    scopes,
    st.none() | st.binary(max_size=40),
    text,
    st.sampled_from(ROLES),
    text,
    st.sampled_from(ORIGINS),
    st.none() | st.builds(Source, text, text, text),
    instant,
    offset,
    st.none() | ids,
    text,
    meta,
)
memories = st.builds(
    Memory,
    st.just(encode.ZERO_SALT),
    scopes,
    st.sampled_from(MEMORY_KINDS),
    text,
    st.none() | st.tuples(text, text, text),
    st.lists(ids, min_size=1, max_size=3),
    st.none() | st.builds(Span, st.integers(0, 9), st.integers(0, 99), st.integers(0, 99)),
    st.builds(Deriver, text, st.integers(1, 9), text, text),
    st.integers(0, 1000),
    instant,
    instant,
    offset,
    st.lists(text, max_size=2),
    text,
    st.lists(text, max_size=2),
    meta,
)
objects = observations | memories
EXAMPLE = Observation(
    encode.ZERO_SALT, Scope("t", "p", "c", "a", "s"), None, "words", "user", "", "owner", None,
    None, None, None, "", {},
)  # fmt: skip


@given(objects)
def test_an_object_comes_back_and_its_id_is_that_of_its_bytes(obj: encode.Obj) -> None:
    object_id, data = encode.seal(obj, KEY)
    assert object_id == oid.digest(data)
    back = encode.decode(data)
    assert back.salt != encode.ZERO_SALT and len(back.salt) == SALT_BYTES
    assert msgspec.structs.replace(back, salt=encode.ZERO_SALT) == obj
    assert encode.salted_by(data, KEY)
    assert not encode.salted_by(data, OTHER)
    assert encode.type_name(data) == type(obj).__name__.lower()
    assert encode.seal(msgspec.structs.replace(back, salt=encode.ZERO_SALT), KEY) == (
        object_id,
        data,
    )


@given(objects)
def test_salt_and_id_differ_by_key(obj: encode.Obj) -> None:
    one, other = encode.seal(obj, KEY), encode.seal(obj, OTHER)
    assert one[0] != other[0]
    assert encode.decode(one[1]).salt != encode.decode(other[1]).salt


@given(objects, st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_changes_the_id_and_breaks_the_salt(
    obj: encode.Obj, at: int, flip: int
) -> None:
    object_id, data = encode.seal(obj, KEY)
    at %= len(data)
    bad = data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]
    assert oid.digest(bad) != object_id
    if encode.type_name(bad) == encode.type_name(data):
        assert not encode.salted_by(bad, KEY)


@given(st.dictionaries(name, plain, min_size=2, max_size=6))
def test_the_order_of_a_dict_does_not_count(values: dict[str, object]) -> None:
    backwards = dict(reversed(values.items()))
    one = encode.seal(msgspec.structs.replace(EXAMPLE, meta=values), KEY)
    assert encode.seal(msgspec.structs.replace(EXAMPLE, meta=backwards), KEY) == one


@pytest.mark.parametrize(
    "change",
    [
        {"text": "other words"},
        {"asserted": 0},
        {"role": "assistant"},
        {"scope": Scope("t", "p", "c", "a", "other")},
        {"source": Source("u", "1")},
        {"raw": b"words"},
        {"meta": {"k": None}},
        {"corrects": bytes(32)},
    ],
)
def test_every_field_is_part_of_the_address(change: dict[str, object]) -> None:
    one = encode.seal(EXAMPLE, KEY)
    assert encode.seal(EXAMPLE, KEY) == one
    assert encode.seal(msgspec.structs.replace(EXAMPLE, **change), KEY)[0] != one[0]


def test_headers() -> None:
    _, data = encode.seal(EXAMPLE, KEY)
    assert data.startswith(b"observation 1\0")
    newer = b"observation 2\0" + data[len(b"observation 1\0") :]
    with pytest.raises(NewerFormat, match="observation 2"):
        encode.decode(newer)
    for bad in (b"", b"blob 1\0x", b"observation\0", b"observation x\0", data[:-1], data + b"x",
                b"memory 1\0" + data[len(b"observation 1\0") :]):  # fmt: skip
        with pytest.raises(IntegrityError):
            encode.decode(bad)
    assert encode.decode(data).text == "words"


def test_a_field_added_at_the_end_by_a_later_version_is_passed_over() -> None:
    """What model.py says of new fields: they go to the end, older readers go on reading."""
    _, data = encode.seal(EXAMPLE, KEY)
    head = len(b"observation 1\0")
    values = msgspec.msgpack.decode(data[head:])
    longer = data[:head] + msgspec.msgpack.encode([*values, "a later field"])
    assert encode.decode(longer).text == "words"
