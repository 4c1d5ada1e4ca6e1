"""Questions about the past, and questions that name a period to look in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from remem.index.timewords import QUESTION_CHARS, past_question, periods

if TYPE_CHECKING:
    from remem.objects.views import Lens

# Verbs of states: "did I live there in 2023" asks for what held, "did I go there" for an event.
_STATES = (
    "live|work|use|own|have|like|prefer|love|drive|study|rent|belong|hold|host|run|cost|weigh|call"
    "|keep|manage|lead|report|stay|believe|know|want|need|earn|share|teach|serve|stand|lie|support"
)
_STATE = re.compile(
    rf"\b(?:was|were|used to)\b|\bdid\b(?:\W+\w+){{1,4}}?\W+(?:{_STATES})\b", re.IGNORECASE
)
_IN = re.compile(r"\b(?:in|on|during|between|throughout|within)\b\W*$", re.IGNORECASE)
_SMALL = frozenset("in on during between throughout within and the of to from until a".split())
_WORD = re.compile(r"\w+")
_LEADS = re.compile(r"\W*(?:in|on|during|between|throughout|within)\b", re.IGNORECASE)


class Window(msgspec.Struct, frozen=True):
    """A period in which a question wants to look.

    Attributes:
        start: first instant, microseconds UTC.
        end: first instant after it.
        words: by which the question names it, in lower case.
    """

    start: int
    end: int
    words: frozenset[str] = frozenset()

    def named_in(self, text: str) -> bool:
        """Whether a text names the period by the same words: "the 2023 summit" speaks of 2023."""
        return bool(self.words) and self.words.issubset(_WORD.findall(text.lower()))


def about_past(text: str, lens: Lens) -> str | None:
    """The words by which a question asks for what held earlier, or None.

    Either they say so ("used to", "before the move"), or the question is about a state and names a
    period that is over.  A question with times of its own is left to them.
    """
    if lens.view != "now" or lens.as_of is not None or lens.known_at is not None:
        return None
    words = past_question(text)
    if words is not None:
        return words
    text = text[:QUESTION_CHARS]
    if _STATE.search(text) is None:
        return None
    for period in periods(text, now=lens.now):
        if period.end <= lens.now and period.kind != "open":
            return " ".join(text[period.span[0] : period.span[1]].split())
    return None


def windows(text: str, *, now: int) -> tuple[list[tuple[int, int]], list[Window]]:
    """Periods that a question names, [start, end), and those of them that all must lie in."""
    found = [p for p in periods(text, now=now) if not p.recurring]
    strict = [
        Window(p.start, p.end, _named(text, p.span))
        for p in found
        if p.kind == "absolute" and within(text, p.span)
    ]
    return [(p.start, p.end) for p in found], strict


def _named(text: str, span: tuple[int, int]) -> frozenset[str]:
    return frozenset(_WORD.findall(text[span[0] : span[1]].lower())) - _SMALL


def within(text: str, span: tuple[int, int]) -> bool:
    """Whether a period of a question is one to look in: "in May 2023", "between 2021 and 2022"."""
    return bool(_LEADS.match(text[span[0] : span[1]]) or _IN.search(text[: span[0]]))
