"""Whole processes under measurement: interleaved runs, processor time, peak memory.

Each command is a new process with an environment of its own and its output thrown away, so that
what is measured is what a person at a prompt waits for.  Commands that are compared run in turn,
one of each a round, so that a busy moment of the machine falls on all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

Command = Sequence[str] | Callable[[int], Sequence[str]]
"""The words of a command, or a function of the round that gives them."""

PYTHON = sys.executable
BASE = [PYTHON, "-I", "-c", "pass"]
EMBEDDER_VARIABLE = "REMEM_EMBEDDER"
"""Chooses the embedder of a measured command: none, hash or minilm."""

LEXICAL_ONLY = {EMBEDDER_VARIABLE: "none"}
POLL_S = 0.005
TIMEOUT_S = 600.0


class CommandFailed(Exception):
    """A measured command ended with another exit code than 0, or not in time."""


class Sample(msgspec.Struct, frozen=True):
    """One run of one command: wall clock and processor time, in seconds."""

    wall: float
    cpu: float


class Memory(msgspec.Struct, frozen=True):
    """Peak memory of one run, in KiB.

    Attributes:
        resident: greatest resident set.  Pages of a memory-mapped store count, so it grows with
            the store although the kernel may take them back at any moment.
        private: greatest anonymous memory seen: what the program itself asked for.
    """

    resident: int
    private: int


def console_script() -> str:
    """Path of the installed ``remem`` command of this interpreter.

    Raises:
        CommandFailed: the package is not installed beside this interpreter.
    """
    path = Path(sysconfig.get_path("scripts")) / "remem"
    if not path.is_file():
        raise CommandFailed(f"'{path}' does not exist: install the package first")
    return str(path)


def child_env(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """A small, fixed environment.

    Args:
        home: an empty folder for settings and stores that are not named.
        extra: variables to add.

    Returns:
        The environment: nothing of the caller's but PATH, one thread for each numeric library,
        and compiled modules allowed, whatever the caller forbids.
    """
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "NO_COLOR": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        **(extra or {}),
    }


def run(
    words: Sequence[str], env: Mapping[str, str], *, cwd: Path, timeout_s: float = TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """Run a command for its output.

    Raises:
        CommandFailed: its exit code is not 0, or it took longer than the timeout.
    """
    try:
        done = subprocess.run(
            words,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired as caught:
        raise CommandFailed(f"{_named(words)}: not done after {timeout_s:.0f} s") from caught
    if done.returncode:
        raise CommandFailed(f"{_named(words)}: exit {done.returncode}: {_reason(done.stderr)}")
    return done


def sample(
    words: Sequence[str], env: Mapping[str, str], *, cwd: Path, timeout_s: float = TIMEOUT_S
) -> Sample:
    """Time one whole process, from before its start until it has been waited for.

    Raises:
        CommandFailed: its exit code is not 0, or it took longer than the timeout.
    """
    with tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        child = subprocess.Popen(
            words,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        killer = _Deadline(child.pid, timeout_s)
        try:
            _, status, usage = os.wait4(child.pid, 0)
        finally:
            killer.cancel()
        wall = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            errors.seek(0)
            said = _reason(errors.read().decode("utf-8", "replace"))
            raise CommandFailed(f"{_named(words)}: exit {child.returncode}: {said}")
    return Sample(wall=wall, cpu=usage.ru_utime + usage.ru_stime)


def samples(
    commands: Mapping[str, Command], env: Mapping[str, str], *, cwd: Path, n: int = 20
) -> dict[str, list[Sample]]:
    """Run each command once a round for n rounds, after one round that is thrown away.

    The first round compiles modules and fills the page cache.

    Args:
        commands: what to run, by name; a function is given the number of the round.
        env: the environment of each.
        cwd: their working folder.
        n: rounds that count.

    Returns:
        n samples a name.

    Raises:
        CommandFailed: one of them failed.
    """
    taken: dict[str, list[Sample]] = {name: [] for name in commands}
    for number in range(n + 1):
        for name, command in commands.items():
            words = command(number) if callable(command) else command
            one = sample(words, env, cwd=cwd)
            if number:
                taken[name].append(one)
    return taken


def interleaved(
    commands: Mapping[str, Command], env: Mapping[str, str], *, cwd: Path, n: int = 20
) -> dict[str, list[float]]:
    """Wall clock of whole processes, in seconds; see `samples`."""
    taken = samples(commands, env, cwd=cwd, n=n)
    return {name: [one.wall for one in ones] for name, ones in taken.items()}


def peak_memory(
    words: Sequence[str], env: Mapping[str, str], *, cwd: Path, timeout_s: float = TIMEOUT_S
) -> Memory:
    """Peak memory of one process.

    The kernel counts the parent's own pages into a child's peak between fork and exec, so the
    figure is read from the child's own status file instead of the parent's books.

    Raises:
        CommandFailed: its exit code is not 0, or it ended before it could be looked at.
    """
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            words,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        resident = private = 0
        deadline = time.monotonic() + timeout_s
        while child.poll() is None:
            now = _status(child.pid)
            resident = max(resident, now.get("VmHWM", 0))
            private = max(private, now.get("RssAnon", 0))
            if time.monotonic() > deadline:
                child.kill()
                child.wait()
                raise CommandFailed(f"{_named(words)}: not done after {timeout_s:.0f} s")
            time.sleep(POLL_S)
        if child.returncode:
            errors.seek(0)
            said = _reason(errors.read().decode("utf-8", "replace"))
            raise CommandFailed(f"{_named(words)}: exit {child.returncode}: {said}")
    if not resident:
        raise CommandFailed(f"{_named(words)}: ended before its memory could be read")
    return Memory(resident=resident, private=private)


def peak_rss_kb(words: Sequence[str], env: Mapping[str, str], *, cwd: Path) -> int:
    """Greatest resident set of one process, in KiB; see `peak_memory`."""
    return peak_memory(words, env, cwd=cwd).resident


class _Deadline:
    """Kills one process when its time is up; wait4 itself knows no timeout."""

    def __init__(self, pid: int, timeout_s: float) -> None:
        import signal
        import threading

        self._timer = threading.Timer(timeout_s, os.kill, (pid, signal.SIGKILL))
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()


def _status(pid: int) -> dict[str, int]:
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in ("VmHWM", "RssAnon"):
            found[name] = int(rest.split()[0])
    return found


def _named(words: Sequence[str]) -> str:
    shown = " ".join([Path(words[0]).name, *words[1:8]])
    return f"'{shown}{' …' if len(words) > 8 else ''}'"


def _reason(errors: str) -> str:
    """The line that says why: remem's own message, or the end of a traceback."""
    lines = [line for line in errors.splitlines() if line.strip()]
    if not lines:
        return "nothing on stderr"
    return next((line for line in lines if line.startswith("remem:")), lines[-1])
