"""Sessions of Claude Code: JSON lines, each an entry of a tree of messages.

Unit: a content block of an entry ("file.jsonl:12#1"), or the entry where it has no blocks.  Also
read: one object with the entries in `loglines`.

* A tool's result arrives inside of a message of role "user"; it becomes role and origin "tool",
  under the name of the tool whose call it answers.
* A call and its result are named by the id of the call, not by their entry: the hook that told of
  them first (`remem.hooks.claude`) does not know the entry.
* Only what the person typed is role "user" and origin "owner": no reminders, command echoes,
  notices, or prompts that the agent wrote for a helper of its own (a side chain).
* Thinking and bookkeeping are skipped.
* A prompt that was put in place of an earlier one (both hang on the same parent) is kept beside it
  and names it in `meta` ("instead_of").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from remem.hooks.sources import _json, _wrappers
from remem.hooks.sources._json import Json
from remem.hooks.sources._record import LIMIT_B, Record, admit
from remem.hooks.sources._times import stamp
from remem.hooks.sources._tools import render_call, render_result
from remem.objects.model import Incoming, Rejected, Skipped

AGENT = "claude-code"
SIDECHAIN = "claude-code/sidechain"

_WRAPPED = re.compile(rb'\s*\{\s*"loglines"\s*:')
_THINKING = ("thinking", "redacted_thinking")
_SYNTHETIC = "<synthetic>"
_SHELL = "shell"
_REMINDERS = re.compile(
    r"(?:\s*<system-reminder>(?:(?!</?system-reminder>)[\s\S])*</system-reminder>)+\s*\Z"
)


def call_id(call: str) -> str:
    """The id of a call of a tool, by which its hook knows it too."""
    return f"{call}#call"


def result_id(call: str) -> str:
    """The id of the result of a call, by which its hook knows it too."""
    return f"{call}#result"


def read(
    stream: BinaryIO, name: str, *, since: int | None = None, limit_b: int = LIMIT_B
) -> Iterator[Record]:
    """Read a session.

    Args:
        stream: the bytes.
        name: what to call the stream in places.
        since: microseconds UTC; older records are skipped.
        limit_b: bytes that one line may have.

    Yields:
        One record for each unit, in their order.
    """
    session = _Session(since, limit_b)
    head = _json.peek(stream)
    if _WRAPPED.match(head):
        yield from _read_wrapped(session, head, stream, name, limit_b)
        return
    for where, unit in _json.units(stream, name, limit_b, head=head):
        if not isinstance(unit, bytes):
            yield unit
            continue
        try:
            entry = _json.decode(unit, repair=True)
        except ValueError as error:
            yield Rejected(where, str(error))
            continue
        yield from session.records(entry, where)


def _read_wrapped(
    session: _Session, head: bytes, stream: BinaryIO, name: str, limit_b: int
) -> Iterator[Record]:
    raw = _json.document(head, stream, limit_b)
    if raw is None:
        yield _json.too_long(name, "document", limit_b)
        return
    try:
        entries = _json.list_at(_json.decode(raw, repair=True), "loglines")
    except ValueError as error:
        yield Rejected(name, str(error))
        return
    for index, entry in enumerate(entries):
        yield from session.records(entry, f"{name}[{index}]")


class _Session:
    """What must be remembered between the lines of one file."""

    def __init__(self, since: int | None, limit_b: int) -> None:
        self.since = since
        self.limit_b = limit_b
        self.tools: dict[str, str] = {}  # tool of each call, by the id of the call
        self.prompts: dict[str, str] = {}  # last prompt of the user, by its parent
        self.last: dict[str, str] = {}  # last entry of each session
        self.session: str | None = None

    def records(self, entry: object, where: str) -> Iterator[Record]:
        """Give the records of one entry."""
        if not isinstance(entry, dict):
            yield Rejected(where, f"expected an object, found {_json.kind_of(entry)}")
            return
        kind = entry.get("type")
        if kind == "summary":
            yield self._summary(entry, where)
        elif kind in ("user", "assistant"):
            self._place(entry)
            yield from self._message(entry, where, str(kind))
        elif kind == "system":
            self._place(entry)
            yield self._system(entry, where)
        elif isinstance(kind, str):
            yield Skipped(where, f"entry of type '{kind[:40]}'")
        else:
            yield Rejected(where, "no 'type': not an entry of a session")

    def _place(self, entry: Json) -> None:
        session = _json.text_at(entry, "sessionId")
        if not session.strip():
            return
        self.session = session
        if uuid := _json.text_at(entry, "uuid"):
            self.last[session] = uuid

    def _summary(self, entry: Json, where: str) -> Record:
        text = _json.text_at(entry, "summary")
        if not text.strip():
            return Rejected(where, "summary without text")
        leaf = _json.text_at(entry, "leafUuid")
        # A file may begin with summaries of other sessions: only the leaf tells which one it is.
        named = _json.text_at(entry, "sessionId")
        session = named or next((of for of, last in self.last.items() if last == leaf), None)
        item = self._item(entry, where, text, 0, session=session)
        item.role, item.origin, item.kind = "assistant", "agent", "summary"
        if leaf:
            item.source_id = item.source_id or f"{leaf}#summary"
            item.meta["leaf"] = leaf
        return admit(item, self.since, self.limit_b)

    def _system(self, entry: Json, where: str) -> Record:
        subtype = _json.text_at(entry, "subtype")
        if subtype == "local_command":
            part = _wrappers.unwrap(_json.text_at(entry, "content"))
            if part.kind in (_wrappers.COMMAND, _wrappers.OUTPUT):
                return self._part(self._item(entry, where, part.text, 0), part)
        return Skipped(where, f"system entry '{subtype[:40]}'" if subtype else "system entry")

    def _message(self, entry: Json, where: str, kind: str) -> Iterator[Record]:
        message = entry.get("message")
        if not isinstance(message, dict):
            yield Rejected(where, f"'message' is {_json.kind_of(message)}, not an object")
            return
        content = message.get("content")
        if isinstance(content, str):
            yield self._block(entry, message, {"type": "text", "text": content}, 0, where, kind)
            return
        if not isinstance(content, list):
            yield Rejected(where, f"'message.content' is {_json.kind_of(content)}, not blocks")
            return
        if not content:
            yield Skipped(where, "message without content")
        for index, block in enumerate(content):
            yield self._block(entry, message, block, index, f"{where}#{index}", kind)

    def _block(
        self, entry: Json, message: Json, block: object, index: int, where: str, kind: str
    ) -> Record:
        if not isinstance(block, dict):
            return Rejected(where, f"block is {_json.kind_of(block)}, not an object")
        sort = _json.text_at(block, "type")
        if sort in _THINKING:
            return Skipped(where, "thinking")
        if sort.endswith("tool_result"):
            return self._tool_result(entry, block, index, where)
        if sort.endswith("tool_use"):
            return self._tool_use(entry, message, block, index, where)
        if sort != "text":
            named = f"{sort[:40]} block" if sort else "block without type"
            return Skipped(where, named)
        text = block.get("text")
        if not isinstance(text, str):
            return Rejected(where, f"'text' of the block is {_json.kind_of(text)}, not a text")
        if not text.strip():
            return Skipped(where, "empty message")
        item = self._item(entry, where, text, index)
        if kind == "assistant":
            return self._said_by_agent(entry, message, item)
        return self._user_turn(entry, item)

    def _said_by_agent(self, entry: Json, message: Json, item: Incoming) -> Record:
        model = _json.text_at(message, "model")
        if model == _SYNTHETIC or entry.get("isApiErrorMessage"):
            return Skipped(item.where, "notice of the agent")
        item.role, item.origin, item.kind = "assistant", "agent", "turn"
        if model:
            item.meta["model"] = model
        return admit(item, self.since, self.limit_b)

    def _user_turn(self, entry: Json, item: Incoming) -> Record:
        if entry.get("isMeta"):
            return Skipped(item.where, "meta entry of the agent")
        if entry.get("isCompactSummary"):
            return self._part(item, _wrappers.Part(_wrappers.SUMMARY, item.text))
        if entry.get("isSidechain"):
            # The other side of a side chain is the agent that started it, not a person.
            item.role, item.origin, item.kind = "assistant", "agent", "prompt"
            return admit(item, self.since, self.limit_b)
        source = _json.text_at(entry.get("origin"), "kind")
        if source not in ("", "human"):
            item.role, item.origin, item.kind, item.tool = "tool", "tool", "notice", source
            return admit(item, self.since, self.limit_b)
        part = _wrappers.unwrap(item.text)
        if part.kind == _wrappers.WORDS:
            self._follow(entry, item)
        return self._part(item, part)

    def _follow(self, entry: Json, item: Incoming) -> None:
        uuid, parent = _json.text_at(entry, "uuid"), _json.text_at(entry, "parentUuid")
        if not uuid or not parent:
            return
        earlier = self.prompts.get(parent, uuid)
        if earlier != uuid:
            item.meta["instead_of"] = earlier
        self.prompts[parent] = uuid

    def _part(self, item: Incoming, part: _wrappers.Part) -> Record:
        if part.kind == _wrappers.NOTHING:
            return Skipped(item.where, part.text)
        item.text = part.text
        if part.left_out:
            item.meta["left_out"] = list(part.left_out)
        if part.kind == _wrappers.WORDS:
            item.role, item.origin, item.kind = "user", "owner", "turn"
        elif part.kind == _wrappers.SUMMARY:
            item.role, item.origin, item.kind = "assistant", "agent", "summary"
        else:
            kind = "command" if part.kind == _wrappers.COMMAND else "tool_result"
            slash = kind == "command" and part.text.startswith("/")
            item.role, item.origin, item.kind = "tool", "tool", kind
            item.tool = AGENT if slash else _SHELL
        return admit(item, self.since, self.limit_b)

    def _tool_use(self, entry: Json, message: Json, block: Json, index: int, where: str) -> Record:
        tool, call = _json.text_at(block, "name"), _json.text_at(block, "id")
        if call:
            self.tools[call] = tool
        item = self._item(entry, where, render_call(tool or "tool", block.get("input")), index)
        item.role, item.origin, item.kind, item.tool = "assistant", "agent", "tool_call", tool
        if model := _json.text_at(message, "model"):
            item.meta["model"] = model
        if call:
            item.meta["call"] = call
            item.source_id = call_id(call)
        return admit(item, self.since, self.limit_b)

    def _tool_result(self, entry: Json, block: Json, index: int, where: str) -> Record:
        text = render_result(block.get("content"))
        if not text.strip():
            return Skipped(where, "empty tool result")
        told = text
        if text.rstrip().endswith("</system-reminder>"):  # the agent's, behind what the tool gave
            told = _REMINDERS.sub("", text)
        left_out = bool(told.strip()) and len(told) < len(text)
        item = self._item(entry, where, told if left_out else text, index)
        if left_out:
            item.meta["left_out"] = ["system-reminder"]
        call = _json.text_at(block, "tool_use_id")
        item.role, item.origin, item.kind = "tool", "tool", "tool_result"
        item.tool = self.tools.get(call, "")
        if call:
            item.meta["call"] = call
            item.source_id = result_id(call)
        if block.get("is_error"):
            item.meta["error"] = True
        return admit(item, self.since, self.limit_b)

    def _item(
        self, entry: Json, where: str, text: str, index: int, *, session: str | None = None
    ) -> Incoming:
        if entry.get("type") != "summary":
            session = _json.text_at(entry, "sessionId") or self.session
        session = session if session and session.strip() else None
        uuid = _json.text_at(entry, "uuid")
        meta: Json = {}
        for key, shown in (("cwd", "cwd"), ("gitBranch", "git_branch"), ("parentUuid", "parent")):
            if value := _json.text_at(entry, key):
                meta[shown] = value
        item = Incoming(
            text=text,
            agent=SIDECHAIN if entry.get("isSidechain") else AGENT,
            session=session,
            source_uri=f"{AGENT}:{session}" if session else AGENT,
            source_id=f"{uuid}#{index}" if uuid else "",
            meta=meta,
            where=where,
        )
        stamp(item, entry.get("timestamp"))
        return item
