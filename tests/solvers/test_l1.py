import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from apexrank import InputError, PNormPush, PNormPushCV
from apexrank.objectives import Push
from apexrank.objectives.classification import PClassification
from apexrank.penalties import elastic_net
from apexrank.prices import Power
from apexrank.problem import Problem
from apexrank.solvers import LBFGS, Auto, CoordinateDescent, Newton
from tests.oracles import numerical_gradient, push_objective

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "push" / "sparse_scorecard.py"


@pytest.fixture(scope="module")
def wdbc():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y == 0


def tiny(seed=0, n=40, d=4):
    """Not separable; the last column is noise, which a penalty removes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + 0.5 * X[:, 1] + 1.5 * rng.normal(size=n) > 0.3


def classification_value(scores, positive, p, weight=None):
    """Minimum over b of ``Σ_i e^{−(f_i + b)} + (1/p)·Σ_k e^{p(g_k + b)}``, found by search."""
    weight = np.ones(len(scores)) if weight is None else weight

    def cost(b):
        up = weight[positive] @ np.exp(-(scores[positive] + b))
        return up + weight[~positive] @ np.exp(p * (scores[~positive] + b)) / p

    return minimize_scalar(cost, bracket=(-1, 1), tol=1e-12).fun


def classification_count(positive, p):
    """Divisor of the form: ``(I^p·K)^{1/(p+1)}``."""
    return (positive.sum() ** p * (~positive).sum()) ** (1 / (p + 1))


def split_oracle(smooth, alpha, rho, d):
    """Minimum of ``smooth(w) + alpha·[(1 − ρ)/2·|w|² + ρ·|w|₁]`` by SLSQP on w = x⁺ − x⁻."""

    def cost(x):
        w = x[:d] - x[d:]
        return smooth(w) + alpha * ((1 - rho) / 2 * w @ w + rho * x.sum())

    options = {"maxiter": 2000, "ftol": 1e-15}
    best = minimize(cost, np.full(2 * d, 0.1), method="SLSQP", bounds=[(0, None)] * (2 * d), options=options)
    return best.x[:d] - best.x[d:], best.fun


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs"])
@pytest.mark.parametrize(("rho", "share"), [(0.5, 0.3), (0.9, 0.2), (0.9, 0.02), (1.0, 0.3), (1.0, 0.05)])
@pytest.mark.parametrize("p", [1, 4])
def test_against_a_general_solver(p, rho, share, solver):
    X, y = tiny()
    ranker = PNormPush(p=p, l1_ratio=rho, solver=solver)
    alpha = share * ranker.alpha_max(X, y)
    ranker.set_params(alpha=alpha).fit(X, y)

    def smooth(w):
        if rho == 1:
            return classification_value(X @ w, y, p) / classification_count(y, p)
        return push_objective(X @ w, y, p=p)

    w, value = split_oracle(smooth, alpha, rho, X.shape[1])
    assert ranker.converged_
    assert ranker.objective_ == pytest.approx(value, rel=1e-8)
    assert ranker.objective_ - ranker.dual_gap_ <= value + 1e-9 * abs(value)
    assert ranker.dual_gap_ <= 1e-5 * abs(value)
    np.testing.assert_allclose(ranker.coef_[0], w, atol=1e-3)
    np.testing.assert_array_equal(ranker.coef_[0] == 0, np.abs(w) < 1e-5)
    assert ranker.history_[-1] == ranker.objective_
    assert len(ranker.history_) == ranker.n_iter_ + 1


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_p_classification_is_a_function_of_the_push(p):
    rng = np.random.default_rng(1)
    scores, positive = rng.normal(size=30), rng.random(30) < 0.4
    weight = rng.integers(1, 4, 30).astype(float)
    objective = PClassification(Push(positive, price=Power(p), sample_weight=weight))
    value, gradient = objective.value_and_grad(scores)
    assert value == pytest.approx(classification_value(scores, positive, p, weight), rel=1e-10)
    numeric = numerical_gradient(lambda s: objective.value_and_grad(s)[0], scores, 1e-3)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-7)
    X = rng.normal(size=(30, 3))
    problem, w = Problem(X, objective, 0.1), rng.normal(size=3)
    numeric = [numerical_gradient(lambda v, i=i: problem.value_and_grad(v)[1][i], w, 1e-4) for i in range(3)]
    np.testing.assert_allclose(problem.hessian(w), numeric, rtol=1e-6)
    # one pass over X and two passes agree
    two = Problem(np.asfortranarray(X), objective, 0.1).value_and_grad(w)
    assert problem.value_and_grad(w)[0] == pytest.approx(two[0], rel=1e-13)
    np.testing.assert_allclose(problem.value_and_grad(w)[1], two[1], rtol=1e-11)


@pytest.mark.parametrize("p", [1, 8, 64])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_optimality_conditions_of_the_elastic_net(wdbc, p, share):
    X, y = wdbc
    ranker = PNormPush(p=p, l1_ratio=0.8)
    ranker.set_params(alpha=share * ranker.alpha_max(X, y), tol=1e-8).fit(X, y)
    w, f, g = ranker.coef_[0], X[y] @ ranker.coef_[0], p * X[~y] @ ranker.coef_[0]
    a, b = np.exp(-f + f.min()), np.exp(g - g.max())
    pull = X[y].T @ a / a.sum() - X[~y].T @ b / b.sum()
    l1, l2 = 0.8 * ranker.alpha, 0.2 * ranker.alpha
    kept = w != 0
    assert 0 < kept.sum() < 30
    np.testing.assert_allclose(pull[kept], l2 * w[kept] + l1 * np.sign(w[kept]), atol=1e-6)
    assert np.abs(pull[~kept]).max() <= l1 + 1e-9


def test_dual_gap_of_the_elastic_net_is_the_written_out_one():
    X, y = tiny()
    rng, p, alpha, rho = np.random.default_rng(3), 5.0, 0.3, 0.6
    problem, w = Problem(X, Push(y, price=Power(p)), elastic_net(alpha, rho)), rng.normal(size=4)
    value, grad = problem.penalised(w)
    f, g = X[y] @ w, X[~y] @ w
    a, b = np.exp(-f) / np.exp(-f).sum(), np.exp(p * g) / np.exp(p * g).sum()
    v = X[y].T @ a - X[~y].T @ b
    conjugate = (np.maximum(np.abs(v) - rho * alpha, 0) ** 2).sum() / (2 * (1 - rho) * alpha)
    dual = -(a * np.log(a)).sum() - (b * np.log(b)).sum() / p - conjugate
    assert value == pytest.approx(push_objective(X @ w, y, p=p) + problem.penalty.value(w), rel=1e-12)
    assert problem.certificate(w, value, grad).gap == pytest.approx(value - dual, rel=1e-10)


def test_dual_gap_of_pure_l1_is_the_written_out_one():
    X, y = tiny()
    p, alpha, w = 3.0, 2.0, np.array([0.4, 0.1, -0.2, 0.0])
    n = classification_count(y, p)
    problem = Problem(X, PClassification(Push(y, price=Power(p))), elastic_net(alpha / n, 1.0))
    value, grad = problem.penalised(w)
    f, g = X[y] @ w, X[~y] @ w
    b = (np.log(np.exp(-f).sum()) - np.log(np.exp(p * g).sum())) / (p + 1)
    a, q = np.exp(-(f + b)), np.exp(p * (g + b))
    s = min(1, alpha / np.abs(X[y].T @ a - X[~y].T @ q).max())
    assert s < 1
    a, q = s * a, s * q
    dual = ((a - a * np.log(a)).sum() + (q - q * np.log(q)).sum() / p) / n
    assert problem.certificate(w, value, grad).gap == pytest.approx(value - dual, rel=1e-10)


def test_pure_l1_gap_bounds_the_distance_from_the_minimum_for_other_objectives():
    X, y = tiny()
    problem = Problem(X, Push(y, price="log1p", side="bottom"), elastic_net(2.0 / y.sum(), 1.0))
    best = Newton(tol=1e-10).solve(problem, np.zeros(4))
    assert best.gap <= 1e-7
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0):
        w = best.w + size * rng.normal(size=4)
        value, grad = problem.penalised(w)
        assert problem.certificate(w, value, grad).gap >= value - best.value > 0


@pytest.mark.parametrize(
    "options",
    [
        {"l1_ratio": 0.3},
        {"l1_ratio": 1.0},
        {"l1_ratio": 1.0, "price": "log1p", "side": "bottom"},
        {"l1_ratio": 1.0, "price": "exponential", "side": "both"},
        {"l1_ratio": 0.5, "loss": "squared_hinge", "p": 3},
        {"l1_ratio": 1.0, "loss": "logistic"},
    ],
    ids=str,
)
def test_alpha_max_is_where_the_last_coefficient_vanishes(options):
    X, y = tiny()
    weight, groups = np.arange(40) % 3 + 0.5, np.arange(40) % 2
    for extra in ({}, {"sample_weight": weight}, {"groups": groups}):
        ranker = PNormPush(**options)
        highest = ranker.alpha_max(X, y, **extra)
        assert not ranker.set_params(alpha=highest * (1 + 1e-9)).fit(X, y, **extra).coef_.any()
        assert ranker.set_params(alpha=highest * 0.98).fit(X, y, **extra).coef_.any()


@pytest.mark.parametrize(
    "options",
    [
        {"price": "log1p", "side": "bottom"},
        {"price": "exponential"},
        {"loss": "squared_hinge", "p": 3},
        {"loss": "logistic", "side": "both"},
    ],
    ids=str,
)
def test_pure_l1_on_other_forms_of_the_push(options):
    X, y = tiny()
    ranker = PNormPush(l1_ratio=1.0, **options)
    alpha = 0.2 * ranker.alpha_max(X, y)
    ranker.set_params(alpha=alpha).fit(X, y)
    oracle, (up, down) = {"p": 4.0, **options}, (y.sum(), (~y).sum())
    count = {  # of the rows priced, of the pairs' mean, and of both sides of it
        "log1p": up,
        "exponential": 1.0,
        "squared_hinge": up * down ** (1 / 3),
        "logistic": up * down**0.25 + down * up**0.25,
    }[options.get("loss", options.get("price"))]
    w, value = split_oracle(lambda w: push_objective(X @ w, y, **oracle) / count, alpha, 1.0, 4)
    assert ranker.objective_ == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(ranker.coef_[0], w, atol=1e-3)


def test_separable_data_have_a_finite_sparse_answer(wdbc):
    X, y = wdbc
    for rho in (0.5, 1.0):
        alpha = 1e-3 / (1.0 if rho < 1 else classification_count(y, 4))
        ranker = PNormPush(p=4, alpha=alpha, l1_ratio=rho).fit(X, y)
        assert ranker.converged_
        assert np.isfinite(ranker.coef_).all()
        assert np.isfinite(ranker.dual_gap_)


def test_small_shares_tend_to_ridge_and_no_penalty_to_none(wdbc):
    X, y = wdbc[0][:, :3], wdbc[1]
    ridge = PNormPush(alpha=0.1).fit(X, y).coef_
    np.testing.assert_allclose(PNormPush(alpha=0.1, l1_ratio=1e-9).fit(X, y).coef_, ridge, rtol=1e-5)
    free = PNormPush(alpha=0.0, l1_ratio=0.5).fit(X, y)
    np.testing.assert_array_equal(free.coef_, PNormPush(alpha=0.0).fit(X, y).coef_)


def test_sparse_matrices_weights_and_groups(wdbc):
    X, y = wdbc[0][:200, :8], wdbc[1][:200]
    rng = np.random.default_rng(0)
    weight, groups = rng.integers(0, 3, 200), rng.integers(0, 5, 200)
    options = {"alpha": 0.05, "l1_ratio": 0.7}
    dense = PNormPush(**options).fit(X, y, sample_weight=weight)
    held = PNormPush(**options).fit(sparse.csr_array(X), y, sample_weight=weight)
    np.testing.assert_allclose(held.coef_, dense.coef_, atol=1e-6)
    repeated = PNormPush(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(repeated.coef_, dense.coef_, atol=1e-6)
    grouped = PNormPush(**options).fit(X, y, groups=groups)
    assert grouped.converged_
    push = push_objective(X @ grouped.coef_[0], y, groups=groups, p=4)
    penalty = 0.05 * (0.15 * (grouped.coef_**2).sum() + 0.7 * np.abs(grouped.coef_).sum())
    assert grouped.objective_ == pytest.approx(push + penalty, rel=1e-12)


def test_auto_starts_with_lbfgs_on_large_problems_and_hands_over(wdbc, monkeypatch):
    monkeypatch.setattr("apexrank.solvers.auto.CHEAP", 0)
    X, y = wdbc
    problem = Problem(X, Push(y, price=Power(64)), elastic_net(1e-3, 0.9))
    solution = Auto().solve(problem, np.zeros(30))
    assert solution.converged
    assert solution.n_iter > 100
    monkeypatch.setattr("apexrank.solvers.auto.PATIENCE", 10**6)
    assert Auto(max_iter=300).solve(problem, np.zeros(30)).n_iter == 300


def test_iteration_limit_is_not_convergence(wdbc):
    X, y = wdbc
    problem = Problem(X, Push(y), elastic_net(1e-3, 0.5))
    for solver in (Newton(max_iter=2), LBFGS(max_iter=2)):
        solution = solver.solve(problem, np.zeros(30))
        assert (solution.n_iter, solution.converged) == (2, False)


def test_choice_by_cross_validation_takes_the_share(wdbc):
    X, y = wdbc
    search = PNormPushCV(ps=[4], alphas=[0.3], l1_ratio=0.9, cv=2).fit(X, y)
    np.testing.assert_array_equal(search.coef_, PNormPush(4, alpha=0.3, l1_ratio=0.9).fit(X, y).coef_)
    assert (search.coef_ == 0).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"l1_ratio": 0.5, "solver": "coordinate"},
            "solver 'coordinate' cannot fit an L1 penalty: use auto, lbfgs",
        ),
        (
            {"l1_ratio": 0.5, "solver": CoordinateDescent()},
            "solver 'CoordinateDescent' cannot fit an L1 penalty",
        ),
        ({"l1_ratio": 1.0, "p": np.inf}, "no minimum under a pure L1 penalty"),
    ],
)
def test_refused_by_name(options, message):
    with pytest.raises(InputError, match=message):
        PNormPush(**options).fit([[0.0], [1.0]], [0, 1])


def test_alpha_max_needs_a_share_and_a_finite_p():
    for options in ({}, {"l1_ratio": 0.5, "p": np.inf}):
        with pytest.raises(InputError, match="alpha_max needs"):
            PNormPush(**options).alpha_max([[0.0], [1.0]], [0, 1])


def test_the_example_shows_ever_larger_scorecards(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    table, card, conclusion = capsys.readouterr().out.split("\n\n")
    features = [int(line.split()[1]) for line in table.splitlines()[1:]]
    assert features == sorted(features)
    assert 0 < features[0] < 5 < features[-1]
    size = len(card.splitlines()) - 1
    assert size in features
    assert conclusion.startswith(f"With {size} features")
