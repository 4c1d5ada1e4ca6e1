"""The MCP server beside other processes: one truth for all doors, whatever the others do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio

from tests.cli.conftest import Runner, run  # noqa: F401
from tests.hooks.agents import Agent, talk
from tests.hooks.test_mcp_tools import audit

UNKNOWN = "ab" * 32


# -- A14, A26, A38 ----------------------------------------------------------------------------


def test_what_it_saves_is_in_its_project_and_nowhere_else(run: Runner, tmp_path: Path) -> None:  # noqa: F811
    """The project of the folder in which the client starts it, as every command finds it."""
    project = run.cwd / "project"
    project.mkdir()
    run("add", "made", "-q", code=0)
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (project / ".git" / "config").write_text("[remem]\n\tcollection = P\n")
    home = run.cwd

    async def script(agent: Agent) -> None:
        state = await agent.ok("status")
        assert state["scope"]["collection"] == "P"
        await agent.ok("observe", text="a zebra is in P")

    run.cwd = project
    talk(run, script)
    assert run("recall", "zebra", "--json", code=0).json["hits"][0]["scope"]["collection"] == "P"
    run.cwd = home
    assert run("recall", "zebra", "--json").json["hits"] == []
    assert run("recall", "zebra", "--collection", "P", "--json", code=0).json["hits"]


def test_the_default_scope_is_one_truth_for_command_line_and_server(
    run: Runner,  # noqa: F811
) -> None:
    run("config", "set", "collection", "team", "--user", code=0)
    asked = []

    async def script(agent: Agent) -> None:
        asked.append((await agent.ok("status"))["scope"]["collection"])
        words = f"the port of round {len(asked)}"
        kept = await agent.ok("observe", text=f"{words} is 8443")
        found = run("recall", words, "--json", code=0).json["hits"][0]
        assert found["ref"] == kept["ref"]
        for form in (kept["id"], kept["id"][:7], found["id"], found["ref"][:12], "@{last}"):
            assert (await agent.ok("show", id=form))["ref"] == kept["ref"]
        fixed = await agent.ok("observe", text=f"{words} is 9443", corrects=found["id"][:10])
        assert run("show", kept["id"], "--json").json["replaced_by"] == fixed["ref"]

    for _ in range(2):
        talk(run, script)
    assert asked == ["team", "team"]
    assert run("status", "--json", code=0).json["scope"]["collection"] == "team"


def test_what_is_reported_as_done_is_there_in_a_new_process_with_its_row(
    run: Runner,  # noqa: F811
) -> None:
    """One change after the other; each adds rows of its own, a refusal adds no entry."""
    changes: list[tuple[str, dict[str, Any]]] = [
        ("observe", {"text": "the first"}),
        ("observe", {"text": "the second", "corrects": "@{last}"}),
        ("loop", {"text": "look again", "topic": "kettle"}),
        ("loop", {"done": "@{last}"}),
        ("task", {"key": "k", "text": "begun"}),
        ("task", {"key": "k", "done": True}),
        ("brief", {"text": "remember the kettle"}),
    ]

    async def script(agent: Agent) -> None:
        await agent.ok("status")
        for name, arguments in changes:
            before = audit(run)
            await agent.ok(name, **arguments)
            rows = audit(run)[len(before) :]
            assert rows and {row["outcome"] for row in rows} == {"done"}, (name, rows)
            assert {(row["principal"], row["surface"]) for row in rows} == {("mcp", "mcp")}
        before = audit(run)
        entries = len(run("log", "--json", "-n", "9000", code=0).json)
        for name, arguments in (("observe", {"text": " "}), ("loop", {"done": UNKNOWN})):
            assert (await agent(name, **arguments)).failed == "tool"
        assert len(run("log", "--json", "-n", "9000", code=0).json) == entries
        assert len(audit(run)) == len(before) + 1  # the id that nothing has

    talk(run, script)
    run("verify", code=0)


# -- other processes --------------------------------------------------------------------------


def test_it_sees_what_others_write_and_survives_a_purge_and_a_larger_map(
    run: Runner,  # noqa: F811
) -> None:
    run.env["REMEM_DISK_MAP_MIB"] = "2"
    run.add("a kettle is in the kitchen")

    async def script(agent: Agent) -> None:
        assert (await agent.ok("recall", query="kettle"))["hits"]
        gone = run.add("a zebra crossed the yard")
        assert (await agent.ok("recall", query="zebra"))["hits"]
        run("forget", gone, code=0)
        assert not (await agent.ok("recall", query="zebra"))["hits"]
        generation = (run.store / "GENERATION").read_text()
        run("purge", "--yes", code=0)
        assert (run.store / "GENERATION").read_text() != generation
        assert (await agent.ok("recall", query="kettle"))["hits"]
        assert (await agent("show", id=gone)).failed == "tool"
        kept = await agent.ok("observe", text="an otter is in the bath")
        assert run("show", kept["id"], code=0)
        # Far beyond the map that the server has opened.
        lines = "\n".join(json.dumps({"text": f"line {n} " + "y" * 4000}) for n in range(4000))
        run("import", "jsonl", "-", stdin=lines, code=0)
        assert (run.store / "canon").exists()
        assert (await agent.ok("recall", query="otter", mode="lexical"))["hits"]
        assert (await agent.ok("observe", text="a heron is on the roof"))["status"] == "new"
        shutil.rmtree(run.store / "index")
        assert (await agent.ok("recall", query="heron"))["hits"]

    talk(run, script)
    run("verify", code=0)


READERS = "import lmdb, sys; print(lmdb.open(sys.argv[1], readonly=True, max_dbs=64).readers())"
HOLD = """
import sys, time
from remem.objects.scope import maintenance_grant
from remem.objects.store import Store
with Store(sys.argv[1]).read(maintenance_grant()):
    print("held", flush=True)
    time.sleep(60)
