"""The key-value layer: scans, growth of the map, full disks, damaged and missing files."""

from __future__ import annotations

import os
import random
import runpy
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import disk, kv
from remem.objects.errors import (
    IntegrityError,
    NetworkFilesystem,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreMissing,
    StoreReadOnly,
)

W = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("_workers.py"))))
TABLES = ("a", "b")
MIB = 1 << 20


@pytest.fixture
def env(tmp_path: Path) -> Iterator[kv.Env]:
    env = kv.open_env(str(tmp_path / "env"), TABLES, create=True)
    yield env
    kv.forget_env(env.path)


def fill(env: kv.Env, table: str, pairs: dict[bytes, bytes]) -> None:
    def change(txn: kv.Txn) -> None:
        for key, value in pairs.items():
            txn.put(table, key, value)

    env.write(change)


# -- scans ----------------------------------------------------------------------------------------

keys = st.binary(min_size=1, max_size=4) | st.lists(
    st.sampled_from([b"\x00", b"\xfe", b"\xff", b"a"]), min_size=1, max_size=4
).map(b"".join)


@given(
    st.dictionaries(keys, st.binary(max_size=3), max_size=20),
    st.binary(max_size=3),
    st.none() | st.binary(max_size=3),
    keys | st.just(b""),
)
def test_scans_equal_a_sorted_dict(
    tmp_path_factory: pytest.TempPathFactory,
    pairs: dict[bytes, bytes],
    start: bytes,
    stop: bytes | None,
    prefix: bytes,
) -> None:
    path = str(tmp_path_factory.mktemp("scan") / "env")
    env = kv.open_env(path, TABLES, create=True, sync=False, map_b=MIB)
    fill(env, "a", pairs)
    inside = sorted(p for p in pairs.items() if start <= p[0] and (stop is None or p[0] < stop))
    begins = sorted(p for p in pairs.items() if p[0].startswith(prefix))
    with env.read() as txn:
        assert list(txn.scan("a", start, stop)) == inside
        assert list(txn.scan("a", start, stop, reverse=True)) == inside[::-1]
        assert list(txn.scan_prefix("a", prefix)) == begins
        assert list(txn.scan_prefix("a", prefix, reverse=True)) == begins[::-1]
        assert list(txn.scan("b")) == []
        assert txn.count("a") == len(pairs)
    assert env.write(lambda txn: txn.delete_prefix("a", prefix)) == len(begins)
    with env.read() as txn:
        assert dict(txn.scan("a")) == {k: v for k, v in pairs.items() if not k.startswith(prefix)}
    kv.forget_env(path)
    shutil.rmtree(os.path.dirname(path))


@pytest.mark.parametrize(
    ("prefix", "after"),
    [(b"", None), (b"\xff", None), (b"\xff\xff", None), (b"a", b"b"), (b"a\xff", b"b"),
     (b"\xfe\xff\xff", b"\xff"), (b"\x00", b"\x01"), (b"a\x00\xff", b"a\x01")],
)  # fmt: skip
def test_after_prefix_is_the_least_key_above(prefix: bytes, after: bytes | None) -> None:
    assert kv.after_prefix(prefix) == after


def test_point_reads_and_changes(env: kv.Env) -> None:
    def change(txn: kv.Txn) -> list[object]:
        txn.put("a", b"k", b"1")
        return [
            txn.put_new("a", b"k", b"2"),
            txn.put_new("a", b"n", b""),
            txn.get("a", b"k"),
            txn.get("b", b"k"),
            txn.delete("a", b"n"),
            txn.delete("a", b"n"),
        ]

    assert env.write(change) == [False, True, b"1", None, True, False]
    with env.read(buffers=True) as txn:
        value = txn.get("a", b"k")
        assert isinstance(value, memoryview) and bytes(value) == b"1"


