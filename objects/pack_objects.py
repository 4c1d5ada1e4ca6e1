"""Objects that a pack brings: what keeps them out, and the rows that find them again.

Source: remem-pack(5), MERGING.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import encode, forget, gate, lists, oid, pack_facts, pack_write, refs, tombs
from remem.objects.model import Memory, Observation
from remem.objects.pack_read import CREATE, Change

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.reader import Part
    from remem.objects.tx import Tx


def local_id(obj: encode.Obj, part: Part) -> bytes:
    """The id that an object would have, had it been made in this partition of this store."""
    plain: encode.Obj = msgspec.structs.replace(obj, salt=encode.ZERO_SALT)
    return encode.seal(plain, part.key)[0]


class Chain:
    """What the log of one ref holds: how often each change, and the status last stated."""

    __slots__ = ("held", "status")

    def __init__(self, entries: Iterable[refs.Entry]) -> None:
        """Take the entries newest first."""
        self.held: dict[tuple[int, int, str, str, str], int] = {}
        self.status = -1
        before: refs.Entry | None = None
        for entry in reversed(list(entries)):
            self.status = pack_write.said_status(before, self.status, entry)
            key = pack_write.identity(entry)
            self.held[key] = self.held.get(key, 0) + 1
            before = entry


class Outcome(Exception):
    """Leaves the merging of a change with what became of it."""

    def __init__(self, what: str, why: str = "") -> None:
        """What is one of known, blocked, skipped and rejected."""
        super().__init__(why)
        self.what = what
        self.why = why


class Objects:
    """Objects and logs as one batch sees them."""

    def __init__(self, tx: Tx) -> None:
        """Bind a transaction."""
        self.tx = tx
        self.chains: dict[bytes, Chain] = {}

    def chain(self, part: Part, ref: bytes, state: refs.RefState) -> Chain:
        """What the log of a ref holds, read once for a batch."""
        chain = self.chains.get(ref)
        if chain is None:
            chain = self.chains[ref] = Chain(self.tx.reader.entries(part, state))
        return chain

    def take(self, part: Part, change: Change, lane: tuple[str, str], kind: int) -> bytes | None:
        """Store the object that a change brought, with what finds it again.

        Returns:
            Key of the chain that got a fact, or None.

        Raises:
            Outcome: it is blocked, skipped or rejected; nothing was stored.
        """
        obj, data = change.obj, change.data
        if obj is None or data is None or change.head is None or change.head[1] is None:
            return None
        object_id, txn = change.head[1], self.tx.txn
        if (obj.scope.agent, obj.scope.session) != lane or _kind(obj) != kind:
            raise Outcome("rejected", "its object belongs to another agent, session or type")
        own_id = local_id(obj, part)
        if self.is_forgotten(part, own_id, obj):
            raise Outcome("blocked")
        owner = txn.get("revs", part.prefix + object_id) or object_id
        if owner != change.ref and self.is_here(part, object_id):
            raise Outcome("skipped", "its object belongs to another ref here")
        if isinstance(obj, Memory):
            for cited in obj.cites:
                found = self.tx.reader.object_bytes(part, cited)
                if not self.is_here(part, cited) or (
                    found is not None and encode.type_name(found) != "observation"
                ):
                    what = f"it cites '{oid.short(cited)}', which is no observation here"
                    raise Outcome("rejected", what)
        if gate.unclean(obj):
            raise Outcome("rejected", "its object holds a secret or a private region")
        txn.put("objects", part.prefix + object_id, data)
        lists.add_object(txn, part, object_id, obj)
        if change.op != CREATE:
            return None
        if own_id != object_id:
            self.tx.add_twin(part, own_id, change.ref)
        source = obj.source if isinstance(obj, Observation) else None
        if source is not None and source.id:
            txn.put_new("sources", part.source_key(source.uri, source.id), change.ref)
        return pack_facts.join(self.tx, part, change.ref, obj, change.chain)

    def cite(self, part: Part, ref: bytes, before: bytes | None, after: bytes) -> None:
        """Let the observations that the head of a memory cites lead to it."""
        txn = self.tx.txn
        for cited in self._cites_of(part, before):
            txn.delete("cites", part.prefix + cited + ref)
        for cited in self._cites_of(part, after):
            txn.put("cites", part.prefix + cited + ref, b"")

    def _cites_of(self, part: Part, object_id: bytes | None) -> list[bytes]:
        data = None if object_id is None else self.tx.reader.object_bytes(part, object_id)
        if data is None or encode.type_name(data) != "memory":
            return []
        obj = encode.decode(data)
        return obj.cites if isinstance(obj, Memory) else []

    def is_here(self, part: Part, object_id: bytes) -> bool:
        """True for an object that is, or was, a head of a ref here."""
        txn, key = self.tx.txn, part.prefix + object_id
        return txn.get("refs", key) is not None or txn.get("revs", key) is not None

    def is_erased(self, part: Part, object_id: bytes) -> bool:
        """True when the ref of an object has a tombstone here."""
        ref = self.tx.reader.ref_of(part, object_id)
        return self.tx.txn.get("tombs", part.prefix + ref) is not None

    def is_forgotten(self, part: Part, own_id: bytes, obj: encode.Obj) -> bool:
        """True when a tombstone here keeps an object out: the one place that decides it."""
        texts = forget.values_of(obj)
        if any(tombs.blocked(self.tx, part, text) is not None for text in texts):
            return True
        if self.tx.has_values and not self.is_here(part, own_id):
            if tombs.named(self.tx, part, tombs.names_of(obj)) is not None:
                return True
        twin = self.tx.twin(part, own_id)
        erased = self.is_erased(part, own_id) or (twin and self.is_erased(part, twin))
        return bool(erased) or self.lost_evidence(part, obj)

    def lost_evidence(self, part: Part, obj: encode.Obj) -> bool:
        """True for a memory of which everything that it cites was forgotten here."""
        return isinstance(obj, Memory) and all(self.is_erased(part, c) for c in obj.cites)


def _kind(obj: encode.Obj) -> int:
    return refs.MEMORY if isinstance(obj, Memory) else refs.OBSERVATION
