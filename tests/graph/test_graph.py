"""Graph input: every kind against scipy and networkx, rules for duplicate links and self-loops, error messages."""

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from apexrank import InputError
from apexrank.graph import Graph, InDegree, LpqRank, PageRank, SignedGraph, as_graph
from apexrank.kernels.edges import Links, turned

SOURCES, TARGETS, WEIGHTS = [0, 0, 1, 2, 2, 3], [1, 2, 2, 0, 3, 3], [1.0, 2.0, 0.5, 4.0, 1.0, 3.0]
NAMES = ["ape", "bee", "cat", "dog"]
FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]


def message_of(call, *args, **kwargs):
    with pytest.raises(InputError) as caught:
        call(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    return message


def same(one, other):
    """Whether two graphs have the same arrays, names and types."""
    for name in ("indptr", "indices", "weights", "out_weight", "names"):
        a, b = getattr(one, name), getattr(other, name)
        if (a is None) != (b is None):
            return False
        if a is not None and (a.dtype != b.dtype or a.tolist() != b.tolist()):
            return False
    return True


def is_well_formed(graph):
    assert graph.indptr.dtype == np.int64
    assert graph.indices.dtype == np.int32
    for vertex in range(graph.n):
        sources = graph.indices[graph.indptr[vertex] : graph.indptr[vertex + 1]]
        assert (np.diff(sources) > 0).all()
    assert graph.weights is None or (graph.weights > 0).all()
    dense = graph.to_scipy().toarray()
    np.testing.assert_allclose(graph.out_weight, dense.sum(axis=1), rtol=1e-14)
    assert graph.dangling.tolist() == (dense.sum(axis=1) == 0).tolist()
    assert graph.n_edges == (dense != 0).sum()
    return dense


@st.composite
def edge_lists(draw, values=(0.0, 0.5, 1.0, 2.0, 3.0)):
    weights = st.sampled_from(values)
    n = draw(st.integers(1, 8))
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex, weights), max_size=40))
    columns = [np.array([edge[i] for edge in edges]) for i in range(3)]
    return n, columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2].astype(float)


