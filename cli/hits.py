"""Hits as JSON and for people: one place for the shape that every door prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli.plain import one_line, visible
from remem.cli.shapes import source, stamp
from remem.index.recall import QUOTE, Answer, Hit, excerpt
from remem.objects import instant, refs
from remem.objects.model import Observation

if TYPE_CHECKING:
    from remem.index.recall import Question


def hit_value(hit: Hit) -> dict[str, object]:
    """A hit as JSON has it."""
    obj, state = hit.obj, hit.state
    value: dict[str, object] = {
        "id": hit.id.hex(),
        "ref": hit.ref.hex(),
        "type": refs.TYPES[state.type],
        "kind": obj.kind,
        "text": obj.text,
        "score": round(hit.score, 6),
        "status": refs.STATUSES[state.status],
        "origin": obj.origin if isinstance(obj, Observation) else "derived",
        "role": obj.role if isinstance(obj, Observation) else "",
        "speaker": obj.speaker if isinstance(obj, Observation) else "",
        "scope": {
            "tenant": hit.scope.tenant,
            "profile": hit.scope.profile,
            "collection": hit.scope.collection,
            "agent": hit.scope.agent,
            "session": hit.scope.session,
        },
        "asserted_at": stamp(obj.asserted if isinstance(obj, Observation) else None),
        "valid_from": stamp(state.valid_from),
        "valid_to": stamp(state.valid_to),
        "recorded_at": instant.rfc3339(state.created),
        "truth": hit.truth,
        "replaced_by": state.replaced_by.hex() if state.replaced_by else None,
        "stale": None,
        "source": source(obj.source) if isinstance(obj, Observation) else None,
        "cites": [
            {"id": c.id.hex(), "source": source(c.source), "quote": c.quote} for c in hit.cites
        ],
    }
    if hit.conflict:
        value["conflict"] = [other.hex() for other in hit.conflict]
    if hit.why is not None:
        value["why"] = {name: round(part, 6) for name, part in hit.why.items()}
    return value


def answer_value(question: Question, answer: Answer) -> dict[str, object]:
    """An answer as JSON has it."""
    lens = question.lens
    return {
        "query": question.text,
        "view": answer.view,
        "view_reason": answer.view_reason,
        "as_of": stamp(lens.as_of),
        "known_at": stamp(lens.known_at),
        "mode": answer.mode,
        "degraded": answer.degraded,
        "hits": [hit_value(hit) for hit in answer.hits],
    }


def hit_lines(hit: Hit, question: Question, *, full: bool, scored: bool = True) -> list[str]:
    """A hit for people: a line of facts, then its text."""
    obj, state = hit.obj, hit.state
    facts = [hit.id.hex()[:10], *([f"{hit.score:.3f}"] if scored else [])]
    if isinstance(obj, Observation):
        facts += [name for name in (obj.speaker or obj.role,) if name]
        if obj.asserted is not None:
            facts.append(instant.display(obj.asserted, obj.offset))
        if obj.source is not None and (obj.source.uri or obj.source.tool):
            facts.append(obj.source.uri or obj.source.tool)
    else:
        facts.append(obj.kind)
        if state.valid_from is not None:
            facts.append("from " + instant.display(state.valid_from, obj.offset))
        facts.append("cites " + ", ".join(c.id.hex()[:10] for c in hit.cites))
    if hit.truth != "current":
        by = f" by {state.replaced_by.hex()[:10]}" if state.replaced_by is not None else ""
        facts.append(f"[{hit.truth}{', replaced' + by if by else ''}]")
    if hit.conflict:
        facts.append("[conflict with " + ", ".join(c.hex()[:10] for c in hit.conflict) + "]")
    if refs.STATUSES[state.status] not in ("verified", "provisional"):
        facts.append(f"[{refs.STATUSES[state.status]}]")
    text = obj.text if full else excerpt(obj.text, [], QUOTE)
    if not full and hit.cites and isinstance(obj, Observation):
        text = hit.cites[0].quote
    lines = ["  ".join(one_line(fact) for fact in facts)]
    lines += ["    " + line for line in visible(text).split("\n")]
    if hit.why:
        parts = ", ".join(f"{name} {part:.3f}" for name, part in hit.why.items())
        lines.append(f"    why: {parts}")
    return lines
