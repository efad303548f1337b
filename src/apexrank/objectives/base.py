"""What a linear problem asks of an objective of the scores, with the answers that most of them give."""

from __future__ import annotations

from typing import Any

import numpy as np

HessianTerm = tuple[float, np.ndarray, Any, Any]
"""``factor, d, U, S`` of a term ``factor·(diag(d) + U·S·Uᵀ)`` of a Hessian with respect to the scores."""


class Objective:
    """A function of the scores of n rows, for given labels, groups and weights.

    A subclass has ``value_and_grad``, ``positive`` and ``n_groups``. What else it knows it says by these attributes.

    Attributes
    ----------
    has_hessian, streams : bool
        Whether :meth:`hessian` and :meth:`stream` can be used.
    is_convex, shift_invariant : bool
        Whether it is convex, and the same for all scores moved by one number.
    bounded_below : bool
        Whether it is at least 0, as a lasso needs.
    is_exponential : bool
        Whether it is a multiple of ``e^{κV}``, V positively homogeneous at infinity, which makes a lasso's gap smaller.
    is_smoothed : bool
        Whether it smooths a function with a kink, whose minimum :class:`~apexrank.solvers.Continuation` finds.
    log_weight : array, optional
        Logarithm of the rows' weights, for :meth:`stream`.
    lists : LevelOrder, optional
        Lists inside which a design measures the spread of its columns.
    separable_below : float
        A value below this calls for a look at :meth:`separated`.
    """

    has_hessian = True
    streams = False
    is_convex = True
    shift_invariant = True
    bounded_below = True
    is_exponential = False
    is_smoothed = False
    log_weight: np.ndarray | None = None
    lists: Any = None
    separable_below = -np.inf
    positive: np.ndarray
    n_groups: int

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores."""
        raise NotImplementedError

    def hessian(self, scores: np.ndarray) -> list[HessianTerm]:
        """Terms ``factor·(diag(d) + U·S·Uᵀ)`` whose sum is the Hessian with respect to the scores."""
        raise NotImplementedError

    def stream(self, sums: Any) -> tuple[float, np.ndarray]:
        """Value and gradient with respect to the coefficients, from sums over the rows (``RowSummer``)."""
        raise NotImplementedError

    def stream_hessian(self, sums: Any) -> np.ndarray:
        """Hessian with respect to the coefficients, from sums over the rows."""
        raise NotImplementedError

    def separated(self, scores: np.ndarray) -> bool:
        """Whether growing scores would lower the objective for ever: without a penalty there is no minimiser."""
        return False

    @property
    def total(self) -> float:
        """Natural unit of value and gradient: the value of all-equal scores."""
        return abs(self.value_and_grad(np.zeros(len(self.positive)))[0]) or 1.0

    @property
    def count(self) -> float:
        """What a problem divides the objective by, so that it is a mean over rows or groups."""
        return 1.0

    @property
    def curvature(self) -> float:
        """Natural unit of the curvature with respect to the scores."""
        return self.total

    @property
    def value_unit(self) -> float:
        """Natural unit of the duality gap."""
        return 1.0
