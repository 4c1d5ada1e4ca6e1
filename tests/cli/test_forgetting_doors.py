"""What was forgotten comes back by no door, and what was not stays.

Each case follows a fault that tools of this kind are known for.  Every negative check has a
positive control before it.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from remem.cli.entry import main

from .conftest import REMEM, Result, Runner
from .test_forgetting import grep

WORD = "zorvexquark"
TEXT = f"{WORD}-71 is the staging host"


class Inside(Runner):
    """Calls the same entry as a process of its own would, in this one: a tenth of the time."""

    def __call__(
        self,
        *words: str | Path,
        stdin: bytes | str | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        code: int | None = None,
    ) -> Result:
        given = stdin.encode() if isinstance(stdin, str) else (stdin or b"")
        kept = dict(os.environ), os.getcwd(), (sys.stdin, sys.stdout, sys.stderr)
        streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8") for data in (given, b"", b"")]
        os.environ.clear()
        os.environ.update(self.environment(env))
        os.chdir(cwd or self.cwd)
        sys.stdin, sys.stdout, sys.stderr = streams
        try:
            status = main([str(word) for word in words])
        finally:
            os.environ.clear()
            os.environ.update(kept[0])
            os.chdir(kept[1])
            sys.stdin, sys.stdout, sys.stderr = kept[2]
        out, err = (stream.flush() or stream.buffer.getvalue() for stream in streams[1:])  # type: ignore[attr-defined, func-returns-value]
        done = subprocess.CompletedProcess([*map(str, words)], status, out, err)
        result = Result(done, self.places)
        if code is not None:
            assert result.code == code, result.shown
        return result


@pytest.fixture
def me(tmp_path: Path) -> Inside:
    return Inside(tmp_path / "home")


def hits(done: Result) -> list[str]:
    return [hit["id"] for hit in done.json["hits"]] if done.out else []


def other_store(run: Runner, name: str) -> Runner:
    """The same person with another store."""
    made: Runner = object.__new__(type(run))
    made.__dict__.update(run.__dict__)
    made.store = run.home / name
    made.env = {**run.env, "REMEM_STORE": str(made.store)}
    return made


def take(run: Runner, pack: Path | str, *words: str) -> dict[str, int]:
    value: dict[str, int] = run("import", "pack", pack, *words, "--json", code=0).json
    return value


def absent(run: Runner, *words: str) -> bool:
    """The reading commands that tell most do not show the word."""
    asked = (("recall", WORD), ("recall", WORD, "--view", "history"), ("context", WORD), ("log",))
    return not any(WORD in run(*command, *words).out.lower() for command in asked)


def absent_everywhere(run: Runner, *words: str) -> bool:
    """No reading command shows the word, whatever the view and the time."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    shown = ""
    for command in (
        ("recall", WORD),
        ("recall", "the staging host"),
        ("recall", WORD, "--view", "history"),
        ("recall", WORD, "--view", "changes"),
        ("recall", WORD, "--as-of", "2020-01-01"),
        ("recall", WORD, "--known-at", now),
        ("context", WORD),
        ("context", "staging host"),
        ("log",),
        ("export", "-"),
        ("ls-refs", "--all"),
        ("tombstones",),
    ):
        shown += run(*command, *words).out
    return WORD not in shown.lower()


# -- scope --------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["--profile", "--collection", "--agent", "--session"])
def test_forgetting_a_scope_leaves_the_others(me: Inside, part: str) -> None:
    mine = [me.add(f"thing {n} of ann", part, "ann") for n in range(3)]
    theirs = [me.add(f"thing {n} of bo", part, "bo") for n in range(3)]
    assert set(hits(me("recall", "thing", part, "ann", "--json"))) == set(mine)  # the control
    done = me("forget", "--scope-all", "--yes", "--now", part, "ann", "--json", code=0).json
    assert set(done["observations"]) == set(mine)
    for _ in range(2):
        assert hits(me("recall", "thing", part, "ann", "--json")) == []
        assert set(hits(me("recall", "thing", part, "bo", "--json", code=0))) == set(theirs)
        me("verify", code=0)
        me("reindex", code=0)


def test_the_same_text_elsewhere_stays(me: Inside) -> None:
    one, two = (me.add(TEXT, "--collection", name) for name in ("s1", "s2"))
    assert one != two
    me("forget", one, "--collection", "s1", "--now", code=0)
    assert absent(me, "--collection", "s1")
    assert hits(me("recall", WORD, "--collection", "s2", "--json", code=0)) == [two]
    assert me("add", TEXT, "--collection", "s1", "--json", code=3).json["status"] == "blocked"
    assert me("add", TEXT, "--collection", "s2", "--json", code=0).json["status"] == "known"
    me("verify", code=0)


