"""Kemeny orders and their proofs of optimality, checked against all orders."""

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

from apexrank.aggregation.fusion import Rule
from apexrank.aggregation.kemeny import kemeny, search, tied_places
from apexrank.aggregation.rank_aggregation import aggregate
from apexrank.cli.aggregate import _what_proves
from apexrank.metrics import kendall_distance


def cost(order, counts):
    return sum(counts[order[j], order[i]] for i in range(len(order)) for j in range(i + 1, len(order)))


def least(counts):
    return min(cost(order, counts) for order in permutations(range(len(counts))))


def election(seed, voters, items, missing=0.0):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, items, (voters, items)).astype(float)
    rows[rng.random(rows.shape) < missing] = np.nan
    rows[np.isnan(rows).all(axis=1), 0] = 1.0
    return rows, rng.integers(1, 4, voters)


def tournament(n, seed):
    """Random winner for each pair, which gives many cycles."""
    upper = np.triu(np.random.default_rng(seed).integers(0, 2, (n, n)), 1)
    return (upper + np.triu(1 - upper, 1).T).astype(float)


@pytest.mark.parametrize("seed", range(8))
def test_circles_are_solved_exactly(seed):
    counts = tournament(6, seed) * np.random.default_rng(seed).integers(1, 9, (6, 6))
    found = kemeny(counts)
    assert found.optimal
    assert found.cost == cost(found.order, counts) == least(counts)


def least_by_subsets(counts):
    """Least cost over all orders, by dynamic programming over sets:

    The last item of a set follows the best order of the rest.
    """
    n = len(counts)
    best = np.zeros(2**n)
    members = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    above = members @ counts.T  # cost of an item below a set: those who prefer it to the set
    for subset in range(1, 2**n):
        items = np.flatnonzero(members[subset])
        rest = subset - (1 << items)
        best[subset] = (best[rest] + above[rest, items]).min()
    return best[-1]


@pytest.mark.parametrize("seed", range(4))
def test_larger_circles_against_all_subsets(seed):
    counts = tournament(13, seed)
    assert least_by_subsets(counts[:6, :6]) == least(counts[:6, :6])
    found = kemeny(counts)
    assert found.optimal
    assert found.cost == cost(found.order, counts) == least_by_subsets(counts)


@pytest.mark.parametrize("seed", range(4))
def test_fractional_weights(seed):
    rows, _ = election(seed, 5, 5)
    weights = np.random.default_rng(seed).random(5) * 1e-6
    result = aggregate(rows, weights, method="kemeny")
    assert result.optimal
    assert result.cost == pytest.approx(least(result.pairwise), rel=1e-12)


def circle_of_two_sizes(seed, large):
    """Cycle of three items with large margins, and three more items placed among them by small margins."""
    rng, counts = np.random.default_rng(seed), np.zeros((6, 6))
    counts[[0, 1, 2], [1, 2, 0]] = large
    for i in range(6):
        for j in range(max(i + 1, 3), 6):
            counts[(i, j) if rng.random() < 0.5 else (j, i)] = rng.integers(1, 9)
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("large", [1e3, 1e7, 1e10, 1e11])
@pytest.mark.parametrize("by_subsets", [6, 0], ids=["subsets", "programme"])
def test_small_margins_beside_large_ones(large, by_subsets, monkeypatch):
    monkeypatch.setattr("apexrank.aggregation.kemeny._MOST_SUBSETS", by_subsets)
    for seed in (*range(6), 36, 37, 40, 60, 78, 93, 113):  # the later ones once ended in false proofs
        counts = circle_of_two_sizes(seed, large)
        found, best = kemeny(counts), least(counts)
        assert found.cost >= best >= found.bound
        assert found.optimal == (found.bound == found.cost)
        if by_subsets or large < 1e7:
            assert found.optimal
            assert found.cost == best


@pytest.mark.parametrize("by_subsets", [9, 0], ids=["subsets", "programme"])
@pytest.mark.parametrize("unit", [1.0, 2.0, 0.1, 1e-7, 3e12])
def test_multiples_of_any_unit_are_proven(unit, by_subsets, monkeypatch):
    monkeypatch.setattr("apexrank.aggregation.kemeny._MOST_SUBSETS", by_subsets)
    for seed in range(3):
        counts = tournament(9, seed) * np.random.default_rng(seed).integers(1, 9, (9, 9))
        found = kemeny(counts * unit)
        assert found.optimal
        assert found.cost == pytest.approx(unit * least_by_subsets(counts), rel=1e-12)


