"""Distances between rankings against scipy, loops over all pairs, and the papers' formulas as printed."""

from functools import partial
from itertools import combinations, permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from apexrank import InputError
from apexrank.metrics.permutation import (
    KendallCounts,
    kendall_counts,
    kendall_distance,
    kendall_tau,
    spearman_distance,
    spearman_footrule,
    weighted_kendall_distance,
)

DISTANCES = {
    "kendall": kendall_distance,
    "kendall ties": partial(kendall_distance, tie_penalty=0.5),
    "weighted": partial(weighted_kendall_distance, weights=lambda rank: 1 / rank),
    "weighted sum": partial(weighted_kendall_distance, weights=lambda rank: 1 / rank, combine="sum"),
    "footrule": spearman_footrule,
    "spearman": spearman_distance,
}
MEASURES = DISTANCES | {"tau a": partial(kendall_tau, variant="a"), "tau b": kendall_tau}
every_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
every_distance = pytest.mark.parametrize("distance", DISTANCES.values(), ids=DISTANCES.keys())


def brute_counts(a, b):
    kinds = dict.fromkeys(KendallCounts._fields, 0) | {"n_items": len(a)}
    for i, j in combinations(range(len(a)), 2):
        x, y = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
        if x and y:
            kinds["concordant" if x == y else "discordant"] += 1
        else:
            kinds["tied_both" if x == y else "tied_second" if x else "tied_first"] += 1
    return KendallCounts(**kinds)


def brute_weighted(a, b, w, combine):
    """Sum over the discordant pairs, and over all pairs."""
    sums = [0.0, 0.0]
    for i, j in combinations(range(len(a)), 2):
        pair = w[i] * w[j] if combine == "product" else w[i] + w[j]
        sums[0] += pair * ((a[i] - a[j]) * (b[i] - b[j]) < 0)
        sums[1] += pair
    return sums


def random_orders(seed, m=None, n=9):
    rng = np.random.default_rng(seed)
    return rng.permutation(n) if m is None else np.stack([rng.permutation(n) for _ in range(m)])


@st.composite
def scored(draw, fewest=0):
    n = draw(st.integers(fewest, 30))
    levels = st.integers(0, draw(st.sampled_from([0, 2, 10, 10**6])))
    return tuple(draw(arrays(np.int64, n, elements=levels)) for _ in range(2))


# ---------------------------------------------------------------------------------------------- Kendall


@given(scored())
def test_counts_are_those_of_all_pairs(pair):
    counts = kendall_counts(scores=pair)
    assert counts == brute_counts(*(values.tolist() for values in pair))
    assert sum(counts[:5]) == counts.n_pairs


