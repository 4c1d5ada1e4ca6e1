"""Running derivers: claims become memories, in chains, without duplicates.

Work is taken up in one transaction (`queue.lease`), derived outside of any, and its claims applied
in another; so the store is never held up by a deriver, and a run that dies leaves a lease that runs
out.

What becomes of the claims is in `remem.objects.derive.apply`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, lists, refs, statements, tiers
from remem.objects.derive import ledger, queue, rules
from remem.objects.derive.apply import Derived, Kind, Named, apply
from remem.objects.errors import RememError
from remem.objects.model import Observation
from remem.objects.scope import Actor
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.objects.derive.apply import Resolve, Single
    from remem.objects.derive.claim import Claim
    from remem.objects.reader import Part
    from remem.objects.store import Store
    from remem.objects.tx import Tx

__all__ = ["DERIVERS", "Derived", "Kind", "Named", "rebuild", "run"]

BATCH = 500  # log entries taken up in one go
PRINCIPAL = "deriver"  # who makes derived memories
_ERASED = refs.STATUS_CODE["erased"]
# What a claim may run into.  Errors of the engine below are none: a full map must be let through.
_FAULTS = (
    RememError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)

DERIVERS = {
    ledger.NAME: Kind(ledger.NAME, ledger.VERSION, ledger.derive, "verified"),
    rules.NAME: Kind(rules.NAME, rules.VERSION, rules.derive, "provisional"),
}


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
            for ref in queue.due(tx.reader, part, name, tx.present)[:BATCH]
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
            except _FAULTS as error:
                raise _Fault(one.ref, error) from error
            done.add(applied)
        return done


def _speaks(state: refs.RefState, observation: Observation) -> bool:
    """Whether claims may be drawn from an observation.

    It is shown, in force and kept for good; it states no triple and opens no consolidation.
    """
    if refs.STATUSES[state.status] in WITHHELD or _ended(state):
        return False
    if tiers.is_short(state, observation) or lists.letter_of(observation) == lists.BRIEF:
        return False
    return observation.kind != statements.KIND


def _ended(state: refs.RefState) -> bool:
    return state.replaced_by is not None or bool(state.flags & refs.CLOSED)
