"""Measures of the top of the list against brute force over pairs, scikit-learn, and the papers' identities."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.naive_bayes import GaussianNB

from apexrank import InputError
from apexrank.metrics import (
    auc,
    average_precision,
    average_reciprocal_rank,
    empty_groups,
    get_scorer,
    heights,
    ndcg,
    p_norm_risk,
    partial_auc,
    precision_at,
    push_dcg,
    r_max,
    ranks,
    recall_at,
    reverse_heights,
    roc_points,
    tpr_at_fpr,
)

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "measures.json").read_text())
TIES = {"pessimistic": 1.0, "average": 0.5, "optimistic": 0.0}
BOTH_CLASSES = {
    "auc": auc,
    "r_max": r_max,
    "risk": partial(p_norm_risk, p=3),
    "risk margin": partial(p_norm_risk, p=2.5, margin=1.0),
    "risk normalised": partial(p_norm_risk, p=4, normalize=True),
    "risk inf": partial(p_norm_risk, p=np.inf, normalize=True),
    "partial_auc": partial(partial_auc, max_fpr=0.3),
    "partial_auc min_tpr": partial(partial_auc, min_tpr=0.6),
    "tpr_at_fpr": partial(tpr_at_fpr, fpr=0.3),
}
POSITIVES_ONLY = {
    "aver": average_reciprocal_rank,
    "aver mean": partial(average_reciprocal_rank, normalize=True),
    "push_dcg": push_dcg,
    "precision_at": partial(precision_at, k=12),
    "precision_at fraction": partial(precision_at, k=0.3),
    "recall_at": partial(recall_at, k=12),
}
MEASURES = BOTH_CLASSES | POSITIVES_ONLY
every_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
every_tie_rule = pytest.mark.parametrize("ties", TIES)


def tied_data(seed, n=40, levels=9):
    """Labels of both classes, higher scores for the positives, and many ties."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    return y, rng.integers(0, levels, n) + y * (levels // 4) + 0.0


def brute_pairs(y, scores, ties, margin=0.0):
    """The I x K matrix of misranks."""
    positive, negative = scores[y == 1, None], scores[y == 0]
    difference = positive - negative - margin
    return np.where(difference == 0, TIES[ties], difference < 0)


@st.composite
def lists(draw):
    n = draw(st.integers(2, 25))
    y = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    y[:2] = True, False
    scores = np.array(draw(st.lists(st.integers(-4, 4), min_size=n, max_size=n)), dtype=float)
    return y.astype(int), scores


# Heights, ranks


@pytest.mark.parametrize("case", VECTORS)
def test_vectors(case):
    y, scores = case["y"], case["scores"]
    assert heights(y, scores).tolist() == case["heights"]
    assert r_max(y, scores) == case["r_max"]
    for p, value in case["R"].items():
        assert p_norm_risk(y, scores, float(p)) == pytest.approx(value, rel=1e-13)
        assert p_norm_risk(y, scores, float(p), log=True) == pytest.approx(np.log(value), rel=1e-13)
    for ties in TIES:
        assert auc(y, scores, ties=ties) == pytest.approx(case[f"auc_{ties}"], rel=1e-14)
    assert average_reciprocal_rank(y, scores) == pytest.approx(case["average_reciprocal_rank_sum"], rel=1e-14)
    assert push_dcg(y, scores) == pytest.approx(case["push_dcg"], rel=1e-14)


@every_tie_rule
@pytest.mark.parametrize("margin", [0.0, 2.0, -1.0])
@pytest.mark.parametrize("seed", range(3))
def test_heights_against_all_pairs(seed, margin, ties):
    y, scores = tied_data(seed)
    weight = np.random.default_rng(seed).uniform(0.1, 3, len(y))
    pairs = brute_pairs(y, scores, ties, margin)
    options = {"ties": ties, "margin": margin}
    np.testing.assert_array_equal(heights(y, scores, **options), pairs.sum(axis=0))
    np.testing.assert_array_equal(reverse_heights(y, scores, **options), pairs.sum(axis=1))
    weighted = heights(y, scores, sample_weight=weight, **options)
    np.testing.assert_allclose(weighted, weight[y == 1] @ pairs, rtol=1e-13, atol=1e-13)
    weighted = reverse_heights(y, scores, sample_weight=weight, **options)
    np.testing.assert_allclose(weighted, pairs @ weight[y == 0], rtol=1e-13, atol=1e-13)


