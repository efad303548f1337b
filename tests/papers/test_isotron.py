"""Isotron's updates against slow reference versions, and the papers' guarantees."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import lsq_linear
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.utils._param_validation import InvalidParameterError

from apexrank_papers.link.isotron import Isotron, tied_scores

LINKS = {
    "tanh": lambda t: np.tanh(2 * t),
    "cube": lambda t: t**3,
    "staircase": lambda t: np.floor(2 * t),
    "signed root": lambda t: np.sign(t) * np.sqrt(np.abs(t)),
}


def single_index(link, n=400, d=4, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X, u = rng.normal(size=(n, d)), rng.normal(size=d)
    u /= np.linalg.norm(u)
    y = LINKS[link](X @ u)
    return X, y + noise * y.std() * rng.normal(size=n), u


def angle(w, u):
    return np.degrees(np.arccos(np.clip(w @ u / np.linalg.norm(w) / np.linalg.norm(u), -1, 1)))


def lipschitz_fit(scores, y, slope):
    """Bounded least squares in the first value and the steps."""
    order, n = np.argsort(scores), len(y)
    widest = np.concatenate([[np.inf], slope * np.diff(scores[order])])
    bounds = np.concatenate([[-np.inf], np.zeros(n - 1)]), widest
    steps = lsq_linear(np.tril(np.ones((n, n))), y[order], bounds, method="bvls", tol=1e-15).x
    fitted = np.empty(n)
    fitted[order] = np.cumsum(steps)
    return fitted


def published(X, y, updates, slope=None):
    """The papers' loop on rows of norm at most 1."""
    rows, w, errors = X / np.linalg.norm(X, axis=1).max(), np.zeros(X.shape[1]), []
    for t in range(updates + 1):
        scores = rows @ w
        if t == 0:
            fitted = np.full(len(y), y.mean())  # all scores are tied
        elif slope is None:
            fitted = IsotonicRegression().fit(scores, y).predict(scores)
        else:
            fitted = lipschitz_fit(scores, y, slope)
        errors.append(np.mean((y - fitted) ** 2))
        last, w = w, w + rows.T @ (y - fitted) / len(y)
    return last / np.linalg.norm(X, axis=1).max(), np.array(errors)


@pytest.mark.parametrize(("slope", "updates"), [(None, 30), (1.0, 6), (20.0, 6)], ids=str)
def test_updates_are_the_published_ones(slope, updates):
    X, y, _ = single_index("tanh", 50, 3, noise=0.3)
    model = Isotron(slope, max_iter=updates, tol=0.0).fit(X, y)
    coef, errors = published(X, y, updates, slope)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-10)
    np.testing.assert_allclose(model.history_, errors, rtol=1e-10)
    assert model.n_iter_ == updates
    assert not model.converged_


@pytest.mark.parametrize("link", LINKS)
def test_without_noise_the_direction_is_found(link):
    X, y, u = single_index(link, 2000)
    least_squares = np.linalg.lstsq(X - X.mean(axis=0), y, rcond=None)[0]
    model = Isotron(max_iter=500).fit(X, y)
    assert angle(model.coef_, u) < 0.15
    assert angle(model.coef_, u) < angle(least_squares, u) / 3
    assert model.score(X, y) > 0.999


@pytest.mark.parametrize("link", ["tanh", "signed root"])
def test_with_noise_it_predicts_new_rows(link):
    X, y, u = single_index(link, 3000, noise=0.1)
    model = Isotron(5.0, max_iter=300).fit(X[:2000], y[:2000])
    assert angle(model.coef_, u) < 2
    assert model.score(X[2000:], y[2000:]) > 0.95


@pytest.mark.parametrize("slope", [0.3, 2.0])
def test_the_link_is_rising_and_no_steeper_than_asked(slope):
    X, y, _ = single_index("cube", noise=0.2)
    model = Isotron(slope).fit(X, y)
    rise, run = np.diff(model.values_), np.diff(model.knots_)
    assert np.all(run > 0)
    assert np.all(rise >= 0)
    assert np.all(rise <= slope * run + 1e-14)
    assert np.isclose(rise / run, slope).any()
    np.testing.assert_allclose(
        model.predict(X), np.interp(X @ model.coef_, model.knots_, model.values_), atol=1e-9
    )
    np.testing.assert_allclose(model.index(X), X @ model.coef_, atol=1e-12)
    far = 1e6 * np.outer([-1, 1], model.coef_)  # constant outside
    np.testing.assert_array_equal(model.predict(far), model.values_[[0, -1]])


def test_the_training_error_may_rise():
    """Not a descent method: with heavy tails a step overshoots."""
    X, y, _ = single_index("cube", 2000)
    history = Isotron(max_iter=200).fit(X, y).history_
    assert (np.diff(history) > 0).any()


