"""Tiny files in the formats of WEBSPAM-UK2006 and WEBSPAM-UK2007."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexrank.errors import InputError
from apexrank_papers.data.webspam import load_webspam

GRAPH_2007 = "4\n1:10 3:2\n\n0:1\n2:7\n"
DENSE = [[0, 10, 0, 2], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 7, 0]]
NAMES = "0 a.co.uk\n1 b.co.uk\n2 c.ac.uk\n3 d.org.uk\n"


def write(folder, **files):
    """Files by name, with ``_`` for ``.`` before the ending and ``__`` for a folder."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_txt", ".txt").replace("_gz", ".gz")
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return folder


def test_the_files_of_2007(tmp_path):
    write(
        tmp_path,
        **{
            "links__uk-2007-05.hostgraph_weighted.graph-txt_gz": GRAPH_2007,
            "links__uk-2007-05.hostnames_txt_gz": NAMES,
            "set1__WEBSPAM-UK2007-hostnames_txt": NAMES,
            "set1__WEBSPAM-UK2007-SET1-labels_txt": "0 nonspam 0.00000 j4:N,j6:N\n3 spam 0.75 j3:S,j5:B\n",
            "set2__WEBSPAM-UK2007-SET2-labels_txt": "1 undecided 0.5 j1:B\n2 nonspam - j2:N\n",
        },
    )
    hosts = load_webspam(tmp_path)
    assert hosts.adjacency.format == "csr"
    assert hosts.adjacency.dtype == hosts.adjacency.indices.dtype == hosts.adjacency.indptr.dtype == np.int32
    assert hosts.adjacency.has_canonical_format
    assert hosts.adjacency.toarray().tolist() == DENSE
    assert hosts.names.tolist() == ["a.co.uk", "b.co.uk", "c.ac.uk", "d.org.uk"]
    assert hosts.labels.tolist() == [0, -1, 0, 1]
    assert hosts.label_set.tolist() == [1, 2, 2, 1]
    assert hosts.labels.dtype == np.int8
    assert (
        "4 hosts, 4 links; 1 hosts are spam (33.3 % of the judged ones), 2 are not, 1 are undecided"
        in hosts.DESCR
    )


@pytest.mark.parametrize(
    "rows",
    [
        ["a.co.uk j1:N,odp:N 0.0 normal", "d.org.uk j1:S,j2:B 0.75 spam", "b.co.uk j1:B 0.5 undecided"],
        ["a.co.uk normal 0.0 j1:N,odp:N", "d.org.uk spam 0.75 j1:S,j2:B", "b.co.uk undecided 0.5 j1:B"],
        ["a.co.uk,normal", "d.org.uk,spam"],
    ],
    ids=["label last", "label second", "commas"],
)
def test_the_files_of_2006(tmp_path, rows):
    write(
        tmp_path,
        **{
            "uk-2006-05.hostgraph_weighted_txt": "0 -> 1:10 3:2\n2 -> 0:1\n3 -> 2:7\n",
            "uk-2006-05.hostnames_txt": NAMES,
            "webspam-uk2006-set1-labels_txt": "\n".join(rows),
        },
    )
    hosts = load_webspam(tmp_path)
    assert hosts.adjacency.toarray().tolist() == DENSE
    assert hosts.labels.tolist() == [0, -1, -1, 1]


def test_hosts_that_no_link_names_count(tmp_path):
    write(tmp_path, hostgraph_txt="1 -> 0:1\n", labels_txt="0 spam\n", hostnames_txt=NAMES)
    assert load_webspam(tmp_path).adjacency.shape == (4, 4)
    (tmp_path / "hostnames.txt").unlink()
    hosts = load_webspam(tmp_path)
    assert hosts.adjacency.shape == (2, 2)
    assert hosts.names.tolist() == ["0", "1"]


def test_short_lists_only_without_others(tmp_path):
    write(
        tmp_path,
        **{
            "hostgraph_txt": GRAPH_2007,
            "hostnames_txt": "a\nb\nc\nd\n",
            "set1-labels-DomainOrTwoHumans_txt": "a,normal\nb,spam\n",
            "set1-labels_txt": "c x 1.0 spam\n",
        },
    )
    assert load_webspam(tmp_path).labels.tolist() == [-1, -1, 1, -1]
    chosen = load_webspam(tmp_path, labels="set1-labels-DomainOrTwoHumans.txt")
    assert chosen.labels.tolist() == [0, 1, -1, -1]
    both = load_webspam(tmp_path, labels=["set1-labels-DomainOrTwoHumans.txt", tmp_path / "set1-labels.txt"])
    assert both.labels.tolist() == [0, 1, 1, -1]
    (tmp_path / "set1-labels.txt").unlink()
    assert load_webspam(tmp_path).labels.tolist() == [0, 1, -1, -1]


def test_tolerated_variants(tmp_path):
    # Windows line ends, commas between links, links without counts, comments, a label twice, a link twice
    write(
        tmp_path,
        hostgraph_txt="3\r\n1:2, 2:1, 1:5\r\n0 2\r\n\r\n\r\n",
        labels_txt="# host label\n0 spam\n0 undecided\n0 SPAM\n\n",
    )
    hosts = load_webspam(tmp_path)
    assert hosts.adjacency.toarray().tolist() == [[0, 7, 1], [1, 0, 1], [0, 0, 0]]
    assert hosts.labels.tolist() == [1, -1, -1]
    assert hosts.label_set.tolist() == [0, 0, 0]


def test_a_last_empty_line_may_lack_its_end(tmp_path):
    write(tmp_path, hostgraph_txt="2\n1:1\n", labels_txt="0 spam\n")
    assert load_webspam(tmp_path).adjacency.toarray().tolist() == [[0, 1], [0, 0]]


