"""Batch runs of experiments into one folder, with resumption after an interruption."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import apexrank_papers as papers
from apexrank.cli.output import json_text, note, save_figure, working
from apexrank.errors import InputError
from apexrank.files import write_bytes
from apexrank.io import write_table
from apexrank_papers import summary
from apexrank_papers.result import Result

SUMMARY = ("reproduce.json", "reproduce.md")


def file_names(name: str) -> tuple[str, str]:
    """Return the file names of the table and the figure of an experiment."""
    return f"{name}.csv", f"{name}.png"


def write_files(result: Result, name: str, folder: Path) -> list[Path]:
    """Write the table and, if there is one, the figure of an experiment."""
    table, picture = (folder / file for file in file_names(name))
    write_table(result.table, table)
    if result.figure is None:
        return [table]
    save_figure(result.figure, picture)
    return [table, picture]


def run_all(
    folder: Path, options: dict[str, Any], *, resume: bool, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Run every experiment; an error in one is recorded and does not stop the others.

    The summary is written after each experiment. ``resume`` keeps the experiments that an earlier run into the folder
    has finished, and ``tell`` receives a line about each experiment.
    """
    found: dict[str, Any] = {
        "date": summary.today(),
        "versions": summary.versions(),
        "machine": summary.machine(),
        "options": options,
        "experiments": [],
    }
    names = papers.names()
    kept = _finished_before(found, folder / SUMMARY[0]) if resume else {}
    entries = dict(kept)
    for number, name in enumerate(names, start=1):
        if name not in kept:
            entries[name] = _entry(name, options, folder, f"[{number}/{len(names)}] running {name}")
        found["experiments"] = [entries[known] for known in names if known in entries]
        for file, text in zip(SUMMARY, (json_text(found) + "\n", summary.markdown(found)), strict=True):
            write_bytes(folder / file, text.encode())
        took = "kept" if name in kept else f"{entries[name]['seconds']:.1f} s"
        tell(f"[{number}/{len(names)}] {name}: {summary.counts(entries[name])} ({took})")
    return found


def _finished_before(found: Mapping[str, Any], path: Path) -> dict[str, dict[str, Any]]:
    """Return the finished entries of an earlier run with the same versions and options whose files exist."""
    if not path.exists():
        return {}
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        # the number of processes changes no result
        one, other = ({**run["options"], "n_jobs": None} for run in (before, found))
        same = before["versions"] == found["versions"] and one == other
        entries = summary.earlier(before)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{str(path)!r} was not written by an earlier run: leave out --resume") from None
    if not same:
        note(f"{path} is from other versions or options: everything is run again")
        return {}
    there = {file.name for file in path.parent.iterdir() if file.is_file()}
    return {
        name: entry for name, entry in entries.items() if entry["files"] and there.issuperset(entry["files"])
    }


def _entry(name: str, options: Mapping[str, Any], folder: Path, message: str) -> dict[str, Any]:
    """Run one experiment with the options it accepts, and replace its files."""
    experiment = papers.get(name)
    given = {option: value for option, value in options.items() if option in experiment.options}
    start = time.perf_counter()
    try:
        for file in file_names(name):
            (folder / file).unlink(missing_ok=True)
        with working(message):
            result = papers.run(name, **given)
        files = write_files(result, name, folder)
    except Exception as error:
        return summary.stopped(experiment, time.perf_counter() - start, error)
    finally:
        if "matplotlib.pyplot" in sys.modules:  # pyplot would keep all figures
            sys.modules["matplotlib.pyplot"].close("all")
    took = time.perf_counter() - start
    return summary.finished(experiment, took, result, [file.name for file in files], given)
