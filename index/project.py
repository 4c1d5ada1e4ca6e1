"""From the ref log to the indexes: the projector.

Each partition keeps the number of the last log entry that was projected.  Entries behind it name
refs; for each the documents that should be there (every revision whose object is still there) are
compared with those that are, so the result depends on the canonical state alone, whatever happened
in between and however often a run was interrupted.

A document's vector is numbered by the log entry that brought its revision, so the numbers survive
a rebuild of the inverted index.
"""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING

import msgspec

from remem.index import lexical, seal
from remem.index.errors import IndexDamaged
from remem.index.fields import document
from remem.objects import disk, kv, lists, refs
from remem.objects import format as fmt
from remem.objects.errors import RememError, StoreLocked
from remem.objects.lock import hold
from remem.objects.scope import maintenance_grant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from remem.objects.reader import Part, Reader
    from remem.objects.scope import Grant
    from remem.objects.store import Store

BATCH = 4000  # log entries a transaction
LOCK = "index"
LEXICAL = "terms"
NEW = "-new"  # ends the name of one that is being built
VERSION = b"5"
_TRIES = 16
_ERASED = refs.STATUS_CODE["erased"]

Progress = "Callable[[str, int, int], None] | None"


class Projected(msgspec.Struct):
    """What a run did: documents added and removed, vectors made, entries left, seconds."""

    added: int = 0
    removed: int = 0
    vectors: int = 0
    pending_vectors: int = 0
    seconds: float = 0.0


def lexical_path(store: Store) -> str:
    """Folder of the inverted index of the present generation."""
    return os.path.join(store.index_path, LEXICAL)


def open_lexical(store: Store, *, write: bool) -> kv.Env | None:
    """The environment of the inverted index; None when there is none and write is not set.

    Raises:
        IndexDamaged: its file is not one that can be opened safely.
    """
    path = lexical_path(store)
    if not os.path.exists(os.path.join(path, "data.mdb")):
        if not write:
            return None
    else:
        seal.check_seal(path)
    try:
        return kv.open_env(
            path, lexical.TABLES, create=write, readonly=store.readonly and not write, sync=False
        )
    except RememError as error:
        raise IndexDamaged(f"cannot open the inverted index: {error}") from error


def make_folder(store: Store) -> None:
    """Make the folder of the projections, for their owner only."""
    try:
        disk.make_folders(store.index_path)
    except OSError as error:
        raise kv.translate(error, store.index_path) from error


def stamp() -> bytes:
    """Identity of the analysis: an index with another one is built anew."""
    from remem.index import analyze

    return VERSION + b"/" + analyze.stamp().encode()


def cursor_key(part: int) -> bytes:
    """Name of the mark that holds the last projected entry of a partition."""
    return b"c" + part.to_bytes(4, "big")


def cursor(txn: kv.Txn, part: int) -> int:
    """Number of the last projected entry of a partition."""
    return int.from_bytes(lexical.mark(txn, cursor_key(part)) or b"\0", "big")


def current_stamp(txn: kv.Txn) -> bool:
    """True when the index was built by the present analysis."""
    return lexical.mark(txn, b"stamp") == stamp()


def lag(store: Store, grant: Grant) -> dict[str, int] | None:
    """Log entries not yet projected, by collection; None when that cannot be told."""
    try:
        env = open_lexical(store, write=False)
        with store.read(grant) as reader:
            if env is None:
                return {p.collection: reader.last_seq(p) for p in reader.parts}
            with env.read() as txn:
                fresh = current_stamp(txn)
                return {
                    p.collection: reader.last_seq(p) - (cursor(txn, p.number) if fresh else 0)
                    for p in reader.parts
                }
    except RememError:
        return None


def project(
    store: Store,
    *,
    wait_s: float = 30.0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Projected:
    """Bring the inverted index up to the log, for every partition.

    Args:
        store: an open store.
        wait_s: how long to wait for another projector, seconds.
        progress: called with (what, done, of) now and then.

    Raises:
        StoreLocked: another process projects for longer than wait_s.
        IndexDamaged: what is there cannot be used; rebuild.
    """
    began = time.monotonic()
    done = Projected()
    with hold(store.locks_path, LOCK, wait_s=wait_s):
        make_folder(store)
        env = open_lexical(store, write=True)
        assert env is not None
        with seal.writing(lexical_path(store)):
            env.write(_check_stamp)
            with store.read(maintenance_grant()) as reader:
                for part in reader.parts:
                    _project_part(env, reader, part, done, progress)
    done.seconds = time.monotonic() - began
    return done


def try_project(store: Store, progress: Callable[[str, int, int], None] | None = None) -> bool:
    """Bring the inverted index up to date unless another process is at it; True when it is."""
    if not _behind(store):
        return True
    try:
        project(store, wait_s=0.0, progress=progress)
    except StoreLocked:
        return False
    return True


def rebuild(store: Store, *, progress: Callable[[str, int, int], None] | None = None) -> Projected:
    """Build the inverted index anew from the objects, whatever state it is in.

    The one that is there serves until the new one takes its place.
    """
    import shutil

    from remem.index import bulk

    began = time.monotonic()
    done = Projected()
    with hold(store.locks_path, LOCK, wait_s=60.0):
        fresh = lexical_path(store) + NEW  # a purge may have gone first, to another generation
        make_folder(store)
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            with seal.writing(fresh):
                done.added = bulk.build(store, fresh, progress)
            _take_place(store, fresh)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    done.seconds = time.monotonic() - began
    return done


def _behind(store: Store) -> bool:
    """True when some entry of the log is not projected, found out without a lock."""
    env = open_lexical(store, write=False)
    if env is None:
        return True
    with store.read(maintenance_grant()) as reader, env.read() as txn:
        if not current_stamp(txn):
            return True
        return any(cursor(txn, p.number) != reader.last_seq(p) for p in reader.parts)


def drop_lexical(store: Store) -> None:
    """Remove the files of the inverted index (the lock is held by the caller)."""
    path = lexical_path(store)
    kv.forget_env(path)
    if os.path.isdir(path):
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))


