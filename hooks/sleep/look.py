"""One look at a partition: what its evidence and its memories say, in rows that fit in memory.

A row holds digests and times, no text.  Whoever acts on one looks again, inside the transaction
that acts.
"""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from remem.hooks.sleep.sameness import exact_key
from remem.objects import lists, memories, refs, tiers
from remem.objects.draft_apply import DUPLICATE
from remem.objects.model import Memory, Observation
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.objects.reader import Part, Reader

# What happens is no statement: the same command run again is another run.
EVENTS = frozenset(
    ("command", "commit", "checkout", "merge", "tag", "revert", "statement", "summary")
)
# Kinds of memories that say something; the others are what they are by more than their words.
CLAIMS = frozenset(("fact", "preference", "instruction", "event", "procedure", "relation"))
TURNS = frozenset(("", "turn", "message", "chat"))  # kinds of what is said in a conversation
OWNER_VOICE = "owner"
SHOWN = frozenset(refs.STATUS_CODE[s] for s in refs.STATUSES if s not in WITHHELD)
_RANK = {
    refs.STATUS_CODE[name]: rank
    for rank, name in enumerate(("verified", "provisional", "legacy_unverified", "model_claim"))
}
_ENDINGS = frozenset(("create", "supersede", "close", "reopen", "rollback", "revise"))
_STEP = 5000  # refs between two reports of progress


class Row(msgspec.Struct, frozen=True, gc=False):
    """What is known of one ref.

    Attributes:
        key: digest of what it says.
        like: digest of everything that two of the same must share but the source.
        voice: who says it; of a memory "".
        source: digest of its source, empty without one; of a memory its deriver.
        starts: from when it holds; ends: until when, or None.
        given: its valid time as it was stated, or None for unknown.
        by: what took its place, or None.
        number: of the lane.
        first: log entry that began it.
        rank: of its status, the most trusted first.
        marked: held or pinned.
        turn: something that somebody said in a conversation.
    """

    ref: bytes
    head: bytes
    key: bytes
    like: bytes
    voice: str
    kind: str
    source: bytes
    starts: int
    ends: int | None
    given: int | None
    by: bytes | None
    number: int
    first: int
    rank: int
    marked: bool
    turn: bool = False


class View(msgspec.Struct):
    """The rows of a partition.

    Attributes:
        evidence: observations in force that say something.
        gone: observations that were replaced or closed, and earlier revisions, with when and by
            what; not those that were retired as copies.
        claims: memories that hold.
        ended: memories that held once.
    """

    evidence: list[Row] = []
    gone: list[Row] = []
    claims: list[Row] = []
    ended: list[Row] = []


def look(
    reader: Reader,
    part: Part,
    now: int,
    *,
    over: Callable[[], bool],
    say: Callable[[str, int, int], None],
) -> View | None:
    """Read a partition; None when the time is over.

    Args:
        reader: a snapshot.
        part: its partition.
        now: microseconds UTC.
        over: whether to stop.
        say: progress.
    """
    found = View()
    of = reader.last_seq(part)
    for count, (ref, state) in enumerate(reader.states(part), 1):
        if not count % _STEP:
            if over():
                return None
            say("looking", min(count, of), of)
        if state.type > refs.MEMORY or state.status not in SHOWN or state.head is None:
            continue
        obj = reader.object(part, state.head)
        if isinstance(obj, Observation):
            _observation(reader, part, found, ref, state, obj)
        else:
            _memory(reader, part, found, now, ref, state, obj)
    return found


def _observation(
    reader: Reader, part: Part, found: View, ref: bytes, state: refs.RefState, obj: Observation
) -> None:
    if obj.kind in EVENTS or obj.origin == "tool" or lists.letter_of(obj) == lists.BRIEF:
        return
    if tiers.is_short(state, obj):
        return
    row = _of_observation(ref, state, obj)
    over = state.replaced_by is not None or state.flags & refs.CLOSED
    if over and state.valid_to is not None:
        if not _is_copy(reader, part, state):
            found.gone.append(row)
    elif not over:
        found.evidence.append(row)
    if state.head != ref:
        found.gone += _earlier(reader, part, ref, state)


