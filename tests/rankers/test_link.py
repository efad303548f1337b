import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import isotonic_regression
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics.pairwise import rbf_kernel

from apexrank.errors import InputError
from apexrank.objectives.link import UnknownLink
from apexrank.rankers.link import ConvexFunction, Link, UnknownLinkRegressor
from apexrank.rankers.listwise import ListwiseRanker

# ---------------------------------------------------------------- recovery of the direction

LINK_FUNCTIONS = {
    "logistic": lambda t: 1 / (1 + np.exp(-3 * t)),
    "cube": lambda t: t**3,
    "signed square root": lambda t: np.sign(t) * np.sqrt(np.abs(t)),
    "staircase": lambda t: np.floor(2 * t),
}


def skew_rows(name, n=5000, d=20, noise=0.1, seed=0):
    """Standardised gamma features, far from elliptical, and y = g(x·u) + noise."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(n, d))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    u = rng.normal(size=d)
    u /= np.linalg.norm(u)
    signal = LINK_FUNCTIONS[name](X @ u)
    return X, signal + noise * signal.std() * rng.normal(size=n), u, signal


def degrees(a, b):
    return np.degrees(np.arccos(abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b)))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", LINK_FUNCTIONS)
def test_direction_is_recovered(name, seed):
    X, y, u, signal = skew_rows(name, seed=seed)
    model = UnknownLinkRegressor().fit(X, y)
    by_least_squares = np.linalg.lstsq(X, y - y.mean(), rcond=None)[0]
    assert model.coef_ @ u > 0
    if name != "cube":
        assert degrees(model.coef_, u) <= 1
    if name != "staircase":  # which is close to a line
        assert degrees(model.coef_, u) <= degrees(by_least_squares, u) / 3
    missed = np.mean((model.predict(X) - signal) ** 2)
    if name != "cube":  # whose direction is degrees off: 0.7 % in the worst of these draws
        assert missed < 0.005 * signal.var()
    if name != "staircase":
        by_line = y.mean() + X @ by_least_squares
        assert missed < 0.1 * np.mean((by_line - signal) ** 2)
    assert model.dual_gap_ < 1e-7 * y.var()


def test_isotonic_links_predict_best_with_noise():
    """The slope 1/s flattens the steepest places, and the link of the cost follows the noise."""
    X, y, _, signal = skew_rows("logistic", noise=1.0, seed=1)
    train, test = slice(0, 4000), slice(4000, None)
    errors = [
        np.mean(
            (UnknownLinkRegressor(link=link).fit(X[train], y[train]).predict(X[test]) - signal[test]) ** 2
        )
        for link in ("isotonic", "least_squares", "cost")
    ]
    assert errors[0] < 0.3 * errors[1]
    assert errors[1] < 0.8 * errors[2]


# ---------------------------------------------------------------- the minimum


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, np.tanh(2 * X @ [1.0, -0.5, 0.2]) + 0.3 * rng.normal(size=120)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_fit_is_the_minimum_over_coefficients_and_convex_functions(solver):
    """φ, φ* and w are variables of one convex programme (see tests of the objective for its constraints)."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy solves the programme over convex functions")
    rng = np.random.default_rng(2)
    n, alpha, s = 7, 0.05, 0.6
    X, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    w, phi, p, x = (cp.Variable(k) for k in (2, n, n, n))
    theta = X @ w
    constraints = [phi[0] == 0]
    constraints += [
        phi[j] >= theta[i] * y[j] - p[i] + s / 2 * cp.square(y[j] - x[i]) for i in range(n) for j in range(n)
    ]
    cost = (cp.sum(phi) + cp.sum(p) - y @ theta) / n + alpha / 2 * cp.sum_squares(w)
    value = cp.Problem(cp.Minimize(cost), constraints).solve(solver=cp.CLARABEL)
    model = UnknownLinkRegressor(s, alpha=alpha, solver=solver, tol=1e-10).fit(X, y)
    assert model.objective_ == pytest.approx(value, abs=1e-7)
    np.testing.assert_allclose(model.coef_, w.value, atol=1e-4)
    assert model.converged_


