"""Signed decisions: what lets something out, removes it or lets it return needs the owner's key.

Once the owner has protected the store, the transaction itself refuses an entry of the ref log, or a
row of the audit chain, that is such a decision and comes without the unlocked key; it signs the
others and keeps the signatures in the table ``signs``.  Whoever calls it meets the same rule: a
review, an undo, a pack, a program.

What is a decision can be told from the log alone, so that ``remem verify`` applies the same rule.

Source: remem-store(5), SIGNATURES.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from remem.objects import keys, refs
from remem.objects.errors import IntegrityError, Refused, ScopeRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.objects.kv import Txn
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

    Earlier = Callable[[refs.Entry], refs.Entry | None]

OWNER_ROW = b"owner"  # in ``meta``: the public key, while the store is protected
STORE_ROW = b"store"  # in ``meta``: the id of the store, once it was protected
STORE_ID_B = 16
PROTECT, UNPROTECT, PASSPHRASE, LIFT = "protect", "unprotect", "passphrase", "lift"
SIGNED_ROWS = frozenset((PROTECT, UNPROTECT, PASSPHRASE, LIFT))
UNSIGNED = "unsigned"  # outcome of a refusal
DECISIONS = frozenset(refs.OP_CODE[op] for op in ("approve", "release", "reject", "purge"))
HINT = "the owner's passphrase signs it: run it in a terminal, where it can be asked for"
_DOMAIN = b"remem sign 1\0"
_NOTHING = bytes(32)
_VERIFIED = refs.STATUS_CODE["verified"]
_WAITS = frozenset(refs.STATUS_CODE[s] for s in ("pending", "quarantined", "rejected"))
_OVER = frozenset(refs.STATUS_CODE[s] for s in ("expired", "orphaned"))
_ERASED = refs.STATUS_CODE["erased"]
_OPEN = frozenset(refs.STATUS_CODE.values()) - _WAITS - _OVER - {_ERASED}
_REJECT = refs.OP_CODE["reject"]
LINK = "chain"  # `remem.objects.links.LINK`, without importing all of it for each write
# Reasons with which the store takes back what it derived or linked itself.
_AUTOMATIC = frozenset(("rederived", "withheld", LINK))


class SignatureNeeded(Refused):
    """The store is protected, and what was asked for is a decision without a signature."""

    kind = "unsigned"
    default_hint = HINT


class OwnerKey(msgspec.Struct, frozen=True, array_like=True):
    """The key that decisions are signed with.

    Attributes:
        public: the public key, 32 bytes.
        since: record time from which it is in force.
    """

    public: bytes
    since: int


class Signature(msgspec.Struct, frozen=True, array_like=True):
    """A signature over an entry of the log or a row of the audit chain.

    Attributes:
        key: id of the public key.
        signature: Ed25519, 64 bytes.
    """

    key: bytes
    signature: bytes


encode_owner = msgspec.msgpack.Encoder().encode
decode_owner = msgspec.msgpack.Decoder(OwnerKey).decode
encode_signature = msgspec.msgpack.Encoder().encode
decode_signature = msgspec.msgpack.Decoder(Signature).decode


# -- what the store says ------------------------------------------------------------------------


def owner_key(txn: Txn) -> OwnerKey | None:
    """The owner's public key, or None while the store is not protected."""
    data = txn.get("meta", OWNER_ROW)
    return None if data is None else decode_owner(data)


def store_id(txn: Txn) -> bytes | None:
    """Id of the store, or None when it never was protected."""
    data = txn.get("meta", STORE_ROW)
    return None if data is None else bytes(data)


def protected(reader: Reader) -> bool:
    """True when decisions need the owner's signature here."""
    return reader.txn.get("meta", OWNER_ROW) is not None


def require(tx: Tx, action: str, part: Part, ref: bytes) -> None:
    """Raise at once where a decision that is about to be made would be refused.

    The transaction asks by itself; this is for who has work to do before it comes to that.

    Raises:
        SignatureNeeded: the store is protected and the actor brings no key, or another one.
    """
    own = owner_key(tx.txn)
    if own is not None:
        _check_signer(tx, own, action, part.number, ref)


def _check_signer(tx: Tx, own: OwnerKey, action: str, part: int, ref: bytes | None) -> keys.Signer:
    signer = tx.actor.signer
    if signer is None or signer.public != own.public:
        what = "brings no key" if signer is None else "brings another key"
        raise SignatureNeeded(
            f"'{action}' needs the owner's signature in this store, and who asks {what}"
        ).audited(action, UNSIGNED, part, ref)
    return signer


