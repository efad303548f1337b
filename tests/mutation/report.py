"""Printed and written reports: scores of modules and a list of survivors."""

from __future__ import annotations

import platform
from collections import Counter
from importlib.metadata import version
from math import sqrt
from pathlib import Path

from tests.mutation.mutants import Mutant, mutated_source, source_path

KILLED = ("killed", "crashed", "timed out")
OUTCOMES = (*KILLED, "survived", "not covered")


def scores(results: dict[Mutant, str], totals: dict[str, int]) -> list[dict]:
    """One row per module and one for all: numbers of mutants, of those tried, and of each outcome."""
    rows = [
        _row(module, totals[module], [o for m, o in results.items() if m.module == module])
        for module in totals
    ]
    return [row for row in rows if row["tried"]] + [_row("all", sum(totals.values()), list(results.values()))]


def _row(name: str, mutants: int, outcomes: list[str]) -> dict:
    counts = Counter(outcomes)
    tried = sum(counts[o] for o in OUTCOMES)  # mutants that are not valid Python do not count
    killed = sum(counts[o] for o in KILLED)
    low, high = wilson(killed, tried)
    ends = {outcome: counts[outcome] for outcome in OUTCOMES}
    return {
        "module": name,
        "mutants": mutants,
        "tried": tried,
        **ends,
        "score": killed / max(tried, 1),
        "low": low,
        "high": high,
    }


def wilson(killed: int, tried: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion."""
    if tried == 0:
        return 0.0, 1.0
    z, share = 1.959964, killed / tried
    middle = share + z**2 / (2 * tried)
    half = z * sqrt(share * (1 - share) / tried + (z / (2 * tried)) ** 2)
    return (middle - half) / (1 + z**2 / tried), (middle + half) / (1 + z**2 / tried)


def table(rows: list[dict]) -> str:
    """The rows as Markdown."""
    head = ["module", "mutants", "tried", *OUTCOMES, "score", "95 % interval"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for row in rows:
        cells = [row["module"], row["mutants"], row["tried"], *(row[o] for o in OUTCOMES)]
        share = f"{row['score']:.1%}", f"{row['low']:.1%} to {row['high']:.1%}"
        lines.append("| " + " | ".join(map(str, [*cells, *share])) + " |")
    return "\n".join(lines)


def survivors(root: Path, results: dict[Mutant, str]) -> str:
    """Markdown list of the mutants that no test detected, with the lines before and after."""
    alive = [m for m, outcome in results.items() if outcome not in KILLED and outcome in OUTCOMES]
    lines = []
    for mutant in sorted(alive, key=lambda m: (m.module, m.line, m.column, m.operator)):
        path = source_path(root, mutant.module)
        where = f"{path.relative_to(root).as_posix()}:{mutant.line}"
        note = " (no test runs it)" if results[mutant] == "not covered" else ""
        lines.append(f"- {where} column {mutant.column + 1}, {mutant.operator}{note}")
        old, new = path.read_text().splitlines(), mutated_source(root, mutant).splitlines()
        if len(old) != len(new):  # a decorator is gone
            lines.append(f"  - `{old[mutant.line - 1].strip()}` removed")
        else:
            before, after = next((a, b) for a, b in zip(old, new, strict=True) if a != b)
            lines += [f"  - `{before.strip()}`", f"  + `{after.strip()}`"]
    return "\n".join([f"# {len(alive)} mutants survived", "", *lines, ""])


def versions() -> dict[str, str]:
    """Hash of everything that determines the outcome."""
    names = ("cosmic-ray", "hypothesis", "numpy", "pytest", "scikit-learn", "scipy")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
