"""Claims of Iyer and Bilmes 2013 in the notes on the papers that no other test covers.

Each is checked against the definition, over all orders of a few items or random scores.
"""

from itertools import chain, combinations, permutations, product

import numpy as np
import pytest

from apexrank import LovaszBregman
from apexrank.metrics import kendall_distance, spearman_distance, spearman_footrule
from apexrank.submodular import Cardinality, Sqrt, Top
from tests.lovasz_oracles import divergence_of, h_of

N = 4
ORDERS = [np.array(order) for order in permutations(range(N))]
SUBSETS = [set(items) for items in chain.from_iterable(combinations(range(N), k) for k in range(N + 1))]


def root(items):
    return len(items) ** 0.5


def neighbours(order):
    """Orders with two neighbouring items swapped."""
    for k in range(len(order) - 1):
        other = list(order)
        other[k], other[k + 1] = other[k + 1], other[k]
        yield tuple(other)


@pytest.mark.parametrize(
    ("distance", "is_metric"),
    [(kendall_distance, True), (spearman_footrule, True), (spearman_distance, False)],
    ids=["eq. 1", "eq. 2", "eq. 3"],
)
def test_which_distances_are_metrics(distance, is_metric):
    table = np.array([distance(orders=(one, ORDERS)) for one in ORDERS])
    np.testing.assert_array_equal(table, table.T)
    assert ((table == 0) == np.eye(len(ORDERS), dtype=bool)).all()
    by_way = (table[:, :, None] + table[None, :, :]).min(axis=1)
    assert (table <= by_way).all() == is_metric
    root_by_way = (np.sqrt(table)[:, :, None] + np.sqrt(table)[None, :, :]).min(axis=1)
    assert (np.sqrt(table) <= root_by_way + 1e-12).all()
    for relabel in ORDERS:
        moved = np.array([distance(orders=(relabel[ORDERS[5]], [relabel[order] for order in ORDERS]))])
        np.testing.assert_array_equal(moved[0], table[5])


def test_kendalls_distance_counts_swaps_of_neighbours():
    start = tuple(range(N))
    steps, frontier = {start: 0}, [start]
    while frontier:
        following = {other for order in frontier for other in neighbours(order)} - set(steps)
        steps |= dict.fromkeys(following, 1 + max(steps.values()))
        frontier = list(following)
    for order, number in steps.items():
        assert kendall_distance(orders=(start, order)) == number


def test_no_subgradient_map_gives_twice_the_l1_norm():
    """Example 2.1: d(x, 0) + d(−x, 0) = 2·|x|₁ for every subgradient g at 0, not 4·|x|₁."""
    rng = np.random.default_rng(0)
    for x, g in zip(rng.normal(size=(50, 3)), rng.uniform(-1, 1, size=(50, 3)), strict=True):
        both = [np.abs(z).sum() - g @ z for z in (x, -x)]
        assert sum(both) == pytest.approx(2 * np.abs(x).sum())
    # by directional derivatives, φ(x) − φ(0) + φ'(0; −x), it is twice the norm
    x = rng.normal(size=3)
    slope = (np.abs(0 - 1e-6 * x).sum() - 0) / 1e-6
    assert np.abs(x).sum() + slope == pytest.approx(2 * np.abs(x).sum())


def test_the_extension_is_tight_on_the_cube_and_convex_for_submodular_functions_alone():
    rng = np.random.default_rng(0)
    for value, convex in ((root, True), (lambda items: len(items) ** 2, False)):

        def extension(x, value=value):
            return float(x @ h_of(value, np.argsort(-x)))

        for items in SUBSETS:
            assert extension(np.isin(np.arange(N), list(items)).astype(float)) == pytest.approx(value(items))
        pairs = rng.random((200, 2, N))
        gaps = [extension(x) / 2 + extension(y) / 2 - extension((x + y) / 2) for x, y in pairs]
        assert (min(gaps) > -1e-12) == convex
        for x, _ in pairs[:20]:  # Σ λ_j f(Y_j) along the chain of level sets
            levels = np.sort(np.append(x, 0.0))
            sets = [set(np.flatnonzero(x > level)) for level in levels[:-1]]
            assert extension(x) == pytest.approx(np.diff(levels) @ [value(items) for items in sets])


def is_subgradient(h, y, value):
    """Whether h is a subgradient of the extension: in the base polytope, and <h, y> = f̂(y)."""
    inside = all(sum(h[list(items)]) <= value(items) + 1e-9 for items in SUBSETS)
    tight = abs(h.sum() - value(set(range(N)))) < 1e-9
    return inside and tight and abs(h @ y - y @ h_of(value, np.argsort(-y))) < 1e-9


def test_subdifferentials_are_intersections_along_the_chain():
    """Lemmas 2.1 and 2.3:

    H is a subgradient at y if it is one at every level set of y; h_σ is one for y of that order.
    """
    rng = np.random.default_rng(1)
    extreme = [h_of(root, order) for order in ORDERS]
    mixed = [
        weight * one + (1 - weight) * other
        for weight, (one, other) in zip(rng.random(15), combinations(extreme[:6], 2), strict=True)
    ]
    seen = set()
    for y in [np.array(levels, dtype=float) for levels in product((1, 2, 3), repeat=N)]:
        chain_sets = [
            np.isin(np.arange(N), np.flatnonzero(y >= level)).astype(float) for level in np.unique(y)
        ]
        for h in (*extreme, *mixed):
            everywhere = all(is_subgradient(h, edge, root) for edge in chain_sets)
            assert is_subgradient(h, y, root) == everywhere
            seen.add(everywhere)
        for order in ORDERS:
            agrees = (np.diff(y[order]) <= 0).all()
            assert is_subgradient(h_of(root, order), y, root) == agrees
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("f", "distinct"), [(Sqrt(), 24), (Top(m=1), 4), (Top(m=2), 6), (Cardinality("linear"), 1)]
)
def test_extreme_points_are_fewer_than_orders_where_gains_are_equal(f, distinct):
    """Lemma 2.2 counts |Σ_y| extreme points at a constant y."""
    points = {tuple(LovaszBregman(f).gradients(order).round(12)) for order in ORDERS}
    assert len(points) == distinct


