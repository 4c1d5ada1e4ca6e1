"""The store against plain dictionaries: any order of changes, reopenings and looks back."""

from __future__ import annotations

import runpy
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import msgspec
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from remem.objects import encode, instant, refs
from remem.objects.admit import admit
from remem.objects.errors import HeadMoved, NotFound
from remem.objects.kv import Txn
from remem.objects.model import Incoming
from remem.objects.reader import Part
from remem.objects.scope import maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx

W = SimpleNamespace(**runpy.run_path(str(Path(__file__).parent.parent / "objects" / "_workers.py")))
T = TypeVar("T")

SCOPES = [W.HOME, msgspec.structs.replace(W.HOME, collection="work"),
          msgspec.structs.replace(W.HOME, session="other")]  # fmt: skip
TEXTS = ["tea", "the\r\nkettle", "cafe\u0301", "caf\u00e9", "x" * 5000]
OPS: dict[str, dict[str, object]] = {
    "revise": {},
    "rollback": {},
    "supersede": {},
    "close": {"valid_to": 7},
    "reopen": {"valid_to": None, "replaced_by": None},
    "pin": {},
    "unpin": {},
    "hold": {},
    "unhold": {},
    "quarantine": {"status": "quarantined"},
    "release": {"status": "verified", "valid_from": -3},
    "expire": {"status": "expired", "reason": "retention"},
}
FLAGS = {"pin": {"pinned"}, "hold": {"held"}, "close": {"closed"}}
CLEARS = {"unpin": {"pinned"}, "unhold": {"held"}, "reopen": {"closed"}}
BITS = {"held": refs.HELD, "pinned": refs.PINNED, "closed": refs.CLOSED}


class Known:
    """What the model knows of one ref: a row of states, one for each change."""

    def __init__(self, number: int, time: int, valid_from: int | None, head: bytes) -> None:
        self.number = number  # of its partition in the model
        self.states: list[dict[str, object]] = [
            {"time": time, "head": head, "status": "verified", "valid_from": valid_from,
             "valid_to": None, "replaced_by": None, "flags": frozenset()}
        ]  # fmt: skip

    def at(self, known_at: int) -> dict[str, object] | None:
        past = [state for state in self.states if int(str(state["time"])) <= known_at]
        return past[-1] if past else None

    def holds(self, object_id: bytes) -> bool:
        now = self.states[-1]
        closed = "closed" in now["flags"] or now["replaced_by"] is not None  # type: ignore[operator]
        return not closed and now["head"] == object_id


