"""Many processes on one store: nothing is lost, nobody waits for ever, forks do no harm."""

from __future__ import annotations

import os
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from remem.objects import encode, refs
from remem.objects.store import Store

W = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("_workers.py"))))
MIB = 1 << 20


@pytest.fixture
def root(tmp_path: Path) -> str:
    path = str(tmp_path / "s")
    store = Store.create(path, map_b=MIB)
    for number in range(20):
        W.add(store, f"text {number}")
    store.close()
    return path


def readable(store: Store, lines: list[str]) -> int:
    """How many of the lines are ids; each of them must be readable."""
    ids = [bytes.fromhex(line) for line in lines if len(line) == 64]
    with store.read(W.actor().grant) as reader:
        for object_id in ids:
            reader.object(reader.parts[0], object_id)
    assert len(set(ids)) == len(ids)
    return len(ids)


def test_many_writers_and_readers_grow_a_tiny_map(tmp_path: Path) -> None:
    """C1: 8 writers of 4 KB items with 4 readers; nothing acknowledged is lost, nobody dies."""
    root = str(tmp_path / "s")
    store = Store.create(root, map_b=MIB)
    before = store.env().info()["map_b"]
    store.close()
    said = W.run("many", root, 8, 1500, 4096, 25, 4)
    store = Store(root)
    assert readable(store, said) == 8 * 1500
    assert W.check_books(store) == 8 * 1500
    assert store.env().info()["file_b"] > 32 * before
    with store.read(W.actor().grant) as reader:
        part = reader.parts[0]
        texts = {reader.object(part, ref).text.rstrip("x ") for ref, _ in reader.states(part)}
    assert texts == {f"writer{w} {number}" for w in range(8) for number in range(1500)}


def test_a_long_lived_process_follows_a_map_that_others_grow(root: str) -> None:
    """C2 and C3: 4 threads read all the time while another process makes the store 10x larger."""
    server = W.start("slow-reader", root)
    assert server.stdout.readline() == "reading\n"
    said = W.run("adds", root, 300, 40_000, "import", MIB, 50)
    assert len(said) == 300

    def ask(line: str) -> int:
        server.stdin.write(line + "\n")
        server.stdin.flush()
        return int(server.stdout.readline())

    assert ask("size") >= MIB
    assert ask("add") >= 16 * MIB  # its own writes grow the map, while its threads read
    assert ask("add") > 20 * MIB
    server.stdin.close()
    rounds = server.stdout.read().split()
    assert server.wait() == 0 and rounds[0] == "rounds" and int(rounds[1]) > 0
    assert W.check_books(Store(root)) == 20 + 300 + 2


def test_an_idle_process_adopts_the_new_map_at_once(root: str) -> None:
    """C3: the first transaction after another process grew the map works."""
    store = Store(root, map_b=MIB)
    with store.read(W.actor().grant) as reader:
        assert reader.last_seq(reader.parts[0]) == 20
    W.run("adds", root, 200, 40_000, "import", 64 * MIB, 50)
    with store.read(W.actor().grant) as reader:
        assert reader.last_seq(reader.parts[0]) == 220
    W.run("adds", root, 200, 40_000, "more", 64 * MIB, 50)
    W.add(store, "a write after that")
    assert W.check_books(store) == 421


def test_three_hundred_readers_of_which_half_are_killed(root: str) -> None:
    """C4: no reader is turned away, no slot stays taken, the file does not grow for ever."""
    store = Store(root)
    W.add(store, "keeps a process attached", asserted=1)
    said = W.run("short-readers", root, 300)
    assert said.count("read") == 150, [line for line in said if line.startswith("error")]
    assert said.count("reading") == 150
    store.env().stale_readers()
    assert store.env().stale_readers() == 0
    size = store.env().info()["used_b"]
    W.run("churn", root, 1000)
    store.close()
    store = Store(root)
    info = store.env().info()
    entry_b = len(refs.encode_entry(first_entry(store)))
    live_b = size + 1000 * 2 * (entry_b + 150)  # an entry and an audit row for each change
    assert info["used_b"] < 3 * live_b, (info, live_b)
    assert W.check_books(store) == 22 + 1000


