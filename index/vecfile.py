r"""Files of a vector index: their form, and reading them without trusting a byte.

Layout of a folder, G being the generation::

    HEAD            counts, sums, the embedder's identity; replaced by rename
    ids-G.u32       document numbers, 4 bytes each, row by row
    rows-G.i16      vectors, dim x 2 bytes each, row by row: round(x * 32767)
    marks-G.u64     of each row: BLAKE3-64 of its vector, then its code (index/signs.py): 72 bytes

HEAD, integers little-endian::

    offset  size  what
    0       16    "remem vectors 2\n"
    16      4     generation
    20      8     serial: one more at each HEAD
    28      4     dim
    32      4     rows, dead ones included
    36      4     largest document number ever added
    40      4     d: number of dead rows
    44      2+2   bytes of the name, bytes of the digest; both follow at 48, UTF-8
    ...     4 d   dead rows, ascending
    ...     16    BLAKE3-128 of the ids
    ...     16 b  BLAKE3-128 of each block of 512 rows (the last may be shorter)
    ...     16 b  BLAKE3-128 of the marks of each block
    end-32  32    BLAKE3 of everything before

A scan compares whole blocks with their sums.  Who wants a few rows compares the marks of their
blocks, and each row with the sum in its mark.

Sums are taken over the rows that HEAD counts, *with its dead rows read as zeros* (a dead row's
mark is zero, too).  So a removal
first publishes HEAD and then zeroes the bytes, and a crash or a reader between the two finds sums
that match; an append first writes rows and then publishes, and rows behind the count do not exist.
A reader holds no lock: where a sum does not match it looks whether HEAD has moved on.

Reads are copies (``pread``), for a file that shrinks under a map kills the process.  Single rows,
thousands of which a question may want, are copied from a map, after a look at the size of the file:
nothing here ever cuts off a row that a head counts, and a call into the system for each costs four
times as much.
"""

from __future__ import annotations

import errno
import os
import struct
from typing import TYPE_CHECKING, Any

from remem.index import signs
from remem.index.errors import IndexDamaged
from remem.objects.errors import StoreError, StoreFull, StoreReadOnly

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    U32 = NDArray[np.uint32]
    U64 = NDArray[np.uint64]
    I64 = NDArray[np.int64]
    I16 = NDArray[np.int16]
    Whole = NDArray[np.integer[Any]]

MAGIC = b"remem vectors 2\n"
HEAD = "HEAD"
BLOCK_ROWS = 512  # x 384 x (2 + 4) bytes: a block and its float32 copy stay in a 2 MiB cache
SCALE = 32767.0
SUM_B = 16
MARK_WORDS = 1 + signs.WORDS  # of 8 bytes
_FIXED = struct.Struct("<16sIQIIIIHH")


