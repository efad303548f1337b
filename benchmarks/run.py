"""Run benchmarks, each in a process of its own, and gather the figures of all in one JSON and one page of Markdown.

``python benchmarks/run.py`` runs all of them, ``--only NAME ...`` some, ``--gather`` none; ``--docs`` also takes the
figures over into ``docs/_data/benchmarks.json``, which the pages show. ``python -m benchmarks [NAME ...]`` is the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path("benchmarks", "results")  # below the root
DOCS = Path("docs", "_data", "benchmarks.json")
GATHERED = "benchmarks"  # .json and .md, beside the files of the benchmarks
NAMES = (
    "push_linear",
    "additive",
    "compare",
    "score_space",
    "growth",
    "solvers",
    "measures",
    "letor_reading",
    "retarget",
    "link",
    "graph",
    "attacks",
    "farms",
    "consensus",
    "aggregation",
    "kmeans",
    "boosting",
    "blocks",
    "big_graph",
    "dask_retarget",
    "big_ranks",
    "scaling",
    "peers",
)
PEERS = ("lightgbm", "xgboost", "networkx", "igraph", "pandas", "dask", "torch")
COMPARED = ("ratio", "exponent", "times mean and sort")  # columns that a limit speaks of
DIGITS = 3


def run_one(name: str, root: Path) -> dict[str, Any]:
    """Run the module ``benchmarks.NAME``: how long it took and, where it failed, its last words."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}"], cwd=root, stderr=subprocess.PIPE, text=True
    )
    print(done.stderr, end="", file=sys.stderr)
    entry = {
        "status": "failed" if done.returncode else "ran",
        "seconds": round(time.perf_counter() - start, 1),
    }
    if done.returncode:
        words = done.stderr.split("\n")
        entry["why"] = next((w.strip() for w in reversed(words) if w.strip()), f"exit code {done.returncode}")
    return entry


def gather(results: Path) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Figures of every benchmark that was ever run here, and why files that cannot be shown were left out."""
    found, left_out = {}, {}
    for path in sorted(results.glob("*.json")):
        if path.stem == GATHERED:
            continue
        try:
            found[path.stem] = figures(path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            left_out[path.stem] = (
                f"not the figures of a benchmark ({what}); run it again or remove {path.name}"
            )
    return found, left_out


def figures(path: Path) -> dict[str, Any]:
    """Day, machine and rows of one benchmark; raises an error when they could not be shown."""
    entry = json.loads(path.read_text(encoding="utf-8"))
    day = datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
    found = {"date": entry.get("date", day), "machine": entry["machine"], "rows": entry["rows"]}
    if not columns_of(found["rows"]):
        raise ValueError("no rows")
    table_lines(found)
    return found


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Columns of all rows, in the order in which they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row))


def summarised(runs: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """Everything that the one JSON holds."""
    from apexrank_papers.summary import PACKAGES, machine, versions

    found, left_out = gather(results)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "versions": versions((*PACKAGES, *PEERS)),
        "runs": dict(runs),
        "left out": left_out,
        "benchmarks": found,
    }


def write(summary: Mapping[str, Any], results: Path) -> None:
    """Write the one JSON and the page of Markdown."""
    results.mkdir(parents=True, exist_ok=True)
    write_json(results / f"{GATHERED}.json", summary)
    write_text(results / f"{GATHERED}.md", "\n".join(page_lines(summary)) + "\n")


def take_over(summary: Mapping[str, Any], path: Path) -> list[str]:
    """Put the figures, rounded, in the place of older ones; those that were measured elsewhere stay."""
    before = json.loads(path.read_text(encoding="utf-8"))["benchmarks"] if path.exists() else {}
    new = {
        name: found | {"rows": [{key: rounded(cell) for key, cell in row.items()} for row in found["rows"]]}
        for name, found in summary["benchmarks"].items()
    }
    kept = {key: summary[key] for key in ("date", "machine", "versions")}
    write_json(path, kept | {"benchmarks": dict(sorted((before | new).items()))})
    return list(new)


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    from apexrank.files import write_bytes

    write_bytes(path, text.encode())


def rounded(value: Any) -> Any:
    """A number to three digits, the rest is noise; anything else as it is."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def shown(value: Any) -> str:
    """A value as a cell of a table."""
    text = f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)
    return text.replace("|", r"\|")


