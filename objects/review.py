"""Who may decide on what waits, and deciding: approve, release, reject.

Nobody decides on what he brought in himself.  The producers of a ref are the principals of the
entries that gave it a head; of a memory that the store derived by itself also those of the evidence
that it cites.  A producer is refused, and so is every principal of its line: whoever makes others
holds their tokens, so that it could bring something in as one and let it out as another.  Whoever
else decides needs the right to review; and where a producer is unknown, because a pack brought the
entry or it names nobody, only the owner decides.  The owner may decide on everything, his own
included.

Every decision passes `record`, where it is signed when the owner has set a passphrase.

Source: remem(7), REVIEW.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects import chains, correct, lists, oid, principals, refs, tiers
from remem.objects.errors import HeadMoved, NotFound, Refused, ReviewRefused
from remem.objects.memories import STATED
from remem.objects.model import Memory, Observation
from remem.objects.reader import Found
from remem.objects.receipts import STATUS_OF_ORIGIN
from remem.objects.scope import BUILT_IN, OWNER
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

UNKNOWN = ""  # a producer of whom nothing is known
SELF, NOT_REVIEWER, UNKNOWN_PRODUCER = "self_release", "not_reviewer", "unknown_producer"
ACTIONS = ("approve", "release", "reject")
_HEADS = frozenset(refs.OP_CODE[op] for op in ("create", "revise", "rollback"))
_SETS_APART = frozenset(("quarantined", "pending"))


# -- who ----------------------------------------------------------------------------------------


def is_owner(tx: Tx) -> bool:
    """True when the person acts, not the store's own work under his grant."""
    grant = tx.actor.grant
    return grant.owner and grant.principal == OWNER


def producers(reader: Reader, part: Part, ref: bytes) -> set[str]:
    """Names of the principals who produced what a ref says; UNKNOWN among them where one is not.

    Raises:
        NotFound: there is no such ref within the grant.
    """
    state = reader.state(part, ref)
    if state is None:
        raise NotFound(f"nothing has the id '{oid.short(ref)}'")
    found: set[str] = set()
    for entry in reader.entries(part, state):
        if entry.op in _HEADS and (entry.prev == 0 or entry.new != entry.old):
            found.add(UNKNOWN if entry.origin is not None else entry.principal)
    if state.type == refs.MEMORY and found & BUILT_IN and state.head is not None:
        memory = reader.object(part, state.head)
        for cited in memory.cites if isinstance(memory, Memory) else ():
            evidence = reader.ref_of(part, cited)
            if reader.state(part, evidence) is None:
                found.add(UNKNOWN)
            else:
                found |= producers(reader, part, evidence)
    return found


def may_decide(tx: Tx, part: Part, ref: bytes, action: str, also: Iterable[str] = ()) -> None:
    """Raise unless the actor may approve, release or reject a ref.

    Args:
        tx: the write transaction.
        part: its partition.
        ref: what is decided on.
        action: one of ACTIONS.
        also: further producers, such as who proposed an operation on it.

    Raises:
        NotFound: there is no such ref within the grant.
        ReviewRefused: the actor may not; the refusal has a row of the audit chain.
    """
    tx.flush()
    found = producers(tx.reader, part, ref) | set(also)
    if is_owner(tx):
        return
    grant = tx.actor.grant

    def refused(outcome: str, why: str) -> ReviewRefused:
        message = f"'{grant.principal}' may not {action} '{oid.short(ref)}': {why}"
        return ReviewRefused(message).audited(action, outcome, part.number, ref)

    if any(principals.akin(tx, grant.principal, name) for name in found if name):
        raise refused(SELF, "it produced this, or is of one line with who did")
    if UNKNOWN in found:
        raise refused(UNKNOWN_PRODUCER, "who produced it is not known, so only the owner decides")
    if not grant.reviews or grant.principal in BUILT_IN:
        raise refused(NOT_REVIEWER, "it may not review")


# -- deciding -----------------------------------------------------------------------------------


def record(
    tx: Tx,
    part: Part,
    op: str,
    ref: bytes,
    state: refs.RefState,
    *,
    status: str,
    reason: str = "",
    new: bytes | None = None,
) -> refs.Entry:
    """Record a decision that the actor may make; the one place where decisions are signed."""
    return tx.record(part, op, ref, state, status=status, reason=reason, new=new)


def approve(tx: Tx, part: Part, ref: bytes, *, reason: str = "") -> refs.Entry:
    """Let a pending claim hold, or vouch for one that is shown already.

    Raises:
        Refused: it is held back for another reason, or verified already.
        ReviewRefused, NotFound: as `may_decide` does.
    """
    may_decide(tx, part, ref, "approve")
    state = _living(tx, part, ref)
    status = refs.STATUSES[state.status]
    if status in WITHHELD - {"pending", "user_belief"} or status == "verified":
        raise Refused(f"'{oid.short(ref)}' is {status}, there is nothing to approve")
    return _let_out(tx, part, "approve", ref, state, vouched(tx), reason)


