"""Scopes and grants: names, and the wall that no reading and no writing crosses."""

from __future__ import annotations

import inspect
import itertools
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import encode, oid, refs, tombs
from remem.objects.admit import admit
from remem.objects.errors import AmbiguousId, NotFound, RememError, ScopeRefused, UsageError
from remem.objects.model import Deriver, Draft, Incoming, Memory, Scope
from remem.objects.reader import Part, Reader
from remem.objects.scope import (
    Actor,
    Grant,
    check_name,
    maintenance_grant,
    owner_grant,
)
from remem.objects.store import Store
from remem.objects.tx import Tx

W = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("_workers.py"))))


class Item(msgspec.Struct):
    """What one scope of the world holds."""

    scope: Scope
    part: Part
    ref: bytes
    revised: bytes
    memory: bytes
    seq: int
    lane: int
    text: str
    gone: bytes
    draft: bytes


def settle(tx: Tx, scope: Scope) -> Item:
    """An observation, a revision of it and a memory that cites it, each with its receipt."""
    part = tx.part(scope)
    text = "zorvex " + "/".join((scope.tenant, scope.profile, scope.collection, scope.agent,
                                 scope.session))  # fmt: skip
    ref = admit(tx, Incoming(text=text, source_id=text)).ref
    state = tx.reader.state(part, ref)
    assert state is not None
    revised = tx.put_object(part, W.observation("corrected " + text, scope, corrects=ref))
    entry = tx.record(part, "revise", ref, state, new=revised)
    memory = tx.put_object(
        part,
        Memory(
            encode.ZERO_SALT, scope, "fact", text, None, [ref], None, Deriver("test"), 900,
            None, None, None, [], "", [], {},
        ),
    )  # fmt: skip
    tx.create(part, memory, kind=refs.MEMORY, lane=state.lane, status="provisional")
    tx.txn.put("cites", part.prefix + ref + memory, b"")
    tx.txn.put("receipts", part.prefix + ref, b"receipt")
    draft = Draft(encode.ZERO_SALT, scope, Deriver("test"), tx.now, "", [], {})
    drafted = tx.put_object(part, draft)
    tx.create(part, drafted, kind=refs.DRAFT, lane=state.lane, status="rejected")
    gone = admit(tx, Incoming(text="gone " + text)).ref
    tx.record(part, "erase", gone, must_be(tx.reader.state(part, gone)), status="erased")
    tombs.put(tx, part, gone, tombs.Tomb(tx.now, "who", "private", [], None))
    return Item(scope, part, ref, revised, memory, entry.seq, state.lane, text, gone, drafted)


def scope_of(tenant: str, profile: str, collection: str, agent: str, session: str) -> Scope:
    return Scope(tenant, profile, collection, agent, session)


WORLD = [
    scope_of("a", "p1", "c1", "none", "main"),
    scope_of("a", "p1", "c1", "none", "s2"),
    scope_of("a", "p1", "c1", "bot", "main"),
    scope_of("a", "p1", "c1", "bot", "s2"),
    scope_of("a", "p1", "c2", "none", "main"),
    scope_of("a", "p2", "c1", "none", "main"),
    scope_of("b", "p1", "c1", "none", "main"),
]


def grant(tenant: str = "a", profile: str = "p1", collections: tuple[str, ...] | None = ("c1",),
          agent: str | None = None, session: str | None = None) -> Grant:  # fmt: skip
    return Grant("who", tenant, profile, collections, agent, session)


# grant -> which items of WORLD it covers
GRANTS = [
    (grant(), {0, 1, 2, 3}),
    (grant(collections=("c2",)), {4}),
    (grant(collections=("c1", "c2")), {0, 1, 2, 3, 4}),
    (grant(collections=None), {0, 1, 2, 3, 4}),
    (grant(collections=()), set()),
    (grant(profile="p2"), {5}),
    (grant(tenant="b"), {6}),
    (grant(agent="bot"), {2, 3}),
    (grant(session="s2"), {1, 3}),
    (grant(agent="bot", session="s2"), {3}),
    (grant(agent="nobody"), set()),
    (grant(tenant="A"), set()),
    (grant(tenant=""), set()),
    (maintenance_grant(), set(range(len(WORLD)))),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, list[Item]]]:
    store = Store.create(str(tmp_path_factory.mktemp("wall") / "s"))
    items = []
    for scope in WORLD:
        actor = W.actor(scope)
        items.append(store.write(actor, lambda tx, scope=scope: settle(tx, scope)))  # type: ignore[misc]
    assert W.check_books(store) == 6 * len(WORLD)
    yield store, items
    store.close()