class StoreMachine(RuleBasedStateMachine):
    """Every rule changes both sides; the invariants compare them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="machine")
        self.store = Store.create(self.folder + "/s", map_b=1 << 20)
        self.clock = 1_000
        self.last = 0  # record time of the last transaction that changed something
        self.known: dict[bytes, Known] = {}
        self.said: dict[tuple[int, str, int | None], bytes] = {}
        self.again: dict[tuple[int, str], bytes] = {}
        self.entries = 0
        self.refused = 0

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    # -- both sides -------------------------------------------------------------------------------

    def commit(self, scope: int, act: Callable[[Tx], T]) -> tuple[T, int]:
        """Run a change at the time of the clock: its result and its record time."""

        def run(txn: Txn) -> tuple[T, int]:
            tx = Tx(txn, W.actor(SCOPES[scope]), self.clock)
            result = act(tx)
            tx.finish()
            return result, tx.now

        return self.store.env().write(run)

    def part(self, tx: Tx, scope: int) -> Part:
        return tx.part(SCOPES[scope])

    def made(self, time: int) -> None:
        assert time == max(self.clock, self.last + 1), "record time is not that of the rules"
        self.last = time
        self.entries += 1

    def pick(self, data: st.DataObject) -> tuple[bytes, Known]:
        # By the order of making: ids are different in each run, a run must be repeatable.
        ref = list(self.known)[data.draw(st.integers(0, len(self.known) - 1), label="ref")]
        return ref, self.known[ref]

    # -- rules ------------------------------------------------------------------------------------

    @rule(step=st.integers(-50, 50))
    def turn_the_clock(self, step: int) -> None:
        self.clock = max(1, self.clock + step)

    @rule(
        scope=st.integers(0, len(SCOPES) - 1),
        text=st.sampled_from(TEXTS),
        asserted=st.none() | st.sampled_from([-5, 0]),
    )
    def add(self, scope: int, text: str, asserted: int | None) -> None:
        record = Incoming(text=text, asserted=asserted)
        got, time = self.commit(scope, lambda tx: admit(tx, record))
        before = self.said.get((scope, text, asserted))
        later = self.again.get((scope, text))
        if before is not None and (asserted is not None or self.known[before].holds(before)):
            expected = before
        elif before is not None and later is not None and self.known[later].holds(later):
            expected = later
        else:
            assert got.status == "new" and got.id == got.ref and got.ref not in self.known
            self.made(time)
            if before is not None:
                self.again[scope, text] = got.ref
                asserted = instant.present(self.clock, time)
            else:
                self.said[scope, text, asserted] = got.ref
            begins = asserted
            if asserted is None and instant.present(self.clock, time) != time:
                begins = self.clock  # the clock is far behind: it says what "now" is
            self.known[got.ref] = Known(scope, time, begins, got.ref)
            return
        assert (got.status, got.ref, got.id) == ("known", expected, expected)

    @precondition(lambda self: self.known)
    @rule(data=st.data(), op=st.sampled_from(sorted(OPS)), number=st.integers(0, 3))
    def change(self, data: st.DataObject, op: str, number: int) -> None:
        ref, known = self.pick(data)
        fields = dict(OPS[op])
        if op == "supersede":
            fields["replaced_by"] = self.pick(data)[0]

        def act(tx: Tx) -> bytes | None:
            part = self.part(tx, known.number)
            state = tx.reader.state(part, ref)
            assert state is not None
            new = None
            if op == "revise":
                revision = W.observation(f"revision {number}", SCOPES[known.number], corrects=ref)
                new = tx.put_object(part, revision)
            elif op == "rollback":
                new = ref
            tx.record(part, op, ref, state, new=new, expected=state.head, **fields)  # type: ignore[arg-type]
            return new

        new, time = self.commit(known.number, act)
        self.made(time)
        reason = fields.pop("reason", None)
        assert reason is None or op == "expire"
        after = dict(known.states[-1]) | fields | {"time": time}
        if new is not None:
            after["head"] = new
        flags = frozenset(str(f) for f in after["flags"])  # type: ignore[attr-defined]
        after["flags"] = (flags | FLAGS.get(op, set())) - CLEARS.get(op, set())
        known.states.append(after)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def change_with_another_head_in_mind(self, data: st.DataObject) -> None:
        ref, known = self.pick(data)

        def act(tx: Tx) -> None:
            part = self.part(tx, known.number)
            state = tx.reader.state(part, ref)
            assert state is not None
            tx.put_object(part, W.observation("never kept", SCOPES[known.number], corrects=ref))
            tx.record(part, "revise", ref, state, new=bytes(32), expected=bytes(32))

        with pytest.raises(HeadMoved):
            self.store.write(W.actor(SCOPES[known.number]), act)
        self.refused += 1
        with self.store.read(maintenance_grant()) as reader:  # the row has the real time
            *_, (_, _, row) = reader.audit_rows()
            assert row.outcome == "head_moved"
            self.last = row.time

    @rule(scope=st.integers(0, len(SCOPES) - 1), text=st.sampled_from(TEXTS))
    def fail_half_way(self, scope: int, text: str) -> None:
        def act(tx: Tx) -> None:
            admit(tx, Incoming(text=text + " that fails"))
            tx.flush()
            raise KeyError("half way")

        with pytest.raises(KeyError):
            self.commit(scope, act)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = Store(self.folder + "/s", map_b=1 << 20)

    @rule()
    def check_the_books(self) -> None:
        assert W.check_books(self.store) == self.entries
        with self.store.read(maintenance_grant()) as reader:
            assert reader.audit_head().seq == self.entries + self.refused

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def look_into_the_past(self, data: st.DataObject) -> None:
        times = sorted({int(str(s["time"])) for k in self.known.values() for s in k.states})
        moment = data.draw(st.sampled_from(times)) + data.draw(st.integers(-1, 1))
        with self.store.read(maintenance_grant()) as reader:
            for part in reader.parts:
                folds: dict[bytes, list[refs.Entry]] = {}
                for entry in reader.log(part):
                    if entry.time <= moment:
                        folds.setdefault(entry.ref, []).append(entry)
                for ref, state in reader.states(part):
                    then = reader.state_at(part, ref, moment)
                    assert then == refs.fold(folds.get(ref, []))
                    past = self.known[ref].at(moment)
                    assert (then is None) == (past is None)
                    if then is not None and past is not None:
                        self.compare(ref, then, past)
                    assert state.changed >= (then.changed if then else 0)

    # -- invariants -------------------------------------------------------------------------------

    def compare(self, ref: bytes, state: refs.RefState, model: dict[str, object]) -> None:
        found = {
            "time": state.changed,
            "head": state.head,
            "status": refs.STATUSES[state.status],
            "valid_from": state.valid_from,
            "valid_to": state.valid_to,
            "replaced_by": state.replaced_by,
            "flags": frozenset(name for name, bit in BITS.items() if state.flags & bit),
        }
        assert found == model
        assert state.created == self.known[ref].states[0]["time"]

    @invariant()
    def both_sides_agree(self) -> None:
        with self.store.read(maintenance_grant()) as reader:
            seen = {}
            for part in reader.parts:
                for ref, state in reader.states(part):
                    known = self.known[ref]
                    scope = SCOPES[known.number]
                    assert scope.collection == part.collection
                    assert reader.lane(part, state.lane) == (scope.agent, scope.session)
                    self.compare(ref, state, known.states[-1])
                    data = reader.object_bytes(part, state.head or ref)
                    assert data is not None and encode.salted_by(data, part.key)
                    seen[ref] = part
            assert set(seen) == set(self.known)

    @invariant()
    def each_scope_sees_its_own(self) -> None:
        for number, scope in enumerate(SCOPES):
            grant = msgspec.structs.replace(W.actor(scope).grant, session=scope.session)
            mine = {ref for ref, known in self.known.items() if known.number == number}
            with self.store.read(grant) as reader:
                seen = {ref for part in reader.parts for ref, _ in reader.states(part)}
                assert seen == mine
                for ref in sorted(set(self.known) - mine)[:2]:
                    with pytest.raises(NotFound):
                        reader.find(ref.hex())
                for ref in sorted(mine)[:2]:
                    assert reader.find(ref.hex()).ref == ref


def test_store_machine() -> None:
    run_state_machine_as_test(
        StoreMachine, settings=settings(max_examples=40, stateful_step_count=40)
    )


def test_machine_notices_a_store_that_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Positive control: the same machine fails on a store that keeps an old status."""
    step = refs.step

    def forgetful(state: refs.RefState | None, entry: refs.Entry) -> refs.RefState:
        after = step(state, entry)
        return after if state is None else msgspec.structs.replace(after, status=state.status)

    monkeypatch.setattr(refs, "step", forgetful)
    unshrunk = settings(max_examples=40, stateful_step_count=40, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(StoreMachine, settings=unshrunk)
