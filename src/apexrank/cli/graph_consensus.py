"""``apexrank graph consensus``: one ranking of vertices from several layers of links."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import apexrank
from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.graph import Layers

_ONLY = {"beta": "brew", "temperature": "corroborate"}  # options of one method


@dataclass(frozen=True)
class ConsensusOptions:
    """Parameters of `ConsensusRank`."""

    method: str = opt.method(
        "union (all links together; a safe default), mean (of the layers), median (of the layers' PageRanks; if a "
        "minority of layers may collude), corroborate (layers count as far as others confirm them; for five or more "
        "layers, or if some may be junk), blend (least disagreement; often ranks worse than mean), fixed-point, brew.",
        default="union",
    )
    half_life: float | None = opt.method(
        "For layers in order of time, the newest last: the weight of a layer halves with every N layers of age, such "
        "as 0.5 (default: age does not count).",
        metavar="N",
    )
    trim: float | None = opt.method(
        "Leave out outlying layers, which may collude: those more than N times as far from the median of the layers' "
        "ranks as the median layer, such as 1.5. A majority of the layers, by prior weight, must be honest.",
        metavar="N",
    )
    divergence: str = opt.method(
        "kl (disagreement in nats), squared, itakura-saito or logistic.", default="kl"
    )
    pull: float = opt.method(
        "Strength with which layer weights are pulled towards the prior; inf gives the mean.", default=0.0
    )
    entropy: float = opt.method(
        "Below 1, layers with evenly spread links, which agree with everything, count less.", default=1.0
    )
    temperature: float | None = opt.method(
        "For corroborate: near 0 only the best supported layer counts (default: 0.3)."
    )
    beta: float | None = opt.method("For brew: weight of stationarity (default: 0.1).")
    damping: float = opt.method("Probability of following a link instead of restarting.", default=0.85)
    restarts: int = opt.method("Number of random restarts; the best result is kept.", default=0)
    seed: int = opt.method("Random seed of the restarts.", min=0, default=0)
    tol: float = opt.method("First-order gap at which to stop.", default=1e-8)
    max_iter: int = opt.method("Maximum number of steps.", default=5000)

    def build(self) -> apexrank.graph.ConsensusRank:
        """Build the unfitted rank."""
        given = opt.given_options(self)
        for option, only in _ONLY.items():
            if option in given and self.method != only:
                raise InputError(f"--{option} is for --method {only}: leave it out")
        renamed = {"n_restarts": given.pop("restarts"), "random_state": given.pop("seed")}
        return apexrank.graph.ConsensusRank(**renamed, **given)


@dataclass(frozen=True)
class LayerOptions:
    """Prior knowledge about layers and vertices."""

    label: str | None = opt.reading(
        "Column that names the layer of each edge in a single table: networks, days, kinds of links."
    )
    prior: str | None = opt.method("Prior weights of the layers, such as mon=2,tue=1 (default: equal).")
    teleport: Path | None = opt.method(
        "File of vertices where walks restart, one per line, or CSV with the columns vertex and weight."
    )
    keep: list[str] | None = opt.method("Keep A at or above B in the ranking; repeatable.", metavar="A>B")


@opt.option_groups
def consensus(
    edges: Annotated[
        list[Path],
        opt.argument(
            "One file, folder or quoted pattern of edges per layer, as in graph rank; or one table with --label."
        ),
    ],
    *,
    known: LayerOptions,
    options: ConsensusOptions,
    reading: opt.EdgeOptions,
    shown: opt.RankingOutput,
    json: opt.Json = False,
) -> None:
    """Rank vertices by links in several layers: networks, kinds of links, days.

    Vertices are matched by name; a vertex without links in a layer has no opinion there.
    """
    output, teleport = shown.output, known.teleport
    out.check_table(output, *edges, teleport)
    out.check_inputs(*edges, teleport)
    from apexrank.graph.vertex_files import named_vertex, ranking_frame

    rank = options.build()
    rank._validate_params()
    prior = None if known.prior is None else _weights(known.prior)
    orders = [_pair(order) for order in known.keep or ()]
    watch = out.Stopwatch()
    layers = _read(edges, known.label, reading)
    graph = layers.graphs[0]
    arguments: dict[str, Any] = {
        "layer_prior": prior,
        "teleport": None if teleport is None else opt.read_seeds(teleport, graph, "teleport"),
        "keep": [tuple(named_vertex(graph, name) for name in order) for order in orders],
    }
    watch.end("reading")
    what = f"ranking {layers.n} vertices in {len(layers)} layers"
    out.fit_with_progress(rank, layers, what, "gap", **arguments)
    watch.end("ranking")
    columns = {"disagreement": rank.vertex_disagreement_}
    columns |= {f"weight_{name}": rank.layer_weights_[:, k] for k, name in enumerate(rank.layers_)}
    ranked = ranking_frame(rank.graph_, rank.scores_, shown.top, **columns)
    out.write_frame(ranked, output)
    report = _report(rank, layers) | {"seconds": watch}
    if left_out := report.get("left_out"):
        out.note(f"left out as outliers: {', '.join(left_out)}")
    elif rank.trim is not None and len(layers) < 3:
        out.note("--trim left out nothing: neither of two layers of equal prior weight is an outlier")
    if json:
        out.print_json(report | {"rows": len(ranked), "output": output}, output, ranking=ranked)
    elif out.show_frame(ranked, output):
        rows = [list(layer.values()) for layer in report["layers"]]
        out.print_table(["layer", "links", "vertices with links", "share"], rows)
        unit = " nats" if report["divergence"] == "kl" else ""
        typer.echo(
            f"{report['vertices']} vertices, {len(rows)} layers; {report['method']}: disagreement "
            f"{out.show(report['disagreement'])}{unit}, {out.ended(report['converged'], report['steps'])}, first-order "
            f"gap {report['first_order_gap']:.1e}, |Tw - w| {report['stationarity']:.1e}; {watch}"
        )
        out.print_written(output, f", {len(ranked)} of {report['vertices']} vertices, best first")


def _read(edges: list[Path], label: str | None, reading: opt.EdgeOptions) -> Layers:

    if label is None and len(edges) == 1:
        raise InputError("one file is one layer: give more files, or name the column of layers with --label")
    if label is not None and len(edges) > 1:
        raise InputError("--label names the layers of a single table: give one file")
    which: Any = edges if label is None else edges[0]
    column = int(label) if label is not None and label.isdecimal() else label
    with out.working(f"reading {', '.join(map(str, edges))}", strict=reading.strict):
        layers = apexrank.graph.as_layers(which, label=column, **reading.rules())
    if len(layers) == 1:
        raise InputError(
            f"column {label!r} of {edges[0]} has only one layer: name another column with --label"
        )
    return layers


def _weights(prior: str) -> dict[str, float]:
    """Parse the weights of layers.

    Examples
    --------
    >>> _weights("mon=2,tue=0.5")
    {'mon': 2.0, 'tue': 0.5}
    """
    found = {}
    for part in opt.split_names([prior]):
        name, equals, value = part.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise InputError(f"--prior must be weights of layers such as mon=2,tue=1, got {part!r}")
    return found


def _pair(order: str) -> tuple[str, str]:
    a, arrow, b = (part.strip() for part in order.partition(">"))
    if not (a and arrow and b) or ">" in b:
        raise InputError(f"--keep must be one order such as 'A>B', got {order!r}")
    return a, b


def _report(rank: apexrank.graph.ConsensusRank, layers: Layers) -> dict[str, Any]:
    rows = zip(layers.names, layers.graphs, rank.layer_shares_.tolist(), strict=True)
    about = [
        {"layer": name, "links": graph.n_edges, "opinions": int((~graph.dangling).sum()), "share": share}
        for name, graph, share in rows
    ]
    names = ("disagreement", "stationarity", "first_order_gap", "order_violation")
    report = {"vertices": layers.n, "layers": about, "method": rank.method, "divergence": rank.divergence}
    report |= {name: getattr(rank, f"{name}_") for name in names}
    if rank.trim is not None:
        far = zip(layers.names, rank.layer_deviations_.tolist(), strict=True)
        report["left_out"] = [name for name, deviation in far if deviation > rank.trim]
    return report | {"steps": rank.n_iter_, "converged": rank.converged_}
