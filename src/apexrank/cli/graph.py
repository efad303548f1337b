"""``apexrank graph``: rank the vertices of a graph, or look at what a file of edges holds."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank.cli.edge_options import (
    REPEATED,
    Edges,
    Json,
    NoSelfLoops,
    Reading,
    Repeated,
    Signed,
    Source,
    Target,
    Undirected,
    Weight,
    check_output,
)
from apexrank.cli.graph_methods import METHODS, build_method
from apexrank.cli.output import (
    is_terminal,
    print_frame,
    print_json,
    print_table,
    show,
    warnings_as_notes,
    working,
)
from apexrank.cli.seeds import earlier_scores, named_vertex, seed_weights, series

if TYPE_CHECKING:
    import polars as pl

    from apexrank.graph.graph import Graph, SignedGraph

_METHOD, _LABELS = "Method", "Labels"
_ROWS_SHOWN, _LINKS_SHOWN = 10, 10
_SHOWN_PARAMS = ("p", "ratio", "k", "beta", "damping")
_QUIET_PARAMS = ("callback", "verbose", "warm_start")

graph_app = typer.Typer(
    name="graph", help="Rank the vertices of a graph so that made-up links gain little.", add_completion=False
)


def _number(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_METHOD)


def _label(help: str) -> Any:
    return typer.Option(help=help, rich_help_panel=_LABELS)


@graph_app.callback(invoke_without_command=True)
def _graph(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@graph_app.command()
def rank(
    edges: Edges,
    method: Annotated[str, _number(f"One of {', '.join(METHODS)}.")] = "lpq",
    p: Annotated[
        float | None,
        _number(
            "How much more few strong links count than many weak ones: from 1 to inf; 2 by default, 1 in top-mean.",
            "-p",
        ),
    ] = None,
    ratio: Annotated[
        float | None,
        _number("q/p of lpq and top-mean: returns of further links diminish above 1; 1.2 by default."),
    ] = None,
    k: Annotated[int | None, _number("Links that count in top-mean; 10 by default.", "-k")] = None,
    damping: Annotated[float | None, _number("Share that follows links; 0.85 by default.")] = None,
    teleport: Annotated[
        Path | None,
        _number("File of the vertices where the walk starts anew, in the form of --trusted; all by default."),
    ] = None,
    trusted: Annotated[
        Path | None,
        _label(
            "File of trusted vertices, one a line, or CSV with a column vertex and maybe weight. Without distrusted "
            "ones all that trust reaches count alike; trustrank has degrees."
        ),
    ] = None,
    distrusted: Annotated[Path | None, _label("File of distrusted vertices, in the same form.")] = None,
    trust: Annotated[
        str | None, _label("How labels spread in lpq: linear (the default), or same, as the rank does.")
    ] = None,
    gamma: Annotated[float | None, _label("What is left of them after a link; 0.85 by default.")] = None,
    distrust: Annotated[
        str | None, _label("Distrust runs against the links (the default) or along them.")
    ] = None,
    neutral: Annotated[
        float | None, _label("Factor of vertices that no label reaches; 0.5 by default.")
    ] = None,
    beta: Annotated[float | None, _label("Weight of distrust in demoted; 1 by default.")] = None,
    negative: Annotated[
        str | None,
        _label(
            "Negative edges make their targets distrusted by their sources' rank (edges, the default), or by their "
            "weight alone (seeds), with which anybody can demote anybody."
        ),
    ] = None,
    source: Source = None,
    target: Target = None,
    weight: Weight = None,
    undirected: Undirected = False,
    repeated: Repeated = "sum",
    no_self_loops: NoSelfLoops = False,
    signed: Signed = False,
    start: Annotated[
        Path | None, _number("Ranks written earlier, to begin with: same answer, fewer steps.")
    ] = None,
    tol: Annotated[
        float | None, _number("Stop when the scores are this near to the exact ones (L1); 1e-9 by default.")
    ] = None,
    max_iter: Annotated[int | None, _number("Most steps; 1000 by default.")] = None,
    top: Annotated[int | None, typer.Option(help="Keep the best N vertices.", metavar="N", min=1)] = None,
    explain: Annotated[
        list[str] | None,
        typer.Option(
            help="Show the links that make up the score of this vertex; may be repeated.", metavar="VERTEX"
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV or Parquet file to write; default: the screen.")
    ] = None,
    json: Json = False,
) -> None:
    """Rank the vertices of a graph, best first."""
    reading = Reading(source, target, weight, undirected, repeated, no_self_loops, signed)
    named = {"teleport": teleport, "trusted": trusted, "distrusted": distrusted, "start": start}
    files = {what: path for what, path in named.items() if path is not None}
    check_output(output, edges, *files.values())
    numbers = {"p": p, "ratio": ratio, "k": k, "damping": damping, "trust": trust, "gamma": gamma}
    numbers |= {"distrust": distrust, "neutral": neutral, "beta": beta, "negative": negative}
    flags = {"signed": signed, "explain": bool(explain)}
    given = {*files, *(flag for flag, wanted in flags.items() if wanted)}
    estimator = build_method(method, given, tol=tol, max_iter=max_iter, **numbers)
    began = time.perf_counter()
    graph = reading.read(edges)
    plain = graph.positive if signed else graph
    arguments: dict[str, Any] = {
        what: seed_weights(path, plain, what) for what, path in files.items() if what != "start"
    }
    if start is not None:
        arguments["start"] = earlier_scores(start, plain)
    vertices = [named_vertex(plain, name) for name in explain or ()]
    plain.numbers(vertices, what="explained")
    read = time.perf_counter()
    _fit(estimator, graph, plain.n, arguments)
    report = _report(edges, estimator, graph, method, read - began, time.perf_counter() - read)
    ranked = _ranked(estimator, top)
    reasons = {str(vertex): estimator.explain(vertex, top=_LINKS_SHOWN) for vertex in vertices}
    if output is not None:
        from apexrank.io import write_table

        write_table(ranked, output)
    if json:
        _print_json(report, ranked, reasons, output)
    else:
        _print(report, ranked, reasons, output)


def _fit(estimator: Any, graph: Any, n: int, arguments: dict[str, Any]) -> None:
    with working(f"ranking {n} vertices") as status, warnings_as_notes():
        if status is not None and "callback" in estimator.get_params():
            estimator.set_params(
                callback=lambda step, error: status.update(
                    f"ranking {n} vertices: step {step}, error at most {error:.1e}"
                )
            )
        estimator.fit(graph, **arguments)


def _ranked(estimator: Any, top: int | None) -> pl.DataFrame:
    """The vertices from the best on; equals keep the graph's order, as rows do in ``apexrank rank``."""
    import numpy as np
    import polars as pl

    order = np.argsort(-estimator.scores_, kind="stable")[:top]
    columns = {
        "rank": pl.Series(np.arange(1, len(order) + 1)),
        "vertex": series(estimator.graph_.labels(order)),
    }
    for name in ("score", "trust", "distrust"):
        values = getattr(estimator, "scores_" if name == "score" else f"{name}_", None)
        if values is not None:
            columns[name] = pl.Series(values[order])
    return pl.DataFrame(columns)


