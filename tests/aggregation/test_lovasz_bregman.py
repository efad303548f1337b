"""Lovász–Bregman divergences against their definition, the paper's closed forms, our metrics and a solver."""

import json
from functools import cache
from itertools import combinations, pairwise, permutations, product
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from apexrank import metrics
from apexrank.aggregation.lovasz_bregman import LovaszBregman
from apexrank.errors import InputError
from apexrank.submodular import Cardinality, Chain, Custom, Cut, Indicator, Log, Modular, Product, Sqrt, Top
from tests.lovasz_oracles import divergence_of, h_of, order_of

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "lovasz.json").read_text())
D = np.array(
    [
        [0, 0.7, 0.1, 0, 0.2],
        [0.7, 0, 0.5, 0.4, 0],
        [0.1, 0.5, 0, 0, 1],
        [0, 0.4, 0, 0, 0.3],
        [0.2, 0, 1, 0.3, 0],
    ]
)
ONE_WAY = np.triu(D) + 0.5 * np.tril(D)
TOPICS = ["ab", "a", "bcd", "de", "e"]


def covered(X):
    return len(set("".join(TOPICS[i] for i in X)))


# name → (the atom, its definition on a set of five items)
FUNCTIONS = {
    "sqrt": (Sqrt(), lambda X: sqrt(len(X))),
    "log": (Log(), lambda X: log(1 + len(X))),
    "top": (Top(m=2), lambda X: min(len(X), 2)),
    "product": (Product(), lambda X: len(X) * (5 - len(X))),
    "indicator": (Indicator(), lambda X: float(1 <= len(X) <= 4)),
    "chain": (Chain(), lambda X: sum((i in X) != (i + 1 in X) for i in range(4))),
    "cut": (Cut(D), lambda X: sum(D[i, j] for i in X for j in range(5) if j not in X)),
    "one-way": (Cut(ONE_WAY), lambda X: sum(ONE_WAY[i, j] for i in X for j in range(5) if j not in X)),
    "custom": (Custom(covered, 5), covered),
    "sum": (0.5 * Cut(D) + 3 * Log(), lambda X: 0.5 * FUNCTIONS["cut"][1](X) + 3 * log(1 + len(X))),
}
BY_SIZE = ["sqrt", "log", "top", "product", "indicator"]
each_f = pytest.mark.parametrize("name", FUNCTIONS)
ORDERS = [list(s) for s in permutations(range(5))]
vectors = st.lists(st.integers(-8, 8).map(lambda k: k / 4), min_size=5, max_size=5).map(np.array)  # many ties
orders = st.permutations(range(5))
few = settings(max_examples=40)  # for each of the functions


@cache
def h_of_all_orders(name):
    return np.array([h_of(FUNCTIONS[name][1], s) for s in ORDERS])


def mean_h(name, y):
    """``h_σ``, averaged over all orders that agree with the scores y."""
    return h_of_all_orders(name)[(np.diff(y[ORDERS]) <= 0).all(axis=1)].mean(axis=0)


def rank_of(order):
    rank = np.empty(len(order), dtype=int)
    rank[list(order)] = np.arange(len(order))
    return rank


def opposite(x, order, i, j):
    """Whether the order reverses i and j relative to the scores, which differ."""
    rank = rank_of(order)
    return (x[i] - x[j]) * (rank[j] - rank[i]) < 0


def random_scores(r, n=5, seed=0):
    return np.random.default_rng(seed).normal(size=(r, n))


