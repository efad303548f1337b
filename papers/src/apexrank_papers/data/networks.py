"""Graphs to rank: a web crawl, signed trust networks, votes, blogs, and the two toy graphs of the dissertation.

The files are read from ``graphs/`` below the folder named by the environment variable ``APEXRANK_DATA``, or from a path
given to the loader. Every loader returns ``adjacency``, a CSR array with ``A[i, j]`` the weight of the link from i to
j, and ``names``, the ids of the vertices in the file.
"""

from __future__ import annotations

import html
import io
import re
from inspect import cleandoc
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import Bunch

from apexrank.errors import InputError
from apexrank.files import read_text
from apexrank.graph.formats import read_npz
from apexrank_papers.data.sources import DATA_VARIABLE, MissingDataError, data_path

_SNAP = "the Stanford Large Network Dataset Collection (SNAP)"
_NODE = re.compile(r'node\s*\[\s*id (\d+)\s+label "([^"]*)"\s+value ([01])\s+source "([^"]*)"\s*\]')
_EDGE = re.compile(r"edge\s*\[\s*source (\d+)\s+target (\d+)\s*\]")


def load_cnr_2000(path: str | Path | None = None) -> Bunch:
    """Load cnr-2000, a crawl of the Italian National Research Council: 325,557 pages, 3,216,152 links.

    A real crawl that is small enough for a laptop: 24 % of the pages are dangling, 87,442 links are self-loops, and
    there are no duplicate links. Source: Laboratory for Web Algorithmics, University of Milan (Boldi and Vigna, "The
    WebGraph framework I", 2004); the compressed graph was converted to a NumPy file with the arrays ``indptr``,
    ``indices`` and ``shape`` of the CSR matrix. Pages are identified only by number.

    Parameters
    ----------
    path : str or Path, optional
        The file; default: ``graphs/cnr-2000.csr.npz`` below ``$APEXRANK_DATA``.

    Returns
    -------
    Bunch
        With ``adjacency`` (int8), ``names``, ``source`` and ``DESCR``.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank_papers.data.networks import load_cnr_2000
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "crawl.npz"
    ...     np.savez(file, indptr=[0, 2, 2, 3], indices=[1, 2, 0], shape=[3, 3])
    ...     load_cnr_2000(file).adjacency.toarray().tolist()
    [[0, 1, 1], [0, 0, 0], [1, 0, 0]]
    """
    file = _file(path, "cnr-2000.csr.npz", "the Laboratory for Web Algorithmics (University of Milan)")
    adjacency = csr_array(read_npz(file) != 0, dtype=np.int8)
    adjacency.sort_indices()
    return Bunch(
        adjacency=adjacency,
        names=np.arange(adjacency.shape[0], dtype=np.int32),
        source=str(file),
        DESCR=cleandoc(load_cnr_2000.__doc__ or ""),
    )


def load_bitcoin_otc(path: str | Path | None = None) -> Bunch:
    r"""Load Bitcoin OTC, a trust network of bitcoin traders: 5,881 users, 35,592 ratings from -10 to 10.

    ``A[i, j]`` is the rating that i gave j: 10 for full trust, -10 for total distrust, never 0; 3,563 are negative.
    There are no self-ratings and no duplicates. Source: the Stanford Large Network Dataset Collection (SNAP),
    soc-sign-bitcoin-otc (Kumar et al., "Edge weight prediction in weighted signed networks", 2016). Nothing was
    cleaned.

    Parameters
    ----------
    path : str or Path, optional
        The file, plain or gzip-compressed, with lines ``source,target,rating,time``; default:
        ``graphs/soc-sign-bitcoinotc.csv.gz`` below ``$APEXRANK_DATA``.

    Returns
    -------
    Bunch
        With ``adjacency`` (int8, signed), ``names``, ``times`` (seconds since 1970, one per stored rating, in the order
        of ``adjacency.data``), ``source`` and ``DESCR``.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank_papers.data.networks import load_bitcoin_otc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "ratings.csv"
    ...     _ = file.write_text("6,2,4,1289241911.7\n2,5,-10,1289241941.5\n")
    ...     ratings = load_bitcoin_otc(file)
    >>> ratings.names.tolist(), ratings.adjacency.toarray().tolist()
    ([2, 5, 6], [[0, -10, 0], [0, 0, 0], [4, 0, 0]])
    """
    file = _file(path, "soc-sign-bitcoinotc.csv.gz", _SNAP)
    rows = _table(file, ",", "source,target,rating,time", 4)
    return _signed(file, rows, 10, load_bitcoin_otc.__doc__)


