"""The vector index: what a crash leaves, what damage does."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from blake3 import blake3
from numpy.typing import NDArray

from remem.index import vecfile
from remem.index.errors import EmbedderMismatch, IndexDamaged
from remem.index.vectors import VectorIndex
from remem.objects.errors import StoreError

F32 = NDArray[np.float32]


def unit(rng: np.random.Generator, count: int, dim: int) -> F32:
    """Random directions in clusters, as texts about few subjects are."""
    centres = rng.standard_normal((max(2, count // 40), dim))
    out = centres[rng.integers(0, len(centres), count)] + 0.7 * rng.standard_normal((count, dim))
    return (out / np.linalg.norm(out, axis=1, keepdims=True)).astype(np.float32)


def opened(folder: Path, dim: int = 16, **options: object) -> VectorIndex:
    arguments: dict[str, object] = {"name": "p", "dim": dim, "digest": "d", **options}
    return VectorIndex(str(folder), **arguments)  # type: ignore[arg-type]


def stored(vectors: F32) -> NDArray[np.float64]:
    """What the index keeps of vectors."""
    return np.rint(vectors * vecfile.SCALE).astype(np.int16) / vecfile.SCALE


def brute(
    model: dict[int, NDArray[np.float64]], query: F32, k: int, allow: set[int] | None = None
) -> list[tuple[int, np.float32]]:
    scored = [
        (-np.float32(vector @ query.astype(np.float64)), number)
        for number, vector in model.items()
        if allow is None or number in allow
    ]
    return [(number, -score) for score, number in sorted(scored)[:k]]


def same(found: tuple[NDArray[np.uint32], F32], wanted: list[tuple[int, np.float32]]) -> None:
    assert found[0].tolist() == [number for number, _ in wanted]
    assert np.allclose(found[1], [score for _, score in wanted], atol=1e-6)


# Crashes


class Crash(BaseException):
    """The process ends here."""


def crash_at(monkeypatch: pytest.MonkeyPatch, step: int) -> Callable[[], int]:
    """Let the n-th change to the disk be the last; the write before it is cut in half."""
    done = 0

    def guard(function: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object) -> object:
            nonlocal done
            done += 1
            if done > step:
                raise Crash
            if done == step and function is real_write:
                data = bytes(arguments[1])  # type: ignore[call-overload]
                os.pwrite(arguments[0], data[: len(data) // 2], arguments[2])  # type: ignore[arg-type]
                raise Crash
            return function(*arguments)

        return run

    real_write = vecfile.write_at
    monkeypatch.setattr(vecfile, "write_at", guard(real_write))
    for name in ("replace", "unlink", "ftruncate", "fsync", "makedirs", "rename"):
        real = getattr(os, name)
        if name == "makedirs":
            monkeypatch.setattr(os, name, lambda *a, real=real, **k: real(*a, **k))
        else:
            monkeypatch.setattr(os, name, guard(real))
    return lambda: done


@pytest.mark.parametrize("what", ["first add", "add", "replace", "remove", "compact"])
def test_a_crash_at_any_step_leaves_before_or_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    vectors = unit(np.random.default_rng(10), 1400, 16)
    query = vectors[3]
    base = {} if what == "first add" else dict(enumerate(stored(vectors[:700])))
    after = dict(base)
    if what in ("first add", "add"):
        after.update(zip(range(800, 1400), stored(vectors[800:]), strict=True))
    elif what == "replace":
        after.update({3: stored(vectors[900:901])[0], 650: stored(vectors[901:902])[0]})
    elif what == "remove":
        after = {number: vector for number, vector in base.items() if number not in (3, 650)}
    states = set()
    for step in range(1, 60):
        folder = tmp_path / str(step)
        index = opened(folder)
        if base:
            index.add(range(710), vectors[:710])
            index.remove(range(700, 710))
        with monkeypatch.context() as patch:
            steps = crash_at(patch, step)
            try:
                if what in ("first add", "add"):
                    index.add(range(800, 1400), vectors[800:])
                elif what == "replace":
                    index.add([3, 650], vectors[900:902])
                elif what == "remove":
                    index.remove([3, 650])
                else:
                    index.compact()
                finished = True
            except Crash:
                finished = False
        found = [
            (int(number), np.float32(score))
            for number, score in zip(*opened(folder).search(query, 2000), strict=True)
        ]
        options = {"before": brute(base, query, 2000), "after": brute(after, query, 2000)}
        state = [
            name
            for name, wanted in options.items()
            if [n for n, _ in found] == [n for n, _ in wanted]
        ]
        assert state, f"step {step}"
        states.update(state)
        # The next writer finishes what is left to do, and nothing of it stays.
        resumed = opened(folder)
        resumed.add([5000], vectors[1399:])
        assert resumed.verify() == []
        counted = {"HEAD", *(path.name for path in folder.glob("*-*.[ui]*"))}
        assert {path.name for path in folder.iterdir()} == counted and len(counted) == 4
        rows = int.from_bytes((folder / "HEAD").read_bytes()[32:36], "little")
        assert next(folder.glob("ids-*")).stat().st_size == 4 * rows
        assert next(folder.glob("rows-*")).stat().st_size == 32 * rows
        assert next(folder.glob("marks-*")).stat().st_size == 72 * rows
        if "after" in state and what in ("replace", "remove"):
            assert (
                np.rint(vectors[3] * vecfile.SCALE).astype("<i2").tobytes()
                not in next(folder.glob("rows-*")).read_bytes()
            )
        if finished:
            assert steps() <= step
            assert state[-1] == "after"
            break
    else:
        pytest.fail("never finished")
    assert states == {"before", "after"}


def test_a_file_that_cannot_grow_changes_nothing(tmp_path: Path) -> None:
    script = """