# -- the rule -----------------------------------------------------------------------------------


def needs(entry: refs.Entry, before: refs.Entry | None, earlier: Earlier) -> bool:
    """Whether an entry is a decision that has to be signed in a protected store.

    Args:
        entry: the entry.
        before: the entry before it of the same ref, or None.
        earlier: gives the entry before another one of the same ref, or None.
    """
    stood = None if before is None else _stood(before, earlier)
    gains = entry.status == _VERIFIED and (stood is None or stood.status != _VERIFIED)
    held_back = stood is not None and (stood.status in _WAITS or stood.status == _ERASED)
    lets_out = entry.status in _OPEN and held_back
    if entry.origin is not None:  # a pack tells of decisions that were made elsewhere
        return gains or lets_out
    op = refs.OPS[entry.op]
    if op in ("approve", "purge"):
        return True
    if op == "release":
        return before is None or not _takes_back(entry, before, earlier)
    if op == "reject" and not is_automatic(entry):
        return True
    promoted = gains and before is not None and entry.new == entry.old
    return lets_out or promoted


def is_automatic(entry: refs.Entry) -> bool:
    """True for a rejection that no person decided on: of what was derived, linked, or undone."""
    if entry.op != _REJECT:
        return False
    return entry.reason in _AUTOMATIC or entry.reason.startswith(f"{refs.UNDO}-")


def _stood(entry: refs.Entry, earlier: Earlier) -> refs.Entry | None:
    """The last entry before the time of the ref was over, or its evidence gone; often this one."""
    found: refs.Entry | None = entry
    while found is not None and found.status in _OVER:
        found = earlier(found)
    return found


def _takes_back(entry: refs.Entry, before: refs.Entry, earlier: Earlier) -> bool:
    """True for a release of what the store itself rejected, and of nothing that waited before."""
    first = earlier(before) if is_automatic(before) else None
    if first is None:
        return False
    if entry.status == first.status:
        return True
    if not {entry.status, first.status} <= _OPEN:
        return False
    return entry.status != _VERIFIED or entry.reason == before.reason == LINK


# -- what is signed -----------------------------------------------------------------------------


def message(
    store: bytes, part: int, seq: int, ref: bytes | None, head: bytes | None, digest: bytes
) -> bytes:
    """The bytes that are signed: each field has its own length, so no two acts have the same.

    Args:
        store: id of the store.
        part: number of the partition; 0 for a row of the audit chain.
        seq: number of the entry, or of the row.
        ref: ref concerned; None is 32 zero bytes.
        head: head after the change, or the last one; None is 32 zero bytes.
        digest: BLAKE3-256 of the bytes of the entry or the row.
    """
    place = store + part.to_bytes(4, "big") + seq.to_bytes(8, "big")
    return _DOMAIN + place + (ref or _NOTHING) + (head or _NOTHING) + digest


def entry_message(store: bytes, part: int, entry: refs.Entry, digest: bytes) -> bytes:
    """The bytes that are signed for an entry of the ref log."""
    return message(store, part, entry.seq, entry.ref, entry.new or entry.old, digest)


def row_key(seq: int) -> bytes:
    """Key of the signature of a row of the audit chain; partitions are numbered from 1."""
    return bytes(4) + seq.to_bytes(8, "big")


class Guard:
    """What a transaction on a protected store asks before it appends."""

    def __init__(self, own: OwnerKey, store: bytes) -> None:
        """Take the key in force and the id of the store."""
        self.own = own
        self.store = store

    def entry(
        self, tx: Tx, part: Part, state: refs.RefState | None, entry: refs.Entry, digest: bytes
    ) -> None:
        """Sign an entry that is a decision.

        Raises:
            SignatureNeeded: the actor brings no key; nothing was appended.
        """
        if not self._asks(tx, part, state, entry):
            return
        op = refs.OPS[entry.op]
        signer = _check_signer(tx, self.own, op, part.number, entry.ref)
        said = entry_message(self.store, part.number, entry, digest)
        self._put(tx, part.prefix + entry.seq.to_bytes(8, "big"), signer, said)

    def row(self, tx: Tx, action: str, part: int, resource: bytes | None) -> keys.Signer | None:
        """The key to sign a row with, or None when it needs no signature.

        Raises:
            SignatureNeeded: the actor brings no key.
        """
        if action not in SIGNED_ROWS:
            return None
        return _check_signer(tx, self.own, action, part, resource)

    def sign_row(
        self, tx: Tx, signer: keys.Signer, seq: int, resource: bytes | None, digest: bytes
    ) -> None:
        """Sign a row of the audit chain."""
        said = message(self.store, 0, seq, resource, None, digest)
        self._put(tx, row_key(seq), signer, said)

    def _put(self, tx: Tx, key: bytes, signer: keys.Signer, said: bytes) -> None:
        made = Signature(keys.key_id(signer.public), signer.sign(said))
        tx.txn.put("signs", key, encode_signature(made))

    def _asks(self, tx: Tx, part: Part, state: refs.RefState | None, entry: refs.Entry) -> bool:
        changed = entry.status in _OPEN and (state is None or state.status != entry.status)
        if entry.op not in DECISIONS and not changed:
            return False

        def earlier(of: refs.Entry) -> refs.Entry | None:
            return read(tx.txn, part.prefix, of.prev)

        tx.flush()  # the entries before may be of this transaction
        return needs(entry, earlier(entry), earlier)


