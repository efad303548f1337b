import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from apexrank import InputError, LinearRanker, PNormPush, metrics
from apexrank.losses import LOSSES, ZeroOne
from apexrank.objectives.infinite_push import InfinitePush
from apexrank.penalties import Quadratic
from apexrank.problem import Problem
from apexrank.rankers import CollapsedWarning, SeparableWarning
from apexrank.solvers import Continuation, Newton
from tests.oracles import numerical_gradient

FITTED = ["exponential", "logistic", "squared_hinge", "hinge"]


@pytest.fixture(scope="module")
def wdbc():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:, :6], y == 0


def tiny(seed=0, n=24, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + 0.5 * X[:, 1] + 0.7 * rng.normal(size=n) > 0.3


def highest_height(scores, positive, loss, weight=None):
    """``max_k Σ_i u_i ℓ(f_i − g_k)``, pair by pair; its logarithm for the exponential loss."""
    weight = np.ones(len(scores)) if weight is None else weight
    up, down = positive & (weight > 0), ~positive & (weight > 0)
    pairs = LOSSES.get(loss).value(scores[up][:, None] - scores[down][None, :])
    height = (weight[up] @ pairs).max()
    return np.log(height) if loss == "exponential" else height


def count(y, loss, p=np.inf):
    """Divisor of the sum over positives: ``I·K^{1/p}``, 1 for the exponential loss."""
    return 1.0 if loss == "exponential" else y.sum() * (~y).sum() ** (1 / p)


def epigraph_oracle(X, y, loss, alpha, rho=0.0):
    """Minimum of the infinite push by SLSQP, with t above every negative and slacks for the kinks of hinge and L1."""
    d, up, down = X.shape[1], X[y], X[~y]
    I = len(up)

    def parts(x):
        return x[:d] - x[d : 2 * d], x[2 * d], x[2 * d + 1 :]

    def cost(x):
        w, t, slack = parts(x)
        z = up @ w - t
        push = {
            "exponential": lambda: logsumexp(-z),
            "logistic": lambda: np.logaddexp(0, -z).sum(),
            "squared_hinge": lambda: (np.maximum(0, 1 - z) ** 2).sum(),
            "hinge": slack.sum,
        }[loss]()
        return push + alpha * ((1 - rho) / 2 * w @ w + rho * x[: 2 * d].sum())

    limits = [{"type": "ineq", "fun": lambda x: parts(x)[1] - down @ parts(x)[0]}]
    if loss == "hinge":
        limits.append({"type": "ineq", "fun": lambda x: parts(x)[2] - 1 + up @ parts(x)[0] - parts(x)[1]})
    start = np.concatenate([np.full(2 * d, 0.1), [5.0], np.full(I, 9.0)])
    bounds = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * I
    options = {"maxiter": 3000, "ftol": 1e-13}
    best = minimize(cost, start, method="SLSQP", bounds=bounds, constraints=limits, options=options)
    return parts(best.x)[0], best.fun


@pytest.mark.parametrize("side", ["top", "bottom", "both"])
@pytest.mark.parametrize("loss", FITTED)
def test_value_gradient_and_hessian_of_the_smoothed_objective(loss, side):
    rng = np.random.default_rng(2)
    X, positive = rng.normal(size=(30, 3)), rng.random(30) < 0.4
    weight, groups = rng.integers(1, 4, 30).astype(float), rng.integers(0, 2, 30)
    for extra in ({}, {"sample_weight": weight, "groups": groups}):
        objective = InfinitePush(positive, loss=loss, side=side, balance=0.6, beta=3.0, **extra)
        for round_of in (objective, objective.sharpened(X @ np.array([0.2, 0.1, -0.3]))):
            problem, w = Problem(X, round_of, 0.1), np.array([0.3, -0.2, 0.5])
            value, grad = problem.value_and_grad(w)
            numeric = numerical_gradient(lambda v, p=problem: p.value_and_grad(v)[0], w, 1e-4)
            np.testing.assert_allclose(grad, numeric, rtol=1e-7, atol=1e-7)
            step, hessian = 1e-6, problem.hessian(w)
            for j in range(3):
                e = step * np.eye(3)[j]
                slope = (problem.value_and_grad(w + e)[1] - problem.value_and_grad(w - e)[1]) / (2 * step)
                np.testing.assert_allclose(hessian[j], slope, rtol=1e-5, atol=1e-5)
            held = Problem(sparse.csr_array(X), round_of, 0.1)
            np.testing.assert_allclose(held.hessian(w), hessian, rtol=1e-10)
            assert held.value_and_grad(w)[0] == pytest.approx(value)


@pytest.mark.parametrize("loss", FITTED)
def test_limit_is_the_highest_height(loss):
    rng = np.random.default_rng(3)
    scores, positive = rng.normal(size=40), rng.random(40) < 0.4
    weight, groups = rng.integers(0, 3, 40).astype(float), rng.integers(0, 3, 40)
    limit = InfinitePush(positive, loss=loss, sample_weight=weight, groups=groups).limit(scores)
    expected = [
        highest_height(scores[groups == q], positive[groups == q], loss, weight[groups == q])
        for q in range(3)
    ]
    assert limit == pytest.approx(np.mean(expected), rel=1e-12)
    bottom = InfinitePush(positive, loss=loss, side="bottom").limit(scores)
    assert bottom == pytest.approx(highest_height(-scores, ~positive, loss), rel=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.5])
