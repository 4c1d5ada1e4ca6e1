"""status, doctor, verify, reindex, audit, init: the store looked at from outside."""

from __future__ import annotations

import itertools
import os
import shutil
import stat
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from .conftest import Runner


def canon(run: Runner) -> Path:
    """The data file of the present generation."""
    return run.store / "canon" / "g1" / "data.mdb"


# -- init ---------------------------------------------------------------------------------------


def test_init_makes_a_store_once(run: Runner) -> None:
    made = run("init", code=0)
    assert made.out == f"made the store: {run.store}\n"
    assert run("init", code=0).out == f"the store is there already: {run.store}\n"
    value = run("init", "--json", code=0).json
    assert value == {"store": str(run.store), "created": False, "format": 1}


def test_init_here_serves_the_folder_and_those_below_it(run: Runner) -> None:
    del run.env["REMEM_STORE"]
    below = run.cwd / "a" / "b"
    below.mkdir(parents=True)
    assert run("init", "--here", code=0).out == f"made the store: {run.cwd}/.remem\n"
    assert (run.cwd / ".remem" / ".gitignore").read_text() == "*\n"
    run("add", "kept here", cwd=below, code=0)
    assert run("status", "--json", cwd=below).json["store"] == f"{run.cwd}/.remem"
    assert run("status", "--json", cwd=run.home).json["exists"] is False
    assert run("init", "--here", code=0).out.startswith("the store is there already")
    assert run("verify", code=0).err == ""


def test_a_store_of_a_folder_stays_out_of_git(run: Runner) -> None:
    import subprocess

    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    subprocess.run(["git", "init", "-q"], cwd=run.cwd, env=run.environment(), check=True)
    run("init", "--here", env={"REMEM_STORE": None}, code=0)
    (run.cwd / "seen").touch()
    words = ["git", "status", "--porcelain", "--untracked-files=all"]
    done = subprocess.run(
        words, cwd=run.cwd, env=run.environment(), capture_output=True, check=True
    )
    assert done.stdout.decode() == "?? seen\n"


def test_init_refuses_a_folder_with_other_files(run: Runner) -> None:
    run.store.mkdir()
    (run.store / "letter.txt").touch()
    done = run("init", code=3)
    assert "letter.txt" in done.err and "hint:" in done.err
    assert run("init", "--here", "--store", "x", code=2).out == ""


def test_everything_made_is_private_whatever_the_umask(run: Runner) -> None:
    before = os.umask(0)
    try:
        run("add", "secret", code=0)
        run("recall", "secret", code=0)
        run("config", "set", "recall.limit", "5", code=0)
        run("config", "set", "--user", "recall.limit", "5", code=0)
        run("export", "p.jsonl", code=0)
        run("backup", "copy", code=0)
    finally:
        os.umask(before)
    seen = 0
    for top in (run.store, run.cwd / "copy", run.home / ".config" / "remem"):
        for folder, _, names in os.walk(top):
            assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700, folder
            for name in names:
                path = os.path.join(folder, name)
                assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, path
                seen += 1
    assert seen > 6
    assert stat.S_IMODE((run.cwd / "p.jsonl").stat().st_mode) == 0o600


# -- status -------------------------------------------------------------------------------------


def test_status_counts_by_scope_and_status(filled: Runner) -> None:
    value = filled("status", "--json", code=0).json
    assert value["counts"]["observation"] == {"verified": 3, "provisional": 1}
    assert value["counts"]["memory"] == {} and value["counts"]["sessions"] == 2
    assert [c["collection"] for c in value["collections"]] == ["home"]
    wide = filled("status", "--json", "--all-collections", code=0).json
    assert {c["collection"]: c["refs"] for c in wide["collections"]} == {"home": 4, "other": 1}
    assert wide["counts"]["refs"] == 5


def test_status_for_people(filled: Runner, snapshot: SnapshotAssertion) -> None:
    import re

    shown = filled("status").shown
    assert re.sub(r"\d+\.\d [KM]iB", "<size>", shown) == snapshot


def test_status_tells_how_far_the_index_is_behind(filled: Runner) -> None:
    assert filled("status", "--json").json["index"]["lag"] == 4
    filled("project", code=0)
    assert filled("status", "--json").json["index"]["lag"] == 0
    shutil.rmtree(filled.store / "index")
    assert filled("status", "--json").json["index"]["lag"] == 4


def test_what_cannot_be_told_is_unknown(filled: Runner) -> None:
    filled("project", code=0)
    terms = next((filled.store / "index").rglob("data.mdb"))
    terms.write_bytes(b"nothing of an index")
    value = filled("status", "--json", code=0).json
    assert value["index"]["lag"] == "unknown"
    shutil.rmtree(filled.store / "spool")
    assert filled("status", "--json", code=0).json["spool"] == "unknown"
    assert "unknown" in filled("status", code=0).out


