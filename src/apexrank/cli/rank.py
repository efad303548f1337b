"""``apexrank rank``: from a model file and new rows to a ranked list."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apexrank.cli.output import note, print_frame, print_json, refuse_overwriting

if TYPE_CHECKING:
    import polars as pl


def rank(
    model: Annotated[Path, typer.Argument(help="Model file, written by 'apexrank fit'.", show_default=False)],
    new: Annotated[Path, typer.Argument(help="Table of rows to rank: CSV or Parquet.", show_default=False)],
    top: Annotated[
        int | None, typer.Option(help="Keep the best N rows (of each group).", metavar="N")
    ] = None,
    fpr: Annotated[
        float | None,
        typer.Option(help="Keep rows above the score that this share of the training negatives exceeded."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add the three columns that lift each row most.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep all columns of the table.")] = False,
    id: Annotated[str | None, typer.Option(help="Column that names the rows; default: the model's.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV or Parquet file to write; default: the screen.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Rank the rows of a table, best first."""
    from apexrank.io import load_model, rank_table, read_table, write_table

    _check_output(output, model, new)
    ranker = load_model(model)
    table = read_table(new)
    ranked = rank_table(ranker, table, top=top, fpr=fpr, explain=explain, keep=keep, id=id)
    for sentence in ranker.check(table, known=[id]):
        note(sentence)
    if id is None and ranker.id not in (None, *table.names):
        note(f"{new} has no column {ranker.id!r} of ids: the rows are named by their number")
    if output is not None:
        write_table(ranked, output)
    if json:
        _print_json(ranked, output)
    elif output is not None:
        typer.echo(f"written: {output}, {len(ranked)} of {len(table)} rows, best first")
    else:
        print_frame(ranked)


def _check_output(output: Path | None, *inputs: Path) -> None:
    from apexrank.io.atomic import check_writable
    from apexrank.io.tables import check_suffix

    if output is not None:
        check_suffix(output)
        check_writable(output)
        refuse_overwriting(output, *inputs)


def _print_json(ranked: pl.DataFrame, output: Path | None) -> None:
    summary = {"rows": len(ranked), "output": None if output is None else str(output)}
    print_json(summary if output is not None else {**summary, "ranking": ranked.to_dicts()})
