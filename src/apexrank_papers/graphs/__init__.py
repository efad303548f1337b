"""Graphs under attack (Acharyya 2013, chapter 6)."""

from apexrank_papers.result import Experiment

EXPERIMENTS = (
    Experiment(
        "toy-graphs",
        "Acharyya 2013, Figures 6.2 and 6.3: few good links, and a link farm",
        "graphs.toys:toy_graphs",
    ),
    Experiment(
        "linkfarm",
        "Acharyya 2013, Figures 6.4–6.10: link farms planted in a web crawl",
        "graphs.linkfarm:linkfarm",
    ),
    Experiment(
        "spam-labels",
        "Acharyya 2013, Figure 6.11: one threshold for spam, with few labels",
        "graphs.spam_labels:spam_labels",
    ),
    Experiment(
        "trust", "Who receives distrust in bitcoin-otc and epinions, by every rank", "graphs.trust:trust"
    ),
    Experiment(
        "hidden-ratings",
        "Who will be rated below 0 in bitcoin-otc and epinions, by the ranks of signed graphs",
        "graphs.ratings:hidden_ratings",
    ),
)
