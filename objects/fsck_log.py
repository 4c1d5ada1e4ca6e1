"""Checks of the audit chain and the ref log: links, gaps, rows against entries, folds.

One pass over the rows in order walks the log of every partition beside them, so that each entry is
read, digested and decoded once.  Nothing is kept per entry: that no ref and no entry is left over
is known from counts, and only when a count is off are the tables read again to name what it is.

Source: remem-store(5), AUDIT and REF LOG.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from remem.objects import audit, refs, tombs
from remem.objects.errors import IntegrityError
from remem.objects.findings import STEP
from remem.objects.fsck_principals import PrincipalCheck
from remem.objects.fsck_signs import SignCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.findings import Findings
    from remem.objects.kv import Txn
    from remem.objects.reader import Part

decode_tomb = msgspec.msgpack.Decoder(tombs.Tomb).decode

ERASED = refs.STATUS_CODE["erased"]
_MANY = {"row": "rows", "entry": "entries"}
_CREATE = refs.OP_CODE["create"]


def check_chain(txn: Txn, found: Findings, log: LogCheck | None) -> None:
    """Walk the audit chain; with log, match each entry with its row and fold every ref.

    Args:
        txn: the snapshot.
        found: takes what is wrong.
        log: check of the ref log, or None to look at the chain alone.
    """
    total = txn.count("audit")
    previous, expected, time = audit.ROOT, 1, 0
    linked = True
    seq = 0
    for key, data in txn.scan("audit"):
        seq = int.from_bytes(key, "big")
        if seq != expected:
            found.bad_row(expected, _missing("row", expected, seq))
            linked = False
        try:
            row = audit.decode_row(data)
        except msgspec.MsgspecError as error:
            found.bad_row(seq, f"it does not decode: {error}")
        else:
            if linked and row.prev != previous:
                blamed = seq - 1 if seq > 1 else seq
                found.bad_row(blamed, f"its hash is not the one that row {seq} holds")
            if row.seq != seq:
                found.bad_row(seq, f"it says that it is row {row.seq}")
            if row.time < time:
                found.bad_row(seq, "its record time is before that of the row before")
            time = max(time, row.time)
            if log is not None:
                log.visit(seq, row)
        previous = audit.row_hash(data)
        linked = True
        expected = seq + 1
        if not seq % STEP:
            found.tell("audit", seq, total)
    found.report.audit.rows = total
    found.report.audit.head = previous.hex() if seq else audit.ROOT.hex()
    _check_head(txn, found, seq, previous)
    _check_clock(txn, found, time)
    found.tell("audit", total, total)


def _check_head(txn: Txn, found: Findings, last: int, last_hash: bytes) -> None:
    data = txn.get("meta", b"audit")
    if data is None:
        if last:
            found.problem("meta audit", "the head of the chain is missing")
        return
    try:
        head = audit.decode_head(data)
    except msgspec.MsgspecError as error:
        found.problem("meta audit", f"the head of the chain does not decode: {error}")
        return
    if head.seq != last and head.hash == last_hash:
        found.problem("meta audit", f"the head counts {head.seq} rows, the chain has {last}")
    elif head.seq > last:
        found.bad_row(last + 1, _missing("row", last + 1, head.seq + 1) + " at the end")
    elif head.seq < last:
        found.bad_row(head.seq + 1, f"rows go on after the head, which names row {head.seq}")
    elif head.hash != last_hash:
        found.bad_row(last, "its hash is not the one that the head holds")


def _check_clock(txn: Txn, found: Findings, time: int) -> None:
    data = txn.get("meta", b"clock")
    if data is None or len(data) != 8:
        if time or data is not None:
            found.problem("meta clock", "the clock is missing or malformed")
    elif int.from_bytes(data, "big", signed=True) < time:
        found.problem("meta clock", "the clock is before the last record time")


def _missing(what: str, first: int, end: int) -> str:
    if end - first == 1:
        return f"{what} {first} is missing"
    return f"{_MANY[what]} {first} to {end - 1} are missing"


def _same_act(row: audit.Row, entry: refs.Entry) -> bool:
    """True when a row and an entry that was made here tell of one act."""
    return (
        row.time == entry.time and row.principal == entry.principal and row.surface == entry.surface
    )


class LogCheck:
    """Check of the ref logs of all partitions, driven by the rows of the audit chain."""

    def __init__(
        self, txn: Txn, found: Findings, parts: dict[int, Part], *, heads: bool = True
    ) -> None:
        """Begin at the first entry of every partition; heads: look for the heads' objects."""
        self.txn = txn
        self.found = found
        self.folds = Folds(txn, found, heads)
        self.signs = SignCheck(txn, found)
        self.principals = PrincipalCheck(txn, found)
        self._walks = {number: _Walk(self, number) for number in parts}

    def visit(self, seq: int, row: audit.Row) -> None:
        """Match a row with its entry."""
        if not row.entry:
            self.signs.row(seq, row)
            if row.digest is not None:
                self.principals.row(seq, row)
            return
        walk = self._walks.get(row.part)
        if walk is None:
            self.found.bad_row(seq, f"it names partition {row.part}, which is not there")
        else:
            walk.visit(seq, row)

    def finish(self) -> None:
        """Look at entries after the last row, at the counters, and at what no fold took."""
        for walk in self._walks.values():
            walk.finish()
        for key, _ in self.txn.scan("heads"):
            if int.from_bytes(key, "big") not in self._walks:
                number = int.from_bytes(key, "big")
                self.found.problem(f"heads {number}", "it counts a partition that is not there")
        read = sum(walk.read for walk in self._walks.values())
        if read != self.txn.count("log"):
            self._name_foreign()
        self.folds.finish()
        self.signs.finish()
        self.principals.finish()

    def _name_foreign(self) -> None:
        for key, _ in self.txn.scan("log"):
            number = int.from_bytes(key[:4], "big")
            if number not in self._walks or len(key) != 12:
                seq = int.from_bytes(key[4:], "big")
                self.found.problem(f"log {number}/{seq}", "its partition is not there")


