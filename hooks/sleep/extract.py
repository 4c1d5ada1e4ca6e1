"""A summary in the very words of a conversation: which sentences, in which order.

Sentences are taken as long as there is room, each time the one that brings most of what is spoken
of and is not said yet, for its length (maximum coverage under a budget, greedy with a cost;
Lin and Bilmes 2010, section 3).  How much a term is spoken of is told by how often it comes up; a
number or a name counts more, since it is what people look for later.
"""

from __future__ import annotations

import re
from math import log
from typing import TYPE_CHECKING

import msgspec

from remem.index.analyze import terms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHARE = 0.5  # of the length of what is summed up
MOST = 2400  # characters
LONGEST = 320  # characters of one sentence
SHORTEST = 20
_SENTENCE = re.compile(r"[^.!?\u2026\u3002\uff01\uff1f\n]+[.!?\u2026\u3002\uff01\uff1f]*")
_COST = 0.6  # power of the length by which what a sentence brings is divided


class Turn(msgspec.Struct, frozen=True):
    """What somebody said.

    Attributes:
        day: as it is written, "2026-03-01", or "" where it is unknown.
        who: speaker, may be empty.
        text: what was said.
    """

    day: str
    who: str
    text: str


class _Piece(msgspec.Struct, frozen=True):
    turn: int
    place: int
    text: str
    terms: frozenset[bytes]


def extract(
    turns: Sequence[Turn], head: str, *, skip: Callable[[str], bool], share: float = SHARE
) -> str:
    """The text of a summary, or nothing when the conversation says too little.

    Args:
        turns: in the order in which they were said.
        head: its first line.
        skip: whether a sentence is left out.
        share: of the length of all turns that it may have at most, the first line included.
    """
    size = sum(len(turn.text) for turn in turns)
    room = min(int(size * share), MOST) - len(head)
    pieces = [
        _Piece(number, match.start(), text, frozenset(terms(text)))
        for number, turn in enumerate(turns)
        for match in _SENTENCE.finditer(turn.text)
        if SHORTEST <= len(text := " ".join(match[0].split())) <= LONGEST and not skip(text)
    ]
    weights = _weights(pieces)
    taken: list[_Piece] = []
    said: set[bytes] = set()
    while pieces:
        best, score = None, 0.0
        for piece in pieces:
            worth = sum(weights[term] for term in piece.terms - said)
            value = worth / len(piece.text) ** _COST
            if value > score:
                best, score = piece, value
        if best is None:
            break
        pieces.remove(best)
        if len(_written(turns, [*taken, best])) <= room:
            taken.append(best)
            said |= best.terms
    if len(taken) < 2:
        return ""
    return head + _written(turns, taken)


def _weights(pieces: Sequence[_Piece]) -> dict[bytes, float]:
    """How much each term is spoken of."""
    counts: dict[bytes, int] = {}
    telling: set[bytes] = set()
    for piece in pieces:
        named = frozenset(
            term
            for index, word in enumerate(piece.text.split())
            if (index and word[:1].isupper()) or any(c.isdigit() for c in word)
            for term in terms(word)
        )
        telling |= named & piece.terms
        for term in piece.terms:
            counts[term] = counts.get(term, 0) + 1
    return {
        term: log(1 + count) * (1.5 if term in telling else 1.0) for term, count in counts.items()
    }


def _written(turns: Sequence[Turn], taken: Sequence[_Piece]) -> str:
    """Sentences below their days, in the order in which they were said."""
    text = ""
    day = ""
    last = -1
    for piece in sorted(taken, key=lambda one: (one.turn, one.place)):
        turn = turns[piece.turn]
        if turn.day != day:
            day = turn.day
            text += f"\n{day or 'undated'}:"
            last = -1
        if piece.turn == last:
            text += f" {piece.text}"
        else:
            text += f"\n{turn.who}: {piece.text}" if turn.who else f"\n{piece.text}"
        last = piece.turn
    return text
