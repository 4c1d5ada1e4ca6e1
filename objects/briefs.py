"""Briefs: what a person says before the next consolidation, with hints on what to keep.

A brief is evidence of the kind ``brief`` whose metadata hold the hints: full ids of short notes to
promote, of noise to let go, of loops that are done.  It is bookkeeping: no index has it, no
question is answered by it, nothing is derived from it.  The next consolidation reads what waits
(`waiting`), does what the hints say and closes each brief (`consume`).

Hints count by the word of who gave them, not of who carries them out: noise needs the owner's.  A
brief is one only by the reason of the entry that began it, which no import can give, so what merely
looks like a brief asks for nothing.

Source: remem-store(5), LISTS; remem-brief(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import authorship, correct, lists, loops, oid, refs, tiers, tombs
from remem.objects.admit import DEFAULT_LIMIT_B, Admitted, admit
from remem.objects.errors import (
    BadInput,
    NotFound,
    Refused,
    RememError,
    ScopeRefused,
    UsageError,
)
from remem.objects.lists import HINTS
from remem.objects.model import Incoming, Memory, Observation
from remem.objects.reader import Found
from remem.objects.scope import OWNER
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.model import Scope
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

KIND = lists.BRIEF_KIND
BEGUN = "brief"  # reason code of the entry that begins one
CONSUMED = "consumed"  # reason code of its end
HINTED = "brief"  # reason code of what is promoted by its word
PROMOTE, NOISE, DONE = "promote", "noise", "done"
SAID_NOTHING = "hints"  # text of a brief that has none of its own
MAX_HINTS = 1000


class Brief(msgspec.Struct, frozen=True):
    """One brief that waits.

    Attributes:
        part: its partition.
        ref: id of the ref.
        text: what was said.
        promote: refs of short notes to keep.
        noise: refs to let go.
        done: refs of loops that are done.
        time: record time, microseconds UTC.
        principal: who said it.
    """

    part: Part
    ref: bytes
    text: str
    promote: list[bytes]
    noise: list[bytes]
    done: list[bytes]
    time: int
    principal: str


class Consumed(msgspec.Struct):
    """What became of the hints of a brief.

    Attributes:
        promoted: notes that are kept now.
        expired: what was let go.
        done: loops that were closed.
        skipped: (ref, why) of hints that could not be followed.
    """

    promoted: list[bytes] = []
    expired: list[bytes] = []
    done: list[bytes] = []
    skipped: list[tuple[bytes, str]] = []


def add(
    tx: Tx,
    scope: Scope,
    text: str,
    *,
    promote: Iterable[bytes] = (),
    noise: Iterable[bytes] = (),
    done: Iterable[bytes] = (),
    limit_b: int = DEFAULT_LIMIT_B,
) -> Admitted:
    """Leave a brief for the next consolidation.

    Args:
        tx: the write transaction.
        scope: where it belongs; the hints are of the same partition.
        text: what is said; may be empty when there are hints.
        promote: refs of short notes to keep.
        noise: refs to let go before their time.
        done: refs of loops that are done.
        limit_b: largest text, bytes.

    Raises:
        BadInput: it says nothing, or has too many hints.
        NotFound: a hint names nothing of this partition.
        UsageError: a ref is named twice, in hints that contradict each other.
        ScopeRefused: noise is named by somebody else than the owner.
        Refused: a hint names what it cannot be about.
        Blocked: the text was forgotten.
    """
    tx.flush()
    part = tx.part(scope)
    hints = {
        PROMOTE: list(dict.fromkeys(promote)),
        NOISE: list(dict.fromkeys(noise)),
        DONE: list(dict.fromkeys(done)),
    }
    _check(tx, part, hints)
    if not text.strip():
        if not any(hints.values()):
            raise BadInput("a brief without words or hints says nothing")
        text = SAID_NOTHING
    record = Incoming(
        text=text,
        kind=KIND,
        collection=scope.collection,
        agent=scope.agent,
        session=scope.session,
        meta={HINTS: {name: [ref.hex() for ref in named] for name, named in hints.items()}},
    )
    admitted = admit(tx, record, limit_b=limit_b, reason=BEGUN)
    if admitted.status == "blocked":
        raise tombs.refusal(part, admitted.ref, "add")
    return admitted


def _check(tx: Tx, part: Part, hints: dict[str, list[bytes]]) -> None:
    """Raise for a hint that could not be followed now."""
    named = [ref for group in hints.values() for ref in group]
    if len(named) > MAX_HINTS:
        raise BadInput(f"a brief has at most {MAX_HINTS:,} hints, not {len(named):,}")
    if len(set(named)) < len(named):
        raise UsageError("the same id stands in two hints")
    grant = tx.actor.grant
    if hints[NOISE] and not grant.owner:
        raise ScopeRefused(
            f"'{grant.principal}' may not say what is noise", hint="only the owner does"
        ).audited("brief", "not_owner", part.number, hints[NOISE][0])
    for name, group in hints.items():
        for ref in group:
            why = _why_not(tx.reader, part, name, ref, grant.owner, grant.principal)
            if why:
                raise Refused(f"'{oid.short(ref)}' {why}")


def _why_not(reader: Reader, part: Part, name: str, ref: bytes, owner: bool, principal: str) -> str:
    """Why a hint of a principal cannot be followed, as the end of a sentence; empty when it can.

    Raises:
        NotFound, Forgotten: it names nothing of this partition.
    """
    state = reader.state(part, ref)
    if state is None or state.head is None:
        raise NotFound(f"nothing has the id '{oid.short(ref)}' in this scope")
    obj = reader.object(part, state.head)
    if not owner and not authorship.owns(reader, part, ref, state, principal):
        return "was written by somebody else"
    if name == NOISE:
        return tiers.why_no_noise(reader, part, state)
    if name == DONE:
        if not isinstance(obj, Memory) or obj.kind != loops.KIND:
            return "is no loop"
        return "is done already" if state.flags & refs.CLOSED else ""
    if not isinstance(obj, Observation) or obj.meta.get(lists.TIER) != lists.SHORT_TIER:
        return "is no short note"
    if state.status == tiers.EXPIRED and not owner:
        return "has expired, only the owner brings it back"
    if state.flags & refs.CLOSED or state.replaced_by is not None:
        return "does not hold any more"
    return ""


# -- what waits ---------------------------------------------------------------------------------


def waiting(reader: Reader) -> list[Brief]:
    """The briefs that wait for a consolidation, oldest first."""
    found = []
    for part in reader.parts:
        for ref, state in lists.members(reader, part, lists.BRIEF):
            brief = _brief(reader, part, ref, state)
            if brief is not None:
                found.append(brief)
    found.sort(key=lambda one: (one.time, one.ref))
    return found


def _brief(reader: Reader, part: Part, ref: bytes, state: refs.RefState) -> Brief | None:
    over = state.flags & refs.CLOSED or state.replaced_by is not None
    if over or state.head is None or refs.STATUSES[state.status] in WITHHELD:
        return None
    made = reader.entry(part, state.first)
    obj = reader.object(part, state.head)
    if made.reason != BEGUN or made.origin is not None or not isinstance(obj, Observation):
        return None
    given = obj.meta.get(HINTS)
    hints = given if isinstance(given, dict) else {}
    return Brief(
        part,
        ref,
        obj.text,
        _ids(hints.get(PROMOTE)),
        _ids(hints.get(NOISE)),
        _ids(hints.get(DONE)),
        made.time,
        made.principal,
    )


def _ids(value: object) -> list[bytes]:
    """Ids of a list of hints; what is none is passed over."""
    found = []
    for text in value if isinstance(value, list) else []:
        try:
            found.append(bytes.fromhex(text))
        except (TypeError, ValueError):
            continue
    return found


def consume(tx: Tx, brief: Brief) -> Consumed:
    """Do what the hints of a brief say, as far as it can still be done, and close it.

    Args:
        tx: the write transaction.
        brief: one that waits, as `waiting` told it.

    Raises:
        NotFound: it is gone, or was consumed already.
    """
    tx.flush()
    part = brief.part
    state = tx.reader.state(part, brief.ref)
    present = None if state is None else _brief(tx.reader, part, brief.ref, state)
    if state is None or present is None:
        raise NotFound(f"the brief '{oid.short(brief.ref)}' does not wait any more")
    done = Consumed()
    for name, group in ((PROMOTE, present.promote), (DONE, present.done), (NOISE, present.noise)):
        for ref in group:
            why = _follow(tx, part, name, ref, present.principal, done)
            if why:
                done.skipped.append((ref, why))
            tx.flush()
    found = Found(part, brief.ref, state, None)
    correct.close(tx, found, tx.present, reason=CONSUMED)
    return done


def _follow(tx: Tx, part: Part, name: str, ref: bytes, principal: str, done: Consumed) -> str:
    """Follow one hint; why it could not be, or an empty text."""
    if name == NOISE and principal != OWNER:
        return "only the owner says what is noise"
    try:
        why = _why_not(tx.reader, part, name, ref, principal == OWNER, principal)
        state = tx.reader.state(part, ref)
        if why or state is None:
            return why or "is gone"
        found = Found(part, ref, state, None)
        if name == PROMOTE:
            if not tiers.promote(tx, found, reason=HINTED):
                return "is kept for good already"
            done.promoted.append(ref)
        elif name == DONE:
            loops.finish(tx, found)
            done.done.append(ref)
        else:
            gone = tiers.noise(tx, found)
            done.expired += [*gone.notes, *gone.memories]
    except RememError as error:
        return str(error)
    return ""
