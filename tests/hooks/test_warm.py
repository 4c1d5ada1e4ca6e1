"""The resident process: the same answers, to the same people, and nothing kept too long."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remem.hooks import warm_client as wire
from remem.hooks.warm import Link, Request, Server

REMEM = [sys.executable, "-m", "remem"]
COLD = {"REMEM_COLD": "1"}

if not hasattr(socket, "SO_PEERCRED"):
    pytest.skip("this system has no SO_PEERCRED", allow_module_level=True)


class Desk:
    """A store, a runtime folder, and commands that run with or without the resident process."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.run = home / "run"
        self.run.mkdir(mode=0o700)
        self.folder = self.run / "remem"
        self.env = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "REMEM_STORE": str(home / "store"),
            "REMEM_EMBEDDER": "hash",
            "XDG_RUNTIME_DIR": str(self.run),
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def __call__(
        self, *words: str, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*REMEM, *words], env={**self.env, **(env or {})}, cwd=self.home,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False,
        )  # fmt: skip

    def both(self, *words: str, env: dict[str, str] | None = None) -> list[tuple[int, str, str]]:
        """A command through the resident process, and by itself."""
        return [
            (done.returncode, done.stdout.decode(), done.stderr.decode())
            for done in (self(*words, env=env), self(*words, env={**(env or {}), **COLD}))
        ]

    def status(self) -> dict[str, int]:
        done = self("warm", "--status", "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, int] = json.loads(done.stdout)
        return found

    def answered(self, count: int = 1) -> bool:
        """Whether that many questions were answered by now; the figure comes a moment later."""
        return soon(lambda: self.status()["answered"] >= count)

    def processes(self) -> list[int]:
        """The supervisor and what descends from it."""
        found = [self.status()["pid"]]
        for pid in found:
            listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
            found += map(int, listed.split())
        return found

    def fields(self, *words: str, identity: str | None = None) -> list[str]:
        """A request as a client would send it."""
        codec = ["utf-8", "strict", "utf-8", "backslashreplace"]
        env = [f"{name}={value}" for name, value in self.env.items()]
        head = [wire.RUN, identity or wire.identity(), str(self.home), "18", "---"]
        return [*head, *codec, str(len(words)), *words, *env]


def soon(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether something becomes true before long."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A store with notes, and no resident process yet; whatever is started ends with the test."""
    made = Desk(tmp_path)
    notes = (
        "the kettle of the third floor is blue", "Ann moved to Turin in May",
        "the staging API answers on port 8443", "we decided against the red door",
    )  # fmt: skip
    for note in notes:
        assert made("add", note).returncode == 0
    assert made("fact", "Ann", "lives in", "Turin").returncode == 0
    yield made
    made("warm", "--stop")


@pytest.fixture
def warm(desk: Desk) -> Desk:
    """The same with a resident process."""
    done = desk("warm", "--verbose")
    assert done.returncode == 0 and b"started" in done.stderr, done.stderr
    return desk


LINES = (
    ("recall", "kettle"),
    ("recall", "--json", "which port does the API answer on"),
    ("--json", "recall", "--why", "--limit", "2", "Ann"),
    ("recall", "where did Ann live before"),
    ("recall", "--verbose", "--mode", "lexical", "door"),
    ("recall", "--mode", "lexical", "zebra"),
    ("recall", "--collection", "nowhere", "kettle"),
    ("recall", "--since", "2020", "--until", "2019", "kettle"),
    ("recall", "--limit", "0", "kettle"),
    ("recall", "--nonsense", "kettle"),
    ("recall", " "),
    ("recall", "--store", "/nonexistent/store", "kettle"),
    ("context", "what do we know of Ann"),
    ("context", "--format", "json", "kettle"),
    ("context", "--budget", "20", "kettle"),
    ("--quiet", "recall", "--full", "kettle"),
)


def test_answers_are_the_same_to_the_byte(warm: Desk) -> None:
    codes = set()
    for words in LINES:
        fast, slow = warm.both(*words)
        assert fast == slow, words
        codes.add(fast[0])
    assert {0, 1, 2} <= codes
    assert warm.answered(8)  # of them were answered there


def test_the_client_loads_next_to_nothing(warm: Desk) -> None:
    code = (
        "import sys, json; from remem.cli.entry import main; code = main(['recall', 'kettle']);"
        "sys.stderr.write(json.dumps([code, sorted(sys.modules)]))"
    )

    def loaded(env: dict[str, str]) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-c", code], env={**warm.env, **env}, cwd=warm.home,
            capture_output=True, check=True,
        )  # fmt: skip
        status, names = json.loads(done.stderr.splitlines()[-1])
        assert status == 0 and b"kettle" in done.stdout
        return {n for n in names if n.startswith("remem") or n in ("msgspec", "lmdb", "numpy")}

    assert loaded({}) == {
        "remem", "remem.cli", "remem.cli.entry", "remem.cli.warmed", "remem.hooks",
        "remem.hooks.warm_client",
    }  # fmt: skip
    assert {"msgspec", "lmdb", "remem.index.recall"} <= loaded(COLD)


def test_it_sees_what_other_processes_write(warm: Desk) -> None:
    assert b"giraffe" not in warm("recall", "giraffe").stdout
    assert warm("add", "a giraffe in the yard").returncode == 0
    fast, slow = warm.both("recall", "giraffe")
    assert fast == slow and "giraffe" in fast[1]


def memory_of(pid: int) -> bytes:
    """Everything that a process can write to; nothing where it is gone."""
    try:
        return _memory_of(pid)
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _memory_of(pid: int) -> bytes:
    parts = []
    with open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as maps:
        ranges = [line.split()[:2] for line in maps if not line.rstrip().endswith("]")
                  or "[heap]" in line or "[stack]" in line]  # fmt: skip
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for span, rights in ranges:
            if not rights.startswith("rw"):
                continue
            start, end = (int(one, 16) for one in span.split("-"))
            try:
                memory.seek(start)
                parts.append(memory.read(end - start))
            except (OSError, ValueError):
                continue
    return b"\0".join(parts)


def test_after_a_purge_nothing_of_it_is_left_in_any_process(warm: Desk) -> None:
    import numpy as np

    from remem.index.hashing import HashEmbedder

    text = "the password drawer is behind the wainscot"
    added = json.loads(warm("--json", "add", text).stdout)["id"]
    rows = [np.rint(HashEmbedder().encode([form])[0] * 32767).astype("<i2").tobytes()[64:256]
            for form in (text,)]  # fmt: skip
    assert b"wainscot" in warm("recall", "wainscot drawer").stdout
    folders = warm.status()

    def holds(form: bytes) -> bool:
        return any(form in memory_of(pid) for pid in warm.processes())

    try:
        memory_of(folders["pid"])
    except OSError:
        pytest.skip("the memory of another process cannot be read here")
    assert soon(lambda: holds(rows[0]))  # the control: rows of vectors are kept, ...
    assert not holds(text.encode())  # ... texts never were
    assert holds(b"remem.index.kept")
    before = warm.processes()
    assert warm("forget", added).returncode == 0
    assert warm("purge").returncode == 0
    assert soon(lambda: not holds(rows[0]))
    assert not holds(text.encode())
    assert warm.processes() != before and warm.processes()[0] == before[0]
    fast, slow = warm.both("recall", "wainscot drawer")
    assert fast == slow and "wainscot" not in fast[1]
    for pid in warm.processes()[:2]:
        opened = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        assert not [path for path in opened if str(warm.home / "store") in path]


def test_a_principal_is_bound_as_ever(warm: Desk) -> None:
    made = warm("--json", "principal", "add", "scout", "--collection", "elsewhere", "--reads")
    if made.returncode:
        made = warm("--json", "principal", "add", "scout")
    assert made.returncode == 0, made.stderr
    token = json.loads(made.stdout)["token"]
    for env in ({"REMEM_TOKEN": token}, {"REMEM_TOKEN": "none"}, {"REMEM_AS": "scout"}):
        fast, slow = warm.both("recall", "kettle", env=env)
        assert fast == slow
    fast, _ = warm.both("recall", "kettle", env={"REMEM_TOKEN": "none"})
    assert fast[0] == 3
    assert all(token.encode() not in memory_of(pid) for pid in warm.processes())


def test_a_killed_or_stopped_process_costs_one_retry(warm: Desk) -> None:
    wanted = warm("recall", "kettle", env=COLD).stdout
    for number in (signal.SIGKILL, signal.SIGSTOP):
        if warm("warm", "--status").returncode:
            assert warm("warm").returncode == 0
        supervisor, keeper = warm.processes()[:2]
        os.kill(keeper, number)
        done = warm("recall", "kettle")
        assert (done.returncode, done.stdout, done.stderr) == (0, wanted, b"")
        os.kill(keeper, signal.SIGKILL) if number == signal.SIGSTOP else None
    os.kill(supervisor, signal.SIGKILL)
    done = warm("recall", "kettle")
    assert (done.returncode, done.stdout, done.stderr) == (0, wanted, b"")
    assert soon(lambda: warm("warm", "--status").returncode == 1)  # its keeper ends, too
    assert warm("warm").returncode == 0  # what it left is no obstacle
    assert warm("recall", "kettle").stdout == wanted


def test_killing_the_answering_process_at_any_moment_is_harmless(warm: Desk) -> None:
    wanted = warm("recall", "kettle", env=COLD)
    keeper = warm.processes()[1]
    killed = 0
    for number in range(12):
        client = subprocess.Popen(
            [*REMEM, "recall", "kettle"], env=warm.env, cwd=warm.home,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        pause = number * 0.004
        children = Path(f"/proc/{keeper}/task/{keeper}/children")
        while client.poll() is None:
            found = children.read_text(encoding="ascii").split()
            if found:
                time.sleep(pause)
                for pid in found:
                    try:
                        os.kill(int(pid), signal.SIGKILL)
                        killed += 1
                    except ProcessLookupError:
                        continue
                break
        out, err = client.communicate(timeout=60)
        assert (client.returncode, out, err) == (wanted.returncode, wanted.stdout, b"")
    assert killed


def test_another_program_is_refused(warm: Desk) -> None:
    assert wire.ask(str(warm.folder), warm.fields("recall", "kettle")) is not None
    other = wire.identity().replace("\n", "\nother", 1)
    assert wire.ask(str(warm.folder), warm.fields("recall", "kettle", identity=other)) is None


def test_settings_that_changed_hold_at_once(warm: Desk) -> None:
    assert warm("recall", "door").returncode == 0
    assert warm("config", "set", "recall.limit", "1").returncode == 0
    fast, slow = warm.both("recall", "the")
    assert fast == slow
    fast, slow = warm.both("--json", "recall", "the kettle")
    assert fast == slow and len(json.loads(fast[1])["hits"]) == 1


def test_who_cannot_read_the_store_is_not_answered(warm: Desk) -> None:
    """A client has to open the store's file itself and hand it over."""

    def asked(hand_over: Path | None) -> bytes:
        link = wire.connect(str(warm.folder))
        assert link is not None
        with link:
            wire.send(link, b"r", wire.pack(warm.fields("recall", "kettle")))
            kind, body = wire.receive(link)
            assert kind == b"?" and body == os.fsencode(warm.home / "store" / "FORMAT")
            if hand_over is None:
                link.sendall(b"f" + bytes(4))
            else:
                with hand_over.open("rb") as file:
                    socket.send_fds(link, [b"f" + bytes(4)], [file.fileno()])
            return wire.receive(link)[0]

    twin = warm.home / "FORMAT"
    twin.write_bytes((warm.home / "store" / "FORMAT").read_bytes())
    assert asked(None) == b"n"
    assert asked(twin) == b"n"
    assert asked(warm.home / "store" / "FORMAT") == b"1"


def test_what_others_could_have_put_there_is_not_trusted(warm: Desk) -> None:
    path = warm.folder / wire.SOCKET
    assert path.stat().st_mode & 0o777 == 0o600
    assert warm.folder.stat().st_mode & 0o777 == 0o700

    def connects() -> bool:
        link = wire.connect(str(warm.folder))
        if link is not None:
            link.close()
        return link is not None

    assert connects()
    warm.folder.chmod(0o755)
    assert not connects()
    assert warm("recall", "kettle").returncode == 0  # by itself
    warm.folder.chmod(0o700)
    path.chmod(0o666)
    assert not connects()
    path.chmod(0o600)
    assert connects()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to act as somebody else")
def test_another_user_is_not_answered(warm: Desk) -> None:
    for folder in (warm.home, warm.run, warm.folder):
        folder.chmod(0o755)
    for above in warm.home.parents:
        if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & 0o001:
            above.chmod(0o711)
    path = warm.folder / wire.SOCKET
    path.chmod(0o666)
    script = (
        "import os, socket, sys\n"
        "if sys.argv[2] != '0': os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(sys.argv[1])\n"
        "print(s.recv(1))"
    )

    def said(uid: int) -> bytes:
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", script, str(path), str(uid)],
            capture_output=True, check=False,
        ).stdout.strip()  # fmt: skip

    assert said(0) == b"b'.'"
    assert said(65534) == b"b''"


# Starting and ending


def test_start_status_and_stop(desk: Desk) -> None:
    for words in (("warm", "--status"), ("warm", "--stop")):
        done = desk(*words)
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"no resident process runs" in done.stderr
    assert desk("warm", "--idle", "7").returncode == 0
    first = desk.status()
    assert first["idle_seconds"] == 420 and first["answered"] == 0
    assert desk("warm").returncode == 0  # it is there already
    assert desk.status()["pid"] == first["pid"]
    assert desk("warm", "--foreground").returncode == 1
    assert desk("warm", "--stop").returncode == 0
    assert not (desk.folder / wire.SOCKET).exists()
    assert not Path(f"/proc/{first['pid']}").exists() or soon(
        lambda: not Path(f"/proc/{first['pid']}").exists()
    )
    for words in (("warm", "--idle", "0"), ("warm", "--stop", "--status")):
        assert desk(*words).returncode == 2


def test_it_starts_by_itself_where_the_user_wants_it(desk: Desk) -> None:
    assert desk("recall", "kettle").returncode == 0
    time.sleep(0.3)
    assert desk("warm", "--status").returncode == 1  # the control: nobody asked for it
    assert desk("config", "set", "--user", "warm.auto", "true").returncode == 0
    assert desk("recall", "kettle").returncode == 0
    assert soon(lambda: desk("warm", "--status").returncode == 0)
    fast, slow = desk.both("recall", "kettle")
    assert fast == slow
    assert desk.answered()


def test_a_store_that_was_found_cannot_ask_for_it(desk: Desk, tmp_path: Path) -> None:
    place = tmp_path / "clone"
    place.mkdir()
    del desk.env["REMEM_STORE"]

    def there(*words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*REMEM, *words], env=desk.env, cwd=place, capture_output=True, check=False
        )

    assert there("init", "--here").returncode == 0
    assert there("add", "a kettle").returncode == 0
    assert there("recall", "kettle").returncode == 0
    (place / ".remem" / "config.toml").write_text("[warm]\nauto = true\n", encoding="utf-8")
    done = there("recall", "kettle")
    assert done.returncode == 2 and b"warm.auto" in done.stderr


