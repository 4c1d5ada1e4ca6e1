"""The resident process: answers questions of the command line with everything loaded.

Two processes.  The *supervisor* has loaded the program and the model, owns the socket, and never
touches a store.  The *keeper* is its child; it takes connections and forks a process for each,
which runs the very command that the client would have run, with the client's words, environment
and folder, and is gone with its answer.  So nothing of a question, a token or a text outlives the
answer, one question cannot spoil another, and a store is opened, and a principal bound, by the code
of any command.

What the keeper holds of a store are rows of its vector indexes (`remem.index.kept`).  Once a second
it looks whether rows that it holds were removed from the store, and if so it ends: its memory goes
back to the system as a whole, and the supervisor starts another.

Who asks is known from the kernel (SO_PEERCRED), and has to open the store's FORMAT file itself and
hand it over: a process that was shut off from the store cannot have it read by this one.
"""

from __future__ import annotations

import gc
import io
import json
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from remem.hooks import warm_client as wire
from remem.index import kept
from remem.objects import disk
from remem.objects.errors import RememError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

AGAIN = 75  # exit status of a keeper that wants to be replaced
TICK_S = 1.0
REQUEST_S = 5.0  # a client that has not said by then what it wants
MOST_AT_ONCE = 16  # processes that answer; more connections wait
_BACKLOG = 64
_CRASH_S = 1.0  # a keeper that lived shorter is not started again
_PIPE_B = 4000  # a write of so much to a pipe is never mixed with another


class Request:
    """What a client wants to have run.

    Attributes:
        what: ``run``, ``status`` or ``stop``.
        identity: of the client's program.
        cwd: its folder.
        umask: its mask.
        terminals: which of its streams 0, 1 and 2 are terminals.
        encodings: of its standard output and error: (encoding, errors) each.
        words: the command line.
        env: its environment.
    """

    __slots__ = ("cwd", "encodings", "env", "identity", "terminals", "umask", "what", "words")

    def __init__(self, fields: Sequence[str]) -> None:
        """Read the fields.

        Raises:
            ValueError: they are not those of a request.
        """
        self.what, self.identity, self.cwd, umask, terminals, *rest = fields
        out_codec, out_errors, err_codec, err_errors, count, *rest = rest
        self.umask = int(umask)
        self.terminals = [mark == "t" for mark in terminals]
        self.encodings = [(out_codec, out_errors), (err_codec, err_errors)]
        self.words = rest[: int(count)]
        self.env = dict(field.split("=", 1) for field in rest[int(count) :])
        if len(self.terminals) != 3 or len(self.words) != int(count):
            raise ValueError("a request was cut short")


class Link:
    """The connection to a client, as the process that answers it sees it."""

    def __init__(self, connection: socket.socket) -> None:
        """Take an accepted connection."""
        self._link = connection
        connection.settimeout(REQUEST_S)

    def request(self) -> Request:
        """What the client wants.

        Raises:
            OSError, ValueError: it says nothing that can be understood.
        """
        kind, body = wire.receive(self._link)
        if kind != b"r":
            raise ValueError("not a request")
        return Request(wire.unpack(body))

    def may_read(self, path: str) -> bool:
        """Whether the client opens this very file when it is asked to."""
        wire.send(self._link, b"?", os.fsencode(path))
        files: list[int] = []
        try:
            head, files, _, _ = socket.recv_fds(self._link, 5, 1)
            if head[:1] != b"f" or len(files) != 1:
                return False
            theirs, ours = os.fstat(files[0]), os.stat(path)
            return (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)
        except OSError:
            return False
        finally:
            for file in files:
                os.close(file)

    def say(self, kind: bytes, body: bytes = b"") -> None:
        """Send a message; a client that is gone is none of our business."""
        with suppress(OSError):
            wire.send(self._link, kind, body)

    def streams(self, asked: Request) -> tuple[io.TextIOWrapper, ...]:
        """Standard input, output and error as the client's are, leading to the client."""
        made = []
        for number, terminal in enumerate(asked.terminals):
            raw = _Stream(self, number, terminal)
            if number == 0:
                made.append(io.TextIOWrapper(io.BufferedReader(raw), "utf-8"))
                continue
            encoding, errors = asked.encodings[number - 1]
            made.append(
                io.TextIOWrapper(
                    io.BufferedWriter(raw),  # type: ignore[arg-type]  # which needs no reading
                    encoding,
                    errors,
                    line_buffering=terminal or number == 2,
                )
            )
        return tuple(made)


class _Stream(io.RawIOBase):
    """One of the client's streams: empty to read, sent on when written."""

    def __init__(self, link: Link, number: int, terminal: bool) -> None:
        self._to = link
        self._number = number
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def readable(self) -> bool:
        return self._number == 0

    def writable(self) -> bool:
        return self._number != 0

    def readinto(self, buffer: object) -> int:
        return 0

    def write(self, data: object) -> int:
        raw = bytes(data)  # type: ignore[call-overload]
        self._to.say(b"12"[self._number - 1 : self._number], raw)
        return len(raw)


