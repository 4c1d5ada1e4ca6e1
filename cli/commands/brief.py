"""remem brief: word for the next consolidation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import describe, names
from remem.cli.context import Context
from remem.cli.given import text_of
from remem.cli.plain import one_line
from remem.cli.render import table
from remem.hooks import shaping
from remem.objects import briefs
from remem.objects.errors import ScopeRefused

if TYPE_CHECKING:
    from remem.objects.briefs import Brief
    from remem.objects.reader import Found

COLUMNS = ("id", "recorded", "hints", "text")


def run(
    context: Context,
    *,
    text: list[str],
    promote: list[str],
    noise: list[str],
    done: list[str],
) -> int:
    """Leave a brief, or list what waits."""
    if not (text or promote or noise or done):
        return _list(context)
    limit_b = context.limit_b
    words = text_of(text, limit_b)
    actor = context.actor()
    hinted = bool(promote or noise or done)
    store = context.store(create=not hinted)
    named: list[list[Found]] = [[], [], []]
    if hinted:
        with names.snapshot(context, all_collections=True) as reader:
            named = [
                [names.resolve(context, reader, text) for text in group]
                for group in (promote, noise, done)
            ]
    for found in (one for group in named for one in group):
        if found.part.collection != actor.scope.collection:
            raise ScopeRefused(
                f"'{describe.short(found.ref)}' lies in another scope",
                hint=f"leave the brief there: --collection '{found.part.collection}'",
            )
    hints = [[found.ref for found in group] for group in named]
    result = store.write(
        actor,
        lambda tx: briefs.add(
            tx,
            actor.scope,
            words,
            promote=hints[0],
            noise=hints[1],
            done=hints[2],
            limit_b=limit_b,
        ),
    )
    if context.json:
        context.emit(
            {
                "id": result.id.hex(),
                "ref": result.ref.hex(),
                "status": result.status,
                **{
                    name: [ref.hex() for ref in group]
                    for name, group in zip(("promote", "noise", "done"), hints, strict=True)
                },
            }
        )
    else:
        known = " already known" if result.status == "known" else ""
        context.out(describe.short(result.id) + known)
    return 0


def _list(context: Context) -> int:
    with names.snapshot(context) as reader:
        found = briefs.waiting(reader)
    if context.json:
        context.emit([shaping.brief(brief) for brief in found])
    elif found:
        table(context, COLUMNS, [_row(brief) for brief in found])
    else:
        context.note("no brief waits here")
    return 0


def _row(brief: Brief) -> tuple[str, str, str, str]:
    hints = [
        f"{word} {len(group):,}"
        for word, group in (
            ("promote", brief.promote),
            ("noise", brief.noise),
            ("done", brief.done),
        )
        if group
    ]
    return (
        describe.short(brief.ref),
        describe.shown_second(brief.time),
        ", ".join(hints) or "-",
        one_line(brief.text, describe.LINE),
    )
