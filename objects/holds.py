"""Holds: what is held is neither forgotten nor purged until it is released.

Source: remem-store(5), REF LOG; remem-hold(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects import oid, refs, tombs
from remem.objects.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx


def hold(tx: Tx, part: Part, ref: bytes, *, reason: str = "") -> bool:
    """Hold a ref; False when it was held already.

    Raises:
        NotFound: there is no such ref.
        Forgotten: its bytes are gone.
    """
    tx.flush()
    state = _state(tx, part, ref)
    tomb = tombs.get(tx.reader, part, ref)
    if tomb is not None and tomb.purged is not None:
        raise tx.reader.forgotten(part, ref).audited("hold", "purged", part.number, ref)
    if state.flags & refs.HELD:
        return False
    tx.record(part, "hold", ref, state, reason=reason)
    return True


def release(tx: Tx, part: Part, ref: bytes, *, reason: str = "") -> bool:
    """Release a ref; False when it was not held.

    Raises:
        NotFound: there is no such ref.
    """
    tx.flush()
    state = _state(tx, part, ref)
    if not state.flags & refs.HELD:
        return False
    tx.record(part, "unhold", ref, state, reason=reason)
    return True


def held(reader: Reader) -> Iterator[tuple[Part, bytes, refs.RefState, refs.Entry]]:
    """Every held ref of the grant, with the entry that holds it."""
    code = refs.OP_CODE["hold"]
    for part in reader.parts:
        for ref, state in reader.states(part):
            if state.flags & refs.HELD:
                entry = next(e for e in reader.entries(part, state) if e.op == code)
                yield part, ref, state, entry


def _state(tx: Tx, part: Part, ref: bytes) -> refs.RefState:
    state = tx.reader.state(part, ref)
    if state is None:
        raise NotFound(f"nothing has the id '{oid.short(ref)}'")
    return state
