"""What a reading command starts with: a snapshot, and the things that its ID arguments name.

An ID is 64 hex digits, a unique prefix of 7 or more, or ``@{last}``: what this session (agent and
session of the scope) wrote last.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from remem.objects.chains import LINK
from remem.objects.errors import NotFound
from remem.objects.reader import Found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.cli.context import Context
    from remem.objects.reader import Part, Reader
    from remem.objects.refs import Entry

LAST = "@{last}"
PRINCIPAL = "deriver"  # who makes derived memories


@contextmanager
def snapshot(context: Context, *, all_collections: bool = False) -> Iterator[Reader]:
    """A snapshot of the store, seen by the principal who acts.

    Raises:
        StoreMissing: there is no store.
    """
    grant = context.grant(all_collections=all_collections)
    with context.store(readonly=True).read(grant) as reader:
        yield reader


def resolve(context: Context, reader: Reader, text: str) -> Found:
    """What an ID argument names.

    Raises:
        UsageError: it is no id.
        NotFound: nothing of the granted scopes has that id.
        AmbiguousId: it fits several; the hint lists them.
    """
    if text != LAST:
        return reader.find(text)
    last: tuple[Part, Entry] | None = None
    scope = context.scope()
    own = (scope.agent, scope.session)
    for part in reader.parts:
        for entry in reader.log(part, reverse=True):
            if last is not None and entry.time < last[1].time:
                break
            if entry.principal == PRINCIPAL or entry.reason == LINK:
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


def living(context: Context, reader: Reader, text: str) -> Found:
    """What an ID argument names, for commands that show its content.

    Raises:
        Forgotten: it was forgotten; the message says when and with which reason.
        UsageError, NotFound, AmbiguousId: as `resolve` does.
    """
    found = resolve(context, reader, text)
    if reader.erased(found.part, found.ref) is not None:
        raise reader.forgotten(found.part, found.ref)
    return found
