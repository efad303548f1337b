"""Bootstrap confidence intervals of measures, paired tests, and comparison tables of rankers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from apexrank.errors import InputError
from apexrank.metrics._labels import check_rows
from apexrank.metrics._rows import FILLS, Empty, ScoredRows, Ties
from apexrank.metrics.evaluation import Measure, find_measures, ranking_scores
from apexrank.progress import steps
from apexrank.validation import check_choice, check_count

if TYPE_CHECKING:
    import polars as pl

IntervalMethod = Literal["percentile", "basic", "bca"]
Test = Literal["permutation", "t"]
Correction = Literal["holm", "bonferroni", "benjamini-hochberg", "none"]
LEAST_DEFINED = 0.5  # required share of resamples with a value


class Interval(NamedTuple):
    """Value of a measure with its confidence interval.

    ``n`` is the number of resampled groups, or of rows without groups.
    """

    value: float
    low: float
    high: float
    standard_error: float
    confidence: float
    n: int


@overload  # a str is also an iterable of str
def bootstrap(  # type: ignore[overload-overlap]
    measure: str,
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    groups: ArrayLike | None = ...,
    n_resamples: int = ...,
    confidence: float = ...,
    method: IntervalMethod = ...,
    ties: Ties | None = ...,
    empty: Empty = ...,
    relevant: float | None = ...,
    pos_label: Any = ...,
    sample_weight: ArrayLike | None = ...,
    random_state: Any = ...,
) -> Interval: ...


@overload
def bootstrap(
    measure: Iterable[str],
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    groups: ArrayLike | None = ...,
    n_resamples: int = ...,
    confidence: float = ...,
    method: IntervalMethod = ...,
    ties: Ties | None = ...,
    empty: Empty = ...,
    relevant: float | None = ...,
    pos_label: Any = ...,
    sample_weight: ArrayLike | None = ...,
    random_state: Any = ...,
) -> dict[str, Interval]: ...


def bootstrap(
    measure: str | Iterable[str],
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    n_resamples: int = 2000,
    confidence: float = 0.95,
    method: IntervalMethod = "percentile",
    ties: Ties | None = None,
    empty: Empty = "skip",
    relevant: float | None = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
) -> Interval | dict[str, Interval]:
    """Bootstrap confidence interval of a measure, resampling queries (or rows) with replacement.

    With ``groups`` whole groups are drawn, because a new sample would consist of new groups. Without them rows are
    drawn; resamples in which the measure is undefined, such as one without a positive, are skipped. Intervals from few
    groups are too short: with ten groups, 95 % intervals cover the true value about 91 % of the time.

    A row that is drawn several times is repeated. Its copies are not ties: in `average_reciprocal_rank` and
    `push_dcg`, where tied positives share their worst rank, they take consecutive ranks, as different rows of a new
    sample would. Positives that are tied in the sample share their rank in every draw, too. Any other rule would shift
    the draws, and the interval could exclude the value. `err` uses the sample's highest grade in every draw.

    Parameters
    ----------
    measure : str or iterable of str
        Name as in `apexrank.metrics.evaluate`, or several, which share the draws.
    y_true, scores, groups, ties, empty, relevant, pos_label, sample_weight
        As in `apexrank.metrics.evaluate`; weights must be whole numbers if the measure needs ranks. Whole weights count
        equal rows, each of which is drawn separately.
    n_resamples : int
        Number of resamples.
    confidence : float in (0, 1)
        Confidence level.
    method : {"percentile", "basic", "bca"}
        "bca" corrects bias and skewness (Efron 1987) and needs groups.
    random_state : int, Generator or None
        Seed of the draws.

    Returns
    -------
    Interval
        Named tuple (value, low, high, standard_error, confidence, n); a dict of them for several names.

    Examples
    --------
    >>> y, scores = [1, 0, 1, 0, 0, 1], [0.9, 0.8, 0.7, 0.3, 0.2, 0.4]
    >>> interval = bootstrap("auc", y, scores, n_resamples=200)
    >>> interval.low <= interval.value <= interval.high
    True
    """
    check_choice("method", method, IntervalMethod)
    check_level(confidence, n_resamples)
    rows = check_rows(y_true, scores, pos_label, groups, sample_weight, relevant, graded=True)
    measures = find_measures([measure] if isinstance(measure, str) else measure)
    if rows.grouped:
        values = {m.name: rows.counted_values(m.values(rows, ties), empty) for m in measures}
        found = {
            name: interval_of_mean(own, n_resamples, confidence, method, random_state)
            for name, own in values.items()
        }
    elif method == "bca":
        raise InputError("`method='bca'` needs groups: use 'percentile' or 'basic' for the rows of one list")
    else:
        means = [m.mean(rows, empty, ties) for m in measures]
        draws = draw_rows([rows], measures, n_resamples, random_state, ties)[:, 0]
        found = {
            m.name: interval_of_draws(mean, own, confidence, method, n_units(rows))
            for m, mean, own in zip(measures, means, draws.T, strict=True)
        }
    return found[measure] if isinstance(measure, str) else found


def interval_of_mean(
    values: np.ndarray, n_resamples: int, confidence: float, method: IntervalMethod, random_state: Any
) -> Interval:
    """Confidence interval of the mean of one value per group; undefined for a single group."""
    n, mean = len(values), float(values.mean()) if len(values) else np.nan
    if n < 2:
        return Interval(mean, np.nan, np.nan, np.nan, confidence, n)
    draws = draw_means(values, n_resamples, random_state)
    distance = values - mean
    # for a mean, Efron's acceleration (the skewness of the jackknife) is that of the values
    skew = float(np.sum(distance**3) / (6 * np.sum(distance**2) ** 1.5)) if distance.any() else 0.0
    return interval_of_draws(mean, draws, confidence, method, n, skew)


def draw_means(values: np.ndarray, n_resamples: int, random_state: Any) -> np.ndarray:
    """Compute the means of ``n_resamples`` samples with replacement."""
    rng = np.random.default_rng(random_state)
    n, draws = len(values), np.empty(n_resamples)
    block = max(1, 10**7 // n)
    for start in range(0, n_resamples, block):
        size = min(block, n_resamples - start)
        draws[start : start + size] = values[rng.integers(0, n, (size, n))].mean(axis=1)
    return draws


def draw_rows(
    lists: list[ScoredRows],
    measures: list[Measure],
    n_resamples: int,
    random_state: Any,
    ties: Ties | None = None,
) -> np.ndarray:
    """Evaluate measures on resampled rows, with the same draws for every list: (resamples, lists, measures)."""
    rng = np.random.default_rng(random_state)
    draws = np.empty((n_resamples, len(lists), len(measures)))
    for draw in steps(draws):
        weight = resample_weights(lists[0].weight, len(lists[0]), rng)
        for i, rows in enumerate(lists):
            drawn = rows.drawn(weight)
            for j, measure in enumerate(measures):
                (value,), (defined,) = measure.values(drawn, ties)
                draw[i, j] = value if defined else np.nan
    return draws


def resample_weights(weight: np.ndarray | None, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n rows with replacement and return their weights.

    Whole weights count equal rows, each of which is drawn separately; with other weights a row is drawn as one.

    Examples
    --------
    >>> resample_weights(np.array([1000.0, 0.0, 3.0]), 3, np.random.default_rng(0)).sum()
    np.float64(1003.0)
    """
    if weight is not None and are_counts(weight):
        return rng.multinomial(int(weight.sum()), weight / weight.sum()).astype(np.float64)
    while True:
        times = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
        drawn = times if weight is None else times * weight
        if drawn.any() or not np.any(weight):  # a sample must not consist of rows of weight 0 only
            return drawn


