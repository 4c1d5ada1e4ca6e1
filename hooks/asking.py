"""Asking an open store: questions, contexts, the banner of a session.

One rule decides what may be seen (`remem.objects.views`); what is held back comes only to who may
decide on it, and only when it is asked for by name.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from remem.hooks import results, shaping
from remem.hooks.options import Options
from remem.objects.errors import RememError, ScopeRefused, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime
    from types import TracebackType
    from typing import Self

    from remem.index.asked import Here
    from remem.index.engine import Engine
    from remem.index.hits import Answer as Found
    from remem.index.hits import Question
    from remem.objects.scope import Actor, Grant
    from remem.objects.store import Store as Objects
    from remem.objects.views import Lens

    When = datetime | int
    Progress = Callable[[str, int, int], None]

MAX_WARNINGS = 50


class Asking:
    """An open store under one grant; may be used from several threads.

    Attributes:
        objects: the object store.
        actor: who acts, through which surface, in which scope.
        grant: what is read.
        options: settings.
        warnings: what was found amiss, the latest last.
        here: where questions are asked from, so that "in this folder" can be understood.
    """

    def __init__(
        self,
        objects: Objects,
        actor: Actor,
        grant: Grant,
        options: Options | None = None,
        *,
        warm: bool = True,
    ) -> None:
        """Bind a store.  `remem.open` finds store, principal and settings for you.

        Args:
            objects: the open object store.
            actor: who writes, through which surface, into which scope.
            grant: what is read.
            options: settings.
            warm: the process lives for many questions: load for speed, not for a quick start.
        """
        self.objects = objects
        self.actor = actor
        self.grant = grant
        self.options = Options() if options is None else options
        self.warnings: list[str] = []
        self.here: Here | None = None
        self._warm = warm
        self._engines: dict[str, Engine] = {}
        self._asking = threading.RLock()

    # -- life ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Give the store up."""
        self._engines.clear()
        self.objects.close()

    def __enter__(self) -> Self:
        """Use it in a with statement."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    # -- asking -------------------------------------------------------------------------------

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        mode: str | None = None,
        view: str | None = None,
        as_of: When | None = None,
        known_at: When | None = None,
        kinds: Sequence[str] = (),
        role: str = "",
        since: When | None = None,
        until: When | None = None,
        include: Sequence[str] = (),
        folder: str = "",
        exit: str = "",
        branch: str = "",
        why: bool = False,
    ) -> results.Answer:
        """Find what bears on a question: ranked, cited hits.

        Args:
            query: the question, in any words; may be empty where something else narrows it down.
            limit: hits wanted.
            mode: hybrid, lexical or vector.
            view: now, history or changes; by default ``now``, unless the question is about the
                past.
            as_of: what was true then.
            known_at: what the store believed then.
            kinds: only these kinds.
            role: only what this role said.
            since: not before.
            until: before.
            include: withheld statuses that are asked for by name; for the owner and reviewers.
            folder: only commands that ran in this folder, or below it: an absolute path.
            exit: only commands that ended so: failed, ok or an exit status.
            branch: only commands that ran while this branch was checked out.
            why: keep the parts of each score.

        Raises:
            UsageError: an argument cannot be.
            ScopeRefused: it may not see what is held back.
        """
        from remem.hooks import questions

        ran, left = questions.of_commands(_names(folder), exit, branch, kinds)
        question = questions.make(
            query,
            self.lens(view, as_of, known_at, include),
            limit=self.options.limit if limit is None else limit,
            mode=mode or self.options.mode,
            kinds=left,
            role=role,
            since=_micros(since),
            until=_micros(until),
            why=why,
            auto=view is None,
            ran=ran,
            here=self.here,
        )
        return self.answer(question)

    def recall_many(
        self, queries: Iterable[str], *, limit: int | None = None
    ) -> list[results.Answer]:
        """Answer several questions, each as `recall` does; the store is brought up to date once."""
        from remem.hooks import questions

        wanted = self.options.limit if limit is None else limit
        mode = self.options.mode
        found: list[results.Answer] = []
        with self._asking:
            engine = self.engine(mode)
            for query in queries:
                question = questions.make(query, self.lens(), limit=wanted, mode=mode, auto=True)
                questions.check(question)
                found.append(shaping.answer(question, engine.searcher.ask(question)))
        return found

    def answer(self, question: Question) -> results.Answer:
        """Answer a question that is made already; see `recall`."""
        return shaping.answer(question, self.ask(question))

    def ask(self, question: Question, progress: Progress | None = None) -> Found:
        """Hits of a question as the ranking has them: for callers that render them."""
        from remem.hooks import questions

        questions.check(question)
        with self._asking:
            return self.engine(question.mode, progress).searcher.ask(question)

    def lens(
        self,
        view: str | None = None,
        as_of: When | None = None,
        known_at: When | None = None,
        include: Sequence[str] = (),
    ) -> Lens:
        """How the store is looked at.

        Raises:
            UsageError: there is no such view or status.
            ScopeRefused: it may not see what is held back.
        """
        from remem.hooks import questions

        return questions.lens(
            view,
            as_of=_micros(as_of),
            known_at=_micros(known_at),
            include=include,
            may_include=self.grant.owner or self.grant.reviews,
            refused=lambda: self.refused("see what is held back", "recall", "not_reviewer"),
        )

    def refused(self, what: str, action: str, outcome: str) -> ScopeRefused:
        """The error for what the principal may not do, once its row is in the audit chain."""
        from remem.objects import principals

        principals.refuse(self.objects, self.grant, self.actor.surface, action, outcome)
        return ScopeRefused(f"'{self.grant.principal}' may not {what}")

    def engine(self, mode: str, progress: Progress | None = None) -> Engine:
        """The engine of a mode, brought up to what is written by now."""
        from remem.index.engine import Engine
        from remem.index.hits import MODES

        if mode not in MODES:
            raise UsageError(f"'{mode}' is no mode", hint="one of " + ", ".join(MODES))
        with self._asking:
            engine = self._engines.get(mode)
            if engine is None:
                engine = self._engines[mode] = Engine(
                    self.objects,
                    self.grant,
                    mode=mode,
                    embedder=self.options.embedder,
                    cache_dir=self.options.cache_dir,
                    api_key=self.options.embedder_key,
                    reranker=self.options.reranker,
                    warm=self._warm,
                )
            self.derive_soon()
            engine.refresh(progress)
            for warning in engine.warnings:
                self._warn(warning)
            engine.warnings.clear()
            return engine

    def follow(self) -> None:
        """Give up what a purge removed; for a process that waits between two questions.

        Raises:
            RememError: the store cannot be looked at now.
        """
        if self._asking.acquire(blocking=False):  # who is asking follows by himself
            try:
                self.objects.follow()
                for engine in self._engines.values():
                    engine.follow()
            finally:
                self._asking.release()

    def derive_soon(self) -> bool:
        """Derive from the few entries that wait; True when there were some."""
        may = self.grant.owner or self.grant.writes
        if self.objects.readonly or not self.options.derivers or not may:
            return False
        from remem.hooks import deriving

        try:
            done = deriving.run(
                self.objects,
                self.actor,
                self.grant,
                self.options.derivers,
                single=self.options.single,
                most=deriving.FEW,
            )
        except RememError as error:
            self._warn(f"nothing was derived: {error}")
            return False
        return done is not None

    def _warn(self, text: str) -> None:
        """Keep a warning; a process that lives long does not collect them without end."""
        if text not in self.warnings:
            self.warnings.append(text)
            del self.warnings[:-MAX_WARNINGS]

    def known_scope(self) -> bool:
        """Whether anything can be seen here at all; an empty answer may have that reason."""
        with self.objects.read(self.grant) as reader:
            return any(reader.has_lanes(part) for part in reader.parts)

    # -- contexts -----------------------------------------------------------------------------

    def context(
        self,
        query: str,
        *,
        budget: int | None = None,
        tokens: bool = False,
        evidence: bool = True,
        markdown: bool = True,
        mode: str | None = None,
        view: str | None = None,
        as_of: When | None = None,
        known_at: When | None = None,
        include: Sequence[str] = (),
    ) -> results.Context:
        """A cited block for a prompt: pins word for word, what is due, memories, evidence.

        Args:
            query: what the prompt is about.
            budget: at most so many characters, or tokens.
            tokens: count tokens, 4 bytes of UTF-8 each.
            evidence: observations too, not only memories.
            markdown: headings as Markdown has them.
            mode: hybrid, lexical or vector.
            view: now, history or changes.
            as_of: what was true then.
            known_at: what the store believed then.
            include: withheld statuses that are asked for by name.

        Raises:
            UsageError: an argument cannot be.
            OverBudget: the pins alone are larger; none of them is left out.
        """
        from remem.hooks import questions

        question = questions.for_context(
            query,
            self.lens(view, as_of, known_at, include),
            mode=mode or self.options.mode,
            auto=view is None,
        )
        return self.block(
            question, budget=budget, tokens=tokens, evidence=evidence, markdown=markdown
        )

    def block(
        self,
        question: Question,
        *,
        budget: int | None = None,
        tokens: bool = False,
        evidence: bool = True,
        markdown: bool = True,
        progress: Progress | None = None,
    ) -> results.Context:
        """The context of a question that is made already; see `context`."""
        from remem.hooks import questions

        limit = self.options.budget if budget is None else budget
        size = questions.Size(limit, tokens=tokens, evidence=evidence, markdown=markdown)
        found = self.ask(question, progress)
        made, standing = questions.pack(self.objects, self.grant, question, found, size)
        return shaping.context(question, found, size, made, standing)

    def banner(self, *, since: When | None = None, budget: int | None = None) -> str:
        """What stands at the beginning of a session.

        Pins, loops that are due, what changed since then and how much waits for review, as a block
        that says that it is data; empty when there is none of these.

        Args:
            since: what changed after this is told of; None for the end of the last session here.
            budget: at most so many characters.
        """
        from remem.hooks import banner

        limit = self.options.budget if budget is None else budget
        lens = self.lens()
        return banner.build(
            self.objects, self.grant, lens, self.actor.scope, since=_micros(since), budget=limit
        )

    def pin_block(self) -> str:
        """The pins word for word, as the block of a prompt; empty without any."""
        from remem.index import context as packing
        from remem.index import pinned

        taken = pinned.standing(self.objects, self.grant, self.lens(), "").pins
        return packing.render(taken, "markdown") if taken else ""


def _names(folder: str) -> tuple[str, ...]:
    """A folder as it was named, and as it is without links.

    Raises:
        UsageError: it is no absolute path.
    """
    import os

    if folder and not os.path.isabs(folder):
        raise UsageError(f"the folder '{folder[:200]}' is no absolute path")
    named = (os.path.normpath(folder), os.path.realpath(folder)) if folder else ()
    return tuple(dict.fromkeys(named))


def _micros(when: When | None) -> int | None:
    return None if when is None else shaping.micros(when)
