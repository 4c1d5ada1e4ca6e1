"""show, log, why and the names of things: what was kept, read back by id."""

from __future__ import annotations

import json

import pytest
from syrupy.assertion import SnapshotAssertion

from .conftest import LINES, Runner

Ids = dict[str, str]


# -- show ---------------------------------------------------------------------------------------


def test_show_for_people(filled: Runner, ids: Ids, snapshot: SnapshotAssertion) -> None:
    assert filled("show", ids["api"], ids["hostile"]).shown == snapshot


def test_show_as_json(filled: Runner, ids: Ids) -> None:
    value = filled("show", "--json", ids["api"], code=0).json
    assert value["id"] == value["ref"] == value["head"] == ids["api"]
    assert value["text"] == LINES["api"]["text"]
    assert value["source"] == LINES["api"]["source"]
    assert value["asserted_at"] == value["valid_from"] == "2026-03-01T07:30:00Z"
    assert value["scope"] == {
        "tenant": "local",
        "profile": "default",
        "collection": "home",
        "agent": "none",
        "session": "main",
    }
    assert (value["status"], value["truth"], value["origin"]) == ("verified", "current", "owner")
    receipt = value["receipt"]
    assert (receipt["status"], receipt["codes"], receipt["gate"]) == ("verified", [], 2)
    assert "detect-secrets/1.5" in receipt["detectors"]
    assert value["cites"] == [
        {"id": ids["api"], "source": LINES["api"]["source"], "quote": LINES["api"]["text"]}
    ]
    assert value["derived"] == [] and value["revision"] == 1
    assert [r["op"] for r in value["revisions"]] == ["create"]


def test_show_gives_a_list_for_several_ids(filled: Runner, ids: Ids) -> None:
    found = filled("show", "--json", ids["api"], ids["moved"], code=0).json
    assert [v["id"] for v in found] == [ids["api"], ids["moved"]]
    assert found[1]["scope"]["session"] == "later"


def test_an_unknown_time_is_null_never_now(filled: Runner, ids: Ids) -> None:
    value = filled("show", "--json", ids["hostile"], code=0).json
    assert value["asserted_at"] is None and value["valid_from"] is None
    assert value["recorded_at"].endswith("Z")


def test_raw_gives_the_bytes_back(run: Runner) -> None:
    given = "\ufeffcafe\u0301\r\nline two\r\n".encode()
    found = run.add("-", stdin=given)
    assert run("show", "--raw", found, code=0).raw == given
    assert run("show", "--json", found, code=0).json["text"] == "caf\u00e9\nline two\n"
    assert run("show", "--raw", "--json", found, code=2).json["error"]["kind"] == "usage"


def test_a_revision_that_is_not_there(filled: Runner, ids: Ids) -> None:
    assert filled("show", "--rev", "1", ids["api"], code=0).out
    for number in ("0", "2", "-1"):
        assert "has no revision" in filled("show", f"--rev={number}", ids["api"], code=1).err


# -- control characters -------------------------------------------------------------------------


def test_stored_control_characters_never_reach_people_raw(filled: Runner, ids: Ids) -> None:
    for words in (["show", ids["hostile"]], ["log"], ["why", ids["hostile"]]):
        done = filled(*words, code=0)
        assert not {"\x1b", "\x07", "\u202e"} & set(done.out + done.err), words
        assert "\\x1b[31mred\\x07" in done.out and "\\u202e" in done.out
    assert "\x1b" in filled("show", "--json", ids["hostile"]).json["text"]
    assert b"\x1b" in filled("show", "--raw", ids["hostile"]).raw


# -- log ----------------------------------------------------------------------------------------


def test_log_for_people(filled: Runner, snapshot: SnapshotAssertion) -> None:
    assert filled("log").shown == snapshot


def test_log_as_json_has_the_shape_of_the_contract(filled: Runner, ids: Ids) -> None:
    entries = filled("log", "--json", code=0).json
    assert [e["ref"] for e in entries] == [ids[k] for k in ("moved", "hostile", "deploys", "api")]
    assert [e["seq"] for e in entries] == [4, 3, 2, 1]
    names = "seq ref op old new status valid_from valid_to recorded_at principal reason"
    assert all(set(names.split()) <= e.keys() for e in entries)
    assert entries[-1]["op"] == "create" and entries[-1]["old"] is None
    assert entries[-1]["new"] == ids["api"] and entries[-1]["principal"] == "owner"


def test_log_of_one_ref(filled: Runner, ids: Ids) -> None:
    assert [e["ref"] for e in filled("log", "--json", ids["deploys"], code=0).json] == [
        ids["deploys"]
    ]


