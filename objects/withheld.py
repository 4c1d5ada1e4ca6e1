"""What waits for a decision, and values that were held back: two tables kept in step with the log.

``waits`` has a row for each ref whose status is ``pending`` or ``quarantined``, so that what waits
is listed without reading every ref.  ``refused`` has the keyed digest of each value that was
quarantined, or rejected in a review: said again by somebody else than the owner, in other evidence
or in a memory, such a value is held back again.  Both follow from the ref log; the transaction
calls `follow` for every entry that matters to them.

Source: remem-store(5), the tables ``waits`` and ``refused``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects import encode, refs, tombs
from remem.objects.scope import DERIVER, OWNER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remem.objects.kv import Txn
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

PENDING = refs.STATUS_CODE["pending"]
QUARANTINED = refs.STATUS_CODE["quarantined"]
REJECTED = refs.STATUS_CODE["rejected"]
WAITING = frozenset((PENDING, QUARANTINED))
FOLLOWED = frozenset((PENDING, QUARANTINED, REJECTED))
NAMES = frozenset(refs.STATUSES[code] for code in FOLLOWED)
HELD_BEFORE = "held_before"  # reason code: the same value is held back, or was rejected
_REJECT = refs.OP_CODE["reject"]


def is_verdict(entry: refs.Entry) -> bool:
    """True for an entry by which somebody rejected what a ref says."""
    if entry.op != _REJECT or entry.status != REJECTED:
        return False
    return entry.reason not in refs.NO_VERDICT and not entry.reason.startswith(refs.UNDO)


def follow(tx: Tx, part: Part, before: refs.RefState | None, entry: refs.Entry) -> None:
    """Keep both tables in step with one entry; the object of its head is stored already."""
    key = part.prefix + entry.ref
    waited = before is not None and before.status in WAITING
    waits = entry.status in WAITING
    if waits and not waited:
        tx.txn.put("waits", key, entry.time.to_bytes(8, "big", signed=True))
    elif waited and not waits:
        tx.txn.delete("waits", key)
    if entry.type > refs.MEMORY:
        return
    if entry.status == QUARANTINED or is_verdict(entry):
        for value in values(tx.txn, part, entry.new):
            tx.txn.put("refused", value, entry.ref)
            tx.has_refused = True
    elif entry.status != REJECTED and before is not None and before.status in FOLLOWED:
        tx.flush()
        heads = {entry.new, before.head}
        heads.update(e.new for e in tx.reader.entries(part, before))
        for head in heads:
            for value in values(tx.txn, part, head):
                if tx.txn.get("refused", value) == entry.ref:
                    tx.txn.delete("refused", value)


def values(txn: Txn, part: Part, object_id: bytes | None) -> Iterator[bytes]:
    """Keys of the values of an object, none when its bytes are gone."""
    data = None if object_id is None else txn.get("objects", part.prefix + object_id)
    if data is not None and not encode.is_bookkeeping(data):
        for text in tombs.values_of(encode.decode(data)):
            yield tombs.value_key(part, text)


def refused_by(tx: Tx, part: Part, texts: Iterable[str]) -> bytes | None:
    """The ref that was held back, or rejected, for saying one of these; None for none."""
    if not tx.has_refused:
        return None
    for text in texts:
        ref = tx.txn.get("refused", tombs.value_key(part, text))
        if ref is not None:
            return ref
    return None


def says_again(tx: Tx, part: Part, object_id: bytes | None) -> bool:
    """Whether an object that is stored says what was held back, or rejected, before."""
    if not tx.has_refused:
        return False
    return any(tx.txn.get("refused", key) for key in values(tx.txn, part, object_id))


def holds_back(tx: Tx, part: Part, texts: Iterable[str], origin: str = "owner") -> bool:
    """Whether what comes in now is held back because the same value was before.

    The owner's own word is not, and neither is what the store derives: that goes with its evidence.

    Args:
        tx: the write transaction.
        part: its partition.
        texts: the values of the object.
        origin: of evidence: whose word it is.
    """
    grant = tx.actor.grant
    own = grant.principal in (OWNER, DERIVER) and grant.owner and origin == "owner"
    return not own and refused_by(tx, part, texts) is not None


# -- what keeps a withheld thing withheld -------------------------------------------------------


def inherited(tx: Tx, part: Part, cites: Iterable[bytes], status: str) -> str:
    """Status of a memory that somebody makes on evidence; never above all of that evidence.

    What rests on nothing but evidence that is quarantined, rejected or pending is set apart with
    it, unless the owner himself says so: to state anew what is held back would let it out.

    Args:
        tx: the write transaction.
        part: its partition.
        cites: object ids of the evidence.
        status: the status that it would have.
    """
    grant = tx.actor.grant
    if grant.owner or refs.STATUS_CODE[status] in FOLLOWED:
        return status
    states = [tx.reader.state(part, tx.reader.ref_of(part, cited)) for cited in cites]
    held = [state.status for state in states if state is not None and state.status in FOLLOWED]
    return "quarantined" if states and len(held) == len(states) else status


def kept(tx: Tx, state: refs.RefState, status: str) -> str:
    """Status of what takes the place of a ref: as withheld as that one, unless the owner acts."""
    if tx.actor.grant.owner or state.status not in FOLLOWED:
        return status
    return refs.STATUSES[state.status]


def was_held_back(reader: Reader, part: Part, state: refs.RefState, revision: bytes) -> bool:
    """True for a revision that was set apart when another took its place."""
    entries = reader.entries(part, state)
    last = next((entry for entry in entries if entry.new == revision), None)
    return last is not None and last.status in FOLLOWED


def waiting(reader: Reader, part: Part) -> Iterator[tuple[bytes, int]]:
    """(ref, since when) of what waits in a partition, within the grant; by id."""
    for key, data in reader.txn.scan_prefix("waits", part.prefix):
        if reader.state(part, key[4:]) is not None:
            yield key[4:], int.from_bytes(data, "big", signed=True)
