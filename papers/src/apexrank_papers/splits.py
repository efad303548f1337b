"""Repeated measurements over random splits or draws: their means and the noise of the means.

Two criteria are based on Student's t distribution:

* a mean is *beyond noise* if 0 is outside its 95 % confidence interval;
* *a single split can give* a number if it is inside the 99 % prediction interval of the splits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import t as student
from threadpoolctl import threadpool_limits

from apexrank.datasets import Fold, letor_folds
from apexrank.errors import InputError
from apexrank.progress import steps
from apexrank_papers.data.sources import DATA_VARIABLE, MissingDataError, data_path
from apexrank_papers.result import Judge, Verdict, signed_verdict


def check_repeated(name: str, number: int) -> None:
    """Raise InputError unless the option ``name`` asks for at least two repetitions: one gives no estimate of noise.

    Examples
    --------
    >>> check_repeated("draws", 1)
    Traceback (most recent call last):
    apexrank.errors.InputError: `draws` must be at least 2 to tell an effect from noise, got 1
    """
    if number < 2:
        raise InputError(f"`{name}` must be at least 2 to tell an effect from noise, got {number}")


def over_splits(
    measure: Callable[[int], Any],
    n_splits: int,
    n_jobs: int | None,
    random_state: int,
) -> np.ndarray:
    """Call ``measure(seed)`` for ``n_splits`` seeds starting at ``random_state`` and stack the results.

    Examples
    --------
    >>> over_splits(lambda seed: [seed, 2 * seed], n_splits=3, n_jobs=1, random_state=5).tolist()
    [[5, 10], [6, 12], [7, 14]]
    """
    check_repeated("n_splits", n_splits)
    seeds = range(random_state, random_state + n_splits)
    # The fits are tiny: synchronising BLAS threads would cost ten times as much as the sums.
    with threadpool_limits(limits=1, user_api="blas"):
        return np.array(Parallel(n_jobs=n_jobs)(delayed(measure)(seed) for seed in steps(seeds)))


class Mean(NamedTuple):
    """Mean over splits with the half-widths of its confidence interval and its prediction interval."""

    value: float
    noise: float
    reach: float

    @property
    def sign(self) -> int:
        """Sign of the mean if it is beyond noise, 0 otherwise."""
        return int(np.sign(self.value)) if abs(self.value) > self.noise else 0

    def can_give(self, printed: float) -> bool:
        """Return whether a single split can give the value ``printed``."""
        return abs(printed - self.value) <= self.reach

    def __str__(self) -> str:
        places = max(0, 1 - int(np.floor(np.log10(self.noise)))) if self.noise > 0 else 3
        return f"{self.value:+.{places}f} ± {self.noise:.{places}f}"


def mean_over_splits(values: np.ndarray) -> Mean:
    """Average one value per split.

    Examples
    --------
    >>> print(mean_over_splits(np.array([1.0, 1.1, 0.9, 1.0])))
    +1.00 ± 0.13
    """
    n, deviation = len(values), values.std(ddof=1)
    noise = student.ppf(0.975, n - 1) * deviation / np.sqrt(n)
    reach = student.ppf(0.995, n - 1) * deviation * np.sqrt(1 + 1 / n)
    return Mean(float(values.mean()), float(noise), float(reach))


def mean_verdict(
    row: str, values: np.ndarray, why: str, sign: int = 1, judge: Judge = signed_verdict
) -> Verdict:
    """Return the verdict on whether the mean over splits has the given sign; ``{}`` in ``why`` stands for the mean.

    Examples
    --------
    >>> print(mean_verdict("AUC", np.array([-1.0, -1.1, -0.9]), "should fall: {}", sign=-1))
    AUC: agrees: should fall: -1.00 ± 0.25
    """
    mean = mean_over_splits(values)
    return judge(row, sign * mean.sign, why.format(mean))


def standard_error(values: np.ndarray) -> np.ndarray:
    """Standard errors of the means over the first axis, which has one row per split."""
    return values.std(axis=0, ddof=1) / np.sqrt(len(values))


def spread(values: np.ndarray) -> dict[str, np.ndarray]:
    """Return means, standard deviations and standard errors over the first axis as flat columns of a tidy table.

    Examples
    --------
    >>> {name: column.tolist() for name, column in spread(np.array([[1.0, 4.0], [3.0, 4.0]])).items()}
    {'mean': [2.0, 4.0], 'standard_deviation': [1.4142135623730951, 0.0], 'standard_error': [1.0, 0.0]}
    """
    return {
        "mean": values.mean(axis=0).ravel(),
        "standard_deviation": values.std(axis=0, ddof=1).ravel(),
        "standard_error": standard_error(values).ravel(),
    }


def mq2008_folds(hint: str = "") -> list[Fold]:
    """Read the folds of MQ2008 from ``$APEXRANK_DATA/letor/MQ2008``; ``hint`` ends the error if it is missing."""
    folder = data_path("letor", "MQ2008")
    if folder is None:
        raise MissingDataError(
            f"MQ2008 is missing: put S1.txt to S5.txt (or .gz) into a folder letor/MQ2008 below {DATA_VARIABLE}{hint}"
        )
    return list(letor_folds(folder))


def over_folds(
    function: Callable[[Any, Fold], Any], methods: Iterable[Any], folds: list[Fold], n_jobs: int | None
) -> list[list[Any]]:
    """Call ``function(method, fold)`` for all methods and folds, and return a list over folds for each method.

    Examples
    --------
    >>> over_folds(lambda method, fold: method + fold, ["a", "b"], ["1", "2"], n_jobs=1)
    [['a1', 'a2'], ['b1', 'b2']]
    """
    pairs = steps(list(product(methods, folds)))
    with threadpool_limits(limits=1, user_api="blas"):  # as in over_splits
        found = Parallel(n_jobs=n_jobs)(delayed(function)(method, fold) for method, fold in pairs)
    return [found[i : i + len(folds)] for i in range(0, len(found), len(folds))]


def labels_of_tests(folds: list[Fold]) -> tuple[np.ndarray, np.ndarray]:
    """Return relevance and query of the test rows of all folds; queries are named by fold and group."""
    y = np.concatenate([fold.test.target for fold in folds])
    groups = np.concatenate([[f"{i}:{g}" for g in fold.test.groups] for i, fold in enumerate(folds)])
    return y, groups


def gap_text(row: dict[str, Any]) -> str:
    """Format the difference from the baseline in a row of `apexrank.metrics.compare`, or "" for the baseline itself.

    Examples
    --------
    >>> gap_text({"difference": 0.25, "difference_low": -0.5, "difference_high": 1.0})
    '+0.2500 (-0.5000 to +1.0000)'
    """
    if row["difference"] is None:
        return ""
    return f"{row['difference']:+.4f} ({row['difference_low']:+.4f} to {row['difference_high']:+.4f})"
