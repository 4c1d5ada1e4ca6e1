"""Runs: what a consolidation did, as objects of the store.

A run is bookkeeping: no index has it and no view shows it.  It begins a ref of its own that never
changes.  A consolidation that changed nothing leaves none.

Source: remem-store(5), OBJECTS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import encode, lists, refs
from remem.objects.model import Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from remem.objects.model import Scope
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

DONE, PARTIAL = "done", "partial"  # reason codes: to the end, or as far as the time went


class Ran(msgspec.Struct, frozen=True):
    """A run that is in the store, its ref, partition and principal."""

    part: Part
    ref: bytes
    principal: str
    surface: str
    run: Run


def write(
    tx: Tx,
    scope: Scope,
    *,
    started: int,
    counts: Mapping[str, int],
    notes: Sequence[str] = (),
    finished: bool = True,
) -> bytes:
    """Keep what a consolidation did.

    Args:
        tx: the write transaction.
        scope: where it belongs; its partition is there already.
        started: when it began, microseconds UTC.
        counts: what was done, by name.
        notes: what was left and why, without any text of the store.
        finished: it came to its end.

    Returns:
        Its ref.
    """
    part = tx.part(scope)
    run = Run(
        encode.ZERO_SALT,
        scope,
        started,
        tx.now if finished else None,
        dict(counts),
        list(notes),
        {},
    )
    ref = tx.put_object(part, run)
    tx.create(
        part,
        ref,
        kind=refs.RUN,
        lane=tx.lane(part, scope),
        status="verified",
        reason=DONE if finished else PARTIAL,
    )
    return ref


def every(reader: Reader) -> list[Ran]:
    """The runs within the grant, the latest first."""
    found: list[tuple[int, Ran]] = []
    for part in reader.parts:
        for ref, state in lists.members(reader, part, lists.RUN):
            if state.head is None or reader.erased(part, ref) is not None:
                continue
            run = reader.bookkeeping(part, state.head)
            if isinstance(run, Run):
                made = reader.entry(part, state.first)
                found.append((made.time, Ran(part, ref, made.principal, made.surface, run)))
    found.sort(key=lambda one: (-one[0], one[1].ref))
    return [ran for _, ran in found]
