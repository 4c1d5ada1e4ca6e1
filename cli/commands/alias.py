"""remem alias: other names of things."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import names
from remem.cli.plain import one_line
from remem.objects import aliases
from remem.objects.errors import UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context

ACTIONS = ("list", "add", "rm")


def run(context: Context, *, action: str, name: str | None, canonical: str | None) -> int:
    """List, add or remove."""
    given = [word for word in (name, canonical) if word is not None]
    wanted = {"list": 0, "add": 2, "rm": 1}
    if action not in wanted:
        raise UsageError(f"'{action}' is no action of alias", hint="one of " + ", ".join(ACTIONS))
    if len(given) != wanted[action]:
        form = {"list": "", "add": " NAME CANONICAL", "rm": " NAME"}[action]
        raise UsageError(f"write 'remem alias {action}{form}'")
    if action == "list":
        return _list(context)
    store = context.store(create=action == "add")
    actor = context.actor()
    if action == "add":
        done = store.write(
            actor, lambda tx: aliases.add(tx, tx.part(actor.scope), given[0], given[1])
        )
        if context.json:
            context.emit({"name": given[0], "canonical": given[1], "status": done})
        elif done == "known":
            context.note(f"'{given[0]}' stands for '{given[1]}' already")
        return 0
    store.write(actor, lambda tx: aliases.remove(tx, tx.part(actor.scope), given[0]))
    if context.json:
        context.emit({"name": given[0], "status": "removed"})
    return 0


def _list(context: Context) -> int:
    with names.snapshot(context) as reader:
        rows = [row for part in reader.parts for row in aliases.all_of(reader, part)]
    if context.json:
        context.emit([{"name": name, "canonical": stands} for name, stands in rows])
    else:
        for name, stands in rows:
            context.out(f"{one_line(name)}  {one_line(stands)}")
    return 0
