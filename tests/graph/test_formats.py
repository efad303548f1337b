"""Graph files in other formats: detected by content and name, read as networkx and scipy write them."""

import gzip
import io
import json
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
from scipy import sparse
from scipy.io import mmwrite

from apexrank import InputError
from apexrank.cli.options import _FORMATS
from apexrank.errors import MissingExtraError
from apexrank.graph import as_graph
from apexrank.graph.files import edges_of_file
from apexrank.graph.formats import FORMATS, recognise
from tests.graph.test_files import edges_in, message_of, written

LINKS = [("a", "b", 2.0), ("b", "c", 1.0), ("c", "a", 0.5)]
XML = '<?xml version="1.0"?>\n'


def directed():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(LINKS)
    graph.add_node("alone")
    return graph


def in_text(write, graph):
    file = io.BytesIO()
    write(graph, file)
    return file.getvalue()


def pajek(graph):
    return "".join(f"{line}\n" for line in nx.generate_pajek(graph))


WRITERS = {
    "graphml": lambda graph: in_text(nx.write_graphml, graph),
    "gexf": lambda graph: in_text(nx.write_gexf, graph),
    "gml": lambda graph: in_text(nx.write_gml, graph),
    "pajek": pajek,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("suffix", ["", ".gz", ".txt"])
def test_a_graph_that_networkx_wrote(tmp_path, name, suffix):
    content = WRITERS[name](directed())
    content = content.encode() if isinstance(content, str) else content
    path = written(tmp_path, gzip.compress(content) if suffix == ".gz" else content, f"graph{suffix}")
    assert recognise(path) == name
    graph = as_graph(path)
    assert sorted(graph.labels(np.arange(graph.n)).tolist()) == ["a", "alone", "b", "c"]
    assert sorted(edges_in(path)) == sorted(LINKS)
    assert sorted(edges_in(path, weight=False)) == sorted((a, b, 1.0) for a, b, _ in LINKS)
    undirected = written(tmp_path, WRITERS[name](directed().to_undirected()), "undirected")
    both = [(a, b, w) for x, y, w in LINKS for a, b in ((x, y), (y, x))]
    assert sorted(edges_in(undirected)) == sorted(edges_in(undirected, directed=False)) == sorted(both)
    assert "the graph is undirected" in message_of(as_graph, undirected, directed=True)


@pytest.mark.parametrize("name", ["graphml", "gml"])
def test_the_extra_is_named(tmp_path, monkeypatch, name):
    path = written(tmp_path, WRITERS[name](directed()))
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingExtraError, match=r'files need networkx: pip install "apexrank\[graph\]"$'):
        as_graph(path)


def test_gml_of_repeated_edges_and_of_ids(tmp_path):
    text = "Creator 'x y'\n".replace("'", '"') + "graph [\n directed 1\n node [ id 1 ]\n node [ id 2 ]\n"
    path = written(tmp_path, text + " edge [ source 1 target 2 ]" * 2 + "\n]\n")
    assert edges_in(path) == [(1, 2, 2.0)]


