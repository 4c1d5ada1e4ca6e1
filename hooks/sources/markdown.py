"""Markdown: one record a section, with the headings above it.

Unit: a section, a heading with what follows it up to the next heading; what stands before the first
heading is a section without one.  Headings in quotes, lists and fenced code divide nothing.  A
heading with nothing under it is skipped.  Front matter (between `---` or `+++` lines at the top) is
no unit: its title, tags and date go to the records.

Source: CommonMark, by markdown-it-py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from remem.hooks.sources import _json
from remem.hooks.sources._json import Json
from remem.hooks.sources._record import LIMIT_B, Record, admit
from remem.hooks.sources._times import instant_or_none
from remem.hooks.sources.text import KIND, file_uri, undecodable
from remem.objects.model import Incoming, Skipped
from remem.objects.redact import by_lines

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_FRONT_LINES = 400  # a longer head is text, not front matter
_FRONT_KEYS = ("title", "date", "tags")
_PAIR = re.compile(r"([A-Za-z][\w-]*)[ \t]*:[ \t]*(.*)")
_PATH_SIGN = " > "


def read(
    stream: BinaryIO, name: str, *, since: int | None = None, limit_b: int = LIMIT_B
) -> Iterator[Record]:
    """Read the sections of a Markdown text.

    Args:
        stream: the bytes, UTF-8.
        name: what to call the stream in places; where it is a path, it is the source's URI too.
        since: microseconds UTC; sections of a file whose front matter has an older date are
            skipped.
        limit_b: bytes that the whole text may have, as it must be parsed in one piece.

    Yields:
        One record for each section.
    """
    raw = _whole(stream, limit_b)
    if raw is None:
        yield _json.too_long(name, "text", limit_b)
        return
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        yield undecodable(raw, error, name)
        return
    rows = by_lines(text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    front, first = _front_matter(rows)
    asserted, offset = instant_or_none(front.get("date"))
    uri = file_uri(name)
    for path, start, body, end in _sections(rows, first):
        where = f"{name}:{start + 1}"
        if not any(map(str.strip, rows[body:end])):
            if path:
                yield Skipped(where, "heading without text")
            continue
        meta = dict(front)
        if path:
            meta["heading"] = _PATH_SIGN.join(path)
        item = Incoming(
            text="\n".join(rows[start:end]).strip("\n"),
            asserted=asserted,
            offset=offset,
            source_uri=uri,
            kind=KIND,
            meta=meta,
            where=where,
        )
        yield admit(item, since, limit_b)


def _whole(stream: BinaryIO, limit_b: int) -> bytes | None:
    pieces = [_json.peek(stream)]
    held = len(pieces[0])
    while held <= limit_b:
        piece = _json.more(stream)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        held += len(piece)
    return None


def _sections(rows: list[str], first: int) -> Iterator[tuple[list[str], int, int, int]]:
    """Give heading path, first row, first row below the heading and end row of each section."""
    parser = _parser()
    tokens = parser.parse("\n".join(rows[first:]))
    path: list[tuple[int, str]] = []
    start = body = first
    for place, token in enumerate(tokens):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        begin, below = (row + first for row in token.map)
        yield [title for _, title in path], start, body, begin
        depth = int(token.tag[1:])
        path = [step for step in path if step[0] < depth]
        path.append((depth, _plain(parser, tokens[place + 1].content)))
        start, body = begin, below
    yield [title for _, title in path], start, body, len(rows)


def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    # Only block structure is wanted; the inline text of headings is parsed where it is needed.
    parser.core.ruler.disable("inline")
    return parser


def _plain(parser: MarkdownIt, markup: str) -> str:
    parser.core.ruler.enable("inline")
    (inline,) = parser.parseInline(markup)
    parser.core.ruler.disable("inline")
    parts = [
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for child in inline.children or []
        if child.type != "html_inline"
    ]
    return " ".join("".join(parts).split())


def _front_matter(rows: list[str]) -> tuple[Json, int]:
    """Read the head of a file: the keys that matter, and the row after it (0 if there is none)."""
    fence = rows[0].rstrip()
    if fence not in ("---", "+++"):
        return {}, 0
    ends = (fence, "...") if fence == "---" else (fence,)
    for row in range(1, min(len(rows), _FRONT_LINES)):
        if rows[row].rstrip() in ends:
            found = _yaml(rows[1:row]) if fence == "---" else _toml(rows[1:row])
            if found is None:
                return {}, 0
            return found, row + 1
    return {}, 0


def _yaml(rows: list[str]) -> Json | None:
    # Plain "key: value" rows are all that is read; anything deeper belongs to other programs.
    found: Json = {}
    pairs = 0
    key = ""
    for row in rows:
        pair = _PAIR.fullmatch(row.rstrip())
        if pair is not None:
            pairs += 1
            key, value = pair[1].lower(), _unquoted(pair[2])
            if key in _FRONT_KEYS and value:
                found[key] = value
        elif key == "tags" and row.lstrip().startswith("- "):
            tag = _unquoted(row.lstrip()[2:])
            found["tags"] = f"{found['tags']}, {tag}" if "tags" in found else tag
    return found if pairs or not any(map(str.strip, rows)) else None


def _unquoted(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    if value[:1] == "[" and value[-1:] == "]":
        return ", ".join(_unquoted(part) for part in value[1:-1].split(","))
    return re.sub(r"(?:^|\s)#.*", "", value).rstrip()


def _toml(rows: list[str]) -> Json | None:
    import tomllib

    try:
        table = tomllib.loads("\n".join(rows))
    except tomllib.TOMLDecodeError:
        return None
    found: Json = {}
    for key in _FRONT_KEYS:
        value = table.get(key)
        if isinstance(value, list):
            value = ", ".join(map(str, value))
        if value is not None:
            found[key] = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return found
