"""The queue of derivation: what waits, what is being done, what is tried again, what was given up.

The log of a partition is the queue: an observation waits from the transaction that stored it until
the cursor of its deriver has passed its entry, so nothing can be stored without being queued.  What
has been taken up has a row of its own until it is done.

Taking work up is a lease: the row says until when, and counts as an attempt, so that work whose
holder died becomes due again, and work that kills its holder is given up.  What failed is tried
again after 1, 2, 4, ... minutes.  After MAX_ATTEMPTS it is a dead letter and stays for a person to
look at.

Source: remem-store(5), the tables ``meta`` and ``jobs``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import refs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

MAX_ATTEMPTS = 5
BACKOFF_US = 60 * 1_000_000
LEASE_US = 300 * 1_000_000
LONGEST_US = max(LEASE_US, BACKOFF_US << (MAX_ATTEMPTS - 1))  # that a job waits
EXPIRED = "LeaseExpired"  # error of work whose holder never came back

# After these an observation has something to say that was not looked at, or says it no longer.
_BROUGHT = frozenset(
    refs.OP_CODE[op]
    for op in (
        "create",
        "revise",
        "rollback",
        "release",
        "approve",
        "quarantine",
        "reject",
        "reopen",
        "promote",
    )
)


class Job(msgspec.Struct, frozen=True, array_like=True):
    """One piece of work that has a row.

    Attributes:
        attempts: how often it was taken up.
        due: not before this instant, microseconds UTC; while it is leased, the end of the lease.
        error: class of the last error, no text of it; empty while none is known.
        dead: given up.
    """

    attempts: int
    due: int
    error: str
    dead: bool


_encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Job).decode


# -- the log as a queue -------------------------------------------------------------------------


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
    return max(0, reader.last_seq(part) - cursor(reader, part, deriver))


def backlog(reader: Reader, names: Iterable[str], now: int) -> int:
    """Number of log entries and jobs that these derivers may take up."""
    return sum(
        waiting(reader, part, name) + len(due(reader, part, name, now))
        for part in reader.parts
        for name in names
    )


def brought(entry: refs.Entry) -> bool:
    """Whether after an entry an observation has to be looked at."""
    return entry.type == refs.OBSERVATION and entry.op in _BROUGHT


# -- rows ---------------------------------------------------------------------------------------


def jobs(reader: Reader, part: Part) -> Iterator[tuple[bytes, str, Job]]:
    """(observation ref, deriver, job) of every job that has a row, within the grant."""
    for key, data in reader.txn.scan_prefix("jobs", part.prefix):
        if reader.state(part, key[4:36]) is not None:
            yield key[4:36], key[36:].decode(), decode(data)


def get(reader: Reader, part: Part, ref: bytes, deriver: str) -> Job | None:
    """The row of a job, or None."""
    data = reader.txn.get("jobs", _key(part, ref, deriver))
    return None if data is None else decode(data)


def is_due(job: Job, now: int) -> bool:
    """Whether a job may be taken up, as far as time goes.

    One that waits for longer than any does was put off by a clock that was set back since.
    """
    return job.due <= now or job.due > now + LONGEST_US


def due(reader: Reader, part: Part, deriver: str, now: int) -> list[bytes]:
    """Observations whose job may be taken up."""
    return [
        ref
        for ref, name, job in jobs(reader, part)
        if name == deriver and not job.dead and is_due(job, now)
    ]


def lease(tx: Tx, part: Part, ref: bytes, deriver: str, *, anew: bool = False) -> bool:
    """Take a piece of work up.

    Args:
        tx: the write transaction.
        part: its partition.
        ref: the observation.
        deriver: name of the deriver.
        anew: it has something new to say, so that earlier attempts do not count.

    Returns:
        False when another process holds it, it waits for its next try, or it is given up.
    """
    job = None if anew else get(tx.reader, part, ref, deriver)
    if job is not None and (job.dead or not is_due(job, tx.present)):
        return False
    attempts = 0 if job is None else job.attempts
    if job is not None and attempts >= MAX_ATTEMPTS:
        _put(tx, part, ref, deriver, Job(attempts, tx.present, job.error or EXPIRED, True))
        return False
    _put(tx, part, ref, deriver, Job(attempts + 1, tx.present + LEASE_US, "", False))
    return True


def failed(tx: Tx, part: Part, ref: bytes, deriver: str, error: Exception) -> Job:
    """Note the failure of work that was taken up: tried again later, or given up."""
    job = get(tx.reader, part, ref, deriver)
    attempts = 1 if job is None else max(1, job.attempts)
    dead = attempts >= MAX_ATTEMPTS
    wait = BACKOFF_US << (attempts - 1)
    job = Job(attempts, tx.present + (0 if dead else wait), type(error).__name__, dead)
    _put(tx, part, ref, deriver, job)
    return job


def done(tx: Tx, part: Part, ref: bytes, deriver: str) -> None:
    """Take the row of a job away."""
    tx.txn.delete("jobs", _key(part, ref, deriver))


def retry(tx: Tx, part: Part, ref: bytes, deriver: str) -> bool:
    """Make a job due now, its attempts forgotten; False when it has no row."""
    if get(tx.reader, part, ref, deriver) is None:
        return False
    _put(tx, part, ref, deriver, Job(0, 0, "", False))
    return True


def state_of(job: Job, now: int) -> str:
    """How a job stands: "dead", "leased", "failed" (tried again later) or "due"."""
    if job.dead:
        return "dead"
    if is_due(job, now):
        return "due"
    return "failed" if job.error else "leased"


def _key(part: Part, ref: bytes, deriver: str) -> bytes:
    return part.prefix + ref + deriver.encode()


def _put(tx: Tx, part: Part, ref: bytes, deriver: str, job: Job) -> None:
    tx.txn.put("jobs", _key(part, ref, deriver), _encode(job))
