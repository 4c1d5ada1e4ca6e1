"""A look at the pages of an LMDB data file without mapping it.

LMDB trusts its file: a page beyond the end kills the process when the map is touched, and a page
of zeros ends it in an assertion.  What checks a store must not die of what it is to find, so it
walks the trees with plain reads first: every page they name is there, is of the kind and at the
depth it should be, and its nodes lie inside it.

Source: LMDB 0.9, mdb.c, structs MDB_meta, MDB_db, MDB_page and MDB_node on 64-bit hosts.
"""

from __future__ import annotations

import os
from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

FREE = "free pages"  # what the tree of free pages is called in answers
MAIN = "tables"  # and the tree of the tables' records

_MAGIC = 0xBEEFC0DE
_VERSION = 1
_HEADER_B = 16  # of a page: number, pad, flags, lower, upper
_META = Struct("<IIQQ")  # magic, version, address, map size
_DB = Struct("<IHHQQQQQ")  # page size, flags, depth, branch, leaf, overflow, entries, root
_META_TAIL = Struct("<QQ")  # last page, transaction
_META_B = _META.size + 2 * _DB.size + _META_TAIL.size
_PAGE = Struct("<QHHHH")
_NODE = Struct("=HHHH")  # LMDB keeps integers in the order of the host
_NODE_B = 8  # low half, high half, flags, size of the key
_BRANCH, _LEAF, _OVERFLOW, _META_PAGE = 1, 2, 4, 8
_KINDS = _BRANCH | _LEAF | _OVERFLOW | _META_PAGE
_BIG, _TREE = 1, 2  # node flags: the value lies on overflow pages; it is a tree
_NONE = (1 << 64) - 1
_TRIES = 5


def top_damage(path: str) -> str:
    """What is wrong with the meta pages or the tree of the tables' records, or an empty string.

    To open the file reads these, so they are looked at first; no snapshot is needed.

    Raises:
        OSError: the file cannot be read.
    """
    why = ""
    for _ in range(_TRIES):
        with _File(path) as file:
            why = file.why or next((what for _, what in file.tree(MAIN)), "")
            if not why or _File.read_txn(path) == file.txn:
                return why
    return ""  # it is being written all the time: what was seen was not damage but change


def damage(path: str, only: Container[str] | None = None) -> Iterator[tuple[str, str]]:
    """(table, what is wrong) for each damaged page of the newest state.

    A reader's snapshot must be open, so that no page of it is written anew meanwhile.

    Args:
        path: the data file.
        only: names of the tables to walk, None for all and the tree of free pages.

    Raises:
        OSError: the file cannot be read.
    """
    with _File(path) as file:
        if file.why:
            yield MAIN, file.why
        else:
            yield from file.damage(only)


class _File:
    """An open data file: the newest of its two meta pages, and its pages."""

    def __init__(self, path: str) -> None:
        self.handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.page_b = 0
        self.last_page = 0
        self.txn = 0
        self.why = ""
        self._roots: dict[str, tuple[int, int]] = {}
        if not self._meta(0):
            self.why = "it does not begin as an LMDB file"
        elif not self._meta(self.page_b):
            self.why = "its second page is missing or damaged"
        self.size_b = os.fstat(self.handle).st_size  # after the meta pages: the file may grow

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.handle)

    @classmethod
    def read_txn(cls, path: str) -> int:
        """Number of the last transaction."""
        with cls(path) as file:
            return file.txn

    def _meta(self, at: int) -> bool:
        record = os.pread(self.handle, _META_B, at + _HEADER_B)
        if len(record) < _META_B:
            return False
        magic, version, _, _ = _META.unpack_from(record, 0)
        free = _DB.unpack_from(record, _META.size)
        main = _DB.unpack_from(record, _META.size + _DB.size)
        last_page, txn = _META_TAIL.unpack_from(record, _META.size + 2 * _DB.size)
        page_b = free[0]
        if magic != _MAGIC or version != _VERSION or page_b & (page_b - 1) or page_b < 256:
            return False
        if not at or txn > self.txn:
            self.page_b, self.last_page, self.txn = page_b, last_page, txn
            self._roots = {FREE: (free[-1], free[2]), MAIN: (main[-1], main[2])}
        return True

    def tree(self, name: str) -> Iterator[tuple[str, str]]:
        """Damaged pages of one of the two trees that the meta page names."""
        yield from self._walk(name, *self._roots[name], {})

    def damage(self, only: Container[str] | None) -> Iterator[tuple[str, str]]:
        """Damaged pages of the tables, and of the tree of free pages when no table is named."""
        tables: dict[str, tuple[int, int]] = {}
        yield from self._walk(MAIN, *self._roots[MAIN], tables)
        if only is None:
            yield from self._walk(FREE, *self._roots[FREE], {})
        for name, (root, depth) in tables.items():
            if only is None or name in only:
                yield from self._walk(name, root, depth, {})

    def _walk(
        self, name: str, root: int, depth: int, tables: dict[str, tuple[int, int]]
    ) -> Iterator[tuple[str, str]]:
        """Damaged pages of a tree; the trees that it holds are added to tables."""
        page_b = self.page_b
        node_at = _NODE.unpack_from
        pending = [(root, 1)] if root != _NONE else []
        while pending:
            number, level = pending.pop()
            page = os.pread(self.handle, page_b, number * page_b) if number < 1 << 48 else b""
            if len(page) < page_b:
                yield name, f"page {number} is missing"
                continue
            at, _, flags, lower, upper = _PAGE.unpack_from(page, 0)
            kind = _BRANCH if level < depth else _LEAF
            sound = at == number and flags & _KINDS == kind and not lower & 1
            if not sound or not _HEADER_B < lower <= upper <= page_b:
                yield name, f"page {number} is damaged: it is no page of this tree"
                continue
            nodes = memoryview(page)[_HEADER_B:lower].cast("H").tolist()
            if min(nodes) < upper or max(nodes) > page_b - _NODE_B:
                yield name, f"page {number} is damaged: its nodes do not lie inside it"
                continue
            for offset in nodes:
                low, high, node_flags, key_b = node_at(page, offset)
                data = offset + _NODE_B + key_b
                if kind == _BRANCH:
                    end = data
                    pending.append((low | high << 16 | node_flags << 32, level + 1))
                elif not node_flags:
                    end = data + (low | high << 16)
                elif node_flags == _BIG:
                    end = data + 8
                    first = int.from_bytes(page[data:end], "little")
                    if what := self._overflow(first, low | high << 16):
                        yield name, what
                else:
                    end = data + _DB.size
                    if end <= page_b and node_flags & _TREE:
                        record = _DB.unpack_from(page, data)
                        key = page[offset + _NODE_B : data].decode("ascii", "replace")
                        tables[key] = (record[-1], record[2])
                if end > page_b:
                    yield name, f"page {number} is damaged: a node reaches beyond it"

    def _overflow(self, first: int, size_b: int) -> str:
        """What is wrong with the run of pages that holds a large value."""
        count = -(-(size_b + _HEADER_B) // self.page_b)
        if (first + count) * self.page_b > self.size_b:
            return f"page {first} is missing"
        header = os.pread(self.handle, _HEADER_B, first * self.page_b)
        at, _, flags, low, high = _PAGE.unpack(header)
        if at != first or flags & _KINDS != _OVERFLOW or (low | high << 16) < count:
            return f"page {first} is damaged: it does not begin a large value"
        return ""