@each_f
def test_definition_for_all_orders(name):
    f, value = FUNCTIONS[name]
    lb = LovaszBregman(f)
    X = np.vstack([random_scores(3), [[0.5, 0.5, -1.0, 0.5, -1.0]]])
    h = h_of_all_orders(name)
    np.testing.assert_allclose(lb.gradients(ORDERS), h, rtol=0, atol=1e-12)
    expected = [[divergence_of(value, x, s) for s in ORDERS] for x in X]
    np.testing.assert_allclose(lb.divergence(X, ORDERS), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(lb.extension(X), [x @ h_of(value, order_of(x)) for x in X], rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["f"].replace(" ", "_"))
def test_conformance_vectors(case):
    named = {
        "sqrt cardinality": "sqrt",
        "|X||V-X|": "product",
        "min(|X|,2)": Top(m=2),
        "chain": "chain",
        "indicator 1..n-1": "indicator",
    }
    lb = LovaszBregman("cut", weights=case["W"]) if case["W"] else LovaszBregman(named[case["f"]])
    assert lb.extension(case["x"]) == pytest.approx(case["extension"], abs=2e-9)
    np.testing.assert_allclose(
        lb.divergence(case["x"], case["orders"]), case["divergence"], rtol=0, atol=2e-9
    )


def test_shapes():
    lb = LovaszBregman()
    X, many = random_scores(3), ORDERS[:4]
    table = lb.divergence(X, many)
    assert table.shape == (3, 4)
    assert isinstance(lb.divergence(X[1], many[2]), float)
    assert isinstance(lb.extension(X[1]), float)
    np.testing.assert_allclose(lb.divergence(X, many[2]), table[:, 2], rtol=0, atol=1e-15)
    np.testing.assert_allclose(lb.divergence(X[1], many), table[1], rtol=0, atol=1e-15)
    assert lb.divergence(X[1], many[2]) == pytest.approx(table[1, 2], abs=1e-15)
    assert lb.divergence(X[:1], many[:1]).shape == (1, 1)
    assert lb.extension(X).shape == (3,)
    assert lb.subgradient(X).shape == lb.gradients(ORDERS[:3]).shape == (3, 5)
    assert repr(LovaszBregman("top", m=2)) == "LovaszBregman(Top(m=2))"


# ── Table 1 with its corrections ──


def sorted_down(x):
    return np.sort(x)[::-1]


TABLE_1 = {
    # row: f, f̂(x), d(x‖σ); rows 1 and 5 print half of d, and 5 compares items i and i + 1, not ranks
    1: (
        Product(),
        lambda x: sum(abs(x[i] - x[j]) for i, j in combinations(range(5), 2)),
        lambda x, s: 2 * sum(abs(x[i] - x[j]) for i, j in combinations(range(5), 2) if opposite(x, s, i, j)),
    ),
    2: (
        Log(),
        lambda x: sorted_down(x) @ np.diff(np.log(range(1, 7))),
        lambda x, s: (sorted_down(x) - x[s]) @ np.diff(np.log(range(1, 7))),
    ),
    3: (Top(m=3), lambda x: sorted_down(x)[:3].sum(), lambda x, s: sorted_down(x)[:3].sum() - x[s][:3].sum()),
    4: (Top(m=1), lambda x: x.max(), lambda x, s: x.max() - x[s[0]]),
    5: (
        Chain(),
        lambda x: np.abs(np.diff(x)).sum(),
        lambda x, s: 2 * sum(abs(x[i] - x[i + 1]) for i in range(4) if opposite(x, s, i, i + 1)),
    ),
    6: (
        Indicator(),
        lambda x: x.max() - x.min(),
        lambda x, s: x.max() - x[s[0]] - x.min() + x[s[-1]],
    ),
    7: (
        Custom(lambda X: len(X) not in (0, 5), 5),
        lambda x: max(abs(a - b) for a in x for b in x),
        lambda x, s: max(abs(a - b) for a in x for b in x) - (x[s[0]] - x[s[-1]]),  # no absolute value
    ),
}


@pytest.mark.parametrize("row", TABLE_1)
def test_table_1(row):
    f, extension, divergence = TABLE_1[row]
    lb = LovaszBregman(f)
    for x in random_scores(5, seed=row):
        assert lb.extension(x) == pytest.approx(extension(x), abs=1e-12)
        expected = [divergence(x, s) for s in ORDERS]
        np.testing.assert_allclose(lb.divergence(x, ORDERS), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("d", [D, ONE_WAY], ids=["symmetric", "one-way"])
def test_equation_17(d):
    # over all i and j, so symmetric weights count each pair twice
    for x in random_scores(3):
        expected = [
            sum(d[i, j] * abs(x[i] - x[j]) for i in range(5) for j in range(5) if opposite(x, s, i, j))
            for s in ORDERS
        ]
        np.testing.assert_allclose(LovaszBregman(Cut(d)).divergence(x, ORDERS), expected, rtol=0, atol=1e-12)


# ── ranking measures ──


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("discount", ["log2", "log", "reciprocal"])
@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_ndcg_loss(k, discount, gain):
    rng = np.random.default_rng(7)
    ranks = np.arange(1.0, 9.0)
    deltas = {"log2": 1 / np.log2(1 + ranks), "log": 1 / np.log(1 + ranks), "reciprocal": 1 / ranks}[discount]
    lb = LovaszBregman("cardinality", g=deltas, m=k)
    for _ in range(5):
        grades, scores = rng.integers(0, 4, 8), rng.permutation(8)
        r = grades if gain == "linear" else 2.0**grades - 1
        expected = 1 - metrics.ndcg(grades, scores, k=k, gain=gain, discount=discount)
        assert lb.divergence(r, order_of(scores)) / lb.extension(r) == pytest.approx(expected, abs=1e-12)
        missed = metrics.dcg(grades, grades, k=k, gain=gain, discount=discount) - metrics.dcg(
            grades, scores, k=k, gain=gain, discount=discount
        )
        assert lb.divergence(r, order_of(scores)) == pytest.approx(missed, abs=1e-12)


def test_auc_by_one_way_weights_or_half_of_both_ways():
    rng = np.random.default_rng(8)
    for n in (2, 5, 9):
        good = np.zeros(n, dtype=bool)
        good[rng.permutation(n)[: n // 2]] = True
        one_way = np.outer(good, ~good) / (good.sum() * (~good).sum())
        pairs = LovaszBregman.of_pairs(np.argwhere(one_way > 0), n, weights=one_way[one_way > 0])
        for _ in range(5):
            scores = rng.permutation(n)
            loss = 1 - metrics.auc(good, scores)
            for lb in (LovaszBregman(Cut(one_way)), LovaszBregman(Cut((one_way + one_way.T) / 2)), pairs):
                assert lb.divergence(good, order_of(scores)) == pytest.approx(loss, abs=1e-12)
            # the paper's weights of all pairs count every wrong pair twice
            everywhere = LovaszBregman(Cut(np.full((n, n), one_way.max())))
            assert everywhere.divergence(good, order_of(scores)) == pytest.approx(2 * loss, abs=1e-12)


def test_kendall_is_recovered():
    # symmetric weights 1/|x_i − x_j| count each pair twice, one-way weights once
    for x in random_scores(4):
        with np.errstate(divide="ignore"):
            d = 1 / np.abs(x[:, None] - x)
        np.fill_diagonal(d, 0)
        expected = metrics.kendall_distance(orders=(order_of(x), ORDERS))
        np.testing.assert_allclose(
            LovaszBregman(Cut(d / 2)).divergence(x, ORDERS), expected, rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(
            LovaszBregman(Cut(np.triu(d))).divergence(x, ORDERS), expected, rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(
            LovaszBregman(Cut(d)).divergence(x, ORDERS), 2 * expected, rtol=0, atol=1e-12
        )


def test_spearman_form():
    lb = LovaszBregman(Cardinality([4, 3, 2, 1, 0]))  # n − i
    for x in random_scores(4):
        expected = [x @ (rank_of(s) - rank_of(order_of(x))) for s in ORDERS]
        np.testing.assert_allclose(lb.divergence(x, ORDERS), expected, rtol=0, atol=1e-12)


def test_spearman_form_of_ranks_is_half_spearmans_distance():
    # Σ_i r_i (r_i − s_i) = ½ Σ_i (r_i − s_i)² for two lists of the same ranks
    x = np.array([2.0, 4.0, 1.0, 5.0, 3.0])
    found = LovaszBregman(Cardinality([4, 3, 2, 1, 0])).divergence(x, ORDERS)
    expected = [metrics.spearman_distance(orders=(order_of(x), s)) for s in ORDERS]
    np.testing.assert_allclose(found, np.array(expected) / 2, rtol=0, atol=1e-12)


# ── properties ──


@each_f
@few
@given(x=vectors, z=vectors, s=orders, t=st.sampled_from([0.25, 0.5, 0.9]))
def test_non_negative_and_convex(name, x, z, s, t):
    f, value = FUNCTIONS[name]
    lb = LovaszBregman(f)
    at_x, at_z, between = lb.divergence([x, z, t * x + (1 - t) * z], s)
    assert at_x >= 0
    assert divergence_of(value, x, s) >= -1e-12
    assert between <= t * at_x + (1 - t) * at_z + 1e-12
    assert lb.divergence(x, order_of(x)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("f", [Sqrt(), Log(), Product(), Cut(D + 0.1)], ids=repr)
def test_zero_only_for_the_order_of_the_scores(f):
    # the gains of the first three all differ, and in the last every pair has a weight
    for x in random_scores(5):
        found = LovaszBregman(f).divergence(x, ORDERS)
        assert [s for s, d in zip(ORDERS, found, strict=True) if d < 1e-9] == [order_of(x)]


@pytest.mark.parametrize("f", [Top(m=2), Indicator(), Chain()], ids=repr)
def test_equal_gains_leave_other_orders_at_zero(f):
    found = LovaszBregman(f).divergence(random_scores(1)[0], ORDERS)
    assert np.sum(found < 1e-9) > 1


@each_f
def test_a_modular_term_changes_nothing(name):
    f, _ = FUNCTIONS[name]
    X = random_scores(4)
    shifted = LovaszBregman(f + Modular([5.0, -3.0, 0.5, 0.0, 2.0]))
    np.testing.assert_allclose(
        shifted.divergence(X, ORDERS), LovaszBregman(f).divergence(X, ORDERS), rtol=0, atol=1e-12
    )


@each_f
def test_linear_in_f(name):
    f, _ = FUNCTIONS[name]
    X = random_scores(4)
    expected = 2 * LovaszBregman(f).divergence(X, ORDERS) + 0.5 * LovaszBregman("log").divergence(X, ORDERS)
    np.testing.assert_allclose(
        LovaszBregman(2 * f + 0.5 * Log()).divergence(X, ORDERS), expected, rtol=0, atol=1e-12
    )


@each_f
def test_linear_separation(name):
    f, _ = FUNCTIONS[name]
    X = random_scores(6)
    found = LovaszBregman(f).divergence(X, ORDERS)
    h = h_of_all_orders(name)
    np.testing.assert_allclose(found[:, 1:] - found[:, :1], X @ (h[0] - h[1:]).T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", BY_SIZE)
@few
@given(x=vectors, s=orders, relabel=orders)
def test_left_invariance(name, x, s, relabel):
    lb = LovaszBregman(FUNCTIONS[name][0])
    moved = np.empty(5)
    moved[relabel] = x  # item i is now called relabel[i]
    found = lb.divergence(moved, [relabel[i] for i in s])
    assert found == pytest.approx(lb.divergence(x, s), abs=1e-12)


def test_a_cut_is_not_left_invariant():
    x, relabel = np.array([3.0, 1.0, 4.0, 0.0, 2.0]), [1, 2, 3, 4, 0]
    moved = np.empty(5)
    moved[relabel] = x
    lb = LovaszBregman(Cut(D))
    assert abs(lb.divergence(moved, relabel) - lb.divergence(x, [0, 1, 2, 3, 4])) > 0.1


@each_f
def test_confidence_bound(name):
    # Theorem 3.2, n·ε·(max_j f(j) − min_j f(j|V∖j)), holds for any submodular f
    f, value = FUNCTIONS[name]
    everything = set(range(5))
    spread = max(value({j}) for j in range(5)) - min(
        value(everything) - value(everything - {j}) for j in range(5)
    )
    for scale in (1.0, 1e-3):
        for x in scale * random_scores(5):
            assert LovaszBregman(f).divergence(x, ORDERS).max() <= 5 * np.ptp(x) * spread + 1e-12


def test_confidence_bound_of_the_product():
    lb, exceeded = LovaszBregman("product"), False
    for x in random_scores(20):
        found, swaps = lb.divergence(x, ORDERS), metrics.kendall_distance(orders=(order_of(x), ORDERS))
        assert (found <= 2 * np.ptp(x) * swaps + 1e-12).all()
        exceeded = exceeded or (found > np.ptp(x) * swaps + 1e-12).any()
    assert exceeded  # of the printed bound ε·d_T


@each_f
def test_adjacent_swaps(name):
    # Lemma 3.1: σ differs from σ_x by a swap of ranks k and k + 1
    f, value = FUNCTIONS[name]
    for x in random_scores(4):
        down = order_of(x)
        for k in range(4):
            s = down.copy()
            s[k], s[k + 1] = s[k + 1], s[k]
            before = set(s[:k])
            first = value(before | {down[k]}) - value(before)
            second = value(before | {s[k], down[k]}) - value(before | {s[k]})
            expected = (x[down[k]] - x[down[k + 1]]) * (first - second)
            assert LovaszBregman(f).divergence(x, s) == pytest.approx(expected, abs=1e-12)


def test_swaps_near_the_top_cost_more():
    x = np.arange(5.0, 0, -1)
    cost = [LovaszBregman("sqrt").divergence(x, [*range(k), k + 1, k, *range(k + 2, 5)]) for k in range(4)]
    assert all(a > b for a, b in pairwise(cost))


@each_f
@few
@given(
    X=st.lists(vectors, min_size=1, max_size=4),
    w=st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=4, max_size=4),
)
def test_the_mean_has_the_best_order(name, X, w):
    # Lemma 4.1, with weights
    lb = LovaszBregman(FUNCTIONS[name][0])
    w = np.array(w[: len(X)])
    total = w @ lb.divergence(np.array(X), ORDERS)
    best = w @ np.atleast_1d(lb.divergence(np.array(X), order_of(w @ np.array(X))))
    assert best <= total.min() + 1e-11


def test_scores_far_from_zero_keep_their_digits():
    x = np.array([0.25, 0.75, 0.5])
    lb = LovaszBregman("sqrt")
    expected = lb.divergence(x, [0, 1, 2])
    assert lb.divergence(x + 2.0**40, [0, 1, 2]) == pytest.approx(expected, rel=1e-14)


# ── ties, signs, top m, partial orders ──


@each_f
@few
@given(x=vectors, y=vectors)
def test_ties_in_y(name, x, y):
    f, value = FUNCTIONS[name]
    expected = x @ (h_of(value, order_of(x)) - mean_h(name, y))
    assert LovaszBregman(f).divergence_to_scores(x, y) == pytest.approx(expected, abs=1e-12)


def test_divergence_to_scores_takes_tables():
    lb, X = LovaszBregman("log"), random_scores(3)
    expected = lb.divergence(X, [order_of(y) for y in X])
    np.testing.assert_array_equal(lb.divergence_to_scores(X, X), expected)
    np.testing.assert_array_equal(lb.divergence_to_scores(X, X[1]), lb.divergence(X, order_of(X[1])))


def extended(name, x, y):
    """``φ(x) − φ(y) − <∇φ(y), x − y>`` of ``φ(x) = f̂(|x|)``, ties and signs of zeros averaged."""
    slope = np.sign(y) * mean_h(name, np.abs(y))
    phi = [np.abs(v) @ h_of(FUNCTIONS[name][1], order_of(np.abs(v))) for v in (x, y)]
    return phi[0] - phi[1] - slope @ (x - y)


@pytest.mark.parametrize("name", ["sqrt", "log", "top", "custom"])
@few
@given(x=vectors, y=vectors)
def test_extended_divergence(name, x, y):
    lb = LovaszBregman(FUNCTIONS[name][0])
    found = lb.extended_divergence(x, y)
    assert found >= 0
    assert found == pytest.approx(extended(name, x, y), abs=1e-12)
    assert lb.extended_divergence(x, np.zeros(5)) == pytest.approx(lb.extension(np.abs(x)), abs=1e-12)
    positive = np.abs(y) + 0.25
    assert lb.extended_divergence(np.abs(x), positive) == pytest.approx(
        lb.divergence_to_scores(np.abs(x), positive), abs=1e-12
    )


def test_extended_divergence_sees_signs():
    lb = LovaszBregman("sqrt")
    assert lb.divergence_to_scores([-1, -2], [2, 1]) == 0.0  # the same order
    assert lb.extended_divergence([-1, -2], [2, 1]) == pytest.approx(3 * sqrt(2), abs=1e-12)
    assert lb.extended_divergence([[-1, -2], [4, 1]], [[2, 1], [-2, -1], [1, 2]]).shape == (2, 3)


@pytest.mark.parametrize(
    "f", ["product", "indicator", "chain", Cut(D), Sqrt() + Modular([-1.0] * 5)], ids=str
)
def test_extended_divergence_needs_a_monotone_f(f):
    with pytest.raises(InputError, match="needs a monotone set function, such as 'sqrt', 'log' or 'top'"):
        LovaszBregman(f).extended_divergence(np.ones(5), np.ones(5))


@pytest.mark.parametrize("m", [1, 3, 5, 9])
def test_top_m(m):
    X = random_scores(4)
    for x in X:
        down = np.sort(x)[::-1]
        deltas = np.sqrt(np.arange(1, 6)) - np.sqrt(np.arange(5))
        eq_19 = [(down[:m] - x[s][:m]) @ deltas[:m] for s in ORDERS]
        eq_20 = [down[:m].sum() - x[s][:m].sum() for s in ORDERS]
        np.testing.assert_allclose(
            LovaszBregman("sqrt", m=m).divergence(x, ORDERS), eq_19, rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(LovaszBregman("top", m=m).divergence(x, ORDERS), eq_20, rtol=0, atol=1e-12)


def test_partial_orders():
    pairs = [(0, 1), (2, 1)]  # 1 > 2, 3 > 2 in the paper's numbers
    lb = LovaszBregman.of_pairs(pairs, 4)
    for x in random_scores(6, n=4):
        to_the_pairs = sum(max(0.0, x[b] - x[a]) for a, b in pairs)
        assert lb.divergence(x, lb.order) == pytest.approx(to_the_pairs, abs=1e-12)
        for s in permutations(range(4)):
            rank = rank_of(s)
            each = [max(0.0, (x[b] - x[a]) * np.sign(rank[b] - rank[a])) for a, b in pairs]
            assert lb.divergence(x, s) == pytest.approx(sum(each), abs=1e-12)
    assert LovaszBregman("sqrt").order is None


@pytest.mark.parametrize("pairs", [[], iter(()), np.empty((0, 2))], ids=["list", "iterator", "array"])
@pytest.mark.parametrize("weights", [None, []], ids=["unweighted", "weighted"])
def test_no_pairs_ask_for_nothing(pairs, weights):
    lb = LovaszBregman.of_pairs(pairs, 3, weights)
    assert sorted(lb.order) == [0, 1, 2]
    assert lb.divergence([0.3, 0.9, 0.1], list(permutations(range(3)))).tolist() == [0] * 6
    np.testing.assert_allclose(lb.prox([0.3, 0.9, 0.1], lb.order), [0.3, 0.9, 0.1], rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda lb: lb.divergence([1.0, 2.0], [0, 1, 2]),
            "scores and orders must have the same items, got 2 and 3",
        ),
        (lambda lb: lb.divergence([1.0, np.nan, 0.0], [0, 1, 2]), "scores must be finite numbers, got nan"),
        (lambda lb: lb.divergence([1.0, 2.0, 0.0], [0, 1, 1]), "item 1 occurs twice"),
        (lambda lb: lb.divergence([1.0, 2.0, 0.0], [0, 1, 3]), "there is no item 3"),
        (lambda lb: lb.divergence(np.ones((2, 2, 2)), [0, 1]), "must be vectors or tables of them"),
        (
            lambda lb: lb.divergence_to_scores([1.0], [1.0, 2.0]),
            "scores and y must have the same items, got 1 and 2",
        ),
        (
            lambda lb: lb.extended_divergence([1.0], [1.0, 2.0]),
            "scores and y must have the same items, got 1 and 2",
        ),
        (lambda lb: lb.extended_divergence([np.inf], [1.0]), "x must be finite numbers, got inf"),
        (
            lambda lb: lb.prox([1.0, 2.0], [0, 1], -1),
            "`strength` must be a finite number of at least 0, got -1",
        ),
        (lambda lb: lb.prox([1.0, 2.0], [[0, 1], [1, 0]]), "one order or one for each row of v"),
        (lambda lb: lb.prox([1.0, np.nan], [0, 1]), "v must be finite numbers, got nan"),
        (lambda lb: lb.of_pairs([(0, 1), (1, 2), (2, 0)], 3), "pairs must not go in a circle: "),
        (lambda lb: lb.of_pairs([(1, 1)], 3), "pairs must not go in a circle: 1 > 1"),
        (lambda lb: lb.of_pairs([(0, 3)], 3), "numbered from 0 to 2: there is no item 3"),
        (lambda lb: lb.of_pairs([0, 1], 3), "pairs must be a list of pairs of items"),
        (lambda lb: lb.of_pairs([(0, 1), (1, 2, 0)], 3), "pairs must be a list of pairs of items"),
        (lambda lb: lb.of_pairs([], 0), "`n` must be a whole number of at least 1, got 0"),
        (lambda lb: lb.of_pairs([], 3, weights=[1.0]), "weights must hold one number for each of 0"),
        (lambda lb: lb.of_pairs([(0, 1)], 0), "`n` must be a whole number of at least 1, got 0"),
        (lambda lb: lb.of_pairs([(0, 1)], 2, weights=[-1.0]), "weights must be finite and not negative"),
        (lambda lb: lb.of_pairs([(0, 1)], 2, weights=[1.0, 2.0]), "one number for each of 1"),
        (lambda lb: LovaszBregman("sqrt", weights=D), "takes no 'weights': it takes m"),
        (lambda lb: LovaszBregman(Cut(D)).divergence(np.ones(4), [0, 1, 2, 3]), "all 5 items, got 4"),
        (
            lambda lb: LovaszBregman(Cut(np.ones((13, 13)))).prox(np.ones(13), np.arange(13)),
            "no prox for this set function of 13 items: there is one for functions of the size, for the chain",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call(LovaszBregman("sqrt"))
    assert "\n" not in str(caught.value)


# ── the prox ──

PROX = {**{name: f for name, (f, _) in FUNCTIONS.items()}, "sum of sizes": 2 * Sqrt() + Top(m=2)}
SETS = np.array(list(product([False, True], repeat=5)))


@cache
def values_of_all_sets(name):
    return np.array([PROX[name](mask) for mask in SETS])


@pytest.mark.parametrize("name", PROX)
@few
@given(v=vectors, s=orders, t=st.sampled_from([0.0, 0.1, 1.0, 30.0]))
def test_prox_is_optimal(name, v, s, t):
    # v + t·h_σ − x must be t times a subgradient g of f̂ at x: <x, g> = f̂(x) and g in the base polytope
    lb = LovaszBregman(PROX[name])
    x = lb.prox(v, s, t)
    if t == 0.0:
        np.testing.assert_allclose(x, v, rtol=0, atol=1e-12)
        return
    g = (v - x) / t + lb.gradients(s)
    size = 1e-10 * max(1.0, 1 / t)
    assert g @ x == pytest.approx(lb.extension(x), abs=size)
    values = values_of_all_sets(name)
    assert (SETS @ g <= values + size).all()
    assert g.sum() == pytest.approx(values[-1], abs=size)


@pytest.mark.parametrize("name", ["sqrt", "chain", "cut"])
def test_prox_of_rows(name):
    lb, V, many = LovaszBregman(FUNCTIONS[name][0]), random_scores(3), ORDERS[40:43]
    one, each = lb.prox(V, many[0], 0.3), lb.prox(V, many, 0.3)
    np.testing.assert_allclose(each[0], one[0], rtol=0, atol=1e-15)
    for r in range(3):
        np.testing.assert_allclose(one[r], lb.prox(V[r], many[0], 0.3), rtol=0, atol=1e-15)
        np.testing.assert_allclose(each[r], lb.prox(V[r], many[r], 0.3), rtol=0, atol=1e-15)


@pytest.mark.parametrize("strength", [1e3, 1e12])
def test_a_strong_prox_is_isotonic_regression(strength):
    # all scores are in the required order: only the pooled means remain, to the last digits
    v, s = random_scores(1, n=30)[0], np.random.default_rng(1).permutation(30)
    expected = np.empty(30)
    expected[s] = isotonic_regression(v[s], increasing=False)
    np.testing.assert_allclose(LovaszBregman("sqrt").prox(v, s, strength), expected, rtol=0, atol=1e-13)


def test_a_strong_prox_keeps_small_differences_of_scores():
    v = np.array([0.3, 0.3 + 1e-6, 0.1, 0.1 + 1e-6])
    x = LovaszBregman("top", m=2).prox(
        v, [0, 1, 2, 3], 1e12
    )  # which does not constrain the first two relative to each other
    np.testing.assert_allclose(x, v, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_prox_keeps_its_digits_far_from_zero(name):
    v = np.array([0, 82, 41, 20, 61]) / 2**12  # exact even beside 2^40, where numbers are 2^-12 apart
    lb = LovaszBregman(FUNCTIONS[name][0])
    near, far = lb.prox(v, [0, 1, 2, 3, 4], 1e-3), lb.prox(v + 2.0**40, [0, 1, 2, 3, 4], 1e-3)
    np.testing.assert_allclose(far - 2.0**40, near, rtol=0, atol=2.0**-12)
    assert np.abs(near - v).max() > 2.0**-12  # it does move them


def test_prox_of_long_vectors():
    n = 200_000
    rng = np.random.default_rng(2)
    v, s = rng.normal(size=n), rng.permutation(n)
    for f in ("log", "chain"):
        lb = LovaszBregman(f)
        x = lb.prox(v, s, 0.5)
        cost = [
            0.5 * np.sum((z - v) ** 2) + 0.5 * lb.divergence(z, s)
            for z in (x, v, x + 1e-4 * rng.normal(size=n))
        ]
        assert cost[0] < min(cost[1:])
