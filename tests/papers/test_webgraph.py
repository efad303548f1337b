"""WebGraph files against code words written out by hand, and against files of a second implementation."""

import numpy as np
import pytest

from apexrank.errors import InputError
from apexrank_papers.data import load_cnr_2000, read_webgraph
from apexrank_papers.data.sources import MissingDataError
from apexrank_papers.data.webgraph import CODES, read_code
from tests.graph.test_files import message_of
from tests.papers import bvgraph_writer


def lists_of(rng, n):
    """Successor lists with much to copy, and with runs."""
    lists = []
    for x in range(n):
        near = lists[int(rng.integers(max(0, x - 5), x))] if x and rng.random() < 0.6 else []
        links = {link for link in near if rng.random() < 0.8} | set(
            rng.integers(0, n, rng.integers(0, 4)).tolist()
        )
        if rng.random() < 0.3:
            begin = int(rng.integers(n))
            links |= set(range(begin, min(n, begin + int(rng.integers(2, 9)))))
        lists.append(sorted(links))
    return lists


def test_code_words():
    """Code words written out by hand from the definitions of the codes; zeta with k = 3."""
    table = {
        "GAMMA": ["1", "010", "011", "00100", "00101", "00110", "00111", "0001000"],
        "DELTA": ["1", "0100", "0101", "01100", "01101", "01110", "01111", "00100000"],
        "ZETA": ["100", "1010", "1011", "1100", "1101", "1110", "1111", "0100000"],
    }
    for code, words in table.items():
        for number, word in enumerate(words):
            data = np.frombuffer(int(word.ljust(8, "1"), 2).to_bytes(1, "big"), np.uint8)
            assert read_code(data, 0, CODES.index(code), 3) == (number, len(word))


def test_a_record_by_hand(tmp_path):
    # vertex 0 links to 1, 2, 3, 4 (an interval), 1 copies all but 2, and 2 to 4 link nowhere
    degree_4, no_reference, one_interval = "00101", "1", "010"
    begin_1, length_4 = "011", "1"  # 1 - 0 is 2 as a natural number; 4 less the shortest, 4
    first = degree_4 + no_reference + one_interval + begin_1 + length_4
    two_blocks, copy_1, skip_1 = "011", "010", "1"  # all that follows is copied
    second = "00100" + "01" + two_blocks + copy_1 + skip_1
    rest = "1" * 3
    bits = (first + second + rest).ljust(32, "0")
    (tmp_path / "g.graph").write_bytes(int(bits, 2).to_bytes(4, "big"))
    (tmp_path / "g.properties").write_text(
        "graphclass=it.unimi.dsi.webgraph.BVGraph\nnodes=5\narcs=7\nwindowsize=7\nminintervallength=4\n"
    )
    links = read_webgraph(tmp_path / "g").toarray()
    assert np.argwhere(links).tolist() == [[0, 1], [0, 2], [0, 3], [0, 4], [1, 1], [1, 3], [1, 4]]


@pytest.mark.parametrize(
    "flags", ["", "RESIDUALS_GAMMA", "OUTDEGREES_DELTA|REFERENCES_GAMMA|BLOCK_COUNT_UNARY"]
)
@pytest.mark.parametrize("window", [0, 1, 7])
@pytest.mark.parametrize("shortest", [0, 2, 4])
def test_round_trip(tmp_path, flags, window, shortest):
    rng = np.random.default_rng(window)
    for k in (1, 3, 4):
        lists = lists_of(rng, 40)
        options = {"window": window, "shortest": shortest, "k": k, "flags": flags}
        bvgraph_writer.write(tmp_path / "g", lists, **options)
        assert [np.flatnonzero(row).tolist() for row in read_webgraph(tmp_path / "g").toarray()] == lists


@pytest.mark.slow
def test_sizes_that_webgraph_tells(tmp_path):
    """The published properties of cnr-2000-t state the number of bits of each part of the format."""
    try:
        matrix = load_cnr_2000().adjacency.T.tocsr()
    except MissingDataError:
        pytest.skip("cnr-2000 is not here")
    lists = [part.tolist() for part in np.split(matrix.indices, matrix.indptr[1:-1])]
    lists = [sorted(links) for links in lists]
    spent = bvgraph_writer.write(tmp_path / "g", lists)
    assert spent == {
        "outdegrees": 1_385_035,
        "references": 849_734,
        "blocks": 804_951,
        "intervals": 655_678,
        "residuals": 3_839_499,
    }
    assert not (read_webgraph(tmp_path / "g") != matrix).nnz


def test_damage(tmp_path):
    rng = np.random.default_rng(0)
    bvgraph_writer.write(tmp_path / "g", lists_of(rng, 60))
    whole, about = (tmp_path / "g.graph").read_bytes(), (tmp_path / "g.properties").read_text()
    outcomes = set()
    for _ in range(300):
        content = bytearray(whole)
        for at in rng.integers(0, len(content), 3):
            content[at] = rng.integers(256)
        (tmp_path / "g.graph").write_bytes(content[: rng.integers(1, len(content) + 1)])
        try:
            assert read_webgraph(tmp_path / "g").shape == (60, 60)
            outcomes.add("value")
        except InputError as error:
            outcomes.add(str(error).partition(" ")[2][:10])
    assert "is damaged" in outcomes
    (tmp_path / "g.graph").write_bytes(whole)
    for old, new, says in [
        ("nodes=60", "nodes=9999999999", "does not fit"),
        ("nodes=60", "nodes=61", "is damaged"),
        ("arcs=", "arcs=1", "is damaged"),
        ("nodes=60", "", "needs whole numbers"),
        ("flags=", "flags=RESIDUALS_NIBBLE", "the compression flag 'RESIDUALS_NIBBLE' is not known"),
        ("version=0", "endianness=little", "only big-endian graphs"),
        ("BVGraph\n", "EFGraph\n", "only big-endian graphs of the class BVGraph"),
    ]:
        (tmp_path / "g.properties").write_text(about.replace(old, new))
        assert says in message_of(read_webgraph, tmp_path / "g")
    (tmp_path / "g.properties").write_text(about)
    (tmp_path / "g.graph").unlink()
    assert "there is no " in message_of(read_webgraph, tmp_path / "g")
    (tmp_path / "g.properties").unlink()
    assert "g.properties" in message_of(read_webgraph, tmp_path / "g")
