"""What status tells of the spool: what waits in it, and what hooks passed over and why."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.cli import describe
from remem.hooks import spool
from remem.objects import format as fmt
from remem.objects.errors import StoreMissing
from remem.objects.scope import maintenance_grant

if TYPE_CHECKING:
    from remem.cli.describe import Json
    from remem.objects.store import Store

_OTHER = "for another reason"


def value(store: Store) -> Json:
    """Files and bytes, what of them waits since when, and counts of what was skipped.

    Raises:
        StoreMissing: there is no spool.
    """
    from remem.cli.commands.status import folder_bytes

    path = os.path.join(store.root, fmt.SPOOL)
    if not os.path.isdir(path):
        raise StoreMissing(f"no '{path}'")
    files, size_b = folder_bytes(path)
    with store.read(maintenance_grant()) as reader:
        told = spool.state(store.root, reader.txn)
    return {
        "files": files,
        "bytes": size_b,
        "waiting_b": told.waiting_b,
        "oldest_at": None if told.oldest_at is None else describe.stamp(told.oldest_at),
        "skipped": dict(sorted(told.skipped.items())),
    }


def rows(found: Json, human: str, waiting: str) -> list[tuple[str, str]]:
    """The same for people.

    Args:
        found: what `value` gave.
        human: its bytes, for people.
        waiting: the bytes that wait, for people.
    """
    text = f"{found['files']:,} files, {human}"
    if found["waiting_b"]:
        text += f"; {waiting} wait to be taken in since {found['oldest_at']}"
    told = [("spool", text)]
    skipped = found["skipped"]
    assert isinstance(skipped, dict)
    for number, (reason, count) in enumerate(skipped.items()):
        why = spool.REASONS.get(reason, _OTHER)
        told.append(("skipped" if number == 0 else "", f"{count:,}: {why}"))
    return told
