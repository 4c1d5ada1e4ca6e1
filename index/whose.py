"""Whose words something is: the one rule by which every door marks what is not the owner's.

The owner's own words carry no mark.  All else names its sources before it: the principal that
brought it ("bot"), "agent", "tool" or "untrusted" where the owner's own programs took such words
in, "pack" for what came with a pack that nobody vouched for, "model" for what a model drew from the
owner's words; and behind them, in parentheses, its status where that is not verified.  Who it is
said to be from stands behind that ("bot (provisional), for owner"), so that no name that somebody
else gives can be read as the owner's.

Whose word a ref is follows from the entry of the log that brought its words, never from the object
alone: a principal writes what it likes into a speaker.  What the store derived is the word of its
evidence.  A pack only claims that something was derived, and from what: until the owner vouches for
it, it is the word of the pack.

Source: remem(7), WHOSE WORDS.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from remem.index.frame import safe
from remem.objects import links, memories, refs, tombs
from remem.objects.errors import NotFound, RememError
from remem.objects.model import Memory, Observation
from remem.objects.scope import BUILT_IN, OWNER, UNKNOWN
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from remem.objects.encode import Obj
    from remem.objects.loops import Loop
    from remem.objects.pins import Pin
    from remem.objects.reader import Part, Reader
    from remem.objects.tasks import Task

AGENT, TOOL, UNTRUSTED, PACK, MODEL = "agent", "tool", "untrusted", "pack", "model"
MOST_SOURCES = 3  # names in a mark
MOST_CITES = 16  # pieces of evidence that are looked at for one claim

_OWN = frozenset((OWNER, *BUILT_IN))
_SAME_WORDS = frozenset((memories.EVIDENCE, "forgotten"))  # reasons of revisions that say the same
_BELIEVED = frozenset(refs.STATUS_CODE[s] for s in ("verified", "provisional"))
_VERIFIED, _MODEL_CLAIM = "verified", "model_claim"
_PLAIN_ROLES = frozenset(("assistant", "system"))  # roles that say by themselves whose word it is


class Whose(msgspec.Struct, frozen=True):
    """Whose words something is.

    Attributes:
        sources: names of those it comes from; none for the owner.
        status: its trust status.
        by: principal that brought it, "" where a pack did.
    """

    sources: tuple[str, ...] = ()
    status: str = _VERIFIED
    by: str = OWNER

    @property
    def mark(self) -> str:
        """The mark, empty for the owner's own words."""
        if not self.sources:
            return ""
        names = ", ".join(self.sources[:MOST_SOURCES])
        return names if self.status == _VERIFIED else f"{names} ({self.status})"


OWN = Whose()


def of(reader: Reader, part: Part, state: refs.RefState, revision: bytes, obj: Obj) -> Whose:
    """Whose words a revision of a ref is.

    Args:
        reader: reads the store under a grant.
        part: its partition.
        state: state of the ref, as it is looked at.
        revision: object id of the revision.
        obj: the revision.
    """
    status = refs.STATUSES[state.status]
    try:
        entry, vouched = _brought(reader, part, state, revision)
        if entry.reason == links.LINK and (vouched or _is_believed(entry)):
            entry, vouched, obj = _interrupted(reader, part, entry, vouched, obj)
        sources = _sources(reader, part, entry, vouched, obj)
    except RememError:
        return Whose((UNKNOWN,), status, UNKNOWN)
    if not sources and status == _MODEL_CLAIM:
        sources = (MODEL,)
    return Whose(sources, status, "" if sources == (PACK,) else entry.principal)


def shown(reader: Reader, one: Pin | Loop | Task) -> Whose:
    """Whose words a pin, a loop or a task shows; the owner's where it shows none."""
    if getattr(one, "why", "") or one.state.head is None:
        return OWN
    return of(reader, one.part, one.state, one.state.head, reader.object(one.part, one.state.head))


def prefix(whose: Whose, obj: Obj | None = None) -> str:
    """What stands before the words of a line: the mark, and who is said to have said them.

    A line of the owner's is as it always was; words of an assistant that the owner's programs took
    in say by their role whose they are.  A status that is withheld has a mark of its own there.

    Args:
        whose: whose words they are.
        obj: the object, or None where nobody is named as having said it.
    """
    said = role = ""
    if isinstance(obj, Observation):
        said, role = obj.speaker, obj.role
    if not whose.sources or (whose.sources == (AGENT,) and not said and role in _PLAIN_ROLES):
        named = said or role
        return f"{safe(named)}: " if named else ""
    shown = whose
    if whose.status in WITHHELD:
        shown = msgspec.structs.replace(whose, status=_VERIFIED)
    named = said or ("" if role in (*_PLAIN_ROLES, TOOL) else role)
    behind = f", for {safe(named)}" if named and named not in whose.sources else ""
    return f"{safe(shown.mark)}{behind}: "