def load_epinions(path: str | Path | None = None) -> Bunch:
    r"""Load Epinions, a trust network of reviewers: 131,828 users, 717,667 links of trust and 123,705 of distrust.

    ``A[i, j]`` is 1 if i trusts j and -1 if i distrusts j; there are no duplicate links, and 573 self-loops. Source:
    the Stanford Large Network Dataset Collection (SNAP), soc-sign-epinions (Leskovec et al., "Signed networks in social
    media", 2010). Nothing was cleaned.

    Parameters
    ----------
    path : str or Path, optional
        The file, plain or gzip-compressed, with lines ``source target sign``; default:
        ``graphs/soc-sign-epinions.txt.gz`` below ``$APEXRANK_DATA``.

    Returns
    -------
    Bunch
        With ``adjacency`` (int8, signed), ``names``, ``source`` and ``DESCR``.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank_papers.data.networks import load_epinions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "trust.txt"
    ...     _ = file.write_text("# FromNodeId ToNodeId Sign\n0 1 -1\n1 4 1\n")
    ...     load_epinions(file).adjacency.toarray().tolist()
    [[0, -1, 0], [0, 0, 1], [0, 0, 0]]
    """
    file = _file(path, "soc-sign-epinions.txt.gz", _SNAP)
    return _signed(file, _table(file, None, "source target sign", 3), 1, load_epinions.__doc__)


def load_wiki_vote(path: str | Path | None = None) -> Bunch:
    r"""Load Wikipedia's votes on administrators until January 2008: 7,115 users, 103,689 votes.

    ``A[i, j] = 1`` if i voted on j, for or against: the file does not distinguish them. Nobody votes on themselves.
    Source: the Stanford Large Network Dataset Collection (SNAP), wiki-Vote (Leskovec et al., 2010). Nothing was
    cleaned.

    Parameters
    ----------
    path : str or Path, optional
        The file, plain or gzip-compressed, with lines ``source target``; default: ``graphs/wiki-Vote.txt.gz`` below
        ``$APEXRANK_DATA``.

    Returns
    -------
    Bunch
        With ``adjacency`` (int8), ``names``, ``source`` and ``DESCR``.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank_papers.data.networks import load_wiki_vote
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "votes.txt"
    ...     _ = file.write_text("# FromNodeId ToNodeId\n30 1412\n3 30\n")
    ...     votes = load_wiki_vote(file)
    >>> votes.names.tolist(), votes.adjacency.toarray().tolist()
    ([3, 30, 1412], [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    """
    file = _file(path, "wiki-Vote.txt.gz", _SNAP)
    rows = _table(file, None, "source target", 2)
    return _graph(file, rows, np.ones(len(rows), dtype=np.int8), load_wiki_vote.__doc__)


