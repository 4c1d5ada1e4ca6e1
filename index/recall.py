"""Recall: a question in, ranked and cited hits out.

question -> terms, vector, names, periods -> candidates of each granted partition -> order ->
the lens (views, times, withheld statuses) and the filters, before the cut to k -> hits with their
citations.  What is not projected yet is scanned, so that one's own writes are always found.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import msgspec

from remem.index import lexical, project, rank, scoring
from remem.index.analyze import query_terms
from remem.index.entities import Entities
from remem.index.fields import MEMORY_LANE, clean
from remem.index.hits import MODES, QUOTE, Answer, Cite, Hit, Question, excerpt, matches
from remem.index.past import about_past, within
from remem.index.scan import Scan
from remem.index.timewords import periods
from remem.index.truths import Collector
from remem.objects import kv
from remem.objects.errors import RememError
from remem.objects.views import Eye

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remem.index.dense import F32, Dense
    from remem.index.truths import Ranked, Windows
    from remem.objects.kv import Env, Txn
    from remem.objects.reader import Part, Reader
    from remem.objects.scope import Grant
    from remem.objects.store import Store

__all__ = [
    "MODES",
    "QUOTE",
    "Answer",
    "Cite",
    "Hit",
    "Question",
    "Searcher",
    "excerpt",
    "matches",
]

# A question with one of these words is about what an assistant or a tool said or did.
_ABOUT_AGENTS = frozenset(
    "you your assistant agent claude codex gemini chatgpt tool tools output command commands ran "
    "run error errors stdout stderr printed file files edited".split()
)


OBSERVATION = "observation"  # as a kind: every observation, whatever its own kind
MATCHES = 0.6  # of the best score: what a period must hold to be looked in alone


class Searcher:
    """Asks questions of one store; keeps what was loaded between questions."""

    def __init__(self, store: Store, grant: Grant, dense: Dense | None = None) -> None:
        """Bind a store, a grant and, where vectors may be used, the dense side."""
        self.store = store
        self.grant = grant
        self.dense = dense
        self._env: tuple[str, Env] | None = None

    def ask(self, question: Question) -> Answer:
        """Answer one question."""
        degraded: list[str] = []
        reason = about_past(question.text, question.lens) if question.auto else None
        if reason is not None:
            lens = msgspec.structs.replace(question.lens, view="history")
            question = msgspec.structs.replace(question, lens=lens)
        mode, vector = self._vector(question, degraded)
        try:
            hits = self._look(question, mode, vector, degraded, indexed=True)
        except (RememError, OSError) as error:  # of the truth it is raised again without the index
            degraded.append(f"lexical: {error}")
            hits = self._look(question, mode, vector, degraded, indexed=False)
        said = "; ".join(dict.fromkeys(degraded)) or None
        return Answer(hits, mode, said, question.lens.view, reason)

    def _look(
        self,
        question: Question,
        mode: str,
        vector: F32 | None,
        degraded: list[str],
        *,
        indexed: bool,
    ) -> list[Hit]:
        """Hits on one pair of snapshots.

        That of the index is taken first: it may then lag behind the truth, but never be ahead.
        """
        with ExitStack() as held:
            txn: Txn | None = None
            env = self._lexical() if indexed else None
            if env is not None:
                txn = held.enter_context(env.read(buffers=True))
                if not project.current_stamp(txn):
                    txn = None
            reader = held.enter_context(self.store.read(self.grant))
            return _Look(self, reader, question, mode, vector, degraded).run(txn)

    def _lexical(self) -> Env | None:
        """The inverted index of the present generation, opened once and let go when it is left."""
        path = project.lexical_path(self.store)
        if self._env is None or self._env[0] != path or self._env[1].moved():
            if self._env is not None:
                kv.release(self._env[1])
                self._env = None
            env = project.open_lexical(self.store, write=False)
            if env is not None:
                self._env = path, env
        return None if self._env is None else self._env[1]

    def _vector(self, question: Question, degraded: list[str]) -> tuple[str, F32 | None]:
        """The mode that can be used, and the question's vector."""
        if question.mode == "lexical":
            return "lexical", None
        if self.dense is None:
            if question.mode == "vector":
                degraded.append("no embedder: lexical ranking instead")
            return "lexical", None
        try:
            return question.mode, self.dense.encode(question.text)
        except RememError as error:
            degraded.append(str(error))
            return "lexical", None


