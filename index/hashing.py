"""Signed feature hashing: vectors from spelling alone, with no model.

Each word and each of its letter triples and quadruples falls on one of ``dim`` places with a sign,
both taken from its BLAKE3; a text is the sum over its words.  Two texts are near when they share
words or parts of words, so a mistyped or inflected word still counts.  It knows no meaning.

Source: Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning".
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from remem.index.errors import EmbedderMissing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    F32 = NDArray[np.float32]

DIM = 384
MAX_TEXT_CHARS = 32_768
MAX_WORD_CHARS = 64  # of a longer word (a key, a blob) only the start is looked at
_VERSION = 1
_GRAMS = (3, 4)
# Weight of the letter grams of a word together, against 1 for the word itself.  Not 1: the only
# gram of a word of one letter could then cancel the word.
_GRAM_SHARE = 0.9
_MEMO_WORDS = 20_000
_BATCH_TEXTS = 1024
_WORDS = re.compile(r"\w+")


class HashEmbedder:
    """The embedder ``hash``: the same vectors in every process and on every machine.

    Args:
        dim: length of the vectors.

    Raises:
        EmbedderMissing: numpy is not installed.
    """

    name = "hash"

    def __init__(self, dim: int = DIM) -> None:
        """Look whether numpy is there, without importing it."""
        from importlib.util import find_spec

        if find_spec("numpy") is None:
            raise EmbedderMissing("embedder 'hash' needs 'numpy'")
        self.dim = dim
        self._rows: dict[str, int] = {}
        self._words: F32 | None = None

    @property
    def digest(self) -> str:
        """Identity of the vectors: everything that decides where a word falls."""
        from blake3 import blake3

        settings = f"hash {_VERSION}\0{self.dim}\0{_GRAMS}\0{_GRAM_SHARE}"
        return blake3(settings.encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> F32:
        """Vectors of texts.

        Args:
            texts: n texts; a text without a single word gets the vector of the empty word.

        Returns:
            float32 (n, dim), unit length.
        """
        import numpy as np

        out = np.empty((len(texts), self.dim), np.float32)
        for start in range(0, len(texts), _BATCH_TEXTS):
            batch = texts[start : start + _BATCH_TEXTS]
            words: list[str] = []
            starts: list[int] = []
            for text in batch:
                starts.append(len(words))
                words += _words(text)
            part = out[start : start + len(batch)]
            np.add.reduceat(self._vectors(words), starts, axis=0, out=part)
            part /= np.sqrt(np.einsum("ij,ij->i", part, part))[:, None]
        return out

    def encode_query(self, text: str) -> F32:
        """Vector of one question: float32 (dim,), unit length."""
        vector: F32 = self.encode([text])[0]
        return vector

    def _vectors(self, words: list[str]) -> F32:
        """Row by row the vectors of words, from a table that grows: float32 (words, dim)."""
        import numpy as np

        rows = self._rows
        unknown = [word for word in dict.fromkeys(words) if word not in rows]
        if self._words is None or (unknown and len(rows) + len(unknown) > _MEMO_WORDS):
            rows.clear()
            unknown = list(dict.fromkeys(words))
            self._words = np.empty((0, self.dim), np.float32)
        if unknown:
            fresh = np.zeros((len(unknown), self.dim), np.float32)
            for row, word in enumerate(unknown):
                rows[word] = len(rows)
                for feature, weight in _features(word):
                    place = _place(feature)
                    fresh[row, (place >> 1) % self.dim] += weight if place & 1 else -weight
            self._words = np.concatenate([self._words, fresh])
        found: F32 = self._words[[rows[word] for word in words]]
        return found


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text[:MAX_TEXT_CHARS]).casefold()
    return [word[:MAX_WORD_CHARS] for word in _WORDS.findall(folded)] or [""]


def _features(word: str) -> list[tuple[str, float]]:
    # Short words are mostly the grammar of a sentence: they say little about its subject.
    weight = min(len(word), 6) / 6 if word.isascii() and word.isalpha() else 1.0
    if not word:
        return [("", 1.0)]
    framed = f"^{word}$"
    grams = [framed[i : i + n] for n in _GRAMS for i in range(len(framed) - n + 1)]
    if not word.isascii():
        # Scripts without spaces give long words: single letters and pairs carry the meaning.
        grams += [word[i : i + n] for n in (1, 2) for i in range(len(word) - n + 1)]
    out = [("w" + word, weight)]
    share = weight * _GRAM_SHARE / max(1.0, len(grams) ** 0.5)
    out += [("g" + gram, share) for gram in grams]
    return out


def _place(feature: str) -> int:
    from blake3 import blake3

    digest = blake3(feature.encode("utf-8", "surrogatepass")).digest(length=8)
    return int.from_bytes(digest, "little")
