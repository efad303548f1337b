"""Penalties: formulas, proximal operators, subgradients and gaps against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from apexrank.errors import InputError
from apexrank.objectives import Push, SquaredTargets
from apexrank.penalties import Bounded, ElasticNet, Lasso, NonNegative, Quadratic, Ridge, elastic_net
from apexrank.problem import Problem
from apexrank.solvers import LBFGS, Newton
from tests.oracles import numerical_gradient

D = np.diff(np.eye(3), axis=0)
SMOOTHNESS = D.T @ D
PENALTIES = [
    Ridge(0.3),
    ElasticNet(0.4, 0.6),
    Lasso(0.2),
    NonNegative(Ridge(0.3)),
    NonNegative(ElasticNet(0.4, 0.5)),
    NonNegative(Lasso(0.1)),
    Bounded(Ridge(0.2), -0.3, 0.4),
    Bounded(Lasso(0.1), -0.3, 0.4),
    Quadratic(SMOOTHNESS + 0.1 * np.eye(3), 0.5),
    Quadratic(SMOOTHNESS, 0.5),
    NonNegative(Quadratic(SMOOTHNESS + 0.1 * np.eye(3), 0.5)),
]
ALL = pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: repr(p).split("P=")[0][:40])
VECTORS = st.lists(st.floats(-2, 2).map(lambda x: round(x, 3)), min_size=3, max_size=3).map(np.array)


def inside(penalty, w):
    return np.clip(w, *penalty.bounds)


@pytest.mark.slow
@ALL
@given(VECTORS)
def test_value_is_the_smooth_part_and_the_norm(penalty, w):
    w = inside(penalty, w)
    A = penalty.hessian(3)
    assert penalty.value(w) == pytest.approx(0.5 * w @ A @ w + penalty.l1 * np.abs(w).sum(), abs=1e-12)
    np.testing.assert_allclose(penalty.smooth(w)[1], A @ w, atol=1e-12)
    np.testing.assert_allclose(penalty.diagonal(3), np.diag(A))
    assert penalty.convexity <= np.linalg.eigvalsh(A)[0] + 1e-12
    numeric = numerical_gradient(lambda v: penalty.smooth(v)[0], w, 1e-3)
    np.testing.assert_allclose(penalty.smooth(w)[1], numeric, atol=1e-8)


@ALL
@given(VECTORS, st.floats(0.01, 3))
def test_prox_is_the_brute_force_minimiser(penalty, v, step):
    found = penalty.prox(v, step)
    low, high = (float(np.clip(bound, -9, 9)) for bound in penalty.bounds)
    for own, target in zip(found, v, strict=True):
        best = minimize_scalar(
            lambda u, t=target: 0.5 * (u - t) ** 2 + step * penalty.l1 * abs(u),
            bounds=(low, high),
            method="bounded",
        )
        cost = 0.5 * (own - target) ** 2 + step * penalty.l1 * abs(own)
        assert cost <= best.fun + 1e-9


@ALL
@given(VECTORS, VECTORS)
def test_fenchels_inequality(penalty, w, v):
    """``<w, v> ≤ k(w) + k*(v)`` for the separable part k."""
    w = inside(penalty, w)
    own = 0.5 * penalty.convexity * w @ w + penalty.l1 * np.abs(w).sum()
    assert w @ v <= own + penalty.conjugate(v) + 1e-9
    if penalty.convexity > 0:  # and it is attained
        u = np.clip(np.sign(v) * np.maximum(np.abs(v) - penalty.l1, 0) / penalty.convexity, *penalty.bounds)
        own = 0.5 * penalty.convexity * u @ u + penalty.l1 * np.abs(u).sum()
        assert u @ v == pytest.approx(own + penalty.conjugate(v), abs=1e-9)


@ALL
@given(VECTORS, VECTORS)
def test_the_least_subgradient_is_minus_the_best_descent(penalty, w, grad):
    """No feasible coordinate direction decreases faster than the subgradient says."""
    w = inside(penalty, w)
    slope, (low, high), step = penalty.subgradient(w, grad), penalty.bounds, 1e-7
    for j in range(3):
        rates = [
            sign * grad[j] + penalty.l1 * (abs(w[j] + sign * step) - abs(w[j])) / step
            for sign in (-1, 1)
            if low <= w[j] + sign * step <= high
        ]
        steepest = min([0.0, *rates])
        assert abs(slope[j]) == pytest.approx(-steepest, abs=1e-6)


def problems():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, -0.5, 0.2] + rng.normal(size=40)
    yield Problem, X, SquaredTargets(y, count=40.0)
    yield Problem, X, Push(y > 0.3, price="log1p", side="bottom")


@ALL
@pytest.mark.parametrize("number", [0, 1])
def test_the_gap_bounds_the_distance_and_solvers_agree(penalty, number):
    _, X, objective = list(problems())[number]
    problem = Problem(X, objective, penalty)
    exact = Newton(tol=1e-10).solve(problem, np.zeros(3))
    assert exact.converged
    other = LBFGS(tol=1e-8).solve(problem, np.zeros(3))
    assert other.value == pytest.approx(exact.value, rel=1e-8)
    np.testing.assert_allclose(other.w, exact.w, atol=1e-4)
    assert (exact.w >= penalty.bounds[0]).all()
    assert (exact.w <= penalty.bounds[1]).all()
    rng = np.random.default_rng(1)
    for size in (1e-3, 0.1, 1.0):
        w = inside(penalty, exact.w + size * rng.normal(size=3))
        value, grad = problem.penalised(w)
        gap = problem.certificate(w, value, grad).gap
        assert np.isnan(gap) or gap >= (value - exact.value) * (1 - 1e-9) - 1e-12
    if penalty.convexity > 0:
        assert exact.gap <= 1e-12


def test_penalties_of_an_estimator():
    assert elastic_net(0.0, 0.5) == Ridge(0.0)
    assert elastic_net(0.2, 0.5) == ElasticNet(0.2, 0.5)


@pytest.mark.parametrize(
    ("penalty", "message"),
    [
        (Ridge(-1.0), "`alpha` must be a finite number of at least 0"),
        (ElasticNet(1.0, 1.5), "`l1_ratio` must be between 0 and 1"),
        (Quadratic(np.eye(2)), "a row and a column for each of the 3 features"),
        (Quadratic(np.triu(np.ones((3, 3)))), "must be symmetric"),
        (Quadratic(-np.eye(3)), "positive semi-definite"),
        (Bounded(Ridge(1.0), 1.0, 2.0), "low <= 0 <= high"),
        (NonNegative(NonNegative()), "one pair of bounds"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused(penalty, message):
    with pytest.raises(InputError, match=message):
        Problem(np.eye(3), Push([True, False, False]), penalty)


@ALL
def test_copies_of_scikit_learn_have_the_same_parameters(penalty):
    copied = clone(penalty)
    assert copied is not penalty
    assert repr(copied) == repr(penalty)
