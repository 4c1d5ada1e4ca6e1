"""Write transactions: entries and audit rows belong together, compare-and-set, record time."""

from __future__ import annotations

import runpy
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from remem.objects import audit, encode, oid, refs
from remem.objects.admit import admit
from remem.objects.errors import HeadMoved, IntegrityError, NotFound, Refused
from remem.objects.kv import Txn
from remem.objects.model import Deriver, Incoming, Memory, Scope
from remem.objects.reader import Reader
from remem.objects.scope import maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx

W = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("_workers.py"))))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(str(tmp_path / "s"))


def at(store: Store, now: int, act: Callable[[Tx], object]) -> int:
    """Run a change at a time of the clock; the record time that it got."""

    def run(txn: Txn) -> int:
        tx = Tx(txn, W.actor(), now)
        act(tx)
        tx.finish()
        return tx.now

    return store.env().write(run)


def rows(store: Store) -> list[audit.Row]:
    with store.read(maintenance_grant()) as reader:
        return [row for _, _, row in reader.audit_rows()]


def state_of(store: Store, ref: bytes) -> refs.RefState:
    with store.read(W.actor().grant) as reader:
        state = reader.state(reader.parts[0], ref)
        assert state is not None
        return state


def say(text: str) -> Callable[[Tx], object]:
    return lambda tx: admit(tx, Incoming(text=text))


# -- entries and rows -----------------------------------------------------------------------------


def test_every_change_has_exactly_one_row_with_the_digest_of_its_entry(store: Store) -> None:
    ref = W.add(store, "what changes").ref
    other = W.add(store, "what comes after").ref
    for op, fields in [
        ("revise", {"text": "better words", "reason": "typo"}),
        ("pin", {}),
        ("quarantine", {"status": "quarantined", "reason": "instruction"}),
        ("release", {"status": "provisional"}),
        ("close", {"valid_to": 1_000_000}),
        ("reopen", {"valid_to": None}),
        ("supersede", {"replaced_by": other}),
        ("rollback", {"new": ref, "replaced_by": None}),
        ("erase", {"status": "erased"}),
    ]:
        W.change(store, op, ref, **fields)
    done = rows(store)
    with store.read(W.actor().grant) as reader:
        part = reader.parts[0]
        entries = {entry.seq: entry for entry in reader.log(part)}
        assert len(entries) == len(done) == 11
        for row in done:
            entry = entries.pop(row.entry)
            assert row.digest == oid.digest(refs.encode_entry(entry))
            assert (row.action, row.resource, row.part) == (
                refs.OPS[entry.op], entry.ref, part.number
            )  # fmt: skip
            assert (row.time, row.principal, row.surface) == (
                entry.time, entry.principal, entry.surface
            )  # fmt: skip
            assert row.outcome == "done"
        assert not entries
        mine = [refs.OPS[e.op] for e in reader.entries(part, state_of(store, ref))]
    assert mine == ["erase", "rollback", "supersede", "reopen", "close", "release", "quarantine",
                    "pin", "revise", "create"]  # fmt: skip
    assert W.check_books(store) == 11


def test_rows_hold_no_content_and_no_digest_of_content(store: Store) -> None:
    text = "the combination is 4711"
    ref = W.add(store, text, source_id="secret-name").ref
    W.change(store, "revise", ref, text="the combination is 0815")
    with store.read(maintenance_grant()) as reader:
        raw = b"".join(data for _, data, _ in reader.audit_rows())
        objects = [data for _, data in reader.txn.scan("objects")]
        assert any(text.encode() in data for data in objects)  # positive control
    for secret in (text, "4711", "0815", "secret-name"):
        assert secret.encode() not in raw
        assert oid.digest(secret.encode()) not in raw


@pytest.mark.parametrize("count", [1, 4095, 4096, 4097, 8192])
def test_the_head_is_kept_however_many_rows_a_transaction_writes(store: Store, count: int) -> None:
    """Rows are written in blocks of 4096: the last one may have been written before the end."""

    def act(tx: Tx) -> None:
        for number in range(count):
            admit(tx, Incoming(text=f"item {number}"))

    store.write(W.actor(), act)
    W.add(store, "one more")
    assert W.check_books(store) == count + 1


