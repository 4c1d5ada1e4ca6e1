"""What a reading command starts with: a snapshot, and the things that its ID arguments name.

An ID is 64 hex digits, a unique prefix of 7 or more, or ``@{last}``: what this session (agent and
session of the scope) wrote last.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from remem.hooks import naming
from remem.hooks.naming import LAST
from remem.objects import oid, refs
from remem.objects.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.cli.context import Context
    from remem.objects.reader import Found, Reader


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
    return reader.find(text) if text != LAST else naming.resolve(reader, context.scope(), text)


def each(context: Context, texts: list[str]) -> list[Found]:
    """What ID arguments name in this collection, each ref once, in the order given.

    Raises:
        UsageError, NotFound, AmbiguousId: as `resolve` does.
    """
    with snapshot(context) as reader:
        named = [resolve(context, reader, text) for text in texts]
    return list({found.ref: found for found in named}.values())


def living(context: Context, reader: Reader, text: str) -> Found:
    """What an ID argument names, for commands that show its content.

    Raises:
        Forgotten: it was forgotten; the message says when and with which reason.
        UsageError, NotFound, AmbiguousId: as `resolve` does.
    """
    return naming.living(reader, resolve(context, reader, text))


def content(context: Context, reader: Reader, text: str) -> Found:
    """What an ID argument names, for commands that show evidence and memories only.

    Raises:
        NotFound: it is a draft or a run, or nothing.
        Forgotten, UsageError, AmbiguousId: as `living` does.
    """
    found = living(context, reader, text)
    if found.state.type > refs.MEMORY:
        name, short = refs.TYPES[found.state.type], oid.short(found.ref)
        hint = f"'remem draft show {short}' prints it" if name == "draft" else ""
        raise NotFound(f"'{short}' is a {name}, no evidence and no memory", hint=hint)
    return found
