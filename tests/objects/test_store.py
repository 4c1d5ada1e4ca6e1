"""A store on disk: making, opening, refusing, following generations, surviving damage."""

from __future__ import annotations

import os
import random
import runpy
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from remem.objects import disk, kv
from remem.objects import format as fmt
from remem.objects.errors import (
    NetworkFilesystem,
    NewerFormat,
    Refused,
    StoreCorrupt,
    StoreError,
    StoreMissing,
    StoreReadOnly,
)
from remem.objects.store import Store, _refuse_foreign, canon_path, locate

W = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("_workers.py"))))
OTHER_USER = 12345


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Folder of a store with three observations, closed."""
    path = str(tmp_path / "s")
    store = Store.create(path)
    for text in ("one", "two", "three"):
        W.add(store, text)
    store.close()
    return path


def tree(folder: str) -> dict[str, tuple[int, int, int]]:
    """Every file below a folder with mode, size and time of change."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            state = os.stat(os.path.join(place, name))
            found[os.path.join(place, name)] = (state.st_mode, state.st_size, state.st_mtime_ns)
    return found


def put(root: str, name: str, text: str) -> None:
    Path(root, name).write_text(text)


def last_seq(store: Store) -> int:
    with store.read(W.actor().grant) as reader:
        return sum(reader.last_seq(part) for part in reader.parts)


# -- making and opening ---------------------------------------------------------------------------


def test_create_open_and_create_again(tmp_path: Path) -> None:
    path = str(tmp_path / "deep" / "er" / "s")
    assert not locate(path)
    with pytest.raises(StoreMissing) as error:
        Store(path)
    assert "remem" in error.value.hint
    assert not os.path.exists(path)
    first = Store.create(path)
    assert locate(path) and first.generation == 1
    item = W.add(first, "words")
    again = Store.create(path)
    assert W.add(again, "words").id == item.id
    assert Path(path, "FORMAT").read_text() == "remem store 1\n"
    assert W.check_books(Store(path)) == 1


def test_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store.create("s")
    monkeypatch.chdir("/")
    W.add(store, "words")
    assert W.check_books(Store(str(tmp_path / "s"))) == 1


def test_everything_is_private_whatever_the_umask(tmp_path: Path) -> None:
    """B28: folders 0700 and files 0600, also those above the store that had to be made."""
    old = os.umask(0)
    try:
        store = Store.create(str(tmp_path / "share" / "remem"))
        W.add(store, "words")
        store.close()
    finally:
        os.umask(old)
    modes = {path: mode for path, (mode, _, _) in tree(str(tmp_path / "share")).items()}
    modes[str(tmp_path / "share")] = (tmp_path / "share").stat().st_mode
    assert any(path.endswith("data.mdb") for path in modes)
    for path, mode in modes.items():
        assert mode & 0o777 == (0o700 if os.path.isdir(path) else 0o600), path


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "thesis.tex").write_text("text")
    with pytest.raises(Refused, match=r"thesis\.tex") as error:
        Store.create(str(tmp_path / "s"))
    assert error.value.hint and os.listdir(tmp_path / "s") == ["thesis.tex"]
    (tmp_path / "s" / "thesis.tex").unlink()
    (tmp_path / "s" / "config.toml").write_text("")
    assert W.add(Store.create(str(tmp_path / "s")), "words").status == "new"


def test_what_is_no_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in ("file", "file/s"):
        with pytest.raises(StoreError):
            Store.create(str(tmp_path / path))
        with pytest.raises(StoreError):
            Store(str(tmp_path / path))
    with pytest.raises(StoreReadOnly):
        Store.create("/sys/remem")
    assert (tmp_path / "file").read_text() == "x"


def test_a_network_file_system_is_refused_unless_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C7."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"rootfs / ext4 rw 0 0\nserver:/home {tmp_path}/net nfs4 rw 0 0\n")
    refuse = disk.refuse_network
    monkeypatch.setattr(disk, "refuse_network", lambda path: refuse(path, str(mounts)))
    with pytest.raises(NetworkFilesystem) as error:
        Store.create(str(tmp_path / "net" / "s"))
    assert "allow_network_fs" in error.value.hint
    assert not (tmp_path / "net" / "s" / "FORMAT").exists()
    Store.create(str(tmp_path / "local" / "s"))
    store = Store.create(str(tmp_path / "net" / "s"), allow_network=True)
    W.add(store, "words")
    with pytest.raises(NetworkFilesystem):
        Store(store.root)
    assert last_seq(Store(store.root, allow_network=True)) == 1


def test_two_processes_make_one_store(tmp_path: Path) -> None:
    """Fifty times at once: one store, one object, and nobody sees an error."""
    said = W.run("create", tmp_path / "many", 50)
    assert sorted(said) == ["known"] * 50 + ["new"] * 50
    for number in (0, 49):
        assert W.check_books(Store(str(tmp_path / "many" / f"s{number}"))) == 1


