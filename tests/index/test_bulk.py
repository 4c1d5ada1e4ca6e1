"""An index built in one go: the same as the projector's, whatever is in the store; its place."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.index import bulk, lexcheck, lexical, project
from remem.index.postings import (
    DOC,
    KEY,
    LANE,
    MARK,
    POST,
    join_lists,
    join_many,
    number_key,
    open_list,
    pack_list,
)
from remem.index.recall import Question, Searcher
from remem.index.segments import load_part
from remem.objects import forget, lists, purge, refs, revise
from remem.objects.admit import admit
from remem.objects.errors import IntegrityError
from remem.objects.model import Incoming, Scope
from remem.objects.scope import Actor, Grant, maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx
from remem.objects.views import Lens

HOME = Scope("local", "default", "home", "none", "main")
ME = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)
TURNS = 300
Content = dict[str, object]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.create(str(tmp_path / "store"))

    def fill(tx: Tx) -> list[bytes]:
        said = []
        for n in range(TURNS):
            text = f"turn {n} of tea, word{n % 37} and zorvex{n} " + "milk " * (n % 5)
            session = f"s{n % 11}"
            said.append(admit(tx, Incoming(text=text, session=session, asserted=n * 10**12)).ref)
        meta = {lists.HINTS: {"kind": "x"}}
        admit(tx, Incoming(text="a brief that is not recalled", kind=lists.BRIEF_KIND, meta=meta))
        admit(tx, Incoming(text="tea elsewhere", collection="work", source_id="1"))
        return said

    said = made.write(ME, fill)
    part = made.write(ME, lambda tx: tx.part(HOME))
    made.write(ME, lambda tx: forget.forget_many(tx, [(part, ref) for ref in said[50:60]]))
    made.write(ME, lambda tx: admit(tx, Incoming(text="tea after all")))
    yield made
    made.close()


def content(store: Store) -> Content:
    """What an index holds, whatever its segments are."""
    found: Content = {}
    env = project.open_lexical(store, write=False)
    assert env is not None
    with env.read() as txn:
        for table in (DOC, KEY, LANE, MARK):
            found[table] = list(txn.pairs(table))
        for number in lexical.parts(txn):
            assert lexcheck.check(txn, number) == []
            part = load_part(txn, number)
            found[f"part {number}"] = (
                part.n, part.total, part.next_doc, part.last_seq, part.ordered
            )  # fmt: skip
            lists_of: dict[bytes, list[bytes]] = {}
            for segment in part.segments:
                for key, value in txn.scan_prefix(POST, number_key(number, segment.number)):
                    lists_of.setdefault(key[8:], []).append(open_list(key, value))
            found[f"lists {number}"] = {t: join_many(t, b) for t, b in lists_of.items()}
    return found


def segments(store: Store) -> list[int]:
    env = project.open_lexical(store, write=False)
    assert env is not None
    with env.read() as txn:
        return [len(load_part(txn, number).segments) for number in lexical.parts(txn)]


def projected(store: Store, monkeypatch: pytest.MonkeyPatch) -> Content:
    """What the projector makes of a store, in batches."""
    with monkeypatch.context() as patch:
        patch.setattr(project, "BATCH", 16)
        project.drop_lexical(store)
        project.project(store)
    assert max(segments(store)) > 1
    return content(store)


@pytest.mark.parametrize("postings", [1, 100, 1 << 30])
@pytest.mark.parametrize("changed", [0, 1 << 18])
def test_it_is_what_the_projector_makes(
    store: Store, monkeypatch: pytest.MonkeyPatch, postings: int, changed: int
) -> None:
    wanted = projected(store, monkeypatch)
    monkeypatch.setattr(project, "BATCH", 16)
    monkeypatch.setattr(bulk, "_RUN_POSTINGS", postings)
    monkeypatch.setattr(bulk, "_SLICE_B", 200)
    monkeypatch.setattr(bulk, "_PAIRS", 7)
    monkeypatch.setattr(bulk, "_MOST_CHANGED", changed)
    done = project.rebuild(store)
    assert content(store) == wanted
    assert set(segments(store)) == {1} and done.added == TURNS - 10 + 2
    assert sorted(os.listdir(store.index_path)) == ["terms"]
    assert sorted(os.listdir(project.lexical_path(store))) == ["SEAL", "data.mdb", "lock.mdb"]


def test_revisions_keep_their_places(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    part = store.write(ME, lambda tx: tx.part(HOME))

    def change(tx: Tx) -> None:
        for n in range(20):
            ref = admit(tx, Incoming(text=f"meeting {n} is on monday")).ref
            for again in range(n % 3):
                found = tx.reader.find(ref.hex())
                revise.revise(tx, found, f"meeting {n} is put off again, {again} days")

    store.write(ME, change)
    with store.read(maintenance_grant()) as reader:
        more = [ref for ref, state in reader.states(part) if state.first != state.last]
    assert len(more) >= 13
    wanted = projected(store, monkeypatch)
    monkeypatch.setattr(project, "BATCH", 16)
    project.rebuild(store)
    assert content(store) == wanted


def test_what_comes_later_joins_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    project.rebuild(store)
    store.write(ME, lambda tx: admit(tx, Incoming(text="zorvexquark at last")))
    project.project(store)
    later = content(store)
    project.rebuild(store)
    assert content(store) == later


def test_a_store_without_anything(tmp_path: Path) -> None:
    empty = Store.create(str(tmp_path / "empty"))
    assert project.rebuild(empty).added == 0
    assert project.try_project(empty)
    env = project.open_lexical(empty, write=False)
    assert env is not None
    with env.read() as txn:
        assert project.current_stamp(txn) and lexical.parts(txn) == []
    empty.close()


def ask(searcher: Searcher) -> list[bytes]:
    question = Question("zorvex7", Lens(1 << 60, "history"), mode="lexical")
    return [hit.ref for hit in searcher.ask(question).hits]


def test_the_old_one_serves_until_the_new_one_is_there(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.project(store)
    searcher = Searcher(store, ME.grant, None)
    answer = ask(searcher)
    assert answer
    seen = []
    real = bulk._Builder._write_lists

    def look(self: bulk._Builder) -> None:
        seen.append(ask(searcher))
        real(self)

    monkeypatch.setattr(bulk._Builder, "_write_lists", look)
    project.rebuild(store)
    assert seen == [answer, answer]  # once for each partition
    assert ask(searcher) == answer


@pytest.mark.parametrize("step", ["_write_run", "_write_keys", "_finish"])
def test_a_kill_leaves_the_old_one(store: Store, step: str) -> None:
    project.project(store)
    before = content(store)
    store.close()
    child = os.fork()
    if not child:
        own = Store(store.root)
        bulk._RUN_POSTINGS = 500
        setattr(bulk._Builder, step, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        project.rebuild(own)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the step was never reached"
    again = Store(store.root)
    assert project.LEXICAL + project.NEW in os.listdir(again.index_path)
    assert content(again) == before and project.try_project(again)
    project.rebuild(again)
    assert os.listdir(again.index_path) == [project.LEXICAL]
    assert content(again) == before
    again.close()


def test_an_error_leaves_the_old_one_and_nothing_else(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.project(store)
    before = content(store)

    def fail(*_: object) -> None:
        raise IntegrityError("no more")

    with monkeypatch.context() as patch:
        patch.setattr(bulk._Builder, "_write_keys", fail)
        with pytest.raises(IntegrityError):
            project.rebuild(store)
    assert os.listdir(store.index_path) == [project.LEXICAL]
    assert content(store) == before


def test_a_purge_leaves_no_unfinished_index(store: Store) -> None:
    """What a kill left behind holds words of what is purged later."""
    project.project(store)
    left = os.path.join(store.index_path, project.LEXICAL + project.NEW)
    os.mkdir(left)
    Path(left, "data.mdb").write_bytes(b"zorvex55")
    from remem.index import sweep

    report = sweep.run(store, ME)
    assert report.refs and report.proof is not None and report.proof.findings == []
    assert not purge.others(store.root)


a_list = st.lists(st.integers(1, 1 << 15), min_size=1, max_size=6)


@given(st.lists(a_list, min_size=1, max_size=6), st.sampled_from([b"term", b"\0f:x"]))
def test_joining_many_is_joining_two_after_two(counts: list[list[int]], term: bytes) -> None:
    bodies, at = [], 0
    for codes in counts:
        docs = range(at, at + len(codes))
        at += len(codes) + 3
        both = zip(docs, codes, strict=True)
        pairs = [doc if term[0] == 0 else code << 32 | doc for doc, code in both]
        bodies.append(pack_list(term, pairs))
    joined = bodies[0]
    for body in bodies[1:]:
        joined = join_lists(term, joined, body)
    assert join_many(term, bodies) == joined


def test_a_step_without_a_state_is_the_state(store: Store) -> None:
    """What the builder relies on: a ref with one entry is what that entry says."""
    with store.read(maintenance_grant()) as reader:
        singles = 0
        for part in reader.parts:
            for entry in reader.log(part):
                state = reader.state(part, entry.ref)
                if state is not None and state.first == state.last:
                    assert state == refs.step(None, entry)
                    singles += 1
        assert singles > TURNS - 20
