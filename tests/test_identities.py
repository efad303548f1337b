"""Facts of the papers about the P-Norm Push, each checked by an independent computation."""

import numpy as np
import pytest
from scipy.optimize import minimize

from apexrank import PNormPush, metrics
from apexrank.objectives import Push
from apexrank.prices import Power
from apexrank.problem import Problem
from apexrank.solvers import LBFGS, CoordinateDescent, Newton
from tests.oracles import numerical_gradient, push_objective


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    X = rng.random((80, 3))
    positive = X @ [1.0, -1.0, 0.5] + 0.4 * rng.normal(size=80) > 0.3
    return X, positive


def pair_margins(X, positive, w):
    scores = X @ w
    return scores[positive][:, None] - scores[~positive][None, :]


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_theorem_4_solvers_may_differ_in_lambda_but_not_in_the_pairs(data, p):
    # a copied column makes λ ambiguous; e^{−(Mλ)_ik} is not
    X, positive = data
    doubled = np.column_stack([X, X[:, 0]])
    problem = Problem(doubled, Push(positive, price=Power(p)))
    ends = [
        solver.solve(problem, start).w
        for solver, start in (
            (LBFGS(tol=1e-9), np.zeros(4)),
            (LBFGS(tol=1e-9), np.array([5.0, 0.0, 0.0, -5.0])),
            (CoordinateDescent(t_max=20_000, tol=1e-9), np.zeros(4)),
            (Newton(tol=1e-9), np.array([-2.0, 0.0, 0.0, 1.0])),
        )
    ]
    assert np.abs(ends[0] - ends[1]).max() > 1
    pairs = [np.exp(-pair_margins(doubled, positive, w)) for w in ends]
    for other in pairs[1:]:
        np.testing.assert_allclose(other, pairs[0], rtol=1e-5)


@pytest.mark.parametrize("p", [1.0, 2.0, 5.0])
def test_bregman_primal_equals_the_dual_at_the_optimum(data, p):
    # JMLR 2009, sec. 11, with the inner sum of γ over i' only (the printed i'k' does not give eq. 11)
    X, positive = data
    w = Newton(tol=1e-10).solve(Problem(X, Push(positive, price=Power(p))), np.zeros(3)).w
    loss = np.exp(-pair_margins(X, positive, w))
    I, K = loss.shape
    q = loss * loss.sum(axis=0) ** (p - 1)
    gamma = np.log(q / (p ** (1 / p) * q.sum(axis=0) ** ((p - 1) / p)))
    primal = (q * gamma).sum() - (1 - np.log(p)) / p * q.sum() + I**p * K / p
    risk = (loss.sum(axis=0) ** p).sum()
    # the dual value is B(0, q₀) − B(0, q*) = (I^p·K − R)/p
    assert primal == pytest.approx((I**p * K - risk) / p, rel=1e-7)
    # and q* is feasible: qᵀM = 0
    M = X[positive][:, None, :] - X[~positive][None, :, :]
    assert np.abs(np.einsum("ik,ikj->j", q, M)).max() < 1e-6 * q.sum()


def gamma(q, p):
    """γ(q_ik, q) of sec. 11, with the sum over i' as in eq. (11)."""
    return np.log(q / (p ** (1 / p) * q.sum(axis=0) ** ((p - 1) / p)))


def phi(q, p):
    return (q * gamma(q, p)).sum()


def bregman(a, b, p):
    return phi(a, p) - phi(b, p) - ((1 / p + gamma(b, p)) * (a - b)).sum()


def projection(q, v, p):
    """Eq. (12)."""
    lifted = np.exp(v) * q
    return lifted * (lifted.sum(axis=0) / q.sum(axis=0)) ** (p - 1)


