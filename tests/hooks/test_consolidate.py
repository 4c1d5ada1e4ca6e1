"""One sleep: what is retired, attached, proposed; that a second one changes nothing; dry runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remem.hooks import consolidate, git_hook
from remem.hooks.consolidate import BUSY, DONE, PARTIAL
from remem.hooks.sources._git import GitMissing
from remem.objects import briefs, correct, drafts, forget, loops, memories, retention, runs, tiers
from remem.objects.admit import admit
from remem.objects.drafts import Proposal
from remem.objects.encode import ZERO_SALT
from remem.objects.lock import hold
from remem.objects.model import Deriver, Incoming, Memory
from remem.objects.tx import Tx
from tests.hooks.sleeper import DAY, Sleeper, at
from tests.objects.world import SCOPE


@pytest.fixture
def world(tmp_path: Path) -> Sleeper:
    return Sleeper(tmp_path / "store")


def remember(world: Sleeper, text: str, cited: bytes, **fields: Any) -> bytes:
    """A memory that was approved: shown, verified, without a triple."""
    memory = Memory(
        ZERO_SALT, SCOPE, fields.pop("kind", "fact"), text, None, [cited], None,
        Deriver("somebody"), 900, fields.get("valid_from"), None, None, [], "", [],
        fields.pop("meta", {}),
    )  # fmt: skip

    def change(tx: Tx) -> bytes:
        ref = memories.create(
            tx, tx.reader.parts[0], memory, status=fields.get("status", "verified"),
            valid_from=fields.get("valid_from"),
        )  # fmt: skip
        assert ref is not None
        return ref

    return world.write(change)


def slept_thrice(world: Sleeper) -> dict[str, int]:
    """Counts of the first of three sleeps; the others change nothing."""
    first = world.sleep()
    before = world.marks()
    for _ in range(2):
        again = world.sleep()
        assert again.counts == {} and again.runs == []
    assert world.marks() == before
    world.check()
    return first.counts


# -- nothing to do ------------------------------------------------------------------------------


def test_an_empty_store_sleeps_well(world: Sleeper) -> None:
    assert slept_thrice(world) == {}
    assert world.sleep().status == DONE


def test_a_second_consolidation_at_the_same_time_does_nothing(world: Sleeper) -> None:
    world.add("note one", session="a")
    with hold(world.store.locks_path, consolidate.LOCK):
        slept = world.sleep()
    assert slept.status == BUSY and slept.counts == {}
    assert world.sleep().status == DONE  # the lock goes with its holder


# -- exact duplicates ---------------------------------------------------------------------------


def test_an_exact_copy_of_a_note_is_retired(world: Sleeper) -> None:
    first = world.add("The staging host is zeta-4.").ref
    copy = world.add("the staging host is zeta-4").ref
    assert slept_thrice(world)["duplicates"] == 1
    assert world.replaced_by(copy) == first and world.replaced_by(first) is None
    assert world.reasons(copy)[-1] == "duplicate"
    assert len(world.answers("staging host zeta-4", kinds=("observation",))) == 1


def test_a_retired_copy_said_again_is_known(world: Sleeper) -> None:
    first = world.add("The staging host is zeta-4.")
    world.add("the staging host is zeta-4")
    slept_thrice(world)
    assert world.add("the staging host is zeta-4").status == "known"
    new = world.add("the staging host is eta-5").ref
    found = world.found(first.ref)
    world.write(lambda tx: correct.supersede(tx, found, new, tx.now))
    assert world.add("the staging host is zeta-4").status == "new"  # it was corrected since


def test_a_retirement_can_be_undone(world: Sleeper) -> None:
    world.add("The staging host is zeta-4.")
    copy = world.add("the staging host is zeta-4").ref
    world.sleep()
    (entry,) = [e for e in world.log(copy) if e.reason == "duplicate"]
    world.undo(entry.seq)
    assert world.replaced_by(copy) is None
    world.check()


@pytest.mark.parametrize(
    ("one", "other", "fields"),
    [
        ("export LEVEL=high", "export level=HIGH", {}),  # code: case is meaning
        ("say 'yes' $NAME", 'say "yes" $name', {}),
        ("the alarm rang", "The alarm rang.", {"said": at(2026, 5, 2)}),
        ("the alarm rang", "The alarm rang.", {"source_uri": "file:b", "source_id": "2"}),
        ("the alarm rang", "The alarm rang.", {"speaker": "Tom"}),
        ("the alarm rang", "The alarm rang.", {"origin": "agent"}),
        ("the alarm rang", "The alarm rang.", {"session": "other"}),
        ("the alarm rang", "The alarm rang.", {"kind": "command"}),
        ("the alarm rang", "The alarm did not ring.", {}),
    ],
)
def test_what_differs_in_what_matters_stays(
    world: Sleeper, one: str, other: str, fields: dict[str, Any]
) -> None:
    base = {"source_uri": "file:a", "source_id": "1"} if "source_uri" in fields else {}
    first = world.add(one, **base).ref
    second = world.add(other, fields.pop("said", None), **fields).ref
    assert "duplicates" not in slept_thrice(world)
    assert world.replaced_by(first) is None and world.replaced_by(second) is None


def test_the_copy_with_a_source_stays(world: Sleeper) -> None:
    plain = world.add("the kiln reaches 1200 degrees").ref
    sourced = world.add("The kiln reaches 1200 degrees.", source_uri="file:kiln.md").ref
    slept_thrice(world)
    assert world.replaced_by(plain) == sourced


def test_memories_of_the_same_words_become_one_with_all_evidence(world: Sleeper) -> None:
    a = world.add("Ada said that the vault is on floor two", session="a")
    b = world.add("the plan shows the vault on floor two", session="b")
    weak = remember(world, "The vault is on floor two.", a.id, status="provisional")
    strong = remember(world, "the vault is on floor two", b.id)
    assert slept_thrice(world)["duplicates"] == 1
    assert world.replaced_by(weak) == strong
    kept = world.head(strong)
    assert isinstance(kept, Memory) and set(kept.cites) == {a.id, b.id}


def test_memories_of_different_times_stay(world: Sleeper) -> None:
    a = world.add("the rota of march")
    remember(world, "Kim has the night shift", a.id, valid_from=at(2026, 3, 1))
    remember(world, "Kim has the night shift.", a.id, valid_from=at(2026, 4, 1))
    assert "duplicates" not in slept_thrice(world)


def test_evidence_moves_to_the_copy_that_stays(world: Sleeper) -> None:
    first = world.add("the archive closes at five")
    copy = world.add("The archive closes at five.")
    memory = remember(world, "The archive closes early in winter", copy.id)
    slept_thrice(world)
    head = world.head(memory)
    assert isinstance(head, Memory) and head.cites == [first.id]
    assert "The archive closes early in winter" in world.texts()


def test_held_and_pinned_copies_stay(world: Sleeper) -> None:
    world.add("the old key is brass")
    copy = world.add("The old key is brass.").ref

    def keep(tx: Tx) -> None:
        part = tx.reader.parts[0]
        state = tx.reader.state(part, copy)
        assert state is not None
        tx.record(part, "hold", copy, state)

    world.write(keep)
    assert "duplicates" not in slept_thrice(world)


# -- what was corrected -------------------------------------------------------------------------


def test_copies_of_what_was_replaced_are_replaced_too(world: Sleeper) -> None:
    """Ten captures of one statement, one of them corrected: none comes through another door."""
    captured = [
        world.add("the release train leaves from gate alpha-9", session=f"s{i}").ref
        for i in range(10)
    ]
    new = world.add("the release train leaves from gate beta-3 now").ref
    found = world.found(captured[4])
    world.write(lambda tx: correct.supersede(tx, found, new, tx.now))
    assert any("alpha-9" in text for text in world.answers("release train gate"))  # control
    slept_thrice(world)
    assert all("alpha-9" not in text for text in world.answers("release train gate"))
    assert all("alpha-9" not in text for text in world.answers("gate alpha-9"))
    assert any("alpha-9" in text for text in world.answers("gate alpha-9", view="history"))
    assert all("alpha-9" not in claim for claim in world.claims())


def test_a_memory_that_says_what_was_replaced_is_replaced_too(world: Sleeper) -> None:
    a, b = world.add("margin: gate"), world.add("margin: gate once more", session="b")
    old = remember(world, "Parcels leave through gate alpha-9", a.id)
    copy = remember(world, "parcels leave through gate alpha-9.", b.id, kind="procedure")
    seen = world.add("from today parcels take gate beta-3")
    new = remember(world, "Parcels leave through gate beta-3", seen.id)
    found = world.found(old)
    world.write(lambda tx: correct.supersede(tx, found, new, tx.now))
    assert "parcels leave through gate alpha-9." in world.answers("parcels gate")  # control
    slept_thrice(world)
    assert world.replaced_by(copy) == new
    assert not [text for text in world.answers("parcels gate") if "alpha-9" in text]


def test_what_was_said_again_after_the_correction_stays(world: Sleeper) -> None:
    old = world.add("the kettle is on shelf two", at(2026, 1, 1), session="a").ref
    new = world.add("the kettle is on shelf five", at(2026, 2, 1), session="b").ref
    again = world.add("the kettle is on shelf two", at(2026, 3, 1), session="c").ref
    found = world.found(old)
    world.write(lambda tx: correct.supersede(tx, found, new, at(2026, 2, 1)))
    slept_thrice(world)
    assert world.replaced_by(again) is None


def test_somebody_else_s_copy_stays(world: Sleeper) -> None:
    mine = world.add("my bike is blue", speaker="Ann", session="a").ref
    theirs = world.add("my bike is blue", speaker="Bo", session="b").ref
    new = world.add("my bike is red", speaker="Ann", session="a").ref
    found = world.found(mine)
    world.write(lambda tx: correct.supersede(tx, found, new, tx.now))
    slept_thrice(world)
    assert world.replaced_by(theirs) is None


# -- evidence -----------------------------------------------------------------------------------


def test_what_says_the_same_as_a_memory_is_attached(world: Sleeper) -> None:
    first = world.add("noted in the margin: lamps")
    memory = remember(world, "The hall has forty lamps", first.id)
    again = world.add("the hall has forty lamps.", session="later")
    other = world.add("the hall has forty lamps", speaker="Bo")  # another voice
    assert slept_thrice(world)["attached"] == 1
    head = world.head(memory)
    assert isinstance(head, Memory) and head.cites == [first.id, again.id]
    assert other.id not in head.cites


def test_attached_evidence_goes_out_of_sight_with_the_memory(world: Sleeper) -> None:
    first = world.add("margin: host")
    memory = remember(world, "Parcels leave through gate alpha-9", first.id)
    for i in range(10):
        world.add("parcels leave through gate alpha-9", session=f"s{i}")
    slept_thrice(world)
    seen = world.add("from today parcels take gate beta-3")
    newer = remember(world, "Parcels leave through gate beta-3", seen.id)
    found = world.found(memory)
    world.write(lambda tx: correct.supersede(tx, found, newer, tx.now))
    assert all("alpha-9" not in text for text in world.answers("parcels gate alpha-9"))
    assert all("alpha-9" not in claim for claim in world.claims())
    slept_thrice(world)
    assert all("alpha-9" not in text for text in world.answers("parcels gate alpha-9"))


def test_nearly_the_same_is_proposed(world: Sleeper) -> None:
    a = world.add("margin: greenhouse")
    b = world.add("margin: greenhouse again", session="b")
    long = remember(world, "The greenhouse door is locked every evening by the gardener", a.id)
    short = remember(world, "The greenhouse door is locked every evening by gardener", b.id)
    near = remember(
        world, "The greenhouse door is locked every single evening by the gardener", a.id
    )
    apart = remember(
        world, "The greenhouse door is never locked every evening by the gardener", a.id
    )
    slept_thrice(world)
    pairs = {
        (op.target, op.into) for _, op in world.operations() if op.action == "retire-duplicate"
    }
    assert pairs and all(apart not in pair for pair in pairs)
    assert {ref for pair in pairs for ref in pair} <= {long, short, near}
    assert world.replaced_by(short) is None  # nothing is done without a person
    world.approve()
    slept_thrice(world)


def test_near_evidence_is_proposed_and_follows_the_decision(world: Sleeper) -> None:
    a = world.add("margin: bakery")
    memory = remember(world, "The bakery delivers bread to the office on monday mornings", a.id)
    near = world.add("The bakery delivers fresh bread to the office on monday mornings")
    apart = world.add("The bakery delivers bread to the office on friday mornings")
    assert slept_thrice(world)["proposed"] == 1
    ((_, op),) = world.operations()
    assert op.action == "attach" and op.target == memory and op.cites == [near.id]
    assert apart.id not in op.cites
    ref = world.operations()[0][0]
    world.write(lambda tx: drafts.deny(tx, tx.reader.parts[0], ref))
    slept_thrice(world)
    assert len(world.operations()) == 1  # what was denied is not proposed again


# -- briefs, notes, rules, purge ----------------------------------------------------------------


def note(world: Sleeper, text: str, days: int = 8) -> bytes:
    return world.write(lambda tx: tiers.note(tx, Incoming(text=text), days=days)).ref


def test_briefs_are_followed_before_anything_expires(world: Sleeper) -> None:
    keep, noise = note(world, "keep the seal number"), note(world, "lunch was late")
    stays = note(world, "the plumber comes")

    def brief(tx: Tx) -> Any:
        loop = loops.add(tx, SCOPE, "call the plumber", when=tx.now + DAY)
        briefs.add(tx, SCOPE, "a busy day", promote=[keep], noise=[noise], done=[loop.ref])
        return loop.ref

    loop = world.write(brief)
    counts = slept_thrice(world)
    assert (counts["briefs"], counts["promoted"], counts["expired"], counts["loops_done"]) == (
        1,
    ) * 4
    assert world.state(keep).valid_to is None and world.status(noise) == "expired"
    assert world.status(stays) == "verified" and world.state(stays).valid_to is not None
    assert world.state(loop).flags


def test_notes_whose_time_is_over_expire(world: Sleeper, monkeypatch: pytest.MonkeyPatch) -> None:
    due, later = note(world, "short one", days=1), note(world, "longer one", days=9)
    import time as clock

    real = clock.time_ns
    monkeypatch.setattr(clock, "time_ns", lambda: real() + 2 * DAY * 1000)
    assert slept_thrice(world) == {"expired": 1}
    assert world.status(due) == "expired" and world.status(later) == "verified"


def test_rules_run_and_what_was_forgotten_is_purged(world: Sleeper) -> None:
    old = world.add("draft minutes, zanzibar", kind="scratch")
    kept = world.add("final minutes, quito", kind="minutes")
    rule = retention.Rule(
        0, "local", "default", "", "observation", "scratch", "", "", "", "", 0, "forget", 0, ""
    )
    world.write(lambda tx: retention.add(tx, rule))
    counts = slept_thrice(world)
    assert counts["forgotten"] == 1 and counts["purged"] == 1
    assert world.status(old.ref) == "erased"
    assert world.answers("minutes") == ["final minutes, quito"]
    assert b"zanzibar" not in b"".join(
        path.read_bytes() for path in world.folder.rglob("*") if path.is_file()
    )
    assert b"quito" in b"".join(
        path.read_bytes() for path in world.folder.rglob("*") if path.is_file()
    )
    assert kept.ref != old.ref


# -- runs ---------------------------------------------------------------------------------------


def test_a_run_is_kept_and_never_recalled(world: Sleeper) -> None:
    world.add("the run of the salmon begins in may")
    world.add("The run of the salmon begins in may.")
    slept = world.sleep()
    with world.store.read(world.actor.grant) as reader:
        (ran,) = runs.every(reader)
        assert ran.ref == slept.runs[0]
        assert ran.principal == "consolidation" and ran.run.counts == slept.counts
        assert ran.run.started == slept.started and ran.run.ended is not None
    asked = ("duplicates", "consolidation run", "run of the salmon", "home")
    for view in ("now", "history", "changes"):
        for text in asked:
            hits = world.ask(text, view=view, include=frozenset(("pending", "rejected"))).hits
            assert ran.ref not in {hit.ref for hit in hits}
    assert world.ask("run of the salmon").hits  # what is no bookkeeping is found
    assert all(kind in ("m", "o") for kind, _, _ in world.see())
    world.check()


def test_a_run_that_was_cut_short_says_so_and_the_next_goes_on(world: Sleeper) -> None:
    world.add("the pump is green")
    world.add("The pump is green.")
    slept = world.sleep(budget_s=0.0)
    assert slept.status == PARTIAL and "duplicates" not in slept.counts
    assert world.sleep().counts["duplicates"] == 1


# -- dry runs -----------------------------------------------------------------------------------


def eventful(world: Sleeper) -> None:
    """Something of everything."""
    world.talk()
    world.add("the pump is green")
    world.add("The pump is green.")
    seen = world.add("margin: pump")
    remember(world, "The hall has forty lamps", seen.id)
    world.add("the hall has forty lamps", session="b")
    keep = note(world, "keep the seal number")
    world.write(lambda tx: briefs.add(tx, SCOPE, "", promote=[keep]))
    gone = world.found(world.add("forget the yak").ref)
    world.write(lambda tx: forget.forget(tx, gone.part, gone.ref))
    spool(world, 5)


def spool(world: Sleeper, count: int) -> Path:
    """Commands that a shell, which has ended, left in the spool."""
    path = world.folder / "spool" / "bash-1790000000000000-4000001-0.jsonl"
    lines = [
        {"remem": 1, "seq": n, "at": 1_790_000_000_000_000 + n, "took": 1500, "exit": 0, "cwd": "/",
         "head": "", "tty": "", "cmd": f"make target-{n}"}
        for n in range(count)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(x, separators=(",", ":")) + "\n" for x in lines))
    path.chmod(0o600)
    return path


def test_the_spool_is_taken_in_and_a_dry_run_leaves_it(world: Sleeper) -> None:
    path = spool(world, 7)
    before = path.read_bytes()
    assert world.sleep(dry_run=True).counts["drained"] == 7
    assert path.read_bytes() == before and world.texts("o") == []
    only = world.sleep(drain_only=True)
    assert only.counts == {"drained": 7} and len(only.runs) == 1
    assert len(world.texts("o")) == 7
    assert not path.exists() or not path.read_bytes().strip()
    assert "drained" not in slept_thrice(world)


def test_what_only_git_can_tell_waits_without_git(
    world: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*args: object, **named: object) -> None:
        raise GitMissing("there is no git")

    monkeypatch.setattr(git_hook, "drain", missing)
    spool(world, 3)
    slept = world.sleep()
    assert any("hooks of git" in note for note in slept.notes) and slept.status == DONE
    assert slept.counts["drained"] == 3  # what the shell left is in


def test_a_dry_run_counts_exactly_and_changes_nothing(world: Sleeper) -> None:
    eventful(world)
    marks, files = world.marks(), world.files()
    planned = world.sleep(dry_run=True)
    assert world.marks() == marks and world.files() == files
    done = world.sleep()
    assert planned.counts == done.counts
    assert {
        "drained",
        "summaries",
        "duplicates",
        "attached",
        "briefs",
        "promoted",
        "purged",
    } <= set(done.counts)
    assert world.marks() != marks


def test_a_dry_run_needs_no_lock(world: Sleeper) -> None:
    eventful(world)
    with hold(world.store.locks_path, consolidate.LOCK):
        assert world.sleep(dry_run=True).counts


# -- scopes -------------------------------------------------------------------------------------


def test_collections_and_tenants_are_kept_apart(world: Sleeper) -> None:
    other = msgspec.structs.replace(
        world.actor,
        scope=msgspec.structs.replace(SCOPE, tenant="firm"),
        grant=msgspec.structs.replace(world.actor.grant, tenant="firm"),
    )
    world.add("the pump is green", collection="one")
    world.add("The pump is green.", collection="two")
    for text in ("the pump is green", "The pump is green."):
        world.store.write(other, lambda tx, t=text: admit(tx, Incoming(text=t)))  # type: ignore[misc]
    assert slept_thrice(world)["duplicates"] == 1  # within the firm
    with world.store.read(other.grant) as reader:
        assert len(runs.every(reader)) == 1
    with world.store.read(world.actor.grant) as reader:
        assert runs.every(reader) == []


def test_what_is_held_back_is_neither_merged_nor_attached(world: Sleeper) -> None:
    world.add("the pump is green")
    copy = world.add("The pump is green.").ref

    def set_apart(tx: Tx) -> None:
        part = tx.reader.parts[0]
        state = tx.reader.state(part, copy)
        assert state is not None
        tx.record(part, "quarantine", copy, state, status="quarantined", reason="instruction")

    world.write(set_apart)
    assert "duplicates" not in slept_thrice(world)
    assert world.status(copy) == "quarantined"


def test_a_proposal_on_what_moved_meanwhile_is_left(world: Sleeper) -> None:
    seen = world.add("margin: tap")
    memory = remember(world, "The tap drips at night in the kitchen", seen.id)
    part = world.read(lambda reader, part: part)
    state = world.state(memory)
    world.do(correct.close, memory, state.created + 1)
    stale = Proposal(action="attach", target=memory, seen=state.head, cites=[seen.id])
    from remem.hooks.sleep.attach import offer
    from remem.hooks.sleep.night import Night

    before = world.marks()
    assert not offer(Night(world.store, SCOPE, "cli", now=0), part, stale)
    assert world.marks() == before
