"""What the hooks cost: time that a prompt gains, and how fast a spool is taken in.

A prompt is timed in a real shell under a pseudo-terminal, from the line feed that is typed to the
prompt that comes back, for a command that does nothing.  The same shell without a hook is the base,
and atuin's hook, where it is installed, is measured in the same rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from remem.hooks import drain, glance
from remem.hooks.ignore import Ignore
from remem.objects.store import Store
from tests.bench import hooks_consolidate, hooks_git
from tests.bench.report import Verdicts, note, table, title
from tests.hooks.terminal import PROMPT, Desk, Terminal

MOST_ADDED_MS = 1.0  # median
WARM_UP = 20  # prompts
AT = 1_790_000_000_000_000
QUIET = {"bash": "", "zsh": "unsetopt prompt_sp prompt_cr\n"}
OURS, NONE, ATUIN = "remem", "no hook", "atuin"


def run(argv: Sequence[str]) -> int:
    """Measure and print.

    Args:
        argv: words after the name of the measurement.

    Returns:
        0; 1 where a target was missed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench hooks", description="Measure the hooks."
    )
    parser.add_argument("--prompts", type=int, default=1000, help="of each shell and hook")
    parser.add_argument("--rounds", type=int, default=4, help="in turn, between which hooks change")
    parser.add_argument("--commands", type=int, default=100_000, help="in the spool")
    args = parser.parse_args(argv)
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(prefix="remem-bench-") as work:
        for shell in QUIET:
            if shutil.which(shell) is None:
                note(f"{shell} is not installed: not measured")
                continue
            title(f"hooks: a prompt of {shell}")
            prompts(verdicts, Path(work), shell, args.prompts, args.rounds)
        title("hooks: taking the spool in")
        draining(Path(work), args.commands)
    title("hooks: a commit")
    commits = hooks_git.run()
    title("hooks: consolidation")
    changed = hooks_consolidate.measure()
    return 1 if commits or changed or verdicts.missed else 0


def prompts(verdicts: Verdicts, work: Path, shell: str, count: int, rounds: int) -> None:
    """Time prompts with each hook, in rounds so that a busy moment hits all of them."""
    hooks = [NONE, OURS, *([ATUIN] if _atuin() else [])]
    if ATUIN not in hooks:
        note("atuin is not installed: not measured")
    seen: dict[str, list[float]] = {name: [] for name in hooks}
    for number in range(rounds):
        for name in hooks:
            desk = Desk(work / f"{shell}-{name.replace(' ', '-')}-{number}")
            seen[name] += _times(desk, shell, name, count // rounds)
    base = statistics.median(seen[NONE])
    rows = []
    for name in hooks:
        times = sorted(seen[name])
        median = statistics.median(times)
        rows.append(
            [
                name,
                f"{len(times):,}",
                f"{1000 * median:.3f}",
                f"{1000 * times[int(len(times) * 0.99)]:.3f}",
                f"{1000 * (median - base):+.3f}",
            ]
        )
    print(table(["hook", "prompts", "median ms", "p99 ms", "added median ms"], rows))
    added_ms = 1000 * (statistics.median(seen[OURS]) - base)
    verdicts.judge(
        f"added to a prompt of {shell}, median",
        added_ms < MOST_ADDED_MS,
        f"{added_ms:.3f} ms",
        f"< {MOST_ADDED_MS:g} ms",
    )


def _times(desk: Desk, shell: str, hook: str, count: int) -> list[float]:
    """Seconds from a line feed to the next prompt, of each of so many prompts."""
    rc = f"PS1='{PROMPT}'\n{QUIET[shell]}"
    if hook == OURS:
        rc += f". {desk.hook(shell)}\n"
    elif hook == ATUIN:
        program = _atuin()
        assert program is not None
        desk.env["PATH"] = f"{os.path.dirname(program)}:{desk.env['PATH']}"
        (desk.home / ".config" / "atuin").mkdir(parents=True)
        (desk.home / ".config" / "atuin" / "config.toml").write_text(
            "auto_sync = false\nupdate_check = false\n"
        )
        rc += f'eval "$({program} init {shell} --disable-up-arrow --disable-ctrl-r)"\n'
    found = []
    with Terminal(desk.rc(shell, rc), desk) as terminal:
        for number in range(WARM_UP + count):
            terminal.type("true")
            terminal.wait_for("true")
            began = time.perf_counter()
            terminal.type("\n")
            terminal.wait_for(PROMPT, within_s=30)
            if number >= WARM_UP:
                found.append(time.perf_counter() - began)
    if hook == OURS and len(desk.commands) != WARM_UP + count:
        raise AssertionError(f"{len(desk.commands)} commands were captured")
    return found


def _atuin() -> str | None:
    beside = os.path.join(os.path.dirname(sys.executable), "atuin")
    found = beside if os.access(beside, os.X_OK) else shutil.which("atuin")
    if found is None:
        return None
    works = subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0
    return found if works else None


def draining(work: Path, count: int) -> None:
    """Take a spool in, and then an empty one."""
    store = Store.create(str(work / "store"))
    size_b = 0
    per_file = 1000
    for first in range(0, count, per_file):
        path = (
            work / "store" / "spool" / f"bash-{AT + first}-{os.getpid()}-{first // per_file}.jsonl"
        )
        lines = [
            json.dumps(
                {
                    "remem": 1,
                    "seq": number,
                    "at": AT + number * 1000,
                    "took": 12345,
                    "exit": number % 3,
                    "cwd": f"/srv/work/project-{number % 7}",
                    "head": "main",
                    "tty": "/dev/pts/1",
                    "cmd": f"make target-{number} && ./run --level {number % 100} | tee log.txt",
                },
                separators=(",", ":"),
            )
            for number in range(first, min(first + per_file, count))
        ]
        data = ("\n".join(lines) + "\n").encode()
        size_b += len(data)
        path.write_bytes(data)
        path.chmod(0o600)
    actor, rules = drain.actor_for("local", "default"), drain.Rules(Ignore())
    began = time.perf_counter()
    done = drain.drain(store, actor, rules)
    seconds = time.perf_counter() - began
    if done.new != count:
        raise AssertionError(f"{done.new} of {count} commands were taken in")
    note(
        f"{count:,} commands, {size_b / 2**20:.1f} MiB, in {seconds:.1f} s: "
        f"{count / seconds:,.0f} commands a second"
    )
    began = time.perf_counter()
    for _ in range(100):
        glance.waits(store)
    each_ms = 10 * (time.perf_counter() - began)
    files = len(os.listdir(work / "store" / "spool"))
    note(f"to see that nothing waits, with {files} files in the spool: {each_ms:.2f} ms")
