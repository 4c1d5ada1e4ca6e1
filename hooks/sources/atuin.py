"""The database of atuin: a command a row, oldest first.

It is opened for reading only.  While it is in use, what is written meanwhile is not seen and nobody
waits.  Where it lies at rest, nothing is made beside it; if it is taken into use meanwhile, the
last record says so.

Times are in nanoseconds, as is the duration; -1 stands for an exit status or a duration that is not
known.  What was deleted in atuin is skipped.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from urllib.parse import quote

from remem.hooks.sources._history import CHANGED, Commands
from remem.hooks.sources._json import Json
from remem.hooks.sources._record import LIMIT_B, Record
from remem.objects.errors import BadInput

TOOL = "atuin"

_NEEDED = frozenset(("timestamp", "command"))
_OPTIONAL = ("exit", "duration", "cwd", "session", "hostname", "deleted_at")
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 to 9999


def read_path(
    path: str,
    *,
    since: int | None = None,
    limit_b: int = LIMIT_B,
    env: Mapping[str, str] | None = None,
) -> Iterator[Record]:
    """Read the commands of atuin's database.

    Args:
        path: the file, or the folder that holds "history.db".
        since: microseconds UTC; older commands are skipped.
        limit_b: bytes that one command may have.
        env: not needed; nothing is run.

    Yields:
        One record for each row.

    Raises:
        BadInput: there is no such database, or it is none of atuin's.
    """
    if os.path.isdir(path):
        path = os.path.join(path, "history.db")
    if not os.path.isfile(path):
        raise BadInput(f"no such file: '{path}'", hint="atuin keeps it as 'history.db'")
    before = _look(path)
    commands = Commands(path, TOOL, since, limit_b)
    with tempfile.TemporaryDirectory(prefix="remem-") as folder:
        try:
            with closing(_open(path, folder)) as database:
                database.text_factory = bytes
                yield from _rows(database, path, commands)
        except sqlite3.Error as error:
            raise BadInput(f"cannot read '{path}': {error}") from None
    if before[1] is None and _look(path) != before:
        yield commands.rejected("end", CHANGED)


def _look(path: str) -> tuple[object, object]:
    """What tells whether a database is in use, and whether it was written."""
    found = os.stat(path)
    try:
        log: object = os.stat(path + "-wal").st_size or None
    except OSError:
        log = None
    return (found.st_mtime_ns, found.st_size, found.st_ino), log


def _open(path: str, folder: str) -> sqlite3.Connection:
    """Open without writing: with the log of what is not yet in the file, if there is one."""
    if _look(path)[1] is None:
        return _connect(path, "immutable=1")
    try:
        database = _connect(path, "mode=ro")
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        return database
    except sqlite3.Error:  # the folder is not ours to write in, which reading the log needs
        copy = os.path.join(folder, "history.db")
        for end in ("-wal", ""):
            shutil.copyfile(path + end, copy + end)
        return _connect(copy, "mode=rw")


def _connect(path: str, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(os.path.abspath(path))}?{how}", uri=True, timeout=5)


def _rows(database: sqlite3.Connection, path: str, commands: Commands) -> Iterator[Record]:
    names = {
        row[1].decode(errors="replace") for row in database.execute("PRAGMA table_info(history)")
    }
    if not names >= _NEEDED:
        raise BadInput(f"'{path}' is no database of atuin: it has no table of its commands")
    wanted = [name if name in names else f"NULL AS {name}" for name in _OPTIONAL]
    query = f"SELECT rowid, timestamp, command, {', '.join(wanted)} FROM history"
    for row in database.execute(query + " ORDER BY timestamp, rowid"):
        yield _record(row, commands)


def _record(row: tuple[object, ...], commands: Commands) -> Record:
    number, at, command, code, lasted, cwd, session, host, deleted = row
    place = f"row {number}"
    if deleted is not None:
        return commands.skipped(place, "deleted in atuin")
    if not isinstance(command, bytes):
        command = b"" if command is None else str(command).encode()
    asserted = at // 1000 if isinstance(at, int) else None
    if asserted is not None and not _FIRST_US <= asserted <= _LAST_US:
        asserted = None
    meta: Json = {}
    if isinstance(code, int) and code >= 0:
        meta["exit"] = code
    if isinstance(lasted, int) and lasted >= 0:
        meta["duration"] = lasted / 1_000_000_000
    for name, value in (("cwd", cwd), ("shell_session", session), ("host", host)):
        if isinstance(value, bytes) and value and value != b"unknown":
            meta[name] = value.decode(errors="backslashreplace")
    return commands.record(command, place, asserted=asserted, meta=meta)
