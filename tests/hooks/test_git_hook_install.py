"""Putting git hooks into real repositories of every shape, and taking them out to the byte."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from remem.hooks import git_files, git_install
from remem.hooks.git_spool import EVENTS, Event, read, waiting
from remem.objects.errors import Refused

IDENTITY = ("-c", "user.name=T", "-c", "user.email=t@example.org")


def events_in(spool: str) -> list[Event]:
    """The events that wait, oldest first."""
    return [event for path in waiting(spool) for event in read(path)[0]]


class World:
    """A home with a repository, a spool and what an installation is made with."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.repo = root / "repo"
        self.spool = root / "store" / "spool"
        self.repo.mkdir(parents=True)
        self.spool.mkdir(parents=True, mode=0o700)
        self.home.mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.setup = git_install.Setup(str(self.home / "conf"), str(self.spool), self.env)
        self.git("init", "-q", "-b", "main")

    def run(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = ["git", *IDENTITY, *words]
        return subprocess.run(
            command, cwd=cwd or self.repo, env=self.env, capture_output=True, text=True, check=False
        )

    def git(self, *words: str, cwd: Path | None = None) -> str:
        done = self.run(*words, cwd=cwd)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout.strip()

    def commit(self, name: str = "a", cwd: Path | None = None) -> str:
        with open((cwd or self.repo) / name, "a") as file:
            file.write("line\n")
        self.git("add", "-A", cwd=cwd)
        done = self.run("commit", "-q", "-m", f"change {name}", cwd=cwd)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        return self.git("rev-parse", "HEAD", cwd=cwd)

    def install(self, cwd: Path | None = None, *, everywhere: bool = False) -> list[str]:
        made = git_install.install(self.setup, str(cwd or self.repo), everywhere=everywhere)
        return [change.path for change in made]

    def uninstall(self, cwd: Path | None = None, *, everywhere: bool = False) -> None:
        git_install.uninstall(self.setup, str(cwd or self.repo), everywhere=everywhere)

    def noted(self) -> list[tuple[str, str]]:
        """Events that wait and their commits; the spool is emptied."""
        found = [(event.name, event.head) for event in events_in(str(self.spool))]
        for path in self.spool.iterdir():
            path.unlink()
        return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every path below a folder with its mode and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        if stat.S_ISLNK(state.st_mode):
            content = os.fsencode(os.readlink(path))
        else:
            content = b"" if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(folder))] = (state.st_mode, content)
    return found


def hook(folder: Path, name: str, text: str | bytes, mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return path


def test_an_event_is_noted_and_nothing_is_said(world: World) -> None:
    assert world.commit() and world.noted() == []  # not before
    hooks = world.repo / ".git" / "hooks"
    before = tree(hooks)
    world.install()
    assert git_install.plan(world.setup, str(world.repo)) == []
    assert world.install() == []  # a second time changes nothing
    assert set(git_install.status(world.setup, str(world.repo)).values()) == {"installed"}
    sha = world.commit()
    assert world.noted() == [("post-commit", sha)]
    assert world.git("status", "--porcelain") == ""
    world.uninstall()
    assert tree(hooks) == before
    assert set(git_install.status(world.setup, str(world.repo)).values()) == {"missing"}
    world.commit()
    assert world.noted() == []


SHELL = """#!/bin/sh -e
# dispatches on its name, reads its neighbour
. "$(dirname "$0")/common"
printf '%s:%s:%s\\n' "$(basename "$0")" "$*" "$(cat)" >> "$OUT"
exit 3
"""


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o775])
def test_a_shell_script_keeps_its_name_folder_input_and_status(world: World, mode: int) -> None:
    hooks = world.repo / ".git" / "hooks"
    hook(hooks, "common", "OUT=out-of-hooks\n", 0o644)
    for name in ("post-checkout", "post-rewrite", "post-commit"):
        hook(hooks, name, SHELL, mode)
    (world.repo / ".git" / "info" / "exclude").write_text("out-of-hooks\n")
    world.commit("first")
    before = tree(hooks)
    out = world.repo / "out-of-hooks"
    found = []
    for installed in (False, True):
        if installed:
            world.install()
        out.unlink(missing_ok=True)
        codes = [world.run("checkout", "-q", "-b", f"b{installed}").returncode]
        old = world.git("rev-parse", "HEAD")
        codes.append(world.run("commit", "-q", "--amend", "-m", f"again {installed}").returncode)
        text = out.read_text().replace(old, "OLD")
        found.append((codes, text.replace(world.git("rev-parse", "HEAD"), "NEW")))
    assert found[0] == found[1]
    assert found[0][0][0] == 1  # post-checkout is the one whose status git hands on
    assert "post-rewrite:amend:OLD NEW\n" in found[0][1]
    assert {name for name, _ in world.noted()} == {"post-checkout", "post-commit", "post-rewrite"}
    world.uninstall()
    assert tree(hooks) == before


