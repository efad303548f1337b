"""Rankers: thin scikit-learn estimators that store, validate, build, solve and expose."""

from apexrank.rankers.base import LinearRanker, SeparableWarning
from apexrank.rankers.push import IRPush, PNormPush, RankBoost

__all__ = ["IRPush", "LinearRanker", "PNormPush", "RankBoost", "SeparableWarning"]
