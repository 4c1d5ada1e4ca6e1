"""One rendering of refs, objects and log entries, for every command that prints them.

JSON carries full ids and instants as RFC 3339 in UTC, the same bytes in every command.  People see
ten digits of an id and instants in the zone in which they were written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.cli.plain import one_line
from remem.cli.shapes import source as source
from remem.cli.shapes import stamp as stamp
from remem.hooks.looking import cites as cites
from remem.hooks.looking import content as content
from remem.hooks.looking import fetch as fetch
from remem.hooks.looking import quote as quote
from remem.hooks.looking import receipt as receipt
from remem.hooks.looking import revisions as revisions
from remem.hooks.shaping import flags as flags
from remem.objects import encode, instant, oid, refs
from remem.objects.model import Memory, Observation
from remem.objects.views import WITHHELD, Lens

if TYPE_CHECKING:
    from remem.objects.encode import Obj
    from remem.objects.model import Scope, Source
    from remem.objects.reader import Part, Reader

    Json = dict[str, object]

LINE = 100  # characters of a text in a list


# -- instants and ids ---------------------------------------------------------------------------


def shown(micros: int, offset: int | None = None) -> str:
    """An instant for people, with its offset (None: in the zone of the machine)."""
    return instant.display(micros, offset)


def shown_second(micros: int) -> str:
    """An instant for the rows of a list: cut to the second."""
    return instant.display(micros - micros % instant.MICROS)


def full(object_id: bytes | None) -> str | None:
    """An id as JSON has it, or None."""
    return None if object_id is None else object_id.hex()


# -- parts of objects ---------------------------------------------------------------------------


def scope(found: Scope) -> Json:
    """The five names of a scope."""
    return {
        "tenant": found.tenant,
        "profile": found.profile,
        "collection": found.collection,
        "agent": found.agent,
        "session": found.session,
    }


def lane_scope(reader: Reader, part: Part, lane: int) -> Json:
    """The scope of a log entry or a ref, from its lane."""
    agent, session = reader.lane(part, lane)
    return {
        "tenant": part.tenant,
        "profile": part.profile,
        "collection": part.collection,
        "agent": agent,
        "session": session,
    }


def source_line(found: Source | None) -> str:
    """A source on one line for people, or an empty text."""
    if found is None:
        return ""
    parts = [found.uri, f"id {found.id}" if found.id else "", found.tool and f"by {found.tool}"]
    return one_line(", ".join(part for part in parts if part))


# -- refs ---------------------------------------------------------------------------------------


def text_line(reader: Reader, part: Part, ref: bytes, object_id: bytes | None) -> str:
    """The first words of an object for a list; what is held back or gone says so instead."""
    state = reader.state(part, ref)
    if state is not None and refs.STATUSES[state.status] in WITHHELD:
        return f"({refs.STATUSES[state.status]})"
    if state is not None and state.type > refs.MEMORY:
        return f"({refs.TYPES[state.type]})"
    obj = fetch(reader, part, object_id)
    return "(gone)" if obj is None else one_line(obj.text[: 8 * LINE], LINE)


def truth(state: refs.RefState) -> str:
    """Whether a ref holds at this moment: "current" or "historical"."""
    return Lens(instant.now()).truth(state)


def entry(reader: Reader, part: Part, found: refs.Entry) -> Json:
    """A log entry as ``remem log --json`` has it."""
    from remem.hooks import shaping

    return shaping.fields(shaping.entry(reader, part, found))


def fields(found: object) -> object:
    """A struct by the names of its fields, ids as hex digits: for what is bookkeeping."""
    if isinstance(found, msgspec.Struct):
        return {name: fields(getattr(found, name)) for name in found.__struct_fields__}
    if isinstance(found, list | tuple):
        return [fields(one) for one in found]
    return found.hex() if isinstance(found, bytes) else found


def json_line(value: object) -> bytes:
    """JSON for people as well: what a terminal would act on is written as an escape."""
    text = msgspec.json.encode(value).decode()
    if text.isascii():
        return text.encode()
    return "".join(c if c.isprintable() else _json_escape(c) for c in text).encode()


def _json_escape(char: str) -> str:
    """A character as JSON escapes it, in UTF-16 code units."""
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def raw(obj: Obj) -> bytes:
    """The bytes as they came in."""
    given = obj.raw if isinstance(obj, Observation) else None
    return obj.text.encode("utf-8", "surrogatepass") if given is None else given


def kind_of(obj: Obj) -> str:
    """Type of an object, and its kind where it has one: "memory (fact)"."""
    name = "memory" if isinstance(obj, Memory) else "observation"
    return f"{name} ({one_line(obj.kind)})" if obj.kind else name


def type_of(data: bytes) -> str:
    """Type of stored bytes."""
    return encode.type_name(data)


def short(object_id: bytes) -> str:
    """The digits of an id that people see."""
    return oid.short(object_id)
