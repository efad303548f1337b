"""k-means clustering of score vectors, with orders as centres.

The cost of row x in a cluster with order σ and mean μ is, with a = ``euclidean``,

    d(x‖σ) + a/2·|x − μ|²  =  [f̂(x) + a/2·|x|²]  +  a/2·|μ|²  −  x·(h_σ + a·μ):

that is, a constant of the row, computed once, a constant of the centre, and an inner product. The best centre of given
rows is their weighted mean μ with the order of its entries, for both terms at once (Iyer and Bilmes 2013, section 4).

d(x‖σ) does not change when a constant is added to a row. So x and μ are centred by their means x̄ and μ̄ over the n
items, which preserves precision for rows far from zero, and ``a·n/2·(x̄ − μ̄)²`` is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from apexrank.aggregation.lovasz_bregman import LovaszBregman
from apexrank.errors import InputError, warn
from apexrank.kernels.assign import Assignment, Costs, Table, all_costs, assign
from apexrank.parameters import checked, names, number, whole
from apexrank.submodular import SetFunction
from apexrank.validation import check_frame, check_weights

RESTARTS = 10  # for n_init="auto": a single start often ends in a poor local minimum
Init = Literal["k-means++", "random"] | ArrayLike | Callable[..., ArrayLike]


@dataclass(eq=False, repr=False)
class LovaszBregmanKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """k-means with Lovász–Bregman divergences: clusters of voters who order items alike.

    It minimises over k orders σ and the assignment c of rows

        Σ_i w_i · [ d_f(x_i‖σ_c(i)) + euclidean/2 · |x_i − μ_c(i)|² ],    d_f(x‖σ) = f̂(x) − x·h_σ,

    where x_i are the scores row i gives to the items (columns), larger is better, and μ_c is the weighted mean of
    cluster c. The order of μ_c is the best order for its rows, so both terms have one centre. (Iyer and Bilmes 2013,
    section 4.) Rows with clearer preferences count more: adding a constant to a row does not change d_f, and
    multiplying the row multiplies d_f.

    With ``euclidean=0`` only the order of a centre matters. There are n! orders of n items, just two for two items, and
    with more clusters than distinct orders some clusters are empty. As ``euclidean`` grows, the clusters approach those
    of scikit-learn's ``KMeans``, whose objective is twice the last term with ``euclidean=1``.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    f : str or SetFunction
        Submodular function: "sqrt", "log", … or an atom of :mod:`apexrank.submodular`.
    euclidean : float
        Weight of the additional term, half the squared Euclidean distance.
    init : {"k-means++", "random"}, array of shape (n_clusters, n_items), or callable
        Initial centres: rows drawn by their divergence from earlier ones, rows drawn by weight, score vectors, or the
        result of ``init(X, n_clusters, random_state=…)``.
    n_init : "auto" or int
        Number of starts, of which the best is kept; "auto" is 10, or 1 if ``init`` is an array.
    max_iter : int
        Maximum number of steps per start.
    tol : float
        A run ends when a step lowers the objective by no more than ``tol`` times its value, or moves no row.
    random_state : int, RandomState or None
        Seed of the starts. Equal seeds give equal results for any number of threads.
    verbose : int
        1 prints a line per step.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_items)
        Mean score vectors μ.
    orders_ : array of shape (n_clusters, n_items)
        Items of each centre, best first; tied means are in the order of the columns.
    labels_ : array of shape (n_rows,)
        Nearest centre of each row, the first of tied ones.
    inertia_ : float
        Objective at ``orders_``, ``cluster_centers_`` and ``labels_``.
    n_iter_, converged_, history_
        Steps of the best start, whether it stopped by ``tol``, and the objective before the first step and after each.
    n_features_in_, feature_names_in_
        Number and names of the items.

    Notes
    -----
    An empty cluster gets the row farthest from its centre, among rows that do not leave their own cluster empty. Means
    are subject to rounding, so that tied means of scores other than whole numbers may be ordered either way.

    ``KMeans`` on raw scores clusters by the voters' generosity. On rows standardised to mean 0 and standard deviation 1
    it finds orders, too; it then tolerates more noise than "sqrt", which emphasises the first places, and as much as
    "product", whose gains decrease evenly.

    A step reads X once without copying. Weights act as repetitions of rows, also in the draws of the starts.

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

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [whole(1)],
        "f": [str, SetFunction],
        "euclidean": [number(0)],
        "init": [names(("k-means++", "random")), callable, "array-like"],
        "n_init": [names(("auto",)), whole(1)],
        "max_iter": [whole(1)],
        "tol": [number(0)],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    n_clusters: int = 8
    _: KW_ONLY
    f: str | SetFunction = "sqrt"
    euclidean: float = 0.0
    init: Init = "k-means++"
    n_init: Literal["auto"] | int = "auto"
    max_iter: int = 300
    tol: float = 1e-6
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    @checked
    def fit(self, X: ArrayLike, y: None = None, *, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster the rows of X; ``sample_weight`` counts as repetitions of rows, y is ignored."""
        rng = check_random_state(self.random_state)
        rows = self._rows(self._checked(X, reset=True), sample_weight)
        if self.n_features_in_ < 2:
            raise InputError("X has 1 feature(s): an order needs at least two items, one column each")
        if (n := len(rows.weight)) < self.n_clusters:
            raise InputError(f"n_samples={n} should be >= `n_clusters={self.n_clusters}`: lower `n_clusters`")
        self._keep(self._best_run(rows, rng))
        return self

    def _best_run(self, rows: ScoreVectors, rng: np.random.RandomState) -> LloydRun:
        n_starts = RESTARTS if self.n_init == "auto" else int(self.n_init)
        if not (isinstance(self.init, str) or callable(self.init)):
            n_starts = 1  # all starts from given centres are the same
        verbose = bool(self.verbose)
        starts = (self._first_centres(rows, rng) for _ in range(n_starts))
        runs = (lloyd(rows, centres, self.max_iter, self.tol, verbose) for centres in starts)
        return min(runs, key=lambda run: run.history[-1])

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the nearest centre of each row."""
        check_is_fitted(self)
        scores = self._checked(X)
        # the nearest centre depends neither on weights nor on the rows' constants
        nothing = np.zeros(len(scores))
        table = Table(scores, scores.mean(axis=1, dtype=np.float64), nothing)
        return assign(table, nothing, self._centres().costs).labels

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Compute the divergence of each row from each centre, with the Euclidean part: shape (n_rows, n_clusters)."""
        check_is_fitted(self)
        scores = self._checked(X)
        return all_costs(self._cost().table(scores), self._centres().costs).astype(scores.dtype, copy=False)

    def score(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the objective of the rows at the fitted centres; larger is better."""
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

    def _checked(self, X: Any, reset: bool = False) -> np.ndarray:
        check_frame(X)
        return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], order="C")

    def _rows(self, scores: np.ndarray, sample_weight: Any) -> ScoreVectors:
        weight = _check_sample_weight(sample_weight, scores, dtype=np.float64, ensure_non_negative=True)
        check_weights(weight)
        if not weight.any():
            raise InputError("all rows have weight 0: give at least one row a weight above 0")
        return ScoreVectors(scores, weight, self._cost())

    def _first_centres(self, rows: ScoreVectors, rng: np.random.RandomState) -> Centres:
        if isinstance(self.init, str):
            return draw_centres(rows, self.n_clusters, rng, spread=self.init == "k-means++")
        given = self.init(rows.X, self.n_clusters, random_state=rng) if callable(self.init) else self.init
        return self._given_centres(given)

    def _given_centres(self, given: Any) -> Centres:
        shape = self.n_clusters, self.n_features_in_
        try:
            means = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"`init` must be finite scores of shape {shape}") from None
        if means.shape != shape or not np.isfinite(means).all():
            raise InputError(f"`init` must be finite scores of shape {shape}, got shape {means.shape}")
        return self._cost().centres(means)

    def _keep(self, run: LloydRun) -> None:
        self.cluster_centers_, self.orders_ = run.centres.means, run.centres.orders
        self.labels_, self.inertia_ = run.labels, run.history[-1]
        self.history_, self.n_iter_ = np.array(run.history), len(run.history) - 1
        self.converged_ = run.converged
        members = len(np.unique(run.labels))
        few = (
            f"only {members} of {self.n_clusters} clusters have rows: there are too few different orders. "
            "Lower `n_clusters`, or set `euclidean` above 0."
        )
        early = f"not converged after {self.n_iter_} steps: rows still move. Raise `max_iter` or `tol`."
        for doubt, holds in ((few, members < self.n_clusters), (early, not run.converged)):
            if holds:
                warn(doubt, ConvergenceWarning)

    def _cost(self) -> Cost:
        return Cost(LovaszBregman(self.f), float(self.euclidean))

    def _centres(self) -> Centres:
        return self._cost().centres(self.cluster_centers_, self.orders_)


