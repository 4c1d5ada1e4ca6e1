"""Checkpoints in a git repository: nothing of it but the one ref is touched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from remem.hooks.gitref import REF, Checkpoints
from remem.objects.errors import NotFound, StoreError

TIME = 1_700_000_000


def git(repo: Path, *words: str, **env: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repo), *words],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def make(repo: Path, *options: str) -> Path:
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main", *options)
    git(repo, "config", "user.name", "Ann")
    git(repo, "config", "user.email", "ann@example.org")
    return repo


def state(repo: Path) -> dict[str, object]:
    """Everything of a repository but its objects and the ref of the checkpoints."""
    dot = Path(git(repo, "rev-parse", "--absolute-git-dir").strip())
    files = {
        str(path.relative_to(dot)): path.read_bytes()
        for path in dot.rglob("*")
        if path.is_file() and "objects" not in path.parts and "remem" not in path.parts
    }
    tree = {p.name: p.read_bytes() for p in repo.iterdir() if p.is_file()}
    return {"files": files, "tree": tree, "index": files.get("index")}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    made = make(tmp_path / "repo")
    (made / "a.txt").write_text("one\n")
    git(made, "add", "a.txt")
    git(made, "commit", "-q", "-m", "first")
    (made / "a.txt").write_text("two\n")
    (made / "b.txt").write_text("new\n")
    git(made, "add", "b.txt")
    return made


def test_checkpoints_come_back_in_order(repo: Path) -> None:
    kept = Checkpoints(str(repo), os.environ)
    assert kept.notes() == []
    made = [kept.add(f"origin\n{n}\nhash\n\n\u2014 name c2ln\n", TIME + n) for n in range(3)]
    assert [note.splitlines()[1] for _, note in kept.notes()] == ["0", "1", "2"]
    assert [where for where, _ in kept.notes()] == [f"commit {name[:12]}" for name in made]
    assert git(repo, "rev-parse", f"{REF}~1").strip() == made[1]
    assert git(repo, "ls-tree", "--name-only", REF) == "checkpoint\n"


def test_nothing_else_is_touched_and_no_hook_runs(repo: Path) -> None:
    for name in ("reference-transaction", "post-commit", "pre-commit"):
        hook = repo / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\ntouch ran\n")
        hook.chmod(0o755)
    before, shown = state(repo), git(repo, "status", "--porcelain=v2", "--branch")
    Checkpoints(str(repo), os.environ).add("origin\n1\nhash\n", TIME)
    assert state(repo) == before
    assert git(repo, "status", "--porcelain=v2", "--branch") == shown
    assert not (repo / "ran").exists()
    git(repo, "update-ref", "refs/heads/control", "HEAD")  # the control: git runs them
    assert (repo / "ran").exists()


def test_author_and_date_are_ours_whatever_is_set(repo: Path) -> None:
    git(repo, "config", "commit.gpgSign", "true")
    environ = {
        **os.environ,
        "GIT_AUTHOR_NAME": "Mallory",
        "GIT_COMMITTER_EMAIL": "m@example.org",
        "GIT_DIR": "/nowhere",
        "GIT_INDEX_FILE": "/nowhere",
        "EMAIL": "e@example.org",
    }
    Checkpoints(str(repo), environ).add("origin\n1\nhash\n", TIME)
    said = git(repo, "log", "-1", "--format=%an %ae %cn %ce %at %ct", REF)
    assert said == f"remem remem@localhost remem remem@localhost {TIME} {TIME}\n"


def test_a_bare_repository_and_a_linked_work_tree_do(repo: Path, tmp_path: Path) -> None:
    bare = make(tmp_path / "bare", "--bare")
    Checkpoints(str(bare), os.environ).add("origin\n1\nhash\n", TIME)
    linked = tmp_path / "linked"
    git(repo, "worktree", "add", "-q", str(linked))
    Checkpoints(str(linked), os.environ).add("origin\n2\nhash\n", TIME)
    assert len(Checkpoints(str(repo), os.environ).notes()) == 1


def test_a_clone_gets_them_when_asked(repo: Path, tmp_path: Path) -> None:
    Checkpoints(str(repo), os.environ).add("origin\n1\nhash\n", TIME)
    clone = make(tmp_path / "clone")
    git(clone, "fetch", "-q", str(repo), f"{REF}:{REF}")
    assert Checkpoints(str(clone), os.environ).notes() == Checkpoints(str(repo), os.environ).notes()


def test_no_repository_and_a_ref_of_something_else(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(NotFound):
        Checkpoints(str(tmp_path / "plain"), {**os.environ, "GIT_CEILING_DIRECTORIES": ""})
    blob = git(repo, "hash-object", "-w", "a.txt").strip()
    git(repo, "update-ref", REF, blob)
    with pytest.raises(StoreError):
        Checkpoints(str(repo), os.environ).add("origin\n1\nhash\n", TIME)
    git(repo, "update-ref", "-d", REF)
    git(repo, "update-ref", REF, "HEAD")  # a commit without a checkpoint
    with pytest.raises(StoreError):
        Checkpoints(str(repo), os.environ).notes()
