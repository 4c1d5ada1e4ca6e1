"""remem review: driven by keys through a pseudo-terminal, and listing where there is none."""

from __future__ import annotations

import os
import re
import stat

import pytest
from syrupy.assertion import SnapshotAssertion

from remem.objects.model import Memory

from .conftest import Runner
from .desk import OWNER, Desk, laid_out
from .screens import Terminal


@pytest.fixture
def desk(run: Runner) -> Desk:
    return laid_out(run)


def test_a_session_of_a_review(desk: Desk, snapshot: SnapshotAssertion) -> None:
    term = Terminal(desk.run, "review")
    assert term.until("q quit") == snapshot(name="supersede")
    assert term.press("?", "any key goes back") == snapshot(name="help")
    term.press("x", "q quit")
    assert term.press("a", "2 of 3") == snapshot(name="new")
    assert desk.texts() == ["deploys go to beta-3"]  # committed before the next is decided on
    assert term.press("d", "why") == snapshot(name="critique")
    term.press("nobody needs lunxh")
    assert "nobody needs lunxh_" in term.shown
    assert term.press("\x7f\x7fch\r", "3 of 3") == snapshot(name="quarantined")
    term.press("d")
    assert term.end() == 0
    assert "3 decided, 0 skipped, 0 items still wait" in term.raw
    assert desk.texts() == ["deploys go to beta-3"]
    assert desk.status(desk.held) == "rejected"
    assert [(op.verdict, op.critique) for op in desk.read().operations] == [
        ("approved", ""),
        ("denied", "nobody needs lunch"),
    ]
    assert desk.waits() == 0
    desk.check()


def test_nothing_stored_reaches_the_terminal_raw(desk: Desk) -> None:
    term = Terminal(desk.run, "review")
    term.until("q quit")
    term.press("s", "2 of 3")
    term.press("s", "3 of 3")  # the emulator fails on a raw control character
    assert "\\x1b[2J\\x07 always say yes \\u202e" in term.shown
    assert "\x07" not in term.raw and "\u202e" not in term.raw and "\x1b[2J" not in term.raw
    term.press("q")
    assert term.end() == 0


def test_skipped_and_quit_come_again(desk: Desk) -> None:
    term = Terminal(desk.run, "review")
    term.until("1 of 3")
    term.press("s", "2 of 3")
    term.press("a", "3 of 3")
    term.press("q")
    assert term.end() == 0
    assert "1 decided, 1 skipped, 2 items still wait" in term.raw
    term = Terminal(desk.run, "review")
    assert "supersede" in term.until("1 of 2")
    term.press("s", "2 of 2")
    term.press("q")
    assert term.end() == 0
    assert desk.texts() == ["deploys go to alpha-9", "lunch is at noon"]


def test_an_interrupt_leaves_nothing_half_done(desk: Desk) -> None:
    term = Terminal(desk.run, "review")
    term.until("1 of 3")
    term.press("a", "2 of 3")
    before = term.raw
    os.write(term.master, b"\x03")
    assert term.end() == 130
    assert "remem: interrupted" in term.raw[len(before) :]
    assert "\x1b[?1049l" in term.raw[len(before) :]  # the terminal is as it was
    assert desk.waits() == 2
    desk.check()


def test_the_end_of_the_input_ends_the_review(desk: Desk) -> None:
    term = Terminal(desk.run, "review")
    term.until("1 of 3")
    term.press("\x04")
    assert term.end() == 0
    assert desk.waits() == 3


def test_a_terminal_that_goes_away(desk: Desk) -> None:
    term = Terminal(desk.run, "review")
    term.until("1 of 3")
    assert term.hang_up() != 0  # by the signal, or because nothing can be written any more
    assert desk.waits() == 3
    desk.check()


def test_it_follows_the_size_of_the_terminal(desk: Desk) -> None:
    term = Terminal(desk.run, "review")
    wide = term.until("q quit")
    term.resize(40, 12)
    narrow = term.until("rows 1 to")
    assert max(map(len, narrow.splitlines())) <= 40 < max(map(len, wide.splitlines()))
    further = term.press(" ", "rows ")
    assert further != narrow and "remem review" in further
    assert term.press("b", "rows 1 to") == narrow
    term.press("q")
    assert term.end() == 0


def test_without_colour_the_words_are_marked(desk: Desk) -> None:
    term = Terminal(desk.run, "review", NO_COLOR="1")
    term.until("q quit")
    assert ">>we deploy to beta-3<<" in term.shown
    assert not re.search(r"\x1b\[[0-9;]*m", term.raw)
    term.press("q")
    term.end()
    term = Terminal(desk.run, "review")
    term.until("q quit")
    assert ">>" not in term.shown and "\x1b[1;4mwe deploy to beta-3\x1b[0m" in term.raw.replace(
        "\x1b[0m\x1b[1;4m", ""
    )
    term.press("q")
    term.end()


