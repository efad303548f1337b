"""ConsensusRank against networkx, dense oracles and its own identities."""

import json
import warnings
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import LinearConstraint, NonlinearConstraint, linprog, minimize
from sklearn.exceptions import ConvergenceWarning

from apexrank import InputError, PageRank, divergences
from apexrank.graph import ConsensusRank
from apexrank.graph.agreement import Agreement, Limits, blend
from apexrank.graph.layers import as_layers
from apexrank_papers.consensus.loops import LoopedConsensusRank
from tests.graph.consensus_oracles import (
    best_lead,
    corroboration,
    cost,
    disagreement,
    distances,
    first_order_gap,
    free_descent,
    mutual_information,
    opinions,
    prior_of,
    random_layers,
    shares_of,
    slope,
    stationary,
    transitions,
    two_layer_minima,
    weight_gradient,
)
from tests.graph.oracles import dense_pagerank, random_adjacency, reach

VECTOR = json.loads((Path(__file__).parent.parent / "vectors" / "consensus.json").read_text())
BOTH = ("kl", "squared")
OTHERS = ("itakura-saito", "logistic")
STATIONARY = [
    pytest.param("blend", {}, id="blend"),
    pytest.param("blend", {"variant": "double-loop"}, id="double-loop"),
    pytest.param("blend", {"variant": "single-loop"}, id="single-loop"),
    pytest.param("blend", {"divergence": "squared"}, id="squared"),
    pytest.param("blend", {"variant": "double-loop", "divergence": "squared"}, id="double-loop-squared"),
    pytest.param("blend", {"variant": "single-loop", "divergence": "squared"}, id="single-loop-squared"),
    pytest.param("blend", {"pull": 0.1, "entropy": 0.5}, id="pull"),
    pytest.param("blend", {"n_restarts": 2, "random_state": 0}, id="restarts"),
    pytest.param("fixed-point", {}, id="fixed-point"),
    pytest.param("fixed-point", {"divergence": "squared"}, id="fixed-point-squared"),
    pytest.param("corroborate", {}, id="corroborate"),
]


def first_and_slow(n):
    """Seeds in n blocks; all but the first block run only in the full tier."""
    return [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, n))]


def unfitted(method, **parameters):
    return (LoopedConsensusRank if "variant" in parameters else ConsensusRank)(method, **parameters)


def fitted(problem, method="blend", *, keep=None, keep_at=None, layer_prior=None, **parameters):
    layers, teleport, damping = problem
    rank = unfitted(method, damping=damping, **parameters)
    more = {"keep": keep, "keep_at": keep_at, "layer_prior": layer_prior}
    return rank.fit(list(layers), teleport=teleport, **more)


def chain(problem, rank, first=None):
    """Dense transition matrix for the layer weights of a fitted rank, or of its first layers."""
    layers, teleport, damping = problem
    return transitions(layers, rank.layer_weights_[:, :first], teleport, damping)


