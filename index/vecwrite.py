"""Changes to the files of a vector index: append, retire, rewrite.

Each function takes the head that is in force and returns the one it published; a crash at any
step leaves the old head or the new one in force (see index/vecfile.py for the order of writes).
The caller holds the lock that keeps other writers out.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.index import vecfile
from remem.index.vecfile import BLOCK_ROWS, SUM_B, Head, Rows

if TYPE_CHECKING:
    from remem.index.vecfile import I16, U32

_WRITE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


def settle(folder: str, head: Head) -> None:
    """Finish or undo what a writer that died left behind.

    Rows behind the count are cut off, dead rows are zeroed, files of other generations go.

    Raises:
        IndexDamaged: a dead row cannot be read.
    """
    import numpy as np

    keep = {head.ids_name(), head.rows_name(), head.graph_name()} if head.rows else set()
    for name in vecfile.data_files(folder):
        if name not in keep:
            os.unlink(os.path.join(folder, name))
    if not head.rows:
        return
    rows = Rows(folder, head)
    stale = np.asarray(rows.unerased(head), np.uint32)
    rows.close()
    for name, width in ((head.ids_name(), 4), (head.rows_name(), 2 * head.dim)):
        file = os.open(os.path.join(folder, name), _WRITE, 0o600)
        try:
            if os.fstat(file).st_size > head.rows * width:
                os.ftruncate(file, head.rows * width)
            _zero(file, stale, width)
        finally:
            os.close(file)


def append(folder: str, head: Head, rows: Rows | None, ids: U32, vectors: I16, gone: U32) -> Head:
    """Add rows and retire others in one step.

    Args:
        folder: of the index.
        head: in force.
        rows: its open files, or None for an index without rows.
        ids: uint32 (n,), document numbers.
        vectors: int16 (n, dim).
        gone: rows of the old head to retire.
    """
    import numpy as np

    new = head.copy()
    old_ids = rows.ids(head) if rows else np.empty(0, np.uint32)
    tail = np.empty((0, head.dim), np.int16)
    if rows and head.rows % BLOCK_ROWS:
        tail = rows.block(head, head.blocks() - 1, vecfile.block_buffer(head.dim)).copy()
    for name, data, width in (
        (head.ids_name(), ids, 4),
        (head.rows_name(), vectors, 2 * head.dim),
    ):
        file = os.open(os.path.join(folder, name), _WRITE, 0o600)
        try:
            vecfile.write_at(file, vecfile.bytes_of(data), head.rows * width)
            os.fsync(file)
        finally:
            os.close(file)
    new.rows = head.rows + ids.size
    new.max_id = max(head.max_id, int(ids.max())) if ids.size else head.max_id
    all_ids = np.concatenate([old_ids, ids])
    fresh = np.concatenate([tail, vectors])
    sums = [head.sums[: head.rows // BLOCK_ROWS * SUM_B]]
    sums += [
        vecfile.block_sum(fresh[start : start + BLOCK_ROWS])
        for start in range(0, fresh.shape[0], BLOCK_ROWS)
    ]
    new.sums = b"".join(sums)
    new.ids_sum = vecfile.block_sum(all_ids)
    if gone.size:
        _bury(new, head, rows, all_ids, fresh, gone)
    vecfile.publish(folder, new)
    _erase(folder, head, new, gone)
    return new


def retire(folder: str, head: Head, rows: Rows, gone: U32) -> Head:
    """Take rows out: they stop counting at once, then their bytes are zeroed."""
    import numpy as np

    none = np.empty((0, head.dim), np.int16)
    return append(folder, head, rows, np.empty(0, np.uint32), none, gone)


def rewrite(folder: str, head: Head, rows: Rows) -> Head:
    """Copy the live rows into files of a new generation and remove the old files."""
    import numpy as np

    new = head.copy()
    new.generation += 1
    new.drop_graph()
    new.dead = np.empty(0, np.uint32)
    live = np.ones(head.rows, bool)
    live[head.dead] = False
    ids = rows.ids(head)[live]
    new.rows, new.ids_sum = ids.size, vecfile.block_sum(ids)
    file = os.open(os.path.join(folder, new.ids_name()), _WRITE | os.O_TRUNC, 0o600)
    try:
        vecfile.write_at(file, vecfile.bytes_of(ids), 0)
        os.fsync(file)
    finally:
        os.close(file)
    buffer, sums, offset = vecfile.block_buffer(head.dim), [], 0
    pending = np.empty((0, head.dim), np.int16)
    file = os.open(os.path.join(folder, new.rows_name()), _WRITE | os.O_TRUNC, 0o600)
    try:
        for block in range(head.blocks()):
            start, end = head.span(block)
            kept = rows.block(head, block, buffer)[live[start:end]]
            pending = np.concatenate([pending, kept])
            while pending.shape[0] >= BLOCK_ROWS or (block == head.blocks() - 1 and pending.size):
                full, pending = pending[:BLOCK_ROWS], pending[BLOCK_ROWS:]
                sums.append(vecfile.block_sum(full))
                vecfile.write_at(file, vecfile.bytes_of(full), offset)
                offset += full.nbytes
        os.fsync(file)
    finally:
        os.close(file)
    new.sums = b"".join(sums)
    vecfile.publish(folder, new)
    for name in (head.ids_name(), head.rows_name(), head.graph_name()):
        if name:
            os.unlink(os.path.join(folder, name))
    return new


def _bury(new: Head, head: Head, rows: Rows | None, ids: U32, fresh: I16, gone: U32) -> None:
    """Put rows among the dead of a head that is not published yet, and renew the sums."""
    import numpy as np

    new.dead = np.union1d(head.dead, gone).astype(np.uint32)
    ids[gone] = 0
    new.ids_sum = vecfile.block_sum(ids)
    sums = bytearray(new.sums)
    buffer = vecfile.block_buffer(head.dim)
    full = head.rows // BLOCK_ROWS
    for block in sorted(set((gone // BLOCK_ROWS).tolist())):
        start = block * BLOCK_ROWS
        if block < full and rows:
            data = rows.block(head, block, buffer)
        else:
            data = fresh[:BLOCK_ROWS]
        data[gone[gone // BLOCK_ROWS == block] - start] = 0
        sums[block * SUM_B : (block + 1) * SUM_B] = vecfile.block_sum(data)
    new.sums = bytes(sums)
    if head.graph_rows and int(gone.min()) < head.graph_rows:
        new.drop_graph()


def _erase(folder: str, head: Head, new: Head, gone: U32) -> None:
    """Zero the bytes of retired rows; a graph that holds one of them goes as a whole."""
    for name, width in ((head.ids_name(), 4), (head.rows_name(), 2 * head.dim)):
        if gone.size:
            file = os.open(os.path.join(folder, name), _WRITE, 0o600)
            try:
                _zero(file, gone, width)
            finally:
                os.close(file)
    if head.graph_name() and not new.graph_name():
        os.unlink(os.path.join(folder, head.graph_name()))


def _zero(file: int, rows: U32, width: int) -> None:
    for row in rows.tolist():
        vecfile.write_at(file, bytes(width), row * width)
    if rows.size:
        os.fsync(file)
