"""Hulls, costs, orders and layers of consensus ranking against dense oracles."""

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.optimize import linprog

from apexrank import InputError
from apexrank.graph import as_graph, as_layers
from apexrank.graph.agreement import KINDS, Agreement, Limits, blend
from apexrank.graph.consensus import RankOrder, cut_hulls, row_shares
from apexrank.graph.power import Anderson
from apexrank.kernels import hulls as kernels
from tests.graph.consensus_oracles import (
    cost,
    distances,
    hull_cost,
    hull_gradient,
    nearest,
    opinions,
    prior_of,
    random_layers,
    row_costs,
    shares_of,
    slope,
    stationary,
    transitions,
    weight_gradient,
)

BOTH = ("kl", "squared")
MILD = (*BOTH, "logistic")


def random_weights(rng, layers):
    has = opinions(layers)
    weights = has * (0.1 + rng.gamma(1.0, size=has.shape))
    total = weights.sum(axis=1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def problem_of(layers, teleport, damping, kind="kl", prior=None, **costs):
    flat = prior_of(layers, prior)[opinions(layers)]
    return Agreement(as_layers(list(layers)).hulls, teleport, damping, divergence=kind, prior=flat, **costs)


# ---------------------------------------------------------------- kernels


@pytest.mark.parametrize("seed", range(10))
def test_hulls_hold_the_rows_of_all_layers(seed):
    layers, _, _ = random_layers(seed)
    hulls = as_layers(list(layers)).hulls
    has, shares = opinions(layers), shares_of(layers)
    assert (np.diff(hulls.first) == has.sum(axis=1)).all()
    assert (hulls.layer == np.nonzero(has)[1]).all()
    for i in range(layers.shape[1]):
        columns = hulls.indices[hulls.indptr[i] : hulls.indptr[i + 1]]
        assert (columns == np.flatnonzero(layers[:, i].any(axis=0))).all()
        assert row_shares(hulls, i) == pytest.approx(shares[has[i], i][:, columns], abs=1e-15)


def projected(kind, candidates, prices, base, damping, start, entropy=1.0, pull=0.0, prior=None):
    """One row of :func:`project`, alone in a square problem."""
    m, n = candidates.shape
    prior = np.full(m, 1 / m) if prior is None else prior
    rows = [sparse.csr_array(np.vstack([row, np.zeros((n - 1, n))])) for row in candidates]
    h = as_layers(rows).hulls
    hull = (h.indptr, h.indices, h.entries, h.candidate, h.share)
    new, gap, derivative = np.empty(m), np.empty(n), np.empty(n)
    costs = (damping, entropy, pull, 1e-13)
    kernels.project(
        KINDS[kind], np.ones(n), hull, h.first, start, prior, prices, base, *costs, new, gap, derivative, 0, n
    )
    return new, gap[0], derivative[0]


def hull_case(seed, m=None, kind="kl", zeros=False):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 9)), int(rng.choice([2, 3, 4, 12])) if m is None else m
    candidates = rng.gamma(0.5, size=(m, n)) * (rng.random((m, n)) < 0.6)
    candidates[~candidates.any(axis=1), 0] = 1.0
    candidates = shares_of(candidates[None])[0]
    damping = float(rng.uniform(0.1, 0.99))
    base = rng.dirichlet(np.ones(n))
    if zeros:
        base[rng.random(n) < 0.5] = 0.0
        base[0] += 0.1
    prices = slope(kind, rng.dirichlet(np.ones(n))) if seed % 3 else rng.normal(size=n)
    return candidates, prices, (1 - damping) * base / base.sum(), damping, rng.dirichlet(np.ones(m))


def check_projection(kind, candidates, prices, base, damping, start, **costs):
    lam, gap, derivative = projected(kind, candidates, prices, base, damping, start, **costs)
    assert lam.min() >= 0
    assert lam.sum() == pytest.approx(1, abs=1e-13)
    best, least = nearest(kind, candidates, prices, base, damping, **costs)
    assert hull_cost(kind, candidates, lam, prices, base, damping, **costs) == pytest.approx(least, abs=1e-9)
    assert lam @ candidates == pytest.approx(best @ candidates, abs=1e-6)
    g = hull_gradient(kind, candidates, start, prices, base, damping, **costs)
    if not costs.get("pull"):
        assert gap == pytest.approx(start @ g - g.min(), abs=1e-12)
    assert derivative == pytest.approx(g @ (lam - start), abs=1e-11)
    return lam


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.slow
def test_projection_onto_a_hull(kind, zeros, seed):
    check_projection(kind, *hull_case(seed, kind=kind, zeros=zeros))


