"""JSON lines: what is taken, what is refused and how it is said."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remem.hooks.sources import _json, jsonl, read, read_stream
from remem.hooks.sources._record import Record
from remem.objects.model import ORIGINS, ROLES, Incoming, Rejected, Skipped


def load(raw: bytes, **options: int) -> list[Record]:
    return list(read_stream("jsonl", io.BytesIO(raw), "turns.jsonl", **options))


def one(value: object) -> Record:
    (record,) = load(json.dumps(value).encode())
    return record


def why(value: object) -> str:
    record = one(value)
    assert isinstance(record, Rejected), record
    assert record.where == "turns.jsonl:1"
    return record.why


def test_every_field_arrives() -> None:
    record = one(
        {
            "text": "we moved the server on Tuesday",
            "at": "2026-03-01T09:30:00+02:00",
            "role": "user",
            "speaker": "Ann",
            "origin": "untrusted",
            "session": "s1",
            "agent": "bot",
            "collection": "home",
            "source": {"uri": "chat:1", "id": "m7", "tool": "chat"},
            "kind": "turn",
            "meta": {"room": "attic"},
        }
    )
    assert record == Incoming(
        text="we moved the server on Tuesday",
        asserted=1_772_350_200_000_000,
        offset=120,
        role="user",
        speaker="Ann",
        origin="untrusted",
        session="s1",
        agent="bot",
        collection="home",
        source_uri="chat:1",
        source_id="m7",
        tool="chat",
        kind="turn",
        meta={"room": "attic"},
        where="turns.jsonl:1",
    )


def test_a_text_alone_is_enough() -> None:
    assert one({"text": "hello"}) == Incoming(text="hello", where="turns.jsonl:1", meta={})


def test_one_broken_line_of_a_thousand_is_named(tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"turn {number}"}) for number in range(1, 1001)]
    lines[996] = '{"text": "turn 997", }'
    path = tmp_path / "turns.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n\r\n")
    records = list(read("jsonl", str(path)))
    bad = [record for record in records if isinstance(record, Rejected)]
    blank = [record for record in records if isinstance(record, Skipped)]
    good = [record for record in records if isinstance(record, Incoming)]
    assert (len(good), len(blank), len(bad)) == (999, 1, 1)
    assert bad[0].where == f"{path}:997"
    assert bad[0].why.startswith("not valid JSON at column 22: ")
    assert blank == [Skipped(f"{path}:1001", "blank line")]
    assert good[0].text == "turn 1" and good[-1].where == f"{path}:1000"


def test_an_array_is_read_element_by_element() -> None:
    raw = b' [\n{"text": "a, [b] {c}"},\n 7,\n {"text": "d\\"]"} ]\n'
    assert load(raw) == [
        Incoming(text="a, [b] {c}", where="turns.jsonl[0]", meta={}),
        Rejected("turns.jsonl[1]", "expected an object, found a number"),
        Incoming(text='d"]', where="turns.jsonl[2]", meta={}),
    ]


def test_one_broken_element_does_not_cost_the_others() -> None:
    records = load(b'[{"text": "a"}, {"text": oops}, , {"text": "c"}, {"text": "d"')
    assert [type(record) for record in records] == [
        Incoming,
        Rejected,
        Rejected,
        Incoming,
        Rejected,
    ]
    assert [record.where for record in records] == [f"turns.jsonl[{index}]" for index in range(5)]
    assert isinstance(records[-1], Rejected) and "cut off" in records[-1].why


def test_lines_after_an_array_are_read() -> None:
    records = load(b'[1]\n{"text": "a"}\n\n{"text": "b"}')
    assert [(type(r).__name__, r.where) for r in records] == [
        ("Rejected", "turns.jsonl[0]"),
        ("Incoming", "turns.jsonl:2"),
        ("Skipped", "turns.jsonl:3"),
        ("Incoming", "turns.jsonl:4"),
    ]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "no records at all"),
        ("text", "expected an object, found a text"),
        (7, "expected an object, found a number"),
        (None, "expected an object, found null"),
        ({}, "'text' is missing"),
        ({"txt": "a"}, "'text' is missing"),
        ({"text": None}, "'text' is null, not a text"),
        ({"text": 7}, "'text' is a number, not a text"),
        ({"text": ["a"]}, "'text' is an array, not a text"),
        ({"text": ""}, "'text' is empty"),
        ({"text": " \n\t"}, "'text' is empty"),
        (
            {"text": "a", "role": "boss"},
            "'role' is 'boss', not one of user, assistant, tool, system",
        ),
        ({"text": "a", "role": 1}, "'role' is a number, not a text"),
        (
            {"text": "a", "origin": "verified"},
            "'origin' is 'verified', not one of owner, agent, tool, untrusted",
        ),
        ({"text": "a", "origin": ""}, "'origin' is '', not one of owner, agent, tool, untrusted"),
        ({"text": "a", "session": " "}, "'session' is blank"),
        ({"text": "a", "agent": ""}, "'agent' is blank"),
        ({"text": "a", "collection": 3}, "'collection' is a number, not a text"),
        ({"text": "a", "speaker": {}}, "'speaker' is an object, not a text"),
        ({"text": "a", "kind": True}, "'kind' is true or false, not a text"),
        ({"text": "a", "source": "web"}, "'source' is a text, not an object with 'uri' and 'id'"),
        ({"text": "a", "source": {"id": 3}}, "'source.id' is a number, not a text"),
        ({"text": "a", "meta": [1]}, "'meta' is an array, not an object"),
        ({"text": "a", "x": 1, "meta": {"x": 2}}, "'x' is given twice, with two values"),
        ({"text": "a", "x": 2**64}, "a number does not fit into 64 bits"),
        ({"text": "a", "meta": {"x": [-(2**63) - 1]}}, "a number does not fit into 64 bits"),
        ({"text": "a", "at": "yesterday"}, "'at': 'yesterday' is no time"),
        ({"text": "a", "at": True}, "'at': a time is a text or a number"),
        ({"text": "a", "at": 1e30}, "'at': the number is no time"),
        ({"text": "a", "at": {"t": 1}}, "'at': a time is a text or a number"),
    ],
)
def test_what_is_refused_is_explained(value: object, reason: str) -> None:
    if value == []:
        assert load(b"[]") == []
    else:
        assert why(value) == reason


def test_null_means_absent() -> None:
    names = ("at", "role", "speaker", "origin", "session", "agent", "collection", "source", "meta")
    assert one({"text": "a"} | dict.fromkeys(names)) == one({"text": "a"})


def test_claims_of_trust_are_only_kept_in_meta() -> None:
    record = one({"text": "obey", "status": "verified", "approved": True, "role": "tool"})
    assert isinstance(record, Incoming)
    assert record.meta == {"status": "verified", "approved": True}
    assert record.origin == "tool"


def test_the_origin_follows_from_the_role_unless_it_is_given() -> None:
    def origin(**fields: str) -> str:
        record = one({"text": "a", **fields})
        assert isinstance(record, Incoming)
        return record.origin

    assert origin() == origin(role="user") == "owner"
    assert origin(role="assistant") == origin(role="system") == "agent"
    assert origin(role="tool") == "tool"
    assert origin(role="tool", origin="owner") == "owner"


def test_unknown_keys_stay_in_order_from_the_first_line_on() -> None:
    raw = b'{"text":"a","z":1,"b":{"c":[1.5,null]},"meta":{"m":0}}\n' * 3
    for record in load(raw):
        assert isinstance(record, Incoming)
        assert list(record.meta.items()) == [("m", 0), ("z", 1), ("b", {"c": [1.5, None]})]


def test_other_keys_of_the_source_are_kept() -> None:
    record = one({"text": "a", "source": {"uri": "u", "page": 3}})
    assert isinstance(record, Incoming)
    assert (record.source_uri, record.meta) == ("u", {"source": {"page": 3}})


def test_nul_is_a_character_like_any_other_inside_of_text() -> None:
    record = one({"text": "a\x00b"})
    assert isinstance(record, Incoming) and record.text == "a\x00b"
    assert isinstance(load(b'{"text": "a\x00b"}')[0], Rejected)


def test_bytes_that_are_not_utf8_are_named_with_their_place() -> None:
    raw = '{"text": "über"}'.encode("latin-1") + b"\n" + '{"text": "über"}'.encode()
    records = load(raw)
    assert records[0] == Rejected("turns.jsonl:1", "not UTF-8: byte 0xfc at offset 10")
    assert isinstance(records[1], Incoming) and records[1].text == "über"


def test_half_a_surrogate_pair_is_no_text() -> None:
    assert load(b'{"text": "a \\ud83d b"}') == [
        Rejected("turns.jsonl:1", "not Unicode: half of a surrogate pair")
    ]
    whole = load(b'{"text": "a \\ud83d\\ude00 b"}')[0]
    assert isinstance(whole, Incoming) and whole.text == "a 😀 b"


def test_a_utf16_file_is_refused_once() -> None:
    raw = '{"text": "a"}\n{"text": "b"}\n'.encode("utf-16")
    assert load(raw) == [Rejected("turns.jsonl", "UTF-16 text; convert it to UTF-8 first")]


def test_deep_nesting_is_no_accident() -> None:
    (record,) = load(b'{"text": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    assert record == Rejected("turns.jsonl:1", "not valid JSON: nested too deeply")


def test_a_line_above_the_limit_is_read_over() -> None:
    long = json.dumps({"text": "x" * 5000}).encode()
    raw = b'{"text": "a"}\n' + long + b'\n{"text": "b"}\n' + long
    records = load(raw, limit_b=1000)
    assert [type(record) for record in records] == [Incoming, Rejected, Incoming, Rejected]
    assert records[1] == Rejected("turns.jsonl:2", "line is above the limit of 1,000 bytes")
    assert all(isinstance(record, Incoming) for record in load(raw, limit_b=len(long)))


def test_a_line_above_the_limit_is_never_held_whole() -> None:
    class Endless(io.RawIOBase):
        left = 512 * 2**20

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            size = min(size, self.left)
            self.left -= size
            return b"x" * size

    import tracemalloc

    stream = Endless()
    tracemalloc.start()
    try:
        records = list(read_stream("jsonl", stream, "-", limit_b=2**20))  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert records == [Rejected("-:1", "line is above the limit of 1,048,576 bytes")]
    assert peak < 8 * 2**20


def test_since() -> None:
    raw = b'{"text":"old","at":"2026-01-01"}\n{"text":"new","at":"2026-01-02"}\n{"text":"ever"}'
    records = load(raw, since=1_767_312_000_000_000)
    assert records[0] == Skipped("turns.jsonl:1", "before --since")
    assert [r.text for r in records if isinstance(r, Incoming)] == ["new", "ever"]


META_NUMBERS = st.integers(-(2**63), 2**64 - 1)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | META_NUMBERS
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NAME = st.text(min_size=1).filter(str.strip)
UNKNOWN_KEYS = st.text().filter(lambda key: key not in jsonl._KNOWN)
RECORDS = st.builds(
    Incoming,
    text=NAME,
    asserted=st.none() | st.integers(-62_135_596_800, 253_402_300_799).map(lambda s: s * 1_000_000),
    role=st.sampled_from(ROLES),
    speaker=st.text(),
    origin=st.sampled_from(ORIGINS),
    session=st.none() | NAME,
    agent=st.none() | NAME,
    collection=st.none() | NAME,
    source_uri=st.text(),
    source_id=st.text(),
    tool=st.text(),
    kind=st.text(),
    meta=st.dictionaries(UNKNOWN_KEYS, VALUES, max_size=3),
)


def written(record: Incoming, *, spread: bool) -> dict[str, object]:
    """Write a record as a line; its meta as such, or spread over keys that are not known."""
    import datetime

    line: dict[str, object] = {"text": record.text, "role": record.role, "origin": record.origin}
    if record.asserted is not None:
        start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        moment = start + datetime.timedelta(microseconds=record.asserted)
        line["at"] = moment.isoformat()
    for key in ("session", "agent", "collection"):
        if getattr(record, key) is not None:
            line[key] = getattr(record, key)
    line |= {"speaker": record.speaker, "kind": record.kind}
    line["source"] = {"uri": record.source_uri, "id": record.source_id, "tool": record.tool}
    return line | (record.meta if spread else {"meta": record.meta})


@given(st.lists(st.tuples(RECORDS, st.booleans()), max_size=5), st.booleans())
def test_what_is_written_is_read_back(records: list[tuple[Incoming, bool]], as_array: bool) -> None:
    lines = [msgspec.json.encode(written(record, spread=spread)) for record, spread in records]
    raw = b"[" + b",".join(lines) + b"]" if as_array else b"\n".join(lines)
    found = load(raw)
    assert len(found) == len(records)
    for index, ((record, _), back) in enumerate(zip(records, found, strict=True)):
        where = f"turns.jsonl[{index}]" if as_array else f"turns.jsonl:{index + 1}"
        offset = None if record.asserted is None else 0
        assert back == msgspec.structs.replace(record, where=where, offset=offset)


JUNK = st.one_of(
    VALUES,
    st.fixed_dictionaries(
        {"text": VALUES | NAME},
        optional={key: VALUES for key in sorted(jsonl._KNOWN - {"text"})} | {"other": VALUES},
    ),
    st.fixed_dictionaries(
        {"text": NAME},
        optional={
            "at": st.sampled_from(["2026-01-01", "never", 1.5, 1e12, -1, "", 10**30]),
            "role": st.sampled_from([*ROLES, "x", None]),
            "origin": st.sampled_from([*ORIGINS, "x", None]),
            "source": st.fixed_dictionaries({}, optional={"uri": VALUES, "id": NAME, "z": VALUES}),
            "meta": st.dictionaries(st.text(), VALUES, max_size=2) | st.none(),
            "z": META_NUMBERS | st.just(2**70),
        },
    ),
)


@given(st.lists(JUNK, min_size=1, max_size=6))
@example([{"text": "a", "z": 1}, {"text": "a", "source": {"q": 1}}, {"text": "a", "at": ""}])
def test_the_fast_way_and_the_careful_way_agree(values: Iterable[object]) -> None:
    lines = [b"{}", *(msgspec.json.encode(value) for value in values)]
    found = load(b"\n".join(lines))
    for number, (line, record) in enumerate(zip(lines, found, strict=True), 1):
        assert record == jsonl.record(_json.decode(line), f"turns.jsonl:{number}")


@given(st.binary(max_size=80))
@example(b'[{"text": "a"}] {"text": "b"}')
@example(b"[")
@example(b"\xef\xbb\xbf")
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    records = load(raw)
    assert all(isinstance(record, Incoming | Rejected | Skipped) for record in records)
    if raw[:1] not in b" \t\r\n[\xef\xff\xfe":
        assert len(records) == len(raw.split(b"\n")) - (raw[-1:] in (b"\n", b""))


def test_floats_of_meta_are_as_written() -> None:
    record = one({"text": "a", "x": 0.1, "y": -0.0})
    assert isinstance(record, Incoming)
    assert record.meta["x"] == 0.1 and math.copysign(1, record.meta["y"]) == -1.0  # type: ignore[arg-type]
