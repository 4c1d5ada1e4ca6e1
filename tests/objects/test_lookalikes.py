"""Names that look like a reserved one, or like that of another principal."""

from __future__ import annotations

from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import principals
from remem.objects.errors import Refused
from remem.objects.lookalikes import skeleton
from remem.objects.model import Scope
from remem.objects.patterns import Pattern
from remem.objects.scope import Actor, maintenance_grant
from remem.objects.store import Store

ACTOR = Actor(maintenance_grant(), "cli", Scope("local", "default", "home", "none", "main"))
ALIKE = {
    "Cyrillic": ("own\u0435r", "owner"),
    "Greek": ("\u03bfwner", "owner"),
    "full width": ("\uff4f\uff57\uff4e\uff45\uff52", "owner"),
    "mathematical": ("\U0001d428\U0001d430\U0001d427\U0001d41e\U0001d42b", "owner"),
    "capitals": ("OWNER", "owner"),
    "marks": ("own\u00e9r", "owner"),
    "zero": ("0wner", "owner"),
    "capital i": ("deri\u0475er", "deriver"),
    "l and i": ("consoIidation", "consolidation"),
    "two letters": ("unkn0vvn", "unknown"),
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(str(tmp_path / "s"))


def add(store: Store, name: str) -> None:
    store.write(
        ACTOR,
        lambda tx: principals.add(
            tx, name, Pattern("local", "default", None, None, None), ["read"]
        ),
    )


@pytest.mark.parametrize("kind", ALIKE)
def test_a_name_that_looks_like_a_reserved_one_is_refused(store: Store, kind: str) -> None:
    name, reserved = ALIKE[kind]
    assert skeleton(name) == skeleton(reserved)
    with pytest.raises(Refused, match=r"cannot be the name|mixes"):
        add(store, name)
    add(store, "runner")  # the control


@pytest.mark.parametrize(
    "name", ["Bot", "b\u043et", "b0t", "\uff42ot", "\u0412\u043e\u0442", "\u0432\u043e\u0442"]
)
def test_a_name_that_looks_like_another_principal_is_refused(store: Store, name: str) -> None:
    add(store, "bot")
    if skeleton(name) == skeleton("bot"):
        with pytest.raises(Refused, match=r"looks like|mixes"):
            add(store, name)
    else:  # a small Cyrillic ve is no b
        assert name == "\u0432\u043e\u0442"
        add(store, name)


@pytest.mark.parametrize("name", ["p\u0430ul-k", "\u03b1gent x", "ci \u0441i"])
def test_a_word_of_several_scripts_is_refused(store: Store, name: str) -> None:
    with pytest.raises(Refused, match="mixes letters"):
        add(store, name)


@pytest.mark.parametrize(
    "name",
    ["bot-2", "agent5", "agents", "\u0410\u043d\u043d\u0430", "\u0391\u03bd\u03bd\u03b1 bot",
     "M\u00fcller", "\u5c71\u7530\u30d0\u30f3", "all", "ali ce"],
)  # fmt: skip
def test_other_names_are_fine(store: Store, name: str) -> None:
    add(store, "bot-1")
    add(store, "agent4")
    add(store, name)
    with store.read(maintenance_grant()) as reader:
        assert principals.get(reader, name) is not None


@given(st.text(max_size=20))
def test_a_skeleton_does_not_change_with_the_form_of_a_name(text: str) -> None:
    assert skeleton(text) == skeleton(f"  {text} ")
    assert skeleton(text) == skeleton("\u200b".join(text))
    assert skeleton(normalize("NFC", text)) == skeleton(normalize("NFD", text))
