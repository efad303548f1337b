"""Generalisation bounds against their printed formula, and their inverses against a search."""

from decimal import Decimal
from functools import partial
from itertools import combinations_with_replacement
from math import comb, exp, inf, isfinite, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import multinomial

from apexrank.errors import InputError
from apexrank.objectives.link import UnknownLink
from apexrank.prices import Custom, Exponential, Log1p, Power
from apexrank.problem import Problem
from apexrank.solvers import Newton
from apexrank_papers.push import bounds
from apexrank_papers.push.bounds import (
    epsilon_bound,
    failure_log_probability,
    failure_probability,
    link_concentration,
    link_stability,
    log_covering_linear,
    log_covering_sloppy,
    negatives_needed,
    positives_needed,
    r_max_bounds,
)

LINEAR = partial(log_covering_linear, norm_bound=2.0, feature_bound=3.0, n_features=5)
EPSILON = st.floats(0.05, 1.0)
THETA = st.floats(0.01, 2.0)
P = st.floats(1.0, 6.0)
COUNT = st.integers(1, 10**7)
R_MIN = st.floats(0.0, 1.0)


def printed_theorem3(epsilon, theta, p, I, K, r_min, covering):
    """Theorem 3 as printed, to 28 digits and for any exponent."""
    e, p, I, K, r = (Decimal(x) for x in (epsilon, p, I, K, r_min))
    power = Decimal(1) if p == 1 else r ** (2 * (p - 1)) if r else Decimal(0)
    rate = max(e**2 / 16 * power, (e / 4) ** (2 * p))
    first, second = (-2 * K * rate).exp(), (-(e**2) / 8 * I + K.ln()).exp()
    return 2 * covering(e * Decimal(theta) / 8) * (first + second)


def linear_covering(radius):
    return (1 + 2 * Decimal(2) * Decimal(3) / radius) ** 5


@given(EPSILON, THETA, P, COUNT, COUNT, R_MIN)
def test_theorem_3_as_printed(epsilon, theta, p, I, K, r_min):
    expected = printed_theorem3(epsilon, theta, p, I, K, r_min, linear_covering).ln()
    found = failure_log_probability(epsilon, theta, p, I, K, LINEAR, r_min)
    assert found == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


def test_theorem_2_as_printed():
    epsilon, p, I, K = 0.8, 2, 300, 5000
    expected = 2 * 7 * (exp(-2 * (epsilon / 4) ** (2 * p) * K) + exp(-(epsilon**2) / 8 * I + log(K)))
    assert failure_probability(epsilon, 0.3, p, I, K, log(7)) == pytest.approx(expected, rel=1e-12)
    assert expected < 1


@given(EPSILON, P, COUNT, COUNT, R_MIN)
def test_theorem_3_is_never_worse_than_theorem_2(epsilon, p, I, K, r_min):
    second = failure_log_probability(epsilon, 0.1, p, I, K, LINEAR)
    third = failure_log_probability(epsilon, 0.1, p, I, K, LINEAR, r_min)
    assert third <= second
    if r_min <= epsilon / 4:
        assert third == second


def test_theorem_3_is_better_from_a_quarter_of_epsilon_on():
    second, third = (negatives_needed(0.4, 0.05, 0.1, 3, LINEAR, r_min=r_min) for r_min in (0.1, 0.11))
    assert second == negatives_needed(0.4, 0.05, 0.1, 3, LINEAR)
    assert third / second == pytest.approx(1.1**-4, rel=1e-4)


@given(EPSILON, P, COUNT, COUNT, R_MIN)
def test_monotone_in_epsilon_p_and_positives(epsilon, p, I, K, r_min):
    bound = partial(failure_log_probability, theta=0.1, log_covering=LINEAR, r_min=r_min)
    here = bound(epsilon=epsilon, p=p, n_positives=I, n_negatives=K)
    assert bound(epsilon=epsilon * 0.9, p=p, n_positives=I, n_negatives=K) > here
    assert bound(epsilon=epsilon, p=p + 0.5, n_positives=I, n_negatives=K) >= here
    assert bound(epsilon=epsilon, p=p, n_positives=2 * I, n_negatives=K) <= here


