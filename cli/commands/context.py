"""remem context: a cited block for a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import reading
from remem.hooks import questions
from remem.objects.errors import UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context


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
    size = questions.Size(
        context.settings.number("context.budget") if limit is None else limit,
        tokens=tokens is not None,
        evidence=not no_evidence,
        markdown=format != "text",
    )
    store = context.store()
    question = questions.for_context(
        " ".join(query),
        reading.lens_of(context, view=view, as_of=as_of, known_at=known_at, include=include),
        mode=mode or context.settings.text("recall.mode"),
        auto=view is None,
    )
    questions.check(question)
    engine, _ = reading.open_engine(
        context, store, mode=question.mode, all_collections=all_collections
    )
    reading.known_scope(context, store, all_collections=all_collections)
    answer = engine.searcher.ask(question)
    if answer.degraded:
        context.note(f"degraded: {answer.degraded}")
    reading.say_view(context, answer)
    grant = context.grant(all_collections=all_collections)
    made, standing = questions.pack(store, grant, question, answer, size)
    if context.json or format == "json":
        from remem.hooks import shaping

        context.emit(shaping.context(question, answer, size, made, standing))
    elif made.text:
        context.out(made.text.rstrip("\n"))
    if not made.entries:
        if made.omitted:
            context.note(f"nothing fits the budget; {made.omitted} entries were larger")
        return 1
    if made.omitted:
        context.detail(f"{made.omitted} entries did not fit the budget")
    return 0
