"""The vector index: what it finds, alone and beside other processes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from remem.index import signs, vecfile, vecsearch
from remem.index.vectors import VectorIndex

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


# Finding


def test_search_finds_nearest_first_and_equal_ones_by_number(tmp_path: Path) -> None:
    index = opened(tmp_path / "v", dim=4)
    east, north = np.float32([1, 0, 0, 0]), np.float32([0, 1, 0, 0])
    index.add([7, 3, 5], np.stack([east, east, north]))
    ids, scores = index.search(east, 10)
    assert ids.tolist() == [3, 7, 5]
    assert scores.tolist() == [1.0, 1.0, 0.0]
    assert (ids.dtype, scores.dtype) == (np.uint32, np.float32)
    assert index.search(east, 2)[0].tolist() == [3, 7]
    assert index.search(east, 0)[0].size == 0


def test_equal_vectors_have_equal_scores_wherever_they_lie(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    vectors = unit(rng, 1500, 48)
    places = [0, 3, 511, 512, 700, 1023, 1499]
    vectors[places] = vectors[0]
    index = opened(tmp_path / "v", dim=48)
    index.add(range(1500), vectors)
    for query in unit(rng, 20, 48):
        ids, scores = index.search(query, 1500)
        at = [ids.tolist().index(place) for place in places]
        assert at == list(range(at[0], at[0] + len(places)))
        assert len(set(scores[at].tolist())) == 1


def test_of_many_equal_vectors_the_lowest_numbers_come_first(tmp_path: Path) -> None:
    rng = np.random.default_rng(55)
    vectors = unit(rng, 3000, 48)
    equal = rng.random(3000) < 0.1
    vectors[equal] = vectors[equal][0]
    numbers = np.arange(3000)[::-1]  # the lowest lie in the last block
    index = opened(tmp_path / "v", dim=48)
    index.add(numbers, vectors)
    wanted = np.sort(numbers[equal])[:5].tolist()
    for noise in unit(rng, 40, 48):
        query = vectors[equal][0] + np.float32(0.05) * noise
        query /= np.linalg.norm(query)
        assert index.search(query, 5)[0].tolist() == wanted


def test_nothing_there_is_nothing_found(tmp_path: Path) -> None:
    index = opened(tmp_path / "v")
    assert (index.exists, index.count, index.ids().tolist()) == (False, 0, [])
    assert index.search(np.ones(16, np.float32) / 4, 5)[0].size == 0
    assert index.remove([1]) == 0
    assert index.get(1) is None
    assert index.verify() == []
    assert not (tmp_path / "v").exists()


def test_get_gives_the_vector_back(tmp_path: Path) -> None:
    vectors = unit(np.random.default_rng(1), 600, 16)
    index = opened(tmp_path / "v")
    index.add(range(600), vectors)
    found = index.get(599)
    assert found is not None and np.abs(found - vectors[599]).max() < 2e-5
    assert index.get(600) is None


@pytest.mark.parametrize("warm", [False, True])
def test_filters_apply_before_the_cut(tmp_path: Path, warm: bool) -> None:
    rng = np.random.default_rng(2)
    vectors = unit(rng, 3000, 16)
    model = dict(enumerate(stored(vectors)))
    index = opened(tmp_path / "v", warm=warm)
    index.add(range(3000), vectors)
    query = unit(rng, 1, 16)[0]
    for share in (1.0, 0.5, 0.05, 0.002, 0.0):
        mask = rng.random(3000) < share
        wanted = brute(model, query, 10, set(np.flatnonzero(mask).tolist()))
        same(index.search(query, 10, allow=mask), wanted)
        same(index.search(query, 10, allow=lambda ids, mask=mask: mask[ids]), wanted)
    short = np.ones(100, bool)  # numbers behind its end are not allowed
    same(index.search(query, 10, allow=short), brute(model, query, 10, set(range(100))))
    with pytest.raises(ValueError, match="filter"):
        index.search(query, 10, allow=lambda ids: np.ones(3, bool))


def test_input_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    index = opened(tmp_path / "v", dim=4)
    one = np.float32([[1, 0, 0, 0]])
    for ids, vectors in (
        ([1, 1], np.repeat(one, 2, 0)),
        ([1], one * 2),
        ([1], one * np.nan),
        ([1, 2], one),
        ([-1], one),
        ([2**32], one),
        ([1], one[:, :3]),
    ):
        with pytest.raises(ValueError, match=r"must|need"):
            index.add(ids, vectors)
    assert not index.exists
    index.add([2**32 - 1], one)
    index.add([], one[:0])
    assert index.ids().tolist() == [2**32 - 1]
    with pytest.raises(ValueError, match="finite"):
        index.search(np.float32([1, 0, 0]), 1)
    with pytest.raises(ValueError, match="finite"):
        index.search(np.float32([1, 0, 0, np.inf]), 1)


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "remove", "compact"]), st.sets(st.integers(0, 40))),
        max_size=12,
    )
)
def test_any_changes_leave_what_a_dict_would_hold(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, set[int]]]
) -> None:
    folder = tmp_path_factory.mktemp("v")
    index, watcher = opened(folder), opened(folder, warm=True)
    model: dict[int, NDArray[np.float64]] = {}
    rng = np.random.default_rng(3)
    query = unit(rng, 1, 16)[0]
    for what, numbers in steps:
        order = sorted(numbers)
        if what == "add":
            vectors = unit(rng, len(order), 16) if order else np.empty((0, 16), np.float32)
            index.add(order, vectors)
            model.update(zip(order, stored(vectors), strict=True))
        elif what == "remove":
            assert index.remove(order) == len(numbers & model.keys())
            model = {number: vector for number, vector in model.items() if number not in numbers}
        else:
            index.compact()
        for one in (index, watcher, opened(folder)):
            same(one.search(query, 50), brute(model, query, 50))
            assert one.count == len(model)
        assert index.ids().tolist() == sorted(model)
        assert index.verify() == []


def test_five_thousand_changes_against_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)  # nobody pulls the plug here
    rng, dice = np.random.default_rng(12), random.Random(12)
    index, reader = opened(tmp_path / "v"), opened(tmp_path / "v", warm=True)
    model: dict[int, NDArray[np.float64]] = {}
    gone: list[int] = []
    fresh = 0
    vectors = unit(rng, 5000, 16)
    for step in range(5000):
        vector = vectors[step : step + 1]
        kind = dice.choices(["add", "remove", "replace", "return"], [5, 3, 2, 2])[0]
        if kind == "add" or not model:
            number, fresh = fresh, fresh + dice.randrange(1, 4)
            index.add([number], vector)
            model[number] = stored(vector)[0]
        elif kind == "remove":
            number = dice.choice(list(model))
            assert index.remove([number, fresh + 9]) == 1
            del model[number]
            gone.append(number)
        elif kind == "replace":
            number = dice.choice(list(model))
            index.add([number], vector)
            model[number] = stored(vector)[0]
        elif gone:
            number = gone.pop(dice.randrange(len(gone)))
            index.add([number], vector)
            model[number] = stored(vector)[0]
        if step % 50 == 49:
            query = unit(rng, 1, 16)[0]
            wanted = brute(model, query, 20)
            same(index.search(query, 20), wanted)
            same(reader.search(query, 20), wanted)
            number = dice.choice(list(model))
            own = (model[number] / np.linalg.norm(model[number])).astype(np.float32)
            assert number in index.search(own, 1)[0]
    assert index.ids().tolist() == sorted(model)
    assert index.verify() == []
    rows = next((tmp_path / "v").glob("rows-*"))
    assert rows.stat().st_size < 3 * len(model) * 32 + 2 * 1024 * 32  # compacts by itself


# Codes


def test_codes_tell_the_angle() -> None:
    """Differing bits are the angle over pi, spread as heads in tosses are."""
    rng = np.random.default_rng(21)
    one, other = unit(rng, 400, 96), unit(rng, 400, 96)
    share = rng.random((400, 1)).astype(np.float32)
    mixed = share * one + (1 - share) * other
    mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
    cosines = np.einsum("ij,ij->i", one, mixed)
    inside = 0
    for left, right, cosine in zip(signs.codes(one), signs.codes(mixed), cosines, strict=True):
        differ = int(signs.distances(left, right[:, None])[0])
        assert differ == int(np.bitwise_count(left ^ right).sum())
        inside += differ <= signs.reach(float(cosine), 2.0)
    assert 0.95 * 400 <= inside < 400  # two deviations hold 0.977 of them
    assert (signs.reach(1.0, 2.0), signs.reach(-1.0, 2.0)) == (0, signs.BITS)


@pytest.mark.parametrize("warm", [False, True])
def test_codes_find_what_a_scan_finds_filters_included(
    tmp_path: Path, warm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    vectors = unit(rng, 23_000, 64)
    writer = opened(tmp_path / "v", dim=64)
    for start in range(0, 23_000, 4600):
        writer.add(range(start, start + 4600), vectors[start : start + 4600])
    writer.remove(range(0, 23_000, 100))
    scan = opened(tmp_path / "v", dim=64, signs_rows=1 << 30)
    codes = opened(tmp_path / "v", dim=64, warm=warm)
    read = 0
    offer = vecsearch.Best.offer

    def counted(self: vecsearch.Best, rows: NDArray[np.int64], some: NDArray[np.int16]) -> None:
        nonlocal read
        read += rows.size
        offer(self, rows, some)

    everything = np.ones(23_000, bool)
    near_by = vectors[:, 0] > 0  # a filter that depends on where a vector lies
    filters = (everything, rng.random(23_000) < 0.85, near_by, rng.random(23_000) < 0.01)
    for allow in filters:
        hits = 0
        for query in unit(rng, 60, 64):
            wanted = scan.search(query, 10, allow=allow)
            with monkeypatch.context() as patch:
                patch.setattr(vecsearch.Best, "offer", counted)
                found = codes.search(query, 10, allow=allow)
            hits += len(set(wanted[0].tolist()) & set(found[0].tolist()))
            assert np.all(np.diff(found[1]) <= 0) and np.all(allow[found[0]])
            assert not np.any(found[0] % 100 == 0)
            known = dict(zip(*(part.tolist() for part in wanted), strict=True))
            assert all(
                known.get(n, s) == s for n, s in zip(*map(np.ndarray.tolist, found), strict=True)
            )
        assert hits >= 0.98 * 600
    assert 0 < read < 0.2 * 4 * 60 * 23_000  # so most rows were not looked at
    own = [codes.search(vectors[row], 1)[0][0] for row in range(1, 23_000, 501)]
    assert own == [row for row in range(1, 23_000, 501)]


def test_vectors_without_structure_are_read_as_a_whole(tmp_path: Path) -> None:
    rng = np.random.default_rng(22)
    vectors = rng.standard_normal((21_000, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = opened(tmp_path / "v", dim=64)
    index.add(range(21_000), vectors)
    scan = opened(tmp_path / "v", dim=64, signs_rows=1 << 30)
    for query in vectors[:20] + 2 * vectors[20:40]:
        query /= np.linalg.norm(query)
        found, wanted = index.search(query, 10), scan.search(query, 10)
        assert [part.tolist() for part in found] == [part.tolist() for part in wanted]


def test_answers_do_not_depend_on_the_process_or_the_order(tmp_path: Path) -> None:
    vectors = unit(np.random.default_rng(6), 2000, 64)
    answers = []
    for name, step, warm in (("a", 2000, False), ("b", 37, True)):
        writer = opened(tmp_path / name, dim=64, signs_rows=1000)
        for start in range(0, 2000, step):
            writer.add(range(start, min(2000, start + step)), vectors[start : start + step])
        reader = opened(tmp_path / name, dim=64, warm=warm, signs_rows=1000)
        found = [reader.search(vector, 5) for vector in vectors]
        assert [int(ids[0]) for ids, _ in found] == list(range(2000))
        answers.append([(ids.tolist(), scores.tolist()) for ids, scores in found])
    assert answers[0] == answers[1]
    marks = [next((tmp_path / name).glob("marks-*")).read_bytes() for name in "ab"]
    assert marks[0] == marks[1]


def test_a_removed_vector_leaves_no_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "v"
    vectors = unit(np.random.default_rng(7), 1200, 16)
    index = opened(folder)
    index.add(range(1200), vectors)
    kept = np.rint(vectors * vecfile.SCALE).astype("<i2")
    marks = vecfile.marks_of(kept)

    def holds(row: int) -> list[bool]:
        forms = kept[row].tobytes(), marks[row].tobytes()
        return [any(form in path.read_bytes() for path in folder.iterdir()) for form in forms]

    assert holds(600) == [True, True]
    assert index.remove([600]) == 1
    assert holds(600) == [False, False]
    assert holds(601) == [True, True]
    assert 600 not in index.search(vectors[600], 1200)[0]


def test_a_process_that_stays_keeps_codes_and_nothing_that_was_removed(tmp_path: Path) -> None:
    vectors = unit(np.random.default_rng(23), 3000, 16)
    writer = opened(tmp_path / "v")
    writer.add(range(3000), vectors)
    for least in (1000, 1 << 30):
        keeper = opened(tmp_path / "v", warm=True, signs_rows=least)
        keeper.load()
        assert keeper.size_b == (3000 if least == 1000 else 3001) * (76 if least == 1000 else 36)
        assert not keeper.has_lost()
        writer.add([5000 + least % 7], vectors[:1] * -1)
        assert not keeper.has_lost()  # more is no loss
        assert keeper.search(vectors[17], 1)[0].tolist() == [17]
        keeper.load()
        writer.remove([5000 + least % 7])
        assert keeper.has_lost()
    fresh = opened(tmp_path / "v", warm=True)
    fresh.load()
    writer.compact()
    assert fresh.has_lost()
    VectorIndex.reset(str(tmp_path / "v"))
    assert fresh.has_lost()


# Several processes


def test_a_reader_sees_each_change_of_another(tmp_path: Path) -> None:
    vectors = unit(np.random.default_rng(8), 1100, 16)
    writer, reader = opened(tmp_path / "v"), opened(tmp_path / "v", warm=True)
    writer.add(range(1000), vectors[:1000])
    assert reader.search(vectors[5], 1)[0].tolist() == [5]
    writer.remove([5])
    assert reader.search(vectors[5], 1)[0].tolist() != [5]
    writer.add([1005], vectors[5:6])
    assert reader.search(vectors[5], 1)[0].tolist() == [1005]
    writer.compact()
    assert reader.search(vectors[5], 1)[0].tolist() == [1005]
    VectorIndex.reset(str(tmp_path / "v"))
    assert (reader.exists, reader.search(vectors[5], 1)[0].tolist()) == (False, [])
    writer.add([1], vectors[5:6])
    assert reader.search(vectors[5], 3)[0].tolist() == [1]


_READ_LOOP = """
import sys, time
import numpy as np
from remem.index.vectors import VectorIndex
vectors = np.load(sys.argv[2])
index = VectorIndex(sys.argv[1], name="p", dim=16, digest="d", warm=sys.argv[3] == "warm")
print("ready", flush=True)
rounds, end = 0, time.monotonic() + 3
while time.monotonic() < end:
    row = rounds % 400
    ids, scores = index.search(vectors[row], 1)
    assert ids.tolist() == [row], (row, ids, scores)
    rounds += 1
print(rounds)
"""


@pytest.mark.parametrize("kind", ["cold", "warm"])
def test_readers_are_right_while_a_writer_works(tmp_path: Path, kind: str) -> None:
    vectors = unit(np.random.default_rng(9), 1400, 16)
    np.save(tmp_path / "vectors.npy", vectors)
    writer = opened(tmp_path / "v")
    writer.add(range(400), vectors[:400])
    child = subprocess.Popen(
        [sys.executable, "-c", _READ_LOOP, tmp_path / "v", tmp_path / "vectors.npy", kind],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    dice = random.Random(1)
    while child.poll() is None:
        number = dice.randrange(400, 1400)
        writer.add([number], vectors[number : number + 1])
        writer.remove([dice.randrange(400, 1400)])
        if dice.random() < 0.1:
            writer.compact()
    out, err = child.communicate()
    assert child.returncode == 0, err
    assert int(out) > 20
    assert writer.verify() == []


def test_modules_are_cheap_to_import() -> None:
    code = (
        "import sys, remem.index.vectors, remem.index.embed\n"
        "print([m for m in ('numpy', 'hnswlib', 'onnxruntime', 'tokenizers') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
