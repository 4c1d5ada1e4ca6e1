"""Tombstones: that something went, never what; and what keeps it from coming back.

A tombstone keeps id, reason code, time, principal and, unless coming back was allowed, keyed
digests of the normalised values.  The digests never leave the store.  Every path that stores text
asks ``blocked`` first, and every path that stores names and values beside it ``named``.

Source: remem-store(5), TOMBSTONES.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import msgspec

from remem.objects import oid
from remem.objects.attests import VALUES, of_values
from remem.objects.errors import Blocked, NotFound
from remem.objects.model import Draft, Observation, Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remem.objects.attests import Attests
    from remem.objects.encode import Obj, Stored
    from remem.objects.kv import Txn
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

DIGEST_B = 32
_QUOTES = dict.fromkeys(
    map(ord, "\"'`\u00ab\u00bb\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2039\u203a"), None
)
MIN_CHARS = 5  # letters and digits of a value that is compared without what stands around it
MIN_DIGITS = 4  # letters and digits of a value with a digit that may not come back as a name
MIN_LETTERS = 8  # of a single word without a digit that may not come back as a name either
# Characters that nobody sees: Default_Ignorable_Code_Point, and the other format characters.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
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


# Kinds, roles, tools and names of `meta` that the program writes itself.  They tell nothing, and a
# tombstone on such a word would keep out whatever is called that.
OWN_WORDS = frozenset(
    "assistant attachments author_email bash_history content_type create_time deletions duration"
    " encoding exit_code files_changed fish_history git_branch insertions instead_of"
    " instruction left_out model_slug"
    " preference procedure record_type relation repeats statement timestamp tool_call tool_result"
    " untrusted zsh_history".split()
)


def bare_value(text: str) -> str:
    """A value without what is put around it or into it so that it looks the same.

    Empty where too little is left to tell a value from any other.
    """
    seen = _UNSEEN.sub("", unicodedata.normalize("NFKC", _UNSEEN.sub("", text)))
    start, end = 0, len(seen)
    while start < end and _is_around(seen[start]):
        start += 1
    while end > start and _is_around(seen[end - 1]):
        end -= 1
    value = normal_value(seen[start:end])
    return value if sum(map(str.isalnum, value)) >= MIN_CHARS else ""


def _is_around(char: str) -> bool:
    """Whether a character stands around a value rather than in it: a mark, a sign, a space."""
    return not char.isalnum() and unicodedata.category(char) not in ("Sc", "Mn", "Mc", "Cs")


def is_telling(value: str) -> bool:
    """Whether a value gives something away as a name: no short or single common word does."""
    words = value.split()
    chars = sum(map(str.isalnum, value))
    if any(map(str.isdigit, value)):
        return chars >= MIN_DIGITS
    return chars >= MIN_CHARS and (len(words) > 1 or chars >= MIN_LETTERS)


def _forms(text: str) -> list[str]:
    """What a text is compared as."""
    return list(dict.fromkeys(form for form in (normal_value(text), bare_value(text)) if form))


def value_key(part: Part, text: str) -> bytes:
    """Key of a value in a partition: its keyed digest."""
    return _key_of(part, normal_value(text))


def _key_of(part: Part, value: str) -> bytes:
    """The same of a value that is normalised already."""
    data = value.encode("utf-8", "surrogatepass")
    return part.prefix + oid.keyed(part.key, b"value", data, length=DIGEST_B)


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
    return listed(tx.txn, part, text) if tx.has_values else None


def listed(txn: Txn, part: Part, text: str) -> bytes | None:
    """The same for a reader."""
    for value in _forms(text):
        ref = txn.get("values", _key_of(part, value))
        if ref is not None:
            return ref
    return None


def named(tx: Tx, part: Part, names: Iterable[object]) -> bytes | None:
    """The ref whose tombstone keeps one of these from being stored beside a text, or None.

    Names, values, places: what is no text of its own but would bring one back.  What is no text,
    what does not tell enough (`is_telling`) and the program's own words are passed.
    """
    for name in names if tx.has_values else ():
        if not isinstance(name, str) or name in OWN_WORDS:
            continue
        if not is_telling(bare_value(name) or normal_value(name)):
            continue
        ref = blocked(tx, part, name)
        if ref is not None:
            return ref
    return None


def check_names(tx: Tx, part: Part, names: Iterable[object], action: str) -> None:
    """Raise when a tombstone keeps one of these from being stored beside a text.

    Raises:
        Blocked: it does; the refusal has a row of the audit chain.
    """
    ref = named(tx, part, names)
    if ref is not None:
        raise refusal(part, ref, action)


def names_of(obj: Obj) -> list[str]:
    """What an object keeps beside its text: names, values and places."""
    if isinstance(obj, Observation):
        source = () if obj.source is None else (obj.source.uri, obj.source.id, obj.source.tool)
        return [obj.speaker, *source, obj.kind, *strings(obj.meta)]
    return [*(obj.triple or ()), *obj.cues, obj.trigger, *strings(obj.meta)]


def strings(value: object) -> Iterator[str]:
    """The texts in a value of ``meta``, its names included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(key)
            yield from strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)


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


def digests(part: Part, texts: Iterable[str]) -> list[bytes]:
    """Values of the tombstone of what said these texts, in order."""
    return sorted({_key_of(part, value)[4:] for text in texts for value in _forms(text)})


def bury(tx: Tx, part: Part, ref: bytes, values: list[bytes], reason: str) -> None:
    """Set the tombstone of a ref; values are what must not come back (none: it may).

    The entry that erases the ref has to attest them (`said`).
    """
    for value in values:
        tx.txn.put("values", part.prefix + value, ref)
        tx.has_values = True
    put(tx, part, ref, Tomb(tx.now, tx.actor.grant.principal, reason, values, None))


def said(values: list[bytes]) -> Attests:
    """What the entry that erases a ref attests of its tombstone."""
    return {VALUES: of_values(values)}


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
    tx.done("lift", part.number, ref)
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
