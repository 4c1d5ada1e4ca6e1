"""remem reindex: throw indexes away and build them from the objects."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from remem.cli.reading import Meter, cache_dir
from remem.objects.lock import hold
from remem.objects.scope import maintenance_grant

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.index.dense import Dense
    from remem.objects.store import Store

LOCK_WAIT_S = 60.0


def run(context: Context, *, lexical: bool, vectors: bool) -> int:
    """Build both indexes, or the one that is named."""
    from remem.index import project
    from remem.index.engine import dense_side
    from remem.index.errors import EmbedderMissing

    both = lexical == vectors
    dense = None
    if both or vectors:
        dense = dense_side(
            context.settings.text("embedder"),
            cache_dir=cache_dir(context),
            api_key=context.settings.text("embedder_key"),
        )
        if dense is None and vectors:
            raise EmbedderMissing(
                "there is no embedder to make vectors with",
                hint="pip install 'remem[semantic]', or: remem config set embedder hash",
            )
    store = context.store()
    meter = Meter(context)
    began = time.monotonic()
    documents: int | None = None
    made: int | None = None
    try:
        if both or lexical:
            documents = project.rebuild(store, progress=meter).added
        if dense is not None:
            made = _vectors(store, dense, meter)
    finally:
        meter.clear()
    seconds = time.monotonic() - began
    if context.json:
        context.emit({"documents": documents, "vectors": made, "seconds": round(seconds, 3)})
        return 0
    parts = []
    if documents is not None:
        parts.append(f"{documents:,} documents")
    if made is not None:
        parts.append(f"{made:,} vectors")
    context.out(f"built {' and '.join(parts)} in {seconds:.1f} s")
    return 0


def _vectors(store: Store, dense: Dense, meter: Meter) -> int:
    """Empty the vector indexes of all partitions and fill them again."""
    from remem.index import project
    from remem.index.dense import vector_folder
    from remem.index.vectors import VectorIndex

    with store.read(maintenance_grant()) as reader:
        folders = [vector_folder(store, part.number) for part in reader.parts]
    with hold(store.locks_path, project.LOCK, wait_s=LOCK_WAIT_S):
        for folder in folders:
            VectorIndex.reset(folder)
    return dense.project(store, wait_s=LOCK_WAIT_S, progress=meter)[0]
