"""Additive rankers: one function per column, fitted with the objectives of the linear rankers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations, product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.kernels.ramps import cell_sums
from apexrank.parameters import whole
from apexrank.penalties import Bounded, GroupLasso, Penalty
from apexrank.preprocessing.ramps import coded, learn_basis
from apexrank.problem.design import Make, Training
from apexrank.problem.problem import Problem
from apexrank.problem.ramps import Places, RampBasis, RampRows
from apexrank.rankers.base import LinearEstimator, checked_rows, monotone_signs, read_rows
from apexrank.rankers.push import PNormPush
from apexrank.rankers.retarget import MonotoneRetargeting
from apexrank.rankers.search import PNormPushCV

PAIR_KNOTS = 6
PAIR_STRENGTH = 10.0
MOST_SCREENED = 64  # columns with the largest effects that are screened for pairs
SCREENED_ROWS = 100_000
BACKFITTED = 10  # iterations of backfitting over the rows and columns of a grid


class Shape(NamedTuple):
    """Effect of a column: linear between the knots, constant outside them.

    Attributes
    ----------
    feature : int
        Column of X.
    knots, values : arrays of shape (m,)
        Value of the effect at each knot; its mean over the training rows is 0.
    missing : float
        Effect of a missing value; 0, the mean, if training had no missing values.
    counts : array of shape (m − 1,), or (m,) for text columns
        Total weight of the training rows between neighbouring knots, or at each level.
    missing_count : float
        Total weight of the training rows with a missing value.
    levels : tuple of str
        Values of a text column; its knots are 0, 1, 2, ….

    Examples
    --------
    >>> shape = Shape(0, np.array([0.0, 1.0]), np.array([-1.0, 1.0]), 0.5, np.ones(1), 1.0)
    >>> shape(np.array([0.25, 7.0, np.nan])).tolist()
    [-0.5, 1.0, 0.5]
    """

    feature: int
    knots: np.ndarray
    values: np.ndarray
    missing: float
    counts: np.ndarray
    missing_count: float
    levels: tuple[str, ...] = ()

    def check(self, n_features: int) -> None:
        """Raise InputError unless this is a function of one of the columns of X."""
        m = len(self.knots)
        sized = len(self.levels) in (0, m) and len(self.counts) == (m if self.levels else max(1, m - 1))
        if not (sized and 0 <= self.feature < n_features and m > 0):
            raise InputError(f"the function of column {self.feature} has arrays of different lengths")

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Effect of each value; a text column is passed as codes."""
        return np.where(np.isnan(x), self.missing, np.interp(x, self.knots, self.values))


