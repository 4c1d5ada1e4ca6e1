"""Nearest rows of a vector index: by scanning, or by a graph with its tail scanned.

Both ways end in the same arithmetic: the inner product of the stored integers with the query in
float64, rounded once to float32.  So a score does not depend on how a row was found, on where it
lies or on what lies beside it, and equal vectors have equal scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.index import vecfile
from remem.index.hnsw import breadth

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from remem.index.hnsw import Graph
    from remem.index.vecfile import I16, U32, Head
    from remem.index.vecread import Mask, Reader

    F32 = NDArray[np.float32]
    I64 = NDArray[np.int64]
    Allow = Mask | Callable[[U32], Mask]

EXACT_ROWS = 10_000  # a filter that leaves so few rows is scanned: 1 ms
_SCAN_ROWS = 15  # a scan looks at so many rows in the time of one candidate of a graph
_MARGIN = 1e-5  # float32 products of unit vectors differ from exact ones by less
_GATHER = 4  # a block with fewer than a quarter of its rows allowed is not widened as a whole


class Best:
    """The best rows so far.

    Args:
        query: float32 (dim,).
        k: how many are wanted.
    """

    __slots__ = ("_k", "_query", "_rows", "_scores", "floor")

    def __init__(self, query: F32, k: int) -> None:
        """Start with none."""
        import numpy as np

        self._query = query.astype(np.float64) / vecfile.SCALE
        self._k = k
        self._rows: I64 = np.empty(0, np.int64)
        self._scores: F32 = np.empty(0, np.float32)
        self.floor = -np.inf

    def offer(self, rows: I64, vectors: I16) -> None:
        """Score rows exactly and keep those that may be among the best, all equal ones included.

        Args:
            rows: int64 (n,).
            vectors: int16 (n, dim).
        """
        import numpy as np

        scores = (vectors.astype(np.float64) @ self._query).astype(np.float32)
        self._rows = np.concatenate([self._rows, rows])
        self._scores = np.concatenate([self._scores, scores])
        if self._scores.size > self._k:
            at = self._scores.size - self._k
            self.floor = float(np.partition(self._scores, at)[at])
            keep = self._scores >= self.floor
            self._rows, self._scores = self._rows[keep], self._scores[keep]

    def result(self, ids: U32) -> tuple[U32, F32]:
        """Document numbers and scores, the best first, equal ones by number."""
        import numpy as np

        numbers = ids[self._rows]
        order = np.lexsort((numbers, -self._scores))[: self._k]
        return numbers[order].astype(np.uint32), self._scores[order]


def search(
    reader: Reader, head: Head, graph: Graph | None, query: F32, k: int, allow: Allow | None
) -> tuple[U32, F32]:
    """The k nearest documents that are live and allowed.

    Args:
        reader: of the index.
        head: in force.
        graph: over the first ``head.graph_rows`` rows, or None to scan.
        query: float32 (dim,), unit length.
        k: at most so many.
        allow: see ``VectorIndex.search``.
    """
    import numpy as np

    ids = reader.ids(head)
    wanted = reader.live(head)
    if allow is not None:
        wanted[wanted] = _allowed(ids[wanted], allow)
    best = Best(query, k)
    count = int(np.count_nonzero(wanted))
    first = 0
    if graph is not None and count > EXACT_ROWS:
        near = _by_graph(graph, query, k, wanted[: head.graph_rows])
        if near is not None:
            _score(reader, head, best, near)
            first = head.graph_rows
    _scan(reader, head, best, query, wanted, first)
    return best.result(ids)


def _allowed(ids: U32, allow: Allow) -> Mask:
    import numpy as np

    if callable(allow):
        answer = np.asarray(allow(ids), bool)
        if answer.shape != ids.shape:
            raise ValueError("a filter must answer for each document number")
        return answer
    out = np.zeros(ids.size, bool)
    inside = ids < allow.size
    out[inside] = allow[ids[inside]]
    return out


def _by_graph(graph: Graph, query: F32, k: int, wanted: Mask) -> I64 | None:
    """Wanted rows near the query, at least k of them, or None when the graph is no help."""
    import numpy as np

    inside = int(np.count_nonzero(wanted))
    if not inside:
        return None
    # Enough that the filter leaves k of them, if it is independent of the query; where it is
    # not, too few are left and the scan does it.
    fetch = int(k * wanted.size / inside * 1.3) + 32
    if fetch > wanted.size or breadth(fetch) * _SCAN_ROWS > inside:
        return None
    near = graph.nearest(query, fetch)
    near = near[wanted[near]]
    return near if near.size >= min(k, inside) else None


def _score(reader: Reader, head: Head, best: Best, rows: I64) -> None:
    import numpy as np

    rows = np.sort(rows)
    for block in np.unique(rows // vecfile.BLOCK_ROWS).tolist():
        own = rows[rows // vecfile.BLOCK_ROWS == block]
        best.offer(own, reader.block(head, block)[own - block * vecfile.BLOCK_ROWS])


def _scan(reader: Reader, head: Head, best: Best, query: F32, wanted: Mask, first: int) -> None:
    """Offer every wanted row from ``first`` on that may be among the best."""
    import numpy as np

    scaled = query / np.float32(vecfile.SCALE)
    wide = np.empty((vecfile.BLOCK_ROWS, query.size), np.float32)
    scores = np.empty(vecfile.BLOCK_ROWS, np.float32)
    for block in range(first // vecfile.BLOCK_ROWS, head.blocks()):
        start, end = head.span(block)
        some = wanted[start:end]
        if start < first:
            some = some & (np.arange(start, end) >= first)
        count = int(np.count_nonzero(some))
        if not count:
            continue
        size = end - start
        data = reader.block(head, block)
        if count * _GATHER < size:
            own = np.flatnonzero(some)
            own = own[data[own].astype(np.float32) @ scaled >= best.floor - _MARGIN]
        else:
            np.copyto(wide[:size], data)
            np.matmul(wide[:size], scaled, out=scores[:size])
            near = scores[:size] >= best.floor - _MARGIN
            if not near.any():
                continue
            own = np.flatnonzero(near & some)
        if own.size:
            best.offer(own + start, data[own])
