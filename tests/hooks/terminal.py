"""Real shells for the tests of their hooks: under a pseudo-terminal, or fed from a pipe."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from remem.hooks.shell.scripts import script

PROMPT = "@=@"  # no command of a test prints it
INTERRUPT = "\x03"


def need(shell: str) -> str:
    """Path of a shell; the test is skipped where it is missing."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found


class Desk:
    """A home folder with a store, where shells are started.

    Attributes:
        home: home folder of the shells.
        store: folder of the store; only its spool exists unless a test makes one.
        work: folder in which shells start.
        env: environment of the shells; change it at will.
    """

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.store = folder / "store"
        self.work = folder / "work"
        for path in (self.home, self.work, self.store / "spool"):
            path.mkdir(parents=True, mode=0o700)
        self.store.chmod(0o700)
        # Without it fish reads every page of the manual in the background, for half a minute.
        (self.home / ".local/share/fish/generated_completions").mkdir(parents=True)
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.runtime = Path(tempfile.mkdtemp(prefix="remem-test-", dir=memory))
        atexit.register(shutil.rmtree, self.runtime, ignore_errors=True)
        self.env = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.runtime),
            "TZ": "UTC",
        }

    def hook(self, shell: str) -> Path:
        """The hook of a shell for this store, as a file."""
        path = self.home / f"hook.{shell}"
        path.write_text(script(shell, str(self.store)))
        return path

    @property
    def files(self) -> list[Path]:
        """Files that shells made in the spool, oldest first."""
        return sorted((self.store / "spool").glob("*.jsonl"))

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Every line of the spool."""
        return [json.loads(line) for file in self.files for line in file.read_bytes().splitlines()]

    @property
    def commands(self) -> list[str]:
        """Every command of the spool."""
        return [line["cmd"] for line in self.lines if "cmd" in line]

    @property
    def skipped(self) -> list[str]:
        """The reasons of what was skipped, in order."""
        return [line["skip"] for line in self.lines if "skip" in line]

    def rc(self, shell: str, text: str) -> list[str]:
        """Words that start an interactive shell with this start-up file."""
        path = need(shell)
        if shell == "bash":
            (self.home / "rc").write_text(text)
            return [path, "--noprofile", "--rcfile", str(self.home / "rc"), "-i"]
        if shell == "zsh":
            (self.home / ".zshrc").write_text(text)
            return [path, "-d", "-i"]
        config = self.home / ".config" / "fish"
        config.mkdir(parents=True, exist_ok=True)
        (config / "config.fish").write_text(text)
        return [path, "-i"]

    def feed(self, lines: str, *, rc: str | None = None, **env: str) -> str:
        """Feed an interactive bash from a pipe and return what it printed."""
        if rc is None:
            rc = f". {self.hook('bash')}\n"
        words = self.rc("bash", rc)
        done = subprocess.run(
            [*words[:-1], "--noediting", words[-1]],
            input=lines.encode("utf-8", "surrogateescape"),
            capture_output=True,
            env={**self.env, **env},
            cwd=self.work,
            timeout=60,
            check=False,
        )
        return done.stdout.decode("utf-8", "surrogateescape")


class Terminal:
    """A shell under a pseudo-terminal; `run` types a line and waits for the next prompt."""

    def __init__(self, words: list[str], desk: Desk, env: dict[str, str] | None = None) -> None:
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.chdir(desk.work)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
            os.execve(words[0], words, {**desk.env, **(env or {})})
        self.seen = ""
        self.wait_for(PROMPT)

    def wait_for(self, text: str, *, within_s: float = 10.0) -> str:
        """What is printed until a text comes; it is taken away."""
        deadline = time.monotonic() + within_s
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], 0.05)
            if ready:
                self.seen += os.read(self.fd, 1 << 16).decode("utf-8", "replace")
            assert time.monotonic() < deadline, f"no {text!r} in {self.seen!r}"
        before, _, self.seen = self.seen.partition(text)
        return before.replace("\r", "")

    def type(self, text: str) -> None:
        """Type something."""
        data = text.encode()
        while data:
            data = data[os.write(self.fd, data[:512]) :]

    def run(self, line: str, *, within_s: float = 10.0) -> str:
        """Type a line; what it printed, without its echo."""
        self.type(line + "\n")
        printed = self.wait_for(PROMPT, within_s=within_s)
        return printed.partition("\n")[2]

    def interrupt(self) -> str:
        """Press Ctrl-C and wait for the prompt."""
        self.type(INTERRUPT)
        return self.wait_for(PROMPT)

    def close(self) -> None:
        """Hang up and wait for the shell to end."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGHUP)
        os.close(self.fd)
        deadline = time.monotonic() + 5
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                return
            time.sleep(0.01)

    def __enter__(self) -> Terminal:
        """Use it in a with statement."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()
