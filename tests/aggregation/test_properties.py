"""Properties of every aggregation rule and every public name of `apexrank.aggregation`, on small elections.

A new rule needs a line in `CLAIMS`, a new set function one in `SET_FUNCTION_OPTIONS`, and any other public name one in
`PROPERTIES` at the end of this file.
"""

from __future__ import annotations

from itertools import combinations, permutations
from typing import NamedTuple, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apexrank import aggregation
from apexrank.aggregation import (
    Aggregation,
    Kemeny,
    KendallMallows,
    LovaszAggregator,
    LovaszBregman,
    LovaszBregmanKMeans,
    RankBootstrap,
    aggregate,
    elbow,
    silhouette,
)
from apexrank.aggregation.fusion import Method
from apexrank.submodular import SET_FUNCTIONS, set_function

NAN = float("nan")


class Claims(NamedTuple):
    """Properties of a voting rule.

    ``condorcet``: an item that beats all others is first, one that loses to all is last. ``turned``: reversing all
    ballots reverses the order. ``rises``: a voter who likes an item better never lowers its rank. ``joined``: what two
    halves of the voters agree on holds for all of them. ``by_order``: only the order of each ballot counts.
    ``unique``: there is one answer; for other rules several orders may be equally good.
    """

    condorcet: bool = False
    turned: bool = True
    rises: bool = True
    joined: bool = True
    by_order: bool = False
    unique: bool = True


CLAIMS = {
    "lovasz-bregman": Claims(),
    "borda": Claims(by_order=True),
    "copeland": Claims(condorcet=True, joined=False, by_order=True),
    "kemeny": Claims(condorcet=True, rises=False, joined=False, by_order=True, unique=False),
    "median": Claims(joined=False, by_order=True),
    "combsum": Claims(),
    "combmnz": Claims(),
    "rrf": Claims(turned=False, by_order=True),
}
every_rule = pytest.mark.parametrize("method", CLAIMS)


def rules_with(claim):
    return pytest.mark.parametrize(
        "method", [name for name, claims in CLAIMS.items() if getattr(claims, claim)]
    )


@st.composite
def tables(draw, gaps=False, voters=6, items=5):
    """Scores of voters for items, many of them tied; the first voter scores every item."""
    n = draw(st.integers(2, items))
    score = st.integers(0, 4).map(float)
    first = draw(st.lists(score, min_size=n, max_size=n))
    if gaps:
        score = score | st.just(NAN)
    others = st.lists(score, min_size=n, max_size=n).filter(lambda row: not np.isnan(row).all())
    return np.array([first, *draw(st.lists(others, max_size=voters - 1))])


@st.composite
def elections(draw, **options):
    """Table with counts of equal ballots."""
    table = draw(tables(**options))
    return table, np.array(draw(st.lists(st.integers(1, 3), min_size=len(table), max_size=len(table))))


missing_rules = st.sampled_from(["ignore", "last"])


def answer(result, items=None):
    """Rank of each item by name, or the cost of the order if several orders may be equally good."""
    if CLAIMS[result.method].unique:
        ranks = dict(zip(result.items, result.ranks.tolist(), strict=True))
        return [ranks[item] for item in items] if items is not None else result.ranks.tolist()
    assert result.optimal
    return pytest.approx(result.cost)


def preferences(table, weights, missing="ignore"):
    """Weight of the voters who prefer item i to item j."""
    filled = np.where(np.isnan(table), -1.0, table) if missing == "last" else table
    above = filled[:, :, None] > filled[:, None, :]
    return np.einsum("v,vij->ij", weights, above)


# Every rule


