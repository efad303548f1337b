"""Unbiased learning to rank from simulated clicks on MQ2008, in the set-up of Joachims, Swaminathan and Schnabel (2017)."""

from apexrank_papers.result import Experiment

EXPERIMENTS = (
    Experiment(
        "clicks",
        "Position-biased clicks on MQ2008: the gap between naive training and true labels that unbiased training recovers",
        "clicks.study:recovered_gap",
    ),
)
