"""What an ID argument names: 64 hex digits, a unique prefix, or ``@{last}``.

``@{last}`` is what this session (agent and session of the scope) wrote last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects import oid, refs
from remem.objects.errors import NotFound
from remem.objects.links import LINK
from remem.objects.reader import Found

if TYPE_CHECKING:
    from remem.objects.model import Scope
    from remem.objects.reader import Part, Reader
    from remem.objects.refs import Entry

LAST = "@{last}"
DERIVER = "deriver"  # principal of derived memories


def resolve(reader: Reader, scope: Scope, text: str) -> Found:
    """What an ID argument names.

    Raises:
        UsageError: it is no id.
        NotFound: nothing of the granted scopes has that id.
        AmbiguousId: it fits several; the hint lists them.
    """
    if text != LAST:
        return reader.find(text)
    last: tuple[Part, Entry] | None = None
    own = (scope.agent, scope.session)
    for part in reader.parts:
        for entry in reader.log(part, reverse=True):
            if last is not None and entry.time < last[1].time:
                break
            if entry.principal == DERIVER or entry.reason == LINK:
                continue  # what follows from what was written
            if reader.lane(part, entry.lane) == own:
                last = part, entry
                break
    state = None if last is None else reader.state(last[0], last[1].ref)
    if last is None or state is None:
        raise NotFound(
            f"the session '{scope.session}' has written nothing here",
            hint="'remem log' shows what was written",
        )
    return Found(last[0], last[1].ref, state, None)


def living(reader: Reader, found: Found) -> Found:
    """The same, for callers that show its content.

    Raises:
        Forgotten: it was forgotten; the message says when and with which reason.
    """
    if reader.erased(found.part, found.ref) is not None:
        raise reader.forgotten(found.part, found.ref)
    return found


def content(reader: Reader, found: Found) -> Found:
    """The same, for callers that show evidence and memories only.

    Raises:
        NotFound: it is a draft or a run.
        Forgotten: it was forgotten.
    """
    living(reader, found)
    if found.state.type > refs.MEMORY:
        name, short = refs.TYPES[found.state.type], oid.short(found.ref)
        hint = f"'remem draft show {short}' prints it" if name == "draft" else ""
        raise NotFound(f"'{short}' is a {name}, no evidence and no memory", hint=hint)
    return found
