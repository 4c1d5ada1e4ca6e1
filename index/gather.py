"""What of one partition bears on a question: candidates by words, by vectors and by names.

Candidates are gathered before any is put in order, for scores of several partitions are brought to
one scale.  Each has both of its scores, whichever of them found it.
"""

from __future__ import annotations

from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING

from remem.index import confidence, lexical, rank, scoring
from remem.index.entities import Entities
from remem.index.fields import ASKS, MEMORY_LANE, ROLE
from remem.index.postings import SAID_BY
from remem.objects.errors import RememError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remem.index.dense import F32
    from remem.index.recall import Look
    from remem.index.truths import Ranked
    from remem.objects.kv import Txn
    from remem.objects.reader import Part

SPREAD = 25  # candidates of each kind whose neighbours are candidates too
SPAN = 2  # turns on each side that a turn inherits from
_BATCH = 200  # documents behind the candidates that are looked at in one go

# A question with one of these words is about what an assistant or a tool said or did.
_ABOUT_AGENTS = frozenset(
    "you your assistant agent claude codex gemini chatgpt tool tools output command commands ran "
    "run error errors stdout stderr printed file files edited".split()
)


class Pool:
    """The candidates of one partition.

    Attributes:
        top_lexical: best lexical score among them; 0 without any.
        top_vector: best vector score among them.
    """

    def __init__(self, look: Look, txn: Txn, part: Part) -> None:
        """Look the words of the question up; the rest is left to `fill`.

        Args:
            look: the question and its snapshot.
            txn: the inverted index.
            part: the partition.
        """
        self._look = look
        self._txn = txn
        self._part = part
        self._rows: dict[int, lexical.DocRow] = {}
        self._marks: dict[int, list[bytes]] = {}
        self._around: dict[int, tuple[list[int], list[int]]] = {}
        self._found: dict[int, rank.Candidate] = {}
        self._limit = max(rank.POOL, 4 * look.question.limit)
        self._hits = scoring.search(
            txn,
            part.number,
            look.terms,
            must=look.must,
            limit=self._limit,
            fill=look.mode != "vector" and bool(look.terms),
        )
        self._vector: F32 | None = None
        self._floor = rank.VECTOR_FLOOR
        self._measured = False
        self._links: dict[int, float] = {}
        self.top_lexical = self.top_vector = 0.0

    def names(self) -> frozenset[bytes]:
        """Terms of the question that stand in the name of a speaker of the partition."""
        return self._hits.names()

    def fill(self) -> None:
        """Gather the candidates."""
        look = self._look
        worded = look.mode != "vector" and bool(look.terms)
        for docno, score in self._hits.top:
            self._candidate(docno).lexical = score
        if look.meaning is not None:
            self._vector = look.meaning.without(self.names())
            near = look.meaning.dense.near
            self._measured = near is not None
            self._floor = rank.VECTOR_FLOOR if near is None else near
            self._near(worded)
        self._links = Entities(self._txn, look.reader, self._part).facts(
            look.eye, look.question.text
        )
        for docno in self._links:
            if not (look.must or look.either) or self._passes(docno):
                self._candidate(docno)
        self._weigh(worded)
        self._spread(worded)
        found = self._found.values()
        self.top_lexical = max((c.lexical for c in found), default=0.0)
        self.top_vector = max((c.vector or 0.0 for c in found), default=0.0)

    def ranked(self, top_lexical: float, top_vector: float, *, deep: bool) -> Iterator[Ranked]:
        """Documents, best first.

        Args:
            top_lexical: best lexical score of all partitions asked.
            top_vector: best vector score of all of them.
            deep: go on behind the candidates, to the last document that matches.
        """
        last = 0.0
        for c in rank.order(
            self._found,
            self._cues(),
            top_lexical=top_lexical,
            top_vector=top_vector,
            floor=self._floor,
        ):
            row = self._rows[c.docno]
            last = c.score
            cosine = c.vector if self._measured else None
            sure = confidence.of_hit(c.held, c.mass, cosine)
            yield c.score, self._part, row.ref, row.oid, row.seq, c.parts, sure
        if deep and len(self._hits.top) >= self._limit:
            yield from self._rest(last, top_lexical)

    # -- inside -------------------------------------------------------------------------------

    def _rest(self, last: float, best: float) -> Iterator[Ranked]:
        """What matches behind the candidates."""
        others = (hit for hit in self._hits if hit[0] not in self._found)
        while some := list(islice(others, _BATCH)):
            held = self._hits.matches(docno for docno, _ in some)
            for docno, score in some:
                row = lexical.doc(self._txn, self._part.number, docno)
                match = held[docno]
                rest = min(last, score * match.share / best)
                sure = confidence.of_hit(match.held, match.mass, None)
                yield rest, self._part, row.ref, row.oid, row.seq, {"lexical": rest}, sure

    def _candidate(self, docno: int) -> rank.Candidate:
        found = self._found.get(docno)
        if found is None:
            row, marks = lexical.doc_and_filters(self._txn, self._part.number, docno)
            self._rows[docno], self._marks[docno] = row, marks
            found = self._found[docno] = rank.Candidate(docno, row.lane, row.when)
        return found

    def _weigh(self, worded: bool, docnos: Iterable[int] | None = None) -> None:
        """Note how much of the question candidates hold."""
        for docno, match in self._hits.matches(self._found if docnos is None else docnos).items():
            c = self._found[docno]
            c.held, c.mass = match.held, match.mass
            c.lexical *= match.share if worded else 0.0

    def _spread(self, worded: bool) -> None:
        """Add the turns beside the best candidates: they may hold none of the question's words."""
        found = self._found.values()
        best = nlargest(SPREAD, found, key=lambda c: c.lexical)
        if self._vector is not None:
            best += nlargest(SPREAD, found, key=lambda c: c.vector or 0.0)
        fresh: set[int] = set()
        for c in best:
            for around in self._beside(c.docno):
                fresh.update(docno for docno in around if docno not in self._found)
        fresh = {docno for docno in fresh if self._passes(docno)}
        for docno in fresh:
            c = self._candidate(docno)
            if worded:
                c.lexical = self._hits.score(docno)
        self._weigh(worded, fresh)
        self._compare([docno for docno, c in self._found.items() if c.vector is None])

    def _near(self, worded: bool) -> None:
        """Add the nearest vectors to the candidates, and vector scores to those that are there."""
        look, part, limit = self._look, self._part, self._limit
        meaning, vector = look.meaning, self._vector
        assert meaning is not None and vector is not None
        dense = meaning.dense
        store = look.searcher.store
        taken = passed = 0
        try:
            while passed < look.question.limit:
                found = dense.search(store, part, vector, limit)
                for seq, score in found[taken:]:
                    docno = self._docno(seq)
                    if docno is None or not self._passes(docno):
                        continue
                    passed += 1
                    c = self._candidate(docno)
                    c.vector = score
                    if worded and not c.lexical:
                        c.lexical = self._hits.score(docno)
                if len(found) < limit:
                    break
                taken, limit = limit, 4 * limit  # a selective filter: look at more, in the end all
        except RememError as error:
            look.degraded.append(str(error))

    def _compare(self, docnos: Iterable[int]) -> None:
        """Compare the vectors of candidates with that of the question."""
        look = self._look
        if look.meaning is None or self._vector is None:
            return
        left = {self._rows[docno].seq: self._found[docno] for docno in docnos}
        try:
            found = look.meaning.dense.scores(
                look.searcher.store, self._part, self._vector, list(left)
            )
        except RememError as error:
            look.degraded.append(str(error))
            return
        for seq, score in found.items():
            left[seq].vector = score

    def _docno(self, seq: int) -> int | None:
        """The document whose vector has this number, or None when it is gone."""
        reader = self._look.reader
        try:
            entry = reader.entry(self._part, seq)
        except RememError:
            return None
        if entry.new is None or not reader.sees_lane(self._part, entry.lane):
            return None
        return lexical.docno_of(self._txn, self._part.number, entry.ref, entry.new)

    def _passes(self, docno: int) -> bool:
        """Whether a document passes the filters that the index knows."""
        look = self._look
        if look.must or look.either:
            own = self._own(docno)
            if not all(wanted in own for wanted in look.must):
                return False
            if not all(any(one in own for one in group) for group in look.either):
                return False
        since, until = look.question.since, look.question.until
        if since is None and until is None:
            return True
        when = lexical.doc(self._txn, self._part.number, docno).when
        if when is None:
            return True
        return not (since is not None and when < since) and not (
            until is not None and when >= until
        )

    # -- cues ---------------------------------------------------------------------------------

    def _cues(self) -> rank.Cues:
        look = self._look
        asked = {SAID_BY + term for term, _ in look.terms}
        words = set(look.question.text.lower().split())
        return rank.Cues(
            self._beside,
            turn=lambda docno: bool(_who(self._own(docno))),
            reply=self._replies,
            speaker=lambda docno: not asked.isdisjoint(self._own(docno)),
            weight=self._kept if _ABOUT_AGENTS & words else self._share,
            periods=look.periods,
            links=self._links,
        )

    def _own(self, docno: int) -> list[bytes]:
        """Filters of a document."""
        found = self._marks.get(docno)
        if found is None:
            found = lexical.filters_of(self._txn, self._part.number, docno)
            self._marks[docno] = found
        return found

    def _beside(self, docno: int) -> tuple[list[int], list[int]]:
        """Documents around one in its session; memories are no turns of it."""
        row = self._rows[docno]
        if row.lane & MEMORY_LANE:
            return [], []
        found = self._around.get(docno)
        if found is None:
            found = lexical.neighbours(self._txn, self._part.number, docno, SPAN, row)
            self._around[docno] = found
        return found

    def _share(self, docno: int) -> float:
        """Share that a document keeps of what its own words earn."""
        shares = (rank.DISCOUNT.get(mark, 1.0) for mark in self._own(docno))
        return min(self._kept(docno), min(shares, default=1.0))

    def _kept(self, docno: int) -> float:
        """The same in a question that is about agents and tools."""
        return min((rank.PARSED.get(mark, 1.0) for mark in self._own(docno)), default=1.0)

    def _replies(self, docno: int, before: int) -> bool:
        """Whether a document is a person's reply to a question of somebody else."""
        asked = self._own(before)
        if ASKS not in asked or self._share(docno) != 1.0:
            return False
        return _who(asked) != _who(self._own(docno))


def _who(marks: list[bytes]) -> set[bytes]:
    """Who said something, as the filters have it."""
    return {mark for mark in marks if mark.startswith((SAID_BY, ROLE))}