"""


def test_between_two_calls_it_holds_no_snapshot(run: Runner) -> None:  # noqa: F811
    """A server that idles for a day keeps no page of the store alive, and no reader's slot busy."""
    run.add("a kettle is in the kitchen")
    root = Path(__file__).resolve().parents[2]

    def active() -> int:
        count = 0
        for data in run.store.rglob("data.mdb"):
            shown = subprocess.run(
                [sys.executable, "-c", READERS, str(data.parent)],
                capture_output=True, text=True, check=True,
            ).stdout  # fmt: skip
            rows = [row.split() for row in shown.splitlines()[1:]]
            count += sum(len(row) == 3 and row[2] != "-" for row in rows)
        return count

    async def script(agent: Agent) -> None:
        for number in range(3):
            await agent.ok("recall", query="kettle")
            await agent.ok("observe", text=f"note {number}")
            await agent.ok("status")
        assert active() == 0
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(run.store)], stdout=subprocess.PIPE, cwd=root
        )
        try:  # the positive control: a snapshot that is held shows
            assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
            assert active() == 1
        finally:
            holder.kill()
            holder.wait()

    talk(run, script)


def test_fifty_calls_at_once(run: Runner) -> None:  # noqa: F811
    run.add("a kettle is in the kitchen")
    answers: list[Any] = []

    async def script(agent: Agent) -> None:
        async def one(number: int) -> None:
            if number % 2:
                reply = await agent("observe", text=f"note number {number}")
            else:
                reply = await agent("recall", query="kettle kitchen")
            answers.append((number, reply))

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(one, number)

    talk(run, script)
    assert sorted(number for number, _ in answers) == list(range(50))
    assert not [reply.text for _, reply in answers if reply.failed]
    assert all(reply.value["hits"] for number, reply in answers if number % 2 == 0)
    kept = {reply.value["id"] for number, reply in answers if number % 2}
    assert kept <= {entry["new"] for entry in run("log", "--json", "-n", "9000", code=0).json}
    run("verify", code=0)
