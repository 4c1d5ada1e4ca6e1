"""Damage to the data file of an index: noticed before LMDB follows it, and without a signal."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from remem.index import lexical, seal
from remem.index.errors import IndexDamaged
from remem.index.lexcheck import check
from remem.index.lexical import DocIn
from remem.index.pages import inspect, read_meta
from remem.index.postings import TABLES
from remem.index.seal import check_seal, guard, writing
from remem.objects.errors import StoreLocked
from remem.objects.kv import Txn, forget_env, open_env

HERE = os.path.dirname(os.path.abspath(__file__))
P = 5


def corpus(count: int, seed: int = 1) -> list[DocIn]:
    rng = random.Random(seed)
    return [
        DocIn(
            rng.randbytes(32),
            rng.randbytes(32),
            number,
            number % 3,
            None,
            9,
            lexical.tally(b"w%d" % int(300 ** rng.random()) for _ in range(9)),
            [b"\x00k:fact"],
        )
        for number in range(count)
    ]


def grow(path: str, docs: list[DocIn]) -> None:
    with writing(path):
        env = open_env(path, TABLES, create=True, sync=False)
        env.write(lambda txn: lexical.add(txn, P, docs))
    forget_env(path)


def data(path: str) -> str:
    return os.path.join(path, "data.mdb")


def flip(path: str, bit: int) -> None:
    with open(data(path), "r+b") as file:
        file.seek(bit >> 3)
        old = file.read(1)[0]
        file.seek(bit >> 3)
        file.write(bytes([old ^ 1 << (bit & 7)]))


def held(path: str) -> int:
    with open_env(path, TABLES).read() as txn:
        assert check(txn, P) == []
        n = lexical.stats(txn, P)[0]
    forget_env(path)
    return n


@pytest.fixture
def index(tmp_path: Path) -> str:
    path = str(tmp_path / "index")
    grow(path, corpus(400))
    grow(path, corpus(50, 2))
    return path


@pytest.fixture
def never_inspected(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("inspected")

    monkeypatch.setattr(seal, "inspect", refuse)


# -- the file ---------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_refused(index: str, share: float) -> None:
    guard(index)
    check_seal(index)
    os.truncate(data(index), int(os.path.getsize(data(index)) * share))
    for refuse in (guard, check_seal):
        with pytest.raises(IndexDamaged) as caught:
            refuse(index)
        assert "reindex --lexical" in caught.value.hint
    with pytest.raises(IndexDamaged), writing(index):
        raise AssertionError("let in")


def test_a_missing_file_is_damage_for_the_guard_and_a_new_start_for_the_rest(index: str) -> None:
    os.unlink(data(index))
    with pytest.raises(IndexDamaged):
        guard(index)
    check_seal(index)
    os.unlink(os.path.join(index, "lock.mdb"))
    grow(index, corpus(3))
    assert held(index) == 3
    check_seal(os.path.join(index, "nowhere"))


def test_every_bit_of_the_meta_pages_counts_or_does_no_harm(tmp_path: Path) -> None:
    path = str(tmp_path / "small")
    grow(path, corpus(20))
    grow(path, corpus(10, 2))
    clean = Path(data(path)).read_bytes()
    file = os.open(data(path), os.O_RDONLY)
    page_b = read_meta(file).page_b
    os.close(file)
    places = [8 * page + bit for page in (0, page_b) for bit in range(8 * 152)]
    refused = 0
    for bit in random.Random(2).sample(places, 600):
        flip(path, bit)
        try:
            inspect(data(path), TABLES)
        except IndexDamaged:
            refused += 1
        else:
            assert held(path) in (20, 30)
        Path(data(path)).write_bytes(clean)
    assert refused > 300


def test_inspection_finds_what_lmdb_would_follow_blindly(index: str) -> None:
    """Each kind of field of each page on the way, one after the other."""
    clean = Path(data(index)).read_bytes()
    file = os.open(data(index), os.O_RDONLY)
    meta = read_meta(file)
    os.close(file)
    root = meta.tables.root * meta.page_b
    node = root + int.from_bytes(clean[root + 16 : root + 18], "little")
    inspect(data(index), TABLES)
    for place in (
        root,  # number of the page
        root + 10,  # flags
        root + 12,  # lower
        root + 14,  # upper
        root + 16,  # offset of a node
        node,  # size of a value
        node + 4,  # flags of a node
        node + 6,  # size of a key
        node + 8,  # name of a table
    ):
        for bit in (0, 3, 7):
            flip(index, 8 * place + bit)
            with pytest.raises(IndexDamaged):
                inspect(data(index), TABLES)
            Path(data(index)).write_bytes(clean)
    inspect(data(index), TABLES)


CHILD = """
import hashlib, json, os, random, shutil, signal, sys
from remem.index import lexical
from remem.index.postings import TABLES
from remem.index.scoring import search
from remem.index.seal import check_seal, seal
from remem.objects.errors import RememError
from remem.objects.kv import open_env

