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

from apexrank import GuardedPageRank, LpqRank, PageRank
from apexrank.datasets import make_crawl
from apexrank.graph import Graph, as_graph
from apexrank.graph.lpq import Lpq
from apexrank.graph.nonbacktracking import NonBacktrackingWalk
from apexrank.graph.pagerank import SpreadWalk
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
    with NonBacktrackingWalk(graph, DAMPING, v, 2) as walk:
        states = walk.states(v)
        times["non-backtracking walks"] = seconds(lambda: next(states), repeats=20)
    with SpreadWalk(graph, DAMPING, v, 20.0, 2, 0.05) as walk:
        times["a guard"] = seconds(lambda: walk.step(v), repeats=20)
    base = times.pop("PageRank")
    limits = {"L_2,2.4": 1.3, "L_3,3.6": 1.3, "L_inf": "", "non-backtracking walks": 3, "a guard": 1.3}
    return [_row(f"one step of {name}", t, "PageRank step", base, limits[name]) for name, t in times.items()]


def peers(A: sparse.csr_array, graph: Graph) -> list[dict]:
    exact = PageRank(DAMPING, tol=1e-11).fit_predict(graph)
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
import json, sys, warnings
import numpy as np
n, m, way = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
from apexrank import GuardedPageRank, LpqRank, NonBacktrackingRank, PageRank
from apexrank.datasets import make_crawl
from apexrank.graph import Graph, as_graph

def resident():
    # of this process alone: the figure of getrusage begins with that of the process it was forked from
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1e3

imported = resident()
if way == "matrix":
    graph = as_graph(make_crawl(n, mean_degree=m / n, random_state=0).adjacency)
else:
    rng = np.random.default_rng(0)
    sources, targets = (rng.integers(0, n, m, dtype=np.int32) for _ in range(2))
    graph = Graph.from_edges(sources, targets, n=n, repeated="once")
    del sources, targets
warnings.simplefilter("ignore")  # a few steps need as much memory as many
for rank in (PageRank, LpqRank, NonBacktrackingRank, GuardedPageRank):
    rank(max_iter=5).fit(graph)
print(json.dumps({"links": graph.n_edges, "graph": graph.nbytes / 1e6, "imported": imported, "peak": resident()}))
"""


def memory(n: int, m: int, way: str, limit: float) -> dict:
    """Peak of a whole process that makes up a crawl, or m links, builds the graph and ranks it, in MB."""
    command = [sys.executable, "-c", MEASURE, str(n), str(m), way]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {
        "what": f"peak memory: {found['links']:,} links from a {way}, built and ranked",
        "ours (s)": "",
        "beside": f"graph {found['graph']:.0f} MB, imports {found['imported']:.0f} MB",
        "that (s)": "",
        "ratio": f"{found['peak']:.0f} MB",
        "limit": f"{limit:.0f} MB",
    }


def defaults(n: int = 100_000) -> None:
    """How far from the exact scores networkx stops at its own defaults, and through our backend."""
    try:
        import networkx as nx
    except ImportError as error:
        print(f"networkx left out: {error}")
        return
    A = make_crawl(n, mean_degree=6, random_state=0).adjacency
    exact, G = PageRank(tol=1e-12).fit_predict(A), nx.from_scipy_sparse_array(A, create_using=nx.DiGraph)
    rows = []
    for name, arguments in (("networkx", {}), ('backend="apexrank"', {"backend": "apexrank"})):
        found = nx.pagerank(G, **arguments)
        distance = float(np.abs(np.array([found[i] for i in range(n)]) - exact).sum())
        rows.append(f"{name}: {distance:.0e}")
    print(f"nx.pagerank at its defaults, {n:,} pages, distance from the exact scores (L1): {'; '.join(rows)}")


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
        f"{graph.n:,} pages, {graph.n_edges:,} links, {int(graph.dangling.sum()):,} dangling pages; "
        f"the graph takes {graph.nbytes / 1e6:.0f} MB"
    )
    rows = [*steps(graph), *peers(A, graph)]
    fit = seconds(lambda: LpqRank(tol=WANTED).fit(graph), repeats=3)
    rows.append(_row(f"L_2,2.4 to {WANTED:g}", fit, "PageRank to the same", rows[-1]["ours (s)"], ""))
    fit = seconds(lambda: GuardedPageRank(tol=WANTED).fit(graph), repeats=3)
    rows.append(_row(f"GuardedPageRank to {WANTED:g}", fit, "PageRank to the same", rows[-1]["that (s)"], ""))
    rows += [
        memory(PAGES, LINKS, "matrix", 400 + 8 * LINKS / 1e6),
        memory(3_000_000, 100_000_000, "list", 8000),
    ]
    defaults()
    report("graph", "Graph ranking", rows)


if __name__ == "__main__":
    main()
