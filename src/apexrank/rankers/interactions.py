"""Choice of the pairs of columns of an additive ranker: screening on gradients, and the evidence for each pair."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np
from scipy import linalg

from apexrank.kernels.ramps import cell_sums
from apexrank.problem.ramps import Places, RampBasis, Side

KNOTS = 8  # of a column of numbers in a pair
CELLS = 64  # of a pair, as long as its levels allow
LONGEST = 32  # knots of a column of numbers next to a column of few values
MOST_LEVELS = 64  # of a column in pairs
MOST_CELLS = 256  # of two columns of levels
MOST_SCREENED = 64  # columns with the largest effects that are screened for pairs
SCREENED_ROWS = 100_000
ROUNDING = 1e-12  # of covariances in units of the prior
BACKFITTED = 10  # iterations of backfitting over the rows and columns of a grid

Pair = tuple[int, int]


def pair_sizes(sizes: Pair, levels: tuple[bool, bool]) -> Pair:
    """Numbers of knots of two columns in a pair: all levels, and about ``CELLS`` cells.

    Examples
    --------
    >>> pair_sizes((33, 33), (False, False)), pair_sizes((2, 33), (False, False)), pair_sizes((40, 33), (True, False))
    ((8, 8), (2, 32), (40, 2))
    """
    a, b = (m if is_level else min(m, KNOTS) for m, is_level in zip(sizes, levels, strict=True))
    if not levels[0]:
        a = min(sizes[0], LONGEST, max(2, CELLS // b))
    if not levels[1]:
        b = min(sizes[1], LONGEST, max(2, CELLS // a))
    return a, b


def spaced(knots: np.ndarray, size: int) -> np.ndarray:
    """At most ``size`` of the knots, evenly spaced over their quantiles."""
    return knots[np.unique(np.round(np.linspace(0, len(knots) - 1, min(size, len(knots)))).astype(int))]


def with_pairs(basis: RampBasis, X: np.ndarray, weight: np.ndarray, pairs: Sequence[Pair]) -> RampBasis:
    """The basis with functions of these pairs of columns."""
    sides: list[Side] = []
    place: dict[Pair, int] = {}
    found = []
    for pair in pairs:
        both: Pair = tuple(len(basis.knots[j]) for j in pair)  # type: ignore[assignment]
        levels = tuple(bool(basis.levels[j]) for j in pair)
        for j, size in zip(pair, pair_sizes(both, levels), strict=True):  # type: ignore[arg-type]
            if (j, size) not in place:
                knots = basis.knots[j] if basis.levels[j] else spaced(basis.knots[j], size)
                place[j, size] = len(sides)
                sides.append(Side(j, knots, knot_mass(X[:, j], knots, weight), bool(basis.levels[j])))
            found.append(place[j, size])
    return replace(basis, sides=sides, pairs=[*zip(found[::2], found[1::2], strict=True)])


def knot_mass(x: np.ndarray, knots: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weight of the rows at each knot of a column, interpolated between neighbouring knots."""
    places, width = Places(np.ascontiguousarray(x[:, None]), [knots]), len(knots)
    code, t = places.code[:, 0].astype(int), places.fraction[:, 0]
    mass = np.bincount(code, weight * (1 - t), minlength=width + 2) + np.bincount(
        code + 1, weight * t, minlength=width + 2
    )
    return np.maximum(mass[:width], 1e-9 * weight.sum())


