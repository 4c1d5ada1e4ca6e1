"""The wire of the MCP server: what stands on standard output, how it starts and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import REMEM, Runner, run  # noqa: F401
from tests.hooks.agents import HELLO, Agent, Wire, message, pure, talk

END_S = 2.0
CALL = message(1, "tools/call", name="recall", arguments={"query": "kettle"})


def children(pid: int) -> list[int]:
    """Processes that a process, or one of its own, has started."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and int(Path(f"/proc/{name}/stat").read_text().split()[3]) == pid:
                found.append(int(name))
        except (OSError, IndexError):
            continue
    return found


# -- what it is started on (T10, A32) ---------------------------------------------------------


def new(run: Runner) -> None:  # noqa: F811
    """No store yet."""


def filled(run: Runner) -> None:  # noqa: F811
    run.add("a kettle is in the kitchen")


def newer(run: Runner) -> None:  # noqa: F811
    filled(run)
    (run.store / "FORMAT").write_text("remem store 99\n")


def broken(run: Runner) -> None:  # noqa: F811
    filled(run)
    data = next((run.store / "canon").glob("g*/data.mdb"))
    data.write_bytes(b"\0" * 100)


@pytest.mark.parametrize("state", [new, filled, newer, broken], ids=lambda made: made.__name__)
def test_each_line_is_a_message_whatever_the_store_is(run: Runner, state: object) -> None:  # noqa: F811
    assert callable(state)
    state(run)
    run.env |= {"REMEM_DEBUG": "1", "REMEM_VERBOSE": "1", "PYTHONWARNINGS": "always"}
    wire = Wire(run)
    wire.send(HELLO, message(2, "tools/list"), CALL)
    assert wire.answer(0)["result"]["serverInfo"]["name"] == "remem"
    called, tools = wire.answer(1)["result"], wire.answer(2)["result"]["tools"]
    code, took, err = wire.end()
    assert pure(wire.lines) and code == 0 and took < END_S
    assert len(tools) == 12
    if state in (new, filled):
        assert not called.get("isError")
        hits = called["structuredContent"]["hits"]
        assert len(hits) == (1 if state is filled else 0)
        assert bool(called["structuredContent"]["warnings"]) == (state is new)
    else:
        assert called["isError"] and "hint: " in called["content"][0]["text"]
        assert "the server starts all the same" in err
    assert "Traceback" not in err


def test_what_a_library_prints_never_reaches_the_wire(run: Runner, tmp_path: Path) -> None:  # noqa: F811
    """Prints of Python, of C and of a child, while a call is answered."""
    filled(run)
    noisy = tmp_path / "sitecustomize.py"
    noisy.write_text(
        "import threading, os, sys, subprocess, time\n"
        "def shout():\n"
        "    while True:\n"
        "        print('banner', flush=True)\n"
        "        os.write(1, b'raw\\n')\n"
        "        time.sleep(0.01)\n"
        "if 'mcp' in sys.orig_argv:\n"
        "    def later():\n"
        "        while 'remem.hooks.mcp.server' not in sys.modules: time.sleep(0.001)\n"
        "        subprocess.run(['echo', 'child'])\n"
        "        shout()\n"
        "    threading.Thread(target=later, daemon=True).start()\n"
    )
    run.env["PYTHONPATH"] = str(tmp_path)
    wire = Wire(run)
    wire.send(HELLO, CALL)
    wire.answer(1)
    time.sleep(0.6)
    wire.send(message(3, "ping"), message(4, "tools/call", name="status", arguments={}))
    wire.answer(4)
    code, took, err = wire.end()
    assert pure(wire.lines) and code == 0 and took < END_S
    assert "banner" in err and "raw" in err and "child" in err  # they did print


# -- errors -----------------------------------------------------------------------------------


def test_errors_are_errors_of_the_protocol_and_the_server_lives_on(run: Runner) -> None:  # noqa: F811
    wire = Wire(run)
    call = "tools/call"
    wire.send(
        HELLO,
        b"this is no JSON\n",
        b'{"jsonrpc":"2.0"}\n',
        b"\xff\xfe\n",
        b"\n",
        message(1, call, name="recall", arguments={"query": "x", "verbosity": 3}),
        message(2, call, name="recall", arguments={"query": 5}),
        message(3, call, name="recall"),
        message(4, call, name="nothing", arguments={}),
        message(5, "no/such/method"),
        message(6, "resources/read", uri="remem://secrets"),
        message(7, call, name="recall", arguments={"query": "  "}),
        message(8, call, name="recall", arguments={"query": "x", "as_of": "the day of the owl"}),
        message(9, call, name="show", arguments={"id": "nothex!"}),
        message(10, call, name="recall", arguments=["query"]),
        message(11, call, name="observe", arguments={"text": "half a \ud83d pair"}),
        message(12, call, name="observe", arguments={"text": "x", "origin": "owner"}),
        message(13, "ping"),
    )
    answers = {number: wire.answer(number) for number in (*range(1, 14),)}
    assert answers[13]["result"] == {} or "result" in answers[13]
    for number in (1, 2, 3, 4, 6, 10, 12):
        assert answers[number]["error"]["code"] == -32602, answers[number]
    assert "unknown field 'verbosity'" in answers[1]["error"]["message"]
    assert "expected 'str'" in answers[2]["error"]["message"]
    assert "missing required field 'query'" in answers[3]["error"]["message"]
    assert "no tool 'nothing'" in answers[4]["error"]["message"]
    assert answers[5]["error"]["code"] == -32601
    for number in (7, 8, 9):
        assert answers[number]["result"]["isError"], answers[number]
    cut = answers[11]["result"]["structuredContent"]["id"]
    assert run("show", cut, "--json").json["text"] == "half a \ufffd pair"
    assert "hint: " in answers[8]["result"]["content"][0]["text"]
    code, took, err = wire.end()
    assert pure(wire.lines) and code == 0 and took < END_S and "Traceback" not in err


