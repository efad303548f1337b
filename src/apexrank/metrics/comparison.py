"""Rankers side by side on the same rows, with confidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._levels import Empty
from apexrank.metrics._rows import Rows, Ties, check_choice, check_rows
from apexrank.metrics.confidence import (
    Correction,
    Interval,
    Test,
    adjust_p_values,
    bootstrap_test,
    check_level,
    draw_rows,
    interval_of_draws,
    interval_of_mean,
    paired_test,
)
from apexrank.metrics.evaluation import Measure, find_measures

if TYPE_CHECKING:
    import polars as pl


_NUMBERS = ("value", "low", "high", "difference", "difference_low", "difference_high", "p_value")


def compare(
    rankers: Mapping[str, Any],
    X: Any,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    measures: str | Iterable[str] = ("ndcg", "average_precision", "precision_at_10"),
    baseline: str | None = None,
    test: Test = "permutation",
    correction: Correction = "holm",
    confidence: float = 0.95,
    n_resamples: int = 2000,
    ties: Ties | None = None,
    empty: Empty = "skip",
    relevant: float | None = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
) -> pl.DataFrame:
    """Measure several rankers on the same rows and say which differences are more than chance.

    Parameters
    ----------
    rankers : mapping of str to fitted estimator or scores
        An estimator's decision_function is the ranking score, or its probability of the second class, or its
        prediction. An array holds the scores of the rows themselves; X may be None when all are arrays.
    X : array, frame or None
        The rows.
    y, groups, ties, empty, relevant, pos_label, sample_weight
        As ``y_true`` and others in `apexrank.metrics.evaluate`.
    measures : str or iterable of str
        Names as in `apexrank.metrics.evaluate`.
    baseline : str, optional
        The ranker that all others are compared with; the first one by default.
    test : {"permutation", "t"}
        Paired test over the groups (`paired_test`, with its 9999 draws). Without groups it is not used: the p-value
        comes from the bootstrap draws of rows, and is never below 2 / (n_resamples + 1).
    correction : {"holm", "bonferroni", "benjamini-hochberg", "none"}
        For the number of comparisons in the table (`adjust_p_values`).
    confidence, n_resamples, random_state
        Of the bootstrap intervals, as in `bootstrap`.

    Returns
    -------
    polars.DataFrame
        A row for each ranker and measure: ``ranker``, ``measure``, ``value`` with its interval ``low`` to ``high``;
        ``difference`` from the baseline with its interval ``difference_low`` to ``difference_high``, ``p_value`` and
        ``p_adjusted`` (null for the baseline itself); ``n``, the number of groups or rows drawn.

    Examples
    --------
    >>> y, groups = [1, 0, 0, 1, 0, 0, 1, 0], ["a", "a", "b", "b", "c", "c", "d", "d"]
    >>> good, bad = [2, 1, 1, 2, 2, 1, 2, 1], [1, 2, 2, 1, 2, 1, 2, 1]
    >>> table = compare({"bad": bad, "good": good}, None, y, groups, measures="mrr")
    >>> table.select("ranker", "value", "difference").rows()
    [('bad', 0.666..., None), ('good', 1.0, 0.333...)]
    """
    import polars as pl

    check_choice("correction", correction, Correction)
    check_choice("test", test, Test)
    check_level(confidence, n_resamples)
    if not isinstance(rankers, Mapping):
        raise InputError(
            "rankers must be a mapping from names to estimators or scores, such as {'mine': ranker}"
        )
    if not rankers:
        raise InputError("there is nothing to compare: give at least one ranker")
    baseline = next(iter(rankers)) if baseline is None else baseline
    if baseline not in rankers:
        raise InputError(f"baseline {baseline!r} is not among the rankers: {', '.join(map(repr, rankers))}")
    options: dict[str, Any] = {
        "pos_label": pos_label,
        "relevant": relevant,
        "groups": groups,
        "sample_weight": sample_weight,
    }
    lists = {name: _list_of(name, ranker, X, y, options) for name, ranker in rankers.items()}
    study = _Study(lists, baseline, find_measures(measures), {} if ties is None else {"ties": ties})
    drawing = {"confidence": confidence, "n_resamples": n_resamples, "random_state": random_state}
    grouped = study.base.grouped
    records = study.over_groups(test, empty, **drawing) if grouped else study.over_rows(empty, **drawing)
    table = pl.DataFrame(records, schema_overrides=dict.fromkeys(_NUMBERS, pl.Float64))
    p_values = np.array(table["p_value"].to_list(), dtype=np.float64)
    adjusted = pl.Series("p_adjusted", adjust_p_values(p_values, correction), nan_to_null=True)
    return table.insert_column(table.get_column_index("p_value") + 1, adjusted)


def _list_of(name: str, ranker: Any, X: Any, y: ArrayLike, options: dict[str, Any]) -> Rows:
    """One ranker's list; what is wrong with it is said with its name."""
    try:
        return check_rows(y, ranking_scores(ranker, X, options["pos_label"]), graded=True, **options)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def ranking_scores(ranker: Any, X: Any, pos_label: Any = None) -> np.ndarray:
    """Scores of an estimator's best method for it, or the scores themselves."""
    methods = [name for name in ("decision_function", "predict_proba", "predict") if hasattr(ranker, name)]
    if not methods:
        if np.ndim(ranker) != 1:
            raise InputError(
                f"{type(ranker).__name__} is no ranker: give scores, or an estimator with decision_function, "
                "predict_proba or predict"
            )
        return np.asarray(ranker)
    if X is None:
        raise InputError(f"X is None, but {type(ranker).__name__} needs rows to score: give X, or scores")
    values = np.asarray(getattr(ranker, methods[0])(X))
    scores = values[:, 1] if values.ndim == 2 and values.shape[1] == 2 else values
    # These score the second class; for the first one the list is read from its other end.
    first = pos_label is not None and pos_label == getattr(ranker, "classes_", [None])[0]
    return -scores if first else scores


