"""Exact duplicates: of several that say exactly the same, one stays.

Evidence is retired in favour of the earliest of the same words by the same voice in the same
session, of the same asserted time; one that has a source stays rather than one that has none, and
two that have different sources both stay, since they confirm each other.  Memories are retired in
favour of the most trusted of the same words, kind and valid time; it takes their evidence over.

What says exactly what was replaced or closed, and was said before that by the same voice, ends with
it: else the old words would go on being told by their copies.

Nothing is removed: what is retired has an entry of the log with the reason `DUPLICATE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.hooks.sleep.look import SHOWN, voices
from remem.hooks.sleep.night import Moved
from remem.objects import chains, correct, draft_apply, evidence, memories, refs
from remem.objects.draft_apply import DUPLICATE
from remem.objects.model import Memory, Operation, Span
from remem.objects.reader import Found

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.hooks.sleep.look import Row, View
    from remem.hooks.sleep.night import Night
    from remem.objects.reader import Part
    from remem.objects.tx import Tx

RETIRED = "duplicates"  # name of the count


def retire(night: Night, part: Part, view: View) -> set[bytes]:
    """Retire exact duplicates; the refs that went."""
    went: set[bytes] = set()
    for keep, gone in _of_evidence(view.evidence):
        _try(night, went, gone, lambda tx, k=keep, g=gone: _evidence(tx, part, k, g))  # type: ignore[misc]
    for gone, ends, by in _copies_of_what_went(view, went):
        _try(night, went, gone, lambda tx, g=gone, e=ends, b=by: _follow(tx, part, g, e, b))  # type: ignore[misc]
    for gone, old in _copies_of_what_ended(view):
        _try(night, went, gone, lambda tx, g=gone, o=old: _follow_claim(tx, part, g, o))  # type: ignore[misc]
    for keep, gone in _of_claims([row for row in view.claims if row.ref not in went]):
        _try(night, went, gone, lambda tx, k=keep, g=gone: _claim(tx, part, k, g))  # type: ignore[misc]
    return went


def _try(night: Night, went: set[bytes], gone: Row, change: Callable[[Tx], bool]) -> None:
    if not night.over and night.do(change):
        went.add(gone.ref)
        night.count(RETIRED)


# -- which --------------------------------------------------------------------------------------


def _of_evidence(rows: list[Row]) -> list[tuple[Row, Row]]:
    """(what stays, what goes) among observations."""
    groups: dict[tuple[bytes, bytes, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.key, row.like, row.number), []).append(row)
    pairs = []
    for group in groups.values():
        if len(group) == 1:
            continue
        group.sort(key=lambda row: (row.rank, not row.source, row.first))
        stays: dict[bytes, Row] = {}
        for row in group:
            keep = stays.get(row.source)
            if keep is None and not row.source:
                keep = next(iter(stays.values()), None)
            if keep is None or row.marked:
                stays.setdefault(row.source, row)
            else:
                pairs.append((keep, row))
    return pairs


def _copies_of_what_went(view: View, went: set[bytes]) -> list[tuple[Row, int, bytes | None]]:
    """(what says the same, when that was replaced or closed, by what)."""
    over: dict[tuple[bytes, str, str], Row] = {}
    for row in view.gone:
        key = (row.key, row.voice, row.kind)
        before = over.get(key)
        if before is None or (before.ends or 0) < (row.ends or 0):
            over[key] = row
    found = []
    for row in view.evidence if over else ():
        old = over.get((row.key, row.voice, row.kind))
        if old is None or old.ends is None or row.marked or row.ref in went:
            continue
        if row.starts < old.ends and row.ref not in (old.by, old.ref):
            found.append((row, old.ends, old.by))
    return found


def _copies_of_what_ended(view: View) -> list[tuple[Row, Row]]:
    """(memory that says the same, memory that was replaced) where one outlived the other."""
    over = {row.key: row for row in sorted(view.ended, key=lambda r: r.ends or 0) if row.by}
    found = []
    for row in view.claims if over else ():
        old = over.get(row.key)
        if old is not None and old.ends is not None and row.starts < old.ends and not row.marked:
            if row.ref not in (old.by, old.ref):
                found.append((row, old))
    return found


def _of_claims(rows: list[Row]) -> list[tuple[Row, Row]]:
    """(what stays, what goes) among memories."""
    groups: dict[tuple[bytes, bytes], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.key, row.like), []).append(row)
    pairs = []
    for group in groups.values():
        group.sort(key=lambda row: (row.rank, row.first))
        pairs += [(group[0], row) for row in group[1:] if not row.marked]
    return pairs


# -- one change ---------------------------------------------------------------------------------


def present(tx: Tx, part: Part, row: Row) -> refs.RefState:
    """State of a ref that is as it was seen.

    Raises:
        Moved: it is not.
    """
    state = tx.reader.state(part, row.ref)
    if state is None or state.head != row.head or state.status not in SHOWN:
        raise Moved
    if state.replaced_by != row.by or state.valid_to != row.ends or state.flags & refs.CLOSED:
        raise Moved
    return state


def _evidence(tx: Tx, part: Part, keep: Row, gone: Row) -> bool:
    """Retire one observation in favour of another, to which what rests on it is pointed."""
    present(tx, part, keep)
    state = present(tx, part, gone)
    if state.flags & (refs.HELD | refs.PINNED):
        raise Moved
    words = tx.reader.object(part, keep.head).text
    old = tx.reader.object(part, gone.head).text
    for ref in tx.reader.cited_by(part, gone.head):
        other, memory = memories.head(tx, part, ref)
        if other.status not in SHOWN or memories.is_summary(memory):
            continue  # what is held back, and what sums up, goes on citing what it was made of
        pointed = _pointed(memory, gone.head, keep.head, old, words)
        memories.replace(tx, part, ref, other, pointed, reason=memories.EVIDENCE)
    # Not `correct.supersede`: what rests on it goes on resting on the same words.
    tx.record(
        part,
        "supersede",
        gone.ref,
        state,
        reason=DUPLICATE,
        valid_to=max(tx.present, state.starts),
        replaced_by=keep.ref,
    )
    return True


def _pointed(memory: Memory, gone: bytes, keep: bytes, old: str, words: str) -> Memory:
    """A memory that cites one observation in the place of another of the same words.

    Raises:
        Moved: that would change what it rests on.
    """
    if gone not in memory.cites or chains.RESUMES in memory.meta:
        raise Moved
    meta = memory.meta
    if evidence.REPEATS in meta:
        # The repeat goes with what said it: said twice without a time is said once.
        pairs = [[c.hex(), at] for c, at in evidence.repeats(memory) if c != gone]
        meta = {**meta, evidence.REPEATS: pairs}
        if not pairs:
            del meta[evidence.REPEATS]
    span = memory.span
    cites = list(dict.fromkeys(keep if cited == gone else cited for cited in memory.cites))
    if span is not None:
        cited = memory.cites[span.cite]
        start, end = span.start, span.end
        if cited == gone:
            moved = evidence.moved(old, (start, end), words)
            if moved is None:
                raise Moved
            (start, end), cited = moved, keep
        span = Span(cites.index(cited), start, end)
    return msgspec.structs.replace(memories.with_cites(memory, cites), span=span, meta=meta)


def _follow(tx: Tx, part: Part, gone: Row, ends: int, by: bytes | None) -> bool:
    """Let the copy of some words end as they did, and what was drawn from it alone with it."""
    state = present(tx, part, gone)
    if state.flags & (refs.HELD | refs.PINNED) or ends <= state.starts:
        raise Moved
    found = Found(part, gone.ref, state, None)
    if by is None:
        correct.close(tx, found, ends, reason=DUPLICATE, expected=gone.head)
        return True
    after = tx.reader.state(part, by)
    if after is None or after.head is None or after.status not in SHOWN:
        raise Moved
    if after.replaced_by is not None:
        raise Moved
    correct.supersede(tx, found, by, ends, expected=gone.head, reason=DUPLICATE)
    return True


def _follow_claim(tx: Tx, part: Part, gone: Row, old: Row) -> bool:
    """Let the copy of a memory be replaced as the memory was, where the same voice said both."""
    ended = memories.head(tx, part, old.ref)[1]
    copy = memories.head(tx, part, gone.ref)[1]
    mine, theirs = voices(tx.reader, part, copy), voices(tx.reader, part, ended)
    if not mine & theirs or old.ends is None:
        raise Moved
    return _follow(tx, part, gone, old.ends, old.by)


def _claim(tx: Tx, part: Part, keep: Row, gone: Row) -> bool:
    """Retire one memory in favour of another, which takes its evidence over."""
    present(tx, part, keep)
    state = present(tx, part, gone)
    if state.flags & (refs.HELD | refs.PINNED):
        raise Moved
    stays, goes = memories.head(tx, part, keep.ref)[1], memories.head(tx, part, gone.ref)[1]
    if len(set(stays.cites) | set(goes.cites)) > chains.MAX_CITES:
        raise Moved  # evidence would be lost
    op = operation(tx, "retire-duplicate", gone, into=keep)
    if draft_apply.obstacle(tx.reader, part, op):
        raise Moved
    draft_apply.apply(tx, part, op)
    return True


def operation(
    tx: Tx, action: str, target: Row, *, into: Row | None = None, reason: str = DUPLICATE
) -> Operation:
    """An operation that is applied by rule, as if it had been approved."""
    return Operation(
        1,
        action,
        None,
        target.ref,
        target.head,
        None if into is None else into.ref,
        None if into is None else into.head,
        None,
        [],
        reason,
        tx.actor.grant.principal,
        1,
        "",
        "",
    )
