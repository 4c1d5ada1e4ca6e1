"""remem jobs: what waits to be derived, what failed, what was given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import deriving, describe, names
from remem.cli.render import table
from remem.objects import instant
from remem.objects.derive import queue
from remem.objects.errors import NotFound, UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.objects.tx import Tx

COLUMNS = ("state", "deriver", "observation", "attempts", "due", "error")


def run(context: Context, *, action: str | None, id: str | None) -> int:
    """List the jobs of this scope, or let one be tried again."""
    if action == "retry":
        if id is None:
            raise UsageError("write 'remem jobs retry ID'")
        return _retry(context, id)
    if action not in (None, "list") or id is not None:
        raise UsageError(f"'{action}' is no action of jobs", hint="one of list, retry")
    return _list(context)


def _list(context: Context) -> int:
    now = instant.now()
    rows: list[Json] = []
    waiting: dict[str, int] = {}
    with names.snapshot(context) as reader:
        for part in reader.parts:
            for name in deriving.derivers(context):
                waiting[name] = waiting.get(name, 0) + queue.waiting(reader, part, name)
            for ref, name, job in queue.jobs(reader, part):
                rows.append(
                    {
                        "state": queue.state_of(job, now),
                        "deriver": name,
                        "ref": ref.hex(),
                        "attempts": job.attempts,
                        "due": describe.stamp(job.due) if job.due else None,
                        "error": job.error or None,
                    }
                )
    if context.json:
        context.emit({"waiting": waiting, "jobs": rows})
        return 0
    for name, count in waiting.items():
        context.out(f"{name}: {count} entries wait")
    cells = [
        (
            str(row["state"]),
            str(row["deriver"]),
            str(row["ref"])[:10],
            str(row["attempts"]),
            str(row["due"] or ""),
            str(row["error"] or ""),
        )
        for row in rows
    ]
    if cells:
        table(context, COLUMNS, cells, right=frozenset((3,)), styles={"dead": "red"})
    return 0


def _retry(context: Context, name: str) -> int:
    """Make the jobs of an observation due, whatever became of them."""
    store = context.store()
    with names.snapshot(context) as reader:
        found = names.resolve(context, reader, name)

    def change(tx: Tx) -> list[str]:
        return [
            deriver for deriver in deriving.NAMES if queue.retry(tx, found.part, found.ref, deriver)
        ]

    done = store.write(context.actor(), change)
    if not done:
        raise NotFound(f"'{name[:64]}' has no job that failed", hint="'remem jobs' lists them")
    if context.json:
        context.emit({"ref": found.ref.hex(), "derivers": done})
    else:
        context.out(f"{describe.short(found.ref)} is due again: " + ", ".join(done))
    return 0
