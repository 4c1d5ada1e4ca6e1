"""Taking a pack in: the union of its changes with those of the store, and never what was forgotten.

Each change is known (the ref's log holds it), new (appended), blocked (a tombstone here), skipped
(a conflict, which is listed, or a link of a chain that is linked here) or rejected (cannot be
taken).  A change carries what it changed from and to; it is appended when the fields that it
changed still have here the value from before, or have the new one already.  Objects are kept byte
for byte under their own id; so that the same evidence is recognised when it comes in again, the id
that it would have had here leads to its ref.

A pack is believed for what happened, not for what is to be trusted: unless the owner says so, it
has none of his authority (`remem.objects.pack_authority`) and nothing that is withheld here is let
out by it.  The entry keeps what the pack said, so that a later export says the same.

Source: remem-pack(5), MERGING.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, gate, pack_authority, pack_facts, refs, tombs
from remem.objects.attests import SINGLE
from remem.objects.model import Memory, Rejected, Scope
from remem.objects.pack_authority import Left, believed
from remem.objects.pack_forget import Burial
from remem.objects.pack_objects import Chain, Objects, Outcome
from remem.objects.pack_read import CREATE, ROLLBACK, Alias, Change
from remem.objects.scope import DEFAULT_AGENT, DEFAULT_SESSION

if TYPE_CHECKING:
    from typing import TypeVar

    from remem.objects.attests import Attests
    from remem.objects.pack_read import Record
    from remem.objects.reader import Part
    from remem.objects.tx import Tx

    T = TypeVar("T")

MAX_LISTED = 1000
COUNTS = ("read", "new", "known", "skipped", "blocked", "rejected", "lowered", "erased", "accepted")

KEPT = "it was forgotten there and is kept here"  # unless the importer applies tombstones
ERASED = refs.STATUS_CODE["erased"]
FLAG = refs.OP_CODE["flag"]


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
        accepted: refs that were lowered by an import before, and are believed now.
        left: what does not act here without the owner's word.
        erased: refs that were live here and were forgotten by the pack; their bytes wait for purge.
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
    accepted: int = 0
    errors: list[Rejected] = []
    conflicts: list[Conflict] = []
    left: Left = msgspec.field(default_factory=Left)

    def add(self, other: ImportSum) -> None:
        """Add the numbers and lists of another sum."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.left.add(other.left)
        self.errors += other.errors[: MAX_LISTED - len(self.errors)]
        self.conflicts += other.conflicts[: MAX_LISTED - len(self.conflicts)]


