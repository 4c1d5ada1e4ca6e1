"""Short codes of vectors: on which side of fixed planes each lies.

For two unit vectors at an angle the share of planes between them is the angle over pi, and the
number of such planes is spread about that like a number of heads in ``BITS`` tosses.  So the count
of differing bits tells which rows can be near without reading them.

The planes come from BLAKE3: the same on every machine, and no table to store.

Source: Charikar 2002, "Similarity estimation techniques from rounding algorithms", 3.
"""

from __future__ import annotations

from math import acos, pi, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    U16 = NDArray[np.uint16]
    U64 = NDArray[np.uint64]
    F32 = NDArray[np.float32]

BITS = 512
WORDS = BITS // 64
_SEED = b"remem signs 1"
ROUGH = 4  # words that tell which rows are worth comparing in full
_CHUNK = 16_384  # rows counted at a time: 128 KB a word, they stay in the cache

_planes: dict[int, F32] = {}


def planes(dim: int) -> F32:
    """The planes for vectors of a length: float32 (BITS, dim), entries between -128 and 128."""
    import numpy as np
    from blake3 import blake3

    found = _planes.get(dim)
    if found is None:
        raw = blake3(_SEED).digest(length=BITS * dim)
        found = np.frombuffer(raw, np.int8).reshape(BITS, dim).astype(np.float32)
        found += np.float32(0.5)  # no plane is nothing
        _planes[dim] = found
    return found


def codes(vectors: NDArray[np.generic]) -> U64:
    """Codes of vectors.

    Args:
        vectors: (n, dim), of any length and type.

    Returns:
        uint64 (n, WORDS).
    """
    import numpy as np

    sides = vectors.astype(np.float32) @ planes(vectors.shape[1]).T
    packed: U64 = np.packbits(sides > 0, axis=1).view("<u8")
    return packed


def distances(code: U64, columns: U64) -> U16:
    """In how many bits codes differ from one.

    Args:
        code: uint64 (w,), the code or the first words of it.
        columns: uint64 (w, n), word by word.

    Returns:
        uint16 (n,).
    """
    import numpy as np

    rows = columns.shape[1]
    out = np.empty(rows, np.uint16)
    for start in range(0, rows, _CHUNK):
        part = columns[:, start : start + _CHUNK]
        total = out[start : start + _CHUNK]
        total[:] = np.bitwise_count(part[0] ^ code[0])
        for word in range(1, len(code)):
            total += np.bitwise_count(part[word] ^ code[word])
    return out


def reach(cosine: float, deviations: float, bits: int = BITS) -> int:
    """Bits, of so many, in which codes of vectors at a cosine differ at most, with few exceptions.

    Args:
        cosine: of the vectors.
        deviations: how far beyond the expected number; 2 leave out one pair in 40.
        bits: that are compared.
    """
    share = acos(max(-1.0, min(1.0, cosine))) / pi
    return min(bits, int(bits * share + deviations * sqrt(bits * share * (1 - share))))