def test_what_has_no_unit_has_a_bound_just_below(monkeypatch):
    monkeypatch.setattr("apexrank.aggregation.kemeny._MOST_SUBSETS", 0)
    for seed in range(3):
        counts = tournament(9, seed) * np.random.default_rng(seed).random((9, 9))
        found, best = kemeny(counts), least_by_subsets(counts)
        assert found.bound <= best * (1 + 1e-15) <= found.cost * (1 + 1e-14)
        assert found.bound == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_cost_is_the_sum_of_kendalls_distances(seed):
    rows, weights = election(seed, 7, 6)
    result = aggregate(rows, weights, method="kemeny")
    places = np.empty(6)
    places[result.order] = np.arange(6)
    assert result.cost == weights @ kendall_distance(scores=(-places, rows))


@pytest.mark.parametrize("seed", range(6))
def test_local_search_is_between_bound_and_proof(seed):
    counts = tournament(12, seed)
    exact, near = kemeny(counts), kemeny(counts, max_exact=0)
    assert near.bound <= exact.cost <= near.cost == cost(near.order, counts)
    assert near.bound > np.minimum(counts, counts.T).sum() / 2
    assert near.optimal == (near.bound == near.cost)


def test_search_finds_less_than_the_best_somewhere():
    pairs = [
        (kemeny(tournament(12, seed)).cost, kemeny(tournament(12, seed), max_exact=0)) for seed in range(6)
    ]
    assert any(near.cost > exact for exact, near in pairs)
    assert not any(near.optimal for exact, near in pairs if near.cost > exact)


@pytest.mark.parametrize("seed", range(3))
def test_no_single_move_improves_the_search(seed):
    counts = tournament(15, seed)
    order = search(counts - counts.T).tolist()
    own = cost(order, counts)
    for item in order:
        rest = [other for other in order if other != item]
        assert all(cost([*rest[:p], item, *rest[p:]], counts) >= own for p in range(15))


def test_out_of_time_is_told():
    counts = tournament(25, 0)
    found = kemeny(counts, time_limit=0.0)
    assert not found.optimal
    assert 0 <= found.bound < found.cost == cost(found.order, counts)


def test_more_time_is_advised_only_where_time_was_short():
    counts = tournament(18, 0) * np.random.default_rng(0).random((18, 18))  # without a common unit
    gap, late = kemeny(counts), kemeny(counts, time_limit=0.0)
    assert (gap.optimal, gap.circle, gap.late, late.optimal, late.late) == (False, 18, False, False, True)
    told = [_what_proves(SimpleNamespace(proof=proof, rule=Rule("kemeny"))) for proof in (gap, late)]
    assert told == ["weights too far apart for a proof", "a proof takes more than --time-limit 60"]


def test_many_items_in_small_groups_are_proven():
    """Cycles of three, each of which beats all cycles below it."""
    n = 60
    block = np.arange(n) // 3
    counts = 9.0 * (block[:, None] < block) + 3.0 * (block[:, None] == block) * (
        (np.arange(n)[:, None] + 1) % 3 == np.arange(n) % 3
    )
    shuffled = np.random.default_rng(0).permutation(n)
    found = kemeny(counts[np.ix_(shuffled, shuffled)], max_exact=3)
    assert found.optimal
    assert found.cost == 3 * n / 3
    assert (np.diff(block[shuffled[found.order]]) >= 0).all()


def test_ties_can_be_turned_at_no_cost():
    result = aggregate([[3, 2, 1, 0], [2, 3, 0, 1]], method="kemeny", items="abcd")
    assert result.ranks.tolist() == [1, 1, 3, 3]
    assert result.ties == [("a", "b"), ("c", "d")]
    assert result.scores.tolist() == [2.5, 2.5, 0.5, 0.5]
    margin = np.array([[0, 0, 2], [0, 0, 0], [-2, 0, 0]])
    assert tied_places(np.array([0, 1, 2]), margin).tolist() == [1.5, 1.5, 3]
    assert aggregate([[1, 1, 1]], method="kemeny").ranks.tolist() == [1, 1, 1]


def test_beyond_the_limit_the_result_says_so():
    counts = tournament(10, 0)
    rows = []  # ballots of two voters for each pair: one puts it on top, the other at the bottom
    for i in range(10):
        for j in range(10):
            if counts[i, j]:
                rest = [k for k in range(10) if k not in (i, j)]
                rows += [[i, j, *rest], [*rest[::-1], i, j]]
    exact = aggregate(rows, kind="orders", method="kemeny")
    near = aggregate(rows, kind="orders", method="kemeny", max_exact=9)
    assert exact.optimal
    assert exact.bound == exact.cost <= near.cost
    assert near.bound <= exact.cost
    assert near.optimal == (near.bound == near.cost)
