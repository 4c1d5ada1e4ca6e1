"""Outlines of changes as claims: symbols that a commit adds, removes and touches, version bumps.

An outline is what of a diff says something by itself, word for word, and little else::

    changes of commit 0123456789ab
    M src/app.py
    @@ def parse(text):
    +def parse_all(text):
    -def parse_some(text):
    ~def render(page, width):
    M pyproject.toml
    -version = "1.2.0"
    +version = "1.3.0"

A line of a file is its letter in git's list and its name.  Below it stand the definitions inside of
which something changed ("@@"), that were added ("+") or removed ("-"), whose own line changed
("~"), and settings whose version changed (the old line, then the new one).  A name between two
underscores at each end says nothing and is left out, and so is a symbol in a file that is no code.

`remem.hooks.sources.git` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from remem.objects.derive._ledger_diff import MAX_NAME, SETTING, SYMBOL, note
from remem.objects.derive.claim import Claim

KIND = "diff"
ID_END = ":diff"  # behind the id of a commit, the id of the outline of its changes
HEAD = "changes of commit "
DONE = {"@@ ": "touches", "+": "adds", "-": "removes", "~": "changes"}

_FILE = re.compile(r"[ACDMRT] (?P<path>\S.*)")
_TO = " -> "
# What follows a name that is defined; "class names are words" defines none.
_BEHIND = re.compile(r"\s*(?:[(:{<;=\[]|(?:extends|implements|with|where|final)\b|$)")
_CODE = frozenset(
    "bas c cc cjs cpp cs cxx dart ex exs f90 go gradle groovy h hh hpp java jl js jsx kt kts lua m"
    " mjs mm mts nim php pl pm proto ps1 py pyi pyx r rb rs scala sol sql swift ts tsx v vb vue"
    " zig".split()
)
_PROSE = frozenset("adoc asciidoc htm html lock md mdx org pot po rst svg tex".split())


def symbol(line: str) -> str:
    """The name that a line of code defines, or ""."""
    found = SYMBOL.match(line)
    if found is None or _BEHIND.match(line, found.end()) is None:
        return ""
    name = found["name"]
    return "" if len(name) > MAX_NAME or (name[:2] == "__" == name[-2:]) else name


def setting(line: str) -> tuple[str, str] | None:
    """The name and the version that a line sets, or None."""
    found = SETTING.fullmatch(line) if len(line) <= MAX_NAME else None
    return None if found is None else (found["name"], found["value"])


def is_code(path: str) -> bool:
    """Whether a file may define symbols."""
    return _ending(path) in _CODE


def is_prose(path: str) -> bool:
    """Whether a file sets no versions, or only those of others."""
    return _ending(path) in _PROSE


def _ending(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def is_outline(text: str) -> bool:
    """Whether a text has the form."""
    return text.startswith(HEAD)


def outline_claims(text: str) -> Iterator[Claim]:
    """Derive the claims of an outline, in its order."""
    for path, predicate, value, start, end in _read(text):
        yield note(path, predicate, value, start, end)


def names(text: str) -> list[str]:
    """What an outline is about: its files, symbols and settings, none of them twice."""
    found: dict[str, None] = {}
    for path, predicate, value, _, _ in _read(text):
        found[path] = None
        bumped = predicate.removeprefix("version ")
        found[value if bumped == predicate else f"{bumped} {value}"] = None
    return list(found)


def _read(text: str) -> Iterator[tuple[str, str, str, int, int]]:
    """Path, predicate, object, start and end of each thing that an outline says."""
    if not is_outline(text):
        return
    path, at = "", 0
    before: tuple[str, str, int] | None = None  # of the line above: name, version, where it begins
    for line in text.split("\n"):
        start, end = at, at + len(line)
        at = end + 1
        sign = "@@ " if line.startswith("@@ ") else line[:1]
        if sign not in DONE:
            listed = _FILE.fullmatch(line)
            path = listed["path"].rpartition(_TO)[2] if listed is not None else ""
            before = None
            continue
        body = line[len(sign) :]
        own = None if sign in ("@@ ", "~") else setting(body)
        if path and (name := symbol(body)):
            yield path, DONE[sign], name, start, end
        elif path and own is not None and sign == "+" and before is not None:
            if own[0] == before[0] and own[1] != before[1]:
                yield path, f"version {own[0]}", own[1], before[2], end
        before = (*own, start) if own is not None and sign == "-" else None