def test_purging_one_scope_touches_no_other(me: Inside) -> None:
    for name in ("s1", "s2"):
        for n in range(5):
            me.add(f"shared thing {n} and {WORD}", "--collection", name)
    before = me("export", "-", "--collection", "s2", code=0).raw
    me("forget", "--scope-all", "--yes", "--collection", "s1", code=0)
    me("purge", code=0)
    assert me("export", "-", "--collection", "s2", code=0).raw == before
    assert len(hits(me("recall", WORD, "--collection", "s2", "--json", code=0))) == 5
    me("verify", code=0)


# -- reading ------------------------------------------------------------------------------------


def test_no_read_shows_it(me: Inside) -> None:
    found = me.add(TEXT)
    assert hits(me("recall", WORD, "--json", code=0)) == [found]
    assert WORD in me("context", WORD, code=0).out
    assert not absent_everywhere(me)
    me("forget", found, code=0)
    assert absent_everywhere(me)
    known = me("show", found, code=3)
    unknown = me("show", "ffffffffff", code=1)
    assert "was forgotten" in known.err and "was forgotten" not in unknown.err
    me("purge", code=0)
    assert absent_everywhere(me)
    assert "was forgotten" in me("show", found, code=3).err


def test_no_reading_by_meaning_shows_it(me: Inside) -> None:
    pytest.importorskip("numpy")
    env = {"REMEM_EMBEDDER": "hash"}
    found = me.add(TEXT, env=env)
    me.add("something else altogether", env=env)
    me("project", env=env, code=0)
    words = ("recall", f"where is {WORD}-72 staged", "--mode", "vector", "--json")
    assert found in hits(me(*words, env=env, code=0))
    me("forget", found, env=env, code=0)
    assert found not in hits(me(*words, env=env))
    me("verify", env=env, code=0)
    me("purge", env=env, code=0)
    assert found not in hits(me(*words, env=env))
    me("verify", env=env, code=0)


def test_what_is_gone_takes_no_place_among_the_hits(me: Inside) -> None:
    lines = [
        {"text": f"staging host number {n} is down", "at": f"2026-01-{n % 28 + 1:02}"}
        for n in range(50)
    ]
    me("import", "jsonl", "-", stdin="\n".join(map(json.dumps, lines)), code=0)
    alive = me.add("staging host number 99 is up again")
    everything = hits(me("recall", "staging host is down", "-n", "60", "--json", code=0))
    assert len(everything) == 51
    gone = [i for i in everything if i != alive]
    me("forget", *gone, code=0)
    for _ in range(2):
        assert hits(me("recall", "staging host is down", "-n", "5", "--json", code=0)) == [alive]
        me("purge", code=0)


# -- coming back --------------------------------------------------------------------------------


def test_nothing_derived_keeps_it_or_makes_it_again(me: Inside) -> None:
    said = me.add("I live in Zorvexquark", "--speaker", "Ann", "--role", "user")
    me.add("I have a dog named Rex", "--speaker", "Ann", "--role", "user")
    me("derive", code=0)
    derived = me("show", said, "--json", code=0).json["derived"]
    assert derived, "the control: something was derived"
    assert grep(me.store, "Zorvexquark") or grep(me.store)
    me("forget", said, code=0)
    for _ in range(2):
        me("derive", code=0)
        me("derive", "--rebuild", code=0)
        me("reindex", code=0)
        assert absent(me)
        for memory in derived:
            me("show", memory["ref"], code=3)
        me("purge", code=0)
    assert me("add", "I live in Zorvexquark", "--speaker", "Ann", code=3)
    assert "Rex" in me("recall", "dog", code=0).out
    me("verify", code=0)
    for word in ("Zorvexquark", WORD):
        assert grep(me.store, word) == []


