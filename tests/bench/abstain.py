"""Whether the confidence of an answer tells that the store holds one.

Questions of one conversation are asked of its own store and, as questions that nothing answers, of
the store of the next conversation.  The names of the speakers would give those away, so they are
asked in three ways: as they are, with the names of the speakers of that store in place of their
own, and without names.  The weights were fitted on the first three conversations; the others are
reported apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.bench import metrics
from tests.bench.data import ADVERSARIAL, Corpus
from tests.bench.engines import Remem
from tests.bench.process import EMBEDDER_VARIABLE
from tests.bench.report import Verdicts, note, table

WAYS = ("as asked", "names replaced", "names removed")
FITTED = 3  # conversations that the weights were fitted on
EVERY = 4  # of the questions, one in so many is asked
LEAST = 0.85  # area under the curve
BINS = 10


class Outcome(msgspec.Struct, frozen=True):
    """Confidences of the answers in one mode, for questions asked in one way.

    Attributes:
        held_out: whether the weights were fitted on other conversations.
        n: number of questions, one half of them with an answer in the store.
        auc: chance that a question with an answer has the higher confidence.
        error: expected calibration error over ten bins.
        empty: share of the questions without an answer that got no hits.
    """

    mode: str
    way: str
    held_out: bool
    n: int
    auc: float
    low: float
    high: float
    error: float
    empty: float


class _Asked(msgspec.Struct, frozen=True):
    way: str
    store: int
    answerable: bool
    confidence: float
    hits: int


def measure(
    corpora: Sequence[Corpus], modes: Sequence[str], work: Path, cache: Path
) -> list[Outcome]:
    """Ask every store its own questions and those of the conversation before it.

    Args:
        corpora: the conversations.
        modes: lexical, hybrid.
        work: folder for the stores.
        cache: folder that keeps embeddings between runs.
    """
    found = []
    for mode in modes:
        embedder = "none" if mode == "lexical" else "minilm"
        system = Remem(work, mode, {EMBEDDER_VARIABLE: embedder}, cache=cache)
        asked = []
        for at, corpus in enumerate(corpora):
            system.ingest(corpus.docs)
            asked += _ask(system, corpora, at)
        for way in WAYS:
            for held_out in (False, True):
                own = [one for one in asked if one.way == way and (one.store >= FITTED) == held_out]
                if own:
                    found.append(_outcome(mode, way, held_out, own))
    return found


def show(outcomes: Sequence[Outcome], verdicts: Verdicts) -> None:
    """Print the table and judge the held-out conversations."""
    rows = [
        [
            f"{one.mode}, {one.way}",
            "held out" if one.held_out else "fitted",
            str(one.n),
            f"{one.auc:.3f} [{one.low:.3f} {one.high:.3f}]",
            f"{one.error:.3f}",
            f"{one.empty:.3f}",
        ]
        for one in outcomes
    ]
    note("unanswerable: asked of the store of another conversation")
    print(table(["confidence", "conversations", "n", "AUC", "calibration error", "empty"], rows))
    for one in outcomes:
        if one.held_out:
            verdicts.judge(
                f"confidence, {one.mode}, {one.way}, held out",
                one.auc >= LEAST,
                f"AUC {one.auc:.3f}",
                f">= {LEAST}",
            )


def auc(answerable: Sequence[float], others: Sequence[float]) -> float:
    """Chance that one of the first is greater than one of the others; equal ones count half."""
    ranked = sorted([(value, 1) for value in answerable] + [(value, 0) for value in others])
    total, at = 0.0, 0
    while at < len(ranked):
        end = at
        while end < len(ranked) and ranked[end][0] == ranked[at][0]:
            end += 1
        total += (at + end + 1) / 2 * sum(kind for _, kind in ranked[at:end])
        at = end
    n, m = len(answerable), len(others)
    return (total - n * (n + 1) / 2) / (n * m)


def calibration_error(pairs: Sequence[tuple[float, bool]]) -> float:
    """Mean distance of confidence from what came true, over bins of equal width."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for value, answerable in pairs:
        bins[min(BINS - 1, int(value * BINS))].append((value, answerable))
    gaps = [abs(sum(v for v, _ in own) - sum(a for _, a in own)) for own in bins if own]
    return sum(gaps) / len(pairs)


def names_of(corpus: Corpus) -> list[str]:
    """Speakers of a conversation."""
    return sorted({doc.speaker for doc in corpus.docs if doc.speaker})


def replaced(text: str, names: Sequence[str], others: Sequence[str]) -> str:
    """A question with other names in place of some."""
    for number, name in enumerate(names):
        text = re.sub(rf"\b{re.escape(name)}\b", f"\0{number}\0", text)
    for number, other in enumerate(others):
        text = text.replace(f"\0{number}\0", other)
    return text


def _ask(system: Remem, corpora: Sequence[Corpus], at: int) -> list[_Asked]:
    store = corpora[at]
    texts: list[str] = []
    kinds: list[tuple[str, bool]] = []
    for source in (at, at - 1):
        names = names_of(corpora[source])
        others = names_of(store)
        own = [q.text for q in corpora[source].questions if q.category != ADVERSARIAL][::EVERY]
        for text in own:
            for way in WAYS:
                if way == "names replaced":
                    text_asked = replaced(text, names, others)
                elif way == "names removed":
                    text_asked = replaced(text.replace("'s", ""), names, [""] * len(names))
                else:
                    text_asked = text
                texts.append(" ".join(text_asked.split()))
                kinds.append((way, source == at))
    answers = system.answers(texts, 10)
    return [
        _Asked(way, at, answerable, answer.confidence, len(answer.hits))
        for (way, answerable), answer in zip(kinds, answers, strict=True)
    ]


def _outcome(mode: str, way: str, held_out: bool, asked: Sequence[_Asked]) -> Outcome:
    yes = [one.confidence for one in asked if one.answerable]
    no = [one.confidence for one in asked if not one.answerable]
    area = auc(yes, no)
    # The error of Hanley and McNeil 1982.
    q1, q2 = area / (2 - area), 2 * area * area / (1 + area)
    spread = area * (1 - area) + (len(yes) - 1) * (q1 - area**2) + (len(no) - 1) * (q2 - area**2)
    half = 1.96 * (max(spread, 0.0) / (len(yes) * len(no))) ** 0.5
    weighed = [(one.confidence, one.answerable) for one in asked]
    empty = metrics.mean([float(not one.hits) for one in asked if not one.answerable])
    return Outcome(
        mode,
        way,
        held_out,
        len(asked),
        area,
        area - half,
        min(1.0, area + half),
        calibration_error(weighed),
        empty,
    )