def release(
    tx: Tx, part: Part, ref: bytes, *, reason: str = "", expected: bytes | None = None
) -> refs.Entry:
    """Let out what is quarantined or was rejected; a pending claim without a draft is approved.

    Args:
        tx: the write transaction.
        part: its partition.
        ref: what is let out.
        reason: reason code.
        expected: the head whose words the actor has read, or None.

    Raises:
        Refused: it is not held back.
        HeadMoved: it says something else by now.
        ReviewRefused, NotFound: as `may_decide` does.
    """
    may_decide(tx, part, ref, "release")
    state = _living(tx, part, ref)
    if expected not in (None, state.head):
        raise HeadMoved(
            f"'{oid.short(ref)}' says something else by now", hint="look at it again"
        ).audited("release", "head_moved", part.number, ref)
    status = refs.STATUSES[state.status]
    if status == "pending":
        return approve(tx, part, ref, reason=reason)
    if status not in ("quarantined", "rejected"):
        raise Refused(f"'{oid.short(ref)}' is {status}, not held back")
    entry = _let_out(tx, part, "release", ref, state, standing(tx.reader, part, state), reason)
    _correct(tx, part, ref)
    return entry


def reject(tx: Tx, part: Part, ref: bytes, *, reason: str = "") -> refs.Entry:
    """Hold a ref back for good; the same value is held back when others say it again.

    Raises:
        Refused: it was rejected already.
        ReviewRefused, NotFound: as `may_decide` does.
    """
    may_decide(tx, part, ref, "reject")
    state = _living(tx, part, ref)
    if refs.STATUSES[state.status] == "rejected":
        raise Refused(f"'{oid.short(ref)}' was rejected already")
    return _let_out(tx, part, "reject", ref, state, "rejected", reason)


def _correct(tx: Tx, part: Part, ref: bytes) -> None:
    """Let evidence that is let out replace what it was given to correct, where that stands still.

    While it was held back it replaced nothing.
    """
    state = tx.reader.state(part, ref)
    assert state is not None and state.head is not None
    obj = tx.reader.object(part, state.head)
    if not isinstance(obj, Observation) or obj.corrects is None:
        return
    target = tx.reader.state(part, obj.corrects)
    if target is None or target.head is None or tx.reader.erased(part, obj.corrects) is not None:
        return
    if target.replaced_by is None and not target.flags & refs.CLOSED:
        at = tx.present if obj.asserted is None else obj.asserted
        correct.supersede(tx, Found(part, obj.corrects, target, None), ref, at)


def vouched(tx: Tx) -> str:
    """Status of what the actor approves: verified by the owner alone."""
    return "verified" if is_owner(tx) else "provisional"


def standing(reader: Reader, part: Part, state: refs.RefState) -> str:
    """Status of what is let out again: the one before it was held back, else that of its origin."""
    for entry in reader.entries(part, state):
        if entry.new != state.head:
            break  # that was the verdict on other words
        status = refs.STATUSES[entry.status]
        if status not in WITHHELD:
            return status
    if reader.entry(part, state.first).origin is not None:
        return "legacy_unverified"
    assert state.head is not None
    obj = reader.object(part, state.head)
    if isinstance(obj, Memory):
        return "provisional" if obj.deriver.name == STATED else "model_claim"
    return STATUS_OF_ORIGIN[obj.origin]


def _living(tx: Tx, part: Part, ref: bytes) -> refs.RefState:
    state = tx.reader.state(part, ref)
    if state is None or state.head is None or state.type > refs.MEMORY:
        raise NotFound(f"nothing has the id '{oid.short(ref)}'")
    if tx.reader.erased(part, ref) is not None:
        raise tx.reader.forgotten(part, ref)
    return state


def _let_out(
    tx: Tx, part: Part, op: str, ref: bytes, state: refs.RefState, status: str, reason: str
) -> refs.Entry:
    entry = record(tx, part, op, ref, state, status=status, reason=reason)
    tx.flush()
    keep_evidence(tx, part, ref, status)
    chains.relink_of(tx, part, ref)
    return entry


def keep_evidence(tx: Tx, part: Part, ref: bytes, status: str) -> None:
    """Keep the short notes for good that a claim rests on which is shown from now on."""
    state = tx.reader.state(part, ref)
    if state is None or state.head is None or state.type != refs.MEMORY:
        return
    memory = tx.reader.object(part, state.head)
    for cited in memory.cites if isinstance(memory, Memory) else ():
        if lists.is_note(tx.txn, part, cited):
            tiers.keep_cited(tx, part, cited, status)
