"""Unified diffs as claims: files and their lines, functions touched, symbols, version bumps.

The form is that of "diff -u" and of git.  A hunk must have exactly the lines that its head counts,
else the whole text derives nothing; text before and after the diff does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from remem.objects.derive.claim import Claim

MAX_NAME = 120  # code points; a longer symbol or value is left out

_GIT = re.compile(
    r'diff --git (?:"a/(?:[^"\\]|\\.)*"|a/.*?) '
    r'(?:"b/(?P<quoted>(?:[^"\\]|\\.)*)"|b/(?P<path>.*))'
)
_OLD = re.compile(r"--- (?P<path>[^\t\n]+)(?:\t.*)?")
_NEW = re.compile(r"\+\+\+ (?P<path>[^\t\n]+)(?:\t.*)?")
_HUNK = re.compile(
    r"@@ -\d{1,9}(?:,(?P<old>\d{1,9}))? \+\d{1,9}(?:,(?P<new>\d{1,9}))? @@(?: (?P<where>.*))?"
)
_MORE = re.compile(r"[+ ]|-(?!-(?:-? |$))")  # after the counted lines; "-- " signs a mail
_RENAMED = re.compile(r"rename (?P<way>from|to) (?P<path>.+)")
SYMBOL = re.compile(
    r"\s*(?:export |default |pub(?:\([a-z]+\))? |public |private |protected |static "
    r"|abstract |async |final |inline |override )*"
    r"(?:def|class|func|fn|function\*?|struct|enum|trait|interface|module|sub) "
    r"(?:\([^)]*\) )?(?P<name>[^\W\d][\w$]*)"
)
SETTING = re.compile(
    r"""\s*["']?(?P<name>[A-Za-z_][\w.@/-]*)["']?\s*(?:[:=]|==|~=|>=|<=)\s*["']?"""
    r"""[\^~v]?(?P<value>\d+(?:\.\d+)+[0-9A-Za-z]*(?:[-+.][0-9A-Za-z]+)*)["']?\s*[,;]?\s*(?:#.*)?"""
)


class File:
    """What a diff does to one file.

    Attributes:
        path: its new name, or the old one of a deleted file.
        old: its old name where it was renamed, else "".
        made: "added", "deleted", "renamed" or "changed".
        start: where its part of the text begins.
        end: where it ends.
        named: its two lines of names were read.
        added: lines added.
        removed: lines removed.
        notes: further claims of it: (predicate, object, start, end).
    """

    __slots__ = ("added", "end", "made", "named", "notes", "old", "path", "removed", "start")

    def __init__(self, path: str, start: int) -> None:
        """Begin a file at a place."""
        self.path = path
        self.old = ""
        self.made = "changed"
        self.start = start
        self.end = start
        self.named = False
        self.added = 0
        self.removed = 0
        self.notes: list[tuple[str, str, int, int]] = []


class _Malformed(Exception):
    """A hunk is not what its head says."""


def diff_claims(text: str) -> Iterator[Claim]:
    """Derive the claims of a text that holds a unified diff."""
    for file in files(text):
        count = f"+{file.added} -{file.removed}"
        line = f"{file.made} {file.path} ({count})"
        yield Claim("event", line, file.path, file.made, count, file.start, file.end)
        if file.old:
            line = f"renamed {file.old} to {file.path}"
            yield Claim("event", line, file.path, "renamed_from", file.old, file.start, file.end)
        for predicate, value, start, end in file.notes:
            yield note(file.path, predicate, value, start, end)


def note(path: str, predicate: str, value: str, start: int, end: int) -> Claim:
    """Make the claim of what a diff does to a file: a symbol, or a version that is set."""
    if predicate.startswith("version "):
        name = predicate.removeprefix("version ")
        line = f"{name} in {path} is {value}"
        return Claim("fact", line, f"{path} {name}", "version", value, start, end, single=True)
    line = f"{path} {predicate.replace('_', ' ')} {value}"
    return Claim("event", line, path, predicate, value, start, end)


def files(text: str) -> list[File]:
    """Read the files of a unified diff; none if it is malformed."""
    try:
        found = list(_Diff(text).files())
    except _Malformed:
        return []
    # Without a hunk, a rename or a mode line there is only something that looks like a head.
    return [file for file in found if file.end > file.start]


