"""Plumbing: one record a line, full ids, the same for ever."""

from __future__ import annotations

import json
import re

import pytest
from blake3 import blake3

from .conftest import LINES, Runner

Ids = dict[str, str]


def test_ls_refs(filled: Runner, ids: Ids) -> None:
    lines = filled("ls-refs", code=0).out.splitlines()
    assert [line.split(" ")[0] for line in lines] == sorted(
        ids[k] for k in ("api", "deploys", "hostile", "moved")
    )
    for line in lines:
        assert re.fullmatch(r"[0-9a-f]{64} (observation|memory) [a-z_]+ [0-9a-f]{64}", line)
    values = filled("ls-refs", "--json", code=0).json
    assert [" ".join(value.values()) for value in values] == lines
    assert filled("ls-refs", "-z", code=0).out == "".join(line + "\0" for line in lines)
    assert len(filled("ls-refs", "--all-collections", code=0).out.splitlines()) == 5


def test_no_refs_is_no_lines_and_an_empty_list(run: Runner) -> None:
    run("init", code=0)
    assert run("ls-refs", code=0).out == ""
    assert run("ls-refs", "--json", code=0).json == []


def test_count_objects(filled: Runner, ids: Ids) -> None:
    value = filled("count-objects", "--json", code=0).json
    assert value["observation"]["count"] == value["total"]["count"] == 4
    sizes = [int(filled("cat-object", "--size", ids[k]).out) for k in LINES if k != "other"]
    assert value["total"]["bytes"] == sum(sizes)
    lines = filled("count-objects", code=0).out.splitlines()
    assert lines == [
        f"observation 4 {sum(sizes)}",
        "memory 0 0",
        "draft 0 0",
        "run 0 0",
        f"total 4 {sum(sizes)}",
    ]
    assert filled("count-objects", "-z").out == "".join(line + "\0" for line in lines)


def test_cat_object(filled: Runner, ids: Ids) -> None:
    name = ids["api"]
    value = filled("cat-object", name, code=0).json
    assert value["id"] == name and value["type"] == "observation"
    assert value["text"] == LINES["api"]["text"] and value["speaker"] == "Ann"
    assert filled("cat-object", "--type", name, code=0).out == "observation\n"
    assert filled("cat-object", "--type", "--json", name, code=0).json == "observation"
    assert filled("cat-object", "--raw", name, code=0).out == LINES["api"]["text"]


def test_the_id_is_the_digest_of_the_bytes(filled: Runner, ids: Ids) -> None:
    for name in ("api", "hostile", "moved"):
        data = filled("cat-object", "--bytes", ids[name], code=0).raw
        assert blake3(data).hexdigest() == ids[name]
        assert filled("cat-object", "--size", ids[name]).out == f"{len(data)}\n"


def test_cat_object_keeps_control_characters_from_the_terminal(run: Runner) -> None:
    found = run.add("-", stdin="c1 \x9b31m, bidi \u202e, bell \x07")
    out = run("cat-object", found, code=0).out
    assert not {"\x9b", "\u202e", "\x07"} & set(out)
    assert json.loads(out)["text"] == "c1 \x9b31m, bidi \u202e, bell \x07"


def test_hash_object_is_the_id_that_add_gives(run: Runner) -> None:
    run.add("the first makes the collection")
    before = run("hash-object", "-", stdin="two approvals", code=0)
    assert run("hash-object", "-", "--json", stdin="two approvals").json["status"] == "new"
    assert run("count-objects", "--json").json["total"]["count"] == 1
    assert run.add("two approvals") == before.out.strip()
    again = run("hash-object", "-", "--json", stdin="two approvals", code=0).json
    assert again["status"] == "known" and again["id"] == before.out.strip()
    assert run("hash-object", "-z", "-", stdin="x").out.endswith("\0")


def test_hash_object_stores_when_asked_to(run: Runner) -> None:
    (run.cwd / "note.txt").write_text("from a file\n")
    found = run("hash-object", "-w", "note.txt", code=0).out.strip()
    assert run("show", "--raw", found, code=0).out == "from a file\n"
    assert run("hash-object", "note.txt", code=0).out.strip() == found


def test_there_is_no_id_before_there_is_a_collection(run: Runner) -> None:
    run("init", code=0)
    done = run("hash-object", "-", stdin="x", code=1)
    assert "-w" in done.err and done.out == ""
    run("hash-object", "-w", "-", stdin="x", code=0)
    run("hash-object", "-", stdin="x", code=0)
    run("hash-object", "-", "--collection", "empty", stdin="x", code=1)


def test_ids_differ_between_scopes(run: Runner) -> None:
    ids = {run.add("same words", "--collection", name) for name in ("a", "b")}
    ids |= {run.add("same words", "--tenant", "t", "--collection", "a")}
    assert len(ids) == 3


@pytest.mark.parametrize("embedder", ["none", "hash"])
def test_project_converges(filled: Runner, embedder: str) -> None:
    filled.env["REMEM_EMBEDDER"] = embedder
    value = filled("project", "--json", code=0).json
    assert value["added"] == 5 and value["removed"] == 0
    assert value["vectors"] == (5 if embedder == "hash" else 0)
    again = filled("project", "--json", code=0).json
    assert (again["added"], again["vectors"]) == (0, 0)
    assert again["vectors_behind"] == (0 if embedder == "hash" else None)
    assert filled("project", code=0).out.startswith("added 0\nremoved 0\nvectors 0\n")
