"""The numbers of ``linkfarm``: measured on each ranking into a tidy table, and looked up there again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import rankdata

from apexrank.metrics import spam_mass, spam_met, spearman_footrule
from apexrank_papers.graphs.farms import RATIO, Farmed
from apexrank_papers.graphs.linkfarm_rankings import Trial, first_small

DEPTHS = (100, 1000, 10_000)
WORST_BOUND = 1e-3  # scores that may be further from the answer are not measured
PLAIN, CHOSEN = ("PageRank", 1.0, 1.0), ("L_pq", 2.0, RATIO)  # the two rankings that most claims compare


def measured(farmed: Farmed, trial: Trial, reference: np.ndarray) -> Iterator[dict[str, Any]]:
    """One row for each number; of an answer without a certificate only what is known of it."""
    values: dict[str, float | None] = {"steps": trial.steps, "error bound": trial.bound}
    if trial.bound is None or trial.bound <= WORST_BOUND:
        values |= measures(farmed, trial.scores, reference)
    if len(trial.history):
        values["steps to a change of 1e-6"] = first_small(trial.history)
    names = dict(zip(("method", "p", "ratio", "labels"), trial.key, strict=True))
    for measure, value in values.items():
        if value is not None:
            yield {**names, "measure": measure, "value": float(value)}


def measures(farmed: Farmed, scores: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """What spam gets from a ranking, where the targets stand, and how far honest vertices are from ``reference``."""
    values = {}
    if (scores >= 0).all():
        values["spam mass"] = spam_mass(farmed.spam, scores)
        values["mass of closed cycles"] = float(scores[farmed.cycles].sum() / scores.sum())
    place = rankdata(-scores, method="average")[farmed.targets]
    values |= {"median target": float(np.median(place)), "best target": float(place.min())}
    values |= honest_above(farmed, scores)
    met = np.asarray(spam_met(farmed.spam, scores, DEPTHS))
    values |= {f"spam in the first {depth}": float(number) for depth, number in zip(DEPTHS, met, strict=True)}
    honest = ~farmed.spam
    distance = spearman_footrule(scores=(reference[honest], scores[honest]))
    return values | {"footrule to PageRank": float(distance) / int(honest.sum()) ** 2}


def honest_above(farmed: Farmed, scores: np.ndarray) -> dict[str, float]:
    """Honest pages above a target, on closed cycles and others; medians over the targets."""
    closed = np.zeros(len(scores), dtype=bool)
    closed[farmed.cycles] = True
    found = {}
    for name, pages in (("ordinary pages above", ~closed), ("closed cycles above", closed)):
        ascending = np.sort(scores[pages & ~farmed.spam])
        above = len(ascending) - np.searchsorted(ascending, scores[farmed.targets], side="right")
        found[name] = float(np.median(above))
    return found


class Found:
    """The table as a function: measure, method and its settings to the number.

    Examples
    --------
    >>> row = {"measure": "steps", "method": "L_pq", "p": 2.0, "ratio": 1.2, "labels": None, "value": 9.0}
    >>> found = Found(pl.DataFrame([row]))
    >>> found("steps", "L_pq", 2.0, 1.2), found("steps", "PageRank"), found.ps("L_pq", "steps")
    (9.0, nan, [2.0])
    """

    def __init__(self, table: pl.DataFrame) -> None:
        keys = ("measure", "method", "p", "ratio", "labels")
        self.values = {row[:-1]: row[-1] for row in table.select(*keys, "value").rows()}
        self.labels = sorted({key[-1] for key in self.values if key[-1] is not None})

    def __call__(
        self,
        measure: str,
        method: str,
        p: float | None = None,
        ratio: float | None = None,
        labels: float | None = None,
    ) -> float:
        """The number, or nan where there is none."""
        return self.values.get((measure, method, p, ratio, labels), np.nan)

    @property
    def few_and_many(self) -> list[float]:
        """The smallest and the largest share of labels; one where they are the same."""
        return sorted({self.labels[0], self.labels[-1]})

    def ps(self, method: str, measure: str = "spam mass") -> list[float]:
        """Powers with which a method was measured."""
        return sorted({key[2] for key in self.values if key[:2] == (measure, method)})

    def ratios(self, p: float) -> list[float]:
        """Ratios with which the rank of a power was measured."""
        methods = ("L_p", "L_pq") if p > 1 else ("PageRank", "L_pq")
        return sorted(
            {key[3] for key in self.values if key[0] == "spam mass" and key[1] in methods and key[2] == p}
        )

    def lpq(self, measure: str, p: float, ratio: float) -> float:
        """The number of L_pq, which is PageRank or L_p at ratio 1."""
        method = "L_pq" if ratio > 1 else "PageRank" if p == 1 else "L_p"
        return self(measure, method, p, ratio)


def percent(values: Iterable[float]) -> str:
    """Shares in percent.

    Examples
    --------
    >>> percent([0.01, 0.00382])
    '1, 0.382 %'
    """
    return ", ".join(f"{100 * value:.3g}" for value in values) + " %"


def powers(ps: Iterable[float]) -> str:
    """Values of p.

    Examples
    --------
    >>> powers([1, 1.5, np.inf])
    '1, 1.5, ∞'
    """
    return ", ".join("∞" if np.isinf(p) else f"{p:g}" for p in ps)