@every_tie_rule
def test_ranks_against_their_definition(ties):
    y, scores = tied_data(5)
    positive = scores[y == 1]
    expected = reverse_heights(y, scores, ties=ties) + (positive[:, None] <= positive).sum(axis=1)
    np.testing.assert_array_equal(ranks(y, scores, ties=ties), expected)


@pytest.mark.parametrize("function", [heights, reverse_heights, ranks])
@every_tie_rule
def test_row_values_by_group_are_those_of_each_group(function, ties):
    y, scores = tied_data(1, n=60)
    groups = np.random.default_rng(2).choice(["x", "a", "m"], size=60)
    rows = y == (0 if function is heights else 1)
    found = function(y, scores, ties=ties, groups=groups)
    for name in "axm":
        inside = groups == name
        expected = function(y[inside], scores[inside], ties=ties)
        np.testing.assert_array_equal(found[groups[rows] == name], expected)


def test_a_height_of_zero_is_exactly_zero_whatever_the_weights():
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], 500)
    groups = np.tile(np.arange(5), 200)
    found = heights(y, y + rng.random(1000) / 2, groups=groups, sample_weight=rng.random(1000))
    assert (found == 0).all()
    assert p_norm_risk(y, y, 4, sample_weight=rng.random(1000)) == 0
    assert p_norm_risk(y, y, 4, log=True) == -np.inf


# R_p, R_max, AUC


@pytest.mark.parametrize(
    ("scores", "value"),
    [([1, 2, 3, 4, 5, 6, 7, 8], 33), ([2, 1, 3, 4, 5, 6, 7, 8], 34), ([1, 2, 3, 4, 5, 7, 6, 8], 98)],
)
def test_table_1_of_the_jmlr_paper(scores, value):
    assert p_norm_risk([-1, 1, -1, 1, -1, -1, 1, 1], scores, 4) == pytest.approx(value, rel=1e-14)


@every_tie_rule
@pytest.mark.parametrize("p", [0.5, 1, 2, 7.5])
def test_risk_against_all_pairs(p, ties):
    y, scores = tied_data(3)
    weight = np.random.default_rng(3).uniform(0, 2, len(y))
    pairs = brute_pairs(y, scores, ties, 1.0)
    plain = np.sum(pairs.sum(axis=0) ** p)
    weighted = np.sum(weight[y == 0] * (weight[y == 1] @ pairs) ** p)
    normalised = np.mean(pairs.mean(axis=0) ** p) ** (1 / p)
    risk = partial(p_norm_risk, y, scores, p, ties=ties, margin=1.0)
    assert risk() == pytest.approx(plain, rel=1e-12)
    assert risk(log=True) == pytest.approx(np.log(plain), rel=1e-12)
    assert risk(sample_weight=weight) == pytest.approx(weighted, rel=1e-12)
    assert risk(normalize=True) == pytest.approx(normalised, rel=1e-12)
    assert risk(normalize=True, log=True) == pytest.approx(np.log(normalised), rel=1e-12)