def test_what_was_forgotten_while_a_deriver_was_at_work_is_not_derived(run: Runner) -> None:
    """Work is taken up in one transaction and applied in another; the forgetting falls between."""
    said = run.add("I live in Zorvexquark", "--speaker", "Ann", "--role", "user")
    program = (
        "import subprocess, sys\n"
        "from remem.objects.derive import engine\n"
        "real = engine._Runner._derive\n"
        "def slow(self, refs):\n"
        "    work = real(self, refs)\n"
        f"    subprocess.run({[*REMEM, 'forget', said, '--now']!r}, check=True)\n"
        "    engine._Runner._derive = real\n"
        "    return work\n"
        "engine._Runner._derive = slow\n"
        "from remem.cli.entry import main\n"
        "sys.exit(main(['derive']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env=run.environment(), cwd=run.cwd)
    assert done.returncode == 0
    run("derive", code=0)
    assert absent(run)
    assert grep(run.store, "Zorvexquark") == []
    assert run("ls-refs", "--all", code=0).out.count("memory") == 0
    run("verify", code=0)


FORMS = [TEXT, TEXT.upper(), f"  {TEXT} ", f'"{TEXT}"', f"{TEXT}!", TEXT.replace(" ", "\u00a0 ")]


@pytest.mark.parametrize("purged", [False, True])
def test_every_door_is_shut(me: Inside, purged: bool, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps({"text": text}) + "\n" for text in FORMS))
    notes = tmp_path / "notes.txt"
    notes.write_text(TEXT + "\n")
    keep = me.add("the words of the day")
    fact = me("fact", "web", "runs_on", "alpha", "--json", code=0).json["id"]
    memory = me("fact", "db", "runs_on", WORD, "--json", code=0).json
    found = me.add(TEXT)
    dated = me.add(TEXT, "--at", "2026-01-01", "--source", "wiki", "--source-id", "7")
    pack = tmp_path / "before.pack"
    me("export", pack, code=0)
    me("forget", found, dated, memory["id"], *(("--now",) if purged else ()), code=0)
    doors = [
        *(("add", form) for form in FORMS),
        ("add", TEXT, "--at", "2027-01-01"),
        ("add", TEXT, "--session", "elsewhere", "--agent", "bot"),
        ("add", "an edited page", "--source", "wiki", "--source-id", "7"),
        ("hash-object", "-w", str(notes)),
        ("fact", "db", "runs_on", WORD),
        ("fact", "db", "runs on", WORD.upper()),
        ("fact", "x", "y", "z", "--text", TEXT),
        ("fact", "db", "runs_on", WORD, "--text", "other words for it", "--source-obs", keep),
        ("revise", keep, TEXT),
        ("revise", fact, TEXT.upper()),
    ]
    for door in doors:
        done = me(*door)
        assert done.code == 3, (door, done.shown)
        assert done.out == "" and "blocked by tombstone" in done.err, door
    bulk = [
        (("import", "jsonl", lines), len(FORMS)),
        (("import", "text", notes), 1),
        (("add", "--jsonl"), len(FORMS)),
    ]
    for words, count in bulk:
        value = me(*words, "--json", stdin=lines.read_text(), code=0).json
        assert (value["new"], value["blocked"], value["read"]) == (0, count, count), words
    value = take(me, pack)
    assert value["new"] == 0 and value["blocked"] >= 3
    assert take(me, pack, "--trust", "--apply-tombstones")["new"] == 0
    assert me("revise", keep, "other words", code=0)  # the control
    assert absent(me)
    if purged:
        assert grep(me.store) == []
    rows = me("audit", "-n", "500", "--json", code=0).json
    outcomes = [row["action"] for row in rows if row["outcome"] == "tombstone"]
    expected = len(doors) + sum(count for _, count in bulk)
    assert len(outcomes) >= expected + 3
    me("verify", code=0)


def test_a_rollback_to_what_was_forgotten_is_refused(me: Inside) -> None:
    keep = me.add(TEXT)
    me("revise", keep, "harmless words", code=0)
    twin = me.add(f"{TEXT}!", "--at", "2026-02-02")
    me("forget", twin, code=0)
    done = me("rollback", keep, code=3)
    assert "blocked by tombstone" in done.err
    me("forget", keep, code=0)
    assert me("rollback", keep, "--to", "1", code=3).out == ""
    assert absent(me)
    me("verify", code=0)


# -- packs --------------------------------------------------------------------------------------