def test_put_many_appends_in_order_and_refuses_what_is_not(env: kv.Env) -> None:
    rows = [(b"%03d" % i, b"v") for i in range(500)]
    env.write(lambda txn: txn.put_many("a", rows, True))
    with env.read() as txn:
        assert list(txn.scan("a")) == rows
    for late in ([(b"499", b"again")], [(b"500", b""), (b"100", b"")], [(b"000", b"")]):
        with pytest.raises(IntegrityError, match="not in order"):
            env.write(lambda txn, late=late: txn.put_many("a", late, True))  # type: ignore[misc]
    with env.read() as txn:
        assert list(txn.scan("a")) == rows, "a refused append left something behind"
    env.write(lambda txn: txn.put_many("a", [(b"100", b"new"), (b"0", b"new")], False))
    with env.read() as txn:
        assert (txn.get("a", b"100"), txn.get("a", b"0")) == (b"new", b"new")


def test_a_key_that_is_too_long_is_ours(env: kv.Env) -> None:
    env.write(lambda txn: txn.put("a", b"x" * kv.MAX_KEY_B, b""))
    with pytest.raises(IntegrityError):
        env.write(lambda txn: txn.put("a", b"x" * (kv.MAX_KEY_B + 1), b""))


# -- transactions ---------------------------------------------------------------------------------


def test_a_failed_change_leaves_nothing(env: kv.Env) -> None:
    def change(txn: kv.Txn) -> None:
        txn.put("a", b"k", b"v")
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        env.write(change)
    with env.read() as txn:
        assert txn.get("a", b"k") is None
    fill(env, "a", {b"k": b"v"})
    with env.read() as txn:
        assert txn.get("a", b"k") == b"v"


def test_errors_of_the_caller_stay_his(env: kv.Env) -> None:
    """A broken pipe while results are printed is not an error of the store."""
    with pytest.raises(BrokenPipeError), env.read():
        raise BrokenPipeError(32, "Broken pipe")

    def change(txn: kv.Txn) -> None:
        open("/nowhere/at/all", encoding="utf-8")

    with pytest.raises(FileNotFoundError):
        env.write(change)
    with pytest.raises(IntegrityError), env.read() as txn:  # one of LMDB becomes ours
        txn.get("a", b"")


def test_a_change_inside_a_change_is_refused(env: kv.Env) -> None:
    with pytest.raises(StoreError, match="inside another"):
        env.write(lambda txn: env.write(lambda inner: None))
    env.write(lambda txn: None)


def test_a_snapshot_does_not_move(env: kv.Env) -> None:
    fill(env, "a", {b"k": b"old"})
    with env.read() as txn:
        thread = threading.Thread(target=fill, args=(env, "a", {b"k": b"new"}))
        thread.start()
        thread.join()
        assert txn.get("a", b"k") == b"old"
    with env.read() as txn:
        assert txn.get("a", b"k") == b"new"


def test_one_environment_for_a_folder(tmp_path: Path, env: kv.Env) -> None:
    (tmp_path / "link").symlink_to(env.path)
    other = kv.open_env(str(tmp_path / "link"), TABLES)
    assert other is env
    kv.release(other)
    with env.read() as txn:
        assert txn.count("a") == 0


def test_release_closes_after_the_last_user_and_its_last_reader(env: kv.Env) -> None:
    again = kv.open_env(env.path, TABLES)
    with env.read():
        kv.release(env)
        kv.release(again)
        assert env.shared.raw is not None
        third = kv.open_env(env.path, TABLES)  # while the reader keeps it open
        assert third is env
        fill_thread = threading.Thread(target=fill, args=(third, "a", {b"k": b"v"}))
        fill_thread.start()
    fill_thread.join()
    kv.release(third)
    assert env.shared.raw is None
    with kv.open_env(env.path, TABLES).read() as txn:
        assert txn.get("a", b"k") == b"v"


def test_other_files_in_the_same_place_are_seen(env: kv.Env, tmp_path: Path) -> None:
    fill(env, "a", {b"k": b"first"})
    os.rename(env.path, tmp_path / "away")
    second = kv.open_env(env.path, TABLES, create=True)
    fill(second, "a", {b"k": b"second"})
    with second.read() as txn:
        assert txn.get("a", b"k") == b"second"


def test_readonly_never_writes_and_becomes_writable_by_a_writer(env: kv.Env) -> None:
    fill(env, "a", {b"k": b"v"})
    kv.forget_env(env.path)
    reader = kv.open_env(env.path, TABLES, readonly=True)
    with reader.read() as txn:
        assert txn.get("a", b"k") == b"v"
    with pytest.raises(StoreReadOnly):
        reader.write(lambda txn: None)
    writer = kv.open_env(env.path, TABLES)
    assert writer is reader
    fill(writer, "a", {b"k": b"w"})


