"""Convex functions of the scores: value and gradient for given labels, weights and groups."""

from apexrank.objectives.classification import PClassification
from apexrank.objectives.forms import form_of
from apexrank.objectives.pairs import CrucialPairs
from apexrank.objectives.push import Push
from apexrank.objectives.top import InfinitePush

__all__ = ["CrucialPairs", "InfinitePush", "PClassification", "Push", "form_of"]
