"""Confidence intervals and tests against SciPy, their definitions, and their nominal coverage."""

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from apexrank.errors import InputError
from apexrank.metrics import (
    adjust_p_values,
    auc,
    bootstrap,
    compare,
    ndcg,
    paired_test,
    per_group,
    spam_mass,
    spam_met,
)
from apexrank.metrics.confidence import interval_of_mean


@pytest.fixture(scope="module")
def queries():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 60, 900)
    y = rng.integers(0, 3, 900)
    return y, y + rng.normal(size=900), y + 3 * rng.normal(size=900), groups


# Bootstrap


def test_groups_are_drawn_whole(queries):
    y, scores, _, groups = queries
    interval = bootstrap("ndcg", y, scores, groups=groups, n_resamples=4000)
    values = per_group(y, scores, "ndcg", groups=groups)["ndcg"].drop_nulls().to_numpy()
    assert interval.value == ndcg(y, scores, groups=groups)
    assert interval.n == len(values)
    # the standard error of a mean is known in closed form
    assert interval.standard_error == pytest.approx(values.std() / np.sqrt(len(values)), rel=0.05)
    half = stats.norm.ppf(0.975) * interval.standard_error
    assert interval.high - interval.value == pytest.approx(half, rel=0.15)
    assert interval.value - interval.low == pytest.approx(half, rel=0.15)


def test_rows_are_drawn_with_repetition():
    """The draws equal the measures of the resampled rows."""
    rng = np.random.default_rng(1)
    y, scores = rng.integers(0, 2, 50), rng.integers(0, 9, 50)
    interval = bootstrap("auc", y, scores, n_resamples=300, random_state=7)
    draws, generator = [], np.random.default_rng(7)
    for _ in range(300):
        rows = generator.integers(0, 50, 50)
        draws.append(auc(y[rows], scores[rows]))
    assert (interval.low, interval.high) == pytest.approx(np.quantile(draws, [0.025, 0.975]), rel=1e-12)
    assert interval.standard_error == pytest.approx(np.std(draws, ddof=1), rel=1e-12)
    basic = bootstrap("auc", y, scores, n_resamples=300, random_state=7, method="basic")
    assert basic.low == pytest.approx(2 * interval.value - interval.high)


def test_bca_is_scipys(queries):
    y, scores, _, groups = queries
    ours = bootstrap("map", y, scores, groups=groups, method="bca", n_resamples=999, random_state=3)
    values = per_group(y, scores, "map", groups=groups)["map"].drop_nulls().to_numpy()
    theirs = stats.bootstrap((values,), np.mean, n_resamples=999, rng=np.random.default_rng(3))
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), rel=1e-12)


@pytest.mark.slow
def test_intervals_cover():
    """About 95 % of 200 samples have the true AUC in their interval (Φ(1/√2) for normal scores one apart)."""
    truth, covered = stats.norm.cdf(1 / np.sqrt(2)), 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], 60)
        interval = bootstrap("auc", y, y + rng.normal(size=120), n_resamples=200, random_state=seed)
        covered += interval.low <= truth <= interval.high
    assert 178 <= covered <= 199  # 190 ± 4 standard deviations, and never all


def test_intervals_of_few_groups_are_too_short():
    """The docstring's statement about ten groups: coverage of about 91 % instead of 95 %."""
    covered = 0
    for seed in range(1000):
        values = np.random.default_rng(seed).normal(size=10)
        interval = interval_of_mean(values, 500, 0.95, "percentile", seed)
        covered += interval.low <= 0 <= interval.high
    assert 880 <= covered <= 935  # 908 ± 3 standard deviations


def test_draws_without_a_class_are_left_out():
    y, scores = [1] + 19 * [0], np.arange(20)[::-1]
    interval = bootstrap("auc", y, scores, n_resamples=200)
    assert (interval.low, interval.high) == (1.0, 1.0)


