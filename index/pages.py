"""Reading the data file of an LMDB environment page by page, trusting nothing.

LMDB follows page numbers, offsets and sizes in a mapped file without looking at them twice, so one
flipped bit can end the process with a signal.  This module follows the same paths with ordinary
reads and compares everything on the way with what has to hold: each page is of its kind, has its
own number and is reached once; each node lies inside its page and the nodes fill it; keys ascend
and stay between those of the page above; sizes of values fit their pages; the numbers of entries
and pages are those recorded; pages on the list of free ones are not in use.  Values that carry a
sum over key and value (index/postings.py) are compared with it.

Layout, integers little-endian, 64-bit hosts::

    page       number 8, pad 2, flags 2, lower 2, upper 2, offsets of nodes 2 each ... nodes
    overflow   number 8, pad 2, flags 2, pages 4, bytes of one value
    node       size or page number (low) 2, (high) 2, flags or page number 2, key size 2, key, value
    meta page  16: magic 4, version 4, address 8, map size 8, free list 48, tables 48, last page 8,
               transaction 8
    tree       pad or page size 4, flags 2, depth 2, branches 8, leaves 8, overflows 8, entries 8,
               root 8

Source: OpenLDAP, liblmdb 0.9, mdb.c (MDB_page, MDB_node, MDB_meta, MDB_db).
"""

from __future__ import annotations

import os
import struct
from zlib import crc32

from remem.index.postings import SUM_B, damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    Leaf = Callable[[bytes, bytes, int], None]

_MAGIC = 0xBEEFC0DE
_VERSION = 1
_BRANCH, _LEAF, _OVERFLOW, _META = 1, 2, 4, 8
_BIG, _TREE = 1, 2  # flags of nodes
_INTEGER_KEYS = 8
_NO_ROOT = (1 << 64) - 1
_HEADER_B = 16
_NODE_B = 8
_MAX_DEPTH = 32
_MOST_UNWRITTEN = 1 << 16  # pages
_LEAST_PAGE_B, _MOST_PAGE_B = 512, 32768

_Page = struct.Struct("<QHHHH")
_Overflow = struct.Struct("<QHHI")
_Node = struct.Struct("<HHHH")
_Tree = struct.Struct("<IHHQQQQQ")
_Meta = struct.Struct("<IIQQ48s48sQQ")
META_B = _HEADER_B + _Meta.size


class Tree:
    """A B+ tree: its record, and what was counted while it was followed."""

    __slots__ = ("branches", "depth", "entries", "flags", "leaves", "overflows", "pad", "root")

    def __init__(self, record: bytes) -> None:
        """Read the record of a tree."""
        (
            self.pad, self.flags, self.depth, self.branches, self.leaves, self.overflows,
            self.entries, self.root,
        ) = _Tree.unpack(record)  # fmt: skip


class Meta:
    """The newer meta page.

    Attributes:
        page_b: size of a page in bytes.
        last: number of the last page.
        transaction: that wrote it.
        free: the tree of free pages.
        tables: the tree of tables.
    """

    __slots__ = ("free", "last", "page_b", "tables", "transaction")

    def __init__(self, raw: bytes, number: int) -> None:
        """Read a meta page.

        Raises:
            IndexDamaged: it is none.
        """
        page, _, flags, _, _ = _Page.unpack_from(raw)
        magic, version, address, map_b, free, tables, self.last, self.transaction = (
            _Meta.unpack_from(raw, _HEADER_B)
        )
        self.free, self.tables = Tree(free), Tree(tables)
        self.page_b = self.free.pad
        if page != number or flags != _META or magic != _MAGIC or version != _VERSION:
            raise damaged(f"its file has no meta page {number}")
        sane = (
            _LEAST_PAGE_B <= self.page_b <= _MOST_PAGE_B
            and not self.page_b & (self.page_b - 1)
            and self.free.flags == _INTEGER_KEYS
            and not self.tables.flags
            and not self.tables.pad
            and not address
            and 1 <= self.last < 1 << 47
            and (self.last + 1) * self.page_b <= map_b < 1 << 62
        )
        if not sane:
            raise damaged(f"meta page {number} of its file makes no sense")


