"""remem promote: keep short notes for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import names
from remem.cli.counts import counted
from remem.objects import refs, tiers

if TYPE_CHECKING:
    from remem.cli.context import Context


def run(context: Context, *, ids: list[str], reason: str | None) -> int:
    """Promote all of them, or none."""
    word = refs.given_reason(reason)
    store = context.store()
    items = names.each(context, ids)
    done = store.write(
        context.actor(), lambda tx: [tiers.promote(tx, found, reason=word) for found in items]
    )
    kept = [found.ref for found, new in zip(items, done, strict=True) if new]
    same = len(items) - len(kept)
    if context.json:
        context.emit({"promoted": [ref.hex() for ref in kept], "unchanged": same})
        return 0
    context.out(f"promoted {counted(len(kept), 'note')}")
    if same:
        context.note(f"{same:,} kept for good already")
    return 0
