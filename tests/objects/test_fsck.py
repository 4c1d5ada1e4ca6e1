"""Attacks on a store: each one changes bytes behind the store's back and has to be found."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import audit, encode, kv, refs
from remem.objects import format as fmt
from remem.objects.admit import admit
from remem.objects.findings import Problem, Report
from remem.objects.fsck import verify
from remem.objects.model import Deriver, Incoming, Memory, Scope
from remem.objects.reader import Part, Reader
from remem.objects.scope import Actor, Grant, maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx

SCOPE = Scope("local", "default", "home", "none", "main")
GRANT = Grant("owner", "local", "default", None, owner=True)
ACTOR = Actor(GRANT, "cli", SCOPE)


class Facts(msgspec.Struct):
    """What the store of the attacks holds."""

    observations: list[bytes]
    memory: bytes  # cites observations 0 and 1
    revised: bytes  # ref with three entries: create, revise, pin
    revision: bytes  # its second object
    erased: bytes  # ref without an object
    source_key: bytes
    part: Part
    other: Part


def memory_of(tx: Tx, part: Part, text: str, cites: list[bytes]) -> bytes:
    """Store a memory as a ref of its own."""
    memory = Memory(
        encode.ZERO_SALT, SCOPE, "fact", text, None, cites, None, Deriver("test"), 900,
        None, None, None, [], "", [], {},
    )  # fmt: skip
    ref, data = encode.seal(memory, part.key)
    tx.txn.put("objects", part.prefix + ref, data)
    for cited in cites:
        tx.txn.put("cites", part.prefix + cited + ref, b"")
    tx.create(part, ref, kind=refs.MEMORY, lane=tx.lane(part, SCOPE), status="model_claim")
    return ref


def add(store: Store, **fields: object) -> bytes:
    """Add one observation in a transaction of its own."""
    record = msgspec.convert(fields, Incoming)
    return store.write(ACTOR, lambda tx: admit(tx, record)).id


def build(root: Path) -> Facts:
    """A small store with nearly every kind of row."""
    store = Store.create(str(root))
    ids = [add(store, text=f"observation {i}", session=f"s{i % 2}") for i in range(6)]
    ids.append(add(store, text="from a file", source_uri="file:a", source_id="7"))
    ids.append(add(store, text="elsewhere", collection="work"))

    def change(tx: Tx) -> tuple[bytes, bytes, bytes, Part, Part]:
        part = tx.part(SCOPE)
        other = tx.part(msgspec.structs.replace(SCOPE, collection="work"))
        memory = memory_of(tx, part, "a claim", ids[:2])
        revised = ids[4]
        reader = tx.reader
        first = reader.object(part, revised)
        assert not isinstance(first, Memory)
        better = msgspec.structs.replace(first, salt=encode.ZERO_SALT, text="a better text")
        revision = tx.put_object(part, better)
        state = reader.state(part, revised)
        assert state is not None
        tx.record(part, "revise", revised, state, new=revision)
        state = reader.state(part, revised)
        assert state is not None
        tx.record(part, "pin", revised, state)
        erased = ids[5]
        state = reader.state(part, erased)
        assert state is not None
        tx.record(part, "erase", erased, state, status="erased", reason="asked")
        tx.txn.delete("objects", part.prefix + erased)
        tx.refuse("release", "self_release", part.number, ids[0])
        return memory, revised, revision, part, other

    memory, revised, revision, part, other = store.write(ACTOR, change)
    with store.read(maintenance_grant()) as reader:
        source_key = next(key for key, _ in reader.txn.scan("sources"))
    store.close()
    return Facts(ids, memory, revised, revision, ids[5], source_key, part, other)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Facts]:
    root = tmp_path_factory.mktemp("attacked") / "store"
    return root, build(root)


@pytest.fixture
def attacked(built: tuple[Path, Facts], tmp_path: Path) -> tuple[Path, Facts]:
    """A copy of the store, to be changed."""
    shutil.copytree(built[0], tmp_path / "store")
    return tmp_path / "store", built[1]


def tamper(root: Path, change: Callable[[kv.Txn], object]) -> None:
    """Change rows behind the store's back."""
    path = str(root / "canon" / "g1")
    kv.open_env(path, fmt.TABLES).write(change)
    kv.forget_env(path)