@pytest.mark.parametrize("tied", [1, 2, 3, 10, 100, 600])
def test_intervals_of_lists_with_any_number_of_ties_hold_the_value(tied):
    """Copies of a row are not ties, in a perfect list and in an imperfect one with several rows per score."""
    rng = np.random.default_rng(tied)
    scores = -(np.arange(600) // tied)
    for y in (np.repeat([1, 0], 300), (rng.random(600) < np.linspace(0.9, 0.1, 600)).astype(int)):
        found = bootstrap(["average_reciprocal_rank", "push_dcg", "err", "map"], y, scores, n_resamples=200)
        for name, interval in found.items():
            assert interval.low <= interval.value <= interval.high, name


def test_a_rare_grade_stays_the_highest_of_a_draw():
    """A third of the draws lack it; relative to their own highest grade, every row in them would satisfy more."""
    y, scores = np.r_[np.tile([1, 0], 100), 4], -np.arange(201)
    interval = bootstrap("err", y, scores, n_resamples=200)
    assert interval.low <= interval.value <= interval.high < 2 * interval.value


def test_one_group_says_nothing_about_others():
    interval = bootstrap("ndcg", [1, 0, 1, 0], [1, 2, 3, 4], groups=["q"] * 4)
    assert interval.n == 1
    assert np.isnan([interval.low, interval.high]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.0}, "`confidence` must be between 0 and 1"),
        ({"n_resamples": 1}, "`n_resamples` must be a whole number of at least 2"),
        ({"method": "bca"}, "needs groups"),
        ({"method": "magic"}, "unknown `method`"),
    ],
)
def test_faults_of_bootstrap(options, message):
    with pytest.raises(InputError, match=message):
        bootstrap("auc", [1, 0, 1, 0], [4, 3, 2, 1], **options)


# Paired tests


def test_t_test_is_students():
    rng = np.random.default_rng(4)
    a = rng.normal(size=30)
    b = a + rng.normal(0.3, 1, size=30)
    assert paired_test(a, b, test="t") == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert paired_test(a, b) == pytest.approx(stats.ttest_rel(a, b).pvalue, abs=0.03)


def test_equal_differences_leave_students_test_without_a_value():
    assert np.isnan(paired_test([0.9, 0.8, 0.7], [0.8, 0.7, 0.6], test="t"))
    assert paired_test([0.9, 0.8, 0.7], [0.8, 0.7, 0.6]) == 0.25


def test_drawn_sign_flips_are_scipys():
    rng = np.random.default_rng(9)
    a = rng.normal(size=60)
    b = a - rng.normal(0.2, 0.8, size=60)
    ours = paired_test(a, b, n_resamples=20_000)
    theirs = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=5000, rng=rng
    ).pvalue
    assert ours == pytest.approx(theirs, abs=0.02)


def test_queries_without_a_value_are_left_out():
    a, b = [0.9, np.nan, 0.7, 0.8], [0.5, 0.2, 0.6, np.nan]
    assert paired_test(a, b) == paired_test([0.9, 0.7], [0.5, 0.6])
    assert paired_test([0.5, 0.6], [0.5, 0.6]) == 1.0
    with pytest.raises(InputError, match="at least two queries"):
        paired_test([0.5, np.nan], [0.5, 0.2])
    with pytest.raises(InputError, match="one value per query"):
        paired_test([0.5, 0.2], [0.5])


def test_false_findings_are_as_rare_as_promised():
    """Two equally good rankers: about 5 % of 300 tests find a difference at 5 %."""
    found = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        a, b = rng.uniform(size=(2, 12))
        found += paired_test(a, b, n_resamples=5000) <= 0.05
    assert 4 <= found <= 27  # 15 ± 3 standard deviations


def test_corrections():
    p = [0.001, 0.04, 0.03, np.nan, 0.5]
    np.testing.assert_allclose(adjust_p_values(p, "bonferroni"), [0.004, 0.16, 0.12, np.nan, 1.0])
    np.testing.assert_allclose(adjust_p_values(p, "holm"), [0.004, 0.09, 0.09, np.nan, 0.5])
    kept = [0.001, 0.04, 0.03, 0.5]
    found = adjust_p_values(p, "benjamini-hochberg")
    np.testing.assert_allclose(found[[0, 1, 2, 4]], stats.false_discovery_control(kept))
    np.testing.assert_allclose(adjust_p_values(p, "none"), p)
    with pytest.raises(InputError, match="between 0 and 1"):
        adjust_p_values([1.5])


# Comparisons


