"""Every transcript of tests/data: what is in it, counted by hand, and whose words it is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from remem.hooks.sources import detect, read
from remem.objects.model import Incoming, Rejected, Skipped

DATA = Path(__file__).parent.parent / "data" / "transcripts"

USER = ("user", "owner", "turn")
AGENT = ("assistant", "agent", "turn")
CALL = ("assistant", "agent", "tool_call")
SUMMARY = ("assistant", "agent", "summary")
RESULT = ("tool", "tool", "tool_result")
COMMAND = ("tool", "tool", "command")
CONTEXT = ("system", "agent", "context")

# File, format, records by (role, origin, kind), skipped by reason, number of rejected.
COUNTS = [
    (
        "agentwatch_claude-session.jsonl",
        "claude-code",
        {USER: 2, AGENT: 3, CALL: 2, RESULT: 2, SUMMARY: 1},
        {"thinking": 1},
        0,
    ),
    (
        "agentwatch_codex-session.jsonl",
        "codex",
        {USER: 2, AGENT: 2, CALL: 2, RESULT: 2},
        {"description of the session": 1, "event 'token_count'": 2, "item 'reasoning'": 1},
        0,
    ),
    (
        "agentwatch_gemini-session.json",
        "gemini",
        {USER: 3, AGENT: 3, CALL: 1, RESULT: 1},
        {"thinking": 1},
        0,
    ),
    (
        "agentwatch_malformed.jsonl",
        "claude-code",
        {USER: 2, AGENT: 1},
        {"entry of type 'unknown_type_xyz'": 1},
        2,
    ),
    ("agentwatch_unicode-content.jsonl", "claude-code", {USER: 1, AGENT: 1}, {}, 0),
    (
        "daaain_edge_cases.jsonl",
        "claude-code",
        {USER: 3, AGENT: 2, CALL: 3, RESULT: 2, COMMAND: 1, SUMMARY: 1},
        {"notice of the agent": 1},
        7,
    ),
    (
        "daaain_representative_messages.jsonl",
        "claude-code",
        {USER: 4, AGENT: 3, CALL: 2, RESULT: 2, SUMMARY: 1},
        {},
        0,
    ),
    ("daaain_session_b.jsonl", "claude-code", {USER: 2, AGENT: 1}, {}, 0),
    (
        "daaain_todowrite_examples.jsonl",
        "claude-code",
        {USER: 2, AGENT: 3, CALL: 3, RESULT: 3, SUMMARY: 1},
        {},
        0,
    ),
    (
        "polylogue_chatgpt_native-browser-capture-v1.json",
        "chatgpt",
        {USER: 1, AGENT: 1, CALL: 1, RESULT: 1, CONTEXT: 1},
        {"thinking": 2, "regenerated branch": 1},
        0,
    ),
    (
        "polylogue_chatgpt_native-conversation-v1.json",
        "chatgpt",
        {USER: 1, AGENT: 1, CALL: 1, RESULT: 1, CONTEXT: 1},
        {"thinking": 2, "regenerated branch": 1},
        0,
    ),
    (
        "polylogue_claude-code_claude-normalization-main.jsonl",
        "claude-code",
        {USER: 3, AGENT: 4, CALL: 3, RESULT: 2},
        {
            "entry of type 'queue-operation'": 1,
            "meta entry of the agent": 1,
            "notice of the agent": 1,
            "slash command '/status'": 1,
            "thinking": 1,
        },
        0,
    ),
    ("polylogue_origin-capability_chatgpt-export.json", "chatgpt", {USER: 1}, {}, 0),
    (
        "polylogue_origin-capability_claude-code-session.jsonl",
        "claude-code",
        {USER: 1, AGENT: 1},
        {},
        0,
    ),
    (
        "polylogue_origin-capability_codex-session.jsonl",
        "codex",
        {USER: 1, AGENT: 1},
        {"description of the session": 1},
        0,
    ),
    (
        "polylogue_origin-capability_gemini-cli-session.json",
        "gemini",
        {USER: 1, AGENT: 1},
        {},
        0,
    ),
    (
        "simonw_sample_session.json",
        "claude-code",
        {USER: 5, AGENT: 8, CALL: 12, RESULT: 12, SUMMARY: 1},
        {"thinking": 1},
        0,
    ),
    (
        "simonw_sample_session.jsonl",
        "claude-code",
        {USER: 2, AGENT: 2, CALL: 2, RESULT: 2, SUMMARY: 1},
        {},
        0,
    ),
    (
        "yoavf_claude-code-pomodoro-timer.jsonl",
        "claude-code",
        {USER: 3, AGENT: 7, CALL: 37, RESULT: 37, COMMAND: 1},
        {
            "empty command output": 1,
            "entry of type 'file-history-snapshot'": 6,
            "meta entry of the agent": 1,
            "thinking": 31,
        },
        0,
    ),
    (
        "yoavf_codex-pomodoro-timer.jsonl",
        "codex",
        {USER: 3, AGENT: 3, CALL: 18, RESULT: 17},
        {
            "context of the turn": 21,
            "description of the session": 1,
            "empty tool result": 1,
            "event 'agent_reasoning'": 20,
            "event 'token_count'": 42,
            "item 'reasoning'": 20,
            "only environment_context": 1,
            "repeats the event": 3,
            "repeats the item": 3,
        },
        0,
    ),
]

# What the person typed in each file: the positive side of "a tool's result is not the user's word".
USERS_WORDS = {
    "agentwatch_claude-session.jsonl": [
        "Help me write a function to validate email addresses in TypeScript",
        "Yes, please add tests",
    ],
    "agentwatch_codex-session.jsonl": [
        "List the files in this directory",
        "Show me the contents of package.json",
    ],
    "agentwatch_gemini-session.json": [
        "What is the capital of France?",
        "Can you search for its population?",
        "Thanks!",
    ],
    "polylogue_claude-code_claude-normalization-main.jsonl": [
        "Review the parser.",
        "An independent session.",
        "Conflicting duplicate that must not survive.",
    ],
    "polylogue_chatgpt_native-browser-capture-v1.json": [
        "Analyze the attached fixture and create an artifact.\n[image]"
    ],
    "simonw_sample_session.json": [
        "Create a simple Python function to add two numbers",
        "Now edit the file to add a subtract function",
        "Run the tests again",
        "Fix the issue and commit",
        "Add a multiply function too",
    ],
}


def incoming(fmt: str, name: str) -> list[Incoming]:
    return [record for record in read(fmt, str(DATA / name)) if isinstance(record, Incoming)]


def test_every_transcript_is_counted() -> None:
    names = {path.name for path in DATA.iterdir() if path.suffix in (".json", ".jsonl")}
    assert names - {row[0] for row in COUNTS} == {
        "polylogue_atof_nemo_relay_atof_v0.1_real_redacted.jsonl"  # of no format that is read here
    }


@pytest.mark.parametrize(("name", "fmt", "kept", "skipped", "rejected"), COUNTS)
def test_counts(
    name: str,
    fmt: str,
    kept: dict[tuple[str, str, str], int],
    skipped: dict[str, int],
    rejected: int,
) -> None:
    records = list(read(fmt, str(DATA / name)))
    kinds = Counter((r.role, r.origin, r.kind) for r in records if isinstance(r, Incoming))
    assert kinds == kept
    assert Counter(r.why for r in records if isinstance(r, Skipped)) == skipped
    assert sum(isinstance(r, Rejected) for r in records) == rejected
    assert len(records) == sum(kept.values()) + sum(skipped.values()) + rejected
    assert detect(str(DATA / name)) == fmt


@pytest.mark.parametrize("name", USERS_WORDS)
def test_the_users_words_are_the_users(name: str) -> None:
    fmt = next(row[1] for row in COUNTS if row[0] == name)
    said = [record.text for record in incoming(fmt, name) if record.role == "user"]
    assert said == USERS_WORDS[name]
    owned = [record.text for record in incoming(fmt, name) if record.origin == "owner"]
    assert owned == USERS_WORDS[name]


def raw_results(value: object) -> list[str]:
    """Find the content of every tool result in decoded JSON, wherever it stands."""
    found: list[str] = []
    if isinstance(value, dict):
        kind = value.get("type")
        if kind == "tool_result" and isinstance(value.get("content"), str):
            found.append(value["content"])
        elif kind in ("function_call_output", "custom_tool_call_output"):
            output = value["output"]
            found.append(json.loads(output)["output"] if output[:1] == "{" else output)
        for item in value.values():
            found += raw_results(item)
    elif isinstance(value, list):
        for item in value:
            found += raw_results(item)
    return found


@pytest.mark.parametrize(
    ("name", "fmt"), [row[:2] for row in COUNTS if row[1] in ("claude-code", "codex")]
)
def test_tool_results_are_never_the_users(name: str, fmt: str) -> None:
    text = (DATA / name).read_text()
    try:
        values = [json.loads(text)]
    except json.JSONDecodeError:
        values = []
        for line in text.splitlines():
            try:
                values.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    raw = {result for value in values for result in raw_results(value) if result.strip()}
    # What the agent puts behind a result is no word of the tool.
    results = {result.partition("\n\n<system-reminder>")[0] for result in raw}
    records = incoming(fmt, name)
    by_text: dict[str, set[tuple[str, str]]] = {}
    for record in records:
        by_text.setdefault(record.text, set()).add((record.role, record.origin))
    # One result of the edge cases stands in a message whose "content" is misspelt.
    found = {result for result in results if result in by_text}
    assert len(found) >= len(results) - 1
    for result in found:
        assert by_text[result] == {("tool", "tool")}


def test_results_carry_the_name_of_their_tool() -> None:
    for name, fmt, kept, _, _ in COUNTS:
        if kept.get(RESULT):
            tools = {r.tool for r in incoming(fmt, name) if r.kind == "tool_result"}
            assert tools and "" not in tools, name


@pytest.mark.parametrize(("name", "fmt"), [row[:2] for row in COUNTS])
def test_source_ids_are_stable_and_name_one_record(name: str, fmt: str) -> None:
    first, second = incoming(fmt, name), incoming(fmt, name)
    assert first == second
    ids = Counter(record.source_id for record in first if record.source_id)
    twice = {known for known, count in ids.items() if count > 1}
    # One file repeats an entry's id on purpose: both come out, the store tells them apart.
    assert twice == ({"main-u1#0"} if "normalization" in name else set())


def test_since_turns_older_records_into_skipped() -> None:
    path = str(DATA / "simonw_sample_session.jsonl")
    everything = list(read("claude-code", path))
    limit = 1766570410000000  # 2025-12-24T10:00:10Z
    late = list(read("claude-code", path, since=limit))
    assert len(late) == len(everything) == 9
    assert [r.why for r in late if isinstance(r, Skipped)] == ["before --since"] * 3
    kept = [r for r in late if isinstance(r, Incoming)]
    # The summary has no time; it is not known to be older.
    assert [r.asserted is None for r in kept] == [True] + [False] * 5
    assert all(r.asserted >= limit for r in kept if r.asserted is not None)


def test_malformed_lines_are_named() -> None:
    path = str(DATA / "agentwatch_malformed.jsonl")
    bad = [r for r in read("claude-code", path) if isinstance(r, Rejected)]
    assert [r.where for r in bad] == [f"{path}:2", f"{path}:5"]
    assert all(r.why.startswith("not valid JSON at column ") for r in bad)


def test_a_foreign_shape_is_rejected_line_by_line() -> None:
    path = DATA / "polylogue_atof_nemo_relay_atof_v0.1_real_redacted.jsonl"
    assert detect(str(path)) is None
    count = len(path.read_text().splitlines())
    for fmt in ("jsonl", "claude-code", "codex"):
        records = list(read(fmt, str(path)))
        assert len(records) == count
        assert all(isinstance(record, Rejected) for record in records)
