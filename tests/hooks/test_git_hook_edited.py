"""Lines that somebody wrote between ours in a hook of git: they stay, and it is said."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from remem.hooks import git_files, target_git
from remem.hooks.git_spool import EVENTS
from remem.hooks.targets import Place

OWN = b"date >> ~/mine\n"
SHELL = b"#!/bin/sh\necho theirs\n"
OTHER = b"#!/usr/bin/env python3\nprint('theirs')\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "repo").mkdir()
    (tmp_path / "store" / "spool").mkdir(parents=True)
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", tmp_path / "repo"], check=True, env=environ)
    return Place(
        str(tmp_path),
        str(tmp_path / "conf"),
        str(tmp_path / "store"),
        str(tmp_path / "repo"),
        environ,
    )


def hooks(place: Place) -> Path:
    return Path(place.folder, ".git", "hooks")


def put(place: Place, event: str, data: bytes) -> None:
    path = hooks(place) / event
    path.write_bytes(data)
    path.chmod(0o755)


def state(place: Place) -> str:
    return target_git.status(place)[0].state


@pytest.mark.parametrize("event", ["post-commit", "post-rewrite"])
@pytest.mark.parametrize("theirs", [None, SHELL, OTHER], ids=["made", "put in", "moved"])
@pytest.mark.parametrize("where", [0, 1, -1], ids=["first", "second", "last"])
def test_they_stay(place: Place, event: str, theirs: bytes | None, where: int) -> None:
    if theirs is not None:
        put(place, event, theirs)
    target_git.carry_out(place, install=True)
    assert state(place) == "installed"
    path = hooks(place) / event
    lines = path.read_bytes().splitlines(keepends=True)
    inside = lines.index(b"# <<< remem <<<\n") if where < 0 else lines.index(git_files._NOTICE)
    lines.insert(inside + max(where, 0), OWN)
    path.write_bytes(b"".join(lines))
    assert state(place) == "edited"
    target_git.carry_out(place, install=True)  # again: they stay as well
    assert path.read_bytes().count(OWN) == 1
    planned = target_git.plan(place, install=False)
    done = target_git.carry_out(place, install=False)
    assert done.notes == planned.notes
    told = [note for note in done.notes if "a line that somebody wrote" in note]
    already_outside = theirs is not OTHER  # installing again put it behind the block
    assert bool(told) != already_outside
    left = path.read_bytes()
    assert OWN in left and b"remem hook" not in left and b">>> remem" not in left
    if theirs is SHELL:
        assert left.replace(OWN, b"") == SHELL
    if theirs is OTHER:
        assert f"{hooks(place)}/{git_files.ASIDE}/{event}" in " ".join(done.notes)
        assert (hooks(place) / git_files.ASIDE / event).read_bytes() == OTHER
        ran = subprocess.run([path], capture_output=True, check=False, env=dict(place.environ))
        assert ran.stdout == b"theirs\n"
    for other in EVENTS:
        assert other == event or not (hooks(place) / other).exists()


@pytest.mark.parametrize("theirs", [None, SHELL, OTHER], ids=["made", "put in", "moved"])
def test_an_uninstall_at_once_says_so(place: Place, theirs: bytes | None) -> None:
    if theirs is not None:
        put(place, "post-commit", theirs)
    target_git.carry_out(place, install=True)
    path = hooks(place) / "post-commit"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"# <<< remem", OWN + OWN + b"# <<< remem"))
    done = target_git.carry_out(place, install=False)
    assert [note for note in done.notes if "left 2 lines that somebody wrote" in note]
    assert path.read_bytes().count(OWN) == 2


@pytest.mark.parametrize("theirs", [None, SHELL, OTHER], ids=["made", "put in", "moved"])
def test_without_such_lines_nothing_is_said_and_nothing_is_left(
    place: Place, theirs: bytes | None
) -> None:
    if theirs is not None:
        put(place, "post-rewrite", theirs)
    target_git.carry_out(place, install=True)
    done = target_git.carry_out(place, install=False)
    assert done.notes == []
    path = hooks(place) / "post-rewrite"
    assert (path.read_bytes() if path.exists() else None) == theirs
    assert state(place) == "missing"


def test_a_block_of_which_something_was_taken_is_edited(place: Place) -> None:
    target_git.carry_out(place, install=True)
    path = hooks(place) / "post-merge"
    path.write_bytes(path.read_bytes().replace(git_files._NOTICE, b""))
    assert state(place) == "edited"
    target_git.carry_out(place, install=True)
    assert state(place) == "installed"