class TestBuilding:
    @given(edge_lists(), st.booleans())
    def test_weighted_sums_are_those_of_scipy(self, edges, is_sorted):
        n, s, t, w = edges
        if is_sorted:
            order = np.argsort(s, kind="stable")
            s, t, w = s[order], t[order], w[order]
        dense = is_well_formed(Graph.from_edges(s, t, w, n=n))
        np.testing.assert_array_equal(dense, sparse.coo_array((w, (s, t)), shape=(n, n)).toarray())

    @given(edge_lists())
    def test_without_weights_repeated_edges_are_counted_or_not(self, edges):
        n, s, t, _ = edges
        counts = np.zeros((n, n))
        np.add.at(counts, (s, t), 1)
        np.testing.assert_array_equal(is_well_formed(Graph.from_edges(s, t, n=n)), counts)
        once = Graph.from_edges(s, t, n=n, repeated="once")
        assert once.weights is None
        np.testing.assert_array_equal(is_well_formed(once), counts > 0)

    @given(edge_lists())
    def test_once_keeps_the_largest_weight(self, edges):
        n, s, t, w = edges
        largest = np.zeros((n, n))
        np.maximum.at(largest, (s, t), w)
        np.testing.assert_array_equal(
            is_well_formed(Graph.from_edges(s, t, w, n=n, repeated="once")), largest
        )

    @given(edge_lists())
    def test_undirected_edges_count_both_ways_and_loops_once(self, edges):
        n, s, t, w = edges
        dense = np.zeros((n, n))
        np.add.at(dense, (s, t), w)
        expected = dense + np.tril(dense, -1).T + np.triu(dense, 1).T
        graph = Graph.from_edges(s, t, w, n=n, directed=False)
        np.testing.assert_array_equal(is_well_formed(graph), expected)

    @given(edge_lists())
    def test_self_loops_can_be_dropped(self, edges):
        n, s, t, w = edges
        dense = np.zeros((n, n))
        np.add.at(dense, (s, t), w)
        np.fill_diagonal(dense, 0)
        for directed, expected in ((True, dense), (False, dense + dense.T)):
            graph = Graph.from_edges(s, t, w, n=n, self_loops="drop", directed=directed)
            np.testing.assert_array_equal(is_well_formed(graph), expected)

    @given(edge_lists(), st.sampled_from([np.int8, np.uint16, np.int32, np.int64, np.uint64, ">i4"]))
    def test_types_and_layouts_of_numbers_do_not_matter(self, edges, dtype):
        n, s, t, w = edges
        expected = Graph.from_edges(s, t, w, n=n)
        both = np.stack([s, t], axis=1).astype(dtype)
        assert same(Graph.from_edges(both[:, 0], both[:, 1], w, n=n), expected)
        assert same(Graph.from_edges(s.astype(dtype), t.astype(np.int32), w.tolist(), n=n), expected)

    def test_frozen_input_is_read_and_left_alone(self):
        arrays = [np.array(values) for values in (SOURCES[::-1], TARGETS[::-1], WEIGHTS[::-1])]
        copies = [array.copy() for array in arrays]
        for array in arrays:
            array.flags.writeable = False
        assert same(Graph.from_edges(*arrays), Graph.from_edges(SOURCES, TARGETS, WEIGHTS))
        assert all((a == b).all() for a, b in zip(arrays, copies, strict=True))

    def test_arrays_of_a_graph_cannot_be_written(self):
        graph = Graph.from_edges(SOURCES, TARGETS, WEIGHTS, names=NAMES)
        for array in (
            graph.indptr,
            graph.indices,
            graph.weights,
            graph.out_weight,
            graph.names,
            graph.dangling,
        ):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        with pytest.raises(AttributeError):
            graph.weights = None

    def test_a_pattern_takes_four_bytes_a_link(self):
        rng = np.random.default_rng(0)
        links = rng.permutation(100 * 100)[:5000]
        graph = Graph.from_edges(links // 100, links % 100, np.ones(5000), n=100)
        assert graph.weights is None
        assert graph.nbytes == 4 * 5000 + 8 * 101 + 8 * 100

    def test_n_and_names_add_vertices_without_links(self):
        assert Graph.from_edges([0], [1], n=4).n == 4
        graph = Graph.from_edges([0], [1], names=NAMES)
        assert (graph.n, graph.n_edges, graph.dangling.tolist()) == (4, 1, [False, True, True, True])
        assert Graph.from_edges([], [], n=2).n_edges == 0

    def test_weights_of_zero_are_no_links_but_keep_their_vertices(self):
        graph = as_graph((["a", "b"], ["b", "c"], [0, 2]))
        assert (graph.names.tolist(), graph.n_edges) == (["a", "b", "c"], 1)

    def test_turning_round(self):
        graph = Graph.from_edges(SOURCES, TARGETS, WEIGHTS, names=NAMES)
        back = graph.reversed()
        assert graph.reversed() is back
        assert back.names.tolist() == NAMES
        np.testing.assert_array_equal(back.to_scipy().toarray(), graph.to_scipy().toarray().T)
        np.testing.assert_array_equal(back.out_weight, graph.to_scipy().sum(axis=0))
        assert same(back.reversed(), graph)
        assert Graph.from_edges(SOURCES, TARGETS).reversed().weights is None

    def test_turning_links_of_many_rows_into_few(self):
        links = turned(
            Links(np.array([0, 2, 3]), np.array([0, 1, 0], dtype=np.int32), np.array([1.0, 2.0, 3.0]))
        )
        assert [part.tolist() for part in links] == [[0, 2, 3], [0, 1, 0], [1.0, 3.0, 2.0]]


class TestInputs:
    @pytest.fixture
    def expected(self):
        return Graph.from_edges(SOURCES, TARGETS, WEIGHTS)

    @pytest.fixture
    def named(self):
        return Graph.from_edges(SOURCES, TARGETS, WEIGHTS, names=NAMES)

    @pytest.mark.parametrize("kind", FORMATS)
    @pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
    def test_sparse(self, expected, kind, make):
        matrix = make(sparse.coo_array((WEIGHTS, (SOURCES, TARGETS)), shape=(4, 4)))
        assert same(as_graph(matrix.asformat(kind)), expected)
        ones = make(sparse.coo_array((np.ones(6, dtype=bool), (SOURCES, TARGETS)), shape=(4, 4)))
        assert same(as_graph(ones.asformat(kind)), Graph.from_edges(SOURCES, TARGETS))
        assert same(as_graph(matrix.asformat(kind), weight=False), Graph.from_edges(SOURCES, TARGETS))

    def test_sparse_with_zeros_and_repeated_entries(self):
        matrix = sparse.coo_array(([1.0, 0.0, 2.0], ([0, 1, 0], [1, 0, 1])), shape=(3, 3))
        assert same(as_graph(matrix), Graph.from_edges([0], [1], [3.0], n=3))
        assert matrix.nnz == 3

    @pytest.mark.parametrize("dtype", [bool, np.int8, np.float32, np.float64])
    def test_dense(self, dtype):
        dense = np.zeros((4, 4), dtype=dtype)
        dense[SOURCES, TARGETS] = 1
        assert same(as_graph(dense), Graph.from_edges(SOURCES, TARGETS))

    def test_networkx(self, named):
        graph = nx.DiGraph()
        edges = [(NAMES[s], NAMES[t], w) for s, t, w in zip(SOURCES, TARGETS, WEIGHTS, strict=True)]
        graph.add_weighted_edges_from(edges[::-1])
        assert same(as_graph(graph), named)
        assert as_graph(graph, weight=False).weights is None
        nx.set_edge_attributes(graph, 7, "visits")
        assert as_graph(graph, weight="visits").weights.tolist() == [7.0] * 6

    @given(st.integers(0, 10**6), st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]))
    def test_networkx_as_its_own_matrix(self, seed, make):
        rng = np.random.default_rng(seed)
        graph = make()
        graph.add_nodes_from(range(6))
        for s, t in rng.integers(0, 6, (12, 2)).tolist():
            # an edge without a weight counts 1
            graph.add_edge(s, t, **({"weight": float(rng.integers(1, 4))} if rng.random() < 0.7 else {}))
        expected = nx.to_scipy_sparse_array(graph, weight="weight", dtype=float).toarray()
        np.testing.assert_array_equal(is_well_formed(as_graph(graph)), expected)

    def test_networkx_names_that_cannot_be_compared_stay_in_order(self):
        graph = as_graph(nx.DiGraph([("b", 1), (1, (2, 3))]))
        assert graph.names.tolist() == ["b", 1, (2, 3)]
        assert graph.number((2, 3)) == 2
        assert graph.label(2) == (2, 3)

    def test_networkx_numbers_are_sorted(self):
        assert as_graph(nx.DiGraph([(2, 0), (0, 1)])).names is None
        assert as_graph(nx.DiGraph([(20, 5), (5, 10)])).names.tolist() == [5, 10, 20]

    def test_igraph(self, named, expected):
        graph = igraph.Graph(4, list(zip(SOURCES, TARGETS, strict=True)), directed=True)
        assert same(as_graph(graph), Graph.from_edges(SOURCES, TARGETS))
        graph.es["weight"] = WEIGHTS
        assert same(as_graph(graph), expected)
        graph.vs["name"] = NAMES
        assert same(as_graph(graph), named)
        graph.es["visits"] = [7, None, 7, 7, 7, 7]
        assert sorted(as_graph(graph, weight="visits").weights.tolist()) == [1.0, *[7.0] * 5]
        assert as_graph(graph, weight=False).weights is None

    def test_undirected_libraries(self):
        pairs = [(0, 1), (1, 2), (2, 2)]
        expected = Graph.from_edges([0, 1, 1, 2, 2], [1, 0, 2, 1, 2])
        assert same(as_graph(nx.Graph(pairs)), expected)
        assert same(as_graph(igraph.Graph(3, pairs)), expected)
        assert same(as_graph(nx.DiGraph(pairs), directed=False), expected)

    @pytest.mark.parametrize(
        "make",
        [
            pd.DataFrame,
            pl.DataFrame,
            lambda columns: pd.DataFrame(columns).astype({"source": "category", "target": "string"}),
            lambda columns: pl.DataFrame(columns).with_columns(pl.col("source").cast(pl.Categorical)),
            lambda columns: tuple(map(np.array, columns.values())),
            lambda columns: tuple(columns.values()),
            lambda columns: tuple(map(pd.Series, columns.values())),
            lambda columns: tuple(map(pl.Series, columns.values())),
        ],
        ids=[
            "pandas",
            "polars",
            "category",
            "categorical",
            "arrays",
            "lists",
            "pandas-series",
            "polars-series",
        ],
    )
    def test_tables_and_tuples(self, named, expected, make):
        text = {
            "source": [NAMES[s] for s in SOURCES],
            "target": [NAMES[t] for t in TARGETS],
            "weight": WEIGHTS,
        }
        assert same(as_graph(make(text)), named)

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
    @pytest.mark.parametrize("ids", [[0, 1, 2, 3], [3, 7, 8, 20], [-5, 0, 9, 2**40]])
    @pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
    def test_whole_numbers(self, make, ids, dtype):
        if dtype == "int32":
            ids = [min(each, 2**31 - 1) for each in ids]
        known = np.array(ids, dtype=dtype)
        frame = make({"from": known[SOURCES], "to": known[TARGETS], "rating": WEIGHTS})
        graph = as_graph(frame)
        assert same(graph, Graph.from_edges(SOURCES, TARGETS, WEIGHTS, names=ids))
        assert graph.label(3) == ids[3]

    def test_text_beside_numbers_is_text(self):
        graph = as_graph(([1, 2], ["x", "1"]))
        assert graph.names.tolist() == ["1", "2", "x"]

    def test_ids_of_any_kind(self):
        graph = as_graph(([("a", 1), "z"], [("a", 1), ("b", 2)]))
        assert set(graph.names.tolist()) == {("a", 1), ("b", 2), "z"}
        graph = as_graph(([2**70, 1], [1, 1]))
        assert graph.names.tolist() == [1, 2**70]

    def test_graphs_are_returned_as_they_are(self, named):
        assert as_graph(named) is named
        signed = as_graph(named, signed=True)
        assert signed.positive is named
        assert (signed.negative.n, signed.negative.n_edges) == (4, 0)
        assert as_graph(signed) is signed

    def test_a_symmetric_matrix_holds_both_directions_already(self):
        one_way = sparse.coo_array(([2.0, 3.0], ([0, 1], [1, 1])), shape=(2, 2)).tocsr()
        both = sparse.csr_array([[0.0, 2.0], [2.0, 3.0]])
        assert same(as_graph(both, directed=False), as_graph(both))
        assert same(as_graph(one_way, directed=False), as_graph(both))
        assert same(as_graph(one_way.toarray(), directed=False), as_graph(both))


