"""Pictures of rankings, after scikit-learn's Display objects; they need ``pip install "apexrank[plot]"``."""

from apexrank.plot.push import DiscountDisplay, PairContributionDisplay, pair_contributions
from apexrank.plot.roc import RocTopDisplay
from apexrank.plot.tradeoff import PTradeoffDisplay, SampleSizeDisplay

__all__ = [
    "DiscountDisplay",
    "PTradeoffDisplay",
    "PairContributionDisplay",
    "RocTopDisplay",
    "SampleSizeDisplay",
    "pair_contributions",
]
