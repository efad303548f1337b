"""Profiles of the columns of a comparison, and their contributions to the scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from apexrank.comparison.candidates import quietly
from apexrank.errors import InputError
from apexrank.plot.effects import Effects, additive_effects

if TYPE_CHECKING:
    from apexrank.comparison.result import Comparison
    from apexrank.io.encode import Cells, Column

FIRST = 1000  # rows of the list whose values are kept
SAMPLE = 2000  # rows that the mean effect of a column is taken over
REFITS = 20  # for the bands around the effects of an additive ranker
MOST_REFITTED = 100_000  # rows, beyond which bands would take long and be thin


class ColumnProfile(NamedTuple):
    """A column that is used: its kind, the share of the rows in which it is missing, and its number of values."""

    name: str
    kind: str
    missing: float
    values: int

    @classmethod
    def of(cls, column: Column, cells: Cells, weight: np.ndarray | None = None) -> ColumnProfile:
        """Profile of the parsed values of a table's column."""
        parsed = cells[column.name]
        missing = column.is_missing(parsed)
        known = parsed.drop_nulls() if column.kind == "category" else pl.Series(parsed[~missing, 0])
        return cls(column.name, column.kind, float(np.average(missing, weights=weight)), known.n_unique())


@dataclass(frozen=True)
class Explained:
    """Some of the tested rows, the values of their columns, and what each column adds to their scores.

    Parameters
    ----------
    rows : array of int
        Numbers of the rows among those that were tested.
    values : polars.DataFrame
        Their values, a column for each one that is used.
    parts : array of shape (n_rows, n_columns), optional
        How far each column lifts the score of a row above that of an average row; None where the model cannot tell.
    """

    rows: np.ndarray
    values: pl.DataFrame
    parts: np.ndarray | None

    def drivers(self, row: int, n: int = 3) -> list[tuple[str, Any, float]]:
        """The columns that lift a row most: name, value, and share of all that lifts it; fewer when fewer lift it."""
        if self.parts is None:
            return []
        lifts = np.maximum(self.parts[row], 0)
        best = [j for j in np.argsort(-lifts, kind="stable")[:n] if lifts[j] > 0]
        names, values = self.values.columns, self.values.row(row)
        return [(names[j], values[j], float(lifts[j] / lifts.sum())) for j in best]


def explain_rows(
    found: Comparison,
    values: Callable[[np.ndarray], pl.DataFrame],
    parsed: Callable[[np.ndarray], pl.DataFrame],
    parts: Callable[[np.ndarray], np.ndarray],
) -> Comparison:
    """Explain the first rows of the list, and a sample of all rows, by the model that was fitted on all rows.

    ``values``, ``parsed`` and ``parts`` give the columns of some of the tested rows: as they are, as the model reads
    them, and what they add to the score.
    """
    n = len(found.y)
    first = found.standing(found.recommended)[:FIRST]
    drawn = np.sort(np.random.default_rng(0).permutation(n)[:SAMPLE])
    return replace(
        found,
        first=Explained(first, values(first), _told(parts, first)),
        sample=Explained(drawn, parsed(drawn), _told(parts, drawn)),
    )


def _told(parts: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray | None:
    """Contributions, or None of a model that gives none, such as a user's own that is not linear."""
    try:
        return np.asarray(parts(rows))
    except (AttributeError, InputError):
        return None


def later_effects(
    found: Comparison, model: Any, fit: Callable[[int], Any], X: Any, *given: Any, **options: Any
) -> Callable[[], Effects] | None:
    """Function that gives the effects of the additive ranker, where there is one.

    ``model`` is the recommended ranker, ``fit`` fits another one of the candidates, and the rest are the training rows.
    """
    i = found.additive
    if i is None:
        return None

    def effects() -> Effects:
        with quietly():
            fitted = model if i == found.recommended else fit(i)
        rows = (X, *given) if len(X) <= MOST_REFITTED else ()
        return additive_effects(fitted, *rows, n_bootstrap=REFITS, random_state=0, **options)

    return effects


def as_frame(cells: Cells, columns: Iterable[Column]) -> pl.DataFrame:
    """Parsed values as a table: numbers, texts, and dates as days since 1970."""
    return pl.DataFrame(
        {
            column.name: cells[column.name] if column.kind == "category" else cells[column.name][:, 0]
            for column in columns
        }
    )