@every_rule
@settings(max_examples=10)
@given(election=elections(gaps=True), missing=missing_rules, data=st.data())
def test_all_voters_and_all_items_are_treated_alike(method, election, missing, data):
    table, weights = election
    voters, items = (np.array(data.draw(st.permutations(range(size)))) for size in table.shape)
    here = aggregate(table, weights, method=method, missing=missing)
    names = range(table.shape[1])
    other_voters = aggregate(table[voters], weights[voters], method=method, missing=missing)
    assert answer(other_voters, names) == answer(here, names)
    other_items = aggregate(table[:, items], weights, method=method, missing=missing, items=items)
    assert answer(other_items, names) == answer(here, names)


@every_rule
@settings(max_examples=10)
@given(election=elections(gaps=True), missing=missing_rules, unit=st.sampled_from([0.1, 1 / 3, 1e6]))
def test_weights_are_repetitions_and_have_no_unit(method, election, missing, unit):
    table, weights = election
    here = aggregate(table, weights, method=method, missing=missing)
    repeated = aggregate(np.repeat(table, weights, axis=0), method=method, missing=missing)
    assert repeated.ranks.tolist() == here.ranks.tolist()
    assert repeated.scores == pytest.approx(here.scores)
    assert (
        aggregate(table, unit * weights, method=method, missing=missing).ranks.tolist() == here.ranks.tolist()
    )


@every_rule
@settings(max_examples=10)
@given(election=elections(), data=st.data())
def test_what_all_voters_prefer_is_preferred(method, election, data):
    table, weights = election
    winner, loser = data.draw(st.permutations(range(table.shape[1])))[:2]
    table[:, winner] = table[:, loser] + data.draw(st.sampled_from([0.5, 1.0, 7.0]))
    ranks = aggregate(table, weights, method=method).ranks
    assert ranks[winner] < ranks[loser]


@every_rule
@settings(max_examples=10)
@given(election=elections(items=4))
def test_one_voter_decides_alone(method, election):
    table, _ = election
    row = table[0]
    better = (row[:, None] > row).sum(axis=0)
    assert aggregate(row[None], method=method).ranks.tolist() == (better + 1).tolist()


@rules_with("turned")
@settings(max_examples=12)
@given(election=elections())
def test_the_opposite_of_all_ballots_gives_the_opposite_order(method, election):
    table, weights = election
    here, turned = (aggregate(sign * table, weights, method=method) for sign in (1, -1))
    if CLAIMS[method].unique:
        before = np.sign(np.subtract.outer(here.ranks, here.ranks))
        assert (np.sign(np.subtract.outer(turned.ranks, turned.ranks)) == -before).all()
    else:
        assert answer(turned) == answer(here)


@rules_with("rises")
@settings(max_examples=10)
@given(election=elections(), data=st.data())
def test_an_item_that_a_voter_likes_better_does_not_fall(method, election, data):
    table, weights = election
    voter, item = (data.draw(st.integers(0, size - 1)) for size in table.shape)
    liked = table.copy()
    liked[voter, item] += data.draw(st.sampled_from([0.5, 1.0, 9.0]))
    before, after = (aggregate(each, weights, method=method).ranks for each in (table, liked))
    assert after[item] <= before[item]


@rules_with("condorcet")
@settings(max_examples=20)
@given(election=elections(gaps=True), missing=missing_rules)
def test_who_beats_all_others_is_first_and_who_loses_to_all_is_last(method, election, missing):
    table, weights = election
    prefer = preferences(table, weights, missing)
    others = table.shape[1] - 1
    wins = (prefer > prefer.T).sum(axis=1)
    result = aggregate(table, weights, method=method, missing=missing)
    for item in np.flatnonzero(wins == others):
        assert (result.ranks == 1).nonzero()[0].tolist() == [item]
    for item in np.flatnonzero((prefer < prefer.T).sum(axis=1) == others):
        assert result.ranks[item] == others + 1


@settings(max_examples=20)
@given(elections())
def test_borda_never_elects_who_loses_to_all(election):
    table, weights = election
    prefer = preferences(table, weights)
    losers = (prefer < prefer.T).sum(axis=1) == table.shape[1] - 1
    assert (aggregate(table, weights, method="borda").ranks[losers] > 1).all()


