"""What the log and the audit chain attest of rows in other tables.

Most tables follow from the objects and the log, and are checked by computing them again.  What
follows from nothing else (a receipt, whether a chain takes one value at a time, what must not come
back, other names, rules) is attested: the entry that brought it, or the row that tells of its
change, carries a digest of it in ``attests``.  An entry or a row without that field says nothing,
and is as short as it was before there was one.

A digest is keyed, or is of what nobody can guess, so that none of it can be told from the chain.

Source: remem-store(5), ATTESTED ROWS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects import oid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.reader import Part
    from remem.objects.tables import Txn

    Attests = dict[str, bytes | bool]

# Of an entry.
RECEIPT = "receipt"  # digest of the receipt of its new head
SINGLE = "single"  # whether the chain of the fact that it begins takes one value at a time
VALUES = "values"  # digest of the values of the tombstone that it sets
# Of a row of the audit chain.
GATE = "gate"  # digest of the row of that name in ``meta``
RETAIN = "retain"  # likewise
ALIASES = "aliases"  # digest of all aliases of its partition
NAMES = (RECEIPT, SINGLE, VALUES, GATE, RETAIN, ALIASES)

_BYTES = 32


def of_receipt(part: Part, object_id: bytes, data: bytes) -> bytes:
    """Digest of the receipt of an object, given its bytes."""
    return oid.keyed(part.key, b"receipt", object_id, data, length=_BYTES)


def of_values(values: Iterable[bytes]) -> bytes:
    """Digest of the values of a tombstone, in their order; each is a keyed digest itself."""
    return oid.digest(b"".join(values))


def of_aliases(txn: Txn, part: Part) -> bytes:
    """Digest of all aliases of a partition as they are now, in the order of their keys."""
    words = [
        piece
        for key, data in txn.scan_prefix("aliases", part.prefix)
        for piece in (bytes(key[4:]), bytes(data))
    ]
    return oid.keyed(part.key, b"aliases", *words, length=_BYTES)