class _Walk:
    """The log of one partition, read in order."""

    def __init__(self, check: LogCheck, number: int) -> None:
        self.check = check
        self.number = number
        self.prefix = number.to_bytes(4, "big")
        self.read = 0
        self._next = 1  # the entry that the next row has to name
        self._time = 0
        self._items: Iterator[tuple[bytes, bytes]] = check.txn.scan_prefix("log", self.prefix)
        self._ahead: tuple[int, bytes] | None = None
        self._pull()

    def _pull(self) -> None:
        item = next(self._items, None)
        if item is None:
            self._ahead = None
        else:
            self._ahead = (int.from_bytes(item[0][4:], "big"), item[1])
            self.read += 1

    def visit(self, seq: int, row: audit.Row) -> None:
        number = row.entry
        if number != self._next and not self._resync(seq, row):
            return
        number = self._next
        self._next = number + 1
        ahead = self._ahead
        if ahead is None or ahead[0] != number:
            what = f"it is missing, row {seq} names it"
            self.check.found.problem(f"log {self.number}/{number}", what)
            return
        data = ahead[1]
        self._pull()
        if blake3(data).digest() != row.digest:
            what = f"its digest is not the one that row {seq} holds"
            self.check.found.problem(f"log {self.number}/{number}", what)
        self._take(number, data, row, seq)

    def _resync(self, seq: int, row: audit.Row) -> bool:
        """Find which entry a row means whose number is not the expected one."""
        found, number = self.check.found, row.entry
        ahead = self._ahead
        if ahead is not None and ahead[0] == self._next:
            if blake3(ahead[1]).digest() == row.digest:
                found.bad_row(seq, f"it names entry {number} for entry {self._next}")
                return True
        data = None
        if self._next < number < 1 << 64:
            data = self.check.txn.get("log", self.prefix + number.to_bytes(8, "big"))
        if data is None or blake3(data).digest() != row.digest:
            found.bad_row(seq, f"it names entry {number} where {self._next} would come")
            return False
        self._rest(number)
        return True

    def _rest(self, stop: int) -> None:
        """Take the entries before stop that have no row."""
        found = self.check.found
        while self._ahead is not None and self._ahead[0] < stop:
            number, data = self._ahead
            if number > self._next:
                what = _missing("entry", self._next, number)
                found.problem(f"log {self.number}/{self._next}", what)
            self._pull()
            found.problem(f"log {self.number}/{number}", "it has no row in the audit chain")
            self._take(number, data, None, 0)
            self._next = number + 1
        self._next = stop

    def _take(self, number: int, data: bytes, row: audit.Row | None, seq: int) -> None:
        found = self.check.found
        try:
            entry = refs.decode_entry(data)
        except msgspec.MsgspecError as error:
            found.problem(f"log {self.number}/{number}", f"it does not decode: {error}")
            return
        if entry.seq != number:
            what = f"it says that it is entry {entry.seq}"
            found.problem(f"log {self.number}/{number}", what)
        if entry.time < self._time:
            what = "its record time is before that of the entry before"
            found.problem(f"log {self.number}/{number}", what)
        self._time = entry.time
        if not (0 <= entry.op < len(refs.OPS) and 0 <= entry.status < len(refs.STATUSES)):
            found.problem(f"log {self.number}/{number}", "its op or status is none of the known")
            return
        if row is not None and not (
            row.resource == entry.ref
            and row.action == refs.OPS[entry.op]
            and row.outcome == "done"
            and row.time >= entry.time
            and (entry.origin is not None or _same_act(row, entry))
        ):
            found.bad_row(seq, f"it does not tell what entry {number} tells")
        self.check.folds.take(self.prefix, number, entry)
        self.check.signs.entry(self.prefix, entry, data)

    def finish(self) -> None:
        self._rest(1 << 64)
        last = self.read and self._last()
        stored = self.check.txn.get("heads", self.prefix)
        counted = int.from_bytes(stored or b"", "big")
        if counted != last:
            what = f"it counts {counted} entries, the log ends with {last}"
            self.check.found.problem(f"heads {self.number}", what)

    def _last(self) -> int:
        for key, _ in self.check.txn.scan_prefix("log", self.prefix, reverse=True):
            return int.from_bytes(key[4:], "big")
        return 0


