"""``apexrank export``: a model file as an ONNX graph, as SQL, or as a scorecard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank.cli.output import note, print_json, print_table, refuse_overwriting, warnings_as_notes, working
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.export import Scorecard
    from apexrank.io import Table, TableRanker

_SUFFIXES = {".onnx": "onnx", ".sql": "sql", ".csv": "scorecard", ".parquet": "scorecard", ".md": "scorecard"}
_FORMATS = ("onnx", "sql", "scorecard")
_FORMAT_OF = {  # an option that the other formats would not look at
    "table": "sql",
    "dialect": "sql",
    "score": "sql",
    "id": "sql",
    "data": "scorecard",
    "test": "scorecard",
    "max_points": "scorecard",
    "weight": "scorecard",
}
_SQL, _CARD = "SQL", "Scorecard"


def export(
    model: Annotated[Path, typer.Argument(help="Model file, written by 'apexrank fit'.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write: .onnx, .sql, or .csv, .parquet or .md for a scorecard; SQL goes to the screen "
            "without it.",
        ),
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="onnx, sql or scorecard; by default that of the file's name.")
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="Write a whole SELECT that ranks this table, not just an expression.", rich_help_panel=_SQL
        ),
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(help="standard, sqlite, duckdb or postgresql.", rich_help_panel=_SQL),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(help="What the SELECT calls the score; 'score' by default.", rich_help_panel=_SQL),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            help="Column that the SELECT shows beside the score; by default the model's id, or all columns.",
            rich_help_panel=_SQL,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Table with the target to round on, such as that of training.", rich_help_panel=_CARD
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="Table with the target to measure the loss of rounding on.", rich_help_panel=_CARD),
    ] = None,
    max_points: Annotated[
        int | None,
        typer.Option(help="Most points of a feature; 10 by default.", min=1, rich_help_panel=_CARD),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(help="Column of row weights; that of training by default.", rich_help_panel=_CARD),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a model for use without Python: ONNX, SQL or a scorecard of whole points."""
    from apexrank.io import load_model

    kind = _format(output, format)
    sql = {"table": table, "dialect": dialect, "score": score, "id": id}
    card = {"data": data, "test": test, "max_points": max_points, "weight": weight}
    given: dict[str, Any] = sql | card
    _check(kind, output, given, model)
    ranker = load_model(model)
    report: dict[str, Any] = {"model": str(model), "format": kind, "output": output and str(output)}
    if kind == "scorecard":
        _export_card(ranker, report, output, card, json)
        return
    if kind == "onnx":
        from apexrank.export import to_onnx

        assert output is not None  # _check has seen to it
        graph = to_onnx(ranker, path=output).graph
        report["inputs"], report["outputs"] = (
            [one.name for one in ends] for ends in (graph.input, graph.output)
        )
        for one in graph.input:
            if one.name != one.doc_string:
                note(f"column {one.doc_string!r} is the input {one.name!r}: an output has its name")
        sentence = (
            f"written: {output}, inputs {_listed(report['inputs'])}, outputs {_listed(report['outputs'])}"
        )
    else:
        sentence = _export_sql(ranker, report, output, sql)
    if json:
        print_json(report)
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


def _check(kind: str, output: Path | None, given: dict[str, Any], model: Path) -> None:
    """Find bad options and an output that cannot be written before any work."""
    from apexrank.atomic import check_writable

    for option, value in given.items():
        if value is not None and _FORMAT_OF[option] != kind:
            raise InputError(
                f"--{option.replace('_', '-')} is for --format {_FORMAT_OF[option]}, not {kind}: leave it out"
            )
    if given["table"] is None:
        for option in ("score", "id"):
            if given[option] is not None:
                raise InputError(f"--{option} is for a whole SELECT: name the table with --table")
    if kind == "onnx" and output is None:
        raise InputError("an ONNX graph goes to a file: name it with -o model.onnx")
    if kind == "scorecard" and given["data"] is None:
        raise InputError("a scorecard is rounded on rows with the target: give them with --data train.csv")
    if output is None:
        return
    if kind == "scorecard" and _SUFFIXES.get(output.suffix.lower()) != kind:
        raise InputError(f"a scorecard cannot be written to {str(output)!r}: use .csv, .parquet or .md")
    inputs = [path for path in (model, given["data"], given["test"]) if path is not None]
    refuse_overwriting(check_writable(output), *inputs)


def _export_sql(
    ranker: TableRanker, report: dict[str, Any], output: Path | None, options: dict[str, Any]
) -> str:
    """Write the SQL, or give it back to be printed."""
    from apexrank.atomic import write_bytes
    from apexrank.export import to_sql

    table = options["table"]
    report["sql"] = to_sql(ranker, **{name: value for name, value in options.items() if value is not None})
    text = report["sql"] + ("\n" if table is None else ";\n")
    if output is None:
        return text
    write_bytes(output, text.encode())
    return f"written: {output}, {'an expression' if table is None else f'a SELECT of {table}'}"


def _export_card(
    ranker: TableRanker,
    report: dict[str, Any],
    output: Path | None,
    options: dict[str, Any],
    json: bool,
) -> None:
    from apexrank.export import round_scorecard

    data, test, weight = options["data"], options["test"], options["weight"] or ranker.weight
    rows, held_out = _read(ranker, data, weight), None if test is None else _read(ranker, test, weight)
    with working(f"rounding on {len(rows)} rows"), warnings_as_notes():
        card = round_scorecard(
            ranker, rows, max_points=options["max_points"] or 10, sample_weight=_weights(rows, weight)
        )
        loss = (
            card.loss() if held_out is None else card.loss(held_out, sample_weight=_weights(held_out, weight))
        )
    if output is not None:
        _write(card, output)
    if json:
        frame = card.to_frame().to_dicts()
        measured = str(data if test is None else test)
        objective = card.objective._asdict()
        print_json(
            report
            | {"points": frame, "objective": objective, "measured_on": measured, "loss": loss.to_dicts()}
        )
        return
    typer.echo(str(card))
    where = f"{data}, on which it was rounded" if test is None else str(test)
    print_table(
        loss.columns, loss.rows(), title=f"\nwhat rounding costs on {where} (95% interval of the difference):"
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
        note(sentence)
    return table


def _write(card: Scorecard, output: Path) -> None:
    from apexrank.atomic import write_bytes
    from apexrank.io import write_table

    if output.suffix.lower() == ".md":
        write_bytes(output, card.to_markdown().encode())
    else:
        write_table(card.to_frame(), output)


def _listed(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")
