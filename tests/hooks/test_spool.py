"""The spool and its drain: each line once, whatever happens in between."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import string
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.hooks import drain, glance, spool
from remem.hooks.ignore import Ignore
from remem.index import spooled
from remem.objects.model import Observation
from remem.objects.scope import maintenance_grant
from remem.objects.store import Store

ACTOR = drain.actor_for("local", "default")
AT = 1_790_000_000_000_000
GONE = 4_000_000  # above the highest process id


def line(seq: int, command: str | None = None, **more: Any) -> bytes:
    """A line as a shell writes it."""
    value: dict[str, Any] = {"remem": 1, "seq": seq, "at": AT + seq * 1_000_000}
    if command is not None:
        value |= {"took": 1500, "exit": 0, "cwd": "/", "head": "", "tty": "", "cmd": command}
    return json.dumps(value | more, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class Bench:
    """A store, and sessions that append to its spool."""

    def __init__(self, folder: Path) -> None:
        self.store = Store.create(str(folder / "store"))
        self.spool = folder / "store" / "spool"

    def file(self, *, pid: int | None = None, started: int = AT, part: int = 0) -> Path:
        """A file of a session: of this process, unless another is named."""
        return self.spool / f"bash-{started}-{pid or os.getpid()}-{part}.jsonl"

    def append(self, path: Path, *data: bytes) -> None:
        with open(path, "ab") as stream:
            stream.write(b"".join(data))
        path.chmod(0o600)

    def drain(self, **options: Any) -> drain.Drained:
        return drain.drain(self.store, ACTOR, drain.Rules(Ignore()), **options)

    @property
    def kept(self) -> list[Observation]:
        """Every observation, in the order in which it came in."""
        found = []
        with self.store.read(maintenance_grant()) as reader:
            for part in reader.parts:
                for ref, state in reader.states(part):
                    obj = reader.object(part, ref)
                    assert isinstance(obj, Observation)
                    found.append((state.first, obj))
        return [obj for _, obj in sorted(found, key=lambda item: item[0])]

    @property
    def texts(self) -> list[str]:
        return [obj.text for obj in self.kept]

    @property
    def skipped(self) -> dict[str, int]:
        with self.store.read(maintenance_grant()) as reader:
            return spool.skipped(reader.txn)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def old(path: Path) -> None:
    """Make a file look as if nobody had written to it for a while."""
    os.utime(path, (time.time() - 60,) * 2)


# -- from a line to evidence --------------------------------------------------------------------


def test_a_command_becomes_evidence(bench: Bench, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    (repo / ".git").mkdir(parents=True)
    (repo / ".git" / "config").write_text('[remote "origin"]\n\turl = https://x.example/a/b.git\n')
    bench.append(
        bench.file(),
        line(0, "make test", cwd=str(repo), head="topic/x", tty="/dev/pts/7", exit=2),
        line(1, "git log\n", cwd=str(repo), head="a" * 40),
    )
    done = bench.drain()
    assert (done.read, done.new, done.left) == (2, 2, False)
    one, two = bench.kept
    began = time.strftime("%Y%m%dT%H%M%S.000000Z", time.gmtime(AT // 10**6))
    session = f"bash-{began}-{os.getpid()}"
    assert (one.text, one.kind, one.role, one.origin) == ("make test", "command", "user", "owner")
    assert one.scope.collection == "x.example/a/b"
    assert (one.scope.agent, one.scope.session) == ("shell", session)
    assert one.source is not None
    assert (one.source.uri, one.source.id, one.source.tool) == (f"shell:{session}", "0", "bash")
    assert one.asserted == AT
    assert one.meta == {
        "exit": 2,
        "duration": 0.0015,
        "cwd": str(repo),
        "branch": "topic/x",
        "shell": "bash",
        "tty": "/dev/pts/7",
    }
    assert two.text == "git log"
    assert two.meta["commit"] == "a" * 40 and "branch" not in two.meta


def test_bytes_that_are_no_text(bench: Bench) -> None:
    bench.append(bench.file(), line(0, "X").replace(b"X", b"echo \xff\\u001b"))
    bench.drain()
    (one,) = bench.kept
    assert one.text == "echo \\xff\x1b"
    assert one.raw == b"echo \xff\x1b"


def test_what_is_ignored_and_skipped_is_counted(bench: Bench, tmp_path: Path) -> None:
    for name, text in (("all", ""), ("some", "deep/\ncmd: ssh *\n!cmd: ssh known*\n")):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / ".rememignore").write_text(text)
    some = str(tmp_path / "some")
    bench.append(
        bench.file(),
        line(0, "one", cwd=str(tmp_path / "all" / "deep")),
        line(1, "two", cwd=some + "/deep"),
        line(2, "ssh host", cwd=some),
        line(3, "ssh known", cwd=some),
        line(4, skip="space"),
        line(5, skip="no such reason"),
    )
    done = bench.drain()
    assert bench.texts == ["ssh known"]
    assert done.skipped == {"ignored": 3, "space": 1, "no such reason": 1}
    assert bench.skipped == {"ignored": 3, "space": 1, "other": 1}
    assert done.read == done.new + sum(done.skipped.values())


def test_a_secret_that_the_shell_missed(bench: Bench) -> None:
    bench.append(bench.file(), line(0, "deploy --with ghp_0123456789abcdefghijABCDEFGHIJ456789"))
    bench.drain()
    assert b"ghp_0123456789" not in bench.file().read_bytes()
    assert "ghp_0123456789" not in bench.texts[0]


def test_events_of_other_hooks(bench: Bench) -> None:
    event = {"text": "a note of TOKEN=abcdefgh12345", "kind": "note", "meta": {"x": [1]}}
    path = bench.spool / f"claude-{AT}-{os.getpid()}-0.jsonl"
    bench.append(path, line(0, event=event | {"tool": "t"}))
    assert bench.drain().new == 1
    (one,) = bench.kept
    assert one.text.startswith("a note of") and (one.kind, one.meta) == ("note", {"x": [1]})
    assert "abcdefgh12345" not in one.text


# -- each line once -----------------------------------------------------------------------------


def test_lines_are_taken_in_once_and_in_order(bench: Bench) -> None:
    one, two = bench.file(), bench.file(started=AT + 1)
    bench.append(one, line(0, "a"), line(2, "c"))
    bench.append(two, line(1, "b"), line(3, "d"))
    assert bench.drain().new == 4
    assert bench.texts == ["a", "b", "c", "d"]
    assert bench.drain().read == 0
    bench.append(one, line(4, "e"))
    assert bench.drain().new == 1
    assert bench.texts == ["a", "b", "c", "d", "e"]


def test_what_was_taken_in_is_blank(bench: Bench) -> None:
    bench.append(bench.file(), line(0, "a secret word"), line(1, "b"))
    size_b = bench.file().stat().st_size
    bench.drain()
    assert bench.file().read_bytes() == b" " * (size_b - 1) + b"\n"


def test_half_a_line_waits_for_its_rest(bench: Bench) -> None:
    whole = line(1, "later")
    bench.append(bench.file(), line(0, "now"), whole[:20])
    assert bench.drain().new == 1
    bench.append(bench.file(), whole[20:])
    assert bench.drain().new == 1
    assert bench.texts == ["now", "later"]


def test_half_a_line_of_a_writer_that_was_stopped(bench: Bench) -> None:
    for cut in (5, 20, 60, 99):
        text = "the command that was stopped" + "x" * 40
        bench.append(bench.file(), line(cut, text)[:cut], line(cut + 1, f"after {cut}"))
    done = bench.drain()
    assert (done.new, done.damaged) == (4, 4)
    assert bench.texts == [f"after {cut}" for cut in (5, 20, 60, 99)]
    assert bench.skipped == {"damaged": 4}


def test_the_last_line_of_a_shell_that_is_gone(bench: Bench) -> None:
    path = bench.file(pid=GONE)
    bench.append(path, line(0, "whole"), line(1, "torn")[:30])
    old(path)
    done = bench.drain()
    assert (done.new, done.damaged, done.removed) == (1, 1, 1)
    assert not path.exists()


def test_damage_is_counted_and_not_told(bench: Bench) -> None:
    bad = [
        b"no json at all: marker\n",
        b'{"remem":1,"seq":"x","at":1,"cmd":"marker"}\n',
        b'{"remem":2,"seq":1,"at":1,"cmd":"marker"}\n',
        b'{"remem":1,"seq":1,"at":1}\n',
        b'{"remem":1,"seq":1,"at":1,"cmd":"a","skip":"b"}\n',
        b'{"remem":1,"seq":1,"at":1e400,"cmd":"marker"}\n',
        b'{"remem":1,"seq":1,"at":99999999999999999999,"cmd":"marker"}\n',
        b"\x00\x01\x02\n",
        b'{"remem":1,' * 2000 + b"\n",
        b'{"remem":1,"event":{"text":1}}\n',
    ]
    bench.append(bench.file(), *bad, line(9, "sound"))
    done = bench.drain()
    assert (done.new, done.damaged) == (1, len(bad) + 1)  # one line begins over and over
    assert b"marker" not in bench.file().read_bytes()
    assert bench.drain().damaged == 0
    assert bench.skipped == {"damaged": len(bad) + 1}


def test_events_that_do_not_fit_are_rejected(bench: Bench) -> None:
    bench.append(bench.file(), line(0, event={"text": 7}), line(1, event={}), line(2, "  "))
    done = bench.drain()
    assert (done.read, done.rejected, done.new) == (3, 3, 0)


def test_blanked_lines_are_passed_over(bench: Bench) -> None:
    bench.append(bench.file(), line(0, "keep this"), line(1, "forget this"), line(2, "and keep"))
    (template,) = [
        record
        for record in [
            drain.command(spool.files(bench.store.root)[0], _parsed(1, "forget this"), "x")
        ]
    ]
    obj = Observation(
        b"",
        ACTOR.scope,
        None,
        template.text,
        *("", "", "owner", None, None, None, None, "", {}),
    )
    assert spooled.blank(bench.store.root, [obj]) == 1
    done = bench.drain()
    assert (done.new, done.damaged) == (2, 0)
    assert bench.texts == ["keep this", "and keep"]


def _parsed(seq: int, command: str) -> spool.Line:
    found, lost = spool.parse(line(seq, command))
    assert found is not None and lost == 0
    return found


@pytest.mark.parametrize("place", ["before", "after", "blanking", "unlinking"])
def test_killed_in_between(bench: Bench, place: str) -> None:
    path = bench.file(pid=GONE)
    bench.append(path, *(line(n, f"command {n}") for n in range(50)))
    old(path)
    program = f"""