def test_the_gap_bounds_the_distance_to_the_minimum(data):
    X, y = data
    best = UnknownLinkRegressor(tol=1e-12).fit(X, y).objective_
    for tol in (1e-1, 1e-2, 1e-3):
        model = UnknownLinkRegressor(solver="lbfgs", tol=tol).fit(X, y)
        assert -1e-14 <= model.objective_ - best <= model.dual_gap_
        assert model.dual_gap_ > 0
    assert np.isnan(UnknownLinkRegressor(alpha=0.0).fit(X, y).dual_gap_)
    assert model.history_[-1] == model.objective_


@pytest.mark.parametrize("link", ["isotonic", "least_squares", "cost"])
def test_units(data, link):
    X, y = data
    model = UnknownLinkRegressor(0.5, alpha=0.02, link=link, tol=1e-11).fit(X, y)
    larger = clone(model).fit(X, 100 * y - 7)
    np.testing.assert_allclose(larger.coef_, 100 * model.coef_, rtol=1e-6)
    np.testing.assert_allclose(larger.predict(X), 100 * model.predict(X) - 7, rtol=1e-6)
    one_parameter = clone(model).set_params(strong_convexity=2.0, alpha=0.005).fit(X, y)
    np.testing.assert_allclose(one_parameter.coef_, 4 * model.coef_, rtol=1e-6)
    np.testing.assert_allclose(one_parameter.predict(X), model.predict(X), rtol=1e-6)
    moved = clone(model).fit(X + 50.0, y)
    np.testing.assert_allclose(moved.coef_, model.coef_, rtol=1e-6)
    np.testing.assert_allclose(moved.predict(X + 50.0), model.predict(X), rtol=1e-6)


def test_fitted_values_are_those_of_the_cost(data):
    X, y = data
    model = UnknownLinkRegressor(link="cost", alpha=0.01).fit(X, y)
    np.testing.assert_allclose(model.fitted_, model.predict(X), atol=1e-9)
    objective = UnknownLink(y, normalize=True)
    np.testing.assert_allclose(model.fitted_, objective.fitted(X @ model.coef_), atol=1e-9)
    penalty = 0.005 * model.coef_ @ model.coef_
    assert model.objective_ == pytest.approx(
        objective.value_and_grad(X @ model.coef_)[0] + penalty, rel=1e-12
    )
    phi, theta = model.recovered_phi_, model.index(X)
    assert np.mean(phi(y) + phi.conjugate(theta) - y * theta) + penalty == pytest.approx(
        model.objective_, rel=1e-9
    )


def test_kinds_of_rows(data):
    X, y = data
    model = UnknownLinkRegressor(alpha=0.01, tol=1e-10).fit(X, y)
    from_sparse = clone(model).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(from_sparse.coef_, model.coef_, rtol=1e-7)
    np.testing.assert_allclose(from_sparse.predict(sparse.csr_array(X)), model.predict(X), atol=1e-7)
    single = clone(model).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.coef_, model.coef_, rtol=1e-5)


def test_warm_start(data):
    X, y = data
    model = UnknownLinkRegressor(alpha=0.01, warm_start=True).fit(X, y)
    cold = model.n_iter_
    assert len(model.fit(X, y).history_) == 1 < cold


def test_weights_are_repetitions(data):
    X, y = data
    count = np.random.default_rng(3).integers(0, 4, len(y))
    for link in ("isotonic", "least_squares", "cost"):
        model = UnknownLinkRegressor(link=link, tol=1e-11)
        once = clone(model).fit(X, y, sample_weight=count)
        often = clone(model).fit(np.repeat(X, count, axis=0), np.repeat(y, count))
        np.testing.assert_allclose(once.coef_, often.coef_, rtol=1e-7)
        np.testing.assert_allclose(once.predict(X), often.predict(X), rtol=1e-6, atol=1e-9)


