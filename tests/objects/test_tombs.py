"""Tombstones: which texts are one value, what is blocked where, lifting, what they give away."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import audit, forget, tombs
from remem.objects.admit import Admitted, admit
from remem.objects.errors import NotFound
from remem.objects.fsck import verify
from remem.objects.model import Incoming, Scope
from remem.objects.reader import Part
from remem.objects.scope import Actor, Grant, maintenance_grant
from remem.objects.store import Store

HOME = Scope("local", "default", "home", "none", "main")
ME = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)
SECRET = "The safe opens with 71-04-23"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.create(str(tmp_path / "store"))
    yield made
    made.close()


def add(store: Store, text: str, **fields: object) -> Admitted:
    return store.write(ME, lambda tx: admit(tx, Incoming(text=text, **fields)))  # type: ignore[arg-type]


def part(store: Store, collection: str = "home") -> Part:
    with store.read(maintenance_grant()) as reader:
        return next(p for p in reader.parts if p.collection == collection)


def drop(store: Store, ref: bytes, **options: object) -> forget.Forgetting:
    own = part(store)
    return store.write(ME, lambda tx: forget.forget(tx, own, ref, **options))  # type: ignore[arg-type]


def rows(store: Store) -> list[audit.Row]:
    with store.read(maintenance_grant()) as reader:
        return [row for _, _, row in reader.audit_rows()]


# -- which texts are one value ------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        "the SAFE opens with 71-04-23",
        "  The safe\topens \n with 71-04-23  ",
        "The safe opens with 71-04-23.",
        "The safe opens with 71-04-23?!\u2026 ",
        "\u201cThe safe\u201d opens with '71-04-23'",
        "\u00abThe safe opens with 71-04-23\u00bb!",
        "\uff34he safe opens with \uff17\uff11-04-23\u3002",
        "The safe\u00a0opens with\u200971-04-23",
    ],
)
def test_the_same_value_in_other_clothes(other: str) -> None:
    assert other != SECRET
    assert tombs.normal_value(other) == tombs.normal_value(SECRET)


@pytest.mark.parametrize(
    "other",
    [
        "The safe opens with 71-04-24",
        "The safe opens with 71.04.23",
        "The safe opens with 710423",
        "The sofa opens with 71-04-23",
        "Thesafe opens with 71-04-23",
        "",
    ],
)
def test_another_value(other: str) -> None:
    assert tombs.normal_value(other) != tombs.normal_value(SECRET)


def test_texts_of_nothing_but_marks_are_told_apart() -> None:
    marks = ["...", "\u2026\u2026\u2026\u2026", '"', "'", "?!", "!"]
    assert len({tombs.normal_value(mark) for mark in marks}) == len(marks)
    assert all(tombs.normal_value(mark) for mark in marks)


@given(st.text(max_size=40))
def test_folding_is_idempotent_and_blind_to_form(text: str) -> None:
    value = tombs.normal_value(text)
    assert tombs.normal_value(value) == value
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        again = unicodedata.normalize(form, text)
        assert tombs.normal_value(again) == value
    assert tombs.normal_value(f"\n {text}\t ") == value
    assert tombs.normal_value(text.upper().lower()) == tombs.normal_value(text.upper())


# -- blocking -----------------------------------------------------------------------------------


def test_a_forgotten_value_is_blocked_and_counted_in_the_chain(store: Store) -> None:
    made = add(store, SECRET)
    assert add(store, SECRET).status == "known"  # the control: it was only known before
    drop(store, made.ref, reason="mistake")
    before = len(rows(store))
    for number, again in enumerate((SECRET, f'"{SECRET.upper()}!"'), 1):
        found = add(store, again, asserted=number)
        assert (found.status, found.id) == ("blocked", made.ref)
        assert found.receipt.codes == ["tombstone"]
    new = rows(store)[before:]
    assert [(r.action, r.outcome, r.resource, r.entry) for r in new] == [
        ("add", "tombstone", made.ref, 0)
    ] * 2
    assert add(store, SECRET + "4").status == "new"  # the control: another value is taken


def test_another_scope_is_not_blocked_and_has_another_digest(store: Store) -> None:
    made = add(store, SECRET)
    other = add(store, SECRET, collection="work")
    assert made.id != other.id
    drop(store, made.ref)
    assert add(store, SECRET, collection="work").status == "known"
    assert add(store, SECRET, session="later").status == "blocked"  # the same partition
    keys = [tombs.value_key(part(store, name), SECRET)[4:] for name in ("home", "work")]
    assert keys[0] != keys[1]


def test_the_id_of_the_source_blocks_too(store: Store) -> None:
    made = add(store, SECRET, source_uri="notes", source_id="7")
    drop(store, made.ref)
    edited = add(store, SECRET + " since May", source_uri="notes", source_id="7")
    assert edited.status == "blocked"
    assert add(store, SECRET + " since May", source_uri="notes", source_id="8").status == "new"


@pytest.mark.parametrize(
    "fields", [{}, {"asserted": 5}, {"source_uri": "notes", "source_id": "7"}, {"speaker": "Ann"}]
)
def test_what_may_come_back_comes_back_as_new_evidence(
    store: Store, fields: dict[str, object]
) -> None:
    made = add(store, SECRET, **fields)
    drop(store, made.ref, allow_return=True)
    again = add(store, SECRET, **fields)
    assert again.status == "new"
    assert again.ref != made.ref  # the ref itself stays forgotten
    assert add(store, SECRET, **fields) == Admitted(again.id, again.ref, "known", again.receipt)
    with store.read(maintenance_grant()) as reader:
        assert reader.object(part(store), again.id).text == SECRET
    drop(store, again.ref)
    assert add(store, SECRET, **fields).status == "blocked"
    assert verify(store).problems == []


# -- lifting ------------------------------------------------------------------------------------


def lift(store: Store, ref: bytes) -> list[bytes]:
    own = part(store)
    return store.write(ME, lambda tx: tombs.lift(tx, own, ref))


def test_a_lifted_value_may_come_back(store: Store) -> None:
    made = add(store, SECRET)
    drop(store, made.ref)
    assert lift(store, made.ref) == []
    assert rows(store)[-1].action == "lift" and rows(store)[-1].entry == 0
    assert add(store, SECRET).status == "new"
    assert verify(store).problems == []
    with store.read(maintenance_grant()) as reader:
        tomb = tombs.get(reader, part(store), made.ref)
        assert tomb is not None and tomb.values == []
        assert reader.txn.count("values") == 0


def test_a_value_of_several_tombstones_is_blocked_until_all_are_lifted(store: Store) -> None:
    refs = [add(store, SECRET, asserted=n).ref for n in (1, 2, 3)]
    for ref in refs:
        drop(store, ref)
    for number, ref in enumerate(refs, 1):
        assert add(store, SECRET, asserted=9).status == "blocked"
        assert len(lift(store, ref)) == (1 if number < 3 else 0)
        assert verify(store).problems == []
    assert add(store, SECRET, asserted=9).status == "new"


def test_what_has_no_tombstone_cannot_be_lifted(store: Store) -> None:
    made = add(store, SECRET)
    with pytest.raises(NotFound, match="no tombstone"):
        lift(store, made.ref)


# -- what they give away ------------------------------------------------------------------------


def test_a_tombstone_keeps_no_text_and_no_digest_without_the_key(store: Store) -> None:
    from blake3 import blake3

    made = add(store, SECRET)
    drop(store, made.ref, reason="mistake")
    value = tombs.normal_value(SECRET).encode()
    with store.read(maintenance_grant()) as reader:
        stored = dict(reader.txn.scan("tombs")) | dict(reader.txn.scan("values"))
        joined = b"".join(key + data for key, data in stored.items())
        tomb = tombs.get(reader, part(store), made.ref)
    assert len(stored) == 2 and tomb is not None
    assert (tomb.principal, tomb.reason, tomb.purged) == ("owner", "mistake", None)
    assert tomb.values[0] in joined  # the control: digests are found where they are
    for plain in (SECRET.encode(), value, blake3(value).digest(), blake3(SECRET.encode()).digest()):
        assert plain not in joined


def test_all_of_lists_what_the_grant_covers(store: Store) -> None:
    one = add(store, SECRET, agent="ann")
    two = add(store, SECRET + "4", agent="bo")
    for ref in (one.ref, two.ref):
        drop(store, ref)
    narrow = Grant("owner", "local", "default", None, agent="ann", owner=True)
    with store.read(maintenance_grant()) as reader:
        assert {ref for ref, _ in tombs.all_of(reader, part(store))} == {one.ref, two.ref}
    with store.read(narrow) as reader:
        assert {ref for ref, _ in tombs.all_of(reader, part(store))} == {one.ref}
