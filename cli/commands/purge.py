"""remem purge: remove the bytes of what was forgotten, compact, and prove that they are gone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.cli import describe, names
from remem.cli.commands.status import human
from remem.cli.confirm import can_ask, confirm, owner_only
from remem.cli.counts import counted, kinds
from remem.cli.passphrase import asks, signed
from remem.cli.plain import one_line
from remem.cli.reading import Meter
from remem.objects import forget, forget_plan, refs
from remem.objects.errors import Forgotten, IntegrityError, Refused

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.index.sweep import Purged
    from remem.objects.forget_plan import Item
    from remem.objects.reader import Reader
    from remem.objects.scope import Actor
    from remem.objects.store import Store

LISTED = 20  # findings, backups and ids that people see; --json names all


def run(
    context: Context, *, ids: list[str], dry_run: bool, yes: bool, all_collections: bool
) -> int:
    """Purge what waits, or these ids."""
    owner_only(context, "purge")
    store = context.store()
    actor = context.actor()
    only: set[bytes] | None = None
    living: list[Item] = []
    if ids:
        with names.snapshot(context, all_collections=all_collections) as reader:
            only, living = _named(context, reader, ids)
    if living and not dry_run:
        what = f"{counted(len(living), 'ref')} not forgotten yet"
        confirm(f"forget and purge {what}", yes=yes, what=f"purging {what}")
    elif not dry_run and not yes and can_ask():
        waits = purge(context, store, actor, only=only, dry_run=True)
        if waits.refs:
            what = kinds(waits.observations, waits.memories)
            confirm(f"remove the bytes of {what} for good", yes=yes, what="a purge")
    if not dry_run and asks(context, store):
        if living or purge(context, store, actor, only=only, dry_run=True).refs:
            actor = signed(context, store, "a purge")
    if living and not dry_run:
        took = store.write(actor, lambda tx: forget.forget_many(tx, living))
        if took.held:
            raise forget.refusal((living[0][0], took.held[0], took.held[0]))
        only = {*(only or ()), *took.observations, *took.memories, *took.drafts}
    report = purge(context, store, actor, only=only, dry_run=dry_run)
    if dry_run and living:
        with names.snapshot(context, all_collections=all_collections) as reader:
            _add_living(reader, living, report)
    if context.json:
        context.emit({"dry_run": dry_run, **value(report)})
    else:
        say(context, report, dry_run=dry_run)
    if report.proof is not None and report.proof.findings:
        return IntegrityError.exit_code
    return Refused.exit_code if ids and report.held else 0


def _named(context: Context, reader: Reader, ids: list[str]) -> tuple[set[bytes], list[Item]]:
    """Refs of these ids that wait, and those that were not forgotten yet.

    Raises:
        Forgotten: the bytes of one are gone already.
    """
    from remem.objects import tombs

    waiting: set[bytes] = set()
    living: list[Item] = []
    for text in ids:
        found = names.resolve(context, reader, text)
        if refs.STATUSES[found.state.status] != "erased":
            living.append((found.part, found.ref))
            continue
        tomb = tombs.get(reader, found.part, found.ref)
        if tomb is not None and tomb.purged is not None:
            raise Forgotten(
                f"the bytes of '{describe.short(found.ref)}' were purged on "
                f"{describe.stamp(tomb.purged)[:10]}"  # type: ignore[index]
            )
        waiting.add(found.ref)
    return waiting, living


def _add_living(reader: Reader, living: list[Item], report: Purged) -> None:
    """Count in what would be forgotten first."""
    planned = forget_plan.plan(reader, living)
    for one in planned.erase:
        report.refs.append(one.ref)
        report.objects += len(one.revisions)
        memory = one.state.type == refs.MEMORY
        report.memories += memory
        report.observations += not memory
    report.held += [asked for _, asked, _ in planned.held]


def purge(
    context: Context,
    store: Store,
    actor: Actor,
    *,
    only: set[bytes] | None,
    dry_run: bool = False,
) -> Purged:
    """Run a purge with progress on a terminal; the actor brings the key that has to sign it."""
    from remem.index import sweep

    meter = Meter(context)
    try:
        return sweep.run(store, actor, only=only, dry_run=dry_run, progress=meter)
    finally:
        meter.clear()


def value(report: Purged) -> Json:
    """A report as JSON has it."""
    proof = report.proof
    return {
        "removed": [ref.hex() for ref in report.refs],
        "observations": report.observations,
        "memories": report.memories,
        "objects": report.objects,
        "vectors": report.vectors,
        "spool_lines": report.spool_lines,
        "generation": report.generation,
        "finished": report.finished,
        "held": [ref.hex() for ref in report.held],
        "scan": None
        if proof is None
        else {
            "files": proof.files,
            "bytes": proof.bytes,
            "needles": proof.needles,
            "living": proof.living,
            "short": proof.short,
            "sampled": proof.sampled,
            "findings": [
                {"file": f.file, "offset": f.offset, "form": f.form} for f in proof.findings
            ],
        },
        "backups": [
            {
                "path": copy.path,
                "made_at": describe.stamp(copy.time),
                "refs": count,
                "there": os.path.isdir(copy.path),
            }
            for copy, count in report.backups
        ],
        "seconds": round(report.seconds, 3),
    }


def say(context: Context, report: Purged, *, dry_run: bool = False) -> None:
    """A report for people."""
    what = kinds(report.observations, report.memories)
    held = f", {len(report.held):,} held" if report.held else ""
    if dry_run:
        context.out(f"would remove the bytes of {what}{held}")
        for ref in report.refs[:LISTED]:
            context.out(f"  {describe.short(ref)}")
        if len(report.refs) > LISTED:
            context.out(f"  and {len(report.refs) - LISTED:,} more")
        return
    if report.finished:
        context.note("finished a purge that had been interrupted")
    if report.refs:
        objects = counted(report.objects, "object")
        context.out(f"removed {objects} of {what}; generation {report.generation}")
    elif report.proof is None:
        context.out("nothing waits for a purge")
    if report.vectors or report.spool_lines:
        spool = counted(report.spool_lines, "line")
        context.out(f"and {counted(report.vectors, 'vector')}, {spool} of the spool")
    for ref in report.held[:LISTED]:
        context.note(f"'{describe.short(ref)}' is held, its bytes stay")
    _say_proof(context, report)
    for copy, count in report.backups[:LISTED]:
        there = "" if os.path.isdir(copy.path) else " (not found)"
        context.note(
            f"the backup '{one_line(copy.path)}'{there} still holds {counted(count, 'ref')} of it"
        )
    if len(report.backups) > LISTED:
        context.note(f"and {len(report.backups) - LISTED:,} more backups")


def _say_proof(context: Context, report: Purged) -> None:
    proof = report.proof
    if proof is None:
        return
    found = counted(len(proof.findings), "finding") if proof.findings else "nothing found"
    context.out(
        f"scanned {counted(proof.files, 'file')} ({human(proof.bytes)}) for "
        f"{counted(proof.needles, 'byte string')}: {found}"
    )
    for finding in proof.findings[:LISTED]:
        context.out(f"  FOUND {finding.form} in {one_line(finding.file)}, byte {finding.offset:,}")
    if len(proof.findings) > LISTED:
        context.out(f"  and {len(proof.findings) - LISTED:,} more; --json names all")
    if proof.living:
        context.detail(f"{proof.living:,} byte strings are held by living objects as well")
    if proof.short:
        context.detail(f"{proof.short:,} are too short to be told from chance")
    if proof.sampled:
        context.note(f"{proof.sampled:,} byte strings were left out; with numpy none is")
