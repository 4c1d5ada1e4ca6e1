"""remem audit: rows of the audit chain, newest last.

The chain is that of the whole store, so only the owner reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import describe
from remem.cli.commands.log import check_limit
from remem.cli.plain import one_line
from remem.cli.render import table
from remem.objects import audit
from remem.objects.errors import NotFound, ScopeRefused
from remem.objects.scope import maintenance_grant

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json

COLUMNS = ("row", "recorded", "principal", "surface", "action", "resource", "outcome")


def run(
    context: Context,
    *,
    limit: int,
    since: str | None,
    principal: str | None,
    action: str | None,
) -> int:
    """Print the latest rows that match, oldest of them first."""
    most = check_limit(limit, None)
    grant = context.grant()
    if not grant.owner:
        raise ScopeRefused(f"'{grant.principal}' may not read the audit chain")
    start = None
    if since is not None:
        from remem.cli.times import start_of

        start = start_of(context, since)
    found: list[tuple[bytes, audit.Row]] = []
    with context.store(readonly=True).read(maintenance_grant()) as reader:
        names = {p.number: (p.tenant, p.profile, p.collection) for p in reader.parts}
        for _, data, row in reader.audit_rows(reverse=True):
            if (start is not None and row.time < start) or len(found) == most:
                break
            if principal in (None, row.principal) and action in (None, row.action):
                found.append((data, row))
    found.reverse()
    if context.json:
        context.emit([_value(data, row, names) for data, row in found])
    elif found:
        table(context, COLUMNS, [_cells(row) for _, row in found], right=frozenset((0,)))
    if not found:
        context.note("no row matches")
        return NotFound.exit_code
    return 0


def _value(data: bytes, row: audit.Row, names: dict[int, tuple[str, str, str]]) -> Json:
    place = names.get(row.part)
    return {
        "seq": row.seq,
        "recorded_at": describe.stamp(row.time),
        "principal": row.principal,
        "surface": row.surface,
        "action": row.action,
        "scope": None
        if place is None
        else {"tenant": place[0], "profile": place[1], "collection": place[2]},
        "resource": describe.full(row.resource),
        "outcome": row.outcome,
        "entry": row.entry or None,
        "digest": describe.full(row.digest),
        "prev": row.prev.hex(),
        "hash": audit.row_hash(data).hex(),
    }


def _cells(row: audit.Row) -> tuple[str, ...]:
    return (
        str(row.seq),
        describe.shown_second(row.time),
        one_line(row.principal),
        row.surface,
        one_line(row.action),
        "-" if row.resource is None else describe.short(row.resource),
        one_line(row.outcome),
    )
