"""Removing the bytes of what was forgotten from the canonical environment.

1. ``remove`` deletes objects and every row that leads to them, in one transaction, and marks that a
   compaction is due.
2. ``next_generation`` copies what lives, pair by pair, into a new environment (LMDB's own compact
   copy keeps the slack of its pages, and with it bytes of what was deleted) and switches to it by
   renaming one file, while it holds the write lock of the old one.
3. ``sweep`` removes generations that have been left.

A crash leaves the old generation or the new one; the mark of 1 lives in the old one only, so the
next run knows what is left to do.

Source: remem-store(5), GENERATIONS.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import msgspec

from remem.objects import forget, kv, refs, tombs
from remem.objects import format as fmt
from remem.objects.model import Observation
from remem.objects.store import canon_path, read_generation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from remem.objects.kv import Txn
    from remem.objects.reader import Part, Reader
    from remem.objects.store import Store
    from remem.objects.tx import Tx

DUE_KEY = b"compact"  # in ``meta``: bytes were deleted that a compaction has still to drop
_COPY_BATCH = 20_000


class Removed(msgspec.Struct):
    """What was taken out: refs, objects, their vectors' numbers by partition, and the bytes.

    ``texts`` and ``raws`` are kept in memory only, for the scan that proves them gone.
    """

    refs: list[bytes] = []
    objects: int = 0
    numbers: dict[int, list[int]] = {}
    texts: list[str] = []
    raws: list[bytes] = []


def waiting(reader: Reader) -> list[tuple[Part, bytes]]:
    """Forgotten refs whose bytes are still there."""
    return [
        (part, ref)
        for part in reader.parts
        for ref, tomb in tombs.all_of(reader, part)
        if tomb.purged is None
    ]


def compaction_due(reader: Reader) -> bool:
    """Whether an earlier run deleted and did not come to compact."""
    return reader.txn.get("meta", DUE_KEY) is not None


def remove(tx: Tx, items: Iterable[tuple[Part, bytes]]) -> Removed:
    """Delete the objects of forgotten refs and the rows that lead to them."""
    done = Removed()
    sources: dict[bytes, list[bytes]] = {}
    wanted = list(items)
    gone = {part.prefix + ref for part, ref in wanted}
    for number in {part.number for part, _ in wanted}:
        prefix = number.to_bytes(4, "big")
        for key, ref in tx.txn.scan_prefix("sources", prefix):
            if prefix + ref in gone:
                sources.setdefault(prefix + ref, []).append(key)
    for part, ref in wanted:
        state = tx.reader.state(part, ref)
        tomb = tombs.get(tx.reader, part, ref)
        if state is None or tomb is None or tomb.purged is not None:
            continue
        for object_id, obj in forget.objects_of(tx, part, state):
            done.texts.append(obj.text)
            if isinstance(obj, Observation) and obj.raw is not None:
                done.raws.append(obj.raw)
            tx.txn.delete("objects", part.prefix + object_id)
            tx.txn.delete("receipts", part.prefix + object_id)
            tx.txn.delete_prefix("cites", part.prefix + object_id)
            done.objects += 1
        tx.txn.delete_prefix("jobs", part.prefix + ref)
        for key in sources.get(part.prefix + ref, []):
            tx.txn.delete("sources", key)
        done.numbers.setdefault(part.number, []).extend(
            e.seq for e in tx.reader.entries(part, state) if e.new is not None
        )
        tx.record(part, "purge", ref, state, reason=tomb.reason)
        tombs.put(tx, part, ref, msgspec.structs.replace(tomb, purged=tx.now))
        done.refs.append(ref)
    if done.refs:
        tx.txn.put("meta", DUE_KEY, b"1")
    return done


def next_generation(store: Store, beside: Callable[[int], None]) -> int:
    """Copy what lives into a new generation and switch to it.

    Args:
        store: an open store.
        beside: called with the number of the new generation before the switch, to put its
            projections in place.

    Returns:
        The number of the new generation.
    """

    def build(txn: Txn, number: int) -> int:
        new = number + 1
        path = canon_path(store.root, new)
        shutil.rmtree(path, ignore_errors=True)
        env = kv.open_env(path, fmt.TABLES, create=True, map_b=store.map_b)
        try:
            for table in fmt.TABLES:
                copy_table(txn, env, table, skip=DUE_KEY if table == "meta" else None)
        finally:
            kv.forget_env(path)
        fmt.sync_folder(path)
        fmt.sync_folder(os.path.dirname(path))
        beside(new)
        fmt.write_file(os.path.join(store.root, fmt.GENERATION_FILE), f"{new}\n")
        return new

    return store.switch(build)


def copy_table(txn: Txn, env: kv.Env, table: str, *, skip: bytes | None = None) -> None:
    """Copy a table pair by pair into a fresh environment."""
    batch: list[tuple[bytes, bytes]] = []

    def flush() -> None:
        pairs = list(batch)
        env.write(lambda out: out.put_many(table, pairs, True))
        batch.clear()

    for key, value in txn.scan(table):
        if key != skip:
            batch.append((key, bytes(value)))
        if len(batch) >= _COPY_BATCH:
            flush()
    if batch:
        flush()


def sweep(root: str) -> list[str]:
    """Remove generations other than the present one, and parts of unfinished ones."""
    present = f"g{read_generation(root)}"
    removed = []
    for kind in (fmt.CANON, fmt.INDEX):
        base = os.path.join(root, kind)
        for name in sorted(os.listdir(base) if os.path.isdir(base) else []):
            if name != present and name.startswith("g") and name[1:].isdigit():
                path = os.path.join(base, name)
                kv.forget_env(path)
                shutil.rmtree(path, ignore_errors=True)
                removed.append(os.path.join(kind, name))
    return removed


def held_back(reader: Reader, items: Iterable[tuple[Part, bytes]]) -> list[bytes]:
    """Refs among these that a hold keeps."""
    found = []
    for part, ref in items:
        state = reader.state(part, ref)
        if state is not None and state.flags & refs.HELD:
            found.append(ref)
    return found