def test_more_negatives_help_at_first_and_cost_positives_later():
    K = np.geomspace(1, 1e9, 200)
    bound = np.array([failure_log_probability(0.4, 0.1, 2, 2000, k, 0.0) for k in K])
    lowest = bound.argmin()
    assert 0 < lowest < len(K) - 1
    assert (np.diff(bound[: lowest + 1]) < 0).all()
    assert (np.diff(bound[lowest:]) > 0).all()
    endless = [failure_log_probability(0.4, 0.1, 2, inf, k, 0.0) for k in K]
    assert (np.diff(endless) < 0).all()


def test_the_log_domain_neither_overflows_nor_rounds_to_zero():
    rich = partial(log_covering_linear, norm_bound=1.0, feature_bound=1.0, n_features=10_000)
    huge = failure_log_probability(0.1, 0.1, 64, 10, 10, rich)
    assert huge > 50_000
    assert failure_probability(0.1, 0.1, 64, 10, 10, rich) == 1.0
    tiny = failure_log_probability(1.0, 0.1, 1, 1e9, 1e9, 0.0)
    assert -inf < tiny < -100_000_000
    assert failure_probability(1.0, 0.1, 1, 1e9, 1e9, 0.0) == 0.0


def test_covering_number_holds_for_a_greedy_packing():
    """Balls around points of the class more than r apart cover it; the bound allows that many."""
    rng = np.random.default_rng(0)
    B, X, r = 2.0, 1.5, 1.0
    angle, length = rng.uniform(0, 2 * np.pi, 20_000), B * np.sqrt(rng.random(20_000))
    w = length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    chosen = np.empty((0, 2))
    for point in w:
        # sup over |x| ≤ X of |(w − v)·x| is X·|w − v|
        if (X * np.linalg.norm(chosen - point, axis=1) > r).all():
            chosen = np.vstack([chosen, point])
    limit = exp(log_covering_linear(r, B, X, 2))
    assert (B * X / r) ** 2 < len(chosen) <= limit  # no fewer than a cover needs by volume
    assert limit == pytest.approx(49)


def test_a_finite_class_has_a_number():
    assert failure_log_probability(0.3, 0.1, 2, 500, 500, log(20)) == failure_log_probability(
        0.3, 99.0, 2, 500, 500, lambda radius: log(20)
    )
    seen = []
    failure_log_probability(0.4, 0.2, 1, 10, 10, lambda radius: seen.append(radius) or 0.0)
    assert seen == pytest.approx([0.4 * 0.2 / 8])


@pytest.mark.parametrize("n_positives", [inf, 3000, 600])
@pytest.mark.parametrize("r_min", [0.0, 0.6])
def test_negatives_needed_is_the_first_that_is_enough(n_positives, r_min):
    arguments = {"theta": 0.1, "p": 1.5, "log_covering": 0.5, "r_min": r_min}
    K = negatives_needed(0.5, 0.05, n_positives=n_positives, **arguments)
    enough = [
        failure_probability(0.5, n_positives=n_positives, n_negatives=k, **arguments) <= 0.05
        for k in range(1, int(K) + 20)
    ]
    assert enough.index(True) + 1 == K


@pytest.mark.parametrize("n_negatives", [140, 400, 10**6])
def test_positives_needed_is_the_first_that_is_enough(n_negatives):
    arguments = {"theta": 0.1, "p": 1.0, "log_covering": 0.5}
    I = positives_needed(0.5, 0.05, n_negatives=n_negatives, **arguments)
    enough = [
        failure_probability(0.5, n_positives=i, n_negatives=n_negatives, **arguments) <= 0.05
        for i in range(1, int(I) + 20)
    ]
    assert enough.index(True) + 1 == I