@contextmanager
def unconverged():
    """For tests that count steps and do not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


# ---------------------------------------------------------------- one opinion


def random_digraph(seed):
    rng = np.random.default_rng(seed)
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(22))  # some of them isolated or without out-links
    for a, b in rng.integers(0, 18, (45, 2)).tolist():
        graph.add_edge(a, b, weight=float(rng.gamma(1.0)))
    return graph


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        *STATIONARY,
        *((method, {"divergence": kind}) for method in ("blend", "fixed-point") for kind in OTHERS),
    ],
)
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("seed", range(2))
def test_one_layer_or_equal_ones_give_pagerank(method, parameters, copies, seed):
    graph = random_digraph(seed)
    theirs = nx.pagerank(graph, alpha=0.9, tol=1e-15, max_iter=5000)
    rank = unfitted(method, damping=0.9, **parameters).fit([graph] * copies)
    assert dict(zip(rank.names_.tolist(), rank.scores_, strict=True)) == pytest.approx(theirs, abs=1e-8)
    assert rank.first_order_gap_ <= rank.tol
    assert rank.stationarity_ < 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_brew_is_not_pagerank_even_with_one_layer(seed):
    """The claim of section 5.2 is false: brew ends elsewhere, at a lower cost."""
    A = random_adjacency(seed, 30, weighted=True, density=0.08)
    pagerank = dense_pagerank(A, 0.9)
    with unconverged():
        rank = ConsensusRank("brew", damping=0.9, beta=0.02, tol=1e-9).fit([A])
    T = transitions(A[None], prior_of(A[None]), np.full(30, 1 / 30), 0.9)
    costs = [w @ distances("kl", T, w) for w in (rank.scores_, pagerank)]
    assert np.abs(rank.scores_ - pagerank).sum() > 0.1
    assert costs[0] < costs[1] - 0.01
    assert rank.disagreement_ == pytest.approx(costs[0], abs=1e-12)
    assert rank.stationarity_ == pytest.approx(np.abs(rank.scores_ @ T - rank.scores_).sum(), abs=1e-12)
    assert rank.stationarity_ > 0.01
    assert np.isnan(rank.error_bound_)


# ---------------------------------------------------------------- the numbers of the vector


@pytest.fixture
def example():
    return np.array(VECTOR["layers"]), np.array(VECTOR["teleport"]), VECTOR["damping"]


def test_the_example_with_two_minima(example):
    low, high = VECTOR["disagreement_local_minima"]
    with_restarts = fitted(example, n_restarts=10, random_state=0)
    assert with_restarts.disagreement_ == pytest.approx(low, abs=5e-6)  # five decimals are given
    assert fitted(example).disagreement_ == pytest.approx(high, abs=5e-6)
    minima = two_layer_minima("kl", *example)
    assert with_restarts.disagreement_ == pytest.approx(minima[0], abs=1e-9)
    assert {round(each, 5) for each in minima} == {low, high}


def test_the_example_with_fixed_weights(example):
    layers, teleport, damping = example
    one = ConsensusRank("blend", damping=damping).fit([layers[0]], teleport=teleport)
    assert one.scores_ == pytest.approx(VECTOR["pagerank_layer0"], abs=1e-9)
    assert one.disagreement_ == pytest.approx(VECTOR["disagreement_layer0"], abs=1e-9)
    half = fitted(example, pull=np.inf)
    assert half.disagreement_ == pytest.approx(VECTOR["disagreement_half_half"], abs=1e-9)


# ---------------------------------------------------------------- minima


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("seed", range(12))
def test_restarts_find_the_best_of_a_grid(kind, seed):
    problem = random_layers(1000 + seed, n=3 + seed % 3, m=2)
    rank = fitted(problem, divergence=kind, n_restarts=12, random_state=0)
    assert rank.disagreement_ == pytest.approx(two_layer_minima(kind, *problem)[0], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOTH)
def test_a_hidden_minimum_needs_more_restarts(kind):
    problem = random_layers(1014, n=5, m=2)
    least = two_layer_minima(kind, *problem)[0]
    assert fitted(problem, divergence=kind).disagreement_ > least + 0.01
    rank = fitted(problem, divergence=kind, n_restarts=40, random_state=0)
    assert rank.disagreement_ == pytest.approx(least, abs=1e-6)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("block", first_and_slow(2))
def test_fifty_small_problems(kind, block):
    """Blend is never above the fixed point, is stationary and never increases; both satisfy their certificates."""
    for seed in range(25 * block, 25 * block + 25):
        problem = layers, teleport, damping = random_layers(seed)
        rank = fitted(problem, divergence=kind, tol=1e-10)
        fixed = fitted(problem, "fixed-point", divergence=kind, tol=1e-10)
        assert rank.disagreement_ <= fixed.disagreement_ + 1e-9, seed
        assert np.diff(rank.objectives_).max(initial=0.0) <= 1e-11, seed
        for each in (rank, fixed):
            T = chain(problem, each)
            assert each.converged_, seed
            assert each.stationarity_ < 1e-10, seed
            assert np.abs(each.scores_ @ T - each.scores_).sum() < 1e-10, seed
            assert np.abs(each.scores_ - stationary(T)).sum() <= each.error_bound_ + 1e-14, seed
            assert each.disagreement_ == pytest.approx(disagreement(kind, T), abs=1e-10), seed
        gap = first_order_gap(kind, layers, rank.layer_weights_, teleport, damping)
        assert gap == pytest.approx(rank.first_order_gap_, abs=1e-10), seed
        assert gap <= 2e-10, seed


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("seed", "method"), [(57, "blend"), (57, "fixed-point"), (474, "blend"), (559, "blend")]
)
def test_degenerate_problems_converge_however_they_are_rounded(kind, seed, method):
    """More layers than dimensions: reordered vertices and layers round like another processor."""
    layers, teleport, damping = random_layers(seed)
    for draw in range(6):
        rng = np.random.default_rng(draw)
        vertices, order = rng.permutation(len(teleport)), rng.permutation(len(layers))
        turned = layers[order][:, vertices][:, :, vertices], teleport[vertices], damping
        assert fitted(turned, method, divergence=kind, tol=1e-10).converged_, draw


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "damping"), [(118, 0.999), (120, 0.999), (193, 0.999), (198, 0.999), (359, None)]
)
def test_the_cost_never_rises_where_whole_steps_are_too_long(seed, damping):
    rank = fitted(random_layers(seed, damping=damping))
    assert np.diff(rank.objectives_).max() <= 1e-11
    assert rank.converged_


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(("pull", "entropy"), [(0.0, 1.0), (1e-4, 1.0), (0.01, 1.0), (0.3, 0.5), (0.1, 0.0)])
@pytest.mark.parametrize("seed", range(1, 5))
def test_nothing_near_is_better(kind, pull, entropy, seed):
    problem = layers, teleport, damping = random_layers(seed)
    costs = {"pull": pull, "entropy": entropy, "prior": prior_of(layers, np.arange(1.0, len(layers) + 1))}
    prior = np.arange(1.0, len(layers) + 1)
    rank = fitted(problem, divergence=kind, pull=pull, entropy=entropy, layer_prior=prior)
    exact = cost(kind, layers, rank.layer_weights_, teleport, damping, **costs)
    assert rank.objective_ == pytest.approx(exact, abs=1e-11)
    nudged = 0.99 * rank.layer_weights_ + 0.01 * costs["prior"]
    _, value = free_descent(kind, *problem, nudged, **costs)
    assert rank.objective_ <= value + 1e-8
    assert rank.disagreement_ == pytest.approx(disagreement(kind, chain(problem, rank)), abs=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("variant", ["double-loop", "single-loop"])
def test_the_loops_reach_what_blend_reaches_from_the_same_start(kind, variant):
    """All seeds from 0 to 9; where weights end in a corner that does not bind, the loops are slow and warn."""
    converged = 0
    for seed in range(10):
        problem = layers, teleport, damping = random_layers(seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            loop = fitted(problem, divergence=kind, variant=variant, max_iter=2000)
        assert bool(caught) != loop.converged_, seed
        gap = first_order_gap(kind, layers, loop.layer_weights_, teleport, damping)
        assert gap == pytest.approx(loop.first_order_gap_, abs=1e-10), seed
        assert loop.stationarity_ < 1e-8, seed
        if not loop.converged_:
            continue
        converged += 1
        assert loop.first_order_gap_ <= 1e-8, seed
        flat = prior_of(layers)[opinions(layers)]
        agreement = Agreement(as_layers(list(layers)).hulls, teleport, damping, divergence=kind, prior=flat)
        with agreement:
            same_start = blend(agreement, flat, teleport, Limits(1e-8, 1000))
        assert loop.disagreement_ == pytest.approx(same_start.choice.value, abs=1e-6), seed
    assert converged >= 5


@pytest.mark.parametrize("kind", BOTH)
def test_a_step_of_the_double_loop_is_an_exponentiated_one(kind):
    problem = layers, teleport, damping = random_layers(7)
    start, has = prior_of(layers), opinions(layers)
    w = stationary(transitions(layers, start, teleport, damping))
    g = weight_gradient(kind, layers, start, teleport, damping) / w[:, None]
    there = start * np.exp(np.where(has, g.min(axis=1, keepdims=True) - g, 0.0))
    there = np.divide(there, there.sum(axis=1, keepdims=True), where=has, out=np.zeros_like(there))
    with unconverged():
        rank = fitted(problem, divergence=kind, variant="double-loop", max_iter=1)
    assert np.abs(there - start).max() > 0.015
    assert rank.layer_weights_ == pytest.approx(there, abs=2e-3)  # the first prices are not more exact


@pytest.mark.parametrize("temperature", [0.1, 0.3, 3.0])
@pytest.mark.parametrize("seed", range(6))
def test_corroborated_weights_stay_where_they_are(temperature, seed):
    problem = random_layers(seed)
    rank = fitted(problem, "corroborate", temperature=temperature)
    there, w = corroboration(problem[0], rank.layer_weights_, *problem[1:], temperature)
    moved = np.abs(there - rank.layer_weights_).sum(axis=1) / 2
    assert w @ moved == pytest.approx(rank.first_order_gap_, abs=1e-10)
    assert w @ moved <= 1.01e-8
    assert rank.scores_ == pytest.approx(w, abs=1e-10)


def test_corroboration_of_no_effect():
    problem = random_layers(2)
    rank = fitted(problem, "corroborate", temperature=np.inf)
    assert rank.layer_weights_ == pytest.approx(prior_of(problem[0]), abs=1e-12)


# ---------------------------------------------------------------- brew


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("beta", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(6))
def test_the_penalised_cost_of_brew_never_rises(kind, beta, seed):
    problem = random_layers(seed)
    with unconverged():
        rank = fitted(problem, "brew", divergence=kind, beta=beta, max_iter=200)
    assert len(rank.objectives_) > 5
    assert np.diff(rank.objectives_).max() <= 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("seed", [1, 2, 4])
def test_the_limit_of_brew(kind, seed):
    """``Tw − w = w∘(d − <w, d>)`` as β → 0; for the squared distance ``d − mean d`` where w > 0."""
    problem = random_layers(seed)
    left = []
    for beta in (0.04, 0.02):
        rank = fitted(problem, "brew", divergence=kind, beta=beta, tol=1e-10, max_iter=20_000)
        T, w = chain(problem, rank), rank.scores_
        d = distances(kind, T, w)
        there = w > 1e-3
        if kind == "kl":
            off = w @ T - w - w * (d - w @ d)
        else:
            off = (w @ T - w)[there]
            off = off - off.mean() - (d[there] - d[there].mean())
        assert np.abs(w @ T - w).sum() > 0.01  # what is equal is not 0
        left.append(np.abs(off).max())
    assert left[1] < 0.6 * left[0]
    assert left[1] < beta * np.abs(w @ T - w).sum()


# ---------------------------------------------------------------- fitted attributes


@pytest.mark.parametrize(("method", "parameters"), STATIONARY)
@pytest.mark.parametrize("seed", range(3))
def test_attributes_agree_with_each_other(method, parameters, seed):
    problem = layers, teleport, damping = random_layers(seed)
    rank = fitted(problem, method, **parameters)
    kind = parameters.get("divergence", "kl")
    has = opinions(layers)
    assert rank.layer_weights_.min() >= 0
    assert not rank.layer_weights_[~has].any()
    assert rank.layer_weights_.sum(axis=1) == pytest.approx(has.any(axis=1).astype(float))
    shares = rank.scores_ @ rank.layer_weights_
    assert rank.layer_shares_ == pytest.approx(shares / shares.sum())
    assert rank.layers_ == tuple(str(k) for k in range(len(layers)))
    mixed = rank.graph_.to_scipy().toarray()
    assert mixed == pytest.approx(np.einsum("ik,kij->ij", rank.layer_weights_, shares_of(layers)), abs=1e-12)
    T = np.where(has.any(axis=1)[:, None], damping * mixed + (1 - damping) * teleport, teleport)
    if kind == "kl":
        assert rank.disagreement_ == pytest.approx(mutual_information(T, rank.scores_), abs=1e-10)
    assert rank.vertex_disagreement_ == pytest.approx(distances(kind, T, rank.scores_), abs=1e-10)
    assert rank.disagreement_ == pytest.approx(rank.scores_ @ rank.vertex_disagreement_, abs=1e-14)
    assert rank.first_order_gap_ == pytest.approx(rank.scores_ @ rank.vertex_gap_, abs=1e-9)
    again = PageRank(damping, tol=1e-13).fit(rank.graph_, teleport=teleport)
    assert again.scores_ == pytest.approx(rank.scores_, abs=1e-8)
    assert rank.scores_.sum() == pytest.approx(1, abs=1e-12)
    assert rank.ranking_[0] == np.argmax(rank.scores_)
    assert len(rank.history_) == rank.n_iter_
    assert rank.order_violation_ == 0


@pytest.mark.slow
def test_random_states_matter_only_for_restarts():
    problem = random_layers(1014, n=5, m=2)
    found = [fitted(problem, n_restarts=3, random_state=state).disagreement_ for state in range(6)]
    assert max(found) - min(found) > 0.01  # this one has two minima
    assert fitted(problem, random_state=1).disagreement_ == fitted(problem, random_state=2).disagreement_


def test_progress_is_told(capsys):
    seen = []
    fitted(random_layers(0), callback=lambda step, gap: seen.append((step, gap)))
    assert not capsys.readouterr().out
    assert seen[0][0] == 1
    assert all(np.isfinite(gap) for _, gap in seen)
    fitted(random_layers(0), verbose=1)
    assert capsys.readouterr().out.count("step ") == len(seen)


@pytest.mark.parametrize(
    "options", [{}, {"method": "fixed-point"}, {"method": "brew"}, {"variant": "double-loop"}]
)
def test_too_few_steps_are_told(options):
    with pytest.warns(ConvergenceWarning, match="not converged after 1 steps"):
        rank = fitted(random_layers(0), max_iter=1, **options)
    assert not rank.converged_
    assert rank.n_iter_ == 1
    assert rank.scores_.sum() == pytest.approx(1)


# ---------------------------------------------------------------- pull and prior


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("prior", [None, [3.0, 1.0, 0.5]])
def test_an_endless_pull_is_pagerank_of_the_mean(kind, prior):
    problem = layers, teleport, damping = random_layers(4, m=3)
    T = transitions(layers, prior_of(layers, prior), teleport, damping)
    rank = fitted(problem, divergence=kind, pull=np.inf, layer_prior=prior)
    assert rank.scores_ == pytest.approx(stationary(T), abs=1e-10)
    assert rank.layer_weights_ == pytest.approx(prior_of(layers, prior), abs=1e-15)
    assert rank.disagreement_ == pytest.approx(disagreement(kind, T), abs=1e-10)
    off = []
    for pull in (10.0, 100.0, 1000.0):
        near = fitted(problem, divergence=kind, pull=pull, layer_prior=prior)
        off.append(np.abs(near.scores_ - rank.scores_).sum())
    assert off[0] > 5 * off[1] > 25 * off[2] > 0
    assert off[2] < 1e-3


def test_priors_by_name_and_by_place():
    problem = layers, teleport, damping = random_layers(4, m=3)
    named = dict(zip(("x", "y", "z"), layers, strict=True))
    rank = ConsensusRank("blend", damping=damping, pull=1.0)
    by_name = rank.fit(named, teleport=teleport, layer_prior={"z": 0.5, "x": 3, "y": 1}).scores_
    assert (by_name == fitted(problem, pull=1.0, layer_prior=[3.0, 1.0, 0.5]).scores_).all()
    assert np.abs(by_name - fitted(problem, pull=1.0).scores_).max() > 1e-3


@pytest.mark.parametrize(
    "prior",
    [
        [1.0],
        [1.0, 0.0],
        [1.0, -1.0],
        [1.0, np.nan],
        [[1.0, 1.0]],
        "ab",
        5,
        {"0": 1},
        {"0": 1, "2": 1},
        {"0": None, "1": 1},
    ],
    ids=str,
)
def test_refused_priors(prior):
    with pytest.raises(InputError, match="`layer_prior` must"):
        fitted(random_layers(0, m=2), layer_prior=prior)


# ---------------------------------------------------------------- teleport


def test_teleport_by_names():
    layers = {
        "one": nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]),
        "two": nx.DiGraph([("a", "c"), ("c", "b")]),
    }
    ranks = [
        ConsensusRank("blend").fit(layers, teleport=given).scores_
        for given in (["a", "b"], {"a": 2, "b": 2.0}, np.array([0.5, 0.5, 0.0]))
    ]
    assert (ranks[0] == ranks[1]).all()
    assert (ranks[0] == ranks[2]).all()
    with pytest.raises(InputError, match="'x'"):
        ConsensusRank("blend").fit(layers, teleport=["x"])
    with pytest.raises(InputError, match="one teleport"):
        ConsensusRank("blend").fit(layers, teleport=[np.array([1.0, 0, 0]), np.array([0, 1.0, 0])])


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("method", ["blend", "fixed-point"])
@pytest.mark.parametrize("seed", range(12))
def test_teleport_with_zeros(kind, method, seed):
    problem = layers, teleport, _ = random_layers(seed, zeros=True)
    rank = fitted(problem, method, divergence=kind)
    T = chain(problem, rank)
    lost = ~reach(layers.sum(axis=0), teleport)
    assert rank.scores_[lost].max(initial=0.0) < 1e-12
    assert rank.scores_ == pytest.approx(stationary(T), abs=1e-10)
    assert rank.disagreement_ == pytest.approx(disagreement(kind, T), abs=1e-10)


def test_ranks_that_vanish_are_no_trap():
    """The fixed point approaches w_1 = 0, where logarithms are undefined; V still decreases from there."""
    A = np.array([[0.0, 1, 0], [1, 0, 1], [0, 0, 0]])
    B = np.array([[0.0, 0, 1], [0, 1, 0], [1, 0, 0]])
    teleport = np.array([0.25, 0.0, 0.75])
    rank = ConsensusRank("blend").fit([A, B], teleport=teleport)
    inner = [
        0.5 * prior_of([A, B]) + 0.5 * np.array([[x, 1 - x], [y, 1 - y], [0, 1]])
        for x in (0, 1)
        for y in (0, 1)
    ]
    minima = [free_descent("kl", np.stack([A, B]), teleport, 0.85, each)[1] for each in inner]
    assert rank.first_order_gap_ < 1e-8
    assert rank.disagreement_ <= max(minima) + 1e-9


# ---------------------------------------------------------------- orders


def second_above_first(problem):
    first, second = np.argsort(-fitted(problem).scores_)[:2].tolist()
    return second, first


@pytest.mark.parametrize("block", first_and_slow(2))
def test_orders_of_ranks_are_kept_where_they_can_be(block):
    attainable = 0
    for seed in range(12 * block, 12 * block + 12):
        problem = random_layers(seed, m=3, n=3 + seed % 3)
        n, free = 3 + seed % 3, fitted(problem)
        a, b = second_above_first(problem)
        lead = best_lead(*problem, a, b)
        if lead < 0:
            with pytest.warns(ConvergenceWarning, match="break an order to keep"):
                rank = fitted(problem, keep=[(a, b)])
            assert rank.order_violation_ >= -lead - 1e-9, seed
            assert not rank.converged_, seed
            continue
        attainable += 1
        rank = fitted(problem, keep=[(a, b)])
        assert rank.scores_[a] >= rank.scores_[b] - 1e-6 / n, seed
        assert rank.order_violation_ == pytest.approx(
            max(0, n * (rank.scores_[b] - rank.scores_[a])), abs=1e-12
        )
        assert rank.disagreement_ >= free.disagreement_ - 1e-8, seed
        assert rank.stationarity_ < 1e-8, seed
    assert attainable >= 6


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5])
def test_nothing_near_that_keeps_the_order_is_better(seed):
    problem = layers, teleport, damping = random_layers(seed, m=3, n=4)
    a, b = second_above_first(problem)
    has = opinions(layers)

    def lead(x):
        weights = np.zeros(has.shape)
        weights[has] = np.maximum(x, 0)
        w = stationary(transitions(layers, weights, teleport, damping))
        return w[a] - w[b]

    assert best_lead(*problem, a, b) > 0
    rank = fitted(problem, keep=[(a, b)])
    kept = NonlinearConstraint(lead, 0, np.inf)
    _, value = free_descent("kl", *problem, rank.layer_weights_, [kept])
    assert rank.disagreement_ <= value + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "shape", "restarts"),
    [
        (19, {"m": 3}, 3),
        (25, {"m": 3}, 0),
        (15, {"m": 3, "n": 3}, 0),
        (23, {"m": 3, "n": 4}, 0),
        (79, {"m": 2, "n": 6}, 0),
        (20, {"m": 2, "n": 7}, 0),
    ],
)
def test_stubborn_orders(seed, shape, restarts):
    """Multipliers converge slowly, or the first method fails."""
    problem = random_layers(seed, **shape)
    a, b = second_above_first(problem)
    assert best_lead(*problem, a, b) > 0.1
    rank = fitted(problem, keep=[(a, b)], n_restarts=restarts, random_state=0)
    assert rank.scores_[a] >= rank.scores_[b] - 1e-6 / len(rank.scores_)
    assert rank.first_order_gap_ <= 1e-8


def test_an_order_that_holds_anyway_costs_nothing():
    problem = random_layers(3)
    free = fitted(problem)
    order = np.argsort(-free.scores_).tolist()
    kept = fitted(problem, keep=list(pairwise(order)))
    assert kept.scores_ == pytest.approx(free.scores_, abs=1e-6)
    assert kept.order_violation_ == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("block", range(2))
def test_orders_at_vertices(kind, block):
    infeasible = 0
    for seed in range(12 * block, 12 * block + 12):
        problem = layers, teleport, damping = random_layers(seed, silent=0.05)
        rng, n = np.random.default_rng(seed), len(teleport)
        shares, has = shares_of(layers), opinions(layers)
        candidates = np.flatnonzero(has.sum(axis=1) > 1)
        if len(candidates) < 2:
            continue
        keep = {
            int(i): [tuple(rng.choice(n, 2, replace=False).tolist()) for _ in range(rng.integers(1, 3))]
            for i in rng.choice(candidates, 2, replace=False)
        }
        place = (np.cumsum(has.ravel()) - 1).reshape(has.shape)
        rows, bounds = [], []
        for i, pairs in keep.items():
            for a, b in pairs:
                row = np.zeros(has.sum())
                row[place[i, has[i]]] = damping * (shares[has[i], i, a] - shares[has[i], i, b])
                rows.append(row)
                bounds.append((1 - damping) * (teleport[b] - teleport[a]))
        sums = (np.nonzero(has)[0] == np.unique(np.nonzero(has)[0])[:, None]).astype(float)
        feasible = linprog(
            np.zeros(has.sum()),
            A_ub=-np.array(rows),
            b_ub=-np.array(bounds),
            A_eq=sums,
            b_eq=np.ones(len(sums)),
        )
        if feasible.status != 0:
            infeasible += 1
            with pytest.raises(InputError, match=f"lets vertex ({'|'.join(map(str, keep))}) put"):
                fitted(problem, divergence=kind, keep_at=keep)
            continue
        rank = fitted(problem, divergence=kind, keep_at=keep)
        T = chain(problem, rank)
        assert min(T[i, a] - T[i, b] for i, pairs in keep.items() for a, b in pairs) > -1e-12, seed
        assert rank.scores_ == pytest.approx(stationary(T), abs=1e-9), seed
        assert rank.layer_weights_.sum(axis=1) == pytest.approx(has.any(axis=1).astype(float)), seed
        kept = LinearConstraint(np.array(rows), np.array(bounds), np.inf)
        _, value = free_descent(kind, *problem, rank.layer_weights_, [kept])
        assert rank.disagreement_ <= value + 1e-7, seed
    assert infeasible >= 1


@pytest.mark.parametrize("pull", [0.1, np.inf])
def test_an_order_at_a_vertex_that_does_not_bind_changes_nothing(pull):
    problem = layers, teleport, damping = random_layers(3, m=2, silent=0.0)
    rows = damping * shares_of(layers)[:, 0] + (1 - damping) * teleport
    assert (rows[:, 1] > rows[:, 0]).all()
    options = {"pull": pull, "layer_prior": [3.0, 1.0]}
    free, kept = fitted(problem, **options), fitted(problem, keep_at={0: [(1, 0)]}, **options)
    assert kept.scores_ == pytest.approx(free.scores_, abs=1e-7)
    assert kept.layer_weights_ == pytest.approx(free.layer_weights_, abs=1e-5)


@pytest.mark.parametrize("kind", [*BOTH, "itakura-saito"])
@pytest.mark.parametrize("seed", range(4))
def test_a_vertex_that_gives_orders_alone(kind, seed):
    """Its choice is the nearest distribution over the named vertices that keeps the orders (by SLSQP)."""
    layers, _, _ = random_layers(seed, n=6, m=2, silent=0.0)
    layers[:, 0] = 0.0
    teleport, damping = np.random.default_rng(seed).dirichlet(np.full(6, 20.0)), 0.85
    pairs = [(1, 2), (1, 3), (4, 3)]
    rank = fitted((layers, teleport, damping), "fixed-point", divergence=kind, keep_at={0: pairs})
    assert rank.layer_weights_[0].tolist() == [0.0, 0.0]
    links = rank.graph_.to_scipy().toarray()[0]
    assert links[[0, 5]].tolist() == [0.0, 0.0]
    w, base = rank.scores_, (1 - damping) * teleport
    named = np.arange(1, 5)

    def far(x):
        t = base.copy()
        t[named] += damping * x
        return distances(kind, t[None], w)[0]

    rules = [{"type": "eq", "fun": lambda x: x.sum() - 1}]
    for a, b in pairs:
        lead = base[a] - base[b]
        rules.append(
            {"type": "ineq", "fun": lambda x, a=a, b=b, lead=lead: damping * (x[a - 1] - x[b - 1]) + lead}
        )
    options = {"ftol": 1e-13, "maxiter": 500}
    best = minimize(
        far,
        np.array([0.4, 0.2, 0.1, 0.3]),
        bounds=[(0, 1)] * 4,
        constraints=rules,
        method="SLSQP",
        options=options,
    )
    assert far(links[named]) <= best.fun + 1e-7 * max(1.0, best.fun)
    assert all(rule["fun"](links[named]) > -1e-9 for rule in rules[1:])
    assert rank.stationarity_ < 1e-9


def test_vertices_that_give_orders_alone_are_enough():
    """The chapter's introduction: local recommendations may be partial orders and nothing else."""
    people = ["ann", "bob", "cy"]
    orders = {"ann": [("bob", "cy")], "bob": [("ann", "cy")], "cy": [("ann", "bob")]}
    nobody = nx.DiGraph()
    nobody.add_nodes_from(people)
    rank = ConsensusRank("fixed-point").fit([nobody], keep_at=orders)
    assert rank.ranking_.tolist()[-1] == "cy"
    # every order allows equal shares, on which all agree
    assert ConsensusRank("blend").fit([nobody], keep_at=orders).disagreement_ <= rank.disagreement_ + 1e-9
    circle = {"ann": [("ann", "bob"), ("bob", "cy"), ("cy", "ann")]}
    assert ConsensusRank("fixed-point").fit([nobody], keep_at=circle).scores_ == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        ({"keep": [(0, 0)]}, "0 twice"),
        ({"keep": [(0, 99)]}, "99 is not in the graph"),
        ({"keep": [(0, 1, 2)]}, "pairs"),
        ({"keep": (0, 1)}, "pairs"),
        ({"keep": 5}, "pairs"),
        ({"keep_at": {0: [(1, 1)]}}, "1 twice"),
        ({"keep_at": {99: [(0, 1)]}}, "99 is not in the graph"),
        ({"keep_at": {0: 5}}, "pairs"),
        ({"keep_at": [(0, 1)]}, "keep_at"),
    ],
    ids=str,
)
def test_refused_orders(orders, message):
    with pytest.raises(InputError, match=message):
        fitted(random_layers(1), **orders)


