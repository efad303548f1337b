import json
import warnings
from decimal import Decimal
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from apexrank import InputError, LpqRank, PageRank
from apexrank.datasets.crawl import make_crawl
from apexrank.graph import ConcaveConvexRank, Graph, InDegree, TopMeanRank
from apexrank.graph.power import hilbert_distance, iterate, l1_bound
from tests.graph.oracles import dense_rank, random_adjacency, sparse_of

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "graph.json").read_text())
PLACES = ["inside", "outside", "weak-links"]
CASES = [(c["name"], key) for c in VECTORS for key in c["ranks"]]


def case(name):
    return next(c for c in VECTORS if c["name"] == name)


@pytest.mark.parametrize(("name", "key"), CASES)
def test_vectors(name, key):
    given_ = case(name)
    p, ratio = (float(part.split("=")[1]) for part in key.split(","))
    sources, targets = np.array(given_["edges"]).T
    graph = Graph.from_edges(sources, targets, n=given_["n"])
    ranks = LpqRank(p, ratio, given_["damping"], tol=1e-12).fit(graph)
    assert ranks.scores_ == pytest.approx(given_["ranks"][key], abs=2e-12)  # which are rounded to 12 decimals


@pytest.mark.parametrize(
    "rank",
    [
        PageRank(),
        LpqRank(),
        LpqRank(3, 1),
        LpqRank(np.inf),
        TopMeanRank(3),
        LpqRank(teleport="weak-links"),
        LpqRank(3, 1, teleport="weak-links"),
    ],
)
def test_several_teleports_at_once(rank):
    A = sparse_of(random_adjacency(3))
    rng = np.random.default_rng(0)
    several = [rng.random(A.shape[0]) for _ in range(3)] + [{0: 1.0, 2: 2.0}]
    together = rank.fit_predict(A, teleport=several)
    apart = [rank.fit_predict(A, teleport=each) for each in several]
    assert together == pytest.approx(np.stack(apart, axis=1), abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_pair_of_functions_is_the_lpq_rank(weighted):
    A = sparse_of(random_adjacency(5, weighted=weighted))
    pair = ConcaveConvexRank(np.square, lambda x: x ** (1 / 2.4), degree=1 / 1.2).fit(A)
    assert pair.scores_ == pytest.approx(LpqRank(2, 1.2).fit_predict(A), abs=1e-9)
    assert pair.error_bound_ < 1e-9
    unknown = ConcaveConvexRank(np.square, lambda x: x ** (1 / 2.4)).fit(A)
    assert np.isnan(unknown.error_bound_)
    assert unknown.converged_
    assert unknown.scores_ == pytest.approx(pair.scores_, abs=1e-7)
    both = pair.fit_predict(A, teleport=[np.ones(A.shape[0]), {0: 1.0}])
    assert both[:, 0] == pytest.approx(unknown.scores_, abs=1e-7)


def test_threads_do_not_matter():
    from apexrank.kernels.csr import InLinks

    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(0, 1000, 700_000), rng.integers(0, 1000, 700_000), repeated="once")
    x = rng.random((1000, 2))
    answers = []
    for threads in (1, 3):
        with InLinks(graph.indptr, graph.indices, threads=threads) as links:
            answers.append([links.sums(x[:, 0]), links.sums(x), links.largest(x), links.norms(x, 3.0)])
            assert links.threads.n == threads
    for one, three in zip(*answers, strict=True):
        assert (one == three).all()


def test_warm_start_takes_fewer_steps_to_the_same_answer():
    before = make_crawl(2000, random_state=0).adjacency
    after = before.tolil()
    after[1999, 5] = 1
    for rank in (PageRank(), LpqRank(), LpqRank(np.inf), LpqRank(teleport="weak-links")):
        cold = clone(rank).fit(after)
        warm = clone(rank).fit(after, start=clone(rank).fit(before))
        # distant changes are small in the L1 norm, but not in the logarithms that bound the L_pq rank
        assert warm.n_iter_ < (0.8 if isinstance(rank, PageRank) else 1.0) * cold.n_iter_
        assert warm.scores_ == pytest.approx(cold.scores_, abs=2e-9)
        again = clone(rank).set_params(warm_start=True).fit(after)
        assert again.fit(after).n_iter_ <= 2


