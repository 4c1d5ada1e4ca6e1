"""Asking the resident process first, where there is one: recall and context.

It imports next to nothing.  Whatever is not as it should be, the answer is None, and the command
runs as ever.
"""

from __future__ import annotations

import os
import sys

from remem.hooks import warm_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

COLD = "REMEM_COLD"  # not empty: no resident process is asked


def folder(env: Mapping[str, str]) -> str:
    """The folder of the resident process's socket."""
    return warm_client.folder_of(env, env.get("HOME") or os.path.expanduser("~"))


def try_run(words: list[str]) -> int | None:
    """Have the resident process answer a command line.

    Returns:
        The exit status of the command, or None when it has to run here.
    """
    env = os.environ
    if not warm_client.wanted(words) or env.get(COLD) or env.get("REMEM_DEBUG"):
        return None
    where = folder(env)
    if not os.path.exists(os.path.join(where, warm_client.SOCKET)):
        return None
    fields = request(warm_client.RUN, words)
    if fields is None:
        return None
    try:
        reply = warm_client.ask(where, fields)
        return None if reply is None else _show(reply)
    except (KeyboardInterrupt, OSError) as error:
        from remem.cli.run import guarded

        caught = error

        def again(words: list[str]) -> int:
            raise caught

        return guarded(again, words)


def request(what: str, words: list[str]) -> list[str] | None:
    """The fields of a request from this process; None where it has not all that one needs."""
    streams = sys.stdin, sys.stdout, sys.stderr
    if any(stream is None for stream in streams):
        return None
    try:
        cwd = os.getcwd()
        terminals = "".join("t" if stream.isatty() else "-" for stream in streams)
    except (OSError, ValueError):
        return None
    mask = os.umask(0o077)
    os.umask(mask)
    return [
        what,
        warm_client.identity(),
        cwd,
        str(mask),
        terminals,
        *(str(part) for out in streams[1:] for part in (out.encoding, out.errors)),
        str(len(words)),
        *words,
        *(f"{name}={value}" for name, value in os.environ.items()),
    ]


def _show(reply: warm_client.Reply) -> int:
    """Write what the command wrote, in its order."""
    for number, data in reply.parts:
        out = (sys.stdout if number == 1 else sys.stderr).buffer
        out.write(data)
        out.flush()
    return reply.code
