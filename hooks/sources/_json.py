"""JSON as a stream of units: one value a line, or the elements of one array, never held whole.

A unit is handed out as bytes with its place ("file.jsonl:12", "file.json[3]"); decoding is left to
the reader of the format, which knows the shape it wants.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import BinaryIO, TypeAlias

import msgspec

from remem.hooks.sources._record import DOCUMENT_LIMITS
from remem.objects.model import Rejected, Skipped

Json: TypeAlias = dict[str, object]

CHUNK_B = 256 * 1024  # bytes read at once
WHOLE_B = 32 * 2**20  # an array of at most so many bytes is split in one go
BLANK = "blank line"

_BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")
_SPACE = b" \t\r\n"
_TELLING_B = 64
_OUTSIDE = re.compile(rb'["\[\]{},]')
_INSIDE = re.compile(rb'["\\]')
_SURROGATE = re.compile("[\ud800-\udfff]")
_decode = msgspec.json.Decoder().decode
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode


def peek(stream: BinaryIO) -> bytes:
    """Read the first piece of a stream, without a UTF-8 byte-order mark.

    It waits for no more than what tells the shape of the input apart, so a pipe that is written
    slowly is read as it comes.
    """
    head = b""
    while len(head.lstrip(_SPACE)) < _TELLING_B:
        piece = more(stream)
        if not piece:
            break
        head += piece
    return head.removeprefix(_BOM)


def more(stream: BinaryIO) -> bytes:
    """Read what is there to read, at most CHUNK_B bytes; nothing only at the end."""
    read1 = getattr(stream, "read1", None)
    piece: bytes = stream.read(CHUNK_B) if read1 is None else read1(CHUNK_B)
    return piece


def lines(
    head: bytes, stream: BinaryIO, limit_b: int, *, first: int = 1
) -> Iterator[tuple[int, bytes | None]]:
    r"""Give the lines of a stream, numbered, without their "\n".

    Args:
        head: what was read of the stream already.
        stream: the rest.
        limit_b: a longer line is read over and given as None; it is never held whole.
        first: number of the first line.

    Yields:
        Number and bytes of each line; a last line feed makes no further, empty line.
    """
    number = first
    pieces: list[bytes] = []  # of the line that the last chunk ended in
    held = 0
    chunk = head or more(stream)
    while chunk:
        parts = chunk.split(b"\n")
        tail = parts.pop()
        if parts:
            if held:
                pieces.append(parts[0])
                held += len(parts[0])
                parts[0] = b"" if held > limit_b else b"".join(pieces)
                if held > limit_b:
                    yield number, None
                    number += 1
                    del parts[0]
                pieces, held = [], 0
            for part in parts:
                yield number, part if len(part) <= limit_b else None
                number += 1
        if tail:
            held += len(tail)
            if held > limit_b:
                pieces.clear()
            else:
                pieces.append(tail)
        chunk = more(stream)
    if held:
        yield number, None if held > limit_b else b"".join(pieces)


def units(
    stream: BinaryIO, name: str, limit_b: int, *, head: bytes | None = None
) -> Iterator[tuple[str, bytes | Rejected | Skipped]]:
    """Give the JSON units of a stream: its lines or, where it is one array, the elements.

    Args:
        stream: the bytes.
        name: what to call the stream in places.
        limit_b: a longer unit is read over and rejected.
        head: what was read of the stream already.

    Yields:
        The place and the bytes of each unit, or the record that stands for it.
    """
    if head is None:
        head = peek(stream)
    if head.startswith(_WIDE_BOMS):
        yield name, Rejected(name, "UTF-16 text; convert it to UTF-8 first")
        return
    first = 1
    if head.lstrip(_SPACE)[:1] == b"[":
        head, elements = _whole_array(head, stream)
        if elements is not None:
            for index, element in enumerate(elements):
                where = f"{name}[{index}]"
                unit = bytes(element)
                yield where, unit if len(unit) <= limit_b else too_long(where, "element", limit_b)
            return
        head, first = yield from _array(head, stream, name, limit_b)
    for number, line in lines(head, stream, limit_b, first=first):
        where = f"{name}:{number}"
        if line is None:
            yield where, too_long(where, "line", limit_b)
        elif line.isspace() or not line:
            yield where, Skipped(where, BLANK)
        else:
            yield where, line


def document(head: bytes, stream: BinaryIO, limit_b: int) -> bytes | None:
    """Read the rest of a stream that must be held whole; None if it is too large for that."""
    most = DOCUMENT_LIMITS * limit_b
    pieces = [head]
    held = len(head)
    while held <= most:
        piece = more(stream)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        held += len(piece)
    return None


def decode(unit: bytes, *, repair: bool = False) -> object:
    r"""Decode one JSON value.

    Args:
        unit: the bytes.
        repair: put U+FFFD for a lone surrogate ("\ud83d"), which programs write that cut a text in
            the middle of an emoji; without it such a value is an error.

    Raises:
        ValueError: if it is no JSON, with a reason that names the place.
    """
    try:
        value: object = _decode(unit)
        return value
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        if repair:
            mended = _mend(unit)
            if mended is not None:
                return mended
        raise ValueError(why_not_json(unit, error)) from None


def why_not_json(unit: bytes, error: Exception) -> str:
    """Say in words why bytes are no JSON value, with the place inside of the unit."""
    if isinstance(error, RecursionError):
        return "not valid JSON: nested too deeply"
    try:
        text = unit.decode()
    except UnicodeDecodeError as broken:
        return f"not UTF-8: byte 0x{unit[broken.start]:02x} at offset {broken.start}"
    import json  # only when something is wrong: its errors name the column, msgspec's do not

    try:
        value = json.loads(text)
    except json.JSONDecodeError as bad:
        reason = bad.msg[:1].lower() + bad.msg[1:].removesuffix(" at")
        return f"not valid JSON at column {bad.pos + 1}: {reason}"
    except RecursionError:
        return "not valid JSON: nested too deeply"
    if _has_surrogate(value):
        return "not Unicode: half of a surrogate pair"
    return f"not valid JSON: {str(error)[:1].lower()}{str(error)[1:]}"


def kind_of(value: object) -> str:
    """Name the JSON type of a value for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, int | float):
        return "a number"
    return "an array" if isinstance(value, list) else "an object"