@rules_with("joined")
@settings(max_examples=10)
@given(first=tables(items=3), data=st.data())
def test_what_two_halves_agree_on_holds_for_all(method, first, data):
    n = first.shape[1]
    row = st.lists(st.integers(0, 4).map(float), min_size=n, max_size=n)
    second = np.array(data.draw(st.lists(row, min_size=1, max_size=5)))
    one, other = (aggregate(each, method=method).ranks for each in (first, second))
    all_ = aggregate(np.vstack([first, second]), method=method).ranks
    for a, b in permutations(range(n), 2):
        if one[a] < one[b] and other[a] < other[b]:
            assert all_[a] < all_[b]


@rules_with("by_order")
@settings(max_examples=10)
@given(election=elections(gaps=True), missing=missing_rules)
def test_only_the_order_of_a_ballot_counts(method, election, missing):
    table, weights = election
    here = aggregate(table, weights, method=method, missing=missing)
    for moved in (1e6 * table - 7, np.exp(table), table.astype(np.float32) / 3):
        assert aggregate(moved, weights, method=method, missing=missing).ranks.tolist() == here.ranks.tolist()


NAMES = np.array(list("abcde"))


def as_orders(table):
    """Items of each ballot, best first, tied ones as a tuple."""
    return [
        [tuple(NAMES[: len(row)][row == x].tolist()) for x in np.unique(row[~np.isnan(row)])[::-1]]
        for row in table
    ]


def as_ranks(table):
    """Rank of each item on its ballot; tied items have the better rank."""
    above = (table[:, None, :] > table[:, :, None]).sum(axis=2)
    return np.where(np.isnan(table), NAN, above + 1.0)


@every_rule
@settings(max_examples=10)
@given(election=elections(gaps=True), missing=missing_rules)
def test_ranks_and_orders_are_ballots_too(method, election, missing):
    table, weights = election
    names = NAMES[: table.shape[1]].tolist()
    options = {"method": method, "missing": missing, "items": names}
    orders = aggregate(as_orders(table), weights, kind="orders", **options)
    scored = aggregate(table, weights, normalize="borda", **options)
    assert answer(orders, names) == answer(scored, names)
    ranks = aggregate(as_ranks(table), weights, kind="ranks", **options)
    if (
        method != "rrf"
    ):  # which uses given ranks as places in the voter's own list, where ties share no points
        assert answer(ranks, names) == answer(scored, names)


@every_rule
@settings(max_examples=6)
@given(election=elections(gaps=True), missing=missing_rules)
def test_what_a_result_says_of_itself(method, election, missing):
    table, weights = election
    result = aggregate(table, weights, method=method, missing=missing)
    n = table.shape[1]
    assert isinstance(result, Aggregation)
    assert sorted(result.order) == list(range(n))
    assert (np.diff(result.ranks[result.order]) >= 0).all()
    assert all(len({result.ranks[item] for item in group}) == 1 for group in result.ties)
    assert 0 <= result.confidence <= 1
    agreement = np.asarray(result.agreement)
    assert (np.isnan(agreement) | (np.abs(agreement) <= 1 + 1e-12)).all()
    assert result.support.tolist() == (weights @ ~np.isnan(table)).tolist()
    prefer = preferences(table, weights, missing)
    assert result.pairwise.tolist() == prefer.tolist()
    winners = np.flatnonzero((prefer > prefer.T).sum(axis=1) == n - 1)
    assert result.condorcet_winner == (winners[0] if len(winners) else None)


