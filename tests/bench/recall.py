"""Recall on chats, git histories and corrections, beside BM25, dense and fused rankings.

Each conversation and each history is a corpus of its own, all corrections are one; scores are means
over questions.  Categories 1 to 4 of the chats count together; category 5 is adversarial and stands
apart.  All systems rank the same texts in the same run.  The fused baselines have no weight that
was fitted: reciprocal ranks with the constant of the paper, and half of each score after both are
brought to 0..1.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.bench import abstain, metrics
from tests.bench.baselines import Bm25, Convex, Dense, ReciprocalRank
from tests.bench.data import (
    ADVERSARIAL,
    CATEGORY_NAMES,
    DEFAULT_DATA,
    Corpus,
    corrections,
    gitlogs,
    locomo,
    renewed,
)
from tests.bench.engines import Remem, System
from tests.bench.minilm import MiniLM, Unavailable
from tests.bench.process import EMBEDDER_VARIABLE, CommandFailed
from tests.bench.report import Verdicts, note, table, title

DEPTH = 20
SETS = ("locomo", "gitlogs", "corrections", "confidence")
BASELINES = ("bm25", "dense", "rrf", "convex")
MODES = ("lexical", "hybrid")
RERANKED = "reranked"  # hybrid, and the best finds read again: half a second a question
OURS = (*MODES, RERANKED)
MARGINS = {"locomo": 0.05, "gitlogs": 0.03, "corrections": 0.0}
"""Recall@10 that hybrid recall is to have more than the best of the baselines."""


class Score(msgspec.Struct, frozen=True):
    """One question under one system.

    Attributes:
        group: number of its corpus.
        category: 0 where the set has none.
    """

    group: int
    category: int
    recall5: float
    recall10: float
    recall20: float
    hit10: float
    mrr: float
    ndcg10: float


MEASURES = ("recall5", "recall10", "recall20", "hit10", "mrr", "ndcg10")
HEADS = ("recall@5", "recall@10", "recall@20", "hit@10", "MRR", "nDCG@10")


class Figure(msgspec.Struct, frozen=True):
    """A mean over questions and its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


class Line(msgspec.Struct, frozen=True):
    """One system on one group of questions."""

    set: str
    group: str
    n: int
    system: str
    figures: dict[str, Figure]


