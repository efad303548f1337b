"""Fitted rankers outside Python: ONNX graphs, SQL expressions, and scorecards of small whole numbers.

All three begin with the linear form of a model in the columns of its table (:mod:`.linear`), with the steps of a
scikit-learn pipeline (:mod:`.features`) folded in.
"""

from apexrank.export.onnx import register_onnx, to_onnx
from apexrank.export.scorecard import Scorecard, round_scorecard
from apexrank.export.sql import to_sql

__all__ = ["Scorecard", "register_onnx", "round_scorecard", "to_onnx", "to_sql"]
