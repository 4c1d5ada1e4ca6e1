"""Events of Claude Code's hooks: what each is answered, and what of it is kept.

* A session begins: the banner, for the model to read.
* A prompt: cited context, where that was asked for when the hooks were installed.
* A tool was used: call and result are appended to the spool, redacted, without the store.
* A session ends: its transcript is imported.  A tool's call and result have the same names in the
  transcript as in the spool, so that what came through both doors is one observation.
"""

from __future__ import annotations

import os
import time
import zlib
from typing import TYPE_CHECKING, Any

import msgspec

from remem.hooks.sources._tools import render_call, render_result
from remem.hooks.sources.claude_code import AGENT, SIDECHAIN, call_id, result_id
from remem.hooks.spool import MARK, VERSION, folder
from remem.objects.model import Incoming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.hooks.api import Store
    from remem.hooks.ingest import Sum
    from remem.hooks.sources import Record

EVENTS = ("session-start", "user-prompt-submit", "post-tool-use", "session-end")
KEEPS = frozenset(("post-tool-use", "session-end"))
NAMES = {"session-start": "SessionStart", "user-prompt-submit": "UserPromptSubmit"}
MOST_B = 64 * 2**20  # of one event
TEXT_B = 16 * 2**20  # of a result that is kept
QUERY = 4000  # characters of a prompt that are looked up
PROMPT_BUDGET = 2000  # characters of the context that a prompt gets
BANNER_BUDGET = 6000
PROGRAM = "claude"  # of the files in the spool


class Event(msgspec.Struct):
    """What Claude Code tells a hook; further fields are left alone."""

    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    prompt: str = ""
    agent_id: str = ""
    tool_name: str = ""
    tool_input: Any = None
    tool_response: Any = None
    tool_use_id: str = ""


def decode(data: bytes) -> Event:
    """Read an event.

    Raises:
        ValueError: it is none.
    """
    return msgspec.json.decode(data, type=Event)


def reply(event: str, text: str) -> bytes:
    """The answer that gives a text to the model, or nothing without one."""
    if not text:
        return b""
    said = {"hookEventName": NAMES[event], "additionalContext": text}
    return msgspec.json.encode({"hookSpecificOutput": said})


# -- answering ----------------------------------------------------------------------------------


def begin(store: Store) -> str:
    """The banner of a session that begins."""
    return store.banner(budget=BANNER_BUDGET)


def prompted(store: Store, event: Event) -> str:
    """Cited context for a prompt, or nothing where nothing was found."""
    query = event.prompt[:QUERY]
    if not query.strip():
        return ""
    found = store.context(query, budget=PROMPT_BUDGET)
    return found.text if found.hits else ""


# -- keeping ------------------------------------------------------------------------------------


def records(event: Event, collection: str) -> list[Incoming]:
    """Call and result of a tool, as the transcript will have them."""
    if not event.tool_name or not event.session_id.strip():
        return []
    now = time.time_ns() // 1000
    made = []
    call = event.tool_use_id
    result = result_text(event.tool_response)
    parts = [
        ("tool_call", render_call(event.tool_name, event.tool_input), call_id(call)),
        ("tool_result", result if len(result) <= TEXT_B else "", result_id(call)),
    ]
    for kind, text, source_id in parts:
        if not text.strip():
            continue
        of_tool = kind == "tool_result"
        meta: dict[str, object] = {"call": call} if call else {}
        if event.cwd:
            meta["cwd"] = event.cwd
        made.append(
            Incoming(
                text=text,
                asserted=now,
                offset=time.localtime(now // 1_000_000).tm_gmtoff // 60,
                role="tool" if of_tool else "assistant",
                origin="tool" if of_tool else "agent",
                collection=collection,
                agent=SIDECHAIN if event.agent_id else AGENT,
                session=event.session_id,
                source_uri=f"{AGENT}:{event.session_id}",
                source_id=source_id if call else "",
                tool=event.tool_name,
                kind=kind,
                meta=meta,
            )
        )
    return made


def result_text(response: object) -> str:
    """What a tool gave back, as its transcript shows it: of a command, what it printed."""
    if isinstance(response, dict) and ("stdout" in response or "stderr" in response):
        printed = [response.get("stdout"), response.get("stderr")]
        return "\n".join(text.rstrip("\n") for text in printed if isinstance(text, str) and text)
    if isinstance(response, dict) and isinstance(response.get("file"), dict):
        return render_result(response["file"])
    return render_result(response)


def append(root: str, session: str, kept: list[Incoming]) -> bool:
    """Append records to the spool, one file a session; secrets are taken out of every field first.

    Args:
        root: folder of the store.
        session: of Claude Code.
        kept: what is appended.

    Returns:
        False when there is no spool, or nothing to append.
    """
    from remem.objects import gate
    from remem.objects.gate import NothingLeft

    lines: list[bytes] = []
    at = time.time_ns() // 1000
    for record in kept:
        try:
            clean = gate.cleaned(record)[0]
        except NothingLeft:
            continue
        said = {
            name: value
            for name in clean.__struct_fields__
            if name not in ("raw", "where")
            and (value := getattr(clean, name)) not in (None, "", {})
        }
        line = msgspec.json.encode({"remem": VERSION, "seq": len(lines), "at": at, "event": said})
        assert line.startswith(MARK)
        lines.append(line + b"\n")
    if not lines:
        return False
    # The session's own file: named by the session, and alive as long as the program that calls.
    number = zlib.crc32(session.encode("utf-8", "surrogatepass"))
    path = os.path.join(folder(root), f"{PROGRAM}-{number}-{os.getppid()}-0.jsonl")
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        handle = os.open(path, flags, 0o600)
    except (FileNotFoundError, NotADirectoryError):
        return False
    with open(handle, "wb", buffering=0) as stream:
        os.fchmod(handle, 0o600)
        stream.write(b"".join(lines))  # in one piece: parallel tools append to the same file
    return True


def import_transcript(store: Store, event: Event, collection: str) -> Sum | None:
    """Take a transcript in; what is there already is known.  None when there is none."""
    from remem.hooks import ingest, sources

    path = event.transcript_path
    if not path or not os.path.isfile(path):
        return None
    found = sources.read("claude-code", path, limit_b=store.options.limit_b)

    def placed() -> Iterator[Record]:
        for record in found:
            if isinstance(record, Incoming):
                record.collection = collection
            yield record

    return ingest.ingest(store.objects, store.actor, placed(), limit_b=store.options.limit_b)