@pytest.mark.parametrize("options", [{"method": "fixed-point"}, {"method": "brew"}, {"pull": np.inf}])
def test_orders_of_ranks_are_for_blend(options):
    with pytest.raises(InputError, match="blend"):
        fitted(random_layers(1), keep=[(0, 1)], **options)


# ---------------------------------------------------------------- layers that collude


def colluding_layers(seed, honest, bad, n=12):
    """Noisy views of one graph, and layers in which all link to vertex 0."""
    rng = np.random.default_rng(seed)
    true = (rng.random((n, n)) < 0.4) + 0.0
    views = [np.where(rng.random((n, n)) < 0.85, true, rng.random((n, n)) < 0.4) + 0.0 for _ in range(honest)]
    push = np.zeros((n, n))
    push[1:, 0] = 1.0
    return np.stack([*views, *[push] * bad])


@pytest.mark.parametrize("method", ["union", "mean", "median", "blend", "fixed-point", "corroborate"])
@pytest.mark.parametrize("seed", range(3))
def test_trimmed_layers_are_as_if_they_were_not_there(method, seed):
    layers = colluding_layers(seed, 4, 3)
    trimmed = ConsensusRank(method, trim=1.5).fit(list(layers))
    assert (trimmed.layer_deviations_ > 1.5).tolist() == [False] * 4 + [True] * 3
    assert trimmed.layer_weights_.shape == (12, 7)
    assert not trimmed.layer_weights_[:, 4:].any()
    alone = ConsensusRank(method).fit(list(layers[:4]))
    assert trimmed.scores_ == pytest.approx(alone.scores_, abs=1e-7)
    assert trimmed.layer_shares_[:4] == pytest.approx(alone.layer_shares_, abs=1e-5)
    plain = ConsensusRank(method).fit(list(layers))
    assert plain.scores_[0] > trimmed.scores_[0] + 0.01


