"""remem tombstones: what was forgotten; letting values come back; taking a forgetting back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import describe, names
from remem.cli.confirm import owner_only
from remem.cli.counts import counted
from remem.cli.passphrase import signed
from remem.cli.plain import one_line
from remem.cli.render import table
from remem.objects import forget, oid, refs, tombs
from remem.objects.errors import NotFound, UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.objects.reader import Found, Part, Reader

ACTIONS = ("list", "lift", "restore")
COLUMNS = ("id", "forgotten", "principal", "reason", "type", "state")


def run(context: Context, *, action: str | None, ids: list[str], all_collections: bool) -> int:
    """List the tombstones of this scope, or change some."""
    action = action or "list"
    if action not in ACTIONS:
        raise UsageError(f"'{action}' is no action", hint="one of " + ", ".join(ACTIONS))
    owner_only(context, "see what was forgotten")
    if action == "list":
        if ids:
            raise UsageError("list takes no ids")
        return _list(context, all_collections)
    if not ids:
        raise UsageError(f"{action} needs an id", hint="'remem tombstones' shows them")
    store = context.store()
    with names.snapshot(context, all_collections=all_collections) as reader:
        found = [_buried(context, reader, text) for text in ids]
    actor = signed(context, store, f"{action} {', '.join(oid.short(f.ref) for f in found)}")
    if action == "lift":
        blocking = store.write(
            actor, lambda tx: {f.ref: tombs.lift(tx, f.part, f.ref) for f in found}
        )
        return _say_lifted(context, blocking)
    back = store.write(actor, lambda tx: [forget.restore(tx, f.part, f.ref) for f in found])
    return _say_restored(context, [ref for refs_ in back for ref in refs_])


def _buried(context: Context, reader: Reader, text: str) -> Found:
    found = names.resolve(context, reader, text)
    if refs.STATUSES[found.state.status] != "erased":
        raise NotFound(f"'{oid.short(found.ref)}' was not forgotten")
    return found


def _list(context: Context, all_collections: bool) -> int:
    rows: list[tuple[str, ...]] = []
    values: list[Json] = []
    with names.snapshot(context, all_collections=all_collections) as reader:
        for part in reader.parts:
            for ref, tomb in sorted(tombs.all_of(reader, part), key=lambda item: item[1].time):
                values.append(_value(reader, part, ref, tomb))
                rows.append(_row(reader, part, ref, tomb))
    if context.json:
        context.emit(values)
    elif rows:
        table(context, COLUMNS, rows)
    else:
        context.note("nothing was forgotten here")
    return 0


def _type(reader: Reader, part: Part, ref: bytes) -> str:
    state = reader.state(part, ref)
    return "" if state is None else refs.TYPES[state.type]


def _value(reader: Reader, part: Part, ref: bytes, tomb: tombs.Tomb) -> Json:
    state = reader.state(part, ref)
    return {
        "id": ref.hex(),
        "type": _type(reader, part, ref),
        "forgotten_at": describe.stamp(tomb.time),
        "principal": tomb.principal,
        "reason": tomb.reason,
        "blocks": bool(tomb.values),
        "purged_at": describe.stamp(tomb.purged),
        "held": state is not None and bool(state.flags & refs.HELD),
        "collection": part.collection,
    }


def _row(reader: Reader, part: Part, ref: bytes, tomb: tombs.Tomb) -> tuple[str, ...]:
    state = reader.state(part, ref)
    words = ["waits for a purge" if tomb.purged is None else "purged"]
    if state is not None and state.flags & refs.HELD:
        words.append("held")
    if not tomb.values:
        words.append("may come back")
    return (
        describe.short(ref),
        describe.shown_second(tomb.time),
        one_line(tomb.principal),
        one_line(tomb.reason) or "-",
        _type(reader, part, ref),
        ", ".join(words),
    )


def _say_lifted(context: Context, blocking: dict[bytes, list[bytes]]) -> int:
    if context.json:
        context.emit(
            [
                {"id": ref.hex(), "still_blocked_by": [other.hex() for other in others]}
                for ref, others in blocking.items()
            ]
        )
        return 0
    for ref, others in blocking.items():
        context.out(f"{describe.short(ref)} lifted")
        if others:
            shown = ", ".join(describe.short(other) for other in others[:5])
            more = f" and {len(others) - 5:,} more" if len(others) > 5 else ""
            context.note(f"the same value is still blocked by {shown}{more}")
    return 0


def _say_restored(context: Context, back: list[bytes]) -> int:
    if context.json:
        context.emit([ref.hex() for ref in back])
        return 0
    for ref in back:
        context.out(f"{describe.short(ref)} is there again")
    context.detail(f"restored {counted(len(back), 'ref')}")
    return 0
