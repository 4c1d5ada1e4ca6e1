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
from remem.objects.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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

    Case, Unicode form, white space, quotes and final punctuation do not make another value.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = unicodedata.normalize("NFKC", folded).translate(_QUOTES)
    words = " ".join(folded.split())
    return words.rstrip(_FINAL + " ")


def value_key(part: Part, text: str) -> bytes:
    """Key of a value in a partition: its keyed digest."""
    value = normal_value(text).encode("utf-8", "surrogatepass")
    return part.prefix + oid.keyed(part.key, b"value", value, length=DIGEST_B)


def blocked(tx: Tx, part: Part, text: str) -> bytes | None:
    """The ref whose tombstone keeps this text from being stored, or None."""
    if not tx.has_values:
        return None
    return tx.txn.get("values", value_key(part, text))


def bury(tx: Tx, part: Part, ref: bytes, texts: Iterable[str], reason: str) -> None:
    """Set the tombstone of a ref; texts are what must not come back (none: it may)."""
    keys = sorted({value_key(part, text) for text in texts if normal_value(text)})
    for key in keys:
        tx.txn.put("values", key, ref)
        tx.has_values = True
    tomb = Tomb(tx.now, tx.actor.grant.principal, reason, [k[4:] for k in keys], None)
    tx.txn.put("tombs", part.prefix + ref, _encode(tomb))


def get(reader: Reader, part: Part, ref: bytes) -> Tomb | None:
    """The tombstone of a ref, or None."""
    data = reader.txn.get("tombs", part.prefix + ref)
    return None if data is None else _decode(data)


def put(tx: Tx, part: Part, ref: bytes, tomb: Tomb) -> None:
    """Replace the tombstone of a ref."""
    tx.txn.put("tombs", part.prefix + ref, _encode(tomb))


def all_of(reader: Reader, part: Part) -> Iterator[tuple[bytes, Tomb]]:
    """Every tombstone of a partition that the grant covers, by ref."""
    for key, data in reader.txn.scan_prefix("tombs", part.prefix):
        state = reader.state(part, key[4:])
        if state is not None:
            yield key[4:], _decode(data)


def lift(tx: Tx, part: Part, ref: bytes) -> Tomb:
    """Let the values of a tombstone come back; the ref itself stays forgotten.

    Raises:
        NotFound: the ref has no tombstone.
    """
    tomb = get(tx.reader, part, ref)
    if tomb is None:
        raise NotFound(f"'{oid.short(ref)}' has no tombstone")
    others = {
        value: other
        for other, found in all_of(tx.reader, part)
        if other != ref
        for value in found.values
    }
    for value in tomb.values:
        key = part.prefix + value
        if tx.txn.get("values", key) != ref:
            continue
        if value in others:  # another tombstone blocks the same value
            tx.txn.put("values", key, others[value])
        else:
            tx.txn.delete("values", key)
    lifted = msgspec.structs.replace(tomb, values=[])
    put(tx, part, ref, lifted)
    return lifted
