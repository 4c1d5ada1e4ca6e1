"""From candidates to an order: the mix, the cues, what is dropped, and parts that add up."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from remem.index import rank


def candidate(docno: int, lexical: float = 0.0, vector: float | None = None) -> rank.Candidate:
    made = rank.Candidate(docno, docno // 100, None)
    made.lexical, made.vector = lexical, vector
    return made


def line(docno: int) -> tuple[list[int], list[int]]:
    """A session in which documents stand in the order of their numbers."""
    return [docno - 1, docno - 2], [docno + 1, docno + 2]


def alone(docno: int) -> tuple[list[int], list[int]]:
    return [], []


def ordered(found: list[rank.Candidate], cues: rank.Cues, **tops: float) -> list[int]:
    return [c.docno for c in rank.order({c.docno: c for c in found}, cues, **tops)]


def test_both_scores_count_and_equal_ones_stand_by_number() -> None:
    found = [candidate(3, 1.0, 0.2), candidate(1, 0.5, 0.9), candidate(2, 1.0, 0.9)]
    assert ordered(found, rank.Cues(alone)) == [2, 1, 3]
    same = [candidate(9, 1.0), candidate(4, 1.0)]
    assert ordered(same, rank.Cues(alone)) == [4, 9]


def test_a_weak_vector_without_a_word_is_no_hit() -> None:
    def found() -> list[rank.Candidate]:
        return [candidate(1, 0.0, 0.29), candidate(50, 0.0, 0.31), candidate(90, 1.0, 0.05)]

    assert ordered(found(), rank.Cues(alone), floor=0.3) == [90, 50]
    assert ordered(found(), rank.Cues(alone), floor=0.1) == [90, 50, 1]
    weak = [candidate(1, 0.0, 0.2), candidate(2, 0.0, 0.25)]
    assert ordered(weak, rank.Cues(line), floor=0.3) == [], "and they do not hold each other up"


def test_a_neighbour_speaks_for_a_turn_and_not_for_a_note() -> None:
    def found() -> list[rank.Candidate]:
        return [candidate(10, 1.0), candidate(11)]

    assert ordered(found(), rank.Cues(line, turn=lambda _: True)) == [10, 11]
    assert ordered(found(), rank.Cues(line)) == [10]
    like = [candidate(10, 1.0, 0.5), candidate(11, 0.0, 0.2)]
    assert ordered(like, rank.Cues(line), floor=0.3) == [10, 11]


def test_the_reply_to_a_question_inherits_most() -> None:
    found = [candidate(n, 1.0 if n == 10 else 0.1) for n in (8, 9, 10, 11, 12)]
    cues = rank.Cues(line, reply=lambda docno, before: (docno, before) == (11, 10))
    by = {c.docno: c.parts["neighbours"] for c in rank.order({c.docno: c for c in found}, cues)}
    assert by[11] > by[9] > by[8]
    plain = rank.order({c.docno: c for c in _fresh(found)}, rank.Cues(line))
    without = {c.docno: c.parts["neighbours"] for c in plain}
    assert math.isclose(without[11], without[9])


def test_speaker_period_and_link_raise_and_a_discount_lowers() -> None:
    base = [candidate(100, 1.0), candidate(200, 1.0)]
    base[1].when = 5
    for cues in (
        rank.Cues(alone, speaker=lambda docno: docno == 200),
        rank.Cues(alone, periods=[(5, 6)]),
        rank.Cues(alone, links={200: 0.1}),
        rank.Cues(alone, weight=lambda docno: 1.0 if docno == 200 else 0.7),
    ):
        again = _fresh(base)
        again[1].when = 5
        assert ordered(again, cues) == [200, 100]
    assert ordered(_fresh(base), rank.Cues(alone)) == [100, 200]


def test_a_partition_with_weaker_scores_stays_weaker() -> None:
    (mine,) = rank.order({1: candidate(1, 1.0)}, rank.Cues(alone), top_lexical=4.0)
    (best,) = rank.order({1: candidate(1, 4.0)}, rank.Cues(alone), top_lexical=4.0)
    assert math.isclose(4 * mine.score, best.score)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 400),
            st.floats(0, 30),
            st.none() | st.floats(-1, 1),
        ),
        max_size=30,
        unique_by=lambda one: one[0],
    ),
    st.sampled_from((0.15, 0.3)),
)
def test_parts_add_up_and_the_order_depends_on_nothing_else(
    rows: list[tuple[int, float, float | None]], floor: float
) -> None:
    cues = rank.Cues(
        line,
        turn=lambda docno: docno % 2 == 0,
        reply=lambda docno, before: docno % 3 == 0,
        speaker=lambda docno: docno % 5 == 0,
        weight=lambda docno: 0.7 if docno % 7 == 0 else 1.0,
        links={4: 0.12},
    )
    found = rank.order({n: candidate(n, a, b) for n, a, b in rows}, cues, floor=floor)
    turned = {n: candidate(n, a, b) for n, a, b in reversed(rows)}
    again = rank.order(turned, cues, floor=floor)
    assert [c.docno for c in found] == [c.docno for c in again]
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
    for c in found:
        assert math.isclose(c.score, sum(c.parts.values()), abs_tol=1e-9)


def _fresh(found: list[rank.Candidate]) -> list[rank.Candidate]:
    return [candidate(c.docno, c.lexical, c.vector) for c in found]
