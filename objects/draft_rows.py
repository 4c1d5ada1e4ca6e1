"""Drafts as they are stored: their objects, their revisions, and the rows that lead to them.

A row of the table ``proposed`` names the ref that an operation proposes or would change, or an
observation that it cites, and the draft: so forgetting finds every draft that goes with something
without reading all of them.

Source: remem-store(5), OBJECTS and the table ``proposed``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import encode, oid, refs, review
from remem.objects.errors import NotFound
from remem.objects.model import Draft, Memory, Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.kv import Txn
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx


def rests_on(txn: Txn, prefix: bytes, *operations: Operation) -> set[bytes]:
    """Ids of what operations rest on: refs, and the observations that are cited."""
    return {one for op in operations for one in _ids(txn, prefix, op)}


def _ids(txn: Txn, prefix: bytes, op: Operation) -> Iterator[bytes]:
    for one in (op.proposed, op.target, op.into, *op.cites):
        if one is not None:
            yield one
    data = None if op.proposed is None else txn.get("objects", prefix + op.proposed)
    if data is not None:
        memory = encode.decode(data)
        yield from memory.cites if isinstance(memory, Memory) else ()


def named(draft: Draft) -> set[bytes]:
    """Ids that the operations of a draft name themselves."""
    found: set[bytes] = set()
    for op in draft.operations:
        found.update(i for i in (op.proposed, op.target, op.into, *op.cites) if i is not None)
    return found


def add_rows(tx: Tx, part: Part, ref: bytes, draft: Draft) -> None:
    """Let everything that a draft rests on lead to it."""
    for one in rests_on(tx.txn, part.prefix, *draft.operations):
        tx.txn.put("proposed", part.prefix + one + ref, b"")


def drop_rows(tx: Tx, part: Part, ref: bytes) -> None:
    """Let nothing lead to a draft any more."""
    rows = [k for k, _ in tx.txn.scan_prefix("proposed", part.prefix) if k[36:] == ref]
    for key in rows:
        tx.txn.delete("proposed", key)


def resting(reader: Reader, part: Part, one: bytes) -> list[bytes]:
    """Refs of the drafts that rest on something, within the grant."""
    prefix = part.prefix + one
    found = [key[36:] for key, _ in reader.txn.scan_prefix("proposed", prefix)]
    return [ref for ref in found if reader.state(part, ref) is not None]


# -- objects ------------------------------------------------------------------------------------


def get(reader: Reader, part: Part, ref: bytes) -> tuple[refs.RefState, Draft]:
    """State and head of a draft.

    Raises:
        NotFound: it is none, or gone.
    """
    state = reader.state(part, ref)
    if state is None or state.type != refs.DRAFT or state.head is None:
        raise NotFound(f"no draft '{oid.short(ref)}'")
    obj = reader.bookkeeping(part, state.head)
    assert isinstance(obj, Draft)
    return state, obj


def numbered(draft: Draft, number: int) -> Operation:
    """The operation of a number.

    Raises:
        NotFound: the draft has none of it.
    """
    for op in draft.operations:
        if op.number == number:
            return op
    raise NotFound(f"the draft has no operation {number}")


def begin(tx: Tx, part: Part, draft: Draft, status: str = "pending", reason: str = "") -> bytes:
    """Store a draft as the first object of a ref."""
    ref = tx.put_object(part, draft)
    tx.create(
        part, ref, kind=refs.DRAFT, lane=tx.lane(part, draft.scope), status=status, reason=reason
    )
    add_rows(tx, part, ref, draft)
    return ref


def revise(
    tx: Tx,
    part: Part,
    ref: bytes,
    state: refs.RefState,
    draft: Draft,
    changed: list[Operation],
    op: str,
    reason: str,
) -> None:
    """Give a draft a revision with some operations changed, and the status that follows."""
    by_number = {one.number: one for one in changed}
    operations = [by_number.get(one.number, one) for one in draft.operations]
    verdicts = {one.verdict for one in operations}
    status = "pending" if "" in verdicts else "verified" if "approved" in verdicts else "rejected"
    new = msgspec.structs.replace(draft, salt=encode.ZERO_SALT, operations=operations)
    head = tx.put_revision(part, ref, new)
    add_rows(tx, part, ref, new)
    if op == "revise":
        tx.record(part, op, ref, state, new=head, status=status, reason=reason)
    else:
        review.record(tx, part, op, ref, state, new=head, status=status, reason=reason)
