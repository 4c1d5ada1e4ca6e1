"""What the histories of the shells share: one record a command, and how a command is known again.

A command of known time is named by its second and its words (`command_id`), wherever it was read:
in the history of the shell, in another program's database, or by our own hook.  Equal commands of
one second are numbered.  A command of unknown time has no name but its words: the same words again
tell nothing new, so they are kept once.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

from remem.hooks.sources._record import Record, admit
from remem.objects.admit import normalise
from remem.objects.model import Incoming, Rejected, Skipped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.hooks.sources._json import Json

URI = "shell:"  # one for all shells: a command may be read from more than one history
KIND = "command"
BLANK = "blank"
UNFINISHED = "unfinished: it is still being written"
CHANGED = "it was written anew while it was read: import it again"

_LATEST_S = 253_402_300_799  # the end of the year 9999


def command_id(asserted: int, text: str, nth: int = 0) -> str:
    """Name a command that was run at a known time.

    The digest is of what may be kept: one of a whole command would let its password be guessed.

    Args:
        asserted: when it was started, microseconds UTC; only the second counts.
        text: the command.
        nth: how many equal commands of that second came before it.
    """
    from remem.objects.names import command_name
    from remem.objects.redact import clean

    return command_name(asserted, clean(normalise(text))[0], nth)


class Line:
    """A line of a history, without its end.

    Attributes:
        number: from 1 on.
        data: its bytes; of a line above the limit, only the first ones.
        whole: a line feed ended it.
        long: it is above the limit.
    """

    __slots__ = ("data", "long", "number", "whole")

    def __init__(self, number: int, data: bytes, *, whole: bool, long: bool) -> None:
        """Take the parts."""
        self.number = number
        self.data = data
        self.whole = whole
        self.long = long


def lines(stream: BinaryIO, limit_b: int) -> Iterator[Line]:
    """Read lines of at most so many bytes; of a longer one the rest is passed over."""
    number = 0
    while data := stream.readline(limit_b + 1):
        number += 1
        long = len(data) > limit_b and not data.endswith(b"\n")
        end = data[-1:]
        while long and end != b"\n" and (more := stream.readline(1 << 20)):
            end = more[-1:]
        yield Line(number, data.removesuffix(b"\n"), whole=end == b"\n", long=long)
        if end != b"\n":
            return  # what comes behind it from now on belongs to it


def state(stream: BinaryIO) -> str:
    """Say what became of a file while it was read to its end: "", `UNFINISHED` or `CHANGED`."""
    try:
        size, at = os.fstat(stream.fileno()).st_size, stream.tell()
    except (OSError, ValueError):  # a pipe, or bytes in memory
        return ""
    return UNFINISHED if size > at else CHANGED if size < at else ""


class Commands:
    """Makes the records of one history."""

    def __init__(self, name: str, tool: str, since: int | None, limit_b: int) -> None:
        """Take the name of the input, the program that wrote it, and the bounds."""
        self._name = name
        self._tool = tool
        self._since = since
        self._limit_b = limit_b
        self._seen: dict[tuple[int, str], int] = {}

    def record(
        self,
        data: bytes,
        place: int | str,
        *,
        asserted: int | None = None,
        meta: Json | None = None,
    ) -> Record:
        """Make the record of a command.

        Args:
            data: its bytes.
            place: line or row in the input.
            asserted: when it was started, microseconds UTC, or None for unknown.
            meta: exit, duration, cwd and the like.
        """
        where = f"{self._name}:{place}"
        try:
            text, raw = data.decode(), None
        except UnicodeDecodeError:
            text, raw = data.decode(errors="backslashreplace"), data
        text = text.rstrip("\n")
        if not text.strip():
            return Skipped(where, BLANK)
        if len(data) > self._limit_b:
            return self.too_long(place, len(data))
        name = ""
        if asserted is not None:
            key = (asserted // 1_000_000, text)
            nth = self._seen.get(key, 0)
            self._seen[key] = nth + 1
            name = command_id(asserted, text, nth)
        item = Incoming(
            text=text,
            raw=raw,
            asserted=asserted,
            offset=None if asserted is None else 0,
            role="user",
            origin="owner",
            source_uri=URI,
            source_id=name,
            tool=self._tool,
            kind=KIND,
            meta=meta or {},
            where=where,
        )
        return admit(item, self._since, self._limit_b)

    def too_long(self, place: int | str, size_b: int = 0) -> Rejected:
        """Make the record of a command that is too large."""
        size = f" of {size_b:,} bytes" if size_b else ""
        where = f"{self._name}:{place}"
        return Rejected(where, f"a command{size} is above the limit of {self._limit_b:,} bytes")

    def ending(self, stream: BinaryIO) -> Rejected | None:
        """Make the record of a file that changed under the reader, if it did."""
        return Rejected(self._name, CHANGED) if state(stream) == CHANGED else None

    def skipped(self, place: int | str, why: str) -> Skipped:
        """Make the record of something that is no command to remember."""
        return Skipped(f"{self._name}:{place}", why)

    def rejected(self, place: int | str, why: str) -> Rejected:
        """Make the record of something that cannot be read."""
        return Rejected(f"{self._name}:{place}", why)


def instant(seconds: bytes) -> int | None:
    """Read epoch seconds as a shell writes them: microseconds UTC, None for what is no time."""
    value = int(seconds) if len(seconds) < 13 else _LATEST_S + 1
    return value * 1_000_000 if value <= _LATEST_S else None
