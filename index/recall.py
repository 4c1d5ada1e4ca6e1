"""Recall: a question in, ranked and cited hits out.

question -> terms, vector, names, periods -> candidates of each granted partition -> order ->
the lens (views, times, withheld statuses) and the filters, before the cut to k -> hits with their
citations.  What is not projected yet is scanned, so that one's own writes are always found.
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import chain, islice
from typing import TYPE_CHECKING

import msgspec

from remem.index import confidence, project
from remem.index.analyze import query_terms
from remem.index.asked import understand
from remem.index.fields import ROLE, clean, text_of
from remem.index.gather import Pool
from remem.index.hits import MODES, QUOTE, Answer, Cite, Hit, Question, excerpt, matches
from remem.index.listing import newest
from remem.index.past import about_past, windows
from remem.index.scan import Scan
from remem.index.truths import Collector
from remem.objects import kv
from remem.objects.errors import RememError
from remem.objects.views import Eye

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.index.dense import Dense
    from remem.index.meaning import Meaning
    from remem.index.past import Window
    from remem.index.rerank import Reranker
    from remem.index.truths import Ranked
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

OBSERVATION = "observation"  # as a kind: every observation, whatever its own kind
MATCHES = 0.6  # of the best score: what a period must hold to be looked in alone


class Searcher:
    """Asks questions of one store; keeps what was loaded between questions."""

    def __init__(
        self,
        store: Store,
        grant: Grant,
        dense: Dense | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        """Bind a store and a grant; where there are some, the dense side and a reranker."""
        self.reranker = reranker
        self.store = store
        self.grant = grant
        self.dense = dense
        self._env: tuple[str, Env] | None = None

    def ask(self, question: Question) -> Answer:
        """Answer one question; one about commands is asked of the commands first."""
        read = understand(question)
        if read is None:
            return self._ask(question)
        asked, understood = read
        answer = self._ask(asked)
        if not answer.hits and question.text:
            answer = self._ask(question)
            understood = msgspec.structs.replace(understood, found=False)
        return msgspec.structs.replace(answer, understood=understood)

    def _ask(self, question: Question) -> Answer:
        degraded: list[str] = []
        reason = about_past(question.text, question.lens) if question.auto else None
        if reason is not None:
            lens = msgspec.structs.replace(question.lens, view="history")
            question = msgspec.structs.replace(question, lens=lens)
        meaning = self._meaning(question, degraded)
        try:
            hits, mode = self._look(question, meaning, degraded, indexed=True)
        except (RememError, OSError) as error:  # of the truth it is raised again without the index
            degraded.append(f"lexical: {error}")
            hits, mode = self._look(question, meaning, degraded, indexed=False)
        said = "; ".join(dict.fromkeys(degraded)) or None
        sure = confidence.of_answer(hit.confidence for hit in hits)
        return Answer(hits, mode, said, question.lens.view, reason, sure)

    def _look(
        self,
        question: Question,
        meaning: Meaning | None,
        degraded: list[str],
        *,
        indexed: bool,
    ) -> tuple[list[Hit], str]:
        """Hits on one pair of snapshots, and the mode in which they were found.

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
            look = Look(self, reader, question, meaning, degraded)
            return look.run(txn), look.mode

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

    def _meaning(self, question: Question, degraded: list[str]) -> Meaning | None:
        """What vectors the question has, or None where it is asked by its words alone."""
        if question.mode == "lexical" or not question.text:
            return None
        if self.dense is None:
            if question.mode == "vector":
                degraded.append("no embedder: lexical ranking instead")
            return None
        from remem.index.meaning import Meaning

        return Meaning(question.text, self.dense)


