"""The database of atuin, at rest and in use, read without a trace."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from remem.hooks.ingest import ingest
from remem.hooks.sources import detect, read, read_stream
from remem.hooks.sources._history import command_id
from remem.objects.errors import BadInput, UsageError
from remem.objects.model import Incoming, Rejected, Scope, Skipped
from remem.objects.scope import Actor, owner_grant
from remem.objects.store import Store

T_NS = 1_700_000_000_123_456_789
OLD = """create table history (id text primary key, timestamp integer not null,
 duration integer not null, exit integer not null, command text not null, cwd text not null,
 session text not null, hostname text not null, unique(timestamp, cwd, command))"""


class Database:
    """Written as atuin does."""

    def __init__(self, path: Path, *, wal: bool = True, deleted: bool = True) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        if wal:
            self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute(OLD)
        if deleted:
            self.connection.execute("alter table history add column deleted_at integer")
        self.count = 0

    def add(
        self,
        command: object,
        at: int | None = None,
        *,
        code: int = 0,
        deleted: int | None = None,
        lasted: int = 1_500_000_000,
        cwd: str = "/src",
    ) -> None:
        self.count += 1
        at = T_NS + self.count * 10**9 if at is None else at
        row = [f"id{self.count}", at, lasted, code, command, cwd, "s1", "host:ann"]
        names = "id, timestamp, duration, exit, command, cwd, session, hostname"
        if deleted is not None:
            row.append(deleted)
            names += ", deleted_at"
        marks = ", ".join("?" * len(row))
        self.connection.execute(f"insert into history ({names}) values ({marks})", row)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "history.db")


def load(path: Path, **options: int) -> list[Incoming | Rejected | Skipped]:
    return list(read("atuin", str(path), **options))


def test_a_row_is_a_record(database: Database) -> None:
    database.add("make\ntest 'ü'", T_NS, code=2)
    (record,) = load(database.path)
    at = T_NS // 1000
    assert record == Incoming(
        text="make\ntest 'ü'",
        asserted=at,
        offset=0,
        role="user",
        origin="owner",
        source_uri="shell:",
        source_id=command_id(at, "make\ntest 'ü'"),
        tool="atuin",
        kind="command",
        meta={"exit": 2, "duration": 1.5, "cwd": "/src", "shell_session": "s1", "host": "host:ann"},
        where=f"{database.path}:row 1",
    )


def test_what_is_unknown_is_left_out(database: Database) -> None:
    database.add("sleep 9", code=-1, lasted=-1, cwd="unknown")
    (record,) = load(database.path)
    assert isinstance(record, Incoming)
    assert record.meta == {"shell_session": "s1", "host": "host:ann"}


def test_order_deletion_since_and_sums(database: Database, tmp_path: Path) -> None:
    database.add("third", T_NS + 3 * 10**9)
    database.add("first", T_NS)
    database.add("gone", T_NS + 10**9, deleted=T_NS)
    database.add("second", T_NS + 2 * 10**9)
    database.add(" ", T_NS + 4 * 10**9)
    database.add(b"caf\xe9", T_NS + 5 * 10**9)
    database.add("x" * 5000, T_NS + 6 * 10**9)
    records = load(database.path, limit_b=1000)
    found = [record.text for record in records if isinstance(record, Incoming)]
    assert found == ["first", "second", "third", "caf\\xe9"]
    why = [record.why for record in records if isinstance(record, Skipped)]
    assert why == ["deleted in atuin", "blank"]
    assert sum(isinstance(record, Rejected) for record in records) == 1
    since = (T_NS + 2 * 10**9) // 1000
    later = load(database.path, limit_b=1000, since=since)
    assert [r.text for r in later if isinstance(r, Incoming)] == found[1:]
    scope = Scope("local", "default", "home", "none", "main")
    store, actor = Store.create(str(tmp_path / "store")), Actor(owner_grant(scope), "cli", scope)
    for new in (4, 0):
        done = ingest(store, actor, iter(records))
        assert (done.read, done.new, done.known, done.skipped, done.rejected) == (
            7, new, 4 - new, 2, 1,
        )  # fmt: skip


def test_what_is_only_in_the_log_is_read(database: Database) -> None:
    database.add("in the file")
    database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.add("in the log")
    assert Path(f"{database.path}-wal").stat().st_size > 0
    assert [r.text for r in load(database.path) if isinstance(r, Incoming)] == [
        "in the file", "in the log",
    ]  # fmt: skip
    database.connection.execute("BEGIN IMMEDIATE")  # somebody is writing
    database.add("not yet")
    assert len(load(database.path)) == 2
    database.connection.execute("COMMIT")
    assert len(load(database.path)) == 3


@pytest.mark.parametrize("wal", [True, False])
def test_reading_leaves_the_folder_as_it_was(tmp_path: Path, wal: bool) -> None:
    database = Database(tmp_path / "history.db", wal=wal, deleted=False)
    database.add("ls")
    database.connection.close()

    def state() -> dict[str, tuple[int, int]]:
        return {p.name: (p.stat().st_mtime_ns, p.stat().st_size) for p in tmp_path.iterdir()}

    before = state()
    assert set(before) == {"history.db"}
    assert len(load(tmp_path)) == 1  # the folder will do
    assert state() == before


def test_a_database_that_is_taken_into_use_meanwhile_says_so(tmp_path: Path) -> None:
    database = Database(tmp_path / "history.db")
    for number in range(3):
        database.add(f"echo {number}")
    database.connection.close()
    reading = read("atuin", str(database.path))
    assert isinstance(next(reading), Incoming)
    again = sqlite3.connect(database.path)
    again.execute("delete from history where command = 'echo 2'")
    again.commit()
    again.close()
    assert isinstance(list(reading)[-1], Rejected)


def test_what_is_no_database_is_named(tmp_path: Path) -> None:
    for name, content in (("text", b"ls\n" * 99), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInput, match=name):
            load(tmp_path / name)
    with pytest.raises(BadInput, match="no such file"):
        load(tmp_path)
    with pytest.raises(UsageError, match="cannot be read from a stream"):
        read_stream("atuin", open(os.devnull, "rb"), "-")


def test_the_database_of_another_program_is_none_of_atuin(
    shared_data: Path, tmp_path: Path
) -> None:
    path = shared_data / "shell" / "atuin_xonsh-history.sqlite"
    with pytest.raises(BadInput, match="no database of atuin"):
        load(path)
    database = Database(tmp_path / "history.db", wal=False)
    database.connection.close()
    assert detect(str(database.path)) == "atuin"
    assert load(database.path) == []
