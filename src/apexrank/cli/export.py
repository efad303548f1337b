"""``apexrank export``: a model file as an ONNX graph, as SQL, or as a scorecard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import typer

import apexrank
from apexrank import io
from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError, first_of
from apexrank.files import write_bytes

_CARDS = (".csv", ".parquet", ".md", ".html")
_SUFFIXES = {".onnx": "onnx", ".sql": "sql", **dict.fromkeys(_CARDS, "scorecard")}
_sql, _card = opt.panel("SQL"), opt.panel("Scorecard")
Exported = tuple[dict[str, Any], Callable[[], None]]  # facts about the file, and the function that prints it


@dataclass(frozen=True)
class ExportOptions:
    """The file to write, and its format."""

    output: Path | None = opt.plain(
        "File to write: .onnx, .sql, or for a scorecard .html, .csv, .parquet, .md, .sql or .onnx (default: print "
        "SQL to the screen)."
    )
    format: str | None = opt.plain(
        "onnx, sql or scorecard (default: by the file name).", choices=("onnx", "sql", "scorecard")
    )


@dataclass(frozen=True)
class SqlOptions:
    """Options of ``--format sql``."""

    table: str | None = _sql("Write a complete SELECT that ranks this table instead of an expression.")
    dialect: str | None = _sql(
        "standard, sqlite, duckdb or postgresql.", choices=("standard", "sqlite", "duckdb", "postgresql")
    )
    score: str | None = _sql("Name of the score column in the SELECT (default: score).")
    id: str | None = _sql("Column to select besides the score (default: the model's id, or all columns).")


@dataclass(frozen=True)
class CardOptions(opt.CsvOptions):
    """Options of ``--format scorecard``."""

    panel: ClassVar[str] = "Scorecard"  # of the inherited options as well
    data: Path | None = _card("Labelled table to round on, such as the training table.")
    test: Path | None = _card("Labelled table to measure the loss from rounding on.")
    max_points: int | None = _card("Maximum points of a feature (default: 10).", min=1)
    bins: int | None = _card("Maximum number of bins per column of an additive model (default: 5).", min=1)
    weight: str | None = _card("Column of row weights (default: that of the training table).")


@opt.option_groups
def export(
    model: opt.ModelFile, *, target: ExportOptions, sql: SqlOptions, card: CardOptions, json: opt.Json = False
) -> None:
    """Export a model for use without Python: ONNX, SQL or a scorecard of whole points."""
    output, kind = target.output, target.format or _format(target.output)
    _check(kind, output, sql, card)
    out.check_file(output, model, card.data, card.test)
    out.check_inputs(model, card.data, card.test)

    ranker = opt.load_table_ranker(model)
    export_to = {"onnx": _export_onnx, "sql": _export_sql, "scorecard": _export_card}[kind]
    found, tell = export_to(ranker, output, sql, card)
    if json:
        about = {"model": model, "format": kind, "output": output, "positive": ranker.positive}
        out.print_json({**about, **found})
    else:
        tell()
        out.note(f"higher scores mean {ranker.meaning}")


def _format(output: Path | None) -> str:
    """Return the format for the suffix of a file name."""
    suffix = ".sql" if output is None else output.suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(
            f"cannot tell the format of {str(output)!r} by its name: use one of {', '.join(_SUFFIXES)}, or --format"
        )
    return _SUFFIXES[suffix]


def _check(kind: str, output: Path | None, sql: SqlOptions, card: CardOptions) -> None:
    """Raise InputError early for options of other formats and for an output that cannot be written."""
    given = opt.given_options(sql)
    suffix = "" if output is None else output.suffix.lower()
    kinds = {kind, "sql"} if kind == "scorecard" and suffix == ".sql" else {kind}
    for owner, options in (("sql", given), ("scorecard", opt.given_options(card))):
        for option in options:
            other = f"{opt.flag(option)} is for --format {owner}, not {kind}: leave it out"
            opt.refuse(owner not in kinds, other)
    for name in ("score", "id"):
        of_select = f"--{name} is for a whole SELECT: name the table with --table"
        opt.refuse(name in given and sql.table is None, of_select)
    to_file = "an ONNX graph goes to a file: name it with -o model.onnx"
    opt.refuse(kind == "onnx" and output is None, to_file)
    if kind == "scorecard":
        rows = "a scorecard is rounded on rows with the target: give them with --data train.csv"
        opt.refuse(card.data is None, rows)
        others = f"use one of {', '.join(_SUFFIXES)}"
        unknown = suffix not in ("", *_SUFFIXES)
        opt.refuse(unknown, f"a scorecard cannot be written to {str(output)!r}: {others}")


def _export_onnx(ranker: io.TableRanker, output: Path | None, *_: Any) -> Exported:

    graph = apexrank.export.to_onnx(ranker, path=output).graph
    inputs, outputs = ([one.name for one in ends] for ends in (graph.input, graph.output))
    for one in graph.input:
        if one.name != one.doc_string:
            out.note(
                f"column {one.doc_string!r} is the input {one.name!r}: its own name is that of an output"
            )
    about = f", inputs {first_of(inputs)}, outputs {first_of(outputs)}"
    return {"inputs": inputs, "outputs": outputs}, partial(out.print_written, output, about)


def _export_sql(ranker: io.TableRanker, output: Path | None, options: Any, _: Any) -> Exported:
    sql, text = _write_sql(ranker, output, options)
    if output is None:
        return {"sql": sql}, partial(typer.echo, text, nl=False)
    about = "an expression" if options.table is None else f"a SELECT of {options.table}"
    return {"sql": sql}, partial(out.print_written, output, f", {about}")


def _write_sql(model: Any, output: Path | None, options: Any) -> tuple[str, str]:
    """Return the SQL of a model or card and the text of its file; write the file if it has a name."""
    sql = apexrank.export.to_sql(model, **opt.given_options(options))
    text = sql + ("\n" if options.table is None else ";\n")
    if output is not None:
        write_bytes(output, text.encode())
    return sql, text


def _export_card(ranker: io.TableRanker, output: Path | None, sql: Any, options: Any) -> Exported:

    of_linear = options.bins is not None and ranker.is_linear
    opt.refuse(of_linear, "--bins is for additive models, but this one is linear: leave it out")
    weight = options.weight or ranker.weight
    rows, held_out = (_read(ranker, options, path, weight) for path in (options.data, options.test))
    with out.working(f"rounding on {len(rows[0])} rows"):
        chosen: Any = {"max_points": options.max_points or 10, "n_bins": options.bins or 5}
        card = apexrank.export.round_scorecard(ranker, rows[0], sample_weight=rows[1], **chosen)
        loss = card.loss(held_out[0], sample_weight=held_out[1])
    _write_card(card, output, sql, loss, options.test)
    found = {"points": card.to_frame().to_dicts(), "objective": card.objective._asdict()}
    found |= {"measured_on": options.test or options.data, "loss": loss.to_dicts()}

    def tell() -> None:
        typer.echo(str(card))
        where = options.test or f"{options.data}, on which it was rounded"
        # differences get as many digits as the measures
        cells = [[round(cell, 4) if isinstance(cell, float) else cell for cell in row] for row in loss.rows()]
        title = f"\nwhat rounding costs on {where} (95% interval of the difference):"
        out.print_table(loss.columns, cells, title)
        whole = getattr(card, "form", None)
        lines = f"lines for {len(set(card.features))} columns"
        about = f"features of {len(whole.features)}" if whole else lines
        out.print_written(output, f", {len(card.points)} {about}")

    return found, tell


def _write_card(card: Any, output: Path | None, sql: Any, loss: Any, test: Path | None) -> None:
    """Write a card in the format of the file's suffix."""
    suffix = "" if output is None else output.suffix.lower()
    if output is None:
        return
    if suffix == ".html":
        from apexrank.report.card import page

        write_bytes(output, page(card, loss=loss, measured_on=test).encode())
    elif suffix == ".onnx":
        apexrank.export.to_onnx(card, path=output)
    elif suffix == ".sql":
        _write_sql(card, output, sql)
    elif suffix == ".md":
        write_bytes(output, card.to_markdown().encode())
    else:
        out.write_frame(card.to_frame(), output)


def _read(
    ranker: io.TableRanker, options: CardOptions, path: Path | None, weight: str | None
) -> tuple[Any, Any]:
    """Read a table and its weights, if one is given."""
    from apexrank.io.columns import labelled_rows, row_weights

    if path is None:
        return None, None
    table, notes = options.read_table(path, index="index"), list[str]()
    if ranker.positive is not None and ranker.target in table.names:
        table, notes = labelled_rows(table, ranker.target)
    options.note(*notes, *ranker.check(table, known=[weight]))
    return table, None if weight is None else row_weights(table, weight)
