"""The registry: formats by name, files of a folder, guesses about a file."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from remem.hooks.sources import FORMATS, detect, files, read, read_stream
from remem.objects.errors import BadInput, UsageError
from remem.objects.model import Incoming, Rejected

DATA = Path(__file__).parent.parent / "data" / "transcripts"


@pytest.mark.parametrize("fmt", sorted(FORMATS))
def test_every_format_can_be_loaded_and_says_what_it_is(fmt: str) -> None:
    entry = FORMATS[fmt]
    assert entry.what and entry.unit
    if entry.streams:
        assert entry.suffixes
        assert all(
            isinstance(record, Rejected)
            for record in read_stream(fmt, io.BytesIO(b""), "-", since=0, limit_b=10)
        )
    else:
        with pytest.raises(UsageError, match="cannot be read from a stream"):
            read_stream(fmt, io.BytesIO(b""), "-")


def test_an_unknown_format_is_told_at_once() -> None:
    for call in (read, files):
        with pytest.raises(UsageError, match="no such format: 'jsonnl'") as caught:
            call("jsonnl", "x")
        assert "jsonl" in caught.value.hint
    with pytest.raises(UsageError):
        read_stream("jsonnl", io.BytesIO(b""), "-")


def test_a_missing_file_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file or folder"):
        read("jsonl", str(tmp_path / "gone"))


def test_a_folder_is_read_file_by_file_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name in ("b/2.jsonl", "b/1.jsonl", "a.jsonl", ".hidden/3.jsonl", "a.json", "b/x.txt"):
        (tmp_path / name).write_text(json.dumps({"text": name}) + "\n")
    (tmp_path / "b" / "loop").symlink_to(tmp_path)
    texts = [r.text for r in read("jsonl", str(tmp_path)) if isinstance(r, Incoming)]
    assert texts == ["a.jsonl", "b/1.jsonl", "b/2.jsonl"]
    with pytest.raises(BadInput, match="no file of 'markdown' below") as caught:
        read("markdown", str(tmp_path))
    assert "'.md'" in caught.value.hint


def test_a_hidden_folder_that_is_named_is_read(tmp_path: Path) -> None:
    folder = tmp_path / ".claude"
    folder.mkdir()
    (folder / "s.jsonl").write_text('{"text": "x"}')
    assert files("jsonl", str(folder)) == [str(folder / "s.jsonl")]


def test_a_file_that_cannot_be_opened_costs_itself_only(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}')
    (tmp_path / "b.jsonl").symlink_to("gone")
    (tmp_path / "c.jsonl").write_text('{"text": "c"}')
    first, second, third = read("jsonl", str(tmp_path))
    assert isinstance(first, Incoming) and isinstance(third, Incoming)
    path = str(tmp_path / "b.jsonl")
    assert second == Rejected(path, "cannot be read: no such file or directory")
    if os.geteuid():  # root may open everything
        (tmp_path / "c.jsonl").chmod(0)
        with pytest.raises(BadInput, match="permission denied"):
            list(read("jsonl", str(tmp_path / "c.jsonl")))


def test_the_readers_are_loaded_when_they_are_needed() -> None:
    script = (
        "import sys, remem.hooks.sources as s; before = set(sys.modules);"
        "heavy = {'json', 'datetime', 'markdown_it', 'subprocess', 'zipfile', 'tempfile'};"
        "own = {'remem.hooks.sources.' + f.module for f in s.FORMATS.values()};"
        "print(sorted((heavy - {'datetime'} | own) & before));"
        "list(s.read('text', sys.argv[1])); print(sorted(own & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, __file__], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[]", "['remem.hooks.sources.text']"]


@pytest.mark.parametrize(
    ("name", "content", "fmt"),
    [
        ("a", b'{"text": "x"}\n', "jsonl"),
        ("a", b'\xef\xbb\xbf[{"text": "x"}]', "jsonl"),
        ("a", b'[\n  {\n    "text": "x"\n  }\n]', "jsonl"),
        ("a", b'nonsense\n{"text": "x"}\n', "jsonl"),
        ("a", b'an example:\n\nof a line:\n\n{"text": "x"}\n', "text"),
        ("a", b'{"a": 1}\n{"b": 2}\n', None),
        ("a", b'[{"sessionId": "s", "messageId": 0, "type": "user", "message": "x"}]', "gemini"),
        ("a", b'{"type": "event_msg", "payload": {}}', "codex"),
        ("a", b'{"id": "s", "timestamp": "t"}\n{"record_type": "state"}', "codex"),
        ("a", b'{"type": "queue-operation"}\n{"type": "user", "uuid": "u"}', "claude-code"),
        ("a", b'[{"title": "t", "mapping": {}, "current_node": "x"}]', "chatgpt"),
        ("a.zip", b"PK\x03\x04 conversations.json", "chatgpt"),
        ("a", b"PK\x03\x04 other", None),
        ("a", b"# Title\n\ntext", "markdown"),
        ("a", b"---\ntitle: x\n---\ntext", "markdown"),
        ("a.md", b"just words", "markdown"),
        ("a", b"just words\n\nmore", "text"),
        ("a", b": 1700000000:0;ls\n", "zsh-history"),
        ("a", b"#1700000000\nls\n", "bash-history"),
        ("a", b"- cmd: ls\n  when: 1700000000\n", "fish-history"),
        ("a", b"\xff\xfe\xfd", None),
        ("a", b"a\0b", None),
        ("a", b"", None),
        ("a", ("é" * 40_000).encode(), None),  # one line, cut inside of a character
        ("a", ("é\n" * 40_000).encode(), "text"),
    ],
)
def test_guesses(tmp_path: Path, name: str, content: bytes, fmt: str | None) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert detect(str(path)) == fmt
    assert detect(str(tmp_path)) == fmt


def test_a_long_document_is_known_by_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    text = (DATA / "agentwatch_gemini-session.json").read_text()
    path.write_text(text.replace("Paris", "Paris " * 20_000))
    assert detect(str(path)) == "gemini"
    for name in ("yoavf_claude-code-pomodoro-timer.jsonl", "yoavf_codex-pomodoro-timer.jsonl"):
        lines = (DATA / name).read_text().splitlines()
        line = next(line for line in lines if '"Build a simple' in line)
        path.write_text(line.replace("Build a simple", "Build a simple" * 10_000))
        assert detect(str(path)) == ("claude-code" if "claude" in name else "codex")


def test_nothing_is_guessed_about_what_is_not_there(tmp_path: Path) -> None:
    assert detect(str(tmp_path)) is None
    assert detect(str(tmp_path / "gone")) is None


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words\n")
    os.mkfifo(tmp_path / "b.txt")
    assert files("text", str(tmp_path)) == [str(tmp_path / "a.txt")]
