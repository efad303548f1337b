"""Ranks under attack: attacks × ranks on real and synthetic graphs, with and without self-loops.

Graphs whose files are missing are left out. ``results/attacks.csv`` has all measures, ``results/attacks.md`` a table of
median places for each graph, ``results/attacks.json`` a row for each graph and rank. All are written after each graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import polars as pl
from scipy.sparse import csr_array

from apexrank.datasets import make_crawl
from apexrank.graph import AttackStudy, Graph, as_graph, attack_ranks
from apexrank.graph.robustness import ATTACKS
from apexrank_papers.data import load_cnr_2000, load_epinions, load_wiki_vote
from apexrank_papers.data.sources import MissingDataError
from benchmarks.timing import RESULTS, report

SHOWN = [*ATTACKS, "farm:1000", "hijacked:100"]
GRAPHS: dict[str, Callable[[], csr_array]] = {
    "wiki-Vote": lambda: load_wiki_vote().adjacency,
    "synthetic crawl": lambda: make_crawl(100_000, mean_degree=20, random_state=0).adjacency,
    "epinions, trust": lambda: load_epinions().adjacency.maximum(0),
    "cnr-2000": lambda: load_cnr_2000().adjacency,
}


def graphs() -> Iterator[tuple[str, Graph]]:
    """Each graph as it is and, where it has self-loops, without them."""
    for name, load in GRAPHS.items():
        try:
            adjacency = load()
        except MissingDataError as error:
            print(f"{name} left out: {error}")
            continue
        loops = int((adjacency.diagonal() != 0).sum())
        yield f"{name}, {loops:,} self-loops", as_graph(adjacency)
        if loops:
            yield f"{name}, self-loops dropped", as_graph(adjacency, self_loops="drop")


def places(title: str, study: AttackStudy) -> Iterator[str]:
    """A Markdown table of median places, and one of agreement with PageRank."""
    names = [row.rank for row in study.agreement]
    yield f"\n## {title}: {study.vertices:,} vertices, {study.edges:,} links, {study.n_targets} targets\n"
    yield f"| attack | pages | hijacked | {' | '.join(names)} |\n|---|{'---:|' * (len(names) + 2)}"
    before = [f"{study.of_rank(name)[0].before:,.0f}" for name in names]
    yield f"| none | | | {' | '.join(before)} |"
    for attack in study.attacks:
        rows = [each for each in study.results if each.attack == attack]
        cells = [f"{each.after:,.0f}{'' if each.holds else ' ✗'}" for each in rows]
        yield f"| {attack} | {rows[0].pages:g} | {rows[0].hijacked:g} | {' | '.join(cells)} |"
    yield "\n| rank | Spearman | of 100 | of 1,000 | footrule | closed in 100 |\n|---|---:|---:|---:|---:|---:|"
    for row in study.agreement:
        found = f"{row.spearman:.3f} | {row.overlap_100} | {row.overlap_1000} | {row.footrule:.3f}"
        yield f"| {row.rank} | {found} | {row.closed_100} |"
    yield ""
    yield from (f"- {sentence}" for sentence in (*study.verdicts.values(), *study.notes))


def summary(title: str, study: AttackStudy) -> Iterator[dict]:
    """A row for each rank: in how many attacks it holds, and how it orders the graph before any attack."""
    for row in study.agreement:
        lost = [each.attack for each in study.lost(row.rank)]
        agreement = {"spearman": row.spearman, "of 100": row.overlap_100, "closed in 100": row.closed_100}
        held = f"{study.held(row.rank)} of {study.held(row.rank) + len(lost)}"
        yield {"graph": title, "rank": row.rank, "holds": held, **agreement, "fails": ", ".join(lost)}


def main() -> None:
    rows: list[dict] = []
    tables: list[pl.DataFrame] = []
    lines = ["# Median places of targets under attack", ""]
    lines += ["✗: less than 10 times PageRank's place, and less than half the place before."]
    RESULTS.mkdir(exist_ok=True)
    for title, graph in graphs():
        study = attack_ranks(graph, attacks=SHOWN, progress=partial(print, f"{title}:", flush=True))
        tables.append(study.table().select(pl.lit(title).alias("graph"), pl.all()))
        lines += places(title, study)
        rows += summary(title, study)
        pl.concat(tables).write_csv(RESULTS / "attacks.csv")
        (RESULTS / "attacks.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        report("attacks", "Ranks under attack", rows)


if __name__ == "__main__":
    main()
