"""Taking an operation back by new entries of the log.

An operation is everything that one transaction changed.  What links a chain follows from the facts
and is worked out anew.  An entry that takes back names the operation in its reason (``undo-17``),
so that the next undo goes one further back; undoing such an entry brings the operation back.

The entries that a pack brought have the names and, where they fit, the times of another store;
which of them came together, and who took them in, the audit chain tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects import carry, chains, memories, oid, refs, tiers
from remem.objects.errors import NotFound, Refused
from remem.objects.model import Memory
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remem.objects import audit
    from remem.objects.encode import Stored
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

ENDED = "ended"  # reason with which a deriver puts evidence in the place of what it says ended
_RESTORE = "'remem tombstones restore' takes a forgetting back until it is purged"
_GONE = frozenset(refs.OP_CODE[op] for op in ("erase", "purge", "flag"))
_ENDS = frozenset(refs.OP_CODE[op] for op in ("supersede", "close", "reopen"))
_OP_TO = {
    "quarantined": "quarantine",
    "rejected": "reject",
    "orphaned": "orphan",
    "expired": "expire",
    "pending": "quarantine",
}
_FLAGS = ((refs.PINNED, "pin", "unpin"), (refs.HELD, "hold", "unhold"))


def operation(reader: Reader, part: Part, seq: int, told: _Told | None = None) -> list[refs.Entry]:
    """The entries of the operation that an entry belongs to, oldest first.

    Raises:
        NotFound: the log has no such entry.
    """
    if not 0 < seq <= reader.last_seq(part):
        raise NotFound(f"the log has no entry {seq}")
    told = _Told(reader, part) if told is None else told
    key = told.of(reader.entry(part, seq))
    entries: list[refs.Entry] = []
    for entry in reader.log(part, until=seq, reverse=True):
        if told.of(entry) != key:
            break
        entries.append(entry)
    entries.reverse()
    for entry in reader.log(part, after=seq):
        if told.of(entry) != key:
            break
        entries.append(entry)
    return entries


def author(reader: Reader, part: Part, seq: int) -> str:
    """The principal whose operation an entry belongs to: for a pack, who took it in.

    Raises:
        NotFound: the log has no such entry.
    """
    if not 0 < seq <= reader.last_seq(part):
        raise NotFound(f"the log has no entry {seq}")
    return _Told(reader, part).of(reader.entry(part, seq))[1]


def last_operation(reader: Reader, part: Part, principal: str) -> int | None:
    """An entry of the latest operation of a principal that has not been taken back, or None."""
    undone: set[int] = set()
    told = _Told(reader, part)
    for entries in _operations(reader, part, told):
        taken = any(e.seq in undone for e in entries)
        own = [e for e in entries if e.reason != chains.LINK]
        target = _target(own)
        if target is not None:
            if not taken:
                undone.add(target)
        elif own and not taken and told.of(own[0])[1] == principal:
            return own[0].seq
    return None


def undo(tx: Tx, part: Part, seq: int) -> list[refs.Entry]:
    """Reverse the operation that an entry belongs to.

    Undoing a create withholds it as rejected, with what was derived from it alone; undoing that
    brings it back.

    Returns:
        The new entries, without those that link chains.

    Raises:
        NotFound: the log has no such entry.
        Refused: something of it was forgotten, or changed again since.
    """
    tx.flush()
    told = _Told(tx.reader, part)
    entries = operation(tx.reader, part, seq, told)
    own = [e for e in entries if e.reason != chains.LINK]
    if not own:
        raise Refused("this operation has only linked chains, which follow from their facts")
    reason = f"{refs.UNDO}-{own[0].seq}"
    made: list[refs.Entry] = []
    for ref in dict.fromkeys(e.ref for e in reversed(own)):
        made += _Taking(tx, part, ref, own, reason, told).run()
    return made


class _Taking:
    """Taking back what an operation did to one ref."""

    def __init__(
        self,
        tx: Tx,
        part: Part,
        ref: bytes,
        operation: Sequence[refs.Entry],
        reason: str,
        told: _Told,
    ) -> None:
        self.tx, self.part, self.ref, self.reason, self.told = tx, part, ref, reason, told
        self.own = [e for e in operation if e.ref == ref]
        self.together = {e.ref for e in operation}
        self.made: list[refs.Entry] = []

    def run(self) -> list[refs.Entry]:
        tx, part, ref = self.tx, self.part, self.ref
        tx.flush()
        state = tx.reader.state(part, ref)
        if any(e.op in _GONE for e in self.own) or state is None or state.head is None:
            raise Refused("what was forgotten stays forgotten", hint=_RESTORE)
        log = list(tx.reader.entries(part, state))
        self._check_unchanged(log)
        was = _stored(tx.reader, part, ref, state.head)
        earlier = [e for e in log if e.seq < self.own[0].seq]
        before = refs.fold(reversed(earlier))
        if before is None:
            self._record("reject", status="rejected")
            self._drop_derived(state)
        else:
            self._restore(state, before, earlier)
        if state.type == refs.MEMORY:
            now = tx.reader.state(part, ref)
            assert now is not None and now.head is not None
            assert isinstance(was, Memory)
            carry.rechain(tx, part, ref, was, tx.reader.object(part, now.head))
        return self.made

    def _check_unchanged(self, log: list[refs.Entry]) -> None:
        """Raise unless all that came later, newest first, was taken back itself."""
        last = self.own[-1]
        cancelled: set[int] = set()
        for entry in log:
            if entry.seq <= last.seq:
                return
            if entry.reason == chains.LINK or entry.seq in cancelled:
                continue
            target = _target([entry])
            if target is None:
                raise Refused(
                    f"'{oid.short(self.ref)}' was changed again since",
                    hint=f"undo the later change first: remem undo {entry.seq}",
                )
            taken = {e.seq for e in operation(self.tx.reader, self.part, target, self.told)}
            if last.seq in taken:
                raise Refused("this operation was undone already")
            cancelled |= taken

    def _record(self, op: str, **fields: object) -> None:
        state = self.tx.reader.state(self.part, self.ref)
        assert state is not None
        self.made.append(
            self.tx.record(self.part, op, self.ref, state, reason=self.reason, **fields)  # type: ignore[arg-type]
        )

    def _restore(
        self, state: refs.RefState, before: refs.RefState, earlier: list[refs.Entry]
    ) -> None:
        """Bring head, status, end and marks back to what they were."""
        status = refs.STATUSES[before.status]
        if before.head != state.head and before.head is not None and state.head is not None:
            _stored(self.tx.reader, self.part, self.ref, before.head)  # its bytes must be there
            self._allow(state, status)
            self._record("rollback", new=before.head, status=status, valid_from=before.valid_from)
            if state.type == refs.MEMORY:
                carry.recite(self.tx, self.part, self.ref, state.head, before.head)
            self._drop_derived(state)
        elif before.status != state.status:
            self._allow(state, status)
            released = refs.STATUSES[state.status] in WITHHELD
            self._record(_OP_TO.get(status, "release" if released else "approve"), status=status)
        if any(e.op in _ENDS for e in self.own) or state.type == refs.OBSERVATION:
            self._restore_end(before, earlier)
        for bit, on, off in _FLAGS:
            if (before.flags ^ state.flags) & bit:
                self._record(on if before.flags & bit else off)

    def _restore_end(self, before: refs.RefState, earlier: list[refs.Entry]) -> None:
        """Bring the ref's own end back; what its chain makes of it is linked afterwards."""
        end, by, closed = self._stated_end(before), None, False
        if before.type == refs.OBSERVATION:
            end = tiers.own_end(earlier)  # newest first
        for entry in earlier:
            if entry.op in _ENDS and entry.reason != chains.LINK:
                if refs.OPS[entry.op] != "reopen":
                    end, by = entry.valid_to, entry.replaced_by
                    closed = refs.OPS[entry.op] == "close"
                break
        now = self.tx.reader.state(self.part, self.ref)
        assert now is not None
        same = (now.valid_to, now.replaced_by, bool(now.flags & refs.CLOSED)) == (end, by, closed)
        if not same:
            ended = now.replaced_by is not None or now.flags & refs.CLOSED
            back = "reopen" if ended or now.type == refs.MEMORY else "promote"
            op = "supersede" if by is not None else "close" if closed else back
            self._record(op, valid_to=end, replaced_by=by)

    def _stated_end(self, before: refs.RefState) -> int | None:
        assert before.head is not None
        obj = _stored(self.tx.reader, self.part, self.ref, before.head)
        return obj.valid_to if isinstance(obj, Memory) else None

    def _allow(self, state: refs.RefState, status: str) -> None:
        """Nobody but the owner lets out what was withheld, unless by an undo of his own."""
        held = refs.STATUSES[state.status] in WITHHELD and status not in WITHHELD
        last = self.own[-1]
        taken_back = (
            last.reason.startswith(refs.UNDO) and last.principal == self.tx.actor.grant.principal
        )
        if held and not taken_back and not self.tx.actor.grant.owner:
            raise Refused(f"only the owner releases '{oid.short(self.ref)}'").audited(
                "release", "not_owner", self.part.number, self.ref
            )

    def _drop_derived(self, state: refs.RefState) -> None:
        """Take evidence that is taken back from memories that were drawn from it since."""
        tx, part = self.tx, self.part
        if state.type != refs.OBSERVATION or state.head is None:
            return
        for ref in tx.reader.cited_by(part, state.head):
            if ref in self.together:
                continue  # taken back on its own
            memory_state, memory = memories.head(tx, part, ref)
            if refs.STATUSES[memory_state.status] == "rejected" or state.head not in memory.cites:
                continue
            if len(memory.cites) > 1:
                left = memories.without_cite(memory, state.head)
                memories.replace(tx, part, ref, memory_state, left, reason=self.reason)
            else:
                self.made.append(
                    tx.record(
                        part, "reject", ref, memory_state, status="rejected", reason=self.reason
                    )
                )
            chains.relink_of(tx, part, ref)
        self._reopen_ended()

    def _reopen_ended(self) -> None:
        """Let facts hold again that this evidence was read to have ended."""
        tx, part = self.tx, self.part
        prefix = part.prefix + self.ref
        for row, _ in list(tx.txn.scan_prefix("replaces", prefix)):
            ref = row[len(prefix) :]
            state = tx.reader.state(part, ref)
            if ref in self.together or state is None or state.type != refs.MEMORY:
                continue
            tx.flush()
            own = [e for e in tx.reader.entries(part, state) if e.reason != chains.LINK]
            if own[0].reason == ENDED:
                end = self._stated_end(state)
                self.made.append(
                    tx.record(
                        part,
                        "reopen",
                        ref,
                        state,
                        reason=self.reason,
                        valid_to=end,
                        replaced_by=None,
                    )
                )
                chains.relink_of(tx, part, ref)


