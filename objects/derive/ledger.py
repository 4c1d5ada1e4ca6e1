"""The ledger: claims that parsers read from structure, none of which a model can write.

Read are JSON, CSV, HTTP heads and unified diffs that make up the text of an observation, the exit
codes of commands, commits and the outlines of their changes.  Prose has no structure and derives
nothing; neither does structure that is malformed in any place: a guess about the rest would be no
record.  What an agent wrote or what came from an untrusted source is not looked at.

A document that says where it came from (a source with a URI and no id of an item in it) is the same
document when it comes again, so that its values replace the earlier ones; values of anything else
stand beside each other.  Of one observation at most `MAX_CLAIMS` claims are kept, the first ones in
the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterator

from remem.objects.derive._ledger_commit import commit_claims, exit_claims, tag_claims
from remem.objects.derive._ledger_csv import csv_claims
from remem.objects.derive._ledger_diff import diff_claims
from remem.objects.derive._ledger_http import http_claims
from remem.objects.derive._ledger_json import json_claims
from remem.objects.derive.claim import Claim
from remem.objects.derive.outline import is_outline, outline_claims
from remem.objects.model import Observation

__all__ = ["MAX_CLAIMS", "MAX_TEXT", "NAME", "VERSION", "derive"]

NAME = "ledger"
VERSION = 1
MAX_CLAIMS = 50  # of one observation
MAX_TEXT = 200_000  # code points; a longer text is data and no record


def derive(observation: Observation) -> list[Claim]:
    """Derive the claims of an observation.

    Args:
        observation: any; what has no structure derives nothing.

    Returns:
        Claims in the order of the text, at most `MAX_CLAIMS`, none of them twice.
    """
    if (
        observation.role == "assistant"
        or observation.origin in ("agent", "untrusted")
        or len(observation.text) > MAX_TEXT
    ):
        return []
    found: dict[tuple[str, str, str], Claim] = {}
    for claim in _claims(observation):
        found.setdefault((claim.subject, claim.predicate, claim.object), claim)
        if len(found) == MAX_CLAIMS:
            break
    return list(found.values())


def _claims(observation: Observation) -> Iterator[Claim]:
    if observation.kind == "command":
        return exit_claims(observation)
    if observation.kind == "commit":
        return commit_claims(observation)
    if observation.kind == "tag":
        return tag_claims(observation)
    text = observation.text
    if observation.kind == "diff" and is_outline(text):
        return outline_claims(text)
    first = text.lstrip()[:1]
    document = _document(observation)
    if first in ("{", "["):
        return json_claims(text, document)
    if first in ("H", "G", "P", "D", "O") and "HTTP/" in text[:4096]:
        return http_claims(text)
    if "\n@@ -" in text or "diff --git " in text:
        return diff_claims(text)
    if "\n" in text:
        return csv_claims(text, document, _is_table(observation))
    return iter(())


def _document(observation: Observation) -> str:
    """Name the document that a text is a version of, or nothing."""
    source = observation.source
    return source.uri if source is not None and not source.id else ""


def _is_table(observation: Observation) -> bool:
    """Say whether the source's name says that a text is a table."""
    source = observation.source
    return source is not None and source.uri.lower().endswith((".csv", ".tsv"))
