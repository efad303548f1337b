"""Graphs under attack (Acharyya 2013, chapter 6)."""

from apexrank_papers.result import Experiment

EXPERIMENTS = (
    Experiment(
        "toy-graphs",
        "Acharyya 2013, Figures 6.2 and 6.3: few good links, a link farm, and two pages that beat it",
        "graphs.toys:toy_graphs",
    ),
    Experiment(
        "linkfarm",
        "Acharyya 2013, Figures 6.4–6.8: link farms planted in a web crawl, ranked without labels",
        "graphs.linkfarm:linkfarm",
    ),
    Experiment(
        "spam-labels",
        "Acharyya 2013, Figures 6.4, 6.7 and 6.9–6.11: trust, distrust and one threshold for spam, from few labels",
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