@given(st.floats(0.1, 1.0), st.floats(1e-9, 0.5), st.floats(1, 20), R_MIN)
def test_sizes_go_there_and_back(epsilon, delta, p, r_min):
    K = negatives_needed(epsilon, delta / 2, 0.1, p, LINEAR, r_min=r_min)
    I = positives_needed(epsilon, delta, 0.1, p, K, LINEAR, r_min=r_min)
    assert isfinite(I)
    assert failure_log_probability(epsilon, 0.1, p, I, K, LINEAR, r_min) <= log(delta) + 1e-9
    assert negatives_needed(epsilon, delta, 0.1, p, LINEAR, n_positives=I, r_min=r_min) <= K * (1 + 1e-9)
    # 1e-12 of K changes nothing; twice the exponent does
    assert failure_log_probability(epsilon, 0.1, p, I, K / 2, LINEAR, r_min) > log(delta)


@pytest.mark.parametrize("p", [1, 2, 3.5])
@pytest.mark.parametrize("r_min", [0.0, 0.2])
def test_epsilon_goes_there_and_back(p, r_min):
    epsilon = epsilon_bound(0.05, 0.1, p, 10**8, 10**9, LINEAR, r_min=r_min)
    assert 0 < epsilon < 1
    bound = partial(failure_log_probability, theta=0.1, p=p, n_positives=10**8, n_negatives=10**9)
    assert bound(epsilon, log_covering=LINEAR, r_min=r_min) <= log(0.05)
    assert bound(epsilon * (1 - 1e-9), log_covering=LINEAR, r_min=r_min) > log(0.05)


def test_epsilon_bound_falls_with_data_and_grows_with_p():
    sizes = [epsilon_bound(0.05, 0.1, 2, n, n, LINEAR) for n in (10**6, 10**8, 10**10)]
    powers = [epsilon_bound(0.05, 0.1, p, 10**8, 10**8, LINEAR) for p in (1, 2, 3)]
    assert sizes == sorted(sizes, reverse=True)
    assert powers == sorted(powers)
    assert len({*sizes, *powers}) == 5  # p = 2 with 10**8 rows is in both
    assert epsilon_bound(0.05, 0.1, 2, 10, 10, LINEAR) == 1.0


def test_a_larger_p_costs_the_stated_factor():
    K = [negatives_needed(0.2, 0.05, 0.1, p, LINEAR, r_min=0.25) for p in (3, 4, 5)]
    assert np.diff(np.log(K)) == pytest.approx(2 * log(1 / 0.25), rel=1e-4)
    assert negatives_needed(0.1, 0.05, 0.1, 200, LINEAR) == inf


def test_too_few_examples_of_the_other_class():
    with pytest.raises(InputError, match="100 positives are too few"):
        negatives_needed(0.1, 0.05, 0.1, 1, LINEAR, n_positives=100)
    with pytest.raises(InputError, match=r"100 negatives are too few.*more than"):
        positives_needed(0.1, 0.05, 0.1, 1, 100, LINEAR)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("epsilon", 0.0), ("epsilon", 1.5), ("epsilon", float("nan")), ("theta", 0.0)],
        *[("p", 0.5), ("p", inf), ("r_min", -0.1), ("r_min", 1.1)],
        *[("n_positives", 0), ("n_negatives", 0), ("n_negatives", inf)],
    ],
)
def test_arguments_are_checked_by_name(name, value):
    arguments = {"epsilon": 0.1, "theta": 0.1, "p": 2, "n_positives": 10, "n_negatives": 10, "r_min": 0.1}
    with pytest.raises(InputError, match=name):
        failure_log_probability(**(arguments | {name: value}), log_covering=0.0)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0])
