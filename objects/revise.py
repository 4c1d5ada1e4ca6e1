"""Other words for a ref: revise and roll back.

A fact and the sentence that stated it are one statement: whichever of the two is named, both
change.  A memory that was derived keeps its words, which are those of its deriver: revising it
states a new one that takes its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, encode, gate, memories, oid, refs, statements, tombs, withheld
from remem.objects.admit import DEFAULT_LIMIT_B, normalise
from remem.objects.carry import FOLLOWS, cascade, fresh, rechain, recite, single_key
from remem.objects.errors import (
    BadInput,
    HeadMoved,
    NotFound,
    Refused,
    ReviewRefused,
    UsageError,
)
from remem.objects.memories import STATED
from remem.objects.model import Deriver, Memory, Observation, Span
from remem.objects.reader import Found

if TYPE_CHECKING:
    from remem.objects.reader import Part
    from remem.objects.tx import Tx


# -- revise -------------------------------------------------------------------------------------


def revise(
    tx: Tx,
    found: Found,
    text: str,
    *,
    expected: bytes | None = None,
    since: int | None = None,
    reason: str = "",
    limit_b: int = DEFAULT_LIMIT_B,
) -> bytes:
    """Give a ref a new text; everything else of it is carried over.

    Args:
        tx: the write transaction.
        found: the ref.
        text: the new text.
        expected: the head that the caller read (compare-and-set), or None.
        since: when the new text begins to hold, microseconds UTC; None for now, and for what has
            ended already for its whole time.
        reason: reason code.
        limit_b: largest text, bytes.

    Returns:
        Id of the new head, or of the memory that took the place of a derived one; the old head
        when the text is the same.

    Raises:
        HeadMoved: the head is not the expected one, or something else took its place.
        BadInput: the text cannot be taken.
        Blocked: it was forgotten.
        UsageError: the new text would hold before the old one did, or after its end.
    """
    text, codes = gate.text(text)
    return _revise(tx, found, text, codes, expected, since, reason, limit_b)


def _revise(
    tx: Tx,
    found: Found,
    text: str,
    codes: list[str],
    expected: bytes | None,
    since: int | None,
    reason: str,
    limit_b: int,
) -> bytes:
    part, state = found.part, fresh(tx, found, expected)
    assert state.head is not None
    text = _checked(tx, part, text, limit_b)
    old = tx.reader.object(part, state.head)
    if old.text == text:
        return state.head
    starts = _since(tx, found, state, since)
    if isinstance(old, Memory):
        _check_parts(tx, part, old, text)
        told = _statement_of(tx, part, old)
        if told is None or len(_facts_of(tx, part, told)) != 1:
            return _restate(tx, part, found.ref, state, old, text, codes, starts, reason, limit_b)
        _new_sentence(tx, part, told, [found.ref], text, codes, starts, reason)
        return _latest(tx, part, found.ref)
    facts = _facts_of(tx, part, found.ref)
    if facts:
        states = [(fact, memories.head(tx, part, fact)[0]) for fact in facts]
        for fact in facts:
            _check_parts(tx, part, memories.head(tx, part, fact)[1], text)
        living = [pair for pair in states if not _over(tx, pair[1])]
        for fact, fact_state in living or states:
            starts = _since(tx, Found(part, fact, fact_state, None), fact_state, since)
        told_by = [fact for fact, _ in living or states]
        _new_sentence(tx, part, found.ref, told_by, text, codes, starts, reason)
        return _latest(tx, part, found.ref)
    return _new_text(tx, part, found.ref, state, old, text, codes, starts, reason)


def _latest(tx: Tx, part: Part, ref: bytes) -> bytes:
    state = tx.reader.state(part, ref)
    assert state is not None and state.head is not None
    return state.head


def _checked(tx: Tx, part: Part, text: str, limit_b: int) -> str:
    """A text as it is stored.

    Raises:
        BadInput: it is empty, too large or not UTF-8.
        Blocked: it was forgotten.
    """
    text = normalise(text)
    if not text.strip():
        raise BadInput("the text is empty")
    try:
        size_b = len(text.encode())
    except UnicodeEncodeError as error:
        raise BadInput("the text holds half a surrogate pair, which is not UTF-8") from error
    if size_b > limit_b:
        raise BadInput(f"the text has {size_b:,} bytes, the limit is {limit_b:,}")
    _unblocked(tx, part, text)
    return text


def _unblocked(tx: Tx, part: Part, text: str) -> None:
    tomb = tombs.blocked(tx, part, text)
    if tomb is not None:
        raise tombs.refusal(part, tomb, "revise")


def _since(tx: Tx, found: Found, state: refs.RefState, since: int | None) -> int:
    """When a new text begins to hold."""
    ended = _over(tx, state)
    if since is None:
        if state.replaced_by is not None and ended:
            raise HeadMoved(
                f"'{oid.short(found.ref)}' was replaced by '{oid.short(state.replaced_by)}'",
                hint="correct that one, or say with --at since when the new text held",
            ).audited("revise", "replaced", found.part.number, found.ref)
        if ended:
            return state.starts
        return tx.present if _ran_ahead(tx, found.part, state) else max(tx.present, state.starts)
    if state.valid_from is not None and since < state.valid_from:
        raise UsageError("the new text cannot begin before the old one did")
    if state.valid_to is not None and since >= state.valid_to:
        raise UsageError("the new text cannot begin where the statement has ended")
    return since


def _ran_ahead(tx: Tx, part: Part, state: refs.RefState) -> bool:
    """Whether it begins later only because the clock that recorded it was set back since."""
    if state.starts <= tx.present or state.head is None:
        return False
    return memories.began_at_once(tx.reader.object(part, state.head), state)


def _over(tx: Tx, state: refs.RefState) -> bool:
    return state.valid_to is not None and state.valid_to <= tx.present


def _new_text(
    tx: Tx,
    part: Part,
    ref: bytes,
    state: refs.RefState,
    old: Observation,
    text: str,
    codes: list[str],
    starts: int,
    reason: str,
) -> bytes:
    """Give an observation another text, and carry it to what was derived from the old one."""
    assert state.head is not None
    new = _reworded(tx, old, text)
    head = tx.put_revision(part, ref, new)
    against = [] if tx.actor.grant.owner else gate.instructions_in(new)
    status = "quarantined" if against else None
    attests = gate.keep(tx, part, head, status or refs.STATUSES[state.status], [*codes, *against])
    tx.record(
        part,
        "revise",
        ref,
        state,
        new=head,
        reason=reason,
        valid_from=starts,
        status=status,
        attests=attests,
    )
    cascade(tx, part, state.head, ref, starts, successor=head)
    return head


def _reworded(tx: Tx, old: Observation, text: str) -> Observation:
    """Evidence in other words, which are those of the principal who acts."""
    origin = tx.actor.grant.word(old.origin)
    return msgspec.structs.replace(old, salt=encode.ZERO_SALT, text=text, raw=None, origin=origin)


def _new_sentence(
    tx: Tx,
    part: Part,
    told: bytes,
    facts: list[bytes],
    text: str,
    codes: list[str],
    starts: int,
    reason: str,
) -> None:
    """Give a sentence, and facts that were stated by it, another text."""
    state = tx.reader.state(part, told)
    assert state is not None and state.head is not None
    sentence = tx.reader.object(part, state.head)
    assert isinstance(sentence, Observation)
    new = _reworded(tx, sentence, text)
    head = tx.put_revision(part, told, new)
    against = [] if tx.actor.grant.owner else gate.instructions_in(new)
    status = "quarantined" if against else None
    attests = gate.keep(tx, part, head, status or refs.STATUSES[state.status], [*codes, *against])
    tx.record(
        part,
        "revise",
        told,
        state,
        new=head,
        reason=reason,
        valid_from=starts,
        status=status,
        attests=attests,
    )
    for fact in facts:
        fact_state, memory = memories.head(tx, part, fact)
        said = msgspec.structs.replace(
            memory,
            salt=encode.ZERO_SALT,
            text=text,
            triple=statements.reworded(memory.triple, memory.text, text),
            cites=[head],
            span=Span(0, 0, len(text)),
        )
        ahead = _ran_ahead(tx, part, fact_state)
        since = starts if ahead else max(starts, fact_state.starts)
        memories.replace(
            tx, part, fact, fact_state, said, reason=reason, valid_from=since, codes=codes
        )
        rechain(tx, part, fact, memory, said)
    cascade(tx, part, state.head, told, starts, successor=head)


def _restate(
    tx: Tx,
    part: Part,
    ref: bytes,
    state: refs.RefState,
    old: Memory,
    text: str,
    codes: list[str],
    starts: int,
    reason: str,
    limit_b: int,
) -> bytes:
    """State a memory that takes the place of another one; everything but the words carries over."""
    told = statements.say(tx, old.scope, text, limit_b=limit_b, codes=codes)
    said = msgspec.structs.replace(
        old,
        salt=encode.ZERO_SALT,
        text=text,
        triple=statements.reworded(old.triple, old.text, text),
        cites=[told.id],
        span=Span(0, 0, len(text)),
        deriver=Deriver(STATED),
        confidence=1000,
        valid_from=starts,
        valid_to=old.valid_to if old.valid_to is not None and old.valid_to > starts else None,
    )
    standing = withheld.kept(tx, state, statements.standing(tx))
    chain = chains.chain_of(tx, part, ref, old)
    single = None
    if chain is not None and said.triple is not None:
        single = old.triple is not None and chain == single_key(tx, part, old)
    new = memories.create(
        tx,
        part,
        said,
        status=standing,
        valid_from=starts,
        valid_to=said.valid_to,
        reason=reason,
        codes=codes,
        single=single,
    )
    if new is None:
        meta: dict[str, object] = {**said.meta, "stated": tx.now}
        again = msgspec.structs.replace(said, meta=meta)
        new = memories.create(
            tx,
            part,
            again,
            status=standing,
            valid_from=starts,
            reason=reason,
            codes=codes,
            single=single,
        )
        assert new is not None
    tx.record(
        part,
        "supersede",
        ref,
        state,
        reason=reason or "corrected",
        valid_to=max(starts, state.starts),
        replaced_by=new,
    )
    tx.flush()
    if chain is not None and single is not None:
        assert said.triple is not None
        chains.join(tx, part, chains.chain_key(tx.reader, part, said.triple, single=single), new)
        chains.relink(tx, part, chain)
    return new


def _check_parts(tx: Tx, part: Part, old: Memory, text: str) -> None:
    """Raise where a part of the triple of another text was forgotten, before anything is stored."""
    new = statements.reworded(old.triple, old.text, text) if tx.has_values else None
    parts = [word for word in new or () if word not in (old.triple or ())]
    tombs.check_names(tx, part, parts, "revise")


def _statement_of(tx: Tx, part: Part, memory: Memory) -> bytes | None:
    """The ref of the sentence that a stated memory consists of, when it rests on nothing else."""
    if memory.deriver.name != STATED or len(memory.cites) != 1:
        return None
    ref = tx.reader.ref_of(part, memory.cites[0])
    state = tx.reader.state(part, ref)
    if state is None or state.head != memory.cites[0]:
        return None
    told = tx.reader.object(part, state.head)
    own = isinstance(told, Observation) and told.kind == statements.KIND
    return ref if own and told.text == memory.text else None


def _facts_of(tx: Tx, part: Part, told: bytes) -> list[bytes]:
    """Refs of the facts that a sentence states and that rest on nothing else."""
    state = tx.reader.state(part, told)
    if state is None or state.head is None:
        return []
    if tx.reader.object(part, state.head).kind != statements.KIND:
        return []
    found = []
    for fact in tx.reader.cited_by(part, state.head):
        fact_state = tx.reader.state(part, fact)
        if fact_state is None or fact_state.head is None:
            continue
        memory = tx.reader.object(part, fact_state.head)
        if isinstance(memory, Memory) and _statement_of(tx, part, memory) == told:
            found.append(fact)
    return found


# -- rollback -----------------------------------------------------------------------------------


def rollback(
    tx: Tx, found: Found, to: bytes | None, *, expected: bytes | None = None, reason: str = ""
) -> bytes:
    """Make an earlier revision the head again, from now on.

    Args:
        tx: the write transaction.
        found: the ref.
        to: object id of the revision; None for the one that the head followed.
        expected: the head that the caller read, or None.
        reason: reason code.

    Returns:
        Id of the head.

    Raises:
        NotFound: it was never a revision of this ref, or its bytes are gone.
        Refused: there is none before.
        Blocked: its text was forgotten.
        HeadMoved: the head is not the expected one, or something else took its place.
    """
    part, state = found.part, fresh(tx, found, expected, "rollback")
    tx.flush()
    heads = revisions(tx, part, state)
    if to is None:
        place = heads.index(state.head) if state.head in heads else 0
        if place == 0:
            raise Refused(
                f"'{oid.short(found.ref)}' has no earlier revision", hint="'remem log' shows them"
            )
        to = heads[place - 1]
    if to not in heads:
        raise NotFound(f"'{oid.short(to)}' is no revision of '{oid.short(found.ref)}'")
    if to == state.head:
        return to
    if not tx.actor.grant.owner and withheld.was_held_back(tx.reader, part, state, to):
        raise ReviewRefused(
            f"'{oid.short(to)}' was held back: only the owner goes back to it"
        ).audited("release", "not_owner", part.number, found.ref)
    obj = tx.reader.object(part, to)
    _unblocked(tx, part, obj.text)
    starts = _since(tx, found, state, None)
    if isinstance(obj, Memory):
        _back(tx, part, found.ref, state, to, starts, reason)
        for cited in obj.cites:
            _follow_back(tx, part, cited, starts)
        return to
    assert state.head is not None
    before = state.head
    facts = tx.reader.cited_by(part, before)
    _back(tx, part, found.ref, state, to, starts, reason)
    for fact in facts:
        _fact_back(tx, part, fact, to, starts)
    cascade(tx, part, before, found.ref, starts, successor=to)
    return to


def _back(
    tx: Tx, part: Part, ref: bytes, state: refs.RefState, to: bytes, starts: int, reason: str
) -> None:
    assert state.head is not None
    was, now = tx.reader.object(part, state.head), tx.reader.object(part, to)
    tx.record(part, "rollback", ref, state, new=to, reason=reason, valid_from=starts)
    recite(tx, part, ref, state.head, to)
    rechain(tx, part, ref, was, now)


def _follow_back(tx: Tx, part: Part, cited: bytes, starts: int) -> None:
    """Roll the sentence of a stated fact back with it."""
    ref = tx.reader.ref_of(part, cited)
    state = tx.reader.state(part, ref)
    if state is None or state.head in (None, cited):
        return
    if tx.reader.object(part, cited).kind == statements.KIND:
        tx.record(part, "rollback", ref, state, new=cited, reason=FOLLOWS, valid_from=starts)


def _fact_back(tx: Tx, part: Part, fact: bytes, to: bytes, starts: int) -> None:
    """Roll a stated fact back to its revision that rests on an earlier revision of a sentence."""
    state = tx.reader.state(part, fact)
    if state is None or state.head is None or state.replaced_by is not None:
        return
    for head in revisions(tx, part, state):
        memory = tx.reader.object(part, head)
        if isinstance(memory, Memory) and memory.cites == [to]:
            if memory.deriver.name == STATED and head != state.head:
                _back(tx, part, fact, state, head, starts, FOLLOWS)
            return


def revisions(tx: Tx, part: Part, state: refs.RefState) -> list[bytes]:
    """Heads of a ref in the order in which each first came."""
    seen: dict[bytes, None] = {}
    for entry in reversed(list(tx.reader.entries(part, state))):
        if entry.new is not None:
            seen.setdefault(entry.new)
    return list(seen)