# ---------------------------------------------------------------- the link


def test_isotonic_link_is_isotonic_regression(data):
    X, y = data
    X = np.vstack([X, X[:40]])  # ties
    y = np.concatenate([y, y[:40] + 0.5])
    model = UnknownLinkRegressor().fit(X, y)
    reference = IsotonicRegression(out_of_bounds="clip").fit(model.index(X), y)
    other = np.random.default_rng(1).normal(size=(50, 3))
    np.testing.assert_allclose(model.predict(other), reference.predict(model.index(other)), atol=1e-9)
    assert model.link_.slope == np.inf
    assert len(model.link_.knots) < 80


def test_least_squares_link_is_the_quadratic_programme(data):
    cp = pytest.importorskip("cvxpy", reason="cvxpy solves the quadratic programme")
    X, y = data
    count = np.random.default_rng(5).integers(1, 3, len(y))
    model = UnknownLinkRegressor(link="least_squares").fit(X, y, sample_weight=count)
    order = np.argsort(model.index(X))
    theta, v = model.index(X)[order], cp.Variable(len(y))
    rise = cp.diff(v)
    cost = cp.sum(cp.multiply(count[order], cp.square(v - y[order])))
    cp.Problem(cp.Minimize(cost), [rise >= 0, rise <= np.diff(theta)]).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(model.predict(X)[order], v.value, atol=1e-5)
    assert model.link_.slope == 1.0
    slopes = np.diff(model.link_.values) / np.diff(model.link_.knots)
    assert slopes.min() >= 0
    assert slopes.max() <= 1 + 1e-6


def test_a_link_through_knots():
    link = Link([0.0, 1.0, 1.0, 2.0, 3.0, 4.0, 6.0], [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0], slope=2.0)
    assert link.knots.tolist() == [0.0, 1.0, 4.0, 6.0]  # what is inside a flat stretch is dropped
    assert link([-5.0, 0.25, 2.5, 5.0, 99.0]).tolist() == [0.0, 0.25, 1.0, 1.5, 2.0]


@pytest.mark.parametrize("slope", [0.8, 3.0, np.inf])
def test_intervals_hold_every_link_through_the_knots(slope):
    """Every knot bounds the link on both sides; the nearest knots must bound it as tightly as all of them."""
    knots, values = np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.5, 2.0])
    link = Link(knots, values, slope)
    theta = np.linspace(-2, 5, 141)
    low, high = link.interval(theta, -1.0, 2.5)
    reach = np.array([[abs(t - k) * slope if t != k else 0.0 for k in knots] for t in theta])
    expected_high = np.where(theta[:, None] >= knots, values + reach, values).clip(max=2.5)
    expected_low = np.where(theta[:, None] <= knots, values - reach, values).clip(min=-1.0)
    # a knot to the left bounds from above by its slope, one to the right by its value; a knot to the left from below
    np.testing.assert_allclose(
        high, np.append(expected_high, np.full((141, 1), 2.5), 1).min(axis=1), atol=1e-12
    )
    np.testing.assert_allclose(
        low, np.append(expected_low, np.full((141, 1), -1.0), 1).max(axis=1), atol=1e-12
    )
    assert np.all((low <= link(theta)) & (link(theta) <= high))


def test_intervals_of_predictions(data):
    X, y = data
    far = np.vstack([X, 100 * X])
    for link in ("isotonic", "least_squares", "cost"):
        model = UnknownLinkRegressor(link=link).fit(X, y)
        low, high = model.predict_interval(far)
        assert np.all((low <= model.predict(far)) & (model.predict(far) <= high))
        np.testing.assert_allclose(high[:120] - low[:120], 0, atol=1e-6)  # the rows of fit are knots
        theta = model.index(far)
        above, below = theta.argmax(), theta.argmin()
        beyond = theta[above] - model.link_.knots[-1]
        expected = np.inf if link == "isotonic" else model.link_.values[-1] + beyond
        assert high[above] == pytest.approx(expected)
        assert low[above] == model.link_.values[-1]
        assert high[below] == model.link_.values[0]
        assert low[below] < high[below]


