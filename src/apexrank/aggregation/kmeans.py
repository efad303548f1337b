"""k-means of score vectors with orders as centres."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from apexrank.aggregation.divergence import LovaszBregman
from apexrank.aggregation.lloyd import Centres, Cost, Rows, Run, lloyd, start
from apexrank.errors import InputError
from apexrank.kernels.assign import Table, all_costs, assign
from apexrank.submodular import SetFunction
from apexrank.validation import check_finite, check_frame, check_weights

RESTARTS = 10  # where n_init is "auto": a single start often ends in a poor place
Start = Literal["k-means++", "random"] | ArrayLike | Callable[..., ArrayLike]


class LovaszBregmanKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Clusters of voters who order items alike: k-means with Lovász–Bregman divergences.

    Minimises over k orders σ and the assignment c of rows

        Σ_i w_i · [ d_f(x_i‖σ_c(i)) + euclidean/2 · |x_i − μ_c(i)|² ],    d_f(x‖σ) = f̂(x) − x·h_σ,

    where x_i are the scores row i gives to the items (columns), larger is better, and μ_c is the weighted mean of
    cluster c. The order of μ_c is the best order for its rows, so both terms have one centre. (Iyer and Bilmes 2013,
    section 4.) Rows count by how clearly they order the items: adding a number to a row changes nothing in d_f, and
    multiplying the row multiplies d_f.

    With ``euclidean=0`` only the order of a centre matters. There are n! orders of n items, two for two items, and more
    clusters than different orders leave some of them empty. As ``euclidean`` grows, the clusters become those
    of scikit-learn's ``KMeans``, whose objective is twice the last term with ``euclidean=1``.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    f : str or SetFunction
        The submodular function: "sqrt", "log", … or an atom of :mod:`apexrank.submodular`.
    euclidean : float
        Multiple of half the squared Euclidean distance that is added.
    init : {"k-means++", "random"}, array of shape (n_clusters, n_items), or callable
        First centres: rows drawn by their divergence from earlier ones, rows drawn by weight, score vectors,
        or what ``init(X, n_clusters, random_state=…)`` returns.
    n_init : "auto" or int
        Number of starts, the best of which is kept; "auto" is 10, and 1 for an array.
    max_iter : int
        Most steps of one start.
    tol : float
        A run ends when a step lowers the objective by no more than ``tol`` times its value, or moves no row.
    random_state : int, RandomState or None
        Of the starts. Equal seeds give equal results, whatever the number of threads.
    verbose : int
        1 prints a line per step.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_items)
        Mean score vectors μ.
    orders_ : array of shape (n_clusters, n_items)
        Items of each centre from the best to the worst; where means are tied, in the order of the columns.
    labels_ : array of shape (n_rows,)
        Nearest centre of each row; the first of several.
    inertia_ : float
        The objective at ``orders_``, ``cluster_centers_`` and ``labels_``.
    n_iter_, converged_, history_
        Steps of the best start, whether it ended by ``tol``, and the objective before the first step and after each.
    n_features_in_, feature_names_in_
        Number and names of the items.

    Notes
    -----
    A cluster that loses all rows gets the row farthest from its centre, of those that leave others behind. Means are
    exact only up to rounding, so tied means of scores that are no whole numbers may be ordered either way.

    ``KMeans`` on raw scores finds the voters' generosity. On rows less their mean, divided by their standard deviation,
    it finds orders, too; it then bears more noise than "sqrt", which looks at the first places most, and as much as
    "product", whose gains fall evenly.

    A step reads X once and copies nothing. Weights act as repetitions of rows, also in the draws of the starts.

    Examples
    --------
    >>> import numpy as np
    >>> from apexrank.aggregation.kmeans import LovaszBregmanKMeans
    >>> X = np.array([[3, 2, 1], [9, 8, 7], [1, 2, 3], [60, 70, 90], [5, 4, 1]])
    >>> model = LovaszBregmanKMeans(n_clusters=2, random_state=0).fit(X)
    >>> (model.labels_ == model.labels_[0]).tolist()
    [True, True, False, False, True]
    >>> model.orders_[model.labels_[0]].tolist(), model.inertia_
    ([0, 1, 2], 0.0)
    >>> model.predict([[0.1, 0.2, 0.9]])[0] == model.labels_[2]
    np.True_
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        f: str | SetFunction = "sqrt",
        euclidean: float = 0.0,
        init: Start = "k-means++",
        n_init: Literal["auto"] | int = "auto",
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.f = f
        self.euclidean = euclidean
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster the rows of X; ``sample_weight`` counts as repetitions of rows, y is ignored."""
        self._check_parameters()
        scores = self._checked(X, reset=True)
        if scores.shape[1] < 2:
            raise InputError("X has 1 feature(s): an order needs at least two items, one column each")
        if len(scores) < self.n_clusters:
            raise InputError(
                f"n_samples={len(scores)} should be >= n_clusters={self.n_clusters}: lower n_clusters"
            )
        rows = self._rows(scores, sample_weight)
        rng = check_random_state(self.random_state)
        best = self._run(rows, rng)
        for _ in range(1, self._n_starts()):
            run = self._run(rows, rng)
            if run.inertia < best.inertia:
                best = run
        self._keep(best)
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Nearest centre of each row."""
        check_is_fitted(self)
        scores = self._checked(X)
        nothing = np.zeros(
            len(scores)
        )  # neither weights nor the rows' constants change which centre is nearest
        table = Table(scores, scores.mean(axis=1, dtype=np.float64), nothing)
        return assign(table, nothing, self._centres().costs).labels

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Divergence of each row from each centre, the Euclidean part included: shape (n_rows, n_clusters)."""
        check_is_fitted(self)
        scores = self._checked(X)
        return all_costs(self._cost().table(scores), self._centres().costs).astype(scores.dtype, copy=False)

    def score(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the objective of the rows at the fitted centres: larger is better."""
        check_is_fitted(self)
        rows = self._rows(self._checked(X), sample_weight)
        return -rows.assign(self._centres()).value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _check_parameters(self) -> None:
        for name in ("n_clusters", "max_iter"):
            _check_count(name, getattr(self, name))
        if not (isinstance(self.n_init, str) and self.n_init == "auto"):
            _check_count("n_init", self.n_init, " or 'auto'")
        check_finite("euclidean", self.euclidean, 0)
        check_finite("tol", self.tol, 0)
        if isinstance(self.init, str) and self.init not in ("k-means++", "random"):
            raise InputError(
                f"unknown init {self.init!r}: use k-means++, random, an array of centres or a callable"
            )

    def _checked(self, X: Any, reset: bool = False) -> np.ndarray:
        check_frame(X)
        return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], order="C")

    def _rows(self, scores: np.ndarray, sample_weight: Any) -> Rows:
        weight = _check_sample_weight(sample_weight, scores, dtype=np.float64, ensure_non_negative=True)
        check_weights(weight)
        if not weight.any():
            raise InputError("all rows have weight 0: give at least one row a weight above 0")
        return Rows(scores, weight, self._cost())

    def _n_starts(self) -> int:
        if not isinstance(self.init, str) and not callable(self.init):
            return 1  # given centres lead to the same place each time
        return RESTARTS if self.n_init == "auto" else int(self.n_init)

    def _run(self, rows: Rows, rng: np.random.RandomState) -> Run:
        centres = self._first_centres(rows, rng)
        return lloyd(rows, centres, max_iter=self.max_iter, tol=self.tol, verbose=bool(self.verbose))

    def _first_centres(self, rows: Rows, rng: np.random.RandomState) -> Centres:
        if isinstance(self.init, str):
            return start(rows, self.n_clusters, rng, spread=self.init == "k-means++")
        given = self.init(rows.X, self.n_clusters, random_state=rng) if callable(self.init) else self.init
        shape = self.n_clusters, rows.X.shape[1]
        try:
            means = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"init must be finite scores of shape {shape}, got what is no table of numbers"
            ) from None
        if means.shape != shape or not np.isfinite(means).all():
            raise InputError(f"init must be finite scores of shape {shape}, got shape {means.shape}")
        return rows.cost.centres(means)

    def _keep(self, run: Run) -> None:
        self.cluster_centers_, self.orders_ = run.centres.means, run.centres.orders
        self.labels_, self.inertia_ = run.labels, run.inertia
        self.history_, self.n_iter_ = np.array(run.history), len(run.history) - 1
        self.converged_ = run.converged
        members = len(np.unique(run.labels))
        if members < self.n_clusters:
            warnings.warn(
                f"only {members} of {self.n_clusters} clusters have rows: X has too few different orders. "
                "Lower n_clusters, or set euclidean above 0.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if not run.converged:
            warnings.warn(
                f"not converged after {self.n_iter_} steps: rows still move. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _cost(self) -> Cost:
        return Cost(LovaszBregman(self.f), float(self.euclidean))

    def _centres(self) -> Centres:
        return self._cost().centres(self.cluster_centers_, self.orders_)


def _check_count(name: str, value: Any, otherwise: str = "") -> None:
    if not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1{otherwise}, got {value!r}")


def elbow(
    X: ArrayLike, k_range: Iterable[int], *, sample_weight: ArrayLike | None = None, **parameters: Any
) -> dict[int, float]:
    """Objective by number of clusters: look for the k after which it falls slowly.

    ``parameters`` are those of :class:`LovaszBregmanKMeans`.

    Examples
    --------
    >>> X = [[3, 2, 1], [9, 8, 7], [1, 2, 3], [6, 7, 9]]
    >>> falls = elbow(X, range(1, 3), random_state=0)
    >>> {k: round(value, 3) for k, value in falls.items()}
    {1: 2.729, 2: 0.0}
    """
    return {
        int(k): LovaszBregmanKMeans(int(k), **parameters).fit(X, sample_weight=sample_weight).inertia_
        for k in k_range
    }


def silhouette(model: LovaszBregmanKMeans, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Simplified silhouette: weighted mean of ``1 − a/b``, a row's divergences from its nearest and next centre.

    Near 1 the clusters are far apart, near 0 rows could as well be in the next one. A row at equal divergence from both
    counts 0. It needs the divergences from k centres, where the common silhouette needs those of all pairs of rows.

    Examples
    --------
    >>> X = [[3, 2, 1], [9, 8, 7], [1, 2, 3], [6, 7, 9]]
    >>> silhouette(LovaszBregmanKMeans(2, random_state=0).fit(X), X)
    1.0
    """
    costs = model.transform(X)
    if costs.shape[1] < 2:
        raise InputError("a silhouette needs at least two clusters")
    nearest, following = np.partition(costs.astype(np.float64, copy=False), 1, axis=1)[:, :2].T
    share = np.divide(nearest, following, out=np.ones(len(costs)), where=following > 0)
    return float(np.average(1 - share, weights=_check_sample_weight(sample_weight, costs)))
