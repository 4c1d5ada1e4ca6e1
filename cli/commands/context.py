"""remem context: a cited block for a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import reading
from remem.cli.context import Context
from remem.cli.hits import hit_value
from remem.index import context as block
from remem.index import pinned
from remem.index.recall import Question
from remem.objects.errors import UsageError

if TYPE_CHECKING:
    from remem.objects.encode import Obj
    from remem.objects.refs import RefState


def run(
    context: Context,
    *,
    query: list[str],
    budget: int | None,
    tokens: int | None,
    no_evidence: bool,
    format: str | None,
    mode: str | None,
    view: str | None,
    as_of: str | None,
    known_at: str | None,
    include: list[str],
    all_collections: bool,
) -> int:
    """Print the block, or nothing and a note when nothing fits."""
    if budget is not None and tokens is not None:
        raise UsageError("give either --budget or --tokens, not both")
    limit = tokens if tokens is not None else budget
    if limit is None:
        limit = context.settings.number("context.budget")
    if limit < 0:
        raise UsageError("a budget cannot be negative")
    text = " ".join(query)
    if not text.strip():
        raise UsageError("the question is empty", hint="remem context 'some words'")
    store = context.store()
    engine, mode = reading.open_engine(context, store, mode=mode, all_collections=all_collections)
    reading.known_scope(context, store, all_collections=all_collections)
    question = Question(
        text,
        reading.lens_of(context, view=view, as_of=as_of, known_at=known_at, include=include),
        limit=block.CANDIDATES,
        mode=mode,
        auto=view is None,
    )
    answer = engine.searcher.ask(question)
    if answer.degraded:
        context.note(f"degraded: {answer.degraded}")
    reading.say_view(context, answer)
    grant = context.grant(all_collections=all_collections)
    standing = pinned.standing(store, grant, question.lens, text)
    fmt = "json" if context.json else format or "markdown"
    shape = "markdown" if format in (None, "json") else format
    made = block.build(
        answer.hits,
        standing=standing,
        budget=limit,
        tokens=tokens is not None,
        fmt=shape,
        evidence=not no_evidence,
    )
    if fmt == "json":
        used = {entry.ids[0] for entry in made.entries}
        context.emit(
            {
                "query": text,
                "budget": limit,
                "unit": "tokens" if tokens is not None else "characters",
                "used": block.cost_of(made.text, tokens=tokens is not None),
                "omitted": made.omitted,
                "degraded": answer.degraded,
                "view": answer.view,
                "view_reason": answer.view_reason,
                "text": made.text,
                "pins": [_said(pin.state, pin.ref, pin.obj) for pin in standing.shown],
                "due": [
                    _said(loop.state, loop.ref, loop.memory)
                    for loop, entry in zip(standing.loops, standing.due, strict=True)
                    if entry in made.entries
                ],
                "hits": [hit_value(h) for h in answer.hits if h.id.hex()[:10] in used],
            }
        )
    elif made.text:
        context.out(made.text.rstrip("\n"))
    if not made.entries:
        if made.omitted:
            context.note(f"nothing fits the budget; {made.omitted} entries were larger")
        return 1
    if made.omitted:
        context.detail(f"{made.omitted} entries did not fit the budget")
    return 0


def _said(state: RefState, ref: bytes, obj: Obj | None) -> dict[str, object]:
    """A pin or a loop as the JSON has it."""
    assert state.head is not None and obj is not None
    return {"id": state.head.hex(), "ref": ref.hex(), "text": obj.text}
