"""Applying one operation of a draft: what stands in its way, and what it changes.

What stands in the way is found out before anything is written, so that an operation is applied
whole or not at all.

Source: remem(7), REVIEW.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import (
    carry,
    chains,
    correct,
    encode,
    gate,
    instant,
    memories,
    refs,
    review,
    statements,
    summaries,
    tombs,
)
from remem.objects.admit import normalise
from remem.objects.model import Deriver, Memory, Operation, Span
from remem.objects.reader import Found
from remem.objects.views import WITHHELD, Eye, Lens

if TYPE_CHECKING:
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

RESTATED = "restated"  # reason of a revision that says the same in other words
MERGED = "merged"  # reason of a claim whose words went into the memory that it was proposed for
DUPLICATE = "duplicate"
EDITED = "edited"


def obstacle(reader: Reader, part: Part, op: Operation) -> str:
    """Why an operation that waits cannot be applied any more; empty when it can."""
    if op.proposed is not None:
        state = reader.state(part, op.proposed)
        if state is None or state.head is None:
            return "what it proposes is gone"
        if refs.STATUSES[state.status] != "pending":
            return f"what it proposes is {refs.STATUSES[state.status]}"
        if state.replaced_by is not None or state.flags & refs.CLOSED:
            return "what it proposes was replaced or closed"
    for what, ref, seen in (("target", op.target, op.seen), ("memory", op.into, op.into_seen)):
        why = "" if ref is None else moved(reader, part, ref, seen)
        if why:
            return f"its {what} {why}"
    for cited in op.cites:
        state = reader.state(part, reader.ref_of(part, cited))
        if state is None or reader.erased(part, cited) is not None:
            return "evidence that it adds is gone"
        if refs.STATUSES[state.status] in WITHHELD:
            return f"evidence that it adds is {refs.STATUSES[state.status]}"
    if op.action == "summary" and op.proposed is not None:
        return _stale(reader, part, op.proposed)
    if op.action == "attach" and op.target is not None:
        if len(set(_memory(reader, part, op.target).cites) | set(op.cites)) > chains.MAX_CITES:
            return "its target has evidence enough"
    if op.action == "close" and op.target is not None:
        return _not_closable(reader, part, op.target, op.at)
    return ""


def _stale(reader: Reader, part: Part, ref: bytes) -> str:
    """Why a summary that waits no longer fits its sources; empty when it does."""
    state = reader.state(part, ref)
    assert state is not None
    found = summaries.stale(
        Eye(Lens(instant.now()), reader), part, state, _memory(reader, part, ref)
    )
    return "" if found is None else f"a source of it was {found.reason}"


def moved(reader: Reader, part: Part, ref: bytes, seen: bytes | None) -> str:
    """What became of a memory since an operation saw this head of it, or nothing."""
    state = reader.state(part, ref)
    if state is None or state.head is None or reader.erased(part, ref) is not None:
        return "is gone"
    if refs.STATUSES[state.status] in WITHHELD:
        return f"is {refs.STATUSES[state.status]}"
    if state.head != seen:
        return "has another head than the one that was seen"
    if state.flags & refs.CLOSED:
        return "was closed"
    return "was replaced" if state.replaced_by is not None else ""


def _not_closable(reader: Reader, part: Part, ref: bytes, at: int | None) -> str:
    state = reader.state(part, ref)
    assert state is not None
    if at is None:
        return ""
    if state.valid_to is not None and state.valid_to <= at:
        return "its target has ended by then"
    if state.valid_from is not None and at <= chains.begins(reader, part, ref, state):
        return "the end is not after the beginning of its target"
    return ""


def _memory(reader: Reader, part: Part, ref: bytes) -> Memory:
    state = reader.state(part, ref)
    assert state is not None and state.head is not None
    obj = reader.object(part, state.head)
    assert isinstance(obj, Memory)
    return obj


# -- applying -----------------------------------------------------------------------------------


def apply(tx: Tx, part: Part, op: Operation) -> None:
    """Apply an operation that nothing stands in the way of."""
    if op.action == "attach":
        _attach(tx, part, op)
    elif op.action == "close":
        assert op.target is not None
        end = tx.present if op.at is None else op.at
        correct.close(tx, _found(tx, part, op.target), end, reason=op.reason, expected=op.seen)
    elif op.action == "retire-duplicate":
        _retire(tx, part, op)
    else:
        _hold_true(tx, part, op)


def drop(tx: Tx, part: Part, op: Operation, reason: str) -> None:
    """Reject the claim of an operation that is not applied, where it waits still."""
    state = None if op.proposed is None else tx.reader.state(part, op.proposed)
    if op.proposed is None or state is None or refs.STATUSES[state.status] != "pending":
        return
    review.record(tx, part, "reject", op.proposed, state, status="rejected", reason=reason)
    tx.flush()


def edit(tx: Tx, part: Part, op: Operation, text: str) -> None:
    """Give the claim of an operation other words: those of the actor, on the same evidence.

    Raises:
        BadInput: the text is empty.
        Blocked: it was forgotten.
    """
    assert op.proposed is not None
    state, old = memories.head(tx, part, op.proposed)
    text = normalise(text).strip()
    said = msgspec.structs.replace(
        old,
        salt=encode.ZERO_SALT,
        text=text,
        triple=statements.reworded(old.triple, old.text, text),
        deriver=Deriver(memories.STATED),
        confidence=1000,
    )
    said, _ = gate.memory(tx, said)
    tombs.check(tx, part, said, "review")
    words = [word for word in said.triple or () if word not in (old.triple or ())]
    tombs.check_names(tx, part, words, "review")
    memories.replace(tx, part, op.proposed, state, said, reason=EDITED)
    carry.rechain(tx, part, op.proposed, old, said)
    tx.flush()


def _found(tx: Tx, part: Part, ref: bytes) -> Found:
    state = tx.reader.state(part, ref)
    assert state is not None
    return Found(part, ref, state, None)


def _hold_true(tx: Tx, part: Part, op: Operation) -> None:
    """Let a claim hold, in the place of its target where it has one."""
    assert op.proposed is not None
    state = tx.reader.state(part, op.proposed)
    assert state is not None
    status = review.vouched(tx)
    review.record(tx, part, "approve", op.proposed, state, status=status)
    tx.flush()
    review.keep_evidence(tx, part, op.proposed, status)
    chains.relink_of(tx, part, op.proposed)
    tx.flush()
    if op.target is None:
        return
    claim, target = tx.reader.state(part, op.proposed), tx.reader.state(part, op.target)
    assert claim is not None and target is not None
    if target.replaced_by is None and claim.replaced_by is None:
        found = Found(part, op.target, target, None)
        correct.supersede(tx, found, op.proposed, claim.starts, reason=op.reason)


def _attach(tx: Tx, part: Part, op: Operation) -> None:
    """Add evidence to a memory, in other words where the operation proposes them."""
    assert op.target is not None
    state, old = memories.head(tx, part, op.target)
    cites = [*old.cites, *(c for c in op.cites if c not in old.cites)]
    grown = memories.with_cites(old, cites)
    if op.proposed is None:
        memories.replace(
            tx, part, op.target, state, grown, reason=memories.EVIDENCE, expected=op.seen
        )
        review.keep_evidence(tx, part, op.target, refs.STATUSES[state.status])
        return
    claim_state, claim = memories.head(tx, part, op.proposed)
    said = msgspec.structs.replace(
        grown,
        text=claim.text,
        triple=claim.triple if claim.triple is not None else old.triple,
        span=_same_span(claim, cites),
        deriver=claim.deriver,
        confidence=claim.confidence,
    )
    status = refs.STATUSES[state.status]
    lowered = "provisional" if status == "verified" and not review.is_owner(tx) else None
    memories.replace(
        tx, part, op.target, state, said, reason=RESTATED, expected=op.seen, status=lowered
    )
    tx.flush()
    carry.rechain(tx, part, op.target, old, said)
    review.keep_evidence(tx, part, op.target, lowered or status)
    review.record(tx, part, "reject", op.proposed, claim_state, status="rejected", reason=MERGED)
    tx.flush()


def _same_span(claim: Memory, cites: list[bytes]) -> Span | None:
    """The span of a claim among other citations."""
    span = claim.span
    if span is None or claim.cites[span.cite] not in cites:
        return None
    return msgspec.structs.replace(span, cite=cites.index(claim.cites[span.cite]))


def _retire(tx: Tx, part: Part, op: Operation) -> None:
    """Let one of two memories of the same take the evidence and the place of the other."""
    assert op.target is not None and op.into is not None
    stays, kept = memories.head(tx, part, op.into)
    _, goes = memories.head(tx, part, op.target)
    moved = [c for c in goes.cites if c not in kept.cites][: chains.MAX_CITES - len(kept.cites)]
    if moved:
        grown = memories.with_cites(kept, [*kept.cites, *moved])
        memories.replace(
            tx, part, op.into, stays, grown, reason=memories.EVIDENCE, expected=op.into_seen
        )
        tx.flush()
    correct.supersede(
        tx,
        _found(tx, part, op.target),
        op.into,
        tx.present,
        expected=op.seen,
        reason=op.reason or DUPLICATE,
    )
