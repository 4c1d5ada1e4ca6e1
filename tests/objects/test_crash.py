"""SIGKILL at any moment: what was acknowledged is there, and the books are right."""

from __future__ import annotations

import os
import random
import runpy
import select
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from remem.objects.store import Store

W = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("_workers.py"))))
MIB = 1 << 20


def killed_after(worker: subprocess.Popen[str], seconds: float) -> list[bytes]:
    """Let a worker acknowledge one id, kill it some time later; all ids that it acknowledged."""
    assert worker.stdout is not None
    ready, _, _ = select.select([worker.stdout], [], [], 30)
    assert ready, "the worker acknowledged nothing"
    time.sleep(seconds)
    worker.send_signal(signal.SIGKILL)
    lines = worker.stdout.read().splitlines()
    assert worker.wait() == -signal.SIGKILL
    return [bytes.fromhex(line) for line in lines if len(line) == 64]


def assert_whole(root: str, acknowledged: list[bytes]) -> int:
    """Open the store as the next process would; every acknowledged id must be there."""
    store = Store(root)
    entries: int = W.check_books(store)
    with store.read(W.actor().grant) as reader:
        part = reader.parts[0]
        for object_id in acknowledged:
            reader.object(part, object_id)
            assert reader.find(object_id.hex()).ref == object_id
    assert store.env().stale_readers() == 0
    store.close()
    return entries


def test_a_writer_killed_thirty_times(tmp_path: Path) -> None:
    root = str(tmp_path / "s")
    Store.create(root).close()
    chance = random.Random(30)
    acknowledged: list[bytes] = []
    for number in range(30):
        batch = chance.choice((1, 1, 3, 40))
        worker = W.start("adds", root, 0, chance.choice((40, 400, 9000)), f"run {number}", 0, batch)
        acknowledged += killed_after(worker, chance.random() * 0.08)
        entries = assert_whole(root, acknowledged)
        assert entries >= len(acknowledged)
    assert len(set(acknowledged)) == len(acknowledged) > 100
    assert W.add(Store(root), "life goes on").status == "new"


def test_a_writer_killed_while_the_map_grows(tmp_path: Path) -> None:
    """A map of 1 MiB and texts of 300 KB: nearly every commit is preceded by growth."""
    root = str(tmp_path / "s")
    Store.create(root, map_b=MIB).close()
    chance = random.Random(15)
    acknowledged: list[bytes] = []
    for number in range(15):
        worker = W.start("adds", root, 0, 300_000, f"run {number}", MIB)
        acknowledged += killed_after(worker, chance.random() * 0.03)
        assert_whole(root, acknowledged)
    assert len(acknowledged) >= 15
    assert W.add(Store(root, map_b=MIB), "life goes on").status == "new"


def test_a_writer_killed_besides_others(tmp_path: Path) -> None:
    """One of three is killed again and again; the other two never notice."""
    root = str(tmp_path / "s")
    Store.create(root, map_b=MIB).close()
    chance = random.Random(3)
    others = [W.start("adds", root, 0, 500, f"other {i}", MIB) for i in range(2)]
    acknowledged: list[bytes] = []
    for number in range(10):
        worker = W.start("adds", root, 0, 5000, f"run {number}", MIB)
        acknowledged += killed_after(worker, chance.random() * 0.05)
        assert all(other.poll() is None for other in others)
    began = time.monotonic()
    assert W.add(Store(root), "the lock is free").status == "new"
    assert time.monotonic() - began < 5
    for other in others:
        acknowledged += killed_after(other, 0)
    assert_whole(root, acknowledged)


def test_killed_while_the_store_is_made(tmp_path: Path) -> None:
    """At every step that Python is told of: the next one makes it whole and can use it."""
    (steps,) = W.run("kill-create", tmp_path / "many")
    assert int(steps) >= 15


@pytest.mark.parametrize("number", range(8))
def test_killed_at_a_random_moment_of_making(tmp_path: Path, number: int) -> None:
    """Also between the steps of LMDB, of which Python is not told."""
    chance = random.Random(number)
    folder = tmp_path / "many"
    worker = W.start("create", folder, 200, start_new_session=True)
    deadline = time.monotonic() + 30
    while not (folder / "s0").exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(chance.random() * 0.12)
    os.killpg(worker.pid, signal.SIGKILL)  # with the processes that it forked
    worker.wait()
    made = sorted(folder.iterdir(), key=lambda path: int(path.name[1:]))
    assert made
    for path in made[-2:]:
        store = Store.create(str(path))
        W.add(store, "first words")
        assert W.check_books(store) in (1, 2)
        store.close()


def test_a_killed_writer_frees_the_write_lock_for_ten_readers_and_a_writer(tmp_path: Path) -> None:
    """A60."""
    root = str(tmp_path / "s")
    W.add(Store.create(root), "there before")
    holder = W.start("hold-write", root)
    assert holder.stdout.readline() == "inside\n"
    holder.kill()
    holder.wait()
    began = time.monotonic()
    readers = [W.start("probe", root) for _ in range(10)]
    assert [reader.stdout.read() for reader in readers] == ["ok 1\n"] * 10
    assert [reader.wait() for reader in readers] == [0] * 10
    assert W.add(Store(root), "there after").status == "new"
    assert time.monotonic() - began < 10
    assert_whole(root, [])