def text_at(value: object, key: str) -> str:
    """Take a text out of an object; "" where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def object_at(value: object, key: str) -> Json:
    """Take an object out of an object; an empty one where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def list_at(value: object, key: str) -> list[object]:
    """Take an array out of an object; an empty one where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def too_long(where: str, what: str, limit_b: int) -> Rejected:
    """Build the record that stands for a unit above the limit."""
    return Rejected(where, f"{what} is above the limit of {limit_b:,} bytes")


def _whole_array(head: bytes, stream: BinaryIO) -> tuple[bytes, list[msgspec.Raw] | None]:
    """Split a short array without a fault in one go; else give what was read of it."""
    pieces = [head]
    held = len(head)
    while piece := more(stream):
        pieces.append(piece)
        held += len(piece)
        if held > WHOLE_B:
            return b"".join(pieces), None
    whole = b"".join(pieces)
    try:
        return b"", _split(whole)
    except (msgspec.DecodeError, RecursionError):
        return whole, None


def _array(
    head: bytes, stream: BinaryIO, name: str, limit_b: int
) -> Generator[tuple[str, bytes | Rejected], None, tuple[bytes, int]]:
    """Split an array into its elements; returns what follows it and the number of its line.

    Only brackets, commas and strings are told apart; what stands in an element is judged by the
    decoder, so one broken element does not cost the others.
    """
    chunk = head
    start = pos = head.index(b"[") + 1  # of what is not handed out yet; of what is not scanned yet
    newlines = head.count(b"\n", 0, pos)
    pieces: list[bytes] = []
    held = index = depth = 0
    quoted = False
    last_comma = False
    while True:
        pattern = _INSIDE if quoted else _OUTSIDE
        match = pattern.search(chunk, pos)
        if match is None or (quoted and match[0] == b"\\" and match.end() == len(chunk)):
            # A backslash at the very end waits for the byte that it escapes.
            keep = match.start() if match is not None else len(chunk)
            held += keep - start
            if held <= limit_b:
                pieces.append(chunk[start:keep])
            else:
                pieces.clear()
            newlines += chunk.count(b"\n", start, keep)
            piece = more(stream)
            if not piece:
                break
            chunk = chunk[keep:] + piece
            start = pos = 0
            continue
        sign = match[0]
        pos = match.end()
        if quoted:
            if sign == b'"':
                quoted = False
            else:
                pos += 1
        elif sign == b'"':
            quoted = True
        elif sign in b"[{":
            depth += 1
        elif depth and sign in b"]}":
            depth -= 1
        elif sign in b",]}" and not depth:
            held += match.start() - start
            pieces.append(chunk[start : match.start()])
            where = f"{name}[{index}]"
            unit = b"".join(pieces).strip(_SPACE)
            if held > limit_b:
                yield where, too_long(where, "element", limit_b)
            elif unit:
                yield where, unit
            elif sign == b"," or last_comma:
                yield where, Rejected(where, "not valid JSON: no value between two commas")
            newlines += chunk.count(b"\n", start, pos)
            if sign != b",":
                return _after_array(chunk[pos:], stream, newlines)
            pieces, held, start = [], 0, pos
            index += 1
            last_comma = True
    where = f"{name}[{index}]"
    yield where, Rejected(where, "not valid JSON: the array has no end, the file seems cut off")
    return b"", newlines + 1


def _after_array(rest: bytes, stream: BinaryIO, newlines: int) -> tuple[bytes, int]:
    # The rest of the line that closes the array is no line of its own, unless something is on it.
    rest = rest.lstrip(b" \t\r")
    while not rest:
        piece = more(stream)
        if not piece:
            return b"", newlines + 1
        rest = piece.lstrip(b" \t\r")
    return (rest[1:], newlines + 2) if rest[:1] == b"\n" else (rest, newlines + 1)


def _mend(unit: bytes) -> object | None:
    import json

    try:
        value: object = json.loads(unit)
    except (ValueError, RecursionError):
        return None
    return _without_surrogates(value) if _has_surrogate(value) else None


def _has_surrogate(value: object) -> bool:
    if isinstance(value, str):
        return _SURROGATE.search(value) is not None
    if isinstance(value, list):
        return any(map(_has_surrogate, value))
    if isinstance(value, dict):
        return any(map(_has_surrogate, value)) or any(map(_has_surrogate, value.values()))
    return False


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value