class _Study:
    """One comparison: the rankers' lists of the same rows, and what is measured on them."""

    def __init__(
        self, lists: dict[str, Rows], baseline: str, measures: list[Measure], options: dict[str, Any]
    ) -> None:
        self.lists, self.baseline, self.measures, self.options = lists, baseline, measures, options
        self.base = lists[baseline]

    def over_groups(
        self, test: Test, empty: Empty, confidence: float, n_resamples: int, random_state: Any
    ) -> list[dict[str, Any]]:
        """Draw whole groups: one value of each measure for every group is all that is needed."""
        values = {
            (name, m.name): _filled(m, rows, empty, self.options)
            for name, rows in self.lists.items()
            for m in self.measures
        }
        interval = partial(
            interval_of_mean,
            n_resamples=n_resamples,
            confidence=confidence,
            method="percentile",
            random_state=random_state,
        )
        records = []
        for (name, measure), own in values.items():
            record = _record(name, measure, interval(own[~np.isnan(own)]))
            if name != self.baseline:
                gaps = own - values[self.baseline, measure]
                known = gaps[~np.isnan(gaps)]
                record |= _difference(interval(known), self._p_value(known, test, random_state))
            records.append(record)
        return records

    def over_rows(
        self, empty: Empty, confidence: float, n_resamples: int, random_state: Any
    ) -> list[dict[str, Any]]:
        """Draw rows, the same for all rankers."""
        draws = draw_rows(list(self.lists.values()), self.measures, n_resamples, random_state, self.options)
        values = np.array(
            [[self._mean(m, rows, empty) for m in self.measures] for rows in self.lists.values()]
        )
        base = list(self.lists).index(self.baseline)
        interval = partial(interval_of_draws, confidence=confidence, method="percentile", n=len(self.base))
        records = []
        for (i, name), (j, measure) in product(enumerate(self.lists), enumerate(self.measures)):
            record = _record(name, measure.name, interval(values[i, j], draws[:, i, j]))
            if name != self.baseline:
                gaps = draws[:, i, j] - draws[:, base, j]
                record |= _difference(interval(values[i, j] - values[base, j], gaps), bootstrap_test(gaps))
            records.append(record)
        return records

    def _p_value(self, gaps: np.ndarray, test: Test, random_state: Any) -> float | None:
        """None where there are too few groups to test anything."""
        if len(gaps) < 2:
            return None
        return paired_test(gaps, np.zeros(len(gaps)), test=test, random_state=random_state)

    def _mean(self, measure: Measure, rows: Rows, empty: Empty) -> float:
        return measure.values(rows, **self.options).mean(empty, rows.names)


def _filled(measure: Measure, rows: Rows, empty: Empty, options: dict[str, Any]) -> np.ndarray:
    """A value for every group, NaN for those that are left out."""
    values = measure.values(rows, **options)
    values.mean(empty, rows.names)  # refuses what the rule for empty groups refuses
    fill = {"zero": 0.0, "one": 1.0}.get(empty, np.nan)
    return np.where(values.defined, values.value, fill)


def _record(name: str, measure: str, interval: Interval) -> dict[str, Any]:
    return {
        "ranker": name,
        "measure": measure,
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
        "difference": None,
        "difference_low": None,
        "difference_high": None,
        "p_value": None,
        "n": interval.n,
    }


def _difference(gap: Interval, p_value: float | None) -> dict[str, float | None]:
    return {
        "difference": gap.value,
        "difference_low": gap.low,
        "difference_high": gap.high,
        "p_value": p_value,
    }
