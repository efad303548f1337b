"""Ranks with labels against dense oracles, and the best threshold against all thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexrank import AntiTrustRank, DemotedRank, InputError, LpqRank, PageRank, TrustRank
from apexrank.datasets import make_crawl
from apexrank.graph import Graph, SignedGraph, as_graph
from apexrank.graph.lpq import Lpq
from apexrank.graph.trust import best_threshold, spread
from tests.graph.oracles import dense_pagerank, random_adjacency, sparse_of

FEW_VALUES = st.lists(
    st.tuples(st.sampled_from([-2.0, 0.0, 0.5, 0.5000000000000001, 3.0, 1e300]), st.booleans()), min_size=1
)


def shares(A):
    d = A.sum(axis=1)
    return np.divide(A, d[:, None], out=np.zeros_like(A), where=d[:, None] > 0)


def dense_spread(A, seeds, p, ratio, gamma, steps=3000):
    x = seeds.astype(np.longdouble)
    links = shares(A)
    for _ in range(steps):
        new = gamma * ((links * x[:, None]) ** p).sum(axis=0) ** (1 / (ratio * p)) + seeds
        if np.abs(new - x).max() < 1e-16:
            return new
        x = new
    raise AssertionError("the slow iteration has not converged")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("p", "ratio"), [(1.0, 1.0), (2.0, 1.0), (2.0, 1.2), (4.0, 1.5)])
def test_bound_on_trust(seed, p, ratio):
    A = random_adjacency(seed)
    n = len(A)
    seeds = (np.arange(n) % 3 == 0).astype(float)
    seeds *= n / seeds.sum()
    found = spread(as_graph(sparse_of(A)), seeds, map=Lpq(p, ratio), gamma=0.8, tol=10.0 ** -(2 + seed % 9))
    exact = dense_spread(A, seeds, p, ratio, 0.8)
    assert np.abs(found.scores - exact).sum() / found.scores.sum() <= found.error_bound + 1e-14
    assert found.converged
    handed_on = (found.scores - seeds).sum() / 0.8
    assert handed_on <= found.scores.sum() * (1 + 1e-12)  # |U(x)| <= |x|


def test_nobody_is_demoted_by_those_who_point_at_them():
    honest = [("a", "b"), ("b", "c"), ("c", "a")]
    attack = [("spam", "a"), ("spam", "spam2"), ("spam2", "spam")]
    edges = tuple(map(list, zip(*honest, *attack, strict=True)))
    labels = {"trusted": ["c"], "distrusted": ["spam"]}
    safe = LpqRank().fit(edges, **labels)
    victim = safe.graph_.number("a")
    assert safe.distrust_[victim] == 0
    assert LpqRank(distrust="along").fit(edges, **labels).distrust_[victim] > 0
    assert set(safe.ranking_[-2:]) == {"spam", "spam2"}


@pytest.mark.parametrize("trust", ["linear", "same"])
@pytest.mark.parametrize("distrust", ["against", "along"])
def test_scores_are_ranks_times_shares(trust, distrust):
    A = random_adjacency(7, 40, density=0.08)
    rank = LpqRank(trust=trust, distrust=distrust, neutral=0.3, gamma=0.6, tol=1e-12)
    rank.fit(sparse_of(A), trusted=[1, 2, 3], distrusted={7: 2.0})
    plus, minus = np.zeros(40), np.zeros(40)
    plus[[1, 2, 3]], minus[7] = 1.0, 2.0
    p, ratio, unit = (1.0, 1.0, 1.0) if trust == "linear" else (2.0, 1.2, 20.0)
    x = dense_spread(A, unit * plus, p, ratio, 0.6)
    y = dense_spread(A if distrust == "along" else A.T, unit * minus, p, ratio, 0.6)
    total = x + y
    factor = np.where(total > 0, x / np.where(total > 0, total, 1), 0.3).astype(float)
    expected = LpqRank(tol=1e-12).fit_predict(sparse_of(A)) * factor
    assert rank.scores_ == pytest.approx(expected / expected.sum(), abs=1e-9)
    assert (factor == 0.3).any()
    assert (factor == 1.0).any()


def test_labels_of_one_kind_are_enough():
    A = sparse_of(random_adjacency(7, 40, density=0.08))
    plain = LpqRank().fit(A)
    only_bad = LpqRank().fit(A, distrusted=[7])
    others = {i: 1 / 39 for i in range(40) if i != 7}  # which together are trusted as much as 7 is distrusted
    assert only_bad.scores_ == pytest.approx(LpqRank().fit(A, distrusted=[7], trusted=others).scores_)
    dense, plus, minus = random_adjacency(7, 40, density=0.08), np.full(40, 1 / 39), np.eye(40)[7]
    plus[7] = 0.0
    trust, distrust = dense_spread(dense, plus, 1, 1, 0.85), dense_spread(dense.T, minus, 1, 1, 0.85)
    expected = (plain.scores_ * trust / (trust + distrust)).astype(float)
    assert only_bad.scores_ == pytest.approx(expected / expected.sum(), abs=1e-8)
    only_good = LpqRank(neutral=0.25).fit(A, trusted=[1, 2])
    factor = np.where(only_good.trust_ > 0, 1.0, 0.25) * plain.scores_
    assert only_good.scores_ == pytest.approx(factor / factor.sum())
    again = only_bad.fit(A)  # without labels nothing of them stays
    assert not hasattr(again, "distrust_")
    assert (again.scores_ == plain.scores_).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_established_ranks(seed):
    A = random_adjacency(seed, 30)
    good, bad = (np.isin(np.arange(30), some).astype(float) for some in ([0, 4, 5], [7, 9]))
    graph = sparse_of(A)
    trust = TrustRank(tol=1e-12).fit(graph, trusted=[0, 4, 5])
    assert trust.scores_ == pytest.approx(dense_pagerank(A, teleport=good), abs=1e-11)
    assert trust.scores_ == pytest.approx(PageRank(tol=1e-12).fit_predict(graph, teleport=good), abs=1e-11)
    distrust = AntiTrustRank(tol=1e-12).fit(graph, distrusted=[7, 9])
    assert distrust.distrust_ == pytest.approx(dense_pagerank(A.T, teleport=bad), abs=1e-11)
    assert (distrust.scores_ == -distrust.distrust_).all()
    along = AntiTrustRank(direction="along", tol=1e-12).fit(graph, distrusted=[7, 9])
    assert along.distrust_ == pytest.approx(dense_pagerank(A, teleport=bad), abs=1e-11)
    demoted = DemotedRank(beta=0.5, tol=1e-12).fit(graph, trusted=[0, 4, 5], distrusted=[7, 9])
    assert demoted.scores_ == pytest.approx(trust.scores_ - 0.5 * distrust.distrust_, abs=1e-10)


SIGNED = SignedGraph(
    Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 0], n=5),
    Graph.from_edges([0, 1, 4], [3, 3, 2], [2.0, 1.0, 3.0], n=5),
)


def dense_lin(A, plus, minus, gamma=0.85):
    """PageRank times the share of linear trust, by dense solves."""
    trust = np.linalg.solve(np.eye(len(A)) - gamma * shares(A).T, plus)
    distrust = np.linalg.solve(np.eye(len(A)) - gamma * shares(A.T).T, minus)
    scores = dense_pagerank(A) * trust / (trust + distrust)
    return scores / scores.sum()


def test_negative_edges_are_distrust_while_everybody_is_trusted():
    A = SIGNED.positive.to_scipy().toarray()
    r = dense_pagerank(A)
    for negative, received in (
        ("seeds", np.array([0.0, 0, 3, 3, 0])),
        ("edges", 5 * np.array([0, 0, r[4], r[0] + r[1], 0])),
    ):
        ranks = LpqRank(p=1, ratio=1, negative=negative, tol=1e-12).fit(SIGNED)
        assert ranks.scores_ == pytest.approx(dense_lin(A, np.ones(5), received), abs=1e-10)


def test_the_word_of_an_account_without_standing_counts_for_little():
    web = make_crawl(2000, random_state=0).adjacency.tocoo()
    best = PageRank().fit(web.tocsr()).top(1)[0][0]
    sources, targets = np.append(web.row, 2000), np.append(web.col, best)
    graph = as_graph((sources, targets, np.append(np.ones(len(web.row)), -1e6)), signed=True)
    place = {}
    for negative in ("edges", "seeds"):
        ranking = LpqRank(negative=negative).fit(graph).ranking_.tolist()
        place[negative] = ranking.index(best) - LpqRank().fit(graph.positive).ranking_.tolist().index(best)
    assert place["edges"] <= 1
    assert place["seeds"] > 1000


MISSING = [
    (TrustRank(), {}, "TrustRank needs trusted vertices"),
    (AntiTrustRank(), {}, "AntiTrustRank needs distrusted vertices"),
    (DemotedRank(), {"trusted": [0]}, "DemotedRank needs distrusted vertices"),
    (DemotedRank(), {"distrusted": [0]}, "DemotedRank needs trusted vertices"),
    (TrustRank(), {"trusted": [99]}, "99"),
]


@pytest.mark.parametrize(("rank", "arguments", "message"), MISSING)
def test_bad_input(rank, arguments, message):
    with pytest.raises(InputError, match=message):
        rank.fit(([0, 1, 2], [1, 2, 0]), **arguments)


def test_signed_graphs_are_for_ranks_that_know_distrust():
    with pytest.raises(InputError, match="takes no signed graph"):
        PageRank().fit(SIGNED)


def test_unconverged_trust_is_told():
    ring = ([0, 1, 2, 3], [1, 2, 3, 0])
    with pytest.warns(match="the spread of labels has not converged after 20 steps"):
        ranks = LpqRank(ratio=3, gamma=0.99, max_iter=20).fit(ring, trusted=[0])
    assert not ranks.converged_


# ---------------------------------------------------------------- spam by one cut on one score


def all_cuts(scores, spam):
    """Errors of every distinct threshold, lowest first."""
    cuts = [-np.inf, *sorted(set(scores))]
    return cuts, [
        sum((score <= cut) != flag for score, flag in zip(scores, spam, strict=True)) for cut in cuts
    ]


@given(FEW_VALUES)
def test_no_cut_is_better_and_no_lower_one_as_good(rows):
    scores, spam = zip(*rows, strict=True)
    cuts, errors = all_cuts(scores, spam)
    found = best_threshold(scores, spam)
    assert found.error == min(errors) / len(rows)
    assert found.cut == cuts[int(np.argmin(errors))]
    assert np.mean(found.is_spam(scores) != np.array(spam)) == found.error


def test_a_million_vertices():
    rng = np.random.default_rng(0)
    spam = rng.random(1_000_000) < 0.2
    scores = np.where(spam, rng.random(spam.size), 0.5 + rng.random(spam.size))
    found = best_threshold(scores, spam)
    # below 0.5 all are spam; between 0.5 and 1 spam is a fifth of the vertices, so the cut lies at 0.5
    assert found.cut == pytest.approx(0.5, abs=1e-3)
    assert found.error == pytest.approx(0.1, abs=2e-3)


@pytest.mark.parametrize(
    ("scores", "spam", "message"),
    [
        ([], [], "at least one vertex"),
        ([1.0], [1, 0], "one score and one label"),
        ([[1.0]], [[1]], "one score and one label"),
        ([1.0, np.nan], [1, 0], "finite"),
        ([1.0, 2.0], [1, 2], "True or False"),
        ([1.0, 2.0], ["spam", "ham"], "True or False"),
    ],
)
def test_bad_labels(scores, spam, message):
    with pytest.raises(InputError, match=message):
        best_threshold(scores, spam)