def _stored(reader: Reader, part: Part, ref: bytes, object_id: bytes) -> Stored:
    """An object of any type whose ref is being taken back.

    Raises:
        NotFound: its bytes are gone.
    """
    state = reader.state(part, ref)
    if state is not None and state.type > refs.MEMORY:
        return reader.bookkeeping(part, object_id)
    return reader.object(part, object_id)


def _target(entries: Sequence[refs.Entry]) -> int | None:
    """The entry that an operation took back, or None when it is no undo."""
    for entry in entries:
        word, _, number = entry.reason.partition("-")
        if word == refs.UNDO and number.isdigit() and entry.origin is None:
            return int(number)
    return None


class _Told:
    """When and by whom entries were recorded here; of those of a pack the audit chain tells it."""

    def __init__(self, reader: Reader, part: Part) -> None:
        """Bind a partition; the chain is read from its end as far as it is needed."""
        self._reader = reader
        self._part = part
        self._rows: Iterator[tuple[int, bytes, audit.Row]] | None = None
        self._known: dict[int, tuple[int, str, str]] = {}
        self._lowest = 0  # the earliest entry of which the rows read so far tell

    def of(self, entry: refs.Entry) -> tuple[int, str, str]:
        """(record time, principal, surface) of the transaction that recorded an entry."""
        if entry.origin is None:
            return entry.time, entry.principal, entry.surface
        found = self._known.get(entry.seq)
        if found is None and (self._lowest == 0 or entry.seq < self._lowest):
            self._read(entry.seq)
            found = self._known.get(entry.seq)
        # Without its row an entry of a pack belongs to nobody here.
        return (entry.time, "", "") if found is None else found

    def _read(self, seq: int) -> None:
        if self._rows is None:
            owner = self._reader.grant.owner
            self._rows = self._reader.audit_rows(reverse=True) if owner else iter(())
        for _, _, row in self._rows:
            if row.part != self._part.number or not row.entry:
                continue
            self._known[row.entry] = (row.time, row.principal, row.surface)
            self._lowest = row.entry
            if row.entry <= seq:
                return


def _operations(reader: Reader, part: Part, told: _Told) -> Iterator[list[refs.Entry]]:
    """Operations of a partition, latest first, each with its last entry first."""
    group: list[refs.Entry] = []
    key: tuple[int, str, str] | None = None
    for entry in reader.log(part, reverse=True):
        own = told.of(entry)
        if group and own != key:
            yield group
            group = []
        group.append(entry)
        key = own
    if group:
        yield group