class PairShape(NamedTuple):
    """Joint effect of two columns, in addition to their separate effects.

    Bilinear between the knots, constant outside them, and 0 if either value is missing.

    Examples
    --------
    >>> grid = np.array([[0.0, 0.0], [0.0, 2.0]])
    >>> pair = PairShape((0, 1), (np.array([0.0, 1.0]), np.array([0.0, 1.0])), grid)
    >>> pair(np.array([0.5, 1.0, np.nan]), np.array([0.5, 9.0, 1.0])).tolist()
    [0.5, 2.0, 0.0]
    """

    features: tuple[int, int]
    knots: tuple[np.ndarray, np.ndarray]
    values: np.ndarray

    def check(self, n_features: int) -> None:
        """Raise InputError unless this is a function of two of the columns of X."""
        first, second = self.features
        sized = self.values.shape == tuple(map(len, self.knots)) and self.values.size
        if not (sized and 0 <= first < n_features and 0 <= second < n_features and first != second):
            raise InputError(f"the function of the columns {self.features} has arrays of different lengths")

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Effect of each pair of values."""
        places = Places(np.column_stack([x, y]), self.knots)
        known = (places.code < places.widths).all(axis=1)
        (a, b), (s, t) = np.where(known, places.code.T.astype(int), 0), places.fraction.T
        above, right = np.minimum(np.array([a, b]) + 1, places.widths[:, None] - 1)
        v = self.values
        low = v[a, b] + t * (v[a, right] - v[a, b])
        high = v[above, b] + t * (v[above, right] - v[above, b])
        return np.where(known, low + s * (high - low), 0.0)


ADDITIVE: dict[str, list[Any]] = {
    "n_knots": [whole(2)],
    "n_pairs": [whole(0)],
    "monotonic_cst": [None, Mapping, "array-like"],
}


@dataclass(eq=False, repr=False)
class AdditiveFit(LinearEstimator):
    """Base class that turns the linear ranker it is combined with into an additive one."""

    _: KW_ONLY
    n_knots: int = 33
    n_pairs: int = 0
    monotonic_cst: Mapping[Any, int] | Sequence[int] | None = None

    takes_device_arrays: ClassVar[bool] = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _as_numbers(self, X: Any, reset: bool) -> Any:
        """Convert the text columns of a frame to numbers."""
        known = None if reset else {shape.feature: shape.levels for shape in self.shapes_ if shape.levels}
        X, levels = coded(X, known)
        if reset:
            self._levels = levels
        return X

    def _minimise(self, data: Training, make: Make) -> Problem:
        """Fit the functions of columns, choose pairs by the remaining gradient, and fit both jointly."""
        encoded = self._encoded(data)
        problem = super()._minimise(encoded, make)
        if self.n_pairs:
            return self._add_pairs(encoded, problem, make)
        self._keep(encoded)
        return problem

    def _add_pairs(self, encoded: Training, problem: Problem, make: Make) -> Problem:
        """Fit functions of columns and pairs, starting from a fit without pairs."""
        paired = self._with_pairs(encoded, problem)
        self._start = np.concatenate([self.coef_, np.zeros(paired.X.shape[1] - len(self.coef_))])
        problem = super()._minimise(paired, make)
        self._keep(paired)
        return problem

    def _encoded(self, data: Training) -> Training:
        if type(data) is not Training:
            raise InputError(f"{type(self).__name__} needs its rows in memory: give an array or a frame")
        if isinstance(data.X, RampRows):
            return data
        basis = learn_basis(data.X, data.weight, self.n_knots, self._levels)
        return Training(RampRows(data.X, basis), data.labels, data.weight, data.groups)

    def _warm(self) -> np.ndarray | None:
        start = self.__dict__.pop("_start", None)
        return super()._warm() if start is None else start

    def _penalty_on(self, data: Training, objective: Any) -> Penalty:
        penalty = super()._penalty_on(data, objective)
        signs = self._signs(data.X.basis)
        if not signs.any():
            return penalty
        return Bounded(penalty, np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf))

    def _signs(self, basis: RampBasis) -> np.ndarray:
        """Sign constraint of each coefficient: 1 non-negative, −1 non-positive, 0 free."""
        signs = np.zeros(int(basis.columns[-1]))
        for j, sign in monotone_signs(self, len(basis.knots)).items():
            if basis.levels[j]:
                raise InputError(f"`monotonic_cst` is for columns of numbers, but column {j} holds text")
            first, ramps = basis.columns[j], len(basis.knots[j]) - 1
            signs[first : first + ramps] = sign
        return signs

    def _with_pairs(self, data: Training, problem: Problem) -> Training:
        """Add the pairs of columns in whose cells the gradient of the objective is largest."""
        X, basis = data.X.values, data.X.basis
        v, w = basis.matrix @ self.coef_, np.ones(len(X)) if data.weight is None else data.weight
        mass = data.X.scatter(w)
        spread = np.zeros(len(basis.knots))
        for j in range(len(spread)):
            own = slice(basis.starts[j], basis.starts[j + 1])
            spread[j] = (
                np.average(v[own] ** 2, weights=mass[own]) - np.average(v[own], weights=mass[own]) ** 2
            )
        free = [
            j
            for j in range(len(spread))
            if j not in monotone_signs(self, len(spread)) and len(basis.knots[j]) > 1
        ]
        chosen = sorted(sorted(free, key=lambda j: -spread[j])[:MOST_SCREENED])
        few = {j: few_knots(basis.knots[j], basis.levels[j]) for j in chosen}
        chosen = [j for j in chosen if len(few[j]) > 1]
        places = Places(np.ascontiguousarray(X[:, chosen]), [few[j] for j in chosen])
        residual = problem.objective.value_and_grad(problem.design.scores(self.coef_))[1]
        best = screen_pairs(places, residual, w)[: self.n_pairs]
        pairs = [(chosen[a], chosen[b]) for a, b in best]
        weights = {j: knot_mass(places, place, w) for place, j in enumerate(chosen)}
        paired = replace(
            basis, pairs=pairs, pair_knots=few, pair_weights=weights, pair_strength=PAIR_STRENGTH
        )
        rows = RampRows(X, paired, data.X.places)
        return Training(rows, data.labels, data.weight, data.groups)

    def _keep(self, data: Training) -> None:
        """Store the functions, each centred to mean 0 over the training rows."""
        rows, basis = data.X, data.X.basis
        weight = np.ones(rows.shape[0]) if data.weight is None else data.weight
        v, mass = basis.matrix @ np.ravel(self.coef_), rows.scatter(weight)
        self.shapes_, self.pairs_, self._offset = [], [], 0.0
        for j, knots in enumerate(basis.knots):
            first, width = basis.starts[j], len(knots)
            own, own_mass = v[first : first + width + 1], mass[first : first + width + 1]
            mean = float(np.average(own, weights=own_mass))
            self._offset += mean
            counts = np.bincount(rows.places.code[:, j], weight, minlength=width + 1)
            levels: tuple[str, ...] = ()
            between = counts[: max(1, width - 1)].copy()
            if basis.levels[j]:
                levels, between = tuple(self._levels[j]), counts[:width]
            elif width > 1:
                between[-1] += counts[width - 1]
            missing = float(own[width] - mean) if basis.missing[j] else 0.0
            self.shapes_.append(
                Shape(j, knots, own[:width] - mean, missing, between, float(counts[width]), levels)
            )
        for q, (j, k) in enumerate(basis.pairs):
            first, both = basis.starts[len(basis.knots) + q], (basis.pair_knots[j], basis.pair_knots[k])
            grid = v[first : first + len(both[0]) * len(both[1])].reshape(len(both[0]), len(both[1]))
            self.pairs_.append(PairShape((j, k), both, grid))

    def _scores(self, X: ArrayLike) -> np.ndarray:
        rows = checked_rows(self, X)
        return sum((effect for _, effect in self._effects(rows)), np.zeros(len(rows)))

    def _effects(self, rows: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """Columns and effect of each function, in turn."""
        for shape in self.shapes_:
            yield (shape.feature,), shape(rows[:, shape.feature])
        for pair in self.pairs_:
            yield pair.features, pair(*rows[:, pair.features].T)

    def contributions(self, X: ArrayLike) -> np.ndarray:
        """Contributions to scores beyond the mean, rows by columns; a pair is split equally between its columns."""
        rows = checked_rows(self, X)
        out = np.zeros(rows.shape)
        for columns, effect in self._effects(rows):
            for j in columns:
                out[:, j] += effect / len(columns)
        return out


def few_knots(knots: np.ndarray, levels: bool) -> np.ndarray:
    """Knots of a column within pairs: a subset of its own knots, evenly spaced over its quantiles."""
    if levels:
        return knots if len(knots) <= PAIR_KNOTS else knots[:1]
    return knots[np.unique(np.round(np.linspace(0, len(knots) - 1, min(PAIR_KNOTS, len(knots)))).astype(int))]


def knot_mass(places: Places, column: int, weight: np.ndarray) -> np.ndarray:
    """Weight of the rows at each knot of a column, interpolated between neighbouring knots."""
    width, code, t = (
        int(places.widths[column]),
        places.code[:, column].astype(int),
        places.fraction[:, column],
    )
    mass = np.bincount(code, weight * (1 - t), minlength=width + 2) + np.bincount(
        code + 1, weight * t, minlength=width + 2
    )
    return np.maximum(mass[:width], 1e-9 * weight.sum())


def screen_pairs(places: Places, residual: np.ndarray, weight: np.ndarray) -> list[tuple[int, int]]:
    """Rank pairs of columns by how much of the residuals their cells explain beyond either column alone.

    On the grid of cells between knots, the score of a pair is ``Σ E²/N``, where E is the sum of the residuals in a cell
    minus its additive part and N the weight of the cell. Large data sets are subsampled.
    """
    pairs = np.array([*combinations(range(len(places.widths)), 2)], dtype=np.int64).reshape(-1, 2)
    code = places.code
    if len(code) > SCREENED_ROWS:
        some = np.random.default_rng(0).choice(len(code), SCREENED_ROWS, replace=False)
        code, residual, weight = code[some], residual[some], weight[some]
    size = int(places.widths.max(initial=1))
    sums, counts = np.zeros((2, len(pairs), size, size))
    cell_sums(
        np.ascontiguousarray(code.T), residual, weight, pairs, places.widths, 0, len(pairs), sums, counts
    )
    left = sums - counts * additive_part(sums, counts)
    strength = (left**2 / np.maximum(counts, 1e-12)).sum(axis=(1, 2), where=counts > 0)
    return [(int(a), int(b)) for a, b in pairs[np.argsort(-strength, kind="stable")].tolist()]


def additive_part(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Additive weighted least-squares fit of the cell means ``sums/counts`` of each grid."""
    rows, columns = (np.maximum(counts.sum(axis=axis), 1e-12) for axis in (2, 1))
    a, b = np.zeros(rows.shape), np.zeros(columns.shape)
    for _ in range(BACKFITTED):
        a = (sums - counts * b[:, None, :]).sum(axis=2) / rows
        b = (sums - counts * a[:, :, None]).sum(axis=1) / columns
    return a[:, :, None] + b[:, None, :]


