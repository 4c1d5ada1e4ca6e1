"""Drafts and forgetting: what rests on something that goes is taken from every draft.

Source: remem-store(5), TOMBSTONES.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import draft_rows, encode, refs, tombs

if TYPE_CHECKING:
    from remem.objects.reader import Part
    from remem.objects.tx import Tx

WITHOUT = "without"  # reason of a draft that goes on without what was forgotten
RESTORED = "restored"


def withdraw(tx: Tx, part: Part, gone: set[bytes], lost: set[bytes], reason: str) -> list[bytes]:
    """Take from every draft what rests on something that was forgotten.

    The draft is forgotten as a whole, since its earlier revisions hold the critiques; what is left
    of it begins a draft of its own, under the same numbers and without its note.

    Args:
        tx: the write transaction.
        part: the partition.
        gone: ids of refs that were forgotten, and of all their revisions.
        lost: refs of memories that only lost a citation: their operations stay, without critique.
        reason: reason code of the forgetting.

    Returns:
        Refs of the drafts that were forgotten.
    """
    tx.flush()
    went: list[bytes] = []
    touched: dict[bytes, None] = {}
    for one in (*gone, *lost):
        touched.update(dict.fromkeys(draft_rows.resting(tx.reader, part, one)))
    for ref in touched:
        state = tx.reader.state(part, ref)
        if state is None or state.head is None or tx.reader.erased(part, ref) is not None:
            draft_rows.drop_rows(tx, part, ref)
            continue
        draft = draft_rows.get(tx.reader, part, ref)[1]
        left = []
        for op in draft.operations:
            named = {op.proposed, op.target, op.into, *op.cites}
            if named & gone:
                continue
            if draft_rows.rests_on(tx.txn, part.prefix, op) & (gone | lost):
                op = msgspec.structs.replace(op, critique="")
            left.append(op)
        draft_rows.drop_rows(tx, part, ref)
        none = tombs.said([])
        tx.record(part, "erase", ref, state, status="erased", reason=reason, attests=none)
        tombs.bury(tx, part, ref, [], reason)
        went.append(ref)
        if left:
            new = msgspec.structs.replace(
                draft, salt=encode.ZERO_SALT, operations=left, note="", meta={"from": ref.hex()}
            )
            status = "pending" if any(not op.verdict for op in left) else "rejected"
            draft_rows.begin(tx, part, new, status, WITHOUT)
    tx.flush()
    return went


def bring_back(tx: Tx, part: Part, ref: bytes) -> None:
    """Restore a draft whose forgetting was taken back, in the place of the one that went on."""
    state = tx.reader.state(part, ref)
    assert state is not None and state.head is not None
    draft = draft_rows.get(tx.reader, part, ref)[1]
    draft_rows.add_rows(tx, part, ref, draft)
    tx.flush()
    for entry in tx.reader.log(part, after=state.first):
        if entry.type != refs.DRAFT or entry.prev or entry.reason != WITHOUT:
            continue
        now = tx.reader.state(part, entry.ref)
        if now is None or now.head is None or tx.reader.erased(part, entry.ref) is not None:
            continue
        other = draft_rows.get(tx.reader, part, entry.ref)[1]
        if other.meta.get("from") == ref.hex():
            draft_rows.drop_rows(tx, part, entry.ref)
            tx.record(
                part,
                "erase",
                entry.ref,
                now,
                status="erased",
                reason=RESTORED,
                attests=tombs.said([]),
            )
            tombs.bury(tx, part, entry.ref, [], RESTORED)
