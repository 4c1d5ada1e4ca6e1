"""Searching the inverted index: BM25, best first.

The score of a document is the sum over the terms of the question, rarest first, of::

    idf x weight x tf / (tf + k1 x (1 - b + b x length / average))
    idf = ln(1 + (n - df + 0.5) / (df + 0.5))

where tf and length are those of the posting's code, and n, df and the average length are those of
the living documents of the partition.  Equal scores stand in the order of sequence number, object
id and ref.  So an answer depends on the documents alone, not on how the index came to hold them.

There are two ways to the same numbers.  Without numpy, terms are scored rarest first, and once no
further document can enter the best ``limit``, the other terms are only looked up for the documents
at hand.  With numpy everything is scored; that pays where there is much to score.  Loading numpy
pays once a process has scored as much without it as loading costs.

Source: Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond", 3;
idf as in Lucene's BM25Similarity.
"""

from __future__ import annotations

import sys
from heapq import heapify, heappop, nlargest
from itertools import groupby, islice
from math import log
from operator import itemgetter

import msgspec

from remem.index.accumulate import (
    PROBE,
    Postings,
    Saturation,
    Term,
    common,
    frequency,
    having,
    numpy_scores,
    sum_all,
    sum_best,
    sum_few,
)
from remem.index.lexical import doc
from remem.index.postings import LENGTHS, PART, SAID_BY, part_key
from remem.index.segments import Part, load_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import ModuleType

    from remem.index.accumulate import Floats
    from remem.objects.kv import Txn

    Scored = tuple[int, float]

K1 = 1.2
B = 0.75
PRIOR = 100  # documents that a partition is taken to have besides, where confidence is judged
LEAST_WEIGHT = 1e-9  # of a term that counts: smaller products might become zero
WARM_POSTINGS = 4_000  # numpy, once loaded, is faster from here on,
_DENSE = 50  # and one posting later for every so many documents
COLD_POSTINGS = 300_000  # scored without numpy by a process: as dear as loading it
_LATE = 2  # a filter so many times longer than what there is to score is asked by document

_scored = 0  # postings scored without numpy in this process


class Why(msgspec.Struct, frozen=True, gc=False):
    """What one term adds to the score of a document.

    Attributes:
        term: its bytes.
        weight: as asked.
        df: number of documents that have it.
        idf: what that is worth.
        tf: frequency in this document.
        score: the part of the score.
    """

    term: bytes
    weight: float
    df: int
    idf: float
    tf: float
    score: float


class Match(msgspec.Struct, gc=False):
    """How much of a question a document holds, by what its words are worth (idf x weight).

    Attributes:
        share: of the words that occur in the partition, names of speakers included.
        held: of all words that are no name of a speaker.
        mass: the same, counted in words that occur nowhere else.
    """

    share: float = 0.0
    held: float = 0.0
    mass: float = 0.0