@dataclass(eq=False, repr=False)
class AdditivePush(AdditiveFit, PNormPush):
    """P-Norm Push with additive scores: one piecewise linear function per column.

    The score is ``f(x) = Σ_j f_j(x_j)``, plus ``n_pairs`` functions of two columns. It minimises the objective of
    :class:`PNormPush` with the penalty ``alpha/2·Σ_j M_j·Σ_m (f_j(k_m) − f_j(k_{m−1}))²`` on the M_j increments of
    each function between its knots. The problem is convex: ``dual_gap_`` certifies the minimum, and every effect can
    be plotted (:class:`apexrank.plot.ShapeDisplay`). Columns need no scaling. Missing values (NaN) have their own
    effect, or the mean effect, 0, if training had none. Text columns of a data frame have one effect per value; a value
    not seen in training counts as missing.

    Parameters
    ----------
    p, loss, price, side, balance, solver, max_iter, tol, warm_start, verbose
        As in :class:`PNormPush`.
    alpha : float or "auto"
        Smoothness: larger values give flatter functions. ``"auto"`` is ``d/12·(1/n₊ + 1/n₋)`` for d columns;
        :class:`AdditivePushCV` chooses alpha by cross-validation.
    l1_ratio : float, default 0
        Share of the group lasso ``Σ_j √M_j·|√M_j·β_j|`` in the penalty, where β_j are the increments of column j. Above
        0, whole columns and pairs can drop out; :meth:`alpha_max` gives the scale. Must be below 1, and cannot be
        combined with ``monotonic_cst``.
    n_knots : int, default 33
        Maximum number of knots of a column, placed at its quantiles; a column with fewer distinct values has a knot at
        each of them.
    n_pairs : int, default 0
        Number of pairs of columns with a joint effect. They are chosen from the fit of single columns, by the gradient
        of the objective minus its additive part on a grid of cells. All functions are then fitted jointly.
    monotonic_cst : dict or sequence of int, optional
        1 for columns whose effect must not decrease, −1 for columns whose effect must not increase, 0 for others; a
        dict by name or position, or one value per column. Such columns are not used in pairs. The effect of a missing
        value is not constrained.

    Attributes
    ----------
    shapes_ : list of Shape
        Effect of each column.
    pairs_ : list of PairShape
        Joint effects, in the order in which the pairs were chosen.
    coef_ : array of shape (1, n)
        Coefficients of the ramps and of the whitened functions of pairs, as solved.
    intercept_, classes_, alpha_, objective_, dual_gap_, grad_norm_, converged_, n_iter_, history_
        As in :class:`PNormPush`. The score is ``intercept_[0]`` plus all effects.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = np.abs(X[:, 0]) + X[:, 1] + rng.normal(size=1000) > 2
    >>> ranker = AdditivePush(monotonic_cst={1: 1}).fit(X, y)
    >>> ranker.dual_gap_ < 1e-9
    True
    >>> bool((np.diff(ranker.shapes_[1].values) >= 0).all())
    True
    >>> low, middle, high = ranker.shapes_[0](np.array([-2.0, 0.0, 2.0]))
    >>> bool(min(low, high) > middle)
    True
    """

    _parameter_constraints: ClassVar[dict] = PNormPush._parameter_constraints | ADDITIVE

    def _intercept(self, data: Training, problem: Problem, w: np.ndarray) -> float:
        return super()._intercept(data, problem, w) + self._offset

    def _auto_alpha(self, data: Training, objective: Any) -> float:
        """``d/12·(1/n₊ + 1/n₋)``; 1/12 is the variance of a line that rises by 1 over uniformly spread values."""
        noise = getattr(objective, "push", objective).noise
        d = sum(len(knots) > 1 for knots in data.X.basis.knots)
        return float(np.sqrt(noise / 12)) if self.l1_ratio > 0 else max(1, d) / 12 * noise

    def _penalty_on(self, data: Training, objective: Any) -> Penalty:
        penalty = super()._penalty_on(data, objective)
        if self.l1_ratio == 0:
            return penalty
        if penalty.is_bounded:
            raise InputError("`l1_ratio` > 0 and `monotonic_cst` cannot be combined: leave out one of them")
        basis = data.X.basis
        return GroupLasso(
            np.repeat(np.arange(len(basis.blocks)), np.diff(basis.columns)), self.alpha_, self.l1_ratio
        )


