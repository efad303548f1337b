"""``apexrank graph compare``: find vertices that gain by link farms."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank.cli.options import (
    EdgeOptions,
    EdgePath,
    Json,
    Report,
    Title,
    in_options,
    label_option,
    method_option,
    option_groups,
    output_option,
)
from apexrank.cli.output import check_report, check_table, note, print_json, print_table, working
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.graph.adjacency import Graph
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
    """Numbers that `apexrank.report.compare_ranks` takes."""

    ratio: Annotated[float, method_option("q/p: returns of further links diminish above 1.")] = 1.2
    damping: Annotated[float, method_option("Share that follows links.")] = 0.85
    tol: Annotated[float, method_option("Stop when the scores are this near to the exact ones (L1).")] = 1e-7
    max_iter: Annotated[int, method_option("Most steps.")] = 1000
    top: Annotated[int, method_option("Length of the lists that are shown.", metavar="N", min=1)] = 30
    suspects: Annotated[int, method_option("Most suspects at each p.", metavar="N", min=1)] = 30
    neighbours: Annotated[int, method_option("In-links shown of each suspect.", metavar="N", min=0)] = 8


@option_groups
def graph_compare(
    edges: EdgePath,
    *,
    report: Report = None,
    p: Annotated[
        str,
        method_option(
            "Powers to compare, from 1 to inf; 1 is PageRank, which is always among them.", "-p", "--p"
        ),
    ] = "1,2,4,8",
    options: CompareOptions,
    spam: Annotated[
        Path | None,
        label_option(
            "File of vertices known to be spam, one a line, or CSV with a column vertex. They only measure: "
            "no rank depends on them. Those that are not in the graph are left out."
        ),
    ] = None,
    trusted: Annotated[
        Path | None,
        label_option(
            "File of trusted vertices, in the same form, for the ranks above p = 1; never suspected."
        ),
    ] = None,
    reading: EdgeOptions,
    title: Title = None,
    output: Annotated[
        Path | None, output_option("CSV or Parquet file of the suspects to write.", "--output", "-o")
    ] = None,
    json: Json = False,
) -> None:
    """Compare PageRank with L_pq ranks, and list the vertices that look like targets of link farms."""
    check_table(output, edges, spam, trusted)
    check_report(report, edges, spam, trusted)
    powers = _powers(p)
    try:
        found = _compare(edges, reading, spam, trusted, powers, options, report, title)
    except InputError as error:
        raise InputError(_in_words(str(error))) from None
    if output is not None:
        from apexrank.io import write_table

        write_table(found.table(), output)
    if json:
        written = {"report": report, "output": output}
        print_json(
            {"edges_file": str(edges)}
            | found.to_dict()
            | {what: None if path is None else str(path) for what, path in written.items()}
        )
    else:
        _print(found, edges, report, output)


def _compare(
    edges: Path,
    reading: EdgeOptions,
    spam: Path | None,
    trusted: Path | None,
    powers: list[float],
    options: CompareOptions,
    report: Path | None,
    title: str | None,
) -> RankComparison:
    """Read the files, compare the ranks, and write the report."""
    from apexrank.graph.vertex_files import seed_weights
    from apexrank.report import build, compare_ranks

    began = time.perf_counter()
    graph = reading.read(edges)
    labels: dict[str, Any] = {}
    if spam is not None:
        labels["spam"] = _spam_labels(spam, graph)
    if trusted is not None:
        labels["trusted"] = seed_weights(trusted, graph, "trusted")
    read = time.perf_counter() - began
    with working(f"comparing ranks of {graph.n} vertices") as status:
        progress = None if status is None else status.update
        found = compare_ranks(graph, ps=powers, progress=progress, **asdict(options), **labels)
        found.seconds["reading"] = read
        found.seconds["total"] = time.perf_counter() - began
        if report is not None:
            build(found, report, title=title or f"Link farms? {edges.name}")
    found.seconds["total"] = time.perf_counter() - began
    return found


def _powers(text: str) -> list[float]:
    """Parse a list of powers.

    Examples
    --------
    >>> _powers("1,2.5,inf")
    [1.0, 2.5, inf]
    """
    try:
        return [math.inf if part.strip() == "∞" else float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"-p takes numbers with commas between them, such as 1,2,4,8, got {text!r}"
        ) from None


def _spam_labels(path: Path, graph: Graph) -> dict[Any, float]:
    """Read the weights of all vertices that a file names; raise if none of them is in the graph."""
    from apexrank.graph.vertex_files import named_vertex, read_seeds, seed_weights
    from apexrank.report.farm_labels import known_names

    labels = {named_vertex(graph, name): weight for _, name, weight in read_seeds(path)}
    if not any(known_names(graph, list(labels))):
        seed_weights(path, graph, "spam")  # says which line
    return labels


def _in_words(message: str) -> str:
    """Rewrite the library's parameters as options of this command.

    Examples
    --------
    >>> _in_words("ps needs a power above 1 to compare PageRank with, such as 4")
    '-p needs a power above 1 to compare PageRank with, such as 4'
    >>> _in_words("raise max_iter or tol")
    'raise --max-iter or --tol'
    """
    message = message.replace("raise max_iter or tol", "raise --max-iter or --tol")
    message = message.replace("A larger p or a smaller ratio", "A larger -p or a smaller --ratio")
    message = message.replace(
        "; if that is distrust, use --method lpq --signed", "; distrust has no place here: take it out"
    )
    if message.startswith("ps needs"):
        message = message.replace("ps needs", "-p needs")
    return in_options(message)


def _print(found: RankComparison, edges: Path, report: Path | None, output: Path | None) -> None:
    from apexrank.report.farm_rows import counted, power_of

    power = power_of(found.ps[found.chosen])
    vertices, links = counted(found.graph.n, "vertex", "vertices"), counted(found.graph.n_edges, "link")
    typer.echo(f"{edges}: {vertices}, {links}; PageRank against {power}")
    table = found.table()
    if table.height:
        print_table(list(_SHOWN.values()), table.head(_ROWS_SHOWN).select(list(_SHOWN)).rows())
        listed, of = min(_ROWS_SHOWN, table.height), len(found.flagged[found.chosen])
        typer.echo(
            f"{listed:,} of {counted(of, 'suspect')}, the most suspicious first; unsupported: in-links from vertices "
            "that nobody else links to"
        )
    if found.measures:
        base, now = (found.measures[i]["spam_mass"] for i in (0, found.chosen))
        typer.echo(f"spam holds {base:.1%} of PageRank's score, {now:.1%} at {power}")
    for sentence in found.notes:
        note(_in_words(sentence))
    typer.echo(_in_words(found.verdict.text))
    seconds = found.seconds
    typer.echo(
        f"read in {seconds['reading']:.1f} s, ranked in {seconds['ranking']:.1f} s, {seconds['total']:.1f} s in all"
    )
    if output is not None:
        typer.echo(
            f"written: {output}, {counted(table.height, 'suspect')} at {power}, the most suspicious first"
        )
    if report is not None:
        typer.echo(f"written: {report} ({report.stat().st_size / 1e6:.1f} MB)")
