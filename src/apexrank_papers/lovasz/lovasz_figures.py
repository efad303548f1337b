"""The three figures of Iyer and Bilmes 2013; the first two have no chance in them, the third draws its points."""

from __future__ import annotations

from apexrank_papers.lovasz.lovasz_clusters import figure3
from apexrank_papers.lovasz.lovasz_kendall import figure1
from apexrank_papers.lovasz.lovasz_levels import figure2
from apexrank_papers.result import Experiment

EXPERIMENTS = (
    Experiment(
        "lovasz-figure1",
        "Iyer and Bilmes 2013, Figure 1: the cut's divergence and Kendall's distance",
        figure1,
    ),
    Experiment(
        "lovasz-figure2", "Iyer and Bilmes 2013, Figure 2: sub-level sets of the extended divergence", figure2
    ),
    Experiment("lovasz-figure3", "Iyer and Bilmes 2013, Figure 3: k-means with orders as centres", figure3),
)
