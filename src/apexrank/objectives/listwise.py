"""Objectives with fixed targets, as baselines of monotone retargeting: regression, ListNet, RankCosine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import xlogy

from apexrank.errors import InputError
from apexrank.objectives.base import HessianTerm, Objective
from apexrank.validation import segment

MOST_RANKS = 1e8


class FixedTargets(Objective):
    """Base class of objectives on lists of rows with targets; rows of a list share an offset that is profiled out.

    Parameters
    ----------
    targets : array-like of shape (n,)
        Targets for the scores, or for their link.
    groups : array-like of shape (n,), optional
        The lists; by default one list of all rows, whose offset is an intercept.
    weight : array-like of shape (n,), optional
        Weight of each row.
    count : float, optional
        Divisor of the sum in a problem; by default the number of lists with a row of positive weight.
    """

    def __init__(
        self,
        targets: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        count: float | None = None,
    ) -> None:
        self.targets = np.asarray(targets, dtype=float)
        n = len(self.targets)
        self.weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
        if self.weight.shape != (n,) or np.any(self.weight < 0) or not np.isfinite(self.weight).all():
            raise InputError(f"`weight` needs one finite number >= 0 for each of the {n} rows")
        if not (self.weight > 0).any():
            raise InputError("all rows have weight 0: give at least one row a weight above 0")
        self.positive = np.zeros(n, dtype=bool)  # there is no positive class
        segments = segment(groups, n)
        self.list_of_row, self.n_groups = segments.of_rows(), len(segments)
        self._count = float((self.sums(self.weight) > 0).sum()) if count is None else float(count)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum over each list."""
        return np.bincount(self.list_of_row, values, self.n_groups)

    def _indicator(self, values: np.ndarray) -> Any:
        """Sparse matrix whose column q holds the values of the rows of list q."""
        n = len(values)
        return sparse.csr_array((values, self.list_of_row, np.arange(n + 1)), shape=(n, self.n_groups))

    @property
    def count(self) -> float:
        """Number of lists, or of rows for a regression on all rows."""
        return self._count


class SquaredTargets(FixedTargets):
    """``½·Σ_i w_i (s_i + β − t_i)²`` with the best offset β of each list: regression on the targets.

    Examples
    --------
    >>> SquaredTargets([1.0, 0.0]).value_and_grad(np.array([5.0, 5.0]))
    (0.25, array([-0.5,  0.5]))
    """

    over_groups = "sum"

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores."""
        error = scores - self.targets
        with np.errstate(invalid="ignore"):  # a list of weight 0 has no offset
            mean = self.sums(self.weight * error) / self.sums(self.weight)
        error = np.where(self.weight > 0, error - mean[self.list_of_row], 0.0)
        slope = self.weight * error
        return float(0.5 * slope @ error), slope

    @property
    def curvature(self) -> float:
        """Natural unit of the curvature with respect to the scores."""
        return float(self.weight.sum()) or 1.0

    def hessian(self, scores: np.ndarray) -> list[HessianTerm]:
        """``diag(w) − w·wᵀ/|w|`` for each list."""
        total = self.sums(self.weight)
        inverse = np.divide(-1.0, total, out=np.zeros(self.n_groups), where=total > 0)
        return [(1.0, self.weight, self._indicator(self.weight), sparse.diags_array(inverse))]


class SoftmaxTargets(FixedTargets):
    """``Σ_i w_i·I(t_i ‖ e^{s_i + β})`` with the best offset β of each list; I is the I-divergence, t ≥ 0.

    With T the sum of a list's targets it is ``T·KL(t/T ‖ softmax(s))``: ListNet's cross entropy up to a constant
    (Cao et al., 2007) when targets sum to 1 in each list, and Poisson regression with an intercept for one list.

    Examples
    --------
    >>> value, gradient = SoftmaxTargets([0.75, 0.25]).value_and_grad(np.zeros(2))
    >>> round(value, 6), gradient.tolist()
    (0.130812, [-0.25, 0.25])
    """

    over_groups = "sum"

    def __init__(self, targets: ArrayLike, **options: Any) -> None:
        super().__init__(targets, **options)
        if np.any(self.targets < 0):
            raise InputError(
                "targets of an I-divergence must not be negative: add a constant, or use 'squared'"
            )
        self._mass = self.sums(self.weight * self.targets)
        self._entropy = float((self.weight * xlogy(self.targets, self.targets)).sum())

    def _log_share(self, scores: np.ndarray) -> np.ndarray:
        """``s − log Σ w e^s`` in each list."""
        counts = self.weight > 0
        highest = np.full(self.n_groups, -np.inf)
        np.maximum.at(highest, self.list_of_row[counts], scores[counts])
        moved = scores - highest[self.list_of_row]
        with np.errstate(divide="ignore", invalid="ignore"):  # a list of weight 0 has no sum
            total = self.sums(self.weight * np.exp(moved, where=counts, out=np.zeros(len(scores))))
            return moved - np.log(total)[self.list_of_row]

    def _fit(self, log_share: np.ndarray) -> np.ndarray:
        """Fitted value of each row times its weight."""
        counts = self.weight > 0
        share = np.exp(log_share, where=counts, out=np.zeros(len(log_share)))
        return self.weight * self._mass[self.list_of_row] * share

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores."""
        log_share, aim = self._log_share(scores), self.weight * self.targets
        used = aim > 0
        cross = aim[used] @ log_share[used]
        constant = self._entropy - float(xlogy(self._mass, self._mass).sum())
        return float(constant - cross), self._fit(log_share) - aim

    def hessian(self, scores: np.ndarray) -> list[HessianTerm]:
        """``diag(m) − m·mᵀ/|m|`` for each list, where m are the fitted values."""
        fit = self._fit(self._log_share(scores))
        inverse = np.divide(-1.0, self._mass, out=np.zeros(self.n_groups), where=self._mass > 0)
        return [(1.0, fit, self._indicator(fit), sparse.diags_array(inverse))]