def serve(folder: Path, **options: object) -> subprocess.Popen[bytes]:
    """A server of a process of its own that answers every request with its words."""
    script = f"""
import sys
from remem.hooks.warm import Server
def answer(asked, link):
    link.say(b"1", " ".join(asked.words).encode())
    return 7
server = Server({str(folder)!r}, answer=answer, **{options!r})
if {options.get("idle_s")!r} == 60.0:
    server._files[{str(folder / "program")!r}] = -1
print(server.run())
"""
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)


def test_it_ends_when_nobody_asks(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    child = serve(folder, idle_s=1.5)
    assert soon(lambda: (folder / wire.SOCKET).exists())
    fields = [wire.RUN, wire.identity(), "/", "18", "---", *["utf-8", "strict"] * 2, "2", "a", "b"]
    reply = wire.ask(str(folder), fields)
    assert reply is not None and (reply.code, reply.parts) == (7, [(1, b"a b")])
    assert child.wait(timeout=15) == 0
    assert not (folder / wire.SOCKET).exists()


def test_it_ends_when_the_program_was_changed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    child = serve(folder, idle_s=60.0)
    assert soon(lambda: (folder / wire.SOCKET).exists())
    fields = [wire.RUN, wire.identity(), "/", "18", "---", *["utf-8", "strict"] * 2, "1", "a"]
    assert wire.ask(str(folder), fields) is not None  # the control
    (folder / "program").write_text("another", encoding="utf-8")
    assert wire.ask(str(folder), fields) is None
    assert child.wait(timeout=15) == 0


def test_requests_that_make_no_sense_end_nothing(warm: Desk) -> None:
    for raw in (b"", b"r", b"r\xff\xff\xff\xff", b"x\0\0\0\1z", b"r\0\0\0\3a\0b"):
        link = wire.connect(str(warm.folder))
        assert link is not None
        with link:
            link.sendall(raw)
            link.shutdown(socket.SHUT_WR)
            assert link.recv(10) == b""
    fast, slow = warm.both("recall", "kettle")
    assert fast == slow
    assert warm.answered()


# Pieces


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("recall x", True), ("context x", True), ("--json recall x", True),
        ("--store /s recall x", True), ("--store=/s recall x", True), ("-q recall x", True),
        ("add recall", False), ("add -- recall", False), ("show recall", False),
        ("recall --batch -", False), ("recall --batch=f", False), ("-- recall", False),
        ("--json add recall", True), ("", False), ("recall", True),
    ],
)  # fmt: skip
def test_lines_that_may_be_questions(line: str, asked: bool) -> None:
    """A line that only may be one costs a millisecond: the server reads it by the table."""
    assert wire.wanted(line.split()) is asked


