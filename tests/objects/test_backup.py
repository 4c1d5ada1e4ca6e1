"""Backups: one snapshot while others write, refusals, what is left after a failure, the list."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remem.objects import format as fmt
from remem.objects import kv
from remem.objects.admit import admit
from remem.objects.backup import MANIFEST_FILE, Backup, backup, backups, holding
from remem.objects.errors import Refused, StoreCorrupt, StoreError, StoreReadOnly
from remem.objects.fsck import verify
from remem.objects.model import Incoming, Scope
from remem.objects.scope import Actor, Grant, maintenance_grant
from remem.objects.store import Store, canon_path, read_generation
from remem.objects.tx import Tx

HOME = Scope("local", "default", "home", "none", "main")
OWNER = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)


def fill(store: Store, first: int, count: int) -> None:
    def run(tx: Tx) -> None:
        for number in range(first, first + count):
            admit(tx, Incoming(text=f"turn {number} " + "words " * 20, session=f"s{number % 5}"))

    store.write(OWNER, run)


def rows(root: str) -> dict[str, list[tuple[bytes, bytes]]]:
    """Every pair of every table."""
    store = Store(root, readonly=True)
    with store.env().read() as txn:
        found = {table: list(txn.scan(table)) for table in fmt.TABLES}
    store.close()
    return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.create(str(tmp_path / "store"))
    fill(made, 0, 300)
    yield made
    made.close()


def tree(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def test_a_copy_is_a_whole_store(store: Store, tmp_path: Path) -> None:
    root = Path(store.root)
    (root / fmt.CONFIG_FILE).write_text("[recall]\nlimit = 5\n")
    (root / fmt.SPOOL / "deep").mkdir(mode=0o700)
    (root / fmt.SPOOL / "deep" / "a.jsonl").write_bytes(b'{"text":"x"}\n')
    (root / fmt.SPOOL / "link").symlink_to("/etc/hostname")
    (root / fmt.INDEX / "g1").mkdir(parents=True)
    (root / fmt.INDEX / "g1" / "data.mdb").write_bytes(b"can be made again")
    target = tmp_path / "new" / "copy"
    made = backup(store, str(target))
    assert rows(str(target)) == rows(store.root)
    assert tree(target) == {
        *("FORMAT", "GENERATION", "config.toml", "backups.json"),
        *("canon", "canon/g1", "canon/g1/data.mdb", "canon/g1/lock.mdb"),  # opened above
        *("index", "locks", "spool", "spool/deep", "spool/deep/a.jsonl"),
    }
    assert (target / "config.toml").read_text() == "[recall]\nlimit = 5\n"
    for path in [target, *target.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    copy = Store(str(target), readonly=True)
    assert verify(copy).problems == []
    with copy.read(maintenance_grant()) as reader:
        head = reader.audit_head()
    assert (made.rows, made.head) == (head.seq, head.hash.hex()) == (300, head.hash.hex())
    assert made.bytes == (target / "canon" / "g1" / "data.mdb").stat().st_size
    copy.close()
    writable = Store(str(target))
    fill(writable, 1000, 1)
    assert verify(writable).problems == []
    writable.close()
    assert verify(store).problems == []
    assert len(rows(store.root)["objects"]) == 300


def test_an_empty_store_and_an_empty_folder(tmp_path: Path) -> None:
    empty = Store.create(str(tmp_path / "empty"))
    (tmp_path / "there").mkdir(mode=0o755)
    made = backup(empty, str(tmp_path / "there"))
    assert (made.rows, made.head) == (0, "00" * 32)
    assert stat.S_IMODE((tmp_path / "there").stat().st_mode) == 0o700
    assert verify(Store(str(tmp_path / "there"), readonly=True)).problems == []


WRITER = """
import sys
from remem.objects.admit import admit
from remem.objects.model import Incoming, Scope
from remem.objects.scope import Actor, Grant
from remem.objects.store import Store
owner = Actor(Grant("owner", "local", "default", None, owner=True), "cli",
              Scope("local", "default", "home", "none", "main"))
store = Store(sys.argv[1])
number = 0
print("ready", flush=True)
while True:
    number += 1
    text = f"written meanwhile {number} " + "words " * 50
    store.write(owner, lambda tx: admit(tx, Incoming(text=text)))
    print(number, flush=True)
