"""Deriving: queued with the evidence, leased, tried again, given up; the same twice is the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remem.objects import correct, forget, refs, tombs
from remem.objects.derive import engine, queue
from remem.objects.derive.claim import Claim
from remem.objects.model import Memory, Observation
from remem.objects.scope import Actor, Grant
from remem.objects.tx import Tx
from tests.objects.world import DAY, OWNER, SCOPE, World, at


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def lines(observation: Observation) -> list[Claim]:
    """A deriver of lines "subject: predicate = object", with "!" for what has ended."""
    found = []
    start = 0
    for line in observation.text.split("\n"):
        if line == "fail":
            raise ValueError("a fault of the deriver")
        name, colon, rest = line.partition(": ")
        predicate, sign, value = rest.partition(" = ")
        if colon and sign:
            ends = predicate.endswith("!")
            found.append(
                Claim("fact", line, name, predicate.rstrip("!"), value, start, start + len(line),
                      single=True, ends=ends)
            )  # fmt: skip
        start += len(line) + 1
    return found


def kind(
    derive: Callable[[Observation], list[Claim]] = lines, version: int = 1
) -> dict[str, engine.Kind]:
    return {"lines": engine.Kind("lines", version, derive, "provisional")}


def run(
    world: World, kinds: dict[str, engine.Kind] | None = None, **options: object
) -> engine.Derived:
    return engine.run(world.store, OWNER, ("lines",), kinds=kinds or kind(), **options)  # type: ignore[arg-type]


def jobs(world: World) -> list[tuple[bytes, str, queue.Job]]:
    return world.read(lambda r, p: list(queue.jobs(r, p)))


def waiting(world: World) -> int:
    return world.read(lambda r, p: queue.waiting(r, p, "lines"))


# -- the queue ----------------------------------------------------------------------------------


def test_evidence_is_queued_by_the_transaction_that_stores_it(world: World) -> None:
    assert world.add("a: is = 1").status == "new"
    assert waiting(world) == 1
    done = run(world)
    assert (done.observations, done.new, done.left) == (1, 1, 0)
    assert (waiting(world), jobs(world)) == (0, [])
    assert world.texts() == ["a: is = 1"]
    again = run(world)
    assert again == engine.Derived()
    world.check()


def test_a_derived_memory_says_who_made_it_and_from_what(world: World) -> None:
    told = world.add("so\na: is = 1", said=at(2020))
    run(world)
    (ref,) = world.read(lambda r, p: r.cited_by(p, told.id))
    made = world.head(ref)
    assert isinstance(made, Memory)
    assert (made.deriver.name, made.deriver.version) == ("lines", 1)
    assert made.span is not None and told and made.scope == SCOPE
    assert world.head(told.ref).text[made.span.start : made.span.end] == "a: is = 1"
    entry = world.log(ref)[0]
    assert (entry.principal, refs.STATUSES[entry.status]) == ("deriver", "provisional")
    assert (made.valid_from, world.state(ref).starts) == (at(2020), at(2020))


def test_more_than_a_reader_may_take_up_is_left(world: World) -> None:
    for number in range(5):
        world.add(f"a{number}: is = 1")
    assert run(world, most=4).left == 5 and world.texts() == []
    assert run(world, most=5).left == 0 and len(world.texts()) == 5


def test_a_run_stops_in_good_time_and_the_next_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BATCH", 2)
    for number in range(7):
        world.add(f"a{number}: is = 1")
    assert run(world, budget_s=0.0).left == 7
    slow = kind(lambda o: (time.sleep(0.02), lines(o))[1])
    part = run(world, slow, budget_s=0.03)
    assert 0 < part.new < 7 and part.left > 0
    said: list[tuple[str, int, int]] = []
    rest = run(world, progress=lambda *words: said.append(words))
    assert part.new + rest.new == 7 and rest.left == 0
    assert said and said[-1][0] == "deriving"


def test_a_fault_is_tried_again_later_and_given_up_at_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = world.add("a: is = 1\nfail")
    world.add("b: is = 2")
    clock = [time.time_ns()]
    monkeypatch.setattr(time, "time_ns", lambda: clock[0])
    done = run(world)
    assert (done.failed, world.texts()) == (1, ["b: is = 2"]), "the others are not held up"
    waits = []
    for attempt in range(1, queue.MAX_ATTEMPTS + 1):
        ((ref, name, job),) = jobs(world)
        assert (ref, name, job.attempts, job.error) == (bad.ref, "lines", attempt, "ValueError")
        assert job.dead is (attempt == queue.MAX_ATTEMPTS)
        now = clock[0] // 1000
        assert queue.state_of(job, now) == ("dead" if job.dead else "failed")
        waits.append(job.due - now)
        assert run(world).failed == 0, "not before it is due"
        clock[0] += max(job.due - now, 0) * 1000 + 1_000_000
        run(world)
    minutes = [round(wait / 60_000_000) for wait in waits[:-1]]
    assert minutes == [1, 2, 4, 8]
    clock[0] += 10**15
    assert run(world).failed == 0, "a dead letter stays where it is"
    world.write(lambda tx: queue.retry(tx, tx.part(SCOPE), bad.ref, "lines"))
    assert run(world, kind(lambda o: lines_of(o))).new == 1
    assert jobs(world) == [] and "a: is = 1" in world.texts()
    world.check()


def lines_of(observation: Observation) -> list[Claim]:
    import msgspec

    text = observation.text.replace("\nfail", "")
    return lines(msgspec.structs.replace(observation, text=text))


def test_a_revision_of_a_dead_letter_is_looked_at(world: World) -> None:
    bad = world.add("a: is = 1\nfail")
    for _ in range(queue.MAX_ATTEMPTS):
        world.write(lambda tx: (queue.retry(tx, tx.part(SCOPE), bad.ref, "lines"), None)[1])
        run(world)

    def bury(tx: Tx) -> None:
        for _ in range(queue.MAX_ATTEMPTS):
            queue.lease(tx, tx.part(SCOPE), bad.ref, "lines")
            queue.failed(tx, tx.part(SCOPE), bad.ref, "lines", ValueError())
            queue._put(tx, tx.part(SCOPE), bad.ref, "lines", _due(jobs_of(tx)))

    world.write(bury)
    world.do(correct.revise, bad.ref, "a: is = 1")
    assert run(world).new == 1 and jobs(world) == []


def jobs_of(tx: Tx) -> queue.Job:
    return next(job for *_, job in queue.jobs(tx.reader, tx.part(SCOPE)))


def _due(job: queue.Job) -> queue.Job:
    return queue.Job(job.attempts, 0, job.error, job.dead)


def test_a_lease_that_ran_out_is_taken_up_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process takes work up and dies; nobody else touches it until the lease is over."""
    told = world.add("a: is = 1")

    def die(_: Observation) -> list[Claim]:
        raise KeyboardInterrupt

    clock = [time.time_ns()]
    monkeypatch.setattr(time, "time_ns", lambda: clock[0])
    for attempt in range(1, queue.MAX_ATTEMPTS + 1):
        with pytest.raises(KeyboardInterrupt):
            run(world, kind(die))
        ((ref, _, job),) = jobs(world)
        assert (ref, job.attempts, job.error) == (told.ref, attempt, "")
        assert queue.state_of(job, clock[0] // 1000) == "leased"
        assert run(world) == engine.Derived(), "somebody else's work"
        clock[0] += 1000 * (queue.LEASE_US + 1)
        assert queue.state_of(job, clock[0] // 1000) == "due"
    assert run(world).new == 0
    ((_, _, job),) = jobs(world)
    assert (job.dead, job.error) == (True, queue.EXPIRED), "what kills its holder is given up"


def test_claims_that_cannot_be_applied_fail_alone(world: World) -> None:
    def wrong(observation: Observation) -> list[Claim]:
        found = lines(observation)
        if found[0].subject == "a":
            found = [Claim("rumour", "a", "a", "is", "1", 0, 1)]  # of no kind that there is
        return found

    world.add("b: is = 1")
    bad = world.add("a: is = 1")
    world.add("c: is = 1")
    done = run(world, kind(wrong))
    assert (done.new, done.failed) == (2, 1)
    assert [(ref, job.error) for ref, _, job in jobs(world)] == [(bad.ref, "BadInput")]
    world.check()


def test_what_is_revised_while_it_is_derived_waits_again(world: World) -> None:
    told = world.add("a: is = 1")
    revised: list[bytes] = []

    def revising(observation: Observation) -> list[Claim]:
        if not revised:
            revised.append(world.do(correct.revise, told.ref, "a: is = 2"))
        return lines(observation)

    run(world, kind(revising))
    run(world)
    assert world.texts() == ["a: is = 2"] and jobs(world) == []
    world.check()


# -- claims -------------------------------------------------------------------------------------


def test_deriving_again_changes_nothing_and_a_new_version_does_not_duplicate(world: World) -> None:
    for number in range(6):
        world.add(f"a{number % 3}: is = {number // 3}", said=at(2020) + number * DAY)
    first = run(world)
    seen = world.see(view="history")
    seq = world.last_seq()
    for version in (1, 2):
        engine.rebuild(world.store, OWNER, ("lines",))
        done = run(world, kind(version=version))
        assert (done.observations, done.new, done.withdrawn) == (6, 0, 0)
        assert world.see(view="history") == seen
        if version == 1:
            assert world.last_seq() == seq, "no entry says nothing"
    assert first.new == 6
    heads = [world.head(ref) for ref in _memories(world)]
    assert {head.deriver.version for head in heads if isinstance(head, Memory)} == {2}
    world.check()


def _memories(world: World) -> list[bytes]:
    return world.read(lambda r, p: [ref for ref, s in r.states(p) if s.type == refs.MEMORY])


def test_what_a_new_version_no_longer_says_is_withdrawn_and_may_come_back(world: World) -> None:
    world.add("a: is = 1\nb: is = 2")
    run(world)
    one = kind(lambda o: lines(o)[:1], version=2)
    engine.rebuild(world.store, OWNER, ("lines",))
    assert run(world, one).withdrawn == 1 and world.texts() == ["a: is = 1"]
    engine.rebuild(world.store, OWNER, ("lines",))
    run(world)
    assert world.texts() == ["a: is = 1", "b: is = 2"]
    assert len(_memories(world)) == 2
    world.check()


def test_the_verdict_of_a_person_stands(world: World) -> None:
    told = world.add("a: is = 1")
    run(world)
    (ref,) = world.read(lambda r, p: r.cited_by(p, told.id))

    def reject(tx: Tx) -> None:
        part = tx.part(SCOPE)
        state = tx.reader.state(part, ref)
        assert state is not None
        tx.record(part, "reject", ref, state, status="rejected", reason="wrong")

    world.write(reject)
    engine.rebuild(world.store, OWNER, ("lines",))
    run(world)
    assert world.texts() == []


def test_evidence_of_many_adds_up_and_a_repeat_is_no_row(world: World) -> None:
    for number in range(4):
        world.add("a: is = 1", said=at(2020) + number * DAY)
    done = run(world)
    assert (done.new, done.known) == (1, 3)
    (ref,) = _memories(world)
    assert len(world.head(ref).cites) == 4  # type: ignore[union-attr]


def test_old_evidence_does_not_drag_the_present_back(world: World) -> None:
    for number in range(10):
        world.add("Zoe: team = red", said=at(2026, 1) + number * DAY)
    run(world)
    world.add("Zoe: team = blue", said=at(2026, 3))
    run(world)
    assert world.texts() == ["Zoe: team = blue"]
    assert world.texts(as_of=at(2026, 2)) == ["Zoe: team = red"]
    engine.rebuild(world.store, OWNER, ("lines",))
    assert run(world).new == 0
    assert world.texts() == ["Zoe: team = blue"]
    assert {t for _, t, _ in world.see()} == {"Zoe: team = blue"}, "no evidence of red either"


def test_a_claim_of_an_end_puts_its_evidence_in_the_place_of_what_ended(world: World) -> None:
    world.add("a: is = 1", said=at(2020))
    ended = world.add("a: is! = 1", said=at(2022))
    world.add("a: is! = 7", said=at(2023))  # of another value: ends nothing
    run(world)
    assert world.texts() == [] and world.texts(as_of=at(2021)) == ["a: is = 1"]
    (ref,) = _memories(world)
    assert world.state(ref).replaced_by == ended.ref
    world.add("a: is = 2", said=at(2024))
    world.add("a: is! = ", said=at(2025))  # of whatever value
    run(world)
    assert world.texts() == [] and world.texts(as_of=at(2024, 6)) == ["a: is = 2"]
    world.check()


@settings(max_examples=25)
@given(order=st.permutations(range(5)))
def test_the_order_in_which_evidence_comes_in_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    world = World(tmp_path_factory.mktemp("order") / "store")
    values = ["red", "red", "blue", "red", "green"]
    for number in order:
        world.add(f"it: is = {values[number]}", said=at(2020) + number * DAY)
        run(world)
    found = [world.texts(as_of=at(2020) + number * DAY) for number in range(5)]
    assert found == [[f"it: is = {value}"] for value in values]
    world.store.close()


# -- what is not derived from -------------------------------------------------------------------


def test_withheld_replaced_and_closed_evidence_says_nothing(world: World) -> None:
    held = world.add("a: is = 1")
    old = world.add("b: is = 1")
    new = world.add("something else")
    world.do(correct.supersede, old.ref, new.ref, world.state(new.ref).created)
    closed = world.add("c: is = 1")
    world.do(correct.close, closed.ref, world.state(closed.ref).created + 1)

    def mark(op: str, status: str) -> None:
        def change(tx: Tx) -> None:
            part = tx.part(SCOPE)
            state = tx.reader.state(part, held.ref)
            assert state is not None
            tx.record(part, op, held.ref, state, status=status)

        world.write(change)

    mark("quarantine", "quarantined")
    assert run(world).new == 0
    mark("release", "verified")
    assert run(world).new == 1 and world.texts() == ["a: is = 1"]
    mark("quarantine", "quarantined")
    assert run(world).withdrawn == 1
    mark("release", "verified")
    run(world)
    assert world.texts() == ["a: is = 1"] and len(_memories(world)) == 1
    world.check()


def test_a_stated_sentence_is_not_read_again(world: World) -> None:
    world.fact("Ann", "lives_in", "Berlin", end=at(2020), start=at(2018), text="a: is = 1")
    assert run(world).new == 0
    assert world.texts() == []


def test_what_was_forgotten_is_not_derived_again(world: World) -> None:
    told = world.add("a: is = 1", said=at(2020))
    run(world)
    world.write(lambda tx: forget.forget(tx, tx.part(SCOPE), told.ref))
    world.add("so\na: is = 1")
    engine.rebuild(world.store, OWNER, ("lines",))
    assert run(world).new == 0 and world.texts() == []
    assert world.read(lambda r, p: len(list(tombs.all_of(r, p)))) == 2
    world.check()


def test_a_narrow_grant_does_not_skip_what_others_said(world: World) -> None:
    world.add("a: is = 1", session="s1")
    world.add("b: is = 1", session="s2")
    grant = Grant("owner", "local", "default", None, session="s1", owner=True)
    engine.run(world.store, Actor(grant, "cli", SCOPE), ("lines",), kinds=kind())
    assert world.texts() == ["a: is = 1", "b: is = 1"]


# -- times --------------------------------------------------------------------------------------


def named(text: str, asserted: int, offset: int | None) -> list[engine.Named]:
    """ "yesterday" and "since March 1st" as a reader of time words would find them."""
    found = []
    if "yesterday" in text:
        found.append(engine.Named(asserted - DAY, asserted, False))
    if "since" in text:
        found.append(engine.Named(at(2020, 3), at(9000), True))
    if "until" in text:
        found.append(engine.Named(0, at(2020, 4), True))
    if "tomorrow" in text:
        found.append(engine.Named(asserted + DAY, asserted + 2 * DAY, False))
    return found


@pytest.mark.parametrize(
    ("text", "starts", "ends"),
    [
        ("a: is = red", at(2021), None),
        ("a: is = red yesterday", at(2021) - DAY, None),
        ("a: is = red since", at(2020, 3), None),
        ("a: is = red until", None, at(2020, 4)),
        ("a: is = red tomorrow", at(2021), None),
        ("a: is = red yesterday since", at(2021), None),  # which of the two?
    ],
)
def test_time_words_count_from_when_it_was_said(
    world: World, text: str, starts: int | None, ends: int | None
) -> None:
    world.add(text, said=at(2021))
    run(world, resolve=named)
    (ref,) = _memories(world)
    state = world.state(ref)
    assert state.valid_to == ends
    if starts is not None:
        assert state.starts == starts
    world.check()


def test_words_of_a_statement_of_unknown_time_name_no_time(world: World) -> None:
    told = world.add("a: is = red yesterday")
    run(world, resolve=named)
    (ref,) = _memories(world)
    assert world.state(ref).starts == world.state(told.ref).created


def test_a_predicate_may_be_given_one_value_or_many(world: World) -> None:
    for number in range(2):
        world.add(f"a: knows = {number}", said=at(2020) + number * DAY)
    run(world, single=lambda collection, predicate, default: default and predicate != "knows")
    assert len(world.texts()) == 2


def test_many_texts_in_good_time(world: World) -> None:
    from remem.hooks.ingest import ingest
    from remem.objects.model import Incoming

    records = [Incoming(text=f"a{n % 50}: is = {n}", asserted=at(2020) + n) for n in range(3000)]
    ingest(world.store, OWNER, records)
    began = time.perf_counter()
    done = run(world)
    assert (done.new, done.left) == (3000, 0)
    assert time.perf_counter() - began < 15
    assert len(world.texts()) == 50
