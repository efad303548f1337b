"""Where the ranking score crosses zero: the intercept of a fitted ranker."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp


def p_classification_intercept(
    scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None, p: float
) -> float:
    """Closed-form intercept ``b = [LSE(−f) − LSE(p·g)] / (p + 1)`` of P-Classification.

    It minimises ``Σ_i e^{−(f_i + b)} + (1/p)·Σ_k e^{p(g_k + b)}`` (Ertekin & Rudin 2011).
    """
    up, down = (None, None) if weight is None else (weight[positive], weight[~positive])
    positives = logsumexp(-scores[positive], b=up)
    negatives = logsumexp(p * scores[~positive], b=down)
    return float((positives - negatives) / (p + 1))


def balanced_threshold(scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> float:
    """Threshold with the least balanced training error: the largest true minus false positive rate.

    Halfway between the two neighbouring scores.
    """
    weight = np.ones(len(scores)) if weight is None else weight
    scores, positive, weight = scores[weight > 0], positive[weight > 0], weight[weight > 0]
    order = np.argsort(-scores, kind="stable")
    s, up, down = scores[order], (weight * positive)[order], (weight * ~positive)[order]
    advantage = np.cumsum(up) / up.sum() - np.cumsum(down) / down.sum()
    cuts = np.flatnonzero(s[:-1] > s[1:])
    if not len(cuts):
        return float(s[0])
    best = cuts[np.argmax(advantage[cuts])]
    return float(s[best + 1] + (s[best] - s[best + 1]) / 2)
