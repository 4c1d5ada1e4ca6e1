"""Importing a pack: batches of lines, each one transaction, or a dry run of the same rules.

Source: remem-pack(5), MERGING.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from remem.objects.errors import ScopeRefused
from remem.objects.pack_merge import ImportSum, Merge, Rules
from remem.objects.pack_read import Change, read_pack
from remem.objects.pack_trial import Trial
from remem.objects.tx import Tx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    from remem.objects.pack_read import Record
    from remem.objects.scope import Actor
    from remem.objects.store import Store

BATCH_LINES = 2000
BATCH_B = 32 << 20


def import_pack(
    store: Store,
    actor: Actor,
    stream: BinaryIO,
    *,
    dry_run: bool = False,
    apply_tombstones: bool = True,
    trust: bool = False,
    progress: Callable[[int], None] | None = None,
) -> ImportSum:
    """Join a pack to the store.

    Some thousand lines make one transaction; when it is killed between two of them the store is
    valid, and running it again completes it.

    Args:
        store: the store.
        actor: the owner; changes of scopes outside the grant are rejected.
        stream: the pack.
        dry_run: count and change nothing.
        apply_tombstones: forget here what was forgotten there (unless held).
        trust: believe the statuses of the pack: it is the owner's own.
        progress: called with the number of lines done.

    Raises:
        ScopeRefused: the actor is not the owner, or may not write.
        BadInput, NewerFormat: it is no pack of a known format; nothing was changed.
    """
    if not actor.grant.owner or not actor.grant.writes:
        raise ScopeRefused(f"'{actor.grant.principal}' may not import a pack")
    rules = Rules(apply_tombstones, trust)
    total = ImportSum()
    batches = _batches(read_pack(stream))

    def run(write: Callable[[Callable[[Tx], Merge]], Merge]) -> None:
        for batch in batches:
            done = write(lambda tx, batch=batch: Merge(tx, rules).run(batch))  # type: ignore[misc]
            rules.stopped |= done.stopped
            rules.barred |= done.barred
            rules.facts |= done.facts
            total.add(done.sum)
            if progress is not None:
                progress(total.read)

    if not dry_run:
        run(lambda change: store.write(actor, change))
        return total
    with store.env().read() as txn:
        trial = Trial(txn)

        def write(change: Callable[[Tx], Merge]) -> Merge:
            tx = Tx(trial, actor, time.time_ns() // 1000)
            result = change(tx)
            tx.finish()
            return result

        run(write)
    return total


def _batches(
    records: Iterable[Record],
) -> Iterator[list[Record]]:
    batch: list[Record] = []
    size_b = 0
    last = None
    for record in records:
        moment = record.time if isinstance(record, Change) else None
        full = len(batch) >= BATCH_LINES or size_b >= BATCH_B
        # What one transaction changed there stays together here, unless it was a large one.
        if full and (moment is None or moment != last or len(batch) >= 2 * BATCH_LINES):
            yield batch
            batch, size_b = [], 0
        batch.append(record)
        size_b += record.size_b if isinstance(record, Change) else 0
        last = moment
    if batch:
        yield batch