def load_polblogs(path: str | Path | None = None) -> Bunch:
    """Load political blogs before the US election of 2004: 1,490 blogs, 19,090 links, 19,025 of them distinct.

    ``A[i, j]`` counts the links from i to j (65 are duplicates; 3 are self-loops). 758 blogs are liberal, 732
    conservative. Source: Adamic and Glance, "The political blogosphere and the 2004 US election", 2005, from Newman's
    collection of network data (GML). Nothing was cleaned.

    Parameters
    ----------
    path : str or Path, optional
        The file, plain or gzip-compressed; default: ``graphs/polblogs.gml.gz`` below ``$APEXRANK_DATA``.

    Returns
    -------
    Bunch
        With ``adjacency`` (int8), ``names`` (addresses), ``target`` (0 liberal, 1 conservative), ``target_names``,
        ``directories`` (the sources of these labels), ``source`` and ``DESCR``.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank_papers.data.networks import load_polblogs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "blogs.gml"
    ...     nodes = [f'node [ id {i} label "b{i}.org" value {i - 1} source "me" ]' for i in (1, 2)]
    ...     _ = file.write_text(f"graph [ {' '.join(nodes)} edge [ source 2 target 1 ] ]")
    ...     blogs = load_polblogs(file)
    >>> blogs.names.tolist(), blogs.target.tolist(), blogs.adjacency.toarray().tolist()
    (['b1.org', 'b2.org'], [0, 1], [[0, 0], [1, 0]])
    """
    file = _file(path, "polblogs.gml.gz", "Mark Newman's collection of network data")
    text = read_text(file)
    nodes = np.array(_NODE.findall(text)).reshape(-1, 4)
    links = np.array(_EDGE.findall(text), dtype=np.int64).reshape(-1, 2)
    ids = nodes[:, 0].astype(np.int64)
    if not len(ids) or len(np.unique(ids)) < len(ids) or not np.isin(links, ids).all():
        raise InputError(
            f"{file} is not the graph of blogs: it needs nodes with id, label, value (0 or 1) and source, and edges "
            "between them"
        )
    order = np.argsort(ids)
    source, target = order[np.searchsorted(ids, links, sorter=order)].T
    # duplicate links become one entry that counts them
    pairs, counts = np.unique(np.column_stack([source, target]), axis=0, return_counts=True)
    return Bunch(
        adjacency=_csr(pairs[:, 0], pairs[:, 1], counts.astype(np.int8), len(ids)),
        names=np.array([html.unescape(name) for name in nodes[:, 1].tolist()]),
        target=nodes[:, 2].astype(np.int64),
        target_names=np.array(["liberal", "conservative"]),
        directories=nodes[:, 3],
        source=str(file),
        DESCR=cleandoc(load_polblogs.__doc__ or ""),
    )


def toy_graph_1() -> Bunch:
    """Toy graph of the dissertation's Figure 6.2: few good links against many poor ones, 7 vertices, 19 links.

    The picture is lost; the text says: vertices 1, 2, 3 link to each of 4, 5, 6, 7, which therefore rank equally;
    vertex 2 receives three links worth 1/2 each, vertex 1 two, worth 1 and 1/2; PageRank ranks 1 and 2 equally, the
    L_2 and L_∞ ranks put 1 above 2. If a link is worth one over its source's out-degree, and (our assumption) there are
    no other links among 1, 2, 3 and none among 4 to 7, this determines the rest up to the numbering of 4 to 7: 4 → 1;
    5 → 1, 2; 6 → 2, 3; 7 → 2, 3.

    Returns
    -------
    Bunch
        With ``adjacency`` (int8), ``names`` (1 to 7, as in the figure), ``source`` and ``DESCR``.

    Examples
    --------
    >>> from apexrank_papers.data.networks import toy_graph_1
    >>> toy_graph_1().adjacency.toarray()[3:, :3]
    array([[1, 0, 0],
           [1, 1, 0],
           [0, 1, 1],
           [0, 1, 1]], dtype=int8)
    """
    forth = dict.fromkeys((1, 2, 3), (4, 5, 6, 7))
    return _toy({**forth, 4: (1,), 5: (1, 2), 6: (2, 3), 7: (2, 3)}, toy_graph_1.__doc__)


def toy_graph_2() -> Bunch:
    """Toy graph of the dissertation's Figure 6.3: a link farm beside an honest site, 9 vertices, 15 links.

    The picture is lost; the text says: vertices 1 to 5 are legitimate and tightly connected, and 1 links to all the
    others of them; 7, 8 and 9 link to 6, which links back to them, and nothing else links in or out; PageRank puts 6
    first, L_p demotes it more for larger p, and with L_∞ it falls below all legitimate vertices.

    The links of 2 to 5 are our choice: the ring 2 → 3 → 4 → 5 → 2, and 5 → 1. For the text's claim they must be few:
    the farm sends a booster's whole rank to 6, and if the legitimate vertices divide theirs among many links, a larger
    p raises the farm instead. Of all choices for 2 to 5 with 6 first for PageRank, this one (and its renumberings) puts
    6 lowest with L_∞ at q/p = 1.2. Its position is 1 with PageRank, 4 with L_{2,2.4}, 6 with L_{4,4.8} and L_∞. (At
    q/p = 1 the iteration for L_∞ ends in a cycle on both toy graphs; the statements hold throughout the cycle.)

    Returns
    -------
    Bunch
        With ``adjacency`` (int8), ``names`` (1 to 9, as in the figure), ``spam`` (6 to 9), ``source`` and ``DESCR``.

    Examples
    --------
    >>> from apexrank_papers.data.networks import toy_graph_2
    >>> toy = toy_graph_2()
    >>> toy.names[toy.spam].tolist(), toy.adjacency.sum(axis=1).tolist()
    ([6, 7, 8, 9], [4, 1, 1, 1, 2, 3, 1, 1, 1])
    """
    honest = {1: (2, 3, 4, 5), 2: (3,), 3: (4,), 4: (5,), 5: (1, 2)}
    bunch = _toy({**honest, 6: (7, 8, 9), 7: (6,), 8: (6,), 9: (6,)}, toy_graph_2.__doc__)
    bunch.spam = bunch.names >= 6
    return bunch