def test_a_thread_that_reads_may_not_open_it_for_writing(env: kv.Env) -> None:
    fill(env, "a", {b"k": b"v"})
    env.close()
    with env.read(), pytest.raises(StoreLocked, match="this thread"):
        fill(env, "a", {b"k": b"w"})
    fill(env, "a", {b"k": b"x"})


def test_the_first_write_waits_for_the_readers_of_other_threads(env: kv.Env) -> None:
    fill(env, "a", {b"k": b"v"})
    env.close()
    order = []

    def write() -> None:
        fill(env, "a", {b"k": b"w"})
        order.append("written")

    with env.read() as txn:
        thread = threading.Thread(target=write)
        thread.start()
        time.sleep(0.1)
        assert txn.get("a", b"k") == b"v"
        order.append("read")
    thread.join()
    assert order == ["read", "written"]
    with env.read() as txn:  # from now on nobody waits
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        assert order[-1] == "written" and len(order) == 3


# -- growth ---------------------------------------------------------------------------------------


def test_the_map_grows_while_other_threads_read(tmp_path: Path) -> None:
    """C2: readers hold snapshots open all the time; none fails, none starves the writer."""
    env = kv.open_env(str(tmp_path / "env"), TABLES, create=True, map_b=MIB, sync=False)
    fill(env, "a", {b"%04d" % i: b"x" * 100 for i in range(500)})
    before = env.info()["map_b"]
    stop, failures, rounds = threading.Event(), [], [0] * 4

    def read(index: int) -> None:
        try:
            while not stop.is_set():
                with env.read() as txn:
                    seen = 0
                    for _ in txn.scan("a"):
                        seen += 1
                        if seen % 100 == 0:
                            time.sleep(0.001)
                    assert seen >= 500
                    with env.read() as inner:  # a thread that reads may read again
                        assert inner.count("a") >= 500
                rounds[index] += 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for number in range(40):
        fill(env, "a", {b"big%03d" % number: bytes(MIB // 2)})
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert min(rounds) > 0
    assert env.info()["map_b"] >= 16 * before
    with env.read() as txn:
        assert txn.count("a") == 540
    kv.forget_env(env.path)


def test_a_snapshot_of_the_same_thread_keeps_the_map(tmp_path: Path) -> None:
    env = kv.open_env(str(tmp_path / "env"), TABLES, create=True, map_b=MIB, sync=False)
    fill(env, "a", {b"k": b"v"})
    began = time.monotonic()
    with env.read() as txn, pytest.raises(StoreLocked, match="this thread"):
        fill(env, "a", {b"big": bytes(4 * MIB)})
    assert time.monotonic() - began < 5
    with env.read() as txn:
        assert txn.get("a", b"big") is None and txn.get("a", b"k") == b"v"
    fill(env, "a", {b"big": bytes(4 * MIB)})
    kv.forget_env(env.path)


def test_the_limit_of_the_map_is_an_error_with_a_hint(tmp_path: Path) -> None:
    env = kv.open_env(
        str(tmp_path / "env"), TABLES, create=True, map_b=MIB, max_map_b=4 * MIB, sync=False
    )
    fill(env, "a", {b"k": bytes(2 * MIB)})
    with pytest.raises(StoreFull, match="limit") as error:
        fill(env, "a", {b"more": bytes(3 * MIB)})
    assert "max_map" in error.value.hint
    with env.read() as txn:
        assert txn.get("a", b"k") == bytes(2 * MIB) and txn.get("a", b"more") is None
    env.write(lambda txn: txn.delete("a", b"k"))
    fill(env, "a", {b"less": bytes(MIB)})
    kv.forget_env(env.path)


def test_a_change_is_run_again_when_the_map_grew(tmp_path: Path) -> None:
    env = kv.open_env(str(tmp_path / "env"), TABLES, create=True, map_b=MIB, sync=False)
    runs = []

    def change(txn: kv.Txn) -> str:
        runs.append(txn.count("a"))
        for number in range(30):
            txn.put("a", b"%d" % number, bytes(MIB // 4))
        return "done"

    assert env.write(change) == "done"
    assert len(runs) > 1 and set(runs) == {0}
    kv.forget_env(env.path)


# -- files ----------------------------------------------------------------------------------------


def test_missing_means_missing(tmp_path: Path) -> None:
    path = tmp_path / "env"
    for _ in range(2):
        with pytest.raises(StoreMissing), kv.open_env(str(path), TABLES).read():
            pass
        assert not path.exists()
        kv.forget_env(str(path))
        path.mkdir()
        with pytest.raises(StoreMissing), kv.open_env(str(path), TABLES).read():
            pass
        assert os.listdir(path) == []
        kv.forget_env(str(path))
        path.rmdir()


def test_tables_are_made_only_on_request(env: kv.Env) -> None:
    env.info()
    kv.forget_env(env.path)
    more = (*TABLES, "c")
    with pytest.raises(StoreCorrupt, match="table"), kv.open_env(env.path, more).read():
        pass
    kv.forget_env(env.path)
    fill(kv.open_env(env.path, more, create=True), "c", {b"k": b"v"})


def small_store(path: Path) -> bytes:
    """Bytes of a data file with values of all sizes and pages that were freed."""
    env = kv.open_env(str(path), TABLES, create=True, map_b=64 * MIB, sync=False)
    chance = random.Random(7)
    for number in range(30):
        fill(env, "a", {b"%d %d" % (number, i): bytes(chance.choice((9, 900, 9000))) for i in
                        range(20)})  # fmt: skip
        env.write(lambda txn, n=number: txn.delete_prefix("a", b"%d " % (n // 2)))  # type: ignore[misc]
    kv.forget_env(str(path))
    return (path / "data.mdb").read_bytes()


@pytest.mark.parametrize("part", [0, 0.0001, 0.01, 0.25, 0.5, 0.75, 0.99, 0.9999])
def test_a_data_file_cut_short_is_an_error_and_no_signal(tmp_path: Path, part: float) -> None:
    whole = small_store(tmp_path / "env")
    data = tmp_path / "env" / "data.mdb"
    script = (
        "import sys; from remem.objects import kv\n"
        "env = kv.open_env(sys.argv[1], ('a', 'b'))\n"
        "try:\n"
        "    with env.read() as txn: print('read', sum(len(v) for _, v in txn.scan('a')))\n"
        "except kv.StoreCorrupt as error: print('corrupt', error)\n"
    )
    answers = []
    for content in (whole, whole[: int(len(whole) * part)]):
        data.write_bytes(content)
        done = subprocess.run(
            [sys.executable, "-c", script, tmp_path / "env"], capture_output=True, text=True
        )
        assert done.returncode == 0, (done.returncode, done.stderr)
        answers.append(done.stdout.split()[0])
    assert answers == ["read", "corrupt"]


def test_every_cut_is_found_and_no_sound_file_is_refused(tmp_path: Path) -> None:
    """Each transaction leaves a file that passes; what passes after a cut has every page in use."""
    env = kv.open_env(str(tmp_path / "env"), TABLES, create=True, map_b=64 * MIB, sync=False)
    data = os.path.join(env.path, "data.mdb")
    chance = random.Random(11)
    short = 0
    for number in range(150):

        def change(txn: kv.Txn) -> None:
            for _ in range(chance.randrange(1, 30)):
                key = b"%d" % chance.randrange(200)
                if chance.random() < 0.4:
                    txn.delete_prefix("a", key)
                else:  # pages numbered and given back in one transaction are never written
                    txn.put("a", key, bytes(chance.choice((10, 1000, 50_000))))
                    if chance.random() < 0.5:
                        txn.delete("a", key)

        env.write(change)
        disk.check_whole(data)
        used = env.info()["used_b"]
        short += os.path.getsize(data) < used
        if number % 15 == 0:
            fill(env, "b", {b"%d" % i: b"v" for i in range(number)})
    assert short, "no file of this test ended before its last page: the list of free pages idles"
    content = Path(data).read_bytes()
    with env.read() as txn:
        truth = {t: list(txn.scan(t)) for t in TABLES}
    kv.forget_env(env.path)
    page = 4096
    passed = 0
    for pages in range(len(content) // page - 1, 2, -1):
        Path(data).write_bytes(content[: pages * page])
        try:
            disk.check_whole(data)
        except StoreCorrupt:
            break
        passed += 1
        with kv.open_env(env.path, TABLES).read() as txn:
            assert {t: list(txn.scan(t)) for t in TABLES} == truth
        kv.forget_env(env.path)
    else:
        pytest.fail("no cut was found")
    for fewer in range(pages - 1, 2, -max(1, pages // 20)):
        Path(data).write_bytes(content[: fewer * page])
        with pytest.raises(StoreCorrupt, match="cut short"):
            disk.check_whole(data)


@pytest.mark.parametrize("size", [1, 100, 8192, 100_000])
def test_garbage_is_an_error(tmp_path: Path, size: int) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "data.mdb").write_bytes(random.Random(size).randbytes(size))
    for create in (False, True):
        env = kv.open_env(str(tmp_path / "env"), TABLES, create=create)
        with pytest.raises(StoreCorrupt), env.read():
            pass
        kv.forget_env(env.path)
    assert (tmp_path / "env" / "data.mdb").stat().st_size == size


def test_lock_file_garbage_does_not_hurt(env: kv.Env) -> None:
    fill(env, "a", {b"k": b"v"})
    kv.forget_env(env.path)
    Path(env.path, "lock.mdb").write_bytes(b"\xff" * 10_000)
    with kv.open_env(env.path, TABLES).read() as txn:
        assert txn.get("a", b"k") == b"v"


def test_network_file_systems_are_told_by_the_mount_table(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    share = tmp_path / "my share"
    (share / "deep").mkdir(parents=True)
    (share / "local").mkdir()
    escaped = str(share).replace(" ", "\\040")
    mounts.write_text(
        "rootfs / ext4 rw 0 0\nbroken line\n"
        f"host:/x {escaped} nfs4 rw 0 0\n/dev/sda1 {escaped}/local xfs rw 0 0\n"
    )
    assert disk.filesystem_type(str(share / "deep"), str(mounts)) == "nfs4"
    assert disk.filesystem_type(str(share / "local"), str(mounts)) == "xfs"
    assert disk.filesystem_type(str(tmp_path / "my share 2"), str(mounts)) == "ext4"
    with pytest.raises(NetworkFilesystem, match="nfs4") as error:
        disk.refuse_network(str(share / "deep"), str(mounts))
    assert "allow_network_fs" in error.value.hint
    disk.refuse_network(str(share / "local"), str(mounts))
    disk.refuse_network(str(share / "deep"), str(tmp_path / "no mounts"))
    for kind in ("cifs", "9p", "fuse.sshfs", "ceph"):
        mounts.write_text(f"x / {kind} rw 0 0\n")
        with pytest.raises(NetworkFilesystem):
            disk.refuse_network(str(share), str(mounts))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    """C8: the error says so, what was there is readable, and the next write works after freeing."""
    env = kv.open_env(str(small_disk / "env"), TABLES, create=True)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(3 * MIB))
    stored = 0
    with pytest.raises(StoreFull) as error:
        for number in range(1000):
            fill(env, "a", {b"%04d" % number: bytes(20_000)})
            stored += 1
    assert "free some space" in error.value.hint
    assert stored > 50
    with env.read() as txn:
        assert txn.count("a") == stored
    with pytest.raises(StoreFull):
        fill(env, "a", {b"again": bytes(100_000)})
    ballast.unlink()
    fill(env, "a", {b"again": bytes(100_000)})
    with env.read() as txn:
        assert txn.count("a") == stored + 1
    kv.forget_env(env.path)


def test_a_full_disk_without_a_lock_file(small_disk: Path) -> None:
    """A lock file with holes on a full disk would end the process by SIGBUS."""
    env = kv.open_env(str(small_disk / "env"), TABLES, create=True)
    fill(env, "a", {b"k": b"v"})
    kv.forget_env(env.path)
    lock = small_disk / "env" / "lock.mdb"
    assert lock.stat().st_blocks * 512 >= lock.stat().st_size, "the lock file has holes"
    lock.unlink()
    ballast = small_disk / "ballast"
    with pytest.raises(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(4096)) == 4096:
            pass
        raise OSError(28, "full")
    script = (
        "import sys; from remem.objects import kv\n"
        "try:\n"
        "    with kv.open_env(sys.argv[1], ('a', 'b')).read() as txn: print(txn.get('a', b'k'))\n"
        "except kv.StoreFull as error: print('full', error.hint)\n"
    )
    command = [sys.executable, "-c", script, env.path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout[:4]) == (0, "full"), done
    ballast.unlink()
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "b'v'\n")
    assert sorted(os.listdir(env.path)) == ["data.mdb", "lock.mdb"]


def test_a_file_system_that_is_mounted_read_only(tmp_path: Path) -> None:
    env = kv.open_env(str(tmp_path / "disk" / "env"), TABLES, create=True)
    fill(env, "a", {b"k": b"v"})
    kv.forget_env(env.path)
    place = tmp_path / "disk"
    done = subprocess.run(["mount", "--bind", place, place], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a folder cannot be mounted here: {done.stderr.strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        for readonly in (True, False):
            env = kv.open_env(str(place / "env"), TABLES, readonly=readonly)
            with env.read() as txn:
                assert txn.get("a", b"k") == b"v"
            with pytest.raises(StoreReadOnly):
                fill(env, "a", {b"k": b"w"})
            kv.forget_env(env.path)
        with pytest.raises(StoreReadOnly):
            fill(kv.open_env(str(place / "new"), TABLES, create=True), "a", {b"k": b"w"})
    finally:
        subprocess.run(["umount", "-l", place], check=True)
    fill(kv.open_env(env.path, TABLES), "a", {b"k": b"w"})


def test_folders_and_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        env = kv.open_env(str(tmp_path / "x" / "y" / "env"), TABLES, create=True)
        fill(env, "a", {b"k": b"v"})
        (tmp_path / "copy").mkdir()
        env.copy(str(tmp_path / "copy"))
    finally:
        os.umask(old)
    for folder in ("x", "x/y", "x/y/env"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o700
    for file in ("x/y/env/data.mdb", "x/y/env/lock.mdb", "copy/data.mdb"):
        assert (tmp_path / file).stat().st_mode & 0o777 == 0o600
    kv.forget_env(env.path)


def test_a_copy_is_whole(env: kv.Env, tmp_path: Path) -> None:
    fill(env, "a", {b"%d" % i: b"v" * i for i in range(300)})
    (tmp_path / "copy").mkdir()
    env.copy(str(tmp_path / "copy"))
    with kv.open_env(str(tmp_path / "copy"), TABLES).read() as txn, env.read() as own:
        assert list(txn.scan("a")) == list(own.scan("a"))


# -- limits and processes -------------------------------------------------------------------------


@pytest.mark.parametrize("limit_mib", [1024, 300])
def test_a_limit_of_virtual_memory_makes_a_smaller_map(tmp_path: Path, limit_mib: int) -> None:
    """C34: it works; where the address space ends, an error says so and nothing is lost."""
    assert W.run("limit", tmp_path / "s", limit_mib, 20) == ["read 20"]
    if limit_mib == 300:
        full, read = W.run("limit", tmp_path / "t", limit_mib, 400)
        assert full.startswith("StoreFull no address space left") and "ulimit -v" in full
        assert int(read.split()[1]) > 100


def test_readers_start_while_another_process_writes(tmp_path: Path) -> None:
    """A60: opening a store, and reading it, does not wait for the writer of the moment."""
    root = tmp_path / "s"
    store = W.Store.create(str(root))
    W.add(store, "there before")
    store.close()
    holder = W.start("hold-write", root)
    assert holder.stdout.readline() == "inside\n"
    began = time.monotonic()
    assert W.run("probe", root) == ["ok 1"]
    with store.read(W.actor().grant) as reader:
        assert reader.last_seq(reader.parts[0]) == 1
    assert time.monotonic() - began < 5
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    began = time.monotonic()
    W.add(store, "after the writer was killed")
    assert time.monotonic() - began < 5
    assert W.run("probe", root) == ["ok 2"]
