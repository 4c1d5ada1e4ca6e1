"""The bench's arithmetic and generators: a wrong measure would misjudge everything else."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench import abstain, metrics
from tests.bench.__main__ import COMMANDS, load, main
from tests.bench.data import chat_micros, corrections, gitlogs, locomo, rfc3339, without_references
from tests.bench.engines import Answer, source_ids
from tests.bench.report import table
from tests.bench.turns import TurnLine, coined, turns, write_turns, zipf_pool

IDS = st.sampled_from("abcdefghij")
RANKINGS = st.lists(IDS, max_size=14)
RELEVANT = st.sets(IDS, min_size=1)


def test_recall_counts_relevant_ids_within_the_cut() -> None:
    ranking = ["x", "a", "y", "b", "c"]
    assert metrics.recall_at(ranking, {"a", "b", "c", "d"}, 4) == 0.5
    assert metrics.recall_at(ranking, {"a", "b", "c", "d"}, 5) == 0.75
    assert metrics.recall_at(ranking, {"d"}, 5) == 0.0


def test_hit_and_reciprocal_rank_look_at_the_first_relevant_id() -> None:
    ranking = ["x", "y", "a", "b"]
    assert metrics.hit_at(ranking, {"a", "z"}, 3) == 1.0
    assert metrics.hit_at(ranking, {"a", "z"}, 2) == 0.0
    assert metrics.reciprocal_rank(ranking, {"b", "a"}) == pytest.approx(1 / 3)
    assert metrics.reciprocal_rank(ranking, {"z"}) == 0.0


def test_area_under_the_curve_by_hand() -> None:
    assert abstain.auc([0.9, 0.8], [0.1, 0.2, 0.3]) == 1.0
    assert abstain.auc([0.1], [0.9, 0.8]) == 0.0
    assert abstain.auc([0.5, 0.9], [0.5, 0.1]) == pytest.approx(0.875)
    assert abstain.auc([0.5, 0.5], [0.5]) == 0.5


def test_calibration_error_is_the_distance_from_what_came_true() -> None:
    assert abstain.calibration_error([(1.0, True), (0.0, False)]) == 0.0
    assert abstain.calibration_error([(1.0, False), (0.0, True)]) == 1.0
    assert abstain.calibration_error([(0.75, True)] * 3 + [(0.75, False)]) == 0.0


def test_names_are_replaced_all_at_once_and_as_whole_words() -> None:
    assert abstain.replaced("Ann saw Bob and Annabel", ["Ann", "Bob"], ["Bob", "Cy"]) == (
        "Bob saw Cy and Annabel"
    )
    assert abstain.replaced("Ann saw Bob", ["Ann", "Bob"], ["", ""]) == " saw "


def test_ndcg_by_hand() -> None:
    gained = 1 / math.log2(2) + 1 / math.log2(4)
    best = 1 / math.log2(2) + 1 / math.log2(3)
    assert metrics.ndcg_at(["a", "x", "b"], {"a", "b"}, 10) == pytest.approx(gained / best)
    assert metrics.ndcg_at(["a", "b", "x"], {"a", "b"}, 10) == 1.0
    assert metrics.ndcg_at(["a", "b"], {"a", "b", "c"}, 2) == 1.0  # the cut bounds the best order


def test_a_query_without_relevant_ids_has_no_score() -> None:
    assert metrics.recall_at(["a"], ["a"], 1) == 1.0
    for measure in (metrics.recall_at, metrics.hit_at, metrics.ndcg_at):
        with pytest.raises(ValueError, match="no score"):
            measure(["a"], [], 1)
    with pytest.raises(ValueError, match="no score"):
        metrics.reciprocal_rank(["a"], [])


@given(RANKINGS, RELEVANT)
def test_measures_agree_with_each_other(ranking: list[str], relevant: set[str]) -> None:
    recalls = [metrics.recall_at(ranking, relevant, k) for k in range(1, 15)]
    assert recalls == sorted(recalls)
    for k in (1, 3, 10):
        recall = metrics.recall_at(ranking, relevant, k)
        ndcg = metrics.ndcg_at(ranking, relevant, k)
        assert 0.0 <= ndcg <= 1.0 + 1e-12
        assert metrics.hit_at(ranking, relevant, k) == float(recall > 0) == float(ndcg > 0)
    assert (metrics.reciprocal_rank(ranking, relevant) > 0) == bool(relevant & set(ranking))


@given(RANKINGS, RELEVANT)
def test_a_repeated_id_counts_once(ranking: list[str], relevant: set[str]) -> None:
    doubled = [name for name in ranking for _ in range(2)]
    for k in (1, 3, 10):
        assert metrics.recall_at(doubled, relevant, k) == metrics.recall_at(ranking, relevant, k)
        assert metrics.ndcg_at(doubled, relevant, k) == metrics.ndcg_at(ranking, relevant, k)


def test_medians_and_means() -> None:
    assert metrics.median([3.0, 1.0, 2.0]) == 2.0
    assert metrics.median([4.0, 1.0, 2.0, 3.0]) == 2.5
    assert metrics.mean([1.0, 2.0]) == 1.5
    assert math.isnan(metrics.mean([])) and math.isnan(metrics.median([]))


def test_bootstrap_is_seeded_and_covers_about_what_it_says() -> None:
    values = [float(number % 2) for number in range(400)]
    low, high = metrics.bootstrap_mean(values)
    assert (low, high) == metrics.bootstrap_mean(values)
    assert (low, high) != metrics.bootstrap_mean(values, seed=1)
    # Standard error of a share of a half over 400 is 0.025; 1.96 of them each side.
    assert low == pytest.approx(0.451, abs=0.006) and high == pytest.approx(0.549, abs=0.006)
    assert metrics.bootstrap_mean([0.3] * 9) == pytest.approx((0.3, 0.3))
    assert metrics.bootstrap_median([1.0, 1.0, 1.0, 9.0, 1.0, 1.0, 1.0]) == (1.0, 1.0)
    assert all(math.isnan(bound) for bound in metrics.bootstrap_mean([]))


def test_table_lays_out_columns_and_refuses_ragged_rows() -> None:
    assert table(["what", "n"], [["a", "10"], ["long", "7"]]).splitlines() == [
        "what   n",
        "----  --",
        "a     10",
        "long   7",
    ]
    with pytest.raises(ValueError, match="one cell"):
        table(["what", "n"], [["a"]])


def test_registry_names_existing_functions_and_refuses_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in COMMANDS:
        assert callable(load(name))
    with pytest.raises(SystemExit) as ended:
        main(["nonsense"])
    assert ended.value.code == 2
    assert "invalid choice: 'nonsense'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("Fix the parser (#123)", "Fix the parser ()"),
        ("Merge pull request #9 from a/b", "Merge pull request from a/b"),
        ("See owner/name#45 and GH-6", "See and"),
        ("see https://example.org/o/n/issues/77 now", "see now"),
        ("Colour #fff and C# stay, 123 too", "Colour #fff and C# stay, 123 too"),
    ],
)
def test_references_are_removed_and_nothing_else(given_text: str, kept: str) -> None:
    assert without_references(given_text) == kept


def test_instants_of_chats() -> None:
    assert rfc3339(chat_micros("1:56 pm on 8 May, 2023")) == "2023-05-08T13:56:00Z"
    assert rfc3339(chat_micros("12:40 am on 27 March, 2022")) == "2022-03-27T00:40:00Z"
    with pytest.raises(ValueError, match="does not match"):
        chat_micros("8 May 2023")


def test_hits_map_back_to_the_ids_given() -> None:
    line = msgspec.json.encode(
        {
            "id": "0",
            "mode": "lexical",
            "degraded": None,
            "view": "now",
            "hits": [
                {
                    "type": "memory",
                    "source": None,
                    "cites": [
                        {"id": "f0", "source": {"uri": "u", "id": "b"}},
                        {"id": "f1", "source": {"uri": "u", "id": "a"}},
                        {"id": "f2", "source": None},
                    ],
                },
                {"type": "observation", "source": {"uri": "u", "id": "a"}, "cites": []},
                {"type": "observation", "source": {"uri": "u", "id": "c"}, "cites": []},
                {"type": "observation", "source": None, "cites": []},
            ],
        }
    )
    assert source_ids(msgspec.json.decode(line, type=Answer).hits) == ["b", "a", "c"]


def test_generated_turns_are_distinct_seeded_and_growing(tmp_path: Path) -> None:
    source = zipf_pool(sentences=50, vocabulary=100)
    long = list(turns(source, 3000))
    assert len({turn.text for turn in long}) == 3000
    assert list(turns(source, 40)) == long[:40]
    assert list(turns(source, 40, seed=8)) != long[:40]
    path = tmp_path / "turns.jsonl"
    assert write_turns(path, source, 40) == path.stat().st_size
    read = msgspec.json.Decoder(TurnLine).decode_lines(path.read_bytes())
    assert read == long[:40]
    assert len({turn.source["id"] for turn in long}) == 3000
    assert [turn.at for turn in long] == sorted(turn.at for turn in long)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_coined_words_differ_where_numbers_do(one: int, other: int) -> None:
    assert (coined(one) == coined(other)) == (one == other)


def test_loaders_keep_only_ids_that_exist(shared_data: Path) -> None:
    for corpus in [*locomo(shared_data), *gitlogs(shared_data)]:
        known = {doc.id for doc in corpus.docs}
        assert len(known) == len(corpus.docs) > 100
        assert len(corpus.questions) > 100
        assert all(question.relevant for question in corpus.questions)
        assert all(known.issuperset(question.relevant) for question in corpus.questions)
    assert all(len(one.questions) == len(one.answers) for one in corrections(shared_data))
