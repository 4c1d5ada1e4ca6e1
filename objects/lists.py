"""Short lists of what is looked up by what it is: loops, tasks, briefs, notes, pins, runs.

A prompt asks for the pins and for what is due, so neither may cost a scan of every ref.  The table
``lists`` has a row for each object of such a kind and for each ref that was ever pinned; whether it
still counts is in the state of its ref.  The rows follow from the objects and the log: the one
place that stores objects, and the one that appends entries, write them.

Source: remem-store(5), LISTS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects import refs
from remem.objects.model import Memory, Observation, Run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.encode import Stored
    from remem.objects.reader import Part, Reader
    from remem.objects.tables import Txn

LOOP, TASK, BRIEF, SHORT, PIN = b"l", b"t", b"b", b"s", b"p"
SUMMARY, RUN = b"m", b"r"
LETTERS = (LOOP, TASK, BRIEF, SHORT, PIN, SUMMARY, RUN)
TIER = "tier"  # key of ``meta``: the tier of a note
SHORT_TIER = "short"
BRIEF_KIND = "brief"  # kind of the evidence that opens a consolidation
HINTS = "hints"  # key of its ``meta``: what it asks for

_OF_KIND = {"loop": LOOP, "task": TASK, "summary": SUMMARY}
_PIN = refs.OP_CODE["pin"]


def letter_of(obj: Stored) -> bytes:
    """Letter of the list that an object belongs to, empty for none."""
    if isinstance(obj, Memory):
        return _OF_KIND.get(obj.kind, b"")
    if isinstance(obj, Run):
        return RUN
    if not isinstance(obj, Observation) or not obj.meta:
        return b""
    if obj.kind == BRIEF_KIND and isinstance(obj.meta.get(HINTS), dict):
        return BRIEF
    return SHORT if obj.meta.get(TIER) == SHORT_TIER else b""


def add_object(txn: Txn, part: Part, object_id: bytes, obj: Stored) -> None:
    """Put an object that is being stored into its list, where there is one."""
    letter = letter_of(obj)
    if letter:
        txn.put("lists", part.prefix + letter + object_id, b"")


def add_entry(txn: Txn, part: Part, entry: refs.Entry) -> None:
    """Put a ref that is being pinned into the list of pins."""
    if entry.op == _PIN:
        txn.put("lists", part.prefix + PIN + entry.ref, b"")


def members(reader: Reader, part: Part, letter: bytes) -> Iterator[tuple[bytes, refs.RefState]]:
    """(ref, state) of what is in a list, within the grant, each once; by id."""
    prefix = part.prefix + letter
    seen: set[bytes] = set()
    for key, _ in list(reader.txn.scan_prefix("lists", prefix)):
        object_id = key[len(prefix) :]
        ref = object_id if letter == PIN else reader.ref_of(part, object_id)
        if ref in seen:
            continue
        seen.add(ref)
        state = reader.state(part, ref)
        if state is not None:
            yield ref, state


def is_note(txn: Txn, part: Part, object_id: bytes) -> bool:
    """True for an object that came in as a short note, whatever became of it."""
    return txn.get("lists", part.prefix + SHORT + object_id) is not None


def is_brief(reader: Reader, part: Part, ref: bytes) -> bool:
    """True for bookkeeping that opens a consolidation: it is neither indexed nor recalled."""
    return reader.txn.get("lists", part.prefix + BRIEF + ref) is not None