PYTHON = """#!/usr/bin/env python3
import os, sys
name = os.path.basename(sys.argv[0])
open("seen", "a").write(f"{name} {sys.argv[1:]} {sys.stdin.read()!r}\\n")
sys.exit(5)
"""


@pytest.mark.parametrize("kind", ["python", "link", "far link", "no first line", "disabled"])
def test_every_other_hook_is_run_as_it_was(world: World, kind: str) -> None:
    hooks = world.repo / ".git" / "hooks"
    (world.repo / ".git" / "info" / "exclude").write_text("seen\n")
    for name in ("post-rewrite", "post-checkout"):
        if kind == "link":
            hook(world.repo / "tools", "any", PYTHON)
            (hooks / name).symlink_to("../../tools/any")
        elif kind == "far link":
            hook(world.home, "any", PYTHON)
            (hooks / name).symlink_to(world.home / "any")
        elif kind == "no first line":
            hook(hooks, name, 'echo "$(basename "$0") $* $(cat)" >> seen; exit 5\n')
        else:
            hook(hooks, name, PYTHON, 0o644 if kind == "disabled" else 0o755)
    world.commit("first")
    before = tree(hooks)
    seen, found = world.repo / "seen", []
    for installed in (False, True):
        if installed:
            world.install()
        codes = [world.run("checkout", "-q", "-b", f"b{installed}").returncode]
        world.run("commit", "-q", "--amend", "-m", f"again {installed}")
        text = seen.read_text() if seen.exists() else ""
        found.append((codes, re.sub("[0-9a-f]{40}", "SHA", text).splitlines()))
        seen.unlink(missing_ok=True)
    assert found[0] == found[1]
    assert found[0][0] == [0 if kind == "disabled" else 1]
    assert len(found[0][1]) == (0 if kind == "disabled" else 2)
    assert {name for name, _ in world.noted()} == {"post-checkout", "post-commit", "post-rewrite"}
    assert world.install() == []
    world.uninstall()
    assert tree(hooks) == before


def test_a_hook_that_blocks_still_blocks(world: World) -> None:
    hook(world.repo / ".git" / "hooks", "pre-commit", "#!/bin/sh\nexit 1\n")
    world.install()
    (world.repo / "a").write_text("x")
    world.git("add", "a")
    assert world.run("commit", "-m", "no").returncode == 1
    assert world.noted() == []
    (world.repo / ".git" / "hooks" / "pre-commit").unlink()
    assert world.run("commit", "-m", "yes").returncode == 0
    assert [name for name, _ in world.noted()] == ["post-commit"]


def test_what_was_added_to_our_hook_since_stays(world: World) -> None:
    world.install()
    path = world.repo / ".git" / "hooks" / "post-commit"
    with open(path, "a") as file:
        file.write("echo more >> more\n")
    world.uninstall()
    assert path.read_text() == "#!/bin/sh\necho more >> more\n"
    # A hook that another program wrote over ours is theirs, and the state says so.
    world.install()
    hook(path.parent, "post-merge", "#!/bin/sh\n")
    assert git_install.status(world.setup, str(world.repo))["post-merge"] == "replaced"
    world.uninstall()
    assert (path.parent / "post-merge").read_text() == "#!/bin/sh\n"


def test_a_folder_of_hooks_that_was_not_there_goes_again(world: World) -> None:
    hooks = world.repo / ".git" / "hooks"
    shutil.rmtree(hooks)
    world.install()
    world.commit()
    assert len(world.noted()) == 1
    world.uninstall()
    assert not hooks.exists()


def test_linked_work_trees_share_the_hooks(world: World, tmp_path: Path) -> None:
    world.commit()
    linked = tmp_path / "linked"
    world.git("worktree", "add", "-q", "-b", "side", str(linked))
    world.install(linked)
    assert world.install() == []
    sha = world.commit("b", cwd=linked)
    (event,) = list(events_in(str(world.spool)))
    assert (event.head, event.branch, event.folder) == (sha, "refs/heads/side", str(linked))
    assert world.git("status", "--porcelain", cwd=linked) == ""


