"""remem log: the life of one ref, or the latest operations of the granted scope, newest first."""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING

from remem.cli import describe
from remem.cli.names import resolve, snapshot
from remem.cli.plain import one_line
from remem.cli.reading import known_scope, lens_of
from remem.cli.render import table
from remem.objects import refs
from remem.objects.errors import NotFound, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.cli.context import Context
    from remem.objects.reader import Part, Reader
    from remem.objects.views import Lens

LATEST = 20
COLUMNS = ("seq", "recorded", "op", "ref", "status", "text")
STYLES = {"create": "green", "quarantined": "yellow", "rejected": "red", "erased": "red"}


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
    most = check_limit(limit, LATEST if id is None else None)
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
            entries = _latest(reader)
        else:
            found = resolve(context, reader, id)
            entries = ((found.part, e) for e in reader.entries(found.part, found.state))
        rows: list[tuple[Part, refs.Entry]] = []
        for part, entry in entries:
            if (start is not None and entry.time < start) or len(rows) == most:
                break
            if (op is None or refs.OPS[entry.op] == op) and _seen(entry, lens):
                rows.append((part, entry))
        if context.json:
            context.emit([describe.entry(reader, part, entry) for part, entry in rows])
        else:
            _print(context, reader, rows)
    if not rows:
        if not context.json:
            context.note("no operation matches")
        return NotFound.exit_code
    return 0


def _seen(entry: refs.Entry, lens: Lens) -> bool:
    """Whether an entry was recorded by then, and what it says held at the instant asked about."""
    if lens.known_at is not None and entry.time > lens.known_at:
        return False
    if lens.as_of is None:
        return True
    begins = entry.time if entry.valid_from is None else entry.valid_from
    return begins <= lens.as_of and (entry.valid_to is None or lens.as_of < entry.valid_to)


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


def _latest(reader: Reader) -> Iterator[tuple[Part, refs.Entry]]:
    """Entries of all granted partitions, newest first."""

    def of(part: Part) -> Iterator[tuple[Part, refs.Entry]]:
        for entry in reader.log(part, reverse=True):
            yield part, entry

    def age(item: tuple[Part, refs.Entry]) -> tuple[int, int, int]:
        return -item[1].time, item[0].number, -item[1].seq

    return merge(*(of(part) for part in reader.parts), key=age)


def _print(context: Context, reader: Reader, rows: list[tuple[Part, refs.Entry]]) -> None:
    cells = []
    for part, entry in rows:
        text = describe.text_line(reader, part, entry.ref, entry.new)
        reason = f" [{one_line(entry.reason)}]" if entry.reason else ""
        cells.append(
            (
                str(entry.seq),
                describe.shown_second(entry.time),
                refs.OPS[entry.op],
                describe.short(entry.ref),
                refs.STATUSES[entry.status],
                text + reason,
            )
        )
    if cells:
        table(context, COLUMNS, cells, right=frozenset((0,)), styles=STYLES)
