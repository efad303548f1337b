"""Graphs and layers of graphs: the verbs of ``apexrank graph``."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
from hypothesis import strategies as st
from scipy import sparse

from apexrank import graph as graphs
from apexrank.cli.graph import _OF_SHARDS, METHODS, build_method
from tests.metamorphic.engine import (
    FOLDER,
    SEEDS,
    Found,
    Relation,
    Subject,
    apexrank,
    named,
    numbers_in,
    renamed,
)
from tests.metamorphic.threads import with_threads

TOLERANCE = 1e-11


# ---------------------------------------------------------------- cases


@dataclass(frozen=True)
class Links:
    """Edges ``source``, ``target``, ``weight`` (whole numbers) and ``day`` (a layer), labels of vertices, and the way
    they are given.
    """

    edges: pl.DataFrame
    trusted: list[str]
    distrusted: list[str]
    names: dict[str, str] = field(default_factory=dict)  # the original names of renamed vertices
    weighted: bool = True
    format: str = "csv"
    route: str = "files"
    words: tuple[str, ...] = ()
    threads: int | None = None

    def but(self, **changes: Any) -> Links:
        return replace(self, **changes)

    def write(self, edges: pl.DataFrame | None = None, name: str = "edges") -> Path:
        edges = self.edges.drop("day") if edges is None else edges
        return WRITERS[self.format](edges if self.weighted else edges.drop("weight"), FOLDER / name)

    def old(self, name: Any) -> str:
        return self.names.get(str(name), str(name))


@st.composite
def links(draw: st.DrawFn) -> Links:
    """A ring and random links with weights from 1 to 3, some of them twice; two vertices may have no out-links."""
    n, m = draw(st.integers(5, 12)), draw(st.integers(8, 30))
    dangling = draw(st.sampled_from([2, 0]))
    rng = np.random.default_rng(draw(SEEDS))
    core = np.arange(n - dangling)
    ring = np.column_stack([core, np.roll(core, -1)]).tolist() + [[0, n - 1 - k] for k in range(dangling)]
    more = rng.integers(0, n, (m, 2))
    more = more[(more[:, 0] != more[:, 1]) & (more[:, 0] < len(core))].tolist()
    ends = np.array(ring + more)
    days = [*rng.permutation(np.arange(len(ring)) % 3), *rng.integers(0, 3, len(more))]
    edges = pl.DataFrame(
        {
            "source": ends[:, 0].astype(str),
            "target": ends[:, 1].astype(str),
            "weight": rng.integers(1, 4, len(ends)),
            "day": [("mon", "tue", "wed")[day] for day in days],
        }
    )
    labelled = rng.permutation(n).astype(str).tolist()
    return Links(edges, labelled[:2], labelled[2:4])


# ---------------------------------------------------------------- formats


def _text(separator: str, suffix: str, header: bool = True, packed: bool = False) -> Any:
    def write(edges: pl.DataFrame, path: Path) -> Path:
        path = path.with_suffix(suffix)
        content = edges.write_csv(separator=separator, include_header=header).encode()
        path.write_bytes(gzip.compress(content) if packed else content)
        return path

    return write


def _json_lines(edges: pl.DataFrame, path: Path) -> Path:
    path = path.with_suffix(".jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in edges.to_dicts()))
    return path


def _parquet(edges: pl.DataFrame, path: Path) -> Path:
    path = path.with_suffix(".parquet")
    edges.write_parquet(path)
    return path


def _turned(edges: pl.DataFrame, path: Path) -> Path:
    """Columns in another order, with an additional irrelevant one."""
    return _text(",", ".csv")(edges.select(pl.lit("x").alias("note"), *edges.columns[::-1]), path)


def _summed(edges: pl.DataFrame) -> pl.DataFrame:
    return edges.group_by("source", "target", maintain_order=True).agg(pl.col("weight").sum())


def _by_networkx(suffix: str, save: Callable[[nx.DiGraph, Path], None]) -> Any:
    def write(edges: pl.DataFrame, path: Path) -> Path:
        graph = nx.DiGraph()
        graph.add_weighted_edges_from(_summed(edges).rows())
        save(graph, path.with_suffix(suffix))
        return path.with_suffix(suffix)

    return write


def _matrix(edges: pl.DataFrame) -> tuple[sparse.coo_array, list[str]]:
    names = sorted({*edges["source"], *edges["target"]})
    ends = [[names.index(name) for name in edges[end]] for end in ("source", "target")]
    A = sparse.coo_array((edges["weight"].to_numpy().astype(float), tuple(ends)), (len(names),) * 2)
    return A.tocsr().tocoo(), names


def _folder(edges: pl.DataFrame, path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for k in range(3):
        edges[k::3].write_csv(path / f"{k}.csv")
    return path


WRITERS: dict[str, Callable[[pl.DataFrame, Path], Path]] = {
    "csv": _text(",", ".csv"),
    "tabs": _text("\t", ".tsv"),
    "semicolons": _text(";", ".csv"),
    "a plain list": _text(" ", ".txt", header=False),
    "gzip": _text(",", ".csv.gz", packed=True),
    "JSON lines": _json_lines,
    "Parquet": _parquet,
    "columns in another order": _turned,
    "a folder of files": _folder,
    "GraphML": _by_networkx(".graphml", nx.write_graphml),
    "GML": _by_networkx(".gml", nx.write_gml),
}


# ---------------------------------------------------------------- subjects


def _labels(case: Links, method: str) -> dict[str, Path]:
    """Files of labels required by a method."""
    files = {}
    for what in ("trusted", "distrusted"):
        if what in METHODS[method].needs or (method == "lpq" and "labelled" in case.words):
            files[what] = FOLDER / f"{what}.txt"
            files[what].write_text("".join(f"{name}\n" for name in getattr(case, what)))
    return files


def _needs(method: str) -> tuple[str, ...]:
    return METHODS[method].needs


def _options(method: str) -> dict[str, Any]:
    known = build_method(method, {*_needs(method)}).get_params()
    return {name: value for name, value in {"tol": TOLERANCE, "max_iter": 20_000}.items() if name in known}


def rank_vertices(method: str, labelled: bool = False) -> Callable[[Links], Found]:
    """Scores of all vertices; those of ratings have weights from −1 to 3."""
    signed = "signed" in _needs(method)

    def run(case: Links) -> Found:
        if signed:
            case = case.but(edges=case.edges.with_columns(pl.col("weight") * 2 - 3))
        needs = ("trusted", "distrusted") if labelled else tuple(n for n in _needs(method) if n != "signed")
        with with_threads(case.threads):
            report, scores = (_in_python if case.route in _PYTHON else _by_files)(case, method, needs, signed)
        steps, bound = report.get("steps") or 0, report.get("error_bound")
        # Without a bound: steps that shrink like q^t and end at tol leave tol/(1 − q), about tol·steps/ln(1/tol).
        slack = bound if bound is not None and bound == bound else TOLERANCE * steps
        found = {case.old(name): score for name, score in scores.items()}
        facts = {key: report[key] for key in ("vertices", "edges") if key in report}
        return Found(named(found, "score"), slack, facts)

    return run


def _by_files(
    case: Links, method: str, needs: tuple[str, ...], signed: bool
) -> tuple[dict[str, Any], dict[Any, float]]:
    words: list[Any] = ["--method", method, *case.words]
    for what in needs:
        path = FOLDER / f"{what}.txt"
        path.write_text("".join(f"{name}\n" for name in getattr(case, what)))
        words += [f"--{what}", path]
    edges: Any = case.write()
    if case.route == "shards":
        shutil.rmtree(FOLDER / "edges.shards", ignore_errors=True)
        apexrank("graph", "pack", edges, "-o", FOLDER / "edges.shards")
        edges, words = FOLDER / "edges.shards", [word for word in words if word not in case.words]
    words += ["--signed"] if signed else []
    tol = [
        word for name, value in _options(method).items() for word in (f"--{name.replace('_', '-')}", value)
    ]
    if case.route == "start":
        apexrank("graph", "rank", edges, *words, "-o", FOLDER / "start.csv")
        words += ["--start", FOLDER / "start.csv"]
    report = apexrank("graph", "rank", edges, *words, *tol, "--json")
    return report, {row["vertex"]: row["score"] for row in report["ranking"]}


_PYTHON = ("Python", "networkx", "scipy", "pandas")


def _given(case: Links) -> tuple[Any, list[Any] | None]:
    """Graph as a Python object, and the names of its vertices if the object has none."""
    edges = case.edges.drop("day")
    if case.route == "networkx":
        graph = nx.DiGraph()
        graph.add_weighted_edges_from(_summed(edges).rows())
        return graph, None
    if case.route == "scipy":
        return _matrix(edges)
    frame = (
        edges.to_pandas()
        if case.route == "pandas"
        else (edges["source"].to_numpy(), edges["target"].to_numpy(), edges["weight"].to_numpy())
    )
    return frame, None


def _in_python(
    case: Links, method: str, needs: tuple[str, ...], signed: bool
) -> tuple[dict[str, Any], dict[Any, float]]:
    estimator = build_method(method, {*_needs(method)}, **_options(method))
    data, names = _given(case)
    known = {name: k for k, name in enumerate(names)} if names is not None else None
    labels = {
        what: [name if known is None else known[name] for name in getattr(case, what)] for what in needs
    }
    graph = graphs.as_graph(data, signed=signed)
    estimator.fit(graph, **labels)
    found = estimator.names_.tolist()
    keys = found if names is None else [names[k] for k in found]
    report = {"vertices": estimator.graph_.n, "edges": estimator.graph_.n_edges}
    report |= {
        "steps": getattr(estimator, "n_iter_", None),
        "error_bound": getattr(estimator, "error_bound_", None),
    }
    return report, dict(zip(keys, estimator.scores_.tolist(), strict=True))


def consensus(method: str) -> Callable[[Links], Found]:
    """Scores of vertices and shares of the layers."""

    def run(case: Links) -> Found:
        words = ["graph", "consensus", "--method", method, *case.words, "--tol", 1e-12, "--json"]
        with with_threads(case.threads):
            if case.route == "one table":
                report = apexrank(*words, case.write(case.edges), "--label", "day")
            else:
                days = sorted({*case.edges["day"]}, reverse=case.route == "layers reversed")
                parts = [case.edges.filter(pl.col("day") == day).drop("day") for day in days]
                files = [case.write(part, day) for part, day in zip(parts, days, strict=True)]
                report = apexrank(*words, *files)
        scores = {case.old(row["vertex"]): row["score"] for row in report["ranking"]}
        layers = {str(layer["layer"]).split(".")[0]: layer["share"] for layer in report["layers"]}
        # Layer weights are only as accurate as the root of the first-order gap, because the cost is flat at its
        # minimum.
        slack = float(np.sqrt(max(report["first_order_gap"], 1e-15)))
        # layers that give a vertex the same links may share its weight in any way
        shares = named(layers, "choice" if method in ("blend", "fixed-point", "brew") else "share")
        return Found(named(scores, "score") | shares, slack, {"vertices": report["vertices"]})

    return run


def flat(*words: Any, without: tuple[str, ...] = ()) -> Callable[[Links], Found]:
    """Complete JSON output of a verb."""

    def run(case: Links) -> Found:
        with with_threads(case.threads):
            found = apexrank("graph", *words[:1], case.write(), *words[1:], *case.words, "--json")
        left_out = ("edges_file", "seconds", "bytes", "report", "output", *without)
        told = {
            name: value if isinstance(value, float) else str(value)
            for name, value in numbers_in(found)
            if not set(name.split()) & {*left_out}
        }
        numbers = {name: value for name, value in told.items() if isinstance(value, float)}
        return Found(numbers, facts={name: value for name, value in told.items() if name not in numbers})

    return run


_METHOD_TRAITS = {
    "anti-trustrank": {"in memory"},  # distrust runs against the links, which shards list by their targets
    "demoted": {"in memory"},
    "fairness-goodness": {"ratings"},
}
SUBJECTS = [
    *(
        Subject(
            f"graph rank {method}",
            "graph",
            rank_vertices(method),
            frozenset(
                _METHOD_TRAITS.get(method, set())
                | ({"in memory"} if method not in _OF_SHARDS else set())
                | ({"no start"} if "start" not in METHODS[method].takes else set())
            ),
            cost=15,
        )
        for method in METHODS
    ),
    Subject(
        "graph rank lpq with labels",
        "graph",
        rank_vertices("lpq", labelled=True),
        frozenset({"in memory", "no start"}),
        20,
    ),
    Subject(
        "graph inspect",
        "graph",
        flat("inspect"),
        frozenset({"no Python", "unit", "in memory", "no start", "counts"}),
        10,
    ),
    Subject(
        "graph compare",
        "graph",
        flat("compare", "--ranks", "guarded,indegree"),
        frozenset({"no Python", "vertex order", "in memory", "no start", "loose"}),
        60,
    ),
    Subject(
        "graph attack",
        "graph",
        flat("attack", "--attacks", "farm:2", "--targets", 2),
        frozenset({"no Python", "vertex order", "in memory", "no start", "loose"}),
        100,
    ),
    *(
        Subject(f"graph consensus {method}", "layers", consensus(method), frozenset({"no Python"}), 40)
        for method in ("union", "mean", "median", "corroborate", "blend", "fixed-point", "brew")
    ),
]


# ---------------------------------------------------------------- relations


def _rename(case: Links, rng: np.random.Generator) -> Links:
    new = renamed(sorted({*case.edges["source"], *case.edges["target"]}), rng)
    edges = case.edges.with_columns(pl.col("source", "target").replace_strict(new))
    labels = {what: [new[name] for name in getattr(case, what)] for what in ("trusted", "distrusted")}
    return case.but(edges=edges, names={name: old for old, name in new.items()}, **labels)


def _renumber(case: Links, rng: np.random.Generator) -> Links:
    """Numeric ids again, so that 9 and 10 sort differently than as text."""
    case = _rename(case, rng)
    strip = pl.col("source", "target").str.slice(1)
    return case.but(
        edges=case.edges.with_columns(strip),
        names={name[1:]: old for name, old in case.names.items()},
        trusted=[name[1:] for name in case.trusted],
        distrusted=[name[1:] for name in case.distrusted],
    )


def _repeat(case: Links, rng: np.random.Generator) -> Links:
    edges = case.edges[rng.permutation(np.repeat(np.arange(len(case.edges)), case.edges["weight"]))]
    return case.but(edges=edges.with_columns(pl.lit(1, pl.Int64).alias("weight")), weighted=False)


def _undirected(case: Links, rng: np.random.Generator) -> tuple[Links, Links]:
    turned = case.edges.rename({"source": "target", "target": "source"}).select(case.edges.columns)
    return case.but(words=("--undirected",)), case.but(edges=pl.concat([case.edges, turned]))


def _loops(case: Links, rng: np.random.Generator) -> Links:
    loops = case.edges[:3].with_columns(pl.col("source").alias("target"))
    return case.but(edges=pl.concat([loops, case.edges]), words=("--no-self-loops",))


def _scale(case: Links, rng: np.random.Generator) -> Links:
    return case.but(edges=case.edges.with_columns(pl.col("weight") * 7))


_RATINGS = {"ratings": "weights are ratings from −1 to 3, not numbers of links"}
_BY_NUMBER = {"vertex order": "draws or lists vertices by number"}
_ALONE = {"no Python": "no such way of running it"}

# Formats with types keep the id "10" as text, which sorts before "2"; in plain text it is a number.
_ONE_EDGE = dict.fromkeys(("ratings", "counts"), "networkx keeps one edge of two vertices")
_TYPED = dict.fromkeys(("JSON lines", "Parquet"), _BY_NUMBER)
_TYPED |= dict.fromkeys(("GraphML", "GML"), _BY_NUMBER | _ONE_EDGE)


def _both(
    name: str, says: str, change: Any, unless: dict[str, str] | None = None, differs: tuple[str, ...] = ()
) -> list[Relation]:
    return [Relation(name, kind, says, change, unless or {}, differs) for kind in ("graph", "layers")]


RELATIONS = [
    *_both(
        "edges shuffled",
        "the order of the edges does not matter",
        lambda case, rng: case.but(edges=case.edges[rng.permutation(len(case.edges))]),
    ),
    *_both("vertices renamed", "vertices are names", _rename, _BY_NUMBER),
    *_both("vertices renumbered", "vertices are names, numbers as well", _renumber, _BY_NUMBER),
    *_both(
        "weights as repeated links",
        "a weight of 3 is three equal links",
        _repeat,
        _RATINGS,
        ("weighted", "value weighted", "repeated"),
    ),
    *_both(
        "--undirected",
        "an undirected edge is two links",
        _undirected,
        {"counts": "counts edges as they were given"},
    ),
    *_both("--no-self-loops", "loops that are left out change nothing", _loops, differs=("repeated",)),
    *_both(
        "weights in another unit",
        "weights are shares of a vertex's links",
        _scale,
        _RATINGS | {"unit": "its answer has the unit of the weights"},
    ),
    *(
        relation
        for format in WRITERS
        if format != "csv"
        for relation in _both(
            f"as {format}",
            "the format of a file says nothing about the links",
            lambda case, rng, format=format: case.but(
                format=format, words=("--weight", "2") if "plain" in format else ()
            ),
            _TYPED.get(format, {}),
        )
    ),
    *(
        Relation(
            f"from {route}",
            "graph",
            "the command line is the library",
            lambda case, rng, route=route: case.but(route=route),
            _ALONE | ({"ratings": "their matrix adds up ratings"} if route in ("networkx", "scipy") else {}),
        )
        for route in _PYTHON
    ),
    Relation(
        "in shards",
        "graph",
        "a graph on disk is a graph",
        lambda case, rng: case.but(route="shards"),
        {"in memory": "takes graphs in memory"},
    ),
    Relation(
        "from earlier ranks",
        "graph",
        "the start does not change the answer",
        lambda case, rng: case.but(route="start"),
        {"no start": "has no --start"},
    ),
    *_both(
        "two threads", "threads change nothing", lambda case, rng: (case.but(threads=1), case.but(threads=2))
    ),
    Relation(
        "layers in one table",
        "layers",
        "a column tells layers as files do",
        lambda case, rng: case.but(route="one table"),
    ),
    Relation(
        "layers reversed",
        "layers",
        "layers have no order unless told",
        lambda case, rng: case.but(route="layers reversed"),
        differs=("choice *",),
    ),
]
STRATEGIES = {"graph": links(), "layers": links()}