@pytest.mark.parametrize("kind", MILD)
@pytest.mark.parametrize("seed", range(12))
def test_projection_onto_many_candidates_from_a_corner(kind, seed):
    *case, _ = hull_case(seed, m=12, kind=kind)
    lam = check_projection(kind, *case, np.eye(12)[seed])
    g = hull_gradient(kind, case[0], lam, *case[1:])
    assert lam @ g - g.min() < 1e-10  # a proof on its own


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("seed", range(8))
def test_projection_onto_equal_candidates(kind, seed):
    candidates, *rest, _ = hull_case(seed, m=4, kind=kind)
    candidates[1], candidates[3] = candidates[0], candidates[0]
    check_projection(kind, candidates, *rest, np.array([0.1, 0.2, 0.3, 0.4]))
    lam, gap, _ = projected(kind, candidates[[0, 1, 3]], *rest, np.array([0.2, 0.3, 0.5]))
    assert gap == pytest.approx(0, abs=1e-15)
    assert lam == pytest.approx([0.2, 0.3, 0.5])  # nothing to choose: it stays


@pytest.mark.parametrize("kind", MILD)
@pytest.mark.parametrize(("entropy", "pull"), [(0.3, 0.0), (1.0, 0.05), (1.0, 3.0), (0.5, 0.2), (0.0, 0.1)])
@pytest.mark.parametrize("seed", range(6))
def test_projection_with_pull_and_entropy(kind, entropy, pull, seed):
    *case, start = hull_case(seed, m=4, kind=kind)
    prior = np.random.default_rng(seed).dirichlet(np.ones(4) * 3)
    check_projection(kind, *case, start, entropy=entropy, pull=pull, prior=prior)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("pull", [1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("seed", range(6))
def test_a_weak_pull_is_no_hindrance(kind, pull, seed):
    *case, _ = hull_case(seed, m=4, kind=kind)
    middle = np.full(4, 0.25)
    lam, _, _ = projected(kind, *case, middle, pull=pull)
    g = hull_gradient(kind, case[0], lam, *case[1:], pull=pull, prior=middle)
    assert lam @ (g - lam @ g) ** 2 < 1e-16  # weights close to 0 have arbitrary derivatives
    free, _, _ = projected(kind, *case, middle)
    costs = [hull_cost(kind, case[0], each, *case[1:]) for each in (lam, free)]
    assert 0 <= costs[0] - costs[1] + 1e-13 <= pull * np.log(4) + 1e-12


# ---------------------------------------------------------------- costs, ranks and prices


@pytest.mark.parametrize("kind", MILD)
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_ranks_costs_and_distances_are_the_dense_ones(kind, zeros, seed):
    layers, teleport, damping = random_layers(seed, zeros=zeros)
    weights = random_weights(np.random.default_rng(seed), layers)
    T = transitions(layers, weights, teleport, damping)
    w = stationary(T)
    problem = problem_of(layers, teleport, damping, kind)
    with problem:
        choice = problem.at(weights[opinions(layers)], np.full(len(w), 1 / len(w)), 1e-13)
        far = problem.distances(choice.mixture, choice.ranks)
        moved = problem.step(choice.mixture, choice.ranks)
        inexact = problem.at(weights[opinions(layers)], np.full(len(w), 1 / len(w)), 1e-3)
    assert choice.ranks == pytest.approx(w, abs=1e-13)
    assert choice.costs == pytest.approx(row_costs(kind, T, weights, weights), abs=1e-13)
    assert choice.value == pytest.approx(cost(kind, layers, weights, teleport, damping), abs=1e-13)
    assert far[w > 1e-12] == pytest.approx(distances(kind, T, w)[w > 1e-12], abs=1e-11)
    assert moved == pytest.approx(choice.ranks @ T, abs=1e-15)
    assert np.abs(inexact.ranks - w).sum() <= inexact.error <= 1e-3


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("seed", range(5))
def test_corrected_values_are_off_by_the_square_of_the_error(kind, seed):
    layers, teleport, damping = random_layers(seed)
    weights = random_weights(np.random.default_rng(seed), layers)
    exact = cost(kind, layers, weights, teleport, damping)
    problem = problem_of(layers, teleport, damping, kind)
    with problem:
        start = np.full(len(teleport), 1 / len(teleport))
        choice = problem.at(weights[opinions(layers)], start, 1e-4)
        prices = problem.prices(choice, np.zeros(len(start)), 1e-12)
        corrected = problem.corrected(choice, prices)
    assert 0 < choice.error <= 1e-4
    assert abs(corrected.value - exact) <= 10 * choice.error**2


COSTS = [
    pytest.param({}, False, id="plain"),
    pytest.param({"entropy": 0.4}, False, id="entropy"),
    pytest.param({"pull": 0.3}, False, id="pull"),
    pytest.param({"pull": 0.2, "entropy": 0.7}, True, id="all-and-orders"),
]


@pytest.mark.parametrize("kind", MILD)
@pytest.mark.parametrize(("costs", "ordered"), COSTS)
@pytest.mark.parametrize("seed", range(4))
def test_derivatives_by_layer_weights(kind, costs, ordered, seed):
    layers, teleport, damping = random_layers(seed, m=3, n=5, silent=0.1)
    has, prior = opinions(layers), prior_of(layers, [1.0, 2.0, 3.0])
    weights = random_weights(np.random.default_rng(seed), layers)
    w = stationary(transitions(layers, weights, teleport, damping))
    low, high = int(np.argmin(w)), int(np.argmax(w))
    order = RankOrder([(low, high), (high, (low + 1) % 5)] if (low + 1) % 5 != high else [(low, high)], 5)
    order.multipliers[:] = 0.3
    extra = {"penalty": order} if ordered else {}
    problem = problem_of(layers, teleport, damping, kind, [1.0, 2.0, 3.0], **costs, **extra)
    with problem:
        choice = problem.at(weights[has], teleport, 1e-14)
        prices = problem.prices(choice, np.zeros(5), 1e-13)
        ours = np.zeros(has.shape)
        ours[has] = problem.of_vertices(choice.ranks) * problem.gradients(weights[has], prices)
    force = (lambda w: order(w)[1]) if ordered else (lambda w: 0.0)
    dense = weight_gradient(kind, layers, weights, teleport, damping, **costs, prior=prior, force=force)

    def value(changed):
        penalty = {"penalty": lambda w: order(w)[0]} if ordered else {}
        return cost(kind, layers, changed, teleport, damping, **costs, prior=prior, **penalty)

    step = 1e-6
    checked = 0
    for i, row in enumerate(has):
        for k, other in zip(np.flatnonzero(row), np.flatnonzero(row)[1:], strict=False):
            way = np.zeros(has.shape)
            way[i, k], way[i, other] = 1.0, -1.0
            slope_ = (value(weights + step * way) - value(weights - step * way)) / (2 * step)
            assert (ours * way).sum() == pytest.approx(slope_, abs=2e-9)
            assert (dense * way).sum() == pytest.approx(slope_, abs=2e-9)
            checked += 1
    assert checked >= 3


@pytest.mark.parametrize("seed", range(6))
def test_the_cost_falls_under_a_stiff_penalty_too(seed):
    """Whole steps are too long here."""
    layers, teleport, damping = random_layers(seed, m=3)
    w = stationary(transitions(layers, prior_of(layers), teleport, damping))
    order = RankOrder([(int(np.argmin(w)), int(np.argmax(w)))], len(w))
    order.stiffness = 3.0
    problem = problem_of(layers, teleport, damping, penalty=order)
    with problem:
        found = blend(problem, problem.prior, teleport, Limits(1e-8, 40))
    assert np.diff(found.values).max() < 1e-8
    assert found.values[-1] < found.values[0] - 0.01


@pytest.mark.parametrize("n", [1, 3, 6])
def test_anderson_ends_a_linear_iteration_in_as_many_steps_as_it_has_coordinates(n):
    rng = np.random.default_rng(n)
    A = 0.9 * rng.dirichlet(np.ones(n), size=n)
    b, x, guess = rng.normal(size=n), np.zeros(n), Anderson(depth=n + 1)
    for _ in range(n + 1):
        x = guess(x, A @ x + b, np.ones(n))
    assert x == pytest.approx(np.linalg.solve(np.eye(n) - A, b), rel=1e-6)


# ---------------------------------------------------------------- orders


def cut(layers, teleport, damping, keep):
    read = as_layers(list(layers))
    return cut_hulls(read.hulls, (1 - damping) * teleport, damping, keep, read.graphs[0])


@pytest.mark.parametrize("seed", range(15))
def test_a_cut_hull_is_all_mixes_that_keep_the_orders(seed):
    layers, teleport, damping = random_layers(seed, n=5, m=3 + seed % 2, silent=0.0)
    layers[:, 2, 2] += 0.1  # an opinion in each layer
    rng = np.random.default_rng(seed)
    pairs = [tuple(rng.choice(5, 2, replace=False).tolist()) for _ in range(1 + seed % 3)]
    rows = damping * shares_of(layers)[:, 2] + (1 - damping) * teleport
    lead = np.array([rows[:, a] - rows[:, b] for a, b in pairs])
    whole = {"A_eq": np.ones((1, len(rows))), "b_eq": [1.0], "bounds": (0, 1)}
    possible = linprog(np.zeros(len(rows)), A_ub=-lead, b_ub=np.zeros(len(pairs)), **whole).status == 0
    if not possible:
        with pytest.raises(InputError, match="no mix of its layers lets vertex 2 put"):
            cut(layers, teleport, damping, {2: pairs})
        return
    hulls, corners = cut(layers, teleport, damping, {2: pairs})
    mixes = corners[2] if 2 in corners else np.eye(len(rows))
    assert (mixes @ lead.T).min() > -1e-12
    assert mixes.sum(axis=1) == pytest.approx(1)
    columns = hulls.indices[hulls.indptr[2] : hulls.indptr[3]]
    assert row_shares(hulls, 2) == pytest.approx((mixes @ shares_of(layers)[:, 2])[:, columns], abs=1e-14)
    for way in rng.normal(size=(12, len(rows))):  # both sets reach equally far in every direction
        furthest = linprog(-way, A_ub=-lead, b_ub=np.zeros(len(pairs)), **whole)
        assert (mixes @ way).max() == pytest.approx(-furthest.fun, abs=1e-9)


def test_cut_hulls_leave_other_vertices_alone():
    layers, teleport, damping = random_layers(1, n=6, m=2, silent=0.3)
    before = as_layers(list(layers)).hulls
    shares = damping * shares_of(layers) + (1 - damping) * teleport
    whole = [i for i, has in enumerate(opinions(layers)) if has.all()]
    pairs = {i: [tuple(np.argsort(-shares[0, i])[[0, -1]].tolist())] for i in whole[:2]}
    hulls, corners = cut(layers, teleport, damping, pairs)
    assert set(corners) <= set(whole[:2])
    for i in set(range(6)) - set(whole[:2]):
        assert (row_shares(hulls, i) == row_shares(before, i)).all()
        mine, old = (h.layer[h.first[i] : h.first[i + 1]].tolist() for h in (hulls, before))
        assert mine == old


def test_an_equality_is_two_orders():
    layers, teleport, damping = random_layers(21, silent=0.05)
    _, corners = cut(layers, teleport, damping, {0: [(0, 2), (2, 0)]})
    rows = damping * shares_of(layers)[opinions(layers)[0], 0] + (1 - damping) * teleport
    assert corners[0] @ (rows[:, 0] - rows[:, 2]) == pytest.approx(0, abs=1e-12)


def test_a_vertex_without_links_gives_the_orders_that_its_teleport_allows():
    layers = np.zeros((2, 3, 3))
    layers[:, 0, 1] = 1.0
    teleport = np.array([0.5, 0.3, 0.2])
    cut(layers, teleport, 0.85, {2: [(0, 1), (1, 2)]})
    corners = cut(layers, teleport, 0.85, {2: [(2, 0)]})[1][2]  # shares of the vertices 0 and 2
    rows = 0.85 * corners + 0.15 * teleport[[0, 2]]
    assert (rows[:, 1] - rows[:, 0]).tolist() == pytest.approx([0.85 - 0.15 * 0.3, 0.0], abs=1e-12)
    with pytest.raises(InputError, match=r"vertex 2 put 2 at or above 0"):
        cut(layers, teleport, 0.1, {2: [(2, 0)]})


def test_rank_orders_cost_as_said():
    order = RankOrder([(0, 1), (2, 1), (3, 0)], 4)
    order.multipliers = np.array([0.5, 0.0, 0.2])
    rng = np.random.default_rng(0)
    for w in rng.dirichlet(np.ones(4), size=6):
        x = 4 * np.array([w[1] - w[0], w[1] - w[2], w[0] - w[3]])
        push = np.maximum(0, order.multipliers + order.stiffness * x)
        value, gradient = order(w)
        assert value == pytest.approx(((push**2 - order.multipliers**2) / (2 * order.stiffness)).sum())
        assert order.violation(w) == pytest.approx(max(0, x.max()))
        for way in rng.normal(size=(3, 4)):
            slope_ = (order(w + 1e-6 * way)[0] - order(w - 1e-6 * way)[0]) / 2e-6
            assert gradient @ way == pytest.approx(slope_, abs=1e-7)
    assert order.violation(np.array([0.2, 0.1, 0.3, 0.4])) == 0


# ---------------------------------------------------------------- layers

TABLE = {
    "from": ["a", "b", "a", "c"],
    "to": ["b", "a", "c", "a"],
    "kind": ["likes", "likes", "hates", "hates"],
}
LIKES, HATES = (["a", "b"], ["b", "a"]), (["a", "c"], ["c", "a"])


def same_layers(one, other):
    assert one.names == other.names
    assert list(one.vertex_names) == list(other.vertex_names)
    for mine, theirs in zip(one.graphs, other.graphs, strict=True):
        assert (mine.to_scipy() != theirs.to_scipy()).nnz == 0


@pytest.fixture
def expected():
    return as_layers({"hates": HATES, "likes": LIKES})


def test_layers_share_their_vertices_by_name(expected):
    assert expected.vertex_names.tolist() == ["a", "b", "c"]
    assert expected.graphs[0].to_scipy().toarray().tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert expected.graphs[1].to_scipy().toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert (len(expected), expected.n, repr(expected)) == (2, 3, "Layers(3 vertices, 2 layers, 4 links)")
    assert as_layers(expected) is expected


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("label", ["kind", 2])
def test_one_table_with_a_column_of_labels(frame, label, expected):
    same_layers(as_layers(frame(TABLE), label=label), expected)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("as_path", [str, Path])
def test_one_file_with_a_column_of_labels(suffix, as_path, tmp_path, expected):
    path = tmp_path / f"edges.{suffix}"
    getattr(pl.DataFrame(TABLE), f"write_{suffix}")(path)
    same_layers(as_layers(as_path(path), label="kind"), expected)


def test_a_column_of_weights_beside_the_labels():
    layers = as_layers(pd.DataFrame({**TABLE, "weight": [1.0, 2.0, 3.0, 4.0]}), label="kind")
    assert [graph.weights.tolist() for graph in layers.graphs] == [[4.0, 3.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    "labels",
    [
        pd.array([10, 9, 10, 9], dtype="Int64"),
        pd.Categorical(["10", "9", "10", "9"], categories=["9", "10"]),
        np.array([10.0, 9.0, 10.0, 9.0]),
    ],
    ids=["integers", "categories", "floats"],
)
def test_labels_of_other_types(labels):
    layers = as_layers(pd.DataFrame({**TABLE, "kind": labels}), label="kind")
    links = {name: graph.n_edges for name, graph in zip(layers.names, layers.graphs, strict=True)}
    assert {str(int(float(name))): n for name, n in links.items()} == {"9": 2, "10": 2}


@pytest.mark.parametrize(
    "labels",
    [
        ["x", None, "y", "y"],
        [1.0, np.nan, 2.0, 2.0],
        pd.array([1, None, 2, 2], dtype="Int64"),
        pd.array(["x", None, "y", "y"], dtype="string"),
    ],
    ids=["objects", "floats", "integers", "strings"],
)
def test_a_missing_label_is_named_by_its_row(labels):
    with pytest.raises(InputError, match="row 2 has no label"):
        as_layers(pd.DataFrame({**TABLE, "kind": labels}), label="kind")


def test_a_missing_label_in_polars():
    with pytest.raises(InputError, match="row 2 has no label"):
        as_layers(pl.DataFrame({**TABLE, "kind": ["x", None, "y", "y"]}), label="kind")


@pytest.mark.parametrize("make", [list, dict], ids=["list", "mapping"])
def test_networkx_graphs(make):
    one, two = nx.DiGraph([("a", "b"), ("b", "a")]), nx.Graph([("a", "d")])
    two.add_node("alone")
    layers = as_layers([one, two] if make is list else {"one": one, "two": two})
    assert layers.names == (("0", "1") if make is list else ("one", "two"))
    assert layers.vertex_names.tolist() == ["a", "alone", "b", "d"]
    assert layers.graphs[1].to_scipy().toarray()[[0, 3], [3, 0]].tolist() == [1, 1]
    assert layers.graphs[1].dangling.tolist() == [False, True, True, False]
    assert layers.union().n_edges == 4


def test_frames_and_files_of_layers(tmp_path):
    paths = [tmp_path / "monday.csv", tmp_path / "tuesday.csv"]
    for path, (sources, targets) in zip(paths, (LIKES, HATES), strict=True):
        pl.DataFrame({"source": sources, "target": targets}).write_csv(path)
    from_files = as_layers([str(paths[0]), paths[1]])
    assert from_files.names == ("monday", "tuesday")
    frames = {
        "monday": pd.DataFrame({"source": LIKES[0], "target": LIKES[1]}),
        "tuesday": pl.DataFrame({"source": HATES[0], "target": HATES[1]}),
    }
    same_layers(from_files, as_layers(frames))
    other = tmp_path / "more"
    other.mkdir()
    (other / "monday.csv").write_bytes(paths[0].read_bytes())
    assert as_layers([paths[0], other / "monday.csv"]).names == (str(paths[0]), str(other / "monday.csv"))


def test_numbers_with_gaps_and_mixed_names():
    assert as_layers([([0, 5], [5, 0]), ([5], [9])]).vertex_names.tolist() == [0, 5, 9]
    mixed = as_layers([(["a"], ["b"]), ([1], [2])])
    assert set(mixed.vertex_names.tolist()) == {"a", "b", 1, 2}
    assert mixed.union().n_edges == 2


def test_iterators_and_matrices():
    A = sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0]]))
    layers = as_layers(each for each in (A, A.toarray(), as_graph(A)))
    assert len(layers) == 3
    assert all(graph.to_scipy().toarray().tolist() == [[0, 2], [0, 0]] for graph in layers.graphs)
    assert layers.union().to_scipy().toarray().tolist() == [[0, 6], [0, 0]]


