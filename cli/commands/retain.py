"""remem retain: rules by which what is old expires or is forgotten."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from remem.cli import describe, names
from remem.cli.confirm import owner_only
from remem.cli.counts import counted, kinds
from remem.cli.plain import one_line
from remem.cli.reading import Meter
from remem.cli.render import table
from remem.objects import retention
from remem.objects.errors import UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json

ACTIONS = ("set", "list", "run", "unset")
COLUMNS = ("rule", "about", "older than", "action", "collection")
SELECTORS = ("type", "kind", "tier", "role", "origin", "status")


def run(
    context: Context,
    *,
    action: str,
    number: str | None,
    type: str | None,
    kind: str | None,
    tier: str | None,
    role: str | None,
    origin: str | None,
    status: str | None,
    older_than: str | None,
    then: str | None,
    dry_run: bool,
    all_collections: bool,
) -> int:
    """Set, list, run or unset."""
    if action not in ACTIONS:
        raise UsageError(f"'{action}' is no action", hint="one of " + ", ".join(ACTIONS))
    owner_only(context, "set or run retention rules")
    given = (type, kind, tier, role, origin, status)
    chosen = {n: v for n, v in zip(SELECTORS, given, strict=True) if v is not None}
    if action != "set" and (chosen or older_than is not None or then is not None):
        raise UsageError(f"{action} takes no selectors")
    if (number is None) != (action != "unset"):
        raise UsageError("the number of a rule belongs to unset, and unset needs one")
    if dry_run and action != "run":
        raise UsageError("--dry-run belongs to run")
    if action == "set":
        return _set(context, chosen, older_than, then, all_collections)
    if action == "unset":
        return _unset(context, number or "")
    if action == "list":
        return _list(context, all_collections)
    return _run(context, dry_run, all_collections)


def _set(
    context: Context,
    chosen: dict[str, str],
    older_than: str | None,
    then: str | None,
    all_collections: bool,
) -> int:
    if older_than is None or then is None:
        raise UsageError("set needs --older-than and --action")
    scope = context.scope()
    rule = retention.Rule(
        number=0,
        tenant=scope.tenant,
        profile=scope.profile,
        collection="" if all_collections else scope.collection,
        age=retention.age_of(older_than),
        action=then,
        created=0,
        principal="",
        **{name: chosen.get(name, "") for name in SELECTORS},
    )
    store = context.store(create=True)
    made = store.write(context.actor(), lambda tx: retention.add(tx, rule))
    if context.json:
        context.emit(_value(made))
    else:
        context.out(f"rule {made.number}: {_words(made)}")
    return 0


def _unset(context: Context, number: str) -> int:
    if not number.isascii() or not number.isdigit():
        raise UsageError(f"'{number[:40]}' is no number of a rule")
    dropped = context.store().write(context.actor(), lambda tx: retention.drop(tx, int(number)))
    if context.json:
        context.emit(_value(dropped))
    else:
        context.out(f"unset rule {dropped.number}: {_words(dropped)}")
    return 0


def _list(context: Context, all_collections: bool) -> int:
    with names.snapshot(context, all_collections=all_collections) as reader:
        found = retention.rules(reader)
    if context.json:
        context.emit([_value(rule) for rule in found])
    elif found:
        rows = [
            (
                str(rule.number),
                one_line(retention.describe(rule)),
                retention.age_text(rule.age),
                rule.action,
                one_line(rule.collection) or "(all)",
            )
            for rule in found
        ]
        table(context, COLUMNS, rows, right=frozenset((0,)))
    else:
        context.note("no rule is set here")
    return 0


def _run(context: Context, dry_run: bool, all_collections: bool) -> int:
    store = context.store()
    now = time.time_ns() // 1000
    grant = context.grant(all_collections=all_collections)
    if dry_run:
        with store.read(grant) as reader:
            done = [retention.due(reader, rule, now) for rule in retention.rules(reader)]
    else:
        meter = Meter(context)
        with store.read(grant) as reader:
            wanted = {rule.number for rule in retention.rules(reader)}
        try:
            done = retention.run(store, context.actor(), now=now, only=wanted, progress=meter)
        finally:
            meter.clear()
    if context.json:
        context.emit([{**_value(one.rule), **_counts(one), "dry_run": dry_run} for one in done])
        return 0
    for one in done:
        context.out(f"rule {one.rule.number}: {_outcome(one, dry_run)}")
    if not done:
        context.note("no rule is set here")
    return 0


def _outcome(one: retention.Due, dry_run: bool) -> str:
    verb = {
        ("expire", False): "expired",
        ("expire", True): "would expire",
        ("forget", False): "forgot",
        ("forget", True): "would forget",
    }[one.rule.action, dry_run]
    words = [f"{verb} {kinds(one.observations, one.memories)}"]
    if one.lost_citation:
        lost = counted(one.lost_citation, "memory loses", "memories lose")
        words.append(f"{lost} a citation")
    for count, name in ((one.held, "held"), (one.pinned, "pinned")):
        if count:
            words.append(f"{count:,} {name}, kept")
    if one.kept:
        words.append(f"{one.kept:,} kept for verified memories")
    return ", ".join(words)


def _counts(one: retention.Due) -> Json:
    return {
        "matched": len(one.items),
        "observations": one.observations,
        "memories": one.memories,
        "lost_citation": one.lost_citation,
        "held": one.held,
        "pinned": one.pinned,
        "kept": one.kept,
    }


def _value(rule: retention.Rule) -> Json:
    return {
        "rule": rule.number,
        **{name: getattr(rule, name) or None for name in SELECTORS},
        "older_than": retention.age_text(rule.age),
        "action": rule.action,
        "collection": rule.collection or None,
        "created_at": describe.stamp(rule.created),
        "principal": rule.principal,
    }


def _words(rule: retention.Rule) -> str:
    where = f"collection {one_line(rule.collection)}" if rule.collection else "all collections"
    age = retention.age_text(rule.age)
    return f"{one_line(retention.describe(rule))} older than {age}: {rule.action} ({where})"
