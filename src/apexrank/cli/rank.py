"""``apexrank rank``: rank new rows by a model file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank import io
from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class RankOptions:
    """Rows and columns to keep, and the output file."""

    top: str | None = opt.plain(
        "Keep the best N rows (of each group), or a share such as 5%.", metavar="N|N%"
    )
    fpr: float | None = opt.plain("Keep rows above the score that this share of training negatives exceeded.")
    explain: bool = opt.plain("Add the three columns that raise the score of each row most.", default=False)
    keep: bool = opt.plain("Keep all columns of the table.", default=False)
    id: str | None = opt.plain("Column of row ids (default: the model's).")
    groups: str | None = opt.plain("Column of groups to rank within (default: the model's).")
    format: str = opt.plain(
        "table (CSV or Parquet), or trec (a run file for trec_eval, ranx or ir-measures).",
        default="table",
        choices=("table", "trec"),
    )
    output: Path | None = opt.plain("File to write (default: print to the screen).")


@opt.option_groups
def rank(
    model: opt.ModelFile,
    new: Annotated[
        Path,
        opt.argument("Table of rows to rank: CSV, Parquet or LETOR, or a folder of Parquet or LETOR files."),
    ],
    *,
    options: RankOptions,
    costs: opt.CostOptions,
    reading: opt.CsvOptions,
    json: opt.Json = False,
) -> None:
    """Rank the rows of a table, best first.

    A model that was fitted with --calibrate also gives probabilities.
    """
    output, trec, pair = options.output, options.format == "trec", costs.pair()
    (out.check_file if trec else out.check_table)(output, model, new)
    wider, shorter = options.explain or options.keep, options.top is not None or options.fpr is not None
    opt.refuse(trec and wider, "a run file has no other columns: leave out --explain and --keep")
    length = "--cost-false-alarm and --gain-hit set the length of the list: leave out --top and --fpr"
    opt.refuse(pair is not None and shorter, length)
    if options.top is not None:
        _places(options.top, 1, None)  # checks it
    bad_rate = options.fpr is not None and not 0 <= options.fpr < 1
    opt.refuse(bad_rate, f"--fpr must be at least 0 and below 1, got {options.fpr}")
    in_memory = (
        "--explain and --keep need the table in memory, and a folder is read in blocks: leave them out"
    )
    opt.refuse(new.is_dir() and wider, in_memory)
    reading.refuse(new.is_dir(), opt.FOLDER_IS_UTF8)
    out.check_inputs(model, new)
    from apexrank.io.trec import run_text

    ranker = opt.load_ranker(model, options.groups)
    uncalibrated = pair is not None and ranker.calibration is None
    opt.refuse(uncalibrated, "the model gives no probabilities: fit it with --calibrate")
    if new.is_dir():
        from apexrank.io.stream import score_blocks

        table, scores, notes = score_blocks(ranker, new, id=options.id)
    else:
        table, scores, notes = reading.read_table(new, index="index"), None, None
    chosen: dict[str, Any] = {name: getattr(options, name) for name in ("fpr", "explain", "keep", "id")}
    chosen["top"] = None if options.top is None else _places(options.top, len(table), ranker.groups)
    if pair is not None:  # p·gain ≥ (1 − p)·cost
        chosen["min_probability"] = pair[0] / sum(pair)
    ranked = io.rank_table(ranker, table, scores=scores, **chosen)
    reading.note(*(ranker.check(table, known=[options.id, options.groups]) if notes is None else notes))
    if options.id is None and ranker.id not in (None, *table.names):
        reading.note(f"{new} has no id column {ranker.id!r}: rows are identified by their number")
    found: dict[str, Any] = {"rows": len(ranked), "output": output}
    best = f"best first ({ranker.meaning})"
    found["positive"] = ranker.positive
    if pair is not None:
        found["min_probability"] = chosen["min_probability"]
        found["expected_gain"] = float((ranked["probability"] * sum(pair) - pair[0]).sum())
        out.note(
            f"{len(ranked)} of {len(table)} rows have a probability of at least {found['min_probability']:.4g}; this "
            f"list has the largest expected gain, {found['expected_gain']:.6g}"
        )
    if trec:
        ranked = _run(ranked, ranker.groups, options.id or ranker.id)
    if output is not None and trec:
        io.write_run(ranked, output, _tag(model))
    else:
        out.write_frame(ranked, output)
    if json:
        from_text = table.separator is not None
        out.print_json(found, output, ranking=out.with_numbers(ranked) if from_text else ranked)
    elif output is not None:
        out.print_written(output, f", {len(ranked)} of {len(table)} rows, {best}")
    elif trec:
        typer.echo(run_text(ranked, _tag(model)), nl=False)
    else:
        out.print_frame(ranked)
    if output is None and not json:
        out.note(best)


def _places(top: str, n: int, groups: str | None) -> int:
    """Number of rows for ``--top``.

    Examples
    --------
    >>> _places("20", 300, None), _places("5%", 300, None)
    (20, 15)
    """
    text = top.strip()
    if text.endswith("%") and groups is not None:
        raise InputError(
            f"--top {top} is a share of one list, but the model ranks within groups: give a number of rows"
        )
    try:
        return math.ceil(float(text[:-1]) / 100 * n - 1e-9) if text.endswith("%") else int(text)
    except (ValueError, OverflowError):
        raise InputError(
            f"--top must be a number of rows such as 100 or a share such as 5%, got {top!r}"
        ) from None


def _run(ranked: pl.DataFrame, groups: str | None, id: str | None) -> pl.DataFrame:
    """Return the columns of a run: query, document and score; one list is one query."""
    import polars as pl

    if id == groups and id is not None:
        raise InputError(f"--id {id} is the column of groups: a run needs document ids")
    document = id if id in ranked.columns else "row"
    if document == "row":
        out.note("the rows have no ids: the run uses row numbers as document ids")
    query = pl.lit("1") if groups is None else pl.col(groups).cast(pl.String)
    return ranked.select(query.alias("query"), pl.col(document).cast(pl.String).alias("document"), "score")


def _tag(model: Path) -> str:
    """Return the name of the run: the name of the model file as one word."""
    return "-".join(model.stem.split()) or "apexrank"
