"""Checks of the audit chain and the ref log: links, gaps, rows against entries, folds.

One pass over the rows in order walks the log of every partition beside them, so that each entry is
read, digested and decoded once; what it makes of its ref is `remem.objects.fsck_folds`.

Source: remem-store(5), AUDIT and REF LOG.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from remem.objects import audit, refs
from remem.objects.findings import STEP
from remem.objects.fsck_attests import AttestCheck
from remem.objects.fsck_firsts import ERASED as ERASED
from remem.objects.fsck_folds import Folds as Folds
from remem.objects.fsck_folds import decode_tomb as decode_tomb
from remem.objects.fsck_principals import PrincipalCheck
from remem.objects.fsck_signs import SignCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.findings import Findings
    from remem.objects.kv import Txn
    from remem.objects.reader import Part

_MANY = {"row": "rows", "entry": "entries"}


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
    elif int.from_bytes(data, "big", signed=True) != time:
        found.problem("meta clock", "the clock is not at the last record time")


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
        self,
        txn: Txn,
        found: Findings,
        parts: dict[int, Part],
        *,
        heads: bool = True,
        rows: bool = True,
    ) -> None:
        """Begin at the first entry of each partition; look for heads, and for attested rows."""
        self.txn = txn
        self.found = found
        self.folds = Folds(txn, found, parts, heads=heads)
        self.signs = SignCheck(txn, found)
        self.principals = PrincipalCheck(txn, found)
        self.attests = AttestCheck(txn, found, parts, look=heads and rows)
        self._walks = {number: _Walk(self, number) for number in parts}

    def visit(self, seq: int, row: audit.Row) -> None:
        """Match a row with its entry."""
        if not row.entry or row.said() is not None:
            self.attests.row(row, lambda: {n: walk.next for n, walk in self._walks.items()})
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
        self.attests.finish()

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
        self.next = 1  # the entry that the next row has to name
        self._time = 0
        self._items: Iterator[tuple[bytes, bytes]] = check.txn.scan_prefix("log", self.prefix)
        self._ahead: tuple[int, bytes] | None = None
        self._pull()

    def _pull(self) -> None:
        item = next(self._items, None)
        self._ahead = None if item is None else (int.from_bytes(item[0][4:], "big"), item[1])
        self.read += item is not None

    def visit(self, seq: int, row: audit.Row) -> None:
        if row.entry != self.next and not self._resync(seq, row):
            return
        number = self.next
        self.next = number + 1
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
        if ahead is not None and ahead[0] == self.next:
            if blake3(ahead[1]).digest() == row.digest:
                found.bad_row(seq, f"it names entry {number} for entry {self.next}")
                return True
        data = None
        if self.next < number < 1 << 64:
            data = self.check.txn.get("log", self.prefix + number.to_bytes(8, "big"))
        if data is None or blake3(data).digest() != row.digest:
            found.bad_row(seq, f"it names entry {number} where {self.next} would come")
            return False
        self._rest(number)
        return True

    def _rest(self, stop: int) -> None:
        """Take the entries before stop that have no row."""
        found = self.check.found
        while self._ahead is not None and self._ahead[0] < stop:
            number, data = self._ahead
            if number > self.next:
                what = _missing("entry", self.next, number)
                found.problem(f"log {self.number}/{self.next}", what)
            self._pull()
            found.problem(f"log {self.number}/{number}", "it has no row in the audit chain")
            self._take(number, data, None, 0)
            self.next = number + 1
        self.next = stop

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
        if entry.said() is not None:
            self.check.attests.entry(self.prefix, entry)
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
        last = next(self.check.txn.scan_prefix("log", self.prefix, reverse=True), None)
        return 0 if last is None else int.from_bytes(last[0][4:], "big")
