"""Chains: what was said of one subject and predicate, in the order in which it held.

A predicate with one value at a time makes one chain for (partition, subject, predicate); one with
many values makes a chain for each object as well.  Each write sorts the chain by valid time and
relinks it: a fact holds until the next one begins, and is replaced by it.  So a fact learnt late
about an earlier date lands in the past, and one about the future waits for its day.

Subjects and predicates are matched case-folded and through aliases.  A period behind the object
("5000 for 2024") belongs to the predicate, so that it does not meet what is said of another year.
Keys of chains are keyed digests: they tell nothing once the facts are gone.

Links follow from the facts, and are recorded with the reason ``chain``.  Beside them a fact has an
end of its own: as stated with it, as it was closed, or where something outside of the chain took
its place.  Whichever comes first counts.  What is withheld links nothing, a fact is replaced only
by one of at least its own standing, and of two facts that people stated from the same instant on
neither replaces the other: both are shown, as a conflict.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from typing import TYPE_CHECKING

import msgspec

from remem.objects import memories, oid, refs
from remem.objects.model import Memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

# Predicates with one value at a time unless the caller says otherwise; remem-fact(1) lists them.
SINGLE_VALUED = frozenset(
    "address age birth_year birthday born_in born_on budget capital ceo deadline default_branch"
    " email host is is_called is_from job lives_in located_in manager marital_status married_to"
    " moved_to name nationality owner path phone port role state status studies_at title url"
    " version works_at".split()
)
MAX_FOLLOW = 32  # aliases of aliases
MAX_CITES = 256  # evidence of one fact; a later repeat begins a fact of its own
LINK = "chain"  # reason of the entries that link a chain
REPEATS = "repeats"  # key of ``meta``: [observation, instant] of later statements of the same

_HIGH = frozenset(refs.STATUS_CODE[s] for s in ("verified", "provisional"))
_LOW = frozenset(refs.STATUS_CODE[s] for s in ("model_claim", "legacy_unverified"))
_THERE = _HIGH | _LOW
_ENDS = frozenset(refs.OP_CODE[op] for op in ("supersede", "close", "reopen"))
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_PERIOD = (
    rf"(?:(?:fy|fiscal(?: year)?|year|early|mid|late|q[1-4]|h[12]|{_MONTHS}|spring|summer|autumn"
    r"|fall|winter)[\s-]*)*(?:(?:19|20)\d\d(?:[-/]\d{1,4})?)?"
)
_QUALIFIER = re.compile(rf"[\s,]+(?:\(|(?:for|in|during) (?:the )?)(?P<period>{_PERIOD})\)?$")
_YEAR = re.compile(r" (?:19|20)\d\d$")


class Member:
    """One fact of a chain; its object is read when it is asked for.

    Attributes:
        ref: id of the ref.
        state: its state.
        begins: when its first revision began to hold, microseconds UTC.
    """

    __slots__ = ("_memory", "_part", "_reader", "begins", "ref", "state")

    def __init__(
        self, reader: Reader, part: Part, ref: bytes, state: refs.RefState, begins: int
    ) -> None:
        """Bind a ref that is the head of a memory."""
        self.ref = ref
        self.state = state
        self.begins = begins
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

    def now(self, state: refs.RefState) -> Member:
        """The same fact with another state of the same head."""
        other = Member(self._reader, self._part, self.ref, state, self.begins)
        other._memory = self._memory
        return other


class Ending(msgspec.Struct, frozen=True):
    """End of a fact apart from its neighbours: when, by what, and whether it was closed."""

    at: int | None
    by: bytes | None
    closed: bool


# -- names --------------------------------------------------------------------------------------


def fold(name: str) -> str:
    """A name as it is compared: compatibility form, case-folded, white space folded."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return " ".join(folded.replace("_", " ").split())


def alias_key(part: Part, name: str) -> bytes:
    """Key of an alias: a keyed digest of the folded name."""
    return part.prefix + oid.keyed(part.key, b"alias", fold(name).encode())


def canonical(reader: Reader, part: Part, name: str) -> str:
    """The folded name that a name stands for, through aliases."""
    found = fold(name)
    for _ in range(MAX_FOLLOW):
        data = reader.txn.get("aliases", alias_key(part, found))
        if data is None:
            return found
        found = fold(msgspec.msgpack.decode(data, type=tuple[str, str])[1])
    return found


def is_single(predicate: str) -> bool:
    """Whether a predicate has one value at a time by default, its period left aside."""
    words = _YEAR.sub("", fold(predicate))
    found = _QUALIFIER.search(words)
    plain = words[: found.start()] if found is not None and found["period"] else words
    return plain.replace(" ", "_") in SINGLE_VALUED


def qualifier(obj: str) -> str:
    """The period that a value is limited to ("5000 for 2024": "2024"), or an empty text."""
    folded = fold(obj)
    found = _QUALIFIER.search(folded)
    return "" if found is None or not found.start() else found["period"].strip()


# -- keys ---------------------------------------------------------------------------------------


