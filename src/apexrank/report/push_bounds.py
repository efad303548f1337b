"""What the worst-case bound asks for at each p, and what to take from it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np

from apexrank.bounds import failure_log_probability, log_covering_linear, negatives_needed
from apexrank.report.page import number

# Rankers of norm 1 on standardised features, whose rows have the norm sqrt(n_features) in the mean.
EPSILON, DELTA, THETA = 0.1, 0.05, 0.1


class PushBound(NamedTuple):
    """Negatives that the bound of JMLR 2009, Theorem 3, asks for at p, and their ratio to those at p = 1."""

    p: float
    negatives: float
    ratio: float


def push_bounds(
    ps: Sequence[float], n_features: int, r_min: float, n_positives: int, n_negatives: int
) -> tuple[list[PushBound], float, str]:
    """What the bound of JMLR 2009, Theorem 3, asks for at each p, its growth per unit of p, and advice.

    The class is that of rankers of norm 1 on standardised features, ``ε = 0.1``, ``δ = 0.05``, ``θ = 0.1``; ``r_min``
    is one minus the AUC at p = 1. The counts are worst cases. Their ratio, ``max{R_min, ε/4}^{−2(p−1)}``, does not
    depend on the class.

    Examples
    --------
    >>> bound, factor, _ = push_bounds([1, 2, float("inf")], 10, 0.1, 100, 1000)
    >>> [round(row.ratio) if row.p < 3 else row.ratio for row in bound], round(factor)
    ([1, 100, inf], 100)
    """
    covering = partial(
        log_covering_linear, norm_bound=1.0, feature_bound=sqrt(n_features), n_features=n_features
    )
    needed = [
        negatives_needed(EPSILON, DELTA, THETA, p, covering, r_min=r_min) if p < inf else inf for p in ps
    ]
    factor = max(r_min, EPSILON / 4) ** -2
    # the exact ratio: that of the counts suffers from rounding to whole rows
    logs = [(p - 1) * log(factor) if p > 1 else 0.0 for p in ps]
    ratios = [float(np.exp(size)) if size < 700 else inf for size in logs]
    met = [
        p
        for p in ps
        if p < inf
        and failure_log_probability(EPSILON, THETA, p, n_positives, n_negatives, covering, r_min)
        <= log(DELTA)
    ]
    bound = [PushBound(*row) for row in zip(ps, needed, ratios, strict=True)]
    return bound, factor, _advice(bound, factor, r_min, n_positives, n_negatives, met)


def _advice(
    bound: list[PushBound], factor: float, r_min: float, n_positives: int, n_negatives: int, met: list[float]
) -> str:
    reach = f"enough up to p = {max(met):g}" if met else f"too few even for p = {bound[0].p:g}"
    return (
        f"Each unit of p multiplies the negatives that the worst-case bound asks for by {number(factor)} "
        f"({r_min:.1%} of the held-out pairs are misranked at p = 1). At p = 1 it asks for "
        f"{bound[0].negatives:,.0f} negatives; the training rows, {n_positives:,} positives and {n_negatives:,} "
        f"negatives, are {reach}. Its counts hold for every distribution and are far above what most data need: "
        "take from it that a harder push learns from fewer rows, so of two p that do equally well prefer the "
        "smaller, and trust a large one as far as its interval goes."
    )
