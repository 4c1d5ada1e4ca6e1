"""From candidates to an order: fuse lexical and vector scores, then the cues of a conversation.

Scores of the two kinds are brought to one scale and mixed (a convex combination; fusing ranks
instead lost to plain BM25 on most sets tried).  Then, each as a share of what the document has:

* a turn inherits from the turns beside it: an answer often holds none of the question's words;
* a turn inherits from the best turn of its session: questions are about occasions;
* a speaker named in the question counts for what that speaker said;
* a period named in the question counts for what was said within it;
* an entity named in the question counts for its facts, and less for those one step further;
* long answers of an assistant and the output of tools share many words with any question, and are
  discounted unless the question is about them.

Source: Bruch, Gai and Ingber 2023, "An Analysis of Fusion Functions for Hybrid Retrieval".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LEXICAL_SHARE = 0.5  # of the mix; the rest is the vectors'
VECTOR_FLOOR = 0.15  # inner products below this are noise
NEIGHBOUR = 0.3  # share of the mean of the turns beside
SESSION = 0.25  # share of the best turn of the session
SPEAKER = 0.2  # of the best score, for what a named speaker said
PERIOD = 0.35  # of the best score, for what was said in a named period
POOL = 300  # candidates of each kind
DISCOUNT = {b"\0r:assistant": 0.7, b"\0r:tool": 0.6, b"\0k:tool_call": 0.6}


class Candidate:
    """A document on its way into the order, with the parts of its score."""

    __slots__ = ("docno", "lane", "lexical", "parts", "score", "vector", "when")

    def __init__(self, docno: int, lane: int, when: int | None) -> None:
        """Begin without a score."""
        self.docno = docno
        self.lane = lane
        self.when = when
        self.lexical = 0.0
        self.vector = 0.0
        self.score = 0.0
        self.parts: dict[str, float] = {}


def order(
    candidates: dict[int, Candidate],
    *,
    beside: Callable[[int], Iterable[int]],
    speaker: Callable[[int], bool] | None = None,
    weight: Callable[[int], float] | None = None,
    periods: list[tuple[int, int]] = (),  # type: ignore[assignment]
    links: dict[int, float] | None = None,
    lanes: int = 1,
    top_lexical: float = 0.0,
) -> list[Candidate]:
    """Give each candidate its score and put the best first.

    Args:
        candidates: by document number, with lexical and vector scores as they were found.
        beside: document numbers next to a document in its session.
        speaker: whether what a document says was said by someone named in the question.
        weight: share that a document keeps of what its own words and meaning earn.
        periods: named in the question, [start, end) in microseconds UTC.
        links: what being a fact of a named entity, or of what it is linked to, is worth.
        lanes: number of sessions; with one the inheritance from it means nothing.
        top_lexical: best lexical score of all partitions asked; 0 for that of the candidates.

    Returns:
        The candidates, best first; equal scores by document number.
    """
    found = list(candidates.values())
    _mix(found, top_lexical)
    if weight is not None:
        for c in found:
            share = weight(c.docno)
            if share != 1.0:
                _raise(c, "discount", (share - 1.0) * c.score)
    base = {c.docno: c.score for c in found}
    best_of: dict[int, float] = {}
    for c in found:
        best_of[c.lane] = max(best_of.get(c.lane, 0.0), c.score)
    for c in found:
        near = [base[n] for n in beside(c.docno) if n in base]
        if near:
            _raise(c, "neighbours", NEIGHBOUR * sum(near) / 2)
        if lanes > 1:
            _raise(c, "session", SESSION * best_of[c.lane])
        if speaker is not None and speaker(c.docno):
            _raise(c, "speaker", SPEAKER)
        if periods and c.when is not None:
            if any(start <= c.when < end for start, end in periods):
                _raise(c, "period", PERIOD)
        if links and c.docno in links:
            _raise(c, "entity", links[c.docno])
    found = [c for c in found if c.score > 0.0]  # nothing speaks for the others
    found.sort(key=lambda c: (-c.score, c.docno))
    return found


def _mix(found: list[Candidate], top_lexical: float) -> None:
    top_lexical = max(top_lexical, max((c.lexical for c in found), default=0.0))
    top_vector = max((c.vector for c in found), default=0.0)
    share = LEXICAL_SHARE
    if top_vector <= VECTOR_FLOOR:
        share = 1.0
    elif top_lexical <= 0.0:
        share = 0.0
    for c in found:
        if top_lexical > 0.0 and c.lexical > 0.0:
            _raise(c, "lexical", share * c.lexical / top_lexical)
        if share < 1.0 and c.vector > VECTOR_FLOOR:
            scaled = (c.vector - VECTOR_FLOOR) / (top_vector - VECTOR_FLOOR)
            _raise(c, "vector", (1.0 - share) * scaled)


def _raise(c: Candidate, part: str, amount: float) -> None:
    c.score += amount
    c.parts[part] = c.parts.get(part, 0.0) + amount
