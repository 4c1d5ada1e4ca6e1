"""Named tables inside one transaction: point reads, ordered scans and changes.

Keys and values are bytes; keys are ordered as unsigned bytes.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from remem.objects.errors import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Handle = Any  # lmdb._Database: the type has no public name


class Txn:
    """One transaction: point reads, ordered scans and, when it is a write, changes."""

    __slots__ = ("_dbs", "_raw", "writable")

    def __init__(self, raw: Any, dbs: dict[str, Handle], writable: bool) -> None:
        """Wrap an LMDB transaction with the handles of the tables."""
        self._raw = raw
        self._dbs = dbs
        self.writable = writable

    def get(self, table: str, key: bytes) -> bytes | None:
        """Value of a key, or None; a memoryview in a snapshot opened with buffers."""
        value: bytes | None = self._raw.get(key, None, self._dbs[table])
        return value

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """Store a value under a key, replacing what was there."""
        self._raw.put(key, value, True, True, False, self._dbs[table])

    def put_new(self, table: str, key: bytes, value: bytes) -> bool:
        """Store a value unless the key exists; True when it was stored."""
        return bool(self._raw.put(key, value, True, False, False, self._dbs[table]))

    def put_many(self, table: str, items: Iterable[tuple[bytes, bytes]], append: bool) -> None:
        """Store many pairs in one call; with append they must be sorted and beyond the last key.

        Raises:
            IntegrityError: they were not.
        """
        cursor = self._raw.cursor(self._dbs[table])
        try:
            given, stored = cursor.putmulti(items, dupdata=False, overwrite=True, append=append)
        finally:
            cursor.close()
        if given != stored:  # LMDB leaves out what is not in order, without an error
            raise IntegrityError(f"keys for the end of '{table}' are not in order")

    def delete(self, table: str, key: bytes) -> bool:
        """Remove a key; True when it was there."""
        return bool(self._raw.delete(key, b"", self._dbs[table]))

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Pairs with start <= key < stop (stop None: to the end), in key order or reversed."""
        cursor = self._raw.cursor(self._dbs[table])
        try:
            if reverse:
                found = cursor.set_range(stop) if stop is not None else False
                found = cursor.prev() if found else cursor.last()
                while found:
                    key = bytes(cursor.key())
                    if key < start:
                        return
                    yield key, cursor.value()
                    found = cursor.prev()
                return
            if not (cursor.set_range(start) if start else cursor.first()):
                return
            for found, value in cursor.iternext(True, True):
                key = bytes(found)
                if stop is not None and key >= stop:
                    return
                yield key, value
        finally:
            cursor.close()

    def pairs(
        self, table: str, start: bytes = b"", stop: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """What :meth:`scan` gives, in key order, without a line of Python for each pair.

        Not for a snapshot opened with buffers.
        """
        cursor = self._raw.cursor(self._dbs[table])
        if not (cursor.set_range(start) if start else cursor.first()):
            return iter(())
        found: Iterator[tuple[bytes, bytes]] = cursor.iternext(True, True)
        # (key, value) is less than (stop,) just when the key is less than stop.
        return found if stop is None else takewhile((stop,).__gt__, found)

    def scan_prefix(
        self, table: str, prefix: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Pairs whose key begins with prefix, in key order or reversed."""
        return self.scan(table, prefix, after_prefix(prefix), reverse=reverse)

    def delete_prefix(self, table: str, prefix: bytes) -> int:
        """Remove every key that begins with prefix; the number removed."""
        cursor = self._raw.cursor(self._dbs[table])
        removed = 0
        try:
            found = cursor.set_range(prefix)
            while found:
                key = bytes(cursor.key())
                if not key or not key.startswith(prefix):  # no key: past the last one
                    break
                found = cursor.delete()
                removed += 1
        finally:
            cursor.close()
        return removed

    def count(self, table: str) -> int:
        """Number of keys in a table."""
        return int(self._raw.stat(self._dbs[table])["entries"])


class Beside:
    """Rows of one table, looked up while another is read in the order of the same keys."""

    __slots__ = ("_ahead", "_rows")

    def __init__(self, rows: Iterator[tuple[bytes, bytes]]) -> None:
        """Begin before the first of these rows, which are in key order."""
        self._rows = rows
        self._ahead = next(rows, None)

    def get(self, key: bytes) -> bytes | None:
        """Value of a key, or None; no key may be less than the one before."""
        ahead = self._ahead
        while ahead is not None and ahead[0] < key:
            ahead = self._ahead = next(self._rows, None)
        return ahead[1] if ahead is not None and ahead[0] == key else None


def after_prefix(prefix: bytes) -> bytes | None:
    """The least key above every key with this prefix, or None when there is none."""
    trimmed = prefix.rstrip(b"\xff")
    if not trimmed:
        return None
    return trimmed[:-1] + bytes([trimmed[-1] + 1])
