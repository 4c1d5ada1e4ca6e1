"""The vectors of a question: of all its words, and without the names of who is asked about.

In a conversation a speaker's name is part of most vectors and tells one turn from another no better
than "she" would.  So where a partition knows a word of the question as a speaker's name, it is
searched with a vector halfway to that of the question without the name.  Which words are names is
known only after the words were looked up; then all that is wanted is encoded in one go, which costs
little more than one text does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.index.analyze import query_terms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.index.dense import F32, Dense

_LEAST = 1e-6  # length of a sum of two unit vectors below which it has no direction

Names = frozenset[bytes]


class Meaning:
    """The vectors of one question under one embedder."""

    def __init__(self, text: str, dense: Dense) -> None:
        """Bind them; nothing is encoded yet."""
        self.dense = dense
        self._text = text
        self._whole: F32 | None = None
        self._without: dict[Names, F32] = {}

    def settle(self, names: Iterable[Names]) -> None:
        """Encode the question, and what is left of it without some names.

        Args:
            names: for each partition, the terms of the question that are names there.

        Raises:
            RememError: the embedder failed.
        """
        left: dict[Names, str] = {}
        for some in names:
            if some and some not in self._without:
                words = self._text.split()
                left[some] = " ".join(
                    word for word in words if not some.issuperset(t for t, _ in query_terms(word))
                )
        texts = [] if self._whole is not None else [self._text]
        wanted = [some for some, text in left.items() if text]
        texts += [left[some] for some in wanted]
        if not texts:
            return
        vectors = list(self.dense.encode(texts))
        if self._whole is None:
            self._whole = vectors.pop(0)
        for some, vector in zip(wanted, vectors, strict=True):
            both = self._whole + vector
            self._without[some] = both / max(float(both @ both) ** 0.5, _LEAST)

    def without(self, names: Names) -> F32:
        """The vector to search with where these terms are names: float32 (dim,), unit length.

        It must have been settled.
        """
        assert self._whole is not None
        return self._without.get(names, self._whole)
