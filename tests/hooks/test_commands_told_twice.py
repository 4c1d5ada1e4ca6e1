"""A command that the hook of a shell tells of, and a history as well, is kept once."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from remem.hooks.commands import give_name, look
from remem.hooks.ingest import Sum, ingest
from remem.hooks.sources import read_stream
from remem.objects.admit import admit
from remem.objects.fsck import verify
from remem.objects.model import Incoming, Scope
from remem.objects.scope import Actor, Grant, maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx

HOME = Scope("local", "default", "home", "none", "main")
ME = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)
T = 1_700_000_000


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(str(tmp_path / "store"))


def hook(store: Store, *commands: tuple[str, float], session: str = "s1") -> list[str]:
    """What the drain does with the lines of a shell."""

    def change(tx: Tx) -> list[str]:
        found = []
        for number, (text, at) in enumerate(commands):
            record = Incoming(
                text=text,
                asserted=int(at * 1_000_000),
                role="user",
                collection="project",
                agent="shell",
                session=session,
                source_uri=f"shell:{session}",
                source_id=str(number),
                tool="bash",
                kind="command",
                meta={"exit": 0, "cwd": "/src"},
            )
            name, imported = look(tx, record)
            if imported:
                found.append("imported")
                continue
            admitted = admit(tx, record)
            if admitted.status == "new":
                give_name(tx, record, name, admitted.ref)
            found.append(admitted.status)
        return found

    return store.write(ME, change)


def history(store: Store, *commands: tuple[str, int]) -> Sum:
    data = "".join(f": {at}:1;{text}\n" for text, at in commands).encode()
    return ingest(store, ME, read_stream("zsh-history", io.BytesIO(data), "h"))


def test_captured_and_then_imported(store: Store) -> None:
    told = [("make", T + 0.2), ("make", T + 0.7), ("make", T + 1.1), ("ls", T + 1.2)]
    assert hook(store, *told) == ["new"] * 4
    done = history(store, ("make", T), ("make", T), ("make", T + 1), ("ls", T + 1), ("pwd", T + 2))
    assert (done.read, done.new, done.known) == (5, 1, 4)
    assert hook(store, *told) == ["known"] * 4


def test_imported_and_then_captured(store: Store) -> None:
    assert history(store, ("make", T), ("ls", T)).new == 2
    assert hook(store, ("make", T + 0.4), ("ls", T + 0.5), ("pwd", T + 0.6)) == [
        "imported", "imported", "new",
    ]  # fmt: skip


def test_equal_commands_of_two_shells_in_one_second_are_two(store: Store) -> None:
    assert hook(store, ("make", T), session="s1") == ["new"]
    assert hook(store, ("make", T), session="s2") == ["new"]
    assert history(store, ("make", T), ("make", T), ("make", T)).new == 1


def test_other_seconds_and_other_words_are_others(store: Store) -> None:
    hook(store, ("make", T + 0.9))
    assert history(store, ("make", T + 1), ("make ", T), ("make", T - 1)).new == 3


def test_the_store_is_sound_afterwards(store: Store) -> None:
    hook(store, ("make", T), ("make", T))
    history(store, ("make", T), ("ls", T))
    with store.read(maintenance_grant()) as reader:
        assert reader.txn.count("sources") == 5  # three of their own, two names
    assert verify(store).ok
