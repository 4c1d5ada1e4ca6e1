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
    from collections.abc import Iterator

    from remem.index.vecfile import I16, U32, U64
    from remem.index.vecread import Mask

_WRITE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


def settle(folder: str, head: Head) -> None:
    """Finish or undo what a writer that died left behind.

    Rows behind the count are cut off, dead rows are zeroed, files of other generations go.

    Raises:
        IndexDamaged: a dead row cannot be read.
    """
    import numpy as np

    keep = set(head.names()) if head.rows else set()
    for name in vecfile.data_files(folder):
        if name not in keep:
            os.unlink(os.path.join(folder, name))
    if not head.rows:
        return
    rows = Rows(folder, head)
    stale = np.asarray(rows.unerased(head), np.uint32)
    rows.close()
    for name, width in zip(head.names(), head.widths(), strict=True):
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
    tail_marks = np.empty((0, vecfile.MARK_WORDS), np.uint64)
    if rows and head.rows % BLOCK_ROWS:
        tail = rows.block(head, head.blocks() - 1, vecfile.block_buffer(head.dim)).copy()
        tail_marks = np.empty((len(tail), vecfile.MARK_WORDS), "<u8")
        rows.marks(head, head.blocks() - 1, head.blocks(), tail_marks)
    marks = vecfile.marks_of(vectors)
    parts: list[vecfile.Whole] = [ids, vectors, marks]
    for name, data, width in zip(head.names(), parts, head.widths(), strict=True):
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
    fresh_marks = np.concatenate([tail_marks, marks])
    whole = head.rows // BLOCK_ROWS * SUM_B
    new.sums = head.sums[:whole] + _sums(fresh)
    new.mark_sums = head.mark_sums[:whole] + _sums(fresh_marks)
    new.ids_sum = vecfile.block_sum(all_ids)
    if gone.size:
        _bury(new, head, rows, all_ids, fresh, fresh_marks, gone)
    vecfile.publish(folder, new)
    _erase(folder, head, gone)
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
    new.dead = np.empty(0, np.uint32)
    live = np.ones(head.rows, bool)
    live[head.dead] = False
    ids = rows.ids(head)[live]
    new.rows, new.ids_sum = ids.size, vecfile.block_sum(ids)
    ids_file, *files = (
        os.open(os.path.join(folder, name), _WRITE | os.O_TRUNC, 0o600) for name in new.names()
    )
    try:
        vecfile.write_at(ids_file, vecfile.bytes_of(ids), 0)
        sums, offsets = [b"", b""], [0, 0]
        for parts in _full_blocks(head, rows, live):
            both: tuple[vecfile.Whole, ...] = parts
            for kind, part in enumerate(both):
                sums[kind] += _sums(part)
                vecfile.write_at(files[kind], vecfile.bytes_of(part), offsets[kind])
                offsets[kind] += part.nbytes
        for file in (ids_file, *files):
            os.fsync(file)
    finally:
        for file in (ids_file, *files):
            os.close(file)
    new.sums, new.mark_sums = sums
    vecfile.publish(folder, new)
    for name in head.names():
        os.unlink(os.path.join(folder, name))
    return new


def _full_blocks(head: Head, rows: Rows, live: Mask) -> Iterator[tuple[I16, U64]]:
    """The live rows and their marks in blocks of full size, the last one apart."""
    import numpy as np

    buffer = vecfile.block_buffer(head.dim)
    kept = np.empty((0, head.dim), "<i2")
    kept_marks: U64 = np.empty((0, vecfile.MARK_WORDS), "<u8")
    for block in range(head.blocks()):
        start, end = head.span(block)
        marks: U64 = np.empty((end - start, vecfile.MARK_WORDS), "<u8")
        rows.marks(head, block, block + 1, marks)
        own = live[start:end]
        kept = np.concatenate([kept, rows.block(head, block, buffer)[own]])
        kept_marks = np.concatenate([kept_marks, marks[own]])
        if len(kept) >= BLOCK_ROWS:
            yield kept[:BLOCK_ROWS], kept_marks[:BLOCK_ROWS]
            kept, kept_marks = kept[BLOCK_ROWS:], kept_marks[BLOCK_ROWS:]
    if len(kept):
        yield kept, kept_marks


def _sums(part: vecfile.Whole) -> bytes:
    """Sums of the blocks of some rows, end to end."""
    return b"".join(
        vecfile.block_sum(part[start : start + BLOCK_ROWS])
        for start in range(0, len(part), BLOCK_ROWS)
    )


def _bury(
    new: Head, head: Head, rows: Rows | None, ids: U32, fresh: I16, fresh_marks: U64, gone: U32
) -> None:
    """Put rows among the dead of a head that is not published yet, and renew the sums."""
    import numpy as np

    new.dead = np.union1d(head.dead, gone).astype(np.uint32)
    ids[gone] = 0
    new.ids_sum = vecfile.block_sum(ids)
    sums, mark_sums = bytearray(new.sums), bytearray(new.mark_sums)
    buffer = vecfile.block_buffer(head.dim)
    full = head.rows // BLOCK_ROWS
    for block in sorted(set((gone // BLOCK_ROWS).tolist())):
        start = block * BLOCK_ROWS
        if block < full and rows:
            data = rows.block(head, block, buffer)
            marks = np.empty((BLOCK_ROWS, vecfile.MARK_WORDS), "<u8")
            rows.marks(head, block, block + 1, marks)
        else:
            data, marks = fresh[:BLOCK_ROWS], fresh_marks[:BLOCK_ROWS]
        own = gone[gone // BLOCK_ROWS == block] - start
        data[own] = 0
        marks[own] = 0
        sums[block * SUM_B : (block + 1) * SUM_B] = vecfile.block_sum(data)
        mark_sums[block * SUM_B : (block + 1) * SUM_B] = vecfile.block_sum(marks)
    new.sums, new.mark_sums = bytes(sums), bytes(mark_sums)


def _erase(folder: str, head: Head, gone: U32) -> None:
    """Zero the bytes of retired rows."""
    for name, width in zip(head.names(), head.widths(), strict=True):
        if gone.size:
            file = os.open(os.path.join(folder, name), _WRITE, 0o600)
            try:
                _zero(file, gone, width)
            finally:
                os.close(file)


def _zero(file: int, rows: U32, width: int) -> None:
    for row in rows.tolist():
        vecfile.write_at(file, bytes(width), row * width)
    if rows.size:
        os.fsync(file)
