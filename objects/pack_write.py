"""Writing a pack: the changes of each granted partition in record order, from one snapshot.

The same store gives the same bytes, whatever the zone, the language or the hash seed; nothing of
the place or the moment of writing is in them.

Source: remem-pack(5), WRITING.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from remem.objects import encode, oid, pack, pack_facts, receipts, refs
from remem.objects.errors import IntegrityError, ScopeRefused
from remem.objects.model import Memory
from remem.objects.scope import maintenance_grant
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from remem.objects.reader import Part, Reader
    from remem.objects.scope import Grant
    from remem.objects.store import Store

ERASED = refs.STATUS_CODE["erased"]
ERASE = refs.OP_CODE["erase"]
PURGE = refs.OP_CODE["purge"]
ROLLBACK = refs.OP_CODE["rollback"]
_BUFFER_B = 1 << 20


class Exported(msgspec.Struct, frozen=True):
    """What a pack holds.

    Attributes:
        scopes: partitions with at least one line.
        changes: entries of their ref logs.
        objects: objects that came with them.
        gone: changes whose object was forgotten and is not in the pack.
        bytes: size of the pack.
    """

    scopes: int
    changes: int
    objects: int
    gone: int
    bytes: int


class _Sink:
    """Buffered writing with a running digest."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._hasher = blake3()
        self._buffer = bytearray()
        self.size_b = 0

    def line(self, value: object) -> None:
        self.raw(pack.encode_line(value) + b"\n")

    def raw(self, data: bytes) -> None:
        self._buffer += data
        self.size_b += len(data)
        if len(self._buffer) >= _BUFFER_B:
            self.flush()

    def flush(self) -> None:
        data = bytes(self._buffer)
        self._hasher.update(data)
        self._out.write(data)
        self._buffer.clear()

    def digest(self) -> str:
        self.flush()
        return self._hasher.hexdigest()


def export(store: Store, grant: Grant, out: BinaryIO, *, all_scopes: bool = False) -> Exported:
    """Write a pack of what the grant covers.

    Args:
        store: the store; it may be in use.
        grant: what may be read.
        out: where the bytes go; nothing is written elsewhere.
        all_scopes: every tenant, profile and collection (the owner only).

    Raises:
        ScopeRefused: all_scopes without the owner's grant.
        IntegrityError: the store lacks something that the pack would have to hold.
    """
    if all_scopes:
        if not grant.owner:
            raise ScopeRefused(f"'{grant.principal}' may not export every scope")
        grant = maintenance_grant()
    sink = _Sink(out)
    sink.raw(pack.HEADER)
    scopes = changes = objects = gone = 0
    with store.read(grant) as reader:
        for part in sorted(reader.parts, key=lambda p: (p.tenant, p.profile, p.collection)):
            begun = False
            for line in chain(_aliases(reader, part), _lines(reader, part)):
                if not begun:
                    names = (part.tenant, part.profile, part.collection)
                    sink.line(pack.ScopeLine(scope=names))
                    scopes, begun = scopes + 1, True
                sink.line(line)
                if isinstance(line, pack.ChangeLine):
                    changes += 1
                    objects += line.object is not None
                    gone += line.gone
    closing = pack.Closing(scopes=scopes, changes=changes, blake3=sink.digest())
    sink.line(pack.EndLine(end=closing))
    sink.flush()
    return Exported(scopes, changes, objects, gone, sink.size_b)


def said_at(entry: refs.Entry) -> int:
    """Record time of an entry in the store where it was made."""
    return entry.time if entry.origin is None else entry.origin.time


def said_status(before: refs.Entry | None, said: int, entry: refs.Entry) -> int:
    """Status code that a ref's log states after an entry, which may be more than is believed.

    Args:
        before: the entry before of the same ref.
        said: what the log stated after that one.
        entry: the entry.
    """
    if entry.origin is not None:
        return entry.origin.status
    # An entry made here repeats the status unless it is about the status.
    return said if before is not None and entry.status == before.status else entry.status


def identity(entry: refs.Entry) -> tuple[int, int, str, str, str]:
    """What tells a change of a ref from the others of the same ref, in every store."""
    return (entry.op, said_at(entry), entry.principal, entry.surface, entry.reason)


def _aliases(reader: Reader, part: Part) -> Iterator[pack.AliasLine]:
    for alias in pack_facts.aliases(reader, part):
        yield pack.AliasLine(alias=alias)


