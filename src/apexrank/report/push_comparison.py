"""What a comparison of pushes found: numbers, lists and a verdict; a page is made of them elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from apexrank.io.ranker import signed
from apexrank.metrics.confidence import Interval
from apexrank.metrics.measure import find_measure
from apexrank.metrics.top import auc
from apexrank.rankers.push import PNormPush
from apexrank.report.push_bounds import PushBound

if TYPE_CHECKING:
    import polars as pl


class RankedItem(NamedTuple):
    """A held-out row with its rank, its rank at p = 1, and how many places it rose from there."""

    rank: int
    name: str
    positive: bool
    base_rank: int
    change: int


class Verdict(NamedTuple):
    """``kind`` is "helps", "no difference", "hurts" or "no push"; ``text`` says it with numbers."""

    kind: str
    text: str


@dataclass(frozen=True, eq=False)
class PushComparison:
    """What `compare_pushes` found. Lists over p run in the order of ``ps``, of which the first is 1.

    Parameters
    ----------
    ps : tuple of float
        The powers, growing.
    chosen : int
        Number of the p with the best mean score in cross-validation on the training rows.
    scoring : str
        What was maximised there.
    decided_by : str
        The measure, one of ``measures``, whose difference is the verdict.
    alphas, cv_mean, cv_std : lists of float
        For each p the alpha that did best, with the mean and standard deviation of its score over the folds.
    rankers : list of PNormPush
        Fitted on all training rows.
    feature_names : list of str
        Names of the features.
    y, scores : arrays of shape (n_test,) and (n_ps, n_test)
        Which held-out rows are positive, and their scores.
    X, mean : arrays of shape (n_test, n_features) and (n_features,)
        Features of the held-out rows, and the means of the training rows.
    row_names : list of str
        Names of the held-out rows.
    measures, differences : dict of str to list
        Intervals on the held-out rows, and of the differences to p = 1 in the same draws; None for p = 1 itself.
    bound, bound_factor : list of PushBound, float
        What the worst-case bound asks for, and by how much each further unit of p multiplies it.
    advice : str
        What to take from the bound.
    n_train, n_train_positives, n_test, n_test_positives : int
        Numbers of rows.
    notes : list of str
        What was assumed, left out or not converged.
    seconds : dict of str to float
        Time of each stage and the ``total``.
    top, confidence, n_resamples
        Length of the top list, confidence of the intervals, and how often rows were drawn.

    Examples
    --------
    >>> from apexrank.datasets import make_push_example
    >>> from apexrank.report import compare_pushes
    >>> X, y = make_push_example(return_X_y=True)
    >>> found = compare_pushes(X, y, ps=(1, 8), scoring="precision_at_10", n_resamples=100)
    >>> found.verdict.kind, found.ps[found.chosen]
    ('helps', 8.0)
    >>> found.top_items(1, 1)[0].positive
    True
    """

    ps: tuple[float, ...]
    chosen: int
    scoring: str
    decided_by: str
    alphas: list[float]
    cv_mean: list[float]
    cv_std: list[float]
    rankers: list[PNormPush]
    feature_names: list[str]
    y: np.ndarray
    scores: np.ndarray
    X: np.ndarray
    mean: np.ndarray
    row_names: list[str]
    measures: dict[str, list[Interval]]
    differences: dict[str, list[Interval | None]]
    bound: list[PushBound]
    bound_factor: float
    advice: str
    n_train: int
    n_train_positives: int
    n_test: int
    n_test_positives: int
    notes: list[str]
    seconds: dict[str, float]
    top: int
    confidence: float
    n_resamples: int
    title: str = "Push comparison"

    @property
    def coef(self) -> np.ndarray:
        """Coefficients, shape (n_ps, n_features)."""
        return np.array([ranker.coef_[0] for ranker in self.rankers])

    @cached_property
    def ranks(self) -> np.ndarray:
        """Rank of each held-out row, 1 at the top, shape (n_ps, n_test); tied rows keep the order of the input."""
        ranks = np.empty(self.scores.shape, dtype=np.int64)
        np.put_along_axis(ranks, self._orders, np.arange(1, self.n_test + 1)[None, :], axis=1)
        return ranks

    @cached_property
    def _orders(self) -> np.ndarray:
        return np.argsort(-self.scores, axis=1, kind="stable")

    def top_items(self, i: int, k: int | None = None) -> list[RankedItem]:
        """First ``k`` held-out rows (``top`` by default) at p number ``i``."""
        return [self._item(i, row) for row in self._orders[i, : self._length(k)]]

    def fallen(self, i: int, k: int | None = None) -> list[RankedItem]:
        """Rows among the first ``k`` at p = 1 but not at p number ``i``, with the ranks they have there."""
        k = self._length(k)
        return [self._item(i, row) for row in self._orders[0, :k] if self.ranks[i, row] > k]

    def explanations(self, i: int, k: int | None = None, n: int = 3) -> list[list[str]]:
        """The ``n`` features that lift each of the first ``k`` rows most above the mean training row.

        Each is a text such as ``amount +0.83``, the part ``coef_j·(x_j − mean_j)`` of the score; fewer when fewer lift.
        """
        parts = (self.X[self._orders[i, : self._length(k)]] - self.mean) * self.coef[i]
        best = np.argsort(-parts, axis=1, kind="stable")[:, :n]
        return [
            [f"{self.feature_names[j]} {signed(lifts[j])}" for j in row if lifts[j] > 0]
            for row, lifts in zip(best, parts, strict=True)
        ]

    def _length(self, k: int | None) -> int:
        return self.top if k is None else k

    def _item(self, i: int, row: int) -> RankedItem:
        rank, base = int(self.ranks[i, row]), int(self.ranks[0, row])
        return RankedItem(rank, self.row_names[row], bool(self.y[row]), base, base - rank)

    @property
    def verdict(self) -> Verdict:
        """Whether a push helps: the difference at the p that the training rows chose, so it is not biased by choosing.

        It helps or hurts where the interval of the difference of the measure ``decided_by`` leaves out 0.
        """
        if self.chosen == 0:
            return Verdict("no push", self._no_push())
        measure, gap = find_measure(self.decided_by), self.differences[self.decided_by][self.chosen]
        assert gap is not None
        sign = 1 if measure.family.greater_is_better else -1
        better, worse = min(sign * gap.low, sign * gap.high) > 0, max(sign * gap.low, sign * gap.high) < 0
        kind = "helps" if better else "hurts" if worse else "no difference"
        opening = {"no difference": "A push makes no clear difference"}.get(kind, f"A push {kind}")
        values = self.measures[self.decided_by]
        p = shown(self.ps[self.chosen])
        spread = (
            f"{100 * self.confidence:g} % interval {gap.low:+.3f} to {gap.high:+.3f}"
            if isfinite(gap.low)
            else "too few held-out positives for an interval"
        )
        return Verdict(
            kind,
            f"{opening}: with p = {p} the {measure.label} of the held-out rows is {values[self.chosen].value:.3f} "
            f"against {values[0].value:.3f} with p = 1 (difference {gap.value:+.3f}, {spread}). "
            f"{self._found(self.chosen)} of their first {self.top} are positive against {self._found(0)}; "
            f"AUC goes from {self._auc(0):.3f} to {self._auc(self.chosen):.3f}.",
        )

    def _no_push(self) -> str:
        tail = f"{self._found(0)} of the first {self.top} held-out rows are positive, and AUC is {self._auc(0):.3f}."
        if len(self.ps) == 1:
            return f"No push: p = 1 is the only one tried. {tail}"
        second = 1 + int(np.nanargmax(self.cv_mean[1:]))
        known = f"{self.scoring} in cross-validation on the training rows"
        if self.cv_mean[second] == self.cv_mean[0]:
            return f"No push: none has a better {known} than p = 1, {self.cv_mean[0]:.3f}. {tail}"
        return (
            f"No push: p = 1 has the best {known}, {self.cv_mean[0]:.3f} against {self.cv_mean[second]:.3f} "
            f"with p = {shown(self.ps[second])}. {tail}"
        )

    def _found(self, i: int) -> int:
        return int(self.y[self._orders[i, : self.top]].sum())

    def _auc(self, i: int) -> float:
        return auc(self.y, self.scores[i])

    def table(self) -> pl.DataFrame:
        """Tidy table: a row for each p and measure, with the difference to p = 1 (null there)."""
        import polars as pl

        columns = ("p", "measure", "value", "low", "high", "difference", "difference_low", "difference_high")
        rows = [
            (p, name, *own[:3], *((None,) * 3 if gap is None else gap[:3]))
            for name in self.measures
            for p, own, gap in zip(self.ps, self.measures[name], self.differences[name], strict=True)
        ]
        numbers = {name: pl.Float64 for name in columns if name != "measure"}
        return pl.DataFrame(rows, schema=columns, schema_overrides=numbers, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """Everything but the rows, as plain lists and numbers for JSON; an infinite p is the text "inf"."""
        ps = [plain(p) for p in self.ps]
        table = [{**row, "p": plain(row["p"])} for row in self.table().iter_rows(named=True)]
        return {
            "title": self.title,
            "chosen_p": ps[self.chosen],
            "verdict": self.verdict._asdict(),
            "scoring": self.scoring,
            "decided_by": self.decided_by,
            "cross_validation": [
                {"p": p, "alpha": alpha, "mean": mean, "std": std}
                for p, alpha, mean, std in zip(ps, self.alphas, self.cv_mean, self.cv_std, strict=True)
            ],
            "measures": table,
            "confidence": self.confidence,
            "n_resamples": self.n_resamples,
            "coefficients": [
                {"p": p, **dict(zip(self.feature_names, row.tolist(), strict=True))}
                for p, row in zip(ps, self.coef, strict=True)
            ],
            "top": [item._asdict() for item in self.top_items(self.chosen)],
            "fallen": [item._asdict() for item in self.fallen(self.chosen)],
            "bound": [{**row._asdict(), "p": plain(row.p)} for row in self.bound],
            "bound_factor": self.bound_factor,
            "advice": self.advice,
            "n_train": self.n_train,
            "n_train_positives": self.n_train_positives,
            "n_test": self.n_test,
            "n_test_positives": self.n_test_positives,
            "notes": self.notes,
            "seconds": self.seconds,
        }


def shown(p: float) -> str:
    return f"{p:g}"


def plain(p: float) -> float | str:
    return p if isfinite(p) else "inf"
