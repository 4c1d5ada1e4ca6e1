"""Outlines of the changes of commits, from the diffs that git prints.

Kept is what names something (`remem.objects.derive.outline`): definitions that were added,
removed or changed, those inside of which something changed, and versions that were set.  Git itself
leaves out binary files and those above `HUGE`; of the rest at most `MAX_LINES` lines are kept of a
commit, versions and definitions before what was merely touched.

A definition counts as touched when the first line that changed is indented deeper than it is:
what is put behind a function is no change of it, although git names the function there.

Source: git-diff(1), "Generating patch text with -p"; git-log(1).
"""

from __future__ import annotations

import os
import re
from typing import IO, TYPE_CHECKING

from remem.objects.derive.outline import HEAD, is_code, is_prose, setting, symbol

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINES = 50  # of an outline, without those that name files
MAX_LINE = 160  # code points of one
MAX_PATH = 400  # code points; a file with a longer name is left out
HUGE = "1m"  # size from which on git treats a file as binary
READ_B = 4096  # of a line that are looked at

COMMIT = b"\x01"  # begins the line of a commit; every line of a diff begins with something else
# What git shall name at the head of a hunk, with its indentation: the nearest line above it that is
# not indented, or an indented definition of the commonest forms (each further one takes time).
DEFINES = "^([A-Za-z_$].*)$\n^([ \t]+((async|pub) )?(def|fn|func|class) .*)$"
SETTINGS = (f"core.bigFileThreshold={HUGE}", f"diff.default.xfuncname={DEFINES}")
LOG = (
    "log",
    "--patch",
    "--unified=0",
    "--inter-hunk-context=0",
    "--find-renames",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--indent-heuristic",
    "--submodule=short",
    "--ws-error-highlight=none",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "-O" + os.devnull,
    "--format=tformat:%x01%H",
)

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@(?: (.*))?")
_DEFINES = re.compile(
    rb"[ \t]*(?:[a-z]+(?:\([a-z]+\))? ){0,5}"
    rb"(?:def|class|func|fn|function\*?|struct|enum|trait|interface|module|sub) "
)
_SETS = re.compile(rb"[^:=~<>]{1,80}[:=~<>]=?\s*[\"']?[\^~v]?\d+\.\d")
_ESCAPE = re.compile(rb'\\([abtnvfr"\\]|[0-7]{3})')
_ESCAPED = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))

_VERSION, _DEFINITION, _TOUCHED = range(3)  # in the order in which lines are kept


class Commits:
    """The outlines of commits, in the order in which git prints them."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Begin to read what ``LOG`` prints."""
        self._found = _outlines(stream)
        self._next = next(self._found, None)

    def of(self, sha: str) -> str:
        """The outline of a commit, "" for none; commits are asked for in their order."""
        if self._next is None or self._next[0] != sha:
            return ""
        outline = self._next[1]
        self._next = next(self._found, None)
        return outline


