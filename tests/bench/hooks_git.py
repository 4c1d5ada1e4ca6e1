"""A commit with and without our hooks, and what takes their events in.

Two repositories that differ only in the hooks take one commit each in turn, so that whatever else
the machine does meets both.  Beside them stands a hook that starts an interpreter, which is the
least that a hook written in Python costs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from remem.hooks import git_hook, git_install
from remem.objects.model import Scope
from remem.objects.scope import Actor, Grant
from remem.objects.store import Store
from tests.bench.report import note, table

ROUNDS = 60
MOST_ADDED_MS = 50.0
_INTERPRETER = f"#!/bin/sh\n{sys.executable} -I -S -c pass\n"


def run(argv: Sequence[str] = ()) -> int:
    """Measure and print.

    Args:
        argv: the number of commits, or nothing.

    Returns:
        1 when the median added time is above the bound.
    """
    rounds = int(argv[0]) if argv else ROUNDS
    with tempfile.TemporaryDirectory(prefix="remem-bench-") as folder:
        return _measure(Path(folder), rounds)


def _measure(folder: Path, rounds: int) -> int:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "T",
        "GIT_AUTHOR_EMAIL": "t@example.org",
        "GIT_COMMITTER_NAME": "T",
        "GIT_COMMITTER_EMAIL": "t@example.org",
    }
    store = Store.create(str(folder / "store"))
    spool = folder / "store" / "spool"
    spool.mkdir(mode=0o700, exist_ok=True)
    setup = git_install.Setup(str(folder / "conf"), str(spool), env)
    names = ("no hook", "ours", "an interpreter")
    for name in names:
        repository = folder / name
        subprocess.run(["git", "init", "-q", str(repository)], env=env, check=True)
    git_install.install(setup, str(folder / "ours"))
    other = folder / "an interpreter" / ".git" / "hooks" / "post-commit"
    other.write_text(_INTERPRETER)
    other.chmod(0o755)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names[number % 3 :] + names[: number % 3]:
            words = ["git", "commit", "-q", "--allow-empty", "-m", f"change {number}"]
            start = time.perf_counter()
            subprocess.run(words, cwd=folder / name, env=env, check=True)
            taken[name].append((time.perf_counter() - start) * 1000)
    added = {
        name: sorted(a - b for a, b in zip(taken[name], taken["no hook"], strict=True))
        for name in names
    }
    rows = [
        [name, f"{_at(sorted(taken[name]), 0.5):.1f}", f"{_at(added[name], 0.5):.1f}",
         f"{_at(added[name], 0.95):.1f}"]
        for name in names
    ]  # fmt: skip
    print(table(["git commit", "median ms", "added ms", "added ms, 95 %"], rows))
    scope = Scope("local", "default", "home", "none", "main")
    actor = Actor(Grant("owner", "local", "default", None, owner=True), "cli", scope)
    start = time.perf_counter()
    done = git_hook.drain(store, actor, str(spool), env=env)
    took = time.perf_counter() - start
    note(f"drain: {done.events} events, {done.new} new, {done.events / took:,.0f} events/s")
    store.close()
    if done.new != rounds or done.events != rounds:
        note("the events are not those of the commits")
        return 1
    return int(_at(added["ours"], 0.5) > MOST_ADDED_MS)


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
