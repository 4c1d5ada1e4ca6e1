"""remem hold: keep things from being forgotten or purged, until they are released."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import describe, names
from remem.cli.confirm import owner_only
from remem.cli.counts import counted
from remem.cli.plain import one_line
from remem.cli.render import table
from remem.objects import holds, refs, select
from remem.objects.errors import NotFound, UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.objects.forget_plan import Item

ACTIONS = ("add", "list", "release")
COLUMNS = ("id", "held", "principal", "reason", "text")


def run(
    context: Context,
    *,
    action: str,
    ids: list[str],
    query: str | None,
    reason: str | None,
    all_collections: bool,
) -> int:
    """Hold, list or release."""
    if action not in ACTIONS:
        raise UsageError(f"'{action}' is no action", hint="one of " + ", ".join(ACTIONS))
    owner_only(context, "hold")
    if action == "list":
        if ids or query is not None:
            raise UsageError("list takes neither ids nor --query")
        return _list(context, all_collections)
    if bool(ids) == (query is not None):
        raise UsageError(f"{action} needs ids, or --query")
    word = refs.given_reason(reason)
    store = context.store()
    with names.snapshot(context, all_collections=all_collections) as reader:
        if query is not None:
            items: list[Item] = select.matching(reader, query)
        else:
            named = [names.resolve(context, reader, text) for text in ids]
            items = list(dict.fromkeys((found.part, found.ref) for found in named))
    if not items:
        raise NotFound("nothing matches")
    change = holds.hold if action == "add" else holds.release
    done = store.write(
        context.actor(), lambda tx: [change(tx, part, ref, reason=word) for part, ref in items]
    )
    _say(context, action, items, done)
    return 0


def _say(context: Context, action: str, items: list[Item], done: list[bool]) -> None:
    changed = [ref for (_, ref), new in zip(items, done, strict=True) if new]
    same = len(items) - len(changed)
    name = "held" if action == "add" else "released"
    if context.json:
        context.emit({name: [ref.hex() for ref in changed], "unchanged": same})
        return
    context.out(f"{name} {counted(len(changed), 'ref')}")
    if same:
        context.note(f"{same:,} {'held already' if action == 'add' else 'not held'}")


def _list(context: Context, all_collections: bool) -> int:
    rows: list[tuple[str, ...]] = []
    values: list[Json] = []
    with names.snapshot(context, all_collections=all_collections) as reader:
        for part, ref, state, entry in holds.held(reader):
            values.append(
                {
                    "id": ref.hex(),
                    "held_at": describe.stamp(entry.time),
                    "principal": entry.principal,
                    "reason": entry.reason,
                    "collection": part.collection,
                }
            )
            rows.append(
                (
                    describe.short(ref),
                    describe.shown_second(entry.time),
                    one_line(entry.principal),
                    one_line(entry.reason) or "-",
                    describe.text_line(reader, part, ref, state.head),
                )
            )
    if context.json:
        context.emit(values)
    elif rows:
        table(context, COLUMNS, rows)
    else:
        context.note("nothing is held here")
    return 0
