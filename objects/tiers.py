"""Short notes: evidence that is kept for some days only, unless somebody promotes it.

A short note is an observation with ``tier: short`` in its metadata whose ref has an end.  From that
instant on the view ``now`` does not show it, whether anything has run or not; what runs from time
to time (`expire`) then withholds it for good.

What a note lasts by:

* Said again, short, it lasts a full term from then on.  Said again without a tier it is evidence of
  its own, kept for good; and what is kept for good already is not kept a second time as a note.
* Promoted, it is kept like any other evidence.  Stating a memory that rests on it, and pinning it,
  promote it: what somebody builds on does not vanish below it.
* Nothing is derived from a note before it is promoted, so that a note never takes the place of a
  fact that holds for longer than the note does.  A memory that rests on a note alone all the same
  expires with it; one with other evidence stays.  A note is kept, not expired, when a memory that
  was stated, verified, pinned or held rests on nothing else.
* Closed or replaced, it is history and does not expire.

Source: remem-store(5), LISTS; remem-promote(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import authorship, carry, chains, lists, memories, oid, refs
from remem.objects.admit import DEFAULT_LIMIT_B, Admitted, admit
from remem.objects.errors import Refused, ScopeRefused, UsageError
from remem.objects.lists import SHORT_TIER, TIER
from remem.objects.model import Memory, Observation
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.encode import Obj
    from remem.objects.forget_plan import Item
    from remem.objects.model import Incoming
    from remem.objects.reader import Found, Part, Reader
    from remem.objects.tx import Tx

TIERS = (SHORT_TIER,)
SHORT_DAYS = 8
MAX_DAYS = 36_500
DAY_US = 86_400_000_000
PROLONGS = 8  # a repeat that adds less than this part of the term is not worth an entry
BATCH = 20_000  # notes that one run of expire takes

# Reason codes of entries.
RAN_OUT, NOISE, AGAIN, CITED, PINNED = "short", "noise", "again", "cited", "pinned"

EXPIRED = refs.STATUS_CODE["expired"]
_HIDDEN = frozenset(refs.STATUS_CODE[status] for status in WITHHELD)
_VERIFIED = refs.STATUS_CODE["verified"]
_LASTS = frozenset(refs.OP_CODE[op] for op in ("create", "promote", "reopen"))


class Expired(msgspec.Struct):
    """What was expired.

    Attributes:
        notes: refs of the notes.
        memories: refs of the memories that rested on them alone.
        kept: notes that were kept because a memory rests on nothing else.
        left: notes that are due and were left for the next run.
    """

    notes: list[bytes] = []
    memories: list[bytes] = []
    kept: list[bytes] = []
    left: int = 0


class Notes(msgspec.Struct):
    """How many short notes live, and when the next one ends (microseconds UTC)."""

    count: int = 0
    next: int | None = None


# -- taking notes -------------------------------------------------------------------------------


def note(
    tx: Tx, record: Incoming, *, days: int = SHORT_DAYS, limit_b: int = DEFAULT_LIMIT_B
) -> Admitted:
    """Take one piece of evidence in for some days.

    Args:
        tx: the write transaction.
        record: what came in.
        days: its term.
        limit_b: largest text, bytes of UTF-8.

    Raises:
        UsageError: the term is none.
        BadInput, ScopeRefused: as `admit` does.
    """
    if not 1 <= days <= MAX_DAYS:
        raise UsageError(f"a short note lasts 1 to {MAX_DAYS:,} days, not {days:,}")
    term = days * DAY_US
    short = msgspec.structs.replace(record, meta={**record.meta, TIER: SHORT_TIER})
    admitted = admit(tx, short, limit_b=limit_b, lasts=term)
    if admitted.status == "known":
        part = tx.part(tx.place(record.collection, record.agent, record.session))
        _prolong(tx, part, admitted.ref, term)
    return admitted


def _prolong(tx: Tx, part: Part, ref: bytes, term: int) -> None:
    """Let a note that was said again last a full term from now."""
    state = tx.reader.state(part, ref)
    if state is None or state.valid_to is None or state.head is None:
        return
    if not is_short(state, tx.reader.object(part, state.head)) or state.status in _HIDDEN:
        return
    ends = tx.present + term
    if (ends - state.valid_to) * PROLONGS >= term and _may_change(tx, part, ref, state):
        tx.record(part, "promote", ref, state, reason=AGAIN, valid_to=ends)


def is_short(state: refs.RefState, obj: Obj) -> bool:
    """True for a note that ends by itself: not promoted, not closed, not replaced."""
    if state.type != refs.OBSERVATION or state.valid_to is None:
        return False
    own = state.replaced_by is None and not state.flags & refs.CLOSED
    return own and isinstance(obj, Observation) and obj.meta.get(TIER) == SHORT_TIER


def own_end(entries: Iterable[refs.Entry]) -> int | None:
    """When evidence ends by itself: its term as the log has it, None for evidence kept for good.

    Args:
        entries: of the ref, newest first.
    """
    return next((entry.valid_to for entry in entries if entry.op in _LASTS), None)


# -- keeping what was a note --------------------------------------------------------------------


def promote(tx: Tx, found: Found, *, reason: str = "") -> bool:
    """Keep a short note for good; one that has expired is shown again.

    Returns:
        False when it was kept for good already.

    Raises:
        Refused: it is no short note, was closed or was replaced.
        ScopeRefused: it has expired, and the principal is not the owner.
        NotFound, Forgotten: it is gone.
    """
    tx.flush()
    part, ref = found.part, found.ref
    state = carry.fresh(tx, found, op="promote")
    assert state.head is not None
    obj = tx.reader.object(part, state.head)
    if not isinstance(obj, Observation) or obj.meta.get(TIER) != SHORT_TIER:
        raise Refused(
            f"'{oid.short(ref)}' is no short note, it is kept anyway",
            hint="only what 'remem add --tier short' took in ends by itself",
        )
    if state.replaced_by is not None:
        raise Refused(f"'{oid.short(ref)}' was replaced by '{oid.short(state.replaced_by)}'")
    if state.flags & refs.CLOSED:
        raise Refused(f"'{oid.short(ref)}' was closed", hint="'remem reopen' takes that back")
    if state.status == EXPIRED:
        _revive(tx, part, ref, state, reason)
        return True
    if state.valid_to is None:
        return False
    tx.record(part, "promote", ref, state, reason=reason, valid_to=None)
    return True


def _revive(tx: Tx, part: Part, ref: bytes, state: refs.RefState, reason: str) -> None:
    """Show a note again that has expired, and what expired with it."""
    if not tx.actor.grant.owner:
        raise ScopeRefused(
            f"'{oid.short(ref)}' has expired, only the owner brings it back"
        ).audited("promote", "not_owner", part.number, ref)
    status = _status_before(tx, part, state)
    tx.record(part, "promote", ref, state, status=status, reason=reason, valid_to=None)
    assert state.head is not None
    for memory in tx.reader.cited_by(part, state.head):
        other = tx.reader.state(part, memory)
        if other is None or other.status != EXPIRED:
            continue
        if tx.reader.entry(part, other.last).reason == carry.FOLLOWS:
            status = _status_before(tx, part, other)
            tx.record(part, "promote", memory, other, status=status, reason=carry.FOLLOWS)
            tx.flush()
            chains.relink_of(tx, part, memory)


def _status_before(tx: Tx, part: Part, state: refs.RefState) -> str:
    """The status that a ref had before it expired."""
    for entry in tx.reader.entries(part, state):
        if entry.status != EXPIRED:
            return refs.STATUSES[entry.status]
    return "provisional"


def keep_cited(tx: Tx, part: Part, cited: bytes, status: str) -> None:
    """Promote the note that a memory is about to rest on, unless the memory is withheld itself."""
    if status in WITHHELD:
        return
    tx.flush()
    ref = tx.reader.ref_of(part, cited)
    state = tx.reader.state(part, ref)
    if state is None or state.head is None or state.status in _HIDDEN:
        return
    short = is_short(state, tx.reader.object(part, state.head))
    if short and _may_change(tx, part, ref, state):
        tx.record(part, "promote", ref, state, reason=CITED, valid_to=None)


def _may_change(tx: Tx, part: Part, ref: bytes, state: refs.RefState) -> bool:
    grant = tx.actor.grant
    if authorship.trusted(grant):
        return True
    return authorship.owns(tx.reader, part, ref, state, grant.principal)


# -- letting go ---------------------------------------------------------------------------------


def notes(reader: Reader, part: Part, now: int) -> Notes:
    """The short notes of a partition that live."""
    found = Notes()
    for _, state in _notes(reader, part):
        assert state.valid_to is not None
        if state.valid_to > now:
            found.count += 1
            found.next = min(found.next or state.valid_to, state.valid_to)
    return found


def due(reader: Reader, now: int) -> list[Item]:
    """Short notes whose time is over and that nothing keeps."""
    return [
        (part, ref)
        for part in reader.parts
        for ref, state in _notes(reader, part)
        if refs.ran_out(state, now) and not state.flags & (refs.PINNED | refs.HELD)
    ]


def _notes(reader: Reader, part: Part) -> list[tuple[bytes, refs.RefState]]:
    """The short notes of a partition that are shown, or were until their time was over."""
    found = []
    for ref, state in lists.members(reader, part, lists.SHORT):
        if state.status in _HIDDEN or state.head is None or state.valid_to is None:
            continue
        if state.replaced_by is None and not state.flags & refs.CLOSED:
            found.append((ref, state))
    return found


def expire(tx: Tx, now: int | None = None, *, most: int = BATCH) -> Expired:
    """Withhold the short notes whose time is over, and what rests on them alone.

    Args:
        tx: the write transaction.
        now: what is due then, microseconds UTC; None for the present.
        most: at most so many notes in one run.
    """
    tx.flush()
    items = due(tx.reader, tx.present if now is None else now)
    done = Expired(left=max(0, len(items) - most))
    for part, ref in items[:most]:
        _let_go(tx, part, ref, RAN_OUT, done)
    return done


def noise(tx: Tx, found: Found) -> Expired:
    """Withhold what the owner says is not worth keeping, before its time.

    Raises:
        Refused: it is a verified memory, or pinned, held or withheld, or a memory that keeps it
            rests on nothing else.
        NotFound, Forgotten: it is gone.
    """
    tx.flush()
    part, ref = found.part, found.ref
    state = carry.fresh(tx, found, op="expire")
    why = why_no_noise(tx.reader, part, state)
    if why:
        raise Refused(f"'{oid.short(ref)}' {why}")
    done = Expired()
    _let_go(tx, part, ref, NOISE, done)
    return done


def why_no_noise(reader: Reader, part: Part, state: refs.RefState) -> str:
    """Why something cannot be let go as noise, as the end of a sentence; empty when it can."""
    if state.flags & refs.PINNED:
        return "is pinned"
    if state.flags & refs.HELD:
        return "is held"
    if state.status in _HIDDEN:
        return f"is {refs.STATUSES[state.status]}"
    if state.type == refs.MEMORY:
        return "is a verified memory" if state.status == _VERIFIED else ""
    keepers, _ = _resting(reader, part, state)
    return f"is all that '{oid.short(keepers[0])}' rests on" if keepers else ""


def _let_go(tx: Tx, part: Part, ref: bytes, reason: str, done: Expired) -> None:
    state = tx.reader.state(part, ref)
    assert state is not None
    keepers, followers = _resting(tx.reader, part, state)
    if keepers:
        tx.record(part, "promote", ref, state, reason=CITED, valid_to=None)
        done.kept.append(ref)
        return
    tx.record(part, "expire", ref, state, status="expired", reason=reason)
    done.notes.append(ref)
    if state.type == refs.MEMORY:
        tx.flush()
        chains.relink_of(tx, part, ref)
    for memory in followers:
        other = tx.reader.state(part, memory)
        assert other is not None
        tx.record(part, "expire", memory, other, status="expired", reason=carry.FOLLOWS)
        tx.flush()
        chains.relink_of(tx, part, memory)
        done.memories.append(memory)


def _resting(reader: Reader, part: Part, state: refs.RefState) -> tuple[list[bytes], list[bytes]]:
    """(memories that keep an observation, memories that go with it) of those on it alone."""
    keepers: list[bytes] = []
    followers: list[bytes] = []
    if state.type != refs.OBSERVATION or state.head is None:
        return keepers, followers
    for ref in reader.cited_by(part, state.head):
        other = reader.state(part, ref)
        if other is None or other.head is None or other.status in _HIDDEN:
            continue
        memory = reader.object(part, other.head)
        if not isinstance(memory, Memory) or state.head not in memory.cites:
            continue
        if any(_lives(reader, part, cited) for cited in memory.cites if cited != state.head):
            continue
        stated = memory.deriver.name == memories.STATED or other.status == _VERIFIED
        marked = other.flags & (refs.PINNED | refs.HELD)
        (keepers if stated or marked else followers).append(ref)
    return keepers, followers


def _lives(reader: Reader, part: Part, cited: bytes) -> bool:
    """Whether a citation leads to evidence that is still shown."""
    state = reader.state(part, reader.ref_of(part, cited))
    if state is None or state.head is None:
        return False
    return state.status not in _HIDDEN