class TestSigned:
    def test_ratings(self):
        frame = pl.DataFrame(
            {"source": [1, 2, 3, 1, 1], "target": [2, 3, 1, 3, 2], "rating": [5, -2, 0, 1, -1]}
        )
        trust, distrust = as_graph(frame, signed=True)
        assert trust.names.tolist() == distrust.names.tolist() == [1, 2, 3]
        assert trust.to_scipy().toarray().tolist() == [[0, 5, 1], [0, 0, 0], [0, 0, 0]]
        assert distrust.to_scipy().toarray().tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]

    def test_signs_alone_are_patterns(self):
        graph = as_graph(np.array([[0, 1], [-1, 0]]), signed=True)
        assert isinstance(graph, SignedGraph)
        assert graph.positive.weights is None
        assert graph.negative.weights is None
        assert graph.negative.indices.tolist() == [1]

    @given(edge_lists((-2.0, -1.0, 0.0, 1.0, 3.0)))
    def test_both_parts_are_sums_of_their_own(self, edges):
        n, s, t, w = edges
        signed = as_graph(sparse.coo_array((w, (s, t)), shape=(n, n)), signed=True)
        for part, kept in ((signed.positive, np.maximum(w, 0)), (signed.negative, np.maximum(-w, 0))):
            dense = np.zeros((n, n))
            np.add.at(dense, (s, t), kept)
            np.testing.assert_array_equal(is_well_formed(part), dense)

    def test_repeated_edges_of_both_signs_are_an_error_when_asked(self):
        edges = (["a", "b", "a"], ["b", "a", "b"], [1, 1, -1])
        assert as_graph(edges, signed=True, repeated="once").negative.n_edges == 1
        text = message_of(as_graph, edges, signed=True, repeated="error")
        assert text.startswith("position 2: the link from 'a' to 'b' occurs already (position 0)")

    def test_without_weights(self):
        assert "weight=" in message_of(as_graph, ([0], [1]), signed=True)


