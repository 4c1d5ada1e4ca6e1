"""Running derivation for a command: which derivers, what time words mean, how much at a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from remem.objects import chains
from remem.objects.derive import queue
from remem.objects.errors import BadConfig, RememError

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.cli.context import Context
    from remem.objects.derive.engine import Derived, Named
    from remem.objects.scope import Grant
    from remem.objects.store import Store

FEW = 64  # entries that a reader derives from before it answers
IMPORT_S = 10.0  # seconds that an import spends on deriving
NAMES = ("ledger", "rules")


def derivers(context: Context) -> tuple[str, ...]:
    """The derivers that run, in order.

    Raises:
        BadConfig: the setting names one that there is not.
    """
    _ = context.root  # the store's own settings take part
    text = context.settings.text("derive.deriver")
    names = tuple(dict.fromkeys(word for word in text.replace(",", " ").split() if word))
    if names == ("none",):
        return ()
    for name in names:
        if name not in NAMES:
            raise BadConfig(
                f"derive.deriver: '{name}' is no deriver", hint="one of " + ", ".join(NAMES)
            )
    return names


def one_value(context: Context) -> Callable[[str, str, bool], bool]:
    """Whether a predicate of a collection has one value at a time, by the settings.

    ``facts.single`` and ``facts.multi`` list predicates, each for all collections or, as
    ``COLLECTION:PREDICATE``, for one.
    """
    _ = context.root
    listed: dict[tuple[str, str], bool] = {}
    for key, single in (("facts.single", True), ("facts.multi", False)):
        for word in context.settings.text(key).split(","):
            collection, _, predicate = word.strip().rpartition(":")
            if predicate.strip():
                listed[(collection.strip(), chains.fold(predicate))] = single

    def decide(collection: str, predicate: str, default: bool) -> bool:
        name = chains.fold(predicate)
        return listed.get((collection, name), listed.get(("", name), default))

    return decide


def derive(
    context: Context,
    store: Store,
    grant: Grant,
    names: tuple[str, ...],
    *,
    most: int | None = None,
    budget_s: float | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Derived | None:
    """Run derivers over what waits; None when nothing does, or too much.

    Args:
        context: of the command.
        store: open for writing.
        grant: whose partitions are looked at.
        names: derivers to run.
        most: leave it when more entries than this wait.
        budget_s: stop after about so many seconds.
        progress: called with (what, done, of).
    """
    with store.read(grant) as reader:
        waiting = queue.backlog(reader, names, time.time_ns() // 1000)
    if not waiting or (most is not None and waiting > most):
        return None
    from remem.objects.derive import engine
    from remem.objects.scope import Actor

    return engine.run(
        store,
        Actor(grant, "cli", context.scope()),
        names,
        most=most,
        budget_s=budget_s,
        resolve=named_times,
        single=one_value(context),
        progress=progress,
    )


def before_reading(context: Context, store: Store, grant: Grant) -> bool:
    """Derive from the few entries that wait, so that an answer knows what was said just now.

    Returns:
        True when there were some.
    """
    names = derivers(context)
    if store.readonly or not names or not (grant.owner or grant.writes):
        return False
    try:
        return derive(context, store, grant, names, most=FEW) is not None
    except RememError as error:
        context.detail(f"nothing was derived: {error}")
        return False


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