class Hits:
    """The answer to a question: usable while its transaction is open.

    Iterating gives (document number, score), best first, to the last document that matches: has
    one of the terms and all of the filters.  The best ``limit`` are in ``top``; those behind them
    are worked out when they are asked for.

    Attributes:
        top: the best ``limit`` documents and their scores.
        terms: those of the question that occur, rarest first.
        missing: summed weight of those that do not.
        n: documents in the partition.
        average: their average length.
    """

    __slots__ = (
        "_all",
        "_limit",
        "_must",
        "_names",
        "_part",
        "_scores",
        "_txn",
        "average",
        "missing",
        "n",
        "terms",
        "top",
    )

    def __init__(
        self, txn: Txn, part: Part, terms: list[Term], must: list[Postings], limit: int
    ) -> None:
        """An answer to be filled in by :func:`search`."""
        self.top: list[Scored] = []
        self.terms = terms
        self.missing = 0.0
        self.n = part.n
        self.average = average_length(part)
        self._txn = txn
        self._part = part
        self._must = must
        self._names: frozenset[bytes] | None = None
        self._limit = limit
        self._all: dict[int, float] | None = None
        self._scores: Floats | None = None

    def __iter__(self) -> Iterator[Scored]:
        """Yield (document number, score), best first."""
        yield from self.top
        if len(self.top) == self._limit:
            yield from islice(self._ranked(), self._limit, None)

    def count(self) -> int:
        """Number of documents that match."""
        if len(self.top) < self._limit:
            return len(self.top)
        if self._scores is not None:
            return int((self._scores > 0).sum())
        return len(self._complete())

    def score(self, docno: int) -> float:
        """The score of any document; zero if it does not match."""
        if self._scores is not None:
            return float(self._scores[docno]) if 0 <= docno < len(self._scores) else 0.0
        if self._all is not None:
            return self._all.get(docno, 0.0)
        self._alive()
        return sum_few(self.terms, [docno]).get(docno, 0.0) if self._passes(docno) else 0.0

    def matches(self, docnos: Iterable[int]) -> dict[int, Match]:
        """How much of the question each of some documents holds."""
        self._alive()
        names = self.names()
        wanted = set(docnos)
        found = {docno: Match() for docno in wanted}
        all_of = told = 0.0
        for term in self.terms:
            worth = term.idf * term.weight
            known = rarity(self.n, term.postings.count) * term.weight
            if term.postings.term in names:
                known = 0.0
            all_of += worth
            told += known
            for docno in having(term.postings, wanted):
                match = found[docno]
                match.share += worth
                match.held += known
        told += self.missing * rarity(self.n)
        for match in found.values():
            match.mass = match.held / rarity(self.n)
            match.share = match.share / all_of if all_of else 0.0
            match.held = match.held / told if told else 0.0
        return found

    def names(self) -> frozenset[bytes]:
        """Terms of the question that stand in the name of a speaker of the partition."""
        if self._names is None:
            asked = [term.postings.term for term in self.terms]
            self._names = frozenset(
                term for term in asked if Postings(self._txn, self._part, SAID_BY + term).count
            )
        return self._names

    def explain(self, docno: int) -> list[Why]:
        """What makes up the score of a document, term by term; empty if it does not match."""
        self._alive()
        found: list[Why] = []
        for term in self.terms if self._passes(docno) else ():
            code = term.code(docno)
            if code is not None:
                name, df = term.postings.term, term.postings.count
                score = term.gain[code]
                found.append(Why(name, term.weight, df, term.idf, frequency(code), score))
        return found

    # -- inside -------------------------------------------------------------------------------

    def _fill(self, np: ModuleType | None) -> None:
        """Find the top by the cheapest way; numpy only where it is given."""
        limit, terms, must = self._limit, self.terms, self._must
        postings = sum(term.postings.count for term in terms)
        if must and must[0].count * len(terms) * PROBE < postings:
            self._all = sum_few(terms, common(must))
            self.top = self._best(self._all)
        elif np is not None:
            self._scores = numpy_scores(np, self._part.next_doc, terms, must)
            self.top = self._best_of_array(np)
        elif must and must[0].count > _LATE * postings:
            ranked = self._canonical(_descending(sum_all(terms, None)))
            self.top = list(islice((hit for hit in ranked if self._passes(hit[0])), limit))
        else:
            allowed = set(common(must)) if must else None
            sums, complete = sum_best(terms, allowed, limit)
            self.top = self._best(sums)
            if complete:
                self._all = sums

    def _best(self, sums: dict[int, float]) -> list[Scored]:
        """The best ``limit`` of some scores."""
        pairs: Iterable[Scored] = sums.items()
        if len(sums) > self._limit:
            least = nlargest(self._limit, sums.values())[-1]
            pairs = [pair for pair in pairs if pair[1] >= least]
        ranked = self._canonical(sorted(pairs, key=itemgetter(1), reverse=True))
        return list(islice(ranked, self._limit))

    def _best_of_array(self, np: ModuleType) -> list[Scored]:
        assert self._scores is not None
        docnos = np.flatnonzero(self._scores > 0)  # of truth values in a tenth of the time
        scores = self._scores[docnos]
        if len(docnos) > self._limit:
            place = len(docnos) - self._limit
            kept = scores >= np.partition(scores, place)[place]
            docnos, scores = docnos[kept], scores[kept]
        return self._best(dict(zip(docnos.tolist(), scores.tolist(), strict=True)))

    def _ranked(self) -> Iterator[Scored]:
        """All matching documents, best first."""
        if self._scores is None:
            return self._canonical(_descending(self._complete()))
        docnos = (-self._scores).argsort(kind="stable")[: self.count()]
        scores = self._scores[docnos]
        return self._canonical(zip(docnos.tolist(), scores.tolist(), strict=True))

    def _complete(self) -> dict[int, float]:
        """Scores of all matching documents."""
        if self._all is None:
            self._alive()
            allowed = set(common(self._must)) if self._must else None
            self._all = sum_all(self.terms, allowed)
        return self._all

    def _canonical(self, ranked: Iterable[Scored]) -> Iterator[Scored]:
        """Put documents of the same score in their order."""
        for _, group in groupby(ranked, key=itemgetter(1)):
            same = list(group)
            if len(same) > 1:
                same.sort(key=itemgetter(0) if self._part.ordered else self._order)
            yield from same

    def _order(self, hit: Scored) -> tuple[int, bytes, bytes]:
        row = doc(self._txn, self._part.number, hit[0])
        return row.seq, row.oid, row.ref

    def _passes(self, docno: int) -> bool:
        return all(postings.find(docno) is not None for postings in self._must)

    def _alive(self) -> None:
        """Fail if the transaction is over: the lists would be read from memory given back."""
        self._txn.get(PART, part_key(self._part.number))