"""


def test_while_another_process_writes(store: Store, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, store.root], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        made = []
        for number in range(3):
            with store.read(maintenance_grant()) as reader:
                before = reader.audit_head().seq
            made.append(backup(store, str(tmp_path / f"copy{number}")))
            with store.read(maintenance_grant()) as reader:
                after = reader.audit_head().seq
            assert before <= made[-1].rows <= after
            while int(writer.stdout.readline()) < 20 * (number + 1):
                continue
        writer.kill()
    assert made[0].rows < made[1].rows < made[2].rows
    source = rows(store.root)
    assert verify(store).problems == []
    for number, one in enumerate(made):
        copy = rows(str(tmp_path / f"copy{number}"))
        assert copy["audit"] == source["audit"][: one.rows]
        assert copy["log"] == source["log"][: one.rows]
        assert set(copy["objects"]) <= set(source["objects"])
        assert len(copy["objects"]) == one.rows
        assert verify(Store(str(tmp_path / f"copy{number}"), readonly=True)).problems == []


def test_the_map_was_grown_by_another_process(tmp_path: Path) -> None:
    small = Store.create(str(tmp_path / "small"), map_b=1 << 20)
    fill(small, 0, 10)
    script = WRITER.replace("while True:", "while number < 3:").replace(
        '"words " * 50', '"w" * 10**6'
    )
    subprocess.run([sys.executable, "-c", script, small.root], check=True, capture_output=True)
    made = backup(small, str(tmp_path / "copy"))
    assert made.bytes > 3 * 10**6
    assert rows(str(tmp_path / "copy")) == rows(small.root)


def test_where_no_copy_goes(store: Store, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").write_text("keep")
    (tmp_path / "file").write_text("keep")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    inside = Path(store.root) / "spool" / "copy"
    left = tmp_path / "cut.part"
    left.mkdir()
    before = tree(tmp_path)
    for target in (full, tmp_path / "file", tmp_path / "dangling", inside, Path(store.root)):
        with pytest.raises(Refused):
            backup(store, str(target))
    with pytest.raises(Refused):
        backup(store, str(tmp_path))  # holds the store
    with pytest.raises(Refused, match="nothing that a backup of this store left"):
        backup(store, str(tmp_path / "cut"))
    assert tree(tmp_path) - {"store/canon/g1/lock.mdb"} == before - {"store/canon/g1/lock.mdb"}
    assert backups(store.root) == []
    left.rmdir()
    backup(store, str(tmp_path / "cut"))
    with pytest.raises(Refused):
        backup(store, str(tmp_path / "cut"))


FULL = """
import sys
import resource
from remem.objects.backup import backup
from remem.objects.errors import StoreError
from remem.objects.store import Store
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store(sys.argv[1])
store.env().info()
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    backup(store, sys.argv[2])
except StoreError as error:
    print(type(error).__name__)
else:
    print("done")
"""


def test_nothing_is_left_when_the_disk_is_full(store: Store, tmp_path: Path) -> None:
    size_b = os.path.getsize(os.path.join(canon_path(store.root, 1), "data.mdb"))
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] < 0
    said = []
    for limit_b in (size_b // 4, 4 * size_b):
        done = subprocess.run(
            [sys.executable, "-c", FULL, store.root, str(tmp_path / "copy"), str(limit_b)],
            capture_output=True,
            text=True,
            check=True,
        )
        said.append(done.stdout.strip())
        listed = [made.path for made in backups(store.root)]
        there = [path.name for path in tmp_path.iterdir() if path.name.startswith("copy")]
        assert there == (["copy"] if said[-1] == "done" else [])
        assert listed == ([str(tmp_path / "copy")] if said[-1] == "done" else [])
    assert said == ["StoreFull", "done"]


def test_a_store_that_was_compacted_meanwhile_is_copied_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    copy = kv.Env.copy

    def slow(env: kv.Env, folder: str) -> None:
        copy(env, folder)
        copied.append(folder)
        if len(copied) == 1:  # another process leaves this generation, with fewer rows
            fresh = Store.create(str(tmp_path / "fresh"))
            fill(fresh, 0, 7)
            place = canon_path(store.root, 2)
            os.makedirs(place)
            copy(fresh.env(), place)
            fresh.close()
            fmt.write_file(os.path.join(store.root, fmt.GENERATION_FILE), "2\n")

    monkeypatch.setattr(kv.Env, "copy", slow)
    made = backup(store, str(tmp_path / "copy"))
    assert len(copied) == 2
    assert made.rows == 7
    assert read_generation(str(tmp_path / "copy")) == 2
    assert sorted(os.listdir(tmp_path / "copy" / fmt.CANON)) == ["g2"]
    assert len(rows(str(tmp_path / "copy"))["objects"]) == 7


# -- the list -------------------------------------------------------------------------------------


def test_the_list_names_which_copies_hold_a_row(store: Store, tmp_path: Path) -> None:
    assert backups(store.root) == []
    first = backup(store, str(tmp_path / "one"))
    fill(store, 300, 10)
    second = backup(store, str(tmp_path / "two"))
    assert backups(store.root) == [first, second]
    assert backups(str(tmp_path / "one")) == [first]
    assert backups(str(tmp_path / "two")) == [first, second]
    assert holding(store.root, 300) == [first, second]
    assert holding(store.root, 301) == [second]
    assert holding(store.root, 311) == []
    assert [first.path, first.time < second.time] == [str(tmp_path / "one"), True]
    shown = json.loads((Path(store.root) / MANIFEST_FILE).read_text())
    assert shown["backups"][0] == {
        "path": first.path,
        "time": first.time,
        "rows": 300,
        "head": first.head,
        "bytes": first.bytes,
    }
    subprocess.run(["rm", "-r", first.path], check=True)
    again = backup(store, first.path)
    assert backups(store.root) == [second, again]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-5],
        lambda text: text.replace('"rows"', '"lines"'),
        lambda text: "[]",
        lambda text: "",
    ],
)
def test_a_damaged_list_is_said_and_stops_before_copying(
    store: Store, tmp_path: Path, damage: Callable[[str], str]
) -> None:
    backup(store, str(tmp_path / "one"))
    path = Path(store.root) / MANIFEST_FILE
    good = path.read_text()
    path.write_text(damage(good))
    with pytest.raises(StoreCorrupt):
        backups(store.root)
    with pytest.raises(StoreCorrupt):
        backup(store, str(tmp_path / "two"))
    assert not (tmp_path / "two").exists()
    assert not (tmp_path / "two.part").exists()
    path.write_text(good)
    backup(store, str(tmp_path / "two"))


def test_a_store_that_cannot_be_written_is_copied_and_not_listed(
    store: Store, tmp_path: Path
) -> None:
    reading = Store(store.root, readonly=True)
    made = backup(reading, str(tmp_path / "copy"))
    assert isinstance(made, Backup)
    assert backups(store.root) == []
    assert backups(str(tmp_path / "copy")) == [made]
    with pytest.raises(StoreReadOnly):
        reading.write(OWNER, lambda tx: None)
    reading.close()


KILLED = """
import os, sys, signal
from remem.objects import backup as module
from remem.objects.store import Store
store = Store(sys.argv[1])
where = sys.argv[3]

