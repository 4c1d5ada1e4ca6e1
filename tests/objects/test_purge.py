"""The next generation: what is copied, what is left out, what a crash leaves, who follows."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remem.objects import chains, encode, forget, holds, kv, purge, refs, tombs
from remem.objects import format as fmt
from remem.objects.admit import admit
from remem.objects.errors import StoreCorrupt
from remem.objects.fsck import verify
from remem.objects.model import Deriver, Incoming, Memory, Scope
from remem.objects.reader import Part
from remem.objects.scope import Actor, Grant, maintenance_grant
from remem.objects.store import Store, canon_path, read_generation
from remem.objects.tx import Tx

HOME = Scope("local", "default", "home", "none", "main")
ME = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)
WORD = "zorvexquark"
Rows = dict[tuple[str, bytes], bytes]


def claim(tx: Tx, text: str, cited: bytes) -> bytes:
    memory = Memory(
        encode.ZERO_SALT, HOME, "fact", text, ("it", "is", text), [cited], None, Deriver("rules"),
        900, None, None, None, [], "", [], {},
    )  # fmt: skip
    return chains.put(
        tx, tx.part(HOME), memory, status="provisional", single=False, valid_from=tx.now
    )[0]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.create(str(tmp_path / "store"))

    def fill(tx: Tx) -> None:
        for n in range(30):
            said = admit(tx, Incoming(text=f"turn {n} of tea " + "and milk " * (n % 7) * 200)).ref
            claim(tx, f"claim {n}", said)
        admit(tx, Incoming(text="kept elsewhere", collection="work", source_id="1"))

    made.write(ME, fill)
    yield made
    made.close()


def rows(store: Store) -> Rows:
    with store.env().read() as txn:
        return {(table, key): bytes(v) for table in fmt.TABLES for key, v in txn.scan(table)}


def grep(root: str, needle: bytes) -> list[str]:
    found = []
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder) / name
            if needle in path.read_bytes():
                found.append(str(path.relative_to(root)))
    return sorted(found)


def bury(store: Store) -> tuple[Part, bytes, bytes]:
    """Forget an observation with everything that can hang on one; (partition, it, its memory)."""

    def change(tx: Tx) -> tuple[Part, bytes, bytes]:
        part = tx.part(HOME)
        text = f"the codeword is {WORD}"
        record = Incoming(text=text, source_uri="notes", source_id="7", raw=b"\xff" + b"x")
        said = admit(tx, record, codes=["seen"])  # what has codes has a receipt
        tx.txn.put("jobs", part.prefix + said.ref + b"llm", b"\x94\x01\x00\xa5Fault\xc2")
        memory = claim(tx, f"{WORD} opens it", said.ref)
        return part, said.ref, memory

    part, said, memory = store.write(ME, change)
    store.write(ME, lambda tx: forget.forget(tx, part, said, reason="mistake"))
    return part, said, memory


def next_one(store: Store, items: list[tuple[Part, bytes]]) -> tuple[int, list[bytes]]:
    return purge.next_generation(store, ME, items)


def test_every_other_row_is_copied_byte_for_byte(store: Store) -> None:
    part, said, memory = bury(store)
    before = rows(store)
    assert grep(store.root, WORD.encode()) == ["canon/g1/data.mdb"]  # the control
    number, done = next_one(store, [(part, said), (part, memory)])
    assert (number, read_generation(store.root), done) == (2, 2, [said, memory])
    assert grep(store.root + "/canon/g2", WORD.encode()) == []
    after = rows(store)
    gone = before.keys() - after.keys()
    own = (part.prefix + said, part.prefix + memory)
    assert {(table, key) for table, key in gone if table in ("objects", "receipts")} == {
        ("objects", own[0]), ("objects", own[1]), ("receipts", own[0]),
    }  # fmt: skip
    assert {table for table, _ in gone} == {"objects", "receipts", "jobs", "chains"}
    assert all(key[:36] in own or key[-32:] == memory for _, key in gone)
    changed = {place for place in before.keys() & after.keys() if before[place] != after[place]}
    assert changed == {
        ("meta", b"audit"), ("meta", b"clock"), ("heads", part.prefix),
        *(("refs", key) for key in own), *(("tombs", key) for key in own),
    }  # fmt: skip
    new = after.keys() - before.keys()
    assert sorted(table for table, _ in new) == ["audit", "audit", "log", "log"]
    assert sum(1 for table, _ in before if table == "sources") == sum(
        1 for table, _ in after if table == "sources"
    )
    assert verify(store).problems == []


def test_purged_refs_say_so(store: Store) -> None:
    part, said, memory = bury(store)
    with store.read(maintenance_grant()) as reader:
        assert {ref for _, ref in purge.waiting(reader)} == {said, memory}
    next_one(store, [(part, said)])
    with store.read(maintenance_grant()) as reader:
        assert [ref for _, ref in purge.waiting(reader)] == [memory]
        tomb = tombs.get(reader, part, said)
        state = reader.state(part, said)
        assert tomb is not None and state is not None and tomb.purged == state.changed
        last = reader.entry(part, state.last)
        assert (refs.OPS[last.op], last.reason) == ("purge", "mistake")
        assert next(r.action for _, _, r in reader.audit_rows(reverse=True)) == "purge"
        assert reader.find(said.hex()).ref == said
    assert purge.sweep(store.root) == ["canon/g1"]
    assert verify(store).warnings == []


def test_what_was_derived_goes_along(store: Store) -> None:
    part, said, memory = bury(store)
    other = store.write(ME, lambda tx: admit(tx, Incoming(text="something else")).ref)
    store.write(ME, lambda tx: forget.forget(tx, part, other))
    with store.read(maintenance_grant()) as reader:
        items = purge.waiting(reader)
        assert {r for _, r in purge.with_derived(reader, items, {said})} == {said, memory}
        assert {r for _, r in purge.with_derived(reader, items, {memory})} == {memory}
        assert {r for _, r in purge.with_derived(reader, items, {other})} == {other}


def test_what_changed_in_between_is_not_purged(store: Store) -> None:
    """It was listed, then held, taken back, or purged by somebody else."""
    part, said, memory = bury(store)
    store.write(ME, lambda tx: holds.hold(tx, part, memory))
    living = store.write(ME, lambda tx: admit(tx, Incoming(text="alive")).ref)
    _, done = next_one(store, [(part, said), (part, memory), (part, living)])
    assert done == [said]
    _, done = next_one(store, [(part, said), (part, memory)])
    assert done == []
    with store.read(maintenance_grant()) as reader:
        assert reader.object(part, living).text == "alive"
        assert reader.txn.get("objects", part.prefix + memory) is not None
    assert verify(store).problems == []


def test_a_small_map_grows_with_the_copy(tmp_path: Path) -> None:
    small = Store.create(str(tmp_path / "small"), map_b=1 << 20)
    texts = [f"turn {n} " + "of tea and milk " * 4000 for n in range(60)]
    made = small.write(ME, lambda tx: [admit(tx, Incoming(text=text)).ref for text in texts])
    part = small.write(ME, lambda tx: tx.part(HOME))
    small.write(ME, lambda tx: forget.forget(tx, part, made[0]))
    assert next_one(small, [(part, made[0])]) == (2, [made[0]])
    assert small.env().info()["file_b"] > 3 << 20
    assert verify(small).problems == []
    small.close()


def test_other_tenants_are_purged_by_upkeep(store: Store) -> None:
    theirs = Scope("other", "p", "home", "none", "main")
    they = Actor(Grant("owner", "other", "p", None, owner=True), "cli", theirs)
    ref = store.write(they, lambda tx: admit(tx, Incoming(text=f"their {WORD}")).ref)

    def change(tx: Tx) -> Part:
        part = tx.part(theirs)
        forget.forget(tx, part, ref)
        return part

    part = store.write(they, change)
    assert next_one(store, [(part, ref)])[1] == [ref]
    assert verify(store).problems == []


# -- crashes ------------------------------------------------------------------------------------


class Crash(Exception):
    """Stands for the end of the process at some step."""


def crash(monkeypatch: pytest.MonkeyPatch, module: object, name: str, at: int = 0) -> None:
    """Let a function crash on its nth call (counted from 0), before it does anything."""
    real: Callable[..., object] = getattr(module, name)
    calls = iter(range(1 << 30))

    def call(*args: object, **options: object) -> object:
        if next(calls) == at:
            raise Crash
        return real(*args, **options)

    monkeypatch.setattr(module, name, call)


STEPS: list[tuple[object, str, int]] = [
    *((purge, "copy_table", n) for n in range(0, len(fmt.TABLES), 4)),
    (purge, "_record", 0),
    (purge, "flush", 0),
    (fmt, "sync_folder", 0),
    (fmt, "sync_folder", 1),
    (fmt, "write_file", 0),
    (os, "replace", 0),
    (fmt, "sync_folder", 2),
]


@pytest.mark.parametrize(("module", "name", "at"), STEPS)
def test_a_crash_leaves_the_old_or_the_new_generation(
    store: Store, monkeypatch: pytest.MonkeyPatch, module: object, name: str, at: int
) -> None:
    part, said, memory = bury(store)
    before = rows(store)
    with monkeypatch.context() as patch:
        crash(patch, module, name, at)
        with pytest.raises(Crash):
            next_one(store, [(part, said), (part, memory)])
    if (name, at) == ("sync_folder", 2):  # the switch itself was done
        assert read_generation(store.root) == 2
        assert {ref for _, ref in purge.leftover(store).refs} == {said, memory}
    else:
        assert read_generation(store.root) == 1
        assert rows(store) == before
        assert purge.leftover(store).objects == []
        assert verify(store).problems == []
        purge.sweep(store.root, unfinished=True)
        assert purge.others(store.root) == []
        assert next_one(store, [(part, said), (part, memory)])[1] == [said, memory]
    store.write(ME, lambda tx: admit(tx, Incoming(text="and on it goes")))
    purge.sweep(store.root)
    assert grep(store.root, WORD.encode()) == []
    assert verify(store).problems == [] and verify(store).warnings == []


def test_an_unfinished_generation_is_never_read(store: Store) -> None:
    path = canon_path(store.root, 2)
    env = kv.open_env(path, fmt.TABLES, create=True)
    with env.read():
        pass
    kv.forget_env(path)
    before = rows(store)
    fresh = Store(store.root)
    assert rows(fresh) == before
    part, said, _ = bury(fresh)
    assert next_one(fresh, [(part, said)])[0] == 2  # built over it
    assert verify(fresh).problems == []
    fresh.close()


def test_the_left_generation_tells_what_it_holds(store: Store) -> None:
    part, said, memory = bury(store)
    next_one(store, [(part, said), (part, memory)])
    found = purge.leftover(store)
    assert {ref for _, ref in found.refs} == {said, memory}
    assert sorted(obj.text for obj in found.objects) == [
        f"the codeword is {WORD}",
        f"{WORD} opens it",
    ]
    data = Path(canon_path(store.root, 1)) / "data.mdb"
    data.write_bytes(data.read_bytes()[:5000])  # damaged: it goes all the same
    assert purge.leftover(store).objects == []
    assert purge.sweep(store.root) == ["canon/g1"]


# -- others at work -----------------------------------------------------------------------------


def test_an_open_snapshot_reads_on_and_the_next_one_follows(store: Store) -> None:
    part, said, memory = bury(store)
    text = f"the codeword is {WORD}".encode()
    with store.read(maintenance_grant()) as reader:
        done = threading.Thread(target=next_one, args=(store, [(part, said), (part, memory)]))
        done.start()
        done.join()
        purge.sweep(store.root)
        assert text in (reader.txn.get("objects", part.prefix + said) or b"")
        assert reader.txn.count("objects") == 63
        with store.read(maintenance_grant()) as follower:
            assert follower.txn.get("objects", part.prefix + said) is None
            assert follower.txn.count("objects") == 61
    assert store.generation == 2


def test_writers_of_other_threads_lose_nothing(store: Store) -> None:
    part, said, memory = bury(store)
    written: list[bytes] = []
    stop = threading.Event()

    def write(name: str) -> None:
        own = Store(store.root)
        count = 0
        while not stop.is_set():
            text = f"{name} writes {count}"
            written.append(own.write(ME, lambda tx, t=text: admit(tx, Incoming(text=t)).ref))  # type: ignore[misc]
            count += 1
        own.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in ("ann", "bo")]
    for thread in threads:
        thread.start()
    for _ in range(4):
        next_one(store, [(part, said), (part, memory)])
        purge.sweep(store.root)
    stop.set()
    for thread in threads:
        thread.join()
    assert store.generation == 5 and len(written) > 4
    with store.read(maintenance_grant()) as reader:
        assert all(reader.state(part, ref) is not None for ref in written)
    assert verify(store).problems == []


def test_a_store_without_its_data_file_is_corrupt(store: Store) -> None:
    part, said, _ = bury(store)
    next_one(store, [(part, said)])
    os.unlink(Path(canon_path(store.root, 2)) / "data.mdb")
    fresh = Store(store.root)
    with pytest.raises(StoreCorrupt):
        fresh.write(ME, lambda tx: admit(tx, Incoming(text="x")))
    fresh.close()


# -- copying ------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 3, 64])
@pytest.mark.parametrize(("pairs", "size_b"), [(1, 1 << 30), (5, 1 << 30), (1 << 30, 40)])
def test_a_copy_is_everything_but_what_is_left_out(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chunk: int,
    pairs: int,
    size_b: int,
) -> None:
    monkeypatch.setattr(purge, "_COPY_CHUNK", chunk)
    monkeypatch.setattr(purge, "_COPY_BATCH", pairs)
    monkeypatch.setattr(purge, "_COPY_B", size_b)
    env = kv.open_env(str(tmp_path / "copy"), fmt.TABLES, create=True, sync=False)
    with store.env().read() as txn:
        keys = [key for key, _ in txn.scan("objects")]
        gone = {keys[0], *keys[7:12], keys[30], keys[-1]}
        purge.copy_table(txn, env, "objects", gone.__contains__)
        purge.copy_table(txn, env, "refs")
        purge.copy_table(txn, env, "cites", lambda key: key[4] < 128)
        purge.copy_table(txn, env, "jobs")
        wanted = {
            "objects": [pair for pair in txn.scan("objects") if pair[0] not in gone],
            "refs": list(txn.scan("refs")),
            "cites": [pair for pair in txn.scan("cites") if pair[0][4] >= 128],
            "jobs": list(txn.scan("jobs")),
        }
    assert 0 < len(wanted["cites"]) < 30 and len(wanted["objects"]) == len(keys) - len(gone)
    with env.read() as txn:
        assert {table: list(txn.scan(table)) for table in wanted} == wanted
    kv.forget_env(env.path)
