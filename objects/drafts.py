"""Drafts: operations that are proposed together and decided on one by one.

A proposal never changes what is shown.  An operation that proposes text makes a memory of the
status ``pending`` at once, which cites its evidence, so that forgetting, purging and verifying
reach it as any other; the draft names it, and holds no text of memories itself.  What an operation
would change it names with the head that was seen: when that has moved, the operation is stale and
is not applied.

A decision gives the draft a new revision.  What is denied keeps the critique and may be proposed
again, in other words, up to a limit.  A proposal that waits already, or was denied, is known and is
not made a second time.

Who may decide is the matter of `remem.objects.review`; how an operation is applied that of
`remem.objects.draft_apply`.

Source: remem-store(5), OBJECTS and the table ``proposed``; remem(7), REVIEW.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import draft_apply, draft_rows, oid, refs, review, withheld
from remem.objects.draft_propose import (
    ATTEMPTS,
    DENIED,
    STALE,
    Proposal,
    Proposed,
    cleaned,
    propose,
    resubmit,
)
from remem.objects.draft_rows import get, resting
from remem.objects.errors import HeadMoved, Refused, ReviewRefused, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.model import Draft, Operation
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

__all__ = [
    "APPROVED",
    "ATTEMPTS",
    "DENIED",
    "STALE",
    "Decision",
    "Item",
    "Proposal",
    "Proposed",
    "all_of",
    "approve",
    "deny",
    "get",
    "in_draft",
    "propose",
    "resubmit",
    "waiting",
]

APPROVED = "approved"


class Decision(msgspec.Struct, frozen=True):
    """What became of one operation: its number, the verdict, and why it is stale."""

    number: int
    verdict: str
    why: str = ""


class Item(msgspec.Struct, frozen=True):
    """One thing that waits for a decision.

    Attributes:
        kind: "operation" of a draft, "quarantined", or "claim": pending without a draft.
        ref: the draft, or the ref that is held back.
        number: of the operation, else 0.
        since: microseconds UTC.
    """

    kind: str
    part: Part
    ref: bytes
    number: int
    since: int


# -- reading ------------------------------------------------------------------------------------


def waiting(reader: Reader) -> list[Item]:
    """All that waits for a decision within the grant, oldest first."""
    found: list[Item] = []
    for part in reader.parts:
        for ref, since in withheld.waiting(reader, part):
            state = reader.state(part, ref)
            if state is None or state.head is None:
                continue
            if state.type == refs.DRAFT:
                draft = get(reader, part, ref)[1]
                found += [
                    Item("operation", part, ref, op.number, max(since, state.created))
                    for op in draft.operations
                    if not op.verdict
                ]
            elif state.status == withheld.QUARANTINED:
                found.append(Item("quarantined", part, ref, 0, since))
            elif not in_draft(reader, part, ref):
                found.append(Item("claim", part, ref, 0, since))
    return sorted(found, key=lambda item: (item.since, item.part.number, item.ref, item.number))


def in_draft(reader: Reader, part: Part, ref: bytes) -> bool:
    """True for a pending memory that an operation which waits proposes."""
    for draft_ref in resting(reader, part, ref):
        state = reader.state(part, draft_ref)
        if state is None or state.status != withheld.PENDING:
            continue
        draft = get(reader, part, draft_ref)[1]
        if any(op.proposed == ref and not op.verdict for op in draft.operations):
            return True
    return False


def all_of(reader: Reader, part: Part) -> list[tuple[bytes, refs.RefState, Draft]]:
    """Every draft of a partition that is not forgotten, oldest first."""
    found = []
    for ref, state in reader.states(part):
        if state.type == refs.DRAFT and refs.STATUSES[state.status] != "erased":
            found.append((ref, *get(reader, part, ref)))
    return sorted(found, key=lambda one: one[1].first)


# -- deciding -----------------------------------------------------------------------------------


def approve(
    tx: Tx,
    part: Part,
    ref: bytes,
    numbers: Iterable[int] | None = None,
    *,
    edited: str | None = None,
    seen: Operation | None = None,
) -> list[Decision]:
    """Apply operations of a draft, each whole or not at all.

    Args:
        tx: the write transaction.
        part: its partition.
        ref: the draft.
        numbers: of its operations; None for all that wait.
        edited: other words for the claim of the one operation; it is the owner's own then, stated
            on the same evidence.
        seen: the one operation as the actor has read it, or None.

    Returns:
        For each operation whether it was approved, or is stale and why: then nothing of it was
        applied.

    Raises:
        NotFound: there is no such draft or operation.
        Refused: an operation was decided on already.
        HeadMoved: it proposes something else by now.
        ReviewRefused: the actor may not decide, or not in words of its own.
    """
    tx.flush()
    state, draft = get(tx.reader, part, ref)
    chosen = _chosen(ref, draft, numbers)
    _check_reviewer(tx, part, ref, chosen, "approve")
    if edited is not None and (len(chosen) != 1 or chosen[0].proposed is None):
        raise UsageError("only the claim of one operation can be edited")
    if edited is not None and not review.is_owner(tx):
        raise ReviewRefused(
            f"'{tx.actor.grant.principal}' may not approve words of its own",
            hint="deny it, and say in the critique what it should say",
        ).audited("approve", review.SELF, part.number, ref)
    if seen is not None and chosen != [seen]:
        raise HeadMoved(
            f"'{oid.short(ref)}' proposes something else by now", hint="look at it again"
        ).audited("approve", "head_moved", part.number, ref)
    done: list[Operation] = []
    decisions: list[Decision] = []
    for op in chosen:
        tx.flush()
        why = draft_apply.obstacle(tx.reader, part, op)
        if why:
            draft_apply.drop(tx, part, op, STALE)
        else:
            if edited is not None:
                draft_apply.edit(tx, part, op, edited)
            draft_apply.apply(tx, part, op)
        verdict = STALE if why else APPROVED
        done.append(msgspec.structs.replace(op, verdict=verdict))
        decisions.append(Decision(op.number, verdict, why))
    tx.flush()
    any_applied = any(d.verdict == APPROVED for d in decisions)
    op_name, reason = ("approve", "") if any_applied else ("reject", STALE)
    draft_rows.revise(tx, part, ref, state, draft, done, op_name, reason)
    return decisions


def deny(
    tx: Tx,
    part: Part,
    ref: bytes,
    numbers: Iterable[int] | None = None,
    critique: str = "",
) -> list[Decision]:
    """Turn operations of a draft down; the critique is kept for whoever proposes them again.

    Raises:
        NotFound: there is no such draft or operation.
        Refused: an operation was decided on already.
        ReviewRefused: the actor may not decide.
    """
    tx.flush()
    state, draft = get(tx.reader, part, ref)
    chosen = _chosen(ref, draft, numbers)
    _check_reviewer(tx, part, ref, chosen, "reject")
    words = cleaned(tx, part, critique)
    done = []
    for op in chosen:
        draft_apply.drop(tx, part, op, DENIED)
        done.append(msgspec.structs.replace(op, verdict=DENIED, critique=words or op.critique))
    tx.flush()
    draft_rows.revise(tx, part, ref, state, draft, done, "reject", DENIED)
    return [Decision(op.number, DENIED) for op in done]


def _chosen(ref: bytes, draft: Draft, numbers: Iterable[int] | None) -> list[Operation]:
    """The operations that are decided on.

    Raises:
        NotFound: the draft has none of that number.
        Refused: one was decided on already, or none waits.
    """
    if numbers is None:
        found = [op for op in draft.operations if not op.verdict]
        if not found:
            raise Refused(f"no operation of '{oid.short(ref)}' waits any more")
        return found
    found = [draft_rows.numbered(draft, number) for number in dict.fromkeys(numbers)]
    for op in found:
        if op.verdict:
            raise Refused(
                f"operation {op.number} of '{oid.short(ref)}' is {op.verdict} already",
                hint="'remem undo' takes the last decision back",
            )
    return found


def _check_reviewer(tx: Tx, part: Part, ref: bytes, chosen: list[Operation], action: str) -> None:
    also: set[str] = set()
    for op in chosen:
        also.add(op.by)
        if op.proposed is not None and tx.reader.state(part, op.proposed) is not None:
            also |= review.producers(tx.reader, part, op.proposed)
    review.may_decide(tx, part, ref, action, also)
