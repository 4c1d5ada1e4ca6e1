"""`.rememignore`: what is not to be remembered below a folder.

A line is a pattern of git's ignore files, matched against the folder in which a command ran, or,
after ``cmd:``, a pattern for the command itself; ``!`` takes back what an earlier line or a file
farther up said.  An empty file, like a line ``*``, ignores everything at and below its folder.

Source: gitignore(5), PATTERN FORMAT; remem-hook(1), IGNORING.
"""

from __future__ import annotations

import os
import re

NAME = ".rememignore"
COMMAND = "cmd:"
MAX_B = 1 << 16  # of a file; a larger one ignores everything


class Rule:
    """One line: takes back or not, for commands or folders, and its pattern."""

    __slots__ = ("back", "command", "pattern")

    def __init__(self, back: bool, command: bool, pattern: re.Pattern[str]) -> None:
        """See the class."""
        self.back = back
        self.command = command
        self.pattern = pattern


class Ignore:
    """The ignore files of this machine, each read once."""

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._files: dict[str, list[Rule] | None] = {}
        self._folders: dict[str, tuple[bool, list[Rule]]] = {}

    def folder(self, path: str) -> bool:
        """Whether nothing is to be kept of what happens in a folder."""
        return self.command(path, "")

    def command(self, path: str, command: str) -> bool:
        """Whether a command that ran in a folder is not to be kept.

        Args:
            path: the folder, absolute; it may be gone.
            command: the command line, or "" for anything else that happened there.
        """
        found = self._folders.get(path)
        if found is None:
            found = self._folders[path] = self._look(path)
        ignored, commands = found
        text = command.strip()
        if ignored or not commands or not text:
            return ignored
        for rule in commands:
            if rule.pattern.fullmatch(text):
                ignored = not rule.back
        return ignored

    def _look(self, path: str) -> tuple[bool, list[Rule]]:
        """Whether a folder is ignored, and the rules for commands in it."""
        path = os.path.normpath(path)
        above = [path]
        while os.path.dirname(above[-1]) != above[-1]:
            above.append(os.path.dirname(above[-1]))
        above.reverse()
        files = [(top, rules) for top in above if (rules := self._of(top)) is not None]
        if not files:
            return False, []
        commands = [rule for _, rules in files for rule in rules if rule.command]
        # As git does: what lies below an ignored folder cannot be taken back.
        ignored = not all(rules for _, rules in files)
        ignored = ignored or any(_last(files, below) for below in above)
        return ignored or _last(files, path, own=True), commands

    def _of(self, folder: str) -> list[Rule] | None:
        """Rules of the file in a folder, as `read` gives them."""
        if folder not in self._files:
            self._files[folder] = read(os.path.join(folder, NAME))
        return self._files[folder]


def _last(files: list[tuple[str, list[Rule]]], path: str, *, own: bool = False) -> bool:
    """What the last rule that fits a folder says of it.

    Args:
        files: folders of ignore files, and their rules.
        path: the folder.
        own: ask only the file in the folder itself, which a line "*" speaks of as well.
    """
    ignored = False
    for top, rules in files:
        if own != (top == path):
            continue
        inside = os.path.relpath(path, top)
        if not own and inside.split(os.sep, 1)[0] == os.pardir:
            continue
        name = "" if own else inside.replace(os.sep, "/")
        for rule in rules:
            if not rule.command and rule.pattern.fullmatch(name):
                ignored = not rule.back
    return ignored


def read(path: str) -> list[Rule] | None:
    """Rules of a file; None where there is none or it has no pattern, [] if it ignores all."""
    try:
        if not os.path.isfile(path):
            return None
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(MAX_B + 1)
    except OSError:
        return []  # it is there and cannot be read: the careful reading
    if not text.strip() or len(text) > MAX_B:
        return []
    return [rule for line in text.split("\n") if (rule := parse(line)) is not None] or None


