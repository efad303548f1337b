"""Effect of class imbalance, which COLT 2006, sec. 8, leaves open ("the unevenness of the data").

The share of positives has no effect by itself. With the exponential loss and the price r**p the objective
``LSE(−f) + (1/p)·LSE(p·g)`` changes by a constant if all rows of a class are repeated, so it has the same minimum.
Imbalance acts only through noise: among a fixed number of rows, one class has few. A large p depends on the highest
negatives. If there are few negatives, a push gains little on new rows, and training shows a spurious gain.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from apexrank.metrics import auc, partial_auc
from apexrank.rankers import PNormPush
from apexrank_papers.data.uci import load_magic
from apexrank_papers.push.fitting import unit_range
from apexrank_papers.result import Result, Verdict, question, text_view, tidy
from apexrank_papers.splits import mean_over_splits, mean_verdict, over_splits, spread

ROWS = 1000
SHARES = (0.05, 0.2, 0.5, 0.8, 0.95)  # shares of positives
FEW_POSITIVES, EVEN, FEW_NEGATIVES = 0, 2, 4
SIDES = ("train", "test")
MEASURES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "left": partial(partial_auc, max_fpr=0.05),
    "AUC": auc,
}


def class_imbalance(*, n_splits: int = 20, n_jobs: int | None = None, random_state: int = 0) -> Result:
    """Measure the change from p = 1 to p = 64 against the share of positives among 1000 rows of MAGIC."""
    data = load_magic()
    X, y = unit_range(data.data), data.target
    values = over_splits(partial(_changes, X, y), n_splits, n_jobs, random_state)
    table = tidy({"positives": SHARES, "side": SIDES, "measure": MEASURES}, spread(values))
    changes = [str(mean_over_splits(column)) for column in values.reshape(n_splits, -1).T]
    view = tidy({"positives": SHARES, "side": SIDES, "measure": MEASURES}, {"change": changes})
    notes = [
        f"{data.source}; {ROWS} training rows, tested on all rows outside the training sets of the draw; change from "
        f"p = 1 to p = 64 with its 95 % interval, {n_splits} draws; left: area under the ROC curve up to 5 % of the "
        "negatives. Neither measure depends on the share of positives among the test rows."
    ]
    view = text_view(view, "{change}", on="positives", index=["side", "measure"])
    return Result(table, view, judge_changes(values), notes=notes)


def _changes(X: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """Measure p = 64 minus p = 1: shares x sides x measures."""
    rng = np.random.default_rng(seed)
    positives, negatives = (rng.permutation(np.flatnonzero(y == label)) for label in (1, 0))
    test = np.r_[positives[ROWS:], negatives[ROWS:]]
    found = []
    for share in SHARES:
        n = round(share * ROWS)
        train = np.r_[positives[:n], negatives[: ROWS - n]]
        rankers = [PNormPush(p, alpha=1e-6).fit(X[train], y[train]) for p in (1, 64)]
        before, after = (
            [[m(y[rows], r.decision_function(X[rows])) for m in MEASURES.values()] for rows in (train, test)]
            for r in rankers
        )
        found.append(np.subtract(after, before))
    return np.array(found)


def judge_changes(values: np.ndarray) -> list[Verdict]:
    """Compare the changes of ``left`` on imbalanced and balanced data; ``values`` as in `_changes`, for all draws.

    Examples
    --------
    >>> values = np.zeros((4, 5, 2, 2)) + 1e-6 * np.arange(4)[:, None, None, None]
    >>> values[:, FEW_NEGATIVES, 1] = -0.1
    >>> [verdict.word for verdict in judge_changes(values)]
    ['agrees', 'cannot tell', 'cannot tell', 'cannot tell']
    """
    train, test = values[:, :, 0, 0], values[:, :, 1, 0]
    few, none = "5 % positives against 50 %: {}", "5 % negatives against 50 %: {}"
    asked = {
        "few positives: larger effect on new rows": (test, FEW_POSITIVES, f"test, {few}"),
        "few positives: larger effect in training": (train, FEW_POSITIVES, f"train, {few}"),
        "few negatives: larger effect in training": (train, FEW_NEGATIVES, f"train, {none}"),
    }
    return [
        # "We must require more negative examples to achieve high accuracy" (COLT 2006, sec. 3)
        mean_verdict("a push needs negatives", test[:, FEW_NEGATIVES] - test[:, EVEN], f"test, {none}", -1),
        *(
            mean_verdict(row, side[:, uneven] - side[:, EVEN], why, judge=question)
            for row, (side, uneven, why) in asked.items()
        ),
    ]
