"""remem pin, pins, unpin: what stands word for word before every context."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from remem.cli import describe, names
from remem.cli.context import Context
from remem.cli.counts import counted
from remem.cli.given import text_of
from remem.cli.plain import one_line
from remem.cli.render import table
from remem.hooks import shaping
from remem.hooks.naming import LAST
from remem.objects import instant, pins
from remem.objects.views import Eye, Lens

if TYPE_CHECKING:
    from remem.index.whose import Whose
    from remem.objects.pins import Pin

COLUMNS = ("id", "since", "text")
_ID = re.compile(r"[0-9a-fA-F]{7,64}")


def run(context: Context, *, text: list[str]) -> int:
    """Pin a ref that one id names, or a text."""
    if len(text) == 1 and (text[0] == LAST or _ID.fullmatch(text[0])):
        return _pin_ref(context, text[0])
    limit_b = context.limit_b
    words = text_of(text, limit_b)
    actor = context.actor()
    store = context.store(create=True)
    stated, new = store.write(actor, lambda tx: pins.state(tx, actor.scope, words, limit_b=limit_b))
    _say(context, stated.id, stated.ref, new)
    return 0


def _pin_ref(context: Context, name: str) -> int:
    store = context.store()
    with names.snapshot(context) as reader:
        found = names.resolve(context, reader, name)
    new = store.write(context.actor(), lambda tx: pins.pin(tx, found))
    _say(context, found.state.head or found.ref, found.ref, new)
    return 0


def _say(context: Context, object_id: bytes, ref: bytes, new: bool) -> None:
    if context.json:
        context.emit({"id": object_id.hex(), "ref": ref.hex(), "pinned": new})
    else:
        context.out(describe.short(object_id) + ("" if new else " already pinned"))


def unpin(context: Context, *, ids: list[str]) -> int:
    """Take pins out."""
    store = context.store()
    items = names.each(context, ids)
    done = store.write(context.actor(), lambda tx: [pins.unpin(tx, found) for found in items])
    gone = [found.ref for found, was in zip(items, done, strict=True) if was]
    same = len(items) - len(gone)
    if context.json:
        context.emit({"unpinned": [ref.hex() for ref in gone], "unchanged": same})
        return 0
    context.out(f"unpinned {counted(len(gone), 'ref')}")
    if same:
        context.note(f"{same:,} not pinned")
    return 0


def pins_(context: Context, *, all_collections: bool) -> int:
    """List the pins in the order in which they were made."""
    from remem.index import whose

    with names.snapshot(context, all_collections=all_collections) as reader:
        found = pins.every(Eye(Lens(instant.now()), reader))
        told = [(one, whose.shown(reader, one)) for one in found]
    if context.json:
        context.emit([shaping.pin(one, said) for one, said in told])
    elif found:
        rows = [
            (describe.short(p.ref), describe.shown_second(p.since), _line(p, said))
            for p, said in told
        ]
        table(context, COLUMNS, rows)
    else:
        context.note("nothing is pinned here")
    return 0


def _line(one: Pin, said: Whose) -> str:
    """The text of a pin, or why it shows none."""
    if one.obj is not None:
        from remem.index import whose

        return whose.prefix(said) + one_line(one.obj.text, describe.LINE)
    by = "" if one.successor is None else f" by {describe.short(one.successor)}"
    return f"(shows nothing: {one.why}{by})"
