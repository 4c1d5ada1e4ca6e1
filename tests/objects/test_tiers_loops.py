"""Loops and tasks: triggers, what is due, ends, history, lenses."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.index.analyze import terms
from remem.objects import correct, forget, instant, lists, loops, purge, refs, tasks
from remem.objects.errors import BadInput, Forgotten, NotFound, Refused, ScopeRefused, UsageError
from remem.objects.loops import Loop
from remem.objects.scope import Actor, Grant
from remem.objects.statements import Stated
from remem.objects.views import Eye, Lens
from tests.objects.world import DAY, GRANT, OWNER, SCOPE, World

AGENT = Actor(Grant("bot", "local", "default", None), "mcp", SCOPE)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def add(world: World, text: str, **fields: object) -> Stated:
    return world.write(lambda tx: loops.add(tx, SCOPE, text, **fields))  # type: ignore[arg-type]


def due(world: World, text: str = "", now: int | None = None, **lens: object) -> list[str]:
    at = instant.now() if now is None else now
    with world.store.read(GRANT) as reader:
        eye = Eye(Lens(at, **lens), reader)  # type: ignore[arg-type]
        return [loop.memory.text for loop in loops.due(eye, at, text, terms)]


def every(world: World) -> list[Loop]:
    with world.store.read(GRANT) as reader:
        return loops.every(Eye(Lens(instant.now()), reader))


# -- triggers -----------------------------------------------------------------------------------


def test_a_time_trigger_is_due_from_its_instant_on(world: World) -> None:
    now = instant.now() + DAY
    made = add(world, "renew the certificate", when=now, written="tomorrow", offset=120)
    assert due(world, now=now - 1) == []
    assert due(world, now=now) == ["renew the certificate"]
    (loop,) = every(world)
    assert (loop.ref, loop.due, loop.memory.trigger, loop.memory.offset) == (
        made.ref,
        now,
        "tomorrow",
        120,
    )
    told = world.read(lambda r, p: r.object(p, loop.memory.cites[0]))
    assert (told.kind, told.text) == ("statement", "renew the certificate")
    world.check()


@pytest.mark.parametrize(
    ("topic", "said", "comes"),
    [
        ("billing", "who works on Billing?", True),
        ("billing", "who works on shipping?", False),
        ("billing job", "the jobs of billing failed", True),  # stems, any order
        ("billing job", "the billing page", False),
        ("deploy staging cluster", "deploying the cluster", False),
        ("deploy staging cluster", "deployed to the staging clusters", True),
        ("move mail server old rack", "move the old mail server", True),  # four of five
        ("move mail server old rack", "move the old mail", False),  # three of five
        ("the", "the", True),
        ("billing", "", False),
    ],
)
def test_a_topic_trigger_needs_its_words(world: World, topic: str, said: str, comes: bool) -> None:
    add(world, "say so", topic=topic)
    assert due(world, said) == (["say so"] if comes else [])


@given(st.lists(st.sampled_from("ash birch cedar elm fir gum hazel".split()), min_size=1))
def test_a_text_that_holds_all_words_of_a_topic_always_brings_it_back(words: list[str]) -> None:
    loop = Loop(None, b"", None, None, None, " ".join(words), True)  # type: ignore[arg-type]
    said = terms("about " + " ".join(reversed(words)) + " and others")
    assert loops.is_due(loop, 0, said, terms)
    assert not loops.is_due(loop, 0, terms("oak"), terms)


def test_a_loop_has_exactly_one_trigger(world: World) -> None:
    for fields in ({}, {"topic": "  "}, {"topic": "a", "when": 5}):
        with pytest.raises(BadInput, match="one trigger"):
            add(world, "never", **fields)
    with pytest.raises(BadInput, match="more than 200"):
        add(world, "never", topic="x" * 201)
    assert add(world, "ever", when=5).status == "new"


def test_time_comes_before_topic_and_the_earlier_first(world: World) -> None:
    add(world, "third", topic="port")
    add(world, "second", when=20)
    add(world, "first", when=10)
    assert due(world, "which port") == ["first", "second", "third"]


# -- ends ---------------------------------------------------------------------------------------


def test_a_loop_is_kept_when_it_is_done(world: World) -> None:
    made = add(world, "rotate the key", when=1)
    assert due(world) == ["rotate the key"]
    world.do(loops.finish, made.ref, note="done with the new HSM")
    assert due(world) == []
    (loop,) = every(world)
    assert not loop.open and loop.memory.text == "rotate the key"
    assert [(refs.OPS[e.op], e.reason) for e in world.log(made.ref)][-1] == ("close", "done")
    with world.store.read(GRANT) as reader:
        eye = Eye(Lens(instant.now()), reader)
        assert loops.settled(eye, loop) == "done with the new HSM"
    assert "rotate the key" in world.texts(view="history")
    assert "done with the new HSM" in world.texts("o")
    with pytest.raises(Refused, match="done already"):
        world.do(loops.finish, made.ref)
    world.check()


def test_a_note_that_was_forgotten_is_told_no_more(world: World) -> None:
    made = add(world, "call Ann", when=1)
    world.do(loops.finish, made.ref, note="she moved to Oslo")
    (loop,) = every(world)
    note = bytes.fromhex(str(loop.memory.meta["note"]))
    part = world.found(note).part
    with world.store.read(GRANT) as reader:
        assert loops.settled(Eye(Lens(instant.now()), reader), loop) == "she moved to Oslo"
    world.write(lambda tx: forget.forget(tx, part, note))
    with world.store.read(GRANT) as reader:
        assert loops.settled(Eye(Lens(instant.now()), reader), loop) == ""


def test_undo_opens_a_loop_again(world: World) -> None:
    made = add(world, "rotate the key", when=1)
    world.do(loops.finish, made.ref, note="it was done")
    world.undo()
    assert due(world) == ["rotate the key"]
    world.do(loops.finish, made.ref)
    assert due(world) == []


def test_what_was_done_may_be_intended_again(world: World) -> None:
    first = add(world, "water the plants", when=1)
    assert add(world, "water the plants", when=1).status == "known"
    world.do(loops.finish, first.ref)
    again = add(world, "water the plants", when=1)
    assert again.status == "new" and again.ref != first.ref
    assert due(world) == ["water the plants"]
    world.check()


def test_only_loops_are_done(world: World) -> None:
    fact = world.fact("it", "is", "so")
    with pytest.raises(NotFound, match="no loop"):
        world.do(loops.finish, fact.ref)
    made = world.add("evidence")
    with pytest.raises(NotFound):
        world.do(loops.finish, made.ref)


# -- lenses -------------------------------------------------------------------------------------


def test_a_withheld_loop_is_not_due_unless_it_is_asked_for(world: World) -> None:
    made = add(world, "wire the money", when=1)
    assert due(world) == ["wire the money"]
    found = world.found(made.ref)
    world.write(
        lambda tx: tx.record(found.part, "quarantine", made.ref, found.state, status="quarantined")
    )
    assert due(world) == []
    assert due(world, include=frozenset(["quarantined"])) == ["wire the money"]


def test_a_forgotten_loop_is_nowhere(world: World) -> None:
    made = add(world, "meet Ann", when=1)
    part = world.found(made.ref).part
    world.write(lambda tx: forget.forget(tx, part, made.ref))
    assert due(world) == [] and every(world) == []
    with pytest.raises((Forgotten, NotFound)):
        world.do(loops.finish, made.ref)


def test_a_reworded_loop_keeps_its_trigger(world: World) -> None:
    made = add(world, "rotate the key", topic="staging key")
    world.do(correct.revise, made.ref, "rotate both keys")
    assert due(world, "the staging key") == ["rotate both keys"]
    assert due(world, "another") == []


# -- tasks --------------------------------------------------------------------------------------


def put(world: World, key: str, text: str) -> Stated:
    return world.write(lambda tx: tasks.put(tx, SCOPE, key, text))


def states(world: World, key: str | None, **lens: object) -> list[tuple[str, str]]:
    given = {"now": instant.now(), **lens}
    with world.store.read(GRANT) as reader:
        eye = Eye(Lens(**given), reader)  # type: ignore[arg-type]
        found = tasks.every(eye) if key is None else tasks.of(eye, key)
        return [(task.text, task.truth) for task in found]


def finish(world: World, key: str) -> tasks.Task:
    return world.write(lambda tx: tasks.finish(tx, Eye(Lens(tx.now), tx.reader), key))


def test_a_task_has_one_state_and_keeps_the_others(world: World) -> None:
    put(world, "billing", "step 1")
    before = instant.now()
    put(world, "billing", "step 2\nwith a second line")
    put(world, "other", "waiting")
    assert states(world, "billing") == [("step 2\nwith a second line", "current")]
    assert states(world, "Billing") == states(world, "billing")
    assert states(world, "billing", view="history") == [
        ("step 1", "historical"),
        ("step 2\nwith a second line", "current"),
    ]
    assert states(world, "billing", as_of=before) == [("step 1", "current")]
    assert states(world, None) == [
        ("step 2\nwith a second line", "current"),
        ("waiting", "current"),
    ]
    world.check()


@pytest.mark.parametrize("text", ["plan for 2024", "report in 2025", "budget (2026)", "Q1 2024"])
def test_a_year_in_a_state_makes_no_second_state(world: World, text: str) -> None:
    put(world, "billing", text)
    put(world, "billing", "something else")
    put(world, "billing", text)
    assert states(world, "billing") == [(text, "current")]
    assert len(states(world, "billing", view="history")) == 3


def test_the_same_state_again_is_known(world: World) -> None:
    first = put(world, "billing", "step 1")
    assert put(world, "billing", "step 1").status == "known"
    assert put(world, "billing", "step 2").status == "new"
    assert put(world, "billing", "step 1").ref != first.ref


def test_a_task_that_is_done_is_history_and_may_begin_again(world: World) -> None:
    put(world, "billing", "step 1")
    assert finish(world, "billing").text == "step 1"
    assert states(world, "billing") == []
    assert states(world, "billing", view="history") == [("step 1", "historical")]
    with pytest.raises(NotFound, match="no task"):
        finish(world, "billing")
    put(world, "billing", "step 1")
    assert states(world, "billing") == [("step 1", "current")]
    world.check()


def test_a_key_must_be_a_name_and_a_state_must_say_something(world: World) -> None:
    for key in ("", " ", "a\x07b", "x" * 300):
        with pytest.raises(UsageError):
            put(world, key, "text")
    with pytest.raises(BadInput):
        put(world, "key", "  ")
    assert put(world, "two  words", "text").status == "new"
    assert states(world, "two words") == [("text", "current")]


def test_a_fact_of_the_same_name_is_no_task(world: World) -> None:
    world.fact("billing", "task", "nothing")
    put(world, "billing", "step 1")
    assert states(world, "billing", view="history") == [("step 1", "current")]


# -- other principals ---------------------------------------------------------------------------


def test_an_agent_ends_and_sets_its_own_only(world: World) -> None:
    owners = add(world, "the owner's", when=1)
    world.write(lambda tx: tasks.put(tx, SCOPE, "billing", "step 1"))
    own = world.store.write(AGENT, lambda tx: loops.add(tx, SCOPE, "the agent's", when=1))
    world.store.write(AGENT, lambda tx: tasks.put(tx, SCOPE, "shipping", "step 1"))
    world.store.write(AGENT, lambda tx: tasks.put(tx, SCOPE, "shipping", "step 2"))
    world.store.write(AGENT, lambda tx: loops.finish(tx, world.found(own.ref)))
    for change in (
        lambda tx: loops.finish(tx, world.found(owners.ref)),
        lambda tx: tasks.put(tx, SCOPE, "billing", "step 2"),
    ):
        with pytest.raises(ScopeRefused):
            world.store.write(AGENT, change)
    assert due(world) == ["the owner's"]
    assert states(world, None) == [("step 1", "current"), ("step 2", "current")]
    world.check()


def test_a_purge_leaves_no_row_of_a_list(world: World) -> None:
    made, kept = add(world, "meet Ann", when=1), add(world, "meet Bob", when=1)
    part = world.found(made.ref).part
    world.write(lambda tx: forget.forget(tx, part, made.ref))
    purge.next_generation(world.store, OWNER, world.read(lambda r, p: purge.waiting(r)))
    rows = world.read(lambda r, p: [key for key, _ in r.txn.scan("lists")])
    assert rows == [part.prefix + lists.LOOP + kept.ref]
    world.check()


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_a_state_has_words(world: World, text: str) -> None:
    with pytest.raises(BadInput, match="the text is empty"):
        world.write(lambda tx: tasks.put(tx, SCOPE, "key", text))
