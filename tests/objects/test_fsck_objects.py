"""Attacks on objects and the tables around them: each has to be found, under the right name."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import audit, encode, kv, purge, refs
from remem.objects.forget import forget
from remem.objects.pack_import import import_pack
from remem.objects.pack_write import export
from remem.objects.scope import maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx
from tests.objects.attacked import (
    ACTOR,
    GRANT,
    SCOPE,
    Facts,
    add,
    both,
    build,
    chain_anew,
    check,
    digest_of,
    edit_entry,
    edit_row,
    edit_state,
    memory_of,
    number,
    places,
    rows_of,
    tamper,
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Facts]:
    root = tmp_path_factory.mktemp("attacked") / "store"
    return root, build(root)


@pytest.fixture
def attacked(built: tuple[Path, Facts], tmp_path: Path) -> tuple[Path, Facts]:
    """A copy of the store, to be changed."""
    shutil.copytree(built[0], tmp_path / "store")
    return tmp_path / "store", built[1]


# -- attacks on objects -----------------------------------------------------------------------


def test_edited_text_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    key = facts.part.prefix + facts.observations[0]

    def change(txn: kv.Txn) -> None:
        data = txn.get("objects", key) or b""
        txn.put("objects", key, data.replace(b"observation 0", b"observation 9"))

    tamper(root, change)
    report = check(root)
    assert places(report) == {f"object {facts.observations[0].hex()}"}
    assert report.objects.bad == [facts.observations[0].hex()]
    assert check(root, objects=False).ok


def test_every_bad_object_is_named(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    bad = [facts.observations[i] for i in (0, 1, 3)]

    def change(txn: kv.Txn) -> None:
        for object_id in bad:
            data = txn.get("objects", facts.part.prefix + object_id) or b""
            txn.put("objects", facts.part.prefix + object_id, data[:-1])

    tamper(root, change)
    assert set(check(root).objects.bad) == {object_id.hex() for object_id in bad}


@pytest.mark.parametrize("which", ["first", "last", "memory", "revision", "old head"])
def test_a_deleted_object_is_found(attacked: tuple[Path, Facts], which: str) -> None:
    root, facts = attacked
    object_id = {
        "first": min(facts.observations[:4]),
        "last": facts.observations[7],
        "memory": facts.memory,
        "revision": facts.revision,
        "old head": facts.revised,
    }[which]
    prefix = facts.other.prefix if which == "last" else facts.part.prefix
    tamper(root, lambda txn: txn.delete("objects", prefix + object_id))
    report = check(root)
    assert f"object {object_id.hex()}" in places(report)
    assert object_id.hex() in report.objects.bad


def test_an_object_under_a_wrong_id_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    wrong = bytes(range(32))

    def change(txn: kv.Txn) -> None:
        data = txn.get("objects", facts.part.prefix + facts.observations[0]) or b""
        txn.put("objects", facts.part.prefix + wrong, data)

    tamper(root, change)
    report = check(root)
    assert report.objects.bad == [wrong.hex()]
    assert {problem.what for problem in report.problems} == {
        "it belongs to no ref",
        "its bytes do not have this id",
    }


def test_an_object_of_no_ref_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    stray: list[bytes] = []

    def change(txn: kv.Txn) -> None:
        data = txn.get("objects", facts.part.prefix + facts.observations[0]) or b""
        obj = msgspec.structs.replace(encode.decode(data), salt=encode.ZERO_SALT, text="stray")
        object_id, sealed = encode.seal(obj, facts.part.key)
        txn.put("objects", facts.part.prefix + object_id, sealed)
        stray.append(object_id)

    tamper(root, change)
    assert places(check(root)) == {f"object {stray[-1].hex()}"}


def test_an_object_moved_to_another_partition_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    moved = facts.observations[0]

    def change(txn: kv.Txn) -> None:
        data = txn.get("objects", facts.part.prefix + moved) or b""
        txn.put("objects", facts.other.prefix + moved, data)

    tamper(root, change)
    whats = {problem.what for problem in check(root).problems}
    assert "its salt was not made with the partition's key" in whats
    assert "its scope is not that of its partition" in whats


def test_an_object_shown_to_another_lane_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    ref = facts.observations[0]

    def change(txn: kv.Txn) -> None:
        state = refs.decode_state(txn.get("refs", facts.part.prefix + ref) or b"")
        lane = 3 - state.lane
        edit_state(txn, facts.part.prefix + ref, lane=lane)
        edit_entry(txn, facts.part, 1, lane=lane)
        edit_row(txn, 1, digest=digest_of(txn.get("log", facts.part.prefix + number(1))))
        chain_anew(txn)

    tamper(root, change)
    report = check(root)
    assert places(report) == {f"object {ref.hex()}"}
    assert report.problems[0].what == "its scope is not that of its ref"


def test_bytes_of_something_erased_are_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked

    def change(txn: kv.Txn) -> None:
        data = txn.get("objects", facts.part.prefix + facts.observations[0]) or b""
        obj = msgspec.structs.replace(
            encode.decode(data), salt=encode.ZERO_SALT, text="observation 5"
        )
        obj = msgspec.structs.replace(obj, scope=msgspec.structs.replace(SCOPE, session="s1"))
        object_id, sealed = encode.seal(obj, facts.part.key)
        assert object_id == facts.erased
        txn.put("objects", facts.part.prefix + object_id, sealed)

    tamper(root, change)
    report = check(root)
    assert places(report) == {f"object {facts.erased.hex()}"}
    assert report.tombstones.problems == report.problems

    def flag(txn: kv.Txn) -> None:
        tx = Tx(txn, ACTOR, 0)
        state = tx.reader.state(facts.part, facts.erased)
        assert state is not None
        tx.record(facts.part, "flag", facts.erased, state)
        tx.finish()

    tamper(root, flag)  # flagged: it waits for the purge that removes the bytes
    report = check(root)
    assert report.ok
    assert (report.tombstones.count, report.tombstones.waiting) == (1, 1)


# -- attacks on the tables around -------------------------------------------------------------


def test_a_removed_or_added_citation_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    prefix, memory = facts.part.prefix, facts.memory
    row = facts.observations[1] + memory
    where = f"cites {facts.observations[1].hex()} {memory.hex()}"
    tamper(root, lambda txn: txn.delete("cites", prefix + row))
    assert places(check(root)) == {where}
    tamper(root, lambda txn: txn.put("cites", prefix + row, b""))
    assert check(root).ok
    added = facts.observations[2] + memory
    tamper(root, lambda txn: txn.put("cites", prefix + added, b""))
    assert places(check(root)) == {f"cites {added[:32].hex()} {memory.hex()}"}


def test_a_memory_must_cite_observations_of_its_partition(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    part = facts.part

    def derive(cites: list[bytes]) -> list[str]:
        made: list[bytes] = []

        def change(txn: kv.Txn) -> None:
            tx = Tx(txn, ACTOR, 0)
            made.append(memory_of(tx, part, f"from {cites}", cites))
            tx.finish()

        tamper(root, change)
        where = f"object {made[0].hex()}"
        return [p.what for p in check(root).problems if p.where == where]

    assert derive([facts.observations[1]]) == []
    assert derive([facts.erased]) == []  # what was cited may be erased since
    assert check(root).ok
    memory, elsewhere = facts.memory, facts.observations[7]
    assert derive([memory]) == [f"it cites {memory.hex()}, which is no observation"]
    assert derive([elsewhere]) == [f"it cites {elsewhere.hex()}, which is not in its partition"]
    assert derive([]) == ["it is a memory that cites nothing"]


def test_a_revision_row_to_nowhere_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    prefix = facts.part.prefix
    row = prefix + facts.revision
    tamper(root, lambda txn: txn.put("revs", row, bytes(32)))
    assert f"rev {facts.revision.hex()}" in places(check(root))
    tamper(root, lambda txn: txn.delete("revs", row))
    assert f"rev {facts.revision.hex()}" in places(check(root))
    tamper(root, lambda txn: txn.put("revs", row, facts.revised))
    assert check(root).ok
    ghost = bytes(range(32))
    tamper(root, lambda txn: txn.put("revs", prefix + ghost, bytes(32)))
    assert places(check(root)) == {f"rev {ghost.hex()}"}
    tamper(root, lambda txn: txn.put("revs", prefix + ghost, facts.revised))
    report = check(root)
    assert [p.where for p in report.problems] == [f"rev {ghost.hex()}"]
    assert "never" in report.problems[0].what


def test_a_source_row_to_nowhere_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    where = f"source {facts.source_key[4:].hex()}"
    tamper(root, lambda txn: txn.put("sources", facts.source_key, facts.observations[0]))
    assert places(check(root)) == {where}
    tamper(root, lambda txn: txn.delete("sources", facts.source_key))
    assert places(check(root)) == {where}
    tamper(root, lambda txn: txn.put("sources", facts.source_key, facts.observations[6]))
    assert check(root).ok
    stray = facts.part.prefix + bytes(16)
    tamper(root, lambda txn: txn.put("sources", stray, bytes(32)))
    assert places(check(root)) == {f"source {bytes(16).hex()}"}


def test_a_receipt_of_nothing_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    tamper(root, lambda txn: txn.put("receipts", facts.part.prefix + bytes(32), b"\x92\xa0\x90"))
    assert places(check(root)) == {f"receipt {bytes(32).hex()}"}


def test_rows_that_lead_from_a_successor_are_checked(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    part, old, new = facts.part, facts.observations[2], facts.observations[3]

    def change(txn: kv.Txn) -> None:
        tx = Tx(txn, ACTOR, 0)
        state = tx.reader.state(part, old)
        assert state is not None
        tx.record(part, "supersede", old, state, replaced_by=new)
        tx.finish()

    tamper(root, change)
    assert check(root).ok
    where = f"replaces {new.hex()} {old.hex()}"
    tamper(root, lambda txn: txn.delete("replaces", part.prefix + new + old))
    assert places(check(root)) == {where}
    tamper(root, lambda txn: txn.put("replaces", part.prefix + new + old, b""))
    assert check(root).ok
    tamper(root, lambda txn: txn.put("replaces", part.prefix + old + new, b""))
    assert places(check(root)) == {f"replaces {old.hex()} {new.hex()}"}


def test_chains_aliases_and_jobs_lead_somewhere(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    part = facts.part
    key, gone = bytes(range(16)), bytes(range(32))
    alias = msgspec.msgpack.encode(("NYC", "New York"))

    def put(table: str, row: bytes, value: bytes = b"") -> None:
        tamper(root, lambda txn: txn.put(table, part.prefix + row, value))

    put("jobs", facts.observations[0] + b"rules", b"\x94\x00\x00\xa0\xc2")
    assert check(root).ok
    put("chains", key + facts.observations[0])
    assert places(check(root)) == {f"chain {key.hex()}"}
    put("aliases", key, alias)
    put("jobs", gone + b"rules", b"\x94\x00\x00\xa0\xc2")
    assert places(check(root)) == {
        f"chain {key.hex()}",
        f"alias {key.hex()}",
        "aliases 1",
        f"job {gone.hex()}",
    }


def test_tombstones_and_values_are_checked(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    part, ref = facts.part, facts.observations[3]
    store = Store(str(root))
    store.write(ACTOR, lambda tx: forget(tx, part, ref, reason="asked"))
    assert check(root).ok  # its bytes wait for the purge
    assert check(root).tombstones.waiting == 1
    purge.next_generation(store, ACTOR, [(part, ref)])
    store.close()
    purge.sweep(str(root))
    report = check(root)
    assert report.ok
    assert (report.tombstones.count, report.tombstones.waiting) == (2, 0)

    kept = {(t, key): value for t, key, value in rows_of(root) if t in ("tombs", "values")}
    (tomb_key,) = (key for table, key in kept if table == "tombs")
    (value_key,) = (key for table, key in kept if table == "values")
    tomb, value = f"tombstone {ref.hex()}", f"value {value_key[4:].hex()}"

    def put_back(txn: kv.Txn) -> None:
        for (table, key), data in kept.items():
            txn.put(table, key, data)

    tamper(root, lambda txn: txn.delete("values", value_key))
    assert places(check(root)) == {tomb}
    tamper(root, both(put_back, lambda txn: txn.delete("tombs", tomb_key)))
    assert places(check(root)) == {tomb, value}
    tamper(root, both(put_back, lambda txn: txn.put("values", value_key, facts.memory)))
    assert places(check(root)) == {value}
    other = part.prefix + facts.observations[0]
    tamper(root, both(put_back, lambda txn: txn.put("tombs", other, kept["tombs", tomb_key])))
    report = check(root)
    assert places(report) == {f"tombstone {facts.observations[0].hex()}"}
    assert report.tombstones.problems == report.problems
    tamper(root, both(put_back, lambda txn: txn.put("tombs", other, b"\xc1")))
    assert places(check(root)) == {f"tombstone {facts.observations[0].hex()}"}
    tamper(root, both(put_back, lambda txn: txn.delete("tombs", other)))
    assert check(root).ok


def test_bytes_that_a_purge_left_are_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    part, ref = facts.part, facts.revised
    kept = [(key, v) for t, key, v in rows_of(root) if t == "objects"]
    store = Store(str(root))
    store.write(ACTOR, lambda tx: forget(tx, part, ref))
    purge.next_generation(store, ACTOR, [(part, ref)])
    store.close()
    purge.sweep(str(root))
    assert check(root).ok
    for left in (ref, facts.revision):
        key = part.prefix + left
        tamper(root, lambda txn, key=key: txn.put("objects", key, dict(kept)[key]))  # type: ignore[misc]
        report = check(root)
        assert places(report) == {f"object {left.hex()}"}
        assert report.tombstones.problems == report.problems
        tamper(root, lambda txn, key=key: txn.delete("objects", key))  # type: ignore[misc]


def test_renamed_lanes_and_partitions_are_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    lane = facts.part.prefix + b"n" + (1).to_bytes(4, "big")
    kept: list[bytes] = []
    tamper(root, lambda txn: kept.append(txn.get("lanes", lane) or b""))
    tamper(root, lambda txn: txn.put("lanes", lane, msgspec.msgpack.encode(("none", "s9"))))
    assert f"lane {facts.part.number}/1" in places(check(root))
    tamper(root, lambda txn: txn.put("lanes", lane, kept[0]))
    assert check(root).ok
    key = b"n" + facts.part.prefix
    renamed = msgspec.msgpack.encode(msgspec.structs.replace(facts.part, collection="mine"))
    tamper(root, lambda txn: txn.put("parts", key, renamed))
    assert f"part {facts.part.number}" in places(check(root))
    rekeyed = msgspec.msgpack.encode(msgspec.structs.replace(facts.part, key=bytes(32)))
    tamper(root, lambda txn: txn.put("parts", key, rekeyed))
    assert len(check(root).objects.bad) == 8  # every salt of the partition


UNCHECKED = {
    # row, and what of it may change: when a partition was made
    ("parts", b"n\0\0\0\1"),
    ("parts", b"n\0\0\0\2"),
}


@given(data=st.data())
def test_any_row_deleted_or_changed_in_one_bit_is_found(
    built: tuple[Path, Facts], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    rows = rows_of(built[0])
    table, key, value = data.draw(st.sampled_from(rows))
    changes = ["delete"] + ["flip"] * (len(value) > 0 and (table, key) not in UNCHECKED)
    how = data.draw(st.sampled_from(changes))
    bit = data.draw(st.integers(0, max(0, 8 * len(value) - 1)))
    root = tmp_path_factory.mktemp("flip") / "store"
    shutil.copytree(built[0], root)

    def change(txn: kv.Txn) -> None:
        if how == "delete":
            txn.delete(table, key)
        else:
            flipped = bytearray(value)
            flipped[bit // 8] ^= 1 << bit % 8
            txn.put(table, key, bytes(flipped))

    tamper(root, change)
    report = check(root)
    assert not report.ok
    shutil.rmtree(root)


# -- packs ------------------------------------------------------------------------------------


def imported(built: tuple[Path, Facts], root: Path) -> Facts:
    """Take a pack of the built store into a new one, which holds one of its texts already."""
    pack = io.BytesIO()
    store = Store(str(built[0]), readonly=True)
    export(store, GRANT, pack)
    store.close()
    other = Store.create(str(root))
    add(other, text="observation 2", session="s0")
    pack.seek(0)
    done = import_pack(other, ACTOR, pack, trust=True)
    assert (done.new, done.rejected) == (12, 0)
    with other.read(maintenance_grant()) as reader:
        part = next(part for part in reader.parts if part.collection == "home")
    other.close()
    return msgspec.structs.replace(built[1], part=part)


def test_what_a_pack_brought_verifies(built: tuple[Path, Facts], tmp_path: Path) -> None:
    imported(built, tmp_path / "store")
    report = check(tmp_path / "store")
    assert report.problems == []
    assert report.objects.checked == 10
    assert report.tombstones.count == 1


def test_an_id_that_stands_for_an_object_of_a_pack_is_checked(
    built: tuple[Path, Facts], tmp_path: Path
) -> None:
    root = tmp_path / "store"
    facts = imported(built, root)
    ref = facts.observations[0]
    twin = next(key for table, key, value in rows_of(root) if table == "sources" and value == ref)
    where = f"source {twin[4:].hex()}"
    tamper(root, lambda txn: txn.delete("sources", twin))
    assert places(check(root)) == {where}
    tamper(root, lambda txn: txn.put("sources", twin, bytes(32)))
    assert places(check(root)) == {where}
    tamper(root, lambda txn: txn.put("sources", twin, ref))
    assert check(root).ok


def test_an_object_of_a_pack_needs_an_entry_that_a_pack_brought(
    built: tuple[Path, Facts], tmp_path: Path
) -> None:
    root = tmp_path / "store"
    facts = imported(built, root)
    part = facts.part
    ref = facts.observations[0]
    seq = next(
        refs.decode_entry(data).seq
        for table, key, data in rows_of(root)
        if table == "log" and key[:4] == part.prefix and refs.decode_entry(data).ref == ref
    )
    row = next(
        int.from_bytes(key, "big")
        for table, key, data in rows_of(root)
        if table == "audit" and audit.decode_row(data).resource == ref
    )

    def change(txn: kv.Txn) -> None:
        edit_entry(txn, part, seq, origin=None)
        edit_row(txn, row, digest=digest_of(txn.get("log", part.prefix + number(seq))))
        chain_anew(txn)

    tamper(root, change)
    assert f"object {ref.hex()}" in places(check(root))
