"""Classical listwise losses as rankers of graded relevance."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from apexrank.errors import InputError
from apexrank.objectives.link import UnknownLink, check_margin
from apexrank.objectives.listwise import (
    CosineTargets,
    FixedTargets,
    SoftmaxTargets,
    SquaredTargets,
    ideal_dcg,
    softmax_of_lists,
)
from apexrank.parameters import above, names, number
from apexrank.rankers.base import Graded, LinearEstimator
from apexrank.validation import check_choice, segment

LOSSES = ("pointwise", "listnet", "rank_cosine", "ndcg_consistent", "unknown_link")
OF_TARGETS: dict[str, type[FixedTargets]] = {"squared": SquaredTargets, "i-divergence": SoftmaxTargets}


@dataclass(eq=False, repr=False)
class ListwiseRanker(Graded, LinearEstimator):
    """Linear ranker with a classical listwise loss: the baselines for monotone retargeting.

    Parameters
    ----------
    loss : {"listnet", "pointwise", "rank_cosine", "ndcg_consistent", "unknown_link"}
        - "listnet": cross entropy of softmax(y) and softmax(scores) in each group (Cao et al., 2007; top one).
        - "pointwise": regression on the relevance itself, with an intercept; groups are ignored.
        - "rank_cosine": one minus the cosine of relevance and scores in each group (Qin et al., 2008). The norm of the
          scores is smoothed by 1; without this a penalty would have no effect. Not convex: ``grad_norm_`` certifies
          only a stationary point.
        - "ndcg_consistent": regression on the gains ``2^y − 1`` divided by the group's best DCG (Ravikumar, Tewari
          and Yang, 2011), with one intercept per group.
        - "unknown_link": relevance is an increasing function of the scores, a different one in each group (Acharyya
          2013, chapter 4): :class:`apexrank.objectives.link.UnknownLink`. It is zero if each pair of rows of a group is
          in order with a margin of ``strong_convexity`` times the difference of relevance.
    divergence : {"squared", "i-divergence"}
        Divergence of the regressions: least squares, or Poisson regression.
    alpha : float
        The penalty is ``alpha/2·|w|²``; the loss is a mean over the groups, or over the rows for "pointwise".
    normalize : bool
        Divide the loss of each group by its number of rows.
    strong_convexity : float
        s > 0 of "unknown_link"; it is one parameter with alpha: multiplying s and dividing alpha by the same number
        only scales the scores by it.
    solver, max_iter, tol, warm_start, verbose
        As in :class:`MonotoneRetargeting`.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    objective_, dual_gap_, grad_norm_, converged_, n_iter_, history_
        As in :class:`MonotoneRetargeting`; ``dual_gap_`` is nan if the loss is not convex.

    Examples
    --------
    >>> import numpy as np
    >>> from apexrank.rankers.listwise import ListwiseRanker
    >>> X = np.array([[0.1, 1.0], [0.9, 0.2], [0.4, 0.5], [0.7, 0.8]])
    >>> ranker = ListwiseRanker("listnet", alpha=0.01).fit(X, [0, 3, 1, 2])
    >>> np.argsort(-ranker.predict(X)).tolist()
    [1, 3, 2, 0]
    """

    _parameter_constraints: ClassVar[dict] = LinearEstimator._parameter_constraints | {
        "loss": [names(LOSSES)],
        "divergence": [names(OF_TARGETS)],
        "alpha": [number(0)],
        "normalize": ["boolean"],
        "strong_convexity": [above(0)],
    }

    loss: str = "listnet"
    _: KW_ONLY
    divergence: str = "squared"
    alpha: float = 1e-3
    normalize: bool = False
    strong_convexity: float = 1.0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "ndcg_consistent" or self.divergence == "i-divergence"
        return tags

    def _objective(
        self, relevance: np.ndarray, weight: np.ndarray | None, groups: Any
    ) -> FixedTargets | UnknownLink:
        return listwise_objective(
            self.loss,
            relevance,
            sample_weight=weight,
            groups=groups,
            divergence=self.divergence,
            normalize=self.normalize,
            strong_convexity=self.strong_convexity,
        )


def listwise_objective(
    loss: str,
    relevance: np.ndarray,
    *,
    sample_weight: np.ndarray | None = None,
    groups: Any = None,
    divergence: str = "squared",
    normalize: bool = False,
    strong_convexity: float = 1.0,
) -> FixedTargets | UnknownLink:
    """Objective of :class:`ListwiseRanker` for these labels; parameters as there."""
    check_choice("divergence", divergence, OF_TARGETS)
    weight, n = sample_weight, len(relevance)
    if loss == "unknown_link":
        check_margin(strong_convexity)
        return UnknownLink(
            relevance,
            groups=groups,
            strong_convexity=strong_convexity,
            normalize=normalize,
            sample_weight=weight,
        )
    row_weight = np.ones(n) if weight is None else weight
    if normalize and loss != "rank_cosine":  # a cosine is already normalised per group
        index = segment(groups, n).of_rows()
        size = np.bincount(index, row_weight)[index]
        row_weight = np.divide(row_weight, size, where=size > 0, out=np.zeros(n))
    if loss == "listnet":
        targets = softmax_of_lists(relevance, groups, weight)
        return SoftmaxTargets(targets, groups=groups, weight=row_weight)
    if loss == "rank_cosine":
        if not np.any(relevance[row_weight > 0]):
            raise InputError("rank_cosine needs a row of relevance other than 0")
        return CosineTargets(relevance, groups=groups, weight=row_weight)
    targets_of = OF_TARGETS[divergence]
    if loss == "ndcg_consistent":
        return targets_of(gain_shares(relevance, groups, weight), groups=groups, weight=row_weight)
    return targets_of(relevance, weight=row_weight, count=row_weight.sum())


def gain_shares(relevance: np.ndarray, groups: Any, weight: np.ndarray | None) -> np.ndarray:
    """Gain ``2^y − 1`` of each row divided by the ideal DCG of its group; 0 if nothing is relevant."""
    if relevance.min() < 0:
        raise InputError("Negative values in the relevance y have no gain 2^y − 1: add a constant to it")
    with np.errstate(over="ignore"):
        gain = np.exp2(relevance) - 1
    best = ideal_dcg(gain, groups, weight)
    if not np.isfinite(best).all():
        raise InputError("the gain 2^y − 1 is too large: use smaller grades")
    return np.divide(gain, best, where=best > 0, out=np.zeros(len(gain)))
