"""Record of the verdicts on the papers' claims, with the reason for each that differs.

``record.csv`` holds the verdicts of every experiment with its default options and usual data. A run with other
verdicts means that the code, a package or the processor gives another result. Our own questions are not recorded.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from apexrank_papers.result import FINDINGS, Result

NOTES = "notes-on-the-papers.md"  # in docs/
HARMLESS = {"n_jobs"}  # options that do not change a verdict


class Recorded(NamedTuple):
    """Word of a verdict and, if it differs, the reason in one sentence and the anchor in the notes."""

    word: str
    reason: str
    anchor: str

    def __str__(self) -> str:
        return f"{self.reason} ({NOTES}#{self.anchor})"


@cache
def recorded() -> dict[str, dict[str, Recorded]]:
    """Return the recorded verdicts by experiment and row.

    Examples
    --------
    >>> recorded()["table1"]["orig"].word
    'agrees'
    """
    found: dict[str, dict[str, Recorded]] = {}
    text = files("apexrank_papers").joinpath("record.csv").read_text(encoding="utf-8")
    for line in csv.DictReader(text.splitlines()):
        name, row = line.pop("experiment"), line.pop("row")
        found.setdefault(name, {})[row] = Recorded(**line)
    return found


def reason(name: str, row: str) -> str:
    """Return the reason why a row of an experiment differs, with a link to the notes, or "" if none is recorded.

    Examples
    --------
    >>> reason("consensus-brew", "BreW of one layer is PageRank").partition(" (")[2]
    'notes-on-the-papers.md#the-penalty-method)'
    """
    known = recorded().get(name, {}).get(row)
    return str(known) if known and known.reason else ""


def is_comparable(result: Result, options: Iterable[str]) -> bool:
    """Return whether a result with these ``options`` must have the recorded verdicts."""
    return result.usual_data and HARMLESS.issuperset(options)


def changes(name: str, verdicts: Iterable[Mapping[str, Any]]) -> list[str]:
    """List the paper verdicts of an experiment that differ from the recorded ones.

    Examples
    --------
    >>> changes("table1", [{"row": "orig", "word": "differs"}])[0]
    'orig: differs, recorded as agrees'
    """
    now = {verdict["row"]: verdict["word"] for verdict in verdicts if verdict["word"] in FINDINGS.values()}
    before = {row: known.word for row, known in recorded().get(name, {}).items()}
    words = {row: (now.get(row, "no verdict"), before.get(row, "no verdict")) for row in now | before}
    return [f"{row}: {new}, recorded as {old}" for row, (new, old) in words.items() if new != old]
