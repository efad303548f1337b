"""``apexrank reproduce``: run the tables and figures of the papers again."""

from __future__ import annotations

import json as json_module
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from apexrank_papers import Result

ALL = "all"
SUMMARY = ("reproduce.json", "reproduce.md")


@dataclass(frozen=True)
class ReproduceOptions:
    """Parameters of the experiments."""

    n_splits: int | None = opt.plain("Random splits to average over.", min=1)
    data: Path | None = opt.plain(
        "Folder of five LETOR folds, for 'letor'; bitcoin-otc or epinions, for 'trust'.", show_default=False
    )
    paper: str | None = opt.plain(
        "Whose printed numbers 'letor' sets beside: mq2007, mq2008 or ohsumed.", show_default=False
    )
    n_jobs: int | None = opt.plain("Processes to use, -1 for all cores.", show_default=False)


@dataclass(frozen=True)
class RunOptions:
    """What is run, and where its files go."""

    list_names: bool = opt.plain("List the names there are.", "--list", default=False)
    out: Path | None = opt.plain("Folder for the table as CSV and, where there is one, the figure as PNG.")
    resume: bool = opt.plain(
        "With 'all': keep what an earlier run into the folder has finished.", "--resume", default=False
    )


@opt.option_groups
def reproduce(
    name: Annotated[str | None, opt.argument("Table or figure, such as table5, or all of them: all.")] = None,
    *,
    which: RunOptions,
    options: ReproduceOptions,
    json: opt.Json = False,
) -> None:
    """Repeat a table or figure of the papers; leaves with code 1 when a row differs beyond noise.

    'all' runs every one of them; the folder then also has reproduce.json and reproduce.md.
    """
    import apexrank_papers as papers

    if name is None or which.list_names:
        _print_names({known: papers.get(known).title for known in papers.names()}, json)
        return
    given, folder = opt.given_options(options), which.out
    if "data" in given:
        given["data"] = str(given["data"])
    if name == ALL:
        _run_all(given, folder, resume=which.resume, json=json)
        return
    if which.resume:
        raise InputError("--resume belongs to 'apexrank reproduce all': leave it out")
    title = papers.get(name).title
    _prepare(name, folder)
    with out.working(f"running {name}"), out.warnings_as_notes():
        result = papers.run(name, **given)
    files = [] if folder is None else _write(result, name, folder)
    if json:
        out.print_json(_as_json(result, name, files))
    else:
        _print(result, title, files)
    if any(verdict.word == "differs" for verdict in result.verdicts):
        raise typer.Exit(1)


def _print_names(titles: dict[str, str], json: bool) -> None:
    if json:
        out.print_json({"names": list(titles)})
        return
    width = max(map(len, titles))
    for name, title in titles.items():
        typer.echo(f"{name:{width}}  {title}")


def _prepare(name: str, folder: Path | None) -> None:
    """Check the folder before any work, and select a backend that needs no display."""
    if folder is not None:
        out.prepare_folder(folder, *_file_names(name))
    with suppress(MissingExtraError):
        out.draw_without_screen()


def _file_names(name: str) -> tuple[str, str]:
    return f"{name}.csv", f"{name}.png"


def _write(result: Result, name: str, folder: Path) -> list[Path]:
    from apexrank.io import write_table

    table, picture = (folder / file for file in _file_names(name))
    write_table(result.table, table)
    if result.figure is None:
        return [table]
    out.save_figure(result.figure, picture)
    return [table, picture]


def _as_json(result: Result, name: str, files: list[Path]) -> dict[str, Any]:
    return {
        "name": name,
        "verdicts": [verdict._asdict() for verdict in result.verdicts],
        "table": result.table.to_dicts(),
        "notes": result.notes,
        "files": files,
    }


def _print(result: Result, title: str, files: list[Path]) -> None:
    typer.echo(title)
    out.print_table(result.view.columns, result.view.rows())
    for verdict in result.verdicts:
        typer.echo(str(verdict))
    for sentence in result.notes:
        typer.echo(f"note: {sentence}")
    if files:
        typer.echo("written: " + ", ".join(map(str, files)))


