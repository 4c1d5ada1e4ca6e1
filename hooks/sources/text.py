"""Plain text: one record a block.

Unit: a block, lines between blank lines.  Blank lines themselves are no units.  The block keeps
its line feeds as given; nothing is known of when it was written.  A private region may reach over
blank lines: it goes before the text is cut into blocks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

from remem.hooks.sources import _json
from remem.hooks.sources._record import LIMIT_B, Record, admit
from remem.objects.model import Incoming, Rejected
from remem.objects.redact import EMPTY, Regions

KIND = "note"


def read(
    stream: BinaryIO, name: str, *, since: int | None = None, limit_b: int = LIMIT_B
) -> Iterator[Record]:
    """Read the blocks of a text.

    Args:
        stream: the bytes, UTF-8.
        name: what to call the stream in places; where it is a path, it is the source's URI too.
        since: microseconds UTC; without effect, as no block has a time.
        limit_b: bytes that one block may have.

    Yields:
        One record for each block.
    """
    head = _json.peek(stream)
    uri = file_uri(name)
    block: list[bytes] = []
    start = held = 0
    regions = Regions(EMPTY)
    for number, line in _json.lines(head, stream, limit_b):
        if line is not None and (regions.depth or b"<" in line):
            opened, unopened = regions.depth, regions.unopened
            line = regions.feed(line.decode("latin-1")).encode("latin-1")
            if regions.unopened > unopened:
                block.clear()
            if opened and not line:
                continue
        if line is not None and (not line or line.isspace()):
            if start:
                yield _record(block, held, f"{name}:{start}", uri, since, limit_b)
                block, held, start = [], 0, 0
            continue
        start = start or number
        held += limit_b + 2 if line is None else len(line) + 1
        if held <= limit_b + 1 and line is not None:
            block.append(line)
        else:
            block.clear()
    if start:
        yield _record(block, held, f"{name}:{start}", uri, since, limit_b)


def file_uri(name: str) -> str:
    """Name a file as the source of its text; "" for a stream that has no path."""
    return "file:" + os.path.abspath(name) if os.path.isfile(name) else ""


def undecodable(raw: bytes, error: UnicodeDecodeError, where: str) -> Rejected:
    """Build the record that stands for bytes that are not UTF-8."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Rejected(where, "UTF-16 text; convert it to UTF-8 first")
    return Rejected(where, f"not UTF-8: byte 0x{raw[error.start]:02x} at offset {error.start}")


def _record(
    block: list[bytes], held: int, where: str, uri: str, since: int | None, limit_b: int
) -> Record:
    if held > limit_b + 1:
        return _json.too_long(where, "block", limit_b)
    raw = b"\n".join(block)
    try:
        text = raw.decode().strip("\r\n")
    except UnicodeDecodeError as error:
        return undecodable(raw, error, where)
    return admit(Incoming(text=text, source_uri=uri, kind=KIND, where=where), since, limit_b)
