"""JSON as claims: one for each scalar leaf, "server.ports[0] = 8080".

The text is first checked by a strict parser, then read once more for the places of the leaves.  A
name that stands twice in an object makes its value doubtful, so the whole text derives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from remem.objects.derive.claim import Claim

MAX_VALUE = 200  # code points; a longer string, or one with line breaks, is text and no value
MAX_DEPTH = 32

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLAIN_NAME = re.compile(r"[^\W\d][\w-]*")


class Leaf(msgspec.Struct, frozen=True):
    """A scalar in a document.

    Attributes:
        path: "server.ports[0]"; names that are no plain words are written as `a["b c"]`.
        value: a string's characters, anything else as written.
        start: where its name begins, or itself in an array.
        end: where it ends.
    """

    path: str
    value: str
    start: int
    end: int


def json_claims(text: str, document: str) -> Iterator[Claim]:
    """Derive the claims of a text that is one JSON object, or an array of objects.

    Args:
        text: of the observation.
        document: what it is a version of, or "".
    """
    for leaf in leaves(text):
        if len(leaf.value) > MAX_VALUE or _CONTROL.search(leaf.value):
            continue
        yield Claim(
            "fact",
            f"{leaf.path} = {leaf.value}",
            f"{document} {leaf.path}" if document else leaf.path,
            "is",
            leaf.value or '""',
            leaf.start,
            leaf.end,
            single=bool(document),
        )


def leaves(text: str) -> list[Leaf]:
    """Find the scalar leaves of a JSON text in their order; none if it is not well formed."""
    try:
        whole = msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return []
    if not isinstance(whole, dict) and not (
        isinstance(whole, list) and whole and all(isinstance(item, dict) for item in whole)
    ):
        return []
    try:
        return list(_Reader(text).value("", 0, 0))
    except _Doubtful:
        return []


class _Doubtful(Exception):
    """The text is JSON, and yet does not say one thing."""


class _Reader:
    """Reads text that is known to be well formed."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.finditer(text)
        self._next = next(self._tokens)

    def value(self, path: str, depth: int, start: int) -> Iterator[Leaf]:
        """Read a value; start is where the name before it begins."""
        token = self._take()
        if token[0] == "{":
            yield from self._object(path, depth + 1)
        elif token[0] == "[":
            yield from self._array(path, depth + 1)
        else:
            yield Leaf(path, _scalar(token[0]), start, token.end())

    def _object(self, path: str, depth: int) -> Iterator[Leaf]:
        _check(depth)
        names = set()
        while self._next[0] != "}":
            token = self._take()
            name = _scalar(token[0])
            if name in names:
                raise _Doubtful
            names.add(name)
            self._take()  # the colon
            yield from self.value(_below(path, name), depth, token.start())
            if self._next[0] == ",":
                self._take()
        self._take()

    def _array(self, path: str, depth: int) -> Iterator[Leaf]:
        _check(depth)
        number = 0
        while self._next[0] != "]":
            yield from self.value(f"{path}[{number}]", depth, self._next.start())
            number += 1
            if self._next[0] == ",":
                self._take()
        self._take()

    def _take(self) -> re.Match[str]:
        token = self._next
        self._next = next(self._tokens, token)
        return token


def _check(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _Doubtful


def _scalar(token: str) -> str:
    return str(msgspec.json.decode(token)) if token[0] == '"' else token


def _below(path: str, name: str) -> str:
    if _PLAIN_NAME.fullmatch(name):
        return f"{path}.{name}" if path else name
    return f"{path}[{msgspec.json.encode(name).decode()}]"
