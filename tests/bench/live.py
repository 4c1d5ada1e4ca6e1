"""A process that stays and asks: warm recall, and the bare libraries on the same data beside it.

Run as ``python -m tests.bench.live STORE QUESTIONS ROUNDS``, QUESTIONS being a file with one a
line.  It prints one JSON object.  The bare libraries see what remem's indexes hold: hnswlib the
vectors (M 24, construction 100, the breadth at which it finds 0.98 of the ten nearest), numpy the
posting lists of the question's terms.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remem.index import project, scoring
from remem.index.analyze import query_terms
from remem.index.engine import Engine
from remem.index.hits import Question
from remem.index.segments import load_part
from remem.objects.scope import Grant, maintenance_grant
from remem.objects.store import Store
from remem.objects.views import Lens

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    F32 = npt.NDArray[np.float32]

NEAREST = 10
POOL = 100  # what a recall asks its indexes for
GRAPH_ROWS = 100_000  # a graph over more takes longer to build than all the rest
LEAST_FOUND = 0.98


def quantiles(took: Sequence[float]) -> dict[str, float]:
    """Median and 99th percentile, seconds."""
    ordered = sorted(took)
    return {
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
    }


def timed(step: Callable[[Any], object], over: Sequence[Any]) -> dict[str, float]:
    """How long a step takes for each of some things, after one round that does not count."""
    for one in over[:3]:
        step(one)
    took = []
    for one in over:
        began = time.perf_counter()
        step(one)
        took.append(time.perf_counter() - began)
    return quantiles(took)


def main(words: Sequence[str]) -> None:
    """Measure one store."""
    root, path, rounds = words[0], Path(words[1]), int(words[2])
    questions = path.read_text(encoding="utf-8").splitlines()[:rounds]
    store = Store(root)
    grant = Grant("owner", "local", "default", None, owner=True)
    found: dict[str, object] = {}
    for mode in ("lexical", "hybrid"):
        engine = Engine(store, grant, mode=mode, embedder="minilm", warm=True)
        engine.refresh()

        def ask(text: str, mode: str = mode, engine: Engine = engine) -> None:
            answer = engine.searcher.ask(
                Question(text, Lens(time.time_ns() // 1000), limit=10, mode=mode)
            )
            assert answer.mode == mode and not answer.degraded, answer.degraded

        found[mode] = timed(ask, questions)
    found["encode"] = timed(lambda text: engine.dense and engine.dense.encode([text]), questions)
    found["bare_bm25"] = bare_bm25(store, questions)
    found |= vectors(store, engine, questions)
    print(json.dumps(found))


def bare_bm25(store: Store, questions: Sequence[str]) -> dict[str, float]:
    """Score every posting of the question's terms with numpy and take the best, nothing else."""
    import numpy as np

    env = project.open_lexical(store, write=False)
    assert env is not None
    with store.read(maintenance_grant()) as reader:
        part = reader.parts[0].number
    with env.read(buffers=True) as txn:
        held = load_part(txn, part)
        prepared = []
        for text in questions:
            hits = scoring.search(txn, part, query_terms(text), fill=False)
            lists = [
                (
                    np.frombuffer(run.docs, np.uint32),
                    np.frombuffer(run.codes, np.uint16),
                    (term.idf * np.arange(1 << 16, dtype=np.float64) / (1 << 16)),
                )
                for term in hits.terms
                for run in term.postings.runs()
            ]
            prepared.append(lists)

        def score(lists: list[tuple[Any, Any, Any]]) -> object:
            scores = np.zeros(held.next_doc)
            for docs, codes, gain in lists:
                scores[docs] += gain[codes]
            some = np.flatnonzero(scores)
            at = max(0, some.size - POOL)
            return some[np.argpartition(scores[some], at)[at:]] if some.size else some

        return timed(score, prepared)


def vectors(store: Store, engine: Engine, questions: Sequence[str]) -> dict[str, object]:
    """The vector index against an exact scan, whole and filtered, and a bare hnswlib beside it."""
    import numpy as np

    dense = engine.dense
    assert dense is not None
    with store.read(maintenance_grant()) as reader:
        part = reader.parts[0]
        lanes: dict[int, list[int]] = {}
        for entry in reader.log(part, after=0, until=reader.last_seq(part)):
            if entry.new is not None:
                lanes.setdefault(entry.lane, []).append(entry.seq)
    index = dense.index(store, part)
    numbers = index.ids()
    rows = np.empty((numbers.size, index.dim), np.float32)
    for start, (ids, block) in index.blocks():
        rows[start : start + ids.size] = block
        numbers[start : start + ids.size] = ids
    asked = list(dense.encode(questions))
    draw = np.random.default_rng(7)
    session = max(lanes.values(), key=len)
    some = np.zeros(int(numbers.max()) + 1, bool)
    some[session] = True
    tenth = draw.random(some.size) < 0.1
    most = draw.random(some.size) < 0.9
    masks = {"all": None, "session": some, "tenth": tenth, "status": most}
    recall, took = {}, {}
    for name, mask in masks.items():
        kept = np.ones(numbers.size, bool) if mask is None else mask[numbers]
        hit = of = 0
        for vector in asked:
            exact = np.where(kept, rows @ vector, -2.0)
            k = min(NEAREST, int(kept.sum()))
            best = np.argpartition(exact, -k)[-k:]
            floor = exact[best].min() - 1e-4  # equal ones count alike
            _, scores = index.search(vector, k, allow=mask)
            hit, of = hit + int((scores >= floor).sum()), of + k
        recall[name] = hit / of
        took[name] = timed(lambda v, mask=mask: index.search(v, POOL, allow=mask), asked)
    return {"recall": recall, "search": took, "bare_hnsw": bare_graph(rows, asked)}


def bare_graph(rows: F32, asked: Sequence[F32]) -> dict[str, float]:
    """A bare hnswlib over the first rows, at the least breadth that finds enough."""
    import hnswlib
    import numpy as np

    rows = rows[:GRAPH_ROWS]
    graph = hnswlib.Index("ip", rows.shape[1])
    graph.init_index(len(rows), M=24, ef_construction=100, random_seed=7)
    graph.add_items(rows, num_threads=1)
    graph.set_num_threads(1)
    exact = [set(np.argpartition(rows @ v, -NEAREST)[-NEAREST:].tolist()) for v in asked]
    breadth, share = POOL // 2, 0.0
    while share < LEAST_FOUND and breadth < 4000:
        breadth *= 2
        graph.set_ef(breadth)
        found = [set(graph.knn_query(v, k=NEAREST)[0][0].tolist()) for v in asked]
        share = sum(len(a & b) for a, b in zip(found, exact, strict=True)) / (NEAREST * len(asked))
    took = timed(lambda v: graph.knn_query(v, k=NEAREST), asked)
    return {**took, "breadth": breadth, "recall": share, "rows": len(rows)}


if __name__ == "__main__":
    main(sys.argv[1:])