def test_a_bare_repository_with_work_trees(world: World, tmp_path: Path) -> None:
    world.commit()
    bare, linked = tmp_path / "bare.git", tmp_path / "of-bare"
    world.git("clone", "-q", "--bare", str(world.repo), str(bare))
    world.install(bare)
    world.git("worktree", "add", "-q", "-b", "side", str(linked), cwd=bare)
    assert world.noted() == [("post-checkout", world.git("rev-parse", "HEAD"))]
    sha = world.commit("b", cwd=linked)
    assert world.noted() == [("post-commit", sha)]


def test_a_submodule_has_hooks_of_its_own(world: World, tmp_path: Path) -> None:
    world.commit()
    outer = tmp_path / "outer"
    outer.mkdir()
    world.git("init", "-q", "-b", "main", cwd=outer)
    world.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
              str(world.repo), "sub", cwd=outer)  # fmt: skip
    world.commit("top", cwd=outer)
    world.install(outer / "sub")
    sha = world.commit("b", cwd=outer / "sub")
    assert world.noted() == [("post-commit", sha)]
    world.commit("top", cwd=outer)
    assert world.noted() == []


def test_a_local_folder_of_hooks_outside_of_the_work_tree(world: World, tmp_path: Path) -> None:
    hooks = tmp_path / "own hooks"
    hook(hooks, "post-commit", "#!/bin/sh\ntouch ran\n")
    (world.repo / ".git" / "info" / "exclude").write_text("ran\n")
    world.git("config", "core.hooksPath", str(hooks))
    before = tree(hooks)
    world.install()
    sha = world.commit()
    assert world.noted() == [("post-commit", sha)] and (world.repo / "ran").exists()
    world.uninstall()
    assert tree(hooks) == before


def test_hooks_that_all_repositories_share_note_only_what_is_listed(
    world: World, tmp_path: Path
) -> None:
    hooks = world.home / "hooks"
    hook(hooks, "post-commit", "#!/bin/sh\ntouch ran\n")
    world.git("config", "--global", "core.hooksPath", "~/hooks")
    other = tmp_path / "other"
    other.mkdir()
    world.git("init", "-q", "-b", "main", cwd=other)
    before = tree(hooks)
    world.install()
    assert world.install() == []
    sha = world.commit()
    world.commit(cwd=other)
    assert (other / "ran").exists()
    assert world.noted() == [("post-commit", sha)]
    assert "installed" not in git_install.status(world.setup, str(other)).values()
    assert set(git_install.status(world.setup, str(world.repo)).values()) == {"installed"}
    linked = tmp_path / "linked"
    world.git("worktree", "add", "-q", "-b", "side", str(linked))
    world.noted()
    assert world.commit("b", cwd=linked) == world.noted()[0][1]
    world.install(other)
    world.uninstall()  # the hooks stay: the other repository needs them
    sha = world.commit("c", cwd=other)
    world.commit("c")
    assert world.noted() == [("post-commit", sha)]
    world.uninstall(other)
    assert tree(hooks) == before
    assert not (world.home / "conf" / "git-repositories").exists()


@pytest.mark.parametrize("tracked", [True, False])
def test_a_folder_of_hooks_in_the_work_tree_is_left_alone(world: World, tracked: bool) -> None:
    hooks = world.repo / ".githooks"
    world.git("config", "core.hooksPath", ".githooks")
    if tracked:
        hook(hooks, "pre-commit", "#!/bin/sh\nexit 0\n")
        world.commit()
    (world.repo / "below").mkdir()
    for cwd in (world.repo, world.repo / "below"):
        with pytest.raises(Refused) as caught:
            world.install(cwd)
        assert str(hooks) in str(caught.value)
        assert ("tracked by git" if tracked else "git status") in str(caught.value)
    assert world.git("status", "--porcelain") == ""
    # The line of the hint does it.
    hint = str(caught.value.hint)
    line = hint[hint.index("sh ") :]
    hook(hooks, "post-commit", f"#!/bin/sh\n{line}\n")
    (world.repo / "x").write_text("x")
    world.git("add", "x")
    world.git("commit", "-q", "-m", "x")
    assert [name for name, _ in world.noted()] == ["post-commit"]


def test_a_folder_of_hooks_that_git_ignores_is_taken(world: World) -> None:
    world.git("config", "core.hooksPath", ".hooks")
    (world.repo / ".gitignore").write_text("/.hooks/\n")
    world.install()
    sha = world.commit()
    assert world.noted() == [("post-commit", sha)]
    assert world.git("status", "--porcelain") == ""


