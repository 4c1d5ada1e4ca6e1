"""A process that lives long lets go of what a purge removed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import remem
from tests.cli.conftest import Runner, run  # noqa: F401
from tests.hooks.agents import HELLO, Wire, message

WORD = "quibblethorpe"


def held(root: Path, process: int | None = None) -> list[str]:
    """Files of a store that a process has open, or mapped; this process unless one is named."""
    proc = Path("/proc") / str(process or "self")
    found = []
    for name in os.listdir(proc / "fd"):
        with suppress(OSError):
            found.append(os.readlink(proc / "fd" / name))
    maps = (line.split(maxsplit=5) for line in (proc / "maps").read_text().splitlines())
    found += [parts[5] for parts in maps if len(parts) == 6]
    return [target for target in found if target.startswith(str(root))]


def removed(root: Path, process: int | None = None) -> list[str]:
    """Those of them that are gone."""
    return [target for target in held(root, process) if target.endswith("(deleted)")]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc here")
@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
def test_after_a_purge_the_next_question_closes_what_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("REMEM_EMBEDDER", "hash")
    root = tmp_path / "store"
    with remem.open(root) as store:
        gone = store.observe(f"the word of the day is {WORD}")
        store.observe("the harbour opens at nine")
        assert store.recall(WORD, mode=mode).hits
        words = [sys.executable, "-m", "remem", "--store", str(root)]
        subprocess.run(
            [*words, "forget", "--now", "--yes", gone.id], check=True, capture_output=True
        )
        assert removed(root)  # this is what an open process would go on holding
        assert not any(WORD in hit.text for hit in store.recall(WORD, mode=mode).hits)
        assert store.recall("harbour", mode=mode).hits
        assert removed(root) == []


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc here")
def test_an_idle_server_lets_go_of_what_is_purged(run: Runner) -> None:  # noqa: F811
    gone = run.add(f"the word of the day is {WORD}")
    run.add("the harbour opens at nine")
    wire = Wire(run)
    try:
        wire.send(HELLO, message(2, "tools/call", name="recall", arguments={"query": WORD}))
        assert WORD in str(wire.answer(2))
        assert removed(run.store, wire.process.pid) == [] and held(run.store, wire.process.pid)
        run("forget", "--now", "--yes", gone, code=0)
        deadline = time.monotonic() + 30
        while removed(run.store, wire.process.pid) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert removed(run.store, wire.process.pid) == []
        wire.send(message(3, "tools/call", name="recall", arguments={"query": "harbour"}))
        answer = str(wire.answer(3))
        assert "opens at nine" in answer and WORD not in answer
    finally:
        wire.process.kill()
        wire.process.wait()
