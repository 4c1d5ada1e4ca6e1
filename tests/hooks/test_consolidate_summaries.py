"""Summaries: extracts much shorter than their episode, stale when a source has changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.cli.hits import hit_lines
from remem.hooks import shaping
from remem.hooks.sleep import sameness
from remem.hooks.sleep.extract import Turn, extract
from remem.index import context
from remem.index.recall import Question
from remem.objects import correct, drafts, forget, instant, summaries
from remem.objects.model import Memory
from remem.objects.tx import Tx
from remem.objects.views import Eye, Lens
from tests.hooks.sleeper import DAY, TALK, Sleeper, at, pause

SUMMARY = ("summary",)


@pytest.fixture
def world(tmp_path: Path) -> Sleeper:
    return Sleeper(tmp_path / "store")


def summed(world: Sleeper) -> tuple[list[bytes], bytes]:
    """A conversation and its approved summary."""
    turns = world.talk()
    assert world.sleep().counts["summaries"] == 1
    return turns, world.approve()


def quoted(world: Sleeper, turns: list[bytes], summary: bytes) -> bytes:
    """A turn of which the summary has the words."""
    text = world.head(summary).text
    for ref in turns:
        if any(sentence in text for sentence in world.head(ref).text.split(". ")):
            return ref
    raise AssertionError("the summary quotes no turn")


# -- what is summed up --------------------------------------------------------------------------


def test_a_summary_is_short_anchored_and_dated(world: Sleeper) -> None:
    turns = world.talk(start=at(2026, 3, 1) + 23 * DAY // 24 + 55 * 60_000_000)  # over midnight
    slept = world.sleep()
    assert slept.counts == {"summaries": 1}
    ((_, op),) = world.operations()
    assert op.action == "summary" and op.by == "consolidation" and op.proposed is not None
    memory = world.head(op.proposed)
    assert isinstance(memory, Memory) and memory.kind == "summary"
    covered = [world.head(ref).text for ref in turns]
    assert set(memory.cites) == set(turns)
    assert len(memory.text) <= 0.6 * sum(map(len, covered))
    assert "2026-03-01" in memory.text and "2026-03-02" in memory.text
    assert memory.valid_from == at(2026, 3, 1) + 23 * DAY // 24 + 55 * 60_000_000
    words = [line.partition(": ")[2] for line in memory.text.splitlines()[2:] if ": " in line]
    assert words and all(any(word.split(". ")[0] in text for text in covered) for word in words)
    assert world.status(op.proposed) == "pending"
    assert not world.ask(
        "sensors of pier four", kinds=SUMMARY
    ).hits  # nothing is shown before it is approved
    world.approve()
    assert world.ask("sensors of pier four", kinds=SUMMARY).hits
    assert world.sleep().counts == {} and len(world.operations()) == 1
    world.check()


def test_what_is_too_little_or_no_conversation_is_not_summed_up(world: Sleeper) -> None:
    world.talk(session="few", turns=4)
    for number in range(30):
        world.add(f"make test-{number} " + "x" * 60, at(2026, 1, 1) + number, kind="command",
                  role="user", session="shell")  # fmt: skip
        world.add(f"a note about thing {number} " + "y" * 60, at(2026, 1, 1) + number)
    assert "summaries" not in world.sleep().counts


def test_a_pause_makes_another_episode_and_what_goes_on_is_left(world: Sleeper) -> None:
    world.talk(start=at(2026, 3, 1))
    world.talk(start=at(2026, 3, 2))
    assert world.sleep().counts == {"summaries": 2}
    world.talk(session="live", start=instant.now() - 20 * 60_000_000)
    world.means = type(world.means)(
        **{f: getattr(world.means, f) for f in world.means.__struct_fields__}
        | {"quiet_us": DAY // 24}
    )
    assert world.sleep().counts == {}
    world.means = type(world.means)(world.means.intake)
    assert world.sleep().counts == {"summaries": 1}


def test_a_denied_summary_is_not_proposed_again(world: Sleeper) -> None:
    world.talk()
    world.sleep()
    ref, _ = world.operations()[0]
    world.write(lambda tx: drafts.deny(tx, tx.reader.parts[0], ref, critique="too dry"))
    assert world.sleep().counts == {}
    assert len(world.operations()) == 1


def test_replaced_and_withheld_turns_stay_out_of_a_summary(world: Sleeper) -> None:
    turns = world.talk()
    bad = world.add(
        "The mooring of pier four was replaced by Orlando in the spring of 2019, they say.",
        at(2026, 3, 1) + 5_000_000, role="user", speaker="Mira", session="talk",
    ).ref  # fmt: skip
    new = world.add("It was never replaced.", at(2026, 3, 1) + 6_000_000, session="x").ref
    found = world.found(bad)
    world.write(lambda tx: correct.supersede(tx, found, new, tx.now))

    def set_apart(tx: Tx) -> None:
        part = tx.reader.parts[0]
        state = tx.reader.state(part, turns[0])
        assert state is not None
        tx.record(part, "quarantine", turns[0], state, status="quarantined", reason="instruction")

    world.write(set_apart)
    assert world.sleep().counts["summaries"] == 1
    (text,) = world.claims()
    assert "Orlando" not in text and "kestrel" not in text and "harbour" in text


def test_an_episode_that_grew_is_summed_up_anew(world: Sleeper) -> None:
    _, summary = summed(world)
    world.talk(start=at(2026, 3, 1) + 20 * 60_000_000)  # the same words at another time: ten more
    assert world.sleep().counts.get("renewed") == 1
    renewed = world.approve(1)
    assert world.replaced_by(summary) == renewed


# -- stale --------------------------------------------------------------------------------------


def test_a_revised_source_makes_it_stale_and_its_value_is_told(world: Sleeper) -> None:
    turns, summary = summed(world)
    source = quoted(world, turns, summary)
    hit = world.ask("sensors of pier four", kinds=SUMMARY).hits[0]
    assert hit.stale is None and shaping.hit(hit).stale is None  # control
    before = instant.now()
    pause()
    world.do(correct.revise, source, "The heron project starts in June with 99000 euros.")
    hit = world.ask("sensors of pier four", kinds=SUMMARY).hits[0]
    assert hit.ref == summary and hit.stale is not None
    assert hit.stale.reason == "revised"
    assert hit.stale.current == "The heron project starts in June with 99000 euros."
    told = shaping.hit(hit).stale
    assert told is not None
    assert (told.reason, told.current_value) == ("revised", hit.stale.current)
    shown = "\n".join(hit_lines(hit, Question("x", Lens(0)), full=False))
    assert "[STALE]" in shown and "heron" in shown
    assert "[STALE" in context.build([hit], standing=None, budget=10_000).text
    past = world.ask("sensors of pier four", kinds=SUMMARY, known_at=before).hits[0]
    assert past.stale is None  # then it was right


@pytest.mark.parametrize("how", ["superseded", "closed"])
def test_a_source_that_ended_makes_it_stale(world: Sleeper, how: str) -> None:
    turns, summary = summed(world)
    source = world.found(quoted(world, turns, summary))
    if how == "closed":
        world.write(lambda tx: correct.close(tx, source, tx.now))
    else:
        new = world.add("Everything was called off.", session="later").ref
        world.write(lambda tx: correct.supersede(tx, source, new, tx.now))
    hit = world.ask("sensors of pier four", kinds=SUMMARY).hits[0]
    assert hit.stale is not None and hit.stale.reason == how
    assert hit.stale.current == ("Everything was called off." if how == "superseded" else "")


def test_a_fact_that_was_replaced_makes_the_summary_of_its_source_stale(world: Sleeper) -> None:
    summed(world)
    said = world.add("I live in Turin.", at(2026, 3, 5), session="t", speaker="Mira", role="user")
    for number, (who, text) in enumerate(TALK):
        world.add(text, at(2026, 3, 5) + (number + 1) * 60_000_000, session="t", speaker=who,
                  role="user")  # fmt: skip
    world.sleep()
    summary = world.approve(1)
    memory = world.head(summary)
    assert isinstance(memory, Memory) and said.id in memory.cites
    assert _stale(world, summary) is None
    world.add("I live in Rome now.", at(2026, 4, 5), session="u", speaker="Mira", role="user")
    world.sleep()
    found = _stale(world, summary)
    assert found is not None and "Rome" in found.current


def _stale(world: Sleeper, ref: bytes) -> summaries.Stale | None:
    state, memory = world.state(ref), world.head(ref)
    assert isinstance(memory, Memory)
    with world.store.read(world.actor.grant) as reader:
        return summaries.stale(Eye(Lens(instant.now()), reader), reader.parts[0], state, memory)


def test_a_stale_summary_is_made_anew_from_what_holds(world: Sleeper) -> None:
    turns, summary = summed(world)
    source = quoted(world, turns, summary)
    old = world.head(source).text
    assert old in world.head(summary).text  # control
    world.do(correct.revise, source, "The heron project starts in June with 99000 euros.")
    assert world.sleep().counts["renewed"] == 1
    assert world.sleep().counts == {}
    ((_, op),) = world.operations()[1:]
    assert op.target == summary and op.proposed is not None
    assert old not in world.head(op.proposed).text
    world.approve(1)
    assert world.replaced_by(summary) == op.proposed
    assert _stale(world, op.proposed) is None
    assert world.sleep().counts == {}
    assert all(old not in text for text in world.answers(old))
    world.check()


def test_a_forgotten_source_takes_the_summary_that_has_its_words(world: Sleeper) -> None:
    turns, summary = summed(world)
    source = world.found(quoted(world, turns, summary))
    word = next(w for w in ("41000", "Bergen", "mooring", "harbour", "kestrel")
                if w in world.head(source.ref).text and w in world.head(summary).text)  # fmt: skip
    world.write(lambda tx: forget.forget(tx, source.part, source.ref))
    assert world.status(summary) == "erased"
    assert world.read(lambda reader, part: reader.txn.count("jobs")) == 0  # nothing waits for it
    counts = world.sleep().counts
    assert counts["purged"] >= 2
    assert counts.get("summaries", 0) + counts.get("renewed", 0) <= 1
    everything = b"".join(p.read_bytes() for p in world.folder.rglob("*") if p.is_file())
    assert word.encode() not in everything or word in " ".join(t for _, t in TALK).replace(
        world_text(world, turns), ""
    )
    assert world.sleep().counts == {}
    world.check()


def world_text(world: Sleeper, turns: list[bytes]) -> str:
    """What is left of the conversation."""
    left = [ref for ref in turns if world.status(ref) != "erased"]
    return " ".join(world.head(ref).text for ref in left)


def test_a_source_that_is_held_back_takes_the_summary_out_of_sight(world: Sleeper) -> None:
    turns, summary = summed(world)
    source = quoted(world, turns, summary)
    assert world.ask("sensors of pier four", kinds=SUMMARY).hits  # control

    def set_apart(tx: Tx) -> None:
        part = tx.reader.parts[0]
        state = tx.reader.state(part, source)
        assert state is not None
        tx.record(part, "quarantine", source, state, status="quarantined", reason="instruction")

    world.write(set_apart)
    assert not world.ask("sensors of pier four", kinds=SUMMARY).hits
    assert summary not in {hit.ref for hit in world.ask("harbour").hits}


def test_a_summary_hides_none_of_its_turns(world: Sleeper) -> None:
    summed(world)
    kinds = {hit.obj.kind for hit in world.ask("sensors of pier four", limit=10).hits}
    assert "summary" in kinds and "" in kinds


def test_a_summary_does_not_keep_evidence_in_sight_whose_claim_was_replaced(world: Sleeper) -> None:
    world.talk()
    said = world.add("I live in Turin.", at(2026, 3, 1) + 1, session="talk", speaker="Mira",
                     role="user")  # fmt: skip
    world.sleep()
    summary = world.approve()
    memory = world.head(summary)
    assert isinstance(memory, Memory) and said.id in memory.cites
    assert "I live in Turin." in world.texts("o")  # control
    world.add("I live in Rome now.", at(2026, 4, 5), session="u", speaker="Mira", role="user")
    world.sleep()
    assert "I live in Turin." not in world.texts("o")


# -- extracts and sameness ----------------------------------------------------------------------

WORDS = st.sampled_from("amber birch cedar delta ember fjord grove haven inlet juniper".split())
SETS = st.frozensets(st.sampled_from([b"%d" % n for n in range(14)]), min_size=1, max_size=12)


@given(
    st.lists(st.tuples(st.sampled_from(["Ann", "Bo", ""]), st.lists(WORDS, min_size=1)), min_size=1)
)
def test_an_extract_keeps_its_bound_and_the_words(said: list[tuple[str, list[str]]]) -> None:
    turns = [Turn("2026-01-01", who, " ".join(words) + ".") for who, words in said]
    text = extract(turns, "Head:", skip=lambda sentence: False)
    if not text:
        return
    assert len(text) <= 0.5 * sum(len(turn.text) for turn in turns)
    for line in text.splitlines()[2:]:
        body = line.partition(": ")[2] or line
        assert any(
            part.rstrip(".") in turn.text for turn in turns for part in [body.split(". ")[0]]
        )


@given(st.lists(SETS, max_size=12), SETS, st.sampled_from([0.5, 0.75, 0.9]))
def test_the_shelf_finds_all_that_is_alike(
    sets: list[frozenset[bytes]], one: frozenset[bytes], least: float
) -> None:
    shelf = sameness.Shelf(enumerate(sets), least)
    wanted = {
        number
        for number, other in enumerate(sets)
        if (one <= other or other <= one) and len(one & other) / len(one | other) >= least
    }
    assert {number for number, _ in shelf.like(one)} == wanted


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("the door is locked at nine", "The door is locked at nine", False),
        ("the door is locked at 9", "the door is locked at 10", True),
        ("the door is opened by Kim", "the door is opened by Lee", True),
        ("the door is locked", "the door is not locked", True),
        ("the door isn't locked", "the door is locked", True),
        ("the heating is on", "the heating is off", True),
        ("the party is on monday evening", "the party is monday evening", False),
    ],
)
def test_numbers_names_and_negations_contradict(one: str, other: str, differ: bool) -> None:
    assert sameness.contradict(one, other) is differ


def test_a_summary_that_waits_and_no_longer_fits_is_not_approved(world: Sleeper) -> None:
    turns = world.talk()
    world.sleep()
    ref, op = world.operations()[0]
    assert op.proposed is not None
    world.do(correct.revise, quoted(world, turns, op.proposed), "It was called off.")
    (decided,) = world.write(lambda tx: drafts.approve(tx, tx.reader.parts[0], ref))
    assert decided.verdict == drafts.STALE and "revised" in decided.why
    assert not world.ask("sensors of pier four", kinds=SUMMARY).hits
    assert world.sleep().counts.get("summaries") == 1  # made anew of what holds
    world.approve(1)
    assert world.ask("sensors of pier four", kinds=SUMMARY).hits