def test_status_explains_where_there_is_no_store(run: Runner) -> None:
    done = run("status", code=0)
    assert f"it would be '{run.store}'" in done.out and "remem init" in done.err
    value = run("status", "--json", code=0).json
    assert value["exists"] is False
    assert value["counts"] == value["sizes"] == value["audit"] == "unknown"


def test_status_of_one_scope_is_as_if_the_others_were_not_there(run: Runner) -> None:
    run.add("ours")
    alone = run("status", "--json").json
    run.add("theirs", "--tenant", "another")
    run.add("elsewhere", "--collection", "c2")
    beside = run("status", "--json").json
    assert alone["counts"] == beside["counts"] and alone["collections"] == beside["collections"]
    assert alone["index"]["lag"] == beside["index"]["lag"]


# -- doctor -------------------------------------------------------------------------------------


def findings(run: Runner, **options: object) -> dict[str, str]:
    """Level of each check, the worst of those with the same name."""
    rank = ("ok", "warn", "fail")
    found: dict[str, str] = {}
    for one in run("doctor", "--json", **options).json["findings"]:  # type: ignore[arg-type]
        found[one["check"]] = max(found.get(one["check"], "ok"), one["level"], key=rank.index)
        assert one["remedy"] or one["level"] != "fail", one
    return found


def test_a_healthy_store_has_no_findings(filled: Runner) -> None:
    found = findings(filled)
    assert set(found.values()) == {"ok"}, found
    assert {"python", "lmdb", "store", "owner", "permissions", "file system", "space"} <= set(found)
    assert {"generation", "readers", "embedder", "git", "index", "settings"} <= set(found)
    assert filled("doctor", code=0).err == ""


def test_doctor_changes_nothing(filled: Runner) -> None:
    before = canon(filled).read_bytes()
    filled("doctor", code=0)
    assert canon(filled).read_bytes() == before


def test_doctor_names_what_others_may_read(filled: Runner) -> None:
    canon(filled).chmod(0o644)
    (filled.store / "spool").chmod(0o755)
    done = filled("doctor", code=0)
    assert "canon/g1/data.mdb (0644)" in done.out and "spool (0755)" in done.out
    assert f"chmod -R go= {filled.store}" in done.out
    assert findings(filled)["permissions"] == "warn"
    import subprocess

    subprocess.run(["chmod", "-R", "go=", str(filled.store)], check=True)
    assert findings(filled)["permissions"] == "ok"


def test_doctor_names_what_was_left_over(filled: Runner) -> None:
    (filled.store / "canon" / "g0").mkdir(mode=0o700)
    (filled.store / "canon" / "g7").mkdir(mode=0o700)  # one that is being made is none
    (filled.store / "FORMAT.99.new").touch(mode=0o600)
    out = filled("doctor", code=0).out
    assert f"rm -r {filled.store}/canon/g0" in out and "FORMAT.99.new" in out
    assert "canon/g7" not in out


def test_doctor_fails_on_a_broken_store(filled: Runner) -> None:
    (filled.store / "FORMAT").write_text("remem store 99\n")
    found = findings(filled)
    assert found["store"] == "fail"
    done = filled("doctor", code=5)
    assert "format 99" in done.out and "newer" in done.out
    assert filled("log", code=5).err.startswith("remem: ")


def test_doctor_names_settings_that_do_not_parse(filled: Runner) -> None:
    (filled.store / "config.toml").write_text("recall.limit = \n")
    user = filled.home / ".config" / "remem"
    user.mkdir(parents=True)
    (user / "config.toml").write_text("no_such = 1\n")
    out = filled("doctor", code=5).out
    assert "line 1" in out and "no_such" in out


def test_doctor_knows_the_embedder(filled: Runner) -> None:
    assert findings(filled, env={"REMEM_EMBEDDER": "hash"})["embedder"] == "ok"
    assert findings(filled, env={"REMEM_EMBEDDER": "onnx:/no/such"})["embedder"] == "fail"
    wrong = filled("doctor", env={"REMEM_EMBEDDER": "bogus"}, code=2).err
    assert "must be one of auto, none, hash, minilm, onnx:..., openai:..." in wrong


def test_doctor_without_a_store(run: Runner) -> None:
    done = run("doctor", code=0)
    assert "there is no store" in done.out and "-> remem init" in done.out
    assert not run.store.exists()


def test_doctor_without_git(filled: Runner, tmp_path: Path) -> None:
    assert findings(filled, env={"PATH": str(tmp_path)})["git"] == "warn"


# -- verify -------------------------------------------------------------------------------------


