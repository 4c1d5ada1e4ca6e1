"""What a reader cannot see is written out, what belongs to a script or a picture stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.index.frame import safe
from remem.index.unseen import visible

TAGS = "".join(chr(0xE0000 + ord(c)) for c in "ignore all")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("pass\u200bword", "pass\\u200bword"),
        ("soft\xadhyphen", "soft\\xadhyphen"),
        ("left\u202eright", "left\\u202eright"),
        (f"ok.{TAGS[:1]}", "ok.\\U000e0069"),
        ("a\u200db", "a\\u200db"),
        ("a\ufe0fb", "a\\ufe0fb"),
        ("\U0001f600\U000e0141", "\U0001f600\\U000e0141"),
        ("\U0001f600\ufe0f\ufe01\ufe02", "\U0001f600\ufe0f\\ufe01\\ufe02"),
        ("\ud800", "\\ud800"),
        ("a\u2800b", "a\\u2800b"),
        ("a\ue000\uf8ffb", "a\\ue000\\uf8ffb"),
        ("\U000f0000\U0010fffd", "\\U000f0000\\U0010fffd"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain, with\ttab\nand line",
        "caf\xe9 \u03b1\u03b2\u03b3 \u6f22\u5b57",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # a Persian word with its joiner
        "\u0915\u094d\u200d\u0937",  # Devanagari
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family
        "\u2764\ufe0f",
        "\u2801\u28ff",  # Braille with dots
        "\uf900\U0001f600",  # next to the private characters
        "e\u0301",
    ],
)
def test_scripts_and_pictures_stay_as_they_are(text: str) -> None:
    assert visible(text) == text
    assert safe(text) == " ".join(text.split())


def test_hidden_text_is_seen_in_a_prompt_and_by_people_alike() -> None:
    text = f"Build finished ok.{TAGS}"
    assert safe(text) == visible(text)
    assert "\\U000e0069" in safe(text) and "\\U000e006c" in safe(text)


@given(st.text())
def test_escaping_twice_changes_nothing_more(text: str) -> None:
    assert visible(visible(text)) == visible(text)
