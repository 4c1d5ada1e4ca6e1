"""The golden vectors: present code gives format 1 exactly the bytes that it has always had."""

from __future__ import annotations

import json

import msgspec
import pytest

from remem.objects import audit, encode, oid, refs
from remem.objects.reader import decode_part
from tests.formats import build
from tests.formats.decoder import digest, read_object, unpack

GOLDEN = json.loads(build.VECTORS.read_text())
KEY = bytes.fromhex(GOLDEN["key"])


def test_the_vectors_are_what_the_code_makes() -> None:
    assert build.vectors() == GOLDEN


def test_the_file_is_what_the_script_writes() -> None:
    text = json.dumps(build.vectors(), indent=1, ensure_ascii=True) + "\n"
    assert build.VECTORS.read_text() == text


@pytest.mark.parametrize("name", GOLDEN["objects"])
def test_an_object_reads_back(name: str) -> None:
    golden = GOLDEN["objects"][name]
    data = bytes.fromhex(golden["bytes"])
    obj = encode.read(data)
    assert oid.digest(data).hex() == golden["id"]
    assert encode.salted_by(data, KEY)
    assert not encode.salted_by(data, bytes(32))
    assert msgspec.structs.replace(obj, salt=encode.ZERO_SALT) == build.OBJECTS[name]
    assert encode.seal(build.OBJECTS[name], KEY) == (bytes.fromhex(golden["id"]), data)


@pytest.mark.parametrize("name", GOLDEN["objects"])
def test_any_changed_byte_of_an_object_changes_its_id(name: str) -> None:
    golden = GOLDEN["objects"][name]
    data = bytes.fromhex(golden["bytes"])
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert oid.digest(changed).hex() != golden["id"]


@pytest.mark.parametrize("name", GOLDEN["entries"])
def test_an_entry_reads_back(name: str) -> None:
    golden = GOLDEN["entries"][name]
    data = bytes.fromhex(golden["bytes"])
    assert refs.decode_entry(data) == build.ENTRIES[name]
    assert oid.digest(data).hex() == golden["digest"]


def test_the_states_are_the_fold_of_the_entries() -> None:
    entries = [
        refs.decode_entry(bytes.fromhex(golden["bytes"])) for golden in GOLDEN["entries"].values()
    ]
    for count, golden in enumerate(GOLDEN["entries"].values(), start=1):
        state = refs.fold(entries[:count])
        assert state is not None
        assert refs.encode_state(state).hex() == golden["state"]


def test_what_attests_reads_back_and_encodes_the_same() -> None:
    """A field more, where there is something to attest: what lacks it is as long as ever."""
    golden = GOLDEN["attesting"]
    entry = refs.decode_entry(bytes.fromhex(golden["entry"]["bytes"]))
    assert (entry, entry.said()) == (build.ATTESTING_ENTRY, build.ATTESTS)
    assert refs.encode_entry(entry).hex() == golden["entry"]["bytes"]
    row = audit.decode_row(bytes.fromhex(golden["row"]["bytes"]))
    assert row == build.attesting_row() and row.said() is not None
    assert audit.encode_row(row).hex() == golden["row"]["bytes"]
    for name in GOLDEN["entries"]:
        assert refs.decode_entry(bytes.fromhex(GOLDEN["entries"][name]["bytes"])).said() is None
    said = digest(KEY, b"receipt", build.REF, b"\x92\xa0\x90", size=32)
    assert said.hex() == golden["receipt"]


def test_the_rows_are_chained() -> None:
    before = audit.ROOT
    for golden in GOLDEN["rows"].values():
        data = bytes.fromhex(golden["bytes"])
        assert audit.decode_row(data).prev == before
        before = audit.row_hash(data)
        assert before.hex() == golden["hash"]
    head = audit.decode_head(bytes.fromhex(GOLDEN["head"]))
    assert head == audit.Head(len(GOLDEN["rows"]), before)


def test_the_partition_reads_back() -> None:
    assert decode_part(bytes.fromhex(GOLDEN["part"])) == build.HOME


def test_the_digest_of_a_value_is_as_the_page_says() -> None:
    golden = GOLDEN["value"]
    assert golden["text"] != "tea at four"
    assert digest(KEY, b"value", b"tea at four", size=32).hex() == golden["digest"]
    source = digest(KEY, b"file:notes.txt", b"7")
    assert source.hex() == GOLDEN["source"]["digest"]


@pytest.mark.parametrize("group", ["objects", "entries", "rows", "attesting"])
def test_the_second_reader_finds_the_fields_in_the_bytes(group: str) -> None:
    """The fields listed beside the bytes are what a reader finds that knows only the page."""
    for golden in GOLDEN[group].values():
        if not isinstance(golden, dict):
            continue  # a digest
        data = bytes.fromhex(golden["bytes"])
        if group == "objects":
            _, elements, salted = read_object(data, KEY)
            assert salted
            elements = [bytes(16), *elements[2:]]
        else:
            elements = unpack(data)
        assert elements == [with_bytes(value) for value in golden["fields"].values()]


def with_bytes(value: object) -> object:
    """A value from JSON with its hex digits as bytes."""
    if isinstance(value, dict):
        if set(value) == {"hex"}:
            return bytes.fromhex(value["hex"])
        return {key: with_bytes(item) for key, item in value.items()}
    return [with_bytes(item) for item in value] if isinstance(value, list) else value


def test_records_gain_fields_only_at_their_end() -> None:
    """What a later version appends is ignored, what an earlier one lacks has its default."""
    data = bytes.fromhex(GOLDEN["entries"]["create"]["bytes"])
    elements = unpack(data)
    attesting = unpack(bytes.fromhex(GOLDEN["attesting"]["entry"]["bytes"]))
    grown = msgspec.msgpack.encode([*attesting, "of a later version"])
    assert refs.decode_entry(grown) == build.ATTESTING_ENTRY
    grown = msgspec.msgpack.encode([*elements, None, "of a later version"])
    assert refs.decode_entry(grown).said() is None
    assert elements[-1] is None  # origin, which the first entries did not have
    assert refs.decode_entry(msgspec.msgpack.encode(elements[:-1])) == build.ENTRIES["create"]
    with pytest.raises(msgspec.ValidationError):
        refs.decode_entry(msgspec.msgpack.encode(elements[:-2]))
