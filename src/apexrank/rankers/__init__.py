"""Rankers: thin scikit-learn estimators that store, validate, build, solve and expose."""

from apexrank.rankers.base import LinearRanker, SeparableWarning
from apexrank.rankers.push import IRPush, PNormPush, RankBoost
from apexrank.rankers.select import PNormPushCV, push_path

__all__ = ["IRPush", "LinearRanker", "PNormPush", "PNormPushCV", "RankBoost", "SeparableWarning", "push_path"]
