"""Receipts: what the admission gate decided about each object, and by which rules.

A row is kept where there is something to say.  Without a row the receipt is the default one: the
status that follows from the origin, no codes, decided by the gate that was in force when the object
came in.  Which gate that was is kept in ``meta``: one entry for each change of its rules.

Source: remem-store(5), the table ``receipts`` and the row ``gate`` of ``meta``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import attests, oid
from remem.objects.errors import IntegrityError
from remem.objects.model import Observation

if TYPE_CHECKING:
    from remem.objects.attests import Attests
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

STATUS_OF_ORIGIN = {
    "owner": "verified",
    "agent": "provisional",
    "tool": "provisional",
    "untrusted": "provisional",
}
FROM_PACK = "from_pack"  # code of what a pack brought
META = b"gate"  # key in ``meta``


class Receipt(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What the admission gate decided about an object.

    Attributes:
        status: trust status that it gave, or "blocked".
        codes: reason codes ("redacted:2", "instruction:override"); empty when nothing was found.
        gate: version of the gate, 0 for what came in before there was one.
        detectors: names with versions of what looked.
        stated: status and codes that a pack stated, which were not believed, or None.
    """

    status: str
    codes: list[str]
    gate: int = 0
    detectors: list[str] = []
    stated: tuple[str, list[str]] | None = None


class Gate(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """From when on a gate decided: record time, version, detectors."""

    since: int
    version: int
    detectors: list[str]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Receipt).decode
_decode_gates = msgspec.msgpack.Decoder(list[Gate]).decode


def count(codes: list[str], name: str) -> int:
    """The number that a code "name:3" gives, 0 without one."""
    for code in codes:
        if code.startswith(name + ":") and code[len(name) + 1 :].isdigit():
            return int(code[len(name) + 1 :])
    return 0


def of(reader: Reader, part: Part, object_id: bytes) -> Receipt:
    """The receipt of an object.

    Args:
        reader: reads the store under a grant.
        part: partition of the object.
        object_id: id of an observation or of a memory.

    Raises:
        NotFound: there is no such object within the grant.
        IntegrityError: the row does not decode.
    """
    data = reader.receipt(part, object_id)
    if data is not None:
        try:
            return _decode(data)
        except msgspec.MsgspecError as error:
            raise IntegrityError(f"a receipt does not decode: {error}") from error
    obj = reader.object(part, object_id)
    born = _born(reader, part, object_id)
    gate = in_force(reader, born[0])
    status = STATUS_OF_ORIGIN[obj.origin] if isinstance(obj, Observation) else born[1]
    if gate is None:
        return Receipt(status, [])
    return Receipt(status, [], gate.version, gate.detectors)


def stated(data: bytes) -> tuple[str, list[str]] | None:
    """What a pack says of the receipt in a row: of what came with a pack, what that one said.

    Raises:
        IntegrityError: the row does not decode.
    """
    try:
        found = _decode(data)
    except msgspec.MsgspecError as error:
        raise IntegrityError(f"a receipt does not decode: {error}") from error
    return found.stated if FROM_PACK in found.codes else (found.status, found.codes)


def _born(reader: Reader, part: Part, object_id: bytes) -> tuple[int, str]:
    """Record time and status of the entry that brought an object."""
    from remem.objects import refs

    state = reader.state(part, reader.ref_of(part, object_id))
    if state is None:
        return 0, "provisional"
    found = (state.created, refs.STATUSES[state.status])
    for entry in reader.entries(part, state):
        if entry.new == object_id:
            found = (entry.time, refs.STATUSES[entry.status])
    return found


def in_force(reader: Reader, at: int) -> Gate | None:
    """The gate that decided at a record time, or None where there was none yet."""
    data = reader.txn.get("meta", META)
    gates = [] if data is None else _decode_gates(data)
    return next((gate for gate in reversed(gates) if gate.since <= at), None)


def stamp(tx: Tx, version: int, detectors: list[str]) -> None:
    """Note which gate decides from now on, unless it is the last one noted."""
    if tx.gate == version:
        return
    tx.gate = version
    data = tx.txn.get("meta", META)
    gates = [] if data is None else _decode_gates(data)
    if gates and (gates[-1].version, gates[-1].detectors) == (version, detectors):
        return
    gates.append(Gate(tx.now, version, detectors))
    data = _encode(gates)
    tx.txn.put("meta", META, data)
    tx.vouch(attests.GATE, oid.digest(data))


def put(tx: Tx, part: Part, object_id: bytes, receipt: Receipt) -> Attests | None:
    """Keep the receipt of an object, before the entry that brings it; the first one stands.

    Returns:
        What that entry has to attest.
    """
    data = _encode(receipt)
    if not tx.txn.put_new("receipts", part.prefix + object_id, data):
        return None
    return {attests.RECEIPT: attests.of_receipt(part, object_id, data)}