@pytest.mark.parametrize("seed", range(20))
def test_a_minority_cannot_stay_far_from_the_honest_layers(seed):
    """The guarantee of the docstring, for layers of any kind that hold less than half of the weight."""
    rng = np.random.default_rng(seed)
    honest = int(rng.integers(2, 5))
    layers = colluding_layers(seed, honest, 0)
    attack = rng.gamma(0.3, size=(honest - 1, 12, 12)) * (rng.random((honest - 1, 12, 12)) < 0.5)
    both = [*layers, *attack]
    rank = ConsensusRank("median", trim=1.2).fit(both)
    alone = np.stack([PageRank().fit_predict(layer) for layer in both])
    middle = np.median(alone, axis=0)
    assert (middle >= alone[:honest].min(axis=0) - 1e-9).all()
    assert (middle <= alone[:honest].max(axis=0) + 1e-9).all()
    far = np.abs(alone - middle / middle.sum()).sum(axis=1)
    assert rank.layer_deviations_ == pytest.approx(far / np.median(far), rel=1e-5)
    kept = rank.layer_deviations_ <= 1.2
    assert kept.sum() >= len(both) / 2
    assert far[kept].max() <= 1.2 * far[:honest].max() + 1e-9


def test_trimming_counts_prior_weights_and_leaves_equal_layers_alone():
    layers = colluding_layers(0, 1, 2)
    assert ConsensusRank(trim=1.5).fit(list(layers)).layer_shares_[0] == 0  # the majority wins
    weighed = ConsensusRank(trim=1.5).fit(list(layers), layer_prior=[3, 1, 1])
    assert weighed.layer_shares_.tolist() == [1, 0, 0]
    same = ConsensusRank(trim=1.0).fit([layers[0]] * 3)
    assert (same.layer_deviations_ < 1).all()
    assert same.layer_shares_ == pytest.approx(np.full(3, 1 / 3))


