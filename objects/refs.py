"""The ref log and its fold: what became of one thing, and what it is now.

A ref is named by the id of its first object.  Each change appends one entry; the state of a ref is
the fold of its entries, the state at record time K the fold of those recorded up to K.

Source: remem-store(5), REF LOG.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects.errors import IntegrityError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.attests import Attests

OPS = (
    "create",
    "revise",
    "rollback",
    "supersede",
    "close",
    "reopen",
    "quarantine",
    "release",
    "approve",
    "reject",
    "orphan",
    "expire",
    "promote",
    "pin",
    "unpin",
    "hold",
    "unhold",
    "flag",
    "erase",
    "purge",
)
OP_CODE = {name: code for code, name in enumerate(OPS)}
STATUSES = (
    "verified",
    "provisional",
    "model_claim",
    "user_belief",
    "legacy_unverified",
    "pending",
    "quarantined",
    "orphaned",
    "rejected",
    "expired",
    "erased",
)
STATUS_CODE = {name: code for code, name in enumerate(STATUSES)}
UNVOUCHED = "legacy_unverified"  # what a pack brought that nobody vouched for
OBSERVATION = 0
MEMORY = 1
DRAFT = 2
RUN = 3
TYPES = ("observation", "memory", "draft", "run")  # from DRAFT on bookkeeping, never recalled

MAX_REASON = 40  # characters of a reason code that somebody gives
ACCEPTED = "trusted"  # reason of a status that the owner believed a pack later on
UNDO = "undo"  # reasons of entries that take an operation back begin so
# A rejection with one of these reasons is no verdict on a value: it follows from something else.
NO_VERDICT = frozenset(("chain", "rederived", "withheld", "merged", "stale", "restored"))
# Reasons by which the store knows its own entries again: nobody gives them.
RESERVED = NO_VERDICT | {
    "denied",
    "edited",
    "ended",
    "evidence",
    "follows",
    "forgotten",
    "restated",
    "resubmitted",
    "without",
    ACCEPTED,
}
_MARKS = str.maketrans("", "", "-_.")

HELD = 1
PINNED = 2
FLAGGED = 4
CLOSED = 8


class Origin(msgspec.Struct, frozen=True, array_like=True):
    """What an entry said in the store where it was made, when a pack brought it here.

    Attributes:
        time: record time there, microseconds UTC.
        status: index into STATUSES there; what this store believes is in the entry.
    """

    time: int
    status: int


class Entry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One change of one ref.

    Attributes:
        seq: number within the partition, from 1, without gaps.
        op: index into OPS.
        ref: id of the ref.
        old: head before, or None at create.
        new: head after, or None when nothing is left.
        status: index into STATUSES, after the change.
        valid_from: microseconds UTC, or None for unknown (record time stands in).
        valid_to: microseconds UTC (exclusive), or None.
        replaced_by: the ref that took its place, or None.
        time: record time, microseconds UTC; never smaller than that of an earlier entry.
        principal: who did it.
        surface: through which door.
        reason: reason code, may be empty.
        lane: number of (agent, session) within the partition.
        type: index into TYPES.
        prev: seq of the entry before of the same ref, 0 at create.
        origin: set on an entry that a pack brought, None on one that was made here.
    """

    seq: int
    op: int
    ref: bytes
    old: bytes | None
    new: bytes | None
    status: int
    valid_from: int | None
    valid_to: int | None
    replaced_by: bytes | None
    time: int
    principal: str
    surface: str
    reason: str
    lane: int
    type: int
    prev: int
    origin: Origin | None = None

    def said(self) -> dict[str, bytes | bool] | None:
        """What the entry says of rows in other tables (`remem.objects.attests`), or None."""
        return None


class AttestingEntry(Entry, frozen=True, gc=False, array_like=True):
    """An entry with one more field: what it says of rows in other tables."""

    attests: dict[str, bytes | bool] | None = None

    def said(self) -> dict[str, bytes | bool] | None:
        """The field."""
        return self.attests


