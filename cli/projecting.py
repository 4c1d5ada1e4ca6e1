"""Deriving and bringing the indexes up after an import, with progress and without haste."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import reading
from remem.objects.errors import RememError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.objects.store import Store

EMBED_S = 20.0  # seconds that an import spends on vectors; upkeep makes the rest


def bring_up(context: Context, store: Store, *, budget_s: float | None = EMBED_S) -> None:
    """Project what is new; what goes wrong here is a note, the evidence is safe already."""
    from remem.cli import deriving
    from remem.index import project
    from remem.index.engine import dense_side

    meter = reading.Meter(context)
    try:
        derived = deriving.derive(
            context,
            store,
            context.grant(all_collections=True),
            deriving.derivers(context),
            budget_s=deriving.IMPORT_S,
            progress=meter,
        )
        if derived is not None and derived.left:
            context.note(f"{derived.left:,} entries wait; 'remem derive' takes them up")
        project.project(store, progress=meter)
        dense = dense_side(
            context.settings.text("embedder"),
            cache_dir=reading.cache_dir(context),
            api_key=context.settings.text("embedder_key"),
        )
        if dense is not None:
            _, left = dense.project(store, budget_s=budget_s, progress=meter)
            if left:
                context.note(
                    f"{left:,} texts have no vector yet and are found by their words; "
                    "'remem project' makes the rest"
                )
    except KeyboardInterrupt:
        meter.clear()
        context.note("stopped projecting; the next reader goes on")
    except RememError as error:
        context.note(f"the index is behind: {error}")
    finally:
        meter.clear()
