"""A terminal as a page and keys: drawn at once, redrawn when its size changes, left as it was.

A page is a list of rows, a row a list of (text, style) pieces; what is in the texts was escaped
before.  Styles are colours and bold only, and none where colour is not wanted; a terminal that
knows nothing (``TERM=dumb``) gets rows one under the other and no escape sequence at all.

Control-C stays an interrupt: the terminal is put back and `KeyboardInterrupt` goes on its way.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from contextlib import contextmanager
from typing import TYPE_CHECKING

from remem.cli.render import width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    Piece = tuple[str, str]
    Row = list[Piece]

STYLES = {
    "title": "1",
    "name": "36",
    "mark": "1;4",
    "old": "31",
    "new": "32",
    "warn": "1;33",
    "dim": "2",
}
RESIZED, ENDED, ESCAPE = "resized", "ended", "escape"
ENTER, ERASE, UP, DOWN, PAGE_UP, PAGE_DOWN = "enter", "erase", "up", "down", "pageup", "pagedown"
_SEQUENCES = {"[A": UP, "OA": UP, "[B": DOWN, "OB": DOWN, "[5~": PAGE_UP, "[6~": PAGE_DOWN}
_CONTROLS = {"\n": ENTER, "\r": ENTER, "\x7f": ERASE, "\b": ERASE, "\x04": ENDED}
_ESCAPE_S = 0.05  # within which the rest of an escape sequence comes
_SIZE = (80, 24)  # where the terminal does not say
_ENTER, _LEAVE = "\x1b[?1049h", "\x1b[?1049l"


def can_draw() -> bool:
    """True when a person sits before both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty()


