"""Plain and accelerated gradient descent: agreement with L-BFGS, and the theoretical rates."""

import numpy as np
import pytest
from scipy import sparse

from apexrank.errors import InputError
from apexrank.objectives import Push
from apexrank.objectives.link import UnknownLink
from apexrank.objectives.listwise import CosineTargets, SquaredTargets
from apexrank.objectives.retarget import Retarget
from apexrank.problem import Problem
from apexrank.rankers.listwise import ListwiseRanker
from apexrank.rankers.push import PNormPush
from apexrank.rankers.retarget import MonotoneRetargeting
from apexrank.solvers import LBFGS
from apexrank_papers.link.gradient import AcceleratedGradient, GradientDescent, gradient_lipschitz


def rows_and_grades(seed=0, n=120, d=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * np.geomspace(1, 1e3, d) + 5.0
    scores = (X - X.mean(axis=0)) @ (rng.normal(size=d) / np.geomspace(1, 1e3, d))
    return X, np.digitize(scores / scores.std() + 0.7 * rng.normal(size=n), [-1.0, 0.0, 1.0]).astype(float)


def problem_of(kind, alpha, X, y):
    groups = np.arange(len(y)) % 4
    objective = {
        "retarget": lambda: Retarget(y),
        "retarget, groups": lambda: Retarget(y, groups=groups, sample_weight=1.0 + groups),
        "unknown link": lambda: UnknownLink(y, strong_convexity=0.5),
        "kl": lambda: Retarget(y, divergence="kl", groups=groups, joint_convexity=True),
    }[kind]()
    return Problem(X, objective, alpha)


KINDS = ["retarget", "retarget, groups", "unknown link", "kl"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "solver",
    [
        GradientDescent(20_000, 1e-8),
        AcceleratedGradient(20_000, 1e-8),
        AcceleratedGradient(20_000, 1e-8, None, False),
    ],
    ids=["plain", "accelerated", "no restart"],
)
def test_reaches_the_answer_of_lbfgs(kind, solver):
    # plain gradient descent needs 30,000 steps on "kl" with a smaller penalty
    problem = problem_of(kind, 10.0 if kind == "kl" else 1.0, *rows_and_grades())
    found, expected = solver.solve(problem, np.zeros(6)), LBFGS(tol=1e-10).solve(problem, np.zeros(6))
    assert found.converged
    assert found.value == pytest.approx(expected.value, rel=1e-10)
    np.testing.assert_allclose(found.w * problem.scale, expected.w * problem.scale, atol=1e-6)
    assert len(found.history) == found.n_iter + 1
    assert found.history[-1] == found.value


def curvature_at(problem, w, step=1e-4):
    """Hessian in the solver's coordinates by central differences of the gradient."""
    units = step * np.diag(1 / problem.scale)
    columns = [
        (problem.value_and_grad(w + e)[1] - problem.value_and_grad(w - e)[1]) / (2 * step) for e in units
    ]
    return np.array(columns) / problem.scale


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_the_constant_bounds_the_curvature(kind, alpha):
    problem = problem_of(kind, alpha, *rows_and_grades())
    bound, rng = gradient_lipschitz(problem), np.random.default_rng(0)
    for _ in range(20):
        w = rng.normal(size=6) / problem.scale
        assert np.linalg.norm(curvature_at(problem, w), 2) <= bound * (1 + 1e-6)


@pytest.mark.parametrize("kind", ["dense", "single precision", "sparse", "wide", "wide sparse"])
def test_the_constant_is_an_eigenvalue(kind, monkeypatch):
    X, y = rows_and_grades(d=12)
    X = X / X.std(axis=0)
    if "wide" in kind:
        monkeypatch.setattr("apexrank_papers.link.gradient.WIDEST_HESSIAN", 11)
    given = sparse.csr_matrix(X) if "sparse" in kind else X.astype(np.float32 if "single" in kind else float)
    problem = Problem(given, Retarget(y), penalty=2.0)
    Z = (X if kind == "sparse" else X - X.mean(axis=0)) / problem.scale
    expected = np.linalg.eigvalsh(Z.T @ Z + 2.0 * np.diag(problem.scale**-2.0))[-1]
    found = gradient_lipschitz(problem)
    slack = 1.03 if "wide" in kind else 1 + 1e-5
    assert expected * (1 - 1e-5) <= found <= expected * slack
    # a user's bound is with respect to the scores
    assert gradient_lipschitz(Problem(given, Retarget(y)), 5.0) == pytest.approx(
        5.0 * gradient_lipschitz(Problem(given, Retarget(y))), rel=0.03
    )


def test_an_objective_that_sees_a_shift_has_the_curvature_of_it():
    X, y = rows_and_grades()
    problem = Problem(X, CosineTargets(y), penalty=0.0)
    assert gradient_lipschitz(problem, 1.0) == pytest.approx(np.linalg.norm(X / problem.scale, 2) ** 2)


def chain(d):
    """Least squares with Nesterov's worst-case function: information travels one coordinate per step."""
    X = np.eye(d + 1, d) - np.eye(d + 1, d, -1)
    return Problem(X, SquaredTargets(np.eye(d + 1)[0] * d), penalty=0.0)


def distance_and_minimum(problem, w0):
    best = LBFGS(max_iter=10_000, tol=1e-12).solve(problem, w0)
    return float(np.sum((best.w - w0) ** 2 * problem.scale**2)), best.value


STEPS = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89]


