"""README's tour: every command is run, and prints what is shown there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
DEMO = ROOT / "cli" / "data" / "demo"

_ID = re.compile(r"\b[0-9a-f]{10}(?:[0-9a-f]{54})?\b")
_NOW = re.compile(r"\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_SIZE = re.compile(r"\d+ files \([\d.]+ [KM]iB\)")
_TOKEN = re.compile(r"remem_[A-Za-z0-9_-]{40,}")
_LONG = re.compile(r"claude-code:[0-9a-f-]{36}|[0-9a-f]{8}-[0-9a-f-]{27}")


def steps() -> list[tuple[str, str]]:
    """(command, output) of every console block, in order."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            while command.endswith("\\"):
                more, _, output = output.partition("\n")
                command = command[:-1] + more.strip()
            found.append((command, output.rstrip("\n")))
    return found


def plain(text: str) -> str:
    """Output with ids and the times of this run made alike."""
    text = _TOKEN.sub("<token>", _LONG.sub("<session>", text))
    text = _SIZE.sub("<size>", text)
    text = _NOW.sub(lambda m: m.group() if m.group().startswith("2025") else "<now>", text)
    return _ID.sub("<id>", text).rstrip("\n")


def test_the_tour_prints_what_it_shows(tmp_path: Path) -> None:
    shown = steps()
    assert len(shown) >= 8
    for name in os.listdir(DEMO):
        (tmp_path / name).write_bytes((DEMO / name).read_bytes())
    env = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "REMEM_EMBEDDER": "none",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }
    ids: dict[str, str] = {}
    for command, output in shown:
        words = shlex.split(command)
        assert words[0] == "remem", command
        words = [ids.get(word, word) for word in words[1:]]
        done = subprocess.run(
            [sys.executable, "-m", "remem", *words],
            capture_output=True,
            text=True,
            env=env,
            cwd=tmp_path,
            timeout=60,
            check=False,
        )
        got = done.stdout + done.stderr
        assert plain(got).replace(str(tmp_path), "~") == plain(output), command
        for old, new in zip(_ID.findall(output), _ID.findall(got), strict=False):
            ids.setdefault(old, new)


@pytest.mark.parametrize("marker", ["pip install", "remem demo", "pytest"])
def test_the_two_set_up_commands_are_there(marker: str) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 2 and all("\n" not in block.strip() for block in blocks)
    assert any(marker in block for block in blocks)


def test_no_placeholder_is_left() -> None:
    assert "<!--" not in README
