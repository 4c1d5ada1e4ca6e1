r"""The history file of zsh: a command a line, plain or extended (": 1700000000:5;command").

A line feed within a command is written behind a backslash.  Bytes that zsh uses itself are written
as 0x83 and the byte with bit 5 turned.  In the plain form a backslash stands before a command that
begins with a colon; a blank is added to a command that ends with a backslash.

The second number of the extended form is how long the command ran, 0 where zsh wrote it before it
ended: a duration of 0 is unknown.

Source: zshoptions(1), EXTENDED_HISTORY; what zsh 5.9 writes and reads back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from remem.hooks.sources._history import UNFINISHED, Commands, Line, instant, lines, state
from remem.hooks.sources._record import LIMIT_B, Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.hooks.sources._json import Json

TOOL = "zsh"

_EXTENDED = re.compile(rb": *(\d+):(\d+);")
_META = re.compile(rb"\x83([\x20\x80-\x82\xa3-\xbf])")
_PADDED = re.compile(rb"\\ +\Z")


def read(
    stream: BinaryIO, name: str, *, since: int | None = None, limit_b: int = LIMIT_B
) -> Iterator[Record]:
    """Read a history of zsh.

    Args:
        stream: the bytes.
        name: what to call the stream in places (".zsh_history").
        since: microseconds UTC; older commands are skipped, those of unknown time are not.
        limit_b: bytes that one command may have.

    Yields:
        One record for each command, in their order.
    """
    commands = Commands(name, TOOL, since, limit_b)
    parts: list[Line] = []
    size_b = 0
    for line in lines(stream, limit_b):
        # Of a command that is too large anyway, only the first lines are held.
        if size_b <= limit_b:
            parts.append(line)
        size_b += len(line.data) + 1
        if line.data.endswith(b"\\") and line.whole and not line.long:
            continue
        if not line.whole and state(stream) == UNFINISHED:
            yield commands.skipped(parts[0].number, UNFINISHED)
        else:
            yield _command(commands, parts, size_b, limit_b)
        parts, size_b = [], 0
    if parts:
        yield _command(commands, parts, size_b, limit_b)
    if (changed := commands.ending(stream)) is not None:
        yield changed


def _command(commands: Commands, parts: list[Line], size_b: int, limit_b: int) -> Record:
    number = parts[0].number
    if size_b > 2 * limit_b or any(part.long for part in parts):
        return commands.too_long(number)
    data = b"\n".join([*(part.data[:-1] for part in parts[:-1]), parts[-1].data])
    if _PADDED.search(data):
        data = data[:-1]
    asserted: int | None = None
    meta: Json = {}
    if head := _EXTENDED.match(data):
        asserted = instant(head[1])
        data = data[head.end() :]
        if (lasted := int(head[2][:18])) > 0:
            meta["duration"] = float(lasted)
    elif data.startswith(b"\\:"):
        data = data[1:]
    return commands.record(plain(data), number, asserted=asserted, meta=meta)


def plain(data: bytes) -> bytes:
    """Undo how zsh writes the bytes that it uses itself."""
    if b"\x83" not in data:
        return data
    return _META.sub(lambda found: bytes((found[1][0] ^ 0x20,)), data)
