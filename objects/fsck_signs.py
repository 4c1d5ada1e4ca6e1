"""Check of the signatures: every decision made while the store was protected has a good one.

From when to when it was protected, and with which key, the audit chain says; its end must itself be
signed.  So neither taking the key out of ``meta`` nor taking signatures out of their table goes
unnoticed.  Who rewrites the whole chain with a key of his own is found by a checkpoint only.

Source: remem-store(5), SIGNATURES and VERIFYING.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import audit, keys, oid, refs, signing
from remem.objects.errors import StoreError

if TYPE_CHECKING:
    from remem.objects.findings import Findings
    from remem.objects.kv import Txn


class SignCheck:
    """Follows rows and entries in the order of the audit chain."""

    def __init__(self, txn: Txn, found: Findings) -> None:
        """Begin before the first row, when nothing is protected."""
        self.txn = txn
        self.found = found
        self.report = found.report.signatures
        self._store = signing.store_id(txn) or b""
        self._key: bytes | None = None  # the public key in force
        self._since = 0
        self._ever = False
        self._met = 0  # rows of the table that belong to a decision
        self._able = True  # the library that checks signatures is there

    # -- rows ---------------------------------------------------------------------------------

    def row(self, seq: int, row: audit.Row) -> None:
        """Take a row of the audit chain that names no entry."""
        if row.action not in signing.SIGNED_ROWS or row.outcome != "done":
            return
        where = f"audit {seq}"
        if row.action == signing.PROTECT:
            self._begin(seq, row, where)
            return
        if self._key is None and row.action != signing.LIFT:
            self.found.bad_row(seq, f"'{row.action}' of a store that was not protected")
            return
        if self._decide(signing.row_key(seq), self._said(seq, row), where, row.action):
            if row.action == signing.UNPROTECT:
                self._key = None

    def _begin(self, seq: int, row: audit.Row, where: str) -> None:
        public = row.resource
        if public is None or len(public) != keys.PUBLIC_B:
            self.found.bad_row(seq, "it protects the store with no key")
            return
        if self._key is not None:
            self.found.bad_row(seq, "it protects a store that was protected already")
            return
        self._key, self._since, self._ever = public, row.time, True
        self._decide(signing.row_key(seq), self._said(seq, row), where, row.action)

    def _said(self, seq: int, row: audit.Row) -> bytes:
        data = self.txn.get("audit", seq.to_bytes(8, "big")) or b""
        return signing.message(self._store, 0, seq, row.resource, None, audit.row_hash(data))

    # -- entries ------------------------------------------------------------------------------

    def entry(self, prefix: bytes, entry: refs.Entry, data: bytes) -> None:
        """Take an entry of the ref log."""
        if self._key is None and entry.op not in signing.DECISIONS:
            return

        def earlier(of: refs.Entry) -> refs.Entry | None:
            try:
                return signing.read(self.txn, prefix, of.prev) if 0 <= of.prev < of.seq else None
            except msgspec.MsgspecError:
                return None  # the check of the log names it

        if not signing.needs(entry, earlier(entry), earlier):
            return
        part = int.from_bytes(prefix, "big")
        said = signing.entry_message(self._store, part, entry, oid.digest(data))
        key = prefix + entry.seq.to_bytes(8, "big")
        self._decide(key, said, f"log {part}/{entry.seq}", refs.OPS[entry.op])

    def _decide(self, key: bytes, said: bytes, where: str, action: str) -> bool:
        """Count one decision; True when it is signed as it should be."""
        data = self.txn.get("signs", key)
        if data is not None:
            self._met += 1
        if self._key is None:
            if data is None:
                self.report.unsigned += 1
                return True
            return self._bad(where, f"'{action}' is signed, though nothing was protected then")
        if data is None:
            return self._bad(where, f"'{action}' has no signature, the store was protected then")
        try:
            sign = signing.decode_signature(data)
        except msgspec.MsgspecError as error:
            return self._bad(where, f"its signature does not decode: {error}")
        if sign.key != keys.key_id(self._key):
            return self._bad(where, "it is signed with a key that was not in force")
        if self._able:
            try:
                if not keys.verify(self._key, sign.signature, said):
                    return self._bad(where, "its signature does not verify")
            except StoreError as error:
                self._able = False
                self.found.problem("table signs", f"the signatures are not checked: {error}")
        self.report.signed += self._able
        return True

    def _bad(self, where: str, what: str) -> bool:
        self.report.bad += 1
        self.found.problem(where, what)
        return False

    # -- the end ------------------------------------------------------------------------------

    def finish(self) -> None:
        """Compare the end of the chain with ``meta``, and look for signatures of nothing."""
        self.report.protected = self._key is not None
        self.report.key = "" if self._key is None else self._key.hex()
        self._check_meta()
        if self._met != self.txn.count("signs"):
            self._name_orphans()

    def _check_meta(self) -> None:
        data = self.txn.get("meta", signing.OWNER_ROW)
        own: signing.OwnerKey | None = None
        try:
            own = None if data is None else signing.decode_owner(data)
        except msgspec.MsgspecError as error:
            self.found.problem("meta owner", f"it does not decode: {error}")
            return
        if own is None and self._key is not None:
            self.found.problem("meta owner", "the key is missing, the store was protected with it")
        elif own is not None and self._key is None:
            self.found.problem("meta owner", "it names a key, yet nothing says that it protects")
        elif own is not None and self._key is not None:
            if own.public != self._key:
                self.found.problem("meta owner", "it names another key than the audit chain")
            elif own.since != self._since:
                self.found.problem("meta owner", "it is not as old as its row of the audit chain")
        if self._ever and len(self._store) != signing.STORE_ID_B:
            self.found.problem("meta store", "the id of the store is missing or malformed")

    def _name_orphans(self) -> None:
        """Name what is signed but is no decision."""
        for key, _ in self.txn.scan("signs"):
            part, seq = int.from_bytes(key[:4], "big"), int.from_bytes(key[4:], "big")
            if len(key) != 12 or not self._is_decision(key[:4], part, seq):
                self.found.problem(f"sign {part}/{seq}", "it signs nothing that needs it")

    def _is_decision(self, prefix: bytes, part: int, seq: int) -> bool:
        try:
            if not part:
                data = self.txn.get("audit", seq.to_bytes(8, "big"))
                row = None if data is None else audit.decode_row(data)
                return row is not None and row.action in signing.SIGNED_ROWS and not row.entry
            entry = signing.read(self.txn, prefix, seq)
            return entry is not None and signing.needs(
                entry,
                signing.read(self.txn, prefix, entry.prev),
                lambda of: signing.read(self.txn, prefix, of.prev),
            )
        except msgspec.MsgspecError:
            return False
