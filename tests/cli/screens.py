"""A pseudo-terminal with a program in it, and the screen that its output makes.

The emulator knows what remem writes: cursor home, erasing, colours, the other screen; any other
escape sequence fails the test.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

from remem.cli.render import width

from .conftest import REMEM, Runner, normalise

_BEGUN = re.compile(r"\x1b(\[\??[0-9;]*)?")
_CSI = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])")
QUIET_S = 0.12  # without output for so long it waits for a key
PATIENCE_S = 30.0


class Screen:
    """What a terminal of some size shows."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.lines = columns, lines
        self.rows: list[list[str]] = []
        self.clear()

    def clear(self) -> None:
        self.rows = [[" "] * self.columns for _ in range(self.lines)]
        self.row = self.column = 0

    def feed(self, text: str) -> str:
        """Take output in; what is left is the beginning of an escape sequence."""
        at = 0
        while at < len(text):
            char = text[at]
            if char == "\x1b":
                found = _CSI.match(text, at)
                if found is None and _BEGUN.fullmatch(text, at):
                    return text[at:]
                assert found, f"an unknown sequence: {text[at : at + 12]!r}"
                self._control(*found.groups())
                at = found.end()
                continue
            self._put(char)
            at += 1
        return ""

    def _control(self, numbers: str, letter: str) -> None:
        row = self.rows[self.row]
        if letter == "H" and not numbers:
            self.row = self.column = 0
        elif letter == "K" and not numbers:
            row[self.column :] = [" "] * (self.columns - self.column)
        elif letter == "J" and not numbers:
            row[self.column :] = [" "] * (self.columns - self.column)
            for below in range(self.row + 1, self.lines):
                self.rows[below] = [" "] * self.columns
        elif letter in "hl" and numbers == "?1049":
            self.clear()
        else:
            assert letter == "m", f"an unknown sequence: {numbers}{letter}"

    def _put(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self.row += 1
            if self.row == self.lines:
                self.rows = [*self.rows[1:], [" "] * self.columns]
                self.row -= 1
        else:
            assert char.isprintable(), f"a raw control character: {char!r}"
            wide = width(char)
            if self.column + wide > self.columns:
                self._put("\r")
                self._put("\n")
            self.rows[self.row][self.column] = char
            for beside in range(1, wide):
                self.rows[self.row][self.column + beside] = ""
            self.column += wide

    @property
    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self.rows).rstrip() + "\n"


class Terminal:
    """remem in a pseudo-terminal.

    Attributes:
        raw: everything that it wrote.
        draws: what it writes is drawn on the screen.
        code: its exit status, once it has ended.
    """

    def __init__(
        self,
        run: Runner,
        *words: str,
        columns: int = 80,
        lines: int = 24,
        draws: bool = True,
        **env: str,
    ) -> None:
        self.run = run
        self.draws = draws
        self._text = ""
        self.screen = Screen(columns, lines)
        self.raw = ""
        self.code: int | None = None
        self._bytes = b""
        given = run.environment({"TERM": "xterm-256color", **env})
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(run.cwd)
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
                os.execve(sys.executable, [*REMEM, *words], given)
            finally:
                os._exit(127)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    # -- talking ------------------------------------------------------------------------------

    def until(self, wanted: str) -> str:
        """Read until the screen shows some words, and nothing more comes; the screen."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            more = self._read(QUIET_S)
            if more is None or (not more and wanted in self.screen.text):
                break
        assert wanted in self.screen.text, f"no '{wanted}' on\n{self.screen.text}"
        return self.shown

    def press(self, keys: str, wanted: str = "") -> str:
        """Type, and wait for some words."""
        os.write(self.master, keys.encode())
        return self.until(wanted)

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        self.screen.columns, self.screen.lines = columns, lines
        self.screen.clear()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def end(self) -> int:
        """Read to the end; the exit status."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self._read(0.5) is not None:
            continue
        _, status = os.waitpid(self.pid, 0)
        os.close(self.master)
        self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def hang_up(self) -> int:
        """Close the terminal under it; the exit status."""
        os.close(self.master)
        _, status = os.waitpid(self.pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def _read(self, wait_s: float) -> bool | None:
        """True when something came, False when nothing did, None at the end."""
        if not select.select([self.master], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return None
        if not data:
            return None
        self._bytes += data
        text = self._bytes.decode("utf-8", "ignore")
        self._bytes = b"" if text.encode() == self._bytes else self._bytes
        if self._bytes:
            return True  # a character is not whole yet
        self.raw += text
        if self.draws:
            self._text = self.screen.feed(self._text + text)
        return True

    @property
    def shown(self) -> str:
        """The screen with ids and moments made alike."""
        return normalise(self.screen.text, self.run.places)
