"""Cost of forgetting: a purge beside a copy of the files, many by a query, stalls of others.

The purge of one turn is measured end to end, as a process of its own: vectors, projection, both
environments written anew, the switch, and the scan that proves it.  Its base is what copying the
store's files costs in the same run.  Meanwhile other processes read and write without a pause and
note how long the longest of their steps took.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.bench import metrics
from tests.bench.data import DEFAULT_DATA
from tests.bench.process import LEXICAL_ONLY, CommandFailed
from tests.bench.report import note, table, title
from tests.bench.stand import Stand, spread
from tests.bench.turns import NAME_COUNT

MARK = "glimmerwort"  # in every turn that the query finds, and in no other
POLL_S = 0.001
SETTLE_S = 1.0  # of polling before and after a purge
_POLLER = Path(__file__).resolve().parent / "poller.py"


class _Scan(msgspec.Struct):
    files: int
    bytes: int
    needles: int
    findings: list[object]
    sampled: int


class _Purged(msgspec.Struct):
    removed: list[str]
    seconds: float
    scan: _Scan


class Stall(msgspec.Struct):
    """What a polling process saw: steps taken, and how long they took, seconds."""

    steps: int
    median: float
    longest: float


def run(argv: Sequence[str]) -> int:
    """Measure and print.

    Args:
        argv: words after the name of the measurement.

    Returns:
        0; 1 where a scan found what had been purged, or something was not measured.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench forget", description="Measure forgetting and purging."
    )
    parser.add_argument("--turns", type=int, default=100_000, help="of the store")
    parser.add_argument("--many", type=int, default=10_000, help="turns forgotten by a query")
    parser.add_argument("--rounds", type=int, default=3, help="purges of one turn")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the data")
    parser.add_argument("--work", type=Path, help="folder for stores (default: temporary files)")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="remem-bench-", dir=args.work) as work:
        stand = Stand(Path(work), args.data, big=args.turns, small=args.many, rounds=args.rounds)
        try:
            title("forget: purge of one turn")
            one(stand)
            title("forget: others while a purge runs")
            stalls(stand)
            title("forget: many by a query")
            many(stand)
        except (CommandFailed, msgspec.DecodeError) as failed:
            note(f"not measured: {failed}")
            return 1
    return int(bool(stand.verdicts.missed))


def one(stand: Stand) -> None:
    """Purge one turn in the middle of the store, beside a copy of its files.

    Raises:
        CommandFailed: a command failed.
    """
    walls, inside, copies, forgets = [], [], [], []
    purged: _Purged | None = None
    for _ in range(stand.rounds):
        source = stand.indexed(stand.big)
        began = time.perf_counter()
        store = stand.copy(source, "one")
        copies.append(time.perf_counter() - began)
        ref = _middle(stand, store)
        wall, _out = stand.remem(store, "forget", ref, "--json", extra=LEXICAL_ONLY)
        forgets.append(wall)
        wall, out = stand.remem(store, "purge", "--json", extra=LEXICAL_ONLY)
        walls.append(wall)
        purged = msgspec.json.decode(out, type=_Purged)
        inside.append(purged.seconds)
        _judge(stand, purged, 1)
    assert purged is not None
    size_b = sum(p.stat().st_size for p in store.rglob("*") if p.is_file())
    rows = [
        ["copy of the files (shutil)", f"{metrics.median(copies):.2f}", spread(copies)],
        ["forget, whole process", f"{metrics.median(forgets):.2f}", spread(forgets)],
        ["purge, whole process", f"{metrics.median(walls):.2f}", spread(walls)],
        ["purge, without the start", f"{metrics.median(inside):.2f}", spread(inside)],
    ]
    print(table([f"{stand.big} turns, {size_b / 1e6:.0f} MB", "median s", "s"], rows))
    ratio = metrics.median([w / c for w, c in zip(walls, copies, strict=True)])
    note(
        f"purge/copy {ratio:.1f}; scan of {purged.scan.files} files, {purged.scan.needles} strings"
    )


