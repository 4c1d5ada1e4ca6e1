"""remem log: the life of one ref, or the latest operations of the granted scope, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import describe, happened
from remem.cli.names import resolve, snapshot
from remem.cli.reading import known_scope, lens_of
from remem.hooks import looking
from remem.objects import refs
from remem.objects.errors import NotFound, UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.objects.reader import Part

LATEST = 20


def run(
    context: Context,
    *,
    id: str | None,
    limit: int | None,
    since: str | None,
    op: str | None,
    as_of: str | None,
    known_at: str | None,
    all_collections: bool,
) -> int:
    """Print entries of the ref log, newest first."""
    if op is not None and op not in refs.OPS:
        raise UsageError(f"'{op}' is no operation", hint="one of " + ", ".join(refs.OPS))
    most = check_limit(limit, LATEST if id is None and since is None else None)
    folds = id is None and op is None and not context.json
    folded = 0
    start = None
    if since is not None:
        from remem.cli.times import start_of

        start = start_of(context, since)
    lens = lens_of(context, as_of=as_of, known_at=known_at)
    if id is None:
        store = context.store(readonly=True)
        known_scope(context, store, all_collections=all_collections)
    with snapshot(context, all_collections=all_collections) as reader:
        if id is None:
            entries = looking.latest(reader)
        else:
            found = resolve(context, reader, id)
            entries = ((found.part, e) for e in reader.entries(found.part, found.state))
        rows: list[tuple[Part, refs.Entry]] = []
        for part, entry in entries:
            if (start is not None and entry.time < start) or len(rows) == most:
                break
            if (op is not None and refs.OPS[entry.op] != op) or not looking.held_then(entry, lens):
                continue
            if folds and happened.repeats(reader, part, entry):
                folded += 1
            else:
                rows.append((part, entry))
        if context.json:
            context.emit([describe.entry(reader, part, entry) for part, entry in rows])
        else:
            happened.show(context, reader, rows, events=id is None)
    if folded:
        context.detail(f"{folded:,} entries that repeat what a command or a commit says; see --op")
    if not rows:
        if not context.json:
            context.note("no operation matches")
        return NotFound.exit_code
    return 0


def check_limit(limit: int | None, default: int | None) -> int | None:
    """How many rows at most; None for all.

    Raises:
        UsageError: the number is negative.
    """
    if limit is None:
        return default
    if limit < 0:
        raise UsageError(f"--limit must be 0 or more, not {limit}")
    return limit