class Folds:
    """Folds every ref when its last entry comes by, and compares with the cache."""

    def __init__(self, txn: Txn, found: Findings, heads: bool) -> None:
        """Begin with nothing folded; heads: look for the objects that heads name."""
        self.txn = txn
        self.found = found
        self._look = heads
        self.matched = 0  # refs whose last entry came by
        self.covered = 0  # entries that lie on the chain of such a ref
        self.revisions = 0  # objects that became heads of refs begun by another object

    def take(self, prefix: bytes, number: int, entry: refs.Entry) -> None:
        """Take one entry; a ref is folded when this is its last."""
        ref = entry.ref
        cached = self.txn.get("refs", prefix + ref)
        if entry.prev == 0:
            if entry.op != _CREATE or entry.new != ref or entry.old is not None:
                where = f"log {int.from_bytes(prefix, 'big')}/{number}"
                self.found.problem(where, "it does not begin its ref as 'create' does")
            elif entry.status != ERASED and cached == refs.encode_state(refs.step(None, entry)):
                self.matched += 1
                self.covered += 1
                if entry.replaced_by is not None:
                    self._check_successor(prefix, ref, entry.replaced_by)
                return
        if cached is None:
            if not self.found.is_bad_ref(ref):
                self.found.bad_ref(ref, f"it has entry {number} but no cached state")
            return
        try:
            state = refs.decode_state(cached)
        except msgspec.MsgspecError as error:
            if not self.found.is_bad_ref(ref):
                self.found.bad_ref(ref, f"its cached state does not decode: {error}")
            return
        if state.last == number:
            self.matched += 1
            self._fold(prefix, ref, number, cached)
        elif state.last < number and not self.found.is_bad_ref(ref):
            what = f"its cached state ends with entry {state.last}, the log goes on to {number}"
            self.found.bad_ref(ref, what)

    def _fold(self, prefix: bytes, ref: bytes, last: int, cached: bytes) -> None:
        heads: set[bytes] = set()
        state: refs.RefState | None = None
        try:
            chain = self.chain(prefix, ref, last)
            self.covered += len(chain)
            for number in reversed(chain):
                entry = self.entry(prefix, number)
                state = refs.step(state, entry)
                if entry.new is not None:
                    heads.add(entry.new)
        except IntegrityError as error:
            self.found.bad_ref(ref, str(error))
            return
        assert state is not None
        if refs.encode_state(state) != cached:
            self.found.bad_ref(ref, "its cached state is not the fold of its entries")
        if state.replaced_by is not None:
            self._check_successor(prefix, ref, state.replaced_by)
        self._check_revisions(prefix, ref, heads)
        self._check_heads(prefix, ref, state, heads)

    def _check_successor(self, prefix: bytes, ref: bytes, successor: bytes) -> None:
        if self.txn.get("replaces", prefix + successor + ref) is None:
            where = f"replaces {successor.hex()} {ref.hex()}"
            self.found.problem(where, "it is missing, the ref was replaced so")

    def _check_revisions(self, prefix: bytes, ref: bytes, heads: set[bytes]) -> None:
        """Every later object of a ref is listed as its revision, and is no other ref's."""
        for new in heads:
            if new == ref:
                continue
            self.revisions += 1
            owner = self.txn.get("revs", prefix + new)
            if owner is None:
                self.found.problem(f"rev {new.hex()}", f"it is missing, ref {ref.hex()} had it")
            elif owner != ref:
                self.found.problem(f"rev {new.hex()}", f"it does not name ref {ref.hex()}")
            if self.txn.get("refs", prefix + new) is not None:
                self.found.bad_object(new, f"it is a ref, yet a head of ref {ref.hex()} too")

    def _check_heads(
        self, prefix: bytes, ref: bytes, state: refs.RefState, heads: set[bytes]
    ) -> None:
        """Every head that a ref ever had is there, or none when it was erased."""
        erased = state.status == ERASED
        waiting = erased and self._waits(prefix, ref, state)
        if erased:
            self.found.report.tombstones.count += 1
            self.found.report.tombstones.waiting += waiting
        elif state.head is None:
            self.found.bad_ref(ref, "it has no head, yet it was not erased")
        for new in heads if self._look else ():
            present = self.txn.get("objects", prefix + new) is not None
            if erased and present and not waiting:
                self.found.remains(new)
            elif not erased and not present and new != ref:  # the first is looked for elsewhere
                self.found.bad_object(new, f"it is missing, ref {ref.hex()} had it as its head")

    def _waits(self, prefix: bytes, ref: bytes, state: refs.RefState) -> bool:
        """True when the bytes of an erased ref have not been purged yet."""
        data = self.txn.get("tombs", prefix + ref)
        if data is None:
            return bool(state.flags & refs.FLAGGED)
        try:
            return decode_tomb(data).purged is None
        except msgspec.MsgspecError:
            return True  # named by the check of the tombstones

    def chain(self, prefix: bytes, ref: bytes, last: int) -> array[int]:
        """Numbers of the entries of a ref, newest first.

        Raises:
            IntegrityError: the chain does not lead to a beginning.
        """
        numbers = array("Q")
        number = last
        while number:
            entry = self.entry(prefix, number)
            if entry.ref != ref:
                raise IntegrityError(f"its chain leads to entry {number}, which is of another ref")
            numbers.append(number)
            if not 0 <= entry.prev < number:
                raise IntegrityError(f"its entry {number} does not follow an earlier one")
            number = entry.prev
        return numbers

    def entry(self, prefix: bytes, number: int) -> refs.Entry:
        """One entry.

        Raises:
            IntegrityError: it is missing or does not decode.
        """
        data = self.txn.get("log", prefix + number.to_bytes(8, "big"))
        if data is None:
            raise IntegrityError(f"its entry {number} is missing")
        try:
            return refs.decode_entry(data)
        except msgspec.MsgspecError as error:
            raise IntegrityError(f"its entry {number} does not decode") from error

    # -- what the counts leave over -----------------------------------------------------------

    def finish(self) -> None:
        """Name the refs and entries that no fold took, if there are any."""
        if self.matched != self.txn.count("refs"):
            self._name_refs()
        if self.covered != self.txn.count("log"):
            self._name_entries()
        self.found.report.refs.checked = self.matched
        self.found.report.refs.entries = self.covered

    def _name_refs(self) -> None:
        for key, data in self.txn.scan("refs"):
            prefix, ref = key[:4], key[4:]
            if self.found.is_bad_ref(ref):
                continue
            try:
                state = refs.decode_state(data)
                entry = self.entry(prefix, state.last)
            except msgspec.MsgspecError as error:
                self.found.bad_ref(ref, f"its cached state does not decode: {error}")
            except (IntegrityError, OverflowError) as error:
                self.found.bad_ref(ref, str(error))
            else:
                if entry.ref != ref:
                    self.found.bad_ref(ref, f"its last entry {state.last} is of another ref")
                elif self.txn.get("parts", b"n" + prefix) is None:
                    self.found.bad_ref(ref, "its partition is not there")

    def _name_entries(self) -> None:
        for key, data in self.txn.scan("log"):
            prefix, number = key[:4], int.from_bytes(key[4:], "big")
            try:
                entry = refs.decode_entry(data)
                cached = self.txn.get("refs", prefix + entry.ref)
                if cached is None or self.found.is_bad_ref(entry.ref):
                    continue
                last = refs.decode_state(cached).last
                if last == number or number in self.chain(prefix, entry.ref, last):
                    continue
            except (msgspec.MsgspecError, IntegrityError):
                continue  # named already
            where = f"log {int.from_bytes(prefix, 'big')}/{number}"
            self.found.problem(where, f"the chain of ref {entry.ref.hex()} does not lead to it")

    def heads(self, prefix: bytes, ref: bytes) -> dict[bytes, bool]:
        """Every object that was a head of a ref; True when a pack brought the entry that says so.

        A ref whose log is damaged has none.
        """
        found: dict[bytes, bool] = {}
        cached = self.txn.get("refs", prefix + ref)
        try:
            last = refs.decode_state(cached or b"").last
            for number in self.chain(prefix, ref, last):
                entry = self.entry(prefix, number)
                if entry.new is not None:
                    brought = entry.origin is not None and entry.new != entry.old
                    found[entry.new] = found.get(entry.new, False) or brought
        except (msgspec.MsgspecError, IntegrityError):
            return {}
        return found
