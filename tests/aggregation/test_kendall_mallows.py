"""The Mallows model with Kendall's distance, checked against sums over all orders of up to 6 items."""

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import chisquare
from sklearn.exceptions import ConvergenceWarning

from apexrank.aggregation import KendallMallows
from apexrank.errors import InputError


def distance(one, other):
    """Pairs in opposite order, by definition."""
    a, b = np.argsort(one), np.argsort(other)
    return sum((a[i] < a[j]) != (b[i] < b[j]) for i, j in combinations(range(len(one)), 2))


def all_orders(n):
    return np.array(list(permutations(range(n))))


def table(order, theta):
    """Log-probabilities of all orders, normalised by their sum."""
    distances = np.array([distance(order, other) for other in all_orders(len(order))])
    return -theta * distances - np.log(np.exp(-theta * distances).sum()), distances


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("theta", [0.0, 1e-9, 0.3, 2.0, 50.0])
def test_probabilities_and_moments_are_those_of_the_sum_over_all_orders(n, theta):
    order = np.random.default_rng(n).permutation(n)
    model = KendallMallows(order, theta)
    logs, distances = table(order, theta)
    np.testing.assert_allclose(model.log_probability(all_orders(n)), logs, atol=1e-12)
    chances = np.exp(logs)
    mean = chances @ distances
    moments = model.moments()
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(moments.variance, chances @ (distances - mean) ** 2, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(moments.log_z, -logs.max(), atol=1e-12)


def test_the_normaliser_has_the_closed_form():
    theta, n = 0.7, 30
    j = np.arange(1, n + 1)
    closed = np.log1p(-np.exp(-j * theta)).sum() - n * np.log1p(-np.exp(-theta))
    assert KendallMallows(range(n), theta).moments().log_z == pytest.approx(closed, rel=1e-14)


@pytest.mark.parametrize("theta", [0.0, 0.4, 1.5])
def test_draws_have_the_probabilities_of_the_model(theta):
    model = KendallMallows([2, 0, 3, 1], theta)
    draws = model.sample(20_000, random_state=0)
    counted = np.unique(draws, axis=0, return_counts=True)
    found = {tuple(order): number for order, number in zip(*counted, strict=True)}
    expected = len(draws) * np.exp(table(model.order, theta)[0])
    seen = np.array([found.get(tuple(order), 0) for order in all_orders(4)])
    assert chisquare(seen, expected).pvalue > 1e-4
    assert chisquare(seen, expected[::-1]).pvalue < 1e-4 or theta == 0
    np.testing.assert_array_equal(model.sample(20_000, random_state=0), draws)


@pytest.mark.parametrize("seed", range(4))
def test_the_fit_is_the_maximum_of_the_likelihood_over_all_orders_and_theta(seed):
    rng = np.random.default_rng(seed)
    orders = KendallMallows(rng.permutation(5), 0.8).sample(9, random_state=rng)
    weight = rng.integers(1, 4, len(orders)).astype(float)
    model = KendallMallows.fit(orders, sample_weight=weight)
    value = weight @ model.log_probability(orders)

    def negative(theta, order):
        return -(weight @ KendallMallows(order, theta).log_probability(orders))

    best = [
        minimize_scalar(negative, (0, 1), (0, 20), args=(order,), method="bounded") for order in all_orders(5)
    ]
    assert value == pytest.approx(-min(found.fun for found in best), abs=1e-6)
    repeated = KendallMallows.fit(np.repeat(orders, weight.astype(int), axis=0))
    assert (repeated.theta, repeated.order.tolist()) == (pytest.approx(model.theta), model.order.tolist())


def test_theta_comes_back():
    model = KendallMallows([3, 1, 0, 2, 4, 5, 6, 7], 0.5)
    fitted = KendallMallows.fit(model.sample(4000, random_state=1))
    assert fitted.order.tolist() == model.order.tolist()
    assert abs(fitted.theta - 0.5) < 4 / np.sqrt(4000 * model.moments().variance)


def test_voters_who_agree_or_have_no_order_are_told():
    with pytest.warns(ConvergenceWarning, match="likelihood grows with theta without end"):
        assert KendallMallows.fit([[1, 0, 2]] * 3).theta > 100
    with pytest.warns(ConvergenceWarning, match="theta is 0"):
        assert KendallMallows.fit([[0, 1, 2], [2, 1, 0]]).theta == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: KendallMallows([0, 2], 1.0), "there is no item 2"),
        (lambda: KendallMallows([0, 1], -1.0), "`theta` must be"),
        (lambda: KendallMallows([[0, 1]], 1.0), "order must be one order"),
        (lambda: KendallMallows([0, 1], 1.0).log_probability([0, 1, 2]), "must list all 2 items"),
        (lambda: KendallMallows.fit([0, 1, 2]), "orders must be a table"),
        (lambda: KendallMallows.fit([[0, 1]], sample_weight=[-1]), "weight"),
        (lambda: KendallMallows([0, 1], 1.0).sample(0), "n_samples"),
    ],
)
def test_bad_input_is_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
