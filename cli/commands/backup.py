"""remem backup: copy the whole store while it is in use."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.cli import describe
from remem.cli.commands.status import human
from remem.cli.plain import one_line
from remem.objects.errors import ScopeRefused

if TYPE_CHECKING:
    from remem.cli.context import Context


def run(context: Context, *, path: str) -> int:
    """Make the copy and say what it holds."""
    from remem.objects.backup import backup

    grant = context.grant()
    if not grant.owner:
        raise ScopeRefused(f"'{grant.principal}' may not copy the store")
    # A store that cannot be written can still be copied; it then keeps no list of its copies.
    writable = os.access(context.root, os.W_OK)
    made = backup(context.store(readonly=not writable), path)
    if context.json:
        context.emit(
            {
                "path": made.path,
                "made_at": describe.stamp(made.time),
                "audit": {"rows": made.rows, "head": made.head},
                "bytes": made.bytes,
            }
        )
    else:
        context.out(
            f"copied to {one_line(made.path)}: {human(made.bytes)}, {made.rows:,} audit rows"
        )
    return 0
