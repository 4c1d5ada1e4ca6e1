"""remem add: keep one piece of evidence, or many from standard input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from remem.cli.context import MIB, Context
from remem.objects.admit import Admitted, admit, decode_text
from remem.objects.errors import Blocked, UsageError
from remem.objects.model import Incoming

if TYPE_CHECKING:
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
        if at or source or source_id or (jsonl and given):
            raise UsageError("with --lines and --jsonl each line speaks for itself")
        return take_in(context, "jsonl" if jsonl else "lines", ["-"], marks=given)
    limit_b = context.settings.number("admission.max_mib") * MIB
    raw = _raw(text, file, limit_b)
    record = Incoming(
        text=decode_text(raw, f"'{file}'" if file else "standard input")
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

    def change(tx: Tx) -> Admitted:
        return admit(tx, record, limit_b=limit_b)

    result = context.store(create=True).write(actor, change)
    _say(context, result)
    return Blocked.exit_code if result.status == "blocked" else 0


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
    context.out(
        result.id.hex()[:10] + ("" if result.status == "new" else f" {_SAID[result.status]}")
    )


_SAID = {"known": "already known", "blocked": "blocked by a tombstone"}
