"""A store on disk: find its format and generation, open snapshots and write transactions.

The pair of environments (canonical and projected) lives in a numbered generation.  A compaction
writes the next generation and switches by renaming one file; every transaction looks at that file
first, so other processes follow by themselves.  A writer looks again once it holds LMDB's write
lock, so that no change goes to a generation that has been left.

Source: remem-store(5), LAYOUT and GENERATIONS.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from remem.objects import disk, kv, sharing
from remem.objects import format as fmt
from remem.objects.errors import Refused, StoreCorrupt, StoreError, StoreMissing, StoreReadOnly
from remem.objects.lock import hold
from remem.objects.reader import Reader
from remem.objects.tx import Tx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remem.objects.scope import Actor, Grant

T = TypeVar("T")
Mark = tuple[int, int, int]  # inode, modification time in ns and size of GENERATION

_TRIES = 100
_AS_OWNER = "run as that user, or choose a folder of your own with --store"


class Store:
    """An open store.  It holds no cursor between calls and may be used from several threads."""

    def __init__(
        self,
        root: str,
        *,
        readonly: bool = False,
        map_b: int | None = None,
        max_map_b: int = 1 << 42,
        allow_network: bool = False,
    ) -> None:
        """Open the store in a folder.

        Args:
            root: folder of the store.
            readonly: never write.
            map_b: first size of the memory map, bytes (None: a default).
            max_map_b: the map never grows beyond this, bytes.
            allow_network: use it on a network file system all the same.

        Raises:
            StoreMissing: no store there.
            NewerFormat, StoreCorrupt, NetworkFilesystem: as they say.
            Refused: another user's store, opened for writing: its owner could not open what this
                user adds to it.
        """
        self.root = os.path.abspath(root)
        self.readonly = readonly
        self._map_b = map_b
        self._max_map_b = max_map_b
        try:
            fmt.check_format(self.root)
            owner = os.stat(os.path.join(self.root, fmt.FORMAT_FILE)).st_uid
        except OSError as error:
            raise kv.translate(error, self.root) from error
        self._foreign = owner != os.geteuid()
        if self._foreign and not readonly:
            raise Refused(f"the store in '{self.root}' belongs to another user", hint=_AS_OWNER)
        if not allow_network:
            disk.refuse_network(self.root)
        self._now: tuple[Mark, kv.Env, int] | None = None

    # -- making -------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        root: str,
        *,
        map_b: int | None = None,
        max_map_b: int = 1 << 42,
        allow_network: bool = False,
    ) -> Store:
        """Make a store in a folder (or open the one that is there).

        Two processes that make it at once end with one store.

        Raises:
            Refused: the folder belongs to another user, or holds other files.
            StoreCorrupt: it holds a store that has lost its FORMAT file.
            StoreError: it cannot be made.
        """
        root = os.path.abspath(root)
        if not os.path.exists(os.path.join(root, fmt.FORMAT_FILE)):
            try:
                _refuse_foreign(root)
                disk.make_folders(root)
                if not allow_network:
                    disk.refuse_network(root)
                with hold(os.path.join(root, fmt.LOCKS), "create", wait_s=30.0):
                    if not os.path.exists(os.path.join(root, fmt.FORMAT_FILE)):
                        _lay_out(root, map_b)
            except OSError as error:
                raise kv.translate(error, root) from error
        return cls(root, map_b=map_b, max_map_b=max_map_b, allow_network=allow_network)

    # -- generations --------------------------------------------------------------------------

    def _look(self) -> Mark | None:
        try:
            found = os.stat(os.path.join(self.root, fmt.GENERATION_FILE))
        except OSError:
            return None
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def _present(self) -> tuple[Mark, kv.Env, int]:
        """Mark, environment and number of the present generation; the three belong together."""
        now = self._now
        if now is not None and now[0] == self._look():
            return now
        with sharing.registry_lock:
            for _ in range(_TRIES):
                mark = self._look()
                if self._now is not None and self._now[0] == mark:
                    return self._now  # another thread was here first
                number = read_generation(self.root)
                path = canon_path(self.root, number)
                if mark is None or mark != self._look():
                    continue
                if not os.path.exists(os.path.join(path, "data.mdb")):
                    if mark != self._look():
                        continue  # this generation was left and removed meanwhile
                    raise StoreCorrupt(f"'{path}' has no data file")
                if self._foreign and not os.path.exists(os.path.join(path, "lock.mdb")):
                    raise Refused(f"'{path}' belongs to another user", hint=_AS_OWNER)
                left = None if self._now is None else self._now[2]
                self.close()
                if left not in (None, number):  # its files are gone, but for who holds them open
                    kv.forget_below(os.path.join(self.root, fmt.INDEX, f"g{left}"))
                env = kv.open_env(
                    path,
                    fmt.TABLES,
                    readonly=self.readonly,
                    map_b=self._map_b,
                    max_map_b=self._max_map_b,
                    later=fmt.LATER,
                )
                self._now = (mark, env, number)
                return self._now
        raise StoreError(f"'{self.root}' changes its generation all the time")

    def follow(self) -> int:
        """Give up what belongs to a generation that was left; for a process that waits.

        Returns:
            Number of the present generation.
        """
        return self._present()[2]

    def env(self) -> kv.Env:
        """The canonical environment of the present generation."""
        return self._present()[1]

    @property
    def generation(self) -> int:
        """Number of the present generation."""
        return self._present()[2]

    @property
    def index_path(self) -> str:
        """Folder of the projections of the present generation."""
        return os.path.join(self.root, fmt.INDEX, f"g{self.generation}")

    @property
    def locks_path(self) -> str:
        """Folder of the advisory locks."""
        return os.path.join(self.root, fmt.LOCKS)

    # -- transactions -------------------------------------------------------------------------

    @contextmanager
    def read(self, grant: Grant) -> Iterator[Reader]:
        """A consistent view of what the grant covers."""
        with ExitStack() as held:
            yield Reader(self._snapshot(held), grant)

    def _snapshot(self, held: ExitStack) -> kv.Txn:
        for _ in range(_TRIES):
            mark, env, _ = self._present()
            try:
                return held.enter_context(env.read())
            except (StoreMissing, StoreCorrupt):
                if mark == self._look():
                    raise  # not because this generation was left and removed meanwhile
        raise StoreError(f"'{self.root}' changes its generation all the time")

    @property
    def map_b(self) -> int | None:
        """First size of the memory map, bytes, or None for the default."""
        return self._map_b

    def switch(self, build: Callable[[kv.Txn, int], T]) -> T:
        """Run build with a read of everything while no other process can write.

        It may make a new generation and name it in the GENERATION file; its write transaction
        stays empty, so a crash anywhere leaves the generation that the file names.
        """
        for _ in range(_TRIES):
            mark, env, number = self._present()
            try:
                return env.write(
                    lambda txn, number=number: build(txn, number),  # type: ignore[misc]
                    current=lambda mark=mark: self._look() == mark,  # type: ignore[misc]
                )
            except kv.Replaced:
                continue
        raise StoreError(f"'{self.root}' changes its generation all the time")

    def write(self, actor: Actor, change: Callable[[Tx], T]) -> T:
        """Run change in one transaction; its ref-log entries and audit rows commit with it.

        Args:
            actor: who writes, under which grant.
            change: may be run again from the start; must keep nothing of a run that failed.

        Returns:
            What change returned.
        """
        if self.readonly:
            raise StoreReadOnly(f"'{self.root}' was opened for reading only")

        def run(txn: kv.Txn) -> T:
            tx = Tx(txn, actor, time.time_ns() // 1000)
            result = change(tx)
            tx.finish()
            return result

        for _ in range(_TRIES):
            mark, env, _ = self._present()
            try:
                return env.write(run, current=lambda mark=mark: self._look() == mark)  # type: ignore[misc]
            except kv.Replaced:
                continue
            except (StoreMissing, StoreCorrupt):
                if mark == self._look():
                    raise
            except Refused as refused:
                if refused.refusal is not None:
                    row, refused.refusal = refused.refusal, None
                    self.write(actor, lambda tx, row=row: tx.refuse(*row))  # type: ignore[misc]
                raise
        raise StoreError(f"'{self.root}' changes its generation all the time")

    def close(self) -> None:
        """Give up the environment; it closes with its last reader in this process."""
        with sharing.registry_lock:
            if self._now is not None:
                kv.release(self._now[1])
                self._now = None


def read_generation(root: str) -> int:
    """Number of the present generation.

    Raises:
        StoreCorrupt: the file is missing or holds no number.
    """
    path = os.path.join(root, fmt.GENERATION_FILE)
    try:
        with open(path, encoding="ascii") as file:
            number = int(file.read(20))
            if number < 1:
                raise ValueError("generations are numbered from 1")
            return number
    except (OSError, ValueError) as error:
        raise StoreCorrupt(f"'{path}' does not name a generation") from error


def canon_path(root: str, generation: int) -> str:
    """Folder of the canonical environment of a generation."""
    return os.path.join(root, fmt.CANON, f"g{generation}")


def _lay_out(root: str, map_b: int | None) -> None:
    """Make the folders and an empty environment; FORMAT comes last and makes it a store."""
    path = canon_path(root, 1)
    _clear_remains(root, path)
    for name in (fmt.CANON, fmt.INDEX, fmt.SPOOL, fmt.LOCKS):
        disk.make_folders(os.path.join(root, name))
    env = kv.open_env(path, fmt.TABLES, create=True, map_b=map_b)
    try:
        with env.read() as txn:
            if any(txn.count(table) for table in fmt.TABLES):
                raise fmt.headless(root)
    finally:
        kv.release(env)
    fmt.write_file(os.path.join(root, fmt.GENERATION_FILE), "1\n")
    fmt.write_file(os.path.join(root, fmt.FORMAT_FILE), fmt.FORMAT_LINE)


def _clear_remains(root: str, path: str) -> None:
    """Clear what a creation that was cut off left behind, and nothing that may hold data.

    Raises:
        StoreCorrupt: this was a store once.
    """
    for name in filter(_is_temporary, os.listdir(root)):
        os.unlink(os.path.join(root, name))
    canon = os.path.join(root, fmt.CANON)
    if os.path.isdir(canon) and set(os.listdir(canon)) - {os.path.basename(path)}:
        raise fmt.headless(root)
    if os.path.exists(os.path.join(root, fmt.GENERATION_FILE)) and read_generation(root) != 1:
        raise fmt.headless(root)
    data = os.path.join(path, "data.mdb")
    if os.path.exists(data) and os.path.getsize(data) < 8192:  # less than its two meta pages
        os.unlink(data)


def _is_temporary(name: str) -> bool:
    """True for a file that format.write_file was writing when its process died."""
    words = name.split(".")
    whole = len(words) == 3 and words[1].isdigit() and words[2] == "new"
    return whole and words[0] in (fmt.GENERATION_FILE, fmt.FORMAT_FILE)


def _refuse_foreign(root: str) -> None:
    """Refuse to make a store where another user's tools would find files they cannot open.

    Raises:
        Refused: the folder, or the nearest one above it that exists, belongs to another user who
            is not root, or the folder holds other files.
        StoreError: it is no folder.
    """
    probe = root
    while not os.path.exists(probe):
        probe = os.path.dirname(probe)
    found = os.stat(probe)
    shared = found.st_mode & 0o1000  # a sticky folder such as /tmp
    if found.st_uid not in (os.geteuid(), 0) and not shared:
        raise Refused(f"'{probe}' belongs to another user", hint=_AS_OWNER)
    if probe != root:
        return
    if not os.path.isdir(root):
        raise StoreError(f"'{root}' is not a folder")
    known = {
        fmt.CANON,
        fmt.INDEX,
        fmt.SPOOL,
        fmt.LOCKS,
        fmt.FORMAT_FILE,
        fmt.GENERATION_FILE,
        fmt.CONFIG_FILE,
    }
    others = [name for name in os.listdir(root) if name not in known and not _is_temporary(name)]
    if others:
        raise Refused(
            f"'{root}' holds other files ('{min(others)}')",
            hint="choose an empty or a new folder for the store",
        )


def locate(root: str) -> bool:
    """True when the folder holds a store of a format that this version can read."""
    try:
        fmt.check_format(root)
    except StoreMissing:
        return False
    return True
