import numpy as np
import pytest
from scipy import sparse

from apexrank.objectives import Push
from apexrank.prices import Power
from apexrank.problem import Problem
from apexrank.problem.design import column_units, pull_back, scores_of


def make_rows(n=3000, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X, positive = rng.normal(size=(n, d)), rng.random(n) < 0.3
    return X, positive, rng


def two_pass(X, objective, w, alpha):
    value, slope = objective.value_and_grad(X @ w)
    n = objective.count
    return value / n + alpha / 2 * w @ w, X.T @ slope / n + alpha * w


@pytest.mark.slow
def test_rescaling_of_the_running_maximum_for_sorted_rows():
    # increasing scores change the running maximum in every row
    X = np.linspace(-2000, 2000, 5001)[:, None].repeat(2, axis=1)
    positive = np.arange(len(X)) % 3 == 0
    for order in (slice(None), slice(None, None, -1)):
        objective = Push(positive[order], price=Power(1024))
        got = Problem(X[order].copy(), objective).value_and_grad(np.array([1.0, 0.5]))
        expected = two_pass(X[order], objective, np.array([1.0, 0.5]), 0.0)
        assert got[0] == pytest.approx(expected[0], rel=1e-14)
        # an exponent p·s of 6e6 is itself rounded to 1e-9: no formula can do better
        np.testing.assert_allclose(got[1], expected[1], rtol=1024 * 6000 * np.finfo(float).eps)


def test_number_of_threads_does_not_change_a_bit(monkeypatch):
    X, positive, rng = make_rows(n=50_000, d=5)
    problem = Problem(X, Push(positive), 0.1)
    w = rng.normal(size=5)
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", 1)
    one = problem.value_and_grad(w)
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", 3)
    three = problem.value_and_grad(w)
    assert one[0] == three[0]
    np.testing.assert_array_equal(one[1], three[1])


def test_single_precision_scores_are_accumulated_in_double_precision():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(70_000, 30)).astype(np.float32)
    w, r = rng.normal(size=30), rng.normal(size=len(X))
    np.testing.assert_allclose(scores_of(X, w), X.astype(float) @ w, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(pull_back(X, r), X.astype(float).T @ r, rtol=1e-11, atol=1e-9)


def test_column_units():
    X, _, rng = make_rows()
    X[:, 0] = 1 / 3  # whose mean is not exactly 1/3
    X[:, 1] *= 1e200
    weight = rng.integers(0, 3, len(X))
    unit = np.array([1.0, 1e200, *np.ones(X.shape[1] - 2)])
    expected = np.repeat(X / unit, weight, axis=0).std(axis=0) * unit
    expected[0] = 1 / 3
    np.testing.assert_allclose(column_units(X, weight)[1], expected, rtol=1e-10)
    X[:, 1] /= 1e200
    expected[1] /= 1e200
    np.testing.assert_allclose(
        column_units(sparse.csr_array(X), weight.astype(float))[1], expected, rtol=1e-10
    )


def test_rows_of_weight_zero_have_no_say_in_the_units():
    X, _, _ = make_rows(n=50)
    weight = np.ones(51)
    weight[-1] = 0
    outlier = np.vstack([X, np.full(X.shape[1], 1e20)])
    for with_outlier, without in zip(column_units(outlier, weight), column_units(X, None), strict=True):
        np.testing.assert_allclose(with_outlier, without, rtol=1e-12)


def test_column_units_of_many_rows_see_rare_values():
    column = np.zeros((200_000, 2))
    column[7, 0] = 1.0
    column[:, 1] = 5.0
    assert column_units(column, None)[1] == pytest.approx([column[:, 0].std(), 5.0])


def test_the_gap_is_the_gap_of_a_dual_feasible_point():
    # primal in the scaling of (1/p)·log R; dual value H(a) + H(b)/p − |v|²/(2α) at the two softmax vectors
    X, positive, rng = make_rows(n=80, d=3)
    p, alpha, w = 5.0, 0.2, rng.normal(size=3)
    value, grad = Problem(X, Push(positive, price=Power(p)), alpha).value_and_grad(w)
    f, g = X[positive] @ w, X[~positive] @ w
    a, b = np.exp(-f) / np.exp(-f).sum(), np.exp(p * g) / np.exp(p * g).sum()
    v = X[positive].T @ a - X[~positive].T @ b
    dual = -(a * np.log(a)).sum() - (b * np.log(b)).sum() / p - v @ v / (2 * alpha)
    gap = Problem(X, Push(positive, price=Power(p)), alpha).dual_gap(w, value, grad)
    assert gap == pytest.approx(value - dual, rel=1e-10)
