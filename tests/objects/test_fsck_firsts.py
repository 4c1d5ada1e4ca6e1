"""Refs with one entry, compared as a whole: what agrees, what does not, and who is named then."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from remem.objects import forget, fsck_firsts, refs, revise
from remem.objects.admit import admit
from remem.objects.findings import Findings, Report
from remem.objects.fsck import verify
from remem.objects.fsck_folds import Folds
from remem.objects.model import Incoming, Scope
from remem.objects.scope import Actor, Grant
from remem.objects.store import Store
from remem.objects.tx import Tx

HOME = Scope("local", "default", "home", "none", "main")
ME = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)
TURNS = 40


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Refs with one entry, with several, and forgotten ones."""
    made = Store.create(str(tmp_path / "store"))

    def fill(tx: Tx) -> list[bytes]:
        return [admit(tx, Incoming(text=f"turn {n} of tea")).ref for n in range(TURNS)]

    said = made.write(ME, fill)
    part = made.write(ME, lambda tx: tx.part(HOME))

    def change(tx: Tx) -> None:
        for n in (3, 4, 5):
            revise.revise(tx, tx.reader.find(said[n].hex()), f"turn {n} of coffee")
        revise.revise(tx, tx.reader.find(said[3].hex()), "turn 3 of water")
        forget.forget_many(tx, [(part, ref) for ref in said[10:13]])

    made.write(ME, change)
    yield made
    made.close()


def looked_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], int]:
    """Problems, and how many refs were looked up one by one."""
    seen: list[int] = []
    real = Folds._compare

    def compare(self: Folds, prefix: bytes, number: int, entry: refs.Entry) -> None:
        seen.append(number)
        real(self, prefix, number, entry)

    with monkeypatch.context() as patch:
        patch.setattr(Folds, "_compare", compare)
        report = verify(store)
    assert report.refs.checked + len(report.refs.bad) >= TURNS
    return [one.where for one in report.problems], len(seen)


def singles(store: Store) -> list[tuple[bytes, bytes]]:
    with store.env().read() as txn:
        rows = list(txn.pairs("refs"))
    return [
        (key, data) for key, data in rows if (state := refs.decode_state(data)).first == state.last
    ]


def test_a_sound_store_has_only_changed_refs_looked_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems, seen = looked_up(store, monkeypatch)
    with store.env().read() as txn:
        entries = txn.count("log")
    assert problems == [] and seen == entries - TURNS
    report = verify(store)
    assert (report.refs.checked, report.refs.entries) == (TURNS, entries)


FIELDS = ("status", "valid_from", "valid_to", "created", "changed", "lane", "flags", "head")


@pytest.mark.parametrize("field", FIELDS)
def test_any_field_of_a_state_counts(
    store: Store, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    key, data = singles(store)[7]
    state = refs.decode_state(data)
    other: object = bytes(32) if field == "head" else 1 + (getattr(state, field) or 0)
    edited = refs.encode_state(msgspec.structs.replace(state, **{field: other}))
    store.write(ME, lambda tx: tx.txn.put("refs", key, edited))
    problems, seen = looked_up(store, monkeypatch)
    assert f"ref {key[4:].hex()}" in problems and seen > TURNS
    store.write(ME, lambda tx: tx.txn.put("refs", key, data))
    assert looked_up(store, monkeypatch)[0] == []


def test_states_that_changed_places_are_found(store: Store) -> None:
    """The same states under the same refs, only not each under its own."""
    (one, first), (two, second) = singles(store)[4:6]

    def swap(tx: Tx) -> None:
        tx.txn.put("refs", one, second)
        tx.txn.put("refs", two, first)

    store.write(ME, swap)
    assert {one[4:].hex(), two[4:].hex()} <= set(verify(store).refs.bad)


@pytest.mark.parametrize("what", ["gone", "garbage", "stranger"])
def test_a_row_too_few_or_too_many_is_found(store: Store, what: str) -> None:
    key, data = singles(store)[9]
    place = key if what != "stranger" else key[:4] + bytes(32)

    def change(tx: Tx) -> None:
        if what == "gone":
            tx.txn.delete("refs", place)
        else:
            tx.txn.put("refs", place, b"\xc1" if what == "garbage" else data)

    store.write(ME, change)
    assert place[4:].hex() in verify(store).refs.bad


def test_sums_do_not_depend_on_order_and_can_be_taken_back(store: Store) -> None:
    """The control is in between: with one addition too many they do not agree."""
    rows = singles(store)
    random.Random(5).shuffle(rows)
    firsts = fsck_firsts.Firsts()
    with store.env().read() as txn:
        for key, data in rows:
            assert not firsts.agree(txn)
            firsts.add(key, data)
        assert firsts.agree(txn)
        firsts.add(rows[0][0], rows[1][1])
        assert not firsts.agree(txn)
        firsts.take_back(rows[0][0], rows[1][1])
        assert firsts.agree(txn)
        firsts.take_back(*rows[0])
        firsts.add(rows[0][0], rows[1][1])  # as many as there should be
        assert not firsts.agree(txn)


def test_each_check_has_a_key_of_its_own() -> None:
    one, two = fsck_firsts.Firsts(), fsck_firsts.Firsts()
    one.add(b"k", b"s")
    two.add(b"k", b"s")
    assert one._sum != two._sum


def test_an_entry_that_begins_otherwise_is_looked_up(store: Store) -> None:
    with store.env().read() as txn:
        entries = [refs.decode_entry(data) for _, data in txn.pairs("log")]
        plain = [entry for entry in entries if fsck_firsts.is_plain(entry)]
        assert len(plain) == TURNS and all(not entry.prev for entry in plain)
        for change in (
            {"prev": 1}, {"op": 1}, {"new": None}, {"old": bytes(32)},
            {"status": fsck_firsts.ERASED}, {"replaced_by": bytes(32)},
        ):  # fmt: skip
            assert not fsck_firsts.is_plain(msgspec.structs.replace(plain[0], **change))
        folds = Folds(txn, Findings(Report(), None), {1: None})
        folds.take(b"\0\0\0\1", 1, plain[0])
        assert folds.matched == 0  # counted only once all of them agree
