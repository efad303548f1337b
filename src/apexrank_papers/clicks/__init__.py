"""Unbiased learning to rank from simulated clicks on MQ2008, in the set-up of Joachims et al. (2017)."""

from apexrank_papers.result import Experiment

EXPERIMENTS = (
    Experiment(
        "clicks",
        "Position-biased clicks on MQ2008: how much of the gap to true labels a correction recovers",
        "clicks.study:recovered_gap",
    ),
)
