"""Pins: what stands word for word before every context, whatever is asked.

Any ref can be pinned, and a text can be stated to be pinned (a memory of the kind ``pin``).  Only
the owner pins and unpins: what is pinned is read by every agent, first and uncut.  A pin shows what
its ref says now; once that no longer holds, is withheld or was forgotten, the pin shows nothing,
and the list of pins says why.  Pinning a short note promotes it; retention leaves pins alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import carry, correct, lists, oid, refs, statements, tiers, tombs
from remem.objects.admit import DEFAULT_LIMIT_B
from remem.objects.errors import Refused, ScopeRefused
from remem.objects.views import CURRENT, WITHHELD, Eye, Lens

if TYPE_CHECKING:
    from remem.objects.encode import Obj
    from remem.objects.model import Scope
    from remem.objects.reader import Found, Part, Reader
    from remem.objects.tx import Tx

KIND = "pin"
UNPINNED = "unpinned"  # reason code of the end of a text that was stated to be pinned

_PIN = refs.OP_CODE["pin"]
_ERASED = refs.STATUS_CODE["erased"]


class Pin(msgspec.Struct, frozen=True):
    """One pin.

    Attributes:
        part: its partition.
        ref: id of the ref.
        state: its state.
        since: record time of the pinning, microseconds UTC.
        obj: what it says, or None when it shows nothing.
        why: why it shows nothing ("closed", "replaced", "forgotten" or a withheld status), or "".
        successor: the ref that took its place, or None.
    """

    part: Part
    ref: bytes
    state: refs.RefState
    since: int
    obj: Obj | None
    why: str
    successor: bytes | None


# -- pinning ------------------------------------------------------------------------------------


def pin(tx: Tx, found: Found, *, reason: str = "") -> bool:
    """Pin a ref; False when it was pinned already.

    Raises:
        ScopeRefused: the principal is not the owner.
        Refused: it is withheld, or does not hold now.
        NotFound, Forgotten: it is gone.
    """
    part, ref = found.part, found.ref
    _owner(tx, "pin", part, ref)
    tx.flush()
    state = carry.fresh(tx, found, op="pin")
    if state.flags & refs.PINNED:
        return False
    assert state.head is not None
    note = lists.is_note(tx.txn, part, state.head) and not state.flags & refs.CLOSED
    note = note and state.replaced_by is None
    if refs.STATUSES[state.status] in WITHHELD and not (note and state.status == tiers.EXPIRED):
        raise Refused(f"'{oid.short(ref)}' is {refs.STATUSES[state.status]}, it cannot be pinned")
    if note:
        tiers.promote(tx, found, reason=tiers.PINNED)
        tx.flush()
        state = carry.fresh(tx, found, op="pin")
    seen = Eye(Lens(tx.present), tx.reader).see(part, ref, state.head or ref)
    if seen is None or lists.is_brief(tx.reader, part, ref):
        raise Refused(
            f"'{oid.short(ref)}' does not hold now, it cannot be pinned",
            hint="'remem log' tells what became of it",
        )
    tx.record(part, "pin", ref, state, reason=reason)
    return True


def state(
    tx: Tx, scope: Scope, text: str, *, limit_b: int = DEFAULT_LIMIT_B
) -> tuple[statements.Stated, bool]:
    """State a text and pin it.

    Args:
        tx: the write transaction.
        scope: where it belongs.
        text: one or more lines.
        limit_b: largest text, bytes.

    Returns:
        What was stated, and False when it was pinned already.

    Raises:
        ScopeRefused: the principal is not the owner.
        Refused: it is held back.
        Blocked: it was forgotten.
        BadInput: it cannot be taken.
    """
    part = tx.part(scope)
    _owner(tx, "pin", part, None)
    stated = statements.plain(tx, scope, text, kind=KIND, limit_b=limit_b)
    tx.flush()
    return stated, pin(tx, tx.reader.find(stated.ref.hex()))


def unpin(tx: Tx, found: Found, *, reason: str = "") -> bool:
    """Take a pin out; a text that was stated to be pinned ends with it.

    Returns:
        False when it was not pinned.

    Raises:
        ScopeRefused: the principal is not the owner.
        NotFound, Forgotten: it is gone.
    """
    part, ref = found.part, found.ref
    _owner(tx, "unpin", part, ref)
    tx.flush()
    now = carry.fresh(tx, found, op="unpin")
    if not now.flags & refs.PINNED:
        return False
    tx.record(part, "unpin", ref, now, reason=reason)
    assert now.head is not None
    over = now.flags & refs.CLOSED or now.replaced_by is not None
    if now.type == refs.MEMORY and tx.reader.object(part, now.head).kind == KIND and not over:
        tx.flush()
        correct.close(tx, found, tx.present, reason=UNPINNED)
    return True


def _owner(tx: Tx, op: str, part: Part, ref: bytes | None) -> None:
    """Raise unless the owner acts."""
    grant = tx.actor.grant
    if not grant.owner:
        raise ScopeRefused(
            f"'{grant.principal}' may not {op}", hint="only the owner pins and unpins"
        ).audited(op, "not_owner", part.number, ref)


# -- looking ------------------------------------------------------------------------------------


def every(eye: Eye) -> list[Pin]:
    """Every pin, also those that show nothing; in the order in which they were pinned.

    What was forgotten is named until its bytes are purged.
    """
    now = Eye(msgspec.structs.replace(eye.lens, view="now"), eye.reader)
    found = [
        made
        for part in now.reader.parts
        for ref, latest in lists.members(now.reader, part, lists.PIN)
        if (made := _pin(now, part, ref, latest)) is not None
    ]
    found.sort(key=lambda one: (one.since, one.ref))
    return found


def shown(eye: Eye) -> list[Pin]:
    """The pins that show something, at the instants that the lens looks at."""
    return [one for one in every(eye) if one.obj is not None]


def _pin(eye: Eye, part: Part, ref: bytes, latest: refs.RefState) -> Pin | None:
    reader, known = eye.reader, eye.lens.known_at
    state = latest if known is None else reader.state_at(part, ref, known)
    if state is None or not state.flags & refs.PINNED:
        return None
    since = _since(reader, part, state)
    if latest.status == _ERASED:
        tomb = tombs.get(reader, part, ref)
        if tomb is None or tomb.purged is not None:
            return None
        return Pin(part, ref, latest, since, None, "forgotten", None)
    sight = eye.of(part, ref)
    held = None if sight is None else sight.held
    if held is not None and held.head is not None and eye.see(part, ref, held.head) is not None:
        return Pin(part, ref, held, since, reader.object(part, held.head), "", None)
    return Pin(part, ref, state, since, None, _why(eye, latest, state), state.replaced_by)


def _why(eye: Eye, latest: refs.RefState, state: refs.RefState) -> str:
    for status in (latest.status, state.status):
        if not eye.lens.allows(status):
            return refs.STATUSES[status]
    if state.replaced_by is not None:
        return "replaced"
    if state.flags & refs.CLOSED:
        return "closed"
    return "withheld" if eye.lens.truth(state) == CURRENT else "over"


def _since(reader: Reader, part: Part, state: refs.RefState) -> int:
    """Record time of the entry that pinned a ref."""
    return next((e.time for e in reader.entries(part, state) if e.op == _PIN), state.changed)
