"""Sessions of Codex: JSON lines of `{timestamp, type, payload}`, or of bare items (older files).

Unit: a line.

* A message stands in the file twice, as an item and as an event: the first of the two is taken, the
  second is skipped.
* The block about the environment that Codex puts into the user's first message is skipped, as are
  reasoning and bookkeeping.
* A call of a tool is the agent's; what the tool gave back is role and origin "tool".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from remem.hooks.sources import _json, _wrappers
from remem.hooks.sources._json import Json
from remem.hooks.sources._record import LIMIT_B, Record, admit
from remem.hooks.sources._times import stamp
from remem.hooks.sources._tools import command_text, render_call, render_result
from remem.objects.model import Incoming, Rejected, Skipped

AGENT = "codex"

_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
_MESSAGE_EVENTS = {"user_message": "user", "agent_message": "assistant"}
_TEXT_PARTS = ("input_text", "output_text", "text")
_SHELL = "shell"


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
        One record for each line, in their order.
    """
    session = _Session()
    for number, (where, unit) in enumerate(_json.units(stream, name, limit_b), 1):
        if not isinstance(unit, bytes):
            yield unit
            continue
        try:
            line = _json.decode(unit, repair=True)
        except ValueError as error:
            yield Rejected(where, str(error))
            continue
        record = session.record(line, where, number)
        yield admit(record, since, limit_b) if isinstance(record, Incoming) else record


class _Line(NamedTuple):
    line: Json
    payload: Json
    kind: str
    where: str
    number: int


