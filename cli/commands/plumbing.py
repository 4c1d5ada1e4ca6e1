"""Plumbing: stable for scripts, one record a line, full ids, no colour, nothing left to taste."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from remem.cli import describe
from remem.cli.names import living, resolve, snapshot
from remem.cli.reading import Meter, cache_dir, known_scope
from remem.objects import refs
from remem.objects.admit import Admitted, admit, decode_text
from remem.objects.errors import Blocked, NotFound, UsageError
from remem.objects.model import Incoming
from remem.objects.scope import told
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.objects.encode import Stored
    from remem.objects.reader import Found, Part, Reader
    from remem.objects.tx import Tx


class _Undo(Exception):
    """Carries a result out of a transaction that must not be kept."""

    def __init__(self, result: Admitted) -> None:
        super().__init__()
        self.result = result


# -- objects ------------------------------------------------------------------------------------


def hash_object(context: Context, *, path: str, write: bool, nul: bool) -> int:
    """Print the id that a text has in this scope; store it when asked to.

    An id is salted with the key of its collection, so there is none before the collection exists.
    """
    limit_b = context.limit_b
    if path == "-":
        raw = sys.stdin.buffer.read(limit_b + 1)
    else:
        with open(path, "rb") as file:
            raw = file.read(limit_b + 1)
    what = "standard input" if path == "-" else f"'{path}'"
    record = Incoming(text=decode_text(raw, what, limit_b), raw=raw)
    result = _store(context, record, limit_b) if write else _preview(context, record, limit_b)
    result = told(context.actor().grant, result)
    refused = write and result.status == "blocked"
    if context.json:
        value: Json = {"id": result.id.hex(), "ref": result.ref.hex(), "status": result.status}
        context.emit({**value, "kept": write and not refused})
    elif refused:
        from remem.cli.commands.add import blocked

        raise blocked(result)
    else:
        _record(context, result.id.hex(), nul)
    return Blocked.exit_code if refused else 0


def _store(context: Context, record: Incoming, limit_b: int) -> Admitted:
    actor = context.actor()
    return context.store(create=True).write(actor, lambda tx: admit(tx, record, limit_b=limit_b))


def _preview(context: Context, record: Incoming, limit_b: int) -> Admitted:
    """What admission would make of a record: the same path in a transaction that is undone."""
    scope = context.scope()
    actor = context.actor()
    store = context.store()
    with store.read(actor.grant) as reader:
        if not any(p.collection == scope.collection for p in reader.parts):
            raise NotFound(
                f"the collection '{scope.collection}' holds nothing, so nothing has an id in it",
                hint="-w stores the text and makes the collection",
            )

    def trial(tx: Tx) -> None:
        raise _Undo(admit(tx, record, limit_b=limit_b))

    try:
        store.write(actor, trial)
    except _Undo as undo:
        return undo.result
    raise AssertionError("a trial never commits")


def cat_object(
    context: Context,
    *,
    id: str,
    raw: bool,
    type: bool,
    size: bool,
    bytes: bool,
    all_collections: bool,
) -> int:
    """Print one object: that of the id itself, not the head of its ref."""
    if raw + type + size + bytes > 1:
        raise UsageError("give one of --raw, --type, --size and --bytes")
    if (raw or bytes) and context.json:
        raise UsageError("--raw and --bytes print bytes; they have no --json")
    with snapshot(context, all_collections=all_collections) as reader:
        found = living(context, reader, id)
        object_id = found.revision or found.ref
        if found.state.type > refs.MEMORY:
            kept, stored = _bookkeeping(reader, found, object_id, raw)
            told = {"status": refs.STATUSES[found.state.status], "object": describe.fields(kept)}
            return _print_stored(context, object_id, stored, (type, size, bytes), told)
        obj = describe.fetch(reader, found.part, object_id)
        data = reader.object_bytes(found.part, object_id)
        if obj is None and refs.STATUSES[found.state.status] in WITHHELD:
            raise NotFound(f"'{describe.short(object_id)}' is held back")
        if obj is None or data is None:
            raise NotFound(f"the bytes of '{describe.short(object_id)}' are gone")
        receipt = describe.receipt(reader, found.part, object_id, obj)
        status = refs.STATUSES[found.state.status]
    if raw:
        context.stdout.write(describe.raw(obj))
        return 0
    told = {"status": status, **describe.content(obj), "receipt": receipt}
    return _print_stored(context, object_id, data, (type, size, bytes), told)


def _bookkeeping(reader: Reader, found: Found, object_id: bytes, raw: bool) -> tuple[Stored, bytes]:
    """A draft or a run with its bytes; they are the owner's to see."""
    short = describe.short(object_id)
    data = reader.object_bytes(found.part, object_id) if reader.grant.owner else None
    if data is None:
        raise NotFound(f"'{short}' is not there, or is held back")
    if raw:
        raise UsageError(f"'{short}' came in by itself: it has no raw bytes")
    return reader.bookkeeping(found.part, object_id), data