def _of_observation(ref: bytes, state: refs.RefState, obj: Observation) -> Row:
    assert state.head is not None
    source = b""
    if obj.source is not None:
        source = _digest(obj.source.uri, obj.source.id, obj.source.tool)
    return Row(
        ref,
        state.head,
        exact_key(obj.text),
        _digest(obj.role, obj.speaker, obj.origin, obj.kind, str(obj.asserted), str(obj.corrects)),
        voice_of(obj),
        obj.kind,
        source,
        state.starts,
        state.valid_to,
        state.valid_from,
        state.replaced_by,
        state.lane,
        state.first,
        _RANK.get(state.status, len(_RANK)),
        bool(state.flags & (refs.HELD | refs.PINNED)),
        _is_turn(obj),
    )


def _is_turn(obj: Observation) -> bool:
    """True for what people and their agents say to each other."""
    spoken = bool(obj.speaker) or obj.role in ("user", "assistant")
    return spoken and obj.kind in TURNS and obj.origin in ("owner", "agent")


def _is_copy(reader: Reader, part: Part, state: refs.RefState) -> bool:
    """True for what was retired as a copy, not because it holds no longer."""
    if state.replaced_by is None:
        return False
    last = next(e for e in reader.entries(part, state) if refs.OPS[e.op] in _ENDINGS)
    return last.reason == DUPLICATE


def _earlier(reader: Reader, part: Part, ref: bytes, state: refs.RefState) -> list[Row]:
    """Rows of the revisions of evidence that later ones took the place of."""
    brought: dict[bytes, refs.Entry] = {}
    for entry in reader.entries(part, state):
        if entry.new is not None:
            brought[entry.new] = entry  # the oldest wins
    order = sorted(brought.items(), key=lambda one: one[1].seq)
    rows = []
    for (head, _), (_, later) in pairwise(order):
        obj = reader.object(part, head) if reader.object_bytes(part, head) is not None else None
        if head != state.head and isinstance(obj, Observation):
            ends = later.time if later.valid_from is None else later.valid_from
            old = _of_observation(ref, state, obj)
            rows.append(msgspec.structs.replace(old, head=head, ends=ends, by=ref))
    return rows


def _memory(
    reader: Reader,
    part: Part,
    found: View,
    now: int,
    ref: bytes,
    state: refs.RefState,
    obj: Memory | Observation,
) -> None:
    if not isinstance(obj, Memory) or obj.kind not in CLAIMS:
        return
    assert state.head is not None
    triple = "" if obj.triple is None else "\0".join(part.casefold() for part in obj.triple)
    row = Row(
        ref,
        state.head,
        exact_key(obj.text),
        _digest(
            obj.kind, triple, str(state.valid_from), str(state.valid_to), *obj.anchors, obj.trigger
        ),
        "",
        obj.kind,
        obj.deriver.name.encode(),
        state.starts,
        state.valid_to,
        obj.valid_from,
        state.replaced_by,
        state.lane,
        state.first,
        2 * _RANK.get(state.status, len(_RANK)) + (obj.deriver.name != memories.STATED),
        bool(state.flags & (refs.HELD | refs.PINNED)),
    )
    over = state.replaced_by is not None and state.valid_to is None
    if over or (state.valid_to is not None and state.valid_to <= now):
        if not _is_copy(reader, part, state):
            found.ended.append(row)
    elif state.starts <= now:
        found.claims.append(row)


def voices(reader: Reader, part: Part, memory: Memory) -> set[str]:
    """Who says what a memory rests on."""
    found = set()
    for cited in memory.cites:
        if reader.object_bytes(part, cited) is not None:
            obj = reader.object(part, cited)
            if isinstance(obj, Observation):
                found.add(voice_of(obj))
    return found


def voice_of(obj: Observation) -> str:
    """Who says something: the speaker, else the owner, else the role."""
    return obj.speaker or (OWNER_VOICE if obj.origin == "owner" else f"{obj.origin}/{obj.role}")


def _digest(*words: str) -> bytes:
    data = "\0".join(words).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=8).digest()