def test_deletions_travel(me: Inside, tmp_path: Path) -> None:
    two = other_store(me, "second")
    one_pack, two_pack = tmp_path / "f1.pack", tmp_path / "f2.pack"
    found = me.add(TEXT)
    me("export", one_pack, code=0)
    me("forget", found, "--reason", "mistake", "--now", code=0)
    me("export", two_pack, code=0)
    assert WORD in one_pack.read_text() and WORD not in two_pack.read_text()
    take(two, one_pack)
    assert hits(two("recall", WORD, "--json", code=0)) == [found]
    listed = two("import", "pack", two_pack, code=0)
    assert "forgotten there, kept here: 1; --apply-tombstones forgets them" in listed.err
    assert hits(two("recall", WORD, "--json", code=0)) == [found]
    assert take(two, two_pack, "--apply-tombstones")["erased"] == 1
    assert absent(two)
    for store in (me, two):
        again = store("import", "pack", one_pack, code=0)
        assert "blocked 1" in again.out and "blocked by tombstone: 1" in again.err
        assert absent(store)
    two("purge", code=0)
    assert grep(two.store) == []
    assert absent(two) and take(two, one_pack)["blocked"] == 1
    assert two("add", TEXT, "--json", code=3).json["status"] == "blocked"  # its own digest
    (tomb,) = two("tombstones", "--json", code=0).json
    assert (tomb["id"], tomb["reason"]) == (found, "mistake")
    for store in (me, two):
        store("verify", code=0)


def test_a_pack_carries_ids_times_and_reasons_of_tombstones_only(
    me: Inside, tmp_path: Path
) -> None:
    found = me.add(TEXT)
    me("fact", "db", "runs_on", WORD, code=0)
    me("forget", "--query", WORD, "--yes", "--reason", "mistake", code=0)
    from remem.objects import format as fmt
    from remem.objects import kv

    path = str(next((me.store / "canon").iterdir()))
    env = kv.open_env(path, fmt.TABLES, readonly=True)
    with env.read() as txn:
        digests = [key[4:] for key, _ in txn.scan("values")]
        keys = [data[-40:] for key, data in txn.scan("parts") if key[:1] == b"n"]
    kv.forget_env(path)
    assert len(digests) >= 2
    for _ in range(2):
        packed = me("export", "-", code=0).raw
        assert found.encode() in packed and b'"reason":"mistake"' in packed  # the control
        assert WORD.encode() not in packed.lower()
        for secret in (*digests, *keys):
            assert secret not in packed and secret.hex().encode() not in packed
        me("purge", code=0)


def test_an_older_dump_and_a_store_that_never_had_it(me: Inside, tmp_path: Path) -> None:
    two, three = other_store(me, "second"), other_store(me, "third")
    found = me.add(TEXT)
    early, old, late = (tmp_path / name for name in ("early", "old", "late"))
    me("export", early, code=0)
    take(two, early)
    two("export", old, code=0)  # an older dump of the other store
    me("forget", found, code=0)
    me("export", late, code=0)
    assert take(two, late, "--apply-tombstones")["erased"] == 1
    assert take(me, old)["blocked"] == 1
    assert take(three, late)["new"] >= 1  # the tombstone alone
    value = take(three, early)
    assert (value["new"], value["blocked"]) == (0, 1)
    for store in (me, two, three):
        assert absent(store)
        store("purge", code=0)
        assert grep(store.store) == []
        store("verify", code=0)
    assert len(three("tombstones", "--json", code=0).json) == 1


def test_a_partial_pack_forgets_nothing(me: Inside, tmp_path: Path) -> None:
    lines = [{"text": f"thing {n}", "session": "few" if n < 10 else "many"} for n in range(200)]
    me("import", "jsonl", "-", stdin="\n".join(map(json.dumps, lines)), code=0)
    pack = tmp_path / "few.pack"
    me("export", pack, "--session", "few", code=0)
    before = me("ls-refs", "--all", code=0).out
    assert len(before.splitlines()) == 200 and pack.read_text().count('"op"') == 10
    for words in (("--dry-run",), (), ("--apply-tombstones", "--trust")):
        value = take(me, pack, *words)
        assert (value["new"], value["known"], value["blocked"]) == (0, 10, 0)
    assert me("ls-refs", "--all", code=0).out == before
    assert me("tombstones", "--json", code=0).json == []
    two = other_store(me, "second")
    assert take(two, pack)["new"] == 10
    assert two("tombstones", "--json", code=0).json == []


def test_packs_of_a_store_with_tombstones_round_trip(me: Inside, tmp_path: Path) -> None:
    me.add("kept")
    me("forget", me.add(TEXT), "--reason", "mistake", code=0)
    one = me("export", "-", code=0).raw
    two = other_store(me, "second")
    (tmp_path / "one").write_bytes(one)
    take(two, tmp_path / "one", "--trust")
    assert two("export", "-", code=0).raw == one
    me("purge", code=0)
    again = me("export", "-", code=0).raw
    (tmp_path / "again").write_bytes(again)
    take(two, tmp_path / "again", "--trust")
    assert two("export", "-", code=0).raw == again
    two("verify", code=0)


