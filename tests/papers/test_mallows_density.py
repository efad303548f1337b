"""Normaliser of the Lovász–Mallows density over the box, and its sampler, against sums and integrals."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.optimize import brentq
from scipy.stats import chisquare, kstest

from apexrank.aggregation.kendall_mallows import generator, maximum_likelihood
from apexrank.aggregation.lovasz_bregman import LovaszBregman
from apexrank.errors import InputError
from apexrank.submodular import Cardinality, Chain, Cut, Indicator, Log, Modular, Product, Sqrt, Top
from apexrank_papers.lovasz.mallows_density import (
    AnnealedNormaliser,
    BoxNormaliser,
    Lattice,
    can_draw_exactly,
    chain_scores,
    draw_scores,
    exact_scores,
    n_states,
    subset_values,
)
from tests.lovasz_oracles import h_of

W = np.array(
    [
        [0.0, 0.7, 0.1, 0.3, 0.2],
        [0.4, 0.0, 0.6, 0.2, 0.0],
        [0.1, 0.5, 0.0, 0.9, 0.3],
        [0.8, 0.0, 0.2, 0.0, 0.4],
        [0.3, 0.1, 0.0, 0.5, 0.0],
    ]
)


def cut(S):
    n = len(W)
    return sum(W[i, j] for i in S for j in range(n) if j not in S)


# the set functions and their definitions for five items
ATOMS = {
    "sqrt": (Sqrt(), lambda S: len(S) ** 0.5),
    "log": (Log(), lambda S: np.log1p(len(S))),
    "top": (Top(2), lambda S: min(len(S), 2)),
    "product": (Product(), lambda S: len(S) * (5 - len(S))),
    "indicator": (Indicator(), lambda S: float(1 <= len(S) <= 4)),
    "chain": (Chain(), lambda S: sum((i in S) != (i + 1 in S) for i in range(4))),
    "cut": (Cut(W), cut),
    "sum": (2 * Sqrt() + Top(1), lambda S: 2 * len(S) ** 0.5 + min(len(S), 1)),
    "shifted": (Sqrt() + Modular([1.0, -2, 0, 3, 1]), lambda S: len(S) ** 0.5 + sum([1, -2, 0, 3, 1][i] for i in S)),
}  # fmt: skip
ORDER = np.array([3, 0, 4, 1, 2])


def corner_costs(pi, order, f):
    """Divergence from the order at the corners 1_S of the scores sorted by pi."""
    h = h_of(f, order)
    return np.array([f(set(pi[:k])) - f(set()) - sum(h[i] for i in pi[:k]) for k in range(len(pi) + 1)])


def divided_differences(nodes):
    """Divided differences of exp at each row of nodes: the corner of exp of a bidiagonal matrix, by Taylor series.

    With the nodes shifted to start at 0 no term is negative; scipy's expm loses digits where nodes nearly coincide.
    """
    least = nodes.min(axis=1, keepdims=True)
    high = nodes - least
    row = np.zeros(nodes.shape)
    row[:, 0] = 1.0
    total = np.zeros(len(nodes))
    for k in range(1, int(2 * high.max()) + 80):
        row = (row * high + np.c_[np.zeros(len(row)), row[:, :-1]]) / k
        total += row[:, -1]
    return total * np.exp(least[:, 0])


def sum_over_orders(theta, order, f):
    """Z as the sum over orders of divided differences."""
    costs = [corner_costs(pi, order, f) for pi in permutations(range(len(order)))]
    return divided_differences(-theta * np.array(costs)).sum()


def cone_integrals(theta, order, f, points=8):
    """Integrals of the density without its constant, and of each score, over the scores sorted by each order.

    Gauss's rule in u, where the falling scores are u₁, u₁u₂, …: the cube onto the simplex with Jacobian ∏ u_i^{n−i}.
    """
    n = len(order)
    u, w = np.polynomial.legendre.leggauss(points)
    grid = np.stack(np.meshgrid(*[(u + 1) / 2] * n, indexing="ij"), axis=-1).reshape(-1, n)
    weight = np.prod(np.stack(np.meshgrid(*[w / 2] * n, indexing="ij"), axis=-1).reshape(-1, n), axis=1)
    weight = weight * np.prod(grid ** np.arange(n - 1, -1, -1), axis=1)
    falling = np.cumprod(grid, axis=1)
    h = h_of(f, order)
    masses, means = {}, np.zeros(n)
    for pi in permutations(range(n)):
        slopes = h_of(f, pi)[list(pi)] - h[list(pi)]
        density = weight * np.exp(-theta * falling @ slopes)
        masses[pi] = density.sum()
        means[list(pi)] += density @ falling
    return masses, means


@pytest.mark.parametrize("name", ATOMS)
@pytest.mark.parametrize("theta", [0.0, 0.7, 30.0])
def test_exact_normaliser_is_the_sum_over_orders(name, theta):
    atom, f = ATOMS[name]
    expected = sum_over_orders(theta, ORDER, f)
    assert np.isclose(np.exp(BoxNormaliser(atom, 5, ORDER).at(theta).log_z), expected, rtol=1e-11, atol=0)


@settings(max_examples=40)
@given(
    gains=st.lists(st.floats(-3, 3), min_size=2, max_size=5).map(lambda g: sorted(g, reverse=True)),
    theta=st.floats(0, 20),
)
def test_any_gains(gains, theta):
    n = len(gains)
    expected = sum_over_orders(theta, range(n), lambda S: sum(gains[: len(S)]))
    found = BoxNormaliser(Cardinality(gains), n).at(theta)
    assert np.isclose(np.exp(found.log_z), expected, rtol=1e-9, atol=0)
    assert 1 / factorial(n) * (1 - 1e-9) <= np.exp(found.log_z) <= 1 + 1e-9


@pytest.mark.parametrize("name", ["sqrt", "top", "cut"])
def test_moments_are_derivatives(name):
    normaliser = BoxNormaliser(ATOMS[name][0], 5, ORDER)
    for theta in (0.5, 6.0, 80.0):
        step = 1e-4 * theta
        before, now, after = (normaliser.at(theta + k * step) for k in (-1, 0, 1))
        assert np.isclose(now.mean, -(after.log_z - before.log_z) / (2 * step), rtol=1e-6)
        assert np.isclose(now.variance, -(after.mean - before.mean) / (2 * step), rtol=1e-6)


def test_normaliser_for_eight_items_by_a_matrix_exponential():
    n, theta = 8, 25.0
    size = np.array([bin(s).count("1") for s in range(2**n)])
    delta = np.sqrt(np.arange(1, n + 1)) - np.sqrt(np.arange(n))
    own = np.array([sum(delta[i] for i in range(n) if s >> i & 1) for s in range(2**n)])
    M = np.diag(-theta * (np.sqrt(size) - own))
    for s in range(2**n):
        for i in range(n):
            if not s >> i & 1:
                M[s, s | 1 << i] = 1.0
    assert np.isclose(BoxNormaliser(Sqrt(), n).at(theta).log_z, np.log(expm(M)[0, -1]), rtol=1e-9)


def test_limits_of_theta():
    n = 12
    normaliser = BoxNormaliser(Sqrt(), n)
    assert normaliser.at(0.0).log_z == pytest.approx(0.0, abs=1e-13)
    # Σ δ_j·(E x_(j) − 1/2) of sorted uniform scores
    delta = np.sqrt(np.arange(1, n + 1)) - np.sqrt(np.arange(n))
    assert np.isclose(normaliser.at(0.0).mean, delta @ (np.arange(n, 0, -1) / (n + 1) - 0.5), rtol=1e-12)
    assert np.isclose(normaliser.at(1e12).log_z, -np.log(float(factorial(n))), rtol=1e-8)


@pytest.mark.parametrize("theta", [1e-3, 1.0, 1e3, 1e9])
def test_two_items_in_closed_form(theta):
    # d = s·max(0, x₂ − x₁), so Z = 1/2 + ∫ (1 − v)·exp(−θsv) dv
    a = theta * (2 - np.sqrt(2))
    if a < 1e-2:  # the series Σ (−a)^k/(k + 2)!, without the cancellation
        z = 0.5 + 1 / 2 - a / 6 + a**2 / 24 - a**3 / 120
        slope = -1 / 6 + a / 12 - a**2 / 40 + a**3 / 180
    else:
        z = 0.5 + 1 / a + np.expm1(-a) / a**2
        slope = -1 / a**2 - np.exp(-a) / a**2 - 2 * np.expm1(-a) / a**3
    found = BoxNormaliser(Sqrt(), 2).at(theta)
    assert np.isclose(np.exp(found.log_z), z, rtol=1e-12)
    assert np.isclose(found.mean, -slope / z * a / theta, rtol=1e-9)


def test_items_of_one_kind_are_counted_together():
    atom, n, order = Top(3), 9, np.arange(9)
    assert n_states(atom, n) == 28
    values = np.minimum(np.array([bin(s).count("1") for s in range(2**n)]), 3).astype(float)
    apart = BoxNormaliser(Sqrt(), n)
    apart.lattice = Lattice.of_values(values, order, (order < 3).astype(float))
    apart._known.clear()
    together = BoxNormaliser(atom, n)
    for theta in (0.3, 5.0, 1e3):
        np.testing.assert_allclose(together.at(theta), apart.at(theta), rtol=1e-11)


def test_many_items_of_few_kinds():
    n, m, theta = 300, 4, 0.8
    found = BoxNormaliser(Top(m), n).at(theta)
    x = np.random.default_rng(0).random((20000, n))
    d = np.sort(x, axis=1)[:, -m:].sum(axis=1) - x[:, :m].sum(axis=1)
    weights = np.exp(-theta * d)
    assert abs(np.exp(found.log_z) - weights.mean()) < 4 * weights.std() / np.sqrt(len(x))
    assert abs(found.mean - weights @ d / weights.sum()) < 4 * d.std() / np.sqrt(len(x))


def test_values_of_all_subsets():
    for atom, f in ATOMS.values():
        expected = [f({i for i in range(5) if s >> i & 1}) - f(set()) for s in range(32)]
        np.testing.assert_allclose(subset_values(atom, 5), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["sqrt", "indicator", "cut"])
def test_maximum_likelihood_is_the_minimum(name):
    normaliser = BoxNormaliser(ATOMS[name][0], 5, ORDER)
    for share in (0.95, 0.4, 1e-3):
        target = share * normaliser.at(0.0).mean
        expected = brentq(lambda t, m=target: normaliser.at(t).mean - m, 0, 1e5, xtol=1e-12, rtol=1e-13)
        for start in (1e-9, 1.0, 1e5):
            assert np.isclose(maximum_likelihood(normaliser, target, start), expected, rtol=1e-9)


def test_maximum_likelihood_at_its_ends():
    normaliser = BoxNormaliser(Sqrt(), 5)
    assert maximum_likelihood(normaliser, normaliser.at(0.0).mean * 1.01) == 0.0
    assert maximum_likelihood(normaliser, 0.0) == normaliser.largest_theta
    flat = BoxNormaliser(Cardinality("linear"), 4)  # every order fits every score
    assert flat.at(50.0).log_z == pytest.approx(0.0, abs=1e-12)
    assert maximum_likelihood(flat, 0.0) == 0.0


@pytest.mark.parametrize(
    ("atom", "n"), [(Sqrt(), 8), (Product(), 6), (Top(3), 40)], ids=["sqrt", "product", "top"]
)
@pytest.mark.slow
def test_annealed_normaliser_is_within_its_error(atom, n):
    exact, estimate = BoxNormaliser(atom, n), AnnealedNormaliser(atom, n, 48)
    for strength in (0.3, 3.0, 30.0):
        theta = strength / exact.at(0.0).mean
        error = estimate.standard_error(theta)
        assert 0 < error < 0.1
        assert abs(estimate.at(theta).log_z - exact.at(theta).log_z) < 5 * error  # 8 groups: t with 7 degrees
        assert np.isclose(estimate.at(theta).mean, exact.at(theta).mean, rtol=0.08)
        assert np.isclose(estimate.at(theta).variance, exact.at(theta).variance, rtol=0.3)


def test_annealed_normaliser_is_the_same_curve_however_it_is_asked():
    estimate, again = AnnealedNormaliser(Sqrt(), 22, 8), AnnealedNormaliser(Sqrt(), 22, 8)
    values = [estimate.at(theta) for theta in np.linspace(0, 20, 21)]
    assert values[::-1] == [again.at(theta) for theta in np.linspace(0, 20, 21)[::-1]]
    assert values[0].log_z == 0.0
    step = 1e-3
    slope = (estimate.at(7 + step).log_z - estimate.at(7 - step).log_z) / (2 * step)
    assert np.isclose(estimate.at(7.0).mean, -slope, rtol=1e-5)


def test_too_many_items_are_refused():
    with pytest.raises(InputError, match="21 items are too many for the exact sum over subsets"):
        BoxNormaliser(Sqrt(), 21)
    with pytest.raises(InputError, match="more than the size of a set: use at most 20 items"):
        AnnealedNormaliser(Chain(), 21)
    with pytest.raises(InputError, match="too many"):
        subset_values(Chain(), 21)
    with pytest.raises(InputError, match="`theta` must be a finite number of at least 0, got -1"):
        BoxNormaliser(Sqrt(), 3).at(-1)


def fits(draws, masses):
    """p-value of the orders of the draws, with cells of few expected draws pooled."""
    orders = [tuple(order) for order in np.argsort(-draws, axis=1).tolist()]
    cells = sorted(masses, key=masses.get)
    total = sum(masses.values())
    expected = np.array([masses[cell] / total * len(draws) for cell in cells])
    observed = np.array([orders.count(cell) for cell in cells], dtype=float)
    small = max(int(np.searchsorted(np.cumsum(expected), 5.0)) + 1, int((expected < 5).sum()))
    expected = np.r_[expected[:small].sum(), expected[small:]]
    observed = np.r_[observed[:small].sum(), observed[small:]]
    assert len(expected) > 2
    return chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


# the last value is the number of sweeps between draws that count as independent; None samples exactly
DRAWS = [
    ("sqrt", 4.0, None),
    ("top", 3.0, None),
    ("product", 0.2, None),
    ("cut", 1.5, None),
    ("chain", 0.7, None),
    ("sqrt", 4.0, 8),
    ("cut", 3.0, 12),
]


@pytest.mark.parametrize(("name", "theta", "thin"), DRAWS)
def test_draws(name, theta, thin):
    atom, f = ATOMS[name]
    masses, means = cone_integrals(theta, ORDER, f)
    lb, normaliser = LovaszBregman(atom), BoxNormaliser(atom, 5, ORDER)
    if thin is None:
        draws, errors = exact_scores(normaliser.lattice, theta, ORDER, 6000, generator(0)), 4.0
    else:
        draws, errors = chain_scores(lb, theta, ORDER, 2400, generator(0), thin=thin), 4.5
    assert draws.min() >= 0
    assert draws.max() <= 1
    assert fits(draws, masses) > 1e-3
    z = (draws.mean(axis=0) - means / sum(masses.values())) / (draws.std(axis=0) / np.sqrt(len(draws)))
    assert np.abs(z).max() < errors
    exact, d = normaliser.at(theta), lb.divergence(draws, ORDER)
    assert abs(d.mean() - exact.mean) < errors * np.sqrt(exact.variance / len(draws))
    assert np.isclose(d.var(), exact.variance, rtol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("f", [Sqrt(), Product(), Chain()], ids=["sqrt", "product", "chain"])
def test_chains_of_flat_densities_are_uniform(f, n):
    """Neither chain is periodic or leaves out a part of the box: all orders and scores occur."""
    order = np.arange(n)[::-1]
    draws = chain_scores(LovaszBregman(f), 0.0, order, 1600, generator(0), thin=30)
    found = [tuple(row) for row in np.argsort(-draws, axis=1).tolist()]
    assert chisquare([found.count(cell) for cell in permutations(range(n))]).pvalue > 1e-3
    for column in draws.T:
        assert kstest(column, "uniform").pvalue > 1e-3


def test_chains_and_exact_draws_agree_for_twelve_items():
    order = np.random.default_rng(1).permutation(12)
    normaliser, lb = BoxNormaliser(Sqrt(), 12), LovaszBregman("sqrt")
    for theta in (3.0, 60.0):
        for method in ("exact", "chain"):
            draws = draw_scores(lb, normaliser.lattice, theta, order, 1500, generator(0), method)
            d = lb.divergence(draws, order)
            exact = normaliser.at(theta)
            assert abs(d.mean() - exact.mean) < 4.5 * np.sqrt(exact.variance / len(draws))


def test_draws_of_few_kinds_for_many_items():
    lattice = BoxNormaliser(Top(2), 60).lattice
    draws = exact_scores(lattice, 20.0, np.arange(60)[::-1], 4000, generator(0))
    d = LovaszBregman(Top(2)).divergence(draws, np.arange(60)[::-1])
    exact = BoxNormaliser(Top(2), 60).at(20.0)
    assert abs(d.mean() - exact.mean) < 4 * np.sqrt(exact.variance / 4000)
    # the 58 remaining items are alike
    behind = draws[:, :58].mean(axis=0)
    assert np.abs(behind - behind.mean()).max() < 4.5 * draws[:, :58].std() / np.sqrt(4000)


def test_the_table_of_exact_draws_is_bounded():
    lattice = BoxNormaliser(Sqrt(), 14).lattice
    assert can_draw_exactly(10.0, lattice)
    assert not can_draw_exactly(1e4, lattice)
    lb = LovaszBregman("sqrt")
    with pytest.raises(InputError, match=r"need too large a table: use `method='chain'`"):
        draw_scores(lb, lattice, 1e4, np.arange(14), 3, generator(0), "exact")
    assert draw_scores(lb, lattice, 1e4, np.arange(14), 3, generator(0)).shape == (3, 14)
    with pytest.raises(InputError, match="unknown `method` 'gibbs': use one of auto, exact, chain"):
        draw_scores(lb, lattice, 1.0, np.arange(14), 3, generator(0), "gibbs")


def test_seeds():
    lattice = BoxNormaliser(Sqrt(), 4).lattice
    draws = [exact_scores(lattice, 5.0, np.arange(4), 3, generator(seed)) for seed in (7, 7, 8)]
    assert (draws[0] == draws[1]).all()
    assert (draws[0] != draws[2]).any()
    assert generator(np.random.RandomState(0)).random() == generator(np.random.RandomState(0)).random()
