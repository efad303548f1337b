"""``apexrank compare``: compare pushes of several strengths on held-out rows."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.report import PushComparison

_compare = opt.panel("Comparison")
_MOST_SHOWN = 4
_DRAWS = 1000  # bootstrap samples of the rows
_SCORINGS = ("top", "roc_auc")  # beside the names of measures


@dataclass(frozen=True)
class CompareColumns(opt.FeatureColumns):
    """Columns, and what is done with their values."""

    categorical: list[str] | None = opt.column(
        "Columns to one-hot encode; by default those of text with few values."
    )
    impute: str | None = opt.column("Fill missing numbers with the column's median (the default) or mean.")
    scale: str = opt.column("Scaling of numbers: standard, minmax or none.", default="standard")


@dataclass(frozen=True)
class PushOptions:
    """What is compared, and how."""

    test: Path | None = _compare("Table to measure on; by default a part of the rows is held out for that.")
    p: str = _compare(
        "Pushes to compare, from 1 to 10000, or inf; p = 1, the whole list, is always among them.",
        "-p",
        "--p",
        default="1,2,4,8,16,64",
    )
    scoring: str = _compare(
        "What cross-validation chooses p by: top (the share of positives in the first places), or a measure such "
        "as partial_auc_0.1, average_precision, tpr_at_fpr_0.01.",
        default="top",
    )
    holdout: float = _compare("Share of the rows that is held out.", default=0.3)
    folds: int = _compare("Folds of the cross-validation.", min=2, default=5)
    top: int | None = _compare(
        "How many rows of the list somebody will look at, at most a third of the held-out ones; by default a "
        "tenth of them, 30 at most.",
        min=1,
    )
    confidence: float = _compare("Of the intervals.", default=0.95)
    seed: int = _compare("For the split and the draws.", min=0, default=0)


@opt.option_groups
def compare(
    train: Annotated[Path, opt.argument("Table of rows whose answer is known: CSV or Parquet.")],
    *,
    target: Annotated[
        str, typer.Option(help="Column that says which rows are positive.", show_default=False)
    ],
    page: opt.ReportOptions,
    columns: CompareColumns,
    options: PushOptions,
    json: opt.Json = False,
) -> None:
    """Compare pushes on held-out rows, and write a report about it."""
    from apexrank.io import read_table
    from apexrank.report import build, compare_table

    out.check_report(page.report, train, options.test)
    ps = opt.split_powers(options.p, "1,4,16")
    _check_options(options, ps)
    began = time.perf_counter()
    table = read_table(train)
    other = None if options.test is None else read_table(options.test)
    reading = time.perf_counter() - began
    given = asdict(options)
    for name in ("test", "p", "seed"):
        del given[name]
    with out.working(f"comparing pushes on {len(table)} rows") as status:
        comparison = compare_table(
            table,
            target=target,
            **columns.arguments(table.names),
            **given,
            test_table=other,
            ps=ps,
            n_resamples=_DRAWS,
            random_state=options.seed,
            progress=None if status is None else status.update,
        )
    comparison.seconds.update(reading=reading, total=time.perf_counter() - began)
    if page.report is not None:
        build(comparison, page.report, title=page.title or f"Does a push help? {train.name}")
    if json:
        out.print_json({**comparison.to_dict(), "report": page.report})
    else:
        _print(comparison, train, page.report)


def _check_options(options: PushOptions, ps: list[float]) -> None:
    """Refuse bad options by their names, before any work."""
    from apexrank.metrics.evaluation import find_measure
    from apexrank.report.push.compare import HARDEST

    for power in ps:
        if not power >= 1 or HARDEST < power < math.inf:
            raise InputError(f"-p takes numbers from 1 to {HARDEST:,.0f}, or inf, got {power:g}")
    scoring, holdout, level = options.scoring, options.holdout, options.confidence
    too_sure = f"is more than {_DRAWS:,} draws can tell: at most {1 - 2 / _DRAWS:g}"
    opt.refuse(
        {
            f"--holdout must be a share between 0 and 1, got {holdout:g}": not 0 < holdout < 1,
            f"--confidence must be between 0 and 1, got {level:g}": not 0 < level < 1,
            f"--confidence {level:.15g} {too_sure}": (1 - level) / 2 * _DRAWS < 1 - 1e-9,
        }
    )
    try:
        if scoring not in _SCORINGS:
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
    from apexrank.report.page import level
    from apexrank.report.push.page import shown_measures

    typer.echo(
        f"{train}: learnt from {comparison.n_train} rows ({comparison.n_train_positives} positive), measured on "
        f"{comparison.n_test} others ({comparison.n_test_positives} positive), "
        f"{out.plural(len(comparison.feature_names), 'feature')}"
    )
    decided, *others = shown_measures(comparison)[:_MOST_SHOWN]
    rows = [_row(comparison, number, decided, others) for number in range(len(comparison.ps))]
    out.print_table(["p", label(decided), "difference", "its interval", *map(label, others)], rows)
    typer.echo(
        f"* chosen by cross-validation ({comparison.scoring}); difference to p = 1 with its "
        f"{level(comparison.confidence)} interval"
    )
    for sentence in comparison.notes:
        out.note(sentence)
    verdict = comparison.verdict
    for sentence in filter(None, (verdict.text, *verdict.caveats, comparison.left_out)):
        typer.echo(sentence)
    if report is not None:
        size, seconds = report.stat().st_size / 1e6, comparison.seconds["total"]
        out.print_written(report, f" ({size:.1f} MB, after {seconds:.0f} s)")


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