class _Look:
    """One question on one snapshot."""

    def __init__(
        self,
        searcher: Searcher,
        reader: Reader,
        question: Question,
        mode: str,
        vector: F32 | None,
        degraded: list[str],
    ) -> None:
        self.searcher = searcher
        self.reader = reader
        self.question = question
        self.mode = mode
        self.vector = vector
        self.degraded = degraded
        self.terms = query_terms(question.text)
        self.eye = Eye(question.lens, reader)
        self.periods, self.windows = named_periods(question)
        self.must: list[bytes] = []
        if question.role:
            self.must.append(b"\0r:" + clean(question.role))
        if question.kinds == (OBSERVATION,):
            self.must.append(b"\0t:observation")
        elif len(question.kinds) == 1:
            self.must.append(b"\0k:" + clean(question.kinds[0]))
        self.top = 0.0

    def run(self, txn: Txn | None) -> list[Hit]:
        """Hits over all granted partitions, best first, cut to the limit."""
        if txn is not None and len(self.reader.parts) > 1:
            self.top = max(self._top(txn, part) for part in self.reader.parts)
        found = self._collect(txn, None)
        if self.windows is not None and found:
            inside = self._collect(txn, self.windows)
            if inside and inside[0].score >= MATCHES * found[0].score:
                return inside
        return found

    def _top(self, txn: Txn, part: Part) -> float:
        """Best lexical score of a partition: scores of several are brought to one scale."""
        best = scoring.search(txn, part.number, self.terms, must=self.must, limit=1).top
        return best[0][1] if best else 0.0

    def _collect(self, txn: Txn | None, windows: Windows | None) -> list[Hit]:
        from heapq import merge

        streams = [self._stream(txn, part) for part in self.reader.parts]
        ranked = merge(*streams, key=lambda found: -found[0]) if len(streams) != 1 else streams[0]
        return Collector(self.eye, self.question, self.terms, windows).collect(ranked)

    def _stream(self, txn: Txn | None, part: Part) -> Iterator[Ranked]:
        """Documents of a partition, best first, to the last that matches."""
        last = self.reader.last_seq(part)
        at = project.cursor(txn, part.number) if txn is not None else 0
        if at > last:
            at, txn = 0, None
        tail: Scan | None = None
        if at < last:
            tail = Scan(self.reader, part, at, self.terms)
        indexed = self._indexed(txn, part, tail) if txn is not None else iter(())
        if tail is None:
            yield from indexed
            return
        from heapq import merge

        stale = tail.touched
        fresh = ((s, part, r, o, 0, {"lexical": s}) for s, r, o in tail.ranked())
        kept = (found for found in indexed if found[2] not in stale)
        yield from merge(kept, fresh, key=lambda found: -found[0])

    def _indexed(self, txn: Txn, part: Part, tail: Scan | None) -> Iterator[Ranked]:
        number = part.number
        pool = max(rank.POOL, 4 * self.question.limit)
        rows: dict[int, lexical.DocRow] = {}
        candidates: dict[int, rank.Candidate] = {}

        def candidate(docno: int) -> rank.Candidate:
            found = candidates.get(docno)
            if found is None:
                row = rows[docno] = lexical.doc(txn, number, docno)
                found = candidates[docno] = rank.Candidate(docno, row.lane, row.when)
            return found

        lexical_hits: scoring.Hits | None = None
        if self.mode != "vector" and self.terms:
            lexical_hits = scoring.search(txn, number, self.terms, must=self.must, limit=pool)
            for docno, score in lexical_hits.top:
                candidate(docno).lexical = score
        if self.vector is not None:
            self._near(txn, part, pool, candidate, lexical_hits)
        links = Entities(txn, self.reader, part).facts(self.eye, self.question.text)
        for docno in links:
            if not self.must or self._passes(txn, part, docno):
                candidate(docno)
        around: dict[int, list[int]] = {}

        def beside(docno: int) -> list[int]:
            if rows[docno].lane & MEMORY_LANE:
                return []
            if docno not in around:
                before, behind = lexical.neighbours(txn, number, docno)
                around[docno] = before + behind
            return around[docno]

        marks: dict[int, list[bytes]] = {}

        def own(docno: int) -> list[bytes]:
            if docno not in marks:
                marks[docno] = lexical.filters_of(txn, number, docno)
            return marks[docno]

        def share(docno: int) -> float:
            return min((rank.DISCOUNT.get(mark, 1.0) for mark in own(docno)), default=1.0)

        ordered = rank.order(
            candidates,
            beside=beside,
            speaker=self._speaker(own),
            weight=None if _ABOUT_AGENTS & set(self.question.text.lower().split()) else share,
            periods=self.periods,
            links=links,
            lanes=2,
            top_lexical=self.top,
        )
        if tail is not None and lexical_hits is not None:
            tail.beside(txn, number, max((s for _, s in lexical_hits.top), default=0.0))
        last = 0.0
        for c in ordered:
            row = rows[c.docno]
            last = c.score
            yield c.score, part, row.ref, row.oid, row.seq, c.parts
        if lexical_hits is not None and len(lexical_hits.top) >= pool:
            best = self.top or lexical_hits.top[0][1]
            for docno, score in lexical_hits:
                if docno not in candidates:
                    row = lexical.doc(txn, number, docno)
                    rest = min(last, score / best)
                    yield rest, part, row.ref, row.oid, row.seq, {"lexical": rest}

    def _near(
        self,
        txn: Txn,
        part: Part,
        pool: int,
        candidate: Callable[[int], rank.Candidate],
        lexical_hits: scoring.Hits | None,
    ) -> None:
        """Add the nearest vectors to the candidates, and vector scores to those that are there."""
        dense = self.searcher.dense
        assert dense is not None and self.vector is not None
        taken = passed = 0
        while passed < self.question.limit:
            try:
                found = dense.search(self.searcher.store, part, self.vector, pool)
            except RememError as error:
                self.degraded.append(str(error))
                return
            for seq, score in found[taken:]:
                docno = self._docno(txn, part, seq)
                if docno is None or not self._passes(txn, part, docno):
                    continue
                passed += 1
                c = candidate(docno)
                c.vector = score
                if lexical_hits is not None and not c.lexical:
                    c.lexical = lexical_hits.score(docno)
            if len(found) < pool:
                return
            taken, pool = pool, 4 * pool  # a selective filter: look at more, in the end at all

    def _docno(self, txn: Txn, part: Part, seq: int) -> int | None:
        """The document whose vector has this number, or None when it is gone."""
        try:
            entry = self.reader.entry(part, seq)
        except RememError:
            return None
        if entry.new is None or not self.reader.sees_lane(part, entry.lane):
            return None
        return lexical.docno_of(txn, part.number, entry.ref, entry.new)

    def _passes(self, txn: Txn, part: Part, docno: int) -> bool:
        """Whether a document passes the filters that the index knows."""
        question = self.question
        if self.must:
            own = lexical.filters_of(txn, part.number, docno)
            if not all(wanted in own for wanted in self.must):
                return False
        if question.since is None and question.until is None:
            return True
        when = lexical.doc(txn, part.number, docno).when
        if when is None:
            return True
        early = question.since is not None and when < question.since
        return not early and not (question.until is not None and when >= question.until)

    def _speaker(self, own: Callable[[int], list[bytes]]) -> Callable[[int], bool] | None:
        """Whether a document was said by someone whom the question names."""
        asked = {b"\0s:" + term for term, _ in self.terms}
        return lambda docno: not asked.isdisjoint(own(docno))


def named_periods(question: Question) -> tuple[Windows, Windows | None]:
    """Periods that a question names: those that count for more, those that all must lie in."""
    found = [p for p in periods(question.text, now=question.lens.now) if not p.recurring]
    strict = [
        (p.start, p.end) for p in found if p.kind == "absolute" and within(question.text, p.span)
    ]
    return [(p.start, p.end) for p in found], strict or None