class TestNames:
    @pytest.fixture
    def graph(self):
        return Graph.from_edges(SOURCES, TARGETS, names=NAMES)

    def test_there_and_back(self, graph):
        assert graph.number("cat") == 2
        assert graph.numbers(["dog", "ape", "dog"]).tolist() == [3, 0, 3]
        assert graph.numbers(np.array(["bee"])).dtype == np.int64
        assert graph.numbers(pl.Series(["bee"])).tolist() == graph.numbers("bee").tolist() == [1]
        assert graph.numbers([]).tolist() == []
        assert Graph.from_edges([0], [1]).numbers(1).tolist() == [1]
        assert graph.labels([3, 0]).tolist() == ["dog", "ape"]

    @pytest.mark.parametrize("names", [None, [10, 20, 30, 40], [40, 10, 30, 20], [-1, 0, 7, 2**62]])
    def test_whole_numbers(self, names):
        graph = Graph.from_edges(SOURCES, TARGETS, names=names)
        known = names or [0, 1, 2, 3]
        assert graph.numbers(known[::-1]).tolist() == [3, 2, 1, 0]
        assert graph.numbers(np.array(known, dtype=object)).tolist() == [0, 1, 2, 3]
        assert [graph.label(i) for i in range(4)] == known
        assert graph.labels(np.arange(4)).tolist() == known
        for unknown in (max(known) + 1, -7, 2**80, "1", 1.5, None, [1], True):
            assert repr(unknown) in message_of(graph.number, unknown)

    def test_unknown_names_say_what_was_meant(self, graph):
        assert message_of(graph.number, "catt") == "vertex 'catt' is not in the graph; did you mean 'cat'?"
        text = message_of(graph.numbers, ["ape", "xyzzy", "qq"], what="trusted")
        assert text == "trusted vertex 'xyzzy' and 1 more are not in the graph"
        assert message_of(Graph.from_edges([0], [1]).number, 2).endswith("its vertices are 0 to 1")
        assert message_of(Graph.from_edges([0], [1], names=[5, 70]).number, "70").endswith("did you mean 70?")

    def test_close_names_among_many(self):
        names = [f"page-{i}" for i in range(50_000)]
        text = message_of(Graph.from_edges([0], [1], names=names).number, "page-4242x")
        assert "did you mean 'page-4242" in text

    def test_names_0_to_n_are_no_names(self):
        assert Graph.from_edges([0], [1], names=[0, 1]).names is None
        assert Graph.from_edges([0], [1], names=[1, 0]).names.tolist() == [1, 0]