class Rules:
    """Options of an import and what its earlier batches found."""

    def __init__(self, apply_tombstones: bool, trust: bool) -> None:
        """Begin with nothing found."""
        self.apply_tombstones = apply_tombstones
        self.trust = trust
        self.stopped: set[bytes] = set()  # refs with a conflict: their later changes wait too
        self.barred: set[bytes] = set()  # refs that a tombstone kept from beginning
        self.facts: set[bytes] = set()  # refs of the pack that are in a chain


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
        self._again: dict[bytes, Part] = {}  # refs of the pack that are here already
        self._linked: dict[bytes, Part] = {}  # chains that got or lost a fact
        self._mixed: dict[bytes, bool] = {}  # chains that are linked anew, not as the pack says
        self._objects = Objects(tx)
        self._last: dict[int, int] = {}
        self._burial = Burial(tx)

    def run(self, batch: list[Record]) -> Merge:
        """Join the changes in their order, then draw the consequences of what was forgotten."""
        self._burial.prepare(self._to_forget(batch))
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
            except Outcome as outcome:
                self._note(record, outcome)
        self._burial.carry()
        for key, part in self._linked.items():
            brought = (self.facts, self.rules.facts)
            if self._mixed.get(key) or pack_facts.is_mixed(self.tx, part, key, brought):
                chains.relink(self.tx, part, key)
        for ref, part in self._again.items():
            self.sum.accepted += pack_authority.accept(self.tx, part, ref, trust=self.rules.trust)
        return self

    def _to_forget(self, batch: list[Record]) -> list[tuple[Part, bytes]]:
        """Refs that live here and are forgotten by changes of the batch."""
        found: dict[bytes, Part] = {}
        for change in batch:
            if not isinstance(change, Change) or not change.ends:
                continue
            part = self._part(change.scope) if self.rules.apply_tombstones else None
            state = None if part is None else self.tx.reader.state(part, change.ref)
            if part is not None and state is not None and state.status != ERASED:
                found[change.ref] = part
        return [(part, ref) for ref, part in found.items()]

    def _reject(self, where: str, why: str) -> None:
        self.sum.rejected += 1
        if len(self.sum.errors) < MAX_LISTED:
            self.sum.errors.append(Rejected(where, why))

    def _note(self, change: Change, outcome: Outcome) -> None:
        if outcome.what == "rejected":
            self._reject(change.where, outcome.why)
        elif outcome.what == "known":
            self.sum.known += 1
        elif outcome.what == "blocked":
            self.sum.blocked += 1
            part = self._part(change.scope)
            number = 0 if part is None else part.number
            self.tx.refuse("import", "tombstone", number, change.ref)
        else:
            self._skip(change, outcome.why)

    def _skip(self, change: Change, why: str) -> None:
        self.sum.skipped += 1
        if not why:
            return
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
        if not self.rules.trust and not pack_facts.has_alias(self.tx, part, alias.name):
            self.sum.skipped += 1
            self.sum.left.aliases[alias.name, alias.stands] = True
            return
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
            raise Outcome("rejected", f"the collection '{change.scope[2]}' is outside the grant")
        part = self._part(change.scope)
        data = None if part is None else self.tx.txn.get("refs", part.prefix + change.ref)
        if part is not None and data is not None:
            self._continue(part, change, refs.decode_state(data))
        elif change.op == CREATE:
            self._begin(change)
        elif change.ref in self.barred or change.ref in self.rules.barred:
            raise Outcome("blocked")
        else:
            raise Outcome("rejected", "it continues a ref whose beginning is not here")

    def _begin(self, change: Change) -> None:
        if not self.tx.actor.grant.sees_lane(change.agent, change.session):
            raise Outcome("rejected", "its agent or session is outside the grant")
        if isinstance(change.obj, Memory) and self._part(change.scope) is None:
            raise Outcome("rejected", "it cites an observation that is not here")
        scope = Scope(*change.scope, change.agent, change.session)
        part = self.tx.part(scope)
        self._take(part, change, (change.agent, change.session), change.type)
        assert change.status is not None
        assert change.status[1] is not None
        stated = change.status[1]
        status = ERASED if change.gone else believed(stated, None, self.rules.trust)
        if not self.rules.trust:
            status = pack_authority.judged(self.tx, part, change.obj, status)
        attests = self._receipt(part, change, status)
        if change.chain and pack_facts.is_fact(change.obj):
            attests[SINGLE] = change.chain == pack_facts.MODES[0]
        self._objects.chains[change.ref] = Chain(())
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
            attests=attests,
        )

    def _receipt(self, part: Part, change: Change, status: int) -> Attests:
        """Make a receipt for what a pack brought; the one in the pack is kept, not believed.

        Returns:
            What the entry has to attest.
        """
        if change.obj is None or change.head is None or change.head[1] is None:
            return {}
        kept = gate.keep_from_pack(
            self.tx,
            part,
            change.head[1],
            change.obj,
            refs.STATUSES[status],
            change.receipt,
            trust=self.rules.trust,
        )
        return kept or {}

    def _continue(self, part: Part, change: Change, state: refs.RefState) -> None:
        if not self.tx.reader.sees_lane(part, state.lane):
            raise Outcome("rejected", "its agent or session is outside the grant")
        chain = self._objects.chain(part, change.ref, state)
        lives = state.status != ERASED
        forgotten = self._objects.is_erased(part, change.ref)
        if change.obj is not None and state.status == ERASED:
            raise Outcome("blocked")
        if chain.held.get(change.identity, 0) >= change.n or change.op == CREATE:
            self._again[change.ref] = part
            raise Outcome("known")
        if not self.rules.trust and change.op in pack_authority.OWN_OPS:
            self.sum.left.pin(change)
            raise Outcome("skipped")
        ends = change.ends
        if forgotten and not ends and change.op != FLAG:
            raise Outcome("blocked")
        mixed = state.type == refs.MEMORY and not ends and self._is_mixed(part, change.ref)
        if mixed and change.reason == chains.LINK:
            if not self.rules.trust:
                self.sum.left.link(change)
            raise Outcome("skipped")  # links follow from the facts
        allowed = self.rules.trust or ends or forgotten
        if not (allowed or pack_authority.may_change(self.tx, part, state)):
            self._anew(part, change)
            raise Outcome("skipped", pack_authority.HERE)
        stopped = change.ref in self.stopped or change.ref in self.rules.stopped
        if stopped and not (ends or forgotten):
            raise Outcome("skipped", "an earlier change of the same ref was skipped")
        if lives and (ends or change.op == FLAG):
            if not self.rules.apply_tombstones:
                raise Outcome("skipped", KEPT)
            if ends and (state.flags & refs.HELD or change.ref in self._burial.held):
                raise Outcome("skipped", "it, or what was derived from it, is on hold here")
        stated = _join("status", change.status, chain.status, ends)
        head = _join("head", change.head, state.head, ends)
        valid_from = _join("valid_from", change.valid_from, state.valid_from, ends)
        valid_to, replaced_by = state.valid_to, state.replaced_by
        if mixed and change.valid_to is not None:
            # What a link put there is no change of this side: only an end of its own is.
            valid_to = pack_facts.own_end(self.tx, part, change.ref)
        free = ends or (mixed and valid_to is None)
        valid_to = _join("valid_to", change.valid_to, valid_to, free)
        replaced_by = _join("replaced_by", change.replaced_by, replaced_by, ends or mixed)
        assert stated is not None
        if change.op == ROLLBACK and head is not None and lives:
            if self.tx.reader.object_bytes(part, head) is None:
                raise Outcome("rejected", "the object that it goes back to is not here")
        self._take(part, change, self.tx.reader.lane(part, state.lane), state.type)
        if ends or not lives:
            status = ERASED
        elif change.status is None or change.back:
            # Other words do not inherit what was believed of those before them.
            other = head != state.head
            status = believed(state.status, None, self.rules.trust or not other)
        else:
            status = believed(stated, state.status, self.rules.trust)
        if not self.rules.trust:
            status = pack_authority.judged(self.tx, part, change.obj, status)
        attests = self._receipt(part, change, status)
        buries = ends and (lives or (change.erases and not forgotten))
        if buries:
            self.tx.flush()
            attests |= tombs.said(self._burial.values(part, change.ref))
        entry = self._append(
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
            attests=attests,
        )
        if buries:
            key = self._burial.bury(part, change, entry.time, lived=lives)
            self.sum.erased += lives
            if key is not None:
                self._linked[key] = part

    def _anew(self, part: Part, change: Change) -> None:
        """Skip the link of a fact that a pack may not change: its chain is linked here instead.

        Raises:
            Outcome: the change is a link.
        """
        if change.reason != chains.LINK:
            return
        key = pack_facts.key_of(self.tx, part, change.ref)
        if key is not None:
            self._mixed[key], self._linked[key] = True, part
        raise Outcome("skipped")

    def _is_mixed(self, part: Part, ref: bytes) -> bool:
        """Whether the chain of a fact is linked anew after this batch."""
        key = pack_facts.key_of(self.tx, part, ref)
        if key is None:
            return False
        if key not in self._mixed:
            brought = (self.facts, self.rules.facts)
            self._mixed[key] = pack_facts.is_mixed(self.tx, part, key, brought)
        if self._mixed[key]:
            self._linked[key] = part
        return self._mixed[key]

    def _take(self, part: Part, change: Change, lane: tuple[str, str], kind: int) -> None:
        try:
            key = self._objects.take(part, change, lane, kind)
        except Outcome as outcome:
            if outcome.what == "blocked" and change.op == CREATE:
                self.barred.add(change.ref)
            raise
        if key is not None:
            self._linked[key] = part
            if not self._mixed.get(key):
                self._mixed.pop(key, None)  # what comes now may have another standing here

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
        attests: Attests,
    ) -> refs.Entry:
        if head is not None and (state is None or state.head != head):
            self._objects.cite(part, change.ref, None if state is None else state.head, head)
        # The record time of the pack stands where it fits between the last entry and now, so that a
        # restored partition knows what it believed when; elsewhere the change was learnt now.
        last = self._last.get(part.number)
        if last is None:
            # Of whichever agent or session: the grant need not cover the last entry.
            number = self.tx.reader.last_seq(part).to_bytes(8, "big")
            data = self.tx.txn.get("log", part.prefix + number)
            last = change.time if data is None else refs.decode_entry(data).time
        moment = change.time if last <= change.time <= self.tx.now else self.tx.now
        self._last[part.number] = moment
        self.sum.lowered += ERASED not in (status, stated) and status != stated
        entry = self.tx.adopt(
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
            attests,
        )
        self.sum.left.entry(change.obj, entry, status)
        chain = self._objects.chains[change.ref]
        chain.held[change.identity] = chain.held.get(change.identity, 0) + 1
        chain.status = stated
        return entry


def _join(
    what: str, edit: tuple[T | None, T | None] | None, here: T | None, ends: bool
) -> T | None:
    """The value of a field after a change: a tombstone wins, else both sides must agree."""
    if edit is None:
        return here
    before, after = edit
    if ends or here in (before, after):
        return after
    raise Outcome("skipped", f"its {what} has changed here as well")
