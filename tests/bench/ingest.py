"""Cost of writing: canonical ingest beside bare LMDB loops, and of projecting into indexes."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from tests.bench import metrics
from tests.bench.process import EMBEDDER_VARIABLE, CommandFailed
from tests.bench.report import note, table
from tests.bench.stand import Stand, data_file

ROUNDS = 5
LEAST_RATIO = 0.20
LEAST_LEXICAL = 5000.0  # turns a second
HASH_SAMPLE = 10_000  # turns
MODEL_SAMPLE = 500  # turns


def ingest(stand: Stand) -> None:
    """Import all turns, and put the same bytes by bare loops, in turn.

    Three bases: the lines of the file under random keys; all pairs of the resulting store in the
    order of their keys; the same in a random order.  The target is held against the last: object
    ids arrive in a random order.  remem's time is that of its whole process.

    Raises:
        CommandFailed: a command failed.
    """
    loops = ("lines", "pairs", "shuffled")
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in loops}
    walls: list[float] = []
    counts: dict[str, tuple[int, int]] = {}
    store = stand.work / f"canonical-{stand.big}"
    for _ in range(ROUNDS):
        walls.append(stand.load(store, stand.big))
        for name in loops:
            source = stand.jsonl(stand.big) if name == "lines" else data_file(store)
            loop = stand.bare(name, str(source))
            taken[name].append((loop.seconds, loop.process))
            counts[name] = (loop.count, loop.bytes)
    wall = metrics.median(walls)
    rows = [
        [
            "remem import jsonl",
            str(stand.big),
            f"{data_file(store).stat().st_size / 1e6:.1f}",
            "-",
            f"{wall:.3f}",
            "1.000",
            "1.000",
        ]
    ]
    ratios: dict[str, list[float]] = {}
    for name in loops:
        ratios[name] = [loop / own for (loop, _), own in zip(taken[name], walls, strict=True)]
        whole = [process / own for (_, process), own in zip(taken[name], walls, strict=True)]
        rows.append(
            [
                f"bare {name}",
                str(counts[name][0]),
                f"{counts[name][1] / 1e6:.1f}",
                f"{metrics.median([loop for loop, _ in taken[name]]):.3f}",
                f"{metrics.median([process for _, process in taken[name]]):.3f}",
                f"{metrics.median(ratios[name]):.3f}",
                f"{metrics.median(whole):.3f}",
            ]
        )
    head = ["what", "entries", "MB", "loop s", "process s", "loop/remem", "process/remem"]
    print(table(head, rows))
    note(f"medians of {ROUNDS} rounds; remem: {stand.big / wall:,.0f} turns/s, whole process")
    low, high = metrics.bootstrap_median(ratios["shuffled"])
    stand.verdicts.judge(
        f"ingest of {stand.big} turns, bare loop of the same pairs over remem",
        metrics.median(ratios["shuffled"]) >= LEAST_RATIO,
        f"{metrics.median(ratios['shuffled']):.3f} [{low:.3f} {high:.3f}]",
        f">= {LEAST_RATIO:.2f}",
    )


def projection(stand: Stand) -> None:
    """Bring the indexes up to date: words of all turns, vectors of a sample by each embedder.

    Rates are over the whole process; a second run, which finds nothing to do, stands beside.

    Raises:
        CommandFailed: a command failed, or left no index behind.
    """
    store = stand.copy(stand.canonical(stand.big), "projected")
    first, second = _project(stand, store, "none")
    rate = stand.big / first
    in_memory = _bm25s_rate(stand)
    note(
        f"lexical: {first:.2f} s, idle run {second:.2f} s; "
        f"{rate / in_memory:.2f} of bm25s in memory ({in_memory:,.0f} turns/s)"
    )
    stand.verdicts.judge(
        f"lexical projection of {stand.big} turns, whole process",
        rate >= LEAST_LEXICAL,
        f"{rate:,.0f} turns/s",
        f">= {LEAST_LEXICAL:,.0f}",
    )
    for embedder, turns in (("hash", HASH_SAMPLE), ("minilm", MODEL_SAMPLE)):
        turns = min(turns, stand.big)
        store = stand.copy(stand.indexed(turns), "vectors")
        try:
            first, second = _project(stand, store, embedder)
        except CommandFailed as failed:
            note(f"vectors, {embedder}: not measured: {failed}")
            continue
        note(
            f"vectors, {embedder}: {turns / first:,.0f} turns/s over {turns} turns "
            f"({first:.2f} s, idle run {second:.2f} s)"
        )


def _project(stand: Stand, store: Path, embedder: str) -> tuple[float, float]:
    """Seconds of a projection and of the idle one after it."""
    extra = {EMBEDDER_VARIABLE: embedder}
    before = _size(store / "index")
    first, _ = stand.remem(store, "project", "--json", extra=extra)
    if _size(store / "index") <= before:
        raise CommandFailed(f"project with embedder {embedder} added nothing to the index")
    second, _ = stand.remem(store, "project", "--json", extra=extra)
    return first, second


def _size(folder: Path) -> int:
    """Bytes held by the files below a folder, as allocated: maps are sparse."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _bm25s_rate(stand: Stand) -> float:
    """Turns a second that bm25s takes, from texts to an index in memory."""
    from tests.bench.baselines import Bm25
    from tests.bench.data import Doc
    from tests.bench.turns import TurnLine

    lines = msgspec.json.Decoder(TurnLine).decode_lines(stand.jsonl(stand.big).read_bytes())
    docs = [Doc(id=line.source["id"], text=line.text, speaker=line.speaker) for line in lines]
    began = time.perf_counter()
    Bm25().ingest(docs)
    return len(docs) / (time.perf_counter() - began)
