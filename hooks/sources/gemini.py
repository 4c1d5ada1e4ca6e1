"""Sessions of Gemini CLI: one object `{sessionId, messages}`, or its log, an array of prompts.

Unit: of a message, its text, its thoughts (together), each call of a tool and each call's result.
A message that has none of them is one unit; so is the object if it cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from remem.hooks.sources import _json, _wrappers
from remem.hooks.sources._json import Json
from remem.hooks.sources._record import LIMIT_B, Record, admit
from remem.hooks.sources._times import stamp
from remem.hooks.sources._tools import render_call, render_result
from remem.objects.model import Incoming, Rejected, Skipped

AGENT = "gemini"

_FILES = "--- Content from referenced files ---"  # what stands behind it, the CLI has read in


def read(
    stream: BinaryIO, name: str, *, since: int | None = None, limit_b: int = LIMIT_B
) -> Iterator[Record]:
    """Read a session.

    Args:
        stream: the bytes.
        name: what to call the stream in places.
        since: microseconds UTC; older records are skipped.
        limit_b: bytes that one text may have; the object may have four times as many.

    Yields:
        One record for each unit, in their order.
    """
    for record in _records(stream, name, limit_b):
        yield admit(record, since, limit_b) if isinstance(record, Incoming) else record


def _records(stream: BinaryIO, name: str, limit_b: int) -> Iterator[Record]:
    raw = _json.document(_json.peek(stream), stream, limit_b)
    if raw is None:
        yield _json.too_long(name, "document", limit_b)
        return
    try:
        found = _json.decode(raw, repair=True)
    except ValueError as error:
        yield Rejected(name, str(error))
        return
    if isinstance(found, list):
        for index, message in enumerate(found):
            session = _json.text_at(message, "sessionId")
            yield from _message(message, session, f"{name}[{index}]")
        return
    if not isinstance(found, dict) or not isinstance(found.get("messages"), list):
        yield Rejected(name, "no 'messages': not a session of Gemini CLI")
        return
    session = _json.text_at(found, "sessionId")
    messages = _json.list_at(found, "messages")
    if not messages:
        yield Skipped(name, "session without messages")
    for index, message in enumerate(messages):
        yield from _message(message, session, f"{name}[{index}]")


def _message(message: object, session: str, where: str) -> Iterator[Record]:
    if not isinstance(message, dict):
        yield Rejected(where, f"expected an object, found {_json.kind_of(message)}")
        return
    sort = message.get("type")
    if not isinstance(sort, str):
        yield Rejected(where, "no 'type': not a message of a session")
    elif sort == "user":
        yield from _said_by_user(message, session, where)
    elif sort in (AGENT, "model", "assistant"):
        yield from _said_by_agent(message, session, where)
    else:
        yield Skipped(where, f"message of type '{sort[:40]}'")


def _said_by_user(message: Json, session: str, where: str) -> Iterator[Record]:
    content = message.get("content", message.get("message"))
    if not isinstance(content, str | list):
        yield Rejected(where, f"'content' is {_json.kind_of(content)}, not a text")
        return
    said, mark, files = render_result(content).partition(_FILES)
    part = _wrappers.unwrap(said)
    if part.kind == _wrappers.NOTHING:
        yield Skipped(where, part.text)
    else:
        item = _item(message, session, part.text, where, "")
        if part.kind == _wrappers.WORDS:
            item.role, item.origin, item.kind = "user", "owner", "turn"
        else:
            item.role, item.origin, item.kind = "tool", "tool", part.kind
        yield item
    if mark:
        item = _item(message, session, files.strip(), f"{where}#files", "#files")
        item.role, item.origin, item.kind = "tool", "tool", "tool_result"
        item.tool = "read_file"
        yield item if item.text else Skipped(item.where, "empty tool result")


def _said_by_agent(message: Json, session: str, where: str) -> Iterator[Record]:
    calls = message.get("toolCalls")
    thoughts = message.get("thoughts")
    text = render_result(message.get("content"))
    if text.strip():
        item = _item(message, session, text, where, "")
        item.role, item.origin, item.kind = "assistant", "agent", "turn"
        yield item
    elif not calls and not thoughts:
        yield Skipped(where, "message without content")
    if thoughts:
        yield Skipped(f"{where}#thoughts", "thinking")
    for index, call in enumerate(calls if isinstance(calls, list) else []):
        yield from _tool(message, call, session, f"{where}#{index}", f"#{index}")


def _tool(message: Json, call: object, session: str, where: str, mark: str) -> Iterator[Record]:
    if not isinstance(call, dict):
        yield Rejected(where, f"expected an object, found {_json.kind_of(call)}")
        return
    name = _json.text_at(call, "name")
    item = _item(message, session, render_call(name or "tool", call.get("args")), where, mark)
    item.role, item.origin, item.kind, item.tool = "assistant", "agent", "tool_call", name
    _mark(item, call)
    yield item
    text = render_result(call.get("result")) or render_result(call.get("resultDisplay"))
    if not text.strip():
        yield Skipped(f"{where}-result", "empty tool result")
        return
    result = _item(message, session, text, f"{where}-result", f"{mark}-result")
    result.role, result.origin, result.kind, result.tool = "tool", "tool", "tool_result", name
    _mark(result, call)
    if _json.text_at(call, "status") in ("error", "cancelled"):
        result.meta["error"] = True
    yield result


def _mark(item: Incoming, call: Json) -> None:
    stamp(item, call.get("timestamp"))
    if known := _json.text_at(call, "id"):
        item.meta["call"] = known


def _item(message: Json, session: str, text: str, where: str, mark: str) -> Incoming:
    own = session if session.strip() else None
    known = message.get("id", message.get("messageId"))
    named = isinstance(known, str | int) and not isinstance(known, bool) and str(known) != ""
    item = Incoming(
        text=text,
        agent=AGENT,
        session=own,
        source_uri=f"{AGENT}:{own}" if own else AGENT,
        # Message ids of the log count from 0 in every session.
        source_id=f"{own}:{known}{mark}" if own and named else "",
        meta={},
        where=where,
    )
    if model := _json.text_at(message, "model"):
        item.meta["model"] = model
    stamp(item, message.get("timestamp"))
    return item
