"""Pictures of rankings, after scikit-learn's Display objects; they need ``pip install "apexrank[plot]"``."""

from apexrank.plot.aggregation import AggregationDisplay
from apexrank.plot.at_k import MeasureAtKDisplay
from apexrank.plot.bump import BumpDisplay
from apexrank.plot.convergence import ConvergenceDisplay
from apexrank.plot.link import LinkDisplay
from apexrank.plot.precision import PrecisionRecallTopDisplay
from apexrank.plot.push import DiscountDisplay, PairContributionDisplay, pair_contributions
from apexrank.plot.roc import RocTopDisplay
from apexrank.plot.spam import CumulativeSpamDisplay
from apexrank.plot.tradeoff import PTradeoffDisplay, SampleSizeDisplay

__all__ = [
    "AggregationDisplay",
    "BumpDisplay",
    "ConvergenceDisplay",
    "CumulativeSpamDisplay",
    "DiscountDisplay",
    "LinkDisplay",
    "MeasureAtKDisplay",
    "PTradeoffDisplay",
    "PairContributionDisplay",
    "PrecisionRecallTopDisplay",
    "RocTopDisplay",
    "SampleSizeDisplay",
    "pair_contributions",
]
