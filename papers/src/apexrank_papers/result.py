"""Experiments and their parts: verdicts, tables, views of tables, and figures."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from apexrank.errors import MissingExtraError

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure
else:
    Figure = Any  # matplotlib is an extra


FINDINGS = {1: "agrees", 0: "within noise", -1: "differs"}  # by the sign of the observed effect
ANSWERS = {1: "yes", 0: "cannot tell", -1: "no"}


class Verdict(NamedTuple):
    """Outcome for a claim printed in a paper, or for one of our own questions.

    For a claim ``word`` is one of `FINDINGS`: "agrees" only if we find the paper's result beyond noise, "differs" if
    we cannot find it, and "within noise" otherwise. For a question it is one of `ANSWERS`. ``why`` describes the
    observation.
    """

    row: str
    word: str
    why: str

    @property
    def kind(self) -> str:
        """Return "paper" for a claim printed in a paper, "question" for one of our own questions."""
        return "question" if self.word in ANSWERS.values() else "paper"

    def __str__(self) -> str:
        return f"{self.row}: {self.word}: {self.why}"


def signed_verdict(row: str, sign: int, why: str) -> Verdict:
    """Return the verdict on a printed difference: 1 as claimed beyond noise, -1 opposite beyond noise, 0 within noise.

    Examples
    --------
    >>> print(signed_verdict("AUC", -1, "it falls"))
    AUC: differs: it falls
    """
    return Verdict(row, FINDINGS[sign], why)


def question(row: str, sign: int, why: str) -> Verdict:
    """Return the answer to one of our own questions: 1 for yes, -1 for no, 0 if it is within noise.

    Examples
    --------
    >>> print(question("do labels help", 0, "AUC +0.01 ± 0.02"))
    do labels help: cannot tell: AUC +0.01 ± 0.02
    """
    return Verdict(row, ANSWERS[sign], why)


Judge = Callable[[str, int, str], Verdict]  # signed_verdict or question


def claim(row: str, holds: bool, why: str, judge: Judge = signed_verdict) -> Verdict:
    """Return the verdict on a deterministic claim."""
    return judge(row, 1 if holds else -1, why)


def interval_verdict(row: str, low: float, high: float, why: str, judge: Judge = signed_verdict) -> Verdict:
    """Return the verdict on a difference that should be positive, given its confidence interval."""
    return judge(row, 1 if low > 0 else -1 if high < 0 else 0, why)


@dataclass(frozen=True)
class Result:
    """Outcome of an experiment.

    Attributes
    ----------
    table : polars.DataFrame
        Tidy table with one row for each number.
    view : polars.DataFrame
        The same numbers for display: one column for each ranker, ours next to the paper's.
    verdicts : list of Verdict
        One for each row of the paper's table or each claim about the figure.
    figure : matplotlib Figure or None
        The figure, if the paper has one.
    notes : list of str
        Data, splits and units of the table.
    usual_data : bool
        Whether the data are those of the recorded verdicts.
    """

    table: pl.DataFrame
    view: pl.DataFrame
    verdicts: list[Verdict]
    figure: Figure | None = None
    notes: list[str] = field(default_factory=list)
    usual_data: bool = True


@dataclass(frozen=True)
class Experiment:
    """A reproducible table or figure of the papers: ``experiment.run(**options)`` returns a `Result`.

    ``function`` is a callable or its location, such as ``"push.illustrations:table1"``. It is imported when needed,
    because listing all experiments must not import all of them.
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


def tidy(axes: Mapping[str, Iterable[Any]], columns: Mapping[str, Any]) -> pl.DataFrame:
    """Convert arrays with labelled axes into a tidy table with one row for each combination of labels.

    Examples
    --------
    >>> tidy({"measure": ["AUC", "DCG"], "p": [1, 2]}, {"value": [[0.9, 0.8], [3.0, 4.0]]}).rows()
    [('AUC', 1, 0.9), ('AUC', 2, 0.8), ('DCG', 1, 3.0), ('DCG', 2, 4.0)]
    """
    import numpy as np
    import polars as pl

    names = pl.DataFrame(list(product(*axes.values())), schema=list(axes), orient="row")
    return names.hstack(pl.DataFrame({name: np.ravel(values) for name, values in columns.items()}))


def text_view(
    table: pl.DataFrame, form: str | Callable[..., str], on: str, index: str | Sequence[str]
) -> pl.DataFrame:
    """Pivot a tidy table into cells of text; ``form`` formats a row from its values by column name.

    Examples
    --------
    >>> table = tidy({"measure": ["AUC"], "p": [1, 2]}, {"mean": [0.9, 0.8], "error": [0.01, 0.02]})
    >>> text_view(table, "{mean:.1f} ± {error:.2f}", on="p", index="measure").rows()
    [('AUC', '0.9 ± 0.01', '0.8 ± 0.02')]
    """
    import polars as pl

    make = form.format if isinstance(form, str) else form
    cells = pl.Series("cell", [make(**row) for row in table.iter_rows(named=True)], dtype=pl.String)
    return table.with_columns(cells).pivot(on, index=index, values="cell")


def panels(width: float, height: float, *shape: int, **options: Any) -> tuple[Figure, Any]:
    """Create a figure and its axes without pyplot, which would keep a reference to the figure and never free it."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError('figures need matplotlib: pip install "apexrank[plot]"') from None
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(*shape, **options)


def draw_lines(
    ax: Any, lines: Mapping[str, tuple[Any, Any]], style: Callable[[int], dict[str, Any]], **labels: Any
) -> None:
    """Draw named lines and a thin grid, and set properties of the axes by ``labels``; the caller draws the legend."""
    from apexrank.plot.style import light

    for number, (name, (x, y)) in enumerate(lines.items()):
        ax.plot(x, y, label=name, **style(number))
    ax.set(**labels)
    light(ax)
