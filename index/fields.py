"""What of an object is indexed: its fields, their weights and filters.

A document's terms are those of its text and, with weights of their own, of who said it, when, where
it comes from and what it is about (BM25F in one number: frequencies are weighted before they
saturate).  Only the text counts towards the length.

Source: Robertson, Zaragoza and Taylor 2004, "Simple BM25 extension to multiple weighted fields".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.index import ran
from remem.index.analyze import analyze, terms
from remem.index.lexical import DocIn, tally
from remem.index.postings import SAID_BY
from remem.objects import encode, instant
from remem.objects.chains import fold
from remem.objects.model import Memory, Observation

if TYPE_CHECKING:
    from remem.objects.encode import Obj

# Weights in quarters: 4 is the weight of a word of the text.
TEXT = 4
SPEAKER = 4
TITLE = 4
PLACE = 2
DATE = 4

ENTITY = b"\0e:"  # begins the filter terms of subjects and objects
ROLE = b"\0r:"  # that of a role
PARSED = b"\0l:event"  # that of an event which a parser read from a commit, a diff or a command
ASKS = b"\0q:ask"  # filter term of what ends in a question
# Memories are no turns of the conversation that they came from, so they have lanes of their own;
# neither are diffs.
MEMORY_LANE = 1 << 31
OUTLINE = "diff"  # kind of the outline of a commit's changes

TITLE_KEYS = ("title", "heading", "subject", "caption", "summary")
PLACE_KEYS = ("cwd", "path", "file", "files", "branch", "gitBranch")
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_date_terms: dict[int, list[bytes]] = {}
_field_terms: dict[str, list[bytes]] = {}
_MEMO = 4096
_END = 500  # characters of a text in which its last question mark is looked for


def document(ref: bytes, object_id: bytes, seq: int, lane: int, data: bytes) -> DocIn:
    """The document of one revision of a ref, from its stored bytes."""
    obj = encode.decode(data)
    if isinstance(obj, Observation) and obj.kind == OUTLINE:
        return _outline(ref, object_id, seq, lane, obj)
    found, length = analyze(obj.text)
    counts = tally(found, TEXT)
    if isinstance(obj, Observation):
        when = obj.asserted
        _observation(obj, counts)
    else:
        when = obj.valid_from
        lane |= MEMORY_LANE
        _memory(obj, counts)
    if when is not None:
        tally(_dates(when), DATE, counts)
    return DocIn(ref, object_id, seq, lane, when, max(1, length), counts, filters(obj))


def _outline(ref: bytes, object_id: bytes, seq: int, lane: int, obj: Observation) -> DocIn:
    """The document of a diff; of the outline of a commit's changes, what it names and no more."""
    from remem.objects.derive.outline import is_outline, names

    text = " ".join(names(obj.text)) if is_outline(obj.text) else obj.text
    found, length = analyze(text)
    counts = tally(found, TEXT)
    lane |= MEMORY_LANE
    return DocIn(ref, object_id, seq, lane, obj.asserted, max(1, length), counts, filters(obj))


def is_parsed(obj: Obj) -> bool:
    """Whether it is for who asks by name: a diff, or an event that a parser read.

    There are many of them, each a few names: they have no vectors and count for less.
    """
    if isinstance(obj, Observation):
        return obj.kind == OUTLINE
    return isinstance(obj, Memory) and obj.kind == "event" and obj.deriver.name == "ledger"


def filters(obj: Obj) -> list[bytes]:
    """Filter terms: type, kind, role, origin, words of the speaker's name, asking, entities.

    A command has those of its folders, its exit status and its branch besides.
    """
    if isinstance(obj, Memory):
        found = [b"\0t:memory", b"\0k:" + obj.kind.encode()]
        if obj.triple is not None:
            found += {entity(fold(obj.triple[0])), entity(fold(obj.triple[2]))} - {ENTITY}
        if is_parsed(obj):
            found.append(PARSED)
        return found
    found = [b"\0t:observation", b"\0o:" + obj.origin.encode()]
    if obj.kind:
        found.append(b"\0k:" + clean(obj.kind))
    if obj.role:
        found.append(ROLE + obj.role.encode())
    if obj.speaker:
        found += [SAID_BY + term for term in set(_memo(obj.speaker))]
    if _asks(obj.text):
        found.append(ASKS)
    return found + ran.filters(obj)


def _asks(text: str) -> bool:
    """Whether a text ends in a question; a caption in brackets behind it does not count."""
    text = text[-_END:].rstrip()
    if text.endswith("]"):
        text = text[: max(0, text.rfind("["))].rstrip()
    return text.endswith(("?", "\uff1f", "\u061f"))


def entity(name: str) -> bytes:
    """Filter term of a folded name."""
    return ENTITY + clean(name)


def clean(name: str) -> bytes:
    """A name as part of a filter term: no zero byte, bounded."""
    return name.encode("utf-8", "replace").replace(b"\0", b"")[:150]


def _observation(obj: Observation, counts: dict[bytes, int]) -> None:
    if obj.speaker:
        tally(_memo(obj.speaker), SPEAKER, counts)
    if obj.source is not None and obj.source.tool:
        tally(_memo(obj.source.tool), PLACE, counts)
    for name, value in obj.meta.items():
        if not isinstance(value, str):
            continue
        if name in TITLE_KEYS:
            tally(terms(value), TITLE, counts)
        elif name in PLACE_KEYS:
            tally(_memo(value), PLACE, counts)


def _memory(obj: Memory, counts: dict[bytes, int]) -> None:
    if obj.triple is not None:
        tally(terms(" ".join(obj.triple)), PLACE, counts)
    for cue in (*obj.cues, *obj.anchors):
        tally(terms(cue), TITLE, counts)


def _memo(text: str) -> list[bytes]:
    found = _field_terms.get(text)
    if found is None:
        if len(_field_terms) > _MEMO:
            _field_terms.clear()
        found = _field_terms[text] = terms(text)
    return found


def _dates(when: int) -> list[bytes]:
    """Terms of the day on which something was said: day, month by name, year (UTC)."""
    day = when // 86_400_000_000
    found = _date_terms.get(day)
    if found is None:
        if len(_date_terms) > _MEMO:
            _date_terms.clear()
        year, month, number = instant.date_of(day)
        found = terms(f"{number} {_MONTHS[month - 1]} {year}")
        _date_terms[day] = found
    return found


def text_of(obj: Obj) -> str:
    """What of an object a model reads: who says it, and the text."""
    if isinstance(obj, Observation):
        caption = obj.meta.get("caption")
        tail = f" [{caption}]" if isinstance(caption, str) else ""
        return f"{obj.speaker}: {obj.text}{tail}" if obj.speaker else obj.text + tail
    return obj.text