def screen_pairs(
    basis: RampBasis,
    X: np.ndarray,
    columns: Sequence[int],
    weight: np.ndarray,
    slope: np.ndarray,
    curvature: np.ndarray,
    least: float = -np.inf,
) -> list[Pair]:
    """Rank pairs of the columns by how much of the slopes their cells explain beyond either column alone.

    ``slope`` and ``curvature`` are the derivatives of the objective with respect to the scores, rows counted as often
    as their ``weight``, and φ is the ratio of the sum of squared slopes to that of curvatures. With E the sum of the
    slopes in a cell minus its additive part and N that of the curvatures, ``Σ E²/(φ·N)`` has about a chi-squared
    distribution if there is no joint effect. Pairs are ranked by how many standard deviations it is above its mean,
    which must be at least ``least``. Large data sets are subsampled.
    """
    fits = [
        pair for pair in combinations(range(len(columns)), 2) if _is_small(basis, [columns[c] for c in pair])
    ]
    pairs = np.array(fits, dtype=np.int64)
    if not fits:
        return []
    if len(X) > SCREENED_ROWS:
        some = np.sort(np.random.default_rng(0).choice(len(X), SCREENED_ROWS, replace=False))
        X, weight, slope, curvature = X[some], weight[some], slope[some], curvature[some]
    code, widths = _cells(basis, X, columns)
    size = int(widths.max())
    sums, counts = np.zeros((2, len(pairs), size, size))
    cell_sums(code, slope, curvature, pairs, widths, 0, len(pairs), sums, counts)
    left, filled = sums - counts * additive_part(sums, counts), counts > 1e-12 * counts.max()
    found = (left**2 / np.where(filled, counts, 1.0)).sum(axis=(1, 2), where=filled)
    free = filled.sum(axis=(1, 2)) - filled.any(axis=2).sum(axis=1) - filled.any(axis=1).sum(axis=1) + 1
    free = np.maximum(free, 1)
    dispersion = float((slope**2 / np.where(weight > 0, weight, 1.0)).sum()) / float(curvature.sum())
    above = (found / dispersion - free) / np.sqrt(2.0 * free)
    order = np.argsort(-above, kind="stable")
    return [(columns[a], columns[b]) for a, b in pairs[order[above[order] >= least]].tolist()]


def _is_small(basis: RampBasis, pair: Sequence[int]) -> bool:
    """Whether both columns are not levels, or have few."""
    return not all(basis.levels[j] for j in pair) or prod(len(basis.knots[j]) for j in pair) <= MOST_CELLS


def _cells(basis: RampBasis, X: np.ndarray, columns: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Cell of each row in each column, columns by rows, and the number of cells; the last one is not counted."""
    knots = [basis.knots[j] if basis.levels[j] else spaced(basis.knots[j], KNOTS + 1) for j in columns]
    places = Places(np.ascontiguousarray(X[:, columns]), knots)
    code, widths = places.code.T.astype(np.int64), places.widths.copy()
    for c, j in enumerate(columns):
        if (
            not basis.levels[j] and widths[c] > 2
        ):  # intervals between knots, the last of which includes its end
            missing = code[c] >= widths[c]
            widths[c] -= 1
            code[c] = np.where(missing, widths[c], np.minimum(code[c], widths[c] - 1))
    return np.ascontiguousarray(code), widths


def additive_part(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Additive weighted least-squares fit of the cell means ``sums/counts`` of each grid."""
    rows, columns = (np.maximum(counts.sum(axis=axis), 1e-12) for axis in (2, 1))
    a, b = np.zeros(rows.shape), np.zeros(columns.shape)
    for _ in range(BACKFITTED):
        a = (sums - counts * b[:, None, :]).sum(axis=2) / rows
        b = (sums - counts * a[:, :, None]).sum(axis=1) / columns
    return a[:, :, None] + b[:, None, :]


def supported(
    covariance: np.ndarray, v: np.ndarray, terms: np.ndarray, kept: Collection[int], least: float
) -> list[int]:
    """Terms that remain when those with the least evidence are dropped one by one, until all have at least ``least``.

    ``v`` and ``covariance`` are posterior mean and covariance in units of the prior. The evidence for a term is the
    logarithm of the Bayes factor against its absence, by Savage and Dickey's ratio of the densities at 0:
    ``½·log det V + ½·v'V⁻¹v``. Terms that repeat each other have little evidence each, so one is dropped at a time.

    Examples
    --------
    >>> supported(np.diag([0.1, 0.9]), np.array([1.0, 0.1]), np.array([4, 7]), [4, 7], 2.0)
    [4]
    """
    remaining, covariance = [*kept], covariance + ROUNDING * np.eye(len(v))
    while remaining:
        evidence = []
        for term in remaining:
            own = np.flatnonzero(terms == term)
            factor = linalg.cholesky(covariance[np.ix_(own, own)], lower=True)
            z = linalg.solve_triangular(factor, v[own], lower=True)
            evidence.append(np.log(np.diag(factor)).sum() + 0.5 * z @ z)
        weakest = int(np.argmin(evidence))
        if evidence[weakest] >= least:
            break
        # condition on a term of zero
        own = np.flatnonzero(terms == remaining.pop(weakest))
        gain = linalg.solve(covariance[np.ix_(own, own)], covariance[own], assume_a="pos")
        v, covariance = v - gain.T @ v[own], covariance - covariance[:, own] @ gain
        others = np.setdiff1d(np.arange(len(v)), own)
        v, covariance, terms = v[others], covariance[np.ix_(others, others)], terms[others]
    return remaining
