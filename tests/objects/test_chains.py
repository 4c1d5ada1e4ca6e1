"""Chains: late facts land in the past, whatever the order in which they are learnt."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import aliases, chains, correct, refs
from remem.objects.errors import BadInput, NotFound, Refused, ScopeRefused
from remem.objects.model import Memory, Scope
from remem.objects.scope import Actor, Grant
from tests.objects.world import DAY, SCOPE, World, at


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


# -- the order of time --------------------------------------------------------------------------


def test_a_later_fact_replaces_the_earlier_one_and_both_name_each_other(world: World) -> None:
    old = world.fact("Ann", "lives_in", "Berlin", start=at(2020))
    new = world.fact("Ann", "lives_in", "Paris", start=at(2023))
    assert world.texts() == ["Ann lives in Paris"]
    state = world.state(old.ref)
    assert (state.valid_to, state.replaced_by) == (at(2023), new.ref)
    rows = world.read(lambda r, p: [k for k, _ in r.txn.scan_prefix("replaces", p.prefix)])
    assert [row[4:] for row in rows] == [new.ref + old.ref]
    assert world.texts(as_of=at(2021)) == ["Ann lives in Berlin"]
    assert world.texts(as_of=at(2019)) == []
    world.check()


def test_a_fact_learnt_late_lands_in_the_past(world: World) -> None:
    world.fact("Ann", "lives_in", "Paris", start=at(2023))
    world.fact("Ann", "lives_in", "Berlin", start=at(2018))
    world.fact("Ann", "lives_in", "Rome", start=at(2020))
    assert world.texts() == ["Ann lives in Paris"]
    assert world.texts(as_of=at(2019)) == ["Ann lives in Berlin"]
    assert world.texts(as_of=at(2022)) == ["Ann lives in Rome"]
    assert world.texts(as_of=at(2023)) == ["Ann lives in Paris"]  # from is inclusive
    assert world.texts(as_of=at(2023) - 1) == ["Ann lives in Rome"]  # to is exclusive
    world.check()


def test_a_fact_about_the_future_waits_for_its_day(world: World) -> None:
    world.fact("Ann", "lives_in", "Berlin", start=at(2020))
    world.fact("Ann", "lives_in", "Oslo", start=at(2999))
    assert world.texts() == ["Ann lives in Berlin"]
    assert world.texts(as_of=at(2999)) == ["Ann lives in Oslo"]
    assert "Ann lives in Oslo" in world.texts(view="history")


def test_a_fact_with_an_end_interrupts_and_does_not_end(world: World) -> None:
    world.fact("Ann", "lives_in", "Berlin", start=at(2018))
    world.fact("Ann", "lives_in", "Oslo", start=at(2020), end=at(2021))
    assert world.texts() == ["Ann lives in Berlin"]
    assert world.texts(as_of=at(2020, 6)) == ["Ann lives in Oslo"]
    assert world.texts(as_of=at(2021)) == ["Ann lives in Berlin"]
    assert {truth for _, _, truth in world.see("o")} == {"current"}, "its evidence holds again"
    world.fact("Ann", "lives_in", "Rome", start=at(2020, 6))  # so Oslo was left for Rome
    assert world.texts() == world.texts(as_of=at(2021)) == ["Ann lives in Rome"]
    world.check()


def test_an_interruption_that_is_taken_back_leaves_no_trace_in_the_present(world: World) -> None:
    berlin = world.fact("Ann", "lives_in", "Berlin", start=at(2018))
    world.fact("Ann", "lives_in", "Oslo", start=at(2020), end=at(2021))
    world.undo()
    assert world.see("m") == [("m", "Ann lives in Berlin", "current")]
    assert world.texts(as_of=at(2020, 6)) == ["Ann lives in Berlin"]
    state = world.state(berlin.ref)
    assert (state.valid_to, state.replaced_by) == (None, None)
    world.check()


def test_a_repeat_of_a_later_time_survives_what_is_learnt_of_the_time_between(
    world: World,
) -> None:
    world.add("I live in Berlin", said=at(2018))
    world.add("I live in Berlin", said=at(2022))
    world.derive()
    assert len(world.texts(view="history")) == 1, "a repeat adds evidence, not a row"
    world.add("I live in Paris", said=at(2020))
    world.derive()
    assert world.texts() == ["user lives in Berlin"]
    assert world.texts(as_of=at(2021)) == ["user lives in Paris"]
    assert world.texts(as_of=at(2019)) == ["user lives in Berlin"]
    world.check()


Statement = tuple[str, int, int | None]


@st.composite
def statements_of_one_thing(draw: st.DrawFn) -> list[Statement]:
    """Distinct beginnings; few values without an end, and values of their own with one."""
    days = draw(st.lists(st.integers(1, 40), min_size=1, max_size=6, unique=True))
    found: list[Statement] = []
    for day in days:
        length = draw(st.none() | st.integers(1, 20))
        value = draw(st.sampled_from("ABC")) if length is None else f"only {day}"
        found.append((value, day * DAY, None if length is None else (day + length) * DAY))
    return found


@given(said=statements_of_one_thing(), order=st.randoms(use_true_random=False))
def test_whatever_the_order_the_last_that_began_and_has_not_ended_holds(
    tmp_path_factory: pytest.TempPathFactory, said: list[Statement], order: object
) -> None:
    order.shuffle(said)  # type: ignore[attr-defined]
    world = World(tmp_path_factory.mktemp("chain") / "store")
    for value, start, end in said:
        world.fact("it", "state", value, start=start, end=end)
    for day in range(0, 62):
        moment = day * DAY + 1
        holds = [(s, v) for v, s, e in said if s <= moment and (e is None or moment < e)]
        wanted = [f"it state {max(holds)[1]}"] if holds else []
        assert world.texts(as_of=moment) == wanted, (day, said)
    world.check()
    world.store.close()


# -- what is one chain --------------------------------------------------------------------------


def test_names_are_compared_folded(world: World) -> None:
    world.fact("Ann Lee", "lives_in", "Berlin", start=at(2020))
    world.fact("ANN  lee", "Lives In", "Paris", start=at(2021))
    assert world.texts() == ["ANN  lee Lives In Paris"]


def test_a_period_in_predicate_object_or_subject_keeps_facts_apart(world: World) -> None:
    for year in (2024, 2025):
        world.fact("office", f"budget_for_{year}", f"{year}0", start=at(2020))
        world.fact("lab", "budget", f"{year}0 for {year}", start=at(2020, 2))
        world.fact(f"budget of the hub for {year}", "is", f"{year}0", start=at(2020, 3))
    assert len(world.texts()) == 6
    world.fact("office", "budget for 2024", "77", start=at(2021))  # the same year is one chain
    world.fact("lab", "budget", "88 (2024)", start=at(2021))
    assert len(world.texts()) == 6
    assert {"office budget for 2024 77", "lab budget 88 (2024)"} <= set(world.texts())


@pytest.mark.parametrize(
    ("value", "period"),
    [
        ("5000 for 2024", "2024"),
        ("5000 for Q3 2025", "q3 2025"),
        ("5000 (2024)", "2024"),
        ("40k in March", "march"),
        ("2025-01-01", ""),
        ("1 May 2024", ""),
        ("Berlin", ""),
        ("room 2024", ""),
        ("for 2024", ""),
        ("Turin (Italy)", ""),
    ],
)
def test_the_period_of_a_value(value: str, period: str) -> None:
    assert chains.qualifier(value) == period


def test_predicates_with_one_value_are_known_with_and_without_a_period() -> None:
    assert all(map(chains.is_single, ("lives_in", "Lives In", "budget for 2024", "budget 2024")))
    assert not any(map(chains.is_single, ("knows", "likes", "visited in 2024", "for 2024")))


def test_many_values_stand_beside_each_other_each_with_its_own_chain(world: World) -> None:
    for name in ("Bo", "Cy"):
        world.fact("Ann", "knows", name, start=at(2020), single=False)
    assert world.texts() == ["Ann knows Bo", "Ann knows Cy"]
    again = world.fact("ann", "knows", "bo", start=at(2020), single=False, text="Ann knows Bo")
    assert again.status == "known"


def test_scopes_do_not_meet(world: World) -> None:
    world.fact("Ann", "lives_in", "Berlin", start=at(2020))
    elsewhere = Scope("local", "default", "other", "none", "main")
    world.actor = Actor(world.actor.grant, "cli", elsewhere)
    world.fact("Ann", "lives_in", "Paris", start=at(2021))
    assert world.texts() == ["Ann lives in Berlin", "Ann lives in Paris"]


# -- repeats and conflicts ----------------------------------------------------------------------


def test_the_same_fact_again_is_known(world: World) -> None:
    one = world.fact("Ann", "lives_in", "Berlin", start=at(2020))
    assert world.fact("Ann", "lives_in", "Berlin", start=at(2020)).status == "known"
    assert world.fact("ann", "lives_in", "BERLIN", start=at(2021)).ref == one.ref
    assert world.texts(view="history") == ["Ann lives in Berlin"]


def test_a_repeat_with_an_end_ends_it(world: World) -> None:
    one = world.fact("Ann", "lives_in", "Berlin", start=at(2020))
    same = world.fact("Ann", "lives_in", "Berlin", start=at(2020), end=at(2022))
    assert (same.ref, same.status) == (one.ref, "known")
    assert world.texts() == [] and world.texts(as_of=at(2021)) == ["Ann lives in Berlin"]


def test_what_people_stated_of_the_same_instant_stands_side_by_side(world: World) -> None:
    world.fact("Ann", "lives_in", "Berlin", start=at(2020))
    world.fact("Ann", "lives_in", "Paris", start=at(2020))
    assert world.texts() == ["Ann lives in Berlin", "Ann lives in Paris"]
    world.fact("Ann", "lives_in", "Rome", start=at(2021))  # both end where the next begins
    assert world.texts() == ["Ann lives in Rome"]


def test_a_superseded_fact_stated_again_is_new_evidence_and_holds(world: World) -> None:
    first = world.fact("Ann", "lives_in", "Berlin")
    world.fact("Ann", "lives_in", "Paris")
    again = world.fact("Ann", "lives_in", "Berlin")
    assert again.status == "new" and again.ref != first.ref
    assert world.see() == [
        ("m", "Ann lives in Berlin", "current"),
        ("o", "Ann lives in Berlin", "current"),
    ]
    assert world.fact("Ann", "lives_in", "Berlin").status == "known"


# -- standing -----------------------------------------------------------------------------------


def claim(world: World, text: str, value: str, status: str, start: int) -> bytes:
    """A fact of a given standing, on evidence of its own."""
    told = world.add(text).id
    memory = Memory(
        bytes(16), SCOPE, "fact", text, ("Ann", "lives_in", value), [told], None,
        chains_deriver(), 900, start, None, None, [], "", [], {},
    )  # fmt: skip
    return world.write(
        lambda tx: chains.put(
            tx, tx.part(SCOPE), memory, status=status, single=True, valid_from=start
        )
    )[0]


def chains_deriver() -> object:
    from remem.objects.model import Deriver

    return Deriver("model")


def test_what_is_withheld_replaces_nothing(world: World) -> None:
    world.fact("Ann", "lives_in", "Berlin", start=at(2020))
    ref = claim(world, "Ann lives on Mars", "Mars", "quarantined", at(2021))
    assert world.texts() == ["Ann lives in Berlin"]

    def release(tx):  # type: ignore[no-untyped-def]
        part = tx.part(SCOPE)
        tx.record(part, "release", ref, tx.reader.state(part, ref), status="provisional")
        chains.relink_of(tx, part, ref)

    world.write(release)  # and once it is released it does
    assert world.texts() == ["Ann lives on Mars"]
    world.check()


def test_a_fact_is_replaced_by_one_of_at_least_its_standing(world: World) -> None:
    world.fact("Ann", "lives_in", "Berlin", start=at(2020))
    claim(world, "Ann lives in Oslo", "Oslo", "model_claim", at(2021))
    assert world.texts() == ["Ann lives in Berlin", "Ann lives in Oslo"]
    claim(world, "Ann lives in Bonn", "Bonn", "model_claim", at(2022))
    assert world.texts() == ["Ann lives in Berlin", "Ann lives in Bonn"]
    world.fact("Ann", "lives_in", "Paris", start=at(2023))
    assert world.texts() == ["Ann lives in Paris"]
    world.check()


# -- ends inside a chain ------------------------------------------------------------------------


def test_closing_and_reopening_inside_a_chain(world: World) -> None:
    a = world.fact("Ann", "lives_in", "Berlin", start=at(2018))
    b = world.fact("Ann", "lives_in", "Paris", start=at(2022))
    world.do(correct.close, a.ref, at(2020))
    assert world.texts(as_of=at(2021)) == [] and world.texts() == ["Ann lives in Paris"]
    assert world.state(a.ref).replaced_by is None
    late = world.fact("Ann", "lives_in", "Rome", start=at(2019))
    assert world.texts(as_of=at(2019, 6)) == ["Ann lives in Rome"]
    world.undo()  # the close of Berlin is what counts again
    assert world.state(a.ref).valid_to == at(2020)
    assert refs.STATUSES[world.state(late.ref).status] == "rejected"
    world.do(correct.reopen, a.ref)
    assert world.state(a.ref).replaced_by == b.ref
    assert world.texts(as_of=at(2021)) == ["Ann lives in Berlin"]
    world.check()


def test_what_takes_a_facts_place_from_outside_outlasts_its_chain(world: World) -> None:
    fact = world.fact("host", "is", "alpha", start=at(2020))
    note = world.add("we gave up the host", said=at(2022))
    world.write(
        lambda tx: correct.supersede(tx, tx.reader.find(fact.ref.hex()), note.ref, at(2022))
    )
    world.fact("host", "is", "beta", start=at(2019))  # relinks the chain
    state = world.state(fact.ref)
    assert (state.valid_to, state.replaced_by) == (at(2022), note.ref)
    assert world.texts() == []
    world.check()


def test_forgetting_a_fact_links_its_neighbours(world: World) -> None:
    from remem.objects import forget

    a = world.fact("Ann", "lives_in", "Berlin", start=at(2018))
    b = world.fact("Ann", "lives_in", "Rome", start=at(2020))
    c = world.fact("Ann", "lives_in", "Paris", start=at(2022))
    world.write(lambda tx: forget.forget(tx, tx.part(SCOPE), b.ref))
    assert world.state(a.ref).replaced_by == c.ref
    assert world.texts(as_of=at(2021)) == ["Ann lives in Berlin"]
    world.check()


# -- aliases ------------------------------------------------------------------------------------


def alias(world: World, name: str, stands: str) -> str:
    return world.write(lambda tx: aliases.add(tx, tx.part(SCOPE), name, stands))


def test_an_alias_joins_chains_and_removing_it_parts_them(world: World) -> None:
    world.fact("Ann Lee", "lives_in", "Berlin", start=at(2020))
    world.fact("Annie", "lives_in", "Paris", start=at(2022))
    assert len(world.texts()) == 2
    assert alias(world, "annie", "Ann Lee") == "new"
    assert world.texts() == ["Annie lives in Paris"]
    assert alias(world, "Annie", "ann lee") == "known"
    world.check()
    world.write(lambda tx: aliases.remove(tx, tx.part(SCOPE), "ANNIE"))
    assert len(world.texts()) == 2
    world.check()
    with pytest.raises(NotFound):
        world.write(lambda tx: aliases.remove(tx, tx.part(SCOPE), "Annie"))


def test_an_alias_of_a_value_makes_it_known(world: World) -> None:
    world.fact("Ann", "works_at", "International Business Machines", start=at(2020))
    alias(world, "IBM", "International Business Machines")
    assert world.fact("Ann", "works_at", "IBM", start=at(2021)).status == "known"


def test_aliases_in_a_circle_empty_names_and_strangers_are_refused(world: World) -> None:
    world.fact("Ann", "lives_in", "Berlin")
    alias(world, "a", "b")
    alias(world, "b", "c")
    with pytest.raises(Refused):
        alias(world, "c", "a")
    with pytest.raises(Refused):
        alias(world, "x", "X")
    with pytest.raises(BadInput):
        alias(world, " ", "c")
    grant = Grant("agent", "local", "default", None)
    world.actor = Actor(grant, "mcp", SCOPE)
    with pytest.raises(ScopeRefused):
        alias(world, "d", "c")
    rows = world.read(lambda r, _: [row for *_, row in r.audit_rows()][-3:])
    assert [(row.action, row.outcome) for row in rows][-1] == ("alias", "not_owner")


# -- size ---------------------------------------------------------------------------------------


def test_a_long_chain_is_written_and_read_in_good_time(world: World) -> None:
    """Two thousand facts: what grows with the square would take minutes."""
    import time

    from remem.objects import statements

    def state(tx):  # type: ignore[no-untyped-def]
        held = chains.Held()
        for number in range(2000):
            fact = statements.Fact(
                triple=("it", "state", str(number)),
                text=f"it is {number}",
                starts=at(2000) + number,
            )
            done = statements.state(tx, SCOPE, fact, held=held)
        return done.ref

    began = time.perf_counter()
    last = world.write(state)
    world.fact("it", "state", "late", start=at(2000) - 5)
    world.do(correct.close, last, at(2001))
    assert time.perf_counter() - began < 10
    assert world.texts(as_of=at(2000) + 700) == ["it is 700"]
    assert world.texts(as_of=at(2000) - 1) == ["it state late"]
