"""Forgetting: gone from every view at once, with what was derived only from it.

The bytes wait for a purge, and until then a forgetting can be taken back.  What it takes is worked
out by `remem.objects.forget_plan`.

Source: remem-store(5), TOMBSTONES; remem-forget(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, encode, memories, oid, refs, tombs
from remem.objects.derive import queue
from remem.objects.errors import NotFound, Refused
from remem.objects.forget_plan import ERASED, plan, revisions
from remem.objects.model import Draft, Memory
from remem.objects.tombs import values_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.encode import Stored
    from remem.objects.forget_plan import Erasure, Item, Plan
    from remem.objects.reader import Part
    from remem.objects.tx import Tx

__all__ = ["FORGOTTEN", "RESTORED", "apply", "forget", "forget_many", "restore", "values_of"]

FORGOTTEN = "forgotten"  # reason of a revision that only takes a citation away
RESTORED = "restored"  # reason of what takes a forgetting back
_DERIVERS = frozenset(("ledger", "rules"))  # those that a queue waits for


class Forgetting(msgspec.Struct):
    """What a forgetting took: refs of observations and memories, memories that lost a citation.

    Attributes:
        held: refs asked for that a hold keeps.
        known: refs asked for that were forgotten before.
        drafts: refs of drafts; what is left of one goes on as another.
        aliases: keys of the aliases that went: they told what was forgotten.
    """

    observations: list[bytes] = []
    memories: list[bytes] = []
    lost_citation: list[bytes] = []
    held: list[bytes] = []
    known: list[bytes] = []
    drafts: list[bytes] = []
    aliases: list[bytes] = []

    def add(self, other: Forgetting) -> None:
        """Add what another one took."""
        for name in self.__struct_fields__:
            getattr(self, name).extend(getattr(other, name))


def forget(
    tx: Tx, part: Part, ref: bytes, *, reason: str = "", allow_return: bool = False
) -> Forgetting:
    """Forget one ref.

    Args:
        tx: the write transaction.
        part: its partition.
        ref: id of the ref.
        reason: reason code.
        allow_return: the same value may be stored again.

    Raises:
        NotFound: there is no such ref.
        Refused: it is held, or something derived only from it is; nothing was changed.
    """
    tx.flush()
    found = plan(tx.reader, [(part, ref)])
    if found.held:
        raise refusal(found.held[0])
    return apply(tx, found, reason=reason, allow_return=allow_return)


def forget_many(
    tx: Tx, items: Iterable[Item], *, reason: str = "", allow_return: bool = False
) -> Forgetting:
    """Forget many refs; what a hold keeps is left out, with a row of the audit chain for each."""
    tx.flush()
    found = plan(tx.reader, items)
    for part, ref, _ in found.held:
        tx.refuse("forget", "held", part.number, ref)
    return apply(tx, found, reason=reason, allow_return=allow_return)


def refusal(held: tuple[Part, bytes, bytes]) -> Refused:
    """The error for a forgetting that a hold keeps."""
    part, asked, holder = held
    what = f"'{oid.short(asked)}' is held"
    if holder != asked:
        what = f"'{oid.short(holder)}', which was derived from '{oid.short(asked)}', is held"
    return Refused(what, hint=f"'remem hold release {oid.short(holder)}' comes first").audited(
        "forget", "held", part.number, asked
    )


# -- doing it -----------------------------------------------------------------------------------


def apply(tx: Tx, found: Plan, *, reason: str = "", allow_return: bool = False) -> Forgetting:
    """Do what a plan says, in the transaction on whose snapshot it was made."""
    done = Forgetting(held=[ref for _, ref, _ in found.held], known=[ref for _, ref in found.known])
    linked: dict[bytes, Part] = {}
    for one in found.erase:
        key = _erase(tx, one, reason, allow_return)
        if key is not None:
            linked[key] = one.part
        lists = {refs.MEMORY: done.memories, refs.OBSERVATION: done.observations}
        lists.get(one.state.type, done.drafts).append(one.ref)
    for loss in found.lose:
        state, memory_head = memories.head(tx, loss.part, loss.ref)
        new = without(memory_head, loss.cites)
        memories.replace(tx, loss.part, loss.ref, state, new, reason=FORGOTTEN)
        done.lost_citation.append(loss.ref)
    tx.flush()
    for key, part in linked.items():
        chains.relink(tx, part, key)
    done.drafts += _from_drafts(tx, found, reason)
    if tx.txn.count("aliases"):
        done.aliases = _aliases(tx, found)
    return done


def _aliases(tx: Tx, found: Plan) -> list[bytes]:
    """Take away the names that only what was forgotten bore."""
    from remem.objects import aliases

    texts: dict[int, list[str]] = {}
    gone: dict[int, set[bytes]] = {}
    parts = {one.part.number: one.part for one in found.erase}
    for one in found.erase:
        for object_id, obj in one.revisions:
            texts.setdefault(one.part.number, []).extend(values_of(obj))
            gone.setdefault(one.part.number, set()).add(object_id)
    taken: list[bytes] = []
    for number, part in parts.items():
        taken += aliases.forget(tx, part, texts.get(number, ()), gone.get(number, ()))
    return taken


def _from_drafts(tx: Tx, found: Plan, reason: str) -> list[bytes]:
    """Take from drafts what rests on something that goes; refs of the drafts that went."""
    gone: dict[int, set[bytes]] = {}
    lost: dict[int, set[bytes]] = {}
    parts: dict[int, Part] = {}
    for one in found.erase:
        parts[one.part.number] = one.part
        own = gone.setdefault(one.part.number, set())
        own.add(one.ref)
        own.update(object_id for object_id, _ in one.revisions)
    for loss in found.lose:
        parts[loss.part.number] = loss.part
        lost.setdefault(loss.part.number, set()).add(loss.ref)
    if not tx.txn.count("proposed"):
        return []
    from remem.objects import draft_forget

    went = []
    for number, part in parts.items():
        less = lost.get(number, set())
        went += draft_forget.withdraw(tx, part, gone.get(number, set()), less, reason)
    return went


def _erase(tx: Tx, one: Erasure, reason: str, allow_return: bool) -> bytes | None:
    """Set the tombstone of one ref; the key of the chain that loses a fact, or None."""
    part, ref = one.part, one.ref
    texts: list[str] = []
    if not allow_return:
        texts = one.texts or [t for _, obj in one.revisions for t in values_of(obj)]
    key = None
    for _, obj in one.revisions:
        if isinstance(obj, Memory):
            key = key or chains.chain_of(tx, part, ref, obj)
            for cited in obj.cites:
                tx.txn.delete("cites", part.prefix + cited + ref)
    values = tombs.digests(part, texts)
    tx.record(
        part,
        "erase",
        ref,
        one.state,
        status="erased",
        reason=reason,
        attests=tombs.said(values),
    )
    tombs.bury(tx, part, ref, values, reason)
    deriver = next((o.deriver.name for _, o in one.revisions if isinstance(o, Memory)), "")
    for cited in one.again if deriver in _DERIVERS else ():
        source = tx.reader.ref_of(part, cited)
        queue.lease(tx, part, source, deriver, anew=True)
        queue.retry(tx, part, source, deriver)
    return key


def restore(tx: Tx, part: Part, ref: bytes) -> list[bytes]:
    """Take a forgetting back while the bytes wait for the purge.

    What was derived from the ref, or stated it, and went with it comes back too, and a memory that
    only lost its citation has it again.

    Returns:
        The refs that are there again.

    Raises:
        NotFound: the ref has no tombstone.
        Refused: its bytes are gone.
    """
    tx.flush()
    tomb = tombs.get(tx.reader, part, ref)
    state = tx.reader.state(part, ref)
    if tomb is None or state is None:
        raise NotFound(f"'{oid.short(ref)}' has no tombstone")
    if tomb.purged is not None or not revisions(tx.reader, part, state):
        raise Refused(
            f"the bytes of '{oid.short(ref)}' are gone",
            hint="'remem tombstones lift' lets the value be added again",
        ).audited("restore", "purged", part.number, ref)
    own = dict(revisions(tx.reader, part, state))
    cited = {c for obj in own.values() if isinstance(obj, Memory) for c in obj.cites}
    back = [ref]
    again: list[tuple[bytes, bytes]] = []
    drafts_back: list[bytes] = []
    for entry in tx.reader.log(part, reverse=True):
        if entry.time < tomb.time:
            break
        if entry.time > tomb.time or entry.ref == ref:
            continue
        if refs.OPS[entry.op] == "erase" and entry.type == refs.DRAFT:
            drafts_back.append(entry.ref)
        elif refs.OPS[entry.op] == "erase":
            if entry.new in cited or _cites_any(tx, part, entry.new, own):
                back.append(entry.ref)
        elif entry.reason == FORGOTTEN and entry.old and _cites_any(tx, part, entry.old, own):
            again.append((entry.ref, entry.old))
    for one in back:
        _bring_back(tx, part, one)
    for memory, earlier in again:
        _cite_again(tx, part, memory, earlier)
    for draft in drafts_back:
        back += _draft_back(tx, part, draft, {*own, *back, *(m for m, _ in again)})
    return back


def _draft_back(tx: Tx, part: Part, ref: bytes, own: set[bytes]) -> list[bytes]:
    """Restore a draft that went because of what is there again; the refs that are back."""
    from remem.objects import draft_forget, draft_rows

    state = tx.reader.state(part, ref)
    tomb = tombs.get(tx.reader, part, ref)
    if state is None or state.head is None or tomb is None or tomb.purged is not None:
        return []
    data = tx.txn.get("objects", part.prefix + state.head)
    draft = None if data is None else encode.read(data)
    if not isinstance(draft, Draft):
        return []
    if not any(draft_rows.rests_on(tx.txn, part.prefix, op) & own for op in draft.operations):
        return []
    _bring_back(tx, part, ref)
    draft_forget.bring_back(tx, part, ref)
    return [ref]


def _bring_back(tx: Tx, part: Part, ref: bytes) -> None:
    state = tx.reader.state(part, ref)
    assert state is not None
    before = "provisional"
    for entry in tx.reader.entries(part, state):
        if entry.status != ERASED:
            before = refs.STATUSES[entry.status]
            break
    tombs.remove(tx, part, ref)
    tx.record(part, "release", ref, state, status=before, reason=RESTORED)
    tx.flush()
    for object_id, obj in revisions(tx.reader, part, state):
        if isinstance(obj, Memory) and object_id == state.head:
            for cited in obj.cites:
                tx.txn.put("cites", part.prefix + cited + ref, b"")
            chains.relink_of(tx, part, ref)


def _cite_again(tx: Tx, part: Part, ref: bytes, earlier: bytes) -> None:
    """Give a memory the head back that it had before it lost a citation, if it is as it was."""
    state = tx.reader.state(part, ref)
    if state is None or state.head is None or state.status == ERASED:
        return
    last = next(e for e in tx.reader.entries(part, state) if e.reason != chains.LINK)
    if last.reason != FORGOTTEN or last.old != earlier:
        return
    old = tx.reader.object(part, earlier)
    tx.record(part, "rollback", ref, state, new=earlier, reason=RESTORED)
    for cited in old.cites if isinstance(old, Memory) else ():
        tx.txn.put("cites", part.prefix + cited + ref, b"")


def _cites_any(
    tx: Tx, part: Part, object_id: bytes | None, observations: dict[bytes, Stored]
) -> bool:
    data = None if object_id is None else tx.txn.get("objects", part.prefix + object_id)
    obj = None if data is None else encode.read(data)
    return isinstance(obj, Memory) and any(c in observations for c in obj.cites)


def without(memory: Memory, left: list[bytes]) -> Memory:
    """The same memory with fewer citations; its span stays with the one that it is of."""
    span = memory.span
    if span is not None:
        own = memory.cites[span.cite]
        place = left.index(own) if own in left else None
        span = None if place is None else msgspec.structs.replace(span, cite=place)
    return msgspec.structs.replace(memory, salt=encode.ZERO_SALT, cites=left, span=span)
