"""What remem is measured against: BM25, dense vectors, and two ways of fusing them.

BM25 is bm25s with Snowball's English stems and its list of 179 stop words.  The baselines are
given what remem is given: where remem gets speaker, date and caption as fields, they get them in
the text.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009;
Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet", 2009; Bruch, Gai and
Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", 2023, for the convex combination.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tests.bench.data import Doc

if TYPE_CHECKING:
    import numpy.typing as npt

    from tests.bench.minilm import MiniLM

    Scores = npt.NDArray[np.float32]

RRF_K = 60  # the constant of the paper
CONVEX_DENSE = 0.5


def doc_text(doc: Doc) -> str:
    """All that is known of a document, in one text: date, speaker, words, caption."""
    said = f"{doc.speaker}: {doc.text}" if doc.speaker else doc.text
    caption = f" [{doc.caption}]" if doc.caption else ""
    date = f"({doc.date}) " if doc.date else ""
    return f"{date}{said}{caption}"


class Scorer(ABC):
    """Scores all documents of a corpus for a query; base of the baselines."""

    name = ""

    def ingest(self, docs: Sequence[Doc]) -> None:
        """Take the whole corpus at once.

        Args:
            docs: what is searched from now on.
        """
        self._ids = [doc.id for doc in docs]
        self._prepare([doc_text(doc) for doc in docs])

    def search(self, query: str, k: int) -> list[str]:
        """Rank the documents that match at all.

        Args:
            query: a question.
            k: depth of the ranking.

        Returns:
            At most k ids, best first; ties in the order of the corpus.
        """
        scores = self.scores(query)
        best = np.argsort(-scores, kind="stable")[:k]
        return [self._ids[place] for place in best if np.isfinite(scores[place])]

    def search_all(self, queries: Sequence[str], k: int) -> list[list[str]]:
        """Rank for each query in turn; see `search`."""
        return [self.search(query, k) for query in queries]

    @abstractmethod
    def scores(self, query: str) -> Scores:
        """Score each document; minus infinity where it does not match.

        Args:
            query: a question.

        Returns:
            float32 (n,).
        """

    @abstractmethod
    def _prepare(self, texts: list[str]) -> None:
        """Index the texts, one a document, in the order of the corpus."""


class Bm25(Scorer):
    """bm25s, Lucene's form, k1 1.5 and b 0.75 (its defaults)."""

    name = "bm25"

    def __init__(self) -> None:
        """Load the stemmer."""
        import Stemmer  # type: ignore[import-not-found]

        stemmer = Stemmer.Stemmer("english")
        self._stem: Callable[[list[str]], list[str]] = stemmer.stemWords

    def _tokens(self, texts: list[str]) -> list[list[str]]:
        import bm25s  # type: ignore[import-untyped]

        words = bm25s.tokenize(
            texts,
            stopwords="english_plus",
            stemmer=self._stem,
            return_ids=False,
            show_progress=False,
        )
        return [list(one) for one in words]

    def _prepare(self, texts: list[str]) -> None:
        import bm25s

        self._index = bm25s.BM25()
        self._index.index(self._tokens(texts), show_progress=False)

    def scores(self, query: str) -> Scores:
        """BM25 of each document; minus infinity where no word is shared."""
        words = [word for word in self._tokens([query])[0] if word in self._index.vocab_dict]
        if not words:
            return np.full(len(self._ids), -np.inf, dtype=np.float32)
        found = np.asarray(self._index.get_scores(words), dtype=np.float32)
        return np.where(found > 0, found, np.float32(-np.inf))


class Dense(Scorer):
    """Cosine of MiniLM vectors over all documents."""

    name = "dense"

    def __init__(self, model: MiniLM) -> None:
        """Take the model, whose vectors the fused baselines share."""
        self._model = model

    def _prepare(self, texts: list[str]) -> None:
        self._vectors = self._model.encode(texts)

    def scores(self, query: str) -> Scores:
        """Cosine of each document."""
        found: Scores = self._vectors @ self._model.encode([query])[0]
        return found


class Fused(Scorer):
    """BM25 and dense together."""

    def __init__(self, sparse: Bm25, dense: Dense) -> None:
        """Take two scorers; they are filled through this one."""
        self._sparse = sparse
        self._dense = dense

    def ingest(self, docs: Sequence[Doc]) -> None:
        """Fill both scorers.

        Args:
            docs: what is searched from now on.
        """
        self._sparse.ingest(docs)
        self._dense.ingest(docs)
        super().ingest(docs)

    def _prepare(self, texts: list[str]) -> None:
        self._count = len(texts)


class ReciprocalRank(Fused):
    """Sum of 1 / (60 + rank); a document without a shared word has no lexical rank."""

    name = "rrf"

    def scores(self, query: str) -> Scores:
        """Fused score of each document."""
        total = np.zeros(self._count, dtype=np.float32)
        for part in (self._sparse.scores(query), self._dense.scores(query)):
            order = np.argsort(-part, kind="stable")
            ranks = np.empty(len(order), dtype=np.float32)
            ranks[order] = np.arange(1, len(order) + 1)
            total += np.where(np.isfinite(part), 1.0 / (RRF_K + ranks), 0.0).astype(np.float32)
        return total


class Convex(Fused):
    """Half of each score after both are brought to 0..1 over the corpus."""

    name = "convex"

    def scores(self, query: str) -> Scores:
        """Fused score of each document."""
        sparse = self._sparse.scores(query)
        sparse = np.where(np.isfinite(sparse), sparse, np.float32(0.0))
        dense = self._dense.scores(query)
        mixed = CONVEX_DENSE * _min_max(dense) + (1.0 - CONVEX_DENSE) * _min_max(sparse)
        return np.asarray(mixed, dtype=np.float32)


def _min_max(scores: Scores) -> Scores:
    low, high = float(scores.min()), float(scores.max())
    if high == low:
        return np.zeros_like(scores)
    return (scores - low) / (high - low)
