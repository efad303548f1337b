"""Monotone retargeting (Acharyya 2013, chapter 3)."""

from apexrank_papers.result import Experiment

EXPERIMENTS = (
    Experiment(
        "mq2008", "Acharyya 2013, Tables 3.3 and 3.5: listwise rankers on MQ2008", "retargeting.tables:mq2008"
    ),
    Experiment(
        "letor",
        "The same on a five-fold LETOR folder: --data DIR --paper mq2007|mq2008|ohsumed",
        "retargeting.tables:letor",
    ),
    Experiment(
        "boosted-letor",
        "Our objectives inside boosted trees on MQ2008: --library lightgbm|xgboost --n-folds N",
        "retargeting.boosting:boosted_mq2008",
    ),
)
