"""A store that lies in a folder: taken only where this user made or accepted it."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from remem.hooks.identity import collection_of
from remem.objects.scope import MAX_NAME_B
from tests.cli.conftest import Runner


@pytest.fixture
def local(run: Runner) -> Runner:
    del run.env["REMEM_STORE"]
    run("init", "--here", code=0)
    return run


def test_a_store_made_here_is_used_here_and_below(local: Runner) -> None:
    below = local.cwd / "a" / "b"
    below.mkdir(parents=True)
    local("add", "kept in the folder", code=0, cwd=below)
    assert "kept in the folder" in local("recall", "kept", code=0).out


def test_a_store_that_a_clone_brought_is_refused_until_it_is_accepted(
    local: Runner, tmp_path: Path
) -> None:
    local("add", "planted words", code=0)
    clone = tmp_path / "clone"
    shutil.copytree(local.cwd, clone)
    for words in (["add", "a private note"], ["recall", "planted"], ["status"]):
        refused = local(*words, code=3, cwd=clone)
        assert "not made or accepted by you" in refused.err and "planted" not in refused.out
    local("init", "--here", code=0, cwd=clone)
    assert "planted words" in local("recall", "planted", code=0, cwd=clone).out


@pytest.mark.parametrize("line", ['embedder = "openai:http://127.0.0.1:9/v1#m"', 'as = "owner"'])
def test_a_found_store_may_not_say_where_data_goes(local: Runner, line: str) -> None:
    (local.cwd / ".remem" / "config.toml").write_text(line + "\n")
    assert "may not set" in local("recall", "x", code=2).err
    named = local("--store", local.cwd / ".remem", "recall", "x", "--mode", "lexical")
    assert "may not set" not in named.err


def test_an_empty_store_name_is_a_mistake(run: Runner) -> None:
    assert run("--store", "", "add", "x", code=2).err.startswith("remem: --store names no folder")


def test_export_leaves_devices_and_pipes_alone(run: Runner, tmp_path: Path) -> None:
    run("add", "x", code=0)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    run("export", "--force", pipe, code=2)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    target = tmp_path / "pack"
    target.write_text("old")
    run("export", "--force", target, code=0)
    assert target.read_text().startswith("{")


@pytest.mark.parametrize("dangling", [False, True])
def test_export_writes_through_no_link(run: Runner, tmp_path: Path, dangling: bool) -> None:
    run("add", "x", code=0)
    victim, link = tmp_path / "victim", tmp_path / "pack"
    if not dangling:
        victim.write_text("mine")
    link.symlink_to(victim)
    for words in (["export", link], ["export", "--force", link]):
        assert "is a symbolic link" in run(*words, code=2).err
    assert link.is_symlink() and (not victim.exists() if dangling else victim.read_text() == "mine")
    run("export", "--force", victim, code=0)
    (tmp_path / "folder").mkdir()
    (tmp_path / "way").symlink_to(tmp_path / "folder")
    run("export", tmp_path / "way" / "pack", code=0)  # a link to a folder is a way as any
    assert (tmp_path / "folder" / "pack").read_text().startswith("{")


def test_long_paths_stay_apart(tmp_path: Path) -> None:
    names = []
    for top in ("one", "two"):
        folder = tmp_path / top / ("d" * 120) / ("e" * 120)
        (folder / ".git").mkdir(parents=True)
        names.append(collection_of(str(folder))[0])
    assert names[0] != names[1]
    assert all(len(name.encode()) <= MAX_NAME_B for name in names)