def test_a_vertex_of_trimmed_layers_alone_hands_on_to_the_teleport():
    layers = colluding_layers(1, 3, 2)
    layers[:3, 5] = 0.0
    rank = ConsensusRank("mean", trim=1.5).fit(list(layers))
    assert not rank.layer_weights_[5].any()
    assert rank.scores_ == pytest.approx(stationary(chain((layers[:3], np.full(12, 1 / 12), 0.85), rank, 3)))


# ---------------------------------------------------------------- other divergences


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("seed", range(6))
def test_other_divergences_find_the_best_of_a_grid(kind, seed):
    layers, _, _ = random_layers(seed, n=4, m=2)
    problem = layers, np.full(4, 0.25), 0.85
    rank = fitted(problem, divergence=kind, n_restarts=5, random_state=0)
    T = chain(problem, rank)
    assert rank.disagreement_ == pytest.approx(disagreement(kind, T), rel=1e-9)
    assert rank.vertex_disagreement_ == pytest.approx(distances(kind, T, stationary(T)), rel=1e-9)
    best = two_layer_minima(kind, *problem)[0]
    assert rank.disagreement_ <= best + 1e-6 * max(1.0, best)
    assert rank.first_order_gap_ <= 1e-8


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("seed", range(3))
def test_other_divergences_brew(kind, seed):
    layers, _, _ = random_layers(seed)
    n = layers.shape[1]
    problem = layers, np.full(n, 1 / n), 0.85
    rank = fitted(problem, "brew", divergence=kind, beta=0.3, tol=1e-9)
    assert (np.diff(rank.objectives_) <= 1e-11 * rank.objectives_[0]).all()
    T, rho = chain(problem, rank), rank.scores_
    ratio, d = 0.3 / 0.7, distances(kind, T, rho)
    # w of the fixed point minimises <w, d> + D(w‖ρ)/ratio: its derivatives are equal
    w = (rho @ np.linalg.inv(0.3 * T + 0.7 * np.eye(n))).clip(1e-12)
    assert np.ptp(d + (slope(kind, w) - slope(kind, rho)) / ratio) < 1e-5 * (1 + np.abs(slope(kind, w)).max())


