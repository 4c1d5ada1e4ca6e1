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


def age(micros: int) -> str:
    """A span of time in its largest unit: "2 days", "3 hours", "less than a minute"."""
    minutes = max(0, micros) // 60_000_000
    for size, name in ((1440, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size:
            return counted(minutes // size, name)
    return "less than a minute"
