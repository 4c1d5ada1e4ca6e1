"""Removing the bytes of what was forgotten: the next generation is written without them.

``next_generation`` copies what lives, pair by pair, into a new environment (LMDB's own compact copy
keeps the slack of its pages, and with it bytes of what was deleted), records there what was left
out, and switches to it by renaming one file, all while it holds the write lock of the old one.
``sweep`` then removes the generations that have been left.

A crash leaves the old generation, with everything that waits still waiting, or the new one and
folders of the old; never a mixture.  ``leftover`` tells what such folders hold that was purged, so
that the next run can remove them and prove it.

Source: remem-store(5), GENERATIONS.
"""

from __future__ import annotations

import os
import shutil
import time
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec

from remem.objects import draft_rows, encode, kv, refs, tombs
from remem.objects import format as fmt
from remem.objects.errors import RememError
from remem.objects.forget_plan import ERASED, revisions
from remem.objects.model import Draft, Memory
from remem.objects.reader import Reader
from remem.objects.scope import maintenance_grant
from remem.objects.store import canon_path, read_generation
from remem.objects.tx import Tx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from remem.objects.encode import Stored
    from remem.objects.forget_plan import Item
    from remem.objects.kv import Txn
    from remem.objects.reader import Part
    from remem.objects.scope import Actor
    from remem.objects.store import Store

    _Skip = Callable[[bytes], bool]

_COPY_BATCH = 20_000  # pairs a transaction
_COPY_B = 32 << 20  # bytes a transaction
_COPY_CHUNK = 64  # pairs that are looked at together
_key_of = itemgetter(0)
_value_of = itemgetter(1)
DATA_FILE = "data.mdb"


class Removed(msgspec.Struct):
    """What is taken out.

    Attributes:
        refs: those whose bytes go, by number of their partition.
        objects: the objects themselves, kept in memory only, for the scan that proves them gone.
        numbers: of their vectors, by number of their partition.
    """

    refs: list[tuple[int, bytes]] = []
    objects: list[Stored] = []
    numbers: dict[int, list[int]] = {}


# -- what waits ---------------------------------------------------------------------------------


def waiting(reader: Reader) -> list[Item]:
    """Forgotten refs whose bytes are still there."""
    return [
        (part, ref)
        for part in reader.parts
        for ref, tomb in tombs.all_of(reader, part)
        if tomb.purged is None
    ]


def held_back(reader: Reader, items: Iterable[Item]) -> list[Item]:
    """Refs among these that a hold keeps."""
    found = []
    for part, ref in items:
        state = reader.state(part, ref)
        if state is not None and state.flags & refs.HELD:
            found.append((part, ref))
    return found


def with_derived(reader: Reader, items: Iterable[Item], wanted: set[bytes]) -> list[Item]:
    """Those of the refs that are wanted, and those that were derived from them.

    Args:
        reader: a snapshot.
        items: refs that wait.
        wanted: ids of refs.
    """
    waits = list(items)
    chosen = [(part, ref) for part, ref in waits if ref in wanted]
    own = {
        (part.number, object_id)
        for part, ref in chosen
        for object_id, _ in _objects(reader, part, ref)
    }
    for part, ref in waits:
        if ref in wanted or not own:
            continue
        for _, obj in _objects(reader, part, ref):
            if any((part.number, c) in own for c in _rests_on(obj)):
                chosen.append((part, ref))
                break
    return chosen


def _rests_on(obj: Stored) -> Iterable[bytes]:
    """Ids that an object rests on: what a memory cites, what a draft names."""
    if isinstance(obj, Draft):
        return draft_rows.named(obj)
    return obj.cites if isinstance(obj, Memory) else ()


def gather(reader: Reader, items: Iterable[Item]) -> Removed:
    """What purging these refs takes out."""
    found = Removed()
    for part, ref in items:
        state = reader.state(part, ref)
        if state is None:
            continue
        found.refs.append((part.number, ref))
        found.objects += [obj for _, obj in revisions(reader, part, state)]
        found.numbers.setdefault(part.number, []).extend(
            e.seq for e in reader.entries(part, state) if e.new is not None
        )
    return found


def _objects(reader: Reader, part: Part, ref: bytes) -> list[tuple[bytes, Stored]]:
    state = reader.state(part, ref)
    return [] if state is None else revisions(reader, part, state)


# -- the next generation ------------------------------------------------------------------------


def next_generation(store: Store, actor: Actor, items: list[Item]) -> tuple[int, list[bytes]]:
    """Write the next generation without the bytes of these refs, and switch to it.

    The caller holds the lock of purges and the one of the index, and has put the projections of the
    new generation in place.

    Args:
        store: an open store.
        actor: who purges.
        items: forgotten refs; those that do not wait any more, or are held, are passed over.

    Returns:
        The number of the new generation, and the refs that were purged.
    """

    def build(txn: Txn, number: int) -> tuple[int, list[bytes]]:
        new = number + 1
        path = canon_path(store.root, new)
        shutil.rmtree(path, ignore_errors=True)
        reader = Reader(txn, maintenance_grant())
        present = {(p.number, r): p for p, r in waiting(reader)}
        held = {(p.number, r) for p, r in held_back(reader, items)}
        chosen = [
            (present[p.number, r], r)
            for p, r in items
            if (p.number, r) in present and (p.number, r) not in held
        ]
        env = kv.open_env(path, fmt.TABLES, create=True, map_b=store.map_b, sync=False)
        try:
            left_out = _LeftOut(reader, chosen)
            for table in fmt.TABLES:
                copy_table(txn, env, table, left_out.of(table))
            env.write(lambda out: _record(out, actor, chosen))
        finally:
            kv.forget_env(path)
        flush(os.path.join(path, DATA_FILE))
        fmt.sync_folder(path)
        fmt.sync_folder(os.path.dirname(path))
        fmt.write_file(os.path.join(store.root, fmt.GENERATION_FILE), f"{new}\n")
        return new, [ref for _, ref in chosen]

    return store.switch(build)


