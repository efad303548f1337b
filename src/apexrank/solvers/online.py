"""Online gradient descent for a stream of strongly convex losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from apexrank.errors import InputError

WIDEST = 300  # largest matrix whose eigenvalues are computed


@dataclass
class OnlineGradient:
    """Online gradient descent on losses ``ℓ_t(w) + σ/2·|w|²`` with steps ``1/(σt + L)``.

    With L = 0 these are the steps 1/(σt) of Hazan, Agarwal and Kale (2007), whose regret against the best fixed w in
    hindsight is O(log T). Their first steps are as long as 1/σ, so a loss with much larger curvature than σ moves w far
    away. L, the largest curvature seen so far, prevents this, and the regret stays ``L·|w*|²/2 + O(log T)``.

    Attributes
    ----------
    w : array
        Point at which the next loss is evaluated.
    average : array
        Mean of the iterates, the t-th with weight t (Lacoste-Julien, Schmidt and Bach, 2012): the result after the
        stream, with error O(1/T) where that of ``w`` is O(log(T)/T).
    rounds : int
        Number of losses seen.
    loss : float
        Sum of the losses at the points where they were evaluated.

    Examples
    --------
    >>> player = OnlineGradient(sigma=1.0, w=np.zeros(1))
    >>> for target in [1.0, 3.0, 2.0]:
    ...     player.play(lambda w, t=target: (0.5 * float((w - t) @ (w - t)), w - t), smoothness=1.0)
    0.5
    3.25
    1.0277777777777777
    >>> player.w.round(4).tolist(), player.rounds
    ([1.0833], 3)
    """

    sigma: float
    w: np.ndarray
    rounds: int = 0
    smoothness: float = 0.0
    loss: float = 0.0
    average: Any = None  # by default w

    def __post_init__(self) -> None:
        if self.average is None:
            self.average = self.w.copy()

    def check(self, n_features: int) -> None:
        """Raise InputError unless the points have n_features coordinates."""
        if len(self.w) != n_features:
            raise InputError(f"the points of the stream do not have {n_features} coordinates")

    def play(
        self, value_and_grad: Callable[[np.ndarray], tuple[float, np.ndarray]], smoothness: float = 0.0
    ) -> float:
        """Evaluate the next loss ℓ at w, then take a step; returns the loss including its penalty.

        ``smoothness`` bounds the curvature of ℓ.
        """
        value, grad = value_and_grad(self.w)
        suffered = value + 0.5 * self.sigma * float(self.w @ self.w)
        self.rounds += 1
        self.loss += suffered
        self.smoothness = max(self.smoothness, smoothness)
        step = 1 / (self.sigma * self.rounds + self.smoothness)
        self.w = self.w - step * (grad + self.sigma * self.w)
        self.average = self.average + 2 / (self.rounds + 1) * (self.w - self.average)
        return suffered


def scatter_norm(rows: Any, *, centred: bool = True) -> float:
    """Largest eigenvalue of ``Zᵀ·Z``, Z being the rows, centred if requested; the trace if that is much cheaper.

    It is the curvature, with respect to w, of a loss of curvature 1 in the scores ``rows·w`` that, if centred, is
    shift-invariant.

    Examples
    --------
    >>> scatter_norm(np.array([[1.0, 7.0], [3.0, 7.0]]))
    2.0
    """
    if sparse.issparse(rows) and min(rows.shape) > WIDEST:
        squares = rows.multiply(rows).sum() - centred * rows.shape[0] * np.square(rows.mean(axis=0)).sum()
        return max(0.0, float(squares))
    if sparse.issparse(rows):  # keep only nonzero columns to limit the size
        rows = rows[:, np.unique(rows.indices)].toarray()
    Z = rows - centred * rows.mean(axis=0, dtype=float)
    if min(rows.shape) > WIDEST:
        return float(np.square(Z).sum())
    gram = Z @ Z.T if len(Z) < Z.shape[1] else Z.T @ Z
    return max(0.0, float(np.linalg.eigvalsh(gram)[-1]))
