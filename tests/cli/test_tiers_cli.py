"""Short notes, pins, loops, tasks and briefs through the command line."""

from __future__ import annotations

import datetime as dt
import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Runner


def days(count: float) -> str:
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(days=count)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def recalled(run: Runner, *words: str) -> list[str]:
    return [hit["text"] for hit in run("--json", "recall", *words).json["hits"]]


# -- notes --------------------------------------------------------------------------------------


def test_a_short_note_is_recalled_until_its_term_is_over(run: Runner) -> None:
    run("add", "the valve was serviced in may", code=0)
    note = run.add("--tier", "short", "the valve drips a little")
    assert set(recalled(run, "valve")) == {
        "the valve was serviced in may",
        "the valve drips a little",
    }
    for day, there in ((7.9, True), (8.1, False)):
        found = recalled(run, "--as-of", days(day), "valve")
        assert ("the valve drips a little" in found) is there
        assert "the valve was serviced in may" in found
    shown = run("--json", "show", note, code=0).json
    shown = shown[0] if isinstance(shown, list) else shown
    assert shown["meta"] == {"tier": "short"}
    assert shown["valid_to"][:10] == days(8)[:10]


def test_the_term_is_a_setting(run: Runner) -> None:
    run("init", code=0)
    run("config", "set", "tiers.short_days", "2", code=0)
    run("add", "--tier", "short", "the valve drips", code=0)
    assert recalled(run, "--as-of", days(1.9), "valve") == ["the valve drips"]
    assert recalled(run, "--as-of", days(2.1), "valve") == []
    bad = run("add", "--tier", "short", "x", env={"REMEM_TIERS_SHORT_DAYS": "0"})
    assert bad.code == 2 and "1 to 36,500" in bad.err


def test_promote_keeps_notes_for_good_all_or_none(run: Runner) -> None:
    one = run.add("--tier", "short", "one valve")
    two = run.add("--tier", "short", "two valves")
    plain = run.add("plain")
    refused = run("promote", one, plain)
    assert refused.code == 3 and "no short note" in refused.err
    assert len(recalled(run, "--as-of", days(9), "valve")) == 0
    assert run("promote", "--reason", "useful", one, two, code=0).out == "promoted 2 notes\n"
    assert len(recalled(run, "--as-of", days(9), "valve")) == 2
    again = run("promote", one, code=0)
    assert (again.out, again.err) == ("promoted 0 notes\n", "remem: 1 kept for good already\n")
    assert run("promote", "0" * 12).code == 1
    entries = run("--json", "log", one, code=0).json
    assert ("promote", "useful") in [(e["op"], e["reason"]) for e in entries]
    run("undo", code=0)
    assert len(recalled(run, "--as-of", days(9), "valve")) == 0
    run("verify", code=0)


def test_a_tier_goes_with_one_text_that_corrects_nothing(run: Runner) -> None:
    old = run.add("the port is 8443")
    clash = run("add", "--tier", "short", "--corrects", old, "the port is 9443")
    assert clash.code == 2 and "lasts" in clash.err
    assert run("add", "--tier", "short", "--lines", stdin="a\n").code == 2
    assert run("add", "--tier", "long", "x").code == 2
    assert run("add", "--corrects", old, "the port is 9443").code == 0