def chain_key(reader: Reader, part: Part, triple: tuple[str, str, str], *, single: bool) -> bytes:
    """Key of the chain that a triple belongs to, without the ref."""
    subject, predicate, obj = triple
    named = fold(predicate)
    period = qualifier(obj)
    if single and period:
        named += " / " + period
    words = [canonical(reader, part, subject).encode(), named.encode()]
    if not single:
        words.append(canonical(reader, part, obj).encode())
    return part.prefix + oid.keyed(part.key, b"chain", *words)


def keys_of(reader: Reader, part: Part, triple: tuple[str, str, str]) -> tuple[bytes, bytes]:
    """Both chains that a triple could belong to: the single-valued one, the other."""
    return (
        chain_key(reader, part, triple, single=True),
        chain_key(reader, part, triple, single=False),
    )


def find_chain(reader: Reader, part: Part, ref: bytes, memory: Memory) -> bytes | None:
    """Key of the chain that holds a memory, or None when it is in none."""
    if memory.triple is None:
        return None
    for key in keys_of(reader, part, memory.triple):
        if reader.txn.get("chains", key + ref) is not None:
            return key
    return None


def chain_of(tx: Tx, part: Part, ref: bytes, memory: Memory) -> bytes | None:
    """Key of the chain that holds a memory, or None when it is in none."""
    return find_chain(tx.reader, part, ref, memory)


# -- members ------------------------------------------------------------------------------------


def members(reader: Reader, part: Part, key: bytes) -> list[Member]:
    """Facts of a chain that may be shown, in order of valid time."""
    found = list(_members(reader, part, key))
    found.sort(key=lambda m: m.place)
    return found


def _members(reader: Reader, part: Part, key: bytes) -> Iterator[Member]:
    for row, _ in reader.txn.scan_prefix("chains", key):
        member = member_of(reader, part, row[len(key) :])
        if member is not None:
            yield member


def member_of(reader: Reader, part: Part, ref: bytes) -> Member | None:
    """A fact as a member of its chain, or None when it is withheld or gone."""
    state = reader.state(part, ref)
    if state is None or state.head is None or state.status not in _THERE:
        return None
    return Member(reader, part, ref, state, begins(reader, part, ref, state))


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
                return Ending(entry.valid_to, entry.replaced_by, closed)
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
        if member.state.status in _HIGH:
            floor = member.begins
    return found


# -- writing ------------------------------------------------------------------------------------


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
) -> tuple[bytes, str]:
    """Add a fact to its chain and relink it.

    Args:
        tx: the write transaction.
        part: its partition.
        memory: a memory with a triple and the zero salt.
        status: its trust status.
        single: whether the predicate has one value at a time.
        valid_from: when it begins to hold, microseconds UTC; None for now.
        reason: reason code.
        held: chains that this transaction has read, kept in step.

    Returns:
        (ref, "new") or, when the same value held then already, (its ref, "known"): the evidence
        is added to that one, and it ends where the new statement says so.
    """
    assert memory.triple is not None
    memories.check(memory)
    held = Held() if held is None else held
    tx.flush()
    starts = tx.now if valid_from is None else valid_from
    key = chain_key(tx.reader, part, memory.triple, single=single)
    chain = held.of(tx.reader, part, key)
    known = _known(tx, part, chain, memory, starts)
    if known is not None:
        _attach(tx, part, known, memory, starts, status)
        held.drop(key)
        _end_where_stated(tx, part, key, known.ref, memory)
        return known.ref, "known"
    resumed = _interrupted(chain, starts, memory.valid_to)
    ref = _create(tx, part, memory, status, starts, reason)
    join(tx, part, key, ref, held)
    for member, at in resumed:
        _resume(tx, part, key, member, at, held)
    _resume_after(tx, part, key, ref, held)
    return ref, "new"


def _create(
    tx: Tx, part: Part, memory: Memory, status: str, starts: int, reason: str = ""
) -> bytes:
    """Begin a fact; the very same statement, when it no longer holds, is said anew."""
    ends = memory.valid_to
    for _ in range(2):
        ref = memories.create(
            tx, part, memory, status=status, valid_from=starts, valid_to=ends, reason=reason
        )
        if ref is not None:
            return ref
        memory = msgspec.structs.replace(memory, meta={**memory.meta, "stated": tx.now})
    raise AssertionError("two objects of one transaction have the same id")


def join(tx: Tx, part: Part, key: bytes, ref: bytes, held: Held | None = None) -> None:
    """Put a fact that is stored already into a chain, and link it with its neighbours."""
    held = Held() if held is None else held
    tx.flush()
    chain = held.of(tx.reader, part, key)
    if not tx.txn.put_new("chains", key + ref, b""):
        return
    member = member_of(tx.reader, part, ref)
    if member is None:
        return
    at = bisect_right(chain, member.place, key=lambda m: m.place)
    chain.insert(at, member)
    low = at
    while low > 0:  # back to the first fact that ends all before it
        low -= 1
        if chain[low].begins < member.begins and chain[low].state.status in _HIGH:
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
        after = _successor(chain, index)
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


