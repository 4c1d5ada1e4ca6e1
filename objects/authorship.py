"""Whose word a ref is, and what a principal that is not the owner may change.

Such a principal adds evidence and changes what it, or a principal that descends from it, wrote.
What others wrote it may add evidence to, and nothing else, unless it reviews; and what the owner
has pinned it may not change at all, since that stands word for word before everybody.  Nothing
becomes verified by its own hand: a new text of something that was approved has to be approved
again, whoever reviews.

`remem.objects.tx` asks this module about every entry of the ref log.

Source: remem(7), PRINCIPALS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects import principals, refs
from remem.objects.carry import FOLLOWS
from remem.objects.errors import NotFound, ScopeRefused
from remem.objects.links import LINK
from remem.objects.model import Memory
from remem.objects.scope import BUILT_IN
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from remem.objects.encode import Obj
    from remem.objects.reader import Part, Reader
    from remem.objects.refs import Entry, RefState
    from remem.objects.scope import Grant
    from remem.objects.tx import Tx

VERIFIED = refs.STATUS_CODE["verified"]
PROVISIONAL = refs.STATUS_CODE["provisional"]
_HELD = frozenset(refs.STATUS_CODE[status] for status in WITHHELD)
_PENDING = refs.STATUS_CODE["pending"]
_OWNERS = frozenset(
    refs.OP_CODE[op] for op in ("erase", "purge", "flag", "hold", "unhold", "pin", "unpin")
)
_HINT = "propose the change, or ask the owner to make it"


def trusted(grant: Grant) -> bool:
    """True for the owner and for the store's own work, which follows the rules of its modules."""
    return grant.owner or grant.principal in BUILT_IN


def check(tx: Tx, part: Part, state: RefState | None, entry: Entry) -> None:
    """Raise unless the principal who acts may append an entry.

    Args:
        tx: the write transaction.
        part: its partition.
        state: state of the ref before, None where the entry begins it.
        entry: what would be appended.

    Raises:
        ScopeRefused: it may not.
    """
    grant = tx.actor.grant
    if trusted(grant):
        return
    why = _begin(grant, entry) if state is None else _change(tx, part, state, entry)
    if why:
        what, outcome = why
        raise ScopeRefused(f"'{grant.principal}' may not {what}", hint=_HINT).audited(
            refs.OPS[entry.op], outcome, part.number, entry.ref
        )


def status_of_word(grant: Grant, status: int) -> int:
    """Status of what a principal says: its word alone is never verified."""
    return PROVISIONAL if status == VERIFIED and not trusted(grant) else status


def status_of_change(tx: Tx, part: Part, state: RefState, new: bytes | None, status: int) -> int:
    """Status that a change leaves: other words of what was approved are not approved yet."""
    grant = tx.actor.grant
    if new in (None, state.head) or status != VERIFIED or trusted(grant):
        return status
    return status if _adds_evidence(tx, part, state, new) else PROVISIONAL


def owns(reader: Reader, part: Part, ref: bytes, state: RefState, principal: str) -> bool:
    """True when a ref is the word of a principal, or of one that descends from it.

    What the store derived is the word of whoever wrote all of its evidence.
    """
    try:
        made = reader.entry(part, state.first)
    except NotFound:
        return False
    if made.origin is not None:
        return False  # a pack brought it: the names in it are those of another store
    if made.principal not in BUILT_IN:
        return principals.descends(reader, made.principal, principal)
    obj = None if state.head is None else reader.object(part, state.head)
    if not isinstance(obj, Memory):
        return False
    for cited in obj.cites:
        told = reader.ref_of(part, cited)
        told_state = reader.state(part, told)
        if told_state is None or told_state.type != refs.OBSERVATION:
            return False
        if not owns(reader, part, told, told_state, principal):
            return False
    return True


def _begin(grant: Grant, entry: Entry) -> tuple[str, str] | None:
    """Why a ref may not begin so, or None."""
    if entry.type == refs.OBSERVATION and not grant.writes:
        return "write evidence", "scope_refused"
    if not grant.writes and not grant.reviews:
        proposed = entry.type != refs.MEMORY or entry.status == _PENDING
        return None if grant.proposes and proposed else ("write here", "scope_refused")
    return None


def _change(tx: Tx, part: Part, state: RefState, entry: Entry) -> tuple[str, str] | None:
    """Why a change may not be made, or None."""
    grant = tx.actor.grant
    if entry.op in _OWNERS:
        return f"{refs.OPS[entry.op]} anything", "not_owner"
    if state.flags & refs.PINNED and not _leaves_pinned(tx, part, state, entry):
        return "change what the owner pinned", "not_owner"
    if state.status == entry.status == _PENDING and not _leaves_claim(tx, part, state, entry):
        return "change what waits for a decision", "not_owner"
    if grant.reviews:
        gains = entry.status == VERIFIED and state.status != VERIFIED
        let_out = state.status in _HELD and entry.status not in _HELD
        if (gains or let_out) and not entry.reason.startswith(LINK) and entry.type <= refs.MEMORY:
            from remem.objects import review

            review.may_decide(tx, part, entry.ref, refs.OPS[entry.op])
        return None
    if entry.status == VERIFIED and state.status != VERIFIED:
        return "approve anything", "not_reviewer"
    own = owns(tx.reader, part, entry.ref, state, grant.principal)
    if state.status in _HELD and entry.status not in _HELD:
        if not own or not entry.reason.startswith((refs.UNDO, LINK)):
            return "release anything", "not_reviewer"
    if own or _only_evidence(tx, part, state, entry):
        return None
    return "change what others wrote", "not_author"


def _leaves_pinned(tx: Tx, part: Part, state: RefState, entry: Entry) -> bool:
    """True for a change of something pinned that shows nobody other words in its place."""
    if _only_evidence(tx, part, state, entry):
        return True
    return tx.actor.grant.reviews and entry.new == state.head and entry.status in _HELD


def _leaves_claim(tx: Tx, part: Part, state: RefState, entry: Entry) -> bool:
    """True for a change of a claim that waits after which it says the same.

    Whoever decides has to find the words that he read; others are proposed again.
    """
    if state.type != refs.MEMORY:
        return True
    if entry.replaced_by != state.replaced_by and not entry.reason.startswith((LINK, FOLLOWS)):
        return False
    if entry.new in (None, state.head) or state.head is None:
        return True
    return _words(tx.reader.object(part, state.head)) == _words(tx.reader.object(part, entry.new))


def _only_evidence(tx: Tx, part: Part, state: RefState, entry: Entry) -> bool:
    """True for a revision that adds citations to a memory and leaves all else as it was."""
    kept = (state.status, state.valid_from, state.valid_to, state.replaced_by)
    same = (entry.status, entry.valid_from, entry.valid_to, entry.replaced_by)
    return kept == same and _adds_evidence(tx, part, state, entry.new)


def _adds_evidence(tx: Tx, part: Part, state: RefState, new: bytes | None) -> bool:
    """True when another head of a memory says what its head says, and cites all that it does."""
    if state.type != refs.MEMORY or state.head is None or new is None:
        return False
    was, now = tx.reader.object(part, state.head), tx.reader.object(part, new)
    if not isinstance(was, Memory) or not isinstance(now, Memory):
        return False
    return _words(was) == _words(now) and set(was.cites) <= set(now.cites)


def _words(obj: Obj) -> tuple[object, ...]:
    """What an object says, whatever it rests on."""
    if isinstance(obj, Memory):
        return obj.text, obj.triple, obj.kind, obj.deriver, obj.scope
    return (obj.text,)
