"""Patterns that are compiled when they are first used.

The rules have many long patterns, and a text needs few of them; compiling all of them would take
longer than everything else that a command does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator


class Form:
    """A regular expression with the methods of `re.Pattern` that the rules use."""

    __slots__ = ("_flags", "_source", "findall", "finditer", "fullmatch", "match", "search", "sub")

    findall: Callable[..., list[str]]
    finditer: Callable[..., Iterator[re.Match[str]]]
    fullmatch: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    search: Callable[..., re.Match[str] | None]
    sub: Callable[..., str]

    def __init__(self, source: str, flags: int = 0) -> None:
        """Keep the source."""
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        """Compile at the first use of a method; from then on the slots answer."""
        if name not in self.__slots__:
            raise AttributeError(name)
        pattern = re.compile(self._source, self._flags)
        for method in self.__slots__[2:]:
            setattr(self, method, getattr(pattern, method))
        return getattr(pattern, name)