def test_warm_start_goes_by_names():
    edges = (["a", "b", "c"], ["b", "c", "a"]), (["z", "b", "c", "a"], ["b", "c", "a", "b"])
    before = PageRank(tol=1e-12).fit(edges[0])
    scores = dict(zip(before.names_.tolist(), before.scores_.tolist(), strict=True))
    expected = PageRank(tol=1e-12).fit_predict(edges[1])
    for start in (before, scores):
        assert PageRank(tol=1e-12).fit_predict(edges[1], start=start) == pytest.approx(expected, abs=1e-11)
    with pytest.raises(InputError, match="`start` needs a finite score for each of 4 vertices"):
        PageRank().fit(edges[1], start=[1.0, 2.0])


def test_explain_adds_up_to_the_score():
    A = random_adjacency(4, weighted=True)
    ranks = LpqRank(2, 1.2, tol=1e-13).fit(sparse_of(A))
    for vertex in range(len(A)):
        links = ranks.explain(vertex)
        assert {link.source for link in links} == {*np.flatnonzero(A[:, vertex]), None}
        assert sum(link.share for link in links) == pytest.approx(1)
        assert [link.flow for link in links] == sorted((link.flow for link in links), reverse=True)
    norms = np.array([sum(link.flow**2 for link in ranks.explain(i)) for i in range(len(A))])
    made = norms ** (1 / 2.4)
    assert made / made.sum() == pytest.approx(ranks.scores_, abs=1e-12)
    assert len(ranks.explain(0, top=1)) == 1
    assert LpqRank(np.inf).fit(sparse_of(A)).explain(0)[0].share == 1.0


def test_top_is_the_head_of_the_ranking():
    rng = np.random.default_rng(0)
    ranks = InDegree().fit((rng.integers(0, 50, 200), rng.integers(0, 50, 200)))  # many ties
    for k in (1, 7, 1000):
        assert [name for name, _ in ranks.top(k)] == ranks.ranking_[:k].tolist()
    with pytest.raises(InputError, match="`k` must be a whole number"):
        ranks.top(0)


def test_in_degree():
    A = random_adjacency(2, weighted=True)
    assert InDegree().fit_predict(sparse_of(A)) == pytest.approx(A.sum(axis=0) / A.sum())
    assert InDegree(weighted=False).fit_predict(sparse_of(A)) == pytest.approx(
        (A > 0).sum(axis=0) / (A > 0).sum()
    )


def test_progress_is_told():
    steps = []
    LpqRank(callback=lambda step, error: steps.append((step, error))).fit(sparse_of(random_adjacency(1)))
    assert [step for step, _ in steps] == list(range(1, len(steps) + 1))
    assert steps[-1][1] <= 1e-9 < steps[-2][1]


BAD = [
    (PageRank(), {"teleport": ["nobody"]}, "nobody"),
    (PageRank(), {"teleport": {"a": -1.0}}, "teleport weights must be finite and not negative"),
    (PageRank(), {"teleport": np.zeros(3)}, "teleport must have a positive weight"),
    (LpqRank(), {"trusted": ["a"], "distrusted": ["a"]}, "'a' is both trusted and distrusted"),
    (LpqRank(), {"trusted": []}, "trusted is empty"),
    (LpqRank(), {"trusted": ["x"]}, "x"),
]


