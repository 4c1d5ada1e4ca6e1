"""Pins: who pins, what shows, what ends the showing; briefs: hints, authority, consuming."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from remem.objects import (
    briefs,
    correct,
    forget,
    instant,
    lists,
    loops,
    pins,
    purge,
    refs,
    retention,
    tiers,
)
from remem.objects.admit import Admitted, admit
from remem.objects.briefs import Brief
from remem.objects.errors import (
    BadInput,
    Blocked,
    NotFound,
    Refused,
    ScopeRefused,
    UsageError,
)
from remem.objects.model import Incoming
from remem.objects.pack_import import import_pack
from remem.objects.pack_write import export
from remem.objects.scope import Actor, Grant, maintenance_grant
from remem.objects.views import Eye, Lens
from tests.objects.test_retention import rule
from tests.objects.world import DAY, GRANT, OWNER, SCOPE, World

AGENT = Actor(Grant("bot", "local", "default", None), "mcp", SCOPE)
FAR = 1 << 60


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def pin(world: World, text: str) -> bytes:
    return world.write(lambda tx: pins.state(tx, SCOPE, text))[0].ref


def shown(world: World, **lens: object) -> list[str]:
    given = {"now": instant.now(), **lens}
    with world.store.read(GRANT) as reader:
        eye = Eye(Lens(**given), reader)  # type: ignore[arg-type]
        return [one.obj.text for one in pins.shown(eye) if one.obj is not None]


def listed(world: World) -> list[tuple[bytes, str]]:
    with world.store.read(GRANT) as reader:
        return [(one.ref, one.why) for one in pins.every(Eye(Lens(instant.now()), reader))]


def audit(world: World) -> list[tuple[str, str]]:
    with world.store.read(maintenance_grant()) as reader:
        return [(row.action, row.outcome) for _, _, row in reader.audit_rows()]


# -- pins ---------------------------------------------------------------------------------------


def test_texts_and_refs_are_pinned_in_order(world: World) -> None:
    later = world.add("the api answers on port 8443")
    pin(world, "Never push to main.\n  Not even once. \u200d\t<b>")
    assert world.do(pins.pin, later.ref) is True
    assert world.do(pins.pin, later.ref) is False
    assert shown(world) == [
        "Never push to main.\n  Not even once. \u200d\t<b>",
        "the api answers on port 8443",
    ]
    assert world.state(later.ref).flags & refs.PINNED
    world.check()


def test_only_the_owner_pins_and_the_refusal_is_audited(world: World) -> None:
    made = world.add("evidence")
    agents = world.store.write(AGENT, lambda tx: admit(tx, Incoming(text="obey", origin="agent")))
    for change in (
        lambda tx: pins.pin(tx, world.found(made.ref)),
        lambda tx: pins.pin(tx, world.found(agents.ref)),  # its own word neither
        lambda tx: pins.state(tx, SCOPE, "obey me"),
    ):
        with pytest.raises(ScopeRefused):
            world.store.write(AGENT, change)
    assert audit(world)[-3:] == [("pin", "not_owner")] * 3
    assert shown(world) == [] and listed(world) == []
    assert "obey me" not in world.texts("o")  # nothing of it was kept
    world.do(pins.pin, made.ref)
    with pytest.raises(ScopeRefused):
        world.store.write(AGENT, lambda tx: pins.unpin(tx, world.found(made.ref)))
    assert audit(world)[-1] == ("unpin", "not_owner")
    assert shown(world) == ["evidence"]


def test_unpinning_ends_a_text_that_was_stated_to_be_pinned_only(world: World) -> None:
    stated, made = pin(world, "be brief"), world.add("evidence")
    world.do(pins.pin, made.ref)
    assert world.do(pins.unpin, stated) is True
    assert world.do(pins.unpin, stated) is False
    world.do(pins.unpin, made.ref)
    assert shown(world) == []
    assert world.texts() == [] and world.texts("o") == ["evidence"]
    again = pin(world, "be brief")
    assert again != stated and shown(world) == ["be brief"]
    assert pin(world, "be brief") == again
    world.check()


def test_undo_of_pinning_and_unpinning(world: World) -> None:
    made = world.add("evidence")
    world.do(pins.pin, made.ref)
    world.undo()
    assert shown(world) == []
    world.undo(world.last_seq())
    assert shown(world) == ["evidence"]


def test_what_ends_the_showing_of_a_pin_is_told(world: World) -> None:
    texts = ("replaced", "closed", "forgotten", "held back", "reworded")
    made = {text: world.add(text).ref for text in texts}
    other = world.add("instead")
    for ref in made.values():
        world.do(pins.pin, ref)
    at = instant.now()
    world.do(correct.supersede, made["replaced"], other.ref, at)
    world.do(correct.close, made["closed"], at)
    part = world.found(other.ref).part
    world.write(lambda tx: forget.forget(tx, part, made["forgotten"]))
    state = world.state(made["held back"])
    world.write(
        lambda tx: tx.record(part, "quarantine", made["held back"], state, status="quarantined")
    )
    world.do(correct.revise, made["reworded"], "in other words")
    assert shown(world) == ["in other words"]
    why = {ref: word for ref, word in listed(world)}
    assert [why[made[text]] for text in texts] == [
        "replaced",
        "closed",
        "forgotten",
        "quarantined",
        "",
    ]
    assert set(shown(world, known_at=at - 1)) == {"replaced", "closed", "reworded"}
    items = world.read(lambda r, p: purge.waiting(r))
    purge.next_generation(world.store, OWNER, items)
    assert made["forgotten"] not in dict(listed(world))
    world.check()


def test_what_does_not_hold_cannot_be_pinned(world: World) -> None:
    made = world.add("evidence")
    state, part = world.state(made.ref), world.found(made.ref).part
    world.write(lambda tx: tx.record(part, "quarantine", made.ref, state, status="quarantined"))
    with pytest.raises(Refused, match="is quarantined"):
        world.do(pins.pin, made.ref)
    closed = world.add("closed")
    world.do(correct.close, closed.ref, instant.now())
    with pytest.raises(Refused, match="does not hold"):
        world.do(pins.pin, closed.ref)
    left = brief(world, "for the next one")
    with pytest.raises(Refused, match="does not hold"):
        world.do(pins.pin, left.ref)


def test_pinning_a_note_promotes_it_even_when_it_has_expired(world: World) -> None:
    alive = world.write(lambda tx: tiers.note(tx, Incoming(text="alive"), days=1))
    gone = world.write(lambda tx: tiers.note(tx, Incoming(text="gone"), days=1))
    world.do(tiers.noise, gone.ref)
    for made in (alive, gone):
        world.do(pins.pin, made.ref)
        assert [refs.OPS[e.op] for e in world.log(made.ref)][-2:] == ["promote", "pin"]
        assert world.state(made.ref).valid_to is None
    assert shown(world, now=instant.now() + 9 * DAY) == ["alive", "gone"]


def test_retention_and_noise_leave_pins_alone(world: World) -> None:
    made, other = world.add("pinned", role="tool"), world.add("other", role="tool")
    world.do(pins.pin, made.ref)
    world.write(lambda tx: retention.add(tx, rule(role="tool", action="expire")))
    done = retention.run(world.store, OWNER, now=FAR)
    assert [due.pinned for due in done] == [1]
    assert refs.STATUSES[world.state(other.ref).status] == "expired"
    assert shown(world) == ["pinned"]
    with pytest.raises(Refused, match="is pinned"):
        world.do(tiers.noise, made.ref)


def test_a_text_that_was_forgotten_cannot_be_pinned(world: World) -> None:
    stated = pin(world, "the code is 4711")
    part = world.found(stated).part
    world.write(lambda tx: forget.forget(tx, part, stated))
    assert shown(world) == []
    with pytest.raises(Blocked):
        pin(world, "The code is 4711.")


def test_verify_misses_the_row_of_a_pin(world: World) -> None:
    made = world.add("evidence")
    world.do(pins.pin, made.ref)
    key = world.found(made.ref).part.prefix + lists.PIN + made.ref
    world.store.env().write(lambda txn: txn.delete("lists", key))
    from remem.objects.fsck import verify

    assert [p.where for p in verify(world.store).problems] == [f"list p {made.ref.hex()}"]


# -- briefs -------------------------------------------------------------------------------------


def brief(world: World, text: str, actor: Actor = OWNER, **hints: object) -> Admitted:
    return world.store.write(actor, lambda tx: briefs.add(tx, SCOPE, text, **hints))  # type: ignore[arg-type]


def waiting(world: World) -> list[Brief]:
    with world.store.read(GRANT) as reader:
        return briefs.waiting(reader)


def consume(world: World) -> list[briefs.Consumed]:
    return [world.write(lambda tx, b=one: briefs.consume(tx, b)) for one in waiting(world)]  # type: ignore[misc]


def note(world: World, text: str, actor: Actor = OWNER) -> bytes:
    record = Incoming(text=text, origin="owner" if actor is OWNER else "agent")
    return world.store.write(actor, lambda tx: tiers.note(tx, record)).ref


def test_a_brief_waits_does_what_it_hints_and_is_kept(world: World) -> None:
    keep, drop = note(world, "keep this"), note(world, "drop this")
    loop = world.write(lambda tx: loops.add(tx, SCOPE, "rotate the key", when=1)).ref
    made = brief(world, "mostly noise today", promote=[keep], noise=[drop], done=[loop])
    (one,) = waiting(world)
    assert (one.ref, one.text, one.principal) == (made.ref, "mostly noise today", "owner")
    assert (one.promote, one.noise, one.done) == ([keep], [drop], [loop])
    (done,) = consume(world)
    assert (done.promoted, done.expired, done.done, done.skipped) == ([keep], [drop], [loop], [])
    assert world.state(keep).valid_to is None
    assert [(refs.OPS[e.op], e.reason) for e in world.log(keep)][-1] == ("promote", "brief")
    assert [(refs.OPS[e.op], e.reason) for e in world.log(drop)][-1] == ("expire", "noise")
    assert [(refs.OPS[e.op], e.reason) for e in world.log(loop)][-1] == ("close", "done")
    assert [(refs.OPS[e.op], e.reason) for e in world.log(made.ref)] == [
        ("create", "brief"),
        ("close", "consumed"),
    ]
    assert waiting(world) == []
    with pytest.raises(NotFound, match="does not wait"):
        world.write(lambda tx: briefs.consume(tx, one))
    world.check()


def test_the_same_words_may_be_said_before_every_sleep(world: World) -> None:
    first = brief(world, "nothing special")
    assert brief(world, "nothing special").status == "known"
    consume(world)
    second = brief(world, "nothing special")
    assert second.status == "new" and second.ref != first.ref
    assert [one.ref for one in waiting(world)] == [second.ref]


def test_hints_that_cannot_be_followed_are_refused_at_once(world: World) -> None:
    plain, fact = world.add("plain").ref, world.fact("it", "is", "so").ref
    loop = world.write(lambda tx: loops.add(tx, SCOPE, "do it", when=1)).ref
    keep = note(world, "keep")
    with pytest.raises(Refused, match="no short note"):
        brief(world, "", promote=[plain])
    with pytest.raises(Refused, match="verified memory"):
        brief(world, "", noise=[fact])
    with pytest.raises(Refused, match="no loop"):
        brief(world, "", done=[fact])
    with pytest.raises(NotFound):
        brief(world, "", promote=[bytes(32)])
    with pytest.raises(UsageError, match="two hints"):
        brief(world, "", promote=[keep], noise=[keep])
    world.do(loops.finish, loop)
    with pytest.raises(Refused, match="done already"):
        brief(world, "", done=[loop])
    with pytest.raises(BadInput, match="says nothing"):
        brief(world, " ")
    assert waiting(world) == []
    assert brief(world, "", promote=[keep]).status == "new"


def test_hints_that_went_stale_are_skipped_and_named(world: World) -> None:
    keep, drop = note(world, "keep"), note(world, "drop")
    loop = world.write(lambda tx: loops.add(tx, SCOPE, "do it", when=1)).ref
    brief(world, "", promote=[keep], noise=[drop], done=[loop])
    world.do(tiers.promote, keep)
    world.do(pins.pin, drop)
    part = world.found(loop).part
    world.write(lambda tx: forget.forget(tx, part, loop))
    (done,) = consume(world)
    why = dict(done.skipped)
    assert why[keep] == "is kept for good already" and why[drop] == "is pinned"
    assert set(why) == {keep, drop, loop}
    assert waiting(world) == []


def test_noise_by_the_word_of_the_owner_only_and_hints_on_ones_own(world: World) -> None:
    owners, own = note(world, "the owner's"), note(world, "the agent's", AGENT)
    with pytest.raises(ScopeRefused):
        brief(world, "", AGENT, noise=[own])
    assert audit(world)[-1] == ("brief", "not_owner")
    with pytest.raises(Refused, match="somebody else"):
        brief(world, "", AGENT, promote=[owners])
    assert brief(world, "", AGENT, promote=[own]).status == "new"
    (done,) = consume(world)
    assert done.promoted == [own]


def test_what_has_expired_comes_back_by_the_owners_word_only(world: World) -> None:
    """Consolidation acts for whoever left the brief, not for the owner who runs it."""
    early, late = note(world, "let go early", AGENT), note(world, "let go late", AGENT)
    brief(world, "", AGENT, promote=[late])
    for ref in (early, late):
        world.do(tiers.noise, ref)
    with pytest.raises(Refused, match="only the owner brings it back"):
        brief(world, "", AGENT, promote=[early])
    (done,) = consume(world)
    assert done.promoted == []
    assert done.skipped == [(late, "has expired, only the owner brings it back")]
    assert brief(world, "", promote=[early, late]).status == "new"
    (done,) = consume(world)
    assert done.promoted == [early, late]


def test_what_looks_like_a_brief_asks_for_nothing(world: World, tmp_path: Path) -> None:
    drop = note(world, "drop")
    hints = {"promote": [], "noise": [drop.hex()], "done": []}
    forged = Incoming(text="forged", kind="brief", meta={"hints": hints})
    world.write(lambda tx: admit(tx, forged))
    assert waiting(world) == []
    real = brief(world, "real", noise=[drop])
    assert [one.ref for one in waiting(world)] == [real.ref]
    pack = io.BytesIO()
    export(world.store, GRANT, pack)
    pack.seek(0)
    there = World(tmp_path / "there")
    import_pack(there.store, OWNER, pack, trust=True)
    assert waiting(there) == []


def test_nothing_is_derived_from_a_brief(world: World) -> None:
    brief(world, "I live in Rome.")
    world.add("I live in Turin.", role="user")
    world.derive()
    assert any("Turin" in text for text in world.texts())
    assert not any("Rome" in text for text in world.texts())
