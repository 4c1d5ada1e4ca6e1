"""Names that look alike: a skeleton that is the same for names which people take for each other.

Two names are compared by their skeletons, which are never shown or stored.  The table holds the
letters of Cyrillic, Greek, Armenian and Cherokee, and the few signs, that common typefaces draw as
a Latin letter; compatibility forms (full-width, mathematical) and unseen characters go first.

Source: UTS 39, sections 4 (skeletons) and 5.1 (mixed scripts).
"""

# ruff: noqa: RUF001 (the table is one of letters that look alike)

from __future__ import annotations

import re
from unicodedata import category, combining, name, normalize

_LIKE = {
    "a": "аαɑ",
    "b": "ьЬҍƄᏏ",
    "c": "сϲᴄ",
    "d": "ԁᏧժ",
    "e": "еҽ℮",
    "f": "ſϝք",
    "g": "ɡցԍ",
    "h": "һհᏂ",
    "i": "іιɩıӏӀ|1lⅼǀ!",
    "j": "јϳյ",
    "k": "кκᴋ",
    "m": "мᴍ",
    "n": "пηոռ",
    "o": "оοσօ0ᴏ",
    "p": "рρ",
    "q": "ԛզգ",
    "r": "гᴦᏒ",
    "s": "ѕꜱտ",
    "t": "тτᴛ",
    "u": "υսᴜ",
    "v": "ѵνᴠ",
    "w": "ѡԝωшᴡա",
    "x": "хχ×",
    "y": "уγүყ",
    "z": "ᴢᏃ",
}
# Capitals that fold to a letter which looks like no Latin one, though they do themselves.
_CAPITALS = {"B": "ВΒ", "H": "НΗ", "N": "Ν", "P": "Ρ", "S": "Տ", "U": "Ս", "Y": "Υ", "Z": "Ζ"}
_SKELETON = {ord(char): latin for latin, chars in _LIKE.items() for char in chars}
_UPPER = {ord(char): latin for latin, chars in _CAPITALS.items() for char in chars}
_PAIRS = (("rn", "m"), ("vv", "w"))
_SCRIPTS = frozenset(("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"))
_WORDS = re.compile(r"[^\W\d_]+")


def skeleton(text: str) -> str:
    """What a name looks like: without letter case, marks on letters, and what nobody sees."""
    spread = normalize("NFKD", text)
    seen = (c for c in spread if not combining(c) and category(c)[0] != "C")
    plain = "".join("-" if category(c) == "Pd" else c for c in seen)
    for found in (plain.translate(_UPPER).casefold(), plain.casefold()):
        plain = found.translate(_SKELETON)
        if plain.isascii():
            break
    for pair, one in _PAIRS:
        plain = plain.replace(pair, one)
    return " ".join(plain.split())


def mixes(text: str) -> bool:
    """Whether a word of a name has letters of several of the scripts that are confused."""
    for word in _WORDS.findall(normalize("NFKC", text)):
        found = {name(char, "").split(" ")[0] for char in word}
        if len(found & _SCRIPTS) > 1:
            return True
    return False