import os, signal
from remem.hooks import drain, spool
from remem.hooks.ignore import Ignore
from remem.objects.store import Store
die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
place = {place!r}
store = Store({bench.store.root!r})
if place == "before":
    taken = drain._take
    drain._take = lambda *words: (taken(*words), die())
elif place == "after":
    spool.blank = die
elif place == "blanking":
    blank = spool.blank
    spool.blank = lambda path, end, **_: (blank(path, end // 2), die())
else:
    os.unlink = die
drain.drain(store, drain.actor_for("local", "default"), drain.Rules(Ignore()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr.decode()
    assert len(bench.texts) == (0 if place == "before" else 50)
    again = bench.drain()
    assert again.new == (50 if place == "before" else 0)
    assert again.known == 0  # the cursor knew, not only the ids
    assert bench.texts == [f"command {n}" for n in range(50)]
    assert not path.exists()
    with bench.store.read(maintenance_grant()) as reader:
        assert bench.drain().removed == 0 and spool.cursors(reader.txn) <= {path.name}
    with bench.store.read(maintenance_grant()) as reader:
        assert spool.cursors(reader.txn) == set()


def test_without_its_cursor_the_ids_still_know(bench: Bench) -> None:
    bench.append(bench.file(), line(0, "once"))
    data = bench.file().read_bytes()
    bench.drain()
    bench.file().unlink()
    bench.drain()
    bench.append(bench.file(), data)
    done = bench.drain()
    assert (done.new, done.known) == (0, 1)


def _drain_here(root: str) -> int:
    return drain.drain(Store(root), ACTOR, drain.Rules(Ignore()), wait_s=30).new


def test_many_at_once_share_the_work(bench: Bench) -> None:
    for number in range(8):
        path = bench.file(started=AT + number)
        bench.append(path, *(line(n, f"{number} {n}") for n in range(100)))
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        taken = pool.map(_drain_here, [bench.store.root] * 3)
    assert sum(taken) == 800
    assert len(set(bench.texts)) == len(bench.texts) == 800


@given(st.lists(st.sampled_from(["append", "half", "drain", "restart"]), max_size=25), st.randoms())
def test_any_order_of_appending_and_draining(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], chance: random.Random
) -> None:
    bench = Bench(tmp_path_factory.mktemp("any"))
    written: list[str] = []
    rest = b""
    seq = 0
    path = bench.file()
    for step in steps:
        if step in ("append", "half"):
            text = "".join(chance.choices(string.printable + "é\x1b", k=chance.randint(1, 40)))
            text = f"{seq} {text}".strip()
            data = rest + line(seq, text)
            seq += 1
            written.append(text)
            cut = len(data) if step == "append" else len(data) - chance.randint(1, 20)
            bench.append(path, data[:cut])
            rest = data[cut:]
        elif step == "drain":
            bench.drain()
        else:
            bench.append(path, rest)
            rest = b""
            path = bench.file(started=AT + seq + 1)
    bench.append(path, rest)
    bench.drain()
    plain = [text.replace("\r\n", "\n").replace("\r", "\n") for text in written]
    # What is said again without being another event cannot be told apart here: seq makes it differ.
    found = sorted(bench.texts, key=lambda text: int(text.split()[0]))
    assert found == [text.rstrip("\n") for text in plain]


# -- files --------------------------------------------------------------------------------------


def test_a_glance_says_what_waits(bench: Bench) -> None:
    assert glance.waits(bench.store) == (False, False)
    for number in range(100):
        bench.append(bench.file(started=AT + number), line(0, f"echo {number}"))
    assert glance.waits(bench.store) == (True, False)
    bench.drain()
    assert glance.waits(bench.store) == (False, False)
    (bench.spool / "git-1790000000-1").write_bytes(b"")
    assert glance.waits(bench.store) == (False, True)
    bench.append(bench.file(started=AT + 50), line(1, "one more"))
    assert glance.waits(bench.store) == (True, True)
    shutil.rmtree(bench.spool)
    assert glance.waits(bench.store) == (False, False)


def test_a_glance_at_a_hundred_files_is_short(bench: Bench) -> None:
    for number in range(100):
        bench.append(bench.file(started=AT + number), line(0, f"echo {number}"))
    bench.drain()
    times = []
    for _ in range(50):
        began = time.perf_counter()
        assert glance.waits(bench.store) == (False, False)
        times.append(time.perf_counter() - began)
    assert min(times) < 0.001


def test_a_clock_that_was_set_back(bench: Bench) -> None:
    bench.append(bench.file(), line(0, "echo later", took=-5_000_000), line(1, "echo now"))
    assert bench.drain().new == 2
    later, now = bench.kept
    assert "duration" not in later.meta and now.meta["duration"] == 0.0015


def test_files_go_when_their_shell_has_ended(bench: Bench) -> None:
    live, dead, full = bench.file(part=1), bench.file(pid=GONE), bench.file(part=0)
    for path in (live, dead, full):
        bench.append(path, line(0, path.name))
        old(path)
    assert bench.drain().removed == 2
    assert [path.name for path in bench.spool.iterdir()] == [live.name]
    with bench.store.read(maintenance_grant()) as reader:
        assert spool.cursors(reader.txn) == {live.name}


def test_a_file_that_is_still_fresh_stays(bench: Bench) -> None:
    bench.append(bench.file(pid=GONE), line(0, "a"))
    assert bench.drain().removed == 0
    old(bench.file(pid=GONE))
    assert bench.drain().removed == 1


def test_other_files_are_left_alone(bench: Bench) -> None:
    for name in ("notes.txt", "bash-1-2.jsonl", "git-123-4", "bash-x-1-0.jsonl"):
        (bench.spool / name).write_bytes(line(0, "not ours"))
    (bench.spool / "bash-1-2-3.jsonl").symlink_to("/etc/hostname")
    assert bench.drain().read == 0
    assert len(list(bench.spool.iterdir())) == 5


def test_files_for_reading_history_are_swept(bench: Bench, tmp_path: Path) -> None:
    user = os.geteuid()
    names = [f"remem-{user}-{os.getpid()}-1.scratch", f"remem-{user + 1}-{GONE}-1.scratch"]
    for name in (*names, f"remem-{user}-{GONE}-1.scratch"):
        (tmp_path / name).touch()
    bench.drain(scratch=[str(tmp_path), str(tmp_path / "nowhere")])
    assert sorted(path.name for path in tmp_path.glob("*.scratch")) == sorted(names)


# -- locks --------------------------------------------------------------------------------------


def _hold(root: str, ready: Any, over: Any) -> None:
    def change(_: object) -> None:
        ready.set()
        over.wait(30)

    Store(root).write(ACTOR, change)


def test_a_locked_store_is_not_waited_for(bench: Bench) -> None:
    bench.append(bench.file(), line(0, "a"))
    context = multiprocessing.get_context("spawn")
    ready, over = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(bench.store.root, ready, over))
    holder.start()
    assert ready.wait(30)
    began = time.monotonic()
    assert drain.drain_soon(bench.store, ACTOR, drain.Rules(Ignore())) is None
    assert time.monotonic() - began < 1.5
    over.set()
    holder.join()
    deadline = time.monotonic() + 10
    while (done := drain.drain_soon(bench.store, ACTOR, drain.Rules(Ignore()))) is None:
        assert time.monotonic() < deadline
    assert done.new == 1
    assert bench.texts == ["a"]


def test_a_budget_leaves_the_rest(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "STEP_B", 4096)
    bench.append(bench.file(), *(line(n, f"command {n}") for n in range(500)))
    first = bench.drain(budget_s=0.0)
    assert first.left and 0 < first.new < 500
    second = bench.drain()
    assert not second.left and first.new + second.new == 500


# -- the form of a line -------------------------------------------------------------------------


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(max_size=30).filter(lambda data: b"\n" not in data and spool.MARK not in data),
)
def test_parse_is_the_inverse_of_writing(text: str, before: bytes) -> None:
    whole = line(3, text)
    found, lost = spool.parse(before + whole.rstrip(b"\n"))
    assert found is not None
    assert (found.cmd, found.seq, lost) == (text, 3, 1 if before.strip() else 0)


@given(st.binary(max_size=200))
def test_parse_takes_anything(data: bytes) -> None:
    found, lost = spool.parse(data)
    assert (found is None) <= (lost > 0)
    again, _ = spool.parse(spool.MARK + data)
    assert again is None or msgspec.structs.asdict(again)["remem"] == 1