def test_a_store_that_another_process_finished_meanwhile_is_no_other_file(root: str) -> None:
    """What a creation looks at after it saw no FORMAT, when there is one by then."""
    _refuse_foreign(root)
    put(root, "stranger", "")
    with pytest.raises(Refused, match="stranger"):
        _refuse_foreign(root)


# -- users ----------------------------------------------------------------------------------------

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files to another user")


@as_root
def test_root_leaves_other_users_folders_alone(tmp_path: Path) -> None:
    """B26: a store that root made in a user's folder would be closed to that user."""
    home = tmp_path / "home"
    home.mkdir()
    for path in (home / "s", home / ".local" / "share" / "remem", home):
        os.chown(home, OTHER_USER, OTHER_USER)
        with pytest.raises(Refused, match="another user") as error:
            Store.create(str(path))
        assert "run as that user" in error.value.hint
        assert os.listdir(home) == []
    os.chmod(home, 0o1777)  # a place for everybody, as /tmp is
    Store.create(str(home / "s"))
    os.chown(home, 0, 0)
    Store.create(str(home / "t"))


@as_root
def test_root_writes_nothing_into_another_users_store(root: str) -> None:
    """B26: sudo in a user's session must not leave files that the user cannot open."""
    for place, folders, files in os.walk(root):
        for name in (".", *folders, *files):
            os.chown(os.path.join(place, name), OTHER_USER, OTHER_USER)
    before = tree(root)
    for open_it in (Store, Store.create):
        with pytest.raises(Refused, match="another user") as error:
            open_it(root)
        assert error.value.exit_code == 3 and "run as that user" in error.value.hint
    store = Store(root, readonly=True)
    assert last_seq(store) == 3
    with pytest.raises(StoreReadOnly):
        W.add(store, "more")
    store.close()
    os.unlink(os.path.join(root, "canon", "g1", "lock.mdb"))
    with pytest.raises(Refused, match="another user"):  # LMDB would make it, as root's
        last_seq(Store(root, readonly=True))
    assert not os.path.exists(os.path.join(root, "canon", "g1", "lock.mdb"))
    assert set(before) - set(tree(root)) == {os.path.join(root, "canon", "g1", "lock.mdb")}
    for path in before:
        if os.path.exists(path):
            assert os.stat(path).st_uid == OTHER_USER
            os.chown(path, 0, 0)
    assert W.add(Store(root), "more").status == "new"


def test_readonly_writes_nothing(root: str) -> None:
    store = Store(root, readonly=True)
    before = tree(root)
    assert last_seq(store) == 3
    with pytest.raises(StoreReadOnly):
        W.add(store, "four")
    store.close()
    ours = [path for path in before if not path.endswith("lock.mdb")]
    after = tree(root)
    assert [after[path] for path in ours] == [before[path] for path in ours]
    assert set(after) == set(before)
    assert W.add(Store(root), "four").status == "new"


# -- formats and damage ---------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["remem store 2\n", "remem store 99\n", "remem store 2"])
def test_a_newer_format_is_refused_before_any_write(root: str, line: str) -> None:
    """C17."""
    put(root, "FORMAT", line)
    before = tree(root)
    for open_it in (
        lambda: Store(root),
        lambda: Store(root, readonly=True),
        lambda: Store.create(root),
        lambda: locate(root),
    ):
        with pytest.raises(NewerFormat) as error:
            open_it()
        assert "newer remem" in error.value.hint
    assert tree(root) == before
    put(root, "FORMAT", fmt.FORMAT_LINE)
    assert last_seq(Store(root)) == 3


@pytest.mark.parametrize("line", ["", "remem store 0\n", "remem store 1", "remem store x\n", "\0"])
def test_a_format_file_that_says_something_else(root: str, line: str) -> None:
    put(root, "FORMAT", line)
    before = tree(root)
    for open_it in (Store, Store.create):
        with pytest.raises(StoreCorrupt, match="FORMAT"):
            open_it(root)
    assert tree(root) == before


@pytest.mark.parametrize("text", [None, "", "x", "-", "1.5\n", "\xff", "7\n"])
def test_a_generation_that_is_missing_or_none(root: str, text: str | None) -> None:
    os.unlink(os.path.join(root, "GENERATION"))
    if text is not None:
        Path(root, "GENERATION").write_bytes(text.encode("latin-1"))
    before = tree(root)
    for act in (last_seq, lambda store: W.add(store, "four")):
        with pytest.raises(StoreCorrupt, match=r"GENERATION|g7"):
            act(Store(root))
    assert tree(root) == before, "something was made or changed"
    put(root, "GENERATION", "1\n")
    assert last_seq(Store(root)) == 3


