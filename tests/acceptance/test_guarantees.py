"""The guarantees of README, each shown by the command that it names."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from remem.objects import kv
from remem.objects.format import TABLES

REMEM = [sys.executable, "-m", "remem"]


class Shell:
    """A person at a terminal with a store of their own."""

    def __init__(self, home: Path) -> None:
        self.store = home / "store"
        self.env = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "REMEM_STORE": str(self.store),
            "REMEM_EMBEDDER": "none",
            "TZ": "UTC",
        }
        self.cwd = home

    def run(self, *words: str, code: int | None = 0, stdin: str = "") -> str:
        done = subprocess.run(
            [*REMEM, *words],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.env,
            cwd=self.cwd,
            timeout=100,
            check=False,
        )
        if code is not None:
            assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout

    def json(self, *words: str, code: int | None = 0, stdin: str = "") -> Any:
        return json.loads(self.run(*words, "--json", code=code, stdin=stdin))

    def data(self) -> Path:
        return next((self.store / "canon").glob("g*/data.mdb"))


@pytest.fixture
def me(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_g1_ids_are_recomputed_from_the_bytes(me: Shell) -> None:
    made = me.json("add", "the deploy host is alpha-9")
    env = kv.open_env(str(me.data().parent), TABLES, readonly=True)
    with env.read() as txn:
        stored = {key[4:].hex(): data for key, data in txn.scan("objects")}
    kv.forget_env(str(me.data().parent))
    assert blake3(stored[made["id"]]).hexdigest() == made["id"]
    assert me.run("cat-object", made["id"], "--raw") == "the deploy host is alpha-9"
    assert me.json("verify")["objects"] == {"checked": 1, "bad": []}

    env = kv.open_env(str(me.data().parent), TABLES)

    def tamper(txn: kv.Txn) -> None:
        key = b"\0\0\0\1" + bytes.fromhex(made["id"])
        txn.put("objects", key, stored[made["id"]].replace(b"alpha-9", b"omega-9"))

    env.write(tamper)
    kv.forget_env(str(me.data().parent))
    report = me.json("verify", code=4)
    assert not report["ok"] and made["id"] in json.dumps(report["objects"]["bad"])


def test_g2_any_past_belief_can_be_read_back(me: Shell) -> None:
    me.run("add", "the deploy host is alpha-9")
    before = me.json("log")[0]["recorded_at"]
    time.sleep(0.01)
    me.run("add", "the deploy host has a red label")
    assert len(me.json("recall", "deploy host")["hits"]) == 2
    then = me.json("recall", "deploy host", "--known-at", before)
    assert [h["text"] for h in then["hits"]] == ["the deploy host is alpha-9"]


def test_g3_each_change_has_its_row_and_a_lost_row_is_found(me: Shell) -> None:
    ids = [me.json("add", f"note number {n}")["id"] for n in range(5)]
    rows = me.json("audit", "-n", "50")
    assert sorted(r["resource"] for r in rows) == sorted(ids)
    assert "note number" not in json.dumps(rows)
    clean = me.data().read_bytes()
    for gone in (5, 3):  # the last row, one in the middle
        env = kv.open_env(str(me.data().parent), TABLES)
        env.write(lambda txn, gone=gone: txn.delete("audit", gone.to_bytes(8, "big")))  # type: ignore[misc]
        kv.forget_env(str(me.data().parent))
        assert me.json("verify", code=4)["ok"] is False
        me.data().write_bytes(clean)
        assert me.json("verify")["ok"] is True


def test_g4_a_foreign_id_answers_as_an_unknown_one(me: Shell, tmp_path: Path) -> None:
    theirs = me.json("add", "zorvex-b is theirs", "--tenant", "b", "--profile", "p2")["id"]
    mine = me.json("add", "zorvex-a is mine", "--tenant", "a", "--profile", "p1")["id"]
    scope = ("--tenant", "a", "--profile", "p1")
    unknown = theirs[:-8] + "01234567"
    for words in (["show"], ["cat-object"], ["log"], ["why"], ["rev-parse"]):
        answers = []
        for name in (theirs, unknown):
            done = subprocess.run(
                [*REMEM, *words, name, *scope],
                capture_output=True,
                text=True,
                env=me.env,
                cwd=me.cwd,
                check=False,
            )
            answers.append((done.returncode, done.stdout, done.stderr.replace(name, "ID")))
        assert answers[0] == answers[1] and answers[0][0] == 1, words
        me.run(*words, mine, *scope)
    for words in (["recall", "zorvex"], ["context", "zorvex"], ["log"], ["status"], ["ls-refs"]):
        out = me.run(*words, *scope)
        assert "zorvex-b" not in out and theirs[:10] not in out, words
    pack = me.run("export", "-", *scope)
    assert "zorvex-b" not in pack and "zorvex-a" in pack
    assert "zorvex-b" in me.run("recall", "zorvex", "--tenant", "b", "--profile", "p2")

    alone = Shell(tmp_path / "alone")
    alone.cwd.mkdir()
    alone.run("add", "zorvex-a is mine", *scope)
    for words in (["recall", "zorvex"], ["log"], ["status"]):
        with_b, without_b = (_timeless(s.json(*words, *scope), s) for s in (me, alone))
        assert with_b == without_b, words


def _timeless(value: Any, shell: Shell) -> Any:
    """JSON without what differs between any two stores: ids, times, sizes, the path."""
    if isinstance(value, dict):
        return {
            k: _timeless(v, shell)
            for k, v in value.items()
            if not k.endswith(("_at", "_from", "id"))
            and k not in ("ref", "new", "sizes", "store", "audit", "readers")
        }
    if isinstance(value, list):
        return [_timeless(v, shell) for v in value]
    return value


def test_g9_indexes_may_be_deleted_in_any_state(me: Shell) -> None:
    lines = "".join(f'{{"text": "note {n} about lanterns"}}\n' for n in range(50))
    me.run("import", "jsonl", "-", stdin=lines)
    before = me.json("recall", "lanterns")["hits"]
    for damage in ("remove", "truncate", "garbage"):
        for path in sorted((me.store / "index").rglob("*")):
            if path.is_file() and damage == "truncate":
                os.truncate(path, path.stat().st_size // 2)
            elif path.is_file() and damage == "garbage":
                path.write_bytes(random.Random(1).randbytes(5000))
        if damage == "remove":
            shutil.rmtree(me.store / "index")
        degraded = me.json("recall", "lanterns")
        assert {h["id"] for h in degraded["hits"]} <= {
            h["id"] for h in me.json("recall", "lanterns", "-n", "50")["hits"]
        }
        assert len(degraded["hits"]) == 10
        me.run("reindex")
        assert me.json("recall", "lanterns")["hits"] == before
        assert me.json("verify")["ok"] is True


def test_g10_a_kill_loses_no_acknowledged_write(me: Shell) -> None:
    rng = random.Random(3)
    me.run("init")
    acknowledged: list[str] = []
    for _ in range(6):
        loop = "i=0; while :; do i=$((i+1)); " + " ".join(
            [sys.executable, "-m", "remem", "add", '"note $$ $i"', "--json", ";", "done"]
        )
        child = subprocess.Popen(
            ["bash", "-c", loop],
            stdout=subprocess.PIPE,
            env=me.env,
            cwd=me.cwd,
            start_new_session=True,
        )
        time.sleep(0.5 + rng.random() * 0.4)
        os.killpg(child.pid, signal.SIGKILL)
        assert child.stdout is not None
        lines = child.stdout.read().decode().splitlines()
        acknowledged += [json.loads(line)["id"] for line in lines if line.endswith("}")]
        child.wait()
    assert len(acknowledged) >= 6
    assert set(acknowledged) <= set(me.run("ls-refs").split())
    assert me.json("verify")["ok"] is True
