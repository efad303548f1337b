"""``apexrank graph``: rank the vertices of a graph, describe a file of edges, pack large ones into shards."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import apexrank
from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.cli.graph_consensus import consensus
from apexrank.cli.graph_studies import attack, graph_compare
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.graph import Graph

_LINKS_SHOWN = 10
_SHOWN_PARAMS = ("p", "ratio", "k", "min_links", "truncate", "cap", "beta", "damping", "smoothing")
_QUIET_PARAMS = ("callback", "verbose", "warm_start")
_COLUMNS = ("trust", "distrust", "pagerank", "absolute_mass")  # written if the rank has them
_ABOUT_SCORES = {
    "spam-mass": "score: minus the share of a vertex's PageRank that does not come from the trusted vertices, so -1 "
    "points to spam, 0 and above to good vertices; absolute_mass: that part of PageRank"
}
_ABOUT_LABELS = ("trust", "gamma", "distrust", "neutral")
_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


class Method(NamedTuple):
    """A method of ``graph rank``: its class, the options it takes and needs, and parameters of other names."""

    estimator: str
    takes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    renamed: Mapping[str, str] = {}


_LABELLED = ("trusted", "distrusted")
_OF_SHARDS = (
    *("guarded", "pagerank", "lpq", "top-mean", "indegree"),
    *("trustrank", "spam-mass", "anti-trustrank", "demoted"),
)
PLACES = ("inside", "outside", "weak-links")
METHODS = {
    "lpq": Method(
        "LpqRank",
        ("teleport", *_LABELLED, "signed", "start", "explain"),
        renamed={"teleport_as": "teleport"},
    ),
    "pagerank": Method("PageRank", ("teleport", "start", "explain")),
    "indegree": Method("InDegree", ("signed",)),
    "trustrank": Method("TrustRank", ("trusted", "explain"), ("trusted",)),
    "anti-trustrank": Method("AntiTrustRank", ("distrusted",), ("distrusted",), {"distrust": "direction"}),
    "demoted": Method("DemotedRank", _LABELLED, _LABELLED, {"distrust": "direction"}),
    "guarded": Method("GuardedPageRank", ("teleport", "start", "explain")),
    "nonbacktracking": Method("NonBacktrackingRank", ("teleport", "explain")),
    "robust": Method("RobustPageRank", ("teleport", "start", "explain")),
    "spam-mass": Method("SpamMassRank", ("trusted",), ("trusted",)),
    "top-mean": Method("TopMeanRank", ("teleport", "start", "explain")),
    "fairness-goodness": Method("FairnessGoodness", ("signed", "explain"), ("signed",)),
}

graph_app = typer.Typer(
    name="graph",
    help="Rank the vertices of graphs, and measure resistance to link spam.",
    add_completion=False,
)


@graph_app.callback(invoke_without_command=True)
def _graph(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@dataclass(frozen=True)
class RankOptions:
    """The method and its parameters."""

    method: str | None = opt.method(
        f"One of {', '.join(METHODS)} (default: guarded; fairness-goodness with --signed; lpq with labels or -p).",
        choices=tuple(METHODS),
    )
    p: float | None = opt.method(
        "Weight of few strong links against many weak ones, from 1 to inf (default: 2; top-mean: 1)."
    )
    ratio: float | None = opt.method(
        "For lpq and top-mean: q/p; above 1 further links add less (default: 1.2)."
    )
    k: int | None = opt.method("For top-mean: number of strongest links that count (default: 10).")
    truncate: int | None = opt.method(
        "First steps of a walk that count nothing in nonbacktracking and little in guarded (default: 2)."
    )
    cap: float | None = opt.method(
        "For robust: largest contribution of one vertex to another (default: 0.01)."
    )
    damping: float | None = opt.method(
        "Probability of following a link instead of restarting (default: 0.85)."
    )
    teleport_as: str | None = opt.method(
        "For lpq: teleport as one more in-link (inside, the default), as a share added after the norm (outside), or as "
        "a weak link between every two vertices (weak-links).",
        choices=PLACES,
    )
    smoothing: float | None = opt.method(
        "For fairness-goodness: neutral ratings added to those of each vertex (default: 2)."
    )
    tol: float | None = opt.method(
        "Largest error of the scores, in L1 norm; for fairness-goodness of each score (default: 1e-9; robust: 1e-3)."
    )
    max_iter: int | None = opt.method("Maximum number of steps (default: 1000).")
    min_links: float | None = opt.method(
        "For guarded: number of links that each vertex is assumed to have at least (default: 20)."
    )
    keep: float | None = opt.method(
        "For guarded: share of the vertices that keep their PageRank (default: 0.9)."
    )
    trust: str | None = opt.label(
        "For lpq: labels spread linearly (linear, the default) or as the ranks do (same)."
    )
    gamma: float | None = opt.label("Share of trust that passes each link (default: 0.85).")
    distrust: str | None = opt.label(
        "Direction in which distrust spreads: against the links (the default) or along them."
    )
    neutral: float | None = opt.label("Factor for vertices that no label reaches (default: 0.5).")
    good_share: float | None = opt.label("For spam-mass: estimated share of good vertices (default: 0.85).")
    beta: float | None = opt.label("For demoted: weight of distrust (default: 1).")
    negative: str | None = opt.label(
        "Negative edges demote their targets by the rank of their sources (edges, the default), or by their weight "
        "alone (seeds), which lets anybody demote anybody."
    )


@dataclass(frozen=True)
class SignedEdges(opt.EdgeOptions):
    """Format of a file of edges, which may be negative."""

    signed: bool = opt.reading(
        "Read negative weights as distrust; rank such ratings with --method fairness-goodness.",
        default=False,
    )


@dataclass(frozen=True)
class VertexFiles:
    """Files that name vertices."""

    teleport: Path | None = opt.method(
        "File of vertices where walks restart, in the form of --trusted (default: all vertices)."
    )
    trusted: Path | None = opt.label(
        "File of trusted vertices, one per line, or CSV with the column vertex and optionally weight. Vertices that "
        "are not in the graph are skipped with a note. Without --distrusted, lpq treats all vertices that trust "
        "reaches alike; trustrank grades them."
    )
    distrusted: Path | None = opt.label("File of distrusted vertices, in the same form.")
    start: Path | None = opt.method("File of earlier ranks to start from: same result, fewer steps.")


@dataclass(frozen=True)
class RankEngine(opt.Workers):
    """Engine and worker options of a rank."""

    engine: str | None = opt.large(
        "For a graph in shards, as written by graph pack: read one shard after another (blocks, the default), or keep "
        "the shards in memory of several processes (dask).",
        choices=("blocks", "dask"),
    )

    def check_graph(self, edges: Path, method: str) -> None:
        """Raise InputError for options and methods that graphs in memory, or graphs in shards, do not support."""
        from apexrank.graph.shards import is_shards

        self.check(self.engine == "dask")
        in_shards, others = is_shards(edges), f"use one of {', '.join(_OF_SHARDS)}"
        in_memory = f"--method {method} needs a graph in memory, but {edges} is in shards: {others}"
        opt.refuse(in_shards and method not in _OF_SHARDS, in_memory)
        pack = f"write one with apexrank graph pack {edges} -o edges.shards"
        opt.refuse(self.engine and not in_shards, f"--engine is for graphs in shards: {pack}")


@dataclass(frozen=True)
class PackOptions:
    """The folder to write, and the memory for it."""

    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="PATH", help="Folder to write, such as edges.shards.")
    ]
    memory: str = opt.plain(
        "Memory for edges and names, such as 500MB, in addition to about 40 bytes per vertex.",
        metavar="SIZE",
        default="2GB",
    )


@dataclass(frozen=True)
class ExplainedOutput(opt.RankingOutput):
    """Options for the output and its explanations."""

    explain: list[str] | None = opt.written(
        "Vertex whose score to explain by its links; repeatable.", metavar="VERTEX"
    )


@graph_app.command()
@opt.option_groups
def rank(
    edges: opt.EdgePath,
    *,
    options: RankOptions,
    vertex_files: VertexFiles,
    reading: SignedEdges,
    engine: RankEngine,
    shown: ExplainedOutput,
    json: opt.Json = False,
) -> None:
    """Rank the vertices of a graph, best first."""
    files, output, signed = opt.given_options(vertex_files), shown.output, reading.signed
    out.check_table(output, edges, *files.values())
    out.check_inputs(edges, *files.values())
    from apexrank.graph.vertex_files import earlier_scores, named_vertex, ranking_frame

    flags = {"signed": signed, "explain": shown.explain}
    asked = {*files, *(name for name, value in flags.items() if value)}
    parameters = opt.given_options(options)
    method = parameters.pop("method", None) or default_method({*asked, *parameters})
    estimator = build_method(method, asked, **parameters)
    engine.check_graph(edges, method)
    watch = out.Stopwatch()
    given = reading.read(edges, signed=signed)
    on_dask = engine.engine == "dask"
    if on_dask:
        given = replace(given, engine="dask")
    graph = given.positive if signed else given
    arguments = {
        what: earlier_scores(path, graph) if what == "start" else opt.read_seeds(path, graph, what)
        for what, path in files.items()
    }
    vertices = [named_vertex(graph, name) for name in shown.explain or []]
    graph.numbers(vertices, what="explained")
    watch.end("reading")
    with engine.cluster() if on_dask else nullcontext():
        out.fit_with_progress(estimator, given, f"ranking {graph.n} vertices", "error at most", **arguments)
    watch.end("ranking")
    found = {name: getattr(estimator, f"{name}_", None) for name in _COLUMNS}
    columns = {name: values for name, values in found.items() if values is not None}
    ranked = ranking_frame(estimator.graph_, estimator.scores_, shown.top, **columns)
    reasons = {str(vertex): estimator.explain(vertex, top=_LINKS_SHOWN) for vertex in vertices}
    explained = {str(vertex): estimator.explained(vertex) for vertex in vertices}
    out.write_frame(ranked, output)
    negative = {"negative_edges": given.negative.n_edges} if signed else {}
    report = {"edges_file": str(edges), "method": method, **_report(estimator), **negative, "seconds": watch}
    if json:
        report |= {"rows": len(ranked), "output": output}
        if reasons:
            report["explain"] = {name: [link._asdict() for link in links] for name, links in reasons.items()}
            report["explained"] = {name: what for name, (what, _) in explained.items()}
        out.print_json(report, output, ranking=ranked)
        return
    if reasons and output is None:
        head = ranked.head(_LINKS_SHOWN)
        out.print_table(head.columns, head.rows())
    elif not out.show_frame(ranked, output):
        return  # a pipe gets only the ranking
    for name, links in reasons.items():
        what, start = explained[name]
        typer.echo(f"{name}: links that make up {what}")
        rows = [[f"({start})" if source is None else source, flow, share] for source, flow, share in links]
        out.print_table([f"into {name} from", "flow", "share"], rows)
    typer.echo(_sentence(report))
    if method in _ABOUT_SCORES:
        typer.echo(_ABOUT_SCORES[method])
    out.print_written(output, f", {len(ranked)} of {report['vertices']} vertices, best first")


def default_method(given: set[str]) -> str:
    """Return the default method for the files, flags and parameters of the command line.

    Examples
    --------
    >>> default_method(set()), default_method({"trusted"}), default_method({"signed"})
    ('guarded', 'lpq', 'fairness-goodness')
    """
    if given & {*_LABELLED, *_ABOUT_LABELS, "p", "ratio", "teleport_as", "negative"}:
        return "lpq"
    return "fairness-goodness" if "signed" in given else "guarded"


def build_method(name: str, given: set[str], **options: Any) -> Any:
    """Build the unfitted rank of a method; ``given`` are the files and flags on the command line.

    Raises
    ------
    InputError
        If the method does not have an option, or needs one that is missing.
    """
    method = METHODS[name]
    for option in sorted(given - {*method.takes}):
        raise InputError(f"--method {name} has no --{option}: leave it out")
    for option in method.needs:
        needs = f"needs the vertices to start from: add --{option} FILE"
        ratings = "ranks ratings, some of them negative: add --signed"
        opt.refuse(option not in given, f"--method {name} {ratings if option == 'signed' else needs}")
    estimator = getattr(import_module("apexrank.graph"), method.estimator)()
    opt.set_parameters(estimator, options, f"--method {name}", method.renamed)
    for option in _ABOUT_LABELS:
        unlabelled = option in options and not given & {*_LABELLED, "signed"}
        add = "add --trusted, --distrusted or --signed, or leave it out"
        opt.refuse(unlabelled, f"--{option} applies to labels: {add}")
    unsigned = "negative" in options and "signed" not in given
    opt.refuse(unsigned, "--negative applies to negative edges: add --signed, or leave out --negative")
    estimator._validate_params()
    return estimator


def _report(estimator: Any) -> dict[str, Any]:
    """Return the facts about a fitted rank."""
    given = {name: value for name, value in estimator.get_params().items() if name not in _QUIET_PARAMS}
    return {
        "vertices": estimator.graph_.n,
        "edges": estimator.graph_.n_edges,
        "estimator": type(estimator).__name__,
        "params": {name: "inf" if value == math.inf else value for name, value in given.items()},
        "steps": getattr(estimator, "n_iter_", None),
        "converged": getattr(estimator, "converged_", True),
        "error_bound": getattr(estimator, "error_bound_", None),
        "error_norm": getattr(estimator, "error_norm", None),
        "error_bound_is_before_labels": hasattr(estimator, "ranks_") and hasattr(estimator, "trust_"),
    }


def _sentence(report: dict[str, Any]) -> str:
    """Describe the method of a ranking and its accuracy."""
    shown = [f"{k}={out.show(report['params'][k])}" for k in _SHOWN_PARAMS if k in report["params"]]
    place = report["params"].get("teleport", "inside")
    params = ", ".join(shown if place == "inside" else [*shown, f"teleport={place}"])
    size = f"{out.plural(report['vertices'], 'vertex', 'vertices')}, {out.plural(report['edges'], 'edge')}"
    if "negative_edges" in report:
        size += f" and {report['negative_edges']} negative ones"
    found, bound = "", report["error_bound"]
    if report["steps"] is not None:
        known = f"error at most {bound:.1e} ({report['error_norm']})"
        certificate = "no bound on the error" if math.isnan(bound) else known
        certificate += " before labels" if report["error_bound_is_before_labels"] else ""
        found = f": {out.ended(report['converged'], report['steps'])}, {certificate}"
    return f"{report['edges_file']}: {size}; {report['estimator']}({params}){found}; {report['seconds']}"


@graph_app.command()
@opt.option_groups
def inspect(edges: opt.EdgePath, *, reading: SignedEdges, json: opt.Json = False) -> None:
    """Summarise a file of edges: size, components, dangling vertices, largest degrees."""
    out.check_inputs(edges)
    signed = reading.signed
    from apexrank.graph.reading import counts_both_ways
    from apexrank.kernels.edges import count_repeated, in_links

    found = reading.read_edges(edges)
    graph = reading.build(found, signed=signed)
    with out.working(f"looking at {edges}"):
        parts = {"positive links": graph.positive, "negative links": graph.negative} if signed else {}
        both_ways = counts_both_ways(found, False if reading.undirected else None)
        undirected = reading.undirected or not found.directed
        reports = {name: _inspected(part, undirected) for name, part in (parts or {"value": graph}).items()}
        ends = found.sources, found.targets, found.weights, found.n
        met = count_repeated(in_links(*ends, both_ways=both_ways, drop_loops=reading.no_self_loops, sign=0))
    if json:
        told = reports if signed else reports["value"]
        out.print_json({"edges_file": str(edges), "repeated": met, **told})
        return
    weighted = False
    for report in reports.values():
        # summing repeated links creates weights that the file does not have
        weighted |= report.pop("weighted") and found.weights is not None
        report["memory"] = out.size(report.pop("bytes"))
        if not undirected:
            del report["links"]  # as many as edges
    words = f"{'un' * undirected}directed, {'un' * (not weighted)}weighted"
    repeated = f"{out.plural(met, 'repeated link')}{opt.REPEATED[reading.repeated] if met else ''}"
    typer.echo(f"{edges}: {words}, {repeated}")
    keys = next(iter(reports.values()))
    rows = [[key.replace("_", " "), *(report[key] for report in reports.values())] for key in keys]
    out.print_table(["property", *reports], rows)


def _inspected(graph: Graph, undirected: bool) -> dict[str, Any]:
    """Return the graph's own summary, and the sizes of its largest components; an undirected edge is two links."""
    import numpy as np
    from scipy.sparse.csgraph import connected_components

    summary = graph.summary()
    links, loops = summary.pop("edges"), summary["self_loops"]
    size = {"vertices": summary.pop("vertices"), "edges": (links + loops) // 2 if undirected else links}
    summary = {**size, "links": links, **summary}
    memory, matrix = summary.pop("bytes"), graph.to_scipy()
    for kind in ("weak", "strong"):
        _, labels = connected_components(matrix, connection=kind)
        summary[f"largest_{kind}_component"] = int(np.bincount(labels).max())
    return {**summary, "bytes": memory}


@graph_app.command()
@opt.option_groups
def pack(
    edges: Annotated[
        list[Path],
        opt.argument(
            "Edges: CSV, TSV, a plain list or JSON lines (also .gz), or Parquet; folders or quoted patterns of such "
            "files; - for standard input."
        ),
    ],
    *,
    files: PackOptions,
    reading: opt.EdgeOptions,
    json: opt.Json = False,
) -> None:
    """Sort edge files of any size into shards on disk, with bounded memory.

    Links are sorted by target; vertex ids, numbers or text, are replaced by numbers.
    """
    out.check_inputs(*edges)
    output, size = files.output, parse_size(files.memory)

    watch = out.Stopwatch()
    with out.working(f"packing {edges[0]}", strict=reading.strict) as status:
        tell = None if status is None else status.update
        graph = apexrank.graph.pack_graph(edges, output, **reading.rules(), memory=size, progress=tell)
    watch.end("packing")
    size_on_disk = sum(path.stat().st_size for path in output.iterdir())
    if json:
        sizes = {"vertices": graph.n, "edges": graph.n_edges, "weighted": graph.weighted}
        shards = {"shards": len(graph.shards), "bytes": size_on_disk}
        out.print_json({"output": output, **sizes, **shards, "seconds": watch})
        return
    counts = f"{out.plural(graph.n, 'vertex', 'vertices')}, {out.plural(graph.n_edges, 'edge')}"
    shards_found = f"{out.plural(len(graph.shards), 'shard')} of {out.size(size_on_disk)} in all"
    typer.echo(f"{output}: {counts}, {'un' * (not graph.weighted)}weighted, in {shards_found}; {watch}")


def parse_size(text: str) -> float:
    """Parse a size with its unit.

    Examples
    --------
    >>> parse_size("2GB"), parse_size("1.5 mb")
    (2000000000.0, 1500000.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt])i?b?", text.strip().lower())
    if found is None or not float(found[1]):  # a bare 10 may mean 10 GB; as bytes it fills the disk
        raise InputError(f"--memory must be a number with a unit, such as 500MB or 2GB, got {text!r}")
    return float(found[1]) * _UNITS[found[2]]


graph_app.command("compare")(graph_compare)
graph_app.command()(attack)
graph_app.command()(consensus)
