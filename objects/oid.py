"""Object ids: BLAKE3-256 of an object's bytes, written as 64 hex digits.

Source: remem-store(5), OBJECTS.
"""

from __future__ import annotations

from blake3 import blake3

from remem.objects.errors import UsageError

ID_BYTES = 32
MIN_PREFIX = 7  # hex digits that a person may shorten an id to
SHOWN = 10  # hex digits that people see


def digest(data: bytes) -> bytes:
    """BLAKE3-256 of data."""
    return blake3(data).digest()


def keyed(key: bytes, *parts: bytes, length: int = 16) -> bytes:
    """Keyed BLAKE3 of length-prefixed parts; nothing can be told from it without the key.

    Args:
        key: 32 bytes.
        parts: what is digested; each is preceded by its length (u64, little-endian).
        length: bytes of the digest.
    """
    framed = b"".join([len(part).to_bytes(8, "little") + part for part in parts])
    return blake3(framed, key=key).digest(length)


def to_hex(oid: bytes) -> str:
    """An id as 64 hex digits."""
    return oid.hex()


def short(oid: bytes) -> str:
    """The first digits of an id, for people."""
    return oid.hex()[:SHOWN]


def distinct(oids: list[bytes]) -> list[str]:
    """The first digits of each id, as many as tell them apart."""
    for digits in range(SHOWN, 2 * ID_BYTES):
        names = [oid.hex()[:digits] for oid in oids]
        if len(set(names)) == len(names):
            return names
    return [oid.hex() for oid in oids]


def from_hex(text: str) -> bytes:
    """An id from 64 hex digits.

    Raises:
        UsageError: it is not one.
    """
    try:
        oid = bytes.fromhex(text)
    except ValueError:
        oid = b""
    if len(oid) != ID_BYTES:
        raise UsageError(f"'{text[:80]}' is not an object id", hint="an id has 64 hex digits")
    return oid


def prefix_range(prefix: str) -> tuple[bytes, bytes | None]:
    """The range of ids [start, stop) that begin with these hex digits.

    Raises:
        UsageError: fewer than 7 digits, more than 64, or not hex.
    """
    text = prefix.lower()
    if not MIN_PREFIX <= len(text) <= 2 * ID_BYTES or text.strip("0123456789abcdef"):
        raise UsageError(
            f"'{prefix[:80]}' is not an object id",
            hint=f"give at least {MIN_PREFIX} hex digits of it, or @{{last}}",
        )
    width = 2 * ID_BYTES
    start = int(text.ljust(width, "0"), 16)
    stop = int(text.ljust(width, "f"), 16) + 1
    return (
        start.to_bytes(ID_BYTES, "big"),
        None if stop >> (8 * ID_BYTES) else stop.to_bytes(ID_BYTES, "big"),
    )
