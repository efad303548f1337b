"""The seven rankers of the papers' tables and figures."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import minmax_scale

from apexrank.rankers import IRPush, PNormPush
from apexrank.rankers.base import LinearBinaryRanker
from apexrank.validation import check_choice

P_VALUES = (1, 2, 4, 8, 16, 64)
COLUMNS = (*(f"p={p}" for p in P_VALUES), "IR")


def unit_range(X: np.ndarray) -> np.ndarray:
    """Scale every feature to [0, 1] over all rows, as the papers do before they split.

    It hardly matters: the objective does not see a shift, and only its tiny penalty sees a scale. Only the papers'
    coordinate descent, stopped early, depends on it.
    """
    return minmax_scale(X)


def fitted(X: np.ndarray, y: np.ndarray, solver: str = "auto", t_max: int = 100) -> list[LinearBinaryRanker]:
    """The P-Norm Push for p = 1, 2, 4, 8, 16, 64, then the IR Push.

    ``solver="auto"`` goes to the minimum; ``solver="coordinate"`` makes the ``t_max`` steps of JMLR 2009, Fig. 2.
    The IR Push always goes to the minimum, as it did in the papers.
    """
    check_choice("solver", solver, ("auto", "coordinate"))
    if solver == "auto":
        pushes = [PNormPush(p, alpha=1e-6).fit(X, y) for p in P_VALUES]
    else:
        with warnings.catch_warnings():
            # Stopping after t_max steps is the papers' setting, not a failure.
            warnings.simplefilter("ignore", ConvergenceWarning)
            pushes = [PNormPush(p, alpha=1e-6, solver=solver, max_iter=t_max).fit(X, y) for p in P_VALUES]
    positives = np.sum(y == np.max(y))  # of which the papers' objective is a sum
    return [*pushes, IRPush(alpha=1e-6 / positives).fit(X, y)]
