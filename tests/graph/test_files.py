"""Edge files: layouts, choice of columns, and errors that name the malformed line."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apexrank import InputError
from apexrank.graph import as_graph
from apexrank.graph.edges import choose_columns
from apexrank.graph.files import edges_of_file

SNAP = "# Directed graph: votes\n# FromNodeId\tToNodeId\n30\t1412\n30\t3352\n1412\t30\n"
SNAP_EDGES = [(30, 1412, 1.0), (30, 3352, 1.0), (1412, 30, 1.0)]


def written(folder, text, name="edges.txt"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def edges_in(path, **options):
    """Edges by name, in the order of the vertex numbers."""
    graph = as_graph(path, **options)
    rows, columns = graph.to_scipy().nonzero()
    names = graph.labels(np.arange(graph.n)).tolist()
    weights = graph.to_scipy().data.tolist()
    return [(names[s], names[t], w) for s, t, w in zip(rows, columns, weights, strict=True)]


def message_of(call, *args, **kwargs):
    with pytest.raises(InputError) as caught:
        call(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    return message


class TestLayouts:
    @pytest.mark.parametrize(
        "change",
        [
            lambda text: text,
            lambda text: text.replace("\t", " "),
            lambda text: text.replace("\t", ","),
            lambda text: text.replace("\t", ";"),
            lambda text: text.replace("\t", ", "),
            lambda text: text.replace("\t", " \t  "),
            lambda text: text.replace("#", "%"),
            lambda text: text.replace("\n30", "\n   30"),
            lambda text: text.replace("\n", "\r\n"),
            lambda text: text.replace("\n", "  \n"),
            lambda text: text.replace("\n", "\n\n"),
            lambda text: text.replace("\n", "\n  \n") + "\n\n",
            lambda text: text.replace("1412\t30", "# more\n1412\t30"),
            lambda text: text.rstrip("\n"),
            lambda text: "\ufeff" + text,
            lambda text: text.split("\n", 2)[2],
            lambda text: "\ufeff" + text.split("\n", 2)[2],
            lambda text: "\ufeff" + text.split("\n", 2)[2].replace("\t", "  "),
            lambda text: "\n\n" + text.split("\n", 2)[2],
            lambda text: gzip.compress(text.encode()),
            lambda text: gzip.compress(text.replace("\t", "   ").replace("\n", "\r\n").encode()),
        ],
        ids=range(21),
    )
    def test_variants_of_snap(self, tmp_path, change):
        assert edges_in(written(tmp_path, change(SNAP))) == SNAP_EDGES

    @pytest.mark.parametrize(
        "head", ["source,target\n", "user,page\n", "# by hand\nsrc,dst\n", "", "From,TO\n"]
    )
    def test_header_over_whole_numbers(self, tmp_path, head):
        path = written(tmp_path, head + "3,4\n4,3\n")
        assert edges_in(path) == [(3, 4, 1.0), (4, 3, 1.0)]

    def test_text_ids(self, tmp_path):
        text = "ann bob\nbob  cy\n"
        expected = [("ann", "bob", 1.0), ("bob", "cy", 1.0)]
        assert edges_in(written(tmp_path, text)) == expected
        assert edges_in(written(tmp_path, "source,target\nann,bob\nbob, cy\n")) == expected
        for head in ("# c\n# d\n", "\n\n", "# c\n\n", "\ufeff# c\n"):
            assert edges_in(written(tmp_path, f"{head}source target\n{text}")) == expected
            assert edges_in(written(tmp_path, f"{head}source target\n{text.replace('  ', ' ')}")) == expected
        assert edges_in(written(tmp_path, "# c\nsource,target\n# d\nann,bob\nbob,cy\n")) == expected
        # a CSV file of text has a header, whatever its names
        assert edges_in(written(tmp_path, "who,whom\nann,bob\nbob,cy\n", "edges.csv")) == expected
        assert edges_in(written(tmp_path, "who\twhom\nann\tbob\nbob\tcy\n", "edges.tsv")) == expected
        # the name of a column makes the first line a header
        path = written(tmp_path, "who whom\nann bob\nbob cy\n")
        assert edges_in(path, source="who", target="whom") == expected
        assert len(edges_in(path)) == 3

    def test_names_with_blanks_quotes_and_marks(self, tmp_path):
        tabs = written(tmp_path, "New York\tLos Angeles\nLos Angeles\tRio\n")
        assert edges_in(tabs) == [("Los Angeles", "Rio", 1.0), ("New York", "Los Angeles", 1.0)]
        quoted = written(tmp_path, 'source,target\n"Smith, J","say ""a"""\n#b,Zoë\n', "a.csv")
        assert edges_in(quoted) == [("#b", "Zoë", 1.0), ("Smith, J", 'say "a"', 1.0)]

    @pytest.mark.parametrize(
        "text",
        [
            SNAP,
            SNAP.replace("\t", " "),
            SNAP.replace("\t", "  "),
            "source,target,time\na,b,1\n\nb,c,2\n",
            "1;2\n2;3\n",
        ],
        ids=range(5),
    )
    def test_sound_files_are_read_fast(self, tmp_path, monkeypatch, text):
        monkeypatch.delattr("apexrank.graph.files._read_carefully")
        assert edges_in(written(tmp_path, text))
        assert edges_in(written(tmp_path, gzip.compress(text.encode())))

    def test_ids_with_leading_zeros_are_text(self, tmp_path):
        assert edges_in(written(tmp_path, "007 7\n7 008\n")) == [("007", "7", 1.0), ("7", "008", 1.0)]

    def test_first_ids_may_look_like_numbers(self, tmp_path):
        assert len(edges_in(written(tmp_path, "1 2\na b\nc d\ne 3\n"))) == 4

    def test_large_and_negative_whole_numbers(self, tmp_path):
        path = written(tmp_path, f"-3 {10**17}\n{10**17} 5\n")
        assert edges_in(path) == [(-3, 10**17, 1.0), (10**17, 5, 1.0)]

    @pytest.mark.parametrize("name", ["e.parquet", "e.pq"])
    def test_parquet(self, tmp_path, name):
        frame = pl.DataFrame(
            {"time": [1, 2], "source": ["b", "a"], "target": ["c", "b"], "weight": [2.0, 1.0]}
        )
        frame.write_parquet(tmp_path / name)
        assert edges_in(tmp_path / name) == [("a", "b", 1.0), ("b", "c", 2.0)]
        assert edges_in(str(tmp_path / name), weight="time") == [("a", "b", 2.0), ("b", "c", 1.0)]

    @settings(max_examples=30)
    @given(
        st.lists(
            st.tuples(st.integers(0, 12), st.integers(0, 12), st.sampled_from([0.5, 1.0, 2.25])), min_size=1
        ),
        st.sampled_from(["\t", " ", ",", ";"]),
        st.booleans(),
        st.booleans(),
    )
    def test_every_way_to_write_the_same_edges(self, tmp_path_factory, edges, separator, header, as_text):
        columns = [list(column) for column in zip(*edges, strict=True)]
        if as_text:
            columns[:2] = [[f"v{i}" for i in column] for column in columns[:2]]
        frame = pd.DataFrame(dict(zip(("source", "target", "weight"), columns, strict=True)))
        path = tmp_path_factory.mktemp("edges") / "e.txt.gz"
        frame.to_csv(path, sep=separator, header=header, index=False)
        expected, read = as_graph(frame), as_graph(path, weight=2)
        for name in ("indptr", "indices", "weights", "names"):
            np.testing.assert_array_equal(getattr(read, name), getattr(expected, name))


