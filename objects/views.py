"""What a read may show: the one rule of views, times and withheld statuses.

Every read that can reach a person or a prompt asks ``Lens.see``; nothing else decides.

now      what holds at this moment and is not withheld
history  adds what was closed or superseded, and earlier revisions, labelled
changes  only what replaced something, or was replaced

``as_of`` asks what was true at an instant, ``known_at`` what the store believed at one.

Source: remem(7), VIEWS AND TIME; DESIGN of statuses in remem-store(5), STATUSES.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import refs

if TYPE_CHECKING:
    from remem.objects.reader import Part, Reader

VIEWS = ("now", "history", "changes")
WITHHELD = frozenset(
    ("quarantined", "pending", "orphaned", "rejected", "expired", "user_belief", "erased")
)
_SHOWN = frozenset(refs.STATUS_CODE[s] for s in refs.STATUSES if s not in WITHHELD)
_ERASED = refs.STATUS_CODE["erased"]


class Lens(msgspec.Struct, frozen=True):
    """How a reader looks.

    Attributes:
        now: the present, microseconds UTC.
        view: one of VIEWS.
        as_of: true then, or None.
        known_at: believed then, or None.
        include: withheld statuses that are asked for by name.
    """

    now: int
    view: str = "now"
    as_of: int | None = None
    known_at: int | None = None
    include: frozenset[str] = frozenset()

    def allows(self, status: int) -> bool:
        """True when a status may be shown."""
        if status in _SHOWN:
            return True
        return status != _ERASED and refs.STATUSES[status] in self.include

    def state(self, reader: Reader, part: Part, ref: bytes) -> refs.RefState | None:
        """State of a ref at known_at (or now), when its status may be shown."""
        if self.known_at is None:
            state = reader.state(part, ref)
        else:
            latest = reader.state(part, ref)
            if latest is None or not self.allows(latest.status):
                return None  # withheld or erased now: no past belief brings it back
            state = reader.state_at(part, ref, self.known_at)
        if state is None or state.head is None or not self.allows(state.status):
            return None
        return state

    def truth(self, state: refs.RefState) -> str:
        """Whether a state holds at as_of (or now): "current" or "historical"."""
        at = self.now if self.as_of is None else self.as_of
        if state.valid_to is not None and state.valid_to <= at:
            return "historical"
        if state.replaced_by is not None and state.valid_to is None:
            return "historical"
        dated = state.type == refs.MEMORY or self.as_of is not None
        return "historical" if dated and state.starts > at else "current"

    def held(self, reader: Reader, part: Part, state: refs.RefState) -> refs.RefState | None:
        """The state with the revision that held at as_of, or None when nothing did yet."""
        if self.as_of is None or state.starts <= self.as_of:
            return state
        ends = state.starts
        for entry in reader.entries(part, state):
            if self.known_at is not None and entry.time > self.known_at:
                continue
            starts = state.created if entry.valid_from is None else entry.valid_from
            if starts <= self.as_of:
                return msgspec.structs.replace(
                    state, head=entry.new, valid_from=starts, valid_to=ends, replaced_by=None
                )
            ends = min(ends, starts)
        return None

    def see(
        self, reader: Reader, part: Part, ref: bytes, revision: bytes
    ) -> tuple[refs.RefState, str] | None:
        """State and truth of one revision of a ref, or None when this view does not show it."""
        state = self.state(reader, part, ref)
        if state is None:
            return None
        held = self.held(reader, part, state)
        if held is not None and revision == held.head:
            truth = self.truth(held)
            if truth == "current" and held.type == refs.OBSERVATION:
                truth = self._by_memories(reader, part, revision)
            state = held
        elif self._known_revision(reader, part, state, revision):
            truth = "historical"
        else:
            return None
        if self.view == "now":
            return (state, truth) if truth == "current" else None
        if self.view == "history":
            return state, truth
        if truth == "historical":
            return state, truth
        replaced = state.head != ref or self._replaces(reader, part, ref)
        return (state, "changed") if replaced else None

    def _by_memories(self, reader: Reader, part: Part, observation: bytes) -> str:
        """Truth of evidence: historical when all that was derived from it has been replaced."""
        replaced = False
        for ref in reader.cited_by(part, observation):
            state = self.state(reader, part, ref)
            if state is None or state.replaced_by is None or self.truth(state) == "current":
                return "current"
            replaced = True
        return "historical" if replaced else "current"

    def _replaces(self, reader: Reader, part: Part, ref: bytes) -> bool:
        """True when some other ref names this one as its successor."""
        return next(reader.txn.scan_prefix("replaces", part.prefix + ref), None) is not None

    def _known_revision(
        self, reader: Reader, part: Part, state: refs.RefState, revision: bytes
    ) -> bool:
        """True when a revision was the head at some time that this lens may look at."""
        if state.first == state.last:
            return False
        for entry in reader.entries(part, state):
            if self.known_at is not None and entry.time > self.known_at:
                continue
            if entry.new == revision:
                starts = state.created if entry.valid_from is None else entry.valid_from
                return self.as_of is None or starts <= self.as_of
        return False
