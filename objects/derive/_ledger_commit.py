"""Commits, tags and commands as claims: files, reverts, versions, exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from remem.objects.derive._ledger_diff import diff_claims
from remem.objects.derive.claim import Claim
from remem.objects.model import Observation

MAX_COMMAND = 200  # code points of a command that stand in a claim

_LISTED = re.compile(r"(?P<status>[ACDMRT]) (?P<path>.+?)(?: \+\d+ -\d+)?")
_REVERTS = re.compile(r"\bThis reverts commit (?P<sha>[0-9a-f]{7,64})\b")
_SHA = re.compile(r"[0-9a-f]{7,64}")
_VERSION = re.compile(r"v?\d+(?:\.\d+)+(?:[-.+]?(?:alpha|beta|a|b|rc|dev|post)\.?\d*)*")
_DONE = {
    "A": "adds",
    "C": "copies",
    "D": "deletes",
    "M": "changes",
    "R": "renames",
    "T": "changes",
}


def commit_claims(observation: Observation) -> Iterator[Claim]:
    """Derive the claims of a commit: its message, the list of its files, a diff if there is one.

    The list is the last paragraph, one file a line ("M path +1 -2"), all of its lines in that form.
    """
    text = observation.text
    who = _commit_of(observation)
    if not who:
        return
    end = len(text) if (first := text.find("\n")) < 0 else first
    for tag in _tags(observation):
        yield Claim("event", f"{who} is tagged {tag}", who, "tagged", tag, 0, end)
    for found in _REVERTS.finditer(text):
        sha = found["sha"]
        yield Claim("event", f"{who} reverts {sha}", who, "reverts", sha, *found.span())
    for status, path, start, stop in _listed(text):
        line = f"{who} {_DONE[status]} {path}"
        yield Claim("event", line, who, _DONE[status], path, start, stop)
    if "\n@@ -" in text or "diff --git " in text:
        yield from diff_claims(text)


def tag_claims(observation: Observation) -> Iterator[Claim]:
    """Derive which commit a tag names; a tag that was moved names another one from then on."""
    tag = observation.meta.get("tag")
    who = _commit_of(observation)
    if not isinstance(tag, str) or not tag or not who:
        return
    end = len(observation.text) if (first := observation.text.find("\n")) < 0 else first
    line = f"tag {tag} is commit {who}"
    yield Claim("event", line, f"tag {tag}", "commit", who, 0, end, single=True)


def exit_claims(observation: Observation) -> Iterator[Claim]:
    """Derive the exit code of a command; the last one of the same command is the current one."""
    code = observation.meta.get("exit")
    command = observation.text.strip().split("\n", 1)[0]
    if type(code) is not int or not 0 <= code <= 255 or not command:
        return
    start = observation.text.index(command)
    shown = command if len(command) <= MAX_COMMAND else command[: MAX_COMMAND - 1] + "\u2026"
    yield Claim(
        "event",
        f"{shown} exited with {code}",
        shown,
        "exit_code",
        str(code),
        start,
        start + len(command),
        single=True,
    )


def _commit_of(observation: Observation) -> str:
    """Return the commit's name, shortened, or "" if it has none."""
    source = observation.source
    for name in (observation.meta.get("commit"), source.id if source is not None else ""):
        if isinstance(name, str) and _SHA.fullmatch(name):
            return name[:12]
    return ""


def _tags(observation: Observation) -> list[str]:
    refs = observation.meta.get("refs")
    if not isinstance(refs, list):
        return []
    return [ref for ref in refs if isinstance(ref, str) and _VERSION.fullmatch(ref)]


def _listed(text: str) -> list[tuple[str, str, int, int]]:
    """Find the list of files at the end of a commit's text."""
    begin = text.rfind("\n\n")
    if begin < 0:
        return []
    found = []
    at = begin + 2
    for line in text[at:].rstrip("\n").split("\n"):
        listed = _LISTED.fullmatch(line)
        if listed is not None:
            found.append((listed["status"], listed["path"], at, at + len(line)))
        elif not (found and line.startswith("\u2026 and ")):
            return []
        at += len(line) + 1
    return found
