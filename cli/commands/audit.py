"""remem audit: rows of the audit chain, newest last; checkpoint: sign its head.

The chain is that of the whole store, so only the owner reads it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.cli import describe
from remem.cli.commands.log import check_limit
from remem.cli.confirm import owner_only
from remem.cli.plain import one_line
from remem.cli.render import table
from remem.objects import audit, refusals
from remem.objects.errors import IntegrityError, NotFound, ScopeRefused, UsageError
from remem.objects.scope import maintenance_grant

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.objects.store import Store

COLUMNS = ("row", "recorded", "principal", "surface", "action", "resource", "outcome")


def run(
    context: Context,
    *,
    what: str | None,
    limit: int,
    since: str | None,
    principal: str | None,
    action: str | None,
    to: str | None,
    git: bool,
) -> int:
    """Print the latest rows that match, oldest of them first, or make a checkpoint."""
    if what is not None:
        if what != "checkpoint":
            raise UsageError(f"'{what[:60]}' is nothing to do with the chain", hint="checkpoint")
        if since is not None or principal is not None or action is not None:
            raise UsageError("a checkpoint is of all rows, it takes --to or --git only")
        return _checkpoint(context, to, git)
    if to is not None or git:
        raise UsageError("--to and --git belong to 'remem audit checkpoint'")
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
        counted = refusals.unsaid(reader.txn)
    found.reverse()
    for one in counted:
        if principal in (None, one.principal):
            context.note(
                f"{one.unsaid:,} more refusals of '{one.principal}' ({one.code}) are counted; "
                "the next change gives them a row"
            )
    if context.json:
        context.emit([_value(data, row, names) for data, row in found])
    elif found:
        table(context, COLUMNS, [_cells(row) for _, row in found], right=frozenset((0,)))
    if not found:
        context.note("no row matches")
        return NotFound.exit_code
    return 0


# -- checkpoints --------------------------------------------------------------------------------


def _checkpoint(context: Context, to: str | None, git: bool) -> int:
    """Sign the head of the chain, once the chain and earlier checkpoints hold."""
    from remem.cli.passphrase import Terminal, unlock
    from remem.hooks.gitref import REF, Checkpoints
    from remem.objects import checkpoint
    from remem.objects.fsck import verify

    if to is not None and git:
        raise UsageError("give one of --to and --git")
    owner_only(context, "sign the audit chain")
    store = context.store(readonly=True)
    places = Checkpoints(context.folder, context.environ) if git else None
    earlier: list[tuple[str, str]] = []
    if places is not None:
        earlier = places.notes()
    elif to is not None:
        earlier = notes_of(to) if os.path.exists(to) else []
        _note_place(context, store, to)
    with store.read(maintenance_grant()) as reader:
        checkpoint.present(reader.txn, store.generation)  # no key: said before it is asked for
    with Terminal() as terminal:
        terminal.say("to sign: the head of the audit chain")
        signer = unlock(context, store, terminal)
    report = verify(store, fast=True)
    if not report.ok:
        raise IntegrityError("the audit chain does not hold, nothing was signed")
    with store.read(maintenance_grant()) as reader:
        checkpoint.refuse_inconsistent(reader.txn, store.generation, earlier)
        made = checkpoint.present(reader.txn, store.generation)
    note = checkpoint.sign(made, signer)
    where = None
    if places is not None:
        where = f"{REF} {places.add(note, made.clock // 1_000_000)}"
    elif to is not None:
        checkpoint.append(to, note)
        where = to
    if context.json:
        context.emit(
            {
                "origin": made.origin,
                "rows": made.rows,
                "head": made.head.hex(),
                "generation": made.generation,
                "where": where,
                "note": note,
            }
        )
    elif where is None:
        context.out(note.rstrip("\n"))
    else:
        context.out(f"signed row {made.rows}, head {made.head.hex()[:10]}: {one_line(where)}")
    return 0


def notes_of(path: str) -> list[tuple[str, str]]:
    """(where, note) of every checkpoint in a file.

    Raises:
        NotFound: there is none.
        StoreError: the file cannot be read.
    """
    from remem.objects import checkpoint

    notes = checkpoint.split(checkpoint.read_file(path))
    if not notes:
        raise NotFound(f"'{path}' holds no checkpoint")
    return [(f"{path} {number}", note) for number, note in enumerate(notes, start=1)]


def _note_place(context: Context, store: Store, to: str) -> None:
    inside = os.path.realpath(to).startswith(os.path.realpath(store.root) + os.sep)
    if inside:
        context.note("a checkpoint in the store's own folder is put back together with it")


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
