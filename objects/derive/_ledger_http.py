"""Heads of HTTP messages as claims: status, request, header fields (RFC 9112, sections 3 to 5).

Fields that carry secrets are never derived.  After redirects a text holds several heads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from remem.objects.derive.claim import Claim

MAX_VALUE = 200  # code points; a longer field is left out

_STATUS = re.compile(r"HTTP/\d(?:\.\d)? (?P<code>[1-5]\d\d)(?: (?P<reason>[^\n]{0,80}))?")
_REQUEST = re.compile(
    r"(?P<method>GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (?P<target>\S{1,200}) HTTP/\d(?:\.\d)?"
)
_FIELD = re.compile(r"(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(?P<value>[^\n]*?)[ \t]*")
_SECRET = re.compile(
    r"cookie|authorization|authenticat|token|secret|key|session|signature|password|csrf|nonce",
    re.IGNORECASE,
)


def http_claims(text: str) -> Iterator[Claim]:
    """Derive the claims of a text that begins with the head of a request or response."""
    heads = _heads(text, len(text) - len(text.lstrip()))
    for number, lines in enumerate(heads, 1):
        start, end, first = lines[0]
        status, request = _STATUS.fullmatch(first), _REQUEST.fullmatch(first)
        what = "response" if status else "request"
        who = what if len(heads) == 1 else f"{what} {number}"
        if status:
            yield _claim(who, "status", status["code"], start, end)
        elif request:
            yield _claim(who, "method", request["method"], start, end)
            yield _claim(who, "target", request["target"], start, end)
        for start, end, line in lines[1:]:
            field = _FIELD.fullmatch(line)
            if field is None or not 0 < len(field["value"]) <= MAX_VALUE:
                continue
            if not _SECRET.search(field["name"]):
                name = re.sub(r"\W+", "_", field["name"].lower()).strip("_")
                yield _claim(who, name, field["value"], start, end)


def _claim(who: str, predicate: str, value: str, start: int, end: int) -> Claim:
    line = f"{who}: {predicate.replace('_', '-')} {value}"
    return Claim("event", line, who, predicate, value, start, end)


def _heads(text: str, at: int) -> list[list[tuple[int, int, str]]]:
    """Split heads into lines with their places; nothing if one of them is malformed."""
    heads: list[list[tuple[int, int, str]]] = []
    while at < len(text) and (not heads or _STATUS.match(text, at)):
        lines: list[tuple[int, int, str]] = []
        while at < len(text):
            stop = text.find("\n", at)
            stop = len(text) if stop < 0 else stop
            line = text[at:stop]
            begin, at = at, stop + 1
            if not line.strip():
                break
            form = _FIELD if lines else _STATUS if line.startswith("HTTP/") else _REQUEST
            if form.fullmatch(line) is None:
                return []
            lines.append((begin, stop, line))
        if len(lines) < 2:
            return []  # a first line alone may be one of prose or of a log
        heads.append(lines)
    return heads
