"""Answers and the truth: successors, history, folding, conflicts, entities, the past."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remem.index import entities, project
from remem.index.past import about_past, within
from remem.index.recall import Answer, Question, Searcher
from remem.index.timewords import periods
from remem.objects import aliases, correct, instant
from remem.objects.views import Lens
from tests.objects.world import GRANT, SCOPE, World, at


class Asking(World):
    """A world that answers questions."""

    def ask(self, text: str, *, limit: int = 10, indexed: bool = True, **options: Any) -> Answer:
        if indexed:
            project.project(self.store)
        lens = Lens(instant.now(), **{k: options.pop(k) for k in list(options) if k in LENS})
        question = Question(text, lens, limit=limit, mode="lexical", **options)
        return Searcher(self.store, GRANT, None).ask(question)

    def found(self, text: str, **options: Any) -> list[tuple[str, str]]:  # type: ignore[override]
        return [(hit.obj.text, hit.truth) for hit in self.ask(text, **options).hits]


LENS = ("view", "as_of", "known_at", "include")


@pytest.fixture
def world(tmp_path: Path) -> Asking:
    return Asking(tmp_path / "store")


def replace(world: Asking, old: str, new: str) -> None:
    first = world.add(old)
    second = world.add(new)
    found = World.found(world, first.ref)
    world.write(lambda tx: correct.supersede(tx, found, second.ref, tx.now))


# -- successors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("indexed", [True, False])
def test_what_no_longer_holds_hands_its_place_on(world: Asking, indexed: bool) -> None:
    """The new statement shares no word with the question; the old one all of them."""
    replace(world, "The mascot of the team is an otter", "Since spring it has been Harry the crane")
    world.add("The team has a flag")
    found = world.found("what is the mascot of the team", indexed=indexed)
    assert found[0] == ("Since spring it has been Harry the crane", "current")
    assert all("otter" not in text for text, _ in found)


def test_a_revision_is_found_by_the_words_of_the_earlier_one(world: Asking) -> None:
    note = world.add("the mascot is an otter")
    ref = World.found(world, note.ref)
    world.write(lambda tx: correct.revise(tx, ref, "it has been Harry the crane"))
    assert world.found("mascot otter") == [("it has been Harry the crane", "current")]


def test_as_of_an_earlier_time_the_old_one_is_found_by_the_words_of_the_new(world: Asking) -> None:
    world.fact("team", "mascot", "otter", start=at(2020), text="an otter leads them", single=True)
    world.fact("team", "mascot", "crane", start=at(2022), text="Harry the crane it is", single=True)
    assert world.found("Harry crane", as_of=at(2021)) == [("an otter leads them", "current")]
    assert world.found("otter") == [("Harry the crane it is", "current")]


def test_in_history_the_old_stands_right_below_the_new(world: Asking) -> None:
    for city, year in (("Berlin", 2018), ("Rome", 2020), ("Paris", 2022)):
        world.fact("Ann", "lives_in", city, start=at(year))
    world.fact("Bo", "lives_in", "Berlin", start=at(2019))
    found = world.found("who lives in Berlin, Ann", view="history")
    ann = [text for text, _ in found if text.startswith("Ann")]
    assert ann == ["Ann lives in Paris", "Ann lives in Rome", "Ann lives in Berlin"]
    places = [n for n, (text, _) in enumerate(found) if text.startswith("Ann")]
    assert places == list(range(places[0], places[0] + 3))
    hits = world.ask("who lives in Berlin, Ann", view="history").hits
    assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
    top = world.ask("who lives in Berlin, Ann", view="history", limit=1).hits
    assert [h.truth for h in top] == ["current"], "cut to one, it is what holds"


def test_old_beside_new_in_changes(world: Asking) -> None:
    replace(world, "the port is 5432", "the port is 6543")
    world.add("the port of Genoa")
    found = world.found("port", view="changes")
    assert found == [("the port is 6543", "changed"), ("the port is 5432", "historical")]


def test_what_is_historical_names_what_took_its_place(world: Asking) -> None:
    note = world.add("the mascot is an otter")
    ref = World.found(world, note.ref)
    head = world.write(lambda tx: correct.revise(tx, ref, "the mascot is a crane"))
    told = world.add("I live in Berlin", said=at(2020))
    world.add("I live in Paris", said=at(2022))
    world.derive()
    closed = world.add("the mascot is a newt")
    found = World.found(world, closed.ref)
    world.write(lambda tx: correct.close(tx, found, tx.now))
    by = {h.id: h.state.replaced_by for h in world.ask("mascot otter newt", view="history").hits}
    assert (by[note.id], by[head], by[closed.id]) == (head, None, None)
    hits = world.ask("Berlin", view="history").hits
    assert {told.id} & {c.id for h in hits for c in h.cites}
    paris = [h.ref for h in hits if h.truth == "current"]
    assert {h.state.replaced_by for h in hits if h.truth == "historical"} == {paris[0]}


def test_half_of_it_no_longer_holds(world: Asking) -> None:
    world.add("I live in Berlin. Rex is fine and sends his love", said=at(2020))
    world.derive()
    world.add("I live in Paris", said=at(2022))
    world.derive()
    found = world.found("where do I live: Berlin, Rex")
    assert found[0] == ("user lives in Paris", "current"), "its successor comes first"
    assert found[1][1] == "historical"


# -- folding ------------------------------------------------------------------------------------


def test_evidence_folds_under_its_memory(world: Asking) -> None:
    world.add("I live in Berlin", said=at(2020))
    world.add("Berlin is cold", said=at(2020))
    world.derive()
    hits = world.ask("I live in Berlin").hits
    assert [h.obj.text for h in hits] == ["user lives in Berlin", "Berlin is cold"]
    assert [c.quote for c in hits[0].cites] == ["I live in Berlin"]


def test_evidence_that_says_more_keeps_its_place_above_a_memory(world: Asking) -> None:
    text = "My cousin Theo breeds angora rabbits on a farm. I live in Berlin."
    world.add(text, said=at(2020))
    world.derive()
    found = [t for t, _ in world.found("angora rabbits farm Berlin")]
    assert found[0] == text and "user lives in Berlin" in found
    hits = world.ask("does the user live in Berlin").hits
    assert hits[0].obj.text == "user lives in Berlin"
    assert text not in [h.obj.text for h in hits], "below the memory it is its citation"
    assert "Berlin" in hits[0].cites[0].quote


# -- conflicts ----------------------------------------------------------------------------------


def test_what_nothing_resolves_is_shown_on_both_sides(world: Asking) -> None:
    world.fact("Ann", "lives_in", "Berlin", start=at(2020))
    world.fact("Ann", "lives_in", "a caravan", start=at(2020), text="caravan")
    hits = world.ask("does Ann live in Berlin", limit=5).hits
    assert [h.obj.text for h in hits[:2]] == ["Ann lives in Berlin", "caravan"]
    assert hits[0].conflict == (hits[1].id,) and hits[1].conflict == (hits[0].id,)
    world.fact("Ann", "lives_in", "Rome", start=at(2021))
    assert all(not h.conflict for h in world.ask("where does Ann live").hits)


def test_a_conflict_across_kinds_of_chains(world: Asking) -> None:
    world.fact("Ann", "works_at", "Acme", start=at(2020), single=False)
    world.fact("Ann", "works_at", "Beta", start=at(2021), single=True)
    hits = world.ask("where does Ann work at Acme Beta").hits
    assert [bool(h.conflict) for h in hits] == [True, True]
    world.fact("Ann", "knows", "Bo", start=at(2020), single=False)
    world.fact("Ann", "knows", "Cy", start=at(2020), single=False)
    hits = world.ask("whom does Ann know: Bo, Cy").hits
    assert all(not h.conflict for h in hits if "know" in h.obj.text)


def test_at_most_two_conflicts_an_answer(world: Asking) -> None:
    for number in range(4):
        for value in ("on", "off"):
            world.fact(f"lamp {number}", "state", value, start=at(2020))
    hits = world.ask("lamp state on off", limit=20).hits
    assert sum(bool(h.conflict) for h in hits) == 4


# -- later first --------------------------------------------------------------------------------


def test_of_statements_alike_in_all_that_is_asked_the_later_comes_first(world: Asking) -> None:
    world.add("The staging API answers on port 8443", said=at(2026, 3))
    world.add("The staging API answers on port 9443 now", said=at(2026, 4))
    world.add("The production API answers on port 443", said=at(2026, 5))
    found = [t for t, _ in world.found("on which port answers the staging API")]
    assert found[:2] == [
        "The staging API answers on port 9443 now",
        "The staging API answers on port 8443",
    ]
    named = [t for t, _ in world.found("what answers on port 8443: the staging API")]
    assert named[0] == "The staging API answers on port 8443", "the question names which"


# -- entities -----------------------------------------------------------------------------------


def test_a_name_reaches_its_facts_and_one_step_further(world: Asking) -> None:
    world.fact("Ann Lee", "employer", "Acme", start=at(2020))
    world.fact("Acme", "seat", "Turin", start=at(2020))
    world.fact("Turin", "river", "Po", start=at(2020))
    world.fact("Zed", "seat", "Oslo", start=at(2020))
    found = [t for t, _ in world.found("tell me of Annie")]
    assert found == []
    world.write(lambda tx: aliases.add(tx, tx.part(SCOPE), "Annie", "ann lee"))
    found = [t for t, _ in world.found("tell me of Annie")]
    assert found == ["Ann Lee employer Acme", "Acme seat Turin"]
    parts = world.ask("Ann Lee's friends", why=True).hits[0].why
    assert parts is not None and parts["entity"] > 0


def test_links_lead_through_what_holds_only(world: Asking) -> None:
    world.fact("Ann", "employer", "Acme", start=at(2018))
    world.fact("Acme", "seat", "Turin", start=at(2018))
    assert "Acme seat Turin" in [t for t, _ in world.found("Ann")]
    world.fact("Ann", "employer", "Beta", start=at(2020))
    assert "Acme seat Turin" not in [t for t, _ in world.found("Ann")]


def test_all_that_is_held_about_a_name(world: Asking) -> None:
    world.fact("Ann", "lives_in", "Berlin", start=at(2018))
    world.fact("Ann", "lives_in", "Paris", start=at(2022))
    world.fact("Bo", "knows", "ANN", start=at(2020), single=False)
    world.fact("Bo", "lives_in", "Rome", start=at(2020))
    world.fact("Zed", "lives_in", "Oslo", start=at(2020))

    def listing(name: str, view: str = "history", *, indexed: bool) -> entities.Listing:
        if indexed:
            project.project(world.store)
        question = Question(name, Lens(instant.now(), view))
        env = project.open_lexical(world.store, write=False)
        with world.store.read(GRANT) as reader:
            if env is None:
                return entities.listing(None, reader, reader.parts[0], question, name)
            with env.read(buffers=True) as txn:
                return entities.listing(txn, reader, reader.parts[0], question, name)

    for indexed in (False, True):
        found = listing("ann", indexed=indexed)
        assert [(h.obj.text, h.truth) for h in found.facts] == [
            ("Ann lives in Paris", "current"),
            ("Bo knows ANN", "current"),
            ("Ann lives in Berlin", "historical"),
        ]
        linked = {name: [h.obj.text for h in hits] for name, hits in found.linked.items()}
        assert linked == {"bo": ["Bo lives in Rome"]}
        assert len(listing("Ann", "now", indexed=indexed).facts) == 2
        assert listing("nobody", indexed=indexed).facts == []
    world.fact("Ann", "likes", "tea", start=at(2023), single=False)  # not projected yet
    assert "Ann likes tea" in [h.obj.text for h in listing("ann", indexed=False).facts]


# -- questions about the past -------------------------------------------------------------------

NOW = at(2026, 11, 30)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("where did Ann live before?", "before"),
        ("where did I use to live", "use to"),
        ("Where did Ann live in 2023?", "in 2023"),
        ("who was our lead in March 2024", "in March 2024"),
        ("which host did we use last year", "last year"),
        ("where does Ann live", None),
        ("what did Ann do in 2023?", None),
        ("where was Ann born", None),
        ("which port was used since 2020", None),
        ("who will be our lead in 2030", None),
        ("in 2023 tokens, which model was best", None),
    ],
)
def test_which_questions_are_about_the_past(question: str, words: str | None) -> None:
    assert about_past(question, Lens(NOW)) == words


def test_a_question_with_times_or_a_view_of_its_own_is_left_to_them() -> None:
    for lens in (Lens(NOW, "changes"), Lens(NOW, as_of=at(2020)), Lens(NOW, known_at=at(2020))):
        assert about_past("where did I live before", lens) is None


def test_the_view_switches_by_itself_and_says_so(world: Asking) -> None:
    world.fact("Ann", "lives_in", "Berlin", start=at(2018))
    world.fact("Ann", "lives_in", "Paris", start=at(2022))
    answer = world.ask("where did Ann live before", auto=True)
    assert (answer.view, answer.view_reason) == ("history", "before")
    assert [h.truth for h in answer.hits] == ["current", "historical"]
    pinned = world.ask("where did Ann live before", auto=False)
    assert (pinned.view, pinned.view_reason) == ("now", None)
    assert [h.obj.text for h in pinned.hits] == ["Ann lives in Paris"]


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ("what happened in May 2023", True),
        ("what happened between 2021 and 2022", True),
        ("what happened on 2023-05-01", True),
        ("news since 2021", False),
        ("May 2023 results", False),
    ],
)
def test_which_periods_are_looked_in(text: str, strict: bool) -> None:
    (found,) = periods(text, now=NOW)
    assert within(text, found.span) is strict


def test_a_period_that_is_named_filters_where_it_holds_something(world: Asking) -> None:
    world.add("We met at the lake house", said=at(2023, 5, 3))
    world.add("We met at the lake house again", said=at(2024, 5, 3))
    world.add("We met at the pier last month", said=at(2023, 6, 3))
    found = [t for t, _ in world.found("the place where we met in May 2023")]
    assert set(found) == {"We met at the lake house", "We met at the pier last month"}
    assert len(world.found("the place where we met in May 2022")) == 3, "else it boosts"
    assert len(world.found("the place where we met, May 2023")) == 3


def test_what_held_within_a_period_is_in_it(world: Asking) -> None:
    for city, year in (("Berlin", 2018), ("Rome", 2020), ("Paris", 2024)):
        world.fact("Ann", "lives_in", city, start=at(year))
    answer = world.ask("where did Ann live in 2022?", auto=True)
    assert [(h.obj.text, h.truth) for h in answer.hits] == [("Ann lives in Rome", "historical")]


def test_what_names_the_period_by_the_same_words_speaks_of_it(world: Asking) -> None:
    """A year that stands before a noun is no date to the reader of times, but it is one."""
    world.add("Ann gave a talk at a conference in 2023")
    world.add("The 2023 conference gave Ann a prize for her talk")
    world.add("Ann gave a talk at the 2024 conference")
    world.add("Ann gave a talk at a conference")
    found = world.found("which talk did Ann give at a conference in 2023?")
    assert {text for text, _ in found} == {
        "Ann gave a talk at a conference in 2023",
        "The 2023 conference gave Ann a prize for her talk",
    }
    everything = world.found("which talk did Ann give at a conference?")
    assert len(everything) == 4
