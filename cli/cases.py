"""What a person has to see to decide: the claim, its evidence, what it would change.

``remem draft``, ``remem review`` and their JSON all show a case built here.  Nothing in it is
escaped yet, except by those who print it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.cli import describe
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
    from remem.cli.describe import Json
    from remem.objects.drafts import Item
    from remem.objects.encode import Obj
    from remem.objects.reader import Part, Reader

OPERATION, QUARANTINED, CLAIM = "operation", "quarantined", "claim"


class Evidence(msgspec.Struct):
    """An observation behind a claim.

    Attributes:
        text: what was said, or None when it is gone.
        spans: the parts that ground the claim, [start, end) in code points.
        who: speaker, origin and source on one line.
        held: its status when it is held back itself, else empty.
    """

    id: bytes
    text: str | None
    spans: list[tuple[int, int]]
    who: str
    held: str


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

    @property
    def kind_of(self) -> str:
        """Kind of the words that are decided on."""
        return "" if self.obj is None else describe.kind_of(self.obj)


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
        return Evidence(cited, None, [], "", "")
    state = reader.state(part, reader.ref_of(part, cited))
    status = "" if state is None else refs.STATUSES[state.status]
    spans = [] if claim is None else evidence.grounds(claim, cited, observation.text)
    words = [observation.speaker or observation.role, f"origin {observation.origin}"]
    words.append(describe.source_line(observation.source))
    who = ", ".join(word for word in words if word)
    return Evidence(cited, observation.text, spans, who, status if status in WITHHELD else "")


# -- as JSON ------------------------------------------------------------------------------------


def value(case: Case) -> Json:
    """A case as JSON has it."""
    op = case.op
    return {
        "kind": case.kind,
        "id": case.ref.hex(),
        "operation": None if op is None else op.number,
        "action": None if op is None else op.action,
        "verdict": None if op is None else op.verdict or "waiting",
        "attempt": None if op is None else op.attempt,
        "critique": None if op is None else op.critique,
        "stale": case.obstacle or None,
        "ref": describe.full(case.shown),
        "text": None if case.obj is None else case.obj.text,
        "triple": case.obj.triple if isinstance(case.obj, Memory) else None,
        "target": _side(None if op is None else op.target, case.target),
        "into": _side(None if op is None else op.into, case.into),
        "ends_at": describe.stamp(None if op is None else op.at),
        "evidence": [
            {
                "id": one.id.hex(),
                "text": one.text,
                "spans": [list(span) for span in one.spans],
                "held": one.held or None,
            }
            for one in case.evidence
        ],
        "codes": case.codes,
        "producers": [name or None for name in case.producers],
        "since": describe.stamp(case.since),
        "age_s": max(0, instant.now() - case.since) // instant.MICROS,
        "collection": case.part.collection,
    }


def _side(ref: bytes | None, obj: Obj | None) -> Json | None:
    if ref is None:
        return None
    return {"ref": ref.hex(), "text": None if obj is None else obj.text}


# -- for people ---------------------------------------------------------------------------------


def words_of(case: Case) -> str:
    """The words that are decided on: the claim, else those of the target."""
    obj = case.obj or case.target
    return "(gone)" if obj is None else obj.text


def why(case: Case) -> str:
    """What it is and why it waits, in a few words, not escaped."""
    if case.op is not None:
        again = f", attempt {case.op.attempt}" if case.op.attempt > 1 else ""
        codes = f" ({', '.join(case.codes)})" if case.codes else ""
        return f"{case.op.action}{again}{codes}" + (", stale" if case.obstacle else "")
    return case.kind + (f" ({', '.join(case.codes)})" if case.codes else "")


def by(case: Case) -> str:
    """Who produced it, in words, not escaped."""
    return ", ".join(name or "unknown" for name in case.producers)
