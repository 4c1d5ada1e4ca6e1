"""What grows with a store, and how much: ten thousand, a hundred thousand, a million turns.

Turns are recombined from real chats (see `tests.bench.turns`), their vectors are stand-ins with
the geometry of the model's (see `tests.bench.standin`).  Stores are kept in ``--work`` and used
again, so that a part can be measured anew without importing a million turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from tests.bench import metrics
from tests.bench.data import DEFAULT_DATA, ROOT
from tests.bench.process import (
    BASE,
    EMBEDDER_VARIABLE,
    LEXICAL_ONLY,
    Command,
    CommandFailed,
    interleaved,
    peak_memory,
)
from tests.bench.process import run as call
from tests.bench.report import note, table, title
from tests.bench.stand import Stand

SIZES = (10_000, 100_000, 1_000_000)
NUMERIC = [sys.executable, "-I", "-c", "import numpy, onnxruntime"]
MOST_LEXICAL_GROWTH = 2.0
MOST_HYBRID = 40.0  # times the interpreter, above the numeric libraries
MOST_RESIDENT = 12.0
MOST_WARM = 3.0
LEAST_FOUND = 0.98
MOST_PEAK_MIB = 1536
MOST_KEEP_GROWTH = 1.5  # of what a turn costs, from the size before
KEPT = ("verify", "reindex", "purge of one")
PROCESSOR = ", processor us a turn"
READERS = 10
MORE_TURNS = 20_000  # imported while others read
MINILM = {EMBEDDER_VARIABLE: "minilm"}
SECTIONS = ("words", "fill", "cold", "resident", "live", "keep", "readers")
LONG_S = 6 * 3600.0

Figures = dict[str, float]


def run(argv: Sequence[str]) -> int:
    """Measure and print.

    Args:
        argv: words after the name of the measurement.

    Returns:
        0; 1 where something was not measured.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench scale", description="Measure what grows with the store."
    )
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"of: {' '.join(SECTIONS)} (default: all)"
    )
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="turns, with commas")
    parser.add_argument("--rounds", type=int, default=15, help="of each whole process")
    parser.add_argument("--questions", type=int, default=100, help="of the live process")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the data")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "remem-scale",
        help="folder for stores, which stay",
    )
    args = parser.parse_args(argv)
    unknown = sorted(set(args.sections) - set(SECTIONS))
    if unknown:
        parser.error(f"unknown section '{unknown[0]}'")
    sizes = sorted(int(size) for size in args.sizes.split(","))
    args.work.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(args.work / "home", ignore_errors=True)
    stand = Stand(args.work, args.data, big=sizes[-1], small=sizes[0], rounds=args.rounds)
    asked = args.work / "questions.txt"
    step = max(1, len(stand.pool.questions) // args.questions)
    asked.write_text("\n".join(stand.pool.questions[::step]), encoding="utf-8")
    found: dict[int, Figures] = {}
    failed = 0
    for size in sizes:
        title(f"scale: {size:,} turns")
        found[size] = {}
        for name in args.sections or SECTIONS:
            try:
                _measure(name, stand, size, found[size], asked, args.questions)
            except (CommandFailed, msgspec.DecodeError, OSError) as error:
                failed += 1
                note(f"{name}: not measured: {error}")
    _growth(found)
    _judge(stand, found)
    return int(bool(failed))


def _measure(name: str, stand: Stand, size: int, out: Figures, asked: Path, questions: int) -> None:
    if name == "words":
        words(stand, size, out)
    elif name == "fill":
        fill(stand, size, out)
    elif name == "cold":
        cold(stand, size, out)
    elif name == "resident":
        resident(stand, size, out)
    elif name == "live":
        live(stand, size, out, asked, questions)
    elif name == "keep":
        keep(stand, size, out)
    else:
        readers(stand, size, out)
    for key, value in out.items():
        note(f"{key:42} {value:12.4g}")
    sys.stdout.flush()


def store_of(stand: Stand, size: int) -> Path:
    """The store of that many turns, in which everything is in place.

    Raises:
        CommandFailed: it was not filled.
    """
    store = stand.work / f"scale-{size}"
    if not (store / "filled").exists():
        raise CommandFailed(f"'{store}' is not filled: run the section 'fill'")
    return store


def fill(stand: Stand, size: int, out: Figures) -> None:
    """Import, project and fill with vectors, unless a former run did.

    Raises:
        CommandFailed: a command failed.
    """
    words(stand, size, out)
    store = stand.work / f"scale-{size}"
    done = store / "filled"
    if done.exists():
        out.update(json.loads(done.read_text(encoding="utf-8")))
        return
    before = _size_b(store / "index")
    module = [sys.executable, "-m", "tests.bench.standin", str(store), str(stand.work)]
    began = time.perf_counter()
    env = stand.env(MINILM)
    said = call([*module, str(stand.data)], env, cwd=ROOT, timeout_s=LONG_S).stdout
    note(said.strip().splitlines()[-1])
    out["stand-in vectors, turns/s"] = size / (time.perf_counter() - began)
    out["vectors, bytes a turn"] = (_size_b(store / "index") - before) / size
    done.write_text(json.dumps(out), encoding="utf-8")


def words(stand: Stand, size: int, out: Figures) -> None:
    """Import and project, unless a former run did.

    Raises:
        CommandFailed: a command failed.
    """
    store = stand.work / f"scale-{size}"
    done = store / "worded"
    if done.exists():
        out.update(json.loads(done.read_text(encoding="utf-8")))
        return
    shutil.rmtree(store, ignore_errors=True)
    source = stand.jsonl(size)
    env = stand.env(LEXICAL_ONLY)
    began = time.perf_counter()
    out["import, peak private MiB"] = _peak(
        stand.words(store, "import", "jsonl", str(source), "--no-index", "--json"), env, stand
    )
    out["import, turns/s"] = size / (time.perf_counter() - began)
    out["canonical, bytes a turn"] = _size_b(store / "canon") / size
    began = time.perf_counter()
    out["projection, peak private MiB"] = _peak(stand.words(store, "project", "--json"), env, stand)
    out["projection, turns/s"] = size / (time.perf_counter() - began)
    out["inverted index, bytes a turn"] = _size_b(store / "index") / size
    done.write_text(json.dumps(out), encoding="utf-8")


def cold(stand: Stand, size: int, out: Figures) -> None:
    """Whole processes, beside an interpreter that does nothing.

    Raises:
        CommandFailed: a command failed.
    """
    store = store_of(stand, size)
    commands: dict[str, Command] = {
        "base": BASE,
        "numeric": NUMERIC,
        "lexical": _asking(stand, store, "lexical"),
        "hybrid": _asking(stand, store, "hybrid"),
    }
    env = stand.env({**MINILM, "REMEM_COLD": "1"})
    taken = interleaved(commands, env, cwd=stand.home, n=stand.rounds)
    base = metrics.median(taken["base"])
    out["base, ms"] = 1000 * base
    out["numpy and onnxruntime, ms"] = 1000 * metrics.median(taken["numeric"])
    for mode in ("lexical", "hybrid"):
        out[f"cold {mode}, ms"] = 1000 * metrics.median(taken[mode])
        out[f"cold {mode}, x base"] = metrics.median(
            [own / one for own, one in zip(taken[mode], taken["base"], strict=True)]
        )
    out["cold hybrid above numeric, x base"] = metrics.median(
        [
            (own - loaded) / one
            for own, loaded, one in zip(
                taken["hybrid"], taken["numeric"], taken["base"], strict=True
            )
        ]
    )


def resident(stand: Stand, size: int, out: Figures) -> None:
    """The same through the resident process; its answers are compared byte by byte.

    Raises:
        CommandFailed: a command failed, or an answer is another one.
    """
    store = store_of(stand, size)
    folder = stand.work / "runtime"
    folder.mkdir(mode=0o700, exist_ok=True)
    env = stand.env({**MINILM, "XDG_RUNTIME_DIR": str(folder)})
    call(stand.words(store, "warm", "--idle", "10"), env, cwd=stand.home)
    try:
        asking = _asking(stand, store, "hybrid")
        for number in range(5):  # the first ones have it load what they need
            call(asking(number), env, cwd=stand.home)
            time.sleep(0.5 + size / 500_000)
        for number in range(10):
            fast = call(asking(number), env, cwd=stand.home).stdout
            slow = call(asking(number), {**env, "REMEM_COLD": "1"}, cwd=stand.home).stdout
            if fast != slow:
                raise CommandFailed(f"another answer to question {number}")
        commands: dict[str, Command] = {
            "base": BASE,
            "hybrid": asking,
            "lexical": _asking(stand, store, "lexical"),
        }
        taken = interleaved(commands, env, cwd=stand.home, n=stand.rounds)
        for mode in ("lexical", "hybrid"):
            out[f"resident {mode}, ms"] = 1000 * metrics.median(taken[mode])
            out[f"resident {mode}, x base"] = metrics.median(
                [own / one for own, one in zip(taken[mode], taken["base"], strict=True)]
            )
        told = call(stand.words(store, "warm", "--status", "--json"), env, cwd=stand.home).stdout
        out["resident, MiB of rows kept"] = json.loads(told)["bytes"] / (1 << 20)
    finally:
        call(stand.words(store, "warm", "--stop"), env, cwd=stand.home)


def live(stand: Stand, size: int, out: Figures, asked: Path, questions: int) -> None:
    """A process that stays, beside the bare libraries.

    Raises:
        CommandFailed: it failed.
    """
    store = store_of(stand, size)
    words = [sys.executable, "-m", "tests.bench.live", str(store), str(asked), str(questions)]
    told = json.loads(call(words, stand.env(MINILM), cwd=ROOT, timeout_s=LONG_S).stdout)
    for name in ("lexical", "hybrid", "encode", "bare_bm25", "bare_hnsw"):
        for key in ("p50", "p99"):
            out[f"live {name} {key}, ms"] = 1000 * told[name][key]
    for name, share in told["recall"].items():
        out[f"vectors, recall@10, {name}"] = share
        out[f"vectors, p50 of the best 200, {name}, ms"] = 1000 * told["search"][name]["p50"]
    graph = told["bare_hnsw"]
    note(f"bare hnswlib: {graph['rows']:,} rows, breadth {graph['breadth']}, {graph['recall']:.3f}")
    bare = told["bare_hnsw"]["p50"] + told["bare_bm25"]["p50"]
    out["live hybrid over bare, ratio"] = told["hybrid"]["p50"] / bare


def keep(stand: Stand, size: int, out: Figures) -> None:
    """Verify, reindex, and purge one turn.

    Raises:
        CommandFailed: a command failed.
    """
    store = stand.copy(store_of(stand, size), f"keep-{size}")
    try:
        env = stand.env(LEXICAL_ONLY)
        for name, words in (
            ("verify", ("verify", "--json")),
            ("reindex", ("reindex", "--lexical", "--json")),
        ):
            with _Costs(out, name, size):
                out[f"{name}, peak private MiB"] = _peak(stand.words(store, *words), env, stand)
        found = call(
            stand.words(store, "recall", "--mode", "lexical", "--json", "--limit", "1", "--",
                        stand.pool.questions[0]), env, cwd=stand.home
        ).stdout  # fmt: skip
        ref = json.loads(found)["hits"][0]["ref"]
        call(stand.words(store, "forget", ref), env, cwd=stand.home)
        with _Costs(out, "purge of one", size):
            call(stand.words(store, "purge"), env, cwd=stand.home, timeout_s=LONG_S)
    finally:
        shutil.rmtree(store, ignore_errors=True)


def readers(stand: Stand, size: int, out: Figures) -> None:
    """Ten processes that read while one imports: how long their longest step took.

    Raises:
        CommandFailed: a process failed.
    """
    store = stand.copy(store_of(stand, size), f"readers-{size}")
    env = stand.env(LEXICAL_ONLY)
    poller = str(Path(__file__).resolve().parent / "poller.py")
    words = [sys.executable, poller, "state", str(store), "0.02"]
    polling = [
        subprocess.Popen(
            words, env=env, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(READERS)
    ]
    try:
        for one in polling:
            _line(one)
        time.sleep(2.0)
        quiet = [_told(one) for one in polling]
        more = _more(stand, size)
        began = time.perf_counter()
        call(stand.words(store, "import", "jsonl", str(more), "--no-index"), env, cwd=stand.home)
        wall = time.perf_counter() - began
        busy = [_told(one) for one in polling]
    finally:
        for one in polling:
            one.send_signal(signal.SIGKILL)
            one.wait()
        shutil.rmtree(store, ignore_errors=True)
    out["10 readers alone, median ms"] = 1000 * metrics.median([t["median"] for t in quiet])
    out["10 readers alone, longest ms"] = 1000 * max(t["longest"] for t in quiet)
    out["10 readers, import beside, median ms"] = 1000 * metrics.median([t["median"] for t in busy])
    out["10 readers, import beside, longest ms"] = 1000 * max(t["longest"] for t in busy)
    out["import beside 10 readers, s"] = wall


def _more(stand: Stand, size: int) -> Path:
    """Turns that the store of this size does not have."""
    path = stand.work / f"more-{size}.jsonl"
    if not path.exists():
        with path.open("wb") as file:
            for number in range(MORE_TURNS):
                line = {"text": f"the {number}th later turn, beside {size}", "role": "user"}
                file.write(json.dumps(line).encode() + b"\n")
    return path


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise CommandFailed("a reading process ended")
    return line


def _told(process: subprocess.Popen[str]) -> Mapping[str, float]:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    told: Mapping[str, float] = json.loads(_line(process))
    return told


class _Asking:
    """The words of a recall, another question each round."""

    def __init__(self, stand: Stand, store: Path, mode: str) -> None:
        self._stand, self._store, self._mode = stand, store, mode

    def __call__(self, number: int) -> Sequence[str]:
        questions = self._stand.pool.questions
        query = questions[number * 37 % len(questions)]
        return self._stand.words(self._store, "recall", "--mode", self._mode, "--", query)


def _asking(stand: Stand, store: Path, mode: str) -> _Asking:
    return _Asking(stand, store, mode)


def _peak(words: Sequence[str], env: Mapping[str, str], stand: Stand) -> float:
    return peak_memory(words, env, cwd=stand.home, timeout_s=LONG_S).private / 1024


def _size_b(folder: Path) -> int:
    """Bytes of files on disk below a folder."""
    return sum(512 * os.stat(path).st_blocks for path in folder.rglob("*") if path.is_file())


class _Costs:
    """What the commands run inside it cost: wall clock, processor and bytes written for a turn.

    Wall clock depends on who else is at work and on what the disk still has to write; the others
    hardly do, and are what is held against the targets.
    """

    def __init__(self, out: Figures, name: str, size: int) -> None:
        self._out, self._name, self._size = out, name, size

    def __enter__(self) -> None:
        self._before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter() - self._began
        before, after = self._before, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self._out[f"{self._name}, s"] = wall
        self._out[f"{self._name}{PROCESSOR}"] = 1e6 * cpu / self._size
        blocks = after.ru_oublock - before.ru_oublock
        self._out[f"{self._name}, written bytes a turn"] = 512 * blocks / self._size


def _growth(found: Mapping[int, Figures]) -> None:
    """Every figure at every size, and what it became from one to the next."""
    sizes = sorted(found)
    names = list(dict.fromkeys(name for size in sizes for name in found[size]))
    rows = []
    for name in names:
        cells = [found[size].get(name) for size in sizes]
        shown = ["-" if cell is None else f"{cell:,.4g}" for cell in cells]
        grown = [
            "-" if not before or after is None else f"{after / before:.2f}"
            for before, after in pairwise(cells)
        ]
        rows.append([name, *shown, *grown])
    title("scale: growth")
    steps = [f"x to {size:,}" for size in sizes[1:]]
    print(table(["", *(f"{size:,}" for size in sizes), *steps], rows))


def _judge(stand: Stand, found: Mapping[int, Figures]) -> None:
    """Hold the largest size against the targets."""
    small, big = found[min(found)], found[max(found)]
    size = f"{max(found):,} turns"

    def at_most(name: str, most: float, what: str) -> None:
        if name in big:
            stand.verdicts.judge(f"{what}, {size}", big[name] <= most, f"{big[name]:.3g}",
                                 f"<= {most:g}")  # fmt: skip

    if "cold lexical, ms" in small and len(found) > 1:
        grown = big["cold lexical, ms"] / small["cold lexical, ms"]
        stand.verdicts.judge(
            f"cold lexical recall, {size} over {min(found):,}",
            grown <= MOST_LEXICAL_GROWTH,
            f"{grown:.2f}",
            f"<= {MOST_LEXICAL_GROWTH:g}",
        )
    before = found[sorted(found)[-2:][0]]
    for name in KEPT:
        if len(found) > 1 and f"{name}{PROCESSOR}" in before and f"{name}{PROCESSOR}" in big:
            grown = big[f"{name}{PROCESSOR}"] / before[f"{name}{PROCESSOR}"]
            stand.verdicts.judge(
                f"{name}, processor for a turn, {size} over {sorted(found)[-2]:,}",
                grown <= MOST_KEEP_GROWTH,
                f"{grown:.2f}",
                f"<= {MOST_KEEP_GROWTH:g}",
            )
    at_most("cold hybrid above numeric, x base", MOST_HYBRID, "cold hybrid above numeric libraries")
    at_most("resident hybrid, x base", MOST_RESIDENT, "hybrid through the resident process")
    at_most("live hybrid over bare, ratio", MOST_WARM, "live hybrid over bare libraries")
    at_most("import, peak private MiB", MOST_PEAK_MIB, "peak memory of import")
    at_most("reindex, peak private MiB", MOST_PEAK_MIB, "peak memory of reindex")
    for name, share in big.items():
        if name.startswith("vectors, recall@10"):
            stand.verdicts.judge(
                f"{name}, {size}", share >= LEAST_FOUND, f"{share:.4f}", f">= {LEAST_FOUND}"
            )
