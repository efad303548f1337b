"""Plots of rankings, in the style of scikit-learn's Display objects; they need ``pip install "apexrank[plot]"``."""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.plot.aggregation import AggregationDisplay as AggregationDisplay
    from apexrank.plot.effects import additive_effects as additive_effects
    from apexrank.plot.graph import CumulativeSpamDisplay as CumulativeSpamDisplay
    from apexrank.plot.push import PairContributionDisplay as PairContributionDisplay
    from apexrank.plot.push import PTradeoffDisplay as PTradeoffDisplay
    from apexrank.plot.push import pair_contributions as pair_contributions
    from apexrank.plot.roc import PrecisionRecallTopDisplay as PrecisionRecallTopDisplay
    from apexrank.plot.roc import RocTopDisplay as RocTopDisplay
    from apexrank.plot.shapes import ShapeDisplay as ShapeDisplay
else:
    __getattr__, __dir__, __all__ = attach(__name__)
