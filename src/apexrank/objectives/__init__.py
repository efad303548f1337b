"""Convex functions of the scores: value and gradient for given labels, weights and groups."""

from apexrank.objectives.push import Push

__all__ = ["Push"]
