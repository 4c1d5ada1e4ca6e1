"""Check of what is still to be derived: the jobs, and how far the log was taken up.

Nothing attests these rows: a job that was taken away, or a cursor that was moved within the log,
leaves evidence without the facts that would have been derived from it, and cannot be told from work
that was done (``remem jobs rebuild`` does all of it again).  What no run leaves behind is named.

Source: remem-store(5), JOBS and VERIFYING.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from remem.objects import refs
from remem.objects.derive import queue

if TYPE_CHECKING:
    from remem.objects.findings import Findings
    from remem.objects.kv import Txn

_CURSOR = b"derived"
_LONGEST_US = max(queue.LEASE_US, queue.BACKOFF_US << (queue.MAX_ATTEMPTS - 1))


def check_jobs(txn: Txn, found: Findings) -> None:
    """Every job is of an observation, and says what a run may have left."""
    clock = int.from_bytes(txn.get("meta", b"clock") or b"\0", "big", signed=True)
    latest = max(clock, time.time_ns() // 1000) + _LONGEST_US
    for key, data in txn.scan("jobs"):
        where = f"job {key[4:36].hex()}"
        cached = txn.get("refs", key[:36])
        if cached is None:
            found.problem(where, "it is of a ref that is not there")
            continue
        try:
            job = queue.decode(data)
            key[36:].decode()
            kind = refs.decode_state(cached).type
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            found.problem(where, f"it does not decode: {error}")
            continue
        if kind != refs.OBSERVATION:
            found.problem(where, "it is of a ref that is no observation")
        if job.dead and job.attempts < queue.MAX_ATTEMPTS:
            found.problem(where, f"it was given up after {job.attempts} attempts")
        if job.due > latest:
            found.problem(where, "it waits for longer than any job does")


def check_cursors(txn: Txn, found: Findings) -> None:
    """No deriver has taken up more than there is."""
    for key, data in txn.scan_prefix("meta", _CURSOR):
        part, name = key[len(_CURSOR) :][:4], key[len(_CURSOR) + 4 :]
        number = int.from_bytes(part, "big")
        last = int.from_bytes(txn.get("heads", part) or b"\0", "big")
        at = int.from_bytes(data, "big")
        if len(data) != 8 or at > last:
            where = f"meta derived {number} {name.decode(errors='replace')}"
            found.problem(where, f"it has taken up {at} entries, the log ends with {last}")
