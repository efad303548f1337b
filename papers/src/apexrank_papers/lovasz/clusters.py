"""k-means of random score vectors with orders as centres (Iyer and Bilmes 2013, Figure 3).

The text gives neither points nor numbers of clusters. Our points are uniform in the unit square and cube; (a) and (b)
ask for 4 clusters, (c) and (d) for 6, which shows how many clusters there can be. ``LB + Euclidean`` is the divergence
of ``f̂(x) + ½|x|²``. In three dimensions the points are drawn in the plane through the origin perpendicular to
(1, 1, 1), because a row's cluster does not depend on its mean. Two panels are ours: the points of (c) with Bregman
divergences only, whose clusters do depend on the mean and are not shaded.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from apexrank.aggregation.kmeans import LovaszBregmanKMeans
from apexrank.plot.style import COLOURS, MARKERS
from apexrank.submodular import Sqrt, orders_of
from apexrank_papers.lovasz.bregman import BregmanKMeans
from apexrank_papers.lovasz.plane import draw_frame, lift, order_cells, order_name, project
from apexrank_papers.result import Figure, Result, Verdict, claim, panels, question

STARTS = 20
TWO, BOTH = "(a) LB, 2 items", "(b) LB + Euclidean, 2 items"
THREE, TOP = "(c) LB, 3 items", "(d) LB of the top-1 list, 3 items"
SQUARED, RELATIVE = "squared distance, 3 items", "I-divergence, 3 items"
ITEMS = {TWO: 2, BOTH: 2, THREE: 3, TOP: 3, SQUARED: 3, RELATIVE: 3}
ASKED = {2: 4, 3: 6}
OPTIONS: dict[str, dict[str, Any]] = {
    TWO: {},
    BOTH: {"euclidean": 1.0},
    THREE: {},
    TOP: {"f": Sqrt(m=1)},
    SQUARED: {"bregman": "squared"},
    RELATIVE: {"bregman": "i-divergence"},
}
WITH_ORDERS, WITH_BEST = "Rand index with the orders", "Rand index with the best items"
LEVEL = "R² of the mean score"
SHADES = [colour for colour in COLOURS if colour != "#000000"]  # frames and stars are black


@dataclass(frozen=True)
class Clustering:
    """Points and their clusters, numbered as drawn: without empty ones, by order and then by mean.

    Attributes
    ----------
    X : ndarray of shape (n_points, n_items)
    model : LovaszBregmanKMeans
    kept : ndarray
        Numbers of the model's nonempty clusters, in the order of the figure.
    labels : ndarray
        Cluster of each point, a position in ``kept``.
    """

    X: np.ndarray
    model: LovaszBregmanKMeans
    kept: np.ndarray
    labels: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, k: int, *, random_state: int, **options: Any) -> Clustering:
        """Fit without the warning about fewer orders than clusters, which is the expected result."""
        kind = BregmanKMeans if "bregman" in options else LovaszBregmanKMeans
        model = kind(k, n_init=STARTS, random_state=random_state, **options)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "only .* clusters have rows", ConvergenceWarning)
            model.fit(X)
        found = np.unique(model.labels_)
        means = model.cluster_centers_[found]
        kept = found[np.lexsort([means.mean(axis=1), *model.orders_[found].T[::-1]])]
        labels = np.argmax(model.labels_[:, None] == kept, axis=1)
        return cls(X, model, kept, labels)

    def places_of(self, points: np.ndarray) -> np.ndarray:
        """Return the clusters of other points as positions in ``kept``."""
        return self.model.transform(points)[:, self.kept].argmin(axis=1)


def clusterings(n: int = 600, random_state: int = 0) -> dict[str, Clustering]:
    """Return the clusterings by panel title.

    Examples
    --------
    >>> {name[:3]: len(found.kept) for name, found in clusterings(n=200).items()}
    {'(a)': 2, '(b)': 4, '(c)': 6, '(d)': 3, 'squ': 6, 'I-d': 6}
    """
    rng = np.random.default_rng(random_state)
    points = {items: rng.random((n, items)) for items in ASKED}
    return {
        name: Clustering.of(points[items], ASKED[items], random_state=random_state, **OPTIONS[name])
        for name, items in ITEMS.items()
    }


def lovasz_figure3(*, n: int = 600, random_state: int = 0) -> Result:
    """Cluster random points: the clusters are the orders, unless the squared distance is added.

    Parameters
    ----------
    n : int
        Number of points of each dimension.
    random_state : int
        Seed of the points and of the starts of k-means.

    Examples
    --------
    >>> [verdict.word for verdict in lovasz_figure3(n=300).verdicts]
    ['agrees', 'agrees', 'agrees', 'yes', 'agrees', 'no']
    """
    found = clusterings(n, random_state)
    table = pl.concat([_rows(name, clustering) for name, clustering in found.items()])
    verdicts = [
        _all_orders(table, TWO, "(a) clusters are the two orders"),
        _values_count(found, table, random_state),
        _all_orders(table, THREE, "(c) clusters are the six orders"),
        _sectors(found[THREE].X, random_state),
        _three_lists(table),
        _others(table),
    ]
    notes = [
        f"{n:,} points uniform in the unit square and {n:,} in the unit cube, f(X) = √|X|, top-1 list: min(√|X|, 1); "
        f"best of {STARTS} starts. The text gives neither the points nor the number of clusters.",
        "Rand index: adjusted for chance, 1 for the same partition. R²: share of the variance of the points' mean "
        "score that is between the clusters.",
    ]
    summary = table.filter(order="all").with_columns(pl.col("value").round(3))
    view = summary.pivot("measure", index="panel", values="value")
    return Result(table, view, verdicts, _draw(found), notes)


def _rows(name: str, found: Clustering) -> pl.DataFrame:
    """Count points by cluster and order, and summarise them."""
    orders = [order_name(order) for order in orders_of(found.X)]
    summary = {
        "clusters asked for": found.model.n_clusters,
        "clusters found": len(found.kept),
        WITH_ORDERS: adjusted_rand_score(orders, found.labels),
        WITH_BEST: adjusted_rand_score(found.X.argmax(axis=1), found.labels),
        LEVEL: _explained(found.X.mean(axis=1), found.labels),
    }
    points = pl.DataFrame({"cluster": found.labels + 1, "order": orders})
    counts = points.group_by("cluster", "order").len("value").sort("cluster", "order")
    rows = [("points", *row) for row in counts.rows()]
    rows += [(measure, 0, "all", value) for measure, value in summary.items()]
    schema = {"measure": pl.String, "cluster": pl.Int64, "order": pl.String, "value": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row", strict=False)
    return table.select(pl.lit(name).alias("panel"), pl.all())


def _explained(values: np.ndarray, labels: np.ndarray) -> float:
    sizes = np.bincount(labels)
    means = np.bincount(labels, weights=values) / sizes
    return float(sizes @ (means - values.mean()) ** 2 / ((values - values.mean()) ** 2).sum())


def _value(table: pl.DataFrame, panel: str, measure: str) -> float:
    return float(table.filter(panel=panel, measure=measure)["value"].item())


def _found(table: pl.DataFrame, panel: str) -> str:
    asked, found = (_value(table, panel, f"clusters {word}") for word in ("asked for", "found"))
    return f"{asked:.0f} clusters asked for, {found:.0f} found"


def _all_orders(table: pl.DataFrame, panel: str, row: str) -> Verdict:
    index = _value(table, panel, WITH_ORDERS)
    why = f"{_found(table, panel)}; adjusted Rand index with the orders {index:.2f}"
    return claim(row, abs(index - 1) < 1e-12, why)


def _values_count(found: dict[str, Clustering], table: pl.DataFrame, random_state: int) -> Verdict:
    """Claim: values count more than with LB alone, and orders count more than with distances alone."""
    both = found[BOTH]
    distance = Clustering.of(both.X, ASKED[2], random_state=random_state, bregman="squared")
    orders = orders_of(both.X)[:, 0]
    ours, theirs = (np.mean(m.orders_[m.labels_, 0] == orders) for m in (both.model, distance.model))
    mixed, plain = (_value(table, name, LEVEL) for name in (BOTH, TWO))
    why = (
        f"R² of the mean score is {mixed:.2f}, and {plain:.2f} in (a); {ours:.0%} of the points are in their "
        f"centre's order, {theirs:.0%} with the squared distance alone"
    )
    return claim("(b) clusters depend on orders and values", bool(mixed > plain and ours > theirs), why)


def _sectors(X: np.ndarray, random_state: int) -> Verdict:
    """Question: is each cluster one arc of directions around (1, 1, 1), for any number of clusters?"""
    turn = (np.arange(3600) + 0.5) / 3600 * 2 * np.pi
    circle = lift(np.column_stack([np.cos(turn), np.sin(turn)]), 0.0)
    arcs, moved = {}, 0
    for k in range(2, 7):
        found = Clustering.of(X, k, random_state=random_state)
        labels = found.places_of(circle)
        arcs[k] = int(np.count_nonzero(labels != np.roll(labels, 1)))
        moved += int(np.count_nonzero(found.places_of(3.0 * circle + 7.0) != labels))
    why = (
        f"arcs of one cluster: {', '.join(map(str, arcs.values()))} with k = {', '.join(map(str, arcs))}; "
        f"{moved} of {3600 * len(arcs)} directions change clusters with the size or the mean of the scores"
    )
    return claim(
        "(c) clusters are sectors of the plane", arcs == {k: k for k in arcs} and moved == 0, why, question
    )


def _three_lists(table: pl.DataFrame) -> Verdict:
    best, orders = (_value(table, TOP, measure) for measure in (WITH_BEST, WITH_ORDERS))
    why = f"{_found(table, TOP)}; adjusted Rand index {best:.2f} with the best items, {orders:.2f} with the orders"
    return claim("(d) clusters are the three best items", abs(best - 1) < 1e-12, why)


def _others(table: pl.DataFrame) -> Verdict:
    """Ask whether a Bregman divergence of the scores finds their orders."""
    found = {name: _value(table, name, WITH_ORDERS) for name in (SQUARED, RELATIVE)}
    level = ", ".join(f"{_value(table, name, LEVEL):.2f}" for name in found)
    why = (
        f"adjusted Rand index with the orders {', '.join(f'{index:.2f} ({name})' for name, index in found.items())}; "
        f"R² of the mean score {level}"
    )
    return claim(
        "other Bregman divergences find the six orders, too", min(found.values()) > 0.99, why, question
    )


def _draw(found: dict[str, Clustering]) -> Figure:
    figure, axes = panels(15.6, 12.8, 2, 3)
    for ax, (name, clustering) in zip(axes.flat, found.items(), strict=True):
        if name not in (SQUARED, RELATIVE):
            _shade(ax, clustering)
        _draw_points(ax, clustering, _legend_names(name, clustering))
        asked, kept = clustering.model.n_clusters, len(clustering.kept)
        ax.set_title(name if asked == kept else f"{name}: {asked} asked for, {kept} found")
    figure.suptitle("k-means of random scores, orders as centres, f(X) = √|X|")
    return figure


def _legend_names(name: str, found: Clustering) -> list[str]:
    sizes = np.bincount(found.labels)
    orders, means = found.model.orders_[found.kept], found.model.cluster_centers_[found.kept]
    names = [f"{order[0] + 1} is best" if name == TOP else order_name(order) for order in orders]
    if name == BOTH:  # several clusters share an order
        names = [f"{order}, mean ({x:.2f}, {y:.2f})" for order, (x, y) in zip(names, means, strict=True)]
    elif name in (SQUARED, RELATIVE):
        names = [f"{order}, level {x:.2f}" for order, x in zip(names, means.mean(axis=1), strict=True)]
    return [f"{order}: {size} points" for order, size in zip(names, sizes, strict=True)]


def _draw_points(ax: Any, found: Clustering, names: list[str]) -> None:
    flat = found.X.shape[1] == 2
    means = found.model.cluster_centers_[found.kept]
    places, centres = (found.X, means) if flat else (project(found.X), project(means))
    for number, name in enumerate(names):
        style = {"color": SHADES[number], "marker": MARKERS[number], "s": 15, "linewidths": 0}
        ax.scatter(*places[found.labels == number].T, label=name, zorder=5, **style)
    star = {"marker": "*", "s": 200, "color": "white", "edgecolors": "black", "linewidths": 1.2}
    ax.scatter(*centres.T, label="mean of a cluster", zorder=6, **star)
    if flat:
        ax.plot([0, 1], [0, 1], color="0.15", linewidth=0.8, linestyle="--", zorder=4)
        ax.set(xlabel="$x_1$", ylabel="$x_2$", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    else:
        draw_frame(ax)
        ax.set_xlabel("plane perpendicular to (1, 1, 1)")
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12), "ncols": 2}
    ax.legend(frameon=False, fontsize="small", scatterpoints=1, **below)


def _shade(ax: Any, found: Clustering, m: int = 400) -> None:
    """Shade the region of each cluster."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Polygon

    flat = found.X.shape[1] == 2
    low, high = (0.0, 1.0) if flat else (-1.0, 1.0)
    values = low + (np.arange(m) + 0.5) / m * (high - low)
    grid = np.stack(np.meshgrid(values, values), axis=-1).reshape(-1, 2)
    labels = found.places_of(grid if flat else lift(grid)).reshape(m, m)
    shades = ListedColormap(SHADES[: len(found.kept)])
    scale = {"vmin": -0.5, "vmax": len(found.kept) - 0.5, "cmap": shades, "alpha": 0.2}
    image = ax.imshow(labels, extent=(low, high, low, high), origin="lower", interpolation="nearest", **scale)
    if not flat:
        edge = project(order_cells(3)[1][:, 1:3].reshape(-1, 3))
        edge = edge[np.argsort(np.arctan2(edge[:, 1], edge[:, 0]))]
        image.set_clip_path(Polygon(edge, transform=ax.transData))