@pytest.mark.parametrize("alpha", [0.01, 1.0])
@pytest.mark.parametrize("loss", FITTED)
@pytest.mark.filterwarnings("ignore:all coefficients are 0")
def test_against_a_general_solver(loss, alpha, rho):
    X, y = tiny()
    n = count(y, loss)
    ranker = PNormPush(p=np.inf, loss=loss, alpha=alpha / n, l1_ratio=rho, tol=1e-6 / n).fit(X, y)
    w, value = epigraph_oracle(X, y, loss, alpha, rho)
    assert ranker.converged_
    assert n * ranker.objective_ == pytest.approx(value, abs=1e-5)
    assert 0 <= n * ranker.dual_gap_ < 1e-6
    assert n * (ranker.objective_ - ranker.dual_gap_) <= value + 1e-9
    np.testing.assert_allclose(ranker.coef_[0], w, atol=2e-2)
    penalty = alpha * ((1 - rho) / 2 * (ranker.coef_**2).sum() + rho * np.abs(ranker.coef_).sum())
    scores = X @ ranker.coef_[0]
    assert n * ranker.objective_ == pytest.approx(highest_height(scores, y, loss) + penalty, rel=1e-12)


def test_dual_of_toppush_as_printed():
    """``min |X⁺ᵀa − X⁻ᵀq|²/(2λI) − 1ᵀa + |a|²/4`` over a, q ≥ 0 with equal sums (Li, Jin & Zhou 2014)."""
    X, y = tiny()
    up, down = X[y], X[~y]
    I, penalty = len(up), 0.05

    def dual(x):
        v = up.T @ x[:I] - down.T @ x[I:]
        return v @ v / (2 * penalty * I) - x[:I].sum() + x[:I] @ x[:I] / 4

    equal = {"type": "eq", "fun": lambda x: x[:I].sum() - x[I:].sum()}
    start = np.concatenate([np.ones(I), np.full(len(down), I / len(down))])
    options = {"maxiter": 2000, "ftol": 1e-14}
    best = minimize(
        dual, start, method="SLSQP", bounds=[(0, None)] * len(start), constraints=equal, options=options
    )
    ranker = PNormPush(p=np.inf, loss="squared_hinge", alpha=penalty).fit(X, y)
    # TopPush divides the sum of losses by I, as we do: its optimum is −dual/I
    assert ranker.objective_ == pytest.approx(-best.fun / I, rel=1e-7)
    w = (up.T @ best.x[:I] - down.T @ best.x[I:]) / (penalty * I)
    np.testing.assert_allclose(ranker.coef_[0], w, atol=1e-4)
    slack = np.maximum(0, 1 - up @ ranker.coef_[0] + (down @ ranker.coef_[0]).max())
    np.testing.assert_allclose(best.x[:I], 2 * slack, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge"])
def test_limit_of_a_growing_p(wdbc, loss):
    X, y = wdbc
    # the curvature grows with p, so rounding of the value hides slopes of up to about sqrt(eps·p) of it
    tol = {p: max(1e-6, 4 * np.sqrt(np.finfo(float).eps * p)) for p in (64, 1024, 1e5)}
    limit, *fits = (
        PNormPush(p=p, loss=loss, alpha=0.01 / count(y, loss, p), tol=tol.get(p, 1e-6)).fit(X, y)
        for p in (np.inf, *tol)
    )
    lowest = count(y, loss) * limit.objective_
    above = [count(y, loss, fit.p) * fit.objective_ - lowest for fit in fits]
    assert above[0] > 5 * above[1] > 25 * above[2] > 0
    assert above[2] < 1e-4 * lowest
    distance = [np.abs(fit.coef_ - limit.coef_).max() / np.abs(limit.coef_).max() for fit in fits]
    assert distance[2] < 1e-3
    assert distance[2] < distance[1] < distance[0]
    # the value at a given p lies above the limit by at most log(K)/p in the exponent
    if loss == "exponential":
        assert above[1] <= np.log((~y).sum()) / 1024


@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("loss", FITTED)
def test_gap_is_closed_on_real_data(wdbc, loss, alpha):
    X, y = wdbc
    n = count(y, loss)
    ranker = PNormPush(p=np.inf, loss=loss, alpha=alpha / n, tol=1e-6 / n).fit(X, y)
    assert ranker.converged_
    assert 0 <= n * ranker.dual_gap_ < 1e-6
    assert ranker.n_iter_ < 150
    assert ranker.history_[-1] == ranker.objective_


def test_gap_bounds_the_distance_from_the_minimum_at_any_smoothing(wdbc):
    X, y = wdbc
    for loss in FITTED:
        alpha = 0.1 / count(y, loss)
        best = PNormPush(p=np.inf, loss=loss, alpha=alpha).fit(X, y)
        lowest = best.objective_ - best.dual_gap_
        for max_iter in (1, 3, 8):
            problem = Problem(X, InfinitePush(y, loss=loss), alpha)
            early = Continuation(max_iter=max_iter).solve(problem, np.zeros(6))
            assert not early.converged
            assert early.n_iter == max_iter
            assert early.value - early.gap <= best.objective_ + 1e-12
            assert early.value >= lowest


@pytest.mark.parametrize("loss", FITTED)
def test_without_penalty_there_is_no_gap(loss):
    X, y = tiny()
    ranker = PNormPush(p=np.inf, loss=loss, alpha=0).fit(X, y)
    assert np.isnan(ranker.dual_gap_)
    assert ranker.converged_
    assert ranker.objective_ == pytest.approx(
        PNormPush(p=np.inf, loss=loss, alpha=1e-9 / count(y, loss)).fit(X, y).objective_, rel=1e-5
    )


def test_separable_data():
    X, y = load_breast_cancer(return_X_y=True)
    for loss in ("exponential", "logistic"):
        with pytest.warns(SeparableWarning, match="Set `alpha` above 0"):
            ranker = PNormPush(p=np.inf, loss=loss, alpha=0).fit(X, y)
        assert metrics.r_max(y, ranker.decision_function(X)) == 0
    for loss in ("hinge", "squared_hinge"):
        ranker = PNormPush(p=np.inf, loss=loss, alpha=0).fit(X, y)
        assert ranker.converged_
        assert y.sum() * ranker.objective_ < 1e-6
    defaults = PNormPush(p=np.inf).fit(X, y)
    assert defaults.converged_
    assert defaults.dual_gap_ < 1e-6


@pytest.mark.parametrize("loss", ["exponential", "hinge"])
def test_groups_have_their_own_maximum(wdbc, loss):
    X, y = wdbc
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 9, len(y))
    n = count(y, loss) / (1.0 if loss == "exponential" else 9)  # positives of a group, on average
    ranker = PNormPush(p=np.inf, loss=loss, alpha=0.1 / n).fit(X, y, groups=groups)
    assert n * ranker.dual_gap_ < 1e-6
    scores = X @ ranker.coef_[0]
    heights = [highest_height(scores[groups == q], y[groups == q], loss) for q in range(9)]
    value = np.mean(heights) + 0.05 * (ranker.coef_**2).sum()
    assert n * ranker.objective_ == pytest.approx(value, rel=1e-12)
    order = rng.permutation(len(y))
    shuffled = PNormPush(p=np.inf, loss=loss, alpha=0.1 / n).fit(X[order], y[order], groups=groups[order])
    np.testing.assert_allclose(shuffled.coef_, ranker.coef_, atol=1e-3)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_many_rows(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 20))
    y = X[:, 0] + X[:, 1] - 0.5 * X[:, 2] + 2 * rng.normal(size=len(X)) > 2
    with pytest.warns(CollapsedWarning):
        ranker = PNormPush(p=np.inf, loss=loss, alpha=1e-6 / count(y, loss)).fit(X, y)
    assert ranker.converged_
    assert ranker.dual_gap_ < 1e-6
    assert np.isfinite(ranker.coef_).all()