def _toy(links: dict[int, tuple[int, ...]], description: str | None) -> Bunch:
    pairs = np.array([(source, target) for source, targets in links.items() for target in targets]) - 1
    return Bunch(
        adjacency=_csr(pairs[:, 0], pairs[:, 1], np.ones(len(pairs), dtype=np.int8), len(links)),
        names=np.arange(1, len(links) + 1),
        source="made after the text",
        DESCR=cleandoc(description or ""),
    )


def _file(path: str | Path | None, name: str, where: str) -> Path:
    if path is not None:
        return Path(path)
    found = data_path("graphs", name) or data_path("graphs", name.removesuffix(".gz"))
    if found is None:
        raise MissingDataError(
            f"{name} is missing: get it from {where}, put it into a folder graphs, and set the environment variable "
            f"{DATA_VARIABLE} to the folder that holds graphs"
        )
    return found


def _table(file: Path, delimiter: str | None, form: str, width: int) -> np.ndarray:
    """Numbers of the file, one row per line; the first two columns are ids."""
    text = read_text(file)
    if all(line.startswith("#") for line in text.splitlines() if line.strip()):
        raise InputError(f"{file} has no links: it needs lines {form}")
    try:
        rows = np.loadtxt(io.StringIO(text), delimiter=delimiter, ndmin=2)
    except ValueError as error:
        detail = " ".join(str(error).split(";")[0].rstrip(".").split())
        raise InputError(f"{file} cannot be read ({detail}): it needs lines {form}") from None
    if rows.shape[1] != width:
        raise InputError(f"{file} has {rows.shape[1]} columns: it needs lines {form}")
    ids = rows[:, :2]
    if not ((ids >= 0) & (ids < 2**53) & (ids == np.floor(ids))).all():
        raise InputError(f"{file} has an id that is not a whole number of at least 0: it needs lines {form}")
    return rows


def _signed(file: Path, rows: np.ndarray, most: int, description: str | None) -> Bunch:
    ratings = rows[:, 2]
    wrong = ~((np.abs(ratings) <= most) & (ratings != 0) & (ratings == np.floor(ratings)))
    if wrong.any():
        source, target, rating = rows[np.argmax(wrong), :3]
        raise InputError(
            f"{file}: {source:.0f} gives {target:.0f} the value {rating:g}; it must be a whole number from {-most} to "
            f"{most}, not 0"
        )
    bunch = _graph(file, rows, ratings.astype(np.int8), description)
    if rows.shape[1] > 3:
        bunch.times = rows[np.lexsort((rows[:, 1], rows[:, 0])), 3]
    return bunch


def _graph(file: Path, rows: np.ndarray, weights: np.ndarray, description: str | None) -> Bunch:
    names, ends = np.unique(rows[:, :2].T.astype(np.int64), return_inverse=True)
    source, target = ends.reshape(2, -1)
    adjacency = _csr(source, target, weights, len(names))
    if not adjacency.has_canonical_format:
        order = np.lexsort((target, source))
        twice = np.flatnonzero((np.diff(source[order]) == 0) & (np.diff(target[order]) == 0))[0]
        first, second = names[source[order[twice]]], names[target[order[twice]]]
        raise InputError(f"{file}: the link from {first} to {second} is listed twice; remove one")
    return Bunch(adjacency=adjacency, names=names, source=str(file), DESCR=cleandoc(description or ""))


def _csr(source: np.ndarray, target: np.ndarray, weights: np.ndarray, n: int) -> csr_array:
    """CSR array with sorted int32 indices; duplicate links are kept."""
    order = np.lexsort((target, source))
    indptr = np.searchsorted(source[order], np.arange(n + 1)).astype(np.int32)
    return csr_array((weights[order], target[order].astype(np.int32), indptr), shape=(n, n))
