"""The pack: text form of what a grant covers, one JSON value a line.

A pack begins with its version, then for each scope partition (by name) come the changes of its ref
log in the order in which they were recorded, each with the object that it brought, and at the end a
line with counts and a digest.  A change says what it changed, from what and to what, so that it can
be joined to a log that has gone another way.

No key leaves the store, and of what was forgotten nothing but ids.  An object carries its salt, so
its id can be recomputed by anybody who holds the pack.

Source: remem-pack(5).
"""

from __future__ import annotations

import base64

import msgspec

from remem.objects import encode, oid, refs
from remem.objects.errors import IntegrityError
from remem.objects.instant import END, START
from remem.objects.model import (
    MEMORY_KINDS,
    ORIGINS,
    ROLES,
    SALT_BYTES,
    Deriver,
    Memory,
    Observation,
    Scope,
    Source,
    Span,
)

VERSION = 1
HEADER = b'{"remem-pack":1}\n'
MAX_LINE_B = 1 << 28

Hex = str
HexEdit = tuple[Hex | None, Hex | None] | msgspec.UnsetType
WordEdit = tuple[str | None, str | None] | msgspec.UnsetType
TimeEdit = tuple[int | None, int | None] | msgspec.UnsetType


class _Form(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A JSON object of the pack: members in the order written here, defaults left out."""


class SourceForm(_Form, kw_only=True):
    """Source of an observation."""

    uri: str = ""
    id: str = ""
    tool: str = ""


class ObservationForm(_Form, kw_only=True):
    """An observation; raw holds bytes that are UTF-8, raw64 (base64) those that are not."""

    salt: Hex
    scope: Scope
    text: str
    raw: str | None = None
    raw64: str | None = None
    role: str = ""
    speaker: str = ""
    origin: str
    source: SourceForm | None = None
    asserted: int | None = None
    offset: int | None = None
    corrects: Hex | None = None
    kind: str = ""
    meta: dict[str, object] = {}


class DeriverForm(_Form, kw_only=True):
    """Deriver of a memory."""

    name: str
    version: int = 1
    model: str = ""
    prompt: str = ""


class SpanForm(_Form, kw_only=True):
    """Span of a memory."""

    cite: int
    start: int
    end: int


class MemoryForm(_Form, kw_only=True):
    """A memory."""

    salt: Hex
    scope: Scope
    kind: str
    text: str
    triple: tuple[str, str, str] | None = None
    cites: list[Hex]
    span: SpanForm | None = None
    deriver: DeriverForm
    confidence: int
    valid_from: int | None = None
    valid_to: int | None = None
    offset: int | None = None
    cues: list[str] = []
    trigger: str = ""
    anchors: list[str] = []
    meta: dict[str, object] = {}


class ObjectForm(_Form, kw_only=True):
    """An object under the name of its type, or its bytes (base64) where text cannot carry them."""

    observation: ObservationForm | None = None
    memory: MemoryForm | None = None
    bytes64: str | None = None


class Edits(_Form, kw_only=True):
    """What a change changed: of each field the value before and the value after."""

    head: HexEdit = msgspec.UNSET
    status: WordEdit = msgspec.UNSET
    valid_from: TimeEdit = msgspec.UNSET
    valid_to: TimeEdit = msgspec.UNSET
    replaced_by: HexEdit = msgspec.UNSET


class ChangeLine(_Form, kw_only=True, rename={"edits": "set"}):
    """One entry of a ref log; type, agent, session and chain are those of the ref, at create."""

    op: str
    ref: Hex
    type: str = ""
    agent: str = ""
    session: str = ""
    chain: str = ""
    edits: Edits
    time: int
    n: int = 1
    principal: str
    surface: str
    reason: str = ""
    object: ObjectForm | None = None
    receipt: tuple[str, list[str]] | None = None
    gone: bool = False
    back: bool = False


class ScopeLine(_Form, kw_only=True):
    """The partition to which the changes below belong: tenant, profile, collection."""

    scope: tuple[str, str, str]


class AliasLine(_Form, kw_only=True):
    """Another name of a thing in the partition, and the name that it stands for."""

    alias: tuple[str, str]


class Closing(_Form, kw_only=True):
    """What a whole pack holds: number of scopes and changes, BLAKE3-256 of the lines before."""

    scopes: int
    changes: int
    blake3: Hex


class EndLine(_Form, kw_only=True):
    """The last line."""

    end: Closing


TYPES = refs.TYPES[: refs.DRAFT]  # drafts and runs stay in the store that made them

encode_line = msgspec.json.Encoder(order="deterministic").encode
_read_form = msgspec.json.Decoder(ObjectForm).decode
_pack = msgspec.msgpack.Encoder(order="deterministic").encode


def object_form(data: bytes) -> ObjectForm:
    """Text form of an object's stored bytes: the same bytes come out of :func:`object_bytes`."""
    try:
        obj = encode.decode(data)
        form = (
            ObjectForm(observation=_from_observation(obj))
            if isinstance(obj, Observation)
            else ObjectForm(memory=_from_memory(obj))
        )
        if object_bytes(_read_form(encode_line(form))) == data:
            return form
    except (ValueError, TypeError, RecursionError, IntegrityError):
        pass
    return ObjectForm(bytes64=base64.b64encode(data).decode("ascii"))


def object_bytes(form: ObjectForm) -> bytes:
    """Stored bytes of an object in text form.

    Raises:
        ValueError: it is not one.
    """
    given = [f for f in (form.observation, form.memory, form.bytes64) if f is not None]
    if len(given) != 1:
        raise ValueError("an object has exactly one form")
    if form.bytes64 is not None:
        return base64.b64decode(form.bytes64, validate=True)
    obj = (
        _to_observation(form.observation)
        if form.observation is not None
        else _to_memory(form.memory)  # type: ignore[arg-type]
    )
    header = f"{type(obj).__struct_config__.tag} {encode.VERSION}\0".encode("ascii")
    try:
        return header + _pack(obj)
    except (OverflowError, UnicodeEncodeError, RecursionError) as error:
        raise ValueError("an object holds a value that cannot be stored") from error


def check_object(obj: encode.Obj, scope: tuple[str, str, str]) -> None:
    """Raise unless an object of a pack is one that this store could hold in that partition.

    Raises:
        ValueError: what does not fit.
    """
    if (obj.scope.tenant, obj.scope.profile, obj.scope.collection) != scope:
        raise ValueError("the object belongs to another scope")
    if isinstance(obj, Observation):
        if obj.origin not in ORIGINS or obj.role not in ROLES:
            raise ValueError("the observation has an unknown origin or role")
        times = [obj.asserted]
    else:
        if obj.kind not in MEMORY_KINDS:
            raise ValueError(f"the memory has the unknown kind '{obj.kind[:80]}'")
        if not obj.cites or any(len(cited) != oid.ID_BYTES for cited in obj.cites):
            raise ValueError("the memory cites no observation")
        times = [obj.valid_from, obj.valid_to]
    for time in times:
        check_time(time)


def check_time(time: int | None) -> None:
    """Raise unless a time lies in the years 1 to 9999.

    Raises:
        ValueError: it does not.
    """
    if time is not None and not START <= time <= END:
        raise ValueError("a time lies outside the years 1 to 9999")


def id_bytes(text: str | None) -> bytes | None:
    """An object id from its 64 lower-case hex digits, None from None.

    Raises:
        ValueError: it is not one.
    """
    if text is None:
        return None
    found = bytes.fromhex(text) if len(text) == 2 * oid.ID_BYTES else b""
    if found.hex() != text:
        raise ValueError(f"'{text[:80]}' is not an object id")
    return found


def id_text(found: bytes | None) -> str | None:
    """An object id as hex digits, None from None."""
    return None if found is None else found.hex()


def _salt(text: str) -> bytes:
    salt = bytes.fromhex(text)
    if len(salt) != SALT_BYTES:
        raise ValueError(f"a salt has {SALT_BYTES} bytes")
    return salt


def _from_observation(obj: Observation) -> ObservationForm:
    raw = raw64 = None
    if obj.raw is not None:
        try:
            raw = obj.raw.decode()
        except UnicodeDecodeError:
            raw64 = base64.b64encode(obj.raw).decode("ascii")
    source = None
    if obj.source is not None:
        source = SourceForm(uri=obj.source.uri, id=obj.source.id, tool=obj.source.tool)
    return ObservationForm(
        salt=obj.salt.hex(),
        scope=obj.scope,
        text=obj.text,
        raw=raw,
        raw64=raw64,
        role=obj.role,
        speaker=obj.speaker,
        origin=obj.origin,
        source=source,
        asserted=obj.asserted,
        offset=obj.offset,
        corrects=id_text(obj.corrects),
        kind=obj.kind,
        meta=obj.meta,
    )


def _to_observation(form: ObservationForm) -> Observation:
    raw = None if form.raw is None else form.raw.encode()
    if form.raw64 is not None:
        raw = base64.b64decode(form.raw64, validate=True)
    source = None
    if form.source is not None:
        source = Source(form.source.uri, form.source.id, form.source.tool)
    return Observation(
        _salt(form.salt),
        form.scope,
        raw,
        form.text,
        form.role,
        form.speaker,
        form.origin,
        source,
        form.asserted,
        form.offset,
        id_bytes(form.corrects),
        form.kind,
        form.meta,
    )


def _from_memory(obj: Memory) -> MemoryForm:
    made = obj.deriver
    return MemoryForm(
        salt=obj.salt.hex(),
        scope=obj.scope,
        kind=obj.kind,
        text=obj.text,
        triple=obj.triple,
        cites=[cited.hex() for cited in obj.cites],
        span=None
        if obj.span is None
        else SpanForm(cite=obj.span.cite, start=obj.span.start, end=obj.span.end),
        deriver=DeriverForm(
            name=made.name, version=made.version, model=made.model, prompt=made.prompt
        ),
        confidence=obj.confidence,
        valid_from=obj.valid_from,
        valid_to=obj.valid_to,
        offset=obj.offset,
        cues=obj.cues,
        trigger=obj.trigger,
        anchors=obj.anchors,
        meta=obj.meta,
    )


def _to_memory(form: MemoryForm) -> Memory:
    made = form.deriver
    return Memory(
        _salt(form.salt),
        form.scope,
        form.kind,
        form.text,
        form.triple,
        [bytes.fromhex(cited) for cited in form.cites],
        None if form.span is None else Span(form.span.cite, form.span.start, form.span.end),
        Deriver(made.name, made.version, made.model, made.prompt),
        form.confidence,
        form.valid_from,
        form.valid_to,
        form.offset,
        form.cues,
        form.trigger,
        form.anchors,
        form.meta,
    )
