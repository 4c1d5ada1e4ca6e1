"""Rows of sources that no object explains: only those beside one are looked at again."""

from __future__ import annotations

from pathlib import Path

import pytest

from remem.index import sweep
from remem.objects import forget, fsck_sources
from remem.objects.admit import admit
from remem.objects.fsck import verify
from remem.objects.model import Incoming, Scope
from remem.objects.scope import Actor, Grant
from remem.objects.store import Store
from remem.objects.tx import Tx

HOME = Scope("local", "default", "home", "none", "main")
ME = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)
TURNS = 60


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Evidence with ids of its sources, of which one was purged: its row stays."""
    made = Store.create(str(tmp_path / "store"))

    def fill(tx: Tx) -> list[bytes]:
        said = []
        for n in range(TURNS):
            one = Incoming(text=f"turn {n} of tea", source_uri="chat", source_id=str(n))
            said.append(admit(tx, one).ref)
        return said

    said = made.write(ME, fill)
    part = made.write(ME, lambda tx: tx.part(HOME))
    made.write(ME, lambda tx: forget.forget(tx, part, said[7]))
    assert sweep.run(made, ME).refs == [said[7]]
    return made


def problems(store: Store) -> list[str]:
    return [one.where for one in verify(store).problems]


def test_what_was_purged_has_few_rows_looked_at(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.env().read() as txn:
        assert txn.count("sources") == TURNS
    looked: list[bytes] = []
    real = fsck_sources.SourceCheck._explained

    def explained(self: fsck_sources.SourceCheck, *args: object) -> object:
        looked.append(bytes(str(args[1]), "ascii"))
        return real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(fsck_sources.SourceCheck, "_explained", explained)
    assert problems(store) == []
    few = len(looked)
    monkeypatch.setattr(fsck_sources, "_place", lambda key: 0)  # all of them lie beside it
    assert problems(store) == []
    assert few < 5 and len(looked) - few == TURNS - 1
    store.close()


def test_a_row_that_nothing_explains_is_found_beside_any_other(store: Store) -> None:
    with store.env().read() as txn:
        rows = list(txn.pairs("sources"))
    for near, ref in rows[::7]:
        stray = near[:6] + bytes(14)
        store.write(ME, lambda tx, row=(stray, ref): tx.txn.put("sources", *row))
        found = problems(store)
        with store.env().read() as txn:
            there = txn.get("objects", near[:4] + ref) is not None
        assert found == ([f"source {stray[4:].hex()}"] if there else [])
        store.write(ME, lambda tx, key=stray: tx.txn.delete("sources", key))
        assert problems(store) == []
    store.close()


def test_a_row_to_nowhere_does_not_hide_behind_a_missing_one(store: Store) -> None:
    """As many rows as there should be, in the very places: one is missing, one is a stray."""
    with store.env().read() as txn:
        rows = list(txn.pairs("sources"))
    key, ref = rows[3]
    stray = key[:6] + bytes(14)

    def swap(tx: Tx) -> None:
        tx.txn.delete("sources", key)
        tx.txn.put("sources", stray, ref)

    store.write(ME, swap)
    assert set(problems(store)) == {f"source {key[4:].hex()}", f"source {stray[4:].hex()}"}
    store.close()
