"""What stands before every context, whatever is asked: the pins word for word, then what is due.

Each line of a pin stands behind ``> `` as it was written, byte for byte, so that none of them can
be a heading, an entry or the end of the frame.  Only what a terminal would act on, and the opening
bracket of a marker of the frame, is written as an escape of its code that can be seen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from remem.index.analyze import terms
from remem.index.context import Entry, safe
from remem.index.unseen import visible
from remem.index.whose import Whose, prefix, shown
from remem.objects import instant, loops, pins, refs
from remem.objects.model import Memory
from remem.objects.views import WITHHELD, Eye

if TYPE_CHECKING:
    from remem.objects.loops import Loop
    from remem.objects.pins import Pin
    from remem.objects.scope import Grant
    from remem.objects.store import Store
    from remem.objects.views import Lens

PINNED = "Pinned by the owner, word for word"
DUE = "Due"
QUOTED = "> "
ID = 10  # digits of an id

_MARKER = re.compile(r"<(?=\s*/?\s*remem-context)", re.IGNORECASE)


class Standing(msgspec.Struct, frozen=True):
    """What stands before what was found.

    Attributes:
        pins: entries of the pins, in the order in which they were pinned.
        due: entries of the loops that are due.
        covers: ids of refs and of evidence that these say already.
        shown: the pins themselves.
        loops: the loops themselves.
        whose: whose words each of them is, by ref.
    """

    pins: list[Entry] = []
    due: list[Entry] = []
    covers: frozenset[bytes] = frozenset()
    shown: list[Pin] = []
    loops: list[Loop] = []
    whose: dict[bytes, Whose] = {}


def standing(store: Store, grant: Grant, lens: Lens, text: str) -> Standing:
    """The pins and what is due, as a lens sees them.

    Args:
        store: an open store.
        grant: what may be seen.
        lens: of the question; pins and loops are looked at as they hold at its instant.
        text: the question, whose words bring loops back.
    """
    with store.read(grant) as reader:
        eye = Eye(lens, reader)
        held = pins.shown(eye)
        due = loops.due(eye, lens.at, text, terms)
        said = {pin.ref: shown(reader, pin) for pin in held}
        said |= {loop.ref: shown(reader, loop) for loop in due}
    covers = {one.ref for one in held} | {one.ref for one in due}
    for one in held:
        if isinstance(one.obj, Memory) and one.obj.kind == pins.KIND:
            covers.update(one.obj.cites)
    for loop in due:
        covers.update(loop.memory.cites)
    return Standing(
        [_pin(number, one, said[one.ref]) for number, one in enumerate(held)],
        [_due(number, one, said[one.ref]) for number, one in enumerate(due)],
        frozenset(covers),
        held,
        due,
        said,
    )


def verbatim(text: str) -> list[str]:
    """The lines of a text as they stand in a context."""
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return [QUOTED + _MARKER.sub(r"\\x3c", visible(line)) for line in lines]


def _pin(number: int, one: Pin, said: Whose) -> Entry:
    head = one.state.head
    assert head is not None and one.obj is not None
    ids = [head.hex()[:ID]]
    told = f"{safe(said.mark)} " if said.sources else ""
    line = "\n".join([f"{_held(one.state)}{told}[{ids[0]}]", *verbatim(one.obj.text)])
    return Entry(PINNED, (-2, number, ids[0]), line, ids)


def _due(number: int, one: Loop, said: Whose) -> Entry:
    head = one.state.head
    assert head is not None
    ids = [head.hex()[:ID]]
    if one.due is None:
        why = f"on {safe(one.topic)}"
    else:
        why = f"since {instant.display(one.due, one.memory.offset)}"
    line = f"{_held(one.state)}{prefix(said)}{safe(one.memory.text)} ({why}) [{ids[0]}]"
    return Entry(DUE, (-1, number, ids[0]), line, ids)


def _held(state: refs.RefState) -> str:
    """A mark on what is shown only because it was asked for by name."""
    status = refs.STATUSES[state.status]
    return f"[{status}] " if status in WITHHELD else ""