def elbow(
    X: ArrayLike, k_range: Iterable[int], *, sample_weight: ArrayLike | None = None, **parameters: Any
) -> dict[int, float]:
    """Compute the objective by number of clusters, for the elbow method.

    Choose the k after which the objective decreases slowly. ``parameters`` are those of :class:`LovaszBregmanKMeans`.

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
    """Simplified silhouette: weighted mean of ``1 − a/b``, with a row's divergences from its nearest and next centre.

    Values near 1 mean that the clusters are far apart, values near 0 that rows could just as well be in the next one. A
    row at equal divergence from both counts 0. It needs the divergences from k centres, whereas the common silhouette
    needs those of all pairs of rows.

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


BLOCK = 4096  # rows sorted at a time: the sorted copies stay small
GOLDEN = (1 + 5**0.5) / 2


class Centres(NamedTuple):
    """k centres: mean score vectors, their orders, and their terms of the cost."""

    means: np.ndarray
    orders: np.ndarray
    costs: Costs


class LloydRun(NamedTuple):
    """Result of one start: centres, labels of the rows, and the objective before the first step and after each."""

    centres: Centres
    labels: np.ndarray
    history: list[float]
    converged: bool


@dataclass(frozen=True)
class Cost:
    """Cost ``d_f(x‖σ) + euclidean/2·|x − μ|²`` of a row and a centre."""

    divergence: LovaszBregman
    euclidean: float

    def centres(self, means: np.ndarray, orders: np.ndarray | None = None) -> Centres:
        """Make centres from means, with their own or given orders; tied items are in the order of their columns."""
        if orders is None:
            orders = np.argsort(-means, axis=1, kind="stable")
        level = means.mean(axis=1)
        centred = means - level[:, None]
        slopes = self.divergence.gradients(orders) + self.euclidean * centred
        bias = 0.5 * self.euclidean * np.einsum("ij,ij->i", centred, centred)
        return Centres(means, orders, Costs(slopes, bias, level, 0.5 * self.euclidean * means.shape[1]))

    def noise(self, n_items: int, span: float) -> float:
        """Bound the rounding error of the cost of a row with scores at most ``span`` apart."""
        length = np.abs(self.divergence.gradients(np.arange(n_items))).sum() + self.euclidean * n_items * span
        return n_items * float(np.finfo(np.float64).eps) * span * float(length)

    def table(self, X: np.ndarray) -> Table:
        """Compute the means and constants of the rows in one pass."""
        means, constant = X.mean(axis=1, dtype=np.float64), np.empty(len(X))
        for part in gen_batches(len(X), BLOCK):
            centred = X[part] - means[part, None]
            squares = np.einsum("ij,ij->i", centred, centred)
            constant[part] = self.divergence.extension(centred) + 0.5 * self.euclidean * squares
        return Table(X, means, constant)