@pytest.mark.parametrize("p", [1.0, 2.0, 5.0])
def test_the_functions_of_section_11(p):
    rng = np.random.default_rng(1)
    (q, other), v = rng.gamma(1.0, size=(2, 4, 3)), rng.normal(size=(4, 3))
    shape, slope = q.shape, 1 / p + gamma(q, p)
    numeric = numerical_gradient(lambda x: phi(x.reshape(shape), p), q.ravel())
    np.testing.assert_allclose(slope.ravel(), numeric, atol=1e-6)  # (11)
    # Lemma 11: the Hessian of each column is positive definite; with the minus of the talk φ would be concave
    for column in q.T:
        hessian = np.diag(1 / column) - (p - 1) / p / column.sum()
        assert np.linalg.eigvalsh(hessian).min() > 0

    def conjugate(x):
        return (np.exp(x.reshape(shape) - 1 / p).sum(axis=0) ** p).sum()

    # A2 prints the gradient of φ* as φ* itself; both are finite everywhere
    assert phi(q, p) + conjugate(slope) == pytest.approx((q * slope).sum())
    e = np.exp(v - 1 / p)
    np.testing.assert_allclose(
        numerical_gradient(conjugate, v.ravel()), (p * e * e.sum(axis=0) ** (p - 1)).ravel(), rtol=1e-5
    )
    found = projection(q, v, p)
    np.testing.assert_allclose(1 / p + gamma(found, p), slope + v)  # (10) and (12)
    assert bregman(found, q, p) == pytest.approx((found * v).sum() - (found - q).sum() / p)  # A4
    apart = (other * (gamma(other, p) - gamma(q, p))).sum() - (other - q).sum() / p
    assert bregman(other, q, p) == pytest.approx(apart)  # (13)
    assert apart > 0
    z = p ** (1 / p) * np.exp(gamma(q, p))
    np.testing.assert_allclose(z * z.sum(axis=0) ** (p - 1), q)  # A3


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_theorem_10_is_pythagoras(data, p):
    X, positive = data
    M = (X[positive][:, None, :] - X[~positive][None, :, :]).reshape(-1, 3)
    shape = positive.sum(), (~positive).sum()
    w = Newton(tol=1e-11).solve(Problem(X, Push(positive, price=Power(p))), np.zeros(3)).w

    def member(weights):
        """Element of Q for λ, with q₀ = I^{p−1}."""
        return projection(np.full(shape, shape[0] ** (p - 1)), -(M @ weights).reshape(shape), p)

    best, rng = member(w), np.random.default_rng(2)
    assert np.abs(best.ravel() @ M).max() < 1e-7 * best.sum()  # 1: q* is in P and Q
    step = rng.normal(size=best.size)
    step -= M @ np.linalg.lstsq(M, step, rcond=None)[0]  # stepᵀM = 0
    feasible = best + 0.5 * best.min() * (step / np.abs(step).max()).reshape(shape)
    for weights in (np.zeros(3), rng.normal(size=3)):
        q = member(weights)
        parts = bregman(feasible, best, p) + bregman(best, q, p)
        assert bregman(feasible, q, p) == pytest.approx(parts, rel=1e-6)  # 2
        assert bregman(best, q, p) < bregman(feasible, q, p)  # 3


@pytest.mark.parametrize("p", [1.0, 4.0])
def test_p_classification_has_the_same_ranking_without_a_penalty(data, p):
    X, positive = data

    def p_classification(parameters):
        scores = X @ parameters[:3] + parameters[3]
        return np.exp(-scores[positive]).sum() + np.exp(p * scores[~positive]).sum() / p

    other = minimize(p_classification, np.zeros(4), method="BFGS", options={"gtol": 1e-10})
    ours = PNormPush(p=p, alpha=0, tol=1e-9).fit(X, positive)
    np.testing.assert_allclose(ours.coef_[0], other.x[:3], rtol=1e-4)
    assert ours.intercept_[0] == pytest.approx(other.x[3], abs=1e-4)


def test_p_classification_form_is_a_function_of_the_push(data):
    # min over b of Σ e^{−(f+b)} + (1/p) Σ e^{p(g+b)} = (1 + 1/p)·R^{1/(p+1)}
    X, positive = data
    p, scores = 3.0, X @ [0.3, -0.5, 0.2]
    f, g = scores[positive], scores[~positive]
    best = min(np.exp(-(f + b)).sum() + np.exp(p * (g + b)).sum() / p for b in np.linspace(-3, 3, 60_001))
    risk = np.exp(p * push_objective(scores, positive, p=p))
    assert best == pytest.approx((1 + 1 / p) * risk ** (1 / (p + 1)), rel=1e-7)


