"""remem add: keep one piece of evidence, or many from standard input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from remem.cli.context import MIB, Context
from remem.objects.admit import Admitted, admit, decode_text
from remem.objects.errors import Blocked, UsageError
from remem.objects.model import Incoming

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.objects.tx import Tx


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
        if at or source or source_id or corrects or (jsonl and given):
            raise UsageError("with --lines and --jsonl each line speaks for itself")
        return take_in(context, "jsonl" if jsonl else "lines", ["-"], marks=given)
    limit_b = context.settings.number("admission.max_mib") * MIB
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
    change = _plain(record, limit_b)
    if corrects is not None:
        change = _correcting(context, record, limit_b, corrects)
    store = context.store(create=True)
    result = store.write(actor, change)
    if result.status == "known" and at is None and not (source or source_id or tool):
        from remem.cli import deriving

        # What was said in between may have replaced it: then saying it again is new evidence.
        if deriving.before_reading(context, store, context.grant()):
            result = store.write(actor, change)
    _say(context, result)
    return Blocked.exit_code if result.status == "blocked" else 0


def _plain(record: Incoming, limit_b: int) -> Callable[[Tx], Admitted]:
    return lambda tx: admit(tx, record, limit_b=limit_b)


def _correcting(
    context: Context, record: Incoming, limit_b: int, corrects: str
) -> Callable[[Tx], Admitted]:
    """Take the text in and let it replace what it corrects, in one transaction."""
    from remem.cli import names
    from remem.objects import correct
    from remem.objects.errors import ScopeRefused
    from remem.objects.views import WITHHELD

    context.store()
    with names.snapshot(context, all_collections=True) as reader:
        found = names.resolve(context, reader, corrects)

    def change(tx: Tx) -> Admitted:
        admitted = admit(tx, record, limit_b=limit_b, corrects=found.ref)
        if admitted.status == "blocked":
            return admitted
        if tx.part(tx.actor.scope).number != found.part.number:
            raise ScopeRefused(
                "what it corrects lies in another scope",
                hint=f"add it there: --collection '{found.part.collection}'",
            )
        if admitted.receipt.status in WITHHELD:
            return admitted  # nothing is replaced by what may not be shown
        state = correct.fresh(tx, found)
        if state.replaced_by != admitted.ref:
            at = tx.now if record.asserted is None else record.asserted
            correct.supersede(tx, found, admitted.ref, at)
        return admitted

    return change


def _raw(text: list[str], file: str | None, limit_b: int) -> bytes | None:
    """Bytes from the file or standard input, or None when the arguments are the text."""
    if file is not None:
        if text:
            raise UsageError("give either TEXT or --file, not both")
        with open(file, "rb") as stream:
            return stream.read(limit_b + 1)
    if text == ["-"]:
        return sys.stdin.buffer.read(limit_b + 1)
    if not text:
        raise UsageError("nothing to add", hint="remem add 'some text', or '-' to read it")
    return None


def _say(context: Context, result: Admitted) -> None:
    if context.json:
        context.emit(
            {
                "id": result.id.hex(),
                "status": result.status,
                "ref": result.ref.hex(),
                "receipt": {"status": result.receipt.status, "codes": result.receipt.codes},
            }
        )
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
