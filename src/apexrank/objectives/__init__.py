"""Convex functions of the scores: value and gradient for given labels, weights and groups."""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.objectives.base import form_of as form_of
    from apexrank.objectives.classification import PClassification as PClassification
    from apexrank.objectives.infinite_push import InfinitePush as InfinitePush
    from apexrank.objectives.link import UnknownLink as UnknownLink
    from apexrank.objectives.listwise import CosineTargets as CosineTargets
    from apexrank.objectives.listwise import SoftmaxTargets as SoftmaxTargets
    from apexrank.objectives.listwise import SquaredTargets as SquaredTargets
    from apexrank.objectives.log_loss import LogLoss as LogLoss
    from apexrank.objectives.pairs import CrucialPairs as CrucialPairs
    from apexrank.objectives.push import Push as Push
    from apexrank.objectives.retarget import Retarget as Retarget
    from apexrank.objectives.swaps import SwapLikelihood as SwapLikelihood
else:
    __getattr__, __dir__, __all__ = attach(__name__)
