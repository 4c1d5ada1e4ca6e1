"""Chains: what was said of one subject and predicate, in the order in which it held.

A predicate with one value at a time makes one chain for (partition, subject, predicate); one with
many values makes a chain for each object as well.  Each write sorts the whole chain by valid time
and relinks it: a fact holds until the next one begins, and is replaced by it.  So a fact learnt
late about an earlier date lands in the past, and one about the future waits for its day.

Subjects and predicates are matched case-folded and through aliases.  Keys of chains are keyed
digests: they tell nothing once the facts are gone.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import msgspec

from remem.objects import memories, oid, refs
from remem.objects.model import Memory

if TYPE_CHECKING:
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

# Predicates with one value at a time unless the caller says otherwise; remem-fact(1) lists them.
SINGLE_VALUED = frozenset(
    "lives_in works_at is_called name birthday born_in born_on married_to nationality age "
    "email phone address job title role studies_at status state version host port url path "
    "budget deadline owner manager capital ceo default_branch located_in is".split()
)
MAX_FOLLOW = 32  # aliases of aliases


class Member(msgspec.Struct, frozen=True):
    """One fact of a chain."""

    ref: bytes
    state: refs.RefState
    memory: Memory


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
    """Whether a predicate has one value at a time by default."""
    return fold(predicate).replace(" ", "_") in SINGLE_VALUED


def chain_key(reader: Reader, part: Part, triple: tuple[str, str, str], *, single: bool) -> bytes:
    """Key of the chain that a triple belongs to, without the ref."""
    subject, predicate, obj = triple
    words = [canonical(reader, part, subject).encode(), fold(predicate).encode()]
    if not single:
        words.append(canonical(reader, part, obj).encode())
    return part.prefix + oid.keyed(part.key, b"chain", *words)


def members(reader: Reader, part: Part, key: bytes) -> list[Member]:
    """Facts of a chain that are still there, in order of valid time."""
    found = []
    for row, _ in reader.txn.scan_prefix("chains", key):
        ref = row[len(key) :]
        state = reader.state(part, ref)
        if state is None or state.head is None:
            continue
        if refs.STATUSES[state.status] in ("erased", "rejected", "expired", "orphaned"):
            continue
        obj = reader.object(part, state.head)
        if isinstance(obj, Memory):
            found.append(Member(ref, state, obj))
    found.sort(key=lambda m: (m.state.starts, m.state.first))
    return found


def put(
    tx: Tx, part: Part, memory: Memory, *, status: str, single: bool, valid_from: int | None
) -> tuple[bytes, str]:
    """Add a fact to its chain and relink it.

    Args:
        tx: the write transaction.
        part: its partition.
        memory: a memory with a triple and the zero salt.
        status: its trust status.
        single: whether the predicate has one value at a time.
        valid_from: when it begins to hold, microseconds UTC; None for now.

    Returns:
        (ref, "new") or, when the same value held then already, (its ref, "known"): the evidence
        is added to that one.
    """
    assert memory.triple is not None
    starts = tx.now if valid_from is None else valid_from
    key = chain_key(tx.reader, part, memory.triple, single=single)
    chain = members(tx.reader, part, key)
    held = holding(chain, starts)
    same = canonical(tx.reader, part, memory.triple[2])
    if held is not None and memory.valid_to is None:
        assert held.memory.triple is not None
        if canonical(tx.reader, part, held.memory.triple[2]) == same:
            _attach(tx, part, held, memory.cites)
            return held.ref, "known"
    ref = memories.create(
        tx, part, memory, status=status, valid_from=starts, valid_to=memory.valid_to
    )
    if ref is None:  # the very same statement, which no longer holds: said anew
        again = msgspec.structs.replace(memory, meta={**memory.meta, "stated": tx.now})
        ref = memories.create(
            tx, part, again, status=status, valid_from=starts, valid_to=memory.valid_to
        )
        assert ref is not None
    tx.txn.put("chains", key + ref, b"")
    relink(tx, part, key)
    return ref, "new"


def holding(chain: list[Member], at: int) -> Member | None:
    """The fact of a chain that holds at an instant, or None."""
    found = None
    for member in chain:
        ends = member.state.valid_to
        if member.state.starts <= at and (ends is None or at < ends):
            found = member
    return found


def relink(tx: Tx, part: Part, key: bytes) -> None:
    """Give every fact of a chain the end and the successor that its neighbours imply."""
    chain = members(tx.reader, part, key)
    for place, member in enumerate(chain, 1):
        after = chain[place] if place < len(chain) else None
        state = member.state
        own_end = _own_end(member)
        wanted_to, wanted_by = own_end, None
        if after is not None and (own_end is None or after.state.starts <= own_end):
            wanted_to, wanted_by = after.state.starts, after.ref
        if (state.valid_to, state.replaced_by) == (wanted_to, wanted_by):
            continue
        tx.record(
            part,
            "supersede" if wanted_by is not None else "reopen",
            member.ref,
            state,
            reason="chain",
            valid_to=wanted_to,
            replaced_by=wanted_by,
        )


def _own_end(member: Member) -> int | None:
    """End of a fact apart from its neighbours: as stated, or as it was closed."""
    if member.state.flags & refs.CLOSED:
        return member.state.valid_to
    return member.memory.valid_to


def keys_of(reader: Reader, part: Part, triple: tuple[str, str, str]) -> tuple[bytes, bytes]:
    """Both chains that a triple could belong to: the single-valued one, the other."""
    return (
        chain_key(reader, part, triple, single=True),
        chain_key(reader, part, triple, single=False),
    )


def chain_of(tx: Tx, part: Part, ref: bytes, memory: Memory) -> bytes | None:
    """Key of the chain that holds a memory, or None when it is in none."""
    if memory.triple is None:
        return None
    for key in keys_of(tx.reader, part, memory.triple):
        if tx.txn.get("chains", key + ref) is not None:
            return key
    return None


def _attach(tx: Tx, part: Part, member: Member, cites: list[bytes]) -> None:
    """Add evidence to a fact that says the same already."""
    fresh = [c for c in cites if c not in member.memory.cites]
    if fresh:
        grown = memories.with_cites(member.memory, [*member.memory.cites, *fresh])
        memories.replace(tx, part, member.ref, member.state, grown, op="revise", reason="evidence")
