"""Experiments, their results, verdicts and figures."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from apexrank.errors import MissingExtraError

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


class Verdict(NamedTuple):
    """Outcome for one row of a table, or for one claim about a figure.

    ``word`` is "agrees" only when the paper's finding was found again beyond noise, "differs" when it cannot be
    found, and "within noise" between the two; ``why`` says what was seen.
    """

    row: str
    word: str
    why: str

    def __str__(self) -> str:
        return f"{self.row}: {self.word}: {self.why}"


def claim(row: str, holds: bool, why: str) -> Verdict:
    """Verdict on a claim in which there is no chance."""
    return Verdict(row, "agrees" if holds else "differs", why)


def signed_verdict(row: str, sign: int, why: str) -> Verdict:
    """Verdict on a difference: 1 as claimed beyond noise, -1 the other way beyond noise, 0 within noise.

    Examples
    --------
    >>> print(signed_verdict("AUC", -1, "it falls"))
    AUC: differs: it falls
    """
    return Verdict(row, {1: "agrees", 0: "within noise", -1: "differs"}[sign], why)


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
    """A table or figure of the papers that can be run again: ``experiment.run(**options)`` gives a `Result`.

    ``function`` is a callable or the place of one, such as ``"push.illustrations:table1"``, which is imported when it
    is needed: the list of all experiments must not import all of them.
    """

    name: str
    title: str
    function: Callable[..., Result] | str

    @property
    def run(self) -> Callable[..., Result]:
        """Function that runs the experiment."""
        if isinstance(self.function, str):
            return pkgutil.resolve_name(f"apexrank_papers.{self.function}")
        return self.function

    @property
    def options(self) -> list[str]:
        """Names of the options that ``run`` takes."""
        return list(inspect.signature(self.run).parameters)


def new_figure(width: float, height: float) -> Figure:
    """Make a figure that belongs to its caller alone: pyplot would keep a reference and never free it."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError('figures need matplotlib: pip install "apexrank[plot]"') from None
    return Figure(figsize=(width, height), layout="constrained")
