"""Scanning what is not projected yet: the tail of the log, or all of it where there is no index.

The documents are made and scored as the inverted index would, in memory, so an answer misses
nothing that was acknowledged.  Only documents that match are kept.

Source: the same BM25 as remem.index.scoring.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from remem.index import lexical
from remem.index.fields import document
from remem.index.postings import LENGTHS, length_code
from remem.index.project import documents_of
from remem.index.scoring import K1, B

if TYPE_CHECKING:
    from remem.objects.kv import Txn
    from remem.objects.reader import Part, Reader


class Scan:
    """The documents that the log names behind an entry, scored for one question.

    Attributes:
        touched: refs named there; what the index says of them is out of date.
    """

    def __init__(
        self, reader: Reader, part: Part, after: int, wanted: list[tuple[bytes, float]]
    ) -> None:
        """Read the tail.

        Args:
            reader: a snapshot.
            part: the partition.
            after: last entry that the index knows.
            wanted: terms of the question and their weights.
        """
        self.touched = {entry.ref for entry in reader.log(part, after=after)}
        self._weights = dict(wanted)
        self._n = 0
        self._total = 0
        self._df = dict.fromkeys(self._weights, 0)
        self._found: list[tuple[bytes, bytes, int, int, dict[bytes, int]]] = []
        self._top = 0.0
        for ref in self.touched:
            for object_id, (seq, lane) in documents_of(reader, part, ref):
                data = reader.object_bytes(part, object_id)
                if data is not None:
                    self._take(document(ref, object_id, seq, lane, data))

    def _take(self, doc: lexical.DocIn) -> None:
        self._n += 1
        self._total += doc.length
        own = {t: min(doc.terms[t], 255) for t in self._weights if t in doc.terms}
        if own:
            for term in own:
                self._df[term] += 1
            self._found.append((doc.ref, doc.oid, doc.seq, doc.length, own))

    def beside(self, txn: Txn, number: int, top: float) -> None:
        """Add the statistics of the index that the tail stands beside, and its best score."""
        n, total = lexical.stats(txn, number)
        self._n += n
        self._total += total
        for term in self._df:
            self._df[term] += lexical.df(txn, number, term)
        self._top = top

    def ranked(self) -> list[tuple[float, bytes, bytes]]:
        """(score, ref, object id) of what matches, best first; the best of all scores is 1."""
        if not self._found:
            return []
        average = self._total / self._n
        scored = []
        for ref, object_id, seq, length, own in self._found:
            norm = K1 * (1 - B + B * LENGTHS[length_code(length)] / average)
            score = 0.0
            for term, quarters in own.items():
                df = self._df[term]
                idf = log(1 + (self._n - df + 0.5) / (df + 0.5))
                tf = quarters / 4
                score += idf * self._weights[term] * tf / (tf + norm)
            scored.append((score, seq, object_id, ref))
        top = max(self._top, max(s for s, *_ in scored)) or 1.0
        scored.sort(key=lambda s: (-s[0], s[1], s[2]))
        return [(score / top, ref, object_id) for score, _, object_id, ref in scored]