def test_output_range(data):
    X, y = data
    y = y.clip(-1, 1)
    model = UnknownLinkRegressor(output_range=(-1, 1), link="cost").fit(X, y)
    low, high = model.predict_interval(1000 * X)
    assert low.min() == -1
    assert high.max() == 1
    assert np.abs(model.predict(1000 * X)).max() <= 1
    one_sided = UnknownLinkRegressor(output_range=(-1, np.inf)).fit(X, y).predict_interval(1000 * X)
    assert one_sided[0].min() == -1
    assert one_sided[1].max() == np.inf
    with pytest.raises(InputError, match=r"y is -1 in row \d+, outside `output_range` \(0, 1\): clip it"):
        UnknownLinkRegressor(output_range=(0, 1)).fit(X, np.where(y < 0, -1.0, y))


def test_recovered_function_is_the_legendre_dual(data):
    X, y = data
    model = UnknownLinkRegressor(0.7, link="least_squares", alpha=0.01).fit(X, y)
    link, phi = model.link_, model.recovered_phi_
    inside = np.linspace(link.values[0], link.values[-1], 41)
    # the integral of the inverse link, by the midpoint rule
    edges = np.linspace(inside[0], inside[30], 400_001)
    integral = phi.grad((edges[1:] + edges[:-1]) / 2).mean() * (inside[30] - inside[0])
    assert phi(inside[30]) - phi(inside[0]) == pytest.approx(integral, abs=1e-5)
    np.testing.assert_allclose(link(phi.grad(inside)), inside, atol=1e-12)
    # φ* by its definition, on a fine grid and the knots
    grid = np.concatenate([np.linspace(inside[0], inside[-1], 20_001), link.values])
    for theta in (-5.0, -0.3, 0.1, 4.0):
        assert float(phi.conjugate(theta)) == pytest.approx((grid * theta - phi(grid)).max(), abs=1e-6)
    # s-strong convexity
    a, b = np.random.default_rng(0).choice(inside, (2, 200))
    assert np.all(phi(b) >= phi(a) + phi.grad(a) * (b - a) + 0.35 * (b - a) ** 2 - 1e-9)
    assert phi([inside[0] - 1e-6, inside[-1] + 1e-6]).tolist() == [np.inf, np.inf]
    assert np.isnan(phi.grad(inside[-1] + 1.0))


def test_a_constant_is_a_fit(data):
    X, _ = data
    model = UnknownLinkRegressor().fit(X, np.full(120, 3.5))
    assert model.predict(X).tolist() == [3.5] * 120
    assert not model.coef_.any()
    assert model.objective_ == model.dual_gap_ == 0
    assert float(model.recovered_phi_(3.5)) == 0
    weight = np.r_[np.ones(60), np.zeros(60)]
    weighted = UnknownLinkRegressor().fit(X, np.r_[np.full(60, 3.5), X[60:, 0]], sample_weight=weight)
    assert weighted.predict(X).tolist() == [3.5] * 120
    by_kernel = UnknownLinkRegressor(kernel="rbf").fit(X, np.full(120, 3.5))
    assert by_kernel.predict(X).tolist() == [3.5] * 120
    assert ConvexFunction(Link([0.0], [3.5]))([3.5, 4.0]).tolist() == [0.0, np.inf]


# ---------------------------------------------------------------- kernels


def test_linear_kernel_is_the_linear_fit(data):
    X, y = data
    linear = UnknownLinkRegressor(alpha=0.05, tol=1e-10, refine=False).fit(X, y)
    model = UnknownLinkRegressor(alpha=0.05, kernel="linear", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_ @ X, linear.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), linear.predict(X), atol=1e-6)
    assert model.objective_ == pytest.approx(linear.objective_, rel=1e-10)
    assert not hasattr(model, "coef_")


