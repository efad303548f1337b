"""Experiments on the unknown link."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy.optimize import check_grad, minimize
from sklearn.isotonic import IsotonicRegression

from apexrank.errors import InputError
from apexrank.objectives.link import UnknownLink
from apexrank_papers.link.convergence import (
    BOUND,
    GRADMAPR,
    PLAIN,
    PUBLISHED,
    RESTARTED,
    GradMaPr,
    _stiff_data,
    link_convergence,
)
from apexrank_papers.link.data import LINKS, Sample, angle
from apexrank_papers.link.order import (
    MOMENTUM,
    REGRESSOR,
    TURNS,
    _answer,
    _late_factors,
    _linear,
    _no_cost,
    _relative,
    link_order,
)
from apexrank_papers.link.ordered import perfectly_ordered
from apexrank_papers.link.recovery import METHODS, _beside_isotron, _within, link_recovery


def words(result):
    return {verdict.row: verdict.word for verdict in result.verdicts}


def test_angles_are_right_to_the_smallest():
    u, v = np.array([1.0, 2.0, -1.0]), np.array([0.3, 1.0, 4.0])
    assert angle(u, v) == pytest.approx(np.degrees(np.arccos(u @ v / np.linalg.norm(u) / np.linalg.norm(v))))
    assert angle(np.array([1.0, 0.0]), np.array([1.0, 1e-9])) == pytest.approx(np.degrees(1e-9), rel=1e-6)
    assert angle(u, -u) == pytest.approx(180)


def test_links_are_what_they_are_called():
    t = np.array([-1.2, 0.0, 0.6])
    expected = {
        "logistic": 1 / (1 + np.exp(-t)),
        "logistic of 3t": 1 / (1 + np.exp(-3 * t)),
        "signed root": [-np.sqrt(1.2), 0, np.sqrt(0.6)],
        "staircase ⌊2t⌋": [-3, 0, 1],
        "cube": t**3,
        "identity": t,
    }
    assert list(LINKS) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(LINKS[name](t), values, rtol=1e-12)


def test_noise_is_a_share_of_the_deviation():
    sample = Sample.draw(50_000, 4, seed=3)
    clean, noisy = (sample.values("cube", noise) for noise in (0.0, 0.2))
    np.testing.assert_allclose(clean, (sample.X @ sample.u) ** 3, rtol=1e-12)
    assert np.std(noisy - clean) / np.std(clean) == pytest.approx(0.2, rel=0.02)
    assert np.linalg.norm(sample.u) == pytest.approx(1)


# recovery


@pytest.fixture(scope="module")
def recovery():
    return link_recovery(n=2000, d=10, draws=3, steps=5)


def test_recovery_measures_what_it_says(recovery):
    assert recovery.table.height == 6 * 5 * 3
    assert recovery.view.columns == ["measure", "link", *METHODS]
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        u = rng.standard_normal(10)
        X = (rng.gamma(0.5, size=(2000, 10)) - 0.5) / np.sqrt(0.5)
        mean = (X @ u / np.linalg.norm(u)) ** 3
        y = mean + 0.1 * mean.std() * rng.standard_normal(2000)
        w = np.linalg.lstsq(np.column_stack([X, np.ones(2000)]), y)[0][:10]
        found.append(np.degrees(np.arccos(w @ u / np.linalg.norm(w) / np.linalg.norm(u))))
    row = recovery.table.filter(link="cube", method="least squares", measure="angle to u, degrees")
    assert row["mean"][0] == pytest.approx(np.mean(found), rel=1e-6)
    assert row["worst"][0] == pytest.approx(max(found), rel=1e-6)
    assert row["standard_error"][0] == pytest.approx(np.std(found, ddof=1) / np.sqrt(3), rel=1e-6)


def test_the_unknown_link_is_recovered(recovery):
    def mean(link, method, measure="angle to u, degrees"):
        return recovery.table.filter(link=link, method=method, measure=measure)["mean"][0]

    for link in ("logistic", "logistic of 3t", "signed root"):
        assert mean(link, "unknown link") < mean(link, "least squares") / 2
        assert mean(link, "unknown link", "R² on fresh rows") > 0.99
    assert mean("cube", "unknown link") < mean("cube", "least squares")
    assert mean("cube", "least squares", "R² on fresh rows") < 0.8
    assert (recovery.table.filter(measure="seconds")["mean"] > 0).all()


def test_recovery_repeats_itself_but_for_the_clock():
    first, second, third = (
        link_recovery(n=200, d=2, draws=2, steps=1, random_state=seed).table for seed in (0, 0, 2)
    )
    timed = pl.col("measure") == "seconds"
    assert first.filter(~timed).equals(second.filter(~timed))
    assert not first.filter(~timed).equals(third.filter(~timed))


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([0.2, 0.3, 0.25], "yes"),
        ([0.9, 1.3, 0.7], "cannot tell"),
        ([1.0, 1.4, 0.8], "cannot tell"),
        ([1.2, 1.3, 1.25], "no"),
    ],
)
def test_a_limit_is_judged_by_the_mean(values, word):
    verdict = _within("link", np.array(values), 1.0, " degrees")
    assert verdict.word == word
    assert verdict.why.endswith(f"worst of 3 draws {max(values):.2f}")


@pytest.mark.parametrize(("ours", "word"), [(0.1, "yes"), (0.2, "cannot tell"), (0.4, "no")])
def test_isotron_has_the_place_that_comes_out(ours, word):
    wobble = np.array([0.0, 0.01, -0.01])
    others = 9 + wobble
    angles = {"link": np.column_stack([ours + wobble, others, others, 0.2 + wobble[::-1], others])}
    verdict = _beside_isotron(angles)
    assert verdict.word == word
    assert f"0.20 against {ours:.2f} (link)" in verdict.why


# convergence


@pytest.fixture(scope="module")
def convergence():
    return link_convergence(n=200, d=10, n_iter=300)


def gap(result, alpha, solver):
    return result.table.filter(alpha=alpha, solver=solver)["gap"].to_list()


def test_rates_hold_and_gradmapr_is_no_gradient(convergence):
    assert words(convergence) == {
        "gradient descent: 1/√T": "agrees",
        "accelerated: 1/T²": "agrees",
        "gradient descent is slower": "agrees",
        "strongly convex penalty: exp(−λT)": "agrees",
        "GradMaPr is the gradient": "differs",
    }
    assert "along it converges" in convergence.verdicts[-1].why
    assert convergence.view.columns == ["alpha", "solver", "t = 1", "t = 10", "t = 100"]
    for alpha in (1e-2, 1e-8):
        assert gap(convergence, alpha, GRADMAPR)[-1] > 3 * gap(convergence, alpha, RESTARTED)[-1]
        assert gap(convergence, alpha, "Newton")[-1] == 0
        assert gap(convergence, alpha, "L-BFGS")[-1] < 1e-8


def by_hand(n_iter, alpha):
    """Objective after each step of gradient descent and of the accelerated method, and a bound, in plain numpy."""
    X, y = _stiff_data(200, 10, 0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    scale = np.hypot(X.std(axis=0), np.sqrt(alpha))

    def value_and_grad(u):
        theta = X @ (u / scale)
        order = np.argsort(theta)
        up = np.sort(y)
        v = np.empty(200)
        v[order] = theta[order] - IsotonicRegression().fit_transform(np.arange(200), theta[order] - up)
        w = u / scale
        value = (v @ theta - v @ v / 2 + y @ y / 2 - y @ theta) / 200 + alpha / 2 * w @ w
        return value, (X.T @ (v - y) / 200 + alpha * w) / scale

    A = (Z * X.std(axis=0)) / scale
    L = np.linalg.eigvalsh(A.T @ A / 200 + alpha * np.diag(scale**-2.0))[-1]
    best = minimize(value_and_grad, np.zeros(10), jac=True, method="BFGS", options={"gtol": 1e-10})
    u = x = before = np.zeros(10)
    a, plain, fast = 1.0, [], []
    for _ in range(n_iter):
        u = u - value_and_grad(u)[1] / L
        plain.append(value_and_grad(u)[0] - best.fun)
    ahead = np.zeros(10)
    for _ in range(n_iter):
        before, x = x, ahead - value_and_grad(ahead)[1] / L
        a, momentum = (1 + np.sqrt(4 * a**2 + 1)) / 2, a - 1
        ahead = x + momentum / a * (x - before)
        fast.append(value_and_grad(x)[0] - best.fun)
    t = np.arange(1, n_iter + 1)
    return plain, fast, 2 * L * (best.x @ best.x) / (t + 1) ** 2


@pytest.mark.parametrize("alpha", [1e-2, 1e-8])
def test_gaps_are_those_of_plain_loops(convergence, alpha):
    plain, fast, bound = by_hand(10, alpha)
    for name, expected in ((PLAIN, plain), (PUBLISHED, fast), (BOUND, bound)):
        found = gap(convergence, alpha, name)[:2]
        np.testing.assert_allclose(found, [expected[0], expected[9]], rtol=1e-4)


def test_gradmapr_is_isotonic_regression_where_slopes_are_free_and_not_the_gradient():
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=40), rng.normal(size=40)
    direction = GradMaPr(y, strong_convexity=1e-9).value_and_grad(scores)[1]
    np.testing.assert_allclose(direction, IsotonicRegression().fit_transform(scores, y) - y, atol=1e-9)
    for kind, is_gradient in ((UnknownLink, True), (GradMaPr, False)):
        objective = kind(y)
        error = check_grad(
            lambda t, o=objective: o.value_and_grad(t)[0],
            lambda t, o=objective: o.value_and_grad(t)[1],
            scores,
            seed=0,
        )
        assert (error < 1e-5) == is_gradient
        assert is_gradient or error > 0.1


# a perfect order


@pytest.fixture(scope="module")
def order():
    return link_order(n=60, d=3, draws=3, max_iter=3000)


def test_a_perfect_order_is_found_and_costs_nothing(order):
    found = words(order)
    assert found["a perfect w is found"] == "yes"
    assert found["no cost where a perfect w is found"] == "agrees"
    assert found["none is found with noise"] == "yes"
    assert found["with noise it does not minimise the cost"] == "yes"
    assert found["linear convergence in the end"] in ("agrees", "within noise")
    quick = order.table.filter(pl.col("noise") == 0, method=MOMENTUM)
    slow = order.table.filter(pl.col("noise") == 0, method=TURNS)
    assert quick["steps"].median() < slow["steps"].median() / 5
    assert (quick["cost"] <= quick["rounding"]).all()
    assert quick["angle"].max() < 1


@pytest.mark.parametrize("seed", range(3))
def test_rounding_is_all_that_a_perfect_order_costs(seed):
    sample = Sample.draw(200, 5, seed)
    y = sample.values("cube", 0.0)
    fit = perfectly_ordered(sample.X, y)
    rows = np.argsort(y)
    exact = [sum(Fraction(a) * Fraction(b) for a, b in zip(x, fit.coef, strict=True)) for x in sample.X[rows]]
    gaps = [b - a for a, b in pairwise(exact)]
    missed = max(Fraction(b) - Fraction(a) - gap for (a, b), gap in zip(pairwise(y[rows]), gaps, strict=True))
    perfect, total = _answer(sample, y, fit.coef), UnknownLink(y).total
    assert fit.converged
    assert min(gaps) > 0
    assert max(float(missed), 0.0) ** 2 / total <= perfect["rounding"] < 1e-10
    assert perfect["cost"] <= perfect["rounding"]
    turned = _answer(sample, y, fit.coef * [1.001, 1, 1, 1, 1])
    assert turned["cost"] > 100 * turned["rounding"]  # an error of 0.1 % is far above all rounding


@pytest.mark.parametrize(("cost", "word"), [(0.0, "agrees"), (1e-24, "agrees"), (1e-22, "differs")])
def test_no_cost_is_judged_up_to_rounding(cost, word):
    clean = pl.DataFrame(
        {
            "method": [TURNS, MOMENTUM, REGRESSOR],
            "ordered": [False, True, None],
            "cost": [1e-3, cost, 1e-9],
            "rounding": [1e-23, 1e-23, 1e-23],
        }
    )
    verdict = _no_cost(clean)
    assert verdict.word == word
    assert f"cost {cost:.0e} in 1 answers" in verdict.why


def test_noise_leaves_a_distance(order):
    noisy = order.table.filter(pl.col("noise") > 0)
    assert (noisy.filter(pl.col("method") != REGRESSOR)["distance"] > 0.1).all()
    assert (noisy["cost"] > 1e-5).all()
    assert order.view.height == 12
    assert order.view.filter(pl.col("noise") > 0, method=TURNS)["ordered"].to_list() == ["0 of 3"] * 2


def test_factors_are_those_of_the_late_steps():
    history = np.concatenate([np.linspace(5, 1, 50), 0.9 ** np.arange(1, 52)])
    before, after = _late_factors(history)
    assert (before, after) == pytest.approx((0.9, 0.9))
    assert np.isnan(_late_factors(np.array([1.0, 0.5]))).all()
    assert _relative(np.array([])).tolist() == [0.0]


@pytest.mark.parametrize(
    ("late", "word"), [([1.0, 1.1], "agrees"), ([1.0, 0.5], "within noise"), ([0.4, 0.5], "differs")]
)
def test_linear_means_the_same_factor_twice(late, word):
    before = 1e-3
    part = pl.DataFrame(
        {"factor_before": [1 - before, 1 - before], "factor": [1 - before * share for share in late]}
    )
    assert _linear(part).word == word


def test_faults():
    with pytest.raises(InputError, match="`draws` must be at least 2 to tell an effect from noise, got 1"):
        link_recovery(draws=1)
    with pytest.raises(InputError, match="`draws` must be at least 2"):
        link_order(draws=1)
    with pytest.raises(InputError, match=r"`noise` must be above 0, got 0\.0"):
        link_order(noise=0.0)
    with pytest.raises(InputError, match="`n_iter` must be at least 10 to see a rate, got 3"):
        link_convergence(n_iter=3)