def test_delta_is_checked(delta):
    with pytest.raises(InputError, match="delta"):
        negatives_needed(0.1, delta, 0.1, 1, LINEAR)
    with pytest.raises(InputError, match="delta"):
        epsilon_bound(delta, 0.1, 1, 10, 10, LINEAR)
    with pytest.raises(InputError, match="delta"):
        positives_needed(0.1, delta, 0.1, 1, 10, LINEAR)
    with pytest.raises(InputError, match="radius"):
        log_covering_linear(0.0, 1.0, 1.0, 2)


# ---------------------------------------------------------------- without ln K, and with a sloppy cover


def risk(f, g, p, theta, plus=None, minus=None):
    """R_{p,φ} with the φ of the proof: 1 up to a margin of 0, 0 from θ on; weights are shares of the rows."""
    phi = np.clip(1 - (np.asarray(f)[:, None] - np.asarray(g)) / theta, 0, 1)
    heights = np.average(phi, axis=0, weights=plus)
    return np.average(heights**p, weights=minus) ** (1 / p)


def all_samples(n, shares):
    """Counts of the three levels in a sample of n rows, and the probability of each sample."""
    counts = np.array([(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)])
    return counts, multinomial.pmf(counts, n, shares)


@pytest.mark.parametrize("p", [1, 2, 6])
@pytest.mark.parametrize("seed", range(4))
def test_positives_need_no_union_over_the_negatives(p, seed):
    """E R_empirical ≥ R_DS and P(R_DS − R_empirical ≥ λ) ≤ exp(−2Iλ²), exactly, over all samples of I positives."""
    rng = np.random.default_rng(seed)
    # most positives far below or far above the negatives: heights of the largest variance, where the bound is tight
    levels, shares, I = np.array([-1.0, 0.1, 1.0]), rng.dirichlet([9.0, 1.0, 9.0]), 60
    negatives = 0.2 * rng.normal(size=30)
    true = risk(levels, negatives, p, 0.5, plus=shares)
    counts, chance = all_samples(I, shares)
    found = np.array([risk(levels, negatives, p, 0.5, plus=c / I) for c in counts])
    assert chance @ found >= true - 1e-12
    gaps = np.array([gap for gap in true - found if gap > 0])
    tails = np.array([chance[true - found >= gap - 1e-9].sum() for gap in gaps])
    assert (tails <= np.exp(-2 * I * gaps**2)).all()
    assert (tails > np.exp(-4 * I * gaps**2) + 1e-12).any()  # twice the exponent would be too much


@pytest.mark.parametrize("p", [1, 2, 6])
@pytest.mark.parametrize("seed", range(4))
def test_negatives_as_in_lemma_9(p, seed):
    """P(R_true − R_DS ≥ λ) ≤ exp(−2K·max{λ²·R_true^{2(p−1)}, λ^{2p}}), exactly, over all samples of K negatives."""
    rng = np.random.default_rng(seed)
    levels, shares, K = np.array([0.0, rng.random(), 1.0]), rng.dirichlet([9.0, 1.0, 9.0]), 60
    true = (shares @ levels**p) ** (1 / p)
    counts, chance = all_samples(K, shares)
    below = true - (counts @ levels**p / K) ** (1 / p)
    gaps = below[below > 1e-9]
    tails = np.array([chance[below >= gap - 1e-9].sum() for gap in gaps])
    rate = np.maximum(gaps**2 * true ** (2 * (p - 1)), gaps ** (2 * p))
    assert (tails <= np.exp(-2 * K * rate)).all()
    assert p > 1 or (tails > np.exp(-4 * K * rate) + 1e-12).any()


@given(EPSILON, THETA, P, COUNT, COUNT, R_MIN)
def test_the_sharp_bound_as_proved(epsilon, theta, p, I, K, r_min):
    printed = failure_log_probability(epsilon, theta, p, I, K, LINEAR, r_min)
    sharp = failure_log_probability(epsilon, theta, p, I, K, LINEAR, r_min, sharp=True)
    assert printed - log(2) - log(K) - 1e-9 <= sharp <= printed - log(2) + 1e-9
    more = failure_log_probability(epsilon, theta, p, I, 2 * K, LINEAR, r_min, sharp=True)
    assert more <= sharp  # which the printed one is not


