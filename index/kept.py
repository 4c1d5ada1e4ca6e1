"""What a resident process keeps of the reading side from one question to the next.

Off unless :func:`switch_on` was called, which the resident process does and nobody else.  It keeps
the embedder, and the rows of vector indexes.  Rows are compared with the header of their index
before each use, block by block, so a kept row that is no longer right is never used; it keeps no
text and no part of the inverted index, which the system's page cache holds.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from remem.index.embed import Embedder
    from remem.index.vectors import VectorIndex

MAX_B = 1 << 30  # of rows, altogether

_on = False
_embedders: dict[str, Embedder] = {}
_indexes: dict[str, VectorIndex] = {}
_sizes: dict[str, int] = {}  # bytes of rows, as they were loaded
_missed: dict[str, tuple[str, int, str]] = {}


def switch_on() -> None:
    """Keep from now on."""
    global _on
    _on = True


def keep_embedder(spec: str, *, cache_dir: str | None) -> None:
    """Load the embedder that a setting names and keep it, if it runs on this machine.

    A model of the user's own is not kept: its files may change at any moment.

    Raises:
        EmbedderMissing, UnknownEmbedder, EmbedderFailed: there is none.
    """
    if spec not in ("auto", "minilm", "hash"):
        return
    from remem.index.embed import resolve

    found = resolve(spec, cache_dir=cache_dir)
    if found is not None:
        found.encode_query("a question")
        _embedders[found.name] = found


def embedder(name: str) -> Embedder | None:
    """A kept embedder."""
    return _embedders.get(name)


def vectors(folder: str, name: str, dim: int, digest: str) -> VectorIndex | None:
    """A kept vector index, or None; what is missed is remembered."""
    if not _on:
        return None
    index = _indexes.get(folder)
    if index is not None and (index.name, index.dim, index.digest) == (name, dim, digest):
        return index
    _missed[folder] = name, dim, digest
    return None


def missed() -> dict[str, tuple[str, int, str]]:
    """Vector indexes that were asked for and not kept: name, dim and digest by folder."""
    return _missed


def keep_vectors(folder: str, name: str, dim: int, digest: str) -> bool:
    """Load a vector index and keep its rows, if there is room.

    Raises:
        IndexDamaged, EmbedderMismatch: it cannot be used.
    """
    from remem.index.vectors import VectorIndex

    index = VectorIndex(folder, name=name, dim=dim, digest=digest, warm=True)
    size = index.size_b
    if not size or size > MAX_B - size_b() + _sizes.get(folder, 0):
        return False
    index.load()
    _indexes[folder], _sizes[folder] = index, size
    return True


def is_stale() -> bool:
    """Whether something kept was removed from the store since: then this process has to end."""
    return any(index.has_lost() for index in _indexes.values())


def size_b() -> int:
    """Bytes of rows that are kept."""
    return sum(_sizes.values())


def folders() -> list[str]:
    """Folders of the indexes that are kept."""
    return sorted(_indexes, key=os.fsencode)
