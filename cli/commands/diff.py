"""remem diff: what changed between two revisions, or between two instants of record time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.cli import describe, names, times
from remem.cli.plain import one_line, visible
from remem.objects import instant, refs
from remem.objects.errors import NotFound, UsageError
from remem.objects.reader import Found
from remem.objects.views import CURRENT, WITHHELD, Eye, Lens

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.objects.reader import Part, Reader

LINES = 3  # of context around a change


class Side(msgspec.Struct, frozen=True):
    """One side of a comparison: object id, text, when it was recorded, what its ref is now."""

    id: bytes
    text: str
    time: int
    status: str

    @property
    def label(self) -> str:
        """How the side is named above the lines."""
        held = f" [{self.status}]" if self.status in WITHHELD else ""
        return f"{describe.short(self.id)}\t{describe.shown_second(self.time)}{held}"


def run(
    context: Context,
    *,
    a: str | None,
    b: str | None,
    known_at: str | None,
    all_collections: bool,
) -> int:
    """Compare two texts, or what was believed at two instants."""
    with names.snapshot(context, all_collections=all_collections) as reader:
        if known_at is not None:
            if b is not None:
                raise UsageError("give either two revisions or two instants, not both")
            return _instants(context, reader, a, known_at)
        if a is None:
            raise UsageError("nothing to compare", hint="remem diff ID, or --known-at K1..K2")
        old, new = _sides(context, reader, a, b)
    lines = unified(old, new)
    if context.json:
        context.emit({"a": _json(old), "b": _json(new), "diff": lines})
    else:
        for line in lines:
            context.out(visible(line))
        if not lines:
            context.note("they say the same")
    return 0 if lines else NotFound.exit_code


def unified(old: Side | None, new: Side | None) -> list[str]:
    """The differing lines in unified form, without line ends; none when they say the same."""
    from difflib import unified_diff

    before = [] if old is None else old.text.split("\n")
    after = [] if new is None else new.text.split("\n")
    one, other = ("nothing" if side is None else side.label for side in (old, new))
    return list(unified_diff(before, after, one, other, n=LINES, lineterm=""))


def _sides(context: Context, reader: Reader, a: str, b: str | None) -> tuple[Side, Side]:
    first = names.resolve(context, reader, a)
    if b is not None:
        second = names.resolve(context, reader, b)
        # The id of a ref is that of its first revision too, which is meant beside another one.
        same = first.ref == second.ref and first.revision != second.revision
        old, new = (
            _side(reader, one, (one.revision or one.ref) if same else None)
            for one in (first, second)
        )
        return old, new
    made = describe.revisions(reader, first.part, first.state)
    heads = [e.new for e in made if e.new is not None]
    if first.revision is not None and first.revision != first.state.head:
        return _side(reader, first, first.revision), _side(reader, first, first.state.head)
    if len(heads) > 1:
        return _side(reader, first, heads[-2]), _side(reader, first, heads[-1])
    other = _beside(reader, first)
    if other is None:
        raise NotFound(
            f"'{describe.short(first.ref)}' has one revision and replaced nothing",
            hint="name another one to compare it with",
        )
    sides = (_side(reader, first, None), _side(reader, other, None))
    return sides if first.state.replaced_by == other.ref else (sides[1], sides[0])


def _beside(reader: Reader, found: Found) -> Found | None:
    """What took the place of a ref, or else what it took the place of."""
    part = found.part
    ref = found.state.replaced_by
    if ref is None:
        prefix = part.prefix + found.ref
        row = next(reader.txn.scan_prefix("replaces", prefix), None)
        ref = None if row is None else row[0][len(prefix) :]
    state = None if ref is None else reader.state(part, ref)
    return None if ref is None or state is None else Found(part, ref, state, None)


def _side(reader: Reader, found: Found, revision: bytes | None) -> Side:
    wanted = revision or found.revision or found.state.head
    obj = describe.fetch(reader, found.part, wanted)
    if wanted is None or obj is None:
        raise NotFound(f"the bytes of '{describe.short(wanted or found.ref)}' are gone")
    entries = reader.entries(found.part, found.state)
    brought = [e.time for e in entries if e.new == wanted]
    status = refs.STATUSES[found.state.status]
    return Side(wanted, obj.text, min(brought) if brought else found.state.created, status)


def _json(side: Side | None) -> Json | None:
    if side is None:
        return None
    return {
        "id": side.id.hex(),
        "text": side.text,
        "recorded_at": describe.stamp(side.time),
        "status": side.status,
    }


# -- two instants -------------------------------------------------------------------------------


def _instants(context: Context, reader: Reader, name: str | None, span: str) -> int:
    """Print what was believed at the second instant and not at the first, and the reverse."""
    first, dots, second = span.partition("..")
    if not dots or not first.strip():
        raise UsageError(f"'{span[:80]}' is no pair of instants", hint="write K1..K2")
    start = times.as_of(context, first.strip())
    # To the end is to the last record time, which a clock that was set back has not reached.
    last = max(instant.now(), reader.clock)
    end = times.as_of(context, second.strip()) if second.strip() else last
    assert start is not None and end is not None
    if end <= start:
        raise UsageError("the second instant is not after the first")
    found = None if name is None else names.resolve(context, reader, name)
    rows: list[Json] = []
    shown: list[str] = []
    for part in reader.parts if found is None else (found.part,):
        eyes = [Eye(Lens(instant.now(), known_at=at), reader) for at in (start, end)]
        for ref in _touched(reader, part, start, end) if found is None else (found.ref,):
            old, new = (_believed(reader, eye, part, ref) for eye in eyes)
            if (old and old.id) == (new and new.id):
                continue
            change = "ended" if new is None else "new" if old is None else "revised"
            state = reader.state(part, ref)
            by = None if state is None or new is not None else state.replaced_by
            rows.append(
                {
                    "ref": ref.hex(),
                    "change": change,
                    "old": _json(old),
                    "new": _json(new),
                    "replaced_by": describe.full(by),
                }
            )
            shown += _changed_lines(ref, old, new, by)
    if context.json:
        context.emit({"from": describe.stamp(start), "to": describe.stamp(end), "changes": rows})
    else:
        for line in shown:
            context.out(line)
    if not rows:
        context.note("nothing changed in between")
    return 0 if rows else NotFound.exit_code


def _changed_lines(ref: bytes, old: Side | None, new: Side | None, by: bytes | None) -> list[str]:
    lines = []
    if old is not None:
        gone = f"  (replaced by {describe.short(by)})" if by is not None else ""
        lines.append(f"-{describe.short(ref)}  {one_line(old.text, describe.LINE)}{gone}")
    if new is not None:
        lines.append(f"+{describe.short(ref)}  {one_line(new.text, describe.LINE)}")
    return lines


def _touched(reader: Reader, part: Part, start: int, end: int) -> list[bytes]:
    """Refs with an entry recorded after start and until end, oldest first."""
    found: dict[bytes, None] = {}
    for entry in reader.log(part, reverse=True):
        if entry.time <= start:
            break
        if entry.time <= end:
            found.setdefault(entry.ref)
    return list(reversed(found))


def _believed(reader: Reader, eye: Eye, part: Part, ref: bytes) -> Side | None:
    """What a ref said at an instant, when it was held to be true then and may be shown now."""
    sight = eye.of(part, ref)
    if sight is None or sight.held is None or sight.truth != CURRENT:
        return None
    head = sight.held.head
    if head is None or eye.see(part, ref, head) is None:
        return None
    obj = describe.fetch(reader, part, head)
    if obj is None:
        return None
    return Side(head, obj.text, sight.held.created, refs.STATUSES[sight.held.status])
