"""Exports of fitted rankers: ONNX graphs, SQL expressions, and scorecards of integer points.

All three start from the form of a model in terms of the columns of its table (:mod:`.forms`), into which the steps of a
scikit-learn pipeline are folded (:mod:`.features`).
"""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.export.bins import BinnedScorecard as BinnedScorecard
    from apexrank.export.onnx import register_onnx as register_onnx
    from apexrank.export.onnx import to_onnx as to_onnx
    from apexrank.export.scorecard import Scorecard as Scorecard
    from apexrank.export.scorecard import round_scorecard as round_scorecard
    from apexrank.export.sql import to_sql as to_sql
else:
    __getattr__, __dir__, __all__ = attach(__name__)
