"""Taking evidence in: the one path by which an observation enters the store.

normalise -> size and encoding -> scope -> repeat of a source id -> address -> repeat of the address
-> object, ref-log entry, audit row.  Every door (command line, import, hooks, agents) ends here.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import msgspec

from remem.objects import encode, oid, refs
from remem.objects.errors import BadInput, UsageError
from remem.objects.model import ORIGINS, ROLES, Incoming, Observation, Source

if TYPE_CHECKING:
    from remem.objects.reader import Part
    from remem.objects.tx import Tx

DEFAULT_LIMIT_B = 16 * 2**20
MAX_LABEL_B = 1024

STATUS_OF_ORIGIN = {
    "owner": "verified",
    "agent": "provisional",
    "tool": "provisional",
    "untrusted": "provisional",
}


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    """What the admission gate decided: status and reason codes."""

    status: str
    codes: list[str]


class Admitted(msgspec.Struct, frozen=True):
    """Outcome of one admission.

    Attributes:
        id: object id (of the one that was known already, when it was).
        ref: its ref.
        status: "new", "known" or "blocked".
        receipt: decision of the gate.
    """

    id: bytes
    ref: bytes
    status: str
    receipt: Receipt


def normalise(text: str) -> str:
    """Text as it is stored: NFC, line feeds only."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def decode_text(raw: bytes, what: str) -> str:
    """Text from UTF-8 bytes; a byte-order mark at the start is dropped.

    Raises:
        BadInput: the bytes are not UTF-8; the message names the offset.
    """
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{what} is not UTF-8 (byte {error.start})",
            hint="convert it first, for example with 'iconv -f LATIN1 -t UTF-8'",
        ) from error


def admit(tx: Tx, record: Incoming, *, limit_b: int = DEFAULT_LIMIT_B) -> Admitted:
    """Take one piece of evidence in.

    Args:
        tx: the write transaction.
        record: what came in.
        limit_b: largest text, bytes of UTF-8.

    Returns:
        What became of it; nothing is stored unless status is "new".

    Raises:
        BadInput: empty, not encodable, too large, or a label outside its set.
        ScopeRefused: the actor may not write there.
    """
    text, raw = _checked(record, limit_b)
    scope = tx.place(record.collection, record.agent, record.session)
    part = tx.part(scope)
    receipt = Receipt(STATUS_OF_ORIGIN[record.origin], [])
    source_key = b""
    if record.source_id:
        source_key = part.prefix + oid.keyed(
            part.key, record.source_uri.encode(), record.source_id.encode()
        )
        known = tx.txn.get("sources", source_key)
        if known is not None:
            return Admitted(_head_of(tx, part, known), known, "known", receipt)
    source = None
    if record.source_uri or record.source_id or record.tool:
        source = Source(record.source_uri, record.source_id, record.tool)
    asserted = record.asserted
    while True:
        observation = Observation(
            encode.ZERO_SALT,
            scope,
            raw,
            text,
            record.role,
            record.speaker,
            record.origin,
            source,
            asserted,
            record.offset,
            None,
            record.kind,
            record.meta,
        )
        object_id, data = encode.seal(observation, part.key)
        ref = object_id
        stored = tx.txn.get("refs", part.prefix + ref)
        if stored is None and tx.has_revisions:
            ref = tx.reader.ref_of(part, object_id)
            stored = tx.txn.get("refs", part.prefix + ref)
        if stored is None:
            break
        state = refs.decode_state(stored)
        current = state.replaced_by is None and not state.flags & refs.CLOSED
        if current or asserted is not None or source is not None:
            return Admitted(object_id, ref, "known", receipt)
        asserted = tx.now  # said again after it was replaced: new evidence, of now
    tx.store_object(part, object_id, data, observation)
    if source_key:
        tx.txn.put("sources", source_key, object_id)
    tx.create(
        part,
        object_id,
        kind=refs.OBSERVATION,
        lane=tx.lane(part, scope),
        status=receipt.status,
        valid_from=asserted,
    )
    return Admitted(object_id, object_id, "new", receipt)


def _head_of(tx: Tx, part: Part, ref: bytes) -> bytes:
    state = tx.reader.state(part, ref)
    return state.head if state is not None and state.head is not None else ref


def _checked(record: Incoming, limit_b: int) -> tuple[str, bytes | None]:
    """Normalised text and, where it differs, the raw bytes."""
    text = normalise(record.text)
    if not text.strip():
        raise BadInput("the text is empty", hint="give some text, or '-' to read it from stdin")
    try:
        encoded = text.encode()
        given = encoded if record.text is text else record.text.encode()
    except UnicodeEncodeError as error:
        raise BadInput("the text holds half a surrogate pair, which is not UTF-8") from error
    if len(encoded) > limit_b:
        raise BadInput(
            f"the text has {len(encoded):,} bytes, the limit is {limit_b:,}",
            hint="split it, or raise admission.max_mib in config.toml",
        )
    if record.origin not in ORIGINS:
        raise BadInput(f"'{record.origin}' is no origin", hint="one of " + ", ".join(ORIGINS))
    if record.role not in ROLES:
        raise BadInput(f"'{record.role}' is no role", hint="one of " + ", ".join(ROLES[:-1]))
    for name in ("speaker", "source_uri", "source_id", "tool", "kind"):
        value: str = getattr(record, name)
        if len(value) > MAX_LABEL_B:
            raise UsageError(f"the {name} is longer than {MAX_LABEL_B} bytes")
    raw = record.raw if record.raw is not None else given
    return text, None if raw == encoded else raw
