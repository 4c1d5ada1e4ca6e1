"""Carrying a change of evidence to what hangs on it: citations, chains, memories that lose it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, encode, evidence, memories, oid, refs
from remem.objects.errors import HeadMoved, NotFound
from remem.objects.links import FOLLOWS
from remem.objects.memories import STATED
from remem.objects.model import Memory, Span

if TYPE_CHECKING:
    from remem.objects.reader import Found, Part
    from remem.objects.tx import Tx

__all__ = ["FOLLOWS", "cascade", "fresh", "rechain", "recite", "replaced", "single_key"]


def fresh(tx: Tx, found: Found, expected: bytes | None = None, op: str = "revise") -> refs.RefState:
    """State of a ref as it is now, inside the transaction.

    Raises:
        NotFound: it is gone.
        Forgotten: it was forgotten.
        HeadMoved: its head is not the expected one.
    """
    state = tx.reader.state(found.part, found.ref)
    if state is None or state.head is None:
        raise NotFound(f"nothing has the id '{oid.short(found.ref)}'")
    if state.type > refs.MEMORY:
        name = refs.TYPES[state.type]
        raise NotFound(f"'{oid.short(found.ref)}' is a {name}, no evidence and no memory")
    if tx.reader.erased(found.part, found.ref) is not None:
        raise tx.reader.forgotten(found.part, found.ref)
    if expected not in (None, state.head):
        raise HeadMoved(f"the head of '{oid.short(found.ref)}' has moved").audited(
            op, "head_moved", found.part.number, found.ref
        )
    return state


def cascade(
    tx: Tx, part: Part, observation: bytes, by: bytes, at: int, *, successor: bytes | None = None
) -> list[bytes]:
    """Carry a change of an observation to the memories that cite it.

    A memory whose words still stand in the successor has its citation pointed there; one with
    other evidence loses this citation; any other is superseded.

    Args:
        tx: the write transaction.
        part: the partition.
        observation: object id of the revision that was changed.
        by: ref that takes the place of memories that rest on nothing else.
        at: when, microseconds UTC.
        successor: object id of the new revision of the observation, or None where it was replaced
            by another one.

    Returns:
        Refs of the memories that changed.
    """
    changed = []
    for ref in tx.reader.cited_by(part, observation):
        state, memory = memories.head(tx, part, ref)
        if observation not in memory.cites or chains.RESUMES in memory.meta:
            continue  # what holds again follows the fact that was interrupted
        if memories.is_summary(memory):
            continue  # whoever reads it is told (`remem.objects.summaries`)
        pointed = None if successor is None else _point(tx, part, memory, observation, successor)
        if pointed is not None:
            memories.replace(tx, part, ref, state, pointed, reason=memories.EVIDENCE)
        else:
            _lose(tx, part, ref, observation, by, at)
        changed.append(ref)
    return changed


def _point(
    tx: Tx, part: Part, memory: Memory, observation: bytes, successor: bytes
) -> Memory | None:
    """The memory citing a later revision, when that still holds the words it was drawn from."""
    old, new = tx.reader.object(part, observation), tx.reader.object(part, successor)
    place = memory.cites.index(observation)
    cites = [successor if c == observation else c for c in memory.cites]
    if successor in memory.cites:
        return None
    span = memory.span
    parts = evidence.grounds(memory, observation, old.text)
    if span is not None and span.cite == place:
        at = evidence.moved(old.text, (span.start, span.end), new.text)
        if at is None:
            return None
        span = Span(place, *at)
    elif not parts or any(evidence.moved(old.text, p, new.text) is None for p in parts):
        if memory.deriver.name != STATED or parts:
            return None
    return msgspec.structs.replace(memory, salt=encode.ZERO_SALT, cites=cites, span=span)


def _lose(tx: Tx, part: Part, ref: bytes, observation: bytes, by: bytes, at: int) -> None:
    """Take a citation from a memory; without any other it is superseded."""
    state, memory = memories.head(tx, part, ref)
    others = [c for c in memory.cites if c != observation]
    if others:
        left = memories.without_cite(memory, observation)
        memories.replace(tx, part, ref, state, left, reason=memories.EVIDENCE)
        return
    if state.flags & refs.CLOSED or (state.replaced_by is not None and replaced(tx, state)):
        return
    tx.flush()
    tx.record(
        part,
        "supersede",
        ref,
        state,
        reason=FOLLOWS,
        valid_to=max(at, chains.begins(tx.reader, part, ref, state)),
        replaced_by=by,
    )
    chains.relink_of(tx, part, ref)


def recite(tx: Tx, part: Part, ref: bytes, old: bytes, new: bytes) -> None:
    """Keep the citation rows in step with the head of a memory."""
    was, now = tx.reader.object(part, old), tx.reader.object(part, new)
    if isinstance(was, Memory) and isinstance(now, Memory):
        for cited in was.cites:
            tx.txn.delete("cites", part.prefix + cited + ref)
        for cited in now.cites:
            tx.txn.put("cites", part.prefix + cited + ref, b"")


def rechain(tx: Tx, part: Part, ref: bytes, was: encode.Obj, now: encode.Obj) -> None:
    """Link the chain of a memory whose head has changed; another object may have another chain."""
    if not isinstance(was, Memory) or not isinstance(now, Memory):
        return
    tx.flush()
    key = chains.chain_of(tx, part, ref, was)
    if key is None or now.triple is None:
        return
    moved = chains.chain_key(tx.reader, part, now.triple, single=key == single_key(tx, part, was))
    if moved == key:
        chains.relink(tx, part, key)
    else:
        chains.leave(tx, part, key, ref)
        chains.join(tx, part, moved, ref)


def single_key(tx: Tx, part: Part, memory: Memory) -> bytes:
    """Key of the chain of a memory whose predicate takes one value at a time."""
    assert memory.triple is not None
    return chains.chain_key(tx.reader, part, memory.triple, single=True)


def replaced(tx: Tx, state: refs.RefState) -> bool:
    """Whether something has taken the place of a ref by now."""
    return state.valid_to is None or state.valid_to <= tx.present