class TestSummary:
    @given(edge_lists((1.0, 2.0)))
    def test_against_networkx(self, edges):
        n, s, t, w = edges
        graph = Graph.from_edges(s, t, w, n=n)
        other = nx.DiGraph()
        other.add_nodes_from(range(n))
        other.add_edges_from(zip(s.tolist(), t.tolist(), strict=True))
        assert graph.summary() == {
            "vertices": n,
            "edges": other.number_of_edges(),
            "weighted": graph.weights is not None,
            "dangling": sum(degree == 0 for _, degree in other.out_degree()),
            "isolated": len(list(nx.isolates(other))),
            "self_loops": nx.number_of_selfloops(other),
            "weak_components": nx.number_weakly_connected_components(other),
            "strong_components": nx.number_strongly_connected_components(other),
            "largest_in_degree": max(degree for _, degree in other.in_degree()),
            "largest_out_degree": max(degree for _, degree in other.out_degree()),
            "bytes": graph.nbytes,
        }

    def test_repr(self):
        assert repr(Graph.from_edges([0], [1])) == "Graph(2 vertices, 1 links)"
        assert repr(Graph.from_edges([0], [1], [3])) == "Graph(2 vertices, 1 links, weighted)"


class TestErrors:
    @pytest.mark.parametrize(
        ("data", "says"),
        [
            (
                (["a", "b"], ["b", "c"], [1, -2]),
                "position 1: the link from 'b' to 'c' has the negative weight -2",
            ),
            (
                (["a", "b"], ["b", "c"], [1, np.nan]),
                "position 1: the link from 'b' to 'c' has a weight that is missing",
            ),
            (
                (["a", "b"], ["b", "c"], [np.inf, 1]),
                "position 0: the link from 'a' to 'b' has a weight that is inf",
            ),
            (
                (["a", "b"], ["b", "c"], [1, None]),
                "position 1: the link from 'b' to 'c' has a weight that is missing",
            ),
            ((["a", "b"], ["b", "c"], [1, "x"]), "position 1: the weight 'x' is not a number"),
            ((["a", "b"], ["b", "c"], np.array(["1", "x"])), "weights must be numbers"),
            ((["a", "b"], ["b", "c"], [1]), "weights must be one number for each of 2 edges"),
            ((["a", None], ["b", "c"]), "position 1: the source of the edge is missing"),
            ((["a", "b"], ["", "c"]), "position 0: the target of the edge is missing"),
            (([1, 2], [np.nan, 2.0]), "position 0: the target of the edge is missing"),
            (([1, 2], np.array([1.5, 2.0])), "targets hold the number 1.5: ids are text or whole numbers"),
            (([[1, 2]], [3]), "ids must be text, numbers or other hashable objects"),
            (([], []), "there are no edges"),
            (([1, 2], [3]), "there are 2 sources but 1 targets"),
            (np.ones((2, 3)), "must be square, got shape (2, 3); for a list of edges"),
            (np.ones(3), "must be square, got shape (3,)"),
            (sparse.csr_array(np.ones((2, 4))), "must be square, got shape (2, 4)"),
            (np.array([["a"]]), "must hold numbers"),
            (np.zeros((0, 0)), "the graph has no vertices"),
            (nx.DiGraph(), "the graph has no vertices"),
            (igraph.Graph(0), "the graph has no vertices"),
            (
                np.array([[0, -1], [0, 0]]),
                "the link from 0 to 1 has the negative weight -1; remove it, or read",
            ),
            (np.array([[0, np.nan], [0, 0]]), "the link from 0 to 1 has a weight that is missing"),
            ([[0, 1], [1, 0]], "cannot read list as a graph"),
            (42, "cannot read int as a graph"),
            (pl.LazyFrame({"source": [1], "target": [2]}), "cannot read LazyFrame as a graph"),
            (
                pl.DataFrame({"source": [[1]], "target": ["b"]}),
                "ids must be text, numbers or other hashable objects",
            ),
            ("a\0b", "embedded null byte"),
        ],
        ids=range(28),
    )
    def test_data(self, data, says):
        assert says in message_of(as_graph, data)

    def test_numbers(self):
        build = Graph.from_edges
        text = message_of(build, [0, 1], [1, 3], n=3)
        assert text == "position 1: the link from 1 to 3 has a target outside the vertices 0 to 2"
        assert "position 0: the link from -1 to 0 has a source" in message_of(build, [-1], [0])
        assert "sources must be whole vertex numbers" in message_of(build, [0.5], [1])
        assert "sources must be whole vertex numbers" in message_of(build, ["a"], [1])
        assert "2 sources but 1 targets" in message_of(build, [0, 1], [1])
        assert "no vertices" in message_of(build, [], [])
        assert "no vertices" in message_of(build, [], [], n=0)
        for n in (-3, 2.5, "2"):
            assert f"`n` must be a whole number of vertices, got {n!r}" in message_of(build, [0], [1], n=n)
        assert "3 names for 2 vertices" in message_of(build, [0], [1], n=2, names=list("abc"))
        assert "two vertices are named 'a'" in message_of(build, [0], [1], names=["a", "a"])
        assert "the sum of the weights overflows" in message_of(build, [0, 0], [1, 1], [1.7e308, 1.7e308])

    def test_options(self):
        edges = ([0], [1])
        assert "unknown `repeated` 'twice': use one of sum, once, error" in message_of(
            as_graph, edges, repeated="twice"
        )
        assert "unknown `self_loops` 'no': use one of keep, drop" in message_of(
            as_graph, edges, self_loops="no"
        )
        assert "`source='a'` names a column, but a tuple" in message_of(as_graph, edges, source="a")
        assert "`weight='w'` names a column, but a matrix" in message_of(as_graph, np.eye(2), weight="w")
        assert "`target=1` names a column, but a networkx" in message_of(as_graph, nx.path_graph(2), target=1)
        assert "undirected" in message_of(as_graph, nx.path_graph(2), directed=True)

    def test_repeated(self):
        text = message_of(as_graph, (["b", "a", "b"], ["c", "b", "c"]), repeated="error")
        assert text.startswith("position 2: the link from 'b' to 'c' occurs already (position 0); remove one")
        text = message_of(as_graph, (["b", "c"], ["c", "b"]), repeated="error", directed=False)
        assert text.startswith("position 1: the link from 'c' to 'b' occurs already (position 0)")
        assert as_graph((["b", "c"], ["c", "b"]), repeated="error").n_edges == 2
        # an edge of weight 0 is none, and a dropped loop neither
        assert as_graph(([0, 0], [1, 1], [0, 2]), repeated="error").n_edges == 1
        assert as_graph(([0, 0, 0], [0, 0, 1]), repeated="error", self_loops="drop").n_edges == 1
        multi = nx.MultiDiGraph([("a", "b"), ("a", "b")])
        assert message_of(as_graph, multi, repeated="error").startswith(
            "the link from 'a' to 'b' occurs already;"
        )

    def test_attributes(self):
        graph = nx.DiGraph([("a", "b")])
        assert "no edge has the attribute 'w'" in message_of(as_graph, graph, weight="w")
        graph["a"]["b"]["weight"] = "much"
        assert "edge 'a' to 'b': the weight 'much' is not a number" in message_of(as_graph, graph)
        graph["a"]["b"]["weight"] = -1
        assert "the link from 'a' to 'b' has the negative weight -1" in message_of(as_graph, graph)
        other = igraph.Graph(2, [(0, 1)])
        assert "no edge has the attribute 'w'" in message_of(as_graph, other, weight="w")
        other.vs["name"] = ["x", "x"]
        assert "two vertices are named 'x'" in message_of(as_graph, other)


