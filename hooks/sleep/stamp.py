"""When the store slept last, and what it has looked at: a small file beside the locks.

It holds no text and is no part of the truth: without it the next consolidation looks at everything
again.  ``remem doctor`` and ``remem status`` read it, since a sleep that changed nothing leaves no
run in the store.
"""

from __future__ import annotations

import os
from contextlib import suppress

import msgspec

FILE = "slept"  # in the folder of locks
AGAIN_US = 86_400_000_000  # what was looked at longer ago is looked at again


class Stamp(msgspec.Struct):
    """The last sleep.

    Attributes:
        started, ended: microseconds UTC; 0 for never.
        status: "done" or "partial".
        surface: "cli" or "cron".
        counts: what was changed, by name.
        seen: partition -> (last log entry that was looked at, when).
        needs: what a person was told to do.
        told: when that was, microseconds UTC.
        scheduled: when it was put on a schedule, microseconds UTC; 0 for never.
    """

    started: int = 0
    ended: int = 0
    status: str = ""
    surface: str = ""
    counts: dict[str, int] = {}
    seen: dict[str, tuple[int, int]] = {}
    needs: list[str] = []
    told: int = 0
    scheduled: int = 0

    def has_seen(self, mark: str, seq: int, now: int) -> bool:
        """Whether nothing was written to a partition since it was looked at, not long ago."""
        found = self.seen.get(mark)
        return found is not None and found[0] == seq and 0 <= now - found[1] < AGAIN_US

    def see(self, mark: str, seq: int, now: int) -> None:
        """Note that a partition was looked at up to a log entry."""
        self.seen[mark] = (seq, now)


def read_stamp(folder: str) -> Stamp:
    """The stamp in a folder of locks; an empty one where there is none that can be read."""
    try:
        with open(os.path.join(folder, FILE), "rb") as file:
            return msgspec.json.decode(file.read(), type=Stamp)
    except (OSError, msgspec.MsgspecError):
        return Stamp()


def write_stamp(folder: str, stamp: Stamp) -> None:
    """Replace the stamp; a folder that cannot be written to goes without."""
    path = os.path.join(folder, FILE)
    temporary = f"{path}.{os.getpid()}"
    with suppress(OSError):
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(handle, "wb") as file:
            file.write(msgspec.json.encode(stamp))
        os.replace(temporary, path)
