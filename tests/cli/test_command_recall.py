"""Captured commands by time and place: remem recall with filters or in words, remem log."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import Result, Runner

H = 3_600_000_000
Ran = tuple[str, int | None, str, str, float]


def capture(run: Runner, *ran: Ran) -> None:
    """Append commands (text, exit status, folder, branch, hours ago) to the spool of a shell."""
    now = time.time_ns() // 1000
    folder = run.store / "spool"
    path = folder / f"bash-{now - 100 * H}-{os.getpid()}-{len(os.listdir(folder))}.jsonl"
    with path.open("w") as file:
        for seq, (text, code, cwd, head, ago) in enumerate(ran):
            line = {"seq": seq, "at": now - int(ago * H), "took": 10, "cwd": cwd, "head": head}
            if code is not None:
                line["exit"] = code
            file.write('{"remem":1,' + json.dumps({**line, "cmd": text})[1:] + "\n")


@pytest.fixture
def app(run: Runner) -> Path:
    """A project with a folder below, in whose collection commands were captured."""
    top = run.cwd / "app"
    (top / "sub").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "main", str(top)], check=True, env=run.env)
    run("init", code=0)
    capture(
        run,
        ("git status", 0, f"{top}", "main", 50),
        ("make test", 2, f"{top}", "main", 49),
        ("docker run web", 1, f"{top}/sub", "main", 48),
        ("docker ps", 0, f"{top}", "dev", 3),
        ("pytest -x", 1, f"{top}", "dev", 2),
        ("ls", None, f"{top}/sub", "dev", 1),
        ("echo elsewhere", 0, f"{run.cwd}", "", 1),
    )
    return top


def texts(done: Result) -> list[str]:
    return [hit["text"] for hit in done.json["hits"]]


def ask(run: Runner, *words: str | Path, cwd: Path, code: int = 0, **more: object) -> Result:
    return run("recall", "--json", *words, cwd=cwd, code=code, **more)  # type: ignore[arg-type]


def test_filters_without_a_question_list_the_latest_first(run: Runner, app: Path) -> None:
    everything = ["ls", "pytest -x", "docker ps", "docker run web", "make test", "git status"]
    assert texts(ask(run, "--cwd", ".", cwd=app)) == everything
    assert texts(ask(run, "--cwd", "sub", cwd=app)) == ["ls", "docker run web"]
    assert texts(ask(run, "--cwd", app / "sub" / ".." / "sub", cwd=app)) == ["ls", "docker run web"]
    assert texts(ask(run, "--cwd=.", "-n", "2", cwd=app / "sub")) == ["ls", "docker run web"]
    failed = ["pytest -x", "docker run web", "make test"]
    assert texts(ask(run, "--exit", "failed", cwd=app)) == failed
    assert texts(ask(run, "--exit", "OK", cwd=app)) == ["docker ps", "git status"]
    assert texts(ask(run, "--exit", "2", cwd=app)) == ["make test"]
    assert texts(ask(run, "--branch", "dev", "--exit", "1", cwd=app)) == ["pytest -x"]
    assert texts(ask(run, "--kind", "command", "--since", "1 day ago", cwd=app)) == everything[:3]
    assert texts(ask(run, "--cwd", ".", "--until", "1 day ago", cwd=app)) == everything[3:]
    assert texts(ask(run, "--cwd", run.cwd, "--all-collections", cwd=app))[0] in (
        "echo elsewhere",
        "ls",
    )


def test_filters_narrow_a_question(run: Runner, app: Path) -> None:
    run("add", "docker is what we deploy with", cwd=app, code=0)
    assert "docker is what we deploy with" in texts(ask(run, "docker", cwd=app))
    docker = ["docker ps", "docker run web"]
    assert sorted(texts(ask(run, "--cwd", ".", "docker", cwd=app))[:2]) == docker
    assert texts(ask(run, "--exit", "failed", "docker", cwd=app))[0] == docker[1]
    assert texts(ask(run, "--exit", "130", "docker", cwd=app, code=1)) == []


def test_wrong_filters_are_usage_errors(run: Runner, app: Path) -> None:
    for words in (
        ["--exit", "bad"],
        ["--exit", "-1"],
        ["--exit", ""],
        ["--branch", " "],
        ["--cwd", ""],
        ["--cwd", ".", "--kind", "note"],
        [],
        [" "],
    ):
        assert run("recall", *words, cwd=app, code=2).out == "", words
    assert run("recall", "--cwd", ".", "--kind", "command", cwd=app, code=0).out


def test_a_folder_that_was_entered_through_a_link(run: Runner, app: Path) -> None:
    link = run.cwd / "link"
    link.symlink_to(app)
    logical = {"PWD": str(link / "sub")}
    capture(run, ("through the link", 0, f"{link}/sub", "dev", 0.5))
    asked = ask(run, "--cwd", ".", cwd=link / "sub", env=logical)
    assert texts(asked) == ["through the link", "ls", "docker run web"]
    assert "ls" in texts(ask(run, "--cwd", link, cwd=run.cwd, env={"REMEM_COLLECTION": str(app)}))
    lies = {"PWD": str(run.cwd)}
    assert "echo elsewhere" not in texts(ask(run, "--cwd", ".", cwd=app, env=lies))


def test_another_project_is_named(run: Runner, app: Path) -> None:
    done = run("recall", "--cwd", app, cwd=run.cwd, code=1)
    assert f"--collection {app}" in done.err
    assert run("recall", "--cwd", app, "--collection", app, cwd=run.cwd, code=0).out


def test_questions_in_words(run: Runner, app: Path) -> None:
    done = ask(run, "what did I run in this folder", cwd=app / "sub")
    assert texts(done) == ["ls", "docker run web"]
    assert done.json["understood"] == {
        "kind": "command",
        "cwd": [str(app / "sub")],
        "exit": None,
        "branch": None,
        "since": None,
        "until": None,
        "words": "",
        "found": True,
    }
    assert f"understood as: commands run in '{app / 'sub'}' or below, the latest first" in done.err
    failed = ["pytest -x", "docker run web", "make test"]
    assert texts(ask(run, "which commands failed in this project?", cwd=app / "sub")) == failed
    assert texts(ask(run, "what did I run here in the last 4 hours", cwd=app)) == [
        "ls",
        "pytest -x",
        "docker ps",
    ]
    docker = ask(run, "which docker commands did I run here", cwd=app)
    assert sorted(texts(docker)[:2]) == ["docker ps", "docker run web"]
    assert docker.json["understood"]["words"] == "docker"
    assert texts(ask(run, "what did I run on this branch", cwd=app)) == [*failed[1:], "git status"]
    quiet = run("recall", "-q", "what did I run here", cwd=app, code=0)
    assert quiet.err == ""


def test_yesterday(run: Runner, app: Path) -> None:
    now = time.time()
    ago = (now % 86_400) / 3_600 + 1  # an hour before midnight, UTC
    capture(run, ("an hour before midnight", 0, str(app), "dev", ago))
    done = ask(run, "what did I run in this folder yesterday", cwd=app)
    assert "an hour before midnight" in texts(done)
    assert "make test" not in texts(done)
    start = time.strftime("%Y-%m-%dT00:00:00Z", time.gmtime(now - 86_400))
    assert done.json["understood"]["since"] == start


def test_other_questions_say_nothing(run: Runner, app: Path) -> None:
    run("add", "the race that I ran yesterday was ten miles long", cwd=app, code=0)
    done = ask(run, "which race did I run yesterday", cwd=app)
    assert "understood" not in done.json and "understood" not in done.err
    assert texts(done)[0].startswith("the race")
    none = ask(run, "what did I run here in 1999", cwd=app)
    assert none.json["understood"]["found"] is False and "nothing was captured" in none.err
    kept = ask(run, "--kind", "observation", "what did I run here", cwd=app)
    assert "understood" not in kept.json


def test_people_see_how_a_command_ended_and_where(run: Runner, app: Path) -> None:
    (line, text) = run("recall", "--exit", "2", cwd=app, code=0).out.splitlines()
    assert "exit 2" in line and f"  {app}  " in line and text == "    make test"
    assert run("recall", "make", cwd=app, code=0).out.split()[1].startswith(("0.", "1."))


def test_filters_in_a_batch(run: Runner, app: Path) -> None:
    lines = [
        {"id": 1, "query": "docker", "exit": "failed"},
        {"id": 2, "query": "", "cwd": "sub"},
        {"id": 3, "query": "docker"},
        {"id": 4, "query": "docker", "branch": "dev"},
        {"id": 5, "query": "what did I run in this folder", "limit": 1},
        {"id": 6, "query": "docker", "exit": "no"},
        {"id": 7, "query": "docker", "exit": 1},
        {"id": 8, "query": ""},
    ]
    given = "\n".join(map(json.dumps, lines))
    done = run("recall", "--batch", "-", stdin=given, cwd=app, code=2)
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [one["id"] for one in found] == list(range(1, 9))
    said = [[hit["text"] for hit in one.get("hits", ())] for one in found]
    assert said[0][0] == "docker run web" and said[1] == ["ls", "docker run web"]
    assert any("docker run web" in text for text in said[2]) and said[3][0] == "docker ps"
    assert "docker ps" not in said[0] and "docker run web" not in said[3]
    assert said[4] == ["ls"] and found[4]["understood"]["found"]
    assert [bool(one.get("error")) for one in found] == [False] * 5 + [True] * 3


def test_linked_work_trees_are_one_project(run: Runner, app: Path) -> None:
    git = ["git", "-C", str(app), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True, env=run.env)
    other = run.cwd / "tree"
    add = [*git, "worktree", "add", "-q", "-b", "fix", str(other)]
    subprocess.run(add, check=True, env=run.env)
    capture(run, ("in the other tree", 0, str(other), "fix", 0.1))
    for cwd in (app, other):
        assert texts(ask(run, "what did I run in this project", cwd=cwd))[:2] == [
            "in the other tree",
            "ls",
        ]
    assert texts(ask(run, "what did I run on this branch", cwd=other)) == ["in the other tree"]
    assert texts(ask(run, "what did I run here", cwd=other)) == ["in the other tree"]


# -- the log ------------------------------------------------------------------------------------


def test_the_log_is_a_journal(run: Runner, app: Path) -> None:
    run("add", "a note", cwd=app, code=0)
    rows = run("log", "--since", "yesterday", cwd=app, code=0).out.splitlines()
    assert [row.split("verified", 1)[1].split(maxsplit=2)[2].split() for row in rows[1:]] == [
        ["~/work/app/sub", "ls"],
        ["1", "~/work/app", "pytest", "-x"],
        ["0", "docker", "ps"],
        ["1", "~/work/app/sub", "docker", "run", "web"],
        ["2", "~/work/app", "make", "test"],
        ["0", "git", "status"],
    ]
    assert rows[0].endswith("a note")
    run("derive", cwd=app, code=0)
    assert run("log", "--since", "yesterday", cwd=app, code=0).out.splitlines() == rows
    derived = run("log", "--op", "create", "-n", "100", cwd=app, code=0).out
    assert "docker run web exited with 1" in derived
    every = run("log", "--json", "-n", "100", cwd=app, code=0).json
    assert len(every) > len(rows) and {e["type"] for e in every} == {"observation", "memory"}


def test_the_log_since_a_time_has_no_limit_of_its_own(run: Runner) -> None:
    lines = "\n".join(f"note {n}" for n in range(30))
    run("add", "--lines", "-", stdin=lines, code=0)
    assert len(run("log", code=0).out.splitlines()) == 20
    assert len(run("log", "--since", "today", code=0).out.splitlines()) == 30
    assert len(run("log", "--since", "today", "-n", "3", code=0).out.splitlines()) == 3