def test_parts_of_the_cube_share_a_facet_only_if_neighbours_changed_places_but_all_share_a_face():
    """Lemma 2.4: the parts have the corners 1_{S_0} = 0, …, 1_{S_n} = 1, of which the paper omits 0."""
    for one, other in combinations(ORDERS, 2):
        corners = [{frozenset(order[:k]) for k in range(N + 1)} for order in (one, other)]
        shared = len(corners[0] & corners[1])
        assert shared >= 2
        assert (shared == N) == (tuple(other) in set(neighbours(one)))
    # without 0 the corners of a part span no volume
    matrix = np.array([[i in ORDERS[0][:k] for i in range(N)] for k in range(1, N + 1)], dtype=float)
    assert np.linalg.matrix_rank(matrix - matrix[0]) == N - 1


def test_level_sets_in_y_are_unions_of_cones():
    """Section 3: {y: d(x, y) = c} contains the cone of σ_y, but also those of other orders at the same divergence."""
    found = LovaszBregman("product").divergence([3.0, 2.0, 1.0], [[0, 2, 1], [1, 0, 2]])
    assert found[0] == found[1] > 0


def test_zero_is_no_mean_of_subgradients_at_zero():
    """After eq. 16: H(0) = 0 is a subgradient at 0 only over x ≥ 0, and is not the mean of the h_σ."""
    assert Sqrt().subgradient(np.zeros(N)).tolist() == pytest.approx([root(range(N)) / N] * N)
    assert Sqrt().extension(-np.ones(N)) < 0  # so 0 is no subgradient on the whole space
    assert (Sqrt().extension(np.random.default_rng(0).random((50, N))) >= 0).all()


def test_theorem_3_2_holds_with_half_the_bound():
    """<r, v> ≤ ε·Σv₊ if 0 ≤ r ≤ ε and Σv = 0; at most ⌊n/2⌋ entries of v can be positive and as large as Δ."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(500):
        n = int(rng.integers(2, 7))
        gains = np.sort(rng.random(n))[::-1]
        x, order = np.round(rng.random(n), int(rng.integers(0, 3))), rng.permutation(n)
        found = LovaszBregman(Cardinality(gains)).divergence(x, order)
        bound = np.ptp(x) * (n // 2) * (gains[0] - gains[-1])
        assert found <= bound + 1e-12
        largest = max(largest, found / bound if bound else 0.0)
    assert largest > 0.9


def test_the_cut_is_bounded_by_twice_the_quarter_of_n_squared():
    """Section 3 prints ε·n(n − 1)/2, which is too small for every n."""
    for n in range(2, 7):
        order = np.arange(n)
        worst = max(
            divergence_of(lambda items, n=n: len(items) * (n - len(items)), np.array(x), order)
            for x in product((0.0, 1.0), repeat=n)
        )
        assert worst == 2 * (n * n // 4) > n * (n - 1) / 2


def test_the_top_comes_first_only_where_gains_fall_ever_more_slowly():
    """After Lemma 3.1:

    A swap at rank k costs (x_k − x_{k+1})·(δ_k − δ_{k+1}), which for concave g need not fall with k.
    """
    x = np.array([3.0, 2.0, 1.0])
    swaps = [[1, 0, 2], [0, 2, 1]]
    top, bottom = LovaszBregman(Cardinality([3.0, 2.9, 0.0])).divergence(x, swaps)
    assert top == pytest.approx(0.1)
    assert bottom == pytest.approx(2.9)
    for f in ("sqrt", "log"):
        top, bottom = LovaszBregman(f).divergence(x, swaps)
        assert top > bottom


def test_the_median_order_by_the_footrule_is_an_assignment():
    """Section 4 calls all permutation metrics NP-hard, but with the footrule the best order is a linear assignment."""
    from scipy.optimize import linear_sum_assignment

    votes = np.random.default_rng(0).permuted(np.tile(np.arange(N), (7, 1)), axis=1)
    places = np.argsort(votes, axis=1)
    cost = np.abs(places[:, :, None] - np.arange(N)).sum(axis=0)
    best = min(sum(spearman_footrule(orders=(order, vote)) for vote in votes) for order in ORDERS)
    assert cost[linear_sum_assignment(cost)].sum() == best


def test_the_best_order_for_weights_of_any_sign_is_that_of_the_weighted_sum():
    """Eq. 28 with Lemma 4.1: Σ_j w_j d(x^j‖σ) is a constant minus <Σ_j w_j x^j, h_σ>."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, w = rng.random((3, N)), rng.normal(size=3)
        costs = w @ LovaszBregman("sqrt").divergence(X, np.array(ORDERS))
        assert ORDERS[int(np.argmin(costs))].tolist() == np.argsort(-(w @ X)).tolist()


def test_the_regulariser_of_eq_26_multiplies_the_extension_as_well():
    rng = np.random.default_rng(0)
    x, order, strength = rng.random(N), ORDERS[7], 3.0
    lb = LovaszBregman("sqrt")
    left = strength * lb.divergence(x, order)
    slope = strength * (lb.gradients(order) @ x)
    assert left == pytest.approx(strength * lb.extension(x) - slope)
    assert abs(left - (lb.extension(x) - slope)) > 0.1