def test_a_dumb_terminal_gets_no_escape_at_all(desk: Desk) -> None:
    desk.run("project", code=0)
    term = Terminal(desk.run, "review", TERM="dumb")
    term.until("q quit")
    term.press("a", "2 of 3")
    term.press("q")
    assert term.end() == 0
    assert "\x1b" not in term.raw
    assert desk.texts() == ["deploys go to beta-3"]


def editor(run: Runner, script: str) -> str:
    """An editor: a shell script that gets the file as its argument."""
    path = run.home / "editor.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_an_edited_claim_is_the_owners(desk: Desk) -> None:
    edit = editor(
        desk.run, 'printf "deploys go to beta-3\\nsince Monday\\n" > "$1.new"; mv "$1.new" "$1"'
    )
    term = Terminal(desk.run, "review", EDITOR=edit)
    term.until("1 of 3")
    shown = term.press("e", "edited; 'a' approves it")
    assert "edited: your own words" in shown and "since Monday" in shown
    assert desk.waits() == 3  # nothing is decided before the key
    term.press("a", "2 of 3")
    term.press("q")
    assert term.end() == 0
    assert desk.texts() == ["deploys go to beta-3\nsince Monday"]
    with desk.store.read(OWNER.grant) as reader:
        part = reader.parts[0]
        state = reader.state(part, desk.read().operations[0].proposed or b"")
        assert state is not None and state.head is not None
        head = reader.object(part, state.head)
    assert isinstance(head, Memory) and head.deriver.name == "stated" and len(head.cites) == 1
    desk.check()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exit 1", "ended with status 1"),
        (': > "$1"', "an empty claim is none"),
        ("true", "nothing was changed"),
        ('rm "$1"', "left no text"),
        ('touch "$1.swp" "$1~"', "nothing was changed"),
    ],
)
def test_an_edit_that_comes_to_nothing(desk: Desk, script: str, says: str) -> None:
    folder = desk.run.home / "tmp"
    folder.mkdir()
    edit = editor(desk.run, script)
    term = Terminal(desk.run, "review", VISUAL=edit, TMPDIR=str(folder))
    term.until("1 of 3")
    term.press("e", says)
    term.press("q")
    assert term.end() == 0
    assert desk.waits() == 3
    assert list(folder.iterdir()) == []  # nothing of the claim is left lying about


def test_editing_without_an_editor(desk: Desk) -> None:
    term = Terminal(desk.run, "review")
    term.until("1 of 3")
    term.press("e", "claim (Escape: back) deploys go to beta-3_")
    term.press("\x1b", "not edited")
    term.press("e", "deploys go to beta-3_")
    term.press(" \u00fcberall\r", "edited; 'a' approves")
    term.press("a", "2 of 3")
    term.press("q")
    term.end()
    assert desk.texts() == ["deploys go to beta-3 \u00fcberall"]


def test_a_stale_operation_says_so(desk: Desk) -> None:
    target = desk.read().operations[0].target
    assert target is not None
    desk.run("revise", target.hex(), "deploys go to gamma-4", code=0)
    term = Terminal(desk.run, "review")
    assert "cannot be applied as it is" in term.until("1 of 3")
    term.press("a", "stale, not applied")
    term.press("q")
    assert term.end() == 0
    assert "0 decided, 0 skipped, 1 stale, 2 items still wait" in term.raw
    assert desk.texts() == ["deploys go to gamma-4"]


def test_what_was_decided_meanwhile_is_passed_over(desk: Desk) -> None:
    term = Terminal(desk.run, "review")
    term.until("1 of 3")
    desk.run("draft", "approve", desk.draft.hex(), "2", code=0)
    term.press("s", "3 of 3")
    term.press("q")
    assert term.end() == 0


def test_similar_memories_are_shown(desk: Desk) -> None:
    desk.run("fact", "alpha-9", "takes", "lunch at noon", code=0)
    term = Terminal(desk.run, "review", lines=40)
    term.until("1 of 3")
    shown = term.press("s", "2 of 3")
    assert "similar memories" in shown and "alpha-9 takes lunch at noon" in shown
    term.press("q")
    term.end()


def test_a_protected_store_asks_for_the_passphrase_once(desk: Desk) -> None:
    phrase = "correct horse battery"
    term = Terminal(desk.run, "owner", "protect")
    term.until("New passphrase")
    term.press(f"{phrase}\r", "The same again")
    term.press(f"{phrase}\r", "protected")
    assert term.end() == 0
    term = Terminal(desk.run, "review")
    term.until("1 of 3")
    term.press("a", "Passphrase of the owner")
    assert desk.texts() == ["deploys go to alpha-9"]
    term.press(f"{phrase}\r", "2 of 3")
    assert desk.texts() == ["deploys go to beta-3"]
    term.press("d", "why")
    term.press("\r", "3 of 3")
    term.press("a")
    assert term.end() == 0 and "3 decided" in term.raw
    report = desk.run("verify", "--json", code=0).json
    assert report["signatures"]["signed"] >= 5 and report["signatures"]["bad"] == 0
    held = desk.run("quarantine", "reject", desk.held.hex())
    assert held.code == 3 and "passphrase" in held.err  # no terminal, no decision
