"""Check of the rows that follow from nothing else: each is what the log or the chain attests.

Entries and rows of stores that were begun by earlier versions attest nothing; the first row that
attests which gate decides marks the place from which on every such row must be attested.  What is
older than that is counted and named in a warning, as nothing can tell whether it was changed.

Source: remem-store(5), ATTESTED ROWS and VERIFYING.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from remem.objects import attests, chains, encode, links, receipts, refs, retention
from remem.objects.errors import RememError
from remem.objects.model import Memory
from remem.objects.reader import Reader
from remem.objects.scope import maintenance_grant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remem.objects.audit import Row
    from remem.objects.findings import Findings
    from remem.objects.kv import Txn
    from remem.objects.reader import Part
    from remem.objects.tombs import Tomb

_ERASED = refs.STATUS_CODE["erased"]
_SHOWN = {attests.GATE: receipts.META, attests.RETAIN: retention.KEY}
_ACTIONS = {attests.RETAIN: "retain"}  # whose rows tell that there was something to attest
_NAMES_KEPT = 1 << 14


class AttestCheck:
    """Follows what entries and rows attest, and compares it with the rows it is about."""

    def __init__(
        self, txn: Txn, found: Findings, parts: dict[int, Part], *, look: bool = True
    ) -> None:
        """Begin before the first row, when nothing is attested; look: read the other tables."""
        self.txn = txn
        self.found = found
        self.parts = parts
        self._look = look
        self._since: dict[int, int] | None = None  # from which entry on all must be attested
        self._meta: dict[str, bytes | bool] = {}
        self._aliases: dict[int, bytes | bool] = {}
        self._acted: set[str] = set()  # actions of rows of the chain that change such rows
        self._named: set[int] = set()  # partitions whose names were changed
        self._lifted: set[bytes] = set()  # refs whose tombstones list no values any more
        self._receipts = 0  # rows that an entry attests
        self._chained = 0  # rows of chains that have the place that they should have
        self._older: dict[str, int] = {}  # table -> rows from before anything was attested
        self._reader = Reader(txn, maintenance_grant())
        self._plain = look and txn.count("aliases") == 0
        self._names: dict[tuple[int, str], str] = {}

    # -- the audit chain and the log ----------------------------------------------------------

    def row(self, row: Row, following: Callable[[], dict[int, int]]) -> None:
        """Take a row that attests something or that changes what may be attested.

        Args:
            row: a row of the audit chain.
            following: tells the number of the next entry of each partition.
        """
        for name, digest in (row.said() or {}).items():
            if name == attests.ALIASES:
                self._aliases[row.part] = digest
            elif name in _SHOWN:
                self._meta[name] = digest
                if name == attests.GATE and self._since is None:
                    self._since = following()
        if row.entry:
            return
        self._acted.add(row.action)
        if row.action == "alias":
            self._named.add(row.part)
        elif row.action == "lift" and row.outcome == "done" and row.resource is not None:
            self._lifted.add(row.part.to_bytes(4, "big") + row.resource)

    def entry(self, prefix: bytes, entry: refs.Entry) -> None:
        """Take an entry that attests something."""
        said = entry.said() or {}
        if self._look and attests.RECEIPT in said and entry.new is not None:
            self._check_receipt(prefix, entry, entry.new, said[attests.RECEIPT])
        if attests.VALUES in said:
            key = prefix + entry.ref
            self._lifted.discard(key)
            if self.txn.get("tombs", key) is None:
                state = self._state(key)
                if state is not None and state.status == _ERASED:
                    self.found.bad_tomb(entry.ref, f"it is missing, entry {entry.seq} set it")

    def _check_receipt(
        self, prefix: bytes, entry: refs.Entry, object_id: bytes, digest: bytes | bool
    ) -> None:
        part = self.parts.get(int.from_bytes(prefix, "big"))
        data = self.txn.get("receipts", prefix + object_id)
        where = f"receipt {object_id.hex()}"
        if data is None:
            if self.txn.get("objects", prefix + object_id) is not None:
                self.found.problem(where, f"it is missing, entry {entry.seq} attests it")
            return  # else it went with its object, whose absence is judged elsewhere
        self._receipts += 1
        if part is not None and attests.of_receipt(part, object_id, data) != digest:
            self.found.problem(where, f"it is not what entry {entry.seq} attests")

    def finish(self) -> None:
        """Compare what is attested of the whole store and of whole partitions."""
        for name, key in _SHOWN.items():
            data = self.txn.get("meta", key)
            where = f"meta {key.decode()}"
            if name in self._meta:
                if data is None:
                    self.found.problem(where, "it is missing, the audit chain attests it")
                elif blake3(data).digest() != self._meta[name]:
                    self.found.problem(where, "it is not what the audit chain attests")
            elif data is not None:
                self._old_or_not(where, _ACTIONS.get(name, ""))
        if self._look:
            self._check_aliases()

    def _old_or_not(self, where: str, action: str) -> None:
        if action and action not in self._acted:
            self.found.problem(where, "no row of the audit chain tells of it")
        else:
            self._count(where)

    def _check_aliases(self) -> None:
        there = {int.from_bytes(key[:4], "big") for key, _ in self.txn.scan("aliases")}
        for number in sorted(there | self._aliases.keys()):
            part = self.parts.get(number)
            if number in self._aliases:
                if part is not None and attests.of_aliases(self.txn, part) != self._aliases[number]:
                    what = "they are not what the audit chain attests"
                    self.found.problem(f"aliases {number}", what)
            elif number not in self._named:
                self.found.problem(f"aliases {number}", "no row of the audit chain tells of them")
            else:
                self._count("table aliases")

    def warn(self) -> None:
        """Tell how much there is of which nothing can be told."""
        for where, count in sorted(self._older.items()):
            rows = "1 row is" if count == 1 else f"{count} rows are"
            what = f"{rows} of an earlier version, which attests none: a change would not be seen"
            self.found.warn(where, what)

    # -- receipts -----------------------------------------------------------------------------

    def check_receipts(self) -> None:
        """Name the receipts that no entry attests, if there are any."""
        if self._receipts == self.txn.count("receipts"):
            return
        for key, _ in self.txn.scan("receipts"):
            prefix, object_id = key[:4], key[4:]
            ref = self.txn.get("revs", key) or object_id
            state = self._state(prefix + ref)
            brought = 0
            for entry in self._entries(prefix, state):
                if entry.new == object_id:
                    brought = entry.seq
                    if attests.RECEIPT in (entry.said() or {}):
                        break
            else:
                if brought and not self._must(prefix, brought):
                    self._count("table receipts")
                elif brought:
                    self.found.problem(f"receipt {object_id.hex()}", "no entry attests it")

    # -- tombstones ---------------------------------------------------------------------------

    def check_tomb(self, key: bytes, tomb: Tomb, state: refs.RefState | None) -> None:
        """Compare a tombstone with the entry that set it, and with what happened to it since."""
        ref = key[4:]
        set_by: refs.Entry | None = None
        purged: int | None = None
        for entry in self._entries(key[:4], state):
            if entry.status != _ERASED:
                break
            if purged is None and refs.OPS[entry.op] == "purge":
                purged = entry.time
            set_by = entry
            if attests.VALUES in (entry.said() or {}):
                break
        if set_by is None:
            return  # its ref is not erased, or its log is damaged: named already
        digest = (set_by.said() or {}).get(attests.VALUES)
        if digest is None:
            if self._must(key[:4], set_by.seq):
                self.found.bad_tomb(ref, "no entry attests it")
            else:
                self._count("table tombs")
            return
        if key in self._lifted:
            if tomb.values:
                self.found.bad_tomb(ref, "it was lifted, yet it lists values")
        elif attests.of_values(tomb.values) != digest:
            what = f"its values are not those that entry {set_by.seq} attests"
            self.found.bad_tomb(ref, what)
        told = (set_by.time, set_by.principal, set_by.reason)
        if (tomb.time, tomb.principal, tomb.reason) != told:
            self.found.bad_tomb(ref, f"it does not tell what entry {set_by.seq} tells")
        # What a pack brought as forgotten may never have had bytes here.
        never = set_by.time if set_by.origin is not None else purged
        if tomb.purged not in (purged, never):
            self.found.bad_tomb(ref, "the log does not say that its bytes went then")

    # -- chains -------------------------------------------------------------------------------

    def check_chain(self, part: Part, ref: bytes, state: refs.RefState, memory: Memory) -> None:
        """Look for the row of a fact in its chain."""
        assert memory.triple is not None
        keys = self._keys(part, state, memory.triple)
        key, mark = b"", None
        for key in keys:
            mark = self.txn.get("chains", key + ref)
            if mark is not None:
                break
        where = f"chain {key[4:].hex()}"
        if mark is None:
            if len(keys) == 1:
                self.found.problem(where, f"it does not hold {ref.hex()}, which belongs to it")
            return
        self._chained += 1
        if len(keys) > 1:
            self._count("table chains")
        if state.status in links.THERE and mark != links.mark_of(memory):
            self.found.problem(where, f"it does not tell how {ref.hex()} ends")

    def _keys(
        self, part: Part, state: refs.RefState, triple: tuple[str, str, str]
    ) -> tuple[bytes, ...]:
        """Keys of the chains that may hold a fact: the one of its mode, or none; both if older."""
        first = self._entry(part.prefix, state.first)
        said = None if first is None else (first.said() or {}).get(attests.SINGLE)
        modes: tuple[bool, ...] = (True, False)
        if said is not None:
            modes = (bool(said),)
        elif self._must(part.prefix, state.first):
            modes = ()
        return tuple(
            chains.key_by(part, triple, single, lambda name: self._name(part, name))
            for single in modes
        )

    def check_chains(self) -> None:
        """Name the rows of chains that belong elsewhere, if there are any."""
        gone = 0
        for key, _ in self.txn.scan("chains"):
            state = self._state(key[:4] + key[20:])
            if state is None or state.type != refs.MEMORY:
                where = f"chain {key[4:20].hex()}"
                self.found.problem(where, f"it holds {key[20:].hex()}, which is no memory")
                gone += 1
            elif state.status == _ERASED:
                gone += 1
        if self.txn.count("chains") != self._chained + gone:
            for key, _ in self.txn.scan("chains"):
                self._check_place(key)

    def _check_place(self, key: bytes) -> None:
        prefix, ref = key[:4], key[20:]
        part, state = self.parts.get(int.from_bytes(prefix, "big")), self._state(prefix + ref)
        if part is None or state is None or state.type != refs.MEMORY or state.status == _ERASED:
            return
        data = None if state.head is None else self.txn.get("objects", prefix + state.head)
        try:
            memory = None if data is None else encode.decode(data)
        except RememError:
            return  # named already
        triple = memory.triple if isinstance(memory, Memory) else None
        if triple is None or key[:20] not in self._keys(part, state, triple):
            what = f"it holds {ref.hex()}, which does not belong to it"
            self.found.problem(f"chain {key[4:20].hex()}", what)

    def _name(self, part: Part, name: str) -> str:
        """The folded name that a name stands for; names repeat."""
        at = (part.number, name)
        known = self._names.get(at)
        if known is None:
            if len(self._names) >= _NAMES_KEPT:
                self._names.clear()
            known = chains.fold(name) if self._plain else chains.canonical(self._reader, part, name)
            self._names[at] = known
        return known

    # -- what all of them need ----------------------------------------------------------------

    def _must(self, prefix: bytes, seq: int) -> bool:
        """Whether an entry is of a time at which all that it brought had to be attested."""
        if self._since is None:
            return False
        return seq >= self._since.get(int.from_bytes(prefix, "big"), 1)

    def _count(self, where: str) -> None:
        self._older[where] = self._older.get(where, 0) + 1

    def _state(self, key: bytes) -> refs.RefState | None:
        data = self.txn.get("refs", key)
        try:
            return None if data is None else refs.decode_state(data)
        except msgspec.MsgspecError:
            return None  # named already

    def _entry(self, prefix: bytes, seq: int) -> refs.Entry | None:
        data = self.txn.get("log", prefix + seq.to_bytes(8, "big")) if 0 < seq < 1 << 64 else None
        try:
            return None if data is None else refs.decode_entry(data)
        except msgspec.MsgspecError:
            return None  # named already

    def _entries(self, prefix: bytes, state: refs.RefState | None) -> Iterator[refs.Entry]:
        """Entries of a ref, newest first, as far as they can be read and lead back."""
        seq = 0 if state is None else state.last
        while seq:
            entry = self._entry(prefix, seq)
            if entry is None:
                return
            yield entry
            seq = entry.prev if entry.prev < seq else 0
