"""Links of a chain: which fact holds until when, and what takes its place.

Each write sorts the chain by valid time and relinks it: a fact holds until the next one begins, and
is replaced by it.  Links follow from the facts, and are recorded with the reason ``chain``.  Beside
them a fact has an end of its own: as stated with it, as it was closed, or where something outside
of the chain took its place.  Whichever comes first counts.

A fact that is interrupted by one with a stated end holds again behind it.  What is withheld links
nothing, a fact is replaced only by one of at least its own standing, and of two facts that people
stated from the same instant on neither replaces the other: both are shown, as a conflict.  A fact
that ended where it began holds at no time, and takes the place of nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import msgspec

from remem.objects import encode, memories, refs
from remem.objects.evidence import REPEATS, repeats
from remem.objects.model import Memory
from remem.objects.names import chain_key, find_chain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

LINK = "chain"  # reason of the entries that link a chain
FOLLOWS = "follows"  # reason of a change that goes with one of the evidence or of the fact
RESUMES = "resumes"  # key of ``meta``: the ref of the fact that holds again
OPEN, ENDS, RESUMED = b"", b"e", b"r"  # values of a row: no stated end, a stated end, holds again

_HIGH = frozenset(refs.STATUS_CODE[s] for s in ("verified", "provisional"))
_LOW = frozenset(refs.STATUS_CODE[s] for s in ("model_claim", refs.UNVOUCHED))
THERE = _HIGH | _LOW  # statuses of the facts that chains link
_ENDS = frozenset(refs.OP_CODE[op] for op in ("supersede", "close", "reopen"))


class Member:
    """One fact of a chain; its object is read when it is asked for.

    Attributes:
        ref: id of the ref.
        state: its state.
        begins: when its first revision began to hold, microseconds UTC.
        mark: value of its row: OPEN, ENDS or RESUMED.
    """

    __slots__ = ("_memory", "_part", "_reader", "begins", "mark", "ref", "state")

    def __init__(
        self,
        reader: Reader,
        part: Part,
        ref: bytes,
        state: refs.RefState,
        begins: int,
        mark: bytes,
    ) -> None:
        """Bind a ref that is the head of a memory."""
        self.ref = ref
        self.state = state
        self.begins = begins
        self.mark = mark
        self._reader = reader
        self._part = part
        self._memory: Memory | None = None

    @property
    def memory(self) -> Memory:
        """Its head."""
        if self._memory is None:
            assert self.state.head is not None
            obj = self._reader.object(self._part, self.state.head)
            assert isinstance(obj, Memory)
            self._memory = obj
        return self._memory

    @property
    def place(self) -> tuple[int, int]:
        """What orders it in its chain."""
        return self.begins, self.state.first

    @property
    def is_empty(self) -> bool:
        """Whether it holds at no time, as it is linked now."""
        return self.state.valid_to is not None and self.state.valid_to <= self.begins

    def now(self, state: refs.RefState) -> Member:
        """The same fact with another state of the same head."""
        other = Member(self._reader, self._part, self.ref, state, self.begins, self.mark)
        other._memory = self._memory
        return other


class Ending(msgspec.Struct, frozen=True):
    """End of a fact apart from its neighbours.

    Attributes:
        at: when, microseconds UTC, or None.
        by: what took its place, or None.
        closed: whether it was closed.
        follows: whether it ended with its evidence, and nobody said that the fact has.
    """

    at: int | None
    by: bytes | None
    closed: bool
    follows: bool = False


def members(reader: Reader, part: Part, key: bytes) -> list[Member]:
    """Facts of a chain that may be shown, in order of valid time."""
    found = list(_members(reader, part, key))
    found.sort(key=lambda m: m.place)
    return found


def _members(reader: Reader, part: Part, key: bytes) -> Iterator[Member]:
    for row, mark in reader.txn.scan_prefix("chains", key):
        member = member_of(reader, part, row[len(key) :], bytes(mark))
        if member is not None:
            yield member


def member_of(reader: Reader, part: Part, ref: bytes, mark: bytes = b"") -> Member | None:
    """A fact as a member of its chain, or None when it is withheld or gone."""
    state = reader.state(part, ref)
    if state is None or state.head is None or state.status not in THERE:
        return None
    return Member(reader, part, ref, state, begins(reader, part, ref, state), mark)


def begins(reader: Reader, part: Part, ref: bytes, state: refs.RefState) -> int:
    """When the first revision of a ref began to hold."""
    # A rollback to the first object would begin at its own time, which is after the creation.
    untouched = state.head == ref and state.starts <= state.created
    if state.first == state.last or untouched:
        return state.starts
    first = reader.entry(part, state.first)
    return first.time if first.valid_from is None else first.valid_from


def ending(reader: Reader, part: Part, member: Member) -> Ending:
    """The end of a fact apart from its neighbours."""
    state = member.state
    if state.first != state.last and (state.replaced_by is not None or state.flags & refs.CLOSED):
        for entry in reader.entries(part, state):
            if entry.op in _ENDS and entry.reason != LINK:
                if refs.OPS[entry.op] == "reopen":
                    break
                closed = refs.OPS[entry.op] == "close"
                follows = entry.reason == FOLLOWS
                return Ending(entry.valid_to, entry.replaced_by, closed, follows)
    return Ending(member.memory.valid_to, None, False)


def holding(chain: list[Member], at: int) -> list[Member]:
    """The facts of a chain that hold at an instant; more than one only in a conflict."""
    found = []
    floor: int | None = None  # all that began before it ended with it at the latest
    for index in range(bisect_right(chain, at, key=lambda m: m.begins) - 1, -1, -1):
        member = chain[index]
        if floor is not None and member.begins < floor:
            break
        ends = member.state.valid_to
        if ends is None or at < ends:
            found.append(member)
        if member.state.status in _HIGH and not member.is_empty:
            floor = member.begins
    return found


def mark_of(memory: Memory) -> bytes:
    """Value of the row of a fact in its chain."""
    if RESUMES in memory.meta:
        return RESUMED
    return OPEN if memory.valid_to is None else ENDS


# -- linking ------------------------------------------------------------------------------------


class Held:
    """Chains as one transaction knows them, so that many facts of one chain cost no reading."""

    def __init__(self) -> None:
        """Begin with none."""
        self._chains: dict[bytes, list[Member]] = {}

    def of(self, reader: Reader, part: Part, key: bytes) -> list[Member]:
        """The members of a chain, in order."""
        if key not in self._chains:
            self._chains[key] = members(reader, part, key)
        return self._chains[key]

    def drop(self, key: bytes | None = None) -> None:
        """Forget a chain that was changed otherwise, or all."""
        if key is None:
            self._chains.clear()
        else:
            self._chains.pop(key, None)


def join(tx: Tx, part: Part, key: bytes, ref: bytes, held: Held | None = None) -> None:
    """Put a fact that is stored already into a chain, and link it with its neighbours."""
    held = Held() if held is None else held
    tx.flush()
    chain = held.of(tx.reader, part, key)
    if not tx.txn.put_new("chains", key + ref, OPEN):
        return
    member = member_of(tx.reader, part, ref)
    if member is None:
        return
    mark = member.mark = mark_of(member.memory)
    if mark != OPEN or any(m.mark != OPEN for m in chain):
        held.drop(key)
        relink(tx, part, key)
        return
    at = bisect_right(chain, member.place, key=lambda m: m.place)
    chain.insert(at, member)
    low = at
    while low > 0:  # back to the first fact that ends all before it
        low -= 1
        before = chain[low]
        ends_all = before.state.status in _HIGH and not before.is_empty
        if before.begins < member.begins and ends_all:
            low = bisect_right(chain, chain[low].begins - 1, key=lambda m: m.begins)
            break
    high = bisect_right(chain, member.begins, key=lambda m: m.begins)
    _link(tx, part, chain, low, high)


def leave(tx: Tx, part: Part, key: bytes, ref: bytes) -> None:
    """Take a fact out of a chain and relink the others."""
    tx.txn.delete("chains", key + ref)
    relink(tx, part, key)


def relink(tx: Tx, part: Part, key: bytes) -> None:
    """Give every fact of a chain the end and the successor that its neighbours imply."""
    tx.flush()
    chain = members(tx.reader, part, key)
    for member in chain:
        mark = mark_of(member.memory)
        if mark != member.mark:
            member.mark = mark
            tx.txn.put("chains", key + member.ref, mark)
    if any(m.mark != OPEN for m in chain) and _settle(tx, part, key, chain):
        chain = members(tx.reader, part, key)
    _link(tx, part, chain, 0, len(chain))


def relink_of(tx: Tx, part: Part, ref: bytes) -> None:
    """Relink the chain of a memory whose status, end or head has changed."""
    state = tx.reader.state(part, ref)
    if state is None or state.head is None or state.type != refs.MEMORY:
        return
    obj = tx.reader.object(part, state.head)
    if isinstance(obj, Memory):
        key = find_chain(tx.reader, part, ref, obj)
        if key is not None:
            relink(tx, part, key)


def _link(tx: Tx, part: Part, chain: list[Member], low: int, high: int) -> None:
    """Link chain[low:high]; what is behind them is not changed."""
    tx.flush()
    for index in range(low, high):
        member = chain[index]
        own = ending(tx.reader, part, member)
        after = _successor(tx.reader, part, chain, index)
        end, by, closed = own.at, own.by, own.closed
        if after is not None and (end is None or after.begins <= end):
            end, by, closed = after.begins, after.ref, False
        state = member.state
        if (state.valid_to, state.replaced_by) == (end, by):
            continue
        keeps_closed = closed or (by is not None and bool(state.flags & refs.CLOSED))
        op = "supersede" if by is not None else "close" if keeps_closed else "reopen"
        tx.record(part, op, member.ref, state, reason=LINK, valid_to=end, replaced_by=by)
        fresh = tx.reader.state(part, member.ref)
        assert fresh is not None
        chain[index] = member.now(fresh)


def _successor(reader: Reader, part: Part, chain: list[Member], index: int) -> Member | None:
    """The fact that takes the place of one: the next that begins later and stands as high.

    Of facts that begin at the same instant the one recorded later takes the place of one that was
    derived from the same occasion; what people stated stands beside the other.
    """
    member = chain[index]
    high = member.state.status in _HIGH
    for after in chain[index + 1 :]:
        if high and after.state.status not in _HIGH:
            continue
        if after.is_empty and not _covers(reader, part, after, after.begins):
            continue
        if after.begins > member.begins or (_derived(member) and _derived(after)):
            return after
    return None


def _derived(member: Member) -> bool:
    return member.memory.deriver.name != memories.STATED


# -- interruptions ------------------------------------------------------------------------------


def _settle(tx: Tx, part: Part, key: bytes, chain: list[Member]) -> bool:
    """Let facts hold again behind those with a stated end; True when something changed.

    A fact that was interrupted holds again as a fact of its own, which follows from the others as
    links do: it is made, changed and withdrawn with the reason ``chain``.
    """
    wanted = _interruptions(tx.reader, part, [m for m in chain if m.mark != RESUMED])
    there = {m.begins: m for m in chain if m.mark == RESUMED}
    changed = False
    for at, member in there.items():
        holder = wanted.get(at)
        if holder is None or member.memory.meta.get(RESUMES) != holder.ref.hex():
            tx.record(part, "reject", member.ref, member.state, status="rejected", reason=LINK)
            changed = True
            continue
        copy, own = _copy(holder, at), member.memory
        if msgspec.structs.replace(own, salt=copy.salt) != copy:
            memories.replace(tx, part, member.ref, member.state, copy, reason=LINK)
            changed = True
        del wanted[at]
    for at, holder in wanted.items():
        _again(tx, part, key, _copy(holder, at), refs.STATUSES[holder.state.status], at)
        changed = True
    tx.flush()
    return changed


def _interruptions(reader: Reader, part: Part, stated: list[Member]) -> dict[int, Member]:
    """Instant -> the fact that holds again from then on, because what interrupted it has ended."""
    found: dict[int, Member] = {}
    for member in stated:
        end = member.memory.valid_to if member.mark == ENDS else None
        if end is None or ending(reader, part, member).at != end:
            continue
        upto = bisect_right(stated, end, key=lambda m: m.begins)
        for place in range(upto - 1, -1, -1):
            holder = stated[place]
            if holder is member or not _covers(reader, part, holder, end):
                continue
            if holder.place < member.place:
                found[end] = holder
            break  # else something has begun meanwhile
    return found


def _covers(reader: Reader, part: Part, member: Member, at: int) -> bool:
    own = ending(reader, part, member).at
    return own is None or at < own


def _copy(holder: Member, at: int) -> Memory:
    """What an interrupted fact says when it holds again."""
    old = holder.memory
    meta: dict[str, object] = {k: v for k, v in old.meta.items() if k != REPEATS}
    later = [[cited.hex(), t] for cited, t in repeats(old) if t > at]
    if later:
        meta[REPEATS] = later
    meta[RESUMES] = holder.ref.hex()
    return msgspec.structs.replace(memories.with_cites(old, old.cites), valid_from=at, meta=meta)


def _again(tx: Tx, part: Part, key: bytes, memory: Memory, status: str, at: int) -> None:
    """Begin a fact that holds again, or release the one that was withdrawn before."""
    assert memory.triple is not None
    ref = memories.create(
        tx,
        part,
        memory,
        status=status,
        valid_from=at,
        valid_to=memory.valid_to,
        reason=LINK,
        single=key == chain_key(tx.reader, part, memory.triple, single=True),
    )
    if ref is None:
        ref = tx.reader.ref_of(part, encode.seal(memory, part.key)[0])
        state = tx.reader.state(part, ref)
        assert state is not None
        tx.flush()
        if tx.reader.entry(part, state.last).reason != LINK:
            return  # somebody rejected it: a verdict stands
        tx.record(part, "release", ref, state, status=status, reason=LINK)
    tx.txn.put("chains", key + ref, RESUMED)
