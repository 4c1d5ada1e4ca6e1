"""Consolidation of many observations: how long it takes and how much memory.

Half of them are turns of chats, four in ten commands, and the rest notes of which each is there
twice; so there is something to retire, to sum up and to pass over.  Deriving is part of it, vectors
are not (they have a measurement of their own).  A second run with nothing new, and one after a
single note, are what a store costs every hour.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.process import LEXICAL_ONLY, child_env, console_script, peak_memory, run
from tests.bench.report import note, table
from tests.bench.turns import write_turns, zipf_pool

OBSERVATIONS = 50_000
_AT = "2026-0{}-{:02}T{:02}:{:02}:{:02}Z"


def measure(argv: Sequence[str] = ()) -> int:
    """Measure and print.

    Args:
        argv: the number of observations, or nothing.

    Returns:
        1 when a second run changes anything, else 0.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.bench.hooks_consolidate")
    parser.add_argument("count", type=int, nargs="?", default=OBSERVATIONS)
    count = parser.parse_args(argv).count
    with tempfile.TemporaryDirectory(prefix="remem-bench-") as folder:
        return _measure(Path(folder), count)


def _measure(folder: Path, count: int) -> int:
    env = child_env(folder, {**LEXICAL_ONLY, "REMEM_DERIVE_DERIVER": "none"})
    words = [console_script(), "--store", str(folder / "store"), "--collection", "bench"]
    _fill(folder, words, env, count)
    env["REMEM_DERIVE_DERIVER"] = "ledger,rules"
    rows = []
    counts = []
    for name in ("first", "again", "nothing new", "one new note"):
        if name == "one new note":
            run([*words, "add", "one more thing to know"], env, cwd=folder)
        start = time.perf_counter()
        peak = peak_memory([*words, "consolidate", "--json"], env, cwd=folder)
        took = time.perf_counter() - start
        done = json.loads(run([*words, "status", "--json"], env, cwd=folder).stdout)
        counts.append(done["consolidation"]["counts"])
        rows.append(
            [name, f"{took:.2f}", f"{peak.private / 1024:.1f}", f"{peak.resident / 1024:.1f}"]
        )
    print(table([f"{count:,} observations", "wall s", "private MiB", "resident MiB"], rows))
    note("first run: " + ", ".join(f"{name} {n:,}" for name, n in sorted(counts[0].items())))
    run([*words, "verify"], env, cwd=folder)
    return int(bool(counts[1] or counts[2]))


def _fill(folder: Path, words: list[str], env: dict[str, str], count: int) -> None:
    """Import turns, commands and notes."""
    turns, commands = count // 2, 4 * count // 10
    write_turns(folder / "turns.jsonl", zipf_pool(), turns)
    with (folder / "rest.jsonl").open("w") as out:
        for n in range(commands):
            at = _AT.format(1 + n % 9, 1 + n // 9 % 28, n % 24, n % 60, n % 59)
            line = {"text": f"make target-{n % 700}", "kind": "command", "role": "user", "at": at}
            out.write(
                json.dumps({**line, "session": f"shell-{n % 40}", "meta": {"exit": 0}}) + "\n"
            )
        for n in range(count - turns - commands):
            text = f"the valve of tank {n // 2} is checked on the {n // 2 % 28}th"
            out.write(json.dumps({"text": text + "." * (n % 2)}) + "\n")
    for name in ("turns", "rest"):
        run([*words, "import", "jsonl", str(folder / f"{name}.jsonl")], env, cwd=folder)


if __name__ == "__main__":
    sys.exit(measure(sys.argv[1:]))
