"""Looking at one thing: a revision of a ref with its head, status, times and lineage; its life.

What is held back is shown to the owner alone, and what was forgotten to nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from remem.hooks import results, shaping
from remem.objects import evidence, instant, oid, receipts, refs
from remem.objects.errors import NotFound
from remem.objects.model import Observation
from remem.objects.views import WITHHELD, Eye, Lens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.encode import Obj
    from remem.objects.reader import Found, Part, Reader

QUOTE = 240  # characters of a quote


class Seen(msgspec.Struct):
    """One revision of a ref.

    Attributes:
        number: its number among the revisions, from 1.
        obj: the object, or None when its bytes are gone, were forgotten or are held back.
        lens: the times that are asked about.
    """

    part: Part
    ref: bytes
    state: refs.RefState
    revisions: list[refs.Entry]
    number: int
    id: bytes
    obj: Obj | None
    lens: Lens


def choose(reader: Reader, found: Found, rev: int | None, lens: Lens) -> Seen:
    """The revision that is meant: by its number, by its own id, by a time, else the head.

    Raises:
        NotFound: there is no such revision, or it did not hold then.
    """
    made = revisions(reader, found.part, found.state)
    if lens.as_of is not None or lens.known_at is not None:
        return _then(reader, found, lens, made)
    number = len(made)
    if rev is not None:
        if not 1 <= rev <= len(made):
            raise NotFound(
                f"'{oid.short(found.ref)}' has no revision {rev}",
                hint=f"it has {len(made)}; 'remem log' of it shows them",
            )
        number = rev
    elif found.revision is not None:
        number = max(n for n, e in enumerate(made, 1) if e.new == found.revision)
    object_id = made[number - 1].new if made else found.ref
    assert object_id is not None
    obj = fetch(reader, found.part, object_id)
    return Seen(found.part, found.ref, found.state, made, number, object_id, obj, lens)


def _then(reader: Reader, found: Found, lens: Lens, made: list[refs.Entry]) -> Seen:
    """The revision that held then, with the state as it was believed."""
    sight = Eye(lens, reader).of(found.part, found.ref)
    state = None if sight is None else sight.held
    if state is None or state.head is None:
        raise NotFound(f"'{oid.short(found.ref)}' was not known, or did not hold then")
    known = [e for e in made if lens.known_at is None or e.time <= lens.known_at]
    number = max(n for n, e in enumerate(known, 1) if e.new == state.head)
    obj = fetch(reader, found.part, state.head)
    return Seen(found.part, found.ref, state, known, number, state.head, obj, lens)


def fetch(reader: Reader, part: Part, object_id: bytes | None) -> Obj | None:
    """An object for who asks for it by its id, or None when it is not for them to see.

    It is gone, was forgotten, lies outside the grant, or is held back and who asks is not the
    owner.
    """
    if object_id is None:
        return None
    state = reader.state(part, reader.ref_of(part, object_id))
    status = None if state is None else refs.STATUSES[state.status]
    if status == "erased" or (status in WITHHELD and not reader.grant.owner):
        return None
    try:
        return reader.object(part, object_id)
    except NotFound:
        return None


def revisions(reader: Reader, part: Part, state: refs.RefState) -> list[refs.Entry]:
    """Entries that gave a ref another head, oldest first: its revisions, the first is number 1."""
    entries = [e for e in reader.entries(part, state) if e.new is not None and e.new != e.old]
    return entries[::-1]


def truth(reader: Reader, one: Seen) -> str:
    """Whether it holds, by its ref and by what was drawn from it."""
    seen = Eye(one.lens, reader).see(one.part, one.ref, one.id)
    return Lens(instant.now()).truth(one.state) if seen is None else seen[1]


def receipt(reader: Reader, part: Part, object_id: bytes, obj: Obj) -> results.Admission | None:
    """What the admission gate decided when the object came in."""
    if not isinstance(obj, Observation) and reader.receipt(part, object_id) is None:
        return None
    found = receipts.of(reader, part, object_id)
    return results.Admission(found.status, found.codes, found.gate, found.detectors)


def quote(text: str) -> str:
    """The beginning of a text on one line, as a citation carries it."""
    flat = " ".join(text.split())
    return flat if len(flat) <= QUOTE else flat[: QUOTE - 1].rstrip() + "\u2026"


def cites(reader: Reader, part: Part, object_id: bytes, obj: Obj) -> list[results.Quoted]:
    """The observations behind an object, each with its source and words; of evidence, itself."""
    if isinstance(obj, Observation):
        own = results.Quoted(object_id.hex(), shaping.origin(obj.source), quote(obj.text))
        return [own]
    found: list[results.Quoted] = []
    for cited in obj.cites:
        state = reader.state(part, reader.ref_of(part, cited))
        withheld = state is None or refs.STATUSES[state.status] in WITHHELD
        observation = None if withheld else fetch(reader, part, cited)
        if not isinstance(observation, Observation):
            found.append(results.Quoted(cited.hex(), None, None))
            continue
        spans = evidence.grounds(obj, cited, observation.text)
        text = " ".join(observation.text[start:end].strip() for start, end in spans)
        words = quote(text or observation.text)
        found.append(results.Quoted(cited.hex(), shaping.origin(observation.source), words))
    return found


def drawn(
    reader: Reader, part: Part, observation: bytes
) -> list[tuple[bytes, refs.RefState, Obj | None]]:
    """Memories of the grant that cite an observation: ref, state, head."""
    found = []
    for ref in reader.cited_by(part, observation):
        state = reader.state(part, ref)
        if state is not None:
            found.append((ref, state, fetch(reader, part, state.head)))
    return found


def content(obj: Obj) -> dict[str, Any]:
    """The fields of an object itself, whatever became of it, by the names of `results.Shown`."""
    value: dict[str, Any] = {
        "kind": obj.kind,
        "text": obj.text,
        "scope": shaping.names(obj.scope),
    }
    if isinstance(obj, Observation):
        value |= {
            "asserted_at": shaping.maybe(obj.asserted),
            "origin": obj.origin,
            "role": obj.role,
            "speaker": obj.speaker,
            "source": shaping.origin(obj.source),
            "tool": "" if obj.source is None else obj.source.tool,
            "corrects": shaping.hex_of(obj.corrects),
        }
    else:
        span, made = obj.span, obj.deriver
        value |= {
            "origin": "derived",
            "role": "",
            "speaker": "",
            "triple": obj.triple,
            "span": None if span is None else (span.cite, span.start, span.end),
            "deriver": results.Deriver(made.name, made.version, made.model, made.prompt),
            "confidence": obj.confidence,
            "cues": obj.cues,
            "trigger": obj.trigger,
            "anchors": obj.anchors,
        }
    value["meta"] = obj.meta
    return value


_NOTHING: dict[str, Any] = dict.fromkeys(
    ("kind", "text", "asserted_at", "origin", "role", "speaker", "source"), None
)


def shown(reader: Reader, one: Seen) -> results.Shown:
    """A revision in its public shape."""
    state, obj = one.state, one.obj
    said = {**_NOTHING, "scope": shaping.lane(reader, one.part, state.lane)}
    admission, cited = None, []
    if obj is not None:
        said |= content(obj)
        admission = receipt(reader, one.part, one.id, obj)
        cited = cites(reader, one.part, one.id, obj)
    return results.Shown(
        id=one.id.hex(),
        ref=one.ref.hex(),
        head=shaping.hex_of(state.head),
        type=refs.TYPES[state.type],
        status=refs.STATUSES[state.status],
        truth=truth(reader, one),
        flags=shaping.flags(state),
        valid_from=shaping.maybe(state.valid_from),
        valid_to=shaping.maybe(state.valid_to),
        recorded_at=shaping.moment(state.created),
        changed_at=shaping.moment(state.changed),
        replaced_by=shaping.hex_of(state.replaced_by),
        receipt=admission,
        cites=cited,
        derived=[
            results.Drawn(
                shaping.hex_of(memory.head),
                ref.hex(),
                "" if head is None else head.kind,
                refs.STATUSES[memory.status],
            )
            for ref, memory, head in drawn(reader, one.part, one.id)
        ],
        revision=one.number,
        revisions=[_revision(number, e) for number, e in enumerate(one.revisions, 1)],
        **said,
    )


def _revision(number: int, of: refs.Entry) -> results.Revision:
    assert of.new is not None
    made = shaping.moment(of.time)
    return results.Revision(number, of.new.hex(), refs.OPS[of.op], made, of.principal, of.reason)


# -- the log ------------------------------------------------------------------------------------


def latest(reader: Reader) -> Iterator[tuple[Part, refs.Entry]]:
    """Entries of all granted partitions, newest first."""
    from heapq import merge

    def of(part: Part) -> Iterator[tuple[Part, refs.Entry]]:
        for entry in reader.log(part, reverse=True):
            yield part, entry

    def age(item: tuple[Part, refs.Entry]) -> tuple[int, int, int]:
        return -item[1].time, item[0].number, -item[1].seq

    return merge(*(of(part) for part in reader.parts), key=age)


def held_then(entry: refs.Entry, lens: Lens) -> bool:
    """Whether an entry was recorded by then, and what it says held at the instant asked about."""
    if lens.known_at is not None and entry.time > lens.known_at:
        return False
    if lens.as_of is None:
        return True
    begins = entry.time if entry.valid_from is None else entry.valid_from
    return begins <= lens.as_of and (entry.valid_to is None or lens.as_of < entry.valid_to)
