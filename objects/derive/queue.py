"""The queue of derivation: what waits, what is tried again, what was given up.

The log of a partition is the queue: an observation waits from the transaction that stored it until
the cursor of its deriver has passed its entry, so nothing can be stored without being queued.  Only
work that failed, or that is out on lease, has a row of its own.

A failed job is tried again after 1, 2, 4, ... minutes, and is a dead letter after MAX_ATTEMPTS.
A lease that ran out (its holder died) makes the job due again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import refs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

MAX_ATTEMPTS = 5
BACKOFF_US = 60 * 1_000_000
LEASE_US = 300 * 1_000_000


class Job(msgspec.Struct, frozen=True, array_like=True):
    """One piece of work that has a row.

    Attributes:
        attempts: how often it failed.
        due: not before this instant, microseconds UTC.
        error: class of the last error, no text of it.
        dead: given up.
    """

    attempts: int
    due: int
    error: str
    dead: bool


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Job).decode


def cursor_key(part: Part, deriver: str) -> bytes:
    """Key in ``meta`` of the last log entry that a deriver has taken up."""
    return b"derived" + part.prefix + deriver.encode()


def cursor(reader: Reader, part: Part, deriver: str) -> int:
    """Last log entry that a deriver has taken up."""
    return int.from_bytes(reader.txn.get("meta", cursor_key(part, deriver)) or b"\0", "big")


def advance(tx: Tx, part: Part, deriver: str, seq: int) -> None:
    """Say that a deriver has taken up everything to an entry."""
    tx.txn.put("meta", cursor_key(part, deriver), seq.to_bytes(8, "big"))


def waiting(reader: Reader, part: Part, deriver: str) -> int:
    """Number of log entries that a deriver has not looked at."""
    return reader.last_seq(part) - cursor(reader, part, deriver)


def jobs(reader: Reader, part: Part) -> Iterator[tuple[bytes, str, Job]]:
    """(observation ref, deriver, job) of every job that has a row."""
    for key, data in reader.txn.scan_prefix("jobs", part.prefix):
        yield key[4:36], key[36:].decode(), _decode(data)


def failed(tx: Tx, part: Part, ref: bytes, deriver: str, error: Exception) -> Job:
    """Note a failure: tried again later, or given up."""
    key = part.prefix + ref + deriver.encode()
    data = tx.txn.get("jobs", key)
    attempts = (0 if data is None else _decode(data).attempts) + 1
    wait = BACKOFF_US << (attempts - 1)
    job = Job(attempts, tx.now + wait, type(error).__name__, attempts >= MAX_ATTEMPTS)
    tx.txn.put("jobs", key, _encode(job))
    return job


def done(tx: Tx, part: Part, ref: bytes, deriver: str) -> None:
    """Take the row of a job away."""
    tx.txn.delete("jobs", part.prefix + ref + deriver.encode())


def retry(tx: Tx, part: Part, ref: bytes, deriver: str) -> None:
    """Make a job due now, its attempts forgotten."""
    tx.txn.put("jobs", part.prefix + ref + deriver.encode(), _encode(Job(0, 0, "", False)))


def due(reader: Reader, part: Part, deriver: str, now: int) -> list[bytes]:
    """Observations whose job may be tried again."""
    return [
        ref
        for ref, name, job in jobs(reader, part)
        if name == deriver and not job.dead and job.due <= now
    ]


def brought(entry: refs.Entry) -> bool:
    """Whether an entry brought a revision of an observation that may be derived from."""
    return entry.type == refs.OBSERVATION and refs.OPS[entry.op] in ("create", "revise", "rollback")
