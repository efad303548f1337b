"""The closed-form step for two-valued weak rankers, against the line search and the papers' pair weights."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from apexrank import PNormPush
from apexrank.objectives import Push
from apexrank.prices import Power
from apexrank.problem import Problem
from apexrank.solvers import CoordinateDescent, coordinate
from apexrank.solvers.coordinate import line_search, two_valued_step
from apexrank_papers.push.fitting import threshold_features


def never(step):
    return False


class Counting:
    """Objective that counts its evaluations."""

    def __init__(self, objective):
        self.objective, self.calls = objective, 0

    def __getattr__(self, name):
        return getattr(self.objective, name)

    def value_and_grad(self, scores):
        self.calls += 1
        return self.objective.value_and_grad(scores)


@pytest.fixture
def example():
    rng = np.random.default_rng(3)
    positive = np.arange(40) % 3 == 0
    return rng.normal(size=40), positive, (rng.random(40) < 0.5).astype(float), rng.integers(1, 4, 40)


@pytest.fixture(scope="module")
def thresholds():
    X, y = load_breast_cancer(return_X_y=True)
    # rounding decides between equal columns
    return np.unique(threshold_features(X[:, :6])[0], axis=1), y == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("side", ["top", "bottom"])
@pytest.mark.parametrize("price", ["identity", Power(1), Power(2.5), Power(16)], ids=str)
def test_equals_the_line_search(example, monkeypatch, price, side, weighted):
    scores, positive, column, weight = example
    objective = Push(positive, price=price, side=side, sample_weight=weight if weighted else None)
    slope = objective.value_and_grad(scores)[1]
    for direction in (column, 1 - column, 2 * column - 1, 7 + 0.01 * column):
        closed = two_valued_step(objective, slope, direction)
        with monkeypatch.context() as patch:
            patch.setattr(coordinate, "two_valued_step", lambda *_: None)
            searched = line_search(objective, scores, slope, direction, never)
        assert closed == pytest.approx(searched, rel=1e-10, abs=1e-10)
        assert line_search(objective, scores, slope, direction, never) == closed


def test_is_rankboosts_formula_over_pairs(example):
    scores, positive, column, _ = example
    d = np.exp(-(scores[positive][:, None] - scores[~positive][None, :]))
    M = column[positive][:, None] - column[~positive][None, :]
    objective = Push(positive, price="identity")
    step = two_valued_step(objective, objective.value_and_grad(scores)[1], column)
    assert step == pytest.approx(0.5 * np.log(d[M == 1].sum() / d[M == -1].sum()), rel=1e-12)


@pytest.mark.parametrize("p", [2, 7])
def test_any_p_weighs_pairs_as_the_papers_do(example, p):
    scores, positive, column, _ = example
    d = np.exp(-(scores[positive][:, None] - scores[~positive][None, :]))
    d_tilde = d * d.sum(axis=0) ** (p - 1)
    M = column[positive][:, None] - column[~positive][None, :]
    objective = Push(positive, price=Power(p))
    step = two_valued_step(objective, objective.value_and_grad(scores)[1], column)
    expected = np.log(d_tilde[M == 1].sum() / d_tilde[M == -1].sum()) / (p + 1)
    assert step == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"price": "log1p"},
        {"price": "exponential"},
        {"side": "both"},
        {"groups": np.arange(40) % 4 // 2},
        {"loss": "logistic"},
    ],
    ids=str,
)
def test_no_closed_form_and_still_exact(example, options):
    scores, positive, column, _ = example
    objective = Push(positive, **options)
    slope = objective.value_and_grad(scores)[1]
    assert two_valued_step(objective, slope, column) is None
    step = line_search(objective, scores, slope, column, never)
    after = objective.value_and_grad(scores + step * column)[1]
    assert abs(after @ column) <= 1e-10 * abs(slope @ column)


def test_no_closed_form_for_other_columns(example):
    scores, positive, column, _ = example
    objective = Push(positive)
    slope = objective.value_and_grad(scores)[1]
    for direction in (scores, np.ones(40), column + 0.5 * (np.arange(40) == 5), positive.astype(float)):
        assert two_valued_step(objective, slope, direction) is None


def test_coordinate_descent_makes_one_evaluation_a_round(thresholds):
    X, positive = thresholds
    objective = Counting(Push(positive, price="identity"))
    CoordinateDescent(t_max=30, tol=0).solve(Problem(X, objective), np.zeros(X.shape[1]))
    assert objective.calls == 31
    CoordinateDescent(t_max=30, tol=0).solve(Problem(X, objective, penalty=1e-3), np.zeros(X.shape[1]))
    assert objective.calls > 31 + 4 * 31  # a penalty has no closed form


@pytest.mark.parametrize("p", [1, 4])
def test_coordinate_descent_goes_the_same_way(thresholds, monkeypatch, p):
    X, positive = thresholds
    problem = Problem(X, Push(positive, price=Power(p)))
    closed = CoordinateDescent(t_max=40, tol=0).solve(problem, np.zeros(X.shape[1]))
    monkeypatch.setattr(coordinate, "two_valued_step", lambda *_: None)
    searched = CoordinateDescent(t_max=40, tol=0).solve(problem, np.zeros(X.shape[1]))
    np.testing.assert_allclose(closed.w, searched.w, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(closed.history, searched.history, rtol=1e-12)


def test_a_separating_column_still_ends():
    positive = np.array([True, True, False, False])
    problem = Problem(np.array([[1.0, 0.3], [1.0, 0.1], [0.0, 0.4], [0.0, 0.2]]), Push(positive))
    solution = CoordinateDescent().solve(problem, np.zeros(2))
    assert solution.separable
    assert np.isfinite(solution.w).all()


@pytest.mark.parametrize("unit", [1e-30, 1e30, 1e100])
def test_units_do_not_matter(unit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + rng.normal(size=60) > 0.5
    plain, scaled = (
        PNormPush(solver="coordinate", alpha=0, max_iter=500).fit(rows, y) for rows in (X, X * unit)
    )
    assert scaled.converged_
    np.testing.assert_allclose(scaled.coef_ * unit, plain.coef_, rtol=1e-6)
