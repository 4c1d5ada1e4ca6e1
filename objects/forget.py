"""Forgetting: gone from every view at once, with what was derived only from it.

The bytes wait for purge.  What else cites other evidence loses this citation and stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, memories, oid, refs, tombs
from remem.objects.errors import NotFound, Refused
from remem.objects.model import Memory

if TYPE_CHECKING:
    from remem.objects.encode import Obj
    from remem.objects.reader import Part
    from remem.objects.tx import Tx


class Forgotten(msgspec.Struct):
    """What a forgetting took: refs of observations and memories, memories that lost a citation."""

    observations: list[bytes] = []
    memories: list[bytes] = []
    lost_citation: list[bytes] = []


def forget(
    tx: Tx, part: Part, ref: bytes, *, reason: str = "", allow_return: bool = False
) -> Forgotten:
    """Forget one ref.

    Args:
        tx: the write transaction.
        part: its partition.
        ref: id of the ref.
        reason: reason code.
        allow_return: the same value may be stored again.

    Raises:
        NotFound: there is no such ref.
        Refused: it is held, or something derived only from it is; nothing was changed.
    """
    done = Forgotten()
    _forget(tx, part, ref, reason, allow_return, done)
    return done


def _forget(
    tx: Tx, part: Part, ref: bytes, reason: str, allow_return: bool, done: Forgotten
) -> None:
    state = tx.reader.state(part, ref)
    if state is None:
        raise NotFound(f"nothing has the id '{oid.short(ref)}'")
    if refs.STATUSES[state.status] == "erased":
        return
    if state.flags & refs.HELD:
        raise Refused(
            f"'{oid.short(ref)}' is held", hint="'remem hold release' of it comes first"
        ).audited("forget", "held", part.number, ref)
    revisions = objects_of(tx, part, state)
    texts = [] if allow_return else [text for _, obj in revisions for text in values_of(obj)]
    key = None
    for _, obj in revisions:
        if isinstance(obj, Memory):
            key = key or chains.chain_of(tx, part, ref, obj)
            for cited in obj.cites:
                tx.txn.delete("cites", part.prefix + cited + ref)
    tx.record(part, "erase", ref, state, status="erased", reason=reason)
    tombs.bury(tx, part, ref, texts, reason)
    (done.memories if state.type == refs.MEMORY else done.observations).append(ref)
    if key is not None:
        tx.txn.delete("chains", key + ref)
        chains.relink(tx, part, key)
    for object_id, _ in revisions:
        for memory_ref in tx.reader.cited_by(part, object_id):
            _uncite(tx, part, memory_ref, object_id, reason, allow_return, done)


def _uncite(
    tx: Tx,
    part: Part,
    ref: bytes,
    observation: bytes,
    reason: str,
    allow_return: bool,
    done: Forgotten,
) -> None:
    """Take one citation from a memory; a memory without any is forgotten too."""
    state, memory = memories.head(tx, part, ref)
    others = [
        cited
        for cited in memory.cites
        if cited != observation and not erased(tx, part, tx.reader.ref_of(part, cited))
    ]
    if not others:
        _forget(tx, part, ref, reason, allow_return, done)
        return
    memories.replace(tx, part, ref, state, memories.with_cites(memory, others), reason="forgotten")
    done.lost_citation.append(ref)


def erased(tx: Tx, part: Part, ref: bytes) -> bool:
    """Whether a ref has been forgotten."""
    return tx.txn.get("tombs", part.prefix + ref) is not None


def objects_of(tx: Tx, part: Part, state: refs.RefState) -> list[tuple[bytes, Obj]]:
    """(id, object) of every revision of a ref that is still there."""
    found: dict[bytes, Obj] = {}
    for entry in tx.reader.entries(part, state):
        for object_id in (entry.new, entry.old):
            if object_id is not None and object_id not in found:
                if tx.txn.get("objects", part.prefix + object_id) is not None:
                    found[object_id] = tx.reader.object(part, object_id)
    return list(found.items())


def values_of(obj: Obj) -> list[str]:
    """What of an object must not come back."""
    return [obj.text]