class ScoreVectors:
    """Score vectors with their weights and the quantities that stay constant across steps."""

    def __init__(self, X: np.ndarray, weight: np.ndarray, cost: Cost) -> None:
        self.X, self.weight, self.cost = X, weight, cost
        self.table = cost.table(X)
        self.noise = cost.noise(X.shape[1], float(X.max()) - float(X.min()))

    def assign(self, centres: Centres) -> Assignment:
        """Assign each row to its nearest centre."""
        return assign(self.table, self.weight, centres.costs)

    def centres_at(self, chosen: np.ndarray | list[int]) -> Centres:
        """Return the chosen rows as centres."""
        return self.cost.centres(self.X[chosen].astype(np.float64))


# ---------------------------------------------------------------- steps


def lloyd(rows: ScoreVectors, centres: Centres, max_iter: int, tol: float, verbose: bool = False) -> LloydRun:
    """Alternate between moving centres to the means of their rows and assigning rows to the nearest centres.

    Neither half of a step increases the objective. Iteration stops when no row changes its centre, or when the
    objective decreases by at most ``tol`` times its value.
    """
    found = rows.assign(centres)
    history = [found.value]
    converged = False
    while not converged and len(history) <= max_iter:
        before = refill(rows, found)
        full, means = before.mass > 0, centres.means.copy()
        means[full] = before.sums[full] / before.mass[full, None]  # a centre without rows stays unchanged
        centres = rows.cost.centres(means)
        found = rows.assign(centres)
        history.append(found.value)
        if verbose:
            print(f"step {len(history) - 1}: objective {history[-1]:.6g}", flush=True)
        fall = history[-2] - history[-1]
        converged = fall <= tol * history[-1] or np.array_equal(before.labels, found.labels)
    return LloydRun(centres, found.labels, history, converged)