def additive_path(
    X: ArrayLike,
    y: ArrayLike,
    alphas: Sequence[float],
    *,
    ps: Sequence[float] = (4.0,),
    n_pairs: Sequence[int] = (0,),
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> list[AdditivePush]:
    """One fitted :class:`AdditivePush` for each of ``product(n_pairs, alphas, ps)``.

    The rows are encoded once, and each fit starts from the previous one; a fit with pairs starts from the one without.
    ``options`` are those of :class:`AdditivePush`. Pass the alphas in decreasing order.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = additive_path(X[:, :4], y, [1, 0.1], n_pairs=[0, 2])
    >>> [(ranker.alpha, len(ranker.pairs_)) for ranker in path]
    [(1, 0), (0.1, 0), (1, 2), (0.1, 2)]
    """
    ranker = AdditivePush(warm_start=True, **options)
    ranker._validate_params()
    data = ranker._encoded(read_rows(ranker, X, y, sample_weight, None, binary=True))
    found: list[list[AdditivePush]] = [[] for _ in n_pairs]
    for alpha, p in product(alphas, ps):
        problem = ranker.set_params(alpha=alpha, p=p)._minimise(data, ranker._objective)
        for path, number in zip(found, n_pairs, strict=True):
            own = copy(ranker).set_params(n_pairs=number)
            solved = own._add_pairs(data, problem, own._objective) if number else problem
            path.append(own._finish(data, solved))
    return [fitted for path in found for fitted in path]


@dataclass(eq=False, repr=False)
class AdditivePushCV(AdditiveFit, PNormPushCV):
    """Additive push with p and alpha chosen by cross-validation on a top-of-list metric.

    Parameters and attributes are those of :class:`PNormPushCV` and :class:`AdditivePush`; alpha is the smoothness.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = AdditivePushCV(ps=[1, 4], cv=3).fit(X[:, :6], y)
    >>> len(search.shapes_), search.p_ in (1, 4)
    (6, True)
    """

    _parameter_constraints: ClassVar[dict] = PNormPushCV._parameter_constraints | ADDITIVE

    warm_start: ClassVar[bool] = False  # type: ignore[misc]

    _kind = AdditivePush


@dataclass(eq=False, repr=False)
class AdditiveRetargeting(AdditiveFit, MonotoneRetargeting):
    """Monotone retargeting with additive scores, for graded lists: one function per column.

    Parameters and attributes are those of :class:`MonotoneRetargeting`, except kernels and ``partial_fit``, plus
    ``n_knots``, ``n_pairs``, ``monotonic_cst``, ``shapes_`` and ``pairs_`` of :class:`AdditivePush`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.normal(size=(60, 2)), np.repeat(np.arange(6), 10)
    >>> y = np.digitize(np.abs(X[:, 0]), [0.5, 1.0])
    >>> ranker = AdditiveRetargeting(alpha=1e-2, n_knots=9).fit(X, y, groups=groups)
    >>> ranker.score(X, y, groups=groups) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict] = MonotoneRetargeting._parameter_constraints | ADDITIVE

    @property
    def partial_fit(self) -> Any:
        raise AttributeError("additive functions are fitted on all rows at once: use fit")

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.kernel is not None:
            raise InputError("additive scores have no kernel: set `kernel=None`, or use MonotoneRetargeting")
        if self.bounds is not None:
            raise InputError(
                "additive scores are counted from their mean: set `bounds=None`, or use MonotoneRetargeting"
            )