@every_rule
@settings(max_examples=4)
@given(election=elections(gaps=True), seed=st.integers(0, 100))
def test_draws_of_voters_give_ranks(method, election, seed):
    table, weights = election
    result, n = aggregate(table, weights, method=method), table.shape[1]
    drawn, again = (result.bootstrap(20, random_state=seed) for _ in range(2))
    assert isinstance(drawn, RankBootstrap)
    assert (drawn.ranks == again.ranks).all()
    assert ((drawn.ranks >= 1) & (drawn.ranks <= n)).all()
    assert (drawn.ranks.min(axis=1) == 1).all()
    assert (drawn.low <= drawn.high).all()
    assert drawn.first.sum() == pytest.approx(1)
    unanimous = aggregate(np.repeat(table[:1], 3, axis=0), method=method)
    assert (unanimous.bootstrap(5, random_state=seed).ranks == unanimous.ranks).all()


@settings(max_examples=25)
@given(elections(gaps=True), missing_rules)
def test_no_order_is_better_than_kemenys(election, missing):
    table, weights = election
    result = aggregate(table, weights, method="kemeny", missing=missing)
    prefer = preferences(table, weights, missing)
    costs = {
        order: sum(prefer[b, a] for a, b in combinations(order, 2))
        for order in permutations(range(table.shape[1]))
    }
    assert isinstance(result.proof, Kemeny)
    assert result.optimal
    assert result.cost == costs[tuple(result.order)] == min(costs.values())
    assert result.bound == result.cost


# Divergences, clusters and models


def size_to_the_third(x):
    return x ** (1 / 3)


SET_FUNCTION_OPTIONS = {
    "sqrt": {},
    "log": {},
    "top": {"m": 2},
    "cardinality": {"g": size_to_the_third},
    "product": {},
    "indicator": {},
    "chain": {},
    "cut": {"weights": np.array([[0, 1, 2, 0], [1, 0, 0, 3], [0, 1, 0, 1], [2, 2, 1, 0.0]])},
}
ATOMS = {name: set_function(name, **options) for name, options in SET_FUNCTION_OPTIONS.items()}
four_scores = st.lists(st.integers(0, 5).map(float), min_size=4, max_size=4).map(np.array)
four_orders = st.permutations(range(4)).map(np.array)


@pytest.mark.parametrize("name", SET_FUNCTION_OPTIONS)
@settings(max_examples=20)
@given(x=four_scores, order=four_orders, unit=st.sampled_from([1e-6, 3.0, 1e6]))
def test_every_divergence_has_the_unit_of_the_scores_and_no_origin(name, x, order, unit):
    lb = LovaszBregman(ATOMS[name])
    here = lb.divergence(x, order)
    assert here >= 0
    assert lb.divergence(unit * x, order) == pytest.approx(unit * here, rel=1e-9, abs=1e-12 * unit)
    assert lb.divergence(x + 100, order) == pytest.approx(here, abs=1e-11)
    own = np.argsort(-x, kind="stable")
    assert lb.divergence(x, own) == pytest.approx(0, abs=1e-12)
    # its own order has the least divergence of all orders, in one table
    assert lb.divergence(x, list(permutations(range(4)))).min() == pytest.approx(0, abs=1e-12)
    assert lb.divergence_to_scores(x, x) == pytest.approx(0, abs=1e-12)


rows = st.lists(st.lists(st.integers(0, 9).map(float), min_size=3, max_size=3), min_size=4, max_size=9).map(
    np.array
)


