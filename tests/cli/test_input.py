"""What comes in: odd text, large text, wrong bytes, from every door of add and import."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Runner

MIB = 1 << 20


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"good \xff bad", "byte 5"),
        ("caf\u00e9".encode("latin-1"), "byte 3"),
        (b"\xed\xa0\x80", "byte 0"),
    ],
)
def test_wrong_bytes_are_refused_with_their_place(run: Runner, data: bytes, named: str) -> None:
    (run.cwd / "in").write_bytes(data)
    for words in (["add", "-"], ["add", "--file", "in"], ["hash-object", "-w", "in"]):
        done = run(*words, stdin=data, code=2)
        assert named in done.err and "hint:" in done.err and done.out == ""
    assert run("ls-refs").out == ""
    assert run("add", "-", stdin=b"good", code=0).out


@pytest.mark.parametrize(
    "text",
    [
        "with a NUL \0 inside",
        "\x1b[2J\x9b",
        "\u202eright to left\u202c",
        "a\r\nb\rc\nd",
        "e\u0301 \u00e9 \ufb01 \U0001f469\u200d\U0001f680",
        "'quotes\" `ticks` $(sub) \\back\\",
        "- starts with a dash",
        "line\n" * 1000,
    ],
)
def test_odd_text_is_kept_byte_for_byte(run: Runner, text: str) -> None:
    found = run.add("-", stdin=text)
    assert run("show", "--raw", found, code=0).raw == text.encode()
    assert run.add("-", stdin=text) == found


def test_no_text_at_all(run: Runner) -> None:
    assert "nothing to add" in run("add", code=2).err
    assert "empty" in run("add", "", code=2).err
    assert run("add", "a", "--file", "x", code=2).out == ""
    assert not run.store.exists() or run("ls-refs").out == ""


def test_words_are_joined_and_a_dash_can_be_text(run: Runner) -> None:
    found = run.add("--", "-x", "two", "words")
    assert run("show", "--raw", found).out == "-x two words"


def test_ten_megabytes_are_taken(run: Runner) -> None:
    text = ("0123456789abcde\n" * 65536 * 10)[: 10 * MIB]
    found = run.add("-", stdin=text)
    assert len(run("show", "--raw", found).raw) == 10 * MIB
    line = "x" * MIB
    done = run("add", "--lines", "--json", stdin=line, code=0).json
    assert done["new"] == 1


def test_seventeen_megabytes_are_refused_naming_the_setting(run: Runner) -> None:
    big = b"x" * (17 * MIB)
    (run.cwd / "big").write_bytes(big)
    for words in (["add", "-"], ["add", "--file", "big"]):
        done = run(*words, stdin=big if "-" in words else None, code=2)
        assert "16,777,216" in done.err and "admission.max_mib" in done.err
    done = run("add", "--lines", "--json", stdin=big + b"\nsmall\n", code=0)
    assert (done.json["rejected"], done.json["new"]) == (1, 1)
    raised = run("--json", "add", "--file", "big", env={"REMEM_ADMISSION_MAX_MIB": "20"}, code=0)
    assert raised.json["status"] == "new"


@pytest.mark.parametrize(
    "words",
    [
        ["add", "-"],
        ["add", "--file", "big"],
        ["revise", "@{last}", "-"],
        ["hash-object", "big"],
        ["hash-object", "-w", "-"],
        ["brief", "-"],
        ["pin", "-"],
        ["task", "set", "key", "-"],
        ["loop", "add", "--topic", "harbour", "-"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_the_limit_of_the_store_counts_for_every_command(run: Runner, words: list[str]) -> None:
    run.add("something that can be revised")
    big = b"word " * 300_000
    (run.cwd / "big").write_bytes(big)
    stdin = big if "-" in words else None
    (run.store / "config.toml").write_text("[admission]\nmax_mib = 1\n")
    done = run(*words, stdin=stdin, code=2)
    assert "1,048,576" in done.err and "admission.max_mib" in done.err
    (run.store / "config.toml").unlink()
    run(*words, stdin=stdin, code=0)


def test_a_file_that_is_not_there(run: Runner) -> None:
    for words in (["add", "--file", "no/such"], ["import", "text", "no/such"]):
        done = run(*words)
        assert done.code in (2, 5) and "no/such" in done.err
        assert "no such file" in done.err
    assert run("add", "--file", str(run.cwd)).code in (2, 5)


def test_a_broken_line_is_named_and_the_others_are_kept(run: Runner) -> None:
    lines = [json.dumps({"text": f"line {n}"}) for n in range(1, 1001)]
    lines[996] = '{"text": "broken'
    data = "\ufeff" + "\r\n".join(lines) + "\r\n\r\n"
    done = run("import", "jsonl", "-", "--json", "--no-index", stdin=data, code=0)
    value = done.json
    total = sum(value[k] for k in ("new", "known", "skipped", "blocked", "rejected"))
    assert value["read"] == total and value["new"] == 999 and value["rejected"] == 1
    assert value["errors"][0]["where"].endswith(":997") and "997" in done.err


def test_an_array_instead_of_lines(run: Runner) -> None:
    done = run("import", "jsonl", "-", "--json", stdin='[{"text": "one"}, {"text": "two"}]', code=0)
    assert (done.json["new"], done.json["rejected"]) == (2, 0)
    done = run("import", "jsonl", "-", "--json", stdin='["not", "an object"]\n', code=0)
    assert (done.json["new"], done.json["rejected"]) == (0, 2)
    assert all(error["why"] for error in done.json["errors"])


def test_what_import_reads_from_a_file_with_wrong_bytes(run: Runner) -> None:
    path = Path(run.cwd / "notes.jsonl")
    path.write_bytes(b'{"text": "good"}\n{"text": "b\xffad"}\n')
    value = run("import", "jsonl", "notes.jsonl", "--json", code=0).json
    assert (value["new"], value["rejected"]) == (1, 1)
    assert "notes.jsonl:2" in value["errors"][0]["where"]


def test_standard_input_is_read_only_when_asked_for(run: Runner) -> None:
    import subprocess

    started = run.start("add", "x", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert started.wait(timeout=20) == 0  # nothing was written to it and it was not closed
    for words in (["log"], ["status"], ["ls-refs"]):
        waiting = run.start(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert waiting.wait(timeout=20) == 0
