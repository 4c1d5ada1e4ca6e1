"""remem quarantine: what is held back, and why; letting it out or rejecting it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import cases, describe, names
from remem.cli.counts import age
from remem.cli.passphrase import signed
from remem.cli.plain import one_line
from remem.cli.render import table
from remem.hooks import deciding
from remem.hooks.cases import of_held
from remem.objects import instant, oid, quarantine, refs
from remem.objects.errors import UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.objects.quarantine import Held
    from remem.objects.reader import Found, Reader
    from remem.objects.tx import Tx

ACTIONS = ("list", "release", "reject")
COLUMNS = ("id", "age", "by", "why", "text")


def run(
    context: Context, *, action: str, ids: list[str], reason: str | None, all_collections: bool
) -> int:
    """List what is held back, or decide on some of it."""
    if action not in ACTIONS:
        raise UsageError(f"'{action}' is no action", hint="one of " + ", ".join(ACTIONS))
    if action == "list":
        if ids or reason is not None:
            raise UsageError("list takes neither ids nor --reason")
        return _list(context, all_collections)
    if not ids:
        raise UsageError(f"{action} needs an id", hint="'remem quarantine list' shows them")
    word = refs.given_reason(reason)
    store = context.store()
    with names.snapshot(context, all_collections=all_collections) as reader:
        found = [
            deciding.find_held(reader, context.scope(), text, release=action == "release")
            for text in ids
        ]
    actor = signed(context, store, f"{action} {', '.join(oid.short(one.ref) for one in found)}")

    def decide(tx: Tx, one: Found) -> refs.Entry:
        return deciding.settle(tx, one, release=action == "release", reason=word)

    done = store.write(actor, lambda tx: [decide(tx, one) for one in found])
    if context.json:
        with names.snapshot(context, all_collections=all_collections) as reader:
            made = zip(found, done, strict=True)
            context.emit([describe.entry(reader, one.part, entry) for one, entry in made])
        return 0
    for one, entry in zip(found, done, strict=True):
        word = "released" if action == "release" else "rejected"
        context.out(f"{describe.short(one.ref)} {word}, {refs.STATUSES[entry.status]}")
    return 0


def _list(context: Context, all_collections: bool) -> int:
    with names.snapshot(context, all_collections=all_collections) as reader:
        found = quarantine.held(reader)
        if context.json:
            context.emit([of_held(reader, one) for one in found])
        elif found:
            now = instant.now()
            table(context, COLUMNS, [_row(reader, one, now) for one in found])
        else:
            context.note("nothing is held back here")
    return 0


def _excerpt(reader: Reader, one: Held) -> str:
    """The first words of what is held back, so that a person can decide on it."""
    obj = cases.fetch(reader, one.part, one.state.head)
    return "(gone)" if obj is None else one_line(obj.text[: 8 * describe.LINE], describe.LINE)


def _row(reader: Reader, one: Held, now: int) -> tuple[str, ...]:
    status = refs.STATUSES[one.state.status]
    why = ", ".join(one.codes) or "-"
    return (
        describe.short(one.state.head or one.ref),
        age(now - one.since),
        one_line(", ".join(name or "unknown" for name in one.producers)),
        one_line(why if status == "quarantined" else f"{status}: {why}"),
        _excerpt(reader, one),
    )
