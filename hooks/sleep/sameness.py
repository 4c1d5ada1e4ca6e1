"""When two texts say the same: exactly, by their normalised value, or nearly, by their words.

Exactly is the measure of tombstones (case, white space, quotes and final punctuation do not make
another value), with one thing more: what looks like code has to be the same letter by letter, for
in ``FOO=1`` and ``foo=1`` case and quotes are meaning.

Nearly is a bound on the Jaccard index of the sets of stems, of which one holds the other: where
each has a word of its own, one may stand in the place of the other.  All pairs above the bound are
found, none by chance: of two sets that overlap so much, the rarest few terms of each have one in
common, so only these are looked up (prefix filtering; Chaudhuri, Ganti and Kaushik 2006,
section 4).  Two statements that differ in a number, a name or a negation do not say the same,
however much they share.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from math import ceil
from typing import TYPE_CHECKING

from remem.index.analyze import terms
from remem.objects.tombs import normal_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KEY_B = 16
ALIKE = 0.75  # share of the stems of both that both have
LEAST = 4  # stems that a text needs to be compared by
MOST = 60  # stems of a statement; longer texts are no statements
NEGATIONS = frozenset(
    """no not never none nothing nobody neither nor without cannot cant can't won't wont isn't
    aren't wasn't weren't doesn't don't didn't hasn't haven't hadn't wouldn't shouldn't couldn't
    stopped former formerly except unless""".split()
)
SWITCHES = frozenset("on off before after above below in out up down yes".split())
_WORD = re.compile(r"[^\s]+")
_TRIM = "\"'`\u00ab\u00bb\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2039\u203a.!?,;:\u2026()"
_ENDS = ".!?,;:\u2026"


def exact_key(text: str) -> bytes:
    """A digest that two texts share when they say exactly the same."""
    value = normal_value(text)
    code = "\0".join(_code(text))
    said = f"{value}\0\0{code}".encode("utf-8", "surrogatepass")
    return blake2b(said, digest_size=KEY_B).digest()


def _code(text: str) -> Iterator[str]:
    """The words of a text in which each letter counts."""
    for found in _WORD.finditer(text):
        word = found[0]
        bare = word.strip(_TRIM)
        if bare and (not bare.isalpha() or bare[1:] != bare[1:].lower()):
            yield word.rstrip(_ENDS) if bare.isalnum() else word.strip(_ENDS)


def stems(text: str) -> frozenset[bytes]:
    """The terms that a text is compared by; none of one that is too short or no statement."""
    found = frozenset(terms(text))
    return found if LEAST <= len(found) <= MOST else frozenset()


def contradict(one: str, other: str) -> bool:
    """True where two texts differ in a number, a name, an identifier or a negation."""
    mine, yours = _surface(one), _surface(other)
    if any(_weighs(word) for word in mine.symmetric_difference(yours)):
        return True
    return bool((mine - yours) & SWITCHES and (yours - mine) & SWITCHES)


def _surface(text: str) -> set[str]:
    """Words of a text; a capital at its beginning is no name."""
    found: set[str] = set()
    for index, word in enumerate(text.split()):
        bare = word.strip(_TRIM)
        if bare:
            found.add(bare.lower() if index == 0 and bare[1:].islower() else bare)
    return found


def _weighs(word: str) -> bool:
    if word.casefold() in NEGATIONS or word.casefold().endswith("n't"):
        return True
    return not word.isalpha() or word != word.lower()


class Shelf:
    """Sets of terms among which those that are alike are found."""

    def __init__(self, sets: Iterable[tuple[int, frozenset[bytes]]], least: float = ALIKE) -> None:
        """Take the sets by number; empty ones are like nothing."""
        self.least = least
        self._sets = {number: found for number, found in sets if found}
        counts: dict[bytes, int] = {}
        for found in self._sets.values():
            for term in found:
                counts[term] = counts.get(term, 0) + 1
        self._counts = counts
        self._by_term: dict[bytes, list[int]] = {}
        for number, found in self._sets.items():
            for term in self._rarest(found):
                self._by_term.setdefault(term, []).append(number)

    def _rarest(self, found: frozenset[bytes]) -> list[bytes]:
        """As many of the rarest terms as have to share one with whatever is alike."""
        order = sorted(found, key=lambda term: (self._counts.get(term, 0), term))
        # A hair less, so that rounding of the bound loses no pair.
        return order[: len(order) - ceil(self.least * len(order) - 1e-9) + 1]

    def like(self, found: frozenset[bytes]) -> list[tuple[int, float]]:
        """(number, Jaccard index) of the sets that are like this one, the most alike first.

        They hold it, or it holds them.
        """
        seen: dict[int, float] = {}
        for term in self._rarest(found) if found else ():
            for number in self._by_term.get(term, ()):
                if number not in seen:
                    other = self._sets[number]
                    small, large = sorted((len(found), len(other)))
                    both = len(found & other)
                    seen[number] = small / large if both == small else 0.0
        alike = [(n, share) for n, share in seen.items() if share >= self.least]
        return sorted(alike, key=lambda one: (-one[1], one[0]))
