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

    from remem.index.vecfile import I16, I64, U32, U64, Head, Rows

    Mask = NDArray[np.bool_]

T = TypeVar("T")
WARM_MAX_B = 256 << 20  # of a larger index a process that stays keeps the marks, not the rows
_RUN = 64  # blocks whose marks are read in one go: 2.4 MB
_RETRIES = 8


class Reader:
    """The head in force and what it counts.

    Args:
        folder: of the index.
        name: what the header must be called.
        dim: what it must say of the vectors.
        digest: of the embedder, likewise.
        warm: keep verified blocks in memory.
        signs_rows: from how many rows on the index is searched by its codes.
    """

    __slots__ = (
        "_buffer",
        "_cache",
        "_codes",
        "_head",
        "_ids",
        "_marks_of",
        "_rising",
        "_rows",
        "_sums",
        "digest",
        "dim",
        "folder",
        "name",
        "signs_rows",
        "warm",
    )

    def __init__(
        self, folder: str, *, name: str, dim: int, digest: str, warm: bool, signs_rows: int
    ) -> None:
        """Nothing is read yet."""
        self.signs_rows = signs_rows
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
        self._rising: U32 | I64 | None = None
        self._sums: U64 | None = None
        self._codes: U64 | None = None
        self._marks_of = b""  # sums of the blocks whose marks are there

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
        if self._head is not None and self._head.generation != head.generation:
            self.let_go()
            self._cache.clear()
            self._drop_marks()
        self._head, self._ids, self._rising = head, None, None
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

        ids = self.ids(head)
        if self._rising is None:
            self._rising = self._ascending(head, ids)
        if self._rising.size:
            wanted = np.sort(numbers)  # np.unique would load numpy.ma
            wanted = wanted[np.concatenate([[True], wanted[1:] > wanted[:-1]])[: wanted.size]]
            at: I64 = np.searchsorted(self._rising, wanted)
            wanted, at = wanted[at < ids.size], at[at < ids.size]
            at = at[self._rising[at] == wanted]
            rows: U32 = at[self.live(head)[at]].astype(np.uint32)
            return rows
        some: U32 = np.flatnonzero(np.isin(ids, numbers) & self.live(head)).astype(np.uint32)
        return some

    def _ascending(self, head: Head, ids: U32) -> U32 | I64:
        """The numbers of the rows if these ascend, as they do as a rule; else nothing.

        A dead row, which has no number, takes that of its forerunner.
        """
        import numpy as np

        if not head.dead.size:
            return ids if np.all(ids[1:] > ids[:-1]) else ids[:0]
        known = ids.astype(np.int64)
        known[head.dead] = -1
        rising: I64 = np.maximum.accumulate(known)
        live = self.live(head)
        steps = rising[live]
        in_order = np.array_equal(known[live], steps) and np.all(steps[1:] > steps[:-1])
        return rising if in_order else rising[:0]

    def block(self, head: Head, block: int) -> I16:
        """A verified block; valid until the next call unless the process is warm."""
        wanted = head.sum_of(block)
        known = self._cache.get(block)
        if known is not None and known[0] == wanted:
            return known[1]
        if self._buffer is None:
            self._buffer = vecfile.block_buffer(self.dim)
        data = self.open(head).block(head, block, self._buffer)
        if self._fits(head):
            data = data.copy()
            self._cache[block] = wanted, data
        return data

    def codes(self, head: Head) -> U64:
        """The codes of all rows, verified: uint64 (signs.WORDS, rows); zeros for dead rows."""
        return self._read_marks(head)[1][:, : head.rows]

    def _read_marks(self, head: Head) -> tuple[U64, U64]:
        """Sums and codes of all rows; what is in memory and did not change stays."""
        import numpy as np

        sums, codes = self._sums, self._codes
        if sums is not None and codes is not None and self._marks_of == head.mark_sums:
            return sums, codes
        if sums is None or codes is None or len(sums) < head.rows:
            more: U64 = np.empty(head.rows, "<u8")
            wider: U64 = np.empty((vecfile.MARK_WORDS - 1, head.rows), "<u8")
            if sums is not None and codes is not None:
                more[: len(sums)], wider[:, : len(sums)] = sums, codes
            sums, codes = self._sums, self._codes = more, wider
        blocks = head.blocks()
        before = self._marks_of
        self._marks_of = b""
        buffer: U64 = np.empty((_RUN * vecfile.BLOCK_ROWS, vecfile.MARK_WORDS), "<u8")
        width = vecfile.SUM_B
        block = 0
        while block < blocks:
            last = block
            while last < blocks and last - block < _RUN:
                at = last * width
                if before[at : at + width] == head.mark_sums[at : at + width]:
                    break
                last += 1
            if last > block:
                start, end = head.span(block)[0], head.span(last - 1)[1]
                some = buffer[: end - start]
                self.open(head).marks(head, block, last, some)
                sums[start:end], codes[:, start:end] = some[:, 0], some[:, 1:].T
            block = max(last, block + 1)
        self._marks_of = head.mark_sums
        return sums, codes

    def some(self, head: Head, rows: I64) -> I16:
        """Single rows, verified: int16 (n, dim).

        Args:
            head: in force.
            rows: int64 (n,), ascending, none of them dead.
        """
        import numpy as np

        if not self._fits(head):
            return self.open(head).some(head, rows, self._read_marks(head)[0][rows])
        out: I16 = np.empty((rows.size, self.dim), "<i2")
        at = np.searchsorted(rows, np.arange(head.blocks() + 1) * vecfile.BLOCK_ROWS)
        for block in np.flatnonzero(np.diff(at)).tolist():
            first, last = int(at[block]), int(at[block + 1])
            own = rows[first:last] - block * vecfile.BLOCK_ROWS
            out[first:last] = self.block(head, block)[own]
        return out

    def _fits(self, head: Head) -> bool:
        """Whether this process keeps every block that it reads."""
        return self.warm and head.rows * self.dim * 2 <= WARM_MAX_B

    def let_go(self) -> None:
        """Close the files; what is in memory stays."""
        if self._rows is not None:
            self._rows.close()
        self._rows = None

    def has_lost(self) -> bool:
        """Whether rows of the head that is in memory were removed since."""
        import numpy as np

        known = self._head
        if known is None:
            return False
        try:
            raw = vecfile.read_head(self.folder)
            if raw is None:
                return True
            if raw[-32:] == known.seal:
                return False
            now = vecfile.decode(raw, os.path.join(self.folder, vecfile.HEAD))
        except IndexDamaged:
            return True
        return now.generation != known.generation or not np.array_equal(now.dead, known.dead)

    def close(self) -> None:
        """Close the files and let go of what is kept in memory."""
        self._forget()
        self._head = None
        self._cache.clear()
        self._drop_marks()

    def _drop_marks(self) -> None:
        self._sums = self._codes = None
        self._marks_of = b""

    def _forget(self) -> None:
        self.let_go()
        self._ids = self._rising = None