def _print_stored(
    context: Context, object_id: bytes, data: bytes, wanted: tuple[bool, bool, bool], told: Json
) -> int:
    """Print the type, the size or the bytes of an object, else all that is told of it."""
    type, size, plain = wanted
    out = context.stdout
    if plain:
        out.write(data)
    elif type or size:
        answer = describe.type_of(data) if type else len(data)
        if context.json:
            context.emit(answer)
        else:
            context.out(str(answer))
    else:
        value: Json = {"id": object_id.hex(), "type": describe.type_of(data), "size": len(data)}
        out.write(describe.json_line(value | told) + b"\n")
    return 0


def count_objects(context: Context, *, nul: bool, all_collections: bool) -> int:
    """Print type, number and stored bytes of the objects, one type a line, then the total."""
    counts = {name: [0, 0] for name in refs.TYPES}
    with snapshot(context, all_collections=all_collections) as reader:
        for part in reader.parts:
            for ref, state in reader.states(part):
                count = counts[refs.TYPES[state.type]]
                for object_id in _objects_of(reader, part, ref, state):
                    data = reader.object_bytes(part, object_id)
                    if data is not None:
                        count[0] += 1
                        count[1] += len(data)
    counts["total"] = [sum(c[i] for c in counts.values()) for i in (0, 1)]
    if context.json:
        context.emit({name: {"count": n, "bytes": size} for name, (n, size) in counts.items()})
    else:
        for name, (number, size_b) in counts.items():
            _record(context, f"{name} {number} {size_b}", nul)
    return 0


def _objects_of(
    reader: Reader, part: Part, ref: bytes, state: refs.RefState
) -> set[bytes] | tuple[bytes]:
    """Ids of the revisions of a ref."""
    if state.first == state.last:
        return (ref,)
    return {entry.new for entry in reader.entries(part, state) if entry.new is not None}


# -- names --------------------------------------------------------------------------------------


def ls_refs(context: Context, *, everything: bool, nul: bool, all_collections: bool) -> int:
    """Print id, type, status and head of every current ref, by id within each collection."""
    store = context.store(readonly=True)
    known_scope(context, store, all_collections=all_collections)
    encode = msgspec.json.Encoder().encode
    end = b"\0" if nul else b"\n"
    with snapshot(context, all_collections=all_collections) as reader:
        written = 0
        for part in reader.parts:
            for ref, state in reader.states(part):
                status = refs.STATUSES[state.status]
                if not everything and not _is_current(state, status):
                    continue
                kind, head = refs.TYPES[state.type], describe.full(state.head)
                if context.json:
                    value = {"ref": ref.hex(), "type": kind, "status": status, "head": head}
                    context.stdout.write((b",\n" if written else b"[") + encode(value))
                else:
                    context.stdout.write(
                        f"{ref.hex()} {kind} {status} {head or '-'}".encode() + end
                    )
                written += 1
        if context.json:
            context.stdout.write(b"]\n" if written else b"[]\n")
    return 0


def _is_current(state: refs.RefState, status: str) -> bool:
    return (
        state.head is not None
        and state.replaced_by is None
        and not state.flags & refs.CLOSED
        and status not in WITHHELD
    )


def rev_parse(context: Context, *, name: str, nul: bool, all_collections: bool) -> int:
    """Print the full id of a name: of a revision when it names one, else of the ref."""
    with snapshot(context, all_collections=all_collections) as reader:
        found = resolve(context, reader, name)
    object_id = found.revision or found.ref
    if context.json:
        context.emit({"id": object_id.hex(), "ref": found.ref.hex()})
    else:
        _record(context, object_id.hex(), nul)
    return 0


# -- projections --------------------------------------------------------------------------------


def project(context: Context) -> int:
    """Bring the inverted index and the vectors up to the ref log."""
    from remem.index import project as projector
    from remem.index.engine import dense_side

    store = context.store()
    meter = Meter(context)
    try:
        done = projector.project(store, progress=meter)
        dense = dense_side(
            context.settings.text("embedder"),
            cache_dir=cache_dir(context),
            api_key=context.settings.text("embedder_key"),
        )
        vectors = left = 0
        if dense is not None:
            vectors, left = dense.project(store, progress=meter)
    finally:
        meter.clear()
    value = {
        "added": done.added,
        "removed": done.removed,
        "vectors": vectors,
        "vectors_behind": None if dense is None else left,
    }
    if context.json:
        context.emit(value)
    else:
        for key, number in value.items():
            if number is not None:
                context.out(f"{key} {number}")
    return 0


def _record(context: Context, text: str, nul: bool) -> None:
    context.stdout.write(text.encode() + (b"\0" if nul else b"\n"))


__all__ = [
    "cat_object",
    "count_objects",
    "hash_object",
    "ls_refs",
    "project",
    "rev_parse",
]
