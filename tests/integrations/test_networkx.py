"""PageRank through networkx's dispatch: against dense eigenvectors and networkx itself."""

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexrank.errors import InputError
from apexrank.integrations.networkx import BackendInterface, ConvertedGraph

EXACT = {"tol": 1e-12, "max_iter": 5000}
KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


def ours(graph, **arguments):
    return nx.pagerank(graph, backend="apexrank", **arguments)


def dense_ranks(graph, alpha=0.85, personalization=None, weight="weight", dangling=None):
    """Eigenvector of the dense Google matrix for the eigenvalue 1, link by link."""
    nodes = list(graph)
    n, number = len(nodes), {node: i for i, node in enumerate(nodes)}
    links = np.zeros((n, n))
    for u, v, data in graph.edges(data=True):
        w = 1 if weight is None else data.get(weight, 1)
        links[number[u], number[v]] += w
        if not graph.is_directed() and u != v:
            links[number[v], number[u]] += w
    teleport = np.full(n, 1 / n)
    if personalization is not None:
        teleport = np.array([personalization.get(node, 0) for node in nodes], float)
        teleport /= teleport.sum()
    handed = teleport
    if dangling is not None:
        handed = np.array([dangling.get(node, 0) for node in nodes], float)
        handed /= handed.sum()
    for i in range(n):
        links[i] = links[i] / links[i].sum() if links[i].sum() > 0 else handed
    values, vectors = np.linalg.eig((alpha * links + (1 - alpha) * teleport).T)
    vector = vectors[:, np.argmin(np.abs(values - 1))].real
    return vector / vector.sum()


def assert_exact(graph, **arguments):
    ranks = ours(graph, **EXACT, **arguments)
    assert list(ranks) == list(graph)
    assert {type(rank) for rank in ranks.values()} == {float}
    np.testing.assert_allclose(list(ranks.values()), dense_ranks(graph, **arguments), rtol=0, atol=1e-10)


@st.composite
def graphs(draw):
    """Graphs of every kind, with strings, numbers and tuples as nodes, and all special cases of PageRank."""
    names = ["z", "a", 7, (1, 2), "7", 0, "m"][: draw(st.integers(1, 7))]
    graph = draw(st.sampled_from(KINDS))()
    graph.add_nodes_from(draw(st.permutations(names)))
    node = st.sampled_from(names)
    weight = st.one_of(st.none(), st.sampled_from([0, 1, 2, 0.25, 7.5]))
    for u, v, w in draw(st.lists(st.tuples(node, node, weight), max_size=14)):
        graph.add_edge(u, v, **({} if w is None else {"weight": w}))
    return graph


def node_weights(graph):
    """Weights for some of the nodes, some of them 0, and for an unknown node; at least one is positive."""
    values = st.sampled_from([0, 1, 2.5])
    some = st.dictionaries(st.sampled_from([*graph, "stranger"]), values)
    return st.none() | st.builds(lambda chosen, one: {**chosen, one: 3}, some, st.sampled_from(list(graph)))


@given(st.data())
def test_ranks_are_dense_eigenvectors(data):
    graph = data.draw(graphs())
    assert_exact(
        graph,
        alpha=data.draw(st.sampled_from([0.0, 0.3, 0.85, 0.95])),
        personalization=data.draw(node_weights(graph)),
        dangling=data.draw(node_weights(graph)),
        weight=data.draw(st.sampled_from(["weight", "unheard of", None])),
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_ranks_of_a_larger_graph(kind):
    rng = np.random.default_rng(5)
    graph = kind()
    graph.add_nodes_from(f"page {i}" for i in rng.permutation(120))
    for u, v, w in zip(*rng.integers(0, [[60], [100]], (2, 400)), rng.exponential(size=400), strict=True):
        graph.add_edge(f"page {u}", f"page {v}", weight=w)
    assert_exact(graph)
    graph.__networkx_cache__.clear()
    assert_exact(graph, personalization={"page 3": 1, "page 4": 0}, dangling={"page 119": 2, "page 5": 1})


def test_where_the_dangling_go_matters():
    graph = nx.DiGraph([("a", "b"), ("a", "c"), ("c", "a")])
    nowhere, to_a = ours(graph, **EXACT), ours_again(graph, dangling={"a": 1}, **EXACT)
    assert to_a["a"] > nowhere["a"] + 0.05
    graph.add_edge("b", "a")
    np.testing.assert_allclose(list(to_a.values()), list(ours(graph, **EXACT).values()), rtol=0, atol=1e-11)


def ours_again(graph, **arguments):
    """Call that may use networkx's cached graph, about which networkx warns."""
    with nx.config(warnings_to_ignore={"cache"}):
        return ours(graph, **arguments)


@pytest.mark.parametrize("what", ["personalization", "dangling", "nstart"])
def test_weights_of_nodes(what):
    graph = nx.DiGraph([("a", "b")])
    with pytest.raises(ZeroDivisionError, match=what):
        ours(graph, **{what: {"a": 0, "stranger": 1}})
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match=f"{what} weights must be finite and not negative"):
            ours_again(graph, **{what: {"a": bad, "b": 2.0}})


