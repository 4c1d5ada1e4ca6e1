"""Check of the principals: each record is the one that the audit chain attests, and leads home.

A record that was written past the program (a wider scope, another token) has another digest than
the last row about it.

Source: remem-store(5), PRINCIPALS and VERIFYING.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from remem.objects import principals

if TYPE_CHECKING:
    from remem.objects import audit
    from remem.objects.findings import Findings
    from remem.objects.kv import Txn


class PrincipalCheck:
    """Follows the rows of the audit chain about principals."""

    def __init__(self, txn: Txn, found: Findings) -> None:
        """Begin before the first row, when there is nobody but the owner."""
        self.txn = txn
        self.found = found
        self._attested: dict[int, bytes] = {}

    def row(self, seq: int, row: audit.Row) -> None:
        """Take a row of the audit chain that names no entry but holds a digest."""
        _, _, number = row.outcome.partition("-")
        if row.action != principals.ACTION or not number.isdigit():
            self.found.bad_row(seq, "it holds a digest but names no entry")
        elif row.digest is not None:
            self._attested[int(number)] = row.digest

    def finish(self) -> None:
        """Compare the table with what the rows attest."""
        names: dict[bytes, bytes] = {}
        tokens: dict[bytes, bytes] = {}
        met = 0
        for key, data in self.txn.scan_prefix("principals", b"n"):
            met += 1
            number = int.from_bytes(key[1:], "big")
            where = f"principals {number}"
            if self._attested.get(number) != blake3(data).digest():
                self.found.problem(where, "it is not what the audit chain attests")
            try:
                one = principals.decode(data)
            except msgspec.MsgspecError as error:
                self.found.problem(where, f"it does not decode: {error}")
                continue
            names[one.name.encode()] = key[1:]
            if one.token is not None:
                tokens[one.token] = key[1:]
        if met < len(self._attested):
            lost = sum(
                self.txn.get("principals", b"n" + number.to_bytes(4, "big")) is None
                for number in self._attested
            )
            self.found.problem("principals", f"{lost} of the audit chain are missing")
        for prefix, wanted in ((b"k", names), (b"t", tokens)):
            rows = {k[1:]: bytes(v) for k, v in self.txn.scan_prefix("principals", prefix)}
            if rows != wanted:
                what = "names" if prefix == b"k" else "tokens"
                self.found.problem("principals", f"their {what} do not lead to them")
