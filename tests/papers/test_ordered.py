"""Alternating projections for perfectly ordered data against linear programmes and least squares with bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls

from apexrank.errors import InputError
from apexrank.objectives.retarget import Retarget
from apexrank.problem import Problem
from apexrank.solvers import Newton
from apexrank_papers.link import ordered
from apexrank_papers.link.ordered import perfectly_ordered

LINKS = {
    "logistic": lambda t: 1 / (1 + np.exp(-3 * t)),
    "cube": lambda t: t**3,
    "exponential": np.exp,
    "staircase": lambda t: np.floor(2 * t),
}


def single_index(link, n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X, u = rng.normal(size=(n, d)), rng.normal(size=d)
    u /= np.linalg.norm(u)
    return X, LINKS[link](X @ u), u


def least_excess(scores, y, margin):
    """Smallest ``s_i − s_j − margin·(y_i − y_j)`` over all pairs with y_i > y_j."""
    above = y[:, None] > y[None, :]
    return ((scores[:, None] - scores[None, :]) - margin * (y[:, None] - y[None, :]))[above].min()


def exists(X, y):
    """Whether some w has a margin of 1 for every pair, by a linear programme."""
    i, j = np.nonzero(y[:, None] > y[None, :])
    free = [(None, None)] * X.shape[1]
    return (
        linprog(np.zeros(X.shape[1]), -(X[i] - X[j]), -(y[i] - y[j]), bounds=free, method="highs").status == 0
    )


@pytest.mark.parametrize("margin", [1.0, 1e-3, 50.0])
@pytest.mark.parametrize("link", LINKS)
def test_every_pair_is_in_order(link, margin):
    X, y, u = single_index(link)
    fit = perfectly_ordered(X, y, margin=margin)
    assert fit.converged
    assert fit.reason == "every pair of rows is in order"
    assert least_excess(X @ fit.coef, y, margin) >= -1e-12 * margin * np.ptp(y)
    assert len(fit.history) == fit.n_iter
    cosine = fit.coef @ u / np.linalg.norm(fit.coef)
    assert np.degrees(np.arccos(cosine)) < (2 if link == "staircase" else 0.1)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(0, 3)), min_size=2, max_size=7),
    st.booleans(),
)
def test_finds_one_exactly_if_there_is_one(rows, momentum):
    """Small integers: rows and values repeat, columns may be collinear or constant."""
    *columns, y = np.array(rows, dtype=float).T
    X = np.column_stack(columns)
    if np.ptp(y) == 0:
        return
    fit = perfectly_ordered(X, y, momentum=momentum)
    assert "undecided" not in fit.reason
    assert fit.converged == exists(X, y)
    if fit.converged:
        assert least_excess(X @ fit.coef, y, 1.0) >= -1e-12


def constant_rate(history):
    """Decay factors per step in the third and last quarter of the decay to 1e-9, equal if the decay is geometric."""
    end = int(np.argmax(history < 1e-9 * history[0]))
    logs = np.log(history[: end + 1])
    middle, late = end // 2, 3 * end // 4
    return (logs[late] - logs[middle]) / (late - middle), (logs[end] - logs[late]) / (end - late)


@pytest.mark.parametrize("seed", [2, 3, 5])
def test_convergence_is_linear(seed, monkeypatch):
    """Aiming at the margin itself there is always some way to go, and the distance falls along a line."""
    monkeypatch.setattr(ordered, "AIM", 1.0)
    X = np.random.default_rng(seed).normal(size=(10, 2))
    y = np.exp(X @ [0.6, 0.8])
    fit = perfectly_ordered(X, y, momentum=False, max_iter=500, tol=0.0)
    assert fit.history[-1] < 1e-9 * fit.history[0]
    assert np.all(np.diff(fit.history[:100]) < 0)
    earlier, later = constant_rate(fit.history)
    assert later < -0.05
    assert earlier == pytest.approx(later, rel=1e-3)


def test_twice_the_margin_makes_it_finite():
    X = np.random.default_rng(2).normal(size=(10, 2))
    y = np.exp(X @ [0.6, 0.8])
    fit = perfectly_ordered(X, y, momentum=False, tol=0.0)
    assert fit.converged
    assert fit.n_iter < 100


def test_momentum_pays():
    X, y, _ = single_index("cube")
    plain = perfectly_ordered(X, y, momentum=False, max_iter=3000)
    fast = perfectly_ordered(X, y, max_iter=3000)
    assert fast.converged
    assert plain.reason.startswith("undecided after 3000 steps at a distance of")
    assert (plain.converged, plain.n_iter, len(plain.history)) == (False, 3000, 3000)


def distance_of_sets(X, y):
    """Distance between the range of X and the vectors with margins 2, by non-negative least squares."""
    order = np.argsort(y)
    basis = np.linalg.qr(np.column_stack([np.ones(len(y)), X])[order])[0]
    beside = np.eye(len(y)) - basis @ basis.T
    steps = np.tril(np.ones((len(y), len(y))))[:, 1:]
    return nnls(beside @ steps, -beside @ (2 * y[order]))[1]


@pytest.mark.parametrize("momentum", [True, False], ids=["momentum", "plain"])
@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_where_there_is_none_the_distance_is_that_of_the_sets(noise, momentum):
    X, y, _ = single_index("logistic", 40, 3)
    y = y + noise * np.random.default_rng(1).normal(size=40)
    assert not exists(X, y)
    fit = perfectly_ordered(X, y, momentum=momentum, tol=1e-9, max_iter=50_000)
    assert not fit.converged
    assert fit.reason.startswith("no w orders the rows: their scores stay")
    assert len(fit.history) == fit.n_iter
    assert fit.history[-1] == pytest.approx(distance_of_sets(X, y), rel=1e-6)


def test_it_is_retargeting_without_a_penalty():
    """Half the squared distance is the cost of retargeting with margins 2·(y_i − y_j)."""
    X, y, _ = single_index("logistic", 60, 3)
    y = y + 0.2 * np.random.default_rng(1).normal(size=60)
    fit = perfectly_ordered(X, y, tol=1e-10)
    problem = Problem(X, Retarget(y, margin=2.0, offsets="linear"), penalty=0.0)
    expected = Newton(tol=1e-12).solve(problem, np.zeros(3))
    assert fit.history[-1] ** 2 / 2 == pytest.approx(expected.value, rel=1e-9)
    np.testing.assert_allclose(fit.coef, expected.w, rtol=1e-6)


def test_neither_a_shift_nor_units_matter():
    X, y, _ = single_index("exponential", 60, 3)
    fit = perfectly_ordered(X, y)
    moved = perfectly_ordered(X * [1e-6, 1.0, 1e6] + [3.0, -1e3, 1e6], y + 1000)
    assert moved.n_iter == fit.n_iter
    np.testing.assert_allclose(moved.coef, fit.coef * [1e6, 1.0, 1e-6], rtol=1e-6)


def test_columns_that_add_nothing_get_nothing():
    X, y, _ = single_index("exponential", 60, 3)
    more = np.column_stack([X, np.full(60, 7.1), X[:, 0] + X[:, 1]])
    fit = perfectly_ordered(more, y)
    assert fit.converged
    assert fit.coef[3] == 0
    assert np.sum(fit.coef == 0) == 2
    assert least_excess(more @ fit.coef, y, 1.0) >= -1e-12 * np.ptp(y)


def test_more_columns_than_rows_order_anything_at_once():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 30)), rng.normal(size=20)
    fit = perfectly_ordered(X, y)
    assert (fit.converged, fit.n_iter) == (True, 0)
    np.testing.assert_allclose(np.diff((X @ fit.coef)[np.argsort(y)]), 2 * np.diff(np.sort(y)), rtol=1e-9)


def test_rows_without_features_are_not_ordered():
    fit = perfectly_ordered(np.ones((4, 2)), [0.0, 1.0, 2.0, 3.0])
    assert not fit.converged
    assert fit.coef.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [1.0, 1.0, 1.0]}, "there is no order to find: y has only one value"),
        ({"y": [1.0, 2.0]}, "one number per row: expected 3, got 2"),
        ({"y": [1.0, np.nan, 2.0]}, "missing or infinite in row 1"),
        ({"margin": 0.0}, "`margin` must be finite and above 0"),
        ({"margin": np.inf}, "`margin` must be finite and above 0"),
        ({"max_iter": 0}, "`max_iter` must be a whole number of at least 1"),
        ({"tol": -1.0}, "`tol` must be a finite number of at least 0"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, message):
    with pytest.raises(InputError, match=message):
        perfectly_ordered(**{"X": [[0.0], [1.0], [2.0]], "y": [0.0, 1.0, 2.0], **arguments})


@pytest.mark.parametrize("gap", [1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("momentum", [False, True])
def test_narrow_gaps_only_make_w_long(gap, momentum):
    X, y = np.array([[0.0], [1.0], [1.0 + gap], [2.0]]), np.arange(4.0)
    fit = perfectly_ordered(X, y, momentum=momentum)
    assert fit.converged
    assert np.diff(X @ fit.coef).min() >= 1 - 1e-6
