"""Convex functions of the scores: value and gradient for given labels, weights and groups."""

from apexrank.objectives.classification import PClassification
from apexrank.objectives.forms import form_of
from apexrank.objectives.infinite_push import InfinitePush
from apexrank.objectives.link import UnknownLink
from apexrank.objectives.listwise import CosineTargets, SoftmaxTargets, SquaredTargets
from apexrank.objectives.pairs import CrucialPairs
from apexrank.objectives.push import Push
from apexrank.objectives.retarget import Retarget
from apexrank.objectives.swaps import SwapLikelihood

__all__ = [
    "CosineTargets",
    "CrucialPairs",
    "InfinitePush",
    "PClassification",
    "Push",
    "Retarget",
    "SoftmaxTargets",
    "SquaredTargets",
    "SwapLikelihood",
    "UnknownLink",
    "form_of",
]
