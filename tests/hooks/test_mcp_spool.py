"""What shells and git note while an agent's server lives is found at its next question."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remem.hooks import glance, intake
from remem.hooks.beside import PATIENCE_S, Beside
from remem.hooks.drain import LOCK, Rules, actor_for
from remem.hooks.ignore import Ignore
from remem.hooks.intake import Intake
from remem.objects.lock import hold
from remem.objects.scope import maintenance_grant
from remem.objects.store import Store
from tests.cli.conftest import Runner, run  # noqa: F401
from tests.hooks.agents import HELLO, Agent, Wire, message, talk
from tests.hooks.terminal import Desk, need
from tests.hooks.test_mcp_tools import audit

ACTOR = actor_for("local", "default")
PATIENT_S = 2 * PATIENCE_S + 0.3  # a machine that does other things as well


def line(number: int, command: str) -> bytes:
    """A line of the spool, as a shell writes it."""
    value = {"remem": 1, "seq": number, "at": 1_700_000_000_000_000 + number, "cwd": "/nowhere"}
    return json.dumps({**value, "cmd": command}, separators=(",", ":")).encode() + b"\n"


def append(root: Path, first: int, count: int, word: str = "backlog") -> None:
    """Append commands to the file of a shell that lives: this process."""
    path = root / "spool" / f"bash-1700000000000000-{os.getpid()}-0.jsonl"
    with open(path, "ab") as file:
        file.write(b"".join(line(n, f"{word} number{n}") for n in range(first, first + count)))


def commands(store: Store) -> list[str]:
    """The text of all evidence."""
    with store.read(maintenance_grant()) as reader:
        return [
            obj.text
            for part in reader.parts
            for ref, _ in reader.states(part)
            if (obj := reader.object(part, ref)) is not None
        ]


def brought(run: Runner) -> list[tuple[str, str]]:  # noqa: F811
    """Principal and surface of what came in; what was derived from it is the deriver's."""
    rows = [row for row in audit(run) if row["action"] == "create"]
    return [(r["principal"], r["surface"]) for r in rows if r["principal"] != "deriver"]


# -- a real shell and a real client -----------------------------------------------------------


@pytest.fixture
def desk(run: Runner, tmp_path: Path) -> Desk:  # noqa: F811
    """A desk whose shells note into the store of the runner."""
    need("bash")
    run("init", code=0)
    made = Desk(tmp_path / "desk")
    made.store = run.store
    return made


def test_a_command_typed_meanwhile_is_found_at_the_next_question(run: Runner, desk: Desk) -> None:  # noqa: F811
    async def script(agent: Agent) -> None:
        assert not (await agent.ok("recall", query="walrus"))["hits"]
        desk.feed("echo walrus one\n")
        assert desk.commands == ["echo walrus one"], "it waits in the spool"
        (hit,) = (await agent.ok("recall", query="walrus"))["hits"]
        assert (hit["text"], hit["origin"]) == ("echo walrus one", "owner")
        assert (hit["scope"]["agent"], hit["kind"]) == ("shell", "command")
        desk.feed("echo pelican two\n")
        assert "pelican" in (await agent.ok("context", query="pelican"))["text"]
        desk.feed("echo heron three\n")
        assert (await agent.ok("history", id=hit["id"]))["entries"]
        assert run("recall", "heron", "--json", code=0).json["hits"]

    talk(run, script)
    assert brought(run) == [("owner", "hook")] * 3
    run("verify", code=0)


@pytest.mark.parametrize("how", ["read-only", "agent", "token"])
def test_whoever_asks_what_comes_in_is_the_owners(run: Runner, desk: Desk, how: str) -> None:  # noqa: F811
    """A principal that only reads, one of a single agent, and one whose token the server has."""
    words: list[str] = []
    if how == "read-only":
        words = ["--read-only"]
    else:
        scope = "local/default/*/*/*" if how == "token" else "local/default/*/robot/*"
        made = run("principal", "add", how, "--scope", scope, "--can", "read", "--json", code=0)
        if how == "token":
            run.env["REMEM_TOKEN"] = made.json["token"]
        else:
            words = ["--principal", how]

    async def script(agent: Agent) -> None:
        await agent.ok("status")
        desk.feed("echo walrus\n")
        hits = (await agent.ok("recall", query="walrus"))["hits"]
        # Taken in, where it belongs; one that sees another agent only does not see it there.
        assert bool(hits) == (how != "agent")

    talk(run, script, *words)
    run.env.pop("REMEM_TOKEN", None)
    (hit,) = run("recall", "walrus", "--json", code=0).json["hits"]
    assert hit["scope"]["agent"] == "shell" and hit["origin"] == "owner"
    assert brought(run) == [("owner", "hook")]


def test_a_commit_noted_meanwhile_is_found(run: Runner) -> None:  # noqa: F811
    need("git")
    run("init", code=0)
    project = run.cwd / "project"
    project.mkdir()
    env = {**run.environment(), "GIT_CONFIG_GLOBAL": str(run.home / "gitconfig")}
    for key, value in (("user.name", "A"), ("user.email", "a@example.org")):
        subprocess.run(["git", "config", "--global", key, value], env=env, check=True)
    run.env["GIT_CONFIG_GLOBAL"] = env["GIT_CONFIG_GLOBAL"]
    subprocess.run(["git", "init", "-q"], cwd=project, env=env, check=True)
    run.cwd = project
    run("hook", "install", "git", code=0)

    async def script(agent: Agent) -> None:
        assert not (await agent.ok("recall", query="walrus"))["hits"]
        words = ["git", "commit", "-q", "--allow-empty", "-m", "count the walrus"]
        subprocess.run(words, cwd=project, env=env, check=True)
        for _ in range(20):  # git itself takes its time
            if (await agent.ok("recall", query="walrus"))["hits"]:
                return
        raise AssertionError("the commit was not taken in")

    talk(run, script)


