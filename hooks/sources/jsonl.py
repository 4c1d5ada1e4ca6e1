"""JSON lines: one record a line, `{"text", "at"?, "role"?, "speaker"?, "origin"?, ...}`.

Unit: a line (a blank one is skipped) or, where the input is one array, an element of it.

`at` is an absolute time (see `_times`); `source` is `{"uri", "id", "tool"}`; keys that are not
known are kept in `meta`, whatever they claim: nothing in a file makes a record verified.  Where no
origin is given it follows from the role: what an assistant or a tool said is not the owner's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, BinaryIO, Literal, cast

import msgspec

from remem.hooks.sources import _json
from remem.hooks.sources._json import Json
from remem.hooks.sources._record import LIMIT_B, ORIGIN_OF_ROLE, Record, admit
from remem.hooks.sources._times import instant
from remem.objects.model import ORIGINS, ROLES, Incoming, Rejected

_NAMES = ("session", "agent", "collection")  # a scope has no blank part
_TEXTS = ("speaker", "kind")
_KNOWN = frozenset(("text", "at", "role", "origin", "source", "meta", *_NAMES, *_TEXTS))
_SOURCE_KEYS = ("uri", "id", "tool")
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1  # what an object of the store can hold

_Name = Annotated[str, msgspec.Meta(min_length=1)]


class _Source(msgspec.Struct, forbid_unknown_fields=True):
    uri: str = ""
    id: str = ""
    tool: str = ""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A line that holds known keys of the right types: by far the most frequent one."""

    text: _Name
    at: str | int | float | None = None
    role: Literal["user", "assistant", "tool", "system", ""] = ""
    speaker: str = ""
    origin: Literal["owner", "agent", "tool", "untrusted"] | None = None
    session: _Name | None = None
    agent: _Name | None = None
    collection: _Name | None = None
    source: _Source | None = None
    kind: str = ""
    meta: dict[str, object] | None = None


class _OpenLine(_Line, forbid_unknown_fields=False):
    """The same among keys that are not known."""


_strict = msgspec.json.Decoder(_Line).decode
_open = msgspec.json.Decoder(_OpenLine).decode
_any = msgspec.json.Decoder(dict[str, object]).decode


def read(
    stream: BinaryIO, name: str, *, since: int | None = None, limit_b: int = LIMIT_B
) -> Iterator[Record]:
    """Read JSON lines (or one JSON array).

    Args:
        stream: the bytes.
        name: what to call the stream in places ("turns.jsonl").
        since: microseconds UTC; older records are skipped.
        limit_b: bytes that one line may have.

    Yields:
        One record for each unit, in their order.
    """
    closed = True  # until a line has a key that is not known: its fellows will have it too
    for where, unit in _json.units(stream, name, limit_b):
        if not isinstance(unit, bytes):
            yield unit
            continue
        item: Incoming | Rejected
        try:
            if closed:
                item = _of_struct(_strict(unit), where)
            else:
                item = _of_struct(_open(unit), where)
                _add_unknown(item.meta, _any(unit))
        except (msgspec.DecodeError, ValueError, RecursionError):
            # The careful way finds out what is wrong, if anything is.
            item = _of_bytes(unit, where)
            closed = closed and not isinstance(item, Incoming)
        yield item if isinstance(item, Rejected) else admit(item, since, limit_b)


def record(value: object, where: str) -> Incoming | Rejected:
    """Build the record of one decoded JSON value.

    Args:
        value: what a line holds.
        where: its place, for messages.

    Returns:
        The record, or what is wrong with it.
    """
    try:
        return _checked(value, where)
    except ValueError as error:
        return Rejected(where, str(error))


def _of_struct(line: _Line, where: str) -> Incoming:
    if not line.text.strip():
        raise ValueError("'text' is empty")
    for name in (line.session, line.agent, line.collection):
        if name is not None and not name.strip():
            raise ValueError("blank")
    asserted, offset = (None, None) if line.at is None else instant(line.at)
    source = line.source
    if line.meta:
        _check_numbers(line.meta)
    return Incoming(
        text=line.text,
        asserted=asserted,
        offset=offset,
        role=line.role,
        speaker=line.speaker,
        origin=line.origin or ORIGIN_OF_ROLE[line.role],
        collection=line.collection,
        agent=line.agent,
        session=line.session,
        source_uri="" if source is None else source.uri,
        source_id="" if source is None else source.id,
        tool="" if source is None else source.tool,
        kind=line.kind,
        meta=line.meta or {},
        where=where,
    )


