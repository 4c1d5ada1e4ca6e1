"""What a read may show: the one rule of views, times and withheld statuses.

Every read that can reach a person or a prompt asks ``Lens.see`` (or an `Eye`, which keeps what it
has worked out); nothing else decides.

now      what holds at this moment and is not withheld
history  adds what was closed or superseded, and earlier revisions, labelled
changes  only what replaced something, or was replaced

``as_of`` asks what was true at an instant, ``known_at`` what the store believed at one; alone, it
asks what was held to be true then.

Evidence goes with the claims that were drawn from it.  An observation is historical when a memory
that cites it has ended or was replaced: it says something that no longer holds.  The view ``now``
does not show it when no memory that cites it holds (each has ended, was replaced or has still to
begin), and it says nothing beyond them (`remem.objects.evidence` tells how that is judged); when it
says other things too it stays in sight, with the label.  What dates itself ("I moved there in
2019") is as true as ever.  The other way round a derived memory is
out of sight while all evidence that it rests on is withheld.

Source: remem(7), VIEWS AND TIME; statuses in remem-store(5), STATUSES.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import evidence, instant, memories, refs
from remem.objects.model import Memory, Observation

if TYPE_CHECKING:
    from remem.objects.reader import Part, Reader

VIEWS = ("now", "history", "changes")
WITHHELD = frozenset(
    ("quarantined", "pending", "orphaned", "rejected", "expired", "user_belief", "erased")
)
INCLUDABLE = WITHHELD - {"erased"}  # those that a reader may ask for by name
CURRENT, HISTORICAL, CHANGED = "current", "historical", "changed"
MAX_STEPS = 100_000  # from one statement to the one that holds in its place

_SHOWN = frozenset(refs.STATUS_CODE[s] for s in refs.STATUSES if s not in WITHHELD)
_ERASED = refs.STATUS_CODE["erased"]
_REJECTED = refs.STATUS_CODE["rejected"]
# A memory falls with evidence that was set apart, not with evidence that only grew old.
_TAINTED = frozenset(
    refs.STATUS_CODE[s] for s in ("quarantined", "pending", "rejected", "user_belief")
)
_SAME_TEXT = frozenset((memories.EVIDENCE, "forgotten"))  # revisions that say nothing new


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

    @property
    def at(self) -> int:
        """The instant about which is asked."""
        if self.as_of is not None:
            return self.as_of
        return self.now if self.known_at is None else min(self.now, self.known_at)

    def allows(self, status: int) -> bool:
        """True when a status may be shown."""
        if status in _SHOWN:
            return True
        return status != _ERASED and refs.STATUSES[status] in self.include

    def truth(self, state: refs.RefState) -> str:
        """Whether a state holds at the instant asked about: "current" or "historical"."""
        at = self.at
        if state.valid_to is not None and state.valid_to <= at:
            return HISTORICAL
        if state.replaced_by is not None and state.valid_to is None:
            return HISTORICAL
        dated = state.type == refs.MEMORY or self.as_of is not None
        return HISTORICAL if dated and state.starts > at else CURRENT

    def see(
        self, reader: Reader, part: Part, ref: bytes, revision: bytes
    ) -> tuple[refs.RefState, str] | None:
        """State and truth of one revision of a ref, or None when this view does not show it."""
        return Eye(self, reader).see(part, ref, revision)


class Sight(msgspec.Struct):
    """What is seen of one ref.

    Attributes:
        believed: its state as believed at known_at, or now.
        held: the same with the revision in force at the instant asked about.  What begins later is
            kept as it is, and None where the question is about an instant before it.
        truth: of ``held``.
    """

    believed: refs.RefState
    held: refs.RefState | None
    truth: str
    grounded: bool | None = None  # not looked at yet


class Eye:
    """A lens at one snapshot; keeps what it has worked out."""

    def __init__(self, lens: Lens, reader: Reader) -> None:
        """Bind a lens to a snapshot."""
        if lens.as_of is None:
            present = instant.present(lens.now, reader.clock)
            if present != lens.now:  # what was recorded has been said, whatever the clock says
                lens = msgspec.structs.replace(lens, now=present)
        self.lens = lens
        self.reader = reader
        self._sights: dict[tuple[int, bytes], Sight | None] = {}
        self._evidence: dict[tuple[int, bytes], tuple[str, bool, list[bytes]]] = {}
        self._stands: dict[tuple[int, bytes], bytes | None] = {}
        self._roots: dict[tuple[int, bytes], bytes] = {}

    # -- one ref ------------------------------------------------------------------------------

    def of(self, part: Part, ref: bytes) -> Sight | None:
        """What is seen of a ref, whatever the view; None when it may not be shown at all."""
        key = (part.number, ref)
        if key not in self._sights:
            self._sights[key] = self._look(part, ref)
        return self._sights[key]

    def _look(self, part: Part, ref: bytes) -> Sight | None:
        lens, reader = self.lens, self.reader
        latest = reader.state(part, ref)
        if latest is None or latest.type > refs.MEMORY:
            return None  # drafts and runs are bookkeeping: no view shows them
        state: refs.RefState | None = latest
        if lens.known_at is not None:
            if not lens.allows(latest.status) and not self._undone(part, latest):
                return None  # withheld or erased now: no past belief brings it back
            state = reader.state_at(part, ref, lens.known_at)
        if state is None or state.head is None or not lens.allows(state.status):
            return None
        held = self._held(part, state)
        if held is None and lens.as_of is None:
            held = state
        return Sight(state, held, HISTORICAL if held is None else lens.truth(held))

    def _undone(self, part: Part, state: refs.RefState) -> bool:
        """True for what was only taken back: the store did believe it before that."""
        if state.status != _REJECTED:
            return False
        rejected = None
        for entry in self.reader.entries(part, state):
            if entry.status != _REJECTED:
                break
            rejected = entry
        return rejected is not None and rejected.reason.startswith(refs.UNDO)

    def _grounded(self, part: Part, sight: Sight) -> bool:
        """False for a derived memory with all its evidence set apart, a summary with some."""
        if sight.believed.type != refs.MEMORY:
            return True
        if sight.grounded is None:
            sight.grounded = self._rests(part, sight)
        return sight.grounded

    def _rests(self, part: Part, sight: Sight) -> bool:
        assert sight.believed.head is not None
        obj = self.reader.object(part, sight.believed.head)
        if not isinstance(obj, Memory) or obj.deriver.name == memories.STATED:
            return True
        states = (self.reader.state(part, self.reader.ref_of(part, c)) for c in obj.cites)
        fine = (s is None or s.status not in _TAINTED or self.lens.allows(s.status) for s in states)
        # A summary has the words of each of its sources.
        return all(fine) if memories.is_summary(obj) else any(fine)

    def _held(self, part: Part, state: refs.RefState) -> refs.RefState | None:
        """The state with the revision in force at the instant asked about, or None before it."""
        lens = self.lens
        at = lens.at
        if state.starts <= at:
            return state
        undated = state if lens.as_of is None and state.type == refs.OBSERVATION else None
        if state.first == state.last:
            return undated
        ends = state.starts
        stood: dict[bytes | None, bool] = {}
        for entry in self.reader.entries(part, state):
            stood.setdefault(entry.new, lens.allows(entry.status))
            if lens.known_at is not None and entry.time > lens.known_at:
                continue
            starts = state.created if entry.valid_from is None else entry.valid_from
            if not stood[entry.new]:
                continue  # words that were set apart when others took their place
            if starts <= at and entry.new is not None:
                stops = [t for t in (entry.valid_to, state.valid_to, ends) if t is not None]
                by = entry.replaced_by if entry.valid_to == min(stops) else None
                return msgspec.structs.replace(
                    state, head=entry.new, valid_from=starts, valid_to=min(stops), replaced_by=by
                )
            ends = min(ends, starts)
        return undated

    # -- one revision -------------------------------------------------------------------------

    def see(
        self, part: Part, ref: bytes, revision: bytes, seq: int = 0
    ) -> tuple[refs.RefState, str] | None:
        """State and truth of one revision, or None when this view does not show it.

        Args:
            part: its partition.
            ref: id of the ref.
            revision: object id of the revision.
            seq: log entry that brought it, where the caller knows.
        """
        sight = self.of(part, ref)
        if sight is None or not self._grounded(part, sight):
            return None
        view, held = self.lens.view, sight.held
        if held is not None and revision == held.head:
            truth, gone = sight.truth, False
            if truth == CURRENT and held.type == refs.OBSERVATION:
                truth, gone, _ = self.evidence(part, revision)
            state = held
            if view == "now":
                return (state, truth) if sight.truth == CURRENT and not gone else None
        elif view == "now" or not self._was_head(part, sight, ref, revision, seq):
            return None
        else:
            truth, state = HISTORICAL, sight.believed
        if view == "history" or truth == HISTORICAL:
            return state, truth
        return (state, CHANGED) if self._changed(part, ref, state) else None

    def evidence(self, part: Part, observation: bytes) -> tuple[str, bool, list[bytes]]:
        """Truth of evidence by the memories that cite it.

        Returns:
            (truth, whether it is out of sight, refs of the memories that have ended).
        """
        key = (part.number, observation)
        if key not in self._evidence:
            self._evidence[key] = self._by_memories(part, observation)
        return self._evidence[key]

    def _by_memories(self, part: Part, observation: bytes) -> tuple[str, bool, list[bytes]]:
        told: Observation | None = None
        own = self.of(part, self.reader.ref_of(part, observation))
        said = 0 if own is None else own.believed.starts
        over: list[Memory] = []
        waits: list[Memory] = []
        ended: list[bytes] = []
        holds: set[str] = set()
        for ref in self.reader.cited_by(part, observation):
            sight = self.of(part, ref)
            if sight is None:
                continue
            state = sight.held or sight.believed
            assert state.head is not None
            memory = self.reader.object(part, state.head)
            if not isinstance(memory, Memory) or observation not in memory.cites:
                continue
            if memories.is_summary(memory):
                continue  # it claims nothing that could hold in the place of its sources
            if told is None:
                obj = self.reader.object(part, observation)
                assert isinstance(obj, Observation)
                told = obj
            if self._over(state):
                if evidence.stays_true(memory, observation, told, said):
                    holds.add(memory.text)
                    continue
                over.append(memory)
                ended.append(ref)
            elif sight.held is None or state.starts > self.lens.at:
                waits.append(memory)
            else:
                holds.add(memory.text)
        over = [memory for memory in over if memory.text not in holds]  # else it holds again
        if told is None or (not over and (holds or not waits)):
            return CURRENT, False, []
        truth = HISTORICAL if over else CURRENT
        if holds:
            return truth, False, ended
        parts = [p for m in (*over, *waits) for p in evidence.grounds(m, observation, told.text)]
        gone = evidence.says_nothing_else(told.text, parts)
        return HISTORICAL if gone else truth, gone, ended

    def _over(self, state: refs.RefState) -> bool:
        """True when a state has ended, not when it has still to begin."""
        ended = state.valid_to is not None and state.valid_to <= self.lens.at
        return ended or (state.replaced_by is not None and state.valid_to is None)

    def _changed(self, part: Part, ref: bytes, state: refs.RefState) -> bool:
        """True when a ref replaced something: another one, or an earlier text of its own."""
        if state.head != ref:
            quiet = (e.reason in _SAME_TEXT for e in self.reader.entries(part, state) if e.prev)
            if not all(quiet):
                return True
        prefix = part.prefix + ref
        rows = self.reader.txn.scan_prefix("replaces", prefix)
        return any(self.of(part, key[len(prefix) :]) is not None for key, _ in rows)

    def _was_head(self, part: Part, sight: Sight, ref: bytes, revision: bytes, seq: int) -> bool:
        """True when a revision was the head at some time that this lens may look at."""
        state = sight.believed
        if state.first == state.last:
            return False
        if not self._stood(part, state, revision):
            return False
        entries = (self.reader.entry(part, seq),) if seq else self.reader.entries(part, state)
        for entry in entries:
            if entry.new != revision or entry.ref != ref:
                continue
            if self.lens.known_at is not None and entry.time > self.lens.known_at:
                continue
            starts = state.created if entry.valid_from is None else entry.valid_from
            begun = self.lens.as_of is None or starts <= self.lens.as_of
            return begun and not self._same_words(part, sight, revision)
        return False

    def _stood(self, part: Part, state: refs.RefState, revision: bytes) -> bool:
        """False for words that were set apart when others took their place: no view shows them."""
        entries = self.reader.entries(part, state)
        last = next((e for e in entries if e.new == revision), None)
        return last is None or self.lens.allows(last.status)

    def _same_words(self, part: Part, sight: Sight, revision: bytes) -> bool:
        """True for a revision that says what the head says: only its evidence was another."""
        head = None if sight.held is None else sight.held.head
        if head is None:
            return False
        new, old = self.reader.object(part, head), self.reader.object(part, revision)
        same = isinstance(new, Memory) and isinstance(old, Memory) and new.triple == old.triple
        return same and new.text == old.text

    # -- what stands in its place -------------------------------------------------------------

    def stand_in(self, part: Part, ref: bytes) -> bytes | None:
        """The ref that says at the instant asked about what this one says at another time.

        From what was replaced to its successor, from what had not begun to its predecessor, until
        something is current; the ref itself when it is, None when nothing is.
        """
        key = (part.number, ref)
        if key in self._stands:
            return self._stands[key]
        way: list[bytes] = []
        on_way: set[bytes] = set()
        at: bytes | None = ref
        found: bytes | None = None
        while at is not None and at not in on_way and len(way) < MAX_STEPS:
            if (part.number, at) in self._stands:
                found = self._stands[(part.number, at)]
                break
            way.append(at)
            on_way.add(at)
            sight = self.of(part, at)
            if sight is not None and sight.held is not None and sight.truth == CURRENT:
                head = sight.held.head
                assert head is not None
                if sight.held.type == refs.MEMORY or not self.evidence(part, head)[1]:
                    found = at
                    break
            at = self._next(part, at, sight)
        for passed in way:
            self._stands[(part.number, passed)] = found
        return found

    def newest(self, part: Part, ref: bytes, revision: bytes) -> bytes | None:
        """The ref that says now what a historical revision said; its own ref where that does."""
        sight = self.of(part, ref)
        if sight is None or sight.held is None or sight.held.type == refs.MEMORY:
            return self.stand_in(part, ref)
        if sight.truth == CURRENT and sight.held.head == revision:
            for memory in self.evidence(part, revision)[2]:
                found = self.stand_in(part, memory)
                if found is not None:
                    return found
        return self.stand_in(part, ref)

    def root(self, part: Part, ref: bytes, revision: bytes) -> bytes:
        """The last ref in the line of successors of a revision: one for all that it replaced."""
        at = ref
        if self.evidence_of(part, ref, revision):
            at = next(iter(self.evidence(part, revision)[2]), ref)
        way = [at]
        while (key := (part.number, at)) not in self._roots and len(way) < MAX_STEPS:
            sight = self.of(part, at)
            after = None if sight is None else sight.believed.replaced_by
            if after is None or after in way[-2:]:
                break
            at = after
            way.append(at)
        found = self._roots.get(key, at)
        for passed in way:
            self._roots[(part.number, passed)] = found
        return found

    def evidence_of(self, part: Part, ref: bytes, revision: bytes) -> bool:
        """True for an observation in force of which some claim no longer holds."""
        sight = self.of(part, ref)
        if sight is None or sight.held is None or sight.held.type != refs.OBSERVATION:
            return False
        in_force = sight.truth == CURRENT and sight.held.head == revision
        return in_force and self.evidence(part, revision)[0] == HISTORICAL

    def _next(self, part: Part, ref: bytes, sight: Sight | None) -> bytes | None:
        """One step towards what is current."""
        held = None if sight is None else sight.held
        if held is None or (held.starts > self.lens.at and held.type == refs.MEMORY):
            prefix = part.prefix + ref
            rows = self.reader.txn.scan_prefix("replaces", prefix)
            return next((key[len(prefix) :] for key, _ in rows), None)
        if self._over(held):
            return held.replaced_by
        if held.type != refs.OBSERVATION or held.head is None:
            return None
        for memory in self.evidence(part, held.head)[2]:
            seen = self.of(part, memory)
            assert seen is not None and seen.held is not None
            if seen.held.replaced_by is not None:
                return seen.held.replaced_by
        return None