@pytest.mark.parametrize("flushes", [0, 1, 2])
def test_the_head_is_kept_when_the_change_flushes_itself(store: Store, flushes: int) -> None:
    def act(tx: Tx) -> None:
        for number in range(flushes + 1):
            admit(tx, Incoming(text=f"item {number}"))
            for _ in range(flushes):
                tx.flush()

    store.write(W.actor(), act)
    W.add(store, "one more")
    assert W.check_books(store) == flushes + 2


def test_several_partitions_in_one_transaction(store: Store) -> None:
    scopes = [msgspec.structs.replace(W.HOME, collection=name) for name in "abc"]

    def act(tx: Tx) -> None:
        for number in range(30):
            scope = scopes[number % 3]
            admit(tx, Incoming(text=f"item {number}", collection=scope.collection))

    everywhere = W.actor(grant=msgspec.structs.replace(W.actor().grant, collections=None))
    store.write(everywhere, act)
    with store.read(maintenance_grant()) as reader:
        assert [reader.last_seq(part) for part in reader.parts] == [10, 10, 10]
        assert len({part.key for part in reader.parts}) == 3
    assert W.check_books(store) == 30


def test_reads_inside_a_transaction_see_its_changes(store: Store) -> None:
    def act(tx: Tx) -> None:
        part = tx.part(W.HOME)
        ref = admit(tx, Incoming(text="words")).ref
        state = tx.reader.state(part, ref)
        assert state is not None and state.last == 1
        tx.record(part, "pin", ref, state)
        after = tx.reader.state(part, ref)
        assert after is not None and after.flags == refs.PINNED
        tx.flush()
        assert [refs.OPS[e.op] for e in tx.reader.entries(part, after)] == ["pin", "create"]

    store.write(W.actor(), act)
    assert W.check_books(store) == 2


def test_an_error_undoes_everything(store: Store) -> None:
    W.add(store, "kept")

    def act(tx: Tx) -> None:
        admit(tx, Incoming(text="undone", collection=None))
        tx.flush()
        raise KeyError("mine")

    with pytest.raises(KeyError):
        store.write(W.actor(), act)
    assert W.check_books(store) == 1
    assert len(rows(store)) == 1


def test_a_second_beginning_of_a_ref_is_refused(store: Store) -> None:
    ref = W.add(store, "words").ref
    with pytest.raises(IntegrityError, match="exists already"):
        store.write(
            W.actor(),
            lambda tx: tx.create(tx.part(W.HOME), ref, kind=0, lane=1, status="verified"),
        )
    assert W.check_books(store) == 1


# -- compare and set ------------------------------------------------------------------------------


def test_a_head_that_moved_is_refused_and_audited(store: Store) -> None:
    ref = W.add(store, "version 0").ref
    W.change(store, "revise", ref, text="version 1", expected=ref)
    head = state_of(store, ref).head
    before = rows(store)
    with pytest.raises(HeadMoved) as error:
        W.change(store, "revise", ref, text="version 2", expected=ref)
    assert error.value.exit_code == 3 and "again" in error.value.hint
    refusal = rows(store)[len(before) :]
    assert [(r.action, r.outcome, r.resource, r.entry, r.digest) for r in refusal] == [
        ("revise", "head_moved", ref, 0, None)
    ]
    assert state_of(store, ref).head == head
    with store.read(W.actor().grant) as reader:
        texts = {encode.decode(data).text for _, data in reader.txn.scan("objects")}
    assert texts == {"version 0", "version 1"}, "the refused version was stored"
    W.change(store, "revise", ref, text="version 2", expected=head)
    assert W.check_books(store) == 3


def test_a_state_from_an_earlier_snapshot_is_refused(store: Store) -> None:
    """Without it a log could split: two entries that follow the same one."""
    ref = W.add(store, "words").ref
    old = state_of(store, ref)
    W.change(store, "pin", ref)
    with pytest.raises(HeadMoved):
        store.write(W.actor(), lambda tx: tx.record(tx.part(W.HOME), "hold", ref, old))
    fresh = state_of(store, ref)
    store.write(W.actor(), lambda tx: tx.record(tx.part(W.HOME), "hold", ref, fresh))
    assert state_of(store, ref).flags == refs.PINNED | refs.HELD
    assert W.check_books(store) == 3
    assert [row.outcome for row in rows(store)].count("head_moved") == 1


def test_a_refusal_that_is_no_case_for_the_audit_leaves_no_row(store: Store) -> None:
    def act(tx: Tx) -> None:
        admit(tx, Incoming(text="words"))
        raise Refused("not worth a row")

    with pytest.raises(Refused):
        store.write(W.actor(), act)
    assert rows(store) == []


