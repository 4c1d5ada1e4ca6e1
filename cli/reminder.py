"""What waits for a decision: in ``remem status``, and once a day a line on a terminal.

The line is for the owner who types a command on a terminal.  When it came last is told by the time
of a file in the folder of locks, so that nearly every command looks at that file and at nothing
else; and the store is read only where the command has opened it anyway.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.objects.reader import Reader

STAMP = "reminded"  # in the folder of locks
DAY_S = 86_400
# They show what waits by themselves, or end the terminal's quiet on purpose.
_SILENT = frozenset(("review", "draft", "quarantine", "status", "demo", "help", "completion"))


def remind(context: Context) -> None:
    """Say once a day, on stderr of a terminal, what waits for a decision."""
    store = context.opened
    if store is None or context.command.name in _SILENT or context.json or not context.progress:
        return
    if not sys.stdin.isatty() or context.bound is not None:
        return
    stamp = os.path.join(store.locks_path, STAMP)
    try:
        if time.time() - os.stat(stamp).st_mtime < DAY_S:
            return
    except OSError:
        pass  # it never came
    from remem.objects.errors import RememError

    try:
        with store.read(context.actor().grant) as reader:
            found = counts(reader)
        handle = os.open(stamp, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        os.close(handle)
        os.utime(stamp)
    except (OSError, RememError):
        return  # a store that only can be read, or is gone: nothing is lost
    if found["items"]:
        context.note(line(found, context.collection()[0]))


def line(found: Json, collection: str) -> str:
    """The line: how many things wait, since when, and what to do."""
    from remem.cli.counts import counted

    items, oldest = found["items"], found["oldest_age_s"]
    assert isinstance(items, int) and isinstance(oldest, int)
    where = found["collections"]
    wider = "" if where == [collection] else " --all-collections"
    verb = "waits" if items == 1 else "wait"
    what = f"{counted(items, 'item')} {verb} for review, oldest {_age(oldest)}"
    return f"{what}: 'remem review{wider}'"


def _age(seconds: int) -> str:
    from remem.cli.counts import age

    return age(seconds * 1_000_000)


def counts(reader: Reader) -> Json:
    """Numbers of what waits by kind, since when, and in which collections."""
    from remem.cli.shapes import stamp
    from remem.objects import drafts, instant

    items = drafts.waiting(reader)
    oldest = items[0].since if items else None
    return {
        "items": len(items),
        "operations": sum(item.kind == "operation" for item in items),
        "quarantined": sum(item.kind == "quarantined" for item in items),
        "claims": sum(item.kind == "claim" for item in items),
        "oldest_at": stamp(oldest),
        "oldest_age_s": None if oldest is None else max(0, instant.now() - oldest) // 1_000_000,
        "collections": sorted({item.part.collection for item in items}),
    }


def row(found: Json) -> str:
    """The row of ``remem status``, where something waits."""
    items, oldest = found["items"], found["oldest_age_s"]
    assert isinstance(oldest, int)
    kinds = {
        "operations": "proposed",
        "quarantined": "quarantined",
        "claims": "pending from a pack",
    }
    words = [f"{found[name]:,} {word}" for name, word in kinds.items() if found[name]]
    return f"{items:,} for review ({', '.join(words)}), oldest {_age(oldest)}"
