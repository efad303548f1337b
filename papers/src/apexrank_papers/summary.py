"""Summary of many experiments: one entry per experiment, the machine, and a Markdown page.

All data are dictionaries, lists, text and numbers, which JSON stores without loss.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import apexrank
from apexrank.errors import ApexrankError, MissingExtraError
from apexrank_papers import record
from apexrank_papers.data.sources import MissingDataError
from apexrank_papers.result import Experiment, Result, Verdict

WORDS = ("differs", "within noise", "agrees")  # an experiment gets the first that one of its verdicts has
ANSWERED, NO_VERDICT = "answered", "no verdict"  # our own questions only, or no rows at all
ORDER = ("agrees", "within noise", "differs", "yes", "cannot tell", "no")
UNFINISHED = ("failed", "skipped")
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "polars")


def finished(
    experiment: Experiment,
    seconds: float,
    result: Result,
    files: Sequence[str],
    options: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the entry of a finished experiment that was given these ``options``.

    Examples
    --------
    >>> import apexrank_papers as papers
    >>> table1 = papers.get("table1")
    >>> entry = finished(table1, 0.5, table1.run(), ["table1.csv"])
    >>> entry["status"], len(entry["verdicts"]), entry["table"][0]["ours"]
    ('agrees', 3, '33')
    """
    words = [verdict.word for verdict in result.verdicts]
    return {
        "name": experiment.name,
        "title": experiment.title,
        "status": next((word for word in WORDS if word in words), ANSWERED if words else NO_VERDICT),
        **_ran(seconds),
        "verdicts": [verdict._asdict() for verdict in result.verdicts],
        "comparable": record.is_comparable(result, options),
        "notes": list(result.notes),
        "files": list(files),
        "table": result.table.to_dicts(),
    }


def stopped(experiment: Experiment, seconds: float, error: Exception) -> dict[str, Any]:
    """Return the entry of an experiment that raised an error, "skipped" if something it needs is missing.

    Examples
    --------
    >>> import apexrank_papers as papers
    >>> from apexrank_papers.data.sources import MissingDataError
    >>> entry = stopped(papers.get("mq2008"), 0.1, MissingDataError("MQ2008 is missing"))
    >>> entry["status"], entry["why"]
    ('skipped', 'MQ2008 is missing')
    """
    absent = isinstance(error, MissingDataError | MissingExtraError)
    what = str(error) if isinstance(error, ApexrankError) else f"{type(error).__name__}: {error}"
    return {
        "name": experiment.name,
        "title": experiment.title,
        "status": "skipped" if absent else "failed",
        "why": " ".join(what.split()),
        **_ran(seconds),
        "verdicts": [],
    }


def _ran(seconds: float) -> dict[str, Any]:
    """Return date, machine and duration per entry, because a run may be resumed on another day and machine."""
    return {"seconds": round(seconds, 2), "date": today(), "machine": machine()}


