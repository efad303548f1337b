"""``apexrank reproduce``: the papers' tables and figures beside ours."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank.cli.output import print_json, print_table, warnings_as_notes, working
from apexrank.cli.pictures import prepare_folder, save_figure, use_files_only
from apexrank.errors import MissingExtraError

if TYPE_CHECKING:
    from apexrank.experiments import Result


def reproduce(
    name: Annotated[
        str | None, typer.Argument(help="Table or figure, such as table5.", show_default=False)
    ] = None,
    list_names: Annotated[bool, typer.Option("--list", help="List the names there are.")] = False,
    n_splits: Annotated[int | None, typer.Option(help="Random splits to average over.", min=1)] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of five LETOR folds, for 'letor'; bitcoin-otc or epinions, for 'trust'.",
            show_default=False,
        ),
    ] = None,
    paper: Annotated[
        str | None,
        typer.Option(
            help="Whose printed numbers 'letor' sets beside: mq2007, mq2008 or ohsumed.", show_default=False
        ),
    ] = None,
    n_jobs: Annotated[
        int | None, typer.Option(help="Processes to use, -1 for all cores.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the table as CSV and, where there is one, the figure as PNG."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Repeat a table or figure of the papers; leaves with code 1 when a row differs beyond noise."""
    from apexrank import experiments

    if name is None or list_names:
        _print_names({known: experiments.get(known).title for known in experiments.names()}, json)
        return
    title = experiments.get(name).title
    _prepare(name, out)
    given = {
        "n_splits": n_splits,
        "data": None if data is None else str(data),
        "paper": paper,
        "n_jobs": n_jobs,
    }
    options = {option: value for option, value in given.items() if value is not None}
    with working(f"running {name}"), warnings_as_notes():
        result = experiments.run(name, **options)
    files = [] if out is None else _write(result, name, out)
    if json:
        print_json(_as_json(result, name, files))
    else:
        _print(result, title, files)
    if any(verdict.word == "differs" for verdict in result.verdicts):
        raise typer.Exit(1)


def _print_names(titles: dict[str, str], json: bool) -> None:
    if json:
        print_json({"names": list(titles)})
        return
    width = max(map(len, titles))
    for name, title in titles.items():
        typer.echo(f"{name:{width}}  {title}")


def _prepare(name: str, out: Path | None) -> None:
    """Find a bad folder before the work, and draw without a screen where anything can be drawn."""
    if out is not None:
        prepare_folder(out, f"{name}.csv", f"{name}.png")
    with suppress(MissingExtraError):
        use_files_only()


def _write(result: Result, name: str, out: Path) -> list[Path]:
    from apexrank.io import write_table

    files = [out / f"{name}.csv"]
    write_table(result.table, files[0])
    if result.figure is not None:
        files.append(out / f"{name}.png")
        save_figure(result.figure, files[1])
    return files


def _as_json(result: Result, name: str, files: list[Path]) -> dict[str, Any]:
    return {
        "name": name,
        "verdicts": [verdict._asdict() for verdict in result.verdicts],
        "table": result.table.to_dicts(),
        "notes": result.notes,
        "files": list(map(str, files)),
    }


def _print(result: Result, title: str, files: list[Path]) -> None:
    typer.echo(title)
    print_table(result.view.columns, result.view.rows())
    for verdict in result.verdicts:
        typer.echo(str(verdict))
    for sentence in result.notes:
        typer.echo(f"note: {sentence}")
    if files:
        typer.echo("written: " + ", ".join(map(str, files)))