def guard(txn: Txn) -> Guard | None:
    """What a transaction has to ask, or None where the store is not protected.

    Raises:
        IntegrityError: the store is protected, but has lost its id.
    """
    own = owner_key(txn)
    if own is None:
        return None
    store = store_id(txn)
    if store is None or len(store) != STORE_ID_B:
        raise IntegrityError("the store is protected, but its id is missing")
    return Guard(own, store)


def read(txn: Txn, prefix: bytes, seq: int) -> refs.Entry | None:
    """An entry of a partition's log, or None for number 0 and for one that is not there."""
    data = txn.get("log", prefix + seq.to_bytes(8, "big")) if seq else None
    return None if data is None else refs.decode_entry(data)


# -- protecting ---------------------------------------------------------------------------------


def last_told(reader: Reader) -> bytes | None:
    """The public key that the audit chain says is in force, or None.

    It reads the chain from its end; ``protected`` answers faster, and should say the same.
    """
    for _, _, row in reader.audit_rows(reverse=True):
        if row.outcome == "done" and row.action in (PROTECT, UNPROTECT):
            return row.resource if row.action == PROTECT else None
    return None


def new_store_id(txn: Txn) -> bytes:
    """The id of the store, or a fresh one that protecting it will keep."""
    return store_id(txn) or os.urandom(STORE_ID_B)


def protect(tx: Tx, store: bytes) -> None:
    """Let decisions need the signature of the actor's key from now on.

    Args:
        tx: the write transaction of the owner, whose actor brings the key.
        store: id of the store, as the key file names it.

    Raises:
        Refused: it is protected already.
        ScopeRefused: the actor is not the owner.
        IntegrityError: the audit chain says that it is, yet it is not.
    """
    signer = tx.actor.signer
    assert signer is not None
    _owner_only(tx)
    if owner_key(tx.txn) is not None:
        raise Refused("the store is protected already", hint="'remem owner status' shows its key")
    if last_told(tx.reader) is not None:
        raise IntegrityError(
            "the audit chain says that the store is protected, but its key is gone"
        )
    if new_store_id(tx.txn) != store and store_id(tx.txn) is not None:
        raise Refused("the store got an id meanwhile", hint="run it again")
    own = OwnerKey(signer.public, tx.now)
    tx.txn.put("meta", STORE_ROW, store)
    tx.txn.put("meta", OWNER_ROW, encode_owner(own))
    tx.guard = Guard(own, store)
    tx.done(PROTECT, 0, own.public)


def unprotect(tx: Tx) -> None:
    """Let decisions need no signature any more; this one still does.

    Raises:
        Refused: it is not protected.
        ScopeRefused: the actor is not the owner.
        SignatureNeeded: the actor brings no key.
    """
    own = _own(tx)
    tx.done(UNPROTECT, 0, own.public)
    tx.txn.delete("meta", OWNER_ROW)
    tx.guard = None


def note_passphrase(tx: Tx) -> None:
    """Note that the key was sealed under another passphrase.

    Raises:
        Refused: it is not protected.
        SignatureNeeded: the actor brings no key.
    """
    tx.done(PASSPHRASE, 0, _own(tx).public)


def _own(tx: Tx) -> OwnerKey:
    _owner_only(tx)
    own = owner_key(tx.txn)
    if own is None:
        raise Refused("the store is not protected", hint="'remem owner protect' protects it")
    return own


def _owner_only(tx: Tx) -> None:
    grant = tx.actor.grant
    if not grant.owner:
        raise ScopeRefused(f"'{grant.principal}' may not change how the store is protected")
