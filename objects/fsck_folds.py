"""Folding the refs: the cached state of each is the fold of its entries.

A ref is folded when its last entry comes by.  Refs with one entry, which is most of them, are not
looked up at all but compared as a whole (`remem.objects.fsck_firsts`).  Nothing is kept per entry:
that no ref and no entry is left over is known from counts, and only when one is off are the tables
read again to name what it is.

Source: remem-store(5), REF LOG.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import msgspec

from remem.objects import refs, tombs
from remem.objects.errors import IntegrityError
from remem.objects.fsck_firsts import ERASED, Firsts, begins, is_plain

if TYPE_CHECKING:
    from collections.abc import Container

    from remem.objects.findings import Findings
    from remem.objects.kv import Txn

decode_tomb = msgspec.msgpack.Decoder(tombs.Tomb).decode


class Folds:
    """Folds every ref when its last entry comes by, and compares with the cache."""

    def __init__(
        self, txn: Txn, found: Findings, parts: Container[int], *, heads: bool = True
    ) -> None:
        """Begin with nothing folded; heads: look for the objects that heads name."""
        self._parts = parts
        self.txn = txn
        self.found = found
        self._look = heads
        self._firsts = Firsts()  # of refs with one entry
        self._naming = False
        self.matched = 0  # refs whose last entry came by
        self.covered = 0  # entries that lie on the chain of such a ref
        self.revisions = 0  # objects that became heads of refs begun by another object

    def take(self, prefix: bytes, number: int, entry: refs.Entry) -> None:
        """Take one entry; a ref is folded when this is its last."""
        if is_plain(entry):
            self._firsts.add(prefix + entry.ref, refs.encode_state(refs.step(None, entry)))
            return
        if not entry.prev and not begins(entry):
            where = f"log {int.from_bytes(prefix, 'big')}/{number}"
            self.found.problem(where, "it does not begin its ref as 'create' does")
        self._compare(prefix, number, entry)

    def _compare(self, prefix: bytes, number: int, entry: refs.Entry) -> None:
        """Look up the cached state of an entry's ref; fold the ref when the entry is its last."""
        ref = entry.ref
        cached = self.txn.get("refs", prefix + ref)
        if not entry.prev and begins(entry) and entry.status != ERASED:
            if cached == refs.encode_state(refs.step(None, entry)):
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
                if is_plain(entry) and not self._naming:
                    self._firsts.take_back(prefix + ref, refs.encode_state(state))
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
        if self._firsts.agree(self.txn):
            self.matched += self._firsts.count
            self.covered += self._firsts.count
        else:
            self._name_firsts()
        if self.matched != self.txn.count("refs"):
            self._name_refs()
        if self.covered != self.txn.count("log"):
            self._name_entries()
        self.found.report.refs.checked = self.matched
        self.found.report.refs.entries = self.covered

    def _name_firsts(self) -> None:
        """Look up the state of every ref that begins plainly."""
        self._naming = True
        for key, data in self.txn.scan("log"):
            prefix, number = key[:4], int.from_bytes(key[4:], "big")
            if int.from_bytes(prefix, "big") not in self._parts or len(key) != 12:
                continue  # named already
            try:
                entry = refs.decode_entry(data)
            except msgspec.MsgspecError:
                continue  # named already
            if is_plain(entry) and 0 <= entry.status < len(refs.STATUSES):
                self._compare(prefix, number, entry)

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
