"""The hooks of git through the command line: put in, felt by nobody, taken in once, taken out."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from remem.objects.model import Scope
from remem.objects.scope import Actor, owner_grant
from remem.objects.store import Store
from tests.cli.conftest import Runner

EVENTS = ("post-applypatch", "post-checkout", "post-commit", "post-merge", "post-rewrite")


class Project:
    """A repository beside a store."""

    def __init__(self, run: Runner) -> None:
        self.run = run
        self.path = run.home / "project"
        self.path.mkdir()
        (run.home / ".gitconfig").write_text("[user]\n\tname = T\n\temail = t@example.org\n")
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.path, env=self.run.environment(), capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()

    def commit(self, message: str, name: str = "a", cwd: Path | None = None) -> None:
        with open((cwd or self.path) / name, "a") as file:
            file.write(message)
        self.git("add", "-A", cwd=cwd)
        assert self.git("commit", "-q", "-m", message, cwd=cwd) == ""

    def hook(self, *words: str, code: int = 0, cwd: Path | None = None):  # type: ignore[no-untyped-def]
        return self.run("hook", *words, cwd=cwd or self.path, code=code)

    def commits(self) -> list[tuple[str, str]]:
        """First lines of the commits that are kept and the operations on each, in order."""
        log = self.run("--json", "log", "-n", "100", cwd=self.path, code=0).json
        found: dict[str, str] = {}
        for entry in reversed(log):
            found[entry["ref"]] = entry["op"]
        shown = self.run("--json", "show", *found, cwd=self.path, code=0).json
        shown = shown if isinstance(shown, list) else [shown]
        return [
            (one["text"].split("\n")[0], found[one["ref"]]) for one in shown
            if one["kind"] == "commit"
        ]  # fmt: skip


@pytest.fixture
def project(run: Runner) -> Project:
    run.add("a store")
    return Project(run)


def test_installing_twice_and_taking_out(project: Project) -> None:
    hooks = project.path / ".git" / "hooks"
    own = hooks / "post-commit"
    own.write_text("#!/bin/sh\nexit 0\n")
    own.chmod(0o750)
    before = sorted(os.listdir(hooks))
    dry = project.hook("install", "git", "--dry-run").out
    assert f"+++ {hooks}/post-merge" in dry and sorted(os.listdir(hooks)) == before
    first = project.run("--json", "hook", "install", "git", cwd=project.path, code=0).json
    changed = {os.path.basename(c["path"]): c["change"] for c in first["changes"]}
    assert changed == {name: "created" for name in (*EVENTS, "git-hook")} | {
        "post-commit": "changed"
    }
    assert "nothing to do" in project.hook("install", "git").out
    states = project.run("--json", "hook", "status", "git", cwd=project.path, code=0).json
    assert [s["state"] for s in states] == ["installed", "missing"]
    project.hook("uninstall", "git")
    assert sorted(os.listdir(hooks)) == before
    assert own.read_text() == "#!/bin/sh\nexit 0\n" and own.stat().st_mode & 0o777 == 0o750
    assert "nothing to do" in project.hook("uninstall", "git").out


def test_what_git_does_is_known_to_the_next_command(project: Project) -> None:
    project.hook("install", "git")
    project.commit("Describe the kettle")
    hits = project.run("--json", "recall", "kettle", cwd=project.path, code=0).json["hits"]
    assert hits and hits[0]["scope"]["collection"] == str(project.path)
    value = project.run("--json", "import", "git", ".", cwd=project.path, code=0).json
    assert (value["read"], value["new"], value["known"]) == (1, 0, 1)
    project.git("commit", "-q", "--amend", "-m", "Describe the teapot")
    texts = str(project.run("--json", "recall", "kettle", cwd=project.path, code=0).json["hits"])
    assert "Describe the kettle" not in texts
    project.run("verify", code=0)


def test_worktrees_rebases_and_shared_hooks(project: Project, tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    project.git("config", "--global", "core.hooksPath", str(hooks))
    project.hook("install", "git")
    project.commit("base")
    linked = tmp_path / "linked"
    project.git("worktree", "add", "-q", "-b", "side", str(linked))
    project.commit("linked one", "b", linked)
    project.commit("main one")
    project.git("rebase", "-q", "main", cwd=linked)
    drained = project.run("--json", "drain", code=0).json
    assert drained["rejected"] == drained["damaged"] == 0
    assert project.git("status", "--porcelain") == ""
    assert sorted(project.commits()) == [
        ("base", "create"),
        ("linked one", "create"),
        ("linked one", "supersede"),
        ("main one", "create"),
    ]
    assert project.run("--json", "drain", code=0).json["read"] == 0


def test_a_locked_or_missing_store_is_not_felt(project: Project) -> None:
    project.hook("install", "git")
    project.commit("before")
    took = []
    scope = Scope("local", "default", "home", "none", "main")

    def hold(tx: object) -> None:
        for number in range(3):
            start = time.monotonic()
            project.commit(f"locked {number}")
            took.append(time.monotonic() - start)

    store = Store(str(project.run.store))
    store.write(Actor(owner_grant(scope), "cli", scope), hold)
    store.close()
    assert max(took) < 5  # of git itself; nothing waits for the store
    project.run("drain", code=0)
    assert [text for text, _ in project.commits()] == ["before", *(f"locked {n}" for n in range(3))]
    moved = project.run.store.rename(project.run.home / "moved")
    project.commit("without a store")
    assert not project.run.store.exists()
    moved.rename(project.run.store)
    assert project.run("--json", "drain", code=0).json["read"] == 0


def test_tracked_hooks_are_refused(project: Project) -> None:
    hooks = project.path / ".githooks"
    hooks.mkdir()
    (hooks / "pre-push").write_text("#!/bin/sh\n")
    project.commit("hooks")
    project.git("config", "core.hooksPath", ".githooks")
    found = project.hook("install", "git", code=3)
    assert f"the hooks in '{hooks}' (core.hooksPath) are tracked by git" in found.err
    assert "hint: add to the hooks there by hand" in found.err
    assert project.git("status", "--porcelain") == ""


def test_mistakes(project: Project) -> None:
    assert "in no git repository" in project.hook("install", "git", code=3, cwd=project.run.cwd).err
    assert "--global belongs to" in project.hook("install", "shell", "--global", code=2).err
    assert "--bash, --zsh" in project.hook("install", "git", "--bash", code=2).err
