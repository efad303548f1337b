"""When does a row of measurements show the shape of a printed row? One rule for all tables and figures.

The papers print one random split; we measure many. Every split gives all columns, so differences between columns
are taken split by split. Two kinds of noise follow, both from Student's t:

* a mean difference is *beyond noise* when 0 is outside its 95 % confidence interval;
* *a single split can give* a printed number that is inside the 99 % prediction interval of our splits.

A row has three parts:

* direction: the sign of the change from p = 1 to p = 16;
* best: small p (1, 2), medium p (4, 8) or large p (16, 64, IR Push), as in the papers' last column; a group is
  among our best when one of its columns is not worse than our best column beyond noise;
* level: the printed values at p = 1 and p = 16 are such as a single split can give.

The row *agrees* when our change goes the printed way beyond noise, the printed best group is among our best, and
the level is right. It *differs* when a part is not even such as a single split can give. Otherwise it is *within
noise*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from apexrank_papers.result import Verdict

COLUMNS = ("p=1", "p=2", "p=4", "p=8", "p=16", "p=64", "IR")
FIRST, LAST = COLUMNS.index("p=1"), COLUMNS.index("p=16")
GROUPS = {"small p": (0, 1), "medium p": (2, 3), "large p or IR": (4, 5, 6)}


class Mean(NamedTuple):
    """A mean over splits, how far noise may move it, and how far a single split may lie from it."""

    value: float
    noise: float
    reach: float

    @property
    def sign(self) -> int:
        """-1 or 1 beyond noise, 0 within."""
        return int(np.sign(self.value)) if abs(self.value) > self.noise else 0

    def can_give(self, printed: float) -> bool:
        """Whether a single split can give ``printed``."""
        return abs(printed - self.value) <= self.reach

    def __str__(self) -> str:
        places = max(0, 1 - int(np.floor(np.log10(self.noise)))) if self.noise > 0 else 3
        return f"{self.value:+.{places}f} ± {self.noise:.{places}f}"


class Part(NamedTuple):
    """One part of a row's shape: as printed, at least possible for a single split, in words."""

    agrees: bool
    possible: bool
    words: str


def mean_over_splits(values: np.ndarray) -> Mean:
    """Mean of one value for each split.

    Examples
    --------
    >>> print(mean_over_splits(np.array([1.0, 1.1, 0.9, 1.0])))
    +1.00 ± 0.13
    """
    n, deviation = len(values), values.std(ddof=1)
    noise = student.ppf(0.975, n - 1) * deviation / np.sqrt(n)
    reach = student.ppf(0.995, n - 1) * deviation * np.sqrt(1 + 1 / n)
    return Mean(float(values.mean()), float(noise), float(reach))


def row_verdict(row: str, ours: np.ndarray, printed: np.ndarray, *, larger_is_better: bool) -> Verdict:
    """Judge one row: ``ours`` is splits x columns, ``printed`` one value for each column.

    Examples
    --------
    >>> printed = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.4])
    >>> ours = printed * np.array([[0.9], [1.0], [1.1]])
    >>> print(row_verdict("AUC", ours, printed, larger_is_better=True).why)
    falls from p = 1 to p = 16 (-0.400 ± 0.099, printed -0.4); best at small p as printed; level as printed
    """
    worse = -1.0 if larger_is_better else 1.0
    parts = (_direction(ours, printed), _best(worse * ours, worse * printed), _level(ours, printed))
    agrees, possible = all(part.agrees for part in parts), all(part.possible for part in parts)
    word = "agrees" if agrees else "within noise" if possible else "differs"
    return Verdict(row, word, "; ".join(part.words for part in parts))


def _direction(ours: np.ndarray, printed: np.ndarray) -> Part:
    moved, expected = mean_over_splits(ours[:, LAST] - ours[:, FIRST]), float(printed[LAST] - printed[FIRST])
    agrees = moved.sign == np.sign(expected)
    verb = {-1: "falls", 0: "does not move beyond noise", 1: "rises"}[moved.sign]
    words = f"{verb} from p = 1 to p = 16 ({moved}, printed {expected:+.5g})"
    return Part(agrees, agrees or moved.can_give(expected), words)


def _best(ours: np.ndarray, printed: np.ndarray) -> Part:
    """Compare where the row is best; both are turned so that smaller is better."""
    lags = [mean_over_splits(column - ours[:, ours.mean(axis=0).argmin()]) for column in ours.T]
    best = {name for name, members in GROUPS.items() if any(lags[c].sign <= 0 for c in members)}
    expected = {name for name, members in GROUPS.items() if printed[list(members)].min() == printed.min()}
    lag = lags[printed.argmin()]
    words = f"best at {_names(best)} as printed" if best == expected else _other_best(best, expected)
    return Part(bool(best & expected), lag.value <= lag.reach, words)


def _other_best(best: set[str], expected: set[str]) -> str:
    return f"best at {_names(best)}, printed {_names(expected)}"


def _names(groups: set[str]) -> str:
    return " and ".join(name for name in GROUPS if name in groups)


def _level(ours: np.ndarray, printed: np.ndarray) -> Part:
    right = all(mean_over_splits(ours[:, c]).can_give(float(printed[c])) for c in (FIRST, LAST))
    return Part(right, right, "level as printed" if right else "another level")
