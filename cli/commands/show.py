"""remem show: one object with its head, status, times, scope and lineage.

An id of a ref shows its head, an id of a later revision shows that revision.  With ``--json`` one
ID gives an object, several give a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import describe
from remem.cli.names import content, snapshot
from remem.cli.plain import one_line, visible
from remem.cli.reading import lens_of
from remem.hooks import looking
from remem.objects import refs
from remem.objects.errors import NotFound, UsageError
from remem.objects.model import Memory, Observation
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.objects.reader import Reader

INDENT = "    "


def run(
    context: Context,
    *,
    ids: list[str],
    rev: int | None,
    raw: bool,
    as_of: str | None,
    known_at: str | None,
    all_collections: bool,
) -> int:
    """Find every ID first, then print them in the order given."""
    if raw and context.json:
        raise UsageError("--raw prints bytes; it has no --json")
    if rev is not None and (as_of or known_at):
        raise UsageError("give either --rev or a time, not both")
    lens = lens_of(context, view="history", as_of=as_of, known_at=known_at)
    with snapshot(context, all_collections=all_collections) as reader:
        found = [looking.choose(reader, content(context, reader, text), rev, lens) for text in ids]
        if raw:
            for one in found:
                if one.obj is None:
                    raise NotFound(f"the bytes of '{describe.short(one.id)}' are gone")
                context.stdout.write(describe.raw(one.obj))
        elif context.json:
            values = [looking.shown(reader, one) for one in found]
            context.emit(values[0] if len(ids) == 1 else values)
        else:
            for number, one in enumerate(found):
                if number:
                    context.out("")
                _print(context, reader, one)
    return 0


def _print(context: Context, reader: Reader, one: looking.Seen) -> None:
    state = one.state
    obj = one.obj
    offset = None if obj is None else obj.offset
    what = refs.TYPES[state.type] if obj is None else describe.kind_of(obj)
    truth = looking.truth(reader, one)
    marks = ", ".join([refs.STATUSES[state.status], truth, *describe.flags(state)])
    context.out(f"{what} {describe.short(one.id)} ({marks})")

    def line(name: str, text: str) -> None:
        if text:
            context.out(f"{name + ':':<11}{text}")

    if one.id != state.head or one.ref != state.head:
        head = "none" if state.head is None else describe.short(state.head)
        line("ref", f"{describe.short(one.ref)}, head {head}")
    if isinstance(obj, Observation):
        said = "unknown" if obj.asserted is None else describe.shown(obj.asserted, offset)
        line("asserted", said)
    line("valid", _valid(state, offset))
    line("recorded", describe.shown(state.created))
    if state.replaced_by is not None:
        line("replaced", f"by {describe.short(state.replaced_by)}")
    agent, session = reader.lane(one.part, state.lane)
    names = (one.part.tenant, one.part.profile, one.part.collection, agent, session)
    line("scope", ", ".join(one_line(name) for name in names))
    if isinstance(obj, Observation):
        line("origin", obj.origin)
        line("said by", ", ".join(one_line(v) for v in (obj.speaker, obj.role) if v))
        line("source", describe.source_line(obj.source))
        line("corrects", "" if obj.corrects is None else describe.short(obj.corrects))
    elif isinstance(obj, Memory):
        line("triple", "" if obj.triple is None else " | ".join(one_line(t) for t in obj.triple))
        line("made by", f"{one_line(obj.deriver.name)} {obj.deriver.version}")
    if obj is not None:
        given = describe.receipt(reader, one.part, one.id, obj)
        if given is not None:
            line("receipt", ", ".join([given.status, *given.codes]))
    if len(one.revisions) > 1:
        made = describe.shown(one.revisions[one.number - 1].time)
        line("revision", f"{one.number} of {len(one.revisions)}, recorded {made}")
    if isinstance(obj, Memory):
        for cite in describe.cites(reader, one.part, one.id, obj):
            words = one_line(cite.quote) if cite.quote else "(gone)"
            line("cites", f"{cite.id[:10]} {words}")
    for ref, memory, _ in looking.drawn(reader, one.part, one.id):
        text = describe.text_line(reader, one.part, ref, memory.head)
        line("cited by", f"{describe.short(ref)} {text}")
    context.out("")
    if obj is None:
        held = refs.STATUSES[state.status] in WITHHELD
        context.out(f"{INDENT}({'held back' if held else 'its bytes are gone'})")
        return
    for row in visible(obj.text).split("\n"):
        context.out(f"{INDENT}{row}".rstrip())


def _valid(state: refs.RefState, offset: int | None) -> str:
    """From when to when it holds, as stated."""
    begins = "unknown" if state.valid_from is None else describe.shown(state.valid_from, offset)
    if state.valid_to is None:
        return f"from {begins}"
    return f"from {begins} to {describe.shown(state.valid_to, offset)}"
