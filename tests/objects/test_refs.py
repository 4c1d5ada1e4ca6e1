"""The ref log: the fold of entries, at the end and at any record time."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import refs
from remem.objects.errors import IntegrityError

REF = bytes(32)


def entry(seq: int, op: str, prev: int, old: bytes | None, new: bytes | None = REF,
          **fields: object) -> refs.Entry:  # fmt: skip
    values: dict[str, object] = {
        "status": 0,
        "valid_from": None,
        "valid_to": None,
        "replaced_by": None,
        "time": seq * 10,
        "principal": "owner",
        "surface": "api",
        "reason": "",
        "lane": 1,
        "type": refs.OBSERVATION,
    }
    return refs.Entry(
        seq=seq, op=refs.OP_CODE[op], ref=REF, old=old, new=new, prev=prev, **(values | fields)
    )  # type: ignore[arg-type]


@st.composite
def histories(draw: st.DrawFn) -> list[refs.Entry]:
    """Entries of one ref as they may follow each other, with gaps between their numbers."""
    ops = draw(st.lists(st.sampled_from(refs.OPS[1:]), max_size=12))
    seqs = sorted(draw(st.sets(st.integers(1, 99), min_size=len(ops) + 1, max_size=len(ops) + 1)))
    instants = st.none() | st.integers(-9, 9)
    made: list[refs.Entry] = []
    head: bytes | None = None
    for seq, op in zip(seqs, ["create", *ops], strict=True):
        new = draw(st.none() | st.binary(min_size=32, max_size=32)) if made else REF
        made.append(
            entry(
                seq,
                op,
                made[-1].seq if made else 0,
                head,
                new,
                status=draw(st.integers(0, len(refs.STATUSES) - 1)),
                valid_from=draw(instants),
                valid_to=draw(instants),
                replaced_by=draw(st.none() | st.just(bytes([1]) * 32)),
            )
        )
        head = new
    return made


def flags_of(ops: list[str]) -> int:
    """What is set after these ops, said in words instead of tables."""
    pairs = {refs.HELD: ("hold", "unhold"), refs.PINNED: ("pin", "unpin"),
             refs.FLAGGED: ("flag", "purge"), refs.CLOSED: ("close", "reopen")}  # fmt: skip
    flags = 0
    for flag, (on, off) in pairs.items():
        last = [op for op in ops if op in (on, off)][-1:]
        flags |= flag if last == [on] else 0
    return flags


@given(histories())
def test_the_fold_is_what_the_last_entry_says_and_where_it_began(made: list[refs.Entry]) -> None:
    for upto in range(1, len(made) + 1):
        known, last = made[:upto], made[upto - 1]
        state = refs.fold(known)
        assert state == refs.RefState(
            last.new, last.status, last.valid_from, last.valid_to, last.replaced_by,
            made[0].seq, last.seq, made[0].time, last.time, last.lane, last.type,
            flags_of([refs.OPS[e.op] for e in known]),
        )  # fmt: skip
        assert state is not None
        assert state.starts == (made[0].time if last.valid_from is None else last.valid_from)
    assert refs.fold([]) is None


@given(histories())
def test_entries_and_states_come_back_from_their_bytes(made: list[refs.Entry]) -> None:
    for one in made:
        assert refs.decode_entry(refs.encode_entry(one)) == one
        packed = msgspec.structs.replace(one, origin=refs.Origin(5, 1))
        assert refs.decode_entry(refs.encode_entry(packed)) == packed
    state = refs.fold(made)
    assert state is not None and refs.decode_state(refs.encode_state(state)) == state


@given(histories(), st.data())
def test_a_missing_or_repeated_entry_breaks_the_fold(
    made: list[refs.Entry], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(made) - 1))
    with pytest.raises(IntegrityError):
        refs.fold([*made[: at + 1], *made[at:]])
    if at < len(made) - 1:
        with pytest.raises(IntegrityError):
            refs.fold([*made[:at], *made[at + 1 :]])


def test_an_entry_must_continue_its_ref() -> None:
    first = entry(1, "create", 0, None)
    state = refs.step(None, first)
    assert refs.step(state, entry(2, "pin", 1, REF)).flags == refs.PINNED
    for bad in (entry(2, "pin", 0, REF), entry(2, "pin", 1, None), entry(3, "pin", 2, REF)):
        with pytest.raises(IntegrityError):
            refs.step(state, bad)
    with pytest.raises(IntegrityError, match="no beginning"):
        refs.step(None, entry(2, "pin", 1, REF))


def test_the_closed_sets_are_numbered_as_written() -> None:
    """The numbers are on disk: a word may be added at the end, never moved."""
    assert refs.OPS[:7] == (
        "create", "revise", "rollback", "supersede", "close", "reopen", "quarantine"
    )  # fmt: skip
    assert len(set(refs.OPS)) == len(refs.OPS) and len(set(refs.STATUSES)) == len(refs.STATUSES)
    assert [refs.OP_CODE[name] for name in ("create", "erase", "purge")] == [0, 18, 19]
    assert [refs.STATUS_CODE[name] for name in ("verified", "erased")] == [0, 10]