def test_a_missing_data_file_is_never_made_anew(root: str) -> None:
    data = Path(root, "canon", "g1", "data.mdb")
    for gone in (data, data.parent, data.parent.parent):
        away = gone.with_name("away")
        gone.rename(away)
        for open_it in (Store, Store.create):
            for use in (last_seq, lambda store: W.add(store, "four")):
                with pytest.raises(StoreCorrupt, match="no data file"):
                    use(open_it(root))
        assert not data.exists()
        away.rename(gone)
        assert last_seq(Store(root)) == 3


def test_a_data_file_without_tables_is_no_store(root: str) -> None:
    path = canon_path(root, 1)
    shutil.rmtree(path)
    os.mkdir(path)
    env = kv.open_env(path, (), create=True)
    env.info()
    kv.forget_env(path)
    for act in (last_seq, lambda store: W.add(store, "four")):
        with pytest.raises(StoreCorrupt, match="table"):
            act(Store(root))


@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.99])
def test_a_store_cut_short_is_an_error_or_reads_whole(root: str, part: float) -> None:
    """In a process of its own: the way this fails is a signal."""
    data = Path(root, "canon", "g1", "data.mdb")
    assert W.run("probe", root) == ["ok 3"]
    whole = data.read_bytes()
    data.write_bytes(whole[: int(len(whole) * part)])
    (said,) = W.run("probe", root)
    assert said.startswith("StoreCorrupt") and "cut short" in said
    data.write_bytes(whole)
    assert W.run("probe", root) == ["ok 3"]


