"""Correcting from the command line: fact, revise, rollback, close, reopen, undo, add --corrects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

OLD, NEW = "deploy host is alpha-9", "deploy host is beta-3"


def texts(run: Runner, query: str, *words: str) -> list[tuple[str, str]]:
    """(text, truth) of the hits; none is an answer too."""
    done = run("recall", "--json", *words, "--", query)
    assert done.code in (0, 1), done.shown
    return [(hit["text"], hit["truth"]) for hit in done.json["hits"]]


def entries(run: Runner, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("log", "--json", *words, code=0).json
    return found


# -- a corrected fact ---------------------------------------------------------------------------


def test_the_life_of_a_fact(run: Runner) -> None:
    made = run("fact", "Ann", "lives_in", "Berlin", "--from", "2020", "--json", code=0).json
    assert (made["status"], made["receipt"]["status"]) == ("new", "verified")
    again = run("fact", "ann", "lives in", "BERLIN", "--from", "2021", "--json", code=0).json
    assert (again["status"], again["ref"]) == ("known", made["ref"])
    run("fact", "Ann", "lives_in", "Paris", "--from", "2023", "--reason", "moved", code=0)
    run("fact", "Ann", "lives_in", "Rome", "--from", "2022", code=0)
    assert texts(run, "where does Ann live") == [("Ann lives in Paris", "current")]
    assert texts(run, "where does Ann live", "--as-of", "2021")[0][0] == "Ann lives in Berlin"
    assert texts(run, "where does Ann live", "--as-of", "2022-06")[0][0] == "Ann lives in Rome"
    shown = run("show", made["id"], "--json", code=0).json
    assert (shown["truth"], shown["valid_to"]) == ("historical", "2022-01-01T00:00:00Z")
    assert {e["reason"] for e in entries(run)} >= {"moved", "chain"}
    run("verify", code=0)


def test_superseded_text_does_not_come_through_another_door(run: Runner, tmp_path: Any) -> None:
    """Said ten times, derived, then replaced in words only: by default nothing says the old one."""
    lines = [
        json.dumps({"text": OLD, "at": f"2026-01-{day:02}T09:00:00Z", "meta": {"tag": day}})
        for day in range(1, 11)
    ]
    run("import", "jsonl", "-", stdin="\n".join(lines), code=0)
    (memory,) = [
        h for h in run("recall", "--json", "deploy host", code=0).json["hits"]
        if h["type"] == "memory"
    ]  # fmt: skip
    assert len(memory["cites"]) == 10
    run("revise", memory["id"], NEW, "--reason", "migrated", code=0)

    def doors(*scope: str) -> None:
        for query in ("deploy host", "alpha-9"):
            for command in (["recall"], ["context"], ["context", "--format", "json"]):
                said = run(*command, "--json", *scope, "--", query).out
                assert "alpha-9" not in said.replace('"query":"alpha-9"', ""), said
            assert texts(run, query, *scope)[0] == (NEW, "current")
        past = texts(run, "deploy host", "--view", "history", *scope)
        assert past[0] == (NEW, "current")
        assert (OLD, "historical") in past
        assert "beta-3" not in run("recall", "deploy host", "--as-of", "2026-02", *scope).out

    doors()
    run("derive", "--rebuild", code=0)
    doors()
    run("reindex", "--lexical", code=0)
    doors()
    pack = tmp_path / "all.pack"
    run("export", pack, code=0)
    run.env["REMEM_STORE"] = str(tmp_path / "second")
    run("init", code=0)
    run("import", "pack", pack, "--trust", code=0)
    doors()
    run("verify", code=0)
    (old,) = [
        h for h in run("recall", "--json", "--view", "history", "alpha-9", code=0).json["hits"]
        if h["text"] == OLD and h["type"] == "memory"
    ]  # fmt: skip
    assert old["replaced_by"] is not None and old["truth"] == "historical"


@pytest.mark.parametrize("named", ["observation", "memory"])
def test_corrections_by_memory_and_by_observation(run: Runner, named: str) -> None:
    note = run.add(OLD)
    hit = run("recall", "--json", "deploy host", code=0).json["hits"][0]
    assert hit["type"] == "memory"
    added = run("add", "--json", "--corrects", hit["id"] if named == "memory" else note, NEW)
    assert (added.code, added.json["status"]) == (0, "new")
    assert texts(run, "deploy host") == texts(run, "alpha-9") == [(NEW, "current")]
    past = texts(run, "alpha-9", "--view", "history")
    assert past[0] == (NEW, "current") and {t for _, t in past[1:]} == {"historical"}
    before = run("show", note, "--json", code=0).json["recorded_at"]
    for option in ("--as-of", "--known-at"):
        assert texts(run, "deploy host", option, before)[0][0] in (OLD, NEW)
    assert run("show", note, "--json").json["truth"] == "historical"
    same = run("add", "--json", "--corrects", note, NEW, code=0)
    assert named == "memory" or same.json["status"] == "known"
    assert texts(run, "deploy host") == [(NEW, "current")]


def test_a_contradicting_statement_leaves_one_current_and_one_historic(run: Runner) -> None:
    one = run.add("the gate is open")
    two = run("add", "--json", "--corrects", one, "the gate is not open", code=0).json
    found = texts(run, "gate", "--view", "history")
    assert found == [("the gate is not open", "current"), ("the gate is open", "historical")]
    assert run("show", one, "--json", code=0).json["replaced_by"] == two["ref"]
    assert run("show", two["id"], "--json", code=0).json["corrects"] == one
    seq = entries(run)[0]["seq"]
    again = run("add", "--json", "--corrects", one, "the gate is not open", code=0).json
    assert again["status"] == "known"
    assert entries(run)[0]["seq"] == seq, "the same correction again is no operation"


def test_evidence_of_the_old_does_not_drag_it_back(run: Runner) -> None:
    lines = [
        json.dumps({"text": "My team is called Red", "at": f"2026-01-{day:02}T09:00:00Z"})
        for day in range(1, 11)
    ]
    run("import", "jsonl", "-", stdin="\n".join(lines), code=0)
    run("add", "--at", "2026-03-01", "My team is called Blue", code=0)
    found = texts(run, "what is my team called")
    assert found and all("Red" not in text for text, _ in found)
    run("derive", "--rebuild", code=0)
    assert all("Red" not in text for text, _ in texts(run, "what is my team called"))
    then = texts(run, "what is my team called", "--as-of", "2026-02-01")
    assert then and all("Blue" not in text for text, _ in then)


def test_said_again_after_it_was_replaced(run: Runner) -> None:
    first = run.add("I live in Berlin")
    run.add("I live in Paris")
    again = run("add", "--json", "I live in Berlin", code=0).json
    assert (again["status"], again["id"] != first) == ("new", True), "though nothing was read yet"
    assert texts(run, "where do I live")[0] == ("user lives in Berlin", "current")
    assert run("add", "--json", "I live in Berlin", code=0).json["id"] == again["id"]


def test_kind_who_when_and_why_of_each_change(run: Runner) -> None:
    ids = [run.add(f"note number {n}") for n in range(3)]
    run("revise", ids[0], "note number 7", "--reason", "typo", code=0)
    run("close", ids[1], "--at", "2999-01-01", "--reason", "retired", code=0)
    run("undo", code=0)
    run("add", "--corrects", ids[2], "note number 9", code=0)
    found = [(e["op"], e["reason"], e["principal"]) for e in entries(run) if e["op"] != "create"]
    assert found == [
        ("supersede", "corrected", "owner"),
        ("reopen", "undo-5", "owner"),
        ("close", "retired", "owner"),
        ("revise", "typo", "owner"),
    ]
    assert all(e["recorded_at"].endswith("Z") for e in entries(run))
    run("verify", code=0)


def test_a_change_of_words_carries_everything_else_over(run: Runner) -> None:
    line = {
        "text": "the invoice goes to Ann", "at": "2026-01-01T00:00:00Z", "role": "user",
        "speaker": "Bo", "source": {"uri": "chat://1", "id": "7"}, "kind": "note",
        "meta": {"tags": ["a", "b", "c"], "ttl": 9},
    }  # fmt: skip
    run("add", "--jsonl", stdin=json.dumps(line), code=0)
    (hit,) = run("recall", "--json", "invoice", code=0).json["hits"]
    before = run("show", hit["id"], "--json", code=0).json
    run("revise", hit["id"], "the invoice goes to Cy", code=0)
    after = run("show", hit["ref"], "--json", code=0).json
    kept = ("source", "meta", "role", "speaker", "origin", "kind", "asserted_at", "status", "scope")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert (after["text"], after["revision"]) == ("the invoice goes to Cy", 2)


# -- revise, rollback, undo ---------------------------------------------------------------------


def test_revise_rollback_and_numbers_of_revisions(run: Runner) -> None:
    note = run.add("one")
    two = run("revise", note, "two", "--json", code=0).json
    assert (two["op"], two["old"], two["id"]) == ("revise", note, two["new"])
    run("revise", note, "-", stdin="three\n", code=0)
    assert run("rollback", note, "--to", "1", code=0).out.strip() == note[:10]
    shown = run("show", note, "--json", code=0).json
    assert [r["op"] for r in shown["revisions"]] == ["create", "revise", "revise", "rollback"]
    run("rollback", note, "--to", two["new"][:9], code=0)
    assert texts(run, "two") == [("two", "current")]
    run("rollback", note, "--to", two["new"], "--if-head", two["new"][:8], code=0)
    done = run("rollback", note, "--if-head", note, code=3)
    assert "head of" in done.err
    for wrong in ("9", "fffffff", "zzz"):
        assert run("rollback", note, "--to", wrong).code in (1, 2)


def test_undo_walks_back_and_may_be_tried_first(run: Runner) -> None:
    run("fact", "Ann", "lives_in", "Berlin", "--from", "2020", code=0)
    run("fact", "Ann", "lives_in", "Paris", "--from", "2022", code=0)
    before = entries(run)
    tried = run("undo", "--dry-run", code=0)
    assert "would reject" in tried.out and entries(run) == before
    made = run("undo", "--json", code=0).json
    assert [e["op"] for e in made] == ["reject", "reject"]
    assert texts(run, "where does Ann live")[0] == ("Ann lives in Berlin", "current")
    run("undo", made[0]["seq"].__str__(), code=0)
    assert texts(run, "where does Ann live")[0] == ("Ann lives in Paris", "current")
    run("recall", "Ann", code=0)  # what is derived is nobody's last operation
    run("undo", code=0)
    run("undo", code=0)
    assert run("undo").code == 1, "there is nothing left"
    assert texts(run, "Ann") == []
    for seq, code in (("999", 1), ("x", 2), ("0", 1)):
        assert run("undo", seq).code == code
    run("verify", code=0)


# -- two processes ------------------------------------------------------------------------------


def test_twenty_processes_supersede_one_head(run: Runner) -> None:
    """Each names the head that it read: one wins, the others are told, nothing is lost."""
    note = run.add("the limit is 1")
    words = [("revise", note, f"the limit is {n}", "--if-head", note) for n in range(2, 22)]
    started = [run.start(*one, stdout=-1, stderr=-1) for one in words]
    ended = [(p.communicate(timeout=60), p.returncode) for p in started]
    assert sorted(code for _, code in ended) == [0] + [3] * 19
    assert all(b"head" in err for (_, err), code in ended if code == 3)
    assert len(entries(run, note)) == 2
    (hit,) = run("recall", "--json", "limit", code=0).json["hits"]
    assert hit["truth"] == "current" and hit["ref"] == note
    run("verify", code=0)


def test_twenty_processes_correct_one_statement(run: Runner) -> None:
    note = run.add("the limit is 1")
    started = [
        run.start("add", "--corrects", note, f"the limit is {n}", stdout=-1, stderr=-1)
        for n in range(2, 22)
    ]
    codes = [(p.communicate(timeout=60), p.returncode)[1] for p in started]
    assert sorted(codes) == [0] + [3] * 19
    assert len(run("ls-refs", "--all", code=0).out.splitlines()) == 2, "the others left no trace"
    run("verify", code=0)


# -- bad input ----------------------------------------------------------------------------------


def test_ids_times_and_words_that_are_wrong(run: Runner) -> None:
    note = run.add("one")
    wrong = [
        (1, ["revise", "abcdef0123", "x"]),
        (2, ["revise", "xyz", "x"]),
        (2, ["revise", note, " "]),
        (2, ["close", note, "--at", "the 40th of May"]),
        (2, ["fact", "a", "is", "b", "--from", "2020-13-01"]),
        (2, ["fact", "a", "is", "b", "--from", "2022", "--to", "2021"]),
        (2, ["fact", "a", "is", "b", "--from", "2022", "--to", "2022"]),
        (2, ["fact", "a", " ", "b"]),
        (2, ["fact", "a", "is", "b", "--kind", "rumour"]),
        (2, ["fact", "a", "is", "b", "--single", "--multi"]),
        (1, ["fact", "a", "is", "b", "--source-obs", "abcdef0123"]),
        (3, ["reopen", note]),
        (2, ["revise", note, "x", "--reason", "two words"]),
        (2, ["revise", note, "x", "--reason", "chain"]),
        (2, ["revise", note, "x", "--reason", "undo-1"]),
        (1, ["add", "--corrects", "abcdef0123", "x"]),
        (2, ["alias", "add", "x"]),
        (2, ["alias", "drop", "x"]),
        (1, ["alias", "rm", "x"]),
        (3, ["alias", "add", "x", "X"]),
        (2, ["jobs", "drop"]),
        (1, ["jobs", "retry", note]),
        (2, ["derive", "--deriver", "oracle"]),
        (2, ["diff"]),
        (2, ["diff", "--known-at", "2020"]),
        (2, ["diff", "--known-at", "2021..2020"]),
        (2, ["about", " "]),
    ]
    before = entries(run)
    for code, words in wrong:
        done = run(*words)
        assert done.code == code, (words, done.shown)
        assert done.err.startswith("remem: "), words
    assert entries(run) == before, "none of them changed anything"
    run("close", note, "--at", "2999", code=0)
    assert run("close", note, "--at", "2999").code == 3
    run("reopen", note, code=0)


def test_no_correction_across_scopes(run: Runner) -> None:
    note = run.add("--collection", "one", "the port is 5432")
    done = run("add", "--collection", "two", "--corrects", note, "the port is 6543", code=3)
    assert "another scope" in done.err and "--collection" in done.err
    assert run("revise", "--collection", "two", note, "x").code == 1, "there it is unknown"
    run("add", "--collection", "one", "--corrects", note, "the port is 6543", code=0)


def test_a_prefix_that_fits_several_ids(run: Runner) -> None:
    seen: dict[str, int] = {}
    lines = "\n".join(f"note {n}" for n in range(60))
    run("add", "--lines", stdin=lines, code=0)
    for line in run("ls-refs", code=0).out.splitlines():
        seen[line[:1]] = seen.get(line[:1], 0) + 1
    assert run("revise", "0", "x").code == 2, "too short to be an id at all"
    some = run("ls-refs", code=0).out.split()[0]
    run("revise", some[:12], "x", code=0)


def test_what_session_wrote_last_is_what_it_said(run: Runner) -> None:
    run("fact", "Ann", "lives_in", "Berlin", "--from", "2020", code=0)
    made = run("fact", "Ann", "lives_in", "Paris", "--from", "2022", "--json", code=0).json
    assert run("rev-parse", "@{last}", code=0).out.split()[0] == made["ref"]
    note = run.add("I live in Rome")
    run("recall", "Rome", code=0)
    assert run("rev-parse", "@{last}", code=0).out.split()[0] == note
