"""Sessions of Codex: one record of what stands in the file twice, and old files."""

from __future__ import annotations

import io
import json

import pytest

from remem.hooks.sources import read_stream
from remem.hooks.sources._record import Record
from remem.objects.model import Incoming, Rejected, Skipped

META = {"type": "session_meta", "payload": {"id": "s1", "cwd": "/w", "git": {"branch": "main"}}}


def load(*lines: object) -> list[Record]:
    raw = "\n".join(json.dumps(line) for line in lines).encode()
    return list(read_stream("codex", io.BytesIO(raw), "r.jsonl"))


def item(kind: str, **payload: object) -> dict[str, object]:
    return {
        "timestamp": "2026-03-01T09:30:00Z",
        "type": "response_item",
        "payload": {"type": kind, **payload},
    }


def message(role: str, *texts: str) -> dict[str, object]:
    sort = "input_text" if role == "user" else "output_text"
    return item("message", role=role, content=[{"type": sort, "text": text} for text in texts])


def event(kind: str, text: str) -> dict[str, object]:
    return {"type": "event_msg", "payload": {"type": kind, "message": text}}


def said(records: list[Record]) -> list[tuple[str, str, str]]:
    return [(r.role, r.origin, r.text) for r in records if isinstance(r, Incoming)]


def test_a_record_carries_its_session() -> None:
    record = load(META, message("user", "paint it"))[1]
    assert record == Incoming(
        text="paint it",
        asserted=1_772_357_400_000_000,
        offset=0,
        role="user",
        origin="owner",
        agent="codex",
        session="s1",
        source_uri="codex:s1",
        source_id="s1#2",
        kind="turn",
        meta={"cwd": "/w", "git_branch": "main"},
        where="r.jsonl:2",
    )


def test_a_message_is_taken_once_whichever_form_comes_first() -> None:
    records = load(
        message("user", "yes"),
        event("user_message", "yes"),
        event("agent_message", "done"),
        message("assistant", "done"),
        event("user_message", "yes"),
        message("user", "yes"),
    )
    assert said(records) == [
        ("user", "owner", "yes"),
        ("assistant", "agent", "done"),
        ("user", "owner", "yes"),
    ]
    assert [r.why for r in records if isinstance(r, Skipped)] == [
        "repeats the item",
        "repeats the event",
        "repeats the event",
    ]
    # Said twice in one form, it was said twice.
    assert len(said(load(message("user", "yes"), message("user", "yes")))) == 2


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n<cwd>/w</cwd></environment_context>",
        "<user_instructions>be terse</user_instructions>",
        "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>x</INSTRUCTIONS>",
        "<turn_aborted>x</turn_aborted>",
        " ",
    ],
)
def test_what_codex_puts_into_the_users_turn_is_skipped(text: str) -> None:
    records = load(message("user", text), message("user", text, "paint it"))
    assert isinstance(records[0], Skipped)
    assert said(records) == [("user", "owner", "paint it")]


def test_only_the_request_is_the_users_where_an_editor_adds_its_state() -> None:
    text = (
        "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\npaint"
    )
    assert said(load(message("user", text))) == [("user", "owner", "paint")]
    assert said(load(message("user", text.partition("## My")[0]))) == []


def test_a_command_that_the_user_ran_is_a_tools() -> None:
    text = "<user_shell_command><command>ls</command><result>a b</result></user_shell_command>"
    assert said(load(message("user", text))) == [("tool", "tool", "ls\na b")]


def test_instructions_are_not_said_by_anybody() -> None:
    records = load(message("developer", "obey"), message("system", "obey"))
    assert [type(record) for record in records] == [Skipped, Skipped]


