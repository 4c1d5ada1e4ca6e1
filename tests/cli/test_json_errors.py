"""An error under --json: one value on standard output, by every command, and never a second one."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import remem.cli
import remem.hooks
import remem.index
import remem.objects
from remem.cli import entry, report, table
from remem.objects.errors import RememError

from .conftest import REMEM, Runner

NOBODY = ("--as", "nobody")
GONE = "0" * 12

# A call of each command that fails, its exit status, and the kind of the error; None: the command
# has its own value for it, which is not an error.
FAILING: dict[str, tuple[tuple[str, ...], int, str | None]] = {
    "init": (("--store", "/dev/null/x"), 5, "store"),
    "add": ((), 2, "usage"),
    "fact": (("a", "b", "c", "--from", "never ever"), 2, "bad_time"),
    "import": (("jsonl", "missing.jsonl"), 2, "bad_input"),
    "revise": ((GONE, "words"), 1, "not_found"),
    "rollback": ((GONE,), 1, "not_found"),
    "close": ((GONE,), 1, "not_found"),
    "reopen": ((GONE,), 1, "not_found"),
    "undo": (("99",), 1, "not_found"),
    "alias": (("frob",), 2, "usage"),
    "derive": (("--deriver", "frob"), 2, "usage"),
    "jobs": (("retry", GONE), 1, "not_found"),
    "recall": (("zzqx",), 1, None),
    "context": (("zzqx",), 1, None),
    "show": ((GONE,), 1, "not_found"),
    "log": (("--op", "frob"), 2, "usage"),
    "why": ((GONE,), 1, "not_found"),
    "about": (("zzqx",), 1, None),
    "diff": ((GONE,), 1, "not_found"),
    "eval": (("missing.toml",), 5, "file"),
    "pin": ((), 2, "usage"),
    "pins": (NOBODY, 3, "scope"),
    "unpin": ((GONE,), 1, "not_found"),
    "loop": (("done", GONE), 1, "not_found"),
    "loops": (NOBODY, 3, "scope"),
    "task": (("show", "zzqx"), 1, None),
    "brief": (("words", "--promote", GONE), 1, "not_found"),
    "promote": ((GONE,), 1, "not_found"),
    "principal": (("frob",), 2, "usage"),
    "review": (NOBODY, 3, "scope"),
    "draft": (("show", GONE), 1, "not_found"),
    "quarantine": (("release", GONE), 1, "not_found"),
    "owner": (("frob",), 2, "usage"),
    "forget": ((GONE, "--yes"), 1, "not_found"),
    "purge": ((GONE, "--yes"), 1, "not_found"),
    "tombstones": (("lift", GONE), 1, "not_found"),
    "hold": (("release", GONE), 1, "not_found"),
    "retain": (("unset", "7"), 1, "not_found"),
    "consolidate": (NOBODY, 3, "scope"),
    "hook": (("install",), 2, "usage"),
    "hook-event": (("frob", "frob"), 2, "usage"),
    "mcp": (("--principal", "nobody"), 3, "scope"),
    "warm": (("--status",), 1, "not_found"),
    "status": (NOBODY, 3, "scope"),
    "audit": (("--action", "zzqx"), 1, None),
    "verify": (("--checkpoint", "missing"), 1, "not_found"),
    "doctor": (NOBODY, 3, "scope"),
    "reindex": (NOBODY, 3, "scope"),
    "export": (("-",), 2, "usage"),
    "backup": (("/dev/null/x",), 5, "store"),
    "config": (("get", "frob"), 2, "usage"),
    "demo": ((), 2, "usage"),
    "completion": (("frob",), 2, "usage"),
    "help": (("frob",), 1, "not_found"),
    "hash-object": (("missing",), 5, "file"),
    "cat-object": ((GONE,), 1, "not_found"),
    "ls-refs": (NOBODY, 3, "scope"),
    "ls-jobs": (NOBODY, 3, "scope"),
    "rev-parse": ((GONE,), 1, "not_found"),
    "drain": (NOBODY, 3, "scope"),
    "project": (NOBODY, 3, "scope"),
    "count-objects": (NOBODY, 3, "scope"),
}


def told(raw: bytes) -> dict[str, Any]:
    """The one error on standard output."""
    assert raw.endswith(b"\n") and raw.count(b"\n") == 1, raw
    value = json.loads(raw)
    assert list(value) == ["error"] and list(value["error"]) == ["kind", "message", "hint", "exit"]
    error: dict[str, Any] = value["error"]
    return error


def test_every_command_has_a_call_that_fails() -> None:
    assert set(FAILING) == {command.name for command in table.COMMANDS}


@pytest.mark.parametrize("name", FAILING)
def test_a_command_that_fails_prints_one_value(filled: Runner, name: str) -> None:
    words, code, kind = FAILING[name]
    result = filled(name, *words, "--json")
    assert result.code == code, result.shown
    if kind is None:
        assert "error" not in result.json, result.shown
        return
    error = told(result.raw)
    assert (error["kind"], error["exit"]) == (kind, code)
    assert f"remem: {error['message']}\n" in result.err
    assert (f"hint: {error['hint']}\n" in result.err) == bool(error["hint"])


@pytest.mark.parametrize("name", ["add", "show", "config", "help"])
def test_without_json_standard_output_stays_empty(filled: Runner, name: str) -> None:
    words, code, _ = FAILING[name]
    assert filled(name, *words, code=code).raw == b""


@pytest.mark.parametrize("name", FAILING)
def test_words_that_do_not_parse_are_told_in_json(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert entry.main([name, "--no-such-option", "--json"]) == 2
    out, err = capfd.readouterr()
    error = told(out.encode())
    assert error["kind"] == "usage" and error["exit"] == 2
    assert error["message"].startswith("no such option") and error["message"] in err
    assert f"remem {name} --help" in error["hint"]


@pytest.mark.parametrize(
    "words",
    [[], ["frob"], ["recall", "x", "--mode", "frob"], ["log", "-n", "many"], ["show"]],
    ids=" ".join,
)
def test_either_parser_tells_what_is_wrong_with_the_words(run: Runner, words: list[str]) -> None:
    error = told(run("--json", *words, code=2).raw)
    assert error["kind"] == "usage" and error["message"]


# -- who asks for JSON ----------------------------------------------------------------------------


def test_json_is_what_the_settings_say_too(filled: Runner) -> None:
    assert filled("show", GONE, code=1).raw == b""
    assert told(filled("show", GONE, env={"REMEM_JSON": "1"}, code=1).raw)["kind"] == "not_found"
    assert told(filled("frob", env={"REMEM_JSON": "1"}, code=2).raw)["kind"] == "usage"
    (filled.store / "config.toml").write_text("json = true\n")
    assert told(filled("show", GONE, code=1).raw)["kind"] == "not_found"
    assert told(filled("show", "zz", code=2).raw)["kind"] == "usage"
    (filled.store / "config.toml").write_text("json = perhaps\n")
    assert filled("show", GONE, code=2).raw == b"", "settings that do not parse ask for nothing"
    assert told(filled("show", GONE, "--json", code=2).raw)["kind"] == "bad_config"


def test_json_behind_two_dashes_is_a_word(filled: Runner) -> None:
    assert filled("show", "--", "--json", code=2).raw == b""
    assert told(filled("show", "--json", "--", "--json", code=2).raw)["kind"] == "usage"


def test_a_secret_in_a_message_is_taken_out(filled: Runner) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    error = told(filled("show", token, "--json", code=2).raw)
    assert "[" in error["message"] and "a1B2c3D4e5" not in json.dumps(error)


def test_a_name_that_is_no_text_is_told_all_the_same(filled: Runner) -> None:
    words = [*REMEM, "eval", b"no\xffsuch", "--json"]
    done = subprocess.run(words, env=filled.environment(), cwd=filled.cwd, capture_output=True)
    assert "no\\udcffsuch" in told(done.stdout)["message"]


# -- what was written before ----------------------------------------------------------------------


def test_a_batch_that_stops_prints_no_second_value(filled: Runner) -> None:
    lines = b'{"id":1,"query":"staging"}\nno json\n{"id":2,"query":"production"}\n'
    result = filled("recall", "--batch", "-", "--json", stdin=lines, code=2)
    values = [json.loads(line) for line in result.raw.splitlines()]
    assert [value.get("id") for value in values] == [1, None, 2]
    assert [isinstance(value.get("error"), str) for value in values] == [False, True, False]
    assert values[1]["kind"] == "bad_input"
    missing = filled("recall", "--batch", "missing", "--json", code=5)
    assert told(missing.raw)["kind"] == "file", "nothing had been printed there"


def test_what_was_written_stays_the_only_thing(
    filled: Runner, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from remem.cli.commands import status

    for name, value in filled.environment().items():
        monkeypatch.setenv(name, value)

    def half(context: Any, **_: object) -> int:
        context.stdout.write(b"[1,")
        raise ValueError("in the middle")

    def none(context: Any, **_: object) -> int:
        raise ValueError("at the beginning")

    monkeypatch.setattr(status, "run", half)
    assert entry.main(["status", "--json"]) == 5
    assert capfd.readouterr().out == "[1,"
    monkeypatch.setattr(status, "run", none)
    assert entry.main(["status", "--json"]) == 5
    assert told(capfd.readouterr().out.encode())["kind"] == "fault"


def test_interrupting_prints_nothing(run: Runner) -> None:
    started = run.start(
        *("import", "jsonl", "-", "--json"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert started.stdout is not None and started.stderr is not None
    deadline = time.monotonic() + 20
    while not run.store.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.1)
    started.send_signal(signal.SIGINT)
    assert started.wait(timeout=20) == 130
    assert started.stdout.read() == b"" and b"interrupted" in started.stderr.read()


def test_a_full_disk_ends_with_its_status(filled: Runner) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    for words in (["log"], ["show", GONE]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [*REMEM, *words, "--json"],
                env=filled.environment(),
                cwd=filled.cwd,
                stdout=full,
                stderr=subprocess.PIPE,
            )
        assert done.returncode == (5 if words == ["log"] else 1), done.stderr
        assert b"Traceback" not in done.stderr


# -- the words ------------------------------------------------------------------------------------


def kinds() -> set[str]:
    """The kinds of every class of error that the program has."""
    for package in (remem.objects, remem.index, remem.hooks, remem.cli):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if ".mcp.server" not in found.name and not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    found_kinds = {RememError.kind, *report.KINDS}
    waiting = [RememError]
    while waiting:
        for one in waiting.pop().__subclasses__():
            found_kinds.add(one.kind)
            waiting.append(one)
    return found_kinds


def test_the_manual_names_every_kind_and_no_other() -> None:
    page = Path(__file__).parents[2] / "man" / "man1" / "remem.1"
    section = page.read_text().partition(".Ss Errors in JSON")[2].partition("\n.S")[0]
    named = {
        word.strip()
        for line in section.splitlines()
        if line.startswith(".It ")
        for word in line.removeprefix(".It ").split(" , ")
    }
    assert named == kinds()