def test_the_i_divergence_of_ranks_is_kl():
    problem = random_layers(4)
    kl, other = fitted(problem), fitted(problem, divergence=divergences.IDivergence())
    assert np.array_equal(kl.scores_, other.scores_)
    assert kl.disagreement_ == other.disagreement_


@pytest.mark.parametrize("atom", [divergences.Squared, divergences.IDivergence], ids=lambda atom: atom.name)
@pytest.mark.parametrize("seed", range(3))
def test_a_divergence_with_a_weight_for_each_vertex(atom, seed):
    problem = layers, teleport, damping = random_layers(seed, n=5, m=2, silent=0.0)
    weighted = atom(weight=tuple(np.random.default_rng(seed).gamma(1.0, size=5) + 0.1))
    rank = fitted(problem, divergence=weighted, n_restarts=3, random_state=0)
    T = chain(problem, rank)
    w = stationary(T)
    assert rank.vertex_disagreement_ == pytest.approx(weighted.divergence(T, w), rel=1e-8, abs=1e-12)

    def value(x):
        mixed = transitions(layers, np.stack([x, 1 - x], axis=1), teleport, damping)
        ranks = stationary(mixed)
        return float(ranks @ weighted.divergence(mixed, ranks / ranks.sum()))

    found = value(rank.layer_weights_[:, 0])
    starts = np.random.default_rng(seed).random((12, 5))
    best = min(minimize(value, x, bounds=[(0, 1)] * 5, method="L-BFGS-B").fun for x in starts)
    assert found <= best + 1e-7
    plain = fitted(problem, divergence=atom(), n_restarts=3, random_state=0)
    assert np.abs(rank.scores_ - plain.scores_).max() > 1e-5


