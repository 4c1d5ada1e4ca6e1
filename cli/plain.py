"""Plain output: escape what a terminal would act on, cut and fold for the eye."""

from __future__ import annotations

import re

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def visible(text: str) -> str:
    """Text with control characters escaped; line feeds and tabs stay."""
    return _CONTROL.sub(_escape, text)


def one_line(text: str, width: int = 0) -> str:
    """Text on one line, white space folded, cut to a width in characters (0: not cut)."""
    line = visible(" ".join(text.split()))
    if width and len(line) > width:
        return line[: max(1, width - 1)].rstrip() + "\u2026"
    return line
