"""Text that a command was given: words of the command line, or standard input."""

from __future__ import annotations

import sys

from remem.objects.admit import decode_text
from remem.objects.redact import read


def text_of(words: list[str], limit_b: int) -> str:
    """The words joined by spaces, or standard input where they are ``-`` alone.

    Of standard input the line feed at its very end is left out.

    Raises:
        BadInput: it is too large, or not UTF-8.
    """
    if words != ["-"]:
        return " ".join(words)
    text = decode_text(read(sys.stdin.buffer, limit_b), "standard input", limit_b)
    return text.removesuffix("\n").removesuffix("\r")