def _run_all(options: dict[str, Any], folder: Path | None, *, resume: bool, json: bool) -> None:
    """Run every experiment; an error in one is recorded and does not stop the others."""
    import apexrank_papers as papers
    from apexrank_papers import summary

    if folder is None:
        raise InputError("'apexrank reproduce all' writes many files: name a folder for them with --out DIR")
    if only_one := sorted(set(options) - {"n_splits", "n_jobs"}):
        raise InputError(f"--{only_one[0]} belongs to one experiment: name it instead of 'all'")
    names = papers.names()
    out.prepare_folder(folder, *SUMMARY)
    for name in names:
        _prepare(name, folder)
    found: dict[str, Any] = {
        "date": summary.today(),
        "versions": summary.versions(),
        "machine": summary.machine(),
        "options": options,
        "experiments": [],
    }
    kept = _finished_before(found, folder / SUMMARY[0]) if resume else {}
    entries = dict(kept)
    for number, name in enumerate(names, start=1):
        if name not in kept:
            entries[name] = _entry(name, options, folder)
        found["experiments"] = [entries[known] for known in names if known in entries]
        _save(found, folder)
        took = "kept" if name in kept else f"{entries[name]['seconds']:.1f} s"
        typer.echo(f"[{number}/{len(names)}] {name}: {summary.counts(entries[name])} ({took})", err=True)
    if json:
        out.print_json(found)
    else:
        _print_all(found, folder)
    if any(entry["status"] in summary.BAD for entry in found["experiments"]):
        raise typer.Exit(1)


def _finished_before(found: Mapping[str, Any], path: Path) -> dict[str, dict[str, Any]]:
    """Return the finished entries of an earlier run with the same versions and options whose files exist."""
    from apexrank_papers.summary import earlier

    if not path.exists():
        return {}
    try:
        before = json_module.loads(path.read_text(encoding="utf-8"))
        # the number of processes changes no result
        one, other = ({**run["options"], "n_jobs": None} for run in (before, found))
        same = before["versions"] == found["versions"] and one == other
        entries = earlier(before)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{str(path)!r} is not the file of an earlier run: leave out --resume") from None
    if not same:
        out.note(f"{path} is of other versions or options: everything is run again")
        return {}
    there = {file.name for file in path.parent.iterdir() if file.is_file()}
    return {
        name: entry for name, entry in entries.items() if entry["files"] and there.issuperset(entry["files"])
    }


def _entry(name: str, options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Run one experiment with the options that it takes, and replace its files."""
    import apexrank_papers as papers
    from apexrank_papers import summary

    experiment = papers.get(name)
    given = {option: value for option, value in options.items() if option in experiment.options}
    start = time.perf_counter()
    try:
        for file in _file_names(name):
            (folder / file).unlink(missing_ok=True)
        with out.working(f"running {name}"), out.warnings_as_notes():
            result = papers.run(name, **given)
        files = _write(result, name, folder)
    except Exception as error:
        return summary.stopped(experiment, time.perf_counter() - start, error)
    finally:
        if "matplotlib.pyplot" in sys.modules:  # which keeps all figures otherwise
            sys.modules["matplotlib.pyplot"].close("all")
    return summary.finished(experiment, time.perf_counter() - start, result, [file.name for file in files])


def _save(found: Mapping[str, Any], folder: Path) -> None:
    """Write both summaries atomically, so that an interrupted run can be resumed."""
    from apexrank.atomic import write_bytes
    from apexrank_papers.summary import markdown

    for name, text in zip(SUMMARY, (out.json_text(found) + "\n", markdown(found)), strict=True):
        write_bytes(folder / name, text.encode())


def _print_all(found: Mapping[str, Any], folder: Path) -> None:
    from apexrank_papers import summary

    entries = found["experiments"]
    rows = [(entry["name"], summary.counts(entry), f"{entry['seconds']:.1f}") for entry in entries]
    out.print_table(["experiment", "verdicts", "seconds"], rows)
    for reason in summary.differing(entries):
        typer.echo(reason.replace("`", ""))
    typer.echo(summary.totals(entries))
    typer.echo(
        "written: " + ", ".join(str(folder / name) for name in SUMMARY) + ", and each table and figure"
    )
