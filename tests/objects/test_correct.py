"""Correcting: a new entry each time, the old one kept, evidence and facts changed together."""

from __future__ import annotations

from pathlib import Path

import pytest

from remem.objects import correct, forget, instant, refs, statements
from remem.objects.errors import (
    BadInput,
    Blocked,
    HeadMoved,
    NotFound,
    Refused,
    UsageError,
)
from remem.objects.model import Memory, Scope
from remem.objects.scope import Actor
from tests.objects.world import SCOPE, World, at


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def later() -> int:
    return instant.now() + 1


# -- revise -------------------------------------------------------------------------------------


def test_a_revision_holds_from_now_on_and_the_old_one_before(world: World) -> None:
    note = world.add("the port is 5432", said=at(2025), source_uri="notes", source_id="7")
    before = later()
    head = world.do(correct.revise, note.ref, "the port is 6543", reason="typo")
    assert head != note.id
    assert world.texts("o") == ["the port is 6543"]
    assert world.texts("o", as_of=before) == ["the port is 5432"]
    assert world.texts("o", known_at=before) == ["the port is 5432"]
    assert world.texts("o", known_at=at(2025)) == [], "nothing shows before it was recorded"
    entry = world.log(note.ref)[-1]
    assert (refs.OPS[entry.op], entry.reason, entry.principal) == ("revise", "typo", "owner")
    new = world.head(note.ref)
    assert (new.source, new.asserted) == (world.head(note.ref).source, at(2025))  # type: ignore[union-attr]
    world.check()


def test_a_revision_may_have_begun_earlier(world: World) -> None:
    note = world.add("the port is 5432", said=at(2020))
    world.do(correct.revise, note.ref, "the port is 6543", since=at(2022))
    assert world.texts("o", as_of=at(2021)) == ["the port is 5432"]
    assert world.texts("o", as_of=at(2022)) == ["the port is 6543"]
    with pytest.raises(UsageError):
        world.do(correct.revise, note.ref, "the port is 1", since=at(2021))


def test_a_revision_may_begin_later(world: World) -> None:
    note = world.add("the port is 5432", said=at(2020))
    world.do(correct.revise, note.ref, "the port is 6543", since=at(2999))
    assert world.texts("o") == ["the port is 5432"]
    assert world.texts("o", as_of=at(2999)) == ["the port is 6543"]


def test_the_same_text_changes_nothing(world: World) -> None:
    note = world.add("the port is 5432")
    assert world.do(correct.revise, note.ref, "the port is 5432") == note.id
    assert len(world.log(note.ref)) == 1


def test_compare_and_set_on_every_change(world: World) -> None:
    note = world.add("one")
    head = world.do(correct.revise, note.ref, "two", expected=note.id)
    changes = (
        (correct.revise, ("three",)),
        (correct.rollback, (None,)),
        (correct.close, (later(),)),
        (correct.reopen, ()),
        (correct.supersede, (world.add("four").ref, later())),
    )
    for change, words in changes:
        with pytest.raises(HeadMoved):
            world.do(change, note.ref, *words, expected=note.id)
    with pytest.raises(HeadMoved):  # also where the text would not change
        world.do(correct.revise, note.ref, "two", expected=note.id)
    assert world.do(correct.revise, note.ref, "three", expected=head) != head
    rows = world.read(lambda r, _: [row.outcome for *_, row in r.audit_rows()])
    assert rows.count("head_moved") == 6


def test_texts_that_cannot_be_taken(world: World) -> None:
    note = world.add("one")
    gone = world.add("a secret")
    world.write(lambda tx: forget.forget(tx, tx.part(SCOPE), gone.ref))
    for text, error in ((" \n", BadInput), ("half \ud800", BadInput), ("A secret!", Blocked)):
        with pytest.raises(error):
            world.do(correct.revise, note.ref, text)
    with pytest.raises(BadInput):
        world.do(correct.revise, note.ref, "x" * 100, limit_b=99)
    assert world.do(correct.revise, note.ref, "x" * 99, limit_b=99)


@pytest.mark.parametrize("named", ["fact", "sentence"])
def test_a_fact_and_its_sentence_are_one_statement(world: World, named: str) -> None:
    fact = world.fact("deploy host", "is", "alpha-9", start=at(2025))
    told = world.head(fact.ref).cites[0]  # type: ignore[union-attr]
    before = later()
    world.do(correct.revise, fact.ref if named == "fact" else told, "deploy host is beta-3")
    assert world.see() == [
        ("m", "deploy host is beta-3", "current"),
        ("o", "deploy host is beta-3", "current"),
    ]
    memory = world.head(fact.ref)
    assert isinstance(memory, Memory)
    assert memory.triple == ("deploy host", "is", "beta-3")
    assert memory.cites == [world.state(told).head]
    assert world.texts(as_of=before) == world.texts(known_at=before) == ["deploy host is alpha-9"]
    assert {text for _, text, _ in world.see(view="history")} == {
        "deploy host is alpha-9",
        "deploy host is beta-3",
    }
    world.check()