def excess_after(problem, w0, solver_of):
    """Excess over the minimum after each number of steps, divided by ``L·|u0 − u*|²``."""
    distance, minimum = distance_and_minimum(problem, w0)
    unit = (
        gradient_lipschitz(problem, 1.0 if isinstance(problem.objective, SquaredTargets) else None) * distance
    )
    values = [solver_of(t).solve(problem, w0).value for t in STEPS]
    return (np.array(values) - minimum) / unit


def problems():
    X, y = rows_and_grades(3)
    return {
        "chain": (chain(60), np.zeros(60), 1.0),
        "retarget": (problem_of("retarget", 0.0, X, y), np.zeros(6), None),
        "unknown link": (problem_of("unknown link", 1e-3, X, y), np.full(6, 1e-3), None),
    }


@pytest.mark.parametrize("name", ["chain", "retarget", "unknown link"])
def test_plain_rate(name):
    problem, w0, l = problems()[name]
    excess = excess_after(problem, w0, lambda t: GradientDescent(t, 0.0, lipschitz=l))
    assert np.all(excess <= 1 / (2 * np.array(STEPS)) + 1e-13)


@pytest.mark.parametrize("restart", [False, True], ids=["published", "restart"])
@pytest.mark.parametrize("name", ["chain", "retarget", "unknown link"])
def test_accelerated_rate(name, restart):
    problem, w0, l = problems()[name]
    excess = excess_after(problem, w0, lambda t: AcceleratedGradient(t, 0.0, l, restart))
    assert np.all(excess <= 2 / (np.array(STEPS) + 1.0) ** 2 + 1e-13)


def printed_acceleration(problem, w0, steps, square):
    """Table 4.2 with steps 1/l, and its formula for a with or without the square."""
    unit = gradient_lipschitz(problem, 1.0) * problem.scale**2
    w = before = w0
    a = 1.0
    for _ in range(steps):
        x = w - problem.value_and_grad(w)[1] / unit
        a_next = (1 + np.sqrt(4 * a**2 + 1)) ** (2 if square else 1) / 2
        w, before = x + (a - 1) / a_next * (x - before), x
        a = min(a_next, 1e60)  # with the square it overflows after a dozen steps
    return problem.value_and_grad(before)[0]


def test_the_square_of_table_42_is_a_slip():
    """With it the momentum vanishes and the method is plain gradient descent, slower than 1/t²."""
    problem, w0 = chain(200), np.zeros(200)
    distance, minimum = distance_and_minimum(problem, w0)
    t = 400
    bound = 2 * gradient_lipschitz(problem, 1.0) * distance / (t + 1) ** 2
    published = AcceleratedGradient(t, 0.0, 1.0, restart=False).solve(problem, w0).value
    assert printed_acceleration(problem, w0, t, square=False) == pytest.approx(published, rel=1e-12)
    plain = GradientDescent(t, 0.0, lipschitz=1.0).solve(problem, w0).value
    printed = printed_acceleration(problem, w0, t, square=True)
    assert printed - minimum > 0.9 * (plain - minimum)
    assert printed - minimum > 5 * bound
    assert published - minimum <= bound


