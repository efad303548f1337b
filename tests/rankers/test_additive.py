"""Additive rankers: equality with a linear ranker on ramps, constraints, pairs, selection, and input types."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from apexrank import (
    AdditivePush,
    AdditivePushCV,
    AdditiveRetargeting,
    InputError,
    MonotoneRetargeting,
    PNormPush,
)
from apexrank.metrics import auc
from apexrank.preprocessing import RampEncoder
from apexrank.problem.ramps import Places
from apexrank.rankers.additive import knot_mass, screen_pairs


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


@pytest.mark.parametrize("p", [1, 4, np.inf])
def test_it_is_a_linear_ranker_on_ramps(curved, p):
    X, y = curved
    additive = AdditivePush(p, alpha=0.02).fit(X, y)
    ramps = RampEncoder(additive.n_knots).fit(X)
    linear = PNormPush(p, alpha=0.02).fit(ramps.transform(X), y)
    assert additive.objective_ == pytest.approx(linear.objective_, abs=1e-6)
    scores = additive.decision_function(X)
    np.testing.assert_allclose(scores, linear.decision_function(ramps.transform(X)), atol=2e-3)
    assert additive.dual_gap_ < 1e-6


def test_the_score_is_the_sum_of_the_effects(curved):
    X, y = curved
    ranker = AdditivePush(alpha=0.01, n_pairs=2).fit(X, y)
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
    alone = AdditivePush().fit(X[half[0]], y[half[0]])
    paired = AdditivePush(n_pairs=1).fit(X[half[0]], y[half[0]])
    assert [pair.features for pair in paired.pairs_] == [(2, 3)]
    before, after = (auc(y[half[1]], ranker.decision_function(X[half[1]])) for ranker in (alone, paired))
    assert after > before + 0.03
    assert paired.dual_gap_ < 1e-9


def test_screening_is_that_of_brute_force(rng):
    """Cell sums of the residuals minus their additive part, by weighted least squares over the cells."""
    X, residual, weight = rng.random((300, 4)), rng.normal(size=300), rng.integers(1, 4, 300).astype(float)
    residual += np.where((X[:, 1] > 0.5) == (X[:, 3] > 0.5), 1.0, -1.0)
    places = Places(X, [np.linspace(0, 1, 5)] * 4)
    strengths = {}
    for a in range(4):
        for b in range(a + 1, 4):
            cells, where = np.unique(places.code[:, [a, b]], axis=0, return_inverse=True)
            E, N = np.bincount(where.ravel(), residual), np.bincount(where.ravel(), weight)
            design = np.hstack([cells[:, [0]] == np.arange(5), cells[:, [1]] == np.arange(5)]).astype(float)
            root = np.sqrt(N)
            fit = design @ np.linalg.lstsq(root[:, None] * design, E / root, rcond=None)[0]
            strengths[a, b] = ((E - N * fit) ** 2 / N).sum()
    assert screen_pairs(places, residual, weight)[0] == max(strengths, key=strengths.get) == (1, 3)


def test_mass_at_knots_adds_up(rng):
    x, weight = rng.random((50, 1)), rng.random(50)
    knots = np.array([0.0, 0.3, 1.0])
    mass = knot_mass(Places(x, [knots]), 0, weight)
    expected = [np.interp(x[:, 0], knots, row) @ weight for row in np.eye(3)]
    np.testing.assert_allclose(mass, expected)


# ---------------------------------------------------------------- monotone


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, -1]), st.integers(2, 12), st.booleans())
def test_monotone_for_every_pair_of_inputs(seed, sign, n_knots, paired):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(60, 3)), int(rng.integers(0, 3)))
    X[rng.random((60, 3)) < 0.05] = np.nan
    y = np.arange(60) % 3 == 0
    ranker = AdditivePush(p=2, alpha=0.01, n_knots=n_knots, monotonic_cst={0: sign}, n_pairs=int(paired)).fit(
        X, y
    )
    assert ranker.dual_gap_ < 1e-6
    assert all(0 not in pair.features for pair in ranker.pairs_)
    rows = rng.normal(scale=2, size=(40, 3))
    higher = rows.copy()
    higher[:, 0] += np.abs(rng.normal(size=40))
    gain = sign * (ranker.decision_function(higher) - ranker.decision_function(rows))
    assert gain.min() >= -1e-12


def test_monotone_is_the_answer_of_a_quadratic_program(rng):
    """Squared hinge over all pairs of rows: slacks and bounds, by SLSQP."""
    X = rng.normal(size=(16, 2))
    y = X[:, 0] ** 2 - X[:, 1] + rng.normal(size=16) > 0.5
    alpha, options = 0.5, {"p": 1, "loss": "squared_hinge", "price": "identity", "n_knots": 4}
    ranker = AdditivePush(alpha=alpha, monotonic_cst=[1, -1], tol=1e-9, **options).fit(X, y)
    ramps = RampEncoder(4).fit_transform(X)
    differences = (ramps[y][:, None] - ramps[~y][None]).reshape(-1, ramps.shape[1])
    d, pairs = ramps.shape[1], len(differences)

    def cost(z):
        w, slack = z[:d], z[d:]
        value = (slack @ slack) / pairs + alpha / 2 * w @ w
        return value, np.concatenate([alpha * w, 2 * slack / pairs])

    signs = [(0, None)] * 3 + [(None, 0)] * 3
    enough = {"type": "ineq", "fun": lambda z: differences @ z[:d] + z[d:] - 1}
    enough["jac"] = lambda z: np.hstack([differences, np.eye(pairs)])
    start = np.concatenate([np.zeros(d), np.ones(pairs)])
    found = minimize(
        cost,
        start,
        jac=True,
        method="SLSQP",
        bounds=signs + [(0, None)] * pairs,
        constraints=[enough],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.success
    assert ranker.objective_ == pytest.approx(found.fun, abs=1e-8)
    np.testing.assert_allclose(ranker.coef_[0], found.x[:d], atol=1e-5)
    assert (ranker.coef_[0] == 0).any()


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
        AdditivePush(monotonic_cst=given).fit(rng.normal(size=(20, 3)), np.arange(20) % 2)


# ---------------------------------------------------------------- selection of columns


def test_group_lasso_selects_whole_columns(rng):
    X = rng.normal(size=(800, 8))
    y = rng.random(800) < 1 / (1 + np.exp(1 - 2 * np.abs(X[:, 0]) - X[:, 5]))
    ranker = AdditivePush(l1_ratio=0.9)
    highest = ranker.alpha_max(X, y)

    def used(factor):
        ranker.set_params(alpha=factor * highest).fit(X, y)
        assert ranker.dual_gap_ < 1e-9
        return {shape.feature for shape in ranker.shapes_ if np.ptp(shape.values) > 0}

    constant = np.column_stack([np.ones(800), X])  # a column without coefficients is not a group
    assert ranker.alpha_max(constant, y) == pytest.approx(highest)
    assert used(1.001) == set()
    assert len(used(0.99)) == 1
    assert used(0.5) == {0, 5}
    with pytest.raises(InputError, match="leave out one"):
        AdditivePush(l1_ratio=0.5, monotonic_cst={0: 1}).fit(X, y)
    with pytest.raises(InputError, match="`l1_ratio` above 0 and below 1"):
        AdditivePush(l1_ratio=1.0, alpha=0.1).fit(X, y)


# ---------------------------------------------------------------- weights, rows and columns of every kind


@pytest.mark.parametrize("n_pairs", [0, 2])
def test_weights_are_repetitions(curved, rng, n_pairs):
    X, y = curved[0][:300], curved[1][:300]
    weight = rng.integers(0, 3, len(X))
    options = {"alpha": 0.05, "n_pairs": n_pairs, "n_knots": 9}
    weighted = AdditivePush(**options).fit(X, y, sample_weight=weight)
    repeated = AdditivePush(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert [pair.features for pair in weighted.pairs_] == [pair.features for pair in repeated.pairs_]
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_columns_of_text_missing_values_and_unseen_ones(rng, library):
    n = 400
    city = rng.choice(["Oslo", "Rome", "Bern"], n)
    y = (city == "Rome") & (rng.random(n) < 0.8) | (rng.random(n) < 0.1)
    age = np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n))
    words = [None if rng.random() < 0.05 else word for word in city]
    ranker = AdditivePush(monotonic_cst={"age": 1}).fit(library({"city": words, "age": age}), y)
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
        AdditivePush(monotonic_cst={"city": 1}).fit(library({"city": words, "age": age}), y)


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
        AdditivePush().fit(frame, np.arange(8) % 2)


def test_a_text_that_training_had_not_has_the_mean_effect_where_nothing_was_missing(rng):
    frame = pd.DataFrame({"city": ["a", "b"] * 20, "x": rng.normal(size=40)})
    ranker = AdditivePush().fit(frame, np.arange(40) % 2)
    assert ranker.contributions(pd.DataFrame({"city": ["z"], "x": [0.0]}))[0, 0] == 0


def test_constant_and_empty_columns_have_no_effect(rng):
    X = np.column_stack([rng.normal(size=50), np.full(50, 3.0), np.full(50, np.nan)])
    y = X[:, 0] > 0.5
    ranker = AdditivePush(n_pairs=2).fit(X, y)
    assert [float(np.abs(shape.values).max()) > 0 for shape in ranker.shapes_] == [True, False, False]
    other = ranker.decision_function([[1.0, -9.0, 5.0], [1.0, np.nan, np.nan]])
    assert other[0] == other[1]


@pytest.mark.parametrize("values", [[np.inf, 1.0], [-np.inf, 1.0]])
def test_infinite_values_are_refused(values):
    with pytest.raises(ValueError, match="infinity"):
        AdditivePush().fit(np.array(values * 4)[:, None], np.arange(8) % 2)


def test_huge_numbers_do_not_overflow():
    x = np.array([-1.7e308, -1e300, 0.0, 1e300, 1.7e308] * 4)[:, None]
    ranker = AdditivePush(alpha=0.1).fit(x, x.ravel() > 0)
    assert np.isfinite(ranker.decision_function(x)).all()
    assert (np.diff(ranker.decision_function(x[:5])) >= 0).all()


def test_sparse_rows_and_blocks_are_refused(rng):
    from scipy import sparse

    from apexrank.problem import ArrayBlocks

    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(TypeError, match="Sparse"):
        AdditivePush().fit(sparse.csr_array(X), y)
    with pytest.raises(InputError, match="needs its rows in memory"):
        AdditivePush().fit(ArrayBlocks(X, y), None)


# ---------------------------------------------------------------- the other families


def test_cross_validation_chooses_the_smoothness(curved):
    X, y = curved
    search = AdditivePushCV(ps=[1, 4], alphas=[100.0, 0.01], cv=3, n_knots=9).fit(X, y)
    assert search.alpha_ == 0.01
    assert search.best_estimator_.n_knots == 9
    np.testing.assert_array_equal(search.decision_function(X), search.best_estimator_.decision_function(X))
    automatic = AdditivePushCV(ps=[4], cv=2).fit(X, y)
    factors = automatic.cv_results_["alpha"] / AdditivePush().fit(X, y).alpha_
    np.testing.assert_allclose(factors, [10, 1, 0.1])


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
