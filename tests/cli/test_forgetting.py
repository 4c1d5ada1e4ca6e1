"""forget, purge, tombstones, hold, retain: words, answers, exit codes, prompts, JSON."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import sys
import time
from pathlib import Path

import pytest

from .conftest import REMEM, Result, Runner

WORD = "zorvexquark"
TEXT = f"the codeword of the safe is {WORD}-71"


def grep(root: Path, word: str = WORD) -> list[str]:
    """Files below a folder that hold a word: a search of its own."""
    forms = (word.encode(), word.upper().encode(), word.encode("utf-16-le"))
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and any(form in path.read_bytes() for form in forms)
    )


def on_terminal(run: Runner, typed: str, *words: str) -> tuple[int, str]:
    """Exit status and output of a command on a terminal where somebody types."""
    child, master = pty.fork()
    if child == 0:
        try:
            os.chdir(run.cwd)
            os.execve(sys.executable, [*REMEM, *words], run.environment())
        finally:
            os._exit(127)
    seen, told = b"", False
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if not select.select([master], [], [], 0.5)[0]:
            continue
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
        if b"[y/N]" in seen and not told:
            os.write(master, typed.encode())
            told = True
    _, status = os.waitpid(child, 0)
    os.close(master)
    return os.waitstatus_to_exitcode(status), seen.decode()


@pytest.fixture
def secret(run: Runner) -> str:
    """Id of something to forget, in a store with an index and a few other things."""
    run("add", "tea is served at four", code=0)
    run("add", "the safe is green", code=0)
    found = run.add(TEXT)
    run("recall", WORD, code=0)
    return found


# -- forget -------------------------------------------------------------------------------------


def test_forget_by_id(run: Runner, secret: str) -> None:
    done = run("forget", secret[:10], "--reason", "mistake", code=0)
    assert done.out == "forgot 1 observation\n"
    assert done.err == "remem: the bytes wait for 'remem purge'\n"
    again = run("forget", secret, "--json", code=0).json
    assert again == {
        "dry_run": False, "observations": [], "memories": [], "drafts": [], "lost_citation": [],
        "held": [], "known": [secret], "purge": None,
    }  # fmt: skip
    assert run("forget", "0000000", code=1).out == ""
    assert run("forget", "@{last}", code=0).err.startswith("remem: 1 forgotten before\n")


def test_what_was_forgotten_answers_so_everywhere(run: Runner, secret: str) -> None:
    run("forget", secret, "--reason", "mistake", "--quiet", code=0)
    today = time.strftime("%Y-%m-%d", time.gmtime())
    for words in (
        ("show", secret),
        ("show", secret, "--raw"),
        ("show", secret, "--json"),
        ("why", secret),
        ("cat-object", secret),
        ("cat-object", secret, "--bytes"),
        ("revise", secret, "other words"),
        ("close", secret),
        ("add", "other words", "--corrects", secret),
    ):
        done = run(*words, code=3)
        if "--json" in words:
            assert done.json["error"]["kind"] == "forgotten" and WORD not in done.out
        else:
            assert done.out == "", words
        assert WORD not in done.err
        assert f"was forgotten on {today} (mistake)" in done.err, words
    shown = run("log", secret, code=0).out
    assert "erase" in shown and "[mistake]" in shown and WORD not in shown
    entries = run("log", secret, "--json", code=0).json
    assert [e["op"] for e in entries] == ["erase", "create"]
    assert WORD not in run("log", code=0).out
    for words in (("recall", WORD), ("context", WORD), ("recall", WORD, "--view", "history")):
        assert WORD not in run(*words, code=1).out
    assert run("count-objects", "--json", code=0).json["total"]["count"] == 2
    assert WORD not in run("export", "-", code=0).out
    assert run("show", "ffffffff", code=1)  # the control: an unknown id is another answer


def test_forget_needs_one_way_to_name_things(run: Runner, secret: str) -> None:
    for words in (
        (),
        (secret, "--scope-all"),
        ("--query", "x", "--scope-all"),
        (secret, "--query", "x"),
    ):
        assert "give ids, or --query, or --scope-all" in run("forget", *words, code=2).err
    assert "no reason code" in run("forget", secret, "--reason", "my own words", code=2).err
    assert "no word" in run("forget", "--query", "  ", code=2).err
    assert run("show", secret, code=0)


def test_forget_by_query_lists_first_and_needs_yes(run: Runner, secret: str) -> None:
    dry = run("forget", "--query", "THE safe", "--dry-run", code=0)
    assert dry.out.startswith("would forget 2 observations\n") and len(dry.out.splitlines()) == 3
    asked = run("forget", "--query", "THE safe", code=2)
    assert asked.out == "" and "forgets 2 observations" in asked.err and "--yes" in asked.err
    assert run("show", secret, code=0)
    assert run("forget", "--query", "safes", "--yes", code=1).out == ""  # words are whole
    done = run("forget", "--query", "the SAFE", "--yes", "--json", code=0).json
    assert secret in done["observations"] and len(done["observations"]) == 2
    assert run("recall", "tea", code=0).out


def test_dry_run_of_many_is_exact(run: Runner) -> None:
    lines = "\n".join(json.dumps({"text": f"turn {n} on tea"}) for n in range(60))
    run("import", "jsonl", "-", stdin=lines, code=0)
    dry = run("forget", "--query", "tea", "--dry-run", code=0).out
    assert dry.startswith("would forget 60 observations\n") and dry.endswith("  and 50 more\n")
    value = run("forget", "--query", "tea", "--dry-run", "--json", code=0).json
    assert len(value["observations"]) == 60 and value["dry_run"] is True
    assert run("forget", "--query", "tea", "--yes", code=0).out == "forgot 60 observations\n"


def test_a_terminal_is_asked(run: Runner, secret: str) -> None:
    code, seen = on_terminal(run, "n\n", "forget", "--query", WORD)
    assert code == 3 and "forgets 1 observation" in seen and "nothing was changed" in seen
    assert run("show", secret, code=0)
    code, seen = on_terminal(run, "y\n", "forget", "--query", WORD)
    assert code == 0 and "forgot 1 observation" in seen
    code, seen = on_terminal(run, "no\n", "purge")
    assert code == 3 and "for good? [y/N]" in seen
    assert grep(run.store) != []
    code, seen = on_terminal(run, "yes\n", "purge")
    assert code == 0 and "nothing found" in seen
    assert grep(run.store) == []
    code, seen = on_terminal(run, "", "purge")  # nothing waits: nothing is asked
    assert code == 0 and "[y/N]" not in seen


def test_ctrl_c_at_the_question_changes_nothing(run: Runner, secret: str) -> None:
    code, seen = on_terminal(run, "\x03", "forget", "--query", WORD)
    assert code == 130 and "interrupted" in seen
    assert run("show", secret, code=0)


def test_forget_now_purges_at_once(run: Runner, secret: str) -> None:
    waits = run.add(f"another {WORD}-72")
    run("forget", waits, code=0)
    done = run("forget", secret, "--now", code=0)
    lines = done.out.splitlines()
    assert lines[:2] == ["forgot 1 observation", "removed 1 object of 1 observation; generation 2"]
    assert lines[2].endswith(": nothing found")
    assert done.err == ""
    assert len(run("tombstones", "--json", code=0).json) == 2
    value = run("forget", waits, "--now", "--json", code=0).json
    assert value["known"] == [waits] and value["purge"]["removed"] == [waits]
    assert grep(run.store) == []
    assert run("forget", waits, "--now", "--json", code=0).json["purge"] is None


def test_allow_return(run: Runner, secret: str) -> None:
    run("forget", secret, "--allow-return", "--now", code=0)
    assert run("tombstones", "--json", code=0).json[0]["blocks"] is False
    again = run("add", TEXT, "--json", code=0).json
    assert again["status"] == "new" and again["id"] != secret
    assert run("recall", WORD, "--json", code=0).json["hits"][0]["id"] == again["id"]
    run("verify", code=0)


# -- purge --------------------------------------------------------------------------------------


def test_purge_reports_what_it_did(run: Runner, secret: str) -> None:
    assert run("purge", code=0).out == "nothing waits for a purge\n"
    run("forget", secret, code=0)
    dry = run("purge", "--dry-run", code=0)
    assert dry.out == f"would remove the bytes of 1 observation\n  {secret[:10]}\n"
    assert grep(run.store) != []
    value = run("purge", "--json", code=0).json
    scan = value.pop("scan")
    assert value.pop("seconds") > 0
    assert value == {
        "dry_run": False, "removed": [secret], "observations": 1, "memories": 0, "objects": 1,
        "vectors": 0, "spool_lines": 0, "generation": 2, "finished": False, "held": [],
        "backups": [],
    }  # fmt: skip
    assert scan["findings"] == [] and scan["needles"] >= 5 and scan["files"] >= 8
    assert grep(run.store) == []
    assert "were purged on" in run("purge", secret, code=3).err
    assert run("verify", "--json", code=0).json["tombstones"] == {
        "count": 1, "waiting": 0, "problems": [],
    }  # fmt: skip


def test_a_finding_is_an_integrity_failure(run: Runner, secret: str) -> None:
    run("forget", secret, code=0)
    stray = run.store / "locks" / "stray"
    stray.write_bytes(b"x" * 10 + TEXT.encode())
    stray.chmod(0o600)
    done = run("purge", code=4)
    assert "FOUND text in locks/stray, byte 10" in done.out
    again = run.add(f"yet another {WORD}-73")
    value = run("forget", again, "--now", "--json", code=4).json
    assert {f["file"] for f in value["purge"]["scan"]["findings"]} == {"locks/stray"}


def test_purge_of_something_living_needs_a_word(run: Runner, secret: str) -> None:
    assert "needs --yes" in run("purge", secret, code=2).err
    dry = run("purge", secret, "--dry-run", "--json", code=0).json
    assert (dry["removed"], dry["objects"], dry["observations"]) == ([secret], 1, 1)
    assert run("show", secret, code=0)
    assert run("purge", secret, "--yes", code=0).out.startswith("removed 1 object")
    assert grep(run.store) == []


def test_an_interrupted_purge_is_finished(run: Runner, secret: str) -> None:
    """Killed between the switch and the removal of the old files."""
    run("forget", secret, code=0)
    program = (
        "import os, signal, sys\n"
        "from remem.objects import purge\n"
        "purge.sweep = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from remem.cli.entry import main\n"
        "sys.exit(main(['purge']))\n"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", program], env=run.environment(), cwd=run.cwd)
    assert done.returncode == -signal.SIGKILL
    assert "canon/g1/data.mdb" in grep(run.store)
    assert run("recall", "tea", code=0).out
    verified = run("verify", code=0)
    assert "canon/g1: it is of a generation that was left" in verified.err
    done2 = run("purge", code=0)
    assert "finished a purge that had been interrupted" in done2.err
    assert done2.out.endswith(": nothing found\n") and "0 byte strings" not in done2.out
    assert grep(run.store) == []
    assert run("verify", code=0).err == ""


def test_purge_names_backups_that_still_hold_it(run: Runner, secret: str) -> None:
    run("backup", "copy", code=0)
    run("backup", "gone", code=0)
    os.rename(run.cwd / "gone", run.cwd / "moved")
    run("forget", secret, code=0)
    done = run("purge", code=0)
    assert f"the backup '{run.cwd}/copy' still holds 1 ref of it" in done.err
    assert f"the backup '{run.cwd}/gone' (not found) still holds 1 ref" in done.err
    assert grep(run.cwd / "copy") == ["canon/g1/data.mdb"]


# -- tombstones ---------------------------------------------------------------------------------


def test_tombstones_are_listed_and_lifted(run: Runner, secret: str) -> None:
    assert run("tombstones", code=0).err == "remem: nothing was forgotten here\n"
    assert run("tombstones", "--json", code=0).json == []
    run("forget", secret, "--reason", "mistake", code=0)
    assert "mistake  observation  waits for a purge" in run("tombstones", code=0).out
    run("purge", code=0)
    (value,) = run("tombstones", "list", "--json", code=0).json
    assert (value["id"], value["type"], value["reason"], value["blocks"]) == (
        secret, "observation", "mistake", True,
    )  # fmt: skip
    assert value["purged_at"] > value["forgotten_at"]
    blocked = run("add", TEXT.upper() + "!", code=3)
    assert blocked.out == ""
    assert "blocked by tombstone" in blocked.err and f"lift {secret[:10]}" in blocked.err
    assert run("add", TEXT, "--json", code=3).json["status"] == "blocked"
    assert run("tombstones", "lift", secret[:10], code=0).out == f"{secret[:10]} lifted\n"
    assert "may come back" in run("tombstones", code=0).out
    assert run("add", TEXT, "--json", code=0).json["status"] == "new"
    run("tombstones", "lift", "0000000", code=1)
    run("tombstones", "lift", code=2)
    run("tombstones", "raise", code=2)
    living = run.add("alive")
    assert "was not forgotten" in run("tombstones", "lift", living, code=1).err
    run("verify", code=0)


def test_lifting_says_what_still_blocks(run: Runner) -> None:
    one, two = (run.add(TEXT, "--at", at) for at in ("2026-01-01", "2026-01-02"))
    run("forget", one, two, code=0)
    done = run("tombstones", "lift", one, code=0)
    assert f"still blocked by {two[:10]}" in done.err
    value = run("tombstones", "lift", two, "--json", code=0).json
    assert value == [{"id": two, "still_blocked_by": []}]


def test_a_forgetting_can_be_taken_back_until_the_purge(run: Runner, secret: str) -> None:
    before = run("show", secret, "--json", code=0).json
    run("forget", secret, code=0)
    assert run("tombstones", "restore", secret[:8], code=0).out == f"{secret[:10]} is there again\n"
    after = run("show", secret, "--json", code=0).json
    for changed in ("changed_at", "flags"):
        before.pop(changed), after.pop(changed)
    assert before == after  # all of its metadata
    assert run("recall", WORD, "--json", code=0).json["hits"][0]["id"] == secret
    run("forget", secret, "--now", code=0)
    refused = run("tombstones", "restore", secret, code=3)
    assert "are gone" in refused.err and "lift" in refused.err
    run("verify", code=0)


# -- holds --------------------------------------------------------------------------------------


def test_holds(run: Runner, secret: str) -> None:
    assert run("hold", "add", secret, "--reason", "case-7", code=0).out == "held 1 ref\n"
    assert run("hold", "add", secret, code=0).err == "remem: 1 held already\n"
    (value,) = run("hold", "list", "--json", code=0).json
    assert (value["id"], value["reason"]) == (secret, "case-7")
    assert WORD in run("hold", "list", code=0).out
    refused = run("forget", secret, code=3)
    assert "is held" in refused.err and f"hold release {secret[:10]}" in refused.err
    assert run("forget", secret, "--now", "--yes", code=3).out == ""
    assert "is held" in run("purge", secret, "--yes", code=3).err
    actions = [(r["action"], r["outcome"]) for r in run("audit", "--json", code=0).json[-4:]]
    assert actions == [("hold", "done")] + [("forget", "held")] * 3
    assert run("hold", "release", secret, code=0).out == "released 1 ref\n"
    run("forget", secret, code=0)
    run("hold", "add", secret, code=0)  # a hold on what waits keeps its bytes
    held = run("purge", code=0)
    assert f"'{secret[:10]}' is held, its bytes stay" in held.err and grep(run.store)
    assert run("purge", secret, code=3)
    assert "forgotten     1, 1 wait for a purge, 1 refs held" in run("status", code=0).out
    assert "held" in run("tombstones", code=0).out
    run("hold", "release", secret, code=0)
    run("purge", code=0)
    assert grep(run.store) == []
    assert run("hold", "add", secret, code=3)
    assert run("hold", "list", "--json", code=0).json == []


def test_holds_by_query_and_partial_forgetting(run: Runner, secret: str) -> None:
    assert run("hold", "add", "--query", "safe green", code=0).out == "held 1 ref\n"
    done = run("forget", "--query", "safe", "--yes", code=3)
    assert done.out == "forgot 1 observation\n" and "is held and stays" in done.err
    assert run("hold", "release", "--query", "safe", code=0).out == "released 1 ref\n"
    for words in (("add",), ("add", secret, "--query", "x"), ("list", secret), ("grab", secret)):
        run("hold", *words, code=2)
    run("hold", "add", "--query", "nowhere", code=1)


def test_many_ids_are_forgotten_together_or_not_at_all(run: Runner, secret: str) -> None:
    other = run.add("something else")
    run("hold", "add", secret, code=0)
    run("forget", other, secret, code=3)
    assert run("show", other, code=0)


# -- retention ----------------------------------------------------------------------------------


def test_retention(run: Runner) -> None:
    lines = [{"text": f"command {n}", "kind": "command"} for n in range(4)]
    lines += [{"text": "for a while", "meta": {"tier": "short"}}]
    run("import", "jsonl", "-", stdin="\n".join(map(json.dumps, lines)), code=0)
    made = run(
        "retain", "set", "--kind", "command", "--older-than", "0s", "--action", "forget", code=0
    )
    assert made.out == "rule 1: kind command older than 0s: forget (collection home)\n"
    value = run(
        "retain", "set", "--tier", "short", "--older-than", "0d", "--action", "expire", "--json",
        "--all-collections", code=0,
    ).json  # fmt: skip
    assert (value["rule"], value["tier"], value["kind"], value["collection"]) == (
        2,
        "short",
        None,
        None,
    )
    run("retain", "set", "--role", "tool", "--older-than", "90d", "--action", "forget", code=0)
    listed = run("retain", "list", code=0).out.splitlines()
    assert [line.split()[0] for line in listed] == ["1", "2", "3"]
    dry = run("retain", "run", "--dry-run", code=0).out.splitlines()
    assert dry == [
        "rule 1: would forget 4 observations",
        "rule 2: would expire 1 observation",
        "rule 3: would forget 0 observations",
    ]
    assert run("recall", "command", code=0).out  # nothing was changed
    done = run("retain", "run", "--json", code=0).json
    assert [(d["observations"], d["matched"]) for d in done] == [(4, 4), (1, 1), (0, 0)]
    assert len(run("tombstones", "--json", code=0).json) == 4
    assert run("retain", "unset", "3", code=0).out.startswith("unset rule 3: ")
    run("retain", "unset", "3", code=1)
    actions = [r["action"] for r in run("audit", "--json", code=0).json]
    assert actions.count("retain") == 4 and actions.count("expire") == 1
    run("verify", code=0)


@pytest.mark.parametrize(
    "words",
    [
        ("set", "--older-than", "9d", "--action", "forget"),
        ("set", "--kind", "x", "--older-than", "9d"),
        ("set", "--kind", "x", "--action", "forget"),
        ("set", "--kind", "x", "--older-than", "soon", "--action", "forget"),
        ("set", "--kind", "x", "--older-than", "9d", "--action", "shred"),
        ("set", "7", "--kind", "x", "--older-than", "9d", "--action", "forget"),
        ("list", "--kind", "x"),
        ("list", "3"),
        ("unset",),
        ("unset", "one"),
        ("run", "--kind", "x"),
        ("list", "--dry-run"),
        ("keep",),
    ],
)
def test_retention_refuses_what_makes_no_sense(run: Runner, words: tuple[str, ...]) -> None:
    run("init", code=0)
    done = run("retain", *words, code=2)
    assert done.out == "" and done.err.startswith("remem: ")


# -- who and where ------------------------------------------------------------------------------


def test_without_a_store_there_is_nothing_to_forget(run: Runner) -> None:
    for words in (
        ("forget", "abcdef0"),
        ("purge",),
        ("tombstones",),
        ("hold", "list"),
        ("retain", "list"),
    ):
        assert "no store" in run(*words, code=5).err


def test_nobody_but_the_owner(run: Runner, secret: str) -> None:
    for words in (
        ("forget", secret),
        ("purge",),
        ("tombstones",),
        ("hold", "list"),
        ("retain", "list"),
    ):
        refused: Result = run(*words, "--as", "bot", code=3)
        assert refused.out == ""
    assert run("show", secret, code=0)


def test_ids_of_another_collection_need_to_be_asked_for(run: Runner) -> None:
    there = run.add(TEXT, "--collection", "work")
    unknown = run("forget", "0000000000", code=1).err
    assert run("forget", there[:10], code=1).err == unknown.replace("0000000000", there[:10])
    assert run("forget", there, "--all-collections", code=0)
    assert run("tombstones", "--json", code=0).json == []
    assert len(run("tombstones", "--all-collections", "--json", code=0).json) == 1


def test_answers_without_json_have_no_control_characters(run: Runner) -> None:
    hostile = "moved \x1b[31mred\x07 text"
    run("add", hostile, code=0)
    for words in (
        ("forget", "--query", "moved", "--dry-run"),
        ("hold", "add", "--query", "moved"),
        ("hold", "list"),
        ("hold", "release", "--query", "moved"),
        ("forget", "--query", "moved", "--yes"),
    ):
        done = run(*words, code=0)
        assert "\x1b" not in done.out + done.err and "\x07" not in done.out + done.err
