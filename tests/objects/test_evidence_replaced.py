"""What a later form of some evidence says again: it holds, from its day on, and cites that form."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import correct, instant
from remem.objects.derive import engine
from remem.objects.derive.claim import Claim
from remem.objects.model import Memory, Observation
from tests.objects.world import OWNER, World, at

OLD, END = at(2020), at(2022)  # what is replaced was said then, and was replaced then
SINCE = "since 2018"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def lines(single: bool) -> dict[str, engine.Kind]:
    """A deriver of the lines "name is value"; "since 2018" in a text dates all of it."""

    def derive(observation: Observation) -> list[Claim]:
        found, start = [], 0
        begins = at(2018) if SINCE in observation.text else None
        for line in observation.text.split("\n"):
            name, verb, value = line.partition(" is ")
            if verb:
                found.append(
                    Claim("fact", line, name, "is", value, start, start + len(line),
                          single=single, valid_from=begins)
                )  # fmt: skip
            start += len(line) + 1
        return found

    return {"lines": engine.Kind("lines", 1, derive, "provisional")}


def run(world: World, single: bool = False) -> engine.Derived:
    return engine.run(world.store, OWNER, ("lines",), kinds=lines(single))


def holding(world: World, **lens: object) -> list[str]:
    """What the memories say that a lens shows, each as often as it is there."""
    return [text for _, text, truth in world.see("m", **lens) if truth == "current"]


def current(world: World) -> dict[str, list[bytes]]:
    """The memories that hold: what each says, and its citations."""
    found: dict[str, list[bytes]] = {}
    with world.store.read(OWNER.grant) as reader:
        for part in reader.parts:
            for _, state in reader.states(part):
                assert state.head is not None
                obj = reader.object(part, state.head)
                if isinstance(obj, Memory) and state.valid_to is None and state.status < 4:
                    assert obj.text not in found
                    found[obj.text] = obj.cites
    return found


def replace(world: World, old: bytes, new: bytes, when: int = END) -> None:
    world.do(correct.supersede, old, new, when, reason="amended")


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("said", [at(2019), OLD, at(2021), END])
def test_what_the_later_form_says_again_holds_and_cites_it(
    world: World, said: int, single: bool
) -> None:
    old = world.add("ada is here\nbob is here", OLD)
    run(world, single)
    before = instant.now()
    new = world.add("well, now\nada is here", said)
    replace(world, old.ref, new.ref)
    assert current(world) == {}
    run(world, single)
    assert current(world) == {"ada is here": [new.id]}
    # History is that of the words: the one form holds from its day on, the other up to its end.
    assert holding(world, as_of=at(2018)) == []
    early = ["ada is here"] if said < OLD else []
    assert holding(world, as_of=at(2019, 6)) == early
    assert holding(world, as_of=at(2021, 6)) == ["ada is here", "bob is here"]
    assert holding(world, as_of=at(2023)) == ["ada is here"]
    assert holding(world, as_of=at(2023), known_at=before) == ["ada is here", "bob is here"]
    world.check()


@pytest.mark.parametrize("said", [at(2019), OLD, at(2021)])
def test_deriving_again_changes_nothing(world: World, said: int) -> None:
    old = world.add("ada is here", OLD)
    run(world)
    new = world.add("ada is here\nand more", said)
    replace(world, old.ref, new.ref)
    assert run(world).new == 1
    before = world.last_seq()
    engine.rebuild(world.store, OWNER, ("lines",))
    done = run(world)
    assert (done.new, done.known, done.withdrawn, world.last_seq()) == (0, 1, 0, before)
    assert current(world) == {"ada is here": [new.id]}


def test_forms_that_came_and_went_in_between_are_passed(world: World) -> None:
    old = world.add("ada is here", OLD)
    run(world)
    forms = [world.add(f"ada is here\nform {number}", OLD) for number in range(3)]
    for earlier, later in zip([old, *forms], forms, strict=False):
        replace(world, earlier.ref, later.ref)
    run(world)
    assert current(world) == {"ada is here": [forms[-1].id]}


def test_a_fact_of_two_sources_follows_whichever_says_it_again(world: World) -> None:
    """The one that the fact lost first says it again, the one that it ended with does not."""
    first, second = world.add("ada is here\n1", OLD), world.add("ada is here\n2", at(2021))
    run(world)
    assert current(world) == {"ada is here": [first.id, second.id]}
    says, silent = world.add("ada is here\n3", OLD), world.add("nobody", at(2021))
    replace(world, first.ref, says.ref)
    assert current(world) == {"ada is here": [second.id]}
    replace(world, second.ref, silent.ref)
    run(world)
    assert current(world) == {"ada is here": [says.id]}


def test_what_stands_in_nobodys_place_brings_nothing_back(world: World) -> None:
    """A correction is not undone by the same words from elsewhere, read late."""
    old = world.add("ada is here", OLD)
    run(world)
    new = world.add("ada is there", END)
    replace(world, old.ref, new.ref)
    late = world.add("ada is here\nsaid elsewhere", at(2021))
    run(world)
    assert current(world) == {"ada is there": [new.id]}
    # Once it has taken the place itself, it does.
    replace(world, new.ref, late.ref)
    engine.rebuild(world.store, OWNER, ("lines",))
    run(world)
    assert "ada is there" not in current(world)


def test_a_revision_that_dates_a_fact_the_same_keeps_it(world: World) -> None:
    told = world.add(f"ada is here, {SINCE}", at(2019))
    run(world)
    assert list(current(world)) == [f"ada is here, {SINCE}"]
    head = world.do(correct.revise, told.ref, f"Ada is here, {SINCE}", since=END)
    assert current(world) == {}
    run(world)
    assert current(world) == {f"Ada is here, {SINCE}": [head]}
    assert holding(world, as_of=at(2018, 6)) == [f"Ada is here, {SINCE}"]
    world.check()


def test_taking_the_replacement_back_brings_the_old_form_back(world: World) -> None:
    old = world.add("ada is here\nbob is here", OLD)
    run(world)
    new = world.add("ada is here", OLD)
    replace(world, old.ref, new.ref)
    seq = world.last_seq()
    run(world)
    world.undo(seq)
    assert {"ada is here", "bob is here"} == set(holding(world, as_of=at(2023)))
    world.check()


@given(st.integers(0, 24), st.booleans(), st.booleans())
def test_when_it_is_derived_makes_no_difference(month: int, single: bool, first: bool) -> None:
    """The later form is read before the old one is replaced, or behind that."""
    said = OLD + month * (END - OLD) // 24
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "store")
        old = world.add("ada is here\nbob is here", OLD)
        run(world, single)
        new = world.add("ada is here\ncyd is here", said)
        if first:
            run(world, single)
        replace(world, old.ref, new.ref)
        run(world, single)
        assert current(world) == {"ada is here": [new.id], "cyd is here": [new.id]}
        for day in (OLD, said, END - 1):
            assert "ada is here" in holding(world, as_of=day)
        world.store.close()
