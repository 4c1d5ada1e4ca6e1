"""Stored text inside of a block for a prompt: readable as it is, unable to pass for the block.

Four things make a block: the marks around it, the headings of its groups, the dash before each
line, and the brackets behind it that cite and label.  Text that would look like one of them, in
whatever letters, is shown so that it does not.
"""

from __future__ import annotations

import re
import unicodedata

from remem.index.unseen import escape, visible

_JOINERS = "\u200c\u200d"
_WORD = "rememcontext"  # the word of the marks, by its letters alone
# Letters of other scripts that look like those of the word.
_ALIKE = str.maketrans(
    "\u0435\u0454\u03b5\u043c\u03bc\u0441\u03f2\u043e\u03bf\u0585\u043f\u0578\u03b7\u0442\u03c4\u0445\u03c7\u0433",
    "eeemmccooonnnttxxr",
)
_ANGLES = str.maketrans(
    dict.fromkeys(
        "<\uff1c\ufe64\u2329\u3008\u27e8\u276c\u2770\u00ab\u300a\u226a\u02c2\u1438", "\u2039"
    )
    | dict.fromkeys(
        ">\uff1e\ufe65\u232a\u3009\u27e9\u276d\u2771\u00bb\u300b\u226b\u02c3\u1433", "\u203a"
    )
)
# A citation, or one of our labels, in brackets of any script.
_MARKS = re.compile(
    r"[\[\uff3b\u3010\u27e6]\s*("
    r"(?:[0-9a-f]{7,64}(?:\s*,\s*[0-9a-f]{7,64})*)"
    r"|(?:historical|changed|current|stale(?:[:,][^\]]{0,400})?|pinned|conflict with[^\]]{0,200}"
    r"|quarantined|pending|orphaned|rejected|expired|user_belief|verified|provisional)"
    r")\s*[\]\uff3d\u3011\u27e7]",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"(?:#{1,6}|[-*+]|\d{1,9}[.)])(?=\s|$)|>|-{3}|={3}|~{3}|`{3}|\*{3}|_{3}")


def safe(text: str) -> str:
    """Stored text on one line, unable to open or close the frame, to head a group or to cite.

    Args:
        text: any text.

    Returns:
        One line without characters that do not print.
    """
    flat = " ".join(text.split())
    if not flat.isascii() or not flat.isprintable():
        flat = visible(flat)  # some of what no reader sees counts as printable
        if not flat.isprintable():
            flat = "".join(c if c.isprintable() or c in _JOINERS else escape(c) for c in flat)
    if _looks_like_mark(text) or _looks_like_mark(flat):
        flat = flat.translate(_ANGLES)
    if "[" in flat or not flat.isascii():
        flat = _MARKS.sub(r"(\1)", flat)
    return f"\\{flat}" if _BLOCK.match(flat) else flat


def _looks_like_mark(text: str) -> bool:
    """Whether the word of our marks stands in a text, seen as a reader sees it."""
    if text.isascii() and "<" not in text and ">" not in text:
        return False
    low = unicodedata.normalize("NFKD", text).casefold().translate(_ALIKE)
    return _WORD in "".join(c for c in low if "a" <= c <= "z")
