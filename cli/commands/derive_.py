"""remem derive: memories from the evidence that waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.cli import deriving, reading
from remem.hooks.deriving import NAMES
from remem.objects.errors import UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context


def run(context: Context, *, rebuild: bool, deriver: list[str]) -> int:
    """Run the derivers to the end of the queue and print the sum."""
    unknown = [name for name in deriver if name not in NAMES]
    if unknown:
        raise UsageError(f"'{unknown[0]}' is no deriver", hint="one of " + ", ".join(NAMES))
    names = tuple(dict.fromkeys(deriver)) or deriving.derivers(context)
    store = context.store()
    grant = context.actor().grant
    if rebuild and names:
        from remem.objects.derive import engine

        engine.rebuild(store, context.actor(), names)
    meter = reading.Meter(context)
    try:
        done = deriving.derive(context, store, grant, names, progress=meter)
    finally:
        meter.clear()
    from remem.objects.derive.engine import Derived

    done = done or Derived()
    if context.json:
        context.emit(msgspec.structs.asdict(done))
        return 0
    context.out(
        f"looked at {done.observations} observations: new {done.new}, known {done.known}, "
        f"withdrawn {done.withdrawn}, failed {done.failed}"
    )
    if done.left:
        context.note(f"{done.left} entries wait; 'remem jobs' shows what failed")
    return 0