def _brought(
    reader: Reader, part: Part, state: refs.RefState, revision: bytes
) -> tuple[refs.Entry, bool]:
    """The entry that brought the words of a revision, and whether the owner vouched for its pack.

    A revision that adds evidence, or loses some, says what the one before it said.
    """
    wanted: bytes | None = revision
    found: refs.Entry | None = None
    vouched = False
    for entry in reader.entries(part, state):
        if found is not None and entry.new != wanted:
            # A pack on its own word only claims to have said the same.
            if found.reason not in _SAME_WORDS or not (vouched or _is_believed(found)):
                break
            wanted = entry.new
        own = entry.principal == OWNER and entry.origin is None
        # What an undo had withheld comes back with this reason too, as low as it was.
        believed = entry.reason == refs.ACCEPTED and entry.status in _BELIEVED
        vouched = vouched or (own and believed)
        if entry.new == wanted:
            found = entry
    return (reader.entry(part, state.first) if found is None else found), vouched


def _is_believed(entry: refs.Entry) -> bool:
    """Whether an entry was made here, or came by a pack that the owner vouched for."""
    if entry.origin is None:
        return True
    return entry.status == entry.origin.status and entry.status in _BELIEVED


def _interrupted(
    reader: Reader, part: Part, entry: refs.Entry, vouched: bool, obj: Obj
) -> tuple[refs.Entry, bool, Obj]:
    """What a fact that holds again goes back to: the store copied its words, whoever said them."""
    before = obj.meta.get(links.RESUMES) if isinstance(obj, Memory) else None
    if not isinstance(before, str):
        return entry, vouched, obj
    try:
        state = reader.state(part, bytes.fromhex(before))
    except ValueError:
        state = None
    if state is None or state.head is None:
        raise NotFound("what it goes back to is gone")
    return *_brought(reader, part, state, state.head), reader.object(part, state.head)


def _sources(
    reader: Reader, part: Part, entry: refs.Entry, vouched: bool, obj: Obj
) -> tuple[str, ...]:
    """Names of those whose words an object is; none for the owner."""
    principal = entry.principal
    derived = isinstance(obj, Memory) and (
        principal in BUILT_IN or (principal == OWNER and obj.deriver.name != memories.STATED)
    )
    if not vouched and not _is_believed(entry):
        return (PACK,)
    if isinstance(obj, Observation):
        names = [] if principal in _OWN else [principal]
        if obj.origin in (TOOL, UNTRUSTED) or (obj.origin == AGENT and not names):
            names.append(obj.origin)
        return tuple(names)
    if derived:
        return _of_evidence(reader, part, obj)
    if principal == OWNER or _owner_says_too(reader, part, obj):
        return ()
    return (principal,)


def _of_evidence(reader: Reader, part: Part, memory: Memory) -> tuple[str, ...]:
    """Whose words a derived claim is: the owner's where one piece of its evidence is his.

    A summary has the words of all of its sources.
    """
    names: dict[str, None] = {}
    for cited in islice(memory.cites, MOST_CITES):
        found = _of_observation(reader, part, cited)
        if not found and not memories.is_summary(memory):
            return ()
        names |= dict.fromkeys(found)
    return tuple(names)


def _of_observation(reader: Reader, part: Part, cited: bytes) -> tuple[str, ...]:
    state = reader.state(part, reader.ref_of(part, cited))
    if state is None:
        return (UNKNOWN,)
    obj = reader.object(part, cited)
    entry, vouched = _brought(reader, part, state, cited)
    return _sources(reader, part, entry, vouched, obj) if isinstance(obj, Observation) else ()


def _owner_says_too(reader: Reader, part: Part, memory: Memory) -> bool:
    """Whether the owner has stated the very words that another principal stated first."""
    words = tombs.normal_value(memory.text)
    for cited in islice(memory.cites, MOST_CITES):
        try:
            obj = reader.object(part, cited)
            if tombs.normal_value(obj.text) == words and not _of_observation(reader, part, cited):
                return True
        except RememError:
            continue
    return False
