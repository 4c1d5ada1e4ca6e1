"""What is held back: listed with the reason, by whom, and since when.

Held back are refs that are quarantined, and pending claims that belong to no draft (a pack brought
them).  Deciding on them is the matter of `remem.objects.review`.

Source: remem-quarantine(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import drafts, refs, review, withheld

if TYPE_CHECKING:
    from remem.objects.reader import Part, Reader


class _Receipt(msgspec.Struct, array_like=True):
    """The beginning of an admission receipt."""

    status: str
    codes: list[str]


_decode_receipt = msgspec.msgpack.Decoder(_Receipt).decode


class Held(msgspec.Struct, frozen=True):
    """One thing that is held back.

    Attributes:
        ref: its ref; state: the state of it.
        since: when it was set apart, microseconds UTC.
        codes: reason codes of the receipt, else the reason of the log entry; may be empty.
        producers: who produced it, sorted; an empty name for who is not known.
    """

    part: Part
    ref: bytes
    state: refs.RefState
    since: int
    codes: list[str]
    producers: list[str]


def held(reader: Reader) -> list[Held]:
    """All that is held back within the grant, oldest first."""
    found = []
    for part in reader.parts:
        for ref, since in withheld.waiting(reader, part):
            state = reader.state(part, ref)
            if state is None or state.type > refs.MEMORY or state.head is None:
                continue
            if state.status == withheld.PENDING and drafts.in_draft(reader, part, ref):
                continue
            found.append(describe(reader, part, ref, state, since))
    return sorted(found, key=lambda one: (one.since, one.part.number, one.ref))


def describe(reader: Reader, part: Part, ref: bytes, state: refs.RefState, since: int) -> Held:
    """What is told of one thing that is held back."""
    names = sorted(review.producers(reader, part, ref))
    return Held(part, ref, state, since, codes_of(reader, part, ref, state), names)


def codes_of(reader: Reader, part: Part, ref: bytes, state: refs.RefState) -> list[str]:
    """Why something is held back: of its head's receipt, else of the entry that set it apart."""
    data = None if state.head is None else reader.receipt(part, state.head)
    if data is not None:
        try:
            codes = _decode_receipt(data).codes
        except msgspec.MsgspecError:
            codes = []
        if codes:
            return codes
    reason = ""
    for entry in reader.entries(part, state):
        if entry.status not in withheld.WAITING:
            break
        reason = entry.reason or reason
    return [reason] if reason else []
