"""Refusals that a principal causes over and over: the first are rows, the rest are counted.

A refusal worth knowing is a row of the audit chain, and nothing takes rows away.  An agent that is
refused in a loop would make the chain grow without bound, so of one principal and one reason code
at most `MOST` rows are written in `WINDOW`; what is beyond is counted, and the count becomes one
row: before the next row that anything else gives the chain, so that nobody writes on as if nothing
had been.  What is counted and not written yet stands in the table ``meta``, where it outlives the
process.  The owner's refusals are never counted.

Source: remem-store(5), AUDIT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from remem.objects.tables import Txn
    from remem.objects.tx import Tx

ROW = b"refusals"  # key in ``meta``; its name is the action of the row that tells a count
MOST = 100
WINDOW = 3_600_000_000  # microseconds


class Counted(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Refusals of one principal for one reason.

    Attributes:
        principal: who was refused.
        code: the reason code.
        surface: through which door, the last time.
        since: record time of the first of the window, microseconds UTC.
        written: rows of the window.
        unsaid: refusals since the last of them that has no row yet.
    """

    principal: str
    code: str
    surface: str
    since: int
    written: int
    unsaid: int

    @property
    def outcome(self) -> str:
        """Outcome of the row that tells the count."""
        return f"{self.code}-{self.unsaid}"


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Counted]).decode


def read(txn: Txn) -> list[Counted]:
    """What is counted."""
    data = txn.get("meta", ROW)
    return [] if data is None else _decode(data)


def unsaid(txn: Txn) -> list[Counted]:
    """What is counted and has no row yet."""
    return [one for one in read(txn) if one.unsaid]


def admit(tx: Tx, code: str) -> bool:
    """Whether a refusal of the actor gets a row; else it is counted here."""
    principal, surface = tx.actor.grant.principal, tx.actor.surface
    at, found = _find(tx.txn, principal, code)
    one = None if at is None else found[at]
    if at is not None and one is not None and one.written >= MOST and tx.now - one.since < WINDOW:
        found[at] = msgspec.structs.replace(one, surface=surface, unsaid=one.unsaid + 1)
        tx.txn.put("meta", ROW, _encode(found))
        return False
    tx.settle()
    at, found = _find(tx.txn, principal, code)
    if at is None:
        found.append(Counted(principal, code, surface, tx.now, 1, 0))
    else:
        one = found[at]
        found[at] = msgspec.structs.replace(one, surface=surface, written=one.written + 1)
    tx.txn.put("meta", ROW, _encode(found))
    return True


def _find(txn: Txn, principal: str, code: str) -> tuple[int | None, list[Counted]]:
    found = read(txn)
    for at, one in enumerate(found):
        if (one.principal, one.code) == (principal, code):
            return at, found
    return None, found


def settle(txn: Txn, now: int) -> list[tuple[tuple[str, str], str]]:
    """What has to be told before anything else is; windows that ended are forgotten.

    Returns:
        Principal and surface of each count, and its outcome.
    """
    found = read(txn)
    left = [msgspec.structs.replace(one, unsaid=0) for one in found if now - one.since < WINDOW]
    if not left:
        txn.delete("meta", ROW)
    elif left != found:
        txn.put("meta", ROW, _encode(left))
    return [((one.principal, one.surface), one.outcome) for one in found if one.unsaid]
