"""Running derivers: claims become memories, in chains, without duplicates.

Work is taken up in one transaction (`queue.lease`), derived outside of any, and its claims applied
in another; so the store is never held up by a deriver, and a run that dies leaves a lease that runs
out.

For one observation the claims of a deriver are compared with the memories that the same deriver
made of it before: what is there stays, what is new is added, what is no longer said is withdrawn.
So deriving again, with the same version or a later one, converges.  A claim that something has
ended puts the observation that says so in the place of what ended.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, encode, memories, refs, statements
from remem.objects.derive import ledger, queue, rules
from remem.objects.errors import Blocked
from remem.objects.model import Deriver, Memory, Observation, Span
from remem.objects.scope import Actor
from remem.objects.undo import ENDED
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.objects.derive.claim import Claim
    from remem.objects.reader import Part
    from remem.objects.store import Store
    from remem.objects.tx import Tx

    # text, instant that relative words count from, offset in minutes or None -> periods in it
    Resolve = Callable[[str, int, int | None], list["Named"]]
    # collection, predicate, what the claim says -> one value at a time
    Single = Callable[[str, str, bool], bool]

BATCH = 500  # log entries taken up in one go
PRINCIPAL = "deriver"  # who makes derived memories
WITHDRAWN = "rederived"  # reason of what is no longer said
_ERASED = refs.STATUS_CODE["erased"]
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


DERIVERS = {
    ledger.NAME: Kind(ledger.NAME, ledger.VERSION, ledger.derive, "verified"),
    rules.NAME: Kind(rules.NAME, rules.VERSION, rules.derive, "provisional"),
}


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


class _Fault(Exception):
    """Leaves a transaction because the claims of one observation cannot be applied."""

    def __init__(self, ref: bytes, error: Exception) -> None:
        super().__init__()
        self.ref = ref
        self.error = error


class _Work(msgspec.Struct, frozen=True):
    """One observation taken up: its head then, and the claims, or the error of the deriver."""

    ref: bytes
    head: bytes | None = None
    claims: list[Claim] | None = None
    error: Exception | None = None


def run(
    store: Store,
    actor: Actor,
    names: tuple[str, ...],
    *,
    most: int | None = None,
    budget_s: float | None = None,
    resolve: Resolve | None = None,
    single: Single | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    kinds: dict[str, Kind] = DERIVERS,
) -> Derived:
    """Take up what waits, oldest first.

    Args:
        store: an open store.
        actor: for whom; its grant covers the partitions, and every lane of them is looked at.
        names: derivers to run.
        most: leave it when more entries than this wait.
        budget_s: stop after about so many seconds.
        resolve: reads the time words of a text; without it they are left alone.
        single: whether a predicate has one value at a time; without it as the claim says.
        progress: called with (what, done, of).
        kinds: the derivers that there are.
    """
    total = Derived()
    stop = None if budget_s is None else time.monotonic() + budget_s
    whole = msgspec.structs.replace(actor.grant, principal=PRINCIPAL, agent=None, session=None)
    worker = Actor(whole, actor.surface, actor.scope)
    with store.read(whole) as reader:
        of = queue.backlog(reader, names, time.time_ns() // 1000)
        parts = list(reader.parts)
    if not of or (most is not None and of > most):
        total.left = of
        return total
    done = 0
    for part in parts:
        for name in names:
            runner = _Runner(store, worker, part, kinds[name], resolve, single)
            while stop is None or time.monotonic() < stop:
                passed = runner.step(total)
                if not passed:
                    break
                done += passed
                if progress is not None:
                    progress("deriving", min(done, of), of)
    store.write(worker, lambda tx: _skim(tx, parts, names))
    with store.read(whole) as reader:
        total.left = queue.backlog(reader, names, time.time_ns() // 1000)
    return total


def rebuild(store: Store, actor: Actor, names: tuple[str, ...]) -> None:
    """Let these derivers look at everything again."""

    def change(tx: Tx) -> None:
        for part in tx.reader.parts:
            for name in names:
                queue.advance(tx, part, name, 0)

    store.write(actor, change)


def _skim(tx: Tx, parts: list[Part], names: tuple[str, ...]) -> None:
    """Pass over entries that bring no evidence, such as those that deriving made itself."""
    for part in parts:
        last = tx.reader.last_seq(part)
        for name in names:
            at = queue.cursor(tx.reader, part, name)
            for entry in tx.reader.log(part, after=at):
                if queue.brought(entry):
                    last = entry.seq - 1
                    break
            queue.advance(tx, part, name, max(at, last))


class _Runner:
    """One deriver on one partition."""

    def __init__(
        self,
        store: Store,
        worker: Actor,
        part: Part,
        kind: Kind,
        resolve: Resolve | None,
        single: Single | None,
    ) -> None:
        self.store = store
        self.worker = worker
        self.part = part
        self.kind = kind
        self.resolve = resolve
        self.single = single

    def step(self, total: Derived) -> int:
        """Take up, derive and apply the next batch; log entries and jobs that were passed."""
        refs_, passed = self.store.write(self.worker, self._take)
        work = self._derive(refs_)
        while work:
            try:
                total.add(self.store.write(self.worker, lambda tx, w=work: self._apply(tx, w)))  # type: ignore[misc]
                break
            except _Fault as fault:
                work = [
                    _Work(w.ref, w.head, error=fault.error) if w.ref == fault.ref else w
                    for w in work
                ]
        return passed

    def _take(self, tx: Tx) -> tuple[list[bytes], int]:
        part, name = self.part, self.kind.name
        retried = [
            ref
            for ref in queue.due(tx.reader, part, name, tx.now)[:BATCH]
            if queue.lease(tx, part, ref, name)
        ]
        at = queue.cursor(tx.reader, part, name)
        upto = min(tx.reader.last_seq(part), at + BATCH)
        brought = dict.fromkeys(
            entry.ref for entry in tx.reader.log(part, after=at, until=upto) if queue.brought(entry)
        )
        for ref in brought:
            queue.lease(tx, part, ref, name, anew=True)
        if upto > at:
            queue.advance(tx, part, name, upto)
        return list(dict.fromkeys([*brought, *retried])), upto - at + len(retried)

    def _derive(self, refs_: list[bytes]) -> list[_Work]:
        """Run the deriver, outside of any write."""
        found = []
        with self.store.read(self.worker.grant) as reader:
            for ref in refs_:
                state = reader.state(self.part, ref)
                if state is None or state.head is None or state.status == _ERASED:
                    found.append(_Work(ref))
                    continue
                claims: list[Claim] = []
                try:
                    obj = reader.object(self.part, state.head)
                    if isinstance(obj, Observation) and _speaks(state, obj):
                        claims = self.kind.derive(obj)
                except Exception as error:  # a fault of a deriver must not stop the others
                    found.append(_Work(ref, state.head, error=error))
                else:
                    found.append(_Work(ref, state.head, claims))
        return found

    def _apply(self, tx: Tx, work: list[_Work]) -> Derived:
        part, name = self.part, self.kind.name
        done = Derived()
        held = chains.Held()
        for one in work:
            state = tx.reader.state(part, one.ref)
            if state is None or state.head is None or state.status == _ERASED:
                queue.done(tx, part, one.ref, name)  # it may have been forgotten meanwhile
                continue
            if one.error is not None:
                queue.failed(tx, part, one.ref, name, one.error)
                done.failed += 1
                continue
            if state.head != one.head:
                queue.retry(tx, part, one.ref, name)  # revised meanwhile: it waits again
                continue
            queue.done(tx, part, one.ref, name)
            if _ended(state):
                continue  # what hangs on it was carried along when it ended
            obj = tx.reader.object(part, state.head)
            assert isinstance(obj, Observation)
            done.observations += 1
            try:
                applied = apply(
                    tx,
                    part,
                    self.kind,
                    one.ref,
                    state,
                    obj,
                    one.claims or [],
                    held=held,
                    resolve=self.resolve,
                    single=self.single,
                )
            except Exception as error:
                raise _Fault(one.ref, error) from error
            done.add(applied)
        return done


def _speaks(state: refs.RefState, observation: Observation) -> bool:
    """Whether claims may be drawn from an observation: shown, in force, no stated triple."""
    withheld = refs.STATUSES[state.status] in WITHHELD
    return not withheld and not _ended(state) and observation.kind != statements.KIND


def _ended(state: refs.RefState) -> bool:
    return state.replaced_by is not None or bool(state.flags & refs.CLOSED)


# -- claims -------------------------------------------------------------------------------------


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
        try:
            _, status = chains.put(
                tx,
                part,
                memory,
                status=kind.status,
                single=claim.single
                if single is None
                else single(part.collection, claim.predicate, claim.single),
                valid_from=starts,
                held=held,
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
        if memory.deriver.name == kind.name and memory.triple is not None:
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
        last = tx.reader.entry(part, state.last)
        if last.reason in _DERIVERS_OWN:
            tx.record(part, "release", ref, state, status=kind.status, reason=WITHDRAWN)
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
    found = resolve(observation.text[claim.start : claim.end], asserted, observation.offset)
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