def check(root: Path, **options: bool) -> Report:
    """Verify the store in a folder, opened for reading only."""
    store = Store(str(root), readonly=True)
    try:
        return verify(store, **options)
    finally:
        store.close()


def places(report: Report) -> set[str]:
    assert report.ok is not report.problems
    return {problem.where for problem in report.problems}


def number(seq: int) -> bytes:
    return seq.to_bytes(8, "big")


def edit_row(txn: kv.Txn, seq: int, **fields: object) -> None:
    row = audit.decode_row(txn.get("audit", number(seq)) or b"")
    txn.put("audit", number(seq), audit.encode_row(msgspec.structs.replace(row, **fields)))


def edit_entry(txn: kv.Txn, part: Part, seq: int, **fields: object) -> None:
    entry = refs.decode_entry(txn.get("log", part.prefix + number(seq)) or b"")
    data = refs.encode_entry(msgspec.structs.replace(entry, **fields))
    txn.put("log", part.prefix + number(seq), data)


def edit_state(txn: kv.Txn, key: bytes, **fields: object) -> None:
    state = refs.decode_state(txn.get("refs", key) or b"")
    txn.put("refs", key, refs.encode_state(msgspec.structs.replace(state, **fields)))


def chain_anew(txn: kv.Txn) -> None:
    """Link every row again and write the head, as one who can write the files would."""
    previous, seq = audit.ROOT, 0
    for seq, (key, data) in enumerate(list(txn.scan("audit")), start=1):
        row = msgspec.structs.replace(audit.decode_row(data), seq=seq, prev=previous)
        row_data = audit.encode_row(row)
        txn.delete("audit", key)
        txn.put("audit", number(seq), row_data)
        previous = audit.row_hash(row_data)
    txn.put("meta", b"audit", audit.encode_head(audit.Head(seq, previous)))


def last_row(txn: kv.Txn) -> int:
    return audit.decode_head(txn.get("meta", b"audit") or b"").seq


# -- the positive control ---------------------------------------------------------------------


def test_a_clean_store_verifies(attacked: tuple[Path, Facts]) -> None:
    root, _ = attacked
    report = check(root)
    assert report.problems == []
    assert report.ok
    assert report.warnings == []
    assert report.audit.rows == 13
    assert report.audit.first_bad is None
    assert report.objects.checked == 9
    assert (report.refs.checked, report.refs.entries) == (9, 12)
    assert (report.tombstones.count, report.tombstones.waiting) == (1, 0)
    with Store(str(root), readonly=True).read(maintenance_grant()) as reader:
        assert report.audit.head == reader.audit_head().hash.hex()


def test_an_empty_store_verifies(tmp_path: Path) -> None:
    Store.create(str(tmp_path / "store")).close()
    report = check(tmp_path / "store")
    assert report.ok
    assert report.audit.rows == report.objects.checked == 0
    assert report.audit.head == bytes(32).hex()


def test_a_chain_made_anew_from_unchanged_rows_verifies(attacked: tuple[Path, Facts]) -> None:
    tamper(attacked[0], chain_anew)  # the control of the attacks that use it
    assert check(attacked[0]).ok


def test_the_report_has_the_shape_of_the_command(attacked: tuple[Path, Facts]) -> None:
    shape = msgspec.to_builtins(check(attacked[0]))
    assert {"ok", "audit", "objects", "refs", "tombstones", "index", "problems"} <= set(shape)
    assert {"rows", "head"} <= set(shape["audit"])
    assert {"checked", "bad"} <= set(shape["objects"])
    tamper(attacked[0], lambda txn: edit_row(txn, 3, principal="mallory"))
    assert set(msgspec.to_builtins(check(attacked[0]))["problems"][0]) == {"where", "what"}


# -- attacks on the chain ---------------------------------------------------------------------