def search(
    txn: Txn,
    part: int,
    terms: Iterable[tuple[bytes, float]],
    *,
    must: Iterable[bytes] = (),
    k1: float = K1,
    b: float = B,
    limit: int = 50,
    use_numpy: bool | None = None,
    fill: bool = True,
) -> Hits:
    """Find the documents of a partition that have some of the terms, best first.

    Args:
        txn: a snapshot (with buffers nothing is copied) or a write transaction.
        part: number of the scope partition.
        terms: (term, weight); the weights of a term that comes twice are added.
        must: filters; a document has to have all of them.
        k1: how slowly repetition saturates; at least 0.
        b: how much the length counts, 0 to 1.
        limit: how many are worked out at once; more may be asked for.
        use_numpy: True or False settle the way; None leaves it to the amount of work.
        fill: False to find nothing: what the terms are worth is all that is asked.

    Raises:
        IndexDamaged: a list is not the one that was written.
        ValueError: a parameter is out of its range.
    """
    if limit < 1 or k1 < 0 or not 0 <= b <= 1:
        raise ValueError("limit is at least 1, k1 at least 0, b between 0 and 1")
    held = load_part(txn, part)
    weights: dict[bytes, float] = {}
    for term, weight in terms:
        weights[term] = weights.get(term, 0.0) + weight
    average = average_length(held)
    saturation = Saturation([k1 * (1 - b + b * length / average) for length in LENGTHS])
    asked = [
        Term(postings, weight, held.n, saturation)
        for term, weight in weights.items()
        if weight >= LEAST_WEIGHT and (postings := Postings(txn, held, term)).count
    ]
    asked.sort(key=lambda term: (term.postings.count, term.postings.term))
    filters = sorted((Postings(txn, held, term) for term in set(must)), key=lambda one: one.count)
    hits = Hits(txn, held, asked, filters, limit)
    hits.missing = sum(weights.values()) - sum(term.weight for term in asked)
    if fill and asked and not (filters and not filters[0].count):
        hits._fill(_numpy(asked, held.next_doc, use_numpy))
    return hits


def rarity(n: int, df: int = 0) -> float:
    """What a term is worth that df of n documents have, with PRIOR others that do not.

    Among a handful of documents every word is in many, and idf says nothing of it.
    """
    return log(1 + (n + PRIOR - df + 0.5) / (df + 0.5))


def average_length(part: Part) -> float:
    """Average length of the documents of a partition; 1 where they have none."""
    return part.total / part.n if part.total else 1.0


def _numpy(terms: Sequence[Term], size: int, wanted: bool | None) -> ModuleType | None:
    """Numpy, if it is to be used and can be."""
    global _scored
    if wanted is None:
        postings = sum(term.postings.count for term in terms)
        if "numpy" in sys.modules:
            wanted = postings >= WARM_POSTINGS + size // _DENSE
        else:
            _scored += postings
            wanted = _scored >= COLD_POSTINGS
    if not wanted:
        return None
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _descending(sums: dict[int, float]) -> Iterator[Scored]:
    """Scores from the greatest down, sorted only as far as they are taken."""
    heap = [(-score, docno) for docno, score in sums.items()]
    heapify(heap)
    while heap:
        score, docno = heappop(heap)
        yield docno, -score
