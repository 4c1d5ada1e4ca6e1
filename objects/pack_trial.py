"""A dry run: a transaction that keeps its changes to itself, over a snapshot.

The real rules run on it and count the real numbers; the store is not touched and no lock is taken.
What it changed is held in memory.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from remem.objects import kv

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Trial(kv.Txn):
    """Reads fall through to a snapshot, writes stay here."""

    __slots__ = ("_base", "_changed", "_keys")

    def __init__(self, base: kv.Txn) -> None:
        """Begin over a snapshot, which must stay open."""
        self._base = base
        self._changed: dict[str, dict[bytes, bytes | None]] = {}
        self._keys: dict[str, list[bytes]] = {}
        self.writable = True

    def get(self, table: str, key: bytes) -> bytes | None:
        """As in kv.Txn."""
        changed = self._changed.get(table)
        if changed is not None and key in changed:
            return changed[key]
        return self._base.get(table, key)

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """As in kv.Txn."""
        self._set(table, key, value)

    def put_new(self, table: str, key: bytes, value: bytes) -> bool:
        """As in kv.Txn."""
        if self.get(table, key) is not None:
            return False
        self._set(table, key, value)
        return True

    def put_many(self, table: str, items: Iterable[tuple[bytes, bytes]], append: bool) -> None:
        """As in kv.Txn."""
        for key, value in items:
            self._set(table, key, value)

    def delete(self, table: str, key: bytes) -> bool:
        """As in kv.Txn."""
        found = self.get(table, key) is not None
        self._set(table, key, None)
        return found

    def delete_prefix(self, table: str, prefix: bytes) -> int:
        """As in kv.Txn."""
        keys = [key for key, _ in self.scan_prefix(table, prefix)]
        for key in keys:
            self._set(table, key, None)
        return len(keys)

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """As in kv.Txn."""
        keys = self._sorted(table)
        low = bisect_left(keys, start)
        high = len(keys) if stop is None else bisect_left(keys, stop)
        mine = iter(reversed(keys[low:high]) if reverse else keys[low:high])
        base = iter(self._base.scan(table, start, stop, reverse=reverse))
        changed = self._changed.get(table, {})
        key, pair = next(mine, None), next(base, None)
        while key is not None or pair is not None:
            if pair is None or (
                key is not None and (key >= pair[0] if reverse else key <= pair[0])
            ):
                assert key is not None
                if pair is not None and key == pair[0]:
                    pair = next(base, None)
                value = changed[key]
                if value is not None:
                    yield key, value
                key = next(mine, None)
            else:
                yield pair
                pair = next(base, None)

    def count(self, table: str) -> int:
        """As in kv.Txn."""
        total = self._base.count(table)
        for key, value in self._changed.get(table, {}).items():
            total += (value is not None) - (self._base.get(table, key) is not None)
        return total

    def settle(self) -> None:
        """Hand what was changed down to the trial below."""
        for table, changed in self._changed.items():
            for key, value in changed.items():
                if value is None:
                    self._base.delete(table, key)
                else:
                    self._base.put(table, key, value)
        self._changed = {}
        self._keys = {}

    def _set(self, table: str, key: bytes, value: bytes | None) -> None:
        changed = self._changed.setdefault(table, {})
        if table in self._keys and key not in changed:
            insort(self._keys[table], key)
        changed[key] = value

    def _sorted(self, table: str) -> list[bytes]:
        """Changed keys in order; kept in order from the first scan of a table on."""
        if table not in self._keys:
            self._keys[table] = sorted(self._changed.get(table, ()))
        return self._keys[table]
