"""remem draft: listing, showing and deciding from a script."""

from __future__ import annotations

import pytest

from remem.objects.drafts import Proposal

from .conftest import Runner
from .desk import Desk, claim, laid_out


@pytest.fixture
def desk(run: Runner) -> Desk:
    return laid_out(run)


def test_a_list_of_what_waits(desk: Desk) -> None:
    (row,) = desk.run("draft", "list", code=0).out.splitlines()
    assert row.startswith(desk.draft.hex()[:10]) and "2 of 2 wait" in row
    assert "consolidation" in row and "supersede: deploys go to beta-3" in row
    (value,) = desk.run("draft", "list", "--json", code=0).json
    assert value["id"] == desk.draft.hex() and value["waiting"] == 2
    assert len(desk.run("draft", "list", "--all", "--json", code=0).json) == 2
    assert desk.run("draft", "list", "--collection", "none", code=0).out == ""


def test_one_draft_with_all_that_it_would_change(desk: Desk) -> None:
    shown = desk.run("draft", "show", desk.draft.hex()[:9], code=0).out
    for words in (
        "made by consolidate 1",
        "1  supersede, waits, by consolidation",
        "claim:    deploys go to beta-3",
        "old:      deploys go to alpha-9",
        "evidence:",
        "2  new, waits",
    ):
        assert words in shown
    only = desk.run("draft", "show", desk.draft.hex(), "2", "--json", code=0).json
    assert [op["operation"] for op in only["operations"]] == [2]
    assert only["operations"][0]["text"] == "lunch is at noon"
    assert desk.run("draft", "show", desk.draft.hex(), "9").code == 1


def test_approving_some_and_denying_others(desk: Desk) -> None:
    draft = desk.draft.hex()
    assert desk.run("draft", "approve", draft, "1", code=0).out == "1 approved\n"
    denied = desk.run("draft", "deny", draft, "--critique", "not now", "--json", code=0).json
    assert denied == [{"number": 2, "verdict": "denied", "why": None}]
    assert desk.texts() == ["deploys go to beta-3"]
    assert "critique: not now" in desk.run("draft", "show", draft, code=0).out
    again = desk.run("draft", "approve", draft, "1")
    assert again.code == 3 and "approved already" in again.err
    assert desk.run("draft", "approve", draft).code == 3  # nothing waits any more
    assert desk.run("draft", "list", code=0).out == ""
    desk.check()


def test_a_stale_operation_exits_3_and_says_why(desk: Desk) -> None:
    target = desk.read().operations[0].target
    assert target is not None
    desk.run("revise", target.hex(), "deploys go to gamma-4", code=0)
    draft = desk.draft.hex()
    assert "stale:    its target" in desk.run("draft", "show", draft, code=0).out
    result = desk.run("draft", "approve", draft, code=3)
    assert result.out.splitlines()[0].startswith("1 stale: its target")
    assert result.out.splitlines()[1] == "2 approved"
    assert "not applied" in result.err
    assert desk.texts() == ["deploys go to gamma-4", "lunch is at noon"]
    assert (
        desk.run("draft", "resubmit", draft, "1", code=0).out == "1 waits again, attempt 2 of 3\n"
    )
    desk.run("draft", "approve", draft, code=0)
    assert desk.texts() == ["deploys go to beta-3", "lunch is at noon"]


def test_other_words(desk: Desk) -> None:
    draft = desk.draft.hex()
    desk.run("draft", "deny", draft, "2", code=0)
    same = desk.run("draft", "resubmit", draft, "2", code=3)
    assert "--text" in same.err
    desk.run("draft", "resubmit", draft, "2", "--text", "people eat at noon", code=0)
    desk.run("draft", "approve", draft, "2", "--text", "people eat at twelve", code=0)
    assert "people eat at twelve" in desk.texts()


def test_the_limit_is_a_setting(desk: Desk) -> None:
    draft = desk.draft.hex()
    desk.run("config", "set", "review.attempts", "2", code=0)
    desk.run("draft", "deny", draft, "2", code=0)
    again = desk.run("draft", "resubmit", draft, "2", "--text", "people eat at noon", code=0)
    assert "attempt 2 of 2" in again.out
    desk.run("draft", "deny", draft, "2", code=0)
    last = desk.run("draft", "resubmit", draft, "2", "--text", "lunch: noon", code=3)
    assert "proposed 2 times" in last.err and "review.attempts" in last.err


@pytest.mark.parametrize(
    "words",
    [
        ["draft", "list", "abcdef0"],
        ["draft", "show"],
        ["draft", "rename", "abcdef0"],
        ["draft", "show", "abcdef0", "--critique", "x"],
        ["draft", "deny", "abcdef0", "--text", "x"],
        ["draft", "approve", "abcdef0", "--all"],
        ["draft", "resubmit", "abcdef0"],
        ["draft", "approve", "abcdef0", "1", "2", "--text", "x"],
    ],
)
def test_words_that_make_no_sense(desk: Desk, words: list[str]) -> None:
    assert desk.run(*words).code == 2


def test_a_number_that_is_none(desk: Desk) -> None:
    assert desk.run("draft", "approve", desk.draft.hex(), "one").code == 2


def test_what_is_no_draft(desk: Desk) -> None:
    assert desk.run("draft", "show", desk.held.hex()).code == 1
    result = desk.run("show", desk.draft.hex())
    assert result.code == 1 and "is a draft" in result.err and "remem draft show" in result.err
    assert desk.run("why", desk.draft.hex()).code == 1
    assert desk.run("cat-object", desk.draft.hex(), "--type", code=0).out.strip() == "draft"
    kept = desk.run("cat-object", desk.draft.hex(), code=0).json
    assert kept["status"] == "pending" and len(kept["object"]["operations"]) == 2
    refs = {r["ref"]: r["type"] for r in desk.run("ls-refs", "--all", "--json", code=0).json}
    assert refs[desk.draft.hex()] == "draft"
    assert "draft" in desk.run("count-objects", code=0).out


def test_stored_control_characters_are_escaped(desk: Desk) -> None:
    seen = desk.say("a bell \x07 and \x1b[31mred")
    made = desk.propose(Proposal(action="new", memory=claim("red \x1b[31mbell\x07", seen)))
    for words in (("list",), ("show", made.hex())):
        out = desk.run("draft", *words, code=0).out
        assert "\x1b" not in out and "\x07" not in out and "\\x1b[31m" in out


def test_forgetting_what_a_draft_rests_on(desk: Desk) -> None:
    draft = desk.draft.hex()
    desk.run("draft", "deny", draft, "2", "--critique", "zanzibar", code=0)
    (lunch,) = desk.read().operations[1:]
    claimed = lunch.proposed
    assert claimed is not None
    result = desk.run("forget", claimed.hex(), "--now", "--json", code=0).json
    assert result["drafts"] == [draft]
    (left,) = desk.run("draft", "list", "--json", code=0).json
    assert left["id"] != draft and [op["operation"] for op in left["operations"]] == [1]
    for path in desk.run.store.rglob("*"):
        if path.is_file():
            assert b"zanzibar" not in path.read_bytes(), path
    desk.run("verify", code=0)


def test_a_draft_stays_out_of_what_reads(desk: Desk) -> None:
    for words in (["recall", "beta-3"], ["context", "beta-3"], ["about", "beta-3"]):
        out = desk.run(*words).out
        assert "deploys go to beta-3" not in out
    out = desk.run("recall", "deploys", "--include", "pending", code=0).out
    assert "deploys go to beta-3" in out