def test_empty_graph():
    assert ours(nx.Graph()) == {}
    assert ours(nx.MultiDiGraph(), personalization={}) == {}


def test_the_default_steps_are_enough_in_the_worst_case():
    """A cycle of two nodes with all teleport at one: the change shrinks exactly by alpha per step."""
    graph, first = nx.DiGraph([(0, 1), (1, 0)]), {0: 1}
    ranks = ours(graph, personalization=first)
    error = np.abs(np.array(list(ranks.values())) - dense_ranks(graph, personalization=first)).sum()
    assert error <= 1e-6
    with pytest.raises(nx.PowerIterationFailedConvergence) as caught:
        ours_again(graph, personalization=first, max_iter=99)
    assert "99 iterations" in str(caught.value)


def test_no_steps_are_too_few():
    with pytest.raises(nx.PowerIterationFailedConvergence):
        ours(nx.path_graph(3), max_iter=0)


def test_nstart_is_where_iteration_starts():
    graph = nx.DiGraph([(0, 1), (1, 0), (1, 2)])
    answer = ours(graph, **EXACT)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        ours_again(graph, max_iter=2)
    scaled = {node: 3 * rank for node, rank in answer.items()}
    assert ours_again(graph, max_iter=2, nstart=scaled) == pytest.approx(answer, abs=1e-11)


def test_scores_are_within_tol_where_those_of_networkx_are_not():
    graph = nx.gn_graph(200, seed=1)
    exact = dense_ranks(graph)
    errors = [
        np.abs(np.array(list(ranks.values())) - exact).sum() for ranks in (ours(graph), nx.pagerank(graph))
    ]
    assert errors[0] <= 1e-6 < 1e-4 < errors[1]


def test_alpha_one_ends_when_scores_stay():
    graph = nx.Graph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    assert ours(graph, alpha=1, **EXACT) == pytest.approx(
        {"a": 0.25, "b": 0.25, "c": 0.375, "d": 0.125}, abs=1e-9
    )
    with pytest.raises(nx.PowerIterationFailedConvergence):
        ours(nx.path_graph(3), alpha=1)


