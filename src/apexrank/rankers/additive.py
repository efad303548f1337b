"""Additive rankers: every column through a function of its own, fitted by the objectives of the linear ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.kernels.ramps import cell_sums
from apexrank.penalties import Bounded, Penalty
from apexrank.preprocessing.ramps import coded, learn_basis
from apexrank.problem.design import Make, Training
from apexrank.problem.problem import Problem
from apexrank.problem.ramps import Places, RampBasis, RampRows
from apexrank.rankers.base import checked_rows
from apexrank.rankers.push import PNormPush
from apexrank.rankers.retarget import MonotoneRetargeting
from apexrank.validation import check_count

PAIR_KNOTS = 6
PAIR_STRENGTH = 1.0
MOST_SCREENED = 64  # columns, those of the largest effects, of which pairs are looked at
SCREENED_ROWS = 100_000


class Shape(NamedTuple):
    """Effect of a column: linear between the knots, constant outside them.

    Attributes
    ----------
    feature : int
        Column of X.
    knots, values : arrays of shape (m,)
        The effect is ``values`` at the ``knots``, 0 on average over the training rows.
    missing : float
        Effect of a missing value; 0, the mean, where training had none.
    counts : array of shape (m − 1,), of levels (m,)
        Weight of the training rows between neighbouring knots, or at each level.
    missing_count : float
        Weight of those that have no value.
    levels : tuple of str
        Values of a column of text; its knots are 0, 1, 2, ….

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

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Effect of each value; of codes for a column of text."""
        return np.where(np.isnan(x), self.missing, np.interp(x, self.knots, self.values))


class PairShape(NamedTuple):
    """Joint effect of two columns beyond their own: bilinear between the knots, constant outside, 0 where one is missing.

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