@given(scored(fewest=2))
def test_tau_b_is_scipys(pair):
    expected = stats.kendalltau(*pair).statistic
    np.testing.assert_allclose(kendall_tau(scores=pair), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(kendall_counts(rankings=pair).tau_b, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("levels", [3, 500, None])
def test_tau_b_is_scipys_on_long_lists(levels):
    rng = np.random.default_rng(2)
    a = rng.normal(size=20_000)
    b = a + rng.normal(size=20_000)
    if levels:
        a, b = (np.floor(levels * stats.norm.cdf(x)) for x in (a, b))
    assert kendall_tau(scores=(a, b)) == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-12, rel=0)


@given(scored(fewest=2))
def test_tau_a_is_one_minus_twice_the_distance_that_splits_ties(pair):
    """A tie in one list or in both counts half: neither agreement nor disagreement."""
    counts = kendall_counts(scores=pair)
    half = kendall_distance(scores=pair, tie_penalty=0.5) + counts.tied_both / 2
    assert kendall_tau(scores=pair, variant="a") == pytest.approx(1 - 2 * half / counts.n_pairs, abs=1e-15)


def test_tau_of_equal_and_opposite_lists_is_exact():
    tied = [1, 1, 2, 2, 2, 7, 8, 8, 9, 10, 11]
    assert kendall_tau(scores=(tied, tied)) == 1.0
    assert kendall_tau(scores=(tied, [-x for x in tied])) == -1.0
    assert kendall_tau(orders=("abcdefg", "gfedcba")) == -1.0


def test_tau_b_of_many_items_does_not_overflow():
    n = 100_000  # the two numbers of pairs multiply to 2.5e19, beyond int64
    assert kendall_tau(scores=(np.arange(n), np.arange(n))) == 1.0
    assert kendall_counts(scores=(np.arange(n), -np.arange(n))).discordant == n * (n - 1) // 2


def test_a_list_without_any_order():
    assert np.isnan(kendall_tau(scores=([1, 1, 1], [1, 2, 3])))
    assert np.isnan(stats.kendalltau([1, 1, 1], [1, 2, 3]).statistic)
    assert kendall_tau(scores=([1, 1, 1], [1, 2, 3]), variant="a") == 0.0
    taus = kendall_tau(scores=([1, 2, 3], [[5, 5, 5], [1, 2, 3]]))
    np.testing.assert_array_equal(taus, [np.nan, 1.0])


@given(scored(), st.sampled_from([0, 0.25, 0.5, 1.0]))
def test_kendall_distance_counts_ties_in_one_list_by_the_penalty(pair, penalty):
    counts = brute_counts(*(values.tolist() for values in pair))
    expected = counts.discordant + penalty * (counts.tied_first + counts.tied_second)
    assert kendall_distance(scores=pair, tie_penalty=penalty) == expected
    if counts.n_pairs:
        normalised = kendall_distance(scores=pair, tie_penalty=penalty, normalize=True)
        assert normalised == pytest.approx(expected / counts.n_pairs, rel=1e-15)


# ------------------------------------------------------------------------------------- weighted Kendall


@pytest.mark.parametrize("combine", ["product", "sum"])
@given(pair=scored(), data=st.data())
def test_weighted_distance_is_the_sum_over_all_pairs(combine, pair, data):
    w = data.draw(arrays(np.float64, len(pair[0]), elements=st.just(0.0) | st.floats(1e-6, 1e6)))
    discordant, every = brute_weighted(*(values.tolist() for values in pair), w, combine)
    distance = partial(weighted_kendall_distance, scores=pair, weights=w, combine=combine)
    assert distance() == pytest.approx(discordant, rel=1e-12, abs=0)
    assert distance(normalize=True) == pytest.approx(discordant / every if every else 0.0, rel=1e-11, abs=0)


@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_weighted_distance_gives_scipys_weighted_tau(additive, seed):
    rng = np.random.default_rng(seed)
    a, b, w = rng.normal(size=200), rng.normal(size=200), rng.random(200)
    distance = partial(weighted_kendall_distance, combine="sum" if additive else "product", normalize=True)
    by_item = stats.weightedtau(a, b, rank=False, weigher=w.__getitem__, additive=additive).statistic
    assert 1 - 2 * distance(scores=(a, b), weights=w) == pytest.approx(by_item, abs=1e-12)

    def by_rank(rank):
        return 1 / rank**1.5

    weighted = partial(
        stats.weightedtau, weigher=lambda zero_based: by_rank(1 + zero_based), additive=additive
    )
    tau = 1 - 2 * distance(scores=(a, b), weights=by_rank)
    assert tau == pytest.approx(weighted(a, b, rank=None).statistic, abs=1e-12)
    back = 1 - 2 * distance(scores=(b, a), weights=by_rank)
    assert (tau + back) / 2 == pytest.approx(weighted(a, b).statistic, abs=1e-12)


def test_unit_weights_give_the_plain_distance():
    pair = np.random.default_rng(3).integers(0, 9, (2, 40))
    plain = kendall_distance(scores=pair)
    assert weighted_kendall_distance(scores=pair, weights=np.ones(40)) == plain
    assert weighted_kendall_distance(scores=pair, weights=np.ones(40), combine="sum") == 2 * plain


def test_weights_belong_to_their_items():
    weights = {"a": 5.0, "b": 7.0, "c": 11.0}
    assert weighted_kendall_distance(orders=("cab", "cba"), weights=weights) == 35.0
    assert weighted_kendall_distance(rankings=([2, 3, 1], [3, 2, 1]), weights=[5, 7, 11]) == 35.0
    table = weighted_kendall_distance(
        rankings=([2, 3, 1], [[3, 2, 1], [1, 3, 2]]), weights=[[5, 7, 11], [1, 2, 3]]
    )
    assert table.tolist() == [35.0, 3.0]
    both = weighted_kendall_distance(orders=(["a", "b"], [["b", "a"], ["a", "b"]]), weights=weights)
    assert both.tolist() == [35.0, 0.0]


def test_a_weight_function_gets_mean_ranks_of_the_first_list():
    seen = []

    def remember(rank):
        seen.append(rank)
        return rank

    weighted_kendall_distance(scores=([9, 5, 5, 1], [1, 2, 3, 4]), weights=remember)
    weighted_kendall_distance(orders=("abc", "cab"), weights=remember)
    assert [np.ravel(rank).tolist() for rank in seen] == [[1, 2.5, 2.5, 4], [1, 2, 3]]


def test_normalised_weights_of_any_spread():
    weights = [1e150, 1e-150, 1e-155]
    flipped = weighted_kendall_distance(rankings=([1, 2, 3], [3, 2, 1]), weights=weights, normalize=True)
    assert flipped == 1.0
    nothing = weighted_kendall_distance(rankings=([1, 2], [2, 1]), weights=[0, 0], normalize=True)
    assert nothing == 0.0


# --------------------------------------------------------------------------------------------- Spearman


@given(scored(fewest=2))
def test_spearman_sums_are_those_of_scipys_ranks(pair):
    difference = stats.rankdata(-pair[0]) - stats.rankdata(-pair[1])
    n = len(pair[0])
    assert spearman_footrule(scores=pair) == np.abs(difference).sum()
    assert spearman_distance(scores=pair) == (difference**2).sum()
    assert spearman_footrule(scores=pair, normalize=True) == np.abs(difference).sum() / (n * n // 2)
    assert spearman_distance(scores=pair, normalize=True) == (difference**2).sum() / (n * (n**2 - 1) / 3)


# ------------------------------------------------------------------------------- the papers, and metrics


def test_the_papers_formulas():
    """Iyer and Bilmes 2013, eq. 1 to 3: σ(i) is the item at rank i, σ⁻¹(j) the rank of item j."""
    n = 4
    for sigma, pi in combinations(permutations(range(1, n + 1)), 2):
        sigma_inverse = {item: rank for rank, item in enumerate(sigma, start=1)}
        pi_inverse = {item: rank for rank, item in enumerate(pi, start=1)}
        pairs = combinations(range(n), 2)
        kendall = sum(sigma_inverse[pi[i]] > sigma_inverse[pi[j]] for i, j in pairs)
        moves = [sigma_inverse[item] - pi_inverse[item] for item in range(1, n + 1)]
        assert kendall_distance(orders=(sigma, pi)) == kendall
        assert spearman_footrule(orders=(sigma, pi)) == sum(map(abs, moves))
        assert spearman_distance(orders=(sigma, pi)) == sum(move**2 for move in moves)


# ---------------------------------------------------------------------------------- contents of the lists


@every_measure
def test_scores_rankings_and_orders_say_the_same(measure):
    a, b = random_orders(6), random_orders(7)
    ranks = [np.argsort(order) + 1 for order in (a, b)]
    expected = measure(orders=(a, b))
    assert expected == pytest.approx(measure(rankings=ranks))
    assert expected == pytest.approx(measure(scores=[-rank for rank in ranks]))
    assert expected == pytest.approx(measure(scores=[np.exp(-rank / 3) for rank in ranks]))
    # an order is not a ranking: interpreted as one, these lists have another distance
    assert measure(rankings=(a, b)) != pytest.approx(expected)


@every_measure
def test_many_lists_at_once(measure):
    rng = np.random.default_rng(8)
    a, b = rng.integers(0, 6, (2, 7, 12))
    singles = [measure(scores=pair) for pair in zip(a, b, strict=True)]
    assert all(type(value) is float for value in singles)
    together = measure(scores=(a, b))
    assert together.shape == (7,)
    np.testing.assert_array_equal(together, singles)
    np.testing.assert_array_equal(measure(scores=(a[0], b)), [measure(scores=(a[0], row)) for row in b])
    np.testing.assert_array_equal(measure(scores=(a, b[0])), [measure(scores=(row, b[0])) for row in a])
    np.testing.assert_array_equal(measure(scores=(a[:1], b[0])), [measure(scores=(a[0], b[0]))])


@every_measure
def test_many_orders_at_once(measure):
    a, b = random_orders(9, m=5), random_orders(10, m=5)
    expected = [measure(orders=pair) for pair in zip(a, b, strict=True)]
    np.testing.assert_array_equal(measure(orders=(a, b)), expected)
    np.testing.assert_array_equal(measure(orders=(a.tolist(), b.tolist())), expected)
    letters = [np.array(list("abcdefghi"))[order] for order in (a, b)]
    np.testing.assert_array_equal(measure(orders=letters), expected)
    np.testing.assert_array_equal(measure(orders=(a[0], b)), [measure(orders=(a[0], row)) for row in b])
    np.testing.assert_array_equal(measure(orders=(a, b[0])), [measure(orders=(row, b[0])) for row in a])


def test_counts_of_many_lists():
    a, b = np.random.default_rng(11).integers(0, 4, (2, 5, 9))
    together = kendall_counts(scores=(a, b))
    for r in range(5):
        single = kendall_counts(scores=(a[r], b[r]))
        assert [int(counts[r]) for counts in together[:5]] == list(single[:5])
        assert together.tau_a[r] == single.tau_a
        assert together.tau_b[r] == single.tau_b
    assert all(type(count) is int for count in single)


def test_items_are_any_labels():
    items = [("a", 1), "a", 1, "1", frozenset({2}), 2.5]
    assert kendall_distance(orders=(items, items[::-1])) == 15.0
    tuples = [("a", 1), ("b", 2), ("c", 3)]
    assert kendall_distance(orders=(tuples, [tuples[1], tuples[0], tuples[2]])) == 1.0
    assert kendall_distance(orders=(np.array([1, 2, 3]), [3, 2, 1])) == 3.0
    assert kendall_distance(orders=(pl.Series(["x", "y"]), pl.Series(["y", "x"]))) == 1.0


def test_each_pair_of_orders_may_hold_its_own_items():
    assert kendall_distance(orders=([["a", "b"], ["x", "y"]], [["b", "a"], ["x", "y"]])).tolist() == [
        1.0,
        0.0,
    ]


def test_large_integers_do_not_become_ties():
    big = 2**60
    counts = kendall_counts(scores=([big, big + 1, big + 2], [3, 2, 1]))
    assert counts.discordant == 3
    unsigned = np.array([2**64 - 1, 2**64 - 2, 0], dtype=np.uint64)
    assert kendall_distance(scores=(unsigned, [2, 1, 0])) == 0.0


def test_infinite_scores_have_their_place():
    assert kendall_distance(scores=([np.inf, 0, -np.inf], [3, 2, 1])) == 0.0
    assert kendall_counts(scores=([np.inf, np.inf, 0], [3, 2, 1])).tied_first == 1


def test_the_lists_are_left_as_they_are():
    a, w = np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    for array in (a, w):
        array.flags.writeable = False
    assert weighted_kendall_distance(scores=(a, a[::-1]), weights=w) == 3.0
    assert (a.tolist(), w.tolist()) == ([3, 1, 2], [1, 2, 3])


@every_distance
@pytest.mark.parametrize("n", [0, 1])
def test_lists_without_pairs(distance, n):
    lists = list(range(n))
    for keyword in ("scores", "rankings", "orders"):
        for normalize in (False, True):
            assert distance(**{keyword: (lists, lists)}, normalize=normalize) == 0.0
    table = np.zeros((3, n))
    assert distance(scores=(table, table), normalize=True).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [0, 1])
def test_tau_without_pairs_is_nan(n):
    assert np.isnan(kendall_tau(scores=([5] * n, [7] * n)))
    assert np.isnan(kendall_tau(scores=([5] * n, [7] * n), variant="a"))
    assert kendall_counts(scores=([5] * n, [7] * n)) == (0, 0, 0, 0, 0, n)


@every_measure
def test_a_table_without_rows(measure):
    assert measure(scores=(np.empty((0, 3)), [1, 2, 3])).shape == (0,)
    assert measure(orders=([1, 2, 3], np.empty((0, 3), dtype=int))).shape == (0,)


# ------------------------------------------------------------------------------------------------ faults

NAN = float("nan")
FAULTS = [
    ({}, "pass exactly one of .* got none"),
    ({"scores": ([1], [1]), "orders": ([1], [1])}, "pass exactly one of .* got scores and orders"),
    ({"scores": [1, 2, 3]}, r"scores must be a pair of lists, scores=\(first, second\)"),
    ({"rankings": {"a": 1, "b": 2}}, "rankings must be a pair of lists"),
    ({"scores": ([1, 2], [1, 2, 3])}, "got lists of 2 and 3"),
    ({"scores": (np.ones((2, 3)), np.ones((4, 3)))}, "as many rows in both tables, got 2 and 4"),
    ({"scores": (np.ones((1, 3)), np.ones((4, 3)))}, "pass it one-dimensional"),
    ({"scores": (5, [1])}, r"the first list must have one or two dimensions, got shape \(\)"),
    ({"scores": ([1, 2, NAN], [1, 2, 3])}, "scores: the first list is NaN in row 2"),
    ({"rankings": ([1, 2], [[1, 2], [NAN, 1]])}, "rankings: the second list is NaN in row 1, item 0"),
    ({"scores": ([1, 2, None], [1, 2, 3])}, "scores: the first list is NaN in row 2"),
    ({"scores": (["b", "a"], [1, 2])}, "scores: the first list must be numbers; pass labels"),
    ({"scores": ([[1, 2], [3]], [1, 2])}, "scores: the first list must be numbers, as many in each row"),
    ({"scores": ([1 + 2j, 1], [1, 2])}, "scores: the first list must be numbers"),
    ({"orders": ("abc", "abd")}, "the item 'c' is in the first list but not in the second"),
    ({"orders": ("abc", "ab")}, "the item 'c' is in the first list but not in the second"),
    ({"orders": ("ab", "abc")}, "the item 'c' is in the second list but not in the first"),
    (
        {"orders": ([1, 2, 3], [[1, 2], [2, 1]])},
        "the item 3 is in the first list of row 0 but not in the second",
    ),
    ({"orders": (np.empty((0, 2)), [1, 2, 3])}, "orders must be of the same items"),
    ({"orders": ("abb", "abc")}, "the first list holds the item 'b' twice"),
    (
        {"orders": (np.array([[1, 2]] * 3), np.array([[1, 2], [2, 1], [1, 1]]))},
        "of row 2 holds the item 1 twice",
    ),
    ({"orders": ([1.0, NAN], [NAN, 1.0])}, "the first list has a missing item at rank 2"),
    ({"orders": (np.array([1.0, NAN]), np.array([1.0, 2.0]))}, "the first list has a missing item at rank 2"),
    ({"orders": (["a", "b"], ["a", None])}, "the second list has a missing item at rank 2"),
    ({"orders": ([{}, "a"], ["a", "b"])}, "the item {} is not hashable"),
    ({"orders": ({"a", "b"}, ["a", "b"])}, "the first list is a set, which has no order"),
    ({"orders": (5, [1])}, "the first list must hold items"),
    ({"orders": ([[1, 2], [1]], [1, 2])}, r"rows of the first table must be of one length, got \[1, 2\]"),
    ({"orders": (np.zeros((1, 1, 1)), [1, 2])}, r"got shape \(1, 1, 1\)"),
]


@pytest.mark.parametrize(("lists", "message"), FAULTS, ids=[message[:40] for _, message in FAULTS])
def test_faults_are_named(lists, message):
    for measure in (kendall_counts, *MEASURES.values()):
        with pytest.raises(InputError, match=message) as caught:
            measure(**lists)
        assert "\n" not in str(caught.value)


SCORES, ORDERS = {"scores": ([1, 2, 3], [3, 2, 1])}, {"orders": ("abc", "cba")}
WEIGHT_FAULTS = [
    (SCORES, [1, 2], r"one number for each of the 3 items, got shape \(2,\)"),
    (SCORES, 1.0, r"one number for each of the 3 items, got shape \(\)"),
    (SCORES, lambda rank: 1.0, r"one number for each of the 3 items, got shape \(\)"),
    (SCORES, [1, -2, 3], "finite numbers of at least 0, got -2"),
    (SCORES, [1, NAN, 3], "finite numbers of at least 0, got nan"),
    (SCORES, lambda rank: rank * np.inf, "finite numbers of at least 0, got inf"),
    (SCORES, ["a", "b", "c"], "weights must be numbers"),
    (SCORES, {"a": 1}, "weights by label need `orders=`"),
    (ORDERS, [1, 2, 3], "with orders, weights must map items to weights"),
    (ORDERS, {"a": 1, "b": 2}, "weights has no weight for the item 'c'"),
]


@pytest.mark.parametrize(("lists", "weights", "message"), WEIGHT_FAULTS)
def test_faulty_weights_are_named(lists, weights, message):
    with pytest.raises(InputError, match=message):
        weighted_kendall_distance(**lists, weights=weights)


def test_unknown_options_are_refused():
    with pytest.raises(InputError, match="unknown `variant` 'c': use one of a, b"):
        kendall_tau(**SCORES, variant="c")
    with pytest.raises(InputError, match="unknown `combine` 'max': use one of product, sum"):
        weighted_kendall_distance(**SCORES, weights=[1, 1, 1], combine="max")
    with pytest.raises(InputError, match="`tie_penalty` must be between 0 and 1, got 2"):
        kendall_distance(**SCORES, tie_penalty=2)
    with pytest.raises(TypeError, match="positional"):
        kendall_distance([1, 2, 3], [3, 2, 1])
