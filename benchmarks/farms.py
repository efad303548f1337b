"""Suspects of ``graph compare``: share of the attackers' pages among the first, and alarms where nothing is planted.

Graphs are taken without self-loops; those whose files are missing are left out. The figures are in the docstring of
`apexrank.report.graph.compare`.
"""

from __future__ import annotations

import numpy as np

from apexrank.datasets import attack
from apexrank.graph import as_graph
from apexrank.report import compare_ranks
from apexrank_papers.data.sources import MissingDataError
from benchmarks.attacks import GRAPHS
from benchmarks.timing import report

PLANTED = {
    "200 boosters, linked back": ("linked-back", 200),
    "200 boosters": ("farm", 200),
    "50 boosters, linked back": ("linked-back", 50),
    "triangles": ("triangles", 200),
    "funnels": ("funnel", 200),
    "cycles of three": ("whirl", 200),
    "exchange": ("exchange", 200),
}


def main() -> None:
    rows: list[dict] = []
    for name, load in GRAPHS.items():
        try:
            web = as_graph(load(), self_loops="drop").to_scipy()
        except MissingDataError as error:
            print(f"{name} left out: {error}")
            continue
        clean = compare_ranks(web)
        alarms = f"{len(clean.flagged)} of {clean.head:,}"
        rows.append(
            {"graph": name, "planted": "nothing", "flagged": alarms, "targets": "", "at 10, 30, 50": ""}
        )
        n_targets = min(50, web.shape[0] // 400)  # new pages are at most half as many as old ones
        for title, (kind, pages) in PLANTED.items():
            spammed = attack(web, kind, n_targets=n_targets, pages=pages)
            flagged = compare_ranks(spammed.adjacency).flagged
            found = int(np.isin(spammed.target_vertices, flagged).sum())
            at = ", ".join(f"{spammed.spam[flagged[:k]].mean():.2f}" for k in (10, 30, 50))
            row = {"flagged": str(len(flagged)), "targets": f"{found} of {n_targets}", "at 10, 30, 50": at}
            rows.append({"graph": name, "planted": title, **row})
            print(rows[-1], flush=True)
        report("farms", "Suspects of graph compare", rows)


if __name__ == "__main__":
    main()
