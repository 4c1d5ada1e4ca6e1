"""Exports of ChatGPT: one conversation, an array of them, or what a browser add-on captured.

Unit: a message of a conversation ("file.json[2]#message-id"); a conversation that cannot be read or
has no messages is one unit.  The array is never held whole, a conversation is.

A conversation is a tree.  The branch that ends in `current_node` is what the person saw last; the
messages of answers that were generated anew and of prompts that were changed are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, cast

from remem.hooks.sources import _json
from remem.hooks.sources._json import Json
from remem.hooks.sources._record import DOCUMENT_LIMITS, LIMIT_B, Record, admit
from remem.hooks.sources._times import stamp
from remem.hooks.sources._tools import render_call
from remem.objects.model import Incoming, Rejected, Skipped

AGENT = "chatgpt"

_MEMBER = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
_THINKING = ("thoughts", "reasoning_recap")
_CONTEXT = ("user_editable_context", "model_editable_context")
_MEDIA = re.compile(r"(image|audio|video|file)")
_OTHER_BRANCH = "regenerated branch"


def read(
    stream: BinaryIO, name: str, *, since: int | None = None, limit_b: int = LIMIT_B
) -> Iterator[Record]:
    """Read conversations.

    Args:
        stream: the bytes of `conversations.json`, of one conversation, or of the export's zip file
            (which must be seekable).
        name: what to call the stream in places.
        since: microseconds UTC; older records are skipped.
        limit_b: bytes that one text may have; a conversation may have four times as many.

    Yields:
        One record for each unit; of a conversation, the branch that counts comes first.
    """
    head = _json.peek(stream)
    if head.startswith(b"PK\x03\x04"):
        yield from _read_zip(stream, name, since, limit_b)
        return
    for record in _records(head, stream, name, limit_b):
        yield admit(record, since, limit_b) if isinstance(record, Incoming) else record


def _read_zip(stream: BinaryIO, name: str, since: int | None, limit_b: int) -> Iterator[Record]:
    import zipfile

    try:
        with zipfile.ZipFile(stream) as archive:
            members = sorted(filter(_MEMBER.fullmatch, archive.namelist()))
            if not members:
                yield Rejected(name, "no conversations.json in the archive")
            for member in members:
                with archive.open(member) as opened:
                    inner = cast("BinaryIO", opened)
                    head = _json.peek(inner)
                    for record in _records(head, inner, f"{name}/{member}", limit_b):
                        if isinstance(record, Incoming):
                            yield admit(record, since, limit_b)
                        else:
                            yield record
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError) as error:
        yield Rejected(name, f"not a readable zip file: {error}")


def _records(head: bytes, stream: BinaryIO, name: str, limit_b: int) -> Iterator[Record]:
    if head.lstrip()[:1] == b"[":
        most = DOCUMENT_LIMITS * limit_b
        for where, unit in _json.units(stream, name, most, head=head):
            if isinstance(unit, bytes):
                yield from _decoded(unit, where)
            else:
                yield unit
        return
    raw = _json.document(head, stream, limit_b)
    if raw is None:
        yield _json.too_long(name, "document", limit_b)
    else:
        yield from _decoded(raw, name)


def _decoded(raw: bytes, where: str) -> Iterator[Record]:
    try:
        found = _json.decode(raw, repair=True)
    except ValueError as error:
        yield Rejected(where, str(error))
        return
    if not isinstance(found, dict):
        yield Rejected(where, f"expected an object, found {_json.kind_of(found)}")
        return
    native = _json.object_at(found, "raw_provider_payload")
    if "mapping" in native:
        found = native  # the page's own data says more than what was read off the screen
    if isinstance(found.get("mapping"), dict):
        yield from _Conversation(found, where).records()
    elif isinstance(_json.object_at(found, "session").get("turns"), list):
        yield from _captured(_json.object_at(found, "session"), where)
    else:
        yield Rejected(where, "no 'mapping': not a conversation")


class _Conversation:
    """One conversation, as the export stores it."""

    def __init__(self, found: Json, where: str) -> None:
        self.where = where
        self.mapping = _json.object_at(found, "mapping")
        self.current = _json.text_at(found, "current_node")
        self.id = _json.text_at(found, "conversation_id") or _json.text_at(found, "id")
        self.title = _json.text_at(found, "title")

    def records(self) -> Iterator[Record]:
        """Give the messages of the branch that counts, then the others as skipped."""
        path = self._branch()
        count = 0
        for node in path:
            message = _json.object_at(self.mapping, node).get("message")
            if message is not None:
                count += 1
                yield self._record(message, node)
        on_path = set(path)
        for node, entry in self.mapping.items():
            if node in on_path:
                continue
            where = f"{self.where}#{node}"
            if not isinstance(entry, dict):
                count += 1
                yield Rejected(where, f"expected an object, found {_json.kind_of(entry)}")
            elif entry.get("message") is not None:
                count += 1
                yield Skipped(where, _OTHER_BRANCH)
        if not count:
            yield Skipped(self.where, "conversation without messages")

    def _branch(self) -> list[str]:
        node = self.current if self.current in self.mapping else self._last_leaf()
        path: list[str] = []
        seen: set[str] = set()
        while node and node not in seen and isinstance(self.mapping.get(node), dict):
            seen.add(node)
            path.append(node)
            node = _json.text_at(self.mapping[node], "parent")
        path.reverse()
        return path

    def _last_leaf(self) -> str:
        # Without current_node, the newest leaf is taken for it.
        best, best_time = "", -1.0
        for node, entry in self.mapping.items():
            if not isinstance(entry, dict) or _json.list_at(entry, "children"):
                continue
            time = _json.object_at(entry, "message").get("create_time")
            when = float(time) if isinstance(time, int | float) else 0.0
            if when >= best_time:
                best, best_time = node, when
        return best

    def _record(self, message: object, node: str) -> Record:
        where = f"{self.where}#{node}"
        if not isinstance(message, dict):
            return Rejected(where, f"'message' is {_json.kind_of(message)}, not an object")
        content = message.get("content")
        if not isinstance(content, dict):
            return Rejected(where, f"'content' is {_json.kind_of(content)}, not an object")
        author = _json.object_at(message, "author")
        role = _json.text_at(author, "role")
        sort = _json.text_at(content, "content_type")
        if sort in _THINKING:
            return Skipped(where, "thinking")
        metadata = _json.object_at(message, "metadata")
        if sort not in _CONTEXT and metadata.get("is_visually_hidden_from_conversation"):
            return Skipped(where, "hidden message")
        text = _text(content)
        if not text.strip() or not _has_words(content):
            return Skipped(
                where, f"message without text ({sort[:40]})" if sort else "empty message"
            )
        item = self.item(message, node, text, where)
        if model := _json.text_at(metadata, "model_slug"):
            item.meta["model"] = model
        if names := _names(metadata):
            item.meta["attachments"] = names
        return self.label(item, role, sort, author, _json.text_at(message, "recipient"), text)

    def label(
        self, item: Incoming, role: str, sort: str, author: Json, recipient: str, text: str
    ) -> Record:
        """Say whose words a record holds."""
        if sort in _CONTEXT or role == "system":
            # Written in the settings, or by the service: no turn of the conversation.
            item.role, item.origin, item.kind = "system", "agent", "context"
        elif role == "user":
            item.role, item.origin, item.kind = "user", "owner", "turn"
        elif role == "assistant" and recipient not in ("", "all"):
            item.role, item.origin, item.kind = "assistant", "agent", "tool_call"
            item.tool, item.text = recipient, _call(recipient, text)
        elif role == "assistant":
            item.role, item.origin, item.kind = "assistant", "agent", "turn"
        elif role == "tool":
            item.role, item.origin, item.kind = "tool", "tool", "tool_result"
            item.tool = _json.text_at(author, "name")
        else:
            return Rejected(item.where, f"message of unknown role '{role[:40]}'")
        return item

    def item(self, message: Json, node: str, text: str, where: str) -> Incoming:
        """Build the record of a message."""
        known = self.id if self.id.strip() else None
        item = Incoming(
            text=text,
            agent=AGENT,
            session=known,
            source_uri=f"{AGENT}:{known}" if known else AGENT,
            source_id=_json.text_at(message, "id") or (node if known else ""),
            meta={"title": self.title} if self.title else {},
            where=where,
        )
        stamp(item, message.get("create_time"))
        return item


def _captured(session: Json, where: str) -> Iterator[Record]:
    """Read turns that were taken off the page, where the page's own data is missing."""
    turns = _json.list_at(session, "turns")
    known = _json.text_at(session, "provider_session_id")
    shell = _Conversation({"id": known, "title": _json.text_at(session, "title")}, where)
    if not turns:
        yield Skipped(where, "conversation without messages")
    for index, turn in enumerate(turns):
        place = f"{where}#{index}"
        role, text = _json.text_at(turn, "role"), _json.text_at(turn, "text")
        if not isinstance(turn, dict):
            yield Rejected(place, f"expected an object, found {_json.kind_of(turn)}")
        elif not text.strip():
            yield Skipped(place, "empty message")
        else:
            message: Json = {
                "id": _json.text_at(turn, "provider_turn_id"),
                "create_time": turn.get("timestamp"),
            }
            item = shell.item(message, f"{known}#{index}", text, place)
            yield shell.label(item, role, "text", {}, "", text)


