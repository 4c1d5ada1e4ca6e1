"""The audit chain: one content-free row for each change and each refusal worth knowing.

A row holds the hash of the row before it; the store keeps number and hash of the last row, so that
a row taken from either end or the middle, or edited, is found.

Source: remem-store(5), AUDIT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

if TYPE_CHECKING:
    from remem.objects.attests import Attests

ROOT = bytes(32)
_PREFIX = b"remem audit 1\0"


class Row(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One row; no content, no digest of content, no free text.

    Attributes:
        seq: number from 1, without gaps.
        time: record time, microseconds UTC.
        principal: who acted.
        surface: cli, hook, mcp, cron or api.
        action: op of the ref log, or what was refused.
        part: number of the scope partition, 0 for the store as a whole.
        resource: ref concerned, or None.
        outcome: "done" or a reason code of the refusal.
        entry: seq of the ref-log entry recorded with it, or 0.
        digest: BLAKE3-256 of that entry's bytes, or None.
        prev: hash of the row before, 32 zero bytes at the first.
    """

    seq: int
    time: int
    principal: str
    surface: str
    action: str
    part: int
    resource: bytes | None
    outcome: str
    entry: int
    digest: bytes | None
    prev: bytes

    def said(self) -> dict[str, bytes | bool] | None:
        """What it says of rows in other tables (`remem.objects.attests`), or None."""
        return None


class AttestingRow(Row, frozen=True, gc=False, array_like=True):
    """A row with one more field: what it says of rows in other tables."""

    attests: dict[str, bytes | bool] | None = None

    def said(self) -> dict[str, bytes | bool] | None:
        """The field."""
        return self.attests


class Head(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Number and hash of the last row."""

    seq: int
    hash: bytes


encode_row = msgspec.msgpack.Encoder(order="deterministic").encode
_decode_plain = msgspec.msgpack.Decoder(Row).decode
_decode_attesting = msgspec.msgpack.Decoder(AttestingRow).decode
_PLAIN = 0x90 + len(Row.__struct_fields__)  # MessagePack: the first byte of so short an array
encode_head = msgspec.msgpack.Encoder().encode
decode_head = msgspec.msgpack.Decoder(Head).decode


def decode_row(data: bytes) -> Row:
    """A row from its bytes; of the class that has as many fields, so that it encodes the same.

    Raises:
        msgspec.MsgspecError: the bytes are none.
    """
    return _decode_attesting(data) if data and data[0] > _PLAIN else _decode_plain(data)


def attesting(row: Row, attests: Attests) -> Row:
    """The same row, saying something of rows in other tables."""
    return AttestingRow(*(*msgspec.structs.astuple(row), attests))


def row_hash(data: bytes) -> bytes:
    """Hash of a row's bytes, as the next row holds it."""
    return blake3(_PREFIX + data).digest()