# -- rebuilding ---------------------------------------------------------------------------------


def test_rebuilding_forgets_no_forgetting(run: Runner) -> None:
    for n in range(30):
        run.add(f"thing {n}", "--source", "wiki", "--source-id", str(n), "--kind", f"k{n % 3}")
    found = run.add(TEXT)
    run("recall", WORD, code=0)
    run("forget", found, code=0)
    before = run("export", "-", code=0).raw
    run("reindex", code=0)
    assert absent(run)
    child = run.start("reindex", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.12)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert absent(run)
    run("reindex", code=0)
    shutil.rmtree(run.store / "index")
    assert absent(run)
    assert run("export", "-", code=0).raw == before
    assert run("show", found, code=3)
    run("verify", code=0)


# -- trace and reason ---------------------------------------------------------------------------


def test_a_trace_without_the_text(me: Inside) -> None:
    gone, retired, old = me.add(TEXT), me.add("still true"), me.add("the port is 1")
    me("close", retired, "--reason", "done", code=0)
    me("add", "the port is 2", "--corrects", old, code=0)
    me("forget", gone, "--reason", "leaked", "--now", code=0)
    ops = {
        e["op"]: (e["principal"], e["reason"])
        for found in (gone, retired, old)
        for e in me("log", found, "--json", code=0).json
    }
    assert ops["erase"] == ops["purge"] == ("owner", "leaked")
    assert ops["close"] == ("owner", "done")
    assert ops["supersede"][0] == "owner"
    assert WORD not in me("log", "--json", code=0).out
    assert "still true" in me("recall", "true", "--view", "history", code=0).out
    assert WORD not in me("audit", "-n", "100", "--json", code=0).out
    me("verify", code=0)


def test_two_verbs_and_two_undos(me: Inside) -> None:
    """What was closed opens again with all of it; what was purged does not."""
    soft, hard = me.add("the port is 1"), me.add(TEXT)
    before = me("show", soft, "--json", code=0).json
    me("close", soft, code=0)
    me("reopen", soft, code=0)
    after = me("show", soft, "--json", code=0).json
    assert {k: before[k] for k in ("text", "source", "asserted_at", "status", "truth")} == {
        k: after[k] for k in ("text", "source", "asserted_at", "status", "truth")
    }
    me("forget", hard, code=0)
    assert me("undo", code=3).out == ""
    me("purge", code=0)
    assert "are gone" in me("tombstones", "restore", hard, code=3).err
    assert "was forgotten" in me("reopen", hard, code=3).err


def test_after_erasing_everything_the_chain_holds_from_row_1(me: Inside) -> None:
    for n in range(12):
        me.add(f"{WORD} number {n}", "--collection", f"c{n % 3}")
    me("fact", "a", "b", WORD, code=0)
    me("derive", code=0)
    me("forget", "--scope-all", "--all-collections", "--yes", "--now", code=0)
    value = me("verify", "--json", code=0).json
    assert value["ok"] and value["audit"]["first_bad"] is None
    assert value["objects"]["checked"] == 0 and value["tombstones"]["count"] >= 14
    rows = me("audit", "-n", "500", "--json", code=0).json
    assert len(rows) == value["audit"]["rows"] and rows[0]["action"] == "create"
    assert grep(me.store) == []


# -- all of it together -------------------------------------------------------------------------


