"""remem hook-event: an event that another program's hook hands over on standard input.

It always ends well and prints nothing but the answer: a memory must not stand in the way of the
work.  What went wrong is in a log of its own.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from remem.cli.settings import home
from remem.objects.errors import UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.hooks.claude import Event

PROGRAMS = ("claude",)
LOG_B = 64 * 1024  # of the log; a larger one begins again


def run(context: Context, *, program: str, event: str) -> int:
    """Answer or keep one event."""
    from remem.hooks import claude

    if program not in PROGRAMS:
        raise UsageError(f"'{program}' has no events", hint="one of " + ", ".join(PROGRAMS))
    if event not in claude.EVENTS:
        raise UsageError(f"'{event}' is no event", hint="one of " + ", ".join(claude.EVENTS))
    try:
        if not context.claims:  # what a hook keeps, the owner keeps
            given = claude.decode(sys.stdin.buffer.read(claude.MOST_B + 1))
            answer = _answer(context, event, given)
            context.stdout.write(answer)
            context.stdout.flush()
    except Exception as error:
        _log(context, f"{program} {event}: {type(error).__name__}: {error}")
    return 0


def _answer(context: Context, event: str, given: Event) -> bytes:
    """What is printed for an event."""
    from remem.hooks import claude

    if os.path.isdir(given.cwd):
        os.chdir(given.cwd)  # the project of the session, not that of whoever calls
    if not os.path.exists(os.path.join(context.root, "FORMAT")):
        return b""
    collection = context.collection()[0]
    if event in claude.KEEPS and _left_out(context, given.cwd):
        return b""
    if event == "post-tool-use":
        claude.append(context.own_root, given.session_id, claude.records(given, collection))
        return b""
    import msgspec

    from remem.cli import opening
    from remem.hooks.sources.claude_code import AGENT

    store = opening.memory(context, surface="hook")
    scope = msgspec.structs.replace(
        store.actor.scope,
        agent=AGENT,
        session=given.session_id.strip()[:100] or store.actor.scope.session,
    )
    store.actor = msgspec.structs.replace(store.actor, scope=scope)
    if event == "session-end":
        claude.import_transcript(store, given, collection)
        return b""
    text = claude.begin(store) if event == "session-start" else claude.prompted(store, given)
    return claude.reply(event, text)


def _left_out(context: Context, folder: str) -> bool:
    """Whether nothing is to be kept: by the switch of all hooks, or an ignore file."""
    if context.environ.get("REMEM_OFF", "0") not in ("", "0"):
        return True
    from remem.hooks.ignore import Ignore

    return os.path.isabs(folder) and Ignore().folder(folder)


def log_path(context: Context) -> str:
    """Where it is told what went wrong in a hook."""
    base = context.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(home(context.environ), ".local", "state")
    return os.path.join(base, "remem", "hook.log")


def _log(context: Context, text: str) -> None:
    import time

    from remem.cli.plain import one_line
    from remem.objects.redact import clean

    path = log_path(context)
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {one_line(clean(text)[0])}\n"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(path, flags, 0o600)
        with open(handle, "wb") as file:
            if os.fstat(handle).st_size > LOG_B:
                file.truncate(0)
            file.write(line.encode("utf-8", "backslashreplace"))
    except OSError:
        return  # there is nowhere to say it