CHAIN_ATTACKS: dict[str, tuple[Callable[[kv.Txn], object], int]] = {
    "last row deleted": (lambda txn: txn.delete("audit", number(last_row(txn))), 13),
    "last three rows deleted": (
        lambda txn: [txn.delete("audit", number(last_row(txn) - i)) for i in range(3)],
        11,
    ),
    "first row deleted": (lambda txn: txn.delete("audit", number(1)), 1),
    "middle row deleted": (lambda txn: txn.delete("audit", number(5)), 5),
    "row edited": (lambda txn: edit_row(txn, 5, principal="mallory"), 5),
    "last row edited": (lambda txn: edit_row(txn, 13, outcome="done"), 13),
    "rows swapped": (
        lambda txn: [
            txn.put("audit", number(5), six)
            for five, six in [(txn.get("audit", number(5)) or b"", txn.get("audit", number(6)))]
            if six is not None and txn.put("audit", number(6), five) is None
        ],
        4,
    ),
    "row that does not decode": (lambda txn: txn.put("audit", number(5), b"\xc1"), 5),
    "row added": (
        lambda txn: txn.put("audit", number(14), txn.get("audit", number(13)) or b""),
        13,
    ),
    "head counter lowered": (
        lambda txn: txn.put("meta", b"audit", audit.encode_head(audit.Head(12, bytes(32)))),
        13,
    ),
}


@pytest.mark.parametrize("attack", CHAIN_ATTACKS)
def test_the_first_bad_position_of_the_chain_is_named(
    attacked: tuple[Path, Facts], attack: str
) -> None:
    root, _ = attacked
    change, position = CHAIN_ATTACKS[attack]
    tamper(root, change)
    for options in ({}, {"fast": True}):
        report = check(root, **options)
        assert not report.ok
        assert report.audit.first_bad == position
        assert f"audit {position}" in places(report)


def test_a_head_with_another_count_is_named_as_such(attacked: tuple[Path, Facts]) -> None:
    root, _ = attacked

    def change(txn: kv.Txn) -> None:
        head = audit.decode_head(txn.get("meta", b"audit") or b"")
        txn.put("meta", b"audit", audit.encode_head(audit.Head(head.seq + 1, head.hash)))

    tamper(root, change)
    assert places(check(root)) == {"meta audit"}
    tamper(root, lambda txn: txn.delete("meta", b"audit"))
    assert places(check(root)) == {"meta audit"}


def test_a_cut_tail_with_a_matching_head_leaves_an_entry_alone(
    attacked: tuple[Path, Facts],
) -> None:
    root, facts = attacked

    def change(txn: kv.Txn) -> None:
        txn.delete("audit", number(13))
        txn.delete("audit", number(12))
        chain_anew(txn)

    tamper(root, change)
    assert check(root, fast=True).ok  # the chain alone cannot know
    assert places(check(root)) == {f"log {facts.part.number}/11"}


def test_a_row_cut_out_with_a_chain_made_anew_leaves_an_entry_alone(
    attacked: tuple[Path, Facts],
) -> None:
    root, facts = attacked
    tamper(root, lambda txn: (txn.delete("audit", number(4)), chain_anew(txn)))
    assert check(root, fast=True).ok
    assert places(check(root)) == {f"log {facts.part.number}/4"}


def test_a_row_that_names_another_entry_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    tamper(root, lambda txn: (edit_row(txn, 4, entry=1 << 60), chain_anew(txn)))
    assert places(check(root)) == {"audit 4"}
    tamper(root, lambda txn: (edit_row(txn, 4, entry=2), chain_anew(txn)))
    assert places(check(root)) == {"audit 4"}
    tamper(root, lambda txn: (edit_row(txn, 4, entry=4, part=9), chain_anew(txn)))
    assert places(check(root)) == {"audit 4", f"log {facts.part.number}/4"}


@pytest.mark.parametrize(
    "fields",
    [
        {"principal": "mallory"},
        {"surface": "mcp"},
        {"action": "pin"},
        {"resource": bytes(32)},
        {"outcome": "refused"},
    ],
    ids=str,
)
def test_a_row_must_tell_what_its_entry_tells(
    attacked: tuple[Path, Facts], fields: dict[str, object]
) -> None:
    root, _ = attacked
    tamper(root, lambda txn: (edit_row(txn, 4, **fields), chain_anew(txn)))
    assert check(root, fast=True).ok
    assert places(check(root)) == {"audit 4"}


