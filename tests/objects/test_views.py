"""The lens: what is shown now, then, as believed then, and what goes with what."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from remem.objects import correct, instant, refs
from remem.objects.model import Deriver, Memory, Span
from remem.objects.scope import Actor, Grant
from remem.objects.views import WITHHELD, Eye, Lens
from tests.objects.world import SCOPE, World, at


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def later() -> int:
    return instant.now() + 1


# -- times --------------------------------------------------------------------------------------


def test_the_table_of_both_times(world: World) -> None:
    """Facts about 2020 and 2023, the later one learnt first; a third learnt last of all."""
    moments = [later()]
    for value, year in (("Paris", 2023), ("Berlin", 2020), ("Rome", 2022)):
        world.fact("Ann", "lives_in", value, start=at(year))
        moments.append(later())
    columns = (at(2019), at(2021), at(2022, 6), at(2024))
    nothing = ["", "", "", ""]
    wanted = [
        nothing,
        ["", "", "", "Paris"],
        ["", "Berlin", "Berlin", "Paris"],
        ["", "Berlin", "Rome", "Paris"],
    ]
    found = [
        [
            "".join(t.split()[-1] for t in world.texts(known_at=known, as_of=as_of))
            for as_of in columns
        ]
        for known in moments
    ]
    assert found == wanted
    assert [world.texts(known_at=known) for known in moments] == [
        [],
        *[["Ann lives in Paris"]] * 3,
    ]


@pytest.mark.parametrize("origin", [-86_400_000_000, at(2026), at(2100)])
def test_boundaries_are_half_open(world: World, origin: int) -> None:
    world.fact("it", "state", "on", start=origin - 1, end=origin + 1, single=False)
    shown = [bool(world.texts(as_of=origin + step)) for step in (-2, -1, 0, 1, 2)]
    assert shown == [False, True, True, False, False]


def test_what_was_set_twice_keeps_both(world: World) -> None:
    """A value of 2020, then one of 2023: by valid time, and as believed before the second."""
    world.fact("profile", "city", "A", start=at(2020), single=True)
    before = later()
    world.fact("profile", "city", "B", start=at(2023), single=True)
    assert world.texts(as_of=at(2021)) == ["profile city A"]
    assert world.texts(as_of=at(2024)) == ["profile city B"]
    for year in (2021, 2024):
        assert world.texts(as_of=at(year), known_at=before) == ["profile city A"]


def test_a_missing_valid_time_falls_back_to_asserted_then_record_time(world: World) -> None:
    world.add("said in 2020", said=at(2020))
    world.add("said whenever")
    assert world.texts("o", as_of=at(2021)) == ["said in 2020"]
    assert world.texts("o", as_of=later()) == ["said in 2020", "said whenever"]
    assert world.texts("o", as_of=at(2019)) == []


def test_a_stated_time_beats_a_date_in_the_text(world: World) -> None:
    world.add("log of 2019-01-01: server moved", said=at(2026, 3))
    world.derive()
    assert world.see(as_of=at(2020)) == []
    assert world.texts("o", as_of=at(2026, 4)) != []


def test_believed_at_a_time_means_held_true_at_that_time(world: World) -> None:
    world.fact("pass", "state", "valid", start=at(2020), end=later() + 50_000)
    then = later()
    import time

    time.sleep(0.06)
    assert world.texts() == [] and world.texts(known_at=then) == ["pass state valid"]


# -- views --------------------------------------------------------------------------------------


def test_now_history_and_changes(world: World) -> None:
    world.add("never touched")
    note = world.add("the port is 5432")
    world.do(correct.revise, note.ref, "the port is 6543")
    old = world.add("the host is alpha")
    new = world.add("the host is beta")
    world.do(correct.supersede, old.ref, new.ref, later())
    closed = world.add("the office is open")
    world.do(correct.close, closed.ref, later())
    assert world.see() == [
        ("o", "never touched", "current"),
        ("o", "the host is beta", "current"),
        ("o", "the port is 6543", "current"),
    ]
    gone = [
        ("o", "the host is alpha", "historical"),
        ("o", "the office is open", "historical"),
        ("o", "the port is 5432", "historical"),
    ]
    assert world.see(view="history") == sorted([*world.see(), *gone])
    changed = [("o", "the host is beta", "changed"), ("o", "the port is 6543", "changed")]
    assert world.see(view="changes") == sorted([*changed, *gone])


def test_more_evidence_is_no_change(world: World) -> None:
    world.add("I live in Berlin", said=at(2020))
    world.add("I live in Berlin", said=at(2021))
    world.derive()
    assert world.texts(view="changes") == []
    assert len(world.texts(view="history")) == 1
    world.add("I live in Paris", said=at(2022))
    world.derive()
    assert [t for _, _, t in world.see("m", view="changes")] == ["historical", "changed"]


# -- evidence goes with its claims --------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["I live in Berlin.", "By the way, I live in Berlin", "Ok, I live in Berlin!"]
)
def test_evidence_that_says_nothing_else_goes_out_of_sight(world: World, text: str) -> None:
    world.add(text, said=at(2020))
    world.derive()
    assert ("o", text, "current") in world.see()
    world.add("I live in Paris", said=at(2022))
    world.derive()
    assert all(text != shown for _, shown, _ in world.see())
    assert ("o", text, "historical") in world.see(view="history")
    assert ("o", text, "current") in world.see(as_of=at(2021))


@pytest.mark.parametrize(
    "more", [". Rex is fine.", ". We pay 900 a month", ". The people here are as friendly as ever"]
)
def test_evidence_that_says_more_stays_labelled(world: World, more: str) -> None:
    text = f"I live in Berlin{more}"
    world.add(text, said=at(2020))
    world.derive()
    assert ("o", text, "current") in world.see()
    world.add("I live in Paris", said=at(2022))
    world.derive()
    assert ("o", text, "historical") in world.see()


def test_evidence_with_a_claim_that_holds_stays_labelled(world: World) -> None:
    text = "I live in Berlin and my birthday is 3 May"
    world.add(text, said=at(2020))
    world.derive()
    assert len(world.texts()) == 2
    world.add("I live in Paris", said=at(2022))
    world.derive()
    assert ("o", text, "historical") in world.see()
    world.add("I live in Berlin", said=at(2023))
    world.derive()
    assert ("o", "I live in Paris", "historical") not in world.see()


@pytest.mark.parametrize(
    ("text", "later_text", "true"),
    [
        ("I moved to Berlin in 2019.", "I moved to Paris in 2021.", True),
        ("I lived in Berlin from 2017 to 2019.", "I live in Paris", True),
        ("I have lived in Berlin since 2019.", "I live in Paris", False),
        ("I live in Berlin.", "I moved to Paris in 2023.", False),
    ],
)
def test_what_dates_itself_stays_true(world: World, text: str, later_text: str, true: bool) -> None:
    world.add(text, said=at(2022))
    world.derive()
    if not world.texts("m", view="history"):
        pytest.skip("the rules do not read this sentence")
    world.add(later_text, said=at(2024))
    world.derive()
    assert any("Paris" in t for t in world.texts()) and not any(
        "Berlin" in t for t in world.texts()
    )
    assert (("o", text, "current") in world.see()) is true


def memory(text: str, cites: list[bytes], span: Span | None = None, name: str = "model") -> Memory:
    return Memory(
        bytes(16), SCOPE, "summary", text, None, cites, span, Deriver(name), 900,
        None, None, None, [], "", [], {},
    )  # fmt: skip


@pytest.mark.parametrize("status", sorted(WITHHELD - {"erased"}))
def test_withheld_statuses_are_shown_by_no_view_and_by_name_only(world: World, status: str) -> None:
    from remem.objects import memories

    told = world.add("some words")
    ref = world.write(
        lambda tx: memories.create(
            tx, tx.part(SCOPE), memory("a claim", [told.id]), status=status, valid_from=None
        )
    )
    assert ref is not None
    for view, then in itertools.product(("now", "history", "changes"), (None, later())):
        assert world.texts(view=view, known_at=then) == []
    assert world.texts(include=frozenset((status,))) == ["a claim"]


def test_no_past_belief_brings_back_what_is_withheld_now(world: World) -> None:
    note = world.add("a trap")
    then = later()

    def withhold(tx):  # type: ignore[no-untyped-def]
        part = tx.part(SCOPE)
        state = tx.reader.state(part, note.ref)
        tx.record(part, "quarantine", note.ref, state, status="quarantined", reason="instruction")

    assert world.texts("o", known_at=then) == ["a trap"]
    world.write(withhold)
    assert world.texts("o", known_at=then) == []


def test_a_memory_falls_with_the_last_evidence_that_is_shown(world: World) -> None:
    one = world.add("I live in Berlin", said=at(2020))
    two = world.add("I live in Berlin", said=at(2021))
    world.derive()

    def mark(ref: bytes, op: str, status: str) -> None:
        def change(tx):  # type: ignore[no-untyped-def]
            part = tx.part(SCOPE)
            tx.record(part, op, ref, tx.reader.state(part, ref), status=status)

        world.write(change)

    mark(one.ref, "quarantine", "quarantined")
    assert world.texts() == ["user lives in Berlin"]
    mark(two.ref, "quarantine", "quarantined")
    assert world.texts() == world.texts(view="history") == []
    mark(one.ref, "release", "verified")
    assert world.texts() == ["user lives in Berlin"]
    mark(one.ref, "expire", "expired")  # grown old is not set apart
    assert world.texts() == ["user lives in Berlin"]


# -- what stands in its place -------------------------------------------------------------------


def eye_of(world: World, reader: object, **lens: object) -> Eye:
    return Eye(Lens(instant.now(), **lens), reader)  # type: ignore[arg-type]


def test_the_way_to_what_holds(world: World) -> None:
    found = [
        world.fact("Ann", "lives_in", city, start=at(year)).ref
        for city, year in (("Berlin", 2018), ("Rome", 2020), ("Paris", 2022))
    ]
    told = world.head(found[0]).cites[0]  # type: ignore[union-attr]
    with world.store.read(world.actor.grant) as reader:
        part = reader.parts[0]
        eye = eye_of(world, reader)
        assert [eye.stand_in(part, ref) for ref in (*found, told)] == [found[2]] * 4
        assert eye.newest(part, told, told) == found[2]
        assert {eye.root(part, ref, ref) for ref in found} == {found[2]}
        then = eye_of(world, reader, as_of=at(2021))
        assert [then.stand_in(part, ref) for ref in found] == [found[1]] * 3
        before = eye_of(world, reader, as_of=at(2017))
        assert before.stand_in(part, found[1]) is None


def test_what_ended_without_a_successor_has_none(world: World) -> None:
    note = world.add("the office is open", said=at(2020))
    world.do(correct.close, note.ref, at(2022))
    with world.store.read(world.actor.grant) as reader:
        assert eye_of(world, reader).stand_in(reader.parts[0], note.ref) is None
        then = eye_of(world, reader, as_of=at(2021))
        assert then.stand_in(reader.parts[0], note.ref) == note.ref


def test_a_narrow_grant_sees_its_own_lane(world: World) -> None:
    world.add("mine", session="s1")
    theirs = world.add("theirs", session="s2")
    grant = Grant("owner", "local", "default", None, session="s1", owner=True)
    with world.store.read(grant) as reader:
        lens = Lens(instant.now(), "history")
        assert lens.see(reader, reader.parts[0], theirs.ref, theirs.id) is None
    whole = Actor(world.actor.grant, "cli", SCOPE)
    with world.store.read(whole.grant) as reader:
        assert lens.see(reader, reader.parts[0], theirs.ref, theirs.id) is not None
    assert refs.STATUSES[world.state(theirs.ref).status] == "verified"
