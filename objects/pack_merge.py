"""Taking a pack in: the union of its changes with those of the store, and never what was forgotten.

Each change is known (the ref's log holds it), new (appended), blocked (a tombstone here), skipped
(a conflict, listed) or rejected (cannot be taken).  A change carries what it changed from and to;
it is appended when the fields that it changed still have here the value from before, or have the
new one already.  Objects are kept byte for byte under their own id; so that the same evidence is
recognised when it comes in again, the id that it would have had here leads to its ref.

A pack is believed for what happened, not for what is to be trusted: unless the owner says so,
"verified" becomes "legacy_unverified" and nothing that is withheld here is let out by a pack.  The
entry keeps what the pack said, so that a later export says the same.

Source: remem-pack(5), MERGING.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import encode, oid, pack_facts, pack_write, refs
from remem.objects.model import Memory, Observation, Rejected, Scope
from remem.objects.pack_read import CREATE, ROLLBACK, Alias, Change
from remem.objects.scope import DEFAULT_AGENT, DEFAULT_SESSION

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeVar

    from remem.objects.reader import Part
    from remem.objects.tx import Tx

    T = TypeVar("T")

MAX_LISTED = 1000

ERASED = refs.STATUS_CODE["erased"]
FLAG = refs.OP_CODE["flag"]
ORPHANED = refs.STATUS_CODE["orphaned"]
PURGE = refs.OP_CODE["purge"]
_ENDS = frozenset(refs.OP_CODE[op] for op in ("erase", "purge", "flag"))
_WITHHELD = frozenset(
    refs.STATUS_CODE[name] for name in ("pending", "quarantined", "orphaned", "rejected", "expired")
)
_encode_receipt = msgspec.msgpack.Encoder().encode


class Conflict(msgspec.Struct, frozen=True):
    """A change that was not joined: the ref went another way here."""

    where: str
    ref: bytes
    op: str
    why: str


class ImportSum(msgspec.Struct):
    """What became of the changes: read = new + known + skipped + blocked + rejected.

    Attributes:
        lowered: new entries whose status was not believed.
        erased: refs that were live here and were forgotten by the pack; they are flagged for purge.
        errors: the first 1,000 rejected lines.
        conflicts: the first 1,000 changes that were skipped.
    """

    read: int = 0
    new: int = 0
    known: int = 0
    skipped: int = 0
    blocked: int = 0
    rejected: int = 0
    lowered: int = 0
    erased: int = 0
    errors: list[Rejected] = []
    conflicts: list[Conflict] = []

    def add(self, other: ImportSum) -> None:
        """Add the numbers and lists of another sum."""
        for name in ("read", "new", "known", "skipped", "blocked", "rejected", "lowered", "erased"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.errors += other.errors[: MAX_LISTED - len(self.errors)]
        self.conflicts += other.conflicts[: MAX_LISTED - len(self.conflicts)]


def local_id(obj: encode.Obj, part: Part) -> bytes:
    """The id that an object would have, had it been made in this partition of this store."""
    plain: encode.Obj = msgspec.structs.replace(obj, salt=encode.ZERO_SALT)
    return encode.seal(plain, part.key)[0]


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
    return refs.STATUS_CODE["legacy_unverified"] if refs.STATUSES[stated] == "verified" else stated


class Rules:
    """Options of an import and what its earlier batches found."""

    def __init__(self, apply_tombstones: bool, trust: bool) -> None:
        """Begin with nothing found."""
        self.apply_tombstones = apply_tombstones
        self.trust = trust
        self.stopped: set[bytes] = set()  # refs with a conflict: their later changes wait too
        self.barred: set[bytes] = set()  # refs that a tombstone kept from beginning
        self.facts: set[bytes] = set()  # refs of the pack that are in a chain


class _Chain:
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


class _Outcome(Exception):
    """Leaves the merging of a change with what became of it."""

    def __init__(self, what: str, why: str = "") -> None:
        super().__init__(why)
        self.what = what
        self.why = why


class Merge:
    """One batch in one transaction."""

    def __init__(self, tx: Tx, rules: Rules) -> None:
        """Bind a transaction; run the batch once with it."""
        self.tx = tx
        self.rules = rules
        self.sum = ImportSum()
        self.stopped: set[bytes] = set()
        self.barred: set[bytes] = set()
        self.facts: set[bytes] = set()
        self._linked: dict[bytes, Part] = {}  # chains that got a fact
        self._torn: dict[bytes, Part] = {}  # chains that both sides linked
        self._chains: dict[bytes, _Chain] = {}
        self._last: dict[int, int] = {}
        self._forgotten: list[tuple[Part, bytes]] = []

    def run(self, batch: list[Change | Alias | Rejected]) -> Merge:
        """Join the changes in their order, then draw the consequences of what was forgotten."""
        for record in batch:
            self.sum.read += 1
            if isinstance(record, Rejected):
                self._reject(record.where, record.why)
                continue
            if isinstance(record, Alias):
                self._alias(record)
                continue
            if record.chain:
                self.facts.add(record.ref)
            try:
                self._change(record)
                self.sum.new += 1
            except _Outcome as outcome:
                self._note(record, outcome)
        for part, ref in self._forgotten:
            self._settle(part, ref)
        self.tx.flush()
        for key, part in self._linked.items():
            pack_facts.relink(self.tx, part, key, (self.facts, self.rules.facts))
        for key, part in self._torn.items():
            pack_facts.relink(self.tx, part, key, ())
        return self

    def _reject(self, where: str, why: str) -> None:
        self.sum.rejected += 1
        if len(self.sum.errors) < MAX_LISTED:
            self.sum.errors.append(Rejected(where, why))

    def _note(self, change: Change, outcome: _Outcome) -> None:
        if outcome.what == "rejected":
            self._reject(change.where, outcome.why)
        elif outcome.what == "known":
            self.sum.known += 1
        elif outcome.what == "blocked":
            self.sum.blocked += 1
            part = self._part(change.scope)
            number = 0 if part is None else part.number
            self.tx.refuse("import", "blocked_by_tombstone", number, change.ref)
        else:
            self._skip(change, outcome.why)

    def _skip(self, change: Change, why: str) -> None:
        self.sum.skipped += 1
        part = self._part(change.scope)
        key = None
        if part is not None and change.reason == "chain":
            key = pack_facts.key_of(self.tx, part, change.ref)
        if part is not None and key is not None:
            self._torn[key] = part
            why += "; its chain is linked anew"
        else:
            self.stopped.add(change.ref)
        if len(self.sum.conflicts) < MAX_LISTED:
            conflict = Conflict(change.where, change.ref, refs.OPS[change.op], why)
            self.sum.conflicts.append(conflict)

    def _alias(self, alias: Alias) -> None:
        grant = self.tx.actor.grant
        if not grant.sees(*alias.scope) or grant.agent or grant.session:
            self._reject(alias.where, "an alias of this scope is outside the grant")
            return
        part = self.tx.part(Scope(*alias.scope, DEFAULT_AGENT, DEFAULT_SESSION))
        done = pack_facts.put_alias(self.tx, part, alias.name, alias.stands)
        self.sum.new += done == "new"
        self.sum.known += done == "known"
        self.sum.skipped += done == "other"
        if done == "other" and len(self.sum.conflicts) < MAX_LISTED:
            why = f"'{alias.name}' stands for something else here"
            self.sum.conflicts.append(Conflict(alias.where, b"", "alias", why))

    def _part(self, scope: tuple[str, str, str]) -> Part | None:
        for part in self.tx.reader.parts:
            if (part.tenant, part.profile, part.collection) == scope:
                return part
        return None

    # -- one change ---------------------------------------------------------------------------

    def _change(self, change: Change) -> None:
        if not self.tx.actor.grant.sees(*change.scope):
            raise _Outcome("rejected", f"the collection '{change.scope[2]}' is outside the grant")
        part = self._part(change.scope)
        data = None if part is None else self.tx.txn.get("refs", part.prefix + change.ref)
        if part is not None and data is not None:
            self._continue(part, change, refs.decode_state(data))
        elif change.op == CREATE:
            self._begin(change)
        elif change.ref in self.barred or change.ref in self.rules.barred:
            raise _Outcome("blocked")
        else:
            raise _Outcome("rejected", "it continues a ref whose beginning is not here")

    def _begin(self, change: Change) -> None:
        if not self.tx.actor.grant.sees_lane(change.agent, change.session):
            raise _Outcome("rejected", "its agent or session is outside the grant")
        if isinstance(change.obj, Memory) and self._part(change.scope) is None:
            raise _Outcome("rejected", "it cites an observation that is not here")
        scope = Scope(*change.scope, change.agent, change.session)
        part = self.tx.part(scope)
        self._take(part, change, (change.agent, change.session), change.type)
        assert change.status is not None
        assert change.status[1] is not None
        stated = change.status[1]
        status = ERASED if change.gone else believed(stated, None, self.rules.trust)
        self._chains[change.ref] = _Chain(())
        self._append(
            part,
            change,
            None,
            head=change.ref,
            stated=stated,
            status=status,
            valid_from=None if change.valid_from is None else change.valid_from[1],
            valid_to=None if change.valid_to is None else change.valid_to[1],
            replaced_by=None if change.replaced_by is None else change.replaced_by[1],
            lane=self.tx.lane(part, scope),
        )

    def _continue(self, part: Part, change: Change, state: refs.RefState) -> None:
        if not self.tx.reader.sees_lane(part, state.lane):
            raise _Outcome("rejected", "its agent or session is outside the grant")
        chain = self._chain(part, change.ref, state)
        forgotten = chain.status == ERASED
        if change.obj is not None and state.status == ERASED:
            raise _Outcome("blocked")
        if chain.held.get(change.identity, 0) >= change.n or change.op == CREATE:
            raise _Outcome("known")
        if forgotten and change.op not in _ENDS:
            raise _Outcome("blocked")
        ends = change.gone or change.op == PURGE or (change.status or (0, 0))[1] == ERASED
        stopped = change.ref in self.stopped or change.ref in self.rules.stopped
        if stopped and not (ends or forgotten):
            raise _Outcome("skipped", "an earlier change of the same ref was skipped")
        lives = state.status != ERASED
        if lives and (ends or change.op == FLAG):
            if not self.rules.apply_tombstones:
                raise _Outcome("skipped", "it was forgotten there and is kept here")
            if ends and state.flags & refs.HELD:
                raise _Outcome("skipped", "it was forgotten there and is on hold here")
        stated = _join("status", change.status, chain.status, ends)
        head = _join("head", change.head, state.head, ends)
        valid_from = _join("valid_from", change.valid_from, state.valid_from, ends)
        valid_to = _join("valid_to", change.valid_to, state.valid_to, ends)
        replaced_by = _join("replaced_by", change.replaced_by, state.replaced_by, ends)
        assert stated is not None
        if change.op == ROLLBACK and head is not None and lives:
            if self.tx.reader.object_bytes(part, head) is None:
                raise _Outcome("rejected", "the object that it goes back to is not here")
        self._take(part, change, self.tx.reader.lane(part, state.lane), state.type)
        if ends or not lives:
            status = ERASED
        elif change.status is None:
            status = state.status
        else:
            status = believed(stated, state.status, self.rules.trust)
        if ends and lives:
            self.sum.erased += 1
            self._forgotten.append((part, change.ref))
        self._append(
            part,
            change,
            state,
            head=head,
            stated=stated,
            status=status,
            valid_from=valid_from,
            valid_to=valid_to,
            replaced_by=replaced_by,
            lane=state.lane,
        )

    def _chain(self, part: Part, ref: bytes, state: refs.RefState) -> _Chain:
        chain = self._chains.get(ref)
        if chain is None:
            chain = self._chains[ref] = _Chain(self.tx.reader.entries(part, state))
        return chain

    def _append(
        self,
        part: Part,
        change: Change,
        state: refs.RefState | None,
        *,
        head: bytes | None,
        stated: int,
        status: int,
        valid_from: int | None,
        valid_to: int | None,
        replaced_by: bytes | None,
        lane: int,
    ) -> None:
        if head is not None and (state is None or state.head != head):
            self._cite(part, change.ref, None if state is None else state.head, head)
        # The record time of the pack stands where it fits between the last entry and now, so that a
        # restored partition knows what it believed when; elsewhere the change was learnt now.
        last = self._last.get(part.number)
        if last is None:
            seq = self.tx.reader.last_seq(part)
            last = self.tx.reader.entry(part, seq).time if seq else change.time
        moment = change.time if last <= change.time <= self.tx.now else self.tx.now
        self._last[part.number] = moment
        self.sum.lowered += status not in (stated, ERASED)
        self.tx.adopt(
            part,
            state,
            refs.Entry(
                0,
                change.op,
                change.ref,
                None if state is None else state.head,
                head,
                status,
                valid_from,
                valid_to,
                replaced_by,
                moment,
                change.principal,
                change.surface,
                change.reason,
                lane,
                change.type if state is None else state.type,
                0,
                refs.Origin(change.time, stated),
            ),
        )
        chain = self._chains[change.ref]
        chain.held[change.identity] = chain.held.get(change.identity, 0) + 1
        chain.status = stated

    # -- objects ------------------------------------------------------------------------------

    def _take(self, part: Part, change: Change, lane: tuple[str, str], kind: int) -> None:
        """Store the object that a change brought, with what finds it again."""
        obj, data = change.obj, change.data
        if obj is None or data is None or change.head is None or change.head[1] is None:
            return
        object_id, txn = change.head[1], self.tx.txn
        if (obj.scope.agent, obj.scope.session) != lane or _kind(obj) != kind:
            raise _Outcome("rejected", "its object belongs to another agent, session or type")
        own_id = local_id(obj, part)
        if self._is_forgotten(part, own_id, obj):
            self.barred.add(change.ref)
            raise _Outcome("blocked")
        owner = txn.get("revs", part.prefix + object_id) or object_id
        if owner != change.ref and self._is_here(part, object_id):
            raise _Outcome("skipped", "its object belongs to another ref here")
        if isinstance(obj, Memory):
            for cited in obj.cites:
                found = self.tx.reader.object_bytes(part, cited)
                if not self._is_here(part, cited) or (
                    found is not None and encode.type_name(found) != "observation"
                ):
                    what = f"it cites '{oid.short(cited)}', which is no observation here"
                    raise _Outcome("rejected", what)
        txn.put("objects", part.prefix + object_id, data)
        if change.receipt is not None:
            txn.put_new("receipts", part.prefix + object_id, _encode_receipt(change.receipt))
        if change.op != CREATE:
            return
        if own_id != object_id:
            self.tx.add_twin(part, own_id, change.ref)
        key = pack_facts.join(self.tx, part, change.ref, obj, change.chain)
        if key is not None:
            self._linked[key] = part
        source = obj.source if isinstance(obj, Observation) else None
        if source is not None and source.id:
            key = oid.keyed(part.key, source.uri.encode(), source.id.encode())
            txn.put_new("sources", part.prefix + key, change.ref)

    def _cite(self, part: Part, ref: bytes, before: bytes | None, after: bytes) -> None:
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

    def _is_here(self, part: Part, object_id: bytes) -> bool:
        txn, key = self.tx.txn, part.prefix + object_id
        return txn.get("refs", key) is not None or txn.get("revs", key) is not None

    def _is_erased(self, part: Part, object_id: bytes) -> bool:
        """True when the log here says so, and not only that a pack came without the bytes."""
        ref = self.tx.reader.ref_of(part, object_id)
        data = self.tx.txn.get("refs", part.prefix + ref)
        if data is None:
            return False
        state = refs.decode_state(data)
        return state.status == ERASED and self._chain(part, ref, state).status == ERASED

    def _is_forgotten(self, part: Part, own_id: bytes, obj: encode.Obj) -> bool:
        """True when a tombstone here keeps an object out: the one place that decides it."""
        twin = self.tx.twin(part, own_id)
        erased = self._is_erased(part, own_id) or (twin and self._is_erased(part, twin))
        return bool(erased) or self._lost_evidence(part, obj)

    def _lost_evidence(self, part: Part, obj: encode.Obj) -> bool:
        """True for a memory of which everything that it cites was forgotten here."""
        return isinstance(obj, Memory) and all(self._is_erased(part, c) for c in obj.cites)

    def _objects_of(self, part: Part, ref: bytes) -> set[bytes]:
        """Every object that was a head of a ref."""
        self.tx.flush()
        state = self.tx.reader.state(part, ref)
        entries = () if state is None else self.tx.reader.entries(part, state)
        return {entry.new for entry in entries if entry.new is not None}

    def _settle(self, part: Part, ref: bytes) -> None:
        """After a ref was forgotten: flag bytes for purge, withhold memories without evidence."""
        reader = self.tx.reader
        objects = self._objects_of(part, ref)
        state = reader.state(part, ref)
        if state is not None and not state.flags & refs.FLAGGED:
            if any(reader.object_bytes(part, o) is not None for o in objects):
                self.tx.record(part, "flag", ref, state, reason="forgotten_elsewhere")
        for memory in sorted({m for o in objects for m in reader.cited_by(part, o)}):
            state = reader.state(part, memory)
            if state is None or state.head is None or state.status in (ERASED, ORPHANED):
                continue
            data = reader.object_bytes(part, state.head)
            if data is not None and self._lost_evidence(part, encode.decode(data)):
                self.tx.record(
                    part, "orphan", memory, state, status="orphaned", reason="evidence_forgotten"
                )


def _kind(obj: encode.Obj) -> int:
    return refs.MEMORY if isinstance(obj, Memory) else refs.OBSERVATION


def _join(
    what: str, edit: tuple[T | None, T | None] | None, here: T | None, ends: bool
) -> T | None:
    """The value of a field after a change: a tombstone wins, else both sides must agree."""
    if edit is None:
        return here
    before, after = edit
    if ends or here in (before, after):
        return after
    raise _Outcome("skipped", f"its {what} has changed here as well")
