"""``apexrank convert``: a table in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apexrank.cli import options as opt
from apexrank.cli import output as out


@opt.option_groups
def convert(
    source: Annotated[
        Path, opt.argument("Table: CSV or TSV (also .gz), Parquet, LETOR (.txt, .svm, .letor, also .gz).")
    ],
    target: Annotated[Path, opt.argument("File to write: .csv, .csv.gz, .parquet, or .txt for LETOR.")],
    *,
    reading: opt.CsvOptions,
    json: opt.Json = False,
) -> None:
    """Convert a table between LETOR, CSV and Parquet; the file names determine the formats.

    A LETOR file has the columns relevance, qid, docid, feature_1 and so on.
    """
    out.check_inputs(source)
    out.check_file(target, source)
    from apexrank.io.convert import convert_table

    watch = out.Stopwatch()
    with out.working(f"converting {source}"):
        frame = convert_table(reading.read_table(source), target).frame
    watch.end("converting")
    if json:
        out.print_json({"output": target, "rows": frame.height, "columns": frame.columns, "seconds": watch})
        return
    typer.echo(f"{target}: {out.plural(frame.height, 'row')}, {out.plural(frame.width, 'column')}; {watch}")