class _Diff:
    """Reads a text line by line."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._at = 0
        self._place = 0  # of the line in the text

    def files(self) -> Iterator[File]:
        file: File | None = None
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if head := _GIT.fullmatch(line):
                if file is not None:
                    yield file
                file = File(head["path"] or head["quoted"], self._place)
                self._step()
            elif _OLD.fullmatch(line) and self._peek(1, _NEW) and self._peek(2, _HUNK):
                if file is None or file.named:
                    if file is not None:
                        yield file
                    file = File("", self._place)
                self._names(file)
                while self._at < len(self._lines) and self._peek(0, _HUNK):
                    self._hunk(file)
            elif line.startswith("@@ -") and _HUNK.match(line):
                raise _Malformed  # a hunk of no file
            else:
                if file is not None and file.end in (file.start, self._place):
                    self._extended(file, line)
                self._step()
        if file is not None:
            yield file

    def _step(self) -> None:
        self._place += len(self._lines[self._at]) + 1
        self._at += 1

    def _peek(self, ahead: int, form: re.Pattern[str]) -> bool:
        at = self._at + ahead
        return at < len(self._lines) and form.fullmatch(self._lines[at]) is not None

    def _extended(self, file: File, line: str) -> None:
        """Read git's lines between the names and the hunks."""
        renamed = _RENAMED.fullmatch(line)
        if line.startswith("new file mode "):
            file.made = "added"
        elif line.startswith("deleted file mode "):
            file.made = "deleted"
        elif renamed and renamed["way"] == "from":
            file.made, file.old = "renamed", renamed["path"]
        elif not (renamed or line.startswith("Binary files ")):
            return
        file.end = self._place + len(line)

    def _names(self, file: File) -> None:
        old = _OLD.fullmatch(self._lines[self._at])
        new = _NEW.fullmatch(self._lines[self._at + 1])
        assert old is not None and new is not None
        if new["path"] == "/dev/null":
            file.made, path = "deleted", old["path"]
        else:
            path = new["path"]
            if old["path"] == "/dev/null":
                file.made = "added"
        file.named = True
        file.path = file.path or path.removeprefix("a/").removeprefix("b/")
        self._step()
        self._step()

    def _hunk(self, file: File) -> None:
        head = _HUNK.fullmatch(self._lines[self._at])
        assert head is not None
        old, new = int(head["old"] or 1), int(head["new"] or 1)
        if head["where"] and (where := SYMBOL.match(head["where"])):
            self._add(file, "touches", where["name"], self._place)
        self._step()
        removed: dict[str, tuple[str, int]] = {}
        while old or new:
            if self._at >= len(self._lines):
                raise _Malformed
            line = self._lines[self._at]
            sign = line[:1] or " "  # mail programs take the blank of an empty line away
            if sign == "\\":
                self._step()
                continue
            old -= sign in " -"
            new -= sign in " +"
            if sign not in " +-" or old < 0 or new < 0:
                raise _Malformed
            file.added += sign == "+"
            file.removed += sign == "-"
            self._line(file, sign, line[1:], removed)
            self._step()
        if self._at < len(self._lines) and self._lines[self._at].startswith("\\"):
            self._step()
        if self._at < len(self._lines) and _MORE.match(self._lines[self._at]):
            raise _Malformed
        file.end = max(file.end, self._place - 1)

    def _line(self, file: File, sign: str, line: str, removed: dict[str, tuple[str, int]]) -> None:
        """Read a line of a hunk; removed has the settings taken away so far."""
        if sign == " ":
            return
        if symbol := SYMBOL.match(line):
            self._add(file, "adds" if sign == "+" else "removes", symbol["name"], self._place)
        setting = SETTING.fullmatch(line) if len(line) <= MAX_NAME else None
        if setting is None:
            return
        name, value = setting["name"], setting["value"]
        if sign == "-":
            removed[name] = (value, self._place)
        elif name in removed and removed[name][0] != value:
            self._add(file, f"version {name}", value, removed[name][1])

    def _add(self, file: File, predicate: str, value: str, start: int) -> None:
        if len(value) <= MAX_NAME:
            file.notes.append((predicate, value, start, self._place + len(self._lines[self._at])))