class _LeftOut:
    """Keys of the rows that are not copied."""

    def __init__(self, reader: Reader, items: list[Item]) -> None:
        self.refs = {part.prefix + ref for part, ref in items}
        self.objects = {
            part.prefix + object_id
            for part, ref in items
            for object_id, _ in _objects(reader, part, ref)
        }

    def of(self, table: str) -> _Skip | None:
        """Tells whether a row of a table is left out; None where every row is copied."""
        if not self.refs:
            return None
        tables: dict[str, _Skip] = {
            "objects": self.objects.__contains__,
            "receipts": self.objects.__contains__,
            "cites": lambda key: key[:36] in self.objects or key[:4] + key[36:] in self.refs,
            "jobs": lambda key: key[:36] in self.refs,
            "chains": lambda key: key[:4] + key[20:] in self.refs,
            "proposed": lambda key: key[:4] + key[36:] in self.refs,
            "lists": lambda key: self._gone(key[:4] + key[5:]),
        }
        return tables.get(table)

    def _gone(self, key: bytes) -> bool:
        return key in self.objects or key in self.refs


def _record(out: Txn, actor: Actor, items: list[Item]) -> None:
    """Note in the new generation that the bytes of these refs are gone."""
    tx = Tx(out, actor, time.time_ns() // 1000)
    tx.reader = Reader(out, maintenance_grant())
    for part, ref in items:
        state = tx.reader.state(part, ref)
        tomb = tombs.get(tx.reader, part, ref)
        assert state is not None and tomb is not None
        tx.record(part, "purge", ref, state, reason=tomb.reason)
        tombs.put(tx, part, ref, msgspec.structs.replace(tomb, purged=tx.now))
    tx.finish()


def copy_table(txn: Txn, env: kv.Env, table: str, skip: _Skip | None = None) -> None:
    """Copy a table pair by pair into a fresh environment, without the keys that skip names."""
    for pairs in _batches(txn.pairs(table), skip):
        env.write(lambda out, pairs=pairs: out.put_many(table, pairs, True))  # type: ignore[misc]


def _batches(
    pairs: Iterator[tuple[bytes, bytes]], skip: _Skip | None
) -> Iterator[list[tuple[bytes, bytes]]]:
    batch: list[tuple[bytes, bytes]] = []
    size_b = 0
    while chunk := list(islice(pairs, _COPY_CHUNK)):
        if skip is not None and any(map(skip, map(_key_of, chunk))):
            chunk = [pair for pair in chunk if not skip(pair[0])]
        batch += chunk
        size_b += sum(map(len, map(_value_of, chunk)))
        if len(batch) >= _COPY_BATCH or size_b >= _COPY_B:
            yield batch
            batch, size_b = [], 0
    if batch:
        yield batch


def flush(path: str) -> None:
    """Bring a file to the disk."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- what was left ------------------------------------------------------------------------------


def others(root: str) -> list[str]:
    """Folders of generations other than the present one, relative to the store, canon/ last."""
    present = f"g{read_generation(root)}"
    found = []
    for kind in (fmt.INDEX, fmt.CANON):
        base = os.path.join(root, kind)
        for name in sorted(os.listdir(base) if os.path.isdir(base) else []):
            if name != present and name.startswith("g") and name[1:].isdigit():
                found.append(os.path.join(kind, name))
    return found


def leftover(store: Store) -> Removed:
    """What was purged and is still there, in the environments of generations that were left."""
    found = Removed()
    present = store.generation
    for name in others(store.root):
        kind, _, folder = name.partition(os.sep)
        path = os.path.join(store.root, name)
        old = kind == fmt.CANON and int(folder[1:]) < present
        if not old or not os.path.exists(os.path.join(path, DATA_FILE)):
            continue
        try:
            env = kv.open_env(path, fmt.TABLES, readonly=True)
            with env.read() as txn, store.read(maintenance_grant()) as reader:
                _gather_left(txn, reader, found)
        except RememError:
            continue  # it goes all the same; there is nothing to look for then
        finally:
            kv.forget_env(path)
    return found


def _gather_left(old: Txn, reader: Reader, found: Removed) -> None:
    for part in reader.parts:
        for ref, tomb in tombs.all_of(reader, part):
            state = reader.state(part, ref)
            if tomb.purged is None or state is None or state.status != ERASED:
                continue
            ids = {e.new for e in reader.entries(part, state) if e.new is not None}
            for object_id in sorted(ids):
                data = old.get("objects", part.prefix + object_id)
                if data is not None:
                    found.objects.append(encode.read(data))
                    if found.refs[-1:] != [(part.number, ref)]:
                        found.refs.append((part.number, ref))


def sweep(root: str, *, unfinished: bool = False) -> list[str]:
    """Remove generations other than the present one; their names relative to the store.

    Args:
        root: folder of the store.
        unfinished: only those that were being made.
    """
    names = others(root)
    if unfinished:
        present = read_generation(root)
        names = [name for name in names if int(os.path.basename(name)[1:]) > present]
    for name in names:
        path = os.path.join(root, name)
        for inner in (path, *(os.path.join(path, n) for n in os.listdir(path))):
            kv.forget_env(inner)  # those of projections lie one level deeper
        shutil.rmtree(path, ignore_errors=True)
    return names