def first_entry(store: Store) -> refs.Entry:
    with store.read(W.actor().grant) as reader:
        return next(reader.log(reader.parts[0]))


def test_a_killed_reader_gives_its_snapshot_up(root: str) -> None:
    """A reader that was killed must not hold old pages for ever (the file would grow)."""
    readers = [W.start("slow-reader", root) for _ in range(2)]
    for reader in readers:
        assert reader.stdout.readline() == "reading\n"
    for reader in readers:
        reader.kill()
        reader.wait()
    assert Store(root).env().stale_readers() == 0  # they were cleared when it was opened
    W.run("churn", root, 200)
    assert W.check_books(Store(root)) == 221


def test_twenty_processes_revise_one_ref_and_one_wins(root: str) -> None:
    """A6: each names the head it read; one chain comes of it, and nothing else is stored."""
    store = Store(root)
    item = W.add(store, "version 0")
    store.close()
    head = item.id
    for number in range(3):
        said = W.run("revise", root, item.ref.hex(), head.hex(), 20, number)
        results = sorted(line.split()[0] for line in said)
        assert results == ["HeadMoved"] * 19 + ["won"]
        winner = next(line.split()[1] for line in said if line.startswith("won"))
        with store.read(W.actor().grant) as reader:
            part = reader.parts[0]
            state = reader.state(part, item.ref)
            assert state is not None and state.head is not None
            chain = list(reader.entries(part, state))
            assert [refs.OPS[e.op] for e in chain] == ["revise"] * (number + 1) + ["create"]
            assert chain[0].old == head
            head = state.head
            assert reader.object(part, head).text == f"version {number} of process {winner}"
            texts = [encode.decode(data).text for _, data in reader.txn.scan("objects")]
            assert sum(" of process " in text for text in texts) == number + 1
            refused = [r for _, _, r in reader.audit_rows() if r.outcome == "head_moved"]
            assert len(refused) == 19 * (number + 1)
    assert W.check_books(store) == 24


# -- forks ----------------------------------------------------------------------------------------


def test_forked_pools_work_while_the_parent_holds_a_snapshot(root: str) -> None:
    """C5: twenty pools of four forked workers, started inside a snapshot of the parent."""
    assert W.run("fork-pool", root, 20) == ["200 0"]


def test_a_snapshot_survives_the_child_that_was_forked_inside_it(root: str) -> None:
    """C5: the child uses the store and ends by sys.exit; the parent's pages stay pinned."""
    said = W.run("fork-held", root)
    assert said == [
        "StoreError a transaction was used across a fork",
        "new",
        "21",
        "child 7",
        "then 322",
    ]
    assert W.check_books(Store(root)) == 322


def test_a_fork_while_another_thread_writes(root: str) -> None:
    began = time.monotonic()
    assert W.run("fork-thread", root) == ["child reads 20", "child 3", "parent 21"]
    assert time.monotonic() - began < 10


def test_a_child_does_not_commit_what_its_parent_began(root: str) -> None:
    assert W.run("fork-inside", root) == [
        "StoreError a transaction was used across a fork",
        "child 5",
        "parent 22",
    ]


def in_child(act: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_grandchildren(root: str) -> None:
    """Each generation of processes opens it anew, also with snapshots open all the way up."""
    store = Store(root)

    def level(depth: int) -> None:
        with store.read(W.actor().grant) as reader:
            before = reader.last_seq(reader.parts[0])
            if depth < 4:
                assert in_child(lambda: level(depth + 1)) == 0
            assert reader.last_seq(reader.parts[0]) == before
        W.add(store, f"level {depth}")

    level(0)
    with store.read(W.actor().grant) as reader:
        assert reader.last_seq(reader.parts[0]) == 25
    assert W.check_books(store) == 25
    assert store.env().stale_readers() == 0
