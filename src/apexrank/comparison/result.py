"""Result of a comparison: measures with intervals, a verdict, and the ranked list of the best ranker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit

from apexrank.comparison.candidates import Candidate, Setting
from apexrank.comparison.trials import MEASURES, SHARES, Top, corrected_interval
from apexrank.metrics.confidence import Interval, interval_of_draws
from apexrank.rankers.additive import Additive
from apexrank.rankers.curves_and_trees import CurvesAndTrees
from apexrank.rankers.logistic import LogisticRanker
from apexrank.rankers.trees import TreeRanker

if TYPE_CHECKING:
    import polars as pl

    from apexrank.comparison.profile import ColumnProfile, Explained
    from apexrank.plot.effects import Effects

FEW = 20  # fewest positives, negatives or top places among the test rows for a claim
BASELINES = ("logistic regression", "boosted trees")


class Part(NamedTuple):
    """Part of the list: number of rows, share of positives, and mean probability if scores are log-odds."""

    rows: int
    positive: float
    predicted: float | None


class Verdict(NamedTuple):
    """Recommended ranker with its justification.

    ``kind`` is "better" if the best ranker is clearly better at the top than a baseline, "no difference" if it is not,
    or "too few to tell". ``text`` states it in two sentences with numbers; ``caveats`` are reasons to doubt it.
    ``costs`` describes what each ranker costs: loss of AUC, size of the model, and its readable form.
    """

    kind: str
    text: str
    caveats: tuple[str, ...] = ()
    costs: str = ""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Result of `compare_rankers` or `compare_table`; lists of rankers are in the order of ``candidates``.

    Parameters
    ----------
    candidates : list of Candidate
        Compared rankers.
    settings : list of dict
        Setting of each ranker that did best on all splits, with which its model is fitted.
    sizes : list of int or None
        Number of parameters of each model (`model_size`).
    top : Top
        Definition of the top of the list.
    values, gains : arrays of shape (n_candidates, n_splits, n_measures) and (n_candidates, n_splits, n_shares)
        Measures, and shares of the positives found in the first ``SHARES`` of the rows, on the test rows of each
        split, with the setting that did best on the other splits.
    draws : array of shape (n_candidates, n_draws, n_measures + n_shares), optional
        Values and gains of bootstrap samples of the test rows, if there is a separate test set.
    ratio : float
        Ratio of test rows to training rows of a split.
    y, scores, weight : arrays of shape (n,), (n_candidates, n) and (n,)
        Test rows, their scores by models not fitted on them, and their weights, if any.
    rows : array of int
        Row numbers of the test rows in the data; the rows of a separate test set follow the training rows.
    row_names, feature_names : list of str
        Names of the test rows and of the features.
    n_train : int
        Average number of training rows of a split.
    how : str
        Description of the splits.
    model : estimator or TableRanker
        Recommended ranker, fitted on all rows.
    notes, caveats, left_out
        Assumptions and actions; reasons to doubt the result; unused columns with the reason.
    columns, first, sample
        Profile of the used columns; values and drivers of the first rows of the list, and of randomly drawn rows
        (`apexrank.comparison.profile`).
    effects : function, optional
        Computes the effects of the columns in the additive ranker (`additive`), with their bands, for the report.
    seconds : float
        Duration of the comparison.
    positive : str
        Description of a positive row, such as "fraud = 1".

    Examples
    --------
    >>> from apexrank.comparison import Logistic, Trees, compare_rankers
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = compare_rankers(X, y == 0, candidates=[Logistic(), Trees(rounds=10)], repeats=1)
    >>> found.verdict.kind, found.names[found.recommended]
    ('no difference', 'logistic regression')
    """

    candidates: list[Candidate]
    settings: list[Setting]
    sizes: list[int | None]
    top: Top
    values: np.ndarray
    gains: np.ndarray
    ratio: float
    y: np.ndarray
    scores: np.ndarray
    rows: np.ndarray
    row_names: list[str]
    feature_names: list[str]
    n_train: int
    how: str
    confidence: float = 0.95
    draws: np.ndarray | None = None
    weight: np.ndarray | None = None
    model: Any = None
    notes: list[str] = field(default_factory=list)
    caveats: tuple[str, ...] = ()
    left_out: list[tuple[str, str]] = field(default_factory=list)
    columns: list[ColumnProfile] = field(default_factory=list)
    first: Explained | None = None
    sample: Explained | None = None
    effects: Callable[[], Effects] | None = None
    seconds: float = 0.0
    positive: str = ""
    title: str = "Which ranker?"

    @property
    def names(self) -> list[str]:
        """Names of the rankers."""
        return [candidate.name for candidate in self.candidates]

    @property
    def n_positives(self) -> int:
        """Number of positives among the test rows."""
        return int(self.y.sum())

    def value(self, i: int, measure: str = "top") -> Interval:
        """Mean of a measure over the splits, with its confidence interval."""
        return self._interval(self._row(i, measure), 1)

    def difference(self, i: int, j: int, measure: str = "top") -> Interval:
        """Mean difference between rankers ``i`` and ``j``, with an interval that holds for both baselines at once."""
        rows = [a - b for a, b in zip(self._row(i, measure), self._row(j, measure), strict=True)]
        return self._interval(rows, min(len(BASELINES), max(1, len(self.candidates) - 1)))

    def _row(self, i: int, measure: str) -> list[np.ndarray]:
        column = MEASURES.index(measure)
        return [self.values[i, :, column], *([] if self.draws is None else [self.draws[i, :, column]])]

    def _interval(self, rows: list[np.ndarray], comparisons: int) -> Interval:
        if self.draws is None:
            return corrected_interval(rows[0], self.ratio, self.confidence, comparisons)
        level = 1 - (1 - self.confidence) / comparisons
        found = interval_of_draws(float(rows[0].mean()), rows[1], level, "percentile", len(self.y))
        return found._replace(confidence=self.confidence)

    @cached_property
    def best(self) -> int:
        """Ranker with the best mean at the top; ties are broken by average precision."""
        means = self.values.mean(axis=1)
        return max(range(len(means)), key=lambda i: (round(float(means[i, 0]), 9), means[i, 1]))

    @cached_property
    def recommended(self) -> int:
        """First ranker that is not clearly worse than the best, at the top or by average precision.

        Candidates are listed from the most readable.
        """
        if self.too_few:
            return 0
        measures = MEASURES[:2]
        beaten = (any(self.difference(self.best, i, m).low > 0 for m in measures) for i in range(self.best))
        return next((i for i, clearly in enumerate(beaten) if not clearly), self.best)

    @cached_property
    def additive(self) -> int | None:
        """Additive ranker: the recommended one if it is additive, else the first additive one, or None."""
        order = dict.fromkeys([self.recommended, *range(len(self.candidates))])
        are = (i for i in order if isinstance(self.candidates[i].estimator(self.settings[i]), Additive))
        return next(are, None)

    @property
    def too_few(self) -> str | None:
        """Reason why no claim is possible, or None."""
        n, positives = len(self.y), self.n_positives
        return too_few(positives, n - positives, self.top.places(n, positives))

    @property
    def verdict(self) -> Verdict:
        """Verdict: the ranker with the most positives on top, its margin, and the reliability of the finding."""
        return judge(self)

    def standing(self, i: int) -> np.ndarray:
        """Row numbers of the test rows in the order of ranker ``i``, best first; ties keep their order."""
        return np.argsort(-self.scores[i], kind="stable")

    def gain(self, i: int) -> list[Interval]:
        """Share of the positives found in the first ``SHARES`` of the rows, with intervals over the splits."""
        if self.draws is None:
            return [corrected_interval(column, self.ratio, self.confidence) for column in self.gains[i].T]
        columns = zip(self.gains[i].T, self.draws[i, :, len(MEASURES) :].T, strict=True)
        return [self._interval(list(pair), 1) for pair in columns]

    @property
    def base(self) -> int:
        """Baseline ranker: logistic regression, or the first one."""
        return self.names.index(BASELINES[0]) if BASELINES[0] in self.names else 0

    @property
    def base_rate(self) -> float:
        """Share of positives among the test rows."""
        return float(np.average(self.y, weights=self.weight))

    @property
    def measured(self) -> str:
        """Description of the evaluation in one sentence."""
        if self.draws is not None:
            return f"Trained on {self.n_train:,} rows, evaluated on {len(self.y):,}."
        each = round(self.n_train * self.ratio)
        how = self.how[0].upper() + self.how[1:]
        return f"{how}: trained on {self.n_train:,} rows, evaluated on {each:,} each time."

    def parts(self, i: int, number: int = 10) -> list[Part]:
        """Divide the list of ranker ``i`` into parts of about equal length, from the top."""
        chosen = self.candidates[i].estimator(self.settings[i])
        log_odds = isinstance(chosen, LogisticRanker | TreeRanker | CurvesAndTrees)
        order = self.standing(i)
        weight = np.ones(len(order)) if self.weight is None else self.weight[order]
        y, scores = self.y[order], self.scores[i, order]
        part = (number * (np.cumsum(weight) - weight / 2) / weight.sum()).astype(int)
        found = []
        for rows in (np.flatnonzero((part == k) & (weight > 0)) for k in range(number)):
            if len(rows):
                mean = partial(np.average, weights=weight[rows])
                predicted = float(mean(expit(scores[rows]))) if log_odds else None
                found.append(Part(len(rows), float(mean(y[rows])), predicted))
        return found

    def table(self) -> pl.DataFrame:
        """Return a tidy table: a row for each ranker and measure, with the difference from logistic regression."""
        import polars as pl

        base, rows = self.base, []
        for i, name in enumerate(self.names):
            for measure in MEASURES:
                gap = (None,) * 3 if i == base else self.difference(i, base, measure)[:3]
                rows.append((name, measure, *self.value(i, measure)[:3], *gap))
        numbers = ["value", "low", "high", "difference", "difference_low", "difference_high"]
        kinds = dict.fromkeys(numbers, pl.Float64)
        schema = ["ranker", "measure", *numbers]
        return pl.DataFrame(rows, schema=schema, schema_overrides=kinds, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the rows as plain lists and numbers for JSON."""
        chosen = zip(self.names, self.settings, self.sizes, strict=True)
        return {
            "verdict": self.verdict._asdict(),
            "best": self.names[self.best],
            "recommended": self.names[self.recommended],
            "top": {"share": self.top.share, "fpr": self.top.fpr, "measure": self.top.label},
            "rows": len(self.y),
            "positives": self.n_positives,
            "splits": self.how,
            "confidence": self.confidence,
            "rankers": [
                {"ranker": name, "setting": dict(own), "numbers": size} for name, own, size in chosen
            ],
            "measures": self.table().to_dicts(),
            "gains": [
                {"ranker": name, "rows_read": SHARES.tolist(), "found": self.gains[i].mean(axis=0).tolist()}
                for i, name in enumerate(self.names)
            ],
            "left_out": [{"column": name, "reason": reason} for name, reason in self.left_out],
            "notes": self.notes,
            "seconds": self.seconds,
        }


def too_few(positives: float, negatives: float, places: float) -> str | None:
    """Describe why there are too few rows, or return None."""
    for number, what in (
        (positives, "positive rows"),
        (negatives, "negative rows"),
        (places, "rows at the top"),
    ):
        if number < FEW:
            return f"only {number:.0f} {what}; at least {FEW} are needed"
    return None


# ---------------------------------------------------------------- verdict


def judge(found: Comparison) -> Verdict:
    """Compare the best ranker with the baselines and recommend one."""
    names, best, few = found.names, found.best, found.too_few
    # for user-defined candidates, the first one is the baseline
    bases = [names.index(name) for name in BASELINES if name in names] or [0]
    gaps = {base: found.difference(best, base) for base in bases if base != best}
    against = [
        f"with {names[base]} {_percent(found, base)} ({points(gap)}{'' if gap.low > 0 else ', possibly by chance'})"
        for base, gap in gaps.items()
    ]
    opening = f"With {names[best]} {_percent(found, best)} {_of_what(found)}"
    first = ", ".join([opening, *against]) + "."
    if few is not None:
        return Verdict("too few to tell", f"Too few to tell ({few}). {first}", found.caveats, _costs(found))
    kind = "better" if any(gap.low > 0 for gap in gaps.values()) else "no difference"
    return Verdict(kind, f"{first} {_advice(found)}", found.caveats, _costs(found))


def _costs(found: Comparison) -> str:
    """Describe the costs of each ranker: loss of AUC, number of parameters, and readable form."""
    aucs = [found.value(i, "auc").value for i in range(len(found.names))]
    parts = []
    for candidate, auc, size in zip(found.candidates, aucs, found.sizes, strict=True):
        known = [None if size is None else f"{size:,}", candidate.form]
        parts.append(", ".join([f"{candidate.name} {max(aucs) - auc:.3f}", *filter(None, known)]))
    return f"Costs (AUC below the best, numbers in the model, form): {'; '.join(parts)}."


def _percent(found: Comparison, i: int) -> str:
    return f"{100 * found.value(i).value:.0f} %"


def _of_what(found: Comparison) -> str:
    if found.top.share is None:
        return f"of the positives are found at {100 * (found.top.fpr or 0):.3g} % false alarms"
    return f"of the {found.top.part}{' of the list' * (found.top.rows is None)} are positive"


def points(gap: Interval) -> str:
    """Format a difference in points with its interval.

    Examples
    --------
    >>> points(Interval(0.07, 0.021, 0.119, 0.025, 0.95, 10))
    '+7 points, 95 % interval +2 to +12'
    """
    value, low, high = (f"{round(100 * x) if x == x else 0:+d}" for x in gap[:3])
    own = f"{value} point{'s' * (value not in ('+1', '-1'))}"
    return own if gap.low != gap.low else f"{own}, {100 * gap.confidence:.3g} % interval {low} to {high}"


def _advice(found: Comparison) -> str:
    own, best = found.recommended, found.best
    take = f"Take {found.names[own]}{in_words(found.settings[own])}"
    if own != best:
        share = "" if found.names[own] in BASELINES else f" ({_percent(found, own)})"
        return f"{take}{share}: it is simpler, and not clearly behind {found.names[best]}."
    near = [i for i in range(best) if not found.difference(best, i).low > 0]
    if not near:
        return f"{take}."
    first = max(near, key=lambda i: found.value(i, "average_precision").value)
    values = [found.value(i, "average_precision").value for i in (best, first)]
    return (
        f"{take}: at the top {found.names[first]} may be as good, over the whole list it is not (average precision "
        "{:.3f} against {:.3f}).".format(*values)
    )


def in_words(setting: Mapping[str, Any]) -> str:
    """Format a setting for display after a name.

    Examples
    --------
    >>> in_words({"p": 4.0, "alpha": 0.001}), in_words({"p": None, "alpha": 4}), in_words({})
    (' (p = 4, alpha = 0.001)', ' (alpha = 4)', '')
    """
    parts = [f"{name} = {value:g}" for name, value in setting.items() if value is not None]
    return f" ({', '.join(parts)})" if parts else ""
