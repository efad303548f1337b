"""Learning to rank beside LambdaMART and its peers; a study of ours, with no paper behind it."""

from apexrank_papers.result import Experiment

EXPERIMENTS = (
    Experiment(
        "letor-study",
        "LetorRanker beside LambdaMART and other rankers on public queries, an hour: --data DIR --cells FILE",
        "letor.study:letor_study",
    ),
)