def test_refusals_are_rows_of_the_same_chain(store: Store) -> None:
    W.add(store, "words")
    store.write(W.actor(), lambda tx: tx.refuse("release", "self_release", 1, bytes(32)))
    W.add(store, "more words")
    assert [row.outcome for row in rows(store)] == ["done", "self_release", "done"]
    assert W.check_books(store) == 2


def test_what_was_done_is_told_apart_from_what_was_refused(store: Store) -> None:
    W.add(store, "words")
    with pytest.raises(AssertionError):
        store.write(W.actor(), lambda tx: tx.refuse("alias", "done", 1, None))
    store.write(W.actor(), lambda tx: tx.done("alias", 1))
    store.write(W.actor(), lambda tx: tx.done("alias", 1, outcome="removed"))
    told = [(row.action, row.outcome, row.entry) for row in rows(store)]
    assert told[1:] == [("alias", "done", 0), ("alias", "removed", 0)]


def test_what_is_vouched_for_goes_with_the_next_row_or_with_one_of_its_own(store: Store) -> None:
    def act(tx: Tx) -> None:
        tx.vouch("gate", bytes(32))
        tx.refuse("release", "self_release", 0, None)
        tx.done("lift", 0)

    store.write(W.actor(), act)
    assert [row.said() for row in rows(store)] == [{"gate": bytes(32)}, None]
    store.write(W.actor(), lambda tx: tx.vouch("gate", bytes(range(32))))
    last = rows(store)[-1]
    assert (last.action, last.outcome, last.said()) == (
        "attest",
        "done",
        {"gate": bytes(range(32))},
    )


# -- record time ----------------------------------------------------------------------------------


def test_record_time_never_goes_back(store: Store) -> None:
    clock = [5_000_000, 1_000_000, -7, 5_000_000, 5_000_001, 9_000_000, 0]
    got = [at(store, now, say(f"item {i}")) for i, now in enumerate(clock)]
    assert got == [5_000_000, 5_000_001, 5_000_002, 5_000_003, 5_000_004, 9_000_000, 9_000_001]
    with store.read(W.actor().grant) as reader:
        assert [entry.time for entry in reader.log(reader.parts[0])] == got
    assert W.check_books(store) == len(clock)


def test_a_clock_that_was_never_set_still_counts(store: Store) -> None:
    assert [at(store, now, say(f"item {now}")) for now in (-50, -60, 0, 7)] == [1, 2, 3, 7]


def test_a_refusal_moves_the_clock_too(store: Store) -> None:
    at(store, 100, lambda tx: tx.refuse("release", "self_release", 0, None))
    assert at(store, 50, say("later")) == 101
    assert [row.time for row in rows(store)] == [100, 101]


def test_a_transaction_that_changes_nothing_leaves_nothing(store: Store) -> None:
    at(store, 100, say("words"))
    with store.read(maintenance_grant()) as reader:
        before = {table: list(reader.txn.scan(table)) for table in ("meta", "audit", "heads")}
    assert at(store, 500, lambda tx: None) == 500
    at(store, 600, say("words"))  # known already
    with store.read(maintenance_grant()) as reader:
        assert {t: list(reader.txn.scan(t)) for t in before} == before


def test_what_was_believed_at_each_record_time(store: Store) -> None:
    """state_at(K) is the fold of the entries up to K, for every K."""
    times = [at(store, 1000, say("words"))]
    ref = rows(store)[0].resource
    assert ref is not None

    def step(op: str, **fields: object) -> Callable[[Tx], object]:
        def act(tx: Tx) -> None:
            part = tx.part(W.HOME)
            state = tx.reader.state(part, ref)
            assert state is not None
            tx.record(part, op, ref, state, **fields)  # type: ignore[arg-type]

        return act

    times += [at(store, 2000, step("close", valid_to=1500))]
    times += [at(store, 3000, step("reopen", valid_to=None, status="verified"))]
    times += [at(store, 4000, step("pin"))]
    with store.read(W.actor().grant) as reader:
        part = reader.parts[0]
        log = list(reader.log(part))
        for known_at in [0, *times, *(t - 1 for t in times), *(t + 1 for t in times)]:
            expected = refs.fold(e for e in log if e.time <= known_at)
            assert reader.state_at(part, ref, known_at) == expected
        assert reader.state_at(part, ref, 999) is None
        closed = reader.state_at(part, ref, 2500)
        assert closed is not None and closed.flags == refs.CLOSED and closed.valid_to == 1500
        assert reader.state_at(part, oid.digest(b"unknown"), 9999) is None


