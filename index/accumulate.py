"""Adding up BM25 scores over posting lists, in plain Python and with numpy.

Both ways add the same products in the same order, so their sums are equal to the last bit.

Source: Turtle and Flood 1995, "Query evaluation: strategies and optimizations" (MaxScore).
"""

from __future__ import annotations

from heapq import nlargest
from math import log

from remem.index.postings import POST, Run, count_postings, damaged, number_key, open_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from types import ModuleType

    import numpy as np
    from numpy.typing import NDArray

    from remem.index.segments import Part
    from remem.objects.kv import Txn

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

PROBE = 6  # looking a document up costs as much as scoring this many postings in a row
_FEW = 256  # postings that are scored without thinking about it
_EXACT = 512  # postings from which on the greatest product is worked out
_HOPE = 0.4  # of the factor of a term: hardly any term has a bound below that
_SLACK = 1 + 1e-9  # more than what rounding can do to a sum


class Postings:
    """All postings of one term or filter in a partition.

    Attributes:
        term: its bytes.
        count: number of postings: the document frequency.
    """

    __slots__ = ("_pairs", "_runs", "count", "term")

    def __init__(self, txn: Txn, part: Part, term: bytes) -> None:
        """Find the lists of a term; their sums are compared at the first use."""
        self.term = term
        self.count = 0
        self._pairs: list[tuple[int, bytes, bytes]] = []
        self._runs: list[tuple[int, Run]] | None = None
        for segment in part.segments:
            key = number_key(part.number, segment.number) + term
            value = txn.get(POST, key)
            if value is not None:
                self.count += count_postings(term, value)
                self._pairs.append((segment.last, key, value))
        if self.count > part.n:
            raise damaged(f"a term occurs in {self.count} of {part.n} documents")

    def runs(self) -> list[Run]:
        """The postings of each segment, the oldest segment first."""
        return [run for _, run in self._opened()]

    def find(self, docno: int) -> tuple[Run, int] | None:
        """The run and the place in it of a document, or None."""
        for last, run in self._opened():
            if docno <= last:
                at = run.find(docno)
                return None if at < 0 else (run, at)
        return None

    def documents(self) -> set[int]:
        """Every document of the list."""
        return set().union(*(run.docs for run in self.runs()))

    def _opened(self) -> list[tuple[int, Run]]:
        if self._runs is None:
            self._runs = [(last, open_run(key, value)) for last, key, value in self._pairs]
            self._pairs.clear()
        return self._runs


class Saturation(dict[int, float]):
    """Code of a posting -> tf / (tf + norm of the length), worked out once."""

    __slots__ = ("norms",)

    def __init__(self, norms: Sequence[float]) -> None:
        """Start with nothing but the norm of each length code."""
        super().__init__()
        self.norms = norms

    def __missing__(self, code: int) -> float:
        """Work out the value of a code."""
        tf = frequency(code)
        value = self[code] = tf / (tf + self.norms[code & 0xFF])
        return value


class Gain(dict[int, float]):
    """Code of a posting -> what the posting adds to a score, worked out once."""

    __slots__ = ("factor", "saturation")

    def __init__(self, factor: float, saturation: Saturation) -> None:
        """Start with nothing but the factor of the term."""
        super().__init__()
        self.factor = factor
        self.saturation = saturation

    def __missing__(self, code: int) -> float:
        """Work out the value of a code."""
        value = self[code] = self.factor * self.saturation[code]
        return value


class Term:
    """A term of a question.

    Attributes:
        weight: as asked.
        idf: inverse document frequency.
        postings: where it occurs.
        gain: what a posting adds to a score, by its code.
    """

    __slots__ = ("gain", "idf", "postings", "weight")

    def __init__(self, postings: Postings, weight: float, n: int, saturation: Saturation) -> None:
        """A term of this weight in a question to n documents."""
        df = postings.count
        self.weight = weight
        self.idf = log(1 + (n - df + 0.5) / (df + 0.5))
        self.postings = postings
        self.gain = Gain(self.idf * weight, saturation)

    def bound(self) -> float:
        """No posting of the term adds more than this."""
        if self.postings.count < _EXACT:
            return self.gain.factor
        codes: set[int] = set().union(*(run.codes for run in self.postings.runs()))
        return max(map(self.gain.__getitem__, codes))

    def code(self, docno: int) -> int | None:
        """The code of the term's posting of a document, or None."""
        place = self.postings.find(docno)
        return None if place is None else place[0].codes[place[1]]

    def add_to(self, sums: dict[int, float], allowed: Container[int] | None) -> None:
        """Add the term to the sums of all its documents, or of those that are allowed."""
        known = sums.get
        gain = self.gain.__getitem__
        for run in self.postings.runs():
            pairs = zip(run.docs, map(gain, run.codes), strict=True)
            if allowed is not None:
                for docno, value in pairs:
                    if docno in allowed:
                        sums[docno] = known(docno, 0.0) + value
            elif sums:
                for docno, value in pairs:
                    sums[docno] = known(docno, 0.0) + value
            else:
                sums.update(pairs)


