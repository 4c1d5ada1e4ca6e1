"""The proof of a purge, piece by piece: what lives far away, and what is still there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from remem.index import proof, sweep
from remem.index.needles import EACH, Needles
from remem.objects import encode, forget, purge
from remem.objects.admit import admit
from remem.objects.encode import Stored
from remem.objects.model import Incoming, Scope
from remem.objects.scope import Actor, Grant, maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx

HOME = Scope("local", "default", "home", "none", "main")
ME = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)
SECRET = "the zorvexquark lies behind the picture"
WORDS = [f"common{n:02}word" for n in range(3 * EACH)]


@pytest.fixture
def purged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Store, list[Stored]]]:
    """A store without what was purged: some of its words live, each in one object of its own."""
    store = Store.create(str(tmp_path / "store"))
    monkeypatch.setattr(proof, "_CHUNK_B", 4096)

    def fill(tx: Tx) -> bytes:
        for word in WORDS:
            admit(tx, Incoming(text=f"here is {word} " + "filler " * 200))
        return admit(tx, Incoming(text=f"{SECRET} {' '.join(WORDS)}")).ref

    ref = store.write(ME, fill)
    part = store.write(ME, lambda tx: tx.part(HOME))
    store.write(ME, lambda tx: forget.forget(tx, part, ref))
    with store.read(maintenance_grant()) as reader:
        objects = purge.gather(reader, [(part, ref)]).objects
    report = sweep.run(store, ME)
    assert report.proof is not None and report.proof.findings == []
    yield store, objects
    store.close()


@pytest.mark.parametrize("idle_b", [1, 20_000, 1 << 30])
def test_what_lives_is_counted_wherever_it_is(
    purged: tuple[Store, list[Stored]], monkeypatch: pytest.MonkeyPatch, idle_b: int
) -> None:
    store, objects = purged
    monkeypatch.setattr(proof, "_IDLE_B", 1 << 30)
    whole = proof.prove(store, objects)
    assert whole.living >= len(WORDS) and whole.needles >= 5 and not whole.findings
    monkeypatch.setattr(proof, "_IDLE_B", idle_b)
    assert proof.prove(store, objects) == whole


@pytest.mark.parametrize("idle_b", [1, 1 << 30])
def test_what_is_still_there_is_found_all_the_same(
    purged: tuple[Store, list[Stored]], monkeypatch: pytest.MonkeyPatch, idle_b: int
) -> None:
    store, objects = purged
    monkeypatch.setattr(proof, "_IDLE_B", idle_b)
    Path(store.root, "locks", "stray").write_bytes(b"." * 9000 + SECRET.encode())
    found = proof.prove(store, objects).findings
    assert {f.file for f in found} == {"locks/stray"}
    assert min(f.offset for f in found) == 9000 + SECRET.index("zorvexquark")
    assert {"word"} <= {f.form for f in found}
    Path(store.root, "locks", "stray").write_bytes(WORDS[-1].encode())  # that one lives
    assert proof.prove(store, objects).findings == []


def test_nothing_is_read_once_nothing_is_asked(
    purged: tuple[Store, list[Stored]], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = purged
    read: list[int] = []
    real = proof._blocks

    def blocks(pieces: Iterator[bytes]) -> Iterator[bytes]:
        for block in real(pieces):
            read.append(len(block))
            yield block

    monkeypatch.setattr(proof, "_blocks", blocks)
    with store.read(maintenance_grant()) as reader:
        everywhere = {b"filler": proof.WORD}
        assert proof._without_living(reader, everywhere, set(), b"") == []
        assert len(read) == 1
        rare = {b"filler": proof.WORD, b"zorvexquark": proof.WORD}
        assert proof._without_living(reader, rare, set(), b"") == [b"zorvexquark"]
        whole = len(read) - 1
        assert whole > 20
        assert proof._without_living(reader, rare, set(), b"", 9000) == [b"zorvexquark"]
        assert len(read) - 1 - whole < 6


@pytest.mark.parametrize("count", [1, EACH, EACH + 1, 100])
def test_what_is_known_is_not_asked_again(count: int) -> None:
    if count > EACH:
        pytest.importorskip("numpy")
    words = [b"needle%03d" % n for n in range(count)]
    data = b"." + b" ".join(words)
    found = Needles(words).first(data)
    assert found == {word: data.find(word) for word in words}
    assert Needles(words).first(data, set(words[::2])) == {w: found[w] for w in words[1::2]}


def test_the_salt_of_what_is_gone_is_its_own(purged: tuple[Store, list[Stored]]) -> None:
    """The control of all this: the purged object is none of those that live."""
    store, objects = purged
    with store.read(maintenance_grant()) as reader:
        salts = {encode.read(bytes(data)).salt for _, data in reader.txn.scan("objects")}
    assert objects and not salts & {obj.salt for obj in objects}