import resource, signal, sys
import numpy as np
from remem.index.vectors import VectorIndex
from remem.objects.errors import StoreFull
vectors = np.load(sys.argv[2])
index = VectorIndex(sys.argv[1], name="p", dim=16, digest="d")
index.add(range(100), vectors[:100])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
try:
    index.add(range(100, 1000), vectors[100:])
except StoreFull as error:
    print(error.exit_code, index.count, index.verify())
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
index.add(range(100, 1000), vectors[100:])
print(index.count, index.verify())
"""
    np.save(tmp_path / "vectors.npy", unit(np.random.default_rng(11), 1000, 16))
    run = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "v", tmp_path / "vectors.npy"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.stdout == "5 100 []\n1000 []\n", run.stderr


def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        index = opened(tmp_path / "new" / "v")
        index.add(range(100), unit(np.random.default_rng(1), 100, 16))
        index.remove(range(5))
        index.compact()
    finally:
        os.umask(old)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new" / "v").iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "new" / "v").stat().st_mode) == 0o700


# Damage


def test_another_embedder_or_partition_is_noticed(tmp_path: Path) -> None:
    index = opened(tmp_path / "v")
    index.add([1], unit(np.random.default_rng(1), 2, 16)[:1])
    with pytest.raises(EmbedderMismatch) as mismatch:
        opened(tmp_path / "v", digest="other")
    assert (mismatch.value.exit_code, "reindex" in mismatch.value.hint) == (5, True)
    with pytest.raises(EmbedderMismatch):
        opened(tmp_path / "v", digest="other", dim=32)
    with pytest.raises(IndexDamaged, match="another partition"):
        opened(tmp_path / "v", name="q")
    with pytest.raises(IndexDamaged, match="dimensions"):
        opened(tmp_path / "v", dim=32)
    assert opened(tmp_path / "v").count == 1
    assert issubclass(IndexDamaged, StoreError)


def test_a_lost_header_is_not_an_empty_index(tmp_path: Path) -> None:
    index = opened(tmp_path / "v")
    index.add([1], unit(np.random.default_rng(1), 2, 16)[:1])
    (tmp_path / "v" / "HEAD").unlink()
    with pytest.raises(IndexDamaged, match="is gone"):
        index.search(np.ones(16, np.float32) / 4, 1)
    with pytest.raises(IndexDamaged, match="is gone"):
        opened(tmp_path / "v")
    assert len(index.verify()) == 1
    VectorIndex.reset(str(tmp_path / "v"))
    assert opened(tmp_path / "v").exists is False


def test_damage_is_never_signed_by_the_next_write(tmp_path: Path) -> None:
    vectors = unit(np.random.default_rng(1), 700, 16)
    for spoil, write in (
        ("rows-*", lambda index: index.add([900], vectors[600:601])),
        ("ids-*", lambda index: index.add([900], vectors[600:601])),
        ("rows-*", lambda index: index.remove([540])),
        ("rows-*", lambda index: index.compact()),
    ):
        folder = tmp_path / "v"
        index = opened(folder)
        index.add(range(600), vectors[:600])
        index.remove([1])
        path = next(folder.glob(spoil))
        raw = bytearray(path.read_bytes())
        raw[-1] ^= 4
        path.write_bytes(raw)
        with pytest.raises(IndexDamaged):
            write(opened(folder))
        assert opened(folder).verify() != []
        VectorIndex.reset(str(folder))


_DAMAGE = """
import json, os, random, sys
import numpy as np
from remem.index.errors import IndexDamaged
from remem.index.vectors import VectorIndex
folder, other = sys.argv[1], sys.argv[2]
vectors = np.load(sys.argv[3])
queries = vectors[:40]