def frequency(code: int) -> float:
    """Frequency of a term in a document, from the code of the posting."""
    return (code >> 8) / 4


def sum_all(terms: Iterable[Term], allowed: Container[int] | None) -> dict[int, float]:
    """Scores of all documents that have a term, or of those among them that are allowed."""
    sums: dict[int, float] = {}
    for term in terms:
        term.add_to(sums, allowed)
    return sums


def sum_few(terms: Sequence[Term], docnos: Iterable[int]) -> dict[int, float]:
    """Scores of those of the given documents that have a term."""
    sums: dict[int, float] = {}
    for docno in docnos:
        codes = [(term, term.code(docno)) for term in terms]
        parts = [term.gain[code] for term, code in codes if code is not None]
        if parts:
            total = 0.0
            for part in parts:
                total += part
            sums[docno] = total
    return sums


def sum_best(
    terms: Sequence[Term], allowed: Container[int] | None, limit: int
) -> tuple[dict[int, float], bool]:
    """Scores of at least the best ``limit`` documents.

    Args:
        terms: the rarest first.
        allowed: documents that may be scored (None: every one).
        limit: how many are wanted.

    Returns:
        Scores by document, and whether these are all documents that match.
    """
    sums: dict[int, float] = {}
    bounds: list[float] = []
    for at, term in enumerate(terms):
        if len(sums) >= limit and term.postings.count >= _FEW:
            least = nlargest(limit, sums.values())[-1]
            if _sum(later.gain.factor for later in terms[at:]) * _HOPE < least:
                bounds = bounds or [0.0] * at + [later.bound() for later in terms[at:]]
                if _sum(bounds[at:]) * _SLACK < least:
                    return _look_up(sums, terms[at:], bounds[at:], least, limit), False
        term.add_to(sums, allowed)
    return sums, True


def _look_up(
    sums: dict[int, float],
    terms: Sequence[Term],
    bounds: Sequence[float],
    least: float,
    limit: int,
) -> dict[int, float]:
    """Finish the sums of documents that may still be among the best; the others are dropped."""
    for at, term in enumerate(terms):
        more = _sum(bounds[at:])
        sums = {d: value for d, value in sums.items() if (value + more) * _SLACK >= least}
        if term.postings.count < PROBE * len(sums):
            term.add_to(sums, sums)
        else:
            for docno in sums:
                code = term.code(docno)
                if code is not None:
                    sums[docno] += term.gain[code]
        least = nlargest(limit, sums.values())[-1]
    return sums


def _sum(numbers: Iterable[float]) -> float:
    total = 0.0
    for number in numbers:
        total += number
    return total


def having(postings: Postings, wanted: set[int]) -> Iterable[int]:
    """Those of some documents that are in a list."""
    if postings.count < PROBE * len(wanted):
        return wanted & postings.documents()
    return [docno for docno in wanted if postings.find(docno) is not None]


def common(lists: Sequence[Postings]) -> list[int]:
    """Documents that are in every list, ascending; the shortest list comes first."""
    found = [docno for run in lists[0].runs() for docno in run.docs]
    for other in lists[1:]:
        if len(found) * PROBE < other.count:
            found = [docno for docno in found if other.find(docno) is not None]
        else:
            documents = other.documents()
            found = [docno for docno in found if docno in documents]
    return found


def numpy_scores(
    np: ModuleType, size: int, terms: Sequence[Term], must: Sequence[Postings]
) -> Floats:
    """Scores of all documents: float64 (size,), zero where none of the terms occurs.

    Args:
        np: numpy.
        size: number after the greatest document number.
        terms: the rarest first.
        must: lists that a document has to be in.
    """
    scores: Floats = np.zeros(size)
    allowed: Flags | None = None
    for postings in must:
        flags = np.zeros(size, bool)
        for run in postings.runs():
            flags[np.frombuffer(run.docs, np.uint32)] = True
        allowed = flags if allowed is None else allowed & flags
    norms = np.array(terms[0].gain.saturation.norms)
    tf = np.arange(256)[:, None] / 4
    tf[0] = 1.0  # no posting has a frequency of zero
    saturation = (tf / (tf + norms)).ravel()
    for term in terms:
        gain = term.gain.factor * saturation
        for run in term.postings.runs():
            docs = np.frombuffer(run.docs, np.uint32)
            codes = np.frombuffer(run.codes, np.uint16)
            if allowed is not None:
                kept = allowed[docs]
                docs, codes = docs[kept], codes[kept]
            scores[docs] += gain[codes]
    return scores
