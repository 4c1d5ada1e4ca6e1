"""Consolidation from cron: a line of a log for each run, and silence unless a person is needed.

What is printed by a job of cron is mailed, so the same need is told once a day at most.  The log
stands in the user's state folder; it holds counts and no text.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from remem.cli.settings import home
from remem.objects.errors import IntegrityError, RememError, StoreLocked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from remem.cli.context import Context
    from remem.hooks.consolidate import Slept

LOG = "consolidate.log"
MAX_B = 256 << 10  # a log larger than this is put aside
KEPT = 3  # logs that were put aside
AGAIN_US = 86_400_000_000  # a need that was told is told again after so long


def kept(context: Context, sleep: Callable[[], Slept]) -> int:
    """Run a consolidation, log it, and say what only a person can do.

    Raises:
        RememError: it failed; that is logged and goes on to whoever reads the mail of cron.
    """
    from remem.cli.commands.consolidate import ordered

    path = log_path(context.environ)
    try:
        slept = sleep()
    except StoreLocked as error:
        write(path, context.root, f"waits: {error}")
        return 0
    except RememError as error:
        write(path, context.root, f"failed: {error}")
        raise
    words = [slept.status, *(f"{name} {number}" for name, number in ordered(slept.counts))]
    words += slept.notes
    words.append(f"{(slept.ended - slept.started) / 1_000_000:.1f} s")
    write(path, context.root, ", ".join(words))
    _tell(context, slept)
    return IntegrityError.exit_code if slept.findings else 0


def _tell(context: Context, slept: Slept) -> None:
    """Say what only a person can do, unless that was said lately."""
    from remem.hooks.sleep.stamp import read_stamp, write_stamp

    store = context.opened
    if not slept.needs or store is None:
        return
    stamp = read_stamp(store.locks_path)
    now = time.time_ns() // 1000
    if stamp.needs == slept.needs and 0 <= now - stamp.told < AGAIN_US:
        return
    for need in slept.needs:
        context.out(f"remem: {need}")
    stamp.needs, stamp.told = slept.needs, now
    write_stamp(store.locks_path, stamp)


def log_path(environ: Mapping[str, str]) -> str:
    """Path of the log: in the user's state folder."""
    base = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(home(environ), ".local", "state")
    return os.path.join(base, "remem", LOG)


def write(path: str, root: str, text: str) -> None:
    """Append a line; a folder that cannot be written to goes without."""
    from remem.cli.plain import one_line

    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = f"{when} {one_line(root)}: {one_line(text)}\n"
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        _rotate(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        handle = os.open(path, flags, 0o600)
        try:
            os.write(handle, line.encode("utf-8", "backslashreplace"))
        finally:
            os.close(handle)


def _rotate(path: str) -> None:
    """Put a log that has grown too large aside; the oldest one goes."""
    try:
        if os.path.getsize(path) < MAX_B:
            return
    except OSError:
        return
    for number in range(KEPT, 0, -1):
        older = path if number == 1 else f"{path}.{number - 1}"
        with suppress(FileNotFoundError):
            os.replace(older, f"{path}.{number}")
