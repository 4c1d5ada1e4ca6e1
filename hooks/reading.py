"""The reading half of the Python interface: asking, looking at one thing, and what stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.hooks import naming, results, shaping
from remem.hooks.asking import Asking
from remem.objects.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from remem.objects.reader import Found as Named
    from remem.objects.reader import Reader

    When = datetime | int


class Reading(Asking):
    """What can be read of an open store under one grant."""

    # -- looking ------------------------------------------------------------------------------

    def show(
        self,
        id: str,
        *,
        rev: int | None = None,
        as_of: When | None = None,
        known_at: When | None = None,
    ) -> results.Shown:
        """One revision of a ref, with its status, times, citations and lineage.

        Args:
            id: id or unique prefix; of a later revision it shows that revision.
            rev: number of the revision, from 1.
            as_of: what held then.
            known_at: as it was believed then.

        Raises:
            NotFound: nothing of the granted scopes has that id; a draft is no evidence either.
            Forgotten: it was forgotten.
        """
        from remem.hooks import looking

        if rev is not None and (as_of is not None or known_at is not None):
            raise UsageError("give either a revision or a time, not both")
        lens = self.lens("history", as_of, known_at)
        with self.objects.read(self.grant) as reader:
            found = naming.content(reader, self._find(reader, id))
            return looking.shown(reader, looking.choose(reader, found, rev, lens))

    def history(self, id: str, *, limit: int | None = None) -> list[results.Entry]:
        """The life of one ref, newest entry first.

        Raises:
            NotFound: nothing of the granted scopes has that id.
        """
        with self.objects.read(self.grant) as reader:
            found = self._find(reader, id)
            return [
                shaping.entry(reader, found.part, entry)
                for at, entry in enumerate(reader.entries(found.part, found.state))
                if limit is None or at < limit
            ]

    def log(self, *, limit: int = 20) -> list[results.Entry]:
        """The latest operations of the granted scope, newest first."""
        from itertools import islice

        from remem.hooks import looking

        with self.objects.read(self.grant) as reader:
            return [
                shaping.entry(reader, part, entry)
                for part, entry in islice(looking.latest(reader), limit)
            ]

    def _find(self, reader: Reader, id: str) -> Named:
        return naming.resolve(reader, self.actor.scope, id)

    # -- what stands --------------------------------------------------------------------------

    def pins(self) -> list[results.Pin]:
        """Every pin, also those that show nothing any more; in the order of their making."""
        from remem.index import whose
        from remem.objects import pins
        from remem.objects.views import Eye

        with self.objects.read(self.grant) as reader:
            return [
                shaping.pin(one, whose.shown(reader, one))
                for one in pins.every(Eye(self.lens(), reader))
            ]

    def loops(
        self, *, due: bool = False, about: str = "", done: bool = False
    ) -> list[results.Loop]:
        """Open loops.

        Args:
            due: only those whose time or topic has come.
            about: with due: what is spoken of; its words bring topics back.
            done: those that are done as well.
        """
        from remem.index import whose
        from remem.objects import loops
        from remem.objects.views import Eye

        if due and done:
            raise UsageError("a loop that is done is not due: give one of 'due' and 'done'")
        if about and not due:
            raise UsageError("'about' goes with 'due'")
        lens = self.lens()
        with self.objects.read(self.grant) as reader:
            eye = Eye(lens, reader)
            if due:
                from remem.index.analyze import terms

                found = loops.due(eye, lens.now, about, terms)
            else:
                found = loops.every(eye) if done else loops.opened(eye)
            return [
                shaping.loop(one, loops.settled(eye, one), lens.now, whose.shown(reader, one))
                for one in found
            ]

    def tasks(
        self,
        key: str | None = None,
        *,
        view: str | None = None,
        as_of: When | None = None,
        known_at: When | None = None,
    ) -> list[results.Task]:
        """The state of the task with a key, or of all tasks; in view ``history`` every state."""
        from remem.index import whose
        from remem.objects import tasks
        from remem.objects.views import Eye

        with self.objects.read(self.grant) as reader:
            eye = Eye(self.lens(view, as_of, known_at), reader)
            found = tasks.every(eye) if key is None else tasks.of(eye, key)
            return [shaping.task(one, whose.shown(reader, one)) for one in found]

    def briefs(self) -> list[results.Brief]:
        """Briefs that wait for the next consolidation."""
        from remem.objects import briefs

        with self.objects.read(self.grant) as reader:
            return [shaping.brief(one) for one in briefs.waiting(reader)]

    def status(self) -> results.Status:
        """Who acts, where, and what stands there."""
        from remem.objects import briefs, drafts, loops, pins, tasks
        from remem.objects.views import Eye

        grant, lens = self.grant, self.lens()
        can = {
            "read": grant.reads,
            "write": grant.writes,
            "propose": grant.proposes,
            "review": grant.reviews,
        }
        with self.objects.read(grant) as reader:
            eye = Eye(lens, reader)
            items = drafts.waiting(reader)
            return results.Status(
                principal=grant.principal,
                can=[name for name, may in can.items() if may or grant.owner],
                scope=shaping.names(self.actor.scope),
                collections=None if grant.collections is None else list(grant.collections),
                open_loops=len(loops.opened(eye)),
                due_loops=len(loops.due(eye, lens.now)),
                pins=len(pins.shown(eye)),
                tasks=len(tasks.every(eye)),
                briefs=len(briefs.waiting(reader)),
                waiting=results.Waiting(
                    len(items), shaping.maybe(items[0].since if items else None)
                ),
            )
