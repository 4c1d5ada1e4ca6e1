"""The golden store: read by present code and by a reader written from the page alone."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import msgspec
import pytest

from remem.objects import encode, refs
from remem.objects import format as fmt
from remem.objects.admit import admit
from remem.objects.errors import NewerFormat, StoreCorrupt
from remem.objects.fsck import verify
from remem.objects.model import Incoming
from remem.objects.scope import maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx
from tests.formats import build, decoder

MAX_GOLDEN_B = 120_000


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """A copy of the golden store, as it is."""
    shutil.copytree(build.STORE, tmp_path / "store")
    return tmp_path / "store"


def rows(root: Path) -> dict[tuple[str, bytes], bytes]:
    """Every row of every table."""
    store = Store(str(root), readonly=True)
    with store.read(maintenance_grant()) as reader:
        found = {(t, key): value for t in fmt.TABLES for key, value in reader.txn.scan(t)}
    store.close()
    return found


def test_the_golden_store_is_small() -> None:
    assert (build.STORE / "canon" / "g1" / "data.mdb").stat().st_size < MAX_GOLDEN_B


def test_the_golden_store_verifies(golden: Path) -> None:
    store = Store(str(golden), readonly=True)
    report = verify(store)
    store.close()
    assert report.problems == []
    assert (report.audit.rows, report.objects.checked) == (29, 15)
    assert report.tombstones.count == 2
    # The store was begun before rows were attested: what is of then is told of.
    told = {warning.where: warning.what for warning in report.warnings}
    told = {where: what for where, what in told.items() if where.startswith("table ")}
    assert set(told) == {"table receipts", "table tombs"}
    assert all(what.startswith("1 row is of an earlier version") for what in told.values())


def test_the_golden_store_is_what_the_code_makes(golden: Path, tmp_path: Path) -> None:
    build.make_store(tmp_path / "fresh")
    assert rows(tmp_path / "fresh") == rows(golden)


def test_every_op_of_the_golden_store_is_in_its_log(golden: Path) -> None:
    """The store is worth little as a witness if it lacks what matters."""
    entries = [refs.decode_entry(v) for (t, _), v in rows(golden).items() if t == "log"]
    assert {refs.OPS[entry.op] for entry in entries} >= {
        "create", "revise", "rollback", "pin", "hold", "supersede", "close", "erase", "purge",
    }  # fmt: skip
    assert any(entry.origin is not None for entry in entries)
    assert {entry.type for entry in entries} == {refs.OBSERVATION, refs.MEMORY, refs.DRAFT}


def test_the_golden_store_takes_more(golden: Path) -> None:
    store = Store(str(golden))
    known = store.write(build.OWNER, lambda tx: admit(tx, Incoming(text="milk in first")))
    assert known.status == "new"
    again = store.write(build.OWNER, lambda tx: admit(tx, Incoming(text="milk in first")))
    assert again.status == "known"
    assert verify(store).ok
    store.close()
    decoder.Store(str(golden))


def test_what_was_stored_is_known_by_its_address(golden: Path) -> None:
    store = Store(str(golden))
    known = store.write(
        build.OWNER, lambda tx: admit(tx, Incoming(text="tea at four", session="evening"))
    )
    assert known.status == "known"
    store.close()


# -- the second reader ------------------------------------------------------------------------


def fresh(root: Path) -> None:
    """A store made by the present code, with the doors that people use."""
    store = Store.create(str(root))

    def change(tx: Tx) -> None:
        for number in range(300):
            session = f"s{number % 7}"
            text = f"turn {number}\r\n\u00e9" if number % 2 else f"turn {number}"
            source = str(number) if number % 3 else ""
            meta = {"n": number, "deep": [{"x": number * 1e9}]}
            admit(tx, Incoming(text=text, session=session, source_id=source, meta=meta))
        part = tx.part(build.SCOPE)
        for ref, state in list(tx.reader.states(part))[:20]:
            tx.record(part, "close", ref, state, valid_to=tx.now)

    store.write(build.OWNER, change)
    store.close()


def compare(root: Path) -> decoder.Store:
    """Read a store with both readers and compare all that they find."""
    second = decoder.Store(str(root))
    store = Store(str(root), readonly=True)
    with store.read(maintenance_grant()) as reader:
        assert {part.number: msgspec.to_builtins(part) for part in reader.parts}.keys() == set(
            second.parts
        )
        states, texts, entries = {}, {}, {}
        for part in reader.parts:
            entries[part.number] = [plain(entry) for entry in reader.log(part)]
            for ref, state in reader.states(part):
                states[part.number, ref] = plain(state)
                data = None if state.head is None else reader.object_bytes(part, state.head)
                if state.head is not None and data is not None:
                    obj = encode.read(data)
                    if isinstance(obj, encode.Obj):
                        texts[part.number, state.head] = obj.text
                    kind, elements = second.objects[part.number, state.head]
                    assert kind == type(obj).__name__.lower()
                    assert elements[1:] == plain(obj)
                    names = reader.lane(part, state.lane)
                    assert second.lanes[part.number, state.lane] == list(names)
        audited = [plain(row) for _, _, row in reader.audit_rows()]
    store.close()
    assert states == second.states
    assert entries == second.entries
    assert audited == second.rows
    assert texts == {key: second.text(*key) for key in texts}
    return second


def plain(record: msgspec.Struct) -> list[object]:
    """A record as the array that it is stored as."""
    found = decoder.unpack(msgspec.msgpack.encode(record))
    assert isinstance(found, list)
    return found[1:] if isinstance(record, encode.Stored) else found


def test_both_readers_find_the_same_in_the_golden_store(golden: Path) -> None:
    second = compare(golden)
    assert len(second.objects) == 15


def test_both_readers_find_the_same_in_a_new_store(tmp_path: Path) -> None:
    fresh(tmp_path / "store")
    second = compare(tmp_path / "store")
    assert len(second.objects) == 300
    assert len(second.rows) == 320


@pytest.mark.parametrize(
    ("table", "at", "what"),
    [
        ("audit", -1, "the chain is broken"),
        ("log", 20, "digest of an entry"),
        ("objects", -1, "id of an object"),
        ("refs", -1, "cached states"),
        ("receipts", -1, "attested receipt"),
        ("aliases", -1, "aliases"),
        ("chains", None, "row of a fact"),
    ],
)
def test_the_second_reader_sees_what_does_not_hold(
    golden: Path, table: str, at: int | None, what: str
) -> None:
    decoder.Store(str(golden))
    store = Store(str(golden))
    key, value = next((k, v) for (t, k), v in reversed(rows(golden).items()) if t == table)
    changed = bytearray(value)
    if at is None:
        store.env().write(lambda txn: txn.delete(table, key))
    else:
        changed[at] ^= 1
        store.env().write(lambda txn: txn.put(table, key, bytes(changed)))
    store.close()
    with pytest.raises(decoder.Wrong, match=what):
        decoder.Store(str(golden))


# -- other formats ----------------------------------------------------------------------------


def tree(root: Path) -> dict[str, str]:
    """Every file below a folder with a digest of its content."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("readonly", [False, True])
def test_a_newer_format_is_refused_before_anything_is_written(golden: Path, readonly: bool) -> None:
    Store(str(golden), readonly=readonly).close()  # format 1 opens
    (golden / "FORMAT").write_text("remem store 2\n")
    before = tree(golden)
    with pytest.raises(NewerFormat) as raised:
        Store(str(golden), readonly=readonly)
    assert raised.value.exit_code == 5
    assert "format 2" in str(raised.value)
    assert raised.value.hint
    with pytest.raises(NewerFormat):
        Store.create(str(golden))
    assert tree(golden) == before


@pytest.mark.parametrize("line", ["", "remem store 0\n", "remem store 1", "remem store two\n", "1"])
def test_anything_else_in_format_is_damage(golden: Path, line: str) -> None:
    (golden / "FORMAT").write_text(line)
    before = tree(golden)
    with pytest.raises(StoreCorrupt):
        Store(str(golden))
    assert tree(golden) == before


def test_an_object_of_a_later_kind_is_not_guessed() -> None:
    _, data = encode.seal(build.MINIMAL, build.HOME.key)
    assert encode.decode(data).text == "tea at four"
    later = data.replace(b"observation 1\0", b"observation 2\0")
    with pytest.raises(NewerFormat):
        encode.decode(later)
