"""How the check treats files: it writes none, survives damaged ones, and stays small."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from remem.objects import format as fmt
from remem.objects import kv
from remem.objects.admit import admit
from remem.objects.errors import StoreCorrupt, StoreError
from remem.objects.findings import Problem
from remem.objects.fsck import verify
from remem.objects.model import Incoming
from remem.objects.reader import Reader
from remem.objects.store import Store
from remem.objects.tx import Tx
from tests.objects.attacked import (
    ACTOR,
    Facts,
    add,
    build,
    check,
    places,
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Facts]:
    root = tmp_path_factory.mktemp("attacked") / "store"
    return root, build(root)


@pytest.fixture
def attacked(built: tuple[Path, Facts], tmp_path: Path) -> tuple[Path, Facts]:
    """A copy of the store, to be changed."""
    shutil.copytree(built[0], tmp_path / "store")
    return tmp_path / "store", built[1]


# -- files ------------------------------------------------------------------------------------


def test_verify_writes_nothing(attacked: tuple[Path, Facts]) -> None:
    root, _ = attacked

    def state() -> dict[str, tuple[str, int]]:
        return {
            str(path.relative_to(root)): (
                hashlib.sha256(path.read_bytes()).hexdigest(),
                path.stat().st_mtime_ns,
            )
            for path in root.rglob("*")
            if path.is_file() and path.name != "lock.mdb"  # the table of readers
        }

    before = state()
    for path in [root, *root.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    report = check(root)
    assert report.ok
    assert state() == before
    for path in [root, *root.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    add(Store(str(root)), text="a write is seen by the same measure")
    assert state() != before


def test_modes_and_left_over_generations_are_warnings(attacked: tuple[Path, Facts]) -> None:
    root, _ = attacked
    (root / "canon" / "g1" / "data.mdb").chmod(0o644)
    (root / "spool").chmod(0o755)
    (root / "canon" / "g0").mkdir(mode=0o700)
    report = check(root)
    assert report.ok
    assert {warning.where for warning in report.warnings} == {
        "canon/g0",
        "canon/g1/data.mdb",
        "spool",
    }


def test_format_and_generation_are_looked_at(attacked: tuple[Path, Facts]) -> None:
    root, _ = attacked
    store = Store(str(root), readonly=True)
    (root / "FORMAT").write_text("remem store one\n")
    assert places(verify(store)) == {"FORMAT"}
    (root / "FORMAT").write_text(fmt.FORMAT_LINE)
    (root / "GENERATION").write_text("first\n")
    assert places(verify(store)) == {"GENERATION"}
    (root / "GENERATION").write_text("2\n")
    assert places(verify(store)) == {"canon"}
    (root / "GENERATION").write_text("1\n")
    assert verify(store).ok
    store.close()


DAMAGE = """
import random, sys
from remem.objects.fsck import verify
from remem.objects.store import Store
root, data_path = sys.argv[1], sys.argv[1] + "/canon/g1/data.mdb"
whole = open(data_path, "rb").read()
pages = len(whole) // 4096
for page in range(pages):
    for kind in ("zeros", "noise", "cut"):
        at = page * 4096
        filler = bytes(4096) if kind == "zeros" else random.Random(page).randbytes(4096)
        data = whole[:at] + filler + whole[at + 4096:] if kind != "cut" else whole[:at + 2048]
        with open(data_path, "wb") as file:
            file.write(data)
        store = Store(root, readonly=True)
        report = verify(store)
        store.close()
        print(kind, page, report.ok, *(p.where for p in report.problems), flush=True)
