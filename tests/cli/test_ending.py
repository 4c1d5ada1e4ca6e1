"""How commands end: closed pipes, interruption, faults, and what a start costs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from remem.cli import report
from remem.hooks.ingest import BATCH
from remem.objects.errors import StoreFull, UsageError

from .conftest import REMEM, Runner

HEAVY = ("typer", "rich", "numpy", "dateparser", "hnswlib", "tokenizers", "onnxruntime", "tomlkit")


# -- closed pipes -------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["log -n 5000", "ls-refs", "log --json -n 5000", "export -"])
def test_a_closed_pipe_ends_quietly(run: Runner, line: str) -> None:
    lines = "\n".join(f"a line of some length with the number {n}" for n in range(3000))
    run("add", "--lines", stdin=lines, code=0)
    script = f"{' '.join(REMEM)} {line} | head -c 100 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], env=run.environment(), cwd=run.cwd, capture_output=True, check=True
    )
    assert done.stderr == b""
    assert done.stdout.strip() == b"0"


def test_a_full_disk_is_an_error(run: Runner) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    run.add("x")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*REMEM, "log"], env=run.environment(), cwd=run.cwd, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 5
    assert b"space" in done.stderr and b"Traceback" not in done.stderr


# -- interruption -------------------------------------------------------------------------------


def test_interrupting_an_import_keeps_whole_batches_and_ends_with_130(run: Runner) -> None:
    started = run.start(
        "add",
        "--lines",
        "--json",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert started.stdin is not None
    for number in range(BATCH + 100):
        started.stdin.write(b"line %d\n" % number)
    started.stdin.flush()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:  # until a batch is kept
        counted = run("count-objects", "--json")
        if counted.code == 0 and counted.json["total"]["count"] >= BATCH:
            break
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    started.stdin.close()
    assert started.wait(timeout=20) == 130
    assert started.stdout is not None and started.stderr is not None
    said = started.stderr.read().decode()
    assert "remem: interrupted" in said and "run it again" in said and "Traceback" not in said
    assert started.stdout.read() == b""
    assert run("count-objects", "--json", code=0).json["total"]["count"] == BATCH
    run("verify", "--fast", code=0)


def test_interrupting_while_waiting_for_input(run: Runner) -> None:
    started = run.start(
        *("import", "jsonl", "-"), stdin=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    assert started.stdin is not None and started.stderr is not None
    while not run.store.exists():  # the signal handler stands by then
        time.sleep(0.02)
    time.sleep(0.1)
    started.send_signal(signal.SIGINT)
    assert started.wait(timeout=20) == 130
    assert b"Traceback" not in started.stderr.read()


# -- faults -------------------------------------------------------------------------------------


def test_debug_shows_where_an_error_arose(run: Runner) -> None:
    done = run("show", "zzz", env={"REMEM_DEBUG": "1"})
    assert "Traceback" in done.err and "remem: " in done.err
    assert "Traceback" not in run("show", "zzz").err
    run("init")
    shown = run("show", "0000000", env={"REMEM_DEBUG": "1"})
    assert "NotFound" in shown.err


def test_errors_have_one_form(capsys: pytest.CaptureFixture[str]) -> None:
    cases: list[tuple[Exception, int]] = [
        (UsageError("the 'thing' is wrong", hint="do it so"), 2),
        (StoreFull("no space left for 'x'"), 5),
        (FileNotFoundError(2, "No such file or directory", "a\x1b[31m"), 5),
        (OSError(28, "No space left on device"), 5),
        (MemoryError(), 5),
        (RecursionError(), 2),
        (ValueError("odd"), 5),
    ]
    for error, code in cases:
        assert report.report(error) == code
        said = capsys.readouterr().err
        first, *rest = said.splitlines()
        assert first.startswith("remem: ") and not first.endswith(".") and "\x1b" not in said
        assert all(line.startswith("hint: ") for line in rest) and len(rest) <= 1


# -- what a start costs -------------------------------------------------------------------------


def loaded(run: Runner, *words: str) -> set[str]:
    """Top-level modules that a command imports, as its own process sees them at the end."""
    code = (
        "import json, sys\n"
        "from remem.cli.entry import main\n"
        f"code = main({list(words)!r})\n"
        "names = sorted({n for n in sys.modules})\n"
        "sys.stderr.write('\\n' + json.dumps([code, names]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=run.environment(),
        cwd=run.cwd,
        capture_output=True,
        check=True,
    )
    status, names = json.loads(done.stderr.decode().splitlines()[-1])
    assert status == 0, done.stderr
    return set(names)


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("--version", ()),
        ("add something", ()),
        ("show @{last} --session later", ()),
        ("log", ()),
        ("status -q", ()),
        ("ls-refs", ()),
        ("audit", ()),
        ("rev-parse @{last}", ()),
        ("completion bash", ()),
        ("config list", ()),
        ("config set agent a", ("tomlkit",)),
        ("log --help", ("typer",)),
    ],
)
def test_import_budget(filled: Runner, line: str, allowed: tuple[str, ...]) -> None:
    names = loaded(filled, *line.split())
    heavy = set(HEAVY) & names
    assert heavy <= set(allowed)
    assert set(allowed) <= names  # the budget is looked for where it is spent


def test_a_version_needs_nothing_and_a_script_no_store(filled: Runner) -> None:
    assert not {"msgspec", "lmdb", "blake3"} & loaded(filled, "--version")
    assert "lmdb" not in loaded(filled, "completion", "zsh")
    assert {"msgspec", "lmdb", "blake3"} <= loaded(filled, "log")


def test_few_modules_are_loaded_by_add(filled: Runner) -> None:
    own = {n for n in loaded(filled, "add", "x") if n.startswith("remem.")}
    assert not any(n.startswith("remem.index") for n in own)
    assert not {"remem.cli.app", "remem.cli.render", "remem.cli.hits"} & own
    assert "remem.cli.commands.add" in own and len(own) < 55


def test_a_start_takes_no_time_of_note(run: Runner, tmp_path: Path) -> None:
    best = min(_seconds(run, "--version") for _ in range(3))
    assert best < 1.0


def _seconds(run: Runner, *words: str) -> float:
    began = time.monotonic()
    run(*words, code=0)
    return time.monotonic() - began
