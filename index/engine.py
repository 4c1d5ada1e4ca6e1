"""Opening the reading side: embedder, projector and searcher of a store, for any caller.

The command line, agents and programs get their answers here, so that all of them project first,
degrade in the same way and look through the same lens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.index import project
from remem.index.errors import EmbedderMissing, IndexDamaged, UnknownEmbedder
from remem.index.recall import Searcher
from remem.objects.errors import RememError, StoreReadOnly

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.index.dense import Dense
    from remem.objects.scope import Grant
    from remem.objects.store import Store

FRESH_TEXTS = 16  # texts that a hybrid question embeds first; more wait for upkeep


def dense_side(
    spec: str, *, cache_dir: str | None, api_key: str = "", warm: bool = False
) -> Dense | None:
    """The dense side for an embedder setting, or None when there is none.

    Raises:
        UnknownEmbedder, EmbedderMissing: the setting asks for what is not there.
    """
    if spec == "none":
        return None
    from remem.index.embed import resolve

    embedder = resolve(spec, cache_dir=cache_dir, api_key=api_key or None)
    if embedder is None:
        return None
    from remem.index.dense import Dense

    return Dense(embedder, warm=warm)


class Engine:
    """Reading one store under one grant.

    Attributes:
        warnings: what was found amiss while opening.
        lagging: entries that another process is projecting; they are scanned meanwhile.
    """

    def __init__(
        self,
        store: Store,
        grant: Grant,
        *,
        mode: str,
        embedder: str = "auto",
        cache_dir: str | None = None,
        api_key: str = "",
        reranker: str = "none",
        warm: bool = False,
    ) -> None:
        """Bind store, grant and settings; nothing is loaded that the mode does not need."""
        self.store = store
        self.warnings: list[str] = []
        self.lagging = False
        dense = None
        if mode != "lexical":
            try:
                dense = dense_side(embedder, cache_dir=cache_dir, api_key=api_key, warm=warm)
            except (UnknownEmbedder, EmbedderMissing) as error:
                if mode == "vector":
                    raise
                self.warnings.append(f"{error}: lexical ranking instead")
            if dense is None and mode == "vector":
                raise EmbedderMissing("there is no embedder to rank by vectors")
        self.dense = dense
        again = None
        if reranker != "none":
            from remem.index.rerank import resolve

            try:
                again = resolve(reranker, cache_dir=cache_dir)
            except RememError as error:
                self.warnings.append(f"{error}: the finds are not read again")
        self.searcher = Searcher(store, grant, dense, again)

    def refresh(self, progress: Callable[[str, int, int], None] | None = None) -> None:
        """Project what other processes wrote since, as far as that can be done now."""
        if self.store.readonly:
            self.lagging = True
            return
        try:
            self.lagging = not project.try_project(self.store, progress)
            if self.dense is not None and not self.lagging:
                self.dense.project(self.store, most=FRESH_TEXTS, wait_s=0.0, progress=progress)
        except IndexDamaged as error:
            self.warnings.append(str(error))
        except StoreReadOnly:
            self.lagging = True
        except RememError as error:
            self.warnings.append(str(error))

    def follow(self) -> None:
        """Give up what was removed from the store since; for a process that waits for questions."""
        self.store.follow()
        if self.dense is not None:
            self.dense.let_go(self.store)