source, work, trusting, seed, count = sys.argv[1], sys.argv[2], sys.argv[3] == "trusting", *map(
    int, sys.argv[4:]
)
clean = open(source + "/data.mdb", "rb").read()

def read(path):
    digest = hashlib.sha256()
    with open_env(path, TABLES).read(buffers=True) as txn:
        for word in range(0, 300, 11):
            hits = search(txn, 5, [(b"w%d" % word, 1.0), (b"w1", 1.0)], limit=9, use_numpy=False)
            for number, score in hits.top:
                digest.update(lexical.doc(txn, 5, number).oid + repr(score).encode())
                lexical.terms_of(txn, 5, number), lexical.neighbours(txn, 5, number)
        for term, df in lexical.vocabulary(txn, 5):
            digest.update(term + b"%d" % df)
    return digest.hexdigest()

def write(path):
    env = open_env(path, TABLES, sync=False)
    docs = [
        lexical.DocIn(bytes([n]) * 32, bytes([n]) * 32, 900 + n, 1, None, 2, {b"w1": 4}, [])
        for n in range(40)
    ]
    env.write(lambda txn: lexical.add(txn, 5, docs))
    env.write(lambda txn: lexical.remove(txn, 5, [(doc.ref, doc.oid) for doc in docs]))

def attempt(path):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(30)
        try:
            if not trusting:
                check_seal(path)
            answer = read(path)
            write(path)
            assert read(path) == answer
        except RememError as error:
            answer = type(error).__name__
        except BaseException as error:
            answer = "uncaught " + repr(error)
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    answer = os.read(reading, 999).decode()
    os.close(reading)
    status = os.waitpid(child, 0)[1]
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else answer

def outcome(change):
    shutil.rmtree(work, ignore_errors=True)
    os.mkdir(work)
    open(work + "/data.mdb", "wb").write(clean)
    seal(work)
    with open(work + "/data.mdb", "r+b") as file:
        change(file)
    return attempt(work)

def flipped(bit):
    def change(file):
        file.seek(bit >> 3)
        old = file.read(1)[0]
        file.seek(bit >> 3)
        file.write(bytes([old ^ 1 << (bit & 7)]))
    return change

