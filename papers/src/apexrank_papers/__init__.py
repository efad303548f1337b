"""Reproduction of the papers' tables and figures, next to the printed numbers.

`push`, `retargeting`, `link`, `graphs`, `consensus` and `lovasz` each cover one paper or chapter; `additive`, `clicks`
and `letor` are our own studies. They share `result` (experiments, verdicts, tables and figures), `splits` (repeated
measurements and their noise), `printed` (the papers' numbers), `record` (expected verdicts), `summary` and `batch`
(runs of all experiments).

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
from apexrank_papers.result import Experiment, Result, Verdict

__all__ = ["REGISTRY", "Experiment", "Result", "Verdict", "get", "names", "run"]

# Titles by module and name. An experiment's function has the same name with _ for - and is imported when it is run.
TITLES = {
    "push.illustrations": {
        "table1": "JMLR 2009, Table 1: a swap at the bottom and a swap at the top",
        "table2": "JMLR 2009, Table 2: reversal of polarity",
    },
    "push.tables": {
        "table3": "JMLR 2009, Table 3: MAGIC",
        "table4": "JMLR 2009, Table 4: ionosphere, the 126 bad returns as positives",
        "table4-good": "JMLR 2009, Table 4 with the good returns as positives, as its text says",
        "table5": "JMLR 2009, Table 5: housing",
    },
    "push.roc": {
        "figure5-magic": "JMLR 2009, Figure 5: MAGIC",
        "figure6-ionosphere": "JMLR 2009, Figure 6: ionosphere",
        "figure7-housing": "JMLR 2009, Figure 7: housing",
        "colt-figure2-pima-threshold": "COLT 2006, Figure 2: pima, threshold features",
        "colt-figure3-wdbc": "COLT 2006, Figure 3: wdbc, first six features",
        "colt-figure4-housing": "COLT 2006, Figure 4: housing",
        "colt-figure5-pima-50": "COLT 2006, Figure 5: pima, 50 training rows",
        "pima-real": "Talk: pima, real-valued features",
        "tic-tac-toe": "Talk: tic-tac-toe",
    },
    "push.figures": {
        "figure1": "JMLR 2009, Figure 1: contribution of each pair to R_p,exp",
        "figure3": "JMLR 2009, Figure 3: three discounts",
        "figure4": "JMLR 2009, Figure 4: contribution of each pair to the IR Push",
        "figure8": "JMLR 2009, Figure 8: the inequality of Lemma 7",
    },
    "push.one_dimension": {"one-dimension": "JMLR 2009, sec. 10.1: why a large p needs more data"},
    "push.tradeoffs": {
        "sample-size": "JMLR 2009, Theorems 2 and 3: negatives needed against p",
        "magic-tradeoff": "MAGIC: measures of the whole list and of its top against p",
    },
    "push.imbalance": {
        "class-imbalance": "COLT 2006, sec. 8: the effect of p by the share of positives, on MAGIC"
    },
    "push.boosting": {
        "adaboost-ranker": "Talk: AdaBoost with a constant is RankBoost",
        "capacity": "JMLR 2009, sec. 9.1: p matters for a model of small capacity",
    },
    "retargeting.tables": {
        "mq2008": "Acharyya 2013, Tables 3.3 and 3.5, Figures 3.6–3.8: listwise rankers on MQ2008",
        "letor": "Acharyya 2013, Tables 3.2–3.6, Figures 3.3–3.10, on a five-fold LETOR folder: --data DIR --paper "
        "mq2007|mq2008|ohsumed",
    },
    "retargeting.path": {
        "mr-path": "Acharyya 2013, Figure 3.1: 100 alternations of monotone retargeting on MQ2008"
    },
    "retargeting.boosting": {"boosted-letor": "Our objectives inside boosted trees on MQ2008"},
    "link.recovery": {"link-recovery": "Acharyya 2013, ch. 4: direction and link from y = g(Xu) + noise"},
    "link.convergence": {
        "link-convergence": "Acharyya 2013, Tables 4.1 and 4.2: convergence rates, and the limit of GradMaPr"
    },
    "link.order": {"link-order": "Acharyya 2013, sec. 4.4: alternating projections onto a perfect order"},
    "graphs.toys": {
        "toy-graphs": "Acharyya 2013, Figures 6.2 and 6.3: few good links, a link farm, and two pages that beat it"
    },
    "graphs.linkfarm": {
        "linkfarm": "Acharyya 2013, Figures 6.4–6.8: link farms planted in a web crawl, ranked without labels"
    },
    "graphs.spam_labels": {
        "spam-labels": "Acharyya 2013, Figures 6.4, 6.7 and 6.9–6.11: trust, distrust and one threshold for spam, "
        "from few labels"
    },
    "graphs.rank_dependent": {
        "rank-dependent-p": "Acharyya 2013, sec. 6.4.2: a power p that depends on the rank"
    },
    "graphs.trust": {"trust": "Prediction of distrust in bitcoin-otc and epinions by every rank"},
    "graphs.ratings": {
        "hidden-ratings": "Prediction of negative ratings in bitcoin-otc and epinions by ranks of signed graphs"
    },
    "consensus.study": {
        "consensus-study": "Acharyya 2013, ch. 5: consensus of noisy layers compared with the truth"
    },
    "consensus.stories": {
        "consensus-reviewers": "Acharyya 2013, ch. 5: three reviewers and Bob's own criterion",
        "consensus-networks": "Acharyya 2013, ch. 5: people in three networks",
        "consensus-brew": "Acharyya 2013, sec. 5.2: BreW of one layer is not PageRank",
    },
    "consensus.snapshots": {
        "consensus-snapshots": "Acharyya 2013, ch. 5: ranks from noisy daily snapshots of a graph"
    },
    "consensus.recency": {
        "consensus-recency": "Layers in time: prediction of the next ratings in bitcoin-otc from older layers"
    },
    "consensus.theorems": {
        "consensus-theorems": "Acharyya 2013, ch. 5: numerical checks of its propositions and Table 5.1"
    },
    "consensus.collusion": {
        "consensus-collusion": "Colluding layers: how far they raise a target with every consensus method"
    },
    "lovasz.kendall": {
        "lovasz-figure1": "Iyer and Bilmes 2013, Figure 1: the cut's divergence and Kendall's distance"
    },
    "lovasz.levels": {
        "lovasz-figure2": "Iyer and Bilmes 2013, Figure 2: sub-level sets of the extended divergence"
    },
    "lovasz.clusters": {"lovasz-figure3": "Iyer and Bilmes 2013, Figure 3: k-means with orders as centres"},
    "lovasz.aggregation": {
        "aggregate-letor": "Iyer and Bilmes 2013, sec. 4: merging 25 rankers' lists on MQ2008-agg, unsupervised and "
        "with learnt weights"
    },
    "additive.study": {
        "additive-study": "Additive rankers and boosted trees on 32 public tables, some hours: --data "
        "packages|DIR --cells FILE"
    },
    "clicks.study": {
        "clicks": "Position-biased clicks on MQ2008: how much of the gap to true labels a correction recovers"
    },
    "letor.study": {
        "letor-study": "LetorRanker, LambdaMART and other rankers on public queries, an hour: --data DIR "
        "--cells FILE"
    },
}
REGISTRY = {
    name: Experiment(name, title, f"{module}:{name.replace('-', '_')}")
    for module, titles in TITLES.items()
    for name, title in titles.items()
}


def names() -> list[str]:
    """Return the names of all experiments."""
    return list(REGISTRY)


def get(name: str) -> Experiment:
    """Return the experiment with the given name."""
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
