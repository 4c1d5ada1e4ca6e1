"""Scanning what is not projected yet: the tail of the log, or all of it where there is no index.

The documents are made and scored as the inverted index would, in memory, so an answer misses
nothing that was acknowledged.  Only documents that match are kept.

Source: the same BM25 as remem.index.scoring.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from remem.index import confidence, lexical
from remem.index.fields import document
from remem.index.postings import LENGTHS, SAID_BY, length_code
from remem.index.project import documents_of
from remem.index.scoring import K1, B, rarity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.index.truths import Ranked
    from remem.objects.kv import Txn
    from remem.objects.reader import Part, Reader


class Scan:
    """The documents that the log names behind an entry, scored for one question.

    Attributes:
        touched: refs named there; what the index says of them is out of date.
        top: best score of them, as the index would score them; 0 before they are weighed.
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
        self._part = part
        self._n = 0
        self._total = 0
        self._df = dict.fromkeys(self._weights, 0)
        self._found: list[tuple[bytes, bytes, int, int, dict[bytes, int]]] = []
        self._speakers: set[bytes] = set()
        self._ranked: list[Ranked] = []
        self.top = 0.0
        for ref in self.touched:
            for object_id, (seq, lane) in documents_of(reader, part, ref):
                data = reader.object_bytes(part, object_id)
                if data is not None:
                    self._take(document(ref, object_id, seq, lane, data))

    def _take(self, doc: lexical.DocIn) -> None:
        self._n += 1
        self._total += doc.length
        own = {t: min(doc.terms[t], 255) for t in self._weights if t in doc.terms}
        names = (mark for mark in doc.filters if mark.startswith(SAID_BY))
        self._speakers.update(mark[len(SAID_BY) :] for mark in names)
        if own:
            for term in own:
                self._df[term] += 1
            self._found.append((doc.ref, doc.oid, doc.seq, doc.length, own))

    def beside(self, txn: Txn, number: int) -> None:
        """Add the statistics of the index that the tail stands beside."""
        n, total = lexical.stats(txn, number)
        self._n += n
        self._total += total
        for term in self._df:
            self._df[term] += lexical.df(txn, number, term)
            if lexical.df(txn, number, SAID_BY + term):
                self._speakers.add(term)

    def weigh(self) -> None:
        """Score what matches, by the statistics that are known by now."""
        if not self._found:
            return
        average = self._total / self._n
        idf = {
            term: log(1 + (self._n - df + 0.5) / (df + 0.5)) * self._weights[term]
            for term, df in self._df.items()
        }
        known = sum(worth for term, worth in idf.items() if self._df[term])
        rare = {
            term: rarity(self._n, df) * self._weights[term]
            for term, df in self._df.items()
            if term not in self._speakers
        }
        told = sum(rare.values())
        for ref, object_id, seq, length, own in self._found:
            norm = K1 * (1 - B + B * LENGTHS[length_code(length)] / average)
            score = sum(
                idf[term] * quarters / (quarters + 4 * norm) for term, quarters in own.items()
            )
            score *= sum(idf[term] for term in own) / known
            held = sum(rare.get(term, 0.0) for term in own)
            sure = confidence.of_hit(held / told if told else 0.0, held / rarity(self._n), None)
            self._ranked.append((score, self._part, ref, object_id, seq, {}, sure))
        self._ranked.sort(key=lambda one: (-one[0], one[4], one[3]))
        self.top = self._ranked[0][0]

    def ranked(self, top: float) -> Iterator[Ranked]:
        """What matches, best first.

        Args:
            top: best score of all that was asked, which counts 1.
        """
        for score, part, ref, object_id, _, _, sure in self._ranked:
            share = score / (top or 1.0)
            yield share, part, ref, object_id, 0, {"lexical": share}, sure
