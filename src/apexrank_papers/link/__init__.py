"""Regression with an unknown link (Acharyya 2013, chapter 4)."""

from apexrank_papers.result import Experiment

EXPERIMENTS = (
    Experiment(
        "link-recovery",
        "Acharyya 2013, ch. 4: direction and link from y = g(Xu) + noise",
        "link.recovery:link_recovery",
    ),
    Experiment(
        "link-convergence",
        "Acharyya 2013, Tables 4.1 and 4.2: rates, and where GradMaPr leads",
        "link.convergence:link_convergence",
    ),
    Experiment(
        "link-order",
        "Acharyya 2013, sec. 4.4: alternating projections onto a perfect order",
        "link.order:link_order",
    ),
)