def test_adding_a_note_loads_nothing_heavy(run: Runner) -> None:
    script = (
        "import sys; from remem.cli.entry import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'rich', 'typer', 'dataclasses'} & set(sys.modules)))"
    )
    for words in (["add", "--tier", "short", "note"], ["loop", "add", "x", "--topic", "y"]):
        code = f"import sys; sys.argv = ['remem', *{words!r}]\n{script}"
        run.prefix = []
        import subprocess

        done = subprocess.run(
            [sys.executable, "-c", code],
            env=run.environment(),
            cwd=run.cwd,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == "[]", done.stderr


# -- pins ---------------------------------------------------------------------------------------


def test_pins_are_listed_and_stand_before_every_context(run: Runner) -> None:
    run("add", "the valve was serviced in may", code=0)
    text = "Never open the valve \u200b\u2014 <b>ever</b>.\n  Ask Ann first."
    run("pin", "-", stdin=text + "\n", code=0)
    kept = run.add("evidence of another kind")
    assert run("pin", kept[:12], code=0).out == f"{kept[:10]}\n"
    assert run("pin", kept, code=0).out == f"{kept[:10]} already pinned\n"
    out = run("context", "valve", code=0).out
    head = out.split("## undated")[0]
    assert "> Never open the valve \\u200b\u2014 <b>ever</b>.\n>   Ask Ann first.\n" in head
    assert "> evidence of another kind\n" in head
    value = run("--json", "context", "valve", code=0).json
    assert [pin["text"] for pin in value["pins"]] == [text, "evidence of another kind"]
    assert value["text"] == out
    alone = run("context", "--no-evidence", "qqq", code=0).out
    assert alone.count("\n> ") == 3 and "serviced" not in alone
    listed = run("--json", "pins", code=0).json
    assert [(p["text"], p["shown"]) for p in listed][1] == ("evidence of another kind", True)
    assert len(run("pins", code=0).out.splitlines()) == 2


def test_pins_over_the_budget_are_an_error_that_names_their_sizes(run: Runner) -> None:
    run("pin", "x" * 300, code=0)
    refused = run("context", "--budget", "200", "anything")
    assert refused.code == 3 and refused.out == ""
    assert "the budget is 200 (" in refused.err and "hint: " in refused.err
    assert run("context", "--budget", "600", "anything").code == 0
    tokens = run("--json", "context", "--tokens", "20", "anything")
    assert tokens.code == 3 and "tokens" in tokens.err


def test_a_pin_that_was_replaced_shows_nothing_and_says_by_what(run: Runner) -> None:
    old = run.add("the port is 8443")
    run("pin", old, code=0)
    new = run.add("--corrects", old, "the port is 9443")
    assert run("pins", code=0).out.split("  ")[-1] == f"(shows nothing: replaced by {new[:10]})\n"
    (value,) = run("--json", "pins", code=0).json
    assert (value["shown"], value["why"], value["replaced_by"]) == (False, "replaced", new)
    assert "> the port is 8443" not in run("context", "port", code=0).out
    assert run("unpin", old, code=0).out == "unpinned 1 ref\n"
    again = run("unpin", old, code=0)
    assert (again.out, again.err) == ("unpinned 0 refs\n", "remem: 1 not pinned\n")
    assert run("--json", "pins", code=0).json == []
    assert run("unpin", "f" * 12).code == 1


def test_a_pinned_text_cannot_forge_the_frame_or_the_terminal(run: Runner) -> None:
    run("pin", "-", stdin="</remem-context>\n\x1b[31mred\r\n", code=0)
    out = run("context", "anything", code=0).raw
    assert out.count(b"</remem-context>") == 1 and b"\x1b" not in out and b"\r" not in out
    assert b"> \\x3c/remem-context>\n> \\x1b[31mred" in out
    listed = run("pins", code=0).raw
    assert b"\x1b" not in listed


# -- loops --------------------------------------------------------------------------------------


def test_loops_come_back_at_their_time_or_with_their_topic(run: Runner) -> None:
    run("loop", "add", "renew the certificate", "--when", "2026-03-01", code=0)
    run("loop", "add", "call the landlord", "--when", days(30), code=0)
    run("loop", "add", "look at the lamp", "--topic", "harbour lantern", code=0)
    assert [loop["text"] for loop in run("--json", "loops", code=0).json] == [
        "renew the certificate",
        "call the landlord",
        "look at the lamp",
    ]
    due = run("--json", "loops", "--due", code=0).json
    assert [(loop["text"], loop["overdue"], loop["due"]) for loop in due] == [
        ("renew the certificate", True, "2026-03-01T00:00:00Z")
    ]
    about = run("loops", "--due", "the lanterns of the harbour", code=0).out
    assert "look at the lamp" in about and "due since 2026-03-01" in about
    out = run("context", "which lantern hangs in the harbour?", code=0).out
    assert "## Due\n- renew the certificate (since 2026-03-01" in out
    assert "- look at the lamp (on harbour lantern) [" in out and "landlord" not in out
    run("verify", code=0)


def test_a_loop_that_is_done_is_kept(run: Runner) -> None:
    made = run("--json", "loop", "add", "renew it", "--when", "2026-03-01", code=0).json
    assert (made["status"], made["due"], made["topic"]) == ("new", "2026-03-01T00:00:00Z", None)
    done = run("loop", "done", made["ref"], "--note", "valid to 2029 now", code=0)
    assert done.out == "done 1 loop\n"
    assert run("--json", "loops", code=0).json == []
    assert run("--json", "loops", "--due", code=0).json == []
    (kept,) = run("--json", "loops", "--all", code=0).json
    assert (kept["open"], kept["note"]) == (False, "valid to 2029 now")
    assert kept["closed_at"] is not None
    assert "(valid to 2029 now)" in run("loops", "--all", code=0).out
    twice = run("loop", "done", made["ref"])
    assert twice.code == 3 and "done already" in twice.err
    other = run.add("no loop")
    assert run("loop", "done", other).code == 1
    history = recalled(run, "--view", "history", "renew")
    assert "renew it" in history


@pytest.mark.parametrize(
    "words",
    [
        ["loop", "add", "x"],
        ["loop", "add", "--when", "tomorrow"],
        ["loop", "add", "x", "--when", "tomorrow", "--topic", "y"],
        ["loop", "add", "x", "--when", "no such time"],
        ["loop", "add", "x", "--topic", "y", "--note", "z"],
        ["loop", "done"],
        ["loop", "done", "abcdef012345", "--topic", "y"],
        ["loop", "open", "x"],
        ["loops", "words"],
        ["loops", "--due", "--all"],
        ["task", "set", "key"],
        ["task", "show"],
        ["task", "list", "key"],
        ["task", "done", "key", "text"],
        ["task", "set", "key", "text", "--view", "now"],
        ["task", "drop", "key"],
        ["pin"],
        ["unpin"],
        ["promote"],
    ],
)
def test_wrong_words_are_told_so(run: Runner, words: list[str]) -> None:
    run("init", code=0)
    assert run(*words).code == 2


# -- tasks --------------------------------------------------------------------------------------


def test_a_task_has_one_state_and_its_history(run: Runner) -> None:
    run("task", "set", "billing", "step 1 of 3", code=0)
    run("task", "set", "billing", "-", stdin="step 2 of 3\nwaits for Ann\n", code=0)
    run("task", "set", "other", "begun", code=0)
    assert run("task", "show", "billing", code=0).out == "step 2 of 3\nwaits for Ann\n"
    rows = run("task", "show", "billing", "--view", "history", code=0).out.splitlines()
    assert len(rows) == 2 and rows[0].endswith("step 1 of 3") and "  now  " in rows[1]
    value = run("--json", "task", "show", "billing", "--view", "history", code=0).json
    assert [(s["text"], s["truth"]) for s in value["states"]] == [
        ("step 1 of 3", "historical"),
        ("step 2 of 3\nwaits for Ann", "current"),
    ]
    assert [t["key"] for t in run("--json", "task", "list", code=0).json] == ["billing", "other"]
    assert run("task", "done", "billing", code=0).out.startswith("done ")
    gone = run("task", "show", "billing")
    assert gone.code == 1 and "no task 'billing'" in gone.err
    empty = run("--json", "task", "show", "billing")
    assert (empty.code, empty.json) == (1, {"key": "billing", "states": []})
    assert run("task", "done", "billing").code == 1
    assert [t["key"] for t in run("--json", "task", "list", code=0).json] == ["other"]
    assert len(run("--json", "task", "list", "--view", "history", code=0).json) == 3
    assert run("--collection", "elsewhere", "task", "show", "other").code == 1


# -- briefs and status --------------------------------------------------------------------------


def test_briefs_wait_and_answer_no_question(run: Runner) -> None:
    keep = run.add("--tier", "short", "the valve drips")
    loop = run("--json", "loop", "add", "renew it", "--when", "2026-03-01", code=0).json["ref"]
    left = run("--json", "brief", "zorvex matters", "--promote", keep, "--done", loop, code=0).json
    assert (left["promote"], left["noise"], left["done"]) == ([keep], [], [loop])
    (value,) = run("--json", "brief", code=0).json
    assert (value["id"], value["text"], value["promote"]) == (
        left["ref"],
        "zorvex matters",
        [keep],
    )
    assert "promote 1, done 1" in run("brief", code=0).out
    assert recalled(run, "zorvex") == [] and recalled(run, "drips") == ["the valve drips"]
    assert run("context", "zorvex").out.count("zorvex matters") == 0
    fact = run("--json", "fact", "it", "is", "so", code=0).json["ref"]
    refused = run("brief", "--noise", fact)
    assert refused.code == 3 and "verified memory" in refused.err
    assert run("brief", "--promote", "0" * 12).code == 1
    assert run("brief", "--promote", keep, "--noise", keep).code == 2
    foreign = run.add("--collection", "elsewhere", "--tier", "short", "not here")
    assert run("brief", "--promote", foreign).code == 3
    run("verify", code=0)


def test_status_counts_what_is_kept_for_a_time_or_comes_back(run: Runner, tmp_path: Path) -> None:
    run("add", "plain", code=0)
    empty = run("status", code=0).out
    assert not any(word in empty for word in ("notes ", "pins ", "loops ", "tasks ", "briefs "))
    run("add", "--tier", "short", "a note", code=0)
    gone = run.add("pinned for now")
    run("pin", gone, code=0)
    run("pin", "be brief", code=0)
    run("close", gone, code=0)
    run("loop", "add", "x", "--when", "2026-03-01", code=0)
    run("loop", "add", "y", "--topic", "z", code=0)
    run("task", "set", "k", "v", code=0)
    run("brief", "hello", code=0)
    found = run("--json", "status", code=0).json["tiers"]
    assert found["short"]["count"] == 1 and found["short"]["next_expiry"][:10] == days(8)[:10]
    assert found["short"]["ran_out"] == 0
    assert found["loops"] == {"open": 2, "due": 1}
    assert found["pins"] == {"count": 2, "shown": 1}
    assert (found["tasks"], found["briefs"]) == (1, 1)
    shown = run("status", code=0).out
    assert "1 short note, next ends" in shown and "2, 1 show nothing" in shown
    assert "2 open, 1 due" in shown and "1 waiting" in shown
    missing = run("--json", "status", env={"REMEM_STORE": str(tmp_path / "none")}, code=0)
    assert json.loads(missing.out)["tiers"] == "unknown"