def compared(row: Mapping[str, Any]) -> tuple[str, float] | None:
    """The column that the row's limit speaks of, and the limit, if it has one."""
    try:
        limit = float(row["limit"])
    except (KeyError, TypeError, ValueError):
        return None
    return next(((name, limit) for name in COMPARED if name in row), None)


def over_limit(row: Mapping[str, Any]) -> str | None:
    """The column whose number is above the row's limit, if there is one."""
    found = compared(row)
    return found[0] if found and float(row[found[0]]) > found[1] else None


def origin(found: Mapping[str, Any]) -> str:
    """One line: when, on what kind of machine, with which versions."""
    machine = found["machine"]
    versions = ", ".join(f"{name} {machine[name]}" for name in ("python", "numpy", "scikit-learn"))
    threads = "multiprocessors" if "torch" in machine else "threads"
    return f"{found['date']}; {machine['machine']}, {machine['threads']} {threads}; {versions}."


def table_lines(found: Mapping[str, Any]) -> list[str]:
    """A Markdown table of the rows, and a line that says where they come from."""
    columns = columns_of(found["rows"])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in found["rows"]:
        over = over_limit(row)
        texts = {name: shown(cell) for name, cell in row.items()}
        cells = [f"**{texts[name]}**" if name == over else texts.get(name, "") for name in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, "", f"*{origin(found)}*", ""]


def summary_lines(benchmarks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One table: how many rows of every benchmark have a limit and keep it; then those that are over it."""
    lines = ["| benchmark | day | rows | with a limit | over it |", "|---|---|---:|---:|---:|"]
    for name, found in benchmarks.items():
        rows = found["rows"]
        limited, over = (sum(map(bool, map(test, rows))) for test in (compared, over_limit))
        lines.append(f"| {name} | {found['date']} | {len(rows)} | {limited} | {over} |")
    return [*lines, "", *_rows_over_limit(benchmarks), ""]


def _rows_over_limit(benchmarks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, found in benchmarks.items():
        for row in found["rows"]:
            if column := over_limit(row):
                what = next(iter(row.values()))
                yield f"- {name}, {shown(what)}: {column} {shown(row[column])}, limit {shown(row['limit'])}."


def page_lines(summary: Mapping[str, Any]) -> list[str]:
    """The page: a summary, what failed or was left out, then the table of every benchmark."""
    from apexrank_papers.summary import origin as where

    failed = [f"- {name} failed: {run['why']}" for name, run in summary["runs"].items() if "why" in run]
    failed += [f"- {name} left out: {why}" for name, why in summary["left out"].items()]
    lines = ["# Benchmarks", "", where(summary), "", *summary_lines(summary["benchmarks"])[:-1], *failed]
    for name, found in summary["benchmarks"].items():
        lines += ["", f"## {name}", "", *table_lines(found)[:-1]]
    return lines


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run, gather and write; 1 when a benchmark failed."""
    parser = argparse.ArgumentParser(description="Run benchmarks and gather their figures.")
    parser.add_argument(
        "--only", nargs="+", choices=NAMES, metavar="NAME", help="some of " + ", ".join(NAMES)
    )
    parser.add_argument("--gather", action="store_true", help="run none, gather what was run before")
    parser.add_argument(
        "--docs", action="store_true", help=f"take the figures over into {DOCS.name} of the docs"
    )
    chosen = parser.parse_args(arguments)
    names = [] if chosen.gather else chosen.only or NAMES
    runs: dict[str, Any] = {}
    results = root / RESULTS
    for number, name in enumerate(names, start=1):
        print(f"[{number}/{len(names)}] {name}", file=sys.stderr, flush=True)
        runs[name] = run_one(name, root)
        write(summarised(runs, results), results)  # after each: a run that is interrupted keeps what it has
    summary = summarised(runs, results)
    write(summary, results)
    print(f"written: {RESULTS / GATHERED}.json and .md, {len(summary['benchmarks'])} benchmarks")
    if chosen.docs:
        print("taken over into the docs:", ", ".join(take_over(summary, root / DOCS)))
    failed = {name: run["why"] for name, run in runs.items() if "why" in run}
    for name, why in failed.items():
        print(f"{name} failed: {why}", file=sys.stderr)
    for name, why in summary["left out"].items():
        print(f"{name} left out: {why}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
