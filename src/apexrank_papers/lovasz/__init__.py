"""Lovász–Bregman divergences (Iyer and Bilmes 2013)."""

from apexrank_papers.result import Experiment

EXPERIMENTS = (
    Experiment(
        "lovasz-figure1",
        "Iyer and Bilmes 2013, Figure 1: the cut's divergence and Kendall's distance",
        "lovasz.kendall:figure1",
    ),
    Experiment(
        "lovasz-figure2",
        "Iyer and Bilmes 2013, Figure 2: sub-level sets of the extended divergence",
        "lovasz.levels:figure2",
    ),
    Experiment(
        "lovasz-figure3",
        "Iyer and Bilmes 2013, Figure 3: k-means with orders as centres",
        "lovasz.clusters:figure3",
    ),
    Experiment(
        "aggregate-letor",
        "Iyer and Bilmes 2013, sec. 4: merging 25 rankers' lists on MQ2008-agg, unsupervised and with learnt weights",
        "lovasz.aggregation:aggregate_letor",
    ),
)
