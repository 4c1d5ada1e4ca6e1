"""Bulk ingest: a stream of records into the store, in batches, with a sum that adds up.

Each batch is one transaction, so an interruption keeps whole batches and a second run finishes the
rest: what is there already is known by its address or by its source's own id.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from remem.objects.admit import DEFAULT_LIMIT_B, admit
from remem.objects.errors import Refused, UsageError
from remem.objects.gate import NothingLeft
from remem.objects.model import Incoming, Rejected, Skipped
from remem.objects.receipts import count
from remem.objects.redact import clean
from remem.objects.scope import told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from remem.objects.scope import Actor
    from remem.objects.store import Store
    from remem.objects.tx import Tx

    Record = Incoming | Rejected | Skipped

BATCH = 20_000  # records a transaction
BATCH_B = 64 * 2**20  # bytes of text a transaction
COUNTS = ("read", "new", "known", "skipped", "blocked", "rejected")
GATED = ("redacted", "private", "quarantined")  # what the admission gate did to them
MAX_NAMED = 1000  # rejected records that are named; all are counted


class Problem(msgspec.Struct, frozen=True):
    """A record that was not taken, and why."""

    where: str
    why: str


class Sum(msgspec.Struct):
    """What became of the records: read = new + known + skipped + blocked + rejected.

    Attributes:
        redacted: secrets that were replaced, in new and known records.
        private: private regions that were removed from them.
        quarantined: new records that are held back until somebody has read them.
    """

    read: int = 0
    new: int = 0
    known: int = 0
    skipped: int = 0
    blocked: int = 0
    rejected: int = 0
    redacted: int = 0
    private: int = 0
    quarantined: int = 0
    errors: list[Problem] = []
    more_errors: int = 0

    def add(self, other: Sum) -> None:
        """Add the counts and problems of another sum."""
        for name in (*COUNTS, *GATED, "more_errors"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        room = MAX_NAMED - len(self.errors)
        self.errors += other.errors[:room]
        self.more_errors += len(other.errors[room:])

    def reject(self, where: str, why: str) -> None:
        """Count a record that was not taken; what quotes it must not show what it may hold."""
        self.rejected += 1
        if len(self.errors) < MAX_NAMED:
            self.errors.append(Problem(where, clean(why)[0]))
        else:
            self.more_errors += 1


def ingest(
    store: Store | None,
    actor: Actor,
    records: Iterable[Record],
    *,
    limit_b: int = DEFAULT_LIMIT_B,
    marks: dict[str, str] | None = None,
    progress: Callable[[Sum], None] | None = None,
) -> Sum:
    """Take records in.

    Args:
        store: where to, or None to count only (a dry run without a store).
        actor: who writes.
        records: what a reader yields.
        limit_b: largest text, bytes.
        marks: fields set on every record (role, speaker, origin, tool, kind).
        progress: called after each batch with the sum so far.

    Returns:
        The sum.
    """
    total = Sum()
    for batch in _batches(iter(records)):
        part = (
            _dry(batch)
            if store is None
            else store.write(actor, lambda tx, batch=batch: _take(tx, batch, limit_b, marks))  # type: ignore[misc]
        )
        total.add(part)
        if progress is not None:
            progress(total)
    return total


def preview(
    store: Store,
    actor: Actor,
    records: Iterable[Record],
    *,
    limit_b: int = DEFAULT_LIMIT_B,
    marks: dict[str, str] | None = None,
) -> Sum:
    """What ingest would do, exactly: the same path in one transaction that is undone.

    No other process can write meanwhile; the records are read once.
    """

    def trial(tx: Tx) -> None:
        total = Sum()
        for batch in _batches(iter(records)):
            total.add(_take(tx, batch, limit_b, marks))
        raise _Undo(total)

    try:
        store.write(actor, trial)
    except _Undo as undo:
        return undo.sum
    raise AssertionError("a trial always ends with its sum")


class _Undo(Exception):
    """Carries the sum out of a transaction that must not be kept."""

    def __init__(self, found: Sum) -> None:
        super().__init__()
        self.sum = found


def _batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    """Lists of records, bounded in number and in bytes."""
    while True:
        batch: list[Record] = []
        size_b = 0
        for record in islice(records, BATCH):
            batch.append(record)
            if type(record) is Incoming:
                size_b += len(record.text) + (len(record.raw) if record.raw else 0)
                if size_b > BATCH_B:
                    break
        if not batch:
            return
        yield batch


def _take(tx: Tx, batch: list[Record], limit_b: int, marks: dict[str, str] | None) -> Sum:
    found = Sum(read=len(batch))
    new = known = 0
    for record in batch:
        if type(record) is Incoming:
            if marks:
                record = msgspec.structs.replace(record, **marks)
            if record.kind == "command" and _is_told(tx, record):
                known += 1
                continue
            try:
                admitted = told(tx.actor.grant, admit(tx, record, limit_b=limit_b))
                status = admitted.status
            except NothingLeft:
                found.skipped += 1
                found.private += 1
                continue
            except (UsageError, Refused) as error:  # anything else ends the transaction
                refusal = error.refusal if isinstance(error, Refused) else None
                if refusal is not None:
                    tx.refuse(*refusal)
                found.reject(record.where, str(error))
                continue
            codes = admitted.receipt.codes
            if codes:
                found.redacted += count(codes, "redacted")
                found.private += count(codes, "private")
            if status == "new":
                new += 1
                found.quarantined += admitted.receipt.status == "quarantined"
                if "reverts" in record.meta or record.kind == "diff":
                    from remem.hooks.git_settle import reverts

                    reverts(tx, record, admitted.ref)
            elif status == "known":
                known += 1
            else:
                found.blocked += 1
        elif type(record) is Skipped:
            found.skipped += 1
        elif type(record) is Rejected:
            found.reject(record.where, record.why)
    found.new, found.known = new, known
    return found


def _is_told(tx: Tx, record: Incoming) -> bool:
    """Whether a hook told of a command that a history tells of."""
    from remem.hooks.commands import is_told

    return is_told(tx, record)


def _dry(batch: list[Record]) -> Sum:
    """Counts of a batch when there is no store yet: everything readable would be new."""
    found = Sum(read=len(batch))
    for record in batch:
        if type(record) is Incoming:
            found.new += 1
        elif type(record) is Skipped:
            found.skipped += 1
        elif type(record) is Rejected:
            found.reject(record.where, record.why)
    return found