class CosineTargets(FixedTargets):
    """``Σ_q ½·(1 − <t_q, s_q> / (|t_q|·√(|s_q|² + 1)))``: RankCosine (Qin et al., 2008), smoothed at s = 0.

    The cosine is invariant to the length of the scores, so a penalty on the model would shrink them for free and there
    would be no minimum; the 1 makes the length matter. The cosine does depend on a shift of the scores, and there are
    no offsets. Not convex. Lists whose targets are all 0 are ignored.

    Examples
    --------
    >>> CosineTargets([1.0, 0.0]).value_and_grad(np.zeros(2))
    (0.5, array([-0.5,  0. ]))
    """

    shift_invariant = False
    is_convex = False
    has_hessian = False

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores."""
        scores = np.asarray(scores, dtype=float)
        size = np.sqrt(self.sums(self.weight * self.targets**2))
        inverse = np.divide(1.0, size, out=np.zeros(self.n_groups), where=size > 0)
        aim = self.targets * inverse[self.list_of_row]
        length = np.sqrt(self.sums(self.weight * scores**2) + 1)
        cosine = self.sums(self.weight * aim * scores) / length
        along = np.where(size > 0, cosine / length, 0.0)[self.list_of_row] * scores
        slope = 0.5 * self.weight * (along - aim) / length[self.list_of_row]
        return float(0.5 * (1 - cosine)[size > 0].sum()), slope


def softmax_of_lists(relevance: np.ndarray, groups: Any, weight: np.ndarray | None) -> np.ndarray:
    """Softmax of the relevance in each group, weighted by repetition: ListNet's top-one probabilities.

    Examples
    --------
    >>> softmax_of_lists(np.array([0.0, 0.0, 7.0]), ["a", "a", "b"], None).tolist()
    [0.5, 0.5, 1.0]
    """
    lists = SoftmaxTargets(np.ones(len(relevance)), groups=groups, weight=weight)
    return np.exp(lists._log_share(relevance), where=lists.weight > 0, out=np.zeros(len(relevance)))


def ideal_dcg(gain: np.ndarray, groups: Any, weight: np.ndarray | None) -> np.ndarray:
    """Ideal DCG of each row's group: ``Σ gain/log2(1 + rank)`` in the best order.

    A row of weight w stands for w rows at consecutive ranks; fractional weights share a rank.

    Examples
    --------
    >>> ideal_dcg(np.array([0.0, 3.0, 1.0]), None, None).round(4).tolist()
    [3.6309, 3.6309, 3.6309]
    """
    segments = segment(groups, len(gain))
    index = segments.of_rows()
    order = np.lexsort((-gain, index))
    count = np.ones(len(gain)) if weight is None else weight[order]
    last = np.cumsum(count)
    before = np.repeat(last[segments.indptr[:-1]] - count[segments.indptr[:-1]], np.diff(segments.indptr))
    last -= before
    if last.max() > MOST_RANKS:
        raise InputError(
            f"the weights of a group sum to {last.max():.3g}, too many ranks: divide the weights"
        )
    ranks = np.arange(int(np.ceil(last.max())) + 1)
    discount = np.concatenate([[0.0], np.cumsum(1 / np.log2(1 + ranks[1:]))])
    share = np.interp(last, ranks, discount) - np.interp(last - count, ranks, discount)
    return np.bincount(index[order], gain[order] * share, len(segments))[index]
