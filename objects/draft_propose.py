"""Proposing: what becomes a draft, what is known already, and proposing again what was denied.

Each proposal passes the admission gate like every other text, is checked against what was forgotten
and names the heads that it saw.

Source: remem(7), REVIEW.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import (
    chains,
    draft_apply,
    draft_rows,
    encode,
    gate,
    memories,
    oid,
    redact,
    refs,
    tombs,
    withheld,
)
from remem.objects.admit import normalise
from remem.objects.draft_rows import resting
from remem.objects.errors import BadInput, HeadMoved, NotFound, Refused, ScopeRefused
from remem.objects.model import DRAFT_ACTIONS, Draft, Memory, Operation
from remem.objects.scope import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remem.objects.model import Deriver, Observation, Scope
    from remem.objects.reader import Part
    from remem.objects.tx import Tx

ATTEMPTS = 3  # how often an operation may be proposed (setting review.attempts)
MAX_CRITIQUE_B = 4096
DENIED, STALE = "denied", "stale"
_PROPOSES_TEXT = frozenset(("new", "supersede", "summary", "verbatim"))
_NEEDS_TARGET = frozenset(("attach", "supersede", "close", "retire-duplicate"))


class Proposal(msgspec.Struct, kw_only=True):
    """One operation as somebody proposes it.

    Attributes:
        action: one of model.DRAFT_ACTIONS.
        memory: what is claimed, with the zero salt; of attach the other wording, or None.
        target: ref of the memory that would change.
        seen: head of the target that the proposer read; None for the present one.
        into: of retire-duplicate: the ref that stays.
        at: of close: when the target ends, microseconds UTC; None for when it is approved.
        cites: of attach: object ids of the observations that are added.
        single: whether the predicate of the claim has one value at a time; None by default.
        reason: reason code.
        codes: what the admission gate says against the claim; set here, not by the proposer.
    """

    action: str
    memory: Memory | None = None
    target: bytes | None = None
    seen: bytes | None = None
    into: bytes | None = None
    at: int | None = None
    cites: list[bytes] = []
    single: bool | None = None
    reason: str = ""
    codes: list[str] = []


class Proposed(msgspec.Struct, frozen=True):
    """Outcome of a proposal.

    Attributes:
        ref: of the draft, or None when every operation was known.
        made: numbers of its operations.
        known: places, from 0, of proposals that wait already or were denied.
    """

    ref: bytes | None
    made: list[int]
    known: list[int]


def propose(
    tx: Tx,
    scope: Scope,
    operations: Sequence[Proposal],
    *,
    deriver: Deriver,
    note: str = "",
) -> Proposed:
    """Write a draft.

    Args:
        tx: the write transaction.
        scope: where the draft, and what it proposes, belongs; its partition is there already.
        operations: what is proposed; what is known already is left out.
        deriver: who made it.
        note: a few words on the whole.

    Raises:
        BadInput: an operation lacks what its action needs, or says what it does not take.
        UsageError: its reason is no reason code, or one of the store's own.
        NotFound: a target or evidence is not there.
        HeadMoved: a target has another head than the one that was seen, or was closed or replaced.
        Blocked: a claim was forgotten here.
        ScopeRefused: the actor may not propose here.
    """
    part = _place(tx, scope)
    made: list[Operation] = []
    known: list[int] = []
    for place, proposal in enumerate(operations):
        tx.flush()
        whole = _whole(tx, part, scope, proposal)
        if _is_known(tx, part, whole, made):
            known.append(place)
        else:
            made.append(_operation(tx, part, whole, len(made) + 1, 1))
    if not made:
        return Proposed(None, [], known)
    draft = Draft(encode.ZERO_SALT, scope, deriver, tx.now, cleaned(tx, part, note), made, {})
    ref = draft_rows.begin(tx, part, draft)
    return Proposed(ref, [op.number for op in made], known)


def resubmit(
    tx: Tx,
    part: Part,
    ref: bytes,
    number: int,
    memory: Memory | None = None,
    *,
    at: int | None = None,
    limit: int = ATTEMPTS,
) -> int:
    """Propose an operation again that was denied or is stale, on the present heads.

    Args:
        tx: the write transaction.
        part: its partition.
        ref: the draft.
        number: of the operation.
        memory: the claim in other words, with the zero salt; where text is proposed.
        at: of close: another end.
        limit: how often an operation may be proposed.

    Returns:
        Which attempt this is.

    Raises:
        Refused: it waits or was approved, the limit is reached, or the claim is the same.
        ReviewRefused, NotFound, BadInput, Blocked: as `propose` does.
    """
    tx.flush()
    state, draft = draft_rows.get(tx.reader, part, ref)
    _place(tx, draft.scope)
    op = draft_rows.numbered(draft, number)
    if op.verdict not in (DENIED, STALE):
        was = op.verdict or "waiting"
        raise Refused(f"operation {number} of '{oid.short(ref)}' is {was}")
    if op.attempt >= limit:
        raise Refused(
            f"operation {number} of '{oid.short(ref)}' was proposed {op.attempt} times",
            hint="that was the last attempt (review.attempts); state it yourself if it is true",
        )
    proposal = Proposal(
        action=op.action,
        memory=memory,
        target=_standing(tx, part, op.target),
        into=_standing(tx, part, op.into),
        at=op.at if at is None else at,
        cites=op.cites,
        reason=op.reason,
    )
    whole = _whole(tx, part, draft.scope, proposal)
    if op.verdict == DENIED:
        if _is_known(tx, part, whole, [], apart=(ref, number) if whole.memory is None else None):
            raise Refused(
                "the same claim was denied, or waits already", hint="propose it in other words"
            )
        if whole.memory is None and whole.at == op.at:
            raise Refused("nothing of the operation was changed")
    again = _operation(tx, part, whole, number, op.attempt + 1)
    again = msgspec.structs.replace(again, critique=op.critique)
    draft_rows.revise(tx, part, ref, state, draft, [again], "revise", "resubmitted")
    return again.attempt


def _standing(tx: Tx, part: Part, ref: bytes | None) -> bytes | None:
    """The memory that stands in the place of one now: itself, or what replaced it."""
    seen: set[bytes] = set()
    while ref is not None and ref not in seen:
        seen.add(ref)
        state = tx.reader.state(part, ref)
        if state is None or state.replaced_by is None:
            break
        after = tx.reader.state(part, state.replaced_by)
        if after is None or after.type != refs.MEMORY:
            break
        ref = state.replaced_by
    return ref


def cleaned(tx: Tx, part: Part, text: str) -> str:
    """Words of a proposer or a reviewer as they are kept: without secrets and private regions.

    Raises:
        BadInput: they are too long or not UTF-8.
        Blocked: they are a value that was forgotten.
    """
    if not text:
        return ""
    text = redact.clean(normalise(text))[0].strip()
    try:
        size_b = len(text.encode())
    except UnicodeEncodeError as error:
        raise BadInput("the text holds half a surrogate pair, which is not UTF-8") from error
    if size_b > MAX_CRITIQUE_B:
        raise BadInput(f"the text has {size_b:,} bytes, the limit is {MAX_CRITIQUE_B:,}")
    tomb = tombs.blocked(tx, part, text) if text else None
    if tomb is not None:
        raise tombs.refusal(part, tomb, "review")
    return text


def _place(tx: Tx, scope: Scope) -> Part:
    """The partition of a draft, when the actor may propose there.

    Raises:
        ScopeRefused: it may not.
        NotFound: nothing is there, so there is no evidence either.
    """
    grant = tx.actor.grant
    names = (scope.tenant, scope.profile, scope.collection)
    may = grant.owner or grant.writes or grant.proposes
    if not may or not grant.sees(*names) or not grant.sees_lane(scope.agent, scope.session):
        raise ScopeRefused(f"'{grant.principal}' may not propose in this scope").audited(
            "create", "scope_refused", 0, None
        )
    for part in tx.reader.parts:
        if (part.tenant, part.profile, part.collection) == names:
            return part
    raise NotFound("there is no evidence in this scope to propose anything on")


def _whole(tx: Tx, part: Part, scope: Scope, given: Proposal) -> Proposal:
    """A proposal with the heads that it saw and with the claim as it will be stored.

    Raises:
        BadInput, NotFound, HeadMoved: see `propose`.
    """
    action = given.action
    if action not in DRAFT_ACTIONS:
        raise BadInput(f"'{action}' is no operation", hint="one of " + ", ".join(DRAFT_ACTIONS))
    if (action in _PROPOSES_TEXT and given.memory is None) or (
        given.memory is not None and action in ("close", "retire-duplicate")
    ):
        raise BadInput(f"'{action}' {'needs' if given.memory is None else 'takes no'} claim")
    if (action in _NEEDS_TARGET and given.target is None) or (
        given.target is not None and action in ("new", "verbatim")
    ):
        raise BadInput(f"'{action}' {'needs' if given.target is None else 'takes no'} target")
    if (action == "retire-duplicate") != (given.into is not None):
        raise BadInput("'retire-duplicate', and nothing else, names the memory that stays")
    if (action == "attach") != bool(given.cites):
        raise BadInput("'attach', and nothing else, names the evidence that it adds")
    refs.given_reason(given.reason or None)
    if given.into is not None and given.into == given.target:
        raise BadInput("a memory is no duplicate of itself")
    seen = None
    old: Memory | None = None
    if given.target is not None:
        state, old = memories.head(tx, part, given.target)
        if given.seen not in (None, state.head):
            raise HeadMoved(f"the head of '{oid.short(given.target)}' has moved")
        seen = state.head
        _refuse_moved(tx, part, given.target, seen)
    if given.into is not None:
        _refuse_moved(tx, part, given.into, memories.head(tx, part, given.into)[0].head)
    for cited in given.cites:
        _evidence(tx, part, cited)
    memory = given.memory
    codes: list[str] = []
    if memory is not None:
        memory, codes = gate.memory(tx, memory)
        if action == "attach" and old is not None:
            cites = list(dict.fromkeys((*old.cites, *given.cites)))
            memory = memories.with_cites(memory, cites)
        memory = msgspec.structs.replace(
            memory, salt=encode.ZERO_SALT, scope=scope, text=normalise(memory.text)
        )
        memories.check(memory)
        if action == "summary" and memory.kind != "summary":
            raise BadInput("the operation 'summary' proposes a memory of the kind summary")
        told = {cited: _evidence(tx, part, cited) for cited in memory.cites}
        span = memory.span
        if action == "verbatim":
            whole = "" if span is None else told[memory.cites[span.cite]].text
            if span is None or memory.text != whole[span.start : span.end]:
                raise BadInput("the operation 'verbatim' proposes the very words of its evidence")
        if span is not None:
            codes = [*codes, *gate.derived(memory, told[memory.cites[span.cite]])]
    return msgspec.structs.replace(given, memory=memory, seen=seen, codes=codes)


def _refuse_moved(tx: Tx, part: Part, ref: bytes, head: bytes | None) -> None:
    """Raise where nothing can be proposed about a memory: it was closed or replaced, or is held."""
    why = draft_apply.moved(tx.reader, part, ref, head)
    if why:
        raise HeadMoved(f"'{oid.short(ref)}' {why}", hint="propose it about what holds now")


def _evidence(tx: Tx, part: Part, cited: bytes) -> Observation:
    """An observation that is cited.

    Raises:
        NotFound, Forgotten: it is not there.
        BadInput: it is a memory.
    """
    obj = tx.reader.object(part, cited)
    if isinstance(obj, Memory):
        raise BadInput(f"'{oid.short(cited)}' is a memory, no evidence")
    return obj


def _is_known(
    tx: Tx,
    part: Part,
    proposal: Proposal,
    made: list[Operation],
    apart: tuple[bytes, int] | None = None,
) -> bool:
    """Whether a proposal waits already, or was denied (the operation ``apart`` does not count)."""
    memory = proposal.memory
    if memory is not None:
        own = set(tombs.values_of(memory))
        if withheld.refused_by(tx, part, own) is not None:
            return True
        own = {tombs.normal_value(text) for text in own}
        for ref, _ in withheld.waiting(tx.reader, part):
            state = tx.reader.state(part, ref)
            if state is None or state.status != withheld.PENDING or state.type != refs.MEMORY:
                continue
            there = memories.head(tx, part, ref)[1]
            if own & {tombs.normal_value(text) for text in tombs.values_of(there)}:
                return True
        return False
    assert proposal.target is not None
    wanted = _outline(proposal.action, proposal)
    if any(_outline(op.action, op) == wanted for op in made):
        return True
    for draft_ref in resting(tx.reader, part, proposal.target):
        for op in draft_rows.get(tx.reader, part, draft_ref)[1].operations:
            if (draft_ref, op.number) == apart or op.verdict not in ("", DENIED):
                continue
            if op.proposed is None and _outline(op.action, op) == wanted:
                return True
    return False


def _outline(action: str, of: Proposal | Operation) -> tuple[object, ...]:
    """What makes two operations without a claim the same."""
    return (action, of.target, of.seen, of.into, of.at, tuple(sorted(of.cites)))


def _operation(tx: Tx, part: Part, whole: Proposal, number: int, attempt: int) -> Operation:
    """The operation of a proposal, with its claim stored as pending."""
    proposed = None
    if whole.memory is not None:
        proposed = _pend(tx, part, whole)
    into_seen = None
    if whole.into is not None:
        into_seen = memories.head(tx, part, whole.into)[0].head
    return Operation(
        number,
        whole.action,
        proposed,
        whole.target,
        whole.seen,
        whole.into,
        into_seen,
        whole.at,
        whole.cites,
        whole.reason,
        tx.actor.grant.principal,
        attempt,
        "",
        "",
    )


def _pend(tx: Tx, part: Part, whole: Proposal) -> bytes:
    """Store a claim that waits; in its chain it takes its place when it is approved."""
    memory = whole.memory
    assert memory is not None
    if tx.actor.grant.principal not in BUILT_IN:  # who has words of its own
        words = (*(memory.triple or ()), *memory.cues, memory.trigger)
        tombs.check_names(tx, part, words, "propose")
    single = None
    if memory.triple is not None:
        single = chains.is_single(memory.triple[1]) if whole.single is None else whole.single
    for _ in range(2):
        ref = memories.create(
            tx,
            part,
            memory,
            status="pending",
            valid_from=memory.valid_from,
            valid_to=memory.valid_to,
            reason=whole.reason,
            codes=whole.codes,
            single=single,
        )
        if ref is not None:
            break
        memory = msgspec.structs.replace(memory, meta={**memory.meta, "proposed": tx.now})
    assert ref is not None
    if memory.triple is not None and single is not None:
        key = chains.chain_key(tx.reader, part, memory.triple, single=single)
        chains.join(tx, part, key, ref)
    return ref
