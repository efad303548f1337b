"""``apexrank graph rank`` and ``graph inspect``: rank the vertices of a graph, describe a file of edges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.cli.graph_consensus import consensus
from apexrank.cli.graph_pack import pack
from apexrank.cli.graph_studies import attack, graph_compare
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.graph.graph import Graph

_LINKS_SHOWN = 10
_SHOWN_PARAMS = ("p", "ratio", "k", "min_links", "truncate", "cap", "beta", "damping", "smoothing")
_QUIET_PARAMS = ("callback", "verbose", "warm_start")
_COLUMNS = (
    "trust",
    "distrust",
    "hubs",
    "pagerank",
    "absolute_mass",
)  # written beside the score where they are known
_ABOUT_SCORES = {
    "spam-mass": "score: minus the share of a vertex's PageRank that does not come from the trusted vertices, so -1 "
    "points to spam, 0 and above to good vertices; absolute_mass: that part of PageRank"
}
_ABOUT_LABELS = ("trust", "gamma", "distrust", "neutral")


class Method(NamedTuple):
    """A method of ``graph rank``: its class, the options it takes and needs, and parameters of other names."""

    estimator: str
    takes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    renamed: Mapping[str, str] = {}


_LABELLED = ("trusted", "distrusted")
_OF_SHARDS = (
    *("guarded", "pagerank", "truncated", "lpq", "top-mean", "katz", "indegree"),
    *("trustrank", "spam-mass", "anti-trustrank", "demoted"),
)
PLACES = ("inside", "outside", "weak-links")
METHODS = {
    "lpq": Method(
        "LpqRank",
        ("teleport", *_LABELLED, "signed", "start", "explain", "device"),
        renamed={"teleport_as": "teleport"},
    ),
    "pagerank": Method("PageRank", ("teleport", "start", "explain", "device")),
    "indegree": Method("InDegree", ("signed",)),
    "trustrank": Method("TrustRank", ("trusted", "explain"), ("trusted",)),
    "anti-trustrank": Method("AntiTrustRank", ("distrusted",), ("distrusted",), {"distrust": "direction"}),
    "demoted": Method("DemotedRank", _LABELLED, _LABELLED, {"distrust": "direction"}),
    "guarded": Method("GuardedPageRank", ("teleport", "start", "explain")),
    "nonbacktracking": Method("NonBacktrackingRank", ("teleport", "explain")),
    "truncated": Method("TruncatedPageRank", ("teleport", "start", "explain", "device")),
    "robust": Method("RobustPageRank", ("teleport", "start", "explain")),
    "spam-mass": Method("SpamMassRank", ("trusted",), ("trusted",)),
    "hits": Method("HITS", ("start",)),
    "katz": Method("KatzRank", ("start",)),
    "eigenvector": Method("EigenvectorRank", ("start",)),
    "top-mean": Method("TopMeanRank", ("teleport", "start", "explain")),
    "fairness-goodness": Method("FairnessGoodness", ("signed", "explain"), ("signed",)),
    "mean-rating": Method("MeanRating", ("signed",), ("signed",)),
    "modified-pagerank": Method("ModifiedPageRank", ("teleport", "signed"), ("signed",)),
}

Signed = Annotated[
    bool,
    typer.Option(
        "--signed",
        help="Negative weights are distrust, not an error; rank such ratings with --method fairness-goodness.",
        rich_help_panel="Reading",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        help="Iterate on a device of PyTorch, such as cuda; for pagerank, truncated and lpq.",
        metavar="DEVICE",
        rich_help_panel="Method",
    ),
]
graph_app = typer.Typer(
    name="graph",
    help="Rank the vertices of a graph, and measure how far made-up links would lift them.",
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
        f"One of {', '.join(METHODS)}; guarded by default, fairness-goodness with --signed, lpq with labels or -p.",
        choices=tuple(METHODS),
    )
    p: float | None = opt.method(
        "How much more few strong links count than many weak ones: from 1 to inf; 2 by default, 1 in top-mean.",
        "-p",
    )
    ratio: float | None = opt.method(
        "q/p of lpq and top-mean: returns of further links diminish above 1; 1.2 by default."
    )
    k: int | None = opt.method("Links that count in top-mean; 10 by default.", "-k", "--k")
    truncate: int | None = opt.method(
        "First steps of a walk that do not count in truncated and nonbacktracking, and little in guarded; 2 by "
        "default."
    )
    cap: float | None = opt.method("Most that a vertex contributes to another in robust; 0.01 by default.")
    alpha: float | None = opt.method(
        "What a link hands on in katz; 0.85 over a bound of the spectral radius by default."
    )
    damping: float | None = opt.method("Share that follows links; 0.85 by default.")
    teleport_as: str | None = opt.method(
        "What the teleport of lpq is: one more in-link (inside, the default), a share added after the norm (outside), "
        "or a weak link from every vertex to every vertex (weak-links).",
        choices=PLACES,
    )
    smoothing: float | None = opt.method(
        "Neutral ratings added to those of each vertex in fairness-goodness and mean-rating; 2 by default."
    )
    tol: float | None = opt.method(
        "Stop when the scores are this near to the exact ones (L1; in fairness-goodness each score); 1e-9 by default, "
        "1e-3 in robust."
    )
    max_iter: int | None = opt.method("Most steps; 1000 by default.")
    min_links: float | None = opt.method(
        "Links that every vertex is taken to have at least in the guard of guarded; 20 by default."
    )
    keep: float | None = opt.method(
        "Share of the vertices that keep their PageRank in guarded; 0.9 by default."
    )
    trust: str | None = opt.label(
        "How labels spread in lpq: linear (the default), or same, as the rank does."
    )
    gamma: float | None = opt.label("What is left of them after a link; 0.85 by default.")
    distrust: str | None = opt.label("Distrust runs against the links (the default) or along them.")
    neutral: float | None = opt.label("Factor of vertices that no label reaches; 0.5 by default.")
    good_share: float | None = opt.label("Estimated share of good vertices in spam-mass; 0.85 by default.")
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
        "File of trusted vertices, one a line, or CSV with a column vertex and maybe weight; those that are not in "
        "the graph are left out with a note. Without distrusted ones all that trust reaches count alike; trustrank "
        "has degrees."
    )
    distrusted: Path | None = opt.label("File of distrusted vertices, in the same form.")
    start: Path | None = opt.method("Ranks written earlier, to begin with: same answer, fewer steps.")


@dataclass(frozen=True)
class ShardOptions(opt.Workers):
    """Who ranks a graph in shards."""

    engine: str | None = opt.large(
        "Rank a graph in shards, as graph pack writes it, by reading shard after shard (blocks, the default) or on "
        "processes that keep the shards in memory (dask).",
        choices=("blocks", "dask"),
    )

    def check_graph(self, edges: Path, method: str) -> None:
        """Refuse options and methods that a graph in memory, or one in shards, does not have."""
        from apexrank.graph.shards import is_shards

        self.check(self.engine == "dask")
        if is_shards(edges):
            if method not in _OF_SHARDS:
                raise InputError(
                    f"--method {method} takes a graph in memory, and {edges} is one in shards: use one of "
                    f"{', '.join(_OF_SHARDS)}"
                )
        elif self.engine is not None:
            raise InputError(
                f"--engine is for graphs in shards: write one with apexrank graph pack {edges} -o edges.shards"
            )


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
    engine: ShardOptions,
    device: Device = None,
    shown: ExplainedOutput,
    json: opt.Json = False,
) -> None:
    """Rank the vertices of a graph, best first."""
    files, output = opt.given_options(vertex_files), shown.output
    out.check_table(output, edges, *files.values())
    out.check_inputs(edges, *files.values())
    from apexrank.graph.vertex_files import earlier_scores, named_vertex, ranking_frame

    flags = {"signed": signed, "explain": bool(shown.explain), "device": device is not None}
    parameters = opt.given_options(options)
    chosen = {*files, *parameters}
    method = parameters.pop("method", None) or default_method(
        {*chosen, *(name for name in flags if flags[name])}
    )
    estimator = build_method(method, {*files, *(name for name in flags if flags[name])}, **parameters)
    engine.check_graph(edges, method)
    watch = out.Stopwatch()
    given = reading.read(edges, signed=signed)
    on_dask = engine.engine == "dask"
    if on_dask:
        given = replace(given, engine="dask")
    if device is not None:
        from apexrank.graph.reading import to_device

        given = to_device(given, device)
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
    labels = {name: getattr(estimator, f"{name}_", None) for name in _COLUMNS}
    given_labels = {name: values for name, values in labels.items() if values is not None}
    ranked = ranking_frame(estimator.graph_, estimator.scores_, shown.top, **given_labels)
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
        return  # a program gets the ranking alone
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
    """Return the method for the files, flags and parameters of the command line when it names none.

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
        When the method has no such option, or lacks what it needs.
    """
    method = METHODS[name]
    for option in sorted(given - {*method.takes}):
        raise InputError(f"--method {name} has no --{option}: leave it out")
    for option in method.needs:
        if option not in given and option == "signed":
            raise InputError(f"--method {name} is for ratings, some of them negative: add --signed")
        if option not in given:
            raise InputError(f"--method {name} needs --{option} FILE, the vertices it starts from")
    estimator = getattr(import_module("apexrank.graph"), method.estimator)()
    opt.set_parameters(estimator, options, f"--method {name}", method.renamed)
    for option in _ABOUT_LABELS:
        if option in options and not given & {*_LABELLED, "signed"}:
            raise InputError(
                f"--{option} is about labels: add --trusted, --distrusted or --signed, or leave it out"
            )
    if "negative" in options and "signed" not in given:
        raise InputError("--negative is about negative edges: add --signed, or leave it out")
    return estimator


def _report(estimator: Any) -> dict[str, Any]:
    """Return what is known of a fitted rank."""
    return {
        "vertices": estimator.graph_.n,
        "edges": estimator.graph_.n_edges,
        "estimator": type(estimator).__name__,
        "params": {
            name: "inf" if value == math.inf else value
            for name, value in estimator.get_params().items()
            if name not in _QUIET_PARAMS
        },
        "steps": getattr(estimator, "n_iter_", None),
        "converged": getattr(estimator, "converged_", True),
        "error_bound": getattr(estimator, "error_bound_", None),
        "error_norm": getattr(estimator, "error_norm", None),
        "error_bound_is_before_labels": hasattr(estimator, "ranks_") and hasattr(estimator, "trust_"),
    }


def _sentence(report: dict[str, Any]) -> str:
    """Say how a ranking was found, and how exact it is."""
    shown = [f"{k}={out.show(report['params'][k])}" for k in _SHOWN_PARAMS if k in report["params"]]
    place = report["params"].get("teleport", "inside")
    params = ", ".join(shown if place == "inside" else [*shown, f"teleport={place}"])
    size = f"{out.plural(report['vertices'], 'vertex', 'vertices')}, {out.plural(report['edges'], 'edge')}"
    if "negative_edges" in report:
        size += f" and {report['negative_edges']} negative ones"
    found, bound = "", report["error_bound"]
    if report["steps"] is not None:
        certificate = (
            "no bound on the error"
            if math.isnan(bound)
            else f"error at most {bound:.1e} ({report['error_norm']})"
        )
        certificate += " before labels" if report["error_bound_is_before_labels"] else ""
        found = f": {out.ended(report['converged'], report['steps'])}, {certificate}"
    return f"{report['edges_file']}: {size}; {report['estimator']}({params}){found}; {report['seconds']}"


@graph_app.command()
@opt.option_groups
def inspect(
    edges: opt.EdgePath, *, reading: opt.EdgeOptions, signed: Signed = False, json: opt.Json = False
) -> None:
    """Say what a file of edges holds: sizes, components, dangling vertices, largest degrees."""
    out.check_inputs(edges)
    from apexrank.graph.reading import counts_both_ways
    from apexrank.kernels.edges import count_repeated, in_links

    found = reading.read_edges(edges)
    graph = reading.build(found, signed=signed)
    with out.working(f"looking at {edges}"):
        parts = {"positive links": graph.positive, "negative links": graph.negative} if signed else {}
        both_ways = counts_both_ways(found, False if reading.undirected else None)
        undirected = reading.undirected or not found.directed
        reports = {name: _inspected(part, undirected) for name, part in (parts or {"value": graph}).items()}
        drop_loops = reading.no_self_loops
        ends = found.sources, found.targets, found.weights, found.n
        met = count_repeated(in_links(*ends, both_ways=both_ways, drop_loops=drop_loops, sign=0))
    if json:
        told = reports if signed else reports["value"]
        out.print_json({"edges_file": str(edges), "repeated": met, **told})
        return
    weighted = False
    for report in reports.values():
        # sums of repeated links are weights that the file does not have
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


graph_app.command("compare")(graph_compare)
graph_app.command()(attack)
graph_app.command()(consensus)
graph_app.command()(pack)