def test_risk_at_large_p_lives_in_the_log_domain():
    y, scores = tied_data(4, n=400, levels=50)
    found = p_norm_risk(y, scores, 1024, log=True)
    h = [int(value) for value in heights(y, scores)]
    exact = sum(value**1024 for value in h)
    exponent = len(str(exact)) - 17
    assert found == pytest.approx(np.log(exact // 10**exponent) + exponent * np.log(10), rel=1e-13)
    assert p_norm_risk(y, scores, 1024) == np.inf


@every_tie_rule
def test_p_infinite_is_r_max(ties):
    y, scores = tied_data(6)
    top = heights(y, scores, ties=ties).max()
    assert r_max(y, scores, ties=ties) == top
    assert p_norm_risk(y, scores, np.inf, ties=ties) == top
    assert p_norm_risk(y, scores, np.inf, ties=ties, log=True) == pytest.approx(np.log(top))
    assert p_norm_risk(y, scores, np.inf, ties=ties, normalize=True) == top / np.sum(y)
    root = np.exp(p_norm_risk(y, scores, 5000, ties=ties, log=True) / 5000)
    assert root == pytest.approx(top, rel=1e-3)


def test_a_negative_of_weight_zero_is_not_the_highest():
    assert r_max([0, 1, 0, 1], [4, 3, 2, 1], sample_weight=[0, 1, 1, 1]) == 1


@settings(deadline=None, max_examples=60)
@given(lists(), st.floats(1, 20))
def test_theorem_1(case, p):
    y, scores = case
    K, top, log_risk = np.sum(y == 0), r_max(y, scores), p_norm_risk(y, scores, p, log=True)
    with np.errstate(divide="ignore"):
        log_top = np.log(top)
    assert log_risk >= np.log(K) + p * (log_top - np.log(K)) - 1e-9
    assert log_risk <= np.log(K) + p * log_top + 1e-9


@pytest.mark.parametrize("levels", [3, 1000])
def test_auc_is_scikit_learns(levels):
    y, scores = tied_data(7, n=200, levels=levels)
    weight = np.random.default_rng(7).uniform(0, 2, 200)
    assert auc(y, scores) == pytest.approx(roc_auc_score(y, scores), rel=1e-13)
    expected = roc_auc_score(y, scores, sample_weight=weight)
    assert auc(y, scores, sample_weight=weight) == pytest.approx(expected, rel=1e-13)


# Properties every measure shares


@pytest.mark.parametrize("name", sorted(MEASURES.keys() - {"tpr_at_fpr"}))
def test_tie_rules_are_tiny_shifts_of_the_positives(name):
    y, scores = tied_data(10)
    measure = partial(MEASURES[name], y)
    worst, best = measure(scores - 0.25 * y, ties="average"), measure(scores + 0.25 * y, ties="average")
    assert measure(scores, ties="pessimistic") == pytest.approx(worst, rel=1e-13)
    assert measure(scores, ties="optimistic") == pytest.approx(best, rel=1e-13)


@pytest.mark.parametrize("y", [[False, True], [0, 1], [-1, 1], [1, 2], ["bad", "good"], [0.0, 0.5]])
@pytest.mark.parametrize("kind", [np.array, list, partial(np.array, dtype=object)])
def test_the_larger_label_is_positive(y, kind):
    labels = kind([y[0], y[1], y[1], y[0]])
    assert heights(labels, [3, 4, 2, 1]).tolist() == [1, 0]
    assert auc(labels, [3, 4, 2, 1]) == 0.75
    assert auc(labels, [3, 4, 2, 1], pos_label=y[0]) == 0.25


@every_measure
def test_pandas_columns_are_taken(measure):
    pd = pytest.importorskip("pandas")
    y, scores = tied_data(11)
    frame = pd.DataFrame({"y": np.where(y, "yes", "no"), "s": scores}, index=range(100, 140))
    assert measure(frame["y"], frame["s"]) == measure(y, scores)


def test_infinite_scores_are_the_ends_of_the_list():
    assert auc([0, 1, 0, 1], [-np.inf, np.inf, 0, np.inf]) == 1
    assert heights([0, 1, 0, 1], [np.inf, np.inf, 0, -np.inf], margin=1).tolist() == [2, 1]


# Cuts


def test_partial_auc_is_scikit_learns_without_its_standardisation():
    y, scores = tied_data(12, n=300, levels=40)
    weight = np.random.default_rng(12).uniform(0, 2, 300)
    for c in (0.05, 0.1, 0.37):
        standardised = roc_auc_score(y, scores, max_fpr=c, sample_weight=weight)
        area = c**2 / 2 + (2 * standardised - 1) * (c - c**2 / 2)
        found = partial_auc(y, scores, max_fpr=c, sample_weight=weight)
        assert found == pytest.approx(area / c, rel=1e-12)
    assert partial_auc(y, scores, max_fpr=1) == pytest.approx(auc(y, scores), rel=1e-13)
    assert partial_auc(y, scores, min_tpr=0) == pytest.approx(auc(y, scores), rel=1e-13)


def test_partial_auc_by_the_rows_at_the_top_and_at_the_bottom():
    rng = np.random.default_rng(13)
    y, scores = np.repeat([0, 1], [20, 30]), rng.permutation(50)
    highest = np.sort(heights(y, scores))[::-1][:5]
    assert partial_auc(y, scores, max_fpr=5 / 20) == pytest.approx(np.mean(1 - highest / 30))
    lowest = np.sort(reverse_heights(y, scores))[-6:]
    assert partial_auc(y, scores, min_tpr=24 / 30) == pytest.approx(np.mean(1 - lowest / 20))


def test_roc_points_are_scikit_learns_in_counts():
    y, scores = tied_data(14)
    weight = np.random.default_rng(14).uniform(0.5, 2, len(y))
    fpr, tpr, thresholds = roc_curve(y, scores, sample_weight=weight, drop_intermediate=False)
    false, true, cuts = roc_points(y, scores, sample_weight=weight)
    np.testing.assert_allclose(false, fpr * weight[y == 0].sum(), rtol=1e-12)
    np.testing.assert_allclose(true, tpr * weight[y == 1].sum(), rtol=1e-12)
    np.testing.assert_array_equal(cuts, thresholds)


def test_roc_points_up_to_a_number_of_false_positives():
    y, scores = [0, 1, 0, 0, 1, 1], [6, 5, 4, 4, 3, 2]
    assert [part.tolist() for part in roc_points(y, scores, 1)] == [[0, 1, 1], [0, 0, 1], [np.inf, 6, 5]]
    assert roc_points(y, scores, 2)[0].tolist() == [0, 1, 1]
    assert roc_points(y, scores, 3)[0].tolist() == [0, 1, 1, 3, 3, 3]


@pytest.mark.parametrize("fpr", [0.0, 0.1, 0.29, 0.5, 1.0])
def test_tpr_at_fpr_is_the_best_threshold_allowed(fpr):
    rng = np.random.default_rng(15)
    y = np.repeat([0, 1], 100)
    scores = rng.integers(0, 60, 200) + 8 * y
    found_fpr, found_tpr, _ = roc_curve(y, scores, drop_intermediate=False)
    assert tpr_at_fpr(y, scores, fpr) == pytest.approx(found_tpr[found_fpr <= fpr].max(), rel=1e-14)


def test_tpr_at_fpr_takes_a_rate_that_is_met_exactly():
    y, scores = np.repeat([0, 1, 0], [29, 10, 71]), -np.arange(110)
    assert tpr_at_fpr(y, scores, 0.29) == 1
    assert tpr_at_fpr(y, scores, 0.28) == 0


def test_all_rows_have_a_false_positive_rate_of_1_whatever_the_rounding():
    y, scores = np.repeat([0, 1], [100, 1]), -np.arange(101)
    weights = np.random.default_rng(0).random((50, 101))
    assert all(tpr_at_fpr(y, scores, 1.0, sample_weight=weight) == 1 for weight in weights)


def test_precision_and_recall_of_a_fraction_and_beyond_the_end():
    y, scores = [1, 0, 1, 0, 0, 1, 0, 0, 0, 0], np.arange(10, 0, -1)
    assert precision_at(y, scores, 0.3) == pytest.approx(2 / 3)
    assert precision_at(y, scores, 0.05) == 1
    assert recall_at(y, scores, 0.6) == 1
    assert precision_at(y, scores, 30) == pytest.approx(3 / 30)
    assert recall_at(y, scores, 30) == 1


# Groups without a class


GROUPED = {"y_true": [1, 0, 0, 0, 1, 1], "scores": [2, 1, 2, 1, 2, 1], "groups": list("aabbcc")}


@pytest.mark.parametrize(("empty", "value"), [("skip", 1), ("zero", 1 / 3), ("one", 1)])
def test_empty_groups_where_both_classes_are_needed(empty, value):
    assert auc(**GROUPED, empty=empty) == pytest.approx(value)
    assert empty_groups(GROUPED["y_true"], GROUPED["groups"]).tolist() == ["b", "c"]


@pytest.mark.parametrize(("empty", "value"), [("skip", 1), ("zero", 2 / 3), ("one", 1)])
def test_empty_groups_where_positives_are_needed(empty, value):
    assert precision_at(**GROUPED, k=1, empty=empty) == pytest.approx(value)
    assert empty_groups(GROUPED["y_true"], GROUPED["groups"], need="positive").tolist() == ["b"]


@pytest.mark.parametrize(("empty", "value"), [("skip", 1 / 2), ("zero", 1 / 6), ("one", 5 / 6)])
def test_empty_groups_of_the_logarithm_of_a_risk(empty, value):
    data = GROUPED | {"scores": [1, 1, 2, 1, 2, 1], "sample_weight": [0.5, 1, 1, 1, 1, 1]}
    assert p_norm_risk(**data, p=1, empty=empty) == pytest.approx(value)
    assert p_norm_risk(**data, p=1, empty=empty, log=True) == pytest.approx(np.log(value))


def test_logarithm_of_a_risk_over_groups_is_that_of_the_mean_risk():
    y, scores = tied_data(16, n=90)
    groups = np.arange(90) % 4
    expected = np.log(p_norm_risk(y, scores, 8, groups=groups))
    assert p_norm_risk(y, scores, 8, groups=groups, log=True) == pytest.approx(expected, rel=1e-13)


@every_measure
def test_groups_without_a_class_can_be_refused(measure):
    with pytest.raises(InputError, match=r"\d of 3 groups lack positive rows .*, first 'b': drop"):
        measure(**GROUPED, empty="raise")


@pytest.mark.parametrize("measure", BOTH_CLASSES.values(), ids=BOTH_CLASSES.keys())
def test_no_group_with_both_classes(measure):
    with pytest.raises(InputError, match="not defined: every group lacks"):
        measure([0, 1], [1, 2], groups=[0, 1])
    with pytest.raises(InputError, match="not defined: y_true lacks"):
        measure([0, 1], [1, 2], sample_weight=[1, 0])


@pytest.mark.parametrize("measure", POSITIVES_ONLY.values(), ids=POSITIVES_ONLY.keys())
def test_rank_measures_need_no_negatives(measure):
    perfect = measure(np.array([1, 1, 1, 1, 0, 0]), -np.arange(6), sample_weight=[1, 1, 1, 1, 0, 0])
    assert measure([1, 1, 1, 1], [4, 3, 2, 1], pos_label=1) == pytest.approx(perfect)
    with pytest.raises(InputError, match="not defined: y_true lacks"):
        measure([0, 0], [1, 2], pos_label=1)


# Input that cannot be used


@every_measure
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_true": []}, "at least one row"),
        ({"y_true": [[0], [1], [1]]}, r"one label per row.* got shape \(3, 1\)"),
        ({"y_true": [0, 1, np.nan]}, "missing or mixed labels|not finite in row 2: fill or drop it"),
        ({"y_true": np.array(["a", None, "b"], dtype=object)}, "missing or mixed labels"),
        ({"pos_label": 7}, "`pos_label=7` is not in y_true"),
        ({"scores": [1, 2]}, r"scores needs one number for each of the 3 rows .* got shape \(2,\)"),
        ({"scores": np.ones((3, 2))}, r"got shape \(3, 2\)"),
        ({"scores": [1, np.nan, 2]}, "scores is NaN in row 1"),
        ({"scores": ["a", "b", "c"]}, "scores must be numbers"),
        ({"sample_weight": [1, -1, 1]}, "negative or infinite weight"),
        ({"sample_weight": [1, np.inf, 1]}, "negative or infinite weight"),
        ({"sample_weight": [1, np.nan, 1]}, "sample_weight is NaN in row 1"),
        ({"sample_weight": [1, 1]}, "sample_weight needs one number"),
        ({"groups": [1, 1]}, "`groups` needs one id per row"),
        ({"empty": "ignore"}, "unknown `empty` 'ignore': use one of skip, zero, one, raise"),
    ],
)
def test_faults_are_one_line_that_says_what_to_do(measure, changes, message):
    with pytest.raises(InputError, match=message) as caught:
        measure(**({"y_true": [0, 1, 1], "scores": [1, 2, 3]} | changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (auc, {"ties": "half"}, "unknown `ties` 'half': use one of pessimistic, average, optimistic"),
        (p_norm_risk, {"p": 0}, "`p` must be a positive number or inf, got 0"),
        (p_norm_risk, {"p": np.nan}, "`p` must be a positive number"),
        (heights, {"margin": np.inf}, "`margin` must be a finite number"),
        (partial_auc, {"max_fpr": 0}, "use `max_fpr` > 0 or `min_tpr` < 1"),
        (partial_auc, {"max_fpr": 1.5}, "`max_fpr` must be between 0 and 1, got 1.5"),
        (partial_auc, {"min_tpr": 1}, "use `max_fpr` > 0 or `min_tpr` < 1"),
        (tpr_at_fpr, {"fpr": -0.1}, "`fpr` must be between 0 and 1"),
        (precision_at, {"k": 0}, "`k` must be a number of rows"),
        (precision_at, {"k": 2.5}, "`k` must be a number of rows"),
        (recall_at, {"k": np.inf}, "`k` must be a number of rows"),
        (roc_points, {"max_false_positives": -1}, "`max_false_positives` must be between 0 and inf"),
        (roc_points, {"sample_weight": [0, 1, 1]}, "needs a positive and a negative row"),
    ],
)
def test_faulty_options(function, options, message):
    with pytest.raises(InputError, match=message):
        function([0, 1, 1], [1, 2, 3], **options)