def test_five_megabytes_are_answered(run: Runner) -> None:  # noqa: F811
    text = "walrus " * 750_000

    async def script(agent: Agent) -> None:
        kept = await agent.ok("observe", text=text, kind="note")
        assert len(run("show", kept["id"], "--json", code=0).json["text"]) > 5_000_000
        for name in ("recall", "context"):
            reply = await agent(name, query=text)
            assert reply.failed == "tool" and "at most 100,000" in reply.text
        assert (await agent("observe", text="x" * 17 * 2**20)).failed == "tool"
        assert (await agent("show", id=text)).failed == "protocol"
        assert (await agent.ok("recall", query="walrus"))["hits"]

    talk(run, script)


def test_without_the_sdk_it_says_what_to_install(run: Runner, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda n, p=None: None if n.startswith('mcp') else find(n, p)\n"
    )
    run.env["PYTHONPATH"] = str(tmp_path)
    done = run("mcp", code=5)
    assert "pip install 'remem[mcp]'" in done.err and not done.out
    assert not run.store.exists()


# -- the end ----------------------------------------------------------------------------------


def test_it_answers_what_was_asked_before_the_input_ended(run: Runner) -> None:  # noqa: F811
    filled(run)
    given = HELLO + b"".join(
        message(n, "tools/call", name="recall", arguments={"query": "kettle"}) for n in range(1, 11)
    )
    done = run("mcp", stdin=given, code=0)
    answered = {json.loads(line)["id"] for line in done.raw.splitlines()}
    assert answered == set(range(11))


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_nothing_is_left(run: Runner, sent: signal.Signals) -> None:  # noqa: F811
    filled(run)
    wire = Wire(run)
    wire.send(HELLO, CALL)
    wire.answer(1)
    assert children(wire.process.pid) == []
    began = time.monotonic()
    wire.process.send_signal(sent)
    assert wire.process.wait(10) == 0 and time.monotonic() - began < END_S
    assert not wire.process.stderr or b"Traceback" not in wire.process.stderr.read()
    run("verify", code=0)


def test_a_store_that_is_locked_delays_neither_pings_nor_the_end(run: Runner) -> None:  # noqa: F811
    """Another process holds the write lock for as long as it likes."""
    filled(run)
    hold = (
        "import sys, time\nfrom remem.objects.store import Store\n"
        "from remem.objects.scope import Actor, maintenance_grant\n"
        "from tests.acceptance.walled import HOME\n"
        "s = Store(sys.argv[1])\n"
        "def keep(tx):\n    print('held', flush=True)\n    time.sleep(60)\n"
        "s.write(Actor(maintenance_grant(), 'cli', HOME), keep)\n"
    )
    wire = Wire(run)
    wire.send(HELLO, CALL)
    wire.answer(1)
    root = Path(__file__).resolve().parents[2]
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, str(run.store)], stdout=subprocess.PIPE, cwd=root
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        wire.send(message(2, "tools/call", name="observe", arguments={"text": "it waits"}))
        time.sleep(0.2)
        began = time.monotonic()
        wire.send(message(3, "ping"), message(4, "tools/call", name="loops", arguments={}))
        wire.answer(4)
        assert time.monotonic() - began < 1.0
        code, took, err = wire.end()
        assert code == 0 and took < END_S and pure(wire.lines)
        assert "a call was still at work" in err
    finally:
        holder.kill()
        holder.wait()
    run("verify", code=0)
    assert "it waits" not in run("recall", "waits", "--json").out


def test_no_module_of_the_sdk_is_loaded_by_another_command(run: Runner) -> None:  # noqa: F811
    code = (
        "import sys\nfrom remem.cli.entry import main\nmain(sys.argv[1:])\n"
        "print(sorted(n for n in sys.modules if n.split('.')[0] in ('mcp', 'mcp_types', 'anyio', "
        "'pydantic')), file=sys.stderr)\n"
    )
    for words in (["add", "x"], ["recall", "x"], ["help", "mcp"], ["mcp", "--nothing"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            env=run.environment(), cwd=run.cwd, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stderr.splitlines()[-1] == "[]", done.stderr
    assert REMEM
