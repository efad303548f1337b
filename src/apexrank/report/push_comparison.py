"""What a comparison of pushes found: numbers, lists and a verdict; a page is made of them elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from apexrank.metrics import precision_at
from apexrank.metrics.confidence import Interval
from apexrank.metrics.roc import auc
from apexrank.rankers.push import PNormPush
from apexrank.report.push_bounds import PushBound
from apexrank.report.push_verdict import Verdict, verdict_of

if TYPE_CHECKING:
    import polars as pl


class RankedItem(NamedTuple):
    """A held-out row with its rank, its rank at p = 1, and how many places it rose from there."""

    rank: int
    name: str
    positive: bool
    base_rank: int
    change: int


class Lift(NamedTuple):
    """A feature that lifts a row above the mean row, and its share of all that does."""

    name: str
    share: float


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
        What it was chosen by.
    decided_by : str
        The measure, one of ``measures``, whose difference is the verdict.
    alphas : list of float
        For each p the alpha that did best.
    cv_scores : array of shape (n_ps, folds)
        What ``scoring`` was in each fold, with its own sign: of a loss the smallest is best.
    larger_is_better : bool
        Whether the largest of them is the best.
    places : int or None
        How many first places of all folds the scoring looks at; None where it looks at whole lists.
    rankers : list of PNormPush
        Fitted on all training rows.
    collapsed : list of bool
        Which of them have no minimum but 0, as p = inf may; such a p is never chosen.
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
    caveats : tuple of str
        What speaks against believing any of it, such as test rows that are training rows.
    left_out : str
        How many columns of a table were not used.

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
    cv_scores: np.ndarray
    larger_is_better: bool
    places: int | None
    rankers: list[PNormPush]
    collapsed: list[bool]
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
    caveats: tuple[str, ...] = ()
    left_out: str = ""

    @property
    def cv_mean(self) -> list[float]:
        """Mean over the folds at each p."""
        return self.cv_scores.mean(axis=1).tolist()

    @property
    def cv_std(self) -> list[float]:
        """Standard deviation over the folds at each p."""
        return self.cv_scores.std(axis=1).tolist()

    def converged(self, i: int) -> bool:
        """Whether the fit of p number ``i`` reached its minimum, so that its list is exact."""
        return bool(self.rankers[i].converged_) or self.collapsed[i]

    def found(self, i: int) -> float:
        """How many of the first ``top`` held-out rows are positive at p number ``i``; of tied rows their mean."""
        return self.top * precision_at(self.y, self.scores[i], k=self.top)

    def auc(self, i: int) -> float:
        """AUC of the held-out rows at p number ``i``."""
        return auc(self.y, self.scores[i])

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

    def lifts(self, i: int, k: int | None = None, n: int = 3) -> list[list[Lift]]:
        """The ``n`` features that lift each of the first ``k`` rows most above the mean training row.

        A feature's part of the score is ``coef_j·(x_j − mean_j)``. Its share is that of the sum of all parts above 0;
        the size of scores itself means nothing. Fewer where fewer lift.
        """
        parts = (self.X[self._orders[i, : self._length(k)]] - self.mean) * self.coef[i]
        best = np.argsort(-parts, axis=1, kind="stable")[:, :n]
        sums = np.maximum(parts, 0).sum(axis=1)
        return [
            [Lift(self.feature_names[j], float(row[j] / total)) for j in most if row[j] > 0]
            for most, row, total in zip(best, parts, sums, strict=True)
        ]

    def explanations(self, i: int, k: int | None = None, n: int = 3) -> list[list[str]]:
        """What `lifts` gives as texts such as ``amount 62 %``."""
        return [[f"{lift.name} {share_text(lift.share)}" for lift in lifts] for lifts in self.lifts(i, k, n)]

    def _length(self, k: int | None) -> int:
        return self.top if k is None else k

    def _item(self, i: int, row: int) -> RankedItem:
        rank, base = int(self.ranks[i, row]), int(self.ranks[0, row])
        return RankedItem(rank, self.row_names[row], bool(self.y[row]), base, base - rank)

    @property
    def verdict(self) -> Verdict:
        """Whether a push helps, by the p that the training rows chose, on the held-out rows."""
        return verdict_of(self)

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
                {"p": p, "alpha": alpha, "mean": mean, "std": std, "folds": folds}
                for p, alpha, mean, std, folds in zip(
                    ps, self.alphas, self.cv_mean, self.cv_std, self.cv_scores.tolist(), strict=True
                )
            ],
            "places": self.places,
            "fits": [
                {"p": p, "converged": self.converged(i), "collapsed": self.collapsed[i]}
                for i, p in enumerate(ps)
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
            "left_out": self.left_out,
            "notes": self.notes,
            "seconds": self.seconds,
        }


def share_text(share: float) -> str:
    """A share in whole percent.

    Examples
    --------
    >>> share_text(0.617), share_text(0.001)
    ('62 %', '< 1 %')
    """
    return "< 1 %" if share < 0.005 else f"{100 * share:.0f} %"


def plain(p: float) -> float | str:
    """A power for JSON."""
    return p if isfinite(p) else "inf"