@pytest.mark.parametrize("n_positives", [inf, 300])
def test_sizes_of_the_sharp_bound(n_positives):
    arguments = {"theta": 0.1, "p": 1.5, "log_covering": 0.5, "sharp": True}
    K = negatives_needed(0.5, 0.05, n_positives=n_positives, **arguments)
    sizes = [
        failure_probability(0.5, n_positives=n_positives, n_negatives=k, **arguments) for k in (K - 1, K)
    ]
    assert sizes[1] <= 0.05 < sizes[0]
    I = positives_needed(0.5, 0.05, n_negatives=10**9, **arguments)
    sizes = [failure_probability(0.5, n_positives=i, n_negatives=10**9, **arguments) for i in (I - 1, I)]
    assert sizes[1] <= 0.05 < sizes[0]
    assert epsilon_bound(0.05, 0.1, 1, 500, 500, 0.0, sharp=True) < epsilon_bound(0.05, 0.1, 1, 500, 500, 0.0)
    with pytest.raises(InputError, match="positives are too few"):
        negatives_needed(0.1, 0.05, 0.1, 1, 0.5, n_positives=100, sharp=True)


@given(st.integers(0, 10**6), P, st.floats(0.05, 1.0), st.floats(0.01, 0.5))
def test_rankers_that_differ_on_few_rows_have_near_risks(seed, p, theta, tau):
    """|R_φ(f) − R_φ(g)| ≤ 2τ/θ + η₊ + η₋^{1/p}, on which the sloppy cover is based."""
    rng = np.random.default_rng(seed)
    f, g = rng.random(20), rng.random(15)
    wild_f, wild_g = rng.random(20) < 0.1, rng.random(15) < 0.1
    other_f = f + np.where(wild_f, rng.normal(size=20), tau * rng.uniform(-1, 1, 20))
    other_g = g + np.where(wild_g, rng.normal(size=15), tau * rng.uniform(-1, 1, 15))
    apart = abs(risk(f, g, p, theta) - risk(other_f, other_g, p, theta))
    assert apart <= 2 * tau / theta + wild_f.mean() + wild_g.mean() ** (1 / p) + 1e-12
    # a negative that moves from the bottom to the top costs the p-th root of its share, so the bound is tight
    assert risk([1.0], [2.0, -2.0], p, theta) - risk([1.0], [-2.0, -2.0], p, theta) == pytest.approx(
        0.5 ** (1 / p)
    )


def test_means_of_a_few_rankers_are_a_sloppy_cover():
    """Some mean of m of them is near f on all but a share 8·exp(−2mτ²) of the rows, summed over four sets of rows."""
    rng = np.random.default_rng(3)
    n, m, tau = 4, 6, 0.5
    sets = [rng.integers(0, 2, (rows, n)).astype(float) for rows in (40, 30, 9, 7)]
    chosen = list(combinations_with_replacement(range(n), m))
    assert len(chosen) == comb(n + m - 1, m)
    means = np.array([np.bincount(c, minlength=n) / m for c in chosen])
    limit = 8 * exp(-2 * m * tau**2)
    assert limit < 1
    for weights in rng.dirichlet(np.full(n, 0.5), 200):
        missed = sum((np.abs(H @ (means - weights).T) > tau).mean(axis=0) for H in sets)
        assert missed.min() <= limit


