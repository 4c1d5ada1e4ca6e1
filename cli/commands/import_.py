"""remem import: take in evidence in bulk."""

from __future__ import annotations

import os
import sys
from itertools import chain
from typing import TYPE_CHECKING

from remem.cli.context import Context
from remem.cli.table import IMPORT_FORMATS
from remem.hooks import ingest as bulk
from remem.objects.errors import UsageError
from remem.objects.model import Incoming, Rejected, Skipped
from remem.objects.redact import EMPTY, Regions

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN_ERRORS = 10


def run(
    context: Context,
    *,
    format: str,
    paths: list[str],
    dry_run: bool,
    since: str | None,
    no_index: bool,
    trust: bool,
    apply_tombstones: bool,
) -> int:
    """Read the files and keep what they hold; print the sum."""
    if format not in IMPORT_FORMATS:
        raise UsageError(f"'{format}' is no format", hint="one of " + ", ".join(IMPORT_FORMATS))
    if format == "pack":
        if since is not None:
            raise UsageError("a pack is taken whole; it has no --since")
        from remem.cli.commands.packs import take_pack

        return take_pack(
            context,
            paths,
            dry_run=dry_run,
            trust=trust,
            apply_tombstones=apply_tombstones,
            index=not no_index,
        )
    if trust or apply_tombstones:
        raise UsageError("--trust and --apply-tombstones belong to 'import pack'")
    start = None
    if since is not None:
        from remem.cli.times import start_of

        start = start_of(context, since)
    return take_in(context, format, paths, since=start, dry_run=dry_run, index=not no_index)


def take_in(
    context: Context,
    fmt: str,
    paths: list[str],
    *,
    marks: dict[str, str] | None = None,
    since: int | None = None,
    dry_run: bool = False,
    index: bool = True,
) -> int:
    """Read, admit, project; print the sum and name what was rejected."""
    limit_b = context.limit_b
    actor = context.actor()
    total = bulk.Sum()
    exists = os.path.exists(os.path.join(context.root, "FORMAT"))
    store = None if dry_run and not exists else context.store(create=not dry_run)
    try:
        if store is not None and dry_run:
            every = chain.from_iterable(
                _records(context, fmt, path, since, limit_b) for path in paths
            )
            total.add(bulk.preview(store, actor, every, limit_b=limit_b, marks=marks))
        else:
            for path in paths:
                records = _records(context, fmt, path, since, limit_b)
                part = bulk.ingest(
                    store,
                    actor,
                    records,
                    limit_b=limit_b,
                    marks=marks,
                    progress=_Progress(context, total),
                )
                total.add(part)
    except KeyboardInterrupt:
        _clear(context)
        context.note("stopped; what was read so far is kept, run it again to finish")
        raise
    _clear(context)
    if index and total.new and store is not None and not dry_run:
        from remem.cli.projecting import bring_up

        bring_up(context, store)
    say_sum(context, total, dry_run)
    return 0


def say_sum(context: Context, total: bulk.Sum, dry_run: bool) -> None:
    """Print the sum, and on stderr what was rejected."""
    for problem in total.errors[:SHOWN_ERRORS]:
        context.note(f"{problem.where}: {problem.why}")
    rest = len(total.errors) + total.more_errors - SHOWN_ERRORS
    if rest > 0:
        context.note(f"and {rest} more; --json names up to {bulk.MAX_NAMED}")
    if context.json:
        value: dict[str, object] = {
            name: getattr(total, name) for name in (*bulk.COUNTS, *bulk.GATED)
        }
        value["errors"] = [{"where": p.where, "why": p.why} for p in total.errors]
        if total.more_errors:
            value["more_errors"] = total.more_errors
        context.emit(value)
        return
    would = "would be " if dry_run else ""
    context.out(
        f"read {total.read}: {would}new {total.new}, known {total.known}, "
        f"skipped {total.skipped}, blocked {total.blocked}, rejected {total.rejected}"
    )
    if total.blocked:
        context.note(f"blocked by tombstone: {total.blocked:,}")
    from remem.cli.admission import note_counts

    note_counts(context, total.redacted, total.private, total.quarantined)


def _records(
    context: Context, fmt: str, path: str, since: int | None, limit_b: int
) -> Iterator[Incoming | Rejected | Skipped]:
    from remem.hooks import sources

    if fmt == "lines":
        yield from _lines(limit_b)
        return
    if path == "-":
        yield from sources.read_stream(fmt, sys.stdin.buffer, "-", since=since, limit_b=limit_b)
        return
    records = sources.read(fmt, path, since=since, limit_b=limit_b, env=dict(context.environ))
    yield from _placed(context, fmt, path, records) if fmt in ("git", "atuin") else records


def _placed(
    context: Context, fmt: str, path: str, records: Iterator[Incoming | Rejected | Skipped]
) -> Iterator[Incoming | Rejected | Skipped]:
    """Records in the collection of their repository or folder, unless a collection was named.

    The hooks put them there as well, wherever a command is run.
    """
    from remem.hooks.identity import collection_of

    if context.collection()[1] not in ("default", "git config", "git remote", "git root"):
        yield from records
        return
    found: dict[str, str | None] = {}
    for record in records:
        if isinstance(record, Incoming):
            folder = path if fmt == "git" else str(record.meta.get("cwd", ""))
            if folder not in found:
                found[folder] = collection_of(folder)[0] if os.path.isdir(folder) else None
            record.collection = found[folder]
        yield record


def _lines(limit_b: int) -> Iterator[Incoming | Rejected | Skipped]:
    """One record a line of standard input; blank lines are skipped, and private ones."""
    number = 0
    regions = Regions(EMPTY)
    while True:
        line = sys.stdin.buffer.readline(limit_b + 2)
        if not line:
            return
        number += 1
        where = f"-:{number}"
        if not line.endswith(b"\n") and len(line) > limit_b:
            while (more := sys.stdin.buffer.readline(1 << 20)) and not more.endswith(b"\n"):
                continue
            yield Rejected(where, f"the line is longer than {limit_b:,} bytes")
            continue
        raw = line.rstrip(b"\r\n")
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            yield Rejected(where, f"not UTF-8 at byte {error.start}")
            continue
        if regions.depth or "<" in text:
            opened = regions.depth
            text = regions.feed(text)
            if opened and not text:
                yield Skipped(where, "private")
                continue
        if text.strip():
            yield Incoming(text=text, where=where)
        else:
            yield Skipped(where, "blank")


class _Progress:
    """A counter on stderr while a terminal watches."""

    def __init__(self, context: Context, before: bulk.Sum) -> None:
        self.shown = context.progress
        self.before = before.read

    def __call__(self, so_far: bulk.Sum) -> None:
        if self.shown:
            count = self.before + so_far.read
            sys.stderr.write(f"\r\x1b[Kreading {count:,}")
            sys.stderr.flush()


def _clear(context: Context) -> None:
    if context.progress:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