def test_arguments_by_position():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", 2), ("a", "c", 1), ("c", "a", 1)], weight="w")
    by_name = ours(
        graph,
        alpha=0.7,
        personalization={"a": 1},
        max_iter=300,
        tol=1e-9,
        nstart={"b": 1},
        weight="w",
        dangling={"c": 1},
    )
    by_position = nx.pagerank(
        graph.copy(), 0.7, {"a": 1}, 300, 1e-9, {"b": 1}, "w", {"c": 1}, backend="apexrank"
    )
    assert by_position == by_name
    theirs_ = nx.pagerank(graph, 0.7, {"a": 1}, 300, 1e-12, {"b": 1}, "w", {"c": 1})
    assert by_name == pytest.approx(theirs_, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_kept_graph_serves_calls_without_weights(kind):
    graph = kind(
        [("a", "b", {"weight": 5}), ("a", "b", {"weight": 5}), ("b", "c", {"weight": 0}), ("a", "c")]
    )
    assert_exact(graph)
    with pytest.warns(UserWarning, match="cached graph is being used"):
        assert_exact(graph, weight=None)
    graph.add_edge("c", "a", weight=3)  # which clears the cache
    assert_exact(graph)


def test_views():
    graph = nx.gnp_random_graph(30, 0.1, seed=4, directed=True)
    assert_exact(graph.reverse(copy=False))
    assert_exact(graph.subgraph(range(0, 30, 2)))
    assert_exact(nx.MultiGraph(graph).subgraph(range(20)))
    assert_exact(graph.to_undirected(as_view=True))


@pytest.mark.parametrize(
    ("weight", "says"),
    [
        (-1, "the link from 'b' to 'c' .*negative"),
        (float("nan"), "the link from 'b' to 'c' .*not a number"),
        (float("inf"), "the link from 'b' to 'c' .*inf"),
        ("heavy", "edge attribute 'weight' must be a number, got 'heavy'"),
        (None, "the link from 'b' to 'c' .*missing"),
        (10**400, "edge attribute 'weight' must be a number, got 1000"),
    ],
    ids=["negative", "nan", "inf", "text", "None", "too large"],
)
def test_bad_edge_weights(weight, says):
    graph = nx.DiGraph([("a", "b", {"weight": np.int64(1)}), ("b", "c", {"weight": weight})])
    with pytest.raises(InputError, match=says) as caught:
        ours(graph)
    assert "\n" not in str(caught.value)


def test_functions_as_weights_are_left_to_networkx():
    graph = nx.DiGraph([("a", "b"), ("b", "c")])
    for arguments in ({"weight": len}, {"personalization": None, "weight": len}):
        with pytest.raises(NotImplementedError, match="for the given arguments"):
            ours(graph, **arguments)
    with pytest.raises(NotImplementedError, match="for the given arguments"):
        nx.pagerank(graph, 0.85, None, 100, 1e-6, None, len, backend="apexrank")
    with nx.config(backend_priority=["apexrank"]):
        assert nx.pagerank(graph, weight=len) == nx.pagerank(graph, weight=len, backend="networkx")


def test_a_converted_graph_needs_no_backend_argument():
    graph = nx.DiGraph([("a", "b", {"w": 2}), ("a", "c", {"w": 1})])
    converted = BackendInterface.convert_from_nx(graph, edge_attrs={"w": 1})
    assert nx.pagerank(converted, weight="w") == ours(graph, weight="w")
    with pytest.raises(InputError, match="converted without the edge attribute 'weight'"):
        nx.pagerank(converted)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_back_to_networkx(kind):
    graph = kind(
        [("b", "a", {"w": 2.0}), ("b", "a", {"w": 3.0}), ("a", "c", {"w": 4.0}), ("c", "c", {"w": 5.0})]
    )
    graph.add_node(("x", 1))
    back = BackendInterface.convert_to_nx(BackendInterface.convert_from_nx(graph, edge_attrs={"w": 1}))
    assert type(back) is kind
    assert list(back) == list(graph)
    assert nx.utils.graphs_equal(back, graph)


def test_other_functions_run_on_a_converted_graph_turned_back():
    graph = nx.DiGraph([("a", "b"), ("a", "c")])
    converted = BackendInterface.convert_from_nx(graph)
    with nx.config(fallback_to_nx=True):
        assert nx.in_degree_centrality(converted) == nx.in_degree_centrality(graph)


def test_what_is_no_graph_is_not_turned_back():
    assert BackendInterface.convert_to_nx({"a": 1.0}) == {"a": 1.0}


def test_networkx_knows_the_backend():
    assert "apexrank" in nx.pagerank.backends
    assert "apexrank" not in nx.hits.backends
    assert "L1 distance to the exact scores" in nx.pagerank.__doc__
    assert ConvertedGraph.__networkx_backend__ in nx.config.backends


@pytest.mark.slow
def test_apexrank_does_not_import_networkx():
    code = (
        "import sys, apexrank, apexrank.graph, apexrank.integrations.networkx as backend;"
        "apexrank.graph.as_graph(([0, 1], [1, 0])); backend.get_info();"
        "sys.exit('networkx' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_networkx_imports_no_kernels():
    code = (
        "import sys, networkx; print('numba' in sys.modules, 'apexrank.integrations.networkx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_no_links_count_and_weights_without_end():
    G = nx.DiGraph([(0, 1), (1, 2), (2, 0), (0, 2)])
    assert nx.pagerank(G, alpha=0, backend="apexrank") == pytest.approx(dict.fromkeys(range(3), 1 / 3))
    G = nx.DiGraph(G)
    huge = nx.pagerank(G, personalization={0: 1e308, 1: 1e308}, backend="apexrank")
    assert huge == pytest.approx(nx.pagerank(G, personalization={0: 1, 1: 1}, tol=1e-12), abs=1e-6)
