"""Retrieval quality on chats and git histories, beside BM25, dense and fused rankings.

Each conversation and each history is a corpus of its own; scores are means over questions.
Categories 1 to 4 of the chats count together; category 5 is adversarial and stands apart.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.bench import metrics
from tests.bench.baselines import Bm25, Convex, Dense, ReciprocalRank
from tests.bench.data import ADVERSARIAL, CATEGORY_NAMES, DEFAULT_DATA, Corpus, gitlogs, locomo
from tests.bench.engines import Remem, System
from tests.bench.minilm import MiniLM, Unavailable
from tests.bench.process import EMBEDDER_VARIABLE, CommandFailed
from tests.bench.report import Verdicts, note, table, title

DEPTH = 10
REFERENCE = "bm25"
SETS = ("locomo", "gitlogs")


class Score(msgspec.Struct, frozen=True):
    """One question under one system."""

    category: int
    recall: float
    hit: float
    mrr: float
    ndcg: float


MEASURES = ("recall", "mrr", "hit", "ndcg")
JUDGED = ("recall", "mrr")


def run(argv: Sequence[str]) -> int:
    """Measure and print.

    Args:
        argv: words after the name of the measurement.

    Returns:
        0; 1 with ``--check`` where a target was missed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench quality", description="Measure retrieval quality."
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the data")
    parser.add_argument("--only", choices=SETS, help="one of the two sets")
    parser.add_argument(
        "--systems",
        default="bm25,dense,rrf,convex,lexical,hybrid",
        help="of: bm25 (always), dense, rrf, convex, lexical, hybrid (default: all)",
    )
    parser.add_argument("--check", action="store_true", help="exit 1 where a target is missed")
    args = parser.parse_args(argv)
    wanted = [REFERENCE, *(name for name in args.systems.split(",") if name != REFERENCE)]
    unknown = set(wanted) - {"bm25", "dense", "rrf", "convex", "lexical", "hybrid"}
    if unknown:
        parser.error(f"unknown system '{sorted(unknown)[0]}'")

    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(prefix="remem-bench-") as work:
        for name in SETS if args.only is None else (args.only,):
            title(f"quality: {name}")
            corpora = load(name, args.data)
            if not corpora:
                print(f"data absent: '{args.data}' holds no {name}; nothing measured")
                continue
            scored = measure(corpora, systems(wanted, args.data, Path(work)))
            show(name, corpora, scored)
            for system in scored:
                if system.startswith("remem"):
                    judge(name, system, scored[system], scored[REFERENCE], verdicts)
    return int(bool(args.check and verdicts.missed))


def load(name: str, data: Path) -> list[Corpus]:
    """Read one set, or nothing where it is absent."""
    if not (data / name).is_dir():
        return []
    return locomo(data) if name == "locomo" else gitlogs(data)


def systems(wanted: Sequence[str], data: Path, work: Path) -> list[System]:
    """Make the systems by name, leaving out with a note what cannot run here."""
    made: list[System] = []
    sparse = Bm25()
    model = None
    if {"dense", "rrf", "convex"} & set(wanted):
        try:
            model = MiniLM(data)
        except Unavailable as missing:
            note(f"dense and fused baselines left out: {missing}")
    for name in wanted:
        if name == "bm25":
            made.append(sparse)
        elif name in ("lexical", "hybrid"):
            embedder = "none" if name == "lexical" else "minilm"
            made.append(Remem(work, name, {EMBEDDER_VARIABLE: embedder}))
        elif model is not None:
            dense = Dense(model)
            made.append(
                {"dense": dense, "rrf": ReciprocalRank(sparse, dense)}.get(name)
                or Convex(sparse, dense)
            )
    return made


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
            for corpus in corpora:
                system.ingest(corpus.docs)
                texts = [question.text for question in corpus.questions]
                for question, ranking in zip(
                    corpus.questions, system.search_all(texts, DEPTH), strict=True
                ):
                    scores.append(score(ranking, question.relevant, question.category))
        except (CommandFailed, msgspec.DecodeError) as failed:
            note(f"{system.name} left out: {failed}")
            continue
        found[system.name] = scores
        note(f"{system.name}: {time.perf_counter() - began:.1f} s")
        if isinstance(system, Remem) and system.degraded:
            note(f"{system.name} answered degraded: {system.degraded}")
    return found


