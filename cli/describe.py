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
from remem.objects import encode, evidence, instant, oid, refs
from remem.objects.admit import STATUS_OF_ORIGIN, Receipt
from remem.objects.errors import NotFound
from remem.objects.model import Memory, Observation
from remem.objects.views import WITHHELD, Lens

if TYPE_CHECKING:
    from remem.objects.encode import Obj
    from remem.objects.model import Scope, Source
    from remem.objects.reader import Part, Reader

    Json = dict[str, object]

QUOTE = 240  # characters of a quote
LINE = 100  # characters of a text in a list
_FLAGS = ((refs.HELD, "held"), (refs.PINNED, "pinned"), (refs.FLAGGED, "flagged"))
_decode_receipt = msgspec.msgpack.Decoder(Receipt).decode


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


def quote(text: str) -> str:
    """The beginning of a text on one line, as a citation carries it."""
    flat = " ".join(text.split())
    return flat if len(flat) <= QUOTE else flat[: QUOTE - 1].rstrip() + "\u2026"


def cites(reader: Reader, part: Part, object_id: bytes, obj: Obj) -> list[Json]:
    """The observations behind an object, each with its source and words; of evidence, itself."""
    if isinstance(obj, Observation):
        return [{"id": object_id.hex(), "source": source(obj.source), "quote": quote(obj.text)}]
    found: list[Json] = []
    for cited in obj.cites:
        state = reader.state(part, reader.ref_of(part, cited))
        withheld = state is None or refs.STATUSES[state.status] in WITHHELD
        observation = None if withheld else fetch(reader, part, cited)
        if not isinstance(observation, Observation):
            found.append({"id": cited.hex(), "source": None, "quote": None})
            continue
        spans = evidence.grounds(obj, cited, observation.text)
        text = " ".join(observation.text[start:end].strip() for start, end in spans)
        found.append(
            {
                "id": cited.hex(),
                "source": source(observation.source),
                "quote": quote(text or observation.text),
            }
        )
    return found


def receipt(reader: Reader, part: Part, object_id: bytes, obj: Obj) -> Json | None:
    """What the admission gate decided when the object came in."""
    data = reader.receipt(part, object_id)
    if data is not None:
        found = _decode_receipt(data)
        return {"status": found.status, "codes": found.codes}
    if isinstance(obj, Observation):
        return {"status": STATUS_OF_ORIGIN[obj.origin], "codes": []}
    return None


# -- refs ---------------------------------------------------------------------------------------


def fetch(reader: Reader, part: Part, object_id: bytes | None) -> Obj | None:
    """An object, or None when it is gone, was forgotten or lies outside the grant."""
    if object_id is None:
        return None
    state = reader.state(part, reader.ref_of(part, object_id))
    if state is not None and refs.STATUSES[state.status] == "erased":
        return None
    try:
        return reader.object(part, object_id)
    except NotFound:
        return None


def text_line(reader: Reader, part: Part, ref: bytes, object_id: bytes | None) -> str:
    """The first words of an object for a list; what is held back or gone says so instead."""
    state = reader.state(part, ref)
    if state is not None and refs.STATUSES[state.status] in WITHHELD:
        return f"({refs.STATUSES[state.status]})"
    obj = fetch(reader, part, object_id)
    return "(gone)" if obj is None else one_line(obj.text[: 8 * LINE], LINE)


def truth(state: refs.RefState) -> str:
    """Whether a ref holds at this moment: "current" or "historical"."""
    return Lens(instant.now()).truth(state)


def flags(state: refs.RefState) -> list[str]:
    """Marks on a ref."""
    return [name for bit, name in _FLAGS if state.flags & bit]


def revisions(reader: Reader, part: Part, state: refs.RefState) -> list[refs.Entry]:
    """Entries that gave a ref another head, oldest first: its revisions, the first is number 1."""
    entries = [e for e in reader.entries(part, state) if e.new is not None and e.new != e.old]
    return entries[::-1]


def entry(reader: Reader, part: Part, found: refs.Entry) -> Json:
    """A log entry as ``remem log --json`` has it."""
    value: Json = {
        "seq": found.seq,
        "ref": found.ref.hex(),
        "op": refs.OPS[found.op],
        "old": full(found.old),
        "new": full(found.new),
        "status": refs.STATUSES[found.status],
        "valid_from": stamp(found.valid_from),
        "valid_to": stamp(found.valid_to),
        "recorded_at": instant.rfc3339(found.time),
        "principal": found.principal,
        "reason": found.reason,
        "type": refs.TYPES[found.type],
        "replaced_by": full(found.replaced_by),
        "surface": found.surface,
        "scope": lane_scope(reader, part, found.lane),
    }
    if found.origin is not None:
        value["made_at"] = instant.rfc3339(found.origin.time)
        value["made_status"] = refs.STATUSES[found.origin.status]
    return value


def content(obj: Obj) -> Json:
    """The fields of an object itself, whatever became of it."""
    value: Json = {"kind": obj.kind, "text": obj.text, "scope": scope(obj.scope)}
    if isinstance(obj, Observation):
        value |= {
            "asserted_at": stamp(obj.asserted),
            "origin": obj.origin,
            "role": obj.role,
            "speaker": obj.speaker,
            "source": source(obj.source),
            "tool": "" if obj.source is None else obj.source.tool,
            "corrects": full(obj.corrects),
        }
    else:
        span = obj.span
        value |= {
            "origin": "derived",
            "role": "",
            "speaker": "",
            "triple": obj.triple,
            "span": None if span is None else [span.cite, span.start, span.end],
            "deriver": msgspec.structs.asdict(obj.deriver),
            "confidence": obj.confidence,
            "cues": obj.cues,
            "trigger": obj.trigger,
            "anchors": obj.anchors,
        }
    value["meta"] = obj.meta
    return value


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