class Head:
    """What HEAD says.

    Attributes:
        dead: uint32, ascending: rows that no longer count and whose bytes are zero.
        sums: BLAKE3-128 of each block, end to end.
        mark_sums: the same of the marks of each block.
        seal: BLAKE3 of the whole header; two heads are the same when their seals are.
    """

    __slots__ = (
        "dead",
        "digest",
        "dim",
        "generation",
        "ids_sum",
        "mark_sums",
        "max_id",
        "name",
        "rows",
        "seal",
        "serial",
        "sums",
    )

    def __init__(self, name: str, dim: int, digest: str) -> None:
        """The head of an index without rows."""
        import numpy as np

        self.name = name
        self.dim = dim
        self.digest = digest
        # Random, so that a process still holding the files of a removed index sees that they are
        # others.
        self.generation = int.from_bytes(os.urandom(4), "little") >> 1
        self.serial = 0
        self.rows = 0
        self.max_id = 0
        self.dead: U32 = np.empty(0, np.uint32)
        self.ids_sum = block_sum(b"")
        self.sums = self.mark_sums = b""
        self.seal = b""

    def copy(self) -> Head:
        """Another head with the same values, to be changed and published."""
        other = Head(self.name, self.dim, self.digest)
        for slot in self.__slots__:
            setattr(other, slot, getattr(self, slot))
        return other

    def ids_name(self) -> str:
        """File name of the document numbers."""
        return f"ids-{self.generation}.u32"

    def rows_name(self) -> str:
        """File name of the vectors."""
        return f"rows-{self.generation}.i16"

    def marks_name(self) -> str:
        """File name of the marks."""
        return f"marks-{self.generation}.u64"

    def names(self) -> list[str]:
        """Names of all files of the generation."""
        return [self.ids_name(), self.rows_name(), self.marks_name()]

    def widths(self) -> list[int]:
        """Bytes of a row in each of them."""
        return [4, 2 * self.dim, 8 * MARK_WORDS]

    def blocks(self) -> int:
        """Number of blocks, a shorter last one included."""
        return -(-self.rows // BLOCK_ROWS)

    def span(self, block: int) -> tuple[int, int]:
        """First row of a block and the row after its last."""
        start = block * BLOCK_ROWS
        return start, min(start + BLOCK_ROWS, self.rows)

    def sum_of(self, block: int) -> bytes:
        """BLAKE3-128 of a block."""
        return self.sums[block * SUM_B : (block + 1) * SUM_B]

    def mark_sum_of(self, block: int) -> bytes:
        """BLAKE3-128 of the marks of a block."""
        return self.mark_sums[block * SUM_B : (block + 1) * SUM_B]

    def dead_in(self, start: int, end: int) -> U32:
        """Dead rows from ``start`` up to ``end``."""
        import numpy as np

        first, last = np.searchsorted(self.dead, (start, end))
        return self.dead[first:last]

    def encode(self) -> bytes:
        """The bytes of HEAD."""
        from blake3 import blake3

        name, digest = self.name.encode(), self.digest.encode()
        fixed = _FIXED.pack(
            MAGIC, self.generation, self.serial, self.dim, self.rows, self.max_id, self.dead.size,
            len(name), len(digest),
        )  # fmt: skip
        dead = self.dead.astype("<u4").tobytes()
        body = b"".join((fixed, name, digest, dead, self.ids_sum, self.sums, self.mark_sums))
        return body + blake3(body).digest()


def decode(raw: bytes, path: str) -> Head:
    """Read HEAD.

    Raises:
        IndexDamaged: the seal does not match, or the counts contradict each other.
    """
    import numpy as np
    from blake3 import blake3

    body, seal = raw[:-32], raw[-32:]
    if not raw.startswith(MAGIC) or len(body) < _FIXED.size or blake3(body).digest() != seal:
        raise IndexDamaged(f"the header '{path}' of a vector index does not match its sum")
    head = Head("", 0, "")
    (
        _, head.generation, head.serial, head.dim, head.rows, head.max_id, dead, name, digest,
    ) = _FIXED.unpack_from(body)  # fmt: skip
    at = _FIXED.size
    wanted = at + name + digest + 4 * dead + SUM_B + 2 * SUM_B * head.blocks()
    if len(body) != wanted or dead > head.rows:
        raise IndexDamaged(f"the counts in the header '{path}' contradict each other")
    head.name = body[at : at + name].decode("utf-8", "replace")
    head.digest = body[at + name : at + name + digest].decode("utf-8", "replace")
    at += name + digest
    head.dead = np.frombuffer(body, "<u4", dead, at).astype(np.uint32)
    if dead and head.dead[-1] >= head.rows:
        raise IndexDamaged(f"the header '{path}' names a dead row that does not exist")
    at += 4 * dead
    head.ids_sum = body[at : at + SUM_B]
    at += SUM_B
    end = at + SUM_B * head.blocks()
    head.sums, head.mark_sums = body[at:end], body[end:]
    head.seal = seal
    return head


def read_head(folder: str) -> bytes | None:
    """The bytes of HEAD, or None where the folder holds no index.

    Raises:
        IndexDamaged: it cannot be read, or it is gone while rows are still there.
    """
    path = os.path.join(folder, HEAD)
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise IndexDamaged(f"cannot read '{path}': {error.strerror}") from None
    if any(name.startswith(("rows-", "ids-")) for name in data_files(folder)):
        # A first write publishes HEAD last, so look again before calling it lost.
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError:
            raise IndexDamaged(f"the header '{path}' is gone, its rows are not") from None
    return None


def data_files(folder: str) -> list[str]:
    """Names of the files of an index in a folder, HEAD apart, whatever their state."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    kinds = (("ids-", ".u32"), ("rows-", ".i16"), ("marks-", ".u64"), ("new-", ".tmp"))
    return sorted(n for n in names if any(n.startswith(a) and n.endswith(z) for a, z in kinds))


class Rows:
    """The open files of one generation, for reading."""

    __slots__ = ("_dim", "_files", "_map", "_paths", "generation")

    def __init__(self, folder: str, head: Head) -> None:
        """Open the files.

        Raises:
            IndexDamaged: one cannot be opened.
        """
        self.generation = head.generation
        self._dim = head.dim
        self._paths = [os.path.join(folder, name) for name in head.names()]
        self._files: list[int] = []
        self._map: I16 | None = None
        for path in self._paths:
            try:
                self._files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            except OSError as error:
                self.close()
                raise IndexDamaged(f"cannot read '{path}': {error.strerror}") from None

    def close(self) -> None:
        """Close the files; closing twice is harmless."""
        self._map = None
        while self._files:
            os.close(self._files.pop())

    def __del__(self) -> None:
        """Close what was left open."""
        self.close()

    def ids(self, head: Head) -> U32:
        """Document numbers row by row, zero for dead rows: uint32 (rows,).

        Raises:
            IndexDamaged: they are not those that were written.
        """
        import numpy as np

        out: U32 = np.empty(head.rows, "<u4")
        _read(self._files[0], out, 0, self._paths[0])
        out[head.dead] = 0
        if block_sum(out) != head.ids_sum:
            raise IndexDamaged(f"'{self._paths[0]}' does not match its sum")
        return out

    def block(self, head: Head, block: int, into: I16) -> I16:
        """One block of vectors, zeros for dead rows: int16 (up to 512, dim), a part of ``into``.

        Raises:
            IndexDamaged: they are not those that were written.
        """
        start, end = head.span(block)
        out = into[: end - start]
        _read(self._files[1], out, start * self._dim * 2, self._paths[1])
        if head.dead.size:
            out[head.dead_in(start, end) - start] = 0
        if block_sum(out) != head.sum_of(block):
            raise IndexDamaged(
                f"rows {start} to {end - 1} of '{self._paths[1]}' do not match their sum"
            )
        return out

    def marks(self, head: Head, first: int, last: int, into: U64) -> None:
        """Read the marks of blocks from ``first`` up to ``last``, dead rows as zeros.

        Args:
            head: in force.
            first: a block.
            last: the block after the last one that is wanted.
            into: uint64 (rows of these blocks, MARK_WORDS).

        Raises:
            IndexDamaged: they are not those that were written.
        """
        start, end = head.span(first)[0], head.span(last - 1)[1]
        _read(self._files[2], into, start * 8 * MARK_WORDS, self._paths[2])
        if head.dead.size:
            into[head.dead_in(start, end) - start] = 0
        for block in range(first, last):
            low, high = head.span(block)
            if block_sum(into[low - start : high - start]) != head.mark_sum_of(block):
                raise IndexDamaged(f"'{self._paths[2]}' does not match its sum")

    def check_marks(self, head: Head, block: int, *, beside_rows: bool) -> None:
        """Compare the marks of a block with their sum, and with the rows if these are sound.

        Raises:
            IndexDamaged: one does not match.
        """
        import numpy as np

        start, end = head.span(block)
        marks: U64 = np.empty((end - start, MARK_WORDS), "<u8")
        self.marks(head, block, block + 1, marks)
        if not beside_rows:
            return
        vectors = self.block(head, block, block_buffer(self._dim))
        live = np.ones(end - start, bool)
        live[head.dead_in(start, end) - start] = False
        if not np.array_equal(marks_of(vectors)[live, 0], marks[live, 0]):
            raise IndexDamaged(f"the marks of rows {start} to {end - 1} belong to other rows")

    def some(self, head: Head, rows: I64, sums: U64) -> I16:
        """Single rows, each compared with the sum in its mark: int16 (n, dim).

        Args:
            head: in force.
            rows: int64 (n,), none of them dead.
            sums: uint64 (n,).

        Raises:
            IndexDamaged: one is not what was written.
        """
        from blake3 import blake3

        out: I16 = self._mapped(head)[rows]
        view, width = bytes_of(out), 2 * self._dim
        found = [
            blake3(view[at : at + width]).digest(length=8) for at in range(0, len(view), width)
        ]
        wanted = sums.tobytes()
        if b"".join(found) != wanted:
            at = next(n for n, one in enumerate(found) if one != wanted[8 * n : 8 * n + 8])
            raise IndexDamaged(f"row {rows[at]} of '{self._paths[1]}' does not match its mark")
        return out

    def _mapped(self, head: Head) -> I16:
        """The rows that a head counts, mapped: int16 (rows, dim)."""
        import mmap

        import numpy as np

        size = head.rows * 2 * self._dim
        try:
            if os.fstat(self._files[1]).st_size < size:
                raise IndexDamaged(f"'{self._paths[1]}' ends too early")
            if self._map is None or len(self._map) < head.rows:
                mapped = mmap.mmap(self._files[1], size, access=mmap.ACCESS_READ)
                self._map = np.frombuffer(mapped, "<i2").reshape(head.rows, self._dim)
        except (OSError, ValueError) as error:
            raise IndexDamaged(f"cannot read '{self._paths[1]}': {error}") from None
        return self._map

    def unerased(self, head: Head) -> list[int]:
        """Dead rows of which bytes are left on disk, ascending.

        Raises:
            IndexDamaged: they cannot be read.
        """
        import numpy as np

        kept = [np.empty(width, np.uint8) for width in head.widths()]
        out = []
        for row in head.dead.tolist():
            for file, part, path in zip(self._files, kept, self._paths, strict=True):
                _read(file, part, row * part.size, path)
            if any(part.any() for part in kept):
                out.append(row)
        return out


def block_buffer(dim: int) -> I16:
    """Room for one block: int16 (512, dim)."""
    import numpy as np

    return np.empty((BLOCK_ROWS, dim), "<i2")


def block_sum(data: Whole | bytes) -> bytes:
    """BLAKE3-128 of the bytes of an array."""
    from blake3 import blake3

    raw = data if isinstance(data, bytes) else bytes_of(data)
    return blake3(raw).digest(length=SUM_B)


def marks_of(vectors: I16) -> U64:
    """Marks of rows: uint64 (n, MARK_WORDS).

    Args:
        vectors: int16 (n, dim), contiguous.
    """
    import numpy as np
    from blake3 import blake3

    out: U64 = np.empty((len(vectors), MARK_WORDS), "<u8")
    if len(vectors):
        view, width = bytes_of(vectors), vectors.shape[1] * 2
        sums = [blake3(view[at : at + width]).digest(length=8) for at in range(0, len(view), width)]
        out[:, 0] = np.frombuffer(b"".join(sums), "<u8")
        out[:, 1:] = signs.codes(vectors)
    return out


def bytes_of(array: Whole) -> memoryview:
    """The bytes of a contiguous array, not copied; an empty array has none."""
    import numpy as np

    return array.reshape(-1).view(np.uint8).data


def _read(file: int, out: Whole, offset: int, path: str) -> None:
    view = bytes_of(out)
    done = 0
    while done < len(view):
        try:
            got = os.preadv(file, [view[done:]], offset + done)
        except OSError as error:
            raise IndexDamaged(f"cannot read '{path}': {error.strerror}") from None
        if not got:
            raise IndexDamaged(f"'{path}' ends {len(view) - done} bytes too early")
        done += got


def store_error(error: OSError, doing: str) -> StoreError:
    """The error of ours for a write that the system refused."""
    message = f"cannot {doing}: {error.strerror}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreFull(message)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreReadOnly(message)
    return StoreError(message)


def write_at(file: int, data: bytes | memoryview, offset: int) -> None:
    """Write all bytes at an offset."""
    view = memoryview(data).cast("B")
    while view:
        done = os.pwrite(file, view, offset)
        view, offset = view[done:], offset + done


def publish(folder: str, head: Head) -> None:
    """Replace HEAD; the rows it counts must have been synced before."""
    head.serial += 1
    raw = head.encode()
    head.seal = raw[-32:]
    temporary = os.path.join(folder, f"new-{os.getpid()}.tmp")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_at(file, raw, 0)
        os.fsync(file)
    finally:
        os.close(file)
    os.replace(temporary, os.path.join(folder, HEAD))
    sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Make renames and new files of a folder last."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
