"""Guess the format of a file, so that an error can name the command that would have worked."""

from __future__ import annotations

import os
import re

from remem.hooks.sources import _json
from remem.hooks.sources._json import Json

_HEAD_B = 64 * 1024
_LINES = 20  # lines looked at before giving up

_CODEX_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_CLAUDE_TYPES = ("user", "assistant", "summary", "system", "file-history-snapshot")
_CLAUDE_KEYS = ("uuid", "sessionId", "leafUuid", "message", "messageId")
_MARKDOWN = re.compile(r"\A(?:---\n(?:.*\n)*?---\n|#{1,6} \S)|^(?:#{1,6} \S|```)", re.MULTILINE)
_HISTORIES = (
    ("zsh-history", re.compile(r"\A: \d{9,}:\d+;")),
    ("bash-history", re.compile(r"\A#\d{9,}\n")),
    ("fish-history", re.compile(r"\A- cmd: .*\n  when: \d")),
)
_KEYS = (
    ("claude-code", ("loglines",)),
    ("chatgpt", ("mapping", "current_node")),
    ("chatgpt", ("polylogue_capture_kind",)),
    ("gemini", ("sessionId", "messages")),
    ("gemini", ("sessionId", "projectHash")),
    ("claude-code", ("parentUuid", "sessionId")),
    ("codex", ("payload", "response_item")),
)


def detect(path: str) -> str | None:
    """Guess the format of a file or folder.

    Args:
        path: what is to be imported.

    Returns:
        The name of a format, or None if nothing speaks for any.
    """
    if os.path.isdir(path):
        return _detect_folder(path)
    try:
        with open(path, "rb") as stream:
            head = stream.read(_HEAD_B).removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return None
    if head.startswith(b"PK\x03\x04"):
        return "chatgpt" if b"conversations" in head or path.endswith(".zip") else None
    if head.startswith(b"SQLite format 3\0"):
        return "atuin" if b"CREATE TABLE history" in head else None
    if b"\0" in head:
        return None
    found = _detect_json(head)
    if found is not None or head.lstrip()[:1] in (b"{", b"["):
        return found
    return _detect_text(head, path)


def _detect_folder(path: str) -> str | None:
    if os.path.exists(os.path.join(path, ".git")):
        return "git"
    bare = all(os.path.exists(os.path.join(path, name)) for name in ("HEAD", "objects", "refs"))
    if bare:
        return "git"
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            found = detect(os.path.join(folder, name))
            if found is not None:
                return found
    return None


def _detect_json(head: bytes) -> str | None:
    broken = 0
    for line in filter(None, head.splitlines()[:_LINES]):
        try:
            value = _json.decode(line, repair=True)
        except ValueError:
            broken += 1
            if broken > 1:
                break  # an example in a text, at best
            continue
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, dict) and (found := _of_object(value)) is not None:
            return found
    # One object over many lines, perhaps longer than what was read: go by the keys in sight.
    if head.lstrip()[:1] in (b"{", b"["):
        for name, keys in _KEYS:
            if all(f'"{key}"'.encode() in head for key in keys):
                return name
        if head.lstrip()[:1] == b"[" and b'"text"' in head:
            return "jsonl"
    return None


def _of_object(value: Json) -> str | None:
    kind = value.get("type")
    if kind in _CODEX_TYPES and "payload" in value:
        return "codex"
    if "record_type" in value:
        return "codex"
    if "messageId" in value and isinstance(value.get("message"), str):
        return "gemini"
    if kind in _CLAUDE_TYPES and any(key in value for key in _CLAUDE_KEYS):
        return "claude-code"
    for name, keys in _KEYS:
        if all(key in value for key in keys):
            return name
    return "jsonl" if isinstance(value.get("text"), str) else None


def _detect_text(head: bytes, path: str) -> str | None:
    if path.endswith((".md", ".markdown")):
        return "markdown"
    if len(head) == _HEAD_B:
        head = head[: head.rfind(b"\n") + 1]  # the cut may go through a character
    try:
        text = head.decode()
    except UnicodeDecodeError:
        return None
    for name, pattern in _HISTORIES:
        if pattern.match(text):
            return name
    if not text.strip():
        return None
    return "markdown" if _MARKDOWN.match(text) else "text"
