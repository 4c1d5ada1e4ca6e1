"""Short notes: their end, repeats, promotion, what rests on them, undo, packs, verify."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import correct, encode, holds, lists, memories, refs, tiers
from remem.objects.admit import Admitted, admit
from remem.objects.errors import HeadMoved, Refused, ScopeRefused, UsageError
from remem.objects.fsck import verify
from remem.objects.model import Deriver, Incoming, Memory
from remem.objects.pack_import import import_pack
from remem.objects.pack_write import export
from remem.objects.scope import Actor, Grant
from tests.objects.world import DAY, GRANT, OWNER, SCOPE, World

AGENT = Actor(Grant("bot", "local", "default", None), "mcp", SCOPE)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def note(world: World, text: str, days: int = 8, **fields: object) -> Admitted:
    record = msgspec.convert({"text": text, **fields}, Incoming)
    return world.write(lambda tx: tiers.note(tx, record, days=days))


def claim(world: World, text: str, *cites: bytes, status: str = "provisional") -> bytes:
    """A memory that some deriver drew from observations."""
    memory = Memory(
        encode.ZERO_SALT, SCOPE, "fact", text, None, list(cites), None, Deriver("llm"), 500,
        None, None, None, [], "", [], {},
    )  # fmt: skip
    ref = world.write(
        lambda tx: memories.create(tx, tx.reader.parts[0], memory, status=status, valid_from=None)
    )
    assert ref is not None
    return ref


def expire(world: World, now: int | None = None) -> tiers.Expired:
    return world.write(lambda tx: tiers.expire(tx, now))


def ops(world: World, ref: bytes) -> list[tuple[str, str]]:
    return [(refs.OPS[e.op], e.reason) for e in world.log(ref)]


def status(world: World, ref: bytes) -> str:
    return refs.STATUSES[world.state(ref).status]


# -- the end ------------------------------------------------------------------------------------


def test_a_note_ends_after_its_term_without_anything_having_run(world: World) -> None:
    made = note(world, "the demo is on friday", days=3)
    kept = world.add("the office is on the third floor")
    state = world.state(made.ref)
    assert state.valid_to == state.created + 3 * DAY
    end = state.valid_to
    assert world.texts("o", now=end - 1) == [
        "the demo is on friday",
        "the office is on the third floor",
    ]
    assert world.texts("o", now=end) == ["the office is on the third floor"]
    assert world.texts("o", now=end, as_of=end - 1) == [
        "the demo is on friday",
        "the office is on the third floor",
    ]
    assert ("o", "the demo is on friday", "historical") in world.see(now=end, view="history")
    assert world.state(kept.ref).valid_to is None


def test_expiring_withholds_what_is_due_and_nothing_else(world: World) -> None:
    one, other = note(world, "one", days=1), note(world, "other", days=20)
    end = world.state(one.ref).valid_to
    assert end is not None
    assert expire(world, end - 1).notes == []
    done = expire(world, end)
    assert done.notes == [one.ref] and not done.memories and not done.kept
    assert ops(world, one.ref) == [("create", ""), ("expire", "short")]
    assert (status(world, one.ref), status(world, other.ref)) == ("expired", "verified")
    assert expire(world, end).notes == []  # once is enough
    seen = {"now": end + DAY, "view": "history"}
    assert world.texts("o", **seen) == ["other"]
    assert world.texts("o", include=frozenset(["expired"]), **seen) == ["one", "other"]
    assert world.texts("o", known_at=end - 1, **seen) == ["other"]  # no past belief brings it back
    world.check()


def test_expiring_goes_in_batches(world: World) -> None:
    for number in range(5):
        note(world, f"note {number}", days=1)
    far = world.state(note(world, "last", days=1).ref).valid_to
    first = world.write(lambda tx: tiers.expire(tx, far, most=4))
    assert (len(first.notes), first.left) == (4, 2)
    assert len(expire(world, far).notes) == 2


def test_a_held_note_is_left_alone(world: World) -> None:
    made = note(world, "evidence of the outage", days=1)
    found = world.found(made.ref)
    world.write(lambda tx: holds.hold(tx, found.part, made.ref))
    far = (world.state(made.ref).valid_to or 0) + DAY
    assert expire(world, far).notes == []
    world.write(lambda tx: holds.release(tx, found.part, made.ref))
    assert expire(world, far).notes == [made.ref]


def test_a_closed_or_replaced_note_is_history_and_does_not_expire(world: World) -> None:
    closed, replaced = note(world, "closed", days=1), note(world, "replaced", days=1)
    instead = world.add("instead")
    world.do(correct.close, closed.ref, world.state(closed.ref).created + 1)
    at = world.state(replaced.ref).created + 2
    world.do(correct.supersede, replaced.ref, instead.ref, at)
    far = world.state(replaced.ref).created + 9 * DAY
    assert expire(world, far).notes == []
    assert world.texts("o", now=far, view="history") == ["closed", "instead", "replaced"]


def test_reopening_a_closed_note_gives_it_its_own_end_again(world: World) -> None:
    made = note(world, "a note", days=2)
    end = world.state(made.ref).valid_to
    world.do(correct.close, made.ref, world.state(made.ref).created + 1)
    world.do(correct.reopen, made.ref)
    assert world.state(made.ref).valid_to == end
    plain = world.add("kept for good")
    world.do(correct.close, plain.ref, world.state(plain.ref).created + 1)
    world.do(correct.reopen, plain.ref)
    assert world.state(plain.ref).valid_to is None


def test_a_revised_note_keeps_its_end_and_expires(world: World) -> None:
    made = note(world, "the demo is on friday", days=2)
    end = world.state(made.ref).valid_to
    assert end is not None
    world.do(correct.revise, made.ref, "the demo is on monday")
    assert world.state(made.ref).valid_to == end
    assert world.texts("o", now=end - 1) == ["the demo is on monday"]
    assert expire(world, end).notes == [made.ref]
    world.check()


@pytest.mark.parametrize("days", [0, -1, tiers.MAX_DAYS + 1])
def test_a_term_that_is_none_is_refused(world: World, days: int) -> None:
    with pytest.raises(UsageError, match="lasts 1 to"):
        note(world, "never", days=days)
    assert note(world, "ever", days=tiers.MAX_DAYS).status == "new"


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(0, 45))
def test_what_expires_is_what_the_view_has_lost(
    tmp_path_factory: pytest.TempPathFactory, terms: list[int], day: int
) -> None:
    world = World(tmp_path_factory.mktemp("p") / "store")
    made = [note(world, f"note {n}", days=days) for n, days in enumerate(terms)]
    now = world.state(made[-1].ref).created + day * DAY
    seen = world.texts("o", now=now)
    gone = expire(world, now).notes
    assert len(seen) + len(gone) == len(terms)
    assert world.texts("o", now=now) == seen
    report = verify(world.store)
    assert report.ok


# -- said again ---------------------------------------------------------------------------------


def test_a_repeat_prolongs_a_note_when_that_is_worth_an_entry(world: World) -> None:
    made = note(world, "we use the blue cluster", days=1)
    assert note(world, "we use the blue cluster", days=1).status == "known"
    assert ops(world, made.ref) == [("create", "")]
    again = note(world, "we use the blue cluster", days=4)
    assert (again.status, again.ref) == ("known", made.ref)
    assert ops(world, made.ref) == [("create", ""), ("promote", "again")]
    state = world.state(made.ref)
    assert state.valid_to is not None and state.valid_to == state.changed + 4 * DAY
    shorter = note(world, "we use the blue cluster", days=1)
    assert shorter.status == "known" and world.state(made.ref) == state  # never cut short


def test_what_is_kept_for_good_is_not_kept_a_second_time(world: World) -> None:
    kept = world.add("we use the blue cluster")
    again = note(world, "we use the blue cluster")
    assert (again.status, again.ref) == ("known", kept.ref)
    assert world.state(kept.ref).valid_to is None
    assert note(world, "we use the red cluster").status == "new"


def test_a_note_that_ran_out_may_be_said_again(world: World) -> None:
    for expired in (False, True):
        text = f"on call this week, {expired}"
        first = note(world, text, days=1)
        end = world.state(first.ref).valid_to
        assert end is not None
        if expired:
            expire(world, end)
        later = _at(world, end + 1, lambda tx, t=text: tiers.note(tx, Incoming(text=t), days=1))
        assert later.status == "new" and later.ref != first.ref
        assert world.state(later.ref).valid_to == end + 1 + DAY


def test_a_source_id_of_a_note_that_ran_out_is_taken_again(world: World) -> None:
    fields = {"source_uri": "file:log", "source_id": "7"}
    first = note(world, "job 7 failed", days=1, **fields)
    assert note(world, "job 7 failed", days=1, **fields).status == "known"
    end = world.state(first.ref).valid_to
    assert end is not None
    record = msgspec.convert({"text": "job 7 failed", **fields}, Incoming)
    assert _at(world, end + 1, lambda tx: tiers.note(tx, record, days=1)).status == "new"


def _at(world: World, now: int, change):  # type: ignore[no-untyped-def]
    """Run a change as if the clock of the machine said so."""
    from remem.objects.tx import Tx

    def run(txn):  # type: ignore[no-untyped-def]
        tx = Tx(txn, OWNER, now)
        result = change(tx)
        tx.finish()
        return result

    return world.store.env().write(run)


# -- promotion ----------------------------------------------------------------------------------


def test_promotion_keeps_a_note_for_good_and_is_audited(world: World) -> None:
    made = note(world, "the root password is in the safe", days=1)
    end = world.state(made.ref).valid_to or 0
    assert world.do(tiers.promote, made.ref) is True
    assert world.state(made.ref).valid_to is None
    assert expire(world, end + DAY).notes == []
    assert world.texts("o", now=end + DAY) == ["the root password is in the safe"]
    assert world.do(tiers.promote, made.ref) is False
    rows = world.read(lambda r, p: [row.action for _, _, row in r.audit_rows()])
    assert rows == ["create", "promote"]


def test_undo_takes_a_promotion_back_and_brings_it_again(world: World) -> None:
    made = note(world, "a note", days=5)
    end = world.state(made.ref).valid_to
    world.do(tiers.promote, made.ref)
    world.undo()
    assert world.state(made.ref).valid_to == end
    world.undo(world.last_seq())  # the undo itself
    assert world.state(made.ref).valid_to is None
    world.check()


def test_undo_of_something_else_leaves_the_end_of_a_note(world: World) -> None:
    made = note(world, "a note", days=5)
    end = world.state(made.ref).valid_to
    found = world.found(made.ref)
    world.write(lambda tx: holds.hold(tx, found.part, made.ref))
    world.undo()
    state = world.state(made.ref)
    assert (state.valid_to, state.flags) == (end, 0)
    assert [op for op, _ in ops(world, made.ref)] == ["create", "hold", "unhold"]
    world.do(correct.close, made.ref, state.created + 1)
    world.undo()
    assert world.state(made.ref).valid_to == end
    assert not world.state(made.ref).flags & refs.CLOSED


def test_an_expired_note_comes_back_by_the_owner_with_what_went_with_it(world: World) -> None:
    made = note(world, "maybe use queues", days=1)
    fact = claim(world, "queues may be used", made.id, status="pending")
    found = world.found(fact)
    state = world.state(fact)
    world.write(
        lambda tx: tx.record(found.part, "release", fact, state, status="model_claim", reason="")
    )
    end = world.state(made.ref).valid_to
    assert expire(world, end).memories == [fact]
    assert ops(world, fact)[-1] == ("expire", "follows")
    with pytest.raises(ScopeRefused):
        world.store.write(AGENT, lambda tx: tiers.promote(tx, world.found(made.ref)))
    assert status(world, made.ref) == "expired"
    assert world.do(tiers.promote, made.ref) is True
    assert (status(world, made.ref), status(world, fact)) == ("verified", "model_claim")
    world.check()


def test_undo_of_expiry_lets_both_back(world: World) -> None:
    made = note(world, "a note", days=1)
    end = world.state(made.ref).valid_to
    expire(world, end)
    world.undo()
    assert status(world, made.ref) == "verified" and world.state(made.ref).valid_to == end


def test_what_is_no_note_cannot_be_promoted(world: World) -> None:
    plain = world.add("kept anyway")
    with pytest.raises(Refused, match="no short note"):
        world.do(tiers.promote, plain.ref)
    fact = world.fact("it", "is", "so")
    with pytest.raises(Refused, match="no short note"):
        world.do(tiers.promote, fact.ref)
    closed = note(world, "closed")
    world.do(correct.close, closed.ref, world.state(closed.ref).created + 1)
    with pytest.raises(Refused, match="was closed"):
        world.do(tiers.promote, closed.ref)
    gone = note(world, "replaced")
    world.do(correct.supersede, gone.ref, plain.ref, world.state(gone.ref).created + 1)
    with pytest.raises(Refused, match="was replaced"):
        world.do(tiers.promote, gone.ref)


# -- what rests on a note -----------------------------------------------------------------------


def test_nothing_is_derived_from_a_note_until_it_is_promoted(world: World) -> None:
    world.add("I live in Turin.", role="user")
    made = note(world, "I live in Rome.", role="user")
    world.derive()
    assert any("Turin" in text for text in world.texts())
    assert all("Rome" not in text for text in world.texts())
    world.do(tiers.promote, made.ref)
    world.derive()
    assert any("Rome" in text for text in world.texts())


def test_stating_a_fact_on_a_note_promotes_it(world: World) -> None:
    made = note(world, "the port moved to 9443", days=1)
    world.fact("api", "port", "9443", cited=made.id)
    assert ops(world, made.ref)[-1] == ("promote", "cited")
    assert world.state(made.ref).valid_to is None
    world.check()


def test_a_withheld_memory_keeps_no_note(world: World) -> None:
    made = note(world, "the port moved to 9443", days=1)
    fact = claim(world, "the port is 9443", made.id, status="pending")
    end = world.state(made.ref).valid_to
    assert end is not None
    done = expire(world, end)
    assert (done.notes, done.memories, status(world, fact)) == ([made.ref], [], "pending")


def test_a_memory_with_other_evidence_outlives_the_note(world: World) -> None:
    made = note(world, "probably the disk", days=1)
    other = world.add("the disk was full")
    both = claim(world, "the disk was the cause", made.id, other.id, status="pending")
    alone = claim(world, "the disk is suspected", made.id, status="pending")
    part = world.found(both).part
    for ref in (both, alone):
        state = world.state(ref)
        world.write(
            lambda tx, r=ref, s=state: tx.record(part, "release", r, s, status="model_claim")
        )
    end = world.state(made.ref).valid_to
    done = expire(world, end)
    assert (done.notes, done.memories) == ([made.ref], [alone])
    assert (status(world, both), status(world, alone)) == ("model_claim", "expired")


def test_an_approved_memory_keeps_the_note_that_it_rests_on(world: World) -> None:
    made = note(world, "probably the disk", days=1)
    fact = claim(world, "the disk is suspected", made.id, status="pending")
    found, state = world.found(fact), world.state(fact)
    world.write(lambda tx: tx.record(found.part, "approve", fact, state, status="verified"))
    done = expire(world, world.state(made.ref).valid_to)
    assert (done.notes, done.kept) == ([], [made.ref])
    assert world.state(made.ref).valid_to is None


# -- noise --------------------------------------------------------------------------------------


def test_noise_goes_before_its_time_and_undo_brings_it_back(world: World) -> None:
    made, plain = note(world, "lunch was fine"), world.add("so was dinner")
    for ref in (made.ref, plain.ref):
        world.do(tiers.noise, ref)
        assert ops(world, ref)[-1] == ("expire", "noise")
        assert status(world, ref) == "expired"
    world.undo()
    assert status(world, plain.ref) == "verified"


def test_noise_leaves_alone_what_is_verified_marked_or_needed(world: World) -> None:
    fact = world.fact("api", "port", "9443")
    with pytest.raises(Refused, match="verified memory"):
        world.do(tiers.noise, fact.ref)
    told = world.read(lambda r, p: r.object(p, fact.id)).cites[0]  # type: ignore[union-attr]
    with pytest.raises(Refused, match="rests on"):
        world.do(tiers.noise, told)
    held = world.add("held")
    part = world.found(held.ref).part
    world.write(lambda tx: holds.hold(tx, part, held.ref))
    with pytest.raises(Refused, match="held"):
        world.do(tiers.noise, held.ref)
    claimed = claim(world, "some claim", world.add("some evidence").id)
    assert world.do(tiers.noise, claimed).notes == [claimed]


# -- packs and the list -------------------------------------------------------------------------


def test_a_pack_keeps_the_end_of_a_note_and_its_promotion(world: World, tmp_path: Path) -> None:
    made, kept = note(world, "ends", days=2), note(world, "stays", days=2)
    world.do(tiers.promote, kept.ref)
    end = world.state(made.ref).valid_to
    pack = io.BytesIO()
    export(world.store, GRANT, pack)
    there = World(tmp_path / "there")
    pack.seek(0)
    import_pack(there.store, OWNER, pack, trust=True)
    assert there.state(made.ref).valid_to == end
    assert there.state(kept.ref).valid_to is None
    assert expire(there, end).notes == [made.ref]
    there.check()


def test_verify_names_rows_of_lists_that_do_not_match(world: World) -> None:
    made = note(world, "a note")
    part = world.found(made.ref).part
    key = part.prefix + lists.SHORT + made.id
    env = world.store.env()
    env.write(lambda txn: txn.delete("lists", key))
    report = verify(world.store)
    assert [p.where for p in report.problems] == [f"list s {made.id.hex()}"]
    wrong = part.prefix + lists.LOOP + made.id
    env.write(lambda txn: (txn.put("lists", key, b""), txn.put("lists", wrong, b"")))
    assert [p.where for p in verify(world.store).problems] == [f"list l {made.id.hex()}"]
    env.write(lambda txn: txn.delete("lists", wrong))
    assert verify(world.store).ok


def test_a_stale_state_is_not_promoted(world: World) -> None:
    made = note(world, "a note")
    found = world.found(made.ref)
    world.do(tiers.promote, made.ref)
    with pytest.raises(HeadMoved):
        world.write(
            lambda tx: tx.record(found.part, "promote", made.ref, found.state, valid_to=None)
        )


def test_counts(world: World) -> None:
    ends = [world.state(note(world, f"n{d}", days=d).ref).valid_to or 0 for d in (5, 2, 9)]
    world.add("kept")
    at = min(ends)
    found = world.read(lambda r, p: tiers.notes(r, p, at - 1))
    assert (found.count, found.next) == (3, at)
    found = world.read(lambda r, p: tiers.notes(r, p, at))
    assert (found.count, found.next) == (2, ends[0])


def test_the_plain_way_in_knows_no_tier_by_itself(world: World) -> None:
    """A tier among the fields of an import is a field like any other: it ends nothing."""
    made = world.write(lambda tx: admit(tx, Incoming(text="x", meta={"tier": "short"})))
    assert world.state(made.ref).valid_to is None
    assert expire(world, 1 << 60).notes == []
    assert world.texts("o", now=1 << 60) == ["x"]