def refill(rows: ScoreVectors, found: Assignment) -> Assignment:
    """Give each empty cluster the row farthest from its centre, and all rows equal to it.

    Only rows that do not leave their own cluster empty and whose cost exceeds rounding errors are moved, so that the
    objective decreases. If there are none, clusters stay empty.
    """
    empty = np.flatnonzero(found.mass == 0)
    if not len(empty):
        return found
    labels, mass, sums = found.labels.copy(), found.mass.copy(), found.sums.copy()
    far = np.where((rows.weight > 0) & (found.costs > rows.noise), found.costs, 0.0)
    for c in empty:
        while far.any():
            i = int(np.argmax(far))
            old = labels[i]
            equal = np.flatnonzero((far == far[i]) & (labels == old))
            values = rows.X[equal]
            own = values[np.searchsorted(equal, i)]
            equal = equal[(values == own).all(axis=1)]
            far[equal] = 0.0
            if np.count_nonzero((labels == old) & (rows.weight > 0)) > len(equal):
                weight = rows.weight[equal].sum()
                moved = weight * own.astype(np.float64)
                labels[equal], mass[c], sums[c] = c, weight, moved
                mass[old] -= weight
                sums[old] -= moved
                break
    return found._replace(labels=labels, mass=mass, sums=sums)


# ---------------------------------------------------------------- starts


def draw_centres(rows: ScoreVectors, k: int, rng: Any, *, spread: bool) -> Centres:
    """Draw rows as initial centres, one after the other.

    With ``spread`` (k-means++ with the cost instead of the squared distance) rows are drawn with probability
    proportional to their weight times their cost at the nearest centre so far, and the best of 2 + ⌊ln k⌋ draws is
    kept; otherwise with probability proportional to their weight, among rows of non-zero cost. Weights act as
    repetitions, and the order of the rows does not matter, because draws follow an order that depends only on the rows'
    values.
    """
    n_items = rows.X.shape[1]
    # a generic direction, along which distinct rows have distinct positions
    direction = ((np.arange(1, n_items + 1) * GOLDEN) % 1).astype(rows.X.dtype)
    sequence = np.argsort(np.einsum("ij,j->i", rows.X, direction), kind="stable")
    trials = 2 + int(np.log(k)) if spread else 1
    nearest = np.full(len(rows.X), np.inf)
    chosen: list[int] = []
    for _ in range(k):
        share = rows.weight * (nearest if chosen and spread else nearest > 0)
        if not share.any():  # every row coincides with a centre
            share = rows.weight
        candidates = _draws(share, sequence, rng.random(trials))
        costs = all_costs(rows.table, rows.centres_at(candidates).costs)
        costs[costs <= rows.noise] = 0.0
        np.minimum(costs, nearest[:, None], out=costs)
        best = int(np.argmin(np.einsum("i,ij->j", rows.weight, costs)))
        chosen.append(int(candidates[best]))
        nearest = costs[:, best].copy()
    return rows.centres_at(chosen)


def _draws(share: np.ndarray, sequence: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return the rows at the given quantiles of the cumulative shares along the sequence."""
    total = np.cumsum(share[sequence])
    last = np.searchsorted(total, total[-1])
    return sequence[np.minimum(np.searchsorted(total, uniform * total[-1], side="right"), last)]
