"""Importing what shells, atuin and git remember, through the command line."""

from __future__ import annotations

import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Runner

T = 1_700_000_000
HISTORIES = {
    "bash-history": f"#{T}\nmake test\n#{T + 5}\ncat <<E\nhalf past\nE\n",
    "zsh-history": f": {T}:2;make test\n: {T + 5}:0;cat <<E\\\nhalf past\\\nE\n",
    "fish-history": f"- cmd: make test\n  when: {T}\n"
    f"- cmd: cat <<E\\nhalf past\\nE\n  when: {T + 5}\n",
}


def summed(value: dict[str, int]) -> bool:
    names = ("new", "known", "skipped", "blocked", "rejected")
    return value["read"] == sum(value[name] for name in names)


@pytest.mark.parametrize("fmt", HISTORIES)
def test_a_history_comes_in_once(run: Runner, fmt: str) -> None:
    path = run.cwd / "history"
    path.write_text(HISTORIES[fmt])
    first = run("--json", "import", fmt, path, code=0).json
    assert (first["read"], first["new"]) == (2, 2) and summed(first)
    again = run("--json", "import", fmt, path, code=0).json
    assert (again["new"], again["known"]) == (0, 2) and summed(again)
    hits = run("--json", "recall", "half past", code=0).json["hits"]
    assert hits[0]["text"] == "cat <<E\nhalf past\nE" and hits[0]["kind"] == "command"
    assert hits[0]["asserted_at"] == "2023-11-14T22:13:25Z"
    later = run("--json", "import", fmt, path, "--since", "2023-11-14T22:13:24Z", code=0).json
    assert (later["skipped"], later["known"]) == (1, 1) and summed(later)
    with open(path, "rb") as stream:
        assert run("--json", "import", fmt, "-", stdin=stream.read(), code=0).json["known"] == 2
    run("verify", code=0)


def test_the_database_of_atuin_comes_in_once(run: Runner) -> None:
    path = run.cwd / "history.db"
    project = run.cwd / "project"
    subprocess.run(["git", "init", "-q", str(project)], check=True, env=run.environment())
    with sqlite3.connect(path) as database:
        database.execute(
            "create table history (id text primary key, timestamp integer, duration integer,"
            " exit integer, command text, cwd text, session text, hostname text,"
            " deleted_at integer)"
        )
        rows = [
            ("a", T * 10**9, 5, 0, "make kettle", str(project), "s", "h:u", None),
            ("b", (T + 1) * 10**9, 5, 1, "make teapot", "/gone", "s", "h:u", None),
            ("c", (T + 2) * 10**9, 5, 1, "make secret", "/gone", "s", "h:u", T),
        ]
        database.executemany("insert into history values (?,?,?,?,?,?,?,?,?)", rows)
    database.close()
    for new, known in ((2, 0), (0, 2)):
        value = run("--json", "import", "atuin", path, code=0).json
        assert (value["new"], value["known"], value["skipped"]) == (new, known, 1)
    # A command belongs to the project of its folder.
    here = str(run("--json", "recall", "make", code=0).json["hits"])
    assert "make teapot" in here and "kettle" not in here and "secret" not in here
    there = str(run("--json", "recall", "make", cwd=project, code=0).json["hits"])
    assert "make kettle" in there and "teapot" not in there
    named = run("--json", "--collection", "x", "import", "atuin", path, code=0).json
    assert named["read"] == 3 and summed(named)


def test_a_repository_belongs_to_its_own_collection(run: Runner, tmp_path: Path) -> None:
    repository = tmp_path / "project"
    env = run.environment({"GIT_AUTHOR_DATE": f"{T} +0000", "GIT_COMMITTER_DATE": f"{T} +0000"})

    def git(*words: str) -> None:
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, *words], cwd=repository, env=env, check=True)

    subprocess.run(["git", "init", "-q", str(repository)], check=True, env=env)
    (repository / "kettle.py").write_text("x = 1\n")
    git("add", "-A")
    git("commit", "-q", "-m", "Add the kettle")
    git("tag", "v1.0")
    git("-c", "core.editor=true", "revert", "--no-edit", "HEAD")
    first = run("--json", "import", "git", repository, code=0).json
    assert first["new"] == first["read"] == 3
    again = run("--json", "import", "git", repository, cwd=repository, code=0).json
    assert (again["new"], again["known"]) == (0, 3)
    assert run("--json", "recall", "kettle").json["hits"] == []
    found = run("--json", "recall", "kettle", "--view", "history", cwd=repository, code=0).json
    truths = {hit["text"].split("\n")[0]: hit["truth"] for hit in found["hits"]}
    assert truths["Add the kettle"] == "historical"  # it was reverted
    current = next(hit["text"] for hit in found["hits"] if hit["truth"] == "current")
    assert current.startswith('Revert "Add the kettle"')


def test_what_is_no_history_is_an_error(run: Runner) -> None:
    assert "no such file" in run("import", "atuin", run.cwd / "none", code=2).err
    assert run("import", "bash-history", run.cwd / "none").code == 2
    assert "cannot be read from a stream" in run("import", "atuin", "-", code=2).err
