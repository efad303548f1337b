import numpy as np
import pytest

from apexrank.errors import InputError
from apexrank.losses import LOSSES
from apexrank.objectives import CrucialPairs
from apexrank.prices import Power
from tests.oracles import LOG_PRICES, WITH_EXPONENTIAL_LOSS, WITH_OTHER_LOSSES, numerical_gradient

CASES = [
    ("exponential", "power", 1),
    ("exponential", "power", 5),
    ("exponential", "log1p", 1),
    ("exponential", "exponential", 1),
    ("logistic", "power", 3),
    ("logistic", "identity", 1),
    ("hinge", "power", 2),
    ("squared_hinge", "power", 2),
]


def brute_force(scores, pi, group, loss, price, p, weight):
    """``Σ_k v_k g(Σ_i u_i ℓ(s_i − s_k) π_ik)``, pair by pair and group by group."""
    forms = WITH_EXPONENTIAL_LOSS if loss == "exponential" else WITH_OTHER_LOSSES
    heights = (weight[:, None] * pi * LOSSES.get(loss).value(scores[:, None] - scores[None, :])).sum(axis=0)
    values = []
    for q in np.unique(group):
        members = (group == q) & (pi.sum(axis=0) > 0) & (weight > 0)
        if members.any():
            with np.errstate(divide="ignore"):
                log_prices = LOG_PRICES[price](np.log(heights[members]), p)
            log_risk = np.log((weight[members] * np.exp(log_prices)).sum())
            values.append(forms[price](log_risk, p))
    return float(np.mean(values))


def make(price, p, *arguments, **options):
    return CrucialPairs(*arguments, price=Power(p) if price == "power" else price, **options)


@pytest.mark.parametrize("levels", [2, 3, 5, 40])
@pytest.mark.parametrize(("loss", "price", "p"), CASES)
def test_graded_relevance_against_all_pairs(loss, price, p, levels):
    rng = np.random.default_rng(levels)
    scores, relevance, group = rng.normal(size=40), rng.integers(0, levels, 40), rng.integers(0, 3, 40)
    weight = rng.integers(1, 4, 40).astype(float)
    pi = ((relevance[:, None] > relevance[None, :]) & (group[:, None] == group[None, :])).astype(float)
    objective = make(price, p, relevance, loss=loss, groups=group, sample_weight=weight)
    value, gradient = objective.value_and_grad(scores)

    def oracle(s):
        return brute_force(s, pi, group, loss, price, p, weight)

    assert value == pytest.approx(oracle(scores), rel=1e-11)
    numeric = numerical_gradient(oracle, scores, 1e-6 if loss == "hinge" else 1e-4)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-7 * np.abs(numeric).max())


@pytest.mark.parametrize(("loss", "price", "p"), CASES)
def test_listed_pairs_against_all_pairs(loss, price, p):
    rng = np.random.default_rng(0)
    scores, pi = rng.normal(size=20), rng.random((20, 20)) * (rng.random((20, 20)) < 0.2)
    np.fill_diagonal(pi, 0)
    upper, lower = np.nonzero(pi)
    shuffled = rng.permutation(len(upper))
    pairs = upper[shuffled], lower[shuffled], pi[upper, lower][shuffled]
    value, gradient = make(price, p, pairs=pairs, n=20, loss=loss).value_and_grad(scores)

    def oracle(s):
        return brute_force(s, pi, np.zeros(20), loss, price, p, np.ones(20))

    assert value == pytest.approx(oracle(scores), rel=1e-11)
    numeric = numerical_gradient(oracle, scores, 1e-6 if loss == "hinge" else 1e-4)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-7 * np.abs(numeric).max())


def test_many_levels_have_no_hessian():
    assert not CrucialPairs(np.arange(1000)).has_hessian
    assert not CrucialPairs(pairs=(np.array([0]), np.array([1])), n=2).has_hessian


@pytest.mark.slow
def test_a_million_levels_stay_near_linear():
    rng = np.random.default_rng(2)
    relevance, scores = rng.permutation(200_000), rng.normal(size=200_000) * 1e3
    objective = CrucialPairs(relevance, price=Power(64))
    assert len(objective.pairs.problems) == 18
    value, gradient = objective.value_and_grad(scores)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    assert abs(gradient.sum()) < 1e-9


def test_separated():
    objective = CrucialPairs([2, 1, 0, 0])
    assert objective.separated(np.array([3.0, 2.0, 1.0, 0.0]))
    assert not objective.separated(np.array([3.0, 0.5, 1.0, 0.0]))
    listed = CrucialPairs(pairs=(np.array([0]), np.array([1])), n=3)
    assert listed.separated(np.array([1.0, 0.0, 5.0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either relevance or pairs"),
        ({"relevance": [1, 1]}, "no pair to rank"),
        ({"relevance": [0, 1], "groups": ["a", "b"]}, "no pair to rank"),
        ({"relevance": np.array([0.0, np.nan])}, "missing in row 1"),
        ({"pairs": ([0], [1])}, "pairs need n"),
        ({"pairs": ([0], [5]), "n": 2}, "rows are 0 to 1"),
        ({"pairs": ([0], [0]), "n": 2}, "above itself"),
        ({"pairs": ([0, 1], [1]), "n": 2}, "one length"),
        ({"pairs": ([0.5], [1.0]), "n": 2}, "whole numbers"),
        ({"pairs": ([0], [1], [-1.0]), "n": 2}, "finite numbers >= 0"),
        ({"pairs": ([0],), "n": 2}, "must be"),
        ({"pairs": np.array([[0, 1], [1, 0]]), "n": 2}, "one-dimensional arrays"),
        ({"pairs": [0, 1], "n": 2}, "one-dimensional arrays"),
        ({"relevance": [0, 1], "groups": ["a", None]}, "missing id in row 1"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(InputError, match=message):
        CrucialPairs(**arguments)
