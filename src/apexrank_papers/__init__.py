"""The papers' tables and figures, run again and set beside the printed numbers.

Examples
--------
>>> import apexrank_papers as experiments
>>> result = experiments.run("table1")
>>> [verdict.word for verdict in result.verdicts]
['agrees', 'agrees', 'agrees']
"""

from __future__ import annotations

import difflib
from typing import Any

from apexrank.errors import InputError
from apexrank_papers.consensus import consensus_snapshots, consensus_stories, consensus_study
from apexrank_papers.graphs import graph_toys, linkfarm, spam_labels, trust
from apexrank_papers.link import link_convergence, link_order, link_recovery
from apexrank_papers.lovasz import aggregation_letor, lovasz_figures
from apexrank_papers.push import (
    boosting,
    illustrations,
    one_dimension,
    p_tradeoffs,
    push_figures,
    push_tables,
    roc_panels,
)
from apexrank_papers.result import Experiment, Result, Verdict
from apexrank_papers.retargeting import boosted_letor, letor_tables

_MODULES = (
    illustrations,
    push_tables,
    roc_panels,
    push_figures,
    one_dimension,
    p_tradeoffs,
    boosting,
    letor_tables,
    boosted_letor,
    link_recovery,
    link_convergence,
    link_order,
    graph_toys,
    linkfarm,
    spam_labels,
    trust,
    consensus_study,
    consensus_stories,
    consensus_snapshots,
    lovasz_figures,
    aggregation_letor,
)

REGISTRY: dict[str, Experiment] = {e.name: e for module in _MODULES for e in module.EXPERIMENTS}

__all__ = ["REGISTRY", "Experiment", "Result", "Verdict", "get", "names", "run"]


def names() -> list[str]:
    """Names of all experiments."""
    return list(REGISTRY)


def get(name: str) -> Experiment:
    """Experiment of that name."""
    if name not in REGISTRY:
        close = difflib.get_close_matches(name, REGISTRY, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
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