def outcome(act: Callable[[], object]) -> object:
    """A value, a list in place of an iterator, or what an error says."""
    try:
        value = act()
        return list(value) if isinstance(value, Iterator) else value
    except RememError as error:
        return type(error), str(error), error.hint


# What each method that takes a partition answers about an item, and what it answers when the item
# lies in an agent or session outside the grant: exactly what it answers of one that never was.
ASK: dict[str, Callable[[Reader, Item], object]] = {
    "lane": lambda r, i: r.lane(i.part, i.lane),
    "lanes": lambda r, i: i.lane in r.lanes(i.part),
    "has_lanes": lambda r, i: r.has_lanes(i.part) == bool(r.lanes(i.part)),
    "sees_lane": lambda r, i: r.sees_lane(i.part, i.lane),
    "state": lambda r, i: r.state(i.part, i.ref),
    "states": lambda r, i: [ref for ref, _ in r.states(i.part) if ref in (i.ref, i.memory)],
    "state_at": lambda r, i: r.state_at(i.part, i.ref, 1 << 60),
    "entries": lambda r, i: [e.seq for e in r.entries(i.part, must(r, i))],
    "entry": lambda r, i: r.entry(i.part, i.seq),
    "log": lambda r, i: [e.seq for e in r.log(i.part) if e.ref in (i.ref, i.memory)],
    "last_seq": lambda r, i: r.last_seq(i.part) > 0,
    "object_bytes": lambda r, i: r.object_bytes(i.part, i.ref),
    "object": lambda r, i: r.object(i.part, i.revised),
    "bookkeeping": lambda r, i: r.bookkeeping(i.part, i.draft),
    "ref_of": lambda r, i: r.ref_of(i.part, i.revised) == i.ref,
    "cited_by": lambda r, i: r.cited_by(i.part, i.ref),
    "receipt": lambda r, i: r.receipt(i.part, i.ref),
    "erased": lambda r, i: r.erased(i.part, i.gone),
    "forgotten": lambda r, i: str(r.forgotten(i.part, i.gone)),
}
GONE = {
    "lanes": False,
    "has_lanes": True,  # some of the partition
    "sees_lane": False,
    "state": None,
    "states": [],
    "state_at": None,
    "log": [],
    "last_seq": True,  # of the partition, which is granted
    "object_bytes": None,
    "ref_of": False,
    "cited_by": [],
    "receipt": None,
    "erased": None,
}


def must(reader: Reader, item: Item) -> refs.RefState:
    """The state as its owner sees it, handed to a reader that may not."""
    del reader
    return STATES[item.ref]


STATES: dict[bytes, refs.RefState] = {}


def test_every_method_that_takes_a_partition_is_asked() -> None:
    public = inspect.getmembers(Reader, inspect.isfunction)
    taking = {
        name
        for name, function in public
        if "part" in inspect.signature(function).parameters and name[0] != "_"
    }
    assert taking - {"add_part"} == set(ASK)


