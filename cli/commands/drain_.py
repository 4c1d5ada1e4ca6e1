"""remem drain: take in what hooks appended to the spool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.cli import draining
from remem.cli.counts import counted

if TYPE_CHECKING:
    from remem.cli.context import Context


def run(context: Context) -> int:
    """Drain the spool and print the sum: read = new + known + skipped + blocked + rejected."""
    done = draining.everything(context, context.store())
    if context.json:
        context.emit(msgspec.structs.asdict(done))
        return 0
    skipped = sum(done.skipped.values())
    context.out(
        f"read {done.read}: new {done.new}, known {done.known}, skipped {skipped}, "
        f"blocked {done.blocked}, rejected {done.rejected}"
    )
    if done.damaged:
        lines = counted(done.damaged, "line")
        context.note(f"dropped {lines} of the spool that could not be read")
    for trouble in done.troubles:
        context.note(trouble)
    return 0