def _report(
    edges: Path, estimator: Any, graph: Graph | SignedGraph, method: str, reading: float, ranking: float
) -> dict[str, Any]:
    params = {k: v for k, v in estimator.get_params().items() if k not in _QUIET_PARAMS}
    negative = getattr(graph, "negative", None)
    return {
        "edges_file": str(edges),
        "vertices": estimator.graph_.n,
        "edges": estimator.graph_.n_edges,
        **({} if negative is None else {"negative_edges": negative.n_edges}),
        "method": method,
        "estimator": type(estimator).__name__,
        "params": {k: "inf" if v == math.inf else v for k, v in params.items()},
        "steps": getattr(estimator, "n_iter_", None),
        "converged": getattr(estimator, "converged_", True),
        "error_bound": getattr(estimator, "error_bound_", None),
        "error_bound_is_before_labels": hasattr(estimator, "ranks_") and hasattr(estimator, "trust_"),
        "seconds": {"reading": round(reading, 3), "ranking": round(ranking, 3)},
    }


def _print_json(
    report: dict[str, Any], ranked: pl.DataFrame, reasons: dict[str, Any], output: Path | None
) -> None:
    report |= {"rows": len(ranked), "output": None if output is None else str(output)}
    if output is None:
        report["ranking"] = ranked.to_dicts()
    if reasons:
        report["explain"] = {name: [link._asdict() for link in links] for name, links in reasons.items()}
    print_json(report)