def test_restarts_make_convergence_linear():
    """Strongly convex with a condition number of 1e4: the published momentum oscillates for a long time."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.normal(size=(60, 20)))[0]
    X = (X - X.mean(axis=0)) @ np.diag(np.geomspace(1, 100, 20)) @ np.linalg.qr(rng.normal(size=(20, 20)))[0]
    problem = Problem(X, SquaredTargets(rng.normal(size=60)), penalty=1e-6)
    solvers = [AcceleratedGradient(20_000, 1e-10, 1.0, restart) for restart in (True, False)]
    fast, slow = (solver.solve(problem, np.zeros(20)) for solver in solvers)
    assert fast.converged
    assert 2 * fast.n_iter < slow.n_iter


def test_decreasing_steps_are_those_of_table_42():
    problem, w = problem_of("retarget", 0.5, *rows_and_grades()), np.zeros(6)
    found = GradientDescent(4, 0.0, step=(1e-3, 2.0)).solve(problem, w)
    for t in range(4):
        w = w - 1e-3 / (2.0 + np.sqrt(t)) * problem.value_and_grad(w)[1] / problem.scale**2
    np.testing.assert_allclose(found.w, w, rtol=1e-12)
    assert found.n_iter == 4
    assert not found.converged


def test_decreasing_steps_do_without_smoothness():
    """s = 0: a cost with kinks, whose minimum with a penalty is w = 0."""
    X, y = rows_and_grades()
    problem = Problem(X, UnknownLink(y, strong_convexity=0.0, normalize=True), penalty=1e-3)
    start = np.ones(6) / problem.scale
    history = GradientDescent(3000, 0.0, step=(1.0, 1.0)).solve(problem, start).history
    assert min(history) < 0.02 * history[0]
    with pytest.raises(InputError, match="Lipschitz gradient"):
        GradientDescent().solve(problem, start)


def test_steps_that_are_too_long_end_in_the_last_finite_point():
    problem = problem_of("retarget", 0.0, *rows_and_grades())
    for solver in (GradientDescent(step=(1e9, 1.0)), AcceleratedGradient(lipschitz=1e-9)):
        found = solver.solve(problem, np.zeros(6))
        assert not found.converged
        assert np.isfinite(found.value)
        assert np.isfinite(found.w).all()


def test_a_start_at_the_minimum_is_the_answer():
    problem = problem_of("retarget", 1.0, *rows_and_grades())
    best = LBFGS(tol=1e-10).solve(problem, np.zeros(6)).w
    for solver in (GradientDescent(), AcceleratedGradient()):
        found = solver.solve(problem, best)
        assert (found.converged, found.n_iter, len(found.history)) == (True, 0, 1)
        np.testing.assert_array_equal(found.w, best)


@pytest.mark.parametrize("solver", [GradientDescent(), AcceleratedGradient()], ids=["plain", "accelerated"])
def test_what_they_cannot_fit_is_refused(solver):
    X, y = rows_and_grades()
    with pytest.raises(InputError, match="cannot fit an L1 penalty"):
        PNormPush(l1_ratio=0.5, solver=solver).fit(X, y > 1)
    with pytest.raises(InputError, match="cannot fit p=inf"):
        PNormPush(p=np.inf, solver=solver).fit(X, y > 1)


@pytest.mark.parametrize("solver", [GradientDescent(5000, 1e-8), AcceleratedGradient(5000, 1e-8)], ids=str)
def test_rankers_take_them(solver):
    X, y = rows_and_grades()
    X, groups = X / X.std(axis=0), np.arange(len(y)) % 4
    for ranker in (
        MonotoneRetargeting(alpha=3.0 / 4, max_iter=5000, tol=1e-8),
        ListwiseRanker("unknown_link", alpha=3.0 / 4, max_iter=5000, tol=1e-8),
    ):
        expected = ranker.fit(X, y, groups=groups).coef_
        found = ranker.set_params(solver=solver).fit(X, y, groups=groups)
        np.testing.assert_allclose(found.coef_, expected, atol=1e-6)
        assert found.converged_


@pytest.mark.parametrize(
    "step", [(1.0,), (0.0, 1.0), (1.0, 0.0), (1.0, np.inf), (np.nan, 1.0), 3.0, "ab"], ids=str
)
def test_bad_steps_are_refused(step):
    problem = problem_of("retarget", 1.0, *rows_and_grades())
    with pytest.raises(InputError, match=r"`step` must be two finite numbers \(a, b\) above 0"):
        GradientDescent(step=step).solve(problem, np.zeros(6))


def test_an_objective_without_a_lipschitz_gradient_is_refused():
    X, y = rows_and_grades()
    problem = Problem(X, Push(y > 1), penalty=1.0)
    for solver in (GradientDescent(), AcceleratedGradient()):
        with pytest.raises(InputError, match=r"give `lipschitz`.*or use GradientDescent\(step=\(a, b\)\)"):
            solver.solve(problem, np.zeros(6))
    with pytest.raises(InputError, match="Lipschitz gradient"):
        PNormPush(solver=AcceleratedGradient()).fit(X, y > 1)
    for bound in (0.0, -1.0, np.nan, "l"):
        with pytest.raises(InputError, match="Lipschitz gradient"):
            AcceleratedGradient(lipschitz=bound).solve(problem, np.zeros(6))
