"""Additive rankers: equality with a linear ranker on ramps, constraints, pairs, selection, and input types."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from apexrank import (
    AdditiveRanker,
    AdditiveRetargeting,
    InputError,
    LogisticRanker,
    MonotoneRetargeting,
    PNormPush,
)
from apexrank.metrics import auc
from apexrank.objectives.log_loss import LogLoss
from apexrank.preprocessing import RampEncoder
from apexrank.preprocessing.ramps import learn_basis
from apexrank.rankers import additive as additive_module
from apexrank.rankers.interactions import knot_mass, screen_pairs


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def curved(rng):
    """A bowl, a line, an interaction and noise, with some missing values."""
    X = rng.normal(size=(1500, 6))
    lift = X[:, 0] ** 2 + X[:, 1] + 1.5 * X[:, 2] * X[:, 3]
    y = rng.random(1500) < 1 / (1 + np.exp(2 - lift))
    X[rng.random(1500) < 0.1, 1] = np.nan
    return X, y


@pytest.mark.parametrize("p", [None, 1, 4, np.inf])
def test_it_is_a_linear_ranker_on_ramps(curved, p):
    X, y = curved
    additive = AdditiveRanker(p, alpha=0.02).fit(X, y)
    ramps = RampEncoder(additive.n_knots).fit(X)
    linear = (LogisticRanker(0.02) if p is None else PNormPush(p, alpha=0.02)).fit(ramps.transform(X), y)
    assert additive.objective_ == pytest.approx(linear.objective_, abs=1e-6)
    scores = additive.decision_function(X)
    np.testing.assert_allclose(scores, linear.decision_function(ramps.transform(X)), atol=2e-3)
    assert additive.dual_gap_ < 1e-6


@pytest.mark.parametrize("n_pairs", [0, "auto"])
def test_at_the_strengths_found_it_is_the_ridge_problem(curved, n_pairs):
    """The penalised log loss over the functions, as a sum over the rows, and its gradient in each value of a curve."""
    X, y = np.nan_to_num(curved[0]), curved[1]
    ranker = AdditiveRanker(n_pairs=n_pairs).fit(X, y)
    assert ranker.converged_
    assert ranker.dual_gap_ < 1e-9
    scores = ranker.decision_function(X)
    penalty = 0.5 * np.sum(ranker.coef_**2)
    value = LogLoss(y).value_and_grad(scores)[0] + penalty
    assert ranker.objective_ * len(y) == pytest.approx(value, rel=1e-9)
    rises = [
        strength / 2 * (len(shape.knots) - 1) * np.sum(np.diff(shape.values) ** 2)
        for shape, strength in zip(ranker.shapes_, ranker.strength_, strict=False)
    ]
    if n_pairs == 0:
        assert sum(rises) == pytest.approx(penalty, rel=1e-6)


def test_strengths_tell_curves_from_noise(curved):
    X, y = curved
    ranker = AdditiveRanker().fit(X, y)
    assert [pair.features for pair in ranker.pairs_] == [(2, 3)]
    bowl, line, noise = ranker.edf_[0], ranker.edf_[1], ranker.edf_[4:6]
    assert bowl > line > 1.5
    assert noise.max() < 1.5
    assert len(ranker.edf_) == len(ranker.strength_) == 7
    assert np.ptp(ranker.shapes_[5].values) < 0.3 < np.ptp(ranker.shapes_[0].values)


def test_pairs_among_noise_are_not_added(rng):
    """The best of many candidates by chance has no evidence."""
    X, y = rng.normal(size=(400, 20)), rng.random(400) < 0.3
    assert len(AdditiveRanker().fit(X, y).pairs_) <= 2


def test_a_push_has_the_strengths_of_the_log_odds(curved):
    X, y = curved
    odds, push = AdditiveRanker().fit(X, y), AdditiveRanker(p=4).fit(X, y)
    np.testing.assert_array_equal(push.strength_, odds.strength_)
    assert push.dual_gap_ < 1e-9
    # the scores of a push are log-odds divided by 1 + p
    slope = np.polyfit(odds.decision_function(X), push.decision_function(X), 1)[0]
    assert 0.1 < slope < 0.3
    groups = np.repeat(np.arange(15), 100)
    inside = AdditiveRanker(p=4).fit(X, y, groups=groups)
    np.testing.assert_array_equal(inside.strength_, odds.strength_)
    with pytest.raises(InputError, match="groups"):
        AdditiveRanker().fit(X, y, groups=groups)


def test_bands_cover_the_curves_that_made_the_rows():
    """Pointwise along the curves on average, and simultaneously for whole curves."""
    inside, whole, at = [], [], np.linspace(-1.9, 1.9, 77)
    curves = (lambda x: np.sin(2 * x), lambda x: 1.5 * (x > 0.3), lambda x: 0 * x)
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, size=(1500, 3))
        lift = sum(curve(X[:, j]) for j, curve in enumerate(curves)) - 1
        ranker = AdditiveRanker(n_pairs=0).fit(X, rng.random(1500) < 1 / (1 + np.exp(-lift)))
        for j, curve in enumerate(curves):
            truth = curve(at) - curve(X[:, j]).mean()
            for found, simultaneous in ((inside, False), (whole, True)):
                low, high = ranker.shapes_[j].band(at, 0.9, simultaneous=simultaneous)
                found.append((low <= truth) & (truth <= high))
    smooth, threshold = np.mean(inside[::3]), np.mean(inside[1::3])
    assert 0.85 < threshold < 0.95 < smooth < 0.99  # a ridge on increments is too wide for smooth curves
    assert np.mean([row.all() for row in whole[::3]]) >= 0.9


def test_standard_errors_are_those_of_the_inverse_hessian(rng):
    X, weight = rng.normal(size=(300, 2)), rng.integers(0, 3, 300).astype(float)
    X[:30, 0] = np.nan
    y = rng.random(300) < 1 / (1 + np.exp(-np.nan_to_num(X[:, 0])))
    ranker = AdditiveRanker(n_knots=5, n_pairs=0).fit(X, y, sample_weight=weight)
    ramps = RampEncoder(5).fit(X, sample_weight=weight)
    terms = np.array([0] * 4 + [9] + [1] * 4)
    B = np.column_stack([np.ones(300), ramps.transform(X)])
    p = 1 / (1 + np.exp(-ranker.decision_function(X)))
    gap = ranker.shapes_[0].missing - ranker.shapes_[0].values[ramps.basis_.middle[0]]
    share = (gap / ranker.coef_[0, 4]) ** -2  # the strength of missing values
    strength = np.array([0.0, *(share if t == 9 else ranker.strength_[t] for t in terms)])
    V = np.linalg.inv(B.T @ ((weight * p * (1 - p))[:, None] * B) + np.diag(strength))
    for j, columns in enumerate((slice(1, 6), slice(6, 10))):
        own = B[:, columns] - np.average(B[:, columns], axis=0, weights=weight)
        error = np.sqrt(np.einsum("ij,jk,ik->i", own, V[columns, columns], own))
        band = ranker.shapes_[j].band(X[:, j], 2 * norm.cdf(1) - 1, simultaneous=False)
        at_knot = np.isin(X[:, j], ranker.shapes_[j].knots) | np.isnan(X[:, j])
        np.testing.assert_allclose(np.diff(band, axis=0)[0, at_knot] / 2, error[at_knot], rtol=1e-6)


def test_many_rows_give_strengths_by_a_sample(curved, monkeypatch):
    X, y = curved
    weight = np.tile([1.0, 0.0], 750)
    monkeypatch.setattr(additive_module, "STRENGTH_ROWS", 400)
    some = AdditiveRanker(n_pairs=0).fit(X, y, sample_weight=weight)
    monkeypatch.setattr(additive_module, "STRENGTH_ROWS", 1500)
    every = AdditiveRanker(n_pairs=0).fit(X, y, sample_weight=weight)
    assert some.converged_
    assert (some.strength_ != every.strength_).any()
    assert some.objective_ == pytest.approx(every.objective_, rel=0.1)


def test_the_score_is_the_sum_of_the_effects(curved):
    X, y = curved
    ranker = AdditiveRanker(alpha=0.01, n_pairs=2).fit(X, y)
    total = ranker.intercept_[0] + sum(shape(X[:, shape.feature]) for shape in ranker.shapes_)
    total = total + sum(pair(X[:, pair.features[0]], X[:, pair.features[1]]) for pair in ranker.pairs_)
    np.testing.assert_allclose(ranker.decision_function(X), total, atol=1e-12)
    np.testing.assert_allclose(ranker.contributions(X).sum(axis=1) + ranker.intercept_[0], total, atol=1e-12)
    for shape in ranker.shapes_:
        assert abs(shape(X[:, shape.feature]).mean()) < 1e-12
        assert shape.counts.sum() + shape.missing_count == len(X)


def test_pairs_are_found_and_help(curved):
    X, y = curved
    half = slice(0, 1000), slice(1000, None)
    alone = AdditiveRanker(n_pairs=0).fit(X[half[0]], y[half[0]])
    paired = AdditiveRanker(n_pairs=1).fit(X[half[0]], y[half[0]])
    assert [pair.features for pair in paired.pairs_] == [(2, 3)]
    before, after = (auc(y[half[1]], ranker.decision_function(X[half[1]])) for ranker in (alone, paired))
    assert after > before + 0.03
    assert paired.dual_gap_ < 1e-9


def test_screening_is_that_of_brute_force(rng):
    """Cell sums of the slopes minus their additive part, by weighted least squares over the cells."""
    X, slope = rng.random((300, 4)), rng.normal(size=300)
    X[:, 2] = rng.integers(0, 3, 300)
    curvature, weight = rng.integers(1, 4, (2, 300)).astype(float)
    slope += np.where((X[:, 1] > 0.5) == (X[:, 3] > 0.5), 1.0, -1.0)
    basis = learn_basis(X, None, 9, {2: list("abc")})
    code = [
        X[:, 2] if j == 2 else np.clip(np.searchsorted(basis.knots[j], X[:, j], "right") - 1, 0, 7)
        for j in range(4)
    ]
    strengths = {}
    for a in range(4):
        for b in range(a + 1, 4):
            cells, where = np.unique(np.column_stack([code[a], code[b]]), axis=0, return_inverse=True)
            E, N = np.bincount(where.ravel(), slope), np.bincount(where.ravel(), curvature)
            design = np.hstack([cells[:, [0]] == np.arange(8), cells[:, [1]] == np.arange(8)]).astype(float)
            root = np.sqrt(N)
            fit = design @ np.linalg.lstsq(root[:, None] * design, E / root, rcond=None)[0]
            free = len(cells) - np.linalg.matrix_rank(design)
            ratio = (slope**2 / weight).sum() / curvature.sum()
            strengths[a, b] = (((E - N * fit) ** 2 / N).sum() / ratio - free) / np.sqrt(2 * free)
    ranked = screen_pairs(basis, X, [0, 1, 2, 3], weight, slope, curvature)
    assert ranked == sorted(strengths, key=strengths.get, reverse=True)
    assert ranked[0] == (1, 3)


def test_mass_at_knots_adds_up(rng):
    x, weight = rng.random(50), rng.random(50)
    knots = np.array([0.0, 0.3, 1.0])
    expected = [np.interp(x, knots, row) @ weight for row in np.eye(3)]
    np.testing.assert_allclose(knot_mass(x, knots, weight), expected)


# ---------------------------------------------------------------- monotone


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, -1]),
    st.integers(2, 12),
    st.booleans(),
    st.sampled_from([0.01, "auto"]),
)
def test_monotone_for_every_pair_of_inputs(seed, sign, n_knots, paired, alpha):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(60, 3)), int(rng.integers(0, 3)))
    X[rng.random((60, 3)) < 0.05] = np.nan
    y = np.arange(60) % 3 == 0
    ranker = AdditiveRanker(2, alpha=alpha, n_knots=n_knots, monotonic_cst={0: sign}, n_pairs=int(paired))
    ranker.fit(X, y)
    assert ranker.dual_gap_ < 1e-6
    assert all(0 not in pair.features for pair in ranker.pairs_)
    rows = rng.normal(scale=2, size=(40, 3))
    higher = rows.copy()
    higher[:, 0] += np.abs(rng.normal(size=40))
    gain = sign * (ranker.decision_function(higher) - ranker.decision_function(rows))
    assert gain.min() >= -1e-12


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 0], "`monotonic_cst` has 2 entries, X 3 columns"),
        ({"b": 1}, "the column 'b', which X does not have"),
        ({3: 1}, "the column 3, which X does not have"),
        ({0: 2}, "must be 1, -1 or 0 for each column, got 2"),
    ],
)
def test_wrong_constraints_are_refused(rng, given, message):
    with pytest.raises(InputError, match=message):
        AdditiveRanker(monotonic_cst=given).fit(rng.normal(size=(20, 3)), np.arange(20) % 2)


# ---------------------------------------------------------------- weights, rows and columns of every kind


@pytest.mark.parametrize(("n_pairs", "alpha"), [(0, 0.05), (2, 0.05), ("auto", "auto")])
def test_weights_are_repetitions(curved, rng, n_pairs, alpha):
    X, y = curved[0][:300], curved[1][:300]
    weight = rng.integers(0, 3, len(X))
    options = {"alpha": alpha, "n_pairs": n_pairs, "n_knots": 9}
    weighted = AdditiveRanker(**options).fit(X, y, sample_weight=weight)
    repeated = AdditiveRanker(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert [pair.features for pair in weighted.pairs_] == [pair.features for pair in repeated.pairs_]
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_columns_of_text_missing_values_and_unseen_ones(rng, library):
    n = 400
    city = rng.choice(["Oslo", "Rome", "Bern"], n)
    y = (city == "Rome") & (rng.random(n) < 0.8) | (rng.random(n) < 0.1)
    age = np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n))
    words = [None if rng.random() < 0.05 else word for word in city]
    ranker = AdditiveRanker(monotonic_cst={"age": 1}).fit(library({"city": words, "age": age}), y)
    shape = ranker.shapes_[0]
    assert shape.levels == ("Bern", "Oslo", "Rome")
    assert shape.values.argmax() == 2
    rows = library({"city": ["Rome", "Paris", None], "age": [40.0, 40.0, np.nan]})
    effects = ranker.contributions(rows)
    assert effects[0, 0] == shape.values[2]
    assert effects[1, 0] == effects[2, 0] == shape.missing != 0
    assert effects[2, 1] == ranker.shapes_[1].missing
    assert list(ranker.feature_names_in_) == ["city", "age"]
    with pytest.raises(InputError, match="holds text"):
        AdditiveRanker(monotonic_cst={"city": 1}).fit(library({"city": words, "age": age}), y)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"day": pd.date_range("2026-01-01", periods=8)}), "column 'day' holds dates"),
        (pl.DataFrame({"day": [datetime.date(2026, 1, 1)] * 8}), "column 'day' holds dates"),
        (pd.DataFrame(np.ones((8, 2)), columns=["a", "a"]), "the column 'a' twice"),
    ],
)
def test_frames_that_cannot_be_read_are_refused(frame, message):
    with pytest.raises(InputError, match=message):
        AdditiveRanker().fit(frame, np.arange(8) % 2)


def test_a_text_that_training_had_not_has_the_mean_effect_where_nothing_was_missing(rng):
    frame = pd.DataFrame({"city": ["a", "b"] * 20, "x": rng.normal(size=40)})
    ranker = AdditiveRanker().fit(frame, np.arange(40) % 2)
    assert ranker.contributions(pd.DataFrame({"city": ["z"], "x": [0.0]}))[0, 0] == 0


@pytest.mark.parametrize(
    "case", ["separating", "two positives", "constant", "missing", "more columns than rows", "huge weights"]
)
def test_degenerate_rows_have_an_answer(rng, case, capfd):
    X, y = rng.normal(size=(300, 3)), rng.random(300) < 0.3
    X, y = {
        "separating": (np.column_stack([y, X]), y),
        "two positives": (X, np.arange(300) < 2),
        "constant": (np.ones((300, 2)), y),
        "missing": (np.full((300, 2), np.nan), y),
        "more columns than rows": (rng.normal(size=(6, 200)), np.arange(6) % 2 == 0),
        "huge weights": (X[:60], y[:60]),
    }[case]
    weight = np.full(len(y), 1e9 if case == "huge weights" else 1.0)
    ranker = AdditiveRanker().fit(X, y, sample_weight=weight)
    assert ranker.converged_
    assert np.abs(ranker.decision_function(X)).max() < (100 if case == "huge weights" else 20)
    if case == "separating":
        assert auc(y, ranker.decision_function(X)) == 1
        assert ranker.edf_[0] > ranker.edf_[1:].max()
    assert capfd.readouterr().err == ""


def test_two_columns_of_many_levels_are_no_pair(rng):
    words = rng.choice(list("abcdefghijklmnopqrstuvwxyz"), (2000, 2))
    y = words[:, 0] > words[:, 1]
    frame = pd.DataFrame(words, columns=["one", "two"]).assign(x=rng.normal(size=2000))
    assert all(2 in pair.features for pair in AdditiveRanker().fit(frame, y).pairs_)


def test_too_many_coefficients_are_refused(rng, monkeypatch):
    monkeypatch.setattr(additive_module, "WIDEST", 50)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    with pytest.raises(InputError, match="96 coefficients"):
        AdditiveRanker().fit(X, y)
    assert AdditiveRanker(n_knots=9).fit(X, y).converged_


def test_constant_and_empty_columns_have_no_effect(rng):
    X = np.column_stack([rng.normal(size=50), np.full(50, 3.0), np.full(50, np.nan)])
    y = X[:, 0] > 0.5
    ranker = AdditiveRanker(n_pairs=2).fit(X, y)
    assert [float(np.abs(shape.values).max()) > 0 for shape in ranker.shapes_] == [True, False, False]
    other = ranker.decision_function([[1.0, -9.0, 5.0], [1.0, np.nan, np.nan]])
    assert other[0] == other[1]


@pytest.mark.parametrize("values", [[np.inf, 1.0], [-np.inf, 1.0]])
def test_infinite_values_are_refused(values):
    with pytest.raises(ValueError, match="infinity"):
        AdditiveRanker().fit(np.array(values * 4)[:, None], np.arange(8) % 2)


def test_huge_numbers_do_not_overflow():
    x = np.array([-1.7e308, -1e300, 0.0, 1e300, 1.7e308] * 4)[:, None]
    ranker = AdditiveRanker(alpha=0.1).fit(x, x.ravel() > 0)
    assert np.isfinite(ranker.decision_function(x)).all()
    assert (np.diff(ranker.decision_function(x[:5])) >= 0).all()


def test_sparse_rows_and_blocks_are_refused(rng):
    from scipy import sparse

    from apexrank.problem import ArrayBlocks

    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(TypeError, match="Sparse"):
        AdditiveRanker().fit(sparse.csr_array(X), y)
    with pytest.raises(InputError, match="needs its rows in memory"):
        AdditiveRanker().fit(ArrayBlocks(X, y), None)


# ---------------------------------------------------------------- the other families


def test_retargeting_of_ramps(rng):
    X, groups = rng.normal(size=(200, 3)), np.repeat(np.arange(20), 10)
    y = np.digitize(np.abs(X[:, 0]) - 0.3 * X[:, 1], [0.3, 1.0])
    ranker = AdditiveRetargeting(alpha=0.01).fit(X, y, groups=groups)
    linear = MonotoneRetargeting(alpha=0.01).fit(RampEncoder().fit_transform(X), y, groups=groups)
    assert ranker.objective_ == pytest.approx(linear.objective_, rel=1e-9)
    assert ranker.score(X, y, groups=groups) > 0.95
    monotone = AdditiveRetargeting(alpha=0.01, monotonic_cst={1: -1}, n_pairs=1).fit(X, y, groups=groups)
    assert (np.diff(monotone.shapes_[1].values) <= 0).all()
    assert monotone.dual_gap_ < 1e-6
    assert not hasattr(ranker, "partial_fit")
    X[0, 0] = np.nan
    with pytest.raises(InputError, match="kernel=None"):
        AdditiveRetargeting(kernel="rbf").fit(X, y, groups=groups)
