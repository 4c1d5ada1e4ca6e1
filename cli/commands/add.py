"""remem add: keep one piece of evidence, or many from standard input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from remem.cli.context import Context
from remem.hooks import writing
from remem.objects.admit import Admitted, decode_text
from remem.objects.errors import Blocked, UsageError
from remem.objects.model import Incoming
from remem.objects.redact import read

if TYPE_CHECKING:
    from remem.objects.store import Store


def run(
    context: Context,
    *,
    text: list[str],
    at: str | None,
    role: str | None,
    speaker: str | None,
    origin: str | None,
    source: str | None,
    source_id: str | None,
    tool: str | None,
    kind: str | None,
    corrects: str | None,
    tier: str | None,
    lines: bool,
    jsonl: bool,
    file: str | None,
) -> int:
    """Take text from the arguments, standard input or a file and keep it."""
    if lines or jsonl:
        if text not in ([], ["-"]) or file or (lines and jsonl):
            raise UsageError("--lines and --jsonl read standard input and take no text")
        from remem.cli.commands.import_ import take_in

        marks = {"role": role, "speaker": speaker, "origin": origin, "tool": tool, "kind": kind}
        given = {name: value for name, value in marks.items() if value}
        if at or source or source_id or corrects or tier or (jsonl and given):
            raise UsageError("with --lines and --jsonl each line speaks for itself")
        return take_in(context, "jsonl" if jsonl else "lines", ["-"], marks=given)
    if tier is not None and corrects is not None:
        raise UsageError("what corrects something lasts: give either --corrects or --tier")
    limit_b = context.limit_b
    raw = _raw(text, file, limit_b)
    record = Incoming(
        text=decode_text(raw, f"'{file}'" if file else "standard input", limit_b)
        if raw is not None
        else " ".join(text),
        raw=raw,
        role=role or "",
        speaker=speaker or "",
        origin=origin or "owner",
        source_uri=source or "",
        source_id=source_id or "",
        tool=tool or "",
        kind=kind or "",
    )
    if at is not None:
        from remem.cli.times import when

        record.asserted, record.offset = when(context, at)
    actor = context.actor()
    found = None
    if corrects is not None:
        from remem.cli import names

        context.store()
        with names.snapshot(context, all_collections=True) as reader:
            found = names.resolve(context, reader, corrects)
    store = context.store(create=True)
    result = writing.observe(
        store,
        actor,
        record,
        limit_b=limit_b,
        corrects=found,
        days=None if tier is None else context.settings.number("tiers.short_days"),
        derive=lambda: _derive(context, store),
    )
    _say(context, result)
    return Blocked.exit_code if result.status == "blocked" else 0


def _derive(context: Context, store: Store) -> bool:
    from remem.cli import deriving

    return deriving.before_reading(context, store, context.grant())


def _raw(text: list[str], file: str | None, limit_b: int) -> bytes | None:
    """Bytes from the file or standard input, or None when the arguments are the text."""
    if file is not None:
        if text:
            raise UsageError("give either TEXT or --file, not both")
        with open(file, "rb") as stream:
            return read(stream, limit_b)
    if text == ["-"]:
        return read(sys.stdin.buffer, limit_b)
    if not text:
        raise UsageError("nothing to add", hint="remem add 'some text', or '-' to read it")
    return None


def _say(context: Context, result: Admitted) -> None:
    if result.receipt.codes:
        from remem.cli.admission import note

        note(context, result.receipt)
    if context.json:
        from remem.hooks import shaping

        context.emit(shaping.observed(result))
        return
    if result.status == "blocked":
        raise blocked(result)
    context.out(result.id.hex()[:10] + ("" if result.status == "new" else " already known"))


def blocked(result: Admitted) -> Blocked:
    """The error for what a tombstone kept out; its row of the audit chain is there already."""
    return Blocked(
        "blocked by tombstone: this was forgotten here",
        hint=f"'remem tombstones lift {result.ref.hex()[:10]}' lets it come back",
    )
