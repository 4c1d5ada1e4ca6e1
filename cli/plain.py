"""Plain output: escape what a terminal would act on, cut and fold for the eye."""

from __future__ import annotations

from remem.index.unseen import visible

__all__ = ["one_line", "visible"]


def one_line(text: str, width: int = 0) -> str:
    """Text on one line, white space folded, cut to a width in characters (0: not cut)."""
    line = visible(" ".join(text.split()))
    if width and len(line) > width:
        return line[: max(1, width - 1)].rstrip() + "\u2026"
    return line