def test_the_hooks_of_husky_are_refused_with_the_place_that_lasts(world: World) -> None:
    hooks = world.repo / ".husky" / "_"
    hook(hooks, "post-commit", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"\n')
    hook(hooks, ".gitignore", "*\n", 0o644)
    world.git("config", "core.hooksPath", ".husky/_")
    with pytest.raises(Refused, match="written anew") as caught:
        world.install()
    assert f"'{world.repo / '.husky'}'" in str(caught.value.hint)


def test_hooks_that_are_switched_off_are_refused(world: World) -> None:
    world.git("config", "core.hooksPath", os.devnull)
    with pytest.raises(Refused, match="hooks are switched off"):
        git_install.install(world.setup, str(world.repo))
    assert git_install.uninstall(world.setup, str(world.repo)) == []
    world.git("config", "--unset", "core.hooksPath")
    assert git_install.install(world.setup, str(world.repo))


def test_no_repository_leaves_nothing_behind(world: World, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        git_install.install(world.setup, str(tmp_path))
    assert not os.path.exists(world.setup.script)


def test_no_repository_is_refused(world: World, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="in no git repository"):
        world.install(tmp_path)


def test_for_all_repositories_by_the_template(world: World, tmp_path: Path) -> None:
    if git_install._version(world.setup) >= git_install.HOOKS_BY_CONFIG:
        pytest.skip("this git has hooks by configuration")
    config = world.home / ".gitconfig"
    config.write_text("[user]\n\tname = Z\n")
    world.install(everywhere=True)
    assert world.install(everywhere=True) == []
    new = tmp_path / "new"
    new.mkdir()
    world.git("init", "-q", "-b", "main", cwd=new)
    sha = world.commit(cwd=new)
    assert world.noted() == [("post-commit", sha)]
    assert (new / ".git" / "info" / "exclude").exists()  # what git itself would have made
    world.commit()
    assert world.noted() == []  # made before; "git init" brings the hooks
    hook(world.repo / ".git" / "hooks", "post-merge", "#!/bin/sh\nexit 0\n")
    world.git("init", "-q")
    sha = world.commit()
    assert world.noted() == [("post-commit", sha)]
    assert (world.repo / ".git" / "hooks" / "post-merge").read_text() == "#!/bin/sh\nexit 0\n"
    world.uninstall(everywhere=True)
    assert config.read_text() == "[user]\n\tname = Z\n"
    assert not (world.home / "conf" / "git-template").exists()


def test_for_all_repositories_in_a_template_that_is_there(world: World, tmp_path: Path) -> None:
    template = world.home / "template"
    hook(template / "hooks", "post-commit", PYTHON.replace("sys.exit(5)", ""))
    world.git("config", "--global", "init.templateDir", "~/template")
    before, config = tree(template), (world.home / ".gitconfig").read_bytes()
    world.install(everywhere=True)
    new = tmp_path / "new"
    new.mkdir()
    world.git("init", "-q", "-b", "main", cwd=new)
    sha = world.commit(cwd=new)
    assert world.noted() == [("post-commit", sha)] and (new / "seen").exists()
    world.uninstall(everywhere=True)
    assert tree(template) == before and (world.home / ".gitconfig").read_bytes() == config


def test_for_all_repositories_by_configuration(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = world.home / ".gitconfig"
    config.write_text("[user]\n\tname = Z\n")
    real = git_install._version(world.setup)
    monkeypatch.setattr(git_install, "_version", lambda setup: (2, 54))
    world.install(everywhere=True)
    assert world.install(everywhere=True) == []
    for event in EVENTS:
        key = f"hook.remem-{event}"
        assert world.git("config", "--global", "--get-all", f"{key}.event") == event
        command = world.git("config", "--global", "--get-all", f"{key}.command")
        assert command.split()[0] == "sh" and command.split()[-1] == event
    if real >= git_install.HOOKS_BY_CONFIG:
        sha = world.commit()
        assert world.noted() == [("post-commit", sha)]
    world.uninstall(everywhere=True)
    assert config.read_text() == "[user]\n\tname = Z\n"


def test_changes_are_made_only_to_what_was_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "file"
    change = git_files.Change(str(path), None, git_files.File(b"x"))
    path.write_text("meanwhile")
    with pytest.raises(Refused, match="has changed meanwhile"):
        git_files.apply([change])
    assert path.read_text() == "meanwhile"
    path.unlink()
    git_files.apply([change])
    assert path.read_bytes() == b"x"