def test_record_time_going_backwards_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked

    def change(txn: kv.Txn) -> None:
        early = audit.decode_row(txn.get("audit", number(2)) or b"").time - 10**6
        edit_entry(txn, facts.part, 4, time=early)
        edit_state(txn, facts.part.prefix + facts.observations[3], created=early, changed=early)
        data = txn.get("log", facts.part.prefix + number(4)) or b""
        edit_row(txn, 4, time=early, digest=encode.blake3(data).digest())
        chain_anew(txn)

    tamper(root, change)
    report = check(root)
    assert places(report) == {"audit 4", f"log {facts.part.number}/4"}
    assert all("record time" in problem.what for problem in report.problems)
    assert report.audit.first_bad == 4


def test_a_clock_behind_the_last_row_is_found(attacked: tuple[Path, Facts]) -> None:
    root, _ = attacked
    clock = b"clock"
    tamper(root, lambda txn: txn.put("meta", clock, (1 << 62).to_bytes(8, "big", signed=True)))
    assert check(root).ok  # a clock ahead is no damage
    tamper(root, lambda txn: txn.put("meta", clock, (10**6).to_bytes(8, "big", signed=True)))
    assert places(check(root)) == {"meta clock"}
    tamper(root, lambda txn: txn.delete("meta", clock))
    assert places(check(root, fast=True)) == {"meta clock"}


# -- attacks on the ref log -------------------------------------------------------------------


def test_an_edited_entry_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    tamper(root, lambda txn: edit_entry(txn, facts.part, 3, reason="forged"))
    assert places(check(root)) == {f"log {facts.part.number}/3"}
    tamper(root, lambda txn: edit_entry(txn, facts.part, 3, status=1))
    assert places(check(root)) == {
        f"log {facts.part.number}/3",
        f"ref {facts.observations[2].hex()}",
    }


def test_a_deleted_entry_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    tamper(root, lambda txn: txn.delete("log", facts.part.prefix + number(3)))
    report = check(root)
    assert places(report) == {f"log {facts.part.number}/3", f"ref {facts.observations[2].hex()}"}
    assert report.refs.bad == [facts.observations[2].hex()]


def test_a_deleted_last_entry_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    tamper(root, lambda txn: txn.delete("log", facts.part.prefix + number(11)))
    ref = f"ref {facts.erased.hex()}"
    where = f"{facts.part.number}"
    assert places(check(root)) == {f"log {where}/11", f"heads {where}", ref}
    tamper(root, lambda txn: txn.put("heads", facts.part.prefix, number(10)))
    assert places(check(root)) == {f"log {where}/11", ref}


def test_an_entry_in_the_middle_of_a_chain_deleted_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    tamper(root, lambda txn: txn.delete("log", facts.part.prefix + number(9)))
    assert places(check(root)) >= {
        f"log {facts.part.number}/9",
        f"ref {facts.revised.hex()}",
    }


def test_an_added_entry_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    prefix = facts.part.prefix

    def append(txn: kv.Txn) -> None:
        txn.put("log", prefix + number(12), txn.get("log", prefix + number(1)) or b"")

    tamper(root, append)
    where = facts.part.number
    assert places(check(root)) == {f"log {where}/12", f"heads {where}"}
    foreign = bytes.fromhex("000000ff") + number(1)
    tamper(root, lambda txn: (txn.delete("log", prefix + number(12)), txn.put("log", foreign, b"")))
    assert places(check(root)) == {"log 255/1"}


def test_two_beginnings_of_one_ref_are_found(attacked: tuple[Path, Facts]) -> None:
    """A log that a second 'create' split: each entry and row is well, the older is on no chain."""
    root, facts = attacked
    part, ref = facts.part, facts.observations[0]

    def change(txn: kv.Txn) -> None:
        tx = Tx(txn, ACTOR, 0)
        tx.create(part, ref, kind=refs.OBSERVATION, lane=1, status="verified")
        tx.finish()

    tamper(root, change)
    assert f"log {part.number}/1" in places(check(root))


def test_an_edited_cache_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    single = facts.part.prefix + facts.observations[2]
    tamper(root, lambda txn: edit_state(txn, single, status=1))
    assert places(check(root)) == {f"ref {facts.observations[2].hex()}"}
    tamper(root, lambda txn: edit_state(txn, facts.part.prefix + facts.revised, flags=0))
    report = check(root)
    assert report.refs.bad == [facts.observations[2].hex(), facts.revised.hex()]


