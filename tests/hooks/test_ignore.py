"""Ignore files: git's own reading of the same patterns, and what is added for commands."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from remem.hooks.ignore import Ignore, parse

PATTERNS = [
    "build/",
    "build",
    "/build",
    "a/b",
    "/a/b/",
    "**/deep",
    "a/**",
    "a/**/deep",
    "*.d",
    "b?ild",
    "b[a-u]ild",
    "b[!x]ild",
    "b[]u]ild",
    "# build",
    "\\#name",
    "\\!name",
    "*\n!build",
    "build\n!build",
    "/*\n!/a",
    "name with blank",
    "trailing  ",
    "keep\\ ",
    "**",
    "a*d",
    "b\\*",
    "[",
    "x/../build",
    "a/**/**/deep",
    "**/a/**/deep",
    "**/**/deep",
    "a/**b",
    "*/b/*",
    "o*h*r/d**p",
    "*b*d*",
    "**/",
    "a/***",
]
FOLDERS = [
    "build",
    "a/b",
    "a/b/deep",
    "a/build",
    "x.d",
    "x.d/y",
    "#name",
    "!name",
    "name with blank",
    "trailing",
    "b*",
    "abcd",
    "other/deep",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_folders_as_git_reads_them(tmp_path: Path, pattern: str) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text(pattern + "\n")
    (tmp_path / ".rememignore").write_text(pattern + "\n")
    ignore = Ignore()
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        # Git does not go below a folder that is ignored; asked for each folder above, so do we.
        above = [str(p) for p in (Path(folder), *Path(folder).parents) if str(p) != "."]
        asked = [
            subprocess.run(
                ["git", "check-ignore", "-q", "--no-index", name], cwd=tmp_path, check=False
            ).returncode
            for name in above
        ]
        assert ignore.folder(str(tmp_path / folder)) == (0 in asked), folder


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("cmd: " + "*a" * 50 + "*b", "a" * 100_000),
        ("*a" * 50 + "*b", "a" * 255),
        ("x/" + "**/a/" * 50 + "b", "x/" + "a/" * 1000 + "c"),
        ("/**" * 50 + "/*b", "a/" * 1000 + "c"),
    ],
)
def test_no_pattern_takes_long(line: str, text: str) -> None:
    rule = parse(line)
    assert rule is not None
    began = time.process_time()
    assert rule.pattern.fullmatch(text) is None
    assert rule.pattern.fullmatch(text[:-1] + "b") is not None
    assert time.process_time() - began < 2


def test_a_file_that_is_too_large_ignores_everything(tmp_path: Path) -> None:
    (tmp_path / ".rememignore").write_text("nothing\n" * 100)
    assert not Ignore().folder(str(tmp_path))
    (tmp_path / ".rememignore").write_text("nothing\n" * 10_000)
    assert Ignore().folder(str(tmp_path))


def test_an_empty_file_ignores_all_below_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / ".rememignore").write_text("# nothing\n")
    assert not Ignore().folder(str(tmp_path / "a"))
    for text in ("", "\n", " \n"):
        (tmp_path / "a" / ".rememignore").write_text(text)
        ignore = Ignore()
        found = [ignore.folder(str(tmp_path / name)) for name in ("a", "a/b", "a/gone", ".", "c")]
        assert found == [True, True, True, False, False]


def test_nearer_files_win(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".rememignore").write_text("b\nc\n")
    (tmp_path / "a" / ".rememignore").write_text("!b\n")
    ignore = Ignore()
    found = [ignore.folder(str(tmp_path / name)) for name in ("a", "a/b", "a/c", "b")]
    assert found == [False, False, True, True]


def test_commands(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".rememignore").write_text("cmd: ssh *\n!cmd:ssh known?*\ncmd: *password*\n")
    ignore = Ignore()
    here = str(tmp_path / "sub")
    hidden = [
        "ssh host",
        "ssh\thost".replace("\t", " "),
        "set password",
        "  ssh host  ",
        "ssh a\nb",
    ]
    for text in hidden:
        assert ignore.command(here, text), text
    for text in ["ssh known1", "sshd", "git ssh x", "echo ssh", "ls"]:
        assert not ignore.command(here, text), text
    assert not ignore.command(str(tmp_path.parent), "ssh host")


def test_a_file_that_cannot_be_read_ignores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".rememignore").write_text("nothing\n")
    assert not Ignore().folder(str(tmp_path))

    def fail(*_: object, **__: object) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr("builtins.open", fail)
    assert Ignore().folder(str(tmp_path))