def test_path_and_history():
    X, y, _ = single_index("tanh", noise=0.2)
    model = Isotron(max_iter=20, tol=0.0, keep_path=True).fit(X, y)
    assert model.coef_path_.shape == (21, 4)
    assert len(model.history_) == 21
    assert not model.coef_path_[0].any()
    np.testing.assert_array_equal(model.coef_path_[-1], model.coef_)
    shorter = clone(model).set_params(max_iter=7).fit(X, y)
    np.testing.assert_array_equal(shorter.coef_, model.coef_path_[7])
    assert model.history_[-1] == pytest.approx(np.mean((y - model.predict(X)) ** 2), rel=1e-12)
    assert not hasattr(model.set_params(keep_path=False).fit(X, y), "coef_path_")


def test_convergence_is_a_small_update():
    X, y, _ = single_index("tanh", 2000)
    model = Isotron(max_iter=500, tol=1e-4, keep_path=True).fit(X, y)
    assert model.converged_
    assert model.n_iter_ < 500
    change = np.linalg.norm(np.diff(model.coef_path_, axis=0), axis=1) / np.linalg.norm(
        model.coef_path_[1:], axis=1
    )
    assert change[-1] <= 1e-4
    assert np.all(change[:-1] > 1e-4)


def test_a_constant_is_fitted_at_once():
    model = Isotron().fit(np.arange(6.0).reshape(3, 2), [2.0, 2.0, 2.0])
    assert model.converged_
    assert model.predict([[9.0, 9.0]]).tolist() == [2.0]
    assert Isotron().fit(np.zeros((3, 2)), [1.0, 2.0, 3.0]).predict([[1.0, 1.0]]).tolist() == [2.0]


@pytest.mark.parametrize("slope", [None, 2.0], ids=str)
def test_units_play_no_part(slope):
    """Other units of X rescale the coefficients, other units of y the predictions, and nothing else changes."""
    X, y, _ = single_index("tanh", noise=0.3)
    model, other = Isotron(slope).fit(X, y), Isotron(slope).fit(8 * X, 4 * y + 1)
    np.testing.assert_allclose(other.coef_, model.coef_ / 2, rtol=1e-9)
    np.testing.assert_allclose(other.predict(8 * X), 4 * model.predict(X) + 1, rtol=1e-9)


@pytest.mark.parametrize("slope", [None, 2.0], ids=str)
def test_weights_are_repetitions(slope):
    rng = np.random.default_rng(1)
    X, y, _ = single_index("tanh", 150, noise=0.3)
    count = rng.integers(0, 4, len(y))
    X[count.argmin()] *= 100  # its norm does not count either
    rows = rng.permutation(np.repeat(np.arange(len(y)), count))
    weighted, repeated = Isotron(slope).fit(X, y, sample_weight=count), Isotron(slope).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weighted.history_, repeated.history_, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equal_rows_are_tied(dtype):
    rng = np.random.default_rng(0)
    for _ in range(50):
        X = rng.normal(size=(rng.integers(2, 60), rng.integers(1, 20))).astype(dtype)
        row, w = rng.integers(0, len(X), 200), rng.normal(size=X.shape[1])
        scores = tied_scores(X[row], w)
        assert len(np.unique(scores)) == len(np.unique(row))
        np.testing.assert_allclose(scores, X[row].astype(float) @ w, atol=1e-12)


def test_sparse_and_single_precision_rows():
    X, y, _ = single_index("tanh", noise=0.3)
    X = np.where(X > 0.5, X, 0.0).astype(np.float32)
    model = Isotron(2.0).fit(X.astype(float), y)
    for other in (X, sparse.csr_matrix(X.astype(float)), sparse.csc_array(X.astype(float))):
        found = Isotron(2.0).fit(other, y)
        np.testing.assert_allclose(found.coef_, model.coef_, rtol=1e-9)
        np.testing.assert_allclose(found.predict(other), model.predict(X), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lipschitz", 0.0),
        ("lipschitz", np.inf),
        ("lipschitz", "one"),
        ("max_iter", 0),
        ("max_iter", 2.5),
        ("tol", -1.0),
    ],
)
def test_bad_parameters_are_refused(name, value):
    with pytest.raises(InvalidParameterError, match=name):
        Isotron(**{name: value}).fit([[0.0], [1.0]], [0.0, 1.0])


def test_weights_of_zero_are_refused():
    with pytest.raises(ValueError, match=r"all rows have weight 0|at least one non-zero number"):
        Isotron().fit([[0.0], [1.0]], [0.0, 1.0], sample_weight=[0.0, 0.0])
