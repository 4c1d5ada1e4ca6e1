"""A protected store to decide in, with and without the owner's key: for the tests of signatures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from remem.objects import audit, keys, refs, signing
from remem.objects.findings import Report
from remem.objects.fsck import verify
from remem.objects.kv import Txn
from remem.objects.reader import Part
from remem.objects.scope import maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx

from .attacked import ACTOR, add, tamper

T = TypeVar("T")
SIGNER = keys.Signer.from_seed(bytes(range(32)))
STRANGER = keys.Signer.from_seed(bytes(32))
STORE_ID = bytes(range(16))
SIGNING = msgspec.structs.replace(ACTOR, signer=SIGNER)


class Protected:
    """A store whose decisions need SIGNER.

    Attributes:
        root: its folder.
        ids: observations, made before it was protected.
    """

    def __init__(self, root: Path, *, protect: bool = True) -> None:
        self.root = root
        self.store = Store.create(str(root))
        self.ids = [add(self.store, text=f"observation {i}") for i in range(4)]
        with self.store.read(maintenance_grant()) as reader:
            self.part: Part = reader.parts[0]
        if protect:
            self.protect()

    def protect(self) -> None:
        self.write(lambda tx: signing.protect(tx, STORE_ID), signer=SIGNER)

    def write(self, change: Callable[[Tx], T], *, signer: keys.Signer | None = None) -> T:
        return self.store.write(msgspec.structs.replace(ACTOR, signer=signer), change)

    def record(
        self, op: str, ref: bytes, status: str, *, signer: keys.Signer | None = None, **fields: str
    ) -> refs.Entry:
        def change(tx: Tx) -> refs.Entry:
            state = tx.reader.state(self.part, ref)
            assert state is not None
            return tx.record(self.part, op, ref, state, status=status, **fields)  # type: ignore[arg-type]

        return self.write(change, signer=signer)

    def status(self, ref: bytes) -> str:
        with self.store.read(maintenance_grant()) as reader:
            state = reader.state(self.part, ref)
            assert state is not None
            return refs.STATUSES[state.status]

    def rows(self) -> list[tuple[str, str]]:
        """(action, outcome) of every row."""
        with self.store.read(maintenance_grant()) as reader:
            return [(row.action, row.outcome) for _, _, row in reader.audit_rows()]

    def signed(self) -> list[bytes]:
        """Keys of the signatures."""
        with self.store.read(maintenance_grant()) as reader:
            return [key for key, _ in reader.txn.scan("signs")]

    def tamper(self, change: Callable[[Txn], object]) -> None:
        """Change rows behind the store's back, as one who can write the files does."""
        self.store.close()
        tamper(self.root, change)

    def check(self) -> Report:
        self.store.close()
        return verify(self.store)


def append_row(txn: Txn, **fields: object) -> None:
    """Append a row to the chain with the right hash and the right head, unsigned."""
    head = audit.decode_head(txn.get("meta", b"audit") or b"")
    last = audit.decode_row(txn.get("audit", head.seq.to_bytes(8, "big")) or b"")
    plain = msgspec.structs.replace(
        last, seq=head.seq + 1, prev=head.hash, entry=0, digest=None, part=0, resource=None
    )
    data = audit.encode_row(msgspec.structs.replace(plain, **fields))
    txn.put("audit", (head.seq + 1).to_bytes(8, "big"), data)
    txn.put("meta", b"audit", audit.encode_head(audit.Head(head.seq + 1, audit.row_hash(data))))
