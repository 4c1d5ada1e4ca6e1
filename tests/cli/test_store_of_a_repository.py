"""Stores of folders and of repositories: which is taken, and which is another than was accepted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Result, Runner

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


def old_list(run: Runner, store: Path, *, valued: bool = False) -> None:
    """The list as earlier versions wrote it, and a store with or without what it is known by."""
    listed(run).write_text(f"{store}\n")
    if valued:
        return
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


@pytest.mark.parametrize("valued", [False, True], ids=["without", "valued"])
def test_an_entry_of_an_earlier_version_is_completed(free: Runner, valued: bool) -> None:
    store = free.cwd / ".remem"
    free("init", "--here", code=0)
    old_list(free, store, valued=valued)
    assert free("recall", "anything").code == 1  # reading does not refuse it
    free("add", "mine", code=0)
    digest, path = listed(free).read_text().split()
    assert (len(digest), path) == (64, str(store))
    shutil.rmtree(store)
    free("--store", store, "init", code=0)
    assert free("recall", "mine").code == 3


@pytest.mark.parametrize("valued", [False, True], ids=["without", "valued"])
@pytest.mark.parametrize("against", ["tracked", "mode", "later"])
def test_an_entry_of_an_earlier_version_is_not_completed_where_something_speaks_against_it(
    free: Runner, against: str, valued: bool
) -> None:
    store = free.cwd / ".remem"
    free("init", "--here", code=0)
    old_list(free, store, valued=valued)
    if against == "tracked":
        repository(free.cwd)
        git(free.cwd, "add", "-f", ".remem/FORMAT")
    elif against == "mode":
        (store / "canon" / "g1" / "data.mdb").chmod(0o644)
    else:
        os.utime(listed(free), (1e9, 1e9))
    assert "may not be the one that you accepted" in free("add", "x", code=3).err
    assert len(listed(free).read_text().split()) == 1
    if against == "tracked":
        git(free.cwd, "rm", "-q", "--cached", ".remem/FORMAT")
    free("init", "--here", code=0)
    free("add", "x", code=0)


ACCEPT_KILLED = """
import os, sys
from remem.cli import places
from remem.objects.store import Store
places.fmt.write_file = lambda *given: os._exit(9)
places.accept(Store(sys.argv[1]), sys.argv[2], completing=len(sys.argv) > 3)
"""


@pytest.mark.parametrize("completing", [True, False], ids=["completing", "accepting"])
def test_a_kill_between_the_value_and_the_list_costs_nobody_the_store(
    free: Runner, completing: bool
) -> None:
    store = free.cwd / ".remem"
    free("init", "--here", code=0)
    free("add", "mine", code=0)
    old_list(free, store)
    words = [str(store), str(listed(free)), *(["completing"] if completing else [])]
    killed = subprocess.run([sys.executable, "-c", ACCEPT_KILLED, *words], check=False)
    assert killed.returncode == 9
    assert listed(free).read_text() == f"{store}\n"
    assert "known" in actions(free)  # the value is there, what the list should say is not
    assert "mine" in free("recall", "mine", code=0).out
    free("add", "again", code=0)
    assert len(listed(free).read_text().split()[0]) == 64
    assert actions(free).count("known") == 2  # of init, and of what was killed: none is made again


def actions(run: Runner) -> list[str]:
    rows = json.loads(run("audit", "--json", code=0).out)
    return [row["action"] for row in rows]


def test_the_value_that_a_store_is_known_by_has_its_row_in_the_audit_chain(free: Runner) -> None:
    free("init", "--here", code=0)
    assert actions(free) == ["known"]
    free("init", "--here", code=0)  # nothing is changed
    assert actions(free) == ["known"]
    free("verify", code=0)


CALL = {
    "session_id": "s1",
    "tool_name": "Bash",
    "tool_input": {"command": "cat notes.txt"},
    "tool_response": {"stdout": "very private output"},
}


def hook(run: Runner, env: dict[str, str] | None = None) -> Result:
    call = json.dumps({**CALL, "cwd": str(run.cwd)})
    return run("hook-event", "claude", "post-tool-use", stdin=call, code=0, env=env)


def files(folder: Path) -> dict[str, bytes]:
    """What lies in a store, but for the lock files that every reader of one touches."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock.mdb"
    }


