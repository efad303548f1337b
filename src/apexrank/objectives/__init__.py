"""Convex functions of the scores: value and gradient for given labels, weights and groups."""

from apexrank.objectives.forms import form_of
from apexrank.objectives.pairs import CrucialPairs
from apexrank.objectives.push import Push

__all__ = ["CrucialPairs", "Push", "form_of"]