def _outlines(stream: IO[bytes]) -> Iterator[tuple[str, str]]:
    """(commit, outline) of each commit, also of those without one."""
    sha, diff = "", _Diff()
    for line in _lines(stream):
        if line[:1] == COMMIT:
            if sha:
                yield sha, diff.outline(sha)
            sha, diff = line[1:].decode("ascii", "replace").strip(), _Diff()
        else:
            diff.take(line)
    if sha:
        yield sha, diff.outline(sha)


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream, without their ends; of a long one only the beginning."""
    while line := stream.readline(READ_B):
        whole = line.endswith(b"\n")
        yield line.rstrip(b"\r\n")
        while not whole and (more := stream.readline(1 << 20)):
            whole = more.endswith(b"\n")


class _Diff:
    """The diff of one commit, line by line."""

    def __init__(self) -> None:
        self._files: list[_File] = []
        self._file: _File | None = None
        self._left = 0  # changed lines that the hunk still has

    def take(self, line: bytes) -> None:
        """Take the next line."""
        if self._left and line[:1] in (b"+", b"-"):
            self._left -= 1
            if self._file is not None:
                self._file.change(line)
        elif line.startswith(b"@@ ") and (hunk := _HUNK.fullmatch(line)):
            # A line that is empty in both counts as one.
            self._left = int(hunk[1] or 1) + int(hunk[2] or 1)
            if self._file is not None:
                self._file.hunk(hunk[3] or b"")
        elif line.startswith(b"diff --git "):
            self._file = _File()
            self._files.append(self._file)
            self._left = 0
        elif self._file is not None:
            self._file.head(line)

    def outline(self, sha: str) -> str:
        """The outline, "" if nothing in the diff names anything."""
        shown = [(file, entry) for file in self._files for entry in file.entries()]
        kept = sorted(range(len(shown)), key=lambda at: (shown[at][1][0], at))
        room, chosen = MAX_LINES, set()
        for at in kept:
            room -= len(shown[at][1][1])
            if room < 0:
                break
            chosen.add(at)
        if not chosen:
            return ""
        out = [HEAD + sha[:12]]
        last: _File | None = None
        for at in sorted(chosen):
            file, (_, lines) = shown[at]
            if file is not last:
                out.append(file.line())
                last = file
            out += lines
        if len(chosen) < len(shown):
            out.append(f"… and {len(shown) - len(chosen):,} more changes")
        return "\n".join(out)


class _File:
    """What a diff does to one file."""

    def __init__(self) -> None:
        self._made = "M"
        self._old = self._new = ""
        self._code = self._sets = False
        self._within: tuple[int, str] | None = None  # definition above the hunk, not yet settled
        self._above = ""  # that definition, once it is
        self._touched: dict[str, str] = {}
        self._added: dict[str, str] = {}
        self._removed: dict[str, str] = {}
        self._taken: dict[str, tuple[str, str]] = {}  # settings that this hunk took away
        self._bumped: dict[str, tuple[str, str]] = {}

    def head(self, line: bytes) -> None:
        """Take a line between the name of the file and its hunks."""
        if line.startswith(b"--- "):
            self._old = _path(line[4:], b"a/")
        elif line.startswith(b"+++ "):
            self._new = _path(line[4:], b"b/")
            path = self._new or self._old
            fit = path.isprintable() and len(path) <= MAX_PATH
            self._code = fit and is_code(path)
            self._sets = fit and not is_prose(path)
        elif line.startswith(b"new file mode "):
            self._made = "A"
        elif line.startswith(b"deleted file mode "):
            self._made = "D"
        elif line.startswith(b"rename from "):
            self._made = "R"

    def line(self) -> str:
        """Its line in the outline."""
        if self._made == "R" and self._old and self._new:
            return f"R {self._old} -> {self._new}"
        return f"{self._made} {self._new or self._old}"

    def hunk(self, where: bytes) -> None:
        """Begin a hunk below a definition."""
        self._within = None
        self._taken.clear()
        if self._code and where:
            text = where.decode(errors="replace")
            if name := symbol(text):
                self._above = text.strip()[:MAX_LINE]
                self._within = (_indent(where), name)

    def change(self, line: bytes) -> None:
        """Take a line that was added or removed."""
        body = line[1:]
        if self._within is not None and body.strip():
            deep, name = self._within
            self._within = None
            if _indent(body) > deep:
                self._touched.setdefault(name, self._above)
        added = line[:1] == b"+"
        if self._code and _DEFINES.match(body):
            text = body.decode(errors="replace")
            if name := symbol(text):
                there = self._added if added else self._removed
                there.setdefault(name, text.strip()[:MAX_LINE])
        elif self._sets and _SETS.match(body):
            self._setting(added, body.decode(errors="replace").strip())

    def _setting(self, added: bool, text: str) -> None:
        found = setting(text)
        if found is None:
            return
        name, value = found
        if not added:
            self._taken[name] = (value, text)
        elif name in self._taken and self._taken[name][0] != value:
            self._bumped.setdefault(name, (self._taken[name][1], text))

    def entries(self) -> Iterator[tuple[int, list[str]]]:
        """What is to be told of it: how soon it counts, and the lines."""
        for old, new in self._bumped.values():
            yield _VERSION, ["-" + old, "+" + new]
        for name, text in self._added.items():
            yield _DEFINITION, [("~" if name in self._removed else "+") + text]
        for name, text in self._removed.items():
            if name not in self._added:
                yield _DEFINITION, ["-" + text]
        for name, text in self._touched.items():
            if name not in self._added and name not in self._removed:
                yield _TOUCHED, ["@@ " + text]


def _indent(line: bytes) -> int:
    line = line.expandtabs(8)
    return len(line) - len(line.lstrip())


def _path(name: bytes, prefix: bytes) -> str:
    """The path in a line that names a file, "" for none; git quotes those that are out of order."""
    if name.startswith(b'"'):
        name = _ESCAPE.sub(_unescaped, name.rstrip(b"\t")[1:-1])
    else:
        name = name.rstrip(b"\t")
    if not name.startswith(prefix):
        return ""
    return name[len(prefix) :].decode(errors="backslashreplace")


def _unescaped(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8) & 0xFF if len(code) == 3 else _ESCAPED[code[0]]])
