"""The result of comparing pushes: numbers, lists, bounds and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf, isfinite, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from apexrank.bounds import failure_log_probability, log_covering_linear, negatives_needed
from apexrank.metrics import precision_at
from apexrank.metrics.confidence import Interval
from apexrank.metrics.evaluation import find_measure
from apexrank.metrics.roc import auc
from apexrank.rankers.push import PNormPush
from apexrank.report.page import few_digits, json_power, level, number, plural, whole_percent

if TYPE_CHECKING:
    import polars as pl

FEW = 10  # rows of a class that are held out, or places that cross-validation looks at
# Rankers of norm 1 on standardised features, whose rows have the norm sqrt(n_features) in the mean.
EPSILON, DELTA, THETA = 0.1, 0.05, 0.1
# attributes that are plain values already
_PLAIN = (
    *("title", "scoring", "decided_by", "places", "confidence", "n_resamples", "bound_factor", "advice"),
    *("n_train", "n_train_positives", "n_test", "n_test_positives", "left_out", "notes", "seconds"),
)


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


class PushVerdict(NamedTuple):
    """Verdict on whether a push helps.

    ``kind`` is one of

    - "helps", "hurts": a push was chosen, and on the held-out rows the interval of its difference to p = 1 leaves
      out 0;
    - "no difference": a push was chosen and that interval has 0 in it, or p = 1 was chosen and is not better by more
      than one standard error over the folds;
    - "no push": p = 1 was chosen, and is better than every push by more than that;
    - "too few to tell": fewer than 10 positives or negatives are held out, or cross-validation looks at fewer than 10
      places in all.

    ``text`` says it with numbers, and each of ``caveats`` is a reason to doubt it.
    """

    kind: str
    text: str
    caveats: tuple[str, ...] = ()


class PushBound(NamedTuple):
    """Negatives that the bound of JMLR 2009, Theorem 3, asks for at p, and their ratio to those at p = 1."""

    p: float
    negatives: float
    ratio: float


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

    def direction(self, measure: str, i: int) -> int:
        """1 where p number ``i`` is clearly better than p = 1, -1 where it is worse, 0 where nobody can tell."""
        gap = self.differences[measure][i]
        if gap is None:
            return 0
        sign = 1 if find_measure(measure).family.greater_is_better else -1
        return sign * (int(gap.low > 0) - int(gap.high < 0))

    @property
    def coef(self) -> np.ndarray:
        """Coefficients, shape (n_ps, n_features)."""
        return np.array([ranker.coef_[0] for ranker in self.rankers])

    @cached_property
    def ranks(self) -> np.ndarray:
        """Rank of each held-out row, 1 at the top, shape (n_ps, n_test); tied rows keep the order of the input."""
        return np.argsort(self._orders, axis=1) + 1

    @cached_property
    def _orders(self) -> np.ndarray:
        return np.argsort(-self.scores, axis=1, kind="stable")

    def top_items(self, i: int, k: int | None = None) -> list[RankedItem]:
        """First ``k`` held-out rows (``top`` by default) at p number ``i``."""
        return [self._item(i, row) for row in self._orders[i, : self.top if k is None else k]]

    def fallen(self, i: int, k: int | None = None) -> list[RankedItem]:
        """Rows among the first ``k`` at p = 1 but not at p number ``i``, with the ranks they have there."""
        k = self.top if k is None else k
        return [self._item(i, row) for row in self._orders[0, :k] if self.ranks[i, row] > k]

    def lifts(self, i: int, k: int | None = None, n: int = 3) -> list[list[Lift]]:
        """The ``n`` features that lift each of the first ``k`` rows most above the mean training row.

        A feature's part of the score is ``coef_j·(x_j − mean_j)``. Its share is that of the sum of all parts above 0;
        the size of scores itself means nothing. Fewer where fewer lift.
        """
        parts = (self.X[self._orders[i, : self.top if k is None else k]] - self.mean) * self.coef[i]
        best = np.argsort(-parts, axis=1, kind="stable")[:, :n]
        sums = np.maximum(parts, 0).sum(axis=1)
        return [
            [Lift(self.feature_names[j], float(row[j] / total)) for j in most if row[j] > 0]
            for most, row, total in zip(best, parts, sums, strict=True)
        ]

    def explanations(self, i: int, k: int | None = None, n: int = 3) -> list[list[str]]:
        """What `lifts` gives as texts such as ``amount 62 %``."""
        return [
            [f"{lift.name} {whole_percent(lift.share)}" for lift in lifts] for lifts in self.lifts(i, k, n)
        ]

    def _item(self, i: int, row: int) -> RankedItem:
        rank, base = int(self.ranks[i, row]), int(self.ranks[0, row])
        return RankedItem(rank, self.row_names[row], bool(self.y[row]), base, base - rank)

    @property
    def verdict(self) -> PushVerdict:
        """Whether a push helps, by the p that the training rows chose, on the held-out rows."""
        return judge_push(self)

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
        ps = [json_power(p) for p in self.ps]
        folds = zip(ps, self.alphas, self.cv_mean, self.cv_std, self.cv_scores.tolist(), strict=True)
        return {
            "chosen_p": ps[self.chosen],
            "verdict": self.verdict._asdict(),
            **{name: getattr(self, name) for name in _PLAIN},
            "cross_validation": [
                dict(zip(("p", "alpha", "mean", "std", "folds"), row, strict=True)) for row in folds
            ],
            "fits": [
                {"p": p, "converged": self.converged(i), "collapsed": self.collapsed[i]}
                for i, p in enumerate(ps)
            ],
            "measures": [{**row, "p": json_power(row["p"])} for row in self.table().iter_rows(named=True)],
            "coefficients": [
                {"p": p, **dict(zip(self.feature_names, row.tolist(), strict=True))}
                for p, row in zip(ps, self.coef, strict=True)
            ],
            "top": [item._asdict() for item in self.top_items(self.chosen)],
            "fallen": [item._asdict() for item in self.fallen(self.chosen)],
            "bound": [{**row._asdict(), "p": json_power(row.p)} for row in self.bound],
        }


def judge_push(found: PushComparison) -> PushVerdict:
    """Judge the p that the training rows chose, so that the verdict is not biased by choosing."""
    kind, opening, body = _no_push(found) if found.chosen == 0 else _push(found)
    few = _too_few(found)
    if few is not None:
        kind, opening = "too few to tell", f"Too few to tell ({few})"
    caveats = list(found.caveats)
    if not found.converged(found.chosen):
        caveats.append(f"The fit of p = {found.ps[found.chosen]:g} did not converge.")
    if not isfinite(found.measures[found.decided_by][0].low):
        caveats.append("There are too few held-out rows of one class for intervals, so none is shown.")
    return PushVerdict(kind, f"{opening}: {body}", tuple(caveats))


def _too_few(found: PushComparison) -> str | None:
    negatives = found.n_test - found.n_test_positives
    for word, rows in (("positive", found.n_test_positives), ("negative", negatives)):
        if rows < FEW:
            return plural(f"only # held-out [row is|rows are] {word}", rows)
    if found.places is not None and found.places < FEW and len(found.ps) > 1:
        return plural("cross-validation looks at only # [place|places] in all folds", found.places)
    return None


def _push(found: PushComparison) -> tuple[str, str, str]:
    chosen = found.chosen
    kind = {1: "helps", -1: "hurts", 0: "no difference"}[found.direction(found.decided_by, chosen)]
    opening = "A push makes no clear difference" if kind == "no difference" else f"A push {kind}"
    body = (
        f"with p = {found.ps[chosen]:g} {_held_out(found, chosen)}. {few_digits(found.found(chosen))} of their first "
        f"{found.top} are positive against {few_digits(found.found(0))}; AUC goes from {found.auc(0):.3f} to "
        f"{found.auc(chosen):.3f}."
    )
    return kind, opening, body


def _held_out(found: PushComparison, i: int) -> str:
    """The deciding measure of the held-out rows at p number i against p = 1."""
    name = found.decided_by
    values, gap = found.measures[name], found.differences[name][i]
    assert gap is not None
    spread = "too few held-out rows of one class for an interval"
    if isfinite(gap.low):
        spread = f"{level(gap.confidence)} interval {gap.low:+.3f} to {gap.high:+.3f}"
    return (
        f"the {find_measure(name).label} of the held-out rows is {values[i].value:.3f} against "
        f"{values[0].value:.3f} with p = 1 (difference {gap.value:+.3f}, {spread})"
    )


def _no_push(found: PushComparison) -> tuple[str, str, str]:
    tail = (
        f"{few_digits(found.found(0))} of the first {found.top} held-out rows are positive with p = 1, and AUC is "
        f"{found.auc(0):.3f}."
    )
    if len(found.ps) == 1:
        return "no push", "No push", f"p = 1 is the only one tried. {tail}"
    sign = 1 if found.larger_is_better else -1
    pushes = sign * np.array(found.cv_mean)
    pushes[[True, *found.collapsed[1:]]] = np.nan
    if np.isnan(pushes).all():
        return "no push", "No push", f"no push that was tried could be chosen. {tail}"
    second = int(np.nanargmax(pushes))
    gains = sign * (found.cv_scores[second] - found.cv_scores[0])
    error = float(gains.std(ddof=1)) / sqrt(len(gains))
    base, best = found.cv_mean[0], found.cv_mean[second]
    places = "" if found.places is None else f" with {found.places:,} places in all"
    numbers = (
        f"{found.scoring} is {base:.3f} with p = 1 and {best:.3f} with p = {found.ps[second]:g}, the best push "
        f"(difference {best - base:+.3f}, standard error {error:.3f} over {len(gains)} folds{places})"
    )
    rest = f"That p was not chosen; with it {_held_out(found, second)}. {tail}"
    # where only one fold differs the two are equal, up to rounding
    if -gains.mean() > error * (1 + 1e-9):
        body = f"p = 1 does best in cross-validation on the training rows, where {numbers}. {rest}"
        return "no push", "No push", body
    body = (
        "cross-validation on the training rows cannot tell p = 1 from a push, and p = 1 is the simpler one: "
        f"{numbers}. {rest}"
    )
    return "no difference", "No clear difference", body


def push_bounds(
    ps: Sequence[float], n_features: int, r_min: float, n_positives: int, n_negatives: int
) -> tuple[list[PushBound], float, str]:
    """Sample sizes of the bound of JMLR 2009, Theorem 3, at each p, their growth per unit of p, and advice.

    The class is that of rankers of norm 1 on standardised features, ``ε = 0.1``, ``δ = 0.05``, ``θ = 0.1``; ``r_min``
    is one minus the AUC at p = 1. The counts are worst cases. Their ratio, ``max{R_min, ε/4}^{−2(p−1)}``, does not
    depend on the class.

    Examples
    --------
    >>> bound, factor, _ = push_bounds([1, 2, float("inf")], 10, 0.1, 100, 1000)
    >>> [round(row.ratio) if row.p < 3 else row.ratio for row in bound], round(factor)
    ([1, 100, inf], 100)
    """
    covering = partial(
        log_covering_linear, norm_bound=1.0, feature_bound=sqrt(n_features), n_features=n_features
    )
    needed = [
        negatives_needed(EPSILON, DELTA, THETA, p, covering, r_min=r_min) if p < inf else inf for p in ps
    ]
    factor = max(r_min, EPSILON / 4) ** -2
    # the exact ratio: that of the counts suffers from rounding to whole rows
    logs = [(p - 1) * log(factor) if p > 1 else 0.0 for p in ps]
    ratios = [float(np.exp(size)) if size < 700 else inf for size in logs]
    met = [
        p
        for p in ps
        if p < inf
        and failure_log_probability(EPSILON, THETA, p, n_positives, n_negatives, covering, r_min)
        <= log(DELTA)
    ]
    bound = [PushBound(*row) for row in zip(ps, needed, ratios, strict=True)]
    reach = f"enough up to p = {max(met):g}" if met else f"too few even for p = {bound[0].p:g}"
    advice = (
        f"Each unit of p multiplies the negatives that the worst-case bound asks for by {number(factor)} "
        f"({r_min:.1%} of the held-out pairs are misranked at p = 1). At p = 1 it asks for "
        f"{number(bound[0].negatives)} negatives; the training rows, {n_positives:,} positives and {n_negatives:,} "
        f"negatives, are {reach}. Its counts hold for every distribution and are far above what most data need: "
        "take from it that a harder push learns from fewer rows, so of two p that do equally well prefer the "
        "smaller, and trust a large one as far as its interval goes."
    )
    return bound, factor, advice
