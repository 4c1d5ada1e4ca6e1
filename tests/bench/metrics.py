"""Retrieval metrics with binary gains, and seeded bootstrap intervals.

All functions take a ranking (best first) and the set of relevant ids of one query, and return a
number between 0 and 1.  Nothing here depends on the rest of the bench.

Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002, for
nDCG; Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13, for the
percentile interval.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Sequence

BOOTSTRAP_ROUNDS = 2000
BOOTSTRAP_SEED = 20240229


def unique(ranking: Sequence[str]) -> list[str]:
    """Drop repeated ids, keeping the first place of each: a repeat must not count twice."""
    return list(dict.fromkeys(ranking))


def recall_at(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Share of the relevant ids that stand among the first k.

    Args:
        ranking: ids, best first.
        relevant: the relevant ids, at least one.
        k: depth of the cut.

    Returns:
        ``|relevant ∩ top k| / |relevant|``.

    Raises:
        ValueError: there is no relevant id, so the share is undefined.
    """
    wanted = _wanted(relevant)
    return len(wanted & set(unique(ranking)[:k])) / len(wanted)


def hit_at(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """1.0 where any relevant id stands among the first k, else 0.0.

    Raises:
        ValueError: there is no relevant id.
    """
    return float(not _wanted(relevant).isdisjoint(unique(ranking)[:k]))


def reciprocal_rank(ranking: Sequence[str], relevant: Collection[str]) -> float:
    """One over the rank of the first relevant id; 0.0 where none is ranked.

    Raises:
        ValueError: there is no relevant id.
    """
    wanted = _wanted(relevant)
    for place, name in enumerate(unique(ranking), 1):
        if name in wanted:
            return 1.0 / place
    return 0.0


def ndcg_at(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Discounted cumulated gain of the first k over that of the best possible order.

    Raises:
        ValueError: there is no relevant id.
    """
    wanted = _wanted(relevant)
    gained = sum(
        1.0 / math.log2(place + 1)
        for place, name in enumerate(unique(ranking)[:k], 1)
        if name in wanted
    )
    best = sum(1.0 / math.log2(place + 1) for place in range(1, min(k, len(wanted)) + 1))
    return gained / best


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; NaN of nothing, which no table may show as 0."""
    return math.fsum(values) / len(values) if values else math.nan


def median(values: Sequence[float]) -> float:
    """Middle value, the mean of the two middle ones of an even number; NaN of nothing."""
    if not values:
        return math.nan
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def bootstrap_mean(
    values: Sequence[float],
    *,
    rounds: int = BOOTSTRAP_ROUNDS,
    level: float = 0.95,
    seed: int = BOOTSTRAP_SEED,
) -> tuple[float, float]:
    """Percentile interval of the mean by resampling with replacement.

    For a paired comparison pass the differences of the pairs.

    Args:
        values: one number a query.
        rounds: number of resamples.
        level: coverage, 0.95 for a 95 % interval.
        seed: the same seed gives the same interval.

    Returns:
        Lower and upper bound; NaN twice of nothing.
    """
    return _bootstrap(values, mean, rounds, level, seed)


def bootstrap_median(
    values: Sequence[float],
    *,
    rounds: int = BOOTSTRAP_ROUNDS,
    level: float = 0.95,
    seed: int = BOOTSTRAP_SEED,
) -> tuple[float, float]:
    """Percentile interval of the median; arguments as for `bootstrap_mean`."""
    return _bootstrap(values, median, rounds, level, seed)


def _wanted(relevant: Collection[str]) -> set[str]:
    wanted = set(relevant)
    if not wanted:
        raise ValueError("a query without relevant ids has no score")
    return wanted


def _bootstrap(
    values: Sequence[float],
    statistic: Callable[[Sequence[float]], float],
    rounds: int,
    level: float,
    seed: int,
) -> tuple[float, float]:
    if not values:
        return math.nan, math.nan
    draw = random.Random(seed)
    size = len(values)
    found = sorted(statistic(draw.choices(values, k=size)) for _ in range(rounds))
    cut = (1.0 - level) / 2
    low = min(rounds - 1, math.floor(cut * rounds))
    high = max(0, math.ceil((1.0 - cut) * rounds) - 1)
    return found[low], found[high]