"""


def test_damaged_pages_are_named_and_never_end_the_process(
    attacked: tuple[Path, Facts],
) -> None:
    """In a process of its own: what this guards against is an abort or a bus error."""
    root, _ = attacked
    done = subprocess.run(
        [sys.executable, "-c", DAMAGE, str(root)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split(" ", 3) for line in done.stdout.splitlines()]
    assert len(lines) > 3 * 20
    found = [line for line in lines if line[2] == "False"]
    assert len(found) > len(lines) // 2  # the others are free pages or the older meta page
    assert all("table" in line[3] or "canon" in line[3] for line in found)


def test_a_short_file_that_lacks_only_unused_pages_is_sound(tmp_path: Path) -> None:
    """Pages given back within a transaction are counted, yet never written."""
    store = Store.create(str(tmp_path / "store"))
    add(store, text="kept")
    env = store.env()

    def fill(first: int, last: int) -> Callable[[kv.Txn], None]:
        keys = [b"%06d" % i for i in range(first, last)]
        return lambda txn: txn.put_many("receipts", [(key, bytes(100)) for key in keys], False)

    env.write(fill(0, 1000))

    def change(txn: kv.Txn) -> None:
        fill(1000, 9000)(txn)
        for i in range(1000, 9000):
            txn.delete("receipts", b"%06d" % i)

    env.write(change)
    env.write(lambda txn: txn.delete_prefix("receipts", b"0"))
    info = env.info()
    assert info["file_b"] < info["used_b"]  # else the test shows nothing
    store.close()
    assert check(tmp_path / "store").ok


# -- how it is run ----------------------------------------------------------------------------


def test_what_is_no_damage_is_raised(attacked: tuple[Path, Facts]) -> None:
    root, _ = attacked
    store = Store(str(root), readonly=True)
    lock = root / "canon" / "g1" / "lock.mdb"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    with pytest.raises(StoreError) as raised:
        verify(store)
    assert not isinstance(raised.value, StoreCorrupt)
    lock.rmdir()
    assert verify(store).ok
    store.close()


def test_progress_is_told(attacked: tuple[Path, Facts]) -> None:
    told: list[tuple[str, int, int]] = []
    store = Store(str(attacked[0]), readonly=True)
    verify(store, progress=lambda *step: told.append(step))
    store.close()
    assert told[-1] == ("objects", 9, 9)
    assert ("audit", 13, 13) in told


def test_the_check_of_the_projections_is_the_callers(attacked: tuple[Path, Facts]) -> None:
    store = Store(str(attacked[0]), readonly=True)

    def index_check(reader: Reader) -> dict[str, object]:
        assert len(reader.parts) == 2
        return {"lag": 3, "problems": ["lost", {"where": "vectors", "what": "two rows"}]}

    report = verify(store, index_check=index_check)
    assert report.index == {"lag": 3}
    assert report.problems == [Problem("index", "lost"), Problem("vectors", "two rows")]
    assert verify(store, index_check=lambda _: {"lag": 0}).ok

    def broken(_: Reader) -> dict[str, object]:
        raise OSError(5, "Input/output error")

    assert places(verify(store, index_check=broken)) == {"index"}
    store.close()


def test_a_store_in_use_verifies(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    stop = threading.Event()
    written = [0]

    def write() -> None:
        while not stop.is_set():

            def change(tx: Tx) -> None:
                for _ in range(50):
                    written[0] += 1
                    admit(tx, Incoming(text=f"turn {written[0]} of a long talk"))

            store.write(ACTOR, change)

    writer = threading.Thread(target=write)
    writer.start()
    counts: list[int] = []
    try:
        while len(set(counts)) < 8:
            report = verify(store)
            assert report.problems == []
            counts.append(report.audit.rows)
    finally:
        stop.set()
        writer.join()
    assert counts == sorted(counts)
    store.close()


def many(root: Path, count: int) -> None:
    store = Store.create(str(root))

    def change(tx: Tx) -> None:
        for i in range(count):
            admit(tx, Incoming(text=f"turn {i} at the harbour", session=f"s{i % 9}"))

    store.write(ACTOR, change)
    store.close()


PEAK = """
import sys
from remem.objects.fsck import verify
from remem.objects.store import Store

def anonymous_kib(*_):
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("RssAnon"))
    seen.append(int(line.split()[1]))

seen = []
report = verify(Store(sys.argv[1], readonly=True), progress=anonymous_kib)
print(report.objects.checked, report.ok, max(seen))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc here")
def test_memory_does_not_grow_with_the_store(tmp_path: Path) -> None:
    """Measured without the pages of the map, which the kernel lends and takes back."""
    peaks = []
    for count in (5_000, 50_000):
        root = tmp_path / str(count)
        many(root, count)
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(root)], capture_output=True, text=True, check=True
        )
        checked, ok, peak = done.stdout.split()
        assert (int(checked), ok) == (count, "True")
        peaks.append(int(peak))
    assert peaks[1] < peaks[0] + 1024, peaks