def test_itakura_saito_needs_a_teleport_to_every_vertex():
    with pytest.raises(InputError, match="give every vertex a share of the teleport"):
        ConsensusRank("blend", divergence="itakura-saito").fit([np.eye(2), np.ones((2, 2))], teleport=[0])


# ---------------------------------------------------------------- input


def test_names_and_a_vertex_missing_in_a_layer():
    work = nx.DiGraph([("ann", "bob"), ("bob", "ann"), ("cy", "ann")])
    home = nx.DiGraph([("bob", "dee"), ("dee", "bob"), ("ann", "dee")])
    home.add_node("eve")
    rank = ConsensusRank("blend").fit({"work": work, "home": home})
    assert rank.names_.tolist() == ["ann", "bob", "cy", "dee", "eve"]
    assert rank.layers_ == ("work", "home")
    weights = dict(zip(rank.names_.tolist(), rank.layer_weights_.tolist(), strict=True))
    assert weights["cy"] == [1, 0]
    assert weights["dee"] == [0, 1]
    assert weights["eve"] == [0, 0]
    table = pd.DataFrame(
        [(a, b, name) for name, graph in (("work", work), ("home", home)) for a, b in graph.edges],
        columns=["from", "to", "where"],
    )
    labelled = ConsensusRank("blend").fit(table, label="where")
    assert labelled.layers_ == ("home", "work")
    assert labelled.names_.tolist() == ["ann", "bob", "cy", "dee"]  # eve has no links, so no table knows her


