"""The dense side: embeddings of documents, one vector index for each partition.

Embedding is never on the write path and never delays a read: it runs at the end of an import, in
``remem project`` and in consolidation, in the order of the log, and can be stopped at any moment.
What has no vector yet is found by its words.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from remem.index import embed, kept, lexical, project
from remem.index.errors import EmbedderMismatch, IndexDamaged
from remem.index.fields import is_parsed, text_of
from remem.index.vectors import VectorIndex
from remem.objects import encode, refs
from remem.objects.lock import hold
from remem.objects.scope import maintenance_grant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from remem.objects.kv import Env
    from remem.objects.reader import Part, Reader
    from remem.objects.store import Store

    F32 = NDArray[np.float32]

NEAR = {"minilm": 0.3}  # inner product of what is near; an embedder that is not here sets none
BATCH = 256  # texts encoded and written at a time
SCANNED = 20_000  # log entries looked at in one go


class Dense:
    """An embedder and the vector indexes that it fills."""

    def __init__(self, embedder: embed.Embedder, *, warm: bool = False) -> None:
        """Bind an embedder; warm for a process that will search many times."""
        self.embedder = embedder
        self.warm = warm
        self._open: dict[str, VectorIndex] = {}

    def encode(self, texts: Sequence[str]) -> F32:
        """Vectors of questions: float32 (n, dim), unit length.

        Raises:
            RememError: the embedder failed.
        """
        return self.embedder.encode(texts)

    def index(self, store: Store, part: Part) -> VectorIndex:
        """The vector index of a partition.

        Raises:
            IndexDamaged, EmbedderMismatch: it cannot be used.
        """
        folder = vector_folder(store, part.number)
        if folder not in self._open:
            self.let_go(store)
            name, dim, digest = f"part {part.number}", self.embedder.dim, self.embedder.digest
            self._open[folder] = kept.vectors(folder, name, dim, digest) or VectorIndex(
                folder, name=name, dim=dim, digest=digest, warm=self.warm
            )
        return self._open[folder]

    def let_go(self, store: Store) -> None:
        """Close the indexes of a generation that was left: a purge removed their files."""
        here = os.path.dirname(vector_folder(store, 0))
        for folder in [folder for folder in self._open if os.path.dirname(folder) != here]:
            self._open.pop(folder).close()

    def search(self, store: Store, part: Part, vector: F32, k: int) -> list[tuple[int, float]]:
        """(number, inner product) of the nearest documents, best first."""
        numbers, scores = self.index(store, part).search(vector, k)
        return list(zip(numbers.tolist(), scores.tolist(), strict=True))

    def scores(
        self, store: Store, part: Part, vector: F32, numbers: Sequence[int]
    ) -> dict[int, float]:
        """Inner products of some documents, by number; what has no vector is left out."""
        found, scores = self.index(store, part).scores(vector, numbers)
        return dict(zip(found.tolist(), scores.tolist(), strict=True))

    @property
    def near(self) -> float | None:
        """Inner product from which on two texts are near; None where nobody measured it."""
        return NEAR.get(self.embedder.name)

    def pending(self, store: Store) -> int:
        """Number of log entries that may bring documents without a vector."""
        env = project.open_lexical(store, write=False)
        with store.read(maintenance_grant()) as reader:
            return sum(reader.last_seq(p) - self._cursor(store, env, p) for p in reader.parts)

    def project(
        self,
        store: Store,
        *,
        budget_s: float | None = None,
        most: int | None = None,
        wait_s: float = 30.0,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> tuple[int, int]:
        """Embed what has no vector yet, oldest first.

        Args:
            store: an open store.
            budget_s: stop after about so many seconds.
            most: do nothing when more entries than this wait.
            wait_s: how long to wait for another projector, seconds.
            progress: called with (what, done, of).

        Returns:
            (vectors made, log entries left).

        Raises:
            StoreLocked: another process projects.
        """
        waiting = self.pending(store)
        if not waiting or (most is not None and waiting > most):
            return 0, waiting
        stop = None if budget_s is None else time.monotonic() + budget_s
        made = 0
        with hold(store.locks_path, project.LOCK, wait_s=wait_s):
            project.make_folder(store)
            with store.read(maintenance_grant()) as reader:
                env = project.open_lexical(store, write=True)
                assert env is not None
                of = waiting
                for part in reader.parts:
                    for count, left in self._fill(store, env, reader, part, stop):
                        made += count
                        if progress is not None:
                            progress("embedding", of - left, of)
        return made, self.pending(store)

    def _fill(
        self, store: Store, env: Env, reader: Reader, part: Part, stop: float | None
    ) -> list[tuple[int, int]]:
        out: list[tuple[int, int]] = []
        index = self._usable(store, part)
        at = self._cursor(store, env, part)
        last = reader.last_seq(part)
        have = set(index.ids().tolist()) if at == 0 and index.exists else None
        while at < last and (stop is None or time.monotonic() < stop):
            upto = min(last, at + BATCH)
            wanted: dict[int, str] = {}
            gone: list[int] = []
            for entry in reader.log(part, after=at, until=upto):
                self._sort_out(reader, part, entry, wanted, gone)
            if have is not None:
                wanted = {n: t for n, t in wanted.items() if n not in have}
            if gone:
                index.remove(gone)
            if wanted:
                numbers = sorted(wanted)
                index.add(numbers, self.embedder.encode([wanted[n] for n in numbers]))
            self._advance(env, part, upto)
            at = upto
            out.append((len(wanted), last - at))
        return out

    def _sort_out(
        self,
        reader: Reader,
        part: Part,
        entry: refs.Entry,
        wanted: dict[int, str],
        gone: list[int],
    ) -> None:
        """Note what an entry asks for: a vector of what it brought, or the end of some."""
        found = dict(project.documents_of(reader, part, entry.ref))
        if entry.new is not None and found.get(entry.new, (0, 0))[0] == entry.seq:
            data = reader.object_bytes(part, entry.new)
            obj = None if data is None else encode.decode(data)
            if obj is not None and not is_parsed(obj):
                wanted[entry.seq] = text_of(obj)
        if not found:
            state = reader.state(part, entry.ref)
            if state is not None:
                gone += [e.seq for e in reader.entries(part, state) if e.new is not None]

    def _usable(self, store: Store, part: Part) -> VectorIndex:
        """The index of a partition, emptied when it cannot be used."""
        try:
            index = self.index(store, part)
            index.ids()
        except (IndexDamaged, EmbedderMismatch):
            folder = vector_folder(store, part.number)
            self._open.pop(folder, None)
            VectorIndex.reset(folder)
            index = self.index(store, part)
        return index

    def _key(self, part: Part) -> bytes:
        return b"v" + part.prefix + self.embedder.digest.encode()[:32]

    def _cursor(self, store: Store, env: Env | None, part: Part) -> int:
        """Last log entry whose document has its vector; 0 when the index has to be filled."""
        try:
            if env is None or not self.index(store, part).exists:
                return 0
        except (IndexDamaged, EmbedderMismatch):
            return 0
        with env.read() as txn:
            return int.from_bytes(lexical.mark(txn, self._key(part)) or b"\0", "big")

    def _advance(self, env: Env, part: Part, upto: int) -> None:
        mark = upto.to_bytes(8, "big")
        env.write(lambda txn: lexical.set_mark(txn, self._key(part), mark))


def vector_folder(store: Store, number: int) -> str:
    """Folder of the vector index of a partition."""
    return os.path.join(store.index_path, f"vectors-{number}")
