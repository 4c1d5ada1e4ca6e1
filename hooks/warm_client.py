"""Asking the resident process: all of it that a command has to load.

The client sends what a process of its own would have been started with: words, environment, folder
and the nature of its streams.  What comes back is what that process would have written, piece by
piece, and its exit status.  Nothing is shown before the status is there, so that a resident
process that dies at any moment leaves nothing behind, and the command runs by itself.

Messages, in both directions: kind (1 byte), length (4 bytes, the greatest first), body.

=====  =======  ==========================================================================
kind   from     body
=====  =======  ==========================================================================
``.``  server   none: the connection was taken; without length
``r``  client   a request: fields that end with a zero byte (see :func:`pack`)
``?``  server   path of a file of the store, to be opened by the client
``f``  client   none; the open file is handed over beside it, or nothing is
``1``  server   bytes for standard output
``2``  server   bytes for standard error
``x``  server   exit status in decimals: the answer is whole
``n``  server   why the command has to run by itself
``s``  server   what there is to say of the server, as JSON
=====  =======  ==========================================================================
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from socket import socket

COMMANDS = ("recall", "context")
SOCKET = "warm"  # in the runtime folder
TAKEN_S = 0.5  # a server that is well takes a connection at once
SILENCE_S = 20.0  # without a byte: it hangs, or has more to do than it should
MAX_B = 1 << 30
MAX_PATH_B = 100  # of a socket; the system allows 104 or 108
RUN, STATUS, STOP = "run", "status", "stop"
ANSWERS = b"12xns"


class Reply:
    """What a command wrote, in order, and its exit status.

    Attributes:
        code: the exit status.
        parts: (1 or 2, bytes): for standard output or standard error.
    """

    __slots__ = ("code", "parts")

    def __init__(self, code: int, parts: list[tuple[int, bytes]]) -> None:
        """Take both."""
        self.code = code
        self.parts = parts


def wanted(words: Sequence[str]) -> bool:
    """Whether a command line may be one that the resident process answers.

    It is sure of no more than that; the server reads the words by the command table.
    """
    before = ""
    for word in words:
        if word.startswith("-") and word != "-":
            if word == "--":
                return False
            before = word
            continue
        if word in COMMANDS:
            return not any(given.startswith("--batch") for given in words)
        if not before or "=" in before:
            return False
        before = ""  # the value of an option
    return False


def folder_of(env: Mapping[str, str], home: str) -> str:
    """The folder of the socket: that of the session, else one in the user's cache."""
    base = env.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(base):
        return os.path.join(base, "remem")
    base = env.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(home, ".cache")
    return os.path.join(base, "remem", "run")


def identity() -> str:
    """What a server and its client have in common: program, its place, its interpreter."""
    from remem import __version__

    where = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    interpreter = sys.prefix, str(sys.implementation.cache_tag), sys.getfilesystemencoding()
    return "\n".join((__version__, where, *interpreter))


def pack(fields: Sequence[str]) -> bytes:
    """Fields as one body; no argument and no variable of a process has a zero byte."""
    return b"".join(os.fsencode(field) + b"\0" for field in fields)


def unpack(body: bytes) -> list[str]:
    """The fields of a body."""
    return [os.fsdecode(field) for field in body.split(b"\0")[:-1]]


def connect(folder: str) -> socket | None:
    """A connection to this user's server, or None where there is none that can be trusted."""
    path = os.path.join(folder, SOCKET)
    try:
        own, there = os.lstat(folder), os.lstat(path)
    except OSError:
        return None
    mine = own.st_uid == there.st_uid == os.geteuid()
    if not mine or own.st_mode & 0o170077 != 0o040000 or there.st_mode & 0o170077 != 0o140000:
        return None
    import socket

    if not hasattr(socket, "SO_PEERCRED") or len(os.fsencode(path)) > MAX_PATH_B:
        return None
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.settimeout(TAKEN_S)
        link.connect(path)
        if peer_uid(link) == os.geteuid() and link.recv(1) == b".":
            link.settimeout(SILENCE_S)
            return link
    except OSError:
        pass
    link.close()
    return None


def peer_uid(link: socket) -> int:
    """Who is at the other end, as the kernel noted when the connection was made."""
    import socket

    raw = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)  # pid, uid, gid
    return int.from_bytes(raw[4:8], sys.byteorder, signed=True)


def ask(folder: str, fields: Sequence[str]) -> Reply | None:
    """Have the server answer a request.

    Args:
        folder: of the socket.
        fields: of the request, as `remem.hooks.warm.Request` reads them.

    Returns:
        The answer, or None: the command has to run by itself.
    """
    link = connect(folder)
    if link is None:
        return None
    parts: list[tuple[int, bytes]] = []
    try:
        send(link, b"r", pack(fields))
        while True:
            kind, body = receive(link)
            if kind in (b"1", b"2"):
                parts.append((int(kind), body))
            elif kind == b"?":
                _hand_over(link, os.fsdecode(body))
            elif kind == b"x":
                return Reply(int(body), parts)
            elif kind == b"s":
                return Reply(0, [(1, body)])
            else:
                return None
    except (OSError, ValueError):
        return None  # it died, hangs, or talks in another way
    finally:
        link.close()


def send(link: socket, kind: bytes, body: bytes) -> None:
    """Send one message."""
    link.sendall(kind + len(body).to_bytes(4, "big") + body)


def receive(link: socket) -> tuple[bytes, bytes]:
    """The next message.

    Raises:
        OSError, ValueError: there is no whole one.
    """
    head = exactly(link, 5)
    size = int.from_bytes(head[1:], "big")
    if size > MAX_B:
        raise ValueError("a message has no such length")
    return head[:1], exactly(link, size)


def exactly(link: socket, size: int) -> bytes:
    """So many bytes.

    Raises:
        OSError: the other end is gone or silent.
    """
    parts = []
    while size:
        part = link.recv(min(size, 1 << 20))
        if not part:
            raise OSError("the other end is gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _hand_over(link: socket, path: str) -> None:
    """Open a file and hand it over: the proof that this process may read the store itself."""
    import socket

    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        socket.send_fds(link, [b"f" + bytes(4)], [file])
    finally:
        os.close(file)
