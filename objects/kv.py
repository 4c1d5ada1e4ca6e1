"""Ordered key-value tables over LMDB: the only module that imports lmdb.

One environment holds a fixed set of named tables.  Reads run on snapshots and never wait; one write
transaction at a time, across processes.  The map grows by itself in every process, an environment
that crossed a fork is opened anew, and each LMDB error becomes one of ours.

A write is a function of the transaction.  It may be run again (the map was grown, the file was
replaced meanwhile), so it must not keep results of a run that failed.  A thread must not write to
an environment while it has a snapshot of it open: neither may the map be replaced below a snapshot,
nor an environment that was opened for reading be opened for writing.

Source: LMDB 0.9 documentation, "Caveats" and mdb_env_set_mapsize.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import lmdb

from remem.objects import disk, sharing
from remem.objects.disk import filesystem_type as filesystem_type
from remem.objects.disk import refuse_network as refuse_network
from remem.objects.errors import (
    IntegrityError,
    RememError,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreMissing,
    StoreReadOnly,
)
from remem.objects.tables import Txn as Txn
from remem.objects.tables import after_prefix as after_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remem.objects.tables import Handle

T = TypeVar("T")

MAX_KEY_B = 511
MAX_READERS = 2048
DEFAULT_MAP_B = 1 << 36  # address space only: the file holds what was written
MIN_MAP_B = 1 << 20
_LOCK_FILE_B = 64 * MAX_READERS + 4096  # a slot has 64 bytes
_STALE_CHECK_S = 60.0
_ATTEMPTS = 64
# The format of the file is fixed: not what an environment variable of py-lmdb says.
_ENGINE: dict[str, Any] = {"lib_version": 0} if hasattr(lmdb.Environment, "lib_version") else {}


class Env:
    """An LMDB environment: opened on first use, shared by the threads of a process.

    Use :func:`open_env`: a process must not open one environment twice.
    """

    def __init__(self, path: str, tables: tuple[str, ...]) -> None:
        """Remember where; nothing is opened yet."""
        self.path = path
        self.users = 0
        self.shared = sharing.Shared(path, self._open)
        self._dbs: dict[str, Handle] = {}
        self._file: tuple[int, int] | None = None
        self._checked = 0.0
        self._grown_b = 0
        self._writable = False  # as it is open now
        self._wanted = False  # as it is to be opened next
        self._later: frozenset[str] = frozenset()
        self.settle(tables, False, False, None, 1 << 42, True)

    def settle(
        self,
        tables: tuple[str, ...],
        create: bool,
        readonly: bool,
        map_b: int | None,
        max_map_b: int,
        sync: bool,
        later: frozenset[str] = frozenset(),
    ) -> None:
        """Say how it is opened next (the arguments are those of :func:`open_env`)."""
        self._later = later
        self.create = create
        self.readonly = readonly
        self._tables = tables
        self._map_b = map_b
        self._max_map_b = max_map_b
        self._sync = sync
        self.shared.revive()

    # -- opening ------------------------------------------------------------------------------

    def _open(self) -> lmdb.Environment:
        # py-lmdb finds the tables inside write transactions, which wait for the writer of the
        # moment, unless the environment is open for reading only.
        writable, self._wanted = self._wanted, False
        while True:
            size = self._look(os.path.join(self.path, "data.mdb"))
            writable = writable or not size
            raw = self._map(size, writable)
            try:
                self._dbs = self._open_tables(raw, writable)
            except lmdb.MapResizedError:  # it grew since we looked
                raw.close()
                continue
            except lmdb.NotFoundError:
                raw.close()
                if writable or self.readonly or not (self.create or self._later):
                    raise self._lacking() from None
                writable = True
                continue
            except BaseException as error:
                raw.close()
                if isinstance(error, (lmdb.Error, OSError)):
                    raise translate(error, self.path) from error
                raise
            self._writable = writable
            self._file = _identity(self.path)
            self._reap(raw)
            return raw

    def _map(self, size: int, writable: bool) -> lmdb.Environment:
        last: Exception | None = None
        for wanted in self._map_sizes(size):
            try:
                return lmdb.open(
                    self.path,
                    map_size=wanted,
                    subdir=True,
                    readonly=not writable,
                    metasync=self._sync,
                    sync=self._sync,
                    mode=0o600,
                    create=False,
                    readahead=True,
                    meminit=True,
                    max_readers=MAX_READERS,
                    max_dbs=len(self._tables) + 1,
                    max_spare_txns=0,  # a kept one would hold a slot across a fork
                    lock=True,
                    **_ENGINE,
                )
            except (lmdb.MemoryError, MemoryError) as error:
                last = error
            except (lmdb.Error, OSError) as error:
                raise translate(error, self.path) from error
        raise StoreError(
            f"not enough address space to map '{self.path}'",
            hint="raise the limit of virtual memory (ulimit -v)",
        ) from last

    def _look(self, data: str) -> int:
        """Size of the data file, once it is whole and the lock file has its room."""
        size = 0
        try:
            if self.create:
                disk.make_folders(self.path)
            try:
                size = os.path.getsize(data)
            except FileNotFoundError as error:
                if not self.create:
                    raise StoreMissing(f"no '{data}'") from error
            if size or not self.create:
                disk.check_whole(data)
        except OSError as error:
            raise translate(error, self.path) from error
        try:
            disk.reserve(os.path.join(self.path, "lock.mdb"), _LOCK_FILE_B)
        except OSError as error:
            if error.errno in (28, 122):
                raise translate(error, self.path) from error
        return size

    def _map_sizes(self, file_b: int) -> Iterator[int]:
        """Map sizes to try, largest first: what is wanted, then less down to what is needed."""
        need = max(MIN_MAP_B, file_b)
        wanted = max(need, min(self._map_b or DEFAULT_MAP_B, self._max_map_b))
        yield wanted
        while wanted > need:
            wanted = max(need, wanted // 2)
            yield wanted

    def _open_tables(self, raw: lmdb.Environment, writable: bool) -> dict[str, Handle]:
        if not writable:
            return {n: raw.open_db(n.encode(), create=False) for n in self._tables}
        with raw.begin(write=True) as txn:
            return {
                n: raw.open_db(n.encode(), txn=txn, create=self.create or n in self._later)
                for n in self._tables
            }

    def _lacking(self) -> StoreCorrupt:
        said = f"'{self.path}' lacks a table of this format"
        if not self._later:
            return StoreCorrupt(said)
        hint = "if an earlier version made it, 'remem project' brings it up to this one"
        return StoreCorrupt(said, hint=hint)

    def _reap(self, raw: lmdb.Environment) -> None:
        """Clear the reader slots of processes that died."""
        now = time.monotonic()
        if now - self._checked > _STALE_CHECK_S or not self._checked:
            self._checked = now
            with suppress(lmdb.Error):
                raw.reader_check()

    def moved(self) -> bool:
        """True when other files stand where this environment was opened."""
        return self.shared.raw is not None and self._file != _identity(self.path)

    def retire(self) -> None:
        """Close it as soon as no transaction of this process is open."""
        self.shared.retire()

    def close(self) -> None:
        """Close it, together with what is open in it; the next use opens it again."""
        self.shared.close()

    # -- transactions -------------------------------------------------------------------------

    def _begin(self, *, write: bool, buffers: bool = False) -> Txn:
        for attempt in range(_ATTEMPTS):
            if write and not self._writable:
                self.shared.alone(self._reopen, "it cannot be opened for writing yet")
            txn = Txn(None, {}, write)
            raw = self.shared.enter(txn)
            if write and not self._writable:  # closed and opened by a reader meanwhile
                self.shared.leave(txn)
                continue
            try:
                txn._raw = raw.begin(None, None, write, buffers)
                txn._dbs = self._dbs
                return txn
            except lmdb.MapResizedError:
                self.shared.leave(txn)
                self._remap(0)
            except (lmdb.PanicError, lmdb.BadRslotError) as error:
                self.shared.leave(txn)
                if attempt > 2 or not self.shared.idle:
                    raise translate(error, self.path) from error
                self.shared.close()
            except lmdb.ReadersFullError as error:
                cleared = raw.reader_check()
                self.shared.leave(txn)
                if not cleared and attempt > 6:
                    raise translate(error, self.path) from error
                time.sleep(0.02 * (attempt + 1))
            except BaseException as error:
                self.shared.leave(txn)
                if isinstance(error, (lmdb.Error, OSError)):
                    raise translate(error, self.path) from error
                raise
        raise StoreLocked(f"cannot begin a transaction in '{self.path}'")

    def _reopen(self) -> bool:
        """Close it, so that the next use opens it for writing."""
        self.shared.close()
        self._wanted = True
        return True

    def _remap(self, size_b: int) -> bool:
        """Set the map size once no transaction of this process is open (0: as in the file).

        Returns:
            False when the address space has no room; the next use maps what fits.
        """

        def remap() -> bool:
            if self.shared.raw is None:
                self._wanted = size_b > 0  # it grows for a write
            try:
                self.shared.open().set_mapsize(size_b)
                return True
            except (lmdb.Error, MemoryError, OSError) as error:
                self.shared.close()  # the old map is gone
                self._grown_b = 0
                if isinstance(error, (lmdb.MemoryError, MemoryError)):
                    return False
                raise translate(error, self.path) from error

        return self.shared.alone(remap, "the map cannot grow")

    def _grow(self) -> None:
        """Double the map.  The new size reaches the file with the next commit, not before."""
        now_b = max(self._grown_b, self.info()["map_b"])
        if now_b >= self._max_map_b:
            raise StoreFull(f"the map of '{self.path}' has reached its limit ({now_b >> 20} MiB)")
        for more_b in (now_b, now_b // 2, now_b // 8):
            wanted = min(self._max_map_b, max(now_b + more_b, MIN_MAP_B))
            if self._remap(wanted):
                self._grown_b = wanted
                return
        raise StoreFull(
            f"no address space left to grow the map of '{self.path}' ({now_b >> 20} MiB)",
            hint="raise the limit of virtual memory (ulimit -v)",
        )

    @contextmanager
    def read(self, *, buffers: bool = False) -> Iterator[Txn]:
        """A snapshot.  With buffers the values are memoryviews that die with the block."""
        txn = self._begin(write=False, buffers=buffers)
        try:
            yield txn
        except lmdb.Error as error:
            raise translate(error, self.path) from error
        finally:
            self._end(txn)

    def _end(self, txn: Txn) -> None:
        if txn._raw is not sharing.GONE:
            try:
                txn._raw.abort()
            finally:
                self.shared.leave(txn)

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
        with self.shared.writing():
            while True:
                txn = self._begin(write=True)
                try:
                    if current is not None and not current():
                        raise Replaced(f"'{self.path}' was replaced by a new generation")
                    result = change(txn)
                    txn._raw.commit()
                    return result
                except lmdb.MapFullError:
                    pass
                except lmdb.Error as error:
                    raise translate(error, self.path) from error
                finally:
                    self._end(txn)
                self._grow()

    # -- facts --------------------------------------------------------------------------------

    def info(self) -> dict[str, int]:
        """Sizes and readers: file_b, map_b, used_b, readers, max_readers."""
        with self.shared.gate:
            raw = self.shared.open()
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
        with self.shared.gate:
            return int(self.shared.open().reader_check())

    def copy(self, folder: str) -> None:
        """Write a compacted copy of the present state into an existing empty folder."""
        reader = Txn(sharing.GONE, {}, False)  # keeps the map in its place meanwhile
        raw = self.shared.enter(reader)
        old_mask = os.umask(0o077)
        try:
            raw.copy(folder, compact=True)
        except (lmdb.Error, OSError) as error:
            raise translate(error, folder) from error
        finally:
            os.umask(old_mask)
            self.shared.leave(reader)


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
    if "input/output error" in low and disk.is_full(path):  # what LMDB says of a short write
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
    if isinstance(error, lmdb.ReadersFullError):
        hint = "end some of the processes that read the store"
        return StoreLocked(f"every reader slot of '{path}' is taken", hint=hint)
    if isinstance(error, lmdb.LockError):
        return StoreLocked(f"cannot lock '{path}'")
    if isinstance(error, FileNotFoundError) or number == 2 or "no such file" in low:
        return StoreMissing(f"no store in '{path}'")
    return StoreError(f"cannot use '{path}': {text.splitlines()[0] if text else type(error)}")


_open_envs: dict[str, Env] = {}


def open_env(
    path: str,
    tables: tuple[str, ...],
    *,
    create: bool = False,
    readonly: bool = False,
    map_b: int | None = None,
    max_map_b: int = 1 << 42,
    sync: bool = True,
    later: frozenset[str] = frozenset(),
) -> Env:
    """The environment of this folder, one per process and folder; the first user says how.

    Args:
        path: folder of the environment.
        tables: names of the tables.
        create: make the folder (0700), an empty environment and the tables that are missing.
        readonly: never write, not even the tables.
        map_b: first map size in bytes (None: a default that fits the address space).
        max_map_b: the map never grows beyond this.
        sync: flush to disk at each commit (False only for what can be rebuilt).
        later: tables that came with later versions; they are made where they are missing.

    It closes after as many calls of :func:`release`, or one of :func:`forget_env`.
    """
    key = os.path.realpath(path)
    with sharing.registry_lock:
        env = _open_envs.get(key)
        if env is not None and env.moved():
            env.retire()
            env = None
        if env is None:
            env = _open_envs[key] = Env(path, tables)
        if not env.users:
            env.settle(tables, create, readonly, map_b, max_map_b, sync, later)
        env.readonly = env.readonly and readonly
        env.create = env.create or create
        env.users += 1
        return env


def release(env: Env) -> None:
    """Give up one use of an environment; after the last it closes with its readers."""
    with sharing.registry_lock:
        env.users = max(0, env.users - 1)
        if not env.users:
            env.retire()


def forget_env(path: str) -> None:
    """Give up every use of the environment of a folder; it closes with its last reader."""
    with sharing.registry_lock:
        env = _open_envs.get(os.path.realpath(path))
        if env is not None:
            env.users = 0
            env.retire()


def forget_below(folder: str) -> None:
    """Give up every use of the environments in the folders of a folder."""
    with sharing.registry_lock:
        root = os.path.realpath(folder)
        for path in [path for path in _open_envs if os.path.dirname(path) == root]:
            forget_env(path)


def _identity(path: str) -> tuple[int, int] | None:
    """Device and inode of the data file of an environment."""
    try:
        found = os.stat(os.path.join(path, "data.mdb"))
    except OSError:
        return None
    return found.st_dev, found.st_ino