def test_one_is_the_whole_list_and_infinity_its_top(data):
    X, positive = data
    scores = X[:, 0] - X[:, 1]
    I, K = positive.sum(), (~positive).sum()
    pairs = metrics.p_norm_risk(positive, scores, p=1)
    assert pairs == pytest.approx(I * K * (1 - metrics.auc(positive, scores, ties="pessimistic")))
    log_risk = metrics.p_norm_risk(positive, scores, p=4096, log=True)
    assert np.exp(log_risk / 4096) == pytest.approx(metrics.r_max(positive, scores), rel=1e-2)


def test_convexity_of_log_risk_is_for_the_exponential_loss_only():
    # recipes: log R with the power price is convex for the exponential loss, not for the logistic one
    rng = np.random.default_rng(0)
    violated = {"exponential": 0, "logistic": 0}
    for _ in range(400):
        a, b = rng.normal(size=(2, 5)) * 4
        positive = np.array([True, True, False, False, False])
        for loss in violated:
            values = [
                np.log(Push(positive, loss=loss, price=Power(2)).value_and_grad(s)[0])
                if loss == "logistic"
                else Push(positive, loss=loss, price=Power(2)).value_and_grad(s)[0]
                for s in (a, b, (a + b) / 2)
            ]
            violated[loss] += values[2] > (values[0] + values[1]) / 2 + 1e-12
    assert violated["exponential"] == 0
    assert violated["logistic"] > 0


FALLING = {
    "convex": (lambda r: (r - 3) ** 2, 1.0),
    "convex in ln r": (lambda r: np.log(r) ** 2, 0.5),
    "reciprocal": (lambda r: 1 / r, 1.0),
}
LOSS = {
    "exponential": (lambda z: np.exp(-z), lambda r: -np.log(r)),
    "logistic": (lambda z: np.logaddexp(0, -z), lambda r: -np.log(np.expm1(r))),
    "hinge": (lambda z: np.maximum(0, 1 - z), lambda r: 1 - r),
    "squared hinge": (lambda z: np.maximum(0, 1 - z) ** 2, lambda r: 1 - np.sqrt(r)),
}


@pytest.mark.parametrize("loss", LOSS)
@pytest.mark.parametrize("name", FALLING)
@pytest.mark.parametrize("n_negatives", [1, 3])
def test_a_price_that_falls_is_convex_with_no_loss(name, loss, n_negatives):
    """JMLR 2009, sec. 9.3: at a height where g decreases, move two positives so that the height is minimal."""
    (g, height), (value, inverse) = FALLING[name], LOSS[loss]

    def objective(f):
        return n_negatives * g(value(np.asarray(f)).sum())  # all negatives at score 0

    if loss == "hinge":  # the kink replaces the second derivative
        f, direction = np.array([1.0, inverse(height)]), np.array([1.0, -0.5])
    else:
        f, direction = np.full(2, inverse(height / 2)), np.array([1.0, -1.0])
    ends = [objective(f + step * direction) for step in (-0.05, 0.05)]
    assert objective(f) > np.mean(ends) + 1e-6


def test_with_one_positive_a_price_may_fall():
    """The height is then the exponential of a linear function, and (ln r)² is its square."""
    rng = np.random.default_rng(0)

    def objective(scores):
        return (np.log(np.exp(-(scores[0] - scores[1:]))) ** 2).sum()

    for a, b in rng.normal(size=(200, 2, 5)):
        assert objective((a + b) / 2) <= (objective(a) + objective(b)) / 2 + 1e-12


def test_the_logistic_loss_allows_a_little_less_than_a_convex_price():
    """Elasticity 1 − r/(e^r − 1), that of the concave ln(e^r − 1), is sufficient; slightly less is not."""
    rng = np.random.default_rng(1)

    def objective(z, concavity):
        r = np.logaddexp(0, -z).sum()
        # slope (1 − e^{−r})^{−c}, whose elasticity is 1 − c·r/(e^r − 1); with one positive, along z = −ln(e^r − 1)
        grid = np.linspace(1e-3, r, 4001)
        return np.trapezoid((-np.expm1(-grid)) ** -concavity, grid)

    for a, b in rng.normal(size=(50, 2, 3)):
        exact = [np.log(np.expm1(np.logaddexp(0, -z).sum())) for z in (a, b, (a + b) / 2)]
        assert exact[2] <= (exact[0] + exact[1]) / 2 + 1e-12
    ends = [objective(np.array([z]), 1.2) for z in (-0.5, 0.5)]
    assert objective(np.array([0.0]), 1.2) > np.mean(ends)
