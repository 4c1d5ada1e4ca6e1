"""On a terminal: colour and tables, and none of them when they are not wanted."""

from __future__ import annotations

import os
import pty
import select
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.cli import render
from remem.cli.plain import one_line, visible

from .conftest import REMEM, Runner


def on_terminal(run: Runner, *words: str, **env: str) -> str:
    """What a command writes to a terminal of 80 columns."""
    child, master = pty.fork()
    if child == 0:
        try:
            os.chdir(run.cwd)
            given_env = run.environment({"TERM": "xterm-256color", "COLUMNS": "80", **env})
            os.execve(sys.executable, [*REMEM, *words], given_env)
        finally:
            os._exit(127)
    found = bytearray()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        found += data
    os.waitpid(child, 0)
    os.close(master)
    return found.decode()


def test_a_table_on_a_terminal(filled: Runner) -> None:
    shown = on_terminal(filled, "log")
    assert "\x1b[" in shown and "recorded" in shown
    assert "\x1b[31mred" not in shown and "\x07" not in shown and "\u202e" not in shown
    lines = [line for line in shown.replace("\r", "").split("\n") if line]
    assert len(lines) == 5  # a heading and four entries: nothing is wrapped


@pytest.mark.parametrize(
    ("words", "env"),
    [
        (["log"], {"NO_COLOR": "1"}),
        (["log", "--no-color"], {}),
        (["log"], {"REMEM_NO_COLOR": "true"}),
        (["log", "--json"], {}),
        (["show", "@{last}", "--session", "later"], {"NO_COLOR": "1"}),
    ],
)
def test_no_colour_where_it_is_not_wanted(
    filled: Runner, words: list[str], env: dict[str, str]
) -> None:
    assert "\x1b" not in on_terminal(filled, *words, **env)


def test_json_is_the_same_on_a_terminal(filled: Runner) -> None:
    assert on_terminal(filled, "log", "--json").replace("\r", "") == filled("log", "--json").out


def test_a_pipe_gets_neither_colour_nor_headings(filled: Runner) -> None:
    out = filled("log", env={"TERM": "xterm-256color", "FORCE_COLOR": "1"}).out
    assert "\x1b" not in out and "recorded" not in out and len(out.splitlines()) == 4


def test_doctor_colours_levels_on_a_terminal(filled: Runner) -> None:
    (filled.store / "spool").chmod(0o755)
    shown = on_terminal(filled, "doctor")
    assert "\x1b[33mwarn" in shown
    together = "".join(shown.split())  # a remedy is folded in a narrow terminal, never cut
    assert f"chmod-Rgo={filled.store}" in together


# -- plain text ---------------------------------------------------------------------------------


@given(st.text())
def test_visible_text_holds_nothing_that_a_terminal_acts_on(text: str) -> None:
    shown = visible(text)
    for char in shown:
        code = ord(char)
        assert char in "\n\t" or (code >= 0x20 and not 0x7F <= code <= 0x9F)
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2069\u2028")
    if all(c.isprintable() or c in "\n\t" for c in text):
        assert shown == text or not shown.isascii()


@given(st.text(), st.integers(2, 40))
def test_one_line_is_one_line_and_no_wider(text: str, width: int) -> None:
    shown = one_line(text, width)
    assert len(shown) <= width
    assert "\n" not in shown and "\t" not in shown
    assert one_line(text).startswith(shown.rstrip("\u2026").rstrip()[:1])


@given(st.lists(st.lists(st.text("abc\u65e5 ", max_size=6), min_size=3, max_size=3), max_size=6))
def test_columns_are_aligned_and_nothing_is_cut(rows: list[list[str]]) -> None:
    lines = render.plain_lines(rows, frozenset((1,)))
    assert len(lines) == len(rows)
    for row, line in zip(rows, lines, strict=True):
        assert line == line.rstrip()
        for cell in row:
            assert cell.strip() in line
    starts = set()
    for row, line in zip(rows, lines, strict=True):
        if row[2].strip() and row[2] == row[2].strip():
            starts.add(render.width(line) - render.width(row[2]))
    assert len(starts) <= 1


def test_the_width_of_a_text_in_columns() -> None:
    assert render.width("abc") == 3
    assert render.width("\u65e5\u672c") == 4
    assert render.width("e\u0301") == 1
