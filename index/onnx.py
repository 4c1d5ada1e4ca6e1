"""Any sentence embedder that lies in a local folder as ONNX, run by onnxruntime.

The folder holds ``model.onnx`` and either ``tokenizer.json`` (read by the tokenizers package) or
``vocab.txt`` (an uncased WordPiece vocabulary, read by ours).  Token vectors are averaged over the
text; an output that is one vector a text is taken as it is.

onnxruntime optimises a graph for longer than a short query takes.  With a cache folder the
optimised graph is kept there, its weights beside it so that they are mapped instead of parsed:
load and first query of MiniLM then take 93 ms instead of 209.  The copy is checked against its
BLAKE3 before each use and made again when it does not match; without a cache folder, or with one
that cannot be written, nothing but time is lost.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from remem.index.errors import EmbedderFailed, EmbedderMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    F32 = NDArray[np.float32]

MAX_TOKENS = 256
_BATCH_TEXTS = 16
_PACKAGES = ("numpy", "onnxruntime")
INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})


class OnnxEmbedder:
    """The embedder ``onnx:FOLDER``.

    Args:
        folder: where ``model.onnx`` lies.
        cache_dir: where an optimised copy may be kept, or None.

    Raises:
        EmbedderMissing: a package or a file is not there.
        EmbedderFailed: the model cannot be read.
    """

    def __init__(self, folder: str, *, cache_dir: str | None = None) -> None:
        """Look for the files and read what makes up the identity."""
        reason = missing(folder)
        if reason:
            raise EmbedderMissing(f"embedder 'onnx:{folder}' {reason}")
        self.name = f"onnx:{folder}"
        self._folder = folder
        self._cache = cache_dir
        self._model_digest = digest_of(os.path.join(folder, "model.onnx"))
        self._tokens_file = tokens_file(folder)
        self._session: Any = None
        self._tokens: Callable[[Sequence[str]], list[list[int]]] | None = None
        self._dim = 0

    @property
    def dim(self) -> int:
        """Length of the vectors; opens the model the first time."""
        if not self._dim:
            self._open()
            self._dim = int(self.encode(["dimension"]).shape[1])
        return self._dim

    @property
    def digest(self) -> str:
        """Identity of the vectors: model, tokenizer, length limit, pooling."""
        from blake3 import blake3

        tokens = digest_of(self._tokens_file)
        settings = f"onnx 1\0{self._model_digest}\0{tokens}\0{MAX_TOKENS}\0mean\0unit"
        return blake3(settings.encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> F32:
        """Vectors of texts.

        Args:
            texts: n texts; the first 256 tokens of each count.

        Returns:
            float32 (n, dim), unit length.

        Raises:
            EmbedderFailed: the model does not take tokens or does not give vectors.
        """
        import numpy as np

        tokenize = self._open()
        ids = tokenize(texts)
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        parts = [
            self._batch([ids[row] for row in order[i : i + _BATCH_TEXTS]])
            for i in range(0, len(order), _BATCH_TEXTS)
        ]
        if not parts:
            return np.empty((0, self.dim), np.float32)
        joined = np.concatenate(parts)
        out = np.empty_like(joined)
        out[order] = joined
        return out

    def encode_query(self, text: str) -> F32:
        """Vector of one question: float32 (dim,), unit length."""
        vector: F32 = self.encode([text])[0]
        return vector

    def _open(self) -> Callable[[Sequence[str]], list[list[int]]]:
        if self._tokens is None:
            self._tokens = tokenizer_of(self._tokens_file)
            self._session = session_of(
                os.path.join(self._folder, "model.onnx"), self._model_digest, self._cache
            )
            unknown = {one.name for one in self._session.get_inputs()} - INPUTS
            if unknown:
                raise EmbedderFailed(
                    f"'{self.name}' wants inputs that no text has: {', '.join(sorted(unknown))}"
                )
        return self._tokens

    def _batch(self, ids: list[list[int]]) -> F32:
        import numpy as np

        state, mask = said_of(self._session, f"'{self.name}'", ids)
        if state.ndim == 3:
            state = (state * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1)[:, None]
        if state.ndim != 2 or state.shape[0] != len(ids):
            raise EmbedderFailed(f"'{self.name}' gives an array of shape {state.shape}")
        lengths = np.sqrt(np.einsum("ij,ij->i", state, state, dtype=np.float64))
        if not np.all(np.isfinite(lengths)) or not np.all(lengths > 0):
            raise EmbedderFailed(f"'{self.name}' gives a vector without a direction")
        unit: F32 = (state / lengths[:, None]).astype(np.float32)
        return unit


def said_of(session: Any, name: str, ids: list[list[int]], *, first: int = MAX_TOKENS) -> Any:
    """The first output of a model for some texts, and their mask: int64 (n, tokens).

    Args:
        session: of the model.
        name: as an error calls it.
        ids: tokens of n texts; what lies behind ``MAX_TOKENS`` is not seen.
        first: so many tokens of each belong to the first of two texts.

    Raises:
        EmbedderFailed: the runtime refused.
    """
    import numpy as np

    shape = len(ids), min(MAX_TOKENS, max(map(len, ids)))
    tokens, mask, types = (np.zeros(shape, np.int64) for _ in range(3))
    for row, one in enumerate(ids):
        size = min(len(one), shape[1])
        tokens[row, :size] = one[:size]
        mask[row, :size] = 1
        types[row, first:size] = 1
    feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": types}
    wanted = {one.name for one in session.get_inputs()}
    try:
        return session.run(None, {k: v for k, v in feed.items() if k in wanted})[0], mask
    except Exception as error:  # the runtime has no base class of its own
        raise EmbedderFailed(f"{name} failed: {first_line(error)}") from None


def missing(folder: str) -> str:
    """What keeps a folder from being used: a phrase that follows its name, or an empty string."""
    from importlib.util import find_spec

    if not os.path.isfile(os.path.join(folder, "model.onnx")):
        return "has no 'model.onnx'"
    tokens = tokens_file(folder)
    if not tokens:
        return "has neither 'tokenizer.json' nor 'vocab.txt'"
    packages = [*_PACKAGES, *(["tokenizers"] if tokens.endswith(".json") else [])]
    absent = [package for package in packages if find_spec(package) is None]
    return f"needs {', '.join(map(repr, absent))}" if absent else ""


def tokens_file(folder: str) -> str:
    """Path of what a folder has to cut texts into tokens, or an empty string."""
    for name in ("tokenizer.json", "vocab.txt"):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    return ""


def tokenizer_of(path: str) -> Callable[[Sequence[str]], list[list[int]]]:
    """What cuts texts into token ids, the marks of begin and end included, ``MAX_TOKENS`` at most.

    Raises:
        EmbedderFailed: the file cannot be read.
    """
    try:
        if path.endswith(".json"):
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(path)
            tokenizer.no_padding()
            tokenizer.enable_truncation(MAX_TOKENS)
            return lambda texts: [one.ids for one in tokenizer.encode_batch(list(texts))]
        from remem.index.wordpiece import WordPiece

        with open(path, "rb") as file:
            return WordPiece(file.read(), max_tokens=MAX_TOKENS).encode_batch
    except Exception as error:  # tokenizers raises plain Exception
        raise EmbedderFailed(f"cannot read '{path}': {first_line(error)}") from None


def session_of(path: str, digest: str, cache_dir: str | None) -> Any:
    """An inference session, from the cache where it is whole.

    Args:
        path: of the model.
        digest: BLAKE3 of its file, in hex.
        cache_dir: folder of optimised copies, or None.

    Raises:
        EmbedderFailed: the runtime cannot load it.
    """
    import importlib

    runtime = importlib.import_module("onnxruntime")
    if cache_dir:
        stem = os.path.join(cache_dir, f"onnx-{digest[:32]}-{runtime.__version__}")
        if _whole(stem) or (_optimise(runtime, path, stem) and _whole(stem)):
            try:
                return _load(runtime, os.path.join(stem, "model.onnx"), optimise=False)
            except EmbedderFailed:
                pass  # a runtime that cannot read its own copy reads the original
    return _load(runtime, path, optimise=True)


def _load(runtime: Any, path: str, *, optimise: bool, save: str = "") -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    level = runtime.GraphOptimizationLevel
    # "Extended" stays clear of layouts that hold for one processor only.
    options.graph_optimization_level = (
        level.ORT_ENABLE_EXTENDED if optimise else level.ORT_DISABLE_ALL
    )
    if save:
        options.optimized_model_filepath = save
        entries = (
            ("session.optimized_model_external_initializers_file_name", "weights.bin"),
            ("session.optimized_model_external_initializers_min_size_in_bytes", "1024"),
        )
        for key, value in entries:
            options.add_session_config_entry(key, value)
    try:
        return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime has no base class of its own
        raise EmbedderFailed(f"cannot load '{path}': {first_line(error)}") from None


def _optimise(runtime: Any, path: str, stem: str) -> bool:
    """Write the optimised graph into the folder ``stem``; a failure leaves no copy behind."""
    import shutil
    import tempfile

    work = ""
    try:
        os.makedirs(os.path.dirname(stem), mode=0o700, exist_ok=True)
        work = tempfile.mkdtemp(prefix="onnx-new-", dir=os.path.dirname(stem))
        _load(runtime, path, optimise=True, save=os.path.join(work, "model.onnx"))
        sums = []
        for name in sorted(os.listdir(work)):
            os.chmod(os.path.join(work, name), 0o600)
            sums.append(f"{digest_of(os.path.join(work, name))} {name}\n")
        descriptor = os.open(os.path.join(work, "SUMS"), os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(sums)
        if os.path.isdir(stem):
            shutil.rmtree(stem)
        os.rename(work, stem)
        return True
    except (OSError, EmbedderFailed):
        if work:
            shutil.rmtree(work, ignore_errors=True)
        return False


def _whole(stem: str) -> bool:
    """Whether a cached copy is there and each of its files has the sum noted for it."""
    try:
        with open(os.path.join(stem, "SUMS"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        return bool(lines) and all(
            digest_of(os.path.join(stem, line[65:])) == line[:64] for line in lines
        )
    except (OSError, ValueError, EmbedderFailed):
        return False


def digest_of(path: str) -> str:
    """BLAKE3 of a file, in hex.

    Raises:
        EmbedderFailed: it cannot be read.
    """
    from blake3 import blake3

    hasher = blake3()
    try:
        hasher.update_mmap(path)
    except (OSError, ValueError) as error:
        raise EmbedderFailed(f"cannot read '{path}': {error}") from None
    return hasher.hexdigest()


def first_line(error: Exception) -> str:
    """The first line of what an error says, or its name."""
    return (str(error).splitlines() or [type(error).__name__])[0]