def test_one_of_two_facts_of_a_sentence_changes_alone(world: World) -> None:
    said = "Ann lives and works in Berlin"
    one = world.fact("Ann", "lives_in", "Berlin", start=at(2020), text=said)
    two = world.fact("Ann", "works_in", "Berlin", start=at(2020), text=said)
    assert world.head(one.ref).cites == world.head(two.ref).cites  # type: ignore[union-attr]
    world.do(correct.revise, two.ref, "Ann lives and works in Bonn")
    assert world.texts() == [said, "Ann lives and works in Bonn"]
    told = world.head(one.ref).cites[0]  # type: ignore[union-attr]
    world.do(correct.revise, told, "Ann lives and works in Rome")  # what it still stands for
    assert sorted(world.texts()) == ["Ann lives and works in Bonn", "Ann lives and works in Rome"]
    world.check()


def test_revising_a_derived_memory_states_one_that_takes_its_place(world: World) -> None:
    note = world.add("I live in Berlin. Rex is fine.", said=at(2025))
    world.derive()
    (old,) = world.read(lambda r, p: r.cited_by(p, note.id))
    before = later()
    new = world.do(correct.revise, old, "user lives in Paris")
    assert world.state(old).replaced_by == new
    assert world.texts() == ["user lives in Paris"]
    assert ("o", "I live in Berlin. Rex is fine.", "historical") in world.see()
    assert world.texts(as_of=before) == ["user lives in Berlin"]
    memory = world.head(new)
    assert isinstance(memory, Memory)
    assert memory.triple == ("user", "lives_in", "Paris")
    assert memory.deriver.name == correct.STATED
    world.derive()
    assert world.texts() == ["user lives in Paris"], "deriving again drags nothing back"
    world.check()


def test_everything_but_the_words_is_carried_over(world: World) -> None:
    fact = world.fact("host", "is", "alpha", start=at(2025), kind="instruction")
    memory = world.head(fact.ref)
    assert isinstance(memory, Memory)
    import msgspec

    from remem.objects import memories

    rich = msgspec.structs.replace(
        memories.with_cites(memory, memory.cites),
        cues=["deploy", "ship"], anchors=["a.py"], trigger="t", meta={"tag": [1, 2]},
    )  # fmt: skip
    world.write(
        lambda tx: memories.replace(
            tx, tx.part(SCOPE), fact.ref, tx.reader.find(fact.ref.hex()).state, rich
        )
    )
    world.do(correct.revise, fact.ref, "host is beta")
    new = world.head(fact.ref)
    assert isinstance(new, Memory)
    names = ("kind", "cues", "anchors", "trigger", "meta", "deriver", "confidence", "scope")
    assert [getattr(new, n) for n in names] == [getattr(rich, n) for n in names]


@pytest.mark.parametrize(
    ("triple", "old", "new", "wanted"),
    [
        (("a", "is", "b"), "a is b", "a is c", ("a", "is", "c")),
        (("a", "is", "b"), "a is b", "so a is B now", ("a", "is", "b")),
        (("host", "is", "x-1"), "the host is x-1.", "the host is y-2.", ("host", "is", "y-2")),
        (
            ("Ann", "lives_in", "Rome"),
            "Ann, of Rome",
            "Ann lives in Oslo",
            ("Ann", "lives_in", "Oslo"),
        ),
        (("Ann", "lives_in", "Rome"), "Ann, of Rome", "gone", ("Ann", "lives_in", "gone")),
        (None, "a", "b", None),
    ],
)
def test_the_triple_of_other_words(triple: object, old: str, new: str, wanted: object) -> None:
    assert statements.reworded(triple, old, new) == wanted  # type: ignore[arg-type]


# -- rollback -----------------------------------------------------------------------------------


def test_rolling_back_walks_back_and_to_any_revision(world: World) -> None:
    note = world.add("one", said=at(2020))
    two = world.do(correct.revise, note.ref, "two", since=at(2021))
    world.do(correct.revise, note.ref, "three", since=at(2022))
    assert world.do(correct.rollback, note.ref, None) == two
    assert world.do(correct.rollback, note.ref, None) == note.id
    with pytest.raises(Refused):
        world.do(correct.rollback, note.ref, None)
    assert world.do(correct.rollback, note.ref, two) == two
    assert world.texts("o") == ["two"]
    assert world.texts("o", as_of=at(2022)) == ["three"], "a rollback does not change the past"
    world.check()


