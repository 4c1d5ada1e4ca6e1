"""A store of this format that was made before some of its tables were thought of."""

from __future__ import annotations

from pathlib import Path

import pytest

from remem.objects import format as fmt
from remem.objects import kv
from remem.objects.admit import admit
from remem.objects.errors import StoreCorrupt
from remem.objects.model import Incoming, Scope
from remem.objects.scope import Actor, maintenance_grant, owner_grant
from remem.objects.store import Store, canon_path

SCOPE = Scope("local", "default", "home", "none", "main")
ACTOR = Actor(owner_grant(SCOPE), "cli", SCOPE)


@pytest.fixture
def earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with one observation and without the later tables."""
    root = str(tmp_path / "store")
    first = tuple(name for name in fmt.TABLES if name not in fmt.LATER)
    with monkeypatch.context() as patch:
        patch.setattr(fmt, "TABLES", first)
        Store.create(root).close()
    env = kv.open_env(canon_path(root, 1), first)
    with env.read() as txn:
        assert txn.count("meta") == 0
    kv.release(env)
    return root


def test_opening_for_writing_brings_it_up(earlier: str) -> None:
    store = Store(earlier)
    store.write(ACTOR, lambda tx: admit(tx, Incoming(text="the sun is bright")))
    store.close()
    store = Store(earlier, readonly=True)
    with store.read(maintenance_grant()) as reader:
        assert reader.txn.count("refs") == 1
        assert all(reader.txn.count(name) == 0 for name in fmt.LATER)
    store.close()


def test_opening_for_reading_changes_nothing_and_says_what_to_do(earlier: str) -> None:
    store = Store(earlier, readonly=True)
    with pytest.raises(StoreCorrupt) as raised, store.read(maintenance_grant()):
        pass
    assert "remem project" in str(raised.value.hint)
    store.close()


def test_a_table_that_every_store_has_is_not_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path / "store")
    with monkeypatch.context() as patch:
        patch.setattr(fmt, "TABLES", tuple(name for name in fmt.TABLES if name != "refs"))
        Store.create(root).close()
    store = Store(root)
    with pytest.raises(StoreCorrupt), store.read(maintenance_grant()):
        pass
    store.close()
