"""Numbers with their nouns."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """A number and its noun: "1 ref", "2 refs", "3 memories"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def kinds(observations: int, memories: int) -> str:
    """Both kinds in words, without what there is none of: "1 observation and 2 memories"."""
    words = []
    if observations or not memories:
        words.append(counted(observations, "observation"))
    if memories:
        words.append(counted(memories, "memory", "memories"))
    return " and ".join(words)
