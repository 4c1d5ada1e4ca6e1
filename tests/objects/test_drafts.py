"""Drafts: proposing, deciding one by one, heads that have moved, and what a forgetting takes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from remem.objects import correct, drafts, encode, forget, instant, refs, tombs
from remem.objects.drafts import Decision, Proposal
from remem.objects.errors import Blocked, HeadMoved, NotFound, Refused, UsageError
from remem.objects.model import Deriver, Draft, Memory, Span
from remem.objects.reader import Found

from .world import GRANT, SCOPE, World, at

MADE_BY = Deriver("consolidate", 1)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def claim(text: str, *cites: bytes, **fields: object) -> Memory:
    plain = Memory(
        encode.ZERO_SALT, SCOPE, "fact", text, None, list(cites), None, MADE_BY, 700,
        None, None, None, [], "", [], {},
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)


def propose(world: World, *operations: Proposal, note: str = "") -> drafts.Proposed:
    return world.write(lambda tx: drafts.propose(tx, SCOPE, operations, deriver=MADE_BY, note=note))


def proposed(world: World, *operations: Proposal) -> bytes:
    ref = propose(world, *operations).ref
    assert ref is not None
    return ref


def approve(world: World, ref: bytes, *numbers: int, **options: object) -> list[Decision]:
    chosen = list(numbers) or None
    return world.write(
        lambda tx: drafts.approve(tx, tx.reader.parts[0], ref, chosen, **options)  # type: ignore[arg-type]
    )


def deny(world: World, ref: bytes, *numbers: int, critique: str = "") -> list[Decision]:
    chosen = list(numbers) or None
    return world.write(lambda tx: drafts.deny(tx, tx.reader.parts[0], ref, chosen, critique))


def again(world: World, ref: bytes, number: int, memory: Memory | None, **options: object) -> int:
    return world.write(
        lambda tx: drafts.resubmit(tx, tx.reader.parts[0], ref, number, memory, **options)  # type: ignore[arg-type]
    )


def draft_of(world: World, ref: bytes) -> Draft:
    return world.read(lambda reader, part: drafts.get(reader, part, ref)[1])


def status(world: World, ref: bytes) -> str:
    return refs.STATUSES[world.state(ref).status]


def pending(world: World, ref: bytes, number: int = 1) -> bytes:
    op = next(op for op in draft_of(world, ref).operations if op.number == number)
    assert op.proposed is not None
    return op.proposed


def waits(world: World) -> list[tuple[str, int]]:
    return world.read(lambda reader, part: [(i.kind, i.number) for i in drafts.waiting(reader)])


# -- proposing ----------------------------------------------------------------------------------


def test_a_proposal_waits_and_is_shown_to_nobody(world: World) -> None:
    seen = world.add("the deploy host is alpha-9")
    ref = proposed(world, Proposal(action="new", memory=claim("deploys go to alpha-9", seen.id)))
    assert status(world, ref) == "pending"
    assert status(world, pending(world, ref)) == "pending"
    assert world.texts() == []
    assert world.texts(view="history") == []
    assert world.texts(include=frozenset(("pending",))) == ["deploys go to alpha-9"]
    assert waits(world) == [("operation", 1)]
    world.check()


def test_approval_lets_the_claim_hold(world: World) -> None:
    seen = world.add("the deploy host is alpha-9")
    ref = proposed(world, Proposal(action="new", memory=claim("deploys go to alpha-9", seen.id)))
    assert approve(world, ref) == [Decision(1, "approved")]
    assert world.texts() == ["deploys go to alpha-9"]
    assert status(world, pending(world, ref)) == "verified"
    assert status(world, ref) == "verified"
    assert waits(world) == []
    world.check()


def test_each_operation_is_decided_on_its_own(world: World) -> None:
    seen = world.add("the deploy host is alpha-9 and lunch is at noon")
    ref = proposed(
        world,
        Proposal(action="new", memory=claim("deploys go to alpha-9", seen.id)),
        Proposal(action="new", memory=claim("lunch is at noon", seen.id)),
    )
    deny(world, ref, 2, critique="nobody needs that")
    assert waits(world) == [("operation", 1)]
    approve(world, ref, 1)
    assert world.texts() == ["deploys go to alpha-9"]
    verdicts = [(op.verdict, op.critique) for op in draft_of(world, ref).operations]
    assert verdicts == [("approved", ""), ("denied", "nobody needs that")]
    with pytest.raises(Refused, match="approved already"):
        approve(world, ref, 1)
    with pytest.raises(NotFound, match="no operation 3"):
        approve(world, ref, 3)
    world.check()


def test_what_waits_or_was_denied_is_known(world: World) -> None:
    seen = world.add("the deploy host is alpha-9")
    one = Proposal(action="new", memory=claim("deploys go to alpha-9", seen.id))
    ref = proposed(world, one)
    assert propose(world, one) == drafts.Proposed(None, [], [0])
    again_said = Proposal(action="new", memory=claim("Deploys go to ALPHA-9.", seen.id))
    other = Proposal(action="new", memory=claim("a host is called alpha-9", seen.id))
    mixed = propose(world, again_said, other)
    assert (mixed.made, mixed.known) == ([1], [0])
    deny(world, ref)
    assert propose(world, again_said).ref is None
    world.check()


@pytest.mark.parametrize(
    ("proposal", "what"),
    [
        ({"action": "new"}, "needs claim"),
        ({"action": "close"}, "needs target"),
        ({"action": "attach", "target": True}, "names the evidence"),
        ({"action": "retire-duplicate", "target": True}, "names the memory that stays"),
        ({"action": "rename"}, "is no operation"),
        ({"action": "close", "target": True, "reason": "chain"}, "kept for the store"),
        ({"action": "close", "target": True, "reason": "two words"}, "no reason code"),
        ({"action": "close", "target": True, "reason": "undo-1"}, "kept for the store"),
        ({"action": "new", "memory": True, "target": True}, "takes no target"),
        ({"action": "summary", "memory": True}, "kind summary"),
        ({"action": "verbatim", "memory": True}, "very words"),
    ],
)
def test_an_operation_lacks_what_it_needs(
    world: World, proposal: dict[str, object], what: str
) -> None:
    seen = world.add("the deploy host is alpha-9")
    fact = world.fact("host", "is", "alpha-9")
    given = dict(proposal)
    if given.get("target"):
        given["target"] = fact.ref
    if given.get("memory"):
        given["memory"] = claim("deploys go to alpha-9", seen.id)
    with pytest.raises(UsageError, match=what):
        propose(world, Proposal(**given))  # type: ignore[arg-type]
    assert waits(world) == []


def test_a_verbatim_claim_is_the_words_of_its_evidence(world: World) -> None:
    seen = world.add("Rule: never deploy on Friday.")
    words = claim("never deploy on Friday", seen.id, kind="instruction", span=Span(0, 6, 28))
    ref = proposed(world, Proposal(action="verbatim", memory=words))
    approve(world, ref)
    assert world.texts() == ["never deploy on Friday"]


def test_forgotten_words_are_not_proposed(world: World) -> None:
    seen = world.add("the deploy host is alpha-9")
    gone = world.add("deploys go to alpha-9")
    world.write(lambda tx: forget.forget(tx, tx.reader.parts[0], gone.ref))
    with pytest.raises(Blocked):
        propose(world, Proposal(action="new", memory=claim("deploys go to alpha-9", seen.id)))


def test_a_secret_does_not_stay_in_note_or_critique(world: World) -> None:
    seen = world.add("the deploy host is alpha-9")
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    one = Proposal(action="new", memory=claim("deploys go to alpha-9", seen.id))
    ref = propose(world, one, note=f"seen beside {key}").ref
    assert ref is not None
    deny(world, ref, critique=f"it was beside {key}")
    draft = draft_of(world, ref)
    assert key not in draft.note and key not in draft.operations[0].critique
    assert "beside" in draft.note and "beside" in draft.operations[0].critique


# -- what operations change ---------------------------------------------------------------------


def test_supersede_takes_the_place_of_what_it_saw(world: World) -> None:
    old = world.fact("deploy host", "is", "alpha-9", start=at(2024))
    seen = world.add("we deploy to beta-3 now")
    new = claim("the deploy host is beta-3", seen.id)
    ref = proposed(world, Proposal(action="supersede", memory=new, target=old.ref))
    assert world.texts() == ["deploy host is alpha-9"]
    approve(world, ref)
    assert world.texts() == ["the deploy host is beta-3"]
    assert world.state(old.ref).replaced_by == pending(world, ref)
    world.check()


def test_supersede_within_a_chain_is_linked_there(world: World) -> None:
    old = world.fact("deploy host", "is", "alpha-9", start=at(2024))
    seen = world.add("we deploy to beta-3 now")
    new = claim(
        "the deploy host is beta-3",
        seen.id,
        triple=("deploy host", "is", "beta-3"),
        valid_from=at(2025),
    )
    ref = proposed(world, Proposal(action="supersede", memory=new, target=old.ref))
    approve(world, ref)
    assert world.state(old.ref).valid_to == at(2025)
    assert world.texts(as_of=at(2024, 6)) == ["deploy host is alpha-9"]
    assert world.texts() == ["the deploy host is beta-3"]
    world.check()


def test_a_moved_head_makes_an_operation_stale(world: World) -> None:
    old = world.fact("deploy host", "is", "alpha-9", start=at(2024))
    seen = world.add("we deploy to beta-3 now")
    new = claim("the deploy host is beta-3", seen.id)
    ref = proposed(
        world,
        Proposal(action="supersede", memory=new, target=old.ref),
        Proposal(action="new", memory=claim("deploys go somewhere", seen.id)),
    )
    world.do(correct.revise, old.ref, "deploy host is gamma-4")
    decided = approve(world, ref)
    assert [d.verdict for d in decided] == ["stale", "approved"]
    assert "another head" in decided[0].why
    assert world.texts() == ["deploy host is gamma-4", "deploys go somewhere"]
    assert status(world, pending(world, ref)) == "rejected"
    assert again(world, ref, 1, new) == 2
    assert waits(world) == [("operation", 1)]
    approve(world, ref)
    assert world.texts() == ["deploys go somewhere", "the deploy host is beta-3"]
    world.check()


def test_a_head_that_moved_before_the_proposal(world: World) -> None:
    old = world.fact("deploy host", "is", "alpha-9", start=at(2024))
    first = world.state(old.ref).head
    world.do(correct.revise, old.ref, "deploy host is gamma-4")
    with pytest.raises(HeadMoved):
        propose(world, Proposal(action="close", target=old.ref, seen=first))


def test_attach_adds_evidence(world: World) -> None:
    fact = world.fact("deploy host", "is", "alpha-9")
    more = world.add("yes, alpha-9 is where we deploy")
    ref = proposed(world, Proposal(action="attach", target=fact.ref, cites=[more.id]))
    before = world.head(fact.ref)
    approve(world, ref)
    after = world.head(fact.ref)
    assert isinstance(before, Memory) and isinstance(after, Memory)
    assert after.cites == [*before.cites, more.id] and after.text == before.text
    assert propose(world, Proposal(action="attach", target=fact.ref, cites=[more.id])).made == [1]
    world.check()


def test_attach_in_other_words(world: World) -> None:
    seen = world.add("the deploy host is alpha-9")
    first = proposed(world, Proposal(action="new", memory=claim("host alpha-9", seen.id)))
    approve(world, first)
    target = pending(world, first)
    more = world.add("alpha-9, in the cellar, takes the deploys")
    restated = claim("deploys go to alpha-9 in the cellar", more.id)
    ref = proposed(
        world, Proposal(action="attach", target=target, cites=[more.id], memory=restated)
    )
    approve(world, ref)
    assert world.texts() == ["deploys go to alpha-9 in the cellar"]
    head = world.head(target)
    assert isinstance(head, Memory) and head.cites == [seen.id, more.id]
    assert status(world, pending(world, ref)) == "rejected"
    world.check()


def test_close_ends_a_memory(world: World) -> None:
    fact = world.fact("deploy host", "is", "alpha-9", start=at(2024))
    ref = proposed(world, Proposal(action="close", target=fact.ref, at=at(2025)))
    assert propose(world, Proposal(action="close", target=fact.ref, at=at(2025))).ref is None
    approve(world, ref)
    assert world.texts() == []
    assert world.texts(as_of=at(2024, 6)) == ["deploy host is alpha-9"]
    world.check()


def test_a_duplicate_leaves_its_evidence_to_the_other(world: World) -> None:
    one, two = world.add("deploys go to alpha-9"), world.add("we deploy on alpha-9")
    made = proposed(
        world,
        Proposal(action="new", memory=claim("the deploy host is alpha-9", one.id)),
        Proposal(action="new", memory=claim("alpha-9 is the host of deploys", two.id)),
    )
    approve(world, made)
    stays, goes = pending(world, made, 1), pending(world, made, 2)
    ref = proposed(world, Proposal(action="retire-duplicate", target=goes, into=stays))
    approve(world, ref)
    assert world.texts() == ["the deploy host is alpha-9"]
    head = world.head(stays)
    assert isinstance(head, Memory) and head.cites == [one.id, two.id]
    assert world.state(goes).replaced_by == stays
    world.check()


def test_a_summary_replaces_the_older_one(world: World) -> None:
    one, two = world.add("deploys go to alpha-9"), world.add("alpha-9 is in the cellar")
    first = claim("about deploys: alpha-9", one.id, kind="summary")
    made = proposed(world, Proposal(action="summary", memory=first))
    approve(world, made)
    longer = claim("about deploys: alpha-9, in the cellar", one.id, two.id, kind="summary")
    target = pending(world, made)
    approve(world, proposed(world, Proposal(action="summary", memory=longer, target=target)))
    assert world.texts() == ["about deploys: alpha-9, in the cellar"]
    world.check()


def test_edited_words_are_the_owners_own(world: World) -> None:
    seen = world.add("the deploy host is alpha-9")
    ref = proposed(world, Proposal(action="new", memory=claim("deploys go to alpha", seen.id)))
    approve(world, ref, 1, edited="deploys go to alpha-9")
    head = world.head(pending(world, ref))
    assert isinstance(head, Memory)
    assert (head.text, head.deriver.name, head.cites) == (
        "deploys go to alpha-9",
        "stated",
        [seen.id],
    )
    assert world.texts() == ["deploys go to alpha-9"]
    assert world.texts(view="history") == ["deploys go to alpha-9"]  # never the words before
    assert world.texts(as_of=instant.now()) == ["deploys go to alpha-9"]
    world.check()


# -- again --------------------------------------------------------------------------------------


def test_a_denied_operation_comes_back_until_the_last_attempt(world: World) -> None:
    seen = world.add("the deploy host is alpha-9")
    ref = proposed(world, Proposal(action="new", memory=claim("deploys go to alpha", seen.id)))
    with pytest.raises(Refused, match="is waiting"):
        again(world, ref, 1, claim("other words", seen.id))
    deny(world, ref, critique="name the host in full")
    with pytest.raises(Refused, match="same claim"):
        again(world, ref, 1, claim("deploys go to ALPHA", seen.id))
    assert again(world, ref, 1, claim("deploys go to alpha-8", seen.id)) == 2
    op = draft_of(world, ref).operations[0]
    assert (op.verdict, op.critique, op.attempt) == ("", "name the host in full", 2)
    deny(world, ref, critique="the number is wrong")
    assert again(world, ref, 1, claim("deploys go to alpha-7", seen.id)) == 3
    deny(world, ref)
    assert draft_of(world, ref).operations[0].critique == "the number is wrong"
    with pytest.raises(Refused, match="proposed 3 times"):
        again(world, ref, 1, claim("deploys go to alpha-9", seen.id))
    assert again(world, ref, 1, claim("deploys go to alpha-9", seen.id), limit=4) == 4
    approve(world, ref)
    assert world.texts() == ["deploys go to alpha-9"]
    world.check()


def test_undo_makes_what_was_approved_wait_again(world: World) -> None:
    old = world.fact("deploy host", "is", "alpha-9", start=at(2024))
    seen = world.add("we deploy to beta-3 now")
    new = claim("the deploy host is beta-3", seen.id)
    ref = proposed(world, Proposal(action="supersede", memory=new, target=old.ref))
    approve(world, ref)
    world.undo()
    assert world.texts() == ["deploy host is alpha-9"]
    assert status(world, pending(world, ref)) == "pending"
    assert waits(world) == [("operation", 1)]
    approve(world, ref)
    assert world.texts() == ["the deploy host is beta-3"]
    world.check()


def test_undo_of_a_proposal_withdraws_it(world: World) -> None:
    seen = world.add("the deploy host is alpha-9")
    one = Proposal(action="new", memory=claim("deploys go to alpha-9", seen.id))
    ref = proposed(world, one)
    world.undo()
    assert waits(world) == [] and status(world, ref) == "rejected"
    assert propose(world, one).made == [1]
    world.check()


# -- bookkeeping --------------------------------------------------------------------------------


def test_no_view_shows_a_draft(world: World) -> None:
    seen = world.add("the deploy host is alpha-9")
    ref = proposed(world, Proposal(action="new", memory=claim("deploys go to alpha-9", seen.id)))
    approve(world, ref)
    for view in ("now", "history", "changes"):
        for _, text, _ in world.see(view=view):
            assert text in ("the deploy host is alpha-9", "deploys go to alpha-9")
    with pytest.raises(NotFound, match="is a draft"):
        world.head(ref)
    found = world.found(ref)
    with pytest.raises(NotFound):
        world.write(lambda tx: correct.revise(tx, found, "other words"))
    with pytest.raises(NotFound):
        world.write(lambda tx: correct.close(tx, Found(found.part, ref, found.state, None), 1))


def test_verify_names_what_does_not_fit(world: World) -> None:
    from remem.objects.fsck import verify

    seen = world.add("the deploy host is alpha-9")
    ref = proposed(world, Proposal(action="new", memory=claim("deploys go to alpha-9", seen.id)))
    world.check()
    with world.store.read(GRANT) as reader:
        prefix = reader.parts[0].prefix
    claimed = pending(world, ref)

    def spoil(tx: object) -> None:
        txn = tx.txn  # type: ignore[attr-defined]
        txn.delete("waits", prefix + claimed)
        txn.delete("proposed", prefix + claimed + ref)
        txn.put("refused", prefix + bytes(tombs.DIGEST_B), seen.ref)

    world.write(spoil)
    found = [problem.where.split()[0] for problem in verify(world.store).problems]
    assert sorted(found) == ["proposed", "refused", "waits"]