class TestPajek:
    def test_sections(self, tmp_path):
        text = (
            '% by hand\n*Network x\n*Vertices 4\n1 "New York" 0.1 0.2\n2 Rio\n*Arcs :1 "roads"\n1 2 3\n'
            "2 3\n*Arcslist\n4 1 2\n"
        )
        path = written(tmp_path, text, "map.net")
        found = [("4", "New York", 1.0), ("4", "Rio", 1.0), ("New York", "Rio", 3.0), ("Rio", "3", 1.0)]
        assert sorted(edges_in(path)) == found

    def test_labels_that_repeat_are_no_names(self, tmp_path):
        path = written(tmp_path, '*Vertices 3\n1 "x"\n2 "x"\n3 "y"\n*Edgeslist\n1 2 3\n')
        assert sorted(edges_in(path)) == [(1, 2, 1.0), (1, 3, 1.0), (2, 1, 1.0), (3, 1, 1.0)]

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("*Vertices 2\n*Arcs\n1 2\n*Edges\n1 2\n", "has both *Arcs and *Edges"),
            ("*Vertices 2\n*Arcs\n1 3\n", "line 3: a vertex is beyond the 2"),
            ("*Vertices 2\n*Arcs\n0 1\n", "line 3: a vertex is beyond the 2"),
            ("*Vertices 2\n*Arcs\n1 2 much\n", "line 3: '1 2 much' is not a line of *arcs"),
            ("*Vertices 2\n*Arcs\n1\n", "line 3: '1' is not a line of *arcs"),
            ("*Vertices 2\n*Matrix\n0 1\n1 0\n", "line 2: sections *Matrix of Pajek files are not read"),
            ("*Vertices 9999999999\n*Arcs\n1 2\n", "claims 9999999999 vertices"),
            ("*Vertices 2\n7 x\n*Arcs\n1 2\n", "a vertex is beyond the 2"),
            ("*Vertices 2\n*Arcs\n1 2 -3\n", "line 3: the link from 1 to 2 has the negative weight -3"),
        ],
    )
    def test_faults(self, tmp_path, text, says):
        path = written(tmp_path, text)
        message = message_of(as_graph, path)
        assert message.startswith(str(path))
        assert says in message


class TestMatrices:
    matrix = sparse.csr_array(np.array([[0, 2.0, 0], [0, 0, 1.5], [0, 0, 0]]))

    @pytest.mark.parametrize("suffix", ["mtx", "txt.gz"])
    def test_matrix_market(self, tmp_path, suffix):
        file = io.BytesIO()
        mmwrite(file, self.matrix)
        content = gzip.compress(file.getvalue()) if suffix.endswith("gz") else file.getvalue()
        path = written(tmp_path, content, f"a.{suffix}")
        assert edges_in(path) == [(1, 2, 2.0), (2, 3, 1.5)]  # as the file counts
        np.testing.assert_array_equal(as_graph(path).to_scipy().toarray(), self.matrix.toarray())

    def test_symmetric_and_pattern(self, tmp_path):
        head = "%%MatrixMarket matrix coordinate pattern symmetric\n% a comment\n"
        path = written(tmp_path, f"{head}3 3 2\n2 1\n3 2\n")
        links = [(1, 2, 1.0), (2, 1, 1.0), (2, 3, 1.0), (3, 2, 1.0)]
        assert edges_in(path) == edges_in(path, directed=False) == links
        assert as_graph(path).weights is None

    def test_dense(self, tmp_path):
        path = written(tmp_path, "%%MatrixMarket matrix array real general\n2 2\n0\n1\n2\n0\n")
        assert edges_in(path) == [(1, 2, 2.0), (2, 1, 1.0)]

    @pytest.mark.parametrize(
        ("sizes", "says"),
        [
            ("2 3 1\n1 2 1", "an adjacency matrix must be square"),
            ("2 2 1000000000000\n1 2 1", "claims 1000000000000 entries"),
            ("1000000000 1000000000 1\n1 2 1", "claims 1000000000 vertices"),
            ("2 2 1\n1 9 1", "cannot read"),
            ("2 2 2\n1 2 1", "cannot read"),
            ("2 2\n1 2 1", "cannot read"),
            ("", "cannot read"),
        ],
    )
    def test_broken_matrix_market(self, tmp_path, sizes, says):
        path = written(tmp_path, f"%%MatrixMarket matrix coordinate real general\n{sizes}\n")
        assert says in message_of(as_graph, path)

    @pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
    def test_npz_of_scipy(self, tmp_path, kind):
        sparse.save_npz(tmp_path / "a.npz", self.matrix.asformat(kind))
        assert edges_in(tmp_path / "a.npz") == [(0, 1, 2.0), (1, 2, 1.5)]

    def test_npz_of_arrays(self, tmp_path):
        np.savez(tmp_path / "a.npz", indptr=[0, 2, 2, 3], indices=[1, 2, 0], shape=[3, 3])
        assert edges_in(tmp_path / "a.npz") == [(0, 1, 1.0), (0, 2, 1.0), (2, 0, 1.0)]
        np.savez(tmp_path / "b.npz", indptr=[0, 2, 2, 3], indices=[1, 7, 0], shape=[3, 3])
        assert "b.npz is not a graph" in message_of(as_graph, tmp_path / "b.npz")
        np.savez(tmp_path / "c.npz", x=[1])
        assert "needs the arrays indptr, indices and shape" in message_of(as_graph, tmp_path / "c.npz")
        np.savez(tmp_path / "d.npz", indptr=np.array([{}]), indices=[1], shape=[1, 1])
        assert "allow_pickle=False" in message_of(as_graph, tmp_path / "d.npz")


