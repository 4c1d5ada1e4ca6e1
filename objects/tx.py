"""Changing the truth: one write transaction, through which every mutation passes.

``record`` is the one place that appends to the ref log, the audit chain and the cached fold; they
commit together or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import audit, encode, instant, lists, oid, refs, withheld
from remem.objects.errors import HeadMoved, IntegrityError, NotFound, ScopeRefused
from remem.objects.model import Memory
from remem.objects.places import Places
from remem.objects.reader import Part, Reader

if TYPE_CHECKING:
    from remem.objects.attests import Attests
    from remem.objects.kv import Txn
    from remem.objects.scope import Actor
    from remem.objects.signing import Guard

DONE = "done"  # outcome of what was not refused
_REFUSALS = b"refusals"  # row of ``meta``; what counts them is imported where there are some
_FLUSH_ROWS = 4096
_OF_THE_FORGOTTEN = frozenset(("erase", "purge", "flag", "hold", "unhold"))


class Tx(Places):
    """A write transaction of an actor.

    Attributes:
        reader: reads inside the transaction, its own changes included.
        now: record time of every change made here, microseconds UTC; later than every earlier one.
        present: what "now" means for when something holds, microseconds UTC: the clock, where it
            is far behind the record times (`instant.present`).
    """

    def __init__(self, txn: Txn, actor: Actor, now: int) -> None:
        """Begin at a record time that is later than every earlier one, whatever the clock says."""
        grant = actor.grant
        # Who writes without reading: the transaction has to see what is there, its answers do not.
        seeing = grant if grant.reads else msgspec.structs.replace(grant, reads=True)
        last = int.from_bytes(txn.get("meta", b"clock") or b"\0", "big", signed=True)
        super().__init__(txn, actor, Reader(txn, seeing), max(now, last + 1))
        self.present = instant.present(now, self.now)
        self._head = self.reader.audit_head()
        self._begun = self._head.seq
        self._rows: list[tuple[bytes, bytes]] = []
        self._vouched: Attests = {}  # what the next row of the audit chain says beside its own
        self._settled = False
        self._log: list[tuple[bytes, bytes]] = []
        self._log_part: int | None = None
        self._seqs: dict[int, int] = {}
        self.guard = _guard(txn)  # of a protected store: what has to be signed
        self.gate = 0  # version of the admission gate that was noted in this transaction
        self.has_revisions = txn.count("revs") > 0
        self.has_values = txn.count("values") > 0
        self.has_refused = txn.count("refused") > 0

    # -- objects ------------------------------------------------------------------------------

    def put_object(self, part: Part, obj: encode.Stored) -> bytes:
        """Store an object (with the zero salt) and return its id."""
        object_id, data = encode.seal(obj, part.key)
        self.store_object(part, object_id, data, obj)
        return object_id

    def put_revision(self, part: Part, ref: bytes, obj: encode.Stored) -> bytes:
        """Store an object (with the zero salt) as a revision of a ref and return its id.

        An object belongs to one ref.  Where the very same one is another's already, this one names
        its own ref in ``meta`` and so gets an id of its own.
        """
        object_id, data = encode.seal(obj, part.key)
        if self._owner(part, object_id) not in (None, ref):
            meta: dict[str, object] = {**obj.meta, "ref": ref.hex()}
            obj = msgspec.structs.replace(obj, meta=meta)
            object_id, data = encode.seal(obj, part.key)
        self.store_object(part, object_id, data, obj)
        return object_id

    def _owner(self, part: Part, object_id: bytes) -> bytes | None:
        """The ref that an object belongs to, or None while it belongs to none."""
        owner = self.txn.get("revs", part.prefix + object_id)
        if owner is None and self.txn.get("refs", part.prefix + object_id) is not None:
            return object_id
        return owner

    def store_object(self, part: Part, object_id: bytes, data: bytes, obj: encode.Stored) -> None:
        """Store an object that was sealed already.

        Raises:
            NotFound: it cites what is not there; nothing was stored.
        """
        if isinstance(obj, Memory):
            for cited in obj.cites:
                if self.txn.get("objects", part.prefix + cited) is None:
                    raise NotFound(f"no observation '{oid.short(cited)}' in this scope")
        self.txn.put("objects", part.prefix + object_id, data)
        lists.add_object(self.txn, part, object_id, obj)

    def twin(self, part: Part, own_id: bytes) -> bytes | None:
        """The ref that a pack brought for what would have this id, had it been made here."""
        return self.txn.get("sources", part.twin_key(own_id))

    def add_twin(self, part: Part, own_id: bytes, ref: bytes) -> None:
        """Let the id that evidence would have here lead to the ref that a pack brought."""
        self.txn.put_new("sources", part.twin_key(own_id), ref)

    # -- the ref log --------------------------------------------------------------------------

    def create(
        self,
        part: Part,
        object_id: bytes,
        *,
        kind: int,
        lane: int,
        status: str,
        valid_from: int | None = None,
        valid_to: int | None = None,
        reason: str = "",
        attests: Attests | None = None,
    ) -> refs.Entry:
        """Begin a ref with its first object; attests: what its entry says of rows beside it.

        Raises:
            ScopeRefused: the principal may not begin such a ref.
        """
        code = refs.STATUS_CODE[status]
        if valid_from is None and kind <= refs.MEMORY and self.present != self.now:
            valid_from = self.present
        if not self.actor.grant.owner:
            from remem.objects import authorship

            code = authorship.status_of_word(self.actor.grant, code)
        entry = refs.Entry(
            self._next_seq(part),
            0,
            object_id,
            None,
            object_id,
            code,
            valid_from,
            valid_to,
            None,
            self.now,
            self.actor.grant.principal,
            self.actor.surface,
            reason,
            lane,
            kind,
            0,
        )
        if attests:
            entry = refs.attesting(entry, attests)
        self._permit(part, None, entry)
        return self._append(part, None, entry)

    def _permit(self, part: Part, state: refs.RefState | None, entry: refs.Entry) -> None:
        """Raise unless the principal who acts may append an entry (`remem.objects.authorship`)."""
        if not self.actor.grant.owner:
            from remem.objects import authorship

            authorship.check(self, part, state, entry)

    def record(
        self,
        part: Part,
        op: str,
        ref: bytes,
        state: refs.RefState,
        *,
        new: bytes | None = None,
        status: str | None = None,
        reason: str = "",
        expected: bytes | None = None,
        valid_from: int | msgspec.UnsetType | None = msgspec.UNSET,
        valid_to: int | msgspec.UnsetType | None = msgspec.UNSET,
        replaced_by: bytes | msgspec.UnsetType | None = msgspec.UNSET,
        attests: Attests | None = None,
    ) -> refs.Entry:
        """Change a ref that exists.

        Args:
            part: its partition.
            op: one of refs.OPS other than create.
            ref: id of the ref.
            state: its state as read in this transaction.
            new: the new head, or None to keep the present one.
            status: the new status, or None to keep it.
            reason: reason code.
            expected: compare-and-set: the head that the caller read, or None.
            valid_from: microseconds UTC or None, where it changes.
            valid_to: microseconds UTC or None, where it changes.
            replaced_by: the ref that takes its place, or None, where it changes.
            attests: what the entry says of rows in other tables, or None.

        Raises:
            HeadMoved: the head is not the expected one, or the state is not the present one.
            ScopeRefused: the ref lies outside the actor's grant, or the grant covers no writing.
            Forgotten: the ref has a tombstone, and the change is none that such a ref may see.
        """
        grant = self.actor.grant
        present = self.reader.state(part, ref)
        if present is None or not grant.changes:
            raise ScopeRefused(f"'{grant.principal}' may not write to this scope").audited(
                op, "scope_refused", part.number, ref
            )
        if present != state or expected not in (None, state.head):
            raise HeadMoved(f"the head of '{oid.short(ref)}' has moved").audited(
                op, "head_moved", part.number, ref
            )
        if self.reader.forgets and op not in _OF_THE_FORGOTTEN:
            if self.reader.erased(part, ref) and self.txn.get("tombs", part.prefix + ref):
                raise self.reader.forgotten(part, ref).audited(op, "forgotten", part.number, ref)
        code = state.status if status is None else refs.STATUS_CODE[status]
        if not grant.owner:
            from remem.objects import authorship

            code = authorship.status_of_change(self, part, state, new, code)
            fresh = new is not None and new != state.head
            if fresh and code not in withheld.FOLLOWED and withheld.says_again(self, part, new):
                code = withheld.QUARANTINED
        entry = refs.Entry(
            self._next_seq(part),
            refs.OP_CODE[op],
            ref,
            state.head,
            new if new is not None else state.head,
            code,
            state.valid_from if valid_from is msgspec.UNSET else valid_from,
            state.valid_to if valid_to is msgspec.UNSET else valid_to,
            state.replaced_by if replaced_by is msgspec.UNSET else replaced_by,
            self.now,
            self.actor.grant.principal,
            self.actor.surface,
            reason,
            state.lane,
            state.type,
            state.last,
        )
        if attests:
            entry = refs.attesting(entry, attests)
        self._permit(part, state, entry)
        if new is not None and new != ref:
            self.txn.put_new("revs", part.prefix + new, ref)
            self.has_revisions = True
        self._successor(part, state, entry)
        return self._append(part, state, entry)

    def adopt(
        self,
        part: Part,
        state: refs.RefState | None,
        made: refs.Entry,
        attests: Attests | None = None,
    ) -> refs.Entry:
        """Append an entry that a pack brought; seq and prev are given here, the rest is kept.

        What it attests is of rows of this store.  The caller sees to it that its time is neither
        before the last entry of the partition nor after now.
        """
        entry = msgspec.structs.replace(
            made, seq=self._next_seq(part), prev=0 if state is None else state.last
        )
        if attests:
            entry = refs.attesting(entry, attests)
        if entry.new is not None and entry.new not in (entry.ref, entry.old):
            self.txn.put_new("revs", part.prefix + entry.new, entry.ref)
            self.has_revisions = True
        self._successor(part, state, entry)
        return self._append(part, state, entry)

    def _successor(self, part: Part, state: refs.RefState | None, entry: refs.Entry) -> None:
        """Keep the rows that lead from a ref to those that it replaced."""
        before = None if state is None else state.replaced_by
        if before == entry.replaced_by:
            return
        if before is not None:
            self.txn.delete("replaces", part.prefix + before + entry.ref)
        if entry.replaced_by is not None:
            self.txn.put("replaces", part.prefix + entry.replaced_by + entry.ref, b"")

    def _next_seq(self, part: Part) -> int:
        seq = self._seqs.get(part.number)
        if seq is None:
            seq = self.reader.last_seq(part)
        self._seqs[part.number] = seq + 1
        return seq + 1

    def _append(self, part: Part, state: refs.RefState | None, entry: refs.Entry) -> refs.Entry:
        data = refs.encode_entry(entry)
        digest = oid.digest(data)
        if self.guard is not None:
            self.guard.entry(self, part, state, entry, digest)
        if self._log_part != part.number:
            self.flush()
            self._log_part = part.number
        after = refs.encode_state(refs.step(state, entry))
        if state is not None:
            self.txn.put("refs", part.prefix + entry.ref, after)
        elif not self.txn.put_new("refs", part.prefix + entry.ref, after):
            raise IntegrityError(f"the ref '{oid.short(entry.ref)}' exists already")
        self._log.append((part.prefix + entry.seq.to_bytes(8, "big"), data))
        lists.add_entry(self.txn, part, entry)
        if entry.status in withheld.FOLLOWED or (
            state is not None and state.status in withheld.FOLLOWED
        ):
            withheld.follow(self, part, state, entry)
        self._row(refs.OPS[entry.op], part.number, entry.ref, DONE, entry.seq, digest)
        if len(self._log) >= _FLUSH_ROWS:
            self.flush()
        return entry

    # -- the audit chain ----------------------------------------------------------------------

    def refuse(self, action: str, outcome: str, part: int, ref: bytes | None) -> None:
        """Append a row for something that was refused (it commits with the transaction).

        Of what others than the owner are refused over and over, too much is counted instead.

        Args:
            action: what was asked for.
            outcome: reason code of the refusal.
            part: number of the partition, 0 for the store as a whole.
            ref: what it was about, or None.
        """
        assert outcome != DONE, "what was done is no refusal"
        if not self.actor.grant.owner:
            from remem.objects import refusals

            if not refusals.admit(self, outcome):
                return
        self._row(action, part, ref, outcome, 0, None)

    def done(
        self,
        action: str,
        part: int,
        resource: bytes | None = None,
        *,
        outcome: str = DONE,
        attests: Attests | None = None,
    ) -> None:
        """Append a row for what was done and is no entry of a log.

        Args:
            action: what was done.
            part: number of the partition, 0 for the store as a whole.
            resource: what it was done to, or None.
            outcome: "done", or a word that tells more.
            attests: what the row says of rows in other tables, or None.

        Raises:
            SignatureNeeded: that has to be signed, and the actor brings no key.
        """
        signer = None
        if self.guard is not None and outcome == DONE:
            signer = self.guard.row(self, action, part, resource)
        if attests:
            self._vouched.update(attests)
        self._row(action, part, resource, outcome, 0, None)
        if self.guard is not None and signer is not None:
            self.guard.sign_row(self, signer, self._head.seq, resource, self._head.hash)

    def vouch(self, name: str, digest: bytes) -> None:
        """Let the next row, whatever it tells, attest a row in another table."""
        self._vouched[name] = digest

    def attest(self, action: str, outcome: str, digest: bytes) -> None:
        """Append a row for a change of a record that has no ref, with a digest of its new bytes.

        The record must hold enough of what nobody can guess, or its digest would tell it.
        """
        self._row(action, 0, None, outcome, 0, digest)

    def _row(
        self,
        action: str,
        part: int,
        resource: bytes | None,
        outcome: str,
        entry: int,
        digest: bytes | None,
        who: tuple[str, str] | None = None,
    ) -> None:
        if who is None:
            self.settle()
        principal, surface = who or (self.actor.grant.principal, self.actor.surface)
        seq = self._head.seq + 1
        row = audit.Row(
            seq,
            self.now,
            principal,
            surface,
            action,
            part,
            resource,
            outcome,
            entry,
            digest,
            self._head.hash,
        )
        if self._vouched:
            row = audit.attesting(row, self._vouched)
            self._vouched = {}
        data = audit.encode_row(row)
        self._rows.append((seq.to_bytes(8, "big"), data))
        self._head = audit.Head(seq, audit.row_hash(data))

    def settle(self) -> None:
        """Tell how many refusals were counted, once, before anything else is told."""
        if self._settled:
            return
        self._settled = True
        if self.txn.get("meta", _REFUSALS) is not None:
            from remem.objects import refusals

            attests, self._vouched = self._vouched, {}
            for who, outcome in refusals.settle(self.txn, self.now):
                self._row(_REFUSALS.decode(), 0, None, outcome, 0, None, who)
            self._vouched = attests

    def flush(self) -> None:
        """Write what is buffered, so that reads in this transaction see it."""
        if self._log:
            self.txn.put_many("log", self._log, False)
            self._log = []
        if self._rows:
            self.txn.put_many("audit", self._rows, True)
            self._rows = []

    def finish(self) -> None:
        """Write what is buffered, the heads and the clock; the transaction commits after it."""
        if self._vouched:
            self.done("attest", 0)
        changed = self._head.seq != self._begun  # not: rows left to write, flush may have been
        self.flush()
        for number, seq in self._seqs.items():
            self.txn.put("heads", number.to_bytes(4, "big"), seq.to_bytes(8, "big"))
        if changed:
            self.txn.put("meta", b"audit", audit.encode_head(self._head))
            self.txn.put("meta", b"clock", self.now.to_bytes(8, "big", signed=True))


def _guard(txn: Txn) -> Guard | None:
    """What asks for signatures, where the store is protected; elsewhere it is not even imported."""
    if txn.get("meta", b"owner") is None:
        return None
    from remem.objects import signing

    return signing.guard(txn)