def test_compare_over_groups(queries):
    y, good, bad, groups = queries
    table = compare({"bad": bad, "good": good}, None, y, groups, measures=["ndcg", "map"])
    assert table.columns == [
        *("ranker", "measure", "value", "low", "high"),
        *("difference", "difference_low", "difference_high", "p_value", "p_adjusted", "n"),
    ]
    assert table.select("ranker", "measure").rows() == [
        (ranker, measure) for ranker in ("bad", "good") for measure in ("ndcg", "map")
    ]
    base, better = (table.filter(pl.col("ranker") == name) for name in ("bad", "good"))
    assert base["p_value"].null_count() == 2
    assert better["value"][0] == ndcg(y, good, groups=groups)
    assert better["difference"][0] == pytest.approx(better["value"][0] - base["value"][0])
    assert (better["difference_low"] > 0).all()
    assert (better["p_adjusted"] < 0.01).all()
    assert (better["p_adjusted"] >= better["p_value"]).all()
    swapped = compare({"bad": bad, "good": good}, None, y, groups, measures="ndcg", baseline="good")
    assert swapped["difference"][0] == pytest.approx(-better["difference"][0])


def test_compare_over_rows():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=400) > 1).astype(int)
    models = {"all": LogisticRegression().fit(X, y), "noise": GaussianNB().fit(X[:, [1, 1, 1]], y)}
    table = compare(models, X, y, measures=["auc", "precision_at_20"], n_resamples=200)
    assert table["value"][0] == auc(y, models["all"].decision_function(X))
    noise = table.filter(pl.col("ranker") == "noise")
    assert (noise["difference_high"] < 0).all()
    assert noise["p_value"].to_list() == pytest.approx([2 / 201, 2 / 201])
    same = compare({"a": X[:, 0], "b": X[:, 0]}, None, y, measures="auc", n_resamples=50)
    assert same["p_value"][1] == 1.0
    assert same["difference"][1] == 0
    alone = compare({"a": X[:, 0]}, None, y, measures="auc", n_resamples=50)
    assert alone.schema["p_value"] == pl.Float64


def test_compare_with_one_group_that_counts():
    table = compare(
        {"a": [1, 2, 3, 4], "b": [2, 1, 3, 4]}, None, [1, 0, 0, 0], ["q", "q", "r", "r"], measures="mrr"
    )
    assert table["difference"].to_list() == [None, 0.5]
    assert table["p_value"].to_list() == [None, None]


@pytest.mark.parametrize(
    ("rankers", "options", "message"),
    [
        ({}, {}, "nothing to compare"),
        ({"a": [1, 2]}, {"baseline": "b"}, "baseline 'b' is not among the rankers: 'a'"),
        ({"a": LogisticRegression()}, {}, "X is None"),
        ({"a": [[1, 2]]}, {}, "list is not a ranker"),
        ({"a": [1, 2]}, {"correction": "magic"}, "unknown `correction`"),
        ({"a": [1, 2]}, {"test": "magic"}, "unknown `test`"),
        ({"a": [1, 2], "b": [1, np.nan]}, {}, "b: scores is NaN in row 1"),
        ([[1, 2]], {}, "must map names to estimators"),
    ],
)
def test_faults_of_compare(rankers, options, message):
    with pytest.raises(InputError, match=message):
        compare(rankers, None, [0, 1], **options)


# Spam


def test_spam_measures_against_counting():
    rng = np.random.default_rng(8)
    spam, scores = rng.random(200) < 0.2, rng.permutation(200) / 200
    order = np.argsort(-scores)
    assert spam_mass(spam, scores) == pytest.approx(scores[spam].sum() / scores.sum())
    assert spam_mass(spam, scores * 1e308) == pytest.approx(spam_mass(spam, scores))
    np.testing.assert_array_equal(spam_met(spam, scores, np.arange(1, 201)), np.cumsum(spam[order]))
    assert spam_met(spam, scores, 0) == 0
    assert spam_met(spam, scores, 1000) == spam.sum()
    assert spam_met([1, 0, 0], [1, 1, 1], 1) == pytest.approx(1 / 3)
    assert spam_met([1, 0, 0], [1, 1, 1], 1, ties="pessimistic") == 1
    assert spam_met([1, 0, 0], [1, 1, 1], 1, ties="optimistic") == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spam_mass([1, 0], [1, -1]), "finite scores of at least 0"),
        (lambda: spam_mass([1, 0], [0, 0]), "not all 0"),
        (lambda: spam_mass([1, 2], [1, 1]), "True or False"),
        (lambda: spam_met([1, 0], [1, 2], -1), "at least 0"),
    ],
)
def test_faults_of_spam_measures(call, message):
    with pytest.raises(InputError, match=message):
        call()
