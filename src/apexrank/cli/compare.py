"""``apexrank compare``: does a push help on these rows, and how hard should one push?"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank.cli.output import (
    note,
    print_json,
    print_table,
    split_names,
    warnings_as_notes,
    working,
)
from apexrank.cli.pages import check_report
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.report import PushComparison

_COLUMNS, _COMPARISON = "Columns", "Comparison"
_MOST_SHOWN = 4
_DRAWS = 1000  # of rows, for the intervals
_SCORINGS = ("top", "roc_auc")  # beside the names of measures


def _column(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_COLUMNS)


def _choice(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_COMPARISON)


def compare(
    train: Annotated[
        Path, typer.Argument(help="Table of rows whose answer is known: CSV or Parquet.", show_default=False)
    ],
    target: Annotated[
        str, typer.Option(help="Column that says which rows are positive.", show_default=False)
    ],
    report: Annotated[
        Path | None, typer.Option(help="HTML file to write: everything in one page.", show_default=False)
    ] = None,
    test: Annotated[
        Path | None,
        _choice("Table to measure on; by default a part of the rows is held out for that."),
    ] = None,
    positive: Annotated[str | None, _column("Positive value of the target; all others are negative.")] = None,
    id: Annotated[str | None, _column("Column that names the rows; not a feature.")] = None,
    weight: Annotated[str | None, _column("Column of row weights; not a feature.")] = None,
    features: Annotated[
        list[str] | None, _column("Columns to use, such as a,b; all others by default.")
    ] = None,
    drop: Annotated[list[str] | None, _column("Columns to leave out, such as a,b.")] = None,
    categorical: Annotated[
        list[str] | None, _column("Columns to one-hot encode; by default those of text with few values.")
    ] = None,
    impute: Annotated[
        str | None, _column("Fill missing numbers with the column's median (the default) or mean.")
    ] = None,
    scale: Annotated[str, _column("Scaling of numbers: standard, minmax or none.")] = "standard",
    p: Annotated[
        str,
        _choice(
            "Pushes to compare, from 1 to 10000, or inf; p = 1, the whole list, is always among them.",
            "-p",
            "--p",
        ),
    ] = "1,2,4,8,16,64",
    scoring: Annotated[
        str,
        _choice(
            "What cross-validation chooses p by: top (the share of positives in the first places), or a measure such "
            "as partial_auc_0.1, average_precision, tpr_at_fpr_0.01."
        ),
    ] = "top",
    holdout: Annotated[float, _choice("Share of the rows that is held out.")] = 0.3,
    folds: Annotated[
        int, typer.Option(min=2, help="Folds of the cross-validation.", rich_help_panel=_COMPARISON)
    ] = 5,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many rows of the list somebody will look at, at most a third of the held-out ones; by default a "
            "tenth of them, 30 at most.",
            rich_help_panel=_COMPARISON,
        ),
    ] = None,
    confidence: Annotated[float, _choice("Of the intervals.")] = 0.95,
    seed: Annotated[
        int, typer.Option(min=0, help="For the split and the draws.", rich_help_panel=_COMPARISON)
    ] = 0,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare pushes on held-out rows, and write a report about it."""
    from apexrank.io import read_table
    from apexrank.report import build, compare_table

    check_report(report, train, test)
    ps = _powers(p)
    _check_options(scoring, holdout, confidence)
    began = time.perf_counter()
    table = read_table(train)
    other = None if test is None else read_table(test)
    reading = time.perf_counter() - began
    with working(f"comparing pushes on {len(table)} rows") as status, warnings_as_notes():
        comparison = compare_table(
            table,
            target=target,
            positive=positive,
            id=id,
            weight=weight,
            features=split_names(features, table.names),
            drop=split_names(drop, table.names),
            categorical=None if categorical is None else split_names(categorical, table.names),
            impute=impute,
            scale=scale,
            test_table=other,
            ps=ps,
            scoring=scoring,
            holdout=holdout,
            folds=folds,
            top=top,
            confidence=confidence,
            n_resamples=_DRAWS,
            random_state=seed,
            progress=None if status is None else status.update,
        )
    comparison.seconds["reading"] = reading
    comparison.seconds["total"] = time.perf_counter() - began
    if report is not None:
        build(comparison, report, title=title or f"Does a push help? {train.name}")
    if json:
        print_json({**comparison.to_dict(), "report": None if report is None else str(report)})
    else:
        _print(comparison, train, report)


