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

REPEATS = "repeats"  # key of ``meta``: [observation, instant] of what said the same again
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


def stays_true(memory: Memory, cited: bytes, observation: Observation, said: int) -> bool:
    """Whether evidence is as true as ever when what was drawn from it has ended.

    "We moved to Turin in 2019" is, since it dates itself; "I live in Turin" is not, nor is "I have
    lived in Turin since 2019".

    Args:
        memory: it was drawn from the observation, or said again by it.
        cited: id of the observation as cited.
        observation: what was said.
        said: from when it counts where it dates nothing, microseconds UTC.
    """
    if memory.deriver.name == STATED:
        return False
    again = next((at for known, at in repeats(memory) if known == cited), None)
    if again is not None:
        dated = again != said
    else:
        span = memory.span
        founding = span is not None and memory.cites[span.cite] == cited
        dated = founding and memory.valid_from not in (None, observation.asserted)
        if founding and memory.valid_to is not None:
            return True
    parts = grounds(memory, cited, observation.text)
    return dated and not any(_SINCE.search(observation.text, *part) for part in parts)


def repeats(memory: Memory) -> list[tuple[bytes, int]]:
    """(observation, instant) of statements that said the same of a later time."""
    found = memory.meta.get(REPEATS)
    pairs = [(bytes.fromhex(c), at) for c, at in found] if isinstance(found, list) else []
    return [(cited, at) for cited, at in pairs if cited in memory.cites]


def moved(text: str, part: Part, new: str) -> Part | None:
    """Where the words of a part stand in another text, or None when they do not."""
    words = text[part[0] : part[1]]
    at = new.find(words)
    return None if at < 0 or not words else (at, at + len(words))
