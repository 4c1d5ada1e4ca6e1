"""Vectors for a million turns without two hours of embedding.

Usage: ``python -m tests.bench.standin STORE CACHE [DATA]``, with MiniLM chosen as for any command.

The turns of the bench are recombined sentences, so each gets the mean of the MiniLM vectors of the
sentences that it is made of (found by their word triples), and a tenth of noise for what was
exchanged in them.  Sentences are embedded by the model itself, once.  What is measured on these
vectors has the geometry of the model's, and the questions are embedded by the model.  Everything
else, from the queue to the index on disk, is remem's own doing.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.data import DEFAULT_DATA, locomo
from tests.bench.turns import SEED, Pool, pool

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    F32 = npt.NDArray[np.float32]

NOISE = 0.1


def sentence_vectors(source: Pool, cache: Path) -> F32:
    """MiniLM vectors of the sentences of a pool: float32 (n, dim); kept in a file."""
    import numpy as np

    texts = [" ".join(words) for words in source.sentences]
    path = cache / f"sentences-{len(texts)}.npy"
    if path.exists():
        kept: F32 = np.load(path)
        return kept
    model = importlib.import_module("remem.index.minilm").MiniLM()
    made: F32 = model.encode(texts)
    np.save(path, made)
    return made


class StandIn:
    """Finds the sentences of a text and adds up their vectors."""

    def __init__(self, source: Pool, vectors: F32) -> None:
        """Index the word triples of the sentences."""
        self._vectors = vectors
        self._by_triple: dict[str, int] = {}
        for number, words in enumerate(source.sentences):
            for at in range(len(words) - 2):
                self._by_triple.setdefault(" ".join(words[at : at + 3]), number)
        self._drawn = 0

    def encode(self, texts: Sequence[str]) -> F32:
        """Vectors of texts: float32 (n, dim), unit length."""
        import numpy as np

        draw = np.random.default_rng(SEED + self._drawn)
        self._drawn += len(texts)
        out = draw.standard_normal((len(texts), self._vectors.shape[1]), dtype=np.float32)
        out *= np.float32(NOISE / out.shape[1] ** 0.5)
        for row, text in enumerate(texts):
            words = text.split()
            found = {
                number
                for at in range(len(words) - 2)
                if (number := self._by_triple.get(" ".join(words[at : at + 3]))) is not None
            }
            if found:
                out[row] += self._vectors[sorted(found)].mean(axis=0)
        out /= np.linalg.norm(out, axis=1, keepdims=True)
        return out


def main(words: Sequence[str]) -> int:
    """Fill one store.

    Returns:
        The exit code of ``remem project``; 2 on wrong words.
    """
    if len(words) not in (2, 3):
        print("usage: python -m tests.bench.standin STORE CACHE [DATA]", file=sys.stderr)
        return 2
    data = Path(words[2]) if len(words) == 3 else DEFAULT_DATA
    source = pool(locomo(data) if (data / "locomo").is_dir() else [], SEED)
    stand_in = StandIn(source, sentence_vectors(source, Path(words[1])))
    model = importlib.import_module("remem.index.minilm").MiniLM
    if not callable(model.encode):
        raise TypeError("the model's encode is not a function")
    model.encode = lambda self, texts: stand_in.encode(texts)
    entry = importlib.import_module("remem.cli.entry")
    began, spent = time.perf_counter(), time.process_time()
    code = entry.main(["--store", words[0], "project", "--json"])
    wall, cpu = time.perf_counter() - began, time.process_time() - spent
    print(f"stand-in vectors through project: {wall:.1f} s, processor {cpu:.1f} s", flush=True)
    return int(code)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)
