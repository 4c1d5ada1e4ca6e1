"""A process that lives long lets go of what a purge removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import remem

WORD = "quibblethorpe"


def removed(root: Path) -> list[str]:
    """Files of a store that are gone but still open here."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if target.startswith(str(root)) and target.endswith("(deleted)"):
            found.append(target)
    return found


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
