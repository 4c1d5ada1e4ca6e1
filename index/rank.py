"""From candidates to an order: fuse lexical and vector scores, then the cues of a conversation.

Scores of the two kinds are brought to one scale, sharpened and mixed (a convex combination; fusing
ranks instead lost to plain BM25 on most sets tried).  Sharpening is what lets the cues below work:
what is half as good as the best must not count half, or a session of many weak turns wins.  A
lexical score is multiplied with the share of the question that the document holds, a vector's is
squared.  Then, each as a share of what the document has:

* a turn inherits from the turns beside it, and less from those behind them: an answer often holds
  none of the question's words.  The reply to a question inherits most from it;
* a turn inherits from the best turn of its session: questions are about occasions;
* a speaker named in the question counts for what that speaker said;
* a period named in the question counts for what was said within it;
* an entity named in the question counts for its facts, and less for those one step further;
* long answers of an assistant and the output of tools share many words with any question, and are
  discounted unless the question is about them; what parsers read from commits and commands always
  is, for it is much and says little: it is for who asks by name.

What shares no word with the question needs a vector near it, or a neighbour that speaks for it: any
turn of a conversation may have that, any other document only where vectors are compared too.

Source: Bruch, Gai and Ingber 2023, "An Analysis of Fusion Functions for Hybrid Retrieval".
"""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LEXICAL_SHARE = 0.6  # of the mix; the rest is the vectors'
VECTOR_FLOOR = 0.15  # inner products below this are noise
NEIGHBOUR = 0.2  # share of each turn beside
FURTHER = 0.05  # share of each turn behind those
REPLY = 0.35  # share of the question that a turn replies to
SESSION = 0.25  # share of the best turn of the session
SPEAKER = 0.2  # of the best score, for what a named speaker said
PERIOD = 0.35  # of the best score, for what was said in a named period
POOL = 100  # candidates of each kind; twice as many found nothing more on four sets
SOURCES = 100  # the best candidates, which others inherit from
DISCOUNT = {b"\0r:assistant": 0.7, b"\0r:tool": 0.6, b"\0k:tool_call": 0.6}
PARSED = {b"\0k:diff": 0.3, b"\0l:event": 0.5}  # outlines of changes, events that parsers read


class Candidate:
    """A document on its way into the order, with the parts of its score.

    Attributes:
        lexical: BM25 times the share of the question that it holds; 0 without a common word.
        vector: inner product of the vectors, or None where they were not compared.
        held, mass: see `scoring.Match`.
    """

    __slots__ = ("docno", "held", "lane", "lexical", "mass", "parts", "score", "vector", "when")

    def __init__(self, docno: int, lane: int, when: int | None) -> None:
        """Begin without a score."""
        self.docno = docno
        self.lane = lane
        self.when = when
        self.lexical = 0.0
        self.vector: float | None = None
        self.held = 0.0
        self.mass = 0.0
        self.score = 0.0
        self.parts: dict[str, float] = {}


class Cues:
    """What is known of the documents besides their scores.

    Attributes:
        beside: document numbers before and behind one in its session, the nearest first.
        turn: whether a document is what somebody said in a conversation.
        reply: whether a document answers the one before it.
        speaker: whether what a document says was said by someone named in the question.
        weight: share that a document keeps of what its own words and meaning earn.
        periods: named in the question, [start, end) in microseconds UTC.
        links: what being a fact of a named entity, or of what it is linked to, is worth.
    """

    __slots__ = ("beside", "links", "periods", "reply", "speaker", "turn", "weight")

    def __init__(
        self,
        beside: Callable[[int], tuple[Sequence[int], Sequence[int]]],
        *,
        turn: Callable[[int], bool] | None = None,
        reply: Callable[[int, int], bool] | None = None,
        speaker: Callable[[int], bool] | None = None,
        weight: Callable[[int], float] | None = None,
        periods: Sequence[tuple[int, int]] = (),
        links: dict[int, float] | None = None,
    ) -> None:
        """Bind them; what is None is no cue."""
        self.beside = beside
        self.turn = turn
        self.reply = reply
        self.speaker = speaker
        self.weight = weight
        self.periods = periods
        self.links = links or {}


