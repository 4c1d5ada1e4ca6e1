"""Tombstones: that something went, never what; and what keeps it from coming back.

A tombstone keeps id, reason code, time, principal and, unless coming back was allowed, keyed
digests of the normalised values.  The digests never leave the store.  Every path that stores text
asks ``blocked`` first.

Source: remem-store(5), TOMBSTONES.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import msgspec

from remem.objects import oid
from remem.objects.errors import Blocked, NotFound
from remem.objects.model import Draft, Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remem.objects.encode import Obj, Stored
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

DIGEST_B = 32
_QUOTES = dict.fromkeys(
    map(ord, "\"'`\u00ab\u00bb\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2039\u203a"), None
)
_FINAL = ".!?,;:\u2026\u3002\uff01\uff1f\u3001"


class Tomb(msgspec.Struct, frozen=True, array_like=True):
    """What is left of a ref.

    Attributes:
        time: record time of the forgetting, microseconds UTC.
        principal: who did it.
        reason: reason code, may be empty.
        values: keyed digests of what must not come back; empty where it may.
        purged: record time at which the bytes were removed, or None while they wait for it.
    """

    time: int
    principal: str
    reason: str
    values: list[bytes]
    purged: int | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Tomb).decode


def normal_value(text: str) -> str:
    """A text as it is compared with what was forgotten.

    Case, Unicode form, white space, quotes and final punctuation do not make another value; a text
    of nothing but these is taken as it is.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = unicodedata.normalize("NFKC", folded)
    words = " ".join(folded.translate(_QUOTES).split())
    return words.rstrip(_FINAL + " ") or " ".join(folded.split())


def value_key(part: Part, text: str) -> bytes:
    """Key of a value in a partition: its keyed digest."""
    value = normal_value(text).encode("utf-8", "surrogatepass")
    return part.prefix + oid.keyed(part.key, b"value", value, length=DIGEST_B)


def values_of(obj: Stored) -> list[str]:
    """What of an object must not come back: its text, and a triple in plain words."""
    if isinstance(obj, Draft | Run):
        return []
    triple = getattr(obj, "triple", None)
    if triple is None:
        return [obj.text]
    subject, predicate, value = triple
    plain = f"{subject} {predicate.replace('_', ' ')} {value}"
    return list(dict.fromkeys((obj.text, plain)))


def blocked(tx: Tx, part: Part, text: str) -> bytes | None:
    """The ref whose tombstone keeps this text from being stored, or None."""
    if not tx.has_values:
        return None
    return tx.txn.get("values", value_key(part, text))


def check(tx: Tx, part: Part, obj: Obj, action: str) -> None:
    """Raise when a tombstone keeps an object from being stored.

    Raises:
        Blocked: it does; the refusal has a row of the audit chain.
    """
    for value in values_of(obj) if tx.has_values else ():
        ref = blocked(tx, part, value)
        if ref is not None:
            raise refusal(part, ref, action)


def refusal(part: Part, ref: bytes, action: str) -> Blocked:
    """The error for what the tombstone of a ref keeps out."""
    return Blocked(
        "blocked by tombstone: this was forgotten here",
        hint=f"'remem tombstones lift {oid.short(ref)}' lets it come back",
    ).audited(action, "tombstone", part.number, ref)


def bury(tx: Tx, part: Part, ref: bytes, texts: Iterable[str], reason: str) -> None:
    """Set the tombstone of a ref; texts are what must not come back (none: it may)."""
    keys = sorted({value_key(part, text) for text in texts if normal_value(text)})
    for key in keys:
        tx.txn.put("values", key, ref)
        tx.has_values = True
    put(tx, part, ref, Tomb(tx.now, tx.actor.grant.principal, reason, [k[4:] for k in keys], None))


def get(reader: Reader, part: Part, ref: bytes) -> Tomb | None:
    """The tombstone of a ref, or None."""
    data = reader.txn.get("tombs", part.prefix + ref)
    return None if data is None else _decode(data)


def put(tx: Tx, part: Part, ref: bytes, tomb: Tomb) -> None:
    """Set or replace the tombstone of a ref."""
    tx.reader.forgets = True
    tx.txn.put("tombs", part.prefix + ref, _encode(tomb))


def blocks(tx: Tx, part: Part, ref: bytes) -> bool:
    """True for a ref that was forgotten for good: what has its source's id must not come back."""
    tomb = get(tx.reader, part, ref) if tx.reader.forgets else None
    return tomb is not None and bool(tomb.values)


def all_of(reader: Reader, part: Part) -> Iterator[tuple[bytes, Tomb]]:
    """Every tombstone of a partition that the grant covers, by ref."""
    for key, data in reader.txn.scan_prefix("tombs", part.prefix):
        state = reader.state(part, key[4:])
        if state is not None:
            yield key[4:], _decode(data)


def lift(tx: Tx, part: Part, ref: bytes) -> list[bytes]:
    """Let the values of a tombstone come back; the ref itself stays forgotten.

    Returns:
        Refs of other tombstones that still block some of these values.

    Raises:
        NotFound: the ref has no tombstone.
    """
    tomb = get(tx.reader, part, ref)
    if tomb is None:
        raise NotFound(f"'{oid.short(ref)}' has no tombstone")
    others = _unlist(tx, part, ref, tomb)
    put(tx, part, ref, msgspec.structs.replace(tomb, values=[]))
    tx.refuse("lift", "done", part.number, ref)
    return others


def remove(tx: Tx, part: Part, ref: bytes) -> None:
    """Take a tombstone away altogether, for a ref that is not forgotten any more."""
    tomb = get(tx.reader, part, ref)
    if tomb is not None:
        _unlist(tx, part, ref, tomb)
        tx.txn.delete("tombs", part.prefix + ref)


def _unlist(tx: Tx, part: Part, ref: bytes, tomb: Tomb) -> list[bytes]:
    """Free the values of one tombstone, or leave them to others that list them too."""
    own = set(tomb.values)
    others: dict[bytes, bytes] = {}
    for key, data in tx.txn.scan_prefix("tombs", part.prefix):
        if own and key[4:] != ref:
            others.update(dict.fromkeys(own.intersection(_decode(data).values), key[4:]))
    for value in own:
        key = part.prefix + value
        if value in others:
            tx.txn.put("values", key, others[value])
        elif tx.txn.get("values", key) == ref:
            tx.txn.delete("values", key)
    return sorted(set(others.values()))
