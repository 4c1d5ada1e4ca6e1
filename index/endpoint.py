"""Embeddings from an OpenAI-compatible endpoint, over the standard library's HTTP client.

Nothing is sent unless a person configures it.  The key goes to the configured address only:
redirects are not followed and no proxy is taken from the environment.

Source: the embeddings request of the OpenAI API (``POST /embeddings`` with ``model``, ``input``).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from remem.index.errors import EmbedderFailed, EmbedderMissing, UnknownEmbedder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from urllib.request import Request

    import numpy as np
    from numpy.typing import NDArray

    F32 = NDArray[np.float32]

TIMEOUT_S = 30.0
_BATCH_TEXTS = 64
_MAX_ANSWER_B = 64 << 20
_MAX_TEXT_CHARS = 32_768
_PROBE = "dimension"


class EndpointEmbedder:
    """The embedder ``openai:URL#model``.

    Args:
        address: ``http://host:port/v1#model``: the base address and the name of the model.
        api_key: sent as bearer token, or None.
        timeout_s: for each request.

    Raises:
        UnknownEmbedder: the address is not http(s) or names no model.
        EmbedderMissing: numpy is not installed.
    """

    def __init__(
        self, address: str, *, api_key: str | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        """Take the address apart; nothing is sent yet."""
        from importlib.util import find_spec

        url, _, model = address.partition("#")
        if not url.startswith(("http://", "https://")) or not model:
            raise UnknownEmbedder(f"'openai:{address}' is not of the form 'openai:URL#model'")
        if find_spec("numpy") is None:
            raise EmbedderMissing("embedder 'openai' needs 'numpy'")
        self.name = f"openai:{address}"
        self._url = url.rstrip("/") + "/embeddings"
        self._model = model
        self._key = api_key
        self._timeout_s = timeout_s
        self._dim = 0

    @property
    def dim(self) -> int:
        """Length of the vectors; asked of the endpoint the first time."""
        if not self._dim:
            self.encode([_PROBE])
        return self._dim

    @property
    def digest(self) -> str:
        """Identity of the vectors, as far as it can be known: address and model."""
        from blake3 import blake3

        return blake3(f"openai 1\0{self._url}\0{self._model}".encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> F32:
        """Vectors of texts.

        Args:
            texts: n texts; sent in batches of 64.

        Returns:
            float32 (n, dim), unit length.

        Raises:
            EmbedderFailed: no answer in time, a refusal, or an answer that is not n vectors.
        """
        import numpy as np

        parts = [
            self._batch([text[:_MAX_TEXT_CHARS] or " " for text in texts[i : i + _BATCH_TEXTS]])
            for i in range(0, len(texts), _BATCH_TEXTS)
        ]
        return np.concatenate(parts) if parts else np.empty((0, self.dim), np.float32)

    def encode_query(self, text: str) -> F32:
        """Vector of one question: float32 (dim,), unit length."""
        vector: F32 = self.encode([text])[0]
        return vector

    def _batch(self, texts: list[str]) -> F32:
        import numpy as np

        answer = self._post({"model": self._model, "input": texts, "encoding_format": "float"})
        try:
            items = sorted(answer["data"], key=lambda item: item["index"])
            vectors = np.asarray([item["embedding"] for item in items], np.float32)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise self._bad("is not a list of embeddings") from None
        if [item["index"] for item in items] != list(range(len(texts))) or vectors.ndim != 2:
            raise self._bad(f"does not hold {len(texts)} vectors of one length")
        if self._dim and vectors.shape[1] != self._dim:
            raise self._bad(f"has {vectors.shape[1]} dimensions, after {self._dim} before")
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
        if not np.all(np.isfinite(lengths)) or not np.all(lengths > 0):
            raise self._bad("holds a vector without a direction")
        self._dim = int(vectors.shape[1])
        unit: F32 = (vectors / lengths[:, None]).astype(np.float32)
        return unit

    def _post(self, body: dict[str, Any]) -> Any:
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import Request

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        data = json.dumps(body).encode("utf-8")
        request = Request(self._url, data=data, headers=headers, method="POST")
        try:
            raw = _send(request, self._timeout_s)
        except HTTPError as error:
            hint = "check the key" if error.code in (401, 403) else ""
            error.close()
            raise EmbedderFailed(
                f"embedder at '{self._url}' answered {error.code} {error.reason}", hint=hint
            ) from None
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise EmbedderFailed(
                f"no answer from the embedder at '{self._url}': {reason}"
            ) from None
        if len(raw) > _MAX_ANSWER_B:
            raise self._bad(f"is larger than {_MAX_ANSWER_B >> 20} MiB")
        try:
            return json.loads(raw)
        except ValueError:
            raise self._bad("is not JSON") from None

    def _bad(self, what: str) -> EmbedderFailed:
        return EmbedderFailed(f"the answer of the embedder at '{self._url}' {what}")


def _send(request: Request, timeout_s: float) -> bytes:
    from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

    class Stay(HTTPRedirectHandler):
        """A redirect is an error: following it would hand the key to another host."""

        def redirect_request(self, *args: Any, **kwargs: Any) -> None:
            return None

    opener = build_opener(ProxyHandler({}), Stay)
    with opener.open(request, timeout=timeout_s) as response:
        raw: bytes = response.read(_MAX_ANSWER_B + 1)
        return raw
