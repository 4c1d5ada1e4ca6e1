"""A glance at the spool: whether anything waits there, which nearly every command asks.

So it looks at names and sizes, and imports next to nothing; `remem.hooks.spool` knows the rest.

Source: remem-store(5), SPOOL.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.objects import format as fmt
from remem.objects.scope import maintenance_grant

if TYPE_CHECKING:
    from remem.objects.store import Store

CURSOR = b"spool/"  # rows of the table meta: name of a file -> bytes of it that were taken in
LINES = ".jsonl"  # ends the names of files of lines
EVENTS = "git-"  # begins the names of files of git's events


def sizes(root: str) -> dict[str, int]:
    """Names and sizes of the files of lines and of events, those that may be none included.

    What was taken in keeps its size, and nothing comes in without another size or name.

    Args:
        root: folder of the store.

    Raises:
        OSError: the spool cannot be read.
    """
    found = {}
    try:
        with os.scandir(os.path.join(root, fmt.SPOOL)) as entries:
            for entry in entries:
                if entry.name.endswith(LINES) or entry.name.startswith(EVENTS):
                    try:
                        found[entry.name] = entry.stat(follow_symlinks=False).st_size
                    except FileNotFoundError:
                        continue  # taken in meanwhile
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return found


def waits(store: Store) -> tuple[bool, bool]:
    """Whether shells, and whether git, may have left what was not taken in; takes no lock.

    A file that is none of the spool, but is named like one, counts as well.

    Raises:
        OSError: the spool cannot be read.
    """
    seen = sizes(store.root)
    lines = {name: size for name, size in seen.items() if name.endswith(LINES)}
    events = len(lines) < len(seen)
    if not any(lines.values()):
        return False, events
    with store.read(maintenance_grant()) as reader:
        ends = dict(reader.txn.scan_prefix("meta", CURSOR))
    for name, size in lines.items():
        if size != int.from_bytes(ends.get(CURSOR + os.fsencode(name), b""), "big") and size:
            return True, events
    return False, events