def _lines(reader: Reader, part: Part) -> Iterator[pack.ChangeLine]:
    lowered: dict[bytes, int] = {}  # refs whose log states another status than is believed
    hidden: dict[bytes, bool] = {}
    for entry in reader.log(part):
        if not reader.grant.owner and _hides(reader, part, entry.ref, hidden):
            continue
        if entry.type > refs.MEMORY:
            continue  # what waits here, and what was done here, is no other store's
        before = reader.entry(part, entry.prev) if entry.prev else None
        said_before = lowered.pop(entry.ref, -1 if before is None else before.status)
        said = said_status(before, said_before, entry)
        if said != entry.status:
            lowered[entry.ref] = said
        form = receipt = None
        mode = ""
        missing = back = False
        if entry.op in (ERASE, PURGE) or (said == ERASED and said_before != said):
            back = _taken_back(reader, part, entry)
        moved = entry.new is not None and (before is None or entry.new != before.new)
        if moved and entry.new is not None and entry.op != ROLLBACK:
            state = reader.state(part, entry.ref)
            if state is None:
                raise IntegrityError(f"entry {entry.seq} belongs to a ref that has no state")
            data = reader.object_bytes(part, entry.new)
            missing = state.status == ERASED
            if not missing:
                if data is None:
                    raise IntegrityError(f"the object '{oid.short(entry.new)}' is missing")
                form = pack.object_form(data)
                if before is None and entry.type == refs.MEMORY:
                    mode = pack_facts.mode_of(reader, part, entry.ref, encode.decode(data))
                kept = reader.receipt(part, entry.new)
                receipt = None if kept is None else receipts.stated(kept)
        agent, session = reader.lane(part, entry.lane) if before is None else ("", "")
        yield pack.ChangeLine(
            op=refs.OPS[entry.op],
            ref=entry.ref.hex(),
            type=refs.TYPES[entry.type] if before is None else "",
            agent=agent,
            session=session,
            chain=mode,
            edits=_edits(before, said_before, entry, said),
            time=said_at(entry),
            n=_occurrence(reader, part, entry, before),
            principal=entry.principal,
            surface=entry.surface,
            reason=entry.reason,
            object=form,
            receipt=receipt,
            gone=missing,
            back=back,
        )


def _hides(reader: Reader, part: Part, ref: bytes, known: dict[bytes, bool]) -> bool:
    """Whether a ref is left out for whoever is not the owner: it, or its evidence, is held back."""
    if ref not in known:
        known[ref] = False
        state = reader.state(part, ref)
        status = "" if state is None else refs.STATUSES[state.status]
        if state is None or state.type > refs.MEMORY or status in WITHHELD - {"erased"}:
            known[ref] = True
        elif state.type == refs.MEMORY and state.status != ERASED:
            heads = {e.new for e in reader.entries(part, state) if e.new is not None}
            objects = [reader.object(part, head) for head in heads]
            cited = {c for obj in objects if isinstance(obj, Memory) for c in obj.cites}
            told = {reader.ref_of(part, c) for c in cited}
            known[ref] = any(_hides(reader, part, one, known) for one in told)
    return known[ref]


def _taken_back(reader: Reader, part: Part, entry: refs.Entry) -> bool:
    """Whether a later entry states that the ref is not forgotten any more."""
    state = reader.state(part, entry.ref)
    for later in reader.entries(part, state) if state is not None else ():
        if later.seq == entry.seq:
            break
        if (later.status if later.origin is None else later.origin.status) != ERASED:
            return True
    return False


def _edits(before: refs.Entry | None, said_before: int, entry: refs.Entry, said: int) -> pack.Edits:
    edits = pack.Edits()
    old_head = None if before is None else before.new
    if old_head != entry.new:
        edits.head = (pack.id_text(old_head), pack.id_text(entry.new))
    if said_before != said:
        old_status = None if before is None else refs.STATUSES[said_before]
        edits.status = (old_status, refs.STATUSES[said])
    for name in ("valid_from", "valid_to"):
        old = None if before is None else getattr(before, name)
        new = getattr(entry, name)
        if old != new:
            setattr(edits, name, (old, new))
    old_place = None if before is None else before.replaced_by
    if old_place != entry.replaced_by:
        edits.replaced_by = (pack.id_text(old_place), pack.id_text(entry.replaced_by))
    return edits


def _occurrence(reader: Reader, part: Part, entry: refs.Entry, before: refs.Entry | None) -> int:
    """1 for the first change of this identity, 2 for the second, ... (several in one instant)."""
    count, own = 1, identity(entry)
    while before is not None and said_at(before) >= own[1]:
        count += identity(before) == own
        before = reader.entry(part, before.prev) if before.prev else None
    return count