def test_a_revision_of_another_ref_is_none(world: World) -> None:
    one, two = world.add("one"), world.add("two")
    world.do(correct.revise, one.ref, "one more")
    with pytest.raises(NotFound):
        world.do(correct.rollback, one.ref, two.id)
    assert world.do(correct.rollback, one.ref, one.id) == one.id


def test_fact_and_sentence_roll_back_together(world: World) -> None:
    fact = world.fact("deploy host", "is", "alpha-9", start=at(2025))
    told = world.head(fact.ref).cites[0]  # type: ignore[union-attr]
    for named in (fact.ref, told):
        world.do(correct.revise, named, "deploy host is beta-3")
        world.do(correct.rollback, named, None)
        assert [text for _, text, _ in world.see()] == ["deploy host is alpha-9"] * 2
        world.check()


def test_a_forgotten_text_does_not_come_back_by_rolling_back(world: World) -> None:
    note = world.add("the key is 1")
    world.do(correct.revise, note.ref, "the key is 2")
    other = world.add("the key is 1", said=at(2020))
    world.write(lambda tx: forget.forget(tx, tx.part(SCOPE), other.ref))
    with pytest.raises(Blocked):
        world.do(correct.rollback, note.ref, note.id)


# -- close and reopen ---------------------------------------------------------------------------


def test_closing_ends_and_reopening_takes_that_back(world: World) -> None:
    note = world.add("the office is in Turin", said=at(2020))
    world.do(correct.close, note.ref, at(2024))
    assert world.texts("o") == [] and world.texts("o", as_of=at(2023)) != []
    assert world.see(view="history") == [("o", "the office is in Turin", "historical")]
    with pytest.raises(Refused):
        world.do(correct.close, note.ref, at(2025))
    world.do(correct.reopen, note.ref)
    assert world.texts("o") != []
    with pytest.raises(Refused):
        world.do(correct.reopen, note.ref)
    with pytest.raises(UsageError):
        world.do(correct.close, note.ref, at(2019))
    world.do(correct.close, note.ref, at(2999))
    assert world.texts("o") != [] and world.texts("o", as_of=at(2999)) == []


def test_evidence_and_what_rests_on_it_close_and_open_together(world: World) -> None:
    note = world.add("I live in Berlin", said=at(2020))
    world.derive()
    world.do(correct.close, note.ref, at(2024))
    assert world.see() == [] and len(world.see(as_of=at(2023))) == 2
    world.do(correct.reopen, note.ref)
    assert len(world.see()) == 2
    fact = world.fact("Bo", "lives_in", "Rome", start=at(2020))
    world.do(correct.close, fact.ref, at(2024))  # and the sentence goes with its fact
    assert all("Bo" not in text for _, text, _ in world.see())
    world.check()


def test_what_was_replaced_is_not_closed_and_not_revised(world: World) -> None:
    old = world.fact("Ann", "lives_in", "Berlin", start=at(2020))
    world.fact("Ann", "lives_in", "Paris", start=at(2022))
    with pytest.raises(Refused):
        world.do(correct.close, old.ref, at(2023))
    with pytest.raises(HeadMoved):
        world.do(correct.revise, old.ref, "Ann lives in Bonn")
    world.do(correct.revise, old.ref, "Ann lives in Bonn", since=at(2020))  # what held then
    assert world.texts(as_of=at(2021)) == ["Ann lives in Bonn"]
    assert world.texts() == ["Ann lives in Paris"]
    world.do(correct.close, old.ref, at(2021, 6))
    assert world.texts(as_of=at(2021, 7)) == []
    world.check()


# -- supersede ----------------------------------------------------------------------------------


def correcting(world: World, text: str, ref: bytes, when: int | None = None) -> bytes:
    new = world.add(text, said=when)
    world.do(correct.supersede, ref, new.ref, instant.now() if when is None else when)
    return new.ref


@pytest.mark.parametrize("named", ["memory", "observation"])
def test_correcting_a_memory_and_its_observation_do_the_same(world: World, named: str) -> None:
    note = world.add("deploy host is alpha-9")
    world.derive()
    (memory,) = world.read(lambda r, p: r.cited_by(p, note.id))
    before = later()
    new = correcting(world, "deploy host is beta-3", memory if named == "memory" else note.ref)
    for derived in (False, True):
        if derived:
            world.derive()
        assert {text for _, text, _ in world.see()} == {"deploy host is beta-3"}
        old = {
            ("m", "deploy host is alpha-9", "historical"),
            ("o", "deploy host is alpha-9", "historical"),
        }
        assert old <= set(world.see(view="history"))
        assert world.texts(as_of=before) == world.texts(known_at=before)
        assert world.texts(as_of=before) == ["deploy host is alpha-9"]
        assert {text for _, text, _ in world.see("o", as_of=before)} == {"deploy host is alpha-9"}
    assert world.state(memory).replaced_by in (new, *world.read(lambda r, p: r.cited_by(p, new)))
    world.check()