@pytest.mark.parametrize("option", [{"directed": False}, {"self_loops": "drop"}])
def test_a_graph_that_is_ready_takes_no_options(option):
    with pytest.raises(InputError, match="a Graph is already built"):
        as_graph(Graph.from_edges([0, 1], [1, 1]), **option)


def test_numbers_as_python_objects_are_read():
    weights = np.array([[0.0, 2.5], [1.0, 0.0]])
    np.testing.assert_array_equal(as_graph(weights.astype(object)).weights, as_graph(weights).weights)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (np.ones((3, 1)) + 1j, "Complex data not supported"),
        (np.ones((3, 0)), "0 feature"),
        (np.full((3, 2), np.nan), "NaN"),
    ],
    ids=["complex", "empty", "nan"],
)
def test_what_is_wrong_with_any_table_comes_before_its_shape(table, says):
    assert says in message_of(as_graph, table)


FORMATS = ["coo", "csr", "lil", "dok", "dia"]


@pytest.mark.parametrize("kind", [np.array, *(getattr(sparse, f"{name}_array") for name in FORMATS)])
def test_ranks_say_that_a_matrix_has_negative_entries(kind):
    matrix = kind([[0.0, 1.0], [-2.0, 0.0]])
    for rank in (PageRank(), LpqRank(), InDegree()):
        assert "Negative values in data: links" in message_of(rank.fit, matrix)
    assert PageRank().fit(abs(matrix)).n_features_in_ == 2


def test_a_rank_has_no_number_of_vertices_before_it_is_fitted():
    assert not hasattr(PageRank(), "n_features_in_")
