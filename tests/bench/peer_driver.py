"""Runs command lines of an installed program in one process; the peer's own interpreter runs it.

Usage: ``PYTHON -I peer_driver.py PROGRAM``.  Each line read is a JSON object with ``words`` and
maybe ``stdin`` and ``env``; for each a JSON object is written: ``code``, ``seconds``, ``cpu``,
``out`` and ``err``.  The program is imported once, so that what is timed is its work and not the
start of an interpreter.  ``cpu`` counts children too, and processes left behind in the background.
It uses nothing but the standard library.
"""

import contextlib
import importlib.metadata
import io
import json
import os
import signal
import sys
import time
import traceback

_foreign: "set[tuple[str, str]]" = set()  # a HOME, and a process seen not to belong to it
_OWN_TIMES = slice(11, 15)  # of /proc/PID/stat, after the name: own time and that of ended children


def belonging(home: str) -> "list[int]":
    """Ids of the running processes whose environment has this HOME, without the caller's own.

    A measured program has a HOME of its own, so this is what it started and left running.  Where
    there is no /proc nothing is found.
    """
    found = []
    mark = b"HOME=" + os.fsencode(home)
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if not name.isdigit() or (home, name) in _foreign or int(name) == os.getpid():
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    own = mark in file.read().split(b"\0")
            except OSError:
                continue
            if own:
                found.append(int(name))
            else:
                _foreign.add((home, name))
    return found


def spent(home: str) -> float:
    """Processor seconds of the processes that belong to a HOME, without the caller's own."""
    ticks = 0
    for pid in belonging(home):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
            ticks += sum(int(part) for part in file.read().rpartition(b")")[2].split()[_OWN_TIMES])
    return ticks / float(os.sysconf("SC_CLK_TCK"))


def end(home: str) -> None:
    """End the processes that belong to a HOME: politely, and after five seconds by force."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        for pid in belonging(home):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        until = time.monotonic() + 5.0
        while belonging(home) and time.monotonic() < until:
            time.sleep(0.05)


def main() -> None:
    """Read command lines until there are no more."""
    name = sys.argv[1]
    home = os.environ.get("HOME", "")
    answers = sys.stdout
    (found,) = importlib.metadata.entry_points(group="console_scripts", name=name)
    program = found.load()
    for line in sys.stdin:
        asked = json.loads(line)
        written = [io.BytesIO(), io.BytesIO()]
        out, err = (io.TextIOWrapper(stream, "utf-8") for stream in written)
        given = sys.stdin
        sys.argv = [name, *asked["words"]]
        sys.stdin = io.TextIOWrapper(io.BytesIO(asked.get("stdin", "").encode()), "utf-8")
        before = {key: os.environ.get(key) for key in asked.get("env", {})}
        os.environ.update(asked.get("env", {}))
        code = 0
        others = spent(home)
        cpu = _own()
        began = time.perf_counter()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = program() or 0
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            except Exception:
                code = 70
                traceback.print_exc()
        seconds = time.perf_counter() - began
        cpu = _own() - cpu
        cpu += spent(home) - others
        for key, value in before.items():
            os.environ.pop(key, None)
            if value is not None:
                os.environ[key] = value
        sys.stdin = given
        for stream in (out, err):
            stream.flush()
        text = [stream.getvalue().decode() for stream in written]
        said = {"code": code, "seconds": seconds, "cpu": cpu, "out": text[0], "err": text[1]}
        print(json.dumps(said), file=answers, flush=True)


def _own() -> float:
    """Processor seconds of this process and of its ended children."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


if __name__ == "__main__":
    main()
