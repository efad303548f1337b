"""Our objectives and measures inside LightGBM and XGBoost: one object for each of their interfaces.

An objective here is a function of the scores, and boosted trees only ask for its slope and curvature in each row.
Neither package is imported here: their data are known by their methods.
"""

from apexrank.models.boosting.base import BoosterObjective
from apexrank.models.boosting.graded import (
    LinkObjective,
    ListwiseObjective,
    PairsObjective,
    RetargetObjective,
)
from apexrank.models.boosting.metric import BoosterMetric
from apexrank.models.boosting.push import PClassificationObjective, PushObjective

__all__ = [
    "BoosterMetric",
    "BoosterObjective",
    "LinkObjective",
    "ListwiseObjective",
    "PClassificationObjective",
    "PairsObjective",
    "PushObjective",
    "RetargetObjective",
]
