"""Running derivers: claims become memories, in chains, without duplicates.

For one observation the claims of a deriver are compared with the memories that the same deriver
made of it before: what is there stays, what is new is added, what is no longer said is withdrawn.
So deriving again, with the same version or a later one, converges.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, encode, memories, refs
from remem.objects.derive import ledger, queue, rules
from remem.objects.errors import Blocked
from remem.objects.model import Deriver, Memory, Observation, Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.objects.derive.claim import Claim
    from remem.objects.reader import Part
    from remem.objects.scope import Actor
    from remem.objects.store import Store
    from remem.objects.tx import Tx

BATCH = 500  # log entries a transaction


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


def run(
    store: Store,
    actor: Actor,
    names: tuple[str, ...],
    *,
    most: int | None = None,
    budget_s: float | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Derived:
    """Take up what waits, oldest first.

    Args:
        store: an open store.
        actor: who acts; its grant covers the partitions.
        names: derivers to run.
        most: leave it when more entries than this wait.
        budget_s: stop after about so many seconds.
        progress: called with (what, done, of).
    """
    total = Derived()
    stop = None if budget_s is None else time.monotonic() + budget_s
    with store.read(actor.grant) as reader:
        plan = [
            (part, name, queue.waiting(reader, part, name))
            for part in reader.parts
            for name in names
        ]
        retries = any(queue.due(reader, p, n, time.time_ns() // 1000) for p, n, _ in plan)
    of = sum(count for _, _, count in plan)
    if (most is not None and of > most) or not (of or retries):
        total.left = of
        return total
    done = 0
    for part, name, count in plan:
        while stop is None or time.monotonic() < stop:
            step = store.write(actor, lambda tx, p=part, n=name: _step(tx, p, n, total))  # type: ignore[misc]
            if not step:
                break
            done += step
            if progress is not None:
                progress("deriving", min(done, of), of)
        del count
    with store.read(actor.grant) as reader:
        total.left = sum(queue.waiting(reader, p, n) for p, n, _ in plan)
    return total


def _step(tx: Tx, part: Part, name: str, total: Derived) -> int:
    """One transaction: retries that are due, then the next entries; entries passed."""
    kind = DERIVERS[name]
    for ref in queue.due(tx.reader, part, name, tx.now):
        _one(tx, part, kind, ref, total)
    at = queue.cursor(tx.reader, part, name)
    last = tx.reader.last_seq(part)
    upto = min(last, at + BATCH)
    if upto == at:
        return 0
    wanted = dict.fromkeys(
        entry.ref for entry in tx.reader.log(part, after=at, until=upto) if queue.brought(entry)
    )
    for ref in wanted:
        _one(tx, part, kind, ref, total)
    tx.flush()
    queue.advance(tx, part, name, upto)
    return upto - at


def _one(tx: Tx, part: Part, kind: Kind, ref: bytes, total: Derived) -> None:
    state = tx.reader.state(part, ref)
    if state is None or state.head is None or state.replaced_by is not None:
        queue.done(tx, part, ref, kind.name)
        return
    try:
        observation = tx.reader.object(part, state.head)
        if not isinstance(observation, Observation):
            return
        claims = kind.derive(observation)
    except Exception as error:  # a fault of a deriver must not stop the others
        queue.failed(tx, part, ref, kind.name, error)
        total.failed += 1
        return
    queue.done(tx, part, ref, kind.name)
    total.observations += 1
    new, known, gone = apply(tx, part, kind, state, observation, claims)
    total.new += new
    total.known += known
    total.withdrawn += gone


def apply(
    tx: Tx,
    part: Part,
    kind: Kind,
    state: refs.RefState,
    observation: Observation,
    claims: list[Claim],
) -> tuple[int, int, int]:
    """Make the memories of one observation what the claims say.

    Returns:
        (new, known, withdrawn).
    """
    assert state.head is not None
    there: dict[tuple[str, str, str, str], tuple[bytes, refs.RefState]] = {}
    for ref in tx.reader.cited_by(part, state.head):
        known_state, memory = memories.head(tx, part, ref)
        if memory.deriver.name == kind.name and memory.triple is not None:
            there[(memory.kind, *memory.triple)] = (ref, known_state)
    new = known = 0
    said = set()
    for claim in claims:
        key = (claim.kind, claim.subject, claim.predicate, claim.object)
        said.add(key)
        if key in there:
            known += 1
        elif claim.ends:
            _end(tx, part, claim, observation)
        else:
            try:
                status = _put(tx, part, kind, state, observation, claim)
            except Blocked as refused:
                if refused.refusal is not None:
                    tx.refuse(*refused.refusal)
                continue
            new += status == "new"
            known += status == "known"
    gone = 0
    for key, (ref, known_state) in there.items():
        if key not in said:
            tx.record(part, "reject", ref, known_state, status="rejected", reason="rederived")
            gone += 1
    return new, known, gone


def _put(
    tx: Tx,
    part: Part,
    kind: Kind,
    state: refs.RefState,
    observation: Observation,
    claim: Claim,
) -> str:
    assert state.head is not None
    starts = observation.asserted if claim.valid_from is None else claim.valid_from
    if starts is None:
        starts = state.created
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
        starts,
        claim.valid_to,
        observation.offset,
        [],
        "",
        [],
        {},
    )
    if claim.valid_to is not None and claim.valid_to <= starts:
        memory = msgspec.structs.replace(memory, valid_from=None)
        starts = claim.valid_to - 1
    _, status = chains.put(
        tx, part, memory, status=kind.status, single=claim.single, valid_from=starts
    )
    return status


def _end(tx: Tx, part: Part, claim: Claim, observation: Observation) -> None:
    """Close what a claim says has ended."""
    at = claim.valid_to or claim.valid_from or observation.asserted or tx.now
    triple = (claim.subject, claim.predicate, claim.object)
    for key in chains.keys_of(tx.reader, part, triple):
        held = chains.holding(chains.members(tx.reader, part, key), at)
        if held is None or held.memory.triple is None:
            continue
        value = chains.canonical(tx.reader, part, held.memory.triple[2])
        if claim.object and value != chains.canonical(tx.reader, part, claim.object):
            continue
        if not held.state.flags & refs.CLOSED and at > held.state.starts:
            tx.record(part, "close", held.ref, held.state, reason="ended", valid_to=at)
            chains.relink(tx, part, key)
