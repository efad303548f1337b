"""HTML page of a study of ranks under attack: a table of attacks and ranks, coloured by how far targets rise."""

from __future__ import annotations

from math import log

from apexrank.datasets.attacks import KINDS
from apexrank.graph.robustness import AttackResult, AttackStudy
from apexrank.report.page import render

_DARKEST = 45  # percent of colour behind a number, little enough that it is read easily


def page(study: AttackStudy, *, title: str | None = None) -> str:
    """HTML of a study."""
    attacks = study.attacks
    return render(
        "attack.html",
        study,
        title or study.title,
        names=[row.rank for row in study.agreement],
        columns=[f"#{row.rank}" for row in study.agreement],
        before=[study.of_rank(row.rank)[0].before for row in study.agreement],
        rows=[[each for each in study.results if each.attack == attack] for attack in attacks],
        about=[KINDS[attack.partition(":")[0]].about for attack in attacks],
        shade=_shade,
    )


def _shade(result: AttackResult) -> int:
    """Percent of colour: the share of the way to the first place that an attack wins, on a logarithmic scale.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> [_shade(SimpleNamespace(before=100, after=after)) for after in (1, 10, 100, 200)]
    [45, 22, 0, 0]
    """
    if result.after >= result.before:
        return 0
    return round(_DARKEST * log(result.before / result.after) / log(result.before))