def test_adjacency_lists_are_named_or_called_so(tmp_path):
    text = "# out-links\n1 2 3\n2 1\n4\n"
    links = [(1, 2, 1.0), (1, 3, 1.0), (2, 1, 1.0)]
    path = written(tmp_path, text)
    assert edges_in(path, format="adjacency") == edges_in(written(tmp_path, text, "a.adjlist")) == links
    assert as_graph(path, format="adjacency").names.tolist() == [1, 2, 3, 4]
    assert "line 3: the row has 2 fields" in message_of(as_graph, path)
    names = written(tmp_path, "ann bob 007\n")
    assert edges_in(names, format="adjacency") == [("ann", "007", 1.0), ("ann", "bob", 1.0)]
    assert "has no links" in message_of(as_graph, written(tmp_path, "1,2,3\n"), format="adjacency")
    graph = nx.gnp_random_graph(30, 0.1, seed=1, directed=True)
    path = written(tmp_path, in_text(nx.write_adjlist, graph), "g.adjlist")
    np.testing.assert_array_equal(as_graph(path).to_scipy().toarray(), as_graph(graph).to_scipy().toarray())


class TestJson:
    lines = '{"src": 0, "dst": 1, "w": 2}\n\n{"src": 5, "dst": 0, "w": 0.5}\n'

    @pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.txt", "a.json", "a"])
    def test_json_lines(self, tmp_path, name):
        path = written(tmp_path, self.lines, name)
        assert edges_in(path) == [(0, 1, 1.0), (5, 0, 1.0)]
        assert edges_in(path, weight="w") == [(0, 1, 2.0), (5, 0, 0.5)]
        packed = written(tmp_path, gzip.compress(b"\xef\xbb\xbf" + self.lines.encode()), f"{name}.gz")
        assert edges_in(packed) == [(0, 1, 1.0), (5, 0, 1.0)]
        assert edges_in(path, source="dst", target="src") == [(0, 5, 1.0), (1, 0, 1.0)]

    def test_text_ids(self, tmp_path):
        path = written(tmp_path, '{"from": "a", "to": "Zoë"}\n')
        assert edges_in(path) == [("a", "Zoë", 1.0)]

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ('{"src": 0, "dst": 1}\n\n{"src": 0}\n', "line 3: the target of the edge is missing"),
            (
                '{"src": 0, "dst": 1}\n{"src": 0, "dst": 1\n',
                'line 2: \'{"src": 0, "dst": 1\' is not a JSON object',
            ),
            ('{"src": 0, "dst": 1}\n[0, 1]\n', "line 2: '[0, 1]' is not a JSON object"),
            ('{"src": 0, "dst": 1}\n0 1\n', "line 2: '0 1' is not a JSON object"),
            ('{"src": [0], "dst": 1}\n', "the column 'src' holds lists or objects"),
            ('{"src": 0.5, "dst": 1}\n', "line 1: sources hold the number 0.5"),
            ('{"src": 0, "dst": 1, "weight": "x"}\n', "line 1: the weight 'x' is not a number"),
            ('{"src": 0, "dst": 1, "weight": -1}\n', "line 1: the link from 0 to 1 has the negative weight"),
            ('{"a": 0}\n', "has no column for the target"),
            ("{}\n", "has no edges: write one JSON object a line"),
        ],
    )
    def test_faults(self, tmp_path, text, says):
        path = written(tmp_path, text)
        message = message_of(as_graph, path)
        assert message.startswith(str(path))
        assert says in message

    @pytest.mark.parametrize("indent", [None, 1])
    @pytest.mark.parametrize("wrap", [nx.node_link_data, lambda graph: [{"src": 0, "dst": 1}]])
    def test_documents_are_refused_by_name(self, tmp_path, indent, wrap):
        path = written(tmp_path, json.dumps(wrap(directed()), indent=indent), "graph.txt")
        assert "is a JSON file" in message_of(as_graph, path)

    def test_names_in_brackets_are_no_json(self, tmp_path):
        assert edges_in(written(tmp_path, "{a} {b}\n[1] [2]\n")) == [("[1]", "[2]", 1.0), ("{a}", "{b}", 1.0)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{XML}<html></html>\n", "is an HTML or XML file"),
        (b"\x80\x04\x95\x00", "is a binary file"),
        (b"PAR1\x00", "is a Parquet file: save it under a name that ends in .parquet"),
    ],
)
def test_other_formats_are_refused_by_name(tmp_path, text, says):
    assert says in message_of(as_graph, written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (f"{XML}<graphml><graph>", "GraphML"),
        (f"{XML}<gexf></gexf>", "GEXF"),
        ("graph [ node [ id 1 label", "GML"),
        ("graph [ node [ id 1 label 1 ] edge [ source 1 target 2 ] ]", "GML"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 x\n", "Matrix Market"),
    ],
)
def test_broken_files_name_their_format(tmp_path, text, format):
    path = written(tmp_path, text)
    assert message_of(as_graph, path).startswith(f"cannot read {path} as {format}: ")


