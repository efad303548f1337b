"""Error bounds of every iterative rank against exact answers, on small graphs with weights of ten decades."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from apexrank import InputError
from apexrank.graph import (
    AntiTrustRank,
    ConsensusRank,
    DemotedRank,
    FairnessGoodness,
    Graph,
    GuardedPageRank,
    LpqRank,
    NonBacktrackingRank,
    PageRank,
    RobustPageRank,
    SpamMassRank,
    TopMeanRank,
    TrustRank,
    as_graph,
    local_rank,
)
from tests.graph import exact

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # some tol are beyond reach


class Problem(NamedTuple):
    """A random graph with a teleport, seeds, and the parameters that every rank has."""

    A: np.ndarray
    v: np.ndarray
    damping: float
    tol: float
    rng: np.random.Generator

    @property
    def graph(self) -> Graph:
        ends = np.nonzero(self.A)
        return Graph.from_edges(*ends, self.A[ends], n=len(self.A))

    @property
    def limits(self) -> dict[str, Any]:
        return {"damping": self.damping, "tol": self.tol, "max_iter": 20_000}

    @property
    def seed(self) -> np.ndarray:
        """All weight on vertex 0."""
        return np.eye(len(self.A))[0]

    def signed(self) -> np.ndarray:
        """The same links, some of them negative."""
        return np.where(self.rng.random(self.A.shape) < 0.4, -self.A, self.A)


def problem(name: str, seed: int) -> Problem:
    """Draw self-loops, dangling vertices and reciprocal pairs; weights of 1, small whole ones, or of ten decades."""
    rng = np.random.default_rng([*name.encode(), seed])
    n = int(rng.integers(2, 7))
    A = (rng.random((n, n)) < rng.uniform(0.15, 0.8)).astype(float)
    if rng.random() < 0.4:
        A = np.maximum(A, A.T)
    A *= [1.0, rng.integers(1, 9, (n, n)), 10.0 ** rng.uniform(-5, 5, (n, n))][rng.integers(3)]
    if rng.random() < 0.3:
        A[rng.integers(n)] = 0
    if rng.random() < 0.3:
        np.fill_diagonal(A, 0)
    if not A.any():
        A[0, 1] = 1.0
    v = rng.random(n) + 0.01 if rng.random() < 0.5 else np.ones(n)
    if rng.random() < 0.2:
        v[rng.integers(n)] = 0.0
    damping, tol = rng.choice([0.1, 0.5, 0.85, 0.85, 0.99]), rng.choice([1e-6, 1e-9, 1e-12, 1e-15])
    return Problem(A, v / v.sum(), float(damping), float(tol), rng)


def fitted_and_exact(rank: Any, truth: list[Decimal], q: Problem) -> tuple[Any, list[Decimal]]:
    return rank.fit(q.graph, teleport=q.v), truth


def pagerank(q):
    return fitted_and_exact(PageRank(**q.limits), exact.pagerank(q.A, q.damping, q.v), q)


def nonbacktracking(q):
    steps = int(q.rng.integers(4))
    truth = exact.nonbacktracking(q.A, q.damping, q.v, steps)
    return fitted_and_exact(NonBacktrackingRank(steps, **q.limits), truth, q)


def guarded(q):
    options = {"min_links": q.rng.choice([1.0, 5.0, 20.0]), "truncate": int(q.rng.integers(4))}
    options["early"] = q.rng.choice([0.05, 0.5])
    rank = GuardedPageRank(**options, keep=q.rng.choice([0, 0.5, 0.9, 1.0]), **q.limits)
    rank.fit(q.graph, teleport=q.v)
    return rank, exact.guarded(q.A, q.damping, q.v, **options, limit=float(rank.limit_))


def robust(q):
    cap = float(q.rng.choice([1e-3, 0.01, 0.1, 0.5, 1.0]))
    rank = RobustPageRank(cap, **q.limits | {"tol": max(q.tol, 1e-9)})
    return fitted_and_exact(rank, exact.capped(q.A, q.damping, q.v, cap), q)


def trust(q):
    return TrustRank(**q.limits).fit(q.graph, trusted=[0]), exact.pagerank(q.A, q.damping, q.seed)


def antitrust(q):
    rank = AntiTrustRank(**q.limits).fit(q.graph, distrusted=[0])
    return rank, [-x for x in exact.pagerank(q.A.T, q.damping, q.seed)]


def demoted(q):
    beta = float(q.rng.choice([0.1, 1.0, 30.0]))
    rank = DemotedRank(beta=beta, **q.limits).fit(q.graph, trusted=[0], distrusted=[1])
    good = exact.pagerank(q.A, q.damping, q.seed)
    bad = exact.pagerank(q.A.T, q.damping, np.eye(len(q.A))[1])
    return rank, [x - Decimal(beta) * y for x, y in zip(good, bad, strict=True)]


def spam_mass(q):
    rank = SpamMassRank(good_share=0.5, **q.limits).fit(q.graph, trusted=[0])
    rank.scores_, start = rank.absolute_mass_, 1 - Decimal(q.damping)
    uniform, core = [start / len(q.A)] * len(q.A), [start / 2 * Decimal(x) for x in q.seed.tolist()]
    every, good = (exact.spread(q.A, q.damping, seeds) for seeds in (uniform, core))
    return rank, [x - y for x, y in zip(every, good, strict=True)]


def lpq(place):
    def ranks(q):
        p, ratio = float(q.rng.choice([1, 1.5, 2, 3, 8, 50, np.inf])), float(q.rng.choice([1.05, 1.2, 2, 10]))
        rank = LpqRank(p, ratio, teleport=place, **q.limits).fit(q.graph, teleport=q.v)
        return rank, exact.fixed_point(exact.lpq_step(q.A, q.damping, q.v, p, ratio, place), rank.scores_)

    return ranks


def lp(q):
    p = float(q.rng.choice([1.5, 2, 3, 8, 20]))
    truth = exact.lp_root(q.A, q.damping, q.v, p)
    return fitted_and_exact(LpqRank(p, 1, **q.limits), truth, q)


def lp_weak_links(q):
    p = float(q.rng.choice([1.5, 2, 3, 8, 50]))
    truth = exact.weak_links_root(q.A, q.damping, q.v, p)
    return fitted_and_exact(LpqRank(p, 1, teleport="weak-links", **q.limits), truth, q)


def top_mean(q):
    k, p, ratio = (
        int(q.rng.integers(1, 5)),
        float(q.rng.choice([1, 2, 8])),
        float(q.rng.choice([1.05, 1.2, 2])),
    )
    rank = TopMeanRank(k, p, ratio, **q.limits).fit(q.graph, teleport=q.v)
    return rank, exact.fixed_point(exact.lpq_step(q.A, q.damping, q.v, p, ratio, top=k), rank.scores_)


def consensus(q):
    other = (q.rng.random(q.A.shape) < 0.5) * 10.0 ** q.rng.uniform(-5, 5, q.A.shape)
    layers = [sparse.csr_array(q.A), sparse.csr_array(other)]
    rank = ConsensusRank(method="union", damping=q.damping, tol=q.tol).fit(layers, teleport=q.v)
    return rank, exact.pagerank(rank.graph_.to_scipy().toarray(), q.damping, q.v)


RANKS: dict[str, tuple[Callable[[Problem], tuple[Any, list[Decimal]]], int]] = {
    "PageRank": (pagerank, 20),
    "NonBacktrackingRank": (nonbacktracking, 60),
    "GuardedPageRank": (guarded, 20),
    "RobustPageRank": (robust, 20),
    "TrustRank": (trust, 30),
    "AntiTrustRank": (antitrust, 20),
    "DemotedRank": (demoted, 20),
    "SpamMassRank": (spam_mass, 20),
    "LpqRank": (lpq("inside"), 15),
    "LpqRank, outside": (lpq("outside"), 15),
    "LpqRank, weak links": (lpq("weak-links"), 15),
    "LpqRank, ratio 1": (lp, 10),
    "LpqRank, ratio 1, weak links": (lp_weak_links, 10),
    "TopMeanRank": (top_mean, 15),
    "ConsensusRank": (consensus, 20),
}


@pytest.mark.parametrize("name", RANKS)
def test_the_error_is_within_its_bound(name, counted):
    solve, cases = RANKS[name]
    converged = 0
    for seed in range(cases):
        q = problem(name, seed)
        rank, truth = solve(q)
        error = exact.distance(rank.scores_, truth)
        assert error <= rank.error_bound_, f"case {seed}: {rank}"
        if not np.isnan(getattr(rank, "hilbert_bound_", np.nan)):
            assert exact.log_distance(rank.scores_, truth) <= rank.hilbert_bound_, f"case {seed}: {rank}"
        assert rank.converged_ == (rank.error_bound_ <= rank.tol), f"case {seed}: {rank}"
        converged += bool(rank.converged_)
    assert converged > cases / 2
    counted(f"error bounds of {name} against exact ranks", cases)


def test_the_error_of_fairness_and_goodness_is_within_its_bound(counted):
    for seed in range(30):
        q = problem("FairnessGoodness", seed)
        ratings, smoothing = q.signed(), float(q.rng.choice([0.0, 2.0]))
        rank = FairnessGoodness(smoothing, tol=q.tol).fit(as_graph(sparse.csr_array(ratings), signed=True))
        truth = exact.fixed_point(exact.fairness_step(ratings, smoothing), np.zeros(len(ratings)))
        errors = [abs(Decimal(x) - y) for x, y in zip(rank.scores_.tolist(), truth, strict=True)]
        assert max(errors) <= rank.error_bound_, f"case {seed}: {rank}"
    counted("error bounds of FairnessGoodness against exact ranks", 30)


def test_the_error_of_local_ranks_is_within_its_bound(counted):
    for seed in range(30):
        q = problem("local_rank", seed)
        local = local_rank(q.graph, 0, k=len(q.A), damping=q.damping, tol=max(q.tol, 1e-12))
        truth = exact.pagerank(q.A, q.damping, q.seed)
        scores = np.zeros(len(q.A))
        for vertex, score in local.top:
            scores[vertex] = score
        assert exact.distance(scores, truth) <= local.error_bound, f"case {seed}"
    counted("error bounds of local_rank against exact ranks", 30)


# ---------------------------------------------------------------- faults that were found


def test_a_pair_of_links_that_holds_most_of_the_weight():
    links = ["a", "b", "a", "b", "c", "d"], ["b", "a", "c", "c", "d", "a"], [3, 3, 1, 1, 1, 1]
    rank = NonBacktrackingRank().fit(links)
    A = np.zeros((4, 4))
    A[[0, 1, 0, 1, 2, 3], [1, 0, 2, 2, 3, 0]] = links[2]
    truth = exact.nonbacktracking(A, 0.85, np.ones(4), 2)
    assert rank.scores_ == pytest.approx([0.260, 0.194, 0.285, 0.261], abs=1e-3)
    assert exact.distance(rank.scores_, truth) <= rank.error_bound_ <= 1e-9


@pytest.mark.parametrize(("truncate", "damping"), [(2, 0.0), (320, 0.1), (400, 0.1), (4575, 0.85)])
def test_masses_of_steps_that_do_not_count_do_not_underflow(truncate, damping):
    links = ["a", "b", "a", "b", "c", "d"], ["b", "a", "c", "c", "d", "a"], [3, 3, 1, 1, 1, 1]
    rank = NonBacktrackingRank(truncate, damping=damping).fit(links)
    A = np.zeros((4, 4))
    A[[0, 1, 0, 1, 2, 3], [1, 0, 2, 2, 3, 0]] = links[2]
    truth = exact.nonbacktracking(A, damping or 1e-30, np.ones(4), truncate)
    assert exact.distance(rank.scores_, truth) <= rank.error_bound_ <= 1e-9


def test_equal_growth_up_to_rounding_has_no_bound():
    """The shares decide how the two loops share the rank, by their last digits: .316 and .684 in the first case."""
    ends = list("xyxy"), list("xyyx")
    for p, damping, weights in (
        (12, 0.999, [0.3, 0.1 + 0.2, 0.006, 0.006]),
        (20, 0.85, [1, 1 + 3e-14, 0.02, 0.02]),
    ):
        with pytest.warns(ConvergenceWarning, match="A ratio of 1.05 always converges"):
            assert LpqRank(p, 1, damping).fit((*ends, weights)).error_bound_ == np.inf
    for p, links in ((8, (list("abcdeab"), list("bacdeca"), [1, 2, 3, 4, 5, 6, 7])), (2, ends)):
        assert LpqRank(p, 1).fit(links).converged_  # cycles of single links; loops whose links are strong


def test_a_guard_refuses_weights_whose_multiple_overflows():
    links = list("abbcca"), list("bacabc"), np.array([1, 3, 1, 2, 1, 5])
    plain = GuardedPageRank(keep=0.3).fit(links).scores_
    ends, weights = links[:2], links[2]
    assert GuardedPageRank(keep=0.3).fit((*ends, 1e300 * weights)).scores_ == pytest.approx(plain)
    with pytest.raises(InputError, match="overflows"):
        GuardedPageRank(keep=0.3).fit((*ends, 1e307 * weights))


def test_a_mean_of_flows_refuses_powers_out_of_range():
    links = list("aabc"), list("bcaa"), [1, 1e-45, 1, 1]
    with pytest.raises(InputError, match="Use a smaller p"):
        TopMeanRank(1, 8, 10).fit(links, teleport=["a", "b"])


def test_the_non_backtracking_bound_holds_on_larger_graphs(counted):
    for seed in range(18, 26):
        rng = np.random.default_rng(seed)
        n = 25
        A = (rng.random((n, n)) < 0.06) * rng.integers(1, 51, (n, n)).astype(float)
        back = (A == 0) & (A.T > 0) & (rng.random((n, n)) < 0.5)
        A = np.where(back, rng.integers(1, 51, (n, n)), A)
        rank = NonBacktrackingRank().fit(sparse.csr_array(A))
        truth = exact.nonbacktracking(A, 0.85, np.ones(n), 2)
        assert exact.distance(rank.scores_, truth) <= rank.error_bound_ <= 1e-9, f"case {seed}"
    counted("error bounds of NonBacktrackingRank against exact ranks", 8)


def test_a_million_links_of_a_vertex_sum_to_its_out_weight():
    n = 1_000_000
    graph = Graph.from_edges(np.zeros(n, np.int32), np.arange(n), np.full(n, 0.1))
    assert graph.out_weight[0] == pytest.approx(n * 0.1, rel=1e-15)  # one by one, they are 1e-11 off


def test_weights_of_any_scale_give_the_same_non_backtracking_ranks():
    q = problem("scales", 0)
    plain = NonBacktrackingRank().fit(sparse.csr_array(q.A)).scores_
    for scale in (1e-300, 1e-150, 1e290):
        scaled = NonBacktrackingRank().fit(sparse.csr_array(q.A * scale)).scores_
        assert scaled == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize(
    ("seed", "p", "damping"),
    [(24, 50, 0.85), (27, 200, 0.99), (48, 20, 0.85), (60, 8, 0.99), (620, 50, 0.99)],
)
def test_a_large_p_at_ratio_one_gives_ranks_or_one_line(seed, p, damping):
    # powers of some of these graphs leave the range of floating point, in others no tail has a closed form
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    m = int(rng.integers(1, 4 * n))
    graph = Graph.from_edges(*rng.integers(0, n, (2, m)), 10 ** rng.uniform(-3, 1, m), n=n)
    with suppress(InputError):
        assert np.isfinite(LpqRank(p, 1, damping).fit(graph).scores_).all()


def test_a_consensus_is_as_exact_as_its_bound_at_a_high_damping():
    A = np.array([[0, 1, 0], [1, 0, 1e-9], [3, 1, 0]])  # 10,000 steps leave an error of 1e-5
    for method in ("union", "mean"):
        rank = ConsensusRank(method, damping=0.999, tol=1e-9).fit([sparse.csr_array(A)])
        error = exact.distance(rank.scores_, exact.pagerank(A, 0.999, np.ones(3)))
        assert error <= rank.error_bound_ <= 1e-9
        assert rank.converged_
        assert not ConsensusRank(method, damping=0.999, tol=1e-12).fit([sparse.csr_array(A)]).converged_


def test_long_chains_with_weak_links_have_a_bound():
    n = 2000  # the bound is tried with 2,048 steps, whose growth is out of range
    graph = Graph.from_edges(np.arange(n - 1), np.arange(1, n))
    rank = LpqRank(8, 1, teleport="weak-links", tol=1e-12, max_iter=2100).fit(graph)
    assert rank.scores_.sum() == pytest.approx(1)


def test_no_tolerance_is_too_small():
    with pytest.warns(ConvergenceWarning):
        assert LpqRank(2, 1, tol=0.0).fit((["a", "b", "c"], ["b", "a", "a"])).error_bound_ < 1e-12