def earlier(summary: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the finished entries of an earlier run by name; old formats get the date and machine of their file.

    All fields of an entry that are used later are checked here. A missing field or one of another type raises
    ``KeyError``, ``TypeError``, ``ValueError`` or ``AttributeError``.

    Examples
    --------
    >>> import apexrank_papers as papers
    >>> entry = stopped(papers.get("table1"), 0.1, MemoryError("1 PiB"))
    >>> earlier({"date": today(), "machine": machine(), "experiments": [entry]})
    {}
    """
    whole = {key: summary[key] for key in ("date", "machine")}
    entries = [whole | entry for entry in summary["experiments"]]
    done = {entry["name"]: entry for entry in entries if entry["status"] not in UNFINISHED}
    for entry in done.values():
        _check(entry)
    return done


def _check(entry: Mapping[str, Any]) -> None:
    texts = [entry[key] for key in ("name", "title", "date")] + list(entry["files"])
    texts += [part for verdict in entry["verdicts"] for part in Verdict(**verdict)]
    if not all(isinstance(text, str) for text in texts) or entry["status"] not in (
        *WORDS,
        ANSWERED,
        NO_VERDICT,
    ):
        raise TypeError("not an entry")
    _described(entry["machine"])
    changed([entry])
    experiment_table([entry])


def today() -> str:
    """Return today's date in UTC in ISO format.

    Examples
    --------
    >>> len(today())
    10
    """
    return datetime.now(UTC).date().isoformat()


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return the versions of apexrank, Python and the installed ones of ``packages``.

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
    """Describe the machine without its name: system, processor, cores and memory.

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
    except (AttributeError, OSError, ValueError):  # not available on Windows
        return None


def counts(entry: Mapping[str, Any]) -> str:
    """Count the verdicts of each kind in an entry, or give the reason why it has none.

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
    parts = [f"{found[word]} {word if found[word] == 1 else plural.get(word, word)}" for word in ORDER]
    return ", ".join(part for part in parts if not part.startswith("0 ")) or NO_VERDICT


def totals(entries: Sequence[Mapping[str, Any]]) -> str:
    """Count experiments, verdicts on the papers' claims, and answers to our own questions in one line.

    Examples
    --------
    >>> totals([{"status": "agrees", "verdicts": [{"word": "agrees"}]}, {"status": "skipped", "verdicts": []}])
    '2 experiments: 1 agrees, 1 skipped; 1 verdict: 1 agrees'
    """
    words = Counter(verdict["word"] for entry in entries for verdict in entry["verdicts"])
    parts = (
        ("experiment", Counter(entry["status"] for entry in entries)),
        ("verdict", Counter({word: words[word] for word in ORDER[:3]})),
        ("question", Counter({word: words[word] for word in ORDER[3:]})),
    )
    numbers = [(name, counter.total(), counter) for name, counter in parts]
    return "; ".join(f"{n} {name}{'s' * (n != 1)}: {_listed(counter)}" for name, n, counter in numbers if n)


def _listed(numbers: Counter[str]) -> str:
    order = (*ORDER, ANSWERED, NO_VERDICT, "failed", "skipped")
    return ", ".join(f"{numbers[word]} {word}" for word in order if numbers[word])


def markdown(summary: Mapping[str, Any]) -> str:
    """Format a table of all experiments, then those that failed, changed or differ, each with its reason.

    ``summary`` has the keys ``date``, ``versions``, ``machine`` and ``experiments`` (a list of entries).
    """
    entries = summary["experiments"]
    lines = ["# Reproduced tables and figures", "", f"{totals(entries)}.", "", origin(summary), ""]
    lines += experiment_table(entries)
    for title, reasons in (
        ("Failed or changed", changed(entries)),
        ("Claims that differ", differing(entries)),
    ):
        lines += ["", f"## {title}", "", *([f"- {reason}" for reason in reasons] or ["None."])]
    return "\n".join(lines) + "\n"


def origin(summary: Mapping[str, Any]) -> str:
    """Describe date, machine and versions in one line; for experiments on several days, the last and first date.

    Examples
    --------
    >>> here = {"processor": "Abacus", "cores": 10, "memory (GiB)": None}
    >>> entries = [{"date": "2026-01-01", "machine": here}, {"date": "2026-01-03", "machine": here}]
    >>> origin({"date": "2026-01-04", "machine": here, "versions": {"numpy": "2.1"}, "experiments": entries})
    '2026-01-03, from 2026-01-01; Abacus, 10 cores; numpy 2.1.'
    """
    whole = {key: summary[key] for key in ("date", "machine")}
    runs = [whole | entry for entry in summary.get("experiments", [])] or [whole]
    runs.sort(key=lambda run: run["date"], reverse=True)
    first, last = runs[-1]["date"], runs[0]["date"]
    when = last if first == last else f"{last}, from {first}"
    where = "; ".join(dict.fromkeys(_described(run["machine"]) for run in runs))
    used = ", ".join(f"{name} {number}" for name, number in summary["versions"].items())
    return f"{when}; {where}; {used}."


def _described(machine: Mapping[str, Any]) -> str:
    memory = f", {machine['memory (GiB)']:g} GiB" if machine["memory (GiB)"] else ""
    return f"{machine['processor']}, {machine['cores']} cores{memory}"


def experiment_table(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Format the table of experiments as lines of Markdown."""
    cells = [(f"`{e['name']}`", e["title"], counts(e), f"{e['seconds']:.1f}") for e in entries]
    return markdown_table(("experiment", "what", "verdicts", "seconds"), cells)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    r"""Format a table as lines of Markdown, with bars inside cells escaped.

    Examples
    --------
    >>> markdown_table(["norm"], [["|w|"]])
    ['| norm |', '|---|', '| \\|w\\| |']
    """
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]


def differing(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """List every verdict "differs" with the observation and the recorded reason.

    Examples
    --------
    >>> differing([{"name": "t", "status": "differs", "verdicts": [{"row": "a", "word": "differs", "why": "b"}]}])
    ['`t`: a: b. Not explained.']
    """
    return [
        f"`{entry['name']}`: {v['row']}: {v['why']}. {record.reason(entry['name'], v['row']) or 'Not explained.'}"
        for entry in entries
        for v in entry["verdicts"]
        if v["word"] == "differs"
    ]


def changed(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """List every failed experiment and every paper verdict that differs from the record.

    Examples
    --------
    >>> entry = {"name": "t", "status": "agrees", "verdicts": [{"row": "a", "word": "agrees"}], "comparable": True}
    >>> changed([entry])
    ['`t`: a: agrees, recorded as no verdict']
    """
    return [
        f"`{entry['name']}`: {reason}"
        for entry in entries
        for reason in (
            [counts(entry)]
            if entry["status"] == "failed"
            else record.changes(entry["name"], entry["verdicts"])
            if entry.get("comparable")
            else []
        )
    ]