def _successor(chain: list[Member], index: int) -> Member | None:
    """The fact that takes the place of one: the next that begins later and stands as high.

    Of facts that begin at the same instant the one recorded later takes the place of one that was
    derived from the same occasion; what people stated stands beside the other.
    """
    member = chain[index]
    high = member.state.status in _HIGH
    for after in chain[index + 1 :]:
        if high and after.state.status not in _HIGH:
            continue
        if after.begins > member.begins or (_derived(member) and _derived(after)):
            return after
    return None


def _derived(member: Member) -> bool:
    return member.memory.deriver.name != memories.STATED


# -- repeats and interruptions ------------------------------------------------------------------


def _known(tx: Tx, part: Part, chain: list[Member], memory: Memory, starts: int) -> Member | None:
    """The fact that says the same of the same time already."""
    assert memory.triple is not None
    same = canonical(tx.reader, part, memory.triple[2])
    for member in holding(chain, starts):
        triple = member.memory.triple
        if triple is None or canonical(tx.reader, part, triple[2]) != same:
            continue
        if member.state.starts > starts or len(member.memory.cites) >= MAX_CITES:
            continue  # it said something else then, or has evidence enough
        if len(_repeats(member.memory)) < MAX_CITES:
            return member
    return None


def _attach(tx: Tx, part: Part, member: Member, said: Memory, starts: int, status: str) -> None:
    """Add evidence to a fact that says the same already; what a person states becomes stated.

    The instants from which it was said to hold are kept: a fact learnt late that belongs between
    them must not take the place of the later ones.
    """
    old, state = member.memory, member.state
    fresh = [c for c in said.cites if c not in old.cites]
    repeats = _repeats(old)
    again = [(c, starts) for c in said.cites if starts > member.begins]
    again = [pair for pair in again if pair not in repeats]
    stated = said.deriver.name == memories.STATED and old.deriver.name != memories.STATED
    if not fresh and not again and not stated:
        return
    grown = memories.with_cites(old, [*old.cites, *fresh])
    if again:
        pairs = [[cited.hex(), at] for cited, at in (*repeats, *again)]
        grown = msgspec.structs.replace(grown, meta={**old.meta, REPEATS: pairs})
    if stated:
        grown = msgspec.structs.replace(
            grown, deriver=said.deriver, confidence=said.confidence, text=said.text
        )
    raised = status if stated else None
    memories.replace(
        tx, part, member.ref, state, grown, op="revise", reason=memories.EVIDENCE, status=raised
    )


def _repeats(memory: Memory) -> list[tuple[bytes, int]]:
    """(observation, instant) of statements that said the same of a later time."""
    found = memory.meta.get(REPEATS)
    pairs = [(bytes.fromhex(c), at) for c, at in found] if isinstance(found, list) else []
    return [(cited, at) for cited, at in pairs if cited in memory.cites]


def _interrupted(chain: list[Member], starts: int, ends: int | None) -> list[tuple[Member, int]]:
    """Facts that hold again after one that begins at an instant: (fact, from when).

    A fact that was repeated later holds again from then on.  One that is interrupted by a fact
    with a stated end holds again behind it.
    """
    found = []
    for member in holding(chain, starts):
        if member.begins >= starts or member.state.starts > starts:
            continue
        later = [at for _, at in _repeats(member.memory) if at > starts]
        if ends is not None and (member.state.valid_to is None or ends < member.state.valid_to):
            later.append(ends)
        if later:
            found.append((member, min(later)))
    return found


def _resume(tx: Tx, part: Part, key: bytes, member: Member, at: int, held: Held) -> bytes:
    """Let a fact hold again from an instant on, as a fact of its own."""
    old = member.memory
    later = [(cited, t) for cited, t in _repeats(old) if t > at]
    anew = [cited for cited, t in _repeats(old) if t == at]
    cites = list(dict.fromkeys([*anew, *(c for c, _ in later)])) if anew else old.cites
    meta: dict[str, object] = {k: v for k, v in old.meta.items() if k != REPEATS}
    if later:
        meta[REPEATS] = [[cited.hex(), t] for cited, t in later]
    again = msgspec.structs.replace(memories.with_cites(old, cites), valid_from=at, meta=meta)
    if cites != old.cites:
        again = msgspec.structs.replace(again, span=None)
    status = refs.STATUSES[member.state.status]
    ref = _create(tx, part, again, status, at, memories.EVIDENCE)
    held.drop(key)
    join(tx, part, key, ref, held)
    _resume_after(tx, part, key, ref, held)
    return ref


def _resume_after(tx: Tx, part: Part, key: bytes, ref: bytes, held: Held) -> None:
    """Let a fact hold again behind a later one with a stated end, where nothing else follows."""
    chain = held.of(tx.reader, part, key)
    place = next((n for n, member in enumerate(chain) if member.ref == ref), None)
    if place is None:
        return
    member = chain[place]
    after = _successor(chain, place)
    own = member.memory.valid_to
    end = None if after is None else after.memory.valid_to
    if after is None or end is None or after.state.flags & refs.CLOSED:
        return
    if (own is None or end < own) and after.state.valid_to == end:
        if after.state.replaced_by is None:
            _resume(tx, part, key, member, end, held)


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