@pytest.mark.filterwarnings("ignore:only .* clusters have rows")
@settings(max_examples=12)
@given(rows, st.sampled_from([0.0, 0.5]), st.integers(1, 3), st.data())
def test_clusters_of_voters(X, euclidean, k, data):
    options = {"euclidean": euclidean, "random_state": 5, "n_init": 2}
    model, again = (LovaszBregmanKMeans(k, **options).fit(X) for _ in range(2))
    assert (model.labels_ == again.labels_).all()
    assert model.inertia_ == again.inertia_
    assert (np.diff(model.history_) <= 1e-9 * (1 + model.history_[0])).all()
    costs = model.transform(X)
    assert (costs >= -1e-9).all()
    assert model.inertia_ == pytest.approx(costs.min(axis=1).sum(), abs=1e-9)
    assert costs[np.arange(len(X)), model.predict(X)] == pytest.approx(costs.min(axis=1), abs=1e-9)
    assert elbow(X, [k], **options) == {k: model.inertia_}
    if k > 1:
        assert 0 <= silhouette(model, X) <= 1
    # from given centres the order of the rows does not matter, nor does generosity if only orders count
    order = np.array(data.draw(st.permutations(range(len(X)))))
    given_centres = X[:k] + np.arange(3) / 7
    one = LovaszBregmanKMeans(k, euclidean=euclidean, init=given_centres).fit(X)
    other = LovaszBregmanKMeans(k, euclidean=euclidean, init=given_centres).fit(X[order])
    assert other.history_[0] == pytest.approx(one.history_[0])
    if euclidean == 0:
        generous = LovaszBregmanKMeans(k, init=given_centres).fit(X + np.arange(len(X))[:, None])
        assert generous.history_[0] == pytest.approx(one.history_[0])


@settings(max_examples=5)
@given(st.integers(0, 1000), st.permutations(range(3)), st.sampled_from(["sqrt", "top"]))
def test_learnt_weights_belong_to_their_rankers(seed, place, f):
    rng = np.random.default_rng(seed)
    X, y, groups = rng.random((18, 3)), rng.integers(0, 3, 18), rng.integers(0, 3, 18)
    y[:6], groups[:6] = [0, 2] * 3, [0, 0, 1, 1, 2, 2]
    order, columns = rng.permutation(18), np.array(place)

    def weights(X, y, groups):
        # L-BFGS with bounds stops by the value, which hides gradients below about the square root of eps
        return LovaszAggregator(f, alpha=0.1, tol=1e-7).fit(X, y, groups=groups).weights_

    here = weights(X, y, groups)
    there = weights(np.exp(5 * X[order][:, columns]), y[order], np.array(["b", "a", "c"])[groups[order]])
    assert there == pytest.approx(here[columns], abs=1e-6)
    repeated = weights(np.tile(X, (2, 1)), np.tile(y, 2), np.concatenate([groups, groups + 3]))
    assert repeated == pytest.approx(here, abs=1e-6)


@settings(max_examples=20)
@given(st.permutations(range(4)), st.permutations(range(4)), st.floats(0.1, 3))
def test_items_of_a_model_of_orders_have_no_names(order, names, theta):
    orders, renamed = np.array(list(permutations(range(4)))), np.array(names)
    model, other = KendallMallows(order, theta), KendallMallows(renamed[order], theta)
    assert other.probability(renamed[orders]) == pytest.approx(model.probability(orders))
    assert model.probability(orders).argmax() == (orders == order).all(axis=1).argmax()
    fitted = KendallMallows.fit(orders, sample_weight=model.probability(orders))
    assert (fitted.order.tolist(), fitted.theta) == (list(order), pytest.approx(theta, rel=1e-6))


PROPERTIES = {
    **dict.fromkeys(["LovaszBregmanKMeans", "elbow", "silhouette"], test_clusters_of_voters),
    "Aggregation": test_what_a_result_says_of_itself,
    "Kemeny": test_no_order_is_better_than_kemenys,
    "KendallMallows": test_items_of_a_model_of_orders_have_no_names,
    "LovaszAggregator": test_learnt_weights_belong_to_their_rankers,
    "LovaszBregman": test_every_divergence_has_the_unit_of_the_scores_and_no_origin,
    "RankBootstrap": test_draws_of_voters_give_ranks,
    "aggregate": test_all_voters_and_all_items_are_treated_alike,
}


def test_every_rule_and_public_name_has_properties():
    assert set(CLAIMS) == set(get_args(Method))
    assert set(SET_FUNCTION_OPTIONS) == set(SET_FUNCTIONS.members)
    assert set(PROPERTIES) == set(aggregation.__all__)
