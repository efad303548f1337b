"""Consensus on uncertain graphs (Acharyya 2013, chapter 5)."""

from apexrank_papers.result import Experiment

EXPERIMENTS = (
    Experiment(
        "consensus-study",
        "Acharyya 2013, ch. 5: consensus of noisy layers beside the truth",
        "consensus.study:consensus_study",
    ),
    Experiment(
        "consensus-reviewers",
        "Acharyya 2013, ch. 5: three reviewers and Bob's own criterion",
        "consensus.stories:reviewers",
    ),
    Experiment(
        "consensus-networks", "Acharyya 2013, ch. 5: people in three networks", "consensus.stories:networks"
    ),
    Experiment(
        "consensus-brew",
        "Acharyya 2013, sec. 5.2: BreW of one layer is not PageRank",
        "consensus.stories:brew_is_not_pagerank",
    ),
    Experiment(
        "consensus-snapshots",
        "Acharyya 2013, ch. 5: ranks of a graph seen badly every day",
        "consensus.snapshots:snapshots",
    ),
    Experiment(
        "consensus-recency",
        "Layers in time: who is rated next in bitcoin-otc, by older layers and the last",
        "consensus.recency:recency",
    ),
)