class RefState(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The fold of a ref's entries (see Entry for the fields).

    Attributes:
        first: seq of the first entry; last: seq of the last.
        created: record time of the first entry; changed: of the last.
        flags: HELD, PINNED, FLAGGED (for purge), CLOSED.
    """

    head: bytes | None
    status: int
    valid_from: int | None
    valid_to: int | None
    replaced_by: bytes | None
    first: int
    last: int
    created: int
    changed: int
    lane: int
    type: int
    flags: int

    @property
    def starts(self) -> int:
        """Valid time from which it holds: as stated, else when it was recorded."""
        return self.created if self.valid_from is None else self.valid_from


def ran_out(state: RefState, now: int) -> bool:
    """True for a note that was kept for a time only, and that time is over.

    Args:
        state: of the ref.
        now: microseconds UTC.
    """
    if state.type != OBSERVATION or state.valid_to is None or state.valid_to > now:
        return False
    return state.replaced_by is None and not state.flags & CLOSED


_FLAG_OPS = {
    OP_CODE["hold"]: (HELD, 0),
    OP_CODE["unhold"]: (0, HELD),
    OP_CODE["pin"]: (PINNED, 0),
    OP_CODE["unpin"]: (0, PINNED),
    OP_CODE["flag"]: (FLAGGED, 0),
    OP_CODE["purge"]: (0, FLAGGED),
    OP_CODE["close"]: (CLOSED, 0),
    OP_CODE["reopen"]: (0, CLOSED),
}

encode_entry = msgspec.msgpack.Encoder(order="deterministic").encode
_decode_plain = msgspec.msgpack.Decoder(Entry).decode
_decode_attesting = msgspec.msgpack.Decoder(AttestingEntry).decode
_ARRAY16 = 0xDC  # MessagePack: an array whose length is in the next two bytes
_PLAIN = len(Entry.__struct_fields__)
encode_state = msgspec.msgpack.Encoder().encode
decode_state = msgspec.msgpack.Decoder(RefState).decode


def decode_entry(data: bytes) -> Entry:
    """An entry from its bytes; of the class that has as many fields, so that it encodes the same.

    Raises:
        msgspec.MsgspecError: the bytes are none.
    """
    if len(data) > 2 and data[0] == _ARRAY16 and data[2] > _PLAIN:
        return _decode_attesting(data)
    return _decode_plain(data)


def attesting(entry: Entry, attests: Attests) -> Entry:
    """The same entry, saying something of rows in other tables; itself where that is nothing."""
    if not attests:
        return entry
    return AttestingEntry(*(*msgspec.structs.astuple(entry), attests))


def step(state: RefState | None, entry: Entry) -> RefState:
    """The state after one more entry.

    Raises:
        IntegrityError: the entry does not continue this state.
    """
    if state is None:
        if entry.prev != 0:
            raise IntegrityError(f"entry {entry.seq} continues a ref that has no beginning")
        first, created, flags = entry.seq, entry.time, 0
    else:
        if entry.prev != state.last or entry.old != state.head:
            raise IntegrityError(f"entry {entry.seq} does not continue its ref")
        first, created, flags = state.first, state.created, state.flags
    on, off = _FLAG_OPS.get(entry.op, (0, 0))
    return RefState(
        entry.new,
        entry.status,
        entry.valid_from,
        entry.valid_to,
        entry.replaced_by,
        first,
        entry.seq,
        created,
        entry.time,
        entry.lane,
        entry.type,
        (flags | on) & ~off,
    )


def fold(entries: Iterable[Entry]) -> RefState | None:
    """The state after these entries, oldest first, or None when there are none."""
    state: RefState | None = None
    for entry in entries:
        state = step(state, entry)
    return state


def given_reason(word: str | None) -> str:
    """A reason code that somebody gave, as it is kept; empty for None.

    Raises:
        UsageError: it is not one short word, or it is one of the store's own.
    """
    if word is None:
        return ""
    word = word.strip()
    if len(word) > MAX_REASON or not word.isascii() or not word.translate(_MARKS).isalnum():
        raise UsageError(
            f"'{word[:60]}' is no reason code",
            hint=f"one word of at most {MAX_REASON} letters, digits, '-', '_' or '.'",
        )
    if word in RESERVED or word.startswith(UNDO):
        raise UsageError(f"the reason '{word}' is kept for the store itself")
    return word
