"""Problems with more columns than rows, solved in the span of the rows."""

import warnings
from time import perf_counter

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from apexrank import IRPush, LinearRanker, MonotoneRetargeting, PNormPush
from apexrank.objectives import Push
from apexrank.penalties import Bounded, ElasticNet, Lasso, Quadratic, Ridge
from apexrank.prices import Power
from apexrank.problem import ArrayBlocks, Problem
from apexrank.solvers import Auto, CoordinateDescent


def wide(n=30, d=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2, d) + rng.normal(size=d)
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0).astype(int)


RANKERS = {
    "p = 1": PNormPush(1, alpha=0.1),
    "p = 16": PNormPush(16, alpha=0.01),
    "p = inf": PNormPush(np.inf, alpha=0.1),
    "both sides": PNormPush(4, alpha=0.1, side="both"),
    "logistic": PNormPush(4, alpha=0.01, loss="logistic"),
    "IR push": IRPush(alpha=0.1),
    "retarget": LinearRanker("retarget", Ridge(0.1)),
    "listnet": LinearRanker("listnet", Ridge(0.1)),
    "pointwise": LinearRanker("pointwise", Ridge(0.1)),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", RANKERS)
def test_the_answer_is_that_in_the_columns(name, weighted):
    X, y = wide()
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float) if weighted else None
    ranker = RANKERS[name].set_params(solver="auto", tol=1e-8)
    spanned = ranker.fit(X, y, sample_weight=weight).coef_
    columns = "lbfgs" if name == "logistic" else "newton"
    direct = ranker.set_params(solver=columns).fit(X, y, sample_weight=weight)
    assert direct.converged_
    np.testing.assert_allclose(spanned, direct.coef_, rtol=0, atol=1e-5 * np.abs(direct.coef_).max())


@pytest.mark.filterwarnings("ignore::apexrank.rankers.base.SeparableWarning")
def test_groups_weights_and_repetition():
    X, y = wide(n=40)
    groups, weight = np.repeat(np.arange(4), 10), np.random.default_rng(2).integers(0, 3, 40)
    ranker = PNormPush(4, alpha=1.0, tol=1e-7)
    weighted = ranker.fit(X, y, sample_weight=weight, groups=groups).coef_
    rows = np.repeat(np.arange(40), weight)
    repeated = ranker.fit(X[rows], y[rows], groups=groups[rows]).coef_
    direct = ranker.set_params(solver="lbfgs").fit(X, y, sample_weight=weight, groups=groups).coef_
    np.testing.assert_allclose(weighted, repeated, atol=1e-5)
    np.testing.assert_allclose(weighted, direct, atol=1e-5)


@pytest.mark.parametrize("convert", [sparse.csr_array, np.asfortranarray, lambda X: X.astype(np.float32)])
def test_every_layout(convert):
    X, y = wide()
    X = np.round(X * (np.abs(X) > 1), 2)
    ranker = PNormPush(4, alpha=0.1, tol=1e-8)
    expected = ranker.fit(X, y)
    coef, intercept = expected.coef_, expected.intercept_
    got = ranker.fit(convert(X), y)
    assert got.converged_
    np.testing.assert_allclose(got.coef_, coef, atol=2e-6)
    np.testing.assert_allclose(got.intercept_, intercept, atol=2e-5)


def test_sparse_rows_that_are_repeated_have_fewer_coordinates_than_rows():
    X, y = wide(n=10)
    X, y = np.tile(X, (3, 1)), np.tile(y, 3)
    problem = Problem(sparse.csr_array(X), Push(y == 1), 0.1)
    assert problem.in_span().n_features == 10
    w = Auto().solve(problem, np.zeros(80)).w
    np.testing.assert_allclose(w, Auto().solve(Problem(X, Push(y == 1), 0.1), np.zeros(80)).w, atol=1e-6)


def test_columns_far_from_zero():
    X, y = wide()
    ranker = PNormPush(4, alpha=0.1)
    coef = ranker.fit(X, y).coef_
    np.testing.assert_allclose(ranker.fit(X + 1e7, y).coef_, coef, atol=1e-5)


def test_the_certificate_is_that_of_the_problem_in_the_columns():
    X, y = wide()
    ranker = PNormPush(4, alpha=1e-3).fit(X, y)
    problem, w = Problem(X, Push(y == 1, price=Power(4)), 1e-3), ranker.coef_[0]
    value, grad = problem.value_and_grad(w)
    norm, gap, _ = problem.certificate(w, value, grad)
    assert ranker.objective_ == pytest.approx(value, rel=1e-12)
    assert norm <= 1e-6
    assert ranker.grad_norm_ <= 1e-6
    assert gap == pytest.approx(ranker.dual_gap_, abs=1e-12 * abs(value))


def test_a_warm_start_and_a_single_step():
    X, y = wide()
    ranker = PNormPush(4, alpha=1e-3, warm_start=True).fit(X, y)
    assert ranker.fit(X, y).n_iter_ == 1


@pytest.mark.parametrize(
    "penalty", [Ridge(0.0), Lasso(0.1), ElasticNet(0.1), Bounded(Ridge(0.1), -1, 1), Quadratic(np.eye(80))]
)
def test_other_penalties_keep_the_columns(penalty):
    X, y = wide()
    assert Problem(X, Push(y == 1), penalty).in_span() is None


def test_coordinate_descent_and_blocks_keep_the_columns():
    X, y = wide()
    problem = Problem(X, Push(y == 1), 0.1)
    assert np.count_nonzero(CoordinateDescent(t_max=1).solve(problem, np.zeros(80)).w) == 1
    ranker = PNormPush(1, alpha=0.1, tol=1e-8)
    coef = ranker.fit(X, y).coef_
    np.testing.assert_allclose(ranker.fit(ArrayBlocks(X, y, rows=7), None).coef_, coef, atol=1e-6)


@pytest.mark.parametrize("alpha", ["auto", 1e-3, 1e-4])
@pytest.mark.parametrize("p", [1, 4, 64, np.inf])
def test_a_hundred_rows_of_twenty_thousand_columns(p, alpha):
    X, y = wide(100, 20_000)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker = PNormPush(p, alpha=alpha).fit(X, y)
    assert ranker.converged_
    assert ranker.dual_gap_ <= 1e-6 * abs(ranker.objective_)
    assert perf_counter() - start < 60  # seconds on a free machine; minutes in the columns


@pytest.mark.parametrize("seed", range(4))
def test_columns_that_are_lost_in_products_of_rows_still_count(seed):
    """The certificate once held in the span only, as columns 1e8 times smaller than others vanish there."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (9, 13)) * 10.0 ** rng.uniform(-5, 6, 13)
    y = rng.permutation(9) % 2
    for ranker in (PNormPush(4, alpha=0.1), MonotoneRetargeting("kl", alpha=0.1)):
        dense, packed = (clone(ranker).fit(rows, y) for rows in (X, sparse.csr_array(X)))
        assert packed.converged_
        assert packed.objective_ == pytest.approx(dense.objective_, abs=1e-6)
