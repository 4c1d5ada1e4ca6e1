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
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from remem.objects import format as fmt
from remem.objects import kv
from remem.objects.errors import Refused, StoreCorrupt, StoreError, StoreMissing, StoreReadOnly
from remem.objects.lock import hold
from remem.objects.reader import Reader
from remem.objects.tx import Tx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remem.objects.scope import Actor, Grant

T = TypeVar("T")


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
            NewerFormat, StoreCorrupt, NetworkFilesystem, StoreReadOnly: as they say.
        """
        self.root = os.path.abspath(root)
        self.readonly = readonly
        self._map_b = map_b
        self._max_map_b = max_map_b
        fmt.check_format(self.root)
        if not allow_network:
            kv.refuse_network(self.root)
        self._mark: tuple[int, int, int] | None = None
        self.generation = 0
        self._env: kv.Env | None = None

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
            StoreError: it cannot be made.
        """
        root = os.path.abspath(root)
        if not os.path.exists(os.path.join(root, fmt.FORMAT_FILE)):
            _refuse_foreign(root)
            try:
                os.makedirs(root, mode=0o700, exist_ok=True)
            except OSError as error:
                raise kv.translate(error, root) from error
            if not allow_network:
                kv.refuse_network(root)
            with hold(os.path.join(root, fmt.LOCKS), "create", wait_s=30.0):
                if not os.path.exists(os.path.join(root, fmt.FORMAT_FILE)):
                    _lay_out(root, map_b)
        return cls(root, map_b=map_b, max_map_b=max_map_b, allow_network=allow_network)

    # -- generations --------------------------------------------------------------------------

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(os.path.join(self.root, fmt.GENERATION_FILE))
        except OSError:
            return None
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def env(self) -> kv.Env:
        """The canonical environment of the present generation."""
        mark = self._look()
        if self._env is not None and mark == self._mark and mark is not None:
            return self._env
        number = read_generation(self.root)
        path = canon_path(self.root, number)
        if self._env is not None and self._env.path != path:
            kv.forget_env(self._env.path)
        if not os.path.exists(os.path.join(path, "data.mdb")):
            raise StoreCorrupt(f"'{path}' has no data file")
        self._env = kv.open_env(
            path,
            fmt.TABLES,
            readonly=self.readonly,
            map_b=self._map_b,
            max_map_b=self._max_map_b,
        )
        self.generation = number
        self._mark = mark
        return self._env

    @property
    def index_path(self) -> str:
        """Folder of the projections of the present generation."""
        self.env()
        return os.path.join(self.root, fmt.INDEX, f"g{self.generation}")

    @property
    def locks_path(self) -> str:
        """Folder of the advisory locks."""
        return os.path.join(self.root, fmt.LOCKS)

    # -- transactions -------------------------------------------------------------------------

    @contextmanager
    def read(self, grant: Grant) -> Iterator[Reader]:
        """A consistent view of what the grant covers."""
        with self.env().read() as txn:
            yield Reader(txn, grant)

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
        for _ in range(100):
            env = self.env()
            mark = self._mark

            def run(txn: kv.Txn) -> T:
                tx = Tx(txn, actor, time.time_ns() // 1000)
                result = change(tx)
                tx.finish()
                return result

            try:
                return env.write(run, current=lambda mark=mark: self._look() == mark)  # type: ignore[misc]
            except kv.Replaced:
                continue
            except Refused as refused:
                if refused.refusal is not None:
                    row, refused.refusal = refused.refusal, None
                    self.write(actor, lambda tx, row=row: tx.refuse(*row))  # type: ignore[misc]
                raise
        raise StoreError(f"'{self.root}' changes its generation all the time")

    def close(self) -> None:
        """Close the environments of this process."""
        if self._env is not None:
            kv.forget_env(self._env.path)
            self._env = None


def read_generation(root: str) -> int:
    """Number of the present generation.

    Raises:
        StoreCorrupt: the file is missing or holds no number.
    """
    path = os.path.join(root, fmt.GENERATION_FILE)
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read(20))
    except (OSError, ValueError) as error:
        raise StoreCorrupt(f"'{path}' does not name a generation") from error


def canon_path(root: str, generation: int) -> str:
    """Folder of the canonical environment of a generation."""
    return os.path.join(root, fmt.CANON, f"g{generation}")


def _lay_out(root: str, map_b: int | None) -> None:
    """Make the folders and an empty environment; FORMAT comes last and makes it a store."""
    for name in (fmt.CANON, fmt.INDEX, fmt.SPOOL, fmt.LOCKS):
        os.makedirs(os.path.join(root, name), mode=0o700, exist_ok=True)
    path = canon_path(root, 1)
    env = kv.open_env(path, fmt.TABLES, create=True, map_b=map_b)
    env.info()
    kv.forget_env(path)
    fmt.write_file(os.path.join(root, fmt.GENERATION_FILE), "1\n")
    fmt.write_file(os.path.join(root, fmt.FORMAT_FILE), fmt.FORMAT_LINE)


def _refuse_foreign(root: str) -> None:
    """Refuse to make a store where another user's tools would find files they cannot open."""
    probe = root
    while not os.path.exists(probe):
        probe = os.path.dirname(probe)
    owner = os.stat(probe).st_uid
    shared = os.stat(probe).st_mode & 0o1000  # a sticky folder such as /tmp
    if owner != os.geteuid() and not shared:
        raise Refused(
            f"'{probe}' belongs to another user",
            hint="run as that user, or choose a folder of your own with --store",
        )
    if probe == root and not os.path.isdir(root):
        raise StoreError(f"'{root}' is not a folder")
    if probe == root:
        others = set(os.listdir(root)) - {
            fmt.CANON,
            fmt.INDEX,
            fmt.SPOOL,
            fmt.LOCKS,
            fmt.GENERATION_FILE,
            fmt.CONFIG_FILE,
        }
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
