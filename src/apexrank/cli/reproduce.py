"""``apexrank reproduce``: run the tables and figures of the papers again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError, MissingExtraError


@dataclass(frozen=True)
class ReproduceOptions:
    """Parameters of the experiments."""

    n_splits: int | None = opt.plain("Number of random splits to average over.", min=1)
    data: Path | None = opt.plain(
        "Folder of five LETOR folds, for 'letor'; of WEBSPAM-UK, for 'linkfarm', 'spam-labels' and 'trust'; cnr-2000 "
        "or synthetic, for the first two of these; bitcoin-otc or epinions, for 'trust'; folder of tables or "
        "'packages', for 'additive-study'; of LETOR files, for 'letor-study'."
    )
    cells: Path | None = opt.plain(
        "File of the finished cells of 'additive-study' or 'letor-study', which resume from it; without --data they "
        "only summarise it."
    )
    paper: str | None = opt.plain(
        "Published results for 'letor' to print as well: mq2007, mq2008 or ohsumed."
    )
    n_jobs: int | None = opt.plain("Number of processes; -1 for all cores.")


@dataclass(frozen=True)
class RunOptions:
    """Experiments to run, and the folder of their files."""

    list_names: bool = opt.plain("List the available names.", "--list", default=False)
    out: Path | None = opt.plain("Folder for the table (CSV) and, if there is one, the figure (PNG).")
    resume: bool = opt.plain(
        "With 'all': keep the results that an earlier run left in the folder.", default=False
    )


@opt.option_groups
def reproduce(
    name: Annotated[str | None, opt.argument("Table or figure, such as table5, or 'all'.")] = None,
    *,
    which: RunOptions,
    options: ReproduceOptions,
    json: opt.Json = False,
) -> None:
    """Reproduce a table or figure of the papers; exit with code 1 if a verdict differs from the record.

    'all' runs all of them; the folder then also has reproduce.json and reproduce.md. With options other than
    --n-jobs an experiment is not compared with the record.
    """
    papers = _experiments()
    from apexrank_papers import record
    from apexrank_papers.batch import write_files

    names, folder, given = papers.names(), which.out, opt.given_options(options)
    if name is None or which.list_names:
        if json:
            out.print_json({"names": names})
            return
        width = max(map(len, names))
        for known in names:
            typer.echo(f"{known:{width}}  {papers.get(known).title}")
        return
    given |= {option: str(given[option]) for option in ("data", "cells") if option in given}
    if name == "all":
        _run_all(given, folder, which.resume, json)
        return
    if which.resume:
        raise InputError("--resume needs 'apexrank reproduce all': leave it out")
    title = papers.get(name).title
    _prepare([name], folder)
    with out.working(f"running {name}"):
        result = papers.run(name, **given)
    files = [] if folder is None else write_files(result, name, folder)
    verdicts = [verdict._asdict() for verdict in result.verdicts]
    changed = record.changes(name, verdicts) if record.is_comparable(result, given) else []
    if json:
        found = {"name": name, "verdicts": verdicts, "changed": changed, "table": result.table.to_dicts()}
        out.print_json(found | {"notes": result.notes, "files": files})
    else:
        typer.echo(title)
        out.print_table(result.view.columns, result.view.rows())
        for verdict in result.verdicts:
            known = record.reason(name, verdict.row) if verdict.word == "differs" else ""
            typer.echo(f"{verdict}. {known}" if known else str(verdict))
        for line in (*(f"note: {text}" for text in result.notes), *(f"changed: {row}" for row in changed)):
            typer.echo(line)
        if files:
            typer.echo("written: " + ", ".join(map(str, files)))
    if changed:
        raise typer.Exit(1)


def _experiments() -> ModuleType:
    """Import the papers' experiments, which are a distribution of their own."""
    try:
        import apexrank_papers
    except ModuleNotFoundError as error:
        missing = "the experiments are a package of their own: pip install ./papers in a checkout of apexrank"
        raise MissingExtraError(missing) from error
    return apexrank_papers


def _prepare(names: list[str], folder: Path | None, *others: str) -> None:
    """Check the files before any work, and select a backend that needs no display."""
    from apexrank_papers.batch import file_names

    if folder is not None:
        out.prepare_folder(folder, *others, *(file for name in names for file in file_names(name)))
    with suppress(MissingExtraError):
        out.draw_without_screen()


def _run_all(options: dict[str, Any], folder: Path | None, resume: bool, json: bool) -> None:
    import apexrank_papers as papers
    from apexrank_papers import summary
    from apexrank_papers.batch import SUMMARY, run_all

    if folder is None:
        raise InputError("'apexrank reproduce all' writes many files: name a folder for them with --out DIR")
    if only_one := sorted(set(options) - {"n_splits", "n_jobs"}):
        raise InputError(f"--{only_one[0]} applies to one experiment: name it instead of 'all'")
    _prepare(papers.names(), folder, *SUMMARY)
    found = run_all(folder, options, resume=resume, tell=lambda line: typer.echo(line, err=True))
    entries = found["experiments"]
    if json:
        out.print_json(found)
    else:
        rows = [(entry["name"], summary.counts(entry), f"{entry['seconds']:.1f}") for entry in entries]
        out.print_table(["experiment", "verdicts", "seconds"], rows)
        for title, reasons in (("", summary.differing(entries)), ("changed: ", summary.changed(entries))):
            for reason in reasons:
                typer.echo(title + reason.replace("`", ""))
        typer.echo(summary.totals(entries))
        written = ", ".join(str(folder / name) for name in SUMMARY)
        typer.echo(f"written: {written}, and each table and figure")
    if summary.changed(entries):
        raise typer.Exit(1)
