"""Additive rankers: one function per column, fitted with the objectives of the linear rankers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import count, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.special import expit
from scipy.stats import norm

from apexrank.errors import InputError
from apexrank.objectives.base import Objective
from apexrank.objectives.log_loss import LogLoss
from apexrank.parameters import between, names, whole
from apexrank.penalties import Bounded, Penalty, Ridge
from apexrank.preprocessing.ramps import coded, learn_basis
from apexrank.problem.design import Make, Training
from apexrank.problem.problem import Problem
from apexrank.problem.ramps import Places, RampBasis, RampDesign, RampRows
from apexrank.rankers.base import LinearEstimator, TwoClasses, checked_rows, monotone_signs
from apexrank.rankers.interactions import (
    MOST_LEVELS,
    MOST_SCREENED,
    Pair,
    screen_pairs,
    supported,
    with_pairs,
)
from apexrank.rankers.logistic import LogisticRanker
from apexrank.rankers.push import AUTO_ALPHA, PNormPush
from apexrank.rankers.retarget import MonotoneRetargeting
from apexrank.rankers.smoothness import Curvature, Hessian, Strengths, find_strengths

PAIR_STRENGTH = 10.0  # of a pair in the beginning, or without strengths of its own
ROUNDS, A_ROUND = 4, 10  # rounds of pairs, and most pairs in each
REMARKABLE = 1.0  # standard deviations above chance of a pair that is added after the first round
MOST_COEFFICIENTS = 4096  # columns of numbers get fewer knots beyond
WIDEST = 10_000  # coefficients or rows of a dense factor, whichever are fewer
STRENGTH_ROWS = 50_000  # rows from which strengths and pairs are chosen
LARGEST_P = 64.0  # in the scale of the penalty
PERCENT = np.arange(1, 100)
DRAWS = 2000  # of each curve, for simultaneous bands
EVIDENCE = 0.5  # least log Bayes factor of a pair, in units of the logarithm of the number of candidates


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
    errors : array of shape (m + 1,), optional
        Standard error at each knot, and of a missing value.
    reach : array of shape (99,), optional
        Percentiles of the largest error at any knot, in standard errors.

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
    errors: np.ndarray | None = None
    reach: np.ndarray | None = None

    def check(self, n_features: int) -> None:
        """Raise InputError unless this is a function of one of the columns of X."""
        m = len(self.knots)
        sized = len(self.levels) in (0, m) and len(self.counts) == (m if self.levels else max(1, m - 1))
        parts = [len(part) for part in (self.errors, self.reach) if part is not None]
        if not (sized and parts in ([], [m + 1, len(PERCENT)]) and 0 <= self.feature < n_features and m > 0):
            raise InputError(f"the function of column {self.feature} has arrays of different lengths")

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Effect of each value; a text column is passed as codes."""
        return np.where(np.isnan(x), self.missing, np.interp(x, self.knots, self.values))

    def band(self, x: np.ndarray, confidence: float = 0.9, *, simultaneous: bool = True) -> np.ndarray:
        """Ends of the band at each value, shape (2, len(x)); NaN if the fit gave none.

        A simultaneous band holds the whole curve with this probability, a pointwise one each value by itself.
        """
        if self.errors is None or self.reach is None:
            return np.full((2, len(x)), np.nan)
        factor = (
            np.interp(100 * confidence, PERCENT, self.reach)
            if simultaneous
            else norm.ppf(0.5 + confidence / 2)
        )
        error = np.where(np.isnan(x), self.errors[-1], np.interp(x, self.knots, self.errors[:-1]))
        return self(x) + factor * np.stack([-error, error])


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
    "n_pairs": [names(("auto",)), whole(0)],
    "monotonic_cst": [None, Mapping, "array-like"],
}


