"""Ballots: aggregate and cluster."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st

from apexrank.aggregation import aggregate as merge
from apexrank.cli.aggregate import METHODS
from tests.metamorphic.engine import FOLDER, SEEDS, Found, Relation, Subject, apexrank, named, renamed
from tests.metamorphic.threads import with_threads

# ---------------------------------------------------------------- cases


@dataclass(frozen=True)
class Votes:
    """Places of items (1 is best) by some voters, and the number of times each ballot was cast.

    ``table`` has a column ``voter``, one column per item, and ``times``. With ties and missing entries it holds scores
    only.
    """

    table: pl.DataFrame
    weighted: bool
    layout: str = "scores"
    format: str = "csv"
    route: str = "files"
    names: dict[str, str] = field(default_factory=dict)  # the original names of renamed items
    threads: int | None = None

    @property
    def items(self) -> list[str]:
        return [name for name in self.table.columns if name not in ("voter", "times")]

    @property
    def scores(self) -> pl.DataFrame:
        """Points instead of places: the last place has 1."""
        return self.table.with_columns((len(self.items) + 1 - pl.col(self.items)).name.keep())

    def but(self, **changes: Any) -> Votes:
        return replace(self, **changes)

    def old(self, item: Any) -> str:
        return self.names.get(str(item), str(item))

    def given(self) -> tuple[pl.DataFrame, list[str]]:
        """The table of a file, and the options that describe its layout."""
        frame = self.table if self.layout in ("ranks", "orders") else self.scores
        weight = ["--weights", "times"] if self.weighted else []
        if not self.weighted:
            frame = frame.drop("times")
        if self.layout in ("scores", "ranks"):
            return frame, ["--kind", self.layout, "--id", "voter", *weight]
        if self.layout == "long":
            keys = ["voter", "times"] if self.weighted else ["voter"]
            long = frame.unpivot(index=keys, variable_name="item", value_name="points")
            long = long.drop_nulls()
            return long[np.random.default_rng(0).permutation(len(long))], [
                "--long",
                "voter,item,points",
                *weight,
            ]
        if self.layout == "orders":
            orders = np.array(self.items)[np.argsort(frame.select(self.items).to_numpy(), axis=1)]
            columns = pl.DataFrame(orders, schema=[f"place {k}" for k in range(len(self.items))])
            others = ["voter", *(["times"] if self.weighted else [])]
            return frame.select(others).hstack(columns), ["--kind", "orders", "--id", "voter", *weight]
        voters = frame["voter"].to_list()
        turned = frame.select(self.items).transpose(
            include_header=True, header_name="item", column_names=voters
        )
        casts = zip(voters, self.table["times"], strict=True)
        weights = (
            ["--weights", ",".join(f"{voter}={times}" for voter, times in casts)] if self.weighted else []
        )
        return turned, ["--items-in", "rows", "--id", "item", *weights]

    def write(self, frame: pl.DataFrame) -> Path:
        suffix, separator = {
            "tabs": (".tsv", "\t"),
            "semicolons": (".csv", ";"),
            "gzip": (".csv.gz", ","),
        }.get(self.format, (".csv", ","))
        if self.format == "Parquet":
            path = FOLDER / "votes.parquet"
            frame.write_parquet(path)
            return path
        path, content = FOLDER / f"votes{suffix}", frame.write_csv(separator=separator).encode()
        path.write_bytes(gzip.compress(content) if self.format == "gzip" else content)
        return path


@st.composite
def votes(draw: st.DrawFn, *, gaps: bool = False) -> Votes:
    n, m = draw(st.integers(3, 12)), draw(st.integers(3, 6))
    weighted = draw(st.sampled_from([True, False]))
    rng = np.random.default_rng(draw(SEEDS))
    places = np.argsort(np.argsort(rng.normal(size=(n, m)) + 0.7 * np.arange(m), axis=1), axis=1) + 1
    if gaps:
        places = -(-places // 2)
    given = (rng.random((n, m)) < 0.8) | (np.arange(m) == np.arange(n)[:, None] % m) | (not gaps)
    given[:2] = True  # with weights other than 0, so that every pair of items is compared
    columns = {
        f"item {chr(97 + j)}": pl.Series(np.where(given[:, j], places[:, j], -1)).replace(-1, None)
        for j in range(m)
    }
    times = np.where(np.arange(n) < 2, 1, rng.integers(0, 4, n))
    return Votes(pl.DataFrame({"voter": [f"v{i}" for i in range(n)], **columns, "times": times}), weighted)


# ---------------------------------------------------------------- subjects


def aggregate(method: str, *more: str) -> Callable[[Votes], Found]:
    def run(case: Votes) -> Found:
        with with_threads(case.threads):
            found = _in_python(case, method) if case.route in _PYTHON else _by_files(case, method, more)
        scores = {case.old(row["item"]): row["score"] for row in found["ranking"]}
        ranks = {case.old(row["item"]): row["rank"] for row in found["ranking"]}
        known = {key: found[key] for key in ("agreement", "confidence") if found.get(key) is not None}
        winner = found.get("condorcet_winner")
        facts = {"ranks": ranks, "cost": found.get("cost"), "winner": winner and case.old(winner)}
        return Found(named(scores, "score") | known, facts=facts)

    return run


def _by_files(case: Votes, method: str, more: tuple[str, ...]) -> dict[str, Any]:
    frame, words = case.given()
    found: dict[str, Any] = apexrank(
        "aggregate", case.write(frame), *words, *more, "--method", method, "--json"
    )
    return found


_PYTHON = ("numpy", "pandas", "polars", "mappings")


def _in_python(case: Votes, method: str) -> dict[str, Any]:
    """The same aggregation of values in memory."""
    values, weights = (
        case.scores.select(case.items),
        case.table["times"].to_numpy() if case.weighted else None,
    )
    given: Any = {
        "numpy": values.to_numpy().astype(float),
        "pandas": values.to_pandas(),
        "polars": values,
        "mappings": values.to_dicts(),
    }[case.route]
    result = merge(given, weights, method=method, items=case.items if case.route == "numpy" else None)
    found: dict[str, Any] = {"ranking": result.to_frame().to_dicts(), "cost": result.cost}
    lacking = bool((result.support < result.ballots.total).any())
    found |= {"confidence": None if lacking else result.confidence}  # as on the command line
    found["condorcet_winner"] = result.condorcet_winner
    tau, weight = result.agreement, result.ballots.weight(slice(None))
    counted = (weight > 0) & ~np.isnan(tau)
    return found | {
        "agreement": float(np.average(tau[counted], weights=weight[counted])) if counted.any() else None
    }


def cluster(k: int) -> Callable[[Votes], Found]:
    return lambda case: _clusters(case, k)


def _clusters(case: Votes, k: int) -> Found:
    """Objective, sizes of the clusters, and the scores of the items in the cluster of each size."""
    frame, words = case.given()
    with with_threads(case.threads):
        found = apexrank("cluster", case.write(frame), *words, "-k", k, "--n-init", 20, "--json")
    numbers = {"inertia": found["inertia"], "silhouette": found["silhouette"] or 0.0}
    scores = {
        f"{case.old(item)} {each['voters']}": score
        for each in found["clusters"]
        for item, score in zip(each["order"], each["scores"], strict=True)
    }
    sizes = sorted(each["voters"] for each in found["clusters"])
    # clusters of the same size are unordered; tied items of a centre may be in any order, which changes distances of
    # voters
    vague = ("item *",) * (len({*sizes}) < len(sizes))
    tied = any(min(-np.diff(each["scores"]), default=1.0) < 1e-9 for each in found["clusters"])
    return Found(numbers | scores, facts={"sizes": sizes}, vague=(*vague, *(["silhouette"] if tied else [])))


SUBJECTS = [
    *(
        Subject(
            f"aggregate {method}",
            "ballots",
            aggregate(method),
            frozenset({"points"} if method in ("lovasz-bregman", "combsum", "combmnz") else set()),
            15,
        )
        for method in METHODS
    ),
    Subject(
        "aggregate --normalize",
        "ballots",
        aggregate("combsum", "--normalize", "minmax"),
        frozenset({"options", "scores only"}),
        15,
    ),
    *(
        Subject(f"aggregate {method} with gaps", "gaps", aggregate(method), frozenset({"gaps"}), 15)
        for method in METHODS
    ),
    Subject("cluster -k 1", "ballots", cluster(1), frozenset({"options", "points"}), 40),
    Subject("cluster -k 2", "ballots", cluster(2), frozenset({"options", "starts", "points"}), 40),
]


# ---------------------------------------------------------------- relations


def _rename(case: Votes, rng: np.random.Generator) -> Votes:
    new = renamed(case.items, rng)
    return case.but(table=case.table.rename(new), names={name: old for old, name in new.items()})


def _repeat(case: Votes, rng: np.random.Generator) -> tuple[Votes, Votes]:
    rows = np.repeat(np.arange(len(case.table)), case.table["times"])
    table = case.table[rows].with_columns(pl.Series("voter", [f"w{i}" for i in range(len(rows))]))
    return case.but(weighted=True), case.but(table=table, weighted=False)


def _weightless(case: Votes, rng: np.random.Generator) -> tuple[Votes, Votes]:
    odd = case.table[:1].with_columns(
        pl.lit("odd").alias("voter"),
        pl.lit(0, pl.Int64).alias("times"),
        *(pl.lit(place, pl.Int64).alias(item) for place, item in enumerate(case.items[::-1], start=1)),
    )
    case = case.but(weighted=True)
    return case, case.but(table=pl.concat([odd, case.table]))


def _layout(layout: str) -> Callable[[Votes, np.random.Generator], Votes]:
    return lambda case, rng: case.but(layout=layout)


_PLACES = {"points": "sums points, which are one less per item in places", "scores only": "scales scores"}
_STARTS = {"starts": "random starts are drawn by the numbers of the voters"}
RELATIONS = [
    Relation(
        "voters shuffled",
        "ballots",
        "the order of the voters does not matter",
        lambda case, rng: case.but(table=case.table[rng.permutation(len(case.table))]),
        _STARTS,
    ),
    Relation(
        "items reordered",
        "ballots",
        "the order of the columns does not matter",
        lambda case, rng: case.but(table=case.table.select("voter", *rng.permutation(case.items), "times")),
    ),
    Relation("items renamed", "ballots", "items are names", _rename),
    Relation(
        "weights as repeated ballots", "ballots", "a weight of 3 is three equal ballots", _repeat, _STARTS
    ),
    Relation(
        "ballots of weight 0", "ballots", "a ballot that nobody cast changes nothing", _weightless, _STARTS
    ),
    Relation(
        "as ranks",
        "ballots",
        "places say what scores say in their order",
        _layout("ranks"),
        _PLACES,
        ("confidence",),
    ),
    Relation(
        "as orders",
        "ballots",
        "lists of items say what their places say",
        lambda case, rng: (case.but(layout="ranks"), case.but(layout="orders")),
        {"scores only": "scales scores"},
    ),
    Relation("as a long table", "ballots", "one row per voter and item is the same table", _layout("long")),
    Relation("items in rows", "ballots", "a turned table is the same table", _layout("rows")),
    *(
        Relation(
            f"as {format}",
            "ballots",
            "the format of a file says nothing about the ballots",
            lambda case, rng, format=format: case.but(format=format),
        )
        for format in ("tabs", "semicolons", "gzip", "Parquet")
    ),
    *(
        Relation(
            f"from {route}",
            "ballots",
            "the command line is the library",
            lambda case, rng, route=route: case.but(route=route),
            {"options": "called with other options"},
        )
        for route in _PYTHON
    ),
    Relation(
        "two threads",
        "ballots",
        "threads change nothing",
        lambda case, rng: (case.but(threads=1), case.but(threads=2)),
    ),
]
# ballots with ties and gaps have no places to give
RELATIONS += [
    replace(relation, kind="gaps") for relation in RELATIONS if relation.name not in ("as ranks", "as orders")
]
STRATEGIES = {"ballots": votes(), "gaps": votes(gaps=True)}
