r"""Characters that a reader cannot see, or that a terminal acts on, made visible.

Control characters and escapes, marks that turn the direction of writing, characters of no width,
blanks that pass for letters, private characters (which every font draws otherwise) and the tag
characters (which spell hidden text) are written as escapes: ``\x1b``, ``\u200b``,
``\U000e0069``.  Joiners and variation selectors are left where they belong, behind a letter or a
picture that is not ASCII: a family of emoji and a Persian word need them.  One rule for people and
for prompts, so that nobody approves what he cannot read.
"""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\u2800\ud800-\uf8ff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\U000f0000-\U0010fffd]"
    "|(?<![^\x00-\x7f\u200c\u200d\ufe00-\ufe0f])[\u200c\u200d\ufe00-\ufe0f]"
)


def escape(char: str) -> str:
    """The escape of a character, as Python and JSON write it."""
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: str) -> str:
    """A text with what cannot be seen escaped; line feeds and tabs stay."""
    return _HIDDEN.sub(lambda found: escape(found.group()), text)