class _Session:
    """What must be remembered between the lines of one file."""

    def __init__(self) -> None:
        self.id = ""
        self.meta: Json = {}
        self.tools: dict[str, str] = {}  # tool of each call, by the id of the call
        # Messages (by hash) that stand once so far, as which form; their repetition is due.
        self.once: dict[str, Counter[int]] = {"item": Counter(), "event": Counter()}

    def record(self, line: object, where: str, number: int) -> Record:
        """Give the record of one line."""
        if not isinstance(line, dict):
            return Rejected(where, f"expected an object, found {_json.kind_of(line)}")
        payload = line.get("payload", line)
        sort = line.get("type")
        if not isinstance(payload, dict):
            return Rejected(where, f"'payload' is {_json.kind_of(payload)}, not an object")
        if sort == "session_meta" or (sort is None and "id" in line and "timestamp" in line):
            self._begin(payload)
            return Skipped(where, "description of the session")
        if sort is None and "record_type" in line:
            return Skipped(where, "state of the agent")
        if not isinstance(sort, str):
            return Rejected(where, "no 'type': not a line of a session")
        if sort == "turn_context":
            self._note(payload, "model", "cwd")
            return Skipped(where, "context of the turn")
        at = _Line(line, payload, _json.text_at(payload, "type"), where, number)
        if sort == "compacted":
            return self._summary(at)
        if sort == "event_msg":
            return self._event(at)
        if sort == "response_item" or "payload" not in line:
            return self._item(at)
        return Skipped(where, f"line of type '{sort[:40]}'")

    def _begin(self, payload: Json) -> None:
        # A session that goes on from another repeats the other's description: the first counts.
        self.id = self.id or _json.text_at(payload, "id") or _json.text_at(payload, "session_id")
        self._note(payload, "cwd", "model")
        if branch := _json.text_at(payload.get("git"), "branch"):
            self.meta["git_branch"] = branch

    def _note(self, payload: Json, *keys: str) -> None:
        for key in keys:
            if value := _json.text_at(payload, key):
                self.meta[key] = value

    def _event(self, at: _Line) -> Record:
        role = _MESSAGE_EVENTS.get(at.kind)
        if role is None:
            return Skipped(at.where, f"event '{at.kind[:40]}'" if at.kind else "event without type")
        text = at.payload.get("message")
        if not isinstance(text, str):
            return Rejected(at.where, f"'message' is {_json.kind_of(text)}, not a text")
        return self._message(at, [text], role, "event")

    def _item(self, at: _Line) -> Record:
        if at.kind == "message":
            role = _json.text_at(at.payload, "role")
            if role not in ("user", "assistant"):
                return Skipped(at.where, f"message of role '{role[:40]}'")
            texts = _texts(at.payload.get("content"))
            if texts is None:
                found = _json.kind_of(at.payload.get("content"))
                return Rejected(at.where, f"'content' is {found}, not text parts")
            return self._message(at, texts, role, "item")
        if at.kind in _CALLS:
            return self._call(at)
        if at.kind in _OUTPUTS:
            return self._output(at)
        return Skipped(at.where, f"item '{at.kind[:40]}'" if at.kind else "item without type")

    def _message(self, at: _Line, texts: list[str], role: str, form: str) -> Record:
        part = _wrappers.Part(_wrappers.WORDS, "\n".join(texts))
        if role == "user":
            part = _users(texts)
        if part.kind == _wrappers.NOTHING or not part.text.strip():
            return Skipped(at.where, part.text.strip() or "empty message")
        key = hash((role, part.text.strip()))
        other = "event" if form == "item" else "item"
        if self.once[other][key] > 0:
            self.once[other][key] -= 1
            return Skipped(at.where, f"repeats the {other}")
        self.once[form][key] += 1
        item = self._incoming(at, part.text)
        if part.left_out:
            item.meta["left_out"] = list(part.left_out)
        if part.kind == _wrappers.OUTPUT or part.kind == _wrappers.COMMAND:
            item.role, item.origin, item.kind, item.tool = "tool", "tool", "tool_result", _SHELL
        elif role == "user":
            item.role, item.origin, item.kind = "user", "owner", "turn"
        else:
            item.role, item.origin, item.kind = "assistant", "agent", "turn"
        return item

    def _call(self, at: _Line) -> Record:
        tool = _json.text_at(at.payload, "name") or at.kind.removesuffix("_call")
        call = _json.text_at(at.payload, "call_id")
        if call:
            self.tools[call] = tool
        item = self._incoming(at, _call_text(tool, at.payload))
        item.role, item.origin, item.kind, item.tool = "assistant", "agent", "tool_call", tool
        if call:
            item.meta["call"] = call
        return item

    def _output(self, at: _Line) -> Record:
        output = at.payload.get("output")
        given, status = output, None
        if isinstance(output, str) and output[:1] == "{":
            try:
                inner = _json.decode(output.encode())
            except ValueError:
                inner = None  # plain text that begins with a brace
            if isinstance(inner, dict) and "output" in inner:
                given = inner["output"]
                status = _json.object_at(inner, "metadata").get("exit_code")
        text = render_result(given)
        if not text.strip():
            return Skipped(at.where, "empty tool result")
        call = _json.text_at(at.payload, "call_id")
        item = self._incoming(at, text)
        item.role, item.origin, item.kind = "tool", "tool", "tool_result"
        item.tool = self.tools.get(call, "")
        if call:
            item.meta["call"] = call
        if isinstance(status, int) and not isinstance(status, bool):
            item.meta["exit_code"] = status
        return item

    def _summary(self, at: _Line) -> Record:
        text = _json.text_at(at.payload, "message")
        if not text.strip():
            return Skipped(at.where, "empty summary")
        item = self._incoming(at, text)
        item.role, item.origin, item.kind = "assistant", "agent", "summary"
        return item

    def _incoming(self, at: _Line, text: str) -> Incoming:
        session = self.id if self.id.strip() else None
        item = Incoming(
            text=text,
            agent=AGENT,
            session=session,
            source_uri=f"{AGENT}:{session}" if session else AGENT,
            source_id=f"{session}#{at.number}" if session else "",
            meta=dict(self.meta),
            where=at.where,
        )
        stamp(item, at.line.get("timestamp", at.payload.get("timestamp")))
        return item


def _texts(content: object) -> list[str] | None:
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return None
    return [
        _json.text_at(part, "text")
        for part in content
        if _json.text_at(part, "type") in _TEXT_PARTS
    ]


def _users(texts: list[str]) -> _wrappers.Part:
    """Find the user's words among the parts of a message; each part is judged by itself."""
    parts = [_wrappers.unwrap(text) for text in texts]
    words = [part for part in parts if part.kind == _wrappers.WORDS]
    if words:
        left_out = dict.fromkeys(name for part in parts for name in part.left_out)
        return _wrappers.Part(
            _wrappers.WORDS, "\n".join(part.text for part in words), tuple(left_out)
        )
    kept = [part for part in parts if part.kind != _wrappers.NOTHING]
    return (kept or parts or [_wrappers.Part(_wrappers.NOTHING, "message without text")])[0]


def _call_text(tool: str, payload: Json) -> str:
    if "arguments" in payload:
        given = payload["arguments"]
        if isinstance(given, str):
            try:
                given = _json.decode(given.encode(), repair=True)
            except ValueError:
                pass  # shown as the text that it is
    else:
        given = payload.get("input", payload.get("action"))
    if isinstance(given, dict) and isinstance(given.get("command"), list):
        given = {**given, "command": command_text(given["command"])}
    return render_call(tool, given)