@pytest.mark.parametrize("with_other", [True, False])
def test_erase_once_then_try_every_way_back(run: Runner, tmp_path: Path, with_other: bool) -> None:
    a = ("--collection", "a")
    x = "I live in Zorvexquark"
    said = run.add(x, "--speaker", "Ann", "--role", "user", *a)
    if with_other:
        other = run.add(x, "--speaker", "Ann", "--role", "user", "--collection", "b")
    run.add("I have a dog named Rex", "--speaker", "Ann", "--role", "user", *a)
    run("derive", "--collection", "a", code=0)
    approved = run("fact", "Ann", "home", "Zorvexquark", "--source-obs", said, *a, "--json", code=0)
    memory = approved.json["id"]
    run("recall", "Zorvexquark", *a, code=0)
    old = tmp_path / "old.pack"
    run("export", old, *a, code=0)
    assert said in run("recall", "Zorvexquark", *a, "--json", code=0).out
    assert len(run("show", said, *a, "--json", code=0).json["derived"]) >= 2  # the control

    run("forget", said, "--reason", "asked", *a, code=0)
    assert absent(run, *a)
    for found in (said, memory):
        run("show", found, *a, code=3)
    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
    for words in (("--as-of", before), ("--known-at", before), ("--view", "history")):
        assert "orvexquark" not in run("recall", "Zorvexquark live", *words, *a).out
    run("reindex", code=0)
    run("derive", "--rebuild", *a, code=0)
    assert absent(run, *a)
    blocked = run("add", x, "--speaker", "Ann", "--role", "user", *a, code=3)
    assert "blocked by tombstone" in blocked.err
    again = run("import", "pack", old, "--trust", *a, code=0)
    assert "blocked by tombstone" in again.err and "new 0" in again.out
    assert absent(run, *a)
    assert "orvexquark" not in run("export", "-", *a, code=0).out
    run("purge", code=0)
    for _ in range(2):
        assert absent(run, *a)
        run("import", "pack", old, "--trust", *a, code=0)
        run("derive", "--rebuild", *a, code=0)
        run("reindex", code=0)
    run("verify", code=0)
    assert "Rex" in run("recall", "dog", *a, code=0).out
    left = sorted(set(grep(run.store, "Zorvexquark")) | set(grep(run.store)))
    if with_other:
        b = run("recall", "Zorvexquark", "--collection", "b", "--json", code=0)
        assert other in b.out
        assert left != []
    else:
        assert left == []


def test_what_was_superseded_comes_through_no_other_door(run: Runner, tmp_path: Path) -> None:
    said = [run.add("deploy host is alpha-9", "--at", f"2026-01-{n:02}") for n in range(1, 11)]
    run("derive", code=0)
    control = run("recall", "deploy host", "--json", code=0).json["hits"]
    assert [h["text"] for h in control] == ["deploy host is alpha-9"]
    old = control[0]["id"]
    assert len(control[0]["cites"]) == 10
    newest = run.add("deploy host is beta-3", "--at", "2026-03-01", "--source", "wiki")

    def answers(store: Runner) -> None:
        for query in ("deploy host", "alpha-9", "which host do we deploy to?"):
            assert "alpha-9" not in store("recall", query).out, query
            assert "alpha-9" not in store("context", query).out, query
        (hit,) = store("recall", "deploy host", "--json", code=0).json["hits"]
        assert hit["text"] == "deploy host is beta-3"
        assert [c["source"]["uri"] for c in hit["cites"]] == ["wiki"]
        history = store("recall", "alpha-9", "--view", "history", "--json", code=0).json["hits"]
        labels = {h["id"]: (h["truth"], h["replaced_by"]) for h in history}
        assert labels[old] == ("historical", hit["ref"])
        then = store("recall", "deploy host", "--as-of", "2026-02-01", code=0).out
        assert "alpha-9" in then and "beta-3" not in then

    answers(run)
    run("derive", "--rebuild", code=0)
    run("reindex", code=0)
    answers(run)
    two = other_store(run, "second")
    run("export", tmp_path / "all.pack", code=0)
    take(two, tmp_path / "all.pack", "--trust")
    answers(two)
    # and once it is forgotten, through none at all
    run("forget", *said, "--now", code=0)
    run("import", "pack", tmp_path / "all.pack", "--trust", code=0)
    run("derive", "--rebuild", code=0)
    for words in ((), ("--view", "history"), ("--as-of", "2026-02-01")):
        assert "alpha-9" not in run("recall", "deploy host alpha-9", *words).out
    assert newest in run("recall", "deploy host", "--json", code=0).out
    assert grep(run.store, "alpha-9") == []
    run("verify", code=0)


def test_a_backup_put_back_is_an_older_store(me: Inside) -> None:
    """Nothing inside a backup can know what was forgotten later; a pack can tell it."""
    found = me.add(TEXT)
    me("backup", me.home / "copy", code=0)
    me("forget", found, "--now", code=0)
    me("export", me.home / "after.pack", code=0)
    restored = other_store(me, "copy")
    assert hits(restored("recall", WORD, "--json", code=0)) == [found]
    take(restored, me.home / "after.pack", "--apply-tombstones", "--trust")
    assert absent(restored)
    restored("purge", code=0)
    assert grep(restored.store) == [] and os.path.isdir(restored.store)
    restored("verify", code=0)
