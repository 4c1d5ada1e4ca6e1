"""Loops: open intents that come back when their time has come or their topic is spoken of.

A loop is a memory of the kind ``loop`` that cites the sentence by which it was stated.  Its trigger
is a time or a topic, never both: ``trigger`` holds it as it was written, ``meta`` what it means
(``due``, an instant, or ``topic``, words).  A loop is kept when it is done: it is closed with the
reason ``done``, so that the history shows it.

A loop is seen through a lens like everything else: one that is withheld is not due.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import correct, encode, lists, memories, oid, refs, statements, tombs
from remem.objects.admit import DEFAULT_LIMIT_B, admit
from remem.objects.errors import BadInput, NotFound, Refused
from remem.objects.model import Incoming, Memory
from remem.objects.views import CURRENT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from remem.objects.model import Scope
    from remem.objects.reader import Found, Part
    from remem.objects.tx import Tx
    from remem.objects.views import Eye

    Words = Callable[[str], Collection[bytes]]

KIND = "loop"
DONE = "done"  # reason code of the end of a loop
NOTE_KIND = "note"  # kind of the evidence that says how a loop ended
DUE, TOPIC, NOTE = "due", "topic", "note"  # keys of ``meta``
MAX_TOPIC = 200  # characters
ALL_OF = 3  # a topic of so many words needs each of them, a longer one three in four

__all__ = ["DONE", "KIND", "Loop", "add", "due", "every", "finish", "is_due", "opened", "settled"]


class Loop(msgspec.Struct, frozen=True):
    """One loop as a lens sees it.

    Attributes:
        part: its partition.
        ref: id of the ref.
        state: its state.
        memory: its head.
        due: instant from which it is due, microseconds UTC, or None for a topic.
        topic: words that bring it back, or "" for a time.
        open: it holds still.
    """

    part: Part
    ref: bytes
    state: refs.RefState
    memory: Memory
    due: int | None
    topic: str
    open: bool


def add(
    tx: Tx,
    scope: Scope,
    text: str,
    *,
    when: int | None = None,
    topic: str = "",
    written: str = "",
    offset: int | None = None,
    limit_b: int = DEFAULT_LIMIT_B,
) -> statements.Stated:
    """Open a loop.

    Args:
        tx: the write transaction.
        scope: where it belongs.
        text: what is intended.
        when: instant from which it is due, microseconds UTC, or None for a topic.
        topic: words that bring it back, or "" for a time.
        written: the trigger as it was written; by default the topic.
        offset: minutes east of UTC in which the time was written.
        limit_b: largest text, bytes.

    Raises:
        BadInput: it has no trigger or two, or the text cannot be taken.
        Blocked: the text was forgotten.
    """
    words = " ".join(topic.split())
    if (when is None) == (not words):
        raise BadInput("a loop has one trigger, a time or a topic")
    if len(words) > MAX_TOPIC:
        raise BadInput(f"the topic has more than {MAX_TOPIC} characters")
    meta: dict[str, object] = {TOPIC: words} if when is None else {DUE: when}
    return statements.plain(
        tx,
        scope,
        text,
        kind=KIND,
        cues=[words] if words else [],
        trigger=written or words,
        offset=offset,
        meta=meta,
        limit_b=limit_b,
    )


# -- looking ------------------------------------------------------------------------------------


def every(eye: Eye) -> list[Loop]:
    """The loops that the lens may show, done ones too, in the order of their making."""
    found = list(_seen(eye))
    found.sort(key=lambda loop: (loop.state.created, loop.ref))
    return found


def opened(eye: Eye) -> list[Loop]:
    """The loops that hold at the instant the lens looks at: by time first, then in order."""
    found = [loop for loop in every(eye) if loop.open]
    found.sort(key=lambda loop: (loop.due is None, loop.due or 0))
    return found


def due(eye: Eye, now: int, text: str = "", words: Words | None = None) -> list[Loop]:
    """The open loops whose time has come, and those whose topic a text speaks of.

    Args:
        eye: a lens at a snapshot.
        now: microseconds UTC.
        text: a question, a prompt, or empty.
        words: the terms of a text; without it topics bring nothing back.
    """
    said = frozenset(words(text)) if words is not None and text else frozenset()
    return [loop for loop in opened(eye) if is_due(loop, now, said, words)]


def is_due(loop: Loop, now: int, said: Collection[bytes], words: Words | None) -> bool:
    """Whether a loop is due.

    Args:
        loop: an open one.
        now: microseconds UTC.
        said: terms of what is spoken of.
        words: the terms of a text.
    """
    if loop.due is not None:
        return loop.due <= now
    if words is None or not said:
        return False
    wanted = frozenset(words(loop.topic))
    there = len(wanted & frozenset(said))
    needed = len(wanted) if len(wanted) <= ALL_OF else -(-3 * len(wanted) // 4)
    return bool(wanted) and there >= needed


def _seen(eye: Eye) -> Iterator[Loop]:
    reader = eye.reader
    for part in reader.parts:
        for ref, _ in lists.members(reader, part, lists.LOOP):
            sight = eye.of(part, ref)
            if sight is None or sight.held is None or sight.held.head is None:
                continue
            memory = reader.object(part, sight.held.head)
            if not isinstance(memory, Memory) or memory.kind != KIND:
                continue
            when, topic = memory.meta.get(DUE), memory.meta.get(TOPIC)
            yield Loop(
                part,
                ref,
                sight.held,
                memory,
                when if isinstance(when, int) else None,
                topic if isinstance(topic, str) else "",
                sight.truth == CURRENT,
            )


def settled(eye: Eye, loop: Loop) -> str:
    """How a loop ended, in the words given then; empty when none were, or they may not be shown."""
    said = loop.memory.meta.get(NOTE)
    try:
        note = bytes.fromhex(said) if isinstance(said, str) else b""
        if len(note) != len(loop.ref) or eye.of(loop.part, note) is None:
            return ""
        return eye.reader.object(loop.part, note).text
    except (NotFound, Refused, ValueError):
        return ""


# -- ending -------------------------------------------------------------------------------------


def finish(tx: Tx, found: Found, *, note: str = "", limit_b: int = DEFAULT_LIMIT_B) -> None:
    """Say that what was intended is done; the loop is kept.

    Args:
        tx: the write transaction.
        found: the loop.
        note: how it ended; it is kept as evidence of its own.
        limit_b: largest note, bytes.

    Raises:
        NotFound: it is no loop, or gone.
        Refused: it is done already, or was replaced.
        Blocked: the note was forgotten.
    """
    tx.flush()
    part, ref = found.part, found.ref
    state, memory = memories.head(tx, part, ref)
    if memory.kind != KIND:
        raise NotFound(f"'{oid.short(ref)}' is no loop", hint="'remem loops' lists them")
    if state.flags & refs.CLOSED:
        raise Refused(f"'{oid.short(ref)}' is done already")
    if note.strip():
        record = Incoming(
            text=note,
            kind=NOTE_KIND,
            collection=memory.scope.collection,
            agent=memory.scope.agent,
            session=memory.scope.session,
            meta={KIND: ref.hex()},
        )
        said = admit(tx, record, limit_b=limit_b)
        if said.status == "blocked":
            raise tombs.refusal(part, said.ref, "add")
        told = msgspec.structs.replace(
            memory, salt=encode.ZERO_SALT, meta={**memory.meta, NOTE: said.ref.hex()}
        )
        memories.replace(tx, part, ref, state, told, reason=memories.EVIDENCE)
        tx.flush()
    correct.close(tx, found, tx.present, reason=DONE)
