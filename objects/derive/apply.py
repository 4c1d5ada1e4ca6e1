"""From the claims of an observation to memories, without duplicates.

The claims of a deriver are compared with the memories that the same deriver made of the observation
before: what is there stays, what is new is added, what is no longer said is withdrawn.  So deriving
again, with the same version or a later one, converges.  A claim that something has ended puts the
observation that says so in the place of what ended.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, encode, gate, memories, refs
from remem.objects.errors import Blocked
from remem.objects.model import Deriver, Memory, Observation, Span
from remem.objects.undo import ENDED
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.objects.derive.claim import Claim
    from remem.objects.reader import Part
    from remem.objects.tx import Tx

    # text, instant that relative words count from, offset in minutes or None -> periods in it
    Resolve = Callable[[str, int, int | None], list["Named"]]
    # collection, predicate, what the claim says -> one value at a time
    Single = Callable[[str, str, bool], bool]

REACH = 60  # code points before and behind a claim in which its time words may stand
# What belongs to the same clause: a few words in front, and on to the next stop or conjunction.
_BEFORE = re.compile(r"(?:[^\W_][\w'\u2019-]*,? +){1,5}$")
_BEHIND = re.compile(
    r"(?:(?! +(?:and|but|so|because|while|when|where|which|who|that)\b)[^.,;:!?()\n\u2026\u2014])*"
)
LEDGER = "ledger"  # the track of parsers
MODEL = "model_claim"  # status of what a model claims; a person may still find it right
WITHDRAWN = chains.WITHDRAWN
_DERIVERS_OWN = frozenset((WITHDRAWN, "withheld"))


class Named(msgspec.Struct, frozen=True):
    """A period named in a text: [start, end) in microseconds UTC, and whether one end is open."""

    start: int
    end: int
    is_open: bool


class Kind(msgspec.Struct, frozen=True):
    """A deriver that runs inside the store: a pure function of one observation."""

    name: str
    version: int
    derive: Callable[[Observation], list[Claim]]
    status: str


class Derived(msgspec.Struct):
    """What a run did."""

    observations: int = 0
    new: int = 0
    known: int = 0
    withdrawn: int = 0
    failed: int = 0
    left: int = 0

    def add(self, other: Derived) -> None:
        """Add the counts of another run; what is left is that of the later one."""
        for name in ("observations", "new", "known", "withdrawn", "failed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.left = other.left


def apply(
    tx: Tx,
    part: Part,
    kind: Kind,
    ref: bytes,
    state: refs.RefState,
    observation: Observation,
    claims: list[Claim],
    *,
    held: chains.Held | None = None,
    resolve: Resolve | None = None,
    single: Single | None = None,
) -> Derived:
    """Make the memories of one observation what the claims say."""
    assert state.head is not None
    held = chains.Held() if held is None else held
    there = _there(tx, part, kind, state.head)
    done = Derived()
    for claim in claims:
        key = (claim.kind, claim.subject, claim.predicate, claim.object)
        begins, ends = _times(claim, observation, resolve)
        starts = state.starts if begins is None else begins
        if claim.ends:
            _end(tx, part, ref, claim, ends or starts)
            held.drop()
            continue
        old = there.pop(key, None)
        if old is not None and _keep(tx, part, kind, old, claim, begins, held):
            done.known += 1
            continue
        if ends is not None and ends <= starts:
            begins, starts = None, ends - 1
        memory = Memory(
            encode.ZERO_SALT,
            observation.scope,
            claim.kind,
            claim.text,
            (claim.subject, claim.predicate, claim.object),
            [state.head],
            Span(0, claim.start, claim.end),
            Deriver(kind.name, kind.version),
            claim.confidence,
            observation.asserted if begins is None else begins,
            ends,
            observation.offset,
            [],
            "",
            [],
            {},
        )
        if ends is not None and memory.valid_from is not None and memory.valid_from >= ends:
            memory = msgspec.structs.replace(memory, valid_from=None)
        memories.check(memory)
        # What a parser counts, or reads from a field such as the exit status, is no word of the
        # passage; no model writes this track.
        against = [] if kind.name == LEDGER else gate.derived(memory, observation)
        if against and kind.status != MODEL:
            # What a parser says beyond its passage is a fault of the parser: nobody need review it.
            tx.refuse("derive", against[0].partition(":")[0], part.number, ref)
            continue
        believed = kind.status
        if refs.STATUSES[state.status] == refs.UNVOUCHED and believed != MODEL:
            # Of a stranger's words nothing follows that the owner believes.
            believed = refs.UNVOUCHED
        try:
            _, status = chains.put(
                tx,
                part,
                memory,
                status="quarantined" if against else believed,
                single=claim.single
                if single is None
                else single(part.collection, claim.predicate, claim.single),
                valid_from=starts,
                held=held,
                codes=against,
            )
        except Blocked as refused:
            if refused.refusal is not None:
                tx.refuse(*refused.refusal)
            continue
        done.new += status == "new"
        done.known += status == "known"
    withheld = refs.STATUSES[state.status] in WITHHELD
    for memory_ref in there.values():
        reason = "withheld" if withheld else WITHDRAWN
        done.withdrawn += _withdraw(tx, part, memory_ref, state.head, reason)
        held.drop()
    return done


def _there(tx: Tx, part: Part, kind: Kind, head: bytes) -> dict[tuple[str, str, str, str], bytes]:
    """Memories that this deriver made of an observation, by what they say."""
    found = {}
    for ref in tx.reader.cited_by(part, head):
        memory = memories.head(tx, part, ref)[1]
        own = memory.deriver.name == kind.name and chains.RESUMES not in memory.meta
        if own and memory.triple is not None:
            found[(memory.kind, *memory.triple)] = ref
    return found


def _keep(
    tx: Tx,
    part: Part,
    kind: Kind,
    ref: bytes,
    claim: Claim,
    begins: int | None,
    held: chains.Held,
) -> bool:
    """Keep a memory that is said again; False when it has to be made anew."""
    state, memory = memories.head(tx, part, ref)
    if refs.STATUSES[state.status] == "rejected":
        tx.flush()
        if tx.reader.entry(part, state.last).reason in _DERIVERS_OWN:
            status = _before(tx, part, state, kind.status)
            tx.record(part, "release", ref, state, status=status, reason=WITHDRAWN)
            chains.relink_of(tx, part, ref)
            held.drop()
        return True  # a verdict of somebody else stands
    founding = len(memory.cites) == 1
    if founding and begins is not None and memory.valid_from != begins:
        _withdraw(tx, part, ref, memory.cites[0], WITHDRAWN)
        held.drop()
        return False
    span = Span(0, claim.start, claim.end) if founding else memory.span
    wanted = (claim.text, claim.confidence, span, Deriver(kind.name, kind.version))
    if wanted != (memory.text, memory.confidence, memory.span, memory.deriver):
        text, confidence, span, deriver = wanted
        made = msgspec.structs.replace(
            memory,
            salt=encode.ZERO_SALT,
            text=text,
            confidence=confidence,
            span=span,
            deriver=deriver,
        )
        memories.replace(tx, part, ref, state, made, reason=WITHDRAWN)
        held.drop()
    return True


def _before(tx: Tx, part: Part, state: refs.RefState, status: str) -> str:
    """The status that a memory had before its deriver withdrew it: a verdict on it stands."""
    for entry in tx.reader.entries(part, state):
        own = refs.OPS[entry.op] == "reject" and entry.reason in _DERIVERS_OWN
        if not own:
            return refs.STATUSES[entry.status]
    return status


def _withdraw(tx: Tx, part: Part, ref: bytes, observation: bytes, reason: str) -> int:
    """Take an observation from a memory that it no longer supports; without others it goes."""
    state, memory = memories.head(tx, part, ref)
    if refs.STATUSES[state.status] == "rejected":
        return 0
    if len(memory.cites) > 1:
        left = memories.without_cite(memory, observation)
        memories.replace(tx, part, ref, state, left, reason=memories.EVIDENCE)
        return 0
    tx.record(part, "reject", ref, state, status="rejected", reason=reason)
    chains.relink_of(tx, part, ref)
    return 1


def _end(tx: Tx, part: Part, ref: bytes, claim: Claim, at: int) -> None:
    """Let an observation take the place of what it says has ended."""
    triple = (claim.subject, claim.predicate, claim.object)
    single, multi = chains.keys_of(tx.reader, part, triple)
    for key in (single, multi) if claim.object else (single,):
        tx.flush()
        for member in chains.holding(chains.members(tx.reader, part, key), at):
            assert member.memory.triple is not None
            value = chains.canonical(tx.reader, part, member.memory.triple[2])
            if claim.object and value != chains.canonical(tx.reader, part, claim.object):
                continue
            own = chains.ending(tx.reader, part, member)
            if at > member.begins and (own.at is None or at < own.at):
                tx.record(
                    part,
                    "supersede",
                    member.ref,
                    member.state,
                    reason=ENDED,
                    valid_to=at,
                    replaced_by=ref,
                )
                chains.relink(tx, part, key)


def _times(
    claim: Claim, observation: Observation, resolve: Resolve | None
) -> tuple[int | None, int | None]:
    """From when and until when a claim holds, by its own dates or the time words around it.

    Words such as "yesterday" and "last march" count from when the statement was made; a statement
    of unknown time has only the dates that it names in full.
    """
    if claim.valid_from is not None or claim.valid_to is not None:
        return claim.valid_from, claim.valid_to
    asserted = observation.asserted
    if asserted is None or resolve is None:
        return None, None
    start, end = _around(observation.text, claim.start, claim.end)
    found = resolve(observation.text[start:end], asserted, observation.offset)
    if len(found) != 1:
        return None, None
    named = found[0]
    if named.start > asserted:
        return None, None
    if named.is_open and named.end <= asserted:
        return None, named.end
    if claim.ends:
        return None, named.start
    return named.start, None


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """The part of a statement in which a time word belongs to a claim: its clause."""
    before = _BEFORE.search(text[max(0, start - REACH) : start])
    after = _BEHIND.match(text, end, end + REACH)
    return start - len(before[0]) if before else start, after.end() if after else end