def _print(
    report: dict[str, Any], ranked: pl.DataFrame, reasons: dict[str, Any], output: Path | None
) -> None:
    """The list as CSV to a program; else its head, the reasons, and how it was found to a person."""
    if output is None and not reasons:
        print_frame(ranked)
        if not is_terminal():
            return
    else:
        shown = ranked.head(_ROWS_SHOWN)
        print_table(shown.columns, shown.rows())
    for name, links in reasons.items():
        rows = [["(teleport)" if source is None else source, flow, share] for source, flow, share in links]
        print_table([f"into {name} from", "flow", "share"], rows)
    typer.echo(_sentence(report))
    if output is not None:
        typer.echo(f"written: {output}, {len(ranked)} of {report['vertices']} vertices, best first")


def _sentence(report: dict[str, Any]) -> str:
    params = ", ".join(f"{k}={show(report['params'][k])}" for k in _SHOWN_PARAMS if k in report["params"])
    edges = f"{report['edges']} edges"
    if "negative_edges" in report:
        edges += f" and {report['negative_edges']} negative ones"
    found = ""
    if report["steps"] is not None:
        state, bound = "converged" if report["converged"] else "stopped", report["error_bound"]
        certificate = "no bound on the error" if math.isnan(bound) else f"error at most {bound:.1e} (L1)"
        certificate += " before labels" if report["error_bound_is_before_labels"] else ""
        found = f": {state} after {report['steps']} steps, {certificate}"
    seconds = report["seconds"]
    return (
        f"{report['edges_file']}: {report['vertices']} vertices, {edges}; {report['estimator']}({params}){found}; "
        f"read in {seconds['reading']:.1f} s, ranked in {seconds['ranking']:.1f} s"
    )


@graph_app.command()
def inspect(
    edges: Edges,
    source: Source = None,
    target: Target = None,
    weight: Weight = None,
    undirected: Undirected = False,
    repeated: Repeated = "sum",
    no_self_loops: NoSelfLoops = False,
    signed: Signed = False,
    json: Json = False,
) -> None:
    """Say what a file of edges holds: sizes, components, dangling vertices, largest degrees."""
    reading = Reading(source, target, weight, undirected, repeated, no_self_loops, signed)
    graph = reading.read(edges)
    with working(f"looking at {edges}"):
        parts = (
            {"positive links": graph.positive, "negative links": graph.negative} if signed else {"": graph}
        )
        reports = {name: _inspected(part) for name, part in parts.items()}
        met = _repeated_links(edges, reading)
    if json:
        print_json({"edges_file": str(edges), "repeated": met, **(reports if signed else reports[""])})
        return
    weighted = any(report.pop("weighted") for report in reports.values())
    words = ["undirected" if undirected else "directed", "weighted" if weighted else "unweighted"]
    typer.echo(f"{edges}: {', '.join(words)}, {met} repeated links{REPEATED[repeated] if met else ''}")
    rows = [
        [key.replace("_", " "), *(report[key] for report in reports.values())]
        for key in next(iter(reports.values()))
    ]
    print_table(["property", *(name or "value" for name in reports)], rows)


def _inspected(graph: Graph) -> dict[str, Any]:
    """The graph's own summary, and how large the largest components are."""
    import numpy as np
    from scipy.sparse.csgraph import connected_components

    summary = graph.summary()
    memory, matrix = summary.pop("bytes"), graph.to_scipy()
    for kind in ("weak", "strong"):
        _, labels = connected_components(matrix, connection=kind)
        summary[f"largest_{kind}_component"] = int(np.bincount(labels).max())
    return {**summary, "bytes": memory}


def _repeated_links(edges: Path, reading: Reading) -> int:
    """How many links of the file are like an earlier one."""
    from apexrank.graph.files import edges_of_file
    from apexrank.kernels.edges import count_repeated, in_links

    given = edges_of_file(edges, **reading.columns())
    links = in_links(
        given.sources,
        given.targets,
        given.weights,
        given.n,
        both_ways=reading.undirected,
        drop_loops=reading.no_self_loops,
        sign=0,
    )
    return count_repeated(links)