def _text(content: Json) -> str:
    """Gather what a message says; other media are named in brackets."""
    if _json.text_at(content, "content_type") == "user_editable_context":
        context = ("user_profile", "user_instructions")
        return "\n".join(filter(None, (_json.text_at(content, field) for field in context)))
    parts = content.get("parts")
    if not isinstance(parts, list):
        fields = ("text", "result", "model_set_context", "name")
        return next(filter(None, (_json.text_at(content, field) for field in fields)), "")
    return "\n".join(filter(None, (_part(part) for part in parts)))


def _has_words(content: Json) -> bool:
    parts = content.get("parts")
    if not isinstance(parts, list):
        return True
    return any(
        bool(part.strip() if isinstance(part, str) else _json.text_at(part, "text"))
        for part in parts
    )


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    if text := _json.text_at(part, "text"):
        return text
    sort = _json.text_at(part, "content_type")
    media = _MEDIA.search(sort)
    return f"[{media[1] if media else sort or 'attachment'}]"


def _call(recipient: str, text: str) -> str:
    try:
        given = _json.decode(text.encode())
    except ValueError:
        given = text
    return render_call(recipient, given if isinstance(given, dict) else text)


def _names(metadata: Json) -> list[str]:
    attachments = _json.list_at(metadata, "attachments")
    return [name for name in (_json.text_at(entry, "name") for entry in attachments) if name]
