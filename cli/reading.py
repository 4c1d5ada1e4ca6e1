"""What recall, context and the like share: the lens, the engine, notes on what was amiss."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from remem.cli.settings import home
from remem.objects import instant
from remem.objects.errors import UsageError
from remem.objects.views import INCLUDABLE, Lens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remem.cli.context import Context
    from remem.index.engine import Engine
    from remem.index.hits import Answer
    from remem.objects.store import Store

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
    view = view or "now"
    wanted = included(context, include)
    if as_of is None and known_at is None:
        return Lens(instant.now(), view, include=wanted)
    from remem.cli import times

    return Lens(
        instant.now(),
        view,
        as_of=times.as_of(context, as_of),
        known_at=times.as_of(context, known_at),
        include=wanted,
    )


def included(context: Context, words: Sequence[str]) -> frozenset[str]:
    """Statuses that are shown although they are held back, each asked for by its name.

    Raises:
        UsageError: a word is none of them.
        ScopeRefused: the principal is neither the owner nor does it review.
    """
    wanted = frozenset(w.strip() for word in words for w in word.split(",") if w.strip())
    unknown = sorted(wanted - INCLUDABLE)
    if unknown or (words and not wanted):
        raise UsageError(
            f"'{unknown[0][:40] if unknown else ''}' is no status that is held back",
            hint="some of " + ", ".join(sorted(INCLUDABLE)),
        )
    if wanted:
        grant = context.bound
        if grant is not None and not grant.reviews:
            raise context.refused(
                f"'{grant.principal}' may not see what is held back", "not_reviewer"
            )
    return wanted


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
