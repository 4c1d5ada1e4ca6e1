"""remem review: decide on what waits, by hand; without a terminal, list it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import cases, describe, reading
from remem.cli.counts import age, counted
from remem.cli.names import snapshot
from remem.cli.plain import one_line
from remem.cli.render import table
from remem.cli.screen import can_draw
from remem.objects import drafts, instant
from remem.objects.errors import RememError, ReviewRefused

if TYPE_CHECKING:
    from remem.cli.cases import Case
    from remem.cli.context import Context
    from remem.index.engine import Engine
    from remem.objects.drafts import Item
    from remem.objects.store import Store

COLUMNS = ("id", "op", "age", "by", "what", "text")


def run(context: Context, *, all_collections: bool) -> int:
    """Review, or list what waits."""
    by_hand = can_draw() and not context.json
    if by_hand:
        context.store()  # opened for writing before the snapshot
    with snapshot(context, all_collections=all_collections) as reader:
        items = drafts.waiting(reader)
        if not by_hand:
            found = [cases.of_item(reader, item) for item in items]
            return _list(context, [case for case in found if case is not None])
    if not items:
        context.note("nothing waits here")
        return 0
    return _by_hand(context, items, all_collections)


def _list(context: Context, waiting: list[Case]) -> int:
    now = instant.now()
    if context.json:
        context.emit(
            {
                "waiting": len(waiting),
                "oldest_at": describe.stamp(waiting[0].since if waiting else None),
                "items": [cases.value(case) for case in waiting],
            }
        )
    elif waiting:
        table(context, COLUMNS, [_row(case, now) for case in waiting])
    else:
        context.note("nothing waits here")
    return ReviewRefused.exit_code if waiting else 0


def _row(case: Case, now: int) -> tuple[str, ...]:
    return (
        describe.short(case.ref),
        "-" if case.op is None else str(case.op.number),
        age(now - case.since),
        one_line(cases.by(case)),
        one_line(cases.why(case)),
        one_line(cases.words_of(case), describe.LINE),
    )


def _by_hand(context: Context, items: list[Item], all_collections: bool) -> int:
    from remem.cli.reviewing import Session

    store = context.store()
    engine = _engine(context, store, all_collections)
    session = Session(context, store, items, engine, all_collections=all_collections)
    session.run()
    with snapshot(context, all_collections=all_collections) as reader:
        left = len(drafts.waiting(reader))
    words = [f"{session.decided:,} decided", f"{session.skipped:,} skipped"]
    if session.stale:
        words.append(f"{session.stale:,} stale")
    words.append(f"{counted(left, 'item')} still {'waits' if left == 1 else 'wait'}")
    context.out(", ".join(words))
    return 0


def _engine(context: Context, store: Store, all_collections: bool) -> Engine | None:
    """What finds similar memories; a review does without it where it cannot be had."""
    try:
        return reading.open_engine(context, store, mode=None, all_collections=all_collections)[0]
    except RememError as error:
        context.detail(f"no similar memories are shown: {error}")
        return None
