"""The papers' data sets, threshold features, and a made-up set on which a push visibly helps."""

from apexrank.datasets.letor import Fold, letor_folds, make_letor_example, read_letor, write_letor
from apexrank.datasets.synthetic import make_push_example
from apexrank.datasets.thresholds import ThresholdFeatures, threshold_features
from apexrank.datasets.uci import (
    load_housing,
    load_ionosphere,
    load_magic,
    load_pima,
    load_tic_tac_toe,
    load_wdbc,
)

__all__ = [
    "Fold",
    "ThresholdFeatures",
    "letor_folds",
    "load_housing",
    "load_ionosphere",
    "load_magic",
    "load_pima",
    "load_tic_tac_toe",
    "load_wdbc",
    "make_letor_example",
    "make_push_example",
    "read_letor",
    "threshold_features",
    "write_letor",
]
