"""Hits as JSON and for people: one place for the shape that every door prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli.plain import one_line, visible
from remem.index.ran import KIND, exit_of, folder_of
from remem.index.recall import QUOTE, Answer, Hit, excerpt
from remem.index.whose import prefix
from remem.objects import instant, refs
from remem.objects.model import Observation
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from remem.hooks import results
    from remem.index.recall import Question


def hit_value(hit: Hit) -> results.Hit:
    """A hit as JSON has it."""
    from remem.hooks import shaping

    return shaping.hit(hit)


def answer_value(question: Question, answer: Answer) -> results.Answer:
    """An answer as JSON has it."""
    from remem.hooks import shaping

    return shaping.answer(question, answer)


def hit_lines(hit: Hit, question: Question, *, full: bool, scored: bool = True) -> list[str]:
    """A hit for people: a line of facts, then its text."""
    obj, state = hit.obj, hit.state
    facts = [hit.id.hex()[:10], *([f"{hit.score:.3f}"] if scored else [])]
    if isinstance(obj, Observation):
        facts += [name for name in (prefix(hit.whose, obj).removesuffix(": "),) if name]
        if obj.asserted is not None:
            facts.append(instant.display(obj.asserted, obj.offset))
        if obj.kind == KIND:
            code = exit_of(obj)
            facts += [] if code is None else [f"exit {code}"]
            facts += [folder for folder in (folder_of(obj),) if folder]
        if obj.source is not None and (obj.source.uri or obj.source.tool):
            facts.append(obj.source.uri or obj.source.tool)
    else:
        facts += [name for name in (prefix(hit.whose).removesuffix(": "),) if name]
        facts.append(obj.kind)
        if state.valid_from is not None:
            facts.append("from " + instant.display(state.valid_from, obj.offset))
        facts.append("cites " + ", ".join(c.id.hex()[:10] for c in hit.cites))
    if hit.truth != "current":
        by = f" by {state.replaced_by.hex()[:10]}" if state.replaced_by is not None else ""
        facts.append(f"[{hit.truth}{', replaced' + by if by else ''}]")
    if hit.stale is not None:
        facts.append("[STALE]")
    if hit.conflict:
        facts.append("[conflict with " + ", ".join(c.hex()[:10] for c in hit.conflict) + "]")
    status = refs.STATUSES[state.status]
    if status in WITHHELD or (status not in ("verified", "provisional") and not hit.whose.sources):
        facts.append(f"[{status}]")
    text = obj.text if full else excerpt(obj.text, [], QUOTE)
    if not full and hit.cites and isinstance(obj, Observation):
        text = hit.cites[0].quote
    lines = ["  ".join(one_line(fact) for fact in facts)]
    lines += ["    " + line for line in visible(text).split("\n")]
    if hit.stale is not None:
        now = f"; now: {one_line(hit.stale.current)}" if hit.stale.current else ""
        lines.append(f"    a source was {hit.stale.reason}{now}")
    if hit.why:
        parts = ", ".join(f"{name} {part:.3f}" for name, part in hit.why.items())
        lines.append(f"    why: {parts}; confidence {hit.confidence:.2f}")
    return lines
