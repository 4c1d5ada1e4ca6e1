"""Correcting: revise, roll back, close, reopen, supersede.

Every change is a new entry of the ref log; nothing is overwritten.  A change of an observation
carries to what was derived from it, in the same transaction, and the queue of derivation takes the
new revision up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects import chains, memories, oid, refs, tiers
from remem.objects.carry import FOLLOWS, cascade, fresh, rechain, recite, replaced
from remem.objects.errors import HeadMoved, NotFound, Refused, UsageError
from remem.objects.memories import STATED
from remem.objects.model import Memory
from remem.objects.revise import revise, revisions, rollback
from remem.objects.undo import undo

if TYPE_CHECKING:
    from remem.objects.reader import Found, Part
    from remem.objects.tx import Tx

__all__ = [
    "FOLLOWS",
    "STATED",
    "cascade",
    "close",
    "fresh",
    "rechain",
    "recite",
    "reopen",
    "revise",
    "revisions",
    "rollback",
    "supersede",
    "undo",
]


def close(
    tx: Tx, found: Found, at: int, *, reason: str = "", expected: bytes | None = None
) -> None:
    """End the validity of a ref at an instant, and of what rests on it alone.

    Raises:
        Refused: it is closed already, or has ended by then.
        UsageError: the end is not after its beginning.
        HeadMoved: the head is not the expected one.
    """
    state = fresh(tx, found, expected, "close")
    tx.flush()
    if state.flags & refs.CLOSED:
        raise Refused(f"'{oid.short(found.ref)}' is closed already", hint="'remem reopen' opens it")
    if state.valid_to is not None and state.valid_to <= at:
        if state.replaced_by is None:
            raise Refused(f"'{oid.short(found.ref)}' has ended by then")
        raise Refused(f"'{oid.short(found.ref)}' was replaced by '{oid.short(state.replaced_by)}'")
    if state.valid_from is not None:
        begins = chains.begins(tx.reader, found.part, found.ref, state)
        if at == tx.present < begins and memories.began_at_once(
            tx.reader.object(found.part, state.head or found.ref), state
        ):
            at = begins + 1  # it began by a clock that was set back since
        if at <= begins:
            raise UsageError("the end is not after the beginning")
    _end(tx, found.part, found.ref, state, at, reason)
    if state.type == refs.OBSERVATION and state.head is not None:
        for memory in tx.reader.cited_by(found.part, state.head):
            _end_with(tx, found.part, memory, at)


def _end(tx: Tx, part: Part, ref: bytes, state: refs.RefState, at: int, reason: str) -> None:
    tx.record(part, "close", ref, state, reason=reason, valid_to=at, replaced_by=None)
    chains.relink_of(tx, part, ref)


def _end_with(tx: Tx, part: Part, ref: bytes, at: int) -> None:
    """Close a memory with the only evidence that it has."""
    state, memory = memories.head(tx, part, ref)
    ended = state.valid_to is not None and state.valid_to <= at
    if len(memory.cites) == 1 and not ended and not state.flags & refs.CLOSED:
        _end(tx, part, ref, state, max(at, state.starts), FOLLOWS)


def reopen(tx: Tx, found: Found, *, reason: str = "", expected: bytes | None = None) -> None:
    """Take back a close, and that of memories that were closed with it.

    Raises:
        Refused: it is not closed.
        HeadMoved: the head is not the expected one.
    """
    state = fresh(tx, found, expected, "reopen")
    tx.flush()
    if not state.flags & refs.CLOSED:
        raise Refused(f"'{oid.short(found.ref)}' is not closed")
    _open(tx, found.part, found.ref, state, reason)
    assert state.head is not None
    for ref in tx.reader.cited_by(found.part, state.head):
        other = tx.reader.state(found.part, ref)
        if other is not None and other.flags & refs.CLOSED:
            last = next(
                e for e in tx.reader.entries(found.part, other) if refs.OPS[e.op] == "close"
            )
            if last.reason == FOLLOWS:
                _open(tx, found.part, ref, other, FOLLOWS)


def _open(tx: Tx, part: Part, ref: bytes, state: refs.RefState, reason: str) -> None:
    assert state.head is not None
    obj = tx.reader.object(part, state.head)
    if isinstance(obj, Memory):
        stated = obj.valid_to
    else:
        stated = tiers.own_end(tx.reader.entries(part, state))
    tx.record(part, "reopen", ref, state, reason=reason, valid_to=stated, replaced_by=None)
    chains.relink_of(tx, part, ref)


def supersede(
    tx: Tx, found: Found, by: bytes, at: int, *, expected: bytes | None = None, reason: str = ""
) -> None:
    """End a ref where another one takes its place.

    Args:
        tx: the write transaction.
        found: the ref that ends.
        by: the ref that takes its place, in the same partition.
        at: when, microseconds UTC.
        expected: the head that the caller read, or None.
        reason: reason code.

    Raises:
        Refused: it would replace itself, or what takes its place was replaced as well.
        HeadMoved: the head is not the expected one, or it was replaced already.
        NotFound: there is nothing to take its place.
    """
    part, state = found.part, fresh(tx, found, expected, "supersede")
    tx.flush()
    if by == found.ref:
        raise Refused("a statement cannot correct itself")
    if state.replaced_by is not None and replaced(tx, state):
        raise HeadMoved(
            f"'{oid.short(found.ref)}' was replaced by '{oid.short(state.replaced_by)}' already",
            hint="correct that one instead",
        ).audited("supersede", "replaced", part.number, found.ref)
    successor = tx.reader.state(part, by)
    if successor is None or successor.head is None:
        raise NotFound(f"nothing has the id '{oid.short(by)}' in this scope")
    if successor.replaced_by is not None:
        raise Refused(f"'{oid.short(by)}' was replaced itself")
    at = min(at, tx.present)
    tx.record(
        part,
        "supersede",
        found.ref,
        state,
        reason=reason or "corrected",
        expected=expected,
        valid_to=max(at, chains.begins(tx.reader, part, found.ref, state)),
        replaced_by=by,
    )
    if state.type == refs.OBSERVATION and state.head is not None:
        cascade(tx, part, state.head, by, at)
    else:
        chains.relink_of(tx, part, found.ref)
