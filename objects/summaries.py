"""Summaries: whether what one sums up is still as it was, and what holds now instead.

A summary goes on citing its sources as they were when it was made.  That one of them was revised,
replaced, closed, held back or forgotten since is found out when it is read, through the lens of
whoever reads: so it is true at once, whatever has run, and of a past instant it is judged by what
held then.

Source: remem(7), SLEEP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import lists, memories, refs
from remem.objects.errors import RememError
from remem.objects.model import Memory
from remem.objects.tombs import normal_value
from remem.objects.views import HISTORICAL, WITHHELD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.reader import Part, Reader
    from remem.objects.views import Eye, Sight

FORGOTTEN, REVISED, REPLACED, ENDED = "forgotten", "revised", "superseded", "closed"
VALUE = 240  # characters of a current value
_KEPT = frozenset((memories.EVIDENCE, FORGOTTEN))  # reasons of revisions that say the same


class Stale(msgspec.Struct, frozen=True):
    """Why a summary no longer fits its sources.

    Attributes:
        reason: FORGOTTEN, REVISED, REPLACED, ENDED, or the status that holds a source back.
        current: what its source, or what took its place, says now; empty where nothing does.
        source: ref of the source, or None when it was forgotten.
    """

    reason: str
    current: str
    source: bytes | None = None


def every(reader: Reader, part: Part) -> Iterator[tuple[bytes, refs.RefState, Memory]]:
    """(ref, state, head) of every summary of a partition whose text is there, by id."""
    for ref, state in lists.members(reader, part, lists.SUMMARY):
        if state.head is None or reader.erased(part, ref) is not None:
            continue
        memory = reader.object(part, state.head)
        if isinstance(memory, Memory) and memories.is_summary(memory):
            yield ref, state, memory


def stale(eye: Eye, part: Part, state: refs.RefState, memory: Memory) -> Stale | None:
    """What changed below a summary, or None while it fits its sources.

    Args:
        eye: the lens of who reads.
        part: its partition.
        state: of its ref.
        memory: what it says; anything but a summary is never stale.
    """
    if not memories.is_summary(memory):
        return None
    if _lost_a_source(eye.reader, part, state):
        return Stale(FORGOTTEN, "")
    for cited in memory.cites:
        found = _changed(eye, part, cited)
        if found is not None:
            return found
    return None


def rate(eye: Eye) -> tuple[int, int]:
    """(summaries that are stale, summaries that are shown) within the grant."""
    count = shown = 0
    for part in eye.reader.parts:
        for ref, state, memory in every(eye.reader, part):
            if state.head is not None and eye.see(part, ref, state.head) is not None:
                shown += 1
                count += stale(eye, part, state, memory) is not None
    return count, shown


def _lost_a_source(reader: Reader, part: Part, state: refs.RefState) -> bool:
    """Whether a source was forgotten since the text was made."""
    if state.first == state.last:
        return False
    for entry in reader.entries(part, state):
        if entry.new == entry.old:
            continue
        if entry.reason == FORGOTTEN:
            return True
        if entry.reason not in _KEPT:
            return False
    return False


def _changed(eye: Eye, part: Part, cited: bytes) -> Stale | None:
    reader = eye.reader
    ref = reader.ref_of(part, cited)
    state = reader.state(part, ref)
    if state is None:
        return None  # of an agent or session that the grant does not cover
    sight = eye.of(part, ref)
    if sight is None or sight.held is None:
        name = refs.STATUSES[state.status]
        return Stale(name, "", ref) if name in WITHHELD and name != "expired" else None
    held = sight.held
    if held.head != cited and _is_later(reader, part, state, held.head, cited):
        reason = REVISED
    elif sight.truth == HISTORICAL:
        reason = REPLACED if held.replaced_by is not None else ENDED
    elif held.type == refs.OBSERVATION and eye.evidence(part, cited)[0] == HISTORICAL:
        reason = REPLACED
    else:
        return None
    now = _says(eye, part, eye.newest(part, ref, cited))
    if now is not None and normal_value(now) == normal_value(reader.object(part, cited).text):
        return None  # one of the same took its place
    return Stale(reason, "" if now is None else _short(now), ref)


def _is_later(
    reader: Reader, part: Part, state: refs.RefState, head: bytes | None, cited: bytes
) -> bool:
    """Whether a revision came after another one of the same ref."""
    for entry in reader.entries(part, state):
        if entry.new == head:
            return True
        if entry.new == cited:
            return False
    return False


def _says(eye: Eye, part: Part, ref: bytes | None) -> str | None:
    """What a ref says through the lens, or None."""
    sight: Sight | None = None if ref is None else eye.of(part, ref)
    if sight is None or sight.held is None or sight.held.head is None:
        return None
    try:
        return eye.reader.object(part, sight.held.head).text
    except RememError:
        return None


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= VALUE else flat[: VALUE - 1] + "\u2026"