REFUSED = {
    "shapes": ([np.eye(3), np.eye(4)], {}, "one shape"),
    "names": ({1: np.eye(2), "1": np.eye(2)}, {}, "two layers are named '1'"),
    "signed": ([np.eye(2), as_graph((["a"], ["b"], [-1.0]), signed=True)], {}, "'1' is a signed graph"),
    "tuple": ((np.eye(2), np.eye(2)), {}, "list or a mapping of graphs"),
    "one-matrix": (np.eye(2), {}, "list or a mapping of graphs"),
    "one-graph": (nx.path_graph(3), {}, "list or a mapping of graphs"),
    "one-frame": (pd.DataFrame(TABLE), {}, "label="),
    "text": ("edges.csv", {}, "list or a mapping of graphs"),
    "nothing": (None, {}, "list or a mapping of graphs"),
    "empty": ([], {}, "no layers"),
    "no-names": ({}, {}, "no layers"),
    "column": (pd.DataFrame(TABLE), {"label": "week"}, "no column 'week'; it has 'from'"),
    "position": (pd.DataFrame(TABLE), {"label": 7}, "7"),
    "label-of-lists": ([np.eye(2)], {"label": "kind"}, "one edge table"),
    "negative": ([np.eye(2), -np.eye(2)], {}, "negative weight"),
    "no-edges": (pd.DataFrame({"from": [], "to": [], "kind": []}), {"label": "kind"}, "no edges"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_layers(name):
    data, options, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        as_layers(data, **options)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv"):
        as_layers([tmp_path / "none.csv"])
    with pytest.raises(InputError, match=r"none\.csv"):
        as_layers(tmp_path / "none.csv", label="kind")
