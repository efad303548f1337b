"""What an experiment is and what it gives: a tidy table, verdicts, maybe a figure."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Verdict(NamedTuple):
    """What came of one row of a table, or of one claim about a figure.

    ``word`` is "agrees" only when the paper's finding was found again beyond noise, "differs" when it cannot be
    found, and "within noise" between the two; ``why`` says what was seen.
    """

    row: str
    word: str
    why: str

    def __str__(self) -> str:
        return f"{self.row}: {self.word}: {self.why}"


@dataclass(frozen=True)
class Result:
    """Outcome of an experiment.

    Attributes
    ----------
    table : polars.DataFrame
        Tidy: one row for each number.
    view : polars.DataFrame
        The same numbers as people read them: one column for each ranker, ours beside the paper's.
    verdicts : list of Verdict
        One for each row of the paper's table or each claim about the figure.
    figure : matplotlib Figure or None
        The picture, where the paper has one.
    notes : list of str
        What one has to know to read the table: data, splits, units.
    """

    table: pl.DataFrame
    view: pl.DataFrame
    verdicts: list[Verdict]
    figure: Figure | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the papers that can be run again: ``experiment.run(**options)`` gives a `Result`."""

    name: str
    title: str
    run: Callable[..., Result]

    @property
    def options(self) -> list[str]:
        """Names of the options that ``run`` takes."""
        return list(inspect.signature(self.run).parameters)
