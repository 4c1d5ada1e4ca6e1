"""Which project a folder belongs to, in real repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from remem.hooks.identity import collection_of, normalise_url


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def repository(folder: Path, remote: str = "") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "a").write_text("a")
    git(folder, "add", "a")
    git(folder, "commit", "-qm", "first")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


def name(folder: Path) -> str:
    return collection_of(str(folder))[0]


def test_outside_a_repository(tmp_path: Path) -> None:
    assert collection_of(str(tmp_path)) == ("home", "default")


def test_same_folder_name_in_two_places_never_mixes(tmp_path: Path) -> None:
    one, two = repository(tmp_path / "x/app"), repository(tmp_path / "y/app")
    assert name(one) == str(one) and name(two) == str(two)


def test_remote_names_it_and_survives_a_move(tmp_path: Path) -> None:
    repo = repository(tmp_path / "app", "git@host.example.org:Team/app.git")
    assert collection_of(str(repo)) == ("host.example.org/Team/app", "git remote")
    (repo / "deep/er").mkdir(parents=True)
    assert name(repo / "deep/er") == name(repo)
    moved = tmp_path / "elsewhere"
    repo.rename(moved)
    assert name(moved) == "host.example.org/Team/app"


def test_worktree_shares_submodule_and_clone_do_as_their_remotes_say(tmp_path: Path) -> None:
    repo = repository(tmp_path / "app", "https://host.example.org/team/app.git")
    git(repo, "worktree", "add", "-q", str(tmp_path / "side"))
    assert name(tmp_path / "side") == name(repo)
    lonely = repository(tmp_path / "lonely")
    git(lonely, "worktree", "add", "-q", str(tmp_path / "lonely-side"))
    assert name(tmp_path / "lonely-side") == name(lonely) == str(lonely)
    library = repository(tmp_path / "library")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    assert name(repo / "lib") == str(library)
    git(tmp_path, "clone", "-q", str(library), "copy")
    assert name(tmp_path / "copy") == str(library)


def test_setting_in_the_repository_wins(tmp_path: Path) -> None:
    repo = repository(tmp_path / "app", "https://host.example.org/team/app.git")
    git(repo, "config", "remem.collection", 'mine "own" # one')
    expected = git(repo, "config", "remem.collection").strip()
    assert collection_of(str(repo)) == (expected, "git config")


def test_symbolic_link_is_the_folder_behind_it(tmp_path: Path) -> None:
    repo = repository(tmp_path / "app")
    os.symlink(repo, tmp_path / "link")
    assert name(tmp_path / "link") == name(repo)


def test_bare_repository_with_worktrees(tmp_path: Path) -> None:
    repo = repository(tmp_path / "app")
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    git(tmp_path / "bare.git", "remote", "remove", "origin")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "tree"), "main")
    assert name(tmp_path / "tree") == name(tmp_path / "bare.git") == str(tmp_path / "bare.git")


@pytest.mark.parametrize(
    "url",
    [
        "https://host.example.org/team/app.git",
        "https://user:secret@HOST.example.org/team/app/",
        "ssh://git@host.example.org:22/team/app.git",
        "git@host.example.org:team/app.git",
        "git@host.example.org:/team/app",
    ],
)
def test_one_name_for_many_ways_to_write_a_remote(url: str) -> None:
    assert normalise_url(url) == "host.example.org/team/app"


def test_a_password_never_reaches_the_name() -> None:
    for url in (
        "https://user:secret@host.example.org/a",
        "https://me:pa@secret@host.example.org/a",
    ):
        assert normalise_url(url) == "host.example.org/a"
    assert normalise_url("/srv/git/app.git") == "/srv/git/app.git"