def test_the_log_can_be_read_in_pieces(store: Store) -> None:
    for number in range(10):
        W.add(store, f"item {number}")
    with store.read(W.actor().grant) as reader:
        part = reader.parts[0]
        whole = [entry.seq for entry in reader.log(part)]
        assert whole == list(range(1, 11))
        assert [e.seq for e in reader.log(part, after=4)] == whole[4:]
        assert [e.seq for e in reader.log(part, after=4, until=6)] == [5, 6]
        assert [e.seq for e in reader.log(part, reverse=True)] == whole[::-1]
        assert [e.seq for e in reader.log(part, after=8, reverse=True)] == [10, 9]
        assert list(reader.log(part, after=10)) == []


# -- objects --------------------------------------------------------------------------------------


def memory(cites: list[bytes], scope: Scope = W.HOME) -> Memory:
    return Memory(
        encode.ZERO_SALT, scope, "fact", "a claim", None, cites, None, Deriver("test"), 900,
        None, None, None, [], "", [], {},
    )  # fmt: skip


def test_a_memory_cites_what_is_there_or_is_not_stored(store: Store) -> None:
    ref = W.add(store, "evidence").ref
    elsewhere = W.add(store, "evidence", msgspec.structs.replace(W.HOME, collection="b")).ref
    unknown = oid.digest(b"unknown")

    def put(*cites: bytes) -> Callable[[Tx], object]:
        def act(tx: Tx) -> bytes | None:
            part = tx.part(W.HOME)
            try:
                return tx.put_object(part, memory(list(cites)))
            except NotFound:
                return None  # the caller goes on: nothing of it may stay

        return act

    with store.read(maintenance_grant()) as reader:
        before = reader.txn.count("objects")
    for cites in ([unknown], [ref, unknown], [elsewhere]):
        assert store.write(W.actor(), put(*cites)) is None
    with store.read(maintenance_grant()) as reader:
        assert reader.txn.count("objects") == before
    stored = store.write(W.actor(), put(ref))
    with store.read(W.actor().grant) as reader:
        assert reader.object(reader.parts[0], stored).cites == [ref]  # type: ignore[arg-type,union-attr]


def test_a_revision_leads_to_its_ref(store: Store) -> None:
    ref = W.add(store, "version 0").ref
    first = W.change(store, "revise", ref, text="version 1").new
    second = W.change(store, "revise", ref, text="version 2").new
    with store.read(W.actor().grant) as reader:
        part = reader.parts[0]
        assert {reader.ref_of(part, o) for o in (ref, first, second)} == {ref}
        assert reader.find(first.hex()).revision == first
    W.change(store, "rollback", ref, new=first)
    state = state_of(store, ref)
    assert state.head == first and state.first == 1 and state.last == 4


def test_lanes_and_partitions_are_numbered_once(store: Store) -> None:
    sessions = [msgspec.structs.replace(W.HOME, session=name) for name in ("x", "y", "x", "z", "y")]
    for number, scope in enumerate(sessions):
        W.add(store, f"item {number}", scope)
    with store.read(maintenance_grant()) as reader:
        part = reader.parts[0]
        lanes = [entry.lane for entry in reader.log(part)]
        assert lanes == [1, 2, 1, 3, 2]
        assert [reader.lane(part, n)[1] for n in (1, 2, 3)] == ["x", "y", "z"]
        assert reader.lanes(part) == [1, 2, 3]


def test_counts_of_rows_by_outcome(store: Store) -> None:
    """Many changes, some refused: as many rows as changes and refusals, no more."""
    ref = W.add(store, "words").ref
    refused = 0
    for number in range(30):
        try:
            W.change(store, "pin", ref, expected=ref if number % 3 else oid.digest(b"other"))
        except HeadMoved:
            refused += 1
    counts = Counter(row.outcome for row in rows(store))
    assert counts == {"done": 1 + 20, "head_moved": 10} and refused == 10
    assert W.check_books(store) == 21


def test_a_reader_of_the_transaction_is_bound_to_the_grant(store: Store) -> None:
    W.add(store, "elsewhere", msgspec.structs.replace(W.HOME, collection="b"))

    def act(tx: Tx) -> list[str]:
        assert isinstance(tx.reader, Reader)
        return [part.collection for part in tx.reader.parts]

    assert store.write(W.actor(), act) == []