def test_it_ends_in_time_while_much_is_taken_in_and_nothing_is_lost(run: Runner) -> None:  # noqa: F811
    run("init", code=0)
    wire = Wire(run)
    wire.send(HELLO, message(1, "tools/call", name="status", arguments={}))
    wire.answer(1)
    append(run.store, 0, 6000)
    wire.send(message(2, "tools/call", name="recall", arguments={"query": "backlog"}))
    wire.answer(2)
    code, took, err = wire.end()
    assert code == 0 and took < 3.0 and "Traceback" not in err
    store = Store(str(run.store))
    assert 0 < len(commands(store)) < 6000, "it was stopped in the middle"
    store.close()
    run("drain", code=0)
    store = Store(str(run.store))
    found = commands(store)
    store.close()
    assert len(found) == 6000 == len(set(found))
    run("verify", "--fast", code=0)


# -- what a question waits for --------------------------------------------------------------------


class Made:
    """A store and what takes its spool in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = Store.create(str(root))
        self.said: list[str] = []
        self.taken = 0
        self.beside = Beside(self._how, self.said.append)

    def _how(self) -> Intake:
        self.taken += 1
        return Intake(ACTOR, Rules(Ignore(), "home"), dict(os.environ))

    def look(self) -> float:
        """Look; the seconds that it took."""
        began = time.monotonic()
        self.beside.look(self.store)
        return time.monotonic() - began


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    one = Made(tmp_path / "store")
    yield one
    assert one.beside.end(20)
    one.store.close()


def test_where_nothing_is_new_it_only_looks(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made.look()
    assert made.taken == 0
    append(made.root, 0, 3)
    made.look()
    assert made.taken == 1 and len(commands(made.store)) == 3
    began = time.process_time()
    for _ in range(200):
        made.look()
    assert made.taken == 1 and (time.process_time() - began) / 200 < 0.001
    append(made.root, 3, 1)
    made.look()
    assert made.taken == 2 and len(commands(made.store)) == 4


def test_a_spool_of_thousands_holds_a_question_up_for_a_moment_only(made: Made) -> None:
    append(made.root, 0, 4000)
    took = [made.look() for _ in range(3)]
    assert made.taken == 1, "one thread at a time"
    assert max(took) < PATIENT_S, took
    assert len(commands(made.store)) < 4000, "the control: it was too much for the time"
    began = time.monotonic()
    made.store.write(ACTOR, lambda tx: None)
    assert time.monotonic() - began < PATIENT_S, "a change has its turn in between"
    deadline = time.monotonic() + 60
    while made.beside._settled == {} and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(commands(made.store)) == 4000
    file = next((made.root / "spool").glob("*.jsonl"))
    assert not file.read_bytes().strip(), "what was taken in is blank"


def _hold_the_store(root: str, ready: Any, over: Any) -> None:
    def change(_: object) -> None:
        ready.set()
        over.wait(20)

    Store(root).write(ACTOR, change)


def test_another_writer_holds_a_question_up_for_a_moment_only(made: Made) -> None:
    context = multiprocessing.get_context("spawn")
    ready, over = context.Event(), context.Event()
    holder = context.Process(target=_hold_the_store, args=(str(made.root), ready, over))
    holder.start()
    try:
        assert ready.wait(30)
        append(made.root, 0, 2)
        assert made.look() < PATIENT_S
        assert made.look() < 0.1, "it waits for the same thing once"
        assert commands(made.store) == []
    finally:
        over.set()
        holder.join()
    deadline = time.monotonic() + 20
    while len(commands(made.store)) < 2 and time.monotonic() < deadline:
        made.look()
        time.sleep(0.02)
    assert len(commands(made.store)) == 2


def test_where_another_process_drains_it_goes_on_without(made: Made) -> None:
    append(made.root, 0, 2)
    with hold(made.store.locks_path, LOCK):
        assert made.look() < PATIENT_S
        assert commands(made.store) == []
    made.look()
    assert len(commands(made.store)) == 2


def test_what_comes_while_it_is_at_work_is_not_overlooked(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = intake.beside

    def meanwhile(*args: Any, **named: Any) -> Any:
        done = whole(*args, **named)
        if made.taken == 1:
            append(made.root, 2, 1)  # behind its back, after it was done
        return done

    monkeypatch.setattr(intake, "beside", meanwhile)
    append(made.root, 0, 2)
    made.look()
    assert len(commands(made.store)) == 2
    made.look()
    assert len(commands(made.store)) == 3


def test_what_cannot_be_taken_in_is_said_and_does_not_fail_the_question(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(root: str) -> dict[str, int]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(glance, "sizes", broken)
    made.look()
    assert any("the spool waits" in text for text in made.said)
    monkeypatch.undo()
    append(made.root, 0, 1)
    made.look()
    assert len(commands(made.store)) == 1


def test_after_its_end_nothing_is_begun(made: Made) -> None:
    assert made.beside.end(0)
    append(made.root, 0, 1)
    made.look()
    assert made.taken == 0 and commands(made.store) == []
