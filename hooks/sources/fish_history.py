r"""The history file of fish: what looks like YAML and is not.

An entry is "- cmd: " and the command with "\\" for a backslash and "\n" for a line feed, then
"  when: " with epoch seconds and, where the command named files, "  paths:" with one a line
("    - name").  Nothing else is escaped, whatever YAML would make of it.

Source: what fish 3.6 writes; fish 4 writes the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from remem.hooks.sources._history import UNFINISHED, Commands, instant, lines, state
from remem.hooks.sources._record import LIMIT_B, Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.hooks.sources._json import Json

TOOL = "fish"

_CMD = b"- cmd: "
_WHEN = re.compile(rb"\s+when:\s*(\d+)\s*")
_PATHS = re.compile(rb"\s+paths:\s*")
_PATH = re.compile(rb"\s+- (.*)", re.DOTALL)
_ESCAPE = re.compile(rb"\\([\\n])")


class _Entry:
    __slots__ = ("data", "long", "number", "paths", "when", "whole")

    def __init__(self, number: int, data: bytes, *, long: bool, whole: bool) -> None:
        self.number = number
        self.data = data
        self.long = long
        self.whole = whole
        self.when: bytes | None = None
        self.paths: list[bytes] = []


def read(
    stream: BinaryIO, name: str, *, since: int | None = None, limit_b: int = LIMIT_B
) -> Iterator[Record]:
    """Read a history of fish.

    Args:
        stream: the bytes.
        name: what to call the stream in places ("fish_history").
        since: microseconds UTC; older commands are skipped, those of unknown time are not.
        limit_b: bytes that one command may have.

    Yields:
        One record for each command, in their order, and one for each line that belongs to none.
    """
    commands = Commands(name, TOOL, since, limit_b)
    entry: _Entry | None = None
    for line in lines(stream, limit_b + len(_CMD)):
        if line.data.startswith(_CMD):
            if entry is not None:
                yield _command(commands, entry)
            data = line.data[len(_CMD) :]
            entry = _Entry(line.number, data, long=line.long, whole=line.whole)
        elif entry is None:
            if line.data.strip():
                yield commands.rejected(line.number, "no line of a fish history")
        elif found := _WHEN.fullmatch(line.data):
            entry.when, entry.whole = found[1], line.whole
        elif found := _PATH.fullmatch(line.data):
            entry.paths.append(found[1])
        elif line.data.strip() and not _PATHS.fullmatch(line.data) and line.whole:
            # Later versions may add lines; what is no line of an entry is named.
            if not line.data.startswith(b" "):
                yield commands.rejected(line.number, "no line of a fish history")
        elif not line.whole:
            entry.whole = False
    if entry is not None:
        if not entry.whole and state(stream) == UNFINISHED:
            yield commands.skipped(entry.number, UNFINISHED)
        else:
            yield _command(commands, entry)
    if (changed := commands.ending(stream)) is not None:
        yield changed


def _command(commands: Commands, entry: _Entry) -> Record:
    if entry.long:
        return commands.too_long(entry.number)
    meta: Json = {}
    if entry.paths:
        meta["paths"] = [plain(path).decode(errors="backslashreplace") for path in entry.paths]
    asserted = None if entry.when is None else instant(entry.when)
    return commands.record(plain(entry.data), entry.number, asserted=asserted, meta=meta)


def plain(data: bytes) -> bytes:
    """Undo how fish writes backslashes and line feeds."""
    return _ESCAPE.sub(lambda found: b"\n" if found[1] == b"n" else b"\\", data)