def _powers(text: str) -> list[float]:
    from apexrank.report.pushes import HARDEST

    try:
        ps = [math.inf if part.strip() in ("inf", "∞") else float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"-p takes numbers with commas between them, such as 1,4,16, got {text!r}") from None
    for power in ps:
        if not power >= 1 or HARDEST < power < math.inf:
            raise InputError(f"-p takes numbers from 1 to {HARDEST:,.0f}, or inf, got {power:g}")
    return ps


def _check_options(scoring: str, holdout: float, confidence: float) -> None:
    """Refuse by the names of the options, before anything takes time."""
    if not 0 < holdout < 1:
        raise InputError(f"--holdout must be a share between 0 and 1, got {holdout:g}")
    if not 0 < confidence < 1:
        raise InputError(f"--confidence must be between 0 and 1, got {confidence:g}")
    if (1 - confidence) / 2 * _DRAWS < 1 - 1e-9:
        highest = 1 - 2 / _DRAWS
        raise InputError(
            f"--confidence {confidence:.15g} is more than {_DRAWS:,} draws can tell: at most {highest:g}"
        )
    if scoring not in _SCORINGS:
        _check_measure(scoring)


def _check_measure(scoring: str) -> None:
    from apexrank.metrics.measure import find_measure

    try:
        find_measure(scoring)
    except InputError as error:
        if "unknown" not in str(error):
            raise InputError(f"--scoring {error}") from None
        raise InputError(
            f"--scoring {scoring!r} is no measure of the top of a list: use top, or one such as precision_at_50, "
            "partial_auc_0.1, average_precision, tpr_at_fpr_0.01, auc"
        ) from None


def _print(comparison: PushComparison, train: Path, report: Path | None) -> None:
    from apexrank.io.judging import label
    from apexrank.report.push_verdict import level
    from apexrank.report.pushes_page import shown_measures

    n = len(comparison.feature_names)
    typer.echo(
        f"{train}: learnt from {comparison.n_train} rows ({comparison.n_train_positives} positive), measured on "
        f"{comparison.n_test} others ({comparison.n_test_positives} positive), {n} feature{'' if n == 1 else 's'}"
    )
    decided, *others = shown_measures(comparison)[:_MOST_SHOWN]
    headers = ["p", label(decided), "difference", "its interval", *map(label, others)]
    print_table(headers, [_row(comparison, number, decided, others) for number in range(len(comparison.ps))])
    typer.echo(
        f"* chosen by cross-validation ({comparison.scoring}); difference to p = 1 with its "
        f"{level(comparison.confidence)} interval"
    )
    for sentence in comparison.notes:
        note(sentence)
    verdict = comparison.verdict
    typer.echo(verdict.text)
    for sentence in (*verdict.caveats, comparison.left_out):
        if sentence:
            typer.echo(sentence)
    if report is not None:
        size = report.stat().st_size / 1e6
        typer.echo(f"written: {report} ({size:.1f} MB, after {comparison.seconds['total']:.0f} s)")


def _row(comparison: PushComparison, number: int, decided: str, others: list[str]) -> list[str]:
    power = comparison.ps[number]
    marked = ("inf" if math.isinf(power) else f"{power:g}") + (" *" if number == comparison.chosen else "")
    if comparison.collapsed[number]:
        marked += " (no minimum but 0)"
    elif not comparison.converged(number):
        marked += " (not converged)"
    gap = comparison.differences[decided][number]
    values = [f"{comparison.measures[name][number].value:.3f}" for name in (decided, *others)]
    difference = "" if gap is None else f"{gap.value:+.3f}"
    interval = "" if gap is None else f"{gap.low:+.3f} to {gap.high:+.3f}" if math.isfinite(gap.low) else "–"
    return [marked, values[0], difference, interval, *values[1:]]