@pytest.mark.parametrize(("grant", "covered"), GRANTS)
def test_a_reader_sees_what_its_grant_covers_and_nothing_else(
    world: tuple[Store, list[Item]], grant: Grant, covered: set[int]
) -> None:
    store, items = world
    with store.read(maintenance_grant()) as everything:
        STATES.update((i.ref, must_be(everything.state(i.part, i.ref))) for i in items)
    with store.read(grant) as reader:
        seen = {
            (part.tenant, part.profile, part.collection, *reader.lane(part, lane))
            for part in reader.parts
            for lane in reader.lanes(part)
        }
        narrow = grant.agent is not None or grant.session is not None
        partitions = {i for i, item in enumerate(items) if grant.sees(*names(item))}
        assert {msgspec.structs.astuple(WORLD[i]) for i in covered} == seen
        for number, item in enumerate(items):
            for name, ask in ASK.items():
                answer = outcome(lambda ask=ask, item=item: ask(reader, item))  # type: ignore[misc]
                if number in covered:
                    assert answer not in (None, False, []), (name, item.text)
                    assert not is_error(answer), (name, item.text, answer)
                elif number not in partitions:
                    want: object = False if name == "sees_lane" else NO_SCOPE
                    assert answer == want, (name, item.text)
                elif name in GONE:
                    assert narrow and answer == GONE[name], (name, item.text)
                else:
                    assert is_error(answer) and answer[0] is NotFound, (name, answer)  # type: ignore[index]


NO_SCOPE = (NotFound, "no such scope", "")


def names(item: Item) -> tuple[str, str, str]:
    return item.scope.tenant, item.scope.profile, item.scope.collection


def must_be(state: refs.RefState | None) -> refs.RefState:
    assert state is not None
    return state


def is_error(answer: object) -> bool:
    return isinstance(answer, tuple) and isinstance(answer[0], type)


@pytest.mark.parametrize(("grant", "covered"), GRANTS)
def test_a_foreign_id_answers_exactly_as_an_unknown_one(
    world: tuple[Store, list[Item]], grant: Grant, covered: set[int]
) -> None:
    store, items = world
    unknown = oid.digest(b"never stored")
    with store.read(grant) as reader:
        nothing = outcome(lambda: reader.find(unknown.hex()))
        assert is_error(nothing)
        for number, item in enumerate(items):
            for object_id in (item.ref, item.revised, item.memory):
                for digits in (64, 20, 7):
                    text = object_id.hex()[:digits]
                    answer = outcome(lambda text=text: reader.find(text))  # type: ignore[misc]
                    if number in covered:
                        assert not is_error(answer)
                        continue
                    alike = tuple(
                        str(part).replace(text, "ID") if isinstance(part, str) else part
                        for part in answer  # type: ignore[attr-defined]
                    )
                    expected = tuple(
                        part.replace(unknown.hex(), "ID") if isinstance(part, str) else part
                        for part in nothing  # type: ignore[attr-defined]
                    )
                    assert alike == expected
            if number not in covered and names(item) in [names_of(p) for p in reader.parts]:
                for ask in (reader.object, reader.entry):
                    missing: object = unknown if ask == reader.object else 10_000
                    theirs: object = item.ref if ask == reader.object else item.seq
                    blank = outcome(lambda: ask(item.part, missing))  # type: ignore[arg-type]  # noqa: B023
                    found = outcome(lambda: ask(item.part, theirs))  # type: ignore[arg-type]  # noqa: B023
                    assert shape(found, theirs) == shape(blank, missing)


def names_of(part: Part) -> tuple[str, str, str]:
    return part.tenant, part.profile, part.collection


def shape(answer: object, name: object) -> object:
    """An error without the id or number that was asked for."""
    assert is_error(answer)
    short = oid.short(name) if isinstance(name, bytes) else str(name)
    return tuple(p.replace(short, "X") if isinstance(p, str) else p for p in answer)  # type: ignore[attr-defined]


def test_a_part_that_was_made_up_opens_nothing(world: tuple[Store, list[Item]]) -> None:
    store, items = world
    foreign, own = items[6], items[0]
    with store.read(grant()) as reader:
        for forged in (
            Part(foreign.part.number, "a", "p1", "c1", own.part.key, own.part.created),
            Part(own.part.number, "a", "p1", "c1", foreign.part.key, 0),
            Part(99, "a", "p1", "c1", own.part.key, 0),
        ):
            item = msgspec.structs.replace(foreign, part=forged)
            for name in ("state", "object", "object_bytes", "entry", "log", "states", "cited_by"):
                assert outcome(lambda n=name, i=item: ASK[n](reader, i)) == NO_SCOPE  # type: ignore[misc]
            assert reader.state(own.part, foreign.ref) is None
        assert reader.state(own.part, own.ref) is not None


