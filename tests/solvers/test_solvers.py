import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import minmax_scale

from apexrank.objectives import Push
from apexrank.prices import Power
from apexrank.problem import Problem
from apexrank.solvers import LBFGS, Auto, CoordinateDescent, Newton
from apexrank.solvers.auto import ridge_path
from apexrank.solvers.newton import newton_step
from tests.oracles import papers_coordinate_descent


@pytest.fixture(scope="module")
def wdbc():
    """First six features of wdbc, in [0, 1]: not separable (COLT 2006, Fig. 3)."""
    X, y = load_breast_cancer(return_X_y=True)
    return minmax_scale(X[:, :6]), y == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("price", "side"), [(Power(1), "top"), (Power(4), "top"), ("log1p", "bottom")], ids=str
)
def test_lbfgs_and_coordinate_descent_agree_on_the_scores(wdbc, price, side):
    X, positive = wdbc
    # the columns of wdbc are nearly collinear, which slows down greedy coordinate descent: three of them are kept
    X = X[:, [1, 2, 4]]
    problem = Problem(X, Push(positive, price=price, side=side), penalty=0.0)
    # its line search uses values, whose rounding hides slopes below about sqrt(eps) = 1.5e-8 of them
    fast = LBFGS(tol=2e-8).solve(problem, np.zeros(3))
    papers = CoordinateDescent(t_max=5000, tol=1e-10).solve(problem, np.zeros(3))
    assert fast.converged
    assert papers.converged
    one, other = X @ fast.w, X @ papers.w
    assert np.abs(one - other).max() <= 1e-6 * np.abs(one).max()


@pytest.mark.parametrize("p", [1, 3])
def test_coordinate_descent_takes_the_papers_steps(wdbc, p):
    X, positive = wdbc
    rows = np.r_[np.flatnonzero(positive)[:60], np.flatnonzero(~positive)[:80]]
    X, positive = X[rows], positive[rows]
    M = X[positive][:, None, :] - X[~positive][None, :, :]
    expected = papers_coordinate_descent(M, p, 6, lambda f: minimize_scalar(f, bracket=(-1, 1), tol=1e-12).x)
    problem = Problem(X, Push(positive, price=Power(p)))
    got = CoordinateDescent(t_max=6, tol=0).solve(problem, np.zeros(X.shape[1]))
    assert got.n_iter == 6
    np.testing.assert_allclose(got.w, expected, rtol=1e-5, atol=1e-6)


def test_badly_scaled_columns_cost_no_accuracy(wdbc):
    X, positive = wdbc
    units = np.array([1e-6, 1e6, 1, 1e3, 1e-3, 10])
    plain = LBFGS().solve(Problem(X, Push(positive)), np.zeros(6))
    scaled = LBFGS().solve(Problem(X * units + 5 * units, Push(positive)), np.zeros(6))
    assert scaled.converged
    np.testing.assert_allclose(scaled.w * units, plain.w, rtol=1e-3, atol=1e-4)


def test_history_decreases_and_certificates_are_reported(wdbc):
    X, positive = wdbc
    solution = LBFGS().solve(Problem(X, Push(positive), penalty=1e-3), np.zeros(6))
    assert np.all(np.diff(solution.history) < 0)
    assert solution.history[-1] == solution.value
    assert len(solution.history) == solution.n_iter + 1
    assert 0 <= solution.gap < 1e-6
    assert solution.grad_norm <= 1e-6


def test_a_large_penalty_stops_on_the_gap(wdbc):
    X, positive = wdbc
    solution = LBFGS(tol=1e-4).solve(Problem(X, Push(positive), penalty=1e4), np.zeros(6))
    assert solution.converged
    assert solution.gap <= 1e-8 * max(1, abs(solution.value))


def test_starting_at_the_answer_takes_no_iteration(wdbc):
    X, positive = wdbc
    problem = Problem(X, Push(positive), penalty=1e-3)
    solution = LBFGS().solve(problem, np.zeros(6))
    assert LBFGS().solve(problem, solution.w).n_iter == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver", [LBFGS(), Newton(), CoordinateDescent(t_max=1000)], ids=lambda s: type(s).__name__
)
@pytest.mark.parametrize("price", ["power", "log1p", "exponential"])
def test_separable_without_penalty_gives_a_separating_direction(solver, price):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    positive = X @ [1.0, -0.5] > 0.1
    solution = solver.solve(Problem(X, Push(positive, price=price)), np.zeros(2))
    assert solution.separable
    scores = X @ solution.w
    assert scores[positive].min() > scores[~positive].max()


def test_iteration_limit_is_not_convergence(wdbc):
    X, positive = wdbc
    for solver in (LBFGS(max_iter=3), Newton(max_iter=3), CoordinateDescent(t_max=3)):
        solution = solver.solve(Problem(X, Push(positive)), np.zeros(6))
        assert solution.n_iter == 3
        assert not solution.converged


def test_verbose_prints_a_line_per_iteration(wdbc, capsys):
    X, positive = wdbc
    solution = LBFGS(verbose=1).solve(Problem(X, Push(positive)), np.zeros(6))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == solution.n_iter
    assert "gradient" in lines[-1]


@pytest.mark.slow
def test_newton_solves_stiff_problems():
    # separable with a tiny penalty and unscaled columns: L-BFGS does not converge in 1000 iterations
    X, y = load_breast_cancer(return_X_y=True)
    problem = Problem(X, Push(y == 0, price=Power(64)), penalty=1e-6)
    assert not LBFGS().solve(problem, np.zeros(30)).converged
    solution = Newton().solve(problem, np.zeros(30))
    assert solution.converged
    assert np.all(np.diff(solution.history) <= 1e-12)


def test_auto_hands_a_stiff_problem_over_to_newton(monkeypatch):
    monkeypatch.setattr("apexrank.solvers.auto.CHEAP", 0)
    X, y = load_breast_cancer(return_X_y=True)
    problem = Problem(X, Push(y == 0), penalty=1e-6)
    solution = Auto().solve(problem, np.zeros(30))
    assert solution.converged
    assert 100 < solution.n_iter < 200
    assert len(solution.history) == solution.n_iter + 1


def test_auto_uses_lbfgs_where_there_is_no_hessian(wdbc):
    X, positive = wdbc
    for options in ({"groups": np.arange(len(X)) % 7}, {"loss": "logistic"}):
        problem = Problem(X, Push(positive, **options), penalty=1e-3)
        assert problem.hessian_cost == np.inf
        assert Auto().solve(problem, np.zeros(6)).converged


@pytest.mark.parametrize("p", [1, 16])
def test_the_path_over_ridges_ends_at_the_minimum_in_few_steps(p):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 10))
    positive = X[:, 0] + X[:, 1] > 0.3  # separated
    problem = Problem(X, Push(positive, price=Power(p)), 1e-6)
    found, slow = ridge_path(problem, 1000, 1e-6), Newton(1000, 1e-6).solve(problem, np.zeros(10))
    assert found.converged
    assert slow.converged
    assert found.value == pytest.approx(slow.value, rel=1e-12)
    assert found.n_iter < slow.n_iter / 4


def test_a_newton_step_where_nothing_changes_is_zero():
    """Flat objectives have no slope or curvature, so no ridge in their units makes the Hessian positive definite."""
    assert not newton_step(np.zeros((2, 2)), np.zeros(2), np.ones(2), 1e-6).any()
