"""Rankers on the folds of a five-fold ranking set: every query is a test query once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from apexrank.datasets import Fold, letor_folds
from apexrank.datasets.sources import DATA_VARIABLE, data_path
from apexrank.errors import MissingDataError
from apexrank.progress import steps


def mq2008_folds(hint: str = "") -> list[Fold]:
    """Folds of MQ2008 from ``$APEXRANK_DATA/letor/MQ2008``; ``hint`` ends the message when it is not there."""
    folder = data_path("letor", "MQ2008")
    if folder is None:
        raise MissingDataError(
            f"MQ2008 is not there: put S1.txt to S5.txt (or .gz) into a folder letor/MQ2008 below {DATA_VARIABLE}{hint}"
        )
    return list(letor_folds(folder))


def over_folds(
    function: Callable[[Any, Fold], Any], methods: Iterable[Any], folds: list[Fold], n_jobs: int | None
) -> list[list[Any]]:
    """``function(method, fold)`` for all methods and folds, a list of folds for each method.

    Examples
    --------
    >>> over_folds(lambda method, fold: method + fold, ["a", "b"], ["1", "2"], n_jobs=1)
    [['a1', 'a2'], ['b1', 'b2']]
    """
    pairs = steps(list(product(methods, folds)))
    found = Parallel(n_jobs=n_jobs)(delayed(function)(method, fold) for method, fold in pairs)
    return [found[i : i + len(folds)] for i in range(0, len(found), len(folds))]


def labels_of_tests(folds: list[Fold]) -> tuple[np.ndarray, np.ndarray]:
    """Relevance and query of the test rows of all folds, queries named by fold and group."""
    y = np.concatenate([fold.test.target for fold in folds])
    groups = np.concatenate([[f"{i}:{g}" for g in fold.test.groups] for i, fold in enumerate(folds)])
    return y, groups


def gap_text(row: dict[str, Any]) -> str:
    """Difference from the baseline with its interval, of a row of `apexrank.metrics.compare`; empty for the baseline.

    Examples
    --------
    >>> gap_text({"difference": 0.25, "difference_low": -0.5, "difference_high": 1.0})
    '+0.2500 (-0.5000 to +1.0000)'
    """
    if row["difference"] is None:
        return ""
    return f"{row['difference']:+.4f} ({row['difference_low']:+.4f} to {row['difference_high']:+.4f})"
