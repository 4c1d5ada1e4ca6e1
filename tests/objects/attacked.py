"""A small store, and the means to change it behind its back: for the tests of its check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from remem.objects import audit, encode, kv, oid, refs
from remem.objects import format as fmt
from remem.objects.admit import admit
from remem.objects.findings import Report
from remem.objects.fsck import verify
from remem.objects.model import Deriver, Incoming, Memory, Scope
from remem.objects.reader import Part
from remem.objects.scope import Actor, Grant, maintenance_grant
from remem.objects.store import Store, canon_path, read_generation
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


def tamper(root: Path, change: Callable[[kv.Txn], object]) -> None:
    """Change rows behind the store's back."""
    path = canon_path(str(root), read_generation(str(root)))
    kv.open_env(path, fmt.TABLES).write(change)
    kv.forget_env(path)


def check(root: Path, *, fast: bool = False, objects: bool = True) -> Report:
    """Verify the store in a folder, opened for reading only."""
    store = Store(str(root), readonly=True)
    try:
        return verify(store, fast=fast, objects=objects)
    finally:
        store.close()


def places(report: Report) -> set[str]:
    assert report.ok is (not report.problems)
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


def both(*changes: Callable[[kv.Txn], object]) -> Callable[[kv.Txn], None]:
    """Changes made one after the other in one transaction."""

    def change(txn: kv.Txn) -> None:
        for one in changes:
            one(txn)

    return change


def digest_of(data: bytes | None) -> bytes:
    return oid.digest(data or b"")


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


def rows_of(root: Path) -> list[tuple[str, bytes, bytes]]:
    with Store(str(root), readonly=True).read(maintenance_grant()) as reader:
        return [(t, key, value) for t in fmt.TABLES for key, value in reader.txn.scan(t)]
