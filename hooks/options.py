"""Settings that whoever opens a store hands down; nothing here reads files or the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects.admit import DEFAULT_LIMIT_B

if TYPE_CHECKING:
    from collections.abc import Callable


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a store is used (remem-config(5) has the same names).

    Attributes:
        limit_b: largest text taken, bytes.
        mode: how recall ranks by default.
        limit: hits of a recall.
        budget: characters of a context.
        short_days: days that a short note is kept.
        attempts: how often an operation of a draft may be proposed.
        embedder: auto, none, hash, minilm, onnx:FOLDER or openai:URL#MODEL.
        embedder_key: key of the embedding endpoint.
        reranker: none, msmarco or onnx:FOLDER.
        cache_dir: folder for what can be made again, or None for none.
        derivers: derivers that run, in order.
        single: whether a predicate of a collection has one value at a time, or None for the rule.
    """

    limit_b: int = DEFAULT_LIMIT_B
    mode: str = "hybrid"
    limit: int = 10
    budget: int = 4000
    short_days: int = 8
    attempts: int = 3
    embedder: str = "auto"
    embedder_key: str = ""
    reranker: str = "none"
    cache_dir: str | None = None
    derivers: tuple[str, ...] = ("ledger", "rules")
    single: Callable[[str, str, bool], bool] | None = None