@pytest.mark.parametrize(
    ("kind", "payload", "text"),
    [
        ("function_call", {"name": "shell", "arguments": '{"command": ["bash", "-lc", "ls -l"]}'},
         "shell: ls -l"),
        ("function_call", {"name": "shell", "arguments": '{"command": ["echo", "a b"]}'},
         "shell: echo 'a b'"),
        ("function_call", {"name": "f", "arguments": "not json"}, "f: not json"),
        ("function_call", {"name": "f", "arguments": ""}, "f"),
        ("local_shell_call", {"action": {"type": "exec", "command": ["ls"]}},
         "local_shell: ls\ntype: exec"),
        ("web_search_call", {"action": {"type": "search", "query": "attics"}},
         "web_search: attics\ntype: search"),
        ("custom_tool_call", {"name": "apply_patch", "input": "*** Add File: a.py\n+x"},
         "apply_patch: a.py\n*** Add File: a.py\n+x"),
        ("custom_tool_call", {"name": "apply_patch", "input": "*** Delete File: a\n" + "x" * 4000},
         "apply_patch: a\ninput: (4,019 characters left out)"),
    ],
)  # fmt: skip
def test_calls(kind: str, payload: dict[str, object], text: str) -> None:
    (record,) = load(item(kind, call_id="c", **payload))
    assert isinstance(record, Incoming)
    assert (record.role, record.origin, record.kind) == ("assistant", "agent", "tool_call")
    assert record.text == text


@pytest.mark.parametrize(
    ("output", "text", "code"),
    [
        ("plain", "plain", None),
        ('{"output": "a\\n", "metadata": {"exit_code": 2}}', "a\n", 2),
        ("{not json}", "{not json}", None),
        ('{"other": 1}', '{"other": 1}', None),
        ({"content": "x", "success": True}, "x", None),
        ([{"type": "input_text", "text": "x"}, {"type": "input_image"}], "x\n[image]", None),
    ],
)
def test_outputs_are_a_tools(output: object, text: str, code: int | None) -> None:
    call = item("function_call", name="shell", call_id="c", arguments="{}")
    record = load(call, item("function_call_output", call_id="c", output=output))[1]
    assert isinstance(record, Incoming)
    assert (record.role, record.origin, record.kind) == ("tool", "tool", "tool_result")
    assert (record.tool, record.text, record.meta.get("exit_code")) == ("shell", text, code)


def test_files_of_before_the_envelope() -> None:
    records = load(
        {"id": "old", "timestamp": "2025-05-01T08:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "reasoning", "summary": []},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
    )
    assert [type(record).__name__ for record in records] == [
        "Skipped", "Skipped", "Incoming", "Skipped", "Incoming",
    ]  # fmt: skip
    assert said(records) == [("user", "owner", "hi"), ("tool", "tool", "x")]
    assert isinstance(records[2], Incoming) and records[2].source_id == "old#3"


def test_a_session_keeps_its_own_name_when_it_goes_on_from_another() -> None:
    other = {"type": "session_meta", "payload": {"id": "s0"}}
    record = load(META, other, message("user", "x"))[2]
    assert isinstance(record, Incoming) and record.session == "s1"


def test_a_summary_is_the_agents() -> None:
    record = load({"type": "compacted", "payload": {"message": "we painted"}})[0]
    assert isinstance(record, Incoming)
    assert (record.role, record.origin, record.kind) == ("assistant", "agent", "summary")


@pytest.mark.parametrize(
    "line",
    [
        7,
        {"a": 1},
        {"type": "response_item", "payload": 7},
        {"type": "event_msg", "payload": {"type": "user_message", "message": 7}},
        item("message", role="user", content=7),
    ],
)
def test_what_cannot_be_read_is_named(line: object) -> None:
    (record,) = load(line)
    assert isinstance(record, Rejected) and record.where == "r.jsonl:1"


def test_what_is_new_is_skipped_by_name() -> None:
    records = load({"type": "new_thing", "payload": {}}, item("new_item"), item(""))
    assert [r.why for r in records if isinstance(r, Skipped)] == [
        "line of type 'new_thing'",
        "item 'new_item'",
        "item without type",
    ]