def test_layers_without_links():
    nothing = ConsensusRank("blend").fit([np.zeros((3, 3))] * 2)
    assert nothing.scores_ == pytest.approx([1 / 3] * 3)
    assert nothing.disagreement_ == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("method", ["blend", "fixed-point"])
@pytest.mark.parametrize("seed", range(4))
def test_weights_far_apart(kind, method, seed):
    rng = np.random.default_rng(seed)
    layers = 10.0 ** rng.uniform(-12, 12, size=(3, 6, 6)) * (rng.random((3, 6, 6)) < 0.6)
    problem = layers, np.full(6, 1 / 6), 0.85
    rank = fitted(problem, method, divergence=kind)
    T = chain(problem, rank)
    assert rank.scores_ == pytest.approx(stationary(T), abs=1e-10)
    assert rank.disagreement_ == pytest.approx(disagreement(kind, T), abs=1e-10)
    scaled = fitted(
        (layers * np.array([1e-3, 1.0, 1e3])[:, None, None], *problem[1:]), method, divergence=kind
    )
    assert scaled.scores_ == pytest.approx(rank.scores_, abs=1e-6)


class Halved(divergences.Squared):
    """User-defined divergence without a kernel."""


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"divergence": divergences.ShiftedIDivergence()}, "at least 1, and those of ranks are below"),
        ({"divergence": Halved()}, "unknown `divergence` Halved.*use one of kl"),
        ({"divergence": divergences.Squared(weight=(1.0, 2.0, 3.0))}, "3 weights for 2 vertices"),
    ],
    ids=str,
)
def test_divergences_that_do_not_fit_are_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        unfitted(**({"method": "blend"} | parameters)).fit([np.eye(2)])


def test_without_damping_the_teleport_is_all():
    problem = random_layers(0)
    assert fitted((*problem[:2], 0.0)).scores_ == pytest.approx(problem[1])


@pytest.mark.parametrize("method", ["blend", "fixed-point"])
@pytest.mark.slow
def test_nothing_dense(method):
    """Dense matrices of this size would take 20 GB each."""
    rng, n, links = np.random.default_rng(0), 50_000, 40_000
    layers = [
        sparse.csr_array(
            (np.ones(links), (rng.integers(0, n, links), rng.integers(0, n, links))), shape=(n, n)
        )
        for _ in range(2)
    ]
    rank = ConsensusRank(method, tol=1e-4).fit(layers)
    again = PageRank(tol=1e-10).fit_predict(rank.graph_)
    assert rank.scores_ == pytest.approx(again, abs=1e-9)
    mean = ConsensusRank("blend", pull=np.inf).fit(layers)
    assert 0 < rank.disagreement_ < mean.disagreement_
