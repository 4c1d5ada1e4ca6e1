"""What ``remem status`` says of tiers and of sleep: notes, loops, pins, tasks, briefs, last run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import describe
from remem.cli.counts import age, counted
from remem.objects import briefs, instant, loops, pins, summaries, tasks, tiers
from remem.objects.views import Eye, Lens

if TYPE_CHECKING:
    from remem.cli.describe import Json
    from remem.objects.reader import Reader
    from remem.objects.store import Store


def count(reader: Reader) -> Json:
    """The numbers, over the partitions of the grant."""
    now = instant.now()
    eye = Eye(Lens(now), reader)
    notes = [tiers.notes(reader, part, now) for part in reader.parts]
    ends = [one.next for one in notes if one.next is not None]
    opened = loops.opened(eye)
    pinned = pins.every(eye)
    return {
        "short": {
            "count": sum(one.count for one in notes),
            "next_expiry": describe.stamp(min(ends, default=None)),
            "ran_out": len(tiers.due(reader, now)),
        },
        "loops": {"open": len(opened), "due": len(loops.due(eye, now))},
        "pins": {"count": len(pinned), "shown": sum(one.obj is not None for one in pinned)},
        "tasks": len(tasks.every(eye)),
        "briefs": len(briefs.waiting(reader)),
    }


def rows(found: Json) -> list[tuple[str, str]]:
    """Rows for people, without what there is none of."""
    short, open_loops, pinned = found["short"], found["loops"], found["pins"]
    assert isinstance(short, dict) and isinstance(open_loops, dict) and isinstance(pinned, dict)
    made: list[tuple[str, str]] = []
    if short["count"] or short["ran_out"]:
        words = counted(short["count"], "short note")
        if short["next_expiry"]:
            words += f", next ends {short['next_expiry'][:10]}"
        if short["ran_out"]:
            words += f", {short['ran_out']:,} ran out"
        made.append(("notes", words))
    if pinned["count"]:
        hidden = pinned["count"] - pinned["shown"]
        more = f", {hidden:,} show nothing" if hidden else ""
        made.append(("pins", f"{pinned['count']:,}{more}"))
    if open_loops["open"]:
        made.append(("loops", f"{open_loops['open']:,} open, {open_loops['due']:,} due"))
    for name, one in (("tasks", "open"), ("briefs", "waiting")):
        if found[name]:
            made.append((name, f"{found[name]:,} {one}"))
    return made


def stale_rate(reader: Reader) -> float | None:
    """Share of the summaries whose sources have changed; None where there is no summary."""
    stale, shown = summaries.rate(Eye(Lens(instant.now()), reader))
    return round(stale / shown, 4) if shown else None


def slept(store: Store) -> Json | None:
    """The last consolidation, or None when there was none."""
    from remem.hooks.sleep.stamp import read_stamp

    stamp = read_stamp(store.locks_path)
    if not stamp.ended:
        return None
    return {
        "ended_at": describe.stamp(stamp.ended),
        "age_s": max(0, instant.now() - stamp.ended) // 1_000_000,
        "status": stamp.status,
        "surface": stamp.surface,
        "counts": stamp.counts,
    }


def slept_rows(found: object, stale: object) -> list[tuple[str, str]]:
    """Rows for people on the last consolidation and on stale summaries."""
    made: list[tuple[str, str]] = []
    if isinstance(stale, float):
        made.append(("summaries", f"{stale:.0%} stale" if stale else "none stale"))
    if found is None:
        made.append(("sleep", "never; 'remem consolidate' looks after the store"))
    elif isinstance(found, dict):
        counts = found["counts"]
        words = ", ".join(f"{name} {number:,}" for name, number in sorted(counts.items()))
        past = age(1_000_000 * found["age_s"])
        broken = "" if found["status"] == "done" else ", broken off"
        made.append(("sleep", f"{past} ago by {found['surface']}{broken}: {words or 'no change'}"))
    return made
