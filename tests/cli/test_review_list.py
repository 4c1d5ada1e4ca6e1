"""What waits, listed where nobody can press keys; in status; and once a day on a terminal."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from .conftest import Runner
from .desk import Desk, laid_out
from .screens import Terminal


@pytest.fixture
def desk(run: Runner) -> Desk:
    return laid_out(run)


def test_a_pipe_gets_a_list_and_status_3(desk: Desk) -> None:
    result = desk.run("review", code=3)
    rows = result.out.splitlines()
    assert [row.split()[1] for row in rows] == ["1", "2", "-"]
    assert "supersede" in rows[0] and "deploys go to beta-3" in rows[0]
    assert "quarantined (instruction" in rows[2] and "\\x1b[2J" in rows[2]
    value = desk.run("review", "--json", code=3).json
    assert value["waiting"] == 3
    assert [item["action"] for item in value["items"]] == ["supersede", "new", None]
    assert value["items"][0]["target"]["text"] == "deploys go to alpha-9"
    assert value["items"][0]["evidence"][0]["spans"] == [[25, 44]]
    assert value["items"][0]["producers"] == ["consolidation"]
    desk.run("draft", "approve", desk.draft.hex(), code=0)
    desk.run("quarantine", "release", desk.held.hex(), code=0)
    assert desk.run("review", code=0).out == ""
    assert desk.run("review", "--json", code=0).json == {
        "waiting": 0, "oldest_at": None, "items": [],
    }  # fmt: skip


def test_json_on_a_terminal_is_a_list(desk: Desk) -> None:
    term = Terminal(desk.run, "review", "--json", draws=False)
    assert term.end() == 3
    assert '"waiting":3' in term.raw


def test_status_counts_what_waits(desk: Desk) -> None:
    shown = desk.run("status", code=0).out
    assert "3 for review (2 proposed, 1 quarantined), oldest less than a minute" in shown
    waiting = desk.run("status", "--json", code=0).json["waiting"]
    assert (waiting["items"], waiting["operations"], waiting["quarantined"]) == (3, 2, 1)
    assert waiting["oldest_age_s"] >= 0 and waiting["collections"] == ["home"]


def test_a_line_a_day_on_a_terminal(desk: Desk) -> None:
    line = "3 items wait for review, oldest less than a minute: 'remem review'"
    stamp = Path(desk.store.locks_path) / "reminded"
    assert line not in desk.run("jobs", "list", code=0).err  # no terminal
    assert not stamp.exists()
    for words in (
        ("jobs", "list", "--quiet"),
        ("jobs", "list", "--json"),
        ("status",),
        ("draft", "list"),
    ):
        term = Terminal(desk.run, *words, lines=60)
        term.end()
        assert line not in term.raw and not stamp.exists(), words
    term = Terminal(desk.run, "jobs", "list", columns=120)
    assert term.end() == 0 and line in term.raw
    assert stat.S_IMODE(stamp.stat().st_mode) == 0o600
    term = Terminal(desk.run, "jobs", "list", columns=120)
    assert term.end() == 0 and line not in term.raw
    os.utime(stamp, (time.time() - 90_000,) * 2)
    term = Terminal(desk.run, "jobs", "list", columns=120)
    assert term.end() == 0 and line in term.raw


def test_the_line_names_other_collections(desk: Desk) -> None:
    term = Terminal(desk.run, "jobs", "list", "--collection", "elsewhere", columns=120)
    term.end()
    assert "'remem review --all-collections'" in term.raw


def test_no_line_where_nothing_waits(filled: Runner) -> None:
    term = Terminal(filled, "jobs", "list", columns=120)
    assert term.end() == 0 and "review" not in term.raw
