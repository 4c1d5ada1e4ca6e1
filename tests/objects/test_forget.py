"""Forgetting: what goes, what stays, what is held and taken back, and that no read leaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import chains, encode, forget, forget_plan, holds, memories, refs, tombs
from remem.objects.admit import admit
from remem.objects.derive import queue
from remem.objects.errors import Blocked, Forgotten, NotFound, Refused
from remem.objects.fsck import verify
from remem.objects.model import Deriver, Incoming, Memory, Scope, Span
from remem.objects.reader import Part, Reader
from remem.objects.scope import Actor, Grant, maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx
from remem.objects.views import Lens

HOME = Scope("local", "default", "home", "none", "main")
ME = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)


class Desk:
    """A store with short words for what the tests do to it."""

    def __init__(self, root: Path) -> None:
        self.store = Store.create(str(root))
        self.part = self.store.write(ME, lambda tx: tx.part(HOME))

    def do(self, change: Callable[[Tx], object]) -> object:
        return self.store.write(ME, change)

    def say(self, text: str, **fields: object) -> bytes:
        record = Incoming(text=text, **fields)  # type: ignore[arg-type]
        return self.store.write(ME, lambda tx: admit(tx, record).ref)

    def claim(
        self,
        text: str,
        *cites: bytes,
        triple: tuple[str, str, str] | None = None,
        deriver: str = "rules",
        kind: str = "fact",
        status: str = "provisional",
        span: Span | None = None,
    ) -> bytes:
        memory = Memory(
            encode.ZERO_SALT, HOME, kind, text, triple, list(cites), span, Deriver(deriver), 900,
            None, None, None, [], "", [], {},
        )  # fmt: skip

        def change(tx: Tx) -> bytes:
            if triple is not None:
                return chains.put(
                    tx, self.part, memory, status=status, single=True, valid_from=tx.now
                )[0]
            ref = memories.create(tx, self.part, memory, status=status, valid_from=None)
            assert ref is not None
            return ref

        return self.store.write(ME, change)

    def recast(self, ref: bytes, text: str, *cites: bytes) -> None:
        """Give a memory other words on other evidence."""

        def change(tx: Tx) -> None:
            state, old = memories.head(tx, self.part, ref)
            new = msgspec.structs.replace(
                old, salt=encode.ZERO_SALT, text=text, cites=list(cites), span=None
            )
            memories.replace(tx, self.part, ref, state, new)

        self.do(change)

    def forget(self, ref: bytes, **options: object) -> forget.Forgetting:
        return self.store.write(
            ME,
            lambda tx: forget.forget(tx, self.part, ref, **options),  # type: ignore[arg-type]
        )

    def status(self, ref: bytes) -> str:
        return refs.STATUSES[self.state(ref).status]

    def state(self, ref: bytes) -> refs.RefState:
        with self.store.read(maintenance_grant()) as reader:
            state = reader.state(self.part, ref)
            assert state is not None
            return state

    def head(self, ref: bytes) -> encode.Obj:
        with self.store.read(maintenance_grant()) as reader:
            head = self.state(ref).head
            assert head is not None
            return reader.object(self.part, head)

    def problems(self) -> list[object]:
        return list(verify(self.store).problems)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "store")
    yield made
    made.store.close()


# -- what goes ----------------------------------------------------------------------------------


def test_what_rests_on_nothing_else_goes_too(desk: Desk) -> None:
    said = desk.say("I live in Turin now")
    other = desk.say("Rex is a dog")
    memory = desk.claim("Ann lives in Turin", said, triple=("Ann", "lives_in", "Turin"))
    kept = desk.claim("Rex is a dog", other, triple=("Rex", "is", "dog"))
    took = desk.forget(said, reason="mistake")
    assert (took.observations, took.memories, took.lost_citation) == ([said], [memory], [])
    assert [desk.status(r) for r in (said, memory, other, kept)] == [
        "erased", "erased", "verified", "provisional",
    ]  # fmt: skip
    assert desk.problems() == []
    with desk.store.read(maintenance_grant()) as reader:
        assert reader.cited_by(desk.part, said) == []


def test_what_rests_on_other_evidence_loses_one_citation(desk: Desk) -> None:
    one, two = desk.say("I live in Turin"), desk.say("my home is in Turin")
    memory = desk.claim("Ann lives in Turin", one, triple=("Ann", "lives_in", "Turin"))
    assert desk.claim("Ann lives in Turin", two, triple=("Ann", "lives_in", "Turin")) == memory
    took = desk.forget(one)
    assert (took.memories, took.lost_citation) == ([], [memory])
    head = desk.head(memory)
    assert isinstance(head, Memory) and head.cites == [two]
    assert desk.problems() == []
    took = desk.forget(two)
    assert took.memories == [memory]
    assert desk.problems() == []


def test_the_span_stays_with_its_own_evidence(desk: Desk) -> None:
    one, two, three = (desk.say(f"number {n}: tea at four") for n in ("one", "two", "three"))
    memory = desk.claim("tea at four", one, two, three, span=Span(1, 12, 23))
    desk.forget(one)
    head = desk.head(memory)
    assert isinstance(head, Memory)
    assert (head.cites, head.span) == ([two, three], Span(0, 12, 23))
    desk.forget(two)
    head = desk.head(memory)
    assert isinstance(head, Memory)
    assert (head.cites, head.span) == ([three], None)


def test_a_summary_that_gives_it_away_goes_and_is_made_anew(desk: Desk) -> None:
    one, two = desk.say("the codeword is zorvexquark"), desk.say("tea is served at four")
    summary = desk.claim("codeword zorvexquark, tea at four", one, two, kind="summary")
    clean = desk.claim("tea is at four", one, two, kind="summary")
    took = desk.forget(one)
    assert took.memories == [summary]
    assert took.lost_citation == [clean]
    with desk.store.read(maintenance_grant()) as reader:
        assert queue.due(reader, desk.part, "rules", 1 << 62) == [two]
    assert desk.problems() == []
    # what it said of the tea may be said again
    assert desk.claim("tea at four", two, kind="summary") != summary
    with pytest.raises(Blocked):
        desk.claim("Codeword ZORVEXQUARK, tea at four!", two, kind="summary")


def test_a_fact_with_a_detail_of_the_forgotten_evidence_goes(desk: Desk) -> None:
    one, two = desk.say("I work at Acme, badge qx7731"), desk.say("Acme is where I work")
    fact = desk.claim("Ann works at Acme, badge qx7731", one, triple=("Ann", "works_at", "Acme"))
    desk.claim("Ann works at Acme", two, triple=("Ann", "works_at", "Acme"))
    took = desk.forget(one)
    assert took.memories == [fact]
    assert desk.claim("Ann works at Acme", two, triple=("Ann", "works_at", "Acme")) != fact
    assert desk.problems() == []


def test_an_earlier_revision_counts(desk: Desk) -> None:
    one, two = desk.say("the codeword is zorvexquark"), desk.say("tea is served at four")
    memory = desk.claim("the codeword is zorvexquark", one)
    desk.recast(memory, "tea is at four", two)
    other = desk.claim("tea at four", one)
    desk.recast(other, "at four there is tea", two)
    took = desk.forget(one)
    assert took.memories == [memory]  # its bytes would have kept the word
    assert desk.status(other) == "provisional"  # its earlier words gave nothing away
    assert desk.problems() == []


def test_a_stated_fact_goes_with_its_sentence(desk: Desk) -> None:
    told = desk.say("Ann lives in Turin", kind="statement")
    fact = desk.claim("Ann lives in Turin", told, deriver="stated", status="verified")
    took = desk.forget(fact)
    assert (took.memories, took.observations) == ([fact], [told])
    assert desk.problems() == []


def test_a_sentence_that_something_else_rests_on_stays(desk: Desk) -> None:
    told = desk.say("Ann lives in Turin", kind="statement")
    turn = desk.say("and she has a dog")
    fact = desk.claim("Ann lives in Turin", told, deriver="stated", status="verified")
    other = desk.claim("Ann lives in Italy", told)
    on_turn = desk.claim("Ann has a dog", turn, deriver="stated", status="verified")
    assert desk.forget(fact).observations == []
    assert desk.forget(on_turn).observations == []  # evidence, and no sentence of its own
    assert desk.status(other) == "provisional"
    assert desk.forget(other).observations == []
    assert [desk.status(r) for r in (told, turn)] == ["verified", "verified"]


def test_a_chain_closes_over_what_goes(desk: Desk) -> None:
    facts = []
    for town in ("Turin", "Lyon", "Oslo"):
        said = desk.say(f"I live in {town}")
        facts.append(
            (said, desk.claim(f"Ann lives in {town}", said, triple=("Ann", "lives_in", town)))
        )
    assert desk.state(facts[0][1]).replaced_by == facts[1][1]
    desk.forget(facts[1][0])
    assert desk.state(facts[0][1]).replaced_by == facts[2][1]
    assert desk.problems() == []


def test_many_at_once_are_judged_together(desk: Desk) -> None:
    said = [desk.say(f"turn {n} about tea") for n in range(40)]
    both = desk.claim("tea is at four", said[0], said[1])
    more = desk.claim("tea is hot", said[1], said[39])
    took = desk.store.write(
        ME, lambda tx: forget.forget_many(tx, [(desk.part, ref) for ref in said[:39]])
    )
    assert took.memories == [both] and took.lost_citation == [more]
    assert len(took.observations) == 39
    assert desk.problems() == []


def test_forgetting_twice_changes_nothing(desk: Desk) -> None:
    said = desk.say("I live in Turin")
    desk.forget(said, reason="one")
    before = desk.state(said)
    took = desk.forget(said, reason="two")
    assert took.known == [said] and took.observations == []
    assert desk.state(said) == before
    with pytest.raises(NotFound):
        desk.forget(bytes(32))


# -- no read leaks ------------------------------------------------------------------------------


def test_every_method_of_the_reader_refuses_what_waits_for_a_purge(desk: Desk) -> None:
    said = desk.say("the codeword is zorvexquark")
    desk.do(lambda tx: tx.txn.put("receipts", desk.part.prefix + said, b"\x92\xa1a\x90"))
    revised = desk.store.write(ME, lambda tx: _revise(tx, desk.part, said, "codeword zorvexquark"))
    memory = desk.claim("zorvexquark is the codeword", revised)
    with desk.store.read(maintenance_grant()) as reader:  # the control
        for found in (said, revised, memory):
            assert b"zorvexquark" in (reader.object_bytes(desk.part, found) or b"")
            assert "zorvexquark" in reader.object(desk.part, found).text
        assert reader.receipt(desk.part, said) is not None
        assert reader.cited_by(desk.part, revised) == [memory]
    desk.forget(said, reason="mistake")
    with desk.store.env().read() as txn:
        assert txn.get("objects", desk.part.prefix + said) is not None  # the bytes are there
    narrow = Grant("owner", "local", "default", ("home",), agent="none", session="main")
    for grant in (maintenance_grant(), narrow):
        with desk.store.read(grant) as reader:
            for found in (said, revised, memory):
                assert reader.object_bytes(desk.part, found) is None
                with pytest.raises(
                    Forgotten, match=r"was forgotten on \d{4}-\d\d-\d\d \(mistake\)"
                ):
                    reader.object(desk.part, found)
                assert reader.find(found.hex()).ref in (said, memory)
            assert reader.receipt(desk.part, said) is None
            assert reader.cited_by(desk.part, revised) == []
    stranger = Grant("bo", "local", "default", None, agent="other")
    with desk.store.read(stranger) as reader, pytest.raises(NotFound):
        reader.object(desk.part, said)  # as an unknown one


def _revise(tx: Tx, part: Part, ref: bytes, text: str) -> bytes:
    state = tx.reader.state(part, ref)
    assert state is not None and state.head is not None
    old = tx.reader.object(part, state.head)
    new = tx.put_revision(part, ref, msgspec.structs.replace(old, salt=encode.ZERO_SALT, text=text))
    tx.record(part, "revise", ref, state, new=new)
    return new


@pytest.mark.parametrize("include", [frozenset(), frozenset(refs.STATUSES)])
@pytest.mark.parametrize("view", ["now", "history", "changes"])
def test_no_lens_shows_it_at_any_time(desk: Desk, view: str, include: frozenset[str]) -> None:
    said = desk.say("the codeword is zorvexquark", asserted=1)
    memory = desk.claim("zorvexquark is the codeword", said)
    created = desk.state(said).created
    lenses = [
        Lens(1 << 60, view, as_of=as_of, known_at=known, include=include)
        for as_of in (None, 1, created)
        for known in (None, created + 1)
    ]

    def seen(reader: Reader) -> int:
        return sum(
            lens.see(reader, desk.part, ref, ref) is not None
            for lens in lenses
            for ref in (said, memory)
        )

    with desk.store.read(maintenance_grant()) as reader:
        assert view == "changes" or seen(reader) > 4  # the control
    desk.forget(said)
    with desk.store.read(maintenance_grant()) as reader:
        assert seen(reader) == 0


def test_nothing_is_recorded_on_what_was_forgotten(desk: Desk) -> None:
    said = desk.say("the codeword is zorvexquark")
    desk.forget(said)

    def change(op: str) -> None:
        def run(tx: Tx) -> None:
            state = tx.reader.state(desk.part, said)
            assert state is not None
            tx.record(desk.part, op, said, state)

        desk.do(run)

    for op in ("close", "reopen", "pin", "release", "approve", "revise", "expire"):
        with pytest.raises(Forgotten):
            change(op)
    change("hold")  # the control: what is about the bytes may be recorded
    assert desk.state(said).flags & refs.HELD
    with desk.store.read(maintenance_grant()) as reader:
        last = [row.outcome for _, _, row in reader.audit_rows()][-2]
    assert last == "forgotten"


def test_a_write_in_the_same_transaction_sees_it_gone(desk: Desk) -> None:
    said = desk.say("the codeword is zorvexquark")

    def run(tx: Tx) -> str:
        forget.forget(tx, desk.part, said)
        assert tx.reader.object_bytes(desk.part, said) is None
        return admit(tx, Incoming(text="the codeword is zorvexquark")).status

    assert desk.do(run) == "blocked"


# -- holds --------------------------------------------------------------------------------------


def hold(desk: Desk, ref: bytes) -> bool:
    return desk.store.write(ME, lambda tx: holds.hold(tx, desk.part, ref, reason="case-7"))


def test_what_is_held_is_not_forgotten(desk: Desk) -> None:
    said = desk.say("the codeword is zorvexquark")
    memory = desk.claim("zorvexquark is the codeword", said)
    assert hold(desk, said) and not hold(desk, said)
    with pytest.raises(Refused, match="is held") as caught:
        desk.forget(said)
    assert "hold release" in caught.value.hint
    with desk.store.read(maintenance_grant()) as reader:
        last = [row for _, _, row in reader.audit_rows()][-1]
        assert (last.action, last.outcome, last.resource) == ("forget", "held", said)
        (found,) = holds.held(reader)
        assert found[1] == said and found[3].reason == "case-7"
    assert [desk.status(r) for r in (said, memory)] == ["verified", "provisional"]
    assert desk.store.write(ME, lambda tx: holds.release(tx, desk.part, said))
    assert not desk.store.write(ME, lambda tx: holds.release(tx, desk.part, said))
    assert desk.forget(said).memories == [memory]


def test_a_hold_on_what_was_derived_keeps_its_evidence(desk: Desk) -> None:
    one, two = desk.say("the codeword is zorvexquark"), desk.say("tea at four")
    memory = desk.claim("zorvexquark is the codeword", one)
    grown = desk.claim("tea is at four", one, two)
    hold(desk, memory)
    with pytest.raises(Refused, match="derived from"):
        desk.forget(one)
    assert desk.forget(two).lost_citation == [grown]  # the control
    took = desk.store.write(
        ME, lambda tx: forget.forget_many(tx, [(desk.part, one), (desk.part, grown)])
    )
    assert (took.held, took.memories) == ([one], [grown])
    assert desk.status(one) == "verified"


def test_a_held_sentence_keeps_its_fact(desk: Desk) -> None:
    told = desk.say("Ann lives in Turin", kind="statement")
    fact = desk.claim("Ann lives in Turin", told, deriver="stated", status="verified")
    hold(desk, told)
    with pytest.raises(Refused):
        desk.forget(fact)
    assert desk.status(fact) == "verified"


# -- taking back --------------------------------------------------------------------------------


def restore(desk: Desk, ref: bytes) -> list[bytes]:
    return desk.store.write(ME, lambda tx: forget.restore(tx, desk.part, ref))


def test_a_forgetting_can_be_taken_back_while_the_bytes_wait(desk: Desk) -> None:
    one, two = desk.say("I live in Turin"), desk.say("my home is in Turin")
    memory = desk.claim("Ann lives in Turin", one, triple=("Ann", "lives_in", "Turin"))
    alone = desk.claim("Ann likes Turin", one, triple=("Ann", "likes", "Turin"))
    desk.claim("Ann lives in Turin", two, triple=("Ann", "lives_in", "Turin"))
    head, cites = desk.state(memory).head, desk.head(memory)
    desk.forget(one)
    assert desk.state(memory).head != head
    assert sorted(restore(desk, one)) == sorted([one, alone])
    assert [desk.status(r) for r in (one, alone, memory)] == [
        "verified", "provisional", "provisional",
    ]  # fmt: skip
    assert (desk.state(memory).head, desk.head(memory)) == (head, cites)
    assert desk.say("I live in Turin") == one  # known, not blocked
    assert desk.problems() == []
    with pytest.raises(NotFound):
        restore(desk, one)
    desk.forget(one)
    assert desk.status(alone) == "erased"
    assert desk.problems() == []


def test_a_stated_fact_comes_back_with_its_sentence(desk: Desk) -> None:
    told = desk.say("Ann lives in Turin", kind="statement")
    fact = desk.claim("Ann lives in Turin", told, deriver="stated", status="verified")
    desk.forget(fact)
    assert set(restore(desk, fact)) == {fact, told}
    assert desk.problems() == []


def test_what_was_purged_cannot_be_taken_back(desk: Desk) -> None:
    from remem.objects import purge

    said = desk.say("I live in Turin")
    desk.forget(said)
    purge.next_generation(desk.store, ME, [(desk.part, said)])
    with pytest.raises(Refused, match=r"bytes .* are gone"):
        restore(desk, said)


# -- planning -----------------------------------------------------------------------------------


def test_a_plan_changes_nothing_and_counts_what_will_go(desk: Desk) -> None:
    one, two = desk.say("the codeword is zorvexquark"), desk.say("tea at four")
    desk.claim("zorvexquark is the codeword", one)
    desk.claim("tea is at four", one, two)
    with desk.store.read(maintenance_grant()) as reader:
        before = [list(reader.txn.scan(table)) for table in ("refs", "log", "audit", "cites")]
        planned = forget_plan.plan(reader, [(desk.part, one), (desk.part, one)])
        after = [list(reader.txn.scan(table)) for table in ("refs", "log", "audit", "cites")]
    assert before == after
    took = desk.forget(one)
    assert [e.ref for e in planned.erase] == [*took.observations, *took.memories]
    assert [loss.ref for loss in planned.lose] == took.lost_citation


@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True), max_size=6),
    st.sets(st.integers(0, 5)),
    st.sets(st.integers(0, 5)),
)
def test_nothing_stays_that_rests_on_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    cited: list[list[int]],
    going: set[int],
    kept: set[int],
) -> None:
    """Against a model: sets of observations, memories citing some, some of each held."""
    desk = Desk(tmp_path_factory.mktemp("model") / "store")
    said = [desk.say(f"turn {'abcdef'[n]}") for n in range(6)]
    made = [
        desk.claim(f"claim {'uvwxyz'[n]}", *(said[c] for c in cites))
        for n, cites in enumerate(cited)
    ]
    held = {n for n in kept if n < len(made)}
    for n in held:
        hold(desk, made[n])
    gone = set(going)
    while any(set(cited[n]) <= gone for n in held):
        gone -= {c for n in held if set(cited[n]) <= gone for c in cited[n]}
    items = [(desk.part, said[n]) for n in sorted(going)]
    took = desk.store.write(ME, lambda tx: forget.forget_many(tx, items))
    assert set(took.observations) == {said[n] for n in gone}
    assert set(took.held) == {said[n] for n in going - gone}
    assert set(took.memories) == {made[n] for n, cites in enumerate(cited) if set(cites) <= gone}
    assert set(took.lost_citation) == {
        made[n] for n, cites in enumerate(cited) if set(cites) & gone and not set(cites) <= gone
    }
    assert desk.problems() == []
    with desk.store.read(maintenance_grant()) as reader:
        waiting = {ref for ref, tomb in tombs.all_of(reader, desk.part) if tomb.purged is None}
    assert waiting == {*took.observations, *took.memories}
    desk.store.close()
