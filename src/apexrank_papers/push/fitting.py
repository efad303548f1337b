"""The seven rankers of the papers' tables, and how to measure them on many random splits."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import minmax_scale
from threadpoolctl import threadpool_limits

from apexrank.errors import InputError
from apexrank.rankers import IRPush, PNormPush
from apexrank.rankers.base import LinearBinaryRanker

P_VALUES = (1, 2, 4, 8, 16, 64)


def unit_range(X: np.ndarray) -> np.ndarray:
    """Scale every feature to [0, 1] over all rows, as the papers do before they split.

    It hardly matters: the objective does not see a shift, and only its tiny penalty sees a scale. Only the papers'
    coordinate descent, stopped early, depends on it.
    """
    return minmax_scale(X)


def over_splits(
    measure: Callable[[int], Any], n_splits: int, n_jobs: int | None, random_state: int
) -> np.ndarray:
    """``measure(seed)`` for ``n_splits`` seeds from ``random_state`` on, stacked.

    Examples
    --------
    >>> over_splits(lambda seed: [seed, 2 * seed], n_splits=3, n_jobs=1, random_state=5).tolist()
    [[5, 10], [6, 12], [7, 14]]
    """
    if n_splits < 2:
        raise InputError(f"n_splits must be at least 2 to tell an effect from noise, got {n_splits}")
    seeds = range(random_state, random_state + n_splits)
    # The fits are tiny: BLAS threads would only wait for each other, at ten times the cost of the sums.
    with threadpool_limits(limits=1, user_api="blas"):
        return np.array(Parallel(n_jobs=n_jobs)(delayed(measure)(seed) for seed in seeds))


def fitted(X: np.ndarray, y: np.ndarray, solver: str = "auto", t_max: int = 100) -> list[LinearBinaryRanker]:
    """The P-Norm Push for p = 1, 2, 4, 8, 16, 64, then the IR Push.

    ``solver="auto"`` goes to the minimum; ``solver="coordinate"`` makes the ``t_max`` steps of JMLR 2009, Fig. 2.
    The IR Push always goes to the minimum, as it did in the papers.
    """
    if solver not in PUSHES:
        raise InputError(f"unknown solver {solver!r}: use one of {', '.join(PUSHES)}")
    pushes = [PUSHES[solver](p, X, y, t_max) for p in P_VALUES]
    positives = np.sum(y == np.max(y))  # of which the papers' objective is a sum
    return [*pushes, IRPush(alpha=1e-6 / positives).fit(X, y)]


def _minimum(p: float, X: np.ndarray, y: np.ndarray, t_max: int) -> LinearBinaryRanker:
    return PNormPush(p).fit(X, y)


def _papers_steps(p: float, X: np.ndarray, y: np.ndarray, t_max: int) -> LinearBinaryRanker:
    with warnings.catch_warnings():
        # Stopping after t_max steps is the papers' setting, not a failure.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return PNormPush(p, solver="coordinate", max_iter=t_max).fit(X, y)


PUSHES = {"auto": _minimum, "coordinate": _papers_steps}