@dataclass(eq=False, repr=False)
class Additive(LinearEstimator):
    """Base class of estimators whose scores are sums of functions of the columns."""

    _: KW_ONLY
    n_knots: int = 33
    n_pairs: int | str = "auto"
    monotonic_cst: Mapping[Any, int] | Sequence[int] | None = None

    takes_device_arrays: ClassVar[bool] = False
    takes_columns: ClassVar[bool] = True

    @property
    def levels_(self) -> dict[int, tuple[str, ...]]:
        """Values of each text column, by position."""
        return {shape.feature: shape.levels for shape in self.shapes_ if shape.levels}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _as_numbers(self, X: Any, reset: bool) -> Any:
        """Convert the text columns of a frame to numbers."""
        X, levels = coded(X, None if reset else self.levels_)
        if reset:
            self._levels = levels
        return X

    def _encoded(self, data: Training) -> Training:
        """The rows as positions between knots, so that scores are linear in the coefficients."""
        if type(data) is not Training:
            raise InputError(f"{type(self).__name__} needs its rows in memory: give an array or a frame")
        knots = min(self.n_knots, max(3, MOST_COEFFICIENTS // data.n_features))
        return with_rows(data, RampRows(data.X, learn_basis(data.X, data.weight, knots, self._levels)))

    def _minimise(self, data: Training, make: Make, start: np.ndarray | None = None) -> Problem:
        """Fit the functions of columns, choose pairs by the remaining gradient, and fit both jointly."""
        encoded = self._encoded(data)
        problem = super()._minimise(encoded, make)
        if self.n_pairs not in ("auto", 0):
            encoded = self._with_pairs(encoded, problem)
            start = np.append(self.coef_, np.zeros(encoded.n_features - len(self.coef_)))
            problem = super()._minimise(encoded, make, start)
        self._keep(encoded)
        return problem

    def _with_pairs(self, data: Training, problem: Problem) -> Training:
        """Add the pairs of columns in whose cells the gradient of the objective is largest."""
        rows, weight = data.X, weights_of(data)
        slope = problem.objective.value_and_grad(problem.design.scores(self.coef_))[1]
        columns = self._screened(rows, self.coef_, weight)
        pairs = screen_pairs(rows.basis, rows.values, columns, weight, slope, weight)[: int(self.n_pairs)]
        basis = with_pairs(rows.basis, rows.values, weight, pairs)
        strength = np.append(np.ones(rows.basis.n_terms), np.full(len(pairs), PAIR_STRENGTH))
        return with_rows(data, RampRows(rows.values, basis.with_strength(strength), rows.places))

    def _penalty_on(self, data: Training, objective: Any) -> Penalty:
        return self._bounded(super()._penalty_on(data, objective), data.X.basis)

    def _bounded(self, penalty: Penalty, basis: RampBasis) -> Penalty:
        """The penalty with the bounds of monotone columns."""
        signs = self._signs(basis)
        if not signs.any():
            return penalty
        return Bounded(penalty, np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf))

    def _signs(self, basis: RampBasis) -> np.ndarray:
        """Sign constraint of each coefficient: 1 non-negative, −1 non-positive, 0 free."""
        signs = np.zeros(int(basis.columns[-1]))
        for j, sign in monotone_signs(self, len(basis.knots)).items():
            if basis.levels[j]:
                name = getattr(self, "feature_names_in_", range(j + 1))[j]
                raise InputError(f"`monotonic_cst` is for columns of numbers, but column {name!r} holds text")
            first, ramps = basis.columns[j], len(basis.knots[j]) - 1
            signs[first : first + ramps] = sign
        return signs

    def _screened(self, rows: RampRows, w: np.ndarray, weight: np.ndarray) -> list[int]:
        """Columns that may be in pairs: those with the largest effects."""
        basis, mass = rows.basis, rows.scatter(weight)
        v, monotone = basis.matrix @ w, monotone_signs(self, len(basis.knots))
        spread = {}
        for j, knots in enumerate(basis.knots):
            own = slice(basis.starts[j], basis.starts[j + 1])
            wide = basis.levels[j] and len(knots) > MOST_LEVELS
            if len(knots) > 1 and j not in monotone and not wide:
                mean = np.average(v[own], weights=mass[own])
                spread[j] = np.average((v[own] - mean) ** 2, weights=mass[own])
        return sorted(sorted(spread, key=lambda j: -spread[j])[:MOST_SCREENED])

    def _keep(self, data: Training, curvature: Curvature | None = None) -> None:
        """Store the functions, each centred to mean 0 over the training rows, and their bands if there are any."""
        rows, basis = data.X, data.X.basis
        weight = weights_of(data)
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
            shape = Shape(j, knots, own[:width] - mean, missing, between, float(counts[width]), levels)
            some = np.arange(*basis.columns[j : j + 2])
            if curvature is not None and len(some) and curvature.free[some].all():
                errors, reach = band_of(basis.blocks[j], own_mass, curvature.covariance(some))
                errors[width] *= basis.missing[j]
                shape = shape._replace(errors=errors, reach=reach)
            self.shapes_.append(shape)
        for (a, b), first in zip(basis.pairs, basis.starts[len(basis.knots) :], strict=False):
            both = basis.sides[a], basis.sides[b]
            size = len(both[0].knots), len(both[1].knots)
            grid = v[first : first + size[0] * size[1]].reshape(size)
            columns, knots = (both[0].column, both[1].column), (both[0].knots, both[1].knots)
            self.pairs_.append(PairShape(columns, knots, grid))

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


@dataclass(eq=False, repr=False)
class AdditiveRanker(TwoClasses, Additive):
    """Additive scores with one smooth curve per column, and pairs of columns where the data call for them.

    The score is ``f(x) = b + Σ_j f_j(x_j)`` plus functions of two columns, each piecewise linear with a ridge on its
    increments. By default it is the log-odds of a logistic regression, and the strength of every ridge follows from the
    data by the marginal likelihood, without cross-validation (:mod:`apexrank.rankers.smoothness`): a column of noise
    becomes flat, one with a threshold keeps it. With ``p`` the P-Norm Push is minimised over the same functions with
    the same strengths. Either problem is convex: ``dual_gap_`` certifies the minimum. Columns need no scaling. Missing
    values (NaN) have their own effect, or the mean effect, 0, if training had none. Text columns of a data frame have
    one effect per value; a value not seen in training counts as missing.

    Parameters
    ----------
    p : float, optional
        Strength of the push, as in :class:`PNormPush`; None is logistic regression.
    alpha : "auto" or float
        ``"auto"`` gives each term a strength of its own. A number is one strength for all, as in
        :class:`LogisticRanker` and :class:`PNormPush`.
    n_knots : int, default 33
        Maximum number of knots of a column, placed at its quantiles; a column with fewer distinct values has a knot at
        each of them. Tables of more than 120 columns get fewer.
    n_pairs : "auto" or int
        Number of pairs of columns with a joint effect. ``"auto"`` adds pairs in rounds and keeps those whose
        Bayes factor exceeds the root of the number of candidates; with a number as ``alpha`` it is 0.
    monotonic_cst : dict or sequence of int, optional
        1 for columns whose effect must not decrease, −1 for columns whose effect must not increase, 0 for others; a
        dict by name or position, or one value per column. Such columns are not used in pairs. The effect of a missing
        value is not constrained.
    solver, max_iter, tol, warm_start, verbose
        As in :class:`PNormPush`.

    Attributes
    ----------
    shapes_ : list of Shape
        Effect of each column.
    pairs_ : list of PairShape
        Joint effects, in the order in which the pairs were chosen.
    strength_, edf_ : arrays
        Strength and effective degrees of freedom of each column and pair, in the order of ``shapes_`` and ``pairs_``.
        All columns of two values share a strength; a column with 0 degrees of freedom has a constant effect. Only with
        ``alpha="auto"``, which without ``p`` and ``monotonic_cst`` also gives each function a band
        (:meth:`Shape.band`).
    coef_ : array of shape (1, n)
        Coefficients of the ramps and of the whitened functions of pairs, as solved, times the root of their strength.
    intercept_, classes_, alpha_, objective_, dual_gap_, grad_norm_, converged_, n_iter_, history_
        As in :class:`PNormPush`. The score is ``intercept_[0]`` plus all effects.

    Notes
    -----
    Strengths and pairs are chosen on at most 50,000 random rows; all rows are fitted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = np.abs(X[:, 0]) + X[:, 1] + rng.normal(size=1000) > 2
    >>> ranker = AdditiveRanker(monotonic_cst={1: 1}).fit(X, y)
    >>> ranker.converged_, bool((np.diff(ranker.shapes_[1].values) >= 0).all())
    (True, True)
    >>> low, middle, high = ranker.shapes_[0](np.array([-2.0, 0.0, 2.0]))
    >>> bool(min(low, high) > middle)
    True
    >>> bool(ranker.edf_[2] < ranker.edf_[0])
    True
    """

    _parameter_constraints: ClassVar[dict] = (
        LinearEstimator._parameter_constraints
        | ADDITIVE
        | {"p": [None, between(1, np.inf)], "alpha": AUTO_ALPHA}
    )

    p: float | None = None
    _: KW_ONLY
    alpha: float | str = "auto"

    @property
    def _linear(self) -> Any:
        """The ranker that minimises the same objective over linear scores."""
        return LogisticRanker() if self.p is None else PNormPush(self.p)

    def _objective(self, positive: np.ndarray, weight: np.ndarray | None, groups: Any) -> Objective:
        return self._linear._objective(positive, weight, groups)

    def _power(self) -> tuple[float, float] | None:
        return self._linear._power()

    def _intercept(self, data: Training, problem: Problem, w: np.ndarray) -> float:
        objective: Any = problem.objective
        if self.p is None:
            return objective.intercept(problem.scores(w)) + self._offset
        return super()._intercept(data, problem, w) + self._offset

    def _minimise(self, data: Training, make: Make, start: np.ndarray | None = None) -> Problem:
        """Choose strengths and pairs, then fit all functions jointly."""
        if self.alpha != "auto":
            return super()._minimise(data, make)
        make(*data.columns())  # its errors come first
        data = self._encoded(data)
        basis, found = self._chosen_terms(sampled(data))
        bounds, strength = basis.columns, found.strength[basis.terms]
        self.strength_ = np.array([strength[a] if a < b else np.inf for a, b in pairwise(bounds)])
        data = with_rows(data, RampRows(data.X.values, basis.with_strength(found.strength), data.X.places))
        (design, objective), start = data.compose(make), found.v
        if self.p is None:
            self.alpha_ = 1 / objective.count
        else:
            start = start / (1 + min(self.p, LARGEST_P))
            self.alpha_ = push_scale(design.scores(start), data.labels, weights_of(data), self.p)
        penalty = self._bounded(Ridge(self.alpha_), data.X.basis)
        problem = self._solve(Problem(design, objective, penalty, data.weight), start)
        edf, curvature = found.edf, None
        if isinstance(objective, LogLoss):
            w, signs = self.coef_, self._signs(data.X.basis)
            curvature = Curvature(
                Hessian.at(design, objective, design.scores(w)), np.ones(len(w)), (signs == 0) | (w != 0)
            )
            edf = curvature.edf()
        self.edf_ = np.array([edf[a:b].sum() for a, b in pairwise(bounds)])
        self._keep(data, curvature if self.monotonic_cst is None else None)
        return problem

    def _chosen_terms(self, data: Training) -> tuple[RampBasis, Strengths]:
        """Functions and strengths; pairs are added in rounds, and dropped without evidence."""
        objective, weight = LogLoss(data.labels, sample_weight=data.weight), weights_of(data)
        rows, pairs, new = data.X, list[Pair](), list[Pair]()
        d = rows.basis.n_terms
        if min(rows.shape) > WIDEST:
            raise InputError(
                f"{type(self).__name__} would need {rows.shape[1]:,} coefficients, more than {WIDEST:,}: join the rare "
                "levels of text columns, leave columns out, or set `alpha` to a number"
            )
        rounds, size = (ROUNDS, A_ROUND) if self.n_pairs == "auto" else (1, int(self.n_pairs))
        strength, w, tried = np.ones(d), np.zeros(rows.shape[1]), set[Pair]()
        for number in count():
            basis = rows.basis
            signs = self._signs(basis)
            found = find_strengths(RampDesign(rows), objective, basis.terms, strength, w, signs)
            w = found.v / np.sqrt(found.strength)[basis.terms]
            columns = self._screened(rows, w, weight)
            kept = self._supported(basis, found, len(columns))
            progress = number == 0 or any(pairs[q] in new for q in kept)
            new = []
            if number < rounds and progress:
                slope, curvature = derivatives(objective, rows.gather(basis.matrix @ w))
                least = REMARKABLE if number else -np.inf
                ranked = screen_pairs(basis, rows.values, columns, weight, slope, curvature, least)
                new = [pair for pair in ranked if pair not in tried][:size]
                tried.update(new)
            if not new and len(kept) == len(pairs):
                break
            pairs = [*(pairs[q] for q in kept), *new]
            stays = np.isin(basis.terms, [*range(d), *(d + q for q in kept)])
            strength = np.concatenate(
                [found.strength[:d], found.strength[d:][kept], np.full(len(new), PAIR_STRENGTH)]
            )
            basis = with_pairs(basis, rows.values, weight, pairs)
            w = np.concatenate([w[stays], np.zeros(len(basis.terms) - stays.sum())])
            rows = RampRows(rows.values, basis, rows.places)
        return basis, found

    def _supported(self, basis: RampBasis, found: Strengths, n_columns: int) -> list[int]:
        """Pairs for which there is evidence; all of them if their number is given."""
        every, first = [*range(len(basis.pairs))], basis.n_terms - len(basis.pairs)
        if self.n_pairs != "auto" or not every:
            return every
        some = np.flatnonzero(basis.terms >= first)
        least = EVIDENCE * np.log(n_columns * (n_columns - 1) / 2)
        covariance = found.curvature.covariance(some)
        return supported(covariance, found.v[some], basis.terms[some] - first, every, least)


def band_of(block: np.ndarray, mass: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standard errors of a function at its slots, centred over the rows, and percentiles of the largest error.

    The coefficients are normal with this covariance around those of the fit.
    """
    values, vectors = linalg.eigh(covariance)
    root = (block - mass @ block / mass.sum()) @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    errors = np.sqrt(np.einsum("ij,ij->i", root, root))
    draws = np.random.default_rng(0).standard_normal((min(DRAWS, 200_000 // len(root)), root.shape[1]))
    unit = np.where(errors > 0, errors, 1.0)
    return errors, np.percentile(np.abs(draws @ (root / unit[:, None]).T).max(axis=1), PERCENT)


def with_rows(data: Training, rows: RampRows) -> Training:
    """The same labels, weights and groups with encoded rows."""
    return Training(rows, data.labels, data.weight, data.groups)


def weights_of(data: Training) -> np.ndarray:
    """Weight of each row."""
    return np.ones(len(data.labels)) if data.weight is None else data.weight


def sampled(data: Training) -> Training:
    """The rows, or ``STRENGTH_ROWS`` random ones of them."""
    if len(data.labels) <= STRENGTH_ROWS:
        return data
    rng, counted = np.random.default_rng(0), np.flatnonzero(weights_of(data))
    some = np.sort(rng.choice(counted, min(STRENGTH_ROWS, len(counted)), replace=False))
    weight = None if data.weight is None else data.weight[some]
    return Training(RampRows(data.X.values[some], data.X.basis), data.labels[some], weight, None)


def derivatives(objective: LogLoss, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slope and curvature of the log loss of each row."""
    p = expit(scores + objective.intercept(scores))
    return objective.weight * (p - objective.positive), objective.weight * p * (1 - p)


def push_scale(scores: np.ndarray, positive: np.ndarray, weight: np.ndarray, p: float) -> float:
    """Factor with which strengths of a logistic regression weigh prior against noise in the push as they do there.

    ``scores`` are log-odds divided by ``1 + p``, as those of a push are. Its Hessian is then about ``1 + p`` times a
    covariance of the columns, and its gradient has that covariance times the sum of the squared shares of the positives
    and of the negatives.
    """
    noise, p = 0.0, min(p, LARGEST_P)
    for some, power in ((positive, -1.0), (~positive, p)):
        share = weight[some] * np.exp(power * scores[some] - (power * scores[some]).max())
        noise += float((share**2 / np.where(weight[some] > 0, weight[some], 1)).sum() / share.sum() ** 2)
    return (1 + p) * noise


@dataclass(eq=False, repr=False)
class AdditiveRetargeting(Additive, MonotoneRetargeting):
    """Monotone retargeting with additive scores, for graded lists: one function per column.

    Parameters and attributes are those of :class:`MonotoneRetargeting`, except kernels and ``partial_fit``, plus
    ``n_knots``, ``n_pairs`` (a number), ``monotonic_cst``, ``shapes_`` and ``pairs_`` of :class:`AdditiveRanker`.

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