@pytest.mark.parametrize("last", [0, 1, 2, 8, 9, 99, 1 << 62])
def test_a_cache_that_ends_elsewhere_is_found(attacked: tuple[Path, Facts], last: int) -> None:
    root, facts = attacked
    tamper(root, lambda txn: edit_state(txn, facts.part.prefix + facts.revised, last=last))
    assert f"ref {facts.revised.hex()}" in places(check(root))


def test_a_cache_that_is_gone_or_too_many_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    key = facts.part.prefix + facts.observations[2]
    kept: list[bytes] = []
    tamper(root, lambda txn: (kept.append(txn.get("refs", key) or b""), txn.delete("refs", key)))
    assert f"ref {key[4:].hex()}" in places(check(root))
    tamper(root, lambda txn: txn.put("refs", key, kept[0]))
    assert check(root).ok
    ghost = facts.part.prefix + bytes(range(32))
    tamper(root, lambda txn: txn.put("refs", ghost, kept[0]))
    assert f"ref {ghost[4:].hex()}" in places(check(root))


def test_an_edited_counter_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    tamper(root, lambda txn: txn.put("heads", facts.part.prefix, number(99)))
    assert places(check(root)) == {f"heads {facts.part.number}"}
    tamper(root, lambda txn: txn.delete("heads", facts.part.prefix))
    assert places(check(root)) == {f"heads {facts.part.number}"}
    tamper(root, lambda txn: txn.put("heads", facts.part.prefix, number(11)))
    assert check(root).ok
    tamper(root, lambda txn: txn.put("heads", b"\0\0\0\x09", number(1)))
    assert places(check(root)) == {"heads 9"}


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
        data = txn.get("log", facts.part.prefix + number(1)) or b""
        edit_row(txn, 1, digest=encode.blake3(data).digest())
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
    tamper(root, lambda txn: txn.put("receipts", facts.part.prefix + facts.memory, b"\x92\xa0\x90"))
    assert check(root).ok
    tamper(root, lambda txn: txn.put("receipts", facts.part.prefix + bytes(32), b"\x92\xa0\x90"))
    assert places(check(root)) == {f"receipt {bytes(32).hex()}"}


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
    # row, and what of it may change: a clock ahead of the last row; when a partition was made
    ("meta", b"clock"),
    ("parts", b"n\0\0\0\1"),
    ("parts", b"n\0\0\0\2"),
}


def rows_of(root: Path) -> list[tuple[str, bytes, bytes]]:
    with Store(str(root), readonly=True).read(maintenance_grant()) as reader:
        return [(t, key, value) for t in fmt.TABLES for key, value in reader.txn.scan(t)]


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


# -- files ------------------------------------------------------------------------------------