def test_log_filters(filled: Runner, ids: Ids) -> None:
    assert len(filled("log", "--json", "-n", "2", code=0).json) == 2
    assert filled("log", "--json", "-n", "0", code=1).json == []
    assert len(filled("log", "--json", "--op", "create", code=0).json) == 4
    assert len(filled("log", "--json", "--since", "1 hour ago", code=0).json) == 4
    assert len(filled("log", "--json", "--all-collections", code=0).json) == 5
    for words in (["--op", "close"], ["--since", "2200"]):
        empty = filled("log", "--json", *words, code=1)
        assert empty.json == [] and empty.err == ""
        assert filled("log", *words, code=1).out == ""


def test_log_of_all_collections_is_in_the_order_of_recording(run: Runner) -> None:
    for number in range(6):
        run.add(f"note {number}", "--collection", "ab"[number % 2])
    entries = run("log", "--json", "--all-collections", code=0).json
    texts = [run("show", "--json", "--all-collections", e["ref"]).json["text"] for e in entries]
    assert texts == [f"note {n}" for n in range(5, -1, -1)]


# -- why ----------------------------------------------------------------------------------------


def test_why_for_people(filled: Runner, ids: Ids, snapshot: SnapshotAssertion) -> None:
    assert filled("why", ids["api"]).shown == snapshot


def test_why_as_json(filled: Runner, ids: Ids) -> None:
    value = filled("why", "--json", ids["api"], code=0).json
    assert value["id"] == ids["api"] and value["type"] == "observation"
    assert value["source"] == LINES["api"]["source"]
    assert value["from"] == [] and value["derived"] == []


# -- names --------------------------------------------------------------------------------------


def test_prefixes_of_seven_digits_and_more(filled: Runner, ids: Ids) -> None:
    for length in (7, 8, 63, 64):
        assert filled("rev-parse", ids["api"][:length], code=0).out == ids["api"] + "\n"
    assert filled("rev-parse", ids["api"][:7].upper(), code=0).out == ids["api"] + "\n"
    for wrong in (ids["api"][:6], "xyzxyzxyz", ids["api"] + "0", "", "@{first}"):
        assert "hint:" in filled("rev-parse", "--", wrong, code=2).err


def test_last_is_what_this_session_wrote_last(run: Runner) -> None:
    first = run.add("one")
    other = run.add("two", "--session", "s2")
    assert run("rev-parse", "@{last}", code=0).out.strip() == first
    assert run("rev-parse", "@{last}", env={"REMEM_SESSION": "s2"}).out.strip() == other
    assert run("rev-parse", "@{last}", env={"REMEM_AGENT": "a9"}, code=1).out == ""
    third = run.add("three", "--collection", "elsewhere")
    assert run("rev-parse", "@{last}", code=0).out.strip() == first
    wide = run("rev-parse", "@{last}", "--all-collections", code=0)
    assert wide.out.strip() == third


def test_an_ambiguous_prefix_lists_its_candidates(run: Runner) -> None:
    from remem.objects import refs
    from remem.objects.model import Scope
    from remem.objects.scope import Actor, owner_grant
    from remem.objects.store import Store

    scope = Scope("local", "default", "home", "none", "main")
    same = bytes.fromhex("abcdef0123" * 6)
    twins = [same + bytes([n, n]) for n in (1, 2)]
    with_store = Store.create(str(run.store))

    def twice(tx: object) -> None:
        part = tx.part(scope)  # type: ignore[attr-defined]
        lane = tx.lane(part, scope)  # type: ignore[attr-defined]
        for twin in twins:
            tx.create(part, twin, kind=refs.OBSERVATION, lane=lane, status="verified")  # type: ignore[attr-defined]

    with_store.write(Actor(owner_grant(scope), "cli", scope), twice)
    with_store.close()
    done = run("log", "abcdef0123", code=2)
    assert "several" in done.err and "abcdef0123" in done.err.split("hint:")[1]
    assert run("log", "--json", twins[0].hex(), code=0).json[0]["ref"] == twins[0].hex()
    other = run("log", "abcdef0123", "--collection", "other", code=1)
    assert "abcdef0123" in other.err and "hint" not in other.err


# -- the scope wall -----------------------------------------------------------------------------


def answers(run: Runner, name: str) -> list[tuple[int, str, str]]:
    """What each command by id answers, the id itself taken out of its words."""
    found = []
    for line in (
        "show --json",
        "show --raw",
        "log",
        "log --json",
        "why",
        "cat-object",
        "rev-parse",
    ):
        done = run(*line.split(), name)
        out = done.out.replace(name, "ID") if done.code else done.out
        found.append((done.code, out, done.err.replace(name, "ID")))
    return found