rng = random.Random(seed)
found = {"untouched": outcome(lambda file: None)}
found["cut"] = [outcome(lambda file: file.truncate(len(clean) * n // 100)) for n in (0, 1, 50, 99)]
found["flipped"] = [outcome(flipped(rng.randrange(8 * len(clean)))) for _ in range(count)]
print(json.dumps(found))
"""


def outcomes(index: str, tmp_path: Path, how: str, count: int) -> dict[str, list[str]]:
    words = [sys.executable, "-c", CHILD, index, str(tmp_path / "work"), how, "7", str(count)]
    done = subprocess.run(words, check=True, timeout=100, stdout=subprocess.PIPE)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_no_damage_ends_a_process_or_changes_an_answer(index: str, tmp_path: Path) -> None:
    found = outcomes(index, tmp_path, "checking", 200)
    answer = str(found["untouched"])
    assert len(answer) == 64
    assert found["cut"] == ["IndexDamaged"] * 4
    assert set(found["flipped"]) == {"IndexDamaged", answer}
    assert found["flipped"].count("IndexDamaged") > 30
    trusted = set(outcomes(index, tmp_path, "trusting", 100)["flipped"])
    assert trusted - {"IndexDamaged", "StoreCorrupt", answer}, "nothing to guard against"


def test_a_healthy_file_is_never_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "index")
    env = open_env(path, (*TABLES, "other"), create=True, sync=False)
    rng = random.Random(3)
    living: list[DocIn] = []

    def change(txn: Txn) -> None:
        nonlocal living
        if rng.random() < 0.6:
            new = corpus(rng.choice((1, 5, 200)), rng.randrange(10**9))
            lexical.add(txn, P, new)
            living += new
        else:
            rng.shuffle(living)
            cut = rng.choice((1, 30, len(living)))
            lexical.remove(txn, P, [(doc.ref, doc.oid) for doc in living[:cut]])
            living = living[cut:]
        txn.put("other", rng.randbytes(8), rng.randbytes(rng.choice((10, 5000, 90_000))))

    for _ in range(80):
        env.write(change)
        inspect(data(path), TABLES)
        guard(path)
    with env.read() as txn:
        assert check(txn, P) == []
        assert lexical.stats(txn, P)[0] == len(living)
    forget_env(path)


def test_pages_given_back_unwritten_are_not_missed(tmp_path: Path) -> None:
    path = str(tmp_path / "index")
    env = open_env(path, (*TABLES, "other"), create=True, sync=False)
    rng = random.Random(1)

    def in_and_out(txn: Txn) -> None:
        keys = [rng.randbytes(8) for _ in range(rng.choice((1, 50, 1000)))]
        for key in keys:
            txn.put("other", key, rng.randbytes(rng.choice((10, 100, 1500))))
        for key in keys[rng.choice((0, 0, len(keys) // 2)) :]:
            txn.delete("other", key)

    short = 0
    for _ in range(60):
        env.write(in_and_out)
        file = os.open(data(path), os.O_RDONLY)
        meta = read_meta(file)
        os.close(file)
        short += os.path.getsize(data(path)) < (meta.last + 1) * meta.page_b
        guard(path)
        inspect(data(path), TABLES)
    assert short
    forget_env(path)


# -- the seal ---------------------------------------------------------------------------------


def test_a_sealed_file_is_not_inspected_again(index: str, never_inspected: None) -> None:
    check_seal(index)
    assert held(index) == 450
    check_seal(index)
    with writing(index):
        pass
    check_seal(index)
    flip(index, 99_999)
    with pytest.raises(AssertionError, match="inspected"):
        check_seal(index)


def test_a_change_right_after_the_seal_is_noticed(index: str) -> None:
    for bit in range(200):
        seal.seal(index)
        assert seal._is_sealed(index)
        flip(index, 8 * 5000 + bit)
        assert not seal._is_sealed(index)


def test_a_copy_is_inspected_once(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = str(tmp_path / "copy")
    shutil.copytree(index, copy)
    seen = []
    monkeypatch.setattr(seal, "inspect", lambda *found: seen.append(found) or inspect(*found))
    check_seal(copy)
    check_seal(copy)
    assert len(seen) == 1
    assert held(copy) == 450


def test_where_nothing_can_be_written_it_is_inspected_each_time(
    index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(data(index))
    before = Path(index, "SEAL").read_bytes()

    def refuse(path: str) -> int:
        raise PermissionError(13, "permission denied", path)

    monkeypatch.setattr(seal, "_open_seal", refuse)
    check_seal(index)
    assert Path(index, "SEAL").read_bytes() == before
    flip(index, 8 * 4096 + 3)
    with pytest.raises(IndexDamaged):
        check_seal(index)


WRITER = """
import sys, time
sys.path.insert(0, sys.argv[2])
from test_seal import P, TABLES, corpus, lexical, open_env, writing
with writing(sys.argv[1]):
    env = open_env(sys.argv[1], TABLES, sync=False)
    env.write(lambda txn: lexical.add(txn, P, corpus(100, 9)))
    print("written", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def writer(index: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has written a hundred documents and has not sealed them."""
    words = [sys.executable, "-c", WRITER, index, HERE]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        yield process
        process.kill()


def test_a_writer_at_work_is_trusted(
    index: str, writer: subprocess.Popen[str], never_inspected: None
) -> None:
    assert not seal._is_sealed(index)
    check_seal(index)
    assert held(index) == 550
    assert writer.stdin is not None
    writer.stdin.write("\n")
    writer.stdin.flush()
    assert writer.wait(30) == 0
    assert seal._is_sealed(index)
    check_seal(index)


@pytest.mark.parametrize("damage", [False, True])
def test_what_a_killed_writer_left_is_inspected(
    index: str, writer: subprocess.Popen[str], damage: bool
) -> None:
    writer.send_signal(signal.SIGKILL)
    writer.wait(30)
    assert not seal._is_sealed(index)
    if damage:
        flip(index, 8 * 4096 + 3)
        with pytest.raises(IndexDamaged):
            check_seal(index)
        assert not seal._is_sealed(index)
    else:
        check_seal(index)
        assert seal._is_sealed(index)
        assert held(index) == 550


@pytest.mark.parametrize("boot", ["another", ""])
def test_after_a_loss_of_power_during_a_write_it_is_refused(
    index: str, writer: subprocess.Popen[str], boot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.send_signal(signal.SIGKILL)
    writer.wait(30)
    with monkeypatch.context() as patch:
        patch.setattr(seal, "_boot", lambda: boot)
        with pytest.raises(IndexDamaged, match="the machine stopped"):
            check_seal(index)
        with pytest.raises(IndexDamaged, match="the machine stopped"), writing(index):
            raise AssertionError("let in")
    check_seal(index)


def test_who_comes_during_an_inspection_waits_for_its_outcome(
    index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(data(index))
    lock = os.open(os.path.join(index, "SEAL"), os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    done: list[float] = []
    waiting = threading.Thread(target=lambda: (check_seal(index), done.append(time.monotonic())))
    waiting.start()
    time.sleep(0.1)
    assert not done
    os.close(lock)
    waiting.join(30)
    assert done
    assert seal._is_sealed(index)
    os.utime(data(index))
    monkeypatch.setattr(seal, "_PATIENCE_S", 0.05)
    lock = os.open(os.path.join(index, "SEAL"), os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with pytest.raises(StoreLocked):
        check_seal(index)
    with pytest.raises(StoreLocked), writing(index):
        raise AssertionError("let in")
    os.close(lock)
    check_seal(index)


def test_a_block_that_fails_seals_what_it_left_unless_that_is_damaged(index: str) -> None:
    with pytest.raises(KeyError), writing(index):
        raise KeyError("other trouble")
    assert seal._is_sealed(index)
    with pytest.raises(IndexDamaged), writing(index):
        raise IndexDamaged("found inside")
    assert not seal._is_sealed(index)
    check_seal(index)
    assert seal._is_sealed(index)


def test_the_folder_and_the_seal_are_private(tmp_path: Path) -> None:
    path = str(tmp_path / "deep" / "index")
    grow(path, corpus(2))
    assert os.stat(path).st_mode & 0o077 == 0
    assert os.stat(os.path.join(path, "SEAL")).st_mode & 0o177 == 0
    assert os.stat(data(path)).st_mode & 0o177 == 0