def kill(*given, **named):
    os.kill(os.getpid(), signal.SIGKILL)

def after(function):
    def stop(*given, **named):
        function(*given, **named)
        kill()
    return stop

if where == "begun":
    module._begin = after(module._begin)
elif where == "copying":
    module._copy_file = after(module._copy_file)
elif where == "copied":
    module._check = after(module._check)
elif where == "listed":
    os.replace = kill
    module.fmt.write_file = lambda path, text: open(path, "w").write(text)
elif where == "named":
    os.unlink = lambda path: kill() if path.endswith("locks/backup") else None
module.backup(store, sys.argv[2])
"""


def killed(store: Store, target: Path, where: str) -> None:
    """Make a backup whose process is killed there."""
    words = [sys.executable, "-c", KILLED, store.root, str(target), where]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr


@pytest.mark.parametrize("where", ["begun", "copying", "copied", "listed"])
def test_killed_before_the_end_the_next_one_begins_anew(
    store: Store, tmp_path: Path, where: str
) -> None:
    (Path(store.root) / fmt.CONFIG_FILE).write_text("[recall]\nlimit = 5\n")
    target, part = tmp_path / "copy", tmp_path / "copy.part"
    killed(store, target, where)
    assert not target.exists() and (part / "locks" / "backup").exists()
    if where != "begun":
        assert (part / "canon").exists() or (part / "config.toml").exists()
    backup(store, str(target))
    assert not part.exists() and rows(str(target)) == rows(store.root)
    assert not (target / "locks" / "backup").exists()
    assert verify(Store(str(target), readonly=True)).problems == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy", "store"]


def test_killed_once_it_has_its_name_it_is_whole(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    killed(store, target, "named")
    assert not (tmp_path / "copy.part").exists()
    assert rows(str(target)) == rows(store.root)
    with pytest.raises(Refused, match="not empty"):
        backup(store, str(target))


RUNNING = """
import sys, time
from remem.objects import backup as module
from remem.objects.store import Store
check = module._check
def slow(*given):
    print("building", flush=True)
    sys.stdin.readline()
    return check(*given)
module._check = slow
module.backup(Store(sys.argv[1]), sys.argv[2])
"""


def test_one_that_is_running_is_left_alone(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    with subprocess.Popen(
        [sys.executable, "-c", RUNNING, store.root, str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "building\n"
        with pytest.raises(Refused, match="is running"):
            backup(store, str(target))
        other.stdin.write("go on\n")
        other.stdin.flush()
        assert other.wait(30) == 0
    assert rows(str(target)) == rows(store.root)


def test_what_is_not_the_leftover_of_this_store_is_left_alone(store: Store, tmp_path: Path) -> None:
    target, part = tmp_path / "copy", tmp_path / "copy.part"
    killed(store, target, "copied")
    other = Store.create(str(tmp_path / "other"))
    fill(other, 0, 3)
    before = tree(part)

    def refused(of: Store) -> None:
        with pytest.raises(Refused, match="nothing that a backup of this store left") as caught:
            backup(of, str(target))
        assert "remove that folder" in caught.value.hint

    refused(other)
    (part / "letter.txt").write_text("somebody's own")
    refused(store)
    assert (part / "letter.txt").read_text() == "somebody's own"
    (part / "letter.txt").unlink()
    mark = part / "locks" / "backup"
    whole = mark.read_bytes()
    mark.write_bytes(whole[:10])
    refused(store)
    mark.write_bytes(whole)
    moved = tmp_path / "elsewhere"
    part.rename(moved)
    part.symlink_to(moved)
    refused(store)
    part.unlink()
    moved.rename(part)
    assert tree(part) == before
    backup(store, str(target))  # the control
    assert rows(str(target)) == rows(store.root)


def test_unreadable_parent(store: Store) -> None:
    with pytest.raises(StoreError):
        backup(store, "/proc/nowhere/copy")
