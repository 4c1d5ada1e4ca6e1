"""Running derivation for whoever reads: what time words mean, how much at a time.

Every door derives through here, so that an answer knows what was said just before it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from remem.objects import chains
from remem.objects.derive import queue
from remem.objects.errors import BadConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.objects.derive.engine import Derived, Named
    from remem.objects.scope import Actor, Grant
    from remem.objects.store import Store

    Single = Callable[[str, str, bool], bool]

FEW = 64  # entries that a reader derives from before it answers
NAMES = ("ledger", "rules")


def parse_names(text: str) -> tuple[str, ...]:
    """The derivers that a setting names, in order.

    Raises:
        BadConfig: it names one that there is not.
    """
    names = tuple(dict.fromkeys(word for word in text.replace(",", " ").split() if word))
    if names == ("none",):
        return ()
    for name in names:
        if name not in NAMES:
            raise BadConfig(
                f"derive.deriver: '{name}' is no deriver", hint="one of " + ", ".join(NAMES)
            )
    return names


def one_value(single: str, multi: str) -> Single:
    """Whether a predicate of a collection has one value at a time, by two settings.

    Args:
        single: predicates with one value, for all collections or, as ``COLLECTION:PREDICATE``,
            for one; separated by commas.
        multi: those with many values, in the same form.
    """
    listed: dict[tuple[str, str], bool] = {}
    for text, one in ((single, True), (multi, False)):
        for word in text.split(","):
            collection, _, predicate = word.strip().rpartition(":")
            if predicate.strip():
                listed[(collection.strip(), chains.fold(predicate))] = one

    def decide(collection: str, predicate: str, default: bool) -> bool:
        name = chains.fold(predicate)
        return listed.get((collection, name), listed.get(("", name), default))

    return decide


def run(
    store: Store,
    actor: Actor,
    grant: Grant,
    names: tuple[str, ...],
    *,
    single: Single | None = None,
    most: int | None = None,
    budget_s: float | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Derived | None:
    """Run derivers over what waits; None when nothing does, or too much.

    Args:
        store: open for writing.
        actor: who acts; its grant is replaced by ``grant``.
        grant: whose partitions are looked at.
        names: derivers to run.
        single: whether a predicate has one value at a time.
        most: leave it when more entries than this wait.
        budget_s: stop after about so many seconds.
        progress: called with (what, done, of).
    """
    with store.read(grant) as reader:
        waiting = queue.backlog(reader, names, time.time_ns() // 1000)
    if not waiting or (most is not None and waiting > most):
        return None
    import msgspec

    from remem.objects.derive import engine

    return engine.run(
        store,
        msgspec.structs.replace(actor, grant=grant),
        names,
        most=most,
        budget_s=budget_s,
        resolve=named_times,
        single=single,
        progress=progress,
    )


def named_times(text: str, asserted: int, offset: int | None) -> list[Named]:
    """Periods that a statement names, counted from when it was made."""
    from remem.index.timewords import periods
    from remem.objects import instant
    from remem.objects.derive.engine import Named

    zone = None if offset is None else (lambda _: 60 * offset)
    found = []
    for period in periods(text, now=asserted, tz=zone):
        if not period.recurring:
            starts = max(period.start, instant.START)
            found.append(Named(starts, period.end, period.kind == "open"))
    return found
