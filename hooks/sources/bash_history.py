"""The history file of bash: a command a line or, where it has time stamps, one between two of them.

A stamp is a line of "#" and epoch seconds; all lines up to the next stamp are one command, as bash
itself reads them; more than `MAX_JOINED` of them were written by a shell without stamps.  Without
stamps the file does not say where a command of more than one line ends.
Then lines are joined for as long as a quote or a here-document is open, or a backslash asks for
more; what nothing closes stands by itself.

Source: bash(1), HISTORY (HISTTIMEFORMAT, cmdhist, lithist).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from remem.hooks.sources._history import UNFINISHED, Commands, Line, instant, lines, state
from remem.hooks.sources._record import LIMIT_B, Record

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOL = "bash"
MAX_JOINED = 500  # lines looked at for the end of what is open

_STAMP = re.compile(rb"#(\d+)\s*")
_TOKEN = re.compile(
    rb"""\\(?P<last>\Z)?|\$?'|"|<<<|<<(?P<tabs>-?)[ \t]*(?P<word>'[^']*'|"[^"]*"|\\?[\w.+-]+)"""
    rb"|(?:(?<=[\s;&|])|\A)#"
)
_MARKS = re.compile(rb"['\"\\]")


def read(
    stream: BinaryIO, name: str, *, since: int | None = None, limit_b: int = LIMIT_B
) -> Iterator[Record]:
    """Read a history of bash.

    Args:
        stream: the bytes.
        name: what to call the stream in places (".bash_history").
        since: microseconds UTC; older commands are skipped, those of unknown time are not.
        limit_b: bytes that one command may have.

    Yields:
        One record for each command, in their order.
    """
    commands = Commands(name, TOOL, since, limit_b)
    block: list[Line] = []
    stamp: bytes | None = None
    for line in lines(stream, limit_b):
        if not line.long and (found := _STAMP.fullmatch(line.data)):
            yield from _block(commands, stamp, block, limit_b)
            stamp, block = found[1], []
        elif stamp is None and len(block) > MAX_JOINED:
            block.append(line)
            taken = _first(block[: MAX_JOINED + 1])
            yield _command(commands, None, block[:taken], limit_b)
            del block[:taken]
        else:
            block.append(line)
    if block and not block[-1].whole and state(stream) == UNFINISHED:
        last = block.pop()
        yield from _block(commands, stamp if block else None, block, limit_b)
        yield commands.skipped(last.number, UNFINISHED)
    else:
        yield from _block(commands, stamp, block, limit_b)
    if (changed := commands.ending(stream)) is not None:
        yield changed


def _block(
    commands: Commands, stamp: bytes | None, block: list[Line], limit_b: int
) -> Iterator[Record]:
    """The command of a stamp, or the commands of lines before any stamp."""
    at = 0
    while at < len(block):
        whole = stamp is not None and at == 0 and len(block) <= MAX_JOINED
        taken = len(block) if whole else _first(block[at : at + MAX_JOINED + 1])
        yield _command(commands, None if at else stamp, block[at : at + taken], limit_b)
        at += taken


def _command(commands: Commands, stamp: bytes | None, block: list[Line], limit_b: int) -> Record:
    size_b = sum(len(line.data) + 1 for line in block)
    if size_b > limit_b + 1 or any(line.long for line in block):
        return commands.too_long(block[0].number)
    asserted = None if stamp is None else instant(stamp)
    data = b"\n".join(line.data for line in block)
    return commands.record(data, block[0].number, asserted=asserted)


def _first(block: list[Line]) -> int:
    """Count the lines of the first command."""
    scan = Open()
    for count, line in enumerate(block, 1):
        if line.long:
            break
        if not scan.after(line.data):
            return count
    return 1


class Open:
    """What is open after some lines of a command: a quote, here-documents, a last backslash."""

    def __init__(self) -> None:
        """Begin a command."""
        self._quote = b""
        self._documents: list[tuple[bytes, bool]] = []

    def after(self, line: bytes) -> bool:
        """Read a line and say whether the command goes on."""
        if self._documents and not self._quote:
            end, tabs = self._documents[0]
            if (line.lstrip(b"\t") if tabs else line) == end:
                del self._documents[0]
            return bool(self._documents)
        goes_on = self._read(line)
        return goes_on or bool(self._quote) or bool(self._documents)

    def _read(self, line: bytes) -> bool:
        """Read a line of the command itself and say whether a backslash ends it."""
        at = 0
        while True:
            if self._quote:
                at = self._close(line, at)
                if at < 0:
                    return False
                continue
            token = _TOKEN.search(line, at)
            if token is None:
                return False
            at = token.end()
            sign = token[0]
            if token["word"] is not None:
                self._documents.append((_MARKS.sub(b"", token["word"]), bool(token["tabs"])))
            elif sign.startswith(b"\\"):
                if token["last"] is not None:
                    return True
                at += 1
            elif sign in (b"'", b"$'", b'"'):
                self._quote = sign
            elif sign == b"#":
                return False

    def _close(self, line: bytes, at: int) -> int:
        """Find what closes the quote; the place behind it, -1 where it stays open."""
        end = self._quote[-1:]
        while at < len(line):
            if line[at : at + 1] == b"\\" and self._quote != b"'":
                at += 2
            elif line[at : at + 1] == end:
                self._quote = b""
                return at + 1
            else:
                at += 1
        return -1
