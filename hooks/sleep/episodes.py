"""Summaries of episodes: what was said in one sitting, in its own words and much shorter.

An episode is a stretch of turns of one session without a long pause.  Its summary is proposed as a
draft: it cites every turn that it sums up, begins to hold when the first was said and names the
days.  Turns that hold no longer, and words that were replaced, are left out.

A summary that is shown and whose sources have changed, or to whose episode much was added, is made
anew and proposed in the place of the old one.  What was denied is not proposed again.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from remem.hooks.sleep.attach import MAKER, offer, room
from remem.hooks.sleep.extract import Turn, extract
from remem.hooks.sleep.sameness import exact_key
from remem.objects import drafts, encode, instant, memories, oid, refs, summaries, tombs, views
from remem.objects.model import Memory, Observation
from remem.objects.views import CURRENT, Eye, Lens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.hooks.sleep.look import Row, View
    from remem.hooks.sleep.night import Night
    from remem.objects.reader import Part, Reader

SUMMED, RENEWED = "summaries", "renewed"  # names of the counts
PAUSE_US = 6 * 3_600_000_000  # from so long a pause on it is another episode
MIN_TURNS = 6
MIN_CHARS = 600
MAX_TURNS = 200
CONFIDENCE = 700
_WAITS = refs.STATUS_CODE["pending"]
_DENIED = refs.STATUS_CODE["rejected"]
_HIDDEN = frozenset(refs.STATUS_CODE[status] for status in views.WITHHELD)


class _Known(msgspec.Struct):
    """A summary that is there, with the refs of what it sums up."""

    ref: bytes
    state: refs.RefState
    memory: Memory
    sources: set[bytes]
    stale: bool


def propose(night: Night, part: Part, view: View) -> bool:
    """Propose summaries; False when some episode may still go on and was left for later."""
    whole = True
    known = _known(night, part)
    by_source = _by_source(known)
    used: set[bytes] = set()
    barred = {row.key for row in (*view.gone, *view.ended)}
    lanes: dict[int, list[Row]] = {}
    for row in view.evidence:
        if row.turn:
            lanes.setdefault(row.number, []).append(row)
    for number in sorted(lanes):
        for episode in _episodes(lanes[number]):
            if night.over:
                return False
            if episode[-1].starts > night.now - night.quiet_us:
                whole = False
                continue
            _consider(night, part, [row.ref for row in episode], by_source, used, barred)
    for one in known:
        if one.stale and one.state.status not in _HIDDEN and one.ref not in used and not night.over:
            _renew(night, part, one, sorted(one.sources), barred)
    return whole and not night.over


def _known(night: Night, part: Part) -> list[_Known]:
    """The summaries of a partition that were neither replaced nor closed."""
    found = []
    with night.store.read(night.actor.grant) as reader:
        eye = Eye(Lens(night.now), reader)
        for ref, state, memory in summaries.every(reader, part):
            if state.replaced_by is None and not state.flags & refs.CLOSED:
                sources = {reader.ref_of(part, cited) for cited in memory.cites}
                stale = summaries.stale(eye, part, state, memory) is not None
                found.append(_Known(ref, state, memory, sources, stale))
    return found


def _by_source(known: list[_Known]) -> dict[bytes, list[_Known]]:
    found: dict[bytes, list[_Known]] = {}
    for one in known:
        for source in one.sources:
            found.setdefault(source, []).append(one)
    return found


def _episodes(rows: list[Row]) -> Iterator[list[Row]]:
    """The turns of a session, cut at long pauses; those with enough of them."""
    rows = sorted(rows, key=lambda row: (row.starts, row.first))
    cuts = [0]
    for place, (before, after) in enumerate(pairwise(rows), 1):
        if after.starts - before.starts > PAUSE_US or place - cuts[-1] >= MAX_TURNS:
            cuts.append(place)
    for start, end in pairwise([*cuts, len(rows)]):
        if end - start >= MIN_TURNS:
            yield rows[start:end]


def _consider(
    night: Night,
    part: Part,
    episode: list[bytes],
    known: dict[bytes, list[_Known]],
    used: set[bytes],
    barred: set[bytes],
) -> None:
    """Propose a summary of an episode unless there is one that will do."""
    turns = set(episode)
    near = {one.ref: one for turn in episode for one in known.get(turn, ())}
    own = [
        one
        for one in near.values()
        if 2 * len(one.sources & turns) >= min(len(turns), len(one.sources))
    ]
    used.update(one.ref for one in own)
    if any(one.state.status == _WAITS and not one.stale for one in own):
        return
    shown = [one for one in own if one.state.status not in _HIDDEN]
    if any(not one.stale and not _grew(one, turns) for one in shown):
        return
    if shown:
        _renew(night, part, shown[0], episode, barred)
        return
    denied = [one for one in own if one.state.status == _DENIED and not one.stale]
    if any(not _grew(one, turns) for one in denied):
        return
    memory = _summary(night, part, episode, barred) if room(night, part) else None
    if memory is not None:
        proposal = drafts.Proposal(action="summary", memory=memory, reason="episode")
        night.count(SUMMED, offer(night, part, proposal))


def _grew(one: _Known, turns: set[bytes]) -> bool:
    """Whether much was said in an episode since it was summed up."""
    return len(turns - one.sources) >= max(MIN_TURNS, len(one.sources) // 2)


def _renew(night: Night, part: Part, old: _Known, sources: list[bytes], barred: set[bytes]) -> None:
    """Propose a summary of the present sources in the place of an old one."""
    if not room(night, part):
        return
    memory = _summary(night, part, sources, barred)
    if memory is None:
        night.note(f"the summary '{oid.short(old.ref)}' is stale, and too little is left to sum up")
        return
    if memory.text != old.memory.text:
        proposal = drafts.Proposal(
            action="summary", memory=memory, target=old.ref, seen=old.state.head, reason="renewed"
        )
        night.count(RENEWED, offer(night, part, proposal))


def _summary(night: Night, part: Part, sources: list[bytes], barred: set[bytes]) -> Memory | None:
    """A summary of what holds of some sources, or None where that is too little."""
    with night.store.read(night.actor.grant) as reader:
        told = _told(reader, part, sources, night.now)
        if len(told) < MIN_TURNS or sum(len(obj.text) for _, obj in told) < MIN_CHARS:
            return None
        turns = [_turn(obj) for _, obj in told]
        head = _head(told)
        text = extract(turns, head, skip=lambda said: bool(barred) and exact_key(said) in barred)
        if not text or _is_forgotten(reader, part, text):
            return None
        first = told[0][1]
        return Memory(
            encode.ZERO_SALT,
            first.scope,
            memories.SUMMARY,
            text,
            None,
            [head_id for head_id, _ in told],
            None,
            MAKER,
            CONFIDENCE,
            first.asserted,
            None,
            first.offset,
            [],
            "",
            [],
            {"turns": len(told)},
        )


def _told(
    reader: Reader, part: Part, sources: list[bytes], now: int
) -> list[tuple[bytes, Observation]]:
    """(object id, observation) of the sources that may be shown and hold, in order of time."""
    eye = Eye(Lens(now), reader)
    found = []
    for ref in sources:
        state = reader.state(part, ref)
        if state is None or state.head is None:
            continue
        seen = eye.see(part, ref, state.head)
        if seen is None or seen[1] != CURRENT:
            continue
        obj = reader.object(part, state.head)
        if isinstance(obj, Observation):
            found.append((state.starts, state.first, state.head, obj))
    found.sort(key=lambda one: one[:2])
    return [(head, obj) for _, _, head, obj in found]


def _turn(obj: Observation) -> Turn:
    day = "" if obj.asserted is None else instant.display(obj.asserted, obj.offset)[:10]
    return Turn(day, obj.speaker or obj.role, obj.text)


def _head(told: list[tuple[bytes, Observation]]) -> str:
    """The first line: which session, when, how much."""
    days = [turn.day for turn in (_turn(obj) for _, obj in told) if turn.day]
    session = told[0][1].scope.session
    when = ""
    if days:
        when = f" of {min(days)}" if min(days) == max(days) else f" of {min(days)} to {max(days)}"
    return f"Session {session}{when}, {len(told)} turns in extracts:"


def _is_forgotten(reader: Reader, part: Part, text: str) -> bool:
    """Whether a tombstone keeps a text out; proposing it would only leave a refusal each night."""
    return tombs.listed(reader.txn, part, text) is not None
