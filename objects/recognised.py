"""By what a store is known again: a random value in it that only those who can read it know.

A list of stores that names paths alone takes whatever lies at the path.  One that holds the digest
of this value as well tells a store from another that was put in its place, and the digest gives
nothing away: it can lie where others read it.

Source: remem-store(5), TABLES.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from blake3 import blake3

from remem.objects import scope as scopes
from remem.objects.model import Scope

if TYPE_CHECKING:
    from remem.objects.kv import Txn
    from remem.objects.store import Store
    from remem.objects.tx import Tx

ROW = b"known"  # in ``meta``
ACTION = "known"  # of the row of the audit chain that tells when it was made
VALUE_B = 32
_CONTEXT = "remem list of accepted stores 1"


def digest(store: Store) -> str:
    """The digest of a store's value, 64 hex digits; "" where it has none (yet)."""
    with store.env().read() as txn:
        return _digest(txn)


def make(store: Store) -> str:
    """The digest of a store's value, which is made now where there is none."""
    found = digest(store)
    if found:
        return found

    def put(tx: Tx) -> str:
        if not _digest(tx.txn):
            tx.txn.put("meta", ROW, os.urandom(VALUE_B))
            tx.done(ACTION, 0)
        return _digest(tx.txn)

    nowhere = Scope(
        scopes.DEFAULT_TENANT,
        scopes.DEFAULT_PROFILE,
        scopes.DEFAULT_COLLECTION,
        scopes.DEFAULT_AGENT,
        scopes.DEFAULT_SESSION,
    )
    return store.write(scopes.Actor(scopes.maintenance_grant(), "cli", nowhere), put)


def _digest(txn: Txn) -> str:
    value = txn.get("meta", ROW)
    if value is None or len(value) != VALUE_B:
        return ""
    return blake3(value, derive_key_context=_CONTEXT).hexdigest()
