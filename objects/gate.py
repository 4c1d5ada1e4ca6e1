"""The admission gate: what every text passes before it is kept, and what is decided about it.

In this order: private regions go, secrets are replaced, in every field; a principal that is not the
owner speaks with no word of the owner's; then text from tools or strangers that speaks to its
reader is quarantined, and so is a derived claim that does not rest on the passage it cites.  Of an
agent's words, and of all that a principal other than the owner states, the strong rules alone hold.
Nothing is stored, compared or named in a message before the first two.

The rules are words and forms (`remem.objects.instructions`, `remem.objects.grounding`,
`remem.objects.detectors`); no model judges, and the receipt says so by naming what did.

Source: remem(7), ADMISSION.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from remem.objects import receipts, redact
from remem.objects.detectors import LIBRARY, OWN
from remem.objects.errors import BadInput
from remem.objects.model import Observation
from remem.objects.receipts import FROM_PACK, STATUS_OF_ORIGIN, Receipt
from remem.objects.scope import BUILT_IN

if TYPE_CHECKING:
    from remem.objects.attests import Attests
    from remem.objects.model import Incoming, Memory
    from remem.objects.reader import Part
    from remem.objects.tx import Tx

VERSION = 2
DETECTORS = [OWN, LIBRARY, "instructions/3", "agents/1", "grounding/1"]

INSTRUCTION = "instruction:"  # codes of what speaks to its reader begin so
LOWERED = "origin_lowered"  # a principal spoke in the owner's name
SUSPECT = frozenset(("tool", "untrusted"))
_SHORTEST = 7  # code points of the shortest label that could hold a secret ("pwd=abc")
_LONGEST_NAME = 20  # code points of a speaker that cannot be a sentence
_LONG_ID = 14  # code points of the shortest id that could be a token
_DIGITS = dict.fromkeys(range(48, 58), "0")
_MAX_REMEMBERED = 512  # code points of the longest value of meta that is remembered
_LABELS = ("speaker", "source_uri", "source_id", "tool", "kind")
_NOTHING = "nothing is left to keep: all of the text is marked private"
_MAX_DEPTH = 64  # of nested values in meta


class NothingLeft(BadInput):
    """All of a text is marked private."""


_DEFAULTS = {
    origin: Receipt(status, [], VERSION, DETECTORS) for origin, status in STATUS_OF_ORIGIN.items()
}


# -- evidence -----------------------------------------------------------------------------------


def observation(tx: Tx, record: Incoming) -> tuple[Incoming, Receipt]:
    """The record as it may be stored, under the origin that it may have, and its receipt.

    Args:
        tx: the write transaction; its grant says who speaks.
        record: what came in, of a known origin.

    Raises:
        NothingLeft: all of the text is marked private.
    """
    if tx.gate != VERSION:
        receipts.stamp(tx, VERSION, DETECTORS)
    grant = tx.actor.grant
    lowered = not grant.owner and grant.word(record.origin) != record.origin
    plain = _is_plain(record)
    if plain and not lowered and record.origin == "owner":
        return record, _DEFAULTS[record.origin]  # so it is with nearly all
    codes: list[str] = []
    if lowered:
        record = msgspec.structs.replace(record, origin=grant.word(record.origin))
        codes.append(LOWERED)
    if not plain:
        record, found = cleaned(record)
        codes += found
    status = STATUS_OF_ORIGIN[record.origin]
    against = instructions_in(record)
    if against:
        status = "quarantined"
        codes += against
    if not codes:
        return record, _DEFAULTS[record.origin]
    return record, Receipt(status, codes, VERSION, DETECTORS)


def instructions_in(said: Incoming | Observation) -> list[str]:
    """Codes of what speaks to its reader; none for the owner's words.

    Of an agent the strong rules are asked alone, and of a name that somebody gives a speaker.
    """
    if said.origin == "owner":
        return []
    from remem.objects import instructions

    named = instructions.of_agent(said.speaker) if len(said.speaker) > _LONGEST_NAME else []
    if said.origin not in SUSPECT:
        return sorted({*named, *instructions.of_agent(said.text)})
    return sorted({*named, *instructions.codes(said.text, said.kind)})


def against(tx: Tx, claim: Memory) -> list[str]:
    """Codes of what speaks to its reader in a claim that somebody else than the owner makes.

    What the store derives goes with its evidence, which was looked at when it came in.
    """
    grant = tx.actor.grant
    if grant.owner or grant.principal in BUILT_IN:
        return []
    from remem.objects import instructions

    said = dict.fromkeys((claim.text, *(claim.triple or ()), *claim.cues, claim.trigger))
    whole = " ".join(claim.triple or ())
    return sorted({code for text in (*said, whole) for code in instructions.of_agent(text)})


def holds_back(codes: list[str]) -> bool:
    """Whether codes of a receipt tell that something speaks to its reader."""
    return any(code.startswith(INSTRUCTION) for code in codes)


def text(given: str) -> tuple[str, list[str]]:
    """A text without private regions and secrets, and codes of what went.

    Raises:
        NothingLeft: all of it is marked private.
    """
    tally = redact.Tally()
    left = tally.clean(given)
    if not left.strip() and given.strip():
        raise NothingLeft(_NOTHING)
    return left, tally.codes()


def cleaned(record: Incoming) -> tuple[Incoming, list[str]]:
    """A record without private regions and secrets in any of its fields, and codes of what went.

    Raises:
        NothingLeft: all of its text is marked private.
    """
    if _is_plain(record):
        return record, []
    tally = redact.Tally()
    changes: dict[str, object] = {}
    text = tally.clean(record.text)
    if text is not record.text:
        if not text.strip() and record.text.strip():
            raise NothingLeft(_NOTHING)
        changes["text"] = text
    for name in _LABELS:
        value: str = getattr(record, name)
        label = tally.clean(value)
        if label is not value:
            # Two ids that differ by a secret alone must not be taken for one.
            changes[name] = "" if name == "source_id" else label
    if record.meta:
        meta = tally.value(record.meta, _MAX_DEPTH)
        if meta is not record.meta:
            changes["meta"] = meta
    if record.raw is not None:
        raw = _raw(record.raw, tally, "text" in changes)
        if raw is not record.raw:
            changes["raw"] = raw
    if not changes:
        return record, []
    return msgspec.structs.replace(record, **changes), tally.codes()


def _is_plain(record: Incoming) -> bool:
    """True when no field of a record needs a closer look."""
    if record.raw is not None or redact.suspect(record.text):
        return False
    if record.meta and not _is_plain_meta(record.meta):
        return False
    given = record.source_id
    if len(given) < _SHORTEST:
        given = ""
    elif len(given) < _LONG_ID:
        # Without a run of a token's length its digits tell nothing but that they are there.
        given = given.translate(_DIGITS)
    elif redact.suspect(given):
        return False
    else:
        given = ""
    return _are_plain(given, record.speaker, record.source_uri, record.tool, record.kind)


@lru_cache(4096)
def _are_plain(*labels: str) -> bool:
    """Labels repeat from record to record."""
    return not any(len(label) >= _SHORTEST and redact.suspect(label) for label in labels)


def _is_plain_meta(meta: dict[str, object]) -> bool:
    """True for names of texts and numbers that need no closer look; values within values do."""
    for name, value in meta.items():
        kind = type(value)
        if kind is str:
            text = str(value)
        elif kind is int or kind is float or value is None or kind is bool:
            text = ""
        else:
            return False
        if len(text) > _MAX_REMEMBERED or not _is_plain_pair(name, text):
            return False
    return True


@lru_cache(8192)
def _is_plain_pair(name: str, value: str) -> bool:
    """Folders, terminals and branches repeat from record to record."""
    given = {name: value}
    return redact.Tally().value(given, 1) is given


def _raw(raw: bytes, tally: redact.Tally, differs: bool) -> bytes | None:
    """Raw bytes as they may be stored: redacted as the text is, None where that cannot be done.

    What the text shows already is counted there, and not once more.
    """
    own = redact.Tally() if differs else tally
    try:
        given = raw.decode()
    except UnicodeDecodeError:
        # In another encoding it is not known what stands for what.
        return None if differs or redact.clean(raw.decode("latin-1"))[1] else raw
    left = own.clean(given)
    return raw if left is given else left.encode()


# -- memories -----------------------------------------------------------------------------------


def memory(tx: Tx, claim: Memory) -> tuple[Memory, list[str]]:
    """A memory without private regions and secrets in any of its fields, and codes of what went.

    A secret that its text shows is taken out of its triple, cues and anchors too, where nothing
    but the text would tell that it is one.

    Raises:
        NothingLeft: all of its text is marked private.
    """
    receipts.stamp(tx, VERSION, DETECTORS)
    tally = redact.Tally()
    text = tally.clean(claim.text)
    if not text.strip() and claim.text.strip():
        raise NothingLeft(_NOTHING)
    triple = None if claim.triple is None else tally.triple(claim.triple)
    text = tally.clean(text)
    cues = [tally.clean(cue) for cue in claim.cues]
    anchors = [tally.clean(anchor) for anchor in claim.anchors]
    trigger = tally.clean(claim.trigger)
    meta = tally.value(claim.meta, _MAX_DEPTH) if claim.meta else claim.meta
    if not tally.changed:
        return claim, []
    span = claim.span if text == claim.text else None
    made: Memory = msgspec.structs.replace(
        claim,
        text=text,
        triple=triple,
        cues=cues,
        anchors=anchors,
        trigger=trigger,
        meta=meta,
        span=span,
    )
    return made, tally.codes()


def stated(triple: tuple[str, str, str], text: str) -> tuple[tuple[str, str, str], str, list[str]]:
    """A triple and its sentence without private regions and secrets, and codes of what went.

    Raises:
        NothingLeft: all of the sentence is marked private.
    """
    tally = redact.Tally()
    sentence = tally.clean(text)
    parts = tally.triple(triple)
    sentence = tally.clean(sentence)
    if not sentence.strip() and text.strip():
        raise NothingLeft(_NOTHING)
    return parts, sentence, tally.codes()


def derived(claim: Memory, cited: Observation) -> list[str]:
    """Codes against a derived claim, by the passage that it cites; none when it is grounded."""
    from remem.objects import grounding

    return grounding.judge(claim, cited.text)


def keep(tx: Tx, part: Part, object_id: bytes, status: str, codes: list[str]) -> Attests | None:
    """Keep a receipt where there is something to say, and tell what the entry has to attest."""
    if not codes:
        return None
    return receipts.put(tx, part, object_id, Receipt(status, codes, VERSION, DETECTORS))


# -- packs --------------------------------------------------------------------------------------


def unclean(obj: Observation | Memory) -> bool:
    """Whether an object that a pack brings holds what would not be stored here as it is.

    Its bytes cannot be changed, as its id is of them.
    """
    tally = redact.Tally()
    fields: list[object] = [obj.text, obj.kind, obj.meta]
    if isinstance(obj, Observation):
        fields += [obj.raw, obj.speaker]
        if obj.source is not None:
            fields += [obj.source.uri, obj.source.id, obj.source.tool]
    else:
        fields += [obj.cues, obj.trigger, obj.anchors]
        if obj.triple is not None:
            tally.triple(obj.triple)
    tally.value(fields, _MAX_DEPTH)
    return tally.changed


def instructions_of_stranger(obj: Observation | Memory) -> list[str]:
    """Codes of what speaks to its reader, in an object of a pack that nobody vouches for."""
    from remem.objects import instructions

    if isinstance(obj, Observation):
        return instructions_in(msgspec.structs.replace(obj, origin="untrusted"))
    said = [obj.text, *(obj.triple or ()), *obj.cues, obj.trigger, *obj.anchors]
    return sorted({code for text in dict.fromkeys(said) for code in instructions.codes(text)})


def keep_from_pack(
    tx: Tx,
    part: Part,
    object_id: bytes,
    obj: Observation | Memory,
    status: str,
    stated: tuple[str, list[str]] | None,
    *,
    trust: bool = False,
) -> Attests | None:
    """Keep a receipt for what a pack brought: our own, beside what the pack stated.

    Without ``trust`` its words are those of a stranger, whatever origin they claim.

    Returns:
        What the entry that brings it has to attest.
    """
    receipts.stamp(tx, VERSION, DETECTORS)
    codes = [FROM_PACK]
    if not trust:
        codes += instructions_of_stranger(obj)
    elif isinstance(obj, Observation):
        codes += instructions_in(obj)
    given = Receipt(status, codes, VERSION, DETECTORS, stated)
    return receipts.put(tx, part, object_id, given)
