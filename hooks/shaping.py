"""From what is stored to what a program gets back (`remem.hooks.results`)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from remem.hooks import results
from remem.objects import instant, refs
from remem.objects.errors import UsageError
from remem.objects.model import Observation

if TYPE_CHECKING:
    from remem.hooks.questions import Size
    from remem.index import hits as found
    from remem.index.asked import Understood
    from remem.index.context import Block
    from remem.index.pinned import Standing
    from remem.index.whose import Whose
    from remem.objects import loops, model, pins, statements, tasks
    from remem.objects.admit import Admitted
    from remem.objects.briefs import Brief
    from remem.objects.encode import Obj
    from remem.objects.reader import Part, Reader

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
_FLAGS = ((refs.HELD, "held"), (refs.PINNED, "pinned"), (refs.FLAGGED, "flagged"))


# -- instants and names -------------------------------------------------------------------------


def moment(micros: int) -> datetime:
    """An instant, microseconds UTC, as an aware datetime."""
    return _EPOCH + micros * _MICRO


def maybe(micros: int | None) -> datetime | None:
    """An instant, or None for an unknown one."""
    return None if micros is None else moment(micros)


def micros(when: datetime | int) -> int:
    """A datetime (or microseconds) as microseconds UTC.

    Raises:
        UsageError: the datetime has no zone.
    """
    if isinstance(when, int):
        return when
    if when.tzinfo is None:
        raise UsageError("the datetime has no time zone", hint="give it one: tzinfo=UTC")
    return (when - _EPOCH) // _MICRO


def names(scope: model.Scope) -> results.Names:
    """The five names of a scope."""
    return results.Names(scope.tenant, scope.profile, scope.collection, scope.agent, scope.session)


def lane(reader: Reader, part: Part, number: int) -> results.Names:
    """The scope of a log entry or a ref, from its lane."""
    agent, session = reader.lane(part, number)
    return results.Names(part.tenant, part.profile, part.collection, agent, session)


def origin(source: model.Source | None) -> results.Origin | None:
    """A source as given when it came in, or None when none was."""
    return None if source is None else results.Origin(source.uri, source.id)


def hex_of(object_id: bytes | None) -> str | None:
    """An id, or None."""
    return None if object_id is None else object_id.hex()


def fields(of: msgspec.Struct) -> dict[str, Any]:
    """The fields of a struct by name, in order, without those that are not set."""
    found = ((name, getattr(of, name)) for name in of.__struct_fields__)
    return {name: value for name, value in found if value is not msgspec.UNSET}


def flags(state: refs.RefState) -> list[str]:
    """Marks on a ref."""
    return [name for bit, name in _FLAGS if state.flags & bit]


# -- outcomes -----------------------------------------------------------------------------------


def observed(admitted: Admitted) -> results.Observed:
    """The outcome of an admission."""
    receipt = results.Receipt(admitted.receipt.status, list(admitted.receipt.codes))
    return results.Observed(admitted.id.hex(), admitted.status, admitted.ref.hex(), receipt)


def stated(of: statements.Stated) -> results.Observed:
    """The outcome of stating a fact."""
    receipt = results.Receipt(of.standing, list(of.codes))
    return results.Observed(of.id.hex(), of.status, of.ref.hex(), receipt)


# -- hits and entries ---------------------------------------------------------------------------


def hit(of: found.Hit, *, sure: bool = False) -> results.Hit:
    """A hit in its public shape; with its confidence, where it answers a question by itself."""
    obj, state = of.obj, of.state
    told = obj if isinstance(obj, Observation) else None
    more: dict[str, Any] = {"confidence": round(of.confidence, 3)} if sure else {}
    if of.conflict:
        more["conflict"] = [other.hex() for other in of.conflict]
    if of.why is not None:
        more["why"] = {name: round(part, 6) for name, part in of.why.items()}
    return results.Hit(
        id=of.id.hex(),
        ref=of.ref.hex(),
        type=refs.TYPES[state.type],
        kind=obj.kind,
        text=obj.text,
        score=round(of.score, 6),
        status=refs.STATUSES[state.status],
        origin="derived" if told is None else told.origin,
        role="" if told is None else told.role,
        speaker="" if told is None else told.speaker,
        by=of.whose.by,
        mark=of.whose.mark,
        scope=names(of.scope),
        asserted_at=None if told is None else maybe(told.asserted),
        valid_from=maybe(state.valid_from),
        valid_to=maybe(state.valid_to),
        recorded_at=moment(state.created),
        truth=of.truth,
        replaced_by=hex_of(state.replaced_by),
        stale=None if of.stale is None else results.Stale(of.stale.reason, of.stale.current),
        source=None if told is None else origin(told.source),
        cites=[results.Citation(c.id.hex(), origin(c.source), c.quote) for c in of.cites],
        **more,
    )


def answer(question: found.Question, of: found.Answer) -> results.Answer:
    """An answer in its public shape."""
    lens = question.lens
    more = {} if of.understood is None else {"understood": understood(of.understood)}
    return results.Answer(
        query=question.text,
        view=of.view,
        view_reason=of.view_reason,
        as_of=maybe(lens.as_of),
        known_at=maybe(lens.known_at),
        mode=of.mode,
        degraded=of.degraded,
        confidence=round(of.confidence, 3),
        hits=[hit(one, sure=True) for one in of.hits],
        **more,
    )


def context(
    question: found.Question, of: found.Answer, size: Size, made: Block, standing: Standing
) -> results.Context:
    """The context that `remem.hooks.questions.pack` made of an answer."""
    from remem.index.context import cost_of

    used = {entry.ids[0] for entry in made.entries}
    return results.Context(
        query=question.text,
        budget=size.budget,
        unit="tokens" if size.tokens else "characters",
        used=cost_of(made.text, tokens=size.tokens),
        omitted=made.omitted,
        degraded=of.degraded,
        view=of.view,
        view_reason=of.view_reason,
        text=made.text,
        pins=[_said(one.state, one.ref, one.obj, standing) for one in standing.shown],
        due=[
            _said(one.state, one.ref, one.memory, standing)
            for one, entry in zip(standing.loops, standing.due, strict=True)
            if entry in made.entries
        ],
        hits=[hit(one) for one in of.hits if one.id.hex()[:10] in used],
    )


def _said(state: refs.RefState, ref: bytes, obj: Obj | None, standing: Standing) -> results.Said:
    """A pin or a loop with its words."""
    assert state.head is not None and obj is not None
    said = standing.whose[ref]
    return results.Said(state.head.hex(), ref.hex(), obj.text, said.by, said.mark)


def understood(of: Understood) -> results.Understood:
    """What was read from a question about commands, in its public shape."""
    from remem.index.ran import KIND

    since, until = of.since, of.until
    return results.Understood(
        kind=KIND,
        cwd=list(of.ran.folders),
        exit=of.ran.exit or None,
        branch=of.ran.branch or None,
        since=None if since is None or since <= instant.START else moment(since),
        until=None if until is None or until >= instant.END else moment(until),
        words=of.words,
        found=of.found,
    )


def entry(reader: Reader, part: Part, of: refs.Entry) -> results.Entry:
    """A log entry in its public shape."""
    more: dict[str, Any] = {}
    if of.origin is not None:
        more["made_at"] = moment(of.origin.time)
        more["made_status"] = refs.STATUSES[of.origin.status]
    return results.Entry(
        seq=of.seq,
        ref=of.ref.hex(),
        op=refs.OPS[of.op],
        old=hex_of(of.old),
        new=hex_of(of.new),
        status=refs.STATUSES[of.status],
        valid_from=maybe(of.valid_from),
        valid_to=maybe(of.valid_to),
        recorded_at=moment(of.time),
        principal=of.principal,
        reason=of.reason,
        type=refs.TYPES[of.type],
        replaced_by=hex_of(of.replaced_by),
        surface=of.surface,
        scope=lane(reader, part, of.lane),
        **more,
    )


# -- pins, loops, tasks, briefs -----------------------------------------------------------------


def pin(of: pins.Pin, said: Whose) -> results.Pin:
    """A pin in its public shape."""
    return results.Pin(
        id=hex_of(of.state.head),
        ref=of.ref.hex(),
        since=moment(of.since),
        shown=of.obj is not None,
        why=of.why,
        replaced_by=hex_of(of.successor),
        text=None if of.obj is None else of.obj.text,
        collection=of.part.collection,
        by=said.by,
        mark=said.mark,
    )


def loop(of: loops.Loop, note: str, now: int, said: Whose) -> results.Loop:
    """A loop in its public shape, with how it ended."""
    head = of.state.head
    assert head is not None
    return results.Loop(
        id=head.hex(),
        ref=of.ref.hex(),
        text=of.memory.text,
        due=maybe(of.due),
        topic=of.topic or None,
        trigger=of.memory.trigger,
        open=of.open,
        overdue=of.open and of.due is not None and of.due <= now,
        status=refs.STATUSES[of.state.status],
        recorded_at=moment(of.state.created),
        closed_at=None if of.open else maybe(of.state.valid_to),
        note=note or None,
        collection=of.part.collection,
        by=said.by,
        mark=said.mark,
    )


def task(of: tasks.Task, said: Whose) -> results.Task:
    """A state of a task in its public shape."""
    head = of.state.head
    assert head is not None
    return results.Task(
        id=head.hex(),
        ref=of.ref.hex(),
        key=of.key,
        text=of.text,
        truth=of.truth,
        valid_from=moment(of.state.starts),
        valid_to=maybe(of.state.valid_to),
        recorded_at=moment(of.state.created),
        replaced_by=hex_of(of.state.replaced_by),
        collection=of.part.collection,
        by=said.by,
        mark=said.mark,
    )


def brief(of: Brief) -> results.Brief:
    """A brief that waits in its public shape."""
    return results.Brief(
        id=of.ref.hex(),
        text=of.text,
        recorded_at=moment(of.time),
        principal=of.principal,
        promote=[ref.hex() for ref in of.promote],
        noise=[ref.hex() for ref in of.noise],
        done=[ref.hex() for ref in of.done],
        collection=of.part.collection,
    )
