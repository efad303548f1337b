"""Single-index regression as published: Isotron and its Lipschitz variant, as baselines."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin

from apexrank.errors import InputError
from apexrank.kernels.lipschitz import lipschitz_isotonic_link
from apexrank.objectives.margins import checked_relevance
from apexrank.parameters import above, checked, number, whole
from apexrank.problem.design import Matrix, pull_back, tied_scores
from apexrank.rankers.base import checked_rows, validated, validated_weight
from apexrank.validation import SMALLEST, check_not_huge


@dataclass(eq=False, repr=False)
class Isotron(RegressorMixin, BaseEstimator):
    """Isotron for ``y ≈ g(x·w)`` with an unknown increasing g, with unit steps.

        ŷ = isotonic regression of y on the scores X·w,    w ← w + (1/n)·Σ_i (y_i − ŷ_i)·x_i

    from w = 0 (Kalai and Sastry, 2009). With ``lipschitz`` the regression is also Lipschitz, which is the L-Isotron of
    Kakade, Kalai, Kanade and Shamir (2011) and, up to the length of the steps, the descent along "GradMaPr" of
    S. Acharyya's dissertation (2013, section 4.6). The Lipschitz regression is exact here.

    The papers assume ``|x| ≤ 1``: rows are divided by their largest norm, and the coefficients are returned in the
    units of X. Rows far from zero make the steps short, so centre the columns first.

    The updates are not the gradient of a known cost, the training error may rise, and they need not converge; use
    :class:`apexrank.rankers.link.UnknownLinkRegressor` for a convex cost with a certificate. As published, the result
    is the last iterate.

    Parameters
    ----------
    lipschitz : float, optional
        Largest slope of g; unbounded by default.
    max_iter : int
        Maximum number of updates.
    tol : float
        Stop when an update changes w by at most this fraction of its norm.
    keep_path : bool
        Keep the coefficients after every update, to choose among them on held-out rows.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Coefficients w.
    knots_, values_ : arrays
        The link g at the scores of the training rows; it is linear in between and constant outside.
    n_iter_, converged_
        Number of updates, and whether ``tol`` was reached.
    history_ : array of shape (n_iter_ + 1,)
        Mean squared error on the training rows before each update, and after the last.
    coef_path_ : array of shape (n_iter_ + 1, n_features)
        Coefficients before each update and after the last, with ``keep_path``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = np.tanh(2 * X @ [0.6, -0.8, 0.0])
    >>> model = Isotron(max_iter=2000).fit(X, y)
    >>> np.round(model.coef_[:2] / np.linalg.norm(model.coef_), 3).tolist()
    [0.6, -0.8]
    >>> model.score(X, y) > 0.999
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "lipschitz": [None, above(0)],
        "max_iter": [whole(1)],
        "tol": [number(0)],
        "keep_path": ["boolean"],
    }

    lipschitz: float | None = None
    _: KW_ONLY
    max_iter: int = 100
    tol: float = 1e-6
    keep_path: bool = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @checked
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: None = None,
    ) -> Self:
        """Fit on rows X with values y; weights count as repetitions of rows. ``groups`` are not supported."""
        if groups is not None:
            raise InputError("one link is for all rows: leave out groups")
        slope = np.inf if self.lipschitz is None else float(self.lipschitz)
        rows, y = validated(self, X, y, y_numeric=True)
        y = checked_relevance(y)
        weight = validated_weight(1.0 if sample_weight is None else sample_weight, rows)
        assert weight is not None
        check_not_huge("X", rows)
        check_not_huge("y", y)
        if not weight.any():  # newer versions of scikit-learn check this themselves
            raise InputError("all rows have weight 0: give at least one row a weight above 0")
        if not weight.all():  # a row of weight 0 must not create a knot
            rows, y, weight = rows[weight > 0], y[weight > 0], weight[weight > 0]
        # the papers' step assumes rows of norm at most 1
        weight, unit = weight / weight.sum(), _largest_square(rows)
        if unit < SMALLEST**2 and (rows.count_nonzero() if sparse.issparse(rows) else rows.any()):
            raise InputError(f"X has no number as large as {SMALLEST}: scale it first")
        unit = unit or 1.0
        w, path, errors, converged = np.zeros(rows.shape[1]), [], [], False
        while True:
            scores = tied_scores(rows, w)
            self.knots_, self.values_ = lipschitz_isotonic_link(scores, y, slope, weight)
            missed = y - np.interp(scores, self.knots_, self.values_)
            errors.append(float(weight @ missed**2))
            if self.keep_path:
                path.append(w)
            if converged or len(errors) > self.max_iter:
                break
            update = pull_back(rows, weight * missed) / unit
            w = w + update
            converged = bool(np.linalg.norm(update) <= self.tol * np.linalg.norm(w))
        self.coef_, self.n_iter_, self.converged_ = w, len(errors) - 1, converged
        self.history_ = np.array(errors)
        self.__dict__.pop("coef_path_", None)
        if self.keep_path:
            self.coef_path_ = np.array(path)
        return self

    def index(self, X: ArrayLike) -> np.ndarray:
        """Scores ``X·w`` before the link is applied."""
        return tied_scores(checked_rows(self, X), self.coef_)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """``g(x·w)`` of each row."""
        return np.interp(self.index(X), self.knots_, self.values_)


def _largest_square(X: Matrix) -> float:
    """Largest squared norm of a row, in double precision."""
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X, dtype=float)
    return float(squares.max())
