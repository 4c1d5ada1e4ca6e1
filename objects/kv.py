"""Ordered key-value tables over LMDB: the only module that imports lmdb.

One environment holds a fixed set of named tables.  Reads run on snapshots and never wait; one write
transaction at a time, across processes.  The map grows by itself in every process, an environment
that crossed a fork is opened anew, and each LMDB error becomes one of ours.

A write is a function of the transaction.  It may be run again (the map was grown, the file was
replaced meanwhile), so it must not keep results of a run that failed.

Source: LMDB 0.9 documentation, "Caveats" and mdb_env_set_mapsize.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import lmdb

from remem.objects.errors import (
    IntegrityError,
    NetworkFilesystem,
    RememError,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreMissing,
    StoreReadOnly,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
Handle = Any  # lmdb._Database: the type has no public name

MAX_KEY_B = 511
MAX_READERS = 2048
DEFAULT_MAP_B = 1 << 36  # address space only: the file holds what was written
MIN_MAP_B = 1 << 20
_NETWORK_TYPES = frozenset(
    "nfs nfs4 cifs smb3 smbfs smb2 afs ncpfs 9p fuse.sshfs ceph glusterfs fuse.glusterfs "
    "beegfs lustre webdav davfs fuse.davfs2 gfs2 ocfs2 virtiofs".split()
)
_STALE_CHECK_S = 60.0


class Txn:
    """One transaction: point reads, ordered scans and, when it is a write, changes."""

    __slots__ = ("_dbs", "_raw", "writable")

    def __init__(self, raw: lmdb.Transaction[Any], dbs: dict[str, Handle], writable: bool) -> None:
        """Wrap an LMDB transaction with the handles of the tables."""
        self._raw = raw
        self._dbs = dbs
        self.writable = writable

    def get(self, table: str, key: bytes) -> bytes | None:
        """Value of a key, or None; a memoryview in a snapshot opened with buffers."""
        value: bytes | None = self._raw.get(key, None, self._dbs[table])
        return value

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """Store a value under a key, replacing what was there."""
        self._raw.put(key, value, True, True, False, self._dbs[table])

    def put_new(self, table: str, key: bytes, value: bytes) -> bool:
        """Store a value unless the key exists; True when it was stored."""
        return bool(self._raw.put(key, value, True, False, False, self._dbs[table]))

    def put_many(self, table: str, items: Iterable[tuple[bytes, bytes]], append: bool) -> None:
        """Store many pairs in one call; with append they must be sorted and beyond the last key."""
        cursor = self._raw.cursor(self._dbs[table])
        try:
            cursor.putmulti(items, dupdata=False, overwrite=True, append=append)
        finally:
            cursor.close()

    def delete(self, table: str, key: bytes) -> bool:
        """Remove a key; True when it was there."""
        return bool(self._raw.delete(key, b"", self._dbs[table]))

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Pairs with start <= key < stop (stop None: to the end), in key order or reversed."""
        cursor = self._raw.cursor(self._dbs[table])
        try:
            if reverse:
                found = cursor.set_range(stop) if stop is not None else False
                found = cursor.prev() if found else cursor.last()
                while found:
                    key = bytes(cursor.key())
                    if key < start:
                        return
                    yield key, cursor.value()
                    found = cursor.prev()
                return
            found = cursor.set_range(start) if start else cursor.first()
            while found:
                key = bytes(cursor.key())
                if stop is not None and key >= stop:
                    return
                yield key, cursor.value()
                found = cursor.next()
        finally:
            cursor.close()

    def scan_prefix(
        self, table: str, prefix: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Pairs whose key begins with prefix, in key order or reversed."""
        return self.scan(table, prefix, after_prefix(prefix), reverse=reverse)

    def delete_prefix(self, table: str, prefix: bytes) -> int:
        """Remove every key that begins with prefix; the number removed."""
        cursor = self._raw.cursor(self._dbs[table])
        removed = 0
        try:
            found = cursor.set_range(prefix)
            while found and bytes(cursor.key()).startswith(prefix):
                found = cursor.delete()
                removed += 1
        finally:
            cursor.close()
        return removed

    def count(self, table: str) -> int:
        """Number of keys in a table."""
        return int(self._raw.stat(self._dbs[table])["entries"])


def after_prefix(prefix: bytes) -> bytes | None:
    """The least key above every key with this prefix, or None when there is none."""
    trimmed = prefix.rstrip(b"\xff")
    if not trimmed:
        return None
    return trimmed[:-1] + bytes([trimmed[-1] + 1])


class Env:
    """An LMDB environment: opened on first use, shared by the threads of a process.

    Use :func:`open_env`: a process must not open one environment twice.
    """

    def __init__(
        self,
        path: str,
        tables: tuple[str, ...],
        *,
        create: bool = False,
        readonly: bool = False,
        map_b: int | None = None,
        max_map_b: int = 1 << 42,
        sync: bool = True,
    ) -> None:
        """Remember where and how; nothing is opened yet.

        Args:
            path: folder of the environment.
            tables: names of the tables.
            create: make the folder (0700) and an empty environment when there is none.
            readonly: never write, not even the tables.
            map_b: first map size in bytes (None: a default that fits the address space).
            max_map_b: the map never grows beyond this.
            sync: flush to disk at each commit (False only for what can be rebuilt).
        """
        self.path = path
        self.create = create
        self.readonly = readonly
        self._tables = tables
        self._map_b = map_b
        self._max_map_b = max_map_b
        self._sync = sync
        self._raw: lmdb.Environment | None = None
        self._dbs: dict[str, Handle] = {}
        self._pid = 0
        self._gate = threading.Condition()
        self._active = 0
        self._write_lock = threading.RLock()
        self._checked = 0.0
        self._grown_b = 0
        self._retired = False

    # -- opening ------------------------------------------------------------------------------

    def _ensure(self) -> lmdb.Environment:
        if self._raw is not None and self._pid == os.getpid():
            return self._raw
        with self._gate:
            if self._raw is not None and self._pid != os.getpid():
                # py-lmdb knows the process that opened it and leaves the parent's slots alone.
                self._raw.close()
                self._raw = None
                self._active = 0
                self._write_lock = threading.RLock()
            if self._raw is None:
                self._open()
            assert self._raw is not None
            return self._raw

    def _open(self) -> None:
        data = os.path.join(self.path, "data.mdb")
        exists = os.path.exists(data)
        if not exists and not self.create:
            raise StoreMissing(f"no '{data}'")
        if not exists:
            _make_folder(self.path)
        size = os.path.getsize(data) if exists else 0
        if exists and not self.create and size < 8192:
            raise StoreCorrupt(f"'{data}' is cut short ({size} bytes)")
        last: Exception | None = None
        for wanted in self._map_sizes(size):
            old_mask = os.umask(0o077)
            try:
                raw = lmdb.open(
                    self.path,
                    map_size=wanted,
                    subdir=True,
                    readonly=self.readonly,
                    metasync=self._sync,
                    sync=self._sync,
                    mode=0o600,
                    create=self.create or (exists and not self.readonly),
                    readahead=True,
                    meminit=True,
                    max_readers=MAX_READERS,
                    max_dbs=len(self._tables) + 1,
                    max_spare_txns=4,
                    lock=True,
                )
            except (lmdb.MemoryError, MemoryError) as error:
                last = error
                continue
            except (lmdb.Error, OSError) as error:
                raise translate(error, self.path) from error
            finally:
                os.umask(old_mask)
            try:
                self._dbs = self._open_tables(raw, exists)
            except (lmdb.Error, OSError) as error:
                raw.close()
                raise translate(error, self.path) from error
            self._raw = raw
            self._pid = os.getpid()
            self._reap(raw)
            return
        raise StoreError(
            f"not enough address space to map '{data}'",
            hint="raise the limit of virtual memory (ulimit -v)",
        ) from last

    def _map_sizes(self, file_b: int) -> Iterator[int]:
        """Map sizes to try, largest first: what is wanted, then less down to what is needed."""
        need = max(MIN_MAP_B, file_b)
        wanted = max(need, min(self._map_b or DEFAULT_MAP_B, self._max_map_b))
        yield wanted
        while wanted > need:
            wanted = max(need, wanted // 4)
            yield wanted

    def _open_tables(self, raw: lmdb.Environment, exists: bool) -> dict[str, Handle]:
        if exists:
            try:
                return {n: raw.open_db(n.encode(), create=False) for n in self._tables}
            except (lmdb.NotFoundError, lmdb.ReadonlyError):
                if self.readonly:
                    raise StoreCorrupt(f"'{self.path}' lacks a table of this format") from None
        with raw.begin(write=True) as txn:
            return {n: raw.open_db(n.encode(), txn=txn, create=True) for n in self._tables}

    def _reap(self, raw: lmdb.Environment) -> None:
        """Clear the reader slots of processes that died."""
        now = time.monotonic()
        if now - self._checked > _STALE_CHECK_S or not self._checked:
            self._checked = now
            try:
                raw.reader_check()
            except lmdb.Error:
                return

    def retire(self) -> None:
        """Close it as soon as no transaction of this process is open."""
        with self._gate:
            self._retired = True
            if self._active <= 0:
                self.close()

    def close(self) -> None:
        """Close it; the next use opens it again."""
        with self._gate:
            if self._raw is not None:
                self._raw.close()
            self._raw = None
            self._dbs = {}

    # -- transactions -------------------------------------------------------------------------

    def _begin(self, *, write: bool, buffers: bool = False) -> lmdb.Transaction[Any]:
        for attempt in range(8):
            raw = self._ensure()
            with self._gate:
                if self._raw is not raw:
                    continue
                self._active += 1
            try:
                return raw.begin(None, None, write, buffers)  # type: ignore[call-overload,no-any-return]
            except lmdb.MapResizedError:
                self._leave()
                self._set_map(0)
            except lmdb.ReadersFullError as error:
                self._leave()
                if not raw.reader_check() and attempt == 7:
                    raise StoreLocked(
                        f"every reader slot of '{self.path}' is taken",
                        hint="end some of the processes that read the store",
                    ) from error
                time.sleep(0.02 * (attempt + 1))
            except BaseException as error:
                self._leave()
                if isinstance(error, (lmdb.Error, OSError)):
                    raise translate(error, self.path) from error
                raise
        raise StoreLocked(f"cannot begin a transaction in '{self.path}'")

    def _leave(self) -> None:
        with self._gate:
            self._active -= 1
            self._gate.notify_all()
            if self._retired and self._active <= 0:
                self.close()

    def _set_map(self, size_b: int) -> None:
        """Set the map size once no transaction of this process is open (0: as in the file)."""
        with self._gate:
            if not self._gate.wait_for(lambda: self._active == 0, timeout=30.0):
                raise StoreLocked("readers of this process keep the map from growing")
            raw = self._raw
            if raw is None:
                return
            try:
                raw.set_mapsize(size_b)
            except (lmdb.Error, MemoryError, OSError) as error:
                raise translate(error, self.path) from error

    def _grow(self) -> None:
        """Double the map.  The new size reaches the file with the next commit, not before."""
        now_b = max(self._grown_b, int(self._ensure().info()["map_size"]))
        if now_b >= self._max_map_b:
            raise StoreFull(f"the map of '{self.path}' has reached its limit ({now_b >> 20} MiB)")
        self._grown_b = min(self._max_map_b, max(now_b * 2, MIN_MAP_B))
        self._set_map(self._grown_b)

    @contextmanager
    def read(self, *, buffers: bool = False) -> Iterator[Txn]:
        """A snapshot.  With buffers the values are memoryviews that die with the block."""
        raw = self._begin(write=False, buffers=buffers)
        try:
            yield Txn(raw, self._dbs, False)
        except (lmdb.Error, OSError) as error:
            raise translate(error, self.path) from error
        finally:
            try:
                raw.abort()
            finally:
                self._leave()

    def write(self, change: Callable[[Txn], T], *, current: Callable[[], bool] | None = None) -> T:
        """Run change in one write transaction and commit it.

        Args:
            change: what to do; run again from the start when the map had to grow.
            current: asked once the write lock is held; False means that the environment was
                replaced meanwhile.

        Returns:
            What change returned.

        Raises:
            Replaced: current answered False; nothing was changed.
            StoreFull: the disk or the map limit is exhausted; nothing was changed.
        """
        if self.readonly:
            raise StoreReadOnly(f"'{self.path}' was opened for reading only")
        with self._write_lock:
            while True:
                raw = self._begin(write=True)
                done = False
                try:
                    if current is not None and not current():
                        raise Replaced(f"'{self.path}' was replaced by a new generation")
                    result = change(Txn(raw, self._dbs, True))
                    raw.commit()
                    done = True
                    return result
                except lmdb.MapFullError:
                    pass
                except (lmdb.Error, OSError) as error:
                    raise translate(error, self.path) from error
                finally:
                    try:
                        if not done:
                            raw.abort()
                    finally:
                        self._leave()
                self._grow()

    # -- facts --------------------------------------------------------------------------------

    def info(self) -> dict[str, int]:
        """Sizes and readers: file_b, map_b, used_b, readers, max_readers."""
        raw = self._ensure()
        info = raw.info()
        page_b = int(raw.stat()["psize"])
        return {
            "file_b": os.path.getsize(os.path.join(self.path, "data.mdb")),
            "map_b": int(info["map_size"]),
            "used_b": (int(info["last_pgno"]) + 1) * page_b,
            "readers": int(info["num_readers"]),
            "max_readers": int(info["max_readers"]),
        }

    def stale_readers(self) -> int:
        """Clear and count reader slots of processes that died."""
        return int(self._ensure().reader_check())

    def copy(self, folder: str) -> None:
        """Write a compacted copy of the present state into an existing empty folder."""
        raw = self._ensure()
        old_mask = os.umask(0o077)
        try:
            raw.copy(folder, compact=True)
        except (lmdb.Error, OSError) as error:
            raise translate(error, folder) from error
        finally:
            os.umask(old_mask)


class Replaced(RememError):
    """The environment was replaced by a newer generation: open that and repeat the change."""


def translate(error: Exception, path: str) -> RememError:
    """One of our errors for an error of LMDB or of the operating system."""
    text = str(error)
    number = getattr(error, "errno", None)
    low = text.lower()
    if isinstance(error, RememError):
        return error
    if isinstance(error, (lmdb.MapFullError, lmdb.DiskError)) or number in (28, 122):
        return StoreFull(f"no space left for '{path}'")
    if "no space left" in low or "quota exceeded" in low or "file too large" in low:
        return StoreFull(f"no space left for '{path}'")
    if isinstance(error, (lmdb.ReadonlyError, PermissionError)) or number in (1, 13, 30):
        return StoreReadOnly(f"cannot write to '{path}'")
    if "permission denied" in low or "read-only file system" in low:
        return StoreReadOnly(f"cannot open '{path}' for writing")
    if isinstance(error, lmdb.InvalidError):
        return StoreCorrupt(f"'{path}' is not an LMDB environment")
    if isinstance(error, (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.PanicError)):
        return StoreCorrupt(f"the data file in '{path}' is damaged")
    if isinstance(error, lmdb.VersionMismatchError):
        return StoreCorrupt(f"'{path}' was written by another version of LMDB")
    if isinstance(error, lmdb.BadValsizeError):
        return IntegrityError(f"a key or value does not fit in '{path}'")
    if isinstance(error, (lmdb.ReadersFullError, lmdb.LockError)):
        return StoreLocked(f"cannot lock '{path}'")
    if isinstance(error, FileNotFoundError) or number == 2 or "no such file" in low:
        return StoreMissing(f"no store in '{path}'")
    return StoreError(f"cannot use '{path}': {text.splitlines()[0] if text else type(error)}")


_open_envs: dict[str, Env] = {}
_open_lock = threading.Lock()


def open_env(
    path: str,
    tables: tuple[str, ...],
    *,
    create: bool = False,
    readonly: bool = False,
    map_b: int | None = None,
    max_map_b: int = 1 << 42,
    sync: bool = True,
) -> Env:
    """The environment of this folder, one per process and folder (see :class:`Env`)."""
    key = os.path.realpath(path)
    with _open_lock:
        env = _open_envs.get(key)
        if env is None or (env.readonly and not readonly):
            if env is not None:
                env.close()
            env = Env(
                path,
                tables,
                create=create,
                readonly=readonly,
                map_b=map_b,
                max_map_b=max_map_b,
                sync=sync,
            )
            _open_envs[key] = env
        return env


def forget_env(path: str) -> None:
    """Drop the environment of a folder from the process; it closes with its last reader."""
    with _open_lock:
        env = _open_envs.pop(os.path.realpath(path), None)
    if env is not None:
        env.retire()


def filesystem_type(path: str, mounts: str = "/proc/self/mounts") -> str:
    """Type of the file system below a path ("ext4", "nfs4"), or "" where it cannot be told."""
    probe = os.path.realpath(path)
    best, kind = "", ""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                parts = line.split(" ")
                if len(parts) < 3:
                    continue
                point = parts[1].replace("\\040", " ")
                inside = probe == point or probe.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, parts[2]
    except OSError:
        return ""
    return kind


def refuse_network(path: str, mounts: str = "/proc/self/mounts") -> None:
    """Raise NetworkFilesystem when the path lies on a file system without safe maps and locks."""
    kind = filesystem_type(path, mounts)
    if kind in _NETWORK_TYPES:
        raise NetworkFilesystem(f"'{path}' lies on a network file system ({kind})")


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise translate(error, path) from error
