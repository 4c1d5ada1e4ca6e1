"""Cold start: whole processes at a prompt, beside an interpreter that does nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import msgspec

from tests.bench import metrics
from tests.bench.data import ROOT
from tests.bench.process import (
    BASE,
    EMBEDDER_VARIABLE,
    LEXICAL_ONLY,
    PYTHON,
    Command,
    CommandFailed,
    Sample,
    run,
    samples,
)
from tests.bench.report import note, table
from tests.bench.stand import Stand

MOST_ADD = 6.0
MOST_LEXICAL = 9.0
MOST_HYBRID = 30.0  # times the interpreter, above the interpreter with the numeric libraries
QUERIES = 40
NUMERIC_BASES = {
    "numpy": [PYTHON, "-I", "-c", "import numpy"],
    "numpy, onnxruntime": [PYTHON, "-I", "-c", "import numpy, onnxruntime"],
}
FILL = "tests.bench.fill"


class _Answer(msgspec.Struct):
    mode: str
    hits: list[dict[str, object]]
    degraded: str | None = None


def cold_start(stand: Stand) -> None:
    """Time ``recall`` and ``add`` over the large store.

    Each recall asks another question.  A recall after an add also projects what was added, and is
    shown beside the others without a target.

    Raises:
        CommandFailed: a command failed.
    """
    store = stand.copy(stand.indexed(stand.big), "cold")
    env = stand.env(LEXICAL_ONLY)
    asked = stand.pool.questions[:: max(1, len(stand.pool.questions) // QUERIES)]

    def recall(number: int) -> list[str]:
        query = asked[number % len(asked)]
        return stand.words(store, "recall", "--mode", "lexical", "--", query)

    def add(number: int) -> list[str]:
        return stand.words(store, "add", f"The {number}th note names a kettle and a blue door.")

    _check_mode(stand, store, "lexical", LEXICAL_ONLY)
    readers: dict[str, Command] = {
        "base": BASE,
        "version": stand.words(store, "--version"),
        "recall": recall,
    }
    taken = samples(readers, env, cwd=stand.home, n=stand.rounds)
    writers: dict[str, Command] = {"base": BASE, "add": add, "recall after add": recall}
    written = samples(writers, env, cwd=stand.home, n=stand.rounds)
    _show(taken, "base")
    _show(written, "base")
    _judge(stand, taken, "recall", f"lexical recall over {stand.big} turns", MOST_LEXICAL)
    _judge(stand, written, "add", f"add to {stand.big} turns", MOST_ADD)


def hybrid(stand: Stand) -> None:
    """Time hybrid ``recall`` with MiniLM over the large store.

    Embedding all turns would take half an hour, so their vectors are random unit vectors that
    went through remem's own projection under MiniLM's identity; only the query is embedded by the
    model.  Cost of loading, scanning and fusing is that of real vectors; the hits mean nothing.

    Raises:
        CommandFailed: a command failed.
    """
    store = stand.copy(stand.indexed(stand.big), "hybrid")
    extra = {EMBEDDER_VARIABLE: "minilm"}
    filled = run([sys.executable, "-m", FILL, str(store)], stand.env(extra), cwd=ROOT)
    note(filled.stdout.strip().splitlines()[-1])
    asked = stand.pool.questions[:: max(1, len(stand.pool.questions) // QUERIES)]

    def recall(number: int) -> list[str]:
        query = asked[number % len(asked)]
        return stand.words(store, "recall", "--mode", "hybrid", "--", query)

    _check_mode(stand, store, "hybrid", extra)
    numeric = {
        name: words
        for name, words in NUMERIC_BASES.items()
        if "onnxruntime" not in name or find_spec("onnxruntime")
    }
    commands: dict[str, Command] = {"base": BASE, **numeric, "recall": recall}
    taken = samples(commands, stand.env(extra), cwd=stand.home, n=stand.rounds)
    _show(taken, "base")
    for name in numeric:
        above = [
            (own.wall - loaded.wall) / base.wall
            for own, loaded, base in zip(taken["recall"], taken[name], taken["base"], strict=True)
        ]
        low, high = metrics.bootstrap_median(above)
        stand.verdicts.judge(
            f"hybrid recall over {stand.big} turns (random vectors), above 'import {name}'",
            metrics.median(above) <= MOST_HYBRID,
            f"{metrics.median(above):.1f} x base [{low:.1f} {high:.1f}]",
            f"<= {MOST_HYBRID:.0f}",
        )


def _check_mode(stand: Stand, store: Path, mode: str, extra: Mapping[str, str]) -> None:
    """One recall beforehand: a fast answer in another mode would measure nothing."""
    query = stand.pool.questions[0]
    _, out = stand.remem(store, "recall", "--mode", mode, "--json", "--", query, extra=extra)
    answer = msgspec.json.decode(out, type=_Answer)
    if answer.mode != mode or answer.degraded or not answer.hits:
        raise CommandFailed(
            f"asked in mode {mode}: mode {answer.mode}, degraded {answer.degraded}, "
            f"{len(answer.hits)} hits"
        )


def _show(taken: Mapping[str, list[Sample]], base: str) -> None:
    wall = {name: metrics.median([one.wall for one in ones]) for name, ones in taken.items()}
    cpu = {name: metrics.median([one.cpu for one in ones]) for name, ones in taken.items()}
    rows = [
        [
            name,
            str(len(taken[name])),
            f"{wall[name] * 1000:.1f}",
            f"{min(one.wall for one in taken[name]) * 1000:.1f}",
            f"{cpu[name] * 1000:.1f}",
            f"{wall[name] / wall[base]:.2f}",
            f"{cpu[name] / cpu[base]:.2f}",
        ]
        for name in taken
    ]
    head = ["command", "n", "wall ms", "least", "cpu ms", "wall ratio", "cpu ratio"]
    print(table(head, rows))


def _judge(
    stand: Stand, taken: Mapping[str, list[Sample]], name: str, what: str, most: float
) -> None:
    base = metrics.median([one.wall for one in taken["base"]])
    ratios = [one.wall / base for one in taken[name]]
    low, high = metrics.bootstrap_median(ratios)
    stand.verdicts.judge(
        what,
        metrics.median(ratios) <= most,
        f"{metrics.median(ratios):.2f} x base [{low:.2f} {high:.2f}]",
        f"<= {most:.0f}",
    )
