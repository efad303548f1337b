"""Tables of benchmarks from ``docs/_data/benchmarks/*.json``.

A page asks for one by ``{benchmark} NAME``. After ``make bench``, ``python docs/_ext/benchmark_tables.py`` takes over
the new figures, with the day of the run.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "_data" / "benchmarks"
RESULTS = Path(__file__).parent.parent.parent / "benchmarks" / "results"
COMPARED = ("ratio", "exponent", "times mean and sort")  # columns that a limit speaks of
DIGITS = 3


def rounded(value: Any) -> Any:
    """A number to three digits, the rest is noise; anything else as it is."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def take_over(results: Path = RESULTS, data: Path = DATA) -> list[str]:
    """Copy the results of benchmarks that were run here, rounded, and return their names."""
    data.mkdir(parents=True, exist_ok=True)
    paths = sorted(results.glob("*.json"))
    for path in paths:
        found = json.loads(path.read_text(encoding="utf-8"))
        found["rows"] = [{name: rounded(value) for name, value in row.items()} for row in found["rows"]]
        day = datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
        text = json.dumps({"date": day} | found, indent=1, ensure_ascii=False)
        (data / path.name).write_text(text + "\n", encoding="utf-8")
    return [path.stem for path in paths]


def shown(value: Any) -> str:
    """A value as a cell of a table."""
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)


def over_limit(row: dict[str, Any]) -> str | None:
    """The column whose number is above the row's limit, if there is one."""
    try:
        limit = float(row["limit"])
    except (KeyError, ValueError):
        return None
    return next((name for name in COMPARED if name in row and float(row[name]) > limit), None)


def origin(found: dict[str, Any]) -> str:
    """One line: when, on what kind of machine, with which versions."""
    machine = found["machine"]
    versions = ", ".join(f"{name} {machine[name]}" for name in ("python", "numpy", "scikit-learn"))
    threads = "multiprocessors" if "torch" in machine else "threads"
    return f"{found['date']}; {machine['machine']}, {machine['threads']} {threads}; {versions}."


def table_lines(found: dict[str, Any]) -> list[str]:
    """A Markdown table of the rows, and a line that says where they come from."""
    columns = list(found["rows"][0])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in found["rows"]:
        over = over_limit(row)
        cells = [f"**{shown(row[name])}**" if name == over else shown(row[name]) for name in columns]
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return [*lines, "", f"*{origin(found)}*", ""]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive ``benchmark``."""
    from docutils import nodes
    from docutils.statemachine import StringList
    from sphinx.util.docutils import SphinxDirective

    class Benchmark(SphinxDirective):
        """The table of one benchmark."""

        required_arguments = 1

        def run(self) -> list[nodes.Node]:
            path = DATA / f"{self.arguments[0]}.json"
            self.env.note_dependency(str(path))
            lines = table_lines(json.loads(path.read_text(encoding="utf-8")))
            box = nodes.container(classes=["benchmark"])
            self.state.nested_parse(StringList(lines, source=str(path)), self.content_offset, box)
            return [box]

    app.add_directive("benchmark", Benchmark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    print("taken over:", ", ".join(take_over()))
