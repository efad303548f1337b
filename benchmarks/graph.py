"""Graph ranking: one step, PageRank beside its peers, and memory, on 400,000 pages with 13,000,000 links.

``pip install igraph networkit graphblas-algorithms networkx`` for the peers; those that are missing are left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from apexrank import LpqRank, PageRank
from apexrank.datasets import make_crawl
from apexrank.graph import Graph, as_graph
from apexrank.graph.maps import Lpq
from apexrank.graph.power import Walk
from benchmarks.timing import report, seconds

PAGES, LINKS = 400_000, 13_000_000
WANTED = 1e-6  # L1 distance to the exact PageRank
DAMPING = 0.85


def crawl() -> sparse.csr_array:
    return make_crawl(PAGES, mean_degree=LINKS / PAGES, random_state=0).adjacency


def steps(graph: Graph) -> list[dict]:
    v = np.full(graph.n, 1 / graph.n)
    times = {}
    for name, map_ in (
        ("PageRank", Lpq(1.0, 1.0)),
        ("L_2,2.4", Lpq(2.0, 1.2)),
        ("L_3,3.6", Lpq(3.0, 1.2)),
        ("L_inf", Lpq(np.inf, 1.2)),
    ):
        with Walk(graph, map_, DAMPING, v) as walk:
            times[name] = seconds(lambda walk=walk: walk.step(v), repeats=20)
    base = times.pop("PageRank")
    limits = {"L_2,2.4": 1.3, "L_3,3.6": 1.3, "L_inf": ""}
    return [_row(f"one step of {name}", t, "PageRank step", base, limits[name]) for name, t in times.items()]


def peers(A: sparse.csr_array, graph: Graph) -> list[dict]:
    exact = PageRank(DAMPING, tol=1e-13).fit_predict(graph)
    ours = seconds(lambda: PageRank(DAMPING, tol=WANTED).fit(graph))
    _say("apexrank", ours, np.abs(PageRank(DAMPING, tol=WANTED).fit_predict(graph) - exact).sum())
    rows = []
    for name, make, limit in (
        ("scipy CSR power iteration", _scipy, 0.6),
        ("igraph", _igraph, 1.0),
        ("NetworKit", _networkit, 1.0),
        ("graphblas-algorithms", _graphblas, 1.0),
    ):
        try:
            rank = make(A)
        except ImportError as error:
            print(f"{name} left out: {error}")
            continue
        distance = float(np.abs(rank() - exact).sum())
        theirs = seconds(rank, repeats=3)
        _say(name, theirs, distance)
        rows.append(_row(f"PageRank to {WANTED:g}", ours, f"{name} (to {distance:.0e})", theirs, limit))
    return rows


def _scipy(A: sparse.csr_array) -> Callable[[], np.ndarray]:
    """The usual lines of NumPy and SciPy, with the same certificate as ours."""
    d = np.asarray(A.sum(axis=1)).ravel().astype(float)
    n, share = len(d), np.divide(1.0, d, out=np.zeros(len(d)), where=d > 0)
    P = (sparse.diags_array(share) @ A.astype(float)).T.tocsr()

    def rank() -> np.ndarray:
        r = np.full(n, 1 / n)
        while True:
            new = DAMPING * (P @ r + r[d == 0].sum() / n) + (1 - DAMPING) / n
            if DAMPING / (1 - DAMPING) * np.abs(new - r).sum() <= WANTED:
                return new
            r = new

    return rank


def _igraph(A: sparse.csr_array) -> Callable[[], np.ndarray]:
    import igraph

    edges = A.tocoo()
    G = igraph.Graph(A.shape[0], np.stack([edges.row, edges.col], axis=1), directed=True)
    return lambda: np.array(G.pagerank(damping=DAMPING))


def _networkit(A: sparse.csr_array) -> Callable[[], np.ndarray]:
    import networkit as nk

    edges = A.tocoo()
    G = nk.GraphFromCoo(
        (edges.row.astype(np.uint64), edges.col.astype(np.uint64)), n=A.shape[0], directed=True
    )

    def rank() -> np.ndarray:
        found = nk.centrality.PageRank(
            G,
            damp=DAMPING,
            tol=WANTED * (1 - DAMPING) / DAMPING,
            distributeSinks=nk.centrality.SinkHandling.DistributeSinks,
        )
        found.norm = nk.centrality.Norm.l1norm
        scores = np.array(found.run().scores())
        return scores / scores.sum()

    return rank


def _graphblas(A: sparse.csr_array) -> Callable[[], np.ndarray]:
    import graphblas as gb
    from graphblas_algorithms import DiGraph
    from graphblas_algorithms.algorithms import pagerank

    G = DiGraph(gb.io.from_scipy_sparse(A.astype(float)))

    def rank() -> np.ndarray:
        # as networkx it stops at N·tol
        found = pagerank(G, alpha=DAMPING, tol=WANTED * (1 - DAMPING) / DAMPING / A.shape[0], max_iter=1000)
        return found.to_dense(fill_value=0.0)

    return rank


MEASURE = """
import json, resource, sys
import numpy as np
n, m, steps = map(int, sys.argv[1:])
from apexrank import LpqRank
from apexrank.graph import Graph
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rng = np.random.default_rng(0)
sources = rng.integers(0, n, m, dtype=np.int32)
targets = (n * rng.random(m, dtype=np.float32) ** 3).astype(np.int32)
np.minimum(targets, n - 1, out=targets)
graph = Graph.from_edges(sources, targets, n=n, repeated="once")
size = graph.nbytes
del sources, targets
import warnings
warnings.simplefilter("ignore")
LpqRank(max_iter=steps).fit(graph)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"edges": graph.n_edges, "graph": size / 1e6, "before": before / 1e3, "peak": peak / 1e3}))
"""


def memory(n: int, m: int, limit: float) -> dict:
    """Peak of a whole process that makes up m edges, builds the graph and ranks it, in MB."""
    out = subprocess.run(
        [sys.executable, "-c", MEASURE, str(n), str(m), "5"], check=True, capture_output=True, text=True
    )
    found = json.loads(out.stdout)
    return {
        "what": f"memory: {found['edges']:,} distinct links of {m:,} made up, built and ranked",
        "ours (s)": "",
        "beside": f"graph {found['graph']:.0f} MB; {found['before']:.0f} MB after import",
        "that (s)": "",
        "ratio": f"{found['peak']:.0f} MB",
        "limit": f"{limit:.0f} MB",
    }


def _say(name: str, took: float, distance: float) -> None:
    print(f"{name}: {took:.3f} s, {distance:.1e} from the exact scores (L1)")


def _row(what: str, ours: float, beside: str, theirs: float, limit: Any) -> dict:
    return {
        "what": what,
        "ours (s)": ours,
        "beside": beside,
        "that (s)": theirs,
        "ratio": ours / theirs,
        "limit": limit,
    }


def main() -> None:
    A = crawl()
    graph = as_graph(A)
    print(
        f"{graph.n:,} pages, {graph.n_edges:,} links, {int(graph.dangling.sum()):,} dangling; graph {graph.nbytes / 1e6:.0f} MB"
    )
    rows = [*steps(graph), *peers(A, graph)]
    fit = seconds(lambda: LpqRank(tol=WANTED).fit(graph), repeats=3)
    rows.append(_row(f"L_2,2.4 to {WANTED:g}", fit, "PageRank to the same", rows[-1]["ours (s)"], ""))
    rows += [memory(PAGES, LINKS, 400), memory(3_000_000, 100_000_000, 8000)]
    report("graph", "Graph ranking", rows)


if __name__ == "__main__":
    main()