class TestColumns:
    @pytest.mark.parametrize(
        ("names", "chosen", "expected"),
        [
            (["a", "b"], {}, (0, 1, None)),
            (["a", "b", "c"], {}, (0, 1, None)),
            (["a", "b", "Weight"], {}, (0, 1, 2)),
            (["time", "Target", "SOURCE", "rating"], {}, (2, 1, 3)),
            (["to", "from", "value"], {}, (1, 0, 2)),
            (["dst", "x", "src"], {}, (2, 0, None)),
            (["w", "a", "b"], {"weight": "w"}, (1, 2, 0)),
            (["a", "b", "weight"], {"weight": False}, (0, 1, None)),
            (["a", "b", "c"], {"source": "c", "target": "a"}, (2, 0, None)),
            (["a", "b", "c"], {"source": 2, "target": 0, "weight": "1"}, (2, 0, 1)),
            (["a", "1", "c"], {"weight": "1"}, (0, 2, 1)),
            (["a", "b"], {"target": "b"}, (0, 1, None)),
            (["a", "b", "c"], {"source": "c"}, (2, 1, None)),
        ],
        ids=range(13),
    )
    def test_choice(self, names, chosen, expected):
        columns = {"source": None, "target": None, "weight": None} | chosen
        assert choose_columns(names, **columns, what="table") == expected

    @pytest.mark.parametrize(
        ("names", "chosen", "says"),
        [
            (["source", "page"], {}, "table has no column for the target of an edge: name it with `target=`"),
            (["a", "b"], {"target": "a"}, "no column for the source of an edge"),
            (["a"], {}, "no column for the target of an edge"),
            (["user", "page"], {"source": "users"}, "table has no column 'users'; did you mean 'user'?"),
            (["user", "page"], {"weight": "stars"}, "table has no column 'stars'; it has 'user', 'page'"),
            (["a", "b"], {"weight": 2}, "table has no column 2 counted from 0; it has 2 columns"),
            (["a", "b"], {"source": "a", "target": "a"}, "must be three columns"),
        ],
        ids=range(7),
    )
    def test_errors(self, names, chosen, says):
        columns = {"source": None, "target": None, "weight": None} | chosen
        assert says in message_of(choose_columns, names, **columns, what="table")

    def test_weights_of_a_file(self, tmp_path):
        path = written(tmp_path, "6,2,4,1289241911.72836\n6,5,2,1289241941.53378\n", "otc.csv")
        assert edges_in(path) == [(6, 2, 1.0), (6, 5, 1.0)]
        assert edges_in(path, weight=2) == edges_in(path, weight="2") == [(6, 2, 4.0), (6, 5, 2.0)]
        signed = as_graph(written(tmp_path, "# Sign\n0\t1\t-1\n1\t2\t1\n"), weight=2, signed=True)
        assert (signed.positive.n_edges, signed.negative.n_edges) == (1, 1)

    def test_frames_name_the_row(self):
        frame = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "weight": [1, -1]})
        text = message_of(as_graph, frame)
        assert text.startswith("edge table row 2: the link from 'b' to 'c' has the negative weight -1")
        assert "edge table has no column 'from'" in message_of(as_graph, pl.DataFrame(frame), source="from")
        frame.loc[1, "source"] = None
        assert message_of(as_graph, frame).startswith("edge table row 2: the source of the edge is missing")
        nullable = pd.DataFrame({"source": pd.array([1, None], dtype="Int64"), "target": [1, 2]})
        assert message_of(as_graph, nullable).startswith(
            "edge table row 2: the source of the edge is missing"
        )
        assert as_graph(nullable.head(1)).names.tolist() == [1]
        missing = pd.DataFrame({"source": pd.array(["a", None], dtype="string"), "target": ["b", "c"]})
        assert message_of(as_graph, missing).startswith("edge table row 2: the source of the edge is missing")
        missing = pd.DataFrame(
            {"source": ["a"], "target": ["b"], "weight": pd.array([None], dtype="Float64")}
        )
        assert "the link from 'a' to 'b' has a weight that is missing" in message_of(as_graph, missing)
        polars = pl.DataFrame({"source": [1, 2], "target": [None, 2]})
        assert message_of(as_graph, polars).startswith("edge table row 1: the target of the edge is missing")


