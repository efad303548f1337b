"""The seven rankers of the papers' tables and figures, and their scaled or threshold features."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import minmax_scale

from apexrank.errors import InputError
from apexrank.rankers import IRPush, PNormPush
from apexrank.rankers.base import LinearEstimator
from apexrank.validation import check_choice

P_VALUES = (1, 2, 4, 8, 16, 64)
COLUMNS = (*(f"p={p}" for p in P_VALUES), "IR")


def unit_range(X: np.ndarray) -> np.ndarray:
    """Scale every feature to [0, 1] over all rows, as the papers do before they split.

    It hardly matters: the objective is invariant to shifts, and only its tiny penalty depends on the scale. Only the
    papers' coordinate descent, stopped early, depends on it.
    """
    return minmax_scale(X)


def fitted(X: np.ndarray, y: np.ndarray, solver: str = "auto", t_max: int = 100) -> list[LinearEstimator]:
    """Fit the P-Norm Push for p = 1, 2, 4, 8, 16, 64, then the IR Push.

    ``solver="auto"`` finds the minimum; ``solver="coordinate"`` takes the ``t_max`` steps of JMLR 2009, Fig. 2.
    The IR Push is always minimised, as in the papers.
    """
    check_choice("solver", solver, ("auto", "coordinate"))
    if solver == "auto":
        pushes = [PNormPush(p, alpha=1e-6).fit(X, y) for p in P_VALUES]
    else:
        with warnings.catch_warnings():
            # Stopping after t_max steps is the papers' setting, not a failure.
            warnings.simplefilter("ignore", ConvergenceWarning)
            pushes = [PNormPush(p, alpha=1e-6, solver=solver, max_iter=t_max).fit(X, y) for p in P_VALUES]
    positives = np.sum(y == np.max(y))  # the papers' objective is a sum over these
    return [*pushes, IRPush(alpha=1e-6 / positives).fit(X, y)]


def threshold_features(X: np.ndarray, *others: np.ndarray, n_thresholds: int = 4) -> list[np.ndarray]:
    """Compute binary features ``1[x > t]`` of ``X``, up to ``n_thresholds`` per column, and the same for other rows.

    The thresholds lie near the quantiles 1/(n+1), …, n/(n+1) of ``X``. No feature is constant on ``X`` and no two
    are equivalent there, as COLT 2006, Figure 2, requires: a feature that equals another one, or its negation (the same
    ranker with the opposite sign), is left out. A column with few distinct values gives fewer features.

    Examples
    --------
    >>> X = np.array([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0], [4.0, 8.0]])
    >>> made, other = threshold_features(X, np.array([[2.5, 9.0]]), n_thresholds=2)
    >>> made.T.tolist(), other.tolist()
    ([[0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]], [[1.0, 0.0]])

    ``x1 > 7`` is missing because it equals ``x0 > 3`` on these rows.
    """
    chosen: dict[bytes, tuple[int, float]] = {}
    for j, column in enumerate(X.T):
        for cut in _cuts(column, n_thresholds):
            above = column > cut
            chosen.setdefault((above != above[0]).tobytes(), (j, cut))
    if not chosen:
        raise InputError("no thresholds exist: every column of X is constant")
    features, thresholds = map(list, zip(*chosen.values(), strict=True))
    return [(rows[:, features] > thresholds).astype(np.float64) for rows in (X, *others)]


def _cuts(column: np.ndarray, n_thresholds: int) -> np.ndarray:
    """Return the cut values: those with a share of rows at or below nearest to 1/(n+1), …, n/(n+1).

    Only values that occur, except the largest, are candidates, so two cuts never split the rows alike
    and none leaves all rows on one side, however often a value repeats.
    """
    values, counts = np.unique(column, return_counts=True)
    candidates, below = values[:-1], np.cumsum(counts)[:-1] / len(column)
    free = np.ones(len(candidates), dtype=bool)
    for share in np.arange(1, min(n_thresholds, len(candidates)) + 1) / (n_thresholds + 1):
        free[np.argmin(np.where(free, np.abs(below - share), np.inf))] = False
    return candidates[~free]
