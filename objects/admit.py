"""Taking evidence in: the one path by which an observation enters the store.

gate (`remem.objects.gate`) -> normalise -> size and encoding -> scope -> repeat of a source id ->
address -> repeat of the address -> object, ref-log entry, audit row, receipt.  Every door (command
line, import, hooks, agents) ends here, and nothing looks at a text before the gate has.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import msgspec

from remem.objects import encode, gate, lists, receipts, refs, tombs, withheld
from remem.objects.errors import BadInput, UsageError
from remem.objects.model import ORIGINS, ROLES, Incoming, Observation, Source
from remem.objects.receipts import Receipt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remem.objects.reader import Part
    from remem.objects.tx import Tx

DEFAULT_LIMIT_B = 16 * 2**20
MAX_LABEL_B = 1024
_LIMIT_HINT = "split it, or raise admission.max_mib in config.toml"

# What nobody can see any more: saying it again is new evidence, never silently "known".
_GONE = frozenset(refs.STATUS_CODE[s] for s in ("erased", "rejected", "expired"))
# What words claimed for the owner are while nobody vouched for the pack that brought them.
_FOREIGN = frozenset((refs.UNVOUCHED, "quarantined"))


class Admitted(msgspec.Struct, frozen=True, gc=False):
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


def decode_text(raw: bytes, what: str, limit_b: int = DEFAULT_LIMIT_B) -> str:
    """Text from UTF-8 bytes; a byte-order mark at the start is dropped.

    Raises:
        BadInput: there are too many bytes, or they are not UTF-8; the message names the offset.
    """
    if len(raw) > limit_b:
        raise BadInput(f"{what} has more than {limit_b:,} bytes", hint=_LIMIT_HINT)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{what} is not UTF-8 (byte {error.start})",
            hint="convert it first, for example with 'iconv -f LATIN1 -t UTF-8'",
        ) from error


def admit(
    tx: Tx,
    record: Incoming,
    *,
    limit_b: int = DEFAULT_LIMIT_B,
    corrects: bytes | None = None,
    lasts: int | None = None,
    reason: str = "",
    codes: Sequence[str] = (),
) -> Admitted:
    """Take one piece of evidence in.

    Args:
        tx: the write transaction.
        record: what came in.
        limit_b: largest text, bytes of UTF-8.
        corrects: ref that this evidence corrects, or None.
        lasts: for how long it is kept, microseconds, or None for good (`remem.objects.tiers`).
        reason: reason code of the entry that begins it.
        codes: what the gate found before, for the receipt.

    Returns:
        What became of it; nothing is stored unless status is "new".

    Raises:
        BadInput: empty, not encodable, too large, or a label outside its set.
        ScopeRefused: the actor may not write there.
    """
    _check_words(record)
    record, receipt = gate.observation(tx, record)
    if codes:
        receipt = msgspec.structs.replace(receipt, codes=[*codes, *receipt.codes])
    text, raw = _checked(record, limit_b)
    scope = tx.place(record.collection, record.agent, record.session)
    part = tx.part(scope)
    if tx.has_values:
        beside = (record.speaker, record.source_uri, record.source_id, record.tool, record.kind)
        tomb = tombs.blocked(tx, part, text)
        tomb = tomb or tombs.named(tx, part, (*beside, *tombs.strings(record.meta)))
        if tomb is not None:
            tx.refuse("add", "tombstone", part.number, tomb)
            return Admitted(tomb, tomb, "blocked", Receipt("blocked", ["tombstone"]))
    if withheld.holds_back(tx, part, (text,), record.origin):
        receipt = msgspec.structs.replace(
            receipt, status="quarantined", codes=[*receipt.codes, withheld.HELD_BEFORE]
        )
        reason = reason or withheld.HELD_BEFORE
    source_key = b""
    if record.source_id:
        source_key = part.source_key(record.source_uri, record.source_id)
        known = tx.txn.get("sources", source_key)
        if known is not None and tombs.blocks(tx, part, known):
            tx.refuse("add", "tombstone", part.number, known)
            return Admitted(known, known, "blocked", Receipt("blocked", ["tombstone"]))
        if known is not None and _still_there(tx, part, known) and not _foreign(tx, part, known):
            return Admitted(_head_of(tx, part, known), known, "known", receipt)
    source = None
    if record.source_uri or record.source_id or record.tool:
        source = Source(record.source_uri, record.source_id, record.tool)
    asserted, meta = record.asserted, record.meta
    again_key = b""
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
            corrects,
            record.kind,
            meta,
        )
        object_id, data = _sealed(observation, part, limit_b)
        if lasts is not None:
            kept = _kept_for_good(tx, part, observation, limit_b)
            if kept is not None:
                return Admitted(kept, kept, "known", receipt)
        ref = object_id
        stored = tx.txn.get("refs", part.prefix + ref)
        if stored is None and tx.has_revisions:
            ref = tx.reader.ref_of(part, object_id)
            stored = tx.txn.get("refs", part.prefix + ref)
        if stored is None:  # the same evidence may have come with a pack, under its own salt
            twin = tx.twin(part, object_id)
            if twin is not None:
                object_id = ref = twin
                stored = tx.txn.get("refs", part.prefix + twin)
        if stored is None:
            break
        state = refs.decode_state(stored)
        told = asserted is not None or source is not None
        # What a stranger's pack says in the owner's name does not stand for the owner's own words.
        own = receipt.status != "verified" or refs.STATUSES[state.status] not in _FOREIGN
        if own and (_holds(tx, part, state, object_id) or (told and not _gone(tx, state))):
            return Admitted(object_id, ref, "known", receipt)
        # Said again after it was replaced, or forgotten and let back: new evidence, of now, unless
        # that was said already.
        again_key = part.again_key(object_id)
        again = tx.txn.get("sources", again_key)
        later = None if again is None else tx.reader.state(part, again)
        if again is not None and later is not None and _holds(tx, part, later, again):
            return Admitted(again, again, "known", receipt)
        if told or tx.present != tx.now:  # else its time tells it from what was said before
            meta = {**record.meta, "again": tx.now}
        if not told:
            asserted = tx.present
    tx.store_object(part, object_id, data, observation)
    attests = receipts.put(tx, part, object_id, receipt) if receipt.codes else None
    if source_key:
        tx.txn.put("sources", source_key, object_id)
    if again_key:
        tx.txn.put("sources", again_key, object_id)
    tx.create(
        part,
        object_id,
        kind=refs.OBSERVATION,
        lane=tx.lane(part, scope),
        status=receipt.status,
        valid_from=asserted,
        valid_to=None if lasts is None else tx.present + lasts,
        reason=reason,
        attests=attests,
    )
    return Admitted(object_id, object_id, "new", receipt)


def _gone(tx: Tx, state: refs.RefState) -> bool:
    """Whether nobody can see a ref any more: withheld for good, or kept for a time that is over."""
    return state.status in _GONE or refs.ran_out(state, tx.present)


def _kept_for_good(tx: Tx, part: Part, note: Observation, limit_b: int) -> bytes | None:
    """The ref that says already, and for good, what is to be kept for a time."""
    meta = {name: value for name, value in note.meta.items() if name != lists.TIER}
    object_id, _ = _sealed(msgspec.structs.replace(note, meta=meta), part, limit_b)
    ref = tx.reader.ref_of(part, object_id)
    state = tx.reader.state(part, ref)
    return ref if state is not None and _holds(tx, part, state, object_id) else None


def _foreign(tx: Tx, part: Part, ref: bytes) -> bool:
    """Whether a pack that nobody vouched for brought it: such a claim to a source is no claim."""
    state = tx.reader.state(part, ref)
    return state is not None and refs.STATUSES[state.status] == refs.UNVOUCHED


def _still_there(tx: Tx, part: Part, ref: bytes) -> bool:
    """Whether a ref lies within the grant and can be seen by some view."""
    state = tx.reader.state(part, ref)
    return state is not None and not _gone(tx, state)


def _head_of(tx: Tx, part: Part, ref: bytes) -> bytes:
    state = tx.reader.state(part, ref)
    return state.head if state is not None and state.head is not None else ref


def _holds(
    tx: Tx,
    part: Part,
    state: refs.RefState,
    object_id: bytes,
    seen: frozenset[bytes] = frozenset(),
) -> bool:
    """True while an object is what its ref says, and what it says holds.

    Its ref was neither replaced nor closed, and no memory drawn from it was.  Refs that replace
    each other in a circle, which a pack may bring, hold nowhere.
    """
    if state.head != object_id or _gone(tx, state) or state.flags & refs.CLOSED:
        return False
    if state.replaced_by is not None:
        by = state.replaced_by
        return by not in seen and _stands_for(tx, part, by, object_id, seen | {by})
    if next(tx.txn.scan_prefix("cites", part.prefix + object_id), None) is None:
        return True
    from remem.objects.views import CURRENT, Eye, Lens

    return Eye(Lens(tx.present), tx.reader).evidence(part, object_id)[0] == CURRENT


def _stands_for(tx: Tx, part: Part, ref: bytes, copy: bytes, seen: frozenset[bytes]) -> bool:
    """Whether evidence was retired as a copy of what says the same, and that holds."""
    state = tx.reader.state(part, ref)
    if state is None or state.type != refs.OBSERVATION or state.head is None:
        return False
    kept = tx.txn.get("objects", part.prefix + state.head)
    own = tx.txn.get("objects", part.prefix + copy)
    if kept is None or own is None:
        return False
    same = (tombs.normal_value(encode.decode(data).text) for data in (kept, own))
    return len(set(same)) == 1 and _holds(tx, part, state, state.head, seen)


def _sealed(observation: Observation, part: Part, limit_b: int) -> tuple[bytes, bytes]:
    """Id and bytes of an observation.

    Raises:
        BadInput: a field cannot be encoded, or all of them together are far too large.
    """
    try:
        object_id, data = encode.seal(observation, part.key)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadInput(f"a field of the record cannot be stored: {error}") from error
    if len(data) > 3 * limit_b + 2**16:  # text, raw bytes and the other fields
        raise BadInput(f"the record has {len(data):,} bytes", hint=_LIMIT_HINT)
    return object_id, data


def _check_words(record: Incoming) -> None:
    """Raise for an origin or a role outside its set."""
    if record.origin not in ORIGINS:
        raise BadInput(f"'{record.origin}' is no origin", hint="one of " + ", ".join(ORIGINS))
    if record.role not in ROLES:
        raise BadInput(f"'{record.role}' is no role", hint="one of " + ", ".join(ROLES[:-1]))


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
    raw = record.raw if record.raw is not None else given
    size_b = max(len(encoded), len(raw))
    if size_b > limit_b:
        raise BadInput(f"the text has {size_b:,} bytes, the limit is {limit_b:,}", hint=_LIMIT_HINT)
    for value in (record.speaker, record.source_uri, record.source_id, record.tool, record.kind):
        if value and (len(value) > MAX_LABEL_B or not value.isascii()):
            _check_labels(record)
            break
    return text, None if raw == encoded else raw


def _check_labels(record: Incoming) -> None:
    """Raise for a label that is too long or cannot be encoded."""
    for name in ("speaker", "source_uri", "source_id", "tool", "kind"):
        value: str = getattr(record, name)
        try:
            size_b = len(value.encode())
        except UnicodeEncodeError as error:
            raise BadInput(f"the {name} is not UTF-8") from error
        if size_b > MAX_LABEL_B:
            raise UsageError(f"the {name} is longer than {MAX_LABEL_B} bytes")
