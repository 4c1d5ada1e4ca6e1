"""The spool: commands and events that hooks appended and nobody took in yet.

Each session of a shell appends to files of its own, one line of JSON an event, so no writer waits
for another.  How far a file was taken in stands in the store, in the transaction that took it in.
What was taken in is overwritten with spaces: the store keeps it from then on, and only there.

Source: remem-store(5), SPOOL.
"""

from __future__ import annotations

import os
import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from remem.hooks.glance import CURSOR
from remem.objects import format as fmt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remem.objects.tables import Txn

VERSION = 1
MARK = b'{"remem":1,'  # how a line begins; JSON escapes quotes, so no line holds it elsewhere
SKIPPED = b"skipped/"  # rows of the table meta: reason -> number of commands
LINE_B = 64 * 2**20  # bytes; a longer line is damage
COUNTED_B, COUNTED_FILES = 1 << 20, 64  # what `state` reads at most
REASONS = {
    "off": "REMEM_OFF was set",
    "history-off": "the shell kept no history file",
    "history": "the shell left it out of its history",
    "space": "it began with a blank",
    "ignored": "a .rememignore file said so",
    "private": "the shell was in private mode",
    "secret": "it was long and held what looks like a secret",
    "size": "it was too long",
    "damaged": "its line in the spool could not be read",
}

_NAME = re.compile(r"([a-z]{1,16})-(\d{1,18})-(\d{1,10})-(\d{1,9})\.jsonl")
_SCRATCH = re.compile(r"remem-(\d+)-(\d+)-\d+\.scratch")
_BLANK_B = 1 << 16


@lru_cache(maxsize=256)  # asked for each line
def _session(shell: str, started: int, pid: int) -> str:
    second, rest = divmod(started, 1_000_000)
    began = time.strftime("%Y%m%dT%H%M%S", time.gmtime(second))
    return f"{shell}-{began}.{rest:06d}Z-{pid}"


class File(msgspec.Struct, frozen=True):
    """A file of the spool.

    Attributes:
        name: name of the file: SHELL-STARTED-PID-PART.jsonl.
        path: where it is.
        size_b: its size when it was looked at.
        shell: program that appends to it.
        started: when the session began, microseconds UTC.
        pid: process of the session.
        part: number of the file in its session, from 0; a session leaves a full one for the next.
    """

    name: str
    path: str
    size_b: int
    shell: str
    started: int
    pid: int
    part: int

    @property
    def session(self) -> str:
        """Name of the session in a scope; "exec bash" begins another one in the same process."""
        return _session(self.shell, self.started, self.pid)

    @property
    def alive(self) -> bool:
        """Whether the process that appends to it may still be there."""
        if self.pid <= 0:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except (PermissionError, OverflowError):
            return True
        return True


class Line(msgspec.Struct, kw_only=True, gc=False):
    """One line: a command that ran, one that was skipped, or an event of another hook.

    Attributes:
        remem: version of the form, 1.
        seq: number of the line in its session, from 0.
        at: when the command started, microseconds UTC.
        took: how long it ran, microseconds, or None for unknown.
        exit: its exit status.
        cwd: folder in which it started.
        head: branch that was checked out there, the id of a commit, or "".
        tty: terminal, or "".
        cmd: the command; bytes that are no UTF-8 stand as lone surrogates.
        skip: why a command is not here.
        event: an event of another hook: the fields of what comes in.
    """

    remem: int
    seq: int
    at: int
    took: int | None = None
    exit: int | None = None
    cwd: str = ""
    head: str = ""
    tty: str = ""
    cmd: str | None = None
    skip: str | None = None
    event: dict[str, object] | None = None


class Piece(msgspec.Struct, frozen=True):
    """What was read of a file.

    Attributes:
        lines: in the order of the file.
        damaged: lines, or beginnings of lines, that could not be read.
        end: offset behind the last whole line.
    """

    lines: list[Line]
    damaged: int
    end: int


_decode = msgspec.json.Decoder(Line).decode


def folder(root: str) -> str:
    """Folder of the spool of a store."""
    return os.path.join(root, fmt.SPOOL)