def test_find_names_a_ref_a_revision_or_several(world: tuple[Store, list[Item]]) -> None:
    store, items = world
    item = items[0]
    with store.read(grant()) as reader:
        found = reader.find(item.ref.hex()[:12].upper())
        assert (found.ref, found.revision, found.part) == (item.ref, None, item.part)
        found = reader.find(item.revised.hex())
        assert (found.ref, found.revision) == (item.ref, item.revised)
        for bad in ("abc", "xyz" * 5, ""):
            with pytest.raises(UsageError):
                reader.find(bad)


def test_find_lists_what_a_short_prefix_may_mean(tmp_path: Path) -> None:
    """Ids cannot be chosen, so the refs are put in place directly."""
    store = Store.create(str(tmp_path / "s"))
    W.add(store, "a text")
    twins = [bytes([0xAB] * 5 + [i]) + bytes(26) for i in (1, 2)]

    def act(tx: Tx) -> None:
        part = tx.part(W.HOME)
        for twin in twins:
            tx.create(part, twin, kind=0, lane=1, status="verified")

    store.write(W.actor(), act)
    with store.read(W.actor().grant) as reader:
        with pytest.raises(AmbiguousId) as error:
            reader.find("ab" * 5)
        assert all(oid.short(twin) in error.value.hint for twin in twins)
        assert reader.find(twins[0].hex()[:12]).ref == twins[0]


def test_only_the_owner_reads_the_audit_chain(world: tuple[Store, list[Item]]) -> None:
    store, _ = world
    with store.read(grant()) as reader, pytest.raises(ScopeRefused):
        list(reader.audit_rows())
    with store.read(owner_grant(WORLD[0])) as reader:
        assert len(list(reader.audit_rows())) == reader.audit_head().seq > 0


# -- writing --------------------------------------------------------------------------------------


def rows(store: Store, action: str, outcome: str) -> int:
    with store.read(maintenance_grant()) as reader:
        return sum(r.action == action and r.outcome == outcome for _, _, r in reader.audit_rows())


@pytest.mark.parametrize(
    ("where", "allowed"),
    [
        ({}, True),
        ({"collection": "c1"}, True),
        ({"collection": "c2"}, False),
        ({"agent": "bot"}, True),
        ({"agent": "other"}, False),
        ({"session": "s9"}, True),
    ],
)
def test_a_writer_stays_within_its_grant(
    tmp_path: Path, where: dict[str, str], allowed: bool
) -> None:
    store = Store.create(str(tmp_path / "s"))
    actor = Actor(grant(agent="bot"), "mcp", scope_of("a", "p1", "c1", "bot", "main"))

    def act(tx: Tx) -> str:
        admit(tx, Incoming(text="before the refusal"))
        return admit(tx, Incoming(text="words", **where)).status  # type: ignore[arg-type]

    if allowed:
        assert store.write(actor, act) == "new"
        assert rows(store, "create", "done") == 2
        return
    with pytest.raises(ScopeRefused) as error:
        store.write(actor, act)
    assert error.value.exit_code == 3
    assert rows(store, "create", "scope_refused") == 1, "the refusal left no row"
    assert rows(store, "create", "done") == 0, "the change was not undone"
    assert W.check_books(store) == 0