def test_overwritten_pages_end_in_an_error_not_in_a_signal(root: str) -> None:
    """Every page in turn becomes noise or zeros; nothing may die, nothing may be invented."""
    data = Path(root, "canon", "g1", "data.mdb")
    whole = data.read_bytes()
    chance = random.Random(5)
    said = []
    pages = range(0, len(whole) // 4096)
    for page in pages:
        filling = bytes(4096) if page % 2 else chance.randbytes(4096)
        data.write_bytes(whole[: page * 4096] + filling + whole[(page + 1) * 4096 :])
        said += W.run("probe", root)
    assert len(said) == len(pages)
    assert {line.split()[0] for line in said} <= {
        "ok", "StoreCorrupt", "StoreError", "IntegrityError", "AssertionError", "NewerFormat",
    }  # fmt: skip
    assert all(line in ("ok 3",) for line in said if line.startswith("ok"))
    assert sum(line != "ok 3" for line in said) >= 8, "pages in use were not among them"


def test_the_books_of_these_tests_find_what_is_wrong(root: str) -> None:
    """Positive control of check_books, on which the other tests rely."""
    attacks: list[Callable[[kv.Txn], object]] = [
        lambda txn: txn.delete("audit", (3).to_bytes(8, "big")),
        lambda txn: txn.delete("audit", (2).to_bytes(8, "big")),
        lambda txn: txn.delete_prefix("log", b""),
        lambda txn: txn.put("heads", bytes([0, 0, 0, 1]), (9).to_bytes(8, "big")),
        lambda txn: txn.delete("objects", next(txn.scan("objects"))[0]),
        lambda txn: txn.delete("refs", next(txn.scan("refs"))[0]),
        lambda txn: txn.put("objects", next(txn.scan("objects"))[0], b"observation 1\0x"),
    ]
    kept = Path(root, "canon", "g1", "data.mdb").read_bytes()
    for attack in attacks:
        env = kv.open_env(canon_path(root, 1), fmt.TABLES)
        env.write(attack)
        kv.forget_env(env.path)
        store = Store(root)
        with pytest.raises(AssertionError):
            W.check_books(store)
        store.close()
        Path(root, "canon", "g1", "data.mdb").write_bytes(kept)
    assert W.check_books(Store(root)) == 3


# -- half-made and headless stores ----------------------------------------------------------------


def test_a_store_that_lost_its_format_file_is_not_made_anew(root: str) -> None:
    os.unlink(os.path.join(root, "FORMAT"))
    for look in (Store, Store.create):
        with pytest.raises(StoreCorrupt, match="no FORMAT file") as error:
            look(root)
        assert "backup" in error.value.hint
    os.unlink(os.path.join(root, "GENERATION"))
    with pytest.raises(StoreMissing):
        Store(root)
    with pytest.raises(StoreCorrupt, match="no FORMAT file"):
        Store.create(root)
    os.rename(canon_path(root, 1), canon_path(root, 4))
    with pytest.raises(StoreCorrupt, match="no FORMAT file"):
        Store.create(root)
    os.rename(canon_path(root, 4), canon_path(root, 1))
    put(root, "GENERATION", "4\n")
    with pytest.raises(StoreCorrupt, match="no FORMAT file"):
        Store.create(root)
    put(root, "GENERATION", "1\n")
    put(root, "FORMAT", fmt.FORMAT_LINE)
    assert W.check_books(Store(root)) == 3


@pytest.mark.parametrize("stage", range(6))
def test_a_creation_that_was_cut_off_is_taken_up(tmp_path: Path, stage: int) -> None:
    root = str(tmp_path / "s")
    store = Store.create(root)
    store.close()
    os.unlink(os.path.join(root, "FORMAT"))
    if stage == 0:
        shutil.rmtree(os.path.join(root, "canon"))
    elif stage == 1:
        Path(root, "canon", "g1", "data.mdb").write_bytes(b"")
    elif stage == 2:
        Path(root, "canon", "g1", "data.mdb").write_bytes(b"\0" * 5000)
    elif stage == 3:
        put(root, "FORMAT.4711.new", "remem st")
    elif stage == 4:
        os.rename(os.path.join(root, "GENERATION"), os.path.join(root, "GENERATION.99.new"))
    else:
        shutil.rmtree(os.path.join(root, "locks"))
        os.unlink(os.path.join(root, "canon", "g1", "lock.mdb"))
    again = Store.create(root)
    assert W.add(again, "words").status == "new"
    assert W.check_books(again) == 1
    assert not [name for name in os.listdir(root) if name.endswith(".new")]


# -- sharing --------------------------------------------------------------------------------------


def test_two_stores_of_one_process_share_and_close_apart(root: str) -> None:
    one, two = Store(root), Store(root)
    assert last_seq(one) == last_seq(two) == 3
    with two.read(W.actor().grant) as reader:
        one.close()
        assert reader.last_seq(reader.parts[0]) == 3
    assert W.add(two, "four").status == "new"
    assert last_seq(one) == 4  # opened again
    two.close()
    one.close()
    assert last_seq(two) == 4


def test_threads_share_a_store(root: str) -> None:
    store = Store(root, map_b=1 << 20)
    failures: list[BaseException] = []

    def work(index: int) -> None:
        try:
            for number in range(25):
                item = W.add(store, f"thread {index} item {number} ".ljust(3000, "x"))
                with store.read(W.actor().grant) as reader:
                    reader.object(reader.parts[0], item.id)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert W.check_books(store) == 203


def next_generation(store: Store) -> None:
    """What a compaction does: copy and switch inside the write lock, then remove the old files."""
    old, number = store.env(), store.generation
    path = canon_path(store.root, number + 1)
    os.mkdir(path, 0o700)

    def act(txn: kv.Txn) -> None:
        old.copy(path)
        fmt.write_file(os.path.join(store.root, "GENERATION"), f"{number + 1}\n")

    old.write(act)
    shutil.rmtree(old.path)


@pytest.fixture
def stop() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_other_processes_follow_a_generation_and_lose_nothing(root: str) -> None:
    """Writers of other processes never write to the generation that was left."""
    workers = [W.start("adds", root, 0, 200, f"writer {i}") for i in range(3)]
    store = Store(root)
    heard = [worker.stdout.readline() for worker in workers]
    for _ in range(6):
        next_generation(store)
        heard += [worker.stdout.readline() for worker in workers for _ in range(5)]
    for worker in workers:
        worker.kill()
        heard += worker.stdout.read().splitlines()
        worker.wait()
    assert store.generation == 7 and os.listdir(os.path.join(root, "canon")) == ["g7"]
    with store.read(W.actor().grant) as reader:
        for line in heard:
            if len(line.strip()) == 64:
                reader.object(reader.parts[0], bytes.fromhex(line.strip()))
    assert W.check_books(store) >= len(heard) - 3


def test_threads_follow_a_generation(root: str, stop: threading.Event) -> None:
    store, other = Store(root), Store(root)
    failures: list[BaseException] = []
    added: list[bytes] = []

    def write() -> None:
        try:
            while not stop.is_set():
                added.append(W.add(store, f"item {len(added)}").id)
        except BaseException as error:
            failures.append(error)

    def read() -> None:
        try:
            seen = 0
            while not stop.is_set():
                now = last_seq(store)
                assert now >= seen
                seen = now
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=target) for target in (write, read, read)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        next_generation(other)
        goal = len(added) + 5
        while len(added) < goal and not failures:
            time.sleep(0.001)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    with store.read(W.actor().grant) as reader:
        for object_id in added:
            reader.object(reader.parts[0], object_id)
    assert W.check_books(store) == len(added) + 3


def test_a_snapshot_outlives_its_generation(root: str) -> None:
    store, other = Store(root), Store(root)
    W.add(store, "four")
    with store.read(W.actor().grant) as reader:
        thread = threading.Thread(target=next_generation, args=(other,))
        thread.start()
        thread.join()
        W.run("adds", root, 1, 20, "later")
        assert len(list(reader.states(reader.parts[0]))) == 4
    assert (store.generation, last_seq(store)) == (2, 5)
