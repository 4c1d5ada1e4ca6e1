"""remem audit checkpoint and remem verify --checkpoint, the passphrase typed at a terminal."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import Runner
from .typed import protect, typed


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A protected store with one observation, made once; its verifier key."""
    run = Runner(tmp_path_factory.mktemp("protected") / "home")
    run.add("tea at four")
    return run.store, protect(run)


@pytest.fixture
def store(run: Runner, made: tuple[Path, str]) -> Runner:
    """A runner with a copy of that store."""
    shutil.copytree(made[0], run.store)
    return run


def test_a_checkpoint_on_standard_output_in_a_file_and_back(
    store: Runner, tmp_path: Path, made: tuple[Path, str]
) -> None:
    path = tmp_path / "kept"
    done = typed(store, "audit", "checkpoint")
    lines = done.out.split("\n")
    assert lines[0].startswith("remem/audit-chain/") and lines[1] == "2" and lines[6] == ""
    assert lines[7].startswith("\u2014 " + lines[0])
    path.write_text(done.out)
    assert "kept     1 of 1 hold" in store("verify", "--checkpoint", path, code=0).out
    store.add("more")
    typed(store, "audit", "checkpoint", "--to", path)
    said = store("verify", "--fast", "--checkpoint", path, "--key", made[1], code=0)
    assert "kept     2 of 2 hold, up to row 3" in said.out and said.err == ""
    found = store("verify", "--json", "--checkpoint", path, code=0).json
    assert [one["rows"] for one in found["checkpoints"]] == [2, 3]
    assert found["signatures"]["signed"] == 1


def test_an_older_copy_of_the_store_is_found(
    store: Runner, tmp_path: Path, made: tuple[Path, str]
) -> None:
    path = tmp_path / "kept"
    shutil.copytree(store.store, tmp_path / "older")
    store.add("more")
    typed(store, "audit", "checkpoint", "--to", path)
    store("verify", "--checkpoint", path, code=0)
    shutil.rmtree(store.store)
    shutil.copytree(tmp_path / "older", store.store)
    store("verify", code=0)  # it holds in itself
    found = store("verify", "--checkpoint", path, "--key", made[1], code=4)
    assert "an older copy of the store was put back" in found.out
    refused = typed(store, "audit", "checkpoint", "--to", path, code=4)
    assert "nothing was signed" in refused.err
    assert path.read_text().count("remem checkpoint 1") == 1


def test_a_checkpoint_in_a_git_repository(store: Runner, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    words = ("verify", "--fast", "--git")
    assert store(*words, cwd=repo).code == 1  # none yet
    (tmp_path / "empty").touch()
    for name in ("missing", "empty"):
        asked = store("verify", "--checkpoint", tmp_path / name, code=1)
        assert name in asked.err and "no store" not in asked.err
    assert typed(store, "audit", "checkpoint", "--git", answers=[], code=1).out == ""
    shutil.copytree(store.store, tmp_path / "older")
    done = typed(store, "audit", "checkpoint", "--git", cwd=repo)
    assert "refs/remem/checkpoints" in done.out
    store.add("more", cwd=store.cwd)
    typed(store, "audit", "checkpoint", "--git", cwd=repo)
    assert "kept     2 of 2 hold" in store(*words, cwd=repo, code=0).out
    shutil.rmtree(store.store)
    shutil.copytree(tmp_path / "older", store.store)
    assert "kept     1 of 2 hold" in store(*words, cwd=repo, code=4).out


def test_a_key_that_was_pinned_is_compared(
    store: Runner, tmp_path: Path, made: tuple[Path, str]
) -> None:
    other = Runner(tmp_path / "other")
    other.add("tea")
    foreign = protect(other)
    assert store("verify", "--fast", "--key", made[1], code=0)
    found = store("verify", "--fast", "--key", foreign, code=4)
    assert "it is another key than the one that was given" in found.out
    assert store("verify", "--fast", "--key", foreign, "--key", made[1], code=0)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["audit", "more"], 2),
        (["audit", "--git"], 2),
        (["audit", "--to", "x"], 2),
        (["audit", "checkpoint", "--to", "x", "--git"], 2),
        (["audit", "checkpoint", "--since", "2020"], 2),
        (["audit", "checkpoint"], 3),
        (["owner", "more"], 2),
        (["owner"], 2),
        (["owner", "passphrase"], 3),
        (["verify", "--index", "--git"], 2),
        (["verify", "--key", "none"], 2),
        (["verify", "--checkpoint", "missing"], 1),
    ],
)
def test_wrong_words(store: Runner, words: list[str], code: int) -> None:
    assert store(*words).code == code


def test_a_store_without_a_key_has_no_checkpoint(run: Runner) -> None:
    run.add("tea")
    done = typed(run, "audit", "checkpoint", answers=[], code=3)
    assert "remem owner protect" in done.err
