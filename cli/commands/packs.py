"""remem import pack: join packs that ``remem export`` wrote to the store."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from remem.cli import describe
from remem.cli.commands.import_ import SHOWN_ERRORS
from remem.cli.passphrase import signed
from remem.cli.reading import Meter
from remem.objects.format import FORMAT_FILE
from remem.objects.pack_import import import_pack
from remem.objects.pack_merge import KEPT, MAX_LISTED, ImportSum

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from remem.cli.context import Context
    from remem.objects.store import Store

COUNTS = ("read", "new", "known", "skipped", "blocked", "rejected")


def take_pack(
    context: Context,
    paths: list[str],
    *,
    dry_run: bool,
    trust: bool,
    apply_tombstones: bool,
    index: bool,
) -> int:
    """Join packs from files or standard input, print the sum, and say what was not taken."""
    total = ImportSum()
    meter = Meter(context)
    with _store(context, dry_run) as store:
        # To believe what a pack says was approved is to approve it.
        actor = signed(context, store, "the verdicts of a pack") if trust else context.actor()
        for path in paths:
            stream = sys.stdin.buffer if path == "-" else open(path, "rb")
            size_b = 0 if path == "-" else os.path.getsize(path)

            def tell(_: int, stream: BinaryIO = stream, size_b: int = size_b) -> None:
                if size_b:
                    meter("joining, byte", stream.tell(), size_b)

            try:
                done = import_pack(
                    store,
                    actor,
                    stream,
                    dry_run=dry_run,
                    apply_tombstones=apply_tombstones,
                    trust=trust,
                    progress=tell,
                )
            except KeyboardInterrupt:
                meter.clear()
                context.note("stopped; what was joined so far is kept, run it again to finish")
                raise
            finally:
                meter.clear()
                if path != "-":
                    stream.close()
            total.add(_named(done, path) if len(paths) > 1 else done)
        if index and total.new and not dry_run:
            from remem.cli.projecting import bring_up

            bring_up(context, store)
    _say(context, total, dry_run)
    return 0


@contextmanager
def _store(context: Context, dry_run: bool) -> Iterator[Store]:
    """The store; for a trial without one an empty store that is thrown away."""
    if not dry_run or os.path.exists(os.path.join(context.root, FORMAT_FILE)):
        yield context.store(create=not dry_run)
        return
    from tempfile import TemporaryDirectory

    from remem.objects.store import Store

    with TemporaryDirectory(prefix="remem-") as folder:
        store = Store.create(os.path.join(folder, "store"))
        try:
            yield store
        finally:
            store.close()


def _named(done: ImportSum, path: str) -> ImportSum:
    """The sum with the pack's name before each place."""
    import msgspec

    return msgspec.structs.replace(
        done,
        errors=[msgspec.structs.replace(e, where=f"{path}: {e.where}") for e in done.errors],
        conflicts=[msgspec.structs.replace(c, where=f"{path}: {c.where}") for c in done.conflicts],
    )


def _say(context: Context, total: ImportSum, dry_run: bool) -> None:
    problems = [(e.where, e.why) for e in total.errors]
    problems += [
        (c.where, f"{c.op} of {describe.short(c.ref)} skipped: {c.why}") for c in total.conflicts
    ]
    for where, why in problems[:SHOWN_ERRORS]:
        context.note(f"{where}: {why}")
    if len(problems) > SHOWN_ERRORS:
        context.note(f"and {len(problems) - SHOWN_ERRORS} more; --json names up to {MAX_LISTED}")
    if context.json:
        value: describe.Json = {name: getattr(total, name) for name in COUNTS}
        value["lowered"] = total.lowered
        value["erased"] = total.erased
        value["accepted"] = total.accepted
        value["inactive"] = _inactive(total)
        value["errors"] = [{"where": e.where, "why": e.why} for e in total.errors]
        value["conflicts"] = [
            {"where": c.where, "ref": c.ref.hex(), "op": c.op, "why": c.why}
            for c in total.conflicts
        ]
        context.emit(value)
        return
    would = "would be " if dry_run else ""
    context.out(
        f"read {total.read}: {would}new {total.new}, known {total.known}, "
        f"skipped {total.skipped}, blocked {total.blocked}, rejected {total.rejected}"
    )
    if total.blocked:
        context.note(f"blocked by tombstone: {total.blocked:,}")
    kept = len({c.ref for c in total.conflicts if c.why == KEPT})
    if kept:
        context.note(f"forgotten there, kept here: {kept:,}; --apply-tombstones forgets them")
    if total.erased:
        context.note(f"forgotten as the pack says: {total.erased:,}")
    if total.accepted:
        context.note(f"believed, or brought back, that was not before: {total.accepted:,}")
    _say_inactive(context, total)


def _inactive(total: ImportSum) -> dict[str, object]:
    """What was left inactive, as JSON has it."""
    left = total.left
    named: dict[str, object] = {
        name: [ref.hex() for ref in left.of(name)] for name in ("pins", "loops", "tasks", "held")
    }
    named["aliases"] = [list(pair) for pair in left.aliases]
    return named


def _say_inactive(context: Context, total: ImportSum) -> None:
    """Say what waits for the owner's word, and how he gives it."""
    left = total.left
    count = {name: len(left.of(name)) for name in ("pins", "loops", "tasks", "held")}
    if total.lowered:
        context.note(f"not believed without --trust: {total.lowered:,} entries")
    if count["held"]:
        context.note(
            f"held back, as they speak to their reader: {count['held']:,}; "
            "'remem quarantine list' shows them"
        )
    waits = [_many(count[name], name[:-1]) for name in ("loops", "tasks") if count[name]]
    if waits:
        context.note(
            f"inactive: {' and '.join(waits)}; 'remem quarantine list' shows them, "
            "'remem quarantine release ID' accepts one"
        )
    if count["pins"]:
        ids = ", ".join(describe.short(ref) for ref in left.of("pins")[:SHOWN_ERRORS])
        context.note(f"inactive: {_many(count['pins'], 'pin')} ({ids}); 'remem pin ID' accepts one")
    if left.aliases:
        names = ", ".join(
            f"'{name}' for '{stands}'" for name, stands in list(left.aliases)[:SHOWN_ERRORS]
        )
        context.note(
            f"left out: {_many(len(left.aliases), 'alias')} ({names}); "
            "'remem alias add' gives a name"
        )
    if total.lowered or any(count.values()) or left.aliases:
        context.note("if the pack is your own, take it in again with --trust: it restores all")


def _many(number: int, what: str) -> str:
    """A number of things, in words."""
    plural = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"
