"""Times on the command line: absolute forms at once, relative ones through the time words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects import instant

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.objects.kv import Txn


def point(context: Context, text: str) -> instant.Instant:
    """The instant or period that a person wrote; says so when it had no zone.

    Raises:
        BadTime: it does not parse.
    """
    from remem.index.timewords import parse_when

    found = parse_when(text, now=instant.now())
    if not found.zoned:
        context.detail(f"'{text}' was read in the local zone: {instant.rfc3339(found.micros)}")
    return found


def when(context: Context, text: str) -> tuple[int, int | None]:
    """Instant of a time, microseconds UTC, and its offset in minutes."""
    found = point(context, text)
    return found.micros, found.offset


def start_of(context: Context, text: str | None) -> int | None:
    """Start of the period that a person wrote, or None."""
    return None if text is None else point(context, text).micros


def as_of(context: Context, text: str | None) -> int | None:
    """The instant meant by --as-of, --known-at: the last moment of a named period.

    A whole period ("2023", "2026-03-01") means its end, so that what held within it is seen.
    """
    if text is None:
        return None
    found = point(context, text)
    return found.micros if found.grain == "micro" else max(found.micros, found.end - 1)


def ahead(txn: Txn) -> str:
    """That the record times are ahead of the clock, in words; "" where they are not."""
    clock = int.from_bytes(txn.get("meta", b"clock") or b"\0", "big", signed=True)
    past = clock - instant.now()
    if past <= instant.STEP_US:
        return ""
    from remem.cli.counts import age

    return (
        f"the last record time, {instant.rfc3339(clock // instant.MICROS * instant.MICROS)}, is "
        f"{age(past)} ahead of the clock: one of the two was wrong"
    )
