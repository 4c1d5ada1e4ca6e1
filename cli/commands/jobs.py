"""remem jobs and ls-jobs: what waits to be derived, what failed, what was given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import deriving, describe, names
from remem.cli.render import table
from remem.hooks.deriving import NAMES
from remem.objects import instant
from remem.objects.derive import queue
from remem.objects.errors import NotFound, UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.objects.reader import Reader
    from remem.objects.tx import Tx

FIELDS = ("state", "deriver", "ref", "attempts", "due", "error")
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


def ls_jobs(context: Context, *, nul: bool, all_collections: bool) -> int:
    """Print one job a line, for scripts."""
    with names.snapshot(context, all_collections=all_collections) as reader:
        rows = _rows(reader)
    if context.json:
        context.emit(rows)
        return 0
    end = "\0" if nul else "\n"
    for row in rows:
        line = " ".join(str("-" if row[name] is None else row[name]) for name in FIELDS)
        context.stdout.write((line + end).encode())
    return 0


def _rows(reader: Reader) -> list[Json]:
    """The jobs that have a row, in every partition of the grant."""
    now = instant.now()
    return [
        {
            "state": queue.state_of(job, now),
            "deriver": name,
            "ref": ref.hex(),
            "attempts": job.attempts,
            "due": describe.stamp(job.due) if job.due else None,
            "error": job.error or None,
        }
        for part in reader.parts
        for ref, name, job in queue.jobs(reader, part)
    ]


def _list(context: Context) -> int:
    waiting: dict[str, int] = {}
    with names.snapshot(context) as reader:
        for part in reader.parts:
            for name in deriving.derivers(context):
                waiting[name] = waiting.get(name, 0) + queue.waiting(reader, part, name)
        rows = _rows(reader)
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
        return [deriver for deriver in NAMES if queue.retry(tx, found.part, found.ref, deriver)]

    done = store.write(context.actor(), change)
    if not done:
        raise NotFound(f"'{name[:64]}' has no job that failed", hint="'remem jobs' lists them")
    if context.json:
        context.emit({"ref": found.ref.hex(), "derivers": done})
    else:
        context.out(f"{describe.short(found.ref)} is due again: " + ", ".join(done))
    return 0
