"""``apexrank graph compare``: find vertices that gain by link farms."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from apexrank.cli import options as opt
from apexrank.cli import output as out

if TYPE_CHECKING:
    from apexrank.graph.graph import Graph
    from apexrank.report import RankComparison

_ROWS_SHOWN = 10
_SHOWN = {
    "vertex": "vertex",
    "pagerank_rank": "in PageRank",
    "rank": "now",
    "suspicion": "suspicion",
    "in_links": "in-links",
    "unsupported": "unsupported",
    "unsupported_share": "of the flow",
    "linked_back": "linked back",
}


@dataclass(frozen=True)
class CompareOptions:
    """Parameters of `apexrank.report.compare_ranks`."""

    p: str = opt.method(
        "Powers to compare, from 1 to inf; 1 is PageRank, which is always among them.",
        "-p",
        "--p",
        default="1,2,4,8",
    )
    ratio: float = opt.method("q/p: returns of further links diminish above 1.", default=1.2)
    damping: float = opt.method("Share that follows links.", default=0.85)
    tol: float = opt.method("Stop when the scores are this near to the exact ones (L1).", default=1e-7)
    max_iter: int = opt.method("Most steps.", default=1000)
    top: int = opt.method("Length of the lists that are shown.", metavar="N", min=1, default=30)
    suspects: int = opt.method("Most suspects at each p.", metavar="N", min=1, default=30)
    neighbours: int = opt.method("In-links shown of each suspect.", metavar="N", min=0, default=8)


@dataclass(frozen=True)
class LabelFiles:
    """Vertices known to be spam, or trusted."""

    spam: Path | None = opt.label(
        "File of vertices known to be spam, one a line, or CSV with a column vertex. They only measure: "
        "no rank depends on them. Those that are not in the graph are left out."
    )
    trusted: Path | None = opt.label(
        "File of trusted vertices, in the same form, for the ranks above p = 1; never suspected."
    )


@dataclass(frozen=True)
class FarmOutputs(opt.ReportOptions):
    """Files to write."""

    output: Path | None = opt.written("CSV or Parquet file of the suspects to write.", "--output", "-o")


@opt.option_groups
def graph_compare(
    edges: opt.EdgePath,
    *,
    shown: FarmOutputs,
    options: CompareOptions,
    labels: LabelFiles,
    reading: opt.EdgeOptions,
    json: opt.Json = False,
) -> None:
    """Compare PageRank with L_pq ranks, and list the vertices that look like targets of link farms."""
    out.check_table(shown.output, edges, labels.spam, labels.trusted)
    out.check_report(shown.report, edges, labels.spam, labels.trusted)
    out.check_inputs(edges, labels.spam, labels.trusted)
    from apexrank.report import build, compare_ranks

    parameters = asdict(options)
    parameters["ps"] = opt.split_powers(parameters.pop("p"), "1,2,4,8")
    began = time.perf_counter()
    graph = reading.read(edges)
    if labels.spam is not None:
        parameters["spam"] = _spam_labels(labels.spam, graph)
    if labels.trusted is not None:
        parameters["trusted"] = opt.read_seeds(labels.trusted, graph, "trusted")
    read = time.perf_counter() - began
    with out.working(f"comparing ranks of {graph.n} vertices") as status:
        found = compare_ranks(graph, progress=None if status is None else status.update, **parameters)
        found.seconds.update(reading=read, total=time.perf_counter() - began)
        if shown.report is not None:
            build(found, shown.report, title=shown.title or f"Link farms? {edges.name}")
    found.seconds["total"] = time.perf_counter() - began
    out.write_frame(found.table(), shown.output)
    if json:
        written = {"report": shown.report, "output": shown.output}
        out.print_json({"edges_file": edges} | found.to_dict() | written)
    else:
        _print(found, edges, shown)


def _spam_labels(path: Path, graph: Graph) -> dict[Any, float]:
    """Read the weights of all vertices that a file names, since the report counts those that the graph lacks."""
    from apexrank.graph.vertex_files import named_vertex, read_seeds, seed_weights

    seed_weights(path, graph, "spam")  # an error if the graph lacks all of them
    return {named_vertex(graph, name): weight for _, name, weight in read_seeds(path)}


def _print(found: RankComparison, edges: Path, shown: FarmOutputs) -> None:
    from apexrank.report.graph.result import rank_label
    from apexrank.report.page import counted

    power = rank_label(found.ps[found.chosen])
    vertices, links = counted(found.graph.n, "vertex", "vertices"), counted(found.graph.n_edges, "link")
    typer.echo(f"{edges}: {vertices}, {links}; PageRank against {power}")
    table = found.table()
    if table.height:
        out.print_table(list(_SHOWN.values()), table.head(_ROWS_SHOWN).select(list(_SHOWN)).rows())
        listed, of = min(_ROWS_SHOWN, table.height), len(found.flagged[found.chosen])
        typer.echo(
            f"{listed:,} of {counted(of, 'suspect')}, the most suspicious first; unsupported: in-links from vertices "
            "that nobody else links to"
        )
    if found.measures:
        base, now = (found.measures[i]["spam_mass"] for i in (0, found.chosen))
        typer.echo(f"spam holds {base:.1%} of PageRank's score, {now:.1%} at {power}")
    for sentence in found.notes:
        out.note(sentence)
    typer.echo(out.in_options(found.verdict.text))
    seconds = found.seconds
    typer.echo(
        f"read in {seconds['reading']:.1f} s, ranked in {seconds['ranking']:.1f} s, {seconds['total']:.1f} s in all"
    )
    suspects = f"{counted(table.height, 'suspect')} at {power}, the most suspicious first"
    out.print_written(shown.output, f", {suspects}")
    if shown.report is not None:
        out.print_written(shown.report, f" ({shown.report.stat().st_size / 1e6:.1f} MB)")
