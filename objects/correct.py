"""Correcting: revise, roll back, close, reopen, supersede, undo.

Every change is a new entry of the ref log; nothing is overwritten.  A change of an observation
carries to what was derived from it, in the same transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, encode, memories, oid, refs
from remem.objects.admit import DEFAULT_LIMIT_B, normalise
from remem.objects.errors import BadInput, HeadMoved, NotFound, Refused, UsageError
from remem.objects.model import Memory, Observation

if TYPE_CHECKING:
    from remem.objects.reader import Found, Part
    from remem.objects.tx import Tx


def fresh(tx: Tx, found: Found) -> refs.RefState:
    """State of a ref as it is now, inside the transaction.

    Raises:
        NotFound: it is gone.
    """
    state = tx.reader.state(found.part, found.ref)
    if state is None or state.head is None:
        raise NotFound(f"nothing has the id '{oid.short(found.ref)}'")
    return state


def revise(
    tx: Tx,
    found: Found,
    text: str,
    *,
    expected: bytes | None = None,
    since: int | None = None,
    reason: str = "",
    limit_b: int = DEFAULT_LIMIT_B,
) -> bytes:
    """Give a ref a new text; everything else of it is carried over.

    Args:
        tx: the write transaction.
        found: the ref.
        text: the new text.
        expected: the head that the caller read (compare-and-set), or None.
        since: when the new text begins to hold, microseconds UTC; None for now.
        reason: reason code.
        limit_b: largest text, bytes.

    Returns:
        Id of the new head; that of the old one when the text is the same.

    Raises:
        HeadMoved: the head is not the expected one.
        BadInput: the text cannot be taken.
    """
    part, state = found.part, fresh(tx, found)
    assert state.head is not None
    text = normalise(text)
    if not text.strip():
        raise BadInput("the text is empty")
    if len(text.encode("utf-8", "surrogatepass")) > limit_b:
        raise BadInput(f"the text is larger than {limit_b:,} bytes")
    old = tx.reader.object(part, state.head)
    if old.text == text and expected in (None, state.head):
        return state.head
    starts = tx.now if since is None else since
    if starts < state.starts:
        starts = state.starts
    if isinstance(old, Memory):
        new: encode.Obj = msgspec.structs.replace(old, salt=encode.ZERO_SALT, text=text, span=None)
        if old.triple is not None:
            starts = state.starts  # other words for the same fact: it holds as long as before
    else:
        new = msgspec.structs.replace(old, salt=encode.ZERO_SALT, text=text, raw=None)
    return _new_head(tx, part, found.ref, state, new, "revise", starts, reason, expected)


def rollback(
    tx: Tx, found: Found, to: bytes | None, *, expected: bytes | None = None, reason: str = ""
) -> bytes:
    """Make an earlier revision the head again.

    Args:
        tx: the write transaction.
        found: the ref.
        to: object id of the revision; None for the one before the head.
        expected: the head that the caller read, or None.
        reason: reason code.

    Returns:
        Id of the head.

    Raises:
        NotFound: it was never a revision of this ref.
        Refused: there is none before.
    """
    part, state = found.part, fresh(tx, found)
    heads = revisions(tx, part, state)
    if to is None:
        if len(heads) < 2:
            raise Refused(f"'{oid.short(found.ref)}' has one revision only")
        to = heads[-2] if heads[-1] == state.head else heads[-1]
    if to not in heads:
        raise NotFound(f"'{oid.short(to)}' is no revision of '{oid.short(found.ref)}'")
    if to == state.head:
        return to
    obj = tx.reader.object(part, to)
    return _new_head(
        tx, part, found.ref, state, obj, "rollback", tx.now, reason, expected, existing=to
    )


def revisions(tx: Tx, part: Part, state: refs.RefState) -> list[bytes]:
    """Heads of a ref in the order in which they came, each once at its last place."""
    seen: dict[bytes, None] = {}
    for entry in tx.reader.entries(part, state):
        if entry.new is not None and entry.new not in seen:
            seen[entry.new] = None
    return list(reversed(seen))


def close(
    tx: Tx, found: Found, at: int, *, reason: str = "", expected: bytes | None = None
) -> None:
    """End the validity of a ref at an instant.

    Raises:
        Refused: it is closed or replaced already.
        UsageError: the end is not after its beginning.
    """
    state = fresh(tx, found)
    if state.flags & refs.CLOSED:
        raise Refused(f"'{oid.short(found.ref)}' is closed already", hint="'remem reopen' opens it")
    if state.replaced_by is not None:
        raise Refused(f"'{oid.short(found.ref)}' was replaced by '{oid.short(state.replaced_by)}'")
    if at <= state.starts and state.valid_from is not None:
        raise UsageError("the end is not after the beginning")
    tx.record(found.part, "close", found.ref, state, reason=reason, expected=expected, valid_to=at)
    _relink(tx, found.part, found.ref)


def reopen(tx: Tx, found: Found, *, reason: str = "", expected: bytes | None = None) -> None:
    """Take back a close.

    Raises:
        Refused: it is not closed.
    """
    state = fresh(tx, found)
    if not state.flags & refs.CLOSED:
        raise Refused(f"'{oid.short(found.ref)}' is not closed")
    tx.record(
        found.part, "reopen", found.ref, state, reason=reason, expected=expected, valid_to=None
    )
    _relink(tx, found.part, found.ref)


def supersede(
    tx: Tx, found: Found, by: bytes, at: int, *, expected: bytes | None = None, reason: str = ""
) -> None:
    """End a ref where another one takes its place.

    Args:
        tx: the write transaction.
        found: the ref that ends.
        by: the ref that takes its place, in the same partition.
        at: when, microseconds UTC.
        expected: the head that the caller read, or None.
        reason: reason code.

    Raises:
        Refused: it was replaced already, or would replace itself.
    """
    part, state = found.part, fresh(tx, found)
    if by == found.ref:
        raise Refused("a statement cannot correct itself")
    if state.replaced_by is not None:
        raise HeadMoved(
            f"'{oid.short(found.ref)}' was replaced by '{oid.short(state.replaced_by)}' already",
            hint="correct that one instead",
        ).audited("supersede", "replaced", part.number, found.ref)
    at = min(at, tx.now)
    tx.record(
        part,
        "supersede",
        found.ref,
        state,
        reason=reason or "corrected",
        expected=expected,
        valid_to=max(at, state.starts),
        replaced_by=by,
    )
    if state.type == refs.OBSERVATION and state.head is not None:
        cascade(tx, part, state.head, None, at, "corrected")


def cascade(
    tx: Tx, part: Part, observation: bytes, successor: bytes | None, at: int, reason: str
) -> list[bytes]:
    """Carry a change of an observation to the memories that cite it.

    A memory with other evidence keeps it and loses this citation (or has it pointed to the
    successor when a person stated it); a derived one without other evidence ends at that instant.

    Returns:
        Refs of the memories that changed.
    """
    changed = []
    for ref in tx.reader.cited_by(part, observation):
        state, memory = memories.head(tx, part, ref)
        others = [c for c in memory.cites if c != observation]
        if successor is not None and memory.deriver.name == STATED:
            others = [successor if c == observation else c for c in memory.cites]
        if others:
            memories.replace(
                tx, part, ref, state, memories.with_cites(memory, others), reason=reason
            )
        elif state.replaced_by is None and not state.flags & refs.CLOSED:
            tx.record(part, "close", ref, state, reason=reason, valid_to=max(at, state.starts))
            _relink(tx, part, ref)
        changed.append(ref)
    return changed


STATED = "stated"  # name of the deriver of what a person stated


def undo(tx: Tx, part: Part, seq: int) -> list[refs.Entry]:
    """Reverse the operation that an entry belongs to, by new entries.

    An operation is everything that one transaction changed.  Undoing a create withholds it as
    rejected; undoing that brings it back.

    Returns:
        The new entries.

    Raises:
        Refused: something of it was purged, or changed again since.
    """
    chosen = tx.reader.entry(part, seq)
    entries = [e for e in tx.reader.log(part, after=seq - 1) if e.time == chosen.time]
    for entry in tx.reader.log(part, until=seq - 1, reverse=True):
        if entry.time != chosen.time:
            break
        entries.insert(0, entry)
    made: list[refs.Entry] = []
    for ref in dict.fromkeys(e.ref for e in reversed(entries)):
        own = [e for e in entries if e.ref == ref]
        if any(refs.OPS[e.op] in ("erase", "purge") for e in own):
            raise Refused("what was forgotten stays forgotten", hint="add it again with add")
        state = tx.reader.state(part, ref)
        if state is None or state.last != own[-1].seq:
            raise Refused(
                f"'{oid.short(ref)}' was changed again since", hint="undo the later change first"
            )
        before = refs.fold(
            reversed([e for e in tx.reader.entries(part, state) if e.seq < own[0].seq])
        )
        made.append(_restore(tx, part, ref, state, before))
    return made


def _restore(
    tx: Tx, part: Part, ref: bytes, state: refs.RefState, before: refs.RefState | None
) -> refs.Entry:
    """Bring a ref back to a state that it had; None: to not having been said."""
    if before is None:
        return tx.record(part, "reject", ref, state, status="rejected", reason="undo")
    closed_before, closed_now = before.flags & refs.CLOSED, state.flags & refs.CLOSED
    status = refs.STATUSES[before.status]
    if before.head != state.head:
        op = "rollback"
    elif before.status != state.status:
        op = "release" if status not in ("rejected",) else "reject"
    elif closed_before and not closed_now:
        op = "close"
    elif before.replaced_by is not None:
        op = "supersede"
    else:
        op = "reopen"
    entry = tx.record(
        part,
        op,
        ref,
        state,
        new=before.head if before.head != state.head else None,
        status=status,
        reason="undo",
        valid_from=before.valid_from,
        valid_to=before.valid_to,
        replaced_by=before.replaced_by,
    )
    if before.head != state.head and before.head is not None and state.head is not None:
        _recite(tx, part, ref, state.head, before.head)
    return entry


def _recite(tx: Tx, part: Part, ref: bytes, old: bytes, new: bytes) -> None:
    """Keep the citation rows in step with the head."""
    was, now = tx.reader.object(part, old), tx.reader.object(part, new)
    if isinstance(was, Memory) and isinstance(now, Memory):
        for cited in was.cites:
            tx.txn.delete("cites", part.prefix + cited + ref)
        for cited in now.cites:
            tx.txn.put("cites", part.prefix + cited + ref, b"")


def _new_head(
    tx: Tx,
    part: Part,
    ref: bytes,
    state: refs.RefState,
    new: encode.Obj,
    op: str,
    starts: int,
    reason: str,
    expected: bytes | None,
    existing: bytes | None = None,
) -> bytes:
    old_head = state.head
    assert old_head is not None
    object_id = tx.put_revision(part, ref, new) if existing is None else existing
    tx.record(
        part,
        op,
        ref,
        state,
        new=object_id,
        reason=reason,
        expected=expected,
        valid_from=starts,
    )
    if isinstance(new, Memory):
        _recite(tx, part, ref, old_head, object_id)
        _relink(tx, part, ref)
    elif isinstance(new, Observation):
        cascade(tx, part, old_head, object_id, starts, "revised")
    return object_id


def _relink(tx: Tx, part: Part, ref: bytes) -> None:
    state = tx.reader.state(part, ref)
    if state is None or state.head is None or state.type != refs.MEMORY:
        return
    memory = tx.reader.object(part, state.head)
    if isinstance(memory, Memory):
        key = chains.chain_of(tx, part, ref, memory)
        if key is not None:
            chains.relink(tx, part, key)