def test_many_rows_need_no_table_of_pairs():
    y, scores = np.arange(400_000) % 2, np.arange(400_000.0)  # a table would have 4e10 entries
    assert auc(y, scores) == pytest.approx(0.5 + 1 / 400_000)
    assert p_norm_risk(y, scores, 1) == 200_000 * 199_999 / 2


# Scorers


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.where(X[:, 0] + rng.normal(size=120) > 0, "good", "bad")
    return LogisticRegression().fit(X, y), X, y


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("auc", auc),
        ("partial_auc", partial_auc),
        ("partial_auc_0.05", partial(partial_auc, max_fpr=0.05)),
        ("precision_at", partial(precision_at, k=10)),
        ("precision_at_100", partial(precision_at, k=100)),
        ("recall_at_0.25", partial(recall_at, k=0.25)),
        ("recall_at", partial(recall_at, k=10)),
        ("tpr_at_fpr", partial(tpr_at_fpr, fpr=0.01)),
        ("tpr_at_fpr_0.2", partial(tpr_at_fpr, fpr=0.2)),
        ("average_reciprocal_rank", average_reciprocal_rank),
        ("push_dcg", push_dcg),
        ("r_max", lambda y, s: -r_max(y, s)),
        ("p_norm_risk", lambda y, s: -p_norm_risk(y, s, 4, normalize=True)),
        ("p_norm_risk_16", lambda y, s: -p_norm_risk(y, s, 16, normalize=True)),
        ("p_norm_risk_inf", lambda y, s: -p_norm_risk(y, s, np.inf, normalize=True)),
        ("roc_auc", roc_auc_score),
    ],
)
def test_scorers_are_the_measures(fitted, name, expected):
    model, X, y = fitted
    assert get_scorer(name)(model, X, y) == expected(y, model.decision_function(X))


