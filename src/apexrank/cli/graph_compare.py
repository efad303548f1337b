"""``apexrank graph compare``: which vertices gain by made-up links, and how far they fall when these count little."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank.cli.edge_options import (
    Edges,
    Json,
    NoSelfLoops,
    Reading,
    Repeated,
    Source,
    Target,
    Undirected,
    Weight,
    check_output,
    in_options,
)
from apexrank.cli.output import note, print_json, print_table, working
from apexrank.cli.pages import check_report
from apexrank.cli.seeds import named_vertex, read_seeds, seed_weights
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.graph.graph import Graph
    from apexrank.report import RankComparison

_METHOD, _LABELS = "Method", "Labels"
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


def _number(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_METHOD, **more)


def _label(help: str) -> Any:
    return typer.Option(help=help, rich_help_panel=_LABELS)


def graph_compare(
    edges: Edges,
    report: Annotated[
        Path | None, typer.Option(help="HTML file to write: everything in one page.", show_default=False)
    ] = None,
    p: Annotated[
        str,
        _number("Powers to compare, from 1 to inf; 1 is PageRank, which is always among them.", "-p", "--p"),
    ] = "1,2,4,8",
    ratio: Annotated[float, _number("q/p: returns of further links diminish above 1.")] = 1.2,
    damping: Annotated[float, _number("Share that follows links.")] = 0.85,
    tol: Annotated[float, _number("Stop when the scores are this near to the exact ones (L1).")] = 1e-7,
    max_iter: Annotated[int, _number("Most steps.")] = 1000,
    spam: Annotated[
        Path | None,
        _label(
            "File of vertices known to be spam, one a line, or CSV with a column vertex. They only measure: "
            "no rank depends on them. Those that are not in the graph are left out."
        ),
    ] = None,
    trusted: Annotated[
        Path | None,
        _label("File of trusted vertices, in the same form, for the ranks above p = 1; never suspected."),
    ] = None,
    top: Annotated[int, _number("Length of the lists that are shown.", metavar="N", min=1)] = 30,
    suspects: Annotated[int, _number("Most suspects at each p.", metavar="N", min=1)] = 30,
    neighbours: Annotated[int, _number("In-links shown of each suspect.", metavar="N", min=0)] = 8,
    source: Source = None,
    target: Target = None,
    weight: Weight = None,
    undirected: Undirected = False,
    repeated: Repeated = "sum",
    no_self_loops: NoSelfLoops = False,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV or Parquet file of the suspects to write.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare PageRank with L_pq ranks, and list the vertices that look like targets of link farms."""
    from apexrank.report import build, compare_ranks

    files = [path for path in (spam, trusted) if path is not None]
    check_output(output, edges, *files)
    check_report(report, edges, *files)
    powers = _powers(p)
    began = time.perf_counter()
    reading = Reading(source, target, weight, undirected, repeated, no_self_loops, signed=False)
    try:
        graph = reading.read(edges)
    except InputError as error:
        raise InputError(_in_words(str(error))) from None
    labels: dict[str, Any] = {}
    if spam is not None:
        labels["spam"] = _spam_labels(spam, graph)
    if trusted is not None:
        labels["trusted"] = seed_weights(trusted, graph, "trusted")
    read = time.perf_counter() - began
    with working(f"comparing ranks of {graph.n} vertices") as status:
        try:
            found = compare_ranks(
                graph,
                ps=powers,
                ratio=ratio,
                damping=damping,
                top=top,
                suspects=suspects,
                neighbours=neighbours,
                tol=tol,
                max_iter=max_iter,
                progress=None if status is None else status.update,
                **labels,
            )
        except InputError as error:
            raise InputError(_in_words(str(error))) from None
        found.seconds["reading"] = read
        found.seconds["total"] = time.perf_counter() - began
        if report is not None:
            build(found, report, title=title or f"Link farms? {edges.name}")
    found.seconds["total"] = time.perf_counter() - began
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


def _powers(text: str) -> list[float]:
    """Powers from text.

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
    """Weights of all vertices that a file names, known or not; an error where the graph has none of them."""
    from apexrank.report.graph.compare import known_names

    labels = {named_vertex(graph, name): weight for _, name, weight in read_seeds(path)}
    if not any(known_names(graph, list(labels))):
        seed_weights(path, graph, "spam")  # says which line
    return labels


def _in_words(message: str) -> str:
    """The library's advice in the words of this verb.

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
    from apexrank.report.graph.result import rank_label
    from apexrank.report.page import counted

    power = rank_label(found.ps[found.chosen])
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