def test_the_size_of_the_sloppy_cover():
    epsilon, theta, p, n = 0.8, 2.0, 3.0, 5
    tau = epsilon * theta / 16
    found = log_covering_sloppy(epsilon * theta / 8, theta, p, n)
    m = next(m for m in range(1, 10**5) if 8 * exp(-2 * m * tau**2) <= 2 * (epsilon / 16) ** p)
    assert found == pytest.approx(log(comb(n + m - 1, m)), rel=1e-9)
    share = 8 * exp(-2 * m * tau**2)
    assert 4 * tau / theta + share + 2 * (share / 2) ** (1 / p) <= epsilon / 2
    # it is a log_covering like the other, and costs only a factor of p
    sloppy = partial(log_covering_sloppy, theta=0.1, p=2, n_rankers=10**9)
    assert 0 < epsilon_bound(0.05, 0.1, 2, 1e13, 1e13, sloppy) < 1
    sizes = [log_covering_sloppy(0.01, 0.1, q, 1000) for q in (1, 2, 4, 8)]
    assert np.all(np.diff(np.log2(sizes)) < 1)
    for arguments, name in (
        ((0.5, 0.1, 2, 10), "epsilon"),
        ((0.01, 0.1, inf, 10), "p"),
        ((0.01, 0.1, 2, inf), "n_rankers"),
    ):
        with pytest.raises(InputError, match=f"^`{name}` must be"):
            log_covering_sloppy(*arguments)


def test_what_the_choice_of_centres_can_gain():
    """Remark of sec. 10: min_r R(f_r) instead of inf R is at least as good, and at most inf R_φ + ε/4."""
    gains = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        one, two = rng.normal(size=(2, 25))
        positive = (one + two + rng.normal(size=25)) > 0.5
        theta, epsilon, p = 1.0, 0.8, 2
        c = np.linspace(0, 1, 201)
        scores = np.outer(1 - c, one) + np.outer(c, two)
        plain = np.array([risk(s[positive], s[~positive], p, 1e-12) for s in scores])
        smooth = np.array([risk(s[positive], s[~positive], p, theta) for s in scores])
        distance = np.abs(c[:, None] - c) * np.abs(one - two).max()
        # the centres with the largest risks that still cover the class
        best = np.where(distance <= epsilon * theta / 8, plain, -inf).max(axis=1).min()
        assert plain.min() <= best <= smooth.min() + epsilon / 4 + 1e-9
        gains.append(best - plain.min())
    assert max(gains) > 0.02


# ---------------------------------------------------------------- Theorem 1

PRICED = [
    *[Power(1), Power(3), Power(64), Exponential()],
    *[
        Custom(lambda r: 2 + r + r**2, lambda r: 1 + 2 * r),
        Custom(lambda r: np.maximum(r - 1, 0) ** 2, lambda r: 2 * np.maximum(r - 1, 0)),
    ],
]


@pytest.mark.parametrize("price", PRICED, ids=lambda price: f"{price.name}-{price.order:g}")
@given(heights=st.lists(st.integers(0, 9), min_size=1, max_size=8))
def test_theorem_1(price, heights):
    K, top = len(heights), max(heights)

    def g(r):
        return float(price.value(np.array(float(r))))

    total = sum(map(g, heights))
    # as printed, for convex prices
    assert K * g(top / K) <= total * (1 + 1e-12)
    assert total <= K * g(top) * (1 + 1e-12)
    if total > 0:
        low, high = r_max_bounds(log(total), K, price)
        assert low * (1 - 1e-9) <= top <= high * (1 + 1e-9)
        assert high <= K * low * (1 + 1e-6) + 1e-6 or g(high) == g(
            0
        )  # the printed bound, but on a flat piece of g
        alone = r_max_bounds(log(g(top) + (K - 1) * g(0)), K, price)[1]
        assert g(alone) == pytest.approx(g(top), rel=1e-6)  # no smaller bound holds for all heights