def run(argv: Sequence[str]) -> int:
    """Measure and print.

    Args:
        argv: words after the name of the measurement.

    Returns:
        0; 1 with ``--check`` where a target was missed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench recall", description="Measure retrieval quality."
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the data")
    parser.add_argument("--only", choices=SETS, help="one of the sets")
    parser.add_argument(
        "--systems",
        default=",".join((*BASELINES, *MODES)),
        help=f"of: {', '.join((*BASELINES, *OURS))} (default: all but the last)",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "remem-bench-cache",
        help="folder that keeps embeddings between runs (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument("--check", action="store_true", help="exit 1 where a target is missed")
    args = parser.parse_args(argv)
    wanted = args.systems.split(",")
    unknown = set(wanted) - {*BASELINES, *OURS}
    if unknown:
        parser.error(f"unknown system '{sorted(unknown)[0]}'")
    args.cache.mkdir(mode=0o700, parents=True, exist_ok=True)

    verdicts = Verdicts()
    lines: list[Line] = []
    sure: list[abstain.Outcome] = []
    with contextlib.ExitStack() as held:
        if args.json:
            held.enter_context(contextlib.redirect_stdout(sys.stderr))
        work = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="remem-bench-")))
        for name in SETS if args.only is None else (args.only,):
            title(f"recall: {name}")
            corpora = load(name, args.data)
            if not corpora:
                print(f"data absent: '{args.data}' holds no {name}; nothing measured")
            elif name == "confidence":
                sure = abstain.measure(corpora, [m for m in MODES if m in wanted], work, args.cache)
                abstain.show(sure, verdicts)
            else:
                ranked = systems(wanted, args.data, work, args.cache)
                scored = measure(corpora, ranked)
                found = lines_of(name, corpora, scored)
                show(found)
                judge(name, found, scored, verdicts)
                lines += found
    if args.json:
        print(msgspec.json.encode({"recall": lines, "confidence": sure}).decode())
    return int(bool(args.check and verdicts.missed))


def load(name: str, data: Path) -> list[Corpus]:
    """Read one set, or nothing where it is absent."""
    folder = "locomo" if name == "confidence" else name
    if not (data / folder).is_dir():
        return []
    if name == "gitlogs":
        return gitlogs(data)
    return [renewed(corrections(data))] if name == "corrections" else locomo(data)


def systems(wanted: Sequence[str], data: Path, work: Path, cache: Path) -> list[System]:
    """Make the systems by name, leaving out with a note what cannot run here."""
    made: list[System] = []
    sparse = Bm25()
    model = None
    if {"dense", "rrf", "convex"} & set(wanted):
        try:
            model = MiniLM(data, cache)
        except Unavailable as missing:
            note(f"dense and fused baselines left out: {missing}")
    for name in wanted:
        if name == "bm25":
            made.append(sparse)
        elif name in OURS:
            made.append(engine(name, work, cache))
        elif model is not None:
            dense = Dense(model)
            made.append(
                {"dense": dense, "rrf": ReciprocalRank(sparse, dense)}.get(name)
                or Convex(sparse, dense)
            )
    return made


def engine(mode: str, work: Path, cache: Path) -> Remem:
    """The installed command in one mode."""
    settings = {EMBEDDER_VARIABLE: "none" if mode == "lexical" else "minilm"}
    if mode != RERANKED:
        return Remem(work, mode, settings, cache=cache)
    found = Remem(work, "hybrid", settings | {"REMEM_RERANKER": "msmarco"}, cache=cache)
    found.name = f"remem {mode}"
    return found


def measure(corpora: Sequence[Corpus], ranked: Sequence[System]) -> dict[str, list[Score]]:
    """Score each question of each corpus under each system.

    Args:
        corpora: searched one at a time.
        ranked: the systems; one that fails is left out with a note.

    Returns:
        Scores in the same order of questions for each system.
    """
    found: dict[str, list[Score]] = {}
    for system in ranked:
        began = time.perf_counter()
        scores: list[Score] = []
        try:
            for group, corpus in enumerate(corpora):
                system.ingest(corpus.docs)
                texts = [question.text for question in corpus.questions]
                for question, ranking in zip(
                    corpus.questions, system.search_all(texts, DEPTH), strict=True
                ):
                    scores.append(score(ranking, question.relevant, question.category, group))
        except (CommandFailed, msgspec.DecodeError) as failed:
            note(f"{system.name} left out: {failed}")
            continue
        found[system.name] = scores
        note(f"{system.name}: {time.perf_counter() - began:.1f} s")
        if isinstance(system, Remem) and system.degraded:
            note(f"{system.name} answered degraded: {system.degraded}")
    return found


def score(
    ranking: Sequence[str], relevant: Sequence[str], category: int = 0, group: int = 0
) -> Score:
    """Score one ranking by all measures."""
    return Score(
        group=group,
        category=category,
        recall5=metrics.recall_at(ranking, relevant, 5),
        recall10=metrics.recall_at(ranking, relevant, 10),
        recall20=metrics.recall_at(ranking, relevant, 20),
        hit10=metrics.hit_at(ranking, relevant, 10),
        mrr=metrics.reciprocal_rank(ranking, relevant),
        ndcg10=metrics.ndcg_at(ranking, relevant, 10),
    )


def groups(scores: Sequence[Score], corpora: Sequence[Corpus]) -> list[tuple[str, list[int]]]:
    """Name the groups of questions that get a line each, with the places of their questions."""
    places = range(len(scores))
    kinds = sorted({one.category for one in scores})
    if kinds == [0]:
        parted = [("all", list(places))]
        if len(corpora) > 1:
            for number, corpus in enumerate(corpora):
                parted.append((corpus.name, [at for at in places if scores[at].group == number]))
        return parted
    counted = [at for at in places if scores[at].category != ADVERSARIAL]
    single = [
        (
            f"{kind} {CATEGORY_NAMES.get(kind, '')}".strip(),
            [at for at in places if scores[at].category == kind],
        )
        for kind in kinds
    ]
    return [("1-4 overall", counted), *single]


def lines_of(name: str, corpora: Sequence[Corpus], scored: dict[str, list[Score]]) -> list[Line]:
    """Means and intervals of each system on each group."""
    docs = sum(len(corpus.docs) for corpus in corpora)
    asked = sum(len(corpus.questions) for corpus in corpora)
    note(f"{len(corpora)} corpora, {docs} documents, {asked} questions with relevant ids")
    found = []
    for group, places in groups(next(iter(scored.values())), corpora) if scored else []:
        for system, scores in scored.items():
            figures = {}
            for name_of in MEASURES:
                values = [getattr(scores[at], name_of) for at in places]
                figures[name_of] = Figure(metrics.mean(values), *metrics.bootstrap_mean(values))
            found.append(Line(name, group, len(places), system, figures))
    return found


def show(lines: Sequence[Line]) -> None:
    """Print one table a group."""
    for group in dict.fromkeys(line.group for line in lines):
        own = [line for line in lines if line.group == group]
        rows = [[line.system, *(_cell(line.figures[name]) for name in MEASURES)] for line in own]
        print()
        print(table([f"{group} (n {own[0].n})", *HEADS], rows))


def _cell(figure: Figure) -> str:
    return f"{figure.mean:.3f} [{figure.low:.3f} {figure.high:.3f}]"


def judge(
    name: str, lines: Sequence[Line], scored: dict[str, list[Score]], verdicts: Verdicts
) -> None:
    """Compare each mode with the best baseline of the set, question by question.

    The best baseline is that with the highest recall@10 over all questions that count.
    """
    overall = [line for line in lines if line.group == lines[0].group] if lines else []
    rivals = [line for line in overall if line.system in BASELINES]
    if not rivals:
        return
    best = max(rivals, key=lambda line: line.figures["recall10"].mean).system
    counted = [at for at, one in enumerate(scored[best]) if one.category != ADVERSARIAL]
    print()
    for mode in OURS:
        own = scored.get(f"remem {mode}")
        if own is None:
            continue
        margin = 0.0 if mode == "lexical" else MARGINS[name]
        for measure_name in ("recall10", "mrr"):
            gaps = [
                getattr(own[at], measure_name) - getattr(scored[best][at], measure_name)
                for at in counted
            ]
            gap = metrics.mean(gaps)
            low, high = metrics.bootstrap_mean(gaps)
            least = margin if measure_name == "recall10" else 0.0
            verdicts.judge(
                f"{name} {measure_name}, remem {mode} - {best}",
                gap >= least - 1e-9,
                f"{gap:+.3f} [{low:+.3f} {high:+.3f}]",
                f">= {least:+.2f}",
            )
