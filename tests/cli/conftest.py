"""Running remem as people do: a process of its own, its exit status, stdout and stderr together."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

REMEM = [sys.executable, "-m", "remem"]
DAY_S = 86_400

_ID = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{12}|[0-9a-f]{10})\b")
_TIME = re.compile(r"\b(\d{4}-\d\d-\d\d)[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")


class Result:
    """What a command left: exit status, stdout and stderr."""

    def __init__(self, done: subprocess.CompletedProcess[bytes], places: Mapping[str, str]) -> None:
        self.code = done.returncode
        self.raw = done.stdout
        self.err = done.stderr.decode()
        self._places = places

    @property
    def out(self) -> str:
        """Stdout as text."""
        return self.raw.decode()

    @property
    def json(self) -> Any:
        """The one JSON value on stdout."""
        return json.loads(self.out)

    @property
    def shown(self) -> str:
        """Exit status, stdout and stderr with ids, moments of the test and paths made alike."""
        text = f"exit {self.code}\n--- out\n{self.out}--- err\n{self.err}"
        return normalise(text, self._places)


def normalise(text: str, places: Mapping[str, str]) -> str:
    """Text with ids numbered by first sight, times of today as <now>, and places named."""
    for path, name in sorted(places.items(), key=lambda item: -len(item[0])):
        text = text.replace(path, name)
    seen: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        found = seen.setdefault(match.group()[:10], len(seen) + 1)
        return f"<id{found}>" if len(match.group()) < 64 else f"<ID{found}>"

    now = time.time()
    days = {time.strftime("%Y-%m-%d", time.gmtime(now + d * DAY_S)) for d in (-1, 0, 1)}

    def moment(match: re.Match[str]) -> str:
        return "<now>" if match.group(1) in days else match.group()

    return _TIME.sub(moment, _ID.sub(number, text))


class Runner:
    """Calls remem in an environment of its own.

    Attributes:
        store: folder of the store (REMEM_STORE points at it).
        prefix: words before the command, for a program that runs it.
        cwd: folder in which commands run, outside any repository.
        env: environment of the commands; change it at will.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.store = home / "store"
        self.cwd = home / "work"
        self.prefix: list[str] = []
        self.cwd.mkdir(parents=True)
        self.env = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "REMEM_STORE": str(self.store),
            "REMEM_EMBEDDER": "none",
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    @property
    def places(self) -> dict[str, str]:
        """Paths of this run and how they are shown."""
        return {str(self.store): "<store>", str(self.cwd): "<cwd>", str(self.home): "<home>"}

    def __call__(
        self,
        *words: str | Path,
        stdin: bytes | str | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        code: int | None = None,
    ) -> Result:
        """Run one command to its end; with code, it must end with that status."""
        given = self.environment(env)
        done = subprocess.run(
            [*self.prefix, *REMEM, *map(str, words)],
            input=stdin.encode() if isinstance(stdin, str) else (stdin or b""),
            capture_output=True,
            env=given,
            cwd=cwd or self.cwd,
            timeout=60,
            check=False,
        )
        result = Result(done, self.places)
        if code is not None:
            assert result.code == code, result.shown
        assert "Traceback" not in result.err or given.get("REMEM_DEBUG"), result.err
        return result

    def environment(self, env: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """The environment with changes; None takes a variable out."""
        merged: dict[str, str | None] = {**self.env, **(env or {})}
        return {name: value for name, value in merged.items() if value is not None}

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start a command and leave it running."""
        return subprocess.Popen([*REMEM, *words], env=self.environment(), cwd=self.cwd, **options)

    def add(self, *words: str, **options: Any) -> str:
        """Add one piece of evidence and return its full id."""
        found: str = self("--json", "add", *words, code=0, **options).json["id"]
        return found


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """A runner without a store."""
    return Runner(tmp_path / "home")


LINES = {
    "api": {
        "text": "the staging API answers on port 8443",
        "at": "2026-03-01T09:30:00+02:00",
        "role": "user",
        "speaker": "Ann",
        "source": {"uri": "https://wiki.example.org/staging", "id": "rev-7"},
    },
    "deploys": {
        "text": "deploys to production need two approvals",
        "at": "2026-03-02",
        "role": "user",
    },
    "hostile": {"text": "moved \x1b[31mred\x07 text\u202e and\nits second line", "origin": "tool"},
    "moved": {
        "text": "the port moved to 9443",
        "at": "2026-04-01T00:00:00Z",
        "session": "later",
    },
    "other": {
        "text": "kept for another project",
        "collection": "other",
        "at": "2025-12-24",
    },
}


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A store with the lines above and their ids by name, made once and copied for each test."""
    made = Runner(tmp_path_factory.mktemp("template") / "home")
    lines = "\n".join(json.dumps(line) for line in LINES.values())
    made("import", "jsonl", "-", "--no-index", stdin=lines, code=0)
    entries = made("log", "--json", "--all-collections", code=0).json
    places = {(e["scope"]["collection"], e["seq"]): e["ref"] for e in entries}
    keys = [("home", 1), ("home", 2), ("home", 3), ("home", 4), ("other", 1)]
    return made.store, dict(zip(LINES, map(places.__getitem__, keys), strict=True))


@pytest.fixture
def filled(run: Runner, template: tuple[Path, dict[str, str]]) -> Runner:
    """A runner with a store of a few observations, in two collections and two sessions."""
    shutil.copytree(template[0], run.store)
    return run


@pytest.fixture
def ids(template: tuple[Path, dict[str, str]]) -> dict[str, str]:
    """Full ids of the filled store by the names of LINES."""
    return template[1]
