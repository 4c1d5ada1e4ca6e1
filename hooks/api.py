"""The Python interface: one open store, bound to a principal and a scope.

    import remem

    with remem.open(collection="notes") as store:
        store.observe("The deploy host is beta-3.")
        for hit in store.recall("which host do we deploy to?"):
            print(hit.text, hit.cites)

Who acts and where is bound when the store is opened; no method takes a tenant, a profile or a
principal, and there is no read without a scope.  Every method opens its own snapshot or
transaction, so what other processes wrote is seen at the next call.  The command line and the MCP
server answer through the same methods.

Ids may be written as unique prefixes of seven or more hex digits, or as ``@{last}``.  Times are
aware datetimes or microseconds since 1970 (UTC).  Every error is a `remem.RememError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.hooks import naming, results, shaping, writing
from remem.hooks.deciding import Deciding
from remem.objects import refs
from remem.objects.errors import ScopeRefused, UsageError
from remem.objects.model import Incoming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from remem.hooks.proposing import Operation
    from remem.objects.admit import Admitted
    from remem.objects.model import Rejected, Skipped
    from remem.objects.reader import Found as Named
    from remem.objects.tx import Tx

    When = datetime | int


class Store(Deciding):
    """An open store under one grant; may be used from several threads."""

    # -- keeping ------------------------------------------------------------------------------

    def observe(
        self,
        text: str,
        *,
        at: When | None = None,
        role: str = "",
        speaker: str = "",
        origin: str = "",
        source: str = "",
        source_id: str = "",
        tool: str = "",
        kind: str = "",
        corrects: str | None = None,
        short: bool = False,
        session: str | None = None,
        meta: dict[str, object] | None = None,
    ) -> results.Observed:
        """Keep one piece of evidence.

        Args:
            text: what was said or done.
            at: when it was said; None means unknown.
            role: user, assistant, tool or system.
            speaker: name of who said it.
            origin: whose word it is (owner, agent, tool, untrusted); by default the owner's for
                the owner and ``agent`` for everybody else.
            source: where it comes from.
            source_id: the source's own id of it; a repeat is known by it.
            tool: the tool that produced it.
            kind: what sort of evidence it is.
            corrects: id of what it takes the place of.
            short: keep it for some days only, unless it is promoted.
            session: a session other than the bound one, where the grant covers it.
            meta: further fields.

        Returns:
            Its id and what became of it: new, known or blocked.

        Raises:
            BadInput: it cannot be taken.
            ScopeRefused: the principal may not write there.
        """
        record = Incoming(
            text=text,
            asserted=None if at is None else shaping.micros(at),
            role=role,
            speaker=speaker,
            origin=origin or ("owner" if self.grant.owner else "agent"),
            session=session,
            source_uri=source,
            source_id=source_id,
            tool=tool,
            kind=kind,
            meta=meta or {},
        )
        return shaping.observed(self.take(record, corrects=corrects, short=short))

    def take(
        self, record: Incoming, *, corrects: str | None = None, short: bool = False
    ) -> Admitted:
        """Keep a record as it is; see `observe`."""
        found: Named | None = None
        if corrects is not None:
            if short:
                raise UsageError("what corrects something lasts: it cannot be short")
            with self.objects.read(self.grant) as reader:
                found = naming.resolve(reader, self.actor.scope, corrects)
        return writing.observe(
            self.objects,
            self.actor,
            record,
            limit_b=self.options.limit_b,
            corrects=found,
            days=self.options.short_days if short else None,
            derive=self.derive_soon,
        )

    def observe_many(
        self,
        records: Iterable[Incoming | Rejected | Skipped],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> results.Imported:
        """Keep many records, in large transactions; what a reader of a format yields.

        Args:
            records: evidence as `remem.Incoming`; `remem.read` makes it of a file.
            progress: called with the number read so far.
        """
        from remem.hooks import ingest

        told = None if progress is None else (lambda total: progress(total.read))
        total = ingest.ingest(
            self.objects, self.actor, records, limit_b=self.options.limit_b, progress=told
        )
        return results.Imported(
            total.read,
            total.new,
            total.known,
            total.skipped,
            total.blocked,
            total.rejected,
            [results.Problem(one.where, one.why) for one in total.errors],
        )

    def fact(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        text: str = "",
        kind: str = "fact",
        since: When | None = None,
        until: When | None = None,
        single: bool | None = None,
        evidence: str | None = None,
        reason: str = "",
    ) -> results.Observed:
        """State that something holds; what held before is replaced, at the right place in time.

        Args:
            subject: of whom or what.
            predicate: what of it, such as lives_in.
            object: the value.
            text: the sentence; by default the three parts.
            kind: fact, preference, relation and so on.
            since: when it began to hold; None for now.
            until: when it ceased to hold.
            single: whether the predicate has one value at a time; None for the rule.
            evidence: id of the observation that it rests on; None for its own sentence.
            reason: reason code, one word.

        Raises:
            BadInput, UsageError: it cannot be.
            Blocked: it was forgotten here.
        """
        return shaping.stated(
            writing.state(
                self.objects,
                self.actor,
                self.grant,
                (subject, predicate, object),
                text=text,
                kind=kind,
                starts=None if since is None else shaping.micros(since),
                ends=None if until is None else shaping.micros(until),
                single=single,
                evidence=evidence,
                reason=refs.given_reason(reason or None),
                options=self.options,
            )
        )

    # -- correcting ---------------------------------------------------------------------------

    def revise(
        self, id: str, text: str, *, since: When | None = None, if_head: str | None = None
    ) -> str:
        """Give something another text; the old one stays in its history.

        Returns:
            Id of the new head.

        Raises:
            HeadMoved: ``if_head`` is not the head any more.
        """
        from remem.objects import correct

        def change(tx: Tx, found: Named, expected: bytes | None) -> bytes:
            return correct.revise(
                tx,
                found,
                text,
                expected=expected,
                since=None if since is None else shaping.micros(since),
                limit_b=self.options.limit_b,
            )

        return self._change(id, if_head, change).hex()

    def rollback(self, id: str, *, to: str | None = None, if_head: str | None = None) -> str:
        """Make an earlier revision the head again, by default the one before; its id."""
        from remem.objects import correct

        def change(tx: Tx, found: Named, expected: bytes | None) -> bytes:
            wanted = None
            if to is not None:
                named = naming.resolve(tx.reader, self.actor.scope, to)
                wanted = named.revision or named.ref
            return correct.rollback(tx, found, wanted, expected=expected)

        return self._change(id, if_head, change).hex()

    def close_ref(self, id: str, *, at: When | None = None, if_head: str | None = None) -> None:
        """End the validity of something at an instant (now)."""
        from remem.objects import correct

        def change(tx: Tx, found: Named, expected: bytes | None) -> bytes:
            end = tx.present if at is None else shaping.micros(at)
            correct.close(tx, found, end, expected=expected)
            return found.ref

        self._change(id, if_head, change)

    def reopen_ref(self, id: str, *, if_head: str | None = None) -> None:
        """Take back a close."""
        from remem.objects import correct

        def change(tx: Tx, found: Named, expected: bytes | None) -> bytes:
            correct.reopen(tx, found, expected=expected)
            return found.ref

        self._change(id, if_head, change)

    def _change(
        self,
        id: str,
        if_head: str | None,
        change: Callable[[Tx, Named, bytes | None], bytes],
    ) -> bytes:
        """Run a change of one ref, compared with the head that the caller names or sees now."""
        with self.objects.read(self.grant) as reader:
            found = self._find(reader, id)
            expected = found.state.head
            if if_head is not None:
                named = self._find(reader, if_head)
                expected = named.revision or named.ref
        return self.objects.write(self.actor, lambda tx: change(tx, found, expected))

    def forget(self, *ids: str, reason: str = "", allow_return: bool = False) -> results.Forgetting:
        """Forget: gone from every view at once, its bytes at the next purge.

        Args:
            ids: what is forgotten, with what was derived from it alone.
            reason: reason code, one word.
            allow_return: the same value may be taken in again.

        Raises:
            ScopeRefused: the principal is not the owner.
            NotFound: nothing of the granted scopes has that id.
        """
        from remem.objects import forget

        if not self.grant.owner:
            raise self.refused("forget anything", "forget", "not_owner")
        word = refs.given_reason(reason or None)
        with self.objects.read(self.grant) as reader:
            named = [self._find(reader, id) for id in ids]
        items = list({found.ref: (found.part, found.ref) for found in named}.values())
        done = self.objects.write(
            self.actor,
            lambda tx: forget.forget_many(tx, items, reason=word, allow_return=allow_return),
        )
        groups = (done.observations, done.memories, done.lost_citation)
        rest = (done.held, done.known, done.drafts)
        return results.Forgetting(*([ref.hex() for ref in group] for group in (*groups, *rest)))

    # -- proposing ----------------------------------------------------------------------------

    def propose(self, operations: Sequence[Operation], *, note: str = "") -> results.Proposed:
        """Propose changes; none of them shows until the owner, or who reviews, has approved it.

        Args:
            operations: what is proposed (`remem.Operation`).
            note: a few words on the whole.

        Raises:
            BadInput: an operation lacks what its action needs.
            NotFound: its evidence or its target is not there.
            ScopeRefused: the principal may not propose.
        """
        from remem.hooks import proposing

        return proposing.propose(
            self.objects, self.actor, self.grant, operations, note=note, surface=self.actor.surface
        )

    # -- what stands --------------------------------------------------------------------------

    def pin(self, text: str = "", *, id: str | None = None) -> results.Pinned:
        """Let a text, or what a ref says, stand word for word before every context.

        Raises:
            ScopeRefused: the principal is not the owner.
        """
        from remem.objects import pins

        if bool(text) == (id is not None):
            raise UsageError("give either a text or an id")
        if id is not None:
            with self.objects.read(self.grant) as reader:
                found = self._find(reader, id)
            new = self.objects.write(self.actor, lambda tx: pins.pin(tx, found))
            head = found.state.head or found.ref
            return results.Pinned(head.hex(), found.ref.hex(), new)
        scope, limit_b = self.actor.scope, self.options.limit_b
        stated, new = self.objects.write(
            self.actor, lambda tx: pins.state(tx, scope, text, limit_b=limit_b)
        )
        return results.Pinned(stated.id.hex(), stated.ref.hex(), new)

    def unpin(self, id: str) -> bool:
        """Take a pin out; False when there was none."""
        from remem.objects import pins

        with self.objects.read(self.grant) as reader:
            found = self._find(reader, id)
        return self.objects.write(self.actor, lambda tx: pins.unpin(tx, found))

    def open_loop(
        self,
        text: str,
        *,
        when: When | None = None,
        topic: str = "",
        written: str = "",
        offset: int | None = None,
    ) -> results.Opened:
        """Open an intent that comes back at a time or with a topic.

        Args:
            text: what is intended.
            when: due from this time on.
            topic: due when these words are spoken of.
            written: the time as it was written.
            offset: minutes east of UTC in which it was written.
        """
        from remem.objects import loops

        if (when is None) == (not topic):
            raise UsageError("a loop has one trigger: give either a time or a topic")
        due = None if when is None else shaping.micros(when)
        scope, limit_b = self.actor.scope, self.options.limit_b
        made = self.objects.write(
            self.actor,
            lambda tx: loops.add(
                tx,
                scope,
                text,
                when=due,
                topic=topic,
                written=written,
                offset=offset,
                limit_b=limit_b,
            ),
        )
        return results.Opened(
            made.id.hex(), made.ref.hex(), made.status, shaping.maybe(due), topic or None
        )

    def finish_loop(self, id: str, *, note: str = "") -> str:
        """Say that what was intended is done; the loop is kept.  Returns its ref."""
        from remem.objects import loops

        with self.objects.read(self.grant) as reader:
            found = self._find(reader, id)
        limit_b = self.options.limit_b
        self.objects.write(
            self.actor, lambda tx: loops.finish(tx, found, note=note, limit_b=limit_b)
        )
        return found.ref.hex()

    def set_task(self, key: str, text: str) -> results.TaskSet:
        """Set the working state of a task; what it was before is kept as history."""
        from remem.objects import tasks

        scope, limit_b = self.actor.scope, self.options.limit_b
        made = self.objects.write(
            self.actor, lambda tx: tasks.put(tx, scope, key, text, limit_b=limit_b)
        )
        return results.TaskSet(made.id.hex(), made.ref.hex(), made.status, key)

    def finish_task(self, key: str) -> results.TaskEnded:
        """End a task; its history is kept."""
        from remem.objects import tasks
        from remem.objects.views import Eye, Lens

        granted = self.grant.collections
        places = None if granted is None else set(granted)
        ended = self.objects.write(
            self.actor,
            lambda tx: tasks.finish(tx, Eye(Lens(tx.present), tx.reader), key, collections=places),
        )
        return results.TaskEnded(ended.ref.hex(), ended.key, ended.text)

    def brief(
        self,
        text: str = "",
        *,
        promote: Sequence[str] = (),
        noise: Sequence[str] = (),
        done: Sequence[str] = (),
    ) -> results.Briefed:
        """Leave word for the next consolidation.

        Args:
            text: what is said.
            promote: ids of short notes to keep.
            noise: ids of what to let go before its time; the owner's to say.
            done: ids of loops that are done.
        """
        from remem.objects import briefs, oid

        scope, limit_b = self.actor.scope, self.options.limit_b
        hints: list[list[bytes]] = []
        with self.objects.read(self.grant) as reader:
            for group in (promote, noise, done):
                named = [self._find(reader, id) for id in group]
                hints.append([found.ref for found in named])
                for found in named:
                    if found.part.collection != scope.collection:
                        raise ScopeRefused(f"'{oid.short(found.ref)}' lies in another scope")
        made = self.objects.write(
            self.actor,
            lambda tx: briefs.add(
                tx, scope, text, promote=hints[0], noise=hints[1], done=hints[2], limit_b=limit_b
            ),
        )
        words = [[ref.hex() for ref in group] for group in hints]
        return results.Briefed(made.id.hex(), made.ref.hex(), made.status, *words)

    def promote(self, id: str) -> bool:
        """Keep a short note for good; False when it was kept already."""
        from remem.objects import tiers

        with self.objects.read(self.grant) as reader:
            found = self._find(reader, id)
        return self.objects.write(self.actor, lambda tx: tiers.promote(tx, found))