def score(ranking: Sequence[str], relevant: Sequence[str], category: int) -> Score:
    """Score one ranking by all measures."""
    return Score(
        category=category,
        recall=metrics.recall_at(ranking, relevant, DEPTH),
        hit=metrics.hit_at(ranking, relevant, DEPTH),
        mrr=metrics.reciprocal_rank(ranking, relevant),
        ndcg=metrics.ndcg_at(ranking, relevant, DEPTH),
    )


def groups(scores: Sequence[Score]) -> list[tuple[str, list[int]]]:
    """Name the groups of questions that get a line each, with the places of their questions."""
    places = range(len(scores))
    kinds = sorted({one.category for one in scores})
    if kinds == [0]:
        return [("all", list(places))]
    counted = [place for place in places if scores[place].category != ADVERSARIAL]
    single = [
        (
            f"{kind} {CATEGORY_NAMES.get(kind, '')}".strip(),
            [place for place in places if scores[place].category == kind],
        )
        for kind in kinds
    ]
    apart = single.pop() if kinds[-1] == ADVERSARIAL else None
    return [("1-4 overall", counted), *single, *([apart] if apart else [])]


def show(name: str, corpora: Sequence[Corpus], scored: dict[str, list[Score]]) -> None:
    """Print the tables: recall and MRR a group, and all measures overall with intervals."""
    docs = sum(len(corpus.docs) for corpus in corpora)
    asked = sum(len(corpus.questions) for corpus in corpora)
    note(f"{len(corpora)} corpora, {docs} documents, {asked} questions with relevant ids")
    parted = groups(next(iter(scored.values())))
    if name == "gitlogs":
        start = 0
        for corpus in corpora:
            end = start + len(corpus.questions)
            parted.append((corpus.name, list(range(start, end))))
            start = end
    for measure_name in JUDGED:
        label = f"recall@{DEPTH}" if measure_name == "recall" else f"MRR@{DEPTH}"
        rows = [
            [
                group,
                str(len(places)),
                *(f"{_mean(scored[system], places, measure_name):.3f}" for system in scored),
            ]
            for group, places in parted
        ]
        print()
        print(table([label, "n", *scored], rows))
    overall = parted[0][1]
    rows = []
    for system, scores in scored.items():
        cells = []
        for measure_name in MEASURES:
            values = [getattr(scores[place], measure_name) for place in overall]
            low, high = metrics.bootstrap_mean(values)
            cells.append(f"{metrics.mean(values):.3f} [{low:.3f} {high:.3f}]")
        rows.append([system, *cells])
    head = [f"{parted[0][0]}, 95 %", f"recall@{DEPTH}", f"MRR@{DEPTH}", f"hit@{DEPTH}"]
    print()
    print(table([*head, f"nDCG@{DEPTH}"], rows))


def judge(
    name: str,
    system: str,
    scores: Sequence[Score],
    reference: Sequence[Score],
    verdicts: Verdicts,
) -> None:
    """Compare a system with the reference, question by question.

    The targets: no worse in any group, better overall.  The interval of the difference is
    printed beside each, since a small group moves by chance.
    """
    print()
    for place, (group, places) in enumerate(groups(reference)):
        for measure_name in JUDGED:
            gaps = [
                getattr(scores[at], measure_name) - getattr(reference[at], measure_name)
                for at in places
            ]
            gap = metrics.mean(gaps)
            low, high = metrics.bootstrap_mean(gaps)
            verdicts.judge(
                f"{name} {group} (n {len(places)}) {measure_name}, {system} - {REFERENCE}",
                gap > 0 if place == 0 else gap >= -1e-9,
                f"{gap:+.3f} [{low:+.3f} {high:+.3f}]",
                "> 0" if place == 0 else ">= 0",
            )


def _mean(scores: Sequence[Score], places: Sequence[int], measure_name: str) -> float:
    return metrics.mean([getattr(scores[place], measure_name) for place in places])