def order(
    candidates: dict[int, Candidate],
    cues: Cues,
    *,
    top_lexical: float = 0.0,
    top_vector: float = 0.0,
    floor: float = VECTOR_FLOOR,
) -> list[Candidate]:
    """Give each candidate its score and put the best first.

    Args:
        candidates: by document number, with lexical and vector scores as they were found.
        cues: what else is known of them.
        top_lexical: best lexical score of all partitions asked; 0 for that of the candidates.
        top_vector: best vector score of all of them; 0 for that of the candidates.
        floor: inner product that a document without a common word needs.

    Returns:
        The candidates that something speaks for, best first; equal scores by document number.
    """
    found = list(candidates.values())
    weak = {
        c.docno
        for c in found
        if c.lexical <= 0.0 and (c.vector or 0.0) < floor and c.docno not in cues.links
    }
    _mix([c for c in found if c.docno not in weak], top_lexical, top_vector)
    if cues.weight is not None:
        for c in found:
            share = cues.weight(c.docno)
            if share != 1.0:
                _raise(c, "discount", (share - 1.0) * c.score)
    near = _near(found, cues)
    best_of: dict[int, float] = {}
    for c in found:
        best_of[c.lane] = max(best_of.get(c.lane, 0.0), c.score)
    out: list[Candidate] = []
    for c in found:
        inherits = near.get(c.docno, 0.0)
        if c.docno in weak:
            spoken = cues.turn is not None and cues.turn(c.docno)
            if not inherits or not (spoken or c.vector is not None):
                continue
        if inherits:
            _raise(c, "neighbours", inherits)
        _raise(c, "session", SESSION * best_of[c.lane])
        if cues.speaker is not None and cues.speaker(c.docno):
            _raise(c, "speaker", SPEAKER)
        if cues.periods and c.when is not None:
            if any(start <= c.when < end for start, end in cues.periods):
                _raise(c, "period", PERIOD)
        if c.docno in cues.links:
            _raise(c, "entity", cues.links[c.docno])
        if c.score > 0.0:  # nothing speaks for the others
            out.append(c)
    out.sort(key=lambda c: (-c.score, c.docno))
    return out


def _near(found: Sequence[Candidate], cues: Cues) -> dict[int, float]:
    """What documents inherit from the best ones, where these are near them in their session."""
    near: dict[int, float] = {}
    known = near.get
    for c in nlargest(SOURCES, found, key=lambda c: (c.score, -c.docno)):
        if c.score <= 0.0:
            break
        before, behind = cues.beside(c.docno)
        for place, other in enumerate(before):
            near[other] = known(other, 0.0) + (FURTHER if place else NEIGHBOUR) * c.score
        for place, other in enumerate(behind):
            share = FURTHER if place else NEIGHBOUR
            if not place and cues.reply is not None and cues.reply(other, c.docno):
                share = REPLY
            near[other] = known(other, 0.0) + share * c.score
    return near


def _mix(found: list[Candidate], top_lexical: float, top_vector: float) -> None:
    top_lexical = max(top_lexical, max((c.lexical for c in found), default=0.0))
    top_vector = max(top_vector, max((c.vector or 0.0 for c in found), default=0.0))
    share = LEXICAL_SHARE
    if top_vector <= VECTOR_FLOOR:
        share = 1.0
    elif top_lexical <= 0.0:
        share = 0.0
    for c in found:
        if top_lexical > 0.0 and c.lexical > 0.0:
            _raise(c, "lexical", share * c.lexical / top_lexical)
        if share < 1.0 and c.vector is not None and c.vector > VECTOR_FLOOR:
            scaled = (c.vector - VECTOR_FLOOR) / (top_vector - VECTOR_FLOOR)
            _raise(c, "vector", (1.0 - share) * scaled * scaled)


def _raise(c: Candidate, part: str, amount: float) -> None:
    c.score += amount
    c.parts[part] = c.parts.get(part, 0.0) + amount
