"""``apexrank export``: a model file as an ONNX graph, as SQL, or as a scorecard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.io import Table, TableRanker

_SUFFIXES = {".onnx": "onnx", ".sql": "sql", ".csv": "scorecard", ".parquet": "scorecard", ".md": "scorecard"}
_FORMATS = ("onnx", "sql", "scorecard")
_sql, _card = opt.panel("SQL"), opt.panel("Scorecard")


@dataclass(frozen=True)
class ExportOptions:
    """The file to write, and its format."""

    output: Path | None = opt.plain(
        "File to write: .onnx, .sql, or .csv, .parquet or .md for a scorecard; SQL goes to the screen without it.",
        "--output",
        "-o",
    )
    format: str | None = opt.plain("onnx, sql or scorecard; by default that of the file's name.")


@dataclass(frozen=True)
class SqlOptions:
    """Options of ``--format sql``."""

    table: str | None = _sql("Write a whole SELECT that ranks this table, not just an expression.")
    dialect: str | None = _sql("standard, sqlite, duckdb or postgresql.")
    score: str | None = _sql("What the SELECT calls the score; 'score' by default.")
    id: str | None = _sql(
        "Column that the SELECT shows beside the score; by default the model's id, or all columns."
    )


@dataclass(frozen=True)
class CardOptions:
    """Options of ``--format scorecard``."""

    data: Path | None = _card("Table with the target to round on, such as that of training.")
    test: Path | None = _card("Table with the target to measure the loss of rounding on.")
    max_points: int | None = _card("Most points of a feature; 10 by default.", min=1)
    weight: str | None = _card("Column of row weights; that of training by default.")


@opt.option_groups
def export(
    model: opt.ModelFile,
    *,
    target: ExportOptions,
    sql: SqlOptions,
    card: CardOptions,
    json: opt.Json = False,
) -> None:
    """Write a model for use without Python: ONNX, SQL or a scorecard of whole points."""
    from apexrank.io import load_model

    output, kind = target.output, _format(target.output, target.format)
    _check(kind, output, sql, card, model)
    ranker = load_model(model)
    report: dict[str, Any] = {"model": model, "format": kind, "output": output}
    if kind == "scorecard":
        _export_card(ranker, report, output, card, json)
        return
    if kind == "onnx":
        assert output is not None  # _check has seen to it
        sentence = _export_onnx(ranker, report, output)
    else:
        sentence = _export_sql(ranker, report, output, sql)
    if json:
        out.print_json(report)
    else:
        typer.echo(sentence, nl=not sentence.endswith("\n"))


def _format(output: Path | None, format: str | None) -> str:
    if format is not None:
        if format not in _FORMATS:
            raise InputError(f"unknown format {format!r}: use one of {', '.join(_FORMATS)}")
        return format
    if output is None:
        return "sql"
    suffix = output.suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(
            f"cannot tell the format of {str(output)!r} by its name: use one of {', '.join(_SUFFIXES)}, or --format"
        )
    return _SUFFIXES[suffix]


def _check(kind: str, output: Path | None, sql: SqlOptions, card: CardOptions, model: Path) -> None:
    """Refuse options of other formats, and an output that cannot be written, before any work."""
    for owner, group in (("sql", sql), ("scorecard", card)):
        for option in opt.given_options(group):
            if owner != kind:
                raise InputError(f"{opt.flag(option)} is for --format {owner}, not {kind}: leave it out")
    if sql.table is None:
        for option in {"score", "id"} & opt.given_options(sql).keys():
            raise InputError(f"--{option} is for a whole SELECT: name the table with --table")
    if kind == "onnx" and output is None:
        raise InputError("an ONNX graph goes to a file: name it with -o model.onnx")
    if kind == "scorecard" and card.data is None:
        raise InputError("a scorecard is rounded on rows with the target: give them with --data train.csv")
    if output is not None and kind == "scorecard" and _SUFFIXES.get(output.suffix.lower()) != kind:
        raise InputError(f"a scorecard cannot be written to {str(output)!r}: use .csv, .parquet or .md")
    out.check_file(output, model, card.data, card.test)


def _export_onnx(ranker: TableRanker, report: dict[str, Any], output: Path) -> str:
    from apexrank.export import to_onnx

    graph = to_onnx(ranker, path=output).graph
    report["inputs"], report["outputs"] = ([one.name for one in ends] for ends in (graph.input, graph.output))
    for one in graph.input:
        if one.name != one.doc_string:
            out.note(f"column {one.doc_string!r} is the input {one.name!r}: an output has its name")
    return f"written: {output}, inputs {_listed(report['inputs'])}, outputs {_listed(report['outputs'])}"


def _export_sql(ranker: TableRanker, report: dict[str, Any], output: Path | None, options: SqlOptions) -> str:
    """Write the SQL, or return it to be printed."""
    from apexrank.atomic import write_bytes
    from apexrank.export import to_sql

    report["sql"] = to_sql(ranker, **opt.given_options(options))
    text = report["sql"] + ("\n" if options.table is None else ";\n")
    if output is None:
        return text
    write_bytes(output, text.encode())
    return (
        f"written: {output}, {'an expression' if options.table is None else f'a SELECT of {options.table}'}"
    )


def _export_card(
    ranker: TableRanker, report: dict[str, Any], output: Path | None, options: CardOptions, json: bool
) -> None:
    from apexrank.atomic import write_bytes
    from apexrank.export import round_scorecard
    from apexrank.io import write_table

    data, test, weight = options.data, options.test, options.weight or ranker.weight
    assert data is not None  # _check has seen to it
    rows, held_out = _read(ranker, data, weight), None if test is None else _read(ranker, test, weight)
    most = options.max_points or 10
    with out.working(f"rounding on {len(rows)} rows"), out.warnings_as_notes():
        card = round_scorecard(ranker, rows, max_points=most, sample_weight=_weights(rows, weight))
        loss = (
            card.loss() if held_out is None else card.loss(held_out, sample_weight=_weights(held_out, weight))
        )
    if output is not None and output.suffix.lower() == ".md":
        write_bytes(output, card.to_markdown().encode())
    elif output is not None:
        write_table(card.to_frame(), output)
    if json:
        found = {
            "points": card.to_frame().to_dicts(),
            "objective": card.objective._asdict(),
            "measured_on": data if test is None else test,
            "loss": loss.to_dicts(),
        }
        out.print_json(report | found)
        return
    typer.echo(str(card))
    where = f"{data}, on which it was rounded" if test is None else str(test)
    # differences are no finer than the measures they are of
    cells = [[round(cell, 4) if isinstance(cell, float) else cell for cell in row] for row in loss.rows()]
    out.print_table(
        loss.columns, cells, title=f"\nwhat rounding costs on {where} (95% interval of the difference):"
    )
    if output is not None:
        typer.echo(f"written: {output}, {len(card.points)} features of {len(card.form.features)}")


def _weights(table: Table, name: str | None) -> Any:
    from apexrank.io.columns import row_weights

    return None if name is None else row_weights(table, name)


def _read(ranker: TableRanker, path: Path, weight: str | None) -> Table:
    from apexrank.io import read_table

    table = read_table(path)
    for sentence in ranker.check(table, known=[weight]):
        out.note(sentence)
    return table


def _listed(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")
