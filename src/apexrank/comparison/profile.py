"""Profiles of the columns of a comparison and their contributions to the scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from apexrank.comparison.candidates import quietly
from apexrank.errors import InputError
from apexrank.plot.effects import Effects, additive_effects

if TYPE_CHECKING:
    from apexrank.comparison.result import Comparison
    from apexrank.io.types import Cells, Column

FIRST = 1000  # number of top rows whose values are kept
SAMPLE = 2000  # number of rows for the mean effect of a column


class ColumnProfile(NamedTuple):
    """Profile of a used column: its kind, share of missing values, and number of distinct values, or of levels."""

    name: str
    kind: str
    missing: float
    values: int

    @classmethod
    def of(cls, column: Column, cells: Cells, weight: np.ndarray | None = None) -> ColumnProfile:
        """Profile the typed values of a table's column."""
        values = cells[column.name]
        missing = np.isnan(values)
        n = len(np.unique(values[~missing]))
        return cls(column.name, column.kind, float(np.average(missing, weights=weight)), n)


@dataclass(frozen=True)
class Explained:
    """Selected test rows, the values of their columns, and the contribution of each column to their scores.

    Parameters
    ----------
    rows : array of int
        Row numbers among the test rows.
    values : polars.DataFrame
        Their values in the used columns.
    parts : array of shape (n_rows, n_columns), optional
        Contribution of each column to a row's score, relative to an average row; None if the model has none.
    """

    rows: np.ndarray
    values: pl.DataFrame
    parts: np.ndarray | None

    def drivers(self, row: int, n: int = 3) -> list[tuple[str, Any, float]]:
        """Return the columns that raise a row's score most: name, value, and share of the total increase; at most n."""
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
    """Explain the top rows, and a sample of all rows, by the model fitted on all rows.

    ``values``, ``parsed`` and ``parts`` return columns of selected test rows: as they are, as the model reads them, and
    their contributions to the score.
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
    """Return contributions, or None for a model without them, such as a nonlinear user-defined one."""
    try:
        return np.asarray(parts(rows))
    except (AttributeError, InputError):
        return None


def later_effects(
    found: Comparison, model: Any, fit: Callable[[int], Any], **options: Any
) -> Callable[[], Effects] | None:
    """Return a function that computes the effects of the additive ranker, if there is one.

    ``model`` is the recommended ranker, and ``fit`` fits another candidate.
    """
    i = found.additive
    if i is None:
        return None

    def effects() -> Effects:
        with quietly():
            fitted = model if i == found.recommended else fit(i)
        return additive_effects(fitted, **options)

    return effects
