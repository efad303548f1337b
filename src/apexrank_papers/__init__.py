"""The papers' tables and figures, run again and set beside the printed numbers.

A folder for each paper or chapter, in whose ``__init__`` the experiments are listed: `push`, `retargeting`, `link`,
`graphs`, `consensus` and `lovasz`; `additive` and `clicks` are studies of ours. They share `result` (experiments and
verdicts), `splits` (means and their noise), `folds` (five-fold ranking data), `printed` (the papers' numbers),
`figure`, `summary` and `batch` (all of them).

Examples
--------
>>> import apexrank_papers as papers
>>> result = papers.run("table1")
>>> [verdict.word for verdict in result.verdicts]
['agrees', 'agrees', 'agrees']
"""

from __future__ import annotations

from typing import Any

from apexrank.errors import InputError, near_name
from apexrank_papers import additive, clicks, consensus, graphs, link, lovasz, push, retargeting
from apexrank_papers.result import Experiment, Result, Verdict

_PAPERS = (push, retargeting, link, graphs, consensus, lovasz, additive, clicks)
REGISTRY: dict[str, Experiment] = {e.name: e for paper in _PAPERS for e in paper.EXPERIMENTS}

__all__ = ["REGISTRY", "Experiment", "Result", "Verdict", "get", "names", "run"]


def names() -> list[str]:
    """Names of all experiments."""
    return list(REGISTRY)


def get(name: str) -> Experiment:
    """Experiment of that name."""
    if name not in REGISTRY:
        near = near_name(name, REGISTRY)
        hint = "" if near is None else f"did you mean {near!r}? "
        raise InputError(f"unknown experiment {name!r}: {hint}see apexrank reproduce --list")
    return REGISTRY[name]


def run(name: str, **options: Any) -> Result:
    """Run an experiment; ``get(name).options`` lists its options."""
    experiment = get(name)
    unknown = [option for option in options if option not in experiment.options]
    if unknown:
        known = ", ".join(experiment.options) or "none"
        raise InputError(f"{name} has no option {unknown[0]!r}: its options are {known}")
    return experiment.run(**options)
