"""What a reader hands out, and the two checks that every format shares."""

from __future__ import annotations

from typing import TypeAlias

from remem.objects.model import Incoming, Rejected, Skipped
from remem.objects.redact import by_lines

Record: TypeAlias = Incoming | Rejected | Skipped

LIMIT_B = 16 * 2**20  # bytes of one unit (a line, the text of a record) unless the caller says so
DOCUMENT_LIMITS = 4  # a document that must be held whole may have this many times LIMIT_B

BEFORE_SINCE = "before --since"

# What a role says about who is speaking, where the input does not name an origin: only what a
# person typed is the owner's, and a program's words never become the owner's by default.
ORIGIN_OF_ROLE = {
    "": "owner",
    "user": "owner",
    "assistant": "agent",
    "system": "agent",
    "tool": "tool",
}


def admit(item: Incoming, since: int | None, limit_b: int) -> Record:
    """Let a record through, or say why not.

    Args:
        item: the record as its reader built it.
        since: microseconds UTC; an older record is skipped, one of unknown time is not.
        limit_b: bytes that the text may have.

    Returns:
        The record itself, Skipped (too old, empty) or Rejected (too large).
    """
    if since is not None and item.asserted is not None and item.asserted < since:
        return Skipped(item.where, BEFORE_SINCE)
    text = item.text
    # A code point has at most four bytes of UTF-8: most texts need no counting.
    if len(text) * 4 > limit_b:
        size = len(text.encode())
        if size > limit_b:
            left = by_lines(text)  # what is private counts for no limit
            if left is not text and len(left.encode()) <= limit_b:
                item.text = left
                return item
            return Rejected(item.where, f"text of {size:,} bytes is above the limit of {limit_b:,}")
    return item
