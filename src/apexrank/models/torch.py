"""Every objective of the scores as a PyTorch loss: ``loss(scores, target, groups=None, sample_weight=None)``.

Pushes with the exponential loss and the losses with fixed targets are PyTorch operations and stay on the scores'
device. The others need a sort, a projection or sums over pairs: the scores cross to the host, where value and exact
gradient are computed in near-linear time, and the gradient crosses back.
"""

from apexrank.models.torch_lists import ListwiseLoss, RetargetLoss, SwapLikelihoodLoss, UnknownLinkLoss
from apexrank.models.torch_push import CrucialPairsLoss, InfinitePushLoss, PClassificationLoss, PushLoss
from apexrank.models.torch_rows import ScoreLoss

__all__ = [
    "CrucialPairsLoss",
    "InfinitePushLoss",
    "ListwiseLoss",
    "PClassificationLoss",
    "PushLoss",
    "RetargetLoss",
    "ScoreLoss",
    "SwapLikelihoodLoss",
    "UnknownLinkLoss",
]
