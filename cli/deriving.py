"""Running derivation for a command, by its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.hooks import deriving
from remem.hooks.deriving import FEW
from remem.objects.errors import RememError

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.cli.context import Context
    from remem.hooks.deriving import Single
    from remem.objects.derive.engine import Derived
    from remem.objects.scope import Grant
    from remem.objects.store import Store

IMPORT_S = 10.0  # seconds that an import spends on deriving


def derivers(context: Context) -> tuple[str, ...]:
    """The derivers that run, in order.

    Raises:
        BadConfig: the setting names one that there is not.
    """
    _ = context.root  # the store's own settings take part
    return deriving.parse_names(context.settings.text("derive.deriver"))


def one_value(context: Context) -> Single:
    """Whether a predicate of a collection has one value at a time, by the settings."""
    _ = context.root
    text = context.settings.text
    return deriving.one_value(text("facts.single"), text("facts.multi"))


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
    from remem.objects.scope import Actor

    return deriving.run(
        store,
        Actor(grant, "cli", context.scope()),
        grant,
        names,
        single=one_value(context),
        most=most,
        budget_s=budget_s,
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