def test_the_upper_bound_needs_no_convex_price_and_theorem_1_an_increasing_one():
    heights = np.array([5.0, 0.0, 0.0, 0.0])
    concave = Log1p()
    total = concave.value(heights).sum()
    assert 4 * concave.value(np.array(5 / 4)) > total  # the printed inequality fails
    assert r_max_bounds(log(total), 4, concave)[1] == pytest.approx(5)
    # "monotonic" in the theorem must mean increasing: g(r) = max(9 − r, 0), two negatives of height 3
    falling = Custom(lambda r: np.maximum(9 - r, 0), lambda r: np.where(r < 9, -1.0, 0.0))
    assert 2 * falling.g(np.array(3 / 2)) > 2 * falling.g(np.array(3.0))
    with pytest.raises(InputError, match="custom price falls"):
        r_max_bounds(log(12), 2, falling)
    with pytest.raises(InputError, match="4 negatives cost more than"):
        r_max_bounds(0.0, 4, Exponential())
    assert r_max_bounds(log(10), 4, "identity") == pytest.approx((2.5, 10))
    with pytest.raises(InputError, match="`log_risk` must be"):
        r_max_bounds(-inf, 4, "identity")


# ---------------------------------------------------------------- stability of a fit with an unknown link


def coefficients(X, y, alpha, s=1.0):
    problem = Problem(X, UnknownLink(y, strong_convexity=s, normalize=True), alpha)
    return Newton(500, 1e-12).solve(problem, np.zeros(X.shape[1])).w


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(2, 12), st.floats(-2, 1), st.floats(-2, 1), st.floats(-3, 1))
def test_coefficients_move_less_than_the_bound(seed, n, log_alpha, log_s, log_change):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    changed = rng.permutation(y) if seed % 2 else y + 10**log_change * rng.normal(size=n)
    alpha, s = 10**log_alpha, 10**log_s
    moved = np.linalg.norm(coefficients(X, changed, alpha, s) - coefficients(X, y, alpha, s))
    assert moved <= link_stability(X, y, changed, alpha) * (1 + 1e-6) + 1e-9


def test_the_constant_of_the_stability_bound_is_2():
    """Theorem 8 as printed has the factor 1.

    Rows 0 and 1 are in the wrong order along a first feature that other rows support.
    """
    X = np.array([[1.0, 30.0], [-1.0, -30.0], [10.5, 0.0], [9.5, 0.0]])
    y = np.array([-1e-5, 1e-5, 2.0, 1.0])
    changed = y + np.array([-1e-5, 1e-5, 0.0, 0.0])
    moved = np.linalg.norm(coefficients(X, changed, 0.05) - coefficients(X, y, 0.05))
    assert 1.98 / 2 < moved / link_stability(X, y, changed, 0.05) <= 1


def test_one_changed_value_moves_the_coefficients_by_its_own_row():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)) + 5, rng.normal(size=300)
    changed = y + 2.0 * (np.arange(300) == 7)
    radius = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    bound = link_stability(X, y, changed, 0.1)
    assert bound == pytest.approx(2 * radius * 2.0 / (300 * 0.1), rel=1e-12)
    assert bound < 0.05 * 2 * np.linalg.norm(X, 2) * 2.0 / (300 * 0.1)
    assert np.linalg.norm(coefficients(X, changed, 0.1) - coefficients(X, y, 0.1)) <= bound