def test_not_to_be_corrected_by(world: World) -> None:
    one, two, three = (world.add(text) for text in ("one", "two", "three"))
    with pytest.raises(Refused):
        world.do(correct.supersede, one.ref, one.ref, later())
    with pytest.raises(NotFound):
        world.do(correct.supersede, one.ref, bytes(32), later())
    world.do(correct.supersede, one.ref, two.ref, later())
    with pytest.raises(HeadMoved):
        world.do(correct.supersede, one.ref, three.ref, later())
    with pytest.raises(Refused):  # a circle
        world.do(correct.supersede, two.ref, one.ref, later())
    elsewhere = World.__new__(World)
    elsewhere.store = world.store
    elsewhere.actor = Actor(
        world.actor.grant, "cli", Scope("local", "default", "x", "none", "main")
    )
    other = elsewhere.add("elsewhere")
    with pytest.raises(NotFound):
        world.do(correct.supersede, two.ref, other.ref, later())
    world.do(correct.supersede, two.ref, three.ref, later())  # and the next one in line may
    assert world.texts("o") == ["elsewhere", "three"]


def test_a_correction_said_to_be_earlier_empties_what_it_corrects(world: World) -> None:
    note = world.add("the port is 5432", said=at(2022))
    correcting(world, "the port is 6543", note.ref, at(2021))
    assert world.texts("o", as_of=at(2023)) == ["the port is 6543"]
    assert world.texts("o") == ["the port is 6543"]


# -- what was derived ---------------------------------------------------------------------------


def test_a_revised_observation_keeps_the_claims_whose_words_are_still_there(world: World) -> None:
    note = world.add("I live in Berlin. Rex is fine.", said=at(2025))
    world.derive()
    (memory,) = world.read(lambda r, p: r.cited_by(p, note.id))
    head = world.do(correct.revise, note.ref, "Rex is not well. I live in Berlin.")
    found = world.head(memory)
    assert isinstance(found, Memory)
    assert found.cites == [head] and found.span is not None
    text = world.head(note.ref).text
    assert text[found.span.start : found.span.end] == "I live in Berlin"
    done = world.derive()
    assert (done.new, world.texts()) == (0, ["user lives in Berlin"])
    world.do(correct.revise, note.ref, "I live in Paris.")
    assert world.texts() == [], "what its words no longer say is gone in the same transaction"
    world.derive()
    assert world.texts() == ["user lives in Paris"]
    world.check()


def test_a_memory_with_other_evidence_loses_the_citation_and_stays(world: World) -> None:
    one = world.add("I live in Berlin", said=at(2020))
    two = world.add("I live in Berlin", said=at(2021))
    world.derive()
    (memory,) = world.read(lambda r, p: r.cited_by(p, one.id))
    correcting(world, "I like tea", one.ref)
    found = world.head(memory)
    assert isinstance(found, Memory) and found.cites == [two.id]
    assert world.texts() == ["user lives in Berlin"]
    correcting(world, "I like milk", two.ref)
    assert world.texts() == []
    world.check()


def test_a_replaced_statement_said_again_is_new_evidence(world: World) -> None:
    first = world.add("the port is 5432")
    assert world.add("the port is 5432").status == "known"
    correcting(world, "the port is 6543", first.ref)
    again = world.add("the port is 5432")
    assert (again.status, again.ref != first.ref) == ("new", True)
    assert world.add("the port is 5432").ref == again.ref
    world.do(correct.close, again.ref, later())
    assert world.add("the port is 5432").status == "new"


def test_a_statement_replaced_through_its_memory_is_new_evidence_too(world: World) -> None:
    first = world.add("I live in Berlin")
    world.derive()
    world.add("I live in Paris")
    world.derive()
    again = world.add("I live in Berlin")
    assert (again.status, again.ref != first.ref) == ("new", True)
    world.derive()
    assert world.texts() == ["user lives in Berlin"]
    assert world.add("I live in Berlin").status == "known"


def test_a_long_life_is_quick(world: World) -> None:
    import time

    note = world.add("the counter stands at 0")

    def revise(tx):  # type: ignore[no-untyped-def]
        for number in range(1, 2000):
            correct.revise(tx, tx.reader.find(note.ref.hex()), f"the counter stands at {number}")

    began = time.perf_counter()
    world.write(revise)
    assert len(world.log(note.ref)) == 2000
    assert world.texts("o") == ["the counter stands at 1999"]
    assert time.perf_counter() - began < 15