def read_meta(file: int) -> Meta:
    """The newer one of the two meta pages of a data file.

    Raises:
        IndexDamaged: one of them is damaged.
    """
    first = Meta(_read(file, 0, META_B, "its file ends in a meta page"), 0)
    second = Meta(_read(file, first.page_b, META_B, "its file ends in a meta page"), 1)
    older, newer = sorted((first, second), key=lambda meta: meta.transaction)
    if older.page_b != newer.page_b or newer.transaction - older.transaction > 1:
        raise damaged("the meta pages of its file do not belong together")
    return newer


def inspect(path: str, summed: Collection[str] = ()) -> None:
    """Follow every page of a data file that LMDB might follow.

    Args:
        path: of the data file; nothing may write to it meanwhile.
        summed: tables whose values begin with a sum over key and value.

    Raises:
        IndexDamaged: something does not hold; LMDB must not open this file.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _Inspection(file, summed).run()
    finally:
        os.close(file)


def _read(file: int, offset: int, size: int, short: str) -> bytes:
    raw = os.pread(file, size, offset)
    if len(raw) != size:
        raise damaged(short)
    return raw


class _Inspection:
    """One pass over a data file."""

    def __init__(self, file: int, summed: Collection[str]) -> None:
        self._file = file
        self._summed = frozenset(name.encode() for name in summed)
        self._meta = read_meta(file)
        self._page_b = self._meta.page_b
        self._written = os.fstat(file).st_size // self._page_b
        if self._meta.last - self._written > _MOST_UNWRITTEN:
            raise damaged("its file is far too short")
        self._seen = bytearray(self._meta.last + 1)
        self._seen[0] = self._seen[1] = 1

    def run(self) -> None:
        tables: list[tuple[bytes, Tree]] = []

        def table(name: bytes, value: bytes, flags: int) -> None:
            if flags != _TREE or len(value) != _Tree.size:
                raise damaged("a table of its file is none")
            tables.append((name, Tree(value)))

        self._follow(self._meta.tables, table)
        missing = self._summed - {name for name, _ in tables}
        if tables and missing:
            raise damaged(f"its file has no table '{min(missing).decode()}'")
        for name, tree in tables:
            if tree.flags or tree.pad:
                raise damaged("a table of its file is of another kind")
            self._follow(tree, self._value_with_sum if name in self._summed else self._value)
        free: list[bytes] = []
        self._follow(self._meta.free, lambda key, value, flags: self._free_list(value, flags, free))
        for pages in free:
            self._mark_free(pages)
        # A page that was numbered and given back in one transaction is never written.
        if 0 in self._seen[self._written :]:
            raise damaged("its file is cut short")

    # -- trees --------------------------------------------------------------------------------

    def _follow(self, tree: Tree, leaf: Leaf) -> None:
        recorded = (tree.branches, tree.leaves, tree.overflows, tree.entries)
        tree.branches = tree.leaves = tree.overflows = tree.entries = 0
        if (tree.root == _NO_ROOT) != (not tree.depth) or tree.depth > _MAX_DEPTH:
            raise damaged("a tree of its file has no root")
        if tree.depth:
            self._descend(tree, tree.root, tree.depth, b"", None, leaf)
        if recorded != (tree.branches, tree.leaves, tree.overflows, tree.entries):
            raise damaged("a tree of its file has not as many pages or entries as recorded")

    def _descend(
        self, tree: Tree, number: int, depth: int, low: bytes, high: bytes | None, leaf: Leaf
    ) -> None:
        page = self._page(number)
        if depth == 1:
            tree.leaves += 1
            self._leaf(tree, page, low, high, leaf)
            return
        tree.branches += 1
        keys, children = self._branch(tree, page, low, high)
        for at, child in enumerate(children):
            until = keys[at + 1] if at + 1 < len(keys) else high
            self._descend(tree, child, depth - 1, keys[at], until, leaf)

    def _page(self, number: int) -> bytes:
        self._reach(number, 1)
        page = _read(self._file, number * self._page_b, self._page_b, "its file is cut short")
        if int.from_bytes(page[:8], "little") != number:
            raise damaged(f"page {number} of its file is not itself")
        return page

    def _reach(self, first: int, count: int) -> None:
        end = first + count
        if first < 2 or end > len(self._seen) or any(self._seen[first:end]):
            raise damaged(f"page {first} of its file is beyond its end, or reached twice")
        self._seen[first:end] = b"\x01" * count

    def _offsets(self, page: bytes, kind: int) -> tuple[tuple[int, ...], int]:
        number, _, flags, lower, upper = _Page.unpack_from(page)
        count = (lower - _HEADER_B) >> 1
        if flags != kind or lower & 1 or lower > upper or upper > self._page_b or count < 1:
            raise damaged(f"page {number} of its file is of another kind")
        offsets = struct.unpack_from(f"<{count}H", page, _HEADER_B)
        if min(offsets) != upper or max(offsets) > self._page_b - _NODE_B:
            raise damaged(f"a node of page {number} of its file is out of place")
        return offsets, upper

    def _integer(self, tree: Tree, key: bytes) -> bytes:
        """A key that sorts as LMDB sorts it."""
        if not tree.flags & _INTEGER_KEYS:
            return key
        if len(key) != 8:
            raise damaged("a number of a transaction in its file is none")
        return key[::-1]

    def _branch(
        self, tree: Tree, page: bytes, low: bytes, high: bytes | None
    ) -> tuple[list[bytes], list[int]]:
        offsets, upper = self._offsets(page, _BRANCH)
        keys: list[bytes] = []
        children: list[int] = []
        used = 0
        for at, offset in enumerate(offsets):
            first, second, third, key_b = _Node.unpack_from(page, offset)
            start = offset + _NODE_B
            key = page[start : start + key_b]
            used += _NODE_B + key_b + (key_b & 1)
            if start + key_b > self._page_b:
                raise damaged("a node of its file leaves its page")
            key = low if at == 0 else self._integer(tree, key)
            if at and not (keys[-1] < key and (high is None or key < high)):
                raise damaged("keys of its file are not in order")
            keys.append(key)
            children.append(first | second << 16 | third << 32)
        if used != self._page_b - upper or len(children) < 2:
            raise damaged("nodes of its file do not fill their page")
        return keys, children

    def _leaf(self, tree: Tree, page: bytes, low: bytes, high: bytes | None, leaf: Leaf) -> None:
        offsets, upper = self._offsets(page, _LEAF)
        before: bytes | None = None
        used = 0
        for offset in offsets:
            first, second, flags, key_b = _Node.unpack_from(page, offset)
            size = first | second << 16
            start = offset + _NODE_B
            end = start + key_b
            stored = 8 if flags & _BIG else size
            used += _NODE_B + key_b + stored + ((key_b + stored) & 1)
            if end + stored > self._page_b:
                raise damaged("a node of its file leaves its page")
            key = page[start:end]
            order = self._integer(tree, key)
            if (before is not None and order <= before) or order < low:
                raise damaged("keys of its file are not in order")
            before = order
            value = page[end : end + stored]
            if flags & _BIG:
                value = self._overflow(tree, int.from_bytes(value, "little"), size)
            leaf(key, value, flags & ~_BIG)
        if high is not None and before is not None and before >= high:
            raise damaged("keys of its file are not in order")
        if used != self._page_b - upper:
            raise damaged("nodes of its file do not fill their page")
        tree.entries += len(offsets)

    def _overflow(self, tree: Tree, number: int, size: int) -> bytes:
        count = (_HEADER_B - 1 + size) // self._page_b + 1
        self._reach(number, count)
        raw = _read(self._file, number * self._page_b, _HEADER_B + size, "its file is cut short")
        found, _, flags, pages = _Overflow.unpack_from(raw)
        if found != number or flags != _OVERFLOW or pages != count:
            raise damaged(f"page {number} of its file does not hold the value it should")
        tree.overflows += count
        return raw[_HEADER_B:]

    # -- leaves -------------------------------------------------------------------------------

    def _value(self, key: bytes, value: bytes, flags: int) -> None:
        if flags:
            raise damaged("a value of its file is of another kind")

    def _value_with_sum(self, key: bytes, value: bytes, flags: int) -> None:
        if flags or crc32(value[SUM_B:], crc32(key)) != int.from_bytes(value[:SUM_B], "little"):
            raise damaged("a value of its file does not match its sum")

    def _free_list(self, value: bytes, flags: int, free: list[bytes]) -> None:
        count, rest = divmod(len(value), 8)
        if flags or rest or not count or int.from_bytes(value[:8], "little") != count - 1:
            raise damaged("a list of free pages of its file is damaged")
        free.append(value[8:])

    def _mark_free(self, pages: bytes) -> None:
        for (number,) in struct.iter_unpack("<Q", pages):
            self._reach(number, 1)