def test_ways_to_give_a_kernel(data):
    X, y = data
    train = slice(0, 80)
    named = UnknownLinkRegressor(alpha=0.01, kernel="rbf", gamma=0.5).fit(X[train], y[train])
    K = rbf_kernel(X, X[train], gamma=0.5)
    given = UnknownLinkRegressor(alpha=0.01, kernel="precomputed").fit(K[train], y[train])
    np.testing.assert_allclose(given.predict(K), named.predict(X), atol=1e-7)

    def kernel(a, b, gamma):
        return np.exp(-gamma * ((a - b) ** 2).sum())

    called = UnknownLinkRegressor(alpha=0.01, kernel=kernel, kernel_params={"gamma": 0.5})
    np.testing.assert_allclose(called.fit(X[train], y[train]).predict(X), named.predict(X), atol=1e-7)
    back = named.set_params(kernel=None).fit(X, y)
    assert hasattr(back, "coef_")
    np.testing.assert_allclose(back.index(X), X @ back.coef_)


def test_a_kernel_fits_what_no_direction_does(monkeypatch):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 2))
    y = np.sqrt((X**2).sum(axis=1))
    model = UnknownLinkRegressor(alpha=1e-3, kernel="rbf").fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.9
    assert UnknownLinkRegressor().fit(X[:200], y[:200]).score(X[200:], y[200:]) < 0.2
    monkeypatch.setattr("apexrank.rankers.kernel.MOST_ROWS_FOR_KERNEL", 100)
    with pytest.raises(InputError, match="fit at most 100, or use `kernel=None`"):
        model.fit(X, y)


# ---------------------------------------------------------------- bad input


def test_bad_rows(data):
    X, y = data
    with pytest.raises(ValueError, match="contains NaN"):
        UnknownLinkRegressor().fit(X, np.where(y > 0, np.nan, y))
    with pytest.raises(ValueError, match="at least one"):
        UnknownLinkRegressor().fit(X, y, sample_weight=np.zeros(120))


# ---------------------------------------------------------------- as a listwise loss


def test_listwise_loss_is_the_mean_over_groups(data):
    X, y = data
    groups = np.repeat(np.arange(12), 10)
    grades = np.digitize(y, [-0.5, 0.5])
    ranker = ListwiseRanker("unknown_link", strong_convexity=0.8, alpha=0.3 / 12, tol=1e-10)
    ranker.fit(X, grades, groups=groups)
    costs = [
        UnknownLink(grades[groups == q], strong_convexity=0.8).value_and_grad(X[groups == q] @ ranker.coef_)
        for q in range(12)
    ]
    slope = sum(X[groups == q].T @ grad for q, (_, grad) in enumerate(costs)) + 0.3 * ranker.coef_
    np.testing.assert_allclose(slope, 0, atol=1e-7)
    penalty = 0.15 * ranker.coef_ @ ranker.coef_
    value = sum(value for value, _ in costs) + penalty
    assert 12 * ranker.objective_ == pytest.approx(value, rel=1e-10)
    assert ranker.score(X, grades, groups=groups) > 0.9
    scaled = ListwiseRanker("unknown_link", strong_convexity=1.6, alpha=0.15 / 12, tol=1e-10)
    np.testing.assert_allclose(scaled.fit(X, grades, groups=groups).coef_, 2 * ranker.coef_, rtol=1e-6)


