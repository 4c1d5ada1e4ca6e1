"""Give every turn of a store a random vector under MiniLM's name.

Usage: ``python -m tests.bench.fill STORE``, with MiniLM chosen as for any other command.

Runs ``remem project`` in this process with one change: the model's ``encode`` draws unit vectors
instead of reading texts.  All else, from the queue to the index on disk, is remem's own doing,
and the identity stamped in the index is the model's.  Meant for measuring reads only.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

SEED = 7


class _Embedder(Protocol):
    dim: int


def random_units(count: int, dimension: int, seed: int) -> npt.NDArray[np.float32]:
    """Draw directions evenly over the sphere.

    Returns:
        float32 (count, dimension), rows of unit length.
    """
    import numpy as np

    rows = np.random.default_rng(seed).standard_normal((count, dimension), dtype=np.float32)
    unit: npt.NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def replace_model() -> None:
    """Put the random encoder in the place of the model's, which must exist under that name."""
    model = importlib.import_module("remem.index.minilm").MiniLM
    drawn = 0

    def encode(self: _Embedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        nonlocal drawn
        drawn += len(texts)
        return random_units(len(texts), self.dim, SEED + drawn)

    if not callable(model.encode):
        raise TypeError("the model's encode is not a function")
    model.encode = encode


def main(words: Sequence[str]) -> int:
    """Fill one store.

    Args:
        words: the folder of the store.

    Returns:
        The exit code of ``remem project``; 2 on wrong words.
    """
    if len(words) != 1:
        print("usage: python -m tests.bench.fill STORE", file=sys.stderr)
        return 2
    replace_model()
    entry = importlib.import_module("remem.cli.entry")
    sys.argv = ["remem", "--store", words[0], "project", "--json"]
    began = time.perf_counter()
    try:
        code = entry.main()
    except SystemExit as ended:
        code = ended.code
    if code:
        return code if isinstance(code, int) else 5
    print(f"random vectors through project: {time.perf_counter() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