def test_verify_writes_nothing(attacked: tuple[Path, Facts]) -> None:
    root, _ = attacked

    def state() -> dict[str, tuple[str, int]]:
        return {
            str(path.relative_to(root)): (
                hashlib.sha256(path.read_bytes()).hexdigest(),
                path.stat().st_mtime_ns,
            )
            for path in root.rglob("*")
            if path.is_file() and path.name != "lock.mdb"  # the table of readers
        }

    before = state()
    for path in [root, *root.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    report = check(root)
    assert report.ok
    assert state() == before
    for path in [root, *root.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    add(Store(str(root)), text="a write is seen by the same measure")
    assert state() != before


def test_modes_and_left_over_generations_are_warnings(attacked: tuple[Path, Facts]) -> None:
    root, _ = attacked
    (root / "canon" / "g1" / "data.mdb").chmod(0o644)
    (root / "spool").chmod(0o755)
    (root / "canon" / "g0").mkdir(mode=0o700)
    report = check(root)
    assert report.ok
    assert {warning.where for warning in report.warnings} == {
        "canon/g0",
        "canon/g1/data.mdb",
        "spool",
    }


def test_format_and_generation_are_looked_at(attacked: tuple[Path, Facts]) -> None:
    root, _ = attacked
    store = Store(str(root), readonly=True)
    (root / "FORMAT").write_text("remem store one\n")
    assert places(verify(store)) == {"FORMAT"}
    (root / "FORMAT").write_text(fmt.FORMAT_LINE)
    (root / "GENERATION").write_text("first\n")
    assert "GENERATION" in places(verify(store))
    (root / "GENERATION").write_text("2\n")
    assert "canon" in places(verify(store))
    (root / "GENERATION").write_text("1\n")
    assert verify(store).ok
    store.close()


DAMAGE = """
import random, sys
from remem.objects.fsck import verify
from remem.objects.store import Store
root, data_path = sys.argv[1], sys.argv[1] + "/canon/g1/data.mdb"
whole = open(data_path, "rb").read()
pages = len(whole) // 4096
for page in range(pages):
    for kind in ("zeros", "noise", "cut"):
        at = page * 4096
        filler = bytes(4096) if kind == "zeros" else random.Random(page).randbytes(4096)
        data = whole[:at] + filler + whole[at + 4096:] if kind != "cut" else whole[:at + 2048]
        with open(data_path, "wb") as file:
            file.write(data)
        store = Store(root, readonly=True)
        report = verify(store)
        store.close()
        print(kind, page, report.ok, *(p.where for p in report.problems), flush=True)
"""


def test_damaged_pages_are_named_and_never_end_the_process(
    attacked: tuple[Path, Facts],
) -> None:
    """In a process of its own: what this guards against is an abort or a bus error."""
    root, _ = attacked
    done = subprocess.run(
        [sys.executable, "-c", DAMAGE, str(root)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split(" ", 3) for line in done.stdout.splitlines()]
    assert len(lines) > 3 * 20
    found = [line for line in lines if line[2] == "False"]
    assert len(found) > len(lines) // 2  # the others are free pages or the older meta page
    assert all("table" in line[3] or "canon" in line[3] for line in found)


def test_a_short_file_that_lacks_only_unused_pages_is_sound(tmp_path: Path) -> None:
    """Pages given back within a transaction are counted, yet never written."""
    store = Store.create(str(tmp_path / "store"))
    add(store, text="kept")
    env = store.env()

    def change(txn: kv.Txn) -> None:
        keys = [i.to_bytes(8, "big") for i in range(9000)]
        for key in keys:
            txn.put("receipts", key, bytes(100))
        for key in keys:
            txn.delete("receipts", key)

    env.write(change)
    info = env.info()
    assert info["file_b"] < info["used_b"]  # else the test shows nothing
    store.close()
    assert check(tmp_path / "store").ok


# -- how it is run ----------------------------------------------------------------------------


def test_progress_is_told(attacked: tuple[Path, Facts]) -> None:
    told: list[tuple[str, int, int]] = []
    store = Store(str(attacked[0]), readonly=True)
    verify(store, progress=lambda *step: told.append(step))
    store.close()
    assert told[-1] == ("objects", 9, 9)
    assert ("audit", 13, 13) in told


def test_the_check_of_the_projections_is_the_callers(attacked: tuple[Path, Facts]) -> None:
    store = Store(str(attacked[0]), readonly=True)

    def index_check(reader: Reader) -> dict[str, object]:
        assert len(reader.parts) == 2
        return {"lag": 3, "problems": ["lost", {"where": "vectors", "what": "two rows"}]}

    report = verify(store, index_check=index_check)
    assert report.index == {"lag": 3}
    assert report.problems == [Problem("index", "lost"), Problem("vectors", "two rows")]
    assert verify(store, index_check=lambda _: {"lag": 0}).ok

    def broken(_: Reader) -> dict[str, object]:
        raise OSError(5, "Input/output error")

    assert places(verify(store, index_check=broken)) == {"index"}
    store.close()


def many(root: Path, count: int) -> None:
    store = Store.create(str(root))

    def change(tx: Tx) -> None:
        for i in range(count):
            admit(tx, Incoming(text=f"turn {i} at the harbour", session=f"s{i % 9}"))

    store.write(ACTOR, change)
    store.close()


def test_memory_does_not_grow_with_the_store(tmp_path: Path) -> None:
    peaks = []
    for count in (2_000, 20_000):
        root = tmp_path / str(count)
        many(root, count)
        tracemalloc.start()
        report = check(root)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert report.ok
        assert report.objects.checked == count
    assert peaks[1] < peaks[0] + 200_000, peaks