def test_verify_of_a_sound_store(filled: Runner) -> None:
    filled("project", code=0)
    done = filled("verify", code=0)
    assert done.out.splitlines()[-1] == "ok" and done.err == ""
    value = filled("verify", "--json", code=0).json
    assert value["ok"] is True and value["problems"] == []
    assert value["audit"]["rows"] == 5 and len(value["audit"]["head"]) == 64
    assert value["objects"] == {"checked": 5, "bad": []}
    assert value["refs"]["checked"] == 5
    assert set(value) >= {"ok", "audit", "objects", "refs", "tombstones", "index", "problems"}


def test_verify_says_what_it_did_not_look_at(filled: Runner) -> None:
    fast = filled("verify", "--fast", "--json", code=0).json
    assert fast["audit"]["rows"] == 5 and fast["objects"] is None and fast["index"] is None
    canonical = filled("verify", "--objects", "--json", code=0).json
    assert canonical["objects"]["checked"] == 5 and canonical["index"] is None
    index = filled("verify", "--index", "--json", code=0).json
    assert index["objects"] is None and index["index"]["ok"] is True


def test_verify_names_damage_and_ends_with_4(filled: Runner) -> None:
    data = canon(filled).read_bytes()
    assert data.count(b"two approvals") == 1
    canon(filled).write_bytes(data.replace(b"two approvals", b"ten approvals"))
    done = filled("verify", code=4)
    assert "bad" in done.out and done.out.splitlines()[-1].endswith("problems")
    value = filled("verify", "--json", code=4).json
    assert value["ok"] is False and len(value["objects"]["bad"]) == 1
    assert value["objects"]["bad"][0] in value["problems"][0]["where"]
    assert filled("verify", "--fast", code=0).out.endswith("ok\n")


def test_verify_names_a_damaged_index_and_reindex_mends_it(filled: Runner) -> None:
    filled("project", code=0)
    before = filled("recall", "--json", "staging port", code=0).json
    terms = next((filled.store / "index").rglob("data.mdb"))
    size = terms.stat().st_size
    with terms.open("r+b") as file:
        file.truncate(size // 2)
    value = filled("verify", "--json", code=4).json
    assert value["objects"]["bad"] == [] and value["problems"]
    filled("verify", "--objects", code=0)
    filled("reindex", code=0)
    filled("verify", code=0)
    assert filled("recall", "--json", "staging port", code=0).json == before


def test_verify_and_reading_write_nothing(filled: Runner, ids: dict[str, str]) -> None:
    before = canon(filled).read_bytes()
    for words in (["verify"], ["show", ids["api"]], ["log"], ["status"], ["audit"], ["ls-refs"]):
        filled(*words, code=0)
    assert canon(filled).read_bytes() == before


# -- reindex ------------------------------------------------------------------------------------


def test_reindex_counts_what_it_built(filled: Runner) -> None:
    value = filled("reindex", "--json", code=0).json
    assert value["documents"] == 5 and value["vectors"] is None
    hashed = {"REMEM_EMBEDDER": "hash"}
    value = filled("reindex", "--json", env=hashed, code=0).json
    assert (value["documents"], value["vectors"]) == (5, 5)
    assert filled("reindex", "--vectors", "--json", env=hashed, code=0).json["documents"] is None
    assert filled("reindex", "--lexical", "--json", env=hashed, code=0).json["vectors"] is None


def test_vectors_cannot_be_built_without_an_embedder(filled: Runner) -> None:
    done = filled("reindex", "--vectors", code=5)
    assert "no embedder" in done.err and "hint:" in done.err


# -- audit --------------------------------------------------------------------------------------


def test_audit_prints_the_latest_rows_newest_last(filled: Runner) -> None:
    rows = filled("audit", "--json", code=0).json
    assert [row["seq"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["seq"] for row in filled("audit", "--json", "-n", "2").json] == [4, 5]
    for before, after in itertools.pairwise(rows):
        assert after["prev"] == before["hash"]
    assert rows[0]["prev"] == "0" * 64
    assert rows[-1]["hash"] == filled("verify", "--json").json["audit"]["head"]


def test_audit_holds_no_content(filled: Runner) -> None:
    out = filled("audit", "--json").out + filled("audit").out
    assert "staging" not in out and "approvals" not in out


def test_audit_for_people(filled: Runner, snapshot: SnapshotAssertion) -> None:
    assert filled("audit", "-n", "2").shown == snapshot


def test_audit_filters(filled: Runner) -> None:
    for words in (["--action", "create"], ["--principal", "owner"], ["--since", "yesterday"]):
        assert len(filled("audit", "--json", *words, code=0).json) == 5, words
    for words in (["--action", "purge"], ["--principal", "bob"], ["--since", "2200-01-01"]):
        done = filled("audit", "--json", *words, code=1)
        assert done.json == [], words
