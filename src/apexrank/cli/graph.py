"""``apexrank graph rank`` and ``graph inspect``: rank the vertices of a graph, describe a file of edges."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.cli.graph_compare import graph_compare
from apexrank.cli.graph_consensus import consensus
from apexrank.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from apexrank.graph.graph import Graph, SignedGraph

_LINKS_SHOWN = 10
_SHOWN_PARAMS = ("p", "ratio", "k", "beta", "damping")
_QUIET_PARAMS = ("callback", "verbose", "warm_start")
_ABOUT_LABELS = ("trust", "gamma", "distrust", "neutral")


class Method(NamedTuple):
    """A method of ``graph rank``: its class, the options it takes and needs, and parameters of other names."""

    estimator: str
    takes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    renamed: Mapping[str, str] = {}


_LABELLED = ("trusted", "distrusted")
METHODS = {
    "lpq": Method("LpqRank", ("teleport", *_LABELLED, "signed", "start", "explain")),
    "pagerank": Method("PageRank", ("teleport", "start", "explain")),
    "indegree": Method("InDegree"),
    "trustrank": Method("TrustRank", ("trusted", "explain"), ("trusted",)),
    "anti-trustrank": Method("AntiTrustRank", ("distrusted",), ("distrusted",), {"distrust": "direction"}),
    "demoted": Method("DemotedRank", _LABELLED, _LABELLED, {"distrust": "direction"}),
    "top-mean": Method("TopMeanRank", ("teleport", "start", "explain")),
}

Signed = Annotated[
    bool,
    typer.Option("--signed", help="Negative weights are distrust, not an error.", rich_help_panel="Reading"),
]
graph_app = typer.Typer(
    name="graph", help="Rank the vertices of a graph so that made-up links gain little.", add_completion=False
)


@graph_app.callback(invoke_without_command=True)
def _graph(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@dataclass(frozen=True)
class RankOptions:
    """The method and its parameters."""

    method: str = opt.method(f"One of {', '.join(METHODS)}.", default="lpq")
    p: float | None = opt.method(
        "How much more few strong links count than many weak ones: from 1 to inf; 2 by default, 1 in top-mean.",
        "-p",
    )
    ratio: float | None = opt.method(
        "q/p of lpq and top-mean: returns of further links diminish above 1; 1.2 by default."
    )
    k: int | None = opt.method("Links that count in top-mean; 10 by default.", "-k")
    damping: float | None = opt.method("Share that follows links; 0.85 by default.")
    tol: float | None = opt.method(
        "Stop when the scores are this near to the exact ones (L1); 1e-9 by default."
    )
    max_iter: int | None = opt.method("Most steps; 1000 by default.")
    trust: str | None = opt.label(
        "How labels spread in lpq: linear (the default), or same, as the rank does."
    )
    gamma: float | None = opt.label("What is left of them after a link; 0.85 by default.")
    distrust: str | None = opt.label("Distrust runs against the links (the default) or along them.")
    neutral: float | None = opt.label("Factor of vertices that no label reaches; 0.5 by default.")
    beta: float | None = opt.label("Weight of distrust in demoted; 1 by default.")
    negative: str | None = opt.label(
        "Negative edges make their targets distrusted by their sources' rank (edges, the default), or by their "
        "weight alone (seeds), with which anybody can demote anybody."
    )


@dataclass(frozen=True)
class VertexFiles:
    """Files that name vertices."""

    teleport: Path | None = opt.method(
        "File of the vertices where the walk starts anew, in the form of --trusted; all by default."
    )
    trusted: Path | None = opt.label(
        "File of trusted vertices, one a line, or CSV with a column vertex and maybe weight. Without distrusted "
        "ones all that trust reaches count alike; trustrank has degrees."
    )
    distrusted: Path | None = opt.label("File of distrusted vertices, in the same form.")
    start: Path | None = opt.method("Ranks written earlier, to begin with: same answer, fewer steps.")


@dataclass(frozen=True)
class ExplainedOutput(opt.RankingOutput):
    """What is written, and what is explained."""

    explain: list[str] | None = opt.written(
        "Show the links that make up the score of this vertex; may be repeated.", metavar="VERTEX"
    )


@graph_app.command()
@opt.option_groups
def rank(
    edges: opt.EdgePath,
    *,
    options: RankOptions,
    vertex_files: VertexFiles,
    reading: opt.EdgeOptions,
    signed: Signed = False,
    shown: ExplainedOutput,
    json: opt.Json = False,
) -> None:
    """Rank the vertices of a graph, best first."""
    from apexrank.graph.vertex_files import ranking_frame

    files = opt.given_options(vertex_files)
    output = shown.output
    out.check_table(output, edges, *files.values())
    flags = {"signed": signed, "explain": bool(shown.explain)}
    given = {*files, *(name for name, wanted in flags.items() if wanted)}
    parameters = opt.given_options(options)
    method = parameters.pop("method")
    estimator = build_method(method, given, **parameters)
    began = time.perf_counter()
    graph = reading.read(edges, signed=signed)
    plain = graph.positive if signed else graph
    arguments, vertices = _read_vertices(files, shown.explain or [], plain)
    read = time.perf_counter()
    what = f"ranking {plain.n} vertices"
    out.fit_with_progress(estimator, graph, what, "error at most", **arguments)
    report = _report(edges, estimator, graph, method, read - began, time.perf_counter() - read)
    labels = {name: getattr(estimator, f"{name}_", None) for name in ("trust", "distrust")}
    given_labels = {name: values for name, values in labels.items() if values is not None}
    ranked = ranking_frame(estimator.graph_, estimator.scores_, shown.top, **given_labels)
    reasons = {str(vertex): estimator.explain(vertex, top=_LINKS_SHOWN) for vertex in vertices}
    out.write_frame(ranked, output)
    if json:
        report |= {"rows": len(ranked), "output": output}
        if output is None:
            report["ranking"] = ranked.to_dicts()
        if reasons:
            report["explain"] = {name: [link._asdict() for link in links] for name, links in reasons.items()}
        out.print_json(report)
    else:
        _print(report, ranked, reasons, output)


def build_method(name: str, given: set[str], **options: Any) -> Any:
    """Build the unfitted rank of a method; ``given`` are the files and flags on the command line.

    Raises
    ------
    InputError
        When the method is unknown, has no such option, or lacks what it needs.
    """
    if name not in METHODS:
        raise InputError(f"unknown method {name!r}: use one of {', '.join(METHODS)}")
    method = METHODS[name]
    for option in sorted(given - {*method.takes}):
        raise InputError(f"--method {name} has no --{option}: leave it out")
    for option in method.needs:
        if option not in given:
            raise InputError(f"--method {name} needs --{option} FILE, the vertices it starts from")
    estimator = getattr(import_module("apexrank.graph"), method.estimator)()
    for option, value in options.items():
        parameter = method.renamed.get(option, option)
        if parameter not in estimator.get_params():
            raise InputError(f"--method {name} has no {opt.flag(option)}: leave it out")
        estimator.set_params(**{parameter: value})
    for option in _ABOUT_LABELS:
        if option in options and not given & {*_LABELLED, "signed"}:
            raise InputError(
                f"--{option} is about labels: add --trusted, --distrusted or --signed, or leave it out"
            )
    if "negative" in options and "signed" not in given:
        raise InputError("--negative is about negative edges: add --signed, or leave it out")
    return estimator


def _read_vertices(
    files: dict[str, Path], explain: list[str], graph: Graph
) -> tuple[dict[str, Any], list[Any]]:
    """Return the arguments of ``fit`` that files give, and the vertices to explain."""
    from apexrank.graph.vertex_files import earlier_scores, named_vertex, seed_weights

    arguments = {
        what: earlier_scores(path, graph) if what == "start" else seed_weights(path, graph, what)
        for what, path in files.items()
    }
    vertices = [named_vertex(graph, name) for name in explain]
    graph.numbers(vertices, what="explained")
    return arguments, vertices


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


def _print(
    report: dict[str, Any], ranked: pl.DataFrame, reasons: dict[str, Any], output: Path | None
) -> None:
    """Print the ranking, the reasons, and how it was found; a program gets the ranking alone."""
    if reasons and output is None:
        shown = ranked.head(_LINKS_SHOWN)
        out.print_table(shown.columns, shown.rows())
    elif not out.show_frame(ranked, output):
        return
    for name, links in reasons.items():
        rows = [["(teleport)" if source is None else source, flow, share] for source, flow, share in links]
        out.print_table([f"into {name} from", "flow", "share"], rows)
    typer.echo(_sentence(report))
    if output is not None:
        typer.echo(f"written: {output}, {len(ranked)} of {report['vertices']} vertices, best first")


def _sentence(report: dict[str, Any]) -> str:
    params = ", ".join(f"{k}={out.show(report['params'][k])}" for k in _SHOWN_PARAMS if k in report["params"])
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
@opt.option_groups
def inspect(
    edges: opt.EdgePath, *, reading: opt.EdgeOptions, signed: Signed = False, json: opt.Json = False
) -> None:
    """Say what a file of edges holds: sizes, components, dangling vertices, largest degrees."""
    graph = reading.read(edges, signed=signed)
    with out.working(f"looking at {edges}"):
        parts = (
            {"positive links": graph.positive, "negative links": graph.negative} if signed else {"": graph}
        )
        reports = {name: _inspected(part) for name, part in parts.items()}
        met = _repeated_links(edges, reading)
    if json:
        out.print_json({"edges_file": str(edges), "repeated": met, **(reports if signed else reports[""])})
        return
    weighted = any(report.pop("weighted") for report in reports.values())
    words = f"{'un' * reading.undirected}directed, {'un' * (not weighted)}weighted"
    typer.echo(f"{edges}: {words}, {met} repeated links{opt.REPEATED[reading.repeated] if met else ''}")
    rows = [
        [key.replace("_", " "), *(report[key] for report in reports.values())]
        for key in next(iter(reports.values()))
    ]
    out.print_table(["property", *(name or "value" for name in reports)], rows)


def _inspected(graph: Graph) -> dict[str, Any]:
    """Return the graph's own summary, and the sizes of its largest components."""
    import numpy as np
    from scipy.sparse.csgraph import connected_components

    summary = graph.summary()
    memory, matrix = summary.pop("bytes"), graph.to_scipy()
    for kind in ("weak", "strong"):
        _, labels = connected_components(matrix, connection=kind)
        summary[f"largest_{kind}_component"] = int(np.bincount(labels).max())
    return {**summary, "bytes": memory}


def _repeated_links(edges: Path, reading: opt.EdgeOptions) -> int:
    """Count the links of the file that repeat an earlier one."""
    from apexrank.graph.files import edges_of_file
    from apexrank.kernels.edges import count_repeated, in_links

    given = edges_of_file(edges, **reading.columns())
    ends = given.sources, given.targets, given.weights, given.n
    return count_repeated(
        in_links(*ends, both_ways=reading.undirected, drop_loops=reading.no_self_loops, sign=0)
    )


graph_app.command("compare")(graph_compare)
graph_app.command()(consensus)
