"""Push on graded relevance or on arbitrary weighted pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from apexrank.errors import InputError
from apexrank.losses import LOSSES, Loss
from apexrank.objectives import CrucialPairs
from apexrank.parameters import atom, checked, number
from apexrank.prices import PRICES, Price
from apexrank.problem.blocks import Blocks
from apexrank.problem.design import Training
from apexrank.rankers.base import Graded, LinearEstimator, is_dask, read_rows, validated

MOST_ROWS_FOR_TRUTH = 3000


@dataclass(eq=False, repr=False)
class CrucialPairsPush(Graded, LinearEstimator):
    """Linear ranker for ``Σ_k g(Σ_i ℓ(s_i − s_k)·π_ik)``, where π_ik is the weight of ranking item i above item k.

    This is the crucial-pairs formulation of JMLR 2009, sec. 7. The pairs come from one of three sources: graded
    relevance ``y`` (each item above all less relevant ones of its group), a list of weighted ``pairs``, or, for small
    data, a ``truth`` function of two rows. With two grades it equals :class:`PNormPush`.

    Parameters
    ----------
    p, loss, price, alpha, solver, max_iter, tol, warm_start, verbose
        As in :class:`PNormPush`; p must be finite.
    truth : callable, optional
        ``truth(A, B)`` takes two arrays of rows and returns, row by row, the weight of ranking the row of A above the
        row of B (0 or False: not a pair). It is evaluated on all pairs of rows, so at most 3000 rows are allowed.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    objective_, dual_gap_, grad_norm_, converged_, n_iter_, history_
        As in :class:`PNormPush`.

    Examples
    --------
    >>> import numpy as np
    >>> from apexrank import CrucialPairsPush
    >>> X = np.array([[0.1, 1.0], [0.9, 0.2], [0.4, 0.5], [0.7, 0.8]])
    >>> ranker = CrucialPairsPush(p=2, alpha=0.1).fit(X, [0, 3, 1, 2])
    >>> np.argsort(-ranker.predict(X)).tolist()
    [1, 3, 2, 0]
    >>> pairs = np.array([1, 3]), np.array([2, 0])  # row 1 above row 2, row 3 above row 0
    >>> bool(np.diff(CrucialPairsPush(alpha=0.1).fit(X, pairs=pairs).predict(X[[2, 1]]))[0] > 0)
    True
    """

    _parameter_constraints: ClassVar[dict] = LinearEstimator._parameter_constraints | {
        "p": [number(1)],
        "loss": atom(LOSSES),
        "price": atom(PRICES),
        "truth": [None, callable],
        "alpha": [number(0)],
    }

    p: float = 4.0
    _: KW_ONLY
    loss: str | Loss = "exponential"
    price: str | Price = "power"
    truth: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    alpha: float = 1e-6

    @checked
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        pairs: tuple[ArrayLike, ...] | None = None,
    ) -> Self:
        """Fit on rows X.

        Parameters
        ----------
        X : array or CSR matrix
            One row per item.
        y : array of numbers, optional
            Relevance (larger is better), any number of grades; not needed with ``pairs`` or ``truth``.
        sample_weight : array, optional
            Row weights for use with ``y``; ``pairs`` have their own weights.
        groups : array, optional
            One id per row. With ``y``, only rows of the same group are compared, and all groups have equal weight.
        pairs : tuple (upper, lower) or (upper, lower, weight), optional
            Row numbers: row ``upper[j]`` should rank above row ``lower[j]``. In blocks and Dask collections, whose y is
            then ignored, rows are numbered consecutively from 0.
        """
        if pairs is None and self.truth is None:
            if y is None and not isinstance(X, Blocks):
                raise InputError(
                    "requires y to be passed, but the target y is None: give relevance y, pairs, or a truth function"
                )
            data = read_rows(self, X, y, sample_weight, groups, binary=False)
            return self._finish(data, self._minimise(data, self._objective))
        if isinstance(X, Blocks) or is_dask(X):
            if pairs is None:
                raise InputError(
                    "a truth function compares rows in memory: give an array, pairs, or relevance y"
                )
            data, named = read_rows(self, X, y, sample_weight, groups, binary=False), pairs
            sample_weight = data.columns()[1]
        else:
            rows = validated(self, X)
            named = pairs if pairs is not None else self._pairs_of_truth(rows)
            data = Training(rows, np.zeros(rows.shape[0]), None, groups)
        if sample_weight is not None:
            raise InputError(
                "`sample_weight` goes with relevance y: give pairs their weights as a third array"
            )
        self._minimise(data, lambda y, weight, groups: self._objective(None, None, groups, named, len(y)))
        return self

    def _objective(
        self, relevance: Any, weight: np.ndarray | None, groups: Any, pairs: Any = None, n: int | None = None
    ) -> CrucialPairs:
        return CrucialPairs(
            relevance,
            pairs=pairs,
            n=n,
            loss=self.loss,
            price=PRICES.get(self.price, p=self.p),
            sample_weight=weight,
            groups=groups,
        )

    def _pairs_of_truth(self, rows: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n = rows.shape[0]
        if n > MOST_ROWS_FOR_TRUTH:
            raise InputError(
                f"a truth function is asked about all {n} x {n} pairs: "
                f"give at most {MOST_ROWS_FOR_TRUTH} rows, or `pairs=`"
            )
        assert self.truth is not None
        dense = rows.toarray() if sparse.issparse(rows) else rows
        weights = [
            np.asarray(self.truth(np.broadcast_to(dense[i], dense.shape), dense), dtype=float)
            for i in range(n)
        ]
        table = np.array(weights)
        np.fill_diagonal(table, 0.0)
        upper, lower = np.nonzero(table)
        return upper, lower, table[upper, lower]