class Server:
    """Both processes.

    Args:
        folder: of the socket.
        idle_s: end after so long without a question.
        answer: runs a command and returns its exit status, or None: the client has to run it.
        rehearse: does once what every process would do again; it touches no store.
        modules: what to load beforehand; what else commands turn out to load is loaded later.
        embedder: as the settings name it.
        cache_dir: folder for what can be made again.
    """

    def __init__(
        self,
        folder: str,
        *,
        idle_s: float,
        answer: Callable[[Request, Link], int | None],
        rehearse: Callable[[], None] | None = None,
        modules: Sequence[str] = (),
        embedder: str = "none",
        cache_dir: str | None = None,
    ) -> None:
        """Remember; nothing happens before :meth:`run`."""
        self.folder = folder
        self.path = os.path.join(folder, wire.SOCKET)
        self._idle_s = idle_s
        self._answer = answer
        self._rehearse = rehearse
        self._modules = modules
        self._embedder = embedder
        self._cache_dir = cache_dir
        self._supervisor = 0
        self._began = self._used = time.monotonic()
        self._answered = 0
        self._ending = False
        self._files: dict[str, int] = {}
        self._busy: set[int] = set()

    # -- the supervisor -----------------------------------------------------------------------

    def run(self) -> bool:
        """Serve until it is idle for too long, stopped or outdated.

        Returns:
            False when another server is there already.

        Raises:
            StoreError: the folder or the socket cannot be made, or this system has no way to tell
                who asks.
        """
        lock = self._alone()
        if lock is None:
            return False
        listener: socket.socket | None = None
        try:
            self._load()
            listener = self._listen()
            mine = os.lstat(self.path).st_ino
            self._supervise(listener)
            with suppress(OSError):
                if os.lstat(self.path).st_ino == mine:
                    os.unlink(self.path)
        finally:
            if listener is not None:
                listener.close()
            os.close(lock)
        return True

    def _alone(self) -> int | None:
        """The lock that one server holds, or None when another has it."""
        import fcntl

        if not hasattr(socket, "SO_PEERCRED"):
            raise StoreError("this system does not tell who is at the other end of a socket")
        if len(os.fsencode(self.path)) > wire.MAX_PATH_B:
            raise StoreError(f"the path '{self.path}' is too long for a socket")
        try:
            disk.make_folders(self.folder)
            own = os.lstat(self.folder)
            if own.st_uid != os.geteuid() or own.st_mode & 0o077:
                raise StoreError(
                    f"others may use the folder '{self.folder}'",
                    hint=f"chmod 700 '{self.folder}'",
                )
            lock = os.open(self.path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot use the folder '{self.folder}': {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return None
        return lock

    def _load(self) -> None:
        for name in self._modules:
            import_module(name)
        if self._rehearse is not None:
            self._rehearse()
        self._note_files()
        kept.switch_on()
        with suppress(RememError):  # without an embedder questions say so themselves
            kept.keep_embedder(self._embedder, cache_dir=self._cache_dir)

    def _listen(self) -> socket.socket:
        with suppress(FileNotFoundError):
            os.unlink(self.path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        old = os.umask(0o177)
        try:
            listener.bind(self.path)
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise StoreError(f"cannot listen on '{self.path}': {error.strerror}") from error
        finally:
            os.umask(old)
        listener.setblocking(False)
        return listener

    def _supervise(self, listener: socket.socket) -> None:
        """Start a keeper, and another one whenever it wants to be replaced or was killed."""
        self._supervisor = os.getpid()
        gc.collect()
        gc.freeze()  # the collector would touch, and so copy, every page that is shared
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, self._end)
        while not self._ending:
            began = time.monotonic()
            keeper = os.fork()
            if not keeper:
                _leave(lambda: self._keep(listener))
            status = self._await(keeper)
            killed = os.WIFSIGNALED(status) and time.monotonic() - began > _CRASH_S
            if not killed and (os.WIFSIGNALED(status) or os.WEXITSTATUS(status) != AGAIN):
                return

    def _await(self, keeper: int) -> int:
        """Wait for the keeper's end, and have it end when this process shall."""
        told = False
        while True:
            if self._ending and not told:
                told = True
                with suppress(ProcessLookupError):
                    os.kill(keeper, signal.SIGTERM)
            done, status = os.waitpid(keeper, os.WNOHANG)
            if done:
                return status
            with suppress(InterruptedError):
                _sleep_until_signal(TICK_S / 10)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._ending = True

    # -- the keeper ---------------------------------------------------------------------------

    def _keep(self, listener: socket.socket) -> int:
        """Take connections until there is a reason to end; the exit status."""
        told, tell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        watch = select.poll()
        watch.register(told, select.POLLIN)
        watch.register(listener, select.POLLIN)
        mine = os.lstat(self.path).st_ino
        looked = 0.0
        while not self._ending:
            ready = {number for number, _ in watch.poll(TICK_S * 1000)}
            self._reap()
            if told in ready:
                self._learn(os.read(told, 1 << 16))
            if listener.fileno() in ready and len(self._busy) < MOST_AT_ONCE:
                self._take(listener, told, tell)
            now = time.monotonic()
            if now - looked < TICK_S:
                continue
            looked = now
            if kept.is_stale():
                return AGAIN
            if os.getppid() != self._supervisor or not self._is_mine(mine) or self._outdated():
                return 0
            if not self._busy and now - self._used > self._idle_s:
                return 0
        return 0

    def _is_mine(self, inode: int) -> bool:
        try:
            return os.lstat(self.path).st_ino == inode
        except OSError:
            return False

    def _take(self, listener: socket.socket, told: int, tell: int) -> None:
        """Accept a connection and fork the process that answers it."""
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            try:
                if wire.peer_uid(connection) != os.geteuid():
                    return
                connection.settimeout(TICK_S)
                connection.send(b".")
            except OSError:
                return
            self._used = time.monotonic()
            child = os.fork()
            if not child:
                listener.close()
                os.close(told)
                _leave(lambda: self._serve(connection, tell))
            self._busy.add(child)

    def _reap(self) -> None:
        for child in list(self._busy):
            with suppress(ChildProcessError):
                if os.waitpid(child, os.WNOHANG)[0] == 0:
                    continue
            self._busy.discard(child)

    def _learn(self, raw: bytes) -> None:
        """Load what commands had to load themselves."""
        modules: set[str] = set()
        indexes: dict[str, list[str]] = {}
        for line in raw.splitlines():
            with suppress(ValueError):
                known = json.loads(line)
                self._answered += known.get("answered", 0)
                modules.update(known.get("modules", ()))
                indexes.update(known.get("vectors", {}))
        if modules and self._outdated():
            return
        for name in sorted(modules):
            with suppress(ImportError):
                import_module(name)
        for folder, (name, dim, digest) in indexes.items():
            with suppress(RememError, OSError, ValueError):
                kept.keep_vectors(folder, name, int(dim), digest)
        self._note_files()
        gc.freeze()

    def _note_files(self) -> None:
        """Note when the files of the program were changed last."""
        for name, module in list(sys.modules.items()):
            path = getattr(module, "__file__", None)
            if name.partition(".")[0] == "remem" and path and path not in self._files:
                self._files[path] = _changed(path)

    def _outdated(self) -> bool:
        """Whether the program on disk is another one by now."""
        return any(_changed(path) != when for path, when in self._files.items())

    # -- the process that answers -------------------------------------------------------------

    def _serve(self, connection: socket.socket, tell: int) -> int:
        link = Link(connection)
        try:
            asked = link.request()
        except (OSError, ValueError):
            return 1
        if asked.what == wire.STATUS:
            link.say(b"s", json.dumps(self._status()).encode())
        elif asked.what == wire.STOP:
            os.kill(self._supervisor, signal.SIGTERM)
            link.say(b"s", json.dumps({"pid": self._supervisor}).encode())
        elif asked.identity != wire.identity() or self._outdated():
            link.say(b"n", b"another program")
        else:
            self._run(link, asked, tell)
        return 0

    def _run(self, link: Link, asked: Request, tell: int) -> None:
        before = set(sys.modules)
        code = self._answer(asked, link)
        if code is None:
            link.say(b"n", b"not a question, or not one for here")
            return
        link.say(b"x", str(code).encode())
        _report(tell, sorted(set(sys.modules) - before))

    def _status(self) -> dict[str, object]:
        """Figures for people."""
        return {
            "pid": self._supervisor,
            "socket": self.path,
            "seconds": int(time.monotonic() - self._began),
            "idle_seconds": int(self._idle_s),
            "answered": self._answered,
            "indexes": kept.folders(),
            "bytes": kept.size_b(),
        }


def _report(tell: int, modules: list[str]) -> None:
    """Tell the keeper what it could have had loaded."""
    missed = kept.missed()
    lines: list[dict[str, object]] = [{"answered": 1}]
    lines += [{"vectors": {k: v}} for k, v in missed.items()]
    lines += [{"modules": modules[at : at + 40]} for at in range(0, len(modules), 40)]
    for line in lines:
        raw = json.dumps(line).encode() + b"\n"
        if len(raw) <= _PIPE_B:
            with suppress(OSError):
                os.write(tell, raw)


def _leave(work: Callable[[], int]) -> None:
    """Do the work of a forked process and end it without the parent's farewells."""
    code = 70
    try:
        code = work()
    except BaseException:  # nobody is there to be told; the client runs the command itself
        code = 70
    finally:
        os._exit(code)


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return -1


def _sleep_until_signal(seconds: float) -> None:
    """Sleep; a signal that is handled ends it early."""
    select.select([], [], [], seconds)