def test_a_request_survives_the_wire() -> None:
    words = ["recall", "", "ein Wort\nnoch eins", "\udcff\udc80", "=x"]
    env = {"A": "", "B": "x=y\n", "C": "\udcfe"}
    fields = [wire.RUN, "id", "/tmp/a b", "63", "t-t", "utf-8", "strict", "latin-1", "replace",
              str(len(words)), *words, *(f"{k}={v}" for k, v in env.items())]  # fmt: skip
    asked = Request(wire.unpack(wire.pack(fields)))
    assert (asked.words, asked.env, asked.cwd, asked.umask) == (words, env, "/tmp/a b", 63)
    assert asked.terminals == [True, False, True]
    assert asked.encodings == [("utf-8", "strict"), ("latin-1", "replace")]
    for cut in range(len(fields) - len(env)):
        with pytest.raises(ValueError, match=r"."):
            Request(fields[:cut])


def test_streams_are_what_the_client_has() -> None:
    here, there = socket.socketpair()
    fields = [wire.RUN, "", "/", "18", "-t-", *["utf-8", "strict"] * 2, "0"]
    stdin, stdout, stderr = Link(here).streams(Request(fields))
    assert [s.isatty() for s in (stdin, stdout, stderr)] == [False, True, False]
    assert stdin.read() == ""
    stdout.buffer.write(b"later")
    stderr.write("at once\n")
    stdout.flush()
    assert [wire.receive(there), wire.receive(there)] == [(b"2", b"at once\n"), (b"1", b"later")]
    here.close()
    there.close()
    stdout.write("to nobody")
    stdout.flush()  # a client that is gone is no error


def test_a_folder_that_others_may_use_is_refused(tmp_path: Path) -> None:
    from remem.objects.errors import StoreError

    loose = tmp_path / "loose"
    loose.mkdir()
    loose.chmod(0o755)
    for folder, word in ((loose, "others"), (tmp_path / ("x" * 120), "too long")):
        with pytest.raises(StoreError, match=word):
            Server(str(folder), idle_s=1.0, answer=lambda asked, link: 0).run()
