"""remem show: one object with its head, status, times, scope and lineage.

An id of a ref shows its head, an id of a later revision shows that revision.  With ``--json`` one
ID gives an object, several give a list.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from remem.cli import describe
from remem.cli.names import living, snapshot
from remem.cli.plain import one_line, visible
from remem.cli.reading import lens_of
from remem.objects import refs
from remem.objects.errors import NotFound, UsageError
from remem.objects.model import Memory, Observation
from remem.objects.views import Eye, Lens

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.objects.encode import Obj
    from remem.objects.reader import Found, Part, Reader

INDENT = "    "


class Seen(msgspec.Struct):
    """What is shown: one revision of a ref.

    Attributes:
        number: its number among the revisions, from 1.
        obj: the object, or None when its bytes are gone or were forgotten.
        lens: the times that are asked about.
    """

    part: Part
    ref: bytes
    state: refs.RefState
    revisions: list[refs.Entry]
    number: int
    id: bytes
    obj: Obj | None
    lens: Lens


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
        found = [_choose(reader, living(context, reader, text), rev, lens) for text in ids]
        if raw:
            for one in found:
                if one.obj is None:
                    raise NotFound(f"the bytes of '{describe.short(one.id)}' are gone")
                sys.stdout.buffer.write(describe.raw(one.obj))
        elif context.json:
            values = [_value(reader, one) for one in found]
            context.emit(values[0] if len(ids) == 1 else values)
        else:
            for number, one in enumerate(found):
                if number:
                    context.out("")
                _print(context, reader, one)
    return 0


def _choose(reader: Reader, found: Found, rev: int | None, lens: Lens) -> Seen:
    """The revision that is meant: by its number, by its own id, else the head."""
    made = describe.revisions(reader, found.part, found.state)
    if lens.as_of is not None or lens.known_at is not None:
        return _then(reader, found, lens, made)
    number = len(made)
    if rev is not None:
        if not 1 <= rev <= len(made):
            raise NotFound(
                f"'{describe.short(found.ref)}' has no revision {rev}",
                hint=f"it has {len(made)}; 'remem log' of it shows them",
            )
        number = rev
    elif found.revision is not None:
        number = max(n for n, e in enumerate(made, 1) if e.new == found.revision)
    object_id = made[number - 1].new if made else found.ref
    assert object_id is not None
    obj = describe.fetch(reader, found.part, object_id)
    return Seen(found.part, found.ref, found.state, made, number, object_id, obj, lens)


def _then(reader: Reader, found: Found, lens: Lens, made: list[refs.Entry]) -> Seen:
    """The revision that held then, with the state as it was believed."""
    sight = Eye(lens, reader).of(found.part, found.ref)
    state = None if sight is None else sight.held
    if state is None or state.head is None:
        raise NotFound(f"'{describe.short(found.ref)}' was not known, or did not hold then")
    known = [e for e in made if lens.known_at is None or e.time <= lens.known_at]
    number = max(n for n, e in enumerate(known, 1) if e.new == state.head)
    obj = describe.fetch(reader, found.part, state.head)
    return Seen(found.part, found.ref, state, known, number, state.head, obj, lens)


def _truth(reader: Reader, one: Seen) -> str:
    """Whether it holds, by its ref and by what was drawn from it."""
    seen = Eye(one.lens, reader).see(one.part, one.ref, one.id)
    return describe.truth(one.state) if seen is None else seen[1]


def _value(reader: Reader, one: Seen) -> Json:
    state = one.state
    value: Json = {
        "id": one.id.hex(),
        "ref": one.ref.hex(),
        "head": describe.full(state.head),
        "type": refs.TYPES[state.type],
        "kind": None,
        "text": None,
        "status": refs.STATUSES[state.status],
        "truth": _truth(reader, one),
        "flags": describe.flags(state),
        "asserted_at": None,
        "valid_from": describe.stamp(state.valid_from),
        "valid_to": describe.stamp(state.valid_to),
        "recorded_at": describe.stamp(state.created),
        "changed_at": describe.stamp(state.changed),
        "replaced_by": describe.full(state.replaced_by),
        "scope": describe.lane_scope(reader, one.part, state.lane),
        "origin": None,
        "role": None,
        "speaker": None,
        "source": None,
    }
    if one.obj is not None:
        value |= describe.content(one.obj)
        value["receipt"] = describe.receipt(reader, one.part, one.id, one.obj)
        value["cites"] = describe.cites(reader, one.part, one.id, one.obj)
    else:
        value |= {"receipt": None, "cites": []}
    value["derived"] = [
        {
            "id": describe.full(memory.head),
            "ref": ref.hex(),
            "kind": "" if obj is None else obj.kind,
            "status": refs.STATUSES[memory.status],
        }
        for ref, memory, obj in derived(reader, one.part, one.id)
    ]
    value["revision"] = one.number
    value["revisions"] = [
        {
            "number": number,
            "id": describe.full(entry.new),
            "op": refs.OPS[entry.op],
            "recorded_at": describe.stamp(entry.time),
            "principal": entry.principal,
            "reason": entry.reason,
        }
        for number, entry in enumerate(one.revisions, 1)
    ]
    return value


def derived(
    reader: Reader, part: Part, observation: bytes
) -> list[tuple[bytes, refs.RefState, Obj | None]]:
    """Memories of the grant that cite an observation: ref, state, head."""
    found = []
    for ref in reader.cited_by(part, observation):
        state = reader.state(part, ref)
        if state is not None:
            found.append((ref, state, describe.fetch(reader, part, state.head)))
    return found


def _print(context: Context, reader: Reader, one: Seen) -> None:
    state = one.state
    obj = one.obj
    offset = None if obj is None else obj.offset
    what = refs.TYPES[state.type] if obj is None else describe.kind_of(obj)
    truth = _truth(reader, one)
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
            codes = given["codes"]
            assert isinstance(codes, list)
            line("receipt", ", ".join([str(given["status"]), *codes]))
    if len(one.revisions) > 1:
        made = describe.shown(one.revisions[one.number - 1].time)
        line("revision", f"{one.number} of {len(one.revisions)}, recorded {made}")
    if isinstance(obj, Memory):
        for cite in describe.cites(reader, one.part, one.id, obj):
            words = cite["quote"]
            line("cites", f"{str(cite['id'])[:10]} {one_line(str(words)) if words else '(gone)'}")
    for ref, memory, _ in derived(reader, one.part, one.id):
        text = describe.text_line(reader, one.part, ref, memory.head)
        line("cited by", f"{describe.short(ref)} {text}")
    context.out("")
    if obj is None:
        context.out(f"{INDENT}(its bytes are gone)")
        return
    for row in visible(obj.text).split("\n"):
        context.out(f"{INDENT}{row}".rstrip())


def _valid(state: refs.RefState, offset: int | None) -> str:
    """From when to when it holds, as stated."""
    begins = "unknown" if state.valid_from is None else describe.shown(state.valid_from, offset)
    if state.valid_to is None:
        return f"from {begins}"
    return f"from {begins} to {describe.shown(state.valid_to, offset)}"