def test_an_id_of_another_scope_answers_exactly_as_an_unknown_one(filled: Runner, ids: Ids) -> None:
    unknown = answers(filled, "0" * 64)
    assert all(code == 1 and (not out or "not_found" in out) for code, out, _ in unknown)
    assert answers(filled, ids["other"]) == unknown
    filled.env["REMEM_TENANT"] = "somebody"
    assert answers(filled, ids["api"]) == answers(filled, "0" * 64)
    del filled.env["REMEM_TENANT"]
    assert all(code == 0 for code, _, _ in answers(filled, ids["api"]))
    filled.env["REMEM_COLLECTION"] = "other"
    assert all(code == 0 for code, _, _ in answers(filled, ids["other"]))


def test_a_narrower_session_hides_the_others(filled: Runner, ids: Ids) -> None:
    assert filled("show", ids["moved"], "--session", "later", code=0).out
    assert filled("show", ids["api"], "--session", "later", code=1).out == ""
    entries = filled("log", "--json", "--session", "later", code=0).json
    assert [e["ref"] for e in entries] == [ids["moved"]]


def test_a_scope_that_is_not_there_is_named(filled: Runner) -> None:
    for words in (["log"], ["ls-refs"], ["status"]):
        done = filled(*words, "--collection", "no such")
        assert "unknown scope" in done.err and "'no such'" in done.err
        assert "unknown scope" not in filled(*words).err


def test_another_principal_is_refused(filled: Runner, ids: Ids) -> None:
    for words in (["log"], ["show", ids["api"]], ["status"], ["audit"], ["verify"], ["ls-refs"]):
        done = filled(*words, "--as", "mallory", code=3)
        assert done.out == "" and "'mallory'" in done.err


# -- times --------------------------------------------------------------------------------------


def test_the_same_instant_is_the_same_bytes_in_every_command(filled: Runner, ids: Ids) -> None:
    show = filled("show", "--json", ids["api"]).json
    log = filled("log", "--json", ids["api"]).json[0]
    why = filled("why", "--json", ids["api"]).json
    cat = filled("cat-object", ids["api"]).json
    hit = filled("recall", "--json", "staging API port 8443").json["hits"][0]
    assert hit["id"] == ids["api"]
    asserted = {v["asserted_at"] for v in (show, why, cat, hit)}
    assert asserted == {"2026-03-01T07:30:00Z"}
    assert show["valid_from"] == log["valid_from"] == hit["valid_from"]
    assert show["recorded_at"] == log["recorded_at"] == hit["recorded_at"]
    rows = filled("audit", "--json").json
    assert show["recorded_at"] in {row["recorded_at"] for row in rows}
    assert show["source"] == hit["source"] == why["source"] == cat["source"]


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/Los_Angeles", "UTC"])
def test_instants_do_not_depend_on_the_zone(run: Runner, zone: str) -> None:
    run.env["TZ"] = zone
    found = run.add("dated", "--at", "2031-03-09T01:30:00Z")
    value = run("show", "--json", found).json
    assert value["asserted_at"] == "2031-03-09T01:30:00Z"
    assert "2031-03-09 01:30:00Z" in run("show", found).out


def test_a_time_without_a_zone_is_local_and_says_so_when_verbose(run: Runner) -> None:
    run.env["TZ"] = "Europe/Berlin"
    done = run("-v", "--json", "add", "--at", "2026-07-01 12:00", "noon")
    assert "local zone" in done.err
    assert run("show", "--json", done.json["id"]).json["asserted_at"] == "2026-07-01T10:00:00Z"
    assert "local zone" not in run("add", "--at", "2026-07-01 12:00", "noon").err


# -- no store -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    "show aaaaaaa|log|why aaaaaaa|audit|verify|export -|backup x|reindex|cat-object aaaaaaa|"
    "ls-refs|rev-parse aaaaaaa|project|count-objects|hash-object -".split("|"),
)
def test_reading_without_a_store_says_so(run: Runner, line: str) -> None:
    done = run(*line.split(), stdin="x", code=5)
    assert "no store" in done.err and "hint:" in done.err
    assert not run.store.exists()
    assert run(*line.split(), "--json", stdin="x").code in (2, 5)


def test_one_json_value_whatever_stdout_is(filled: Runner, ids: Ids) -> None:
    for words in (["show", ids["api"]], ["log"], ["why", ids["api"]], ["status"], ["doctor"]):
        done = filled("--json", *words)
        assert done.out.endswith("\n") and done.out.count("\n") == 1
        json.loads(done.out)