class Screen:
    """The terminal of standard input and output; a context manager."""

    def __init__(self, *, colour: bool, dumb: bool) -> None:
        """Take how it may be written to.

        Args:
            colour: styles may be shown.
            dumb: no escape sequence at all.
        """
        self._colour = colour and not dumb
        self._dumb = dumb
        self._in, self._out = sys.stdin.fileno(), sys.stdout.fileno()
        self._waiting = b""
        self._last: list[str] = []

    def __enter__(self) -> Screen:
        """Take the terminal over."""
        self._before = termios.tcgetattr(self._in)
        self._wake, self._woken = os.pipe()
        for end in (self._wake, self._woken):
            os.set_blocking(end, False)
        self._handlers = {n: signal.signal(n, _nothing) for n in (signal.SIGWINCH, signal.SIGCONT)}
        self._earlier = signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        self._begin()
        return self

    def __exit__(self, *error: object) -> None:
        """Give it back as it was."""
        self._end()
        signal.set_wakeup_fd(self._earlier)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._woken)

    def _begin(self) -> None:
        tty.setcbreak(self._in, termios.TCSADRAIN)
        self._last = []
        if not self._dumb:
            self._write(_ENTER)

    def _end(self) -> None:
        try:
            if not self._dumb:
                self._write(_LEAVE)
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._before)
        except (OSError, termios.error):
            return  # the terminal is gone

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Give the terminal to somebody else for a while: an editor, a passphrase."""
        self._end()
        try:
            yield
        finally:
            self._begin()

    # -- writing ------------------------------------------------------------------------------

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            found = os.get_terminal_size(self._out)
        except OSError:
            return _SIZE
        return (found.columns or _SIZE[0], found.lines or _SIZE[1])

    def show(self, rows: Sequence[Row]) -> None:
        """Draw a page; what does not fit is left away."""
        columns, lines = self.size
        drawn = [self._drawn(row, columns) for row in rows[:lines]]
        if self._dumb:
            drawn = [row for row in drawn if row]
            if drawn != self._last:
                self._write("\n" + "\n".join(drawn) + "\n")
        else:
            self._write("\x1b[H" + "\r\n".join(f"{row}\x1b[K" for row in drawn) + "\x1b[J")
        self._last = drawn

    def _drawn(self, row: Row, columns: int) -> str:
        made, room = "", columns
        for text, style in row:
            cut = _cut(text, room)
            room -= width(cut)
            if style and self._colour:
                cut = f"\x1b[{STYLES[style]}m{cut}\x1b[0m"
            made += cut
        return made

    @property
    def coloured(self) -> bool:
        """Styles are shown, so that nothing else has to mark what they mark."""
        return self._colour

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(self._out, data) :]

    # -- keys ---------------------------------------------------------------------------------

    def key(self) -> str:
        """The next key: a character, or one of the names above.

        RESIZED when the page has to be drawn again, ENDED when the terminal is gone.
        """
        while True:
            if self._waiting:
                found = self._taken()
                if found:
                    return found
            ready, _, _ = select.select([self._in, self._wake], [], [])
            if self._wake in ready:
                self._drain()
                if termios.tcgetattr(self._in)[3] & termios.ICANON:
                    self._begin()  # it was stopped and continued by a shell
                return RESIZED
            if not self._read():
                return ENDED

    def _drain(self) -> None:
        try:
            while os.read(self._wake, 64):
                pass
        except BlockingIOError:
            return

    def _read(self) -> bool:
        try:
            data = os.read(self._in, 1024)
        except OSError:
            return False
        self._waiting += data
        return bool(data)

    def _taken(self) -> str:
        """The first key of what was read; empty while it is not whole."""
        if self._waiting[:1] == b"\x1b":
            return self._sequence()
        for length in range(1, min(4, len(self._waiting)) + 1):
            try:
                char = self._waiting[:length].decode()
            except UnicodeDecodeError:
                continue
            self._waiting = self._waiting[length:]
            return _CONTROLS.get(char, char)
        if len(self._waiting) >= 4:
            self._waiting = self._waiting[1:]  # it is no UTF-8
        return ""

    def _sequence(self) -> str:
        if len(self._waiting) == 1 and select.select([self._in], [], [], _ESCAPE_S)[0]:
            self._read()
        text = self._waiting.decode("ascii", "replace")
        for sequence, name in _SEQUENCES.items():
            if text.startswith(sequence, 1):
                self._waiting = self._waiting[1 + len(sequence) :]
                return name
        if text[1:2] in ("[", "O"):
            self._waiting = b""  # some other key, of no use here
            return RESIZED
        self._waiting = self._waiting[1:]
        return ESCAPE

    def ask(self, rows: Sequence[Row], prompt: str, text: str = "") -> str | None:
        """A line of text typed below a page; None when it was given up with Escape.

        Args:
            rows: the page.
            prompt: what is asked.
            text: what stands there to begin with.
        """
        while True:
            columns, lines = self.size
            room = max(1, columns - width(prompt) - 2)
            tail = text
            while width(tail) > room:
                tail = tail[1:]
            self.show([*rows[: max(0, lines - 2)], [], [(prompt, "name"), (f" {tail}_", "")]])
            key = self.key()
            if key == ENTER:
                return text.strip()
            if key in (ESCAPE, ENDED):
                return None
            if key == ERASE:
                text = text[:-1]
            elif key == "\x15":  # control-U
                text = ""
            elif key == "\x17":  # control-W
                text = text.rstrip().rpartition(" ")[0]
            elif len(key) == 1 and key.isprintable():
                text += key


def folded(row: Row, columns: int, indent: str = "") -> list[Row]:
    """A row broken at white space so that each part fits; further parts are indented."""
    made: list[Row] = [[]]
    room = columns
    for text, style in row:
        for word in _words(text):
            size = width(word)
            if size > room and made[-1]:
                made.append([(indent, "")] if indent else [])
                room = columns - len(indent)
                word = word.lstrip(" ")
                size = width(word)
            while size > room > 0:  # longer than a whole row
                cut = _cut(word, room)
                made[-1].append((cut, style))
                made.append([(indent, "")] if indent else [])
                room = columns - len(indent)
                word = word[len(cut) :]
                size = width(word)
            if word:
                made[-1].append((word, style))
                room -= size
    return made


def _words(text: str) -> Iterator[str]:
    """A text in pieces between which it may be broken: each word with the space before it."""
    start = 0
    for at in range(1, len(text)):
        if text[at] == " " and text[at - 1] != " ":
            yield text[start:at]
            start = at
    if text:
        yield text[start:]


def _cut(text: str, room: int) -> str:
    """The beginning of a text that fits some columns."""
    if text.isascii():
        return text[: max(0, room)]
    used = 0
    for at, char in enumerate(text):
        used += width(char)
        if used > room:
            return text[:at]
    return text


def _nothing(number: int, frame: FrameType | None) -> None:
    """Let a signal do no more than wake the reader."""