def _of_bytes(unit: bytes, where: str) -> Incoming | Rejected:
    try:
        value = _json.decode(unit)
    except ValueError as error:
        return Rejected(where, str(error))
    return record(value, where)


def _checked(value: object, where: str) -> Incoming:
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, found {_json.kind_of(value)}")
    line = cast("Json", value)
    text = line.get("text")
    if not isinstance(text, str):
        found = "is missing" if "text" not in line else f"is {_json.kind_of(text)}, not a text"
        raise ValueError(f"'text' {found}")
    if not text.strip():
        raise ValueError("'text' is empty")
    asserted, offset = _time(line, "at")
    role = _one_of(line, "role", ROLES) or ""
    source = _source(line)
    scope = {key: _name(line, key) for key in _NAMES}
    return Incoming(
        text=text,
        asserted=asserted,
        offset=offset,
        role=role,
        speaker=_text(line, "speaker"),
        origin=_one_of(line, "origin", ORIGINS) or ORIGIN_OF_ROLE[role],
        collection=scope["collection"],
        agent=scope["agent"],
        session=scope["session"],
        source_uri=_text(source, "uri", "source.uri"),
        source_id=_text(source, "id", "source.id"),
        tool=_text(source, "tool", "source.tool"),
        kind=_text(line, "kind"),
        meta=_meta(line, source),
        where=where,
    )


def _time(line: Json, key: str) -> tuple[int | None, int | None]:
    value = line.get(key)
    if value is None:
        return None, None
    try:
        return instant(value)
    except ValueError as error:
        raise ValueError(f"'{key}': {error}") from None


def _text(line: Json, key: str, shown: str = "") -> str:
    value = line.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"'{shown or key}' is {_json.kind_of(value)}, not a text")
    return value


def _name(line: Json, key: str) -> str | None:
    if line.get(key) is None:
        return None
    name = _text(line, key)
    if not name.strip():
        raise ValueError(f"'{key}' is blank")
    return name


def _one_of(line: Json, key: str, allowed: tuple[str, ...]) -> str | None:
    if line.get(key) is None:
        return None
    word = _text(line, key)
    if word not in allowed:
        names = ", ".join(filter(None, allowed))
        raise ValueError(f"'{key}' is '{word[:40]}', not one of {names}")
    return word


def _source(line: Json) -> Json:
    value = line.get("source")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"'source' is {_json.kind_of(value)}, not an object with 'uri' and 'id'")
    return value


def _meta(line: Json, source: Json) -> Json:
    value = line.get("meta")
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"'meta' is {_json.kind_of(value)}, not an object")
    meta: Json = dict(value or {})
    _check_numbers(meta)
    _add_unknown(meta, line)
    # What else stands in the source is kept under the source's own name.
    rest = {key: found for key, found in source.items() if key not in _SOURCE_KEYS}
    if rest:
        _check_numbers(rest)
        if meta.setdefault("source", rest) != rest:
            raise ValueError("'source' is given twice, with two values")
    return meta


def _add_unknown(meta: Json, line: Json) -> None:
    for key, found in line.items():
        if key in _KNOWN:
            continue
        if key in meta and meta[key] != found:
            raise ValueError(f"'{key[:40]}' is given twice, with two values")
        if type(found) is not str:
            _check_numbers(found)
        meta[key] = found


def _check_numbers(value: object) -> None:
    if isinstance(value, int):
        if not _INT_MIN <= value <= _INT_MAX:
            raise ValueError("a number does not fit into 64 bits")
    elif isinstance(value, dict):
        for item in value.values():
            if type(item) is not str:
                _check_numbers(item)
    elif isinstance(value, list):
        for item in value:
            if type(item) is not str:
                _check_numbers(item)