def are_counts(weight: np.ndarray) -> bool:
    """Return whether weights are whole numbers with a positive sum."""
    return bool((weight == np.floor(weight)).all() and 0 < weight.sum() < 2**53)


def n_units(rows: ScoredRows) -> int:
    """Return the number of rows that `draw_rows` draws."""
    return len(rows) if rows.weight is None or not are_counts(rows.weight) else int(rows.weight.sum())


def interval_of_draws(
    value: float, draws: np.ndarray, confidence: float, method: IntervalMethod, n: int, skew: float = 0.0
) -> Interval:
    """Compute the interval from bootstrap draws; NaN marks a draw without a value."""
    defined = draws[~np.isnan(draws)]
    if len(defined) < LEAST_DEFINED * len(draws):
        raise InputError("most resamples lack positive or negative rows: there are too few for an interval")
    levels = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    if method == "bca" and np.ptp(defined) > 0:
        levels = _bca_levels(levels, np.mean(defined < value) / 2 + np.mean(defined <= value) / 2, skew)
    low, high = np.quantile(defined, levels)
    if method == "basic":
        low, high = 2 * value - high, 2 * value - low
    return Interval(value, float(low), float(high), float(defined.std(ddof=1)), confidence, n)


def _bca_levels(levels: np.ndarray, below: float, skew: float) -> np.ndarray:
    """Correct levels for bias (the share of draws below the value) and skewness (Efron 1987, eq. 2.3)."""
    bias = ndtri(np.clip(below, 1e-12, 1 - 1e-12))
    moved = bias + ndtri(levels)
    return ndtr(bias + moved / (1 - skew * moved))