def _take_place(store: Store, fresh: str) -> None:
    """Put a folder where the inverted index is; a reader may just be looking at that one's seal."""
    path = lexical_path(store)
    for _ in range(_TRIES):
        drop_lexical(store)
        try:
            os.rename(fresh, path)
            break
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise kv.translate(error, path) from error
    else:
        raise StoreLocked(f"'{path}' is in use all the time")
    fmt.sync_folder(store.index_path)


def _check_stamp(txn: kv.Txn) -> None:
    """Empty an index that another analysis built."""
    if lexical.mark(txn, b"stamp") == stamp():
        return
    for number in lexical.parts(txn):
        lexical.clear(txn, number)
        lexical.set_mark(txn, cursor_key(number), None)
    lexical.set_mark(txn, b"stamp", stamp())


def _project_part(
    env: kv.Env,
    reader: Reader,
    part: Part,
    done: Projected,
    progress: Callable[[str, int, int], None] | None,
) -> None:
    last = reader.last_seq(part)
    while True:
        with env.read() as txn:
            at = cursor(txn, part.number)
        if at > last:  # the log is shorter than what was projected: another store's index
            env.write(lambda txn: _restart(txn, part.number))
            continue
        if at == last:
            return
        entries = list(reader.log(part, after=at, until=min(last, at + BATCH)))
        upto = min(last, at + BATCH)

        def change(
            txn: kv.Txn, entries: list[refs.Entry] = entries, upto: int = upto
        ) -> tuple[int, int]:
            counts = _apply(txn, reader, part, entries)
            lexical.set_mark(txn, cursor_key(part.number), upto.to_bytes(8, "big"))
            return counts

        added, removed = env.write(change)
        done.added += added
        done.removed += removed
        if progress is not None:
            progress("projecting", upto, last)


def _restart(txn: kv.Txn, number: int) -> None:
    lexical.clear(txn, number)
    lexical.set_mark(txn, cursor_key(number), None)


def _apply(txn: kv.Txn, reader: Reader, part: Part, entries: list[refs.Entry]) -> tuple[int, int]:
    """Make the documents of the refs that these entries name what they should be."""
    touched: dict[bytes, bool] = {}
    for entry in entries:
        touched[entry.ref] = touched.get(entry.ref, True) and entry.prev == 0
    fresh: list[lexical.DocIn] = []
    gone: list[tuple[bytes, bytes]] = []
    for ref, new in touched.items():
        wanted = dict(documents_of(reader, part, ref))
        if not new:
            there = {
                lexical.doc(txn, part.number, n).oid
                for n in lexical.docs_of_ref(txn, part.number, ref)
            }
            gone += [(ref, oid) for oid in there - wanted.keys()]
            wanted = {oid: seq for oid, seq in wanted.items() if oid not in there}
        for object_id, (seq, lane) in wanted.items():
            data = reader.object_bytes(part, object_id)
            if data is not None:
                fresh.append(document(ref, object_id, seq, lane, data))
    removed = lexical.remove(txn, part.number, gone) if gone else 0
    lexical.add(txn, part.number, fresh)
    return len(fresh), removed


def documents_of(reader: Reader, part: Part, ref: bytes) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """(object id, (entry that brought it, lane)) of every revision of a ref that may be found."""
    state = reader.state(part, ref)
    if state is not None and may_be_found(state) and not lists.is_brief(reader, part, ref):
        yield from revisions_in(reader, part, state)


def may_be_found(state: refs.RefState) -> bool:
    """Whether a ref in this state has documents: bookkeeping is not recalled.

    Neither is what opens a consolidation; its state does not tell.
    """
    return state.status != _ERASED and state.type <= refs.MEMORY


def revisions_in(
    reader: Reader, part: Part, state: refs.RefState
) -> Iterable[tuple[bytes, tuple[int, int]]]:
    """(object id, (entry that brought it, lane)) of every revision of a ref."""
    if state.first == state.last:
        return () if state.head is None else ((state.head, (state.first, state.lane)),)
    brought: dict[bytes, tuple[int, int]] = {}
    for entry in reader.entries(part, state):
        if entry.new is not None:
            brought[entry.new] = (entry.seq, state.lane)  # the oldest entry wins
    return brought.items()