def parse(line: str) -> Rule | None:
    """A line as a rule; None for a comment and an empty one."""
    line = line.rstrip("\r")
    if not line.strip() or line.startswith("#"):
        return None
    back = line.startswith("!")
    if back:
        line = line[1:]
    if line.startswith(COMMAND):
        return Rule(back, True, re.compile(_wild(line[len(COMMAND) :].strip()), re.DOTALL))
    line = _trimmed(line)
    if line.startswith(("\\#", "\\!")):
        line = line[1:]
    if line in ("*", "*/", "**", "/**", "**/"):
        return Rule(back, False, re.compile(".*", re.DOTALL))
    line = line.removesuffix("/")
    anchored = "/" in line
    return Rule(back, False, re.compile(_glob(line.lstrip("/"), anchored), re.DOTALL))


def _trimmed(line: str) -> str:
    """Without trailing blanks, unless a backslash keeps one."""
    bare = line.rstrip(" \t")
    if bare.endswith("\\") and len(bare) < len(line):
        bare += line[len(bare)]
    return bare


def _wild(pattern: str) -> str:
    """A pattern for commands as an expression: "*" stands for any text, "?" for a character."""
    pieces: list[list[str]] = [[]]
    for char in pattern:
        if char == "*":
            pieces.append([])
        else:
            pieces[-1].append("." if char == "?" else re.escape(char))
    return _starred(["".join(piece) for piece in pieces], ".")


def _starred(pieces: list[str], any_char: str) -> str:
    """Pieces with any text between them.

    A repository may come with any pattern, so no pattern may take long: what stands between two
    stars is looked for once, at its first place, and never again (an atomic group).
    """
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(f"(?>{any_char}*?{piece})" for piece in pieces[1:-1] if piece)
    return f"{pieces[0]}{middle}{any_char}*{pieces[-1]}"


def _glob(pattern: str, anchored: bool) -> str:
    """A pattern of gitignore(5) as an expression over a path with slashes.

    Args:
        pattern: without the slashes at its ends.
        anchored: it begins at the folder of its file; otherwise anywhere below.
    """
    runs: list[list[str]] = [[]] if anchored else [[], []]  # of names, between "**"
    names = _names(pattern)
    for number, name in enumerate(names):
        if name is not None:
            runs[-1].append(name)
        elif number == len(names) - 1:
            return f"{_runs(runs)}/.+" if runs[-1] else _runs([*runs[:-1], [".+"]])
        elif runs[-1] or len(runs) == 1:
            runs.append([])
    return _runs(runs)


def _runs(runs: list[list[str]]) -> str:
    """Runs of names with any number of folders between them; the first one stands at the start."""
    first, *more = ["/".join(run) for run in runs]
    if not more:
        return first
    middle = "".join(f"(?>(?:[^/]+/)*?{run}/)" for run in more[:-1])
    return (f"{first}/" if first else "") + f"{middle}(?:.*/)?{more[-1]}"


def _names(pattern: str) -> list[str | None]:
    """The names of a pattern as expressions, None for "**"."""
    found: list[str | None] = []
    pieces, at, begin = [""], 0, 0
    while at <= len(pattern):
        char = pattern[at : at + 1]
        if char in ("", "/"):
            whole = _starred(pieces, "[^/]")
            found.append(None if pattern[begin:at] == "**" else whole)
            pieces, begin = [""], at + 1
        elif char == "*":
            pieces.append("")
        elif char == "?":
            pieces[-1] += "[^/]"
        elif char == "[":
            piece, at = _set(pattern, at)
            pieces[-1] += piece
        elif char == "\\" and at + 1 < len(pattern):
            at += 1
            pieces[-1] += re.escape(pattern[at])
        else:
            pieces[-1] += re.escape(char)
        at += 1
    return found


def _set(pattern: str, at: int) -> tuple[str, int]:
    """The bracket expression that begins at an offset, and the offset of its last character."""
    end = pattern.find("]", at + 2 if pattern[at + 1 : at + 2] in ("!", "^") else at + 1)
    if end == at + 1 or (end == at + 2 and pattern[at + 1] in "!^"):
        end = pattern.find("]", end + 1)  # a bracket that stands first is one of the set
    if end < 0:
        return re.escape("["), at
    inside = pattern[at + 1 : end]
    negated = inside[:1] in ("!", "^")
    if negated:
        inside = inside[1:]
    inside = inside.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    try:
        piece = f"(?!/)[{'^' if negated else ''}{inside}]"
        re.compile(piece)
    except re.error:
        return re.escape(pattern[at : end + 1]), end
    return piece, end
