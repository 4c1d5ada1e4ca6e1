"""Memories: what may be stored, citations and their rows, what a memory was drawn from."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from remem.objects import evidence, forget, memories, statements
from remem.objects.errors import BadInput, Blocked, NotFound
from remem.objects.model import Deriver, Memory, Scope, Span
from tests.objects.world import SCOPE, World, at


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def memory(cites: list[bytes], **fields: object) -> Memory:
    plain = Memory(
        bytes(16), SCOPE, "fact", "a claim", None, cites, None, Deriver("model"), 900,
        None, None, None, [], "", [], {},
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)


def create(world: World, one: Memory) -> bytes | None:
    return world.write(
        lambda tx: memories.create(tx, tx.part(SCOPE), one, status="verified", valid_from=None)
    )


def rows(world: World) -> set[tuple[bytes, bytes]]:
    found = world.read(lambda r, p: [k[4:] for k, _ in r.txn.scan_prefix("cites", p.prefix)])
    return {(key[:32], key[32:]) for key in found}


def test_a_memory_cites_what_is_there(world: World) -> None:
    told = world.add("some words")
    ref = create(world, memory([told.id]))
    assert ref is not None and rows(world) == {(told.id, ref)}
    assert create(world, memory([told.id])) is None, "the very same is there"
    with pytest.raises(NotFound):
        create(world, memory([bytes(32)]))
    elsewhere = Scope("local", "default", "other", "none", "main")
    other = world.write(lambda tx: statements.say(tx, elsewhere, "elsewhere"))
    with pytest.raises(NotFound):
        create(world, memory([other.id]))
    assert rows(world) == {(told.id, ref)}
    world.check()


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "rumour"},
        {"cites": []},
        {"text": " \n"},
        {"valid_from": at(2020), "valid_to": at(2020)},
    ],
)
def test_what_may_not_be_stored(world: World, fields: dict[str, object]) -> None:
    told = world.add("some words")
    with pytest.raises(BadInput):
        create(world, memory(**{"cites": [told.id], **fields}))  # type: ignore[arg-type]
    assert create(world, memory([told.id], valid_from=at(2020), valid_to=at(2021))) is not None


def test_a_forgotten_value_does_not_come_back_as_a_memory(world: World) -> None:
    told, secret = world.add("some words"), world.add("a secret")
    world.write(lambda tx: forget.forget(tx, tx.part(SCOPE), secret.ref))
    with pytest.raises(Blocked):
        create(world, memory([told.id], text="A Secret."))
    assert create(world, memory([told.id], text="no secret")) is not None


def test_citation_rows_follow_the_head(world: World) -> None:
    one, two = world.add("one"), world.add("two")
    ref = create(world, memory([one.id]))
    assert ref is not None

    def cite(cites: list[bytes]) -> None:
        def change(tx):  # type: ignore[no-untyped-def]
            part = tx.part(SCOPE)
            state, old = memories.head(tx, part, ref)
            memories.replace(tx, part, ref, state, memories.with_cites(old, cites))

        world.write(change)

    cite([one.id, two.id])
    assert rows(world) == {(one.id, ref), (two.id, ref)}
    cite([two.id])
    assert rows(world) == {(two.id, ref)}
    world.check()


def test_taking_a_citation_keeps_the_span_of_another() -> None:
    cites = [bytes([n]) * 32 for n in range(3)]
    whole = memory(cites, span=Span(1, 4, 9))
    assert memories.without_cite(whole, cites[0]).span == Span(0, 4, 9)
    assert memories.without_cite(whole, cites[2]).span == Span(1, 4, 9)
    assert memories.without_cite(whole, cites[1]).span is None
    assert memories.without_cite(whole, cites[1]).cites == [cites[0], cites[2]]


def test_no_memory(world: World) -> None:
    note = world.add("one")
    with pytest.raises(NotFound):
        world.write(lambda tx: memories.head(tx, tx.part(SCOPE), note.ref))


# -- what a memory was drawn from ---------------------------------------------------------------

CITED = bytes(32)


@pytest.mark.parametrize(
    ("fields", "text", "wanted"),
    [
        ({"span": Span(0, 4, 8)}, "one two three", ["two "]),
        ({"span": Span(0, 4, 80)}, "one two three", []),  # not of this text
        ({"text": "One two"}, "one  TWO.", ["one  TWO."]),
        ({"triple": ("a", "is", "B 2")}, "So. It is b 2, I think. No.", [" It is b 2, I think"]),
        ({"triple": ("a", "is", "v1.2")}, "It is v1.2 now\nand so on", ["It is v1.2 now"]),
        ({"triple": ("a", "is", "c")}, "not here", []),
        ({}, "something else", []),
    ],
)
def test_grounds(fields: dict[str, object], text: str, wanted: list[str]) -> None:
    found = evidence.grounds(memory([CITED], **fields), CITED, text)
    assert [text[start:end] for start, end in found] == wanted


@pytest.mark.parametrize(
    ("rest", "nothing"),
    [
        ("{}", True),
        ("{}.", True),
        ("By the way, {}", True),
        ("well you know what: {}", True),
        ("oh and by the way, {}", False),  # five words
        ("{} and Rex is fine", False),
        ("{} in 2020", False),
        ("{} and it is nice here", False),
        ("{} \U0001f642\U0001f642", True),
    ],
)
def test_whether_anything_else_is_said(rest: str, nothing: bool) -> None:
    claim = "I live in Berlin"
    text = rest.format(claim)
    start = text.index(claim)
    assert evidence.says_nothing_else(text, [(start, start + len(claim))]) is nothing


def test_a_text_without_grounds_says_something_else() -> None:
    assert not evidence.says_nothing_else("oh", [])
    assert evidence.says_nothing_else("one. two.", [(0, 4), (5, 9)])


def test_where_words_have_moved_to() -> None:
    assert evidence.moved("I live here.", (0, 6), "So I live there") == (3, 9)
    assert evidence.moved("I live here.", (0, 6), "I stay there") is None
    assert evidence.moved("I live here.", (2, 2), "I stay there") is None