def check_level(confidence: float, n_resamples: int) -> None:
    """Raise InputError for an invalid confidence level or number of draws."""
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise InputError(f"`confidence` must be between 0 and 1, got {confidence!r}")
    check_count("n_resamples", n_resamples, 2)


def paired_test(
    a: ArrayLike,
    b: ArrayLike,
    *,
    test: Test = "permutation",
    n_resamples: int = 9999,
    random_state: Any = 0,
) -> float:
    """P-value of the hypothesis that two rankers are equally good, from paired values for each query.

    Parameters
    ----------
    a, b : array-like of shape (n,)
        A measure of two rankers for the same n queries, such as two columns of `per_group`; queries where either has no
        value (NaN or None) are skipped.
    test : {"permutation", "t"}
        "permutation" swaps the two values of a query at random: exact if 2^n is at most ``n_resamples``, else with
        ``n_resamples`` draws. "t" is Student's paired test, which assumes normal differences and is undefined (NaN) if
        they are all equal.
    n_resamples, random_state
        Number and seed of the draws.

    Returns
    -------
    float
        Two-sided p-value; 1 if all differences are 0.

    Examples
    --------
    >>> paired_test([0.9, 0.8, 0.7, 0.9], [0.5, 0.7, 0.6, 0.4])
    0.125
    """
    check_choice("test", test, Test)
    check_level(0.5, n_resamples)
    difference = _differences(a, b)
    size = np.abs(difference).max()
    if size == 0:
        return 1.0
    if test == "permutation":
        return _sign_flips(difference, n_resamples, random_state)
    from scipy.stats import ttest_1samp

    if np.ptp(difference) <= 1e-12 * size:
        return np.nan
    return float(ttest_1samp(difference, 0.0).pvalue)


