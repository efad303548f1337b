from itertools import permutations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression

from apexrank.errors import InputError
from apexrank.objectives.link import UnknownLink
from apexrank.problem import ArrayBlocks, Problem
from apexrank.problem.design import Training
from apexrank.rankers.link import UnknownLinkRegressor
from apexrank.rankers.single_index import SingleIndex, _halves

LINKS = {
    "tanh": lambda t: np.tanh(2 * t),
    "exponential": np.exp,
    "step": lambda t: np.floor(t),
    "line": lambda t: t,
}


def skew(name, seed, n=2000, d=6, noise=0.1):
    """Rows far from elliptical, y = g(x·u) + noise, and u; other links and seeds than in the experiments."""
    rng = np.random.default_rng([91, seed])
    X = rng.exponential(size=(n, d)) - 1
    u = rng.normal(size=d)
    u /= np.linalg.norm(u)
    signal = LINKS[name](X @ u)
    return X, signal + noise * signal.std() * rng.normal(size=n), u


def degrees(a, b):
    return np.degrees(np.arccos(min(1.0, abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b))))


def rows_of(X, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    problem = Problem(X, UnknownLink(y, normalize=True, sample_weight=weight), 1e-4, weight)
    return SingleIndex(Training(X, y, weight, None), problem)


# ---------------------------------------------------------------- one step


def test_the_link_is_isotonic_regression_by_weight():
    rng = np.random.default_rng(0)
    theta, y, weight = rng.integers(0, 40, 100) / 8, 50 + rng.normal(size=100), rng.integers(0, 3, 100)
    own = rows_of(theta[:, None], y, weight.astype(float))
    found = own.fit(theta[own.rows])
    reference = IsotonicRegression().fit(theta, y, sample_weight=weight)
    missed = y - reference.predict(theta)
    assert found.error == pytest.approx(weight @ missed**2)
    np.testing.assert_allclose(found.residual, missed[own.rows][found.order], atol=1e-12)


def test_a_step_solves_the_normal_equations_of_rows_less_their_means_over_bins():
    X, y, _ = skew("tanh", 0, n=400, d=3)
    weight = np.random.default_rng(1).integers(1, 4, 400).astype(float)
    own, w = rows_of(X, y, weight), np.array([1.0, -0.5, 0.3])
    theta = X @ w
    at = own.fit(theta)
    order, n_bins = np.argsort(theta), round(400**0.45)
    bins = np.array_split(order, [-(-400 * k // n_bins) for k in range(1, n_bins)])
    fitted = IsotonicRegression().fit(theta, y, sample_weight=weight).predict(theta)
    means = [[np.average(v[b], weights=weight[b]) for b in bins] for v in (theta, fitted)]
    A, r = np.empty((400, 3)), np.empty(400)
    for k, b in enumerate(bins):
        left, right = max(k - 1, 0), min(k + 1, n_bins - 1)
        slope = (means[1][right] - means[1][left]) / (means[0][right] - means[0][left])
        root = np.sqrt(weight[b])
        A[b] = slope * (X[b] - np.average(X[b], axis=0, weights=weight[b])) * root[:, None]
        r[b] = (y - fitted)[b] * root
    expected = np.linalg.lstsq(A, r)[0]
    np.testing.assert_allclose(own.step(at, w), expected, rtol=1e-3, atol=1e-5)


def test_steps_lower_the_error_down_to_a_minimum():
    X, y, u = skew("tanh", 1)
    own = rows_of(X, y)
    start = u + 0.3 * np.random.default_rng(2).normal(size=6)
    end = own.minimise(start)
    before, after, truth = (own.fit(X @ w).error for w in (start, end, u))
    assert after < truth < before  # the truth is not the minimum of a sample
    assert degrees(end, u) < 0.1 * degrees(start, u)
    around = [own.fit(X @ (end + 0.02 * e)).error for e in np.vstack([np.eye(6), -np.eye(6)])]
    assert min(around) > after


def test_a_flat_link_leaves_nothing_to_do():
    X = np.arange(40.0)[:, None]
    y = np.where(np.arange(40) % 2, 1.0, 2.0)[::-1] - 0.05 * X[:, 0]  # falls: isotonic regression is constant
    own = rows_of(X, y)
    assert own.minimise(np.array([1.0])).tolist() == [1.0]
    for y in permutations([0.0, 1.0, 1.0, 2.0, 5.0]):  # bins of one row have no curvature
        assert np.isfinite(rows_of(X[:5], np.array(y)).minimise(np.array([1.0]))).all()


# ---------------------------------------------------------------- the whole fit


@pytest.mark.parametrize("name", LINKS)
def test_the_refined_direction_beats_the_convex_one(name):
    found = {"refined": [], "convex": []}
    for seed in range(4):
        X, y, u = skew(name, seed)
        model = UnknownLinkRegressor().fit(X, y)
        found["refined"].append(degrees(model.coef_, u))
        found["convex"].append(degrees(model.convex_coef_, u))
        assert model.refined_ == (not np.array_equal(model.coef_, model.convex_coef_))
    refined, convex = (np.mean(angles) for angles in found.values())
    assert refined <= (1.1 if name == "line" else 0.75) * convex  # a straight line leaves nothing to improve


def test_certificates_are_those_of_the_convex_stage():
    X, y, _ = skew("exponential", 0)
    model, plain = UnknownLinkRegressor().fit(X, y), UnknownLinkRegressor(refine=False).fit(X, y)
    assert model.refined_
    assert not plain.refined_
    np.testing.assert_array_equal(model.convex_coef_, plain.coef_)
    assert (model.objective_, model.dual_gap_) == (plain.objective_, plain.dual_gap_)
    np.testing.assert_array_equal(model.fitted_, plain.fitted_)
    scale = X.std(axis=0)
    lengths = [np.linalg.norm(w * np.hypot(scale, 1e-2)) for w in (model.coef_, plain.coef_)]
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-6)
    reference = IsotonicRegression(out_of_bounds="clip").fit(model.index(X), y)
    np.testing.assert_allclose(model.predict(X), reference.predict(model.index(X)), atol=1e-9)


def test_steps_that_predict_held_out_rows_worse_are_not_taken(monkeypatch):
    X, y, _ = skew("tanh", 0)
    monkeypatch.setattr(SingleIndex, "minimise", lambda self, w: w + 0.5 * np.abs(w).max())
    model = UnknownLinkRegressor().fit(X, y)
    assert not model.refined_
    np.testing.assert_array_equal(model.coef_, UnknownLinkRegressor(refine=False).fit(X, y).coef_)


def test_noise_alone_is_not_refined_into_a_worse_predictor():
    worse = 0.0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(300, 5)), rng.normal(size=300)
        new = rng.normal(size=(2000, 5))
        model, plain = UnknownLinkRegressor().fit(X, y), UnknownLinkRegressor(refine=False).fit(X, y)
        worse += np.mean(model.predict(new) ** 2) - np.mean(plain.predict(new) ** 2)
    assert worse / 6 < 0.05


def test_weights_are_repetitions_and_have_no_unit():
    X, y, _ = skew("exponential", 3, n=600)
    count = np.random.default_rng(3).integers(0, 4, 600)
    model = UnknownLinkRegressor(tol=1e-11)
    once = clone(model).fit(X, y, sample_weight=count)
    often = clone(model).fit(np.repeat(X, count, axis=0), np.repeat(y, count))
    tiny = clone(model).fit(X, y, sample_weight=count / 1024)
    assert once.refined_
    for other in (often, tiny):
        np.testing.assert_allclose(other.coef_, once.coef_, rtol=1e-6)
        np.testing.assert_allclose(other.predict(X), once.predict(X), rtol=1e-6, atol=1e-9)


def test_units_of_columns_and_y_do_not_matter():
    X, y, _ = skew("exponential", 4, n=600)
    model = UnknownLinkRegressor(alpha=0.0, tol=1e-11)
    one, other = clone(model).fit(X, y), clone(model).fit(X * 2.0 ** np.arange(6) + 8, 1024 * y - 4096)
    assert one.refined_
    np.testing.assert_allclose(other.coef_ * 2.0 ** np.arange(6), 1024 * one.coef_, rtol=1e-5)


def test_halves_keep_equal_rows_together():
    y, theta = np.array([1.0, 1.0, 0.0, 2.0, 1.0, 0.0]), np.array([5.0, 4.0, 1.0, 1.0, 5.0, 1.0])
    assert _halves(y, theta).tolist() == [0, 1, 0, 1, 0, 0]
    rng = np.random.default_rng(0)
    assert _halves(rng.normal(size=101), rng.normal(size=101)).sum() == 50


def test_convex_stage_only(monkeypatch):
    X, y, _ = skew("tanh", 0, n=200)
    for options in ({"kernel": "linear"}, {"link": "cost"}, {"refine": False}):
        assert not UnknownLinkRegressor(**options).fit(X, y).refined_
    two = np.where(np.arange(200) == 7, 1.0, 0.0)  # one half has one value of y only
    assert not UnknownLinkRegressor().fit(X, two).refined_
    few = UnknownLinkRegressor().fit(X[:4], y[:4])
    assert np.isfinite(few.coef_).all()
    monkeypatch.setattr("apexrank.problem.problem.WIDEST_HESSIAN", 5)
    assert not UnknownLinkRegressor(solver="lbfgs").fit(X, y).refined_


def test_a_warm_start_continues_from_the_convex_stage():
    X, y, _ = skew("exponential", 0)
    model = UnknownLinkRegressor(warm_start=True).fit(X, y)
    first = model.coef_
    assert len(model.fit(X, y).history_) == 1
    np.testing.assert_allclose(model.coef_, first, rtol=1e-12)


# ---------------------------------------------------------------- the interval of the direction


def test_intervals_of_the_direction_cover_the_truth_and_shrink_with_the_noise():
    covered, widths = [], []
    for noise in (0.05, 0.4):
        for seed in range(5):
            X, y, u = skew("tanh", 50 + seed, n=400, d=3, noise=noise)
            model = UnknownLinkRegressor().fit(X, y)
            found = model.direction_interval(X, y, n_resamples=60)
            covered += ((found.low <= u) & (u <= found.high)).tolist()
            widths.append(np.mean(found.high - found.low))
            np.testing.assert_allclose(found.direction, model.coef_ / np.linalg.norm(model.coef_))
            assert degrees(found.direction, u) < 2 * found.degrees
    assert np.mean(covered) > 0.8  # of 30 entries at a level of 95 %
    assert max(widths[:5]) < min(widths[5:])


def test_intervals_are_those_of_plain_refits():
    """Each draw is a fit with repeated rows, whichever stage the fit used."""
    X, y, _ = skew("line", 0, n=60, d=2)
    for refine in (False, True):
        model = UnknownLinkRegressor(refine=refine, tol=1e-10).fit(X, y)
        model.refined_ = refine
        found = model.direction_interval(X, y, n_resamples=5, confidence=0.5, random_state=3)
        rng, draws = np.random.default_rng(3), []
        for _ in range(5):
            rows = rng.integers(0, 60, 60)
            w = UnknownLinkRegressor(refine=False, tol=1e-10).fit(X[rows], y[rows]).coef_
            w = rows_of(X[rows], y[rows]).minimise(w) if refine else w
            draws.append(w / np.linalg.norm(w))
        # draws stop at a scaled gradient of 1e-4
        np.testing.assert_allclose(found.low, np.quantile(draws, 0.25, axis=0), rtol=1e-3)
        np.testing.assert_allclose(found.high, np.quantile(draws, 0.75, axis=0), rtol=1e-3)


def test_directions_that_do_not_exist():
    X, y, _ = skew("tanh", 0, n=50)
    for model in (UnknownLinkRegressor(kernel="rbf").fit(X, y), UnknownLinkRegressor().fit(X, 0 * y)):
        with pytest.raises(InputError, match="there is no direction"):
            model.direction_interval(X, y)
    with pytest.raises(InputError, match="`confidence` must be between 0 and 1"):
        UnknownLinkRegressor().fit(X, y).direction_interval(X, y, confidence=95)


# ---------------------------------------------------------------- where the rows are


@pytest.mark.parametrize("kind", ["sparse", "blocks", "float32", "tensor"])
def test_every_design_is_refined_the_same(kind):
    X, y, _ = skew("exponential", 5, n=600)
    X = np.round(X * 256) / 256  # the same in single precision
    weight = np.random.default_rng(5).integers(0, 3, 600).astype(float)
    model = UnknownLinkRegressor(tol=1e-10)
    expected = clone(model).fit(X, y, sample_weight=weight)
    assert expected.refined_
    if kind == "blocks":
        found = model.fit(ArrayBlocks(X, y, sample_weight=weight, rows=170), None)
    elif kind == "tensor":
        torch = pytest.importorskip("torch", reason="PyTorch has the tensors")
        found = model.fit(torch.tensor(X), torch.tensor(y), sample_weight=torch.tensor(weight))
    else:
        rows = sparse.csr_array(X) if kind == "sparse" else X.astype(np.float32)
        found = model.fit(rows, y, sample_weight=weight)
    assert found.refined_
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-5)
