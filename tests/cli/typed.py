"""Running remem as a person at a terminal of his own does: questions on /dev/tty, answers typed."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .conftest import REMEM, Runner

PASSPHRASE = "correct horse battery"
PROMPT = b": "


class Typed:
    """What was left: exit status, stdout, stderr, and what the terminal showed."""

    def __init__(self, code: int, out: bytes, err: bytes, screen: bytes) -> None:
        self.code = code
        self.out = out.decode()
        self.err = err.decode()
        self.screen = screen.decode().replace("\r", "")

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def shown(self) -> str:
        return f"exit {self.code}\n{self.out}--- err\n{self.err}--- screen\n{self.screen}"


def typed(
    run: Runner,
    *words: str | Path,
    answers: Sequence[str] = (PASSPHRASE,),
    code: int | None = 0,
    stdin: bytes = b"",
    cwd: Path | None = None,
    end: bytes = b"\r",
) -> Typed:
    """Run a command whose terminal is a pseudo-terminal, and answer its questions in order.

    Standard input, output and error are pipes: only /dev/tty leads to the person.
    """
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    in_read, in_write = os.pipe()
    child, master = pty.fork()
    if child == 0:
        try:
            # One descriptor stays, or the terminal would seem hung up before it is opened.
            terminal = os.dup(0)
            for handle, number in ((in_read, 0), (out_write, 1), (err_write, 2), (terminal, 3)):
                os.dup2(handle, number)
            os.closerange(4, 64)
            os.chdir(cwd or run.cwd)
            given = [*run.prefix, *REMEM, *map(str, words)]
            os.execve(sys.executable, given, run.environment())
        finally:
            os._exit(127)
    for handle in (in_read, out_write, err_write):
        os.close(handle)
    os.write(in_write, stdin)
    os.close(in_write)
    waiting = list(answers)
    read = {out_read: bytearray(), err_read: bytearray(), master: bytearray()}
    seen = 0
    live = set(read)
    deadline = time.monotonic() + 30
    while live and time.monotonic() < deadline:
        for handle in select.select(list(live), [], [], 0.5)[0]:
            try:
                data = os.read(handle, 65536)
            except OSError:
                data = b""
            if not data:
                live.discard(handle)
            read[handle] += data
        screen = bytes(read[master])
        if waiting and screen[seen:].endswith(PROMPT):
            seen = len(screen)
            os.write(master, waiting.pop(0).encode() + end)
    if live:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for handle in read:
        os.close(handle)
    done = Typed(status, bytes(read[out_read]), bytes(read[err_read]), bytes(read[master]))
    if code is not None:
        assert done.code == code, done.shown
        assert not waiting, f"never asked: {waiting}\n{done.shown}"
    assert "Traceback" not in done.err + done.screen, done.shown
    return done


def protect(run: Runner) -> str:
    """Protect the store of a runner; its verifier key."""
    done = typed(run, "owner", "protect", answers=[PASSPHRASE, PASSPHRASE])
    (line,) = [line for line in done.out.splitlines() if line.startswith("verifier key")]
    return line.split()[-1]