def _differences(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Return the differences of the queries for which both have a value."""
    try:
        first, second = (np.asarray(values, dtype=np.float64) for values in (a, b))
    except (TypeError, ValueError):
        raise InputError("a and b must be numbers, one for each query") from None
    if first.shape != second.shape or first.ndim != 1:
        raise InputError(f"a and b need one value per query, got shapes {first.shape} and {second.shape}")
    difference = first - second
    difference = difference[~np.isnan(difference)]
    if len(difference) < 2:
        raise InputError("a paired test needs at least two queries for which both rankers have a value")
    return difference


def _sign_flips(difference: np.ndarray, n_resamples: int, random_state: Any) -> float:
    """Share of sign patterns with a sum at least as far from 0; swapping a query's values flips its sign."""
    difference = difference[difference != 0]
    n = len(difference)
    seen = np.abs(difference.sum()) * (1 - 1e-12)
    if n < 63 and 2**n <= n_resamples:
        patterns = np.arange(2**n)[:, None] >> np.arange(n) & 1
        return float(np.mean(np.abs((2 * patterns - 1) @ difference) >= seen))
    rng = np.random.default_rng(random_state)
    block, extreme = max(1, 10**7 // n), 0
    for start in range(0, n_resamples, block):
        size = min(block, n_resamples - start)
        bits = np.unpackbits(np.frombuffer(rng.bytes(-(-size * n // 8)), dtype=np.uint8), count=size * n)
        signs = bits.reshape(size, n).astype(np.float64)
        # Σ ± d is twice the sum of the positive part minus the total
        extreme += int(np.sum(np.abs(2 * (signs @ difference) - difference.sum()) >= seen))
    return (extreme + 1) / (n_resamples + 1)


def bootstrap_test(draws: np.ndarray) -> float:
    """Two-sided p-value from bootstrap draws of a difference: twice the share beyond 0, at least 2 / (draws + 1)."""
    known = draws[~np.isnan(draws)]
    below, above = np.sum(known <= 0), np.sum(known >= 0)
    return float(min(1.0, 2 * (min(below, above) + 1) / (len(known) + 1)))


def adjust_p_values(p_values: ArrayLike, method: Correction = "holm") -> np.ndarray:
    """Adjust p-values for multiple comparisons; NaN stays NaN and does not count.

    Parameters
    ----------
    p_values : array-like of shape (m,)
        One for each comparison.
    method : {"holm", "bonferroni", "benjamini-hochberg", "none"}
        Holm and Bonferroni control the family-wise error rate, Benjamini and Hochberg the false discovery rate.

    Examples
    --------
    >>> adjust_p_values([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    check_choice("correction", method, Correction)
    p = np.asarray(p_values, dtype=np.float64)
    known = p[~np.isnan(p)]
    if ((known < 0) | (known > 1)).any():
        raise InputError("`p_values` must be between 0 and 1")
    adjusted = np.full(p.shape, np.nan)
    adjusted[~np.isnan(p)] = _CORRECTIONS[method](known) if len(known) else known
    return adjusted


def _holm(p: np.ndarray) -> np.ndarray:
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def _benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    from scipy.stats import false_discovery_control

    return false_discovery_control(p)


_CORRECTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "holm": _holm,
    "bonferroni": lambda p: np.minimum(p * len(p), 1.0),
    "benjamini-hochberg": _benjamini_hochberg,
    "none": lambda p: p,
}


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
    """Evaluate several rankers on the same rows and test their differences.

    Parameters
    ----------
    rankers : mapping of str to fitted estimator or scores
        The ranking score of an estimator is its decision_function, or its probability of the second class, or its
        prediction. An array holds the scores themselves; X may be None if all are arrays.
    X : array, frame or None
        Rows to score.
    y, groups, ties, empty, relevant, pos_label, sample_weight
        As in `apexrank.metrics.evaluate`, where y is ``y_true``.
    measures : str or iterable of str
        Names as in `apexrank.metrics.evaluate`.
    baseline : str, optional
        Ranker that all others are compared with; the first one by default.
    test : {"permutation", "t"}
        Paired test over the groups (`paired_test`, with 9999 draws). Not used without groups: the p-value then comes
        from the bootstrap draws of rows, and is never below 2 / (n_resamples + 1).
    correction : {"holm", "bonferroni", "benjamini-hochberg", "none"}
        Adjustment for the number of comparisons in the table (`adjust_p_values`).
    confidence, n_resamples, random_state
        Parameters of the bootstrap intervals, as in `bootstrap`.

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
        raise InputError("rankers must map names to estimators or scores, such as {'mine': ranker}")
    if not rankers:
        raise InputError("there is nothing to compare: give at least one ranker")
    baseline = next(iter(rankers)) if baseline is None else baseline
    if baseline not in rankers:
        raise InputError(f"baseline {baseline!r} is not among the rankers: {', '.join(map(repr, rankers))}")
    lists = {}
    for name, ranker in rankers.items():
        try:
            scores = ranking_scores(ranker, X, pos_label)
            lists[name] = check_rows(y, scores, pos_label, groups, sample_weight, relevant, graded=True)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    samples = _samples(lists, find_measures(measures), empty, ties, n_resamples, random_state)

    def interval(sample: np.ndarray) -> Interval:
        if groups is None:
            n = n_units(lists[baseline])
            return interval_of_draws(sample[0], sample[1:], confidence, "percentile", n)
        known = sample[~np.isnan(sample)]
        return interval_of_mean(known, n_resamples, confidence, "percentile", random_state)

    def p_value(sample: np.ndarray) -> float | None:
        if groups is None:
            return bootstrap_test(sample[1:])
        known = sample[~np.isnan(sample)]
        if len(known) < 2:  # too few groups to test anything
            return None
        return paired_test(known, np.zeros(len(known)), test=test, random_state=random_state)

    records = []
    for (name, measure), own in samples.items():
        found = interval(own)
        gap: tuple[float | None, ...] = (None, None, None, None)
        if name != baseline:
            difference = own - samples[baseline, measure]
            gap = (*interval(difference)[:3], p_value(difference))
        records.append((name, measure, *found[:3], *gap, found.n))
    numbers = dict.fromkeys(_NUMBERS, pl.Float64)
    table = pl.DataFrame(
        records, ["ranker", "measure", *_NUMBERS, "n"], schema_overrides=numbers, orient="row"
    )
    p_values = np.array(table["p_value"].to_list(), dtype=np.float64)
    adjusted = pl.Series("p_adjusted", adjust_p_values(p_values, correction), nan_to_null=True)
    return table.insert_column(table.get_column_index("p_value") + 1, adjusted)


def _samples(
    lists: dict[str, ScoredRows],
    measures: list[Measure],
    empty: Empty,
    ties: Ties | None,
    n_resamples: int,
    random_state: Any,
) -> dict[tuple[str, str], np.ndarray]:
    """Return arrays by ranker and measure that can be subtracted from those of another ranker.

    With groups it is a value for every group, NaN for those that are skipped; without groups, the value of all rows
    followed by those of the draws.
    """
    samples = {}
    if not next(iter(lists.values())).grouped:
        draws = draw_rows(list(lists.values()), measures, n_resamples, random_state, ties)
        for i, (name, rows) in enumerate(lists.items()):
            for j, measure in enumerate(measures):
                value = measure.mean(rows, empty, ties)
                samples[name, measure.name] = np.array([value, *draws[:, i, j]])
        return samples
    for name, rows in lists.items():
        for measure in measures:
            values = measure.values(rows, ties)
            rows.counted_values(values, empty)  # raises an error if the rule for empty groups demands it
            filled = np.where(values.defined, values.value, FILLS.get(empty, np.nan))
            samples[name, measure.name] = filled[rows.present]
    return samples
