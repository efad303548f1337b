"""``apexrank rank``: rank new rows by a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apexrank.cli.options import Json, ModelFile
from apexrank.cli.output import check_file, check_table, note, print_frame, print_json
from apexrank.errors import InputError

if TYPE_CHECKING:
    import polars as pl

_FORMATS = ("table", "trec")


def rank(
    model: ModelFile,
    new: Annotated[
        Path, typer.Argument(help="Table of rows to rank: CSV, Parquet or LETOR.", show_default=False)
    ],
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
    format: Annotated[
        str,
        typer.Option(help="table (CSV or Parquet), or trec: a run file for trec_eval, ranx, ir-measures."),
    ] = "table",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: the screen.")
    ] = None,
    json: Json = False,
) -> None:
    """Rank the rows of a table, best first."""
    from apexrank.io import load_model, rank_table, read_table, write_run, write_table
    from apexrank.io.trec import run_text

    if format not in _FORMATS:
        raise InputError(f"unknown format {format!r}: use one of {', '.join(_FORMATS)}")
    (check_table if format == "table" else check_file)(output, model, new)
    if format == "trec" and (explain or keep):
        raise InputError("a run has no room for other columns: leave out --explain and --keep")
    ranker = load_model(model)
    table = read_table(new)
    ranked = rank_table(ranker, table, top=top, fpr=fpr, explain=explain, keep=keep, id=id)
    for sentence in ranker.check(table, known=[id]):
        note(sentence)
    if id is None and ranker.id not in (None, *table.names):
        note(f"{new} has no column {ranker.id!r} of ids: the rows are named by their number")
    if format == "trec":
        ranked = _run(ranked, ranker.groups, id or ranker.id)
    if output is not None and format == "trec":
        write_run(ranked, output, _tag(model))
    elif output is not None:
        write_table(ranked, output)
    if json:
        summary = {"rows": len(ranked), "output": None if output is None else str(output)}
        print_json(summary | ({"ranking": ranked.to_dicts()} if output is None else {}))
    elif output is not None:
        typer.echo(f"written: {output}, {len(ranked)} of {len(table)} rows, best first")
    elif format == "trec":
        typer.echo(run_text(ranked, _tag(model)), nl=False)
    else:
        print_frame(ranked)


def _run(ranked: pl.DataFrame, groups: str | None, id: str | None) -> pl.DataFrame:
    """Return the columns of a run: query, document and score; one list is one query."""
    import polars as pl

    if id == groups and id is not None:
        raise InputError(f"--id {id} is the column of groups: a run needs ids of the documents in them")
    document = id if id in ranked.columns else "row"
    if document == "row":
        note("the rows have no ids: the run names its documents by their row number")
    query = pl.lit("1") if groups is None else pl.col(groups).cast(pl.String)
    return ranked.select(query.alias("query"), pl.col(document).cast(pl.String).alias("document"), "score")


def _tag(model: Path) -> str:
    """Return the name of the run: that of the model file, in one word."""
    return "-".join(model.stem.split()) or "apexrank"
