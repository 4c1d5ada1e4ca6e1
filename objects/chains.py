"""Chains: what was said of one subject and predicate, in the order in which it held.

A predicate with one value at a time makes one chain for (partition, subject, predicate); one with
many values makes a chain for each object as well.  So a fact learnt late about an earlier date
lands in the past, and one about the future waits for its day (`remem.objects.links`).  Keys of
chains are keyed digests: they tell nothing once the facts are gone.

A fact said again adds evidence, not a row; the instants of which it was said are kept, so that what
is learnt late about a time between two of them does not replace the later one.  A fact that ended
because its evidence was replaced takes none: the later form of that evidence says it anew.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import msgspec

from remem.objects import gate, memories, refs, withheld
from remem.objects.errors import RememError
from remem.objects.evidence import REPEATS, repeats
from remem.objects.links import (
    LINK,
    RESUMED,
    RESUMES,
    Ending,
    Held,
    Member,
    begins,
    ending,
    holding,
    join,
    leave,
    member_of,
    members,
    relink,
    relink_of,
)
from remem.objects.model import Memory
from remem.objects.names import (
    SINGLE_VALUED,
    alias_key,
    canonical,
    chain_key,
    find_chain,
    fold,
    is_single,
    key_by,
    keys_of,
    qualifier,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remem.objects.reader import Part
    from remem.objects.tx import Tx

__all__ = [
    "LINK",
    "RESUMES",
    "SINGLE_VALUED",
    "WITHDRAWN",
    "Ending",
    "Held",
    "Member",
    "alias_key",
    "begins",
    "canonical",
    "chain_key",
    "chain_of",
    "ending",
    "find_chain",
    "fold",
    "holding",
    "is_single",
    "join",
    "key_by",
    "keys_of",
    "leave",
    "member_of",
    "members",
    "put",
    "qualifier",
    "relink",
    "relink_of",
]

CLOCK = "clock"  # reason of what gives way because a clock ran ahead when it was recorded
MAX_CITES = 256  # evidence of one fact; a later repeat begins a fact of its own
WITHDRAWN = "rederived"  # reason of what its deriver no longer says, or says of another time


def chain_of(tx: Tx, part: Part, ref: bytes, memory: Memory) -> bytes | None:
    """Key of the chain that holds a memory, or None when it is in none."""
    return find_chain(tx.reader, part, ref, memory)


def put(
    tx: Tx,
    part: Part,
    memory: Memory,
    *,
    status: str,
    single: bool,
    valid_from: int | None,
    reason: str = "",
    held: Held | None = None,
    codes: Sequence[str] = (),
) -> tuple[bytes, str]:
    """Add a fact to its chain and relink it.

    A fact that is held back is kept beside the others and moves none of them.

    Args:
        tx: the write transaction.
        part: its partition.
        memory: a memory with a triple and the zero salt.
        status: its trust status.
        single: whether the predicate has one value at a time.
        valid_from: when it begins to hold, microseconds UTC; None for now.
        reason: reason code.
        held: chains that this transaction has read, kept in step.
        codes: what the gate found before, for the receipt.

    Returns:
        (ref, "new") or, when the same value held then already, (its ref, "known"): the evidence
        is added to that one, and it ends where the new statement says so.
    """
    memories.check(memory)
    memory, found = gate.memory(tx, memory)
    codes = [*codes, *found]
    assert memory.triple is not None
    held = Held() if held is None else held
    tx.flush()
    starts = tx.present if valid_from is None else valid_from
    key = chain_key(tx.reader, part, memory.triple, single=single)
    chain = held.of(tx.reader, part, key)
    waits = status in withheld.NAMES
    known = None if waits else _known(tx, part, chain, memory, starts, status)
    if known is not None:
        founder = next((m for m in chain if m.ref.hex() == known.memory.meta.get(RESUMES)), known)
        _attach(tx, part, founder, memory, starts, status)
        held.drop(key)
        if founder is not known:
            relink(tx, part, key)
        _end_where_stated(tx, part, key, known.ref, memory)
        return known.ref, "known"
    repeated = [] if waits else _repeated_later(chain, starts)
    ref = _create(tx, part, memory, status, starts, single, reason, codes)
    if not waits:
        _make_room(tx, part, key, memory, starts, ref, held)
        if valid_from is None:
            _set_right(tx, part, key, starts, ref, held)
    join(tx, part, key, ref, held)
    for at, member in repeated:
        if not _says(tx, part, held.of(tx.reader, part, key), at, member.memory):
            _from_repeat(tx, part, key, member, at, single, held)
    return ref, "new"


def _create(
    tx: Tx,
    part: Part,
    memory: Memory,
    status: str,
    starts: int,
    single: bool,
    reason: str = "",
    codes: Sequence[str] = (),
) -> bytes:
    """Begin a fact; the very same statement, when it no longer holds, is said anew."""
    ends = memory.valid_to
    for _ in range(2):
        ref = memories.create(
            tx,
            part,
            memory,
            status=status,
            valid_from=starts,
            valid_to=ends,
            reason=reason,
            codes=codes,
            single=single,
        )
        if ref is not None:
            return ref
        memory = msgspec.structs.replace(memory, meta={**memory.meta, "stated": tx.now})
    raise AssertionError("two objects of one transaction have the same id")


# -- repeats and interruptions ------------------------------------------------------------------


def _known(
    tx: Tx, part: Part, chain: list[Member], memory: Memory, starts: int, status: str
) -> Member | None:
    """The fact that says the same of the same time already.

    One of a pack that nobody vouched for stands for no other: what is believed more is said anew.
    """
    foreign = refs.STATUS_CODE[refs.UNVOUCHED]
    assert memory.triple is not None
    same = canonical(tx.reader, part, memory.triple[2])
    for member in holding(chain, starts):
        triple = member.memory.triple
        if triple is None or canonical(tx.reader, part, triple[2]) != same:
            continue
        if member.state.status == foreign and status != refs.UNVOUCHED:
            continue
        if member.state.starts > starts or len(member.memory.cites) >= MAX_CITES:
            continue  # it said something else then, or has evidence enough
        if _inherits(tx, part, memory, member):
            continue
        if len(repeats(member.memory)) < MAX_CITES:
            return member
    return None


def _attach(tx: Tx, part: Part, member: Member, said: Memory, starts: int, status: str) -> None:
    """Add evidence to a fact that says the same already; what a person states becomes stated.

    The instants from which it was said to hold are kept: a fact learnt late that belongs between
    them must not take the place of the later ones.
    """
    old, state = member.memory, member.state
    fresh = [c for c in said.cites if c not in old.cites]
    known = repeats(old)
    again = [(c, starts) for c in said.cites if starts > member.begins or c in fresh]
    again = [pair for pair in again if pair not in known]
    stated = said.deriver.name == memories.STATED and old.deriver.name != memories.STATED
    if not fresh and not again and not stated:
        return
    grown = memories.with_cites(old, [*old.cites, *fresh])
    if again:
        pairs = [[cited.hex(), at] for cited, at in (*known, *again)]
        grown = msgspec.structs.replace(grown, meta={**old.meta, REPEATS: pairs})
    if stated:
        grown = msgspec.structs.replace(
            grown, deriver=said.deriver, confidence=said.confidence, text=said.text
        )
    raised = status if stated else None
    memories.replace(
        tx, part, member.ref, state, grown, op="revise", reason=memories.EVIDENCE, status=raised
    )


def _repeated_later(chain: list[Member], starts: int) -> list[tuple[int, Member]]:
    """Later instants of which facts were said again that a new one may displace, in order."""
    displaced = [m for m in holding(chain, starts) if m.state.starts <= starts]
    displaced += [m for m in chain if m.mark == RESUMED and m.begins > starts]
    found = [(at, m) for m in displaced for _, at in repeats(m.memory) if at > starts]
    return sorted(found, key=lambda pair: pair[0])


def _says(tx: Tx, part: Part, chain: list[Member], at: int, memory: Memory) -> bool:
    """Whether a fact of the same value holds at an instant."""
    assert memory.triple is not None
    same = canonical(tx.reader, part, memory.triple[2])
    found = (m.memory.triple for m in holding(chain, at))
    return any(t is not None and canonical(tx.reader, part, t[2]) == same for t in found)


def _from_repeat(
    tx: Tx, part: Part, key: bytes, member: Member, at: int, single: bool, held: Held
) -> None:
    """Let the repeat of a fact stand as a fact of its own."""
    old = member.memory
    cites = list(dict.fromkeys(cited for cited, t in repeats(old) if t >= at))
    later = [[cited.hex(), t] for cited, t in repeats(old) if t > at]
    meta = {k: v for k, v in old.meta.items() if k not in (REPEATS, RESUMES)}
    if later:
        meta[REPEATS] = later
    again = msgspec.structs.replace(
        memories.with_cites(old, cites), valid_from=at, meta=meta, span=None
    )
    status = refs.STATUSES[member.state.status]
    ref = _create(tx, part, again, status, at, single, memories.EVIDENCE)
    held.drop(key)
    join(tx, part, key, ref, held)


def _end_where_stated(tx: Tx, part: Part, key: bytes, ref: bytes, said: Memory) -> None:
    """Close a fact of no stated end where a repeat of it says that it ended."""
    state = tx.reader.state(part, ref)
    if said.valid_to is None or state is None or state.flags & refs.CLOSED:
        return
    assert state.head is not None
    obj = tx.reader.object(part, state.head)
    if isinstance(obj, Memory) and obj.valid_to is not None:
        return
    if state.valid_to is None or said.valid_to < state.valid_to:
        tx.record(
            part, "close", ref, state, reason="ended", valid_to=said.valid_to, replaced_by=None
        )
        relink(tx, part, key)


# -- evidence that takes the place of other evidence ---------------------------------------------


def _inherits(tx: Tx, part: Part, said: Memory, member: Member) -> bool:
    """Whether a fact ended with evidence whose later form says something now.

    An amended commit says from the same day what its old form said, which has ended since; added
    to the old fact it would have ended as well.
    """
    end = ending(tx.reader, part, member)
    if not end.follows or end.closed:
        return False
    heirs = {tx.reader.ref_of(part, cited) for cited in said.cites}
    return any(_became(tx, part, source, heirs) for source in _sources(tx, part, member))


def _sources(tx: Tx, part: Part, member: Member) -> Iterator[bytes]:
    """The observations that a fact has rested on, now or before."""
    seen: set[bytes] = set()
    for entry in tx.reader.entries(part, member.state):
        if entry.new is None or entry.new in seen:
            continue
        seen.add(entry.new)
        try:
            memory = tx.reader.object(part, entry.new)
        except RememError:  # forgotten
            continue
        if isinstance(memory, Memory):
            yield from (tx.reader.ref_of(part, cited) for cited in memory.cites)


def _became(tx: Tx, part: Part, source: bytes, heirs: set[bytes]) -> bool:
    """Whether an observation is one of some by now, in any number of replacements."""
    seen: set[bytes] = set()
    at: bytes | None = source
    while at is not None and at not in seen:
        if at in heirs:
            return True
        seen.add(at)
        state = tx.reader.state(part, at)
        at = None if state is None else state.replaced_by
    return False


def _make_room(
    tx: Tx, part: Part, key: bytes, said: Memory, starts: int, ref: bytes, held: Held
) -> None:
    """Replace what began later and ended with its evidence, whose heir says it from before that.

    Such a fact would end the one that is said now where it began, and then hold no longer itself.
    """
    assert said.triple is not None
    same = canonical(tx.reader, part, said.triple[2])
    chain = held.of(tx.reader, part, key)
    gone = False
    for member in chain[bisect_right(chain, starts, key=lambda m: m.begins) :]:
        old = member.memory
        if old.triple is None or canonical(tx.reader, part, old.triple[2]) != same:
            break
        if old.deriver.name != said.deriver.name or not _inherits(tx, part, said, member):
            break
        tx.record(
            part,
            "supersede",
            member.ref,
            member.state,
            reason=WITHDRAWN,
            valid_to=member.begins,
            replaced_by=ref,
        )
        gone = True
    if gone:
        held.drop(key)
        relink(tx, part, key)


def _set_right(tx: Tx, part: Part, key: bytes, starts: int, ref: bytes, held: Held) -> None:
    """Replace what began as it was recorded, by a clock that ran ahead and was set back since.

    It would take the place of what is said now once its time came.
    """
    chain = held.of(tx.reader, part, key)
    later = chain[bisect_right(chain, starts, key=lambda m: m.begins) :]
    gone = [m for m in later if m.ref != ref and memories.began_at_once(m.memory, m.state)]
    for member in gone:
        tx.record(
            part,
            "supersede",
            member.ref,
            member.state,
            reason=CLOCK,
            valid_to=member.begins,
            replaced_by=ref,
        )
    if gone:
        held.drop(key)
        relink(tx, part, key)
