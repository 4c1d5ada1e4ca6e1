"""Exports of ChatGPT: the branch that counts, and whose words it holds."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from remem.hooks.sources import read, read_stream
from remem.hooks.sources._record import Record
from remem.objects.model import Incoming, Rejected, Skipped


def node(name: str, parent: str | None, role: str, text: str, **more: object) -> dict[str, object]:
    message: dict[str, object] = {
        "id": f"m-{name}",
        "author": {"role": role},
        "create_time": 1_772_357_400.5,
        "content": {"content_type": "text", "parts": [text]},
        **more,
    }
    return {"id": name, "parent": parent, "children": [], "message": message}


def conversation(*nodes: dict[str, object], current: str = "") -> dict[str, object]:
    mapping = {str(entry["id"]): entry for entry in nodes}
    for entry in nodes:
        parent = mapping.get(str(entry["parent"]))
        if parent is not None:
            children = parent["children"]
            assert isinstance(children, list)
            children.append(entry["id"])
    return {"conversation_id": "c1", "title": "T", "current_node": current, "mapping": mapping}


def load(value: object, **options: int) -> list[Record]:
    raw = json.dumps(value).encode()
    return list(read_stream("chatgpt", io.BytesIO(raw), "c.json", **options))


def said(records: list[Record]) -> list[tuple[str, str, str]]:
    return [(r.role, r.origin, r.text) for r in records if isinstance(r, Incoming)]


ROOT: dict[str, object] = {"id": "root", "parent": None, "children": [], "message": None}
BRANCHED = conversation(
    ROOT,
    node("q1", "root", "user", "which colour?"),
    node("a1", "q1", "assistant", "red"),
    node("a2", "q1", "assistant", "blue"),
    node("q2", "a2", "user", "and the door?"),
    node("a3", "q2", "assistant", "green"),
    node("q2b", "a2", "user", "and the roof?"),
    current="a3",
)


def test_only_the_branch_that_was_seen_last_is_taken() -> None:
    records = load(BRANCHED)
    assert said(records) == [
        ("user", "owner", "which colour?"),
        ("assistant", "agent", "blue"),
        ("user", "owner", "and the door?"),
        ("assistant", "agent", "green"),
    ]
    assert records[4:] == [
        Skipped("c.json#a1", "regenerated branch"),
        Skipped("c.json#q2b", "regenerated branch"),
    ]
    other = load({**BRANCHED, "current_node": "a1"})
    assert [text for _, _, text in said(other)] == ["which colour?", "red"]
    assert len(other) == len(records) == 6


def test_a_record_carries_its_conversation() -> None:
    assert load(BRANCHED)[0] == Incoming(
        text="which colour?",
        asserted=1_772_357_400_500_000,
        offset=0,
        role="user",
        origin="owner",
        agent="chatgpt",
        session="c1",
        source_uri="chatgpt:c1",
        source_id="m-q1",
        kind="turn",
        meta={"title": "T"},
        where="c.json#q1",
    )


@pytest.mark.parametrize("current", ["", "gone"])
def test_without_a_current_node_the_newest_leaf_counts(current: str) -> None:
    late = node("q2b", "a2", "user", "and the roof?", create_time=1_900_000_000)
    entries = [late if key == "q2b" else value for key, value in mapping(BRANCHED).items()]
    fresh = json.loads(json.dumps({**BRANCHED, "current_node": current}))
    fresh["mapping"] = {str(entry["id"]): entry for entry in entries}
    assert said(load(fresh))[-1] == ("user", "owner", "and the roof?")


def mapping(value: dict[str, object]) -> dict[str, dict[str, object]]:
    found = value["mapping"]
    assert isinstance(found, dict)
    return found


def test_a_circle_of_parents_has_an_end() -> None:
    records = load(
        conversation(node("a", "b", "user", "x"), node("b", "a", "user", "y"), current="a")
    )
    assert [text for _, _, text in said(records)] == ["y", "x"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (node("n", None, "system", "be kind"), ("system", "agent", "be kind")),
        (node("n", None, "tool", "42", author={"role": "tool", "name": "python"}),
         ("tool", "tool", "42")),
        (node("n", None, "assistant", '{"query": "attics"}', recipient="web"),
         ("assistant", "agent", "web: attics")),
        (node("n", None, "assistant", "print(1)", recipient="python"),
         ("assistant", "agent", "python: print(1)")),
        (node("n", None, "assistant", "hi", recipient="all"), ("assistant", "agent", "hi")),
        (node("n", None, "user", "", content={
            "content_type": "user_editable_context", "user_profile": "P",
            "user_instructions": "I"}), ("system", "agent", "P\nI")),
        (node("n", None, "user", "", content={
            "content_type": "multimodal_text",
            "parts": [{"content_type": "image_asset_pointer"}, "see",
                      {"content_type": "audio_transcription", "text": "heard"}]}),
         ("user", "owner", "[image]\nsee\nheard")),
        (node("n", None, "assistant", "", content={"content_type": "code", "text": "x = 1"}),
         ("assistant", "agent", "x = 1")),
    ],
)  # fmt: skip
def test_labels(entry: dict[str, object], expected: tuple[str, str, str]) -> None:
    records = load(conversation(entry, current="n"))
    assert said(records) == [expected] and len(records) == 1


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (node("n", None, "system", ""), "message without text (text)"),
        (node("n", None, "assistant", "hm", content={"content_type": "thoughts"}), "thinking"),
        (node("n", None, "user", "x", metadata={"is_visually_hidden_from_conversation": True}),
         "hidden message"),
        (node("n", None, "user", "", content={
            "content_type": "multimodal_text",
            "parts": [{"content_type": "image_asset_pointer"}]}),
         "message without text (multimodal_text)"),
    ],
)  # fmt: skip
def test_what_is_skipped(entry: dict[str, object], why: str) -> None:
    assert load(conversation(entry, current="n")) == [Skipped("c.json#n", why)]


@pytest.mark.parametrize(
    "entry",
    [
        node("n", None, "oracle", "x"),
        node("n", None, "user", "x", content="x"),
        {"id": "n", "parent": None, "children": [], "message": "x"},
    ],
)
def test_what_cannot_be_read_is_named(entry: dict[str, object]) -> None:
    (record,) = load(conversation(entry, current="n"))
    assert isinstance(record, Rejected) and record.where == "c.json#n"


def test_an_array_of_conversations_is_read_one_by_one() -> None:
    records = load([BRANCHED, 7, {"title": "no mapping"}, conversation(ROOT, current="root")])
    assert len(records) == 6 + 3
    assert [record.where for record in records[6:]] == ["c.json[1]", "c.json[2]", "c.json[3]"]
    assert [type(record) for record in records[6:]] == [Rejected, Rejected, Skipped]
    assert records[0].where == "c.json[0]#q1"


def test_a_conversation_above_the_limit_costs_itself_only() -> None:
    large = conversation(node("n", None, "user", "x" * 9000), current="n")
    small = conversation(node("n", None, "user", "y"), current="n")
    records = load([large, small], limit_b=1000)
    assert records[0] == Rejected("c.json[0]", "element is above the limit of 4,000 bytes")
    assert said(records) == [("user", "owner", "y")]


def test_a_capture_without_the_pages_own_data() -> None:
    turns = [{"provider_turn_id": "t1", "role": "user", "text": "hi", "timestamp": "2026-03-01"},
             {"role": "assistant", "text": "hello"}, {"role": "user", "text": ""}, 7]  # fmt: skip
    session = {"provider_session_id": "c9", "title": "T", "turns": turns}
    records = load({"session": session})
    assert said(records) == [("user", "owner", "hi"), ("assistant", "agent", "hello")]
    assert [type(record) for record in records] == [Incoming, Incoming, Skipped, Rejected]
    first, second = records[:2]
    assert isinstance(first, Incoming) and isinstance(second, Incoming)
    assert (first.source_id, second.source_id) == ("t1", "c9#1")


def test_the_zip_file_of_an_export(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations.json", json.dumps([BRANCHED]))
    records = list(read("chatgpt", str(path)))
    assert said(records) == said(load(BRANCHED))
    assert records[0].where == f"{path}/conversations.json[0]#q1"
    path.write_bytes(path.read_bytes()[:-30])
    (broken,) = read("chatgpt", str(path))
    assert isinstance(broken, Rejected)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("user.json", "{}")
    assert list(read("chatgpt", str(path))) == [
        Rejected(str(path), "no conversations.json in the archive")
    ]
