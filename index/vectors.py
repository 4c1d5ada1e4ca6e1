"""The vector index of one scope partition: document numbers with their vectors.

It is a projection: its folder may be damaged or deleted at any moment and filled again from the
store.  Readers need no lock; one writer at a time holds a lock that the caller provides.

Vectors are kept as 16-bit integers (recall@10 against float32: 1.000, largest error of a score
2e-5), half the bytes to read and check, and widened block by block while they are in the cache.
Whatever is used was compared with a sum first, so no stamp has to be trusted.

A small index is read as a whole.  Of a large one every process reads the codes, 72 bytes a row,
and then the rows that can be near (index/vecsearch.py), so an answer is the same whoever gives it.
A process that stays (``warm``) keeps what it read in memory: the codes, and of an index that is not
too large the rows.

A graph (hnswlib) was here before.  At a million rows it needs 1.75 GB of memory and half an hour
to build, and costs a process that asks one question more to load than reading every row does.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from remem.index import vecfile, vecsearch, vecwrite
from remem.index.blas import one_thread
from remem.index.errors import EmbedderMismatch, IndexDamaged
from remem.index.vecread import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from remem.index.vecfile import U32, Head
    from remem.index.vecsearch import F32, Allow

_COMPACT_MIN = 1_024
_UNIT_SLACK = 1e-2


class VectorIndex:
    """Vectors of documents, searchable by inner product.

    Args:
        folder: where the files lie; made by the first ``add``.
        name: of the partition.  It is written into the header, so that an index put in another's
            place is noticed.
        dim: length of the vectors.
        digest: identity of the embedder.
        warm: this process will search many times.
        signs_rows: from how many rows on it is searched by codes.

    Raises:
        IndexDamaged: the header is not one that was written for this index.
        EmbedderMismatch: another embedder filled the index.
    """

    def __init__(
        self,
        folder: str,
        *,
        name: str,
        dim: int,
        digest: str,
        warm: bool = False,
        signs_rows: int = vecsearch.SIGNS_ROWS,
    ) -> None:
        """Read the header."""
        self.folder = folder
        self.name = name
        self.dim = dim
        self.digest = digest
        self.warm = warm
        self._reader = Reader(
            folder, name=name, dim=dim, digest=digest, warm=warm, signs_rows=signs_rows
        )
        self._settled = b""
        self._reader.refresh()

    @staticmethod
    def reset(folder: str) -> None:
        """Remove the index of a folder, in whatever state it is.

        Raises:
            StoreReadOnly, StoreError: the system refused.
        """
        try:
            for name in (vecfile.HEAD, *vecfile.data_files(folder)):
                try:
                    os.unlink(os.path.join(folder, name))
                except FileNotFoundError:
                    pass
        except OSError as error:
            raise vecfile.store_error(error, f"remove the vector index '{folder}'") from None

    @property
    def exists(self) -> bool:
        """Whether anything was ever added (and not reset since)."""
        return self._reader.refresh() is not None

    @property
    def count(self) -> int:
        """Number of vectors that can be found."""
        head = self._reader.refresh()
        return head.rows - head.dead.size if head else 0

    @property
    def size_b(self) -> int:
        """Bytes that ``load`` keeps."""
        head = self._reader.refresh()
        if head is None:
            return 0
        return head.rows * (4 + (head.dim * 2 if self._is_small(head) else head.widths()[2]))

    def load(self) -> None:
        """Read, check and keep what a search reads anyway; afterwards no file is open.

        Raises:
            IndexDamaged: what is there is not what was written.
        """

        def read(head: Head) -> None:
            self._reader.ids(head)
            if not self._is_small(head):
                self._reader.warm = False  # the few rows that a search wants are soon read
                self._reader.codes(head)
                self._reader.rows_of(head, self._reader.ids(head)[:1])
                return
            for block in range(head.blocks()):
                self._reader.block(head, block)

        self._reader.reading(read, None)
        self._reader.let_go()

    def has_lost(self) -> bool:
        """Whether rows that were read before were removed since, by whichever way."""
        return self._reader.has_lost()

    def ids(self) -> U32:
        """Document numbers that can be found, ascending: uint32 (count,).

        Raises:
            IndexDamaged: the file of document numbers is not what was written.
        """
        import numpy as np

        reader = self._reader
        return reader.reading(
            lambda head: np.sort(reader.ids(head)[reader.live(head)]), np.empty(0, np.uint32)
        )

    def get(self, number: int) -> F32 | None:
        """The vector of one document, float32 (dim,), or None.

        Raises:
            IndexDamaged: what was read is not what was written.
        """
        import numpy as np

        def read(head: Head) -> F32 | None:
            rows = self._reader.rows_of(head, np.asarray([number], np.uint32))
            if not rows.size:
                return None
            block, row = divmod(int(rows[0]), vecfile.BLOCK_ROWS)
            vector: F32 = self._reader.block(head, block)[row] / np.float32(vecfile.SCALE)
            return vector

        return self._reader.reading(read, None)

    def blocks(self) -> Iterator[tuple[int, tuple[U32, F32]]]:
        """Every vector that can be found, block by block: where it begins, numbers and vectors.

        Raises:
            IndexDamaged: what was read is not what was written.
        """
        head = self._reader.refresh()
        if head is None:
            return
        ids = self._reader.ids(head)
        at = 0
        for rows, data in self._chunks(head):
            yield at, (ids[rows], data)
            at += rows.size

    def search(self, query: F32, k: int, *, allow: Allow | None = None) -> tuple[U32, F32]:
        """The k nearest documents.

        Args:
            query: float32 (dim,), unit length.
            k: at most so many; 0 gives none.
            allow: which documents may be found: bool by document number (numbers past its end
                may not), or a function from numbers, uint32 (n,), to bool (n,).  It is applied
                before the cut to k.

        Returns:
            Document numbers, uint32 (up to k,), and their inner products, float32, the best
            first, equal ones by number.

        Raises:
            IndexDamaged: what was read is not what was written.
        """
        import numpy as np

        vector = np.ascontiguousarray(query, np.float32)
        if vector.shape != (self.dim,) or not np.all(np.isfinite(vector)):
            raise ValueError(f"a query must be {self.dim} finite numbers")
        nothing = np.empty(0, np.uint32), np.empty(0, np.float32)
        if k <= 0:
            return nothing
        one_thread()
        reader = self._reader
        return reader.reading(
            lambda head: vecsearch.search(reader, head, vector, k, allow),
            nothing,
        )

    def scores(self, query: F32, numbers: Sequence[int] | U32) -> tuple[U32, F32]:
        """Inner products of some documents.

        Args:
            query: float32 (dim,), unit length.
            numbers: of the documents; those without a vector are left out.

        Returns:
            Document numbers, uint32 (n,), and their inner products, float32.

        Raises:
            IndexDamaged: what was read is not what was written.
        """
        import numpy as np

        wanted = np.asarray(numbers, np.uint32)
        reader = self._reader

        def read(head: Head) -> tuple[U32, F32]:
            rows = reader.rows_of(head, wanted).astype(np.int64)
            return reader.ids(head)[rows], vecsearch.scores(reader, head, query, rows)

        one_thread()
        return reader.reading(read, (np.empty(0, np.uint32), np.empty(0, np.float32)))

    def add(self, ids: Sequence[int] | U32, vectors: F32) -> None:
        """Add vectors; a document that is there already gets its new one.

        Args:
            ids: n document numbers, each once.
            vectors: float32 (n, dim), unit length.

        Raises:
            IndexDamaged: what is there already is not what was written.
            StoreFull, StoreReadOnly, StoreError: the system refused; nothing was added.
        """
        import numpy as np

        numbers = np.asarray(ids, np.int64)
        block = np.asarray(vectors, np.float32)
        if block.shape != (numbers.size, self.dim) or numbers.ndim != 1:
            raise ValueError(f"{numbers.size} document numbers need as many vectors of {self.dim}")
        if not numbers.size:
            return
        ordered = np.sort(numbers)
        if np.any(ordered[1:] == ordered[:-1]) or not 0 <= ordered[0] <= ordered[-1] < 2**32:
            raise ValueError("document numbers must be different and fit 32 bits")
        lengths = np.einsum("ij,ij->i", block, block)
        if not np.all(np.abs(lengths - 1) < _UNIT_SLACK):
            raise ValueError("vectors must have unit length")
        whole = np.rint(np.clip(block, -1, 1) * vecfile.SCALE).astype("<i2")
        fresh = numbers.astype("<u4")

        def write(head: Head) -> Head:
            gone = np.empty(0, np.uint32)
            if head.rows and int(fresh.min()) <= head.max_id:
                gone = self._reader.rows_of(head, fresh)
            rows = self._reader.open(head) if head.rows else None
            return vecwrite.append(self.folder, head, rows, fresh, whole, gone)

        self._writing(write)

    def remove(self, ids: Sequence[int] | U32) -> int:
        """Remove documents; their vectors are zeroed in the file before this returns.

        Returns:
            How many of them were there.

        Raises:
            IndexDamaged: what is there is not what was written.
            StoreFull, StoreReadOnly, StoreError: the system refused.
        """
        import numpy as np

        removed = 0

        def write(head: Head) -> Head:
            nonlocal removed
            gone = self._reader.rows_of(head, np.asarray(ids, np.uint32))
            removed = int(gone.size)
            if not removed:
                return head
            return vecwrite.retire(self.folder, head, self._reader.open(head), gone)

        if self._reader.refresh() is not None and len(ids):
            self._writing(write)
        return removed

    def compact(self) -> None:
        """Rewrite the files without removed rows; other processes change over by themselves.

        Raises:
            IndexDamaged: what is there is not what was written.
            StoreFull, StoreReadOnly, StoreError: the system refused; the old files stay.
        """

        def write(head: Head) -> Head:
            if not head.dead.size:
                return head
            return vecwrite.rewrite(self.folder, head, self._reader.open(head))

        if self._reader.refresh() is not None:
            self._writing(write)

    def verify(self) -> list[str]:
        """Check every byte.

        Returns:
            One line for each thing that is wrong; empty when nothing is.
        """
        import numpy as np

        try:
            head = self._reader.refresh()
            rows = vecfile.Rows(self.folder, head) if head and head.rows else None
        except (IndexDamaged, EmbedderMismatch) as error:
            return [str(error)]
        if head is None or rows is None:
            return []
        findings: list[str] = []

        def attempt(check: Callable[[], object]) -> None:
            try:
                check()
            except IndexDamaged as error:
                findings.append(str(error))

        def numbers() -> None:
            live = rows.ids(head)[self._reader.live(head)]
            if np.unique(live).size != live.size:
                findings.append(f"'{self.folder}' holds a document number twice")

        def remains() -> None:
            if count := len(rows.unerased(head)):
                findings.append(f"'{self.folder}' still holds {count} removed vectors")

        buffer = vecfile.block_buffer(self.dim)
        attempt(numbers)
        attempt(remains)
        for block in range(head.blocks()):
            known = len(findings)
            attempt(partial(rows.block, head, block, buffer))
            attempt(partial(rows.check_marks, head, block, beside_rows=len(findings) == known))
        rows.close()
        return findings

    def close(self) -> None:
        """Close the files and let go of what is kept in memory."""
        self._reader.close()

    def _is_small(self, head: Head) -> bool:
        return head.rows < self._reader.signs_rows

    def _chunks(self, head: Head) -> Iterator[tuple[NDArray[np.uint64], F32]]:
        """Live rows with their vectors, block by block."""
        import numpy as np

        live = self._reader.live(head)
        for block in range(head.blocks()):
            start, end = head.span(block)
            own = np.flatnonzero(live[start:end])
            if own.size:
                data = self._reader.block(head, block)[own].astype(np.float32)
                data /= np.float32(vecfile.SCALE)
                yield (own + start).astype(np.uint64), data

    def _writing(self, write: Callable[[Head], Head]) -> None:
        """Run a change on the head in force, after finishing what a dead writer left."""
        try:
            head = self._reader.refresh()
            if head is None:
                # An empty head comes first: rows without a head are what a lost head looks like.
                os.makedirs(self.folder, mode=0o700, exist_ok=True)
                head = vecfile.Head(self.name, self.dim, self.digest)
                vecfile.publish(self.folder, head)
            if self._settled != head.seal:
                vecwrite.settle(self.folder, head)
            new = write(head)
            self._settled = new.seal
            self._reader.adopt(new)
            if new.dead.size > max(_COMPACT_MIN, new.rows // 4):
                new = vecwrite.rewrite(self.folder, new, self._reader.open(new))
                self._settled = new.seal
                self._reader.adopt(new)
        except OSError as error:
            self._settled = b""
            raise vecfile.store_error(error, f"write the vector index '{self.folder}'") from None
