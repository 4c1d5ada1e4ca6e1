"""Whatever is done to a store through the library, it verifies, and so does a copy of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import chains, correct, encode, memories, purge, refs
from remem.objects.admit import admit
from remem.objects.backup import backup
from remem.objects.errors import RememError
from remem.objects.forget import forget
from remem.objects.fsck import verify
from remem.objects.model import Deriver, Incoming, Memory
from remem.objects.store import Store
from remem.objects.tx import Tx
from tests.objects.attacked import ACTOR, SCOPE

OPS = (
    "add",
    "claim",
    "fact",
    "revise",
    "close",
    "reopen",
    "rollback",
    "supersede",
    "pin",
    "refuse",
)
STEPS = st.lists(
    st.tuples(st.sampled_from(OPS), st.integers(0, 7), st.integers(0, 7)), min_size=4, max_size=24
)


def memory(text: str, cites: list[bytes], triple: tuple[str, str, str] | None = None) -> Memory:
    return Memory(
        encode.ZERO_SALT, SCOPE, "fact", text, triple, cites, None, Deriver("rules"), 900,
        None, None, None, [], "", [], {},
    )  # fmt: skip


def step(tx: Tx, number: int, op: str, one: int, two: int) -> None:
    """One operation on refs chosen by number; texts are new each time."""
    part = tx.part(SCOPE)
    states = list(tx.reader.states(part))
    live = [s for _, s in states if refs.STATUSES[s.status] != "erased"]
    heads = [s.head for s in live if s.type == refs.OBSERVATION and s.head is not None]
    text = f"text {number}"
    if op == "add" or not heads:
        admit(tx, Incoming(text=text, source_id=str(one) if two else "", session=f"s{two % 3}"))
        return
    cites = list(dict.fromkeys([heads[one % len(heads)], heads[two % len(heads)]]))
    if op == "claim":
        memories.create(tx, part, memory(text, cites), status="model_claim", valid_from=None)
    elif op == "fact":
        claim = memory(text, cites, ("Ann", "lives in", text))
        chains.put(tx, part, claim, status="model_claim", single=True, valid_from=10**15 + one)
    elif op == "purge":
        purge.remove(tx, purge.waiting(tx.reader))
    elif op == "forget":
        forget(tx, part, states[one % len(states)][0], allow_return=bool(two % 2))
    elif op == "refuse":
        tx.refuse("release", "self_release", part.number, states[one % len(states)][0])
    else:
        ref, state = states[one % len(states)]
        found = tx.reader.find(ref.hex())
        if op == "revise":
            correct.revise(tx, found, text)
        elif op == "close":
            correct.close(tx, found, tx.now)
        elif op == "reopen":
            correct.reopen(tx, found)
        elif op == "rollback":
            correct.rollback(tx, found, None)
        elif op == "supersede":
            correct.supersede(tx, found, states[two % len(states)][0], tx.now)
        else:
            tx.record(part, "unpin" if state.flags & refs.PINNED else "pin", ref, state)


@given(steps=STEPS)
def test_any_sequence_of_operations_verifies(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("sequence")
    store = Store.create(str(folder / "store"))
    for number, (op, one, two) in enumerate(steps):
        try:
            store.write(ACTOR, lambda tx, a=(number, op, one, two): step(tx, *a))  # type: ignore[misc]
        except RememError as refused:
            assert refused.exit_code in (1, 2, 3), refused
    report = verify(store)
    assert report.problems == []
    assert report.refs.checked > 0
    store.close()


def test_a_backup_verifies(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    for number in range(40):
        op = OPS[number % len(OPS)]
        try:
            store.write(ACTOR, lambda tx, a=(number, op, number, number // 2): step(tx, *a))  # type: ignore[misc]
        except RememError as refused:
            assert refused.exit_code in (1, 2, 3), refused
    expected = verify(store)
    backup(store, str(tmp_path / "copy"))
    store.close()
    copy = Store(str(tmp_path / "copy"), readonly=True)
    report = verify(copy)
    copy.close()
    assert report.problems == []
    assert report.warnings == []
    assert report.audit == expected.audit
    assert report.objects == expected.objects
