"""Whether a derived claim rests on the passage that it cites.

A claim is grounded when its value stands in the passage: every number of it, and most of the words
that carry its meaning.  It contradicts its source when it says what the passage denies, or denies
what the passage says.  Deterministic, on words alone; a paraphrase that shares no word with its
passage is held back for a person to look at.

Source: remem(7), ADMISSION.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remem.objects.model import Memory

VERSION = "grounding/1"

SPAN = "ungrounded:span"  # the passage lies outside of what is cited
NUMBER = "ungrounded:number"  # a number that the passage does not have
WORDS = "ungrounded:words"  # too few of its words stand in the passage
NEGATION = "contradicts:negation"  # it says what its source denies, or the other way round

_LEAST = 0.5  # share of the claim's own words that the passage must have
_STEM = 4  # code points by which forms of a word are taken for the same
_WORD = re.compile(r"[^\W\d_]{3,}")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NOT = re.compile(
    r"\b(?:not|never|no longer|cannot|without|neither|nor|none|nobody|nothing|nowhere)\b"
    r"|n['\u2019]t\b",
    re.IGNORECASE,
)
_STOP = frozenset(
    "the and for are was were has have had been being that this with from his her its their our"
    " your you she they them who what which when where into onto over under about"
    " also but not".split()
)


def judge(memory: Memory, text: str) -> list[str]:
    """Reason codes against a derived claim; none when it is grounded.

    Args:
        memory: the claim, with the span that it cites.
        text: text of the observation that the span is of.
    """
    span = memory.span
    passage = text
    if span is not None:
        if not 0 <= span.start < span.end <= len(text):
            return [SPAN]
        passage = text[span.start : span.end]
    value = memory.text if memory.triple is None else memory.triple[2]
    codes = []
    numbers = set(_NUMBER.findall(value))
    if numbers - set(_NUMBER.findall(passage)):
        codes.append(NUMBER)
    wanted, there = _stems(value), _stems(passage)
    if wanted and len(wanted & there) / len(wanted) < _LEAST:
        codes.append(WORDS)
    elif wanted and _denies(passage) != _denies(_said(memory)):
        codes.append(NEGATION)
    return codes


def _said(memory: Memory) -> str:
    return memory.text if memory.triple is None else f"{' '.join(memory.triple)} {memory.text}"


def _stems(text: str) -> set[str]:
    words = (w for w in _WORD.findall(text.casefold()) if w not in _STOP)
    return {w[:_STEM] for w in words}


def _denies(text: str) -> bool:
    """Whether a text denies something: an odd number of negations."""
    return len(_NOT.findall(text)) % 2 == 1
