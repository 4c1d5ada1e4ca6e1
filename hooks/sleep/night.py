"""What a consolidation runs in: the store, who acts, the time that is left, what was done.

A dry run has a store that keeps its changes to itself (`Dry`): the very rules run over a snapshot
and count what they would do, and nothing is written.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import msgspec

from remem.objects.errors import Refused
from remem.objects.pack_trial import Trial
from remem.objects.reader import Reader
from remem.objects.scope import CONSOLIDATION, DEFAULT_AGENT, DEFAULT_SESSION, Actor, Grant
from remem.objects.store import Store
from remem.objects.tx import Tx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remem.objects import kv
    from remem.objects.model import Scope
    from remem.objects.reader import Part

    Say = Callable[[str, int, int], None]

T = TypeVar("T")


class Dry(Store):
    """A store as it stands at one snapshot, whose changes are forgotten with it."""

    def __init__(self, store: Store, base: kv.Txn) -> None:
        """Lie over a store.

        Args:
            store: the real one; nothing of it is changed.
            base: a snapshot of it, which stays open as long as this is used.
        """
        self._real = store
        self._changes = Trial(base)
        self.root = store.root
        self.readonly = False

    @property
    def generation(self) -> int:
        """Number of the present generation of the real store."""
        return self._real.generation

    @contextmanager
    def read(self, grant: Grant) -> Iterator[Reader]:
        """What the grant covers, with what was changed so far."""
        yield Reader(self._changes, grant)

    def write(self, actor: Actor, change: Callable[[Tx], T]) -> T:
        """Run change; what it changes is seen by later reads of this object, and by nobody else."""
        attempt = Trial(self._changes)
        tx = Tx(attempt, actor, time.time_ns() // 1000)
        try:
            result = change(tx)
            tx.finish()
        except Refused as refused:
            if refused.refusal is not None:
                row, refused.refusal = refused.refusal, None
                self.write(actor, lambda tx: tx.refuse(*row))
            raise
        attempt.settle()
        return result

    def close(self) -> None:
        """Give nothing up: the real store is not this one's."""


class Night:
    """One consolidation of one tenant and profile.

    Attributes:
        store: the store, or a `Dry` one.
        owner: who expires, purges and follows hints: the owner's rules, without a person.
        actor: who proposes and retires: the store's own work.
        now: when it began, microseconds UTC.
        counts: what was changed, by name.
        notes: what was left and why, or waits for a person.
        dry: nothing is kept.
    """

    def __init__(
        self,
        store: Store,
        scope: Scope,
        surface: str,
        *,
        now: int,
        stop: float | None = None,
        quiet_us: int = 0,
        progress: Say | None = None,
    ) -> None:
        """Begin.

        Args:
            store: open for writing, or a `Dry` one.
            scope: its tenant and profile are looked after; runs are kept there.
            surface: "cli" or "cron".
            now: microseconds UTC.
            stop: monotonic time at which to stop, or None for no limit.
            quiet_us: what was said less than so long ago may go on, and is left for later.
            progress: called with (what, done, of).
        """
        self.store = store
        self.scope = msgspec.structs.replace(scope, agent=DEFAULT_AGENT, session=DEFAULT_SESSION)
        grant = Grant(CONSOLIDATION, scope.tenant, scope.profile, None, owner=True, proposes=True)
        self.actor = Actor(grant, surface, self.scope)
        self.now = now
        self.stop = stop
        self.quiet_us = quiet_us
        self.dry = isinstance(store, Dry)
        self.counts: dict[str, int] = {}
        self.notes: list[str] = []
        self.left = False
        self._progress = progress

    @property
    def over(self) -> bool:
        """The time is used up; what is left is noted for the next run."""
        if self.stop is not None and time.monotonic() >= self.stop:
            self.left = True
        return self.left

    @property
    def seconds_left(self) -> float | None:
        """How long it may still take, or None for as long as it needs."""
        return None if self.stop is None else max(0.0, self.stop - time.monotonic())

    def count(self, name: str, number: int = 1) -> None:
        """Add to a count of what was changed."""
        if number:
            self.counts[name] = self.counts.get(name, 0) + number

    def note(self, text: str) -> None:
        """Note once what a person may want to know."""
        if text not in self.notes:
            self.notes.append(text)

    def say(self, what: str, done: int, of: int) -> None:
        """Report progress."""
        if self._progress is not None:
            self._progress(what, done, of)

    def parts(self) -> list[Part]:
        """The partitions that are looked after."""
        with self.store.read(self.actor.grant) as reader:
            return list(reader.parts)

    def do(self, change: Callable[[Tx], T]) -> T | None:
        """Make one change in a transaction of its own; None when something stands in its way.

        What was looked at may have changed meanwhile: each change looks again by itself, and leaves
        it when it finds another head than the one that was seen.
        """
        try:
            return self.store.write(self.actor, change)
        except Moved:
            return None


class Moved(Exception):
    """What a change was about is not as it was seen; nothing of the change is kept."""
