"""Graph data sets: contents of the files, errors, and properties of the toy graphs."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexrank.errors import InputError
from apexrank_papers.data import networks

DATA = Path(os.environ.get("APEXRANK_DATA", Path(__file__).parents[3] / "shared" / "data"))
needs_files = pytest.mark.skipif(
    not (DATA / "graphs").is_dir(), reason="the graphs are not here: set APEXRANK_DATA to read them"
)
# loader, file, vertices, stored links, negative links, self-loops
FILES = [
    ("cnr_2000", "cnr-2000.csr.npz", 325_557, 3_216_152, 0, 87_442),
    ("bitcoin_otc", "soc-sign-bitcoinotc.csv.gz", 5_881, 35_592, 3_563, 0),
    ("epinions", "soc-sign-epinions.txt.gz", 131_828, 841_372, 123_705, 573),
    ("wiki_vote", "wiki-Vote.txt.gz", 7_115, 103_689, 0, 0),
    ("polblogs", "polblogs.gml.gz", 1_490, 19_025, 0, 3),
]
TEXT_LOADERS = ["bitcoin_otc", "epinions", "wiki_vote", "polblogs"]


def loader(name):
    return getattr(networks, f"load_{name}")


@pytest.fixture
def data(monkeypatch):
    monkeypatch.setenv("APEXRANK_DATA", str(DATA))


def assert_lean(adjacency):
    assert adjacency.format == "csr"
    assert adjacency.dtype == np.int8
    assert adjacency.indices.dtype == adjacency.indptr.dtype == np.int32
    assert adjacency.has_canonical_format


@needs_files
@pytest.mark.parametrize(("name", "file", "n", "links", "negative", "loops"), FILES)
@pytest.mark.slow
def test_counts_of_the_files(data, name, file, n, links, negative, loops):
    bunch = loader(name)()
    assert_lean(bunch.adjacency)
    assert bunch.adjacency.shape == (n, n)
    assert bunch.adjacency.nnz == links
    assert (bunch.adjacency.data < 0).sum() == negative
    assert (bunch.adjacency.diagonal() != 0).sum() == loops
    assert len(set(bunch.names.tolist())) == n
    assert f"{n:,}" in bunch.DESCR
    assert bunch.source.endswith(file)


@needs_files
def test_ratings_and_times_belong_together(data):
    bunch = networks.load_bitcoin_otc()
    rows, columns = bunch.adjacency.nonzero()
    got = dict(
        zip(
            zip(bunch.names[rows].tolist(), bunch.names[columns].tolist(), strict=True),
            zip(bunch.adjacency.data.tolist(), bunch.times.tolist(), strict=True),
            strict=True,
        )
    )
    with gzip.open(DATA / "graphs" / "soc-sign-bitcoinotc.csv.gz", "rt") as file:
        lines = [line.split(",") for line in file]
    assert got == {(int(a), int(b)): (int(rating), float(time)) for a, b, rating, time in lines}


@pytest.mark.slow
@needs_files
def test_blogs_as_networkx_reads_them(data):
    bunch = networks.load_polblogs()
    with gzip.open(DATA / "graphs" / "polblogs.gml.gz", "rt") as file:
        # networkx requires the file to declare parallel links
        other = nx.parse_gml(file.read().replace("directed 1", "directed 1\n  multigraph 1"))
    np.testing.assert_array_equal(
        nx.to_numpy_array(other, nodelist=bunch.names.tolist()), bunch.adjacency.toarray()
    )
    assert [other.nodes[name]["value"] for name in bunch.names] == bunch.target.tolist()
    assert [other.nodes[name]["source"] for name in bunch.names] == bunch.directories.tolist()
    assert np.bincount(bunch.target).tolist() == [758, 732]
    assert bunch.adjacency.max() == 2


@pytest.mark.parametrize(("name", "file"), [row[:2] for row in FILES])
def test_a_missing_file_is_named_with_where_to_get_it(monkeypatch, tmp_path, name, file):
    for folder in (None, str(tmp_path)):
        if folder is None:
            monkeypatch.delenv("APEXRANK_DATA", raising=False)
        else:
            monkeypatch.setenv("APEXRANK_DATA", folder)
        with pytest.raises(
            InputError, match=rf"{re.escape(file)} is missing: get it from .*APEXRANK_DATA"
        ) as error:
            loader(name)()
        assert "\n" not in str(error.value)


def test_an_unpacked_file_is_found_as_well(monkeypatch, tmp_path):
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "wiki-Vote.txt").write_text("1 2\n")
    monkeypatch.setenv("APEXRANK_DATA", str(tmp_path))
    assert networks.load_wiki_vote().adjacency.nnz == 1


links_with_signs = st.dictionaries(
    st.tuples(st.integers(0, 40), st.integers(0, 40)), st.sampled_from([-1, 1]), min_size=1, max_size=40
)


@pytest.mark.slow
@given(links=links_with_signs)
def test_a_signed_file_comes_back(tmp_path_factory, links):
    file = tmp_path_factory.getbasetemp() / "trust.txt.gz"
    file.write_bytes(gzip.compress("".join(f"{a}\t{b}\t{s}\n" for (a, b), s in links.items()).encode()))
    bunch = networks.load_epinions(file)
    assert_lean(bunch.adjacency)
    assert bunch.names.tolist() == sorted({end for link in links for end in link})
    rows, columns = bunch.adjacency.nonzero()
    ends = zip(bunch.names[rows].tolist(), bunch.names[columns].tolist(), strict=True)
    assert dict(zip(ends, bunch.adjacency.data.tolist(), strict=True)) == links


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("wiki_vote", "", "has no links"),
        ("wiki_vote", "# only a comment\n", "has no links"),
        ("wiki_vote", "1 2\n1 2\n", "the link from 1 to 2 is listed twice"),
        ("wiki_vote", "1 x\n", "cannot be read .*'x'.*needs lines source target"),
        ("wiki_vote", "1 2\n3\n", "cannot be read"),
        ("wiki_vote", "1 2 3\n", "has 3 columns"),
        ("wiki_vote", "1.5 2\n", "an id that is not a whole number"),
        ("wiki_vote", "-1 2\n", "an id that is not a whole number"),
        ("wiki_vote", "nan 2\n", "an id that is not a whole number"),
        ("epinions", "7 2 0\n", "7 gives 2 the value 0; it must be a whole number from -1 to 1, not 0"),
        ("epinions", "1 2 1\n1 2 -1\n", "is listed twice"),
        ("bitcoin_otc", "1,2,11,0\n", "value 11; it must be a whole number from -10 to 10"),
        ("bitcoin_otc", "1,2,nan,0\n", "value nan"),
        ("bitcoin_otc", "1,2,0.5,0\n", "value 0.5"),
        ("bitcoin_otc", "1 2 3 4\n", "cannot be read"),
        ("polblogs", "graph [ ]", "is not the graph of blogs"),
        (
            "polblogs",
            'node [ id 1 label "a" value 0 source "" ] edge [ source 1 target 2 ]',
            "is not the graph",
        ),
        ("polblogs", 'node [ id 1 label "a" value 0 source "" ]' * 2, "is not the graph"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(tmp_path, name, text, message):
    file = tmp_path / "graph.txt"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        loader(name)(file)
    assert "\n" not in str(error.value)
    assert str(file) in str(error.value)


@pytest.mark.parametrize("name", TEXT_LOADERS)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"1 2\n" * 99, mtime=0)[:-9], "damaged"),
        (b"1 2\n\xff 3\n", "not UTF-8"),
        (b"\xff\xfe1", "is UTF-16"),
        (None, "cannot read"),
    ],
    ids=["cut gzip", "binary", "UTF-16", "missing"],
)
def test_damaged_files(tmp_path, name, content, message):
    file = tmp_path / "graph.txt.gz"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        loader(name)(file)


@pytest.mark.parametrize(
    "arrays",
    [
        {"indptr": [0, 1], "indices": [0]},
        {"indptr": [0, 1, 1], "indices": [5], "shape": [2, 2]},
        {"indptr": [0, 1], "indices": [0], "shape": [2, 2]},
    ],
    ids=["no shape", "beyond", "short"],
)
def test_a_crawl_that_is_none(tmp_path, arrays):
    file = tmp_path / "crawl.npz"
    np.savez(file, **arrays)
    with pytest.raises(InputError, match="is not a graph: it needs the arrays indptr, indices and shape"):
        networks.load_cnr_2000(file)


def test_a_crawl_in_another_form(tmp_path):
    for name, content in (("text.npz", b"1 2\n"), ("cut.npz", b"PK\x03\x04"), ("none.npz", b"")):
        file = tmp_path / name
        file.write_bytes(content)
        with pytest.raises(InputError, match="is not a graph"):
            networks.load_cnr_2000(file)
    np.save(tmp_path / "one.npy", np.arange(3))
    with pytest.raises(InputError, match="is not a graph"):
        networks.load_cnr_2000(tmp_path / "one.npy")


def test_toy_graph_1_is_what_the_text_says():
    toy = networks.toy_graph_1()
    assert_lean(toy.adjacency)
    A = toy.adjacency.toarray().astype(float)
    assert (A[:3, 3:] == 1).all()
    assert A.sum() == 19
    worth = A / A.sum(axis=1)[:, None]
    assert sorted(worth[worth[:, 0] > 0, 0]) == [0.5, 1.0]
    assert sorted(worth[worth[:, 1] > 0, 1]) == [0.5, 0.5, 0.5]


def test_toy_graph_2_is_what_the_text_says():
    toy = networks.toy_graph_2()
    assert_lean(toy.adjacency)
    A = toy.adjacency.toarray()
    assert toy.names[toy.spam].tolist() == [6, 7, 8, 9]
    assert A[0].tolist() == [0, 1, 1, 1, 1, 0, 0, 0, 0]
    assert A[5].tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1]
    assert A[6:].tolist() == [[0, 0, 0, 0, 0, 1, 0, 0, 0]] * 3
    assert not A[:5, 5:].any()
    assert not A[5:, :5].any()
    honest = nx.from_numpy_array(A[:5, :5], create_using=nx.DiGraph)
    assert nx.is_strongly_connected(honest)
