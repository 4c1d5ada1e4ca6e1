"""What a deriver says: a claim, the span of the evidence that grounds it, and its times."""

from __future__ import annotations

import msgspec


class Claim(msgspec.Struct, frozen=True):
    """A claim about the world, derived from one observation.

    Attributes:
        kind: one of model.MEMORY_KINDS.
        text: the claim as a sentence or a line.
        subject: of the triple.
        predicate: of the triple, lower case with underscores ("lives_in").
        object: of the triple.
        start: code point in the observation's text where the grounding span begins.
        end: where it ends (exclusive).
        single: the predicate has one value at a time, so a later claim replaces an earlier one.
        ends: the claim says that the triple no longer holds (object may be empty: any value).
        valid_from: when it began to hold, microseconds UTC, or None for when it was said.
        valid_to: when it ceased to hold, or None.
        confidence: per mille.
    """

    kind: str
    text: str
    subject: str
    predicate: str
    object: str
    start: int
    end: int
    single: bool = False
    ends: bool = False
    valid_from: int | None = None
    valid_to: int | None = None
    confidence: int = 1000
