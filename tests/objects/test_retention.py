"""Retention: what a rule selects, what it must leave alone, exact counts, age, audit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import chains, encode, holds, refs, retention
from remem.objects.admit import admit
from remem.objects.backup import backup
from remem.objects.errors import NotFound, UsageError
from remem.objects.fsck import verify
from remem.objects.model import Deriver, Incoming, Memory, Scope
from remem.objects.reader import Part
from remem.objects.retention import Due, Rule
from remem.objects.scope import Actor, Grant, maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx

HOME = Scope("local", "default", "home", "none", "main")
ME = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)
DAY = 86_400_000_000
FAR = 1 << 60  # an instant long after every record time


def rule(**fields: object) -> Rule:
    plain: dict[str, object] = {
        "number": 0, "tenant": "local", "profile": "default", "collection": "", "type": "",
        "kind": "", "tier": "", "role": "", "origin": "", "status": "", "age": 0,
        "action": "forget", "created": 0, "principal": "",
    }  # fmt: skip
    return Rule(**{**plain, **fields})  # type: ignore[arg-type]


class Desk:
    """A store, the partition, and short words."""

    def __init__(self, root: Path) -> None:
        self.store = Store.create(str(root))
        self.part: Part = self.store.write(ME, lambda tx: tx.part(HOME))

    def say(self, text: str, **fields: object) -> bytes:
        record = Incoming(text=text, **fields)  # type: ignore[arg-type]
        return self.store.write(ME, lambda tx: admit(tx, record).ref)

    def claim(self, text: str, *cites: bytes, status: str = "provisional") -> bytes:
        memory = Memory(
            encode.ZERO_SALT, HOME, "fact", text, ("it", "is", text), list(cites), None,
            Deriver("rules"), 900, None, None, None, [], "", [], {},
        )  # fmt: skip
        return self.store.write(
            ME,
            lambda tx: chains.put(
                tx, self.part, memory, status=status, single=False, valid_from=tx.now
            )[0],
        )

    def set(self, **fields: object) -> Rule:
        made = rule(**fields)
        return self.store.write(ME, lambda tx: retention.add(tx, made))

    def due(self, made: Rule, now: int = FAR) -> Due:
        with self.store.read(maintenance_grant()) as reader:
            return retention.due(reader, made, now)

    def run(self, now: int = FAR) -> list[Due]:
        return retention.run(self.store, ME, now=now)

    def mark(self, ref: bytes, op: str) -> None:
        def change(tx: Tx) -> None:
            state = tx.reader.state(self.part, ref)
            assert state is not None
            tx.record(self.part, op, ref, state)

        self.store.write(ME, change)

    def status(self, *found: bytes) -> list[str]:
        with self.store.read(maintenance_grant()) as reader:
            states = [reader.state(self.part, ref) for ref in found]
            return [refs.STATUSES[s.status] for s in states if s is not None]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "store")
    yield made
    made.store.close()


# -- rules --------------------------------------------------------------------------------------


def test_rules_are_numbered_listed_and_dropped(desk: Desk, tmp_path: Path) -> None:
    one = desk.set(kind="command", age=90 * DAY)
    two = desk.set(tier="short", age=8 * DAY, action="expire", collection="home")
    assert (one.number, two.number, one.principal) == (1, 2, "owner")
    assert one.created > 0
    with desk.store.read(ME.grant) as reader:
        assert retention.rules(reader) == [one, two]
    assert desk.store.write(ME, lambda tx: retention.drop(tx, 1)) == one
    three = desk.set(role="tool", age=DAY)
    assert three.number == 3
    with desk.store.read(maintenance_grant()) as reader:
        assert retention.rules(reader) == [two, three]
        rows = [(r.action, r.outcome) for _, _, r in reader.audit_rows() if r.action == "retain"]
    assert rows == [
        ("retain", "set-1"), ("retain", "set-2"), ("retain", "unset-1"), ("retain", "set-3"),
    ]  # fmt: skip
    with pytest.raises(NotFound):
        desk.store.write(ME, lambda tx: retention.drop(tx, 1))
    copy = Store(backup(desk.store, str(tmp_path / "copy")).path, readonly=True)
    with copy.read(maintenance_grant()) as reader:  # they travel with a backup
        assert retention.rules(reader) == [two, three]
    copy.close()


def test_rules_of_another_profile_are_out_of_sight(desk: Desk) -> None:
    desk.set(kind="command")
    desk.set(kind="turn", collection="work")
    other = Grant("owner", "local", "other", None, owner=True)
    home = Grant("owner", "local", "default", ("home",), owner=True)
    for grant, kinds in ((other, []), (home, ["command"]), (ME.grant, ["command", "turn"])):
        with desk.store.read(grant) as reader:
            assert [r.kind for r in retention.rules(reader)] == kinds
    they = Actor(other, "cli", Scope("local", "other", "home", "none", "main"))
    with pytest.raises(NotFound):
        desk.store.write(they, lambda tx: retention.drop(tx, 1))
    assert retention.run(desk.store, they, now=FAR) == []


@pytest.mark.parametrize(
    "fields",
    [
        {},  # about everything
        {"kind": "x", "action": "shred"},
        {"type": "draft"},
        {"status": "erased"},
        {"status": "nonsense"},
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(desk: Desk, fields: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        desk.set(**fields)
    with desk.store.read(maintenance_grant()) as reader:
        assert retention.rules(reader) == []


@pytest.mark.parametrize(
    ("text", "age"),
    [("90d", 90 * DAY), ("2w", 14 * DAY), ("1y", 365 * DAY), ("12h", DAY // 2),
     ("30 min", DAY // 48), ("5s", 5_000_000), ("0d", 0)],
)  # fmt: skip
def test_ages(text: str, age: int) -> None:
    assert retention.age_of(text) == age


@pytest.mark.parametrize("text", ["", "90", "d", "-1d", "90 days ago", "1.5d", "9" * 12 + "d"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(UsageError):
        retention.age_of(text)


@given(st.integers(0, 10_000), st.sampled_from(["s", "min", "h", "d", "w", "y"]))
def test_an_age_is_written_as_it_is_read(count: int, unit: str) -> None:
    age = retention.age_of(f"{count}{unit}")
    assert retention.age_of(retention.age_text(age)) == age


# -- what a rule is about -----------------------------------------------------------------------


def test_each_selector_selects(desk: Desk) -> None:
    made = {
        "kind": desk.say("ls -l", kind="command"),
        "tier": desk.say("for now", meta={"tier": "short"}),
        "role": desk.say("said a tool", role="tool"),
        "origin": desk.say("from the net", origin="untrusted"),
    }
    plain = desk.say("plain")
    memory = desk.claim("plain claim", plain)
    wanted: list[tuple[dict[str, object], set[bytes]]] = [
        ({"kind": "command"}, {made["kind"]}),
        ({"tier": "short"}, {made["tier"]}),
        ({"role": "tool"}, {made["role"]}),
        ({"origin": "untrusted"}, {made["origin"]}),
        ({"status": "provisional"}, {made["origin"], memory}),
        ({"type": "memory"}, {memory}),
        ({"type": "observation"}, {*made.values(), plain}),
        ({"kind": "command", "role": "tool"}, set()),
        ({"type": "observation", "collection": "work"}, set()),
    ]
    for fields, found in wanted:
        assert {ref for _, ref in desk.due(rule(**fields)).items} == found, fields


def test_age_counts_from_the_record_time_of_the_head(desk: Desk) -> None:
    old = desk.say("as it was", kind="note", asserted=1)  # said long ago, learnt now
    with desk.store.read(maintenance_grant()) as reader:
        state = reader.state(desk.part, old)
    assert state is not None
    made = rule(kind="note", age=10 * DAY)
    assert desk.due(made, state.created + 10 * DAY - 1).items == []
    assert len(desk.due(made, state.created + 10 * DAY).items) == 1

    def revise(tx: Tx) -> int:
        now = tx.reader.state(desk.part, old)
        assert now is not None and now.head is not None
        obj = tx.reader.object(desk.part, now.head)
        import msgspec

        new = tx.put_revision(
            desk.part, old, msgspec.structs.replace(obj, salt=encode.ZERO_SALT, text="new")
        )
        return tx.record(desk.part, "revise", old, now, new=new).time

    revised = desk.store.write(ME, revise)
    assert revised > state.created
    assert desk.due(made, revised + 10 * DAY - 1).items == []
    assert len(desk.due(made, revised + 10 * DAY).items) == 1
    desk.mark(old, "pin")
    desk.mark(old, "unpin")  # marks do not make it young
    assert len(desk.due(made, revised + 10 * DAY).items) == 1


# -- what it leaves alone -----------------------------------------------------------------------


def test_untrusted_volume_never_touches_what_was_approved(desk: Desk) -> None:
    said = desk.say("the deploy host is alpha-9", kind="turn")
    approved = desk.claim("deploy host alpha-9", said, status="verified")
    noise = [desk.say(f"noise {n}", kind="turn", origin="untrusted") for n in range(50)]
    desk.set(origin="untrusted", action="expire")
    desk.set(kind="turn", action="forget")
    desk.set(type="memory", action="expire")
    done = desk.run()
    assert (done[0].observations, done[0].memories) == (50, 0)
    assert (done[1].observations, done[1].memories, done[1].kept) == (50, 0, 1)
    assert (done[2].observations, done[2].memories) == (0, 0)
    assert desk.status(said, approved) == ["verified", "verified"]
    assert set(desk.status(*noise)) == {"erased"}
    # the control: a rule that names the status reaches it
    desk.set(status="verified", type="memory", action="expire")
    assert desk.run()[3].memories == 1
    assert desk.status(said, approved) == ["verified", "expired"]
    assert verify(desk.store).problems == []


def test_what_is_pinned_or_held_stays(desk: Desk) -> None:
    notes = [desk.say(f"note {n}", kind="note") for n in range(5)]
    desk.mark(notes[0], "pin")
    desk.store.write(ME, lambda tx: holds.hold(tx, desk.part, notes[1]))
    on_held = desk.claim("claim on a note", notes[2])
    desk.store.write(ME, lambda tx: holds.hold(tx, desk.part, on_held))
    on_pinned = desk.claim("another claim", notes[3])
    desk.mark(on_pinned, "pin")
    made = desk.set(kind="note")
    due = desk.due(made)
    assert (due.observations, due.pinned, due.held, due.kept) == (1, 1, 2, 1)
    (done,) = desk.run()
    assert (done.observations, done.pinned, done.held, done.kept) == (1, 1, 2, 1)
    assert desk.status(*notes) == ["verified"] * 4 + ["erased"]
    made = desk.set(kind="note", action="expire")
    done = desk.run()[1]
    assert (done.observations, done.pinned, done.held) == (2, 1, 1)


def test_what_rests_on_it_goes_with_it_and_is_counted(desk: Desk) -> None:
    one, two = desk.say("turn one", kind="turn"), desk.say("a note")
    alone, both = desk.claim("claim alone", one), desk.claim("claim both", one, two)
    made = desk.set(kind="turn")
    due = desk.due(made)
    assert (due.observations, due.memories, due.lost_citation) == (1, 1, 1)
    (done,) = desk.run()
    assert (done.observations, done.memories, done.lost_citation) == (1, 1, 1)
    assert desk.status(one, alone, both) == ["erased", "erased", "provisional"]


# -- what it does -------------------------------------------------------------------------------


def test_expired_is_withheld_forgotten_later_and_never_twice(desk: Desk) -> None:
    notes = [desk.say(f"note {n}", kind="note") for n in range(3)]
    desk.set(kind="note", action="expire", age=DAY)
    desk.set(kind="note", action="forget", age=2 * DAY)
    with desk.store.read(maintenance_grant()) as reader:
        state = reader.state(desk.part, notes[-1])
    assert state is not None
    assert [d.observations for d in desk.run(state.created + DAY)] == [3, 0]
    assert desk.status(*notes) == ["expired"] * 3
    before = _log(desk)
    assert [d.observations for d in desk.run(state.created + DAY)] == [0, 0]
    assert _log(desk) == before
    assert [d.observations for d in desk.run(state.created + 2 * DAY)] == [0, 3]
    assert desk.status(*notes) == ["erased"] * 3
    with desk.store.read(maintenance_grant()) as reader:
        reasons = [e.reason for e in reader.log(desk.part) if e.prev]
    assert reasons == ["retain-1"] * 3 + ["retain-2"] * 3
    assert verify(desk.store).problems == []


def test_a_chain_closes_over_an_expired_fact(desk: Desk) -> None:
    said = desk.say("something")
    facts = []
    for town in ("Turin", "Lyon"):
        memory = Memory(
            encode.ZERO_SALT, HOME, "fact", f"Ann lives in {town}", ("Ann", "lives_in", town),
            [said], None, Deriver("rules"), 900, None, None, None, [], "", [], {},
        )  # fmt: skip
        facts.append(
            desk.store.write(
                ME,
                lambda tx, m=memory: chains.put(  # type: ignore[misc]
                    tx, desk.part, m, status="provisional", single=True, valid_from=tx.now
                )[0],
            )
        )
    with desk.store.read(maintenance_grant()) as reader:
        first, second = (reader.state(desk.part, ref) for ref in facts)
    assert first is not None and second is not None and first.replaced_by == facts[1]
    desk.set(type="memory", action="expire")
    desk.store.write(ME, lambda tx: holds.hold(tx, desk.part, facts[0]))
    assert desk.run()[0].memories == 1
    with desk.store.read(maintenance_grant()) as reader:
        state = reader.state(desk.part, facts[0])
    assert state is not None and state.replaced_by is None
    assert verify(desk.store).problems == []


def test_a_dry_run_counts_what_a_run_does(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(30):
        said = desk.say(f"turn {n}", kind="turn" if n % 2 else "note")
        if n % 3 == 0:
            desk.claim(f"claim {n}", said)
    made = desk.set(kind="turn")
    before = _log(desk)
    due = desk.due(made)
    assert _log(desk) == before
    monkeypatch.setattr(retention, "BATCH", 4)  # several transactions
    (done,) = desk.run()
    assert (done.observations, done.memories) == (due.observations, due.memories) == (15, 5)
    assert sorted(r for _, r in done.items) == sorted(r for _, r in due.items)
    assert desk.due(made).items == []


def test_a_rule_is_about_its_tenant_and_collection_only(desk: Desk) -> None:
    here = desk.say("here", kind="note")
    there = desk.say("there", kind="note", collection="work")
    desk.set(kind="note", collection="home")
    assert desk.run()[0].observations == 1
    assert desk.status(here) == ["erased"]
    with desk.store.read(maintenance_grant()) as reader:
        work = next(p for p in reader.parts if p.collection == "work")
        state = reader.state(work, there)
    assert state is not None and refs.STATUSES[state.status] == "verified"


def _log(desk: Desk) -> list[refs.Entry]:
    with desk.store.read(maintenance_grant()) as reader:
        return list(reader.log(desk.part))