@pytest.mark.parametrize("solver", ["newton", "lbfgs", Continuation()], ids=str)
def test_inner_solvers(wdbc, solver):
    X, y = wdbc
    reference = PNormPush(p=np.inf, alpha=0.1).fit(X, y)
    ranker = PNormPush(p=np.inf, alpha=0.1, solver=solver).fit(X, y)
    assert ranker.objective_ == pytest.approx(reference.objective_, abs=2e-6)


def test_a_negative_above_all_positives_does_not_make_predictions_useless():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(1, 0.5, 100), rng.normal(-1, 0.5, 100), [9.0]])[:, None]
    y = np.arange(201) < 100
    with pytest.warns(CollapsedWarning):
        predicted = PNormPush(p=np.inf, alpha=1e-3).fit(X, y).predict(X)
    assert predicted[:100].mean() > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "coordinate"}, "solver 'coordinate' cannot fit p=inf"),
        ({"solver": Newton()}, "solver 'Newton' cannot fit p=inf"),
        ({"loss": ZeroOne()}, "cannot fit"),
    ],
)
def test_refused_by_name(options, message):
    with pytest.raises(InputError, match=message):
        PNormPush(**{"p": np.inf, **options}).fit([[0.0], [1.0]], [0, 1])


@pytest.fixture(scope="module")
def overlapping():
    """Classes so mixed that the mean of the positives is inside the hull of the negatives."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    return X, X @ [1.0, -0.5, 0.0] + 2 * rng.normal(size=600) > 0.5


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge", "hinge"])
def test_a_minimum_at_zero_ranks_as_growing_p_does_and_says_so(overlapping, loss):
    X, y = overlapping
    with pytest.warns(CollapsedWarning, match="Use a finite `p`"):
        limit = PNormPush(p=np.inf, loss=loss, alpha=1e-3 / count(y, loss)).fit(X, y)
    n = count(y, loss)
    assert n * limit.dual_gap_ < 1.1e-6 * max(1.0, n * limit.objective_)
    zero = np.log(y.sum()) if loss == "exponential" else y.sum() * LOSSES.get(loss).value(0.0)
    assert n * limit.objective_ == pytest.approx(zero, rel=2e-6)
    growing = PNormPush(p=1e5, alpha=0).fit(X, y)
    directions = [ranker.coef_[0] / np.linalg.norm(ranker.coef_[0]) for ranker in (limit, growing)]
    np.testing.assert_allclose(*directions, atol=1e-3)


def test_no_collapse_where_the_classes_are_apart(overlapping):
    X, _ = overlapping
    y = X[:, 0] + 0.1 * X[:, 1] > 1.0
    y[0] = ~y[0]
    ranker = PNormPush(p=np.inf, alpha=1e-3).fit(X, y)
    assert ranker.objective_ < np.log(y.sum()) - 0.1


def test_an_l1_penalty_may_leave_nothing(overlapping):
    X, y = overlapping
    with pytest.warns(CollapsedWarning, match="all coefficients are 0"):
        ranker = PNormPush(p=np.inf, alpha=1.0, l1_ratio=0.5).fit(X, y)
    assert not ranker.coef_.any()


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("seed", [4, 14, 19])
def test_the_gap_does_not_depend_on_the_distance_from_zero(seed, store):
    """Rounding errors of multipliers that do not quite sum to 1 made the bound exceed the minimum."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(16, 5))
    y = X[:, 0] + 0.3 * rng.normal(size=16) > 0
    y[0], y[-1] = False, True
    near = PNormPush(p=np.inf, alpha=2e-4, tol=1e-12).fit(X, y)
    far = PNormPush(p=np.inf, alpha=2e-4).fit(store(X + 500), y)
    lowest = near.objective_ - near.dual_gap_
    assert far.converged_
    assert -1e-7 < far.objective_ - lowest < far.dual_gap_ + 1e-7  # rounding of scores up to 1e6


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge"])
def test_a_penalty_without_a_gap_does_not_end_the_smoothing(loss):
    """A difference penalty leaves the common level of the coefficients free, so that there is no dual bound."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=20) > 0
    D = np.diff(np.eye(3), axis=0)
    penalty = Quadratic(D.T @ D, 0.2)
    ranker = LinearRanker("infinite_push", penalty, objective_params={"loss": loss}, tol=1e-8).fit(X, y)

    def value(w):
        return highest_height(X @ w, y, loss) / count(y, loss) + penalty.value(w)

    w = ranker.coef_[0]
    assert ranker.converged_
    assert ranker.objective_ == pytest.approx(value(w), rel=1e-12)
    options = {"maxiter": 4000, "xatol": 1e-10, "fatol": 1e-12}
    lower = min(minimize(value, start, method="Nelder-Mead", options=options).fun for start in (w, 1.1 * w))
    assert ranker.objective_ - lower < 1e-7