@pytest.mark.parametrize(
    "line", ["# " * 4000, "#" * 8000, "% " * 4000, "< " * 4000, "label x " * 900, " \n" * 4000]
)
def test_recognising_takes_no_time(tmp_path, line):
    assert recognise(written(tmp_path, f"{line}\n1 2\n")) == "text"


def test_formats_are_chosen_by_name(tmp_path):
    assert _FORMATS == FORMATS
    path = written(tmp_path, "graph [ x\na b\nc d\n")
    assert "GML" in message_of(as_graph, path)
    assert "the row has 2 fields, the first edge 3" in message_of(as_graph, path, format="text")
    assert "unknown `format` 'xls': use one of text, jsonl" in message_of(as_graph, path, format="xls")
    assert "`format='gml'` is for files" in message_of(as_graph, ([0], [1]), format="gml")
    path = written(tmp_path, WRITERS["graphml"](directed()))
    assert "`source='x'` names a column, but a GraphML graph has none" in message_of(
        as_graph, path, source="x"
    )


class TestParts:
    def test_folders_and_patterns(self, tmp_path):
        folder = tmp_path / "parts"
        folder.mkdir()
        (folder / "_SUCCESS").touch()
        written(folder, "source,target\n1,2\n", "b.csv")
        written(folder, "source,target\n2,3\n3,1\n", "a.csv")
        written(folder, "source,target\n", "empty.csv")
        links = [(1, 2, 1.0), (2, 3, 1.0), (3, 1, 1.0)]
        assert edges_in(folder) == edges_in(f"{folder}/*.csv") == links
        assert edges_in(str(tmp_path / "**" / "[ab].csv")) == links
        assert "no file matches" in message_of(as_graph, str(folder / "*.tsv"))
        written(folder, "source,target,weight\n7,8,1\n8,9,-2\n", "c.csv")
        assert edges_in(folder / "c.csv", signed=False, weight=False)
        message = message_of(as_graph, folder)
        assert message.startswith(f"{folder / 'c.csv'} has the columns 'source', 'target', 'weight', but ")

    def test_errors_name_the_part_and_its_line(self, tmp_path):
        written(tmp_path, "source,target,weight\n1,2,1\n", "a.csv")
        written(tmp_path, "source,target,weight\n1,2,1\n\n2,3,-1\n", "b.csv")
        message = message_of(as_graph, tmp_path)
        assert message.startswith(
            f"{tmp_path / 'b.csv'} line 4: the link from 2 to 3 has the negative weight"
        )
        written(tmp_path, "source,target,weight\n1,x,1\n", "b.csv")
        message = message_of(as_graph, tmp_path)
        assert message.startswith(
            f"ids are whole numbers in {tmp_path / 'a.csv'}, but text in {tmp_path / 'b.csv'}"
        )

    def test_faults_of_frames_name_the_part(self, tmp_path):
        frame = pl.DataFrame({"source": [1.0, 2.0], "target": [2, 3]})
        frame.write_parquet(tmp_path / "1.parquet")
        frame.with_columns(pl.col("source") + 5).write_parquet(tmp_path / "2.parquet")
        assert edges_in(tmp_path) == [(1, 2, 1.0), (2, 3, 1.0), (6, 2, 1.0), (7, 3, 1.0)]
        frame.with_columns(pl.col("source") / 4).write_parquet(tmp_path / "2.parquet")
        assert f"{tmp_path / '2.parquet'} row 1: sources hold the number 0.25" in message_of(
            as_graph, tmp_path
        )
        for file in tmp_path.iterdir():
            file.unlink()
        written(tmp_path, '{"src": "a", "dst": "b", "weight": 1}\n', "1.jsonl")
        written(tmp_path, '{"src": "a", "dst": "c", "weight": "much"}\n', "2.jsonl")
        assert f"{tmp_path / '2.jsonl'} line 1: the weight 'much' is not" in message_of(as_graph, tmp_path)

    def test_a_split_file_has_its_header_in_one_part(self, tmp_path):
        written(tmp_path, "source,target\n1,2\n", "a")
        written(tmp_path, "2,3\n", "b")
        assert "all parts need the same columns" in message_of(as_graph, tmp_path)

    def test_parquet_and_json_parts(self, tmp_path):
        frame = pl.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "weight": [1.0, 2.0]})
        frame.head(1).write_parquet(tmp_path / "1.parquet")
        frame.tail(1).write_parquet(tmp_path / "2.parquet")
        assert edges_in(tmp_path) == [("a", "b", 1.0), ("b", "c", 2.0)]
        (tmp_path / "2.parquet").unlink()
        frame.tail(1).write_ndjson(tmp_path / "2.jsonl")
        assert edges_in(tmp_path) == [("a", "b", 1.0), ("b", "c", 2.0)]
        written(tmp_path, WRITERS["gml"](directed()), "3.gml")
        assert "3.gml is of the format gml, which has no parts" in message_of(as_graph, tmp_path)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (b"a b\nb c\n", [("a", "b", 1.0), ("b", "c", 1.0)]),
            (gzip.compress(b"1,2\n2,1\n", mtime=0), [(1, 2, 1.0), (2, 1, 1.0)]),
            (b'{"from": 1, "to": 2}\n', [(1, 2, 1.0)]),
            (b"*Vertices 2\n*Arcs\n1 2\n", [(1, 2, 1.0)]),
        ],
    )
    def test_standard_input(self, monkeypatch, text, expected):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert edges_in("-") == expected

    def test_standard_input_has_lines(self, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b\nc\n")))
        assert message_of(as_graph, Path("-")).startswith("standard input line 2: the row has 1 field")
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
        assert "standard input has no edges" in message_of(as_graph, "-")


DAMAGED = WRITERS | {
    "jsonl": lambda graph: TestJson.lines,
    "matrix-market": lambda graph: in_text(lambda g, file: mmwrite(file, TestMatrices.matrix), graph),
    "npz": lambda graph: in_text(lambda g, file: sparse.save_npz(file, TestMatrices.matrix), graph),
    "adjacency": lambda graph: "1 2 3\n2 1\n4\n",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_text_is_a_value_or_one_line(tmp_path, name):
    content = DAMAGED[name](directed())
    content = content.encode() if isinstance(content, str) else content
    rng = np.random.default_rng(0)
    for _ in range(100):
        broken = bytearray(content)
        for at in rng.integers(0, len(broken), 2):
            broken[at] = rng.integers(32, 127)
        try:
            edges_of_file(written(tmp_path, bytes(broken[: rng.integers(1, len(broken))])), format=name)
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017
