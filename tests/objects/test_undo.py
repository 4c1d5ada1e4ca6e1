"""Undo: every operation can be taken back, that can be taken back, and forgetting cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remem.objects import correct, forget, refs, undo
from remem.objects.errors import NotFound, Refused, RememError
from remem.objects.scope import Actor, Grant
from tests.objects.world import SCOPE, World, at


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def seen(world: World) -> list[object]:
    """What can be seen now, in history and of some times."""
    views = [world.see(), world.see(view="history")]
    return [*views, *(world.see(as_of=at(year)) for year in range(2018, 2027))]


OPERATIONS: dict[str, Callable[[World, bytes, bytes], object]] = {
    "add": lambda w, note, fact: w.add("something else"),
    "fact": lambda w, note, fact: w.fact("Ann", "lives_in", "Rome", start=at(2024)),
    "late fact": lambda w, note, fact: w.fact("Ann", "lives_in", "Rome", start=at(2020)),
    "bounded fact": lambda w, note, fact: w.fact(
        "Ann", "lives_in", "Rome", start=at(2023), end=at(2024)
    ),
    "repeated fact": lambda w, note, fact: w.fact("Ann", "lives_in", "Paris", start=at(2025)),
    "revise": lambda w, note, fact: w.do(correct.revise, note, "the port is 6543"),
    "revise a fact": lambda w, note, fact: w.do(correct.revise, fact, "Ann lives in Nice"),
    "rollback": lambda w, note, fact: w.do(correct.rollback, w.found(note).ref, None),
    "close": lambda w, note, fact: w.do(correct.close, note, at(2026)),
    "close a fact": lambda w, note, fact: w.do(correct.close, fact, at(2025)),
    "supersede": lambda w, note, fact: w.write(lambda tx: _correct(tx, note)),
    "supersede a fact": lambda w, note, fact: w.write(lambda tx: _correct(tx, fact)),
}


def _correct(tx, ref):  # type: ignore[no-untyped-def]
    from remem.objects.admit import admit
    from remem.objects.model import Incoming

    new = admit(tx, Incoming(text="a correction"))
    correct.supersede(tx, tx.reader.find(ref.hex()), new.ref, tx.now)


def begin(world: World) -> tuple[bytes, bytes]:
    """A note with two revisions and a chain of two facts."""
    note = world.add("the port is 1111", said=at(2019)).ref
    world.do(correct.revise, note, "the port is 5432", since=at(2021))
    world.fact("Ann", "lives_in", "Berlin", start=at(2019))
    return note, world.fact("Ann", "lives_in", "Paris", start=at(2022)).ref


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_and_its_undo(world: World, name: str) -> None:
    note, fact = begin(world)
    before = seen(world)
    OPERATIONS[name](world, note, fact)
    after = seen(world)
    if name != "repeated fact":  # which says nothing new of any time
        assert after[:2] != before[:2] or after[2:] != before[2:]
    made = world.undo()
    # The view of history keeps what held in between where that was a revision; the rest is equal.
    assert seen(world)[0] == before[0]
    if name not in ("revise", "revise a fact", "rollback"):
        assert seen(world)[1:] == before[1:]
    world.check()
    back = world.undo(made[0].seq)  # undoing the undo brings it back
    assert seen(world)[0] == after[0] and seen(world)[2:] == after[2:]
    world.check()
    world.undo(back[0].seq)
    assert seen(world)[0] == before[0]
    world.check()


def test_undo_goes_back_step_by_step(world: World) -> None:
    world.add("one")
    world.add("two")
    note = world.add("three")
    world.do(correct.revise, note.ref, "four")
    steps = [world.texts("o")]
    for _ in range(4):
        world.undo()
        steps.append(world.texts("o"))
    wanted = [["four", "one", "two"], ["one", "three", "two"], ["one", "two"], ["one"], []]
    assert steps == wanted
    nothing = world.read(lambda r, p: undo.last_operation(r, p, "owner"))
    assert nothing is None
    world.check()


def test_what_was_taken_back_is_withheld_and_was_believed_before(world: World) -> None:
    note = world.add("the port is 5432")
    then = world.state(note.ref).created
    world.undo()
    assert refs.STATUSES[world.state(note.ref).status] == "rejected"
    assert world.see(view="history") == []
    assert world.texts("o", known_at=then) == ["the port is 5432"]
    assert world.add("the port is 5432").status == "new", "said again it is not swallowed"
    assert world.texts("o") == ["the port is 5432"]


def test_evidence_taken_back_takes_what_was_derived_from_it(world: World) -> None:
    world.add("I live in Berlin", said=at(2020))
    world.derive()
    world.add("I live in Paris", said=at(2022))
    world.derive()
    assert world.texts() == ["user lives in Paris"]
    made = world.undo()  # the last operation of the owner: not what was derived
    assert world.texts() == ["user lives in Berlin"]
    assert world.derive().new == 0
    assert world.texts() == ["user lives in Berlin"]
    world.undo(made[0].seq)
    world.derive()
    assert world.texts() == ["user lives in Paris"]
    world.check()


def test_what_evidence_ended_holds_again_without_it(world: World) -> None:
    world.add("I live in Berlin", said=at(2020))
    world.add("I no longer live in Berlin", said=at(2022))
    world.derive()
    assert world.texts() == [] and world.texts(as_of=at(2021)) == ["user lives in Berlin"]
    world.undo()
    assert world.texts() == ["user lives in Berlin"]
    world.check()


def test_an_earlier_operation_is_taken_back_unless_it_was_built_upon(world: World) -> None:
    note = world.add("one")
    first = world.last_seq()
    fact = world.fact("Ann", "lives_in", "Berlin", start=at(2020))
    second = world.last_seq()
    world.fact("Ann", "lives_in", "Paris", start=at(2022))  # links the first, and no more
    world.undo(second)
    assert world.texts() == ["Ann lives in Paris"]
    assert refs.STATUSES[world.state(fact.ref).status] == "rejected"
    world.do(correct.revise, note.ref, "two")
    with pytest.raises(Refused, match="changed again"):
        world.undo(first)
    world.undo()  # the revision first
    world.undo(first)
    assert "one" not in world.texts("o")
    with pytest.raises(Refused, match="undone already"):
        world.undo(first)
    world.check()


def test_forgetting_is_not_undone(world: World) -> None:
    note = world.add("a secret")
    world.write(lambda tx: forget.forget(tx, tx.part(SCOPE), note.ref))
    with pytest.raises(Refused, match="stays forgotten"):
        world.undo()
    with pytest.raises(Refused):
        world.undo(1)
    assert world.see(view="history") == []


def test_unknown_entries_and_links_alone(world: World) -> None:
    world.fact("Ann", "lives_in", "Berlin", start=at(2020))
    world.fact("Annie", "lives_in", "Paris", start=at(2022))
    from remem.objects import aliases

    world.write(lambda tx: aliases.add(tx, tx.part(SCOPE), "Annie", "Ann"))
    with pytest.raises(Refused, match="linked"):
        world.undo(world.last_seq())
    for seq in (0, 999):
        with pytest.raises(NotFound):
            world.undo(seq)


def test_marks_and_releases_are_taken_back_by_who_may(world: World) -> None:
    note = world.add("one")

    def mark(tx, op, **fields):  # type: ignore[no-untyped-def]
        part = tx.part(SCOPE)
        tx.record(part, op, note.ref, tx.reader.state(part, note.ref), **fields)

    world.write(lambda tx: mark(tx, "pin"))
    assert [refs.OPS[e.op] for e in world.undo()] == ["unpin"]
    world.write(lambda tx: mark(tx, "quarantine", status="quarantined"))
    stranger = Actor(Grant("owner", "local", "default", None), "mcp", SCOPE)
    seq = world.last_seq()
    with pytest.raises(Refused, match="only the owner"):
        world.store.write(stranger, lambda tx: undo.undo(tx, tx.part(SCOPE), seq))
    assert world.texts("o") == []
    assert [refs.OPS[e.op] for e in world.undo()] == ["release"]
    assert world.texts("o") == ["one"]


@settings(max_examples=40)
@given(names=st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=1, max_size=6))
def test_undoing_everything_leads_back_to_the_beginning(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    world = World(tmp_path_factory.mktemp("undo") / "store")
    note, fact = begin(world)
    start = world.last_seq()
    steps = [seen(world)[0]]
    for name in names:
        seq = world.last_seq()
        try:
            OPERATIONS[name](world, note, fact)
        except RememError:
            continue
        if world.last_seq() != seq:  # a repeat may have changed nothing
            steps.append(seen(world)[0])
    world.check()
    for wanted in reversed(steps[:-1]):
        world.undo()
        assert seen(world)[0] == wanted, names
    world.check()
    left = world.read(lambda r, p: undo.last_operation(r, p, "owner"))
    assert left is not None and left <= start
    world.store.close()