@dataclass(eq=False, repr=False)
class Additive:
    """Mixin: makes an additive ranker of a linear one."""

    _: KW_ONLY
    n_knots: int = 17
    n_pairs: int = 0
    monotonic_cst: Mapping[Any, int] | Sequence[int] | None = None

    takes_device_arrays = False
    _checks: ClassVar[dict[str, Any]] = {
        "accept_sparse": False,
        "dtype": np.float64,
        "ensure_all_finite": "allow-nan",
        "order": "C",
    }
    shapes_: ClassVar[list[Shape]]
    pairs_: ClassVar[list[PairShape]]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _as_numbers(self, X: Any, reset: bool) -> Any:
        """A frame with columns of text as one of numbers."""
        known = None if reset else {shape.feature: shape.levels for shape in self.shapes_ if shape.levels}
        X, levels = coded(X, known)
        if reset:
            self._levels = levels
        return X

    def _minimise(self, data: Training, make: Make) -> Problem:
        """Fit the functions of columns, choose pairs by what they leave over, and fit both together."""
        check_count("n_pairs", self.n_pairs, 0)
        encoded = self._encoded(data)
        problem = super()._minimise(encoded, make)  # type: ignore[misc]
        if self.n_pairs:
            paired = self._with_pairs(data.X, encoded, problem)
            self._start = np.concatenate([self.coef_, np.zeros(paired.X.shape[1] - len(self.coef_))])
            problem = super()._minimise(paired, make)  # type: ignore[misc]
            encoded = paired
        self._keep(encoded)
        return problem

    def _encoded(self, data: Training) -> Training:
        if isinstance(data.X, RampRows):
            return data
        if type(data) is not Training:
            raise InputError(f"{type(self).__name__} needs its rows in memory: give an array or a frame")
        basis = learn_basis(data.X, data.weight, self.n_knots, self._levels)
        return Training(RampRows(data.X, basis), data.labels, data.weight, data.groups)

    def _warm(self) -> np.ndarray | None:
        start = self.__dict__.pop("_start", None)
        return super()._warm() if start is None else start  # type: ignore[misc]

    def _penalty_on(self, data: Training, objective: Any) -> Penalty:
        penalty = super()._penalty_on(data, objective)  # type: ignore[misc]
        signs = self._signs(data.X.basis)
        if not signs.any():
            return penalty
        return Bounded(penalty, np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf))

    def _signs(self, basis: RampBasis) -> np.ndarray:
        """For each coefficient 1 where it may not be negative, −1 where it may not be positive, 0 where it is free."""
        signs = np.zeros(int(basis.columns[-1]))
        for j, sign in self._monotone(len(basis.knots)).items():
            if basis.levels[j]:
                raise InputError(f"monotonic_cst is for columns of numbers, but column {j} holds text")
            first, ramps = basis.columns[j], len(basis.knots[j]) - 1
            signs[first : first + ramps] = sign
        return signs

    def _monotone(self, n_features: int) -> dict[int, int]:
        """Sign of each column that is constrained."""
        given: Any = {} if self.monotonic_cst is None else self.monotonic_cst
        if not isinstance(given, Mapping):
            if len(given) != n_features:
                raise InputError(f"monotonic_cst has {len(given)} entries, X {n_features} columns")
            given = dict(enumerate(given))
        names = list(getattr(self, "feature_names_in_", ()))
        found = {}
        for key, sign in given.items():
            if isinstance(key, str) and key in names:
                key = names.index(key)
            elif isinstance(key, str) or not 0 <= key < n_features:
                raise InputError(f"monotonic_cst names the column {key!r}, which X does not have")
            if sign not in (-1, 0, 1):
                raise InputError(f"monotonic_cst must be 1, -1 or 0 for each column, got {sign!r}")
            found[int(key)] = int(sign)
        return {key: sign for key, sign in found.items() if sign}

    def _with_pairs(self, X: np.ndarray, data: Training, problem: Problem) -> Training:
        """The rows with the pairs of columns in whose cells the gradient of the objective is largest."""
        basis = data.X.basis
        v, w = basis.matrix @ self.coef_, np.ones(len(X)) if data.weight is None else data.weight
        mass = data.X.scatter(w)
        spread = np.zeros(len(basis.knots))
        for j in range(len(spread)):
            own = slice(basis.starts[j], basis.starts[j + 1])
            spread[j] = (
                np.average(v[own] ** 2, weights=mass[own]) - np.average(v[own], weights=mass[own]) ** 2
            )
        free = [
            j for j in range(len(spread)) if j not in self._monotone(len(spread)) and len(basis.knots[j]) > 1
        ]
        chosen = sorted(sorted(free, key=lambda j: -spread[j])[:MOST_SCREENED])
        few = {j: few_knots(basis.knots[j], basis.levels[j]) for j in chosen}
        chosen = [j for j in chosen if len(few[j]) > 1]
        places = Places(np.ascontiguousarray(X[:, chosen]), [few[j] for j in chosen])
        residual = problem.objective.value_and_grad(problem.design.scores(self.coef_))[1]
        best = screen_pairs(places, residual, w, self.n_pairs)
        pairs = [(chosen[a], chosen[b]) for a, b in best]
        weights = {j: knot_mass(places, place, w) for place, j in enumerate(chosen)}
        paired = replace(
            basis, pairs=pairs, pair_knots=few, pair_weights=weights, pair_strength=PAIR_STRENGTH
        )
        return Training(RampRows(X, paired), data.labels, data.weight, data.groups)

    def _keep(self, data: Training) -> None:
        """Keep the functions, each with mean 0 over the training rows."""
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
        rows = checked_rows(self, X)  # type: ignore[arg-type]
        return sum((effect for _, effect in self._effects(rows)), np.zeros(len(rows)))

    def _effects(self, rows: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """Columns and effect of each function."""
        for shape in self.shapes_:
            yield (shape.feature,), shape(rows[:, shape.feature])
        for pair in self.pairs_:
            yield pair.features, pair(*rows[:, pair.features].T)

    def contributions(self, X: ArrayLike) -> np.ndarray:
        """What each column adds to a row's score beyond the mean, rows by columns; a pair counts half for each."""
        rows = checked_rows(self, X)  # type: ignore[arg-type]
        out = np.zeros(rows.shape)
        for columns, effect in self._effects(rows):
            for j in columns:
                out[:, j] += effect / len(columns)
        return out


def few_knots(knots: np.ndarray, levels: bool) -> np.ndarray:
    """Knots of a column in pairs: some of its own, spread evenly over its quantiles."""
    if levels:
        return knots if len(knots) <= PAIR_KNOTS else knots[:1]
    return knots[np.unique(np.round(np.linspace(0, len(knots) - 1, min(PAIR_KNOTS, len(knots)))).astype(int))]


def knot_mass(places: Places, column: int, weight: np.ndarray) -> np.ndarray:
    """Weight of the rows at each knot of a column, shared between neighbours."""
    width, code, t = (
        int(places.widths[column]),
        places.code[:, column].astype(int),
        places.fraction[:, column],
    )
    mass = np.bincount(code, weight * (1 - t), minlength=width + 2) + np.bincount(
        code + 1, weight * t, minlength=width + 2
    )
    return np.maximum(mass[:width], 1e-9 * weight.sum())


def screen_pairs(
    places: Places, residual: np.ndarray, weight: np.ndarray, most: int
) -> list[tuple[int, int]]:
    """Pairs of columns whose cells explain most of the residuals beyond what either column does alone.

    In the cells between knots, the score of a pair is ``Σ E²/N`` of the sums E of the residuals less their additive
    part, N the weights. Of many rows some are drawn.
    """
    pairs = np.array([*combinations(range(len(places.widths)), 2)], dtype=np.int64).reshape(-1, 2)
    code = places.code
    if len(code) > SCREENED_ROWS:
        some = np.random.default_rng(0).choice(len(code), SCREENED_ROWS, replace=False)
        code, residual, weight = code[some], residual[some], weight[some]
    size = int(places.widths.max(initial=1))
    sums, counts = np.zeros((2, len(pairs), size, size))
    cell_sums(code, residual, weight, pairs, places.widths, 0, len(pairs), sums, counts)
    strength = [_interaction(s, n) for s, n in zip(sums, counts, strict=True)]
    best = np.argsort(-np.array(strength), kind="stable")[:most]
    return [(int(a), int(b)) for a, b in sorted(pairs[best].tolist())]


def _interaction(sums: np.ndarray, counts: np.ndarray) -> float:
    """``Σ (E − fit)²/N``, the fit being the additive one of the cells' means by weighted least squares."""
    rows, columns = counts.sum(axis=1) > 0, counts.sum(axis=0) > 0
    N, E = counts[np.ix_(rows, columns)], sums[np.ix_(rows, columns)]
    a, b = np.zeros(len(N)), np.zeros(N.shape[1])
    for _ in range(10):
        a = (E - N * b).sum(axis=1) / N.sum(axis=1)
        b = (E - N * a[:, None]).sum(axis=0) / N.sum(axis=0)
    left = E - N * (a[:, None] + b)
    return float((left**2 / np.maximum(N, 1e-12)).sum(where=N > 0))


@dataclass(eq=False, repr=False)
class AdditivePush(Additive, PNormPush):
    """P-Norm Push of additive scores: every column through a function that is linear between knots.

    Parameters and attributes are those of :class:`PNormPush`, and those of its functions.
    """

    def _intercept(self, data: Training, problem: Problem, w: np.ndarray) -> float:
        return super()._intercept(data, problem, w) + self._offset


@dataclass(eq=False, repr=False)
class AdditiveRetargeting(Additive, MonotoneRetargeting):
    """Monotone retargeting of additive scores."""
