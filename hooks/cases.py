"""What somebody has to see to decide: the claim, its evidence, what it would change.

``remem draft``, ``remem review`` and the Python interface all show a case built here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import (
    draft_apply,
    drafts,
    evidence,
    instant,
    quarantine,
    refs,
    review,
    withheld,
)
from remem.objects.errors import Forgotten, NotFound
from remem.objects.model import Memory, Observation, Operation
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from remem.hooks import results
    from remem.objects.drafts import Item
    from remem.objects.encode import Obj
    from remem.objects.model import Draft
    from remem.objects.quarantine import Held
    from remem.objects.reader import Part, Reader

OPERATION, QUARANTINED, CLAIM = "operation", "quarantined", "claim"


class Evidence(msgspec.Struct):
    """An observation behind a claim.

    Attributes:
        obj: the observation, or None when it is gone.
        spans: the parts that ground the claim, [start, end) in code points.
        held: its status when it is held back itself, else empty.
    """

    id: bytes
    obj: Observation | None
    spans: list[tuple[int, int]]
    held: str

    @property
    def text(self) -> str | None:
        """What was said, or None when it is gone."""
        return None if self.obj is None else self.obj.text


class Case(msgspec.Struct):
    """One thing to decide on.

    Attributes:
        kind: OPERATION, QUARANTINED or CLAIM.
        ref: the draft, or what is held back.
        state: of that ref.
        op: the operation of a draft, else None.
        shown: the ref whose words are decided on, or None.
        obj: these words: a claim, or evidence that is quarantined.
        evidence: what the claim rests on, or what an attach adds.
        target: the memory that would change, and into: the one that stays.
        codes: why it is held back.
        producers: who produced it.
        since: microseconds UTC.
        obstacle: why it cannot be applied any more, or empty.
    """

    kind: str
    part: Part
    ref: bytes
    state: refs.RefState
    op: Operation | None
    shown: bytes | None
    obj: Obj | None
    evidence: list[Evidence]
    target: Obj | None
    into: Obj | None
    codes: list[str]
    producers: list[str]
    since: int
    obstacle: str = ""

    @property
    def title(self) -> str:
        """What it is: the action of an operation, or why it waits."""
        return self.kind if self.op is None else self.op.action


def fetch(reader: Reader, part: Part, object_id: bytes | None) -> Obj | None:
    """An object for who decides on it, though it is held back; None when it is gone."""
    try:
        return None if object_id is None else reader.object(part, object_id)
    except (NotFound, Forgotten):
        return None


def of_item(reader: Reader, item: Item) -> Case | None:
    """The case of something that waits, or None when it does not any more."""
    part, ref = item.part, item.ref
    state = reader.state(part, ref)
    if state is None or state.head is None or state.status not in withheld.WAITING:
        return None
    if item.kind == OPERATION:
        draft = drafts.get(reader, part, ref)[1]
        op = next((op for op in draft.operations if op.number == item.number), None)
        return None if op is None or op.verdict else of_operation(reader, part, ref, op)
    held = quarantine.describe(reader, part, ref, state, item.since)
    obj = fetch(reader, part, state.head)
    return Case(
        kind=item.kind,
        part=part,
        ref=ref,
        state=state,
        op=None,
        shown=ref,
        obj=obj,
        evidence=_evidence(reader, part, obj),
        target=None,
        into=None,
        codes=held.codes,
        producers=held.producers,
        since=item.since,
    )


def of_operation(reader: Reader, part: Part, ref: bytes, op: Operation) -> Case:
    """The case of an operation, decided on or not."""
    state = reader.state(part, ref)
    assert state is not None
    claim = None if op.proposed is None else reader.state(part, op.proposed)
    obj = None if claim is None else fetch(reader, part, claim.head)
    names = review.producers(reader, part, ref) | {op.by}
    found = _evidence(reader, part, obj)
    known = {one.id for one in found}
    found += [_told(reader, part, cited, None) for cited in op.cites if cited not in known]
    return Case(
        kind=OPERATION,
        part=part,
        ref=ref,
        state=state,
        op=op,
        shown=op.proposed,
        obj=obj,
        evidence=found,
        target=_head(reader, part, op.target),
        into=_head(reader, part, op.into),
        codes=_codes(reader, part, op),
        producers=sorted(names),
        since=state.created,
        obstacle="" if op.verdict else draft_apply.obstacle(reader, part, op),
    )


def _codes(reader: Reader, part: Part, op: Operation) -> list[str]:
    """Why an operation is proposed, and what the admission gate says against its claim."""
    found = [op.reason] if op.reason else []
    state = None if op.proposed is None else reader.state(part, op.proposed)
    if op.proposed is not None and state is not None:
        codes = quarantine.codes_of(reader, part, op.proposed, state)
        found += [code for code in codes if code not in found]
    return found


def _head(reader: Reader, part: Part, ref: bytes | None) -> Obj | None:
    state = None if ref is None else reader.state(part, ref)
    return None if state is None else fetch(reader, part, state.head)


def _evidence(reader: Reader, part: Part, obj: Obj | None) -> list[Evidence]:
    if not isinstance(obj, Memory):
        return []
    return [_told(reader, part, cited, obj) for cited in obj.cites]


def _told(reader: Reader, part: Part, cited: bytes, claim: Memory | None) -> Evidence:
    observation = fetch(reader, part, cited)
    if not isinstance(observation, Observation):
        return Evidence(cited, None, [], "")
    state = reader.state(part, reader.ref_of(part, cited))
    status = "" if state is None else refs.STATUSES[state.status]
    spans = [] if claim is None else evidence.grounds(claim, cited, observation.text)
    return Evidence(cited, observation, spans, status if status in WITHHELD else "")


# -- as every door gives them ---------------------------------------------------------------------


def value(case: Case) -> results.Case:
    """A case in its public shape."""
    from remem.hooks import results, shaping

    op = case.op
    return results.Case(
        kind=case.kind,
        id=case.ref.hex(),
        operation=None if op is None else op.number,
        action=None if op is None else op.action,
        verdict=None if op is None else op.verdict or "waiting",
        attempt=None if op is None else op.attempt,
        critique=None if op is None else op.critique,
        stale=case.obstacle or None,
        ref=shaping.hex_of(case.shown),
        text=None if case.obj is None else case.obj.text,
        triple=case.obj.triple if isinstance(case.obj, Memory) else None,
        target=_side(None if op is None else op.target, case.target),
        into=_side(None if op is None else op.into, case.into),
        ends_at=shaping.maybe(None if op is None else op.at),
        evidence=[
            results.Ground(one.id.hex(), one.text, one.spans, one.held or None)
            for one in case.evidence
        ],
        codes=case.codes,
        producers=[name or None for name in case.producers],
        since=shaping.moment(case.since),
        age_s=_age_s(case.since),
        collection=case.part.collection,
    )


def _side(ref: bytes | None, obj: Obj | None) -> results.Side | None:
    from remem.hooks import results

    return None if ref is None else results.Side(ref.hex(), None if obj is None else obj.text)


def of_draft(
    reader: Reader, part: Part, ref: bytes, state: refs.RefState, draft: Draft
) -> results.Draft:
    """A draft with its operations in its public shape."""
    from remem.hooks import results, shaping

    made = draft.deriver
    return results.Draft(
        id=ref.hex(),
        status=refs.STATUSES[state.status],
        made_at=shaping.moment(draft.made),
        deriver=results.Deriver(made.name, made.version, made.model, made.prompt),
        note=draft.note,
        waiting=sum(not op.verdict for op in draft.operations),
        scope=shaping.names(draft.scope),
        operations=[value(of_operation(reader, part, ref, op)) for op in draft.operations],
    )


def of_held(reader: Reader, one: Held) -> results.Held:
    """What is held back, in its public shape."""
    from remem.hooks import results, shaping

    obj = fetch(reader, one.part, one.state.head)
    return results.Held(
        id=one.ref.hex(),
        head=shaping.hex_of(one.state.head),
        type=refs.TYPES[one.state.type],
        status=refs.STATUSES[one.state.status],
        codes=one.codes,
        producers=[name or None for name in one.producers],
        since=shaping.moment(one.since),
        age_s=_age_s(one.since),
        text=None if obj is None else obj.text,
        scope=shaping.lane(reader, one.part, one.state.lane),
    )


def _age_s(since: int) -> int:
    return max(0, instant.now() - since) // instant.MICROS
