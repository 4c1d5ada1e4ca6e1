"""remem verify: compute again whatever can be computed again, and name all that does not match.

The store is opened for reading only.  All scopes are checked and nothing of their content is
printed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from remem.cli import describe, times
from remem.cli.plain import one_line
from remem.cli.reading import Meter, cache_dir
from remem.objects.errors import IntegrityError, NotFound, RememError, ScopeRefused, UsageError
from remem.objects.findings import Problem, Report
from remem.objects.fsck import verify

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.objects.findings import Findings
    from remem.objects.kv import Txn
    from remem.objects.store import Store

SHOWN_PROBLEMS = 50  # problems that people see; --json names all


def run(
    context: Context,
    *,
    fast: bool,
    objects: bool,
    index: bool,
    checkpoint: str | None,
    git: bool,
    key: list[str],
) -> int:
    """Check, print the report, and end with 4 when something does not match."""
    if fast + objects + index > 1:
        raise UsageError("give one of --fast, --objects and --index")
    if index and (checkpoint is not None or git or key):
        raise UsageError("--index looks at the indexes only, checkpoints are of the store")
    grant = context.grant()
    if not grant.owner:
        raise ScopeRefused(f"'{grant.principal}' may not verify the store")
    store = context.store(readonly=True)
    also = _kept_elsewhere(context, checkpoint, git, key)
    meter = Meter(context)
    try:
        if index:
            report = _indexes(context, store)
        elif fast or objects:
            report = verify(store, fast=fast, progress=meter, also=also)
        else:
            report = verify(
                store,
                progress=meter,
                index_check=lambda _: _check(context, store, deep=False),
                also=also,
            )
    finally:
        meter.clear()
    with suppress(RememError), store.read(grant) as reader:
        if ahead := times.ahead(reader.txn):
            context.note(ahead)
    if context.json:
        context.emit(_value(report, canonical=not index))
    else:
        _say(context, report, canonical=not index)
    return 0 if report.ok else IntegrityError.exit_code


def _kept_elsewhere(
    context: Context, path: str | None, git: bool, given: list[str]
) -> Callable[[Txn, int, Findings], None] | None:
    """What holds the store against checkpoints and keys; None when none was named.

    Raises:
        NotFound: there is no checkpoint where one was to be.
    """
    if path is None and not git and not given:
        return None
    from remem.cli.commands.audit import notes_of
    from remem.hooks.gitref import REF, Checkpoints
    from remem.objects import checkpoint

    pinned = [checkpoint.parse_verifier(text) for text in given]
    notes = notes_of(path) if path is not None else []
    if git:
        found = Checkpoints(context.folder, context.environ).notes()
        if not found:
            raise NotFound(f"the repository has no '{REF}'", hint=f"git fetch origin {REF}:{REF}")
        notes += found
    if notes and not pinned:
        context.note("the keys are those that the store names itself; --key names one kept safe")
    return lambda txn, generation, found: checkpoint.compare(txn, generation, found, notes, pinned)


def _check(context: Context, store: Store, *, deep: bool) -> dict[str, object]:
    """Compare the projections with the heads; without an embedder its vectors are left out."""
    from remem.index.check import check
    from remem.index.engine import dense_side

    try:
        dense = dense_side(context.settings.text("embedder"), cache_dir=cache_dir(context))
    except RememError as error:
        context.note(f"the vectors are not checked: {error}")
        dense = None
    return check(store, dense, deep=deep)


def _indexes(context: Context, store: Store) -> Report:
    """The projections alone, as a report."""
    answer = _check(context, store, deep=True)
    report = Report()
    listed = answer.pop("problems", [])
    assert isinstance(listed, list)
    for item in listed:
        if isinstance(item, dict):
            report.problems.append(Problem(str(item["where"]), str(item["what"])))
        else:
            report.problems.append(Problem("index", str(item)))
    report.index = answer
    report.ok = not report.problems
    return report


def _value(report: Report, *, canonical: bool) -> Json:
    """The report as JSON; what was not looked at is null."""
    value: Json = msgspec.to_builtins(report)
    value["checkpoints"] = [
        {
            "where": one.where,
            "ok": one.ok,
            "origin": one.origin,
            "rows": one.rows,
            "made_at": describe.stamp(one.clock or None),
            "what": one.what,
        }
        for one in report.checkpoints
    ]
    looked: dict[str, object] = dict.fromkeys(("objects", "refs", "tombstones", "signatures"))
    if not canonical:
        value |= {"audit": None, **looked}
    elif report.fast:
        value |= looked
    if not report.index:
        value["index"] = None
    return value


def _say_signatures(context: Context, report: Report) -> None:
    """Counts of the decisions, of a store that is or was protected."""
    found = report.signatures
    if found.protected or found.signed or found.bad:
        counts = f"{found.signed:,} good, {found.bad:,} bad, {found.unsigned:,} unsigned"
        context.out(f"signed   {counts}{'' if found.protected else ' (not protected now)'}")


def _say_checkpoints(context: Context, report: Report) -> None:
    good = [one for one in report.checkpoints if one.ok]
    if not report.checkpoints:
        return
    words = f"{len(good):,} of {len(report.checkpoints):,} hold"
    if good:
        last = max(good, key=lambda one: one.rows)
        words += f", up to row {last.rows:,} of {describe.shown_second(last.clock)}"
    context.out(f"kept     {words}")


def _say(context: Context, report: Report, *, canonical: bool) -> None:
    if canonical:
        context.out(f"audit    {report.audit.rows:,} rows, head {report.audit.head[:10] or 'none'}")
        if not report.fast:
            refs = report.refs
            context.out(f"objects  {report.objects.checked:,} checked")
            context.out(f"refs     {refs.checked:,} folded from {refs.entries:,} entries")
            context.out(f"erased   {report.tombstones.count:,}")
            _say_signatures(context, report)
        _say_checkpoints(context, report)
    if report.index:
        context.out(f"index    {'sound' if report.index.get('ok') else 'not sound'}")
    for warning in report.warnings:
        context.note(f"{warning.where}: {warning.what}")
    for problem in report.problems[:SHOWN_PROBLEMS]:
        context.out(f"bad      {one_line(problem.where)}: {one_line(problem.what)}")
    rest = len(report.problems) - SHOWN_PROBLEMS
    if rest > 0:
        context.out(f"         and {rest:,} more; --json names all")
    context.out("ok" if report.ok else f"{len(report.problems):,} problems")
