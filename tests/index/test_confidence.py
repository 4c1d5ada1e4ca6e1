"""Confidence: what raises it, what it may look at, and that nothing found is no answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.index import confidence, project
from remem.index.recall import Answer, Question, Searcher
from remem.objects import forget, instant
from remem.objects.admit import admit
from remem.objects.model import Incoming, Scope
from remem.objects.scope import Actor, Grant, owner_grant
from remem.objects.store import Store
from remem.objects.views import Lens

SCOPE = Scope("local", "default", "home", "none", "main")
ACTOR = Actor(Grant("owner", "local", "default", None, owner=True), "cli", SCOPE)
FACTS = (
    "the staging gateway answers on port 9443",
    "the dentist appointment moved to Thursday morning",
    "our holiday in Lisbon begins with the night train",
    "the boiler was serviced by the firm in Mill Lane",
    "grandmother's plum cake wants two hours in the oven",
    "the bicycle needs a new chain before the autumn tour",
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.create(str(tmp_path / "store"))
    for text in FACTS:
        add(made, text)
    yield made
    made.close()


def add(store: Store, text: str, **fields: object) -> bytes:
    record = Incoming(text=text, **fields)  # type: ignore[arg-type]
    return store.write(ACTOR, lambda tx: admit(tx, record)).ref


def ask(store: Store, text: str, **fields: object) -> Answer:
    question = Question(text, Lens(instant.now()), mode="lexical", **fields)  # type: ignore[arg-type]
    return Searcher(store, owner_grant(SCOPE)).ask(question)


@given(st.floats(0, 1), st.floats(0, 20), st.none() | st.floats(-1, 1))
def test_it_is_a_probability_and_grows_with_what_speaks_for_a_hit(
    held: float, mass: float, cosine: float | None
) -> None:
    sure = confidence.of_hit(held, mass, cosine)
    assert 0.0 <= sure <= 1.0
    assert confidence.of_hit(min(1.0, held + 0.1), mass, cosine) >= sure
    assert confidence.of_hit(held, mass + 1, cosine) >= sure
    if cosine is not None:
        assert confidence.of_hit(held, mass, cosine + 0.1) >= sure


@pytest.mark.parametrize("indexed", [True, False])
def test_a_question_that_is_answered_is_surer_than_one_that_is_not(
    store: Store, indexed: bool
) -> None:
    if indexed:
        project.project(store)
    known = ask(store, "on which port does the staging gateway answer?")
    other = ask(store, "which port did the Hungarian frigate reach in winter?")
    assert known.confidence > 0.5 > confidence.LOW > other.confidence > 0.0
    assert known.confidence == max(hit.confidence for hit in known.hits)
    assert ask(store, "xylophone quagga").confidence == 0.0
    assert ask(store, "xylophone quagga").hits == []


def test_the_index_and_the_scan_are_equally_sure(store: Store) -> None:
    text = "on which port does the staging gateway answer?"
    scanned = ask(store, text)
    project.project(store)
    indexed = ask(store, text)
    assert [h.id for h in indexed.hits] == [h.id for h in scanned.hits]
    assert indexed.confidence == pytest.approx(scanned.confidence)


def test_the_name_of_a_speaker_is_no_answer(store: Store) -> None:
    for number in range(6):
        add(store, f"remark number {number} on nothing", speaker="Ottilie", session="talk")
    project.project(store)
    named = ask(store, "what opera did Ottilie applaud?")
    assert named.hits and named.confidence < confidence.LOW
    assert ask(store, "what was Ottilie's remark number 3?").confidence > named.confidence


def test_what_is_forgotten_makes_nobody_sure(store: Store) -> None:
    text = "the vault code is heliotrope"
    ref = add(store, text)
    project.project(store)
    before = ask(store, "what is the vault code?").confidence

    def drop(tx):  # type: ignore[no-untyped-def]
        forget.forget(tx, tx.reader.find(ref.hex()).part, ref)

    store.write(ACTOR, drop)
    after = ask(store, "what is the vault code?")
    assert text not in [hit.obj.text for hit in after.hits]
    assert before > 0.5 > after.confidence
