"""What a pack may do here on its own word, and what waits for the owner's.

A pack claims who did what; nothing proves it.  Unless the owner says that it is his own, it brings
evidence and claims to be weighed, and has none of his authority: what it calls verified or
provisional counts as ``legacy_unverified``, so that no fact of it takes the place of one that
stands here; what would act by itself (loops, tasks) waits as ``pending``; its pins, holds and other
names of things are left out; of what stands here it changes only what packs alone have brought, and
nobody has believed.  All words are looked at as those of a stranger, whoever is said to have spoken
them.

What was left out or lowered is counted (`Left`), so that the owner can be told how to accept it.

Source: remem-pack(5), TRUST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, gate, refs, tombs, withheld
from remem.objects.model import Memory
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from remem.objects.encode import Obj
    from remem.objects.pack_read import Change
    from remem.objects.reader import Part
    from remem.objects.tx import Tx

OWN_OPS = frozenset(refs.OP_CODE[op] for op in ("pin", "unpin", "hold", "unhold"))
ACTS = frozenset(("loop", "task"))  # kinds of memories that do something by themselves
HERE = "it was made, changed or believed here; --trust lets a pack change it"

_PIN, _UNPIN = refs.OP_CODE["pin"], refs.OP_CODE["unpin"]
_CLOSE, _REOPEN = refs.OP_CODE["close"], refs.OP_CODE["reopen"]
_VERIFIED = refs.STATUS_CODE["verified"]
_LOWERED = frozenset((_VERIFIED, refs.STATUS_CODE["provisional"]))
_LEGACY = refs.STATUS_CODE[refs.UNVOUCHED]
_PENDING = refs.STATUS_CODE["pending"]
_ERASED = refs.STATUS_CODE["erased"]
_WITHHELD = frozenset(refs.STATUS_CODE[name] for name in WITHHELD - {"erased"})


class Left(msgspec.Struct):
    """What of a pack does not act here: refs, and whether they would have acted at its end.

    Attributes:
        pins: what the pack pins.
        loops, tasks: what waits as pending.
        aliases: other names, (name, the name that it stands for).
        held: what the gate holds back.
    """

    pins: dict[bytes, bool] = {}
    loops: dict[bytes, bool] = {}
    tasks: dict[bytes, bool] = {}
    aliases: dict[tuple[str, str], bool] = {}
    held: dict[bytes, bool] = {}

    def add(self, other: Left) -> None:
        """Add what a later batch left out."""
        for name in self.__struct_fields__:
            getattr(self, name).update(getattr(other, name))

    def of(self, name: str) -> list[bytes]:
        """Refs, in the order of the pack, of what would act."""
        return [ref for ref, acts in getattr(self, name).items() if acts]

    def pin(self, change: Change) -> None:
        """Note a pin, or its end, that was left out."""
        if change.op in (_PIN, _UNPIN):
            self.pins[change.ref] = change.op == _PIN

    def link(self, change: Change) -> None:
        """Note what another state takes the place of, though that is linked here."""
        if change.replaced_by is not None and change.replaced_by[1] is not None:
            self.tasks[change.ref] = False

    def entry(self, obj: Obj | None, entry: refs.Entry, status: int) -> None:
        """Note a loop or a task that waits, and what becomes of it in the pack."""
        if isinstance(obj, Memory) and obj.kind in ACTS and status == _PENDING:
            (self.loops if obj.kind == "loop" else self.tasks)[entry.ref] = True
        stated = None if entry.origin is None else entry.origin.status
        if obj is not None and status == withheld.QUARANTINED != stated:
            self.held[entry.ref] = True
        for kept in (self.loops, self.tasks):
            if entry.ref in kept and entry.op in (_CLOSE, _REOPEN):
                kept[entry.ref] = entry.op == _REOPEN
            elif entry.ref in kept and entry.replaced_by is not None:
                kept[entry.ref] = False


def believed(stated: int, here: int | None, trust: bool) -> int:
    """The status that this store gives to what a pack states.

    Args:
        stated: status code in the pack.
        here: status code of the ref in this store, None when the pack begins it.
        trust: the owner vouches for the pack.
    """
    if trust:
        return stated
    if here in _WITHHELD and stated not in _WITHHELD:
        return here
    return _LEGACY if stated in _LOWERED else stated


def may_change(tx: Tx, part: Part, state: refs.RefState) -> bool:
    """Whether a pack on its own word may change a ref that is here.

    It may where packs alone brought the ref and all that became of it, but for links of its chain,
    and nobody believed them.  What was made or changed here stands, and so does what a trusted pack
    brought as verified or provisional.
    """
    if state.status in _LOWERED or state.flags & refs.PINNED:
        return False
    tx.flush()
    return all(
        entry.origin is not None or (entry.reason == chains.LINK and entry.prev != 0)
        for entry in tx.reader.entries(part, state)
    )


def judged(tx: Tx, part: Part, obj: Obj | None, status: int) -> int:
    """Status of an object that a pack brings on its own word, and that would be shown.

    It is quarantined when the same value is held back here, or when its words speak to their
    reader; what would act by itself waits.
    """
    if obj is None or status in _WITHHELD or status == _ERASED:
        return status
    refused = withheld.refused_by(tx, part, tombs.values_of(obj)) is not None
    if refused or gate.instructions_of_stranger(obj):
        return withheld.QUARANTINED
    return _PENDING if isinstance(obj, Memory) and obj.kind in ACTS else status


def accept(tx: Tx, part: Part, ref: bytes, *, trust: bool) -> bool:
    """Believe a pack after all that is taken in again, once its owner vouches for it.

    Its status is that of the pack where nothing but an import without trust has lowered it.  What
    an undo of an import had withheld comes back, trusted or not.

    Args:
        tx: the write transaction.
        part: its partition.
        ref: a ref that the pack brings, and that is here.
        trust: the owner vouches for the pack.

    Returns:
        Whether something changed.
    """
    tx.flush()
    state = tx.reader.state(part, ref)
    if state is None or state.head is None or state.status == _ERASED:
        return False
    own = [e for e in tx.reader.entries(part, state) if e.reason != chains.LINK]
    last, before = own[0], own[1] if len(own) > 1 else None
    stated = next((e.origin.status for e in own if e.origin is not None), None)
    if own[-1].origin is None or stated is None or stated == _ERASED:
        return False
    undone = last.origin is None and last.reason.startswith(f"{refs.UNDO}-")
    undone = undone and last.status == withheld.REJECTED and before is not None
    if undone and before is not None and before.origin is not None:
        wanted = stated if trust else before.status
    elif trust and last.origin is not None:
        wanted = stated
    else:
        return False
    if wanted == state.status or wanted in _WITHHELD:
        return False
    op = "release" if state.status in _WITHHELD else "approve"
    tx.record(part, op, ref, state, status=refs.STATUSES[wanted], reason=refs.ACCEPTED)
    tx.flush()
    chains.relink_of(tx, part, ref)
    return True
