"""Writing memories: the object, its ref, and the rows that lead from evidence to memory.

A memory cites at least one observation of its own partition.  ``cites`` holds one row for each
(observation, ref of the memory) of the present head, so that a change of the evidence finds what
hangs on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import encode, gate, lists, refs, tombs, withheld
from remem.objects.attests import SINGLE
from remem.objects.errors import BadInput, NotFound
from remem.objects.model import MEMORY_KINDS, Memory, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remem.objects.encode import Obj
    from remem.objects.reader import Part
    from remem.objects.tx import Tx


STATED = "stated"  # name of the deriver of what a person stated
EVIDENCE = "evidence"  # reason of a revision that adds evidence and says nothing else
_COPIES = frozenset((EVIDENCE, "chain"))  # reasons of memories that say what another says already
SUMMARY = "summary"  # kind of what says in short what several sources say


def check(memory: Memory) -> None:
    """Raise unless a memory may be stored.

    Raises:
        BadInput: unknown kind, no citation, empty text, or an interval that ends before it begins.
    """
    if memory.kind not in MEMORY_KINDS:
        raise BadInput(f"'{memory.kind}' is no kind", hint="one of " + ", ".join(MEMORY_KINDS))
    if not memory.cites:
        raise BadInput("a memory must cite at least one observation")
    if not memory.text.strip():
        raise BadInput("the text is empty")
    start, end = memory.valid_from, memory.valid_to
    if start is not None and end is not None and end <= start:
        raise BadInput("the end is not after the beginning")


def began_at_once(obj: Obj, state: refs.RefState) -> bool:
    """True for what began as it was recorded: no other time was given.

    Where that lies ahead of the clock, the clock ran ahead then and was set back since.
    """
    given = obj.valid_from if isinstance(obj, Memory) else getattr(obj, "asserted", None)
    return given is None or state.starts == state.created


def is_summary(memory: Memory) -> bool:
    """True for what sums up its sources: it goes on citing them as they were when it was made.

    A summary that a person stated in a sentence of its own is a statement like any other.
    """
    if memory.kind != SUMMARY:
        return False
    return memory.deriver.name != STATED or len(memory.cites) > 1


def create(
    tx: Tx,
    part: Part,
    memory: Memory,
    *,
    status: str,
    valid_from: int | None,
    valid_to: int | None = None,
    reason: str = "",
    codes: Sequence[str] = (),
    single: bool | None = None,
) -> bytes | None:
    """Begin a memory; its ref, or None when the very same object is a memory already.

    What must not be kept is taken out first; ``codes`` are those that the gate found before.  Who
    puts it into a chain says in ``single`` whether that takes one value at a time.
    """
    check(memory)
    memory, found = gate.memory(tx, memory)
    spoken = [] if reason in _COPIES else gate.against(tx, memory)
    found = list(dict.fromkeys([*codes, *found, *spoken]))
    tombs.check(tx, part, memory, "derive")
    status = withheld.inherited(tx, part, memory.cites, status)
    if status not in withheld.NAMES and gate.holds_back(found):
        status = "quarantined"
    if status not in withheld.NAMES and withheld.holds_back(tx, part, tombs.values_of(memory)):
        status = "quarantined"
    object_id, data = encode.seal(memory, part.key)
    if tx.txn.get("refs", part.prefix + tx.reader.ref_of(part, object_id)) is not None:
        return None
    tx.store_object(part, object_id, data, memory)
    for cited in memory.cites:
        tx.txn.put("cites", part.prefix + cited + object_id, b"")
        if lists.is_note(tx.txn, part, cited):
            from remem.objects import tiers

            tiers.keep_cited(tx, part, cited, status)
    attests = gate.keep(tx, part, object_id, status, found) or {}
    if single is not None:
        attests[SINGLE] = single
    tx.create(
        part,
        object_id,
        kind=refs.MEMORY,
        lane=tx.lane(part, memory.scope),
        status=status,
        valid_from=valid_from,
        valid_to=valid_to,
        reason=reason,
        attests=attests,
    )
    return object_id


def replace(
    tx: Tx,
    part: Part,
    ref: bytes,
    state: refs.RefState,
    memory: Memory,
    *,
    op: str = "revise",
    reason: str = "",
    valid_from: int | None = None,
    expected: bytes | None = None,
    status: str | None = None,
    codes: Sequence[str] = (),
) -> bytes:
    """Give a memory a new head; the id of the new object.

    ``codes`` are those that the gate found before, for the receipt.
    """
    check(memory)
    memory, found = gate.memory(tx, memory)
    assert state.head is not None
    old = tx.reader.object(part, state.head)
    found = list(dict.fromkeys([*codes, *found]))
    if not isinstance(old, Memory) or (old.text, old.triple) != (memory.text, memory.triple):
        spoken = gate.against(tx, memory)
        found += spoken
        if spoken and (status or refs.STATUSES[state.status]) not in withheld.NAMES:
            status = "quarantined"
    object_id = tx.put_revision(part, ref, memory)
    if isinstance(old, Memory):
        for cited in old.cites:
            tx.txn.delete("cites", part.prefix + cited + ref)
    for cited in memory.cites:
        tx.txn.put("cites", part.prefix + cited + ref, b"")
    standing = status or refs.STATUSES[state.status]
    tx.record(
        part,
        op,
        ref,
        state,
        new=object_id,
        reason=reason,
        expected=expected,
        status=status,
        valid_from=state.valid_from if valid_from is None else valid_from,
        attests=gate.keep(tx, part, object_id, standing, found),
    )
    return object_id


def head(tx: Tx, part: Part, ref: bytes) -> tuple[refs.RefState, Memory]:
    """State and head of a memory.

    Raises:
        NotFound: it is none, or gone.
    """
    state = tx.reader.state(part, ref)
    if state is None or state.head is None or state.type != refs.MEMORY:
        raise NotFound(f"no memory '{ref.hex()[:10]}'")
    obj = tx.reader.object(part, state.head)
    assert isinstance(obj, Memory)
    return state, obj


def with_cites(memory: Memory, cites: list[bytes]) -> Memory:
    """The same memory with other citations, ready to be sealed."""
    return Memory(
        encode.ZERO_SALT,
        memory.scope,
        memory.kind,
        memory.text,
        memory.triple,
        cites,
        memory.span if memory.span is not None and memory.span.cite < len(cites) else None,
        memory.deriver,
        memory.confidence,
        memory.valid_from,
        memory.valid_to,
        memory.offset,
        memory.cues,
        memory.trigger,
        memory.anchors,
        memory.meta,
    )


def without_cite(memory: Memory, cited: bytes) -> Memory:
    """The same memory without one citation, ready to be sealed; the span goes with it."""
    place = memory.cites.index(cited)
    left = with_cites(memory, memory.cites[:place] + memory.cites[place + 1 :])
    span = memory.span
    if span is not None:
        at = span.cite - (span.cite > place)
        moved = None if span.cite == place else Span(at, span.start, span.end)
        left = msgspec.structs.replace(left, span=moved)
    return left