def stalls(stand: Stand) -> None:
    """Let processes read, ask and write without a pause while a turn is purged.

    Raises:
        CommandFailed: a command failed.
    """
    store = stand.copy(stand.indexed(stand.big), "stalls")
    stand.remem(store, "forget", _middle(stand, store), "--json", extra=LEXICAL_ONLY)
    kinds = ("state", "recall", "write")
    pollers = [
        subprocess.Popen(
            [sys.executable, str(_POLLER), kind, str(store), str(POLL_S)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for kind in kinds
    ]
    try:
        for poller in pollers:
            assert poller.stdout is not None
            poller.stdout.readline()
        time.sleep(SETTLE_S)
        quiet = [_told(poller, "quiet") for poller in pollers]
        wall, out = stand.remem(store, "purge", "--json", extra=LEXICAL_ONLY)
        time.sleep(SETTLE_S)
        busy = [_told(poller, "busy") for poller in pollers]
        _judge(stand, msgspec.json.decode(out, type=_Purged), 1)
    finally:
        for poller in pollers:
            poller.kill()
            poller.wait()
    rows = [
        [
            kind,
            f"{before.median * 1000:.2f}",
            f"{before.longest * 1000:.1f}",
            f"{after.median * 1000:.2f}",
            f"{after.longest * 1000:.1f}",
            str(after.steps),
        ]
        for kind, before, after in zip(kinds, quiet, busy, strict=True)
    ]
    head = ["step", "quiet median ms", "longest ms", "purge median ms", "longest ms", "steps"]
    print(table(head, rows))
    note(f"the purge took {wall:.2f} s beside three busy processes")
    note("writers wait while the canonical environment is copied; readers do not")


def many(stand: Stand) -> None:
    """Forget many turns by a query, then purge them.

    Raises:
        CommandFailed: a command failed, or the query found another number.
    """
    store = stand.copy(stand.indexed(stand.big), "many")
    lines = store.parent / "marked.jsonl"
    with lines.open("w", encoding="utf-8") as file:
        for n in range(stand.small):
            words = " ".join(stand.pool.sentences[n % len(stand.pool.sentences)])
            line = {"text": f"{words} {MARK} {n}", "speaker": stand.pool.names[n % NAME_COUNT]}
            file.write(msgspec.json.encode(line).decode() + "\n")
    stand.remem(store, "import", "jsonl", str(lines), "--json", extra=LEXICAL_ONLY)
    dry, _ = stand.remem(store, "forget", "--query", MARK, "--dry-run", extra=LEXICAL_ONLY)
    words = ("forget", "--query", MARK, "--yes", "--json")
    wall, out = stand.remem(store, *words, extra=LEXICAL_ONLY)
    found = len(msgspec.json.decode(out, type=dict[str, object])["observations"])  # type: ignore[arg-type]
    if found != stand.small:
        raise CommandFailed(f"the query found {found} of {stand.small} turns")
    purge_wall, out = stand.remem(store, "purge", "--json", extra=LEXICAL_ONLY)
    purged = msgspec.json.decode(out, type=_Purged)
    _judge(stand, purged, stand.small)
    began = time.perf_counter()
    shutil.copytree(store, stand.work / "copied")
    copy = time.perf_counter() - began
    rows = [
        ["dry run", f"{dry:.2f}", f"{stand.small / dry:,.0f}"],
        ["forget", f"{wall:.2f}", f"{stand.small / wall:,.0f}"],
        ["purge and proof", f"{purge_wall:.2f}", f"{stand.small / purge_wall:,.0f}"],
        ["copy of the files (shutil)", f"{copy:.2f}", ""],
    ]
    print(table([f"{stand.small} of {stand.big + stand.small} turns", "s", "turns/s"], rows))
    scan = purged.scan
    note(f"scan: {scan.needles:,} strings in {scan.bytes / 1e6:.0f} MB, {scan.sampled} left out")


def _middle(stand: Stand, store: Path) -> str:
    """Id of a turn in the middle of the store."""
    _, out = stand.remem(store, "ls-refs", extra=LEXICAL_ONLY)
    lines = out.splitlines()
    return lines[len(lines) // 2].split()[0]


def _told(poller: subprocess.Popen[str], word: str) -> Stall:
    """What a poller saw since it was last asked."""
    assert poller.stdin is not None and poller.stdout is not None
    poller.stdin.write(word + "\n")
    poller.stdin.flush()
    return msgspec.json.decode(poller.stdout.readline(), type=Stall)


def _judge(stand: Stand, purged: _Purged, wanted: int) -> None:
    """The purge removed what it had to, and its scan found nothing of it."""
    if len(purged.removed) != wanted or purged.scan.findings or not purged.scan.needles:
        stand.verdicts.judge(
            "purge", False, f"{len(purged.removed)} removed, {purged.scan.findings}", str(wanted)
        )
