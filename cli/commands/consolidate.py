"""remem consolidate: one sleep, by hand or from cron."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.cli import deriving, draining, journal
from remem.cli.counts import counted
from remem.cli.plain import one_line
from remem.cli.reading import Meter, cache_dir
from remem.cli.render import plain_lines
from remem.cli.shapes import stamp
from remem.objects.errors import IntegrityError, UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.hooks.consolidate import Means, Slept

QUIET_US = 30 * 60 * 1_000_000  # from cron: a session that rests for less may go on
# What was changed, in words, in the order of the work.
WORDS = {
    "drained": "taken in",
    "known": "known already",
    "skipped": "skipped by rule",
    "blocked": "blocked by tombstones",
    "rejected": "rejected",
    "briefs": "briefs followed",
    "promoted": "notes promoted",
    "loops_done": "loops done",
    "derived": "memories derived",
    "confirmed": "confirmed",
    "withdrawn": "withdrawn",
    "expired": "expired",
    "kept": "notes kept",
    "retained": "expired by rule",
    "forgotten": "forgotten by rule",
    "purged": "purged",
    "duplicates": "duplicates retired",
    "attached": "evidence attached",
    "proposed": "changes proposed",
    "summaries": "summaries proposed",
    "renewed": "summaries proposed anew",
}


def run(
    context: Context,
    *,
    dry_run: bool,
    drain_only: bool,
    budget_seconds: int | None,
    cron: bool,
) -> int:
    """Sleep once, and print what was done."""
    from remem.hooks import consolidate

    if budget_seconds is not None and budget_seconds < 1:
        raise UsageError("a budget is at least 1 second")
    if cron and dry_run:
        raise UsageError("--cron and --dry-run exclude each other")
    if cron:
        return journal.kept(
            context,
            lambda: consolidate.run(
                context.store(),
                means(context, quiet_us=QUIET_US),
                surface="cron",
                drain_only=drain_only,
                budget_s=budget_seconds,
            ),
        )
    meter = Meter(context)
    try:
        slept = consolidate.run(
            context.store(),
            means(context),
            dry_run=dry_run,
            drain_only=drain_only,
            budget_s=budget_seconds,
            progress=meter,
        )
    finally:
        meter.clear()
    if context.json:
        context.emit(value(slept, dry_run=dry_run))
    else:
        say(context, slept, dry_run=dry_run)
    return IntegrityError.exit_code if slept.findings else 0


def means(context: Context, *, quiet_us: int = 0) -> Means:
    """What a consolidation works with, by the settings."""
    from remem.hooks.consolidate import Means

    return Means(
        draining.how(context),
        deriving.derivers(context),
        deriving.one_value(context),
        context.settings.text("embedder"),
        context.settings.text("embedder_key"),
        cache_dir(context),
        quiet_us,
    )


def value(slept: Slept, *, dry_run: bool = False) -> Json:
    """A sleep as JSON has it."""
    found = msgspec.structs.asdict(slept)
    return {
        "dry_run": dry_run,
        **found,
        "started": stamp(slept.started),
        "ended": stamp(slept.ended),
        "runs": [ref.hex() for ref in slept.runs],
    }


def say(context: Context, slept: Slept, *, dry_run: bool = False) -> None:
    """A sleep for people."""
    from remem.hooks.consolidate import BUSY, PARTIAL

    if slept.status == BUSY:
        context.out("another consolidation is at it; nothing was done")
        return
    if dry_run and slept.counts:
        context.out("would be:")
    rows = [(WORDS.get(name, name), f"{number:,}") for name, number in ordered(slept.counts)]
    for line in plain_lines(rows, frozenset((1,))):
        context.out(line)
    if not slept.counts:
        context.out("nothing would change" if dry_run else "nothing changed")
    if slept.documents or slept.vectors:
        vectors = counted(slept.vectors, "vector")
        context.out(f"indexed {counted(slept.documents, 'text')}, {vectors}")
    if slept.loops_due:
        context.out(f"{counted(slept.loops_due, 'loop')} due: 'remem loops --due'")
    if slept.status == PARTIAL:
        context.note("the time was used up; the next consolidation goes on")
    for need in (*slept.needs, *slept.notes):
        context.note(one_line(need))


def ordered(counts: dict[str, int]) -> list[tuple[str, int]]:
    """Counts in the order of the work."""
    known = [(name, counts[name]) for name in WORDS if name in counts]
    return known + [(name, counts[name]) for name in sorted(counts.keys() - WORDS.keys())]
