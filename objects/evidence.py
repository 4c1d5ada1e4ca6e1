"""What of an observation a memory was drawn from, and whether the observation says anything else.

Three things hang on this: whether evidence goes out of sight with the claim that was drawn from it
(`remem.objects.views`), whether it folds under a memory among the hits of a question, and whether a
citation can be pointed to a later revision.

The parts of an observation that a memory rests on are its span; without one the whole text when the
memory says just that, else the sentences that hold the object of its triple.  An observation says
nothing else when at most `MAX_REST` words are left outside these parts, none of them with a digit
or a capital letter (the first word of the text apart): "By the way, I live in Turin." says nothing
beyond the claim, "I live in Turin and Rex is fine." does.  And what dates itself stays true.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from remem.objects.memories import STATED
from remem.objects.tombs import normal_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.model import Memory, Observation

    Part = tuple[int, int]

MAX_REST = 4  # words outside the grounds of a claim that do not count as another statement
_SENTENCE = re.compile(r"[^.!?\u2026\u3002\n]+(?:[.!?\u2026\u3002]+(?!\s|$)[^.!?\u2026\u3002\n]+)*")
_SINCE = re.compile(r"\bsince\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_][\w'\u2019-]*")


def grounds(memory: Memory, cited: bytes, text: str) -> list[Part]:
    """Parts of an observation's text that a memory was drawn from, [start, end) in code points.

    Args:
        memory: it cites the observation.
        cited: id of the observation as cited.
        text: text of the observation.
    """
    span = memory.span
    if span is not None and memory.cites[span.cite] == cited and span.end <= len(text):
        return [(span.start, span.end)]
    if normal_value(memory.text) == normal_value(text):
        return [(0, len(text))]
    wanted = normal_value(memory.triple[2]) if memory.triple is not None else ""
    if not wanted:
        return []
    return [found.span() for found in _SENTENCE.finditer(text) if wanted in normal_value(found[0])]


def says_nothing_else(text: str, parts: Iterable[Part]) -> bool:
    """Whether what is left of a text outside some parts of it states nothing."""
    covered = sorted(parts)
    if not covered:
        return False
    rest = 0
    for index, word in enumerate(_WORD.finditer(text)):
        at = word.start()
        if any(start <= at < end for start, end in covered):
            continue
        rest += 1
        named = index > 0 and any(c.isupper() for c in word[0])
        if rest > MAX_REST or named or any(c.isdigit() for c in word[0]):
            return False
    return True


def stays_true(memory: Memory, cited: bytes, observation: Observation) -> bool:
    """Whether evidence is as true as ever when what was drawn from it has ended.

    "We moved to Turin in 2019" is, since it dates itself; "I live in Turin" is not, nor is "I have
    lived in Turin since 2019".
    """
    span = memory.span
    if memory.deriver.name == STATED or span is None or memory.cites[span.cite] != cited:
        return False  # a repeat does not tell whether it was the text that dated the claim
    if memory.valid_to is not None:
        return True
    if memory.valid_from is None or memory.valid_from == observation.asserted:
        return False
    return _SINCE.search(observation.text, span.start, span.end) is None


def moved(text: str, part: Part, new: str) -> Part | None:
    """Where the words of a part stand in another text, or None when they do not."""
    words = text[part[0] : part[1]]
    at = new.find(words)
    return None if at < 0 or not words else (at, at + len(words))
