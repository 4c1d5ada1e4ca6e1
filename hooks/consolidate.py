"""One sleep: what the store does by itself while nobody asks it anything.

In order: what hooks left is taken in; briefs are followed; what waits is derived from; short notes
expire; retention rules run; what was forgotten is purged; duplicates are retired; evidence is
attached; summaries are proposed, and stale ones anew; the indexes are brought up; and, where
anything changed, a run says what.

One process sleeps at a time.  Each change is a transaction of its own that looks again at what it
changes, so what others write meanwhile is neither lost nor held up; a process that dies anywhere
leaves every change whole, and the next one finds what is left by looking.  So a second sleep with
nothing new changes nothing.

Source: remem(7), SLEEP; remem-consolidate(1).
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import msgspec

from remem.hooks import deriving, intake
from remem.hooks.sleep import attach, duplicates, episodes
from remem.hooks.sleep.look import look
from remem.hooks.sleep.night import Dry, Night
from remem.hooks.sleep.stamp import read_stamp, write_stamp
from remem.objects import briefs, drafts, loops, purge, retention, runs, signing, tiers
from remem.objects.errors import NotFound, Refused, RememError, StoreLocked
from remem.objects.lock import hold
from remem.objects.scope import maintenance_grant
from remem.objects.views import Eye, Lens

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.hooks.deriving import Single
    from remem.hooks.intake import Intake
    from remem.objects.reader import Part
    from remem.objects.store import Store

    Say = Callable[[str, int, int], None]

LOCK = "consolidate"
DONE, PARTIAL, BUSY = "done", "partial", "busy"
VECTORS_S = 60.0  # seconds that vectors may take where no budget is given
DAY_US = 86_400_000_000


class Means(msgspec.Struct, frozen=True):
    """What a consolidation works with; whoever starts it makes this of the settings.

    Attributes:
        intake: how what hooks left is taken in.
        derivers: derivers to run, in order.
        single: whether a predicate has one value at a time.
        embedder, embedder_key, cache_dir: for vectors.
        quiet_us: what was said less than so long ago may go on and is not summed up yet.
    """

    intake: Intake
    derivers: tuple[str, ...] = deriving.NAMES
    single: Single | None = None
    embedder: str = "none"
    embedder_key: str = ""
    cache_dir: str | None = None
    quiet_us: int = 0


class Slept(msgspec.Struct):
    """What a consolidation did; in a dry run, what it would do.

    Attributes:
        status: DONE, PARTIAL (the time was used up) or BUSY (another one is at it).
        started, ended: microseconds UTC.
        counts: what was changed, by name; empty when nothing was.
        notes: what was left, and why.
        documents, vectors: how much was brought into the indexes.
        pending_vectors: log entries whose texts have no vector yet.
        loops_due: open loops whose time has come.
        waiting: things that wait for review.
        needs: what only a person can do.
        findings: bytes that a purge should have removed and that are still there.
        runs: refs of the runs that say so.
    """

    status: str
    started: int
    ended: int = 0
    counts: dict[str, int] = {}
    notes: list[str] = []
    documents: int = 0
    vectors: int = 0
    pending_vectors: int = 0
    loops_due: int = 0
    waiting: int = 0
    needs: list[str] = []
    findings: int = 0
    runs: list[bytes] = []


def run(
    store: Store,
    means: Means,
    *,
    surface: str = "cli",
    dry_run: bool = False,
    drain_only: bool = False,
    budget_s: float | None = None,
    progress: Say | None = None,
) -> Slept:
    """Sleep once.

    Args:
        store: open for writing.
        means: see `Means`.
        surface: "cli" or "cron".
        dry_run: count what would be done, and change nothing; no lock is taken.
        drain_only: take in what hooks left, and nothing else.
        budget_s: stop after about so many seconds; the next run goes on.
        progress: called with (what, done, of).
    """
    began = time.time_ns() // 1000
    stop = None if budget_s is None else time.monotonic() + budget_s
    sleep = _Sleep(means, surface, began, stop, drain_only, progress)
    if dry_run:
        with store.env().read() as txn:
            return sleep.run(Dry(store, txn))
    with ExitStack() as held:
        try:
            held.enter_context(hold(store.locks_path, LOCK))
        except StoreLocked:
            return Slept(BUSY, began, began, notes=["another consolidation is at it"])
        return sleep.run(store)


class _Sleep:
    """One run over every tenant and profile of a store."""

    def __init__(
        self,
        means: Means,
        surface: str,
        began: int,
        stop: float | None,
        drain_only: bool,
        progress: Say | None,
    ) -> None:
        self.means = means
        self.surface = surface
        self.stop = stop
        self.drain_only = drain_only
        self.progress = progress
        self.slept = Slept(DONE, began)
        self.nights: dict[tuple[str, str], Night] = {}

    def run(self, store: Store) -> Slept:
        """Do everything, and say what was done even when it was broken off."""
        self.store = store
        self.dry = isinstance(store, Dry)
        self.stamp = read_stamp(store.locks_path)
        ended = False
        try:
            self._steps()
            ended = True
        finally:
            self._finish(broken=not ended)
        return self.slept

    def _steps(self) -> None:
        self._drain()
        if self.drain_only:
            return
        nights = self._nights()
        for night in nights:
            _briefs(night)
            self._derive(night)
            _expire(night)
            _retain(night)
        self._purge()
        for night in nights:
            for part in night.parts():
                self._part(night, part)
        self._project()
        for night in nights:
            self._look_around(night)

    def _night(self, tenant: str, profile: str) -> Night:
        """The one of a tenant and profile."""
        key = (tenant, profile)
        if key not in self.nights:
            first = self.means.intake.actor.scope
            self.nights[key] = Night(
                self.store,
                msgspec.structs.replace(first, tenant=tenant, profile=profile),
                self.surface,
                now=self.slept.started,
                stop=self.stop,
                quiet_us=self.means.quiet_us,
                progress=self.progress,
            )
        return self.nights[key]

    def _nights(self) -> list[Night]:
        """One for each tenant and profile that has anything."""
        with self.store.read(maintenance_grant()) as reader:
            names = dict.fromkeys((part.tenant, part.profile) for part in reader.parts)
        return [self._night(*name) for name in names]

    # -- the steps ----------------------------------------------------------------------------

    def _drain(self) -> None:
        how = self.means.intake
        night = self._night(how.actor.scope.tenant, how.actor.scope.profile)
        try:
            done = intake.everything(
                self.store,
                how,
                budget_s=night.seconds_left,
                progress=self.progress,
                dry_run=self.dry,
            )
        except StoreLocked:
            night.note("another process takes the spool in")
            return
        except RememError as error:
            night.note(f"the spool waits: {error}")
            return
        night.count("drained", done.new)
        night.count("known", done.known)
        night.count("blocked", done.blocked)
        night.count("rejected", done.rejected)
        night.count("skipped", sum(done.skipped.values()))
        if done.damaged:
            lines = "1 line" if done.damaged == 1 else f"{done.damaged:,} lines"
            night.note(f"dropped {lines} of the spool that could not be read")
        for trouble in done.troubles:
            night.note(trouble)
        if done.left and not done.troubles:
            night.left = True

    def _derive(self, night: Night) -> None:
        if night.over or not self.means.derivers:
            return
        done = deriving.run(
            night.store,
            night.actor,
            night.actor.grant,
            self.means.derivers,
            single=self.means.single,
            budget_s=night.seconds_left,
            progress=self.progress,
        )
        if done is None:
            return
        night.count("derived", done.new)
        night.count("confirmed", done.known)
        night.count("withdrawn", done.withdrawn)
        if done.failed:
            night.note(f"{done.failed:,} jobs failed; 'remem jobs' lists them")
        _ = night.over

    def _purge(self) -> None:
        """Remove the bytes of what was forgotten, unless that needs a signature."""
        from remem.index import sweep

        if any(night.over for night in self.nights.values()):
            return
        with self.store.read(maintenance_grant()) as reader:
            items = purge.waiting(reader)
            held = set(purge.held_back(reader, items))
            items = [item for item in items if item not in held]
            protected = signing.protected(reader)
        unfinished = bool(purge.others(self.store.root)) and not self.dry
        if not items and not unfinished:
            return
        if protected and items:
            self.slept.needs.append(
                f"the bytes of {len(items):,} forgotten things wait for a signature: 'remem purge'"
            )
            return
        part = items[0][0] if items else None
        first = next(iter(self.nights.values()))
        night = first if part is None else self._night(part.tenant, part.profile)
        if self.dry:
            night.count("purged", len(items))
            return
        try:
            report = sweep.run(self.store, night.actor, progress=self.progress)
        except (StoreLocked, Refused) as error:
            night.note(f"what was forgotten waits for its purge: {error}")
            return
        night.count("purged", len(report.refs))
        if report.proof is not None and report.proof.findings:
            self.slept.findings = len(report.proof.findings)
            self.slept.needs.append("bytes that were purged are still there: 'remem purge' again")

    def _part(self, night: Night, part: Part) -> None:
        """Everything that looks at what a partition says."""
        if night.over:
            return
        with self.store.read(night.actor.grant) as reader:
            seq = reader.last_seq(part)
            mark = f"{part.number}"
            if not self.dry and self.stamp.has_seen(mark, seq, night.now):
                return
            view = look(reader, part, night.now, over=lambda: night.over, say=night.say)
        if view is None:
            return
        went = duplicates.retire(night, part, view)
        view.evidence = [row for row in view.evidence if row.ref not in went]
        view.claims = [row for row in view.claims if row.ref not in went]
        attach.attach(night, part, view)
        attach.propose(night, part, view)
        if episodes.propose(night, part, view) and not night.over:
            self.stamp.see(mark, seq, night.now)

    def _project(self) -> None:
        """Bring the indexes up; what is missing there costs answers, never truth."""
        if self.dry or any(night.over for night in self.nights.values()):
            return
        from remem.index import project
        from remem.index.engine import dense_side

        first = next(iter(self.nights.values()))
        try:
            done = project.project(self.store, progress=self.progress)
            self.slept.documents = done.added
            dense = dense_side(
                self.means.embedder,
                cache_dir=self.means.cache_dir,
                api_key=self.means.embedder_key,
            )
            if dense is not None:
                left = first.seconds_left
                self.slept.vectors, self.slept.pending_vectors = dense.project(
                    self.store,
                    budget_s=VECTORS_S if left is None else left,
                    progress=self.progress,
                )
        except RememError as error:
            first.note(f"the index is behind: {error}")

    def _look_around(self, night: Night) -> None:
        """Count what is due or waits; nothing is changed."""
        with self.store.read(night.actor.grant) as reader:
            eye = Eye(Lens(night.now), reader)
            self.slept.loops_due += len(loops.due(eye, night.now))
            self.slept.waiting += len(drafts.waiting(reader))

    # -- the end ------------------------------------------------------------------------------

    def _finish(self, *, broken: bool) -> None:
        slept = self.slept
        for night in self.nights.values():
            if night.left or broken:
                slept.status = PARTIAL
        for night in self.nights.values():
            for name, number in night.counts.items():
                slept.counts[name] = slept.counts.get(name, 0) + number
            slept.notes += [note for note in night.notes if note not in slept.notes]
            if night.counts:
                self._write_run(night)
        proposed = sum(slept.counts.get(name, 0) for name in _PROPOSALS)
        if proposed:
            what = "1 proposal waits" if proposed == 1 else f"{proposed:,} proposals wait"
            slept.needs.append(f"{what} for review: 'remem review'")
        slept.ended = time.time_ns() // 1000
        if not self.dry and not self.drain_only:
            self.stamp.started, self.stamp.ended = slept.started, slept.ended
            self.stamp.status, self.stamp.surface = slept.status, self.surface
            self.stamp.counts = slept.counts
            write_stamp(self.store.locks_path, self.stamp)

    def _write_run(self, night: Night) -> None:
        parts = night.parts()
        if not parts or self.dry:
            return
        scope = msgspec.structs.replace(night.scope, collection=parts[0].collection)
        self.slept.runs.append(
            self.store.write(
                night.actor,
                lambda tx: runs.write(
                    tx,
                    scope,
                    started=self.slept.started,
                    counts=night.counts,
                    notes=night.notes,
                    finished=self.slept.status == DONE,
                ),
            )
        )


_PROPOSALS = (attach.PROPOSED, episodes.SUMMED, episodes.RENEWED)


# -- steps of one night -------------------------------------------------------------------------


def _briefs(night: Night) -> None:
    """Do what was hinted before this sleep."""
    with night.store.read(night.actor.grant) as reader:
        waiting = briefs.waiting(reader)
    for brief in waiting:
        if night.over:
            return
        try:
            done = night.store.write(night.actor, lambda tx, b=brief: briefs.consume(tx, b))  # type: ignore[misc]
        except (NotFound, Refused):
            continue  # somebody closed or forgot it meanwhile
        night.count("briefs")
        night.count("promoted", len(done.promoted))
        night.count("expired", len(done.expired))
        night.count("loops_done", len(done.done))
        if done.skipped:
            night.note(f"{len(done.skipped):,} hints of briefs could not be followed")


def _expire(night: Night) -> None:
    """Withhold the short notes whose time is over."""
    while not night.over:
        done = night.store.write(night.actor, lambda tx: tiers.expire(tx))
        night.count("expired", len(done.notes) + len(done.memories))
        night.count("kept", len(done.kept))
        if not done.left:
            return


def _retain(night: Night) -> None:
    """Carry the retention rules out."""
    if night.over:
        return
    with night.store.read(night.actor.grant) as reader:
        if not retention.rules(reader):
            return
    for due in retention.run(night.store, night.actor, now=night.now, progress=night.say):
        name = "retained" if due.rule.action == "expire" else "forgotten"
        night.count(name, due.observations + due.memories)
