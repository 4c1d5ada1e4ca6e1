"""Stores of folders and of repositories: which is taken, and which is another than was accepted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Runner

GIT = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]


def git(folder: Path, *words: str | Path) -> str:
    done = subprocess.run(
        [*GIT, "-C", folder, *words],
        check=True,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"},
        umask=0o022,
    )
    return done.stdout.decode()


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-q", "-m", "a")
    return folder


@pytest.fixture
def free(run: Runner) -> Runner:
    """A runner whose environment names no store."""
    del run.env["REMEM_STORE"]
    return run


@pytest.fixture
def other(tmp_path: Path) -> Runner:
    """Somebody else."""
    made = Runner(tmp_path / "other")
    del made.env["REMEM_STORE"]
    return made


def listed(run: Runner) -> Path:
    return run.home / ".config" / "remem" / "here"


def old_list(run: Runner, store: Path) -> None:
    """The list as earlier versions wrote it, and a store without what it is known by."""
    listed(run).write_text(f"{store}\n")
    strip = (
        "import sys\n"
        "from remem.objects import recognised\n"
        "from remem.objects.store import Store\n"
        "env = Store(sys.argv[1]).env()\n"
        "env.write(lambda txn: txn.delete('meta', recognised.ROW))\n"
    )
    subprocess.run([sys.executable, "-c", strip, store], check=True)


def test_in_a_work_tree_it_lies_in_the_git_folder_and_outlives_a_clean(free: Runner) -> None:
    repository(free.cwd)
    below = free.cwd / "deep" / "er"
    below.mkdir(parents=True)
    kept = free.cwd / ".git" / "remem"
    assert str(kept) in free("init", "--here", code=0, cwd=below).out
    free("add", "kept with the repository", code=0, cwd=below)
    assert not (free.home / ".local" / "share" / "remem").exists()
    git(free.cwd, "clean", "-fdxq")
    git(free.cwd, "checkout", "-q", "-b", "b")
    assert git(free.cwd, "status", "--porcelain", "--ignored") == ""
    assert "kept with" in free("recall", "kept", code=0).out
    tree = free.home / "tree"
    git(free.cwd, "worktree", "add", "-q", tree)
    assert "kept with" in free("recall", "kept", code=0, cwd=tree).out
    clone = free.home / "clone"
    git(free.home, "clone", "-q", free.cwd, clone)
    assert free("recall", "kept", cwd=clone).out == ""


def test_a_folder_without_git_still_has_its_own(free: Runner) -> None:
    said = free("init", "--here", code=0).out
    assert str(free.cwd / ".remem") in said


def test_a_branch_that_brings_a_store_over_ours_is_refused(free: Runner, other: Runner) -> None:
    theirs = repository(other.home / "theirs")
    free.cwd.rmdir()
    git(free.home, "clone", "-q", theirs, free.cwd)
    # A store of an earlier version: .remem in the work tree.
    shutil.move(free.cwd / ".git", free.home / "aside")
    free("init", "--here", code=0)
    shutil.move(free.home / "aside", free.cwd / ".git")
    free("add", "mine", code=0)
    assert "mine" in free("recall", "mine", code=0).out
    other("--store", theirs / ".remem", "add", "planted words", code=0)
    git(theirs, "add", "-f", ".")
    git(theirs, "commit", "-q", "-m", "planted")
    git(free.cwd, "pull", "-q")
    for words in ("recall planted", "add private", "verify", "status", "context planted"):
        refused = free(*words.split())
        assert refused.code == 3 and "another one than you accepted" in refused.err, refused.shown
        assert "planted" not in refused.out
    assert "another one than you accepted" in free("doctor", code=5).out
    # The way out: one's own, that no branch reaches.
    assert "left alone" in free("init", "--here", code=0).err
    free("add", "mine again", code=0)
    assert free("recall", "planted", "--mode", "lexical", code=1).out == ""
    assert "mine again" in free("recall", "mine", code=0).out


def test_a_clone_that_brings_a_store_does_not_get_it_accepted(free: Runner, other: Runner) -> None:
    theirs = repository(other.home / "theirs")
    for folder in (theirs, theirs / "sub"):
        other("--store", folder / ".remem", "add", "planted words", code=0)
    git(theirs, "add", "-f", ".")
    git(theirs, "commit", "-q", "-m", "planted")
    free.cwd.rmdir()
    git(free.home, "clone", "-q", theirs, free.cwd)
    sub = free.cwd / "sub"
    for folder in (free.cwd, sub):
        assert "not made or accepted" in free("recall", "planted", code=3, cwd=folder).err
    made = free("init", "--here", code=0, cwd=sub)
    assert str(free.cwd / ".git" / "remem") in made.out
    free("add", "my own", code=0, cwd=sub)
    for folder in (free.cwd, sub):
        assert "my own" in free("recall", "own", code=0, cwd=folder).out
        assert free("recall", "planted", "--mode", "lexical", code=1, cwd=folder).out == ""


@pytest.mark.parametrize("fresh", [False, True], ids=["another", "fresh"])
def test_another_store_at_an_accepted_path(free: Runner, other: Runner, fresh: bool) -> None:
    store = free.cwd / ".remem"
    free("init", "--here", code=0)
    free("add", "mine", code=0)
    shutil.move(store, free.home / "kept")
    made = other("--store", other.home / "s", "init" if fresh else "add", *([] if fresh else ["x"]))
    assert made.code == 0
    shutil.copytree(other.home / "s", store)
    assert "another one than you accepted" in free("recall", "x", code=3).err
    shutil.rmtree(store)
    shutil.copytree(free.home / "kept", store)  # one's own, brought back
    assert "mine" in free("recall", "mine", code=0).out
    shutil.rmtree(store)
    shutil.copytree(other.home / "s", store)
    assert "another store than the one" in free("init", "--here", code=0).err
    free("add", "accepted", code=0)


def test_an_entry_of_an_earlier_version_is_completed(free: Runner) -> None:
    store = free.cwd / ".remem"
    free("init", "--here", code=0)
    old_list(free, store)
    assert free("recall", "anything").code == 1  # reading does not refuse it
    free("add", "mine", code=0)
    digest, path = listed(free).read_text().split()
    assert (len(digest), path) == (64, str(store))
    shutil.rmtree(store)
    free("--store", store, "init", code=0)
    assert free("recall", "mine").code == 3


@pytest.mark.parametrize("against", ["tracked", "mode", "later", "known"])
def test_an_entry_of_an_earlier_version_is_not_completed_where_something_speaks_against_it(
    free: Runner, against: str
) -> None:
    store = free.cwd / ".remem"
    free("init", "--here", code=0)
    old_list(free, store)
    if against == "tracked":
        repository(free.cwd)
        git(free.cwd, "add", "-f", ".remem/FORMAT")
    elif against == "mode":
        (store / "canon" / "g1" / "data.mdb").chmod(0o644)
    elif against == "later":
        os.utime(listed(free), (1e9, 1e9))
    else:
        shutil.rmtree(store)
        free("init", "--here", code=0)
        listed(free).write_text(f"{store}\n")
    assert "than you accepted" in (refused := free("add", "x", code=3)).err or (
        "may not be the one that you accepted" in refused.err
    )
    assert len(listed(free).read_text().split()) == 1
    if against == "tracked":
        git(free.cwd, "rm", "-q", "--cached", ".remem/FORMAT")
    free("init", "--here", code=0)
    free("add", "x", code=0)


def test_a_store_below_a_file_of_the_same_name_that_git_tracks_is_ones_own(free: Runner) -> None:
    from remem.cli.places import is_tracked

    repository(free.cwd)
    for name in ("sub/.remem/FORMAT", ".remem/FORMAT"):
        (free.cwd / name).parent.mkdir(parents=True)
        (free.cwd / name).write_text("x\n")
    git(free.cwd, "add", "-f", "sub")
    assert is_tracked(str(free.cwd / "sub" / ".remem"))
    assert not is_tracked(str(free.cwd / ".remem"))
    git(free.cwd, "add", "-f", ".remem")
    assert is_tracked(str(free.cwd / ".remem"))
    git(free.cwd, "rm", "-q", "-r", "--cached", ".remem")
    git(free.cwd, "update-index", "--split-index")
    assert is_tracked(str(free.cwd / "sub" / ".remem"))


def test_no_git_is_started_to_find_a_store(free: Runner) -> None:
    repository(free.cwd)
    free("init", "--here", code=0)
    free("add", "x y z", code=0, env={"PATH": "/nonexistent"})
    assert "x y z" in free("recall", "x", code=0, env={"PATH": "/nonexistent"}).out
