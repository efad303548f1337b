"""Additive rankers beside boosted trees on public tables; a study of ours, with no paper behind it."""

from apexrank_papers.result import Experiment

EXPERIMENTS = (
    Experiment(
        "additive-study",
        "Additive rankers beside boosted trees on 32 public tables, some hours: --data packages|DIR --cells FILE",
        "additive.study:additive_study",
    ),
)
