"""What recall, context and the like share: the lens, the engine, notes on what was amiss."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from remem.cli.settings import home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remem.cli.context import Context
    from remem.index.engine import Engine
    from remem.index.hits import Answer
    from remem.objects.store import Store
    from remem.objects.views import Lens

SLOW_ENTRIES = 5000  # from here on projecting is announced


def cache_dir(context: Context) -> str:
    """Folder for what can be made again."""
    base = context.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(home(context.environ), ".cache")
    return os.path.join(base, "remem")


def lens_of(
    context: Context,
    *,
    view: str | None = None,
    as_of: str | None = None,
    known_at: str | None = None,
    include: Sequence[str] = (),
) -> Lens:
    """The lens that the options ask for.

    Raises:
        UsageError: a status is none that is held back.
        ScopeRefused: the principal may not look at what is held back.
    """
    asserted = believed = None
    if as_of is not None or known_at is not None:
        from remem.cli import times

        asserted, believed = times.as_of(context, as_of), times.as_of(context, known_at)
    return looked(context, view, asserted, believed, include)


def looked(
    context: Context,
    view: str | None,
    as_of: int | None,
    known_at: int | None,
    include: Sequence[str],
) -> Lens:
    """The lens of what was read already; statuses may stand in one word, with commas.

    Raises:
        UsageError: there is no such view, or a status is none that is held back.
        ScopeRefused: the principal may not look at what is held back.
    """
    from remem.hooks import questions

    grant = context.bound
    wanted = [status.strip() for word in include for status in word.split(",") if status.strip()]
    return questions.lens(
        view,
        as_of=as_of,
        known_at=known_at,
        include=wanted or list(include),
        may_include=grant is None or grant.reviews,
        refused=lambda: context.refused(
            f"'{context.principal()}' may not see what is held back", "not_reviewer"
        ),
    )


def open_engine(
    context: Context,
    store: Store,
    *,
    mode: str | None,
    all_collections: bool = False,
    warm: bool = False,
) -> tuple[Engine, str]:
    """The engine for a mode, up to date, and the mode in force."""
    from remem.index.engine import Engine

    mode = mode or context.settings.text("recall.mode")
    engine = Engine(
        store,
        context.grant(all_collections=all_collections),
        mode=mode,
        embedder=context.settings.text("embedder"),
        cache_dir=cache_dir(context),
        api_key=context.settings.text("embedder_key"),
        reranker=context.settings.text("reranker"),
        warm=warm,
    )
    from remem.cli import deriving

    deriving.before_reading(context, store, context.grant(all_collections=all_collections))
    meter = Meter(context)
    engine.refresh(meter)
    meter.clear()
    for warning in engine.warnings:
        context.note(warning)
    if engine.lagging:
        context.detail("another process is projecting; what is new is scanned")
    return engine, mode


def say_view(context: Context, answer: Answer) -> None:
    """Say when a question about the past has chosen its view itself."""
    if answer.view_reason is not None:
        context.note(
            f"a question about the past ('{answer.view_reason}'): history is shown too; "
            "'--view now' keeps to the present"
        )


def known_scope(context: Context, store: Store, *, all_collections: bool) -> bool:
    """Warn when what is read does not exist: never a silent empty answer."""
    grant = context.grant(all_collections=all_collections)
    with store.read(grant) as reader:
        if any(reader.has_lanes(part) for part in reader.parts):
            return True
    if all_collections:
        context.note("the store holds nothing for this tenant and profile")
    else:
        name, origin = context.collection()
        context.note(f"unknown scope: collection '{name}' ({origin}) holds nothing to see here")
    return False


class Meter:
    """Progress on stderr, only on a terminal."""

    def __init__(self, context: Context) -> None:
        """Decide whether anybody watches."""
        self._shown = context.progress
        self._written = False

    def __call__(self, what: str, done: int, of: int) -> None:
        """Show how far something is."""
        if self._shown:
            self._written = True
            sys.stderr.write(f"\r\x1b[K{what} {done:,} of {of:,}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._written:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._written = False