class TestFaults:
    @pytest.mark.parametrize(
        ("text", "options", "says"),
        [
            ("1 2\n3\n", {}, "line 2: the row has 1 field, the first edge 2"),
            ("1 2\n3 4 5\n", {}, "line 2: the row has 3 fields, the first edge 2"),
            ("# c\n1 2 9\n\n3 4\n", {}, "line 4: the row has 2 fields, the first edge 3"),
            ("source,target\n1,2\n3,4,5\n", {}, "line 3: the row has 3 fields, the header 2"),
            ("1 2\n3 4\nx 5\n", {}, "line 3: 'x' is not a whole number as the ids before it"),
            ("1,2\n3,\n", {}, "line 2: the target of the edge is missing"),
            ("a,b\n,c\n", {}, "line 2: the source of the edge is missing"),
            ("1 2 x\n3 4 1\n", {"weight": 2}, "line 1: the weight 'x' is not a number"),
            ("1,2,3\n3,4,\n", {"weight": 2}, "line 2: the weight of the edge is missing"),
            (
                "1;2;3\n3;4;1,5\n",
                {"weight": 2},
                "line 2: the weight '1,5' is not a number; write a decimal point",
            ),
            (
                "1 2 1,5\n3 4 2,5\n",
                {"weight": 2},
                "line 1: the weight '1,5' is not a number; write a decimal",
            ),
            ("1 2 3\n\n3 4 -1\n", {"weight": 2}, "line 3: the link from 3 to 4 has the negative weight -1"),
            (
                "a b 3\nb c nan\n",
                {"weight": 2},
                "line 2: the link from 'b' to 'c' has a weight that is missing",
            ),
            ("a b 3\nb c inf\n", {"weight": 2}, "line 2: the link from 'b' to 'c' has a weight that is inf"),
            (
                "# x\n\n5 6\n6 5\n5 6\n",
                {"repeated": "error"},
                "line 5: the link from 5 to 6 occurs already (",
            ),
            ("source target\n1 2\n", {"weight": "w"}, "has no column 'w'; it has 'source', 'target'"),
            ("alone\n", {}, "line 1: 'alone' is not an edge; write source and target"),
            ("# only\n# comments\n", {}, "has no edges"),
            ("", {}, "has no edges"),
            ("source,target\n", {}, "has column names but no edges"),
            (b"a b\nc \xff\n", {}, "line 2: this is not UTF-8 text"),
            (gzip.compress(b"1 2\n" * 1000, mtime=0)[:-12], {}, "the gzip data end early or are damaged"),
        ],
        ids=range(22),
    )
    def test_one_line_that_names_file_and_line(self, tmp_path, text, options, says):
        path = written(tmp_path, text)
        message = message_of(as_graph, path, **options)
        assert message.startswith(str(path))
        assert says in message

    @pytest.mark.parametrize("broken", ["17", "17 18 19", "seventeen 18"])
    @pytest.mark.slow
    def test_line_1_000_001(self, tmp_path, broken):
        lines = "".join(f"{i} {i + 1}\n" for i in range(1000)) * 1000
        path = written(tmp_path, f"{lines}{broken}\n4 5\n")
        assert message_of(edges_of_file, path).startswith(f"{path} line 1000001: ")

    @pytest.mark.slow
    def test_negative_weight_in_line_1_000_001(self, tmp_path):
        lines = "".join(f"{i} {i + 1} 2\n" for i in range(1000)) * 1000
        path = written(tmp_path, f"# weights\n{lines}8 9 -2\n4 5 1\n")
        message = message_of(as_graph, path, weight=2)
        assert message.startswith(f"{path} line 1000002: the link from 8 to 9 has the negative weight -2")

    def test_files_that_are_none(self, tmp_path):
        assert "it is a folder" in message_of(as_graph, tmp_path)
        assert "no such file" in message_of(as_graph, tmp_path / "none.txt")
        assert "no such file" in message_of(as_graph, str(tmp_path / "none.parquet"))
        path = written(tmp_path, "1 2\n", "text.parquet")
        assert "text.parquet as Parquet: " in message_of(as_graph, path)
        pl.DataFrame({"source": ["a", None], "target": ["b", "c"]}).write_parquet(path)
        assert message_of(as_graph, path) == f"{path} row 2: the source of the edge is missing; " + (
            "fill it in or drop the edge"
        )


def test_a_padded_number_is_another_id(tmp_path):
    (tmp_path / "padded.csv").write_text("source,target\n7,8\n007,8\n9,8\n")
    with pytest.raises(InputError, match=r"line 3: '007' is not a whole number as the ids before it"):
        edges_of_file(tmp_path / "padded.csv")


def test_an_edge_is_not_taken_for_names_of_columns(tmp_path):
    (tmp_path / "nohead.csv").write_text("alice,bob\nbob,carol\n")
    with pytest.raises(InputError, match=r"line 1 was read as column names, but 'bob' is also a vertex"):
        edges_of_file(tmp_path / "nohead.csv")


def test_a_pipe_is_read_once(tmp_path):
    import os
    import threading

    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("a b\nb c\nc\n",))
    writer.start()
    with pytest.raises(InputError, match=r"pipe line 3: the row has 1 field, the first edge 2"):
        edges_of_file(tmp_path / "pipe")
    writer.join()