def test_listwise_loss_of_one_group_is_the_regression(data):
    X, y = data
    ranker = ListwiseRanker("unknown_link", normalize=True, alpha=0.02, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(
        ranker.coef_, UnknownLinkRegressor(alpha=0.02, tol=1e-10, refine=False).fit(X, y).coef_, rtol=1e-6
    )


def test_bad_input_of_the_listwise_loss(data):
    X, y = data
    with pytest.raises(ValueError, match="strong_convexity"):
        ListwiseRanker("unknown_link", strong_convexity=0).fit(X, y)
    with pytest.raises(InputError, match="no link to fit"):
        ListwiseRanker("unknown_link").fit(X, y, groups=np.arange(120))


def tied_rows(seed, n_different, n, d):
    """Repeated rows in so many columns that BLAS rounds equal rows differently, with a noisy y."""
    rng = np.random.default_rng(seed)
    base, rows = rng.normal(size=(n_different, d)), rng.integers(0, n_different, n)
    y = np.tanh(base @ np.linspace(-1, 1, d))[rows] + 0.5 * rng.normal(size=n)
    return base[rows], y, rows


@pytest.mark.parametrize("kernel", [None, "rbf", "linear"])
@pytest.mark.parametrize("seed", range(5))
def test_equal_rows_share_a_value(kernel, seed):
    X, y, rows = tied_rows(seed, 12, 203, 21)
    model = UnknownLinkRegressor(kernel=kernel, alpha=0.1).fit(X, y)
    predicted, theta = model.predict(X), model.index(X)
    order = np.argsort([theta[rows == k].mean() for k in range(12)])
    means = np.array([y[rows == k].mean() for k in order])
    counts = np.array([(rows == k).sum() for k in order], dtype=float)
    expected = isotonic_regression(means, weights=counts).x
    found = np.array([predicted[rows == k] for k in order], dtype=object)
    for values, wanted in zip(found, expected, strict=True):
        assert np.asarray(values, dtype=float) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("link", ["isotonic", "least_squares", "cost"])
@pytest.mark.parametrize("offset", [2.0**20, 2.0**30])
def test_a_y_far_from_zero_is_the_same_problem(link, offset):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = np.round(np.tanh(X @ [1.0, -1.0, 0.5, 0.0]) * 2**10) / 2**10  # exact in binary, also with the offset
    near, far = (UnknownLinkRegressor(link=link, tol=1e-8).fit(X, y + shift) for shift in (0.0, offset))
    assert far.converged_
    assert far.n_iter_ == near.n_iter_
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-12)
    assert far.coef_ == pytest.approx(near.coef_, rel=1e-9)
    assert far.predict(X) - offset == pytest.approx(near.predict(X), abs=1e-15 * offset)


def test_rows_of_weight_zero_do_not_decide_a_constant():
    X = np.arange(8.0).reshape(4, 2)
    model = UnknownLinkRegressor().fit(X, [9.0, 3.5, 3.5, 3.5], sample_weight=[0, 1, 1, 1])
    assert model.predict(X).tolist() == [3.5] * 4
    assert np.isnan(model.fitted_[0])


def test_a_failed_fit_leaves_the_fitted_model():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    model = UnknownLinkRegressor(kernel="rbf", alpha=1.0).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="kernel"):
        model.set_params(kernel="nonsense").fit(X, y)
    assert (model.predict(X) == before).all()
    model.set_params(kernel=None).fit(X, y)
    assert not hasattr(model, "X_fit_")


def test_the_range_is_that_of_fit():
    X = np.arange(6.0)[:, None]
    model = UnknownLinkRegressor(output_range=(0, 10)).fit(X, np.arange(6.0))
    before = model.predict(X)
    assert (model.set_params(output_range=(100, 200)).predict(X) == before).all()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_values_beyond_squares_are_refused(scale):
    X = np.arange(6.0)[:, None]
    with pytest.raises(InputError, match="measure it in another unit"):
        UnknownLinkRegressor().fit(X, scale * np.arange(6.0))


def test_links_that_are_none():
    for knots, values in (([], []), ([2.0, 1.0], [0.0, 1.0]), ([0.0, 1.0], [1.0, 0.0]), ([0.0], [1.0, 2.0])):
        with pytest.raises(InputError, match="a link needs at least one knot"):
            Link(knots, values)
