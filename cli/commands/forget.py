"""remem forget: gone from every view at once; the bytes wait for a purge, or go at once.

Refs named by id are forgotten together or not at all.  Those found by a query, or all of the scope,
are listed with exact counts and forgotten once that was confirmed; what is held is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.cli import describe, names
from remem.cli.confirm import confirm, owner_only
from remem.cli.counts import counted, kinds
from remem.cli.passphrase import signed
from remem.cli.reading import Meter
from remem.objects import forget, forget_plan, refs, select
from remem.objects.errors import IntegrityError, NotFound, Refused, UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.index.sweep import Purged
    from remem.objects.forget_plan import Item, Plan
    from remem.objects.reader import Reader
    from remem.objects.scope import Actor
    from remem.objects.store import Store

BATCH = 5000  # refs a transaction
LISTED = 10  # of what would go


class _Found(msgspec.Struct):
    """What is to be forgotten: refs, counts in words, the first of them in words."""

    items: list[Item]
    plan: Plan
    counts: str
    lines: list[str]


def run(
    context: Context,
    *,
    ids: list[str],
    query: str | None,
    scope_all: bool,
    yes: bool,
    reason: str | None,
    allow_return: bool,
    now: bool,
    dry_run: bool,
    all_collections: bool,
) -> int:
    """Find what is meant, say what goes with it, forget it."""
    if bool(ids) + (query is not None) + scope_all != 1:
        raise UsageError("give ids, or --query, or --scope-all")
    owner_only(context, "forget")
    word = refs.given_reason(reason)
    store = context.store()
    with names.snapshot(context, all_collections=all_collections) as reader:
        found = _find(context, reader, ids, query, scope_all)
    if not found.items:
        raise NotFound("nothing matches, nothing was forgotten")
    if ids and found.plan.held and not dry_run:
        _refuse(context, store, found)
    if dry_run:
        return _dry_run(context, found)
    if not ids:
        for line in [f"forgets {found.counts}", *found.lines]:
            context.note(line)
        confirm("forget them", yes=yes, what="forgetting by --query or --scope-all")
    # Before anything is forgotten: without the passphrase there is no purge at once.
    actor = signed(context, store, "a purge of what is forgotten now") if now else context.actor()
    done = _forget(context, store, actor, found.items, word, allow_return)
    _note(context, done, now)
    report = _purge(context, store, actor, done) if now else None
    _say(context, done, report)
    if report is not None and report.proof is not None and report.proof.findings:
        return IntegrityError.exit_code
    return Refused.exit_code if done.held else 0


def _find(
    context: Context, reader: Reader, ids: list[str], query: str | None, scope_all: bool
) -> _Found:
    if ids:
        named = [names.resolve(context, reader, text) for text in ids]
        items: list[Item] = [(found.part, found.ref) for found in named]
    else:
        items = select.everything(reader) if scope_all else select.matching(reader, query or "")
    plan = forget_plan.plan(reader, items)
    lines = [
        f"  {describe.short(one.ref)} {refs.TYPES[one.state.type]} "
        + describe.text_line(reader, one.part, one.ref, one.state.head)
        for one in plan.erase[:LISTED]
    ]
    if len(plan.erase) > LISTED:
        lines.append(f"  and {len(plan.erase) - LISTED:,} more")
    return _Found(items, plan, _counts(plan), lines)


def _counts(plan: Plan) -> str:
    memories = sum(one.state.type == refs.MEMORY for one in plan.erase)
    drafts = sum(one.state.type > refs.MEMORY for one in plan.erase)
    words = [kinds(len(plan.erase) - memories - drafts, memories)]
    if plan.lose:
        lose = counted(len(plan.lose), "memory loses", "memories lose")
        words.append(f"{lose} a citation")
    if plan.held:
        words.append(f"{len(plan.held):,} held, kept")
    if plan.known:
        words.append(f"{len(plan.known):,} forgotten before")
    return ", ".join(words)


def _refuse(context: Context, store: Store, found: _Found) -> None:
    """Refuse what is held, with its row of the audit chain."""
    refused = forget.refusal(found.plan.held[0])

    def change(_: object) -> None:
        raise refused

    store.write(context.actor(), change)


def _forget(
    context: Context,
    store: Store,
    actor: Actor,
    items: list[Item],
    word: str,
    allow_return: bool,
) -> forget.Forgetting:
    total = forget.Forgetting()
    meter = Meter(context)
    try:
        for start in range(0, len(items), BATCH):
            batch = items[start : start + BATCH]
            total.add(
                store.write(
                    actor,
                    lambda tx, batch=batch: forget.forget_many(  # type: ignore[misc]
                        tx, batch, reason=word, allow_return=allow_return
                    ),
                )
            )
            if len(items) > BATCH:
                meter("forgetting", start + len(batch), len(items))
    finally:
        meter.clear()
    return total


def _purge(context: Context, store: Store, actor: Actor, done: forget.Forgetting) -> Purged | None:
    """Remove the bytes of what was forgotten just now, or before, and waits."""
    from remem.cli.commands.purge import purge
    from remem.objects.purge import waiting

    asked = {*done.observations, *done.memories, *done.drafts, *done.known}
    with store.read(actor.grant) as reader:
        wanted = {ref for _, ref in waiting(reader) if ref in asked}
    return purge(context, store, actor, only=wanted) if wanted else None


def _dry_run(context: Context, found: _Found) -> int:
    plan = found.plan
    if context.json:
        going: dict[int, list[str]] = {kind: [] for kind in range(len(refs.TYPES))}
        for one in plan.erase:
            going[one.state.type].append(one.ref.hex())
        context.emit(
            {
                "dry_run": True,
                "observations": going[refs.OBSERVATION],
                "memories": going[refs.MEMORY],
                "drafts": going[refs.DRAFT],
                "lost_citation": [loss.ref.hex() for loss in plan.lose],
                "held": [asked.hex() for _, asked, _ in plan.held],
                "known": [ref.hex() for _, ref in plan.known],
                "purge": None,
            }
        )
        return 0
    for line in [f"would forget {found.counts}", *found.lines]:
        context.out(line)
    return 0


def _note(context: Context, done: forget.Forgetting, now: bool) -> None:
    if done.known:
        context.note(f"{len(done.known):,} forgotten before")
    if done.aliases:
        context.note(f"{counted(len(done.aliases), 'alias', 'aliases')} that named it went too")
    for ref in done.held[:LISTED]:
        context.note(f"'{describe.short(ref)}' is held and stays")
    if len(done.held) > LISTED:
        context.note(f"and {len(done.held) - LISTED:,} more are held")
    if (done.observations or done.memories or done.drafts) and not now:
        context.note("the bytes wait for 'remem purge'")


def _say(context: Context, done: forget.Forgetting, report: Purged | None) -> None:
    from remem.cli.commands import purge

    if context.json:
        context.emit(
            {
                "dry_run": False,
                "observations": [ref.hex() for ref in done.observations],
                "memories": [ref.hex() for ref in done.memories],
                "drafts": [ref.hex() for ref in done.drafts],
                "lost_citation": [ref.hex() for ref in done.lost_citation],
                "held": [ref.hex() for ref in done.held],
                "known": [ref.hex() for ref in done.known],
                "purge": None if report is None else purge.value(report),
            }
        )
        return
    lost = counted(len(done.lost_citation), "memory", "memories")
    tail = f"; {lost} lost a citation" if done.lost_citation else ""
    if done.drafts:
        tail += f"; {counted(len(done.drafts), 'draft')} lost what rested on it"
    context.out(f"forgot {kinds(len(done.observations), len(done.memories))}{tail}")
    if report is not None:
        purge.say(context, report)