def test_the_plain_file_wins_over_the_packed_one(tmp_path):
    write(tmp_path, hostgraph_txt=GRAPH_2007, hostgraph_txt_gz="1\n\n", labels_txt="0 spam\n")
    assert load_webspam(tmp_path).adjacency.shape == (4, 4)


@given(
    dense=st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=5, max_size=5),
    arrows=st.booleans(),
)
def test_any_graph_comes_back(tmp_path_factory, dense, arrows):
    rows = [" ".join(f"{j}:{w}" for j, w in enumerate(row) if w) for row in dense]
    text = "".join(f"{i} -> {row}\n" for i, row in enumerate(rows)) if arrows else "\n".join(["5", *rows, ""])
    folder = tmp_path_factory.getbasetemp() / "webspam"
    write(folder, hostgraph_txt=text, labels_txt="0 spam\n", hostnames_txt="a\nb\nc\nd\ne\n")
    if arrows and not np.any(dense):
        with pytest.raises(InputError, match="has no links"):
            load_webspam(folder)
        return
    assert load_webspam(folder).adjacency.toarray().tolist() == dense


GOOD = {"hostgraph_txt": GRAPH_2007, "labels_txt": "0 spam\n"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"hostgraph_txt": ""}, r"hostgraph.txt line 1: this is not a host graph"),
        ({"hostgraph_txt": "\n1:2\n"}, r"hostgraph.txt line 2: this is not a host graph"),
        ({"hostgraph_txt": "0\n"}, r"hostgraph.txt line 1: this is not a host graph"),
        ({"hostgraph_txt": "3\n1:2\n"}, r"hostgraph.txt ends after 1 of the 3 hosts"),
        ({"hostgraph_txt": "1\n0:2\n0:1\n"}, r"hostgraph.txt line 3: the file continues after the 1 hosts"),
        ({"hostgraph_txt": "2\n1:2\n2:1\n"}, r"hostgraph.txt line 3: host 2 is beyond the 2 hosts"),
        ({"hostgraph_txt": "2\n1:x\n\n"}, r"hostgraph.txt line 2: '1:x' is not dest:nlinks"),
        ({"hostgraph_txt": "2\n1:0\n\n"}, r"line 2: '1:0' is not dest:nlinks"),
        ({"hostgraph_txt": "2\n-1:1\n\n"}, r"line 2: '-1:1' is not dest:nlinks"),
        ({"hostgraph_txt": "2\n1:" + "9" * 5000 + "\n\n"}, r"line 2: '1:9+\.\.\.' is not dest:nlinks"),
        ({"hostgraph_txt": "0 -> 1:2\n5 1:2\n"}, r"line 2: '5 1:2' is not source -> dest:nlinks"),
        ({"hostgraph_txt": "x -> 1:2\n"}, r"line 1: 'x -> 1:2' is not source"),
        ({"labels_txt": "0 spam\n1 ham\n"}, r"labels.txt line 2: there is no label after the host"),
        ({"labels_txt": "0\n"}, r"labels.txt line 1: there is no label after the host"),
        ({"labels_txt": "4 spam\n"}, r"labels.txt line 1: host '4' is beyond the 4 hosts"),
        (
            {"labels_txt": "b.uk spam\n"},
            r"labels.txt line 1: host 'b.uk' is not a host of the graph, and there is",
        ),
        (
            {"labels_txt": "z spam\n", "hostnames_txt": NAMES},
            r"labels.txt line 1: host 'z' is not among the names",
        ),
        ({"labels_txt": "0 spam\n0 nonspam\n"}, r"labels.txt line 2: host 0 is both spam and not spam"),
        ({"hostnames_txt": "0 a\nx b\n"}, r"hostnames.txt line 2: 'x b' is not a host's number and its name"),
        ({"hostnames_txt": "9 a\n"}, r"hostnames.txt line 1: host 9 is beyond the 4 hosts"),
        ({"other.hostgraph_txt": "1\n\n"}, r"several files are named \*hostgraph\* .*choose with graph="),
    ],
)
def test_broken_lines_are_named(tmp_path, files, message):
    write(tmp_path, **{**GOOD, **files})
    with pytest.raises(InputError, match=message) as error:
        load_webspam(tmp_path)
    assert "\n" not in str(error.value)


def test_damaged_and_missing_files(tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        load_webspam(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"no file \*hostgraph\* below .*Carlos Castillo"):
        load_webspam(tmp_path)
    write(tmp_path, hostgraph_txt=GRAPH_2007)
    with pytest.raises(InputError, match=r"no file \*labels\* below"):
        load_webspam(tmp_path)
    write(tmp_path, **GOOD)
    with pytest.raises(InputError, match="cannot read"):
        load_webspam(tmp_path, graph="other.txt")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(GRAPH_2007.encode() * 50)[:-12])
    with pytest.raises(InputError, match="damaged"):
        load_webspam(tmp_path, graph="cut.gz")


def test_files_may_be_given(tmp_path):
    write(tmp_path, **GOOD, **{"other.hostgraph_txt": "1 -> 0:3\n", "names_txt": "0 x\n1 y\n"})
    hosts = load_webspam(tmp_path, graph="other.hostgraph.txt", names=tmp_path / "names.txt")
    assert hosts.adjacency.toarray().tolist() == [[0, 0], [3, 0]]
    assert hosts.names.tolist() == ["x", "y"]


def test_nobody_judged(tmp_path):
    write(tmp_path, hostgraph_txt=GRAPH_2007, labels_txt="0 undecided\n")
    assert "0 hosts are spam, 0 are not, 4 are undecided or not judged." in load_webspam(tmp_path).DESCR