def test_theorem_8_for_any_norm():
    """The norm |w|_K with a penalty alpha/2·|w|_K² is the Euclidean one of K^{1/2}·w, with rows K^{-1/2}·x."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    changed = y + 0.3 * rng.normal(size=40)
    root = np.linalg.cholesky(np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 4.0]]))
    turned = np.linalg.solve(root, X.T).T
    moved = np.linalg.norm(coefficients(turned, changed, 0.1) - coefficients(turned, y, 0.1))
    assert 0 < moved <= link_stability(turned, y, changed, 0.1)


def test_theorem_8_as_printed_fails_with_any_constant():
    """Its norm |Xᵀ(ỹ − y)|_{K⁻¹} is 0 here for every K, but w changes."""
    X, y, changed = np.array([[1.0], [0.0], [-1.0]]), np.array([2.0, 1.0, 0.0]), np.array([2.0, 2.0, 0.0])
    assert X.T @ (changed - y) == 0
    assert coefficients(X, changed, 0.1) - coefficients(X, y, 0.1) > 0.3


@pytest.mark.parametrize("kind", ["normal", "signs"])
def test_noise_moves_the_coefficients_less_than_the_concentration_bound(kind):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, size=(200, 3))
    mean, noise, alpha = np.tanh(X @ [1.0, -1.0, 0.5]), 0.3, 0.2
    draws = []
    for _ in range(150):
        own = rng.normal(size=200) if kind == "normal" else rng.choice([-1.0, 1.0], 200)
        draws.append(coefficients(X, mean + noise * own, alpha))
    far = np.linalg.norm(draws - np.mean(draws, axis=0), axis=1)
    bias = np.linalg.norm(np.mean(draws, axis=0) - coefficients(X, mean, alpha))
    radius = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    for delta in (0.5, 0.1, 0.01):
        bound = link_concentration(X, noise, alpha, delta)
        expected = 2 * radius * noise * (1 + 2 * np.sqrt(np.log(1 / delta))) / (alpha * np.sqrt(200))
        assert bound == pytest.approx(expected, rel=1e-12)
        assert np.mean(far > bound) <= delta
    assert np.sqrt(np.mean(far**2)) <= 2 * radius * noise / (alpha * np.sqrt(200))
    assert bias <= 2 * radius * noise / alpha
    assert link_concentration(sparse.csr_array(1e200 * X), noise, alpha) == pytest.approx(
        1e200 * link_concentration(X, noise, alpha)
    )
    four = link_concentration(np.vstack([X] * 4), noise, alpha)
    assert four == pytest.approx(link_concentration(X, noise, alpha) / 2)


def test_stability_of_sparse_and_wide_rows():
    X = np.random.default_rng(0).normal(size=(4, 6))
    y = np.arange(4.0)
    radius = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    least = min(np.linalg.norm(X, 2) * np.linalg.norm(y), radius * y.sum())
    expected = 2 * least / (4 * 0.3)
    for rows in (X, sparse.csr_array(X), X.tolist()):
        assert link_stability(rows, y, 2 * y, 0.3) == pytest.approx(expected, rel=1e-12)
    tall = np.vstack([X, X]).T
    assert link_stability(tall, np.zeros(6), np.ones(6), 1.0) == pytest.approx(
        2 * np.linalg.norm(tall, 2) / np.sqrt(6), rel=1e-12
    )


def test_bad_input_of_the_stability_bound():
    with pytest.raises(InputError, match="`alpha` must be a number in"):
        link_stability(np.ones((2, 1)), [0, 1], [1, 0], 0.0)
    with pytest.raises(InputError, match=r"X needs two dimensions and at least one row, got shape \(2,\)"):
        link_concentration(np.ones(2), 1.0, 1.0)
    with pytest.raises(InputError, match=r"`delta` must be a number in \(0, 1\)"):
        link_concentration(np.ones((2, 1)), 1.0, 1.0, delta=1.0)
    with pytest.raises(InputError, match=r"got shapes \(2, 1\), \(2,\) and \(3,\)"):
        link_stability(np.ones((2, 1)), [0, 1], [1, 0, 2], 1.0)


def test_link_stability_of_sparse_whole_and_huge_numbers():
    rng = np.random.default_rng(0)
    X, y = rng.integers(-120, 120, (200, 3)).astype(np.int8), rng.normal(size=200)
    bound = bounds.link_stability(X.astype(float), y, y + 1, 0.1)
    assert bounds.link_stability(sparse.csr_array(X), y, y + 1, 0.1) == pytest.approx(bound)
    assert bounds.link_stability(1e200 * X, y, y + 1, 0.1) == pytest.approx(1e200 * bound)
    with pytest.raises(InputError, match="must be finite numbers"):
        bounds.link_stability(np.full(X.shape, np.nan), y, y, 0.1)