def ask():
    index = VectorIndex(folder, name="p", dim=32, digest="d", signs_rows=int(sys.argv[4]))
    return [[part.tolist() for part in index.search(query, 10)] for query in queries]

before = ask()
names = sorted(os.listdir(folder))
dice = random.Random(13)
outcomes = []

def attempt(name, data):
    path = os.path.join(folder, name)
    with open(path, "rb") as file:
        good = file.read()
    if data(good) == good:
        return
    with open(path, "wb") as file:
        file.write(data(good))
    try:
        outcome = "same" if ask() == before else "WRONG"
    except IndexDamaged:
        outcome = "raised"
    outcomes.append((name.split("-")[0], outcome))
    with open(path, "wb") as file:
        file.write(good)

def flip(good):
    out = bytearray(good)
    out[place // 8] ^= 1 << place % 8
    return bytes(out)

for name in names:
    size = os.path.getsize(os.path.join(folder, name))
    for share in (0, 0.01, 0.5, 0.99):
        attempt(name, lambda good: good[: max(1, int(share * len(good))) if share else 0])
    twin = [one for one in os.listdir(other) if one.split("-")[0] == name.split("-")[0]]
    with open(os.path.join(other, twin[0]), "rb") as file:
        swapped = file.read()
    attempt(name, lambda good: swapped)
    attempt(name, lambda good: good[: size // 2] + os.urandom(64) + good[size // 2 + 64 :])
    for _ in range(50):
        place = dice.randrange(8 * size)
        attempt(name, flip)
assert ask() == before
print(json.dumps(outcomes))
"""


@pytest.mark.parametrize("codes", [False, True])
def test_damage_never_kills_and_never_lies(tmp_path: Path, codes: bool) -> None:
    """A scan notices every bit; by codes, rows that are not read may be damaged unnoticed."""
    rng = np.random.default_rng(13)
    vectors = unit(rng, 10_600, 32)
    np.save(tmp_path / "vectors.npy", vectors)
    for name, shift in (("v", 0), ("w", 300)):
        index = opened(tmp_path / name, dim=32)
        index.add(range(10_300), vectors[shift : shift + 10_300])
    places = [tmp_path / name for name in ("v", "w", "vectors.npy")]
    run = subprocess.run(
        [sys.executable, "-c", _DAMAGE, *places, "5000" if codes else str(1 << 30)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, (run.returncode, run.stderr[-2000:])
    outcomes = [tuple(one) for one in json.loads(run.stdout)]
    assert len(outcomes) >= 4 * 50
    unread = "rows" if codes else "marks"
    wanted = {(name, "raised") for name in ("HEAD", "ids", "rows", "marks")} | {(unread, "same")}
    assert set(outcomes) == (wanted if codes else wanted - {("marks", "raised")})


def test_built_again_after_damage_it_answers_as_before(tmp_path: Path) -> None:
    vectors = unit(np.random.default_rng(14), 1000, 16)
    index = opened(tmp_path / "v")
    index.add(range(1000), vectors)
    before = [[part.tolist() for part in index.search(query, 10)] for query in vectors[:50]]
    for path in (tmp_path / "v").iterdir():
        path.write_bytes(b"")
    with pytest.raises(IndexDamaged):
        opened(tmp_path / "v")
    VectorIndex.reset(str(tmp_path / "v"))
    index = opened(tmp_path / "v")
    index.add(range(1000), vectors)
    assert before == [[part.tolist() for part in index.search(q, 10)] for q in vectors[:50]]


def test_a_reader_recovers_when_the_files_are_put_back(tmp_path: Path) -> None:
    vectors = unit(np.random.default_rng(16), 600, 16)
    folder = tmp_path / "v"
    opened(folder).add(range(600), vectors)
    reader = opened(folder)
    assert reader.search(vectors[7], 1)[0].tolist() == [7]
    rows = next(folder.glob("rows-*"))
    good = rows.read_bytes()
    rows.write_bytes(good[:100])
    with pytest.raises(IndexDamaged):
        reader.search(vectors[7], 1)
    assert reader.search(vectors[7], 0)[0].size == 0
    (tmp_path / "copy").write_bytes(good)
    os.replace(tmp_path / "copy", rows)
    assert reader.search(vectors[7], 1)[0].tolist() == [7]
    # And the other way round: what is open is gone, what lies there is damaged.
    (tmp_path / "copy").write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    os.replace(tmp_path / "copy", rows)
    assert opened(folder).verify() != []


def test_verify_names_each_bad_place(tmp_path: Path) -> None:
    vectors = unit(np.random.default_rng(15), 1600, 16)
    folder = tmp_path / "v"
    index = opened(folder)
    index.add(range(1600), vectors)
    index.remove([1599])
    assert index.verify() == []
    rows, ids = next(folder.glob("rows-*")), next(folder.glob("ids-*"))
    raw = bytearray(rows.read_bytes())
    raw[5] ^= 1
    raw[1200 * 32] ^= 1
    raw[1599 * 32] ^= 1  # a removed row: no sum covers it, but it should be zero
    rows.write_bytes(raw)
    raw = bytearray(ids.read_bytes())
    raw[0] ^= 1
    ids.write_bytes(raw)
    findings = index.verify()
    assert len(findings) == 4
    text = "\n".join(findings)
    assert "rows 0 to 511" in text and "rows 1024 to 1535" in text
    assert "ids-" in text and "1 removed vectors" in text


def test_an_unreadable_file_is_damage(tmp_path: Path) -> None:
    index = opened(tmp_path / "v")
    index.add([1], unit(np.random.default_rng(1), 2, 16)[:1])
    rows = next((tmp_path / "v").glob("rows-*"))
    rows.unlink()
    rows.mkdir()
    with pytest.raises(IndexDamaged):
        opened(tmp_path / "v").search(np.ones(16, np.float32) / 4, 1)
    rows.rmdir()
    with pytest.raises(IndexDamaged, match="cannot read"):
        opened(tmp_path / "v").search(np.ones(16, np.float32) / 4, 1)


def test_header_bytes_are_as_specified(tmp_path: Path) -> None:
    """The table in index/vecfile.py, read by hand."""
    index = opened(tmp_path / "v", dim=4)
    index.add([7, 9], np.float32([[1, 0, 0, 0], [0, 0, -1, 0]]))
    index.remove([7])
    raw = (tmp_path / "v" / "HEAD").read_bytes()
    assert raw[:16] == b"remem vectors 2\n"
    assert int.from_bytes(raw[28:32], "little") == 4
    assert int.from_bytes(raw[32:36], "little") == 2
    assert int.from_bytes(raw[36:40], "little") == 9
    assert int.from_bytes(raw[40:44], "little") == 1
    assert raw[44:50] == b"\x01\x00\x01\x00pd"
    assert raw[50:54] == bytes(4)  # row 0 is dead
    assert len(raw) == 54 + 16 + 16 + 16 + 32
    marks = next((tmp_path / "v").glob("marks-*")).read_bytes()
    assert marks[:72] == bytes(72) and len(marks) == 144
    vector = np.asarray([0, 0, -32767, 0], "<i2")
    assert marks[72:80] == blake3(vector.tobytes()).digest(length=8)
    rows = next((tmp_path / "v").glob("rows-*")).read_bytes()
    assert rows == bytes(8) + np.asarray([0, 0, -32767, 0], "<i2").tobytes()
    assert next((tmp_path / "v").glob("ids-*")).read_bytes() == bytes(4) + b"\x09\x00\x00\x00"