def test_no_partition_is_made_or_changed_outside_the_grant(
    world: tuple[Store, list[Item]],
) -> None:
    store, items = world
    actor = Actor(grant(agent="bot"), "mcp", WORLD[2])
    with store.read(maintenance_grant()) as reader:
        states = {i.ref: must_be(reader.state(i.part, i.ref)) for i in items}
        before = reader.audit_head().seq
    for scope in (WORLD[4], WORLD[5], WORLD[6], scope_of("new", "p1", "c1", "bot", "main")):
        with pytest.raises(ScopeRefused):
            store.write(actor, lambda tx, scope=scope: tx.part(scope))  # type: ignore[misc]
    for item in (items[0], items[6]):  # another agent of the partition, another tenant
        with pytest.raises((ScopeRefused, NotFound)):
            store.write(
                actor,
                lambda tx, i=item: tx.record(i.part, "close", i.ref, states[i.ref]),  # type: ignore[misc]
            )
    others = items[2]  # of its scope, but another principal wrote it
    with pytest.raises(ScopeRefused, match="may not change what others wrote"):
        store.write(
            actor, lambda tx: tx.record(others.part, "close", others.ref, states[others.ref])
        )
    own = store.write(actor, lambda tx: admit(tx, Incoming(text="its own"))).ref

    def close(tx: Tx) -> None:
        tx.record(others.part, "close", own, must_be(tx.reader.state(others.part, own)))

    store.write(actor, close)
    with store.read(maintenance_grant()) as reader:
        assert len(reader.parts) == len({names(i) for i in items})
        assert all(reader.state(i.part, i.ref) == states[i.ref] for i in items)
        assert must_be(reader.state(others.part, own)).flags & refs.CLOSED
        refusals = [row.outcome for _, _, row in reader.audit_rows(after=before)]
        assert refusals.count("scope_refused") == 5 and refusals.count("done") == 2
        assert refusals.count("not_author") == 1
    W.check_books(store)


def test_a_grant_without_writing_writes_nothing(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "s"))
    writing = Actor(grant(), "mcp", WORLD[0])
    ref = store.write(writing, lambda tx: admit(tx, Incoming(text="there"))).ref
    reading = Actor(msgspec.structs.replace(grant(), writes=False), "mcp", WORLD[0])

    def close(tx: Tx) -> None:
        part = tx.reader.parts[0]
        tx.record(part, "close", ref, must_be(tx.reader.state(part, ref)))

    for act in (lambda tx: admit(tx, Incoming(text="more")), lambda tx: tx.part(WORLD[0]), close):
        with pytest.raises(ScopeRefused):
            store.write(reading, act)
    store.write(writing, close)
    assert W.check_books(store) == 2


# -- names ----------------------------------------------------------------------------------------


@given(st.text(max_size=30))
def test_a_name_is_taken_as_it_is_or_refused(name: str) -> None:
    try:
        clean = check_name("collection", name)
    except UsageError:
        assert not name.strip() or not name.isprintable() or "\u0300" <= max(name)
        return
    assert clean.strip() and clean.isprintable() and check_name("collection", clean) == clean


@pytest.mark.parametrize("name", ["", " ", "\t", "a\nb", "a\0b", "\u200b", "\ud800", "x" * 201])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(UsageError):
        check_name("collection", name)
    assert check_name("collection", "x" * 200) == "x" * 200


@pytest.mark.parametrize("part", ["collection", "agent", "session"])
def test_a_token_is_no_name_and_is_not_repeated(part: str) -> None:
    token = "remem_" + "aB3-_" * 8 + "xyz"
    for given_name in (token, f" {token}", token + "_", token + "\n"):
        with pytest.raises(UsageError, match="a token cannot be") as refused:
            check_name(part, given_name)
        assert "aB3" not in str(refused.value)
    assert check_name(part, "remem_notes") == "remem_notes"
    assert check_name(part, token[:-1]) == token[:-1]


def test_names_are_compared_in_one_form() -> None:
    composed, split = "caf\u00e9", "cafe\u0301"
    assert check_name("agent", split) == check_name("agent", composed) == composed


def test_the_longest_names_fit(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "s"))
    long = [letter * 200 for letter in "tpcas"]
    with pytest.raises(UsageError, match="600 bytes together, the limit is 508"):
        W.add(store, "words", Scope(*long))
    long[2] = "c" * 108
    assert W.add(store, "words", Scope(*long)).status == "new"
    assert W.add(store, "words", Scope(*long)).status == "known"
    assert W.check_books(store) == 1


def test_names_do_not_run_into_each_other(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "s"))
    for one, two in itertools.pairwise(["ab/c", "a/bc", "abc", "/abc"]):
        W.add(store, "words", Scope("t", one, two, "x", "y"))
    with store.read(maintenance_grant()) as reader:
        assert len(reader.parts) == 3