def files(root: str) -> list[File]:
    """Files of the spool, in the order in which their sessions began."""
    found = []
    try:
        with os.scandir(folder(root)) as entries:
            for entry in entries:
                name = _NAME.fullmatch(entry.name)
                if name is None or not entry.is_file(follow_symlinks=False):
                    continue
                try:
                    size_b = entry.stat(follow_symlinks=False).st_size
                except FileNotFoundError:
                    continue
                shell, *numbers = name.groups()
                found.append(File(entry.name, entry.path, size_b, shell, *map(int, numbers)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found.sort(key=lambda file: (file.started, file.pid, file.part))
    return found


def cursor(txn: Txn, name: str) -> int:
    """How many bytes of a file were taken in."""
    return int.from_bytes(txn.get("meta", CURSOR + name.encode()) or b"", "big")


def cursors(txn: Txn) -> set[str]:
    """Names of the files of which something was taken in."""
    return {
        key[len(CURSOR) :].decode("ascii", "replace") for key, _ in txn.scan_prefix("meta", CURSOR)
    }


def set_cursor(txn: Txn, name: str, offset: int) -> None:
    """Say how many bytes of a file were taken in."""
    txn.put("meta", CURSOR + name.encode(), offset.to_bytes(8, "big"))


def skipped(txn: Txn) -> dict[str, int]:
    """How many commands were skipped so far, by reason."""
    return {
        key[len(SKIPPED) :].decode("ascii", "replace"): int.from_bytes(value, "big")
        for key, value in txn.scan_prefix("meta", SKIPPED)
    }


def add_skipped(txn: Txn, reason: str, count: int) -> None:
    """Count commands that were skipped; a reason that is not known counts as "other"."""
    key = SKIPPED + (reason if reason in REASONS else "other").encode()
    before = int.from_bytes(txn.get("meta", key) or b"", "big")
    txn.put("meta", key, (before + count).to_bytes(8, "big"))


def waiting(txn: Txn, found: Iterable[File]) -> list[tuple[File, int]]:
    """Files that hold more than was taken in, and from where."""
    lagging = []
    for file in found:
        at = cursor(txn, file.name)
        if at > file.size_b:  # another file of the same name
            at = 0
        if at < file.size_b:
            lagging.append((file, at))
    return lagging


def read(file: File, start: int, most_b: int) -> Piece:
    """Read whole lines of a file.

    Args:
        file: which; a line at its end without line feed waits, unless nobody writes it any more.
        start: offset of the first one.
        most_b: bytes after which it is enough.

    Raises:
        OSError: it cannot be read.
    """
    handle = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with open(handle, "rb") as stream:
        stream.seek(start)
        data = stream.read(most_b)
        while data and b"\n" not in data and len(data) < LINE_B:
            more = stream.read(most_b)
            if not more:
                break
            data += more
        whole = data.rfind(b"\n") + 1
        if len(data) - whole >= LINE_B or (stream.read(1) == b"" and not file.alive):
            whole = len(data)  # damage, or cut off for good
    lines: list[Line] = []
    damaged = 0
    for raw in data[:whole].split(b"\n"):
        if not raw.strip():
            continue
        line, lost = parse(raw)
        damaged += lost
        if line is not None:
            lines.append(line)
    return Piece(lines, damaged, start + whole)


def parse(raw: bytes) -> tuple[Line | None, int]:
    """Decode one line.

    Returns:
        (line or None, pieces that could not be read): a writer that was stopped in a line leaves
        its beginning before the next one.
    """
    at = raw.rfind(MARK)
    if at < 0:
        return None, 1
    lost = 1 if raw[:at].strip() else 0
    line = _line(raw[at:])
    if line is None or line.remem != VERSION or not _is_whole(line):
        return None, lost + 1
    return line, lost


def _line(raw: bytes) -> Line | None:
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    import json  # seldom needed, and it takes its time

    try:  # bytes that are no UTF-8
        value = json.loads(raw.decode("utf-8", "surrogateescape"), strict=False)
        return msgspec.convert(value, Line)
    except (ValueError, RecursionError):  # msgspec's own are ValueErrors
        return None


def _is_whole(line: Line) -> bool:
    given = (line.cmd is not None) + (line.skip is not None) + (line.event is not None)
    return given == 1 and abs(line.at) < 1 << 62 and line.seq >= 0


class State(msgspec.Struct):
    """What is in the spool.

    Attributes:
        files: number of files.
        waiting_b: bytes that were not taken in.
        oldest_at: when the oldest file that holds such was appended to, microseconds UTC, or None.
        skipped: commands that were skipped since the store was made, by reason.
    """

    files: int
    waiting_b: int
    oldest_at: int | None
    skipped: dict[str, int]


def state(root: str, txn: Txn) -> State:
    """What is in the spool, and what was skipped, with what waits to be counted."""
    found = files(root)
    told = State(len(found), 0, None, skipped(txn))
    for number, (file, start) in enumerate(waiting(txn, found)):
        told.waiting_b += file.size_b - start
        try:
            at = os.stat(file.path).st_mtime_ns // 1000
            piece = read(file, start, COUNTED_B) if number < COUNTED_FILES else None
        except OSError:
            continue
        told.oldest_at = at if told.oldest_at is None else min(at, told.oldest_at)
        for line in piece.lines if piece is not None else ():
            if line.skip is not None:
                reason = line.skip if line.skip in REASONS else "other"
                told.skipped[reason] = told.skipped.get(reason, 0) + 1
    return told


# -- what was taken in ----------------------------------------------------------------------------


def blank(path: str, end: int, *, start: int = 0, sync: bool = False) -> None:
    """Overwrite the beginning of a file with spaces, where it is not blank yet.

    Args:
        path: of the file.
        end: of its beginning, bytes.
        start: up to here it is blank.
        sync: flush it to disk.

    Raises:
        OSError: it cannot be written.
    """
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        before = os.fstat(handle)
        at = start
        while at < end:
            data = os.pread(handle, min(_BLANK_B, end - at), at)
            if not data:
                break
            clean = b" " * (len(data) - 1) + (b"\n" if at + len(data) == end else b" ")
            if data != clean:
                os.pwrite(handle, clean, at)
            at += len(data)
        os.utime(handle, ns=(before.st_atime_ns, before.st_mtime_ns))  # when it was appended to
        if sync:
            os.fsync(handle)
    finally:
        os.close(handle)


def finished(found: Iterable[File]) -> Iterator[File]:
    """Files to which nobody appends any more: the session ended, or went on to its next file."""
    last: dict[tuple[str, int, int], int] = {}
    listed = list(found)
    for file in listed:
        key = (file.shell, file.started, file.pid)
        last[key] = max(last.get(key, 0), file.part)
    for file in listed:
        if file.part < last[file.shell, file.started, file.pid] or not file.alive:
            yield file


def sweep_scratch(folders: Iterable[str]) -> int:
    """Remove the files through which shells of this user that have ended read their history."""
    removed = 0
    for place in folders:
        try:
            names = os.listdir(place)
        except OSError:
            continue
        for name in names:
            scratch = _SCRATCH.fullmatch(name)
            if scratch is None or int(scratch[1]) != os.geteuid():
                continue
            if not File(name, "", 0, "", 0, int(scratch[2]), 0).alive:
                try:
                    os.unlink(os.path.join(place, name))
                    removed += 1
                except OSError:
                    continue
    return removed
