"""What a person states: a triple, with evidence of its own or on evidence that is there.

Stating is saying: without evidence named, the sentence itself is taken in as an observation of the
kind ``statement``, and the memory cites it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, encode, gate, memories, refs, tombs
from remem.objects.admit import DEFAULT_LIMIT_B, admit
from remem.objects.errors import BadInput
from remem.objects.model import Deriver, Incoming, Memory, Span
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remem.objects.admit import Admitted
    from remem.objects.model import Scope
    from remem.objects.reader import Part
    from remem.objects.tx import Tx

KIND = "statement"  # kind of the evidence that stating makes


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A triple as stated.

    Attributes:
        triple: subject, predicate, object.
        text: the sentence.
        kind: one of model.MEMORY_KINDS.
        starts: when it begins to hold, microseconds UTC, or None for now.
        ends: when it ceases to hold (exclusive), or None.
        offset: minutes east of UTC in which the times were written.
        single: whether the predicate has one value at a time.
        cited: id of the observation that it rests on, or None for its own sentence.
        reason: reason code.
    """

    triple: tuple[str, str, str]
    text: str
    kind: str = "fact"
    starts: int | None = None
    ends: int | None = None
    offset: int | None = None
    single: bool = True
    cited: bytes | None = None
    reason: str = ""


class Stated(msgspec.Struct, frozen=True):
    """Outcome of stating.

    Attributes:
        id: object id of the head.
        ref: its ref.
        status: "new" or "known".
        standing: trust status of the ref.
        codes: what the admission gate found.
    """

    id: bytes
    ref: bytes
    status: str
    standing: str
    codes: list[str] = []


def say(
    tx: Tx,
    scope: Scope,
    text: str,
    *,
    offset: int | None = None,
    limit_b: int = DEFAULT_LIMIT_B,
    codes: Sequence[str] = (),
) -> Admitted:
    """Take a sentence in as evidence of what somebody states now.

    ``codes`` are those that the gate found before, for its receipt.

    Raises:
        Blocked: it was forgotten.
        BadInput: it cannot be taken.
    """
    record = Incoming(
        text=text,
        offset=offset,
        kind=KIND,
        collection=scope.collection,
        agent=scope.agent,
        session=scope.session,
    )
    admitted = admit(tx, record, limit_b=limit_b, codes=codes)
    if admitted.status == "blocked":
        raise tombs.refusal(tx.part(scope), admitted.ref, "add")
    return admitted


def standing(tx: Tx) -> str:
    """Status of what the principal who acts states."""
    return "verified" if tx.actor.grant.owner else "provisional"


def state(
    tx: Tx,
    scope: Scope,
    fact: Fact,
    *,
    limit_b: int = DEFAULT_LIMIT_B,
    held: chains.Held | None = None,
) -> Stated:
    """State a triple; what held before is replaced, at the right place in time.

    Args:
        tx: the write transaction.
        scope: where it belongs.
        fact: what is stated.
        limit_b: largest sentence, bytes.
        held: chains that this transaction has read, kept in step.

    Raises:
        BadInput: a part is empty, the kind is none, or it ends before it begins.
        Blocked: the sentence was forgotten.
        NotFound: the evidence named is not of this partition.
    """
    for name, value in zip(("subject", "predicate", "object"), fact.triple, strict=True):
        if not value.strip():
            raise BadInput(f"the {name} is empty")
    triple, text, codes = gate.stated(fact.triple, fact.text)
    fact = msgspec.structs.replace(fact, triple=triple, text=text)
    part = tx.part(scope)
    tombs.check_names(tx, part, triple, "add")
    cited = fact.cited
    span = None
    if cited is None:
        said = say(tx, scope, fact.text, offset=fact.offset, limit_b=limit_b, codes=codes)
        cited = said.id
        span = Span(0, 0, len(fact.text))
    memory = Memory(
        encode.ZERO_SALT,
        scope,
        fact.kind,
        fact.text,
        fact.triple,
        [cited],
        span,
        Deriver(memories.STATED),
        1000,
        fact.starts,
        fact.ends,
        fact.offset,
        [],
        "",
        [],
        {},
    )
    ref, status = chains.put(
        tx,
        part,
        memory,
        status=standing(tx),
        single=fact.single,
        valid_from=fact.starts,
        reason=fact.reason,
        held=held,
        codes=codes,
    )
    found = tx.reader.state(part, ref)
    assert found is not None and found.head is not None
    return Stated(found.head, ref, status, refs.STATUSES[found.status], codes)


def plain(
    tx: Tx,
    scope: Scope,
    text: str,
    *,
    kind: str,
    cues: list[str] | None = None,
    trigger: str = "",
    offset: int | None = None,
    meta: dict[str, object] | None = None,
    limit_b: int = DEFAULT_LIMIT_B,
) -> Stated:
    """State a memory that is no triple (a loop, a pin): its sentence is its evidence.

    Raises:
        Blocked: it was forgotten.
        BadInput: it cannot be taken.
    """
    tx.flush()
    part = tx.part(scope)
    tombs.check_names(tx, part, (*(cues or ()), trigger, *tombs.strings(meta)), "add")
    said = say(tx, scope, text, limit_b=limit_b)
    told = tx.reader.object(part, said.id).text  # as admission has left it
    memory = Memory(
        encode.ZERO_SALT,
        scope,
        kind,
        told,
        None,
        [said.id],
        Span(0, 0, len(told)),
        Deriver(memories.STATED),
        1000,
        None,
        None,
        offset,
        cues or [],
        trigger,
        [],
        meta or {},
    )
    status = said.receipt.status if said.receipt.status in WITHHELD else standing(tx)
    memory, codes = gate.memory(tx, memory)
    for _ in range(2):
        ref = memories.create(tx, part, memory, status=status, valid_from=None, codes=codes)
        if ref is not None:
            return Stated(ref, ref, "new", _standing(tx, part, ref), codes)
        ref = tx.reader.ref_of(part, encode.seal(memory, part.key)[0])
        known = tx.reader.state(part, ref)
        assert known is not None
        shown = refs.STATUSES[known.status] not in WITHHELD and known.head is not None
        if shown and not known.flags & refs.CLOSED and known.replaced_by is None:
            standing_now = refs.STATUSES[known.status]
            return Stated(known.head or ref, ref, "known", standing_now, codes)
        memory = msgspec.structs.replace(memory, meta={**memory.meta, "stated": tx.now})
    raise AssertionError("two objects of one transaction have the same id")


def _standing(tx: Tx, part: Part, ref: bytes) -> str:
    state = tx.reader.state(part, ref)
    assert state is not None
    return refs.STATUSES[state.status]


def reworded(
    triple: tuple[str, str, str] | None, old: str, new: str
) -> tuple[str, str, str] | None:
    """The triple of a memory whose text is given other words.

    The object stays where the new text still holds it; where the words around it stayed, it is
    what stands between them now; else it is the new text itself.
    """
    if triple is None:
        return None
    subject, predicate, obj = triple
    folded = chains.fold(new)
    if chains.fold(obj) and chains.fold(obj) in folded:
        return triple
    at = old.find(obj)
    if at >= 0:
        before, after = old[:at], old[at + len(obj) :]
        inside = new[len(before) : len(new) - len(after)].strip()
        if inside and new.startswith(before) and new.endswith(after):
            return subject, predicate, inside
    lead = chains.fold(f"{subject} {predicate}")
    if folded.startswith(lead + " "):
        words = new.split()[len(lead.split()) :]
        if words:
            return subject, predicate, " ".join(words)
    return subject, predicate, new.strip()