def test_a_hook_keeps_nothing_in_another_store_at_an_accepted_path(
    free: Runner, other: Runner
) -> None:
    store = free.cwd / ".remem"
    free("init", "--here", code=0)
    hook(free)
    kept = files(store)
    assert any(b"very private output" in data for data in kept.values())  # the control
    shutil.move(store, free.home / "kept")
    other("--store", other.home / "s", "add", "planted", code=0)
    shutil.copytree(other.home / "s", store)
    before = files(store)
    said = hook(free)
    assert (said.out, said.err) == ("", "")  # it stands in nobody's way
    assert files(store) == before
    log = free.home / ".local" / "state" / "remem" / "hook.log"
    assert "another one than you accepted" in log.read_text()
    assert "very private" not in log.read_text()
    shutil.rmtree(store)
    shutil.move(free.home / "kept", store)  # one's own, brought back
    hook(free)
    assert sum(data.count(b"very private output") for data in files(store).values()) == 2


def test_settings_are_neither_read_nor_kept_in_another_store_at_an_accepted_path(
    free: Runner, other: Runner
) -> None:
    store = free.cwd / ".remem"
    free("init", "--here", code=0)
    free("config", "set", "recall.limit", "5", code=0)
    assert free("config", "get", "recall.limit", code=0).out == "5\n"
    shutil.move(store, free.home / "kept")
    other("--store", other.home / "s", "add", "planted", code=0)
    shutil.copytree(other.home / "s", store)
    (store / "config.toml").write_text("[recall]\nlimit = 7\n")
    before = files(store)
    for words in ("set recall.limit 6", "unset recall.limit", "get recall.limit", "list"):
        refused = free("config", *words.split(), code=3)
        assert refused.out == "" and "another one than you accepted" in refused.err
    assert files(store) == before
    assert free("config", "path", code=0).out == f"{store}/config.toml\n"
    free("config", "set", "--user", "recall.limit", "4", code=0)
    assert free("--store", store, "config", "get", "recall.limit", code=0).out == "7\n"


def test_no_hook_is_installed_for_another_store_at_an_accepted_path(
    free: Runner, other: Runner
) -> None:
    store = free.cwd / ".remem"
    free("init", "--here", code=0)
    assert str(store) in free("hook", "print", "zsh", code=0).out
    shutil.move(store, free.home / "kept")
    other("--store", other.home / "s", "add", "planted", code=0)
    shutil.copytree(other.home / "s", store)
    for words in (("print", "zsh"), ("install", "shell", "--zsh")):
        refused = free("hook", *words, code=3)
        assert refused.out == "" and "another one than you accepted" in refused.err
    assert not (free.home / ".zshrc").exists()
    free("hook", "uninstall", "shell", "--zsh", code=0)  # taking away is always free


def test_a_setting_that_keeps_a_store_from_opening_can_be_mended(free: Runner) -> None:
    free("init", "--here", code=0)
    config = free.cwd / ".remem" / "config.toml"
    config.write_text("[disk]\nmap_mib = 99999999999\n")
    assert free("add", "x").code != 0  # the control
    free("config", "unset", "disk.map_mib", code=0)
    free("add", "x", code=0)


def test_a_hook_opens_no_store_that_was_named(free: Runner) -> None:
    free("init", "--here", code=0)
    seen = {}
    for how, env in (("named", {"REMEM_STORE": str(free.cwd / ".remem")}), ("found", {})):
        said = hook(free, env={**env, "PYTHONPROFILEIMPORTTIME": "1"}).err
        seen[how] = {line.rpartition("|")[2].strip() for line in said.splitlines()}
    heavy = {"lmdb", "remem.objects.store", "remem.objects.recognised", "remem.cli.places"}
    assert heavy <= seen["found"]  # the control
    assert not heavy & seen["named"]
    assert not {"numpy", "rich", "typer", "tomlkit"} & (seen["found"] | seen["named"])


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