class Look:
    """One question on one snapshot."""

    def __init__(
        self,
        searcher: Searcher,
        reader: Reader,
        question: Question,
        meaning: Meaning | None,
        degraded: list[str],
    ) -> None:
        """Bind them, and read the question."""
        self.searcher = searcher
        self.reader = reader
        self.question = question
        self.mode = "lexical" if meaning is None else question.mode
        self.meaning = meaning
        self.degraded = degraded
        self.terms = query_terms(question.text)
        self.eye = Eye(question.lens, reader)
        self.periods, self.windows = windows(question.text, now=question.lens.now)
        self.must: list[bytes] = []
        if question.role:
            self.must.append(ROLE + clean(question.role))
        if question.kinds == (OBSERVATION,):
            self.must.append(b"\0t:observation")
        elif len(question.kinds) == 1:
            self.must.append(b"\0k:" + clean(question.kinds[0]))
        groups = question.ran.groups()
        self.must += [group[0] for group in groups if len(group) == 1]
        self.either = [group for group in groups if len(group) > 1]
        self._pools: dict[int, Pool] = {}
        self._tails: dict[int, Scan] = {}
        self._read: dict[bytes, float] = {}  # what a reranker said of an object
        self._top_lexical = self._top_vector = 0.0

    def run(self, txn: Txn | None) -> list[Hit]:
        """Hits over all granted partitions, best first, cut to the limit."""
        if not self.question.text:
            listed = newest(self, txn)
            return Collector(self.eye, self.question, self.terms).collect(listed)
        self._gather(txn)
        if not self._settle():
            self._gather(txn)
        for pool in self._pools.values():
            pool.fill()
        pools, tails = self._pools.values(), self._tails.values()
        tops = [pool.top_lexical for pool in pools] + [tail.top for tail in tails]
        self._top_lexical = max(tops, default=0.0)
        self._top_vector = max((pool.top_vector for pool in pools), default=0.0)
        found = self._collect(None)
        if self.windows and found:
            inside = self._collect(self.windows, least=MATCHES * found[0].score)
            if inside:
                return inside
        return found

    def _settle(self) -> bool:
        """Work out the vectors of the question, or go on by its words.

        Returns:
            False where the words were not looked up yet.
        """
        if self.meaning is None:
            return True
        try:
            self.meaning.settle([pool.names() for pool in self._pools.values()])
        except RememError as error:
            self.degraded.append(str(error))
            worded, self.mode, self.meaning = self.mode != "vector", "lexical", None
            return worded
        return True

    def _gather(self, txn: Txn | None) -> None:
        """What there is to look at: of each partition its index, and the log where that ends."""
        for part in self.reader.parts:
            last = self.reader.last_seq(part)
            at = project.cursor(txn, part.number) if txn is not None else 0
            index = None if at > last else txn
            if index is None:
                at = 0
            else:
                self._pools[part.number] = Pool(self, index, part)
            if at < last:
                tail = Scan(self.reader, part, at, self.terms)
                if index is not None:
                    tail.beside(index, part.number)
                tail.weigh()
                self._tails[part.number] = tail

    def _collect(self, windows: list[Window] | None, least: float | None = None) -> list[Hit]:
        """Hits of all partitions.

        Args:
            windows: only in these periods, and only among the candidates; None for any time.
            least: score that the best of them needs, or there are none.
        """
        from heapq import merge

        streams = [self._stream(part, deep=windows is None) for part in self.reader.parts]
        ranked = merge(*streams, key=lambda found: -found[0]) if len(streams) != 1 else streams[0]
        if self.searcher.reranker is not None:
            ranked = self._again(ranked, self.searcher.reranker)
        return Collector(self.eye, self.question, self.terms, windows).collect(ranked, least)

    def _again(self, ranked: Iterator[Ranked], reranker: Reranker) -> Iterator[Ranked]:
        """The same with the best read again: see index/rerank.py."""
        from remem.index import rerank

        first = list(islice(ranked, rerank.DEPTH))
        fresh = [found for found in first if found[3] not in self._read]
        texts = [text_of(self.reader.object(part, oid)) for _, part, _, oid, *_ in fresh]
        try:
            said = reranker.scores(self.question.text, texts) if texts else []
        except RememError as error:
            self.degraded.append(str(error))
            return chain(first, ranked)
        self._read.update(zip((found[3] for found in fresh), said, strict=True))
        return rerank.mixed(first, ranked, self._read)

    def _stream(self, part: Part, *, deep: bool) -> Iterator[Ranked]:
        """Documents of a partition, best first."""
        pool, tail = self._pools.get(part.number), self._tails.get(part.number)
        indexed: Iterator[Ranked] = iter(())
        if pool is not None:
            indexed = pool.ranked(self._top_lexical, self._top_vector, deep=deep)
        if tail is None:
            return indexed
        from heapq import merge

        stale = tail.touched
        kept = (found for found in indexed if found[2] not in stale)
        return merge(kept, tail.ranked(self._top_lexical), key=lambda found: -found[0])