def test_scorers_take_probabilities(fitted):
    _, X, y = fitted
    model = GaussianNB().fit(X, y)
    assert get_scorer("auc")(model, X, y) == auc(y, model.predict_proba(X)[:, 1])


@pytest.mark.parametrize("name", ["nonsense", "precision_at_many", "auc_3", ""])
def test_unknown_scorers_list_the_names(name):
    with pytest.raises(
        InputError, match=r"unknown scorer .*: (did you mean .*\? U|u)se one of auc, partial_auc, tpr_at_fpr"
    ):
        get_scorer(name)


def test_scorers_of_graded_relevance_take_predictions():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 4, 60)
    model = LinearRegression().fit(X, y)
    assert get_scorer("ndcg@5")(model, X, y) == ndcg(y, model.predict(X), k=5)
    assert get_scorer("map")(model, X, y) == average_precision(y, model.predict(X))


def test_scorers_get_groups_and_weights_by_metadata_routing(fitted):
    _, X, y = fitted
    groups, weight = np.arange(120) % 6, np.random.default_rng(1).uniform(0, 2, 120)
    folds = GroupKFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = get_scorer("auc").set_score_request(groups=True, sample_weight="cost")
        found = cross_validate(
            LogisticRegression(), X, y, scoring=scorer, cv=folds, params={"groups": groups, "cost": weight}
        )["test_score"]
    expected = []
    for train, test in folds.split(X, y, groups):
        scores = LogisticRegression().fit(X[train], y[train]).decision_function(X[test])
        expected.append(auc(y[test], scores, groups=groups[test], sample_weight=weight[test]))
    np.testing.assert_allclose(found, expected)


def test_ties_as_given_read_the_same_from_both_ends():
    rng = np.random.default_rng(3)
    y, scores, groups = rng.integers(0, 2, 60), rng.integers(0, 4, 60), rng.integers(0, 3, 60)
    whole = auc(y, scores, ties="given", groups=groups)
    assert partial_auc(y, scores, max_fpr=1, ties="given", groups=groups) == pytest.approx(whole)
    assert partial_auc(y, scores, min_tpr=0, ties="given", groups=groups) == pytest.approx(whole)


def test_scorers_take_two_numbers_for_classes():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 2)), rng.integers(1, 3, 40)
    model = LogisticRegression().fit(X, y)
    expected = precision_at(y == 2, model.decision_function(X), k=5)
    assert get_scorer("precision_at_5")(model, X, y) == expected


@pytest.mark.parametrize("measure", BOTH_CLASSES.values(), ids=BOTH_CLASSES.keys())
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 1, 1], "single class, 1: give positives and negatives"),
        ([0, 1, 2], "3 distinct labels: make it binary"),
    ],
)
def test_measures_of_two_classes_refuse_other_labels(measure, y, message):
    with pytest.raises(InputError, match=message):
        measure(y, [3, 2, 1])
