"""What came of many experiments: one entry for each, where they ran, and a page of Markdown.

Everything here is made of dictionaries, lists, text and numbers, so that it goes through JSON and back unchanged.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import apexrank
from apexrank.errors import ApexrankError, MissingDataError, MissingExtraError
from apexrank.experiments.result import Experiment, Result

WORDS = ("differs", "within noise", "agrees")  # the first that a verdict has is the experiment's
BAD = ("failed", "differs")
UNFINISHED = ("failed", "skipped")
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "polars")


def finished(experiment: Experiment, seconds: float, result: Result, files: Sequence[str]) -> dict[str, Any]:
    """The entry of an experiment that came to its end.

    Examples
    --------
    >>> from apexrank import experiments
    >>> table1 = experiments.get("table1")
    >>> entry = finished(table1, 0.5, table1.run(), ["table1.csv"])
    >>> entry["status"], len(entry["verdicts"]), entry["table"][0]["ours"]
    ('agrees', 3, '33')
    """
    words = [verdict.word for verdict in result.verdicts]
    return {
        "name": experiment.name,
        "title": experiment.title,
        "status": next((word for word in WORDS if word in words), "no verdict"),
        "seconds": round(seconds, 2),
        "verdicts": [verdict._asdict() for verdict in result.verdicts],
        "notes": list(result.notes),
        "files": list(files),
        "table": result.table.to_dicts(),
    }


def stopped(experiment: Experiment, seconds: float, error: Exception) -> dict[str, Any]:
    """The entry of an experiment that raised an error: "skipped" when something it needs is not there.

    Examples
    --------
    >>> from apexrank import experiments
    >>> from apexrank.errors import MissingDataError
    >>> entry = stopped(experiments.get("mq2008"), 0.1, MissingDataError("MQ2008 is not there"))
    >>> entry["status"], entry["why"]
    ('skipped', 'MQ2008 is not there')
    """
    absent = isinstance(error, MissingDataError | MissingExtraError)
    what = str(error) if isinstance(error, ApexrankError) else f"{type(error).__name__}: {error}"
    return {
        "name": experiment.name,
        "title": experiment.title,
        "status": "skipped" if absent else "failed",
        "why": " ".join(what.split()),
        "seconds": round(seconds, 2),
        "verdicts": [],
    }


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Versions of apexrank, Python and those of the ``packages`` that are installed.

    Examples
    --------
    >>> list(versions())
    ['apexrank', 'python', 'numpy', 'scipy', 'scikit-learn', 'numba', 'polars']
    """
    found = {"apexrank": apexrank.__version__, "python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """What the machine is, without its name: system, processor, cores and memory.

    Examples
    --------
    >>> list(machine())
    ['system', 'processor', 'cores', 'memory (GiB)']
    """
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory (GiB)": _memory(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):  # Windows does not say
        return None


def counts(entry: Mapping[str, Any]) -> str:
    """How many verdicts of each word an entry has, or why it has none.

    Examples
    --------
    >>> counts({"status": "differs", "verdicts": [{"word": "agrees"}, {"word": "differs"}, {"word": "agrees"}]})
    '2 agree, 1 differs'
    >>> counts({"status": "skipped", "why": "no data", "verdicts": []})
    'skipped: no data'
    """
    if entry["status"] in UNFINISHED:
        return f"{entry['status']}: {entry['why']}"
    found = Counter(verdict["word"] for verdict in entry["verdicts"])
    plural = {"agrees": "agree", "differs": "differ"}
    parts = [
        f"{found[word]} {word if found[word] == 1 else plural.get(word, word)}" for word in reversed(WORDS)
    ]
    return ", ".join(part for part in parts if not part.startswith("0 ")) or "no verdict"


def totals(entries: Sequence[Mapping[str, Any]]) -> str:
    """One line: experiments and verdicts of each kind.

    Examples
    --------
    >>> totals([{"status": "agrees", "verdicts": [{"word": "agrees"}]}, {"status": "skipped", "verdicts": []}])
    '2 experiments: 1 agrees, 1 skipped; 1 verdict: 1 agrees'
    """
    kinds = Counter(entry["status"] for entry in entries)
    words = Counter(verdict["word"] for entry in entries for verdict in entry["verdicts"])
    number = sum(words.values())
    line = f"{len(entries)} experiment{'s' * (len(entries) != 1)}: {_listed(kinds)}"
    return line + (f"; {number} verdict{'s' * (number != 1)}: {_listed(words)}" if number else "")


def _listed(numbers: Counter[str]) -> str:
    order = ("agrees", "within noise", "differs", "no verdict", "failed", "skipped")
    return ", ".join(f"{numbers[word]} {word}" for word in order if numbers[word])


def markdown(summary: Mapping[str, Any]) -> str:
    """One table of all experiments, then what differs or failed, each with its reason.

    ``summary`` has ``date``, ``versions``, ``machine`` and ``experiments``, a list of entries.
    """
    entries = summary["experiments"]
    lines = ["# Tables and figures run again", "", f"{totals(entries)}.", "", origin(summary), ""]
    reasons = [f"- {reason}" for reason in differing(entries)] or ["Nothing differs."]
    return "\n".join([*lines, *experiment_table(entries), "", "## What differs", "", *reasons]) + "\n"


def origin(summary: Mapping[str, Any]) -> str:
    """One line: when, where and with which versions."""
    where = summary["machine"]
    memory = f", {where['memory (GiB)']:g} GiB" if where["memory (GiB)"] else ""
    used = ", ".join(f"{name} {number}" for name, number in summary["versions"].items())
    return f"{summary['date']}; {where['processor']}, {where['cores']} cores{memory}; {used}."


def experiment_table(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of the table of experiments in Markdown."""
    cells = [(f"`{e['name']}`", e["title"], counts(e), f"{e['seconds']:.1f}") for e in entries]
    return markdown_table(("experiment", "what", "verdicts", "seconds"), cells)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    r"""Lines of a table in Markdown; bars inside of cells stay bars.

    Examples
    --------
    >>> markdown_table(["norm"], [["|w|"]])
    ['| norm |', '|---|', '| \\\\|w\\\\| |']
    """
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]


def differing(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every verdict "differs" with its reason, and every experiment that failed.

    Examples
    --------
    >>> differing([{"name": "t", "status": "differs", "verdicts": [{"row": "a", "word": "differs", "why": "b"}]}])
    ['`t`: a: b']
    """
    return [f"`{entry['name']}`: {reason}" for entry in entries for reason in _reasons(entry)]


def _reasons(entry: Mapping[str, Any]) -> list[str]:
    if entry["status"] == "failed":
        return [counts(entry)]
    return [f"{v['row']}: {v['why']}" for v in entry["verdicts"] if v["word"] == "differs"]