@pytest.mark.parametrize(("rank", "arguments", "message"), BAD)
def test_bad_input(rank, arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        rank.fit((["a", "b", "c"], ["b", "c", "a"]), **arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("w", "p", "ratio"), [(1e-4, 100.0, 2.0), (1e-4, 100.0, 1.2), (1e-41, 8.0, 10.0), (1e-200, 2.0, 100.0)]
)
def test_powers_of_small_weights_are_not_lost(w, p, ratio, place):
    A = np.array([[0, 1, w], [1, 0, 0], [1, 0, 0]])
    v = np.array([1.0, 0.0, 0.0])
    ranks = LpqRank(p, ratio, teleport=place, tol=1e-11).fit(sparse_of(A), teleport=v)
    exact = dense_rank(A, p, ratio, teleport=v, place=place).astype(float)
    assert ranks.scores_[2] > 0
    assert hilbert_distance(ranks.scores_, exact) <= ranks.hilbert_bound_ + 1e-11


@pytest.mark.parametrize("seed", range(20))
def test_the_certificate_holds_for_weights_far_apart(seed):
    rng = np.random.default_rng(seed)
    A = random_adjacency(seed)
    A *= 10.0 ** rng.uniform(-40, 40, A.shape)
    p, ratio, place = rng.choice([2.0, 8.0, 50.0, 1000.0]), rng.choice([1.1, 1.5, 3.0]), PLACES[seed % 3]
    ranks = LpqRank(p, ratio, teleport=place).fit(sparse_of(A))
    exact = dense_rank(A, p, ratio, place=place)
    assert np.abs(ranks.scores_ - exact).sum() <= ranks.error_bound_
    assert hilbert_distance(ranks.scores_, exact.astype(float)) <= ranks.hilbert_bound_ + 1e-13


def test_powers_beyond_all_numbers_are_refused_at_ratio_one():
    star = np.zeros((101, 101))
    star[0, 1:], star[1:, 0] = 1.0, 1.0
    v = np.eye(101)[0]
    with pytest.raises(InputError, match="p = 200 with ratio 1 is beyond what powers"):
        LpqRank(200, 1).fit(sparse_of(star), teleport=v)
    exact = dense_rank(star, 50.0, 1.0, teleport=v).astype(float)
    assert LpqRank(50, 1).fit_predict(sparse_of(star), teleport=v) == pytest.approx(exact, abs=1e-9)


def test_weights_at_the_ends_of_the_range_of_numbers():
    tiny = LpqRank().fit((list("abc"), list("bca"), [1e-310, 1.0, 1.0]))
    assert tiny.scores_ == pytest.approx(1 / 3)
    huge = PageRank().fit((list("abc"), list("bca")), teleport={"a": 1e308, "b": 1e308})
    assert huge.scores_ == pytest.approx(
        PageRank().fit_predict((list("abc"), list("bca")), teleport={"a": 1, "b": 1})
    )
    with pytest.raises(InputError, match="the sum of the label weights overflows"):
        LpqRank().fit((list("abc"), list("bca")), trusted={"a": 1e308, "b": 1e308})


@pytest.mark.slow
@pytest.mark.parametrize("columns", [None, 2])
def test_rounding_of_long_sums_is_in_the_bound(columns):
    n = 300_000
    leaves = np.arange(1, n)
    star = Graph.from_edges(leaves, np.zeros(n - 1, dtype=int))
    # in closed form: leaves have t, the hub 1 − (n − 1)·t with t = (1 − α + α·hub)/n
    a, k = Decimal("0.85"), Decimal(n - 1)
    t = 1 / (Decimal(n) + a * k)
    teleport = None if columns is None else np.full((n, columns), 1 / n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranks = PageRank(tol=0.0, max_iter=200).fit(star, teleport=teleport)
    hub = 1 - k * t
    scores = ranks.scores_ if columns is None else ranks.scores_[:, 0]
    error = abs(Decimal(float(scores[0])) - hub) + k * abs(Decimal(float(scores[1])) - t)
    # by the arithmetic alone: sums in runs of 512, the rest less than 100 roundings of 2^-53 in a step; iterates that
    # are within rounding/(1 − α) of the answer differ by at most twice that
    rounding = 2.0**-53 * (512 + n / 512 + 100)
    assert error <= ranks.error_bound_ <= rounding * (1 + 2 * 0.85 / 0.15) / 0.15


def test_names_that_are_tuples():
    G = nx.grid_2d_graph(3, 3)
    one = PageRank().fit(G, teleport=[(0, 0), (1, 1)])
    assert one.scores_ == pytest.approx(PageRank().fit_predict(G, teleport={(0, 0): 1.0, (1, 1): 1.0}))


def test_a_series_is_names_or_weights_by_names():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    ring = (np.arange(7), np.roll(np.arange(7), -1))
    named = PageRank().fit_predict(ring, teleport=[5, 6])
    assert (PageRank().fit_predict(ring, teleport=pd.Series([5, 6])) == named).all()
    assert (PageRank().fit_predict(ring, teleport=pd.Series([0.5, 0.5], index=[5, 6])) == named).all()
    letters = (list("abc"), list("bca"))
    one = PageRank().fit_predict(letters, teleport=pd.DataFrame({"vertex": ["a"]})["vertex"])
    assert (one == PageRank().fit_predict(letters, teleport=["a"])).all()
    with pytest.raises(InputError, match="teleport must be one column"):
        PageRank().fit(letters, teleport=pd.DataFrame({"vertex": ["a"]}))


MORE_BAD = [
    (PageRank(), {"teleport": [0, 0, 1]}, "some of them twice: weights must be floats"),
    (PageRank(), {"teleport": {0: None}}, "teleport weights must be numbers"),
    (PageRank(), {"teleport": {0: "x"}}, "teleport weights must be numbers"),
    (PageRank(), {"teleport": np.ones((3, 0))}, "teleport must have a positive weight"),
    (PageRank(), {"teleport": np.ones((3, 2, 2))}, "teleport must have a positive weight"),
    (PageRank(), {"start": 0.3}, "`start` needs a finite score"),
    (PageRank(), {"start": ["x", "y", "z"]}, "`start` needs a finite score"),
    (PageRank(), {"start": np.ones((3, 2))}, "`start` has shape"),
    (LpqRank(), {"trusted": [0], "teleport": [{0: 1.0}, {1: 1.0}]}, "labels take one teleport vector"),
    (LpqRank(), {"distrusted": [0, 1, 2]}, "every vertex is distrusted"),
]


@pytest.mark.parametrize(("rank", "arguments", "message"), MORE_BAD)
def test_more_bad_input(rank, arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        rank.fit(([0, 1, 2], [1, 2, 0]), **arguments)
    assert "\n" not in str(caught.value)


def test_a_column_that_is_not_there():
    ranks = PageRank().fit(([0, 1], [1, 0]), teleport=[{0: 1.0}, {1: 1.0}])
    with pytest.raises(InputError, match="column must be a number from 0 to 1"):
        ranks.top(1, column=7)


def test_explain_is_for_the_teleport_inside():
    with pytest.raises(InputError, match="outside the norm is not a link and cannot be explained"):
        LpqRank(teleport="outside").fit(([0, 1], [1, 0])).explain(0)


def test_a_mean_of_more_links_than_there_are():
    A = sparse_of(random_adjacency(1))
    assert TopMeanRank(10**12).fit(A).ranking_.tolist() == TopMeanRank(100).fit(A).ranking_.tolist()


def test_a_tolerance_below_rounding_ends_where_nothing_changes_any_more():
    step = lambda r: np.array([0.5, 0.5])  # noqa: E731
    found = iterate(step, np.array([1.0, 0.0]), l1_bound(0.85, rounding=1e-15), tol=1e-18, max_iter=1000)
    assert found.n_iter == 2
    assert not found.converged
    assert 0 < found.error_bound < 1e-13


@pytest.mark.parametrize("p", [8, 20])
def test_long_chains_are_certified_at_ratio_one(p):
    """The end of a chain is 1e13 times the first terms of its series, and rounding in units of these hid the result."""
    G = nx.gnr_graph(500, 0.3, seed=3)
    ranks = LpqRank(p, 1).fit(G)
    (source, target), exact = np.array(G.edges).T, np.full(500, 1 / 500)  # one link each, but for the root
    for _ in range(3000):
        extra = (0.15 + 0.85 * exact[0]) / 500
        exact = (np.bincount(target, (0.85 * exact[source]) ** p, 500) + extra**p) ** (1 / p)
        exact /= exact.sum()
    assert np.abs(ranks.scores_ - exact).sum() <= ranks.error_bound_ <= 1e-9
    assert hilbert_distance(ranks.scores_, exact) <= ranks.hilbert_bound_ <= 1e-8


def test_rounding_is_not_blamed_on_the_number_of_steps():
    with pytest.warns(ConvergenceWarning, match="More steps will not help: raise `tol`"):
        LpqRank(tol=1e-17).fit(sparse_of(random_adjacency(1)))
    with pytest.warns(ConvergenceWarning, match="Raise `max_iter` or `tol`"):
        LpqRank(tol=1e-17, max_iter=50).fit(sparse_of(random_adjacency(1)))
