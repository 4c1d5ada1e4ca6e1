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
        """Whether it holds at as_of (or now): "current" or "historical"."""
        if self.as_of is not None:
            at = self.as_of
            ends = state.valid_to is not None and state.valid_to <= at
            return "current" if state.starts <= at and not ends else "historical"
        if state.replaced_by is not None or state.flags & refs.CLOSED:
            return "historical"
        if state.valid_to is not None and state.valid_to <= self.now:
            return "historical"
        return "current"

    def see(
        self, reader: Reader, part: Part, ref: bytes, revision: bytes
    ) -> tuple[refs.RefState, str] | None:
        """State and truth of one revision of a ref, or None when this view does not show it."""
        state = self.state(reader, part, ref)
        if state is None:
            return None
        head = revision == state.head
        truth = self.truth(state) if head else "historical"
        if self.view == "now":
            return (state, truth) if truth == "current" else None
        if self.as_of is not None and state.starts > self.as_of:
            return None
        if not head and not self._known_revision(reader, part, state, revision):
            return None
        if self.view == "history":
            return state, truth
        if truth == "historical" or state.first != state.last:
            return state, truth if truth == "historical" else "changed"
        return None

    def _known_revision(
        self, reader: Reader, part: Part, state: refs.RefState, revision: bytes
    ) -> bool:
        """True when a revision was the head at some time up to known_at."""
        return any(entry.new == revision for entry in reader.entries(part, state))
