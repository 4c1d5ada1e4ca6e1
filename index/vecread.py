"""Reading a vector index while others may be writing it.

Source: the rules of index/vecfile.py, which this module follows and does not repeat.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from remem.index import vecfile
from remem.index.errors import EmbedderMismatch, IndexDamaged

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from remem.index.vecfile import I16, U32, Head, Rows

    Mask = NDArray[np.bool_]

T = TypeVar("T")
WARM_MAX_B = 512 << 20  # a larger index is read again at each search even by a process that stays
_RETRIES = 8


class Reader:
    """The head in force and what it counts.

    Args:
        folder: of the index.
        name: what the header must be called.
        dim: what it must say of the vectors.
        digest: of the embedder, likewise.
        warm: keep verified blocks in memory.
    """

    __slots__ = (
        "_buffer",
        "_cache",
        "_head",
        "_ids",
        "_rows",
        "digest",
        "dim",
        "folder",
        "name",
        "warm",
    )

    def __init__(self, folder: str, *, name: str, dim: int, digest: str, warm: bool) -> None:
        """Nothing is read yet."""
        self.folder = folder
        self.name = name
        self.dim = dim
        self.digest = digest
        self.warm = warm
        self._head: Head | None = None
        self._rows: Rows | None = None
        self._ids: U32 | None = None
        self._buffer: I16 | None = None
        self._cache: dict[int, tuple[bytes, I16]] = {}

    def refresh(self) -> Head | None:
        """The head in force now, or None for no index.

        Raises:
            IndexDamaged: the header is not one that was written for this index.
            EmbedderMismatch: another embedder filled the index.
        """
        raw = vecfile.read_head(self.folder)
        if raw is None:
            self.close()
            return None
        if self._head is not None and raw[-32:] == self._head.seal:
            return self._head
        path = os.path.join(self.folder, vecfile.HEAD)
        head = vecfile.decode(raw, path)
        if head.name != self.name:
            raise IndexDamaged(f"'{path}' belongs to another partition")
        if head.digest != self.digest:
            raise EmbedderMismatch(f"the vectors of '{self.name}' come from another embedder")
        if head.dim != self.dim:
            raise IndexDamaged(f"'{path}' has {head.dim} dimensions instead of {self.dim}")
        return self.adopt(head)

    def adopt(self, head: Head) -> Head:
        """Take a head as the one in force; what it does not change stays in memory."""
        if self._rows is not None and self._rows.generation != head.generation:
            self._rows.close()
            self._rows = None
            self._cache.clear()
        self._head, self._ids = head, None
        return head

    def reading(self, read: Callable[[Head], T], nothing: T) -> T:
        """Run ``read`` on the head in force, again when a writer moved it meanwhile.

        Args:
            read: what to do with the head.
            nothing: the answer where there is no index.

        Raises:
            IndexDamaged: what was read is not what was written.
        """
        for _ in range(_RETRIES):
            head = self.refresh()
            if head is None:
                return nothing
            opened = self._rows
            try:
                return read(head)
            except IndexDamaged:
                # Files that were open before may be those of an index that was replaced since.
                fresh = opened is None
                self._forget()
                raw = vecfile.read_head(self.folder)
                if fresh and raw is not None and raw[-32:] == head.seal:
                    raise
        raise IndexDamaged(f"the vector index '{self.folder}' does not hold still")

    def open(self, head: Head) -> Rows:
        """The open files of the head's generation."""
        if self._rows is None:
            self._rows = vecfile.Rows(self.folder, head)
        return self._rows

    def ids(self, head: Head) -> U32:
        """Document numbers row by row, zero for dead rows: uint32 (rows,)."""
        import numpy as np

        if self._ids is None:
            self._ids = self.open(head).ids(head) if head.rows else np.empty(0, np.uint32)
        return self._ids

    def live(self, head: Head) -> Mask:
        """Which rows count: bool (rows,)."""
        import numpy as np

        live = np.ones(head.rows, bool)
        live[head.dead] = False
        return live

    def rows_of(self, head: Head, numbers: U32) -> U32:
        """Live rows of the given document numbers, ascending; numbers that are absent give none."""
        import numpy as np

        found = np.flatnonzero(np.isin(self.ids(head), numbers) & self.live(head))
        return found.astype(np.uint32)

    def block(self, head: Head, block: int) -> I16:
        """A verified block; valid until the next call unless the process is warm."""
        wanted = head.sum_of(block)
        known = self._cache.get(block)
        if known is not None and known[0] == wanted:
            return known[1]
        if self._buffer is None:
            self._buffer = vecfile.block_buffer(self.dim)
        data = self.open(head).block(head, block, self._buffer)
        if self.warm and head.rows * self.dim * 2 <= WARM_MAX_B:
            data = data.copy()
            self._cache[block] = wanted, data
        return data

    def close(self) -> None:
        """Close the files and let go of what is kept in memory."""
        self._forget()
        self._head = None
        self._cache.clear()

    def _forget(self) -> None:
        if self._rows is not None:
            self._rows.close()
        self._rows = self._ids = None
