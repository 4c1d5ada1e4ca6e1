"""Whether entries that begin refs and the cached states of refs are each other's, all at once.

Most refs have one entry, and their states lie in another order than their entries.  To look each of
them up costs more than everything else about it as soon as the table does not fit a cache.  So both
tables are read in their own order, and what each says is added up: a keyed digest of every ref and
its state, under a key that is drawn anew for each check.  Sums of other states differ, but for a
chance of 2 to the power of -128 that nobody who does not know the key can improve on.

Source: Clarke et al. 2003, "Incremental multiset hash functions", section 5 (MSet-Add-Hash).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from remem.objects import refs

if TYPE_CHECKING:
    from remem.objects.kv import Txn

ERASED = refs.STATUS_CODE["erased"]
_CREATE = refs.OP_CODE["create"]
_DIGEST_B = 16


def begins(entry: refs.Entry) -> bool:
    """Whether an entry without an earlier one begins its ref as 'create' does."""
    return entry.op == _CREATE and entry.new == entry.ref and entry.old is None


def is_plain(entry: refs.Entry) -> bool:
    """Whether an entry begins a ref and leads nowhere else."""
    if entry.prev or not begins(entry):
        return False
    return entry.status != ERASED and entry.replaced_by is None


class Firsts:
    """Adds up what plain entries make of refs that have no other."""

    def __init__(self) -> None:
        """Begin with nothing, under a new key."""
        self.count = 0
        self._sum = 0
        self._key = os.urandom(32)

    def add(self, key: bytes, state: bytes) -> None:
        """Take the state that a plain entry makes of a ref.

        Args:
            key: of the ref in its table.
            state: encoded.
        """
        self.count += 1
        self._sum += self._digest(key, state)

    def take_back(self, key: bytes, state: bytes) -> None:
        """Undo an addition: the ref has later entries."""
        self.count -= 1
        self._sum -= self._digest(key, state)

    def agree(self, txn: Txn) -> bool:
        """Whether the cached states of refs with one entry are those that were added."""
        count = total = 0
        for key, cached in txn.pairs("refs"):
            try:
                state = refs.decode_state(cached)
            except msgspec.MsgspecError:
                return False
            if state.first == state.last and state.replaced_by is None and state.status != ERASED:
                count += 1
                total += self._digest(key, cached)
        return (count, total) == (self.count, self._sum)

    def _digest(self, key: bytes, state: bytes) -> int:
        # The keys of refs are all of one length, so the two cannot be cut elsewhere.
        return int.from_bytes(blake3(key + state, key=self._key).digest(_DIGEST_B), "big")
