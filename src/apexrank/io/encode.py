"""Turn a table into a feature matrix, the same way in training and later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from apexrank.errors import InputError
from apexrank.io.columns import IMPUTERS, KINDS, Category, Number, is_text
from apexrank.io.tables import Table

Column = Number | Category

# Each gives (center, scale) of a feature matrix: features become (x - center) / scale.
SCALERS: dict[str, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "standard": lambda X: (X.mean(axis=0), X.std(axis=0)),
    "minmax": lambda X: (X.min(axis=0), np.ptp(X, axis=0)),
    "none": lambda X: (np.zeros(X.shape[1]), np.ones(X.shape[1])),
}


def check_name(what: str, name: str, choices: Sequence[str]) -> str:
    """Refuse a name that is not one of ``choices``."""
    if name not in choices:
        raise InputError(f"unknown {what} {name!r}: use one of {', '.join(choices)}")
    return name


@dataclass(frozen=True)
class Encoder:
    """Columns, and the center and scale of the features they become.

    Examples
    --------
    >>> import polars as pl
    >>> table = Table(pl.DataFrame({"x": [1.0, 3.0], "city": ["Oslo", "Rome"]}))
    >>> encoder = Encoder.learn(table, ["x", "city"], categorical=["city"])
    >>> encoder.features
    ['x', 'city=Oslo', 'city=Rome']
    >>> encoder.encode(table).tolist()
    [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """

    columns: tuple[Column, ...]
    center: np.ndarray
    scale: np.ndarray

    @classmethod
    def learn(
        cls,
        table: Table,
        names: Sequence[str],
        *,
        categorical: Sequence[str] = (),
        impute: str | None = None,
        scale: str = "standard",
    ) -> Encoder:
        """Learn categories, fill values and scaling from the training table.

        Parameters
        ----------
        table : Table
            Training rows.
        names : sequence of str
            Columns to use, in this order.
        categorical : sequence of str
            Those of them to one-hot encode; ``["all"]`` means every column of text.
        impute : {"median", "mean"}, optional
            What a missing number becomes. Without it a missing value is an error.
        scale : {"standard", "minmax", "none"}
            Numbers get mean 0 and standard deviation 1, or the range 0 to 1, or stay. Indicators stay.
        """
        if impute is not None:
            check_name("imputation", impute, list(IMPUTERS))
        check_name("scale", scale, list(SCALERS))
        chosen = _categorical(table, names, categorical)
        kinds = {name: "category" if name in chosen else "number" for name in names}
        columns = tuple(KINDS[kinds[name]].learn(table, name, impute) for name in names)
        return cls(columns, *_scaling(table, columns, scale))

    @property
    def features(self) -> list[str]:
        """Names of the features, in the order of the matrix."""
        return [feature for column in self.columns for feature in column.features]

    @property
    def starts(self) -> np.ndarray:
        """Number of the first feature of every column."""
        widths = [len(column.features) for column in self.columns]
        return np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.intp)

    def encode(self, table: Table) -> np.ndarray:
        """Feature matrix of the table's rows; columns it does not know are left aside."""
        X = np.empty((len(table), len(self.center)))
        for start, column in zip(self.starts, self.columns, strict=True):
            X[:, start : start + len(column.features)] = column.read(table)
        X -= self.center
        X /= self.scale
        return X

    def notes(self, table: Table) -> list[str]:
        """One sentence for every column with values that training never met."""
        notes = []
        for column in self.columns:
            unknown = column.unknown(table) if isinstance(column, Category) else []
            if unknown:
                shown = ", ".join(map(repr, unknown[:3])) + (", ..." if len(unknown) > 3 else "")
                notes.append(
                    f"column {column.name!r} has values never met in training, taken as none: {shown}"
                )
        return notes


def _categorical(table: Table, names: Sequence[str], categorical: Sequence[str]) -> set[str]:
    """Columns to one-hot encode: those named, and with "all" every column of words."""
    chosen = {name for name in categorical if name != "all" or "all" in names}
    for name in sorted(chosen - set(names)):
        table.column(name)
        raise InputError(f"--categorical {name}: the column is not among the features")
    if "all" in categorical:
        chosen |= {name for name in names if is_text(table, name)}
    return chosen


def _scaling(table: Table, columns: tuple[Column, ...], scale: str) -> tuple[np.ndarray, np.ndarray]:
    """Center and scale of every feature; a feature of one value only is left at 0."""
    centers, scales = [], []
    for column in columns:
        X = column.read(table)
        method = scale if isinstance(column, Number) else "none"
        with np.errstate(over="ignore", invalid="ignore"):
            center, width = SCALERS[method](X)
        if not (np.isfinite(center).all() and np.isfinite(width).all()):
            raise InputError(
                f"{table.source} column {column.name!r} has values too large to scale: divide them or drop the column"
            )
        centers.append(center)
        scales.append(np.where(np.ptp(X, axis=0) > 0, width, 1.0))
    return np.concatenate(centers), np.concatenate(scales)
