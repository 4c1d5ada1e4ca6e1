"""remem fact: a stated triple."""

from __future__ import annotations

from remem.cli import times
from remem.cli.context import Context
from remem.cli.opening import options
from remem.hooks import shaping, writing
from remem.objects import refs
from remem.objects.errors import UsageError
from remem.objects.receipts import Receipt


def run(
    context: Context,
    *,
    subject: str,
    predicate: str,
    object: str,
    start: str | None,
    end: str | None,
    text: str | None,
    kind: str | None,
    source_obs: str | None,
    multi: bool,
    single: bool,
    reason: str | None,
) -> int:
    """State that something holds; what held before is replaced, at the right place in time."""
    if multi and single:
        raise UsageError("give either --single or --multi, not both")
    starts, offset = (None, None) if start is None else times.when(context, start)
    ends = None if end is None else times.when(context, end)[0]
    if starts is not None and ends is not None and ends <= starts:
        raise UsageError("--to is not after --from")
    store = context.store(create=source_obs is None)
    stated = writing.state(
        store,
        context.actor(),
        context.grant(),
        (subject, predicate, object),
        text=text or "",
        kind=kind or "fact",
        starts=starts,
        ends=ends,
        offset=offset,
        single=True if single else False if multi else None,
        evidence=source_obs,
        reason=refs.given_reason(reason),
        options=options(context),
    )
    if stated.codes:
        from remem.cli.admission import note

        note(context, Receipt(stated.standing, stated.codes))
    if context.json:
        context.emit(shaping.stated(stated))
    else:
        context.out(stated.id.hex()[:10] + (" already known" if stated.status == "known" else ""))
    return 0
